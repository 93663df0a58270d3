/* What goes wrong: upstreams that report errors, break off or make no sense; and how errors of ours are told. */
#include "base/check.h"
#include "base/limits.h"
#include "messages_bench.h"

#define TOOLS ",\"tools\":[" PYTHON_TOOL "," OWN_TOOL "]}"
#define STREAM_BODY HEAD "\"stream\":true," USER TOOLS
#define JSON_BODY HEAD USER TOOLS

static void expect_failure(bool is_stream, const char *text, int code, int status,
                           const char *message)
{
    BENCH_CLEANUP struct bench b = bench_new(3);
    bench_open(&b, is_stream ? STREAM_BODY : JSON_BODY);
    CU_ASSERT_EQUAL(bench_try_turn(&b, is_stream, text), code);
    CU_ASSERT_EQUAL(b.err.status, status);
    expect_text(b.err.message, message);
    if (is_stream) {
        surface_messages.fail(b.exchange, &b.err, &b.out);
        bench_check(&b, false);
    }
}

#define CUT "The upstream's stream ended before its answer was whole"
#define ODD "The upstream's answer cannot be understood: "

static void a_stream_that_is_cut_runs_nothing(void)
{
    expect_failure(true, "", SG_E_UNAVAILABLE, 0, CUT);
    expect_failure(true, START, SG_E_UNAVAILABLE, 0, CUT);
    expect_failure(true, START TEXT("0", "a"), SG_E_UNAVAILABLE, 0, CUT);
    expect_failure(true, START CALL("0", "t", "code_interpreter", "{}"), SG_E_UNAVAILABLE, 0, CUT);
    expect_failure(true, START CALL("0", "t", "code_interpreter", "{}") "data: [DONE]\n\n",
                   SG_E_UNAVAILABLE, 0, CUT);
    expect_failure(true,
                   START EVENT("message_delta", ",\"delta\":{\"stop_reason\":null},\"usage\":{}"),
                   SG_E_UNAVAILABLE, 0, CUT);
}

static void a_stream_is_whole_with_its_stop_reason_or_its_stop(void)
{
    static const char *const ends[] = {
        EVENT("message_stop", ""),
        EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"end_turn\"}"),
        "data: {\"type\":\"message_stop\"}"};
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        BENCH_CLEANUP struct bench b = bench_new(2);
        BUF_CLEANUP struct buf sse = {0};
        bench_open(&b, STREAM_BODY);
        buf_printf(&sse, START TEXT("0", "a") "%s", ends[i]);
        bench_turn(&b, sse.data);
        expect_part(bench_finish(&b, ""), "\"stop_reason\":\"end_turn\"");
    }
}

#define ERROR_OF(type, message) \
    "{\"type\":\"error\",\"error\":{\"type\":\"" type "\",\"message\":\"" message "\"}}"

static void errors_of_the_upstream_keep_their_message_and_status(void)
{
    expect_failure(true, "event: error\ndata: " ERROR_OF("overloaded_error", "Overloaded") "\n\n",
                   SG_E_UNAVAILABLE, 529, "Overloaded");
    expect_failure(true, START "data: " ERROR_OF("rate_limit_error", "Slow down") "\n\n",
                   SG_E_LIMIT, 429, "Slow down");
    expect_failure(false, ERROR_OF("invalid_request_error", "max_tokens: bad"), SG_E_INVALID, 400,
                   "max_tokens: bad");
    expect_failure(false, ERROR_OF("not_found_error", "model: x"), SG_E_NOT_FOUND, 404, "model: x");
    expect_failure(false, ERROR_OF("request_too_large", "big"), SG_E_INVALID, 413, "big");
    expect_failure(false, ERROR_OF("api_error", "boom"), SG_E_UNAVAILABLE, 500, "boom");
    expect_failure(false, ERROR_OF("timeout_error", "late"), SG_E_TIMEOUT, 504, "late");
    expect_failure(false, ERROR_OF("new_error", "new"), SG_E_UNAVAILABLE, 0, "new");
    expect_failure(false, "{\"error\":\"plain\"}", SG_E_UNAVAILABLE, 0, "plain");
    expect_failure(true, "event: error\ndata: {\"message\":\"bare\"}\n\n", SG_E_UNAVAILABLE, 0,
                   "bare");
    expect_failure(true, "data: {\"type\":\"error\"}\n\n", SG_E_UNAVAILABLE, 0,
                   "The upstream reports an error without a message");
}

static void what_is_no_answer_is_not_understood(void)
{
    expect_failure(false, "", SG_E_UNAVAILABLE, 0,
                   ODD "invalid JSON at byte 0: the text ends where a value is expected");
    expect_failure(false, "{}", SG_E_UNAVAILABLE, 0, ODD "it has no content");
    expect_failure(false, "[]", SG_E_UNAVAILABLE, 0, ODD "it has no content");
    expect_failure(false, "{\"content\":7}", SG_E_UNAVAILABLE, 0, ODD "its content is no array");
    expect_failure(false, "{\"content\":[7]}", SG_E_UNAVAILABLE, 0,
                   ODD "a content block that is no object");
    expect_failure(false, "{\"content\":[{\"type\":\"text\",\"type\":\"tool_use\"}]}",
                   SG_E_UNAVAILABLE, 0, ODD "duplicate key 'type' in a content block");
    expect_failure(true, "data: 7\n\n", SG_E_UNAVAILABLE, 0, ODD "an event is no JSON object");
    expect_failure(true, "data: {\n\n", SG_E_UNAVAILABLE, 0,
                   ODD "invalid JSON at byte 1: expected a key in quotes");
    expect_failure(true, START EVENT("content_block_start", ",\"index\":0"), SG_E_UNAVAILABLE, 0,
                   ODD "a content block is missing");
    expect_failure(true, START BLOCK("0", "[]"), SG_E_UNAVAILABLE, 0,
                   ODD "a content block that is no object");
    expect_failure(true, START INPUT("0", "{}"), SG_E_UNAVAILABLE, 0,
                   ODD "a delta of a content block that does not go on");
    expect_failure(true, START CALL("0", "t", "code_interpreter", "{}") INPUT("0", "{}"),
                   SG_E_UNAVAILABLE, 0, ODD "a delta of a content block that does not go on");
}

static void deltas_that_do_not_fit_their_block_say_nothing(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, STREAM_BODY);
    bench_turn(&b,
               START BLOCK("0", "{\"type\":\"text\",\"text\":\"\"}") INPUT("0", "{}")
                   DELTA("0", "{\"type\":\"thinking_delta\",\"thinking\":\"x\"}")
                       DELTA("0", "{\"type\":\"text_delta\",\"text\":7}")
                           DELTA("0", "{\"type\":\"text_delta\"}") DELTA("0", "{}") DELTA("0", "7")
                               TEXT_DELTA("0", "a") STOP("0") STOP("0") STOP("9")
                                   CALL_START("1", "t", "get_stock") TEXT_DELTA("1", "x")
                                       INPUT("1", "{}") STOP("1") END("tool_use"));
    expect_part(bench_finish(&b, ""),
                START TEXT("0", "a") CALL("1", "t", "get_stock", "{}") "event: message_delta");
}

static void blocks_without_a_type_are_nobodys(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0), plain = bench_new(0);
    bench_open(&b, STREAM_BODY);
    bench_turn(&b, START BLOCK("0", "{\"text\":\"\"}") TEXT_DELTA("0", "lost") STOP("0")
                       BLOCK("1", "{\"type\":7}") INPUT("1", "{}") STOP("1") TEXT("2", "a")
                           END("end_turn"));
    expect_part(bench_finish(&b, ""), START TEXT("0", "a") "event: message_delta");
    bench_open(&plain, JSON_BODY);
    bench_plain_turn(&plain, "{\"content\":[{\"x\":1},{\"type\":\"text\",\"text\":\"a\"}],"
                             "\"stop_reason\":\"end_turn\"}");
    expect_part(bench_finish(&plain, ""), "\"content\":[{\"type\":\"text\",\"text\":\"a\"}]");
}

static void blocks_are_bounded(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    BUF_CLEANUP struct buf answer = {0};
    bench_open(&b, JSON_BODY);
    buf_puts(&answer, "{\"content\":[{}");
    for (int i = 0; i < 4096; i++) {
        buf_puts(&answer, ",{}");
    }
    buf_puts(&answer, "]}");
    CU_ASSERT_EQUAL(bench_try_turn(&b, false, answer.data), SG_E_UNAVAILABLE);
    expect_text(b.err.message, ODD "more than 4096 content blocks");
}

static void what_a_turn_keeps_is_bounded(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    BUF_CLEANUP struct buf piece = {0};
    bench_open(&b, JSON_BODY);
    buf_puts(&piece, "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\","
                     "\"text\":\"");
    for (size_t i = 0; i < MIB / 8; i++) {
        buf_puts(&piece, "aaaaaaaa");
    }
    buf_puts(&piece, "\"}}\n\n");
    surface_messages.turn_begin(b.exchange, true);
    int code = SG_OK;
    size_t fed = 0;
    for (; code == SG_OK && fed < 64; fed++) {
        code = surface_messages.turn_feed(b.exchange, buf_str(&piece), &b.out, &b.err);
    }
    CU_ASSERT_EQUAL(code, SG_E_UNAVAILABLE);
    CU_ASSERT_EQUAL(fed, 32);
    CU_ASSERT_TRUE(surface_messages.turn_bytes(b.exchange) >= 32 * MIB);
    expect_text(b.err.message, "The upstream's answer is larger than 32 MiB");
}

static void a_first_turn_that_failed_unseen_leaves_nothing_behind(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, JSON_BODY);
    CU_ASSERT_EQUAL(bench_try_turn(&b, true, START TEXT("0", "lost")), SG_E_UNAVAILABLE);
    bench_turn(&b, START_OF("msg_9", "{\"input_tokens\":1,\"output_tokens\":1}") TEXT("0", "kept")
                       END("end_turn"));
    expect_part(bench_finish(&b, ""), "{\"id\":\"msg_9\"");
    expect_no_part(b.out.data, "lost");
}

static void expect_body(int code, int status, const char *reason, const char *type)
{
    struct sg_error err = {0};
    BUF_CLEANUP struct buf out = {0}, wanted = {0};
    error_set(&err, code, "m \"q\"");
    (void)snprintf(err.reason, sizeof err.reason, "%s", reason); /* fits */
    err.status = status;
    surface_messages.error_body(&err, "req_1", &out);
    buf_printf(&wanted,
               "{\"type\":\"error\",\"error\":{\"type\":\"%s\",\"message\":\"m \\\"q\\\"\"},"
               "\"request_id\":\"req_1\"}",
               type);
    expect_text(out.data, wanted.data);
}

static void errors_have_the_published_form(void)
{
    expect_body(SG_E_INVALID, 0, "", "invalid_request_error");
    expect_body(SG_E_INVALID, 401, "", "authentication_error");
    expect_body(SG_E_INVALID, 402, "", "billing_error");
    expect_body(SG_E_DENIED, 0, "", "permission_error");
    expect_body(SG_E_NOT_FOUND, 0, "model_not_found", "not_found_error");
    expect_body(SG_E_LIMIT, 413, "", "request_too_large");
    expect_body(SG_E_INVALID, 415, "", "invalid_request_error");
    expect_body(SG_E_LIMIT, 0, "", "rate_limit_error");
    expect_body(SG_E_UNAVAILABLE, 424, "failed_after_run", "api_error");
    expect_body(SG_E_INTERNAL, 0, "", "api_error");
    expect_body(SG_E_UNAVAILABLE, 0, "", "api_error");
    expect_body(SG_E_TIMEOUT, 0, "", "timeout_error");
    expect_body(SG_E_UNAVAILABLE, 529, "", "overloaded_error");
}

static void a_failure_in_a_stream_is_an_error_event_and_the_end(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, STREAM_BODY);
    CU_ASSERT_EQUAL(bench_try_turn(&b, true,
                                   START BLOCK("0", "{\"type\":\"text\",\"text\":\"\"}")
                                       TEXT_DELTA("0", "a")),
                    SG_E_UNAVAILABLE);
    size_t before = b.out.len;
    b.err.status = 529;
    surface_messages.fail(b.exchange, &b.err, &b.out);
    expect_text(b.out.data + before,
                "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\","
                "\"message\":\"" CUT "\"}}\n\n");
    bench_check(&b, false);
}

static void c011_a_keep_alive_is_a_ping(void)
{
    CU_ASSERT_STRING_EQUAL(surface_messages.keep_alive,
                           "event: ping\ndata: {\"type\": \"ping\"}\n\n");
    CHECKER_CLEANUP struct checker checker = {0};
    CU_ASSERT_PTR_NULL(check_stream(&checker, str_of(surface_messages.keep_alive), true));
    CU_ASSERT_EQUAL(checker.pings, 1);
}

static const struct test tests[] = {
    TEST(a_stream_that_is_cut_runs_nothing),
    TEST(a_stream_is_whole_with_its_stop_reason_or_its_stop),
    TEST(errors_of_the_upstream_keep_their_message_and_status),
    TEST(what_is_no_answer_is_not_understood),
    TEST(deltas_that_do_not_fit_their_block_say_nothing),
    TEST(blocks_without_a_type_are_nobodys),
    TEST(blocks_are_bounded),
    TEST(what_a_turn_keeps_is_bounded),
    TEST(a_first_turn_that_failed_unseen_leaves_nothing_behind),
    TEST(errors_have_the_published_form),
    TEST(a_failure_in_a_stream_is_an_error_event_and_the_end),
    TEST(c011_a_keep_alive_is_a_ping),
};

int main(int argc, char **argv)
{
    return run_tests("messages_failures", tests, COUNT_OF(tests), argc, argv);
}
