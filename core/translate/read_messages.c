/* A request of the Messages API as a conversation. */
#include "translate/reading.h"

#include <stdio.h>
#include <string.h>

/* What is found holds nothing that holds parts; a result holds what is found, and no call or result. */
enum { FOUND_DEPTH = 2, DEPTH_MAX = FOUND_DEPTH + 1 };

enum { THINKING_LOW_MAX = 4096, THINKING_MEDIUM_MAX = 16384 };

static struct str raw_of(const struct object *block, const char *name)
{
    const struct json_member *member = json_find(block->members, block->count, name);
    return member == NULL ? (struct str){0} : member->value.raw;
}

/* ---- sources of images and documents ---- */

static int source_read(struct reading *reading, const struct object *block, struct part *part,
                       bool *ret_is_known, struct sg_error *err)
{
    static const char *const known[] = {"type", "media_type", "data", "url", NULL};
    const struct json_member *source =
        json_find_type(block->members, block->count, "source", JSON_OBJECT);
    const char *path = path_at(reading, block->path, "source");
    if (source == NULL) {
        return wrong_type(path, "an object", err);
    }
    struct object inner = {.path = path};
    struct json_member *members;
    int code = json_members(source->value, path, reading->arena, &members, &inner.count, err);
    if (code != SG_OK) {
        return code;
    }
    inner.members = members;
    struct str type = object_text(reading, &inner, "type");
    part->media_type = object_text(reading, &inner, "media_type");
    part->data = object_text(reading, &inner, "data");
    part->url = object_text(reading, &inner, "url");
    bool is_text = str_is(type, "text") && part->kind == PART_DOCUMENT;
    if (is_text) {
        part->text = part->data;
        part->data = (struct str){0};
    }
    *ret_is_known = is_text || (str_is(type, "base64") && part->data.len > 0) ||
                    (str_is(type, "url") && part->url.len > 0);
    return *ret_is_known ? members_check(reading, path, members, inner.count, known, err) : SG_OK;
}

/* A text document, or what a search found, is text to a model. */
static void words_put(struct reading *reading, struct part *part)
{
    if (part->text.len == 0) {
        return;
    }
    const struct str words[] = {STR("["), part->name, STR("]\n"), part->text};
    part->kind = PART_TEXT;
    part->text = part->name.len == 0 ? part->text : words_join(reading, words, 4);
    part->name = (struct str){0};
}

static int media_read(struct reading *reading, const struct object *block, struct message *message,
                      struct sg_error *err)
{
    bool is_image = str_is(block->type, "image"), is_known = false;
    struct part *part =
        part_add(reading, message, is_image ? PART_IMAGE : PART_DOCUMENT, block->path);
    part->name = object_text(reading, block, "title");
    int code = source_read(reading, block, part, &is_known, err);
    if (code == SG_OK && !is_known) {
        return part_refuse(reading, message, path_at(reading, block->path, "source"),
                           "names something that only the vendor's own server has", err);
    }
    words_put(reading, part);
    return code;
}

/* Only a server of this API's makes citations. */
static int citations_check(struct reading *reading, const struct object *block,
                           struct sg_error *err)
{
    const struct json_member *wish =
        json_find_type(block->members, block->count, "citations", JSON_OBJECT);
    struct json_member *members;
    size_t count;
    const char *path = path_at(reading, block->path, "citations");
    if (wish == NULL || str_is(block->type, "text")) { /* those of a text are there already */
        return SG_OK;
    }
    int code = json_members(wish->value, path, reading->arena, &members, &count, err);
    return code == SG_OK && json_find_type(members, count, "enabled", JSON_TRUE) != NULL
               ? refuse_field(reading, path, "cannot be made by this model's server", err)
               : code;
}

/* ---- blocks ---- */

static int content_read(struct reading *, const char *path, struct json_value content,
                        struct message *, struct sg_error *err);

/* `toolu_` is this API's way of writing an id; others have no such. */
static struct str bare_id(struct str id)
{
    struct str mark = STR("toolu_");
    return str_starts(id, mark) && id.len > mark.len
               ? (struct str){id.data + mark.len, id.len - mark.len}
               : id;
}

static int call_read(struct reading *reading, const struct object *block, struct message *message,
                     struct sg_error *err)
{
    struct part *part = part_add(reading, message, PART_CALL, block->path);
    part->id = bare_id(object_text(reading, block, "id"));
    part->name = object_text(reading, block, "name");
    const struct json_member *input = object_member(reading, block, "input", JSON_OBJECT);
    part->arguments = input == NULL ? (struct str){0} : input->value.raw;
    if (part->id.len == 0 || part->name.len == 0) {
        return wrong_type(block->path, "a tool_use block with id and name", err);
    }
    return SG_OK;
}

/* What a tool gave: text, or blocks of its own. */
static int result_read(struct reading *reading, const struct object *block, struct message *message,
                       struct sg_error *err)
{
    const struct json_member *content = json_find(block->members, block->count, "content");
    struct part *part = part_add(reading, message, PART_RESULT, block->path);
    struct message inner = {.path = block->path, .depth = message->depth + 1};
    part->id = bare_id(object_text(reading, block, "tool_use_id"));
    part->is_error = str_is(raw_of(block, "is_error"), "true");
    if (content == NULL || content->value.type == JSON_NULL) {
        return SG_OK;
    }
    int code = content_read(reading, path_at(reading, block->path, "content"), content->value,
                            &inner, err);
    part->parts = inner.parts;
    part->count = inner.count;
    return code;
}

static int thinking_read(struct reading *reading, const struct object *block,
                         struct message *message, struct sg_error *err)
{
    (void)err;
    struct part *part = part_add(reading, message, PART_REASONING, block->path);
    part->text = object_text(reading, block, "thinking");
    part->seal = object_text(reading, block, "signature");
    return SG_OK;
}

/* A result of the vendor's own search, given back by a tool. */
static int found_read(struct reading *reading, const struct object *block, struct message *message,
                      struct sg_error *err)
{
    const struct json_member *content = object_member(reading, block, "content", JSON_ARRAY);
    struct str title = object_text(reading, block, "title"),
               source = object_text(reading, block, "source");
    struct part *part = part_add(reading, message, PART_TEXT, block->path);
    const struct str words[] = {STR("["), title, STR(", "), source, STR("]")};
    part->text = words_join(reading, words, 5);
    message->depth += FOUND_DEPTH;
    int code = content == NULL ? SG_OK
                               : content_read(reading, path_at(reading, block->path, "content"),
                                              content->value, message, err);
    message->depth -= FOUND_DEPTH;
    return code;
}

static int text_read(struct reading *reading, const struct object *block, struct message *message,
                     struct sg_error *err)
{
    (void)err;
    part_add(reading, message, PART_TEXT, block->path)->text = object_text(reading, block, "text");
    return SG_OK;
}

/* What only the model that made it can read. */
static int sealed_skip(struct reading *reading, const struct object *block, struct message *message,
                       struct sg_error *err)
{
    (void)reading, (void)block, (void)message, (void)err;
    return SG_OK;
}

/* A call that the vendor's own server answered, in a history of before: its result is told as the JSON that it is. */
static int foreign_result_read(struct reading *reading, const struct object *block,
                               struct message *message, struct sg_error *err)
{
    (void)err;
    struct part *part = part_add(reading, message, PART_RESULT, block->path);
    part->id = object_text(reading, block, "tool_use_id");
    part->parts = arena_get(reading->arena, sizeof *part->parts);
    part->parts[0] =
        (struct part){.kind = PART_TEXT, .path = block->path, .text = raw_of(block, "content")};
    part->count = 1;
    return SG_OK;
}

static const struct {
    const char *type;
    int (*read)(struct reading *, const struct object *, struct message *, struct sg_error *);
    const char *members[8]; /* beside `type` */
    unsigned depth_max;
} kinds[] = {
    {"text", text_read, {"text", "cache_control", "citations"}, DEPTH_MAX},
    {"image", media_read, {"source", "cache_control"}, DEPTH_MAX},
    {"document", media_read, {"source", "title", "cache_control", "citations"}, DEPTH_MAX},
    {"search_result", found_read, {"title", "source", "content", "cache_control", "citations"}, 1},
    {"tool_use", call_read, {"id", "name", "input", "cache_control", "caller"}, 0},
    {"tool_result", result_read, {"tool_use_id", "content", "is_error", "cache_control"}, 0},
    {"thinking", thinking_read, {"thinking", "signature"}, 0},
    {"redacted_thinking", sealed_skip, {"data"}, 0},
    {"server_tool_use", call_read, {"id", "name", "input", "cache_control", "caller"}, 0},
    {"web_search_tool_result",
     foreign_result_read,
     {"tool_use_id", "content", "cache_control", "caller"},
     0},
    {"web_fetch_tool_result",
     foreign_result_read,
     {"tool_use_id", "content", "cache_control", "caller"},
     0},
    {"code_execution_tool_result",
     foreign_result_read,
     {"tool_use_id", "content", "cache_control"},
     0},
    {"bash_code_execution_tool_result",
     foreign_result_read,
     {"tool_use_id", "content", "cache_control"},
     0},
    {"text_editor_code_execution_tool_result",
     foreign_result_read,
     {"tool_use_id", "content", "cache_control"},
     0},
};

static int block_members_check(struct reading *reading, const struct object *block, size_t kind,
                               struct sg_error *err)
{
    const char *known[10] = {"type"};
    for (size_t i = 0; kinds[kind].members[i] != NULL; i++) {
        known[i + 1] = kinds[kind].members[i];
    }
    return members_check(reading, block->path, block->members, block->count, known, err);
}

static int block_read(struct reading *reading, const char *path, struct json_value value,
                      struct message *message, struct sg_error *err)
{
    struct object block = {.path = path};
    struct json_member *members;
    if (value.type != JSON_OBJECT) {
        return wrong_type(path, "a content block", err);
    }
    int code = json_members(value, path, reading->arena, &members, &block.count, err);
    if (code != SG_OK) {
        return code;
    }
    block.members = members;
    block.type = object_text(reading, &block, "type");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (str_is(block.type, kinds[i].type) && message->depth > kinds[i].depth_max) {
            return refuse_field(reading, path, "is of a type that cannot stand within another",
                                err);
        }
        if (str_is(block.type, kinds[i].type)) {
            code = block_members_check(reading, &block, i, err);
            code = code == SG_OK ? citations_check(reading, &block, err) : code;
            return code == SG_OK ? kinds[i].read(reading, &block, message, err) : code;
        }
    }
    return refuse_field(reading, path, "is of a type that this model's server does not have", err);
}

static int content_read(struct reading *reading, const char *path, struct json_value content,
                        struct message *message, struct sg_error *err)
{
    if (content.type == JSON_STRING) {
        part_add(reading, message, PART_TEXT, path)->text = json_text_of(content, reading->arena);
        return SG_OK;
    }
    if (content.type != JSON_ARRAY) {
        return wrong_type(path, "a string or an array of content blocks", err);
    }
    struct json_walk walk = json_walk_of(content);
    struct json_value value;
    int code = SG_OK;
    for (size_t i = 0; code == SG_OK && json_walk_element(&walk, &value); i++) {
        code = block_read(reading, path_item(reading, path, i), value, message, err);
    }
    return code;
}

/* ---- messages ---- */

static int message_read(struct reading *reading, const char *path, struct json_value value,
                        struct sg_error *err)
{
    static const char *const known[] = {"role", "content", NULL};
    struct json_member *members;
    size_t count;
    if (value.type != JSON_OBJECT) {
        return wrong_type(path, "an object with role and content", err);
    }
    int code = json_members(value, path, reading->arena, &members, &count, err);
    code = code == SG_OK ? members_check(reading, path, members, count, known, err) : code;
    if (code != SG_OK) {
        return code;
    }
    const struct json_member *content = json_find(members, count, "content");
    struct str role = json_find_text(members, count, "role", reading->arena);
    struct message whole = {.role = str_is(role, "assistant") ? ROLE_ASSISTANT
                                    : str_is(role, "system")  ? ROLE_SYSTEM
                                                              : ROLE_USER,
                            .path = path};
    if (whole.role == ROLE_USER && !str_is(role, "user")) {
        return wrong_type(path_at(reading, path, "role"), "'user', 'assistant' or 'system'", err);
    }
    const char *inner = path_at(reading, path, "content");
    if (content == NULL) {
        return wrong_type(inner, "a string or an array of content blocks", err);
    }
    code = content_read(reading, inner, content->value, &whole, err);
    message_spread(reading, &whole);
    return code;
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

static int system_read(struct reading *reading, const struct json_member *member,
                       struct sg_error *err)
{
    return content_read(reading, "system", member->value,
                        message_add(reading, ROLE_SYSTEM, "system"), err);
}

/* ---- tools ---- */

static int tool_read(struct reading *reading, const char *path, struct json_value value,
                     struct function *function, struct sg_error *err)
{
    static const char *const known[] = {
        "type",          "name",   "description",     "input_schema",
        "cache_control", "strict", "allowed_callers", "eager_input_streaming",
        "defer_loading", NULL};
    struct object o;
    int code = object_open(reading, path, value, &o, err);
    if (code != SG_OK) {
        return code;
    }
    if (o.type.len > 0 && !str_is(o.type, "custom")) {
        return refuse_field(reading, path_at(reading, path, "type"),
                            "is a tool that only the vendor's own server has", err);
    }
    const struct json_member *callers = json_find(o.members, o.count, "allowed_callers");
    bool is_for_code =
        callers != NULL && callers->value.type == JSON_ARRAY &&
        memmem(callers->value.raw.data, callers->value.raw.len, "\"direct\"", 8) == NULL;
    if (is_for_code) {
        code = refuse_field(reading, path_at(reading, path, "allowed_callers"),
                            "lets the tool be called by code alone, which only the vendor's own "
                            "server does",
                            err);
    }
    if (code != SG_OK) {
        return code;
    }
    const struct json_member *schema = object_member(reading, &o, "input_schema", JSON_OBJECT);
    const struct json_member *strict = json_find(o.members, o.count, "strict");
    *function = (struct function){.path = path,
                                  .name = object_text(reading, &o, "name"),
                                  .description = object_text(reading, &o, "description")};
    function->schema = schema == NULL ? (struct str){0} : schema->value.raw;
    function->strict =
        strict == NULL || strict->value.type == JSON_NULL ? (struct str){0} : strict->value.raw;
    return members_check(reading, path, o.members, o.count, known, err);
}

static int tools_member_read(struct reading *reading, const struct json_member *member,
                             struct sg_error *err)
{
    return functions_read(reading, member, tool_read, err);
}

static int choice_read(struct reading *reading, const struct json_member *member,
                       struct sg_error *err)
{
    static const char *const known[] = {"type", "name", "disable_parallel_tool_use", NULL};
    struct json_member *members;
    size_t count;
    if (member->value.type != JSON_OBJECT) {
        return wrong_type("tool_choice", "an object", err);
    }
    int code = json_members(member->value, "tool_choice", reading->arena, &members, &count, err);
    code = code == SG_OK ? members_check(reading, "tool_choice", members, count, known, err) : code;
    if (code != SG_OK) {
        return code;
    }
    struct choice *choice = &reading->to->choice;
    struct str type = json_find_text(members, count, "type", reading->arena);
    choice->kind = str_is(type, "auto")   ? CHOICE_AUTO
                   : str_is(type, "any")  ? CHOICE_REQUIRED
                   : str_is(type, "none") ? CHOICE_NONE
                   : str_is(type, "tool") ? CHOICE_FUNCTION
                                          : CHOICE_UNSAID;
    choice->name = json_find_text(members, count, "name", reading->arena);
    const struct json_member *alone =
        json_find_type(members, count, "disable_parallel_tool_use", JSON_TRUE);
    if (alone != NULL) {
        option_set(reading, OPTION_PARALLEL, "tool_choice.disable_parallel_tool_use",
                   value_of(reading, "false"));
    }
    return choice->kind != CHOICE_UNSAID
               ? SG_OK
               : wrong_type("tool_choice.type", "'auto', 'any', 'tool' or 'none'", err);
}

/* ---- options ---- */

static int metadata_read(struct reading *reading, const struct json_member *member,
                         struct sg_error *err)
{
    struct object o;
    int code = object_open(reading, "metadata", member->value, &o, err);
    const struct json_member *user =
        code == SG_OK ? object_member(reading, &o, "user_id", JSON_STRING) : NULL;
    if (user != NULL) {
        option_set(reading, OPTION_USER, "metadata.user_id", user->value);
    }
    return code;
}

/* A budget in tokens where another API has only words. */
static const char *effort_of(int64_t tokens)
{
    return tokens <= THINKING_LOW_MAX ? "low" : tokens <= THINKING_MEDIUM_MAX ? "medium" : "high";
}

static int thinking_option_read(struct reading *reading, const struct json_member *member,
                                struct sg_error *err)
{
    static const char *const known[] = {"type", "budget_tokens", "display", NULL};
    struct object o;
    int64_t tokens;
    int code = object_open(reading, "thinking", member->value, &o, err);
    code = code == SG_OK ? members_check(reading, o.path, o.members, o.count, known, err) : code;
    const struct json_member *budget =
        code == SG_OK ? object_member(reading, &o, "budget_tokens", JSON_NUMBER) : NULL;
    if (budget != NULL && json_int_of(budget->value, &tokens)) {
        option_set(reading, OPTION_THINKING_TOKENS, "thinking.budget_tokens", budget->value);
        if (!reading->to->options[OPTION_EFFORT].is_said) { /* words of the client's own go first */
            option_set(reading, OPTION_EFFORT, "thinking.budget_tokens",
                       value_of(reading, "\"%s\"", effort_of(tokens)));
        }
    }
    return code;
}

static int output_read(struct reading *reading, const struct json_member *member,
                       struct sg_error *err)
{
    static const char *const known[] = {"effort", "format", NULL};
    struct object o;
    int code = object_open(reading, "output_config", member->value, &o, err);
    code = code == SG_OK ? members_check(reading, o.path, o.members, o.count, known, err) : code;
    if (code != SG_OK) {
        return code;
    }
    const struct json_member *effort = object_member(reading, &o, "effort", JSON_STRING);
    const struct json_member *format = object_member(reading, &o, "format", JSON_OBJECT);
    if (effort != NULL) {
        option_set(reading, OPTION_EFFORT, "output_config.effort", effort->value);
    }
    return format == NULL ? SG_OK
                          : format_read(reading, "output_config.format", format->value, false, err);
}

static int output_format_read(struct reading *reading, const struct json_member *member,
                              struct sg_error *err)
{
    return format_read(reading, "output_format", member->value, false, err);
}

const struct field fields_messages[] = {
    {"model", FIELD_READ, 0, model_read, "the name under which the upstream is asked"},
    {"system", FIELD_READ, 0, system_read, "a system message"},
    {"messages", FIELD_READ, 0, messages_read, "text, images, documents, calls and results"},
    {"tools", FIELD_READ, 0, tools_member_read, "functions with their schemas"},
    {"tool_choice", FIELD_READ, 0, choice_read, "all forms"},
    {"stream", FIELD_READ, 0, stream_read, NULL},
    {"max_tokens", FIELD_OPTION, OPTION_MAX_TOKENS, NULL, NULL},
    {"stop_sequences", FIELD_OPTION, OPTION_STOP, NULL, NULL},
    {"temperature", FIELD_OPTION, OPTION_TEMPERATURE, NULL, NULL},
    {"top_p", FIELD_OPTION, OPTION_TOP_P, NULL, NULL},
    {"top_k", FIELD_OPTION, OPTION_TOP_K, NULL, NULL},
    {"metadata", FIELD_READ, 0, metadata_read, "user_id; nothing else goes to a model's server"},
    {"output_config", FIELD_READ, 0, output_read, "effort and format"},
    {"thinking", FIELD_READ, 0, thinking_option_read,
     "a budget is told as an effort where there are only words: up to 4096 tokens low, up to 16384 "
     "medium, else high"},
    {"output_format", FIELD_READ, 0, output_format_read, "the older place of the format"},
    {"service_tier", FIELD_MEANINGLESS, 0, NULL, "of the vendor's own capacity"},
    {"cache_control", FIELD_MEANINGLESS, 0, NULL, "other servers cache by themselves"},
    {"container", FIELD_MEANINGLESS, 0, NULL, "the gateway's own"},
    {"context_management", FIELD_MEANINGLESS, 0, NULL,
     "old parts of a history are left out by the vendor's own server alone"},
    {NULL, FIELD_READ, 0, NULL, NULL}};

int read_messages(struct reading *reading, const struct json_text *body, struct sg_error *err)
{
    return fields_read(reading, body->members, body->count, fields_messages, err);
}
