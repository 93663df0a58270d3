/* The watchdog: one thread that looks at every loop a few times a second and names what holds it.
 *
 * A loop counts its pieces of work. A count that stands still while a fiber runs means that this fiber holds the loop.
 * While no fiber runs, the loop is either idle or in a call-back: it is rung, and an idle loop counts on at once. So a
 * loop pays one increment for each piece of work and reads no clock.
 *
 * It is also the only one that can end a process whose loops are held for ever: an end that was ordered has a last moment,
 * and if the process is still there then, this thread says what holds it and ends it. */
#include "loop/internal.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/log.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TICK_MS = LIMIT_LOOP_HELD_MS / 2 };

struct watched_loop {
    struct loop *loop;
    uint_fast64_t piece; /* as last seen */
    int64_t since;       /* when it was first seen, or rung */
    int64_t report_ms;   /* held for so long, it is named (again) */
    bool is_rung;
};

static struct {
    struct lock lock; /* is_stopping */
    pthread_cond_t changed;
    bool is_stopping;
    pthread_t thread;
    struct watched_loop *loops; /* NULL: not started */
    size_t count;
    struct watchdog_end end;
    atomic_int_fast64_t end_at; /* the last moment; DEADLINE_NONE: no end was ordered */
} watchdog = {.lock = LOCK_INIT};

/* ---- what holds a loop ---- */

struct holder {
    unsigned loop;
    const char *fiber, *step, *plugin;
    int64_t held_ms;
};

/* False if the loop has just gone on: the names may be another fiber's then. */
static bool holder_of(const struct watched_loop *watched, int64_t now, struct holder *ret)
{
    struct loop *loop = watched->loop;
    const char *fiber = atomic_load_explicit(&loop->fiber_name, memory_order_relaxed);
    *ret = (struct holder){.loop = loop->index,
                           .fiber = fiber != NULL ? fiber : "(call-back)",
                           .step = atomic_load_explicit(&loop->step, memory_order_relaxed),
                           .plugin = atomic_load_explicit(&loop->plugin, memory_order_relaxed),
                           .held_ms = now - watched->since};
    return atomic_load_explicit(&loop->piece, memory_order_acquire) == watched->piece;
}

static void holder_log(struct log_line *line, const struct holder *holder)
{
    log_int(line, "loop", holder->loop);
    log_text(line, "fiber", holder->fiber);
    log_text(line, "step", holder->step);
    log_text(line, "plugin", holder->plugin);
    log_int(line, "held_ms", holder->held_ms);
}

static void report(const struct watched_loop *watched, int64_t now)
{
    struct holder holder;
    struct log_line line;
    if (holder_of(watched, now, &holder)) {
        log_begin(&line, SG_WARN, "loop_held");
        holder_log(&line, &holder);
        log_end(&line);
    }
}

static void look_anew(struct watched_loop *watched, uint_fast64_t piece, int64_t now)
{
    watched->piece = piece;
    watched->since = now;
    watched->report_ms = LIMIT_LOOP_HELD_MS;
    watched->is_rung = false;
}

static void look_at(struct watched_loop *watched, int64_t now)
{
    struct loop *loop = watched->loop;
    uint_fast64_t piece = atomic_load_explicit(&loop->piece, memory_order_acquire);
    const char *fiber = atomic_load_explicit(&loop->fiber_name, memory_order_relaxed);
    if (piece != watched->piece || !atomic_load(&loop->is_running)) {
        look_anew(watched, piece, now);
    } else if (fiber == NULL && !watched->is_rung) {
        look_anew(watched, piece, now);
        watched->is_rung = true;
        loop_ring(loop);
    } else if (now - watched->since >= watched->report_ms) {
        watched->report_ms *= 2; /* what holds on is named again, ever more rarely */
        report(watched, now);
    }
}

/* ---- the end ---- */

void watchdog_end_begins(void)
{
    int_fast64_t none = DEADLINE_NONE;
    (void)atomic_compare_exchange_strong(
        &watchdog.end_at, &none, deadline_in(watchdog.end.patience_ms)); /* or it has begun */
}

/* The loop that should take a signal may be the one that is held: then it stays pending. */
static void look_for_signals(void)
{
    sigset_t pending;
    CHECK(sigpending(&pending) == 0);
    if (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1) {
        watchdog_end_begins();
    }
}

/* Counts the loops that are held, and names the first; *ret is all 0 if there is none. */
static size_t find_held(int64_t now, struct holder *ret)
{
    size_t count = 0;
    struct holder holder;
    *ret = (struct holder){0};
    for (size_t i = 0; i < watchdog.count; i++) {
        const struct watched_loop *watched = &watchdog.loops[i];
        if (now - watched->since >= LIMIT_LOOP_HELD_MS && holder_of(watched, now, &holder)) {
            *ret = count == 0 ? holder : *ret;
            count++;
        }
    }
    return count;
}

/* Without stdio, whose locks a held thread may have. */
static void say_end(const struct holder *holder)
{
    if (holder->fiber == NULL) {
        (void)dprintf(STDERR_FILENO, "sandgate: the end took too long and was forced\n");
        return;
    }
    (void)dprintf(STDERR_FILENO, "sandgate: the end was forced: loop %u is held by '%s'%s%s%s\n",
                  holder->loop, holder->step != NULL ? holder->step : holder->fiber,
                  holder->plugin != NULL ? " of plugin '" : "",
                  holder->plugin != NULL ? holder->plugin : "", holder->plugin != NULL ? "'" : "");
}

/* Nothing is freed: what holds a loop may still use it. */
static _Noreturn void end_process(int64_t now)
{
    struct holder holder;
    struct log_line line;
    size_t held = find_held(now, &holder);
    log_begin(&line, SG_ERROR, "calls_left");
    log_int(&line, "calls", (int64_t)held);
    if (held > 0) {
        holder_log(&line, &holder);
    }
    log_end(&line);
    say_end(&holder);
    _exit(watchdog.end.exit_code);
}

/* ---- the thread ---- */

static void look_around(int64_t now)
{
    for (size_t i = 0; i < watchdog.count; i++) {
        look_at(&watchdog.loops[i], now);
    }
    look_for_signals();
    if (now >= atomic_load(&watchdog.end_at)) {
        end_process(now);
    }
}

static void *watchdog_main(void *arg)
{
    (void)arg;
    (void)pthread_setname_np(pthread_self(), "watchdog"); /* for debuggers only */
    lock_take(&watchdog.lock);
    while (!watchdog.is_stopping) {
        (void)lock_wait(&watchdog.lock, &watchdog.changed, deadline_in(TICK_MS)); /* or stopped */
        lock_release(&watchdog.lock);
        look_around(clock_ms());
        lock_take(&watchdog.lock);
    }
    lock_release(&watchdog.lock);
    return NULL;
}

int watchdog_start(struct loop *const *loops, size_t count, const struct watchdog_end *end,
                   struct sg_error *err)
{
    CHECK(watchdog.loops == NULL);
    watchdog.loops = check_alloc(calloc(count + 1, sizeof *watchdog.loops));
    watchdog.count = count;
    watchdog.is_stopping = false;
    watchdog.end = *end;
    atomic_store(&watchdog.end_at, DEADLINE_NONE);
    for (size_t i = 0; i < count; i++) {
        watchdog.loops[i].loop = loops[i];
        look_anew(&watchdog.loops[i], 0, clock_ms());
    }
    lock_condition_init(&watchdog.changed);
    sigset_t all, before;
    sigfillset(&all);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    int error = pthread_create(&watchdog.thread, NULL, watchdog_main, NULL);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    if (error != 0) {
        CHECK(pthread_cond_destroy(&watchdog.changed) == 0);
        free(TAKE(watchdog.loops));
        return error_set(err, SG_E_LIMIT, "cannot start the watchdog: %s", strerror(error));
    }
    return 0;
}

void watchdog_stop(void)
{
    if (watchdog.loops == NULL) {
        return;
    }
    lock_take(&watchdog.lock);
    watchdog.is_stopping = true;
    CHECK(pthread_cond_signal(&watchdog.changed) == 0);
    lock_release(&watchdog.lock);
    CHECK(pthread_join(watchdog.thread, NULL) == 0);
    CHECK(pthread_cond_destroy(&watchdog.changed) == 0);
    free(TAKE(watchdog.loops));
}
