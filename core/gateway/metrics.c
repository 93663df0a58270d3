/* Families of metrics as a table; one array of numbers a loop, in which each family has its place. */
#include "gateway/metrics.h"

#include "base/check.h"
#include "base/clock.h"
#include "gateway/upstream_state.h"
#include "loop/loop.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

/* ---- what there is ---- */

enum dimension {
    DIM_NONE,
    DIM_ROUTE,
    DIM_STATUS,
    DIM_UPSTREAM,
    DIM_FAULT,
    DIM_INTERCEPTOR,
    DIM_CALL,
    DIM_SANDBOX,
    DIM_RUN,
    DIM_CODE,
    DIM_SEARCH,
    DIM_HIT,
    DIM_COUNT
};

enum family {
    REQUESTS,
    REQUEST_SECONDS,
    DISCONNECTS,
    BYTES_IN,
    BYTES_OUT,
    UPSTREAM_CALLS,
    TURNS,
    UPSTREAM_ERRORS,
    FIRST_BYTE_SECONDS,
    TOOL_CALLS,
    RUNS,
    RUN_SECONDS,
    SANDBOX_ERRORS,
    SEARCHES,
    SEARCHES_CACHED,
    SEARCH_SECONDS,
    SEARCH_HITS,
    FAMILY_COUNT
};

static const struct {
    const char *name, *help;
    bool is_histogram;
    enum dimension first, second;
} families[FAMILY_COUNT] = {
    [REQUESTS] = {"sandgate_requests_total", "Requests that have ended.", false, DIM_ROUTE,
                  DIM_STATUS},
    [REQUEST_SECONDS] = {"sandgate_request_duration_seconds",
                         "From the head of a request to the end of its answer.", true, DIM_ROUTE,
                         DIM_NONE},
    [DISCONNECTS] = {"sandgate_client_disconnects_total",
                     "Clients that left before their answer was complete.", false, DIM_NONE,
                     DIM_NONE},
    [BYTES_IN] = {"sandgate_request_body_bytes_total", "Bodies of requests.", false, DIM_NONE,
                  DIM_NONE},
    [BYTES_OUT] = {"sandgate_answer_body_bytes_total", "Bodies of answers.", false, DIM_NONE,
                   DIM_NONE},
    [UPSTREAM_CALLS] = {"sandgate_upstream_calls_total",
                        "Calls of an upstream, relayed requests and turns.", false, DIM_UPSTREAM,
                        DIM_NONE},
    [TURNS] = {"sandgate_turns_total", "Calls of an upstream with tools of ours.", false,
               DIM_UPSTREAM, DIM_NONE},
    [UPSTREAM_ERRORS] = {"sandgate_upstream_errors_total",
                         "Calls of an upstream that failed or were answered with an error.", false,
                         DIM_UPSTREAM, DIM_FAULT},
    [FIRST_BYTE_SECONDS] = {"sandgate_upstream_first_byte_seconds",
                            "From the call of an upstream to the head of its answer.", true,
                            DIM_UPSTREAM, DIM_NONE},
    [TOOL_CALLS] = {"sandgate_tool_calls_total",
                    "Calls of our tools by models; refused: over a limit.", false, DIM_INTERCEPTOR,
                    DIM_CALL},
    [RUNS] = {"sandgate_runs_total", "Runs of code; raised: by the code itself.", false,
              DIM_SANDBOX, DIM_RUN},
    [RUN_SECONDS] = {"sandgate_run_duration_seconds", "Runs of code, waiting for their turn in it.",
                     true, DIM_SANDBOX, DIM_NONE},
    [SANDBOX_ERRORS] = {"sandgate_sandbox_errors_total",
                        "Containers that could not be had and runs that failed, by cause.", false,
                        DIM_SANDBOX, DIM_CODE},
    [SEARCHES] = {"sandgate_searches_total",
                  "Searches that went to a provider; refused: over a limit.", false, DIM_SEARCH,
                  DIM_CALL},
    [SEARCHES_CACHED] = {"sandgate_searches_cached_total",
                         "Searches that were answered without asking the provider again.", false,
                         DIM_SEARCH, DIM_NONE},
    [SEARCH_SECONDS] = {"sandgate_search_duration_seconds", "Searches that went to a provider.",
                        true, DIM_SEARCH, DIM_NONE},
    [SEARCH_HITS] = {"sandgate_search_hits_total", "What became of the hits of providers.", false,
                     DIM_SEARCH, DIM_HIT},
};

static const char *const route_words[METRIC_ROUTE_COUNT] = {
    "chat", "responses", "messages", "relay", "models", "sessions", "health", "metrics", "none"};
static const char *const status_words[] = {"2xx", "3xx", "4xx", "5xx", "gone"};
static const char *const fault_words[METRIC_FAULT_COUNT] = {
    "unreachable", "timeout", "limited", "refused", "client_error", "server_error", "broken"};
static const char *const call_words[METRIC_CALL_COUNT] = {"completed", "failed", "refused"};
static const char *const hit_words[HIT_FATES] = {"passed", "malformed", "filtered", "duplicate",
                                                 "surplus"};
static const char *const run_words[METRIC_RUN_COUNT] = {"completed", "raised", "timeout",
                                                        "gone",      "failed", "cancelled"};
static const char *const code_words[] = {"other",     "invalid",     "denied",  "not_found",
                                         "limit",     "unavailable", "timeout", "internal",
                                         "cancelled", "config",      "gone",    "gone_before"};

static const struct {
    int64_t us;
    const char *text;
} bounds[] = {
    {1000, "0.001"},    {5000, "0.005"},    {10000, "0.01"},  {25000, "0.025"}, {50000, "0.05"},
    {100000, "0.1"},    {250000, "0.25"},   {500000, "0.5"},  {1000000, "1"},   {2500000, "2.5"},
    {5000000, "5"},     {10000000, "10"},   {30000000, "30"}, {60000000, "60"}, {120000000, "120"},
    {300000000, "300"}, {600000000, "600"},
};

enum { BOUNDS = COUNT_OF(bounds), HISTOGRAM = BOUNDS + 2 /* beyond all bounds, and the sum */ };

/* ---- where it stands ---- */

typedef _Atomic uint64_t number;

struct dimension_values {
    const char *label;
    const char *const *values;
    size_t count;
};

struct metrics {
    const struct config *config;
    struct upstream_states *upstreams;
    struct arena *arena;
    struct dimension_values dimensions[DIM_COUNT];
    size_t *interceptor_place; /* interceptors of one name share a series */
    size_t offsets[FAMILY_COUNT];
    size_t numbers_count, loops_count;
    number **loops; /* the numbers of each loop, in memory of its own */
    int64_t began_unix_s;
};

/* The names at the start of structs of a size. */
static struct dimension_values names_of(struct metrics *m, const char *label, const void *first,
                                        size_t count, size_t stride)
{
    const char **names = arena_get(m->arena, (count + 1) * sizeof *names);
    for (size_t i = 0; i < count; i++) {
        names[i] = *(const char *const *)((const char *)first + i * stride);
    }
    return (struct dimension_values){label, names, count};
}

static struct dimension_values interceptors_of(struct metrics *m)
{
    const struct config *config = m->config;
    size_t count = 0, all = config->interceptors_count;
    const char **names = arena_get(m->arena, (all + 1) * sizeof *names);
    m->interceptor_place = arena_get(m->arena, (all + 1) * sizeof *m->interceptor_place);
    for (size_t i = 0; i < all; i++) {
        size_t place = 0;
        while (place < count && strcmp(names[place], config->interceptors[i].name) != 0) {
            place++;
        }
        if (place == count) {
            names[count++] = config->interceptors[i].name;
        }
        m->interceptor_place[i] = place;
    }
    return (struct dimension_values){"interceptor", names, count};
}

static void fill_dimensions(struct metrics *m)
{
    const struct config *c = m->config;
    struct dimension_values *d = m->dimensions;
    static const char *const nothing[] = {""};
    d[DIM_NONE] = (struct dimension_values){NULL, nothing, 1};
    d[DIM_ROUTE] = (struct dimension_values){"route", route_words, COUNT_OF(route_words)};
    d[DIM_STATUS] = (struct dimension_values){"status", status_words, COUNT_OF(status_words)};
    d[DIM_FAULT] = (struct dimension_values){"kind", fault_words, COUNT_OF(fault_words)};
    d[DIM_CALL] = (struct dimension_values){"outcome", call_words, COUNT_OF(call_words)};
    d[DIM_HIT] = (struct dimension_values){"fate", hit_words, COUNT_OF(hit_words)};
    d[DIM_RUN] = (struct dimension_values){"outcome", run_words, COUNT_OF(run_words)};
    d[DIM_CODE] = (struct dimension_values){"cause", code_words, COUNT_OF(code_words)};
    d[DIM_UPSTREAM] = (struct dimension_values){"upstream", NULL, METRICS_UPSTREAMS_MAX + 1};
    d[DIM_SANDBOX] = names_of(m, "sandbox", c->sandboxes, c->sandboxes_count, sizeof *c->sandboxes);
    d[DIM_SEARCH] = names_of(m, "search", c->searches, c->searches_count, sizeof *c->searches);
    d[DIM_INTERCEPTOR] = interceptors_of(m);
}

struct metrics *metrics_new(const struct config *config, struct upstream_states *upstreams,
                            size_t loops_count)
{
    CHECK(loops_count > 0);
    struct arena *arena = arena_new(0);
    struct metrics *m = arena_get(arena, sizeof *m);
    *m = (struct metrics){.config = config,
                          .upstreams = upstreams,
                          .arena = arena,
                          .loops_count = loops_count,
                          .began_unix_s = clock_unix_s()};
    fill_dimensions(m);
    for (size_t i = 0; i < FAMILY_COUNT; i++) {
        m->offsets[i] = m->numbers_count;
        m->numbers_count += m->dimensions[families[i].first].count *
                            m->dimensions[families[i].second].count *
                            (families[i].is_histogram ? HISTOGRAM : 1);
    }
    m->loops = arena_get(arena, loops_count * sizeof *m->loops);
    for (size_t i = 0; i < loops_count; i++) {
        m->loops[i] = check_alloc(calloc(m->numbers_count, sizeof **m->loops));
    }
    return m;
}

void metrics_free(struct metrics *m)
{
    if (m == NULL) {
        return;
    }
    for (size_t i = 0; i < m->loops_count; i++) {
        free(m->loops[i]);
    }
    arena_free(m->arena);
}

/* ---- counting ---- */

/* The first number of a series, in this thread's loop. */
static number *series(struct metrics *m, enum family family, size_t first, size_t second)
{
    size_t loop = loop_self() != NULL ? loop_index(loop_self()) : 0;
    size_t width = families[family].is_histogram ? HISTOGRAM : 1;
    size_t seconds = m->dimensions[families[family].second].count;
    CHECK(loop < m->loops_count);
    CHECK(first < m->dimensions[families[family].first].count && second < seconds);
    return &m->loops[loop][m->offsets[family] + (first * seconds + second) * width];
}

/* One writer: a load and a store, where an atomic addition would lock the bus. */
static void number_add(number *at, uint64_t n)
{
    atomic_store_explicit(at, atomic_load_explicit(at, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static void count(struct metrics *m, enum family family, size_t first, size_t second, uint64_t n)
{
    number_add(series(m, family, first, second), n);
}

static void observe(struct metrics *m, enum family family, size_t first, int64_t us)
{
    number *numbers = series(m, family, first, 0);
    size_t bucket = 0;
    while (bucket < BOUNDS && us > bounds[bucket].us) {
        bucket++;
    }
    number_add(&numbers[bucket], 1);
    number_add(&numbers[BOUNDS + 1], us > 0 ? (uint64_t)us : 0);
}

static size_t status_place(int status)
{
    return status < 200 || status > 599 ? 4 : (size_t)(status / 100 - 2);
}

void metrics_request(struct metrics *m, const struct metric_request *request)
{
    if (m == NULL) {
        return;
    }
    count(m, REQUESTS, request->route, status_place(request->status), 1);
    observe(m, REQUEST_SECONDS, request->route, request->us);
    count(m, DISCONNECTS, 0, 0, request->is_client_gone);
    count(m, BYTES_IN, 0, 0, request->bytes_in);
    count(m, BYTES_OUT, 0, 0, request->bytes_out);
}

static size_t upstream_place(const struct upstream *upstream)
{
    size_t place = upstream->state->number;
    return place < METRICS_UPSTREAMS_MAX ? place : METRICS_UPSTREAMS_MAX;
}

void metrics_upstream_call(struct metrics *m, const struct upstream *upstream, bool is_turn)
{
    if (m != NULL) {
        count(m, UPSTREAM_CALLS, upstream_place(upstream), 0, 1);
        count(m, TURNS, upstream_place(upstream), 0, is_turn);
    }
}

void metrics_upstream_first_byte(struct metrics *m, const struct upstream *upstream, int64_t us)
{
    if (m != NULL) {
        observe(m, FIRST_BYTE_SECONDS, upstream_place(upstream), us);
    }
}

void metrics_upstream_fault(struct metrics *m, const struct upstream *upstream,
                            enum metric_fault fault)
{
    if (m != NULL) {
        count(m, UPSTREAM_ERRORS, upstream_place(upstream), fault, 1);
    }
}

void metrics_tool_call(struct metrics *m, const struct interceptor *interceptor,
                       enum metric_call outcome)
{
    if (m != NULL) {
        size_t index = (size_t)(interceptor - m->config->interceptors);
        CHECK(index < m->config->interceptors_count);
        count(m, TOOL_CALLS, m->interceptor_place[index], outcome, 1);
    }
}

void metrics_run(struct metrics *m, const struct sandbox *sandbox, enum metric_run outcome,
                 int64_t us)
{
    if (m != NULL) {
        size_t index = (size_t)(sandbox - m->config->sandboxes);
        count(m, RUNS, index, outcome, 1);
        observe(m, RUN_SECONDS, index, us);
    }
}

void metrics_sandbox_error(struct metrics *m, const struct sandbox *sandbox, int code)
{
    if (m != NULL) {
        size_t place = code > 0 && (size_t)code < COUNT_OF(code_words) ? (size_t)code : 0;
        count(m, SANDBOX_ERRORS, (size_t)(sandbox - m->config->sandboxes), place, 1);
    }
}

void metrics_search(struct metrics *m, const struct search *search, enum metric_call outcome,
                    int64_t us)
{
    if (m != NULL) {
        size_t index = (size_t)(search - m->config->searches);
        count(m, SEARCHES, index, outcome, 1);
        if (outcome != METRIC_CALL_REFUSED) {
            observe(m, SEARCH_SECONDS, index, us);
        }
    }
}

void metrics_search_cached(struct metrics *m, const struct search *search)
{
    if (m != NULL) {
        count(m, SEARCHES_CACHED, (size_t)(search - m->config->searches), 0, 1);
    }
}

void metrics_search_hits(struct metrics *m, const struct search *search,
                         const size_t counts[HIT_FATES])
{
    for (size_t fate = 0; m != NULL && fate < HIT_FATES; fate++) {
        count(m, SEARCH_HITS, (size_t)(search - m->config->searches), fate, counts[fate]);
    }
}

/* ---- the text ---- */

static uint64_t sum(const struct metrics *m, size_t place)
{
    uint64_t total = 0;
    for (size_t i = 0; i < m->loops_count; i++) {
        total += atomic_load_explicit(&m->loops[i][place], memory_order_relaxed);
    }
    return total;
}

static void put_label(struct buf *out, const char *label, const char *value)
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
    const enum dimension d[] = {families[family].first, families[family].second};
    const size_t at[] = {first, second};
    const char *before = "{";
    for (size_t i = 0; i < COUNT_OF(d); i++) {
        const char *label = m->dimensions[d[i]].label;
        if (label != NULL) {
            (void)buf_puts(out, before);
            put_label(out, label, value_of(m, d[i], at[i]));
            before = ",";
        }
    }
    if (le != NULL) {
        (void)buf_puts(out, before);
        put_label(out, "le", le);
        before = ",";
    }
    (void)buf_puts(out, before[0] == ',' ? "}" : "");
}

static void put_histogram(const struct metrics *m, enum family family, size_t first,
                          struct buf *out)
{
    const char *name = families[family].name;
    size_t at = m->offsets[family] + first * HISTOGRAM;
    uint64_t below = 0;
    for (size_t i = 0; i <= BOUNDS; i++) {
        below += sum(m, at + i);
        (void)buf_printf(out, "%s_bucket", name);
        put_labels(m, family, first, 0, i < BOUNDS ? bounds[i].text : "+Inf", out);
        (void)buf_printf(out, " %" PRIu64 "\n", below);
    }
    uint64_t us = sum(m, at + BOUNDS + 1);
    (void)buf_printf(out, "%s_sum", name);
    put_labels(m, family, first, 0, NULL, out);
    (void)buf_printf(out, " %" PRIu64 ".%06" PRIu64 "\n%s_count", us / 1000000, us % 1000000, name);
    put_labels(m, family, first, 0, NULL, out);
    (void)buf_printf(out, " %" PRIu64 "\n", below);
}

static void put_head(struct buf *out, const char *name, const char *help, const char *type)
{
    (void)buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_family(const struct metrics *m, enum family family, struct buf *out)
{
    size_t firsts = values_count(m, families[family].first);
    size_t seconds = m->dimensions[families[family].second].count;
    bool is_histogram = families[family].is_histogram;
    put_head(out, families[family].name, families[family].help,
             is_histogram ? "histogram" : "counter");
    for (size_t i = 0; i < firsts; i++) {
        for (size_t k = 0; !is_histogram && k < seconds; k++) {
            (void)buf_puts(out, families[family].name);
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
    put_head(out, name, help, type);
    (void)buf_printf(out, "%s %" PRIu64 "\n", name, value);
}

static void put_containers(const struct registry_stats *r, size_t max, struct buf *out)
{
    const struct {
        const char *state;
        size_t count;
    } states[] = {
        {"creating", r->creating}, {"ready", r->ready}, {"closing", r->closing}, {"lost", r->lost}};
    put_head(out, "sandgate_containers", "Containers by state; lost: cannot be deleted.", "gauge");
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
    put_head(out, "process_cpu_seconds_total", "CPU time, user and system.", "counter");
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
    put_process(m, now, out);
}
