/* core/conf: single values. Each unit, each limit, and what is just past it. */
#include "base/check.h"
#include "conf/conf.h"
#include "cunit_main.h"

#include <stdio.h>

static void durations_need_a_unit_and_whole_numbers(void)
{
    int64_t ms = -7;
    CU_ASSERT_TRUE(conf_duration("250ms", &ms));
    CU_ASSERT_EQUAL(ms, 250);
    CU_ASSERT_TRUE(conf_duration("30s", &ms));
    CU_ASSERT_EQUAL(ms, 30000);
    CU_ASSERT_TRUE(conf_duration("5m", &ms));
    CU_ASSERT_EQUAL(ms, 300000);
    CU_ASSERT_TRUE(conf_duration("2h", &ms));
    CU_ASSERT_EQUAL(ms, 7200000);
    CU_ASSERT_TRUE(conf_duration("3d", &ms));
    CU_ASSERT_EQUAL(ms, 259200000);
    CU_ASSERT_TRUE(conf_duration("0s", &ms));
    CU_ASSERT_EQUAL(ms, 0);
    static const char *const wrong[] = {"",     "5",  "s",    "5 s", "-5s", "+5s",  "1.5s", "05s",
                                        "1h5m", "5S", "5sec", "5s ", " 5s", "0x5s", "1e3s", "5µs"};
    ms = -7;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        CU_ASSERT_FALSE(conf_duration(wrong[i], &ms));
    }
    CU_ASSERT_EQUAL(ms, -7);
}

static void durations_end_at_int64(void)
{
    int64_t ms = -7;
    CU_ASSERT_TRUE(conf_duration("9223372036854775807ms", &ms));
    CU_ASSERT_EQUAL(ms, INT64_MAX);
    ms = -7;
    CU_ASSERT_FALSE(conf_duration("9223372036854775808ms", &ms));
    CU_ASSERT_FALSE(conf_duration("9223372036854775807s", &ms));
    CU_ASSERT_FALSE(conf_duration("18446744073709551616ms", &ms));
    CU_ASSERT_FALSE(conf_duration("99999999999999999999999999999999d", &ms));
    CU_ASSERT_EQUAL(ms, -7);
}

static void sizes_need_a_unit_and_count_in_1024(void)
{
    uint64_t bytes = 7;
    CU_ASSERT_TRUE(conf_size("12B", &bytes));
    CU_ASSERT_EQUAL(bytes, 12);
    CU_ASSERT_TRUE(conf_size("64KiB", &bytes));
    CU_ASSERT_EQUAL(bytes, 65536);
    CU_ASSERT_TRUE(conf_size("512MiB", &bytes));
    CU_ASSERT_EQUAL(bytes, 536870912);
    CU_ASSERT_TRUE(conf_size("2GiB", &bytes));
    CU_ASSERT_EQUAL(bytes, 2147483648);
    CU_ASSERT_TRUE(conf_size("1TiB", &bytes));
    CU_ASSERT_EQUAL(bytes, 1099511627776);
    static const char *const wrong[] = {"",       "64",    "64KB",   "64k",    "64K",  "64M",
                                        "1.5GiB", "-1KiB", "64 KiB", "064KiB", "64kib"};
    bytes = 7;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        CU_ASSERT_FALSE(conf_size(wrong[i], &bytes));
    }
    CU_ASSERT_EQUAL(bytes, 7);
}

static void sizes_end_at_uint64(void)
{
    uint64_t bytes = 7;
    CU_ASSERT_TRUE(conf_size("18446744073709551615B", &bytes));
    CU_ASSERT_EQUAL(bytes, UINT64_MAX);
    CU_ASSERT_TRUE(conf_size("16777215TiB", &bytes));
    CU_ASSERT_EQUAL(bytes, 16777215ull << 40);
    bytes = 7;
    CU_ASSERT_FALSE(conf_size("18446744073709551616B", &bytes));
    CU_ASSERT_FALSE(conf_size("16777216TiB", &bytes));
    CU_ASSERT_EQUAL(bytes, 7);
}

static void values_are_written_in_their_largest_exact_unit(void)
{
    struct arena *arena = arena_new(0);
    CU_ASSERT_STRING_EQUAL(conf_duration_text(0, arena), "0s");
    CU_ASSERT_STRING_EQUAL(conf_duration_text(250, arena), "250ms");
    CU_ASSERT_STRING_EQUAL(conf_duration_text(1001, arena), "1001ms");
    CU_ASSERT_STRING_EQUAL(conf_duration_text(90000, arena), "90s");
    CU_ASSERT_STRING_EQUAL(conf_duration_text(900000, arena), "15m");
    CU_ASSERT_STRING_EQUAL(conf_duration_text(172800000, arena), "2d");
    CU_ASSERT_STRING_EQUAL(conf_duration_text(INT64_MAX, arena), "9223372036854775807ms");
    CU_ASSERT_STRING_EQUAL(conf_size_text(0, arena), "0B");
    CU_ASSERT_STRING_EQUAL(conf_size_text(1023, arena), "1023B");
    CU_ASSERT_STRING_EQUAL(conf_size_text(65536, arena), "64KiB");
    CU_ASSERT_STRING_EQUAL(conf_size_text((uint64_t)3 << 30, arena), "3GiB");
    arena_free(arena);
}

static void a_slip_of_the_hand_finds_its_name(void)
{
    static const char *const names[] = {"timeout", "template", "api_key", "url", "id"};
    size_t count = COUNT_OF(names);
    CU_ASSERT_STRING_EQUAL(conf_nearest("tiemout", names, count), "timeout");
    CU_ASSERT_STRING_EQUAL(conf_nearest("timeouts", names, count), "timeout");
    CU_ASSERT_STRING_EQUAL(conf_nearest("API-Key", names, count), "api_key");
    CU_ASSERT_STRING_EQUAL(conf_nearest("apikey", names, count), "api_key");
    CU_ASSERT_STRING_EQUAL(conf_nearest("ulr", names, count), "url");
    CU_ASSERT_STRING_EQUAL(conf_nearest("ID", names, count), "id");
    CU_ASSERT_PTR_NULL(conf_nearest("memory", names, count));
    CU_ASSERT_PTR_NULL(
        conf_nearest("ix", names, count)); /* one change would make anything of two letters */
    CU_ASSERT_PTR_NULL(conf_nearest("", names, count));
    CU_ASSERT_PTR_NULL(conf_nearest("timeout", names, 0));
}

static void a_name_of_any_length_is_compared_safely(void)
{
    char name[100];
    memset(name, 'a', sizeof name);
    const char *candidates[] = {name};
    name[64] = '\0';
    CU_ASSERT_PTR_EQUAL(conf_nearest(name, candidates, 1), name);
    name[64] = 'a';
    name[65] = '\0';
    CU_ASSERT_PTR_NULL(conf_nearest(name, candidates, 1));
    CU_ASSERT_PTR_NULL(conf_nearest("a", candidates, 1));
}

/* ---- conf_value ---- */

static struct arena *values; /* as long as the program */

static int value_of(const struct sg_option *option, const char *text, void *ret, char *message)
{
    struct sg_error err = {0};
    int code = conf_value(option, text, ret, values, &err);
    (void)snprintf(message, ERROR_MESSAGE_BYTES, "%s", err.message); /* of the same size */
    return code;
}

static void one_value_of_each_type_is_read(void)
{
    char message[ERROR_MESSAGE_BYTES];
    const char *text = NULL;
    CU_ASSERT_EQUAL(
        value_of(&(struct sg_option){.name = "a", .type = SG_STRING}, "x: ${HOME}", &text, message),
        0);
    CU_ASSERT_STRING_EQUAL(text, "x: ${HOME}"); /* as it is: neither YAML nor environment */
    bool yes = false;
    CU_ASSERT_EQUAL(
        value_of(&(struct sg_option){.name = "a", .type = SG_BOOL}, "On", &yes, message), 0);
    CU_ASSERT_TRUE(yes);
    int64_t number = 0;
    CU_ASSERT_EQUAL(value_of(&(struct sg_option){.name = "a", .type = SG_INT},
                             "-9223372036854775808", &number, message),
                    0);
    CU_ASSERT_EQUAL(number, INT64_MIN);
    const char *const *texts = NULL;
    CU_ASSERT_EQUAL(value_of(&(struct sg_option){.name = "a", .type = SG_STRINGS}, "[b, \"c, d\"]",
                             &texts, message),
                    0);
    CU_ASSERT_STRING_EQUAL(texts[0], "b");
    CU_ASSERT_STRING_EQUAL(texts[1], "c, d");
    CU_ASSERT_PTR_NULL(texts[2]);
    struct sg_map map = {0};
    CU_ASSERT_EQUAL(
        value_of(&(struct sg_option){.name = "a", .type = SG_MAP}, "{k: v}", &map, message), 0);
    CU_ASSERT_EQUAL(map.count, 1);
    CU_ASSERT_STRING_EQUAL(map.keys[0], "k");
    CU_ASSERT_STRING_EQUAL(map.values[0], "v");
}

static void a_wrong_value_sets_nothing_and_says_what_is_right(void)
{
    char message[ERROR_MESSAGE_BYTES];
    int64_t number = 77;
    struct sg_option option = {.name = "n", .type = SG_INT, .min = "1", .max = "10"};
    CU_ASSERT_EQUAL(value_of(&option, "11", &number, message), SG_E_CONFIG);
    CU_ASSERT_STRING_EQUAL(message, "'n' must be at most 10, not '11'");
    CU_ASSERT_EQUAL(value_of(&option, "0", &number, message), SG_E_CONFIG);
    CU_ASSERT_STRING_EQUAL(message, "'n' must be at least 1, not '0'");
    CU_ASSERT_EQUAL(value_of(&option, "0x5", &number, message), SG_E_CONFIG);
    CU_ASSERT_STRING_EQUAL(message, "'n' must be a whole number, not '0x5'");
    CU_ASSERT_EQUAL(value_of(&option, "010", &number, message), SG_E_CONFIG);
    CU_ASSERT_STRING_EQUAL(message, "'n' must be a whole number, not '010'");
    CU_ASSERT_EQUAL(value_of(&option, "9223372036854775808", &number, message), SG_E_CONFIG);
    CU_ASSERT_STRING_EQUAL(message, "'n' must be between -9223372036854775808 and "
                                    "9223372036854775807, not '9223372036854775808'");
    CU_ASSERT_EQUAL(number, 77);
    const char *const *texts = NULL;
    CU_ASSERT_EQUAL(
        value_of(&(struct sg_option){.name = "s", .type = SG_STRINGS}, "[a, b", &texts, message),
        SG_E_CONFIG);
    CU_ASSERT_STRING_EQUAL(message, "not valid YAML: did not find expected ',' or ']', while "
                                    "parsing a flow sequence that starts at line 1");
    CU_ASSERT_PTR_NULL(texts);
}

static void each_type_has_its_words_and_its_size(void)
{
    CU_ASSERT_STRING_EQUAL(conf_type_words(SG_DURATION), "a duration such as 30s");
    CU_ASSERT_PTR_NULL(conf_type_words(0));
    CU_ASSERT_PTR_NULL(conf_type_words(SG_LIST + 1));
    CU_ASSERT_EQUAL(conf_type_size(SG_BOOL), sizeof(bool));
    CU_ASSERT_EQUAL(conf_type_size(SG_MAP), sizeof(struct sg_map));
    CU_ASSERT_EQUAL(conf_type_size(UINT32_MAX), 0);
    CU_ASSERT_EQUAL(conf_type_alignment(SG_INT), 8);
}

static const struct test tests[] = {
    TEST(durations_need_a_unit_and_whole_numbers),
    TEST(durations_end_at_int64),
    TEST(sizes_need_a_unit_and_count_in_1024),
    TEST(sizes_end_at_uint64),
    TEST(values_are_written_in_their_largest_exact_unit),
    TEST(a_slip_of_the_hand_finds_its_name),
    TEST(a_name_of_any_length_is_compared_safely),
    TEST(one_value_of_each_type_is_read),
    TEST(a_wrong_value_sets_nothing_and_says_what_is_right),
    TEST(each_type_has_its_words_and_its_size),
};

int main(int argc, char **argv)
{
    values = arena_new(0);
    int code = run_tests("conf_value", tests, COUNT_OF(tests), argc, argv);
    arena_free(values);
    return code;
}
