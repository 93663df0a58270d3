/* Waiting for descriptors: libevent for reading and writing, an epoll of our own for hang-ups.
 *
 * Why an own one: libevent turns a reset connection (EPOLLERR) into "readable and writable", so that someone who asked
 * only for EV_CLOSED is never told and the loop spins; and it cannot mix edge- and level-triggered events on one
 * descriptor. The inner epoll hangs in libevent's as an ordinary readable descriptor; each descriptor stands in it with
 * EPOLLONESHOT, so that an event comes once. */
#include "loop/internal.h"

#include "base/check.h"
#include "base/log.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define WATCH_MAGIC 0x57415443u /* "WATC" */

enum { WATCH_EVENTS_MAX = 64 };

/* ---- hang-ups ---- */

static struct watched *watched_at(struct loop *loop, int fd)
{
    struct watches *watches = &loop->watches;
    CHECK(fd >= 0);
    if ((size_t)fd >= watches->size) {
        size_t size = (size_t)fd + 64 + watches->size;
        watches->by_fd = check_alloc(reallocarray(watches->by_fd, size, sizeof *watches->by_fd));
        memset(watches->by_fd + watches->size, 0, (size - watches->size) * sizeof *watches->by_fd);
        watches->size = size;
    }
    return &watches->by_fd[fd];
}

/* Each call-back may end and begin watches, also this descriptor's: the list is looked through anew. */
static void tell_gone(struct loop *loop, int fd, uint32_t generation)
{
    for (;;) {
        struct watched *watched = watched_at(loop, fd);
        struct fiber_watch *watch = watched->first;
        while (watch != NULL && watch->is_told) {
            watch = watch->next;
        }
        if (watch == NULL || watched->generation != generation) {
            return;
        }
        CHECK_MAGIC(watch, WATCH_MAGIC);
        watch->is_told = true;
        watch->gone(watch->arg);
    }
}

static void watches_ready(int epoll_fd, short what, void *arg)
{
    struct loop *loop = arg;
    struct epoll_event events[WATCH_EVENTS_MAX];
    (void)what;
    int count = epoll_wait(epoll_fd, events, WATCH_EVENTS_MAX, 0); /* what is left comes again */
    for (int i = 0; i < count; i++) {
        tell_gone(loop, (int)(events[i].data.u64 & UINT32_MAX),
                  (uint32_t)(events[i].data.u64 >> 32));
    }
}

int watches_init(struct loop *loop, struct sg_error *err)
{
    struct watches *watches = &loop->watches;
    watches->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (watches->epoll_fd < 0) {
        return error_set(err, SG_E_LIMIT, "cannot make an event loop: epoll_create1: %s",
                         strerror(errno));
    }
    CHECK(event_assign(&watches->event, loop->base, watches->epoll_fd, EV_READ | EV_PERSIST,
                       watches_ready, loop) == 0);
    if (event_add(&watches->event, NULL) != 0) {
        return error_set(err, SG_E_LIMIT, "cannot make an event loop: %s", strerror(errno));
    }
    return 0;
}

void watches_clear(struct loop *loop)
{
    struct watches *watches = &loop->watches;
    for (size_t i = 0; i < watches->size; i++) {
        CHECK(watches->by_fd[i].first == NULL); /* every watch was ended */
    }
    if (watches->epoll_fd >= 0) {
        (void)close(watches->epoll_fd); /* nothing was written that could be lost */
    }
    free(watches->by_fd);
}

/* Enters the descriptor, or arms it again for one more watch. False if the kernel cannot watch it. */
static bool watch_arm(struct loop *loop, int fd)
{
    struct watched *watched = watched_at(loop, fd);
    int operation = watched->first == NULL ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    uint32_t generation = watched->generation + (watched->first == NULL);
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT,
                                .data.u64 = (uint64_t)generation << 32 | (uint32_t)fd};
    if (epoll_ctl(loop->watches.epoll_fd, operation, fd, &event) != 0) {
        return false;
    }
    watched->generation = generation;
    return true;
}

struct fiber_watch *fiber_watch_hangup(int fd, void (*gone)(void *), void *arg)
{
    struct loop *loop = loop_self();
    CHECK_MAGIC(loop, LOOP_MAGIC);
    if (!watch_arm(loop, fd)) {
        struct log_line line;
        log_begin(&line, SG_WARN, "hangup_not_watched");
        log_text(&line, "reason", strerror(errno));
        log_end(&line);
        return NULL;
    }
    struct fiber_watch *watch = check_alloc(calloc(1, sizeof *watch));
    *watch = (struct fiber_watch){
        .magic = WATCH_MAGIC, .fd = fd, .loop = loop, .gone = gone, .arg = arg};
    struct watched *watched = watched_at(loop, fd);
    watch->next = watched->first;
    watched->first = watch;
    return watch;
}

void fiber_watch_end(struct fiber_watch *watch)
{
    if (watch == NULL) {
        return;
    }
    CHECK_MAGIC(watch, WATCH_MAGIC);
    CHECK(loop_self() == watch->loop);
    struct watched *watched = watched_at(watch->loop, watch->fd);
    struct fiber_watch **at = &watched->first;
    while (*at != watch) {
        at = &(*at)->next;
    }
    *at = watch->next;
    if (watched->first == NULL) {
        /* Fails only if the descriptor was closed already, and then the kernel has removed it. */
        (void)epoll_ctl(watch->loop->watches.epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
    }
    watch->magic = 0;
    free(watch);
}

/* ---- waiting for a descriptor ---- */

struct fd_wait { /* on the waiting fiber's stack */
    struct fiber *fiber;
    int wanted, ready; /* SG_READ | SG_WRITE | SG_HANGUP */
    bool is_ready;
};

static void wait_ended(struct fd_wait *wait, int ready)
{
    wait->ready |= ready;
    wait->is_ready = true;
    fiber_wake(wait->fiber);
}

static void fd_ready(int fd, short what, void *arg)
{
    struct fd_wait *wait = arg;
    (void)fd;
    int ready = ((what & EV_READ) != 0 ? SG_READ : 0) | ((what & EV_WRITE) != 0 ? SG_WRITE : 0);
    wait_ended(wait, ready & wait->wanted);
}

static void fd_hung_up(void *arg)
{
    wait_ended(arg, SG_HANGUP);
}

/* Files on disk cannot be waited for: they are always ready. Memory is not told as a limit: whoever waits for a client would
 * close its connection without a word. */
static int not_waitable(int error, int events, int *ret_events)
{
    if (error == ENOMEM) {
        check_out_of_memory();
    }
    if (error == ENOSPC) { /* the user's watches of epoll are used up */
        return SG_E_LIMIT;
    }
    if (error != EPERM) {
        return SG_E_INVALID;
    }
    *ret_events = events & ~SG_HANGUP;
    return 0;
}

int fiber_wait_fd(int fd, int events, int64_t deadline, int *ret_events)
{
    struct fd_wait wait = {.fiber = fiber_self(), .wanted = events};
    CHECK(wait.fiber != NULL);
    CHECK(events != 0 && (events & ~(SG_READ | SG_WRITE | SG_HANGUP)) == 0);
    if (fd < 0) {
        return SG_E_INVALID; /* libevent would wait for ever */
    }
    struct fiber_watch *watch = NULL;
    struct event event;
    short what = (short)(((events & SG_READ) != 0 ? EV_READ : 0) |
                         ((events & SG_WRITE) != 0 ? EV_WRITE : 0));
    CHECK(event_assign(&event, wait.fiber->home->base, fd, what, fd_ready, &wait) == 0);
    if (what != 0 && event_add(&event, NULL) != 0) {
        return not_waitable(errno, events, ret_events);
    }
    if ((events & SG_HANGUP) != 0) {
        watch = fiber_watch_hangup(fd, fd_hung_up, &wait);
    }
    bool is_waitable = what != 0 || watch != NULL;
    int result = is_waitable ? fiber_park_for(&wait.is_ready, deadline) : SG_E_INVALID;
    fiber_watch_end(watch);
    (void)event_del(&event); /* has no effect on one that came or was not added */
    if (result == 0) {
        *ret_events = wait.ready;
    }
    return result;
}
