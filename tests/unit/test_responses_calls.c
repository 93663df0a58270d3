/* Calls in the client's stream on responses: the client's own, those beside runs of ours, those that will not be run; and
 * text that waits until it is known whether its turn calls something. In any pieces, through the strict reader. */
#include "responses_bench.h"

/* ---- the client's calls ---- */

static void clients_call(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b,
               UP_CREATED SAY("0", "msg_1", "I ask.") CALL_OPEN("1", "fc_1", "call_1", "get_stock")
                   PIECE("1", "fc_1", "{\\\"a\\\"") PIECE("1", "fc_1", ":1}")
                       CALL_CLOSE("1", "fc_1", "call_1", "get_stock", "{\\\"a\\\":1}") UP_END);
    CU_ASSERT_EQUAL(b->turn.calls_count, 0);
    CU_ASSERT_TRUE(b->turn.has_client_calls);
    bench_finish(b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    expect_printed(c.items[1].done,
                   CALL_ITEM("fc_1", "call_1", "get_stock", "{\\\"a\\\":1}", "completed"));
    CU_ASSERT_PTR_NOT_NULL(strstr(b->out.data, "\"delta\":\"{\\\"a\\\"\""));
}

static void b09_a_call_of_the_clients_function_is_passed_on_live(void)
{
    in_any_pieces(clients_call);
}

static void mixed_turn(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, UP_CREATED CALL("0", "fc_1", "call_1", "code_interpreter", CODE_42) CALL(
                      "1", "fc_2", "call_2", "get_stock", "{}") SAY("2", "msg_1", "Both.") UP_END);
    CU_ASSERT_EQUAL_FATAL(b->turn.calls_count, 1);
    CU_ASSERT_TRUE(b->turn.has_client_calls);
    CU_ASSERT_PTR_NULL(strstr(b->out.data, "get_stock\",\"arguments\"")); /* held */
    bench_result(b, 0, "42");
    bench_finish(b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    CU_ASSERT_EQUAL(c.items_count, 3);
    CU_ASSERT_STRING_EQUAL(c.items[0].type, "code_interpreter_call");
    CU_ASSERT_STRING_EQUAL(c.items[1].type, "message");
    CU_ASSERT_STRING_EQUAL(c.items[2].type, "function_call");
    CU_ASSERT_STRING_EQUAL(json_str(c.items[2].done, "call_id"), "call_2");
    CU_ASSERT_STRING_EQUAL(c.terminal, "completed");
}

static void a_clients_call_behind_a_run_waits_until_it_has_run(void)
{
    in_any_pieces(mixed_turn);
}

static void parallel_off(struct bench *b)
{
    bench_open(b, "{\"model\":\"m\",\"stream\":true,\"input\":\"hi\",\"parallel_tool_calls\":false,"
                  "\"tools\":[" CODE_TOOL "," OWN_TOOL "]}");
    bench_turn(b, UP_CREATED CALL("0", "fc_1", "call_1", "code_interpreter", CODE_42)
                      CALL("1", "fc_2", "call_2", "get_stock", "{}")
                          CALL("2", "fc_3", "call_3", "code_interpreter", CODE_42) UP_END);
    CU_ASSERT_EQUAL_FATAL(b->turn.calls_count, 1);
    CU_ASSERT_FALSE(b->turn.has_client_calls);
    bench_result(b, 0, "42");
    CU_ASSERT_PTR_NULL(strstr(bench_request(b), "call_2"));
    bench_turn(b, UP_CREATED SAY("0", "msg_1", "42.") UP_END);
    bench_finish(b, "");
    expect_stream(b, "42.", "completed", 2);
}

static void without_parallel_calls_the_first_of_a_turn_stands(void)
{
    in_any_pieces(parallel_off);
}

static void last_turn(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, RUN_42);
    bench_result(b, 0, "42");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(bench_request_with(b, (struct surface_turn_options){.stream = true, .last = true}),
               "\"tool_choice\":\"none\""));
    bench_turn(b, RUN_42);
    CU_ASSERT_EQUAL(b->turn.calls_count, 1);
    CU_ASSERT_FALSE(b->turn.has_text);
    bench_finish(b, "No answer.");
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    CU_ASSERT_EQUAL(c.items_count, 2); /* what will not be run is not shown */
    CU_ASSERT_STRING_EQUAL(c.text.data, "No answer.");
    CU_ASSERT_EQUAL(strncmp(c.items[1].id, "msg_sg", 6), 0);
}

static void a_call_in_the_last_turn_is_not_shown_and_a_sentence_says_why(void)
{
    in_any_pieces(last_turn);
}

static void invisible(struct bench *b)
{
    b->offers[2] = (struct surface_offer){.name = STR("lookup"), .description = STR("Looks.")};
    b->offers_count = 3;
    bench_open(b, STREAM_BODY);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench_request(b), "\"name\":\"lookup\""));
    bench_turn(b, UP_CREATED CALL("0", "fc_1", "call_1", "lookup", "{}") UP_END);
    CU_ASSERT_EQUAL_FATAL(b->turn.calls_count, 1);
    CU_ASSERT_EQUAL(b->turn.calls[0].offer, 2);
    bench_result(b, 0, "found");
    CU_ASSERT_PTR_NOT_NULL(strstr(bench_request(b), "\"output\":\"found\""));
    bench_turn(b, UP_CREATED SAY("0", "msg_1", "Found.") UP_END);
    bench_finish(b, "");
    expect_stream(b, "Found.", "completed", 1);
}

static void a_tool_without_a_native_shape_runs_unseen(void)
{
    in_any_pieces(invisible);
}

/* ---- JSON formats ---- */

#define JSON_BODY                                                                       \
    "{\"model\":\"m\",\"stream\":true,\"input\":\"hi\",\"text\":{\"format\":{\"type\":" \
    "\"json_object\"}},\"tools\":[" CODE_TOOL "," OWN_TOOL "]}"

static void json_format(struct bench *b)
{
    bench_open(b, JSON_BODY);
    bench_turn(b, UP_CREATED SAY("0", "msg_1", "First I compute.")
                      CALL("1", "fc_1", "call_1", "code_interpreter", CODE_42) UP_END);
    CU_ASSERT_FALSE(b->turn.has_text);
    CU_ASSERT_PTR_NULL(strstr(b->out.data, "First"));
    bench_result(b, 0, "42");
    CU_ASSERT_PTR_NOT_NULL(strstr(bench_request(b), "First I compute."));
    bench_turn(b, UP_CREATED SAY("0", "msg_2", "{}") UP_END);
    CU_ASSERT_TRUE(b->turn.has_text);
    bench_finish(b, "");
    expect_stream(b, "{}", "completed", 2);
}

static void with_a_json_format_text_beside_a_run_is_left_out(void)
{
    in_any_pieces(json_format);
}

static void json_format_and_the_clients_call(struct bench *b)
{
    bench_open(b, JSON_BODY);
    bench_turn(b, UP_CREATED SAY("0", "msg_1", "{}") CALL("1", "fc_1", "call_1", "get_stock", "{}")
                      UP_END);
    bench_finish(b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    CU_ASSERT_STRING_EQUAL(c.items[0].type, "message");
    CU_ASSERT_STRING_EQUAL(c.items[1].type, "function_call");
}

static void held_text_still_stands_before_the_clients_call(void)
{
    in_any_pieces(json_format_and_the_clients_call);
}

#define CUSTOM_ITEM(id, name, input)                                                         \
    "{\"id\":\"" id "\",\"type\":\"custom_tool_call\",\"status\":\"completed\",\"call_id\":" \
    "\"call_1\",\"name\":\"" name "\",\"input\":\"" input "\"}"

static void custom_call(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b,
               UP_CREATED EVENT("output_item.added", "\"output_index\":0,\"item\":" CUSTOM_ITEM(
                                                         "ctc_1", "code_interpreter", ""))
                   EVENT("custom_tool_call_input.delta",
                         "\"item_id\":\"ctc_1\",\"output_index\":0,\"delta\":\"" CODE_42 "\"")
                       EVENT("output_item.done", "\"output_index\":0,\"item\":" CUSTOM_ITEM(
                                                     "ctc_1", "code_interpreter", CODE_42)) UP_END);
    CU_ASSERT_EQUAL_FATAL(b->turn.calls_count, 1);
    CU_ASSERT_FALSE(b->turn.has_client_calls);
    CU_ASSERT_TRUE(str_is(b->turn.calls[0].arguments, "{\"code\":\"print(40+2)\"}"));
    bench_result(b, 0, "42");
    const char *up = bench_request(b);
    CU_ASSERT_PTR_NOT_NULL(strstr(up, "\"type\":\"function_call\""));
    CU_ASSERT_PTR_NULL(strstr(up, "custom_tool_call"));
    CU_ASSERT_PTR_NULL(strstr(up, "\"input\":\"{"));
    bench_turn(b, UP_CREATED SAY("0", "msg_1", "42.") UP_END);
    bench_finish(b, "");
    expect_stream(b, "42.", "completed", 2);
    CU_ASSERT_PTR_NULL(strstr(b->out.data, "\"name\":\"code_interpreter\""));
}

static void a_custom_call_of_our_function_is_a_call_of_ours(void)
{
    in_any_pieces(custom_call);
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, PLAIN_BODY);
    bench_plain_turn(&b, PLAIN(CUSTOM_ITEM("ctc_1", "code_interpreter", CODE_42)));
    CU_ASSERT_EQUAL(b.turn.calls_count, 1);
    CU_ASSERT_FALSE(b.turn.has_client_calls);
}

static void a_custom_call_that_gets_our_name_late_does_not_show_it(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, STREAM_BODY);
    bench_turn(&b, UP_CREATED EVENT("output_item.added", "\"output_index\":0,\"item\":" CUSTOM_ITEM(
                                                             "ctc_1", "grammar", ""))
                       EVENT("output_item.done", "\"output_index\":0,\"item\":" CUSTOM_ITEM(
                                                     "ctc_1", "code_interpreter", "x")) UP_END);
    bench_finish(&b, "");
    CU_ASSERT_PTR_NULL(strstr(b.out.data, "\"name\":\"code_interpreter\""));
}

static void an_item_of_another_kind_that_names_ours_is_not_shown(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, PLAIN_BODY);
    bench_plain_turn(
        &b, PLAIN("{\"id\":\"x\",\"type\":\"tool_call\",\"name\":\"code_interpreter\"}," MESSAGE(
                "m", "hi")));
    bench_finish(&b, "");
    CU_ASSERT_PTR_NULL(strstr(b.out.data, "\"name\":\"code_interpreter\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(b.out.data, "\"text\":\"hi\""));
}

static void nearly_ours(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, UP_CREATED CALL("0", "fc_1", "call_1", " functions.code_interpreter", CODE_42)
                      CALL("1", "fc_2", "call_2", "code_interpreter\\t", CODE_42) UP_END);
    CU_ASSERT_EQUAL(b->turn.calls_count, 2);
    CU_ASSERT_FALSE(b->turn.has_client_calls);
    CU_ASSERT_PTR_NULL(strstr(b->out.data, "functions."));
}

static void a_name_of_ours_in_white_space_or_behind_functions_is_ours(void)
{
    in_any_pieces(nearly_ours);
}

static const struct test tests[] = {
    TEST(b09_a_call_of_the_clients_function_is_passed_on_live),
    TEST(a_clients_call_behind_a_run_waits_until_it_has_run),
    TEST(without_parallel_calls_the_first_of_a_turn_stands),
    TEST(a_call_in_the_last_turn_is_not_shown_and_a_sentence_says_why),
    TEST(a_tool_without_a_native_shape_runs_unseen),
    TEST(with_a_json_format_text_beside_a_run_is_left_out),
    TEST(held_text_still_stands_before_the_clients_call),
    TEST(a_custom_call_of_our_function_is_a_call_of_ours),
    TEST(a_custom_call_that_gets_our_name_late_does_not_show_it),
    TEST(an_item_of_another_kind_that_names_ours_is_not_shown),
    TEST(a_name_of_ours_in_white_space_or_behind_functions_is_ours),
};

int main(int argc, char **argv)
{
    return run_tests("responses_calls", tests, COUNT_OF(tests), argc, argv);
}
