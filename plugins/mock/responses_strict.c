/* A strict Responses server: each refusal names the field, so that a test sees at once what went up and should not
 * have. */
#include "openai.h"
#include "responses.h"

#include <stdio.h>

#define TOKENS_MIN 16

static void check_numbers(const cJSON *request, struct problem *problem)
{
    const cJSON *limit = json_member(request, "max_output_tokens");
    if (cJSON_IsNumber(limit) && limit->valuedouble < TOKENS_MIN) {
        problem_set(problem, "max_output_tokens", "integer_below_min_value",
                    "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= "
                    "%d, but got %d instead.",
                    TOKENS_MIN, limit->valueint);
    }
}

static void check_top(const cJSON *request, struct problem *problem)
{
    static const char *const names[] = {"model",
                                        "input",
                                        "instructions",
                                        "tools",
                                        "tool_choice",
                                        "parallel_tool_calls",
                                        "max_tool_calls",
                                        "include",
                                        "previous_response_id",
                                        "store",
                                        "stream",
                                        "stream_options",
                                        "text",
                                        "reasoning",
                                        "max_output_tokens",
                                        "temperature",
                                        "top_p",
                                        "top_logprobs",
                                        "truncation",
                                        "service_tier",
                                        "user",
                                        "safety_identifier",
                                        "prompt_cache_key",
                                        "prompt_cache_retention",
                                        "prompt",
                                        "context_management",
                                        "moderation",
                                        "background",
                                        "metadata",
                                        NULL};
    openai_check_members(request, "", names, problem);
    if (!cJSON_IsTrue(json_member(request, "stream")) &&
        cJSON_IsObject(json_member(request, "stream_options"))) {
        problem_set(problem, "stream_options", NULL,
                    "The 'stream_options' parameter is only allowed when 'stream' is enabled.");
    }
    if (cJSON_IsTrue(json_member(request, "background"))) {
        problem_set(problem, "background", NULL, "'background' is not supported here.");
    }
    check_numbers(request, problem);
}

static void check_include(const cJSON *include, struct problem *problem)
{
    static const char *const known[] = {"code_interpreter_call.outputs",
                                        "computer_call_output.output.image_url",
                                        "file_search_call.results",
                                        "message.input_image.image_url",
                                        "message.output_text.logprobs",
                                        "reasoning.encrypted_content",
                                        "web_search_call.action.sources",
                                        "web_search_call.results",
                                        NULL};
    const cJSON *one;
    size_t index = 0;
    cJSON_ArrayForEach(one, include)
    {
        char path[64];
        snprintf(path, sizeof path, "include[%zu]", index++);
        if (!cJSON_IsString(one) || !name_is_among(one->valuestring, known)) {
            problem_set(problem, path, "invalid_value", "Invalid value: '%.60s'.",
                        cJSON_IsString(one) ? one->valuestring : "(none)");
        }
    }
}

/* ---- tools ---- */

static void check_tool(const cJSON *tool, size_t index, struct problem *problem)
{
    static const char *const names[] = {"type",   "name",   "description", "parameters",
                                        "strict", "format", NULL};
    char where[64], path[96];
    snprintf(where, sizeof where, "tools[%zu]", index);
    const cJSON *type = json_member(tool, "type");
    if (!json_is(type, "function") && !json_is(type, "custom")) {
        snprintf(path, sizeof path, "%s.type", where);
        problem_set(problem, path, "invalid_value",
                    "Invalid value: '%.60s'. Supported values are: 'function' and 'custom'.",
                    cJSON_IsString(type) ? type->valuestring : "(none)");
    }
    openai_check_members(tool, where, names, problem);
    if (!cJSON_IsString(json_member(tool, "name"))) {
        snprintf(path, sizeof path, "%s.name", where);
        openai_missing(path, problem);
    }
}

static const cJSON *tool_named(const cJSON *tools, const cJSON *name)
{
    const cJSON *tool;
    cJSON_ArrayForEach(tool, tools)
    {
        if (cJSON_IsString(name) && json_is(json_member(tool, "name"), name->valuestring)) {
            return tool;
        }
    }
    return NULL;
}

static void check_choice_name(const cJSON *tools, const cJSON *one, struct problem *problem)
{
    static const char *const names[] = {"type", "name", NULL};
    const cJSON *type = json_member(one, "type"), *name = json_member(one, "name");
    openai_check_members(one, "tool_choice", names, problem);
    if (!json_is(type, "function") && !json_is(type, "custom")) {
        problem_set(problem, "tool_choice", "invalid_value",
                    "Invalid value for 'tool_choice': only functions and custom tools have one.");
    }
    if (tool_named(tools, name) == NULL) {
        problem_set(problem, "tool_choice", NULL,
                    "Tool choice '%.60s' not found in 'tools' parameter.",
                    cJSON_IsString(name) ? name->valuestring : "(none)");
    }
}

static void check_allowed(const cJSON *tools, const cJSON *choice, struct problem *problem)
{
    static const char *const names[] = {"type", "mode", "tools", NULL};
    const cJSON *one;
    openai_check_members(choice, "tool_choice", names, problem);
    openai_check_mode(json_member(choice, "mode"), "tool_choice.mode", problem);
    cJSON_ArrayForEach(one, json_member(choice, "tools"))
    {
        check_choice_name(tools, one, problem);
    }
}

static void check_choice(const cJSON *tools, const cJSON *choice, struct problem *problem)
{
    if (choice == NULL || cJSON_IsNull(choice)) {
        return;
    }
    if (json_is(choice, "required") && cJSON_GetArraySize(tools) == 0) {
        problem_set(problem, "tool_choice", NULL,
                    "Tool choice 'required' must be specified with 'tools' parameter.");
    } else if (cJSON_IsString(choice)) {
        openai_check_mode(choice, "tool_choice", problem);
    } else if (json_is(json_member(choice, "type"), "allowed_tools")) {
        check_allowed(tools, choice, problem);
    } else {
        check_choice_name(tools, choice, problem);
    }
}

static void check_tools(const cJSON *request, struct problem *problem)
{
    const cJSON *tools = json_member(request, "tools"), *tool;
    size_t index = 0;
    if (tools != NULL && !cJSON_IsNull(tools) && !cJSON_IsArray(tools)) {
        problem_set(problem, "tools", NULL, "Invalid type for 'tools': expected an array.");
    }
    cJSON_ArrayForEach(tool, tools)
    {
        const cJSON *name = json_member(tool, "name");
        check_tool(tool, index++, problem);
        if (cJSON_IsString(name) && tool_named(tools, name) != tool) {
            problem_set(problem, "tools", NULL, "Tool names must be unique: '%.60s'.",
                        name->valuestring);
        }
    }
    check_choice(tools, json_member(request, "tool_choice"), problem);
}

/* ---- input ---- */

struct item_type {
    const char *name;
    const char *const *members;
    const char *const *required; /* strings */
};

static const char *const message_members[] = {"type",   "role",  "content", "id",
                                              "status", "phase", NULL};
static const char *const call_members[] = {"type",  "call_id", "name",   "namespace", "arguments",
                                           "input", "id",      "status", NULL};
static const char *const output_members[] = {"type", "call_id", "output", "id", "status", NULL};
static const char *const reasoning_members[] = {
    "type", "id", "summary", "content", "encrypted_content", "status", NULL};
static const char *const message_required[] = {"role", NULL};
static const char *const call_required[] = {"call_id", "name", "arguments", NULL};
static const char *const custom_required[] = {"call_id", "name", "input", NULL};
static const char *const output_required[] = {"call_id", NULL};
static const char *const reasoning_required[] = {"id", NULL};

static const struct item_type item_types[] = {
    {"message", message_members, message_required},
    {"function_call", call_members, call_required},
    {"function_call_output", output_members, output_required},
    {"custom_tool_call", call_members, custom_required},
    {"custom_tool_call_output", output_members, output_required},
    {"reasoning", reasoning_members, reasoning_required},
};

static const struct item_type *type_of(const cJSON *item)
{
    const cJSON *type = json_member(item, "type");
    const char *name = type == NULL && json_member(item, "role") != NULL ? "message"
                       : cJSON_IsString(type)                            ? type->valuestring
                                                                         : "";
    for (size_t i = 0; i < sizeof item_types / sizeof *item_types; i++) {
        if (strcmp(item_types[i].name, name) == 0) {
            return &item_types[i];
        }
    }
    return NULL;
}

static bool is_call(const struct item_type *type)
{
    return type != NULL && type->members == call_members;
}

static bool is_output(const struct item_type *type)
{
    return type != NULL && type->members == output_members;
}

/* The call, or the output, of this id; `first`: where the search begins, `end`: where it ends, or NULL. */
static const cJSON *find_by_id(const cJSON *first, const cJSON *end, const cJSON *call_id,
                               bool (*is_wanted)(const struct item_type *))
{
    for (const cJSON *item = first; item != end; item = item->next) {
        if (is_wanted(type_of(item)) && cJSON_IsString(call_id) &&
            json_is(json_member(item, "call_id"), call_id->valuestring)) {
            return item;
        }
    }
    return NULL;
}

static void check_content(const cJSON *item, const char *where, struct problem *problem)
{
    static const char *const roles[] = {"system", "developer", "user", "assistant", NULL};
    static const char *const parts[] = {"input_text",  "input_image", "input_file", "input_audio",
                                        "output_text", "refusal",     NULL};
    const cJSON *role = json_member(item, "role"), *content = json_member(item, "content"), *part;
    char path[96];
    if (!cJSON_IsString(role) || !name_is_among(role->valuestring, roles)) {
        problem_set(problem, where, "invalid_value", "'%s' has no role that is known.", where);
    }
    snprintf(path, sizeof path, "%s.content", where);
    if (!cJSON_IsString(content) && !cJSON_IsArray(content)) {
        openai_missing(path, problem);
    }
    cJSON_ArrayForEach(part, content)
    {
        const cJSON *type = json_member(part, "type");
        if (!cJSON_IsString(type) || !name_is_among(type->valuestring, parts)) {
            problem_set(problem, path, "invalid_value", "'%s' has a part of an unknown type.",
                        path);
        }
    }
}

static void check_call(const cJSON *input, const cJSON *item, const char *where,
                       struct problem *problem)
{
    const cJSON *id = json_member(item, "call_id");
    const cJSON *arguments = json_member(item, "arguments");
    char path[96];
    if (cJSON_IsString(arguments) && !json_text_is_object(arguments->valuestring)) {
        snprintf(path, sizeof path, "%s.arguments", where);
        problem_set(problem, path, NULL, "'%s' is not a JSON object.", path);
    }
    if (find_by_id(input->child, item, id, is_call) != NULL) {
        problem_set(problem, where, NULL, "Duplicate call id in '%s'.", where);
    }
    if (find_by_id(item->next, NULL, id, is_output) == NULL) {
        problem_set(problem, "input", NULL, "No tool output found for function call %.60s.",
                    cJSON_IsString(id) ? id->valuestring : "(none)");
    }
}

static void check_output(const cJSON *input, const cJSON *item, const char *where,
                         struct problem *problem)
{
    const cJSON *id = json_member(item, "call_id"), *output = json_member(item, "output");
    char path[96];
    snprintf(path, sizeof path, "%s.output", where);
    if (!cJSON_IsString(output) && !cJSON_IsArray(output)) {
        openai_missing(path, problem);
    }
    if (find_by_id(input->child, item, id, is_call) == NULL) {
        problem_set(problem, "input", NULL,
                    "No tool call found for function call output with call_id %.60s.",
                    cJSON_IsString(id) ? id->valuestring : "(none)");
    }
    if (find_by_id(input->child, item, id, is_output) != NULL) {
        problem_set(problem, where, NULL, "'%s' is a second output of its call.", where);
    }
}

static void check_item(const cJSON *input, const cJSON *item, size_t index, struct problem *problem)
{
    char where[64], path[96];
    snprintf(where, sizeof where, "input[%zu]", index);
    const struct item_type *type = type_of(item);
    if (type == NULL) { /* hosted calls are nothing to a server without hosted tools */
        const cJSON *name = json_member(item, "type");
        snprintf(path, sizeof path, "%s.type", where);
        problem_set(problem, path, "invalid_value", "Invalid value: '%.60s'.",
                    cJSON_IsString(name) ? name->valuestring : "(none)");
        return;
    }
    openai_check_members(item, where, type->members, problem);
    for (size_t i = 0; type->required[i] != NULL; i++) {
        if (!cJSON_IsString(json_member(item, type->required[i]))) {
            snprintf(path, sizeof path, "%s.%s", where, type->required[i]);
            openai_missing(path, problem);
        }
    }
    if (type->members == message_members) {
        check_content(item, where, problem);
    } else if (is_call(type)) {
        check_call(input, item, where, problem);
    } else if (is_output(type)) {
        check_output(input, item, where, problem);
    } else if (!cJSON_IsArray(json_member(item, "summary"))) {
        snprintf(path, sizeof path, "%s.summary", where);
        openai_missing(path, problem);
    }
}

static void check_input(const cJSON *input, struct problem *problem)
{
    const cJSON *item;
    size_t index = 0;
    cJSON_ArrayForEach(item, input)
    {
        check_item(input, item, index++, problem);
    }
    if (cJSON_IsArray(input) && index == 0) {
        problem_set(problem, "input", "empty_array", "Invalid 'input': empty array.");
    }
}

void responses_check(const cJSON *request, struct problem *problem)
{
    check_top(request, problem);
    check_include(json_member(request, "include"), problem);
    check_input(json_member(request, "input"), problem);
    check_tools(request, problem);
    openai_check_metadata(json_member(request, "metadata"), problem);
}
