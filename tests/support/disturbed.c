/* To be preloaded (scripts/disturbed.sh): calls of the system that come late, are done by half or are interrupted, as on a busy
 * machine and a slow network, only more often. Whatever is done here a kernel may do: a program that waits for the event,
 * looks at what a call returns and tries again bears it, and one that counts on an order or on luck does not. Other programs
 * than the gateway and the tests in C find nothing changed.
 *   DISTURBED_LATE      of so many calls in 1000 each begins, or ends, late; calls that many wait for, less often
 *   DISTURBED_LATE_MS   by up to so many milliseconds, of sixteen once by ten times as many; 20 if it is not set
 *   DISTURBED_SHORT     of so many calls on connections in 1000 each is short, interrupted or has to be made again; the gateway's only */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))
/* The C library's function of that name. */
#define NEXT(function) ((__typeof__(&(function)))dlsym(RTLD_NEXT, #function))

static uint64_t late_of_1000, late_ms = 20, short_of_1000;

static uint64_t option(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

__attribute__((constructor)) static void read_options(void)
{
    bool is_gateway = strcmp(program_invocation_short_name, "sandgate") == 0;
    if (is_gateway || strncmp(program_invocation_short_name, "test_", 5) == 0) {
        late_of_1000 = option("DISTURBED_LATE", 0);
        late_ms = option("DISTURBED_LATE_MS", late_ms);
    }
    if (is_gateway) {
        short_of_1000 = option("DISTURBED_SHORT", 0);
    }
}

/* xorshift, of each thread: nothing here may wait for another thread. */
static uint64_t any_number(void)
{
    static __thread uint64_t state;
    if (state == 0) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        state = ((uint64_t)now.tv_nsec << 20) ^ (uint64_t)syscall(SYS_gettid) ^ 1;
    }
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state >> 11;
}

/* Ten tenths: as often as is asked for. */
static void maybe_late(uint64_t tenths)
{
    if (late_of_1000 > 0 && any_number() % 10000 < late_of_1000 * tenths) {
        int kept = errno;
        uint64_t ms = any_number() % (any_number() % 16 == 0 ? 10 * late_ms : late_ms);
        struct timespec time = {.tv_sec = (time_t)(ms / 1000),
                                .tv_nsec = (long)(ms % 1000 * 1000000)};
        (void)syscall(SYS_nanosleep, &time, NULL);
        errno = kept;
    }
}

enum { SMALL_BYTES = 1024 };
enum disturbance { NOTHING, SHORT, INTERRUPTED, AGAIN };

static bool is_stream(int fd)
{
    int type = 0;
    socklen_t len = sizeof type;
    int kept = errno;
    bool ret = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM;
    errno = kept;
    return ret;
}

static bool may_wait(int fd, int flags)
{
    return (flags & MSG_DONTWAIT) == 0 && (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
}

static enum disturbance disturbance(int fd, int flags, size_t len)
{
    if (short_of_1000 == 0 || len == 0 || (flags & MSG_PEEK) != 0 ||
        any_number() % 1000 >= short_of_1000 || !is_stream(fd)) {
        return NOTHING;
    }
    enum disturbance ret = SHORT + any_number() % 3;
    return ret == AGAIN && may_wait(fd, flags) ? NOTHING : ret;
}

/* Of what is sent: a kernel has room for what is small. */
static enum disturbance disturbance_of_sent(int fd, int flags, size_t len)
{
    return len < SMALL_BYTES ? NOTHING : disturbance(fd, flags, len);
}

/* What the call returns instead; false: it is made. */
static bool is_refused(enum disturbance what)
{
    if (what != INTERRUPTED && what != AGAIN) {
        return false;
    }
    errno = what == AGAIN ? EAGAIN : EINTR;
    return true;
}

static size_t part_of(enum disturbance what, size_t len)
{
    return what == SHORT ? 1 + any_number() % (any_number() % 2 == 0 || len < 8 ? len : 8) : len;
}

/* ---- connections ---- */

SHOWN ssize_t recv(int fd, void *data, size_t len, int flags)
{
    enum disturbance what = disturbance(fd, flags, len);
    maybe_late(10);
    ssize_t ret = is_refused(what) ? -1 : NEXT(recv)(fd, data, part_of(what, len), flags);
    maybe_late(10);
    return ret;
}

SHOWN ssize_t read(int fd, void *data, size_t len)
{
    enum disturbance what = disturbance(fd, 0, len);
    return is_refused(what) ? -1 : NEXT(read)(fd, data, part_of(what, len));
}

SHOWN ssize_t send(int fd, const void *data, size_t len, int flags)
{
    enum disturbance what = disturbance_of_sent(fd, flags, len);
    maybe_late(10);
    ssize_t ret = is_refused(what) ? -1 : NEXT(send)(fd, data, part_of(what, len), flags);
    maybe_late(10);
    return ret;
}

SHOWN ssize_t write(int fd, const void *data, size_t len)
{
    enum disturbance what = disturbance_of_sent(fd, 0, len);
    maybe_late(5);
    ssize_t ret = is_refused(what) ? -1 : NEXT(write)(fd, data, part_of(what, len));
    maybe_late(5);
    return ret;
}

/* Of several pieces a short call takes a part of the first. */
SHOWN ssize_t writev(int fd, const struct iovec *pieces, int count)
{
    enum disturbance what = disturbance_of_sent(fd, 0, count > 0 ? pieces[0].iov_len : 0);
    maybe_late(5);
    ssize_t ret = -1;
    if (what == SHORT) {
        ret = NEXT(write)(fd, pieces[0].iov_base, part_of(what, pieces[0].iov_len));
    } else if (!is_refused(what)) {
        ret = NEXT(writev)(fd, pieces, count);
    }
    maybe_late(5);
    return ret;
}

/* A message that passes descriptors stays whole. */
SHOWN ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    bool is_plain = message->msg_controllen == 0 && message->msg_iovlen > 0;
    enum disturbance what =
        disturbance_of_sent(fd, flags, is_plain ? message->msg_iov[0].iov_len : 0);
    maybe_late(10);
    ssize_t ret = -1;
    if (what == SHORT) {
        ret = NEXT(send)(fd, message->msg_iov[0].iov_base,
                         part_of(what, message->msg_iov[0].iov_len), flags);
    } else if (!is_refused(what)) {
        ret = NEXT(sendmsg)(fd, message, flags);
    }
    maybe_late(10);
    return ret;
}

SHOWN ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    maybe_late(10);
    ssize_t ret = NEXT(recvmsg)(fd, message, flags);
    maybe_late(10);
    return ret;
}

SHOWN int accept4(int fd, struct sockaddr *restrict address, socklen_t *restrict len, int flags)
{
    static const int errors[] = {EAGAIN, ECONNABORTED, EINTR};
    maybe_late(20);
    if (short_of_1000 > 0 && any_number() % 1000 < short_of_1000) {
        errno = errors[any_number() % 3];
        return -1;
    }
    return NEXT(accept4)(fd, address, len, flags);
}

SHOWN int shutdown(int fd, int how)
{
    maybe_late(20);
    return NEXT(shutdown)(fd, how);
}

SHOWN int close(int fd)
{
    maybe_late(5);
    return NEXT(close)(fd);
}

/* ---- waiting ---- */

static bool wait_is_interrupted(void)
{
    bool ret = short_of_1000 > 0 && any_number() % 1000 < short_of_1000;
    errno = ret ? EINTR : errno;
    return ret;
}

SHOWN int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    maybe_late(10);
    int ret = wait_is_interrupted() ? -1 : NEXT(poll)(fds, count, timeout_ms);
    maybe_late(10);
    return ret;
}

SHOWN int epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms)
{
    maybe_late(10);
    int ret = wait_is_interrupted() ? -1 : NEXT(epoll_wait)(fd, events, max, timeout_ms);
    maybe_late(10);
    return ret;
}

SHOWN int pthread_cond_signal(pthread_cond_t *condition)
{
    maybe_late(10);
    return NEXT(pthread_cond_signal)(condition);
}

SHOWN int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    int ret = NEXT(pthread_mutex_unlock)(mutex);
    maybe_late(2);
    return ret;
}

SHOWN int pthread_cond_wait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex)
{
    int ret = NEXT(pthread_cond_wait)(condition, mutex);
    maybe_late(20);
    return ret;
}

SHOWN int pthread_cond_timedwait(pthread_cond_t *restrict condition,
                                 pthread_mutex_t *restrict mutex,
                                 const struct timespec *restrict until)
{
    int ret = NEXT(pthread_cond_timedwait)(condition, mutex, until);
    maybe_late(20);
    return ret;
}

/* ---- files ---- */

SHOWN int openat(int folder, const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    bool has_mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    unsigned mode = has_mode ? va_arg(more, unsigned) : 0;
    va_end(more);
    maybe_late(20);
    return NEXT(openat)(folder, path, flags, mode);
}

SHOWN int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    maybe_late(50);
    int ret = NEXT(renameat)(from_folder, from, to_folder, to);
    maybe_late(50);
    return ret;
}

SHOWN int unlinkat(int folder, const char *path, int flags)
{
    maybe_late(50);
    return NEXT(unlinkat)(folder, path, flags);
}

SHOWN int flock(int fd, int operation)
{
    maybe_late(50);
    return NEXT(flock)(fd, operation);
}
