/* Relief: where descriptors run short, what is idle, lingers or has not sent its head is closed on all loops, what is busy
 * never, and who waits for room gets it. The descriptors that others hold are taken of admission by the test. */
#include "http/admission.h"
#include "http/server_internal.h"
#include "http_fixture.h"

#include <sched.h>

#define ASK "GET /length HTTP/1.1\r\nHost: a\r\n\r\n"
#define ASK_BUSY "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n"

enum { IDLE = 24 }; /* enough for both loops to have some */

/* All of admission's but so many. */
static size_t leave_room(size_t count)
{
    size_t most = admission_limit() - admission_used() - count;
    CU_ASSERT_TRUE_FATAL(admission_take(most));
    return most;
}

static int idle_client(void)
{
    BUF_CLEANUP struct buf got = {0};
    int fd = client_connect();
    client_ask(fd, ASK, "world, hello", &got);
    CU_ASSERT_EQUAL(sem_wait(&fixture.done), 0);
    return fd;
}

static int busy_client(void)
{
    int fd = client_connect();
    client_send(fd, STR(ASK_BUSY));
    CU_ASSERT_EQUAL(sem_wait(&fixture.waiting), 0);
    return fd;
}

static void expect_closed(int fd)
{
    BUF_CLEANUP struct buf got = {0};
    CU_ASSERT_TRUE(client_read(fd, NULL, &got));
    CU_ASSERT_EQUAL(got.len, 0); /* without a word */
    (void)close(fd);
}

static void wake_parked(struct loop_task *task)
{
    (void)task;
    fiber_wake(fixture.parked);
}

static void expect_served(int fd, struct loop *home)
{
    BUF_CLEANUP struct buf got = {0};
    struct loop_task wake = {.run = wake_parked};
    loop_post(home, &wake);
    CU_ASSERT_TRUE(client_read(fd, "woken", &got));
    CU_ASSERT_TRUE(has(&got, "HTTP/1.1 200 OK\r\n"));
    CU_ASSERT_EQUAL(sem_wait(&fixture.done), 0);
    (void)close(fd);
}

static struct loop *home_of_busy(void)
{
    return fiber_home(fixture.parked);
}

/* ---- what is closed ---- */

static void idle_connections_of_all_loops_are_closed_and_busy_ones_never(void)
{
    int idle[IDLE];
    fixture_begin(2, NULL);
    for (int i = 0; i < IDLE; i++) {
        idle[i] = idle_client();
    }
    int busy = busy_client();
    struct loop *home = home_of_busy();
    size_t taken = leave_room(1);
    admission_relieve(IDLE);
    for (int i = 0; i < IDLE; i++) {
        expect_closed(idle[i]);
    }
    while (http_server_connections(fixture.server) > 1) {
        (void)sched_yield();
    }
    admission_relieve(IDLE); /* nothing idle is left */
    expect_served(busy, home);
    admission_give(taken);
    fixture_end();
    CU_ASSERT_EQUAL(admission_used(), 0);
}

static void far_from_the_limit_nothing_is_closed(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    int fd = idle_client();
    admission_relieve(1);
    client_ask(fd, ASK, "world, hello", &got);
    CU_ASSERT_TRUE(has(&got, "HTTP/1.1 200 OK\r\n"));
    (void)close(fd);
    fixture_end();
}

/* ---- who waits ---- */

static bool has_room;

static void take_in_fiber(void *arg)
{
    (void)arg;
    has_room = admission_take_waiting(1);
    if (has_room) {
        admission_give(1);
    }
    CU_ASSERT_EQUAL(sem_post(&fixture.drained), 0);
}

static void take_on_loop(struct loop_task *task)
{
    struct sg_error err = {0};
    (void)task;
    CU_ASSERT_EQUAL(fiber_start(loop_self(), "take", take_in_fiber, NULL, NULL, &err), 0);
}

static bool take_waiting(void)
{
    struct loop_task task = {.run = take_on_loop};
    loop_post(fixture.loops[0], &task);
    CU_ASSERT_EQUAL(sem_wait(&fixture.drained), 0);
    return has_room;
}

static void who_waits_for_room_gets_that_of_an_idle_connection(void)
{
    fixture_begin(2, NULL);
    int fd = idle_client();
    size_t taken = leave_room(0);
    CU_ASSERT_TRUE(take_waiting());
    expect_closed(fd);
    admission_give(taken);
    fixture_end();
}

static void where_all_are_busy_there_is_no_room(void)
{
    fixture_begin(1, NULL);
    int busy = busy_client();
    struct loop *home = home_of_busy();
    size_t taken = leave_room(0);
    CU_ASSERT_FALSE(take_waiting());
    expect_served(busy, home);
    admission_give(taken);
    CU_ASSERT_TRUE(take_waiting());
    fixture_end();
}

static void more_than_there_is_at_all_is_refused(void)
{
    CU_ASSERT_FALSE(admission_await(admission_limit() + 1));
    size_t taken = leave_room(0);
    CU_ASSERT_FALSE(admission_await(1)); /* without a server nothing is idle, and nobody waits */
    admission_give(taken);
    CU_ASSERT_TRUE(admission_await(1));
    CU_ASSERT_EQUAL(admission_used(), 0);
}

static void a_new_client_has_the_place_of_an_idle_one(void)
{
    fixture_begin(1, NULL);
    int idle = idle_client(), other = idle_client();
    size_t taken = leave_room(0);
    int fresh = idle_client(); /* is served */
    expect_closed(idle);       /* the longest idle, which had to go */
    admission_give(taken);
    (void)close(other), (void)close(fresh);
    fixture_end();
}

static int asking_client;
static bool was_closed;

/* On the loop's thread, so that its fibers cannot have seen yet what comes meanwhile. */
static void ask_and_close(struct loop_task *task)
{
    (void)task;
    if (asking_client >= 0) {
        client_send(asking_client, STR(ASK));
    }
    was_closed = connection_give_way(&fixture.server->loops[0], PLACE_HEAD);
    CU_ASSERT_EQUAL(sem_post(&fixture.drained), 0);
}

static bool close_on_loop(int asks)
{
    struct loop_task task = {.run = ask_and_close};
    asking_client = asks;
    loop_post(fixture.loops[0], &task);
    CU_ASSERT_EQUAL(sem_wait(&fixture.drained), 0);
    return was_closed;
}

static void a_connection_whose_next_request_is_here_is_not_idle(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    int fd = idle_client();
    CU_ASSERT_FALSE(close_on_loop(fd));
    CU_ASSERT_TRUE(client_read(fd, "world, hello", &got));
    CU_ASSERT_TRUE(has(&got, "HTTP/1.1 200 OK\r\n"));
    CU_ASSERT_EQUAL(sem_wait(&fixture.done), 0);
    while (!close_on_loop(-1)) { /* until its fiber waits again */
    }
    expect_closed(fd);
    fixture_end();
}

/* ---- who else gives way ---- */

#define HALF "GET /length HTTP/1.1\r\nHost"

/* How many connections of the first loop are of which kind; new ones that were silent are left out. */
static size_t found[PLACE_COUNT];
static size_t found_bytes; /* that they have sent of their next heads */

static void count_places(struct loop_task *task)
{
    struct connection *connection;
    (void)task;
    for (int place = PLACE_IDLE; place < PLACE_COUNT; place++) {
        TAILQ_FOREACH(connection, &fixture.server->loops[0].places[place], place_link)
        {
            bool is_new = place == PLACE_HEAD && connection->in.len == 0;
            found[place] += !is_new;
            found_bytes += connection->in.len;
        }
    }
    CU_ASSERT_EQUAL(sem_post(&fixture.drained), 0);
}

static void find(void)
{
    struct loop_task task = {.run = count_places};
    memset(found, 0, sizeof found);
    found_bytes = 0;
    loop_post(fixture.loops[0], &task);
    CU_ASSERT_EQUAL(sem_wait(&fixture.drained), 0);
}

static void wait_for_place(enum place place, size_t count)
{
    do {
        find();
    } while (found[place] != count);
}

static int half_head(size_t count)
{
    int fd = client_connect();
    client_send(fd, STR(HALF));
    wait_for_place(PLACE_HEAD, count);
    return fd;
}

/* Its request is refused before its body has come, and it does not go. */
static int lingering_client(size_t count)
{
    BUF_CLEANUP struct buf got = {0};
    int fd = client_connect();
    client_send(fd, STR("POST /length HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nbody"));
    CU_ASSERT_TRUE(client_read(fd, "world, hello", &got));
    CU_ASSERT_EQUAL(sem_wait(&fixture.done), 0);
    wait_for_place(PLACE_OVER, count);
    return fd;
}

static void finish_head(int fd)
{
    BUF_CLEANUP struct buf got = {0};
    client_ask(fd, ": a\r\n\r\n", "world, hello", &got);
    CU_ASSERT_TRUE(has(&got, "HTTP/1.1 200 OK\r\n"));
    CU_ASSERT_EQUAL(sem_wait(&fixture.done), 0);
    (void)close(fd);
}

/* For as long as their clients like. */
static const struct http_tuning patient = {.header_ms = 600000,
                                           .body_silence_ms = 600000,
                                           .idle_ms = 600000,
                                           .write_ms = 600000,
                                           .linger_ms = 600000};

static void the_half_head_that_is_held_longest_gives_way_to_a_newcomer(void)
{
    fixture_begin(1, &patient);
    int oldest = half_head(1), other = half_head(2);
    client_send(oldest, STR(":")); /* more of it does not make it a newer one */
    do {
        find();
    } while (found_bytes < 2 * strlen(HALF) + 1);
    size_t taken = leave_room(0);
    int fresh = idle_client();
    expect_closed(oldest);
    finish_head(other);
    admission_give(taken);
    (void)close(fresh);
    fixture_end();
}

static void near_the_limit_half_heads_stay(void)
{
    fixture_begin(1, &patient);
    int half = half_head(1);
    size_t taken = leave_room(1);
    CU_ASSERT_TRUE(admission_is_near());
    int fresh = idle_client(); /* has the last place */
    finish_head(half);
    admission_give(taken);
    (void)close(fresh);
    fixture_end();
}

static void a_connection_whose_answer_is_over_gives_way_to_a_newcomer(void)
{
    fixture_begin(1, &patient);
    int lingers = lingering_client(1);
    client_send(lingers, STR("more"));
    size_t taken = leave_room(0);
    int fresh = idle_client();
    expect_closed(lingers);
    admission_give(taken);
    (void)close(fresh);
    fixture_end();
}

static void idle_ones_go_first_then_those_that_linger_then_half_heads(void)
{
    fixture_begin(1, &patient);
    int half = half_head(1), lingers = lingering_client(1), idle = idle_client();
    wait_for_place(PLACE_IDLE, 1);
    static const size_t left[][PLACE_COUNT] = {
        {[PLACE_OVER] = 1, [PLACE_HEAD] = 1}, {[PLACE_HEAD] = 1}, {0}};
    int fds[] = {idle, lingers, half};
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        CU_ASSERT_TRUE(close_on_loop(-1));
        expect_closed(fds[i]);
        wait_for_place(PLACE_HEAD, left[i][PLACE_HEAD]);
        CU_ASSERT_EQUAL(memcmp(found, left[i], sizeof found), 0);
    }
    CU_ASSERT_FALSE(close_on_loop(-1));
    fixture_end();
}

static void a_request_that_is_handled_never_gives_way(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, &patient);
    int reading = client_connect();
    client_send(reading, STR("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nbody"));
    int busy = busy_client();
    struct loop *home = home_of_busy();
    while (http_server_busy(fixture.server) < 2) {
        (void)sched_yield();
    }
    CU_ASSERT_FALSE(close_on_loop(-1));
    size_t taken = leave_room(0);
    client_once(ASK, &got);
    CU_ASSERT_TRUE(has(&got, "HTTP/1.1 503 Service Unavailable\r\n"));
    client_ask(reading, "whole", "bodywhole", &got);
    expect_served(busy, home);
    admission_give(taken);
    (void)close(reading);
    fixture_end();
}

/* Listeners of two loops: which of them gets a client is up to the kernel, so each newcomer may come to one whose own
 * connections are all kept. */
static void half_heads_of_another_loop_give_way_too(void)
{
    enum { HALVES = 12 };
    int halves[HALVES];
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(2, &patient);
    for (int i = 0; i < HALVES; i++) {
        halves[i] = client_connect();
        client_send(halves[i], STR(HALF));
    }
    while (http_server_connections(fixture.server) < HALVES) {
        (void)sched_yield();
    }
    size_t taken = leave_room(0);
    int busy[HALVES];
    for (int i = 0; i < HALVES; i++) { /* the last finds one half head, wherever that is */
        busy[i] = client_connect();
        client_send(busy[i], STR("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n"));
        while (http_server_busy(fixture.server) < (size_t)i + 1) {
            (void)sched_yield();
        }
    }
    for (int i = 0; i < HALVES; i++) {
        expect_closed(halves[i]);
    }
    for (int i = 0; i < HALVES; i++) {
        client_ask(busy[i], "body", "\r\n\r\nbody", &got);
        (void)close(busy[i]);
    }
    admission_give(taken);
    fixture_end();
}

static const struct test tests[] = {
    TEST(idle_connections_of_all_loops_are_closed_and_busy_ones_never),
    TEST(far_from_the_limit_nothing_is_closed),
    TEST(who_waits_for_room_gets_that_of_an_idle_connection),
    TEST(where_all_are_busy_there_is_no_room),
    TEST(more_than_there_is_at_all_is_refused),
    TEST(a_new_client_has_the_place_of_an_idle_one),
    TEST(a_connection_whose_next_request_is_here_is_not_idle),
    TEST(the_half_head_that_is_held_longest_gives_way_to_a_newcomer),
    TEST(near_the_limit_half_heads_stay),
    TEST(a_connection_whose_answer_is_over_gives_way_to_a_newcomer),
    TEST(idle_ones_go_first_then_those_that_linger_then_half_heads),
    TEST(a_request_that_is_handled_never_gives_way),
    TEST(half_heads_of_another_loop_give_way_too),
};

int main(int argc, char **argv)
{
    log_catch();
    (void)admission_init(64);
    return run_tests("http_relief", tests, COUNT_OF(tests), argc, argv);
}
