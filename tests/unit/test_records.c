/* core/session/records: found by each of their ids and by their own identity only, bounded in time and bytes, the least
 * recently used first; what was given out stays readable. */
#include "base/buf.h"
#include "base/check.h"
#include "cunit_main.h"
#include "session/records.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static struct records *store(size_t record, size_t identity, size_t total)
{
    struct records_options options;
    records_options_default(&options);
    options.life_ms = 1000;
    options.record_bytes = record > 0 ? record : options.record_bytes;
    options.identity_bytes = identity > 0 ? identity : options.identity_bytes;
    options.total_bytes = total > 0 ? total : options.total_bytes;
    return records_new(&options);
}

static bool keep(struct records *records, const char *identity, const char *id, const char *data,
                 int64_t now)
{
    struct str ids[] = {str_of(id)};
    struct record_input input = {.identity = str_of(identity),
                                 .ids = ids,
                                 .ids_count = 1,
                                 .data = str_of(data),
                                 .container_id = STR("cntr_sg1")};
    return records_keep(records, &input, now);
}

/* What stands under the id, as text for comparison; "-" where there is nothing. */
static const char *found(struct records *records, const char *identity, const char *id, int64_t now)
{
    static char text[64];
    struct record *record = records_find(records, str_of(identity), str_of(id), now);
    if (record == NULL) {
        return "-";
    }
    struct str data = record_data(record);
    snprintf(text, sizeof text, "%.*s", (int)data.len, data.data);
    record_unref(record);
    return text;
}

static struct records_stats stats_of(struct records *records)
{
    struct records_stats stats;
    records_stats(records, &stats);
    return stats;
}

static void a_record_is_found_by_each_of_its_ids(void)
{
    struct records *records = store(0, 0, 0);
    struct str ids[] = {STR("one"), STR("two")};
    struct record_input input = {
        .identity = STR("a"), .ids = ids, .ids_count = 2, .data = STR("data")};
    CU_ASSERT_TRUE(records_keep(records, &input, 0));
    CU_ASSERT_STRING_EQUAL(found(records, "a", "one", 1), "data");
    CU_ASSERT_STRING_EQUAL(found(records, "a", "two", 1), "data");
    CU_ASSERT_STRING_EQUAL(found(records, "a", "three", 1), "-");
    struct record *record = records_find(records, STR("a"), STR("one"), 1);
    CU_ASSERT_EQUAL(record_container_id(record).len, 0);
    record_unref(record);
    CU_ASSERT_EQUAL(stats_of(records).count, 1);
    CU_ASSERT_EQUAL(stats_of(records).found, 3);
    CU_ASSERT_EQUAL(stats_of(records).missed, 1);
    records_free(records);
}

static void users_of_one_key_share_its_bytes_and_nothing_else(void)
{
    struct records *records = store(0, 1000, 0);
    CU_ASSERT_TRUE(keep(records,
                        "k\x1f"
                        "ann",
                        "id", "of ann", 0));
    CU_ASSERT_TRUE(keep(records,
                        "k\x1f"
                        "bob",
                        "id", "of bob", 0));
    CU_ASSERT_TRUE(keep(records, "other", "id", "another's", 0));
    CU_ASSERT_STRING_EQUAL(found(records,
                                 "k\x1f"
                                 "ann",
                                 "id", 1),
                           "of ann");
    CU_ASSERT_STRING_EQUAL(found(records,
                                 "k\x1f"
                                 "bob",
                                 "id", 1),
                           "of bob");
    CU_ASSERT_STRING_EQUAL(found(records, "k", "id", 1), "-");
    CU_ASSERT_STRING_EQUAL(found(records,
                                 "k\x1f"
                                 "an",
                                 "id", 1),
                           "-");
    for (int i = 0; i < 20; i++) { /* more than the key's bytes */
        char user[32];
        snprintf(user, sizeof user, "k\x1fuser%d", i);
        CU_ASSERT_TRUE(keep(records, user, "id", "made up", 2));
    }
    CU_ASSERT_STRING_EQUAL(found(records,
                                 "k\x1f"
                                 "ann",
                                 "id", 3),
                           "-");
    CU_ASSERT_STRING_EQUAL(found(records, "other", "id", 3), "another's");
    CU_ASSERT_TRUE(stats_of(records).bytes <= 2000);
    records_free(records);
}

static void an_id_is_the_latest_records_and_the_others_stay(void)
{
    struct records *records = store(0, 0, 0);
    struct str first[] = {STR("resp_1"), STR("msg_1")}, second[] = {STR("resp_2"), STR("msg_1")};
    struct record_input input = {
        .identity = STR("a"), .ids = first, .ids_count = 2, .data = STR("first")};
    CU_ASSERT_TRUE(records_keep(records, &input, 0));
    input.ids = second;
    input.data = STR("second");
    CU_ASSERT_TRUE(records_keep(records, &input, 0));
    CU_ASSERT_STRING_EQUAL(found(records, "a", "resp_1", 1), "first");
    CU_ASSERT_STRING_EQUAL(found(records, "a", "msg_1", 1), "second");
    CU_ASSERT_EQUAL(stats_of(records).count, 2);
    CU_ASSERT_TRUE(keep(records, "a", "resp_1", "third", 0));
    CU_ASSERT_EQUAL(stats_of(records).count, 2); /* the first one could not be found any more */
    records_free(records);
}

static void a_record_is_dropped_at_its_identitys_wish(void)
{
    struct records *records = store(0, 0, 0);
    CU_ASSERT_TRUE(keep(records, "a", "id", "of a", 0));
    CU_ASSERT_TRUE(keep(records, "b", "id", "of b", 0));
    CU_ASSERT_FALSE(records_drop(records, STR("a"), STR("other"), 1));
    CU_ASSERT_TRUE(records_drop(records, STR("a"), STR("id"), 1));
    CU_ASSERT_FALSE(records_drop(records, STR("a"), STR("id"), 1));
    CU_ASSERT_STRING_EQUAL(found(records, "a", "id", 1), "-");
    CU_ASSERT_STRING_EQUAL(found(records, "b", "id", 1), "of b");
    records_free(records);
}

static void another_identity_does_not_find_it(void)
{
    struct records *records = store(0, 0, 0);
    CU_ASSERT_TRUE(keep(records, "a", "id", "of a", 0));
    CU_ASSERT_STRING_EQUAL(found(records, "b", "id", 0), "-");
    CU_ASSERT_STRING_EQUAL(found(records, "", "id", 0), "-");
    CU_ASSERT_TRUE(keep(records, "b", "id", "of b", 0)); /* of the same id: both stand */
    CU_ASSERT_TRUE(keep(records, "", "id", "of nobody", 0));
    CU_ASSERT_STRING_EQUAL(found(records, "a", "id", 0), "of a");
    CU_ASSERT_STRING_EQUAL(found(records, "b", "id", 0), "of b");
    CU_ASSERT_STRING_EQUAL(found(records, "", "id", 0), "of nobody");
    CU_ASSERT_EQUAL(stats_of(records).identities, 3);
    records_free(records);
}

static void a_record_ends_when_it_was_not_used_for_its_life(void)
{
    struct records *records = store(0, 0, 0);
    CU_ASSERT_TRUE(keep(records, "a", "used", "1", 0));
    CU_ASSERT_TRUE(keep(records, "a", "idle", "2", 0));
    CU_ASSERT_STRING_EQUAL(found(records, "a", "used", 999), "1");
    CU_ASSERT_STRING_EQUAL(found(records, "a", "idle", 1000), "-");
    CU_ASSERT_STRING_EQUAL(found(records, "a", "used", 1998), "1");
    CU_ASSERT_EQUAL(stats_of(records).expired, 1);
    CU_ASSERT_STRING_EQUAL(found(records, "a", "used", 2998), "-");
    CU_ASSERT_EQUAL(stats_of(records).count, 0);
    CU_ASSERT_EQUAL(stats_of(records).bytes, 0);
    CU_ASSERT_EQUAL(stats_of(records).identities, 0);
    records_free(records);
}

static void the_one_used_least_recently_makes_room(void)
{
    struct records *probe = store(0, 0, 0);
    CU_ASSERT_TRUE(keep(probe, "a", "1", "x", 0));
    size_t one = stats_of(probe).bytes; /* of a record of this size */
    records_free(probe);
    struct records *records = store(0, 3 * one, 5 * one);
    CU_ASSERT_TRUE(keep(records, "a", "1", "x", 0));
    CU_ASSERT_TRUE(keep(records, "a", "2", "x", 0));
    CU_ASSERT_TRUE(keep(records, "a", "3", "x", 0));
    CU_ASSERT_STRING_EQUAL(found(records, "a", "1", 1), "x");
    CU_ASSERT_TRUE(keep(records, "a", "4", "x", 1));
    CU_ASSERT_STRING_EQUAL(found(records, "a", "2", 1), "-");
    CU_ASSERT_STRING_EQUAL(found(records, "a", "1", 1), "x");
    CU_ASSERT_EQUAL(stats_of(records).bytes, 3 * one);
    CU_ASSERT_TRUE(keep(records, "b", "5", "x", 1)); /* 3 of a, 1 of b */
    CU_ASSERT_TRUE(keep(records, "c", "6", "x", 1));
    CU_ASSERT_EQUAL(stats_of(records).count, 5);
    CU_ASSERT_TRUE(keep(records, "d", "7", "x", 1)); /* of all: the oldest, which is one of a */
    CU_ASSERT_EQUAL(stats_of(records).count, 5);
    CU_ASSERT_STRING_EQUAL(found(records, "a", "3", 1), "-");
    CU_ASSERT_STRING_EQUAL(found(records, "b", "5", 1), "x");
    CU_ASSERT_EQUAL(stats_of(records).evicted, 2);
    records_free(records);
}

static void a_record_that_alone_is_too_large_is_refused_and_evicts_nothing(void)
{
    struct records *records = store(1024, 4096, 0);
    BUF_CLEANUP struct buf big = {0};
    while (big.len < 1024) {
        buf_putc(&big, 'x');
    }
    CU_ASSERT_TRUE(keep(records, "a", "small", "x", 0));
    CU_ASSERT_FALSE(keep(records, "a", "big", big.data, 0));
    CU_ASSERT_STRING_EQUAL(found(records, "a", "big", 0), "-");
    CU_ASSERT_STRING_EQUAL(found(records, "a", "small", 0), "x");
    CU_ASSERT_EQUAL(stats_of(records).refused, 1);
    big.data[700] = '\0';
    CU_ASSERT_TRUE(keep(records, "a", "fits", big.data, 0));
    records_free(records);
}

static void one_that_was_given_out_stays_readable(void)
{
    struct records *records = store(0, 0, 0);
    CU_ASSERT_TRUE(keep(records, "a", "id", "first", 0));
    struct record *held = records_find(records, STR("a"), STR("id"), 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(held);
    CU_ASSERT_TRUE(keep(records, "a", "id", "second", 0)); /* takes its place */
    CU_ASSERT_STRING_EQUAL(found(records, "a", "id", 0), "second");
    CU_ASSERT_STRING_EQUAL(found(records, "a", "id", 5000), "-");
    CU_ASSERT_TRUE(str_is(record_data(held), "first"));
    CU_ASSERT_TRUE(str_is(record_container_id(held), "cntr_sg1"));
    record_unref(held);
    record_unref(NULL);
    CU_ASSERT_EQUAL(stats_of(records).count, 0);
    records_free(records);
    records_free(NULL);
}

/* ---- threads ---- */

enum { ROUNDS = 2000, IDS = 16 };

static void *hammer(void *arg)
{
    struct records *records = arg;
    char id[16], data[32];
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(id, sizeof id, "id%d", i % IDS);
        snprintf(data, sizeof data, "data of %d", i % IDS);
        if (i % 3 == 0) {
            (void)keep(records, "a", id, data, i);
            continue;
        }
        struct record *record = records_find(records, STR("a"), str_of(id), i);
        if (record != NULL) {
            CHECK(str_is(record_data(record), data));
            record_unref(record);
        }
    }
    return NULL;
}

static void several_threads_may_use_it(void)
{
    struct records *records = store(0, 600, 0); /* so that there is always something to evict */
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, hammer, records), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    CU_ASSERT_TRUE(stats_of(records).bytes <= 600);
    CU_ASSERT_TRUE(stats_of(records).evicted > 0);
    records_free(records);
}

static const struct test tests[] = {
    TEST(a_record_is_found_by_each_of_its_ids),
    TEST(users_of_one_key_share_its_bytes_and_nothing_else),
    TEST(an_id_is_the_latest_records_and_the_others_stay),
    TEST(a_record_is_dropped_at_its_identitys_wish),
    TEST(another_identity_does_not_find_it),
    TEST(a_record_ends_when_it_was_not_used_for_its_life),
    TEST(the_one_used_least_recently_makes_room),
    TEST(a_record_that_alone_is_too_large_is_refused_and_evicts_nothing),
    TEST(one_that_was_given_out_stays_readable),
    TEST(several_threads_may_use_it),
};

int main(int argc, char **argv)
{
    return run_tests("records", tests, COUNT_OF(tests), argc, argv);
}
