/* core/surface/search_options: one form for what clients ask of the hosted search, and what is refused. */
#include "base/check.h"
#include "cunit_main.h"
#include "surface/search_options.h"

#include <stdio.h>
#include <string.h>

/* A request's values by their names here, e.g. {"blocked":["a.test"]}. */
static int write_options(const char *json, bool either, struct arena *arena, struct str *ret,
                         struct sg_error *err)
{
    static const char *const names[] = {"max_uses", "allowed", "blocked", "location", "size"};
    const struct json_value *values[COUNT_OF(names)] = {NULL};
    struct json_text text;
    CHECK(json_scan(str_of(json), arena, &text, err) == SG_OK);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const struct json_member *member = json_find(text.members, text.count, names[i]);
        values[i] = member == NULL ? NULL : &member->value;
    }
    struct search_asked asked = {.max_uses = {"max_uses", values[0]},
                                 .allowed = {"filters.allowed_domains", values[1]},
                                 .blocked = {"filters.blocked_domains", values[2]},
                                 .location = {"user_location", values[3]},
                                 .context_size = {"search_context_size", values[4]},
                                 .either_domains = either};
    return search_options_write(&asked, "tools[1]", arena, ret, err);
}

static void what_is_asked_is_written_in_one_form(void)
{
    static const struct {
        const char *asked, *written;
    } rows[] = {
        {"{}", ""},
        {"{\"max_uses\":null,\"allowed\":null,\"blocked\":[],\"location\":null,\"size\":null}", ""},
        {"{\"max_uses\":3}", "{\"max_uses\":3}"},
        {"{\"allowed\":[\"a.test\", \"b\\u002etest\"],\"size\":\"l\\u006fw\"}",
         "{\"allowed_domains\":[\"a.test\", \"b\\u002etest\"],\"context_size\":\"low\"}"},
        {"{\"blocked\":[\"a.test\"],\"size\":\"high\"}",
         "{\"blocked_domains\":[\"a.test\"],\"context_size\":\"high\"}"},
        {"{\"location\":{\"type\":\"approximate\",\"city\":\"Utrecht\",\"country\":\"NL\","
         "\"region\":null,"
         "\"timezone\":\"Europe/Amsterdam\",\"other\":1}}",
         "{\"city\":\"Utrecht\",\"country\":\"NL\",\"timezone\":\"Europe/Amsterdam\"}"},
        {"{\"allowed\":[\"a.test\"],\"blocked\":[\"b.test\"]}",
         "{\"allowed_domains\":[\"a.test\"],\"blocked_domains\":[\"b.test\"]}"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena *arena = arena_new(0);
        struct sg_error err = {0};
        struct str ret;
        CU_ASSERT_EQUAL(write_options(rows[i].asked, false, arena, &ret, &err), SG_OK);
        CU_ASSERT_TRUE(str_is(ret, rows[i].written));
        arena_free(arena);
    }
}

static void what_cannot_be_heeded_is_refused_with_its_place(void)
{
    static const struct {
        const char *asked, *param, *message;
    } rows[] = {
        {"{\"max_uses\":0}", "tools[1].max_uses",
         "tools[1].max_uses must be a whole number from 1 on"},
        {"{\"max_uses\":\"3\"}", "tools[1].max_uses",
         "tools[1].max_uses must be a whole number from 1 on"},
        {"{\"max_uses\":1.5}", "tools[1].max_uses",
         "tools[1].max_uses must be a whole number from 1 on"},
        {"{\"allowed\":\"a.test\"}", "tools[1].filters.allowed_domains",
         "tools[1].filters.allowed_domains must be an array of domains"},
        {"{\"allowed\":[\"a.test\",1]}", "tools[1].filters.allowed_domains",
         "tools[1].filters.allowed_domains must hold domains alone, as in \"example.com\" or "
         "\"example.com/blog\""},
        {"{\"blocked\":[\"*.evil.example\"]}", "tools[1].filters.blocked_domains",
         "tools[1].filters.blocked_domains must hold domains alone, as in \"example.com\" or "
         "\"example.com/blog\""},
        {"{\"allowed\":[\"evil.example\\u0000.x\"]}", "tools[1].filters.allowed_domains",
         "tools[1].filters.allowed_domains must hold domains alone, as in \"example.com\" or "
         "\"example.com/blog\""},
        {"{\"blocked\":[\"\"]}", "tools[1].filters.blocked_domains",
         "tools[1].filters.blocked_domains must hold domains alone, as in \"example.com\" or "
         "\"example.com/blog\""},
        {"{\"allowed\":[\"a.test\"],\"blocked\":[\"b.test\"]}", "tools[1].filters.blocked_domains",
         "tools[1].filters.blocked_domains must not stand beside allowed_domains"},
        {"{\"location\":\"NL\"}", "tools[1].user_location",
         "tools[1].user_location must be an object"},
        {"{\"location\":{\"country\":31}}", "tools[1].user_location.country",
         "tools[1].user_location.country must be a string"},
        {"{\"size\":\"huge\"}", "tools[1].search_context_size",
         "tools[1].search_context_size must be \"low\", \"medium\" or \"high\""},
        {"{\"size\":3}", "tools[1].search_context_size",
         "tools[1].search_context_size must be \"low\", \"medium\" or \"high\""},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena *arena = arena_new(0);
        struct sg_error err = {0};
        struct str ret;
        CU_ASSERT_EQUAL(write_options(rows[i].asked, true, arena, &ret, &err), SG_E_INVALID);
        CU_ASSERT_STRING_EQUAL(err.param, rows[i].param);
        CU_ASSERT_STRING_EQUAL(err.message, rows[i].message);
        arena_free(arena);
    }
}

static void doubled_members_of_a_place_and_long_lists_are_refused(void)
{
    struct arena *arena = arena_new(0);
    struct sg_error err = {0};
    struct str ret;
    CU_ASSERT_EQUAL(write_options("{\"location\":{\"country\":\"NL\",\"country\":\"DE\"}}", false,
                                  arena, &ret, &err),
                    SG_E_INVALID);
    BUF_CLEANUP struct buf list = {0};
    (void)buf_puts(&list, "{\"allowed\":[\"a\"");
    for (int i = 0; i < 100; i++) {
        (void)buf_puts(&list, ",\"a\"");
    }
    (void)buf_append(&list, "]}", 3);
    CU_ASSERT_EQUAL(write_options(list.data, false, arena, &ret, &err), SG_E_INVALID);
    CU_ASSERT_STRING_EQUAL(err.message,
                           "tools[1].filters.allowed_domains must hold no more than 100 domains");
    arena_free(arena);
}

static const struct test tests[] = {TEST(what_is_asked_is_written_in_one_form),
                                    TEST(what_cannot_be_heeded_is_refused_with_its_place),
                                    TEST(doubled_members_of_a_place_and_long_lists_are_refused)};

int main(int argc, char **argv)
{
    return run_tests("search_options", tests, COUNT_OF(tests), argc, argv);
}
