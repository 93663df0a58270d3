/* What the tests of plugin calls share: an instance on the loop and one on workers, a fiber that calls them, and a
 * scripted stand-in for http/fetch.h. A "plugin" here is a call_invoke function that uses the host's table. */
#ifndef TESTS_UNIT_CALL_FIXTURE_H
#define TESTS_UNIT_CALL_FIXTURE_H

#include "base/limits.h"
#include "http/fetch.h"
#include "loop/worker.h"
#include "loop_fixture.h"
#include "plugin/call_internal.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static const struct sg_host *host;
static const struct sg_plugin loop_plugin = {.name = "fake", .flags = SG_ON_LOOP};
static const struct sg_plugin worker_plugin = {.name = "fake"};
static const struct instance on_loop = {.name = "one", .plugin = &loop_plugin};
static const struct instance on_worker = {.name = "one", .plugin = &worker_plugin};
static const struct instance *instance; /* of the two, the one that is tested now */
static struct worker_pool *pool;

static inline bool tests_worker(void)
{
    return instance == &on_worker;
}

static inline struct sg_call *call_of(const char *operation)
{
    return call_new(instance, operation, NULL, "req_1", DEADLINE_NONE);
}

/* On a machine that is busy a short time may be over before the call began: then it is tried with a longer one. */
static inline bool was_begun(struct sg_call *call, int64_t *ms)
{
    struct sg_error err = {0};
    (void)call_result(call, &err); /* only the message matters here */
    *ms *= 4;
    return strstr(err.message, "before it could begin") == NULL;
}

/* Runs a call whose time ends while the plugin's code runs. */
static inline int run_out_of(call_invoke *plugin, struct sg_error *err)
{
    bool is_begun = false;
    int code = 0;
    for (int64_t ms = 5; !is_begun;) {
        struct sg_call *call = call_new(instance, "call", NULL, "req_1", deadline_in(ms));
        code = call_run(call_ref(call), plugin, NULL, NULL, err);
        is_begun = was_begun(call, &ms);
        call_unref(call);
    }
    return code;
}

/* Until no worker has anything left to do. */
static void wait_for_workers(void *arg)
{
    (void)arg;
    while (loop_fibers(loop) > 2 || worker_pool_busy(pool) > 0) {
        fiber_yield();
        (void)sched_yield();
    }
}

static void run_once(const struct instance *tested, void (*fiber)(void *), size_t threads)
{
    struct sg_error err = {0};
    instance = tested;
    host = host_table();
    CU_ASSERT_EQUAL_FATAL(worker_pool_new(threads, 4, &pool, &err), 0);
    begin_with(pool);
    start("caller", fiber, NULL);
    start("workers", wait_for_workers, NULL);
    run_to_end();
    worker_pool_free(pool);
    end();
}

/* Runs the test's fiber twice: with the plugin on the loop, then on a worker. */
static inline void run_both(void (*fiber)(void *))
{
    run_once(&on_loop, fiber, 2);
    run_once(&on_worker, fiber, 2);
}

/* Looks under the call's lock. */
static inline bool producer_waits(struct sg_call *call)
{
    lock_take(call->lock);
    bool waits = call->producer_waits;
    lock_release(call->lock);
    return waits;
}

static inline void await_full_queue(struct sg_call *call)
{
    while (!producer_waits(call)) {
        fiber_yield();
        (void)sched_yield();
    }
}

/* ---- fetch: what the script says ---- */

static struct fetch_script {
    int start_code, status;
    const struct fetch_field *fields;
    size_t fields_count;
    const char *const *pieces; /* ended by NULL */
    int end_code;              /* behind the pieces */
    int silences;              /* time-outs of the fiber before the head and before each piece */
    /* what was seen */
    char url[128], method[16], header[128], body[128];
    char ca_file[32];
    int64_t first_byte_ms, silence_ms, deadline;
    bool has_body;
    int begun, ended;
} fetch_script;

struct fetch {
    size_t next;
    int silences;
    bool has_head;
};

/* As the real one: silent until the fiber's deadline, so often as the script says. */
static int stay_silent(struct fetch *fetch, struct sg_error *err)
{
    if (fetch->silences == fetch_script.silences) {
        fetch->silences = 0;
        return 0;
    }
    fetch->silences++;
    return error_set(err, fiber_park(fiber_deadline(fiber_self())), "silence");
}

int fetch_start(const struct fetch_request *request, struct arena *arena, struct fetch **ret,
                struct sg_error *err)
{
    struct fetch_script *s = &fetch_script;
    CU_ASSERT_PTR_EQUAL(loop_self(), loop);
    CU_ASSERT_PTR_NOT_NULL(fiber_self());
    CU_ASSERT_PTR_NOT_NULL_FATAL(err); /* the real one looks into it */
    CU_ASSERT_TRUE(request->is_once);
    if (s->start_code != 0) {
        return error_set(err, s->start_code, "nobody there");
    }
    (void)snprintf(s->url, sizeof s->url, "%s", request->url);
    (void)snprintf(s->method, sizeof s->method, "%s", request->method ? request->method : "-");
    (void)snprintf(s->body, sizeof s->body, "%.*s", (int)request->body.len, request->body.data);
    if (request->fields_count > 0) {
        (void)snprintf(s->header, sizeof s->header, "%.*s=%.*s", (int)request->fields[0].name.len,
                       request->fields[0].name.data, (int)request->fields[0].value.len,
                       request->fields[0].value.data);
    }
    (void)snprintf(s->ca_file, sizeof s->ca_file, "%s", request->ca_file ? request->ca_file : "-");
    s->first_byte_ms = request->first_byte_ms;
    s->silence_ms = request->silence_ms;
    s->deadline = request->deadline;
    s->has_body = request->has_body;
    s->begun++;
    *ret = arena_get(arena, sizeof **ret);
    return 0;
}

int fetch_head(struct fetch *fetch, struct fetch_reply *ret, struct sg_error *err)
{
    int code = stay_silent(fetch, err);
    if (code == 0) {
        fetch->has_head = true;
        *ret = (struct fetch_reply){fetch_script.status, fetch_script.fields,
                                    fetch_script.fields_count};
    }
    return code;
}

int fetch_read(struct fetch *fetch, struct str *ret_data, struct sg_error *err)
{
    const char *piece = fetch_script.pieces[fetch->next];
    fiber_yield();
    int code = stay_silent(fetch, err);
    if (code != 0) {
        return code;
    }
    if (piece == NULL && fetch_script.end_code != 0) {
        return error_set(err, fetch_script.end_code, "the answer was cut");
    }
    fetch->next += piece != NULL;
    *ret_data = str_of(piece);
    return 0;
}

enum fetch_stage fetch_stage(const struct fetch *fetch)
{
    return fetch == NULL ? FETCH_RESOLVING : fetch->has_head ? FETCH_ANSWERED : FETCH_SENT;
}

void fetch_end(struct fetch *fetch)
{
    fetch_script.ended += fetch != NULL;
}

#endif
