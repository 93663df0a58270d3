/* core/surface/json_prefix: whatever prefix of an object has come, what completes it makes JSON of it; and no byte is taken that
 * JSON does not have there. */
#include "base/check.h"
#include "base/json.h"
#include "cunit_main.h"
#include "surface/json_prefix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_json(struct str text)
{
    struct arena *arena = arena_new(0);
    struct json_text scanned;
    struct sg_error err = {0};
    bool is = json_scan(text, arena, &scanned, &err) == SG_OK;
    arena_free(arena);
    return is;
}

/* How much of it is taken; `ret` gets that, completed. */
static size_t taken(const char *text, struct buf *ret)
{
    struct json_prefix prefix = {0};
    size_t n = 0;
    while (text[n] != '\0' && json_prefix_take(&prefix, text[n])) {
        n++;
    }
    buf_reset(ret);
    (void)buf_append_str(ret, (struct str){text, n});
    if (json_prefix_has_begun(&prefix)) {
        json_prefix_complete(prefix, ret);
    }
    return n;
}

static void every_prefix_of_an_object_is_completed(void)
{
    static const char *const objects[] = {
        "{}", "{ \"a\" : [ 1 , -0.5e+10, 0 , 12.25E-3,2e5 ] , \"b\\u00e4\\n\" : { } }\n",
        "{\"a\":[[],{},[{\"x\":[true,false,null]}],\"\\ud83d\\ude00\\\\\\\"\"],\"\":\"}{][\"}",
        "{\"code\":\"print('\xC3\xA4')\",\"n\":-1}"};
    BUF_CLEANUP struct buf out = {0};
    for (size_t i = 0; i < COUNT_OF(objects); i++) {
        for (size_t len = 1; len <= strlen(objects[i]); len++) {
            char *prefix = strndup(objects[i], len);
            bool is_whole = is_json((struct str){prefix, len});
            size_t n = taken(prefix, &out);
            CU_ASSERT_TRUE(is_json(buf_str(&out)) || (unsigned char)prefix[len - 1] >= 0x80);
            CU_ASSERT_TRUE(n == len || is_whole);
            CU_ASSERT_TRUE(!is_whole || out.len == n);
            free(prefix);
        }
    }
}

static void what_cannot_follow_is_not_taken(void)
{
    static const struct {
        const char *text, *completed;
    } cases[] = {{"{\"code\":\"a\nb\"", "{\"code\":\"a\"}"},
                 {"{\"a\":\"\x01\"}", "{\"a\":\"\"}"},
                 {"{\"a\":print(1)}", "{\"a\":null}"},
                 {"{\"a\":tru}", "{\"a\":true}"},
                 {"{\"a\":01}", "{\"a\":0}"},
                 {"{\"a\":1.}", "{\"a\":1.0}"},
                 {"{\"a\":1e}", "{\"a\":1e0}"},
                 {"{\"a\":-}", "{\"a\":-0}"},
                 {"{\"a\":+1}", "{\"a\":null}"},
                 {"{\"a\":.5}", "{\"a\":null}"},
                 {"{\"a\":1 2}", "{\"a\":1 }"},
                 {"{'a':1}", "{}"},
                 {"{a:1}", "{}"},
                 {"{\"a\":1,}", "{\"a\":1,\"\":null}"},
                 {"{\"a\":[1,]}", "{\"a\":[1,null]}"},
                 {"{\"a\":[1}", "{\"a\":[1]}"},
                 {"{\"a\":{]}", "{\"a\":{}}"},
                 {"{\"a\" \"b\"}", "{\"a\" :null}"},
                 {"{\"a\":\"\\x\"}", "{\"a\":\"\\\\\"}"},
                 {"{\"a\":\"\\u12g\"}", "{\"a\":\"\\u1200\"}"},
                 {"{}{}", "{}"},
                 {"{}}", "{}"}};
    BUF_CLEANUP struct buf out = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        (void)taken(cases[i].text, &out);
        if (!str_is(buf_str(&out), cases[i].completed)) {
            fprintf(stderr, "%s became %.*s\n", cases[i].text, (int)out.len, out.data);
        }
        CU_ASSERT_TRUE(str_is(buf_str(&out), cases[i].completed));
        CU_ASSERT_TRUE(is_json(buf_str(&out)));
    }
    CU_ASSERT_EQUAL(taken("[1]", &out), 0);
    CU_ASSERT_EQUAL(taken(" {}", &out), 0);
    CU_ASSERT_EQUAL(taken("\"{}\"", &out), 0);
}

static void depth_is_bounded(void)
{
    BUF_CLEANUP struct buf text = {0}, out = {0};
    for (size_t i = 0; i < 1000; i++) {
        (void)buf_puts(&text, i == 0 ? "{\"a\":" : "[");
    }
    (void)buf_putc(&text, '\0');
    CU_ASSERT_EQUAL(taken(text.data, &out), 5 + JSON_PREFIX_DEPTH_MAX - 1);
    CU_ASSERT_TRUE(is_json(buf_str(&out)));
}

/* Random bytes of JSON's own: whatever is taken is completed. */
static void whatever_comes_is_completed(void)
{
    static const char bytes[] = "{}[]\":,\\u0aeE+-.1 \ntrfalsn";
    BUF_CLEANUP struct buf out = {0};
    uint32_t seed = 1;
    for (size_t round = 0; round < 20000; round++) {
        char text[40] = "{\"";
        for (size_t i = 1 + round % 2; i < sizeof text - 1; i++) {
            seed = seed * 1664525u + 1013904223u;
            text[i] = bytes[(seed >> 8) % (sizeof bytes - 1)];
        }
        (void)taken(text, &out);
        CU_ASSERT_TRUE(is_json(buf_str(&out)));
    }
}

static const struct test tests[] = {
    TEST(every_prefix_of_an_object_is_completed),
    TEST(what_cannot_follow_is_not_taken),
    TEST(depth_is_bounded),
    TEST(whatever_comes_is_completed),
};

int main(int argc, char **argv)
{
    return run_tests("json_prefix", tests, COUNT_OF(tests), argc, argv);
}
