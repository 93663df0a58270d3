/* core/session/runs.c: an identity runs so much code at a time and no more; what is beyond waits for its own earlier
 * runs, others are served meanwhile, and a place comes back on every way out of a run. */
#include "sandbox_world.h"

static void world_with_share(size_t share, void (*body)(void))
{
    world_open();
    world.options.runs_per_identity = share;
    world_run(body);
    world_close();
}

/* ---- the share ---- */

static void two_places(void)
{
    struct client *clients[5], *other = client_with(1, "b", "s");
    static const char *const sessions[] = {"1", "2", "3", "4", "5"};
    for (unsigned i = 0; i < 5; i++) {
        clients[i] = client_with(0, "a", sessions[i]);
        clients[i]->code = i < 2 ? "gate" : "ok";
        client_begin_waiting(clients[i], RUN);
    }
    wait_for(logged("say=run") == 2);
    CU_ASSERT_EQUAL(client_run(other, "ok"), 0); /* another identity's goes on */
    CU_ASSERT_EQUAL(seen(&world.runs), 3);
    for (unsigned i = 2; i < 5; i++) {
        CU_ASSERT_TRUE(client_is_busy(clients[i]));
        CU_ASSERT_EQUAL(clients[i]->begun, 0);
    }
    gate_open(world.run_gate);
    for (unsigned i = 0; i < 5; i++) {
        CU_ASSERT_EQUAL(client_wait(clients[i]), 0);
        CU_ASSERT_EQUAL(clients[i]->begun, 1);
        client_free(clients[i]);
    }
    CU_ASSERT_EQUAL(seen(&world.runs), 6);
    client_free(other);
}

static void an_identity_keeps_to_its_share_and_others_are_served(void)
{
    world_with_share(2, two_places);
}

static void no_limit(void)
{
    struct client *one = client_with(0, "a", "1"), *two = client_with(0, "a", "2");
    client_begin_run(one, "gate");
    client_begin_run(two, "gate");
    wait_for(logged("say=run") == 2);
    gate_open(world.run_gate);
    CU_ASSERT_EQUAL(client_wait(one), 0);
    CU_ASSERT_EQUAL(client_wait(two), 0);
    client_free(one);
    client_free(two);
}

static void without_a_share_all_run(void)
{
    world_with_share(0, no_limit);
}

static void files(void)
{
    struct client *one = client_with(0, "a", "1"), *two = client_with(1, "a", "2");
    client_begin_run(one, "gate");
    wait_for(logged("say=run") == 1);
    CU_ASSERT_EQUAL(client_do(two, PUT), 0);
    CU_ASSERT_EQUAL(client_do(two, GET), 0);
    gate_open(world.run_gate);
    CU_ASSERT_EQUAL(client_wait(one), 0);
    client_free(one);
    client_free(two);
}

static void files_move_while_all_places_are_taken(void)
{
    world_with_share(1, files);
}

/* ---- the queue ---- */

static void queue(void)
{
    struct client *first = client_with(0, "a", "1"), *second = client_with(0, "a", "2");
    struct client *third = client_with(0, "a", "3"), *same = client_with(0, "a", "2");
    first->code = "gate";
    second->code = third->code = same->code = "ok";
    client_begin_waiting(first, RUN);
    client_begin_waiting(second, RUN);
    client_begin_waiting(third, RUN);
    client_begin_waiting(same, RUN); /* for its turn in the second's container */
    client_cancel(second);
    CU_ASSERT_EQUAL(second->result, SG_E_CANCELLED);
    CU_ASSERT_STRING_EQUAL(second->err.message,
                           "gave up while 1 runs of this identity, its share, were under way");
    CU_ASSERT_TRUE(client_is_busy(third));
    CU_ASSERT_TRUE(client_is_busy(same));
    CU_ASSERT_EQUAL(seen(&world.runs), 1);
    gate_open(world.run_gate);
    CU_ASSERT_EQUAL(client_wait(first), 0);
    CU_ASSERT_EQUAL(client_wait(third), 0);
    CU_ASSERT_EQUAL(client_wait(same), 0); /* it had the turn that the second gave back */
    CU_ASSERT_EQUAL(seen(&world.runs), 3);
    client_free(first);
    client_free(second);
    client_free(third);
    client_free(same);
}

static void who_leaves_the_queue_runs_nothing_and_holds_up_nobody(void)
{
    world_with_share(1, queue);
}

static void ended(void)
{
    struct client *first = client_with(0, "a", "1"), *second = client_with(0, "a", "2");
    first->code = "gate";
    second->code = "ok";
    client_begin_waiting(first, RUN);
    client_begin_waiting(second, RUN);
    CU_ASSERT_TRUE(registry_end(world.registry, STR("a"), str_of(second->id)));
    gate_open(world.run_gate);
    CU_ASSERT_EQUAL(client_wait(first), 0);
    CU_ASSERT_EQUAL(client_wait(second), 0);
    CU_ASSERT_STRING_EQUAL(second->output, "ok in h3"); /* a new container */
    CU_ASSERT_EQUAL(client_run(first, "ok"), 0);
    client_free(first);
    client_free(second);
}

static void a_container_that_ends_while_its_run_waits_is_replaced(void)
{
    world_with_share(1, ended);
}

/* ---- every way out ---- */

static void fail(struct client *client, const char *code, int result)
{
    CU_ASSERT_EQUAL(client_run(client, code), result);
    CU_ASSERT_EQUAL(client_run(client, "ok"), 0); /* the one place is free */
}

static void ways_out(void)
{
    struct client *client = client_with(1, "a", "s");
    fail(client, "raise", SG_E_UNAVAILABLE);
    fail(client, "timeout", SG_E_TIMEOUT);
    fail(client, "die", SG_E_GONE);
    client->refuses = true;
    CU_ASSERT_EQUAL(client_run(client, "ok"), SG_E_LIMIT);
    client->refuses = false;
    CU_ASSERT_EQUAL(client_run(client, "ok"), 0);
    kill_all(); /* nothing of the run begins: it is run again, in a new container */
    CU_ASSERT_EQUAL(client_run(client, "ok"), 0);
    int runs = seen(&world.runs);
    client_begin_run(client, "hang");
    wait_for(seen(&world.runs) == runs + 1);
    CU_ASSERT_TRUE(registry_end(world.registry, STR("a"), str_of(client->id)));
    CU_ASSERT_EQUAL(client_wait(client), 0);
    CU_ASSERT_EQUAL(client_run(client, "ok"), 0);
    client_free(client);
}

static void failures_and_deaths_give_the_place_back(void)
{
    world_with_share(1, ways_out);
}

static void leave(const char *session, const char *code)
{
    struct client *client = client_with(1, "a", session), *next = client_with(0, "a", "next");
    int runs = seen(&world.runs);
    client_begin_run(client, code);
    wait_for(seen(&world.runs) == runs + 1);
    client_cancel(client);
    CU_ASSERT_EQUAL(client_run(next, "ok"), 0);
    client_free(client);
    client_free(next);
}

static void clients_leave(void)
{
    leave("s", "hang"); /* interrupted, the container stays */
    leave("", "hang");  /* deleted at once */
}

static void clients_that_leave_give_the_place_back(void)
{
    world_with_share(1, clients_leave);
}

/* Nobody can end it: it counts until its container is gone. */
static void deaf(void)
{
    struct client *client = client_with(1, "a", "s"), *next = client_with(0, "a", "next");
    set(&world.interrupt_hangs, true);
    client_begin_run(client, "hang");
    wait_for(logged("say=run") == 1);
    client_cancel(client);
    wait_for(logged("event=container_hung") == 1);
    CU_ASSERT_EQUAL(client_run(next, "ok"), 0);
    client_free(client);
    client_free(next);
}

static void a_run_that_cannot_be_ended_counts_until_its_container_is_gone(void)
{
    world_open();
    world.options.runs_per_identity = 1;
    world.options.interrupt_ms = 10;
    world_run(deaf);
    world_close();
}

/* ---- the end ---- */

static void shut_down(void)
{
    struct client *first = client_with(0, "a", "1"), *second = client_with(0, "a", "2");
    first->code = "hang";
    second->code = "ok";
    client_begin_waiting(first, RUN);
    client_begin_waiting(second, RUN);
    world.left = registry_shutdown(world.registry, deadline_in(WAIT_MS));
    CU_ASSERT_EQUAL(client_wait(second), SG_E_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(second->err.message, "the gateway is shutting down");
    (void)client_wait(first); /* its container was deleted under it */
    client_free(first);
    client_free(second);
}

static void a_shutdown_ends_the_waiting(void)
{
    world_with_share(1, shut_down);
}

static const struct test tests[] = {
    TEST(an_identity_keeps_to_its_share_and_others_are_served),
    TEST(without_a_share_all_run),
    TEST(files_move_while_all_places_are_taken),
    TEST(who_leaves_the_queue_runs_nothing_and_holds_up_nobody),
    TEST(a_container_that_ends_while_its_run_waits_is_replaced),
    TEST(failures_and_deaths_give_the_place_back),
    TEST(clients_that_leave_give_the_place_back),
    TEST(a_run_that_cannot_be_ended_counts_until_its_container_is_gone),
    TEST(a_shutdown_ends_the_waiting),
};

int main(int argc, char **argv)
{
    return run_tests("runs", tests, COUNT_OF(tests), argc, argv);
}
