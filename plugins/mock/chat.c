/* Writing Chat Completions: the completion, and the chunks that build it up. */
#include "chat.h"

#include "openai.h"

#include <inttypes.h>

static const char *finish_of(const struct reply *r)
{
    return r->finish != NULL    ? r->finish
           : r->cut             ? "length"
           : r->calls_count > 0 ? "tool_calls"
                                : "stop";
}

static void put_usage(const struct answer *a, struct text *out)
{
    struct reply_usage usage = reply_usage(a->reply, a->conversation);
    text_printf(out,
                "{\"prompt_tokens\":%zu,\"completion_tokens\":%zu,\"total_tokens\":%zu,"
                "\"prompt_tokens_details\":{\"cached_tokens\":0,\"audio_tokens\":0},"
                "\"completion_tokens_details\":{\"reasoning_tokens\":%zu,\"audio_tokens\":0,"
                "\"accepted_prediction_tokens\":0,\"rejected_prediction_tokens\":0}}",
                usage.input, usage.output, usage.input + usage.output, usage.reasoning);
}

/* "call_mockN_INDEX" */
static void put_call_id(const struct reply *r, size_t index, struct text *out)
{
    text_printf(out, "\"call_mock%lld_%zu\"", r->number, index);
}

static void put_calls(const struct reply *r, struct text *out)
{
    text_puts(out, ",\"tool_calls\":[");
    for (size_t i = 0; i < r->calls_count; i++) {
        text_puts(out, i == 0 ? "{\"id\":" : ",{\"id\":");
        put_call_id(r, i, out);
        text_puts(out, ",\"type\":\"function\",\"function\":{\"name\":");
        text_put_json_string(out, &r->calls[i].name);
        text_puts(out, ",\"arguments\":");
        text_put_json_string(out, &r->calls[i].arguments);
        text_puts(out, "}}");
    }
    text_puts(out, "]");
}

static void put_head(const struct answer *a, const char *object, struct text *out)
{
    text_printf(
        out, "{\"id\":\"chatcmpl-mock%lld\",\"object\":\"%s\",\"created\":%" PRId64 ",\"model\":",
        a->reply->number, object, a->reply->created);
    text_json(out, a->conversation->model, strlen(a->conversation->model));
    text_puts(out, ",\"system_fingerprint\":\"fp_mock\"");
}

static void write_json(const struct answer *a, struct pieces *p)
{
    const struct reply *r = a->reply;
    struct text *out = &p->bytes;
    put_head(a, "chat.completion", out);
    text_puts(out, ",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":");
    if (r->content.len == 0 && r->calls_count > 0) {
        text_puts(out, "null");
    } else {
        text_put_json_string(out, &r->content);
    }
    text_puts(out, ",\"refusal\":null");
    if (r->reasoning.len > 0) {
        text_puts(out, ",\"reasoning_content\":");
        text_put_json_string(out, &r->reasoning);
    }
    if (r->calls_count > 0) {
        put_calls(r, out);
    }
    text_puts(out, "},\"logprobs\":null,\"finish_reason\":");
    text_json(out, finish_of(r), strlen(finish_of(r)));
    text_puts(out, "}],\"usage\":");
    put_usage(a, out);
    text_puts(out, "}");
    pieces_end(p);
}

struct stream {
    const struct answer *answer;
    struct pieces *pieces;
};

/* Up to where the delta stands. */
static void begin_chunk(const struct answer *a, struct text *out)
{
    text_puts(out, "data: ");
    put_head(a, "chat.completion.chunk", out);
    text_puts(out, ",\"choices\":[{\"index\":0,\"delta\":{");
}

static void end_chunk(const struct answer *a, const char *finish, struct text *out)
{
    text_puts(out, "},\"logprobs\":null,\"finish_reason\":");
    if (finish == NULL) {
        text_puts(out, "null");
    } else {
        text_json(out, finish, strlen(finish));
    }
    text_puts(out, "}]");
    text_puts(out, a->conversation->include_usage ? ",\"usage\":null}\n\n" : "}\n\n");
}

static struct text *begin_delta(struct stream *s)
{
    begin_chunk(s->answer, &s->pieces->bytes);
    return &s->pieces->bytes;
}

static void end_delta(struct stream *s, const char *finish)
{
    end_chunk(s->answer, finish, &s->pieces->bytes);
    pieces_end(s->pieces);
}

static void stream_text(struct stream *s, const char *key, const struct text *text)
{
    for (size_t at = 0; at < text->len;) {
        size_t len = piece_length(text, at, s->answer->chunk);
        struct text *out = begin_delta(s);
        text_printf(out, "\"%s\":", key);
        text_json(out, text->data + at, len);
        end_delta(s, NULL);
        at += len;
    }
}

static void stream_call(struct stream *s, size_t index)
{
    const struct reply_call *call = &s->answer->reply->calls[index];
    struct text *out = begin_delta(s);
    text_printf(out, "\"tool_calls\":[{\"index\":%zu,\"id\":", index);
    put_call_id(s->answer->reply, index, out);
    text_puts(out, ",\"type\":\"function\",\"function\":{\"name\":");
    text_put_json_string(out, &call->name);
    text_puts(out, ",\"arguments\":\"\"}}]");
    end_delta(s, NULL);
    for (size_t at = 0; at < call->arguments.len;) {
        size_t len = piece_length(&call->arguments, at, s->answer->chunk);
        out = begin_delta(s);
        text_printf(out, "\"tool_calls\":[{\"index\":%zu,\"function\":{\"arguments\":", index);
        text_json(out, call->arguments.data + at, len);
        text_puts(out, "}}]");
        end_delta(s, NULL);
        at += len;
    }
}

static void write_stream(const struct answer *a, struct pieces *p)
{
    const struct reply *r = a->reply;
    struct stream s = {a, p};
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
    if (a->conversation->include_usage) {
        text_puts(&p->bytes, "data: ");
        put_head(a, "chat.completion.chunk", &p->bytes);
        text_puts(&p->bytes, ",\"choices\":[],\"usage\":");
        put_usage(a, &p->bytes);
        text_puts(&p->bytes, "}\n\n");
        pieces_end(p);
    }
    text_puts(&p->bytes, "data: [DONE]\n\n");
    pieces_end(p);
}

static void write_text_event(const struct answer *a, size_t number, const struct text *text,
                             struct text *out)
{
    (void)number; /* chunks have none */
    begin_chunk(a, out);
    text_puts(out, "\"content\":");
    text_put_json_string(out, text);
    end_chunk(a, NULL, out);
}

static void write_error_event(const struct answer *a, size_t events, const struct problem *problem,
                              struct pieces *p)
{
    (void)a, (void)events; /* an error names no answer */
    text_puts(&p->bytes, "data: ");
    openai_write_error(problem, 500, &p->bytes);
    text_puts(&p->bytes, "\n\n");
    pieces_end(p);
    text_puts(&p->bytes, "data: [DONE]\n\n");
    pieces_end(p);
}

const struct form form_chat = {
    .name = "chat",
    .read = chat_read,
    .check = chat_check,
    .write_json = write_json,
    .write_stream = write_stream,
    .write_error = openai_write_error,
    .write_error_event = write_error_event,
    .opening_events = 1,
    .write_text_event = write_text_event,
    .json_up_to_text = "{\"choices\":[{\"index\":0,\"message\":{\"content\":\"",
};
