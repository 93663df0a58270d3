/* What pid 1 does while the interpreter runs: it reaps, keeps the box within its memory, and ends the box when the
 * interpreter ends, when the gateway or the broker is gone, or when nobody has touched it for its life. With its end
 * the kernel ends everything that is left in the box. */
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WATCH_MS 50       /* between two looks at the memory while code runs */
#define WATCH_IDLE_MS 400 /* the longest such time while none runs and nothing uses the processor */
#define FREEZE_AFTER_MS \
    200 /* without code: the interpreter's side may tidy up, and runs in a row never wait for a thaw */

static void status_send(const struct init *init, const struct wire_status *status)
{
    /* The socket holds more than the few that there ever are; a gateway that is gone is seen by poll(). */
    (void)send(init->status, status, sizeof *status, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void reap(struct init *init)
{
    int status = 0;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
        if (pid == init->driver) {
            status_send(init, &(struct wire_status){.magic = WIRE_MAGIC,
                                                    .kind = WIRE_ENDED,
                                                    .value = status,
                                                    .bytes = group_kills(init->group.events)});
            _exit(0);
        }
        (void)worker_reap(init, pid);
    }
}

/* ---- freezing what a run has left ---- */

static void freeze(struct init *init, bool frozen)
{
    /* It can fail only if the group is gone, and that goes after this process. */
    if (init->frozen != frozen && group_freeze(&init->group, frozen)) {
        init->frozen = frozen;
    }
}

static void take_busy(struct init *init, bool busy)
{
    init->busy = busy;
    init->begun = true; /* no run is asked of an interpreter that has not said that it is there */
    init->memory_told = false;
    init->freeze_at = busy || init->group.freeze < 0 ? INT64_MAX : now_ms() + FREEZE_AFTER_MS;
    if (busy) {
        freeze(init, false);
    }
}

static void freeze_if_idle(struct init *init)
{
    if (now_ms() >= init->freeze_at) {
        init->freeze_at = INT64_MAX;
        freeze(init, true);
    }
}

/* ---- orders ---- */

/* False once the gateway has closed the socket. */
static bool orders_take(struct init *init)
{
    struct wire_order order;
    for (;;) {
        int fd;
        ssize_t len = packet_receive(init->status, &order, sizeof order, &fd, 1, MSG_DONTWAIT);
        if (len < 0 && (errno == EAGAIN || errno == EINTR)) {
            return true;
        }
        if (len != (ssize_t)sizeof order || order.magic != WIRE_MAGIC) {
            return false;
        }
        init->waits = false;
        if (order.kind == WIRE_FILE) {
            file_serve(init, fd);
        } else if (order.kind == WIRE_TOUCH) {
            init->life_until = now_ms() + order.life_ms;
        } else {
            take_busy(init, order.kind == WIRE_BUSY);
        }
    }
}

/* Once for each run, so that a box that goes over again and again does not fill the socket, in which its end must find
 * room. */
static void look_at_memory(struct init *init, struct memory_watch *watch)
{
    bool driver_killed = false;
    /* Pages of a template stay where they are until somebody writes to them: they are added to what may be used, since
     * nobody counts which of them have been copied since. */
    uint64_t limit = init->limits->memory_bytes + init->limits->loaded_bytes;
    uint64_t bytes = memory_enforce(watch, limit, init->driver, &driver_killed);
    if (bytes != 0 && (driver_killed || !init->memory_told)) {
        init->memory_told = true;
        status_send(init, &(struct wire_status){.magic = WIRE_MAGIC,
                                                .kind = WIRE_MEMORY,
                                                .bytes = bytes,
                                                .driver_killed = driver_killed});
    }
}

static void end_if_life_is_over(const struct init *init)
{
    if (now_ms() >= init->life_until) {
        status_send(init, &(struct wire_status){.magic = WIRE_MAGIC, .kind = WIRE_LIFE_OVER});
        _exit(0);
    }
}

static int signals_open(const struct init *init)
{
    sigset_t all, chld;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    int fd = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) {
        box_fail(init->status, "watch for ends (signalfd)");
    }
    return fd;
}

static int proc_open(const struct init *init)
{
    int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        box_fail(init->status, "open /proc");
    }
    return fd;
}

/* Until its process has settled it is a copy of the broker or of a template, with all that those have mapped, and hides which
 * of that could be memory that it shares: it would count whole. No code of a user runs before. */
static bool has_begun(struct init *init, const struct memory_watch *watch)
{
    init->begun = init->begun || memory_is_shown(watch, init->driver);
    return init->begun;
}

/* One look at the memory, where no group limits it and somebody uses the box. How long until the next, if nothing happens before. */
static int watch_memory(struct init *init, struct memory_watch *watch, int pause_ms)
{
    if (init->waits || init->frozen || !box_memory_is_polled(init->limits)) {
        return INT_MAX;
    }
    if (!has_begun(init, watch)) {
        return WATCH_MS;
    }
    if (memory_may_have_grown(watch)) {
        look_at_memory(init, watch);
        return WATCH_MS;
    }
    return init->busy ? WATCH_MS : pause_ms * 2 < WATCH_IDLE_MS ? pause_ms * 2 : WATCH_IDLE_MS;
}

static int until_next(const struct init *init, int pause_ms)
{
    int64_t next = init->life_until < init->freeze_at ? init->life_until : init->freeze_at;
    if (init->worker > 0 && init->worker_until < next) {
        next = init->worker_until;
    }
    int64_t left = next - now_ms();
    return left < 0 ? 0 : left < pause_ms ? (int)left : pause_ms;
}

void init_run(struct init *init)
{
    static struct memory_watch watch;
    watch.proc_fd = proc_open(init);
    struct pollfd events[] = {{signals_open(init), POLLIN, 0},
                              {init->status, POLLIN, 0},
                              {init->lifeline, 0, 0}}; /* only its hang-up counts */
    int pause_ms = WATCH_MS;
    for (;;) {
        /* Interrupted or over time: all is looked at anyway. */
        (void)poll(events, 3, until_next(init, pause_ms));
        struct signalfd_siginfo info[8];
        while (read(events[0].fd, info, sizeof info) > 0) {
        }
        reap(init);
        if (events[2].revents != 0 || !orders_take(init)) {
            _exit(0);
        }
        end_if_life_is_over(init);
        freeze_if_idle(init);
        worker_end_if_late(init);
        watch.worker = init->worker;
        pause_ms = watch_memory(init, &watch, pause_ms);
    }
}
