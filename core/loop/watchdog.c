/* The watchdog: one thread that looks at every loop a few times a second and names what holds it.
 *
 * A loop counts its pieces of work. A count that stands still while a fiber runs means that this fiber holds the loop.
 * While no fiber runs, the loop is either idle or in a call-back: it is rung, and an idle loop counts on at once. So a
 * loop pays one increment for each piece of work and reads no clock. */
#include "loop/internal.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/log.h"

#include <signal.h>
#include <stdlib.h>

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
} watchdog = {.lock = LOCK_INIT};

static void report(const struct watched_loop *watched, const char *fiber, int64_t held_ms)
{
    struct loop *loop = watched->loop;
    const char *step = atomic_load_explicit(&loop->step, memory_order_relaxed);
    const char *plugin = atomic_load_explicit(&loop->plugin, memory_order_relaxed);
    if (atomic_load_explicit(&loop->piece, memory_order_acquire) != watched->piece) {
        return; /* it has just gone on, and the names may be another fiber's */
    }
    struct log_line line;
    log_begin(&line, SG_WARN, "loop_held");
    log_int(&line, "loop", loop->index);
    log_text(&line, "fiber", fiber != NULL ? fiber : "(call-back)");
    log_text(&line, "step", step);
    log_text(&line, "plugin", plugin);
    log_int(&line, "held_ms", held_ms);
    log_end(&line);
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
        report(watched, fiber, now - watched->since);
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
        int64_t now = clock_ms();
        for (size_t i = 0; i < watchdog.count; i++) {
            look_at(&watchdog.loops[i], now);
        }
        lock_take(&watchdog.lock);
    }
    lock_release(&watchdog.lock);
    return NULL;
}

int watchdog_start(struct loop *const *loops, size_t count, struct sg_error *err)
{
    CHECK(watchdog.loops == NULL);
    watchdog.loops = check_alloc(calloc(count + 1, sizeof *watchdog.loops));
    watchdog.count = count;
    watchdog.is_stopping = false;
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
