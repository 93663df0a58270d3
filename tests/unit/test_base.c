/* core/base: buffers, arenas, text, time. Each test states the value that comes out. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/utf8.h"
#include "cunit_main.h"

static void appending_stops_at_the_bound(void)
{
    BUF_CLEANUP struct buf b = {.max = 4};
    CU_ASSERT_TRUE(buf_puts(&b, "abcd"));
    CU_ASSERT_FALSE(buf_puts(&b, "e"));
    CU_ASSERT_TRUE(b.overflow);
    CU_ASSERT_STRING_EQUAL(b.data, "abcd");
}

static void json_text_is_escaped_and_always_utf8(void)
{
    BUF_CLEANUP struct buf b = {0};
    buf_put_json(&b, STR("a\"\\\n\x01\x1f\xC3\xA4\xFF"));
    CU_ASSERT_STRING_EQUAL(b.data, "\"a\\\"\\\\\\n\\u0001\\u001f\xC3\xA4\xEF\xBF\xBD\"");
}

static void consuming_moves_the_rest_down(void)
{
    BUF_CLEANUP struct buf b = {0};
    buf_puts(&b, "hello");
    buf_consume(&b, 2);
    CU_ASSERT_STRING_EQUAL(b.data, "llo");
    CU_ASSERT_EQUAL(b.len, 3);
}

static void an_arena_refuses_beyond_its_bound(void)
{
    struct arena *arena = arena_new(100);
    CU_ASSERT_PTR_NOT_NULL(arena_alloc(arena, 64));
    CU_ASSERT_PTR_NULL(arena_alloc(arena, 64));
    CU_ASSERT_PTR_NOT_NULL(arena_alloc(arena, 16));
    arena_free(arena);
}

static void large_and_small_blocks_live_side_by_side(void)
{
    struct arena *arena = arena_new(0);
    char *small = arena_copy(arena, STR("small"));
    char *large = arena_alloc(arena, 100000);
    memset(large, 'x', 100000);
    char *more = arena_copy(arena, STR("more"));
    CU_ASSERT_STRING_EQUAL(small, "small");
    CU_ASSERT_STRING_EQUAL(more, "more");
    arena_free(arena);
}

static void utf8_refuses_overlong_forms_and_surrogates(void)
{
    CU_ASSERT_TRUE(utf8_valid(STR("\xF0\x9F\x98\x80")));
    CU_ASSERT_FALSE(utf8_valid(STR("\xC0\x80")));
    CU_ASSERT_FALSE(utf8_valid(STR("\xED\xA0\x80")));
    CU_ASSERT_FALSE(utf8_valid(STR("\xF4\x90\x80\x80")));
    CU_ASSERT_FALSE(utf8_valid(STR("\xE2\x82")));
}

static void cutting_halves_no_character(void)
{
    CU_ASSERT_EQUAL(utf8_cut(STR("a\xC3\xA4"), 2), 1);
    CU_ASSERT_EQUAL(utf8_cut(STR("a\xC3\xA4"), 3), 3);
    CU_ASSERT_EQUAL(utf8_cut(STR("\xF0\x9F\x98\x80"), 3), 0);
}

static void lengths_keep_lists_of_parts_apart(void)
{
    uint8_t one[SHA256_BYTES], other[SHA256_BYTES];
    sha256_parts((struct str[]){STR("team:a"), STR("b")}, 2, one);
    sha256_parts((struct str[]){STR("team"), STR("a:b")}, 2, other);
    CU_ASSERT_NOT_EQUAL(memcmp(one, other, sizeof one), 0);
}

static void a_sha256_is_the_published_one(void)
{
    uint8_t out[SHA256_BYTES];
    char text[2 * SHA256_BYTES + 1];
    sha256(STR("abc"), out);
    hex_encode(out, sizeof out, text);
    CU_ASSERT_STRING_EQUAL(text,
                           "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void a_long_message_is_cut_at_a_character(void)
{
    struct sg_error err = {0};
    char text[ERROR_MESSAGE_BYTES + 10];
    memset(text, 'a', sizeof text);
    memcpy(text + ERROR_MESSAGE_BYTES - 2, "\xC3\xA4\0", 3);
    CU_ASSERT_EQUAL(error_set(&err, SG_E_INVALID, "%s", text), SG_E_INVALID);
    CU_ASSERT_EQUAL(strlen(err.message), ERROR_MESSAGE_BYTES - 2);
    CU_ASSERT_TRUE(utf8_valid(str_of(err.message)));
}

static void each_code_has_its_status(void)
{
    struct sg_error err = {.code = SG_E_LIMIT};
    CU_ASSERT_EQUAL(error_status(&err), 429);
    err.status = 413;
    CU_ASSERT_EQUAL(error_status(&err), 413);
    CU_ASSERT_STRING_EQUAL(error_code_name(SG_E_GONE), "GONE");
}

static const struct test tests[] = {
    TEST(appending_stops_at_the_bound),
    TEST(json_text_is_escaped_and_always_utf8),
    TEST(consuming_moves_the_rest_down),
    TEST(an_arena_refuses_beyond_its_bound),
    TEST(large_and_small_blocks_live_side_by_side),
    TEST(utf8_refuses_overlong_forms_and_surrogates),
    TEST(cutting_halves_no_character),
    TEST(lengths_keep_lists_of_parts_apart),
    TEST(a_sha256_is_the_published_one),
    TEST(a_long_message_is_cut_at_a_character),
    TEST(each_code_has_its_status),
};

int main(int argc, char **argv)
{
    return run_tests("base", tests, COUNT_OF(tests), argc, argv);
}
