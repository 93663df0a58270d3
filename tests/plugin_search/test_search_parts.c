/* The parts that all search providers share: text that is cleaned, dates, domains, arrays of JSON. */
#include "base/check.h"
#include "cunit_main.h"
#include "fake_host.h"
#include "search_http.h"

const struct sg_host *sg;

static void check_clean(const char *json, bool is_html, size_t max, const char *expected)
{
    TEXT_CLEANUP struct text out = {0};
    text_puts(&out, "");
    search_clean(&out, (struct json_value){json, strlen(json)}, is_html, max);
    CU_ASSERT_STRING_EQUAL(out.data, expected);
}

static void text_is_cleaned(void)
{
    check_clean("\"\"", false, 100, "");
    check_clean("\" a \\n\\t b \"", false, 100, "a b");
    check_clean("\"a\\u0000\\u0085\\u00a0\\u2028b\"", false, 100, "a b");
    check_clean("\"a\\u202e\\u200f\\ufeff\\udb40\\udc41b\"", false, 100, "ab");
    check_clean("\"a\xFF\xC3(\"", false, 100, "a\xEF\xBF\xBD\xEF\xBF\xBD(");
    check_clean("\"<b>a</b> &amp;\"", false, 100, "<b>a</b> &amp;");
}

static void tags_and_entities_are_taken_out_once(void)
{
    check_clean("\"<strong>a</strong>b<br/>c<p>d\"", true, 100, "ab c d");
    check_clean("\"1 < 2 <3 > <\"", true, 100, "1 < 2 <3 > <");
    check_clean("\"&amp;lt; &lt;b&gt; &quot;&#39;&#x41;&hellip;\"", true, 100,
                "&lt; <b> \"'A\xE2\x80\xA6");
    check_clean("\"&nothing; & &; &#; &#x; &#0; &#xD800; &#x110000;\"", true, 100,
                "&nothing; & &; &#; &#x; &#0; \xEF\xBF\xBD \xEF\xBF\xBD");
    check_clean("\"a&#10;b&#x202e;c\"", true, 100, "a bc");
    check_clean("\"<a href='x\"", true, 100, "<a href='x");
}

static void text_is_cut_between_characters(void)
{
    check_clean("\"abcdef\"", false, 6, "abcdef");
    check_clean("\"abcdefg\"", false, 6, "abc\xE2\x80\xA6");
    check_clean("\"\\u00e4\\u00e4\\u00e4\\u00e4\"", false, 7, "\xC3\xA4\xC3\xA4\xE2\x80\xA6");
    check_clean("\"abcdef\"", false, 2, "ab");
    check_clean("\"abc   \"", false, 3, "abc");
}

static void dates_are_read_as_services_write_them(void)
{
    static const struct {
        const char *text, *date;
    } cases[] = {
        {"2024-03-05", "2024-03-05"},
        {"2024-03-05T09:48:00.000Z", "2024-03-05"},
        {"2024-03-05 09:48", "2024-03-05"},
        {"2024-02-29", "2024-02-29"},
        {"Mar 5, 2024", "2024-03-05"},
        {"March 15, 2024", "2024-03-15"},
        {"5 Mar 2024", "2024-03-05"},
        {"Tue, 05 Mar 2024 10:00:00 GMT", "2024-03-05"},
        {"5 minutes ago", "2026-01-02"},
        {"12 mins ago", "2026-01-01"},
        {"1 hour ago", "2026-01-01"},
        {"3 days ago", "2025-12-30"},
        {"2024-13-05", NULL},
        {"2024-02-30", NULL},
        {"2024-3-5", NULL},
        {"0000-01-01", NULL},
        {"2024", NULL},
        {"March 2024", NULL},
        {"2 months ago", NULL},
        {"a year ago", NULL},
        {"3 days from now", NULL},
        {"", NULL},
        {"Mar 99, 2024", NULL},
        {"ma 5, 2024", NULL},
        {"1709632080", NULL},
        {"99999999999999 days ago", NULL},
    };
    const int64_t now_s = 1767312600; /* 2026-01-02, ten minutes past midnight */
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char date[SEARCH_DATE_SIZE];
        bool is_date = search_date(cases[i].text, now_s, date);
        CU_ASSERT_EQUAL(is_date, cases[i].date != NULL);
        if (is_date && cases[i].date != NULL) {
            CU_ASSERT_STRING_EQUAL(date, cases[i].date);
        }
    }
}

static void hosts_are_found_in_domains_and_addresses(void)
{
    static const struct {
        const char *domain, *host;
    } domains[] = {{"a.example", "a.example"},
                   {"a.example/x", "a.example"},
                   {"HTTPS://a.example:80/x", "a.example"},
                   {"m\xC3\xBCnchen.example", "m\xC3\xBCnchen.example"},
                   {"", NULL},
                   {"/x", NULL},
                   {"*.example", NULL},
                   {"-a.example", NULL},
                   {".example", NULL},
                   {"a b", NULL},
                   {"a\"b", NULL}},
      urls[] = {{"https://a.example/x", "a.example"},
                {"http://a.example:80", "a.example"},
                {"https://a.example?x@y", "a.example"},
                {"https://u@a.example", NULL},
                {"https://a.example\\@b.example", "a.example"},
                {"https:///x", NULL},
                {"data:text/html,x", NULL},
                {"https://a.example/\xFF", NULL}};
    struct search_host host;
    for (size_t i = 0; i < COUNT_OF(domains); i++) {
        bool is_host = search_domain_host(domains[i].domain, &host);
        CU_ASSERT_EQUAL(is_host, domains[i].host != NULL);
        CU_ASSERT_TRUE(!is_host || (host.len == strlen(domains[i].host) &&
                                    memcmp(host.data, domains[i].host, host.len) == 0));
    }
    for (size_t i = 0; i < COUNT_OF(urls); i++) {
        bool is_host = search_url_host(urls[i].domain, strlen(urls[i].domain), &host);
        CU_ASSERT_EQUAL(is_host, urls[i].host != NULL);
        CU_ASSERT_TRUE(!is_host || (host.len == strlen(urls[i].host) &&
                                    memcmp(host.data, urls[i].host, host.len) == 0));
    }
}

static void arrays_are_read_element_by_element(void)
{
    static const char text[] = " [ 1 , \"a\" ,{\"b\":[]}, [2] ] ";
    static const char *const elements[] = {"1", "\"a\"", "{\"b\":[]}", "[2]"};
    struct json_value value;
    struct json_reader reader = json_reader_of(text, sizeof text - 1);
    for (size_t i = 0; i < COUNT_OF(elements); i++) {
        CU_ASSERT_TRUE_FATAL(json_next_element(&reader, &value));
        CU_ASSERT_EQUAL(value.len, strlen(elements[i]));
        CU_ASSERT_EQUAL(memcmp(value.data, elements[i], value.len), 0);
    }
    CU_ASSERT_FALSE(json_next_element(&reader, &value));
    CU_ASSERT_PTR_NULL(reader.problem);
}

static void arrays_that_are_none_have_a_problem(void)
{
    static const struct {
        const char *text, *problem;
    } cases[] = {{"", "the text is empty"},
                 {"{}", "not an array"},
                 {"[1", "the text ends within an array"},
                 {"[1,", "the text ends where a value should stand"},
                 {"[1 2]", "expected a comma or the end of an array"},
                 {"[,]", "not a value"},
                 {"[]x", "more text behind the array"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct json_value value;
        struct json_reader reader = json_reader_of(cases[i].text, strlen(cases[i].text));
        while (json_next_element(&reader, &value)) {
        }
        CU_ASSERT_PTR_NOT_NULL_FATAL(reader.problem);
        CU_ASSERT_STRING_EQUAL(reader.problem, cases[i].problem);
    }
}

static const struct test tests[] = {
    TEST(text_is_cleaned),
    TEST(tags_and_entities_are_taken_out_once),
    TEST(text_is_cut_between_characters),
    TEST(dates_are_read_as_services_write_them),
    TEST(hosts_are_found_in_domains_and_addresses),
    TEST(arrays_are_read_element_by_element),
    TEST(arrays_that_are_none_have_a_problem),
};

int main(int argc, char **argv)
{
    sg = host_table();
    return run_tests("search_parts", tests, COUNT_OF(tests), argc, argv);
}
