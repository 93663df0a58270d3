/* core/base/domain: which URLs can be shown, and which a list of domains holds, however they are spelled. */
#include "base/check.h"
#include "base/domain.h"
#include "cunit_main.h"

#include <string.h>

static struct arena *arena;

static bool holds(const char *entry, const char *url)
{
    struct place domain, place;
    arena = arena_new(0);
    bool is_held = domain_read(str_of(entry), arena, &domain) &&
                   url_place(str_of(url), arena, &place) && domain_holds(&domain, &place);
    arena_free(arena);
    return is_held;
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
                                       "//example.com",
                                       "ftp://example.com",
                                       ".example.com",
                                       "example..com",
                                       "example.com:443:x",
                                       "example.com/a b",
                                       "example.com/#x",
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
                                       "https://16909060/",
                                       "https://0x7f.1/",
                                       "https://1.2.3.04/",
                                       "https://1.2.3/",
                                       "https://example.com../",
                                       "https://a..example.com/",
                                       "https://exam%70le.com/"};
    struct place place;
    arena = arena_new(0);
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        CU_ASSERT_FALSE(url_place(str_of(none[i]), arena, &place));
    }
    CU_ASSERT_TRUE(url_place(STR("HTTPS://Example.com:80/a/b?c"), arena, &place));
    CU_ASSERT_TRUE(str_is(place.host, "example.com") && str_is(place.path, "/a/b"));
    CU_ASSERT_TRUE(url_place(STR("http://a.org?x=/y"), arena, &place));
    CU_ASSERT_TRUE(str_is(place.host, "a.org") && place.path.len == 0);
    arena_free(arena);
}

static void spellings_of_one_host_are_one(void)
{
    static const char *const urls[] = {"https://xn--bcher-kva.example/", "https://BÜCHER.example/x",
                                       "https://www.bücher.example./", "https://bücher。example/",
                                       "https://XN--BCHER-KVA.example"};
    for (size_t i = 0; i < COUNT_OF(urls); i++) {
        CU_ASSERT_TRUE(holds("bücher.example", urls[i]));
        CU_ASSERT_TRUE(holds("xn--bcher-kva.example", urls[i]));
        CU_ASSERT_FALSE(holds("bucher.example", urls[i]));
    }
    CU_ASSERT_TRUE(holds("evil.example", "https://ｅvil.example/"));
    CU_ASSERT_TRUE(holds("1.2.3.4", "https://1.2.3.4:8080/x"));
}

static void spellings_of_one_path_are_one(void)
{
    static const char *const urls[] = {"//blog/x",       "/./blog/x", "/a/../blog", "/%62log/x",
                                       "/a/%2e%2e/blog", "/../blog",  "/blog//",    "/%2Fblog/x"};
    for (size_t i = 0; i < COUNT_OF(urls); i++) {
        char url[128] = "https://evil.example";
        strncat(url, urls[i], sizeof url - strlen(url) - 1);
        CU_ASSERT_TRUE(holds("evil.example/blog", url));
        CU_ASSERT_TRUE(holds("evil.example/./%62log/", url));
    }
    CU_ASSERT_FALSE(holds("evil.example/blog", "https://evil.example/blog/../x"));
    CU_ASSERT_FALSE(holds("evil.example/blog", "https://evil.example/blog%"));
}

/* Each pair took seconds once. */
static void no_pattern_takes_long(void)
{
    char entry[DOMAIN_BYTES_MAX + 1] = "a.example/*", url[URL_BYTES_MAX + 1] = "https://a.example/";
    memset(entry + strlen(entry), 'a', 200);
    strcat(entry, "b");
    memset(url + strlen(url), 'a', 2000);
    for (size_t i = 0; i < 20000; i++) {
        CU_ASSERT_FALSE(holds(entry, url));
    }
    entry[0] = '\0';
    memset(entry, 'a', sizeof entry - 1);
    entry[sizeof entry - 1] = '\0';
    CU_ASSERT_FALSE(holds(entry, "https://a.example"));
}

static const struct test tests[] = {TEST(a_domain_holds_its_host_and_its_subdomains),
                                    TEST(a_path_holds_what_begins_with_its_whole_segments),
                                    TEST(a_star_in_a_path_stands_for_anything),
                                    TEST(an_entry_that_is_no_domain_holds_nothing),
                                    TEST(urls_that_look_like_another_are_none),
                                    TEST(spellings_of_one_host_are_one),
                                    TEST(spellings_of_one_path_are_one),
                                    TEST(no_pattern_takes_long)};

int main(int argc, char **argv)
{
    return run_tests("domain", tests, COUNT_OF(tests), argc, argv);
}
