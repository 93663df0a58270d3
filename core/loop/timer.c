/* Deadlines of waiting fibers: a binary heap, earliest first. */
#include "loop/internal.h"

#include "base/check.h"

#include <stdlib.h>

static void place(struct loop *loop, size_t index, struct timer timer)
{
    loop->timers[index] = timer;
    timer.fiber->timer = index;
}

static void sift_up(struct loop *loop, size_t index, struct timer timer)
{
    while (index > 0 && loop->timers[(index - 1) / 2].at > timer.at) {
        place(loop, index, loop->timers[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    place(loop, index, timer);
}

static void sift_down(struct loop *loop, size_t index, struct timer timer)
{
    for (;;) {
        size_t child = 2 * index + 1;
        if (child >= loop->timers_count) {
            break;
        }
        if (child + 1 < loop->timers_count && loop->timers[child + 1].at < loop->timers[child].at) {
            child++;
        }
        if (loop->timers[child].at >= timer.at) {
            break;
        }
        place(loop, index, loop->timers[child]);
        index = child;
    }
    place(loop, index, timer);
}

void timer_set(struct fiber *fiber, int64_t at)
{
    struct loop *loop = fiber->home;
    struct timer timer = {at, fiber};
    if (at == DEADLINE_NONE) {
        return; /* an older entry finds nothing to do when it comes up */
    }
    if (fiber->timer != TIMER_NONE) {
        if (at < loop->timers[fiber->timer].at) {
            sift_up(loop, fiber->timer, timer);
        }
        return;
    }
    if (loop->timers_count == loop->timers_size) {
        loop->timers_size = loop->timers_size == 0 ? 64 : 2 * loop->timers_size;
        loop->timers =
            check_alloc(reallocarray(loop->timers, loop->timers_size, sizeof(struct timer)));
    }
    sift_up(loop, loop->timers_count++, timer);
}

void timer_remove(struct fiber *fiber)
{
    struct loop *loop = fiber->home;
    size_t index = fiber->timer;
    if (index == TIMER_NONE) {
        return;
    }
    CHECK(loop->timers[index].fiber == fiber);
    fiber->timer = TIMER_NONE;
    struct timer last = loop->timers[--loop->timers_count];
    if (index == loop->timers_count) {
        return;
    }
    if (index > 0 && loop->timers[(index - 1) / 2].at > last.at) {
        sift_up(loop, index, last);
    } else {
        sift_down(loop, index, last);
    }
}

/* Waits end in the order of their deadlines, however late the loop comes round: an entry that stands for too early a
 * time is moved to the right one first, even if that has passed too. */
void timers_fire(struct loop *loop, int64_t now)
{
    while (loop->timers_count > 0 && loop->timers[0].at <= now) {
        struct timer timer = loop->timers[0];
        bool is_parked = timer.fiber->state == FIBER_PARKED;
        int64_t until = is_parked ? fiber_park_until(timer.fiber) : DEADLINE_NONE;
        if (until == DEADLINE_NONE) {
            timer_remove(timer.fiber);
        } else if (until > timer.at) {
            timer.at = until;
            sift_down(loop, 0, timer);
        } else {
            timer_remove(timer.fiber);
            fiber_make_ready(timer.fiber, SG_E_TIMEOUT);
        }
    }
}
