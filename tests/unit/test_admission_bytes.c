/* core/http/admission_bytes.c: bytes count against the budget of all and the identity's share of it, the refusals say
 * which, and all that was taken comes back. */
#include "base/check.h"
#include "cunit_main.h"
#include "http/admission.h"

#include <pthread.h>
#include <stdio.h>

enum { BUDGET = 1000, SHARE = 250 };

static struct account opened(const char *identity)
{
    struct account account = {0};
    account_open(&account, str_of(identity));
    return account;
}

static void expect_refusal(struct account *account, size_t bytes, int status, const char *message)
{
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(account_take(account, bytes, &err), SG_E_LIMIT);
    CU_ASSERT_EQUAL(err.status, status);
    CU_ASSERT_STRING_EQUAL(err.message, message);
}

static void without_a_budget_nothing_is_counted(void)
{
    struct sg_error err = {0};
    admission_set_budget(0, 0);
    struct account account = opened("a");
    CU_ASSERT_EQUAL(account_take(&account, SIZE_MAX, &err), 0);
    account_add(&account, 7);
    account_give(&account, 9);
    CU_ASSERT_EQUAL(admission_bytes(), 0);
    account_close(&account);
    account_close(&account); /* not open any more, which is fine */
    admission_set_budget(BUDGET, SHARE);
    CU_ASSERT_EQUAL(admission_budget(), BUDGET);
}

static void an_identity_holds_its_share_and_others_theirs(void)
{
    struct sg_error err = {0};
    struct account one = opened("a"), two = opened("a"), other = opened("b");
    CU_ASSERT_EQUAL(account_take(&one, 200, &err), 0);
    expect_refusal(&two, 51, 503,
                   "The requests of this key hold 250 bytes, their share of server.memory_budget: "
                   "try again later.");
    CU_ASSERT_EQUAL(admission_bytes(), 200);
    CU_ASSERT_EQUAL(account_take(&two, 50, &err), 0);
    CU_ASSERT_EQUAL(account_take(&other, SHARE, &err), 0);
    CU_ASSERT_EQUAL(admission_bytes(), 500);
    account_close(&one);
    CU_ASSERT_EQUAL(admission_bytes(), 300);
    CU_ASSERT_EQUAL(account_take(&two, 200, &err), 0);
    account_close(&two);
    account_close(&other);
    CU_ASSERT_EQUAL(admission_bytes(), 0);
}

static void all_together_hold_the_budget(void)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    struct account accounts[COUNT_OF(names)], late = opened("e");
    struct sg_error err = {0};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        accounts[i] = opened(names[i]);
        CU_ASSERT_EQUAL(account_take(&accounts[i], SHARE, &err), 0);
    }
    expect_refusal(&late, 1, 503,
                   "All requests together hold 1000 bytes, server.memory_budget: try again later.");
    CU_ASSERT_EQUAL(admission_bytes(), BUDGET);
    account_give(&accounts[2], 1);
    CU_ASSERT_EQUAL(account_take(&late, 1, &err), 0); /* the refused byte is on no account */
    expect_refusal(&late, 1, 503,
                   "All requests together hold 1000 bytes, server.memory_budget: try again later.");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        account_close(&accounts[i]);
    }
    CU_ASSERT_EQUAL(account_take(&late, SHARE - 1, &err), 0);
    account_close(&late);
    CU_ASSERT_EQUAL(admission_bytes(), 0);
}

static void what_an_empty_gateway_would_not_hold_is_413(void)
{
    static const char message[] = "This request needs more than 250 bytes, the most that one key "
                                  "may hold of server.memory_budget.";
    struct sg_error err = {0};
    struct account account = opened("a");
    expect_refusal(&account, SHARE + 1, 413, message);
    expect_refusal(&account, SIZE_MAX, 413, message);
    CU_ASSERT_EQUAL(account_take(&account, SHARE, &err), 0);
    expect_refusal(&account, 1, 413, message);
    CU_ASSERT_EQUAL(account_take(&account, 0, &err), 0);
    account_close(&account);
}

static void an_account_is_set_up_and_down(void)
{
    struct sg_error err = {0};
    struct account account = opened("a"), other = opened("a");
    CU_ASSERT_EQUAL(account_set(&account, 100, &err), 0);
    CU_ASSERT_EQUAL(account_set(&account, 40, &err), 0);
    CU_ASSERT_EQUAL(admission_bytes(), 40);
    CU_ASSERT_EQUAL(account_set(&account, 40, &err), 0);
    CU_ASSERT_EQUAL(account_take(&other, 200, &err), 0);
    CU_ASSERT_EQUAL(account_set(&account, 51, &err), SG_E_LIMIT);
    CU_ASSERT_EQUAL(account.bytes, 40); /* as it was */
    CU_ASSERT_EQUAL(account_set(&account, 0, &err), 0);
    CU_ASSERT_EQUAL(admission_bytes(), 200);
    account_close(&account);
    account_close(&other);
}

/* Output that is bounded by itself is never refused, but leaves less for what can be. */
static void what_must_be_held_is_added_beyond_the_share(void)
{
    struct account account = opened("a"), other = opened("a");
    account_add(&account, SHARE + 50);
    CU_ASSERT_EQUAL(admission_bytes(), SHARE + 50);
    expect_refusal(&other, 1, 503,
                   "The requests of this key hold 250 bytes, their share of server.memory_budget: "
                   "try again later.");
    account_close(&account);
    account_close(&other);
    CU_ASSERT_EQUAL(admission_bytes(), 0);
}

static void identities_that_were_away_have_their_whole_share(void)
{
    struct sg_error err = {0};
    char name[16];
    for (int i = 0; i < 600; i++) { /* more than there are buckets */
        snprintf(name, sizeof name, "key-%d", i % 300);
        struct account account = opened(name), empty = opened("");
        CU_ASSERT_EQUAL(account_take(&account, SHARE, &err), 0);
        CU_ASSERT_EQUAL(account_take(&empty, SHARE, &err), 0);
        account_close(&account);
        account_close(&empty);
    }
    CU_ASSERT_EQUAL(admission_bytes(), 0);
}

static void *take_and_give(void *arg)
{
    struct sg_error err = {0};
    uintptr_t taken = 0;
    for (int i = 0; i < 2000; i++) {
        struct account account = opened(arg);
        if (account_take(&account, 200, &err) == 0) {
            taken++;
            CHECK(admission_bytes() <= BUDGET);
            account_add(&account, 0);
            account_give(&account, 150);
        }
        account_close(&account);
    }
    return (void *)taken;
}

static void threads_never_take_more_and_leave_nothing(void)
{
    static char names[][2] = {"a", "a", "b", "c", "d", "e", "f", "g"};
    pthread_t threads[COUNT_OF(names)];
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, take_and_give, names[i]), 0);
    }
    uintptr_t sum = 0;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        void *taken;
        CU_ASSERT_EQUAL(pthread_join(threads[i], &taken), 0);
        sum += (uintptr_t)taken;
    }
    CU_ASSERT_TRUE(sum > 0);
    CU_ASSERT_EQUAL(admission_bytes(), 0);
}

static void the_machine_has_some_memory(void)
{
    CU_ASSERT_TRUE(admission_machine_bytes() >= 16u << 20);
}

static const struct test tests[] = {
    TEST(the_machine_has_some_memory),
    TEST(without_a_budget_nothing_is_counted),
    TEST(an_identity_holds_its_share_and_others_theirs),
    TEST(all_together_hold_the_budget),
    TEST(what_an_empty_gateway_would_not_hold_is_413),
    TEST(an_account_is_set_up_and_down),
    TEST(what_must_be_held_is_added_beyond_the_share),
    TEST(identities_that_were_away_have_their_whole_share),
    TEST(threads_never_take_more_and_leave_nothing),
};

int main(int argc, char **argv)
{
    admission_set_budget(BUDGET, SHARE);
    return run_tests("admission_bytes", tests, COUNT_OF(tests), argc, argv);
}
