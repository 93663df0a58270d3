/* The HTTP front's deadlines, leaving clients, limits of descriptors, and its own beginning and end. */
#include "http_fixture.h"

#include "http/admission.h"

#include <fcntl.h>
#include <sys/resource.h>

#define HOST "Host: a.test\r\n"
#define CLOSE HOST "Connection: close\r\n"

/* Long enough for everything but the one deadline that a test is about. */
static struct http_tuning tuning_of(void)
{
    return (struct http_tuning){60000, 60000, 60000, 60000, 60000, 0, 60000};
}

static void a_slow_head_is_answered_408(void)
{
    BUF_CLEANUP struct buf got = {0};
    struct http_tuning tuning = tuning_of();
    tuning.header_ms = 30;
    tuning.linger_ms = 30;
    fixture_begin(1, &tuning);
    log_forget();
    int fd = client_connect();
    client_ask(fd, "GET /a HTTP/1.1\r\nHo", NULL, &got);
    CU_ASSERT_TRUE(has(&got, "HTTP/1.1 408 Request Timeout\r\n"));
    CU_ASSERT_TRUE(has(&got, "the request's head took longer than 30 ms"));
    CU_ASSERT_TRUE(log_has("status=408 reason=\"the request's head took longer than 30 ms\""));
    (void)close(fd);
    fd = client_connect(); /* one that never speaks is closed without a word */
    client_ask(fd, "", NULL, &got);
    CU_ASSERT_EQUAL(got.len, 0);
    (void)close(fd);
    fixture_end();
}

static void a_slow_body_is_answered_408(void)
{
    BUF_CLEANUP struct buf got = {0};
    struct http_tuning tuning = tuning_of();
    tuning.body_silence_ms = 30;
    tuning.linger_ms = 30;
    fixture_begin(1, &tuning);
    for (int chunked = 0; chunked < 2; chunked++) {
        client_once(chunked ? "POST /a HTTP/1.1\r\n" HOST
                              "Transfer-Encoding: chunked\r\n\r\n5\r\nab"
                            : "POST /a HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nab",
                    &got);
        CU_ASSERT_TRUE(has(&got, "HTTP/1.1 408 Request Timeout\r\n"));
        CU_ASSERT_TRUE(has(&got, "\r\n\r\nthe request's body paused for longer than 30 ms"));
    }
    fixture_end();
}

static void an_idle_connection_is_closed_without_a_word(void)
{
    BUF_CLEANUP struct buf got = {0};
    struct http_tuning tuning = tuning_of();
    tuning.idle_ms = 30;
    fixture_begin(1, &tuning);
    int fd = client_connect();
    client_ask(fd, "GET /length HTTP/1.1\r\n" HOST "\r\n", "world, hello", &got);
    client_ask(fd, "", NULL, &got);
    CU_ASSERT_EQUAL(got.len, 0);
    (void)close(fd);
    fixture_end();
}

static void wait_for_cancelled(void)
{
    CU_ASSERT_EQUAL(sem_wait(&fixture.done), 0);
    CU_ASSERT_EQUAL(fixture.code, SG_E_CANCELLED);
}

static void a_client_that_leaves_cancels_its_handler(void)
{
    fixture_begin(1, NULL);
    int fd = client_connect();
    client_send(fd, STR("POST /wait HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello"));
    CU_ASSERT_EQUAL(sem_wait(&fixture.waiting), 0);
    CU_ASSERT_EQUAL(http_server_busy(fixture.server), 1);
    (void)close(fd);
    wait_for_cancelled();
    fixture_end();
}

static void a_client_that_half_closes_has_left(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    int fd = client_connect();
    client_send(fd, STR("GET /wait HTTP/1.1\r\n" HOST "\r\n"));
    CU_ASSERT_EQUAL(sem_wait(&fixture.waiting), 0);
    CU_ASSERT_EQUAL(shutdown(fd, SHUT_WR), 0);
    wait_for_cancelled();
    CU_ASSERT_TRUE(client_read(fd, NULL, &got));
    CU_ASSERT_EQUAL(got.len, 0);
    (void)close(fd);
    fixture_end();
}

static void a_client_that_resets_cancels_its_handler(void)
{
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    fixture_begin(1, NULL);
    int fd = client_connect();
    client_send(fd, STR("GET /wait HTTP/1.1\r\n" HOST "\r\n"));
    CU_ASSERT_EQUAL(sem_wait(&fixture.waiting), 0);
    CU_ASSERT_EQUAL(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    (void)close(fd);
    wait_for_cancelled();
    fixture_end();
}

static void a_client_that_leaves_ends_its_stream(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    int fd = client_connect();
    client_ask(fd, "GET /flush HTTP/1.1\r\n" HOST "\r\n", "\r\n\r\n", &got); /* the head alone */
    CU_ASSERT_TRUE(has(&got, "transfer-encoding: chunked\r\n"));
    CU_ASSERT_EQUAL(sem_wait(&fixture.waiting), 0);
    (void)close(fd);
    wait_for_cancelled();
    fixture_end();
}

static void a_client_that_leaves_within_its_body_ends_the_reading(void)
{
    fixture_begin(1, NULL);
    int fd = client_connect();
    client_send(fd, STR("POST /read HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhel"));
    while (http_server_busy(fixture.server) == 0) {
        (void)sched_yield();
    }
    (void)close(fd);
    wait_for_cancelled();
    CU_ASSERT_STRING_EQUAL(fixture.message, "the client left before the request's body was whole");
    fixture_end();
}

static void pipelined_bytes_do_not_hide_a_leaving_client(void)
{
    fixture_begin(1, NULL);
    int fd = client_connect();
    client_send(fd, STR("GET /wait HTTP/1.1\r\n" HOST "\r\nGET /next HTTP/1.1\r\n" HOST "\r\n"));
    CU_ASSERT_EQUAL(sem_wait(&fixture.waiting), 0);
    client_send(fd, STR("GET /more HTTP/1.1\r\n" HOST "\r\n"));
    (void)shutdown(fd, SHUT_WR);
    wait_for_cancelled();
    (void)close(fd);
    fixture_end();
}

/* The kernel's buffers take some; the process holds nothing. */
static void a_client_that_takes_nothing_is_given_up(void)
{
    BUF_CLEANUP struct buf got = {0};
    struct http_tuning tuning = tuning_of();
    tuning.write_ms = 30;
    fixture_begin(1, &tuning);
    int fd = client_connect(), bytes = 16384;
    CU_ASSERT_EQUAL(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes), 0);
    client_send(fd, STR("GET /flood HTTP/1.1\r\n" HOST "\r\n"));
    CU_ASSERT_EQUAL(sem_wait(&fixture.done), 0);
    CU_ASSERT_EQUAL(fixture.code, SG_E_TIMEOUT);
    CU_ASSERT_STRING_EQUAL(fixture.message, "the client took nothing for 30 ms");
    CU_ASSERT(fixture.bytes > 0 && fixture.bytes < 8 * MIB);
    CU_ASSERT_FALSE(client_read(fd, NULL, &got)); /* reset: what it has is no whole answer */
    (void)close(fd);
    fixture_end();
}

/* Its time is over in the middle of a piece: the client gets it whole, and what is said behind it. */
static void what_was_begun_is_finished_after_the_handlers_time(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    int fd = client_connect(), bytes = 16384;
    CU_ASSERT_EQUAL(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes), 0);
    client_send(fd, STR("GET /late HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n"));
    CU_ASSERT_EQUAL(sem_wait(&fixture.waiting), 0);
    CU_ASSERT_TRUE(client_read(fd, NULL, &got));
    CU_ASSERT_EQUAL(sem_wait(&fixture.done), 0);
    CU_ASSERT_EQUAL(fixture.code, 0);
    CU_ASSERT(got.len > 8 * MIB);
    CU_ASSERT_EQUAL(memcmp(got.data + got.len - 14, "the end", 7), 0);
    (void)close(fd);
    fixture_end();
}

/* ---- the end ---- */

static void wake_parked(struct loop_task *task)
{
    (void)task;
    fiber_wake(fixture.parked);
}

static void draining_closes_idle_connections_and_lets_exchanges_end(void)
{
    BUF_CLEANUP struct buf got = {0};
    struct loop_task wake = {.run = wake_parked};
    fixture_begin(1, NULL);
    int idle = client_connect(), busy = client_connect();
    client_ask(idle, "GET /length HTTP/1.1\r\n" HOST "\r\n", "world, hello", &got);
    client_send(busy, STR("GET /wait HTTP/1.1\r\n" HOST "\r\n"));
    CU_ASSERT_EQUAL(sem_wait(&fixture.waiting), 0);
    drain();
    client_ask(idle, "", NULL, &got); /* its end */
    CU_ASSERT_EQUAL(got.len, 0);
    CU_ASSERT_EQUAL(http_server_busy(fixture.server), 1);
    struct sockaddr_storage address = loopback(http_server_port(fixture.server));
    int late = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_EQUAL(connect(late, (void *)&address, sizeof(struct sockaddr_in)), -1);
    CU_ASSERT_EQUAL(errno, ECONNREFUSED);
    loop_post(fixture.loops[0], &wake);
    CU_ASSERT_TRUE(client_read(busy, NULL, &got));
    CU_ASSERT_TRUE(has(&got, "connection: close\r\n\r\nwoken"));
    (void)close(idle), (void)close(busy), (void)close(late);
    fixture_stop();
}

static void cancelling_answers_503_to_what_still_waits(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(2, NULL);
    int fd = client_connect();
    client_send(fd, STR("GET /wait HTTP/1.1\r\n" HOST "\r\n"));
    CU_ASSERT_EQUAL(sem_wait(&fixture.waiting), 0);
    drain();
    http_server_cancel(fixture.server);
    wait_for_cancelled();
    CU_ASSERT_TRUE(client_read(fd, NULL, &got));
    CU_ASSERT_TRUE(has(&got, "HTTP/1.1 503 Service Unavailable\r\n"));
    CU_ASSERT_TRUE(has(&got, "the server is shutting down"));
    (void)close(fd);
    fixture_stop();
}

static void every_loop_takes_connections(void)
{
    enum { CLIENTS = 64 };
    int clients[CLIENTS];
    fixture_begin(2, NULL);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = client_connect();
    }
    while (http_server_connections(fixture.server) < CLIENTS) {
        (void)sched_yield();
    }
    CU_ASSERT(atomic_load(&fixture.server->loops[0].connections_count) > 0);
    CU_ASSERT(atomic_load(&fixture.server->loops[1].connections_count) > 0);
    drain();
    for (int i = 0; i < CLIENTS; i++) {
        (void)close(clients[i]);
    }
    fixture_stop();
}

static void a_second_server_on_the_same_address_fails(void)
{
    struct sg_error err = {0};
    struct http_server *first = NULL, *second = NULL;
    char wanted[128];
    fixture_begin(1, NULL);
    uint16_t port = http_server_port(fixture.server);
    (void)snprintf(wanted, sizeof wanted,
                   "cannot listen on 127.0.0.1:%u: Address already in use (is another server "
                   "running there?)",
                   port);
    CU_ASSERT_EQUAL(server_new(port, &second, &err), SG_E_CONFIG);
    CU_ASSERT_STRING_EQUAL(err.message, wanted);
    CU_ASSERT_PTR_NULL(second);
    /* Also while the first one is bound and does not listen yet. */
    CU_ASSERT_EQUAL_FATAL(server_new(0, &first, &err), 0);
    CU_ASSERT_EQUAL(server_new(http_server_port(first), &second, &err), SG_E_CONFIG);
    http_server_free(first);
    fixture_end();
}

static void a_server_comes_back_while_old_connections_linger(void)
{
    BUF_CLEANUP struct buf got = {0};
    struct sg_error err = {0};
    struct http_server *again = NULL;
    fixture_begin(1, NULL);
    uint16_t port = http_server_port(fixture.server);
    client_once("GET /a HTTP/1.1\r\n" CLOSE "\r\n", &got); /* closed by the server: TIME_WAIT */
    fixture_end();
    fixture.count = 1;
    CU_ASSERT_EQUAL_FATAL(loop_new(0, NULL, &fixture.loops[0], &err), 0);
    CU_ASSERT_EQUAL(server_new(port, &again, &err), 0);
    http_server_free(again);
    loop_free(fixture.loops[0]);
}

/* ---- descriptors ---- */

static void without_room_a_client_is_told_to_come_again(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    size_t room = admission_limit() - admission_used();
    CU_ASSERT_TRUE(admission_take(room));
    client_once("GET /a HTTP/1.1\r\n" CLOSE "\r\n", &got);
    CU_ASSERT_TRUE(has(&got, "HTTP/1.1 503 Service Unavailable\r\n"));
    CU_ASSERT_TRUE(has(&got, "retry-after: 1\r\n"));
    CU_ASSERT_TRUE(has(&got, "\"message\":\"the server has no room for another connection; try "
                             "again later\""));
    admission_give(room);
    client_once("GET /a HTTP/1.1\r\n" CLOSE "\r\n", &got);
    CU_ASSERT_TRUE(has(&got, "HTTP/1.1 200 OK\r\n"));
    fixture_end();
    CU_ASSERT_EQUAL(admission_used(), 0);
}

/* Ten descriptors: five connections, all of them in an exchange. */
static void connections_are_taken_up_to_half_the_descriptors(void)
{
    BUF_CLEANUP struct buf got = {0};
    int clients[5];
    size_t files = admission_init(64);
    CU_ASSERT_EQUAL(admission_init(files - 10), files);
    CU_ASSERT_EQUAL(admission_connections_max(), 5);
    fixture_begin(1, NULL);
    for (size_t i = 0; i < COUNT_OF(clients); i++) {
        clients[i] = client_connect();
        client_send(clients[i], STR("GET /wait HTTP/1.1\r\n" HOST "\r\n"));
        CU_ASSERT_EQUAL(sem_wait(&fixture.waiting), 0);
    }
    client_once("GET /a HTTP/1.1\r\n" CLOSE "\r\n", &got);
    CU_ASSERT_TRUE(has(&got, "HTTP/1.1 503 "));
    (void)close(clients[0]);
    wait_for_cancelled();
    while (http_server_connections(fixture.server) > 4) {
        (void)sched_yield();
    }
    client_once("GET /a HTTP/1.1\r\n" CLOSE "\r\n", &got);
    CU_ASSERT_TRUE(has(&got, "HTTP/1.1 200 OK\r\n"));
    for (size_t i = 1; i < COUNT_OF(clients); i++) {
        (void)close(clients[i]);
    }
    fixture_end();
    (void)admission_init(64);
}

static void near_the_limit_the_longest_idle_connection_goes(void)
{
    BUF_CLEANUP struct buf got = {0};
    struct http_tuning tuning = tuning_of();
    fixture_begin(1, &tuning);
    int first = client_connect(), second = client_connect();
    client_ask(first, "GET /length HTTP/1.1\r\n" HOST "\r\n", "world, hello", &got);
    client_ask(second, "GET /length HTTP/1.1\r\n" HOST "\r\n", "world, hello", &got);
    size_t most = admission_limit() - admission_used() - 2;
    CU_ASSERT_TRUE(admission_take(most));
    int third = client_connect();
    client_ask(third, "GET /length HTTP/1.1\r\n" HOST "\r\n", "world, hello", &got);
    client_ask(first, "", NULL, &got); /* its end */
    CU_ASSERT_EQUAL(got.len, 0);
    client_ask(second, "GET /length HTTP/1.1\r\n" HOST "\r\n", "world, hello", &got);
    admission_give(most);
    (void)close(first), (void)close(second), (void)close(third);
    fixture_end();
}

/* It may be about to send its next request. */
static void near_the_limit_a_client_that_was_just_answered_stays(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    int first = client_connect();
    client_ask(first, "GET /length HTTP/1.1\r\n" HOST "\r\n", "world, hello", &got);
    size_t most = admission_limit() - admission_used() - 2;
    CU_ASSERT_TRUE(admission_take(most));
    int second = client_connect();
    client_ask(second, "GET /length HTTP/1.1\r\n" HOST "\r\n", "world, hello", &got);
    client_ask(first, "GET /length HTTP/1.1\r\n" HOST "\r\n", "world, hello", &got);
    admission_give(most);
    (void)close(first), (void)close(second);
    fixture_end();
}

/* Against all counting the process has no descriptor left. */
static void a_client_is_told_even_without_a_descriptor(void)
{
    BUF_CLEANUP struct buf got = {0};
    struct rlimit before, none;
    if (valgrind_forbids("Valgrind closes what accept() brings above the limit of descriptors")) {
        return;
    }
    fixture_begin(1, NULL);
    log_forget();
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), lowest = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    CU_ASSERT_EQUAL(getrlimit(RLIMIT_NOFILE, &before), 0);
    (void)close(lowest);
    none = (struct rlimit){(rlim_t)lowest, before.rlim_max};
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct sockaddr_storage address = loopback(http_server_port(fixture.server));
    CU_ASSERT_EQUAL(connect(fd, (void *)&address, sizeof(struct sockaddr_in)), 0);
    CU_ASSERT_TRUE(client_read(fd, NULL, &got));
    CU_ASSERT_TRUE(has(&got, "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n"));
    CU_ASSERT_TRUE(log_has("level=warn event=accept_failed reason=\"Too many open files\""));
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &before), 0);
    (void)close(fd);
    client_once("GET /a HTTP/1.1\r\n" CLOSE "\r\n", &got);
    CU_ASSERT_TRUE(has(&got, "HTTP/1.1 200 OK\r\n"));
    fixture_end();
}

static const struct test tests[] = {
    TEST(a_slow_head_is_answered_408),
    TEST(a_slow_body_is_answered_408),
    TEST(an_idle_connection_is_closed_without_a_word),
    TEST(a_client_that_leaves_cancels_its_handler),
    TEST(a_client_that_half_closes_has_left),
    TEST(a_client_that_resets_cancels_its_handler),
    TEST(a_client_that_leaves_ends_its_stream),
    TEST(a_client_that_leaves_within_its_body_ends_the_reading),
    TEST(pipelined_bytes_do_not_hide_a_leaving_client),
    TEST(a_client_that_takes_nothing_is_given_up),
    TEST(what_was_begun_is_finished_after_the_handlers_time),
    TEST(draining_closes_idle_connections_and_lets_exchanges_end),
    TEST(cancelling_answers_503_to_what_still_waits),
    TEST(every_loop_takes_connections),
    TEST(a_second_server_on_the_same_address_fails),
    TEST(a_server_comes_back_while_old_connections_linger),
    TEST(without_room_a_client_is_told_to_come_again),
    TEST(connections_are_taken_up_to_half_the_descriptors),
    TEST(near_the_limit_the_longest_idle_connection_goes),
    TEST(near_the_limit_a_client_that_was_just_answered_stays),
    TEST(a_client_is_told_even_without_a_descriptor),
};

int main(int argc, char **argv)
{
    log_catch();
    (void)admission_init(64);
    return run_tests("http_server_life", tests, COUNT_OF(tests), argc, argv);
}
