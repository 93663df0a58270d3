/* The native shapes, kind by kind: how a client names the tool, its blocks, what is in a result, and how that reads in
 * words when it comes back in a history. */
#include "surface/messages_kinds.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "surface/results.h"

#include <stdio.h>

enum {
    PYTHON_VERSION = 20250522, /* of code_execution: Python alone */
    SHELL_VERSION = 20250825,  /* a shell and a file editor, from then on */
    STREAM_BYTES_MAX =
        256 * 1024, /* of stdout or stderr in a block, which comes back with each request */
    ERROR_TEXT_BYTES_MAX = 1024
};

#define EDIT_TYPE "application/vnd.sandgate.edit+json"

/* ---- code and shell ---- */

static void output_put(const struct surface_output *output, bool errors, struct buf *out)
{
    static const char *const text[] = {"text/plain", NULL}, *const traceback[] = {"traceback",
                                                                                  NULL};
    if (output->kind == (errors ? SG_OUT_LOG_ERR : SG_OUT_LOG_OUT)) {
        (void)buf_append_str(out, output->data); /* cut below */
    } else if (!errors && output->kind == SG_OUT_RESULT) {
        (void)result_members_put(output->data, text, out);
    } else if (errors && output->kind == SG_OUT_EXCEPTION) {
        (void)result_members_put(output->data, traceback, out);
    }
}

static void stream_put(const struct surface_result *result, bool errors, struct buf *out)
{
    BUF_CLEANUP struct buf text = {0};
    for (size_t i = 0; i < result->outputs_count; i++) {
        output_put(&result->outputs[i], errors, &text);
    }
    (void)result_cut(&text, STREAM_BYTES_MAX, "the output is long");
    (void)buf_put_json(out, buf_str(&text)); /* the owner asks for overflow */
}

static bool has_raised(const struct surface_result *result)
{
    for (size_t i = 0; i < result->outputs_count; i++) {
        if (result->outputs[i].kind == SG_OUT_EXCEPTION) {
            return true;
        }
    }
    return false;
}

static void run_put(const char *type, const struct surface_result *result, struct buf *out)
{
    int code = result->return_code == 0 && has_raised(result) ? 1 : result->return_code;
    (void)buf_printf(out, "{\"type\":\"%s\",\"stdout\":", type); /* the owner asks for overflow */
    stream_put(result, false, out);
    (void)buf_puts(out, ",\"stderr\":");
    stream_put(result, true, out);
    (void)buf_printf(out, ",\"return_code\":%d,\"content\":[]}", code);
}

static void python_put(const struct surface_result *result, struct buf *out)
{
    run_put("code_execution_result", result, out);
}

static void shell_put(const struct surface_result *result, struct buf *out)
{
    run_put("bash_code_execution_result", result, out);
}

struct str messages_text_of(struct json_value object, const char *name, struct arena *arena)
{
    struct json_walk walk = json_walk_of(object);
    struct str key;
    struct json_value value;
    while (json_walk_member(&walk, &key, &value)) {
        if (value.type == JSON_STRING && json_key_is(key, name)) {
            return json_text_of(value, arena);
        }
    }
    return (struct str){0};
}

static int64_t number_of(struct json_value object, const char *name)
{
    struct json_walk walk = json_walk_of(object);
    struct str key;
    struct json_value value;
    int64_t number = 0;
    while (json_walk_member(&walk, &key, &value)) {
        if (json_key_is(key, name)) {
            (void)json_int_of(value, &number); /* stays 0 where it is no integer */
        }
    }
    return number;
}

static void line_end(struct buf *out)
{
    if (out->len > 0 && out->data[out->len - 1] != '\n') {
        (void)buf_putc(out, '\n'); /* bounded by the body */
    }
}

static void run_words_put(struct json_value content, struct arena *arena, struct buf *out)
{
    if (content.type != JSON_OBJECT) {
        return;
    }
    struct str errors = messages_text_of(content, "stderr", arena);
    int64_t code = number_of(content, "return_code");
    (void)buf_append_str(out, messages_text_of(content, "stdout", arena)); /* bounded by the body */
    if (errors.len > 0) {
        line_end(out);
        (void)buf_puts(out, "[stderr]\n");
        (void)buf_append_str(out, errors);
    }
    if (code != 0) {
        line_end(out);
        (void)buf_printf(out, "[return code %lld]", (long long)code);
    }
}

/* ---- the file editor ---- */

/* What the editor did, as its interceptor tells it: the object behind EDIT_TYPE in a result, or the text of one. */
static bool edit_find(const struct surface_result *result, struct arena *arena,
                      struct json_text *ret)
{
    struct sg_error ignored = {0};
    struct json_text bundle;
    for (size_t i = result->outputs_count; i-- > 0;) {
        const struct surface_output *output = &result->outputs[i];
        if (output->kind != SG_OUT_RESULT ||
            json_scan(output->data, arena, &bundle, &ignored) != SG_OK) {
            continue;
        }
        const struct json_member *edit = json_find(bundle.members, bundle.count, EDIT_TYPE);
        struct str text = edit == NULL                      ? STR("")
                          : edit->value.type == JSON_STRING ? json_text_of(edit->value, arena)
                                                            : edit->value.raw;
        if (edit != NULL && json_scan(text, arena, ret, &ignored) == SG_OK &&
            ret->root.type == JSON_OBJECT) {
            return true;
        }
    }
    return false;
}

/* A member of a result, from the edit if it is of the type there, else as `otherwise`: clients refuse a result in which
 * one is missing. */
static void field_put(const struct json_text *edit, const char *name, enum json_type type,
                      const char *otherwise, struct buf *out)
{
    const struct json_member *member = json_find(edit->members, edit->count, name);
    bool fits = member != NULL && (member->value.type == type ||
                                   (type == JSON_FALSE && member->value.type == JSON_TRUE));
    (void)buf_printf(out, ",\"%s\":", name); /* the owner asks for overflow */
    (void)buf_append_str(out, fits ? member->value.raw : str_of(otherwise));
}

static void edit_put(const struct json_text *edit, struct str command, struct buf *out)
{
    static const char *const view[] = {"num_lines", "start_line", "total_lines"};
    static const char *const replace[] = {"old_start", "old_lines", "new_start", "new_lines"};
#define EDITOR "{\"type\":\"text_editor_code_execution_"
    if (str_is(command, "create")) {
        (void)buf_puts(out, EDITOR "create_result\""); /* the owner asks for overflow */
        field_put(edit, "is_file_update", JSON_FALSE, "false", out);
    } else if (str_is(command, "view")) {
        (void)buf_puts(out, EDITOR "view_result\"");
        field_put(edit, "file_type", JSON_STRING, "\"text\"", out);
        field_put(edit, "content", JSON_STRING, "\"\"", out);
        for (size_t i = 0; i < COUNT_OF(view); i++) {
            field_put(edit, view[i], JSON_NUMBER, "null", out);
        }
    } else {
        (void)buf_puts(out, EDITOR "str_replace_result\"");
        for (size_t i = 0; i < COUNT_OF(replace); i++) {
            field_put(edit, replace[i], JSON_NUMBER, "null", out);
        }
        field_put(edit, "lines", JSON_ARRAY, "null", out);
    }
    (void)buf_putc(out, '}');
}

static void error_put(const struct messages_kind *, const char *code, struct str message,
                      struct buf *out);

static void editor_put(const struct surface_result *result, struct buf *out)
{
    struct arena *scratch = arena_new(0);
    struct json_text edit;
    struct str command = {0};
    if (edit_find(result, scratch, &edit)) {
        command = json_find_text(edit.members, edit.count, "command", scratch);
    }
    if (str_is(command, "view") || str_is(command, "create") || str_is(command, "str_replace")) {
        edit_put(&edit, command, out);
    } else { /* it did not say what it did */
        error_put(messages_kind_of(STR("text_editor_code_execution")), "unavailable",
                  result->model_text, out);
    }
    arena_free(scratch);
}

static void editor_words_put(struct json_value content, struct arena *arena, struct buf *out)
{
    if (content.type != JSON_OBJECT) {
        return;
    }
    struct str type = messages_text_of(content, "type", arena);
    struct json_walk walk = json_walk_of(content), lines;
    struct str key;
    struct json_value value, line;
    if (str_is(type, "text_editor_code_execution_view_result")) {
        (void)buf_append_str(out,
                             messages_text_of(content, "content", arena)); /* bounded by the body */
        return;
    }
    (void)buf_puts(out, "The file was written.");
    while (json_walk_member(&walk, &key, &value)) {
        if (value.type != JSON_ARRAY || !json_key_is(key, "lines")) {
            continue;
        }
        lines = json_walk_of(value);
        while (json_walk_element(&lines, &line)) {
            if (line.type == JSON_STRING) {
                (void)buf_putc(out, '\n');
                (void)buf_append_str(out, json_text_of(line, arena));
            }
        }
    }
}

/* ---- the table ---- */

const struct messages_kind messages_kinds[] = {
    {"code_interpreter", "code_execution", "code_execution", "code_execution_tool_result",
     MESSAGES_CODE, false, python_put, run_words_put},
    {"bash_code_execution", "code_execution", "bash_code_execution",
     "bash_code_execution_tool_result", MESSAGES_CODE, false, shell_put, run_words_put},
    {"text_editor_code_execution", "code_execution", "text_editor_code_execution",
     "text_editor_code_execution_tool_result", MESSAGES_CODE, true, editor_put, editor_words_put},
    {"web_search", "web_search", "web_search", "web_search_tool_result", MESSAGES_SEARCH, false,
     messages_hits_put, messages_hits_words_put},
    {"web_fetch", "web_fetch", "web_fetch", "web_fetch_tool_result", MESSAGES_FETCH, false, NULL,
     messages_page_words_put},
    {NULL, NULL, NULL, NULL, MESSAGES_CODE, false, NULL, NULL}};

const struct messages_kind *messages_kind_of(struct str hosted)
{
    for (size_t i = 0; messages_kinds[i].hosted != NULL; i++) {
        if (str_is(hosted, messages_kinds[i].hosted)) {
            return &messages_kinds[i];
        }
    }
    return NULL;
}

const struct messages_kind *messages_kind_named(struct str block)
{
    for (size_t i = 0; messages_kinds[i].hosted != NULL; i++) {
        if (str_is(block, messages_kinds[i].name)) {
            return &messages_kinds[i];
        }
    }
    return NULL;
}

bool messages_kinds_run_code(const struct tool_set *set)
{
    for (size_t i = 0; i < set->offers_count; i++) {
        const struct messages_kind *kind = messages_kind_of(set->offers[i].hosted);
        if (set->shown[i].shown && kind != NULL && kind->family == MESSAGES_CODE) {
            return true;
        }
    }
    return false;
}

const char *const *messages_kinds_always(const struct tool_set *set)
{
    static const char *const kinds[] = {"code_interpreter", "web_search", NULL};
    return messages_kinds_run_code(set) ? kinds + 1 : kinds;
}

/* ---- versions ---- */

/* A date as in code_execution_20250825; 0: it is none. */
static long version_of(struct str text)
{
    long version = 0;
    if (text.len != 8) {
        return 0;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return 0;
        }
        version = version * 10 + (text.data[i] - '0');
    }
    long month = version / 100 % 100, day = version % 100;
    return month >= 1 && month <= 12 && day >= 1 && day <= 31 ? version : 0;
}

static int code_offers(const struct tool_set *set, struct str type, const char *where,
                       int ret_offers[2], struct sg_error *err)
{
    struct str prefix = STR("code_execution_");
    int python = tools_offer_for(set, STR("code_interpreter"));
    int shell = tools_offer_for(set, STR("bash_code_execution"));
    int editor = tools_offer_for(set, STR("text_editor_code_execution"));
    if (python < 0 && shell < 0 && editor < 0) {
        return SG_OK; /* nobody here answers it: it is the upstream's to judge */
    }
    long version = str_starts(type, prefix)
                       ? version_of((struct str){type.data + prefix.len, type.len - prefix.len})
                       : 0;
    if (version != PYTHON_VERSION && version < SHELL_VERSION) {
        return error_set_param(err, SG_E_INVALID, where,
                               "%s: unknown tool type '%.*s'; there are code_execution_%d and "
                               "code_execution_%d",
                               where, (int)(type.len < 80 ? type.len : 80), type.data,
                               PYTHON_VERSION, SHELL_VERSION);
    }
    if (version == PYTHON_VERSION || (shell < 0 && editor < 0)) {
        ret_offers[0] = python;
    } else {
        ret_offers[0] = shell >= 0 ? shell : editor;
        ret_offers[1] = shell >= 0 ? editor : -1;
    }
    return SG_OK;
}

int messages_kind_offers(const struct tool_set *set, struct str type, const char *where,
                         int ret_offers[2], struct sg_error *err)
{
    ret_offers[0] = ret_offers[1] = -1;
    if (str_is(type, "code_execution") || str_starts(type, STR("code_execution_"))) {
        return code_offers(set, type, where, ret_offers, err);
    }
    if (str_starts(type, STR("web_search_"))) {
        ret_offers[0] = tools_offer_for(set, STR("web_search"));
    } else if (str_starts(type, STR("web_fetch_"))) {
        ret_offers[0] = tools_offer_for(set, STR("web_fetch"));
    } else if (messages_kind_of(type) != NULL) {
        ret_offers[0] = tools_offer_for(set, type);
    }
    return SG_OK;
}

/* ---- results ---- */

static void error_put(const struct messages_kind *kind, const char *code, struct str message,
                      struct buf *out)
{
    (void)buf_printf(out, "{\"type\":\"%s_error\",\"error_code\":\"%s\"", kind->result, code);
    if (kind->has_error_message) {
        (void)buf_puts(out, ",\"error_message\":"); /* the owner asks for overflow */
        if (message.len > 0) {
            message.len = utf8_cut(message, ERROR_TEXT_BYTES_MAX);
            (void)buf_put_json(out, message);
        } else {
            (void)buf_puts(out, "null");
        }
    }
    (void)buf_putc(out, '}');
}

/* Each family has codes of its own, and clients know no others. */
static const char *code_of(enum messages_family family, enum surface_reason reason)
{
    static const char *const codes[][3] = {
        [SURFACE_REASON_INVALID] = {"invalid_tool_input", "invalid_tool_input",
                                    "invalid_tool_input"},
        [SURFACE_REASON_TIMEOUT] = {"execution_time_exceeded", "unavailable", "unavailable"},
        [SURFACE_REASON_LIMIT] = {"too_many_requests", "too_many_requests", "too_many_requests"},
        [SURFACE_REASON_UNAVAILABLE] = {"unavailable", "unavailable", "unavailable"},
        [SURFACE_REASON_NOT_FOUND] = {"file_not_found", "unavailable", "url_not_accessible"},
        [SURFACE_REASON_TOO_LONG] = {"invalid_tool_input", "query_too_long", "url_too_long"},
        [SURFACE_REASON_USES] = {"too_many_requests", "max_uses_exceeded", "max_uses_exceeded"}};
    CHECK((size_t)reason < COUNT_OF(codes));
    return codes[reason][family];
}

/* NULL: it ran, whatever came of it. A program that failed has run; a search that failed has not. */
static const char *error_code_of(const struct messages_kind *kind,
                                 const struct surface_result *result)
{
    if (result->status == SURFACE_CALL_COMPLETED) {
        return kind->content_put == NULL ? "unavailable" : NULL;
    }
    if (result->reason != SURFACE_REASON_NONE) {
        return code_of(kind->family, result->reason);
    }
    if (result->status == SURFACE_CALL_NOT_RUN) {
        return "too_many_requests";
    }
    bool ran =
        kind->family == MESSAGES_CODE && (result->outputs_count > 0 || result->return_code != 0);
    return ran ? NULL : "unavailable";
}

void messages_kind_result_put(const struct messages_kind *kind, const char *id,
                              const struct surface_result *result, struct buf *out)
{
    const char *code = error_code_of(kind, result);
    (void)buf_printf(out, "{\"type\":\"%s\",\"tool_use_id\":\"%s\",\"content\":", kind->result, id);
    if (code == NULL) {
        kind->content_put(result, out);
    } else {
        error_put(kind, code, result->model_text, out);
    }
    (void)buf_puts(out, kind->family == MESSAGES_CODE ? "}" : ",\"caller\":{\"type\":\"direct\"}}");
}

bool messages_kind_counts(const struct messages_kind *kind, const struct surface_result *result)
{
    return kind != NULL && kind->family == MESSAGES_SEARCH && error_code_of(kind, result) == NULL;
}

/* ---- in words ---- */

static const struct {
    const char *code, *words;
} errors[] = {{"invalid_tool_input", "[invalid call] The arguments of the call were not valid."},
              {"unavailable", "[tool unavailable] The tool could not be used."},
              {"too_many_requests", "[limit reached: the call was not run]"},
              {"execution_time_exceeded", "[timeout] The run took too long and was ended."},
              {"file_not_found", "[failed] There is no such file."},
              {"max_uses_exceeded", "[limit reached: the call was not run]"},
              {"query_too_long", "[invalid call] The query was too long."},
              {NULL, NULL}};

static void error_words_put(struct str code, struct buf *out)
{
    for (size_t i = 0; errors[i].code != NULL; i++) {
        if (str_is(code, errors[i].code)) {
            (void)buf_puts(out, errors[i].words); /* small: fits */
            return;
        }
    }
    (void)buf_puts(out, "[failed] ");
    (void)buf_append_str(out, code);
}

void messages_kind_words_put(const struct messages_kind *kind, struct json_value content,
                             struct arena *arena, struct buf *out)
{
    BUF_CLEANUP struct buf words = {0};
    struct str code = content.type == JSON_OBJECT ? messages_text_of(content, "error_code", arena)
                                                  : (struct str){0};
    if (code.len > 0) {
        error_words_put(code, &words);
    } else if (content.type == JSON_OBJECT || content.type == JSON_ARRAY) {
        kind->words_put(content, arena, &words);
    }
    (void)result_cut(&words, LIMIT_TOOL_SHOWN_BYTES, "the output is long");
    while (words.len > 0 && strchr(" \t\r\n", words.data[words.len - 1]) != NULL) {
        words.len--; /* the last message may not end in white space */
    }
    (void)buf_append_str(out, words.len > 0 ? buf_str(&words) : STR("[no output]"));
}
