/* Whom upstreams have accepted: for how long, how many, and that a name tells nothing of the key. */
#include "base/check.h"
#include "cunit_main.h"
#include "gateway/passthrough.h"

#include <stdio.h>

static void an_identity_is_of_one_key_at_one_upstream_in_one_process(void)
{
    struct passthrough *p = passthrough_new(1000, 10), *other = passthrough_new(1000, 10);
    static const struct {
        struct str key, upstream;
    } who[] = {{STR("sk-1"), STR("up")},
               {STR("sk-2"), STR("up")},
               {STR("sk-1"), STR("down")},
               {STR("1"), STR("upsk-")},
               {STR("sk-1up"), STR("")}};
    char names[COUNT_OF(who)][PASSTHROUGH_IDENTITY_BYTES], again[PASSTHROUGH_IDENTITY_BYTES];
    for (size_t i = 0; i < COUNT_OF(who); i++) {
        passthrough_identity(p, who[i].key, who[i].upstream, names[i]);
        passthrough_identity(p, who[i].key, who[i].upstream, again);
        CU_ASSERT_STRING_EQUAL(names[i], again);
        CU_ASSERT_EQUAL(strlen(names[i]), PASSTHROUGH_IDENTITY_BYTES - 1);
        passthrough_identity(other, who[i].key, who[i].upstream, again);
        CU_ASSERT_STRING_NOT_EQUAL(names[i], again);
        for (size_t k = 0; k < i; k++) {
            CU_ASSERT_STRING_NOT_EQUAL(names[i], names[k]);
        }
    }
    passthrough_free(p);
    passthrough_free(other);
}

static void one_is_believed_for_a_while_from_the_last_time_it_was_accepted(void)
{
    struct passthrough *p = passthrough_new(1000, 10);
    CU_ASSERT_FALSE(passthrough_believes(p, STR("pt_a"), 0));
    passthrough_accept(p, STR("pt_a"), 100);
    CU_ASSERT_TRUE(passthrough_believes(p, STR("pt_a"), 1099));
    CU_ASSERT_FALSE(passthrough_believes(p, STR("pt_a"), 1100));
    CU_ASSERT_FALSE(passthrough_believes(p, STR("pt_b"), 200));
    passthrough_accept(p, STR("pt_a"), 1050);
    CU_ASSERT_TRUE(passthrough_believes(p, STR("pt_a"), 2049));
    passthrough_free(p);
}

static void they_are_bounded_and_those_accepted_longest_ago_go_first(void)
{
    struct passthrough *p = passthrough_new(1000, 3);
    char name[32];
    for (int i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof name, "pt_%d", i);
        passthrough_accept(p, str_of(name), i);
    }
    passthrough_accept(p, STR("pt_0"), 5); /* again */
    passthrough_accept(p, STR("pt_new"), 6);
    CU_ASSERT_FALSE(passthrough_believes(p, STR("pt_1"), 7));
    CU_ASSERT_TRUE(passthrough_believes(p, STR("pt_0"), 7));
    CU_ASSERT_TRUE(passthrough_believes(p, STR("pt_2"), 7));
    CU_ASSERT_TRUE(passthrough_believes(p, STR("pt_new"), 7));
    passthrough_free(p);
}

static const struct test tests[] = {
    TEST(an_identity_is_of_one_key_at_one_upstream_in_one_process),
    TEST(one_is_believed_for_a_while_from_the_last_time_it_was_accepted),
    TEST(they_are_bounded_and_those_accepted_longest_ago_go_first),
};

int main(int argc, char **argv)
{
    return run_tests("passthrough", tests, COUNT_OF(tests), argc, argv);
}
