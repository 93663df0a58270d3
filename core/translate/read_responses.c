/* A request of the Responses API as a conversation: its items in a row become messages. */
#include "translate/reading.h"

#include <stdio.h>
#include <string.h>

/* ---- parts of a message ---- */

static int image_part_read(struct reading *reading, const struct object *item,
                           struct message *message, struct sg_error *err)
{
    struct part *part = part_add(reading, message, PART_IMAGE, item->path);
    part->url = object_text(reading, item, "image_url");
    part->detail = object_text(reading, item, "detail");
    return part->url.len > 0
               ? SG_OK
               : part_refuse(reading, message, path_at(reading, item->path, "file_id"),
                             "names a file that only the vendor's own server has", err);
}

static int file_part_read(struct reading *reading, const struct object *item,
                          struct message *message, struct sg_error *err)
{
    struct part *part = part_add(reading, message, PART_DOCUMENT, item->path);
    part->name = object_text(reading, item, "filename");
    part->url = object_text(reading, item, "file_url");
    struct str data = object_text(reading, item, "file_data");
    if (data.len > 0) {
        part->url = data; /* a data URL */
    }
    return part->url.len > 0
               ? SG_OK
               : part_refuse(reading, message, path_at(reading, item->path, "file_id"),
                             "names a file that only the vendor's own server has", err);
}

static int audio_part_read(struct reading *reading, const struct object *item,
                           struct message *message, struct sg_error *err)
{
    const struct json_member *audio =
        json_find_type(item->members, item->count, "input_audio", JSON_OBJECT);
    const char *path = path_at(reading, item->path, "input_audio");
    struct object inner;
    if (audio == NULL) {
        return wrong_type(path, "an object", err);
    }
    int code = object_open(reading, path, audio->value, &inner, err);
    struct part *part = part_add(reading, message, PART_AUDIO, item->path);
    if (code == SG_OK) {
        part->data = object_text(reading, &inner, "data");
        part->media_type = object_text(reading, &inner, "format");
    }
    return code;
}

static const struct part_form parts[] = {
    {"input_text", read_text_part, {"type", "text"}},
    {"output_text", read_text_part, {"type", "text", "annotations", "logprobs"}},
    {"text", read_text_part, {"type", "text"}},
    {"summary_text", read_text_part, {"type", "text"}},
    {"reasoning_text", read_text_part, {"type", "text"}},
    {"refusal", read_refusal_part, {"type", "refusal"}},
    {"input_image", image_part_read, {"type", "image_url", "detail", "file_id"}},
    {"input_file", file_part_read, {"type", "filename", "file_data", "file_url", "file_id"}},
    {"input_audio", audio_part_read, {"type", "input_audio"}},
    {NULL, NULL, {NULL}}};

static int content_read(struct reading *reading, const char *path,
                        const struct json_member *content, struct message *message,
                        struct sg_error *err)
{
    return read_openai_content(reading, parts, path, content, PART_TEXT, message, err);
}

/* ---- items ---- */

/* The message that an item of the model's goes on with: reasoning, text and calls of one turn stand in one. */
static struct message *assistant_of(struct reading *reading, const char *path)
{
    struct conversation *to = reading->to;
    struct message *last = to->messages_count == 0 ? NULL : &to->messages[to->messages_count - 1];
    return last != NULL && last->role == ROLE_ASSISTANT
               ? last
               : message_add(reading, ROLE_ASSISTANT, path);
}

/* Those that wait go in at that place; where the next one stands then. */
static size_t messages_put_back(struct conversation *to, size_t at, const struct message *others,
                                size_t *waiting)
{
    if (*waiting == 0) {
        return at;
    }
    memcpy(&to->messages[at], others, *waiting * sizeof *others);
    at += *waiting;
    *waiting = 0;
    return at;
}

static void results_join(struct reading *reading, struct message *results,
                         const struct message *more)
{
    for (size_t i = 0; i < more->count; i++) {
        *part_add(reading, results, PART_RESULT, more->path) = more->parts[i];
    }
}

/* This API takes a result anywhere behind its call; servers of others want it right there. So of what stands between two
 * messages of the assistant the results come first, in one message. */
static void results_raise(struct reading *reading)
{
    struct conversation *to = reading->to;
    struct message *others = arena_get(reading->arena, (to->messages_count + 1) * sizeof *others);
    size_t at = 0, waiting = 0;
    bool has_assistant = false;
    for (size_t i = 0; i < to->messages_count; i++) { /* at + waiting <= i */
        struct message next = to->messages[i];
        bool is_assistant = next.role == ROLE_ASSISTANT;
        if (!is_assistant && !(has_assistant && message_is_results(&next))) {
            others[waiting++] = next;
        } else if (!is_assistant && message_is_results(&to->messages[at - 1])) {
            results_join(reading, &to->messages[at - 1], &next);
        } else {
            at = is_assistant ? messages_put_back(to, at, others, &waiting) : at;
            to->messages[at++] = next;
            has_assistant = has_assistant || is_assistant;
        }
    }
    to->messages_count = messages_put_back(to, at, others, &waiting);
}

static int message_item_read(struct reading *reading, const struct object *item,
                             struct sg_error *err)
{
    struct str role = object_text(reading, item, "role");
    const struct json_member *content = json_find(item->members, item->count, "content");
    const char *path = path_at(reading, item->path, "content");
    if (str_is(role, "assistant")) {
        return content_read(reading, path, content, assistant_of(reading, item->path), err);
    }
    bool is_system = str_is(role, "system") || str_is(role, "developer");
    if (!is_system && !str_is(role, "user")) {
        return wrong_type(path_at(reading, item->path, "role"),
                          "'user', 'assistant', 'system' or 'developer'", err);
    }
    struct message *message = message_add(reading, is_system ? ROLE_SYSTEM : ROLE_USER, item->path);
    return content_read(reading, path, content, message, err);
}

static int call_item_read(struct reading *reading, const struct object *item, struct sg_error *err)
{
    struct part *part = part_add(reading, assistant_of(reading, item->path), PART_CALL, item->path);
    part->is_custom = str_is(item->type, "custom_tool_call");
    part->id = object_text(reading, item, "call_id");
    part->name = object_text(reading, item, "name");
    part->arguments = object_text(reading, item, part->is_custom ? "input" : "arguments");
    return part->id.len > 0 && part->name.len > 0
               ? SG_OK
               : wrong_type(item->path, "a call with call_id and name", err);
}

static int output_item_read(struct reading *reading, const struct object *item,
                            struct sg_error *err)
{
    struct message inner = {.path = item->path};
    struct part *part =
        part_add(reading, message_for_results(reading, item->path), PART_RESULT, item->path);
    part->id = object_text(reading, item, "call_id");
    int code = content_read(reading, path_at(reading, item->path, "output"),
                            json_find(item->members, item->count, "output"), &inner, err);
    part->parts = inner.parts;
    part->count = inner.count;
    return code;
}

/* With an empty line between two. */
static struct str joined(struct reading *reading, const struct message *message)
{
    struct str *words = arena_get(reading->arena, (2 * message->count + 1) * sizeof *words);
    size_t count = 0;
    for (size_t i = 0; i < message->count; i++) {
        if (i > 0) {
            words[count++] = STR("\n\n");
        }
        words[count++] = message->parts[i].text;
    }
    return words_join(reading, words, count);
}

/* The reasoning itself where it is there, else its summary. */
static int reasoning_item_read(struct reading *reading, const struct object *item,
                               struct sg_error *err)
{
    struct message whole = {.path = item->path}, summary = {.path = item->path};
    int code = content_read(reading, path_at(reading, item->path, "content"),
                            json_find(item->members, item->count, "content"), &whole, err);
    if (code == SG_OK) {
        code = content_read(reading, path_at(reading, item->path, "summary"),
                            json_find(item->members, item->count, "summary"), &summary, err);
    }
    if (code != SG_OK) {
        return code;
    }
    struct part *part =
        part_add(reading, assistant_of(reading, item->path), PART_REASONING, item->path);
    part->text = joined(reading, whole.count > 0 ? &whole : &summary);
    part->seal = object_text(reading, item, "encrypted_content");
    return SG_OK;
}

/* A call that the vendor's own server answered, in a history of before: as a call and its result. */
static int foreign_item_read(struct reading *reading, const struct object *item,
                             struct sg_error *err)
{
    (void)err;
    bool is_code = str_is(item->type, "code_interpreter_call");
    const struct json_member *given =
        json_find(item->members, item->count, is_code ? "code" : "action");
    const struct json_member *came = json_find(item->members, item->count, "outputs");
    struct part *call = part_add(reading, assistant_of(reading, item->path), PART_CALL, item->path);
    call->id = object_text(reading, item, "id");
    call->name = is_code ? STR("code_interpreter") : STR("web_search");
    call->arguments = is_code         ? str_of(arena_printf(reading->arena, "{\"code\":%.*s}",
                                                    given == NULL ? 4 : (int)given->value.raw.len,
                                                    given == NULL ? "null" : given->value.raw.data))
                      : given == NULL ? STR("{}")
                                      : given->value.raw;
    struct part *result =
        part_add(reading, message_for_results(reading, item->path), PART_RESULT, item->path);
    result->id = call->id;
    result->parts = arena_get(reading->arena, sizeof *result->parts);
    result->parts[0] = (struct part){.kind = PART_TEXT, .path = item->path};
    result->parts[0].text = came == NULL || came->value.type == JSON_NULL
                                ? STR("[what came of it is not known any more]")
                                : came->value.raw;
    result->count = 1;
    return SG_OK;
}

static const struct {
    const char *type;
    int (*read)(struct reading *, const struct object *, struct sg_error *);
    const char *members[10];
} items[] = {
    {"message", message_item_read, {"type", "role", "content", "id", "status", "phase"}},
    {"function_call", call_item_read, {"type", "call_id", "name", "arguments", "id", "status"}},
    {"custom_tool_call", call_item_read, {"type", "call_id", "name", "input", "id", "status"}},
    {"function_call_output", output_item_read, {"type", "call_id", "output", "id", "status"}},
    {"custom_tool_call_output", output_item_read, {"type", "call_id", "output", "id", "status"}},
    {"reasoning",
     reasoning_item_read,
     {"type", "id", "summary", "content", "encrypted_content", "status"}},
    {"code_interpreter_call",
     foreign_item_read,
     {"type", "id", "code", "container_id", "outputs", "status"}},
    {"web_search_call", foreign_item_read, {"type", "id", "action", "status"}},
};

static int item_read(struct reading *reading, const char *path, struct json_value value,
                     struct sg_error *err)
{
    struct object item;
    int code = object_open(reading, path, value, &item, err);
    item.type = item.type.len == 0 ? STR("message") : item.type;
    for (size_t i = 0; code == SG_OK && i < sizeof items / sizeof *items; i++) {
        if (str_is(item.type, items[i].type)) {
            code = members_check(reading, path, item.members, item.count, items[i].members, err);
            return code == SG_OK ? items[i].read(reading, &item, err) : code;
        }
    }
    return code == SG_OK ? refuse_field(reading, path_at(reading, path, "type"),
                                        "is of a kind that this model's server does not have", err)
                         : code;
}

static int input_read(struct reading *reading, const struct json_member *member,
                      struct sg_error *err)
{
    int code = SG_OK;
    if (member->value.type == JSON_STRING) {
        struct message *message = message_add(reading, ROLE_USER, "input");
        return content_read(reading, "input", member, message, err);
    }
    if (member->value.type != JSON_ARRAY) {
        return wrong_type("input", "a string or an array of items", err);
    }
    struct json_walk walk = json_walk_of(member->value);
    struct json_value value;
    for (size_t i = 0; code == SG_OK && json_walk_element(&walk, &value); i++) {
        code = item_read(reading, path_item(reading, "input", i), value, err);
    }
    return code;
}

static int instructions_read(struct reading *reading, const struct json_member *member,
                             struct sg_error *err)
{
    struct message *message = message_add(reading, ROLE_SYSTEM, "instructions");
    return content_read(reading, "instructions", member, message, err);
}

/* ---- tools ---- */

static int tool_read(struct reading *reading, const char *path, struct json_value value,
                     struct function *function, struct sg_error *err)
{
    static const char *const known[] = {"type",   "name",   "description",   "parameters",
                                        "strict", "format", "defer_loading", NULL};
    struct object item;
    int code = object_open(reading, path, value, &item, err);
    if (code != SG_OK) {
        return code;
    }
    bool is_custom = str_is(item.type, "custom");
    if (!is_custom && !str_is(item.type, "function")) {
        return refuse_field(reading, path_at(reading, path, "type"),
                            "is a tool that only the vendor's own server has", err);
    }
    const struct json_member *schema = object_member(reading, &item, "parameters", JSON_OBJECT);
    const struct json_member *strict = json_find(item.members, item.count, "strict");
    const struct json_member *format = object_member(reading, &item, "format", JSON_OBJECT);
    *function = (struct function){.path = path,
                                  .name = object_text(reading, &item, "name"),
                                  .description = object_text(reading, &item, "description"),
                                  .is_custom = is_custom};
    function->schema = schema == NULL ? (struct str){0} : schema->value.raw;
    function->format = format == NULL ? (struct str){0} : format->value.raw;
    function->strict =
        strict == NULL || strict->value.type == JSON_NULL ? (struct str){0} : strict->value.raw;
    return members_check(reading, path, item.members, item.count, known, err);
}

static int tools_member_read(struct reading *reading, const struct json_member *member,
                             struct sg_error *err)
{
    return functions_read(reading, member, tool_read, err);
}

/* ---- options ---- */

static int text_option_read(struct reading *reading, const struct json_member *member,
                            struct sg_error *err)
{
    static const char *const known[] = {"format", "verbosity", NULL};
    struct object text;
    int code = object_open(reading, "text", member->value, &text, err);
    code =
        code == SG_OK ? members_check(reading, "text", text.members, text.count, known, err) : code;
    if (code != SG_OK) {
        return code;
    }
    const struct json_member *verbosity = object_member(reading, &text, "verbosity", JSON_STRING);
    const struct json_member *format = object_member(reading, &text, "format", JSON_OBJECT);
    if (verbosity != NULL && !str_is(verbosity->value.raw, "\"medium\"")) { /* which is no wish */
        option_set(reading, OPTION_VERBOSITY, "text.verbosity", verbosity->value);
    }
    return format == NULL ? SG_OK : format_read(reading, "text.format", format->value, false, err);
}

static int reasoning_option_read(struct reading *reading, const struct json_member *member,
                                 struct sg_error *err)
{
    static const char *const known[] = {"effort", "summary", "generate_summary", NULL};
    struct object reasoning;
    int code = object_open(reading, "reasoning", member->value, &reasoning, err);
    code = code == SG_OK
               ? members_check(reading, "reasoning", reasoning.members, reasoning.count, known, err)
               : code;
    const struct json_member *effort =
        code == SG_OK ? object_member(reading, &reasoning, "effort", JSON_STRING) : NULL;
    if (effort != NULL) {
        option_set(reading, OPTION_EFFORT, "reasoning.effort", effort->value);
    }
    return code;
}

static int include_read(struct reading *reading, const struct json_member *member,
                        struct sg_error *err)
{
    struct json_value value;
    if (member->value.type != JSON_ARRAY) {
        return wrong_type("include", "an array of strings", err);
    }
    struct json_walk walk = json_walk_of(member->value);
    while (json_walk_element(&walk, &value)) {
        if (str_is(value.raw, "\"message.output_text.logprobs\"")) {
            option_set(reading, OPTION_LOGPROBS, "include", value_of(reading, "true"));
        }
    }
    return SG_OK;
}

static int truncation_read(struct reading *reading, const struct json_member *member,
                           struct sg_error *err)
{
    return str_is(member->value.raw, "\"disabled\"")
               ? SG_OK
               : refuse_field(reading, "truncation",
                              "asks for something that this model's server does not do", err);
}

static int choice_member_read(struct reading *reading, const struct json_member *member,
                              struct sg_error *err)
{
    return read_openai_choice(reading, member, false, err);
}

const struct field fields_responses[] = {
    {"model", FIELD_READ, 0, model_read, "the name under which the upstream is asked"},
    {"instructions", FIELD_READ, 0, instructions_read, "a system message"},
    {"input", FIELD_READ, 0, input_read, "text, images, files, reasoning, calls and results"},
    {"tools", FIELD_READ, 0, tools_member_read, "functions with their schemas, custom tools"},
    {"tool_choice", FIELD_READ, 0, choice_member_read, "all forms"},
    {"stream", FIELD_READ, 0, stream_read, NULL},
    {"max_output_tokens", FIELD_OPTION, OPTION_MAX_TOKENS, NULL, NULL},
    {"temperature", FIELD_OPTION, OPTION_TEMPERATURE, NULL, NULL},
    {"top_p", FIELD_OPTION, OPTION_TOP_P, NULL, NULL},
    {"top_logprobs", FIELD_OPTION, OPTION_TOP_LOGPROBS, NULL, NULL},
    {"parallel_tool_calls", FIELD_OPTION, OPTION_PARALLEL, NULL, NULL},
    {"text", FIELD_READ, 0, text_option_read, "format and verbosity"},
    {"reasoning", FIELD_READ, 0, reasoning_option_read,
     "effort; reasoning that the model shows is shown as a summary, asked for or not"},
    {"include", FIELD_READ, 0, include_read, "logprobs; the rest is the gateway's to heed"},
    {"truncation", FIELD_DEFAULT, 0, truncation_read, "only disabled"},
    {"user", FIELD_OPTION, OPTION_USER, NULL, NULL},
    {"safety_identifier", FIELD_OPTION, OPTION_SAFETY_IDENTIFIER, NULL, NULL},
    {"prompt_cache_key", FIELD_OPTION, OPTION_CACHE_KEY, NULL, NULL},
    {"service_tier", FIELD_OPTION, OPTION_SERVICE_TIER, NULL, NULL},
    {"metadata", FIELD_MEANINGLESS, 0, NULL, "kept here, and shown in the answer"},
    {"store", FIELD_MEANINGLESS, 0, NULL, "the gateway keeps answers"},
    {"stream_options", FIELD_MEANINGLESS, 0, NULL, "of the stream to the client"},
    {"prompt_cache_retention", FIELD_MEANINGLESS, 0, NULL, "of the vendor's own cache"},
    {"previous_response_id", FIELD_MEANINGLESS, 0, NULL, "looked up here before"},
    {"background", FIELD_MEANINGLESS, 0, NULL, "true is refused before"},
    {"max_tool_calls", FIELD_MEANINGLESS, 0, NULL, "counted here"},
    {"client_metadata", FIELD_MEANINGLESS, 0, NULL, "Codex's notes about itself"},
    {NULL, FIELD_READ, 0, NULL, NULL}};

int read_responses(struct reading *reading, const struct json_text *body, struct sg_error *err)
{
    int code = fields_read(reading, body->members, body->count, fields_responses, err);
    results_raise(reading);
    return code;
}
