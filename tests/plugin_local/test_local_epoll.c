/* The library that node waits by where boxes may not use epoll (box/epoll.c, linked in here). What it answers is compared with
 * what the kernel's epoll answers in the same place: every test but those of threads is carried out with both. */
#include "base/check.h"
#include "cunit_main.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Programs that hold libuv are known by this; the library uses the kernel's epoll in all others. */
int uv_run(void *loop, int mode);
int uv_run(void *loop, int mode)
{
    (void)loop, (void)mode;
    return 0;
}

int epoll_pwait2(int, struct epoll_event *, int, const struct timespec *, const sigset_t *);

/* ---- the two ---- */

static int kernel_create(int flags)
{
    return (int)syscall(SYS_epoll_create1, flags);
}

static int kernel_ctl(int set, int operation, int fd, struct epoll_event *event)
{
    return (int)syscall(SYS_epoll_ctl, set, operation, fd, event);
}

static int kernel_wait(int set, struct epoll_event *events, int max, int timeout_ms,
                       const sigset_t *signals)
{
    return (int)syscall(SYS_epoll_pwait, set, events, max, timeout_ms, signals, (size_t)8);
}

struct way {
    int (*create)(int flags);
    int (*ctl)(int set, int operation, int fd, struct epoll_event *event);
    int (*wait)(int set, struct epoll_event *events, int max, int timeout_ms,
                const sigset_t *signals);
};

static const struct way ways[] = {{kernel_create, kernel_ctl, kernel_wait},
                                  {epoll_create1, epoll_ctl, epoll_pwait}};
static const struct way *way;
static int set, ends[2]; /* of a pipe */
static struct epoll_event told[8];

static void with_both(void (*body)(void))
{
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        way = &ways[i];
        set = way->create(EPOLL_CLOEXEC);
        CU_ASSERT_TRUE_FATAL(set >= 0 && pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
        body();
        close(set);
        close(ends[0]);
        close(ends[1]);
    }
}

static int ctl(int operation, int fd, uint32_t events, uint64_t data)
{
    struct epoll_event event = {.events = events, .data.u64 = data};
    return way->ctl(set, operation, fd, &event) == 0 ? 0 : errno;
}

/* How many there are at once. */
static int ready(void)
{
    return way->wait(set, told, (int)COUNT_OF(told), 0, NULL);
}

/* ---- watches ---- */

static void one_body(void)
{
    CU_ASSERT_EQUAL((fcntl(set, F_GETFD) & FD_CLOEXEC), FD_CLOEXEC);
    CU_ASSERT_EQUAL(ctl(EPOLL_CTL_ADD, ends[0], EPOLLIN, 0x1122334455667788), 0);
    CU_ASSERT_EQUAL(ready(), 0);
    CU_ASSERT_EQUAL(write(ends[1], "x", 1), 1);
    CU_ASSERT_EQUAL(ready(), 1);
    CU_ASSERT_EQUAL(told[0].events, EPOLLIN);
    CU_ASSERT_EQUAL(told[0].data.u64, 0x1122334455667788);
    CU_ASSERT_EQUAL(ready(), 1); /* as long as it lasts */
    CU_ASSERT_EQUAL(ctl(EPOLL_CTL_MOD, ends[0], 0, 2), 0);
    CU_ASSERT_EQUAL(ready(), 0);
    close(ends[1]);
    CU_ASSERT_EQUAL(ready(), 1); /* asked for or not */
    CU_ASSERT_EQUAL(told[0].events, EPOLLHUP);
    CU_ASSERT_EQUAL(told[0].data.u64, 2);
    CU_ASSERT_EQUAL(ctl(EPOLL_CTL_DEL, ends[0], 0, 0), 0);
    CU_ASSERT_EQUAL(ready(), 0);
}

static void a_watch_tells_what_it_was_asked_for_with_its_own_data(void)
{
    with_both(one_body);
}

static void once_body(void)
{
    CU_ASSERT_EQUAL(ctl(EPOLL_CTL_ADD, ends[1], EPOLLOUT | EPOLLONESHOT, 1), 0);
    CU_ASSERT_EQUAL(ready(), 1);
    CU_ASSERT_EQUAL(ready(), 0);
    close(ends[0]);
    CU_ASSERT_EQUAL(ready(), 0);
    CU_ASSERT_EQUAL(ctl(EPOLL_CTL_MOD, ends[1], EPOLLOUT | EPOLLONESHOT, 1), 0);
    CU_ASSERT_EQUAL(ready(), 1);
    CU_ASSERT_EQUAL(told[0].events, EPOLLOUT | EPOLLERR);
    CU_ASSERT_EQUAL(ready(), 0);
}

static void one_shot_is_told_once_until_it_is_asked_for_again(void)
{
    with_both(once_body);
}

static void kinds_body(void)
{
    static const char *const refused[] = {"/proc/self/exe", "/", "/dev/null", "/dev/zero"};
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        int fd = open(refused[i], O_RDONLY | O_CLOEXEC);
        CU_ASSERT_TRUE_FATAL(fd >= 0);
        CU_ASSERT_EQUAL(ctl(EPOLL_CTL_ADD, fd, EPOLLIN, 0), EPERM);
        close(fd);
    }
    int event = eventfd(1, EFD_CLOEXEC);
    CU_ASSERT_EQUAL(ctl(EPOLL_CTL_ADD, event, EPOLLIN, 7), 0);
    CU_ASSERT_EQUAL(ready(), 1);
    CU_ASSERT_EQUAL(told[0].data.u64, 7);
    close(event);
    CU_ASSERT_EQUAL(ready(), 0); /* it has left by that */
}

static void files_cannot_be_watched_and_what_is_closed_leaves(void)
{
    with_both(kinds_body);
}

static void wrong_body(void)
{
    CU_ASSERT_EQUAL(ctl(EPOLL_CTL_MOD, ends[0], EPOLLIN, 0), ENOENT);
    CU_ASSERT_EQUAL(ctl(EPOLL_CTL_DEL, ends[0], EPOLLIN, 0), ENOENT);
    CU_ASSERT_EQUAL(ctl(EPOLL_CTL_ADD, ends[0], EPOLLIN, 0), 0);
    CU_ASSERT_EQUAL(ctl(EPOLL_CTL_ADD, ends[0], EPOLLOUT, 0), EEXIST);
    CU_ASSERT_EQUAL(ctl(EPOLL_CTL_ADD, -1, EPOLLIN, 0), EBADF);
    CU_ASSERT_EQUAL(ctl(EPOLL_CTL_ADD, set, EPOLLIN, 0), EINVAL);
    CU_ASSERT_EQUAL(ctl(77, ends[1], EPOLLIN, 0), EINVAL);
    CU_ASSERT_EQUAL(way->create(1 << 30), -1);
    CU_ASSERT_EQUAL(errno, EINVAL);
    CU_ASSERT_EQUAL(way->wait(set, told, 0, 0, NULL), -1);
    CU_ASSERT_EQUAL(errno, EINVAL);
    CU_ASSERT_EQUAL(way->wait(ends[0], told, 1, 0, NULL), -1);
    CU_ASSERT_EQUAL(errno, EINVAL);
    int closed = way->create(0);
    close(closed);
    CU_ASSERT_EQUAL(way->wait(closed, told, 1, -1, NULL), -1);
    CU_ASSERT_EQUAL(errno, EBADF);
}

static void what_is_asked_wrongly_fails_as_it_does_in_the_kernel(void)
{
    with_both(wrong_body);
}

static void anew_body(void)
{
    int other = way->create(0);
    struct epoll_event event = {.events = EPOLLOUT};
    CU_ASSERT_EQUAL((fcntl(other, F_GETFD) & FD_CLOEXEC), 0);
    CU_ASSERT_EQUAL(way->ctl(other, EPOLL_CTL_ADD, ends[1], &event), 0);
    CU_ASSERT_EQUAL(ready(), 0); /* it is no watch of this one */
    close(other);
    int again = way->create(0);
    CU_ASSERT_EQUAL(again, other);
    CU_ASSERT_EQUAL(way->wait(again, told, 8, 0, NULL), 0);
    close(again);
}

static void a_new_set_has_no_watches_of_one_that_had_its_number(void)
{
    with_both(anew_body);
}

/* ---- many ---- */

#define MANY 300 /* more than fit on the stack */

static void many_body(void)
{
    static int fds[MANY];
    int seen[MANY] = {0}, unseen = 0;
    for (int i = 0; i < MANY; i++) {
        fds[i] = eventfd(1, EFD_CLOEXEC);
        CU_ASSERT_EQUAL_FATAL(ctl(EPOLL_CTL_ADD, fds[i], EPOLLIN, (uint64_t)i), 0);
    }
    for (int round = 0; round < MANY; round++) {
        int count = way->wait(set, told, 1 + round % (int)COUNT_OF(told), 0, NULL);
        CU_ASSERT_EQUAL(count, 1 + round % (int)COUNT_OF(told));
        for (int i = 0; i < count; i++) {
            seen[told[i].data.u64]++;
        }
    }
    for (int i = 0; i < MANY; i++) {
        unseen += seen[i] == 0;
        CU_ASSERT_TRUE(seen[i] <= 6); /* 4.5 on average */
        close(fds[i]);
    }
    CU_ASSERT_EQUAL(unseen, 0);
    CU_ASSERT_EQUAL(ready(), 0);
}

static void more_than_fit_into_one_answer_get_their_turn(void)
{
    with_both(many_body);
}

/* ---- time and signals ---- */

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t cpu_ms(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

static void timeout_body(void)
{
    CU_ASSERT_EQUAL(ctl(EPOLL_CTL_ADD, ends[0], EPOLLIN, 0), 0);
    int64_t begun = now_ms(), used = cpu_ms();
    CU_ASSERT_EQUAL(way->wait(set, told, 8, 150, NULL), 0);
    CU_ASSERT_TRUE(now_ms() - begun >= 149);
    CU_ASSERT_TRUE(cpu_ms() - used < 75); /* it waits, and does not look again and again */
}

static void waiting_ends_at_its_time_and_uses_no_processor(void)
{
    with_both(timeout_body);
    struct timespec timeout = {0, 1};
    set = epoll_create1(0);
    CU_ASSERT_EQUAL(epoll_pwait2(set, told, 8, &timeout, NULL), 0);
    close(set);
}

static void on_signal(int number)
{
    (void)number;
}

/* One that is blocked but for the time of the wait, and is there when it begins. */
static void signal_body(void)
{
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    raise(SIGUSR1);
    CU_ASSERT_EQUAL(way->wait(set, told, 8, -1, &before), -1);
    CU_ASSERT_EQUAL(errno, EINTR);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void a_signal_that_the_wait_lets_through_ends_it(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    with_both(signal_body);
}

/* ---- threads ---- */

static atomic_int waiting;

/* Waits for ever, in the set of the test; the data of what it was told. */
static void *wait_thread(void *arg)
{
    struct epoll_event event = {0};
    (void)arg;
    waiting++;
    int count = way->wait(set, &event, 1, -1, NULL);
    return (void *)(uintptr_t)(count == 1 ? event.data.u64 : 0);
}

static void late_body(void)
{
    pthread_t threads[2];
    waiting = 0;
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, wait_thread, NULL), 0);
    }
    while (waiting < 2) {
        sched_yield();
    }
    CU_ASSERT_EQUAL(ctl(EPOLL_CTL_ADD, ends[1], EPOLLOUT, 5), 0);
    for (int i = 0; i < 2; i++) {
        void *data;
        pthread_join(threads[i], &data);
        CU_ASSERT_PTR_EQUAL(data, (void *)5);
    }
}

static void a_watch_that_is_added_wakes_all_who_wait_already(void)
{
    with_both(late_body);
}

#define CHANGES 20000

static void *change_thread(void *arg)
{
    (void)arg;
    for (int i = 0; i < CHANGES; i++) {
        CU_ASSERT_EQUAL(ctl(EPOLL_CTL_ADD, ends[0], EPOLLIN, 1), 0);
        CU_ASSERT_EQUAL(ctl(EPOLL_CTL_MOD, ends[0], 0, 2), 0);
        CU_ASSERT_EQUAL(ctl(EPOLL_CTL_DEL, ends[0], 0, 0), 0);
    }
    waiting = 0;
    return NULL;
}

/* Of a pipe that is ready all the time, and of an eventfd that is not. */
static void race_body(void)
{
    pthread_t thread;
    int quiet = eventfd(0, EFD_CLOEXEC), wrong = 0;
    CU_ASSERT_EQUAL(ctl(EPOLL_CTL_ADD, quiet, EPOLLIN, 9), 0);
    CU_ASSERT_EQUAL(write(ends[1], "x", 1), 1);
    waiting = 1;
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, change_thread, NULL), 0);
    while (waiting != 0) {
        int count = way->wait(set, told, 8, 1, NULL);
        wrong += count < 0 || count > 1 || (count == 1 && told[0].data.u64 != 1);
    }
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(ready(), 0);
    close(quiet);
}

static void watches_may_change_while_another_thread_waits(void)
{
    with_both(race_body);
}

static const struct test tests[] = {
    TEST(a_watch_tells_what_it_was_asked_for_with_its_own_data),
    TEST(one_shot_is_told_once_until_it_is_asked_for_again),
    TEST(files_cannot_be_watched_and_what_is_closed_leaves),
    TEST(what_is_asked_wrongly_fails_as_it_does_in_the_kernel),
    TEST(a_new_set_has_no_watches_of_one_that_had_its_number),
    TEST(more_than_fit_into_one_answer_get_their_turn),
    TEST(waiting_ends_at_its_time_and_uses_no_processor),
    TEST(a_signal_that_the_wait_lets_through_ends_it),
    TEST(a_watch_that_is_added_wakes_all_who_wait_already),
    TEST(watches_may_change_while_another_thread_waits),
};

int main(int argc, char **argv)
{
    return run_tests("local_epoll", tests, COUNT_OF(tests), argc, argv);
}
