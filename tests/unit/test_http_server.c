/* The HTTP front over loopback: what a client sends and what comes back, byte by byte. */
#include "http_fixture.h"

#include "http/admission.h"

#include <cjson/cJSON.h>

#define HOST "Host: a.test\r\n"
#define CLOSE HOST "Connection: close\r\n"

static void a_connection_serves_one_request_after_the_other(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    int fd = client_connect();
    for (int i = 0; i < 3; i++) {
        client_ask(fd, "POST /a HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\none", "\r\n\r\none",
                   &got);
        CU_ASSERT_TRUE(has(&got, "HTTP/1.1 200 OK\r\n"));
        CU_ASSERT_TRUE(has(&got, "connection: keep-alive\r\n"));
        CU_ASSERT_TRUE(has(&got, "content-length: 3\r\n"));
        CU_ASSERT_TRUE(has(&got, " GMT\r\n"));
    }
    client_ask(fd, "GET /a HTTP/1.1\r\n" CLOSE "\r\n", NULL, &got);
    CU_ASSERT_TRUE(has(&got, "connection: close\r\n"));
    (void)close(fd);
    fixture_end();
}

static void the_date_is_the_present_one(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    time_t before = time(NULL);
    client_once("GET /a HTTP/1.1\r\n" CLOSE "\r\n", &got);
    const char *date = strstr(got.data, "date: ");
    struct tm tm = {0};
    CU_ASSERT_PTR_NOT_NULL_FATAL(date);
    CU_ASSERT_PTR_NOT_NULL(strptime(date, "date: %a, %d %b %Y %H:%M:%S GMT", &tm));
    time_t said = timegm(&tm);
    CU_ASSERT(said >= before && said <= time(NULL));
    fixture_end();
}

static void pipelined_requests_are_answered_in_their_order(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    int fd = client_connect();
    client_ask(fd,
               "POST /one HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\none"
               "POST /two HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
               "3\r\ntwo\r\n0\r\nTrailer: x\r\n\r\n"
               "POST /three HTTP/1.1\r\n" CLOSE "Content-Length: 5\r\n\r\nthree",
               NULL, &got);
    const char *one = strstr(got.data, "x-path: /one\r\n"),
               *two = strstr(got.data, "\r\n\r\ntwoHTTP");
    CU_ASSERT(one != NULL && two != NULL && one < two);
    CU_ASSERT_TRUE(has(&got, "\r\n\r\noneHTTP/1.1 200 OK"));
    CU_ASSERT_TRUE(has(&got, "\r\n\r\nthree"));
    (void)close(fd);
    fixture_end();
}

static void a_request_may_come_in_single_bytes(void)
{
    static const char request[] =
        "\r\nPOST /a HTTP/1.1\r\n" CLOSE
        "Transfer-Encoding: chunked\r\n\r\n2;x\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    int fd = client_connect();
    for (size_t i = 0; i < sizeof request - 1; i++) {
        client_send(fd, (struct str){request + i, 1});
    }
    CU_ASSERT_TRUE(client_read(fd, NULL, &got));
    CU_ASSERT_TRUE(has(&got, "\r\n\r\nabc"));
    (void)close(fd);
    fixture_end();
}

static void a_client_that_expects_it_is_told_to_go_on(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    int fd = client_connect();
    client_ask(fd, "POST /a HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n",
               "\r\n\r\n", &got);
    CU_ASSERT_STRING_EQUAL(got.data, "HTTP/1.1 100 Continue\r\n\r\n");
    client_ask(fd, "abc", "\r\n\r\nabc", &got);
    CU_ASSERT_TRUE(has(&got, "connection: keep-alive\r\n"));
    client_ask(fd,
               "POST /a HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 3\r\n\r\ndef",
               "\r\n\r\ndef", &got);
    CU_ASSERT_TRUE(lacks(&got, "100 Continue"));
    client_ask(fd,
               "POST /a HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 101\r\n\r\n",
               NULL, &got);
    CU_ASSERT_TRUE(has(&got, "HTTP/1.1 413 Content Too Large\r\n"));
    CU_ASSERT_TRUE(lacks(&got, "100 Continue"));
    (void)close(fd);
    fixture_end();
}

/* Sends a body of `bytes` bytes, with a length or as one chunk. */
static void ask_with_body(size_t bytes, bool chunked, struct buf *got)
{
    BUF_CLEANUP struct buf request = {0};
    buf_puts(&request, "POST /a HTTP/1.1\r\n" CLOSE);
    if (chunked) {
        buf_printf(&request, "Transfer-Encoding: chunked\r\n\r\n%zx\r\n", bytes);
    } else {
        buf_printf(&request, "Content-Length: %zu\r\n\r\n", bytes);
    }
    for (size_t i = 0; i < bytes; i++) {
        buf_putc(&request, 'x');
    }
    buf_puts(&request, chunked ? "\r\n0\r\n\r\n" : "");
    client_once(request.data, got);
}

static void a_body_may_be_as_long_as_the_limit_and_no_longer(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    for (int chunked = 0; chunked < 2; chunked++) {
        ask_with_body(BODY_MAX, chunked != 0, &got);
        CU_ASSERT_TRUE(has(&got, "HTTP/1.1 200 OK\r\n"));
        ask_with_body(BODY_MAX + 1, chunked != 0, &got);
        CU_ASSERT_TRUE(has(&got, "HTTP/1.1 413 Content Too Large\r\n"));
        CU_ASSERT_TRUE(has(&got, "\r\n\r\nthe request's body is longer than 100 bytes"));
    }
    fixture_end();
}

static void a_refused_client_that_still_sends_gets_its_answer(void)
{
    enum { BYTES = 8 * 1024 * 1024 };
    BUF_CLEANUP struct buf got = {0}, request = {0};
    fixture_begin(1, NULL);
    buf_printf(&request, "POST /a HTTP/1.1\r\n" HOST "Content-Length: %d\r\n\r\n", BYTES);
    size_t head = request.len;
    CU_ASSERT_PTR_NOT_NULL_FATAL(buf_reserve(&request, BYTES));
    memset(request.data + head, 'x', BYTES);
    buf_commit(&request, BYTES);
    int fd = client_connect();
    client_send(fd, buf_str(&request));
    CU_ASSERT_EQUAL(shutdown(fd, SHUT_WR), 0);
    CU_ASSERT_TRUE(client_read(fd, NULL, &got));
    CU_ASSERT_TRUE(has(&got, "HTTP/1.1 413 "));
    (void)close(fd);
    fixture_end();
}

static void long_bodies_arrive_whole(void)
{
    enum { BYTES = 3 * 1024 * 1024 };
    BUF_CLEANUP struct buf got = {0}, request = {0};
    fixture_begin(1, NULL);
    buf_printf(&request, "POST /read HTTP/1.1\r\n" HOST "Content-Length: %d\r\n\r\n", BYTES);
    size_t head = request.len;
    for (size_t i = 0; i < BYTES; i++) {
        buf_putc(&request, (char)('a' + i % 23));
    }
    buf_puts(&request, "GET /next HTTP/1.1\r\n" CLOSE "\r\n");
    int fd = client_connect();
    client_send(fd, buf_str(&request));
    CU_ASSERT_TRUE(client_read(fd, NULL, &got));
    CU_ASSERT_EQUAL(fixture.body.len, BYTES);
    CU_ASSERT_EQUAL(memcmp(fixture.body.data, request.data + head, BYTES), 0);
    CU_ASSERT_TRUE(has(&got, "\r\n\r\nreadHTTP/1.1 200 OK"));
    CU_ASSERT_TRUE(has(&got, "x-path: /next\r\n"));
    (void)close(fd);
    fixture_end();
}

static void a_bad_request_is_answered_in_json_and_closed(void)
{
    static const struct {
        const char *request, *line, *message;
    } bad[] = {
        {"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n", "HTTP/1.1 400 Bad Request\r\n",
         "the request has no Host header"},
        {"GET / HTTP/1.1\nHost: a\n\n", "HTTP/1.1 400 Bad Request\r\n",
         "a line of the request's head ends in a bare LF"},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n",
         "HTTP/1.1 501 Not Implemented\r\n", "Transfer-Encoding may only be 'chunked'"},
        {"GET / HTTP/3.0\r\n" HOST "\r\n", "HTTP/1.1 505 HTTP Version Not Supported\r\n",
         "only HTTP/1.1 and HTTP/1.0 are spoken here"},
        {"GET / HTTP/1.1\r\n" HOST "Expect: x\r\n\r\n", "HTTP/1.1 417 Expectation Failed\r\n",
         "Expect may only be '100-continue'"},
    };
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        log_forget();
        client_once(bad[i].request, &got);
        CU_ASSERT_TRUE(log_has("level=info event=request_refused client=127.0.0.1:"));
        CU_ASSERT_TRUE(log_has(bad[i].message));
        CU_ASSERT_TRUE(str_starts(buf_str(&got), str_of(bad[i].line)));
        CU_ASSERT_TRUE(has(&got, "connection: close\r\n"));
        CU_ASSERT_TRUE(has(&got, "content-type: application/json\r\n"));
        cJSON *json = cJSON_Parse(strstr(got.data, "\r\n\r\n"));
        const cJSON *error = cJSON_GetObjectItemCaseSensitive(json, "error");
        CU_ASSERT_PTR_NOT_NULL_FATAL(error);
        CU_ASSERT_STRING_EQUAL(cJSON_GetObjectItem(error, "message")->valuestring, bad[i].message);
        CU_ASSERT_STRING_EQUAL(cJSON_GetObjectItem(error, "type")->valuestring,
                               "invalid_request_error");
        CU_ASSERT_TRUE(cJSON_IsNull(cJSON_GetObjectItem(error, "param")));
        CU_ASSERT_TRUE(cJSON_IsNull(cJSON_GetObjectItem(error, "code")));
        cJSON_Delete(json);
    }
    fixture_end();
}

/* A head of `bytes` bytes that asks for nothing else. */
static void ask_with_head(size_t bytes, const char *end, struct buf *got)
{
    BUF_CLEANUP struct buf request = {0};
    buf_puts(&request, "GET /a HTTP/1.1\r\n" CLOSE "X: ");
    while (request.len < bytes - strlen(end)) {
        buf_putc(&request, 'x');
    }
    buf_puts(&request, end);
    client_once(request.data, got);
}

static void a_head_may_be_as_long_as_the_limit_and_no_longer(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    ask_with_head(LIMIT_HEADER_BYTES, "\r\n\r\n", &got);
    CU_ASSERT_TRUE(has(&got, "HTTP/1.1 200 OK\r\n"));
    ask_with_head(LIMIT_HEADER_BYTES + 1, "\r\n\r\n", &got);
    CU_ASSERT_TRUE(has(&got, "HTTP/1.1 431 Request Header Fields Too Large\r\n"));
    CU_ASSERT_TRUE(has(&got, "the request's head is longer than 32768 bytes"));
    ask_with_head(LIMIT_HEADER_BYTES + 1, "", &got); /* and without an end */
    CU_ASSERT_TRUE(has(&got, "HTTP/1.1 431 "));
    fixture_end();
}

static void broken_chunks_are_answered_400_and_closed(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    client_once("POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                "x\r\nGET /evil HTTP/1.1\r\n" HOST "\r\n",
                &got);
    CU_ASSERT_TRUE(has(&got, "HTTP/1.1 400 Bad Request\r\n"));
    CU_ASSERT_TRUE(has(&got, "\r\n\r\nthe request's body is not well chunked"));
    CU_ASSERT_TRUE(lacks(&got, "/evil"));
    fixture_end();
}

static void streams_are_framed_as_the_version_has_it(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    client_once("GET /stream HTTP/1.1\r\n" CLOSE "\r\n", &got);
    CU_ASSERT_TRUE(has(&got, "transfer-encoding: chunked\r\n"));
    CU_ASSERT_TRUE(lacks(&got, "content-length"));
    CU_ASSERT_TRUE(has(&got, "\r\n\r\n6\r\nhello \r\nc\r\nworld, hello\r\n0\r\n\r\n"));
    CU_ASSERT_EQUAL(sem_wait(&fixture.done), 0);
    client_once("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", &got);
    CU_ASSERT_TRUE(lacks(&got, "transfer-encoding"));
    CU_ASSERT_TRUE(has(&got, "connection: close\r\n\r\nhello world, hello"));
    CU_ASSERT_EQUAL(sem_wait(&fixture.done), 0);
    client_once("GET /length HTTP/1.1\r\n" CLOSE "\r\n", &got);
    CU_ASSERT_TRUE(has(&got, "content-length: 18\r\n"));
    CU_ASSERT_TRUE(has(&got, "\r\n\r\nhello world, hello"));
    CU_ASSERT_EQUAL(sem_wait(&fixture.done), 0);
    CU_ASSERT_EQUAL(fixture.bytes, 18);
    fixture_end();
}

static void an_http_1_0_client_may_keep_its_connection(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    int fd = client_connect();
    client_ask(fd, "GET /length HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "world, hello", &got);
    CU_ASSERT_TRUE(has(&got, "connection: keep-alive\r\n"));
    client_ask(fd, "GET /length HTTP/1.0\r\n\r\n", NULL, &got);
    CU_ASSERT_TRUE(has(&got, "connection: close\r\n"));
    (void)close(fd);
    fixture_end();
}

static void an_answer_without_a_body_has_none(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    int fd = client_connect();
    client_ask(fd, "HEAD /length HTTP/1.1\r\n" HOST "\r\n", "\r\n\r\n", &got);
    CU_ASSERT_TRUE(has(&got, "content-length: 18\r\n"));
    client_ask(fd, "HEAD /stream HTTP/1.1\r\n" HOST "\r\n", "\r\n\r\n", &got);
    CU_ASSERT_TRUE(has(&got, "transfer-encoding: chunked\r\n"));
    client_ask(fd, "HEAD /a HTTP/1.1\r\n" HOST "\r\n", "\r\n\r\n", &got);
    client_ask(fd, "GET /empty HTTP/1.1\r\n" HOST "\r\n", "\r\n\r\n", &got);
    CU_ASSERT_TRUE(has(&got, "HTTP/1.1 204 No Content\r\n"));
    CU_ASSERT_TRUE(lacks(&got, "content-length"));
    client_ask(fd, "GET /last HTTP/1.1\r\n" CLOSE "\r\n", NULL, &got);
    CU_ASSERT_TRUE(str_starts(buf_str(&got), STR("HTTP/1.1 200 OK\r\n"))); /* right behind */
    (void)close(fd);
    fixture_end();
}

static void bad_fields_and_framing_of_a_handler_are_left_out(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    log_forget();
    client_once("POST /fields HTTP/1.1\r\n" CLOSE "Content-Length: 2\r\n\r\nhi", &got);
    CU_ASSERT_TRUE(has(&got, "x-path: /fields\r\n"));
    CU_ASSERT_TRUE(log_has("level=warn event=answer_field_left_out name=\"bad name\"\n"));
    CU_ASSERT_TRUE(log_has("level=warn event=answer_field_left_out name=x-bad\n"));
    CU_ASSERT_TRUE(has(&got, "content-length: 2\r\n"));
    CU_ASSERT_TRUE(lacks(&got, "x-evil"));
    CU_ASSERT_TRUE(lacks(&got, "x-bad"));
    CU_ASSERT_TRUE(lacks(&got, "bad name"));
    CU_ASSERT_TRUE(lacks(&got, "Content-Length: 5"));
    CU_ASSERT_TRUE(lacks(&got, "transfer-encoding"));
    fixture_end();
}

static void an_answer_that_was_not_given_is_500(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    client_once("GET /silent HTTP/1.1\r\n" CLOSE "\r\n", &got);
    CU_ASSERT_TRUE(has(&got, "HTTP/1.1 500 Internal Server Error\r\n"));
    CU_ASSERT_TRUE(has(&got, "{\"error\":{\"message\":\"the request was not answered\",\"type\":"
                             "\"server_error\",\"param\":null,\"code\":null}}"));
    fixture_end();
}

static void an_answer_that_was_not_ended_is_seen_as_cut(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    client_once("GET /unfinished HTTP/1.1\r\n" HOST "\r\n", &got);
    CU_ASSERT_TRUE(has(&got, "world, hello\r\n"));
    CU_ASSERT_TRUE(lacks(&got, "\r\n0\r\n\r\n"));
    int fd = client_connect();
    client_send(fd, STR("GET /unfinished HTTP/1.0\r\n\r\n"));
    CU_ASSERT_FALSE(client_read(fd, NULL, &got)); /* a reset: an end would look whole */
    CU_ASSERT_EQUAL(errno, ECONNRESET);
    (void)close(fd);
    fixture_end();
}

static void a_body_that_does_not_fit_its_length_is_cut(void)
{
    BUF_CLEANUP struct buf got = {0};
    fixture_begin(1, NULL);
    client_once("GET /longer HTTP/1.1\r\n" HOST "\r\n", &got);
    CU_ASSERT_EQUAL(sem_wait(&fixture.done), 0);
    CU_ASSERT_EQUAL(fixture.code, SG_E_INTERNAL);
    CU_ASSERT_STRING_EQUAL(fixture.message,
                           "the answer's body is longer than its content-length of 17");
    CU_ASSERT_TRUE(has(&got, "\r\n\r\nhello "));
    CU_ASSERT_TRUE(lacks(&got, "world"));
    client_once("GET /shorter HTTP/1.1\r\n" HOST "\r\n", &got);
    CU_ASSERT_EQUAL(sem_wait(&fixture.done), 0);
    CU_ASSERT_STRING_EQUAL(fixture.message,
                           "the answer's body is shorter than its content-length of 19");
    fixture_end();
}

static const struct test tests[] = {
    TEST(a_connection_serves_one_request_after_the_other),
    TEST(the_date_is_the_present_one),
    TEST(pipelined_requests_are_answered_in_their_order),
    TEST(a_request_may_come_in_single_bytes),
    TEST(a_client_that_expects_it_is_told_to_go_on),
    TEST(a_body_may_be_as_long_as_the_limit_and_no_longer),
    TEST(a_refused_client_that_still_sends_gets_its_answer),
    TEST(long_bodies_arrive_whole),
    TEST(a_bad_request_is_answered_in_json_and_closed),
    TEST(a_head_may_be_as_long_as_the_limit_and_no_longer),
    TEST(broken_chunks_are_answered_400_and_closed),
    TEST(streams_are_framed_as_the_version_has_it),
    TEST(an_http_1_0_client_may_keep_its_connection),
    TEST(an_answer_without_a_body_has_none),
    TEST(bad_fields_and_framing_of_a_handler_are_left_out),
    TEST(an_answer_that_was_not_given_is_500),
    TEST(an_answer_that_was_not_ended_is_seen_as_cut),
    TEST(a_body_that_does_not_fit_its_length_is_cut),
};

int main(int argc, char **argv)
{
    log_catch();
    (void)admission_init(64);
    return run_tests("http_server", tests, COUNT_OF(tests), argc, argv);
}
