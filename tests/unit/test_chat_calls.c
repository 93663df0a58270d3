/* Tool calls in streams on chat, with all that upstreams do to ids, indexes, names and arguments. As test_chat_stream:
 * in whole events, single bytes and odd pieces. */
#include "base/check.h"
#include "chat_bench.h"

/* ---- quirks of tool calls ---- */

static void expect_calls(struct bench *b, const char *sse, const char *wanted)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, sse);
    BUF_CLEANUP struct buf got = {0};
    for (size_t i = 0; i < b->turn.calls_count; i++) {
        struct surface_call call = b->turn.calls[i];
        buf_printf(&got, "%.*s=%.*s;", (int)call.id.len, call.id.data, (int)call.arguments.len,
                   call.arguments.data);
    }
    bench_plain_ids(got.data);
    CU_ASSERT_STRING_EQUAL(got.data == NULL ? "" : got.data, wanted);
    bench_finish(b, "");
}

#define ENTRY(more) "{\"type\":\"function\"," more "}"
#define CODE(arguments) \
    "\"function\":{\"name\":\"code_interpreter\",\"arguments\":\"" arguments "\"}"
#define ARGS(arguments) "\"function\":{\"arguments\":\"" arguments "\"}"

static void no_index(struct bench *b)
{
    expect_calls(b,
                 ROLE CHUNK("{\"tool_calls\":[" ENTRY("\"id\":\"a\"," CODE("")) "," ENTRY(
                     "\"id\":\"b\"," CODE("")) "]}")
                     CHUNK("{\"tool_calls\":[{" ARGS("{\\\"code\\\":") "},{" ARGS(
                         "{\\\"code\\\":\\\"2") "}]}")
                         CHUNK("{\"tool_calls\":[{" ARGS("\\\"1\\\"}") "},{" ARGS("\\\"}") "}]}")
                             FINISH("tool_calls") DONE,
                 "a={\"code\":\"1\"};b={\"code\":\"2\"};");
}

static void c040_calls_without_index_are_told_apart_by_position(void)
{
    in_any_pieces(no_index);
}

static void one_after_the_other(struct bench *b)
{
    expect_calls(b,
                 ROLE CHUNK("{\"tool_calls\":[" ENTRY("\"id\":\"a\"," CODE("")) "]}")
                     CHUNK("{\"tool_calls\":[{" ARGS("{\\\"code\\\":\\\"1\\\"}") "}]}")
                         CHUNK("{\"tool_calls\":[" ENTRY("\"id\":\"b\"," CODE("")) "]}")
                             CHUNK("{\"tool_calls\":[{" ARGS("{}") "}]}") FINISH("tool_calls") DONE,
                 "a={\"code\":\"1\"};b={};");
}

static void pieces_without_index_belong_to_the_call_that_began_last(void)
{
    in_any_pieces(one_after_the_other);
}

static void same_index(struct bench *b)
{
    expect_calls(b,
                 ROLE CALL("0", "a", "code_interpreter", "{\\\"code\\\":\\\"1\\\"}")
                     CALL("0", "b", "code_interpreter", "{\\\"co") PIECE("1", "de\\\":\\\"2\\\"}")
                         FINISH("tool_calls") DONE,
                 "a={\"code\":\"1\"};b={\"code\":\"2\"};");
}

static void c041_a_new_id_never_joins_another_call(void)
{
    in_any_pieces(same_index);
}

static void whole_calls_without_ids(struct bench *b)
{
    expect_calls(b,
                 ROLE CHUNK("{\"tool_calls\":[{" CODE("{\\\"code\\\":\\\"1\\\"}") "}]}") CHUNK(
                     "{\"tool_calls\":[{" CODE("{\\\"code\\\":\\\"2\\\"}") "},{" CODE("{}") "}]}")
                     FINISH("tool_calls") DONE,
                 "call_sg00000000000000000000000000000000={\"code\":\"1\"};"
                 "call_sg00000000000000000000000000000000={\"code\":\"2\"};"
                 "call_sg00000000000000000000000000000000={};");
}

static void missing_ids_are_minted(void)
{
    in_any_pieces(whole_calls_without_ids);
}

static void twin_ids(struct bench *b)
{
    expect_calls(b,
                 ROLE CALL("0", "x", "code_interpreter", "{\\\"code\\\":\\\"1\\\"}")
                     CALL("1", "x", "code_interpreter", "") PIECE("1", "{\\\"code\\\":\\\"2\\\"}")
                         FINISH("tool_calls") DONE,
                 "x={\"code\":\"1\"};call_sg00000000000000000000000000000000={\"code\":\"2\"};");
}

static void a_second_call_of_the_same_id_gets_one_of_ours(void)
{
    in_any_pieces(twin_ids);
}

static void said_again(struct bench *b)
{
    expect_calls(b,
                 ROLE CALL("0", "x", "code_interpreter", "{\\\"code\\\":")
                     CALL("0", "x", "code_interpreter", "1}")
                         CALL("0", "x", "code_interpreter", "{\\\"code\\\":1}") FINISH("tool_calls")
                             DONE,
                 "x={\"code\":1};");
}

static void names_and_whole_calls_may_be_repeated(void)
{
    in_any_pieces(said_again);
}

static void object_arguments(struct bench *b)
{
    expect_calls(
        b,
        ROLE CHUNK("{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":"
                   "\"code_interpreter\",\"arguments\":{\"code\":\"print(\\\"x\\\")\"}}}]}")
            FINISH("stop") DONE,
        "a={\"code\":\"print(\\\"x\\\")\"};");
    CU_ASSERT_PTR_NOT_NULL(strstr(
        bench_request(b), "\"arguments\":\"{\\\"code\\\":\\\"print(\\\\\\\"x\\\\\\\")\\\"}\""));
}

static void b45_c042_objects_for_arguments_and_finish_stop_are_understood(void)
{
    in_any_pieces(object_arguments);
}

static void interleaved(struct bench *b)
{
    expect_calls(b,
                 ROLE CALL("0", "a", "code_interpreter", "") CALL("1", "b", "code_interpreter", "")
                     PIECE("0", "{\\\"a\\\"") PIECE("1", "{\\\"b\\\"") PIECE("0", ":1}")
                         PIECE("1", ":2}") FINISH("tool_calls") DONE,
                 "a={\"a\":1};b={\"b\":2};");
}

static void c039_interleaved_pieces_find_their_calls(void)
{
    in_any_pieces(interleaved);
}

static void split_characters(struct bench *b)
{
    expect_calls(b,
                 ROLE CALL("0", "a", "code_interpreter", "{\\\"code\\\":\\\"\\ud83d")
                     PIECE("0", "\\ude00\\\"}") FINISH("tool_calls") DONE,
                 "a={\"code\":\"\xF0\x9F\x98\x80\"};");
}

static void halves_of_a_character_meet_again(void)
{
    in_any_pieces(split_characters);
}

static void broken_arguments(struct bench *b)
{
    expect_calls(b,
                 ROLE CALL("0", "a", "code_interpreter", "{\\\"code\\\": \\\"print('a\\nb')\\\"")
                     FINISH("tool_calls") DONE,
                 "a={\"code\": \"print('a\nb')\";");
    bench_result(b, 0, "[error] not JSON");
    CU_ASSERT_PTR_NOT_NULL(strstr(bench_request(b), "\"arguments\":\"{}\""));
}

static void c043_broken_arguments_go_up_as_an_empty_object(void)
{
    in_any_pieces(broken_arguments);
}

static void fenced_arguments(struct bench *b)
{
    expect_calls(
        b,
        ROLE CALL("0", "a", "code_interpreter", "```json\\n{\\\"code\\\":\\\"print(1)\\\"}\\n```")
            CALL("1", "b", "code_interpreter",
                 "{\\\"code\\\":\\\"```python\\\\nprint(2)\\\\n```\\\"}")
                CALL("2", "c", "code_interpreter", "```json\\nno object\\n```") FINISH("tool_calls")
                    DONE,
        "a={\"code\":\"print(1)\"};b={\"code\":\"```python\\nprint(2)\\n```\"};"
        "c=```json\nno object\n```;");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(bench_request(b), "\"arguments\":\"{\\\"code\\\":\\\"print(1)\\\"}\""));
}

static void c045_a_fence_around_arguments_is_taken_off_and_one_in_code_left(void)
{
    in_any_pieces(fenced_arguments);
}

static void one_call_only(struct bench *b)
{
    bench_open(b, "{\"stream\":true,\"parallel_tool_calls\":false," USER ",\"tools\":[" CODE_TOOL
                  "," OWN_TOOL "]}");
    bench_turn(b, ROLE CALL("0", "a", "code_interpreter", "{}") CALL("1", "b", "get_stock", "{}")
                      CALL("2", "c", "code_interpreter", "{}") FINISH("tool_calls") DONE);
    CU_ASSERT_EQUAL_FATAL(b->turn.calls_count, 1);
    CU_ASSERT_TRUE(str_is(b->turn.calls[0].id, "a"));
    CU_ASSERT_FALSE(b->turn.has_client_calls);
    bench_result(b, 0, "42");
    const char *body = bench_request(b);
    CU_ASSERT_PTR_NULL(strstr(body, "\"id\":\"b\""));
    CU_ASSERT_PTR_NULL(strstr(body, "\"id\":\"c\""));
    bench_turn(b, ROLE CALL("0", "d", "get_stock", "{}") CALL("1", "e", "get_stock", "{}")
                      FINISH("tool_calls") DONE);
    bench_finish(b, "");
    expect_seen(b, "", "0:d:get_stock:{};", "tool_calls");
}

static void without_parallel_calls_the_first_stands(void)
{
    in_any_pieces(one_call_only);
}

static void custom_calls(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(
        b,
        ROLE CHUNK(
            "{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"type\":\"custom\",\"custom\":{\"name\":"
            "\"patch\",\"input\":\"x\"}}]}")
            CHUNK("{\"tool_calls\":[{\"index\":0,\"custom\":{\"input\":\"y\"}}]}")
                FINISH("tool_calls") DONE);
    CU_ASSERT_EQUAL(b->turn.calls_count, 0);
    bench_finish(b, "");
    expect_seen(b, "", "0:a:patch:x;0:+y;", "tool_calls");
}

static void custom_tools_are_the_clients(void)
{
    in_any_pieces(custom_calls);
}

static void unknown_members(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, ROLE CHUNK("{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"extra_content\":{"
                             "\"sig\":\"s1\"},\"function\":"
                             "{\"name\":\"code_interpreter\",\"arguments\":\"{}\"}}]}")
                      FINISH("tool_calls") DONE);
    bench_result(b, 0, "42");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(bench_request(b), "\"arguments\":\"{}\"},\"extra_content\":{\"sig\":\"s1\"}}]"));
    bench_turn(b, ROLE CHUNK("{\"tool_calls\":[{\"index\":0,\"id\":\"b\",\"extra_content\":{"
                             "\"sig\":\"s2\"},\"function\":"
                             "{\"name\":\"get_stock\",\"arguments\":\"{}\"}}]}")
                      FINISH("tool_calls") DONE);
    bench_finish(b, "");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(b->out.data, "\"arguments\":\"{}\"},\"extra_content\":{\"sig\":\"s2\"}}]"));
}

static void members_of_calls_that_we_do_not_know_are_kept(void)
{
    in_any_pieces(unknown_members);
}

/* ---- names that are ours but for what stands around them ---- */

static void prefixed_name(struct bench *b)
{
    expect_calls(b,
                 ROLE CALL("0", "a", "functions.code_interpreter", "{\\\"code\\\":\\\"1\\\"}")
                     CALL("1", "b", " code_interpreter\\n", "{}") FINISH("tool_calls") DONE,
                 "a={\"code\":\"1\"};b={};");
    CU_ASSERT_PTR_NULL(strstr(b->out.data, "interpreter"));
}

static void a_name_of_ours_in_white_space_or_behind_functions_is_ours(void)
{
    in_any_pieces(prefixed_name);
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, "{\"model\":\"m\"," USER ",\"tools\":[" CODE_TOOL "]}");
    bench_plain_turn(&b, "{\"choices\":[{\"message\":{\"tool_calls\":[{\"id\":\"a\",\"function\":"
                         "{\"name\":\"functions.code_interpreter \",\"arguments\":\"{}\"}}]},"
                         "\"finish_reason\":\"tool_calls\"}]}");
    CU_ASSERT_EQUAL(b.turn.calls_count, 1);
    CU_ASSERT_FALSE(b.turn.has_client_calls);
}

static void a_call_whose_name_can_still_become_ours_waits(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    static const char *const starts[] = {"fun", "functions.", " ", "functions.code_", " code_i"};
    bench_open(&b, STREAM_BODY);
    for (size_t i = 0; i < COUNT_OF(starts); i++) { /* none of them ever ends */
        BUF_CLEANUP struct buf piece = {0};
        surface_chat.turn_begin(b.exchange, true);
        buf_printf(&piece, CALL("0", "a", "%s", "{"), starts[i]);
        CU_ASSERT_EQUAL(surface_chat.turn_feed(b.exchange, buf_str(&piece), &b.out, &b.err), SG_OK);
        CU_ASSERT_PTR_NULL(strstr(b.out.data, "tool_calls"));
    }
    bench_turn(&b, ROLE CALL("0", "a", "functions.code_", "{}") FINISH("tool_calls") DONE);
    CU_ASSERT_FALSE(b.turn.has_client_calls);
    bench_finish(&b, "");
    CU_ASSERT_PTR_NULL(strstr(b.out.data, "code_"));
}

static void a_clients_function_is_passed_on_live_though_ours_could_begin_so(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, "{\"stream\":true," USER ",\"tools\":[" CODE_TOOL ",{\"type\":\"function\","
                   "\"function\":{\"name\":\"f\"}}]}");
    surface_chat.turn_begin(b.exchange, true);
    CU_ASSERT_EQUAL(
        surface_chat.turn_feed(b.exchange, STR(CALL("0", "a", "f", "{")), &b.out, &b.err), SG_OK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b.out.data);
    CU_ASSERT_PTR_NOT_NULL(strstr(b.out.data, "\"name\":\"f\""));
}

static void a_function_of_the_clients_wins_over_a_name_that_is_nearly_ours(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, "{\"stream\":true," USER ",\"tools\":[" CODE_TOOL ",{\"type\":\"function\","
                   "\"function\":{\"name\":\"functions.code_interpreter\"}}]}");
    bench_turn(&b,
               ROLE CALL("0", "a", "functions.code_interpreter", "{}") FINISH("tool_calls") DONE);
    CU_ASSERT_EQUAL(b.turn.calls_count, 0);
    CU_ASSERT_TRUE(b.turn.has_client_calls);
}

static void a_call_of_the_old_kind_that_is_dropped_leaves_no_reason_behind(void)
{
    static const char *const bodies[] = {STREAM_BODY,
                                         "{\"model\":\"m\"," USER ",\"tools\":[" CODE_TOOL "]}"};
    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        bench_open(&b, bodies[i]);
        bench_turn(&b, ROLE CHUNK("{\"function_call\":{\"name\":\"code_interpreter\","
                                  "\"arguments\":\"{}\"}}") FINISH("function_call") DONE);
        bench_finish(&b, "");
        CU_ASSERT_PTR_NULL(strstr(b.out.data, "function_call"));
        CU_ASSERT_PTR_NOT_NULL(strstr(b.out.data, "\"finish_reason\":\"stop\""));
    }
}

static const struct test tests[] = {
    TEST(c040_calls_without_index_are_told_apart_by_position),
    TEST(pieces_without_index_belong_to_the_call_that_began_last),
    TEST(c041_a_new_id_never_joins_another_call),
    TEST(missing_ids_are_minted),
    TEST(a_second_call_of_the_same_id_gets_one_of_ours),
    TEST(names_and_whole_calls_may_be_repeated),
    TEST(b45_c042_objects_for_arguments_and_finish_stop_are_understood),
    TEST(c039_interleaved_pieces_find_their_calls),
    TEST(halves_of_a_character_meet_again),
    TEST(c043_broken_arguments_go_up_as_an_empty_object),
    TEST(c045_a_fence_around_arguments_is_taken_off_and_one_in_code_left),
    TEST(without_parallel_calls_the_first_stands),
    TEST(custom_tools_are_the_clients),
    TEST(members_of_calls_that_we_do_not_know_are_kept),
    TEST(a_name_of_ours_in_white_space_or_behind_functions_is_ours),
    TEST(a_call_whose_name_can_still_become_ours_waits),
    TEST(a_clients_function_is_passed_on_live_though_ours_could_begin_so),
    TEST(a_function_of_the_clients_wins_over_a_name_that_is_nearly_ours),
    TEST(a_call_of_the_old_kind_that_is_dropped_leaves_no_reason_behind),
};

int main(int argc, char **argv)
{
    return run_tests("chat_calls", tests, COUNT_OF(tests), argc, argv);
}
