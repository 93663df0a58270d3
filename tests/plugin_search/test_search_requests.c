/* What each provider asks its service: method, URL, headers and body, byte for byte, for the plainest query and for one with
 * everything in it; and that the key goes nowhere else. */
#include "search_fixture.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const char *const allowed[] = {"a.example", "https://b.example/docs", NULL};
static const char *const blocked[] = {"c.example", "d.example/private", NULL};
static const char *const none[] = {NULL};

static const struct sg_query full = {.text = "caf\xC3\xA9 & \"tea\"",
                                     .count_max = 3,
                                     .allowed = allowed,
                                     .blocked = blocked,
                                     .country = "DE",
                                     .language = "de",
                                     .freshness = "week"};

static void check(const char *name, struct sg_query query, const char *const *options,
                  const char *method, const char *url, const char *headers, const char *body)
{
    struct search_fixture f;
    fixture_begin(&f, name);
    for (size_t i = 0; options != NULL && options[i] != NULL; i += 2) {
        fixture_set(&f, options[i], options[i + 1]);
    }
    call_reply(f.call, (struct fake_reply){.status = 200, .body = answer_of(name)});
    CU_ASSERT_EQUAL(fixture_search(&f, query), 0);
    CU_ASSERT_EQUAL_FATAL(f.call->requests_count, 1);
    const struct fake_request *asked = &f.call->requests[0];
    CU_ASSERT_STRING_EQUAL(asked->method, method);
    CU_ASSERT_STRING_EQUAL(asked->url, url);
    CU_ASSERT_STRING_EQUAL(asked->headers, headers);
    CU_ASSERT_STRING_EQUAL(asked->body, body);
    CU_ASSERT_EQUAL(asked->timeout_ms, 10000);
    CU_ASSERT_EQUAL(asked->first_byte_ms, 10000);
    CU_ASSERT_EQUAL(asked->body_bytes_max, 4 << 20);
    fixture_end(&f);
}

#define GET_WITH(key) "Accept: application/json\n" key
#define POST_WITH(key) "Accept: application/json\nContent-Type: application/json\n" key

static void searxng_is_asked_by_get(void)
{
    static const char *const options[] = {"safe_search", "strict", "engines", "google\nwikipedia",
                                          "categories",  "news",   NULL};
    check("searxng", (struct sg_query){.text = "x"}, NULL, "GET",
          "https://search.example/sub/search?q=x&format=json",
          GET_WITH("Authorization: Bearer " KEY "\n"), "");
    check("searxng", full, options, "GET",
          "https://search.example/sub/search?q=%28caf%C3%A9%20%26%20%22tea%22%29%20%28site%3Aa."
          "example%20OR%20site%3Ab.example%29%20-site%3Ac.example&format=json&language=de-DE&"
          "time_range=week&safesearch=2&engines=google%2Cwikipedia&categories=news",
          GET_WITH("Authorization: Bearer " KEY "\n"), "");
}

static void searxng_can_be_asked_without_operators_and_without_a_key(void)
{
    static const char *const options[] = {"site_operators", "false", "api_key", "",
                                          "safe_search",    "off",   NULL};
    check("searxng", full, options, "GET",
          "https://search.example/sub/search?q=caf%C3%A9%20%26%20%22tea%22&format=json&language="
          "de-DE&time_range=week&safesearch=0",
          GET_WITH(""), "");
}

static void brave_is_asked_by_get(void)
{
    static const char *const options[] = {"safe_search", "off", "extra_snippets", "true", NULL};
    check("brave", (struct sg_query){.text = "x"}, NULL, "GET",
          "https://api.search.brave.com/res/v1/web/"
          "search?q=x&count=10&result_filter=web&text_decorations=false&safesearch=moderate",
          GET_WITH("X-Subscription-Token: " KEY "\n"), "");
    check("brave", full, options, "GET",
          "https://api.search.brave.com/res/v1/web/"
          "search?q=%28caf%C3%A9%20%26%20%22tea%22%29%20AND%20%28site%3Aa.example%20OR%20site%3Ab."
          "example%29%20NOT%20site%3Ac.example&count=3&result_filter=web&text_decorations=false&"
          "country=DE&search_lang=de&freshness=pw&safesearch=off&extra_snippets=true",
          GET_WITH("X-Subscription-Token: " KEY "\n"), "");
}

static void brave_gets_its_own_names_and_none_that_it_refuses(void)
{
    check("brave",
          (struct sg_query){.text = "x", .country = "KE", .language = "ja", .freshness = "decade"},
          NULL, "GET",
          "https://api.search.brave.com/res/v1/web/"
          "search?q=x&count=10&result_filter=web&text_decorations=false&search_lang=jp&safesearch="
          "moderate",
          GET_WITH("X-Subscription-Token: " KEY "\n"), "");
}

static void tavily_is_asked_by_post(void)
{
    static const char *const options[] = {"depth", "advanced", NULL};
    static const char *const news[] = {"topic", "news", "count", "4", NULL};
    check(
        "tavily", full, options, "POST", "https://api.tavily.com/search",
        POST_WITH("Authorization: Bearer " KEY "\n"),
        "{\"query\":\"caf\xC3\xA9 & \\\"tea\\\"\",\"max_results\":3,\"search_depth\":\"advanced\","
        "\"topic\":\"general\",\"include_domains\":[\"a.example\",\"b.example\"],"
        "\"exclude_domains\":[\"c.example\"],\"time_range\":\"week\",\"country\":\"germany\"}");
    check("tavily", (struct sg_query){.text = "x", .country = "DE", .allowed = none}, news, "POST",
          "https://api.tavily.com/search", POST_WITH("Authorization: Bearer " KEY "\n"),
          "{\"query\":\"x\",\"max_results\":4,\"search_depth\":\"basic\",\"topic\":\"news\"}");
}

static void exa_is_asked_by_post(void)
{
    static const char *const options[] = {"type",       "fast", "contents", "highlights",
                                          "moderation", "true", NULL};
    struct sg_query query = full;
    query.freshness = NULL;
    check("exa", query, options, "POST", "https://api.exa.ai/search",
          POST_WITH("x-api-key: " KEY "\n"),
          "{\"query\":\"caf\xC3\xA9 & \\\"tea\\\"\",\"type\":\"fast\",\"numResults\":3,"
          "\"includeDomains\":[\"a.example\",\"b.example\"],\"excludeDomains\":[\"c.example\"],"
          "\"userLocation\":\"DE\",\"moderation\":true,\"contents\":{\"highlights\":true}}");
    check("exa", (struct sg_query){.text = "x"}, NULL, "POST", "https://api.exa.ai/search",
          POST_WITH("x-api-key: " KEY "\n"),
          "{\"query\":\"x\",\"type\":\"auto\",\"numResults\":10,\"contents\":{\"text\":{"
          "\"maxCharacters\":2000}}}");
}

/* Midnight may pass in between, so one of two days is right. */
static void exa_is_told_a_day_for_an_age(void)
{
    static const struct {
        const char *age;
        int days;
    } cases[] = {{"day", 1}, {"week", 7}, {"month", 31}, {"year", 366}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct search_fixture f;
        struct tm early, late;
        char before[80], after[80];
        time_t began = time(NULL) - (time_t)cases[i].days * 86400;
        fixture_begin(&f, "exa");
        call_reply(f.call, (struct fake_reply){.status = 200, .body = answer_of("exa")});
        CU_ASSERT_EQUAL(
            fixture_search(&f, (struct sg_query){.text = "x", .freshness = cases[i].age}), 0);
        time_t ended = time(NULL) - (time_t)cases[i].days * 86400;
        strftime(before, sizeof before, "\"startPublishedDate\":\"%Y-%m-%dT00:00:00.000Z\"",
                 gmtime_r(&began, &early));
        strftime(after, sizeof after, "\"startPublishedDate\":\"%Y-%m-%dT00:00:00.000Z\"",
                 gmtime_r(&ended, &late));
        CU_ASSERT_TRUE(strstr(f.call->requests[0].body, before) != NULL ||
                       strstr(f.call->requests[0].body, after) != NULL);
        fixture_end(&f);
    }
}

static void serper_is_asked_by_post(void)
{
    check("serper", full, NULL, "POST", "https://google.serper.dev/search",
          POST_WITH("X-API-KEY: " KEY "\n"),
          "{\"q\":\"(caf\xC3\xA9 & \\\"tea\\\") (site:a.example OR site:b.example) "
          "-site:c.example\",\"num\":3,\"gl\":\"de\",\"hl\":\"de\",\"tbs\":\"qdr:w\"}");
    check("serper", (struct sg_query){.text = "x"}, NULL, "POST",
          "https://google.serper.dev/search", POST_WITH("X-API-KEY: " KEY "\n"),
          "{\"q\":\"x\",\"num\":10}");
}

static void perplexity_is_asked_by_post(void)
{
    static const char *const options[] = {"max_tokens_per_page", "1024", NULL};
    check("perplexity", full, options, "POST", "https://api.perplexity.ai/search",
          POST_WITH("Authorization: Bearer " KEY "\n"),
          "{\"query\":\"caf\xC3\xA9 & \\\"tea\\\"\",\"max_results\":3,\"max_tokens_per_page\":1024,"
          "\"search_domain_filter\":[\"a.example\",\"b.example\"],\"country\":\"DE\","
          "\"search_language_filter\":[\"de\"],\"search_recency_filter\":\"week\"}");
    check("perplexity", (struct sg_query){.text = "x", .blocked = blocked}, NULL, "POST",
          "https://api.perplexity.ai/search", POST_WITH("Authorization: Bearer " KEY "\n"),
          "{\"query\":\"x\",\"max_results\":10,\"max_tokens_per_page\":512,"
          "\"search_domain_filter\":[\"-c.example\"]}");
}

static void domains_that_cannot_be_told_are_left_to_the_core(void)
{
    static const char *const odd[] = {"*.example.com", NULL}, *const quote[] = {"a) OR (b", NULL};
    check("serper", (struct sg_query){.text = "x", .allowed = odd, .blocked = quote}, NULL, "POST",
          "https://google.serper.dev/search", POST_WITH("X-API-KEY: " KEY "\n"),
          "{\"q\":\"x\",\"num\":10}");
    check("tavily", (struct sg_query){.text = "x", .allowed = odd, .blocked = quote}, NULL, "POST",
          "https://api.tavily.com/search", POST_WITH("Authorization: Bearer " KEY "\n"),
          "{\"query\":\"x\",\"max_results\":10,\"search_depth\":\"basic\",\"topic\":\"general\"}");
}

static void more_domains_than_a_service_takes_are_left_to_the_core(void)
{
    static char names[21][16];
    static const char *many[22];
    for (size_t i = 0; i < 21; i++) {
        snprintf(names[i], sizeof names[i], "host%zu.example", i);
        many[i] = names[i];
    }
    check("perplexity", (struct sg_query){.text = "x", .allowed = many}, NULL, "POST",
          "https://api.perplexity.ai/search", POST_WITH("Authorization: Bearer " KEY "\n"),
          "{\"query\":\"x\",\"max_results\":10,\"max_tokens_per_page\":512}");
    check("brave", (struct sg_query){.text = "x", .allowed = many}, NULL, "GET",
          "https://api.search.brave.com/res/v1/web/"
          "search?q=x&count=10&result_filter=web&text_decorations=false&safesearch=moderate",
          GET_WITH("X-Subscription-Token: " KEY "\n"), "");
}

static void the_path_is_not_doubled_where_the_base_url_has_it(void)
{
    static const char *const bases[] = {"http://127.0.0.1:8888", "http://127.0.0.1:8888/",
                                        "http://127.0.0.1:8888/search",
                                        "http://127.0.0.1:8888/search/"};
    for (size_t i = 0; i < COUNT_OF(bases); i++) {
        const char *const options[] = {"base_url", bases[i], NULL};
        check("searxng", (struct sg_query){.text = "x"}, options, "GET",
              "http://127.0.0.1:8888/search?q=x&format=json",
              GET_WITH("Authorization: Bearer " KEY "\n"), "");
    }
}

static void the_key_goes_to_the_base_url_alone(void)
{
    for (size_t i = 0; i < COUNT_OF(providers); i++) {
        static const char *const location[] = {"location", "https://elsewhere.example/", NULL};
        struct search_fixture f;
        fixture_begin(&f, providers[i]);
        fixture_set(&f, "base_url", "http://localhost:1234");
        call_reply(f.call, (struct fake_reply){.status = 302, .headers = location, .body = ""});
        CU_ASSERT_EQUAL(fixture_search(&f, (struct sg_query){.text = "x"}), SG_E_UNAVAILABLE);
        CU_ASSERT_EQUAL(f.call->requests_count, 1);
        CU_ASSERT_EQUAL(strncmp(f.call->requests[0].url, "http://localhost:1234/", 22), 0);
        CU_ASSERT_PTR_NULL(strstr(f.call->requests[0].url, KEY));
        CU_ASSERT_PTR_NULL(strstr(f.call->requests[0].body, KEY));
        CU_ASSERT_PTR_NULL(strstr(f.call->error.message, KEY));
        fixture_end(&f);
    }
}

static void the_count_stays_between_1_and_20(void)
{
    static const struct {
        int64_t asked;
        const char *told;
    } cases[] = {{0, "\"num\":10}"}, {1, "\"num\":1}"}, {20, "\"num\":20}"}, {500, "\"num\":20}"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct search_fixture f;
        fixture_begin(&f, "serper");
        call_reply(f.call, (struct fake_reply){.status = 200, .body = answer_of("serper")});
        CU_ASSERT_EQUAL(
            fixture_search(&f, (struct sg_query){.text = "x", .count_max = cases[i].asked}), 0);
        CU_ASSERT_PTR_NOT_NULL(strstr(f.call->requests[0].body, cases[i].told));
        fixture_end(&f);
    }
}

static void certificates_of_ones_own_are_passed_on(void)
{
    struct search_fixture f;
    char path[] = "/tmp/sandgate-own-ca-XXXXXX";
    int fd = mkstemp(path);
    CU_ASSERT_TRUE_FATAL(fd >= 0 && write(fd, "-----BEGIN CERTIFICATE-----\n", 28) == 28 &&
                         close(fd) == 0);
    fixture_begin(&f, "searxng");
    fixture_set(&f, "ca_file", path);
    fixture_set(&f, "timeout", "3s");
    call_reply(f.call, (struct fake_reply){.status = 200, .body = answer_of("searxng")});
    CU_ASSERT_EQUAL(fixture_search(&f, (struct sg_query){.text = "x"}), 0);
    CU_ASSERT_STRING_EQUAL(f.call->requests[0].ca_file, path);
    CU_ASSERT_EQUAL(f.call->requests[0].timeout_ms, 3000);
    fixture_end(&f);
    CU_ASSERT_EQUAL(unlink(path), 0);
}

static void a_base_url_or_key_that_cannot_be_used_stops_the_start(void)
{
    static const struct {
        const char *option, *value, *message;
    } cases[] = {
        {"ca_file", "/no/such.pem", "'ca_file' cannot be read: '/no/such.pem'"},
        {"ca_file", "own.pem", "'ca_file' must be an absolute path, not 'own.pem'"},
        {"base_url", "search.example", "'base_url' must be http:// or https://"},
        {"base_url", "ftp://search.example", "'base_url' must be http:// or https://"},
        {"base_url", "https://", "'base_url' must be http:// or https://"},
        {"base_url", "https://user:secret@host/", "without a user, '?' and '#'"},
        {"base_url", "https://host/?key=secret", "without a user, '?' and '#'"},
        {"base_url", "https://host/#x", "without a user, '?' and '#'"},
        {"base_url", "https://ho st/", "'base_url' must be"},
        {"api_key", "secret\n", "'api_key' must be printable ASCII without spaces"},
        {"api_key", "sec ret", "'api_key' must be printable ASCII without spaces"},
    };
    for (size_t p = 0; p < COUNT_OF(providers); p++) {
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
            struct search_fixture f;
            fixture_begin(&f, providers[p]);
            fixture_set(&f, cases[i].option, cases[i].value);
            CU_ASSERT_EQUAL(fixture_open(&f), SG_E_CONFIG);
            CU_ASSERT_PTR_NOT_NULL(strstr(f.call->error.message, cases[i].message));
            CU_ASSERT_PTR_NULL(strstr(f.call->error.message, "secret"));
            fixture_end(&f);
        }
    }
}

static const struct test tests[] = {
    TEST(searxng_is_asked_by_get),
    TEST(searxng_can_be_asked_without_operators_and_without_a_key),
    TEST(brave_is_asked_by_get),
    TEST(brave_gets_its_own_names_and_none_that_it_refuses),
    TEST(tavily_is_asked_by_post),
    TEST(exa_is_asked_by_post),
    TEST(exa_is_told_a_day_for_an_age),
    TEST(serper_is_asked_by_post),
    TEST(perplexity_is_asked_by_post),
    TEST(domains_that_cannot_be_told_are_left_to_the_core),
    TEST(more_domains_than_a_service_takes_are_left_to_the_core),
    TEST(the_path_is_not_doubled_where_the_base_url_has_it),
    TEST(the_key_goes_to_the_base_url_alone),
    TEST(the_count_stays_between_1_and_20),
    TEST(certificates_of_ones_own_are_passed_on),
    TEST(a_base_url_or_key_that_cannot_be_used_stops_the_start),
};

int main(int argc, char **argv)
{
    return run_tests("search_requests", tests, COUNT_OF(tests), argc, argv);
}
