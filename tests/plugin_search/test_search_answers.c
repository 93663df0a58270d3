/* From the answer of each service, in the shape that it has, to hits. */
#include "search_fixture.h"

static void check(const char *name, struct sg_query query, const char *const *options,
                  const char *body, const char *hits)
{
    struct search_fixture f;
    fixture_begin(&f, name);
    for (size_t i = 0; options != NULL && options[i] != NULL; i += 2) {
        fixture_set(&f, options[i], options[i + 1]);
    }
    call_reply(f.call, (struct fake_reply){.status = 200, .body = body});
    CU_ASSERT_EQUAL(fixture_search(&f, query), 0);
    CU_ASSERT_STRING_EQUAL(f.call->error.message, "");
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_HIT), hits);
    fixture_end(&f);
}

static const struct sg_query any = {.text = "x"};

static void searxng_gives_hits(void)
{
    check("searxng", any, NULL,
          "{\"query\": \"x\", \"number_of_results\": 0, \"results\": ["
          "{\"url\": \"https://a.example/1\", \"title\": \"One\", \"content\": \"First \\u2026\", "
          "\"publishedDate\": \"2024-03-05T00:00:00\", \"pubdate\": \"2024-03-05 00:00:00\", "
          "\"thumbnail\": \"\", \"engine\": \"google\", \"template\": \"default.html\", "
          "\"parsed_url\": [\"https\", \"a.example\", \"/1\", \"\", \"\", \"\"], \"engines\": "
          "[\"google\", \"brave\"], \"positions\": [1, 2], \"score\": 3.0, \"category\": "
          "\"general\"}, "
          "{\"url\": \"http://b.example\", \"title\": \"Two\", \"content\": \"\", "
          "\"publishedDate\": null}], \"answers\": [], \"corrections\": [], \"infoboxes\": [], "
          "\"suggestions\": [\"x y\"], \"unresponsive_engines\": [[\"qwant\", \"timeout\"]]}",
          "{\"title\": \"One\", \"url\": \"https://a.example/1\", \"snippet\": \"First "
          "\xE2\x80\xA6\", \"date\": \"2024-03-05\"}"
          "{\"title\": \"Two\", \"url\": \"http://b.example\", \"snippet\": \"\", \"date\": null}");
}

static const char brave_answer[] =
    "{\"query\":{\"original\":\"x\",\"more_results_available\":true},\"mixed\":{\"type\":\"mixed\","
    "\"main\":[{\"type\":\"web\",\"index\":0,\"all\":false}]},\"type\":\"search\",\"web\":{"
    "\"type\":"
    "\"search\",\"results\":[{\"title\":\"Tea &amp; <strong>caf\xC3\xA9</strong>\",\"url\":"
    "\"https://a.example/?a=1&amp;b=2\",\"is_source_local\":false,\"description\":\"<strong>Tea"
    "</strong> isn&#x27;t 3 < 4 &lt;b&gt; &nbsp; coffee\",\"page_age\":\"2024-03-05T09:48:00\","
    "\"age\":\"March 5, 2024\",\"extra_snippets\":[\"One <b>x</b>\",\"Two\"]},{\"title\":\"Other\","
    "\"url\":\"https://b.example/\",\"description\":\"d\",\"age\":\"March 6, 2024\"}],"
    "\"family_friendly\":true}}";

static void brave_gives_hits_without_tags_and_entities(void)
{
    static const char *const extra[] = {"extra_snippets", "true", NULL};
    check("brave", any, NULL, brave_answer,
          "{\"title\": \"Tea & caf\xC3\xA9\", \"url\": \"https://a.example/?a=1&amp;b=2\", "
          "\"snippet\": \"Tea isn't 3 < 4 <b> coffee\", \"date\": \"2024-03-05\"}"
          "{\"title\": \"Other\", \"url\": \"https://b.example/\", \"snippet\": \"d\", \"date\": "
          "\"2024-03-06\"}");
    check("brave", (struct sg_query){.text = "x", .count_max = 1}, extra, brave_answer,
          "{\"title\": \"Tea & caf\xC3\xA9\", \"url\": \"https://a.example/?a=1&amp;b=2\", "
          "\"snippet\": \"One x / Two\", \"date\": \"2024-03-05\"}");
}

static void tavily_gives_hits(void)
{
    check("tavily", any, NULL,
          "{\"query\":\"x\",\"follow_up_questions\":null,\"answer\":null,\"images\":[],\"results\":"
          "[{\"title\":\"One\",\"url\":\"https://a.example/1\",\"content\":\"A text with\\n\\na "
          "break and <b>.\",\"score\":0.81,\"raw_content\":null},{\"title\":\"News\",\"url\":"
          "\"https://b.example\",\"content\":\"n\",\"published_date\":\"Tue, 05 Mar 2024 10:00:00 "
          "GMT\"}],\"response_time\":1.09,\"request_id\":\"r\"}",
          "{\"title\": \"One\", \"url\": \"https://a.example/1\", \"snippet\": \"A text with a "
          "break and <b>.\", \"date\": null}"
          "{\"title\": \"News\", \"url\": \"https://b.example\", \"snippet\": \"n\", \"date\": "
          "\"2024-03-05\"}");
}

static void exa_gives_hits_by_text_or_highlights(void)
{
    check("exa", any, NULL,
          "{\"requestId\":\"r\",\"resolvedSearchType\":\"neural\",\"results\":[{\"id\":"
          "\"https://a.example/1\",\"title\":\"One\",\"url\":\"https://a.example/1\","
          "\"publishedDate\":\"2024-03-05T00:00:00.000Z\",\"author\":\"A\",\"text\":\"All of "
          "it\"},{\"id\":\"https://b.example\",\"title\":null,\"url\":\"https://b.example\","
          "\"highlights\":[\"here\",\"\",7,\"there\"],\"highlightScores\":[0.4,0.3]}],"
          "\"costDollars\":{\"total\":0.005}}",
          "{\"title\": \"One\", \"url\": \"https://a.example/1\", \"snippet\": \"All of it\", "
          "\"date\": \"2024-03-05\"}"
          "{\"title\": \"https://b.example\", \"url\": \"https://b.example\", \"snippet\": \"here "
          "/ there\", \"date\": null}");
}

static void serper_gives_hits_with_googles_dates(void)
{
    check("serper", any, NULL,
          "{\"searchParameters\":{\"q\":\"x\",\"type\":\"search\",\"engine\":\"google\"},"
          "\"knowledgeGraph\":{\"title\":\"X\"},\"organic\":[{\"title\":\"One\",\"link\":"
          "\"https://a.example/1\",\"snippet\":\"first\",\"date\":\"Mar 5, 2024\",\"position\":1},"
          "{\"title\":\"Two\",\"link\":\"https://b.example\",\"snippet\":\"second\",\"date\":\"2 "
          "months ago\",\"position\":2}],\"peopleAlsoAsk\":[],\"credits\":1}",
          "{\"title\": \"One\", \"url\": \"https://a.example/1\", \"snippet\": \"first\", "
          "\"date\": \"2024-03-05\"}"
          "{\"title\": \"Two\", \"url\": \"https://b.example\", \"snippet\": \"second\", "
          "\"date\": null}");
}

static void perplexity_gives_hits(void)
{
    check("perplexity", any, NULL,
          "{\"results\":[{\"title\":\"One\",\"url\":\"https://a.example/1\",\"snippet\":\"first\","
          "\"date\":\"2024-03-05\",\"last_updated\":\"2025-01-02\"},{\"title\":\"Two\",\"url\":"
          "\"https://b.example\",\"snippet\":\"second\",\"date\":null,\"last_updated\":"
          "\"2025-01-02\"}],\"id\":\"i\"}",
          "{\"title\": \"One\", \"url\": \"https://a.example/1\", \"snippet\": \"first\", "
          "\"date\": \"2024-03-05\"}"
          "{\"title\": \"Two\", \"url\": \"https://b.example\", \"snippet\": \"second\", "
          "\"date\": \"2025-01-02\"}");
}

static void no_hits_are_a_success_where_the_service_says_so(void)
{
    static const struct {
        const char *name, *body;
    } cases[] = {
        {"searxng", "{\"results\": [], \"unresponsive_engines\": []}"},
        {"searxng", "{\"results\": []}"},
        {"brave", "{\"type\":\"search\",\"query\":{\"original\":\"x\"}}"},
        {"brave", "{\"query\":{},\"web\":{\"results\":[]}}"},
        {"tavily", "{\"query\":\"x\",\"results\":[]}"},
        {"exa", "{\"results\":[]}"},
        {"serper", "{\"searchParameters\":{\"q\":\"x\"},\"credits\":1}"},
        {"serper", "{\"searchParameters\":{\"q\":\"x\"},\"organic\":[]}"},
        {"perplexity", "{\"results\":[],\"id\":\"i\"}"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        check(cases[i].name, any, NULL, cases[i].body, "");
    }
}

static void no_more_hits_than_wanted_are_given_and_those_of_other_domains_do_not_count(void)
{
    static const char *const allowed[] = {"wanted.example/docs", NULL};
    static const char *const blocked[] = {"bad.wanted.example", "wanted.example/private", NULL};
    check("searxng",
          (struct sg_query){.text = "x", .count_max = 2, .allowed = allowed, .blocked = blocked},
          NULL,
          "{\"results\": [{\"url\": \"https://other.example/\", \"title\": \"0\"},"
          "{\"url\": \"https://www.wanted.example/\", \"title\": \"1\"},"
          "{\"url\": \"https://bad.wanted.example/\", \"title\": \"2\"},"
          "{\"url\": \"https://notwanted.example/\", \"title\": \"3\"},"
          "{\"url\": \"HTTPS://WANTED.example:8443/a\", \"title\": \"4\"},"
          "{\"url\": \"https://wanted.example/b\", \"title\": \"5\"}]}",
          "{\"title\": \"1\", \"url\": \"https://www.wanted.example/\", \"snippet\": \"\", "
          "\"date\": null}"
          "{\"title\": \"4\", \"url\": \"HTTPS://WANTED.example:8443/a\", \"snippet\": \"\", "
          "\"date\": null}");
    check("searxng", (struct sg_query){.text = "x", .allowed = allowed}, NULL,
          "{\"results\": [{\"url\": \"https://other.example/\", \"title\": \"0\"}]}", "");
}

static void elements_that_are_no_hits_are_passed_over(void)
{
    check("tavily", any, NULL,
          "{\"results\":[null,7,\"x\",[],{},{\"title\":\"no address\"},{\"url\":7},{\"url\":"
          "\"javascript:alert(1)\"},{\"url\":\"ftp://a.example\"},{\"url\":\"//a.example\"},"
          "{\"url\":\"https://\"},{\"url\":\"https://good.example@bad.example/\"},{\"url\":"
          "\"https://a.example/ b\"},{\"url\":\"https://a.example/\\\"x\"},{\"title\":{},\"url\":"
          "\"https://ok.example\",\"content\":[],\"published_date\":{}}]}",
          "{\"title\": \"https://ok.example\", \"url\": \"https://ok.example\", \"snippet\": \"\", "
          "\"date\": null}");
}

static void snippets_are_bounded_and_cleaned(void)
{
    struct search_fixture f;
    char *body = calloc(1, 100000);
    size_t at = (size_t)snprintf(body, 100000,
                                 "{\"results\":[{\"url\":\"https://a.example\",\"title\":\"a\\u0000"
                                 "\\u001b[31mb\\u202ec\\ud800\",\"content\":\"");
    for (size_t i = 0; i < 4000; i++) {
        at += (size_t)snprintf(body + at, 100000 - at, "\xC3\xA4 ");
    }
    snprintf(body + at, 100000 - at, "\"}]}");
    fixture_begin(&f, "tavily");
    call_reply(f.call, (struct fake_reply){.status = 200, .body = body});
    CU_ASSERT_EQUAL(fixture_search(&f, any), 0);
    const char *hit = call_text(f.call, SG_OUT_HIT);
    CU_ASSERT_PTR_NOT_NULL(strstr(hit, "{\"title\": \"a [31mbc\xEF\xBF\xBD\", "));
    CU_ASSERT_PTR_NOT_NULL(strstr(hit, "\xC3\xA4\xE2\x80\xA6\", \"date\": null}"));
    CU_ASSERT_TRUE(strlen(hit) > 2000 && strlen(hit) < 2048 + 200);
    free(body);
    fixture_end(&f);
}

static void what_the_sink_says_ends_the_search(void)
{
    struct search_fixture f;
    fixture_begin(&f, "brave");
    f.call->emits_max = 1;
    f.call->emit_code = SG_E_CANCELLED;
    call_reply(f.call, (struct fake_reply){.status = 200, .body = brave_answer});
    CU_ASSERT_EQUAL(fixture_search(&f, any), SG_E_CANCELLED);
    CU_ASSERT_STRING_EQUAL(f.call->error.message, "nobody listens any more");
    fixture_end(&f);
}

static const struct test tests[] = {
    TEST(searxng_gives_hits),
    TEST(brave_gives_hits_without_tags_and_entities),
    TEST(tavily_gives_hits),
    TEST(exa_gives_hits_by_text_or_highlights),
    TEST(serper_gives_hits_with_googles_dates),
    TEST(perplexity_gives_hits),
    TEST(no_hits_are_a_success_where_the_service_says_so),
    TEST(no_more_hits_than_wanted_are_given_and_those_of_other_domains_do_not_count),
    TEST(elements_that_are_no_hits_are_passed_over),
    TEST(snippets_are_bounded_and_cleaned),
    TEST(what_the_sink_says_ends_the_search),
};

int main(int argc, char **argv)
{
    return run_tests("search_answers", tests, COUNT_OF(tests), argc, argv);
}
