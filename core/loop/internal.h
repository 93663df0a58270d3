/* What the files of core/loop share. Nobody else includes it, but for their tests. */
#ifndef SANDGATE_LOOP_INTERNAL_H
#define SANDGATE_LOOP_INTERNAL_H

#include "base/lock.h"
#include "loop/loop.h"
#include "loop/switch.h"

#include <event2/event_struct.h>
#include <stdatomic.h>
#include <stdint.h>

/* ---- stacks (stack.c) ---- */

enum { STACKS_KEPT_MAX = 512 }; /* unused ones that a loop keeps; more are unmapped */

struct stack {
    char *base; /* the lowest usable byte; the guard page lies below */
    struct stack *next;
    unsigned valgrind_id;
};

struct stack_pool {
    struct stack *kept;
    size_t kept_count;
    size_t mapped_count; /* kept and in use */
};

struct stack *stack_get(struct stack_pool *, struct sg_error *err); /* NULL: SG_E_LIMIT */
void stack_put(struct stack_pool *, struct stack *);
void stack_pool_clear(struct stack_pool *);

/* ---- fibers (fiber.c) ---- */

#define FIBER_MAGIC 0x46494252u /* "FIBR" */

enum fiber_state { FIBER_QUEUED, FIBER_RUNNING, FIBER_PARKED, FIBER_ENDED };

#define TIMER_NONE SIZE_MAX

struct fiber {
    uint32_t magic;
    enum fiber_state state;
    bool is_woken; /* fiber_wake() came while it was not parked: the next park returns at once */
    bool is_cancelled;
    unsigned shields;
    int park_result;       /* what woke it: 0, SG_E_TIMEOUT or SG_E_CANCELLED */
    int64_t deadline;      /* its own */
    int64_t park_deadline; /* of the wait that it is in */
    size_t timer;          /* its place in the loop's heap of timers, or TIMER_NONE */
    struct loop *home;
    struct fiber *next;               /* in the run queue */
    struct fiber *older, *younger;    /* in the loop's list of all */
    const char *name, *step, *plugin; /* for traces and the watchdog */
    void (*run)(void *);
    void *arg, *local;
    struct stack *stack;
    struct context context;
    void *asan_fake_stack, *tsan_fiber;
};

/* Runs those that are in the run queue now; those that are queued meanwhile wait for the next round. */
void fibers_run(struct loop *);

/* Puts a parked fiber on the run queue. */
void fiber_make_ready(struct fiber *, int park_result);

/* When a parked fiber's wait ends: its own deadline counts only unshielded. */
int64_t fiber_park_until(const struct fiber *);

/* Parks until *done, which someone sets before fiber_wake(). Wake-ups that were meant for something else are given back
 * at the end, so that none is lost. */
int fiber_park_for(const bool *done, int64_t deadline);

/* ---- timers (timer.c): a heap of fibers that wait with a deadline ----
 * An entry may stand for an earlier time than its fiber waits for: most waits end before their deadline, and a fiber
 * that parks again leaves its entry where it is. An entry that comes up too early is moved then. */

struct timer {
    int64_t at;
    struct fiber *fiber;
};

void timer_set(struct fiber *, int64_t at); /* sees to it that an entry comes up by then */
void timer_remove(struct fiber *);
void timers_fire(struct loop *, int64_t now);

/* ---- hang-ups (wait.c) ---- */

struct fiber_watch {
    uint32_t magic;
    int fd;
    bool is_told;
    struct loop *loop;
    void (*gone)(void *);
    void *arg;
    struct fiber_watch *next; /* of the same descriptor */
};

struct watched { /* one descriptor */
    struct fiber_watch *first;
    uint32_t generation; /* tells an event of an earlier use of the number apart */
};

struct watches {
    int epoll_fd;
    struct event event;
    struct watched *by_fd;
    size_t size;
};

int watches_init(struct loop *, struct sg_error *err);
void watches_clear(struct loop *);

/* ---- loops (loop.c) ---- */

#define LOOP_MAGIC 0x4C4F4F50u /* "LOOP" */

struct loop {
    uint32_t magic;
    unsigned index;
    struct event_base *base;
    struct worker_pool *pool;

    struct lock lock; /* tasks, is_asleep, is_stopping */
    struct loop_task *tasks_first, **tasks_end;
    bool is_asleep; /* or about to be: a poster has to ring */
    bool is_stopping;
    int bell_fd; /* an eventfd that wakes it */
    struct event bell;

    struct fiber *running; /* NULL while the loop itself runs */
    struct fiber *queue_first, **queue_end;
    size_t queue_count;
    struct fiber *youngest; /* all fibers */
    size_t fibers_count;
    struct context context; /* of the loop while a fiber runs */
    const void *stack_base; /* the thread's own, as AddressSanitizer sees it */
    size_t stack_size;
    void *tsan_fiber;
    struct stack_pool stacks;

    struct timer *timers; /* a binary heap */
    size_t timers_count, timers_size;
    struct event alarm;
    int64_t alarm_at;

    struct watches watches;
    void *slots[LOOP_SLOT_COUNT];

    /* For the watchdog, which reads them from its own thread. */
    atomic_bool is_running;
    atomic_uint_fast64_t piece;                     /* of work: counts on with each */
    _Atomic(const char *) fiber_name, step, plugin; /* fiber_name is NULL outside a fiber */
};

/* Makes loop_run() go round once more. Any thread. */
void loop_ring(struct loop *);

#endif
