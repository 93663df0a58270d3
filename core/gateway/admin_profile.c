/* GET /admin/profile: where time and memory go. Each loop is asked by a task of its own, which tells how late it came, how
 * much processor its thread has used, and how many fibers it has; with ?seconds=N it is asked again after so long, and the
 * difference tells how busy it was meanwhile. Where the gateway ends before, that is when. */
#include "gateway/request.h"

#include "base/check.h"
#include "base/clock.h"
#include "gateway/query.h"
#include "http/admission.h"
#include "session/records.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <time.h>

enum { SECONDS_MAX = 60, LOOK_AGAIN_MS = 50 }; /* whether the gateway is to end */

struct probe {             /* of one loop */
    struct loop_task task; /* first: there and back again */
    struct loop *loop, *home;
    struct fiber *waiter; /* at home */
    bool is_back;
    int64_t posted_us, late_us;
    int64_t cpu_us;
    size_t fibers;
};

static int64_t thread_cpu_us(void)
{
    struct timespec used;
    CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) == 0);
    return (int64_t)used.tv_sec * 1000000 + used.tv_nsec / 1000;
}

static void probe_back(struct loop_task *task)
{
    struct probe *probe = (struct probe *)task;
    probe->is_back = true;
    fiber_wake(probe->waiter);
}

static void probe_there(struct loop_task *task)
{
    struct probe *probe = (struct probe *)task;
    probe->late_us = clock_us() - probe->posted_us;
    probe->cpu_us = thread_cpu_us();
    probe->fibers = loop_fibers(probe->loop);
    probe->task.run = probe_back;
    loop_post(probe->home, &probe->task);
}

/* All loops at once. Waits for the slowest, whoever leaves meanwhile: the probes are on this stack's behalf. */
static void probe_all(const struct gateway *gateway, struct probe *probes)
{
    size_t back = 0;
    for (size_t i = 0; i < gateway->loops_count; i++) {
        probes[i] = (struct probe){.task = {.run = probe_there},
                                   .loop = gateway->loops[i],
                                   .home = loop_self(),
                                   .waiter = fiber_self(),
                                   .posted_us = clock_us()};
        loop_post(probes[i].loop, &probes[i].task);
    }
    fiber_shield();
    while (back < gateway->loops_count) {
        (void)fiber_park(DEADLINE_NONE); /* the count decides */
        back = 0;
        for (size_t i = 0; i < gateway->loops_count; i++) {
            back += probes[i].is_back;
        }
    }
    fiber_unshield();
}

struct sample {
    struct probe *probes;
    int64_t at_us;
};

static struct sample sample_take(struct request *r)
{
    struct sample sample = {
        .probes = arena_get(r->arena, r->gateway->loops_count * sizeof *sample.probes)};
    probe_all(r->gateway, sample.probes);
    sample.at_us = clock_us();
    return sample;
}

/* ---- what is told ---- */

static void put_loops(const struct request *r, const struct sample *before,
                      const struct sample *after, struct buf *out)
{
    (void)buf_puts(out, "\"loops\":["); /* overflow shows in the buffer */
    for (size_t i = 0; i < r->gateway->loops_count; i++) {
        const struct probe *probe = &after->probes[i];
        (void)buf_printf(
            out, "%s{\"loop\":%zu,\"fibers\":%zu,\"late_us\":%" PRId64 ",\"cpu_us\":%" PRId64,
            i == 0 ? "" : ",", i, probe->fibers, probe->late_us, probe->cpu_us);
        if (before != NULL) {
            int64_t used = probe->cpu_us - before->probes[i].cpu_us;
            int64_t passed = after->at_us - before->at_us;
            (void)buf_printf(out, ",\"busy\":%.3f",
                             (double)used / (double)(passed > 0 ? passed : 1));
        }
        (void)buf_puts(out, "}");
    }
    (void)buf_puts(out, "]");
}

static void put_records(const char *name, struct records *records, struct buf *out)
{
    struct records_stats stats;
    records_stats(records, &stats);
    (void)buf_printf(out, ",\"%s\":{\"records\":%zu,\"bytes\":%zu,\"keys\":%zu}", name, stats.count,
                     stats.bytes, stats.identities);
}

static void put_memory(const struct request *r, struct buf *out)
{
    const struct gateway *gateway = r->gateway;
    struct mallinfo2 heap = mallinfo2();
    (void)buf_printf(out,
                     ",\"memory\":{\"resident_bytes\":%" PRIu64 ",\"requests_bytes\":%" PRIu64
                     ",\"requests_budget_bytes\":%" PRIu64
                     ",\"heap_used_bytes\":%zu,\"heap_free_bytes\":%zu,\"mapped_bytes\":%zu",
                     process_resident_bytes(), admission_bytes(), admission_budget(), heap.uordblks,
                     heap.fordblks, heap.hblkhd);
    put_records("chat", gateway->records, out);
    put_records("responses", gateway->responses, out);
    put_records("relayed", gateway->relayed, out);
    (void)buf_puts(out, "}");
}

static void put_pools(const struct request *r, struct buf *out)
{
    const struct gateway *gateway = r->gateway;
    struct registry_stats stats;
    registry_stats(gateway->registry, &stats);
    (void)buf_printf(out,
                     ",\"workers\":{\"busy\":%zu,\"most\":%" PRId64
                     "},\"descriptors\":{\"taken\":%zu,\"most\":%zu}"
                     ",\"http\":{\"connections\":%zu,\"requests\":%zu}",
                     worker_pool_busy(gateway->pool), gateway->config->server.workers,
                     admission_used(), admission_limit(), http_server_connections(gateway->server),
                     http_server_busy(gateway->server));
    (void)buf_printf(out,
                     ",\"containers\":{\"creating\":%zu,\"ready\":%zu,\"closing\":%zu,"
                     "\"lost\":%zu,\"leases\":%zu,\"sessions\":%zu}",
                     stats.creating, stats.ready, stats.closing, stats.lost, stats.leases,
                     stats.sessions);
}

/* ---- the request ---- */

static void seconds_take(void *ctx, struct str name, struct str value)
{
    int64_t *seconds = ctx;
    *seconds = str_is(name, "seconds") ? query_number(value) : -1;
}

/* Waits for so long, or until the gateway is to end, which it does not hold; *seconds is what was waited. */
static int look_on(const struct request *r, int64_t *seconds)
{
    int64_t wanted_ms = *seconds * 1000, passed_ms = 0, began = clock_ms();
    int rc = 0;
    while (rc == 0 && passed_ms < wanted_ms && !atomic_load(&r->gateway->is_draining)) {
        int64_t left_ms = wanted_ms - passed_ms;
        rc = fiber_sleep(left_ms < LOOK_AGAIN_MS ? left_ms : LOOK_AGAIN_MS);
        passed_ms = clock_ms() - began;
    }
    *seconds = (passed_ms < wanted_ms ? passed_ms : wanted_ms) / 1000;
    return rc;
}

int admin_profile_answer(struct request *r, struct sg_error *err)
{
    BUF_CLEANUP struct buf out = {0};
    int64_t seconds = 0;
    query_walk(http_request_head(r->exchange)->query, r->arena, seconds_take, &seconds);
    if (seconds < 0 || seconds > SECONDS_MAX) {
        return error_set(err, SG_E_INVALID, "The query may have seconds, 0 to %d.", SECONDS_MAX);
    }
    struct sample before = {0}, after;
    if (seconds > 0) {
        before = sample_take(r);
        int rc = look_on(r, &seconds);
        if (rc != 0) {
            return error_set(err, rc, "left while the loops were looked at");
        }
    }
    after = sample_take(r);
    (void)buf_printf(&out, "{\"object\":\"profile\",\"seconds\":%" PRId64 ",", seconds);
    put_loops(r, before.probes != NULL ? &before : NULL, &after, &out);
    put_memory(r, &out);
    put_pools(r, &out);
    (void)buf_puts(&out, "}");
    return answer_json(r, 200, buf_str(&out), err);
}
