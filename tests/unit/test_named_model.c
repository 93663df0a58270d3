/* core/gateway/named_model: how requests are spread over the entries of a model, and which come next when one fails. */
#include "base/check.h"
#include "cunit_main.h"
#include "gateway/named_model.h"

#include <stdio.h>

static struct arena *arena;
static struct named_model model;

/* Entries of `to` with these weights, ended by 0, and so many of `fallback`. */
static void make(const unsigned *weights, size_t fallback)
{
    arena = arena_new(0);
    model = (struct named_model){.name = "m"};
    for (; weights[model.to_count] != 0; model.to_count++) {
        model.entries[model.to_count].weight = weights[model.to_count];
    }
    model.count = model.to_count + fallback;
    named_model_schedule(&model, arena);
}

static void end(void)
{
    arena_free(arena);
}

/* "aabac": the entries whose turn it is, from a ticket on. */
static const char *turns_from(unsigned ticket, size_t count)
{
    static char text[64];
    uint8_t order[NAMED_MODEL_ENTRIES_MAX];
    for (size_t i = 0; i < count; i++) {
        named_model_order(&model, ticket + (unsigned)i, order);
        text[i] = (char)('a' + order[0]);
    }
    text[count] = '\0';
    return text;
}

static const char *order_of(unsigned ticket)
{
    static char text[NAMED_MODEL_ENTRIES_MAX + 1];
    uint8_t order[NAMED_MODEL_ENTRIES_MAX];
    named_model_order(&model, ticket, order);
    for (size_t i = 0; i < model.count; i++) {
        text[i] = (char)('a' + order[i]);
    }
    text[model.count] = '\0';
    return text;
}

static void each_has_its_share_in_every_round_and_no_two_turns_on_end_without_need(void)
{
    make((const unsigned[]){5, 1, 1, 0}, 0);
    CU_ASSERT_STRING_EQUAL(turns_from(0, 14), "aabacaaaabacaa");
    end();
    make((const unsigned[]){1, 1, 0}, 0);
    CU_ASSERT_STRING_EQUAL(turns_from(0, 6), "ababab");
    end();
    make((const unsigned[]){3, 1, 0}, 1);
    CU_ASSERT_STRING_EQUAL(turns_from(0, 8), "aabaaaba");
    end();
}

static void weights_with_a_common_divisor_are_made_small(void)
{
    make((const unsigned[]){100, 50, 50, 0}, 0);
    CU_ASSERT_EQUAL(model.schedule_count, 4);
    CU_ASSERT_STRING_EQUAL(turns_from(0, 8), "abcaabca");
    end();
}

static void the_counter_may_wrap(void)
{
    make((const unsigned[]){1, 1, 0}, 0);
    CU_ASSERT_STRING_EQUAL(turns_from(UINT32_MAX, 3), "bab");
    end();
}

static void the_others_follow_and_the_fallback_is_last_as_it_is_written(void)
{
    make((const unsigned[]){5, 1, 1, 0}, 2);
    CU_ASSERT_STRING_EQUAL(order_of(0), "abcde");
    CU_ASSERT_STRING_EQUAL(order_of(2), "bacde");
    CU_ASSERT_STRING_EQUAL(order_of(4), "cabde");
    CU_ASSERT_STRING_EQUAL(order_of(3), "acbde");
    end();
}

static void the_most_entries_with_the_greatest_weights_have_their_shares(void)
{
    unsigned weights[NAMED_MODEL_ENTRIES_MAX + 1] = {0};
    size_t counts[NAMED_MODEL_ENTRIES_MAX] = {0};
    size_t total = 0;
    for (size_t i = 0; i < NAMED_MODEL_ENTRIES_MAX; i++) {
        weights[i] = NAMED_MODEL_WEIGHT_MAX - (unsigned)i % 2; /* 100 and 99: no common divisor */
        total += weights[i];
    }
    make(weights, 0);
    CU_ASSERT_EQUAL_FATAL(model.schedule_count, total);
    for (size_t i = 0; i < total; i++) {
        counts[model.schedule[i]]++;
    }
    for (size_t i = 0; i < NAMED_MODEL_ENTRIES_MAX; i++) {
        CU_ASSERT_EQUAL(counts[i], weights[i]);
    }
    end();
}

static const struct test tests[] = {
    TEST(each_has_its_share_in_every_round_and_no_two_turns_on_end_without_need),
    TEST(weights_with_a_common_divisor_are_made_small),
    TEST(the_counter_may_wrap),
    TEST(the_others_follow_and_the_fallback_is_last_as_it_is_written),
    TEST(the_most_entries_with_the_greatest_weights_have_their_shares),
};

int main(int argc, char **argv)
{
    return run_tests("named_model", tests, COUNT_OF(tests), argc, argv);
}
