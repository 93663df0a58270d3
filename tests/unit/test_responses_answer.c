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

static const struct test tests[] = {
    TEST(b02_b13_b15_code_runs_and_shows_before_the_message),
    TEST(b03_the_native_tool_goes_up_as_a_function),
};

int main(int argc, char **argv)
{
    return run_tests("responses_answer", tests, COUNT_OF(tests), argc, argv);
}
