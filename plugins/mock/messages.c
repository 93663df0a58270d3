/* Writing Messages: the message, its blocks, and the events that build them up. */
#include "messages.h"

/* ---- blocks ---- */

enum block_kind { BLOCK_THINKING, BLOCK_TEXT, BLOCK_CALL };

struct block {
    enum block_kind kind;
    size_t call; /* index, BLOCK_CALL */
};

#define BLOCKS_MAX (CALLS_MAX + 2)

static size_t blocks_of(const struct reply *r, struct block blocks[BLOCKS_MAX])
{
    size_t count = 0;
    if (r->reasoning.len > 0) {
        blocks[count++] = (struct block){BLOCK_THINKING, 0};
    }
    if (r->content.len > 0) {
        blocks[count++] = (struct block){BLOCK_TEXT, 0};
    }
    for (size_t i = 0; i < r->calls_count; i++) {
        blocks[count++] = (struct block){BLOCK_CALL, i};
    }
    return count;
}

static void put_signature(const struct reply *r, struct text *out)
{
    text_printf(out, "\"signature-mock%lld\"", r->number);
}

/* An input is JSON here. Arguments that are none come as a text, and none where the token limit has cut them. */
static void put_input(const struct reply *r, const struct text *arguments, struct text *out)
{
    if (arguments->len > 0 && json_text_is_valid(arguments->data)) {
        text_put(out, arguments->data, arguments->len);
    } else if (arguments->len == 0 || r->cut) {
        text_puts(out, "{}");
    } else {
        text_put_json_string(out, arguments);
    }
}

static void put_call_head(const struct reply *r, size_t index, struct text *out)
{
    text_printf(out, "{\"type\":\"tool_use\",\"id\":\"toolu_mock%lld_%zu\",\"name\":", r->number,
                index);
    text_put_json_string(out, &r->calls[index].name);
    text_puts(out, ",\"input\":");
}

static void put_block(const struct reply *r, struct block block, struct text *out)
{
    if (block.kind == BLOCK_THINKING) {
        text_puts(out, "{\"type\":\"thinking\",\"thinking\":");
        text_put_json_string(out, &r->reasoning);
        text_puts(out, ",\"signature\":");
        put_signature(r, out);
    } else if (block.kind == BLOCK_TEXT) {
        text_puts(out, "{\"type\":\"text\",\"text\":");
        text_put_json_string(out, &r->content);
    } else {
        put_call_head(r, block.call, out);
        put_input(r, &r->calls[block.call].arguments, out);
    }
    text_puts(out, "}");
}

/* ---- the message ---- */

/* Scripts may use the words of chat. */
static const char *stop_reason(const struct reply *r)
{
    static const char *const words[][2] = {{"stop", "end_turn"},
                                           {"length", "max_tokens"},
                                           {"tool_calls", "tool_use"},
                                           {"content_filter", "refusal"}};
    if (r->finish == NULL) {
        return r->cut ? "max_tokens" : r->calls_count > 0 ? "tool_use" : "end_turn";
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(r->finish, words[i][0]) == 0) {
            return words[i][1];
        }
    }
    return r->finish;
}

static void put_usage(const struct answer *a, size_t output_tokens, struct text *out)
{
    text_printf(
        out,
        "{\"input_tokens\":%zu,\"cache_creation_input_tokens\":0,"
        "\"cache_read_input_tokens\":0,\"output_tokens\":%zu,\"service_tier\":\"standard\"}",
        reply_usage(a->reply, a->conversation).input, output_tokens);
}

static void put_stop(const char *reason, struct text *out)
{
    text_puts(out, "\"stop_reason\":");
    if (reason == NULL) {
        text_puts(out, "null");
    } else {
        text_json(out, reason, strlen(reason));
    }
    text_puts(out, ",\"stop_sequence\":null");
}

static void put_message_head(const struct answer *a, struct text *out)
{
    text_printf(out,
                "{\"id\":\"msg_mock%lld\",\"type\":\"message\",\"role\":\"assistant\",\"model\":",
                a->reply->number);
    text_json(out, a->conversation->model, strlen(a->conversation->model));
    text_puts(out, ",\"content\":[");
}

static void write_json(const struct answer *a, struct pieces *p)
{
    struct text *out = &p->bytes;
    struct block blocks[BLOCKS_MAX];
    size_t count = blocks_of(a->reply, blocks);
    put_message_head(a, out);
    for (size_t i = 0; i < count; i++) {
        text_puts(out, i == 0 ? "" : ",");
        put_block(a->reply, blocks[i], out);
    }
    text_puts(out, "],");
    put_stop(stop_reason(a->reply), out);
    text_puts(out, ",\"usage\":");
    put_usage(a, reply_usage(a->reply, a->conversation).output, out);
    text_puts(out, "}");
    pieces_end(p);
}

/* ---- events ---- */

static void begin_event(const char *type, struct text *out)
{
    text_printf(out, "event: %s\ndata: {\"type\":\"%s\"", type, type);
}

static void end_event(struct text *out)
{
    text_puts(out, "}\n\n");
}

struct stream {
    const struct answer *answer;
    struct pieces *pieces;
    size_t index; /* of the block */
};

static struct text *begin(struct stream *s, const char *type)
{
    begin_event(type, &s->pieces->bytes);
    return &s->pieces->bytes;
}

static void end(struct stream *s)
{
    end_event(&s->pieces->bytes);
    pieces_end(s->pieces);
}

static void write_start(struct stream *s)
{
    struct text *out = begin(s, "message_start");
    text_puts(out, ",\"message\":");
    put_message_head(s->answer, out);
    text_puts(out, "],");
    put_stop(NULL, out);
    text_puts(out, ",\"usage\":");
    put_usage(s->answer, 1, out);
    text_puts(out, "}");
    end(s);
}

static void begin_delta(const char *type, const char *key, size_t index, struct text *out)
{
    begin_event("content_block_delta", out);
    text_printf(out, ",\"index\":%zu,\"delta\":{\"type\":\"%s\",\"%s\":", index, type, key);
}

static void write_deltas(struct stream *s, const char *type, const char *key,
                         const struct text *text)
{
    for (size_t at = 0; at < text->len;) {
        size_t len = piece_length(text, at, s->answer->chunk);
        begin_delta(type, key, s->index, &s->pieces->bytes);
        text_json(&s->pieces->bytes, text->data + at, len);
        text_puts(&s->pieces->bytes, "}");
        end(s);
        at += len;
    }
}

static void put_empty_block(const struct reply *r, struct block block, struct text *out)
{
    if (block.kind == BLOCK_CALL) {
        put_call_head(r, block.call, out);
        text_puts(out, "{}}");
    } else {
        text_puts(out, block.kind == BLOCK_TEXT
                           ? "{\"type\":\"text\",\"text\":\"\"}"
                           : "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}");
    }
}

static void write_thinking(struct stream *s)
{
    const struct reply *r = s->answer->reply;
    write_deltas(s, "thinking_delta", "thinking", &r->reasoning);
    begin_delta("signature_delta", "signature", s->index, &s->pieces->bytes);
    put_signature(r, &s->pieces->bytes);
    text_puts(&s->pieces->bytes, "}");
    end(s);
}

static void write_call(struct stream *s, const struct reply_call *call)
{
    begin_delta("input_json_delta", "partial_json", s->index, &s->pieces->bytes);
    text_puts(&s->pieces->bytes, "\"\"}");
    end(s);
    write_deltas(s, "input_json_delta", "partial_json", &call->arguments);
}

static void write_block(struct stream *s, struct block block)
{
    const struct reply *r = s->answer->reply;
    struct text *out = begin(s, "content_block_start");
    text_printf(out, ",\"index\":%zu,\"content_block\":", s->index);
    put_empty_block(r, block, out);
    end(s);
    if (block.kind == BLOCK_THINKING) {
        write_thinking(s);
    } else if (block.kind == BLOCK_TEXT) {
        write_deltas(s, "text_delta", "text", &r->content);
    } else {
        write_call(s, &r->calls[block.call]);
    }
    out = begin(s, "content_block_stop");
    text_printf(out, ",\"index\":%zu", s->index);
    end(s);
}

static void write_stream(const struct answer *a, struct pieces *p)
{
    struct block blocks[BLOCKS_MAX];
    size_t count = blocks_of(a->reply, blocks);
    struct stream s = {.answer = a, .pieces = p};
    write_start(&s);
    for (s.index = 0; s.index < count; s.index++) {
        write_block(&s, blocks[s.index]);
    }
    struct text *out = begin(&s, "message_delta");
    text_puts(out, ",\"delta\":{");
    put_stop(stop_reason(a->reply), out);
    text_puts(out, "},\"usage\":");
    put_usage(a, reply_usage(a->reply, a->conversation).output, out);
    end(&s);
    begin(&s, "message_stop");
    end(&s);
}

static void write_text_event(const struct answer *a, size_t number, const struct text *text,
                             struct text *out)
{
    (void)a, (void)number; /* blocks are told by their index alone */
    begin_delta("text_delta", "text", 0, out);
    text_put_json_string(out, text);
    text_puts(out, "}");
    end_event(out);
}

/* ---- errors ---- */

static const char *type_of(int status)
{
    switch (status) {
    case 401:
        return "authentication_error";
    case 402:
        return "billing_error";
    case 403:
        return "permission_error";
    case 404:
        return "not_found_error";
    case 413:
        return "request_too_large";
    case 429:
        return "rate_limit_error";
    case 504:
        return "timeout_error";
    case 529:
        return "overloaded_error";
    default:
        return status >= 500 ? "api_error" : "invalid_request_error";
    }
}

static void put_error(const struct problem *problem, int status, struct text *out)
{
    text_printf(out, ",\"error\":{\"type\":\"%s\",\"message\":", type_of(status));
    text_put_json_string(out, &problem->message);
    text_puts(out, "}");
}

static void write_error(const struct problem *problem, int status, struct text *out)
{
    text_puts(out, "{\"type\":\"error\"");
    put_error(problem, status, out);
    text_puts(out, ",\"request_id\":\"req_mock\"}");
}

static void write_error_event(const struct answer *a, size_t events, const struct problem *problem,
                              struct pieces *p)
{
    (void)a, (void)events; /* an error names no message */
    begin_event("error", &p->bytes);
    put_error(problem, 500, &p->bytes);
    end_event(&p->bytes);
    pieces_end(p);
}

const struct form form_messages = {
    .name = "messages",
    .read = messages_read,
    .check = messages_check,
    .write_json = write_json,
    .write_stream = write_stream,
    .write_error = write_error,
    .write_error_event = write_error_event,
    .opening_events = 2, /* the message, the block */
    .write_text_event = write_text_event,
    .json_up_to_text = "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":"
                       "\"text\",\"text\":\"",
};
