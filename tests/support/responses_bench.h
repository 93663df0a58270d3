/* Drives the responses surface as the gateway does. Streams are fed in pieces of `piece` bytes (0: whole); what the client
 * gets of a stream is read by the strict checker. */
#ifndef TESTS_SUPPORT_RESPONSES_BENCH_H
#define TESTS_SUPPORT_RESPONSES_BENCH_H

#include "base/check.h"
#include "responses_checker.h"
#include "surface/surface.h"

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
    "\"parameters\":{\"type\":\"object\",\"properties\":{\"code\":{\"type\":\"string\"}},"   \
    "\"required\":[\"code\"]},\"strict\":false}"
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

struct bench {
    size_t piece;
    struct arena *arena;
    struct json_text body;
    struct surface_offer offers[3];
    size_t offers_count;
    const struct surface_store *store;
    const char *container, *answer_id;
    bool usage_last, asks_for_reasoning;
    struct surface_exchange *exchange;
    struct surface_turn turn;
    struct buf request, out;
    struct sg_error err;
};

static inline struct bench bench_new(size_t piece)
{
    struct bench b = {.piece = piece,
                      .arena = arena_new(0),
                      .offers_count = 2,
                      .container = "cntr_1",
                      .answer_id = "0123456789abcdef0123456789abcdef"};
    b.offers[0] = (struct surface_offer){
        .hosted = STR("code_interpreter"),
        .name = STR("code_interpreter"),
        .description = STR("Runs Python."),
        .parameters = STR("{\"type\":\"object\",\"properties\":{\"code\":{\"type\":\"string\"}},"
                          "\"required\":[\"code\"]}")};
    b.offers[1] = (struct surface_offer){
        .hosted = STR("web_search"),
        .name = STR("web_search"),
        .description = STR("Searches the web."),
        .parameters = STR("{\"type\":\"object\",\"properties\":{\"query\":{\"type\":\"string\"}},"
                          "\"required\":[\"query\"]}")};
    return b;
}

static inline void bench_clear(struct bench *b)
{
    surface_responses.free(b->exchange);
    buf_clear(&b->request);
    buf_clear(&b->out);
    arena_free(b->arena);
}
#define BENCH_CLEANUP __attribute__((cleanup(bench_clear)))

static inline const char *bench_container_id(void *context)
{
    return ((struct bench *)context)->container;
}

static inline int64_t bench_container_expires(void *context)
{
    (void)context;
    return 0;
}

static inline struct surface_input bench_input(struct bench *b)
{
    struct surface_container_source *container = arena_get(b->arena, sizeof *container);
    *container = (struct surface_container_source){bench_container_id, bench_container_expires, b};
    return (struct surface_input){.body = &b->body,
                                  .offers = b->offers,
                                  .offers_count = b->offers_count,
                                  .store = b->store,
                                  .container = container,
                                  .asks_for_reasoning = b->asks_for_reasoning,
                                  .usage_last = b->usage_last,
                                  .answer_id = b->answer_id};
}

static inline void bench_scan(struct bench *b, const char *body)
{
    char *copy = arena_copy(b->arena, str_of(body));
    CU_ASSERT_EQUAL_FATAL(json_scan(str_of(copy), b->arena, &b->body, &b->err), SG_OK);
}

static inline bool bench_looks_for(struct bench *b, const char *body)
{
    bool ret = false;
    bench_scan(b, body);
    struct surface_input input = bench_input(b);
    CU_ASSERT_EQUAL(surface_responses.looks_for(&input, b->arena, &ret, &b->err), SG_OK);
    return ret;
}

static inline int bench_try_open(struct bench *b, const char *body)
{
    bench_scan(b, body);
    struct surface_input input = bench_input(b);
    return surface_responses.open(&input, b->arena, &b->exchange, &b->err);
}

static inline void bench_open(struct bench *b, const char *body)
{
    int code = bench_try_open(b, body);
    if (code != SG_OK) {
        fprintf(stderr, "%s\n", b->err.message);
    }
    CU_ASSERT_EQUAL_FATAL(code, SG_OK);
}

/* The body of the next turn; checked to be good JSON. */
static inline const char *bench_request_with(struct bench *b, struct surface_turn_options options)
{
    buf_reset(&b->request);
    CU_ASSERT_EQUAL_FATAL(
        surface_responses.turn_request(b->exchange, &options, &b->request, &b->err), SG_OK);
    struct arena *scratch = arena_new(0);
    struct json_text text;
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(json_scan(buf_str(&b->request), scratch, &text, &err), SG_OK);
    arena_free(scratch);
    return b->request.data;
}

static inline const char *bench_request(struct bench *b)
{
    return bench_request_with(b, (struct surface_turn_options){.stream = false});
}

static inline int bench_try_turn(struct bench *b, bool is_stream, const char *text)
{
    surface_responses.turn_begin(b->exchange, is_stream);
    struct str rest = str_of(text);
    while (rest.len > 0) {
        size_t len = b->piece == 0 || b->piece > rest.len ? rest.len : b->piece;
        char *exact = malloc(len); /* so that reading past a piece is seen */
        memcpy(exact, rest.data, len);
        int code =
            surface_responses.turn_feed(b->exchange, (struct str){exact, len}, &b->out, &b->err);
        free(exact);
        if (code != SG_OK) {
            return code;
        }
        rest = (struct str){rest.data + len, rest.len - len};
    }
    return surface_responses.turn_end(b->exchange, &b->out, &b->turn, &b->err);
}

static inline void bench_turn(struct bench *b, const char *sse)
{
    int code = bench_try_turn(b, true, sse);
    if (code != SG_OK) {
        fprintf(stderr, "%s\n", b->err.message);
    }
    CU_ASSERT_EQUAL_FATAL(code, SG_OK);
}

static inline void bench_plain_turn(struct bench *b, const char *json)
{
    int code = bench_try_turn(b, false, json);
    if (code != SG_OK) {
        fprintf(stderr, "%s\n", b->err.message);
    }
    CU_ASSERT_EQUAL_FATAL(code, SG_OK);
}

static inline void bench_result(struct bench *b, size_t call, const char *text)
{
    struct surface_output output = {SG_OUT_LOG_OUT, str_of(text)};
    struct surface_result result = {.status = SURFACE_CALL_COMPLETED,
                                    .model_text = str_of(text),
                                    .container_id = str_of(b->container),
                                    .outputs = &output,
                                    .outputs_count = 1};
    surface_responses.call_begin(b->exchange, call, result.container_id, &b->out);
    surface_responses.call_end(b->exchange, call, &result, &b->out);
}

static inline const char *bench_finish(struct bench *b, const char *closing)
{
    CU_ASSERT_EQUAL(surface_responses.finish(b->exchange, str_of(closing), &b->out, &b->err),
                    SG_OK);
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

/* 32 random digits behind a mark of ours as zeros, and times, so that two runs compare. */
static inline void bench_plain_ids(char *text)
{
    for (char *p = text; p != NULL && (p = strstr(p, "_sg")) != NULL;) {
        p += 3;
        for (size_t i = 0; i < 32 && p[i] != '\0' && p[i] != '"'; i++) {
            p[i] = '0';
        }
    }
    for (char *p = text; p != NULL && (p = strstr(p, "ed_at\":")) != NULL;) {
        for (p += 7; *p >= '0' && *p <= '9'; p++) {
            *p = '1';
        }
    }
}

/* Runs a scenario with whole events, single bytes and odd pieces: what goes down is the same. */
static inline void in_any_pieces(void (*scenario)(struct bench *))
{
    static const size_t pieces[] = {0, 1, 7, 64};
    struct buf first = {0};
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        struct bench b = bench_new(pieces[i]);
        scenario(&b);
        bench_plain_ids(b.out.data);
        if (i == 0) {
            buf_append_str(&first, buf_str(&b.out));
        } else {
            CU_ASSERT_TRUE(str_eq(buf_str(&first), buf_str(&b.out)));
        }
        bench_clear(&b);
    }
    buf_clear(&first);
}

#endif
