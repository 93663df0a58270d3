/* What a small request may make of what is kept: each text goes up once, the sum is bounded before it is copied, and what
 * is looked up costs no more than one pass over each record. */
#include "responses_bench.h"
#include "base/limits.h"

#define TOOLS "\"tools\":[" CODE_TOOL "," OWN_TOOL "]"
#define TOO_LARGE "The request, with what the gateway adds to it, is larger than 32 MiB."

static void store_put(struct bench_store *store, const char *id, const struct buf *record)
{
    struct str kept_id = str_of(id);
    CU_ASSERT_TRUE_FATAL(store->store.keep(store, &kept_id, 1, buf_str(record)));
}

static char *letters(struct arena *arena, size_t count)
{
    char *text = arena_alloc(arena, count + 1);
    memset(text, 'x', count);
    return text;
}

/* A record of 25 calls, ci_sg`first` and so on, whose model was told so many bytes each. */
static void calls_keep(struct bench_store *store, struct bench *b, int first, size_t bytes)
{
    BUF_CLEANUP struct buf record = {0};
    const char *told = letters(b->arena, bytes);
    struct str ids[25];
    buf_puts(&record, "{\"v\":1,\"response\":{\"id\":\"resp_sg1\",\"output\":[]},\"previous\":"
                      "null,\"input\":[],\"input_ids\":[],\"calls\":{");
    for (int i = 0; i < 25; i++) {
        ids[i] = str_of(arena_printf(b->arena, "ci_sg%d", first + i));
        buf_printf(&record, "%s\"%s\":{\"call_id\":\"c\",\"arguments\":\"{}\",\"output\":\"%s\"}",
                   i == 0 ? "" : ",", ids[i].data, told);
    }
    buf_puts(&record, "}}");
    CU_ASSERT_TRUE_FATAL(store->store.keep(store, ids, COUNT_OF(ids), buf_str(&record)));
}

static void calls_name(struct buf *body, int count)
{
    buf_puts(body, "{\"model\":\"m\",\"input\":[");
    for (int i = 0; i < count; i++) {
        buf_printf(body,
                   "%s{\"type\":\"code_interpreter_call\",\"id\":\"ci_sg%d\",\"code\":\"\","
                   "\"outputs\":null}",
                   i == 0 ? "" : ",", i);
    }
    buf_puts(body, "]," TOOLS "}");
}

static void a_call_that_stands_twice_takes_what_was_told_once(void)
{
    STORE_CLEANUP struct bench_store store;
    bench_store_init(&store);
    BENCH_CLEANUP struct bench b = bench_new(0);
    b.store = &store.store;
    calls_keep(&store, &b, 0, 3);
#define TWICE \
    "{\"type\":\"code_interpreter_call\",\"id\":\"ci_sg0\",\"code\":\"p\",\"outputs\":null}"
    bench_open(&b, "{\"model\":\"m\",\"input\":[" TWICE "," TWICE "]," TOOLS "}");
    const char *up = bench_request(&b);
    const char *first = strstr(up, "\"arguments\":\"{}\"},{\"type\":\"function_call_output\","
                                   "\"call_id\":\"call_ci_sg0\",\"output\":\"xxx\"},");
    CU_ASSERT_PTR_NOT_NULL_FATAL(first);
    CU_ASSERT_PTR_NOT_NULL(strstr(first, "\"arguments\":\"{\\\"code\\\":\\\"p\\\"}\"},{\"type\":"
                                         "\"function_call_output\",\"call_id\":\"call_ci_sg0\","
                                         "\"output\":\"\"}]"));
}

static void what_calls_become_is_bounded_before_it_is_copied(void)
{
    STORE_CLEANUP struct bench_store store;
    bench_store_init(&store);
    BENCH_CLEANUP struct bench some = bench_new(0), all = bench_new(0), kept = bench_new(0);
    some.store = all.store = &store.store;
    calls_keep(&store, &kept, 0, MIB);
    calls_keep(&store, &kept, 25, MIB);
    BUF_CLEANUP struct buf body = {0};
    calls_name(&body, 31);
    bench_open(&some, body.data);
    CU_ASSERT_TRUE(strlen(bench_request(&some)) > 31 * MIB);
    buf_reset(&body);
    calls_name(&body, 50);
    CU_ASSERT_EQUAL(bench_try_open(&all, body.data), SG_E_LIMIT);
    CU_ASSERT_EQUAL(error_status(&all.err), 413);
    CU_ASSERT_STRING_EQUAL(all.err.message, TOO_LARGE);
    CU_ASSERT_TRUE(arena_bytes(all.arena) < 33 * MIB);
}

/* A record of `count` messages with texts of so many bytes; the last has the id msg_sg0, the others that one. */
static void messages_keep(struct bench_store *store, struct bench *b, int count, const char *id,
                          size_t bytes)
{
    BUF_CLEANUP struct buf record = {0}, ids = {0};
    const char *text = letters(b->arena, bytes);
    buf_puts(&record, "{\"v\":1,\"response\":{\"id\":\"resp_sg1\",\"output\":[]},\"previous\":"
                      "null,\"input\":[");
    for (int i = 0; i < count; i++) {
        const char *comma = i == 0 ? "" : ",";
        buf_printf(&record, "%s{\"role\":\"user\",\"content\":\"%s\"}", comma, text);
        buf_printf(&ids, "%s\"%s\"", comma, i == count - 1 ? "msg_sg0" : id);
    }
    buf_printf(&record, "],\"input_ids\":[%s],\"calls\":{}}", ids.data);
    store_put(store, "msg_sg0", &record);
}

/* A request that refers to it so many times. */
static void message_name(struct buf *body, int count)
{
    buf_puts(body, "{\"model\":\"m\",\"input\":[");
    for (int i = 0; i < count; i++) {
        buf_printf(body, "%s{\"type\":\"item_reference\",\"id\":\"msg_sg0\"}", i == 0 ? "" : ",");
    }
    buf_puts(body, "]," TOOLS "}");
}

static void more_than_a_body_of_references_is_refused_when_they_are_read(void)
{
    STORE_CLEANUP struct bench_store store;
    bench_store_init(&store);
    BENCH_CLEANUP struct bench b = bench_new(0), kept = bench_new(0);
    b.store = &store.store;
    messages_keep(&store, &kept, 1, "", MIB);
    BUF_CLEANUP struct buf body = {0};
    message_name(&body, 40);
    CU_ASSERT_EQUAL(bench_try_open(&b, body.data), SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(b.err.message, TOO_LARGE);
}

static void what_is_decoded_to_find_a_reference_is_not_kept(void)
{
    STORE_CLEANUP struct bench_store store;
    bench_store_init(&store);
    BENCH_CLEANUP struct bench b = bench_new(0), kept = bench_new(0);
    b.store = &store.store;
    char *quotes = letters(kept.arena, 14000);
    for (size_t i = 0; i < 14000; i += 2) {
        memcpy(quotes + i, "\\\"", 2);
    }
    messages_keep(&store, &kept, 30, quotes, 1);
    BUF_CLEANUP struct buf body = {0};
    message_name(&body, 256);
    bench_open(&b, body.data); /* 100 MB, if each reference decoded all ids */
    CU_ASSERT_TRUE(arena_bytes(b.arena) < MIB);
    const char *up = bench_request(&b);
    CU_ASSERT_PTR_NOT_NULL(strstr(up, "[{\"role\":\"user\",\"content\":\"x\"},{\"role\":"));
}

/* Eight records of 1 MiB in a chain, the first (the newest) longer by `more`. */
static void chain_keep(struct bench_store *store, struct bench *b, size_t more)
{
    for (int i = 0; i < 8; i++) {
        BUF_CLEANUP struct buf record = {0}, rest = {0};
        buf_printf(&record,
                   "{\"v\":1,\"response\":{\"id\":\"resp_sg%d\",\"output\":[]},\"input\":[", i);
        buf_printf(&rest, "\"}],\"input_ids\":[\"m\"],\"calls\":{},\"previous\":");
        buf_printf(&rest, i == 7 ? "null}" : "\"resp_sg%d\"}", i + 1);
        buf_puts(&record, "{\"role\":\"user\",\"content\":\"");
        size_t bytes = MIB - record.len - rest.len + (i == 0 ? more : 0);
        buf_puts(&record, letters(b->arena, bytes));
        buf_append_str(&record, buf_str(&rest));
        store_put(store, arena_printf(b->arena, "resp_sg%d", i), &record);
    }
}

static void a_chain_of_responses_may_hold_so_much(void)
{
    static const char body[] =
        "{\"model\":\"m\",\"input\":\"x\",\"previous_response_id\":\"resp_sg0\"," TOOLS "}";
    for (size_t more = 0; more < 2; more++) {
        STORE_CLEANUP struct bench_store store;
        bench_store_init(&store);
        BENCH_CLEANUP struct bench b = bench_new(0), kept = bench_new(0);
        b.store = &store.store;
        chain_keep(&store, &kept, more);
        int code = bench_try_open(&b, body);
        CU_ASSERT_EQUAL_FATAL(code, more == 0 ? SG_OK : SG_E_LIMIT);
        if (code == SG_OK) {
            CU_ASSERT_TRUE(strlen(bench_request(&b)) > 8 * MIB - 2 * KIB);
            continue;
        }
        CU_ASSERT_EQUAL(error_status(&b.err), 413);
        CU_ASSERT_STRING_EQUAL(b.err.message,
                               "The responses before this one hold more than 8 MiB.");
        CU_ASSERT_STRING_EQUAL(b.err.param, "previous_response_id");
        CU_ASSERT_STRING_EQUAL(b.err.reason, "request_too_large");
        CU_ASSERT_TRUE(arena_bytes(b.arena) < MIB);
    }
}

static const struct test tests[] = {
    TEST(a_call_that_stands_twice_takes_what_was_told_once),
    TEST(what_calls_become_is_bounded_before_it_is_copied),
    TEST(more_than_a_body_of_references_is_refused_when_they_are_read),
    TEST(what_is_decoded_to_find_a_reference_is_not_kept),
    TEST(a_chain_of_responses_may_hold_so_much),
};

int main(int argc, char **argv)
{
    return run_tests("responses_bounds", tests, COUNT_OF(tests), argc, argv);
}
