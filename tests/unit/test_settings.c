/* Settings that others take the place of while threads read of them, what differs between two configuration files, and when a
 * key expires. */
#include "base/check.h"
#include "cunit_main.h"
#include "gateway/changes.h"
#include "gateway/quota.h"
#include "gateway/settings.h"
#include "gateway/upstream_state.h"

#include <pthread.h>
#include <stdio.h>

/* ---- settings ---- */

static struct settings *settings_of(const char *name)
{
    struct settings *settings = settings_new();
    settings->keys.keys = arena_get(settings->arena, sizeof(struct auth_key));
    settings->keys.keys[0].name = arena_printf(settings->arena, "%s", name);
    settings->keys.count = 1;
    return settings;
}

static void a_name_keeps_its_quota_from_settings_to_settings(void)
{
    struct quotas *quotas = quotas_new(8);
    struct upstream_states *states = upstream_states_new();
    struct settings_place place;
    settings_place_init(&place);
    CU_ASSERT_PTR_NULL(settings_take(&place));
    settings_put_in_force(&place, settings_of("a"), quotas, states);
    struct settings *first = settings_take(&place);
    settings_put_in_force(&place, settings_of("a"), quotas, states);
    struct settings *second = settings_take(&place);
    CU_ASSERT_PTR_NOT_EQUAL(first, second);
    CU_ASSERT_STRING_EQUAL(first->keys.keys[0].name, "a"); /* still there */
    CU_ASSERT_PTR_EQUAL(first->keys.keys[0].quota, second->keys.keys[0].quota);
    settings_unref(first);
    settings_unref(second);
    settings_place_clear(&place);
    CU_ASSERT_EQUAL(quotas_count(quotas), 1);
    upstream_states_free(states);
    quotas_free(quotas);
}

struct reading {
    struct settings_place *place;
    atomic_bool *is_over;
    size_t count;
};

static void *read_on(void *arg)
{
    struct reading *reading = arg;
    while (!atomic_load(reading->is_over)) {
        struct settings *settings = settings_take(reading->place);
        reading->count += settings->keys.keys[0].name[0] == 'k';
        settings_unref(settings);
    }
    return NULL;
}

static void readers_always_have_whole_settings(void)
{
    struct quotas *quotas = quotas_new(8);
    struct upstream_states *states = upstream_states_new();
    struct settings_place place;
    atomic_bool is_over = false;
    struct reading readings[3];
    pthread_t threads[COUNT_OF(readings)];
    settings_place_init(&place);
    settings_put_in_force(&place, settings_of("k"), quotas, states);
    for (size_t i = 0; i < COUNT_OF(readings); i++) {
        readings[i] = (struct reading){&place, &is_over, 0};
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, read_on, &readings[i]), 0);
    }
    for (int i = 0; i < 500; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "k%d", i);
        settings_put_in_force(&place, settings_of(name), quotas, states);
    }
    atomic_store(&is_over, true);
    for (size_t i = 0; i < COUNT_OF(readings); i++) {
        (void)pthread_join(threads[i], NULL);
    }
    settings_place_clear(&place);
    CU_ASSERT_TRUE(quotas_count(quotas) <= 8);
    upstream_states_free(states);
    quotas_free(quotas);
}

/* ---- changes ---- */

/* "name@line:column …" of what differs. */
static void differences(const char *before, const char *now, struct buf *ret)
{
    struct arena *arena = arena_new(0);
    struct conf_problems problems = {0};
    struct changes changes = {0};
    const struct conf_node *a = conf_parse_text("a", str_of(before), arena, &problems);
    const struct conf_node *b = conf_parse_text("b", str_of(now), arena, &problems);
    CU_ASSERT_PTR_NOT_NULL_FATAL(a);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    changes_find(a, b, &changes);
    buf_reset(ret);
    (void)buf_puts(ret, "");
    for (size_t i = 0; i < changes.count && i < CHANGES_MAX; i++) {
        const struct change *one = &changes.changes[i];
        (void)buf_printf(ret, "%s%s@%d:%d", i > 0 ? " " : "", one->name, one->line, one->column);
    }
    if (changes.count > CHANGES_MAX) {
        (void)buf_printf(ret, " +%zu", changes.count - CHANGES_MAX);
    }
    conf_problems_clear(&problems);
    arena_free(arena);
}

static void what_differs_is_named_with_its_place(void)
{
    static const struct {
        const char *before, *now, *wanted;
    } cases[] = {
        {"a: 1\nb: {c: x, d: [1, 2]}\n", "# moved\nb: {d: [1, 2], c: x}\na: 1\n", ""},
        {"a: 1\n", "a: 2\n", "a@1:4"},
        {"a: 1\n", "a: \"1\"\n", "a@1:4"},
        {"a: 1\n", "a: [1]\n", "a@1:4"},
        {"a: {b: 1}\n", "a: {b: 1, c: 2}\n", "a.c@1:11"},
        {"a: {b: 1, c: 2}\n", "a: {b: 1}\n", "a.c@1:4"},
        {"a:\n", "b:\n", ""},
        {"l: [{n: 1}, {n: 2}]\n", "l: [{n: 1}, {n: 3}]\n", "l[1].n@1:17"},
        {"l: [{n: 1}, {n: 2}]\n", "l: [{n: 1}]\n", "l@1:4"},
        {"auth: {keys: [a]}\n", "auth: {keys: [b], keys_file: x}\n", ""},
        {"auth: {keys: [a]}\n", "auth: {keys: [a], mode: none}\n", "auth.mode@1:19"},
        {"x: {}\n", "x: {\"api_key:sk-secret\": 1}\n", "x.api_key@1:5"},
        {"x: {}\n", "x: {\"api_key=sk-secret\": 1}\n", "x.api_key@1:5"},
    };
    BUF_CLEANUP struct buf found = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        differences(cases[i].before, cases[i].now, &found);
        CU_ASSERT_STRING_EQUAL(found.data, cases[i].wanted);
        if (strcmp(found.data, cases[i].wanted) != 0) {
            fprintf(stderr, "found: %s, not %s\n", found.data, cases[i].wanted);
        }
    }
}

static void twenty_are_listed_and_the_rest_is_counted(void)
{
    BUF_CLEANUP struct buf text = {0}, found = {0};
    for (int i = 0; i < 25; i++) {
        (void)buf_printf(&text, "k%d: 1\n", i);
    }
    differences("", text.data, &found);
    CU_ASSERT_PTR_NOT_NULL(strstr(found.data, "k19@20:1 +5"));
}

/* ---- times ---- */

static void a_date_lasts_to_its_end_and_a_time_is_a_moment(void)
{
    static const struct {
        const char *text;
        int64_t unix_s;
    } good[] = {
        {"1970-01-01", 86400},
        {"2024-02-29", 1709251200},
        {"2026-12-31T18:00:00Z", 1798740000},
        {"2026-12-31 18:00:00", 1798740000},
        {"2026-12-31T20:00:00+02:00", 1798740000},
        {"2026-12-31T12:30:00-05:30", 1798740000},
    };
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        int64_t ms = 0;
        CU_ASSERT_TRUE(expiry_read(good[i].text, &ms));
        CU_ASSERT_EQUAL(ms, good[i].unix_s * 1000);
    }
    static const char *const wrong[] = {"",
                                        "2026",
                                        "2026-1-1",
                                        "2026-13-01",
                                        "2026-00-10",
                                        "2026-02-29",
                                        "2026-12-31T",
                                        "2026-12-31T24:00:00Z",
                                        "2026-12-31T10:60:00Z",
                                        "2026-12-31T10:00Z",
                                        "2026-12-31T10:00:00+2",
                                        "2026-12-31T10:00:00Zx",
                                        "31.12.2026",
                                        "never"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        int64_t ms = 7;
        CU_ASSERT_FALSE(expiry_read(wrong[i], &ms));
        CU_ASSERT_EQUAL(ms, 7);
    }
}

static const struct test tests[] = {
    TEST(a_name_keeps_its_quota_from_settings_to_settings),
    TEST(readers_always_have_whole_settings),
    TEST(what_differs_is_named_with_its_place),
    TEST(twenty_are_listed_and_the_rest_is_counted),
    TEST(a_date_lasts_to_its_end_and_a_time_is_a_moment),
};

int main(int argc, char **argv)
{
    return run_tests("settings", tests, COUNT_OF(tests), argc, argv);
}
