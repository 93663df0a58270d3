/* The client's JSON answer on responses: what ran, what was said, and what the upstream was asked for it. */
#include "responses_bench.h"

static const cJSON *output_at(const cJSON *answer, int i)
{
    return cJSON_GetArrayItem(cJSON_GetObjectItem(answer, "output"), i);
}

static void b02_b13_b15_code_runs_and_shows_before_the_message(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, PLAIN_BODY);
    bench_plain_turn(&b,
                     PLAIN(CALL_ITEM("fc_1", "call_1", "code_interpreter", CODE_42, "completed")));
    CU_ASSERT_EQUAL_FATAL(b.turn.calls_count, 1);
    CU_ASSERT_EQUAL(b.turn.calls[0].offer, 0);
    CU_ASSERT_TRUE(str_is(b.turn.calls[0].arguments, "{\"code\":\"print(40+2)\"}"));
    bench_result(&b, 0, "42\n");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(bench_request(&b),
               "\"input\":[{\"role\":\"user\",\"content\":\"hi\"},{\"id\":\"fc_1\",\"type\":"
               "\"function_call\",\"status\":\"completed\",\"arguments\":\"" CODE_42
               "\",\"call_id\":\"call_1\",\"name\":\"code_interpreter\"},{\"type\":\"function_call_"
               "output\","
               "\"call_id\":\"call_1\",\"output\":\"42\\n\"}]"));
    bench_plain_turn(&b, PLAIN(MESSAGE("msg_2", "It is 42.")));
    CU_ASSERT_EQUAL(b.turn.calls_count, 0);
    CU_ASSERT_TRUE(b.turn.has_text);
    bench_finish(&b, "");
    ANSWER_CLEANUP cJSON *answer = bench_answer(&b);
    CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(cJSON_GetObjectItem(answer, "output")), 2);
    bench_plain_ids(cJSON_GetObjectItem(output_at(answer, 0), "id")->valuestring);
    expect_printed(output_at(answer, 0),
                   "{\"id\":\"ci_sg00000000000000000000000000000000\",\"type\":\"code_interpreter_"
                   "call\",\"status\":\"completed\",\"code\":\"print(40+2)\",\"container_id\":"
                   "\"cntr_1\",\"outputs\":[{\"type\":\"logs\",\"logs\":\"42\\n\"}]}");
    expect_printed(output_at(answer, 1), MESSAGE("msg_2", "It is 42."));
    CU_ASSERT_STRING_EQUAL(json_str(answer, "id"), "resp_sg0123456789abcdef0123456789abcdef");
    CU_ASSERT_STRING_EQUAL(json_str(answer, "model"), "m-1");
    CU_ASSERT_EQUAL(json_num(answer, "created_at"), 11);
    expect_printed(cJSON_GetObjectItem(answer, "usage"),
                   "{\"input_tokens\":10,\"input_tokens_details\":{\"cached_tokens\":2},\"output_"
                   "tokens\":8,\"output_tokens_details\":{\"reasoning_tokens\":0},\"total_tokens\":"
                   "18}");
    expect_printed(cJSON_GetObjectItem(answer, "tools"), "[" CODE_TOOL "," OWN_TOOL "]");
}

static void b03_the_native_tool_goes_up_as_a_function(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, PLAIN_BODY);
    CU_ASSERT_STRING_EQUAL(bench_request(&b),
                           "{\"model\":\"m\",\"input\":\"hi\",\"tools\":[" CODE_DEFINITION
                           "," OWN_TOOL "],\"store\":false}");
}

static void usage_is_the_sum_or_the_last_turns(void)
{
    static const struct {
        bool last;
        const char *usage;
    } cases[] = {{false, "{\"input_tokens\":5,\"output_tokens\":10,\"total_tokens\":15}"},
                 {true, "{\"input_tokens\":3,\"output_tokens\":6,\"total_tokens\":9}"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        b.usage_last = cases[i].last;
        bench_open(&b, PLAIN_BODY);
        bench_turn(&b, CALL("0", "f", "c", "code_interpreter", CODE_42)
                           UP_DONE("{\"input_tokens\":2,\"output_tokens\":4,\"total_tokens\":6}"));
        bench_result(&b, 0, "42");
        bench_turn(&b, SAY("0", "m", "42.")
                           UP_DONE("{\"input_tokens\":3,\"output_tokens\":6,\"total_tokens\":9}"));
        bench_finish(&b, "");
        ANSWER_CLEANUP cJSON *answer = bench_answer(&b);
        expect_printed(cJSON_GetObjectItem(answer, "usage"), cases[i].usage);
        CU_ASSERT_EQUAL(surface_responses.usage(b.exchange).output_tokens, 10);
    }
}

static void b15_b10_runs_stand_in_the_order_in_which_they_happened(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, PLAIN_BODY);
    for (int i = 0; i < 3; i++) {
        char code[64];
        (void)snprintf(code, sizeof code, "{\\\"code\\\":\\\"%d\\\"}", i); /* fits */
        BUF_CLEANUP struct buf turn = {0};
        buf_printf(&turn,
                   PLAIN(MESSAGE("m%d", "Step.") "," CALL_ITEM("f", "c", "code_interpreter", "%s",
                                                               "completed")),
                   i, code);
        bench_plain_turn(&b, turn.data);
        bench_result(&b, 0, "x");
    }
    bench_plain_turn(&b, PLAIN(MESSAGE("m9", "Done.")));
    bench_finish(&b, "");
    ANSWER_CLEANUP cJSON *answer = bench_answer(&b);
    CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(cJSON_GetObjectItem(answer, "output")), 7);
    for (int i = 0; i < 3; i++) {
        char digit[2] = {(char)('0' + i), '\0'};
        CU_ASSERT_STRING_EQUAL(json_str(output_at(answer, 2 * i + 1), "code"), digit);
        CU_ASSERT_STRING_EQUAL(json_str(output_at(answer, 2 * i + 1), "container_id"), "cntr_1");
    }
}

static void b16_without_runs_the_output_is_the_upstreams(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, PLAIN_BODY);
    bench_plain_turn(
        &b, PLAIN("{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[]}," MESSAGE(
                "msg_1", "Hi.") "," CALL_ITEM("f1", "c1", "get_stock", "{}", "completed")));
    bench_finish(&b, "unused");
    ANSWER_CLEANUP cJSON *answer = bench_answer(&b);
    expect_printed(
        cJSON_GetObjectItem(answer, "output"),
        "[{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[]}," MESSAGE(
            "msg_1", "Hi.") "," CALL_ITEM("f1", "c1", "get_stock", "{}", "completed") "]");
}

static void b17_a_streaming_upstream_still_gives_a_json_answer(void)
{
    BENCH_CLEANUP struct bench b = bench_new(1);
    bench_open(&b, PLAIN_BODY);
    bench_turn(&b, RUN_42);
    CU_ASSERT_EQUAL(b.out.len, 0);
    bench_result(&b, 0, "42\n");
    bench_turn(&b, UP_CREATED SAY("0", "msg_1", "It is 42.") UP_END);
    bench_finish(&b, "");
    ANSWER_CLEANUP cJSON *answer = bench_answer(&b);
    CU_ASSERT_STRING_EQUAL(json_str(output_at(answer, 0), "code"), "print(40+2)");
    expect_printed(output_at(answer, 1), MESSAGE("msg_1", "It is 42."));
}

static void an_answer_without_words_gets_a_sentence(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, PLAIN_BODY);
    bench_plain_turn(&b, PLAIN(""));
    bench_finish(&b, "No \"answer\".");
    ANSWER_CLEANUP cJSON *answer = bench_answer(&b);
    expect_printed(cJSON_GetObjectItem(output_at(answer, 0), "content"),
                   "[{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":\"No "
                   "\\\"answer\\\".\"}]");
}

static void errors_have_the_published_form(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    struct sg_error err = {0};
    (void)error_set_param(&err, SG_E_INVALID, "input", "input must be a string or an array");
    surface_responses.error_body(&err, "req_1", &b.out);
    CU_ASSERT_STRING_EQUAL(
        b.out.data, "{\"error\":{\"message\":\"input must be a string or an array\",\"type\":"
                    "\"invalid_request_error\",\"param\":\"input\",\"code\":null}}");
    CU_ASSERT_STRING_EQUAL(surface_responses.keep_alive, ": keep-alive\n\n");
}

static const struct test tests[] = {
    TEST(b02_b13_b15_code_runs_and_shows_before_the_message),
    TEST(b03_the_native_tool_goes_up_as_a_function),
    TEST(usage_is_the_sum_or_the_last_turns),
    TEST(b15_b10_runs_stand_in_the_order_in_which_they_happened),
    TEST(b16_without_runs_the_output_is_the_upstreams),
    TEST(b17_a_streaming_upstream_still_gives_a_json_answer),
    TEST(an_answer_without_words_gets_a_sentence),
    TEST(errors_have_the_published_form),
};

int main(int argc, char **argv)
{
    return run_tests("responses_answer", tests, COUNT_OF(tests), argc, argv);
}
