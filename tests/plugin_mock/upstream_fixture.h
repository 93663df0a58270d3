/* What the tests of the mock upstream share: an instance, a turn, requests in pieces, answers in short. */
#ifndef TESTS_UPSTREAM_FIXTURE_H
#define TESTS_UPSTREAM_FIXTURE_H

#include "base/check.h"
#include "cunit_main.h"
#include "fake_host.h"

#include <cjson/cJSON.h>

static const struct sg_plugin *plugin;

struct fixture {
    void *config, *self;
    struct sg_call *call;
};

static inline struct fixture fixture_new(void)
{
    return (struct fixture){.config = config_new(plugin), .call = call_new()};
}

static inline struct fixture fixture_strict(void)
{
    struct fixture f = fixture_new();
    config_set(plugin, f.config, "strict", "true");
    return f;
}

static inline int turn_with(struct fixture *f, const char *surface, const char *json, bool stream)
{
    if (f->self == NULL) {
        CU_ASSERT_EQUAL_FATAL(plugin->open(f->config, f->call, &f->self, call_error(f->call)), 0);
    }
    if (f->call->outputs_count > 0) {
        call_free(f->call);
        f->call = call_new();
    }
    struct sg_turn turn = {surface, json, strlen(json), stream};
    return plugin->upstream->turn(f->self, f->call, &turn, call_error(f->call));
}

static inline int turn(struct fixture *f, const char *json)
{
    return turn_with(f, "chat", json, false);
}

static inline void fixture_free(struct fixture *f)
{
    if (f->self != NULL) {
        plugin->close(f->self, f->call);
    }
    call_free(f->call);
    config_free(plugin, f->config);
}

#define TOOL(name, parameter)                                                              \
    "{\"type\":\"function\",\"function\":{\"name\":\"" name "\",\"parameters\":{\"type\":" \
    "\"object\",\"properties\":{\"" parameter                                              \
    "\":{\"type\":\"string\"}},\"required\":[\"" parameter "\"]}}}"
#define CODE_TOOL TOOL("code_interpreter", "code")
#define ASK \
    "{\"role\":\"user\",\"content\":\"Run this Python code and tell me the result: print(6*7)\"}"
#define CALLED                                                                                 \
    "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\",\"type\":"        \
    "\"function\",\"function\":{\"name\":\"code_interpreter\",\"arguments\":\"{\\\"code\\\": " \
    "\\\"1\\\"}\"}}]}"
#define RESULT "{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"42\\n\"}"
#define REQUEST(messages, more) "{\"model\":\"m-1\",\"messages\":[" messages "]" more "}"

/* The answer's message as "content|name(arguments)…|finish". */
static inline const char *summary_of(cJSON *answer)
{
    static char text[8192];
    cJSON *choice = cJSON_GetArrayItem(cJSON_GetObjectItem(answer, "choices"), 0);
    cJSON *message = cJSON_GetObjectItem(choice, "message"), *call;
    const char *content = cJSON_GetStringValue(cJSON_GetObjectItem(message, "content"));
    size_t len = (size_t)snprintf(text, sizeof text, "%s|", content == NULL ? "-" : content);
    cJSON_ArrayForEach(call, cJSON_GetObjectItem(message, "tool_calls"))
    {
        cJSON *function = cJSON_GetObjectItem(call, "function");
        len += (size_t)snprintf(text + len, sizeof text - len, "%s(%s)",
                                cJSON_GetStringValue(cJSON_GetObjectItem(function, "name")),
                                cJSON_GetStringValue(cJSON_GetObjectItem(function, "arguments")));
    }
    snprintf(text + len, sizeof text - len, "|%s",
             cJSON_GetStringValue(cJSON_GetObjectItem(choice, "finish_reason")));
    return text;
}

static inline void expect_json(struct fixture *f, const char *request, const char *expected)
{
    CU_ASSERT_EQUAL(turn(f, request), 0);
    CU_ASSERT_STRING_EQUAL(call_text(f->call, SG_OUT_HEAD),
                           "{\"status\": 200, \"headers\": {\"content-type\": "
                           "\"application/json\"}}");
    cJSON *answer = cJSON_Parse(call_text(f->call, SG_OUT_DATA));
    CU_ASSERT_STRING_EQUAL(summary_of(answer), expected);
    cJSON_Delete(answer);
}

static inline void expect_default(const char *request, const char *expected)
{
    struct fixture f = fixture_new();
    expect_json(&f, request, expected);
    fixture_free(&f);
}

#define NO_CODE "I cannot run code here, so I do not know the result.||stop"
#define WORDS                                                                             \
    "I am the mock model. I call a tool when I am asked to 'run this Python code: ...', " \
    "to 'run this shell command: ...' or to "                                             \
    "'search the web for: ...'; to anything else this is my answer.||stop"

#endif
