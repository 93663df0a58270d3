/* A mutex that knows how many its thread holds, so that waiting with one held is caught at once (fiber_park asserts
 * that the count is 0). Held for a few instructions only, never across a call-back. */
#ifndef SANDGATE_BASE_LOCK_H
#define SANDGATE_BASE_LOCK_H

#include <pthread.h>

struct lock {
    pthread_mutex_t mutex;
};

#define LOCK_INIT                 \
    {                             \
        PTHREAD_MUTEX_INITIALIZER \
    }

void lock_init(struct lock *);
void lock_destroy(struct lock *);
void lock_take(struct lock *);
void lock_release(struct lock *);

/* On worker threads only: waits on the condition with the lock; to an absolute CLOCK_MONOTONIC time in ms, if not
 * DEADLINE_NONE. Returns 0, or ETIMEDOUT. The condition must have been made by lock_condition_init(). */
int lock_wait(struct lock *, pthread_cond_t *, long long deadline_ms);
void lock_condition_init(pthread_cond_t *);

unsigned locks_held(void); /* by this thread */

#endif
