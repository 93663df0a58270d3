/* What the files of the worker pool share: lanes of threads, and the queues of the identities that wait for them. All of
 * it is under the pool's lock. */
#ifndef SANDGATE_LOOP_WORKER_INTERNAL_H
#define SANDGATE_LOOP_WORKER_INTERNAL_H

#include "base/lock.h"
#include "loop/worker.h"

#include <stdint.h>
#include <sys/queue.h>

#define POOL_MAGIC 0x504F4F4Cu /* "POOL" */

enum { TENANT_BUCKETS = 64 };

struct
    worker_tenant { /* an identity with tasks that run or wait in a lane; it ends with the last of them */
    LIST_ENTRY(worker_tenant) in_bucket;
    TAILQ_ENTRY(worker_tenant) in_ready;
    bool is_ready; /* it stands in the lane's list of those whose next task may begin */
    size_t running, queued;
    struct worker_task *first, **end;
    size_t name_len;
    char name[];
};

struct worker { /* a thread */
    pthread_t thread;
    struct lane *lane;
    const struct worker_task *task; /* that it is in, or NULL */
    bool is_lost;
};

struct lane {
    struct worker_pool *pool;
    pthread_cond_t changed;
    struct worker *workers; /* room for twice threads_max: as many may be lost as may run */
    size_t workers_count;
    size_t idle;          /* threads that look for a task, those just started among them */
    size_t running, lost; /* tasks in a thread: those that count, and those given up */
    size_t queued;
    LIST_HEAD(, worker_tenant) tenants[TENANT_BUCKETS];
    TAILQ_HEAD(worker_ready, worker_tenant) ready; /* the one who has waited longest first */
};

struct worker_pool {
    uint32_t magic;
    struct lock lock;
    size_t threads_max, queue_max, share;
    bool is_closing;
    struct lane lanes[WORKER_LANE_COUNT];
};

/* ---- worker_share.c ---- */

/* Puts a task at the end of its identity's queue; SG_E_LIMIT where that is full. */
int lane_put(struct lane *, struct worker_task *, struct sg_error *err);
/* The next task, which counts as running; NULL where none may begin now. */
struct worker_task *lane_take(struct lane *);
/* Takes one back; false if it is not in the queue. */
bool lane_remove(struct lane *, struct worker_task *);
/* A task of this tenant has ended, which may let another begin. */
void lane_task_ended(struct lane *, struct worker_tenant *);

#endif
