/* Citations of searches on messages: where they stand in streams and whole answers, what upstreams say of their own, and
 * that none of ours goes up again. */
#include "base/check.h"
#include "messages_search.h"

#define CITED(index, citation) \
    DELTA(index, "{\"type\":\"citations_delta\",\"citation\":" citation "}")
#define TEXT_START(index) BLOCK(index, "{\"type\":\"text\",\"text\":\"\",\"citations\":[]}")

/* A search that found A and B, then this turn; what the client gets of that turn's blocks. */
static const char *stream_of(struct bench *b, const char *turn)
{
    bench_open(b, SEARCH_STREAM);
    bench_turn(b, START SEARCH_CALL("0", "t1", "q") END("tool_use"));
    FOUND(b, 0, HIT_A, HIT_B);
    size_t before = b->out.len;
    bench_turn(b, turn);
    bench_finish(b, "");
    char *end = strstr(b->out.data + before, "event: message_delta");
    CU_ASSERT_PTR_NOT_NULL_FATAL(end);
    *end = '\0';
    return b->out.data + before;
}

static void a_citation_follows_the_words_that_name_its_page(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    expect_text(stream_of(&b, START BLOCK("0", "{\"type\":\"text\",\"text\":\"\"}")
                                  TEXT_DELTA("0", "See (https://a.te") TEXT_DELTA("0", "st/x) and")
                                      TEXT_DELTA("0", " [B](https://b.test/y). End") STOP("0")
                                          END("end_turn")),
                TEXT_START("2") TEXT_DELTA("2", "See (https://a.te") TEXT_DELTA("2", "st/x) and")
                    CITED("2", CITES_A) TEXT_DELTA("2", " [B](https://b.test/y). End")
                        CITED("2", CITES_B) STOP("2"));
}

static void text_is_not_held_back_for_what_may_become_one(struct bench *b)
{
    (void)stream_of(b, START BLOCK("0", "{\"type\":\"text\",\"text\":\"\"}")
                           TEXT_DELTA("0", "As https://a.test/x") STOP("0") END("end_turn"));
}

static void a_url_at_the_end_is_cited_before_its_block_ends(void)
{
    in_any_pieces(text_is_not_held_back_for_what_may_become_one);
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, SEARCH_STREAM);
    bench_turn(&b, START SEARCH_CALL("0", "t1", "q") END("tool_use"));
    FOUND(&b, 0, HIT_A);
    size_t before = b.out.len;
    const char *part = START BLOCK("0", "{\"type\":\"text\",\"text\":\"\"}")
        TEXT_DELTA("0", "As https://a.test/x");
    surface_messages.turn_begin(b.exchange, true);
    bench_must(&b, surface_messages.turn_feed(b.exchange, str_of(part), &b.out, &b.err));
    expect_text(b.out.data + before, TEXT_START("2") TEXT_DELTA("2", "As https://a.test/x"));
    before = b.out.len;
    bench_must(&b, surface_messages.turn_feed(b.exchange, STR(STOP("0")), &b.out, &b.err));
    expect_text(b.out.data + before, CITED("2", CITES_A) STOP("2"));
}

static void a_page_is_cited_once_in_a_block_and_again_in_the_next(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    expect_text(stream_of(&b, START TEXT("0", "[1] [2] [1] https://a.test/x ") TEXT("1", "[1] [3]")
                                  END("end_turn")),
                TEXT_START("2") TEXT_DELTA("2", "[1] [2] [1] https://a.test/x ") CITED("2", CITES_A)
                    CITED("2", CITES_B) STOP("2") TEXT_START("3") TEXT_DELTA("3", "[1] [3]")
                        CITED("3", CITES_A) STOP("3"));
}

static void words_in_front_of_a_search_cite_nothing(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, SEARCH_STREAM);
    bench_turn(&b, START TEXT("0", "Maybe https://a.test/x [1]") SEARCH_CALL("1", "t1", "q")
                       END("tool_use"));
    FOUND(&b, 0, HIT_A);
    expect_no_part(b.out.data, "citation");
    bench_turn(&b, START TEXT("0", "No.") END("end_turn"));
    bench_finish(&b, "");
    expect_no_part(b.out.data, "citations_delta");
}

static void numbers_mean_nothing_once_two_searches_found_something(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, SEARCH_JSON);
    bench_plain_turn(&b, ANSWER(SEARCH_USE("t1") "," SEARCH_USE("t2"), "tool_use"));
    FOUND(&b, 0, HIT_A);
    FOUND(&b, 1, HIT_B);
    bench_plain_turn(&b, ANSWER(SAY("[1], https://b.test/y") "," SAY("[1]"), "end_turn"));
    expect_part(bench_finish(&b, ""),
                "{\"type\":\"text\",\"text\":\"[1], https://b.test/y\",\"citations\":[" CITES_B
                "]}," SAY("[1]") "]");
}

static void a_whole_answer_has_them_in_its_blocks(void)
{
    for (int stream = 0; stream < 2; stream++) { /* of the upstream */
        BENCH_CLEANUP struct bench b = bench_new(3);
        bench_open(&b, SEARCH_JSON);
        bench_plain_turn(&b, SEARCH_ANSWER);
        FOUND(&b, 0, HIT_A, HIT_B);
        if (stream) {
            bench_turn(&b, START TEXT("0", "See https://a.te") TEXT("1", "[2] https://a.test/x")
                               END("end_turn"));
        } else {
            bench_plain_turn(
                &b, ANSWER(SAY("See https://a.te") "," SAY("[2] https://a.test/x"), "end_turn"));
        }
        expect_part(
            bench_finish(&b, ""),
            "," SAY("See https://a.te") ",{\"type\":\"text\",\"text\":\"[2] https://a.test/x\","
                                        "\"citations\":[" CITES_B "," CITES_A "]}]");
    }
}

static void a_plain_turn_is_streamed_with_them(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, SEARCH_STREAM);
    bench_plain_turn(&b, SEARCH_ANSWER);
    FOUND(&b, 0, HIT_A);
    bench_plain_turn(&b, ANSWER(SAY("\\ud83c\\udf26 [1]"), "end_turn"));
    expect_part(bench_finish(&b, ""), TEXT_START("2") TEXT_DELTA("2", "\\ud83c\\udf26 [1]")
                                          CITED("2", CITES_A) STOP("2"));
}

static void escapes_hide_no_url(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    expect_part(stream_of(&b, START TEXT("0", "\\ud83c\\udf26 https:\\/\\/a.test\\/\\u0078 \\u00e4")
                                  END("end_turn")),
                CITED("2", CITES_A));
}

static void an_excerpt_is_cut_to_150_characters(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    BUF_CLEANUP struct buf hit = {0}, wanted = {0};
    buf_puts(&hit, "{\"title\":\"\",\"url\":\"https://a.test/\",\"snippet\":\"");
    buf_puts(&wanted, "\"citations\":[{\"type\":\"web_search_result_location\",\"url\":"
                      "\"https://a.test/\",\"title\":\"\",\"cited_text\":\"");
    for (size_t i = 0; i < 400; i++) {
        buf_puts(&hit, "\xf0\x9f\x8c\xa6");
        buf_puts(&wanted, i < 150 ? "\xf0\x9f\x8c\xa6" : "");
    }
    buf_puts(&hit, "\"}");
    buf_puts(&wanted, "\",\"encrypted_index\":\"\"}]");
    bench_open(&b, SEARCH_JSON);
    bench_plain_turn(&b, SEARCH_ANSWER);
    FOUND(&b, 0, hit.data);
    bench_plain_turn(&b, ANSWER(SAY("https://a.test"), "end_turn"));
    expect_part(bench_finish(&b, ""), wanted.data);
}

#define THEIRS                                                                                  \
    "{\"type\":\"char_location\",\"cited_text\":\"c\",\"document_index\":0,\"document_title\":" \
    "null,"                                                                                     \
    "\"file_id\":null,\"start_char_index\":0,\"end_char_index\":1}"

static void an_upstreams_own_citations_keep_their_place_in_front_of_ours(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    expect_text(stream_of(&b, START TEXT_START("0") CITED("0", THEIRS) TEXT_DELTA("0", "[1]")
                                  STOP("0") END("end_turn")),
                TEXT_START("2") CITED("2", THEIRS) TEXT_DELTA("2", "[1]") CITED("2", CITES_A)
                    STOP("2"));
    bench_clear(&b);
    b = bench_new(0);
    bench_open(&b, SEARCH_JSON);
    bench_plain_turn(&b, SEARCH_ANSWER);
    FOUND(&b, 0, HIT_A);
    bench_plain_turn(&b, ANSWER("{\"citations\":[ " THEIRS " ],\"type\":\"text\",\"text\":\"[1]\"}",
                                "end_turn"));
    expect_part(bench_finish(&b, ""),
                "{\"citations\":[" THEIRS "," CITES_A "],\"type\":\"text\",\"text\":\"[1]\"}");
}

static void a_null_where_citations_stand_becomes_a_list(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    expect_part(stream_of(&b,
                          START BLOCK("0", "{\"type\":\"text\",\"citations\":null,\"text\":\"\"}")
                              TEXT_DELTA("0", "[1]") STOP("0") END("end_turn")),
                BLOCK("2", "{\"type\":\"text\",\"citations\":[],\"text\":\"\"}")
                    TEXT_DELTA("2", "[1]") CITED("2", CITES_A) STOP("2"));
}

static void text_that_was_held_is_cited_when_it_is_given(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, HEAD "\"stream\":true,\"output_format\":{\"type\":\"json_schema\"}," USER
                        ",\"tools\":[" SEARCH_TOOL "]}");
    bench_turn(&b, START SEARCH_CALL("0", "t1", "q") END("tool_use"));
    FOUND(&b, 0, HIT_A);
    bench_turn(&b, START TEXT("0", "{\\\"source\\\":\\\"https://a.test/x\\\"}") END("end_turn"));
    expect_part(bench_finish(&b, ""),
                TEXT_START("2") TEXT_DELTA("2", "{\\\"source\\\":\\\"https://a.test/x\\\"}")
                    CITED("2", CITES_A) STOP("2"));
}

static void an_answer_cites_a_thousand_times_at_most(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    BUF_CLEANUP struct buf turn = {0};
    bench_open(&b, SEARCH_JSON);
    bench_plain_turn(&b, SEARCH_ANSWER);
    FOUND(&b, 0, HIT_A);
    for (size_t i = 0; i < 1100; i++) {
        buf_puts(&turn, i > 0 ? "," SAY("[1]") : SAY("[1]"));
    }
    BUF_CLEANUP struct buf answer = {0};
    buf_printf(&answer, ANSWER("%s", "end_turn"), turn.data);
    bench_plain_turn(&b, answer.data);
    bench_finish(&b, "");
    size_t count = 0;
    for (const char *at = b.out.data; (at = strstr(at, "encrypted_index")) != NULL; at++) {
        count++;
    }
    CU_ASSERT_EQUAL(count, 1000);
}

/* ---- what goes up ---- */

static void in_later_turns_the_text_goes_up_as_the_upstream_said_it(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, SEARCH_STREAM);
    bench_turn(&b, START SEARCH_CALL("0", "t1", "q") END("tool_use"));
    FOUND(&b, 0, HIT_A);
    bench_turn(&b, START TEXT("0", "As [1] says") SEARCH_CALL("1", "t2", "r") END("tool_use"));
    FOUND(&b, 0, HIT_B);
    const char *up = bench_request(&b);
    expect_part(up, "[{\"type\":\"text\",\"text\":\"As [1] says\"},{\"type\":\"tool_use\"");
    expect_no_part(up, "citations");
}

static void expect_up(const char *given, const char *wanted)
{
    static const char *const roles[] = {"user", "assistant"};
    for (size_t i = 0; i < COUNT_OF(roles); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        BUF_CLEANUP struct buf body = {0}, up = {0};
#define MESSAGE_OF HEAD "\"messages\":[{\"role\":\"%s\",\"content\":[%s]}]}"
        buf_printf(&body, MESSAGE_OF, roles[i], given);
        buf_printf(&up, MESSAGE_OF, roles[i], wanted);
        CU_ASSERT_TRUE(bench_looks_for(&b, body.data));
        bench_open(&b, body.data);
        expect_text(bench_request(&b), up.data);
    }
}

static void ours_are_cut_from_a_history_and_nothing_else(void)
{
    expect_up("{\"type\":\"text\",\"text\":\"a\",\"citations\":[" CITES_A "," CITES_B "]}",
              SAY("a"));
    expect_up("{\"citations\" : [" CITES_A "] , \"type\":\"text\",\"text\":\"a\"}," SAY("b"),
              "{\"type\":\"text\",\"text\":\"a\"}," SAY("b"));
    expect_up("{\"type\":\"text\",\"text\":\"a\",\"citations\":[" THEIRS ", " CITES_A "]}",
              "{\"type\":\"text\",\"text\":\"a\",\"citations\":[" THEIRS "]}");
    expect_up("{\"type\":\"text\",\"text\":\"a\",\"citations\":[{ \"encrypted_index\" : \"\", "
              "\"type\":\"web_search_result_location\"}," THEIRS "]}",
              "{\"type\":\"text\",\"text\":\"a\",\"citations\":[" THEIRS "]}");
    /* Not what only looks like them. */
#define ODD(text) expect_up(text, text)
    ODD("{\"type\":\"text\",\"text\":\"a\",\"citations\":{\"encrypted_index\":\"\"}}");
    ODD("{\"type\":\"text\",\"text\":\"a\",\"citations\":[{\"type\":\"char_location\","
        "\"encrypted_index\":\"\"}]}");
    ODD("{\"type\":\"new\",\"citations\":[" CITES_A "]}");
    ODD("{\"type\":\"text\",\"text\":\"a\",\"citations\":[" CITES_A "],\"citations\":[]}");
}

#define OURS "srvtoolu_sg" ZEROS
#define SEARCHED(content)                                                             \
    "{\"role\":\"assistant\",\"content\":[" SHOWN_CALL(                               \
        OURS, "web_search", "{\"query\":\"q\"}") "," SHOWN_RESULT(OURS, "web_search", \
                                                                  "[" SHOWN_A "]") content "]}"

static void they_are_cut_beside_blocks_of_ours_and_in_front_of_their_results(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, HEAD "\"messages\":[" SEARCHED(
                       ",{\"type\":\"text\",\"text\":\"a\",\"citations\":[" CITES_A
                       "]}") ","
                             "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"b\","
                             "\"citations\":[" CITES_A "]}]}],\"tools\":[" SEARCH_TOOL "]}");
    const char *up = bench_request(&b);
    expect_part(up, "{\"role\":\"assistant\",\"content\":[" SAY(
                        "a") "]},{\"role\":\"user\",\"content\":[" SAY("b") "]}]");
    bench_clear(&b);
    b = bench_new(0); /* its results are put in front of the user's words */
    bench_open(&b, HEAD
               "\"messages\":[" SEARCHED("") ",{\"role\":\"user\",\"content\":[{\"type\":\"text\","
                                             "\"text\":\"b\",\"citations\":[" CITES_A
                                             "]}]}],\"tools\":[" SEARCH_TOOL "]}");
    up = bench_request(&b);
    expect_part(up, "[end of the search results]\"}," SAY("b") "]}]");
    expect_no_part(up, "citations");
}

static void pages_of_earlier_answers_are_cited_by_url_but_not_by_number(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b,
               HEAD "\"messages\":[" SEARCHED("") ",{\"role\":\"user\",\"content\":\"Where?\"}],"
                                                  "\"tools\":[" SEARCH_TOOL "]}");
    bench_plain_turn(&b, ANSWER(SAY("In a[1]") "," SAY("https://a.test/x"), "end_turn"));
    expect_part(bench_finish(&b, ""),
                "[" SAY("In a[1]") ",{\"type\":\"text\",\"text\":\"https://a.test/x\","
                                   "\"citations\":[" CITES_A "]}]");
    expect_no_part(b.out.data, "server_tool_use");
}

static void what_no_search_finds_is_no_page(void)
{
    static const char *const urls[] = {"javascript:alert(1)", "", "//a.test/x", "file:///etc"};
    for (size_t i = 0; i < COUNT_OF(urls); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        BUF_CLEANUP struct buf body = {0}, answer = {0};
        buf_printf(&body,
                   HEAD "\"messages\":[{\"role\":\"assistant\",\"content\":[" SHOWN_CALL(
                       OURS, "web_search", "{}") "," SHOWN_RESULT(OURS, "web_search",
                                                                  "[7,{\"url\":\"%s\",\"title\":[]}"
                                                                  "]") "]},{\"role\":\"user\","
                                                                       "\"content\":\"x\"}],"
                                                                       "\"tools\":[" SEARCH_TOOL
                                                                       "]}",
                   urls[i]);
        buf_printf(&answer, ANSWER(SAY("[x](%s)"), "end_turn"), urls[i]);
        bench_open(&b, body.data);
        bench_plain_turn(&b, answer.data);
        expect_no_part(bench_finish(&b, ""), "citations");
    }
}

static const struct test tests[] = {
    TEST(a_citation_follows_the_words_that_name_its_page),
    TEST(a_url_at_the_end_is_cited_before_its_block_ends),
    TEST(a_page_is_cited_once_in_a_block_and_again_in_the_next),
    TEST(words_in_front_of_a_search_cite_nothing),
    TEST(numbers_mean_nothing_once_two_searches_found_something),
    TEST(a_whole_answer_has_them_in_its_blocks),
    TEST(a_plain_turn_is_streamed_with_them),
    TEST(escapes_hide_no_url),
    TEST(an_excerpt_is_cut_to_150_characters),
    TEST(an_upstreams_own_citations_keep_their_place_in_front_of_ours),
    TEST(a_null_where_citations_stand_becomes_a_list),
    TEST(text_that_was_held_is_cited_when_it_is_given),
    TEST(an_answer_cites_a_thousand_times_at_most),
    TEST(in_later_turns_the_text_goes_up_as_the_upstream_said_it),
    TEST(ours_are_cut_from_a_history_and_nothing_else),
    TEST(they_are_cut_beside_blocks_of_ours_and_in_front_of_their_results),
    TEST(pages_of_earlier_answers_are_cited_by_url_but_not_by_number),
    TEST(what_no_search_finds_is_no_page),
};

int main(int argc, char **argv)
{
    return run_tests("messages_citations", tests, COUNT_OF(tests), argc, argv);
}
