/* Drives the chat surface as the gateway does, and reads the client's stream as a strict client library does. */
#ifndef TESTS_SUPPORT_CHAT_BENCH_H
#define TESTS_SUPPORT_CHAT_BENCH_H

#define BENCH_SURFACE surface_chat
#define BENCH_OFFERS                                   \
    OFFER("code_interpreter", "Runs Python.", "code"), \
        OFFER("web_search", "Searches the web.", "query")
#define BENCH_CONTAINER "cntr_1"
#include "surface_bench.h"

#include <cjson/cJSON.h>

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
#define CODE_DEFINITION                                                                   \
    "{\"type\":\"function\",\"function\":{\"name\":\"code_interpreter\",\"description\":" \
    "\"Runs Python.\",\"parameters\":" SCHEMA("code") "}}"
#define USER "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"
#define STREAM_BODY \
    "{\"model\":\"m\",\"stream\":true," USER ",\"tools\":[" CODE_TOOL "," OWN_TOOL "]}"

static inline const char *bench_request(struct bench *b)
{
    return bench_request_with(b, (struct surface_turn_options){.stream = false});
}

static inline const char *bench_finish(struct bench *b, const char *closing)
{
    bench_end(b, closing);
    return b->out.data;
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

/* Expects a whole answer: its text, its calls as seen_calls() writes them, its finish. */
static inline void expect_seen(struct bench *b, const char *text, const char *calls,
                               const char *finish)
{
    SEEN_CLEANUP struct seen s = seen_read(&b->out);
    CU_ASSERT_STRING_EQUAL(s.text.data, text);
    CU_ASSERT_STRING_EQUAL(s.calls.data, calls);
    CU_ASSERT_STRING_EQUAL(s.finish, finish);
    CU_ASSERT_EQUAL(s.roles, 1);
    CU_ASSERT_EQUAL(s.finishes, 1);
    CU_ASSERT_EQUAL(s.dones, 1);
    CU_ASSERT_EQUAL(s.errors, 0);
}

#endif
