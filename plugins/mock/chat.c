/* Chat Completions as the mock upstream speaks them: reading a request, writing an answer. */
#include "chat.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- reading ---- */

bool json_is(const cJSON *string, const char *text)
{
    return cJSON_IsString(string) && strcmp(string->valuestring, text) == 0;
}

const cJSON *json_member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* A message's content: a string, or parts with a text each. */
static void put_content(struct text *out, const cJSON *content)
{
    if (cJSON_IsString(content)) {
        text_puts(out, content->valuestring);
        return;
    }
    const cJSON *part;
    bool first = true;
    cJSON_ArrayForEach(part, content)
    {
        const cJSON *text = json_member(part, "text");
        if (cJSON_IsString(text)) {
            text_puts(out, first ? "" : "\n");
            text_puts(out, text->valuestring);
            first = false;
        }
    }
}

static void read_messages(const cJSON *messages, struct conversation *c)
{
    const cJSON *message;
    bool was_tool = false;
    c->turn = 1;
    cJSON_ArrayForEach(message, messages)
    {
        const cJSON *role = json_member(message, "role");
        bool is_tool = json_is(role, "tool");
        if (json_is(role, "user")) {
            text_clear(&c->user);
            put_content(&c->user, json_member(message, "content"));
            c->turn = 1;
        } else if (is_tool) {
            c->turn += !was_tool;
            if (!was_tool) {
                text_clear(&c->results);
            }
            text_puts(&c->results, was_tool ? "\n" : "");
            put_content(&c->results, json_member(message, "content"));
        }
        was_tool = is_tool;
    }
    c->ends_with_results = was_tool;
}

static void read_tools(const cJSON *tools, struct conversation *c)
{
    const cJSON *tool;
    cJSON_ArrayForEach(tool, tools)
    {
        const cJSON *function = json_member(tool, "function");
        const cJSON *name = json_member(function, "name");
        if (json_is(json_member(tool, "type"), "function") && cJSON_IsString(name) &&
            c->tools_count < TOOLS_MAX) {
            c->tools[c->tools_count++] =
                (struct tool){name->valuestring, json_member(function, "parameters"), true};
        }
    }
}

static void set_choice(struct conversation *c, const cJSON *mode)
{
    c->choice = json_is(mode, "none")       ? CHOICE_NONE
                : json_is(mode, "required") ? CHOICE_REQUIRED
                                            : CHOICE_AUTO;
}

static void read_allowed(const cJSON *allowed, struct conversation *c)
{
    set_choice(c, json_member(allowed, "mode"));
    for (size_t i = 0; i < c->tools_count; i++) {
        c->tools[i].allowed = false;
        const cJSON *one;
        cJSON_ArrayForEach(one, json_member(allowed, "tools"))
        {
            const cJSON *name = json_member(json_member(one, "function"), "name");
            c->tools[i].allowed |= json_is(name, c->tools[i].name);
        }
    }
}

static void read_choice(const cJSON *choice, struct conversation *c)
{
    const cJSON *name = json_member(json_member(choice, "function"), "name");
    if (json_is(json_member(choice, "type"), "allowed_tools")) {
        read_allowed(json_member(choice, "allowed_tools"), c);
    } else if (cJSON_IsString(name)) {
        c->choice = CHOICE_NAMED;
        c->choice_name = name->valuestring;
    } else {
        set_choice(c, choice);
    }
}

static void read_request(const cJSON *request, struct conversation *c, struct problem *problem)
{
    const cJSON *model = json_member(request, "model");
    const cJSON *messages = json_member(request, "messages");
    if (!cJSON_IsString(model)) {
        problem_set(problem, "model", NULL, "you must provide a model parameter");
    }
    if (!cJSON_IsArray(messages)) {
        problem_set(problem, "messages", "missing_required_parameter",
                    "Missing required parameter: 'messages'.");
    }
    c->model = cJSON_IsString(model) ? model->valuestring : "";
    c->stream = cJSON_IsTrue(json_member(request, "stream"));
    c->include_usage =
        cJSON_IsTrue(json_member(json_member(request, "stream_options"), "include_usage"));
    const cJSON *limit = json_member(request, "max_completion_tokens");
    limit = cJSON_IsNumber(limit) ? limit : json_member(request, "max_tokens");
    c->tokens_max = cJSON_IsNumber(limit) && limit->valueint >= 0 ? limit->valueint : -1;
    read_messages(messages, c);
    read_tools(json_member(request, "tools"), c);
    read_choice(json_member(request, "tool_choice"), c);
}

/* ---- writing ---- */

static const char *finish_of(const struct reply *r)
{
    return r->finish != NULL ? r->finish : r->calls_count > 0 ? "tool_calls" : "stop";
}

static void put_usage(const struct reply *r, const struct conversation *c, struct text *out)
{
    size_t bytes = r->content.len + r->reasoning.len;
    for (size_t i = 0; i < r->calls_count; i++) {
        bytes += r->calls[i].arguments.len;
    }
    size_t prompt = c->request_bytes / 4, completion = (bytes + 3) / 4;
    text_printf(out,
                "{\"prompt_tokens\":%zu,\"completion_tokens\":%zu,\"total_tokens\":%zu,"
                "\"prompt_tokens_details\":{\"cached_tokens\":0,\"audio_tokens\":0},"
                "\"completion_tokens_details\":{\"reasoning_tokens\":%zu,\"audio_tokens\":0,"
                "\"accepted_prediction_tokens\":0,\"rejected_prediction_tokens\":0}}",
                prompt, completion, prompt + completion, (r->reasoning.len + 3) / 4);
}

/* "call_ID_INDEX", without what JSON would escape. */
static void put_call_id(const struct reply *r, size_t index, struct text *out)
{
    text_printf(out, "\"call_%s_%zu\"", r->id + strlen("chatcmpl-"), index);
}

static void put_json(struct text *out, const struct text *text)
{
    text_json(out, text->len == 0 ? "" : text->data, text->len);
}

static void put_calls(const struct reply *r, struct text *out)
{
    text_puts(out, ",\"tool_calls\":[");
    for (size_t i = 0; i < r->calls_count; i++) {
        text_puts(out, i == 0 ? "{\"id\":" : ",{\"id\":");
        put_call_id(r, i, out);
        text_puts(out, ",\"type\":\"function\",\"function\":{\"name\":");
        put_json(out, &r->calls[i].name);
        text_puts(out, ",\"arguments\":");
        put_json(out, &r->calls[i].arguments);
        text_puts(out, "}}");
    }
    text_puts(out, "]");
}

static void put_head(const struct reply *r, const struct conversation *c, const char *object,
                     struct text *out)
{
    text_printf(out, "{\"id\":\"%s\",\"object\":\"%s\",\"created\":%" PRId64 ",\"model\":", r->id,
                object, r->created);
    text_json(out, c->model, strlen(c->model));
    text_puts(out, ",\"system_fingerprint\":\"fp_mock\"");
}

static void write_json(const struct reply *r, const struct conversation *c, struct pieces *p)
{
    struct text *out = &p->bytes;
    put_head(r, c, "chat.completion", out);
    text_puts(out, ",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":");
    if (r->content.len == 0 && r->calls_count > 0) {
        text_puts(out, "null");
    } else {
        put_json(out, &r->content);
    }
    text_puts(out, ",\"refusal\":null");
    if (r->reasoning.len > 0) {
        text_puts(out, ",\"reasoning_content\":");
        put_json(out, &r->reasoning);
    }
    if (r->calls_count > 0) {
        put_calls(r, out);
    }
    text_puts(out, "},\"logprobs\":null,\"finish_reason\":");
    text_json(out, finish_of(r), strlen(finish_of(r)));
    text_puts(out, "}],\"usage\":");
    put_usage(r, c, out);
    text_puts(out, "}");
    pieces_end(p);
}

struct stream {
    const struct reply *reply;
    const struct conversation *conversation;
    struct pieces *pieces;
    size_t chunk;
};

/* Up to where the delta stands. */
static struct text *begin_delta(struct stream *s)
{
    struct text *out = &s->pieces->bytes;
    text_puts(out, "data: ");
    put_head(s->reply, s->conversation, "chat.completion.chunk", out);
    text_puts(out, ",\"choices\":[{\"index\":0,\"delta\":{");
    return out;
}

static void end_delta(struct stream *s, const char *finish)
{
    struct text *out = &s->pieces->bytes;
    text_puts(out, "},\"logprobs\":null,\"finish_reason\":");
    if (finish == NULL) {
        text_puts(out, "null");
    } else {
        text_json(out, finish, strlen(finish));
    }
    text_puts(out, "}]");
    text_puts(out, s->conversation->include_usage ? ",\"usage\":null}\n\n" : "}\n\n");
    pieces_end(s->pieces);
}

/* The next piece of a text, at least one character. */
static size_t piece_length(const struct text *text, size_t at, size_t chunk)
{
    size_t len = text_cut(text->data + at, text->len - at, chunk);
    size_t character = text_character(text->data + at, text->len - at);
    return len > 0 ? len : character > 0 ? character : 1;
}

static void stream_text(struct stream *s, const char *key, const struct text *text)
{
    for (size_t at = 0; at < text->len;) {
        size_t len = piece_length(text, at, s->chunk);
        struct text *out = begin_delta(s);
        text_printf(out, "\"%s\":", key);
        text_json(out, text->data + at, len);
        end_delta(s, NULL);
        at += len;
    }
}

static void stream_call(struct stream *s, size_t index)
{
    const struct reply_call *call = &s->reply->calls[index];
    struct text *out = begin_delta(s);
    text_printf(out, "\"tool_calls\":[{\"index\":%zu,\"id\":", index);
    put_call_id(s->reply, index, out);
    text_puts(out, ",\"type\":\"function\",\"function\":{\"name\":");
    put_json(out, &call->name);
    text_puts(out, ",\"arguments\":\"\"}}]");
    end_delta(s, NULL);
    for (size_t at = 0; at < call->arguments.len;) {
        size_t len = piece_length(&call->arguments, at, s->chunk);
        out = begin_delta(s);
        text_printf(out, "\"tool_calls\":[{\"index\":%zu,\"function\":{\"arguments\":", index);
        text_json(out, call->arguments.data + at, len);
        text_puts(out, "}}]");
        end_delta(s, NULL);
        at += len;
    }
}

static void write_stream(const struct reply *r, const struct conversation *c, size_t chunk,
                         struct pieces *p)
{
    struct stream s = {r, c, p, chunk};
    bool no_text = r->content.len == 0 && r->calls_count > 0;
    text_puts(begin_delta(&s), no_text
                                   ? "\"role\":\"assistant\",\"content\":null,\"refusal\":null"
                                   : "\"role\":\"assistant\",\"content\":\"\",\"refusal\":null");
    end_delta(&s, NULL);
    stream_text(&s, "reasoning_content", &r->reasoning);
    stream_text(&s, "content", &r->content);
    for (size_t i = 0; i < r->calls_count; i++) {
        stream_call(&s, i);
    }
    begin_delta(&s);
    end_delta(&s, finish_of(r));
    if (c->include_usage) {
        text_puts(&p->bytes, "data: ");
        put_head(r, c, "chat.completion.chunk", &p->bytes);
        text_puts(&p->bytes, ",\"choices\":[],\"usage\":");
        put_usage(r, c, &p->bytes);
        text_puts(&p->bytes, "}\n\n");
        pieces_end(p);
    }
    text_puts(&p->bytes, "data: [DONE]\n\n");
    pieces_end(p);
}

static const char *type_of(int status)
{
    return status == 429   ? "rate_limit_error"
           : status == 401 ? "authentication_error"
           : status >= 500 ? "server_error"
                           : "invalid_request_error";
}

static void write_error(const struct problem *problem, int status, struct text *out)
{
    text_puts(out, "{\"error\":{\"message\":");
    put_json(out, &problem->message);
    text_printf(out, ",\"type\":\"%s\",\"param\":", type_of(status));
    if (problem->param[0] == '\0') {
        text_puts(out, "null");
    } else {
        text_json(out, problem->param, strlen(problem->param));
    }
    text_puts(out, ",\"code\":");
    if (problem->code == NULL) {
        text_puts(out, "null}}");
    } else {
        text_printf(out, "\"%s\"}}", problem->code);
    }
}

static void write_error_event(const struct problem *problem, struct pieces *p)
{
    text_puts(&p->bytes, "data: ");
    write_error(problem, 500, &p->bytes);
    text_puts(&p->bytes, "\n\n");
    pieces_end(p);
    text_puts(&p->bytes, "data: [DONE]\n\n");
    pieces_end(p);
}

const struct form form_chat = {
    .name = "chat",
    .read = read_request,
    .check = chat_check,
    .write_json = write_json,
    .write_stream = write_stream,
    .write_error = write_error,
    .write_error_event = write_error_event,
};
