/* The client's stream on messages: every one goes through the strict checker, whole, byte by byte and in odd pieces. */
#include "base/check.h"
#include "messages_bench.h"

#define STREAM_BODY HEAD "\"stream\":true," USER ",\"tools\":[" PYTHON_TOOL "," OWN_TOOL "]}"

static void run_scenario(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, START TEXT("0", "Let me see.") CALL_START("1", "toolu_1", "code_interpreter")
                      INPUT("1", "") INPUT("1", "{\\\"code\\\":") INPUT("1", "\\\"40+2\\\"}")
                          STOP("1") END("tool_use"));
    CU_ASSERT_EQUAL_FATAL(b->turn.calls_count, 1);
    CU_ASSERT_TRUE(str_is(b->turn.calls[0].arguments, "{\"code\":\"40+2\"}"));
    bench_check(b, true);
    bench_result(b, 0, "42\n");
    bench_turn(b, START_OF("msg_2", "{\"input_tokens\":20,\"output_tokens\":1}")
                      TEXT("0", "It is 42.") END("end_turn"));
    bench_finish(b, "unused");
}

#define ID "srvtoolu_sg00000000000000000000000000000000"

static void b17_a_run_shows_live_and_its_result_whole(void)
{
    in_any_pieces(run_scenario);
    BENCH_CLEANUP struct bench b = bench_new(0);
    run_scenario(&b);
    expect_text(
        b.out.data,
        START TEXT("0", "Let me see.") BLOCK("1", "{\"type\":\"server_tool_use\",\"id\":\"" ID
                                                  "\",\"name\":\"code_execution\","
                                                  "\"input\":{},\"caller\":{\"type\":\"direct\"}}")
            INPUT("1", "{\\\"code\\\":") INPUT("1", "\\\"40+2\\\"}") STOP("1")
                BLOCK("2", "{\"type\":\"code_execution_tool_result\",\"tool_use_id\":\"" ID
                           "\",\"content\":{\"type\":\"code_execution_result\",\"stdout\":\"42\\n"
                           "\",\"stderr\":\"\",\"return_code\":0,\"content\":[]}}") STOP("2")
                    TEXT("3", "It is 42.")
                        EVENT("message_delta",
                              ",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},"
                              "\"usage\":{\"output_tokens\":10,\"input_tokens\":30}")
                            EVENT("message_stop", ""));
}

static const struct test tests[] = {
    TEST(b17_a_run_shows_live_and_its_result_whole),
};

int main(int argc, char **argv)
{
    return run_tests("messages_stream", tests, COUNT_OF(tests), argc, argv);
}
