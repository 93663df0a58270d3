/* Upstreams that leave things out, say them twice or under wrong indexes; and upstreams that fail. What the client gets of
 * any of it passes the strict reader. */
#include "responses_bench.h"

static struct checked finish(struct bench *b)
{
    bench_finish(b, "");
    return checked_read(&b->out);
}

/* ---- things left out ---- */

static void no_opening(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, TEXT("0", "msg_1", "Hel") TEXT("0", "msg_1", "lo") UP_END);
    CHECKED_CLEANUP struct checked c = finish(b);
    CU_ASSERT_STRING_EQUAL(c.text.data, "Hello");
    CU_ASSERT_STRING_EQUAL(c.items[0].id, "msg_1");
}

static void c008_deltas_of_items_that_were_never_opened_open_them(void)
{
    in_any_pieces(no_opening);
}

static void no_ids(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, EVENT("output_item.added",
                        "\"output_index\":0,\"item\":{\"type\":\"message\",\"content\":[]}")
                      EVENT("output_text.delta", "\"output_index\":0,\"delta\":\"A\"")
                          EVENT("output_item.added", "\"output_index\":1,\"item\":{\"type\":"
                                                     "\"message\",\"content\":[]}")
                              EVENT("output_text.delta", "\"output_index\":1,\"delta\":\"B\"")
                                  EVENT("output_text.delta", "\"output_index\":0,\"delta\":\"a\"")
                                      UP_END);
    CHECKED_CLEANUP struct checked c = finish(b);
    CU_ASSERT_STRING_EQUAL(c.text.data, "Aa|B");
    CU_ASSERT_EQUAL(strncmp(c.items[0].id, "msg_sg", 6), 0);
}

static void items_without_ids_are_told_apart_by_index(void)
{
    in_any_pieces(no_ids);
}

static void no_indexes(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(
        b,
        EVENT("output_item.added", "\"item\":{\"id\":\"m1\",\"type\":\"message\",\"content\":[]}")
            EVENT("output_text.delta", "\"item_id\":\"m1\",\"delta\":\"A\"")
                EVENT("output_item.added",
                      "\"item\":{\"id\":\"f1\",\"type\":\"function_call\",\"name\":\"get_"
                      "stock\",\"call_id\":\"c1\",\"arguments\":\"\"}")
                    EVENT("function_call_arguments.delta", "\"item_id\":\"f1\",\"delta\":\"{}\"")
                        EVENT("output_text.delta", "\"item_id\":\"m1\",\"delta\":\"a\"") UP_END);
    CHECKED_CLEANUP struct checked c = finish(b);
    CU_ASSERT_STRING_EQUAL(c.text.data, "Aa");
    CU_ASSERT_STRING_EQUAL(c.items[1].arguments.data, "{}");
}

static void items_without_indexes_are_told_apart_by_id(void)
{
    in_any_pieces(no_indexes);
}

static void clashing_indexes(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, UP_CREATED SAY("0", "m1", "One.") SAY("0", "m2", "Two.")
                      CALL("0", "f1", "c1", "get_stock", "{}") UP_END);
    CHECKED_CLEANUP struct checked c = finish(b);
    CU_ASSERT_STRING_EQUAL(c.text.data, "One.|Two.");
    CU_ASSERT_EQUAL(c.items_count, 3);
}

static void reused_id(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, UP_CREATED SAY("0", "m1", "One.") SAY("1", "m1", "Two.") UP_END);
    CHECKED_CLEANUP struct checked c = finish(b);
    CU_ASSERT_STRING_EQUAL(c.text.data, "One.|Two.");
}

static void c008_indexes_and_ids_that_clash_are_renumbered(void)
{
    in_any_pieces(clashing_indexes);
    in_any_pieces(reused_id);
}

static void only_done(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    /* The arguments come in `done` alone, the name in the item's end alone. */
    bench_turn(b, EVENT("output_item.added", "\"output_index\":0,\"item\":{\"id\":\"f1\",\"type\":"
                                             "\"function_call\",\"call_id\":\"c1\"}")
                      EVENT("function_call_arguments.done",
                            "\"item_id\":\"f1\",\"output_index\":0,\"arguments\":\"" CODE_42
                            "\"") EVENT("output_item.done",
                                        "\"output_index\":0,\"item\":" CALL_ITEM(
                                            "f1", "c1", "code_interpreter", CODE_42, "completed"))
                          EVENT("output_text.done", "\"item_id\":\"m1\",\"output_index\":1,"
                                                    "\"content_index\":0,\"text\":\"Hi.\"") UP_END);
    CU_ASSERT_EQUAL_FATAL(b->turn.calls_count, 1);
    bench_result(b, 0, "42");
    CHECKED_CLEANUP struct checked c = finish(b);
    CU_ASSERT_STRING_EQUAL(c.items[0].code.data, "print(40+2)");
    CU_ASSERT_STRING_EQUAL(c.text.data, "Hi.");
}

static void b45_what_comes_in_the_last_event_alone_is_understood(void)
{
    in_any_pieces(only_done);
}

static void only_completed(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, UP_CREATED EVENT("completed",
                                   "\"response\":{\"status\":\"completed\",\"output\":[" MESSAGE(
                                       "m1", "Look.") "," CALL_ITEM("f1", "c1", "code_interpreter",
                                                                    CODE_42, "completed") "]}"));
    CU_ASSERT_EQUAL_FATAL(b->turn.calls_count, 1);
    bench_result(b, 0, "42");
    /* Streamed under one id, closed under another, and once more in the end under a third. */
    bench_turn(b,
               UP_CREATED MESSAGE_OPEN("0", "msg_a") TEXT("0", "msg_b", "It is ") EVENT(
                   "output_item.done", "\"output_index\":0,\"item\":" MESSAGE("msg_c", "It is 42."))
                   EVENT("completed", "\"response\":{\"status\":\"completed\",\"output\":[" MESSAGE(
                                          "msg_d", "It is 42.") "]}"));
    CHECKED_CLEANUP struct checked c = finish(b);
    CU_ASSERT_STRING_EQUAL(c.text.data, "Look.|It is 42.");
    CU_ASSERT_EQUAL(c.items_count, 3);
}

static void b45_items_of_the_last_event_alone_are_told_and_others_not_twice(void)
{
    in_any_pieces(only_completed);
}

static void odd_frames(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, ": hello\r\n\r\ndata: {\"type\":\"response.created\",\"response\":{}}\r\n\r\n"
                  "data: {\"type\":\"keepalive\",\"sequence_number\":3}\r\n\r\n"
                  "data: {\"type\":\"response.output_text.delta\",\r\n"
                  "data: \"item_id\":\"m1\",\"output_index\":0,\"content_index\":0,\"delta\":\"a\"}"
                  "\r\n\r\n"
                  "event: response.output_text.delta\r\ndata: {\"item_id\":\"m1\",\"delta\":\"b\"}"
                  "\r\n\r\n"
                  "data: {\"type\":\"response.completed\"}\r\n\r\ndata: [DONE]\r\n\r\n");
    CHECKED_CLEANUP struct checked c = finish(b);
    CU_ASSERT_STRING_EQUAL(c.text.data, "ab");
    CU_ASSERT_STRING_EQUAL(json_str(c.final, "model"), "m");
}

static void b45_odd_frames_are_understood(void)
{
    in_any_pieces(odd_frames);
}

static void odd_shapes(struct bench *b)
{
    bench_open(b, PLAIN_BODY);
    bench_plain_turn(
        b, "{\"object\":\"response\",\"output\":[5,null,{\"type\":\"message\",\"content\":null},"
           "{\"type\":\"message\"},{\"type\":\"message\",\"content\":\"as text\"},"
           "{\"type\":\"reasoning\"},{\"type\":\"mcp_call\",\"id\":\"mcp_1\",\"output\":[1]},"
           "{\"type\":\"function_call\",\"name\":\"code_interpreter\",\"arguments\":"
           "{\"code\":\"1\"}},{\"type\":\"function_call\",\"name\":\"code_interpreter\","
           "\"arguments\":null}]}");
    CU_ASSERT_EQUAL_FATAL(b->turn.calls_count, 2);
    CU_ASSERT_TRUE(str_is(b->turn.calls[0].arguments, "{\"code\":\"1\"}"));
    CU_ASSERT_FALSE(str_eq(b->turn.calls[0].id, b->turn.calls[1].id));
    bench_result(b, 0, "1");
    bench_result(b, 1, "2");
    CU_ASSERT_PTR_NOT_NULL(strstr(bench_request(b), "{\"type\":\"mcp_call\",\"id\":\"mcp_1\","
                                                    "\"output\":[1]"));
    CU_ASSERT_PTR_NULL(strstr(b->request.data, "ci_sg")); /* no id of a function's call */
    bench_plain_turn(b, PLAIN(MESSAGE("m9", "Done.")));
    bench_finish(b, "");
    ANSWER_CLEANUP cJSON *answer = bench_answer(b);
    CU_ASSERT_EQUAL(cJSON_GetArraySize(cJSON_GetObjectItem(answer, "output")), 8);
}

static void b45_b46_every_shape_of_an_item_is_understood(void)
{
    in_any_pieces(odd_shapes);
}

static void changed_text(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, UP_CREATED MESSAGE_OPEN("0", "m1") TEXT("0", "m1", "streamed")
                      MESSAGE_CLOSE("0", "m1", "something else") UP_END);
    CHECKED_CLEANUP struct checked c = finish(b);
    CU_ASSERT_STRING_EQUAL(c.text.data, "streamed");
}

static void what_the_client_has_read_is_not_taken_back(void)
{
    in_any_pieces(changed_text);
}

/* ---- limits ---- */

static void cut_call(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, UP_CREATED SAY("0", "m1", "So.") CALL_OPEN("1", "f1", "c1", "code_interpreter")
                      PIECE("1", "f1", "{\\\"code\\\":\\\"pri") EVENT(
                          "incomplete", "\"response\":{\"status\":\"incomplete\","
                                        "\"incomplete_details\":{\"reason\":\"max_output_"
                                        "tokens\"},\"output\":[],\"usage\":" USAGE("1", "2") "}"));
    CU_ASSERT_TRUE(b->turn.length);
    CHECKED_CLEANUP struct checked c = finish(b);
    CU_ASSERT_STRING_EQUAL(c.terminal, "incomplete");
    CU_ASSERT_STRING_EQUAL(json_str(c.items[1].done, "status"), "incomplete");
    CU_ASSERT_STRING_EQUAL(json_str(c.items[1].done, "code"), "pri");
    expect_printed(cJSON_GetObjectItem(c.final, "incomplete_details"),
                   "{\"reason\":\"max_output_tokens\"}");
}

static void a_cut_answer_is_incomplete_and_its_call_too(void)
{
    in_any_pieces(cut_call);
}

static void limit_used_up(struct bench *b)
{
    bench_open(b, "{\"model\":\"m\",\"stream\":true,\"input\":\"hi\",\"max_output_tokens\":19,"
                  "\"tools\":[" CODE_TOOL "]}");
    bench_turn(b, RUN_42); /* 4 tokens */
    CU_ASSERT_TRUE(b->turn.length);
    CHECKED_CLEANUP struct checked c = finish(b);
    CU_ASSERT_STRING_EQUAL(c.terminal, "incomplete");
}

static void a_limit_that_leaves_too_little_for_a_turn_ends_the_answer(void)
{
    in_any_pieces(limit_used_up);
}

static void the_clients_limit_bounds_the_sum_of_the_turns(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b,
               "{\"model\":\"m\",\"input\":\"hi\",\"max_output_tokens\":20,\"tools\":[" CODE_TOOL
               "]}");
    bench_turn(&b, RUN_42);
    CU_ASSERT_FALSE(b.turn.length);
    bench_result(&b, 0, "42");
    CU_ASSERT_PTR_NOT_NULL(strstr(bench_request(&b), "\"max_output_tokens\":16,"));
}

static void calls_allowed(struct bench *b)
{
    struct surface_result refused = {.status = SURFACE_CALL_NOT_RUN, .model_text = STR("no")};
    bench_open(b, "{\"model\":\"m\",\"stream\":true,\"input\":\"hi\",\"max_tool_calls\":1,"
                  "\"tools\":[" CODE_TOOL "]}");
    CU_ASSERT_EQUAL(surface_responses.calls_max(b->exchange), 1);
    CU_ASSERT_PTR_NULL(strstr(bench_request(b), "max_tool_calls"));
    bench_turn(b, UP_CREATED CALL("0", "f1", "c1", "code_interpreter", CODE_42)
                      CALL("1", "f2", "c2", "code_interpreter", CODE_42) UP_END);
    CU_ASSERT_EQUAL_FATAL(b->turn.calls_count, 2);
    bench_result(b, 0, "42");
    surface_responses.call_end(b->exchange, 1, &refused, &b->out);
    bench_turn(b, UP_CREATED CALL("0", "f3", "c3", "code_interpreter", CODE_42) UP_END);
    surface_responses.call_end(b->exchange, 0, &refused, &b->out);
    bench_turn(b, UP_CREATED SAY("0", "m1", "42.") UP_END);
    CHECKED_CLEANUP struct checked c = finish(b);
    CU_ASSERT_EQUAL(c.items_count, 2); /* calls past the cap are ignored */
}

static void calls_past_max_tool_calls_are_not_shown(void)
{
    in_any_pieces(calls_allowed);
}

static void no_calls_allowed(struct bench *b)
{
    bench_open(b, "{\"model\":\"m\",\"stream\":true,\"input\":\"hi\",\"tool_choice\":\"none\","
                  "\"tools\":[" CODE_TOOL "]}");
    CU_ASSERT_TRUE(surface_responses.runs_nothing(b->exchange));
    bench_turn(b, UP_CREATED CALL("0", "f1", "c1", "code_interpreter", CODE_42) UP_END);
    CU_ASSERT_EQUAL(b->turn.calls_count, 0);
    CHECKED_CLEANUP struct checked c = finish(b);
    CU_ASSERT_EQUAL(c.items_count, 0);
}

static void with_tool_choice_none_nothing_runs_or_shows(void)
{
    in_any_pieces(no_calls_allowed);
}

/* ---- failures ---- */

static void expect_failure(struct bench *b, const char *sse, int code, const char *message)
{
    CU_ASSERT_EQUAL(bench_try_turn(b, true, sse), code);
    CU_ASSERT_STRING_EQUAL(b->err.message, message);
    if (strcmp(b->err.message, message) != 0) {
        fprintf(stderr, "%s\n", b->err.message);
    }
}

static void errors_that_upstreams_report_are_understood(void)
{
    static const struct {
        const char *sse, *message;
        int code, status;
    } cases[] = {
        {"event: error\ndata: {\"type\":\"error\",\"code\":\"429\",\"message\":\"Slow.\"}\n\n",
         "Slow.", SG_E_LIMIT, 429},
        {"data: {\"type\":\"error\",\"error\":{\"message\":\"Nested.\",\"code\":\"server_error\"}}"
         "\n\n",
         "Nested.", SG_E_UNAVAILABLE, 0},
        {"data: {\"error\":{\"message\":\"Bare.\",\"code\":400}}\n\n", "Bare.", SG_E_INVALID, 400},
        {EVENT("failed", "\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"server_error\","
                         "\"message\":\"Broken.\"}}"),
         "Broken.", SG_E_UNAVAILABLE, 0},
        {EVENT("failed", "\"response\":{\"status\":\"failed\",\"error\":null}"),
         "The upstream's answer failed", SG_E_UNAVAILABLE, 0},
        {"data: nonsense\n\n",
         "The upstream's answer cannot be understood: Invalid JSON at byte 0: a value must start "
         "here",
         SG_E_UNAVAILABLE, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        bench_open(&b, STREAM_BODY);
        CU_ASSERT_EQUAL(bench_try_turn(&b, true, cases[i].sse), cases[i].code);
        if (strncmp(cases[i].message, "The upstream's answer cannot", 28) != 0) {
            CU_ASSERT_STRING_EQUAL(b.err.message, cases[i].message);
        } else {
            CU_ASSERT_EQUAL(strncmp(b.err.message, cases[i].message, 43), 0);
        }
        CU_ASSERT_EQUAL(b.err.status, cases[i].status);
        CU_ASSERT_EQUAL(b.out.len, 0); /* it can be tried again */
    }
}

static void a_cut_stream_runs_nothing(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, STREAM_BODY);
    expect_failure(&b, UP_CREATED CALL("0", "f1", "c1", "code_interpreter", CODE_42),
                   SG_E_UNAVAILABLE, "The upstream's stream ended before its answer was whole");
    expect_failure(&b, UP_CREATED SAY("0", "m1", "x") "data: [DONE]\n\n", SG_E_UNAVAILABLE,
                   "The upstream's stream ended before its answer was whole");
}

static void broken_later(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, RUN_42);
    bench_result(b, 0, "42");
    CU_ASSERT_NOT_EQUAL(
        bench_try_turn(b, true, UP_CREATED MESSAGE_OPEN("0", "m1") TEXT("0", "m1", "It ")), SG_OK);
    struct sg_error err = {.code = SG_E_UNAVAILABLE, .message = "Gone.", .status = 424};
    (void)snprintf(err.reason, sizeof err.reason, "failed_after_run");
    surface_responses.fail(b->exchange, &err, &b->out);
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    CU_ASSERT_STRING_EQUAL(c.terminal, "failed");
    CU_ASSERT_EQUAL(c.errors, 1);
    CU_ASSERT_STRING_EQUAL(json_str(c.items[1].done, "status"), "incomplete");
    expect_printed(cJSON_GetObjectItem(c.final, "error"),
                   "{\"code\":\"failed_after_run\",\"message\":\"Gone.\"}");
    CU_ASSERT_PTR_NOT_NULL(strstr(
        b->out.data, "\"code\":\"failed_after_run\",\"message\":\"Gone.\",\"param\":null,\"error\":"
                     "{\"message\":\"Gone.\",\"type\":\"server_error\",\"param\":null,\"code\":"
                     "\"failed_after_run\"}}\n\n"));
}

static void c009_c010_a_failure_goes_on_counting_and_ends_the_stream(void)
{
    in_any_pieces(broken_later);
}

static void failed_before_anything(struct bench *b)
{
    struct sg_error err = {.code = SG_E_TIMEOUT, .message = "Late."};
    bench_open(b, STREAM_BODY);
    surface_responses.fail(b->exchange, &err, &b->out); /* keep-alives have begun the stream */
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    CU_ASSERT_STRING_EQUAL(c.terminal, "failed");
}

static void c010_a_failure_before_the_first_event_is_a_whole_stream(void)
{
    in_any_pieces(failed_before_anything);
}

static void a_failed_try_leaves_nothing_in_the_answer(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, PLAIN_BODY);
    CU_ASSERT_NOT_EQUAL(bench_try_turn(&b, true, UP_CREATED SAY("0", "m1", "Half")), SG_OK);
    bench_turn(&b, EVENT("created", "\"response\":{\"model\":\"m-2\"}") SAY("0", "m1", "Whole.")
                       UP_END);
    bench_finish(&b, "");
    ANSWER_CLEANUP cJSON *answer = bench_answer(&b);
    CU_ASSERT_EQUAL(cJSON_GetArraySize(cJSON_GetObjectItem(answer, "output")), 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(b.out.data, "Whole."));
}

static const struct test tests[] = {
    TEST(c008_deltas_of_items_that_were_never_opened_open_them),
    TEST(items_without_ids_are_told_apart_by_index),
    TEST(items_without_indexes_are_told_apart_by_id),
    TEST(c008_indexes_and_ids_that_clash_are_renumbered),
    TEST(b45_what_comes_in_the_last_event_alone_is_understood),
    TEST(b45_items_of_the_last_event_alone_are_told_and_others_not_twice),
    TEST(b45_odd_frames_are_understood),
    TEST(b45_b46_every_shape_of_an_item_is_understood),
    TEST(what_the_client_has_read_is_not_taken_back),
    TEST(a_cut_answer_is_incomplete_and_its_call_too),
    TEST(a_limit_that_leaves_too_little_for_a_turn_ends_the_answer),
    TEST(the_clients_limit_bounds_the_sum_of_the_turns),
    TEST(calls_past_max_tool_calls_are_not_shown),
    TEST(with_tool_choice_none_nothing_runs_or_shows),
    TEST(errors_that_upstreams_report_are_understood),
    TEST(a_cut_stream_runs_nothing),
    TEST(c009_c010_a_failure_goes_on_counting_and_ends_the_stream),
    TEST(c010_a_failure_before_the_first_event_is_a_whole_stream),
    TEST(a_failed_try_leaves_nothing_in_the_answer),
};

int main(int argc, char **argv)
{
    return run_tests("responses_lenient", tests, COUNT_OF(tests), argc, argv);
}
