/* The hosted search on chat: what clients ask of it reaches the tool, and where the answer names pages that were found
 * stands in its annotations: streamed or not, whatever the upstream does. */
#include "base/check.h"
#include "chat_bench.h"

#define PLAIN(more) "{\"model\":\"m\"," USER "," more "}"
#define STREAM(more) "{\"model\":\"m\",\"stream\":true," USER "," more "}"
#define SEARCH_TOOLS "\"tools\":[{\"type\":\"web_search\"}," CODE_TOOL "]"
#define SEARCH_CALL(id) \
    CALL("0", id, "web_search", "{\\\"query\\\":\\\"x\\\"}") FINISH("tool_calls") DONE
#define ANSWER(message, reason)                                                                    \
    "{\"id\":\"c1\",\"object\":\"chat.completion\",\"created\":11,\"model\":\"m-1\",\"choices\":[" \
    "{\"index\":0,\"message\":" message ",\"logprobs\":null,\"finish_reason\":\"" reason "\"}]}"
#define SEARCH_JSON                                                                     \
    ANSWER("{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"up_1\"," \
           "\"type\":\"function\",\"function\":{\"name\":\"web_search\",\"arguments\":" \
           "\"{\\\"query\\\":\\\"x\\\"}\"}}]}",                                         \
           "tool_calls")
#define CITES(from, to, title, url)                                                           \
    "{\"type\":\"url_citation\",\"url_citation\":{\"start_index\":" from ",\"end_index\":" to \
    ",\"title\":\"" title "\",\"url\":\"" url "\"}}"

/* Hits "A" at a.test, "B" at b.test … from that letter on, as many as wanted. */
static void found(struct bench *b, size_t call, char first, size_t count)
{
    struct surface_output outputs[4];
    char hits[4][128];
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(hits[i], sizeof hits[i],
                       "{\"title\":\"%c\",\"url\":\"https://%c.test/x\",\"snippet\":\"s\"}",
                       first + (int)i, first + (int)i + 'a' - 'A');
        outputs[i] = (struct surface_output){SG_OUT_HIT, str_of(hits[i])};
    }
    bench_result_of(b, call,
                    (struct surface_result){.status = SURFACE_CALL_COMPLETED,
                                            .model_text = STR("found"),
                                            .outputs = outputs,
                                            .outputs_count = count});
}

/* ---- options ---- */

static void what_the_client_asks_comes_with_the_call_of_that_tool_alone(void)
{
#define PLACE "\"country\":\"NL\",\"city\":\"Utrecht\""
    static const struct {
        const char *asked, *written;
    } rows[] = {
        {SEARCH_TOOLS, ""},
        {"\"tools\":[" CODE_TOOL ",{\"type\":\"web_search_preview\",\"search_context_size\":"
         "\"low\",\"user_location\":{\"type\":\"approximate\"," PLACE "}}]",
         "{" PLACE ",\"context_size\":\"low\"}"},
        {"\"tools\":[" CODE_TOOL ",{\"type\":\"browser_search\",\"filters\":{\"allowed_domains\":"
         "[\"a.test\"],\"blocked_domains\":[\"b.test\"]},\"max_uses\":2}]",
         "{\"max_uses\":2,\"allowed_domains\":[\"a.test\"],\"blocked_domains\":[\"b.test\"]}"},
        {"\"tools\":[" CODE_TOOL ",{\"type\":\"web_search_20250305\",\"blocked_domains\":"
         "[\"b.test\"],\"allowed_domains\":[\"c.test\"],\"filters\":{\"blocked_domains\":null,"
         "\"allowed_domains\":"
         "[\"a.test\"]}}]",
         "{\"allowed_domains\":[\"a.test\"],\"blocked_domains\":[\"b.test\"]}"},
        {"\"tools\":[" CODE_TOOL ",{\"type\":\"web_search\",\"filters\":null,\"other\":[1]}]", ""},
        {"\"tools\":[" CODE_TOOL "],\"web_search_options\":{}", ""},
        {"\"tools\":[" CODE_TOOL "],\"web_search_options\":{\"search_context_size\":\"high\","
         "\"user_location\":{\"type\":\"approximate\",\"approximate\":{" PLACE "}}}",
         "{" PLACE ",\"context_size\":\"high\"}"},
        {SEARCH_TOOLS ",\"web_search_options\":{\"search_context_size\":\"high\"}",
         "{\"context_size\":\"high\"}"},
        {"\"tools\":[" CODE_TOOL ",{\"type\":\"web_search\",\"search_context_size\":\"low\"}],"
         "\"web_search_options\":{\"search_context_size\":\"high\"}",
         "{\"context_size\":\"low\"}"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        BUF_CLEANUP struct buf body = {0};
        buf_printf(&body, PLAIN("%s"), rows[i].asked);
        bench_open(&b, body.data);
        bench_turn(&b, ROLE CALL("0", "up_1", "code_interpreter", "{}") SEARCH_CALL("up_2"));
        CU_ASSERT_EQUAL_FATAL(b.turn.calls_count, 2);
        CU_ASSERT_EQUAL(b.turn.calls[0].options.len, 0);
        CU_ASSERT_TRUE(str_is(b.turn.calls[1].options, rows[i].written));
    }
}

static void what_cannot_be_heeded_is_refused_with_its_place(void)
{
    static const struct {
        const char *asked, *param, *message;
    } rows[] = {
        {"\"tools\":[{\"type\":\"web_search\",\"filters\":[]}]", "tools[0].filters",
         "tools[0].filters must be an object"},
        {"\"tools\":[{\"type\":\"web_search\",\"filters\":{\"allowed_domains\":\"a.test\"}}]",
         "tools[0].filters.allowed_domains",
         "tools[0].filters.allowed_domains must be an array of domains"},
        {"\"tools\":[{\"type\":\"web_search\",\"user_location\":{\"country\":1}}]",
         "tools[0].user_location.country", "tools[0].user_location.country must be a string"},
        {"\"web_search_options\":{\"user_location\":{\"approximate\":{\"country\":1}}}",
         "web_search_options.user_location.approximate.country",
         "web_search_options.user_location.approximate.country must be a string"},
        {"\"web_search_options\":{\"search_context_size\":\"huge\"}",
         "web_search_options.search_context_size",
         "web_search_options.search_context_size must be \"low\", \"medium\" or \"high\""},
        {"\"web_search_options\":{\"filters\":{},\"filters\":{}}", "web_search_options",
         "duplicate key 'filters' in web_search_options"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        BUF_CLEANUP struct buf body = {0};
        buf_printf(&body, PLAIN("%s"), rows[i].asked);
        CU_ASSERT_EQUAL(bench_try_open(&b, body.data), SG_E_INVALID);
        CU_ASSERT_STRING_EQUAL(b.err.param, rows[i].param);
        CU_ASSERT_STRING_EQUAL(b.err.message, rows[i].message);
    }
}

static void a_search_that_nobody_here_answers_is_not_read(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    b.offers_count = 1;
    CU_ASSERT_TRUE(bench_looks_for(&b,
                                   "{\"web_search_options\":{\"search_context_size\":7},\"tools\":["
                                   "{\"type\":\"web_search\",\"filters\":7}," CODE_TOOL "]}"));
}

/* ---- citations ---- */

static void streamed_answer(struct bench *b)
{
    bench_open(b, STREAM(SEARCH_TOOLS));
    bench_turn(b, ROLE CALL("0", "up_1", "web_", "")
                      CHUNK("{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"search\"}}]}")
                          PIECE("0", "{\\\"query\\\":") PIECE("0", "\\\"Lyon weather ")
                              PIECE("0", "today\\\"") PIECE("0", "}") FINISH("tool_calls") DONE);
    CU_ASSERT_EQUAL_FATAL(b->turn.calls_count, 1);
    CU_ASSERT_TRUE(str_is(b->turn.calls[0].arguments, "{\"query\":\"Lyon weather today\"}"));
    found(b, 0, 'A', 1);
    bench_turn(b, ROLE TEXT("Sunny ([a") TEXT(".test](https://a.te") TEXT("st/x)), [1].")
                      FINISH("stop") DONE);
    bench_finish(b, "");
    expect_seen(b, "Sunny ([a.test](https://a.test/x)), [1].", "", "stop");
    expect_part(b->out.data,
                "\"delta\":{\"annotations\":[" CITES("6", "34", "A", "https://a.test/x") "," CITES(
                    "36", "39", "A",
                    "https://a.test/x") "]},\"logprobs\":null,"
                                        "\"finish_reason\":null}]}\n\n" FINISH("stop") DONE);
    expect_no_part(b->out.data, "web_");
}

static void c003_a_stream_cites_in_one_chunk_before_its_finish(void)
{
    in_any_pieces(streamed_answer);
}

/* Start and end of each citation, in the answer's one list of them. */
static void expect_places(struct bench *b, const char *wanted)
{
    BUF_CLEANUP struct buf got = {0};
    const cJSON *entry;
    cJSON *answer = cJSON_Parse(b->out.data);
    const cJSON *choice = cJSON_GetArrayItem(cJSON_GetObjectItem(answer, "choices"), 0);
    const cJSON *message = cJSON_GetObjectItem(choice, "message");
    buf_puts(&got, "");
    cJSON_ArrayForEach(entry, cJSON_GetObjectItem(message, "annotations"))
    {
        const cJSON *inside = cJSON_GetObjectItem(entry, "url_citation");
        buf_printf(&got, "%s %d %d;", cJSON_GetObjectItem(inside, "title")->valuestring,
                   cJSON_GetObjectItem(inside, "start_index")->valueint,
                   cJSON_GetObjectItem(inside, "end_index")->valueint);
    }
    CU_ASSERT_STRING_EQUAL(got.data, wanted);
    cJSON_Delete(answer);
}

static void c112_places_count_characters_not_bytes(void)
{
    static const char *const texts[] = {
        "\xF0\x9F\x8C\xA6 \xE6\x9D\xB1\xE4\xBA\xAC\xE3\x81\xAF\xE6\x99\xB4\xE3\x82\x8C [1] ok",
        "\\ud83c\\udf26 \\u6771\\u4eac\\u306f\\u6674\\u308c [1] ok"};
    for (size_t i = 0; i < 2 * COUNT_OF(texts); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        BUF_CLEANUP struct buf turn = {0};
        const char *text = texts[i / 2];
        bench_open(&b, PLAIN(SEARCH_TOOLS));
        bench_plain_turn(&b, SEARCH_JSON);
        found(&b, 0, 'A', 1);
        if (i % 2 == 0) {
            buf_printf(&turn, ANSWER("{\"role\":\"assistant\",\"content\":\"%s\"}", "stop"), text);
            bench_plain_turn(&b, turn.data);
        } else {
            buf_printf(&turn, ROLE TEXT("%s") FINISH("stop") DONE, text);
            bench_turn(&b, turn.data);
        }
        bench_finish(&b, "");
        expect_places(&b, "A 8 11;");
    }
}

/* A turn's message in both forms. */
static void turn_give(struct bench *b, bool streams, const char *text, bool searches)
{
    BUF_CLEANUP struct buf turn = {0};
    if (streams) {
        buf_printf(&turn, ROLE TEXT("%s") "%s", text,
                   searches ? SEARCH_CALL("up_1") : FINISH("stop") DONE);
        bench_turn(b, turn.data);
        return;
    }
    buf_printf(&turn, ANSWER("{\"role\":\"assistant\",\"content\":\"%s\"%s}", "stop"), text,
               searches ? ",\"tool_calls\":[{\"id\":\"up_1\",\"type\":\"function\",\"function\":{"
                          "\"name\":\"web_search\",\"arguments\":\"{}\"}}]"
                        : "");
    bench_plain_turn(b, turn.data);
}

static void places_are_those_in_the_whole_content_and_numbers_hold_for_one_search(void)
{
    for (size_t streams = 0; streams < 2; streams++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        bench_open(&b, PLAIN(SEARCH_TOOLS));
        turn_give(&b, streams, "See [1]: \\ud83c\\udf26", true); /* nothing is found as yet */
        found(&b, 0, 'A', 2);
        turn_give(&b, streams, "[2]", true);
        found(&b, 0, 'C', 1);
        turn_give(&b, streams, "[1] https://a.test/x https://c.test/x", false);
        bench_finish(&b, "");
        expect_part(b.out.data, "\"See [1]: \\ud83c\\udf26\\n\\n[2]\\n\\n[1] https://");
        expect_places(&b, "B 12 15;A 21 37;C 38 54;");
    }
}

static void what_the_upstream_cites_stays_before_ours(void)
{
#define THEIRS CITES("0", "1", "T", "https://t.test/")
    for (size_t streams = 0; streams < 2; streams++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        bench_open(&b, PLAIN(SEARCH_TOOLS));
        bench_plain_turn(&b, SEARCH_JSON);
        found(&b, 0, 'A', 1);
        if (streams) {
            bench_turn(&b, ROLE TEXT("[1]") CHUNK("{\"annotations\":[" THEIRS "]}") FINISH("stop")
                               DONE);
        } else {
            bench_plain_turn(&b, ANSWER("{\"role\":\"assistant\",\"annotations\":[ " THEIRS
                                        " ],\"content\":\"[1]\"}",
                                        "stop"));
        }
        bench_finish(&b, "");
        expect_places(&b, "T 0 1;A 0 3;");
        expect_part(b.out.data,
                    "\"annotations\":[" THEIRS "," CITES("0", "3", "A", "https://a.test/x") "]");
    }
}

static void an_empty_or_absent_list_takes_ours(void)
{
    static const char *const members[] = {"", ",\"annotations\":[]", ",\"annotations\":null",
                                          ",\"annotations\":[ ]"};
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        BUF_CLEANUP struct buf turn = {0};
        bench_open(&b, PLAIN(SEARCH_TOOLS));
        bench_plain_turn(&b, SEARCH_JSON);
        found(&b, 0, 'A', 1);
        buf_printf(&turn, ANSWER("{\"role\":\"assistant\",\"content\":\"[1]\"%s}", "stop"),
                   members[i]);
        bench_plain_turn(&b, turn.data);
        bench_finish(&b, "");
        expect_part(b.out.data, "\"annotations\":[" CITES("0", "3", "A", "https://a.test/x") "]}");
    }
}

static void an_answer_that_cites_nothing_is_the_upstreams_bytes(void)
{
#define LAST                                                                                       \
    ANSWER("{\"role\":\"assistant\",\"content\":\"No [2] of those.\",\"annotations\": [ ]}", "sto" \
                                                                                             "p")
    BENCH_CLEANUP struct bench b = bench_new(0), s = bench_new(0);
    bench_open(&b, PLAIN(SEARCH_TOOLS));
    bench_plain_turn(&b, SEARCH_JSON);
    found(&b, 0, 'A', 1);
    bench_plain_turn(&b, LAST);
    bench_finish(&b, "");
    CU_ASSERT_STRING_EQUAL(b.out.data, LAST);
    bench_open(&s, STREAM(SEARCH_TOOLS));
    bench_turn(&s, ROLE SEARCH_CALL("up_1"));
    found(&s, 0, 'A', 1);
    bench_turn(&s, ROLE TEXT("No.") FINISH("stop") DONE);
    bench_finish(&s, "");
    expect_no_part(s.out.data, "annotations");
}

static void a_plain_turn_for_a_client_that_streams_is_cited_too(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, STREAM(SEARCH_TOOLS));
    bench_plain_turn(&b, SEARCH_JSON);
    found(&b, 0, 'A', 1);
    bench_plain_turn(&b, ANSWER("{\"role\":\"assistant\",\"content\":\"[1]\"}", "stop"));
    bench_finish(&b, "");
    expect_seen(&b, "[1]", "", "stop");
    expect_part(b.out.data, "{\"annotations\":[" CITES("0", "3", "A", "https://a.test/x") "]}");
}

static void text_that_was_dropped_is_not_counted(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, PLAIN(SEARCH_TOOLS ",\"response_format\":{\"type\":\"json_object\"}"));
    turn_give(&b, true, "I search.", true);
    found(&b, 0, 'A', 1);
    turn_give(&b, true, "Again: [1]", true);
    found(&b, 0, 'B', 0);
    turn_give(&b, true, "{} [1]", false);
    bench_finish(&b, "");
    expect_places(&b, "A 3 6;");
}

static void searches_that_ran_are_listed_where_runs_are_shown(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    b.offers[1].show_runs = true;
    bench_open(&b, STREAM(SEARCH_TOOLS));
    bench_turn(&b, ROLE SEARCH_CALL("up_1"));
    found(&b, 0, 'A', 2);
    bench_turn(&b, ROLE TEXT("[2]") FINISH("stop") DONE);
    bench_finish(&b, "");
    bench_plain_ids(b.out.data);
    SEEN_CLEANUP struct seen s = seen_read(&b.out);
    CU_ASSERT_EQUAL(s.runs_told, 1);
    CU_ASSERT_STRING_EQUAL(
        s.runs.data, "[{\"index\":0,\"type\":\"web_search\",\"id\":\"ws_sg"
                     "00000000000000000000000000000000\",\"container_id\":null,\"arguments\":"
                     "\"{\\\"query\\\":\\\"x\\\"}\",\"output\":\"A\\nhttps://a.test/x\\ns\\nB\\n"
                     "https://b.test/x\\ns\\n\"}]");
}

/* ---- what comes back ---- */

static void expect_messages(const char *tools, const char *messages, const char *wanted)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    BUF_CLEANUP struct buf body = {0}, part = {0};
    buf_printf(&body, "{\"model\":\"m\",%s,\"messages\":[%s]}", tools, messages);
    buf_printf(&part, "\"messages\":[%s]", wanted);
    bench_open(&b, body.data);
    expect_part(bench_request(&b), part.data);
}

static void citations_in_a_history_go_where_the_search_is_ours(void)
{
#define CITED(list) "{\"role\":\"assistant\",\"annotations\":" list ",\"content\":\"[1]\"}"
#define BARE "{\"role\":\"assistant\",\"content\":\"[1]\"}"
    static const char *const others[] = {CITED("[]"), CITED("[{\"type\":\"file_citation\"}]"),
                                         CITED("7"), CITED("[" THEIRS ",7]"),
                                         "{\"role\":\"user\",\"annotations\":[" THEIRS "]}"};
    expect_messages(SEARCH_TOOLS, CITED("[" THEIRS "," THEIRS "]") "," CITED("[" THEIRS "]"),
                    BARE "," BARE);
    expect_messages("\"tools\":[" CODE_TOOL "]", CITED("[" THEIRS "]"), CITED("[" THEIRS "]"));
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        expect_messages(SEARCH_TOOLS, others[i], others[i]);
    }
}

static const struct test tests[] = {
    TEST(what_the_client_asks_comes_with_the_call_of_that_tool_alone),
    TEST(what_cannot_be_heeded_is_refused_with_its_place),
    TEST(a_search_that_nobody_here_answers_is_not_read),
    TEST(c003_a_stream_cites_in_one_chunk_before_its_finish),
    TEST(c112_places_count_characters_not_bytes),
    TEST(places_are_those_in_the_whole_content_and_numbers_hold_for_one_search),
    TEST(what_the_upstream_cites_stays_before_ours),
    TEST(an_empty_or_absent_list_takes_ours),
    TEST(an_answer_that_cites_nothing_is_the_upstreams_bytes),
    TEST(a_plain_turn_for_a_client_that_streams_is_cited_too),
    TEST(text_that_was_dropped_is_not_counted),
    TEST(searches_that_ran_are_listed_where_runs_are_shown),
    TEST(citations_in_a_history_go_where_the_search_is_ours),
};

int main(int argc, char **argv)
{
    return run_tests("chat_search", tests, COUNT_OF(tests), argc, argv);
}
