/* What a call of a plugin costs, in µs of wall and of processor time for each: with the plugin in a fiber of the loop and on a worker
 * thread, empty, with one output, and with one event of the core's part in between. Prints; judges nothing. */
#include "base/check.h"
#include "loop/worker.h"
#include "plugin/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const struct sg_host *host;
static long rounds;

static int return_zero(const struct instance *instance, struct sg_call *call, void *arguments,
                       struct sg_error *err)
{
    (void)instance, (void)call, (void)arguments, (void)err;
    return 0;
}

static int emit_one(const struct instance *instance, struct sg_call *call, void *arguments,
                    struct sg_error *err)
{
    (void)instance, (void)arguments;
    return host->emit(call, SG_OUT_LOG_OUT, "hello, world\n", 13, err);
}

static int emit_hundred(const struct instance *instance, struct sg_call *call, void *arguments,
                        struct sg_error *err)
{
    int code = 0;
    for (int i = 0; code == 0 && i < 100; i++) {
        code = emit_one(instance, call, arguments, err);
    }
    return code;
}

static int take(void *ctx, enum sg_out kind, const void *data, size_t len, struct sg_error *err)
{
    (void)kind, (void)data, (void)err;
    *(size_t *)ctx += len;
    return 0;
}

static int cross(const struct instance *instance, struct sg_call *call, void *arguments,
                 struct sg_error *err)
{
    (void)instance, (void)arguments;
    struct sg_run run = {.code = "1", .code_len = 1};
    size_t len = 0;
    struct sg_sink sink = {take, &len};
    return host->run_code(call, &run, &sink, err);
}

static int service(struct sg_call *call, const struct sg_run *run, const struct sg_sink *sink,
                   struct sg_error *err)
{
    (void)call;
    return sink->event(sink->ctx, SG_OUT_LOG_OUT, run->code, run->code_len, err);
}

/* ---- one instance on the loop, one on workers ---- */

static const struct sg_plugin loop_plugin = {.name = "bench", .flags = SG_ON_LOOP};
static const struct sg_plugin worker_plugin = {.name = "bench"};
static const struct instance on_loop = {.name = "loop", .plugin = &loop_plugin};
static const struct instance on_worker = {.name = "worker", .plugin = &worker_plugin};

/* The core's part is itself a call of a plugin on a worker. */
static int service_call(struct sg_call *call, const struct sg_run *run, const struct sg_sink *sink,
                        struct sg_error *err)
{
    (void)call, (void)run;
    struct sg_call *inner = call_new(&on_worker, "run", NULL, NULL, DEADLINE_NONE);
    return call_run(inner, emit_one, NULL, sink, err);
}

static void measure(const char *name, const struct instance *instance, call_invoke *plugin)
{
    size_t len = 0;
    struct sg_sink sink = {take, &len};
    struct sg_error err = {0};
    int64_t began = clock_us();
    clock_t cpu = clock(); /* of all threads */
    for (long i = 0; i < rounds; i++) {
        struct sg_call *call = call_new(instance, "run", NULL, "req_1", DEADLINE_NONE);
        CHECK(call_run(call, plugin, NULL, &sink, &err) == 0);
    }
    printf("%-28s %-6s %8.2f us wall %8.2f us cpu\n", name, instance->name,
           (double)(clock_us() - began) / (double)rounds,
           (double)(clock() - cpu) * 1e6 / CLOCKS_PER_SEC / (double)rounds);
}

static void measure_all(void *arg)
{
    (void)arg;
    const struct instance *instances[] = {&on_loop, &on_worker};
    for (size_t i = 0; i < COUNT_OF(instances); i++) {
        measure("empty", instances[i], return_zero);
        measure("one output", instances[i], emit_one);
        measure("a hundred outputs", instances[i], emit_hundred);
        core_services_set(&(struct core_services){.run_code = service});
        measure("service, one event", instances[i], cross);
        core_services_set(&(struct core_services){.run_code = service_call});
        measure("service that calls a worker", instances[i], cross);
    }
    loop_stop(loop_self());
}

int main(int argc, char **argv)
{
    struct sg_error err = {0};
    struct worker_pool *pool = NULL;
    struct loop *loop = NULL;
    rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 20000;
    host = host_table();
    CHECK(worker_pool_new(4, 16, &pool, &err) == 0);
    CHECK(loop_new(0, pool, &loop, &err) == 0);
    CHECK(fiber_start(loop, "bench", measure_all, NULL, NULL, &err) == 0);
    loop_run(loop);
    loop_free(loop);
    worker_pool_free(pool);
    return 0;
}
