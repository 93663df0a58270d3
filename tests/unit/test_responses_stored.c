/* What the paths /v1/responses/{id}… say of an answer that was kept: the response, its input, its events again. */
#include "responses_bench.h"
#include "surface/responses_stored.h"

#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct responses_include with_outputs = {&STR("code_interpreter_call.outputs"), 1};

struct kept { /* an answer, and its record as the gateway has it */
    struct bench_store store;
    struct bench bench;
    struct arena *arena;
    struct responses_record record;
    struct buf out;
};

static void kept_make(struct kept *k, const char *body, const char *turn)
{
    *k = (struct kept){.bench = bench_new(0), .arena = arena_new(0)};
    struct str data;
    bench_store_init(&k->store);
    k->store.store.context = &k->store;
    k->bench.store = &k->store.store;
    k->bench.answer_id = ID_A;
    bench_open(&k->bench, body);
    bench_turn(&k->bench, RUN_42);
    bench_result(&k->bench, 0, "42\n");
    bench_turn(&k->bench, turn);
    bench_finish(&k->bench, "");
    CU_ASSERT_TRUE_FATAL(bench_store_find(&k->store, STR("resp_sg" ID_A), &data));
    CU_ASSERT_TRUE_FATAL(responses_record_read(data, k->arena, &k->record));
}

static void kept_clear(struct kept *k)
{
    bench_clear(&k->bench);
    bench_store_clear(&k->store);
    arena_free(k->arena);
    buf_clear(&k->out);
}
#define KEPT_CLEANUP __attribute__((cleanup(kept_clear)))
#define SAID UP_CREATED SAY("0", "msg_upstream", "It is 42.") UP_END

static void a_response_is_told_as_it_was(void)
{
    KEPT_CLEANUP struct kept k;
    kept_make(&k, PLAIN_BODY, SAID);
    responses_stored_put(&k.record, &with_outputs, &k.out);
    CU_ASSERT_TRUE(str_eq(buf_str(&k.out), buf_str(&k.bench.out)));
    CU_ASSERT_TRUE(str_is(k.record.id, "resp_sg" ID_A));
    buf_reset(&k.out);
    responses_stored_put(&k.record, NULL, &k.out);
    CU_ASSERT_PTR_NOT_NULL(strstr(k.out.data, "\"outputs\":null"));
    CU_ASSERT_PTR_NULL(strstr(k.out.data, "\"logs\""));
}

static void outputs_are_there_for_who_asks_later(void)
{
    KEPT_CLEANUP struct kept k;
    kept_make(&k, "{\"model\":\"m\",\"input\":\"hi\",\"tools\":[" CODE_TOOL "]}", SAID);
    CU_ASSERT_PTR_NOT_NULL(strstr(k.bench.out.data, "\"outputs\":null"));
    responses_stored_put(&k.record, &with_outputs, &k.out);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(k.out.data, "\"outputs\":[{\"type\":\"logs\",\"logs\":\"42\\n\"}]"));
}

/* ---- input items ---- */

#define THREE                                                                                   \
    "[{\"role\":\"user\",\"content\":\"one\"},{\"type\":\"message\",\"id\":\"msg_2\",\"role\":" \
    "\"assistant\",\"status\":\"completed\",\"content\":[{\"type\":\"output_text\",\"text\":"   \
    "\"two\",\"annotations\":[]}]},{\"type\":\"function_call_output\",\"call_id\":\"c\","       \
    "\"output\":"                                                                               \
    "\"three\"}]"

static cJSON *listed(struct kept *k, const char *limit, const char *order, const char *after)
{
    struct sg_error err = {0};
    struct responses_list_query query = {str_of(limit), str_of(order), str_of(after)};
    buf_reset(&k->out);
    int code = responses_stored_inputs(&k->record, &query, &k->out, &err);
    CU_ASSERT_EQUAL_FATAL(code, SG_OK);
    cJSON *list = cJSON_ParseWithLength(k->out.data, k->out.len);
    CU_ASSERT_PTR_NOT_NULL_FATAL(list);
    return list;
}

static void input_items_are_listed_the_newest_first(void)
{
    KEPT_CLEANUP struct kept k;
    kept_make(&k, "{\"model\":\"m\",\"input\":" THREE ",\"tools\":[" CODE_TOOL "]}", SAID);
    ANSWER_CLEANUP cJSON *all = listed(&k, "", "", "");
    const cJSON *data = cJSON_GetObjectItem(all, "data");
    CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(data), 3);
    CU_ASSERT_STRING_EQUAL(json_str(cJSON_GetArrayItem(data, 0), "output"), "three");
    CU_ASSERT_STRING_EQUAL(json_str(cJSON_GetArrayItem(data, 1), "id"), "msg_2");
    const cJSON *first = cJSON_GetArrayItem(data, 2);
    CU_ASSERT_EQUAL(strncmp(json_str(first, "id"), "msg_sg", 6), 0);
    CU_ASSERT_STRING_EQUAL(json_str(first, "type"), "message");
    CU_ASSERT_STRING_EQUAL(json_str(first, "status"), "completed");
    expect_printed(cJSON_GetObjectItem(first, "content"),
                   "[{\"type\":\"input_text\",\"text\":\"one\"}]");
    CU_ASSERT_TRUE(cJSON_IsFalse(cJSON_GetObjectItem(all, "has_more")));
    CU_ASSERT_STRING_EQUAL(json_str(all, "last_id"), json_str(first, "id"));
}

static void input_items_come_in_pages(void)
{
    KEPT_CLEANUP struct kept k;
    kept_make(&k, "{\"model\":\"m\",\"input\":" THREE ",\"tools\":[" CODE_TOOL "]}", SAID);
    ANSWER_CLEANUP cJSON *page = listed(&k, "1", "asc", "msg_2");
    CU_ASSERT_EQUAL(cJSON_GetArraySize(cJSON_GetObjectItem(page, "data")), 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(k.out.data, "three"));
    CU_ASSERT_TRUE(cJSON_IsFalse(cJSON_GetObjectItem(page, "has_more")));
    ANSWER_CLEANUP cJSON *other = listed(&k, "1", "desc", "");
    CU_ASSERT_PTR_NOT_NULL(strstr(k.out.data, "three"));
    CU_ASSERT_TRUE(cJSON_IsTrue(cJSON_GetObjectItem(other, "has_more")));
    ANSWER_CLEANUP cJSON *last = listed(&k, "100", "desc", "msg_2");
    CU_ASSERT_PTR_NOT_NULL(strstr(k.out.data, "\"one\""));
    CU_ASSERT_EQUAL(cJSON_GetArraySize(cJSON_GetObjectItem(last, "data")), 1);
}

static void a_text_is_one_input_item(void)
{
    KEPT_CLEANUP struct kept k;
    kept_make(&k, PLAIN_BODY, SAID);
    ANSWER_CLEANUP cJSON *all = listed(&k, "20", "", "");
    const cJSON *item = cJSON_GetArrayItem(cJSON_GetObjectItem(all, "data"), 0);
    CU_ASSERT_STRING_EQUAL(json_str(item, "role"), "user");
    struct str data; /* its id can be referred to */
    CU_ASSERT_TRUE(bench_store_find(&k.store, str_of(json_str(item, "id")), &data));
}

static void queries_that_are_wrong_are_named(void)
{
    static const struct {
        const char *limit, *order, *after, *param, *message;
    } cases[] = {{"0", "", "", "limit", "limit must be a number from 1 to 100"},
                 {"101", "", "", "limit", "limit must be a number from 1 to 100"},
                 {"x", "", "", "limit", "limit must be a number from 1 to 100"},
                 {"", "up", "", "order", "order must be 'asc' or 'desc'"},
                 {"", "", "msg_9", "after", "Item with id 'msg_9' not found."}};
    KEPT_CLEANUP struct kept k;
    kept_make(&k, PLAIN_BODY, SAID);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct sg_error err = {0};
        struct responses_list_query query = {str_of(cases[i].limit), str_of(cases[i].order),
                                             str_of(cases[i].after)};
        CU_ASSERT_EQUAL(responses_stored_inputs(&k.record, &query, &k.out, &err), SG_E_INVALID);
        CU_ASSERT_STRING_EQUAL(err.param, cases[i].param);
        CU_ASSERT_STRING_EQUAL(err.message, cases[i].message);
        CU_ASSERT_EQUAL(k.out.len, 0);
    }
}

/* ---- events again ---- */

static void an_answer_is_replayed_as_a_whole_stream(void)
{
    KEPT_CLEANUP struct kept k;
    kept_make(&k, STREAM_BODY, SAID);
    responses_stored_replay(&k.record, &with_outputs, -1, &k.out);
    CHECKED_CLEANUP struct checked live = checked_read(&k.bench.out);
    CHECKED_CLEANUP struct checked again = checked_read(&k.out);
    CU_ASSERT_STRING_EQUAL(live.order.data, again.order.data);
    CU_ASSERT_STRING_EQUAL(again.text.data, "It is 42.");
    CU_ASSERT_TRUE(cJSON_Compare(live.final, again.final, true));
}

static void a_replay_without_include_withholds_outputs(void)
{
    KEPT_CLEANUP struct kept k;
    kept_make(&k, STREAM_BODY, SAID);
    responses_stored_replay(&k.record, NULL, -1, &k.out);
    CHECKED_CLEANUP struct checked again = checked_read(&k.out);
    expect_printed(cJSON_GetObjectItem(again.items[0].done, "outputs"), "null");
}

static void a_replay_begins_behind_what_is_known(void)
{
    KEPT_CLEANUP struct kept k;
    kept_make(&k, STREAM_BODY, SAID);
    responses_stored_replay(&k.record, NULL, 3, &k.out);
    CU_ASSERT_EQUAL(strncmp(k.out.data,
                            "event: response.code_interpreter_call_code.delta\ndata: "
                            "{\"type\":\"response.code_interpreter_call_code.delta\","
                            "\"sequence_number\":4,",
                            120),
                    0);
    buf_reset(&k.out);
    responses_stored_replay(&k.record, NULL, 5000, &k.out);
    CU_ASSERT_EQUAL(strncmp(k.out.data,
                            "event: response.completed\ndata: {\"type\":\"response."
                            "completed\",\"sequence_number\":5001,",
                            75),
                    0);
    buf_reset(&k.out);
    responses_stored_replay(&k.record, NULL, INT64_MAX, &k.out);
    CU_ASSERT_PTR_NOT_NULL(strstr(k.out.data, "\"sequence_number\":9007199254740991,"));
}

static void a_cut_answer_is_replayed_as_cut(void)
{
    KEPT_CLEANUP struct kept k;
    kept_make(&k, STREAM_BODY,
              UP_CREATED MESSAGE_OPEN("0", "m1") TEXT("0", "m1", "It ")
                  EVENT("incomplete", "\"response\":{\"status\":\"incomplete\",\"output\":[]}"));
    responses_stored_replay(&k.record, &with_outputs, -1, &k.out);
    CHECKED_CLEANUP struct checked again = checked_read(&k.out);
    CU_ASSERT_STRING_EQUAL(again.terminal, "incomplete");
    CU_ASSERT_STRING_EQUAL(json_str(again.items[1].done, "status"), "incomplete");
}

/* ---- the rest ---- */

static void other_answers_have_the_published_forms(void)
{
    BUF_CLEANUP struct buf out = {0};
    struct sg_error err = {0};
    responses_stored_deleted(STR("resp_sg1"), &out);
    CU_ASSERT_STRING_EQUAL(out.data,
                           "{\"id\":\"resp_sg1\",\"object\":\"response\",\"deleted\":true}");
    CU_ASSERT_EQUAL(responses_stored_missing(STR("resp_x"), &err), SG_E_NOT_FOUND);
    CU_ASSERT_STRING_EQUAL(err.message, "Response with id 'resp_x' not found.");
    CU_ASSERT_EQUAL(error_status(&err), 404);
    CU_ASSERT_EQUAL(responses_stored_cancel(&err), SG_E_INVALID);
    CU_ASSERT_STRING_EQUAL(err.message, "Cannot cancel a synchronous response.");
}

static void what_is_no_record_is_refused(void)
{
    static const char *const texts[] = {"",
                                        "[]",
                                        "{}",
                                        "{\"v\":2}",
                                        "nonsense",
                                        ("{\"v\":1,\"response\":{},\"input\":[],\"input_ids\":[],"
                                         "\"previous\":null,\"calls\":{}}")};
    struct arena *arena = arena_new(0);
    struct responses_record record;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        CU_ASSERT_FALSE(responses_record_read(str_of(texts[i]), arena, &record));
    }
    arena_free(arena);
}

static void an_answer_with_large_pictures_can_still_be_come_back_to(void)
{
    STORE_CLEANUP struct bench_store store;
    bench_store_init(&store);
    BENCH_CLEANUP struct bench b = bench_new(0), next = bench_new(0);
    BUF_CLEANUP struct buf picture = {0};
    buf_puts(&picture, "{\"image/png\":\"");
    for (size_t i = 0; i < 1024 * 1024; i++) {
        buf_putc(&picture, 'A');
    }
    buf_puts(&picture, "\"}");
    struct surface_output output = {SG_OUT_RESULT, buf_str(&picture)};
    struct surface_result ran = {.status = SURFACE_CALL_COMPLETED,
                                 .model_text = STR("a plot"),
                                 .outputs = &output,
                                 .outputs_count = 1};
    b.store = next.store = &store.store;
    b.answer_id = ID_A;
    bench_open(&b, PLAIN_BODY);
    bench_turn(&b, RUN_42);
    surface_responses.call_begin(b.exchange, 0, STR("cntr_1"), &b.out);
    surface_responses.call_end(b.exchange, 0, &ran, &b.out);
    bench_turn(&b, SAID);
    bench_finish(&b, "");
    CU_ASSERT_PTR_NOT_NULL(strstr(b.out.data, "data:image/png;base64,AAAA"));
    CU_ASSERT_EQUAL_FATAL(store.count, 1);
    CU_ASSERT_TRUE(store.records[0].data.len < 8192);
    bench_open(&next, "{\"model\":\"m\",\"input\":\"y\",\"previous_response_id\":\"resp_sg" ID_A
                      "\",\"tools\":[" CODE_TOOL "]}");
    CU_ASSERT_PTR_NOT_NULL(strstr(bench_request(&next), "\"output\":\"a plot\""));
}

static void outputs_beyond_what_an_answer_can_hold_are_left_out(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    BUF_CLEANUP struct buf text = {0};
    for (size_t i = 0; i < 9 * 1024 * 1024; i++) {
        buf_putc(&text, 'a');
    }
    struct surface_output output = {SG_OUT_LOG_OUT, buf_str(&text)};
    struct surface_result ran = {.model_text = STR("told"), .outputs = &output, .outputs_count = 1};
    bench_open(&b, PLAIN_BODY);
    for (int i = 0; i < 2; i++) {
        bench_turn(&b, RUN_42);
        surface_responses.call_end(b.exchange, 0, &ran, &b.out);
    }
    bench_turn(&b, SAID);
    bench_finish(&b, "");
    ANSWER_CLEANUP cJSON *answer = bench_answer(&b);
    const cJSON *items = cJSON_GetObjectItem(answer, "output");
    CU_ASSERT_EQUAL(
        strlen(json_str(
            cJSON_GetArrayItem(cJSON_GetObjectItem(cJSON_GetArrayItem(items, 0), "outputs"), 0),
            "logs")),
        9 * 1024 * 1024);
    expect_printed(cJSON_GetObjectItem(cJSON_GetArrayItem(items, 1), "outputs"),
                   "[{\"type\":\"logs\",\"logs\":\"[output left out: the answer is too large]\"}]");
}

static const struct test tests[] = {
    TEST(a_response_is_told_as_it_was),
    TEST(outputs_are_there_for_who_asks_later),
    TEST(input_items_are_listed_the_newest_first),
    TEST(input_items_come_in_pages),
    TEST(a_text_is_one_input_item),
    TEST(queries_that_are_wrong_are_named),
    TEST(an_answer_is_replayed_as_a_whole_stream),
    TEST(a_replay_without_include_withholds_outputs),
    TEST(a_replay_begins_behind_what_is_known),
    TEST(a_cut_answer_is_replayed_as_cut),
    TEST(other_answers_have_the_published_forms),
    TEST(what_is_no_record_is_refused),
    TEST(an_answer_with_large_pictures_can_still_be_come_back_to),
    TEST(outputs_beyond_what_an_answer_can_hold_are_left_out),
};

int main(int argc, char **argv)
{
    return run_tests("responses_stored", tests, COUNT_OF(tests), argc, argv);
}
