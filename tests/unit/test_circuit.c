/* core/gateway/circuit: when it opens, who may try, how long it stays open; with a clock of the test's own. */
#include "base/check.h"
#include "cunit_main.h"
#include "gateway/circuit.h"

#include <pthread.h>

static const struct circuit_limits limits = {.failures = 3, .open_ms = 100, .open_ms_max = 350};
static struct circuit circuit;

static enum circuit_change fail(int64_t now_ms)
{
    return circuit_failure(&circuit, &limits, now_ms);
}

static void open_at(int64_t now_ms)
{
    circuit_init(&circuit);
    (void)fail(now_ms);
    (void)fail(now_ms);
    CU_ASSERT_EQUAL(fail(now_ms), CIRCUIT_OPENED);
}

static void so_many_failures_on_end_open_it_and_a_success_between_begins_anew(void)
{
    circuit_init(&circuit);
    CU_ASSERT_EQUAL(fail(1), CIRCUIT_SAME);
    CU_ASSERT_EQUAL(fail(2), CIRCUIT_SAME);
    CU_ASSERT_EQUAL(circuit_success(&circuit), CIRCUIT_SAME);
    CU_ASSERT_EQUAL(fail(3), CIRCUIT_SAME);
    CU_ASSERT_EQUAL(fail(4), CIRCUIT_SAME);
    CU_ASSERT_TRUE(circuit_allows(&circuit, 4));
    CU_ASSERT_EQUAL(fail(5), CIRCUIT_OPENED);
    CU_ASSERT_FALSE(circuit_allows(&circuit, 5));
    CU_ASSERT_TRUE(circuit_look(&circuit).is_open);
    CU_ASSERT_EQUAL(circuit_look(&circuit).failures, 3);
    circuit_destroy(&circuit);
}

static void one_request_tries_and_its_success_closes_it(void)
{
    open_at(1000);
    CU_ASSERT_FALSE(circuit_allows(&circuit, 1099));
    CU_ASSERT_TRUE(circuit_allows(&circuit, 1100));
    CU_ASSERT_FALSE(circuit_allows(&circuit, 1100));
    CU_ASSERT_FALSE(circuit_allows(&circuit, 1199));
    CU_ASSERT_EQUAL(circuit_success(&circuit), CIRCUIT_CLOSED);
    CU_ASSERT_TRUE(circuit_allows(&circuit, 1150));
    CU_ASSERT_EQUAL(circuit_look(&circuit).failures, 0);
    circuit_destroy(&circuit);
}

static void a_trial_that_tells_nothing_leaves_its_place_to_the_next(void)
{
    open_at(1000);
    circuit_unknown(&circuit, 1001); /* nobody tries yet: it stays closed to all */
    CU_ASSERT_FALSE(circuit_allows(&circuit, 1002));
    CU_ASSERT_TRUE(circuit_allows(&circuit, 1100));
    CU_ASSERT_FALSE(circuit_allows(&circuit, 1110));
    circuit_unknown(&circuit, 1120);
    CU_ASSERT_TRUE(circuit_allows(&circuit, 1120));
    CU_ASSERT_FALSE(circuit_allows(&circuit, 1121));
    CU_ASSERT_EQUAL(circuit_look(&circuit).failures, 3);
    circuit_destroy(&circuit);
}

static void each_trial_that_fails_doubles_the_while_up_to_the_limit(void)
{
    static const int64_t wanted_ms[] = {200, 350, 350};
    int64_t now_ms = 1100;
    open_at(1000);
    for (size_t i = 0; i < COUNT_OF(wanted_ms); i++) {
        CU_ASSERT_TRUE(circuit_allows(&circuit, now_ms));
        CU_ASSERT_EQUAL(fail(now_ms + 7), CIRCUIT_SAME);
        CU_ASSERT_EQUAL(circuit_look(&circuit).open_ms, wanted_ms[i]);
        CU_ASSERT_FALSE(circuit_allows(&circuit, now_ms + 7 + wanted_ms[i] - 1));
        now_ms += 7 + wanted_ms[i];
    }
    CU_ASSERT_TRUE(circuit_allows(&circuit, now_ms));
    CU_ASSERT_EQUAL(circuit_success(&circuit), CIRCUIT_CLOSED);
    (void)fail(5000);
    (void)fail(5000);
    CU_ASSERT_EQUAL(fail(5000), CIRCUIT_OPENED);
    CU_ASSERT_EQUAL(circuit_look(&circuit).open_ms, 100);
    circuit_destroy(&circuit);
}

static void failures_of_requests_that_began_before_change_nothing(void)
{
    open_at(1000);
    for (int i = 0; i < 10; i++) {
        CU_ASSERT_EQUAL(fail(1050), CIRCUIT_SAME);
    }
    CU_ASSERT_EQUAL(circuit_look(&circuit).open_ms, 100);
    CU_ASSERT_TRUE(circuit_allows(&circuit, 1100));
    circuit_destroy(&circuit);
}

static void a_trial_that_never_ends_makes_room_for_the_next(void)
{
    open_at(1000);
    CU_ASSERT_TRUE(circuit_allows(&circuit, 1500));
    CU_ASSERT_FALSE(circuit_allows(&circuit, 1599));
    CU_ASSERT_TRUE(circuit_allows(&circuit, 1600));
    circuit_destroy(&circuit);
}

static void with_a_limit_of_none_it_never_opens(void)
{
    static const struct circuit_limits never = {.failures = 0, .open_ms = 100, .open_ms_max = 100};
    circuit_init(&circuit);
    for (int i = 0; i < 1000; i++) {
        CU_ASSERT_EQUAL(circuit_failure(&circuit, &never, i), CIRCUIT_SAME);
    }
    CU_ASSERT_TRUE(circuit_allows(&circuit, 1000));
    circuit_destroy(&circuit);
}

static void *ask(void *allowed)
{
    for (int64_t now_ms = 1000; now_ms < 1200; now_ms++) {
        atomic_fetch_add((atomic_int *)allowed, circuit_allows(&circuit, now_ms));
    }
    return NULL;
}

static void of_many_threads_one_tries(void)
{
    pthread_t threads[4];
    atomic_int allowed = 0;
    open_at(1000);
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, ask, &allowed), 0);
    }
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        (void)pthread_join(threads[i], NULL);
    }
    CU_ASSERT_EQUAL(atomic_load(&allowed), 1);
    circuit_destroy(&circuit);
}

static const struct test tests[] = {
    TEST(so_many_failures_on_end_open_it_and_a_success_between_begins_anew),
    TEST(one_request_tries_and_its_success_closes_it),
    TEST(a_trial_that_tells_nothing_leaves_its_place_to_the_next),
    TEST(each_trial_that_fails_doubles_the_while_up_to_the_limit),
    TEST(failures_of_requests_that_began_before_change_nothing),
    TEST(a_trial_that_never_ends_makes_room_for_the_next),
    TEST(with_a_limit_of_none_it_never_opens),
    TEST(of_many_threads_one_tries),
};

int main(int argc, char **argv)
{
    return run_tests("circuit", tests, COUNT_OF(tests), argc, argv);
}
