/* Upstreams that fail, lie or flood on chat: what the surface says, and that nothing is run or kept beyond its bounds. */
#include "base/check.h"
#include "base/limits.h"
#include "chat_bench.h"

#define JSON_BODY                                                           \
    "{\"stream\":true,\"response_format\":{\"type\":\"json_object\"}," USER \
    ",\"tools\":[" CODE_TOOL "," OWN_TOOL "]}"

/* ---- failures ---- */

static void expect_failure(const char *sse, int code, int status, const char *message)
{
    static const size_t pieces[] = {0, 1, 9};
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        BENCH_CLEANUP struct bench b = bench_new(pieces[i]);
        bench_open(&b, STREAM_BODY);
        CU_ASSERT_EQUAL(bench_try_turn(&b, true, sse), code);
        CU_ASSERT_STRING_EQUAL(b.err.message, message);
        CU_ASSERT_EQUAL(error_status(&b.err), status);
    }
}

static void a_stream_that_is_cut_runs_nothing(void)
{
    const char *message = "The upstream's stream ended before its answer was whole";
    expect_failure("", SG_E_UNAVAILABLE, 502, message);
    expect_failure(ROLE TEXT("a"), SG_E_UNAVAILABLE, 502, message);
    expect_failure(ROLE CALL("0", "a", "code_interpreter", "{}"), SG_E_UNAVAILABLE, 502, message);
    expect_failure("data: {\"choices\":[{\"delta\":{}, \"finish", SG_E_UNAVAILABLE, 502,
                   "The upstream's answer cannot be understood: invalid JSON at byte 25: the "
                   "string has no closing quote");
}

static void an_error_event_carries_the_upstreams_message(void)
{
    expect_failure("data: "
                   "{\"error\":{\"message\":\"boom\",\"type\":\"server_error\",\"param\":null,"
                   "\"code\":null}}\n\n",
                   SG_E_UNAVAILABLE, 502, "boom");
    expect_failure("data: {\"error\":{\"message\":\"slow down\",\"code\":429}}\n\n", SG_E_LIMIT,
                   429, "slow down");
    expect_failure("data: {\"error\":{\"message\":\"busy\",\"code\":\"503\"}}\n\n",
                   SG_E_UNAVAILABLE, 503, "busy");
    expect_failure(
        "data: {\"error\":{\"message\":\"bad\",\"code\":400,\"status\":\"INVALID\"}}\n\n",
        SG_E_INVALID, 400, "bad");
    expect_failure("data: {\"error\":\"plain\"}\n\n", SG_E_UNAVAILABLE, 502, "plain");
    expect_failure("data: {\"object\":\"error\",\"message\":\"old\",\"code\":404}\n\n",
                   SG_E_NOT_FOUND, 404, "old");
    expect_failure("event: error\ndata: {\"message\":\"named\"}\n\n", SG_E_UNAVAILABLE, 502,
                   "named");
    expect_failure("data: {\"error\":{}}\n\n", SG_E_UNAVAILABLE, 502,
                   "The upstream reports an error without a message");
}

static void the_code_of_an_upstreams_error_is_kept(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, STREAM_BODY);
    (void)bench_try_turn(&b, true,
                         "data: {\"error\":{\"message\":\"long\",\"param\":\"messages\",\"code\":"
                         "\"context_length_exceeded\"}}\n\n"); /* judged below */
    CU_ASSERT_STRING_EQUAL(b.err.reason, "context_length_exceeded");
    CU_ASSERT_STRING_EQUAL(b.err.param, "messages");
}

static void what_is_no_chunk_is_not_understood(void)
{
    expect_failure(
        "data: hello\n\n", SG_E_UNAVAILABLE, 502,
        "The upstream's answer cannot be understood: invalid JSON at byte 0: expected a value");
    expect_failure("data: [1]\n\n", SG_E_UNAVAILABLE, 502,
                   "The upstream's answer cannot be understood: it is no JSON object");
    expect_failure(
        CHUNK("{\"content\":7}"), SG_E_UNAVAILABLE, 502,
        "The upstream's answer cannot be understood: content is neither text nor a list");
    expect_failure(
        CHUNK("{\"content\":{\"text\":\"a\"}}"), SG_E_UNAVAILABLE, 502,
        "The upstream's answer cannot be understood: content is neither text nor a list");
    expect_failure(CHUNK("{\"tool_calls\":{}}"), SG_E_UNAVAILABLE, 502,
                   "The upstream's answer cannot be understood: tool_calls is no array");
    expect_failure(CHUNK("{\"tool_calls\":[1]}"), SG_E_UNAVAILABLE, 502,
                   "The upstream's answer cannot be understood: a tool call that is no object");
    expect_failure(
        CHUNK("{\"content\":\"a\",\"content\":\"b\"}"), SG_E_UNAVAILABLE, 502,
        "The upstream's answer cannot be understood: duplicate key 'content' in a message");
}

static void too_many_calls_and_fields_are_refused(void)
{
    BUF_CLEANUP struct buf calls = {0}, fields = {0};
    for (int i = 0; i < 129; i++) {
        buf_printf(&calls,
                   "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"%d\"}]}}]}\n\n", i);
    }
    for (int i = 0; i < 65; i++) {
        buf_printf(&fields, "data: {\"choices\":[{\"delta\":{\"f%d\":1}}]}\n\n", i);
    }
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, STREAM_BODY);
    CU_ASSERT_EQUAL(bench_try_turn(&b, true, calls.data), SG_E_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(
        b.err.message,
        "The upstream's answer cannot be understood: more than 128 tool calls in one turn");
    CU_ASSERT_EQUAL(bench_try_turn(&b, true, fields.data), SG_E_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(
        b.err.message,
        "The upstream's answer cannot be understood: more than 64 fields in a message");
}

static void a_failed_attempt_is_forgotten(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, JSON_BODY);
    CU_ASSERT_EQUAL(
        bench_try_turn(&b, true, "data: {\"id\":\"old\",\"choices\":[{\"delta\":null}]}\n\n"),
        SG_E_UNAVAILABLE);
    CU_ASSERT_EQUAL(b.out.len, 0);
    bench_turn(&b, ROLE TEXT("new") FINISH("stop") DONE);
    bench_finish(&b, "");
    expect_seen(&b, "new", "", "stop");
    CU_ASSERT_PTR_NULL(strstr(b.out.data, "old"));
}

static void inside_a_stream_the_error_event_and_the_end_mark_are_written(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, STREAM_BODY);
    error_set(&b.err, SG_E_UNAVAILABLE, "gone \"away\"");
    surface_chat.fail(b.exchange, &b.err, &b.out);
    CU_ASSERT_STRING_EQUAL(
        b.out.data,
        "data: {\"error\":{\"message\":\"gone \\\"away\\\"\",\"type\":\"server_error\",\"param\":"
        "null,\"code\":null}}\n\ndata: [DONE]\n\n");
}

static void held_text_is_bounded(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, JSON_BODY);
    BUF_CLEANUP struct buf text = {0};
    buf_puts(&text, ROLE "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}],\"padding\":\"");
    for (size_t i = 0; i < 7 << 20; i++) {
        buf_putc(&text, 'p');
    }
    buf_puts(&text, "\"}\n\n");
    surface_chat.turn_begin(b.exchange, true);
    int code = SG_OK;
    for (int i = 0; i < 5 && code == SG_OK; i++) {
        code = surface_chat.turn_feed(b.exchange, buf_str(&text), &b.out, &b.err);
    }
    CU_ASSERT_EQUAL(code, SG_E_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(b.err.message, "The upstream's answer is larger than 32 MiB");
}

static void an_event_over_its_bound_is_refused(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, STREAM_BODY);
    BUF_CLEANUP struct buf text = {0};
    buf_puts(&text, "data: {\"a\":\"");
    for (size_t i = 0; i < 9 << 20; i++) {
        buf_putc(&text, 'p');
    }
    buf_puts(&text, "\"}\n\n");
    CU_ASSERT_EQUAL(bench_try_turn(&b, true, text.data), SG_E_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(b.err.message, "The upstream sent an event of more than 8 MiB");
}

/* Feeds the same piece until it is refused; how many bytes were taken. */
static size_t feed_without_end(struct bench *b, struct str piece)
{
    size_t taken = 0;
    surface_chat.turn_begin(b->exchange, true);
    while (surface_chat.turn_feed(b->exchange, piece, &b->out, &b->err) == SG_OK) {
        taken += piece.len;
        buf_reset(&b->out); /* written to the client */
    }
    return taken;
}

static void words_without_end_are_refused(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, "{\"model\":\"m\",\"messages\":[]}"); /* not streaming: nothing is passed on */
    BUF_CLEANUP struct buf text = {0};
    buf_puts(&text, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"");
    for (size_t i = 0; i < 1 << 20; i++) {
        buf_putc(&text, 'w');
    }
    buf_puts(&text, "\"}}]}\n\n");
    size_t taken = feed_without_end(&b, buf_str(&text));
    CU_ASSERT_EQUAL(b.err.code, SG_E_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(b.err.message, "The upstream's answer is larger than 32 MiB");
    CU_ASSERT_EQUAL(taken / text.len, 31);
}

/* Neither comments nor empty deltas are kept: they are bounded too. */
static void a_stream_that_says_nothing_is_bounded(void)
{
    static const char *const nothings[] = {": x", "data: {\"choices\":[{\"delta\":{}}],\"pad\":\""};
    for (size_t i = 0; i < COUNT_OF(nothings); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        bench_open(&b, STREAM_BODY);
        BUF_CLEANUP struct buf text = {0};
        buf_puts(&text, nothings[i]);
        while (text.len < (4 << 20) - 4) {
            buf_putc(&text, 'p');
        }
        buf_puts(&text, i == 0 ? "pp\n\n" : "\"}\n\n");
        CU_ASSERT_EQUAL(feed_without_end(&b, buf_str(&text)), LIMIT_TURN_BYTES);
        CU_ASSERT_EQUAL(b.err.code, SG_E_UNAVAILABLE);
        CU_ASSERT_STRING_EQUAL(b.err.message, "The upstream's stream is larger than 256 MiB");
    }
}

static void a_plain_answer_over_its_bound_is_refused(void)
{
    BENCH_CLEANUP struct bench b = bench_new(1 << 20);
    bench_open(&b, STREAM_BODY);
    BUF_CLEANUP struct buf text = {0};
    for (size_t i = 0; i < 33 << 20; i++) {
        buf_putc(&text, ' ');
    }
    CU_ASSERT_EQUAL(bench_try_turn(&b, false, text.data), SG_E_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(b.err.message, "The upstream's answer is larger than 32 MiB");
}

static void fill(struct buf *buf, size_t bytes)
{
    char *room = buf_reserve(buf, bytes);
    CHECK(room != NULL);
    memset(room, 'x', bytes);
    buf_commit(buf, bytes);
}

static void results_too_large_for_a_request_are_refused(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, STREAM_BODY);
    bench_turn(&b, ROLE RUN_42);
    BUF_CLEANUP struct buf text = {0};
    fill(&text, 33 << 20);
    bench_result(&b, 0, text.data);
    struct surface_turn_options options = {0};
    CU_ASSERT_EQUAL(surface_chat.turn_request(b.exchange, &options, &b.request, &b.err),
                    SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(
        b.err.message,
        "The request for the next turn, with the results of its tools, is larger than 32 MiB.");
    CU_ASSERT_EQUAL(b.err.status, 413);
    CU_ASSERT_STRING_EQUAL(b.err.reason, "request_too_large");
}

/* Nothing has run: the status tells client libraries that a repetition is no use. */
static void a_request_that_grows_too_large_by_what_is_added_is_refused(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    BUF_CLEANUP struct buf body = {0};
    buf_puts(&body, "{\"model\":\"m\",\"tools\":[" CODE_TOOL
                    "],\"messages\":[{\"role\":\"user\",\"content\":\"");
    fill(&body, (32 << 20) - 5 - body.len);
    buf_puts(&body, "\"}]}");
    bench_open(&b, body.data);
    struct surface_turn_options options = {0};
    CU_ASSERT_EQUAL(surface_chat.turn_request(b.exchange, &options, &b.request, &b.err),
                    SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(b.err.message,
                           "The request, with what the gateway adds to it, is larger than 32 MiB.");
    CU_ASSERT_EQUAL(b.err.status, 413);
}

static void an_absurd_id_is_not_repeated(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, STREAM_BODY);
    BUF_CLEANUP struct buf text = {0};
    buf_puts(&text, "data: {\"id\":\"");
    for (size_t i = 0; i < 2000; i++) {
        buf_putc(&text, 'i');
    }
    buf_puts(&text, "\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":"
                    "\"stop\"}]}\n\n" DONE);
    bench_turn(&b, text.data);
    bench_finish(&b, "");
    SEEN_CLEANUP struct seen s = seen_read(&b.out);
    CU_ASSERT_STRING_EQUAL(s.id.data, "chatcmpl-0123456789abcdef0123456789abcdef");
}

static void keep_alives_are_comments(void)
{
    CU_ASSERT_STRING_EQUAL(surface_chat.keep_alive, ": keep-alive\n\n");
}

static const struct test tests[] = {
    TEST(a_stream_that_is_cut_runs_nothing),
    TEST(an_error_event_carries_the_upstreams_message),
    TEST(the_code_of_an_upstreams_error_is_kept),
    TEST(what_is_no_chunk_is_not_understood),
    TEST(too_many_calls_and_fields_are_refused),
    TEST(a_failed_attempt_is_forgotten),
    TEST(inside_a_stream_the_error_event_and_the_end_mark_are_written),
    TEST(keep_alives_are_comments),
    TEST(held_text_is_bounded),
    TEST(an_event_over_its_bound_is_refused),
    TEST(words_without_end_are_refused),
    TEST(a_stream_that_says_nothing_is_bounded),
    TEST(a_plain_answer_over_its_bound_is_refused),
    TEST(results_too_large_for_a_request_are_refused),
    TEST(a_request_that_grows_too_large_by_what_is_added_is_refused),
    TEST(an_absurd_id_is_not_repeated),
};

int main(int argc, char **argv)
{
    return run_tests("chat_failures", tests, COUNT_OF(tests), argc, argv);
}
