/* Fibers: starting, switching, waiting and waking. All of it on the home loop's thread. */
#include "loop/internal.h"

#include "base/check.h"
#include "base/trace.h"
#include "loop/sanitize.h"

#include <stdlib.h>

/* ---- the run queue ---- */

static void queue_append(struct fiber *fiber)
{
    struct loop *loop = fiber->home;
    fiber->state = FIBER_QUEUED;
    fiber->next = NULL;
    *loop->queue_end = fiber;
    loop->queue_end = &fiber->next;
    loop->queue_count++;
}

static struct fiber *queue_take(struct loop *loop)
{
    struct fiber *fiber = loop->queue_first;
    CHECK(fiber != NULL);
    loop->queue_first = fiber->next;
    if (loop->queue_first == NULL) {
        loop->queue_end = &loop->queue_first;
    }
    loop->queue_count--;
    return fiber;
}

/* ---- beginning and end ---- */

static void list_add(struct loop *loop, struct fiber *fiber)
{
    fiber->older = loop->youngest;
    if (loop->youngest != NULL) {
        loop->youngest->younger = fiber;
    }
    loop->youngest = fiber;
    loop->fibers_count++;
}

static void list_remove(struct loop *loop, struct fiber *fiber)
{
    if (fiber->younger != NULL) {
        fiber->younger->older = fiber->older;
    } else {
        loop->youngest = fiber->older;
    }
    if (fiber->older != NULL) {
        fiber->older->younger = fiber->younger;
    }
    loop->fibers_count--;
}

static void switch_to_loop(struct fiber *fiber)
{
    struct loop *loop = fiber->home;
    void **fake = fiber->state == FIBER_ENDED ? NULL : &fiber->asan_fake_stack;
    sanitize_switch_start(fake, loop->stack_base, loop->stack_size, loop->tsan_fiber);
    context_switch(&fiber->context, &loop->context);
    sanitize_switch_finish(fiber->asan_fake_stack, &loop->stack_base, &loop->stack_size);
}

static void fiber_main(void *arg)
{
    struct fiber *fiber = arg;
    CHECK_MAGIC(fiber, FIBER_MAGIC);
    sanitize_switch_finish(NULL, &fiber->home->stack_base, &fiber->home->stack_size);
    trace_say(TRACE_FIBER, "fiber_begin", fiber, str_of(fiber->name), 0);
    fiber->run(fiber->arg);
    trace_say(TRACE_FIBER, "fiber_end", fiber, str_of(fiber->name), 0);
    CHECK(locks_held() == 0);
    CHECK(fiber->shields == 0);
    fiber->state = FIBER_ENDED;
    switch_to_loop(fiber);
    CHECK(!"a fiber that ended was resumed");
}

int fiber_start(struct loop *home, const char *name, void (*run)(void *), void *arg,
                struct fiber **ret_fiber, struct sg_error *err)
{
    CHECK_MAGIC(home, LOOP_MAGIC);
    CHECK(loop_self() == home || !atomic_load_explicit(&home->is_running, memory_order_relaxed));
    struct stack *stack = stack_get(&home->stacks, err);
    if (stack == NULL) {
        return err->code;
    }
    struct fiber *fiber = check_alloc(calloc(1, sizeof *fiber));
    fiber->magic = FIBER_MAGIC;
    fiber->home = home;
    fiber->name = name;
    fiber->run = run;
    fiber->arg = arg;
    fiber->stack = stack;
    fiber->deadline = DEADLINE_NONE;
    fiber->timer = TIMER_NONE;
    fiber->tsan_fiber = sanitize_fiber_new();
    context_init(&fiber->context, stack->base, FIBER_STACK_BYTES, fiber_main, fiber);
    list_add(home, fiber);
    queue_append(fiber);
    if (ret_fiber != NULL) {
        *ret_fiber = fiber;
    }
    return 0;
}

static void fiber_free(struct fiber *fiber)
{
    struct loop *loop = fiber->home;
    timer_remove(fiber);
    list_remove(loop, fiber);
    sanitize_fiber_free(fiber->tsan_fiber);
    stack_put(&loop->stacks, fiber->stack);
    fiber->magic = 0;
    free(fiber);
}

/* ---- running ---- */

static void show(struct loop *loop, const char *name, const char *step, const char *plugin)
{
    atomic_store_explicit(&loop->step, step, memory_order_relaxed);
    atomic_store_explicit(&loop->plugin, plugin, memory_order_relaxed);
    atomic_store_explicit(&loop->fiber_name, name, memory_order_relaxed);
    atomic_fetch_add_explicit(&loop->piece, 1, memory_order_release);
}

static void resume(struct loop *loop, struct fiber *fiber)
{
    CHECK_MAGIC(fiber, FIBER_MAGIC);
    CHECK(fiber->state == FIBER_QUEUED);
    fiber->state = FIBER_RUNNING;
    loop->running = fiber;
    show(loop, fiber->name, fiber->step, fiber->plugin);
    void *fake = NULL;
    sanitize_switch_start(&fake, fiber->stack->base, FIBER_STACK_BYTES, fiber->tsan_fiber);
    context_switch(&loop->context, &fiber->context);
    sanitize_switch_finish(fake, NULL, NULL);
    loop->running = NULL;
    if (fiber->state == FIBER_ENDED) {
        fiber_free(fiber);
    }
}

void fibers_run(struct loop *loop)
{
    for (size_t count = loop->queue_count; count > 0; count--) {
        resume(loop, queue_take(loop));
    }
    show(loop, NULL, NULL, NULL);
}

struct fiber *fiber_self(void)
{
    struct loop *loop = loop_self();
    return loop == NULL ? NULL : loop->running;
}

struct loop *fiber_home(const struct fiber *fiber)
{
    CHECK_MAGIC(fiber, FIBER_MAGIC);
    return fiber->home;
}

static struct fiber *running(void)
{
    struct fiber *fiber = fiber_self();
    CHECK_MAGIC(fiber, FIBER_MAGIC);
    return fiber;
}

void fiber_note(const char *step, const char *plugin)
{
    struct fiber *fiber = running();
    fiber->step = step;
    fiber->plugin = plugin;
    atomic_store_explicit(&fiber->home->step, step, memory_order_relaxed);
    atomic_store_explicit(&fiber->home->plugin, plugin, memory_order_relaxed);
}

void fiber_set_local(void *local)
{
    running()->local = local;
}

void *fiber_local(void)
{
    struct fiber *fiber = fiber_self();
    return fiber == NULL ? NULL : fiber->local;
}

/* ---- waiting ---- */

int64_t fiber_park_until(const struct fiber *fiber)
{
    return fiber->shields > 0 ? fiber->park_deadline
                              : deadline_min(fiber->park_deadline, fiber->deadline);
}

int fiber_park(int64_t deadline)
{
    struct fiber *fiber = running();
    CHECK(locks_held() == 0);
    if (fiber->is_cancelled && fiber->shields == 0) {
        return SG_E_CANCELLED;
    }
    if (fiber->is_woken) {
        fiber->is_woken = false;
        return 0;
    }
    fiber->park_deadline = deadline;
    fiber->state = FIBER_PARKED;
    timer_set(fiber, fiber_park_until(fiber));
    switch_to_loop(fiber);
    return fiber->park_result;
}

int fiber_park_for(const bool *done, int64_t deadline)
{
    struct fiber *fiber = running();
    int result = 0;
    bool is_woken = false; /* for something else */
    while (!*done && result == 0) {
        result = fiber_park(deadline);
        is_woken |= result == 0 && !*done;
    }
    fiber->is_woken |= is_woken;
    return *done ? 0 : result;
}

void fiber_make_ready(struct fiber *fiber, int park_result)
{
    CHECK(fiber->state == FIBER_PARKED);
    fiber->park_result = park_result;
    queue_append(fiber);
}

/* A fiber is touched by its home loop's thread only. */
static void check_home(const struct fiber *fiber)
{
    CHECK_MAGIC(fiber, FIBER_MAGIC);
    CHECK(loop_self() == fiber->home ||
          !atomic_load_explicit(&fiber->home->is_running, memory_order_relaxed));
}

void fiber_wake(struct fiber *fiber)
{
    check_home(fiber);
    if (fiber->state == FIBER_PARKED) {
        fiber_make_ready(fiber, 0);
    } else {
        fiber->is_woken = true;
    }
}

void fiber_cancel(struct fiber *fiber)
{
    check_home(fiber);
    fiber->is_cancelled = true;
    if (fiber->state == FIBER_PARKED && fiber->shields == 0) {
        fiber_make_ready(fiber, SG_E_CANCELLED);
    }
}

bool fiber_is_cancelled(const struct fiber *fiber)
{
    check_home(fiber);
    return fiber->is_cancelled;
}

void fiber_set_deadline(struct fiber *fiber, int64_t deadline)
{
    check_home(fiber);
    fiber->deadline = deadline;
    if (fiber->state == FIBER_PARKED) {
        timer_set(fiber, fiber_park_until(fiber));
    }
}

int64_t fiber_deadline(const struct fiber *fiber)
{
    CHECK_MAGIC(fiber, FIBER_MAGIC);
    return fiber->deadline;
}

void fiber_shield(void)
{
    running()->shields++;
}

void fiber_unshield(void)
{
    struct fiber *fiber = running();
    CHECK(fiber->shields > 0);
    fiber->shields--;
}

int fiber_sleep(int64_t ms)
{
    static const bool never = false;
    int64_t until = deadline_in(ms < 0 ? 0 : ms);
    int result = fiber_park_for(&never, until);
    return result == SG_E_TIMEOUT && clock_ms() >= until ? 0 : result;
}

void fiber_yield(void)
{
    struct fiber *fiber = running();
    CHECK(locks_held() == 0);
    queue_append(fiber);
    switch_to_loop(fiber);
}

int fiber_check(void)
{
    struct fiber *fiber = running();
    if (fiber->shields > 0) {
        return 0;
    }
    if (fiber->is_cancelled) {
        return SG_E_CANCELLED;
    }
    return fiber->deadline != DEADLINE_NONE && fiber->deadline <= clock_ms() ? SG_E_TIMEOUT : 0;
}
