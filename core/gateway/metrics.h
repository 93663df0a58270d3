/* What operators measure: counters and histograms of each loop, without locks and without atomic read-modify-writes (a
 * loop's numbers are written by its thread alone), summed when they are read. Labels are names of the configuration and
 * words from here; nothing that a client sends ever becomes one. docs/operations.md has the table. */
#ifndef SANDGATE_GATEWAY_METRICS_H
#define SANDGATE_GATEWAY_METRICS_H

#include "base/buf.h"
#include "gateway/config.h"
#include "gateway/search_hits.h"
#include "http/tls.h"

struct metrics;

enum metric_route {
    METRIC_ROUTE_CHAT,
    METRIC_ROUTE_RESPONSES,
    METRIC_ROUTE_MESSAGES,
    METRIC_ROUTE_RELAY, /* embeddings and the like */
    METRIC_ROUTE_MODELS,
    METRIC_ROUTE_SESSIONS,
    METRIC_ROUTE_HEALTH,
    METRIC_ROUTE_METRICS,
    METRIC_ROUTE_ADMIN,
    METRIC_ROUTE_NONE, /* a path that is not there */
    METRIC_ROUTE_COUNT
};

enum metric_fault { /* what went wrong with an upstream */
                    METRIC_FAULT_UNREACHABLE,
                    METRIC_FAULT_TIMEOUT,
                    METRIC_FAULT_LIMITED, /* 429 */
                    METRIC_FAULT_REFUSED, /* 401, 403: the operator's key */
                    METRIC_FAULT_CLIENT,  /* other 4xx */
                    METRIC_FAULT_SERVER,  /* 5xx */
                    METRIC_FAULT_BROKEN,  /* an answer that makes no sense */
                    METRIC_FAULT_COUNT
};

enum metric_call {
    METRIC_CALL_COMPLETED,
    METRIC_CALL_FAILED,
    METRIC_CALL_REFUSED,
    METRIC_CALL_COUNT
};

enum metric_run {
    METRIC_RUN_COMPLETED,
    METRIC_RUN_RAISED, /* the code raised: a success of the sandbox */
    METRIC_RUN_TIMEOUT,
    METRIC_RUN_GONE, /* the container died */
    METRIC_RUN_FAILED,
    METRIC_RUN_CANCELLED,
    METRIC_RUN_COUNT
};

enum metric_limit { /* of a key or a user, that refused something */
                    METRIC_LIMIT_REQUESTS,
                    METRIC_LIMIT_IN_FLIGHT,
                    METRIC_LIMIT_RUNS,
                    METRIC_LIMIT_COUNT
};

struct metric_request {
    enum metric_route route;
    int status; /* 0: the client left before there was one */
    bool is_client_gone;
    int64_t us;
    uint64_t bytes_in, bytes_out; /* bodies */
};

enum { METRICS_UPSTREAMS_MAX = 1000 }; /* series; names that come later share one, "other" */

/* The names are borrowed from the configuration and from the states, those of upstreams whenever they are read. */
struct metrics *metrics_new(const struct config *, struct upstream_states *, size_t loops_count);
void metrics_free(struct metrics *); /* NULL is fine */

/* On a loop's thread; `metrics` may be NULL. Sandboxes, searches … are entries of the configuration, upstreams of settings that
 * are or were in force. */
void metrics_request(struct metrics *, const struct metric_request *);
void metrics_upstream_call(struct metrics *, const struct upstream *, bool is_turn);
void metrics_upstream_first_byte(struct metrics *, const struct upstream *, int64_t us);
void metrics_upstream_fault(struct metrics *, const struct upstream *, enum metric_fault);
/* A request has left it for another. */
void metrics_upstream_fallback(struct metrics *, const struct upstream *);
void metrics_tool_call(struct metrics *, const struct interceptor *, enum metric_call);
void metrics_run(struct metrics *, const struct sandbox *, enum metric_run, int64_t us);
void metrics_sandbox_error(struct metrics *, const struct sandbox *, int code);
void metrics_search(struct metrics *, const struct search *, enum metric_call, int64_t us);
void metrics_search_cached(struct metrics *, const struct search *);
void metrics_search_hits(struct metrics *, const struct search *, const size_t counts[HIT_FATES]);

void metrics_limited(struct metrics *, enum metric_limit, bool is_user);

struct metrics_now { /* what is read at the moment, from others */
    struct registry_stats registry;
    size_t containers_max;
    size_t connections, requests; /* open; in progress */
    size_t descriptors, descriptors_max;
    size_t worker_tasks, worker_threads_max;
    uint64_t calls_abandoned;
    uint64_t memory_bytes, memory_budget; /* held for requests */
    bool has_tls;
    uint64_t handshakes[HTTP_HANDSHAKE_COUNT];
    int64_t certificate_days; /* that are left */
    size_t loops;
    bool is_draining;
    uint64_t cpu_us, resident_bytes;
};

/* Pieces of that form, for others who have numbers of their own: label="value", escaped; and what a family is. */
void metrics_put_label(struct buf *out, const char *label, const char *value);
void metrics_put_head(struct buf *out, const char *name, const char *help, const char *type);

/* The text form of Prometheus, version 0.0.4. Any thread. */
void metrics_put(struct metrics *, const struct metrics_now *, struct buf *out);

#endif
