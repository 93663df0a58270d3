/* Request bodies that are read in pieces, over loopback: each is there before the next one is sent, and what follows the last is the
 * next request's. */
#include "http_fixture.h"

#define HOST "Host: a.test\r\n"
#define CLOSE HOST "Connection: close\r\n"

/* Both codings of one body. */
static const char *const heads[] = {"POST /pieces HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\n",
                                    "POST /pieces HTTP/1.1\r\n" HOST
                                    "Transfer-Encoding: chunked\r\n\r\n"};
static const char *const first_parts[] = {"first", "5\r\nfirst\r\n"};
static const char *const last_parts[] = {"-last", "5;x\r\n-last\r\n0\r\nTrailer: x\r\n\r\n"};

static void each_piece_is_there_before_the_next_is_sent(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    int fd = client_connect();
    for (size_t i = 0; i < COUNT_OF(heads); i++) {
        client_send(fd, str_of(heads[i]));
        client_send(fd, str_of(first_parts[i]));
        CU_ASSERT_EQUAL(sem_wait(&fixture.waiting), 0);
        client_ask(fd, last_parts[i], "\r\n\r\nfirst-last", &got);
        CU_ASSERT_TRUE(has(&got, "connection: keep-alive\r\n"));
        CU_ASSERT_EQUAL(sem_wait(&fixture.waiting), 0);
        CU_ASSERT_EQUAL(sem_wait(&fixture.done), 0);
        CU_ASSERT_EQUAL(fixture.code, 0);
    }
    (void)close(fd);
    fixture_end();
}

static void what_stands_behind_a_body_is_the_next_request(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    client_once("POST /pieces HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\none"
                "POST /pieces HTTP/1.1\r\n" HOST
                "Transfer-Encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\n\r\n"
                "GET /pieces HTTP/1.1\r\n" HOST "\r\n"
                "POST /a HTTP/1.1\r\n" CLOSE "Content-Length: 5\r\n\r\nthree",
                &got);
    CU_ASSERT_TRUE(has(&got, "\r\n\r\noneHTTP/1.1 200 OK"));
    CU_ASSERT_TRUE(has(&got, "\r\n\r\ntwoHTTP/1.1 200 OK"));
    CU_ASSERT_TRUE(has(&got, "content-length: 0\r\n"));
    CU_ASSERT_TRUE(has(&got, "\r\n\r\nthree"));
    fixture_end();
}

static void who_expects_it_is_told_to_go_on_when_the_first_piece_is_wanted(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    int fd = client_connect();
    client_ask(fd,
               "POST /pieces HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n",
               "\r\n\r\n", &got);
    CU_ASSERT_STRING_EQUAL(got.data, "HTTP/1.1 100 Continue\r\n\r\n");
    client_ask(fd, "abc", "\r\n\r\nabc", &got);
    (void)close(fd);
    fixture_end();
}

/* Sends BODY_MAX + more bytes, in pieces of ten. */
static void ask_long(size_t more, bool chunked, struct buf *got)
{
    BUF_CLEANUP struct buf request = {0};
    size_t bytes = BODY_MAX + more;
    buf_puts(&request, "POST /pieces HTTP/1.1\r\n" CLOSE);
    if (chunked) {
        buf_puts(&request, "Transfer-Encoding: chunked\r\n\r\n");
    } else {
        buf_printf(&request, "Content-Length: %zu\r\n\r\n", bytes);
    }
    for (size_t i = 0; i < bytes; i += 10) {
        int len = (int)(bytes - i < 10 ? bytes - i : 10);
        buf_printf(&request, chunked ? "%x\r\n%.*s\r\n" : "%.0x%.*s", chunked ? len : 0, len,
                   "xxxxxxxxxx");
    }
    buf_puts(&request, chunked ? "0\r\n\r\n" : "");
    client_once(request.data, got);
}

static void all_pieces_together_are_bounded(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    for (int chunked = 0; chunked < 2; chunked++) {
        ask_long(0, chunked != 0, &got);
        CU_ASSERT_TRUE(has(&got, "HTTP/1.1 200 OK\r\n"));
        CU_ASSERT_TRUE(has(&got, "content-length: 100\r\n"));
        ask_long(1, chunked != 0, &got);
        CU_ASSERT_TRUE(has(&got, "HTTP/1.1 413 Content Too Large\r\n"));
        CU_ASSERT_TRUE(has(&got, "\r\n\r\nthe request's body is longer than 100 bytes"));
    }
    fixture_end();
}

static void a_body_that_breaks_off_or_is_badly_chunked_is_told(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    client_once("POST /pieces HTTP/1.1\r\n" HOST
                "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nx\r\n",
                &got);
    CU_ASSERT_TRUE(has(&got, "HTTP/1.1 400 "));
    CU_ASSERT_TRUE(has(&got, "the request's body is not well chunked"));
    CU_ASSERT_EQUAL(sem_wait(&fixture.done), 0);
    int fd = client_connect();
    client_send(fd, STR("POST /pieces HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nabc"));
    CU_ASSERT_EQUAL(sem_wait(&fixture.waiting), 0);
    (void)close(fd);
    CU_ASSERT_EQUAL(sem_wait(&fixture.done), 0);
    CU_ASSERT_EQUAL(fixture.code, SG_E_CANCELLED);
    CU_ASSERT_STRING_EQUAL(fixture.message, "the client left before the request's body was whole");
    fixture_end();
}

static void a_client_that_pauses_for_too_long_is_told(void)
{
    BUF_CLEANUP struct buf got = {0};
    struct http_tuning tuning = {.header_ms = 60000,
                                 .body_silence_ms = 50,
                                 .idle_ms = 60000,
                                 .write_ms = 60000,
                                 .linger_ms = 1000,
                                 .handshake_ms = 60000};
    fixture_begin(1, &tuning);
    client_once("POST /pieces HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nabc", &got);
    CU_ASSERT_TRUE(has(&got, "HTTP/1.1 408 "));
    CU_ASSERT_TRUE(has(&got, "the request's body paused for longer than 50 ms"));
    fixture_end();
}

/* Where the rest was not read the next request cannot be found. */
static void a_connection_whose_body_was_read_in_part_is_closed(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    client_once("POST /first HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
                &got);
    CU_ASSERT_TRUE(has(&got, "connection: close\r\n"));
    CU_ASSERT_TRUE(has(&got, "\r\n\r\nenough"));
    client_once("POST /first HTTP/1.1\r\n" HOST "Content-Length: 100\r\n\r\n"
                "GET /a HTTP/1.1\r\n" HOST "\r\n",
                &got);
    CU_ASSERT_TRUE(has(&got, "connection: close\r\n"));
    CU_ASSERT_TRUE(lacks(&got, "200 OK"));
    fixture_end();
}

static const struct test tests[] = {
    TEST(each_piece_is_there_before_the_next_is_sent),
    TEST(what_stands_behind_a_body_is_the_next_request),
    TEST(who_expects_it_is_told_to_go_on_when_the_first_piece_is_wanted),
    TEST(all_pieces_together_are_bounded),
    TEST(a_body_that_breaks_off_or_is_badly_chunked_is_told),
    TEST(a_client_that_pauses_for_too_long_is_told),
    TEST(a_connection_whose_body_was_read_in_part_is_closed),
};

int main(int argc, char **argv)
{
    return run_tests("http_pieces", tests, COUNT_OF(tests), argc, argv);
}
