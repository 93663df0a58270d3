/* The client's JSON answer on messages, from plain and streamed turns; error bodies. What the upstream said stays byte
 * for byte but for what is named in a test. */
#include "base/check.h"
#include "messages_bench.h"

#define JSON_BODY HEAD USER ",\"tools\":[" PYTHON_TOOL "," OWN_TOOL "]}"
#define ANSWER(content, reason, more)                                                  \
    "{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m-1\"," \
    "\"content\":" content ",\"stop_reason\":\"" reason                                \
    "\",\"stop_sequence\":null,\"usage\":{\"input_tokens\""                            \
    ":10,\"output_tokens\":5" more "}}"
#define LATER(content, reason)                                                         \
    "{\"id\":\"msg_2\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m-2\"," \
    "\"content\":" content ",\"stop_reason\":\"" reason                                \
    "\",\"stop_sequence\":null,\"usage\":{\"input_tokens\""                            \
    ":20,\"output_tokens\":7}}"
#define USE(id, name, input) \
    "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"" name "\",\"input\":" input "}"
#define RUN USE("toolu_1", "code_interpreter", "{\"code\":\"40+2\"}")
#define SAY(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define ZEROS "00000000000000000000000000000000"
#define SHOWN_CALL(input)                                                                        \
    "{\"type\":\"server_tool_use\",\"id\":\"srvtoolu_sg" ZEROS "\",\"name\":\"code_execution\"," \
    "\"input\":" input ",\"caller\":{\"type\":\"direct\"}}"
#define SHOWN_RESULT(out, err, code)                                                              \
    "{\"type\":\"code_execution_tool_result\",\"tool_use_id\":\"srvtoolu_sg" ZEROS                \
    "\",\"content\":{\"type\":\"code_execution_result\",\"stdout\":\"" out "\",\"stderr\":\"" err \
    "\",\"return_code\":" code ",\"content\":[]}}"

static void b16_without_runs_the_answer_is_the_upstreams_bytes(void)
{
    static const char *const answers[] = {
        ANSWER("[" SAY("hi \\u00e4") "]", "end_turn", ",\"x\":[1.0,9007199254740993]"),
        ANSWER("[" USE("a", "get_stock", "{ \"part\" : 1.0 }") "]", "tool_use", ""),
        ANSWER("[ {\"text\":\"a\", \"type\":\"text\",\"citations\":null} ]", "max_tokens", ""),
        ANSWER("[{\"type\":\"redacted_thinking\",\"data\":\"x\"},{\"type\":\"new\",\"y\":[]}]",
               "pause_turn", ""), /* C034 */
    };
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        BENCH_CLEANUP struct bench b = bench_new(i);
        bench_open(&b, JSON_BODY);
        CU_ASSERT_FALSE(surface_messages.wants_stream(b.exchange));
        bench_plain_turn(&b, answers[i]);
        CU_ASSERT_EQUAL(b.turn.calls_count, 0);
        CU_ASSERT_EQUAL(b.turn.length, i == 2);
        CU_ASSERT_EQUAL(b.turn.has_client_calls, i == 1);
        CU_ASSERT_EQUAL(b.out.len, 0);
        expect_text(bench_finish(&b, ""), answers[i]);
    }
}

static void c027_b13_b15_a_run_is_a_call_and_a_result_in_their_order(void)
{
    BENCH_CLEANUP struct bench b = bench_new(5);
    bench_open(&b, JSON_BODY);
    bench_plain_turn(&b, ANSWER("[" SAY("Let me see.") "," RUN "]", "tool_use", ""));
    CU_ASSERT_EQUAL_FATAL(b.turn.calls_count, 1);
    CU_ASSERT_TRUE(str_is(b.turn.calls[0].id, "toolu_1"));
    CU_ASSERT_TRUE(str_is(b.turn.calls[0].name, "code_interpreter"));
    CU_ASSERT_TRUE(str_is(b.turn.calls[0].arguments, "{\"code\":\"40+2\"}"));
    CU_ASSERT_EQUAL(b.turn.calls[0].offer, 0);
    CU_ASSERT_TRUE(b.turn.has_text);
    bench_result(&b, 0, "42\n");
    bench_plain_turn(&b, LATER("[" SAY("It is 42.") "]", "end_turn"));
    expect_text(
        bench_finish(&b, ""),
        "{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m-1\","
        "\"content\":[" SAY("Let me see.") "," SHOWN_CALL("{\"code\":\"40+2\"}") "," SHOWN_RESULT(
            "42\\n", "", "0") "," SAY("It is 42.") "],\"stop_reason\":"
                                                   "\"end_turn\",\"stop_sequence\":null,\"usage\":{"
                                                   "\"input_tokens\":30,"
                                                   "\"output_tokens\":12}}");
    CU_ASSERT_EQUAL(surface_messages.usage(b.exchange).output_tokens, 12);
}

static void b02_b23_the_next_turn_has_the_calls_and_their_results(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, HEAD "\"temperature\":0," USER ",\"tools\":[" PYTHON_TOOL "]}");
    bench_plain_turn(&b, ANSWER("[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"s1\"},"
                                "{\"type\":\"redacted_thinking\",\"data\":\"d\"}," SAY("") "," SAY(
                                    "Let me look") ", " RUN "]",
                                "tool_use", ""));
    bench_result(&b, 0, "42\n");
    expect_text(bench_request(&b),
                "{\"model\":\"m\",\"max_tokens\":995,\"temperature\":0,\"messages\":[{\"role\":"
                "\"user\",\"content\":\"hi\"},{\"role\":\"assistant\",\"content\":[{\"type\":"
                "\"thinking\",\"thinking\":\"hm\",\"signature\":\"s1\"},{\"type\":"
                "\"redacted_thinking\",\"data\":\"d\"}," SAY(
                    "Let me look") "," RUN "]},{\"role\":"
                                   "\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_"
                                   "id\":\"toolu_1\","
                                   "\"content\":\"42\\n\"}]}],\"tools\":[" PYTHON_DEFINITION "]}");
}

static const struct test tests[] = {
    TEST(b16_without_runs_the_answer_is_the_upstreams_bytes),
    TEST(c027_b13_b15_a_run_is_a_call_and_a_result_in_their_order),
    TEST(b02_b23_the_next_turn_has_the_calls_and_their_results),
};

int main(int argc, char **argv)
{
    return run_tests("messages_answer", tests, COUNT_OF(tests), argc, argv);
}
