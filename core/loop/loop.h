/* Event loops and fibers.
 *
 * A loop is one thread: its events (libevent's core), its timers, its fibers. A fiber is a piece of straight-line code
 * with a stack of its own; functions marked "waits" switch back to the loop and return when the thing is done. Nothing
 * migrates: a fiber lives and ends on the loop that started it, and all functions that take a fiber are for that loop's
 * thread only. Fibers are resumed from the loop's run queue only, never inside a call-back of libevent or libcurl.
 *
 * Waiting.    Every wait ends when the thing is done (0), when its deadline or the fiber's own has come
 *             (SG_E_TIMEOUT), or when the fiber is cancelled (SG_E_CANCELLED; at once, and for every later wait too,
 *             until it is shielded). No lock is held across a wait: asserted.
 * Stacks.     256 KiB with a guard page below, pooled for each loop. */
#ifndef SANDGATE_LOOP_LOOP_H
#define SANDGATE_LOOP_LOOP_H

#include "base/clock.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct event_base;
struct loop;
struct fiber;
struct worker_pool;

#define FIBER_STACK_BYTES ((size_t)256 * 1024)

/* ---- loops ---- */

/* `index` is its place among the process's loops, 0 for the main thread's. `pool` is borrowed and may be NULL (then
 * fiber_blocking() is not to be used). */
int loop_new(unsigned index, struct worker_pool *pool, struct loop **ret, struct sg_error *err);

/* Frees a loop that does not run and has no fiber left (asserted). */
void loop_free(struct loop *);

/* Runs on the calling thread until loop_stop(). */
void loop_run(struct loop *);
void loop_stop(struct loop *); /* any thread */

struct loop *loop_self(void); /* of this thread; NULL outside loop_run() */
unsigned loop_index(const struct loop *);
struct event_base *loop_base(struct loop *);
struct worker_pool *loop_pool(struct loop *);
size_t loop_fibers(const struct loop *); /* alive; home thread only */

/* Something to do on a loop's thread. Embedded by its owner, who keeps it until `run` was called. */
struct loop_task {
    void (*run)(struct loop_task *);
    struct loop_task *next; /* the loop's */
};

/* Any thread; wakes the loop. Tasks of one poster run in order. */
void loop_post(struct loop *, struct loop_task *);

/* A place for what a higher layer keeps for each loop (curl multis, counters); home thread only. */
enum loop_slot { LOOP_SLOT_FETCH, LOOP_SLOT_GATEWAY, LOOP_SLOT_COUNT };
void loop_slot_set(struct loop *, enum loop_slot, void *value);
void *loop_slot(struct loop *, enum loop_slot);

/* ---- fibers ---- */

/* Starts `run(arg)`; it gets its turn from the run queue. `name` is a literal, for traces and the watchdog.
 * Fails only when no stack can be had (SG_E_LIMIT). The fiber is gone when `run` returns. */
int fiber_start(struct loop *home, const char *name, void (*run)(void *), void *arg,
                struct fiber **ret_fiber, struct sg_error *err);

struct fiber *fiber_self(void); /* NULL outside a fiber */
struct loop *fiber_home(const struct fiber *);

/* Waits until fiber_wake(). Returns 0, SG_E_TIMEOUT or SG_E_CANCELLED. A wake-up may come for another reason than the
 * one hoped for: test the condition in a loop. */
int fiber_park(int64_t deadline);

/* Puts a parked fiber on the run queue; has no effect on one that is queued or running (its next park returns at
 * once instead: a wake-up is never lost). */
void fiber_wake(struct fiber *);

/* From now on every wait returns SG_E_CANCELLED. */
void fiber_cancel(struct fiber *);
bool fiber_is_cancelled(const struct fiber *);

/* No wait of this fiber lasts beyond it; DEADLINE_NONE by default. */
void fiber_set_deadline(struct fiber *, int64_t deadline);
int64_t fiber_deadline(const struct fiber *);

/* While shielded, cancellation and the fiber's own deadline have no effect on waits (those with their own deadline
 * still end): for cleaning up. Nests. Acts on the running fiber. */
void fiber_shield(void);
void fiber_unshield(void);

/* Waits. Returns 0 after `ms`, or SG_E_TIMEOUT/SG_E_CANCELLED. */
int fiber_sleep(int64_t ms);

/* A pointer for whoever started the running fiber; NULL until it is set, and outside a fiber. */
void fiber_set_local(void *);
void *fiber_local(void);

/* Lets the others run first. */
void fiber_yield(void);

/* For work that goes on without waiting: 0, or what a wait would return now (SG_E_CANCELLED, SG_E_TIMEOUT for the
 * fiber's own deadline). */
int fiber_check(void);

/* Waits until fd is ready for `events` (SG_READ | SG_WRITE). With SG_HANGUP the peer's half-close counts too, without
 * reading. A descriptor is waited for by one fiber at a time. *ret_events is set on 0 only. A file on disk is always
 * ready; SG_E_INVALID for a number that is no open descriptor, SG_E_LIMIT where the kernel has no watch left. */
#define SG_HANGUP (1 << 2)
int fiber_wait_fd(int fd, int events, int64_t deadline, int *ret_events);

/* Waits, shielded, until fn(arg) has run on a worker thread; returns what it returned, or SG_E_LIMIT if the pool takes
 * nothing more. */
int fiber_blocking(int (*fn)(void *), void *arg, struct sg_error *err);

/* A fiber's watch on a descriptor while it does other things: `gone` is called on the loop, once, when the peer closed
 * or half-closed. */
struct fiber_watch;
struct fiber_watch *fiber_watch_hangup(int fd, void (*gone)(void *), void *arg);
void fiber_watch_end(struct fiber_watch *); /* NULL is fine */

/* ---- the watchdog ---- */

/* What the running fiber does, for the watchdog's log line and crash reports: literals or text that outlives it. */
void fiber_note(const char *step, const char *plugin);

struct watchdog_end {
    int64_t patience_ms; /* so long after the order to end the process must have ended */
    int exit_code;       /* if it has not, and is ended by the watchdog */
};

/* One thread that logs "loop_held" (loop, fiber, step, plugin, held_ms) when a loop has been in one piece of work for
 * more than LIMIT_LOOP_HELD_MS. And one that ends the process, with "calls_left" and the reason as the last line of
 * standard error, if it outlives an order to end: watchdog_end_begins(), or a SIGTERM or SIGINT that is blocked and that
 * nobody takes. */
int watchdog_start(struct loop *const *loops, size_t count, const struct watchdog_end *end,
                   struct sg_error *err);
void watchdog_end_begins(void); /* any thread; the first order counts */
void watchdog_stop(void);

#endif
