/* The counted mutex. */
#include "base/lock.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <time.h>

static _Thread_local unsigned held;

void lock_init(struct lock *lock)
{
    CHECK(pthread_mutex_init(&lock->mutex, NULL) == 0);
}

void lock_destroy(struct lock *lock)
{
    CHECK(pthread_mutex_destroy(&lock->mutex) == 0);
}

void lock_take(struct lock *lock)
{
    CHECK(pthread_mutex_lock(&lock->mutex) == 0);
    held++;
}

void lock_release(struct lock *lock)
{
    CHECK(held > 0);
    held--;
    CHECK(pthread_mutex_unlock(&lock->mutex) == 0);
}

void lock_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    CHECK(pthread_condattr_init(&attributes) == 0);
    CHECK(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_cond_init(condition, &attributes) == 0);
    (void)pthread_condattr_destroy(&attributes); /* nothing can be lost here */
}

int lock_wait(struct lock *lock, pthread_cond_t *condition, long long deadline_ms)
{
    if (deadline_ms == DEADLINE_NONE) {
        return pthread_cond_wait(condition, &lock->mutex);
    }
    struct timespec until = {.tv_sec = deadline_ms / 1000, .tv_nsec = deadline_ms % 1000 * 1000000};
    return pthread_cond_timedwait(condition, &lock->mutex, &until);
}

unsigned locks_held(void)
{
    return held;
}
