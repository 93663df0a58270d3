/* core/plugin/call_leave.c: calls whose code does not return. The caller goes on, the plugin gets nothing more from the
 * core, and what the caller owned cannot be reached. Threads that block stand at a gate. */
#include "leave_fixture.h"

static struct sg_call *observed;

/* ---- a call that outlives its deadline ---- */

static char log_text_read[4096];

static void outlive_deadline(void *arg)
{
    int fds[2], context = 0;
    struct sg_error err = {0};
    (void)arg;
    CU_ASSERT_EQUAL_FATAL(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    log_set_fd(fds[1]);
    struct sg_call *call = call_new(&stuck, "run", &context, "req_1", deadline_in(200));
    (void)call_ref(call);
    int64_t deadline = call_deadline(call);
    CU_ASSERT_EQUAL(call_run(call, block, NULL, NULL, &err), SG_E_TIMEOUT);
    CU_ASSERT(clock_ms() >= deadline + ABANDON_AFTER_MS);
    CU_ASSERT_STRING_EQUAL(err.message, "fake (one): 'run' was abandoned: it did not return within "
                                        "2000 ms of its deadline");
    CU_ASSERT_PTR_NULL(call_context(call));
    CU_ASSERT_EQUAL(atomic_load(&abandoned), 1);
    CU_ASSERT_EQUAL(atomic_load(&returned), 0);
    log_set_fd(2);
    CU_ASSERT(read(fds[0], log_text_read, sizeof log_text_read - 1) > 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(log_text_read,
                                  "level=warn event=call_abandoned plugin=fake instance=one "
                                  "operation=run request=req_1 message="));
    gate_let_go();
    await_return(1);
    struct call_output output;
    CU_ASSERT_EQUAL(call_next(call, &output), 0);
    CU_ASSERT_EQUAL(call_result(call, &err), SG_E_TIMEOUT); /* whatever it returned */
    call_unref(call);
    close(fds[0]);
    close(fds[1]);
}

static void a_call_that_outlives_its_deadline_is_abandoned(void)
{
    run_stuck(outlive_deadline, 1);
}

/* ---- a call that was cancelled ---- */

static void wait_in_vain(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    struct sg_call *call = call_new(&stuck, "run", NULL, NULL, DEADLINE_NONE);
    call_start(call, block, NULL);
    await_gate(1);
    cancel_long_ago(call);
    call_wait_end(call);
    CU_ASSERT_EQUAL(call_result(call, &err), SG_E_CANCELLED);
    CU_ASSERT_STRING_EQUAL(err.message, "fake (one): 'run' was abandoned: it did not return within "
                                        "2000 ms of being cancelled");
    call_unref(call);
    /* Its thread is lost; another one takes its place. */
    call = call_new(&on_worker, "run", NULL, NULL, DEADLINE_NONE);
    int wanted = SG_E_DENIED;
    call_start(call, block, &wanted);
    await_gate(2);
    CU_ASSERT_EQUAL(atomic_load(&abandoned), 1);
    call_cancel(call);
    gate_let_go();
    call_wait_end(call);
    call_unref(call);
}

static void waiting_for_a_cancelled_call_ends_and_its_thread_is_replaced(void)
{
    run_stuck(wait_in_vain, 1);
}

static void leave_behind(void *arg)
{
    (void)arg;
    struct sg_call *call = call_new(&stuck, "run", NULL, NULL, DEADLINE_NONE);
    call_start(call, block, NULL);
    await_gate(1);
    cancel_long_ago(call);
    call_unref(call); /* nobody waits for it any more */
    while (atomic_load(&abandoned) == 0) {
        (void)fiber_sleep(1);
    }
    CU_ASSERT_EQUAL(atomic_load(&returned), 0);
    gate_let_go();
}

static void a_call_that_was_left_is_abandoned_too(void)
{
    run_stuck(leave_behind, 1);
    CU_ASSERT_EQUAL(atomic_load(&returned), 1);
}

static int return_soon(const struct instance *i, struct sg_call *call, void *arguments,
                       struct sg_error *err)
{
    (void)i, (void)arguments;
    (void)host->emit(call, SG_OUT_LOG_OUT, "begun", 5, err);
    return host->sleep(call, 1000000, err);
}

static void cancel_obedient(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    struct call_output output;
    struct sg_call *call = call_new(&stuck, "run", NULL, NULL, DEADLINE_NONE);
    call_start(call, return_soon, NULL);
    CU_ASSERT_EQUAL(call_next(call, &output), 1);
    call_cancel(call);
    call_wait_end(call);
    CU_ASSERT_EQUAL(call_result(call, &err), SG_E_CANCELLED);
    CU_ASSERT_STRING_EQUAL(err.message,
                           "fake (one): sleep() in 'run' ended: the call is cancelled");
    call_unref(call);
}

static void a_call_that_returns_in_time_is_not_abandoned(void)
{
    run_stuck(cancel_obedient, 1);
    CU_ASSERT_EQUAL(atomic_load(&abandoned), 0);
}

static void wait_in_queue(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    struct sg_call *first_call = call_new(&on_worker, "run", NULL, NULL, DEADLINE_NONE);
    call_start(first_call, block, NULL);
    await_gate(1);
    struct sg_call *call = call_new(&stuck, "run", NULL, NULL, deadline_in(3));
    CU_ASSERT_EQUAL(call_run(call, never, NULL, NULL, &err), SG_E_TIMEOUT);
    CU_ASSERT_STRING_EQUAL(err.message, "fake (one): 'run': time was up before it could begin");
    call = call_new(&stuck, "run", NULL, NULL, DEADLINE_NONE);
    call_start(call, never, NULL);
    call_cancel(call);
    CU_ASSERT_TRUE(call_has_ended(call)); /* at once */
    CU_ASSERT_EQUAL(call_result(call, &err), SG_E_CANCELLED);
    CU_ASSERT_STRING_EQUAL(err.message, "fake (one): 'run' ended: the call is cancelled");
    call_unref(call);
    CU_ASSERT_EQUAL(worker_pool_busy(pool), 1);
    call_cancel(first_call);
    gate_let_go();
    call_wait_end(first_call);
    call_unref(first_call);
}

static void what_waits_for_a_thread_is_taken_back(void)
{
    run_stuck(wait_in_queue, 1);
    CU_ASSERT_EQUAL(atomic_load(&abandoned), 0);
}

/* ---- the core's part under way ---- */

static int service_tells(struct sg_call *call, const struct sg_run *run, const struct sg_sink *sink,
                         struct sg_error *err)
{
    char text[] = "borrowed";
    (void)run;
    observed = call;
    int code = sink->event(sink->ctx, SG_OUT_LOG_OUT, text, strlen(text), err);
    memset(text, '#', sizeof text);
    CU_ASSERT_EQUAL(code, SG_E_CANCELLED);
    CU_ASSERT_EQUAL(sink->event(sink->ctx, SG_OUT_LOG_OUT, text, 1, err), SG_E_CANCELLED);
    CU_ASSERT_PTR_NOT_NULL(call_context(call)); /* the caller still waits for this fiber */
    service_ended = true;
    return code;
}

static int block_in_sink(void *ctx, enum sg_out kind, const void *data, size_t len,
                         struct sg_error *err)
{
    (void)kind, (void)err;
    gate_wait();
    CU_ASSERT(len == 8 && memcmp(data, "borrowed", 8) == 0); /* a copy of its own */
    CU_ASSERT_EQUAL(host->sleep(ctx, 1, err), SG_E_CANCELLED);
    return 0;
}

static int call_service(const struct instance *i, struct sg_call *call, void *arguments,
                        struct sg_error *err)
{
    (void)i, (void)arguments;
    struct sg_run run = {.code = "", .code_len = 0};
    struct sg_sink sink = {block_in_sink, call};
    int code = host->run_code(call, &run, &sink, err);
    CU_ASSERT_EQUAL(code, SG_E_CANCELLED);
    CU_ASSERT_STRING_EQUAL(err->message, "run_code() in 'call' ended: the call is cancelled");
    atomic_fetch_add(&returned, 1);
    return code;
}

static void abandon_in_sink(void *arg)
{
    (void)arg;
    int context = 0;
    struct sg_error err = {0};
    service_ended = false;
    struct sg_call *call = call_new(&stuck, "call", &context, NULL, DEADLINE_NONE);
    call_start(call, call_service, NULL);
    await_gate(1);
    CU_ASSERT_PTR_EQUAL(observed, call);
    cancel_long_ago(call);
    call_wait_end(call);
    CU_ASSERT_TRUE(service_ended); /* though the sink has not returned */
    CU_ASSERT_PTR_NULL(call_context(call));
    CU_ASSERT_EQUAL(call_result(call, &err), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(atomic_load(&returned), 0);
    call_unref(call);
    gate_let_go();
}

static void a_sink_that_blocks_does_not_hold_the_cores_part(void)
{
    core_services_set(&(struct core_services){.run_code = service_tells});
    run_stuck(abandon_in_sink, 1);
    core_services_set(&never_services);
    CU_ASSERT_EQUAL(atomic_load(&returned), 1);
    CU_ASSERT_EQUAL(atomic_load(&abandoned), 1);
}

/* ---- a chain whose inner call hangs ---- */

static int block_silently(const struct instance *i, struct sg_call *call, void *arguments,
                          struct sg_error *err)
{
    (void)i, (void)call, (void)arguments, (void)err;
    gate_wait();
    atomic_fetch_add(&returned, 1);
    return 0;
}

static int service_hangs(struct sg_call *call, const struct sg_run *run, const struct sg_sink *sink,
                         struct sg_error *err)
{
    (void)call, (void)run, (void)sink;
    struct sg_call *inner = call_new(&stuck, "run", NULL, NULL, DEADLINE_NONE);
    call_start(inner, block_silently, NULL);
    await_gate(1);
    cancel_long_ago(inner);
    call_wait_end(inner);
    int code = call_result(inner, err);
    CU_ASSERT_EQUAL(code, SG_E_CANCELLED);
    call_unref(inner);
    service_ended = true;
    return code;
}

static int call_hanging(const struct instance *i, struct sg_call *call, void *arguments,
                        struct sg_error *err)
{
    (void)i, (void)arguments;
    struct sg_run run = {.code = "", .code_len = 0};
    int code = host->run_code(call, &run, NULL, err);
    atomic_fetch_add(&returned, 1);
    return code;
}

static void hang_inside(void *arg)
{
    (void)arg;
    int context = 0;
    struct sg_error err = {0};
    service_ended = false;
    struct sg_call *call = call_new(&stuck, "call", &context, NULL, DEADLINE_NONE);
    CU_ASSERT_EQUAL(call_run(call, call_hanging, NULL, NULL, &err), SG_E_TIMEOUT);
    CU_ASSERT_STRING_EQUAL(err.message,
                           "fake (one): 'call' was abandoned with 'run' of 'one', which holds its "
                           "thread");
    CU_ASSERT_TRUE(service_ended);
    CU_ASSERT_EQUAL(atomic_load(&abandoned), 2);
    CU_ASSERT_EQUAL(atomic_load(&returned), 0);
    gate_let_go();
}

static void a_chain_goes_with_the_call_that_holds_its_thread(void)
{
    core_services_set(&(struct core_services){.run_code = service_hangs});
    run_stuck(hang_inside, 1);
    core_services_set(&never_services);
    CU_ASSERT_EQUAL(atomic_load(&returned), 2);
}

/* ---- what is to be done late, and shares ---- */

static int late_code;

static void note_late(const struct instance *i, void *arguments, int code)
{
    CU_ASSERT_PTR_EQUAL(i, &stuck);
    late_code = code;
    CU_ASSERT_EQUAL(*(int *)arguments, SG_E_DENIED);
}

static void return_late(void *arg)
{
    (void)arg;
    static int wanted = SG_E_DENIED;
    struct sg_error err = {0};
    struct sg_call *call = call_new(&stuck, "run", NULL, NULL, DEADLINE_NONE);
    call_set_late(call, note_late);
    call_start(call, block, &wanted);
    await_gate(1);
    cancel_long_ago(call);
    call_wait_end(call);
    CU_ASSERT_EQUAL(call_result(call, &err), SG_E_CANCELLED);
    call_unref(call);
    gate_let_go();
    call = call_new(&stuck, "run", NULL, NULL, DEADLINE_NONE); /* in time: nothing is late */
    call_set_late(call, note_late);
    call_cancel(call);
    call_start(call, never, &wanted);
    call_wait_end(call);
    call_unref(call);
}

static void an_abandoned_call_that_returns_is_told_to_whom_it_concerns(void)
{
    late_code = -1;
    run_stuck(return_late, 1);
    CU_ASSERT_EQUAL(late_code, SG_E_DENIED);
}

static void share_pool(void *arg)
{
    (void)arg;
    struct sg_call *calls[4];
    static const char *const names[] = {"A", "A", "B", "A"};
    struct sg_error err = {0};
    for (size_t i = 0; i < 4; i++) {
        calls[i] = call_new(i == 3 ? &stuck_on_loop : &stuck, "run", NULL, NULL, DEADLINE_NONE);
        call_set_identity(calls[i], str_of(names[i]));
        call_start(calls[i], i == 3 ? visit_refused : i == 1 ? never : block, NULL);
    }
    await_gate(2); /* A's first and B's: A's others wait though they came before B's */
    CU_ASSERT_FALSE(call_has_ended(calls[1]));
    call_cancel(calls[1]);
    call_cancel(calls[3]);
    call_cancel(calls[0]);
    call_cancel(calls[2]);
    gate_let_go();
    for (size_t i = 0; i < 4; i++) {
        call_wait_end(calls[i]);
        CU_ASSERT_EQUAL(call_result(calls[i], &err), i == 1 || i == 3 ? SG_E_CANCELLED : 0);
        call_unref(calls[i]);
    }
}

static void an_identity_keeps_to_its_share_of_the_threads(void)
{
    run_stuck(share_pool, 2);
}

static const struct test tests[] = {
    TEST(a_call_that_outlives_its_deadline_is_abandoned),
    TEST(waiting_for_a_cancelled_call_ends_and_its_thread_is_replaced),
    TEST(a_call_that_was_left_is_abandoned_too),
    TEST(a_call_that_returns_in_time_is_not_abandoned),
    TEST(what_waits_for_a_thread_is_taken_back),
    TEST(a_sink_that_blocks_does_not_hold_the_cores_part),
    TEST(a_chain_goes_with_the_call_that_holds_its_thread),
    TEST(an_abandoned_call_that_returns_is_told_to_whom_it_concerns),
    TEST(an_identity_keeps_to_its_share_of_the_threads),
};

int main(int argc, char **argv)
{
    core_services_set(&never_services);
    return run_tests("call_leave", tests, COUNT_OF(tests), argc, argv);
}
