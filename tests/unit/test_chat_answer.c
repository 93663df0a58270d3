/* The client's JSON answer on chat, from plain and streamed turns; error bodies. What the upstream said stays byte for
 * byte but for what is named in a test. */
#include "base/check.h"
#include "chat_bench.h"

#define JSON_BODY "{\"model\":\"m\"," USER ",\"tools\":[" CODE_TOOL "," OWN_TOOL "]}"
#define ANSWER(message, reason, more)                                                              \
    "{\"id\":\"c1\",\"object\":\"chat.completion\",\"created\":11,\"model\":\"m-1\",\"choices\":[" \
    "{\"index\":0,\"message\":" message ",\"logprobs\":null,\"finish_reason\":\"" reason           \
    "\"}]" more "}"
#define LATER(message, reason, more)                                                               \
    "{\"id\":\"c2\",\"object\":\"chat.completion\",\"created\":22,\"model\":\"m-2\",\"choices\":[" \
    "{\"index\":0,\"message\":" message ",\"logprobs\":null,\"finish_reason\":\"" reason           \
    "\"}]" more "}"
#define CALL_JSON(id, name, arguments)                                        \
    "{\"id\":\"" id "\",\"type\":\"function\",\"function\":{\"name\":\"" name \
    "\",\"arguments\":" arguments "}}"
#define RUN_JSON CALL_JSON("up_1", "code_interpreter", "\"{\\\"code\\\":\\\"40+2\\\"}\"")

static void expect_answer(struct bench *b, const char *closing, const char *wanted)
{
    bench_finish(b, closing);
    bench_plain_ids(b->out.data);
    CU_ASSERT_STRING_EQUAL(b->out.data, wanted);
    if (strcmp(b->out.data, wanted) != 0) {
        fprintf(stderr, "got    %s\nwanted %s\n", b->out.data, wanted);
    }
    struct json_text text;
    CU_ASSERT_EQUAL(json_scan(buf_str(&b->out), b->arena, &text, &b->err), SG_OK);
}

static void b16_without_runs_the_answer_is_the_upstreams_bytes(void)
{
    static const char *const answers[] = {
        ANSWER("{\"role\":\"assistant\",\"content\":\"hi \\u00e4\",\"refusal\":null}", "stop",
               ",\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2},\"x\":[1.0,"
               "9007199254740993]"),
        ANSWER("{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[" CALL_JSON(
                   "a", "get_stock", "\"{}\"") "]}",
               "tool_calls", ""),
        ANSWER("{ \"role\" : \"assistant\" , \"content\" : [{\"type\":\"text\",\"text\":\"a\"}] }",
               "length", ""),
    };
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        BENCH_CLEANUP struct bench b = bench_new(i);
        bench_open(&b, JSON_BODY);
        CU_ASSERT_FALSE(surface_chat.wants_stream(b.exchange));
        bench_plain_turn(&b, answers[i]);
        CU_ASSERT_EQUAL(b.turn.calls_count, 0);
        CU_ASSERT_EQUAL(b.turn.length, i == 2);
        CU_ASSERT_EQUAL(b.out.len, 0);
        expect_answer(&b, "unused", answers[i]);
    }
}

static void b21_c042_calls_are_found_whatever_the_finish_reason(void)
{
    BENCH_CLEANUP struct bench b = bench_new(5);
    bench_open(&b, JSON_BODY);
    bench_plain_turn(&b, ANSWER("{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[" RUN_JSON
                                "]}",
                                "stop", ""));
    CU_ASSERT_EQUAL_FATAL(b.turn.calls_count, 1);
    CU_ASSERT_TRUE(str_is(b.turn.calls[0].id, "up_1"));
    CU_ASSERT_TRUE(str_is(b.turn.calls[0].name, "code_interpreter"));
    CU_ASSERT_TRUE(str_is(b.turn.calls[0].arguments, "{\"code\":\"40+2\"}"));
}

static void the_answer_has_the_first_turns_head_and_the_sum_of_usage(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, JSON_BODY);
    bench_plain_turn(
        &b,
        ANSWER("{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[" RUN_JSON "]}",
               "tool_calls",
               ",\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5,\"total_tokens\":15}"));
    bench_result(&b, 0, "42");
    bench_plain_turn(&b, LATER("{\"role\":\"assistant\",\"content\":\"It is 42.\"}", "stop",
                               ",\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":7,\"total_"
                               "tokens\":27},\"extra\":1"));
    expect_answer(&b, "",
                  ANSWER("{\"role\":\"assistant\",\"content\":\"It is 42.\"}", "stop",
                         ",\"usage\":{\"prompt_tokens\":30,\"completion_tokens\":12,\"total_"
                         "tokens\":42},\"extra\":1"));
    CU_ASSERT_EQUAL(surface_chat.usage(b.exchange).total_tokens, 42);
}

static void texts_of_turns_are_joined_as_in_a_stream(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, JSON_BODY);
    bench_plain_turn(
        &b,
        ANSWER("{\"role\":\"assistant\",\"content\":\"Let me \\u2026\",\"tool_calls\":[" RUN_JSON
               "]}",
               "tool_calls", ""));
    bench_result(&b, 0, "42");
    bench_turn(&b, ROLE TEXT("And ") TEXT("more.") RUN_42);
    bench_result(&b, 0, "42");
    bench_plain_turn(&b, LATER("{\"role\":\"assistant\",\"content\":\"Done \\/.\"}", "stop", ""));
    expect_answer(
        &b, "",
        ANSWER(
            "{\"role\":\"assistant\",\"content\":\"Let me \\u2026\\n\\nAnd more.\\n\\nDone \\/.\"}",
            "stop", ""));
}

static void c037_b23_the_upstreams_message_goes_up_again_whole(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, JSON_BODY);
    bench_plain_turn(&b, ANSWER("{\"reasoning_content\":\"hm\", \"role\":\"assistant\", "
                                "\"content\": \"\\u0074\",\"sig\":{\"a\":1.0},"
                                "\"tool_calls\":[" RUN_JSON "],\"last\":null}",
                                "tool_calls", ""));
    bench_result(&b, 0, "42");
    CU_ASSERT_PTR_NOT_NULL(strstr(
        bench_request(&b),
        ",{\"reasoning_content\":\"hm\", \"role\":\"assistant\", \"content\": "
        "\"\\u0074\",\"sig\":{\"a\":1.0},"
        "\"tool_calls\":[" RUN_JSON
        "],\"last\":null},{\"role\":\"tool\",\"tool_call_id\":\"up_1\",\"content\":\"42\"}]"));
}

static void b45_every_legal_shape_of_a_call_is_understood(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, JSON_BODY);
    bench_plain_turn(
        &b, "{\"choices\":[{\"index\":1,\"message\":{\"content\":\"other\"}},{\"index\":0,"
            "\"message\":{\"tool_calls\":["
            "{\"function\":{\"name\":\"code_interpreter\",\"arguments\":{\"code\":\"1\"}}},"
            "{\"id\":\"x\",\"function\":{\"name\":\"code_interpreter\",\"arguments\":null}},"
            "{\"id\":\"x\",\"function\":{\"name\":\"code_interpreter\"}}]}}]}");
    CU_ASSERT_EQUAL_FATAL(b.turn.calls_count, 3);
    CU_ASSERT_TRUE(str_starts(b.turn.calls[0].id, STR("call_sg")));
    CU_ASSERT_EQUAL(b.turn.calls[0].id.len, 39);
    CU_ASSERT_TRUE(str_is(b.turn.calls[0].arguments, "{\"code\":\"1\"}"));
    CU_ASSERT_TRUE(str_is(b.turn.calls[1].id, "x"));
    CU_ASSERT_EQUAL(b.turn.calls[1].arguments.len, 0);
    CU_ASSERT_TRUE(str_starts(b.turn.calls[2].id, STR("call_sg")));
    bench_result(&b, 0, "a");
    bench_result(&b, 1, "b");
    bench_result(&b, 2, "c");
    const char *body = bench_request(&b);
    CU_ASSERT_PTR_NOT_NULL(strstr(
        body, "\"arguments\":\"{\\\"code\\\":\\\"1\\\"}\"}},{\"id\":\"x\",\"type\":\"function\","
              "\"function\":{\"name\":\"code_interpreter\",\"arguments\":\"{}\"}}"));
    CU_ASSERT_PTR_NOT_NULL(strstr(body, "],\"role\":\"assistant\"},{\"role\":\"tool\""));
    bench_plain_turn(&b, "{\"choices\":[{\"message\":{\"content\":\"x\"}},{\"index\":1,\"message\":"
                         "{\"content\":\"other\"}}]}");
    bench_finish(&b, "");
    CU_ASSERT_PTR_NOT_NULL(strstr(b.out.data, "\"content\":\"x\""));
    CU_ASSERT_PTR_NULL(strstr(b.out.data, "other"));
    CU_ASSERT_PTR_NOT_NULL(strstr(b.out.data, "\"index\":0"));
    CU_ASSERT_PTR_NOT_NULL(strstr(b.out.data, "\"finish_reason\":\"stop\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(b.out.data, "\"role\":\"assistant\""));
}

static void a_mixed_turn_shows_the_clients_calls_only(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, JSON_BODY);
    bench_plain_turn(&b,
                     ANSWER("{\"role\":\"assistant\",\"content\":\"t\",\"tool_calls\":[" RUN_JSON
                            ", " CALL_JSON("a", "get_stock", "{ }") ", " RUN_JSON "," CALL_JSON(
                                "b", "get_stock", "\"{ }\"") "]}",
                            "stop", ""));
    CU_ASSERT_TRUE(b.turn.has_client_calls);
    CU_ASSERT_EQUAL(b.turn.calls_count, 2);
    expect_answer(
        &b, "unused",
        ANSWER("{\"role\":\"assistant\",\"content\":\"t\",\"tool_calls\":[" CALL_JSON(
                   "a", "get_stock", "\"{ }\"") ", " CALL_JSON("b", "get_stock", "\"{ }\"") "]}",
               "tool_calls", ""));
}

static void calls_of_ours_in_the_last_turn_are_dropped(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, JSON_BODY);
    bench_plain_turn(&b, ANSWER("{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[" RUN_JSON
                                "]}",
                                "tool_calls", ""));
    expect_answer(
        &b, "Limit \"reached\".",
        ANSWER("{\"role\":\"assistant\",\"content\":\"Limit \\\"reached\\\".\"}", "stop", ""));
}

static void with_a_json_format_text_beside_a_run_is_left_out(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, "{\"response_format\":{\"type\":\"json_schema\"}," USER ",\"tools\":[" CODE_TOOL
                   "]}");
    bench_plain_turn(
        &b, ANSWER("{\"role\":\"assistant\",\"content\":\"Hm.\",\"tool_calls\":[" RUN_JSON "]}",
                   "tool_calls", ""));
    CU_ASSERT_FALSE(b.turn.has_text);
    bench_result(&b, 0, "42");
    bench_plain_turn(&b, LATER("{\"role\":\"assistant\",\"content\":\"{}\"}", "stop", ""));
    expect_answer(&b, "", ANSWER("{\"role\":\"assistant\",\"content\":\"{}\"}", "stop", ""));
}

static void a_streaming_upstream_still_gives_a_json_answer(void)
{
    for (size_t piece = 0; piece < 4; piece++) {
        BENCH_CLEANUP struct bench b = bench_new(piece);
        bench_open(&b, JSON_BODY);
        bench_turn(&b, ROLE TEXT("one") RUN_42);
        bench_result(&b, 0, "42");
        bench_turn(
            &b,
            ROLE CHUNK("{\"reasoning_content\":\"r\"}") TEXT("t") TEXT("wo") CALL("0", "a",
                                                                                  "get_stock", "{")
                PIECE("0",
                      "}") "data: {" BENCH_HEAD
                           ",\"system_fingerprint\":\"fp\",\"choices\":[{\"index\":0,\"delta\":{},"
                           "\"finish_reason\":\"tool_calls\"}],\"usage\":{\"prompt_tokens\":1}}"
                           "\n\n" DONE);
        CU_ASSERT_EQUAL(b.out.len, 0);
        expect_answer(
            &b, "",
            "{\"id\":\"c1\",\"object\":\"chat.completion\",\"created\":11,\"model\":\"m-1\","
            "\"choices\":[{\"index\":0,"
            "\"message\":{\"role\":\"assistant\",\"content\":\"one\\n\\ntwo\",\"refusal\":null,"
            "\"reasoning_content\":\"r\","
            "\"tool_calls\":[" CALL_JSON(
                "a", "get_stock",
                "\"{}\"") "]},\"logprobs\":null,\"finish_reason\":\"tool_calls\"}],"
                          "\"usage\":{\"prompt_tokens\":1},\"system_fingerprint\":\"fp\"}");
    }
}

static void b13_b14_b15_runs_are_listed_where_configured_in_order(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    b.offers[0].show_runs = true;
    bench_open(&b, JSON_BODY);
    bench_plain_turn(&b, ANSWER("{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[" RUN_JSON
                                "]}",
                                "tool_calls", ""));
    bench_result(&b, 0, "one\n");
    bench_plain_turn(&b,
                     LATER("{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[" CALL_JSON(
                               "up_2", "code_interpreter", "\"{}\"") "]}",
                           "tool_calls", ""));
    bench_result(&b, 0, "");
    bench_plain_turn(&b, LATER("{\"role\":\"assistant\",\"content\":\"ok\"}", "stop", ""));
#define RUN_ID "ci_sg00000000000000000000000000000000"
    expect_answer(&b, "",
                  ANSWER("{\"role\":\"assistant\",\"content\":\"ok\",\"executed_tools\":[{"
                         "\"index\":0,\"type\":\"code_interpreter\",\"id\":\"" RUN_ID
                         "\",\"container_id\":\"cntr_1\",\"arguments\":\"{\\\"code\\\":\\\"40+"
                         "2\\\"}\",\"output\":\"one\\n\"},{\"index\":1,\"type\":"
                         "\"code_interpreter\",\"id\":\"" RUN_ID
                         "\",\"container_id\":\"cntr_1\",\"arguments\":\"{}\",\"output\":\"\"}]}",
                         "stop", ""));
}

static void what_a_run_showed_is_told_in_order_and_calls_not_run_are_not_listed(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    b.offers[0].show_runs = true;
    bench_open(&b, JSON_BODY);
    bench_plain_turn(&b, ANSWER("{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[" RUN_JSON
                                "," CALL_JSON("up_2", "code_interpreter", "\"{}\"") "]}",
                                "tool_calls", ""));
    struct surface_output outputs[] = {
        {SG_OUT_LOG_ERR, STR("warn\n")},
        {SG_OUT_RESULT, STR("{\"text/plain\":\"42\",\"image/png\":\"AAAA\"}")},
        {SG_OUT_FILE, STR("{\"path\":\"/mnt/data/a\"}")},
        {SG_OUT_EXCEPTION, STR("{\"name\":\"NameError\",\"traceback\":\"Traceback: x\"}")},
    };
    struct surface_result result = {.status = SURFACE_CALL_FAILED,
                                    .model_text = STR("m"),
                                    .outputs = outputs,
                                    .outputs_count = COUNT_OF(outputs)};
    surface_chat.call_end(b.exchange, 0, &result, &b.out);
    result = (struct surface_result){.status = SURFACE_CALL_NOT_RUN,
                                     .model_text = STR("[limit reached]")};
    surface_chat.call_end(b.exchange, 1, &result, &b.out);
    bench_finish(&b, "end");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(b.out.data, "\"container_id\":null,\"arguments\":\"{\\\"code\\\":\\\"40+2\\\"}\","
                           "\"output\":\"warn\\n42\\nTraceback: x\\n\"}]"));
    CU_ASSERT_PTR_NULL(strstr(b.out.data, "\"index\":1"));
}

static void usage_that_a_later_turn_leaves_out_is_kept(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, JSON_BODY);
    bench_plain_turn(&b, ANSWER("{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[" RUN_JSON
                                "]}",
                                "tool_calls", ",\"usage\":{\"prompt_tokens\":1}"));
    bench_result(&b, 0, "42");
    bench_plain_turn(&b, LATER("{\"role\":\"assistant\",\"content\":\"x\"}", "stop", ""));
    expect_answer(&b, "",
                  ANSWER("{\"role\":\"assistant\",\"content\":\"x\"}", "stop",
                         ",\"usage\":{\"prompt_tokens\":1}"));
}

static void an_answer_without_any_turn_is_authored(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, JSON_BODY);
    bench_finish(&b, "Nothing.");
    CU_ASSERT_PTR_NOT_NULL(strstr(b.out.data,
                                  "\"model\":\"m\",\"choices\":[{\"index\":0,\"message\":{\"role\":"
                                  "\"assistant\",\"content\":\"Nothing.\",\"refusal\":null},"
                                  "\"logprobs\":null,\"finish_reason\":\"stop\"}]}"));
}

static void expect_failure(const char *json, int code, const char *message)
{
    BENCH_CLEANUP struct bench b = bench_new(3);
    bench_open(&b, JSON_BODY);
    CU_ASSERT_EQUAL(bench_try_turn(&b, false, json), code);
    CU_ASSERT_STRING_EQUAL(b.err.message, message);
}

static void what_is_no_answer_is_not_understood(void)
{
    const char *no_choice =
        "The upstream's answer cannot be understood: it has no choice with a message";
    expect_failure("", SG_E_UNAVAILABLE,
                   "The upstream's answer cannot be understood: invalid JSON at byte 0: the text "
                   "ends where a value is expected");
    expect_failure("{}", SG_E_UNAVAILABLE, no_choice);
    expect_failure("{\"choices\":[]}", SG_E_UNAVAILABLE, no_choice);
    expect_failure("{\"choices\":[{\"message\":null}]}", SG_E_UNAVAILABLE, no_choice);
    expect_failure("{\"choices\":[{\"message\":{\"content\":\"cut", SG_E_UNAVAILABLE,
                   "The upstream's answer cannot be understood: invalid JSON at byte 34: the "
                   "string has no closing quote");
    expect_failure("{\"error\":{\"message\":\"boom\",\"code\":500}}", SG_E_UNAVAILABLE, "boom");
}

static void expect_body(int code, int status, const char *reason, const char *param,
                        const char *wanted)
{
    struct sg_error err = {0};
    error_set_param(&err, code, param, "m");
    (void)snprintf(err.reason, sizeof err.reason, "%s", reason); /* fits */
    err.status = status;
    BUF_CLEANUP struct buf out = {0};
    surface_chat.error_body(&err, "req_1", &out);
    CU_ASSERT_STRING_EQUAL(out.data, wanted);
}

static void errors_have_the_published_form(void)
{
#define ERROR(type, param, code) \
    "{\"error\":{\"message\":\"m\",\"type\":\"" type "\",\"param\":" param ",\"code\":" code "}}"
    expect_body(SG_E_INVALID, 0, "", "tools[0]",
                ERROR("invalid_request_error", "\"tools[0]\"", "null"));
    expect_body(SG_E_INVALID, 401, "", "",
                ERROR("invalid_request_error", "null", "\"invalid_api_key\""));
    expect_body(SG_E_DENIED, 0, "", "", ERROR("permission_error", "null", "null"));
    expect_body(SG_E_NOT_FOUND, 0, "model_not_found", "model",
                ERROR("invalid_request_error", "\"model\"", "\"model_not_found\""));
    expect_body(SG_E_INVALID, 413, "", "", ERROR("invalid_request_error", "null", "null"));
    expect_body(SG_E_INVALID, 415, "", "", ERROR("invalid_request_error", "null", "null"));
    expect_body(SG_E_INVALID, 422, "", "", ERROR("invalid_request_error", "null", "null"));
    expect_body(SG_E_LIMIT, 0, "", "",
                ERROR("rate_limit_error", "null", "\"rate_limit_exceeded\""));
    expect_body(SG_E_UNAVAILABLE, 0, "", "", ERROR("server_error", "null", "null"));
    expect_body(SG_E_TIMEOUT, 0, "", "", ERROR("server_error", "null", "null"));
    expect_body(SG_E_UNAVAILABLE, 424, "failed_after_run", "",
                ERROR("server_error", "null", "\"failed_after_run\""));
}

static const struct test tests[] = {
    TEST(b16_without_runs_the_answer_is_the_upstreams_bytes),
    TEST(b21_c042_calls_are_found_whatever_the_finish_reason),
    TEST(the_answer_has_the_first_turns_head_and_the_sum_of_usage),
    TEST(texts_of_turns_are_joined_as_in_a_stream),
    TEST(c037_b23_the_upstreams_message_goes_up_again_whole),
    TEST(b45_every_legal_shape_of_a_call_is_understood),
    TEST(a_mixed_turn_shows_the_clients_calls_only),
    TEST(calls_of_ours_in_the_last_turn_are_dropped),
    TEST(with_a_json_format_text_beside_a_run_is_left_out),
    TEST(a_streaming_upstream_still_gives_a_json_answer),
    TEST(b13_b14_b15_runs_are_listed_where_configured_in_order),
    TEST(what_a_run_showed_is_told_in_order_and_calls_not_run_are_not_listed),
    TEST(usage_that_a_later_turn_leaves_out_is_kept),
    TEST(an_answer_without_any_turn_is_authored),
    TEST(what_is_no_answer_is_not_understood),
    TEST(errors_have_the_published_form),
};

int main(int argc, char **argv)
{
    return run_tests("chat_answer", tests, COUNT_OF(tests), argc, argv);
}
