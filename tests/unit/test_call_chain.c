/* core/plugin/call_cross.c: calls of worker plugins in which the core calls other worker plugins. The worker that sleeps
 * carries them out, so a chain takes one thread and the pool never waits for itself. */
#include "call_fixture.h"

#include <stdatomic.h>
#include <unistd.h>

enum { CHAINS = 40, OUTPUTS = 50 };

static pthread_t outer_thread;
static atomic_int seen; /* events that the outermost sink was shown */
static int depth_wanted;

/* ---- one chain ---- */

/* Each output has been dealt with when emit() returns, on this very thread. */
static int inner_emits(const struct instance *i, struct sg_call *call, void *arguments,
                       struct sg_error *err)
{
    (void)i, (void)arguments;
    CU_ASSERT(pthread_equal(pthread_self(), outer_thread));
    for (int k = 0; k < OUTPUTS; k++) {
        int code = host->emit(call, SG_OUT_LOG_OUT, &k, sizeof k, err);
        if (code != 0) {
            return code;
        }
        CU_ASSERT_EQUAL(atomic_load(&seen), k + 1);
    }
    return host->fail(err, SG_E_LIMIT, "that was all");
}

static int call_inner(struct sg_call *call, const struct sg_run *run, const struct sg_sink *sink,
                      struct sg_error *err)
{
    (void)call, (void)run;
    CU_ASSERT_PTR_EQUAL(loop_self(), loop);
    return call_run(call_of("run"), inner_emits, NULL, sink, err);
}

static int see_event(void *ctx, enum sg_out kind, const void *data, size_t len,
                     struct sg_error *err)
{
    int number = -1;
    (void)err;
    CU_ASSERT(kind == SG_OUT_LOG_OUT && len == sizeof number);
    memcpy(&number, data, sizeof number);
    CU_ASSERT_EQUAL(number, atomic_fetch_add(&seen, 1));
    CU_ASSERT(pthread_equal(pthread_self(), outer_thread));
    return *(int *)ctx == number ? host->fail(err, SG_E_DENIED, "not this one") : 0;
}

static int outer_runs(const struct instance *i, struct sg_call *call, void *arguments,
                      struct sg_error *err)
{
    (void)i;
    struct sg_run run = {.code = "x", .code_len = 1};
    struct sg_sink sink = {see_event, arguments};
    outer_thread = pthread_self();
    atomic_store(&seen, 0);
    return host->run_code(call, &run, &sink, err);
}

static void run_chain(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    int refused = -1;
    CU_ASSERT_EQUAL(call_run(call_of("call"), outer_runs, &refused, NULL, &err), SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(err.message, "fake (one): fake (one): that was all");
    CU_ASSERT_EQUAL(atomic_load(&seen), OUTPUTS);
    refused = 7; /* the worker comes back from the inner call, which is told so */
    CU_ASSERT_EQUAL(call_run(call_of("call"), outer_runs, &refused, NULL, &err), SG_E_DENIED);
    CU_ASSERT_STRING_EQUAL(err.message, "fake (one): not this one");
    CU_ASSERT_EQUAL(atomic_load(&seen), 8);
}

static void the_sleeping_worker_carries_out_the_inner_call(void)
{
    core_services_set(&(struct core_services){.run_code = call_inner});
    run_once(&on_worker, run_chain, 1);
}

/* ---- a chain of many ---- */

static int descend(const struct instance *i, struct sg_call *call, void *arguments,
                   struct sg_error *err);

static int pass_down(void *ctx, enum sg_out kind, const void *data, size_t len,
                     struct sg_error *err)
{
    return host->emit(ctx, kind, data, len, err);
}

static int call_deeper(struct sg_call *call, const struct sg_run *run, const struct sg_sink *sink,
                       struct sg_error *err)
{
    (void)call;
    struct sg_call *inner = call_of("run");
    int *depth = arena_get(call_arena(inner), sizeof *depth);
    *depth = (int)run->code_len;
    return call_run(inner, descend, depth, sink, err);
}

/* Goes one call deeper, then says how deep it is; what is said below is passed on. */
static int descend(const struct instance *i, struct sg_call *call, void *arguments,
                   struct sg_error *err)
{
    (void)i;
    int depth = *(int *)arguments, code = 0;
    struct sg_run run = {.code = "", .code_len = (size_t)depth + 1};
    struct sg_sink sink = {pass_down, call};
    CU_ASSERT(pthread_equal(pthread_self(), outer_thread));
    if (depth < depth_wanted) {
        code = host->run_code(call, &run, &sink, err);
    }
    char text = (char)('0' + depth);
    return code != 0 ? code : host->emit(call, SG_OUT_LOG_OUT, &text, 1, err);
}

static int descend_first(const struct instance *i, struct sg_call *call, void *arguments,
                         struct sg_error *err)
{
    outer_thread = pthread_self();
    return descend(i, call, arguments, err);
}

static int collect(void *ctx, enum sg_out kind, const void *data, size_t len, struct sg_error *err)
{
    (void)kind, (void)err;
    return buf_append(ctx, data, len) ? 0 : SG_E_LIMIT;
}

static void run_deep(void *arg)
{
    (void)arg;
    BUF_CLEANUP struct buf text = {0};
    struct sg_sink sink = {collect, &text};
    struct sg_error err = {0};
    int depth = 0;
    depth_wanted = 5;
    CU_ASSERT_EQUAL(call_run(call_of("call"), descend_first, &depth, &sink, &err), 0);
    CU_ASSERT_STRING_EQUAL(text.data, "543210");
}

static void a_chain_of_six_takes_one_thread(void)
{
    core_services_set(&(struct core_services){.run_code = call_deeper});
    run_once(&on_worker, run_deep, 1);
}

/* ---- a pool full of chains ---- */

static atomic_int chains_done;

static int emit_once(const struct instance *i, struct sg_call *call, void *arguments,
                     struct sg_error *err)
{
    (void)i, (void)arguments;
    return host->emit(call, SG_OUT_LOG_OUT, "x", 1, err);
}

/* Two at once: the sleeping worker has the first, the second needs a thread of the pool. */
static int call_two(struct sg_call *call, const struct sg_run *run, const struct sg_sink *sink,
                    struct sg_error *err)
{
    (void)call, (void)run;
    struct sg_call *calls[] = {call_of("run"), call_of("run")};
    struct call_output output;
    int code = 0;
    for (size_t i = 0; i < 2; i++) {
        call_start(calls[i], emit_once, NULL);
    }
    for (size_t i = 0; i < 2; i++) {
        while (code == 0 && call_next(calls[i], &output) == 1) {
            code = sink->event(sink->ctx, output.kind, output.data.data, output.data.len, err);
        }
        code = code == 0 ? call_result(calls[i], err) : code;
        call_unref(calls[i]);
    }
    return code;
}

static int count_event(void *ctx, enum sg_out kind, const void *data, size_t len,
                       struct sg_error *err)
{
    (void)kind, (void)data, (void)len, (void)err;
    (*(int *)ctx)++;
    return 0;
}

static int run_two(const struct instance *i, struct sg_call *call, void *arguments,
                   struct sg_error *err)
{
    (void)i, (void)arguments;
    int events = 0;
    struct sg_run run = {.code = "", .code_len = 0};
    struct sg_sink sink = {count_event, &events};
    int code = host->run_code(call, &run, &sink, err);
    CU_ASSERT_EQUAL(events, 2);
    atomic_fetch_add(&chains_done, 1);
    return code;
}

static void one_chain(void *arg)
{
    struct sg_error err = {0};
    struct sg_call *call = call_new(&on_worker, "call", arg, NULL, DEADLINE_NONE);
    CU_ASSERT_EQUAL(call_run(call, run_two, NULL, NULL, &err), 0);
}

static void a_pool_full_of_chains_does_not_wait_for_itself(void)
{
    struct sg_error err = {0};
    int context = 0;
    host = host_table();
    instance = &on_worker;
    atomic_store(&chains_done, 0);
    core_services_set(&(struct core_services){.run_code = call_two});
    CU_ASSERT_EQUAL_FATAL(worker_pool_new(2, 2 * CHAINS, &pool, &err), 0);
    begin_with(pool);
    for (int i = 0; i < CHAINS; i++) {
        start("chain", one_chain, &context);
    }
    run_to_end();
    worker_pool_free(pool);
    end();
    CU_ASSERT_EQUAL(atomic_load(&chains_done), CHAINS);
}

/* ---- events while the inner call does something else ---- */

static int sleep_until_cancelled(const struct instance *i, struct sg_call *call, void *arguments,
                                 struct sg_error *err)
{
    (void)i, (void)arguments;
    int code = host->emit(call, SG_OUT_LOG_OUT, "begun", 5, err);
    return code != 0 ? code : host->sleep(call, 1000000, err);
}

static int wait_until_cancelled(const struct instance *i, struct sg_call *call, void *arguments,
                                struct sg_error *err)
{
    int events = 0, fd = *(int *)arguments;
    (void)i;
    int code = host->emit(call, SG_OUT_LOG_OUT, "begun", 5, err);
    return code != 0 ? code : host->wait_fd(call, fd, SG_READ, -1, &events, err);
}

/* Shows events of its own while the inner call sleeps on the thread on which they must be seen. */
static int tell_meanwhile(struct sg_call *call, const struct sg_run *run,
                          const struct sg_sink *sink, struct sg_error *err)
{
    (void)call;
    struct sg_call *inner = call_of("run");
    struct call_output output;
    int fds[2];
    CU_ASSERT_EQUAL_FATAL(pipe(fds), 0);
    bool sleeps = run->code_len == 0;
    call_start(inner, sleeps ? sleep_until_cancelled : wait_until_cancelled, &fds[0]);
    CU_ASSERT_EQUAL(call_next(inner, &output), 1);
    int code = sink->event(sink->ctx, SG_OUT_LOG_OUT, "one ", 4, err);
    code = code != 0 ? code : sink->event(sink->ctx, SG_OUT_LOG_OUT, "two", 3, err);
    CU_ASSERT_FALSE(call_has_ended(inner));
    call_cancel(inner);
    call_wait_end(inner);
    CU_ASSERT_EQUAL(call_result(inner, err), SG_E_CANCELLED);
    call_unref(inner);
    close(fds[0]);
    close(fds[1]);
    return code;
}

static int listen_meanwhile(const struct instance *i, struct sg_call *call, void *arguments,
                            struct sg_error *err)
{
    BUF_CLEANUP struct buf text = {0};
    struct sg_run run = {.code = "", .code_len = *(size_t *)arguments};
    struct sg_sink sink = {collect, &text};
    (void)i;
    int code = host->run_code(call, &run, &sink, err);
    CU_ASSERT_STRING_EQUAL(text.data, "one two");
    return code;
}

static void run_meanwhile(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    for (size_t how = 0; how < 2; how++) {
        CU_ASSERT_EQUAL(call_run(call_of("call"), listen_meanwhile, &how, NULL, &err), 0);
    }
}

static void a_lent_worker_that_waits_still_serves_its_own_sink(void)
{
    core_services_set(&(struct core_services){.run_code = tell_meanwhile});
    run_once(&on_worker, run_meanwhile, 1);
}

/* ---- a sink that asks for more ---- */

static int search_in_sink(void *ctx, enum sg_out kind, const void *data, size_t len,
                          struct sg_error *err)
{
    struct sg_query query = {.text = "deeper"};
    struct sg_call *call = ctx;
    (void)kind, (void)data, (void)len;
    return host->search(call, &query, NULL, err);
}

static int search_inner(struct sg_call *call, const struct sg_query *query,
                        const struct sg_sink *sink, struct sg_error *err)
{
    (void)call;
    CU_ASSERT_STRING_EQUAL(query->text, "deeper");
    return call_run(call_of("search"), emit_once, NULL, sink, err);
}

static int run_and_search(const struct instance *i, struct sg_call *call, void *arguments,
                          struct sg_error *err)
{
    (void)i, (void)arguments;
    struct sg_run run = {.code = "", .code_len = 0};
    struct sg_sink sink = {search_in_sink, call};
    return host->run_code(call, &run, &sink, err);
}

static int emit_and_end(struct sg_call *call, const struct sg_run *run, const struct sg_sink *sink,
                        struct sg_error *err)
{
    (void)call, (void)run;
    return call_run(call_of("run"), emit_once, NULL, sink, err);
}

static void run_nested(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(call_run(call_of("call"), run_and_search, NULL, NULL, &err), 0);
}

static void a_sink_may_cross_once_more(void)
{
    core_services_set(&(struct core_services){.run_code = emit_and_end, .search = search_inner});
    run_both(run_nested);
}

static const struct test tests[] = {
    TEST(the_sleeping_worker_carries_out_the_inner_call),
    TEST(a_chain_of_six_takes_one_thread),
    TEST(a_pool_full_of_chains_does_not_wait_for_itself),
    TEST(a_lent_worker_that_waits_still_serves_its_own_sink),
    TEST(a_sink_may_cross_once_more),
};

int main(int argc, char **argv)
{
    return run_tests("call_chain", tests, COUNT_OF(tests), argc, argv);
}
