/* Beginning and ending a process: see life.h. life_live() tells the order. */
#include "gateway/life.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/trace.h"
#include "gateway/keeper.h"
#include "gateway/search_state.h"
#include "http/admission.h"
#include "http/fetch.h"
#include "session/records.h"

#include <event2/event.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    FIXED_FDS = 64, /* the log, the signals, what libraries and plugins hold */

    ROOM_MIN =
        64, /* descriptors for connections and containers, below which serving makes no sense */
    WORKER_QUEUE = 1024,
    CALLS_MS = 5000,     /* how long an end waits for plugins' calls to return */
    ENDING_MS = 1000,    /* … and the least for each kind of them */
    END_SLACK_MS = 5000, /* what an end may take beyond all that it waits for */
    QUIET_EVERY_MS = 10
};

/* ---- failing ---- */

void life_fail(struct life *life, const char *event, const struct sg_error *err)
{
    if (event != NULL) {
        struct log_line line;
        log_begin(&line, SG_ERROR, event);
        log_text(&line, "error", error_code_name(err->code));
        log_text(&line, "message", err->message);
        log_end(&line);
    }
    if (life->failure.code == 0) {
        life->failure = *err; /* the first is the cause */
    }
}

/* Behind all log lines of the way down, where an operator looks first. */
static void say_failure(const struct life *life)
{
    if (life->failure.code != 0) {
        fprintf(stderr, "sandgate: %s\n", life->failure.message);
    }
}

/* ---- plugins ---- */

static bool open_plugins(struct life *life)
{
    for (size_t i = 0; i < life->instances_count && life->stop_signal == 0; i++) {
        struct sg_error err = {0};
        if (instance_open(life->instances[i], &err) != 0) {
            if (life->stop_signal == 0) {
                life_fail(life, "plugin_open_failed", &err);
            }
            return false;
        }
    }
    return life->stop_signal == 0;
}

static void close_plugins(struct life *life)
{
    for (size_t i = life->instances_count; i > 0; i--) {
        if (life->instances[i - 1]->is_open) {
            instance_close(life->instances[i - 1]);
        }
    }
}

/* ---- threads ---- */

static void *run_loop(void *loop)
{
    struct sg_error err = {0};
    if (fetch_loop_init(loop, &err) != 0) {
        struct log_line line;
        log_begin(&line, SG_ERROR, "loop_failed");
        log_text(&line, "message", err.message);
        log_end(&line);
        abort();
    }
    loop_run(loop);
    fetch_loop_clear(loop);
    return NULL;
}

bool life_start_threads(struct life *life)
{
    for (size_t i = 1; i < life->gateway.loops_count; i++) {
        if (pthread_create(&life->threads[i], NULL, run_loop, life->loops[i]) != 0) {
            struct sg_error err = {0};
            error_set(&err, SG_E_LIMIT, "no thread can be made for loop %zu", i);
            life_fail(life, "start_failed", &err);
            return false;
        }
        life->threads_count = i;
    }
    return true;
}

static void quiet_end(struct quiet *quiet)
{
    loop_stop(quiet->loop);
    atomic_store(&quiet->has_stopped, true);
}

/* A loop's last fiber: stops it when no other is left, or when waiting has no end. */
static void quiet_run(void *arg)
{
    struct quiet *quiet = arg;
    while (loop_fibers(quiet->loop) > 1 && clock_ms() < quiet->deadline) {
        (void)fiber_sleep(QUIET_EVERY_MS); /* nothing cancels it */
    }
    atomic_store(&quiet->fibers_left, loop_fibers(quiet->loop) - 1);
    quiet_end(quiet);
}

static void quiet_begin(struct loop_task *task)
{
    struct quiet *quiet = (struct quiet *)((char *)task - offsetof(struct quiet, task));
    struct sg_error err = {0};
    if (fiber_start(quiet->loop, "quiet", quiet_run, quiet, NULL, &err) != 0) {
        atomic_store(&quiet->fibers_left, loop_fibers(quiet->loop));
        quiet_end(quiet);
    }
}

/* All that is waited for shares the time; but what waited for the others has a moment to end by itself. */
static int64_t calls_deadline(const struct life *life)
{
    int64_t least = deadline_in(ENDING_MS);
    return life->calls_deadline > least ? life->calls_deadline : least;
}

/* Each other loop stops when its fibers have ended; before that no worker may still need one. */
static void stop_threads(struct life *life)
{
    life->calls_deadline = deadline_in(CALLS_MS);
    while (worker_pool_busy(life->gateway.pool) > 0 && clock_ms() < life->calls_deadline) {
        (void)fiber_sleep(QUIET_EVERY_MS); /* shielded */
    }
    for (size_t i = 1; i <= life->threads_count; i++) {
        struct quiet *quiet = &life->quiet[i];
        quiet->task.run = quiet_begin;
        quiet->loop = life->loops[i];
        quiet->deadline = calls_deadline(life);
        loop_post(quiet->loop, &quiet->task);
    }
    for (size_t i = 1; i <= life->threads_count; i++) {
        while (!atomic_load(&life->quiet[i].has_stopped)) { /* for ever: the watchdog's affair */
            (void)fiber_sleep(QUIET_EVERY_MS);              /* shielded */
        }
        (void)pthread_join(life->threads[i], NULL); /* ours, joined once */
        life->calls_left += atomic_load(&life->quiet[i].fibers_left);
    }
    life->calls_left += worker_pool_busy(life->gateway.pool);
    life->threads_count = 0;
}

/* ---- signals ---- */

static void on_signal(evutil_socket_t fd, short events, void *arg)
{
    (void)events;
    struct life *life = arg;
    struct signalfd_siginfo info;
    while (read(fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGHUP && !life->stop_cancels) {
            life->wants_reload = true;
            fiber_wake(life->main_fiber);
        }
        if (info.ssi_signo != SIGTERM && info.ssi_signo != SIGINT) {
            continue; /* children are waited for by their descriptors */
        }
        if (life->stop_signal != 0) {
            _exit(1); /* asked a second time */
        }
        life->stop_signal = (int)info.ssi_signo;
        watchdog_end_begins();
        if (life->stop_cancels) {
            fiber_cancel(life->main_fiber);
        } else {
            fiber_wake(life->main_fiber);
        }
    }
}

/* Before any thread exists, so that all inherit it. */
static int block_signals(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGCHLD);
    (void)signal(SIGPIPE, SIG_IGN);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

bool life_wait(struct life *life)
{
    while (life->stop_signal == 0 && !life->wants_reload) {
        (void)fiber_park(DEADLINE_NONE); /* woken by the signals */
    }
    life->wants_reload = false;
    return life->stop_signal == 0;
}

/* ---- the main fiber ---- */

/* Plugins close alone: not while a call of one has not returned. */
static void main_end(struct life *life)
{
    watchdog_end_begins();
    fiber_shield();
    stop_threads(life);
    if (life->calls_left == 0) {
        close_plugins(life);
    }
    int64_t deadline = calls_deadline(life);
    while (loop_fibers(life->loops[0]) > 1 && clock_ms() < deadline) {
        (void)fiber_sleep(QUIET_EVERY_MS); /* shielded */
    }
    life->calls_left += loop_fibers(life->loops[0]) - 1;
    if (life->calls_left == 0) { /* else one of them may fetch */
        fetch_loop_clear(life->loops[0]);
    }
    fiber_unshield();
}

static void main_run(void *arg)
{
    struct life *life = arg;
    struct sg_error err = {0};
    int code = life->failure_code;
    life->main_fiber = fiber_self();
    if (fetch_loop_init(life->loops[0], &err) != 0) {
        life_fail(life, "start_failed", &err);
        loop_stop(life->loops[0]);
        return;
    }
    core_services_set(gateway_services());
    if (open_plugins(life)) {
        code = life->work(life);
    } else if (life->failure.code == 0) { /* asked to end before it had begun */
        code = life->stop_cancels ? 128 + life->stop_signal : 0;
    }
    life->exit_code = code;
    main_end(life);
    loop_stop(life->loops[0]);
}

/* ---- the whole ---- */

/* What calls that did not return may still touch must not be freed. */
static void leave_calls(const struct life *life)
{
    struct log_line line;
    log_begin(&line, SG_ERROR, "calls_left");
    log_int(&line, "calls", (int64_t)life->calls_left);
    log_end(&line);
    say_failure(life);
    _exit(life->failure_code);
}

static int make_loops(struct life *life, size_t wanted, struct sg_error *err)
{
    struct gateway *gateway = &life->gateway;
    gateway->loops = life->loops;
    CHECK(wanted > 0 && wanted <= LOOPS_MAX);
    int rc =
        worker_pool_new((size_t)gateway->config->server.workers, WORKER_QUEUE, &gateway->pool, err);
    if (rc == 0) {
        worker_pool_set_share(gateway->pool, config_worker_share(gateway->config));
    }
    for (size_t i = 0; rc == 0 && i < wanted; i++) {
        rc = loop_new((unsigned)i, gateway->pool, &life->loops[i], err);
        gateway->loops_count += rc == 0;
    }
    return rc;
}

static size_t fds_per_loop(const struct life *life)
{
    return HTTP_SERVER_LOOP_DESCRIPTORS(life->gateway.listen.count) + FETCH_LOOP_DESCRIPTORS;
}

static int life_prepare(struct life *life, size_t loops_count, struct sg_error *err)
{
    life->signal_fd = block_signals();
    CHECK(life->signal_fd >= 0);
    int rc = fetch_global_init(err);
    life->has_fetch = rc == 0;
    rc = rc == 0 ? make_loops(life, loops_count, err) : rc;
    if (rc == 0) {
        size_t fixed = FIXED_FDS + fds_per_loop(life) * loops_count;
        size_t limit = admission_init(fixed);
        if (admission_limit() < ROOM_MIN) {
            return error_set(err, SG_E_CONFIG,
                             "the limit of open files is %zu, too few: %zu are needed at the "
                             "least; raise it (ulimit -n, or LimitNOFILE= of the service)",
                             limit, fixed + ROOM_MIN);
        }
        admission_set_budget(life->gateway.config->server.memory_bytes,
                             config_memory_share(life->gateway.config));
        life->signal_event = event_new(loop_base(life->loops[0]), life->signal_fd,
                                       EV_READ | EV_PERSIST, on_signal, life);
        CHECK(life->signal_event != NULL);
        CHECK(event_add(life->signal_event, NULL) == 0);
        rc = fiber_start(life->loops[0], "main", main_run, life, &life->main_fiber, err);
    }
    return rc;
}

static void life_free(struct life *life)
{
    struct gateway *gateway = &life->gateway;
    worker_pool_free(gateway->pool);
    http_server_free(gateway->server);
    registry_free(gateway->registry);
    keeper_free(gateway->keeper);
    records_free(gateway->records);
    records_free(gateway->responses);
    records_free(gateway->relayed);
    records_free(gateway->pasts);
    search_state_free(gateway->searches);
    accounting_close(&gateway->accounting);
    if (life->signal_event != NULL) {
        event_free(life->signal_event);
    }
    for (size_t i = 0; i < gateway->loops_count; i++) {
        loop_free(life->loops[i]);
    }
    if (life->signal_fd >= 0) {
        (void)close(life->signal_fd); /* nothing was written that could be lost */
    }
    if (life->has_fetch) {
        fetch_global_clear();
    }
}

int life_live(struct life *life, size_t loops_count)
{
    struct sg_error err = {0};
    life->exit_code = life->failure_code;
    if (!trace_choose(getenv("SG_TRACE"))) {
        fprintf(stderr, "sandgate: SG_TRACE names an unknown topic; known are http, sse, plugin, "
                        "fiber; nothing is traced\n");
    }
    if (life_prepare(life, loops_count, &err) != 0) {
        life_fail(life, "start_failed", &err);
    } else {
        struct watchdog_end end = {.patience_ms =
                                       life->drain_ms + DELETIONS_MS + CALLS_MS + END_SLACK_MS,
                                   .exit_code = life->failure_code};
        bool watched = watchdog_start(life->loops, loops_count, &end, &err) == 0;
        loop_run(life->loops[0]);
        if (watched) {
            watchdog_stop();
        }
    }
    if (life->calls_left > 0) {
        leave_calls(life);
    }
    life_free(life);
    say_failure(life);
    return life->exit_code;
}
