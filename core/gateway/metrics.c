/* Families of metrics as a table; one array of numbers a loop, in which each family has its place. */
#include "gateway/metrics_internal.h"

#include "base/clock.h"
#include "gateway/upstream_state.h"
#include "loop/loop.h"

#include <stdlib.h>

/* ---- what there is ---- */

const struct metric_family metric_families[FAMILY_COUNT] = {
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
    [LIMITED] = {"sandgate_limited_total",
                 "Requests and runs of tools that were refused by a limit of a key or a user.",
                 false, DIM_LIMIT, DIM_LEVEL},
    [FALLBACKS] = {"sandgate_upstream_fallbacks_total",
                   "Requests that have left an upstream for another, since it failed.", false,
                   DIM_UPSTREAM, DIM_NONE},
};

static const char *const route_words[METRIC_ROUTE_COUNT] = {
    "chat",     "responses", "messages", "relay", "models",
    "sessions", "health",    "metrics",  "admin", "none"};
static const char *const status_words[] = {"2xx", "3xx", "4xx", "5xx", "gone"};
static const char *const fault_words[METRIC_FAULT_COUNT] = {
    "unreachable", "timeout", "limited", "refused", "client_error", "server_error", "broken"};
static const char *const call_words[METRIC_CALL_COUNT] = {"completed", "failed", "refused"};
static const char *const hit_words[HIT_FATES] = {"passed", "malformed", "filtered", "duplicate",
                                                 "surplus"};
static const char *const limit_words[METRIC_LIMIT_COUNT] = {"requests_per_minute", "in_flight",
                                                            "runs_per_minute"};
static const char *const level_words[] = {"key", "user"};
static const char *const run_words[METRIC_RUN_COUNT] = {"completed", "raised", "timeout",
                                                        "gone",      "failed", "cancelled"};
static const char *const code_words[] = {"other",     "invalid",     "denied",  "not_found",
                                         "limit",     "unavailable", "timeout", "internal",
                                         "cancelled", "config",      "gone",    "gone_before"};

const struct metric_bound metric_bounds[BOUNDS] = {
    {1000, "0.001"},    {5000, "0.005"},    {10000, "0.01"},  {25000, "0.025"}, {50000, "0.05"},
    {100000, "0.1"},    {250000, "0.25"},   {500000, "0.5"},  {1000000, "1"},   {2500000, "2.5"},
    {5000000, "5"},     {10000000, "10"},   {30000000, "30"}, {60000000, "60"}, {120000000, "120"},
    {300000000, "300"}, {600000000, "600"},
};

/* ---- where it stands ---- */

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
    d[DIM_LIMIT] = (struct dimension_values){"limit", limit_words, COUNT_OF(limit_words)};
    d[DIM_LEVEL] = (struct dimension_values){"of", level_words, COUNT_OF(level_words)};
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
        m->numbers_count += m->dimensions[metric_families[i].first].count *
                            m->dimensions[metric_families[i].second].count *
                            (metric_families[i].is_histogram ? HISTOGRAM : 1);
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
    size_t width = metric_families[family].is_histogram ? HISTOGRAM : 1;
    size_t seconds = m->dimensions[metric_families[family].second].count;
    CHECK(loop < m->loops_count);
    CHECK(first < m->dimensions[metric_families[family].first].count && second < seconds);
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
    while (bucket < BOUNDS && us > metric_bounds[bucket].us) {
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

void metrics_upstream_fallback(struct metrics *m, const struct upstream *upstream)
{
    if (m != NULL) {
        count(m, FALLBACKS, upstream_place(upstream), 0, 1);
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

void metrics_limited(struct metrics *m, enum metric_limit limit, bool is_user)
{
    if (m != NULL) {
        count(m, LIMITED, limit, is_user, 1);
    }
}
