/* What counting (metrics.c) and telling (metrics_text.c) share. */
#ifndef SANDGATE_GATEWAY_METRICS_INTERNAL_H
#define SANDGATE_GATEWAY_METRICS_INTERNAL_H

#include "base/arena.h"
#include "base/check.h"
#include "gateway/metrics.h"

#include <stdatomic.h>

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
    DIM_LIMIT,
    DIM_LEVEL,
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
    LIMITED,
    FALLBACKS,
    FAMILY_COUNT
};

struct metric_family {
    const char *name, *help;
    bool is_histogram;
    enum dimension first, second;
};
extern const struct metric_family metric_families[FAMILY_COUNT];

struct metric_bound { /* of a histogram's bucket */
    int64_t us;
    const char *text;
};
enum { BOUNDS = 17, HISTOGRAM = BOUNDS + 2 /* beyond all bounds, and the sum */ };
extern const struct metric_bound metric_bounds[BOUNDS];

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

#endif
