/* A conversation as a request of Chat Completions. */
#include "translate/writing.h"

#include <stdio.h>
#include <string.h>

struct writing {
    const struct reading *reading; /* what the operator lets go */
    const struct conversation *from;
    struct buf *out;  /* the owner asks for overflow, here and below */
    size_t last_user; /* messages from there on belong to the turn that goes on */
};

/* ---- parts ---- */

static bool is_plain(const struct part *part)
{
    return part->kind == PART_TEXT || part->kind == PART_REFUSAL;
}

static void text_part_put(struct buf *out, struct str text)
{
    json_comma_put(out);
    (void)buf_puts(out, "{\"type\":\"text\"");
    json_member_put(out, "text", text);
    (void)buf_putc(out, '}');
}

/* Where it is not by URL, the data as a URL of its own. */
static void url_put(struct buf *out, const char *name, const struct part *part)
{
    json_comma_put(out);
    (void)buf_printf(out, "\"%s\":", name);
    if (part->url.len > 0) {
        (void)buf_put_json(out, part->url);
        return;
    }
    (void)buf_puts(out, "\"data:");
    (void)buf_put_json_inner(out, part->media_type);
    (void)buf_puts(out, ";base64,");
    (void)buf_put_json_inner(out, part->data);
    (void)buf_putc(out, '"');
}

static void image_put(struct buf *out, const struct part *part)
{
    json_comma_put(out);
    (void)buf_puts(out, "{\"type\":\"image_url\",\"image_url\":{");
    url_put(out, "url", part);
    if (part->detail.len > 0) {
        json_member_put(out, "detail", part->detail);
    }
    (void)buf_puts(out, "}}");
}

static int document_put(const struct writing *w, const struct part *part, struct sg_error *err)
{
    if (part->url.len > 0 && !str_starts(part->url, STR("data:"))) {
        return refuse_field(w->reading, part->path,
                            "is a document by URL, which this model's server does not fetch", err);
    }
    json_comma_put(w->out);
    (void)buf_puts(w->out, "{\"type\":\"file\",\"file\":{");
    json_member_put(w->out, "filename", part->name.len > 0 ? part->name : STR("document.pdf"));
    url_put(w->out, "file_data", part);
    (void)buf_puts(w->out, "}}");
    return SG_OK;
}

static void audio_put(struct buf *out, const struct part *part)
{
    json_comma_put(out);
    (void)buf_puts(out, "{\"type\":\"input_audio\",\"input_audio\":{");
    json_member_put(out, "data", part->data);
    json_member_put(out, "format", part->media_type);
    (void)buf_puts(out, "}}");
}

static int part_put(const struct writing *w, const struct part *part, struct sg_error *err)
{
    switch (part->kind) {
    case PART_TEXT:
    case PART_REFUSAL:
        text_part_put(w->out, part->text);
        return SG_OK;
    case PART_IMAGE:
        image_put(w->out, part);
        return SG_OK;
    case PART_DOCUMENT:
        return document_put(w, part, err);
    case PART_AUDIO:
        audio_put(w->out, part);
        return SG_OK;
    case PART_CALL:
        return refuse_field(w->reading, part->path,
                            "is a call outside of a message of the assistant", err);
    default: /* results and reasoning have places of their own */
        return SG_OK;
    }
}

/* Where there can only be text, as in the system's messages, and beside it what has a place of its own. */
static int only_text_check(const struct writing *w, const struct message *message,
                           struct sg_error *err)
{
    int code = SG_OK;
    for (size_t i = 0; code == SG_OK && i < message->count; i++) {
        enum part_kind kind = message->parts[i].kind;
        if (kind == PART_IMAGE || kind == PART_DOCUMENT || kind == PART_AUDIO) {
            code =
                refuse_field(w->reading, message->parts[i].path,
                             "is no text, which this message must be for this model's server", err);
        }
    }
    return code;
}

/* The parts of that kind, within a string that is open. */
static void texts_add(struct buf *out, const struct message *message, enum part_kind kind,
                      const char *between, bool *is_first)
{
    for (size_t i = 0; i < message->count; i++) {
        if (message->parts[i].kind == kind) {
            (void)buf_puts(out, *is_first ? "" : between);
            (void)buf_put_json_inner(out, message->parts[i].text);
            *is_first = false;
        }
    }
}

/* Texts that stand beside each other, as one string: what most servers of chat understand. */
static void texts_put(struct buf *out, const struct message *message, enum part_kind kind,
                      const char *between)
{
    bool is_first = true;
    (void)buf_putc(out, '"');
    texts_add(out, message, kind, between, &is_first);
    (void)buf_putc(out, '"');
}

static bool has_kind(const struct message *message, enum part_kind kind)
{
    for (size_t i = 0; i < message->count; i++) {
        if (message->parts[i].kind == kind) {
            return true;
        }
    }
    return false;
}

/* ---- messages ---- */

static void message_begin(struct buf *out, const char *role)
{
    json_comma_put(out);
    (void)buf_printf(out, "{\"role\":\"%s\"", role);
}

/* Those in a row are one: templates of many models take a single one, at the beginning. */
static int system_put(const struct writing *w, size_t *index, struct sg_error *err)
{
    bool is_first = true;
    int code = SG_OK;
    message_begin(w->out, "system");
    (void)buf_puts(w->out, ",\"content\":\"");
    for (; code == SG_OK && *index < w->from->messages_count; ++*index) {
        const struct message *message = &w->from->messages[*index];
        if (message->role != ROLE_SYSTEM) {
            break;
        }
        code = only_text_check(w, message, err);
        texts_add(w->out, message, PART_TEXT, "\\n\\n", &is_first);
    }
    (void)buf_puts(w->out, "\"}");
    return code;
}

static void calls_put(struct buf *out, const struct message *message)
{
    json_comma_put(out);
    (void)buf_puts(out, "\"tool_calls\":[");
    for (size_t i = 0; i < message->count; i++) {
        const struct part *part = &message->parts[i];
        if (part->kind != PART_CALL) {
            continue;
        }
        const char *kind = part->is_custom ? "custom" : "function";
        json_comma_put(out);
        (void)buf_putc(out, '{');
        json_member_put(out, "id", part->id);
        (void)buf_printf(out, ",\"type\":\"%s\",\"%s\":{", kind, kind);
        json_member_put(out, "name", part->name);
        json_member_put(out, part->is_custom ? "input" : "arguments",
                        part->arguments.len > 0 || part->is_custom ? part->arguments : STR("{}"));
        (void)buf_puts(out, "}}");
    }
    (void)buf_putc(out, ']');
}

/* Reasoning goes back only while its turn goes on: servers that want it want it there, others refuse it later. */
static void assistant_put(const struct writing *w, size_t index)
{
    const struct message *message = &w->from->messages[index];
    bool has_calls = has_kind(message, PART_CALL), has_text = has_kind(message, PART_TEXT);
    bool is_mute = !has_calls && !has_text && !has_kind(message, PART_REFUSAL);
    if (is_mute) {
        return; /* reasoning alone: a turn that was broken off */
    }
    message_begin(w->out, "assistant");
    (void)buf_puts(w->out, ",\"content\":");
    if (has_text) {
        texts_put(w->out, message, PART_TEXT, "");
    } else {
        (void)buf_puts(w->out, has_calls ? "null" : "\"\"");
    }
    if (has_kind(message, PART_REFUSAL)) {
        (void)buf_puts(w->out, ",\"refusal\":");
        texts_put(w->out, message, PART_REFUSAL, "");
    }
    if (has_kind(message, PART_REASONING) && index > w->last_user) {
        (void)buf_puts(w->out, ",\"reasoning_content\":");
        texts_put(w->out, message, PART_REASONING, "\\n\\n");
    }
    if (has_calls) {
        calls_put(w->out, message);
    }
    (void)buf_putc(w->out, '}');
}

/* A tool's answer is text here; pictures of it follow in a message of their own. */
static void result_put(const struct writing *w, const struct part *result)
{
    message_begin(w->out, "tool");
    json_member_put(w->out, "tool_call_id", result->id);
    (void)buf_puts(w->out, ",\"content\":\"");
    (void)buf_puts(w->out, result->is_error ? "[error] " : "");
    bool is_first = true;
    for (size_t i = 0; i < result->count; i++) {
        if (is_plain(&result->parts[i])) {
            (void)buf_puts(w->out, is_first ? "" : "\\n");
            (void)buf_put_json_inner(w->out, result->parts[i].text);
        } else {
            (void)buf_puts(w->out,
                           is_first ? "[see the next message]" : "\\n[see the next message]");
        }
        is_first = false;
    }
    (void)buf_puts(w->out, "\"}");
}

static int shown_put(const struct writing *w, const struct part *result, struct sg_error *err)
{
    bool is_first = true;
    int code = SG_OK;
    for (size_t i = 0; code == SG_OK && i < result->count; i++) {
        if (is_plain(&result->parts[i])) {
            continue;
        }
        if (is_first) {
            message_begin(w->out, "user");
            (void)buf_puts(w->out,
                           ",\"content\":[{\"type\":\"text\",\"text\":\"[Given by the tool, call ");
            (void)buf_put_json_inner(w->out, result->id);
            (void)buf_puts(w->out, "]\"}");
            is_first = false;
        }
        code = part_put(w, &result->parts[i], err);
    }
    (void)buf_puts(w->out, is_first ? "" : "]}");
    return code;
}

static int results_put(const struct writing *w, const struct message *message, struct sg_error *err)
{
    int code = SG_OK;
    for (size_t i = 0; i < message->count; i++) {
        if (message->parts[i].kind == PART_RESULT) {
            result_put(w, &message->parts[i]);
        }
    }
    for (size_t i = 0; code == SG_OK && i < message->count; i++) {
        if (message->parts[i].kind == PART_RESULT) {
            code = shown_put(w, &message->parts[i], err);
        }
    }
    return code;
}

static int user_put(const struct writing *w, const struct message *message, struct sg_error *err)
{
    int code = results_put(w, message, err);
    size_t own = 0;
    for (size_t i = 0; i < message->count; i++) {
        own += message->parts[i].kind != PART_RESULT;
    }
    if (code != SG_OK || (own == 0 && message->count > 0)) {
        return code;
    }
    message_begin(w->out, "user");
    if (message->name.len > 0) {
        json_member_put(w->out, "name", message->name);
    }
    (void)buf_puts(w->out, ",\"content\":");
    if (own == 0 || (own == 1 && has_kind(message, PART_TEXT))) {
        texts_put(w->out, message, PART_TEXT, "");
    } else {
        (void)buf_putc(w->out, '[');
        for (size_t i = 0; code == SG_OK && i < message->count; i++) {
            code = part_put(w, &message->parts[i], err);
        }
        (void)buf_putc(w->out, ']');
    }
    (void)buf_putc(w->out, '}');
    return code;
}

static size_t last_user_of(const struct conversation *from)
{
    for (size_t i = from->messages_count; i > 0; i--) {
        const struct message *message = &from->messages[i - 1];
        if (message->role == ROLE_USER && !has_kind(message, PART_RESULT)) {
            return i - 1;
        }
    }
    return 0;
}

static int messages_put(const struct writing *w, struct sg_error *err)
{
    int code = SG_OK;
    (void)buf_puts(w->out, ",\"messages\":[");
    for (size_t i = 0; code == SG_OK && i < w->from->messages_count;) {
        const struct message *message = &w->from->messages[i];
        if (message->role == ROLE_SYSTEM) {
            code = system_put(w, &i, err);
        } else if (message->role == ROLE_USER) {
            code = user_put(w, message, err);
            i++;
        } else {
            code = only_text_check(w, message, err);
            assistant_put(w, i++);
        }
    }
    (void)buf_putc(w->out, ']');
    return code;
}

/* ---- tools ---- */

static void function_put(struct buf *out, const struct function *function)
{
    const char *kind = function->is_custom ? "custom" : "function";
    json_comma_put(out);
    (void)buf_printf(out, "{\"type\":\"%s\",\"%s\":{", kind, kind);
    json_member_put(out, "name", function->name);
    if (function->description.len > 0) {
        json_member_put(out, "description", function->description);
    }
    if (function->is_custom && function->format.len > 0) {
        json_raw_put(out, "format", function->format);
    } else if (!function->is_custom) {
        json_raw_put(out, "parameters",
                     function->schema.len > 0 ? function->schema
                                              : STR("{\"type\":\"object\",\"properties\":{}}"));
    }
    if (function->strict.len > 0) {
        json_raw_put(out, "strict", function->strict);
    }
    (void)buf_puts(out, "}}");
}

static void named_put(struct buf *out, struct str name, bool is_custom)
{
    const char *kind = is_custom ? "custom" : "function";
    json_comma_put(out);
    (void)buf_printf(out, "{\"type\":\"%s\",\"%s\":{", kind, kind);
    json_member_put(out, "name", name);
    (void)buf_puts(out, "}}");
}

/* Servers of chat other than the vendor's know no choice among some tools, so the others are left out; it then is one among
 * all that are there. */
static void choice_put(const struct writing *w)
{
    static const char *const words[] = {
        [CHOICE_AUTO] = "\"auto\"", [CHOICE_NONE] = "\"none\"", [CHOICE_REQUIRED] = "\"required\""};
    const struct choice *choice = &w->from->choice;
    enum choice_kind kind = choice->kind != CHOICE_ALLOWED ? choice->kind
                            : choice->is_required          ? CHOICE_REQUIRED
                                                           : CHOICE_AUTO;
    if (kind == CHOICE_UNSAID) {
        return;
    }
    (void)buf_puts(w->out, ",\"tool_choice\":");
    if (kind == CHOICE_FUNCTION) {
        BUF_CLEANUP struct buf one = {0};
        named_put(&one, choice->name, choice->is_custom);
        (void)buf_append_str(w->out, buf_str(&one));
    } else {
        (void)buf_puts(w->out, words[kind]);
    }
}

/* An empty list of tools, and a choice without tools, are refused by most servers. */
static void tools_put(const struct writing *w)
{
    bool is_first = true;
    for (size_t i = 0; i < w->from->functions_count; i++) {
        if (choice_allows(&w->from->choice, w->from->functions[i].name)) {
            (void)buf_puts(w->out, is_first ? ",\"tools\":[" : "");
            function_put(w->out, &w->from->functions[i]);
            is_first = false;
        }
    }
    if (!is_first) {
        (void)buf_putc(w->out, ']');
        choice_put(w);
    }
}

/* ---- options ---- */

static const char *const names[OPTION_KINDS] = {
    [OPTION_TEMPERATURE] = "temperature",
    [OPTION_TOP_P] = "top_p",
    [OPTION_MAX_TOKENS] = "max_tokens", /* the name that all servers of chat know */
    [OPTION_STOP] = "stop",
    [OPTION_SEED] = "seed",
    [OPTION_PRESENCE_PENALTY] = "presence_penalty",
    [OPTION_FREQUENCY_PENALTY] = "frequency_penalty",
    [OPTION_LOGIT_BIAS] = "logit_bias",
    [OPTION_LOGPROBS] = "logprobs",
    [OPTION_TOP_LOGPROBS] = "top_logprobs",
    [OPTION_EFFORT] = "reasoning_effort",
    [OPTION_VERBOSITY] = "verbosity",
    [OPTION_USER] = "user",
    [OPTION_SAFETY_IDENTIFIER] = "safety_identifier",
    [OPTION_CACHE_KEY] = "prompt_cache_key",
    [OPTION_SERVICE_TIER] = "service_tier",
};

enum option_fate write_chat_fate(enum option_kind kind)
{
    bool is_there = names[kind] != NULL || kind == OPTION_PARALLEL || kind == OPTION_JSON ||
                    kind == OPTION_SCHEMA || kind == OPTION_THINKING_TOKENS;
    return is_there ? OPTION_CARRIED : OPTION_REFUSED;
}

const char *write_chat_field(enum option_kind kind)
{
    return kind == OPTION_PARALLEL                        ? "parallel_tool_calls"
           : kind == OPTION_JSON || kind == OPTION_SCHEMA ? "response_format"
                                                          : names[kind];
}

static int schema_put(const struct writing *w, const struct option *option, struct sg_error *err)
{
    struct json_member *members;
    size_t count;
    int code = json_members(option->value, option->path, w->reading->arena, &members, &count, err);
    if (code != SG_OK) {
        return code;
    }
    struct str name = json_find_text(members, count, "name", w->reading->arena);
    static const char *const kept[] = {"description", "schema", "strict"};
    (void)buf_puts(w->out, ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{");
    json_member_put(w->out, "name", name.len > 0 ? name : STR("answer"));
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        const struct json_member *member = json_find(members, count, kept[i]);
        if (member != NULL && member->value.type != JSON_NULL) {
            json_raw_put(w->out, kept[i], member->value.raw);
        }
    }
    (void)buf_puts(w->out, "}}");
    return SG_OK;
}

/* Elsewhere the number alone asks for them. */
static void top_logprobs_put(const struct writing *w, const struct option *option)
{
    if (str_is(option->value.raw, "0")) {
        return;
    }
    json_raw_put(w->out, "top_logprobs", option->value.raw);
    if (!w->from->options[OPTION_LOGPROBS].is_said) {
        json_raw_put(w->out, "logprobs", STR("true"));
    }
}

static int option_put(const struct writing *w, enum option_kind kind, struct sg_error *err)
{
    const struct option *option = &w->from->options[kind];
    bool has_tools = w->from->functions_count > 0;
    if (kind == OPTION_THINKING_TOKENS || (kind == OPTION_PARALLEL && !has_tools)) {
        return SG_OK; /* told as an effort; about nothing */
    }
    if (kind == OPTION_PARALLEL) {
        json_raw_put(w->out, "parallel_tool_calls", option->value.raw);
    } else if (kind == OPTION_JSON) {
        (void)buf_puts(w->out, ",\"response_format\":{\"type\":\"json_object\"}");
    } else if (kind == OPTION_SCHEMA) {
        return schema_put(w, option, err);
    } else if (names[kind] == NULL) {
        return refuse_field(w->reading, option->path,
                            "cannot be carried to the API of this model's server", err);
    } else if (kind == OPTION_TOP_LOGPROBS) {
        top_logprobs_put(w, option);
    } else {
        json_raw_put(w->out, names[kind], option->value.raw);
    }
    return SG_OK;
}

int write_chat(const struct reading *reading, const struct conversation *from, struct buf *out,
               struct sg_error *err)
{
    struct writing w = {
        .reading = reading, .from = from, .out = out, .last_user = last_user_of(from)};
    (void)buf_putc(out, '{');
    json_member_put(out, "model", from->model);
    int code = messages_put(&w, err);
    tools_put(&w);
    for (int kind = 0; code == SG_OK && kind < OPTION_KINDS; kind++) {
        if (from->options[kind].is_said) {
            code = option_put(&w, (enum option_kind)kind, err);
        }
    }
    (void)buf_puts(
        out, from->stream ? ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}" : "}");
    return code;
}
