/* Bodies count against their identity's account: before they are read, in steps where their length is not told, and all
 * is given back whatever happens. The handler of /account (http_fixture.h) reads a body for identity "a". */
#include "http_fixture.h"

#include <sched.h>

#define POST "POST /account HTTP/1.1\r\nHost: a\r\n"
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"

enum { SHARE = 100 * 1000, STEP = 64 * 1024 };

static struct account other; /* of "a" too: what its other requests hold */

static void hold(size_t bytes)
{
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(account_set(&other, bytes, &err), 0);
}

static void begin(void)
{
    admission_set_budget(4 * SHARE, SHARE);
    account_open(&other, STR("a"));
    fixture_begin(1, NULL);
}

static void finish(void)
{
    account_close(&other);
    fixture_end();
    CU_ASSERT_EQUAL(admission_bytes(), 0);
}

static void send_head(int fd, size_t length)
{
    BUF_CLEANUP struct buf head = {0};
    buf_printf(&head, POST "Content-Length: %zu\r\n\r\n", length);
    client_send(fd, buf_str(&head));
}

static void send_bytes(int fd, size_t count)
{
    static char bytes[SHARE + 1];
    CHECK(count <= sizeof bytes);
    client_send(fd, (struct str){bytes, count});
}

static void expect_answer(int fd, const char *status, const char *body)
{
    BUF_CLEANUP struct buf got = {0};
    CU_ASSERT_TRUE(client_read(fd, body, &got));
    CU_ASSERT_TRUE(has(&got, status));
    CU_ASSERT_EQUAL(sem_wait(&fixture.done), 0);
    (void)close(fd);
}

/* ---- with a length ---- */

static void a_body_is_counted_while_its_request_lasts(void)
{
    begin();
    int fd = client_connect();
    send_head(fd, SHARE);
    send_bytes(fd, SHARE);
    expect_answer(fd, "HTTP/1.1 200 OK\r\n", "read");
    CU_ASSERT_EQUAL(fixture.bytes, SHARE);
    finish();
}

static void a_body_without_room_is_refused_before_it_is_read(void)
{
    begin();
    hold(1);
    int fd = client_connect();
    send_head(fd, SHARE); /* and not a byte of it */
    expect_answer(fd, "HTTP/1.1 503 Service Unavailable\r\n",
                  "The requests of this key hold 100000 bytes, their share of "
                  "server.memory_budget: try again later.");
    CU_ASSERT_EQUAL(fixture.bytes, 1);
    hold(0);
    fd = client_connect();
    send_head(fd, SHARE);
    send_bytes(fd, SHARE);
    expect_answer(fd, "HTTP/1.1 200 OK\r\n", "read");
    finish();
}

static void a_body_that_will_never_fit_is_413(void)
{
    begin();
    int fd = client_connect();
    send_head(fd, SHARE + 1);
    expect_answer(fd, "HTTP/1.1 413 ",
                  "This request needs more than 100000 bytes, the most that one key may hold of "
                  "server.memory_budget.");
    finish();
}

/* ---- in chunks ---- */

static void send_chunk(int fd, size_t count)
{
    BUF_CLEANUP struct buf head = {0};
    buf_printf(&head, "%zx\r\n", count);
    client_send(fd, buf_str(&head));
    send_bytes(fd, count);
    client_send(fd, STR("\r\n"));
}

static void what_chunks_were_counted_ahead_comes_back(void)
{
    begin();
    int fd = client_connect();
    client_send(fd, STR(CHUNKED));
    send_chunk(fd, 10);
    send_chunk(fd, 20);
    client_send(fd, STR("0\r\n\r\n"));
    expect_answer(fd, "HTTP/1.1 200 OK\r\n", "read");
    CU_ASSERT_EQUAL(fixture.bytes, 30);
    finish();
}

static void chunks_are_refused_where_their_room_ends(void)
{
    begin();
    hold(SHARE - STEP - 10);
    int fd = client_connect();
    client_send(fd, STR(CHUNKED));
    send_chunk(fd, 10); /* there is room for it and a step ahead */
    send_chunk(fd, STEP);
    client_send(fd, STR("1\r\nx"));
    expect_answer(fd, "HTTP/1.1 503 Service Unavailable\r\n", "try again later.");
    CU_ASSERT_TRUE(fixture.bytes <= SHARE);
    finish();
}

/* ---- other ends ---- */

static void a_client_that_leaves_within_its_body_leaves_no_bytes(void)
{
    begin();
    int fd = client_connect();
    send_head(fd, SHARE);
    send_bytes(fd, 5);
    while (admission_bytes() < SHARE) {
        (void)sched_yield();
    }
    (void)close(fd);
    CU_ASSERT_EQUAL(sem_wait(&fixture.done), 0);
    CU_ASSERT_EQUAL(fixture.code, SG_E_CANCELLED);
    finish();
}

static void a_broken_body_leaves_no_bytes(void)
{
    begin();
    int fd = client_connect();
    client_send(fd, STR(CHUNKED));
    send_chunk(fd, 10);
    client_send(fd, STR("zz\r\n"));
    BUF_CLEANUP struct buf got = {0};
    CU_ASSERT_TRUE(client_read(fd, NULL, &got));
    CU_ASSERT_TRUE(has(&got, "HTTP/1.1 400 "));
    CU_ASSERT_EQUAL(sem_wait(&fixture.done), 0);
    (void)close(fd);
    finish();
}

static const struct test tests[] = {
    TEST(a_body_is_counted_while_its_request_lasts),
    TEST(a_body_without_room_is_refused_before_it_is_read),
    TEST(a_body_that_will_never_fit_is_413),
    TEST(what_chunks_were_counted_ahead_comes_back),
    TEST(chunks_are_refused_where_their_room_ends),
    TEST(a_client_that_leaves_within_its_body_leaves_no_bytes),
    TEST(a_broken_body_leaves_no_bytes),
};

int main(int argc, char **argv)
{
    log_catch();
    return run_tests("http_account", tests, COUNT_OF(tests), argc, argv);
}
