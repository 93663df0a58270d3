/* Drives the chat surface as the gateway does, and reads the client's stream as a strict client library does. Streams are
 * fed in pieces of `piece` bytes (0: whole). */
#ifndef TESTS_SUPPORT_CHAT_BENCH_H
#define TESTS_SUPPORT_CHAT_BENCH_H

#include "cunit_main.h"
#include "surface/surface.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

#define BENCH_HEAD \
    "\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":11,\"model\":\"m-1\""
#define CHUNK(delta)                                                   \
    "data: {" BENCH_HEAD ",\"choices\":[{\"index\":0,\"delta\":" delta \
    ",\"logprobs\":null,\"finish_reason\":null}]}\n\n"
#define FINISH(reason)                                                                \
    "data: {" BENCH_HEAD ",\"choices\":[{\"index\":0,\"delta\":{},\"logprobs\":null," \
    "\"finish_reason\":\"" reason "\"}]}\n\n"
#define ROLE CHUNK("{\"role\":\"assistant\",\"content\":\"\"}")
#define TEXT(text) CHUNK("{\"content\":\"" text "\"}")
#define DONE "data: [DONE]\n\n"
/* One call in one piece; arguments written as the inside of a JSON string. */
#define CALL(index, id, name, arguments)                                                   \
    CHUNK("{\"tool_calls\":[{\"index\":" index ",\"id\":\"" id "\",\"type\":\"function\"," \
          "\"function\":{\"name\":\"" name "\",\"arguments\":\"" arguments "\"}}]}")
#define PIECE(index, arguments)                                                                    \
    CHUNK("{\"tool_calls\":[{\"index\":" index ",\"function\":{\"arguments\":\"" arguments "\"}}]" \
          "}")
#define RUN_42 \
    CALL("0", "up_1", "code_interpreter", "{\\\"code\\\":\\\"40+2\\\"}") FINISH("tool_calls") DONE

#define CODE_TOOL "{\"type\":\"code_interpreter\"}"
#define OWN_TOOL                                                                            \
    "{\"type\":\"function\",\"function\":{\"name\":\"get_stock\",\"parameters\":{\"type\":" \
    "\"object\"}}}"
#define CODE_DEFINITION                                                                        \
    "{\"type\":\"function\",\"function\":{\"name\":\"code_interpreter\",\"description\":"      \
    "\"Runs Python.\",\"parameters\":{\"type\":\"object\",\"properties\":{\"code\":{\"type\":" \
    "\"string\"}},\"required\":[\"code\"]}}}"
#define USER "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"

struct bench {
    size_t piece;
    bool upstream_plain; /* turns are asked for without a stream */
    struct arena *arena;
    struct json_text body;
    struct surface_offer offers[3];
    size_t offers_count;
    const struct surface_memory *memory;
    bool usage_last;
    struct surface_exchange *exchange;
    struct surface_turn turn;
    struct buf request, out;
    struct sg_error err;
};

static inline struct bench bench_new(size_t piece)
{
    struct bench b = {.piece = piece, .arena = arena_new(0), .offers_count = 2};
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
    surface_chat.free(b->exchange);
    buf_clear(&b->request);
    buf_clear(&b->out);
    arena_free(b->arena);
}
#define BENCH_CLEANUP __attribute__((cleanup(bench_clear)))

static inline void bench_scan(struct bench *b, const char *body)
{
    char *copy = arena_copy(b->arena, str_of(body));
    CU_ASSERT_EQUAL_FATAL(json_scan(str_of(copy), b->arena, &b->body, &b->err), SG_OK);
}

static inline struct surface_input bench_input(struct bench *b)
{
    return (struct surface_input){.body = &b->body,
                                  .offers = b->offers,
                                  .offers_count = b->offers_count,
                                  .memory = b->memory,
                                  .usage_last = b->usage_last,
                                  .answer_id = "0123456789abcdef0123456789abcdef"};
}

static inline bool bench_looks_for(struct bench *b, const char *body)
{
    bool ret = false;
    bench_scan(b, body);
    struct surface_input input = bench_input(b);
    CU_ASSERT_EQUAL(surface_chat.looks_for(&input, b->arena, &ret, &b->err), SG_OK);
    return ret;
}

static inline int bench_try_open(struct bench *b, const char *body)
{
    bench_scan(b, body);
    struct surface_input input = bench_input(b);
    return surface_chat.open(&input, b->arena, &b->exchange, &b->err);
}

static inline void bench_open(struct bench *b, const char *body)
{
    CU_ASSERT_EQUAL_FATAL(bench_try_open(b, body), SG_OK);
}

/* The body of the next turn; checked to be good JSON. */
static inline const char *bench_request_with(struct bench *b, struct surface_turn_options options)
{
    buf_reset(&b->request);
    CU_ASSERT_EQUAL_FATAL(surface_chat.turn_request(b->exchange, &options, &b->request, &b->err),
                          SG_OK);
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
    surface_chat.turn_begin(b->exchange, is_stream);
    struct str rest = str_of(text);
    while (rest.len > 0) {
        size_t len = b->piece == 0 || b->piece > rest.len ? rest.len : b->piece;
        char *exact = malloc(len); /* so that reading past a piece is seen */
        memcpy(exact, rest.data, len);
        int code = surface_chat.turn_feed(b->exchange, (struct str){exact, len}, &b->out, &b->err);
        free(exact);
        if (code != SG_OK) {
            return code;
        }
        rest = (struct str){rest.data + len, rest.len - len};
    }
    return surface_chat.turn_end(b->exchange, &b->out, &b->turn, &b->err);
}

static inline void bench_turn(struct bench *b, const char *sse)
{
    int code = bench_try_turn(b, true, sse);
    CU_ASSERT_EQUAL(code, SG_OK);
    if (code != SG_OK) {
        fprintf(stderr, "%s\n", b->err.message);
    }
}

static inline void bench_plain_turn(struct bench *b, const char *json)
{
    int code = bench_try_turn(b, false, json);
    CU_ASSERT_EQUAL(code, SG_OK);
    if (code != SG_OK) {
        fprintf(stderr, "%s\n", b->err.message);
    }
}

static inline void bench_result(struct bench *b, size_t call, const char *text)
{
    struct surface_output output = {SG_OUT_LOG_OUT, str_of(text)};
    struct surface_result result = {.status = SURFACE_CALL_COMPLETED,
                                    .model_text = str_of(text),
                                    .container_id = STR("cntr_1"),
                                    .outputs = &output,
                                    .outputs_count = 1};
    surface_chat.call_begin(b->exchange, call, result.container_id, &b->out);
    surface_chat.call_end(b->exchange, call, &result, &b->out);
}

static inline const char *bench_finish(struct bench *b, const char *closing)
{
    CU_ASSERT_EQUAL(surface_chat.finish(b->exchange, str_of(closing), &b->out, &b->err), SG_OK);
    return b->out.data;
}

/* 32 random digits behind a mark of ours as zeros, so that two runs compare. */
static inline void bench_plain_ids(char *text)
{
    for (char *p = text; p != NULL && (p = strstr(p, "_sg")) != NULL;) {
        p += 3;
        for (size_t i = 0; i < 32 && p[i] != '\0' && p[i] != '"'; i++) {
            p[i] = '0';
        }
    }
}

/* ---- the client's side ---- */

struct seen {
    struct buf text, reasoning, calls, usage, runs, id;
    char finish[32];
    int roles, finishes, dones, errors, chunks, usages, runs_told;
};

static inline void seen_clear(struct seen *s)
{
    buf_clear(&s->text);
    buf_clear(&s->reasoning);
    buf_clear(&s->calls);
    buf_clear(&s->usage);
    buf_clear(&s->runs);
    buf_clear(&s->id);
}
#define SEEN_CLEANUP __attribute__((cleanup(seen_clear)))

static inline void seen_print(struct buf *to, const cJSON *item)
{
    char *text = cJSON_PrintUnformatted(item);
    buf_reset(to);
    buf_puts(to, text);
    free(text);
}

/* Calls as "index:id:name:arguments;" where a head comes, "index:+arguments;" for a piece. */
static inline void seen_calls(struct seen *s, const cJSON *calls)
{
    const cJSON *call;
    cJSON_ArrayForEach(call, calls)
    {
        const cJSON *index = cJSON_GetObjectItem(call, "index");
        const cJSON *custom = cJSON_GetObjectItem(call, "custom");
        const cJSON *function = custom != NULL ? custom : cJSON_GetObjectItem(call, "function");
        CU_ASSERT_PTR_NOT_NULL_FATAL(index);
        CU_ASSERT_PTR_NOT_NULL_FATAL(function);
        const cJSON *id = cJSON_GetObjectItem(call, "id");
        const cJSON *name = cJSON_GetObjectItem(function, "name");
        const cJSON *arguments =
            cJSON_GetObjectItem(function, custom != NULL ? "input" : "arguments");
        CU_ASSERT_PTR_NOT_NULL_FATAL(arguments);
        if (id != NULL) {
            CU_ASSERT_PTR_NOT_NULL_FATAL(name);
            CU_ASSERT_STRING_EQUAL(cJSON_GetObjectItem(call, "type")->valuestring,
                                   custom != NULL ? "custom" : "function");
            buf_printf(&s->calls, "%d:%s:%s:%s;", index->valueint, id->valuestring,
                       name->valuestring, arguments->valuestring);
        } else {
            buf_printf(&s->calls, "%d:+%s;", index->valueint, arguments->valuestring);
        }
    }
}

static inline void seen_delta(struct seen *s, const cJSON *delta)
{
    const cJSON *item = cJSON_GetObjectItem(delta, "content");
    if (cJSON_IsString(item)) {
        buf_puts(&s->text, item->valuestring);
    }
    item = cJSON_GetObjectItem(delta, "reasoning_content");
    if (cJSON_IsString(item)) {
        buf_puts(&s->reasoning, item->valuestring);
    }
    item = cJSON_GetObjectItem(delta, "executed_tools");
    if (item != NULL) {
        s->runs_told++;
        seen_print(&s->runs, item);
    }
    s->roles += cJSON_GetObjectItem(delta, "role") != NULL;
    seen_calls(s, cJSON_GetObjectItem(delta, "tool_calls"));
}

static inline void seen_chunk(struct seen *s, const cJSON *chunk)
{
    if (cJSON_GetObjectItem(chunk, "error") != NULL) {
        s->errors++;
        return;
    }
    const cJSON *choices = cJSON_GetObjectItem(chunk, "choices"), *choice;
    const cJSON *id = cJSON_GetObjectItem(chunk, "id");
    const cJSON *usage = cJSON_GetObjectItem(chunk, "usage");
    CU_ASSERT_TRUE_FATAL(cJSON_IsArray(choices));
    CU_ASSERT_TRUE_FATAL(cJSON_IsString(id));
    CU_ASSERT_TRUE(cJSON_IsNumber(cJSON_GetObjectItem(chunk, "created")));
    CU_ASSERT_TRUE(cJSON_IsString(cJSON_GetObjectItem(chunk, "model")));
    CU_ASSERT_EQUAL(s->dones, 0);
    if (s->id.len == 0) {
        buf_puts(&s->id, id->valuestring);
    }
    CU_ASSERT_STRING_EQUAL(s->id.data, id->valuestring);
    s->usages += usage != NULL;
    if (cJSON_IsObject(usage)) {
        seen_print(&s->usage, usage);
    }
    s->chunks++;
    cJSON_ArrayForEach(choice, choices)
    {
        const cJSON *finish = cJSON_GetObjectItem(choice, "finish_reason");
        CU_ASSERT_EQUAL(cJSON_GetObjectItem(choice, "index")->valueint, 0);
        CU_ASSERT_EQUAL(s->finishes, 0); /* nothing after the finish */
        const cJSON *delta = cJSON_GetObjectItem(choice, "delta");
        CU_ASSERT_TRUE_FATAL(cJSON_IsObject(delta));
        if (s->chunks == 1) {
            CU_ASSERT_PTR_NOT_NULL(cJSON_GetObjectItem(delta, "role"));
        }
        seen_delta(s, delta);
        if (cJSON_IsString(finish)) {
            s->finishes++;
            (void)snprintf(s->finish, sizeof s->finish, "%s", finish->valuestring);
        }
    }
}

/* Reads a whole client stream: one `data:` line an event, nothing else but comments. */
static inline struct seen seen_read(const struct buf *out)
{
    struct seen s = {0};
    const char *p = out->data;
    while (p != NULL && *p != '\0') {
        const char *end = strstr(p, "\n\n");
        CU_ASSERT_PTR_NOT_NULL_FATAL(end);
        CU_ASSERT_EQUAL(strncmp(p, "data: ", 6), 0);
        CU_ASSERT_PTR_NULL(memchr(p, '\n', (size_t)(end - p)));
        if (strncmp(p + 6, "[DONE]", 6) == 0) {
            s.dones++;
        } else {
            cJSON *chunk = cJSON_ParseWithLength(p + 6, (size_t)(end - p) - 6);
            CU_ASSERT_PTR_NOT_NULL_FATAL(chunk);
            seen_chunk(&s, chunk);
            cJSON_Delete(chunk);
        }
        p = end + 2;
    }
    buf_puts(&s.text, "");
    buf_puts(&s.calls, "");
    buf_puts(&s.reasoning, "");
    buf_puts(&s.usage, "");
    buf_puts(&s.runs, "");
    return s;
}

/* Runs a scenario with whole events, single bytes and odd pieces: what goes up and down is the same. */
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
