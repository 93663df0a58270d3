/* core/surface/citations: which parts of a text name a page that was found, counted in code points, whatever pieces the text
 * comes in. */
#include "base/check.h"
#include "cunit_main.h"
#include "surface/citations.h"

#include <stdio.h>
#include <string.h>

struct fixture {
    struct arena *arena;
    struct cited_pages pages;
};

static void setup(struct fixture *f)
{
    *f = (struct fixture){.arena = arena_new(0)};
}

static void teardown(struct fixture *f)
{
    arena_free(f->arena);
}

static void search(struct fixture *f, const char *const *urls)
{
    struct surface_output outputs[64];
    struct surface_result result = {.outputs = outputs};
    for (; urls[result.outputs_count] != NULL; result.outputs_count++) {
        CHECK(result.outputs_count < 64);
        outputs[result.outputs_count] = (struct surface_output){
            SG_OUT_HIT, str_of(arena_printf(f->arena,
                                            "{\"title\":\"T%zu\",\"url\":\"%s\",\"snippet\":\"s\","
                                            "\"date\":null}",
                                            result.outputs_count, urls[result.outputs_count]))};
    }
    cited_pages_add(&f->pages, &result, f->arena);
}

static void put_found(const struct buf *found, struct buf *out)
{
    const struct citation *citations = (const void *)found->data;
    for (size_t i = 0; i < found->len / sizeof *citations; i++) {
        (void)buf_printf(out, "%s%zu-%zu %.*s", i > 0 ? ", " : "", citations[i].start,
                         citations[i].end, (int)citations[i].page->url.len,
                         citations[i].page->url.data);
    }
}

/* "START-END URL, …", the text read in pieces of so many bytes. */
static void read_in_pieces(struct fixture *f, const char *text, size_t piece, struct buf *out)
{
    BUF_CLEANUP struct buf found = {0};
    struct citation_reader reader = {.pages = &f->pages};
    size_t len = strlen(text);
    for (size_t at = 0; at < len; at += piece) {
        size_t more = len - at < piece ? len - at : piece;
        citation_reader_feed(&reader, (struct str){text + at, more}, false, &found);
    }
    citation_reader_feed(&reader, (struct str){0}, true, &found);
    citation_reader_clear(&reader);
    buf_reset(out);
    put_found(&found, out);
}

static void assert_cites(struct fixture *f, const char *text, const char *expected)
{
    static const size_t pieces[] = {1, 2, 3, 5, 7, 1000};
    BUF_CLEANUP struct buf out = {0};
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        read_in_pieces(f, text, pieces[i], &out);
        if (!str_is(buf_str(&out), expected)) {
            printf("\n%s\n  in pieces of %zu: %.*s\n", text, pieces[i], (int)out.len, out.data);
        }
        CU_ASSERT_TRUE(str_is(buf_str(&out), expected));
    }
}

static const char *const two_pages[] = {"https://a.test/x", "https://b.test/", NULL};

static void a_url_is_cited_where_it_stands_alone(void)
{
    static const struct {
        const char *text, *found;
    } rows[] = {
        {"https://a.test/x", "0-16 https://a.test/x"},
        {"See https://a.test/x.", "4-20 https://a.test/x"},
        {"(https://a.test/x), and <https://b.test/>!",
         "1-17 https://a.test/x, 25-40 https://b.test/"},
        {"**https://a.test/x**", "2-18 https://a.test/x"},
        {"`https://a.test/x`?", "1-17 https://a.test/x"},
        {"https://a.test/x/ is", "0-17 https://a.test/x"},
        {"https://b.test is", "0-14 https://b.test/"},
        {"https://b.test, is", "0-14 https://b.test/"},
        {"https://a.test/x#part-2.", "0-23 https://a.test/x"},
        {"https://a.test/x\xE3\x80\x82", "0-16 https://a.test/x"},
        {"https://a.test/xy", ""},
        {"https://a.test/x/y", ""},
        {"https://a.test/x.html", ""},
        {"https://a.test/x?p=1", ""},
        {"https://b.test/\xE4\xB8\xAD", ""},
        {"https://b.testing/", ""},
        {"http://a.test/x", ""},
        {"https://archive.test/https://a.test/x", ""},
        {"?to=https://a.test/x", ""},
        {"xhttps://a.test/x", ""},
        {"h ht https:// https://a.tes", ""},
    };
    struct fixture f;
    setup(&f);
    search(&f, two_pages);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_cites(&f, rows[i].text, rows[i].found);
    }
    teardown(&f);
}

static void a_link_is_cited_as_a_whole(void)
{
    static const struct {
        const char *text, *found;
    } rows[] = {
        {"As [A](https://a.test/x) says", "3-24 https://a.test/x"},
        {"As ([A](https://a.test/x)).", "3-26 https://a.test/x"},
        {"As ([A](https://a.test/x) says)", "4-25 https://a.test/x"},
        {"[A](<https://a.test/x>)", "0-23 https://a.test/x"},
        {"[A](https://a.test/x \"The A\")", "0-29 https://a.test/x"},
        {"[https://a.test/x](https://a.test/x)", "0-36 https://a.test/x"},
        {"[a [A](https://b.test/)", "3-23 https://b.test/"},
        {"[A](https://c.test/)", ""},
        {"[A](https://a.test/x", "4-20 https://a.test/x"},
        {"[A] (https://a.test/x)", "5-21 https://a.test/x"},
        {"[A](https://a.test/x)[B](https://b.test/)",
         "0-21 https://a.test/x, 21-41 https://b.test/"},
    };
    struct fixture f;
    setup(&f);
    search(&f, two_pages);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_cites(&f, rows[i].text, rows[i].found);
    }
    teardown(&f);
}

static void the_longest_url_is_meant(void)
{
    static const char *const urls[] = {"https://a.test/", "https://a.test/C",
                                       "https://a.test/C_(x)", NULL};
    struct fixture f;
    setup(&f);
    search(&f, urls);
    assert_cites(&f, "https://a.test/C_(x) https://a.test/C, https://a.test",
                 "0-20 https://a.test/C_(x), 21-37 https://a.test/C, 39-53 https://a.test/");
    assert_cites(&f, "(https://a.test/C_(x))", "1-21 https://a.test/C_(x)");
    teardown(&f);
}

/* C112 */
static void spans_count_code_points(void)
{
    struct fixture f;
    setup(&f);
    search(&f, two_pages);
    assert_cites(
        &f, "\xF0\x9F\x8C\xA6 \xE6\x9D\xB1\xE4\xBA\xAC\xE3\x81\xAF\xE6\x99\xB4\xE3\x82\x8C [1] ok",
        "8-11 https://a.test/x");
    assert_cites(&f, "\xC3\xA4\xC3\xB6 https://b.test/ \xF0\x9F\x8C\xA6[2]",
                 "3-18 https://b.test/, 20-23 https://b.test/");
    teardown(&f);
}

static void a_number_means_a_page_of_the_only_search(void)
{
    static const char *const third[] = {"https://c.test/", NULL}, *const none[] = {NULL};
    struct fixture f;
    setup(&f);
    assert_cites(&f, "It is so [1].", "");
    search(&f, two_pages);
    search(&f, none);
    assert_cites(&f, "It is so [1][2], not [3], [0], [1x] or [0001].",
                 "9-12 https://a.test/x, 12-15 https://b.test/");
    assert_cites(&f, "[1](https://b.test/) [1](mailto:x)", "0-20 https://b.test/");
    search(&f, third);
    assert_cites(&f, "It is so [1].", "");
    assert_cites(&f, "It is so: https://c.test/", "10-25 https://c.test/");
    teardown(&f);
}

static void pages_that_are_no_hits_are_not_cited(void)
{
    struct surface_output outputs[] = {
        {SG_OUT_RESULT, STR("{\"url\":\"https://a.test/\"}")},
        {SG_OUT_HIT, STR("{\"url\":")},
        {SG_OUT_HIT, STR("{\"title\":\"no URL\"}")},
    };
    struct surface_result result = {.outputs = outputs, .outputs_count = 3};
    struct fixture f;
    setup(&f);
    cited_pages_add(&f.pages, &result, f.arena);
    assert_cites(&f, "https://a.test/ and nothing", "");
    teardown(&f);
}

static void any_bytes_are_read_and_little_is_held(void)
{
    static const char *const starts[] = {
        "[",    "(",       "([", "https://a.test/x", "[1](", "h", "[1](https://a.test/x ",
        "\xC3", "\xF0\x9F"};
    struct fixture f;
    setup(&f);
    search(&f, two_pages);
    for (size_t i = 0; i < COUNT_OF(starts); i++) {
        BUF_CLEANUP struct buf found = {0};
        struct citation_reader reader = {.pages = &f.pages};
        for (size_t k = 0; k < 20000; k++) {
            citation_reader_feed(&reader, str_of(starts[i]), false, &found);
            CU_ASSERT_TRUE(reader.held.len < 4096);
        }
        citation_reader_feed(&reader, STR("\0\0"), true, &found);
        CU_ASSERT_EQUAL(reader.held.len, 0);
        citation_reader_clear(&reader);
    }
    teardown(&f);
}

static void only_so_many_are_cited_in_a_text(void)
{
    BUF_CLEANUP struct buf found = {0};
    struct fixture f;
    setup(&f);
    search(&f, two_pages);
    struct citation_reader reader = {.pages = &f.pages};
    for (size_t i = 0; i <= CITATIONS_PER_TEXT_MAX; i++) {
        citation_reader_feed(&reader, STR("[1] "), false, &found);
    }
    citation_reader_feed(&reader, (struct str){0}, true, &found);
    CU_ASSERT_EQUAL(found.len, CITATIONS_PER_TEXT_MAX * sizeof(struct citation));
    CU_ASSERT_EQUAL(reader.at, 4 * (CITATIONS_PER_TEXT_MAX + 1));
    citation_reader_clear(&reader);
    teardown(&f);
}

/* Texts that begin as a thousand long URLs do, again and again: as a forged history can have them. */
static void an_answer_costs_so_much_at_most(void)
{
    struct fixture f;
    char url[2000], hit[2400], text[8192];
    setup(&f);
    memset(url, 'a', sizeof url);
    for (size_t i = 0; i < CITED_PAGES_MAX; i++) {
        int len = snprintf(hit, sizeof hit, "{\"url\":\"https://a.test/%.1900s%04zu\"}", url, i);
        struct surface_output output = {SG_OUT_HIT, {hit, (size_t)len}};
        struct surface_result result = {.outputs = &output, .outputs_count = 1};
        cited_pages_add(&f.pages, &result, f.arena);
    }
    size_t len = (size_t)snprintf(text, sizeof text, "https://a.test/%.1900s- ", url);
    for (size_t block = 0; block < 2000; block++) {
        BUF_CLEANUP struct buf found = {0};
        struct citation_reader reader = {.pages = &f.pages};
        citation_reader_feed(&reader, (struct str){text, len}, true, &found);
        citation_reader_clear(&reader);
        CU_ASSERT_TRUE(f.pages.compared <= (64 << 20) + CITED_PAGES_MAX * 2048);
    }
    CU_ASSERT_EQUAL(f.pages.count, CITED_PAGES_MAX);
    teardown(&f);
}

static const struct test tests[] = {TEST(a_url_is_cited_where_it_stands_alone),
                                    TEST(a_link_is_cited_as_a_whole),
                                    TEST(the_longest_url_is_meant),
                                    TEST(spans_count_code_points),
                                    TEST(a_number_means_a_page_of_the_only_search),
                                    TEST(pages_that_are_no_hits_are_not_cited),
                                    TEST(any_bytes_are_read_and_little_is_held),
                                    TEST(only_so_many_are_cited_in_a_text),
                                    TEST(an_answer_costs_so_much_at_most)};

int main(int argc, char **argv)
{
    return run_tests("citations", tests, COUNT_OF(tests), argc, argv);
}
