/* A strict Messages server: each refusal begins with the path of the field, as this API writes it (messages.0.content.1).
 */
#include "messages.h"

#include <stdio.h>

static const char *text_of(const cJSON *string)
{
    return cJSON_IsString(string) ? string->valuestring : "(none)";
}

static void refuse(const char *path, const char *what, struct problem *problem)
{
    problem_set(problem, path, NULL, "%s: %s", path, what);
}

static void check_members(const cJSON *object, const char *where, const char *const *names,
                          struct problem *problem)
{
    char path[128];
    const char *dot = where[0] == '\0' ? "" : ".";
    if (!cJSON_IsObject(object)) {
        refuse(where, "Input should be an object", problem);
        return;
    }
    const cJSON *unknown = json_unknown(object, names), *repeated = json_repeated(object);
    if (unknown != NULL) {
        snprintf(path, sizeof path, "%s%s%.60s", where, dot, unknown->string);
        refuse(path, "Extra inputs are not permitted", problem);
    }
    if (repeated != NULL) {
        snprintf(path, sizeof path, "%s%s%.60s", where, dot, repeated->string);
        refuse(path, "Inputs may not be repeated", problem);
    }
}

static void require(const cJSON *object, const char *where, const char *const *strings,
                    struct problem *problem)
{
    for (size_t i = 0; strings[i] != NULL; i++) {
        if (!cJSON_IsString(json_member(object, strings[i]))) {
            char path[128];
            snprintf(path, sizeof path, "%s.%s", where, strings[i]);
            refuse(path, "Field required", problem);
        }
    }
}

static void check_top(const cJSON *request, struct problem *problem)
{
    static const char *const names[] = {"model",
                                        "max_tokens",
                                        "messages",
                                        "system",
                                        "tools",
                                        "tool_choice",
                                        "stream",
                                        "metadata",
                                        "temperature",
                                        "top_p",
                                        "stop_sequences",
                                        "service_tier",
                                        "thinking",
                                        "top_k",
                                        "output_config",
                                        "cache_control",
                                        "context_management",
                                        "inference_geo",
                                        "speed",
                                        NULL};
    static const char *const metadata_names[] = {"user_id", NULL};
    const cJSON *metadata = json_member(request, "metadata");
    const cJSON *limit = json_member(request, "max_tokens");
    check_members(request, "", names, problem);
    if (metadata != NULL) {
        check_members(metadata, "metadata", metadata_names, problem);
    }
    if (cJSON_IsNumber(limit) && limit->valuedouble < 1) {
        refuse("max_tokens", "Input should be greater than or equal to 1", problem);
    }
}

/* ---- tools ---- */

static void check_tool(const cJSON *tool, size_t index, struct problem *problem)
{
    static const char *const names[] = {"type",
                                        "name",
                                        "description",
                                        "input_schema",
                                        "cache_control",
                                        "strict",
                                        "input_examples",
                                        "eager_input_streaming",
                                        NULL};
    static const char *const required[] = {"name", NULL};
    char where[64], path[96];
    snprintf(where, sizeof where, "tools.%zu", index);
    const cJSON *type = json_member(tool, "type"), *schema = json_member(tool, "input_schema");
    if (type != NULL && !cJSON_IsNull(type) && !json_is(type, "custom")) {
        problem_set(problem, where, NULL,
                    "%s: Input tag '%.60s' found using 'type' does not match any of the expected "
                    "tags: 'custom'",
                    where, text_of(type));
    }
    check_members(tool, where, names, problem);
    require(tool, where, required, problem);
    snprintf(path, sizeof path, "%s.input_schema", where);
    if (!json_is(json_member(schema, "type"), "object")) {
        refuse(path, "Input should be a schema of type 'object'", problem);
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

static void check_choice(const cJSON *tools, const cJSON *choice, struct problem *problem)
{
    static const char *const types[] = {"auto", "any", "none", "tool", NULL};
    static const char *const names[] = {"type", "name", "disable_parallel_tool_use", NULL};
    const cJSON *type = json_member(choice, "type"), *name = json_member(choice, "name");
    if (choice == NULL) {
        return;
    }
    check_members(choice, "tool_choice", names, problem);
    if (cJSON_GetArraySize(tools) == 0) {
        refuse("tool_choice", "may only be specified while providing tools", problem);
    }
    if (!cJSON_IsString(type) || !name_is_among(type->valuestring, types)) {
        refuse("tool_choice.type", "Input should be 'auto', 'any', 'none' or 'tool'", problem);
    }
    if (json_is(type, "tool") && tool_named(tools, name) == NULL) {
        problem_set(problem, "tool_choice", NULL,
                    "tool_choice: Tool '%.60s' not found in provided tools", text_of(name));
    }
}

static void check_tools(const cJSON *request, struct problem *problem)
{
    const cJSON *tools = json_member(request, "tools"), *tool;
    size_t index = 0;
    if (tools != NULL && !cJSON_IsArray(tools)) {
        refuse("tools", "Input should be a valid list", problem);
    }
    cJSON_ArrayForEach(tool, tools)
    {
        check_tool(tool, index++, problem);
        if (tool_named(tools, json_member(tool, "name")) != tool) {
            refuse("tools", "Tool names must be unique.", problem);
        }
    }
    check_choice(tools, json_member(request, "tool_choice"), problem);
}

/* ---- blocks ---- */

struct block_type {
    const char *name, *role; /* role NULL: any */
    const char *const *members;
    const char *const *required; /* strings */
};

static const char *const text_members[] = {"type", "text", "cache_control", "citations", NULL};
static const char *const text_required[] = {"text", NULL};
static const char *const media_members[] = {"type",      "source",        "title", "context",
                                            "citations", "cache_control", NULL};
static const char *const media_required[] = {NULL};
static const char *const search_members[] = {"type",      "source",        "title", "content",
                                             "citations", "cache_control", NULL};
static const char *const use_members[] = {"type",          "id", "name", "input", "caller",
                                          "cache_control", NULL};
static const char *const use_required[] = {"id", "name", NULL};
static const char *const result_members[] = {"type",     "tool_use_id",   "content",
                                             "is_error", "cache_control", NULL};
static const char *const result_required[] = {"tool_use_id", NULL};
static const char *const thinking_members[] = {"type", "thinking", "signature", NULL};
static const char *const thinking_required[] = {"thinking", "signature", NULL};
static const char *const redacted_members[] = {"type", "data", NULL};
static const char *const redacted_required[] = {"data", NULL};

static const struct block_type block_types[] = {
    {"text", NULL, text_members, text_required},
    {"image", "user", media_members, media_required},
    {"document", "user", media_members, media_required},
    {"search_result", "user", search_members, media_required},
    {"tool_use", "assistant", use_members, use_required},
    {"tool_result", "user", result_members, result_required},
    {"thinking", "assistant", thinking_members, thinking_required},
    {"redacted_thinking", "assistant", redacted_members, redacted_required},
};

static const struct block_type *type_of(const cJSON *block, const cJSON *role)
{
    for (size_t i = 0; i < sizeof block_types / sizeof *block_types; i++) {
        const struct block_type *type = &block_types[i];
        if (json_is(json_member(block, "type"), type->name) &&
            (type->role == NULL || json_is(role, type->role))) {
            return type;
        }
    }
    return NULL;
}

static void check_text(const cJSON *block, const char *where, struct problem *problem)
{
    if (json_is(json_member(block, "text"), "")) {
        refuse(where, "text content blocks must be non-empty", problem);
    }
}

static void check_block(const cJSON *block, const cJSON *role, const char *where,
                        struct problem *problem)
{
    char path[96];
    const struct block_type *type = type_of(block, role);
    if (type == NULL) { /* server tools are nothing to a server without them */
        problem_set(problem, where, NULL,
                    "%s: Input tag '%.60s' found using 'type' does not match any of the expected "
                    "tags of the role '%.20s'",
                    where, text_of(json_member(block, "type")), text_of(role));
        return;
    }
    check_members(block, where, type->members, problem);
    require(block, where, type->required, problem);
    if (type->members == text_members) {
        check_text(block, where, problem);
    } else if (type->members == use_members && !cJSON_IsObject(json_member(block, "input"))) {
        snprintf(path, sizeof path, "%s.input", where);
        refuse(path, "Input should be a valid dictionary", problem);
    }
}

/* The block of the message that has this id under this name; up to `end`, or NULL. */
static const cJSON *find_block(const cJSON *message, const char *name, const cJSON *id,
                               const cJSON *end)
{
    const cJSON *content = json_member(message, "content");
    const cJSON *block = cJSON_IsArray(content) ? content->child : NULL;
    for (; block != end && block != NULL; block = block->next) {
        if (cJSON_IsString(id) && json_is(json_member(block, name), id->valuestring)) {
            return block;
        }
    }
    return NULL;
}

/* Each call of the message is answered in the next, and has an id of its own in all of them. */
static void check_call(const cJSON *messages, const cJSON *message, const cJSON *block,
                       size_t index, struct problem *problem)
{
    const cJSON *id = json_member(block, "id"), *earlier;
    if (find_block(message->next, "tool_use_id", id, NULL) == NULL) {
        char path[64];
        snprintf(path, sizeof path, "messages.%zu", index);
        problem_set(problem, path, NULL,
                    "%s: `tool_use` ids were found without `tool_result` blocks immediately after: "
                    "%.60s. Each `tool_use` block must have a corresponding `tool_result` block in "
                    "the next message.",
                    path, text_of(id));
    }
    for (earlier = messages->child; earlier != message->next; earlier = earlier->next) {
        const cJSON *found = find_block(earlier, "id", id, earlier == message ? block : NULL);
        if (found != NULL) {
            refuse("messages", "`tool_use` ids must be unique", problem);
        }
    }
}

/* Each result answers a call of the message before, once, and stands before anything else. */
static void check_result(const cJSON *messages, const cJSON *message, const cJSON *block,
                         const char *where, struct problem *problem)
{
    const cJSON *id = json_member(block, "tool_use_id");
    const cJSON *before = message == messages->child ? NULL : message->prev;
    if (find_block(before, "id", id, NULL) == NULL) {
        problem_set(
            problem, where, NULL,
            "%s: unexpected `tool_use_id` found in `tool_result` blocks: %.60s. Each "
            "`tool_result` block must have a corresponding `tool_use` block in the previous "
            "message.",
            where, text_of(id));
    }
    if (find_block(message, "tool_use_id", id, block) != NULL) {
        refuse(where, "each `tool_use` must have a single result", problem);
    }
    const cJSON *first = json_member(message, "content")->child;
    if (block != first && !json_is(json_member(block->prev, "type"), "tool_result")) {
        refuse(where, "`tool_result` blocks must come first in their message", problem);
    }
}

static void check_blocks(const cJSON *messages, const cJSON *message, size_t index,
                         struct problem *problem)
{
    const cJSON *role = json_member(message, "role"), *block;
    size_t block_index = 0;
    cJSON_ArrayForEach(block, json_member(message, "content"))
    {
        char where[64];
        snprintf(where, sizeof where, "messages.%zu.content.%zu", index, block_index++);
        check_block(block, role, where, problem);
        if (json_is(json_member(block, "type"), "tool_use")) {
            check_call(messages, message, block, index, problem);
        } else if (json_is(json_member(block, "type"), "tool_result")) {
            check_result(messages, message, block, where, problem);
        }
    }
}

/* ---- messages ---- */

static void check_message(const cJSON *messages, const cJSON *message, size_t index,
                          struct problem *problem)
{
    static const char *const names[] = {"role", "content", NULL};
    const cJSON *role = json_member(message, "role"), *content = json_member(message, "content");
    char where[64];
    snprintf(where, sizeof where, "messages.%zu", index);
    check_members(message, where, names, problem);
    if (!json_is(role, "user") && !json_is(role, "assistant")) {
        refuse(where, "role should be 'user' or 'assistant'", problem);
    }
    bool is_empty = cJSON_IsString(content) ? content->valuestring[0] == '\0'
                                            : cJSON_GetArraySize(content) == 0;
    if (is_empty && (message->next != NULL || json_is(role, "user"))) {
        refuse(where,
               "all messages must have non-empty content except for the optional final assistant "
               "message",
               problem);
    }
    if (index > 0 && cJSON_IsString(role) &&
        json_is(json_member(message->prev, "role"), role->valuestring)) {
        problem_set(problem, "messages", NULL,
                    "messages: roles must alternate between \"user\" and \"assistant\", but found "
                    "multiple \"%.20s\" roles in a row",
                    role->valuestring);
    }
    if (cJSON_IsArray(content)) {
        check_blocks(messages, message, index, problem);
    }
}

static void check_messages(const cJSON *messages, struct problem *problem)
{
    const cJSON *message;
    size_t index = 0;
    cJSON_ArrayForEach(message, messages)
    {
        check_message(messages, message, index++, problem);
    }
    if (index == 0) {
        refuse("messages", "at least one message is required", problem);
    } else if (!json_is(json_member(messages->child, "role"), "user")) {
        refuse("messages", "first message must use the \"user\" role", problem);
    }
}

static void check_system(const cJSON *system, struct problem *problem)
{
    const cJSON *block;
    size_t index = 0;
    cJSON_ArrayForEach(block, system)
    {
        char where[64];
        snprintf(where, sizeof where, "system.%zu", index++);
        check_members(block, where, text_members, problem);
        require(block, where, text_required, problem);
        check_text(block, where, problem);
    }
}

static void check_thinking(const cJSON *request, struct problem *problem)
{
    const cJSON *choice = json_member(json_member(request, "tool_choice"), "type");
    if (json_is(json_member(json_member(request, "thinking"), "type"), "enabled") &&
        (json_is(choice, "any") || json_is(choice, "tool"))) {
        refuse("thinking", "Thinking may not be enabled when tool_choice forces tool use.",
               problem);
    }
}

void messages_check(const cJSON *request, struct problem *problem)
{
    check_top(request, problem);
    check_system(json_member(request, "system"), problem);
    check_messages(json_member(request, "messages"), problem);
    check_tools(request, problem);
    check_thinking(request, problem);
}
