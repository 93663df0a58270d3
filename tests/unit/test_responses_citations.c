/* Citations on responses: where a text names a page that a search of the request found, the client gets a url_citation, in
 * code points of the text's own part, behind the piece that completes it and in the whole. */
#include "responses_search_fixture.h"

#define CITED(start, end, title, url)                                         \
    "{\"type\":\"url_citation\",\"start_index\":" start ",\"end_index\":" end \
    ",\"title\":\"" title "\",\"url\":\"" url "\"}"
#define NOTED(n) "{\"type\":\"file_path\",\"file_id\":\"f" n "\",\"index\":1}"
#define NOTE(n)                                                                             \
    EVENT("output_text.annotation.added", "\"item_id\":\"m\",\"output_index\":0,\"content_" \
                                          "index\":0,\"annotation\":" NOTED(n))
#define OPEN UP_CREATED MESSAGE_OPEN("0", "m")
#define SAID(text) TEXT("0", "m", text)

/* The request is open, and its first search has found A and B. */
static void searched(struct bench *b, const char *more)
{
    bench_open(b, arena_printf(b->arena, SEARCH_BODY("%s"), more));
    bench_turn(b, UP_CREATED SEARCH("0", "1", "q") UP_END);
    FOUND(b, 0, HIT_A, HIT_B);
}

static void expect_cited(struct bench *b, bool is_stream, int message, const char *expected)
{
    cJSON *output = bench_output(b, is_stream);
    expect_annotations(cJSON_GetArrayItem(output, message), 0, expected);
    cJSON_Delete(output);
}

/* ---- where ---- */

/* C112: neither bytes nor halves of pairs are counted, however the upstream writes and cuts the text. */
static void c112_indexes_count_code_points(void)
{
    static const char *const texts[] = {
        SAID("🌦 東京は晴れ [1] ok"),
        SAID("🌦 東京") SAID("は晴れ [") SAID("1") SAID("] ok"),
        SAID("\\ud83c\\udf26 \\u6771\\u4eac\\u306f\\u6674\\u308c [1] ok"),
        SAID("\\ud83c") SAID("\\udf26 東京は晴れ \\u005b1") SAID("\\u005d ok")};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        bool is_stream = i < 3; /* half a pair is no text that the checker could read */
        BENCH_CLEANUP struct bench b = bench_new(0);
        searched(&b, is_stream ? STREAM : "");
        bench_turn(&b, arena_printf(b.arena, "%s%s%s", OPEN, texts[i], UP_END));
        bench_finish(&b, "");
        expect_cited(&b, is_stream, 1, "[" CITED("8", "11", "A page", "https://a.org/x") "]");
    }
    BENCH_CLEANUP struct bench b = bench_new(0);
    searched(&b, "");
    bench_plain_turn(&b, PLAIN(MESSAGE("m", "🌦 東京は晴れ [1] ok")));
    bench_finish(&b, "");
    expect_cited(&b, false, 1, "[" CITED("8", "11", "A page", "https://a.org/x") "]");
}

static void a_citation(struct bench *b)
{
    searched(b, STREAM);
    bench_turn(b, OPEN SAID("See ([A") SAID(" page](https://a.org/x") SAID(")") SAID(") or")
                      SAID(" https://b.org") SAID("/.") SAID(" More.") UP_END);
    bench_finish(b, "");
    const char *at = b->out.data;
    static const char *const order[] = {
        "\"delta\":\"See ([A\"",
        "\"delta\":\" page](https://a.org/x\"",
        "\"delta\":\")\"",
        "\"delta\":\") or\"",
        "\"annotation_index\":0,\"annotation\":" CITED("4", "31", "A page", "https://a.org/x"),
        "\"delta\":\" https://b.org\"",
        "\"delta\":\"/.\"",
        "\"delta\":\" More.\"",
        "\"annotation_index\":1,\"annotation\":" CITED("35", "49", "B", "https://b.org/"),
        "response.output_text.done"};
    for (size_t i = 0; i < COUNT_OF(order) && at != NULL; i++) {
        expect_part(at, order[i]);
        at = strstr(at, order[i]);
    }
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    expect_annotations(c.items[1].done, 0,
                       "[" CITED("4", "31", "A page", "https://a.org/x") "," CITED(
                           "35", "49", "B", "https://b.org/") "]");
}

static void a_citation_comes_behind_the_delta_that_completes_it_and_holds_none_back(void)
{
    in_any_pieces(a_citation);
}

static void what_ends_a_text_is_cited_before_its_end_is_told(void)
{
    static const char *const ends[] = {
        OPEN SAID("At https://a.org/x") UP_END,
        OPEN SAID("At https://a.org/x") MESSAGE_CLOSE("0", "m", "At https://a.org/x") UP_END,
        OPEN SAID("At ") MESSAGE_CLOSE("0", "m", "At https://a.org/x") UP_END,
        OPEN EVENT("output_item.done",
                   "\"output_index\":0,\"item\":" MESSAGE("m", "At https://a.org/x")) UP_END,
        UP_CREATED EVENT("completed", "\"response\":{\"status\":\"completed\",\"output\":[" MESSAGE(
                                          "m", "At https://a.org/x") "]}")};
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        searched(&b, STREAM);
        bench_turn(&b, ends[i]);
        bench_finish(&b, "");
        CHECKED_CLEANUP struct checked c = checked_read(&b.out);
        expect_part(c.order.data,
                    "output_text.delta output_text.annotation.added output_text.done content_part."
                    "done output_item.done completed ");
        expect_annotations(c.items[1].done, 0,
                           "[" CITED("3", "18", "A page", "https://a.org/x") "]");
    }
}

static void each_part_and_each_message_counts_from_its_own_start(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    searched(&b, STREAM);
    bench_plain_turn(
        &b,
        PLAIN("{\"id\":\"m1\",\"type\":\"message\",\"status\":\"completed\",\"role\":"
              "\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"One [1].\","
              "\"annotations\":[]},{\"type\":\"refusal\",\"refusal\":\"No [1].\"},{\"type\":"
              "\"output_text\",\"text\":\"[2]\",\"annotations\":[]}]}," MESSAGE("m2", "Or [2].")));
    bench_finish(&b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b.out);
    CU_ASSERT_EQUAL_FATAL(c.items_count, 3);
    expect_annotations(c.items[1].done, 0, "[" CITED("4", "7", "A page", "https://a.org/x") "]");
    expect_annotations(c.items[1].done, 2, "[" CITED("0", "3", "B", "https://b.org/") "]");
    expect_annotations(c.items[2].done, 0, "[" CITED("3", "6", "B", "https://b.org/") "]");
}

/* ---- when ---- */

static void a_text_cites_what_was_found_before_it_by_any_search(void)
{
#define BOTH "[1] https://a.org/x https://b.org/"
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, SEARCH_BODY(STREAM));
    bench_turn(&b, UP_CREATED SAY("0", "m0", BOTH) SEARCH("1", "1", "q") UP_END);
    bench_not_found(&b, 0, SURFACE_CALL_FAILED);
    bench_turn(&b, UP_CREATED SAY("0", "m1", BOTH) SEARCH("1", "1", "q") UP_END);
    FOUND(&b, 0, HIT_A);
    bench_turn(&b, UP_CREATED SAY("0", "m2", BOTH) SEARCH("1", "1", "q") UP_END);
    FOUND(&b, 0, HIT_B);
    bench_turn(&b, UP_CREATED CALL("0", "fc_1", "call_1", "code_interpreter", CODE_42) UP_END);
    bench_result(&b, 0, "42");
    bench_turn(&b, UP_CREATED SAY("0", "m3", BOTH) UP_END);
    bench_finish(&b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b.out);
    CU_ASSERT_EQUAL_FATAL(c.items_count, 8);
    expect_annotations(c.items[0].done, 0, "[]");
    expect_annotations(c.items[2].done, 0, "[]");
    expect_annotations(c.items[4].done, 0,
                       "[" CITED("0", "3", "A page", "https://a.org/x") "," CITED(
                           "4", "19", "A page", "https://a.org/x") "]");
    expect_annotations(c.items[7].done, 0, /* a number would mean two pages now */
                       "[" CITED("4", "19", "A page", "https://a.org/x") "," CITED(
                           "20", "34", "B", "https://b.org/") "]");
}

static void text_that_is_held_for_a_json_format_is_cited_when_it_shows(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    searched(&b, STREAM ",\"text\":{\"format\":{\"type\":\"json_object\"}}");
    bench_turn(&b, OPEN SAID("{\\\"u\\\":\\\"https://a.org/x") SAID("\\\"}") UP_END);
    bench_finish(&b, "");
    expect_cited(&b, true, 1, "[" CITED("6", "21", "A page", "https://a.org/x") "]");
}

static void a_page_without_a_title_is_cited_by_its_url(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, SEARCH_BODY(""));
    bench_turn(&b, UP_CREATED SEARCH("0", "1", "q") UP_END);
    FOUND(&b, 0, HIT("https://a.org/\\\"x", ""));
    bench_turn(&b, UP_CREATED SAY("0", "m", "[1]") UP_END);
    bench_finish(&b, "");
    expect_cited(&b, false, 1,
                 "[" CITED("0", "3", "https://a.org/\\\"x", "https://a.org/\\\"x") "]");
}

static void reasoning_is_not_cited(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    searched(&b, "");
    bench_plain_turn(&b, PLAIN("{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[],\"content\":"
                               "[{\"type\":\"text\",\"text\":\"[1]\"}]}," MESSAGE("m", "Yes.")));
    bench_finish(&b, "");
    expect_no_part(b.out.data, "url_citation");
}

/* ---- beside the upstream's ---- */

static void noted_by_both(struct bench *b)
{
    searched(b, STREAM);
    bench_turn(b, OPEN NOTE("1") SAID("[1] ") NOTE("2") SAID("[2] ") NOTE("3")
                      EVENT("content_part.done",
                            "\"item_id\":\"m\",\"output_index\":0,\"content_index\":0,\"part\":{"
                            "\"type\":\"output_text\",\"text\":\"[1] [2] \",\"annotations\":"
                            "[" NOTED("1") "," NOTED("2") "," NOTED("3") "," NOTED("4") "]}")
                          SEARCH("1", "2", "again") UP_END);
    FOUND(b, 0, HIT_B);
    const char *body = bench_request(b);
    expect_part(body,
                "\"annotations\":[" NOTED("1") "," NOTED("2") "," NOTED("3") "," NOTED("4") "]");
    expect_no_part(body, "url_citation");
    bench_turn(b, UP_CREATED SAY("0", "m2", "ok") UP_END);
    bench_finish(b, "");
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    expect_annotations(
        c.items[1].done, 0,
        "[" NOTED("1") "," CITED("0", "3", "A page", "https://a.org/x") "," NOTED("2") "," CITED(
            "4", "7", "B", "https://b.org/") "," NOTED("3") "," NOTED("4") "]");
}

static void ours_and_the_upstreams_stand_in_one_row_and_theirs_alone_go_up(void)
{
    in_any_pieces(noted_by_both);
}

/* A client's history goes up as it came, citations and all: they have the form of this API. */
static void a_message_with_our_citations_comes_back_as_it_was(void)
{
    STORE_CLEANUP struct bench_store store;
    bench_store_init(&store);
    BENCH_CLEANUP struct bench first = bench_new(0), kept = bench_new(0), own = bench_new(0);
    answer_searched(&first, &store, SEARCH_BODY(""));
    ANSWER_CLEANUP cJSON *answer = bench_answer(&first);
    cJSON *output = cJSON_GetObjectItem(answer, "output");
    char *message = cJSON_PrintUnformatted(cJSON_GetArrayItem(output, 1));
    expect_part(message, "\"annotations\":[" CITED("4", "19", "A page", "https://a.org/x") "]");
    kept.store = &store.store;
    bench_open(&kept, "{\"model\":\"m\",\"input\":\"x\",\"previous_response_id\":\"resp_sg" ID_A
                      "\",\"tools\":[" SEARCH_TOOL "]}");
    expect_part(bench_request(&kept), message);
    bench_open(&own, arena_printf(own.arena,
                                  "{\"model\":\"m\",\"input\":[%s],\"tools\":[" SEARCH_TOOL "]}",
                                  message));
    expect_part(bench_request(&own), arena_printf(own.arena, "\"input\":[%s]", message));
    free(message);
}

/* ---- hostile ---- */

static void citations_of_an_answer_are_bounded_and_its_text_is_not(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    BUF_CLEANUP struct buf text = {0};
    char title[10001];
    memset(title, 'T', sizeof title - 1);
    title[sizeof title - 1] = '\0';
    bench_open(&b, SEARCH_BODY(""));
    bench_turn(&b, UP_CREATED SEARCH("0", "1", "q") UP_END);
    FOUND(&b, 0, arena_printf(b.arena, HIT("https://a.org/", "%s"), title));
    for (size_t i = 0; i < 400; i++) {
        buf_puts(&text, "[1] ");
    }
    bench_plain_turn(&b, arena_printf(b.arena, PLAIN(MESSAGE("m", "%s")), text.data));
    bench_finish(&b, "");
    cJSON *output = bench_output(&b, false);
    const cJSON *content = cJSON_GetObjectItem(cJSON_GetArrayItem(output, 1), "content");
    const cJSON *part = cJSON_GetArrayItem(content, 0);
    int count = cJSON_GetArraySize(cJSON_GetObjectItem(part, "annotations"));
    CU_ASSERT_EQUAL(count, 25); /* of 10 KiB each */
    CU_ASSERT_STRING_EQUAL(json_str(part, "text"), text.data);
    cJSON_Delete(output);
}

static const struct test tests[] = {
    TEST(c112_indexes_count_code_points),
    TEST(a_citation_comes_behind_the_delta_that_completes_it_and_holds_none_back),
    TEST(what_ends_a_text_is_cited_before_its_end_is_told),
    TEST(each_part_and_each_message_counts_from_its_own_start),
    TEST(a_text_cites_what_was_found_before_it_by_any_search),
    TEST(text_that_is_held_for_a_json_format_is_cited_when_it_shows),
    TEST(a_page_without_a_title_is_cited_by_its_url),
    TEST(reasoning_is_not_cited),
    TEST(ours_and_the_upstreams_stand_in_one_row_and_theirs_alone_go_up),
    TEST(a_message_with_our_citations_comes_back_as_it_was),
    TEST(citations_of_an_answer_are_bounded_and_its_text_is_not),
};

int main(int argc, char **argv)
{
    return run_tests("responses_citations", tests, COUNT_OF(tests), argc, argv);
}
