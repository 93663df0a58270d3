/* Waiting across loops. A waiter is a heap record of which the waiting fiber and the message to it each hold a
 * reference: whoever grants never touches a fiber, only the record, under the lock; the message then wakes the fiber on
 * its own loop, if it is still there. */
#include "session/internal.h"

#include "base/check.h"

#include <stdlib.h>

static void waiter_unref(struct waiter *waiter)
{
    CHECK(waiter->refs > 0);
    if (--waiter->refs == 0) {
        CHECK(waiter->state != WAITER_WAITING);
        container_unref(waiter->container);
        waiter->magic = 0;
        free(waiter);
    }
}

static void wake_on_loop(struct loop_task *task)
{
    struct waiter *waiter = INDEX_OWNER(task, struct waiter, message.task);
    CHECK_MAGIC(waiter, WAITER_MAGIC);
    struct registry *registry = waiter->registry;
    if (waiter->fiber != NULL) {
        fiber_wake(waiter->fiber);
    }
    registry_lock(registry);
    waiter_unref(waiter);
    registry_arrived(registry);
    registry_unlock(registry);
}

struct waiter *waiter_new(struct registry *registry, const struct lease *lease)
{
    struct waiter *waiter = check_alloc(calloc(1, sizeof *waiter));
    CHECK(fiber_self() != NULL);
    waiter->magic = WAITER_MAGIC;
    waiter->refs = 1;
    waiter->registry = registry;
    waiter->fiber = fiber_self();
    waiter->lease = lease;
    waiter->message.task.run = wake_on_loop;
    waiter->message.loop = fiber_home(waiter->fiber);
    list_init(&waiter->link);
    return waiter;
}

static void waiter_settle(struct waiter *waiter, enum waiter_state state)
{
    CHECK(waiter->state == WAITER_WAITING);
    room_leave(waiter);
    list_remove(&waiter->link);
    waiter->state = state;
    bool is_own = waiter->message.loop == loop_self() && waiter->fiber == fiber_self();
    if (!is_own) { /* else it looks before it parks */
        waiter->refs++;
        registry_post(waiter->registry, &waiter->message);
    }
}

void waiter_grant(struct waiter *waiter, struct container *container)
{
    waiter->container = container == NULL ? NULL : container_ref(container);
    waiter_settle(waiter, WAITER_GRANTED);
}

void waiter_fail(struct waiter *waiter, const struct sg_error *err)
{
    CHECK(err->code != 0);
    waiter->err = *err;
    waiter_settle(waiter, WAITER_FAILED);
}

/* Is it time to give up, after a park that ended with `code`? Then it does. */
static bool waiter_give_up(struct waiter *waiter, int code, int64_t room_deadline, int64_t deadline)
{
    bool gives_up = false;
    registry_lock(waiter->registry);
    if (waiter->state == WAITER_WAITING) {
        int64_t until = waiter->queue == TABLE_LIMIT_NONE ? deadline : room_deadline;
        gives_up = code != SG_E_TIMEOUT || clock_ms() >= until;
    }
    if (gives_up) {
        waiter->stood_before = waiter->queue;
        room_leave(waiter);
        list_remove(&waiter->link);
        waiter->state = WAITER_ABANDONED;
    }
    registry_unlock(waiter->registry);
    return gives_up;
}

int waiter_wait(struct waiter *waiter, int64_t room_deadline, int64_t deadline)
{
    deadline = deadline_min(deadline, fiber_deadline(fiber_self()));
    room_deadline = deadline_min(room_deadline, deadline);
    for (;;) {
        registry_lock(waiter->registry);
        bool is_waiting = waiter->state == WAITER_WAITING;
        bool is_for_room = waiter->queue != TABLE_LIMIT_NONE;
        registry_unlock(waiter->registry);
        if (!is_waiting) {
            return 0;
        }
        int code = fiber_park(is_for_room ? room_deadline : deadline);
        if (code != 0 && waiter_give_up(waiter, code, room_deadline, deadline)) {
            return code;
        }
        if (code == SG_E_CANCELLED) { /* settled in the same moment: for the caller to pass on */
            return code;
        }
    }
}

void waiter_leave(struct waiter *waiter)
{
    struct registry *registry = waiter->registry;
    waiter->fiber = NULL;
    registry_lock(registry);
    waiter_unref(waiter);
    registry_unlock(registry);
}
