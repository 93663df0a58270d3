/* What the files of core/plugin share about calls. Nobody else includes it. */
#ifndef SANDGATE_PLUGIN_CALL_INTERNAL_H
#define SANDGATE_PLUGIN_CALL_INTERNAL_H

#include "base/lock.h"
#include "loop/worker.h"
#include "plugin/call.h"

#include <stdatomic.h>
#include <stdint.h>

#define CALL_MAGIC 0x43414C4Cu /* "CALL" */

enum call_place {
    CALL_NOT_STARTED,
    CALL_IN_FIBER,  /* of its own, on the home loop */
    CALL_ON_WORKER, /* `thread` */
    CALL_INLINE     /* in the caller's fiber: open() and close(), which emit nothing */
};

struct call_entry { /* one output */
    struct call_entry *next;
    enum sg_out kind;
    size_t len;
    char data[];
};

struct sg_call {
    uint32_t magic;
    atomic_uint refs;
    atomic_bool is_cancelled;
    const struct instance *instance;
    const char *operation, *request_id;
    void *context;
    int64_t deadline;
    struct loop *home;
    struct arena *arena;
    size_t alloc_bytes; /* that the plugin asked for */

    call_invoke *invoke;
    void *arguments;
    enum call_place place;
    pthread_t thread;        /* CALL_ON_WORKER: the one that was called */
    struct fiber *runner;    /* home thread: the plugin's fiber, while it lives */
    struct fiber *service;   /* home thread: does the core's part while the worker sleeps */
    struct worker_task work; /* CALL_ON_WORKER */
    struct loop_task wake; /* a worker's way to wake the consumer; holds a reference while posted */
    struct call_entry *taken; /* home thread: what call_next() showed last */
    unsigned taken_in_a_row;  /* home thread: without having waited */

    struct lock lock;       /* all below */
    pthread_cond_t changed; /* the worker sleeps on it */
    struct call_entry *first, **end;
    size_t queue_bytes;
    struct fiber *consumer; /* a fiber of the home loop that waits for output or the end */
    bool is_wake_posted;
    bool producer_waits;
    bool has_ended;
    int code; /* with `error`, the plugin's thread's until has_ended */
    struct sg_error error;
};

/* True where `call` is used by the thread or fiber that was called with it. If not, that is the plugin's mistake: it is
 * logged, and `err` (may be NULL) says SG_E_INTERNAL. */
bool call_is_ours(struct sg_call *call, const char *function, struct sg_error *err);

/* The core's part of a waiting function. `sink` is never NULL; what it returns other than 0 ends the work. */
typedef int call_part(struct sg_call *, void *arguments, const struct sg_sink *sink,
                      struct sg_error *err);

/* Carries out `part` in a fiber of the home loop: in the plugin's own, or, for a worker, in a new one while the worker
 * sleeps. `sink` (NULL: drops all) is called in the plugin's own thread or fiber. `function` is a literal. */
int call_cross(struct sg_call *, const char *function, call_part *part, void *arguments,
               const struct sg_sink *sink, struct sg_error *err);

/* Sleeps on a worker until `deadline`, the call's deadline or its end by cancelling. */
int call_worker_sleep(struct sg_call *, int64_t deadline);

int call_emit(struct sg_call *, enum sg_out kind, const void *data, size_t len,
              struct sg_error *err);

/* Describes why a wait ended: `code` is SG_E_TIMEOUT or SG_E_CANCELLED; returns it. */
int call_wait_failed(struct sg_call *, const char *function, int code, struct sg_error *err);

/* Settles what `code`, returned by the plugin, means; with call->error it is then the call's result. */
void call_judge(struct sg_call *, int code);

/* Puts plugin and instance in front of the message: "e2b (cloud): …", or just the name where both are equal. */
void call_add_names(const struct sg_call *, struct sg_error *error);

/* The services (host_http.c, child.c). */
int host_http(struct sg_call *, const struct sg_http_request *, struct sg_http_reply *,
              const struct sg_sink *body, struct sg_error *err);
int host_spawn(struct sg_call *, const struct sg_spawn *, struct sg_child *ret_child,
               struct sg_error *err);
int host_wait_child(struct sg_call *, const struct sg_child *, int64_t ms, int *ret_status,
                    struct sg_error *err);

#endif
