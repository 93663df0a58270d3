/* core/base/canonical: texts that mean the same are the same bytes, others are not. */
#include "base/canonical.h"
#include "base/check.h"
#include "cunit_main.h"

static void expect(const char *text, const char *wanted)
{
    BUF_CLEANUP struct buf out = {0};
    CU_ASSERT_TRUE(json_canonical(str_of(text), &out));
    CU_ASSERT_STRING_EQUAL(out.data, wanted);
}

static bool same(const char *a, const char *b)
{
    BUF_CLEANUP struct buf one = {0}, other = {0};
    CU_ASSERT_TRUE(json_canonical(str_of(a), &one));
    CU_ASSERT_TRUE(json_canonical(str_of(b), &other));
    return str_eq(buf_str(&one), buf_str(&other));
}

static void white_space_and_the_order_of_members_do_not_count(void)
{
    expect(" { \"b\" : [ 1 , 2 ] , \"a\" : { } }\n", "{\"a\":{},\"b\":[1e0,2e0]}");
    CU_ASSERT_TRUE(same("{\"a\":{\"x\":1,\"y\":2},\"b\":3}", "{\"b\":3,\"a\":{\"y\":2,\"x\":1}}"));
    CU_ASSERT_TRUE(same("{\"ab\":1,\"a\":2}", "{\"a\":2,\"ab\":1}"));
    CU_ASSERT_FALSE(same("[1,2]", "[2,1]"));
    CU_ASSERT_FALSE(same("{\"a\":1}", "{\"a\":1,\"b\":null}"));
}

static void ways_of_escaping_do_not_count(void)
{
    CU_ASSERT_TRUE(same("\"\\u0041\\/\\u00e4\"", "\"A/\xC3\xA4\""));
    CU_ASSERT_TRUE(same("{\"\\u0061\":\"\\ud83d\\ude00\"}", "{\"a\":\"\xF0\x9F\x98\x80\"}"));
    CU_ASSERT_FALSE(same("\"a\"", "\"A\""));
    CU_ASSERT_FALSE(same("\"1\"", "1"));
}

static void numbers_are_compared_by_their_exact_value(void)
{
    CU_ASSERT_TRUE(same("1.0", "1"));
    CU_ASSERT_TRUE(same("-0", "0.00e5"));
    CU_ASSERT_TRUE(same("1e400", "10.0E+399"));
    CU_ASSERT_TRUE(same("0.00120", "12e-4"));
    CU_ASSERT_TRUE(same("1200", "1.2e3"));
    CU_ASSERT_FALSE(same("12345678901234567890", "12345678901234567891"));
    CU_ASSERT_FALSE(same("1", "-1"));
    CU_ASSERT_FALSE(same("1", "10"));
    CU_ASSERT_FALSE(same("0.1", "0.01"));
    expect("1e99999999999", "1e99999999999"); /* taken as it is written */
    expect("-0.50", "-5e-1");
}

static void a_name_that_comes_twice_stays_in_its_order(void)
{
    CU_ASSERT_TRUE(same("[{\"a\":1,\"b\":0,\"a\":2}]", "[{\"b\":0,\"a\":1,\"a\":2}]"));
    CU_ASSERT_FALSE(same("[{\"a\":1,\"a\":2}]", "[{\"a\":2,\"a\":1}]"));
}

static void what_is_no_json_is_refused_and_leaves_nothing(void)
{
    BUF_CLEANUP struct buf out = {0};
    buf_puts(&out, "before");
    CU_ASSERT_FALSE(json_canonical(STR("{\"a\":"), &out));
    CU_ASSERT_FALSE(json_canonical(STR(""), &out));
    CU_ASSERT_FALSE(json_canonical(STR("{} {}"), &out));
    CU_ASSERT_STRING_EQUAL(out.data, "before");
}

static const struct test tests[] = {
    TEST(white_space_and_the_order_of_members_do_not_count),
    TEST(ways_of_escaping_do_not_count),
    TEST(numbers_are_compared_by_their_exact_value),
    TEST(a_name_that_comes_twice_stays_in_its_order),
    TEST(what_is_no_json_is_refused_and_leaves_nothing),
};

int main(int argc, char **argv)
{
    return run_tests("canonical", tests, COUNT_OF(tests), argc, argv);
}
