/* core/http/admission.h: what is taken stays within the limit and comes back. */
#include "base/check.h"
#include "cunit_main.h"
#include "http/admission.h"

#include <sys/resource.h>

static void the_soft_limit_is_raised_to_the_hard_one(void)
{
    struct rlimit files = {64, 400};
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &files), 0);
    CU_ASSERT_EQUAL(admission_init(100), 400);
    CU_ASSERT_EQUAL(getrlimit(RLIMIT_NOFILE, &files), 0);
    CU_ASSERT_EQUAL(files.rlim_cur, 400);
    CU_ASSERT_EQUAL(admission_limit(), 300);
    CU_ASSERT_EQUAL(admission_connections_max(), 150);
}

static void the_limit_may_be_taken_and_not_one_more(void)
{
    CU_ASSERT_EQUAL(admission_used(), 0);
    CU_ASSERT_TRUE(admission_take(299));
    CU_ASSERT_FALSE(admission_take(2));
    CU_ASSERT_TRUE(admission_take(1));
    CU_ASSERT_FALSE(admission_take(1));
    CU_ASSERT_EQUAL(admission_used(), 300);
    admission_give(1);
    CU_ASSERT_TRUE(admission_take(1));
    admission_give(300);
    CU_ASSERT_EQUAL(admission_used(), 0);
    CU_ASSERT_FALSE(admission_take(SIZE_MAX));
}

static void seven_eighths_are_near(void)
{
    CU_ASSERT_TRUE(admission_take(262));
    CU_ASSERT_FALSE(admission_is_near());
    CU_ASSERT_TRUE(admission_take(1)); /* 300 − 300 / 8 = 263 */
    CU_ASSERT_TRUE(admission_is_near());
    admission_give(263);
    CU_ASSERT_FALSE(admission_is_near());
}

static const struct test tests[] = {
    TEST(the_soft_limit_is_raised_to_the_hard_one),
    TEST(the_limit_may_be_taken_and_not_one_more),
    TEST(seven_eighths_are_near),
};

int main(int argc, char **argv)
{
    return run_tests("admission", tests, COUNT_OF(tests), argc, argv);
}
