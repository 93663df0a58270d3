/* Bodies that are streamed up, against an upstream of plain sockets: each piece is sent before the next one is written, a server that
 * refuses or leaves ends the writing, and the connection is nobody else's. */
#include "fetch_fixture.h"

#define OK "HTTP/1.1 200 OK\r\n"
#define EMPTY OK "Content-Length: 0\r\n\r\n"

static struct fetch_request upload_to(struct result *result, int64_t bytes)
{
    struct fetch_request request = request_of(result, "/up");
    request.method = "PUT";
    request.is_streamed = true;
    request.body_bytes = bytes;
    return request;
}

static bool wants_more(struct result *result)
{
    bool wants = false;
    CU_ASSERT_EQUAL(fetch_await_write(result->fetch, &wants, &result->err), 0);
    return wants;
}

static bool write_piece(struct result *result, struct str piece)
{
    bool wants = wants_more(result);
    if (wants) {
        fetch_write(result->fetch, piece);
    }
    return wants;
}

/* With a length the end needs no word. */
static void write_end(struct result *result)
{
    bool has_length = result->fetch->up_left >= 0;
    CU_ASSERT_NOT_EQUAL(wants_more(result), has_length);
    if (!has_length) {
        fetch_write_end(result->fetch);
    }
}

static int read_answer(struct result *result)
{
    int code = fetch_head(result->fetch, &result->reply, &result->err);
    return code == 0 ? result_read(result) : code;
}

static bool was_sent(const char *text)
{
    bool found = strstr(upstream.record.data, text) != NULL;
    if (!found) {
        printf("\nno '%s' in '%s'\n", text, upstream.record.data);
    }
    return found;
}

static int64_t bytes_told;

static void in_turn_body(void)
{
    struct result result = {0};
    struct fetch_request request = upload_to(&result, bytes_told);
    CU_ASSERT_EQUAL(result_start(&result, &request), 0);
    CU_ASSERT_TRUE(write_piece(&result, STR("hello")));
    while (sem_trywait(&upstream.closed) != 0) { /* until it has come, though no more was written */
        fiber_yield();
    }
    CU_ASSERT_TRUE(write_piece(&result, STR(" world")));
    write_end(&result);
    CU_ASSERT_EQUAL(read_answer(&result), 0);
    CU_ASSERT_EQUAL(result.reply.status, 200);
    result_clear(&result);
}

static void each_piece_is_on_its_way_before_the_next_is_written(void)
{
    bytes_told = 11;
    run((const struct step[]){ACCEPT, READ(5), SEEN, READ_ON(6), SEND(EMPTY), END}, in_turn_body);
    bytes_told = -1;
    run((const struct step[]){ACCEPT, READ(10), SEEN, READ_ON(16), SEND(EMPTY), END}, in_turn_body);
}

static void head_body(void)
{
    struct result result = {0};
    struct fetch_request request = upload_to(&result, bytes_told);
    CU_ASSERT_EQUAL(result_start(&result, &request), 0);
    CU_ASSERT_TRUE(write_piece(&result, STR("hello")));
    write_end(&result);
    CU_ASSERT_EQUAL(read_answer(&result), 0);
    CU_ASSERT_TRUE(was_sent("PUT /up HTTP/1.1\r\n"));
    if (bytes_told >= 0) {
        CU_ASSERT_TRUE(was_sent("Content-Length: 5\r\n"));
        CU_ASSERT_TRUE(was_sent("\r\n\r\nhello"));
        CU_ASSERT_PTR_NULL(strstr(upstream.record.data, "Transfer-Encoding"));
    } else {
        CU_ASSERT_TRUE(was_sent("Transfer-Encoding: chunked\r\n"));
        CU_ASSERT_TRUE(was_sent("\r\n\r\n5\r\nhello\r\n0\r\n\r\n"));
        CU_ASSERT_PTR_NULL(strstr(upstream.record.data, "Content-Length"));
    }
    CU_ASSERT_PTR_NULL(strstr(upstream.record.data, "Expect"));
    result_clear(&result);
}

static void a_body_has_the_length_that_was_told_or_comes_in_chunks(void)
{
    bytes_told = 5;
    run((const struct step[]){ACCEPT, READ(5), SEND(EMPTY), END}, head_body);
    bytes_told = -1;
    run((const struct step[]){ACCEPT, READ(15), SEND(EMPTY), END}, head_body);
}

static void nothing_body(void)
{
    struct result result = {0};
    struct fetch_request request = upload_to(&result, 0);
    CU_ASSERT_EQUAL(result_start(&result, &request), 0);
    write_end(&result);
    CU_ASSERT_EQUAL(read_answer(&result), 0);
    CU_ASSERT_TRUE(was_sent("Content-Length: 0\r\n"));
    result_clear(&result);
}

static void a_body_may_be_empty(void)
{
    run((const struct step[]){ACCEPT, READ(0), SEND(EMPTY), END}, nothing_body);
}

enum { MANY = 64, BLOCK = 64 * 1024 };

static void much_body(void)
{
    struct result result = {0};
    struct fetch_request request = upload_to(&result, (int64_t)MANY * BLOCK);
    char *block = check_alloc(malloc(BLOCK));
    memset(block, 'x', BLOCK);
    CU_ASSERT_EQUAL(result_start(&result, &request), 0);
    for (int i = 0; i < MANY; i++) {
        CU_ASSERT_TRUE_FATAL(write_piece(&result, (struct str){block, BLOCK}));
        CU_ASSERT_TRUE(result.fetch->up.cap <= (size_t)2 * BLOCK);
    }
    write_end(&result);
    CU_ASSERT_EQUAL(read_answer(&result), 0);
    const char *body = strstr(upstream.record.data, "\r\n\r\n") + 4;
    CU_ASSERT_EQUAL(upstream.record.data + upstream.record.len - body, (long)MANY * BLOCK);
    CU_ASSERT_EQUAL(strspn(body, "x"), (size_t)MANY * BLOCK);
    result_clear(&result);
    free(block);
}

static void a_long_body_is_sent_whole_and_not_held(void)
{
    run((const struct step[]){ACCEPT, READ((size_t)MANY * BLOCK), SEND(EMPTY), END}, much_body);
}

static const char *refusal_words;

static void refused_body(void)
{
    struct result result = {0};
    struct fetch_request request = upload_to(&result, bytes_told);
    CU_ASSERT_EQUAL(result_start(&result, &request), 0);
    CU_ASSERT_TRUE(write_piece(&result, STR("hello")));
    while (write_piece(&result, STR("x"))) { /* until the refusal is seen */
    }
    CU_ASSERT_EQUAL(read_answer(&result), 0);
    CU_ASSERT_EQUAL(result.reply.status, 413);
    CU_ASSERT_TRUE(str_is(buf_str(&result.body), refusal_words));
    result_clear(&result);
}

static void a_server_that_refuses_takes_no_more_and_its_answer_is_read(void)
{
    refusal_words = "too much";
    bytes_told = 1000000;
    run((const struct step[]){ACCEPT, READ(5), SEND("HTTP/1.1 413 No\r\nContent-Length: 8\r\n\r\n"),
                              SEND("too much"), END},
        refused_body);
    bytes_told = -1;
    run((const struct step[]){ACCEPT, READ(10),
                              SEND("HTTP/1.1 413 No\r\nTransfer-Encoding: chunked\r\n\r\n"),
                              SEND("8\r\ntoo much\r\n0\r\n\r\n"), END},
        refused_body);
}

static void early_body(void)
{
    struct result result = {0};
    struct fetch_request request = upload_to(&result, 11);
    CU_ASSERT_EQUAL(result_start(&result, &request), 0);
    CU_ASSERT_TRUE(write_piece(&result, STR("hello")));
    CU_ASSERT_EQUAL(fetch_head(result.fetch, &result.reply, &result.err), 0);
    CU_ASSERT_TRUE(write_piece(&result, STR(" world")));
    write_end(&result);
    CU_ASSERT_EQUAL(read_answer(&result), 0);
    CU_ASSERT_TRUE(str_is(buf_str(&result.body), "fine"));
    result_clear(&result);
}

static void a_server_that_begins_a_good_answer_early_still_gets_all(void)
{
    run((const struct step[]){ACCEPT, READ(5), SEND(OK "Content-Length: 4\r\n\r\n"), READ_ON(6),
                              SEND("fine"), END},
        early_body);
}

static void gone_body(void)
{
    struct result result = {0};
    struct fetch_request request = upload_to(&result, 1000000);
    CU_ASSERT_EQUAL(result_start(&result, &request), 0);
    CU_ASSERT_TRUE(write_piece(&result, STR("hello")));
    while (write_piece(&result, STR("x"))) { /* until the reset is seen */
    }
    CU_ASSERT_EQUAL(fetch_head(result.fetch, &result.reply, &result.err), SG_E_UNAVAILABLE);
    CU_ASSERT_FALSE(fetch_failed_before_sending(result.fetch));
    result_clear(&result);
    CU_ASSERT_EQUAL(upstream.accepted, 1); /* it was not sent again */
}

static void a_server_that_leaves_ends_the_writing(void)
{
    run((const struct step[]){ACCEPT, READ(5), RESET, END}, gone_body);
}

static void gone_meanwhile_body(void)
{
    struct result result = {0};
    struct fetch_request request = upload_to(&result, bytes_told);
    CU_ASSERT_EQUAL(result_start(&result, &request), 0);
    CU_ASSERT_TRUE(write_piece(&result, STR("hello")));
    CU_ASSERT_TRUE(wants_more(&result));
    sem_post(&upstream.go);
    while (!result.fetch->is_done) {
        fiber_yield();
    }
    if (bytes_told < 0) {
        fetch_write_end(result.fetch);
    } else {
        fetch_write(result.fetch, STR(" world"));
    }
    CU_ASSERT_FALSE(wants_more(&result));
    CU_ASSERT_EQUAL(fetch_head(result.fetch, &result.reply, &result.err), SG_E_UNAVAILABLE);
    result_clear(&result);
}

/* Between the question and what was then written. */
static void a_server_may_leave_while_the_next_piece_is_looked_for(void)
{
    bytes_told = 1000;
    run((const struct step[]){ACCEPT, READ(5), WAIT, RESET, END}, gone_meanwhile_body);
    bytes_told = -1;
    run((const struct step[]){ACCEPT, READ(10), WAIT, RESET, END}, gone_meanwhile_body);
}

static void refused_connection_body(void)
{
    struct result result = {0};
    struct fetch_request request = upload_to(&result, 5);
    (void)close(upstream.listen_fd);
    upstream.listen_fd = listen_here(16, &(uint16_t){0}); /* another port */
    CU_ASSERT_EQUAL(result_start(&result, &request), 0);
    CU_ASSERT_FALSE(write_piece(&result, STR("hello")));
    CU_ASSERT_EQUAL(fetch_head(result.fetch, &result.reply, &result.err), SG_E_UNAVAILABLE);
    CU_ASSERT_TRUE(fetch_failed_before_sending(result.fetch));
    result_clear(&result);
}

static void where_there_is_no_connection_nothing_is_asked_for(void)
{
    run((const struct step[]){END}, refused_connection_body);
}

static void stuck_body(void)
{
    struct result result = {0};
    struct fetch_request request = upload_to(&result, INT64_C(1) << 40);
    char *block = check_alloc(calloc(1, BLOCK));
    bool wants = true;
    int code = 0;
    request.silence_ms = 50;
    CU_ASSERT_EQUAL(result_start(&result, &request), 0);
    while (code == 0) { /* until the kernel's buffers are full */
        code = fetch_await_write(result.fetch, &wants, &result.err);
        if (code == 0) {
            CU_ASSERT_TRUE_FATAL(wants);
            fetch_write(result.fetch, (struct str){block, BLOCK});
        }
    }
    CU_ASSERT_EQUAL(code, SG_E_TIMEOUT);
    expect_message(&result, "nothing taken by @ within 50 ms (silence limit)");
    result_clear(&result);
    free(block);
    sem_post(&upstream.go);
}

static void a_server_that_takes_nothing_is_waited_for_as_long_as_its_silence(void)
{
    run((const struct step[]){ACCEPT, READ(0), WAIT, END}, stuck_body);
}

static void apart_body(void)
{
    for (int i = 0; i < 3; i++) { /* the middle one is a body */
        struct result result = {0};
        struct fetch_request request =
            i == 1 ? upload_to(&result, 5) : request_of(&result, "/plain");
        CU_ASSERT_EQUAL(result_start(&result, &request), 0);
        if (i == 1) {
            CU_ASSERT_TRUE(write_piece(&result, STR("hello")));
            write_end(&result);
        }
        CU_ASSERT_EQUAL(read_answer(&result), 0);
        result_clear(&result);
    }
    CU_ASSERT_EQUAL(upstream.accepted, 3);
}

/* The first connection is kept, but not for a body; the body's is closed behind it. The upstream has one at a time. */
static void a_body_has_a_connection_of_its_own(void)
{
    run((const struct step[]){ACCEPT, READ(0), SEND(EMPTY), ACCEPT, READ(5), SEND(EMPTY),
                              UNTIL_CLOSED, ACCEPT, READ(0), SEND(EMPTY), END},
        apart_body);
}

static const struct test tests[] = {
    TEST(each_piece_is_on_its_way_before_the_next_is_written),
    TEST(a_body_has_the_length_that_was_told_or_comes_in_chunks),
    TEST(a_body_may_be_empty),
    TEST(a_long_body_is_sent_whole_and_not_held),
    TEST(a_server_that_refuses_takes_no_more_and_its_answer_is_read),
    TEST(a_server_that_begins_a_good_answer_early_still_gets_all),
    TEST(a_server_that_leaves_ends_the_writing),
    TEST(a_server_may_leave_while_the_next_piece_is_looked_for),
    TEST(where_there_is_no_connection_nothing_is_asked_for),
    TEST(a_server_that_takes_nothing_is_waited_for_as_long_as_its_silence),
    TEST(a_body_has_a_connection_of_its_own),
};

int main(int argc, char **argv)
{
    return run_tests("fetch_upload", tests, COUNT_OF(tests), argc, argv);
}
