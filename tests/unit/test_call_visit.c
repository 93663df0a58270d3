/* core/plugin/call_leave.c: fibers of a plugin that visit a worker, and do not come back from there. */
#include "leave_fixture.h"

static int visit(const struct instance *i, struct sg_call *call, void *arguments,
                 struct sg_error *err)
{
    (void)i, (void)arguments;
    CU_ASSERT_EQUAL(host->blocking(call, block_there, NULL, err), 0);
    CU_ASSERT_EQUAL(host->sleep(call, 1, err), SG_E_CANCELLED);
    atomic_fetch_add(&returned, 1);
    return 0;
}

static void abandon_visit(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    struct sg_call *call = call_new(&stuck_on_loop, "call", NULL, NULL, DEADLINE_NONE);
    call_start(call, visit, NULL);
    await_gate(1);
    cancel_long_ago(call);
    call_wait_end(call);
    CU_ASSERT_EQUAL(call_result(call, &err), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(atomic_load(&returned), 0);
    call_unref(call);
    gate_let_go();
    await_return(1);
}

static void a_fiber_whose_function_blocks_a_worker_is_abandoned(void)
{
    run_stuck(abandon_visit, 1);
    CU_ASSERT_EQUAL(atomic_load(&abandoned), 1);
}

static int visit_in_sink(void *ctx, enum sg_out kind, const void *data, size_t len,
                         struct sg_error *err)
{
    (void)kind, (void)data, (void)len;
    return host->blocking(ctx, block_there, NULL, err);
}

static int service_waits(struct sg_call *call, const struct sg_run *run, const struct sg_sink *sink,
                         struct sg_error *err)
{
    (void)call, (void)run;
    int code = sink->event(sink->ctx, SG_OUT_LOG_OUT, "x", 1, err);
    service_ended = true;
    return code;
}

static int visit_within(const struct instance *i, struct sg_call *call, void *arguments,
                        struct sg_error *err)
{
    (void)i, (void)arguments;
    struct sg_run run = {.code = "", .code_len = 0};
    struct sg_sink sink = {visit_in_sink, call};
    return host->run_code(call, &run, &sink, err);
}

static void open_later(void *arg)
{
    struct sg_call *call = arg;
    while (call->tried_at == 0) {
        (void)fiber_sleep(1);
    }
    CU_ASSERT_FALSE(call_has_ended(call));
    gate_let_go();
}

static void keep_visit(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    service_ended = false;
    struct sg_call *call = call_new(&stuck_on_loop, "call", NULL, NULL, DEADLINE_NONE);
    call_start(call, visit_within, NULL);
    await_gate(1);
    cancel_long_ago(call);
    start("open", open_later, call);
    call_wait_end(call);
    CU_ASSERT_TRUE(service_ended);
    CU_ASSERT_EQUAL(call_result(call, &err), 0);
    call_unref(call);
}

static void a_fiber_within_the_cores_part_is_waited_for(void)
{
    core_services_set(&(struct core_services){.run_code = service_waits});
    run_stuck(keep_visit, 1);
    core_services_set(&never_services);
    CU_ASSERT_EQUAL(atomic_load(&abandoned), 0);
}

static void withdraw_visit(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    struct sg_call *call = call_new(&stuck, "run", NULL, NULL, DEADLINE_NONE);
    struct sg_call *second = call_new(&stuck_on_loop, "call", NULL, NULL, DEADLINE_NONE);
    call_start(call, block, NULL);
    await_gate(1);
    call_start(second, visit_refused, NULL);
    while (worker_pool_busy(pool) < 2) {
        fiber_yield();
    }
    call_cancel(second);
    call_wait_end(second);
    CU_ASSERT_EQUAL(call_result(second, &err), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(atomic_load(&returned), 1);
    call_unref(second);
    call_cancel(call);
    gate_let_go();
    call_unref(call);
}

static void a_visit_that_has_not_begun_is_taken_back(void)
{
    run_stuck(withdraw_visit, 1);
}

static const struct test tests[] = {
    TEST(a_fiber_whose_function_blocks_a_worker_is_abandoned),
    TEST(a_fiber_within_the_cores_part_is_waited_for),
    TEST(a_visit_that_has_not_begun_is_taken_back),
};

int main(int argc, char **argv)
{
    core_services_set(&never_services);
    return run_tests("call_visit", tests, COUNT_OF(tests), argc, argv);
}
