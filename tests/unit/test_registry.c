/* core/session/registry: who gets which container, how many there ever are, and that each is deleted. On two loops with
 * a provider that waits at gates and counts; see tests/support/sandbox_world.h. */
#include "sandbox_world.h"

/* ---- single flight ---- */

#define MANY 20

static void many_first_requests(void)
{
    struct client *clients[MANY];
    gate_close(world.create_gate);
    for (unsigned i = 0; i < MANY; i++) {
        clients[i] = client_new(i % 2, "a", "s");
        client_begin(clients[i], ACQUIRE);
    }
    wait_for(logged("say=create") == 1);
    gate_open(world.create_gate);
    for (unsigned i = 0; i < MANY; i++) {
        CU_ASSERT_EQUAL(client_wait(clients[i]), 0);
        CU_ASSERT_STRING_EQUAL(clients[i]->id, clients[0]->id);
    }
    CU_ASSERT_EQUAL(seen(&world.creates), 1);
    CU_ASSERT_EQUAL(stats().leases, MANY);
    CU_ASSERT_EQUAL(stats().sessions, 1);
    for (unsigned i = 0; i < MANY; i++) {
        client_free(clients[i]);
    }
    CU_ASSERT_EQUAL(stats().leases, 0);
    CU_ASSERT_EQUAL(stats().ready, 1);
    CU_ASSERT_EQUAL(seen(&world.destroys), 0); /* B50: the session keeps it */
}

static void b55_concurrent_first_requests_make_one_container(void)
{
    world_test(many_first_requests);
}

static void one_after_the_other(void)
{
    struct client *first = client_with(0, "a", "s");
    char id[64];
    snprintf(id, sizeof id, "%s", first->id);
    client_free(first);
    struct client *second = client_with(1, "a", "s");
    CU_ASSERT_STRING_EQUAL(second->id, id);
    CU_ASSERT_EQUAL(strncmp(id, "cntr_sg", 7), 0);
    CU_ASSERT_EQUAL(strlen(id), 7 + 32);
    CU_ASSERT_EQUAL(strncmp(world.boxes[0].label, "sg-", 3), 0);
    CU_ASSERT_EQUAL(strlen(world.boxes[0].label), 3 + 32);
    CU_ASSERT_PTR_NULL(strstr(world.boxes[0].label, id + 7)); /* neither tells the other */
    CU_ASSERT_EQUAL(world.boxes[0].life_ms, 15 * 60000 + 60000 + 60000);
    client_free(second);
}

static void b51_a_session_is_found_again_over_another_connection(void)
{
    world_test(one_after_the_other);
}

static void failing_creation(void)
{
    struct client *clients[4];
    set(&world.create_fails, true);
    gate_close(world.create_gate);
    for (unsigned i = 0; i < 4; i++) {
        clients[i] = client_new(0, "a", "s");
        client_begin_waiting(clients[i], ACQUIRE);
    }
    wait_for(logged("say=create") == 1);
    gate_open(world.create_gate);
    for (unsigned i = 0; i < 4; i++) {
        int code = client_wait(clients[i]);
        CU_ASSERT_EQUAL(code, SG_E_UNAVAILABLE);
        CU_ASSERT_STRING_EQUAL(clients[i]->err.message, "fake (box): no room at the provider");
    }
    wait_for(logged("event=container_create_failed") == 1);
    CU_ASSERT_EQUAL(logged("error=\"fake (box): no room at the provider\""), 1);
    CU_ASSERT_EQUAL(stats().creating + stats().ready + stats().closing, 0);
    set(&world.create_fails, false);
    CU_ASSERT_EQUAL(client_do(clients[0], ACQUIRE), 0); /* nothing is left behind */
    for (unsigned i = 0; i < 4; i++) {
        client_free(clients[i]);
    }
}

static void a_failed_creation_wakes_all_and_leaves_nothing(void)
{
    world_test(failing_creation);
}

static void late_failure(void)
{
    set(&world.create_fails_late, true);
    struct client *client = client_new(1, "a", "s");
    CU_ASSERT_EQUAL(client_do(client, ACQUIRE), SG_E_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(client->err.message, "fake (box): it did not boot");
    wait_for(logged("event=container_deleted") == 1);
    CU_ASSERT_EQUAL(seen(&world.live), 0);
    CU_ASSERT_EQUAL(logged("reason=failed"), 1);
    set(&world.create_fails_late, false);
    set(&world.create_is_silent, true);
    CU_ASSERT_EQUAL(client_do(client, ACQUIRE), SG_E_INTERNAL);
    CU_ASSERT_STRING_EQUAL(client->err.message,
                           "sandbox 'box': create() gave no handle of 1 to 4096 bytes without NUL");
    client_free(client);
}

static void a_handle_once_given_is_destroyed_whatever_create_returns(void)
{
    world_test(late_failure);
}

static void cancelled_while_creating(void)
{
    gate_close(world.create_gate);
    struct client *client = client_new(1, "a", "s");
    client_begin(client, ACQUIRE);
    wait_for(logged("say=create") == 1);
    client_cancel(client);
    CU_ASSERT_EQUAL(client->result, SG_E_CANCELLED);
    CU_ASSERT_STRING_EQUAL(client->err.message, "cancelled while waiting for a container");
    gate_open(world.create_gate);
    wait_for(logged("event=container_created") == 1);
    CU_ASSERT_EQUAL(stats().ready, 1);
    CU_ASSERT_EQUAL(stats().leases, 0);
    struct client *next = client_with(0, "a", "s");
    CU_ASSERT_EQUAL(seen(&world.creates), 1); /* the session's, all the same */
    client_free(next);
    client_free(client);
}

static void a_client_that_leaves_cancels_its_wait_not_the_creation(void)
{
    world_test(cancelled_while_creating);
}

static void ephemeral_cancelled_while_creating(void)
{
    gate_close(world.create_gate);
    struct client *client = client_new(1, "a", "");
    client_begin(client, ACQUIRE);
    wait_for(logged("say=create") == 1);
    client_cancel(client);
    gate_open(world.create_gate);
    wait_for(logged("event=container_deleted") == 1);
    CU_ASSERT_EQUAL(logged("reason=unwanted"), 1);
    CU_ASSERT_EQUAL(seen(&world.live), 0);
    client_free(client);
}

static void b30_an_ephemeral_container_that_nobody_waits_for_is_deleted_when_made(void)
{
    world_test(ephemeral_cancelled_while_creating);
}

/* ---- isolation ---- */

static void same_ids(void)
{
    struct client *a = client_with(0, "a", "s"), *b = client_with(1, "b", "s");
    struct client *colon = client_with(0, "a:s", "t"), *other = client_with(1, "a", "s:t");
    struct client *none = client_with(0, "a", ""), *again = client_with(0, "a", "");
    CU_ASSERT_EQUAL(seen(&world.creates), 6);
    CU_ASSERT_STRING_NOT_EQUAL(a->id, b->id);
    CU_ASSERT_STRING_NOT_EQUAL(colon->id, other->id);
    CU_ASSERT_STRING_NOT_EQUAL(none->id, again->id); /* B11, B12: ephemeral ones share nothing */
    struct client *thief = client_new(0, "b", "");
    thief->container = a->id;
    CU_ASSERT_EQUAL(client_do(thief, ACQUIRE), SG_E_NOT_FOUND);
    char wanted[128];
    snprintf(wanted, sizeof wanted, "container '%s' does not exist or has expired", a->id);
    CU_ASSERT_STRING_EQUAL(thief->err.message, wanted);
    struct client *owner = client_new(1, "a", "");
    owner->container = a->id;
    CU_ASSERT_EQUAL(client_do(owner, ACQUIRE), 0);
    CU_ASSERT_STRING_EQUAL(owner->id, a->id);
    struct client *all[] = {a, b, colon, other, none, again, thief, owner};
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        client_free(all[i]);
    }
}

static void b53_b58_identities_share_nothing_whatever_the_session_id(void)
{
    world_test(same_ids);
}

/* ---- caps ---- */

static void eleven_sessions(void)
{
    static const char *const names[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"};
    for (unsigned i = 0; i < 10; i++) {
        client_free(client_with(i % 2, "a", names[i]));
    }
    CU_ASSERT_EQUAL(seen(&world.live), 10);
    gate_close(world.destroy_gate);
    struct client *client = client_new(1, "a", names[10]);
    client_begin(client, ACQUIRE);
    wait_for(logged("event=container_evicted") == 1);
    CU_ASSERT_EQUAL(seen(&world.creates), 10); /* deleted first, then made */
    CU_ASSERT_EQUAL(stats().closing, 1);
    gate_open(world.destroy_gate);
    CU_ASSERT_EQUAL(client_wait(client), 0);
    CU_ASSERT_EQUAL(seen(&world.creates), 11);
    CU_ASSERT_FALSE(world.boxes[0].is_alive); /* the least recently used */
    CU_ASSERT_TRUE(world.boxes[1].is_alive);
    CU_ASSERT_EQUAL(seen(&world.live_max), 10);
    CU_ASSERT_EQUAL(stats().evicted, 1);
    client_free(client);
}

static void b54_the_least_recently_used_is_deleted_before_the_new_one_is_made(void)
{
    world_test(eleven_sessions);
}

static void storm(void)
{
    struct client *clients[60];
    char names[60][8];
    for (unsigned i = 0; i < 60; i++) {
        snprintf(names[i], sizeof names[i], "s%u", i % 23);
        clients[i] = client_new(i % 2, "a", i % 5 == 4 ? "" : names[i]);
        client_begin(clients[i], ACQUIRE);
    }
    unsigned done = 0;
    bool freed[60] = {false};
    while (done < 60) { /* whoever has one gives it back, so that the others come to theirs */
        for (unsigned i = 0; i < 60; i++) {
            if (!freed[i] && !client_is_busy(clients[i])) {
                CU_ASSERT_EQUAL(clients[i]->result, 0);
                client_free(clients[i]);
                freed[i] = true;
                done++;
            }
        }
        if (done < 60) {
            something_happens("a client");
        }
    }
    CU_ASSERT_TRUE(seen(&world.live_max) <= 3 + 2);
}

static void the_caps_hold_in_a_storm_of_requests(void)
{
    world_open();
    world.options.per_identity = 3;
    world.options.max_containers = 5;
    world.options.wait_ms = WAIT_MS;
    world_run(storm);
    world_close();
}

static void all_leased(void)
{
    struct client *one = client_with(0, "a", "1"), *two = client_with(1, "a", "2");
    struct client *three = client_new(0, "a", "3");
    CU_ASSERT_EQUAL(client_do(three, ACQUIRE), SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(three->err.message,
                           "sessions.per_identity is 2: no session became free within 20 ms");
    struct client *other = client_with(0, "b", "1"); /* another's cap is its own */
    CU_ASSERT_EQUAL(seen(&world.destroys), 0);       /* B56 */
    struct client *ephemeral = client_with(1, "a", "");
    struct client *full = client_new(0, "a", "");
    CU_ASSERT_EQUAL(client_do(full, ACQUIRE), SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(full->err.message,
                           "sessions.max_containers is 3: no container became free within 20 ms");
    CU_ASSERT_EQUAL(client_do(full, ACQUIRE), SG_E_LIMIT);
    struct client *total = client_new(0, "c", "1");
    CU_ASSERT_EQUAL(client_do(total, ACQUIRE), SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(
        total->err.message,
        "sessions.max_containers_total is 4: no container became free within 20 ms");
    struct client *all[] = {one, two, three, other, ephemeral, full, total};
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        client_free(all[i]);
    }
}

static void b56_leased_containers_are_never_evicted_and_the_limit_is_named(void)
{
    world_open();
    world.options.per_identity = 2;
    world.options.max_containers = 3;
    world.options.max_containers_total = 4;
    world.options.wait_ms = 20;
    world_run(all_leased);
    world_close();
}

static void wait_for_a_lease(void)
{
    struct client *one = client_with(0, "a", "1");
    struct client *two = client_new(1, "a", "2"), *ephemeral = client_new(0, "b", "");
    client_begin(two, ACQUIRE);                        /* until a lease of `a` is given back */
    CU_ASSERT_EQUAL(client_do(ephemeral, ACQUIRE), 0); /* holds up nobody else */
    CU_ASSERT_TRUE(client_is_busy(two));
    client_free(one);
    CU_ASSERT_EQUAL(client_wait(two), 0);
    CU_ASSERT_EQUAL(logged("event=container_evicted"), 1);
    client_free(two);
    client_free(ephemeral);
}

static void over_the_cap_a_request_waits_for_a_lease(void)
{
    world_open();
    world.options.per_identity = 1;
    world.options.wait_ms = WAIT_MS;
    world_run(wait_for_a_lease);
    world_close();
}

static void total_full(void)
{
    client_free(client_with(0, "a", "1"));
    struct client *b = client_with(0, "b", "1");
    struct client *c = client_with(1, "c", "1"); /* evicts the idle one of another identity */
    CU_ASSERT_FALSE(world.boxes[0].is_alive);
    CU_ASSERT_EQUAL(seen(&world.live_max), 2);
    struct client *d = client_new(1, "d", "1"), *e = client_new(1, "e", "");
    client_begin(d, ACQUIRE);
    client_begin(e, ACQUIRE);
    client_free(b);
    CU_ASSERT_EQUAL(client_wait(d), 0);
    client_free(c);
    CU_ASSERT_EQUAL(client_wait(e), 0);
    CU_ASSERT_EQUAL(seen(&world.live_max), 2);
    client_free(d);
    client_free(e);
}

static void the_total_limit_evicts_the_least_recently_used_of_all(void)
{
    world_open();
    world.options.max_containers_total = 2;
    world.options.wait_ms = WAIT_MS;
    world_run(total_full);
    world_close();
}

static void leave_the_queue(void)
{
    struct client *one = client_with(0, "a", "1");
    struct client *gone = client_new(0, "a", "2"), *stays = client_new(0, "a", "3");
    client_begin_waiting(gone, ACQUIRE);
    client_begin_waiting(stays, ACQUIRE);
    client_cancel(gone);
    CU_ASSERT_EQUAL(gone->result, SG_E_CANCELLED);
    client_free(one);
    CU_ASSERT_EQUAL(client_wait(stays), 0);
    CU_ASSERT_EQUAL(seen(&world.creates), 2); /* nothing for who left */
    client_free(gone);
    client_free(stays);
}

static void who_leaves_the_queue_takes_no_room(void)
{
    world_open();
    world.options.per_identity = 1;
    world.options.wait_ms = WAIT_MS;
    world_run(leave_the_queue);
    world_close();
}

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
    CU_ASSERT_EQUAL(stats().closing, 1);
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

static struct client *creating, *waiting, *late;

static void shutdown_with_waiters(void)
{
    struct client *leased = client_with(0, "a", "1");
    waiting = client_new(0, "a", "2");
    client_begin_waiting(waiting, ACQUIRE); /* for room */
    gate_close(world.create_gate);
    creating = client_new(0, "b", "1");
    client_begin_waiting(creating, ACQUIRE); /* for its creation */
    wait_for(logged("say=create") == 2);
    world.left = registry_shutdown(world.registry, deadline_in(10));
    CU_ASSERT_EQUAL(client_wait(waiting), SG_E_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(waiting->err.message, "the gateway is shutting down");
    CU_ASSERT_EQUAL(client_wait(creating), SG_E_UNAVAILABLE);
    late = client_new(0, "c", "1");
    CU_ASSERT_EQUAL(client_do(late, ACQUIRE), SG_E_UNAVAILABLE);
    CU_ASSERT_EQUAL(seen(&world.live), 0); /* the leased one, too, in the end */
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
    TEST(b55_concurrent_first_requests_make_one_container),
    TEST(b51_a_session_is_found_again_over_another_connection),
    TEST(a_failed_creation_wakes_all_and_leaves_nothing),
    TEST(a_handle_once_given_is_destroyed_whatever_create_returns),
    TEST(a_client_that_leaves_cancels_its_wait_not_the_creation),
    TEST(b30_an_ephemeral_container_that_nobody_waits_for_is_deleted_when_made),
    TEST(b53_b58_identities_share_nothing_whatever_the_session_id),
    TEST(b54_the_least_recently_used_is_deleted_before_the_new_one_is_made),
    TEST(the_caps_hold_in_a_storm_of_requests),
    TEST(b56_leased_containers_are_never_evicted_and_the_limit_is_named),
    TEST(over_the_cap_a_request_waits_for_a_lease),
    TEST(the_total_limit_evicts_the_least_recently_used_of_all),
    TEST(who_leaves_the_queue_takes_no_room),
    TEST(b27_b52_an_ephemeral_container_goes_with_its_lease),
    TEST(a_kept_container_lives_on_for_the_next_request),
    TEST(b41_an_idle_container_is_deleted_and_a_busy_one_is_not),
    TEST(b40_a_failing_deletion_is_retried_then_lost_then_still_retried),
    TEST(without_allowance_nothing_is_lost_and_it_stays_counted),
    TEST(c072_a_session_can_be_made_again_while_it_is_deleted),
    TEST(an_identity_sees_its_own_containers),
    TEST(shutdown_deletes_all),
    TEST(shutdown_turns_all_waiters_away_and_ends_creations),
    TEST(what_cannot_be_deleted_at_the_end_is_logged),
    TEST(options_that_cannot_be_are_refused),
};

int main(int argc, char **argv)
{
    return run_tests("registry", tests, COUNT_OF(tests), argc, argv);
}
