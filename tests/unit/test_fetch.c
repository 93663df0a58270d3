/* Fetching from an upstream over loopback: what is sent, what comes back, and every way in which it may not. */
#include "fetch_fixture.h"

#include <poll.h>

#define OK "HTTP/1.1 200 OK\r\n"

/* ---- whole exchanges ---- */

static void connections_are_kept_body(void)
{
    struct result result = {0};
    struct fetch_request request = request_of(&result, "/one");
    CU_ASSERT_EQUAL(result_fetch(&result, &request), 0);
    CU_ASSERT_EQUAL(result.reply.status, 200);
    CU_ASSERT_TRUE(str_is(buf_str(&result.body), "hello"));
    CU_ASSERT_TRUE(str_is(result_field(&result, "X-Name"), "a \t b"));
    CU_ASSERT_FALSE(fetch_failed_before_sending(result.fetch));
    result_clear(&result);
    request = request_of(&result, "/two");
    CU_ASSERT_EQUAL(result_fetch(&result, &request), 0);
    CU_ASSERT_EQUAL(result.reply.status, 404);
    CU_ASSERT_TRUE(str_is(buf_str(&result.body), "two words"));
    CU_ASSERT_PTR_NULL(result_field(&result, "Trailer-One").data);
    result_clear(&result);
    request = request_of(&result, "/three");
    CU_ASSERT_EQUAL(result_fetch(&result, &request), 0);
    CU_ASSERT_EQUAL(result.reply.status, 204);
    CU_ASSERT_EQUAL(result.body.len, 0);
    result_clear(&result);
    CU_ASSERT_EQUAL(upstream.accepted, 1);
}

static void answers_arrive_whole_and_connections_are_kept(void)
{
    run(
        (const struct step[]){
            ACCEPT, READ(0), SEND(OK "X-Name:  a \t b \r\nContent-Length: 5\r\n\r\nhel"),
            SEND("lo"), READ(0),
            SEND("HTTP/1.1 404 Gone Fishing\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ntw"),
            SEND("o\r\n6;ext=1\r\n words\r\n0\r\nTrailer-One: x\r\n\r\n"), READ(0),
            SEND("HTTP/1.1 204 No Content\r\n\r\n"), END},
        connections_are_kept_body);
}

static const char *const expected_requests[] = {
    "GET /get HTTP/1.1\r\nHost: @\r\nUser-Agent: sandgate\r\n\r\n",
    ("POST /post HTTP/1.1\r\nHost: @\r\nX-One: b\r\nX-Empty:\r\nUser-Agent: mine\r\n"
     "Content-Length: 5\r\n\r\nhello"),
    "POST /empty HTTP/1.1\r\nHost: @\r\nUser-Agent: sandgate\r\nContent-Length: 0\r\n\r\n",
    ("PUT /put/../x?y=%20 HTTP/1.1\r\nHost: @\r\nUser-Agent: sandgate\r\nContent-Length: "
     "0\r\n\r\n"),
    "DELETE /delete HTTP/1.1\r\nHost: @\r\nUser-Agent: sandgate\r\n\r\n",
    "HEAD /head HTTP/1.1\r\nHost: @\r\nUser-Agent: sandgate\r\n\r\n",
};

static void expect_record(const char *wanted)
{
    BUF_CLEANUP struct buf text = {0};
    for (const char *c = wanted; *c != '\0'; c++) {
        if (*c == '@') {
            buf_printf(&text, "127.0.0.1:%u", upstream.port);
        } else {
            buf_putc(&text, *c);
        }
    }
    CU_ASSERT_STRING_EQUAL(upstream.record.data, text.data);
    if (strcmp(upstream.record.data, text.data) != 0) {
        printf("\n'%s' instead of '%s'\n", upstream.record.data, text.data);
    }
}

/* The upstream has read the whole request before it answers. */
static void exact_requests_body(void)
{
    static const struct fetch_field fields[] = {
        {STR("X-One"), STR(" b ")}, {STR("X-Empty"), STR("")}, {STR("User-Agent"), STR("mine")}};
    static const struct {
        const char *method, *path, *body;
    } requests[] = {
        {NULL, "/get", NULL},           {NULL, "/post", "hello"},    {"POST", "/empty", NULL},
        {"PUT", "/put/../x?y=%20", ""}, {"DELETE", "/delete", NULL}, {"HEAD", "/head", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        struct result result = {0};
        struct fetch_request request = request_of(&result, requests[i].path);
        request.method = requests[i].method;
        request.body = str_of(requests[i].body);
        request.has_body = requests[i].body != NULL;
        request.fields = fields;
        request.fields_count = i == 1 ? COUNT_OF(fields) : 0;
        CU_ASSERT_EQUAL(result_fetch(&result, &request), 0);
        expect_record(expected_requests[i]);
        CU_ASSERT_EQUAL(sem_post(&upstream.go), 0); /* it may read the next */
        result_clear(&result);
    }
    CU_ASSERT_EQUAL(upstream.accepted, 1);
}

static void nothing_is_sent_that_was_not_asked_for(void)
{
    static const char answer[] = OK "Content-Length: 0\r\n\r\n";
    (void)setenv("http_proxy", "http://127.0.0.1:1", 1); /* is not looked at */
    run((const struct step[]){ACCEPT,       READ(0),      SEND(answer), WAIT,         READ(5),
                              SEND(answer), WAIT,         READ(0),      SEND(answer), WAIT,
                              READ(0),      SEND(answer), WAIT,         READ(0),      SEND(answer),
                              WAIT,         READ(0),      SEND(answer), WAIT,         END},
        exact_requests_body);
    (void)unsetenv("http_proxy");
}

static void interim_body(void)
{
    struct result result = {0};
    struct fetch_request request = request_of(&result, "/");
    CU_ASSERT_EQUAL(result_fetch(&result, &request), 0);
    CU_ASSERT_EQUAL(result.reply.status, 302);
    CU_ASSERT_EQUAL(result.reply.fields_count, 2);
    CU_ASSERT_TRUE(str_is(result_field(&result, "Location"), "/elsewhere"));
    CU_ASSERT_PTR_NULL(result_field(&result, "X-Early").data);
    result_clear(&result);
}

static void interim_answers_are_skipped_and_redirects_are_not_followed(void)
{
    run((const struct step[]){ACCEPT, READ(0), SEND("HTTP/1.1 100 Continue\r\n\r\n"),
                              SEND("HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n"),
                              SEND("HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\n"
                                   "Content-Length: 0\r\n\r\n"),
                              END},
        interim_body);
}

static void until_close_body(void)
{
    struct result result = {0};
    struct fetch_request request = request_of(&result, "/");
    CU_ASSERT_EQUAL(result_fetch(&result, &request), 0);
    CU_ASSERT_TRUE(str_is(buf_str(&result.body), "all of it"));
    result_clear(&result);
}

static void a_body_without_a_length_ends_with_its_connection(void)
{
    run((const struct step[]){ACCEPT, READ(0), SEND(OK "\r\nall of it"), CLOSE, END},
        until_close_body);
}

/* ---- answers that are none ---- */

static const char *wanted_message;
static int wanted_code;

static void failing_body(void)
{
    struct result result = {0};
    struct fetch_request request = request_of(&result, "/");
    CU_ASSERT_EQUAL(result_fetch(&result, &request), wanted_code);
    expect_message(&result, wanted_message);
    CU_ASSERT_FALSE(fetch_failed_before_sending(result.fetch));
    result_clear(&result);
}

static void expect_failure(const char *answer, enum step_kind end, const char *message)
{
    wanted_code = SG_E_UNAVAILABLE;
    wanted_message = message;
    run((const struct step[]){ACCEPT, READ(0), SEND(answer), {.kind = end}, END}, failing_body);
}

static void a_cut_body_is_never_an_orderly_end(void)
{
    expect_failure(OK "Content-Length: 5\r\n\r\nhell", STEP_CLOSE, "cut answer of @: ");
    expect_failure(OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", STEP_CLOSE,
                   "cut answer of @: ");
    expect_failure(OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhel", STEP_CLOSE,
                   "cut answer of @: ");
    expect_failure(OK "Transfer-Encoding: chunked\r\n\r\n0\r\n", STEP_CLOSE, "cut answer of @: ");
    expect_failure(OK "Transfer-Encoding: chunked\r\n\r\nx\r\n", STEP_CLOSE, "cut answer of @: ");
    expect_failure(OK "Content-Length: 5\r\n\r\nhell", STEP_RESET, "cut answer of @: ");
    expect_failure(OK "\r\nhell", STEP_RESET, "cut answer of @: ");
}

static void a_broken_head_is_no_answer(void)
{
    expect_failure("", STEP_CLOSE, "@ closed the connection without an answer");
    expect_failure("", STEP_RESET, "broken exchange with @: ");
    expect_failure("SSH-2.0-x\r\n", STEP_CLOSE, "broken exchange with @: ");
    expect_failure(OK "Transfer-Encoding: gzip, chunked\r\n\r\n", STEP_CLOSE,
                   "@ sent a Transfer-Encoding other than chunked");
    expect_failure(OK "A: b\r\n folded\r\n\r\n", STEP_CLOSE, "@ sent a header that is folded");
    expect_failure(OK "A: b\x01\r\n\r\n", STEP_CLOSE, "@ sent a header with forbidden characters");
    expect_failure(OK "A : b\r\n\r\n", STEP_CLOSE, "@ sent a header with forbidden characters");
    expect_failure("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", STEP_CLOSE,
                   "@ changed the protocol unasked");
}

static void head_limits_body(void)
{
    struct result result = {0};
    struct fetch_request request = request_of(&result, "/");
    CU_ASSERT_EQUAL(result_fetch(&result, &request), 0);
    CU_ASSERT_EQUAL(result.reply.fields_count, LIMIT_HEADER_COUNT);
    result_clear(&result);
    request = request_of(&result, "/");
    CU_ASSERT_EQUAL(result_fetch(&result, &request), SG_E_UNAVAILABLE);
    expect_message(&result, "@ sent more than 128 headers");
    result_clear(&result);
    request = request_of(&result, "/");
    CU_ASSERT_EQUAL(result_fetch(&result, &request), 0);
    CU_ASSERT_EQUAL(result_field(&result, "X").len, 32000);
    result_clear(&result);
    request = request_of(&result, "/");
    CU_ASSERT_EQUAL(result_fetch(&result, &request), SG_E_UNAVAILABLE);
    expect_message(&result, "@ sent headers of more than 32768 bytes");
    result_clear(&result);
}

static void put_fields(struct buf *out, size_t count)
{
    buf_reset(out);
    buf_puts(out, OK "Content-Length: 0\r\n");
    for (size_t i = 1; i < count; i++) {
        buf_puts(out, "A: b\r\n");
    }
    buf_puts(out, "\r\n");
}

static void put_long_field(struct buf *out, size_t len)
{
    buf_reset(out);
    buf_puts(out, OK "Content-Length: 0\r\nX: ");
    for (size_t i = 0; i < len; i++) {
        buf_putc(out, 'x');
    }
    buf_puts(out, "\r\n\r\n");
}

static void heads_of_answers_are_bounded(void)
{
    BUF_CLEANUP struct buf many = {0}, more = {0}, large = {0}, larger = {0};
    put_fields(&many, LIMIT_HEADER_COUNT);
    put_fields(&more, LIMIT_HEADER_COUNT + 1);
    put_long_field(&large, 32000);
    put_long_field(&larger, LIMIT_HEADER_BYTES);
    run((const struct step[]){ACCEPT, READ(0), SEND(many.data), READ(0), SEND(more.data), ACCEPT,
                              READ(0), SEND(large.data), READ(0), SEND(larger.data), END},
        head_limits_body);
}

static void refused_body(void)
{
    struct result result = {0};
    (void)close(upstream.listen_fd);
    struct fetch_request request = request_of(&result, "/");
    CU_ASSERT_EQUAL(result_fetch(&result, &request), SG_E_UNAVAILABLE);
    expect_message(&result, "cannot connect to @: ");
    CU_ASSERT_TRUE(fetch_failed_before_sending(result.fetch));
    CU_ASSERT_EQUAL(fetch_stage(result.fetch), FETCH_CONNECTING);
    result_clear(&result);
    uint16_t ignored;
    upstream.listen_fd = listen_here(1, &ignored);
}

static void no_tls_body(void)
{
    struct result result = {0};
    struct fetch_request request = request_of(&result, "/");
    (void)snprintf(result.url, sizeof result.url, "https://127.0.0.1:%u/", upstream.port);
    CU_ASSERT_EQUAL(result_fetch(&result, &request), SG_E_UNAVAILABLE);
    expect_message(&result, "cannot set up TLS with @: ");
    CU_ASSERT_TRUE(fetch_failed_before_sending(result.fetch));
    CU_ASSERT_EQUAL(fetch_stage(result.fetch), FETCH_SECURING);
    result_clear(&result);
}

static void an_upstream_that_speaks_no_tls_is_told_so(void)
{
    run((const struct step[]){ACCEPT, SEND("HTTP/1.1 400 Bad Request\r\n\r\n"), UNTIL_CLOSED, END},
        no_tls_body);
}

static void a_refused_connection_is_safe_to_try_again(void)
{
    run((const struct step[]){END}, refused_body);
}

/* ---- flow and leaving ---- */

#define FLOOD_BYTES (8 * 1024 * 1024)

static void slow_reader_body(void)
{
    struct result result = {0};
    struct fetch_request request = request_of(&result, "/");
    struct str data = STR("x");
    size_t bytes = 0;
    bool is_right = true, is_bounded = true;
    CU_ASSERT_EQUAL(result_start(&result, &request), 0);
    CU_ASSERT_EQUAL(fetch_head(result.fetch, &result.reply, &result.err), 0);
    while (!result.fetch->is_paused) { /* the upstream sends more than is taken */
        fiber_yield();
    }
    while (data.len > 0 && fetch_read(result.fetch, &data, &result.err) == 0) {
        for (size_t i = 0; i < data.len; i++) {
            is_right &= data.data[i] == (char)('a' + (bytes + i) % 23);
        }
        bytes += data.len;
        is_bounded &= result.fetch->in.len + result.fetch->out.len <= LIMIT_STREAM_BYTES;
    }
    CU_ASSERT_EQUAL(bytes, FLOOD_BYTES);
    CU_ASSERT_TRUE(is_right);
    CU_ASSERT_TRUE(is_bounded);
    result_clear(&result);
}

static void a_slow_reader_pauses_the_upstream_and_memory_stays_bounded(void)
{
    run((const struct step[]){ACCEPT, READ(0), SEND(OK "Content-Length: 8388608\r\n\r\n"),
                              FLOOD(FLOOD_BYTES), END},
        slow_reader_body);
    run((const struct step[]){ACCEPT, READ(0),
                              SEND(OK "Transfer-Encoding: chunked\r\n\r\n800000\r\n"),
                              FLOOD(FLOOD_BYTES), SEND("\r\n0\r\n\r\n"), END},
        slow_reader_body);
}

static bool asks_once;

static void upload_body(void)
{
    struct result result = {0};
    struct fetch_request request = request_of(&result, "/");
    char *body = check_alloc(malloc(1 << 20));
    memset(body, 'x', 1 << 20);
    request.body = (struct str){body, 1 << 20};
    request.has_body = true;
    request.is_once = asks_once;
    CU_ASSERT_EQUAL(result_fetch(&result, &request), 0);
    CU_ASSERT_TRUE(upstream.record.len > (1 << 20));
    CU_ASSERT_EQUAL(memcmp(upstream.record.data + upstream.record.len - (1 << 20), body, 1 << 20),
                    0);
    result_clear(&result);
    free(body);
}

static void a_long_body_is_sent_whole(void)
{
    for (int i = 0; i < 2; i++) {
        asks_once = i == 1;
        run((const struct step[]){ACCEPT, READ(1 << 20), SEND(OK "Content-Length: 0\r\n\r\n"), END},
            upload_body);
    }
}

static void kept_connection_body(void)
{
    struct result result = {0};
    struct fetch_request request = request_of(&result, "/one");
    CU_ASSERT_EQUAL(result_fetch(&result, &request), 0);
    result_clear(&result);
    request = request_of(&result, "/two");
    request.body = (struct str)STR("run this");
    request.has_body = true;
    request.is_once = asks_once;
    CU_ASSERT_EQUAL(result_fetch(&result, &request), asks_once ? SG_E_UNAVAILABLE : 0);
    CU_ASSERT_EQUAL(upstream.accepted, asks_once ? 1 : 2);
    if (asks_once) {
        CU_ASSERT_EQUAL(fetch_stage(result.fetch), FETCH_SENT);
    }
    result_clear(&result);
}

/* What was asked is carried out, then the kept connection ends: libcurl would ask again. */
static void a_body_that_is_sent_once_is_not_sent_again_when_a_kept_connection_ends(void)
{
    asks_once = true;
    run((const struct step[]){ACCEPT, READ(0), SEND(OK "Content-Length: 0\r\n\r\n"), READ(8), RESET,
                              END},
        kept_connection_body);
    asks_once = false;
    run((const struct step[]){ACCEPT, READ(0), SEND(OK "Content-Length: 0\r\n\r\n"), READ(8), RESET,
                              ACCEPT, READ(8), SEND(OK "Content-Length: 0\r\n\r\n"), END},
        kept_connection_body);
}

/* Until there is something to read on a connection that is kept. */
static void await_unread(void)
{
    size_t count = 0;
    for (size_t fd = 0; fd < home->sockets_size; fd++) {
        if (home->sockets[fd].multi != NULL) {
            struct pollfd ready = {.fd = (int)fd, .events = POLLIN};
            CU_ASSERT_EQUAL(poll(&ready, 1, 10000), 1);
            count++;
        }
    }
    CU_ASSERT_EQUAL(count, 1);
}

static void unasked_body(void)
{
    for (int i = 0; i < 2; i++) { /* on the second, libcurl has used it twice */
        struct result result = {0};
        struct fetch_request request = request_of(&result, "/one");
        CU_ASSERT_EQUAL(result_fetch(&result, &request), 0);
        CU_ASSERT_TRUE(str_is(buf_str(&result.body), "hello"));
        result_clear(&result);
    }
    CU_ASSERT_EQUAL(upstream.accepted, 1);
    sem_post(&upstream.go);
    await_unread();
    struct result result = {0};
    struct fetch_request request = request_of(&result, "/two");
    request.body = (struct str)STR("run this");
    request.has_body = true;
    request.is_once = true;
    CU_ASSERT_EQUAL(result_fetch(&result, &request), 0);
    CU_ASSERT_TRUE(str_is(buf_str(&result.body), "two words"));
    CU_ASSERT_EQUAL(upstream.accepted, 2);
    result_clear(&result);
}

#define HELLO OK "Content-Length: 5\r\n\r\nhello"

/* An answer that nobody asked for would be the next request's, and that one's the one's after it. */
static void what_comes_unasked_on_a_kept_connection_is_nobodys_answer(void)
{
    run((const struct step[]){ACCEPT, READ(0), SEND(HELLO), READ(0), SEND(HELLO), WAIT,
                              SEND(OK "Content-Length: 6\r\n\r\nPOISON"), ACCEPT, READ(8),
                              SEND(OK "Content-Length: 9\r\n\r\ntwo words"), END},
        unasked_body);
}

static void ending_body(void)
{
    struct result result = {0};
    struct fetch_request request = request_of(&result, "/");
    CU_ASSERT_EQUAL(result_start(&result, &request), 0);
    CU_ASSERT_EQUAL(fetch_head(result.fetch, &result.reply, &result.err), 0);
    result_clear(&result);
    CU_ASSERT_EQUAL(sem_wait(&upstream.closed), 0); /* without another turn of the loop */
}

static void ending_a_transfer_closes_its_connection_at_once(void)
{
    run((const struct step[]){ACCEPT, READ(0), SEND(OK "Content-Length: 5\r\n\r\nhel"),
                              UNTIL_CLOSED, END},
        ending_body);
    run((const struct step[]){ACCEPT, /* and a paused one */
                              READ(0), SEND(OK "Content-Length: 8388608\r\n\r\n"),
                              FLOOD(FLOOD_BYTES), UNTIL_CLOSED, END},
        ending_body);
}

static struct fiber *to_cancel;

static void cancel_other(void *arg)
{
    (void)arg;
    fiber_cancel(to_cancel);
}

static void cancelled_body(void)
{
    struct result result = {0};
    struct sg_error err = {0};
    struct fetch_request request = request_of(&result, "/");
    CU_ASSERT_EQUAL(result_start(&result, &request), 0);
    CU_ASSERT_EQUAL(fetch_head(result.fetch, &result.reply, &result.err), 0);
    to_cancel = fiber_self();
    CU_ASSERT_EQUAL(fiber_start(loop, "cancel", cancel_other, NULL, NULL, &err), 0);
    CU_ASSERT_EQUAL(result_read(&result), SG_E_CANCELLED);
    expect_message(&result, "nobody waits for @ any more");
    result_clear(&result);
    CU_ASSERT_EQUAL(sem_wait(&upstream.closed), 0);
}

static void a_cancelled_fiber_stops_fetching(void)
{
    run((const struct step[]){ACCEPT, READ(0), SEND(OK "\r\nhel"), UNTIL_CLOSED, END},
        cancelled_body);
}

static const struct test tests[] = {
    TEST(answers_arrive_whole_and_connections_are_kept),
    TEST(nothing_is_sent_that_was_not_asked_for),
    TEST(interim_answers_are_skipped_and_redirects_are_not_followed),
    TEST(a_body_without_a_length_ends_with_its_connection),
    TEST(a_cut_body_is_never_an_orderly_end),
    TEST(a_broken_head_is_no_answer),
    TEST(heads_of_answers_are_bounded),
    TEST(an_upstream_that_speaks_no_tls_is_told_so),
    TEST(a_refused_connection_is_safe_to_try_again),
    TEST(a_slow_reader_pauses_the_upstream_and_memory_stays_bounded),
    TEST(a_long_body_is_sent_whole),
    TEST(a_body_that_is_sent_once_is_not_sent_again_when_a_kept_connection_ends),
    TEST(what_comes_unasked_on_a_kept_connection_is_nobodys_answer),
    TEST(ending_a_transfer_closes_its_connection_at_once),
    TEST(a_cancelled_fiber_stops_fetching),
};

int main(int argc, char **argv)
{
    struct sg_error err = {0};
    (void)admission_init(64);
    CHECK(fetch_global_init(&err) == 0);
    int code = run_tests("fetch", tests, COUNT_OF(tests), argc, argv);
    fetch_global_clear();
    return code;
}
