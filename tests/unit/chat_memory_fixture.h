/* What the tests of chat's memory share: what a client brings back. */
#ifndef TESTS_UNIT_CHAT_MEMORY_FIXTURE_H
#define TESTS_UNIT_CHAT_MEMORY_FIXTURE_H

#include "chat_bench.h"
#include "memory_fixture.h"

#define TOOLS "\"tools\":[" CODE_TOOL "," OWN_TOOL "]"
#define BODY "{\"model\":\"m\"," USER "," TOOLS "}"

/* ---- the two requests ---- */

#define ENTRY(id, name, arguments)                                                         \
    "{\"id\":\"" id "\",\"type\":\"function\",\"function\":{\"name\":\"" name "\",\"argum" \
    "ents\":\"" arguments "\"}}"
#define CODE_A ENTRY("call_0", "code_interpreter", "{\\\"code\\\":\\\"5\\\"}")
#define STOCK_B ENTRY("call_1", "get_stock", "{\\\"part\\\": \\\"A-7\\\"}")
#define CODE_C ENTRY("call_2", "code_interpreter", "{\\\"code\\\":\\\"6\\\"}")
#define STOCK_D ENTRY("call_3", "get_stock", "{\\\"part\\\":\\\"B\\\"}")
#define MESSAGE(text, calls)                    \
    "{\"role\":\"assistant\",\"content\":" text \
    ",\"reasoning_content\":\"r\",\"tool_calls\":[" calls "]}"
#define ANSWER(message)                                                                         \
    "{\"id\":\"x\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"m\",\"choices\":[{" \
    "\"index\":0,\"message\":" message ",\"finish_reason\":\"tool_calls\"}]}"
#define RESULT(id, text) "{\"role\":\"tool\",\"tool_call_id\":\"" id "\",\"content\":\"" text "\"}"

/* The client's message as a client library has it from our answer: role, content and calls. */
static inline char *client_message(struct bench *b, cJSON **ret_calls)
{
    cJSON *answer = cJSON_Parse(b->out.data);
    cJSON *message = cJSON_GetObjectItem(
        cJSON_GetArrayItem(cJSON_GetObjectItem(answer, "choices"), 0), "message");
    cJSON *mine = cJSON_CreateObject();
    cJSON_AddStringToObject(mine, "role", "assistant");
    cJSON_AddItemToObject(mine, "content",
                          cJSON_Duplicate(cJSON_GetObjectItem(message, "content"), 1));
    cJSON *calls = cJSON_Duplicate(cJSON_GetObjectItem(message, "tool_calls"), 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(calls);
    cJSON_AddItemToObject(mine, "tool_calls", calls);
    *ret_calls = cJSON_Duplicate(calls, 1);
    char *text = cJSON_PrintUnformatted(mine);
    cJSON_Delete(mine);
    cJSON_Delete(answer);
    return text;
}

static inline const char *id_of(const cJSON *calls, int i)
{
    return cJSON_GetObjectItem(cJSON_GetArrayItem(calls, i), "id")->valuestring;
}

/* A request with these messages behind the user's. */
static inline void __attribute__((format(printf, 3, 4)))
body_put(struct buf *out, const char *tools, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    buf_printf(out, "{\"model\":\"m\",%s\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},",
               tools);
    buf_vprintf(out, format, arguments);
    buf_puts(out, "]}");
    va_end(arguments);
}

/* The messages that go up behind the user's. */
static inline void expect_messages(struct bench *b, const char *wanted)
{
    const char *body = bench_request(b);
    const char *start = strstr(body, "\"content\":\"hi\"},");
    CU_ASSERT_PTR_NOT_NULL_FATAL(start);
    start += strlen("\"content\":\"hi\"},");
    const char *end = strrchr(start, ']');
    CU_ASSERT_PTR_NOT_NULL_FATAL(end);
    CU_ASSERT_TRUE(str_eq(str_of(wanted), (struct str){start, (size_t)(end - start)}));
    if (!str_eq(str_of(wanted), (struct str){start, (size_t)(end - start)})) {
        fprintf(stderr, "got    %.*s\nwanted %s\n", (int)(end - start), start, wanted);
    }
}

/* The first request: one turn of ours, then a mixed one; its JSON answer is in b->out. */
static inline void first_request(struct memory *m, struct bench *b)
{
    (void)m;
    bench_open(b, BODY);
    bench_plain_turn(b, ANSWER(MESSAGE("\"Let me see.\"", ENTRY("call_0", "code_interpreter",
                                                                "{\\\"code\\\":\\\"x=1\\\"}"))));
    bench_result(b, 0, "ran");
    bench_plain_turn(b, ANSWER(MESSAGE("\"Both.\"", CODE_A "," STOCK_B "," CODE_C "," STOCK_D)));
    CU_ASSERT_EQUAL_FATAL(b->turn.calls_count, 2);
    CU_ASSERT_TRUE(b->turn.has_client_calls);
    bench_result(b, 0, "5!");
    bench_result(b, 1, "6!");
    bench_finish(b, "");
}

#endif
