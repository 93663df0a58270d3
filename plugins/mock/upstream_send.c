/* The mock upstream's answers on their way out: heads, pieces in their time, faults. */
#include "upstream_send.h"

static void put_header(struct text *out, const char *name, const char *value)
{
    text_puts(out, out->data[out->len - 1] == '{' ? "" : ", ");
    text_json(out, name, strlen(name));
    text_puts(out, ": ");
    text_json(out, value, strlen(value));
}

static int send_head(struct sending *s, int status, struct sg_error *err)
{
    TEXT_CLEANUP struct text head = {0};
    text_printf(&head, "{\"status\": %d, \"headers\": {", status);
    if (head.overflow) {
        return sg->fail(err, SG_E_INTERNAL, "no memory");
    }
    put_header(&head, "content-type", s->stream ? "text/event-stream" : "application/json");
    const struct script_entry *entry = s->entry;
    if (entry != NULL && entry->retry_after != NULL && entry->retry_after[0] != '\0') {
        put_header(&head, "retry-after", entry->retry_after);
    }
    for (size_t i = 0; entry != NULL && i < entry->headers.count; i++) {
        put_header(&head, entry->headers.keys[i], entry->headers.values[i]);
    }
    text_puts(&head, "}}");
    return head.overflow ? sg->fail(err, SG_E_INTERNAL, "no memory")
                         : sg->emit(s->call, SG_OUT_HEAD, head.data, head.len, err);
}

static int64_t chunk_delay_of(const struct sending *s)
{
    return s->entry != NULL && s->entry->chunk_delay > 0 ? s->entry->chunk_delay
                                                         : s->upstream->config->chunk_delay;
}

/* The first `count` pieces. */
static int send_pieces(struct sending *s, const struct pieces *p, size_t count,
                       struct sg_error *err)
{
    size_t from = 0;
    int code = 0;
    int64_t delay = chunk_delay_of(s);
    for (size_t i = 0; code == 0 && i < count; i++) {
        size_t end;
        memcpy(&end, p->ends.data + i * sizeof end, sizeof end);
        if (i > 0 && delay > 0) {
            code = sg->sleep(s->call, delay, err);
        }
        if (code == 0) {
            code = sg->emit(s->call, SG_OUT_DATA, p->bytes.data + from, end - from, err);
        }
        from = end;
    }
    return code;
}

/* Half of a stream's events, half of a body's bytes. */
static int send_half(struct sending *s, const struct pieces *p, struct sg_error *err)
{
    if (pieces_count(p) > 1) {
        return send_pieces(s, p, pieces_count(p) / 2, err);
    }
    return sg->emit(s->call, SG_OUT_DATA, p->bytes.data, p->bytes.len / 2, err);
}

int send_nothing(struct sending *s, struct sg_error *err)
{
    int code = 0;
    while (code == 0) {
        code = sg->sleep(s->call, 3600000, err);
    }
    return code;
}

int send_error(struct sending *s, const struct problem *problem, int status, struct sg_error *err)
{
    TEXT_CLEANUP struct text body = {0};
    s->stream = false;
    s->form->write_error(problem, status, &body);
    int code = send_head(s, status, err);
    if (code != 0 || body.overflow) {
        return code != 0 ? code : sg->fail(err, SG_E_INTERNAL, "no memory");
    }
    return sg->emit(s->call, SG_OUT_DATA, body.data, body.len, err);
}

static void put_words(struct text *out)
{
    while (out->len < 4096 && !out->overflow) {
        text_puts(out, "flood ");
    }
}

static int flood_json(struct sending *s, struct sg_error *err)
{
    const char *begin = s->form->json_up_to_text;
    TEXT_CLEANUP struct text words = {0};
    put_words(&words);
    int code = sg->emit(s->call, SG_OUT_DATA, begin, strlen(begin), err);
    while (code == 0) {
        code = sg->emit(s->call, SG_OUT_DATA, words.data, words.len, err);
    }
    return code;
}

/* Text without end, in the stream's form where there is one. */
static int flood(struct sending *s, const struct answer *a, const struct pieces *p,
                 struct sg_error *err)
{
    if (!s->stream) {
        return flood_json(s, err);
    }
    size_t count = pieces_count(p);
    size_t number = s->form->opening_events < count ? s->form->opening_events : count;
    TEXT_CLEANUP struct text words = {0};
    TEXT_CLEANUP struct text event = {0};
    put_words(&words);
    int code = send_pieces(s, p, number, err);
    while (code == 0) {
        text_clear(&event);
        s->form->write_text_event(a, number++, &words, &event);
        code = sg->emit(s->call, SG_OUT_DATA, event.data, event.len, err);
    }
    return code;
}

static int send_garbage(struct sending *s, struct sg_error *err)
{
    static const char stream[] = "data: {\"choices\":[{\"delta\":{\"content\":\"\xFF\"}\n\n"
                                 "nonsense\ndata: 7\n\ndata: {\"choices\":\n\n\0\0";
    static const char body[] = "<html>\xFF\0{\"choices\":";
    return s->stream ? sg->emit(s->call, SG_OUT_DATA, stream, sizeof stream - 1, err)
                     : sg->emit(s->call, SG_OUT_DATA, body, sizeof body - 1, err);
}

static int send_error_event(struct sending *s, const struct answer *a, const struct pieces *p,
                            struct sg_error *err)
{
    struct problem problem = {.code = "server_error"};
    text_puts(&problem.message, "mock upstream: the model failed");
    struct pieces end = {0};
    int code;
    if (s->stream) {
        s->form->write_error_event(a, pieces_count(p) / 2, &problem, &end);
        code = send_head(s, 200, err);
        code = code != 0 ? code : send_half(s, p, err);
        code = code != 0 ? code : send_pieces(s, &end, pieces_count(&end), err);
    } else {
        code = send_error(s, &problem, 500, err);
    }
    pieces_clear(&end);
    text_clear(&problem.message);
    return code;
}

int send_answer(struct sending *s, const struct answer *a, const struct pieces *p,
                struct sg_error *err)
{
    const char *fault = s->entry == NULL ? "none" : s->entry->fault;
    int status = s->entry == NULL ? 200 : (int)s->entry->status;
    if (p->bytes.overflow || p->ends.overflow) {
        return sg->fail(err, SG_E_LIMIT, "the answer is longer than 64 MiB");
    }
    if (fault_is(fault, "error_event")) {
        return send_error_event(s, a, p, err);
    }
    int code = send_head(s, status, err);
    if (code != 0) {
        return code;
    }
    if (fault_is(fault, "flood")) {
        return flood(s, a, p, err);
    }
    if (fault_is(fault, "garbage")) {
        return send_garbage(s, err);
    }
    if (!fault_is(fault, "cut") && !fault_is(fault, "stall") && !fault_is(fault, "reset")) {
        return send_pieces(s, p, pieces_count(p), err);
    }
    code = send_half(s, p, err);
    if (code != 0 || fault_is(fault, "cut")) {
        return code;
    }
    return fault_is(fault, "stall") ? send_nothing(s, err)
                                    : sg->fail(err, SG_E_UNAVAILABLE, "the connection was reset");
}
