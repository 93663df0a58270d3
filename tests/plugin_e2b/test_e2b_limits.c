/* Making a sandbox where there is a limit: of how often the API is asked, of the account, of our own. */
#include "life_fixture.h"

static const char *const in_seven[] = {"retry-after", "7", NULL};

static void rate_limit(struct fixture *f, const char *const *headers)
{
    call_reply(f->call, (struct fake_reply){.status = 429,
                                            .headers = headers,
                                            .body = "{\"code\": 429, \"message\": \"Rate\"}"});
}

static void a_rate_limit_is_waited_for_as_long_as_it_says_and_three_times_at_most(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    rate_limit(&f, in_seven);
    reply(&f, 201, CREATED(ID));
    CU_ASSERT_EQUAL(create(&f, "sg-first"), 0);
    CU_ASSERT_EQUAL(f.call->sleeps, 1);
    CU_ASSERT(f.call->slept_ms > 6500 && f.call->slept_ms <= 7000);

    next_call(&f); /* it holds for all, and is told to the fourth time */
    for (int i = 0; i < 4; i++) {
        rate_limit(&f, in_seven);
    }
    CU_ASSERT_EQUAL(create(&f, "sg-second"), SG_E_LIMIT);
    expect_message(&f, "cannot make a sandbox: E2B limits how often it is asked (429); try again "
                       "in 7 s");
    CU_ASSERT_EQUAL(f.call->requests_count, 4);
    CU_ASSERT_EQUAL(f.call->sleeps, 4);

    next_call(&f);
    f.call->time_left_ms = 3000; /* less than is to be waited */
    CU_ASSERT_EQUAL(create(&f, "sg-third"), SG_E_LIMIT);
    CU_ASSERT_EQUAL(f.call->requests_count, 0);
    expect_message(&f, "cannot make a sandbox: E2B's API is not asked: E2B limits how often it is "
                       "(429); it wants rest for 7 s, more than there is time; try again later");
    rate_limit(
        &f, in_seven); /* but an end is asked for, once: a sandbox costs as long as it is there */
    CU_ASSERT_EQUAL(e2b_destroy(f.e2b, f.call, ID, call_error(f.call)), SG_E_LIMIT);
    CU_ASSERT_EQUAL(f.call->requests_count, 1);
    CU_ASSERT_STRING_EQUAL(f.call->requests[0].method, "DELETE");
    f.e2b->api_closed_until = 0;
    fixture_free(&f);
}

/* An hour may be a mistake: after two minutes one call asks, and the others wait for what it hears. */
static void a_long_rest_is_kept_to_for_two_minutes_and_then_probed_by_one_call(void)
{
    static const char *const in_an_hour[] = {"retry-after", "3600", NULL};
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    rate_limit(&f, in_an_hour);
    CU_ASSERT_EQUAL(create(&f, "sg-first"), SG_E_LIMIT);
    expect_message(&f, "cannot make a sandbox: E2B limits how often it is asked (429); try again "
                       "in 120 s");
    int64_t left = f.e2b->api_closed_until - clock_ms();
    CU_ASSERT(left > 110000 && left <= 120000);

    f.e2b->api_closed_until = clock_ms() - 1; /* two minutes later: the probe hears the same */
    next_call(&f);
    rate_limit(&f, in_an_hour);
    CU_ASSERT_EQUAL(create(&f, "sg-second"), SG_E_LIMIT);
    CU_ASSERT_EQUAL(f.call->requests_count, 1);
    next_call(&f);
    CU_ASSERT_EQUAL(create(&f, "sg-third"), SG_E_LIMIT);
    CU_ASSERT_EQUAL(f.call->requests_count, 0);

    f.e2b->api_closed_until = clock_ms() - 1; /* the probe has no answer: it stays closed */
    next_call(&f);
    call_reply(f.call, (struct fake_reply){.code = SG_E_UNAVAILABLE,
                                           .failed_at = SG_HTTP_UNRESOLVED,
                                           .message = "m"});
    CU_ASSERT_EQUAL(create(&f, "sg-fourth"), SG_E_UNAVAILABLE);
    CU_ASSERT(f.e2b->api_closed_until > clock_ms());
    next_call(&f);
    f.call->time_left_ms = 1000;
    CU_ASSERT_EQUAL(create(&f, "sg-fifth"), SG_E_LIMIT);
    CU_ASSERT_EQUAL(f.call->requests_count, 0);

    f.e2b->api_closed_until = clock_ms() - 1; /* and a success opens it for all */
    next_call(&f);
    reply(&f, 201, CREATED(ID));
    CU_ASSERT_EQUAL(create(&f, "sg-sixth"), 0);
    CU_ASSERT_EQUAL(f.e2b->api_closed_until, 0);
    CU_ASSERT_FALSE(f.e2b->wants_probe);
    fixture_free(&f);
}

static void a_limit_of_the_account_fails_at_once(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    reply(&f, 429,
          "{\"code\": 429, \"message\": \"you have reached the maximum number of "
          "concurrent E2B sandboxes (20)\"}");
    CU_ASSERT_EQUAL(create(&f, "sg-first"), SG_E_LIMIT);
    expect_message(&f, "cannot make a sandbox: a limit of the account at E2B is reached (429); end "
                       "sandboxes, or try again later: you have reached the maximum number of "
                       "concurrent E2B sandboxes (20)");
    CU_ASSERT_EQUAL(f.call->requests_count, 1);
    CU_ASSERT_EQUAL(f.call->sleeps, 0);
    fixture_free(&f);
}

/* Sixty at one time must not ask sixty times; where one of ours is ended there is room again. */
static void a_full_account_is_not_asked_again_for_two_seconds_or_until_one_is_ended(void)
{
    static const char *const dates[] = {NULL, "Wed, 21 Oct 2026 07:28:00 GMT", "abc", "-5"};
    for (size_t i = 0; i < COUNT_OF(dates); i++) {
        const char *const headers[] = {dates[i] == NULL ? NULL : "retry-after", dates[i], NULL};
        const char *message = "cannot make a sandbox: a limit of the account at E2B is reached "
                              "(429); end sandboxes, or try again later: Rate";
        struct fixture f;
        fixture_init(&f);
        config_set(plugin, f.config, "concurrency", "3");
        fixture_open(&f);
        make(&f, CREATED(ID));
        rate_limit(&f, headers);
        CU_ASSERT_EQUAL(create(&f, "sg-second"), SG_E_LIMIT);
        expect_message(&f, message);
        int64_t left = f.e2b->full_until - clock_ms();
        CU_ASSERT(left > 1000 && left <= 2000);
        for (int again = 0; again < 5; again++) {
            next_call(&f);
            CU_ASSERT_EQUAL(create(&f, "sg-third"), SG_E_LIMIT);
            expect_message(&f, message);
            CU_ASSERT_EQUAL(f.call->requests_count, 0);
        }
        CU_ASSERT_EQUAL(f.e2b->count, 1);
        if (i % 2 == 0) {
            reply(&f, 204, "");
            CU_ASSERT_EQUAL(e2b_destroy(f.e2b, f.call, ID, call_error(f.call)), 0);
        } else {
            f.e2b->full_until = clock_ms(); /* the time is over */
        }
        next_call(&f);
        make(&f, CREATED(OTHER));
        fixture_free(&f);
    }
}

static void our_own_limit_counts_those_that_are_there(void)
{
    struct fixture f;
    fixture_init(&f);
    config_set(plugin, f.config, "concurrency", "1");
    fixture_open(&f);
    reply(&f, 403, "{\"code\": 403, \"message\": \"no\"}"); /* gives its place back */
    CU_ASSERT_EQUAL(create(&f, "sg-none"), SG_E_DENIED);
    next_call(&f);
    make(&f, CREATED(ID));
    CU_ASSERT_EQUAL(create(&f, "sg-second"), SG_E_LIMIT);
    expect_message(&f, "cannot make a sandbox: all 1 that 'concurrency' allows are in use; end "
                       "one, or try again later");
    CU_ASSERT_EQUAL(f.call->requests_count, 0);
    reply(&f, 204, "");
    CU_ASSERT_EQUAL(e2b_destroy(f.e2b, f.call, ID, call_error(f.call)), 0);
    next_call(&f);
    make(&f, CREATED(OTHER));
    fixture_free(&f);
}

static const struct test tests[] = {
    TEST(a_rate_limit_is_waited_for_as_long_as_it_says_and_three_times_at_most),
    TEST(a_long_rest_is_kept_to_for_two_minutes_and_then_probed_by_one_call),
    TEST(a_limit_of_the_account_fails_at_once),
    TEST(a_full_account_is_not_asked_again_for_two_seconds_or_until_one_is_ended),
    TEST(our_own_limit_counts_those_that_are_there),
};

int main(int argc, char **argv)
{
    return run_tests("e2b_limits", tests, COUNT_OF(tests), argc, argv);
}
