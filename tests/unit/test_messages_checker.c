/* The strict checker of the tests is itself checked: a good stream passes, and each way to spoil it is seen. */
#include "base/check.h"
#include "messages_bench.h"

#define ID "srvtoolu_sg00000000000000000000000000000000"
#define CALL_BLOCK \
    "{\"type\":\"server_tool_use\",\"id\":\"" ID "\",\"name\":\"code_execution\",\"input\":{}}"
#define RESULT_OF(content) \
    "{\"type\":\"code_execution_tool_result\",\"tool_use_id\":\"" ID "\",\"content\":" content "}"
#define RAN                                                                                  \
    "{\"type\":\"code_execution_result\",\"stdout\":\"\",\"stderr\":\"\",\"return_code\":0," \
    "\"content\":[]}"
#define RUN BLOCK("0", CALL_BLOCK) INPUT("0", "{}") STOP("0") BLOCK("1", RESULT_OF(RAN)) STOP("1")
#define THINKING "{\"type\":\"thinking\",\"thinking\":\"\"}"

static void expect_problem(const char *stream, const char *problem)
{
    CHECKER_CLEANUP struct checker checker = {.trusts_upstream = true};
    const char *found = check_stream(&checker, str_of(stream), false);
    if (problem == NULL) {
        CU_ASSERT_PTR_NULL(found);
    } else {
        expect_text(found, problem);
    }
}

static void good_streams_pass(void)
{
    expect_problem(START END("end_turn"), NULL);
    expect_problem(": a comment\n\n" START EVENT("ping", "") TEXT("0", "a") END("end_turn"), NULL);
    expect_problem(START RUN TEXT("2", "a") END("end_turn"), NULL);
    expect_problem(START BLOCK("0", THINKING)
                       DELTA("0", "{\"type\":\"signature_delta\",\"signature\":\"s\"}") STOP("0")
                           END("end_turn"),
                   NULL);
    expect_problem(EVENT("error", ",\"error\":{\"type\":\"api_error\",\"message\":\"m\"}"), NULL);
}

static void the_order_of_events_is_held(void)
{
    expect_problem("", "a stream without its end");
    expect_problem(START, "a stream without its end");
    expect_problem(START START END("end_turn"), "a second message_start");
    expect_problem(TEXT("0", "a") START END("end_turn"), "something before message_start");
    expect_problem(START END("end_turn") EVENT("ping", ""), "something behind the end");
    expect_problem(EVENT("error", ",\"error\":{\"type\":\"a\",\"message\":\"m\"}") START,
                   "something behind the end");
    expect_problem(START EVENT("message_stop", ""), "message_stop without message_delta");
    expect_problem(START "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{"
                         "\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{"
                         "\"output_tokens\":1}}\n\n" TEXT("0", "a"),
                   "a block behind message_delta");
    expect_problem(START BLOCK("0", THINKING) END("end_turn"),
                   "message_delta while a block goes on");
}

static void events_have_their_form(void)
{
    expect_problem("data: {}\n\n", "an event without its name");
    expect_problem("event: ping\nid: 1\n\n", "an event without data");
    expect_problem("event: ping\ndata: {\"type\":\"ping\"}\ndata: 1\n\n",
                   "data of more than a line");
    expect_problem("event: ping\ndata: 7\n\n", "data that is no JSON object");
    expect_problem("event: ping\ndata: {\"type\":\"pong\"}\n\n",
                   "an event whose name is not its type");
    expect_problem("event: ping\ndata: {\"type\":\"ping\"}", "an event that does not end");
    expect_problem(START EVENT("new", "") END("end_turn"), "an event of an unknown type");
    expect_problem(EVENT("message_start",
                         ",\"message\":{\"id\":\"a\",\"type\":\"message\",\"role\":"
                         "\"assistant\",\"model\":\"m\",\"content\":[],"
                         "\"stop_reason\":null,\"usage\":{\"input_tokens\":1}}"),
                   "message_start without usage");
}

static void blocks_have_their_places_and_deltas(void)
{
    expect_problem(START TEXT("1", "a") END("end_turn"), "an index that is not the block's place");
    expect_problem(START TEXT("0", "a") TEXT("0", "b") END("end_turn"),
                   "an index that is not the block's place");
    expect_problem(START BLOCK("0", THINKING) BLOCK("1", THINKING),
                   "a block begins while another goes on");
    expect_problem(START TEXT_DELTA("0", "a"), "a delta without a block");
    expect_problem(START STOP("0"), "a stop without a block");
    expect_problem(START BLOCK("0", THINKING) STOP("1"), "a stop of another block");
    expect_problem(START BLOCK("0", THINKING) TEXT_DELTA("1", "a"), "a delta of another block");
    expect_problem(START BLOCK("0", THINKING) TEXT_DELTA("0", "a"),
                   "a delta that does not fit its block");
    expect_problem(START BLOCK("0", "{\"type\":\"text\",\"text\":\"a\"}"),
                   "text in the start of its block");
    expect_problem(START BLOCK("0", CALL_BLOCK) INPUT("0", "") INPUT("0", " {}"),
                   "arguments that do not begin with {");
    expect_problem(START BLOCK("0", "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"b\",\"input\":{"
                                    "\"c\":1}}"),
                   "a call whose input does not begin as {}");
    expect_problem(START CALL("0", "a", "b", "{") END("tool_use"),
                   "arguments that are no JSON object");
}

static void results_are_whole_and_paired(void)
{
    expect_problem(START BLOCK("0", CALL_BLOCK) INPUT("0", "{}") STOP("0") END("end_turn"),
                   "a call of ours without a result");
    expect_problem(START BLOCK("0", RESULT_OF(RAN)),
                   "a result whose call does not stand before it");
    expect_problem(START RUN BLOCK("2", RESULT_OF(RAN)), "a second result of a call");
    expect_problem(START BLOCK("0", CALL_BLOCK) STOP("0") BLOCK("1", RESULT_OF(RAN))
                       TEXT_DELTA("1", "a"),
                   "a delta that does not fit its block");
    expect_problem(START BLOCK("0", RESULT_OF("{\"type\":\"code_execution_result\",\"stdout\":\"\","
                                              "\"stderr\":\"\",\"content\":[]}")),
                   "a result without return_code");
    expect_problem(START BLOCK("0", RESULT_OF("{\"type\":\"code_execution_result\",\"stdout\":\"\","
                                              "\"stderr\":\"\",\"return_code\":0}")),
                   "a result without content");
    expect_problem(START BLOCK("0", RESULT_OF("{\"type\":\"code_execution_tool_result_error\"}")),
                   "an error without error_code");
}

static const struct test tests[] = {
    TEST(good_streams_pass),
    TEST(the_order_of_events_is_held),
    TEST(events_have_their_form),
    TEST(blocks_have_their_places_and_deltas),
    TEST(results_are_whole_and_paired),
};

int main(int argc, char **argv)
{
    return run_tests("messages_checker", tests, COUNT_OF(tests), argc, argv);
}
