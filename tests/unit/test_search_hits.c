/* core/gateway/search_hits: what becomes of hits. */
#include "base/check.h"
#include "base/utf8.h"
#include "cunit_main.h"
#include "gateway/search_hits.h"

#include <stdio.h>

/* ---- hits ---- */

static struct arena *arena;
static struct hits hits;

static void begin(const struct sg_query *query)
{
    arena = arena_new(0);
    hits = (struct hits){.query = query, .arena = arena};
}

static void end(void)
{
    buf_clear(&hits.lines);
    arena_free(arena);
}

static enum hit_fate take(const char *json)
{
    return hits_take(&hits, str_of(json));
}

static void expect_line(const char *json, const char *line)
{
    static const struct sg_query any = {.text = "x"};
    struct str rest, hit;
    begin(&any);
    CU_ASSERT_EQUAL(take(json), HIT_PASSED);
    rest = buf_str(&hits.lines);
    CU_ASSERT_TRUE(hits_next(&rest, &hit) && str_is(hit, line));
    CU_ASSERT_FALSE(hits_next(&rest, &hit));
    end();
}

static void a_hit_is_written_anew_in_one_form(void)
{
    expect_line("{\"url\":\"https://a.org\",\"title\":\"T\",\"snippet\":\"S\",\"date\":"
                "\"2024-05-06\",\"score\":0.5,\"raw\":{\"x\":[1]}}",
                "{\"title\": \"T\", \"url\": \"https://a.org\", \"snippet\": \"S\", \"date\": "
                "\"2024-05-06\"}");
    expect_line("{\"url\":\"https://a.org\",\"title\":null,\"snippet\":7,\"date\":\"\"}",
                "{\"title\": \"\", \"url\": \"https://a.org\", \"snippet\": \"\", \"date\": null}");
}

static void characters_that_nobody_sees_are_taken_out(void)
{
    expect_line("{\"url\":\"https://a.org\",\"title\":\"a\\u0000b\\nc\\u001b[1m\\u0085\","
                "\"snippet\":\"x\\u202ey\\u200bz\\udb40\\udc41 \\\"ü\\\"\"}",
                "{\"title\": \"a b c [1m \", \"url\": \"https://a.org\", \"snippet\": \"x y z  "
                "\\\"ü\\\"\", \"date\": null}");
}

static void long_texts_are_cut_between_characters(void)
{
    static const struct sg_query any = {.text = "x"};
    BUF_CLEANUP struct buf json = {0};
    begin(&any);
    buf_puts(&json, "{\"url\":\"https://a.org\",\"title\":\"a");
    for (int i = 0; i < 20000; i++) {
        buf_puts(&json, "ü");
    }
    buf_puts(&json, "\"}");
    CU_ASSERT_EQUAL(hits_take(&hits, buf_str(&json)), HIT_PASSED);
    CU_ASSERT_TRUE(hits.lines.len < 600 && utf8_valid(buf_str(&hits.lines)));
    end();
}

static void hits_without_a_usable_url_are_malformed(void)
{
    static const struct sg_query any = {.text = "x"};
    static const char *const wrong[] = {"",
                                        "[]",
                                        "null",
                                        "{\"title\": \"\xFF",
                                        "{\"title\": \"T\"}",
                                        "{\"url\": 1}",
                                        "{\"url\": null}",
                                        "{\"url\": \"not a url\"}",
                                        "{\"url\": \"file:///etc/passwd\"}",
                                        "{\"url\": \"https://a.org\", \"url\": \"https://b.org\"}"};
    begin(&any);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        CU_ASSERT_EQUAL(take(wrong[i]), HIT_MALFORMED);
    }
    CU_ASSERT_EQUAL(hits.counts[HIT_MALFORMED], COUNT_OF(wrong));
    CU_ASSERT_EQUAL(hits.lines.len, 0);
    end();
}

static void the_clients_domains_hold_whatever_the_provider_did(void)
{
    static const char *const allowed[] = {"a.org", "b.org/docs", NULL};
    static const char *const blocked[] = {"ads.a.org", "a.org/private", NULL};
    static const struct sg_query query = {.text = "x", .allowed = allowed, .blocked = blocked};
    begin(&query);
    CU_ASSERT_EQUAL(take("{\"url\": \"https://www.a.org/\"}"), HIT_PASSED);
    CU_ASSERT_EQUAL(take("{\"url\": \"https://b.org/docs/1\"}"), HIT_PASSED);
    CU_ASSERT_EQUAL(take("{\"url\": \"https://b.org/blog\"}"), HIT_FILTERED);
    CU_ASSERT_EQUAL(take("{\"url\": \"https://x.ads.a.org/\"}"), HIT_FILTERED);
    CU_ASSERT_EQUAL(take("{\"url\": \"https://a.org/private/1\"}"), HIT_FILTERED);
    CU_ASSERT_EQUAL(take("{\"url\": \"https://c.org/\"}"), HIT_FILTERED);
    end();
}

static void an_unreadable_list_of_allowed_domains_allows_nothing(void)
{
    static const char *const allowed[] = {"*.a.org", NULL}, *const nothing[] = {NULL};
    static const struct sg_query query = {.text = "x", .allowed = allowed};
    static const struct sg_query empty = {.text = "x", .allowed = nothing, .blocked = nothing};
    begin(&query);
    CU_ASSERT_EQUAL(take("{\"url\": \"https://a.org\"}"), HIT_FILTERED);
    end();
    begin(&empty);
    CU_ASSERT_EQUAL(take("{\"url\": \"https://a.org\"}"), HIT_PASSED);
    end();
}

static void the_same_url_passes_once_and_no_more_than_wanted(void)
{
    static const struct sg_query query = {.text = "x", .count_max = 2};
    begin(&query);
    CU_ASSERT_EQUAL(take("{\"url\": \"https://a.org\", \"title\": \"1\"}"), HIT_PASSED);
    CU_ASSERT_EQUAL(take("{\"url\": \"https:\\/\\/a.org\", \"title\": \"2\"}"), HIT_DUPLICATE);
    CU_ASSERT_EQUAL(take("{\"url\": \"https://a.org/2\"}"), HIT_PASSED);
    CU_ASSERT_EQUAL(take("{\"url\": \"https://a.org/3\"}"), HIT_SURPLUS);
    end();
}

static void a_provider_that_emits_without_end_is_bounded(void)
{
    static const struct sg_query any = {.text = "x"};
    begin(&any);
    for (int i = 0; i < 3000; i++) {
        char json[64];
        snprintf(json, sizeof json, "{\"url\": \"https://a.org/%d\"}", i);
        (void)take(json);
    }
    CU_ASSERT_EQUAL(hits.counts[HIT_PASSED], HITS_MAX);
    CU_ASSERT_EQUAL(hits.counts[HIT_SURPLUS], 3000 - HITS_MAX);
    end();
    begin(&any);
    for (int i = 0; i < 3000; i++) {
        (void)take("[]");
    }
    CU_ASSERT_EQUAL(hits.counts[HIT_MALFORMED], 1000);
    end();
}

static const struct test tests[] = {
    TEST(a_hit_is_written_anew_in_one_form),
    TEST(characters_that_nobody_sees_are_taken_out),
    TEST(long_texts_are_cut_between_characters),
    TEST(hits_without_a_usable_url_are_malformed),
    TEST(the_clients_domains_hold_whatever_the_provider_did),
    TEST(an_unreadable_list_of_allowed_domains_allows_nothing),
    TEST(the_same_url_passes_once_and_no_more_than_wanted),
    TEST(a_provider_that_emits_without_end_is_bounded),
};

int main(int argc, char **argv)
{
    return run_tests("search_hits", tests, COUNT_OF(tests), argc, argv);
}
