/* Quotas: buckets of tokens a minute at times of the test's own, requests at a time, and that names which nobody holds are
 * bounded, whoever makes them up. */
#include "base/check.h"
#include "cunit_main.h"
#include "gateway/quota.h"

#include <pthread.h>
#include <stdio.h>

#define SECOND INT64_C(1000000)

static void a_full_bucket_gives_as_many_at_once_as_the_limit_says_and_no_more(void)
{
    struct bucket bucket = {0};
    struct bucket_state state;
    for (int i = 0; i < 6; i++) {
        CU_ASSERT_TRUE(bucket_take(&bucket, 6, 100 * SECOND, &state));
        CU_ASSERT_EQUAL(state.remaining, 5 - i);
        CU_ASSERT_EQUAL(state.full_us, (i + 1) * 10 * SECOND);
    }
    CU_ASSERT_FALSE(bucket_take(&bucket, 6, 100 * SECOND, &state));
    CU_ASSERT_EQUAL(state.wait_us, 10 * SECOND);
    CU_ASSERT_EQUAL(state.remaining, 0);
    CU_ASSERT_FALSE(bucket_take(&bucket, 6, 110 * SECOND - 1, &state));
    CU_ASSERT_EQUAL(state.wait_us, 1);
    CU_ASSERT_TRUE(bucket_take(&bucket, 6, 110 * SECOND, &state));
}

static void a_quiet_time_fills_it_to_the_brim_and_not_beyond(void)
{
    struct bucket bucket = {0};
    struct bucket_state state;
    CU_ASSERT_TRUE(bucket_take(&bucket, 2, 1 * SECOND, &state));
    bucket_look(&bucket, 2, 1000 * SECOND, &state);
    CU_ASSERT_EQUAL(state.remaining, 2);
    CU_ASSERT_EQUAL(state.full_us, 0);
    CU_ASSERT_TRUE(bucket_take(&bucket, 2, 1000 * SECOND, &state));
    CU_ASSERT_TRUE(bucket_take(&bucket, 2, 1000 * SECOND, &state));
    CU_ASSERT_FALSE(bucket_take(&bucket, 2, 1000 * SECOND, &state));
}

static void what_is_given_back_can_be_taken_again(void)
{
    struct bucket bucket = {0};
    struct bucket_state state;
    CU_ASSERT_TRUE(bucket_take(&bucket, 1, SECOND, &state));
    CU_ASSERT_FALSE(bucket_take(&bucket, 1, SECOND, &state));
    bucket_give(&bucket, 1);
    CU_ASSERT_TRUE(bucket_take(&bucket, 1, SECOND, &state));
}

static void a_limit_that_is_odd_or_huge_still_holds(void)
{
    static const int64_t limits[] = {7, 999999, 1000000};
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        struct bucket bucket = {0};
        struct bucket_state state;
        int64_t taken = 0;
        while (taken <= limits[i] && bucket_take(&bucket, limits[i], SECOND, &state)) {
            taken++;
        }
        CU_ASSERT_EQUAL(taken, limits[i]);
    }
}

static void another_limit_finds_the_bucket_as_full_as_it_was(void)
{
    struct bucket bucket = {0};
    struct bucket_state state;
    for (int i = 0; i < 30; i++) {
        CU_ASSERT_TRUE(bucket_take(&bucket, 60, SECOND, &state)); /* half of it */
    }
    bucket_look(&bucket, 4, SECOND, &state);
    CU_ASSERT_EQUAL(state.remaining, 2);
}

static void a_quota_is_the_same_for_the_same_name_while_it_is_kept(void)
{
    struct quotas *quotas = quotas_new(2);
    struct quota *a = quota_of(quotas, STR("a")), *b = quota_of(quotas, STR("b"));
    CU_ASSERT_PTR_NOT_EQUAL(a, b);
    CU_ASSERT_PTR_EQUAL(quota_of(quotas, STR("a")), a);
    quota_give(quotas, a);
    CU_ASSERT_TRUE(flight_begin(a, 1));
    quota_give(quotas, a);
    CU_ASSERT_PTR_EQUAL(quota_of(quotas, STR("a")), a);
    CU_ASSERT_FALSE(flight_begin(a, 1));
    flight_end(a);
    CU_ASSERT_TRUE(flight_begin(a, 1));
    flight_end(a);
    quota_give(quotas, a);
    quota_give(quotas, b);
    quotas_free(quotas);
}

static void names_that_are_made_up_are_bounded_and_those_in_use_stay(void)
{
    struct quotas *quotas = quotas_new(100);
    struct quota *held = quota_of(quotas, STR("held"));
    struct bucket_state state;
    CU_ASSERT_TRUE(bucket_take(&held->requests, 1, SECOND, &state));
    for (int i = 0; i < 10000; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "user-%d", i);
        quota_give(quotas, quota_of(quotas, str_of(name)));
    }
    CU_ASSERT_EQUAL(quotas_count(quotas), 101);
    CU_ASSERT_PTR_EQUAL(quota_of(quotas, STR("held")), held);
    CU_ASSERT_FALSE(bucket_take(&held->requests, 1, SECOND, &state));
    quota_give(quotas, held);
    quota_give(quotas, held);
    quotas_free(quotas);
}

struct taking {
    struct quotas *quotas;
    size_t taken, entered;
};

static void *take_many(void *arg)
{
    struct taking *taking = arg;
    for (int i = 0; i < 2000; i++) {
        struct quota *quota = quota_of(taking->quotas, STR("shared"));
        struct bucket_state state;
        taking->taken += bucket_take(&quota->requests, 1000, SECOND, &state);
        if (flight_begin(quota, 2)) {
            taking->entered++;
            flight_end(quota);
        }
        quota_give(taking->quotas, quota);
        quota_give(taking->quotas, quota_of(taking->quotas, STR("another")));
    }
    return NULL;
}

static void threads_take_exactly_what_there_is(void)
{
    struct quotas *quotas = quotas_new(4);
    struct taking takings[4];
    pthread_t threads[COUNT_OF(takings)];
    size_t taken = 0;
    for (size_t i = 0; i < COUNT_OF(takings); i++) {
        takings[i] = (struct taking){.quotas = quotas};
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, take_many, &takings[i]), 0);
    }
    for (size_t i = 0; i < COUNT_OF(takings); i++) {
        (void)pthread_join(threads[i], NULL);
        taken += takings[i].taken;
        CU_ASSERT_TRUE(takings[i].entered > 0);
    }
    CU_ASSERT_EQUAL(taken, 1000);
    struct quota *quota = quota_of(quotas, STR("shared"));
    CU_ASSERT_EQUAL(atomic_load(&quota->in_flight), 0);
    quota_give(quotas, quota);
    quotas_free(quotas);
}

static const struct test tests[] = {
    TEST(a_full_bucket_gives_as_many_at_once_as_the_limit_says_and_no_more),
    TEST(a_quiet_time_fills_it_to_the_brim_and_not_beyond),
    TEST(what_is_given_back_can_be_taken_again),
    TEST(a_limit_that_is_odd_or_huge_still_holds),
    TEST(another_limit_finds_the_bucket_as_full_as_it_was),
    TEST(a_quota_is_the_same_for_the_same_name_while_it_is_kept),
    TEST(names_that_are_made_up_are_bounded_and_those_in_use_stay),
    TEST(threads_take_exactly_what_there_is),
};

int main(int argc, char **argv)
{
    return run_tests("quota", tests, COUNT_OF(tests), argc, argv);
}
