/* core/gateway/search_hits: which URLs can be shown, which a list of domains holds, and what becomes of hits. */
#include "base/check.h"
#include "base/utf8.h"
#include "cunit_main.h"
#include "gateway/search_hits.h"

#include <stdio.h>

static bool holds(const char *entry, const char *url)
{
    struct domain domain = domain_read(entry);
    return domain_holds(&domain, str_of(url));
}

static void a_domain_holds_its_host_and_its_subdomains(void)
{
    CU_ASSERT_TRUE(holds("example.com", "https://example.com"));
    CU_ASSERT_TRUE(holds("example.com", "http://www.Example.COM:8080/a?b#c"));
    CU_ASSERT_TRUE(holds("Example.com", "https://a.b.example.com./"));
    CU_ASSERT_TRUE(holds(" https://example.com/ ", "https://example.com/x"));
    CU_ASSERT_TRUE(holds("example.com:443", "https://example.com"));
    CU_ASSERT_FALSE(holds("example.com", "https://notexample.com"));
    CU_ASSERT_FALSE(holds("example.com", "https://example.com.evil.org"));
    CU_ASSERT_FALSE(holds("docs.example.com", "https://example.com"));
    CU_ASSERT_FALSE(holds("example.com", "https://evil.org/example.com"));
    CU_ASSERT_TRUE(holds("bücher.de", "https://www.bücher.de/"));
}

static void a_path_holds_what_begins_with_its_whole_segments(void)
{
    CU_ASSERT_TRUE(holds("example.com/blog", "https://example.com/blog"));
    CU_ASSERT_TRUE(holds("example.com/blog/", "https://www.example.com/blog/1/2"));
    CU_ASSERT_TRUE(holds("example.com/blog", "https://example.com/blog?p=1"));
    CU_ASSERT_TRUE(holds("example.com/blog", "https://example.com/blog#top"));
    CU_ASSERT_FALSE(holds("example.com/blog", "https://example.com/blogs"));
    CU_ASSERT_FALSE(holds("example.com/blog", "https://example.com/Blog"));
    CU_ASSERT_FALSE(holds("example.com/blog", "https://example.com/"));
    CU_ASSERT_FALSE(holds("example.com/blog", "https://example.com/a/blog"));
    CU_ASSERT_FALSE(holds("example.com/blog", "https://example.com/?/blog"));
}

static void a_star_in_a_path_stands_for_anything(void)
{
    CU_ASSERT_TRUE(holds("example.com/*", "https://example.com/a/b"));
    CU_ASSERT_TRUE(holds("example.com/*/news", "https://example.com/en/news/1"));
    CU_ASSERT_TRUE(holds("example.com/*/news", "https://example.com/a/b/news"));
    CU_ASSERT_TRUE(holds("example.com/a*", "https://example.com/abc/d"));
    CU_ASSERT_FALSE(holds("example.com/*/news", "https://example.com/en/newspaper"));
    CU_ASSERT_FALSE(holds("example.com/*/news", "https://example.com/news"));
}

static void an_entry_that_is_no_domain_holds_nothing(void)
{
    static const char *const none[] = {"",
                                       "  ",
                                       "*",
                                       "*.example.com",
                                       "exa mple.com",
                                       "/blog",
                                       "https://",
                                       "a@example.com",
                                       "example.com?x",
                                       "[::1]"};
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        CU_ASSERT_FALSE(holds(none[i], "https://example.com/blog"));
        CU_ASSERT_FALSE(holds(none[i], ""));
    }
}

static void urls_that_look_like_another_are_none(void)
{
    static const char *const none[] = {"",
                                       "example.com",
                                       "ftp://example.com",
                                       "javascript:alert(1)",
                                       "https:/example.com",
                                       "https://",
                                       "https://./",
                                       "https://example.com@evil.org/",
                                       "https://evil.org\\@example.com/",
                                       "https://example.com:x/",
                                       "https://example.com:/",
                                       "https://exa mple.com/",
                                       "https://example.com/a b",
                                       "https://example.com/a\nb",
                                       "https://example.com/\"",
                                       "https://example.com/\xFF",
                                       "https://exam%70le.com/"};
    struct str host, path;
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        CU_ASSERT_FALSE(url_split(str_of(none[i]), &host, &path));
    }
    CU_ASSERT_TRUE(url_split(STR("HTTPS://Example.com:80/a/b?c"), &host, &path));
    CU_ASSERT_TRUE(str_is(host, "Example.com") && str_is(path, "/a/b"));
    CU_ASSERT_TRUE(url_split(STR("http://a.org?x=/y"), &host, &path));
    CU_ASSERT_TRUE(str_is(host, "a.org") && path.len == 0);
}

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
    TEST(a_domain_holds_its_host_and_its_subdomains),
    TEST(a_path_holds_what_begins_with_its_whole_segments),
    TEST(a_star_in_a_path_stands_for_anything),
    TEST(an_entry_that_is_no_domain_holds_nothing),
    TEST(urls_that_look_like_another_are_none),
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
