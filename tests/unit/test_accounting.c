/* What accounting reads of relayed answers, and the sums that it keeps: whose names they are, how many there can be. */
#include "cunit_main.h"

#include "base/check.h"
#include "gateway/relayed_usage.h"
#include "gateway/usage_table.h"
#include "surface/usage.h"

#include <stdio.h>

/* ---- the counts in an answer ---- */

static void expect_found(const char *text, const char *wanted)
{
    struct str found = {0};
    bool is_found = usage_find_last(str_of(text), &found);
    CU_ASSERT_EQUAL(is_found, wanted != NULL);
    if (wanted != NULL && !str_is(found, wanted)) {
        printf("\n%s: '%.*s'\n", text, (int)found.len, found.data);
        CU_FAIL("another object");
    }
}

static void the_last_object_of_that_name_is_the_answers_usage(void)
{
    expect_found("{\"id\":1,\"usage\":{\"prompt_tokens\":1},\"x\":{}}", "{\"prompt_tokens\":1}");
    expect_found("cut {\"usage\" :\n {\"a\":{\"b\":2}}}\n\ndata: [DONE]", "{\"a\":{\"b\":2}}");
    expect_found("\"usage\":{\"a\":1} \"usage\":{\"a\":2}", "{\"a\":2}");
    expect_found("\"usage\":{\"a\":1} \"usage\":null", "{\"a\":1}");
    expect_found("\"usage\":{\"a\":\"}\\\"}\"}", "{\"a\":\"}\\\"}\"}");
    expect_found("\"usage\":{\"a\":1", NULL);
    expect_found("\"usage\":{\"a\":\"1}", NULL);
    expect_found("\"usage\"", NULL);
    expect_found("\"usage\":", NULL);
    expect_found("", NULL);
    /* What a model says stands in a string. */
    expect_found("\"content\":\"\\\"usage\\\":{\\\"prompt_tokens\\\":9}\"", NULL);
    expect_found("\"usage\":{\"a\":1},\"x\":\"\\\"usage\\\":{}\"", "{\"a\":1}");
}

static struct surface_usage read_in_pieces(const char *text, size_t piece_len,
                                           const struct usage_names *names, bool has_head)
{
    static char head[RELAYED_HEAD_BYTES], tail[2 * RELAYED_TAIL_BYTES];
    struct request r = {.arena = arena_new(0), .relayed_usage = SURFACE_USAGE_NONE};
    struct relayed_usage usage = {
        .is_on = true, .names = names, .head = has_head ? head : NULL, .tail = tail};
    for (size_t at = 0, len = strlen(text); at < len; at += piece_len) {
        size_t here = len - at < piece_len ? len - at : piece_len;
        relayed_usage_feed(&usage, (struct str){text + at, here});
    }
    relayed_usage_end(&usage, &r);
    arena_free(r.arena);
    return r.relayed_usage;
}

static void counts_are_read_however_the_answer_is_cut(void)
{
    static char text[3 * RELAYED_TAIL_BYTES + 1000];
    static const char end[] = "\"}],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":7,"
                              "\"total_tokens\":18,\"prompt_tokens_details\":{\"cached_tokens\":3},"
                              "\"completion_tokens_details\":{\"reasoning_tokens\":5}}}";
    memset(text, 'x', sizeof text - 1);
    memcpy(text + sizeof text - sizeof end, end, sizeof end);
    for (size_t piece = 1; piece < 40000; piece = piece * 3 + 1) {
        struct surface_usage used = read_in_pieces(text, piece, &usage_names_chat, false);
        CU_ASSERT_EQUAL(used.input_tokens, 11);
        CU_ASSERT_EQUAL(used.output_tokens, 7);
        CU_ASSERT_EQUAL(used.cached_tokens, 3);
        CU_ASSERT_EQUAL(used.reasoning_tokens, 5);
    }
}

static void of_messages_the_beginning_says_the_input(void)
{
    static char text[40000];
    static const char begin[] = "event: message_start\ndata: {\"message\":{\"usage\":{"
                                "\"input_tokens\":21,\"cache_read_input_tokens\":4,"
                                "\"output_tokens\":1}}}\n\n";
    static const char end[] =
        "data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":9}}\n\n";
    memset(text, 'x', sizeof text - 1);
    memcpy(text, begin, sizeof begin - 1);
    memcpy(text + sizeof text - sizeof end, end, sizeof end);
    for (size_t piece = 1; piece < 40000; piece = piece * 3 + 1) {
        struct surface_usage used = read_in_pieces(text, piece, &usage_names_messages, true);
        CU_ASSERT_EQUAL(used.input_tokens, 21);
        CU_ASSERT_EQUAL(used.output_tokens, 9);
        CU_ASSERT_EQUAL(used.cached_tokens, 4);
        CU_ASSERT_EQUAL(used.reasoning_tokens, -1);
    }
}

/* ---- sums ---- */

static void add(struct usage_table *table, const char *identity, const char *model, int64_t input)
{
    struct usage_entry entry = {.identity = str_of(identity),
                                .model = str_of(model),
                                .tokens = SURFACE_USAGE_NONE,
                                .container_us = 1500000,
                                .runs = 2,
                                .searches = 1};
    entry.tokens.input_tokens = input;
    usage_table_add(table, &entry);
}

static bool says(struct usage_table *table, const char *line)
{
    BUF_CLEANUP struct buf out = {0};
    usage_table_put(table, &out);
    bool has = strstr(out.data, line) != NULL;
    if (!has) {
        printf("\nno %s in\n%s", line, out.data);
    }
    return has;
}

static void what_is_used_is_summed_by_identity_and_model(void)
{
    struct usage_table *table = usage_table_new();
    add(table, "a", "m\"1", 5);
    add(table, "a", "m\"1", 7);
    add(table, "b", "m\"1", -1);
    CU_ASSERT(says(table, "sandgate_usage_requests_total{identity=\"a\",model=\"m\\\"1\"} 2\n"));
    CU_ASSERT(
        says(table, "sandgate_usage_input_tokens_total{identity=\"a\",model=\"m\\\"1\"} 12\n"));
    CU_ASSERT(
        says(table, "sandgate_usage_input_tokens_total{identity=\"b\",model=\"m\\\"1\"} 0\n"));
    CU_ASSERT(says(table, "sandgate_usage_runs_total{identity=\"a\",model=\"m\\\"1\"} 4\n"));
    CU_ASSERT(says(table, "sandgate_usage_searches_total{identity=\"a\",model=\"m\\\"1\"} 2\n"));
    CU_ASSERT(
        says(table,
             "sandgate_usage_container_seconds_total{identity=\"a\",model=\"m\\\"1\"} 3.000000\n"));
    usage_table_free(table);
}

static size_t rows_of(struct usage_table *table, const char *identity)
{
    BUF_CLEANUP struct buf out = {0};
    char start[80];
    size_t count = 0;
    (void)snprintf(start, sizeof start, "\nsandgate_usage_requests_total{identity=\"%s\"",
                   identity);
    usage_table_put(table, &out);
    for (const char *at = out.data; (at = strstr(at, start)) != NULL; at++) {
        count++;
    }
    return count;
}

static void names_of_models_are_bounded(void)
{
    char name[USAGE_NAME_BYTES_MAX + 2], identity[16];
    struct usage_table *table = usage_table_new();
    for (int i = 0; i < 3 * USAGE_MODELS_MAX; i++) {
        (void)snprintf(name, sizeof name, "model-%d", i);
        add(table, "a", name, 1);
    }
    CU_ASSERT_EQUAL(rows_of(table, "a"), USAGE_MODELS_MAX + 1);
    CU_ASSERT(says(table, "sandgate_usage_requests_total{identity=\"a\",model=\"other\"} 100\n"));
    add(table, "b", "of its own", 1); /* one identity's flood is its own */
    CU_ASSERT_EQUAL(rows_of(table, "b"), 1);
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    add(table, "b", name, 1);
    add(table, "b", "other", 1);
    add(table, "b", "", 1);
    CU_ASSERT(says(table, "sandgate_usage_requests_total{identity=\"b\",model=\"other\"} 3\n"));
    for (int i = 0; i < 100; i++) {
        (void)snprintf(identity, sizeof identity, "i%d", i);
        for (int k = 0; k < USAGE_MODELS_MAX; k++) {
            (void)snprintf(name, sizeof name, "model-%d", k);
            add(table, identity, name, 1);
        }
    }
    CU_ASSERT_EQUAL(rows_of(table, "i0"), USAGE_MODELS_MAX);
    CU_ASSERT_EQUAL(rows_of(table, "i99"), 1);
    CU_ASSERT(says(table, "sandgate_usage_requests_total{identity=\"i99\",model=\"other\"} 50\n"));
    usage_table_free(table);
}

static const struct test tests[] = {
    TEST(the_last_object_of_that_name_is_the_answers_usage),
    TEST(counts_are_read_however_the_answer_is_cut),
    TEST(of_messages_the_beginning_says_the_input),
    TEST(what_is_used_is_summed_by_identity_and_model),
    TEST(names_of_models_are_bounded),
};

int main(int argc, char **argv)
{
    return run_tests("accounting", tests, COUNT_OF(tests), argc, argv);
}
