/* Worker threads: where plugins may block and where CPU is burnt. One pool for the process.
 *
 * Lanes.      A task that sleeps until other tasks have run may do so for those of lower lanes only, and each lane has
 *             threads of its own. Tasks of the lowest wait for no task, so they end; hence so do those of the next, however
 *             many there are: the pool cannot wait for itself.
 * Shares.     Tasks on behalf of an identity have a share of each lane's threads and of its queue (half, if nothing else
 *             was said). Beyond it they wait for the identity's own tasks only, first come first served; identities take
 *             turns.
 * Lost ones.  A thread that does not come back from a task can be given up: another takes its place, for as many lost
 *             ones as the lane has threads. It goes on counting against its identity's share. */
#ifndef SANDGATE_LOOP_WORKER_H
#define SANDGATE_LOOP_WORKER_H

#include "base/error.h"
#include "base/str.h"
#include "loop/loop.h"

#include <stddef.h>

struct worker_pool;
struct worker_tenant;

enum worker_lane {
    WORKER_CORE,         /* the core's own: resolving names */
    WORKER_CALL,         /* calls of plugins that reach the network (WORKER_CORE) at most */
    WORKER_WAITING_CALL, /* calls of plugins that may wait for calls of others */
    WORKER_LANE_COUNT
};

struct worker_task { /* embedded by its owner, who keeps it until `run` has returned */
    void (*run)(struct worker_task *);
    enum worker_lane lane;
    struct str identity; /* borrowed likewise; empty: nobody's, which has no share to keep to */
    struct worker_task *next; /* the pool's, as the tenant is */
    struct worker_tenant *tenant;
};

/* Threads are started as they are needed, up to `threads_max` a lane; at most `queue_max` tasks wait in a lane. */
int worker_pool_new(size_t threads_max, size_t queue_max, struct worker_pool **ret,
                    struct sg_error *err);

/* An identity's share of each lane's threads, at least 1; its share of the queue is as large a part. Before any task. */
void worker_pool_set_share(struct worker_pool *, size_t threads);

/* Waits for what runs and for what is queued, then joins. */
void worker_pool_free(struct worker_pool *);

/* Tasks that run (lost ones too) or wait. Any thread. Freeing blocks its thread: a loop's thread waits, in a fiber, for
 * 0 here first, since what runs may need the loop. */
size_t worker_pool_busy(struct worker_pool *);

/* Any thread. SG_E_LIMIT when the queue, or the identity's part of it, is full. */
int worker_submit(struct worker_pool *, struct worker_task *, struct sg_error *err);

/* Takes a task back that has not begun. False if it has: then `run` was called, or will be. Any thread. */
bool worker_withdraw(struct worker_pool *, struct worker_task *);

/* Gives up the thread that is in this task's `run`; has no effect on one that has returned. Any thread. */
void worker_give_up(struct worker_pool *, const struct worker_task *);

/* A fiber's function on a worker thread: fiber_blocking() (loop/loop.h) for a task whose lane and identity the caller has
 * set, and which others may give up. Waits likewise. */
struct worker_visit {
    struct worker_task task;
    struct loop_task back; /* the rest is the pool's */
    struct fiber *fiber;
    struct loop *home;
    int (*fn)(void *);
    void *arg;
    int result;
    bool is_done;
};
int fiber_visit_worker(struct worker_visit *, int (*fn)(void *), void *arg, struct sg_error *err);

#endif
