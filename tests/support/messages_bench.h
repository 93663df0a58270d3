/* Drives the messages surface as the gateway does; what a streaming client gets goes through the strict checker. */
#ifndef TESTS_SUPPORT_MESSAGES_BENCH_H
#define TESTS_SUPPORT_MESSAGES_BENCH_H

#define BENCH_SURFACE surface_messages
#define BENCH_OFFERS                                                    \
    OFFER("code_interpreter", "Runs Python.", "code"),                  \
        OFFER("bash_code_execution", "Runs a command.", "command"),     \
        OFFER("text_editor_code_execution", "Edits files.", "command"), \
        OFFER("web_search", "Searches the web.", "query"),              \
        OFFER("web_fetch", "Fetches a page.", "url")
#define BENCH_CONTAINER "cntr_42"
#include "messages_checker.h"
#include "surface_bench.h"

#define EVENT(type, more) "event: " type "\ndata: {\"type\":\"" type "\"" more "}\n\n"
#define START_OF(id, usage)                                                                       \
    EVENT("message_start", ",\"message\":{\"id\":\"" id "\",\"type\":\"message\",\"role\":"       \
                           "\"assistant\",\"model\":\"m-1\",\"content\":[],\"stop_reason\":null," \
                           "\"stop_sequence\":null,\"usage\":" usage "}")
#define START START_OF("msg_1", "{\"input_tokens\":10,\"output_tokens\":1}")
#define BLOCK(index, block) \
    EVENT("content_block_start", ",\"index\":" index ",\"content_block\":" block)
#define DELTA(index, delta) EVENT("content_block_delta", ",\"index\":" index ",\"delta\":" delta)
#define STOP(index) EVENT("content_block_stop", ",\"index\":" index)
#define TEXT_DELTA(index, text) DELTA(index, "{\"type\":\"text_delta\",\"text\":\"" text "\"}")
#define TEXT(index, text) \
    BLOCK(index, "{\"type\":\"text\",\"text\":\"\"}") TEXT_DELTA(index, text) STOP(index)
#define INPUT(index, json) \
    DELTA(index, "{\"type\":\"input_json_delta\",\"partial_json\":\"" json "\"}")
#define CALL_START(index, id, name) \
    BLOCK(index, "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"" name "\",\"input\":{}}")
#define CALL(index, id, name, json) CALL_START(index, id, name) INPUT(index, json) STOP(index)
#define END(reason)                                                                              \
    EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"" reason "\",\"stop_sequence\":null}," \
                           "\"usage\":{\"output_tokens\":5}")                                    \
    EVENT("message_stop", "")
#define RUN_42 \
    CALL("0", "toolu_1", "code_interpreter", "{\\\"code\\\":\\\"40+2\\\"}") END("tool_use")

#define PYTHON_TOOL "{\"type\":\"code_execution_20250522\",\"name\":\"code_execution\"}"
#define SHELL_TOOL "{\"type\":\"code_execution_20250825\",\"name\":\"code_execution\"}"
#define SEARCH_TOOL "{\"type\":\"web_search_20250305\",\"name\":\"web_search\",\"max_uses\":3}"
#define FETCH_TOOL "{\"type\":\"web_fetch_20250910\",\"name\":\"web_fetch\",\"max_uses\":2}"
#define OWN_TOOL "{\"name\":\"get_stock\",\"input_schema\":{\"type\":\"object\"}}"
#define DEFINITION(name, text, property) \
    "{\"name\":\"" name "\",\"description\":\"" text "\",\"input_schema\":" SCHEMA(property) "}"
#define PYTHON_DEFINITION DEFINITION("code_interpreter", "Runs Python.", "code")
#define SHELL_DEFINITION DEFINITION("bash_code_execution", "Runs a command.", "command")
#define EDITOR_DEFINITION DEFINITION("text_editor_code_execution", "Edits files.", "command")
#define SEARCH_DEFINITION DEFINITION("web_search", "Searches the web.", "query")
#define FETCH_DEFINITION DEFINITION("web_fetch", "Fetches a page.", "url")
#define USER "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"
#define HEAD "{\"model\":\"m\",\"max_tokens\":1000,"

static inline const char *bench_request(struct bench *b)
{
    return bench_request_with(
        b, (struct surface_turn_options){.stream = surface_messages.wants_stream(b->exchange)});
}

/* What the client has is right as far as it goes. */
static inline void bench_check(struct bench *b, bool may_end_early)
{
    CHECKER_CLEANUP struct checker checker = {.trusts_upstream = true};
    const char *problem = surface_messages.wants_stream(b->exchange)
                              ? check_stream(&checker, buf_str(&b->out), may_end_early)
                              : check_message(&checker, buf_str(&b->out));
    CU_ASSERT_PTR_NULL(problem);
    if (problem != NULL) {
        fprintf(stderr, "%s in:\n%s\n", problem, b->out.data);
    }
}

static inline const char *bench_finish(struct bench *b, const char *closing)
{
    bench_end(b, closing);
    bench_check(b, false);
    bench_plain_ids(b->out.data);
    return b->out.data;
}

static inline void expect_text(const char *got, const char *wanted)
{
    CU_ASSERT_PTR_NOT_NULL_FATAL(got);
    CU_ASSERT_STRING_EQUAL(got, wanted);
    if (strcmp(got, wanted) != 0) {
        fprintf(stderr, "got    %s\nwanted %s\n", got, wanted);
    }
}

#endif
