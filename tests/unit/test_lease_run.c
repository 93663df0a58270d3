/* core/session/lease_run and handover: runs take turns, cancelled ones are handed over, dead containers are replaced and
 * the loss announced. On two loops with a provider that does what the code says; see tests/support/sandbox_world.h. */
#include "sandbox_world.h"

static bool takes_loss(struct client *client)
{
    CU_ASSERT_EQUAL(client_do(client, TAKE_LOSS), 0);
    return client->loss;
}

/* ---- turns ---- */

static void output(void)
{
    struct client *client = client_with(1, "a", "s");
    CU_ASSERT_EQUAL(client_run(client, "ok"), 0);
    CU_ASSERT_STRING_EQUAL(client->output, "ok in h1");
    CU_ASSERT_EQUAL(client_run(client, "raise"), SG_E_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(client->err.message, "fake (box): the line is bad");
    CU_ASSERT_EQUAL(client_run(client, "timeout"), SG_E_TIMEOUT); /* C060: it lives on */
    CU_ASSERT_EQUAL(client_run(client, "ok"), 0);
    CU_ASSERT_STRING_EQUAL(client->output, "ok in h1");
    CU_ASSERT_FALSE(takes_loss(client));
    CU_ASSERT_EQUAL(client_do(client, PUT), 0);
    CU_ASSERT_EQUAL(client_do(client, GET), 0);
    CU_ASSERT_STRING_EQUAL(client->output, "b.txt");
    CU_ASSERT_EQUAL(seen(&world.creates), 1);
    client_free(client);
}

static void a_run_gives_its_output_and_failures_leave_the_container(void)
{
    world_test(output);
}

static void no_files(void)
{
    struct client *client = client_with(0, "a", "s");
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(lease_file_list(client->lease, "/", NULL, &err), SG_E_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(err.message, "the sandbox 'box' cannot hold files");
    client_free(client);
}

static void a_provider_without_files_is_said_to_have_none(void)
{
    world_test(no_files);
}

static void in_turn(void)
{
    struct client *clients[8];
    clients[0] = client_with(0, "a", "s");
    client_begin_run(clients[0], "gate");
    wait_for(logged("say=run") == 1);
    for (unsigned i = 1; i < 8; i++) {
        clients[i] = client_with(i % 2, "a", "s");
        client_begin_run(clients[i], "ok");
    }
    CU_ASSERT_EQUAL(seen(&world.runs), 1); /* C063, C064: all in one container, one at a time */
    gate_open(world.run_gate);
    for (unsigned i = 0; i < 8; i++) {
        CU_ASSERT_EQUAL(client_wait(clients[i]), 0);
    }
    CU_ASSERT_EQUAL(seen(&world.runs), 8);
    CU_ASSERT_EQUAL(seen(&world.running_max), 1);
    CU_ASSERT_EQUAL(seen(&world.creates), 1);
    for (unsigned i = 0; i < 8; i++) {
        client_free(clients[i]);
    }
}

static void c063_runs_of_a_session_take_turns(void)
{
    world_test(in_turn);
}

static void order(void)
{
    struct client *first = client_with(0, "a", "s"), *second = client_with(0, "a", "s");
    struct client *third = client_with(0, "a", "s"), *fourth = client_with(0, "a", "s");
    client_begin_run(first, "gate");
    wait_for(logged("say=run") == 1);
    second->code = third->code = "hang";
    fourth->code = "ok";
    client_begin_waiting(second, RUN);
    client_begin_waiting(third, RUN);
    client_begin_waiting(fourth, RUN);
    client_cancel(third); /* leaves the queue */
    CU_ASSERT_EQUAL(third->result, SG_E_CANCELLED);
    CU_ASSERT_STRING_EQUAL(third->err.message,
                           "gave up while waiting for its turn in the container");
    gate_open(world.run_gate);
    wait_for(logged("say=run") == 2); /* the second's */
    CU_ASSERT_TRUE(client_is_busy(fourth));
    client_cancel(second);
    CU_ASSERT_EQUAL(client_wait(fourth), 0);
    CU_ASSERT_EQUAL(seen(&world.runs), 3); /* the third's never ran */
    client_free(first);
    client_free(second);
    client_free(third);
    client_free(fourth);
}

static void first_come_first_served_and_who_leaves_the_queue_runs_nothing(void)
{
    world_test(order);
}

/* ---- cancelled runs ---- */

static void interrupted(void)
{
    struct client *client = client_with(1, "a", "s");
    struct client *next = client_with(0, "a", "s");
    client_begin_run(client, "hang");
    wait_for(logged("say=run") == 1);
    next->code = "ok";
    client_begin_waiting(next, RUN);
    client_cancel(client);
    CU_ASSERT_EQUAL(client->result, SG_E_CANCELLED);
    CU_ASSERT_STRING_EQUAL(client->err.message, "cancelled while code ran");
    CU_ASSERT_EQUAL(client_wait(next), 0);
    CU_ASSERT_EQUAL(seen(&world.interrupts), 1);
    CU_ASSERT_STRING_EQUAL(next->output, "ok in h1"); /* the container lives on */
    CU_ASSERT_FALSE(takes_loss(next));
    CU_ASSERT_EQUAL(seen(&world.destroys), 0);
    client_free(client);
    client_free(next);
}

static void a_cancelled_run_is_interrupted_and_its_turn_goes_on(void)
{
    world_test(interrupted);
}

static void handed_over_is_busy(void)
{
    struct client *client = client_with(0, "a", "s");
    client_begin_run(client, "gate");
    wait_for(logged("say=run") == 1);
    client_cancel(client);
    wait_for(seen(&world.interrupts) == 1);
    CU_ASSERT_EQUAL(stats().leases, 1); /* the handover's: neither idle nor evictable */
    struct client *other = client_new(0, "a", "t");
    client_begin_waiting(other, ACQUIRE);
    CU_ASSERT_EQUAL(seen(&world.destroy_calls), 0);
    gate_open(world.run_gate);
    CU_ASSERT_EQUAL(client_wait(other), 0); /* now it was */
    CU_ASSERT_EQUAL(logged("event=container_evicted"), 1);
    client_free(client);
    client_free(other);
}

static void b56_a_run_that_was_handed_over_keeps_its_container_from_eviction(void)
{
    world_open();
    world.options.per_identity = 1;
    world.options.wait_ms = WAIT_MS;
    world.options.interrupt_ms = WAIT_MS;
    world_run(handed_over_is_busy);
    world_close();
}

static void deaf(void)
{
    struct client *client = client_with(1, "a", "s");
    struct client *next = client_with(0, "a", "s");
    client_begin_run(client, "deaf");
    wait_for(logged("say=run") == 1);
    client_cancel(client);
    wait_for(logged("event=container_hung") == 1);
    CU_ASSERT_EQUAL(client_run(next, "ok"), 0);
    CU_ASSERT_STRING_EQUAL(next->output, "ok in h2");
    CU_ASSERT_TRUE(takes_loss(next));
    CU_ASSERT_FALSE(takes_loss(next)); /* once */
    client_free(client);
    client_free(next);
    wait_for(logged("event=container_deleted") >= 1);
    CU_ASSERT_EQUAL(logged("reason=hung"), 1);
}

static void a_run_that_cannot_be_interrupted_costs_its_container(void)
{
    world_open();
    world.options.interrupt_ms = 10;
    world_run(deaf);
    world_close();
}

static void call_runs_out(void)
{
    struct client *client = client_with(1, "a", "s");
    client->timeout_ms = 1;
    CU_ASSERT_EQUAL(client_run(client, "deaf"), SG_E_TIMEOUT); /* the provider did not end it */
    wait_for(logged("event=container_hung") == 1);
    client->timeout_ms = 60000;
    CU_ASSERT_EQUAL(client_run(client, "ok"), 0);
    CU_ASSERT_STRING_EQUAL(client->output, "ok in h2");
    CU_ASSERT_TRUE(takes_loss(client));
    client_free(client);
}

static void a_run_that_outlasts_its_call_costs_its_container(void)
{
    world_open();
    world.options.run_slack_ms = 5;
    world_run(call_runs_out);
    world_close();
}

static void run_limits(void)
{
    struct client *client = client_with(1, "a", "s");
    static const int64_t asked[] = {0, -1, 60000, 60001, INT64_MAX};
    for (size_t i = 0; i < COUNT_OF(asked); i++) {
        client->timeout_ms = asked[i];
        CU_ASSERT_EQUAL(client_run(client, "ok"), 0);
        CU_ASSERT_EQUAL(world.run_timeout_ms, 60000);
    }
    client->timeout_ms = 7000;
    CU_ASSERT_EQUAL(client_run(client, "ok"), 0);
    CU_ASSERT_EQUAL(world.run_timeout_ms, 7000);
    client_free(client);
}

static void a_run_is_limited_by_the_sandboxs_limit(void)
{
    world_test(run_limits);
}

static void interrupt_hangs(void)
{
    set(&world.interrupt_hangs, true);
    struct client *client = client_with(1, "a", "s");
    client_begin_run(client, "hang");
    wait_for(logged("say=run") == 1);
    client_cancel(client);
    wait_for(logged("event=container_hung") == 1); /* it could hit the next run */
    client_free(client);
}

static void an_interrupt_that_does_not_return_costs_the_container_too(void)
{
    world_open();
    world.options.interrupt_ms = 10;
    world_run(interrupt_hangs);
    world_close();
}

static void refused(void)
{
    struct client *client = client_with(1, "a", "");
    client->refuses = true;
    CU_ASSERT_EQUAL(client_run(client, "ok"), SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(client->err.message, "too much output");
    client->refuses = false;
    CU_ASSERT_EQUAL(client_run(client, "ok"), 0); /* the request goes on, in the same one */
    CU_ASSERT_STRING_EQUAL(client->output, "ok in h1");
    client_free(client);
    wait_for(logged("event=container_deleted") == 1); /* B29 */
}

static void a_sink_that_refuses_ends_the_run_and_not_the_container(void)
{
    world_test(refused);
}

static void ephemeral(void)
{
    struct client *client = client_with(1, "a", "");
    client_begin_run(client, "hang");
    wait_for(logged("say=run") == 1);
    client_cancel(client);
    wait_for(logged("event=container_deleted") == 1);
    CU_ASSERT_EQUAL(seen(&world.interrupts), 0);
    CU_ASSERT_EQUAL(seen(&world.destroy_calls), 1);
    CU_ASSERT_EQUAL(logged("event=container_hung"), 0);
    client_free(client);
}

static void an_ephemeral_container_of_a_cancelled_request_is_destroyed_at_once(void)
{
    world_test(ephemeral);
}

static void ended_in_use(void)
{
    struct client *client = client_with(1, "a", "s");
    client_begin_run(client, "hang");
    wait_for(logged("say=run") == 1);
    CU_ASSERT_TRUE(registry_end(world.registry, STR("a"), str_of(client->id)));
    CU_ASSERT_EQUAL(client_wait(client), 0); /* destroy() came while it ran, and ended it */
    CU_ASSERT_EQUAL(client_run(client, "ok"), 0);
    CU_ASSERT_STRING_EQUAL(client->output, "ok in h2");
    CU_ASSERT_FALSE(takes_loss(client)); /* it was asked for */
    client_free(client);
}

static void a_container_may_be_ended_while_code_runs_in_it(void)
{
    world_test(ended_in_use);
}

/* ---- death ---- */

static void gone_before(void)
{
    struct client *client = client_with(1, "a", "s"), *other = client_with(0, "a", "s");
    char id[64];
    CU_ASSERT_EQUAL(client_run(client, "ok"), 0);
    snprintf(id, sizeof id, "%s", client->id);
    kill_all();
    CU_ASSERT_FALSE(takes_loss(client)); /* nobody knows yet */
    CU_ASSERT_EQUAL(client_run(client, "ok"), 0);
    CU_ASSERT_STRING_EQUAL(client->output, "ok in h2");
    CU_ASSERT_EQUAL(client->begun, 2); /* what had not run in the dead one does not count */
    CU_ASSERT_STRING_NOT_EQUAL(client->id, id);
    CU_ASSERT_TRUE(takes_loss(client));
    CU_ASSERT_EQUAL(client_run(client, "ok"), 0); /* C058: the next call is normal */
    CU_ASSERT_FALSE(takes_loss(client));
    CU_ASSERT_EQUAL(client_run(other, "ok"), 0); /* the other request goes to the new one, too */
    CU_ASSERT_STRING_EQUAL(other->output, "ok in h2");
    CU_ASSERT_STRING_EQUAL(other->id, client->id);
    CU_ASSERT_EQUAL(seen(&world.creates), 2);
    CU_ASSERT_EQUAL(logged("event=container_gone"), 1);
    CU_ASSERT_EQUAL(stats().replaced, 2);
    client_free(client);
    client_free(other);
}

static void c058_a_dead_container_is_replaced_and_the_loss_announced_once(void)
{
    world_test(gone_before);
}

static void gone_in_a_run(void)
{
    struct client *client = client_with(1, "a", "s");
    CU_ASSERT_EQUAL(client_run(client, "die"), SG_E_GONE);
    CU_ASSERT_STRING_EQUAL(client->err.message, "fake (box): it died");
    CU_ASSERT_EQUAL(seen(&world.runs), 1); /* it had started: never run again */
    CU_ASSERT_FALSE(takes_loss(client));   /* not replaced yet */
    client_free(client);
    struct client *next = client_with(0, "a", "s"); /* another request */
    CU_ASSERT_EQUAL(client_run(next, "ok"), 0);
    CU_ASSERT_STRING_EQUAL(next->output, "ok in h2");
    CU_ASSERT_TRUE(takes_loss(next));
    client_free(next);
}

static void code_that_had_started_is_not_run_again(void)
{
    world_test(gone_in_a_run);
}

static void gone_unused(void)
{
    struct client *client = client_with(1, "a", "s");
    kill_all();
    CU_ASSERT_EQUAL(client_run(client, "ok"), 0);
    CU_ASSERT_FALSE(takes_loss(client)); /* nothing was in it */
    client_free(client);
}

static void an_unused_container_that_dies_loses_nothing(void)
{
    world_test(gone_unused);
}

static void gone_ephemeral(void)
{
    struct client *client = client_with(1, "a", "");
    CU_ASSERT_EQUAL(client_do(client, PUT), 0);
    kill_all();
    CU_ASSERT_EQUAL(client_do(client, PUT), 0); /* files are put again, too */
    CU_ASSERT_EQUAL(seen(&world.puts), 3);
    CU_ASSERT_TRUE(takes_loss(client));
    CU_ASSERT_FALSE(takes_loss(client));
    client_free(client);
}

static void an_ephemeral_container_is_replaced_likewise(void)
{
    world_test(gone_ephemeral);
}

static void gone_while_others_wait(void)
{
    struct client *first = client_with(0, "a", "s"), *second = client_with(0, "a", "s");
    CU_ASSERT_EQUAL(client_run(first, "ok"), 0);
    first->code = "gate";
    client_begin(first, RUN);
    wait_for(logged("say=run") == 2);
    second->code = "ok";
    client_begin_waiting(second, RUN);
    CU_ASSERT_TRUE(registry_end(world.registry, STR("a"), str_of(first->id)));
    CU_ASSERT_EQUAL(client_wait(second), 0); /* its turn never came: a new container */
    CU_ASSERT_STRING_EQUAL(second->output, "ok in h2");
    gate_open(world.run_gate);
    (void)client_wait(first);
    client_free(first);
    client_free(second);
}

static void who_waits_for_a_turn_in_a_container_that_ends_gets_a_new_one(void)
{
    world_test(gone_while_others_wait);
}

static void gone_again_and_again(void)
{
    struct client *client = client_with(1, "a", "s");
    kill_all();
    gate_close(world.create_gate);
    client_begin_run(client, "ok");
    wait_for(logged("say=create") == 2);
    set(&world.create_fails, true);
    gate_open(world.create_gate);
    CU_ASSERT_EQUAL(client_wait(client), SG_E_UNAVAILABLE); /* the replacement's failure */
    CU_ASSERT_STRING_EQUAL(client->err.message, "fake (box): no room at the provider");
    set(&world.create_fails, false);
    CU_ASSERT_EQUAL(client_run(client, "ok"), 0);
    client_free(client);
}

static void a_replacement_that_fails_says_so_and_the_next_run_tries_again(void)
{
    world_test(gone_again_and_again);
}

/* ---- everything at once ---- */

static void chaos(void)
{
    static const char *const codes[] = {"ok", "hang", "ok", "die", "deaf", "raise", "ok"};
    struct client *clients[40];
    char names[40][8];
    for (unsigned i = 0; i < 40; i++) {
        snprintf(names[i], sizeof names[i], "s%u", i % 7);
        clients[i] = client_new(i % 2, i % 3 == 0 ? "a" : "b", i % 4 == 3 ? "" : names[i]);
        client_begin(clients[i], ACQUIRE);
    }
    for (unsigned i = 0; i < 40; i++) {
        if (client_wait(clients[i]) == 0) {
            client_begin_run(clients[i], codes[i % COUNT_OF(codes)]);
        }
    }
    for (unsigned i = 0; i < 40; i++) { /* some are cancelled while they run, wait or have ended */
        if (i % 2 == 0 || i % COUNT_OF(codes) == 1 || i % COUNT_OF(codes) == 4) {
            client_cancel(clients[i]);
        }
    }
    for (unsigned i = 0; i < 40; i++) {
        wait_for(!client_is_busy(clients[i]));
        client_free(clients[i]);
    }
}

static void whatever_happens_no_container_is_left(void)
{
    for (int workers = 0; workers < 2; workers++) {
        if (workers) {
            world_open_workers();
        } else {
            world_open();
        }
        world.options.per_identity = 4;
        world.options.wait_ms = 20;
        world.options.interrupt_ms = 10;
        world_run(chaos); /* and its checks at the end */
        world_close();
    }
}

static const struct test tests[] = {
    TEST(a_run_gives_its_output_and_failures_leave_the_container),
    TEST(a_provider_without_files_is_said_to_have_none),
    TEST(c063_runs_of_a_session_take_turns),
    TEST(first_come_first_served_and_who_leaves_the_queue_runs_nothing),
    TEST(a_cancelled_run_is_interrupted_and_its_turn_goes_on),
    TEST(b56_a_run_that_was_handed_over_keeps_its_container_from_eviction),
    TEST(a_run_that_cannot_be_interrupted_costs_its_container),
    TEST(a_run_that_outlasts_its_call_costs_its_container),
    TEST(a_run_is_limited_by_the_sandboxs_limit),
    TEST(an_interrupt_that_does_not_return_costs_the_container_too),
    TEST(a_sink_that_refuses_ends_the_run_and_not_the_container),
    TEST(an_ephemeral_container_of_a_cancelled_request_is_destroyed_at_once),
    TEST(a_container_may_be_ended_while_code_runs_in_it),
    TEST(c058_a_dead_container_is_replaced_and_the_loss_announced_once),
    TEST(code_that_had_started_is_not_run_again),
    TEST(an_unused_container_that_dies_loses_nothing),
    TEST(an_ephemeral_container_is_replaced_likewise),
    TEST(who_waits_for_a_turn_in_a_container_that_ends_gets_a_new_one),
    TEST(a_replacement_that_fails_says_so_and_the_next_run_tries_again),
    TEST(whatever_happens_no_container_is_left),
};

int main(int argc, char **argv)
{
    return run_tests("lease_run", tests, COUNT_OF(tests), argc, argv);
}
