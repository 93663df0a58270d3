/* core/loop: waiting for descriptors, hang-ups, tasks from other threads. Own sockets, no ports agreed on. */
#include "base/log.h"
#include "loop_fixture.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- descriptors ---- */

struct pair {
    int near, far;
    bool waited_in_vain;
};

static struct pair pair_new(void)
{
    int fds[2];
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
                          0);
    return (struct pair){.near = fds[0], .far = fds[1]};
}

static void wait_for_events(void *arg)
{
    struct pair *pair = arg;
    int events = 0;
    CU_ASSERT_EQUAL(fiber_wait_fd(pair->near, SG_READ | SG_WRITE, DEADLINE_NONE, &events), 0);
    CU_ASSERT_EQUAL(events, SG_WRITE);
    CU_ASSERT_EQUAL(fiber_wait_fd(pair->near, SG_READ, clock_ms() + 2, &events), SG_E_TIMEOUT);
    pair->waited_in_vain = true;
    CU_ASSERT_EQUAL(fiber_wait_fd(pair->near, SG_READ, DEADLINE_NONE, &events), 0);
    CU_ASSERT_EQUAL(events, SG_READ);
    CU_ASSERT_EQUAL(fiber_wait_fd(pair->near, SG_HANGUP, clock_ms() + 2, &events), SG_E_TIMEOUT);
    CU_ASSERT_EQUAL(fiber_wait_fd(-1, SG_READ, DEADLINE_NONE, &events), SG_E_INVALID);
    buf_puts(&record, "read ");
    CU_ASSERT_EQUAL(fiber_wait_fd(pair->near, SG_HANGUP, DEADLINE_NONE, &events), 0);
    CU_ASSERT_EQUAL(events, SG_HANGUP); /* though what was sent was never read */
    buf_puts(&record, "gone");
}

static void send_then_close(void *arg)
{
    struct pair *pair = arg;
    while (!pair->waited_in_vain) {
        fiber_yield();
    }
    fiber_yield(); /* it waits anew */
    CU_ASSERT_EQUAL(send(pair->far, "x", 1, 0), 1);
    while (record.len == 0) {
        fiber_yield();
    }
    fiber_yield();
    fiber_yield();
    CU_ASSERT_EQUAL(shutdown(pair->far, SHUT_WR), 0);
}

static void a_fiber_waits_for_each_event_of_a_descriptor(void)
{
    struct pair pair = pair_new();
    begin();
    start("wait", wait_for_events, &pair);
    start("send", send_then_close, &pair);
    run_to_end();
    CU_ASSERT_STRING_EQUAL(record.data, "read gone");
    end();
    close(pair.near);
    close(pair.far);
}

static void wait_for_file(void *arg)
{
    int events = 0;
    CU_ASSERT_EQUAL(fiber_wait_fd(*(int *)arg, SG_READ, DEADLINE_NONE, &events), 0);
    CU_ASSERT_EQUAL(events, SG_READ);
    buf_puts(&record, "ready");
}

static void a_file_is_always_ready(void)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    begin();
    log_set_fd(-1); /* libevent's complaint is not shown */
    start("file", wait_for_file, &fd);
    run_to_end();
    log_set_fd(2);
    CU_ASSERT_STRING_EQUAL(record.data, "ready");
    end();
    close(fd);
}

static void tell(void *arg)
{
    buf_puts(&record, arg);
    CU_ASSERT_PTR_NULL(fiber_self()); /* on the loop, in no fiber */
    fiber_wake(first);
}

static void watch_a_peer(void *arg)
{
    struct pair *pair = arg;
    struct fiber_watch *one = fiber_watch_hangup(pair->near, tell, (char *)"one ");
    struct fiber_watch *ended = fiber_watch_hangup(pair->near, tell, (char *)"never ");
    fiber_watch_end(ended);
    CU_ASSERT_EQUAL(fiber_park(DEADLINE_NONE), 0);
    struct fiber_watch *two =
        fiber_watch_hangup(pair->near, tell, (char *)"two "); /* gone already */
    CU_ASSERT_EQUAL(fiber_park(DEADLINE_NONE), 0);
    CU_ASSERT_EQUAL(fiber_sleep(2), 0); /* and neither is told again */
    fiber_watch_end(one);
    fiber_watch_end(two);
    fiber_watch_end(NULL);
}

static void close_far(void *arg)
{
    struct pair *pair = arg;
    CU_ASSERT_EQUAL(send(pair->far, "unread", 6, 0), 6);
    fiber_yield();
    fiber_yield();
    CU_ASSERT_STRING_EQUAL(record.data, "");
    close(pair->far);
}

static void a_watch_tells_once_when_the_peer_is_gone(void)
{
    struct pair pair = pair_new();
    begin();
    first = start("watch", watch_a_peer, &pair);
    start("close", close_far, &pair);
    run_to_end();
    CU_ASSERT_STRING_EQUAL(record.data, "one two ");
    end();
    close(pair.near);
}

static struct pair tcp_pair(void)
{
    struct sockaddr_storage address = {.ss_family = AF_INET};
    socklen_t len = sizeof address;
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_EQUAL_FATAL(listen(server, 1), 0);
    CU_ASSERT_EQUAL_FATAL(getsockname(server, (struct sockaddr *)&address, &len), 0);
    struct pair pair = {.far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    CU_ASSERT_EQUAL_FATAL(connect(pair.far, (struct sockaddr *)&address, len), 0);
    pair.near = accept4(server, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    close(server);
    return pair;
}

static void reset_far(void *arg)
{
    struct pair *pair = arg;
    struct linger at_once = {.l_onoff = 1};
    fiber_yield();
    CU_ASSERT_EQUAL(setsockopt(pair->far, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    close(pair->far);
}

static void watch_for_reset(void *arg)
{
    struct pair *pair = arg;
    struct fiber_watch *watch = fiber_watch_hangup(pair->near, tell, (char *)"reset");
    CU_ASSERT_EQUAL(fiber_park(DEADLINE_NONE), 0);
    fiber_watch_end(watch);
}

static void a_reset_connection_counts_as_gone(void)
{
    struct pair pair = tcp_pair();
    begin();
    first = start("watch", watch_for_reset, &pair);
    start("reset", reset_far, &pair);
    run_to_end();
    CU_ASSERT_STRING_EQUAL(record.data, "reset");
    end();
    close(pair.near);
}

/* ---- posting ---- */

enum { POSTERS = 4, POSTS = 2000 };

struct note {
    struct loop_task task;
    int poster, number;
};

static int next_number[POSTERS], posts_seen, posts_misplaced;

static void take_note(struct loop_task *task)
{
    struct note *note = (struct note *)task;
    posts_misplaced += next_number[note->poster]++ != note->number;
    free(note);
    if (++posts_seen == POSTERS * POSTS) {
        loop_stop(loop);
    }
}

static void *post_many(void *arg)
{
    for (int i = 0; i < POSTS; i++) {
        struct note *note = calloc(1, sizeof *note);
        note->task.run = take_note;
        note->poster = *(int *)arg;
        note->number = i;
        loop_post(loop, &note->task);
    }
    return NULL;
}

static void every_post_of_other_threads_arrives_in_order(void)
{
    pthread_t threads[POSTERS];
    int numbers[POSTERS];
    memset(next_number, 0, sizeof next_number);
    posts_seen = posts_misplaced = 0;
    begin();
    for (int i = 0; i < POSTERS; i++) {
        numbers[i] = i;
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, post_many, &numbers[i]), 0);
    }
    loop_run(loop);
    for (int i = 0; i < POSTERS; i++) {
        pthread_join(threads[i], NULL);
    }
    CU_ASSERT_EQUAL(posts_seen, POSTERS * POSTS);
    CU_ASSERT_EQUAL(posts_misplaced, 0);
    end();
}

static void *ring_then_stop(void *arg)
{
    struct loop_task *task = arg;
    loop_post(loop, task);
    loop_stop(loop);
    return NULL;
}

static void note_task(struct loop_task *task)
{
    (void)task;
    buf_puts(&record, "ran ");
}

static void a_sleeping_loop_is_woken_and_stopped(void)
{
    struct loop_task task = {.run = note_task};
    pthread_t thread;
    begin();
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, ring_then_stop, &task), 0);
    loop_run(loop);
    pthread_join(thread, NULL);
    CU_ASSERT_STRING_EQUAL(record.data, "ran ");
    CU_ASSERT_PTR_NULL(loop_self());
    run_to_end(); /* it may run again */
    end();
}

static void look_around(void *arg)
{
    (void)arg;
    CU_ASSERT_PTR_EQUAL(loop_self(), loop);
    CU_ASSERT_PTR_EQUAL(fiber_home(fiber_self()), loop);
    CU_ASSERT_EQUAL(loop_index(loop), 0);
    loop_slot_set(loop, LOOP_SLOT_FETCH, &first);
    CU_ASSERT_PTR_EQUAL(loop_slot(loop, LOOP_SLOT_FETCH), &first);
    CU_ASSERT_PTR_NULL(loop_slot(loop, LOOP_SLOT_GATEWAY));
    CU_ASSERT_PTR_NOT_NULL(loop_base(loop));
    CU_ASSERT_PTR_NULL(loop_pool(loop));
}

static void a_fiber_knows_its_loop(void)
{
    CU_ASSERT_PTR_NULL(fiber_self());
    begin();
    start("look", look_around, NULL);
    run_to_end();
    end();
}

static const struct test tests[] = {
    TEST(a_fiber_waits_for_each_event_of_a_descriptor),
    TEST(a_file_is_always_ready),
    TEST(a_watch_tells_once_when_the_peer_is_gone),
    TEST(a_reset_connection_counts_as_gone),
    TEST(every_post_of_other_threads_arrives_in_order),
    TEST(a_sleeping_loop_is_woken_and_stopped),
    TEST(a_fiber_knows_its_loop),
};

int main(int argc, char **argv)
{
    return run_tests("loop_wait", tests, COUNT_OF(tests), argc, argv);
}
