/* The insides of the registry, for its own files. docs/sessions.md has the states and the rules.
 *
 * Whatever says "under the lock" is for holders of registry->lock. Nothing under the lock waits, logs, calls a plugin or
 * posts: messages to loops are collected and posted by registry_unlock(). */
#ifndef SANDGATE_SESSION_INTERNAL_H
#define SANDGATE_SESSION_INTERNAL_H

#include "base/digest.h"
#include "base/lock.h"
#include "session/index.h"
#include "session/registry.h"
#include "session/table.h"

#define REGISTRY_MAGIC 0x53475247u  /* "SGRG" */
#define CONTAINER_MAGIC 0x5347434fu /* "SGCO" */
#define WAITER_MAGIC 0x53475754u    /* "SGWT" */
#define ERRAND_MAGIC 0x53474552u    /* "SGER" */
#define LEASE_MAGIC 0x53474c45u     /* "SGLE" */

#define CONTAINER_ID_PREFIX "cntr_sg"
#define LABEL_PREFIX "sg-"
#define LABEL_BYTES (sizeof LABEL_PREFIX - 1 + RANDOM_ID_BYTES) /* with its NUL */
#define TOUCH_SLACK_MS \
    30000               /* life is pushed on when it is so much (at most) shorter than a new one */
#define ABANDON_MS 2000 /* a call that has not returned so long after its deadline is left behind */
#define FILE_MS 60000   /* a file operation */
#define DELETIONS_MAX 64 /* at one time */

/* ---- what is posted ---- */

struct message { /* embedded; its owner holds a reference for it until `task.run` was called */
    struct loop_task task;
    struct loop *loop;
    struct message *next; /* the registry's, until it is posted */
};

/* ---- containers ---- */

enum container_state {
    CONTAINER_CREATING,
    CONTAINER_READY,
    CONTAINER_CLOSING, /* being deleted; counted */
    CONTAINER_LOST,    /* being deleted in vain; counted in the allowance only */
    CONTAINER_GONE
};

enum close_reason {
    CLOSE_RELEASED, /* an ephemeral one: its request is over */
    CLOSE_UNWANTED, /* nobody waits for it any more */
    CLOSE_EVICTED,
    CLOSE_EXPIRED,
    CLOSE_GONE,   /* the provider said so */
    CLOSE_HUNG,   /* its run could not be ended */
    CLOSE_FAILED, /* create() failed after it gave the handle */
    CLOSE_ENDED,  /* its identity asked for it */
    CLOSE_SHUTDOWN,
    CLOSE_REASON_COUNT
};
extern const char *const close_reason_names[CLOSE_REASON_COUNT];

struct container {
    uint32_t magic;
    unsigned refs; /* all but the settings: under the lock */
    struct registry *registry;
    struct list in_registry;
    enum container_state state;
    struct table_ref ref;

    /* Settings, copied at its creation (the sandbox is read-only), and not changed any more. */
    const struct sandbox *sandbox;
    bool is_session, carries_loss;   /* carries_loss: whether there may be a loss to take */
    int64_t life_ms, life_needed_ms; /* of a new one; left at the start of a run */
    char id[TABLE_ID_BYTES];         /* the clients' */
    char label[LABEL_BYTES];         /* the provider's */
    char *identity, *request_id, *session_id; /* the last is NULL without a session */
    int64_t created_unix_s;
    int64_t used_at;    /* clock_ms() of the end of its last use */
    size_t descriptors; /* taken of admission, until it is gone */
    char *handle;       /* a secret; written once, by the creation, before it is READY or CLOSING */

    /* Creation. */
    struct message create;
    struct list waiters; /* for it to be READY */
    bool is_unwanted;    /* to be deleted as soon as it is made */

    /* Use. */
    size_t leases;       /* of this process, with those of runs handed over */
    bool turn_taken;     /* somebody runs in it */
    struct list turns;   /* waiters for their turn, first come first served */
    bool is_running;     /* it counts among its identity's runs */
    bool is_used;        /* something was run, so that its death loses something */
    uint64_t uses;       /* runs and file operations in this process that have ended */
    bool is_loss;        /* it ended with a loss */
    int64_t park_ms;     /* parked: how long it waits for the request that continues; 0: not */
    int64_t life_until;  /* the provider keeps it until then at least */
    int64_t life_latest; /* … and at most */
    bool is_touching;
    int64_t touch_life_ms, touch_since; /* of the touch under way */

    /* Deletion. */
    enum close_reason reason;
    int64_t closing_since;
    int64_t back_off_ms;
    unsigned attempts;
    struct heap_node deletion; /* when the next attempt is due */
};

/* ---- waiters ---- */

enum waiter_state { WAITER_WAITING, WAITER_GRANTED, WAITER_FAILED, WAITER_ABANDONED };

struct waiter {
    uint32_t magic;
    unsigned refs; /* under the lock: one of the waiting fiber, one of the message */
    struct registry *registry;
    enum waiter_state state;     /* leaves WAITING exactly once, under the lock */
    struct list link;            /* in the list in which it waits */
    struct container *container; /* GRANTED: with a reference */
    struct sg_error err;         /* FAILED */
    struct message message;
    struct fiber *fiber; /* home loop only; NULL once it has left */

    /* Of those who want a container. */
    const struct lease *lease;     /* read by others while WAITING only */
    struct tenant *tenant;         /* in whose queue for room it is, or NULL */
    enum table_limit queue;        /* which of them */
    enum table_limit stood_before; /* ABANDONED: in which it was then */
};

struct waiter *waiter_new(struct registry *,
                          const struct lease *); /* by the fiber that will wait */

/* Under the lock; the waiter leaves the list it is in. `grant` adds a reference to the container; NULL where none is
 * waited for. */
void waiter_grant(struct waiter *, struct container *);
void waiter_fail(struct waiter *, const struct sg_error *);

/* Not under the lock. Waits until it is not WAITING any more: 0; or gives up at the deadline (room_deadline as long as
 * it waits for room) or when cancelled: that code, and the state is ABANDONED, or else the caller has to pass on what it
 * was granted. */
int waiter_wait(struct waiter *, int64_t room_deadline, int64_t deadline);

void waiter_leave(struct waiter *); /* the fiber's reference; not under the lock */

/* ---- room ---- */

struct tenant { /* an identity, or a key, of whom somebody waits for room */
    struct hash_node by_name;
    struct list queues[TABLE_LIMIT_COUNT]; /* waiters, by what stands against them */
    size_t waiting[TABLE_LIMIT_COUNT];
    struct list in_rotation; /* with somebody in the queue of the total limit */
    size_t name_len;
    char name[];
};

struct room {
    struct hash tenants;
    struct list rotation; /* tenants that wait for the total limit, in turn */
    size_t waiting_total;
};

/* Under the lock. Gives the waiter what its key can have now: a lease, a place with a creation, a new creation, or a
 * place in a queue for room. */
void room_place(struct waiter *);
void room_leave(struct waiter *); /* also of one that is in no queue */
void room_retry(struct registry *,
                const char *identity); /* something of this identity has changed */
void room_fail_all(struct registry *, const struct sg_error *);

/* ---- runs: the share of an identity ---- */

/* Not under the lock, by the owner of the container's turn, who still has it then. Waits until the identity may run one
 * more; SG_E_GONE_BEFORE if the container ended meanwhile. */
int runs_enter(struct container *, struct sg_error *err);
/* Under the lock: the run is over, if the container has one that counts. */
void runs_leave(struct container *);
void runs_fail_all(struct registry *, const struct sg_error *);

/* ---- errands: the registry's own fibers ---- */

struct errand {
    uint32_t magic;
    unsigned refs; /* under the lock */
    struct registry *registry;
    struct list in_registry;
    struct message cancel;
    bool is_cancelled;   /* the message is on its way */
    struct fiber *fiber; /* home loop only; NULL once it is over */
    void (*run)(void *);
    void *arg;
};

/* Runs in a fiber of this thread's loop. Fails without a stack, or after the shutdown has given up. */
int errand_start(struct registry *, const char *name, void (*run)(void *), void *arg,
                 struct sg_error *err);
/* In an errand: do not wait for this call for more than ABANDON_MS after its deadline. */
void errand_patience(const struct sg_call *);
void errands_cancel(struct registry *); /* all, and no new ones; under the lock */

/* ---- the registry ---- */

struct reaper {
    struct fiber *fiber;          /* loop 0 only */
    struct fiber *shutdown_fiber; /* loop 0 only: who waits in registry_shutdown() */
    struct message message;
    bool is_posted;
    int64_t until; /* it looks again then */
    struct heap deletions;
    size_t deleting;
};

struct registry {
    uint32_t magic;
    struct registry_options options;
    struct lock lock; /* of all below, and of what says so above */
    struct table *table;
    struct list containers; /* all that are not GONE */
    struct list errands;
    struct room room;
    struct hash runners; /* identities of whom code runs */
    struct reaper reaper;
    struct message *outbox_first, *outbox_last;
    size_t in_flight;  /* messages posted, or to be posted, whose task has not run */
    bool is_stopping;  /* no new containers */
    bool is_abandoned; /* no new errands */
    size_t lost;
    uint64_t created, destroyed, replaced, evicted, expired, destroy_failures;
    uint64_t changes; /* of what registry_look() gives */
};

void registry_lock(struct registry *);
void registry_unlock(struct registry *);                 /* posts what was collected */
void registry_post(struct registry *, struct message *); /* under the lock */
void registry_arrived(struct registry *); /* under the lock, by each message's task at its end */
int64_t registry_expiry(const struct registry *); /* of one that is idle from now on */

/* Not under the lock: all containers that are not GONE, each with a reference, in an array that registry_let_go() frees. */
struct container **registry_hold_all(struct registry *, size_t *ret_count);
void registry_let_go(struct registry *, struct container **, size_t count);

/* Not under the lock, at the end: hands what can be kept to whoever keeps it (keep.c). */
void registry_keep(struct registry *);

/* Under the lock: the reaper shall look again at that time (0: now). */
void reaper_need(struct registry *, int64_t at);
void reaper_init(struct registry *);

/* ---- acting on containers; under the lock ---- */

void container_id_make(char ret[CONTAINER_ID_BYTES]); /* a fresh one */
/* In the registry's list, CREATING, with that list's reference and nothing but its settings. */
struct container *container_make(struct registry *, const struct sandbox *,
                                 const struct table_ref *, bool is_session);
/* What one may hold open in this process: the provider's own figure and the call under way. */
size_t container_descriptors(const struct sandbox *);
/* The end of the process need not be its end. */
bool container_can_be_kept(const struct container *);
/* It ends with the process, and the next one is to tell its session so. */
bool container_end_is_loss(const struct container *);
struct container *container_new(struct registry *, const struct lease *, const struct table_reply *,
                                struct loop *home);
struct container *container_ref(struct container *);
void container_unref(struct container *); /* NULL is fine */

/* A READY one is closed and its deletion queued; a CREATING one is deleted when it is made; others stay as they are. */
void container_close(struct container *, enum close_reason, bool loss);
/* The same for one that is CLOSING in the table already. */
void container_discard(struct container *, enum close_reason);
/* The last step. `destroyed` if the provider said so. */
void container_end(struct container *, bool destroyed);
/* Gives the turn to the next, or nobody. */
void container_pass_turn(struct container *);
/* One lease back; the caller's reference stays. */
void container_release(struct container *, int64_t keep_ms);

/* Not under the lock. Pushes the provider's life of it on, if it is short of `need_ms` from now, in an errand. */
void container_touch(struct container *, int64_t need_ms);

/* The message that starts a creation. */
void create_on_loop(struct loop_task *);
/* The body of the errand that makes one attempt to delete. Owns a reference. */
void delete_attempt(void *container);

/* Ends a run whose caller has left: owns the call, the container's turn and, of a session, a lease. */
void handover_start(struct container *, struct sg_call *, const char *request_id);
/* What a run's end says about its container; under the lock, by the turn's owner, who has it no longer then. */
void container_run_ended(struct container *, int code, int64_t call_deadline);

/* ---- leases ---- */

/* What a session's container is called in the table. The sandbox is part of it: code that is meant for one sandbox never
 * runs in another because a session of that id is there. */
void session_key(struct str identity, struct str session_id, const struct sandbox *,
                 uint8_t key[TABLE_KEY_BYTES]);

_Static_assert(TABLE_ID_BYTES == CONTAINER_ID_BYTES, "container ids are of one size");

struct lease {
    uint32_t magic;
    struct registry *registry;
    struct loop *home;
    uint8_t key[TABLE_KEY_BYTES];
    bool is_session;
    const struct sandbox *sandbox;
    size_t per_identity, max_containers;      /* that hold for it */
    char *identity, *request_id, *session_id; /* the last is NULL without a session */
    struct container *container;              /* with a reference and a lease; it may be dead */
    char container_id[CONTAINER_ID_BYTES];
    char new_id[CONTAINER_ID_BYTES]; /* of the first container that is made for it; "": any */
    int64_t keep_ms;
    bool has_lost; /* ephemeral: a loss not yet taken */
    size_t operations;
    bool is_attaching;
    struct list attach_waiters; /* fibers that wait while another one attaches */
};

/* Gets it a container, in place of the dead one if it had one. Waits. */
int lease_attach(struct lease *, int64_t deadline, struct sg_error *err);

/* Takes the mark off the identity's container of that id; false if it has none, or it is not marked. Under the lock. */
bool parked_take(struct registry *, struct str identity, struct str container_id);

/* ---- the provider ---- */

struct provider_arguments { /* in the call's arena */
    const char *handle;
    struct sg_sandbox_spec spec;
    struct sg_run run;
    const char *path;
    const void *data;
    size_t len;
    int64_t life_ms;
};

call_invoke provider_create, provider_run, provider_destroy, provider_touch, provider_interrupt;
call_invoke provider_put, provider_get, provider_list;

/* A call about a container, with its handle copied. The container has one: not for create. */
struct sg_call *provider_call(const struct container *, const char *operation,
                              const char *request_id, int64_t deadline,
                              struct provider_arguments **ret_arguments);

/* A line about a container: event, sandbox, identity, container id, label. The caller ends it. */
struct log_line;
void container_log(struct log_line *, enum sg_level, const char *event, const struct container *);

#endif
