/* core/base/json: what is accepted and refused, where, with which words; what the readers make of it. Random texts, whole
 * and damaged, are judged by cJSON too, where cJSON is right. */
#include "base/check.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "cunit_main.h"
#include "random_json.h"

#define SANDGATE_PORTABLE
#include "base/json_string.h"

#include <cjson/cJSON.h>
#include <stdlib.h>

/* Scans; the message, or "" if the text is good. In an exact heap copy, so that reading past its end is seen. */
static const char *scan_message(struct str text)
{
    static struct sg_error err;
    err = (struct sg_error){0};
    char *exact = check_alloc(malloc(text.len + (text.len == 0)));
    if (text.len > 0) {
        memcpy(exact, text.data, text.len);
    }
    struct arena *arena = arena_new(0);
    struct json_text scanned;
    int code = json_scan((struct str){exact, text.len}, arena, &scanned, &err);
    CU_ASSERT_EQUAL(code, err.message[0] == '\0' ? SG_OK : SG_E_INVALID);
    arena_free(arena);
    free(exact);
    return err.message;
}

static void good_texts_of_every_kind_are_accepted(void)
{
    static const char *const good[] = {
        "0",
        "-0",
        "1e400",
        "-1.50E+07",
        "\"\"",
        "null",
        " \t\r\n true \n",
        "[]",
        "{}",
        "[ ]",
        "{ }",
        "[1,[2,[3]],{}]",
        "{\"a\":{\"b\":[null,false]}}",
        "\"\\ud800\"",
        "\"\\u0000\"",
        "\"\x7F\"",
        "{\"a\":1,\"A\":2}",
        "123456789012345678901234567890.000",
        "\"\xF4\x8F\xBF\xBF\"",
        "\"sixteen bytes...and more, then an escape \\n and some more text\"",
        "{\"\":{\"\":0}}"};
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        CU_ASSERT_STRING_EQUAL(scan_message(str_of(good[i])), "");
    }
}

static void bad_texts_are_refused_with_place_and_cause(void)
{
    static const struct {
        struct str text;
        const char *message;
    } bad[] = {
        {STR(""), "invalid JSON at byte 0: the text ends where a value is expected"},
        {STR("  "), "invalid JSON at byte 2: the text ends where a value is expected"},
        {STR("nul"), "invalid JSON at byte 0: expected a value"},
        {STR("tru"), "invalid JSON at byte 0: expected a value"},
        {STR("NaN"), "invalid JSON at byte 0: expected a value"},
        {STR("nullx"), "invalid JSON at byte 4: more text after the value"},
        {STR("{} {}"), "invalid JSON at byte 3: more text after the value"},
        {STR("01"), "invalid JSON at byte 0: a number must not start with 0"},
        {STR("-"), "invalid JSON at byte 1: a digit is missing"},
        {STR("+1"), "invalid JSON at byte 0: expected a value"},
        {STR(".5"), "invalid JSON at byte 0: expected a value"},
        {STR("1."), "invalid JSON at byte 2: a digit is missing after the decimal point"},
        {STR("1e"), "invalid JSON at byte 2: a digit is missing in the exponent"},
        {STR("1e+"), "invalid JSON at byte 3: a digit is missing in the exponent"},
        {STR("[1,]"), "invalid JSON at byte 3: expected a value"},
        {STR("[1 2]"), "invalid JSON at byte 3: expected ',' or ']'"},
        {STR("[1"), "invalid JSON at byte 2: expected ',' or ']'"},
        {STR("[1}"), "invalid JSON at byte 2: expected ',' or ']'"},
        {STR("{\"a\":1"), "invalid JSON at byte 6: expected ',' or '}'"},
        {STR("{\"a\":1,}"), "invalid JSON at byte 7: expected a key in quotes"},
        {STR("{a:1}"), "invalid JSON at byte 1: expected a key in quotes"},
        {STR("{\"a\" 1}"), "invalid JSON at byte 5: expected ':' after the key"},
        {STR("{\"a\":}"), "invalid JSON at byte 5: expected a value"},
        {STR("\"abc"), "invalid JSON at byte 0: the string has no closing quote"},
        {STR("\"abc\\"), "invalid JSON at byte 4: not an escape sequence of JSON"},
        {STR("\"\\x\""), "invalid JSON at byte 1: not an escape sequence of JSON"},
        {STR("\"\\u12G4\""), "invalid JSON at byte 1: not an escape sequence of JSON"},
        {STR("\"\\u12"), "invalid JSON at byte 1: not an escape sequence of JSON"},
        {STR("\"a\nb\""),
         "invalid JSON at byte 2: a control character in a string must be escaped"},
        {STR("\"a\0b\""),
         "invalid JSON at byte 2: a control character in a string must be escaped"},
        {STR("\"\xC0\x80\""), "invalid JSON at byte 1: not UTF-8"},
        {STR("\"\xED\xA0\x80\""), "invalid JSON at byte 1: not UTF-8"},
        {STR("\"\xE2\x82"), "invalid JSON at byte 1: not UTF-8"},
        {STR("[\xFF]"), "invalid JSON at byte 1: not UTF-8"},
        {STR("\xEF\xBB\xBF{}"), "invalid JSON at byte 0: a byte order mark; leave it out"},
        {STR("[1\0]"), "invalid JSON at byte 2: expected ',' or ']'"},
        {STR("{\"k\":1,\"\\u006b\":2}"), "duplicate key 'k'"},
        {STR("{\"k\":1,\"x\":0,\"k\":1}"), "duplicate key 'k'"},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        CU_ASSERT_STRING_EQUAL(scan_message(bad[i].text), bad[i].message);
    }
}

static struct buf nested(size_t depth)
{
    struct buf b = {0};
    for (size_t i = 0; i < depth; i++) {
        buf_puts(&b, i % 2 == 0 ? "[" : "{\"k\":");
    }
    buf_puts(&b, "1");
    for (size_t i = depth; i > 0; i--) {
        buf_puts(&b, i % 2 == 1 ? "]" : "}");
    }
    return b;
}

static void depth_is_good_to_the_limit_and_not_beyond(void)
{
    BUF_CLEANUP struct buf deep = nested(LIMIT_JSON_DEPTH);
    CU_ASSERT_STRING_EQUAL(scan_message(buf_str(&deep)), "");
    BUF_CLEANUP struct buf deeper = nested(LIMIT_JSON_DEPTH + 1);
    CU_ASSERT_STRING_EQUAL(scan_message(buf_str(&deeper)),
                           "JSON at byte 384: nested deeper than 128 levels");
    BUF_CLEANUP struct buf endless = nested(1000000);
    CU_ASSERT_STRING_EQUAL(scan_message(buf_str(&endless)),
                           "JSON at byte 384: nested deeper than 128 levels");
}

static void members_are_good_to_the_limit_and_not_beyond(void)
{
    BUF_CLEANUP struct buf many = {0};
    for (int i = 0; i < LIMIT_JSON_MEMBERS; i++) {
        buf_printf(&many, "%s\"%d\":0", i == 0 ? "{" : ",", i);
    }
    size_t len = many.len;
    buf_puts(&many, "}");
    CU_ASSERT_STRING_EQUAL(scan_message(buf_str(&many)), "");
    many.len = len;
    buf_puts(&many, ",\"77\":0}");
    CU_ASSERT_STRING_EQUAL(scan_message(buf_str(&many)),
                           "JSON at byte 35755: more than 4096 members in one object");
}

static void one_duplicate_among_many_members_is_found(void)
{
    BUF_CLEANUP struct buf many = {0};
    for (int i = 0; i < 1000; i++) {
        buf_printf(&many, "%s\"%d\":0", i == 0 ? "{" : ",", i);
    }
    buf_puts(&many, ",\"\\u0037\\u00377\":0}");
    CU_ASSERT_STRING_EQUAL(scan_message(buf_str(&many)), "duplicate key '777'");
}

static void members_of_the_top_level_are_noted(void)
{
    struct arena *arena = arena_new(0);
    struct sg_error err = {0};
    struct json_text text;
    CU_ASSERT_EQUAL(json_scan(STR(" { \"a\" : [1, {\"x\":2}] ,\"b\\u0063\":\"t\", \"\": -1.5e3 } "),
                              arena, &text, &err),
                    SG_OK);
    CU_ASSERT_EQUAL(text.root.type, JSON_OBJECT);
    CU_ASSERT_EQUAL(text.count, 3);
    CU_ASSERT_TRUE(str_is(text.members[0].key, "a"));
    CU_ASSERT_TRUE(str_is(text.members[0].value.raw, "[1, {\"x\":2}]"));
    CU_ASSERT_EQUAL(text.members[0].value.type, JSON_ARRAY);
    CU_ASSERT_TRUE(str_is(text.members[1].key, "bc"));
    CU_ASSERT_TRUE(str_is(text.members[1].key_raw, "\"b\\u0063\""));
    CU_ASSERT_TRUE(str_is(text.members[1].value.raw, "\"t\""));
    CU_ASSERT_TRUE(str_is(text.members[2].value.raw, "-1.5e3"));
    CU_ASSERT_PTR_EQUAL(json_find(text.members, text.count, "bc"), &text.members[1]);
    CU_ASSERT_PTR_NULL(json_find(text.members, text.count, "A"));
    arena_free(arena);
}

static void a_root_of_another_type_is_told(void)
{
    struct arena *arena = arena_new(0);
    struct sg_error err = {0};
    struct json_text text;
    CU_ASSERT_EQUAL(json_scan(STR(" [1] "), arena, &text, &err), SG_OK);
    CU_ASSERT_EQUAL(text.root.type, JSON_ARRAY);
    CU_ASSERT_TRUE(str_is(text.root.raw, "[1]"));
    CU_ASSERT_EQUAL(text.count, 0);
    arena_free(arena);
}

static void deeper_duplicates_are_the_readers_to_refuse(void)
{
    struct arena *arena = arena_new(0);
    struct sg_error err = {0};
    struct json_text text;
    CU_ASSERT_EQUAL(json_scan(STR("{\"m\":{\"k\":1,\"\\u006b\":2}}"), arena, &text, &err), SG_OK);
    struct json_member *members = NULL;
    size_t count = 0;
    CU_ASSERT_EQUAL(json_members(text.members[0].value, "metadata", arena, &members, &count, &err),
                    SG_E_INVALID);
    CU_ASSERT_STRING_EQUAL(err.message, "duplicate key 'k' in metadata");
    CU_ASSERT_STRING_EQUAL(err.param, "metadata");
    CU_ASSERT_PTR_NULL(members);
    arena_free(arena);
}

static void elements_are_listed_and_an_empty_array_has_none(void)
{
    struct arena *arena = arena_new(0);
    size_t count = 9;
    CU_ASSERT_PTR_NULL(json_elements((struct json_value){JSON_ARRAY, STR("[ ]")}, arena, &count));
    CU_ASSERT_EQUAL(count, 0);
    struct json_value array = {JSON_ARRAY, STR("[ 1 ,\"],\\\"\",[[]], {\"]\":[]}\n,null]")};
    struct json_value *elements = json_elements(array, arena, &count);
    CU_ASSERT_EQUAL_FATAL(count, 5);
    CU_ASSERT_TRUE(str_is(elements[0].raw, "1"));
    CU_ASSERT_TRUE(str_is(elements[1].raw, "\"],\\\"\""));
    CU_ASSERT_TRUE(str_is(elements[2].raw, "[[]]"));
    CU_ASSERT_TRUE(str_is(elements[3].raw, "{\"]\":[]}"));
    CU_ASSERT_EQUAL(elements[4].type, JSON_NULL);
    arena_free(arena);
}

static void strings_are_decoded_and_halves_of_pairs_replaced(void)
{
    static const struct {
        struct str raw, text;
    } cases[] = {
        {STR("\"\""), STR("")},
        {STR("\"plain\""), STR("plain")},
        {STR("\"a\\n\\t\\b\\f\\r\\/\\\\\\\"b\""), STR("a\n\t\b\f\r/\\\"b")},
        {STR("\"\\u00e4\\u20AC\""), STR("\xC3\xA4\xE2\x82\xAC")},
        {STR("\"\\ud83d\\ude00\""), STR("\xF0\x9F\x98\x80")},
        {STR("\"\\ud83d\""), STR("\xEF\xBF\xBD")},
        {STR("\"\\ude00x\""), STR("\xEF\xBF\xBDx")},
        {STR("\"\\ud83d\\ud83d\\ude00\""), STR("\xEF\xBF\xBD\xF0\x9F\x98\x80")},
        {STR("\"\\ud83d\\n\""), STR("\xEF\xBF\xBD\n")},
        {STR("\"a\\u0000b\""), STR("a\0b")},
    };
    struct arena *arena = arena_new(0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct json_value value = {JSON_STRING, cases[i].raw};
        CU_ASSERT_TRUE(str_eq(json_text_of(value, arena), cases[i].text));
    }
    arena_free(arena);
}

static bool int_of(const char *text, int64_t *ret)
{
    return json_int_of((struct json_value){json_type_of(text[0]), str_of(text)}, ret);
}

static void integers_are_exact_or_refused(void)
{
    int64_t value = 1;
    CU_ASSERT_TRUE(int_of("9007199254740993", &value));
    CU_ASSERT_EQUAL(value, INT64_C(9007199254740993));
    CU_ASSERT_TRUE(int_of("-9223372036854775808", &value));
    CU_ASSERT_EQUAL(value, INT64_MIN);
    CU_ASSERT_TRUE(int_of("9223372036854775807", &value));
    CU_ASSERT_EQUAL(value, INT64_MAX);
    CU_ASSERT_TRUE(int_of("-0", &value));
    CU_ASSERT_EQUAL(value, 0);
    value = 7;
    CU_ASSERT_FALSE(int_of("9223372036854775808", &value));
    CU_ASSERT_FALSE(int_of("-9223372036854775809", &value));
    CU_ASSERT_FALSE(int_of("1.0", &value));
    CU_ASSERT_FALSE(int_of("1e3", &value));
    CU_ASSERT_FALSE(int_of("\"1\"", &value));
    CU_ASSERT_EQUAL(value, 7);
}

static void keys_are_compared_as_decoded(void)
{
    CU_ASSERT_TRUE(json_key_is(STR("\"executed_tools\""), "executed_tools"));
    CU_ASSERT_TRUE(json_key_is(STR("\"executed\\u005ftools\""), "executed_tools"));
    CU_ASSERT_FALSE(json_key_is(STR("\"Executed_tools\""), "executed_tools"));
    CU_ASSERT_FALSE(json_key_is(STR("\"executed\\u005ftool\""), "executed_tools"));
    CU_ASSERT_FALSE(json_key_is(STR("\"\""), "executed_tools"));
}

/* The portable search (this file compiles it) agrees with a plain loop for every byte at every place. */
static void the_portable_search_finds_every_special_byte(void)
{
    char text[40];
    for (int byte = 0; byte < 256; byte++) {
        for (size_t at = 0; at < sizeof text; at++) {
            memset(text, 'a', sizeof text);
            text[at] = (char)byte;
            const char *end = text + sizeof text;
            bool special = byte < 0x20 || byte == '"' || byte == '\\' || byte >= 0x80;
            bool ends = byte == '"' || byte == '\\';
            CU_ASSERT_PTR_EQUAL(json_special_find(text, end), special ? text + at : end);
            CU_ASSERT_PTR_EQUAL(json_ends_find(text, end), ends ? text + at : end);
        }
    }
}

static void every_special_byte_is_found_at_every_place(void)
{
    for (size_t len = 0; len < 150; len++) {
        BUF_CLEANUP struct buf text = {0};
        buf_putc(&text, '"');
        for (size_t i = 0; i < len; i++) {
            buf_putc(&text, 'a');
        }
        buf_putc(&text, '\x01');
        for (size_t i = 0; i < 70; i++) {
            buf_putc(&text, 'b');
        }
        buf_putc(&text, '"');
        char wanted[96];
        (void)snprintf(wanted, sizeof wanted, /* fits */
                       "invalid JSON at byte %zu: a control character in a string must be escaped",
                       len + 1);
        CU_ASSERT_STRING_EQUAL(scan_message(buf_str(&text)), wanted);
    }
}

/* cJSON takes these for good, or differs by design: then it is no judge. */
static bool cjson_is_no_judge(struct str text)
{
    return memchr(text.data, '\0', text.len) != NULL || !utf8_valid(text);
}

static void random_texts_are_accepted_and_damaged_ones_judged_as_cjson_does(void)
{
    struct random r = {42};
    size_t refused = 0;
    for (int round = 0; round < 3000; round++) {
        BUF_CLEANUP struct buf text = {0};
        random_space(&r, &text);
        random_value(&r, &text, 6);
        random_space(&r, &text);
        CU_ASSERT_STRING_EQUAL(scan_message(buf_str(&text)), "");
        for (int damage = 0; damage < 4; damage++) {
            size_t at = random_below(&r, (uint32_t)text.len);
            text.data[at] = "{}[],:\"\\0e-. x\x01\xFF"[random_below(&r, 17)];
            if (scan_message(buf_str(&text))[0] == '\0') {
                if (!cjson_is_no_judge(buf_str(
                        &text))) { /* what we accept, cJSON accepts, but for lone surrogates */
                    cJSON *tree = cJSON_ParseWithLength(text.data, text.len);
                    CU_ASSERT_TRUE(tree != NULL || strstr(text.data, "\\u") != NULL);
                    cJSON_Delete(tree);
                }
            } else {
                refused++;
            }
        }
    }
    CU_ASSERT_TRUE(refused > 1000);
}

/* Every value that the walkers give is a text that scans by itself, and its decoded strings are those of cJSON. */
static void check_walk(struct json_value value, const cJSON *tree, struct arena *arena)
{
    struct sg_error err = {0};
    struct json_text again;
    CU_ASSERT_EQUAL(json_scan(value.raw, arena, &again, &err), SG_OK);
    CU_ASSERT_EQUAL(again.root.type, value.type);
    if (value.type == JSON_STRING && tree != NULL) {
        struct str text = json_text_of(value, arena);
        CU_ASSERT_TRUE(str_eq(text, str_of(tree->valuestring)));
    }
    if (value.type != JSON_ARRAY && value.type != JSON_OBJECT) {
        return;
    }
    const cJSON *child = tree == NULL ? NULL : tree->child;
    struct json_walk walk = json_walk_of(value);
    struct json_value inner;
    struct str key;
    while (value.type == JSON_ARRAY ? json_walk_element(&walk, &inner)
                                    : json_walk_member(&walk, &key, &inner)) {
        CU_ASSERT_TRUE(tree == NULL || child != NULL);
        check_walk(inner, child, arena);
        child = child == NULL ? NULL : child->next;
    }
    CU_ASSERT_PTR_NULL(child);
}

static void entering_an_element_passes_over_it_once(void)
{
    struct json_value array = {JSON_ARRAY,
                               STR("[ {\"a\":[{}] , \"b\":\"}\"} ,1, {} ,{\"c\":{\"d\":1}}]")};
    struct json_walk walk = json_walk_of(array), inner;
    struct json_value value;
    struct str key;
    CU_ASSERT_TRUE_FATAL(json_walk_enter(&walk, &inner));
    CU_ASSERT_TRUE(json_walk_member(&inner, &key, &value));
    CU_ASSERT_TRUE(str_is(value.raw, "[{}]"));
    CU_ASSERT_TRUE(json_walk_member(&inner, &key, &value));
    CU_ASSERT_TRUE(str_is(value.raw, "\"}\""));
    CU_ASSERT_FALSE(json_walk_member(&inner, &key, &value));
    json_walk_leave(&walk, &inner);
    CU_ASSERT_FALSE(json_walk_enter(&walk, &inner));
    CU_ASSERT_TRUE(json_walk_element(&walk, &value));
    CU_ASSERT_TRUE(str_is(value.raw, "1"));
    CU_ASSERT_TRUE_FATAL(json_walk_enter(&walk, &inner));
    CU_ASSERT_FALSE(json_walk_member(&inner, &key, &value));
    json_walk_leave(&walk, &inner);
    CU_ASSERT_TRUE_FATAL(json_walk_enter(&walk, &inner));
    CU_ASSERT_TRUE(json_walk_member(&inner, &key, &value));
    CU_ASSERT_TRUE(str_is(value.raw, "{\"d\":1}"));
    CU_ASSERT_FALSE(json_walk_member(&inner, &key, &value));
    json_walk_leave(&walk, &inner);
    CU_ASSERT_FALSE(json_walk_enter(&walk, &inner));
    CU_ASSERT_FALSE(json_walk_element(&walk, &value));
}

static void walking_gives_what_cjson_gives(void)
{
    struct random r = {7};
    for (int round = 0; round < 1000; round++) {
        BUF_CLEANUP struct buf text = {0};
        random_value(&r, &text, 6);
        struct arena *arena = arena_new(0);
        struct sg_error err = {0};
        struct json_text scanned;
        CU_ASSERT_EQUAL_FATAL(json_scan(buf_str(&text), arena, &scanned, &err), SG_OK);
        cJSON *tree = cJSON_ParseWithLength(text.data, text.len); /* NULL for lone surrogates */
        check_walk(scanned.root, tree, arena);
        cJSON_Delete(tree);
        arena_free(arena);
    }
}

static const struct test tests[] = {
    TEST(good_texts_of_every_kind_are_accepted),
    TEST(bad_texts_are_refused_with_place_and_cause),
    TEST(depth_is_good_to_the_limit_and_not_beyond),
    TEST(members_are_good_to_the_limit_and_not_beyond),
    TEST(one_duplicate_among_many_members_is_found),
    TEST(members_of_the_top_level_are_noted),
    TEST(a_root_of_another_type_is_told),
    TEST(deeper_duplicates_are_the_readers_to_refuse),
    TEST(elements_are_listed_and_an_empty_array_has_none),
    TEST(strings_are_decoded_and_halves_of_pairs_replaced),
    TEST(integers_are_exact_or_refused),
    TEST(keys_are_compared_as_decoded),
    TEST(the_portable_search_finds_every_special_byte),
    TEST(every_special_byte_is_found_at_every_place),
    TEST(random_texts_are_accepted_and_damaged_ones_judged_as_cjson_does),
    TEST(entering_an_element_passes_over_it_once),
    TEST(walking_gives_what_cjson_gives),
};

int main(int argc, char **argv)
{
    return run_tests("json", tests, COUNT_OF(tests), argc, argv);
}
