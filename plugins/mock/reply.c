/* What the mock model does: calls a tool that fits the prompt, tells what came back, or answers in words. */
#include "upstream.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

void reply_clear(struct reply *r)
{
    text_clear(&r->content);
    text_clear(&r->reasoning);
    for (size_t i = 0; i < r->calls_count; i++) {
        text_clear(&r->calls[i].name);
        text_clear(&r->calls[i].arguments);
    }
    r->calls_count = 0;
}

void problem_set(struct problem *p, const char *param, const char *code, const char *format, ...)
{
    if (p->message.len > 0) {
        return; /* the first one stands */
    }
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    text_puts(&p->message, message);
    snprintf(p->param, sizeof p->param, "%s", param == NULL ? "" : param);
    p->code = code;
}

void pieces_end(struct pieces *p)
{
    text_put(&p->ends, &p->bytes.len, sizeof p->bytes.len);
}

size_t pieces_count(const struct pieces *p)
{
    return p->ends.len / sizeof(size_t);
}

void pieces_clear(struct pieces *p)
{
    text_clear(&p->bytes);
    text_clear(&p->ends);
}

size_t piece_length(const struct text *text, size_t at, size_t chunk)
{
    size_t len = text_cut(text->data + at, text->len - at, chunk);
    size_t character = text_character(text->data + at, text->len - at);
    return len > 0 ? len : character > 0 ? character : 1;
}

struct reply_usage reply_usage(const struct reply *r, const struct conversation *c)
{
    size_t bytes = r->content.len + r->reasoning.len;
    for (size_t i = 0; i < r->calls_count; i++) {
        bytes += r->calls[i].arguments.len;
    }
    return (struct reply_usage){c->request_bytes / 4, (bytes + 3) / 4, (r->reasoning.len + 3) / 4};
}

/* ---- what the prompt asks for ---- */

struct part {
    const char *data;
    size_t len;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static struct part trim(struct part p)
{
    while (p.len > 0 && is_space(p.data[0])) {
        p.data++;
        p.len--;
    }
    while (p.len > 0 && is_space(p.data[p.len - 1])) {
        p.len--;
    }
    return p;
}

/* What stands behind the first colon with white space behind it that follows `phrase` (in any case). */
static struct part text_after(const struct text *prompt, const char *phrase)
{
    const char *at = prompt->len == 0 ? NULL : strcasestr(prompt->data, phrase);
    if (at == NULL) {
        return (struct part){0};
    }
    for (at += strlen(phrase); *at != '\0'; at++) {
        if (at[0] == ':' && is_space(at[1])) {
            return trim((struct part){at + 1, strlen(at + 1)});
        }
    }
    return (struct part){0};
}

/* Where the code stands in a fenced block, its inside up to the last fence. */
static struct part without_fence(struct part code)
{
    if (code.len < 6 || memcmp(code.data, "```", 3) != 0) {
        return code;
    }
    const char *open = code.data;
    const char *line = memchr(open, '\n', code.len);
    const char *close = code.data + code.len;
    while (close > open + 3 && memcmp(close - 3, "```", 3) != 0) {
        close--;
    }
    if (line == NULL || close - 3 <= line) {
        return code;
    }
    return trim((struct part){line + 1, (size_t)(close - 3 - line - 1)});
}

/* ---- tools ---- */

static bool requires(const struct tool *tool, const char *name)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, json_member(tool->parameters, "required"))
    {
        if (json_is(one, name)) {
            return true;
        }
    }
    return false;
}

static bool requires_string(const struct tool *tool, const char *name)
{
    const cJSON *properties = json_member(tool->parameters, "properties");
    return json_is(json_member(json_member(properties, name), "type"), "string") &&
           requires(tool, name);
}

/* A shell: a command is all that it asks for. (An editor has commands too, and asks for a path.) */
static bool is_shell(const struct tool *tool)
{
    return requires_string(tool, "command") &&
           cJSON_GetArraySize(json_member(tool->parameters, "required")) == 1;
}

static bool may_call(const struct conversation *c, const struct tool *tool)
{
    return c->choice != CHOICE_NONE && tool->allowed &&
           (c->choice != CHOICE_NAMED || strcmp(tool->name, c->choice_name) == 0);
}

/* One whose name starts with `prefix` comes first, then any that requires the string `parameter`. */
static const struct tool *find_tool(const struct conversation *c, const char *prefix,
                                    const char *parameter)
{
    const struct tool *found = NULL;
    for (size_t i = 0; i < c->tools_count; i++) {
        const struct tool *tool = &c->tools[i];
        if (!may_call(c, tool) || !requires_string(tool, parameter)) {
            continue;
        }
        if (strncmp(tool->name, prefix, strlen(prefix)) == 0) {
            return tool;
        }
        found = found == NULL ? tool : found;
    }
    return found;
}

static const struct tool *find_shell(const struct conversation *c)
{
    for (size_t i = 0; i < c->tools_count; i++) {
        if (may_call(c, &c->tools[i]) && is_shell(&c->tools[i])) {
            return &c->tools[i];
        }
    }
    return NULL;
}

static struct reply_call *add_call(struct reply *r, const char *name, size_t name_len)
{
    if (r->calls_count == CALLS_MAX) {
        return NULL;
    }
    struct reply_call *call = &r->calls[r->calls_count++];
    *call = (struct reply_call){0};
    text_put(&call->name, name, name_len);
    return call;
}

static void call_with(struct reply *r, const char *name, const char *parameter, struct part value)
{
    struct reply_call *call = add_call(r, name, strlen(name));
    if (call != NULL) {
        text_printf(&call->arguments, "{\"%s\": ", parameter);
        text_json(&call->arguments, value.data, value.len);
        text_puts(&call->arguments, "}");
    }
}

/* Python by way of a shell, as a here-document: nothing in the code needs quotes. */
static void call_shell(struct reply *r, const char *name, struct part code)
{
    TEXT_CLEANUP struct text command = {0};
    text_puts(&command, "python3 - <<'EOF'\n");
    text_put(&command, code.data, code.len);
    text_puts(&command, "\nEOF");
    if (!command.overflow) {
        call_with(r, name, "command", (struct part){command.data, command.len});
    }
}

/* A tool choice that forces a call gets one: every string that it requires is the prompt. */
static void call_forced(struct reply *r, const struct conversation *c)
{
    const struct tool *tool = NULL;
    for (size_t i = 0; tool == NULL && i < c->tools_count; i++) {
        tool = may_call(c, &c->tools[i]) ? &c->tools[i] : NULL;
    }
    struct reply_call *call = tool == NULL ? NULL : add_call(r, tool->name, strlen(tool->name));
    if (call == NULL) {
        return;
    }
    const cJSON *one;
    text_puts(&call->arguments, "{");
    cJSON_ArrayForEach(one, json_member(tool->parameters, "required"))
    {
        if (cJSON_IsString(one) && requires_string(tool, one->valuestring)) {
            text_puts(&call->arguments, call->arguments.len > 1 ? ", " : "");
            text_json(&call->arguments, one->valuestring, strlen(one->valuestring));
            text_puts(&call->arguments, ": ");
            text_put_json_string(&call->arguments, &c->user);
        }
    }
    text_puts(&call->arguments, "}");
}

/* ---- the decision ---- */

static void say_in_words(struct reply *r, bool asks_to_run, struct part query)
{
    text_puts(&r->content, asks_to_run ? "I cannot run code here, so I do not know the result."
                           : query.len > 0
                               ? "I cannot search the web here, so I do not know."
                               : "I am the mock model. I call a tool when I am asked to 'run this "
                                 "Python code: ...', to 'run this shell command: ...' or to "
                                 "'search the web for: ...'; to anything "
                                 "else this is my answer.");
}

void reply_decide(struct reply *r, const struct conversation *c)
{
    bool forced = c->choice == CHOICE_REQUIRED || c->choice == CHOICE_NAMED;
    if (c->ends_with_results && !forced) {
        text_puts(&r->content, "The result is: ");
        text_put(&r->content, c->results.data, c->results.len);
        return;
    }
    struct part code = without_fence(text_after(&c->user, "python code"));
    struct part command = without_fence(text_after(&c->user, "shell command"));
    struct part query = text_after(&c->user, "search the web");
    const struct tool *tool;
    if (code.len > 0 && (tool = find_tool(c, "code_interpreter", "code")) != NULL) {
        call_with(r, tool->name, "code", code);
    } else if (code.len > 0 && (tool = find_shell(c)) != NULL) {
        call_shell(r, tool->name, code);
    } else if (command.len > 0 && (tool = find_shell(c)) != NULL) {
        call_with(r, tool->name, "command", command);
    } else if (query.len > 0 && (tool = find_tool(c, "web_search", "query")) != NULL) {
        call_with(r, tool->name, "query", query);
    } else if (forced) {
        call_forced(r, c);
    }
    if (r->calls_count == 0) {
        say_in_words(r, code.len > 0 || command.len > 0, query);
    }
}

static const char *or_empty(const char *text)
{
    return text == NULL ? "" : text;
}

void reply_follow(struct reply *r, const struct script_entry *entry)
{
    text_puts(&r->content, or_empty(entry->text));
    text_puts(&r->reasoning, or_empty(entry->reasoning));
    if (entry->call != NULL && entry->call[0] != '\0') {
        struct reply_call *call = add_call(r, entry->call, strlen(entry->call));
        text_puts(&call->arguments, or_empty(entry->arguments));
    }
    for (size_t i = 0; entry->calls != NULL && entry->calls[i] != NULL; i++) {
        size_t name_len = strcspn(entry->calls[i], " ");
        struct reply_call *call = add_call(r, entry->calls[i], name_len);
        if (call != NULL) {
            const char *arguments = entry->calls[i] + name_len;
            text_puts(&call->arguments, arguments[0] == ' ' ? arguments + 1 : "");
        }
    }
    r->finish = entry->finish != NULL && entry->finish[0] != '\0' ? entry->finish : NULL;
}

/* Keeps what fits of a text; true if something was cut. */
static bool limit_text(struct text *t, size_t *left)
{
    size_t kept = t->len == 0 ? 0 : text_cut(t->data, t->len, *left);
    bool cut = kept < t->len;
    if (cut) {
        t->data[kept] = '\0';
        t->len = kept;
        *left = 0;
    } else {
        *left -= kept;
    }
    return cut;
}

void reply_limit(struct reply *r, int64_t tokens_max)
{
    if (tokens_max < 0 || tokens_max > INT64_MAX / 4) {
        return;
    }
    size_t left = (size_t)tokens_max * 4;
    r->cut = limit_text(&r->reasoning, &left);
    r->cut = limit_text(&r->content, &left) || r->cut;
    size_t kept = 0;
    while (kept < r->calls_count && !r->cut) {
        r->cut = limit_text(&r->calls[kept++].arguments, &left);
    }
    while (r->calls_count > kept) { /* never begun */
        r->calls_count--;
        text_clear(&r->calls[r->calls_count].name);
        text_clear(&r->calls[r->calls_count].arguments);
    }
}
