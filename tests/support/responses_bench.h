/* Drives the responses surface as the gateway does. What the client gets of a stream is read by the strict
 * checker. */
#ifndef TESTS_SUPPORT_RESPONSES_BENCH_H
#define TESTS_SUPPORT_RESPONSES_BENCH_H

#define BENCH_SURFACE surface_responses
#define BENCH_OFFERS                                   \
    OFFER("code_interpreter", "Runs Python.", "code"), \
        OFFER("web_search", "Searches the web.", "query")
#define BENCH_CONTAINER "cntr_1"
#include "responses_checker.h"
#include "surface_bench.h"

/* ---- what an upstream says ---- */

#define EVENT(name, members) \
    "event: response." name "\ndata: {\"type\":\"response." name "\"," members "}\n\n"
#define UP_CREATED                                                                        \
    EVENT("created", "\"sequence_number\":0,\"response\":{\"id\":\"resp_up\",\"object\":" \
                     "\"response\",\"created_at\":11,\"model\":\"m-1\",\"status\":\"in_"  \
                     "progress\",\"output\":[]}")
#define UP_DONE(usage)                                                                         \
    EVENT("completed", "\"response\":{\"id\":\"resp_up\",\"created_at\":11,\"model\":\"m-1\"," \
                       "\"status\":\"completed\",\"output\":[],\"usage\":" usage "}")
#define USAGE(in, out)                                                         \
    "{\"input_tokens\":" in ",\"input_tokens_details\":{\"cached_tokens\":1}," \
    "\"output_tokens\":" out                                                   \
    ",\"output_tokens_details\":{\"reasoning_tokens\":0},\"total_tokens\":9}"
#define UP_END UP_DONE(USAGE("5", "4"))
#define MESSAGE_OPEN(index, id)                                                            \
    EVENT("output_item.added",                                                             \
          "\"output_index\":" index ",\"item\":{\"id\":\"" id                              \
          "\",\"type\":\"message\",\"status\":\"in_progress\",\"content\":[],"             \
          "\"role\":\"assistant\"}")                                                       \
    EVENT("content_part.added", "\"item_id\":\"" id "\",\"output_index\":" index           \
                                ",\"content_index\":0,\"part\":{\"type\":\"output_text\"," \
                                "\"annotations\":[],\"logprobs\":[],\"text\":\"\"}")
#define TEXT(index, id, text)                                                    \
    EVENT("output_text.delta",                                                   \
          "\"sequence_number\":7,\"item_id\":\"" id "\",\"output_index\":" index \
          ",\"content_index\":0,\"delta\":\"" text "\",\"logprobs\":[]")
#define MESSAGE_CLOSE(index, id, text)                                                      \
    EVENT("output_text.done", "\"item_id\":\"" id "\",\"output_index\":" index              \
                              ",\"content_index\":0,\"text\":\"" text "\",\"logprobs\":[]") \
    EVENT("content_part.done", "\"item_id\":\"" id "\",\"output_index\":" index             \
                               ",\"content_index\":0,\"part\":{\"type\":\"output_text\","   \
                               "\"annotations\":[],\"logprobs\":[],\"text\":\"" text "\"}") \
    EVENT("output_item.done", "\"output_index\":" index ",\"item\":" MESSAGE(id, text))
#define MESSAGE(id, text)                                                            \
    "{\"id\":\"" id "\",\"type\":\"message\",\"status\":\"completed\",\"content\":"  \
    "[{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":\"" text \
    "\"}],\"role\":\"assistant\"}"
#define SAY(index, id, text) \
    MESSAGE_OPEN(index, id) TEXT(index, id, text) MESSAGE_CLOSE(index, id, text)
/* A call; arguments written as the inside of a JSON string. */
#define CALL_ITEM(id, call_id, name, arguments, status)                  \
    "{\"id\":\"" id "\",\"type\":\"function_call\",\"status\":\"" status \
    "\",\"arguments\":\"" arguments "\",\"call_id\":\"" call_id "\",\"name\":\"" name "\"}"
#define CALL_OPEN(index, id, call_id, name) \
    EVENT("output_item.added",              \
          "\"output_index\":" index ",\"item\":" CALL_ITEM(id, call_id, name, "", "in_progress"))
#define PIECE(index, id, piece)            \
    EVENT("function_call_arguments.delta", \
          "\"item_id\":\"" id "\",\"output_index\":" index ",\"delta\":\"" piece "\"")
#define CALL_CLOSE(index, id, call_id, name, arguments)                                        \
    EVENT("function_call_arguments.done",                                                      \
          "\"item_id\":\"" id "\",\"output_index\":" index ",\"arguments\":\"" arguments "\"") \
    EVENT("output_item.done", "\"output_index\":" index                                        \
                              ",\"item\":" CALL_ITEM(id, call_id, name, arguments, "completed"))
#define CALL(index, id, call_id, name, arguments) \
    CALL_OPEN(index, id, call_id, name)           \
    PIECE(index, id, arguments) CALL_CLOSE(index, id, call_id, name, arguments)
#define CODE_42 "{\\\"code\\\":\\\"print(40+2)\\\"}"
#define RUN_42 UP_CREATED CALL("0", "fc_1", "call_1", "code_interpreter", CODE_42) UP_END
#define PLAIN(output)                                                                         \
    "{\"id\":\"resp_up\",\"object\":\"response\",\"created_at\":11,\"status\":\"completed\"," \
    "\"error\":null,\"model\":\"m-1\",\"output\":[" output "],\"usage\":" USAGE("5", "4") "}"

/* ---- what a client says ---- */

#define CODE_TOOL "{\"type\":\"code_interpreter\",\"container\":{\"type\":\"auto\"}}"
#define OWN_TOOL \
    "{\"type\":\"function\",\"name\":\"get_stock\",\"parameters\":{\"type\":\"object\"}}"
#define CODE_DEFINITION                                                                      \
    "{\"type\":\"function\",\"name\":\"code_interpreter\",\"description\":\"Runs Python.\"," \
    "\"parameters\":" SCHEMA("code") ",\"strict\":false}"
#define WITH_OUTPUTS "\"include\":[\"code_interpreter_call.outputs\"]"
#define STREAM_BODY                                                                            \
    "{\"model\":\"m\",\"stream\":true,\"input\":\"hi\"," WITH_OUTPUTS ",\"tools\":[" CODE_TOOL \
    "," OWN_TOOL "]}"
#define PLAIN_BODY \
    "{\"model\":\"m\",\"input\":\"hi\"," WITH_OUTPUTS ",\"tools\":[" CODE_TOOL "," OWN_TOOL "]}"

/* ---- a store of answers ---- */

enum { BENCH_RECORDS_MAX = 64, BENCH_IDS_MAX = 32 };

struct bench_record {
    char *ids[BENCH_IDS_MAX];
    size_t ids_count;
    struct buf data;
};

struct bench_store {
    struct surface_store store;
    struct bench_record records[BENCH_RECORDS_MAX];
    size_t count;
    bool refuses;
};

static inline bool bench_store_keep(void *context, const struct str *ids, size_t count,
                                    struct str data)
{
    struct bench_store *s = context;
    if (s->refuses) {
        return false;
    }
    CU_ASSERT_TRUE_FATAL(s->count < BENCH_RECORDS_MAX && count <= BENCH_IDS_MAX);
    struct bench_record *record = &s->records[s->count++];
    for (size_t i = 0; i < count; i++) {
        record->ids[record->ids_count++] = strndup(ids[i].data, ids[i].len);
    }
    buf_append_str(&record->data, data);
    return true;
}

static inline bool bench_store_find(void *context, struct str id, struct str *ret)
{
    struct bench_store *s = context;
    for (size_t i = 0; i < s->count; i++) {
        for (size_t k = 0; k < s->records[i].ids_count; k++) {
            if (str_is(id, s->records[i].ids[k])) {
                *ret = buf_str(&s->records[i].data);
                return true;
            }
        }
    }
    return false;
}

static inline void bench_store_init(struct bench_store *s)
{
    *s = (struct bench_store){0};
    s->store = (struct surface_store){bench_store_keep, bench_store_find, s};
}

static inline void bench_store_clear(struct bench_store *s)
{
    for (size_t i = 0; i < s->count; i++) {
        for (size_t k = 0; k < s->records[i].ids_count; k++) {
            free(s->records[i].ids[k]);
        }
        buf_clear(&s->records[i].data);
    }
}
#define STORE_CLEANUP __attribute__((cleanup(bench_store_clear)))

/* ---- the bench ---- */

static inline const char *bench_request(struct bench *b)
{
    return bench_request_with(b, (struct surface_turn_options){.stream = false});
}

static inline const char *bench_finish(struct bench *b, const char *closing)
{
    bench_end(b, closing);
    return b->out.data;
}

/* The client's JSON answer, with all that a response must have. */
static inline cJSON *bench_answer(struct bench *b)
{
    cJSON *answer = cJSON_ParseWithLength(b->out.data, b->out.len);
    CU_ASSERT_PTR_NOT_NULL_FATAL(answer);
    check_response_shape(answer);
    return answer;
}
#define ANSWER_CLEANUP __attribute__((cleanup(bench_answer_free)))
static inline void bench_answer_free(cJSON **answer)
{
    cJSON_Delete(*answer);
}

/* Compares a member, or an element of `output`, printed. */
static inline void expect_printed(const cJSON *item, const char *expected)
{
    char *text = cJSON_PrintUnformatted(item);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    if (strcmp(text, expected) != 0) {
        fprintf(stderr, "got      %s\nexpected %s\n", text, expected);
    }
    CU_ASSERT_STRING_EQUAL(text, expected);
    free(text);
}

/* What the client's stream came to: its texts, its end, how many items. */
static inline void expect_stream(struct bench *b, const char *text, const char *terminal, int items)
{
    CHECKED_CLEANUP struct checked c = checked_read(&b->out);
    CU_ASSERT_STRING_EQUAL(c.text.data, text);
    CU_ASSERT_STRING_EQUAL(c.terminal, terminal);
    CU_ASSERT_EQUAL(c.items_count, items);
    CU_ASSERT_EQUAL(c.errors, 0);
}

#endif
