/* Searches on the responses bench: what a client asks, how a model calls, what is found. */
#ifndef TESTS_UNIT_RESPONSES_SEARCH_FIXTURE_H
#define TESTS_UNIT_RESPONSES_SEARCH_FIXTURE_H

#include "responses_bench.h"

#define SEARCH_TOOL "{\"type\":\"web_search\"}"
#define QUERY(text) "{\\\"query\\\":\\\"" text "\\\"}"
/* A call of the search in a stream: its index, and the number of its ids. */
#define SEARCH(index, number, text) \
    CALL(index, "fc_" number, "call_" number, "web_search", QUERY(text))
#define SEARCH_ITEM(number, text) \
    CALL_ITEM("fc_" number, "call_" number, "web_search", QUERY(text), "completed")
#define SEARCH_BODY(more)                                                                  \
    "{\"model\":\"m\",\"input\":\"hi\",\"tools\":[" SEARCH_TOOL "," CODE_TOOL "," OWN_TOOL \
    "]" more "}"
#define STREAM ",\"stream\":true"
#define SOURCES "web_search_call.action.sources"
#define WITH_SOURCES ",\"include\":[\"" SOURCES "\"]"
#define TOLD "1 search result. …"

#define HIT(url, title) \
    "{\"title\":\"" title "\",\"url\":\"" url "\",\"snippet\":\"s\",\"date\":null}"
#define HIT_A HIT("https://a.org/x", "A page")
#define HIT_B HIT("https://b.org/", "B")

/* The call of that place has run and found these hits. */
static inline void bench_found(struct bench *b, size_t call, const char *const *hits, size_t count)
{
    struct surface_output *outputs = arena_alloc(b->arena, (count + 1) * sizeof *outputs);
    for (size_t i = 0; i < count; i++) {
        outputs[i] = (struct surface_output){SG_OUT_HIT, str_of(hits[i])};
    }
    bench_result_of(b, call,
                    (struct surface_result){.status = SURFACE_CALL_COMPLETED,
                                            .model_text = STR(TOLD),
                                            .outputs = outputs,
                                            .outputs_count = count});
}
#define FOUND(b, call, ...)                                  \
    bench_found(b, call, (const char *const[]){__VA_ARGS__}, \
                sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* It has ended otherwise, and nothing was found. */
static inline void bench_not_found(struct bench *b, size_t call, enum surface_call_status status)
{
    struct surface_result result = {.status = status, .model_text = STR("[search failed] …")};
    if (status != SURFACE_CALL_NOT_RUN) {
        surface_responses.call_begin(b->exchange, call, STR(""), &b->out);
    }
    surface_responses.call_end(b->exchange, call, &result, &b->out);
}

/* An answer that searched once, found A and said so, kept under resp_sg and this id. Returns the id of the search's item. */
#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
static inline const char *answer_searched(struct bench *b, const struct bench_store *store,
                                          const char *body)
{
    b->store = &store->store;
    b->answer_id = ID_A;
    bench_open(b, body);
    bench_turn(b, UP_CREATED SEARCH("0", "1", "q") UP_END);
    FOUND(b, 0, HIT_A, HIT_B);
    bench_turn(b, UP_CREATED SAY("0", "msg_1", "See https://a.org/x.") UP_END);
    bench_finish(b, "");
    char *at = strstr(b->out.data, "ws_sg");
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    return arena_printf(b->arena, "%.37s", at);
}

/* The items of the answer, however it was told. */
static inline cJSON *bench_output(struct bench *b, bool is_stream)
{
    if (is_stream) {
        CHECKED_CLEANUP struct checked c = checked_read(&b->out);
        return cJSON_DetachItemFromObject(c.final, "output");
    }
    ANSWER_CLEANUP cJSON *answer = bench_answer(b);
    return cJSON_DetachItemFromObject(answer, "output");
}

/* An item less its id, printed: compared whole. */
static inline void expect_item(const cJSON *output, int index, const char *expected)
{
    cJSON *item = cJSON_Duplicate(cJSON_GetArrayItem(output, index), true);
    CU_ASSERT_PTR_NOT_NULL_FATAL(item);
    cJSON_DeleteItemFromObject(item, "id");
    expect_printed(item, expected);
    cJSON_Delete(item);
}

/* The annotations of a message's part, printed. */
static inline void expect_annotations(const cJSON *message, int part, const char *expected)
{
    const cJSON *content = cJSON_GetObjectItem(message, "content");
    expect_printed(cJSON_GetObjectItem(cJSON_GetArrayItem(content, part), "annotations"), expected);
}

#endif
