/* Folders of a sandbox: what envd's listing becomes, and what of it is not believed. */
#include "envd_fixture.h"

static int list(struct fixture *f, const char *path)
{
    return e2b_list(f->e2b, f->call, ID, path, call_error(f->call));
}

static void a_folder_is_listed_with_absolute_paths(void)
{
    static const char answer[] =
        "{\"entries\":[{\"name\":\"a\\\"\\u00e4.txt\",\"type\":\"FILE_TYPE_FILE\",\"path\":\"/"
        "z\",\"size\":"
        "\"5\",\"mode\":420,\"modifiedTime\":\"2026-01-02T03:04:05.678Z\"},\n {\"name\":\"sub\","
        "\"type\":\"FILE_TYPE_DIRECTORY\"},{\"name\":\"link\",\"type\":\"FILE_TYPE_SYMLINK\","
        "\"size\":7,\"metadata\":{\"a\":[1,{\"b\":\"]},{\"}]}},{\"name\":\"huge\",\"type\":"
        "\"FILE_TYPE_FILE\",\"size\":\"9223372036854775807\"}]}";
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    reply(&f, 200, answer);
    CU_ASSERT_EQUAL(list(&f, "d//./e/"), 0);
    expect_request(&f, 0, "POST", ENVD "/filesystem.Filesystem/ListDir");
    CU_ASSERT_STRING_EQUAL(f.call->requests[0].body, "{\"path\":\"/home/user/d/e\",\"depth\":1}");
    expect_header(&f, 0, "Content-Type", "application/json");
    expect_header(&f, 0, "Connect-Protocol-Version", "1");
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_FILE), 4);
    expect_text(
        &f, SG_OUT_FILE,
        "{\"path\":\"/home/user/d/e/a\\\"\xC3\xA4.txt\",\"size\":5,\"type\":\"file\"}"
        "{\"path\":\"/home/user/d/e/sub\",\"size\":0,\"type\":\"directory\"}"
        "{\"path\":\"/home/user/d/e/link\",\"size\":7,\"type\":\"other\"}"
        "{\"path\":\"/home/user/d/e/huge\",\"size\":9223372036854775807,\"type\":\"file\"}");
    fixture_free(&f);
}

static void the_root_and_the_home_are_listed_too(void)
{
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    reply(&f, 200, "{\"entries\":[{\"name\":\"etc\",\"type\":\"FILE_TYPE_DIRECTORY\"}]}");
    reply(&f, 200, "{\"entries\":[]}");
    reply(&f, 200, "{}");
    CU_ASSERT_EQUAL(list(&f, "/"), 0);
    CU_ASSERT_EQUAL(list(&f, ""), 0);
    CU_ASSERT_EQUAL(list(&f, "."), 0);
    CU_ASSERT_STRING_EQUAL(f.call->requests[0].body, "{\"path\":\"/\",\"depth\":1}");
    CU_ASSERT_STRING_EQUAL(f.call->requests[1].body, "{\"path\":\"/home/user\",\"depth\":1}");
    CU_ASSERT_STRING_EQUAL(f.call->requests[2].body, "{\"path\":\"/home/user\",\"depth\":1}");
    expect_text(&f, SG_OUT_FILE, "{\"path\":\"/etc\",\"size\":0,\"type\":\"directory\"}");
    fixture_free(&f);
}

/* A service that lies: names that would lead elsewhere, sizes that are none. */
static void what_is_no_entry_is_left_out(void)
{
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    reply(
        &f, 200,
        "{\"entries\":[{\"name\":\"../../etc\"},{\"name\":\"\"},{\"name\":\"a\\u0000b\"},{},7,null,"
        "[[]],{\"name\":\"n\",\"size\":-1},{\"name\":\"n\",\"size\":\"9223372036854775808\"},"
        "{\"name\":\"n\",\"size\":1.5},{\"name\":[\"n\"]},{\"name\":\"good\",\"type\":3}]}");
    CU_ASSERT_EQUAL(list(&f, "/d"), 0);
    expect_text(&f, SG_OUT_FILE, "{\"path\":\"/d/good\",\"size\":0,\"type\":\"other\"}");
    fixture_free(&f);
}

static void a_name_has_at_most_255_bytes(void)
{
    struct fixture f;
    char answer[700], name[257];
    memset(name, 'n', 256);
    name[256] = '\0';
    begin(&f, OF_VERSION("0.5.7"));
    snprintf(answer, sizeof answer, "{\"entries\":[{\"name\":\"%s\"},{\"name\":\"%s\"}]}", name,
             name + 1);
    reply(&f, 200, answer);
    CU_ASSERT_EQUAL(list(&f, "/"), 0);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_FILE), 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(call_text(f.call, SG_OUT_FILE), name + 1));
    fixture_free(&f);
}

static void a_folder_of_too_many_entries_is_refused(void)
{
    struct fixture f;
    struct text answer = {0};
    begin(&f, OF_VERSION("0.5.7"));
    text_puts(&answer, "{\"entries\":[{\"name\":\"a\"}");
    for (int i = 1; i < 10000; i++) {
        text_puts(&answer, ",{\"name\":\"a\"}");
    }
    size_t len = answer.len;
    text_puts(&answer, "]}");
    reply(&f, 200, answer.data);
    CU_ASSERT_EQUAL(list(&f, "/d"), 0);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_FILE), 10000);
    next_call(&f);
    answer.len = len;
    text_puts(&answer, ",{\"name\":\"a\"}]}");
    reply(&f, 200, answer.data);
    CU_ASSERT_EQUAL(list(&f, "/d"), SG_E_LIMIT);
    expect_message(&f, "'/d' has more than 10000 entries");
    text_clear(&answer);
    fixture_free(&f);
}

static void a_listing_that_is_larger_than_any_is_refused(void)
{
    struct fixture f;
    size_t len = ((size_t)8 << 20) + 1;
    char *answer = malloc(len + 1);
    memset(answer, ' ', len);
    answer[len] = '\0';
    begin(&f, OF_VERSION("0.5.7"));
    reply(&f, 200, answer);
    CU_ASSERT_EQUAL(list(&f, "/d"), SG_E_LIMIT);
    expect_message(&f, "'/d' has more than 10000 entries");
    free(answer);
    fixture_free(&f);
}

static void a_listing_that_is_none_is_told_as_such(void)
{
    static const char *const answers[] = {
        "<html>", "", "[]", "{\"entries\":{}}", "{\"entries\":null}", "{\"entries\":[}"};
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        struct fixture f;
        begin(&f, OF_VERSION("0.5.7"));
        reply(&f, 200, answers[i]);
        CU_ASSERT_EQUAL(list(&f, "/d"), SG_E_UNAVAILABLE);
        expect_message(&f, "the sandbox answered the listing of a folder with something else; is "
                           "there an E2B sandbox behind 'sandbox_url' or 'domain'?");
        fixture_free(&f);
    }
}

static const struct test tests[] = {
    TEST(a_folder_is_listed_with_absolute_paths),
    TEST(the_root_and_the_home_are_listed_too),
    TEST(what_is_no_entry_is_left_out),
    TEST(a_name_has_at_most_255_bytes),
    TEST(a_folder_of_too_many_entries_is_refused),
    TEST(a_listing_that_is_larger_than_any_is_refused),
    TEST(a_listing_that_is_none_is_told_as_such),
};

int main(int argc, char **argv)
{
    return run_tests("e2b_list", tests, COUNT_OF(tests), argc, argv);
}
