/* A request of Chat Completions as a conversation. */
#include "translate/reading.h"

#include <stdio.h>
#include <string.h>

static const char old_functions[] =
    "is the older form of 'tools', which the API of this model's server does not have";
static const char old_choice[] =
    "is the older form of 'tool_choice', which the API of this model's server does not have";

/* The object under that name in another one, with members that are known. */
static int inner_open(struct reading *reading, const struct object *o, const char *name,
                      const char *const *known, struct object *ret, struct sg_error *err)
{
    const struct json_member *member = json_find(o->members, o->count, name);
    const char *path = path_at(reading, o->path, name);
    int code = member == NULL ? wrong_type(path, "an object", err)
                              : object_open(reading, path, member->value, ret, err);
    return code == SG_OK ? members_check(reading, path, ret->members, ret->count, known, err)
                         : code;
}

/* ---- parts of a message ---- */

static int image_part_read(struct reading *reading, const struct object *o, struct message *message,
                           struct sg_error *err)
{
    static const char *const known[] = {"url", "detail", NULL};
    struct object inner;
    int code = inner_open(reading, o, "image_url", known, &inner, err);
    if (code == SG_OK) {
        struct part *part = part_add(reading, message, PART_IMAGE, o->path);
        part->url = object_text(reading, &inner, "url");
        part->detail = object_text(reading, &inner, "detail");
    }
    return code;
}

static int file_part_read(struct reading *reading, const struct object *o, struct message *message,
                          struct sg_error *err)
{
    static const char *const known[] = {"filename", "file_data", "file_id", NULL};
    struct object inner;
    int code = inner_open(reading, o, "file", known, &inner, err);
    if (code != SG_OK) {
        return code;
    }
    struct part *part = part_add(reading, message, PART_DOCUMENT, o->path);
    part->name = object_text(reading, &inner, "filename");
    part->url = object_text(reading, &inner, "file_data");
    return part->url.len > 0
               ? SG_OK
               : part_refuse(reading, message, path_at(reading, inner.path, "file_id"),
                             "names a file that only the vendor's own server has", err);
}

static int audio_part_read(struct reading *reading, const struct object *o, struct message *message,
                           struct sg_error *err)
{
    static const char *const known[] = {"data", "format", NULL};
    struct object inner;
    int code = inner_open(reading, o, "input_audio", known, &inner, err);
    if (code == SG_OK) {
        struct part *part = part_add(reading, message, PART_AUDIO, o->path);
        part->data = object_text(reading, &inner, "data");
        part->media_type = object_text(reading, &inner, "format");
    }
    return code;
}

static const struct part_form parts[] = {
    {"text", read_text_part, {"type", "text", "cache_control"}},
    {"refusal", read_refusal_part, {"type", "refusal"}},
    {"image_url", image_part_read, {"type", "image_url", "cache_control"}},
    {"file", file_part_read, {"type", "file", "cache_control"}},
    {"input_audio", audio_part_read, {"type", "input_audio"}},
    {NULL, NULL, {NULL}}};

/* A string, an array of parts, or nothing. An assistant that says nothing writes "" as well as null. */
static int content_read(struct reading *reading, const char *path,
                        const struct json_member *content, enum part_kind kind,
                        struct message *message, struct sg_error *err)
{
    bool is_mute =
        content != NULL && message->role == ROLE_ASSISTANT && str_is(content->value.raw, "\"\"");
    return is_mute ? SG_OK : read_openai_content(reading, parts, path, content, kind, message, err);
}

/* ---- calls ---- */

static int call_read(struct reading *reading, const char *path, struct json_value value,
                     struct message *message, struct sg_error *err)
{
    static const char *const known[] = {"name", "arguments", "input", NULL};
    struct object o, inner;
    int code = object_open(reading, path, value, &o, err);
    if (code != SG_OK) {
        return code;
    }
    bool is_custom = str_is(o.type, "custom");
    code = inner_open(reading, &o, is_custom ? "custom" : "function", known, &inner, err);
    if (code != SG_OK) {
        return code;
    }
    struct part *part = part_add(reading, message, PART_CALL, path);
    part->is_custom = is_custom;
    part->id = object_text(reading, &o, "id");
    part->name = object_text(reading, &inner, "name");
    part->arguments = object_text(reading, &inner, is_custom ? "input" : "arguments");
    return part->id.len > 0 && part->name.len > 0
               ? SG_OK
               : wrong_type(path, "a call with id and name", err);
}

static int calls_read(struct reading *reading, const struct object *o, struct message *message,
                      struct sg_error *err)
{
    const struct json_member *calls = json_find(o->members, o->count, "tool_calls");
    const char *path = path_at(reading, o->path, "tool_calls");
    int code = SG_OK;
    if (calls == NULL || calls->value.type == JSON_NULL) {
        return SG_OK;
    }
    if (calls->value.type != JSON_ARRAY) {
        return wrong_type(path, "an array of calls", err);
    }
    struct json_walk walk = json_walk_of(calls->value);
    struct json_value value;
    for (size_t i = 0; code == SG_OK && json_walk_element(&walk, &value); i++) {
        code = call_read(reading, path_item(reading, path, i), value, message, err);
    }
    return code;
}

/* ---- messages ---- */

static int assistant_read(struct reading *reading, const struct object *o, struct sg_error *err)
{
    static const char *const reasonings[] = {"reasoning_content", "reasoning"};
    struct message *message = message_add(reading, ROLE_ASSISTANT, o->path);
    struct str reasoning = {0};
    message->name = object_text(reading, o, "name");
    for (size_t i = 0; reasoning.len == 0 && i < 2; i++) {
        reasoning = object_text(reading, o, reasonings[i]);
    }
    if (reasoning.len > 0) {
        part_add(reading, message, PART_REASONING, o->path)->text = reasoning;
    }
    int code = content_read(reading, path_at(reading, o->path, "content"),
                            json_find(o->members, o->count, "content"), PART_TEXT, message, err);
    if (code == SG_OK) {
        code = content_read(reading, path_at(reading, o->path, "refusal"),
                            json_find(o->members, o->count, "refusal"), PART_REFUSAL, message, err);
    }
    return code == SG_OK ? calls_read(reading, o, message, err) : code;
}

static int result_read(struct reading *reading, const struct object *o, struct sg_error *err)
{
    struct message inner = {.role = ROLE_USER, .path = o->path};
    struct part *part =
        part_add(reading, message_for_results(reading, o->path), PART_RESULT, o->path);
    part->id = object_text(reading, o, "tool_call_id");
    int code = content_read(reading, path_at(reading, o->path, "content"),
                            json_find(o->members, o->count, "content"), PART_TEXT, &inner, err);
    part->parts = inner.parts;
    part->count = inner.count;
    return code;
}

static int message_read(struct reading *reading, const char *path, struct json_value value,
                        struct sg_error *err)
{
    static const char *const known[] = {"role",           "content",           "name",
                                        "tool_calls",     "tool_call_id",      "refusal",
                                        "reasoning",      "reasoning_content", "annotations",
                                        "executed_tools", "cache_control",     NULL};
    struct object o;
    int code = object_open(reading, path, value, &o, err);
    code = code == SG_OK ? members_check(reading, path, o.members, o.count, known, err) : code;
    if (code != SG_OK) {
        return code;
    }
    struct str role = object_text(reading, &o, "role");
    if (str_is(role, "assistant")) {
        return assistant_read(reading, &o, err);
    }
    if (str_is(role, "tool")) {
        return result_read(reading, &o, err);
    }
    if (str_is(role, "function")) {
        return refuse_field(reading, path_at(reading, path, "role"),
                            "is the older form of 'tool', which the API of this model's server "
                            "does not have",
                            err);
    }
    bool is_system = str_is(role, "system") || str_is(role, "developer");
    if (!is_system && !str_is(role, "user")) {
        return wrong_type(path_at(reading, path, "role"),
                          "'user', 'assistant', 'tool', 'system' or 'developer'", err);
    }
    struct message *message = message_add(reading, is_system ? ROLE_SYSTEM : ROLE_USER, path);
    message->name = object_text(reading, &o, "name");
    return content_read(reading, path_at(reading, path, "content"),
                        json_find(o.members, o.count, "content"), PART_TEXT, message, err);
}

static int messages_read(struct reading *reading, const struct json_member *member,
                         struct sg_error *err)
{
    struct json_value value;
    int code = SG_OK;
    if (member->value.type != JSON_ARRAY) {
        return wrong_type("messages", "an array of messages", err);
    }
    struct json_walk walk = json_walk_of(member->value);
    for (size_t i = 0; code == SG_OK && json_walk_element(&walk, &value); i++) {
        code = message_read(reading, path_item(reading, "messages", i), value, err);
    }
    return code;
}

/* ---- tools ---- */

static int tool_read(struct reading *reading, const char *path, struct json_value value,
                     struct function *function, struct sg_error *err)
{
    static const char *const known[] = {"name",   "description", "parameters",
                                        "strict", "format",      NULL};
    struct object o, inner;
    int code = object_open(reading, path, value, &o, err);
    if (code != SG_OK) {
        return code;
    }
    bool is_custom = str_is(o.type, "custom");
    if (!is_custom && !str_is(o.type, "function")) {
        return refuse_field(reading, path_at(reading, path, "type"),
                            "is a tool that only the vendor's own server has", err);
    }
    code = inner_open(reading, &o, is_custom ? "custom" : "function", known, &inner, err);
    if (code != SG_OK) {
        return code;
    }
    const struct json_member *schema = object_member(reading, &inner, "parameters", JSON_OBJECT);
    const struct json_member *strict = json_find(inner.members, inner.count, "strict");
    const struct json_member *format = object_member(reading, &inner, "format", JSON_OBJECT);
    *function = (struct function){.path = path,
                                  .name = object_text(reading, &inner, "name"),
                                  .description = object_text(reading, &inner, "description"),
                                  .is_custom = is_custom};
    function->schema = schema == NULL ? (struct str){0} : schema->value.raw;
    function->format = format == NULL ? (struct str){0} : format->value.raw;
    function->strict =
        strict == NULL || strict->value.type == JSON_NULL ? (struct str){0} : strict->value.raw;
    return SG_OK;
}

static int tools_member_read(struct reading *reading, const struct json_member *member,
                             struct sg_error *err)
{
    return functions_read(reading, member, tool_read, err);
}

static int choice_member_read(struct reading *reading, const struct json_member *member,
                              struct sg_error *err)
{
    return read_openai_choice(reading, member, true, err);
}

/* ---- options ---- */

static int stop_read(struct reading *reading, const struct json_member *member,
                     struct sg_error *err)
{
    (void)err;
    struct json_value value = member->value;
    if (value.type == JSON_STRING) {
        struct str raw = value.raw;
        const char *list = arena_printf(reading->arena, "[%.*s]", (int)raw.len, raw.data);
        value = (struct json_value){JSON_ARRAY, str_of(list)};
    }
    option_set(reading, OPTION_STOP, "stop", value);
    return SG_OK;
}

/* The newer name, where both are there. */
static int limit_read(struct reading *reading, const struct json_member *member,
                      struct sg_error *err)
{
    (void)err;
    if (!reading->to->options[OPTION_MAX_TOKENS].is_said) {
        const char *path =
            str_is(member->key, "max_tokens") ? "max_tokens" : "max_completion_tokens";
        option_set(reading, OPTION_MAX_TOKENS, path, member->value);
    }
    return SG_OK;
}

static int format_member_read(struct reading *reading, const struct json_member *member,
                              struct sg_error *err)
{
    return format_read(reading, "response_format", member->value, true, err);
}

static int verbosity_read(struct reading *reading, const struct json_member *member,
                          struct sg_error *err)
{
    (void)err;
    if (!str_is(member->value.raw, "\"medium\"")) { /* which is no wish */
        option_set(reading, OPTION_VERBOSITY, "verbosity", member->value);
    }
    return SG_OK;
}

/* Values that ask for nothing are no wish: 0, false, 1 choice, text alone. */
static int only_default_read(struct reading *reading, const struct json_member *member,
                             struct sg_error *err)
{
    static const char *const nothing[] = {"0", "0.0", "false", "{}", "[]", "[\"text\"]", NULL};
    struct str raw = member->value.raw;
    for (const char *const *one = nothing; *one != NULL; one++) {
        if (str_is(raw, *one)) {
            return SG_OK;
        }
    }
    if (str_is(member->key, "n") && str_is(raw, "1")) {
        return SG_OK;
    }
    const char *path = arena_printf(reading->arena, "%.*s", (int)member->key.len, member->key.data);
    return refuse_field(reading, path, "cannot be carried to the API of this model's server", err);
}

/* A client that asks in the older form awaits its answer in it. */
static int old_form_read(struct reading *reading, const struct json_member *member,
                         struct sg_error *err)
{
    bool is_list = str_is(member->key, "functions");
    if (is_list ? str_is(member->value.raw, "[]") : str_is(member->value.raw, "\"none\"")) {
        return SG_OK;
    }
    return refuse_field(reading, is_list ? "functions" : "function_call",
                        is_list ? old_functions : old_choice, err);
}

static int logprobs_read(struct reading *reading, const struct json_member *member,
                         struct sg_error *err)
{
    (void)err;
    if (member->value.type != JSON_FALSE) {
        option_set(reading, OPTION_LOGPROBS, "logprobs", member->value);
    }
    return SG_OK;
}

const struct field fields_chat[] = {
    {"model", FIELD_READ, 0, model_read, "the name under which the upstream is asked"},
    {"messages", FIELD_READ, 0, messages_read, "text, images, files, audio, calls and results"},
    {"tools", FIELD_READ, 0, tools_member_read, "functions with their schemas, custom tools"},
    {"tool_choice", FIELD_READ, 0, choice_member_read, "all forms"},
    {"stream", FIELD_READ, 0, stream_read, NULL},
    {"max_completion_tokens", FIELD_READ, 0, limit_read, NULL},
    {"max_tokens", FIELD_READ, 0, limit_read, "the older name"},
    {"stop", FIELD_READ, 0, stop_read, NULL},
    {"temperature", FIELD_OPTION, OPTION_TEMPERATURE, NULL, NULL},
    {"top_p", FIELD_OPTION, OPTION_TOP_P, NULL, NULL},
    {"seed", FIELD_OPTION, OPTION_SEED, NULL, NULL},
    {"presence_penalty", FIELD_OPTION, OPTION_PRESENCE_PENALTY, NULL, NULL},
    {"frequency_penalty", FIELD_OPTION, OPTION_FREQUENCY_PENALTY, NULL, NULL},
    {"logit_bias", FIELD_OPTION, OPTION_LOGIT_BIAS, NULL, NULL},
    {"logprobs", FIELD_WISH, OPTION_LOGPROBS, logprobs_read, NULL},
    {"top_logprobs", FIELD_OPTION, OPTION_TOP_LOGPROBS, NULL, NULL},
    {"parallel_tool_calls", FIELD_OPTION, OPTION_PARALLEL, NULL, NULL},
    {"response_format", FIELD_READ, 0, format_member_read,
     "JSON of a schema; any JSON only where the server has it"},
    {"reasoning_effort", FIELD_OPTION, OPTION_EFFORT, NULL, NULL},
    {"verbosity", FIELD_WISH, OPTION_VERBOSITY, verbosity_read, NULL},
    {"user", FIELD_OPTION, OPTION_USER, NULL, NULL},
    {"safety_identifier", FIELD_OPTION, OPTION_SAFETY_IDENTIFIER, NULL, NULL},
    {"prompt_cache_key", FIELD_OPTION, OPTION_CACHE_KEY, NULL, NULL},
    {"service_tier", FIELD_OPTION, OPTION_SERVICE_TIER, NULL, NULL},
    {"n", FIELD_DEFAULT, 0, only_default_read, "only 1"},
    {"modalities", FIELD_DEFAULT, 0, only_default_read, "only text"},
    {"audio", FIELD_DEFAULT, 0, only_default_read, "of answers in speech"},
    {"prediction", FIELD_DEFAULT, 0, only_default_read, NULL},
    {"functions", FIELD_DEFAULT, 0, old_form_read, "the older form of tools"},
    {"function_call", FIELD_DEFAULT, 0, old_form_read, "the older form of tool_choice"},
    {"stream_options", FIELD_MEANINGLESS, 0, NULL, "of the stream to the client"},
    {"metadata", FIELD_MEANINGLESS, 0, NULL, "of the vendor's own storage"},
    {"store", FIELD_MEANINGLESS, 0, NULL, "of the vendor's own storage"},
    {"prompt_cache_retention", FIELD_MEANINGLESS, 0, NULL, "of the vendor's own cache"},
    {NULL, FIELD_READ, 0, NULL, NULL}};

int read_chat(struct reading *reading, const struct json_text *body, struct sg_error *err)
{
    return fields_read(reading, body->members, body->count, fields_chat, err);
}
