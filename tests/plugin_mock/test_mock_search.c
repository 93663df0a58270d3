/* The mock search: hits by rules, one hit for other queries, domains, faults. */
#include "base/check.h"
#include "cunit_main.h"
#include "fake_host.h"

static const struct sg_plugin *plugin;

struct fixture {
    void *config, *self;
    struct sg_call *call;
};

static void fixture_open(struct fixture *f)
{
    f->call = call_new();
    CU_ASSERT_EQUAL_FATAL(plugin->open(f->config, f->call, &f->self, call_error(f->call)), 0);
}

static int search(struct fixture *f, struct sg_query query)
{
    call_free(f->call);
    f->call = call_new();
    return plugin->search->search(f->self, f->call, &query, call_error(f->call));
}

static void fixture_free(struct fixture *f)
{
    plugin->close(f->self, f->call);
    call_free(f->call);
    config_free(plugin, f->config);
}

static void any_query_finds_one_page_always_the_same(void)
{
    struct fixture f = {.config = config_new(plugin)};
    fixture_open(&f);
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(search(&f, (struct sg_query){.text = "a \"b\""}), 0);
        CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_HIT),
                               "{\"title\": \"About a \\\"b\\\"\", \"url\": "
                               "\"https://example.com/search?q=a%20%22b%22\", \"snippet\": \"The "
                               "mock search found this page about a \\\"b\\\".\", \"date\": "
                               "\"2025-01-01\"}");
    }
    fixture_free(&f);
}

static void rules_give_hits_in_order_up_to_the_count(void)
{
    struct fixture f = {.config = config_new(plugin)};
    config_add(plugin, f.config, "rules", "when", "sql", "hits",
               "One | https://a.org/1 | first | 2024-05-06\nTwo | https://b.org | second\nThree | "
               "https://c.org",
               NULL);
    fixture_open(&f);
    CU_ASSERT_EQUAL(search(&f, (struct sg_query){.text = "learn sql"}), 0);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_HIT), 3);
    CU_ASSERT_STRING_EQUAL(f.call->outputs[0].data,
                           "{\"title\": \"One\", \"url\": \"https://a.org/1\", \"snippet\": "
                           "\"first\", \"date\": \"2024-05-06\"}");
    CU_ASSERT_STRING_EQUAL(f.call->outputs[2].data,
                           "{\"title\": \"Three\", \"url\": \"https://c.org\", \"snippet\": \"\", "
                           "\"date\": null}");
    CU_ASSERT_EQUAL(search(&f, (struct sg_query){.text = "learn sql", .count_max = 2}), 0);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_HIT), 2);
    CU_ASSERT_EQUAL(search(&f, (struct sg_query){.text = "learn c"}), 0);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_HIT), 1);
    fixture_free(&f);
}

static void domains_are_kept_to(void)
{
    static const char *const example[] = {"example.com", NULL}, *const org[] = {"ORG", NULL};
    struct fixture f = {.config = config_new(plugin)};
    config_add(plugin, f.config, "rules", "when", "x", "hits",
               "1 | https://example.com/a | s\n2 | https://www.example.com:8/ | s\n"
               "3 | https://notexample.com | s\n4 | https://example.com.evil.org?q | s",
               NULL);
    fixture_open(&f);
    CU_ASSERT_EQUAL(search(&f, (struct sg_query){.text = "x", .allowed = example}), 0);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_HIT), 2);
    CU_ASSERT_EQUAL(search(&f, (struct sg_query){.text = "x", .blocked = example}), 0);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_HIT), 2);
    CU_ASSERT_EQUAL(search(&f, (struct sg_query){.text = "x", .allowed = org}), 0);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_HIT), 1);
    CU_ASSERT_EQUAL(search(&f, (struct sg_query){.text = "y", .allowed = org}), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(call_text(f.call, SG_OUT_HIT), "\"https://ORG/search?q=y\""));
    CU_ASSERT_EQUAL(search(&f, (struct sg_query){.text = "y", .blocked = example}), 0);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_HIT), 0);
    fixture_free(&f);
}

static void each_fault_has_its_code(void)
{
    static const struct {
        const char *fault, *message;
        int code;
        size_t hits;
    } cases[] = {{"refuse", "the search was refused", SG_E_UNAVAILABLE, 0},
                 {"limit", "the quota of searches is used up", SG_E_LIMIT, 0},
                 {"hang", "the call was ended", SG_E_CANCELLED, 0},
                 {"garbage", "", 0, 5}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fixture f = {.config = config_new(plugin)};
        config_add(plugin, f.config, "rules", "when", "bad", "fault", cases[i].fault, NULL);
        config_set(plugin, f.config, "delay", "40ms");
        fixture_open(&f);
        CU_ASSERT_EQUAL(search(&f, (struct sg_query){.text = "bad"}), cases[i].code);
        CU_ASSERT_STRING_EQUAL(f.call->error.message, cases[i].message);
        CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_HIT), cases[i].hits);
        CU_ASSERT_EQUAL(search(&f, (struct sg_query){.text = "good"}), 0);
        CU_ASSERT_EQUAL(f.call->slept_ms, 40);
        fixture_free(&f);
    }
}

static const struct test tests[] = {
    TEST(any_query_finds_one_page_always_the_same),
    TEST(rules_give_hits_in_order_up_to_the_count),
    TEST(domains_are_kept_to),
    TEST(each_fault_has_its_code),
};

int main(int argc, char **argv)
{
    plugin = host_load("mock")->plugins[1];
    return run_tests("mock_search", tests, COUNT_OF(tests), argc, argv);
}
