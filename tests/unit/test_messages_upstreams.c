/* Upstreams that leave out or add what the published form does not: the client gets the published form all the same. And
 * either form of an upstream's answer, for either form of the client's. */
#include "base/check.h"
#include "messages_bench.h"

#define TOOLS ",\"tools\":[" PYTHON_TOOL "," OWN_TOOL "]}"
#define STREAM_BODY HEAD "\"stream\":true," USER TOOLS
#define JSON_BODY HEAD USER TOOLS

/* Both streams of an upstream give the client the same. */
static void expect_same(const char *odd, const char *published)
{
    static const size_t pieces[] = {0, 1, 5};
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        BENCH_CLEANUP struct bench a = bench_new(pieces[i]), b = bench_new(0);
        bench_open(&a, STREAM_BODY);
        bench_open(&b, STREAM_BODY);
        bench_turn(&a, odd);
        bench_turn(&b, published);
        for (size_t k = 0; k < b.turn.calls_count; k++) {
            CU_ASSERT_TRUE(str_eq(a.turn.calls[k].arguments, b.turn.calls[k].arguments));
            bench_result(&a, k, "x");
            bench_result(&b, k, "x");
        }
        CU_ASSERT_EQUAL(a.turn.calls_count, b.turn.calls_count);
        expect_text(bench_finish(&a, ""), bench_finish(&b, ""));
    }
}

#define PUBLISHED START TEXT("0", "hi") RUN_1 END("tool_use")
#define RUN_1 CALL("1", "t1", "code_interpreter", "{\\\"a\\\":1}")

static void indexes_may_be_missing_or_odd(void)
{
    expect_same(
        START "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\","
              "\"text\":\"\"}}\n\n"
              "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\","
              "\"text\":\"hi\"}}\n\n"
              "data: {\"type\":\"content_block_stop\"}\n\n"
              "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":"
              "\"tool_use\",\"id\":\"t1\",\"name\":\"code_interpreter\",\"input\":{}}}\n\n"
              "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":"
              "\"input_json_delta\",\"partial_json\":\"{\\\"a\\\":1}\"}}\n\n"
              "data: {\"type\":\"content_block_stop\"}\n\n" END("tool_use"),
        START BLOCK("0", "{\"type\":\"text\",\"text\":\"\"}") "event: content_block_delta\ndata: "
                                                              "{\"type\":\"content_block_delta\","
                                                              "\"delta\":{\"type\":"
                                                              "\"text_delta\",\"text\":\"hi\"},"
                                                              "\"index\":0}\n\n" STOP("0")
                                                                  RUN_1 END("tool_use"));
    expect_same(START TEXT("7", "hi") CALL("-3", "t1", "code_interpreter", "{\\\"a\\\":1}")
                    END("tool_use"),
                PUBLISHED);
    expect_same(START TEXT("0", "hi") CALL("0", "t1", "code_interpreter", "{\\\"a\\\":1}")
                    END("tool_use"),
                PUBLISHED);
}

static void lines_may_end_in_any_way_and_names_be_missing(void)
{
    expect_same(": hello\r\n\r\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\","
                "\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m-1\",\"content\":[],"
                "\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":10,"
                "\"output_tokens\":1}}}\r\n\r\n"
                "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":"
                "\"text\",\"text\":\"\"}}\r\n\r\n: ping\r\n\r\n"
                "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"
                "\"text_delta\",\"text\":\"hi\"}}\r\n\r\n"
                "data: {\"type\":\"content_block_stop\",\"index\":0}\r\n\r\n" RUN_1 EVENT(
                    "ping", "") END("tool_use") "data: [DONE]\n\n",
                PUBLISHED);
    expect_same(
        "event: ping\ndata:\n\nevent: ping\ndata: pong\n\ndata: \n\n" START EVENT("ping", "")
            TEXT("0", "hi") EVENT("ping", "") RUN_1 EVENT("new_event", ",\"x\":1") END("tool_use"),
        PUBLISHED);
    expect_same(START "event: content_block_start\ndata: {\"index\":0,\ndata: "
                      "\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\","
                      "\"text\":\"\"}}\n\n" TEXT_DELTA("0", "hi") STOP("0") RUN_1 END("tool_use"),
                START TEXT("0", "hi") RUN_1 END("tool_use"));
}

static void stops_may_be_missing(void)
{
    expect_same(START BLOCK("0", "{\"type\":\"text\",\"text\":\"\"}") TEXT_DELTA("0", "hi")
                    CALL_START("1", "t1", "code_interpreter") INPUT("1", "{\\\"a\\\":1}")
                        END("tool_use"),
                PUBLISHED);
}

static void a_whole_input_or_text_may_come_with_the_start(void)
{
    expect_same(START BLOCK("0", "{\"type\":\"text\",\"text\":\"hi\"}") STOP("0")
                    BLOCK("1", "{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"code_interpreter\","
                               "\"input\":{\"a\":1}}") STOP("1") END("tool_use"),
                PUBLISHED);
    expect_same(START TEXT("0", "hi")
                    BLOCK("1", "{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"code_interpreter\","
                               "\"input\":\"{\\\"a\\\":1}\"}") STOP("1") END("tool_use"),
                PUBLISHED);
    /* Pieces win over what came with the start. */
    expect_same(START TEXT("0", "hi")
                    BLOCK("1", "{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"code_interpreter\","
                               "\"input\":{\"b\":2}}") INPUT("1", "{\\\"a\\\":1}") STOP("1")
                        END("tool_use"),
                PUBLISHED);
}

static void text_may_come_for_a_block_that_never_began(void)
{
    expect_same(START TEXT_DELTA("0", "hi") STOP("0") RUN_1 END("tool_use"), PUBLISHED);
}

static void message_start_may_be_missing(void)
{
    BENCH_CLEANUP struct bench b = bench_new(3);
    bench_open(&b, STREAM_BODY);
    bench_turn(&b, TEXT("0", "hi") END("end_turn"));
    expect_text(bench_finish(&b, ""),
                EVENT("message_start",
                      ",\"message\":{\"id\":\"msg_sg00000000000000000000000000000000\",\"type\":"
                      "\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],"
                      "\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":0,"
                      "\"output_tokens\":0}}") TEXT("0", "hi")
                    EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"end_turn\","
                                           "\"stop_sequence\":null},\"usage\":{\"output_tokens\":"
                                           "5}") EVENT("message_stop", ""));
}

static void members_that_clients_miss_are_added_to_what_is_there(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, STREAM_BODY);
    bench_turn(&b, "data: {\"type\":\"message_start\",\"message\":{\"x\":1.0,\"content\":[7],"
                   "\"usage\":{\"input_tokens\":3}}}\n\n"
                   "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\"}}"
                   "\n\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\","
                   "\"text\":\"a\"}}\n\ndata: {\"type\":\"message_delta\",\"delta\":{"
                   "\"stop_reason\":\"end_turn\",\"new\":[1.0]}}\n\n");
    expect_text(
        bench_finish(&b, ""),
        "event: message_start\ndata: "
        "{\"type\":\"message_start\",\"message\":{\"x\":1.0,\"content\":"
        "[],\"usage\":{\"input_tokens\":3,\"output_tokens\":0},\"id\":"
        "\"msg_sg00000000000000000000000000000000\",\"type\":\"message\",\"role\":\"assistant\","
        "\"model\":\"m\",\"stop_reason\":null,\"stop_sequence\":null}}\n\n" BLOCK(
            "0",
            "{\"type\":\"text\",\"text\":\"\"}") "event: content_block_delta\ndata: "
                                                 "{\"type\":\"content_block_delta\",\"delta\":{"
                                                 "\"type\":"
                                                 "\"text_delta\",\"text\":\"a\"},\"index\":0}"
                                                 "\n\n" STOP("0") "event: message_delta\ndata: "
                                                                  "{\"type\":\"message_delta\","
                                                                  "\"delta\":{\"stop_reason\":"
                                                                  "\"end_turn\",\"new\":[1.0],"
                                                                  "\"stop_sequence\":null},"
                                                                  "\"usage\":{\"input_tokens\":3,"
                                                                  "\"output_tokens\":0}}\n\n" EVENT(
                                                                      "message_stop", ""));
}

static void c039_interleaved_blocks_are_shown_one_after_another(void)
{
    expect_same(START CALL_START("0", "f", "get_stock") CALL_START("1", "t1", "code_interpreter")
                    INPUT("0", "{\\\"x\\\":") INPUT("1", "{\\\"a\\\":") INPUT("0", "1}")
                        INPUT("1", "1}") STOP("1") STOP("0") END("tool_use"),
                START CALL_START("0", "f", "get_stock") INPUT("0", "{\\\"x\\\":") INPUT("0", "1}")
                    STOP("0") CALL("1", "t1", "code_interpreter", "{\\\"a\\\":1}") END("tool_use"));
}

/* ---- arguments ---- */

static void expect_input(const char *pieces, const char *shown, const char *arguments)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    BUF_CLEANUP struct buf sse = {0}, wanted = {0};
    buf_printf(&sse, START CALL_START("0", "t1", "code_interpreter") "%s" STOP("0") END("tool_use"),
               pieces);
    buf_printf(&wanted, "\"caller\":{\"type\":\"direct\"}}}\n\n%s" STOP("0"), shown);
    bench_open(&b, STREAM_BODY);
    bench_turn(&b, sse.data);
    expect_part(b.out.data, wanted.data);
    CU_ASSERT_TRUE(str_is(b.turn.calls[0].arguments, arguments));
    bench_result(&b, 0, "x");
    bench_request(&b); /* good JSON in any case */
    expect_part(b.request.data, "\"name\":\"code_interpreter\",\"input\":");
}

static void b35_arguments_begin_with_their_brace_whatever_comes(void)
{
    expect_input(INPUT("0", " \\n") INPUT("0", "\\u0020 {\\\"a\\\":1}\\n "),
                 INPUT("0", "{\\\"a\\\":1}"), " \n  {\"a\":1}\n ");
    expect_input("", INPUT("0", "{}"), "{}");
    expect_input(INPUT("0", "null"), INPUT("0", "{}"), "null");
    expect_input(INPUT("0", "print(1)"), INPUT("0", "{}"), "print(1)");
    expect_input(INPUT("0", "```json\\n") INPUT("0", "{\\\"a\\\":1}") INPUT("0", "\\n```"),
                 INPUT("0", "{\\\"a\\\":1}"), "{\"a\":1}");
    expect_input(
        INPUT("0", "{\\\"a\\\":\\\"}\\\\\\\"{\\\"") INPUT("0", "}") INPUT("0", "{\\\"b\\\":1}"),
        INPUT("0", "{\\\"a\\\":\\\"}\\\\\\\"{\\\"") INPUT("0", "}"), "{\"a\":\"}\\\"{\"}{\"b\":1}");
}

static void c043_arguments_that_are_no_json_are_shown_as_far_as_they_are(void)
{
    expect_input(INPUT("0", "{\\\"a\\\":\\\"x\\n") INPUT("0", "y\\\"}"),
                 INPUT("0", "{\\\"a\\\":\\\"x") INPUT("0", "\\\"}"), "{\"a\":\"x\ny\"}");
    expect_input(INPUT("0", "{\\\"a\\\":\\\"\\u0001\\\"}"),
                 INPUT("0", "{\\\"a\\\":\\\"") INPUT("0", "\\\"}"), "{\"a\":\"\x01\"}");
    expect_input(INPUT("0", "{\\\"a\\\": print(1)}"),
                 INPUT("0", "{\\\"a\\\": ") INPUT("0", "null}"), "{\"a\": print(1)}");
    expect_input(INPUT("0", "{\\\"a\\\":[1"), INPUT("0", "{\\\"a\\\":[1") INPUT("0", "]}"),
                 "{\"a\":[1");
}

static void halves_of_a_surrogate_pair_meet_again(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, JSON_BODY);
    bench_turn(&b, START BLOCK("0", "{\"type\":\"text\",\"text\":\"\"}") TEXT_DELTA("0", "\\ud83d")
                       TEXT_DELTA("0", "\\ude00") CALL_START("1", "t1", "code_interpreter")
                           INPUT("1", "{\\\"a\\\":\\\"\\ud83d") INPUT("1", "\\ude00\\\"}")
                               END("tool_use"));
    CU_ASSERT_TRUE(str_is(b.turn.calls[0].arguments, "{\"a\":\"\xF0\x9F\x98\x80\"}"));
    bench_result(&b, 0, "x");
    expect_part(bench_finish(&b, ""), "\"text\":\"\\ud83d\\ude00\"");
}

/* ---- ids ---- */

static void calls_without_an_id_or_with_the_same_get_ids_of_their_own(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, JSON_BODY);
    bench_plain_turn(&b,
                     "{\"content\":[{\"type\":\"tool_use\",\"name\":\"code_interpreter\","
                     "\"input\":{}},{\"type\":\"tool_use\",\"id\":\"a\",\"name\":"
                     "\"code_interpreter\",\"input\":{}},{\"type\":\"tool_use\",\"id\":\"a\","
                     "\"name\":\"code_interpreter\",\"input\":{}}],\"stop_reason\":\"tool_use\"}");
    CU_ASSERT_EQUAL_FATAL(b.turn.calls_count, 3);
    CU_ASSERT_TRUE(str_starts(b.turn.calls[0].id, STR("toolu_sg")));
    CU_ASSERT_TRUE(str_is(b.turn.calls[1].id, "a"));
    CU_ASSERT_TRUE(str_starts(b.turn.calls[2].id, STR("toolu_sg")));
    for (size_t i = 0; i < 3; i++) {
        bench_result(&b, i, "x");
    }
    bench_request(&b);
    bench_plain_ids(b.request.data);
    expect_part(
        b.request.data,
        "[{\"type\":\"tool_use\",\"name\":\"code_interpreter\",\"input\":{},\"id\":"
        "\"toolu_sg00000000000000000000000000000000\"},{\"type\":\"tool_use\",\"id\":\"a\"");
}

static void a_clients_call_without_an_id_gets_one(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, STREAM_BODY);
    bench_turn(&b, START BLOCK("0", "{\"type\":\"tool_use\",\"name\":\"get_stock\",\"input\":{}}")
                       INPUT("0", "{}") STOP("0") END("tool_use"));
    expect_part(
        bench_finish(&b, ""),
        "\"content_block\":{\"type\":\"tool_use\",\"name\":\"get_stock\",\"input\":{},\"id\":"
        "\"toolu_sg00000000000000000000000000000000\"}");
}

static void a_call_without_a_name_is_nobodys(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, STREAM_BODY);
    bench_turn(&b,
               START BLOCK("0", "{\"type\":\"tool_use\",\"id\":\"x\"}") STOP("0") END("tool_use"));
    CU_ASSERT_FALSE(b.turn.has_client_calls);
    expect_part(bench_finish(&b, "Nothing."),
                TEXT("0", "Nothing.") "event: message_delta\ndata: {"
                                      "\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
                                      "\"end_turn\"");
}

/* ---- either form ---- */

#define PLAIN(content, reason)                                                         \
    "{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m-1\"," \
    "\"content\":" content ",\"stop_reason\":\"" reason                                \
    "\",\"stop_sequence\":null,\"usage\":{\"input_tokens\":10,\"output_tokens\":5}}"
#define PLAIN_TURN                                                                                 \
    PLAIN(                                                                                         \
        "[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"s\"},\n {\"type\":\"text\","  \
        "\"text\":\"hi\",\"citations\":[{\"type\":\"w\"},{\"type\":\"v\"}]},{\"type\":\"tool_"     \
        "use\","                                                                                   \
        "\"id\":\"t1\",\"name\":\"code_interpreter\",\"input\":{\"a\":1}},{\"type\":\"tool_use\"," \
        "\"id\":\"c1\",\"name\":\"get_stock\",\"input\":{ \"p\" : 1.0 }}]",                        \
        "tool_use")
#define STREAMED_TURN                                                                              \
    START BLOCK("0", "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}")               \
        DELTA("0", "{\"type\":\"thinking_delta\",\"thinking\":\"hm\"}")                            \
            DELTA("0", "{\"type\":\"signature_delta\",\"signature\":\"s\"}") STOP("0")             \
                BLOCK("1", "{\"type\":\"text\",\"text\":\"\",\"citations\":[]}")                   \
                    DELTA("1", "{\"type\":\"citations_delta\",\"citation\":{\"type\":\"w\"}}")     \
                        DELTA("1", "{\"type\":\"citations_delta\",\"citation\":{\"type\":\"v\"}}") \
                            TEXT_DELTA("1", "hi") STOP("1")                                        \
                                CALL("2", "t1", "code_interpreter", "{\\\"a\\\":1}")               \
                                    CALL("3", "c1", "get_stock", "{ \\\"p\\\" : 1.0 }")            \
                                        END("tool_use")

static cJSON *content_of(const char *body, bool is_stream, const char *turn)
{
    BENCH_CLEANUP struct bench b = bench_new(11);
    CHECKER_CLEANUP struct checker checker = {.trusts_upstream = true};
    bench_open(&b, body);
    if (is_stream) {
        bench_turn(&b, turn);
    } else {
        bench_plain_turn(&b, turn);
    }
    bench_result(&b, 0, "42");
    bench_finish(&b, "");
    const char *problem = surface_messages.wants_stream(b.exchange)
                              ? check_stream(&checker, buf_str(&b.out), false)
                              : check_message(&checker, buf_str(&b.out));
    CU_ASSERT_PTR_NULL_FATAL(problem);
    cJSON *content = cJSON_Duplicate(checker.content, true);
    cJSON *block;
    cJSON_ArrayForEach(block, content) /* the checker looks at citations, but keeps none */
    {
        cJSON_DeleteItemFromObject(block, "citations");
    }
    return content;
}

static void b45_either_form_of_the_upstream_gives_either_client_the_same(void)
{
    cJSON *contents[] = {
        content_of(STREAM_BODY, true, STREAMED_TURN), content_of(STREAM_BODY, false, PLAIN_TURN),
        content_of(JSON_BODY, true, STREAMED_TURN), content_of(JSON_BODY, false, PLAIN_TURN)};
    CU_ASSERT_EQUAL(cJSON_GetArraySize(contents[0]), 5);
    for (size_t i = 0; i < COUNT_OF(contents); i++) {
        CU_ASSERT_TRUE(cJSON_Compare(contents[0], contents[i], true));
    }
    for (size_t i = 0; i < COUNT_OF(contents); i++) {
        cJSON_Delete(contents[i]);
    }
}

static void a_plain_answer_is_streamed_as_its_blocks_would_be(void)
{
    BENCH_CLEANUP struct bench a = bench_new(0), b = bench_new(0);
    bench_open(&a, STREAM_BODY);
    bench_open(&b, STREAM_BODY);
    bench_turn(&a, STREAMED_TURN);
    bench_plain_turn(&b, PLAIN_TURN);
    bench_plain_ids(a.out.data);
    bench_plain_ids(b.out.data);
    const char *blocks_a = strstr(a.out.data, "event: content_block_start");
    const char *blocks_b = strstr(b.out.data, "event: content_block_start");
    expect_text(blocks_b, blocks_a);
    expect_part(b.out.data, "\"usage\":{\"input_tokens\":10,\"output_tokens\":5}}}\n\n");
}

static void b45_content_may_be_null_absent_or_text(void)
{
    static const struct {
        const char *answer, *content;
    } cases[] = {{"{\"content\":null,\"stop_reason\":\"end_turn\"}", "\"content\":[]"},
                 {"{\"stop_reason\":\"end_turn\"}", "\"content\":[]"},
                 {"{\"content\":\"hi\",\"stop_reason\":null}",
                  "\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]"},
                 {"{\"content\":[]}", "\"content\":[]"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        bench_open(&b, JSON_BODY);
        bench_plain_turn(&b, cases[i].answer);
        expect_part(bench_finish(&b, ""), cases[i].content);
        expect_part(b.out.data, "\"id\":\"msg_sg00000000000000000000000000000000\"");
    }
}

static void b45_an_input_that_is_text_becomes_an_object(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, JSON_BODY);
    bench_plain_turn(&b, PLAIN("[{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"get_stock\","
                               "\"input\":\"{\\\"p\\\":1.0}\"},{\"type\":\"tool_use\",\"id\":\"b\","
                               "\"name\":\"get_stock\",\"input\":\"x\"},{\"type\":\"tool_use\","
                               "\"id\":\"c\",\"name\":\"get_stock\"}]",
                               "tool_use"));
    expect_part(bench_finish(&b, ""),
                "[{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"get_stock\",\"input\":{\"p\":1.0}}"
                ",{\"type\":\"tool_use\",\"id\":\"b\",\"name\":\"get_stock\",\"input\":{}},{"
                "\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"get_stock\",\"input\":{}}]");
}

static void a_name_of_ours_in_white_space_or_behind_functions_is_ours(void)
{
    expect_same(START TEXT("0", "hi")
                    CALL("1", "t1", "functions.code_interpreter ", "{\\\"a\\\":1}") END("tool_use"),
                PUBLISHED);
    expect_same(START TEXT("0", "hi") CALL("1", "t1", "\\n code_interpreter", "{\\\"a\\\":1}")
                    END("tool_use"),
                PUBLISHED);
}

static void blocks_of_other_kinds_that_name_ours_are_not_shown(void)
{
    static const char *const blocks[] = {
        "{\"type\":\"mcp_tool_use\",\"id\":\"x\",\"name\":\"code_interpreter\",\"input\":{}}",
        "{\"type\":\"server_tool_use\",\"id\":\"x\",\"name\":\"code_interpreter\",\"input\":{}}",
        "{\"type\":\"new\",\"name\":\" functions.code_interpreter\"}",
        "{\"id\":\"x\",\"name\":\"code_interpreter\",\"input\":{}}"};
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        BENCH_CLEANUP struct bench plain = bench_new(0), b = bench_new(0);
        BUF_CLEANUP struct buf answer = {0}, stream = {0};
        buf_printf(
            &answer,
            "{\"content\":[%s,{\"type\":\"text\",\"text\":\"hi\"}],\"stop_reason\":\"end_turn\"}",
            blocks[i]);
        bench_open(&plain, JSON_BODY);
        bench_plain_turn(&plain, answer.data);
        CU_ASSERT_PTR_NULL(strstr(bench_finish(&plain, ""), "code_interpreter"));
        buf_printf(&stream,
                   START BLOCK("0", "%s") INPUT("0", "{}") STOP("0") TEXT("1", "hi")
                       END("end_turn"),
                   blocks[i]);
        bench_open(&b, STREAM_BODY);
        bench_turn(&b, stream.data);
        const char *out = bench_finish(&b, "");
        CU_ASSERT_PTR_NULL(strstr(out, "code_interpreter"));
        CU_ASSERT_PTR_NULL(strstr(out, "input_json_delta"));
        CU_ASSERT_PTR_NOT_NULL(strstr(out, "\"index\":0,\"content_block\":{\"type\":\"text\""));
    }
}

static void a_vendors_call_of_a_name_that_the_client_knows_is_shown(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, HEAD USER ",\"tools\":[" SEARCH_TOOL "]}");
    bench_plain_turn(&b,
                     "{\"content\":[{\"type\":\"server_tool_use\",\"id\":\"srvtoolu_1\",\"name\":"
                     "\"web_search\",\"input\":{}}],\"stop_reason\":\"end_turn\"}");
    CU_ASSERT_PTR_NOT_NULL(strstr(bench_finish(&b, ""), "srvtoolu_1"));
}

static const struct test tests[] = {
    TEST(indexes_may_be_missing_or_odd),
    TEST(lines_may_end_in_any_way_and_names_be_missing),
    TEST(stops_may_be_missing),
    TEST(a_whole_input_or_text_may_come_with_the_start),
    TEST(text_may_come_for_a_block_that_never_began),
    TEST(message_start_may_be_missing),
    TEST(members_that_clients_miss_are_added_to_what_is_there),
    TEST(c039_interleaved_blocks_are_shown_one_after_another),
    TEST(b35_arguments_begin_with_their_brace_whatever_comes),
    TEST(c043_arguments_that_are_no_json_are_shown_as_far_as_they_are),
    TEST(halves_of_a_surrogate_pair_meet_again),
    TEST(calls_without_an_id_or_with_the_same_get_ids_of_their_own),
    TEST(a_clients_call_without_an_id_gets_one),
    TEST(a_call_without_a_name_is_nobodys),
    TEST(a_name_of_ours_in_white_space_or_behind_functions_is_ours),
    TEST(blocks_of_other_kinds_that_name_ours_are_not_shown),
    TEST(a_vendors_call_of_a_name_that_the_client_knows_is_shown),
    TEST(b45_either_form_of_the_upstream_gives_either_client_the_same),
    TEST(a_plain_answer_is_streamed_as_its_blocks_would_be),
    TEST(b45_an_input_that_is_text_becomes_an_object),
    TEST(b45_content_may_be_null_absent_or_text),
};

int main(int argc, char **argv)
{
    return run_tests("messages_upstreams", tests, COUNT_OF(tests), argc, argv);
}
