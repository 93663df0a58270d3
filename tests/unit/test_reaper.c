/* core/session/reaper and the registry's end: that each container is deleted, when, and what happens when it cannot be. On
 * two loops with a provider that waits at gates and counts; see tests/support/sandbox_world.h. */
#include "sandbox_world.h"

/* ---- the end of containers ---- */

static void ephemeral_end(void)
{
    struct client *client = client_with(1, "a", "");
    CU_ASSERT_EQUAL(client_run(client, "ok"), 0);
    CU_ASSERT_EQUAL(client_run(client, "ok"), 0);
    CU_ASSERT_EQUAL(seen(&world.creates), 1); /* B10: one for several runs */
    CU_ASSERT_EQUAL(seen(&world.destroys), 0);
    client_free(client);
    wait_for(logged("event=container_deleted") == 1);
    CU_ASSERT_EQUAL(seen(&world.destroy_calls), 1); /* B28, B31: once */
    CU_ASSERT_EQUAL(logged("reason=released"), 1);
}

static void b27_b52_an_ephemeral_container_goes_with_its_lease(void)
{
    world_test(ephemeral_end);
}

static void kept(void)
{
    struct client *client = client_with(1, "a", "");
    char id[64];
    client->keep_ms = 3600000;
    CU_ASSERT_EQUAL(client_do(client, KEEP), 0);
    wait_for(seen(&world.touches) == 1); /* the provider keeps it for so long, too */
    CU_ASSERT_TRUE(world.touched_ms > 3600000);
    snprintf(id, sizeof id, "%s", client->id);
    client_free(client);
    CU_ASSERT_EQUAL(stats().ready, 1);
    struct client *next = client_new(0, "a", "");
    next->container = id;
    CU_ASSERT_EQUAL(client_do(next, ACQUIRE), 0);
    CU_ASSERT_STRING_EQUAL(next->id, id);
    client_free(next); /* not kept this time */
    wait_for(logged("event=container_deleted") == 1);
    CU_ASSERT_EQUAL(stats().ready, 0);
}

static void a_kept_container_lives_on_for_the_next_request(void)
{
    world_test(kept);
}

static void idle_time(void)
{
    struct client *busy = client_with(0, "a", "busy");
    client_free(client_with(1, "a", "idle"));
    wait_for(logged("event=container_deleted") == 1);
    CU_ASSERT_EQUAL(logged("event=container_expired"), 1);
    CU_ASSERT_EQUAL(seen(&world.destroys), 1); /* B41: at the provider */
    CU_ASSERT_TRUE(world.boxes[0].is_alive);   /* B56: not the leased one, long over its time */
    CU_ASSERT_EQUAL(stats().expired, 1);
    CU_ASSERT_EQUAL(client_run(busy, "ok"), 0);
    client_free(busy);
    wait_for(logged("event=container_deleted") == 2);
    struct client *again = client_with(0, "a", "idle"); /* a fresh one, without ado */
    CU_ASSERT_EQUAL(client_do(again, TAKE_LOSS), 0);
    CU_ASSERT_FALSE(again->loss);
    client_free(again);
}

static void b41_an_idle_container_is_deleted_and_a_busy_one_is_not(void)
{
    world_open();
    world.options.idle_timeout_ms = 10;
    world_run(idle_time);
    world_close();
}

static void failing_deletion(void)
{
    set(&world.destroy_fails, true);
    struct client *client = client_with(0, "a", "1");
    CU_ASSERT_TRUE(registry_end(world.registry, STR("a"), str_of(client->id)));
    CU_ASSERT_FALSE(registry_end(world.registry, STR("a"), str_of(client->id)));
    CU_ASSERT_FALSE(registry_end(world.registry, STR("b"), str_of(client->id)));
    client_free(client); /* B40: nothing of it is the request's matter */
    wait_for(logged("event=container_delete_failed") >= 2);
    CU_ASSERT_TRUE(logged("error=\"fake (box): cannot delete now\"") >= 2);
    CU_ASSERT_EQUAL(stats().closing + stats().lost, 1);
    struct client *next = client_new(0, "a", "2");
    client_begin_waiting(next, ACQUIRE); /* it still counts … */
    wait_for(logged("event=container_lost") == 1);
    CU_ASSERT_EQUAL(client_wait(next), 0); /* … until it is lost */
    CU_ASSERT_EQUAL(stats().lost, 1);
    CU_ASSERT_EQUAL(stats().closing, 0);
    CU_ASSERT_TRUE(stats().destroy_failures >= 3);
    set(&world.destroy_fails, false);
    wait_for(logged("event=container_deleted") == 1); /* tried all the same */
    CU_ASSERT_EQUAL(stats().lost, 0);
    client_free(next);
}

static void b40_a_failing_deletion_is_retried_then_lost_then_still_retried(void)
{
    world_open();
    world.options.per_identity = 1;
    world.options.wait_ms = WAIT_MS;
    world.options.lost_after_ms = 50;
    world_run(failing_deletion);
    world_close();
}

static void no_allowance(void)
{
    set(&world.destroy_fails, true);
    struct client *client = client_with(0, "a", "1");
    CU_ASSERT_TRUE(registry_end(world.registry, STR("a"), str_of(client->id)));
    client_free(client);
    wait_for(logged("event=container_delete_failed") >= 10); /* long past lost_after_ms */
    CU_ASSERT_EQUAL(stats().lost, 0);
    CU_ASSERT_EQUAL(stats().closing, 1); /* still the identity's */
    set(&world.destroy_fails, false);
    wait_for(logged("event=container_deleted") == 1);
}

static void without_allowance_nothing_is_lost_and_it_stays_counted(void)
{
    world_open();
    world.options.lost_after_ms = 2;
    world.options.lost_max = 0;
    world_run(no_allowance);
    world_close();
}

static void life_is_over(void)
{
    set(&world.destroy_fails, true);
    struct client *client = client_with(0, "a", "");
    client_free(client);
    wait_for(logged("event=container_left") == 1);
    CU_ASSERT_EQUAL(stats().lost + stats().closing, 0);
    world.live = 0; /* as its provider has it */
    world.destroys = 1;
}

static void a_container_is_given_up_when_its_life_at_the_provider_is_over(void)
{
    world_open();
    world.options.idle_timeout_ms = world.options.life_slack_ms = 10;
    world.options.create_ms = 1000; /* counts as part of the life: it may begin late */
    world.options.lost_after_ms = 20;
    world.sandbox.run_timeout_ms = 10;
    world_run(life_is_over);
    world_close();
}

static void recreate(void)
{
    gate_close(world.destroy_gate);
    struct client *client = client_with(0, "a", "s");
    CU_ASSERT_TRUE(registry_end(world.registry, STR("a"), str_of(client->id)));
    client_free(client);
    struct client *again = client_with(1, "a", "s"); /* while the deletion still goes on */
    CU_ASSERT_EQUAL(client_run(again, "ok"), 0);
    CU_ASSERT_EQUAL(seen(&world.live), 2);
    CU_ASSERT_STRING_NOT_EQUAL(world.boxes[0].label, world.boxes[1].label);
    gate_open(world.destroy_gate);
    wait_for(logged("event=container_deleted") == 1);
    CU_ASSERT_EQUAL(client_run(again, "ok"), 0);
    client_free(again);
}

static void c072_a_session_can_be_made_again_while_it_is_deleted(void)
{
    world_test(recreate);
}

static void listing(void)
{
    struct client *one = client_with(0, "a", "1");
    client_free(client_with(0, "a", "2"));
    client_free(client_with(0, "b", "3"));
    struct container_info *infos;
    size_t count = registry_list(world.registry, STR("a"), &infos);
    CU_ASSERT_EQUAL_FATAL(count, 2);
    size_t leased = infos[0].leases == 1 ? 0 : 1;
    CU_ASSERT_STRING_EQUAL(infos[leased].container_id, one->id);
    CU_ASSERT_EQUAL(infos[leased].idle_left_ms, -1);
    CU_ASSERT_TRUE(infos[1 - leased].idle_left_ms > 0);
    CU_ASSERT_STRING_EQUAL(infos[0].sandbox, "box");
    CU_ASSERT_TRUE(infos[0].is_session);
    free(infos);
    CU_ASSERT_EQUAL(registry_list(world.registry, STR("c"), &infos), 0);
    free(infos);
    client_free(one);
}

static void an_identity_sees_its_own_containers(void)
{
    world_test(listing);
}

/* ---- shutdown ---- */

static void leave_all(void)
{
    client_free(client_with(0, "a", "1"));
    client_free(client_with(1, "b", "2"));
    CU_ASSERT_EQUAL(seen(&world.live), 2);
}

static void shutdown_deletes_all(void)
{
    world_test(leave_all);
    CU_ASSERT_EQUAL(world.destroys, 2);
}

static void shutdown_with_waiters(void)
{
    struct client *leased = client_with(0, "a", "1"), *waiting = client_new(0, "a", "2");
    client_begin_waiting(waiting, ACQUIRE); /* for room */
    gate_close(world.create_gate);
    struct client *creating = client_new(0, "b", "1");
    creating->opens_gate = true;             /* when it is turned away */
    client_begin_waiting(creating, ACQUIRE); /* for its creation */
    wait_for(logged("say=create") == 2);
    CU_ASSERT_EQUAL(registry_shutdown(world.registry, deadline_in(WAIT_MS)), 0);
    CU_ASSERT_EQUAL(client_wait(waiting), SG_E_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(waiting->err.message, "the gateway is shutting down");
    CU_ASSERT_EQUAL(client_wait(creating), SG_E_UNAVAILABLE);
    struct client *late = client_new(0, "c", "1");
    CU_ASSERT_EQUAL(client_do(late, ACQUIRE), SG_E_UNAVAILABLE);
    CU_ASSERT_EQUAL(seen(&world.creates), 2); /* it was made, then deleted */
    CU_ASSERT_EQUAL(seen(&world.live), 0);    /* the leased one, too, in the end */
    CU_ASSERT_EQUAL(logged("reason=shutdown"), 2);
    client_free(leased);
    client_free(waiting);
    client_free(creating);
    client_free(late);
}

static void shutdown_turns_all_waiters_away_and_ends_creations(void)
{
    world_open();
    world.options.per_identity = 1;
    world.options.wait_ms = WAIT_MS;
    world.options.interrupt_ms = 1;
    world_run(shutdown_with_waiters);
    world_close();
}

static void shutdown_while_creating(void)
{
    gate_close(world.create_gate);
    struct client *client = client_new(1, "a", "1");
    client_begin(client, ACQUIRE);
    wait_for(logged("say=create") == 1);
    CU_ASSERT_EQUAL(registry_shutdown(world.registry, deadline_in(5)), 0);
    CU_ASSERT_EQUAL(client_wait(client), SG_E_UNAVAILABLE);
    wait_for(logged("event=container_create_failed") == 1);
    CU_ASSERT_EQUAL(logged("error=\"sandbox 'box': create() is left: shutting down\""), 1);
    client_free(client);
}

static void shutdown_leaves_a_creation_that_does_not_end(void)
{
    world_test(shutdown_while_creating);
}

static void shutdown_in_vain(void)
{
    set(&world.destroy_fails, true);
    client_free(client_with(0, "a", "1"));
    world.shutdown_ms = 20;
    CU_ASSERT_EQUAL(registry_shutdown(world.registry, deadline_in(20)), 1);
    wait_for(logged("event=container_left") == 1);
    CU_ASSERT_EQUAL(logged("life_left_ms="), 1);
    world.live = 0; /* it ends by its life */
    world.destroys = 1;
    registry_free(world.registry);
    world.registry = NULL;
}

static void what_cannot_be_deleted_at_the_end_is_logged(void)
{
    world_test(shutdown_in_vain);
}

static void options_that_cannot_be_are_refused(void)
{
    struct registry_options options;
    struct registry *registry;
    struct sg_error err = {0};
    struct loop *loop = NULL;
    registry_options_default(&options);
    options.loops = &loop;
    options.loops_count = 1;
    options.per_identity = 0;
    CU_ASSERT_EQUAL(registry_new(&options, &registry, &err), SG_E_CONFIG);
    CU_ASSERT_STRING_EQUAL(err.message,
                           "sessions: per_identity, max_containers and max_containers_total must "
                           "be at least 1");
    options.per_identity = 1;
    options.idle_timeout_ms = 0;
    CU_ASSERT_EQUAL(registry_new(&options, &registry, &err), SG_E_CONFIG);
    CU_ASSERT_STRING_EQUAL(err.message, "sessions: idle_timeout must be longer than 0");
}

static const struct test tests[] = {
    TEST(b27_b52_an_ephemeral_container_goes_with_its_lease),
    TEST(a_kept_container_lives_on_for_the_next_request),
    TEST(b41_an_idle_container_is_deleted_and_a_busy_one_is_not),
    TEST(b40_a_failing_deletion_is_retried_then_lost_then_still_retried),
    TEST(without_allowance_nothing_is_lost_and_it_stays_counted),
    TEST(a_container_is_given_up_when_its_life_at_the_provider_is_over),
    TEST(c072_a_session_can_be_made_again_while_it_is_deleted),
    TEST(an_identity_sees_its_own_containers),
    TEST(shutdown_deletes_all),
    TEST(shutdown_turns_all_waiters_away_and_ends_creations),
    TEST(shutdown_leaves_a_creation_that_does_not_end),
    TEST(what_cannot_be_deleted_at_the_end_is_logged),
    TEST(options_that_cannot_be_are_refused),
};

int main(int argc, char **argv)
{
    return run_tests("reaper", tests, COUNT_OF(tests), argc, argv);
}
