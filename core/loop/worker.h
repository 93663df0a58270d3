/* Worker threads: where plugins may block and where CPU is burnt. One pool for the process. */
#ifndef SANDGATE_LOOP_WORKER_H
#define SANDGATE_LOOP_WORKER_H

#include "base/error.h"

#include <stddef.h>

struct worker_pool;

struct worker_task { /* embedded by its owner, who keeps it until `run` has returned */
    void (*run)(struct worker_task *);
    struct worker_task *next; /* the pool's */
};

/* Threads are started as they are needed, up to `threads_max`; at most `queue_max` tasks wait. */
int worker_pool_new(size_t threads_max, size_t queue_max, struct worker_pool **ret,
                    struct sg_error *err);

/* Waits for what runs and for what is queued, then joins. */
void worker_pool_free(struct worker_pool *);

/* Tasks that run or wait. Any thread. Freeing blocks its thread: a loop's thread waits, in a fiber, for 0 here first,
 * since what runs may need the loop. */
size_t worker_pool_busy(struct worker_pool *);

/* Any thread. SG_E_LIMIT when the queue is full. */
int worker_submit(struct worker_pool *, struct worker_task *, struct sg_error *err);

#endif
