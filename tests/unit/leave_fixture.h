/* What the tests of calls that do not return share: instances that count what was abandoned, and a gate at which the
 * plugins' threads stand. */
#ifndef TESTS_UNIT_LEAVE_FIXTURE_H
#define TESTS_UNIT_LEAVE_FIXTURE_H

#include "base/log.h"
#include "call_fixture.h"
#include "gate.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <unistd.h>

static _Atomic uint64_t abandoned;
static const struct instance stuck = {
    .name = "one", .plugin = &worker_plugin, .abandoned = &abandoned};
static const struct instance stuck_on_loop = {
    .name = "one", .plugin = &loop_plugin, .abandoned = &abandoned};
static atomic_int returned; /* plugin functions that came back */

static inline void run_stuck(void (*fiber)(void *), size_t threads)
{
    gate_close();
    atomic_store(&abandoned, 0);
    atomic_store(&returned, 0);
    run_once(&stuck, fiber, threads);
}

/* It is as if the call had been cancelled nearly ABANDON_AFTER_MS ago. */
static inline void cancel_long_ago(struct sg_call *call)
{
    call_cancel(call);
    CU_ASSERT_TRUE(call_is_cancelled(call));
    call->cancelled_at -= ABANDON_AFTER_MS - 10;
    if (call->watcher != NULL) {
        fiber_wake(call->watcher); /* it looks at the time again */
    }
}

/* Lets the workers come to the gate while the loop goes round. */
static inline void await_gate(size_t waiting)
{
    for (bool is_there = false; !is_there;) {
        fiber_yield();
        (void)sched_yield();
        lock_take(&gate_lock);
        is_there = gate_waiting >= waiting;
        lock_release(&gate_lock);
    }
}

static inline void await_return(int count)
{
    while (atomic_load(&returned) < count) {
        fiber_yield();
        (void)sched_yield();
    }
}

/* ---- the core, which nobody may reach any more ---- */

static bool service_ended;

/* Everything is refused at once. */
static inline void use_all(struct sg_call *call)
{
    struct sg_error err = {0};
    struct sg_run run = {.code = "", .code_len = 0};
    struct sg_query query = {.text = ""};
    struct sg_http_request request = {.url = "http://127.0.0.1/"};
    struct sg_http_reply reply = {0};
    struct sg_spawn spawn = {.path = "/bin/true"};
    struct sg_child child = {0};
    int number = 0;
    CU_ASSERT_EQUAL(host->emit(call, SG_OUT_DATA, "x", 1, &err), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(host->sleep(call, 1, &err), SG_E_CANCELLED);
    CU_ASSERT_STRING_EQUAL(err.message, "sleep() in 'run' ended: the call is cancelled");
    CU_ASSERT_EQUAL(host->run_code(call, &run, NULL, &err), SG_E_CANCELLED);
    CU_ASSERT_STRING_EQUAL(err.message, "run_code() in 'run' ended: the call is cancelled");
    CU_ASSERT_EQUAL(host->search(call, &query, NULL, &err), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(host->http(call, &request, &reply, NULL, &err), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(host->file_put(call, "a", "b", 1, &err), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(host->file_get(call, "a", NULL, &err), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(host->file_list(call, "a", NULL, &err), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(host->wait_fd(call, 0, SG_READ, -1, &number, &err), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(host->blocking(call, NULL, NULL, &err), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(host->spawn(call, &spawn, &child, &err), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(host->wait_child(call, &child, -1, &number, &err), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(host->time_left_ms(call), 0);
}

static inline int run_never(struct sg_call *call, const struct sg_run *run,
                            const struct sg_sink *sink, struct sg_error *err)
{
    (void)call, (void)run, (void)sink, (void)err;
    CU_FAIL("an abandoned call ran code");
    return 0;
}

static inline int put_never(struct sg_call *call, const char *path, const void *data, size_t len,
                            struct sg_error *err)
{
    (void)call, (void)path, (void)data, (void)len, (void)err;
    CU_FAIL("an abandoned call wrote a file");
    return 0;
}

static inline int get_never(struct sg_call *call, const char *path, const struct sg_sink *sink,
                            struct sg_error *err)
{
    (void)call, (void)path, (void)sink, (void)err;
    CU_FAIL("an abandoned call read files");
    return 0;
}

static inline int search_never(struct sg_call *call, const struct sg_query *query,
                               const struct sg_sink *sink, struct sg_error *err)
{
    (void)call, (void)query, (void)sink, (void)err;
    CU_FAIL("an abandoned call searched");
    return 0;
}

static const struct core_services never_services = {.run_code = run_never,
                                                    .file_put = put_never,
                                                    .file_get = get_never,
                                                    .file_list = get_never,
                                                    .search = search_never};

/* ---- what plugins do ---- */

static inline int block(const struct instance *i, struct sg_call *call, void *arguments,
                        struct sg_error *err)
{
    (void)i;
    int code = host->emit(call, SG_OUT_LOG_OUT, "begun", 5, err);
    gate_wait();
    use_all(call);
    atomic_fetch_add(&returned, 1);
    return arguments != NULL ? *(int *)arguments : code;
}

static inline int never(const struct instance *i, struct sg_call *call, void *arguments,
                        struct sg_error *err)
{
    (void)i, (void)call, (void)arguments, (void)err;
    CU_FAIL("it was taken back, and yet it ran");
    return 0;
}

static inline int block_there(void *arg)
{
    (void)arg;
    gate_wait();
    return 0;
}

/* Visits a worker and is cancelled before it gets there. */
static inline int visit_refused(const struct instance *i, struct sg_call *call, void *arguments,
                                struct sg_error *err)
{
    (void)i, (void)arguments;
    int code = host->blocking(call, block_there, NULL, err);
    CU_ASSERT_EQUAL(code, SG_E_CANCELLED);
    atomic_fetch_add(&returned, 1);
    return code;
}

#endif
