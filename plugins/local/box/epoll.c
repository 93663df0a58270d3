/* epoll by poll(), for node: a library that every program of a box loads (/etc/ld.so.preload of the box's own root) where
 * boxes have the gateway's uid. The kernel counts the watches of epoll for each user of the host, so one box could use up
 * those that the gateway lives on, and the filter refuses it there; libuv, which node waits by, knows nothing else. Here a
 * set of watches is memory of the process itself, bounded by the number of its descriptors.
 *
 * It stands in for epoll only in programs that hold libuv, and does what libuv asks for: it takes a descriptor out of a set
 * before it closes it, and asks for no edges. All other programs get the kernel's own answer, as if this were not here.
 * What is asked for beyond that is served as well as poll() can:
 *
 *   EPOLLET         is told as long as it lasts, not once
 *   EPOLLONESHOT    works
 *   EPOLLEXCLUSIVE  means nothing within one process
 *   a set in a set  is ready when this one's waiter is to be woken, and not when its watches are
 *   a descriptor that was closed is taken out when that is seen, and after fork() each process has a set of its own
 *
 * No boundary: code in the process can do with it what it likes. The filter is the boundary.
 *
 * The number of a set is that of an eventfd, through which a change of its watches reaches whoever waits. Since libuv
 * closes it by a bare system call, a set is not given back before its number comes again. */
#define EPOLL_OFFERED __attribute__((visibility("default")))

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

_Static_assert(EPOLLIN == POLLIN && EPOLLPRI == POLLPRI && EPOLLOUT == POLLOUT &&
                   EPOLLERR == POLLERR && EPOLLHUP == POLLHUP && EPOLLRDHUP == 0x2000,
               "the two have the same bits");

#define EVENTS_OF_POLL 0x3fffu /* of those of epoll; the others say how to tell */
#define POLLS_ON_STACK 64
#define NS_PER_S 1000000000ll

struct watch {
    int fd;
    bool is_told; /* EPOLLONESHOT: nothing more until it is changed */
    uint32_t events;
    epoll_data_t data;
};

struct set {
    struct set *next;
    int fd;
    unsigned waiters;
    size_t count, room;
    size_t first; /* to be told, so that those behind `maxevents` get their turn */
    struct watch *watches;
};

/* Over all sets; held for a few instructions, and never while waiting. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct set *sets;

/* libuv's own, exported by node for its addons, or of the library; not there in any other program. */
extern int uv_run(void *loop, int mode) __attribute__((weak));

static bool is_wanted(void)
{
    return uv_run != NULL;
}

static int fail(int error)
{
    errno = error;
    return -1;
}

/* ---- sets, with the lock held ---- */

static struct set *set_find(int fd)
{
    struct set *set = sets;
    while (set != NULL && set->fd != fd) {
        set = set->next;
    }
    return set;
}

static struct set *set_add(int fd)
{
    struct set *set = set_find(fd);
    if (set == NULL) {
        set = calloc(1, sizeof *set);
        if (set != NULL) {
            set->fd = fd;
            set->next = sets;
            sets = set;
        }
    } else { /* the one before was closed */
        set->count = set->first = 0;
        set->waiters = 0;
    }
    return set;
}

static struct watch *watch_find(struct set *set, int fd)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->watches[i].fd == fd) {
            return &set->watches[i];
        }
    }
    return NULL;
}

static int watch_add(struct set *set, int fd, const struct epoll_event *event)
{
    if (set->count == set->room) {
        size_t room = set->room == 0 ? 16 : set->room * 2;
        struct watch *grown = realloc(set->watches, room * sizeof *grown);
        if (grown == NULL) {
            return fail(ENOMEM);
        }
        set->watches = grown;
        set->room = room;
    }
    set->watches[set->count++] = (struct watch){fd, false, event->events, event->data};
    return 0;
}

static void watch_remove(struct set *set, struct watch *watch)
{
    *watch = set->watches[--set->count];
}

/* As the kernel has it: files and folders cannot be waited for, and of devices those not that are always ready. */
static int check_kind(int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return -1;
    }
    bool is_memory = S_ISCHR(st.st_mode) && major(st.st_rdev) == 1;
    bool is_ready = is_memory && (minor(st.st_rdev) == 3 || minor(st.st_rdev) == 5 ||
                                  minor(st.st_rdev) == 7); /* null, zero, full */
    return S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || is_ready ? fail(EPERM) : 0;
}

static int set_change(struct set *set, int operation, int fd, const struct epoll_event *event)
{
    struct watch *watch = watch_find(set, fd);
    switch (operation) {
    case EPOLL_CTL_ADD:
        return watch != NULL ? fail(EEXIST) : watch_add(set, fd, event);
    case EPOLL_CTL_MOD:
        if (watch == NULL) {
            return fail(ENOENT);
        }
        *watch = (struct watch){fd, false, event->events, event->data};
        return 0;
    case EPOLL_CTL_DEL:
        if (watch == NULL) {
            return fail(ENOENT);
        }
        watch_remove(set, watch);
        return 0;
    default:
        return fail(EINVAL);
    }
}

/* A descriptor that is none of a set, or none at all. */
static int refuse(int fd)
{
    return fcntl(fd, F_GETFD) < 0 ? -1 : fail(EINVAL);
}

/* ---- waiting ---- */

struct wait {
    int fd;
    struct epoll_event *events;
    int events_max;
    const sigset_t *signals;
    bool is_bounded;
    struct timespec until;
    size_t count;         /* of polls: the set's eventfd, then its watches */
    struct pollfd *polls; /* `few`, or allocated */
    struct pollfd few[POLLS_ON_STACK];
};

static struct timespec time_left(const struct wait *wait)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long long left =
        (wait->until.tv_sec - now.tv_sec) * NS_PER_S + wait->until.tv_nsec - now.tv_nsec;
    left = left > 0 ? left : 0;
    return (struct timespec){left / NS_PER_S, left % NS_PER_S};
}

/* What is watched now, with the lock held; as a waiter from here on. */
static int wait_prepare(struct wait *wait)
{
    struct set *set = set_find(wait->fd);
    if (set == NULL) {
        return refuse(wait->fd);
    }
    wait->count = set->count + 1;
    if (wait->count > POLLS_ON_STACK) {
        wait->polls = malloc(wait->count * sizeof *wait->polls);
        if (wait->polls == NULL) {
            return fail(ENOMEM);
        }
    }
    wait->polls[0] = (struct pollfd){.fd = set->fd, .events = POLLIN};
    for (size_t i = 0; i < set->count; i++) {
        const struct watch *watch = &set->watches[i];
        wait->polls[i + 1] = (struct pollfd){.fd = watch->is_told ? -1 : watch->fd,
                                             .events = (short)(watch->events & EVENTS_OF_POLL)};
    }
    set->waiters++;
    return 0;
}

/* One that another thread has changed meanwhile is told as it is now. */
static void tell(struct wait *wait, struct set *set, const struct pollfd *polled, int *count)
{
    struct watch *watch = watch_find(set, polled->fd);
    if (watch == NULL) {
        return;
    }
    if ((polled->revents & POLLNVAL) != 0) {
        watch_remove(set, watch);
        return;
    }
    uint32_t wanted = (watch->events & EVENTS_OF_POLL) | EPOLLERR | EPOLLHUP;
    uint32_t events = (uint32_t)(unsigned short)polled->revents & wanted;
    if (events != 0 && !watch->is_told) {
        wait->events[(*count)++] = (struct epoll_event){.events = events, .data = watch->data};
        watch->is_told = (watch->events & EPOLLONESHOT) != 0;
    }
}

/* How many events there are, with the lock held; a waiter no longer. */
static int wait_conclude(struct wait *wait)
{
    struct set *set = set_find(wait->fd);
    size_t watches = wait->count - 1;
    int count = 0;
    eventfd_t changes;
    if (set->waiters > 0 && --set->waiters == 0 && wait->polls[0].revents != 0) {
        (void)eventfd_read(set->fd, &changes); /* the last one: the others are to see it too */
    }
    for (size_t i = 0, at = set->first; i < watches && count < wait->events_max; i++, at++) {
        const struct pollfd *polled = &wait->polls[at % watches + 1];
        if (polled->revents != 0) {
            tell(wait, set, polled, &count);
            set->first = at % watches + 1;
        }
    }
    return count;
}

/* One look. How many events it brought, or -1; *ret_is_over if there is no more to wait for. */
static int wait_once(struct wait *wait, bool *ret_is_over)
{
    wait->polls = wait->few;
    pthread_mutex_lock(&lock);
    int result = wait_prepare(wait);
    pthread_mutex_unlock(&lock);
    if (result != 0) {
        *ret_is_over = true;
        return result;
    }
    struct timespec left = wait->is_bounded ? time_left(wait) : (struct timespec){0, 0};
    int ready = ppoll(wait->polls, wait->count, wait->is_bounded ? &left : NULL, wait->signals);
    int error = errno;
    if (ready <= 0) {
        for (size_t i = 0; i < wait->count; i++) {
            wait->polls[i].revents = 0;
        }
    }
    pthread_mutex_lock(&lock);
    int count = wait_conclude(wait);
    pthread_mutex_unlock(&lock);
    bool is_closed = (wait->polls[0].revents & POLLNVAL) != 0;
    if (wait->polls != wait->few) {
        free(wait->polls);
    }
    *ret_is_over = ready <= 0 || count > 0 || is_closed;
    return ready < 0 ? fail(error) : is_closed ? fail(EBADF) : count;
}

static int wait_for(int fd, struct epoll_event *events, int events_max,
                    const struct timespec *timeout, const sigset_t *signals)
{
    struct wait wait;
    bool is_over = false;
    int result;
    if (events_max <= 0) {
        return fail(EINVAL);
    }
    wait.fd = fd;
    wait.events = events;
    wait.events_max = events_max;
    wait.signals = signals;
    wait.is_bounded = timeout != NULL;
    if (timeout != NULL) {
        clock_gettime(CLOCK_MONOTONIC, &wait.until);
        long long nanoseconds = wait.until.tv_nsec + timeout->tv_nsec;
        wait.until.tv_sec += timeout->tv_sec + nanoseconds / NS_PER_S;
        wait.until.tv_nsec = nanoseconds % NS_PER_S;
    }
    do {
        result = wait_once(&wait, &is_over);
    } while (!is_over);
    return result;
}

/* ---- what programs call ---- */

EPOLL_OFFERED int epoll_create1(int flags)
{
    if (!is_wanted()) {
        return (int)syscall(SYS_epoll_create1, flags);
    }
    if ((flags & ~EPOLL_CLOEXEC) != 0) {
        return fail(EINVAL);
    }
    int fd = eventfd(0, EFD_NONBLOCK | ((flags & EPOLL_CLOEXEC) != 0 ? EFD_CLOEXEC : 0));
    if (fd < 0) {
        return -1;
    }
    pthread_mutex_lock(&lock);
    struct set *set = set_add(fd);
    pthread_mutex_unlock(&lock);
    if (set == NULL) {
        close(fd);
        return fail(ENOMEM);
    }
    return fd;
}

EPOLL_OFFERED int epoll_create(int size)
{
    return size <= 0 ? fail(EINVAL) : epoll_create1(0);
}

EPOLL_OFFERED int epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *event)
{
    if (!is_wanted()) {
        return (int)syscall(SYS_epoll_ctl, epoll_fd, operation, fd, event);
    }
    if (fd == epoll_fd) {
        return fail(EINVAL);
    }
    if (operation != EPOLL_CTL_DEL && check_kind(fd) != 0) {
        return -1;
    }
    if (operation != EPOLL_CTL_DEL && event == NULL) {
        return fail(EFAULT);
    }
    pthread_mutex_lock(&lock);
    struct set *set = set_find(epoll_fd);
    int result = set == NULL ? refuse(epoll_fd) : set_change(set, operation, fd, event);
    if (result == 0 && set->waiters > 0) {
        (void)eventfd_write(set->fd, 1);
    }
    int error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

EPOLL_OFFERED int epoll_pwait2(int epoll_fd, struct epoll_event *events, int events_max,
                               const struct timespec *timeout, const sigset_t *signals)
{
    return is_wanted() ? wait_for(epoll_fd, events, events_max, timeout, signals)
                       : (int)syscall(SYS_epoll_pwait2, epoll_fd, events, events_max, timeout,
                                      signals, (size_t)_NSIG / 8);
}

EPOLL_OFFERED int epoll_pwait(int epoll_fd, struct epoll_event *events, int events_max,
                              int timeout_ms, const sigset_t *signals)
{
    if (!is_wanted()) {
        return (int)syscall(SYS_epoll_pwait, epoll_fd, events, events_max, timeout_ms, signals,
                            (size_t)_NSIG / 8);
    }
    struct timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000000};
    return wait_for(epoll_fd, events, events_max, timeout_ms < 0 ? NULL : &timeout, signals);
}

EPOLL_OFFERED int epoll_wait(int epoll_fd, struct epoll_event *events, int events_max,
                             int timeout_ms)
{
    return epoll_pwait(epoll_fd, events, events_max, timeout_ms, NULL);
}
