/* A strict Chat Completions server: each refusal names the field, so that a test sees at once what went up and should
 * not have. */
#include "chat.h"

#include "openai.h"

#include <stdio.h>

static void check_top(const cJSON *request, struct problem *problem)
{
    static const char *const names[] = {"model",
                                        "messages",
                                        "tools",
                                        "tool_choice",
                                        "parallel_tool_calls",
                                        "stream",
                                        "stream_options",
                                        "max_completion_tokens",
                                        "max_tokens",
                                        "n",
                                        "stop",
                                        "seed",
                                        "temperature",
                                        "top_p",
                                        "presence_penalty",
                                        "frequency_penalty",
                                        "logit_bias",
                                        "logprobs",
                                        "top_logprobs",
                                        "response_format",
                                        "reasoning_effort",
                                        "verbosity",
                                        "modalities",
                                        "audio",
                                        "prediction",
                                        "service_tier",
                                        "store",
                                        "metadata",
                                        "user",
                                        "safety_identifier",
                                        "prompt_cache_key",
                                        "prompt_cache_retention",
                                        "functions",
                                        "function_call",
                                        "web_search_options",
                                        NULL};
    openai_check_members(request, "", names, problem);
    if (!cJSON_IsTrue(json_member(request, "stream")) &&
        cJSON_IsObject(json_member(request, "stream_options"))) {
        problem_set(problem, "stream_options", NULL,
                    "The 'stream_options' parameter is only allowed when 'stream' is enabled.");
    }
}

/* ---- tools ---- */

static void check_tool(const cJSON *tool, size_t index, struct problem *problem)
{
    static const char *const names[] = {"type", "function", "custom", NULL};
    static const char *const function_names[] = {"name", "description", "parameters", "strict",
                                                 NULL};
    char where[64], path[96];
    snprintf(where, sizeof where, "tools[%zu]", index);
    const cJSON *type = json_member(tool, "type"), *function = json_member(tool, "function");
    if (!json_is(type, "function") && !json_is(type, "custom")) {
        snprintf(path, sizeof path, "%s.type", where);
        problem_set(problem, path, "invalid_value",
                    "Invalid value: '%.60s'. Supported values are: 'function' and 'custom'.",
                    cJSON_IsString(type) ? type->valuestring : "(none)");
    }
    openai_check_members(tool, where, names, problem);
    if (json_is(type, "function")) {
        snprintf(path, sizeof path, "%s.function", where);
        openai_check_members(function, path, function_names, problem);
        snprintf(path, sizeof path, "%s.function.name", where);
        if (!cJSON_IsString(json_member(function, "name"))) {
            openai_missing(path, problem);
        }
    }
}

static const cJSON *tool_named(const cJSON *tools, const char *name)
{
    const cJSON *tool;
    cJSON_ArrayForEach(tool, tools)
    {
        if (json_is(json_member(json_member(tool, "function"), "name"), name) ||
            json_is(json_member(json_member(tool, "custom"), "name"), name)) {
            return tool;
        }
    }
    return NULL;
}

static void check_choice_name(const cJSON *tools, const cJSON *one, struct problem *problem)
{
    const cJSON *name = json_member(json_member(one, "function"), "name");
    if (json_is(json_member(one, "type"), "custom")) {
        name = json_member(json_member(one, "custom"), "name");
    } else if (!json_is(json_member(one, "type"), "function")) {
        problem_set(problem, "tool_choice", "invalid_value",
                    "Invalid value for 'tool_choice': only functions and custom tools have one.");
    }
    if (!cJSON_IsString(name) || tool_named(tools, name->valuestring) == NULL) {
        problem_set(problem, "tool_choice", NULL,
                    "Tool choice '%.60s' not found in 'tools' parameter.",
                    cJSON_IsString(name) ? name->valuestring : "(none)");
    }
}

static void check_choice(const cJSON *tools, const cJSON *choice, struct problem *problem)
{
    if (choice == NULL || cJSON_IsNull(choice)) {
        return;
    }
    if (cJSON_GetArraySize(tools) == 0) {
        problem_set(problem, "tool_choice", NULL,
                    "'tool_choice' is only allowed when 'tools' are specified.");
        return;
    }
    if (cJSON_IsString(choice)) {
        openai_check_mode(choice, "tool_choice", problem);
        return;
    }
    const cJSON *one, *allowed = json_member(choice, "allowed_tools");
    if (!json_is(json_member(choice, "type"), "allowed_tools")) {
        check_choice_name(tools, choice, problem);
        return;
    }
    cJSON_ArrayForEach(one, json_member(allowed, "tools"))
    {
        check_choice_name(tools, one, problem);
    }
}

static void check_tools(const cJSON *request, struct problem *problem)
{
    const cJSON *tools = json_member(request, "tools"), *tool;
    size_t index = 0;
    cJSON_ArrayForEach(tool, tools)
    {
        const cJSON *name = json_member(json_member(tool, "function"), "name");
        check_tool(tool, index, problem);
        if (cJSON_IsString(name) && tool_named(tools, name->valuestring) != tool) {
            problem_set(problem, "tools", NULL, "Tool names must be unique: '%.60s'.",
                        name->valuestring);
        }
        index++;
    }
    if (tools != NULL && index == 0) {
        problem_set(problem, "tools", "empty_array", "Invalid 'tools': empty array.");
    }
    if (index == 0 && json_member(request, "parallel_tool_calls") != NULL) {
        problem_set(problem, "parallel_tool_calls", NULL,
                    "'parallel_tool_calls' is only allowed when 'tools' are specified.");
    }
    check_choice(tools, json_member(request, "tool_choice"), problem);
}

/* ---- messages ---- */

static void check_call(const cJSON *call, const char *where, struct problem *problem)
{
    static const char *const names[] = {"id", "type", "function", "custom", "index", NULL};
    char path[96];
    openai_check_members(call, where, names, problem);
    if (!cJSON_IsString(json_member(call, "id"))) {
        snprintf(path, sizeof path, "%s.id", where);
        openai_missing(path, problem);
    }
    if (json_is(json_member(call, "type"), "custom")) {
        return;
    }
    const cJSON *function = json_member(call, "function");
    const cJSON *arguments = json_member(function, "arguments");
    snprintf(path, sizeof path, "%s.function", where);
    if (!json_is(json_member(call, "type"), "function") ||
        !cJSON_IsString(json_member(function, "name")) || !cJSON_IsString(arguments)) {
        problem_set(problem, path, NULL,
                    "'%s' must have a type, a function name and arguments as a string.", path);
        return;
    }
    if (!json_text_is_object(arguments->valuestring)) {
        snprintf(path, sizeof path, "%s.function.arguments", where);
        problem_set(problem, path, NULL, "'%s' is not a JSON object.", path);
    }
}

/* The assistant's call with this id, or NULL. */
static const cJSON *find_call(const cJSON *assistant, const cJSON *id)
{
    const cJSON *call;
    cJSON_ArrayForEach(call, json_member(assistant, "tool_calls"))
    {
        if (cJSON_IsString(id) && json_is(json_member(call, "id"), id->valuestring)) {
            return call;
        }
    }
    return NULL;
}

/* Every call of the assistant's message is answered by one of the tool messages right behind it. */
static void check_answered(const cJSON *assistant, size_t index, struct problem *problem)
{
    const cJSON *call;
    cJSON_ArrayForEach(call, json_member(assistant, "tool_calls"))
    {
        const cJSON *id = json_member(call, "id");
        bool answered = false;
        for (const cJSON *m = assistant->next; json_is(json_member(m, "role"), "tool");
             m = m->next) {
            answered |=
                cJSON_IsString(id) && json_is(json_member(m, "tool_call_id"), id->valuestring);
        }
        if (!answered) {
            char where[64];
            snprintf(where, sizeof where, "messages[%zu]", index);
            problem_set(problem, where, NULL,
                        "An assistant message with 'tool_calls' must be followed by tool messages "
                        "responding to each 'tool_call_id'. No message responds to '%.60s'.",
                        cJSON_IsString(id) ? id->valuestring : "(none)");
        }
    }
}

static void check_assistant(const cJSON *message, size_t index, struct problem *problem)
{
    const cJSON *calls = json_member(message, "tool_calls"), *call;
    const cJSON *content = json_member(message, "content");
    char where[64];
    size_t count = 0;
    cJSON_ArrayForEach(call, calls)
    {
        snprintf(where, sizeof where, "messages[%zu].tool_calls[%zu]", index, count++);
        check_call(call, where, problem);
        if (find_call(message, json_member(call, "id")) != call) {
            problem_set(problem, where, NULL, "Duplicate call id in '%s'.", where);
        }
    }
    if (calls != NULL && count == 0) {
        snprintf(where, sizeof where, "messages[%zu].tool_calls", index);
        problem_set(problem, where, "empty_array", "Invalid '%s': empty array.", where);
    }
    if (count == 0 && !cJSON_IsString(content) && !cJSON_IsArray(content)) {
        snprintf(where, sizeof where, "messages[%zu].content", index);
        problem_set(problem, where, NULL,
                    "Invalid value for 'content': expected a string, got null.");
    }
    check_answered(message, index, problem);
}

/* A tool's message stands behind the assistant's that made the call, or behind others like it. */
static void check_tool_message(const cJSON *first, const cJSON *message, size_t index,
                               struct problem *problem)
{
    const cJSON *assistant = message;
    while (assistant != first && json_is(json_member(assistant, "role"), "tool")) {
        assistant = assistant->prev;
    }
    char where[64];
    snprintf(where, sizeof where, "messages[%zu]", index);
    if (!json_is(json_member(assistant, "role"), "assistant") ||
        find_call(assistant, json_member(message, "tool_call_id")) == NULL) {
        problem_set(problem, where, NULL,
                    "'%s': messages with role 'tool' must respond to a preceding message with "
                    "'tool_calls'.",
                    where);
    }
    const cJSON *content = json_member(message, "content");
    if (!cJSON_IsString(content) && !cJSON_IsArray(content)) {
        problem_set(problem, where, NULL, "'%s': 'content' must be a string or parts.", where);
    }
}

static void check_messages(const cJSON *messages, struct problem *problem)
{
    static const char *const roles[] = {"system", "developer", "user", "assistant",
                                        "tool",   "function",  NULL};
    static const char *const names[] = {"role",
                                        "content",
                                        "name",
                                        "refusal",
                                        "audio",
                                        "function_call",
                                        "tool_calls",
                                        "annotations",
                                        "reasoning",
                                        "reasoning_content",
                                        "reasoning_details",
                                        "tool_call_id",
                                        NULL};
    const cJSON *message;
    size_t index = 0;
    cJSON_ArrayForEach(message, messages)
    {
        char where[64];
        snprintf(where, sizeof where, "messages[%zu]", index);
        const cJSON *role = json_member(message, "role");
        if (!cJSON_IsString(role) || !name_is_among(role->valuestring, roles)) {
            problem_set(problem, where, "invalid_value", "'%s' has no role that is known.", where);
        }
        openai_check_members(message, where, names, problem);
        if (json_is(role, "assistant")) {
            check_assistant(message, index, problem);
        } else if (json_is(role, "tool")) {
            check_tool_message(messages->child, message, index, problem);
        }
        index++;
    }
    if (index == 0) {
        problem_set(problem, "messages", "empty_array", "Invalid 'messages': empty array.");
    }
}

void chat_check(const cJSON *request, struct problem *problem)
{
    check_top(request, problem);
    check_messages(json_member(request, "messages"), problem);
    check_tools(request, problem);
    openai_check_metadata(json_member(request, "metadata"), problem);
}
