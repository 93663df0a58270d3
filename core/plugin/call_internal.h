/* What the files of core/plugin share about calls. Nobody else includes it. */
#ifndef SANDGATE_PLUGIN_CALL_INTERNAL_H
#define SANDGATE_PLUGIN_CALL_INTERNAL_H

#include "base/lock.h"
#include "http/admission.h"
#include "loop/worker.h"
#include "plugin/call.h"

#include <stdatomic.h>
#include <stdint.h>

#define CALL_MAGIC 0x43414C4Cu /* "CALL" */

#define CALL_WORD_BYTES_MAX 2048 /* of the status of open() */
#define ABANDON_AFTER_MS 2000 /* a call that has not returned so long after its time is abandoned */

enum call_place {
    CALL_NOT_STARTED,
    CALL_IN_FIBER,  /* of its own, on the home loop */
    CALL_ON_WORKER, /* `thread` */
    CALL_INLINE /* in the caller's fiber: open() and close(), which emit nothing but the status of open() */
};

struct call_entry { /* one output */
    struct call_entry *next;
    enum sg_out kind;
    size_t len;
    char data[];
};

/* One waiting function of a call on a worker; see call_cross.c. */
struct crossing;

/* Who touches what: what has no other word belongs to the plugin's side (the fiber or thread that runs its code) once the
 * call was started, and to the home thread before. */
struct sg_call {
    uint32_t magic;
    atomic_uint refs;
    atomic_bool is_cancelled; /* abandoned ones are that too */
    atomic_bool has_begun;    /* its worker has it; of a lent one: written under the lock */
    const struct instance *instance;
    const char *operation, *request_id;
    struct str identity;
    const char *tool_options; /* NULL: none */
    struct account account;   /* of the identity: what the call holds of its memory */
    int64_t deadline;
    struct loop *home;
    struct arena *arena;
    size_t alloc_bytes; /* that the plugin asked for */

    call_invoke *invoke;
    call_late *late;
    void *arguments;
    enum call_place place;
    pthread_t thread;        /* CALL_ON_WORKER: the one that was called */
    struct worker_task work; /* CALL_ON_WORKER, unless it was lent one */
    struct sg_call *carrier; /* whose sleeping worker carries it out, with a reference … */
    struct crossing *lender; /* … and the function in which that sleeps */
    struct str word;         /* CALL_INLINE: the last status, in the arena */
    int code;                /* with `error`: what the plugin returned */
    struct sg_error error;

    /* The home thread's. */
    void *context;              /* NULL once the call is abandoned */
    bool uses_are_spent;        /* call_note_uses_spent() */
    struct fiber *runner;       /* the plugin's fiber, while it lives */
    size_t parts;               /* the core's, under way in that fiber */
    struct worker_visit *visit; /* of that fiber */
    struct crossing *crossings; /* while the worker sleeps in them */
    int64_t cancelled_at;
    int64_t tried_at;           /* to give it up, in vain */
    struct fiber *watcher;      /* sees to it that a call which was left ends */
    struct loop_task wake;      /* a worker's way to wake consumer and watcher; holds a reference
                                   while posted */
    struct call_entry *taken;   /* what call_next() showed last */
    unsigned taken_in_a_row;    /* without having waited */
    struct sg_error *abandoned; /* the result of an abandoned call */

    struct lock *lock;       /* all below; of a lent call its carrier's */
    pthread_cond_t *changed; /* the worker sleeps on it */
    struct lock own_lock;
    pthread_cond_t own_changed;
    struct call_entry *first, **end;
    size_t queue_bytes;
    struct fiber *consumer; /* a fiber of the home loop that waits for output or the end */
    bool is_wake_posted;
    bool producer_waits;
    bool is_abandoned; /* the plugin's code goes on by itself; what it returns is not looked at */
    bool has_ended;    /* for the caller */
};

/* ---- call.c ---- */

/* True where `call` is used by the thread or fiber that was called with it. If not, that is the plugin's mistake: it is
 * logged, and `err` (may be NULL) says SG_E_INTERNAL. */
bool call_is_ours(struct sg_call *call, const char *function, struct sg_error *err);

/* The core's part of a waiting function. `sink` is never NULL; what it returns other than 0 ends the work. */
typedef int call_part(struct sg_call *, void *arguments, const struct sg_sink *sink,
                      struct sg_error *err);

/* ---- call_cross.c ---- */

/* Carries out `part` in a fiber of the home loop: in the plugin's own, or, for a worker, in a new one while the worker
 * sleeps. `sink` (NULL: drops all) is called in the plugin's own thread or fiber. `function` is a literal. */
int call_cross(struct sg_call *, const char *function, call_part *part, void *arguments,
               const struct sg_sink *sink, struct sg_error *err);

/* Sleeps on a worker until `deadline`, the call's deadline or its end by cancelling. */
int call_worker_sleep(struct sg_call *, int64_t deadline);

/* Lets the worker that sleeps in the function for which this fiber does the core's part carry the call out; false where
 * none does, or it is at another call already. */
bool call_lend(struct sg_call *);
/* A lent call that has not begun is taken back; under no lock. */
bool call_unlend(struct sg_call *);
/* On a lent call's worker, with the lock: gives one waiting event to the sink of the function that it was lent from.
 * False if none waits. Every wait of such a worker looks here: its caller's sink runs on no other thread. */
bool call_serve_lender(struct sg_call *);
/* With the lock: has that function ended, so that nobody needs the worker for it? */
bool call_lender_is_done(const struct sg_call *);
/* Home thread: ends the waits of the fibers that do the core's parts for the call's worker. */
void call_cancel_crossings(struct sg_call *);

/* ---- call_leave.c ---- */

/* Home thread: when a waiting caller shall call call_give_up(). */
int64_t call_patience(const struct sg_call *);
/* Home thread: ends, for its caller, a call whose time is over and which has not begun, or has not returned for
 * ABANDON_AFTER_MS. True if it has ended or will when the core's parts have. */
bool call_give_up(struct sg_call *);
/* Home thread: the last core part of an abandoned call has ended. */
void call_abandoned_end(struct sg_call *);

/* ---- call.c: the plugin's side ---- */

int call_emit(struct sg_call *, enum sg_out kind, const void *data, size_t len,
              struct sg_error *err);

/* The worker's part of a call: begins, carries it out, ends. `call` may be gone then. */
void call_carry_out(struct sg_call *);
/* The plugin's code has returned, or will never be called: drops the plugin's side's reference. */
void call_end(struct sg_call *, int code);
/* With the lock, which it releases: tells the consumer of output or the end, and the watcher of the end. */
void call_release_and_wake(struct sg_call *);
void call_drop_queue(struct sg_call *); /* with the lock, or as the last owner */
struct call_entry *call_entry_new(enum sg_out kind, const void *data, size_t len); /* or NULL */

/* ---- call_result.c ---- */

/* Describes why a wait ended: `code` is SG_E_TIMEOUT or SG_E_CANCELLED; returns it. */
int call_wait_failed(struct sg_call *, const char *function, int code, struct sg_error *err);

/* Settles what `code`, returned by the plugin, means; with call->error it is then the call's result. */
void call_judge(struct sg_call *, int code);

/* Puts plugin and instance in front of the message: "e2b (cloud): …", or just the name where both are equal. */
void call_add_names(const struct sg_call *, struct sg_error *error);

/* ---- structs.c ---- */

/* Copies what the call's plugin passes, element `index` of its array, into a struct of the core's size; members that the
 * plugin does not know are zero. */
void struct_take(const struct sg_call *, enum sg_struct, const void *from, size_t index, void *to,
                 size_t size);
/* Copies a struct of the core's size into the plugin's, as far as that goes. */
void struct_give(const struct sg_call *, enum sg_struct, const void *from, size_t size, void *to);

/* ---- the services (host_http.c, child.c) ---- */

int host_http(struct sg_call *, const struct sg_http_request *, struct sg_http_reply *,
              const struct sg_sink *body, struct sg_error *err);
int host_spawn(struct sg_call *, const struct sg_spawn *, struct sg_child *ret_child,
               struct sg_error *err);
int host_wait_child(struct sg_call *, const struct sg_child *, int64_t ms, int *ret_status,
                    struct sg_error *err);

#endif
