/* core/gateway/model_list: what is read of an upstream's list of models, and for how long a list that was kept will do, with a
 * clock of the test's own. */
#include "base/buf.h"
#include "base/check.h"
#include "cunit_main.h"
#include "gateway/model_list.h"

#include <stdio.h>

static const uint8_t here[SHA256_BYTES] = {1}, there[SHA256_BYTES] = {2};
static struct model_list_cache cache;

static struct model_list *list_of(const char *id)
{
    char body[100];
    (void)snprintf(body, sizeof body, "{\"data\":[{\"id\":\"%s\"}]}", id); /* fits */
    return model_list_read(str_of(body));
}

static void both_vendors_forms_are_read(void)
{
    struct model_list *list = model_list_read(STR(
        "{\"object\":\"list\",\"data\":[{\"id\":\"gpt-x\",\"object\":\"model\",\"created\":"
        "1764400000,"
        "\"owned_by\":\"o\"},{\"type\":\"model\",\"id\":\"claude-x\",\"display_name\":\"Claude X\","
        "\"created_at\":\"2025-02-19T00:00:00Z\"},{\"id\":\"plain\"}],\"has_more\":false}"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(list);
    CU_ASSERT_EQUAL_FATAL(list->count, 3);
    CU_ASSERT_TRUE(str_is(list->models[0].id, "gpt-x"));
    CU_ASSERT_EQUAL(list->models[0].created_unix_s, 1764400000);
    CU_ASSERT_EQUAL(list->models[0].display_name.len, 0);
    CU_ASSERT_TRUE(str_is(list->models[1].display_name, "Claude X"));
    CU_ASSERT_EQUAL(list->models[1].created_unix_s, 1739923200);
    CU_ASSERT_EQUAL(list->models[2].created_unix_s, 0);
    model_list_unref(list);
}

static void what_is_no_list_is_none_and_what_is_no_entry_is_left_out(void)
{
    static const char *const none[] = {"", "x", "[]", "{}", "{\"data\":{}}", "{\"data\":[", "7"};
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        CU_ASSERT_PTR_NULL(model_list_read(str_of(none[i])));
    }
    struct model_list *list = model_list_read(STR(
        "{\"data\":[7,{\"id\":7},{\"id\":\"\"},{\"id\":\"a\\u0000b\"},{\"id\":\"x\",\"id\":\"y\"},"
        "{\"id\":\"good\",\"created\":-5,\"created_at\":\"soon\",\"display_name\":[]}]}"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(list);
    CU_ASSERT_EQUAL_FATAL(list->count, 1);
    CU_ASSERT_TRUE(str_is(list->models[0].id, "good"));
    CU_ASSERT_EQUAL(list->models[0].created_unix_s, 0);
    model_list_unref(list);
}

static void long_lists_and_long_names_are_bounded(void)
{
    BUF_CLEANUP struct buf body = {0};
    (void)buf_puts(&body, "{\"data\":[{\"id\":\"");
    for (int i = 0; i <= MODEL_ID_BYTES_MAX; i++) {
        (void)buf_puts(&body, "n");
    }
    (void)buf_puts(&body, "\"}");
    for (int i = 0; i < MODEL_LIST_MAX + 5; i++) {
        (void)buf_printf(&body, ",{\"id\":\"m%d\"}", i);
    }
    (void)buf_puts(&body, "]}");
    struct model_list *list = model_list_read(buf_str(&body));
    CU_ASSERT_PTR_NOT_NULL_FATAL(list);
    CU_ASSERT_EQUAL(list->count, MODEL_LIST_MAX);
    CU_ASSERT_TRUE(str_is(list->models[0].id, "m0"));
    model_list_unref(list);
}

/* The verdict, and the first name of what is given ("": nothing). */
static enum model_list_verdict look(int64_t now_ms, const char *wanted)
{
    struct model_list *list;
    enum model_list_verdict verdict = model_list_look(&cache, here, 1000, now_ms, &list);
    CU_ASSERT_TRUE(list == NULL ? wanted[0] == '\0' : str_is(list->models[0].id, wanted));
    model_list_unref(list);
    return verdict;
}

static void one_asks_and_the_others_wait_or_take_what_there_is(void)
{
    model_list_cache_init(&cache);
    CU_ASSERT_EQUAL(look(5000, ""), MODEL_LIST_FETCH);
    CU_ASSERT_EQUAL(look(5000, ""), MODEL_LIST_WAIT);
    model_list_tell(&cache, here, list_of("a"), true, 5100);
    CU_ASSERT_EQUAL(look(6099, "a"), MODEL_LIST_KEPT);
    CU_ASSERT_EQUAL(look(6100, "a"), MODEL_LIST_FETCH);
    CU_ASSERT_EQUAL(look(6100, "a"), MODEL_LIST_KEPT);
    model_list_tell(&cache, here, list_of("b"), true, 6200);
    CU_ASSERT_EQUAL(look(6300, "b"), MODEL_LIST_KEPT);
    model_list_cache_clear(&cache);
}

static void while_it_cannot_be_had_an_old_one_serves_for_a_day(void)
{
    const int64_t day = MODEL_LIST_STALE_MS;
    model_list_cache_init(&cache);
    CU_ASSERT_EQUAL(look(5000, ""), MODEL_LIST_FETCH);
    model_list_tell(&cache, here, NULL, true, 5000);
    CU_ASSERT_EQUAL(look(5000 + MODEL_LIST_RETRY_MS - 1, ""), MODEL_LIST_KEPT);
    CU_ASSERT_EQUAL(look(5000 + MODEL_LIST_RETRY_MS, ""), MODEL_LIST_FETCH);
    model_list_tell(&cache, here, list_of("a"), true, 20000);
    CU_ASSERT_EQUAL(look(20000 + day - 2, "a"), MODEL_LIST_FETCH);
    model_list_tell(&cache, here, NULL, true, 20000 + day - 2);
    CU_ASSERT_EQUAL(look(20000 + day - 1, "a"), MODEL_LIST_KEPT);
    CU_ASSERT_EQUAL(look(20000 + day, ""), MODEL_LIST_KEPT);
    model_list_cache_clear(&cache);
}

static void a_client_that_leaves_while_it_asks_leaves_the_question_open(void)
{
    model_list_cache_init(&cache);
    CU_ASSERT_EQUAL(look(5000, ""), MODEL_LIST_FETCH);
    model_list_tell(&cache, here, NULL, false, 5001);
    CU_ASSERT_EQUAL(look(5001, ""), MODEL_LIST_FETCH);
    model_list_tell(&cache, here, NULL, false, 5002);
    model_list_cache_clear(&cache);
}

static void another_address_or_key_has_another_list(void)
{
    struct model_list *list;
    model_list_cache_init(&cache);
    CU_ASSERT_EQUAL(look(5000, ""), MODEL_LIST_FETCH);
    model_list_tell(&cache, here, list_of("a"), true, 5000);
    CU_ASSERT_EQUAL(model_list_look(&cache, there, 1000, 5001, &list), MODEL_LIST_FETCH);
    CU_ASSERT_PTR_NULL(list);
    model_list_tell(&cache, here, list_of("late"), true, 5002); /* of the old place: not wanted */
    CU_ASSERT_EQUAL(model_list_look(&cache, there, 1000, 5003, &list), MODEL_LIST_FETCH);
    CU_ASSERT_PTR_NULL(list);
    model_list_tell(&cache, there, NULL, false, 5004);
    model_list_cache_clear(&cache);
}

static const struct test tests[] = {
    TEST(both_vendors_forms_are_read),
    TEST(what_is_no_list_is_none_and_what_is_no_entry_is_left_out),
    TEST(long_lists_and_long_names_are_bounded),
    TEST(one_asks_and_the_others_wait_or_take_what_there_is),
    TEST(while_it_cannot_be_had_an_old_one_serves_for_a_day),
    TEST(a_client_that_leaves_while_it_asks_leaves_the_question_open),
    TEST(another_address_or_key_has_another_list),
};

int main(int argc, char **argv)
{
    return run_tests("model_list", tests, COUNT_OF(tests), argc, argv);
}
