/* core/plugin/call.c: output, back-pressure, results, cancelling. Each test is run with the plugin in a fiber and again
 * with it on a worker thread, and must see the same. */
#include "call_fixture.h"

#include <stdatomic.h>

/* ---- output ---- */

enum { MANY = 3000 };

static int emit_many(const struct instance *i, struct sg_call *call, void *arguments,
                     struct sg_error *err)
{
    (void)i;
    char text[400];
    memset(text, 'x', sizeof text);
    for (int number = 0; number < *(int *)arguments; number++) {
        size_t len = 8 + (size_t)(number * 7 % 390);
        (void)snprintf(text, sizeof text, "%07d", number);
        int code = host->emit(call, SG_OUT_LOG_OUT, text, len, err);
        if (code != 0) {
            return code;
        }
    }
    return host->fail(err, SG_E_LIMIT, "that was %d", *(int *)arguments);
}

static void read_many(void *arg)
{
    (void)arg;
    struct sg_call *call = call_of("run");
    struct call_output output = {0};
    struct sg_error err = {0};
    int *count = arena_get(call_arena(call), sizeof *count), number = 0, wrong = 0;
    *count = MANY;
    call_start(call, emit_many, count);
    while (call_next(call, &output) == 1) {
        wrong += output.kind != SG_OUT_LOG_OUT ||
                 output.data.len != 8 + (size_t)(number * 7 % 390) ||
                 strtol(output.data.data, NULL, 10) != number;
        number++;
    }
    CU_ASSERT_EQUAL(number, MANY);
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_TRUE(call_has_ended(call));
    CU_ASSERT_EQUAL(call_next(call, &output), 0);
    CU_ASSERT_EQUAL(call_result(call, &err), SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(err.message, "fake (one): that was 3000");
    call_unref(call);
}

static void output_comes_in_order_and_the_result_last(void)
{
    run_both(read_many);
}

static size_t turns;
static bool is_reading;

static void count_turns(void *arg)
{
    (void)arg;
    for (turns = 0; is_reading; turns++) {
        fiber_yield();
    }
}

static int emit_ready(const struct instance *i, struct sg_call *call, void *arguments,
                      struct sg_error *err)
{
    (void)i, (void)arguments;
    for (int k = 0; k < 1280; k++) {
        int code = host->emit(call, SG_OUT_DATA, "x", 1, err);
        if (code != 0) {
            return code;
        }
    }
    return 0;
}

static void read_with_others(void *arg)
{
    (void)arg;
    struct sg_call *call = call_of("run");
    struct call_output output = {0};
    call_start(call, emit_ready, NULL);
    while (!call_has_ended(call)) { /* all output is there: nothing to wait for from now on */
        fiber_yield();
        (void)sched_yield();
    }
    is_reading = true;
    start("other", count_turns, NULL);
    while (call_next(call, &output) == 1) {
    }
    is_reading = false;
    CU_ASSERT(turns >= 1280 / 64 - 2);
    call_unref(call);
}

static void a_reader_with_much_to_read_lets_others_run(void)
{
    run_both(read_with_others);
}

static atomic_int emitted;

static int emit_blocks(const struct instance *i, struct sg_call *call, void *arguments,
                       struct sg_error *err)
{
    (void)i, (void)arguments;
    char *block = host->alloc(call, 64 * KIB);
    atomic_store(&emitted, 0);
    for (int k = 0; k < 10; k++) {
        block[0] = (char)('0' + k);
        int code = host->emit(call, SG_OUT_DATA, block, 64 * KIB, err);
        if (code != 0) {
            return code;
        }
        atomic_fetch_add(&emitted, 1);
    }
    return 0;
}

static void read_slowly(void *arg)
{
    (void)arg;
    struct sg_call *call = call_of("get");
    struct call_output output = {0};
    struct sg_error err = {0};
    call_start(call, emit_blocks, NULL);
    await_full_queue(call);
    CU_ASSERT_EQUAL(atomic_load(&emitted), 4); /* four of 64 KiB fill 256 KiB to the byte */
    CU_ASSERT_EQUAL(call->queue_bytes, LIMIT_CALL_QUEUE_BYTES);
    char order[11] = "";
    for (size_t k = 0; call_next(call, &output) == 1; k++) {
        CU_ASSERT_EQUAL(output.data.len, 64 * KIB);
        order[k % 10] = output.data.data[0];
    }
    CU_ASSERT_STRING_EQUAL(order, "0123456789");
    CU_ASSERT_EQUAL(atomic_load(&emitted), 10);
    CU_ASSERT_EQUAL(call_result(call, &err), 0);
    call_unref(call);
}

static void a_full_queue_stops_the_plugin_until_it_is_read(void)
{
    run_both(read_slowly);
}

static int emit_large(const struct instance *i, struct sg_call *call, void *arguments,
                      struct sg_error *err)
{
    (void)i, (void)arguments;
    char *large = host->alloc(call, 2 * LIMIT_CALL_QUEUE_BYTES);
    int code = host->emit(call, SG_OUT_LOG_OUT, "small", 5, err);
    code = code != 0 ? code : host->emit(call, SG_OUT_DATA, large, 2 * LIMIT_CALL_QUEUE_BYTES, err);
    return code != 0 ? code : host->emit(call, SG_OUT_LOG_OUT, NULL, 0, err);
}

static void read_large(void *arg)
{
    (void)arg;
    struct sg_call *call = call_of("get");
    struct call_output output = {0};
    call_start(call, emit_large, NULL);
    await_full_queue(call);
    CU_ASSERT_EQUAL(call->queue_bytes, 5);
    CU_ASSERT_EQUAL(call_next(call, &output), 1);
    CU_ASSERT_EQUAL(output.data.len, 5);
    CU_ASSERT_EQUAL(call_next(call, &output), 1);
    CU_ASSERT_EQUAL(output.data.len, 2 * LIMIT_CALL_QUEUE_BYTES);
    CU_ASSERT_EQUAL(call_next(call, &output), 1);
    CU_ASSERT_EQUAL(output.data.len, 0);
    CU_ASSERT_EQUAL(call_next(call, &output), 0);
    call_unref(call);
}

static void an_output_larger_than_the_queue_waits_for_an_empty_one(void)
{
    run_both(read_large);
}

/* ---- cancelling and time ---- */

static void cancel_full(void *arg)
{
    (void)arg;
    struct sg_call *call = call_of("run");
    struct call_output output = {0};
    struct sg_error err = {0};
    call_start(call, emit_blocks, NULL);
    await_full_queue(call);
    CU_ASSERT_EQUAL(call_next(call, &output), 1);
    call_cancel(call);
    call_cancel(call);
    CU_ASSERT_EQUAL(output.data.data[0], '0');    /* what was taken stays */
    CU_ASSERT_EQUAL(call_next(call, &output), 0); /* the rest was dropped */
    CU_ASSERT_EQUAL(call_result(call, &err), SG_E_CANCELLED);
    CU_ASSERT_STRING_EQUAL(err.message, "fake (one): emit() in 'run' ended: the call is cancelled");
    CU_ASSERT_TRUE(call_is_cancelled(call));
    call_unref(call);
}

static void cancelling_ends_a_plugin_that_waits_for_room(void)
{
    run_both(cancel_full);
}

static bool time_out_once(int64_t *ms)
{
    struct sg_call *call = call_new(instance, "run", NULL, NULL, deadline_in(*ms));
    struct sg_error err = {0};
    call_start(call, emit_blocks, NULL);
    while (!call_has_ended(call)) { /* nobody reads */
        fiber_yield();
    }
    CU_ASSERT(clock_ms() >= call_deadline(call));
    CU_ASSERT_EQUAL(call_result(call, &err), SG_E_TIMEOUT);
    bool is_begun = was_begun(call, ms);
    if (is_begun) {
        CU_ASSERT_STRING_EQUAL(err.message, "fake (one): emit() in 'run' ended: time is up");
    }
    call_unref(call);
    return is_begun;
}

static void time_out_full(void *arg)
{
    (void)arg;
    for (int64_t ms = 5; !time_out_once(&ms);) {
    }
}

static void the_deadline_ends_a_plugin_that_waits_for_room(void)
{
    run_both(time_out_full);
}

static int handles_taken;

static int emit_late(const struct instance *i, struct sg_call *call, void *arguments,
                     struct sg_error *err)
{
    (void)i, (void)arguments;
    CU_ASSERT_EQUAL(host->sleep(call, 100000, err), SG_E_TIMEOUT);
    CU_ASSERT_EQUAL(host->time_left_ms(call), 0);
    return host->emit(call, SG_OUT_HANDLE, "late", 4, err);
}

static int take_late(void *ctx, enum sg_out kind, const void *data, size_t len,
                     struct sg_error *err)
{
    (void)ctx, (void)err;
    CU_ASSERT(kind == SG_OUT_HANDLE && len == 4 && memcmp(data, "late", 4) == 0);
    handles_taken++;
    return 0;
}

static void read_late(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    struct sg_sink sink = {take_late, NULL};
    handles_taken = 0;
    for (int64_t ms = 5; handles_taken == 0; ms *= 4) { /* until it began in time */
        struct sg_call *call = call_new(instance, "create", NULL, NULL, deadline_in(ms));
        CU_ASSERT_EQUAL(call_run(call, emit_late, NULL, &sink, &err) != 0, handles_taken == 0);
    }
    CU_ASSERT_EQUAL(handles_taken, 1);
}

static void a_handle_is_not_lost_to_the_deadline(void)
{
    run_both(read_late);
}

static atomic_int ended_by_itself;

static int sleep_long(const struct instance *i, struct sg_call *call, void *arguments,
                      struct sg_error *err)
{
    (void)i, (void)arguments;
    int code = host->emit(call, SG_OUT_STATUS, "begun", 5, err);
    code = code != 0 ? code : host->sleep(call, 1000000, err);
    CU_ASSERT_EQUAL(code, SG_E_CANCELLED);
    CU_ASSERT_EQUAL(host->emit(call, SG_OUT_STATUS, "more", 4, err), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(host->time_left_ms(call), 0);
    atomic_fetch_add(&ended_by_itself, 1);
    return code;
}

static int cancel_caller(void *ctx, enum sg_out kind, const void *data, size_t len,
                         struct sg_error *err)
{
    (void)data, (void)len, (void)err;
    CU_ASSERT_EQUAL(kind, SG_OUT_STATUS);
    fiber_cancel(ctx);
    return 0;
}

static void leave(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    struct sg_sink sink = {cancel_caller, fiber_self()};
    atomic_store(&ended_by_itself, 0);
    CU_ASSERT_EQUAL(call_run(call_of("run"), sleep_long, NULL, &sink, &err), SG_E_CANCELLED);
    CU_ASSERT_STRING_EQUAL(err.message, "fake (one): 'run' was cancelled");
}

static void a_cancelled_caller_leaves_and_the_call_ends_by_itself(void)
{
    run_once(&on_loop, leave, 1);
    CU_ASSERT_EQUAL(atomic_load(&ended_by_itself), 1);
    run_once(&on_worker, leave, 1);
    CU_ASSERT_EQUAL(atomic_load(&ended_by_itself), 1);
}

static void leave_in_time(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    fiber_set_deadline(fiber_self(), deadline_in(3));
    CU_ASSERT_EQUAL(call_run(call_of("run"), sleep_long, NULL, NULL, &err), SG_E_TIMEOUT);
    CU_ASSERT_STRING_EQUAL(err.message, "fake (one): 'run' took too long");
}

static void a_caller_without_time_leaves_too(void)
{
    run_both(leave_in_time);
}

static int refuse(void *ctx, enum sg_out kind, const void *data, size_t len, struct sg_error *err)
{
    (void)ctx, (void)kind, (void)data, (void)len;
    return error_set(err, SG_E_DENIED, "no more");
}

static void refuse_output(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    struct sg_sink sink = {refuse, NULL};
    CU_ASSERT_EQUAL(call_run(call_of("run"), sleep_long, NULL, &sink, &err), SG_E_DENIED);
    CU_ASSERT_STRING_EQUAL(err.message, "no more");
}

static void a_sink_that_refuses_ends_the_call(void)
{
    run_both(refuse_output);
}

static int sleep_a_while(const struct instance *i, struct sg_call *call, void *arguments,
                         struct sg_error *err)
{
    (void)i, (void)arguments;
    int code = host->sleep(call, 10, err);
    return code != 0 ? code : host->emit(call, SG_OUT_DATA, "done", 4, err);
}

static void come_back(void *arg)
{
    (void)arg;
    struct sg_call *call = call_of("run");
    struct call_output output = {0};
    struct sg_error err = {0};
    call_start(call, sleep_a_while, NULL);
    fiber_set_deadline(fiber_self(), clock_ms());
    CU_ASSERT_EQUAL(call_next(call, &output), -SG_E_TIMEOUT);
    fiber_cancel(fiber_self());
    CU_ASSERT_EQUAL(call_next(call, &output), -SG_E_CANCELLED);
    CU_ASSERT_FALSE(call_has_ended(call));
    call_wait_end(call); /* also when cancelled */
    CU_ASSERT_TRUE(call_has_ended(call));
    CU_ASSERT_EQUAL(call_result(call, &err), 0);
    call_unref(call);
}

static void a_caller_may_stop_reading_and_wait_for_the_end(void)
{
    run_both(come_back);
}

static int never(const struct instance *i, struct sg_call *call, void *arguments,
                 struct sg_error *err)
{
    (void)i, (void)call, (void)err;
    *(bool *)arguments = true;
    return 0;
}

static void too_late(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    bool was_run = false;
    struct sg_call *call = call_of("run");
    call_cancel(call);
    CU_ASSERT_EQUAL(call_run(call, never, &was_run, NULL, &err), SG_E_CANCELLED);
    CU_ASSERT_STRING_EQUAL(err.message, "fake (one): 'run' ended: the call is cancelled");
    call = call_new(instance, "run", NULL, NULL, clock_ms());
    CU_ASSERT_EQUAL(call_run(call, never, &was_run, NULL, &err), SG_E_TIMEOUT);
    CU_ASSERT_STRING_EQUAL(err.message, "fake (one): 'run': time was up before it could begin");
    CU_ASSERT_FALSE(was_run);
}

static void what_nobody_waits_for_is_not_begun(void)
{
    run_both(too_late);
}

static void fill_pool(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    struct sg_call *calls[5], *call = call_of("run");
    for (size_t i = 0; i < 5; i++) { /* one runs, four wait */
        calls[i] = call_of("run");
        call_start(calls[i], sleep_long, NULL);
    }
    CU_ASSERT_EQUAL(call_run(call, sleep_long, NULL, NULL, &err), SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(err.message,
                           "fake (one): all 1 worker threads are busy and 4 tasks wait for one");
    for (size_t i = 0; i < 5; i++) {
        call_cancel(calls[i]);
        call_wait_end(calls[i]);
        call_unref(calls[i]);
    }
}

static void a_full_pool_is_the_calls_result(void)
{
    run_once(&on_worker, fill_pool, 1);
}

/* ---- results ---- */

static const struct result_case {
    int code, fail_code; /* what is returned; what fail() was given (0: not used) */
    int wanted;
    const char *message;
} result_cases[] = {
    {0, 0, 0, NULL},
    {0, SG_E_LIMIT, 0, NULL},
    {SG_E_GONE_BEFORE, SG_E_GONE_BEFORE, SG_E_GONE_BEFORE, "fake (one): told"},
    {SG_E_LIMIT, 0, SG_E_INTERNAL, "fake (one): 'run' returned LIMIT and gave no message"},
    {SG_E_LIMIT, SG_E_DENIED, SG_E_INTERNAL,
     "fake (one): 'run' returned LIMIT and gave no message"},
    {SG_E_TIMEOUT, 0, SG_E_TIMEOUT, "fake (one): 'run' ended: time is up"},
    {SG_E_CANCELLED, SG_E_CANCELLED, SG_E_INTERNAL,
     "fake (one): 'run' returned CANCELLED, but nobody cancelled it"},
    {12, 0, SG_E_INTERNAL, "fake (one): 'run' returned 12, which is no code"},
    {-1, 0, SG_E_INTERNAL, "fake (one): 'run' returned -1, which is no code"},
};

static int return_case(const struct instance *i, struct sg_call *call, void *arguments,
                       struct sg_error *err)
{
    const struct result_case *wanted = arguments;
    (void)i, (void)call;
    if (wanted->fail_code != 0) {
        CU_ASSERT_EQUAL(host->fail(err, (enum sg_code)wanted->fail_code, "%s", "told"),
                        wanted->fail_code);
    }
    return wanted->code;
}

static void try_results(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < COUNT_OF(result_cases); i++) {
        struct sg_error err = {0};
        struct result_case wanted = result_cases[i];
        CU_ASSERT_EQUAL(call_run(call_of("run"), return_case, &wanted, NULL, &err), wanted.wanted);
        CU_ASSERT_EQUAL(err.code, wanted.wanted);
        CU_ASSERT_STRING_EQUAL(err.message, wanted.message != NULL ? wanted.message : "");
    }
}

static void every_result_has_a_code_and_a_message(void)
{
    run_both(try_results);
}

static void same_names(void *arg)
{
    (void)arg;
    static const struct instance same = {.name = "fake", .plugin = &loop_plugin};
    struct sg_error err = {0};
    struct result_case wanted = result_cases[2];
    struct sg_call *call = call_new(&same, "run", &wanted, "req_7", DEADLINE_NONE);
    CU_ASSERT_PTR_EQUAL(call_instance(call), &same);
    CU_ASSERT_PTR_EQUAL(call_context(call), &wanted);
    CU_ASSERT_STRING_EQUAL(call_request_id(call), "req_7");
    CU_ASSERT_EQUAL(call_deadline(call), DEADLINE_NONE);
    CU_ASSERT_EQUAL(call_run(call, return_case, &wanted, NULL, &err), SG_E_GONE_BEFORE);
    CU_ASSERT_STRING_EQUAL(err.message, "fake: told");
}

static void equal_names_stand_once_in_a_message(void)
{
    run_once(&on_loop, same_names, 1);
}

static int emit_unknown(const struct instance *i, struct sg_call *call, void *arguments,
                        struct sg_error *err)
{
    (void)i, (void)arguments;
    CU_ASSERT_EQUAL(host->emit(call, (enum sg_out)0, "x", 1, err), SG_E_INTERNAL);
    return host->emit(call, (enum sg_out)12, "x", 1, err);
}

static void read_unknown(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(call_run(call_of("run"), emit_unknown, NULL, NULL, &err), SG_E_INTERNAL);
    CU_ASSERT_STRING_EQUAL(err.message, "fake (one): emit() of the unknown kind 12");
}

static void an_unknown_kind_of_output_is_refused(void)
{
    run_both(read_unknown);
}

static const struct test tests[] = {
    TEST(output_comes_in_order_and_the_result_last),
    TEST(a_reader_with_much_to_read_lets_others_run),
    TEST(a_full_queue_stops_the_plugin_until_it_is_read),
    TEST(an_output_larger_than_the_queue_waits_for_an_empty_one),
    TEST(cancelling_ends_a_plugin_that_waits_for_room),
    TEST(the_deadline_ends_a_plugin_that_waits_for_room),
    TEST(a_handle_is_not_lost_to_the_deadline),
    TEST(a_cancelled_caller_leaves_and_the_call_ends_by_itself),
    TEST(a_caller_without_time_leaves_too),
    TEST(a_sink_that_refuses_ends_the_call),
    TEST(a_caller_may_stop_reading_and_wait_for_the_end),
    TEST(what_nobody_waits_for_is_not_begun),
    TEST(a_full_pool_is_the_calls_result),
    TEST(every_result_has_a_code_and_a_message),
    TEST(equal_names_stand_once_in_a_message),
    TEST(an_unknown_kind_of_output_is_refused),
};

int main(int argc, char **argv)
{
    return run_tests("call", tests, COUNT_OF(tests), argc, argv);
}
