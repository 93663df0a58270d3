/* A gate for tests with threads: they wait until it is opened; the test waits until so many wait. */
#ifndef TESTS_UNIT_GATE_H
#define TESTS_UNIT_GATE_H

#include "base/clock.h"
#include "base/lock.h"

#include <stdbool.h>
#include <stddef.h>

static struct lock gate_lock = LOCK_INIT;
static pthread_cond_t gate_changed;
static size_t gate_waiting;
static bool gate_open;

static inline void gate_close(void)
{
    gate_waiting = 0;
    gate_open = false;
    lock_condition_init(&gate_changed);
}

static inline void gate_wait(void)
{
    lock_take(&gate_lock);
    gate_waiting++;
    pthread_cond_broadcast(&gate_changed);
    while (!gate_open) {
        lock_wait(&gate_lock, &gate_changed, DEADLINE_NONE);
    }
    lock_release(&gate_lock);
}

static inline void gate_await(size_t waiting)
{
    lock_take(&gate_lock);
    while (gate_waiting < waiting) {
        lock_wait(&gate_lock, &gate_changed, DEADLINE_NONE);
    }
    lock_release(&gate_lock);
}

static inline void gate_let_go(void)
{
    lock_take(&gate_lock);
    gate_open = true;
    pthread_cond_broadcast(&gate_changed);
    lock_release(&gate_lock);
}

#endif
