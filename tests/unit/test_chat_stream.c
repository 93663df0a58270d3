/* The client's stream on chat, fed by streams of every kind. Each scenario is run with whole events, single bytes and odd
 * pieces, and the client's bytes must be the same; the client reads them as a strict library does. */
#include "base/check.h"
#include "chat_bench.h"

#define USAGE(in, out)                                                      \
    "data: {" BENCH_HEAD ",\"choices\":[],\"usage\":{\"prompt_tokens\":" in \
    ",\"completion_tokens\":" out ",\"total_tokens\":0}}\n\n"

/* ---- text and runs ---- */

static void plain_text(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    CU_ASSERT_TRUE(surface_chat.wants_stream(b->exchange));
    bench_turn(b, ROLE TEXT("h") TEXT("i \\ud83d\\ude00") FINISH("stop") USAGE("3", "2") DONE);
    CU_ASSERT_EQUAL(b->turn.calls_count, 0);
    CU_ASSERT_TRUE(b->turn.has_text);
    CU_ASSERT_EQUAL(b->turn.usage.output_tokens, 2);
    bench_finish(b, "unused");
    CU_ASSERT_STRING_EQUAL(b->out.data,
                           ROLE TEXT("h") TEXT("i \\ud83d\\ude00") FINISH("stop") DONE);
}

static void c001_plain_text_goes_through_byte_for_byte(void)
{
    in_any_pieces(plain_text);
}

static void run_then_text(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, ROLE RUN_42);
    CU_ASSERT_EQUAL_FATAL(b->turn.calls_count, 1);
    CU_ASSERT_EQUAL(b->turn.calls[0].offer, 0);
    bench_result(b, 0, "42");
    bench_turn(b, ROLE TEXT("It is ") TEXT("42.") FINISH("stop") DONE);
    bench_finish(b, "");
    expect_seen(b, "It is 42.", "", "stop");
    CU_ASSERT_PTR_NULL(strstr(b->out.data, "code_interpreter"));
    CU_ASSERT_PTR_NULL(strstr(b->out.data, "executed_tools"));
    CU_ASSERT_PTR_NULL(strstr(b->out.data, "up_1"));
}

static void c001_c003_a_run_is_never_shown_as_a_call(void)
{
    in_any_pieces(run_then_text);
}

static void texts_around_a_run(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, ROLE TEXT("Let me see.") RUN_42);
    bench_result(b, 0, "42");
    bench_turn(b, ROLE CALL("0", "up_2", "code_interpreter", "{}") FINISH("tool_calls") DONE);
    bench_result(b, 0, "42");
    bench_turn(
        b,
        "data: {\"id\":\"c9\",\"created\":99,\"model\":\"m-2\",\"choices\":[{\"index\":0,\"delta\":"
        "{\"role\":\"assistant\",\"content\":\"It \"},\"finish_reason\":null}]}\n\n" TEXT("is 42.")
            FINISH("stop") DONE);
    bench_finish(b, "");
    expect_seen(b, "Let me see.\n\nIt is 42.", "", "stop");
}

static void a_blank_line_parts_the_texts_of_turns(void)
{
    in_any_pieces(texts_around_a_run);
}

static void quirky_frames(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(
        b, ": hello\r\n\r\ndata: {\"choices\":[],\"prompt_filter_results\":[]}\r\n\r\n"
           "event: x\r\ndata: {\r\ndata: \"id\":\"c1\",\"created\":11,\"model\":\"m-1\",\r\n"
           "data: "
           "\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"a\",\"tool_calls\":null},"
           "\"finish_reason\":null}]}\r\n\r\n: ping\r\n\r\n"
           "data: "
           "{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"other\"}},{\"index\":0,\"delta\":"
           "{\"content\":\"b\"}}]}\r\n\r\n"
           "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"other\"}}]}\r\n\r\n"
           "data: {\"choices\":[{\"index\":0,\"delta\":null,\"finish_reason\":\"stop\"}]}\r\n\r\n"
           "data: [DONE]\r\n\r\ndata: rubbish\r\n\r\n");
    bench_finish(b, "");
    expect_seen(b, "ab", "", "stop");
    CU_ASSERT_PTR_NULL(strstr(b->out.data, "other"));
}

static void b45_odd_frames_and_other_choices_are_understood(void)
{
    in_any_pieces(quirky_frames);
}

static void without_role_or_id(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, "data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"index\":0}]}\n\n" DONE);
    bench_finish(b, "");
    SEEN_CLEANUP struct seen s = seen_read(&b->out);
    CU_ASSERT_STRING_EQUAL(s.text.data, "x");
    CU_ASSERT_EQUAL(s.roles, 1);
    CU_ASSERT_STRING_EQUAL(s.finish, "stop");
    CU_ASSERT_STRING_EQUAL(s.id.data, "chatcmpl-0123456789abcdef0123456789abcdef");
    CU_ASSERT_PTR_NOT_NULL(strstr(b->out.data, "\"model\":\"m\""));
}

static void a_missing_role_and_head_are_added(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    without_role_or_id(&b);
}

/* ---- whose call is it? ---- */

static void client_call(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, ROLE CALL("0", "call_a", "get_stock", "") PIECE("0", "{\\\"part\\\":")
                      PIECE("0", "\\\"A-7\\\"}") FINISH("tool_calls") DONE);
    CU_ASSERT_EQUAL(b->turn.calls_count, 0);
    CU_ASSERT_TRUE(b->turn.has_client_calls);
    bench_finish(b, "unused");
    expect_seen(b, "", "0:call_a:get_stock:{\"part\":;0:+\"A-7\"};", "tool_calls");
}

static void b09_a_call_of_the_clients_function_goes_to_the_client(void)
{
    in_any_pieces(client_call);
}

static void mixed_calls(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, ROLE TEXT("Both.") CALL("0", "up_1", "code_interpreter", "")
                      CALL("1", "call_a", "get_stock", "{}") PIECE("0", "{\\\"code\\\":\\\"1\\\"}")
                          CALL("2", "call_b", "get_stock", "") FINISH("tool_calls") DONE);
    CU_ASSERT_EQUAL_FATAL(b->turn.calls_count, 1);
    CU_ASSERT_TRUE(str_is(b->turn.calls[0].arguments, "{\"code\":\"1\"}"));
    CU_ASSERT_TRUE(b->turn.has_client_calls);
    bench_result(b, 0, "1");
    bench_finish(b, "unused");
    expect_seen(b, "Both.", "0:call_a:get_stock:{};1:call_b:get_stock:;", "tool_calls");
}

static void a_mixed_turn_gives_the_client_its_calls_under_indexes_from_0(void)
{
    in_any_pieces(mixed_calls);
}

static void b22_a_name_that_was_not_offered_runs_nothing(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, "{\"stream\":true," USER ",\"tools\":[{\"type\":\"web_search\"}]}");
    bench_turn(&b, ROLE RUN_42);
    CU_ASSERT_EQUAL(b.turn.calls_count, 0);
    CU_ASSERT_TRUE(b.turn.has_client_calls); /* an unknown function: the client's to answer for */
}

static void names_in_pieces(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b,
               ROLE CHUNK("{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"code_\"}}]}")
                   CHUNK("{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"interpreter\"}}]}")
                       PIECE("0", "{\\\"code\\\":") PIECE("0", "\\\"1\\\"}")
                           CHUNK("{\"tool_calls\":[{\"index\":0,\"id\":\"late\"}]}")
                               CHUNK("{\"tool_calls\":[{\"index\":1,\"id\":\"c2\",\"function\":{"
                                     "\"name\":\"get_\"}}]}")
                                   CHUNK("{\"tool_calls\":[{\"index\":1,\"id\":\"c2\",\"function\":"
                                         "{\"name\":\"stock\",\"arguments\":null}}]}")
                                       PIECE("1", "{}") FINISH("tool_calls") DONE);
    CU_ASSERT_EQUAL_FATAL(b->turn.calls_count, 1);
    CU_ASSERT_TRUE(str_is(b->turn.calls[0].id, "late"));
    CU_ASSERT_TRUE(str_is(b->turn.calls[0].arguments, "{\"code\":\"1\"}"));
    bench_result(b, 0, "1");
    bench_finish(b, "");
    expect_seen(b, "", "0:c2:get_stock:{};", "tool_calls");
}

static void names_and_ids_may_come_in_pieces_and_late(void)
{
    in_any_pieces(names_in_pieces);
}

static void name_that_grows(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, ROLE CALL("0", "a", "code_inter",
                            "{") CHUNK("{\"tool_calls\":[{\"index\":1,\"id\":\"b\",\"function\":{"
                                       "\"name\":\"code_interpreter\"}}]}")
                      CHUNK("{\"tool_calls\":[{\"index\":1,\"function\":{\"name\":\"_mine\"}}]}")
                          PIECE("1", "{}") PIECE("0", "}") FINISH("tool_calls") DONE);
    CU_ASSERT_EQUAL(b->turn.calls_count, 0);
    bench_finish(b, "");
    expect_seen(b, "", "0:b:code_interpreter_mine:{};", "tool_calls");
}

static void a_name_that_may_still_become_ours_is_held(void)
{
    in_any_pieces(name_that_grows);
}

/* ---- reasoning, history ---- */

static void reasoning(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, ROLE CHUNK("{\"reasoning_content\":\"Hm\"}")
                      CHUNK("{\"reasoning_content\":\"\\u2026 yes\",\"content\":null}")
                          CHUNK("{\"details\":[{\"a\":1}]}")
                              CHUNK("{\"details\":[{\"b\":2}],\"flag\":3}") TEXT("t") RUN_42);
    bench_result(b, 0, "42");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(bench_request(b),
               "{\"role\":\"assistant\",\"content\":\"t\",\"reasoning_content\":\"Hm\\u2026 yes\","
               "\"details\":[{\"a\":1},{\"b\":2}],\"flag\":3,\"tool_calls\":["));
    bench_turn(b, ROLE TEXT("end") FINISH("stop") DONE);
    bench_finish(b, "");
    SEEN_CLEANUP struct seen s = seen_read(&b->out);
    CU_ASSERT_STRING_EQUAL(s.reasoning.data, "Hm\xE2\x80\xA6 yes");
    CU_ASSERT_STRING_EQUAL(s.text.data, "t\n\nend");
}

static void b46_c037_reasoning_passes_down_and_goes_up_again(void)
{
    in_any_pieces(reasoning);
}

/* ---- held text ---- */

#define JSON_BODY                                                           \
    "{\"stream\":true,\"response_format\":{\"type\":\"json_object\"}," USER \
    ",\"tools\":[" CODE_TOOL "," OWN_TOOL "]}"

static void held_text(struct bench *b)
{
    bench_open(b, JSON_BODY);
    bench_turn(b, ROLE TEXT("Let me") TEXT(" see") RUN_42);
    CU_ASSERT_FALSE(b->turn.has_text);
    bench_result(b, 0, "42");
    CU_ASSERT_PTR_NOT_NULL(strstr(bench_request(b), "\"content\":\"Let me see\""));
    bench_turn(b, ROLE TEXT("{\\\"a\\\":") TEXT("42}") FINISH("stop") DONE);
    bench_finish(b, "");
    expect_seen(b, "{\"a\":42}", "", "stop");
}

static void with_a_json_format_only_the_last_turns_text_is_given(void)
{
    in_any_pieces(held_text);
}

static void held_then_client_call(struct bench *b)
{
    bench_open(b, JSON_BODY);
    bench_turn(b, TEXT("{}") CALL("0", "a", "get_stock", "{}") FINISH("tool_calls") DONE);
    bench_finish(b, "");
    expect_seen(b, "{}", "0:a:get_stock:{};", "tool_calls");
}

static void held_text_stands_beside_calls_of_the_clients(void)
{
    in_any_pieces(held_then_client_call);
}

/* ---- usage ---- */

static void usage_asked(struct bench *b)
{
    bench_open(b, "{\"stream\":true,\"stream_options\":{\"include_usage\":true}," USER
                  ",\"tools\":[" CODE_TOOL "]}");
    bench_turn(b, ROLE CALL("0", "a", "code_interpreter", "{}")
                      FINISH("tool_calls") "data: "
                                           "{\"choices\":[],\"usage\":{\"prompt_tokens\":10,"
                                           "\"completion_tokens\":5,\"total_tokens\":15,"
                                           "\"prompt_tokens_details\":{\"cached_tokens\":4,\"x\":"
                                           "null},\"cost\":0.5}}\n\n" DONE);
    bench_result(b, 0, "42");
    bench_turn(b, ROLE
               "data: {" BENCH_HEAD
               ",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}],\"usage\":{"
               "\"prompt_tokens\":1}}\n\n"
               "data: {" BENCH_HEAD
               ",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":"
               "{\"prompt_tokens\":20,\"completion_tokens\":7,\"total_tokens\":27,\"prompt_tokens_"
               "details\":"
               "{\"cached_tokens\":6},\"cost\":0.25}}\n\n" DONE);
    bench_finish(b, "");
    SEEN_CLEANUP struct seen s = seen_read(&b->out);
    CU_ASSERT_EQUAL(s.usages, s.chunks);
    CU_ASSERT_STRING_EQUAL(
        s.usage.data, "{\"prompt_tokens\":30,\"completion_tokens\":12,\"total_tokens\":42,"
                      "\"prompt_tokens_details\":{\"cached_tokens\":10,\"x\":null},\"cost\":0.25}");
    struct surface_usage used = surface_chat.usage(b->exchange);
    CU_ASSERT_EQUAL(used.input_tokens, 30);
    CU_ASSERT_EQUAL(used.output_tokens, 12);
    CU_ASSERT_EQUAL(used.total_tokens, 42);
}

static void usage_is_the_sum_and_null_on_other_chunks_when_asked(void)
{
    in_any_pieces(usage_asked);
}

static void usage_not_asked(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, ROLE TEXT("x") FINISH("stop") USAGE("1", "1") DONE);
    bench_finish(b, "");
    SEEN_CLEANUP struct seen s = seen_read(&b->out);
    CU_ASSERT_EQUAL(s.usages, 0);
}

static void usage_is_hidden_when_not_asked_and_unknown_when_not_said(void)
{
    in_any_pieces(usage_not_asked);
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, STREAM_BODY);
    bench_turn(&b, ROLE TEXT("x") FINISH("stop") DONE);
    CU_ASSERT_EQUAL(surface_chat.usage(b.exchange).input_tokens, -1);
    CU_ASSERT_EQUAL(b.turn.usage.output_tokens, -1);
}

/* ---- ends ---- */

static void finish_with_text(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, ROLE
               "data: {" BENCH_HEAD
               ",\"service_tier\":\"default\",\"choices\":[{\"index\":0,\"delta\":{\"content\":"
               "\"end\"},\"logprobs\":{\"content\":[]},\"finish_reason\":\"content_filter\"}],\"x_"
               "groq\":{\"id\":1}}\n\n" DONE);
    bench_finish(b, "");
    expect_seen(b, "end", "", "content_filter");
    CU_ASSERT_PTR_NOT_NULL(strstr(b->out.data, "\"delta\":{},\"logprobs\":null,\"finish_reason\":"
                                               "\"content_filter\"}],\"x_groq\":{\"id\":1}}"));
}

static void text_beside_the_finish_is_given_once(void)
{
    in_any_pieces(finish_with_text);
}

static void calls_in_the_last_turn(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, ROLE RUN_42);
    bench_result(b, 0, "[limit reached]");
    bench_turn(b, ROLE RUN_42);
    bench_finish(b, "I could not finish.");
    expect_seen(b, "I could not finish.", "", "stop");
}

static void calls_of_ours_in_the_last_turn_are_dropped_and_a_sentence_closes(void)
{
    in_any_pieces(calls_in_the_last_turn);
}

static void length_end(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, ROLE CALL("0", "a", "code_interpreter", "{\\\"code") FINISH("length") DONE);
    CU_ASSERT_TRUE(b->turn.length);
    bench_finish(b, "");
    expect_seen(b, "", "", "length");
}

static void an_unfinished_call_ends_with_length(void)
{
    in_any_pieces(length_end);
}

static void no_blank_line(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(
        b, ROLE TEXT("a") "data: {" BENCH_HEAD
                          ",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}");
    bench_finish(b, "");
    expect_seen(b, "a", "", "stop");
}

static void a_last_event_without_its_blank_line_is_read(void)
{
    in_any_pieces(no_blank_line);
}

static void runs_shown(struct bench *b)
{
    b->offers[0].show_runs = true;
    bench_open(b, STREAM_BODY);
    bench_turn(b, ROLE RUN_42);
    bench_result(b, 0, "42\n");
    bench_turn(b, ROLE TEXT("ok") FINISH("stop") DONE);
    bench_finish(b, "");
    SEEN_CLEANUP struct seen s = seen_read(&b->out);
    bench_plain_ids(s.runs.data);
    CU_ASSERT_EQUAL(s.runs_told, 1);
    CU_ASSERT_STRING_EQUAL(s.runs.data, "[{\"index\":0,\"type\":\"code_interpreter\",\"id\":\"ci_"
                                        "sg00000000000000000000000000000000\","
                                        "\"container_id\":\"cntr_1\",\"arguments\":\"{\\\"code\\\":"
                                        "\\\"40+2\\\"}\",\"output\":\"42\\n\"}]");
}

static void b13_b15_runs_are_shown_once_where_configured(void)
{
    in_any_pieces(runs_shown);
}

/* ---- a plain answer for a streaming client ---- */

static void plain_upstream(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_plain_turn(b, "{\"id\":\"c1\",\n\"created\":11,\"model\":\"m-1\",\"choices\":[{\"index\":"
                        "0,\"message\":{\"role\":\"assistant\","
                        "\n\"content\":\"one\",\"reasoning_content\":\"r\",\"tool_calls\":[{\"id\":"
                        "\"a\",\"type\":\"function\",\"function\":"
                        "{\"name\":\"code_interpreter\",\"arguments\":\"{}\"}}]},\"finish_reason\":"
                        "\"tool_calls\"}]}");
    CU_ASSERT_EQUAL_FATAL(b->turn.calls_count, 1);
    bench_result(b, 0, "42");
    bench_plain_turn(b, "{\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
                        "\"content\":[{\"type\":\"text\",\"text\":\"tw\"},"
                        "{\"type\":\"text\",\"text\":\"o\"}],\"tool_calls\":[{\"function\":{"
                        "\"name\":\"get_stock\",\"arguments\":{\"p\":1}}}]},"
                        "\"finish_reason\":\"stop\"}]}");
    bench_finish(b, "");
    bench_plain_ids(b->out.data);
    expect_seen(b, "one\n\ntwo", "0:call_sg00000000000000000000000000000000:get_stock:{\"p\":1};",
                "tool_calls");
    CU_ASSERT_PTR_NOT_NULL(strstr(b->out.data, "\"reasoning_content\":\"r\""));
}

static void b17_a_plain_upstream_still_gives_the_client_a_stream(void)
{
    in_any_pieces(plain_upstream);
}

/* ---- the published examples ---- */

static void expect_example(const char *file, const char *text, const char *calls,
                           const char *finish)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/chat/%s", TEST_DATA, file); /* fits */
    FILE *in = fopen(path, "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(in);
    static char content[65536];
    content[fread(content, 1, sizeof content - 1, in)] = '\0';
    fclose(in);
    static const size_t pieces[] = {0, 1, 3};
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        BENCH_CLEANUP struct bench b = bench_new(pieces[i]);
        bench_open(&b, "{\"stream\":true,\"stream_options\":{\"include_usage\":true}," USER
                       ",\"tools\":[" CODE_TOOL "," OWN_TOOL "]}");
        bench_turn(&b, content);
        bench_finish(&b, "");
        expect_seen(&b, text, calls, finish);
    }
}

static void the_examples_pass_through(void)
{
    expect_example("chat-stream-text.sse", "The sum is 650.", "", "stop");
    expect_example("chat-stream-web-search.sse",
                   "Release 9 drops the old config format "
                   "([example.org](https://example.org/news/release-9)).",
                   "", "stop");
    expect_example("chat-stream-tool-calls.sse", "",
                   "0:call_partA7:get_stock:{\"part\":;0:+\"A-7\"};1:call_partB2:get_stock:{"
                   "\"part\":\"B-2\"};",
                   "tool_calls");
}

static const struct test tests[] = {
    TEST(c001_plain_text_goes_through_byte_for_byte),
    TEST(c001_c003_a_run_is_never_shown_as_a_call),
    TEST(a_blank_line_parts_the_texts_of_turns),
    TEST(b45_odd_frames_and_other_choices_are_understood),
    TEST(a_missing_role_and_head_are_added),
    TEST(b09_a_call_of_the_clients_function_goes_to_the_client),
    TEST(a_mixed_turn_gives_the_client_its_calls_under_indexes_from_0),
    TEST(b22_a_name_that_was_not_offered_runs_nothing),
    TEST(names_and_ids_may_come_in_pieces_and_late),
    TEST(a_name_that_may_still_become_ours_is_held),
    TEST(b46_c037_reasoning_passes_down_and_goes_up_again),
    TEST(with_a_json_format_only_the_last_turns_text_is_given),
    TEST(held_text_stands_beside_calls_of_the_clients),
    TEST(usage_is_the_sum_and_null_on_other_chunks_when_asked),
    TEST(usage_is_hidden_when_not_asked_and_unknown_when_not_said),
    TEST(text_beside_the_finish_is_given_once),
    TEST(calls_of_ours_in_the_last_turn_are_dropped_and_a_sentence_closes),
    TEST(an_unfinished_call_ends_with_length),
    TEST(a_last_event_without_its_blank_line_is_read),
    TEST(b13_b15_runs_are_shown_once_where_configured),
    TEST(b17_a_plain_upstream_still_gives_the_client_a_stream),
    TEST(the_examples_pass_through),
};

int main(int argc, char **argv)
{
    return run_tests("chat_stream", tests, COUNT_OF(tests), argc, argv);
}
