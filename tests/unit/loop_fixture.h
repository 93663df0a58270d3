/* What the tests of core/loop share: one loop, fibers on it, and a record of what happened in which order. */
#ifndef TESTS_UNIT_LOOP_FIXTURE_H
#define TESTS_UNIT_LOOP_FIXTURE_H

#include "base/buf.h"
#include "base/check.h"
#include "cunit_main.h"
#include "loop/loop.h"

static struct loop *loop;
static struct buf record;
static __attribute__((unused)) struct fiber *first; /* the one that others act on */

static struct fiber *start(const char *name, void (*run)(void *), void *arg)
{
    struct sg_error err = {0};
    struct fiber *fiber = NULL;
    CU_ASSERT_EQUAL_FATAL(fiber_start(loop, name, run, arg, &fiber, &err), 0);
    return fiber;
}

static void begin_with(struct worker_pool *pool)
{
    struct sg_error err = {0};
    CU_ASSERT_EQUAL_FATAL(loop_new(0, pool, &loop, &err), 0);
    buf_reset(&record);
    buf_puts(&record, "");
}

static inline void begin(void)
{
    begin_with(NULL);
}

static void end(void)
{
    CU_ASSERT_EQUAL(loop_fibers(loop), 0);
    loop_free(loop);
    buf_clear(&record);
}

/* Runs the loop until no fiber is left. */
static void stop_when_alone(void *arg)
{
    (void)arg;
    while (loop_fibers(loop) > 1) {
        fiber_yield();
    }
    loop_stop(loop);
}

static void run_to_end(void)
{
    start("stop", stop_when_alone, NULL);
    loop_run(loop);
}

#endif
