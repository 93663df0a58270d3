/* core/base/splice: edits touch what they name and not a byte more; cuts take exactly one comma each. */
#include "base/check.h"
#include "base/json.h"
#include "cunit_main.h"
#include "random_json.h"

/* `mask` bit i: member or element i goes. The result, or the text itself if it does not scan. */
static void expect_cut(const char *text, unsigned mask, const char *wanted)
{
    struct arena *arena = arena_new(0);
    struct sg_error err = {0};
    struct json_text scanned;
    CU_ASSERT_EQUAL_FATAL(json_scan(str_of(text), arena, &scanned, &err), SG_OK);
    bool gone[8];
    for (size_t i = 0; i < 8; i++) {
        gone[i] = mask >> i & 1;
    }
    struct splice splice = {.arena = arena};
    if (scanned.root.type == JSON_OBJECT) {
        splice_cut_members(&splice, scanned.raw, scanned.members, scanned.count, gone);
    } else {
        size_t count = 0;
        struct json_value *elements = json_elements(scanned.root, arena, &count);
        splice_cut_elements(&splice, scanned.raw, scanned.root, elements, count, gone);
    }
    BUF_CLEANUP struct buf out = {0};
    CU_ASSERT_TRUE(splice_apply(&splice, scanned.raw, &out));
    CU_ASSERT_STRING_EQUAL(out.data, wanted);
    arena_free(arena);
}

static void a_cut_member_takes_exactly_one_comma(void)
{
    const char *text = "{\"a\":1, \"b\":2, \"c\":3}";
    expect_cut(text, 0, text);
    expect_cut(text, 1, "{\"b\":2, \"c\":3}");
    expect_cut(text, 2, "{\"a\":1, \"c\":3}");
    expect_cut(text, 4, "{\"a\":1, \"b\":2}");
    expect_cut(text, 3, "{\"c\":3}");
    expect_cut(text, 6, "{\"a\":1}");
    expect_cut(text, 5, "{\"b\":2}");
    expect_cut(text, 7, "{}");
}

static void cutting_keeps_white_space_sensible(void)
{
    const char *text = "{\n  \"a\": 1,\n  \"b\": 2 ,\n  \"c\": 3\n}";
    expect_cut(text, 1, "{\n  \"b\": 2 ,\n  \"c\": 3\n}");
    expect_cut(text, 2, "{\n  \"a\": 1,\n  \"c\": 3\n}");
    expect_cut(text, 4, "{\n  \"a\": 1,\n  \"b\": 2\n}");
    expect_cut(text, 7, "{\n  \n}");
}

static void a_cut_element_takes_exactly_one_comma(void)
{
    expect_cut("[1 , [2,2] ,\"3,\"]", 1, "[[2,2] ,\"3,\"]");
    expect_cut("[1 , [2,2] ,\"3,\"]", 2, "[1 , \"3,\"]");
    expect_cut("[1 , [2,2] ,\"3,\"]", 4, "[1 , [2,2]]");
    expect_cut("[1 , [2,2] ,\"3,\"]", 7, "[]");
    expect_cut("[ ]", 0, "[ ]");
}

static void edits_may_come_in_any_order(void)
{
    struct arena *arena = arena_new(0);
    struct splice splice = {.arena = arena};
    splice_add(&splice, 6, 0, STR("!"));
    splice_add(&splice, 0, 1, STR("A"));
    splice_add(&splice, 3, 2, STR(""));
    splice_add(&splice, 3, 0, STR("<"));
    splice_add(&splice, 5, 0, STR(">"));
    BUF_CLEANUP struct buf out = {0};
    CU_ASSERT_TRUE(splice_apply(&splice, STR("abcdef"), &out));
    CU_ASSERT_STRING_EQUAL(out.data, "Abc<>f!");
    arena_free(arena);
}

static void insertions_at_one_place_keep_their_order(void)
{
    struct arena *arena = arena_new(0);
    struct splice splice = {.arena = arena};
    for (int i = 0; i < 12; i++) {
        splice_add(&splice, 1, 0, str_of(arena_printf(arena, "%d,", i)));
    }
    BUF_CLEANUP struct buf out = {0};
    CU_ASSERT_TRUE(splice_apply(&splice, STR("[9]"), &out));
    CU_ASSERT_STRING_EQUAL(out.data, "[0,1,2,3,4,5,6,7,8,9,10,11,9]");
    arena_free(arena);
}

static void no_room_for_the_result_is_told(void)
{
    struct splice splice = {0};
    BUF_CLEANUP struct buf out = {.max = 3};
    CU_ASSERT_FALSE(splice_apply(&splice, STR("abcd"), &out));
}

/* Any cut of any random object or array scans again, has the members that were left, each byte for byte. */
static void random_cuts_leave_the_rest_byte_for_byte(void)
{
    struct random r = {11};
    for (int round = 0; round < 4000; round++) {
        BUF_CLEANUP struct buf text = {0}, out = {0};
        random_nested(&r, &text, 4, true);
        struct arena *arena = arena_new(0);
        struct sg_error err = {0};
        struct json_text before, after;
        CU_ASSERT_EQUAL_FATAL(json_scan(buf_str(&text), arena, &before, &err), SG_OK);
        bool gone[8];
        size_t left = 0;
        for (size_t i = 0; i < before.count; i++) {
            gone[i] = random_below(&r, 2) == 0;
            left += !gone[i];
        }
        struct splice splice = {.arena = arena};
        splice_cut_members(&splice, before.raw, before.members, before.count, gone);
        CU_ASSERT_TRUE(splice_apply(&splice, before.raw, &out));
        CU_ASSERT_EQUAL_FATAL(json_scan(buf_str(&out), arena, &after, &err), SG_OK);
        CU_ASSERT_EQUAL_FATAL(after.count, left);
        for (size_t i = 0, j = 0; i < before.count; i++) {
            if (!gone[i]) {
                CU_ASSERT_TRUE(str_eq(before.members[i].key_raw, after.members[j].key_raw));
                CU_ASSERT_TRUE(str_eq(before.members[i].value.raw, after.members[j].value.raw));
                j++;
            }
        }
        arena_free(arena);
    }
}

static const struct test tests[] = {
    TEST(a_cut_member_takes_exactly_one_comma),     TEST(cutting_keeps_white_space_sensible),
    TEST(a_cut_element_takes_exactly_one_comma),    TEST(edits_may_come_in_any_order),
    TEST(insertions_at_one_place_keep_their_order), TEST(no_room_for_the_result_is_told),
    TEST(random_cuts_leave_the_rest_byte_for_byte),
};

int main(int argc, char **argv)
{
    return run_tests("splice", tests, COUNT_OF(tests), argc, argv);
}
