/* core/gateway/search_state: how often an identity may search, and answers that are given again. The time is the test's. */
#include "base/check.h"
#include "base/limits.h"
#include "cunit_main.h"
#include "gateway/search_state.h"

#include <stdio.h>
#include <stdlib.h>

static struct search_state *state;

static void the_clients_limit_is_read_where_it_is_one(void)
{
    static const struct {
        const char *options;
        int64_t max;
    } cases[] = {{"{\"max_uses\": 3, \"country\": \"NL\"}", 3},
                 {"{\"max_uses\": 0}", 0},
                 {"{\"max_uses\": -1}", -1},
                 {"{\"max_uses\": 1.5}", -1},
                 {"{\"max_uses\": \"3\"}", -1},
                 {"{\"max_uses\": null}", -1},
                 {"{}", -1},
                 {"[]", -1},
                 {"nonsense", -1},
                 {NULL, -1}};
    struct arena *arena = arena_new(0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CU_ASSERT_EQUAL(search_client_max(cases[i].options, arena), cases[i].max);
    }
    arena_free(arena);
}

static void the_limit_that_is_in_the_way_is_named(void)
{
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(search_is_allowed(100, -1, 0, &err), 0);
    CU_ASSERT_EQUAL(search_is_allowed(2, 3, 3, &err), 0);
    CU_ASSERT_EQUAL(search_is_allowed(3, 3, 0, &err), SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(err.message,
                           "The client allows 3 searches in this request, and they are used up: "
                           "answer with what you have.");
    CU_ASSERT_STRING_EQUAL(err.reason, "max_uses");
    CU_ASSERT_EQUAL(search_is_allowed(0, 0, 0, &err), SG_E_LIMIT);
    CU_ASSERT_EQUAL(search_is_allowed(2, 3, 2, &err), SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(
        err.message,
        "A request may search 2 times, and that is used up: answer with what you have.");
    CU_ASSERT_STRING_EQUAL(err.reason, "");
}

static int64_t ask(size_t search, const char *identity, int64_t now_ms)
{
    return search_rate_take(state, search, str_of(identity), 2, now_ms);
}

static void who_has_been_quiet_for_a_minute_is_forgotten(void)
{
    state = search_state_new();
    for (int i = 0; i < 1000; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "pt_%d", i);
        CU_ASSERT_EQUAL(ask(0, name, 1000 * i), 0);
    }
    CU_ASSERT_TRUE(search_rate_known(state) <= 61);
    CU_ASSERT_EQUAL(ask(0, "pt_999", 999000), 0);
    CU_ASSERT_TRUE(ask(0, "pt_999", 999000) > 0); /* those within it are not */
    search_state_free(state);
}

static void so_many_searches_begin_within_any_minute(void)
{
    state = search_state_new();
    CU_ASSERT_EQUAL(ask(0, "a", 1000), 0);
    CU_ASSERT_EQUAL(ask(0, "a", 31000), 0);
    CU_ASSERT_EQUAL(ask(0, "a", 31000), 30000);
    CU_ASSERT_EQUAL(ask(0, "a", 60999), 1);
    CU_ASSERT_EQUAL(ask(0, "a", 61000), 0);
    CU_ASSERT_EQUAL(ask(0, "a", 61001), 29999); /* what was refused did not count */
    CU_ASSERT_EQUAL(ask(0, "a", 91000), 0);
    CU_ASSERT_EQUAL(ask(0, "a", 500000), 0);
    search_state_free(state);
}

static void identities_and_searches_are_counted_apart(void)
{
    state = search_state_new();
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(ask(0, "a", 0), 0);
        CU_ASSERT_EQUAL(ask(0, "", 0), 0);
        CU_ASSERT_EQUAL(ask(1, "a", 0), 0);
    }
    CU_ASSERT_EQUAL(ask(0, "a", 0), 60000);
    CU_ASSERT_EQUAL(ask(0, "", 0), 60000);
    CU_ASSERT_EQUAL(ask(1, "a", 0), 60000);
    CU_ASSERT_EQUAL(ask(1, "", 0), 0);
    search_state_free(state);
    search_state_free(NULL);
}

static bool finds(const char *identity, const char *key, int64_t life_ms, int64_t now_ms,
                  const char *expected)
{
    BUF_CLEANUP struct buf found = {0};
    bool is_there =
        search_cache_find(state, str_of(identity), str_of(key), life_ms, now_ms, &found);
    CU_ASSERT_TRUE(!is_there || str_is(buf_str(&found), expected));
    return is_there;
}

static void what_is_kept_is_found_for_its_time_and_no_longer_for_being_used(void)
{
    state = search_state_new();
    search_cache_keep(state, STR("a"), STR("k"), STR("one"), 1000);
    CU_ASSERT_TRUE(finds("a", "k", 60000, 1000, "one"));
    CU_ASSERT_TRUE(finds("a", "k", 60000, 60999, "one"));
    CU_ASSERT_FALSE(finds("a", "k", 60000, 61000, ""));
    search_cache_keep(state, STR("a"), STR("k"), STR("two"), 61000);
    CU_ASSERT_TRUE(finds("a", "k", 60000, 61000, "two"));
    search_cache_keep(state, STR("a"), STR("none"), STR(""), 61000); /* no hits are an answer */
    CU_ASSERT_TRUE(finds("a", "none", 60000, 61000, ""));
    search_state_free(state);
}

static void another_identity_does_not_find_it(void)
{
    state = search_state_new();
    search_cache_keep(state, STR("a"), STR("k"), STR("one"), 0);
    CU_ASSERT_FALSE(finds("b", "k", 60000, 0, ""));
    CU_ASSERT_FALSE(finds("", "k", 60000, 0, ""));
    CU_ASSERT_FALSE(finds("a", "l", 60000, 0, ""));
    search_state_free(state);
}

static void the_cache_is_bounded(void)
{
    char *big = check_alloc(calloc(1, LIMIT_SEARCH_CACHED_BYTES));
    char key[32];
    state = search_state_new();
    search_cache_keep(state, STR("a"), STR("big"), (struct str){big, LIMIT_SEARCH_CACHED_BYTES}, 0);
    CU_ASSERT_FALSE(finds("a", "big", 60000, 0, ""));
    memset(big, 'x', LIMIT_SEARCH_CACHED_BYTES - 1);
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "%d", i);
        search_cache_keep(state, STR("a"), str_of(key), (struct str){big, 100 * KIB}, i);
    }
    struct buf found = {0};
    CU_ASSERT_FALSE(search_cache_find(state, STR("a"), STR("0"), 60000, 100, &found));
    CU_ASSERT_TRUE(search_cache_find(state, STR("a"), STR("99"), 60000, 100, &found));
    buf_clear(&found);
    search_state_free(state);
    free(big);
}

static const struct test tests[] = {
    TEST(the_clients_limit_is_read_where_it_is_one),
    TEST(the_limit_that_is_in_the_way_is_named),
    TEST(who_has_been_quiet_for_a_minute_is_forgotten),
    TEST(so_many_searches_begin_within_any_minute),
    TEST(identities_and_searches_are_counted_apart),
    TEST(what_is_kept_is_found_for_its_time_and_no_longer_for_being_used),
    TEST(another_identity_does_not_find_it),
    TEST(the_cache_is_bounded),
};

int main(int argc, char **argv)
{
    return run_tests("search_state", tests, COUNT_OF(tests), argc, argv);
}
