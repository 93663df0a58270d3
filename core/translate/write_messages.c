/* A conversation as a request of the Messages API. */
#include "translate/writing.h"

#include "surface/arguments.h"

#include <stdio.h>
#include <string.h>

enum { TOKENS_DEFAULT = 8192 }; /* the API wants a limit, where others have none */

struct writing {
    const struct reading *reading; /* what the operator lets go */
    const struct conversation *from;
    struct buf *out; /* the owner asks for overflow, here and below */
};

/* ---- parts ---- */

/* Nothing but white space: such a text is refused there, and models begin calls with line ends. */
static bool is_blank(struct str text)
{
    bool is_blank = true;
    for (size_t i = 0; is_blank && i < text.len; i++) {
        is_blank = memchr(" \t\r\n\v\f", text.data[i], 6) != NULL;
    }
    return is_blank;
}

static void text_put(struct buf *out, struct str text)
{
    json_comma_put(out);
    (void)buf_puts(out, "{\"type\":\"text\"");
    json_member_put(out, "text", text);
    (void)buf_putc(out, '}');
}

/* "data:image/png;base64,…" taken apart; false where it is none. */
static bool data_url_split(struct str url, struct str *ret_type, struct str *ret_data)
{
    static const struct str start = STR("data:"), mark = STR(";base64,");
    if (!str_starts(url, start)) {
        return false;
    }
    const char *at = memmem(url.data, url.len, mark.data, mark.len);
    if (at == NULL) {
        return false;
    }
    *ret_type = (struct str){url.data + start.len, (size_t)(at - url.data) - start.len};
    *ret_data = (struct str){at + mark.len, url.len - (size_t)(at - url.data) - mark.len};
    return true;
}

static void source_put(struct buf *out, const struct part *part)
{
    struct str type = part->media_type, data = part->data;
    bool is_data = part->url.len == 0 || data_url_split(part->url, &type, &data);
    (void)buf_puts(out, ",\"source\":{");
    if (is_data) {
        json_raw_put(out, "type", STR("\"base64\""));
        json_member_put(out, "media_type", type);
        json_member_put(out, "data", data);
    } else {
        json_raw_put(out, "type", STR("\"url\""));
        json_member_put(out, "url", part->url);
    }
    (void)buf_putc(out, '}');
}

static void media_put(struct buf *out, const struct part *part)
{
    json_comma_put(out);
    (void)buf_printf(out, "{\"type\":\"%s\"", part->kind == PART_IMAGE ? "image" : "document");
    source_put(out, part);
    if (part->kind == PART_DOCUMENT && part->name.len > 0) {
        json_member_put(out, "title", part->name);
    }
    (void)buf_putc(out, '}');
}

/* In this API's style, of the characters that it has for ids. */
static void id_put(struct buf *out, const char *name, struct str id)
{
    static const struct str mark = STR("call_");
    bool is_other = str_starts(id, mark) && id.len > mark.len;
    size_t start = is_other ? mark.len : 0;
    json_comma_put(out);
    (void)buf_printf(out, "\"%s\":\"%s", name, is_other ? "toolu_" : "");
    for (size_t i = start; i < id.len; i++) {
        char c = id.data[i];
        bool is_good = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                       c == '_' || c == '-';
        (void)buf_putc(out, is_good ? c : '_');
    }
    (void)buf_putc(out, '"');
}

/* The text for a custom tool is told as an object: there is no other input. */
static void call_put(struct buf *out, const struct part *part)
{
    json_comma_put(out);
    (void)buf_puts(out, "{\"type\":\"tool_use\"");
    id_put(out, "id", part->id);
    json_member_put(out, "name", part->name);
    (void)buf_puts(out, ",\"input\":");
    if (part->is_custom) {
        (void)buf_putc(out, '{');
        json_member_put(out, "input", part->arguments);
        (void)buf_puts(out, "}}");
    } else {
        struct str object;
        (void)arguments_settle(part->arguments, &object);
        (void)buf_append_str(out, object);
        (void)buf_putc(out, '}');
    }
}

static int part_put(const struct writing *, const struct part *, struct sg_error *err);

static int result_put(const struct writing *w, const struct part *part, struct sg_error *err)
{
    int code = SG_OK;
    json_comma_put(w->out);
    (void)buf_puts(w->out, "{\"type\":\"tool_result\"");
    id_put(w->out, "tool_use_id", part->id);
    (void)buf_puts(w->out, ",\"content\":[");
    for (size_t i = 0; code == SG_OK && i < part->count; i++) {
        code = part_put(w, &part->parts[i], err);
    }
    (void)buf_puts(w->out, part->is_error ? "],\"is_error\":true}" : "]}");
    return code;
}

/* Reasoning without its seal is refused there: it is another model's. */
static void reasoning_put(struct buf *out, const struct part *part)
{
    if (part->seal.len == 0) {
        return;
    }
    json_comma_put(out);
    (void)buf_puts(out, "{\"type\":\"thinking\"");
    json_member_put(out, "thinking", part->text);
    json_member_put(out, "signature", part->seal);
    (void)buf_putc(out, '}');
}

static int part_put(const struct writing *w, const struct part *part, struct sg_error *err)
{
    switch (part->kind) {
    case PART_TEXT:
    case PART_REFUSAL:
        if (!is_blank(part->text)) {
            text_put(w->out, part->text);
        }
        return SG_OK;
    case PART_IMAGE:
    case PART_DOCUMENT:
        media_put(w->out, part);
        return SG_OK;
    case PART_AUDIO:
        return refuse_field(w->reading, part->path,
                            "is sound, which the API of this model's server does not have", err);
    case PART_REASONING:
        reasoning_put(w->out, part);
        return SG_OK;
    case PART_CALL:
        call_put(w->out, part);
        return SG_OK;
    default:
        return result_put(w, part, err);
    }
}

/* ---- messages ---- */

static bool says_something(const struct message *message)
{
    for (size_t i = 0; i < message->count; i++) {
        const struct part *part = &message->parts[i];
        bool is_text = part->kind == PART_TEXT || part->kind == PART_REFUSAL;
        bool is_reasoning = part->kind == PART_REASONING;
        if ((is_text && !is_blank(part->text)) || (!is_text && !is_reasoning)) {
            return true;
        }
    }
    return false;
}

/* Messages of one speaker in a row become one: the API wants them in turns, results first. */
static int row_put(const struct writing *w, size_t *index, struct sg_error *err)
{
    const struct message *messages = w->from->messages;
    enum role role = messages[*index].role;
    int code = SG_OK;
    json_comma_put(w->out);
    (void)buf_printf(w->out, "{\"role\":\"%s\",\"content\":[",
                     role == ROLE_ASSISTANT ? "assistant" : "user");
    for (; *index < w->from->messages_count && code == SG_OK; ++*index) {
        const struct message *message = &messages[*index];
        if (message->role == ROLE_SYSTEM) {
            continue;
        }
        if (message->role != role) {
            break;
        }
        for (size_t i = 0; code == SG_OK && says_something(message) && i < message->count; i++) {
            code = part_put(w, &message->parts[i], err);
        }
    }
    (void)buf_puts(w->out, "]}");
    return code;
}

static int messages_put(const struct writing *w, struct sg_error *err)
{
    int code = SG_OK;
    (void)buf_puts(w->out, ",\"messages\":[");
    for (size_t i = 0; code == SG_OK && i < w->from->messages_count;) {
        const struct message *message = &w->from->messages[i];
        if (message->role == ROLE_SYSTEM || !says_something(message)) {
            i++;
        } else {
            code = row_put(w, &i, err);
        }
    }
    (void)buf_putc(w->out, ']');
    return code;
}

static int system_part_put(const struct writing *w, const struct part *part, bool *is_first,
                           struct sg_error *err)
{
    if (part->kind != PART_TEXT && part->kind != PART_REFUSAL) {
        return refuse_field(w->reading, part->path,
                            "is no text, which this message must be for this model's server", err);
    }
    if (!is_blank(part->text)) {
        (void)buf_puts(w->out, *is_first ? ",\"system\":[" : "");
        text_put(w->out, part->text);
        *is_first = false;
    }
    return SG_OK;
}

/* All that is the system's stands in one place there. */
static int system_put(const struct writing *w, struct sg_error *err)
{
    bool is_first = true;
    int code = SG_OK;
    for (size_t i = 0; i < w->from->messages_count; i++) {
        const struct message *message = &w->from->messages[i];
        for (size_t k = 0; code == SG_OK && message->role == ROLE_SYSTEM && k < message->count;
             k++) {
            code = system_part_put(w, &message->parts[k], &is_first, err);
        }
    }
    (void)buf_puts(w->out, is_first ? "" : "]");
    return code;
}

static int names_check(const struct writing *w, struct sg_error *err)
{
    int code = SG_OK;
    for (size_t i = 0; code == SG_OK && i < w->from->messages_count; i++) {
        const struct message *message = &w->from->messages[i];
        if (message->name.len > 0) {
            code =
                refuse_field(w->reading, arena_printf(w->reading->arena, "%s.name", message->path),
                             "has no place in the API of this model's server", err);
        }
    }
    return code;
}

/* ---- tools ---- */

static bool has_type(struct str schema)
{
    struct json_walk walk = json_walk_of((struct json_value){JSON_OBJECT, schema});
    struct json_value value;
    struct str key;
    while (json_walk_member(&walk, &key, &value)) {
        if (json_key_is(key, "type")) {
            return true;
        }
    }
    return false;
}

/* The API wants the type of a function's input said, which is an object in all of them. */
static void input_schema_put(struct buf *out, struct str schema)
{
    struct str inside =
        schema.len > 0 ? (struct str){schema.data + 1, schema.len - 1} : STR("\"properties\":{}}");
    if (schema.len > 0 && has_type(schema)) {
        json_raw_put(out, "input_schema", schema);
        return;
    }
    json_raw_put(out, "input_schema", STR("{\"type\":\"object\""));
    (void)buf_puts(out, inside.data[strspn(inside.data, " \t\r\n")] == '}' ? "" : ",");
    (void)buf_append_str(out, inside);
}

static int function_put(const struct writing *w, const struct function *function,
                        struct sg_error *err)
{
    if (function->is_custom) {
        return refuse_field(w->reading, function->path,
                            "is a custom tool, which the API of this model's server does not have",
                            err);
    }
    json_comma_put(w->out);
    (void)buf_putc(w->out, '{');
    json_member_put(w->out, "name", function->name);
    if (function->description.len > 0) {
        json_member_put(w->out, "description", function->description);
    }
    input_schema_put(w->out, function->schema);
    if (str_is(function->strict, "true")) {
        json_raw_put(w->out, "strict", function->strict);
    }
    (void)buf_putc(w->out, '}');
    return SG_OK;
}

static void choice_put(const struct writing *w)
{
    static const char *const words[] = {
        [CHOICE_UNSAID] = "auto",  [CHOICE_AUTO] = "auto",     [CHOICE_NONE] = "none",
        [CHOICE_REQUIRED] = "any", [CHOICE_FUNCTION] = "tool", [CHOICE_ALLOWED] = "auto"};
    const struct choice *choice = &w->from->choice;
    const struct option *parallel = &w->from->options[OPTION_PARALLEL];
    bool is_alone =
        parallel->is_said && parallel->value.type == JSON_FALSE && choice->kind != CHOICE_NONE;
    if (choice->kind == CHOICE_UNSAID && !is_alone) {
        return;
    }
    bool must = choice->kind == CHOICE_ALLOWED && choice->is_required;
    (void)buf_printf(w->out, ",\"tool_choice\":{\"type\":\"%s\"",
                     must ? "any" : words[choice->kind]);
    if (choice->kind == CHOICE_FUNCTION) {
        json_member_put(w->out, "name", choice->name);
    }
    (void)buf_puts(w->out, is_alone ? ",\"disable_parallel_tool_use\":true}" : "}");
}

/* Of a choice among some tools the others are left out: the API has no such choice. */
static int tools_put(const struct writing *w, struct sg_error *err)
{
    bool is_first = true;
    int code = SG_OK;
    for (size_t i = 0; code == SG_OK && i < w->from->functions_count; i++) {
        if (choice_allows(&w->from->choice, w->from->functions[i].name)) {
            (void)buf_puts(w->out, is_first ? ",\"tools\":[" : "");
            code = function_put(w, &w->from->functions[i], err);
            is_first = false;
        }
    }
    if (!is_first) {
        (void)buf_putc(w->out, ']');
        choice_put(w);
    }
    return code;
}

/* ---- options ---- */

static const char *const names[OPTION_KINDS] = {
    [OPTION_TEMPERATURE] = "temperature",
    [OPTION_TOP_P] = "top_p",
    [OPTION_TOP_K] = "top_k",
    [OPTION_STOP] = "stop_sequences",
};

static void user_put(const struct writing *w)
{
    const struct option *option = &w->from->options[OPTION_USER];
    if (option->is_said) {
        (void)buf_puts(w->out, ",\"metadata\":{\"user_id\":");
        (void)buf_append_str(w->out, option->value.raw);
        (void)buf_putc(w->out, '}');
    }
}

static void limit_put(const struct writing *w)
{
    const struct option *option = &w->from->options[OPTION_MAX_TOKENS];
    (void)buf_puts(w->out, ",\"max_tokens\":");
    if (option->is_said) {
        (void)buf_append_str(w->out, option->value.raw);
    } else {
        (void)buf_printf(w->out, "%d", TOKENS_DEFAULT);
    }
}

/* What the client says of the schema beside it stands in it, unless it says so itself. */
static int schema_put(const struct writing *w, struct str description, struct json_value schema,
                      struct sg_error *err)
{
    struct json_member *members;
    size_t count;
    int code = json_members(schema, "schema", w->reading->arena, &members, &count, err);
    if (code != SG_OK) {
        return code;
    }
    if (description.len == 0 || json_find(members, count, "description") != NULL) {
        (void)buf_append_str(w->out, schema.raw);
        return SG_OK;
    }
    (void)buf_putc(w->out, '{');
    json_member_put(w->out, "description", description);
    (void)buf_puts(w->out, count > 0 ? "," : "");
    (void)buf_append(w->out, schema.raw.data + 1, schema.raw.len - 1);
    return SG_OK;
}

static int format_put(const struct writing *w, const struct option *option, struct sg_error *err)
{
    struct arena *arena = w->reading->arena;
    struct json_member *members;
    size_t count;
    int code = json_members(option->value, option->path, arena, &members, &count, err);
    if (code != SG_OK) {
        return code;
    }
    const struct json_member *schema = json_find_type(members, count, "schema", JSON_OBJECT);
    struct str description = json_find_text(members, count, "description", arena);
    json_comma_put(w->out);
    (void)buf_puts(w->out, "\"format\":{\"type\":\"json_schema\",\"schema\":");
    code = schema_put(w, description,
                      schema == NULL ? (struct json_value){JSON_OBJECT, STR("{}")} : schema->value,
                      err);
    (void)buf_putc(w->out, '}');
    return code;
}

/* Effort and format stand in one object there. "none" and "minimal" are words of others. */
static int output_put(const struct writing *w, struct sg_error *err)
{
    const struct option *effort = &w->from->options[OPTION_EFFORT];
    const struct option *schema = &w->from->options[OPTION_SCHEMA];
    bool is_mute = str_is(effort->value.raw, "\"none\"");
    bool is_least = str_is(effort->value.raw, "\"minimal\"");
    bool has_effort = effort->is_said && !is_mute;
    if (!has_effort && !schema->is_said) {
        return SG_OK;
    }
    (void)buf_puts(w->out, ",\"output_config\":{");
    if (has_effort) {
        json_raw_put(w->out, "effort", is_least ? STR("\"low\"") : effort->value.raw);
    }
    int code = schema->is_said ? format_put(w, schema, err) : SG_OK;
    (void)buf_putc(w->out, '}');
    return code;
}

/* Options that stand elsewhere in the request, and those that say nothing to a server of this API. */
static const char *const elsewhere[OPTION_KINDS] = {[OPTION_MAX_TOKENS] = "max_tokens",
                                                    [OPTION_PARALLEL] =
                                                        "tool_choice.disable_parallel_tool_use",
                                                    [OPTION_USER] = "metadata.user_id",
                                                    [OPTION_EFFORT] = "output_config.effort",
                                                    [OPTION_SCHEMA] = "output_config.format"};
static const bool not_needed[OPTION_KINDS] = {
    [OPTION_CACHE_KEY] = true, [OPTION_SERVICE_TIER] = true, [OPTION_SAFETY_IDENTIFIER] = true};

enum option_fate write_messages_fate(enum option_kind kind)
{
    return not_needed[kind]                     ? OPTION_NOT_NEEDED
           : write_messages_field(kind) != NULL ? OPTION_CARRIED
                                                : OPTION_REFUSED;
}

const char *write_messages_field(enum option_kind kind)
{
    return names[kind] != NULL ? names[kind] : elsewhere[kind];
}

/* Clients write out what holds without a word. */
static bool asks_for_nothing(enum option_kind kind, struct str raw)
{
    bool is_zero = str_is(raw, "0") || str_is(raw, "0.0");
    bool is_empty = str_is(raw, "{}") || str_is(raw, "[]");
    return kind == OPTION_TOP_LOGPROBS || kind == OPTION_PRESENCE_PENALTY ||
                   kind == OPTION_FREQUENCY_PENALTY
               ? is_zero
               : (kind == OPTION_LOGIT_BIAS || kind == OPTION_STOP) && is_empty;
}

static int option_put(const struct writing *w, enum option_kind kind, struct sg_error *err)
{
    const struct option *option = &w->from->options[kind];
    if (!option->is_said || elsewhere[kind] != NULL || not_needed[kind] ||
        asks_for_nothing(kind, option->value.raw)) {
        return SG_OK;
    }
    if (names[kind] == NULL) {
        return refuse_field(w->reading, option->path,
                            "cannot be carried to the API of this model's server", err);
    }
    json_raw_put(w->out, names[kind], option->value.raw);
    return SG_OK;
}

int write_messages(const struct reading *reading, const struct conversation *from, struct buf *out,
                   struct sg_error *err)
{
    struct writing w = {.reading = reading, .from = from, .out = out};
    (void)buf_putc(out, '{');
    json_member_put(out, "model", from->model);
    if (!from->is_counted) {
        limit_put(&w);
    }
    int code = names_check(&w, err);
    code = code == SG_OK ? system_put(&w, err) : code;
    code = code == SG_OK ? messages_put(&w, err) : code;
    code = code == SG_OK ? tools_put(&w, err) : code;
    for (int kind = 0; code == SG_OK && !from->is_counted && kind < OPTION_KINDS; kind++) {
        code = option_put(&w, (enum option_kind)kind, err);
    }
    code = code == SG_OK ? output_put(&w, err) : code;
    if (!from->is_counted) {
        user_put(&w);
        (void)buf_puts(out, from->stream ? ",\"stream\":true" : "");
    }
    (void)buf_putc(out, '}');
    return code;
}
