/* What pid 1 does while the interpreter runs: it reaps, keeps the box within its memory, and ends the box when the
 * interpreter ends, when the gateway or the broker is gone, or when nobody has touched it for its life. With its end
 * the kernel ends everything that is left in the box. */
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WATCH_MS 50       /* between two looks at the memory while code runs */
#define WATCH_IDLE_MS 400 /* the longest such time while none runs and nothing uses the processor */

static void status_send(const struct init *init, const struct wire_status *status)
{
    /* The socket holds more than the few that there ever are; a gateway that is gone is seen by poll(). */
    (void)send(init->status, status, sizeof *status, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void reap(const struct init *init)
{
    int status = 0;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
        if (pid == init->driver) {
            status_send(init, &(struct wire_status){
                                  .magic = WIRE_MAGIC, .kind = WIRE_ENDED, .value = status});
            _exit(0);
        }
    }
}

/* False once the gateway has closed the socket. */
static bool orders_take(struct init *init)
{
    struct wire_order order;
    for (;;) {
        ssize_t len = recv(init->status, &order, sizeof order, MSG_DONTWAIT);
        if (len < 0 && (errno == EAGAIN || errno == EINTR)) {
            return true;
        }
        if (len != (ssize_t)sizeof order || order.magic != WIRE_MAGIC) {
            return false;
        }
        init->waits = false;
        if (order.kind == WIRE_TOUCH) {
            init->life_until = now_ms() + order.life_ms;
        } else {
            init->busy = order.kind == WIRE_BUSY;
            init->memory_told = false;
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

void init_run(struct init *init)
{
    static struct memory_watch watch;
    watch.proc_fd = proc_open(init);
    struct pollfd events[] = {{signals_open(init), POLLIN, 0},
                              {init->status, POLLIN, 0},
                              {init->lifeline, 0, 0}}; /* only its hang-up counts */
    int pause_ms = WATCH_MS;
    for (;;) {
        /* In the pool nothing runs, and nothing is looked at until somebody comes. */
        (void)poll(events, 3,
                   init->waits ? -1
                               : pause_ms); /* interrupted or over time: all is looked at anyway */
        struct signalfd_siginfo info[8];
        while (read(events[0].fd, info, sizeof info) > 0) {
        }
        reap(init);
        if (events[2].revents != 0 || !orders_take(init)) {
            _exit(0);
        }
        end_if_life_is_over(init);
        if (memory_may_have_grown(&watch)) {
            look_at_memory(init, &watch);
            pause_ms = WATCH_MS;
        } else {
            pause_ms = init->busy                     ? WATCH_MS
                       : pause_ms * 2 < WATCH_IDLE_MS ? pause_ms * 2
                                                      : WATCH_IDLE_MS;
        }
    }
}
