/* The metrics as text for Prometheus. */
#include "gateway/metrics_internal.h"
#include "gateway/upstream_state.h"

#include <inttypes.h>

static uint64_t sum(const struct metrics *m, size_t place)
{
    uint64_t total = 0;
    for (size_t i = 0; i < m->loops_count; i++) {
        total += atomic_load_explicit(&m->loops[i][place], memory_order_relaxed);
    }
    return total;
}

void metrics_put_label(struct buf *out, const char *label, const char *value)
{
    (void)buf_printf(out, "%s=\"", label); /* overflow shows in the buffer */
    for (; *value != '\0'; value++) {
        if (*value == '\n') {
            (void)buf_puts(out, "\\n");
        } else {
            (void)buf_puts(out, *value == '\\' || *value == '"' ? "\\" : "");
            (void)buf_putc(out, *value);
        }
    }
    (void)buf_putc(out, '"');
}

static const char *value_of(const struct metrics *m, enum dimension dimension, size_t at)
{
    if (dimension != DIM_UPSTREAM) {
        return m->dimensions[dimension].values[at];
    }
    return at < METRICS_UPSTREAMS_MAX ? upstream_state_at(m->upstreams, at)->name : "other";
}

/* Those that there are now: upstreams come with settings, and stay. */
static size_t values_count(const struct metrics *m, enum dimension dimension)
{
    size_t count = m->dimensions[dimension].count;
    size_t known = dimension == DIM_UPSTREAM ? upstream_states_count(m->upstreams) : count;
    return known < count ? known : count;
}

/* {a="x",b="y",le="0.1"}, or nothing. */
static void put_labels(const struct metrics *m, enum family family, size_t first, size_t second,
                       const char *le, struct buf *out)
{
    const enum dimension d[] = {metric_families[family].first, metric_families[family].second};
    const size_t at[] = {first, second};
    const char *before = "{";
    for (size_t i = 0; i < COUNT_OF(d); i++) {
        const char *label = m->dimensions[d[i]].label;
        if (label != NULL) {
            (void)buf_puts(out, before);
            metrics_put_label(out, label, value_of(m, d[i], at[i]));
            before = ",";
        }
    }
    if (le != NULL) {
        (void)buf_puts(out, before);
        metrics_put_label(out, "le", le);
        before = ",";
    }
    (void)buf_puts(out, before[0] == ',' ? "}" : "");
}

static void put_histogram(const struct metrics *m, enum family family, size_t first,
                          struct buf *out)
{
    const char *name = metric_families[family].name;
    size_t at = m->offsets[family] + first * HISTOGRAM;
    uint64_t below = 0;
    for (size_t i = 0; i <= BOUNDS; i++) {
        below += sum(m, at + i);
        (void)buf_printf(out, "%s_bucket", name);
        put_labels(m, family, first, 0, i < BOUNDS ? metric_bounds[i].text : "+Inf", out);
        (void)buf_printf(out, " %" PRIu64 "\n", below);
    }
    uint64_t us = sum(m, at + BOUNDS + 1);
    (void)buf_printf(out, "%s_sum", name);
    put_labels(m, family, first, 0, NULL, out);
    (void)buf_printf(out, " %" PRIu64 ".%06" PRIu64 "\n%s_count", us / 1000000, us % 1000000, name);
    put_labels(m, family, first, 0, NULL, out);
    (void)buf_printf(out, " %" PRIu64 "\n", below);
}

void metrics_put_head(struct buf *out, const char *name, const char *help, const char *type)
{
    (void)buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_family(const struct metrics *m, enum family family, struct buf *out)
{
    size_t firsts = values_count(m, metric_families[family].first);
    size_t seconds = m->dimensions[metric_families[family].second].count;
    bool is_histogram = metric_families[family].is_histogram;
    metrics_put_head(out, metric_families[family].name, metric_families[family].help,
                     is_histogram ? "histogram" : "counter");
    for (size_t i = 0; i < firsts; i++) {
        for (size_t k = 0; !is_histogram && k < seconds; k++) {
            (void)buf_puts(out, metric_families[family].name);
            put_labels(m, family, i, k, NULL, out);
            (void)buf_printf(out, " %" PRIu64 "\n", sum(m, m->offsets[family] + i * seconds + k));
        }
        if (is_histogram) {
            put_histogram(m, family, i, out);
        }
    }
}

static void put_one(struct buf *out, const char *type, const char *name, const char *help,
                    uint64_t value)
{
    metrics_put_head(out, name, help, type);
    (void)buf_printf(out, "%s %" PRIu64 "\n", name, value);
}

static void put_containers(const struct registry_stats *r, size_t max, struct buf *out)
{
    const struct {
        const char *state;
        size_t count;
    } states[] = {
        {"creating", r->creating}, {"ready", r->ready}, {"closing", r->closing}, {"lost", r->lost}};
    metrics_put_head(out, "sandgate_containers", "Containers by state; lost: cannot be deleted.",
                     "gauge");
    for (size_t i = 0; i < COUNT_OF(states); i++) {
        (void)buf_printf(out, "sandgate_containers{state=\"%s\"} %zu\n", states[i].state,
                         states[i].count);
    }
    put_one(out, "gauge", "sandgate_containers_max", "sessions.max_containers_total.", max);
    put_one(out, "gauge", "sandgate_sessions", "Sessions that have a container.", r->sessions);
    put_one(out, "gauge", "sandgate_leases", "Requests that hold a container.", r->leases);
    put_one(out, "counter", "sandgate_containers_created_total", "Containers made.", r->created);
    put_one(out, "counter", "sandgate_containers_destroyed_total", "Containers deleted.",
            r->destroyed);
    put_one(out, "counter", "sandgate_containers_replaced_total",
            "Dead containers that were replaced.", r->replaced);
    put_one(out, "counter", "sandgate_containers_evicted_total",
            "Sessions' containers deleted to make room.", r->evicted);
    put_one(out, "counter", "sandgate_containers_expired_total",
            "Containers deleted after their idle time.", r->expired);
    put_one(out, "counter", "sandgate_container_deletion_failures_total",
            "Attempts to delete a container that failed; each is repeated.", r->destroy_failures);
}

static void put_tls(const struct metrics_now *now, struct buf *out)
{
    put_head(out, "sandgate_tls_handshakes_total", "TLS handshakes that were good, by kind.",
             "counter");
    for (int i = 0; i < HTTP_HANDSHAKE_TIMEOUT; i++) {
        (void)buf_printf(out, "sandgate_tls_handshakes_total{kind=\"%s\"} %" PRIu64 "\n",
                         http_handshake_name((enum http_handshake)i), now->handshakes[i]);
    }
    put_head(out, "sandgate_tls_handshake_failures_total", "TLS handshakes that failed, by kind.",
             "counter");
    for (int i = HTTP_HANDSHAKE_TIMEOUT; i < HTTP_HANDSHAKE_COUNT; i++) {
        (void)buf_printf(out, "sandgate_tls_handshake_failures_total{kind=\"%s\"} %" PRIu64 "\n",
                         http_handshake_name((enum http_handshake)i), now->handshakes[i]);
    }
    put_head(out, "sandgate_tls_certificate_days",
             "Whole days until the certificate expires; below 0: it has.", "gauge");
    (void)buf_printf(out, "sandgate_tls_certificate_days %" PRId64 "\n", now->certificate_days);
}

static void put_circuits(const struct metrics *m, struct buf *out)
{
    size_t count = values_count(m, DIM_UPSTREAM);
    metrics_put_head(out, "sandgate_upstream_circuit_open",
                     "1 while requests with another place to go leave the upstream alone.",
                     "gauge");
    for (size_t i = 0; i < count && i < METRICS_UPSTREAMS_MAX; i++) {
        struct upstream_state *state = upstream_state_at(m->upstreams, i);
        (void)buf_puts(out, "sandgate_upstream_circuit_open{");
        metrics_put_label(out, "upstream", state->name);
        (void)buf_printf(out, "} %d\n", circuit_look(&state->circuit).is_open);
    }
}

static void put_process(const struct metrics *m, const struct metrics_now *now, struct buf *out)
{
    put_one(out, "gauge", "sandgate_connections", "Open connections of clients.", now->connections);
    put_one(out, "gauge", "sandgate_requests_in_progress", "Requests being answered.",
            now->requests);
    put_one(out, "gauge", "sandgate_descriptors_used",
            "Descriptors given out, as admission counts them.", now->descriptors);
    put_one(out, "gauge", "sandgate_descriptors_max",
            "Descriptors that may be given out; near it clients get 503.", now->descriptors_max);
    put_one(out, "gauge", "sandgate_worker_tasks", "Calls on worker threads, running or waiting.",
            now->worker_tasks);
    put_one(out, "gauge", "sandgate_worker_threads_max", "server.workers.",
            now->worker_threads_max);
    put_one(out, "counter", "sandgate_calls_abandoned_total",
            "Calls of plugins that did not return in time and were left behind.",
            now->calls_abandoned);
    put_one(out, "gauge", "sandgate_memory_held_bytes",
            "Held for requests, as admission counts it.", now->memory_bytes);
    put_one(out, "gauge", "sandgate_memory_budget_bytes",
            "server.memory_budget; beyond it clients get 503.", now->memory_budget);
    put_one(out, "gauge", "sandgate_loops", "Event loops.", now->loops);
    put_one(out, "gauge", "sandgate_draining", "1 while the gateway finishes.", now->is_draining);
    metrics_put_head(out, "process_cpu_seconds_total", "CPU time, user and system.", "counter");
    (void)buf_printf(out, "process_cpu_seconds_total %" PRIu64 ".%06" PRIu64 "\n",
                     now->cpu_us / 1000000, now->cpu_us % 1000000);
    put_one(out, "gauge", "process_resident_memory_bytes", "Memory in use.", now->resident_bytes);
    put_one(out, "gauge", "process_start_time_seconds", "Start, in seconds since 1970.",
            (uint64_t)m->began_unix_s);
}

void metrics_put(struct metrics *m, const struct metrics_now *now, struct buf *out)
{
    for (size_t i = 0; i < FAMILY_COUNT; i++) {
        put_family(m, (enum family)i, out);
    }
    put_containers(&now->registry, now->containers_max, out);
    if (now->has_tls) {
        put_tls(now, out);
    }
    put_circuits(m, out);
    put_process(m, now, out);
}
