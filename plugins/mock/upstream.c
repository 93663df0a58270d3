/* The mock upstream: one turn from the request's bytes to the last byte of the answer, with scripts and faults. */
#include "upstream.h"

#include "mock.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define DEPTH_MAX 128

#define FIELD(member) SG_FIELD(struct script_entry, member)

static const struct sg_option script_options[] = {
    {.name = "when",
     .type = SG_STRING,
     FIELD(when),
     .help = "The last user message contains this text, or matches this /regular expression/."},
    {.name = "turn",
     .type = SG_INT,
     FIELD(turn),
     .def = "0",
     .min = "0",
     .help = "Only this turn since the user's message: 1 the first, 2 after results; 0: any."},
    {.name = "times",
     .type = SG_INT,
     FIELD(times),
     .def = "0",
     .min = "0",
     .help = "The entry holds for the first so many turns that it fits; 0: for all."},
    {.name = "text", .type = SG_STRING, FIELD(text), .help = "What is answered."},
    {.name = "reasoning",
     .type = SG_STRING,
     FIELD(reasoning),
     .help = "Reasoning before it, as reasoning_content."},
    {.name = "call", .type = SG_STRING, FIELD(call), .help = "A function that is called."},
    {.name = "arguments",
     .type = SG_STRING,
     FIELD(arguments),
     .help = "Its arguments, exactly as given."},
    {.name = "calls",
     .type = SG_STRINGS,
     FIELD(calls),
     .help = "Several calls, each 'name ARGUMENTS'."},
    {.name = "finish",
     .type = SG_STRING,
     FIELD(finish),
     .help = "The finish reason, in place of stop or tool_calls."},
    {.name = "status",
     .type = SG_INT,
     FIELD(status),
     .def = "200",
     .min = "100",
     .max = "599",
     .help = "The HTTP status; other than 2xx gives an error with the text."},
    {.name = "retry_after",
     .type = SG_STRING,
     FIELD(retry_after),
     .help = "The header of this name."},
    {.name = "headers", .type = SG_MAP, FIELD(headers), .help = "More headers."},
    {.name = "delay", .type = SG_DURATION, FIELD(delay), .help = "Time before the answer."},
    {.name = "chunk_delay",
     .type = SG_DURATION,
     FIELD(chunk_delay),
     .help = "Time between two pieces."},
    {.name = "fault",
     .type = SG_CHOICE,
     FIELD(fault),
     .def = "none",
     .choices = "none|refuse|hang|stall|cut|reset|garbage|flood|error_event",
     .help = "What goes wrong."},
    {.name = "raw",
     .type = SG_STRING,
     FIELD(raw),
     .help = "The answer's body, exactly as given, in place of one made here."},
    {0},
};

#undef FIELD
#define FIELD(member) SG_FIELD(struct upstream_config, member)

static const struct sg_option options[] = {
    {.name = "script",
     .type = SG_LIST,
     FIELD(script),
     .fields = script_options,
     .fields_size = sizeof(struct script_entry),
     .help = "Turns that are given, first match; others the mock model decides."},
    {.name = "delay", .type = SG_DURATION, FIELD(delay), .help = "Time before every answer."},
    {.name = "chunk_delay",
     .type = SG_DURATION,
     FIELD(chunk_delay),
     .help = "Time between two pieces of every answer."},
    {.name = "chunk",
     .type = SG_INT,
     FIELD(chunk),
     .def = "8",
     .min = "1",
     .max = "65536",
     .help = "Bytes of text in one event of a stream; a character is never cut."},
    {.name = "strict",
     .type = SG_BOOL,
     FIELD(strict),
     .def = "false",
     .help = "Refuses unknown fields, tools that are no functions and histories with holes."},
    {.name = "journal",
     .type = SG_STRING,
     FIELD(journal),
     .help = "A file to which every request is appended as a line of JSON."},
    {0},
};

static void upstream_free(struct upstream *u)
{
    patterns_free(u->patterns, u->config->script.count);
    free(u->entries_used);
    journal_close(&u->journal);
    free(u);
}

/* Rules between options: an entry that could never be sent as it stands. */
static int check_script(const struct upstream_config *config, struct sg_error *err)
{
    const struct script_entry *entries = config->script.items;
    for (size_t i = 0; i < config->script.count; i++) {
        size_t calls = 0;
        while (entries[i].calls != NULL && entries[i].calls[calls] != NULL) {
            calls++;
        }
        if (calls >= CALLS_MAX) {
            return sg->fail(err, SG_E_CONFIG, "script entry %zu has more than %d calls", i + 1,
                            CALLS_MAX - 1);
        }
        if (entries[i].arguments != NULL && entries[i].call == NULL) {
            return sg->fail(err, SG_E_CONFIG, "script entry %zu has 'arguments' without 'call'",
                            i + 1);
        }
    }
    return 0;
}

static int open_instance(const void *config, struct sg_call *call, void **ret_self,
                         struct sg_error *err)
{
    (void)call;
    struct upstream *u = calloc(1, sizeof *u);
    if (u == NULL) {
        return sg->fail(err, SG_E_INTERNAL, "no memory");
    }
    u->config = config;
    int code = journal_open(&u->journal, u->config->journal, err);
    if (code == 0) {
        code = check_script(u->config, err);
    }
    if (code == 0) {
        code = patterns_new(&u->config->script, sizeof(struct script_entry), &u->patterns, err);
    }
    if (code == 0) {
        u->entries_used = calloc(u->config->script.count + 1, sizeof *u->entries_used);
        code = u->entries_used == NULL ? sg->fail(err, SG_E_INTERNAL, "no memory") : 0;
    }
    if (code != 0) {
        upstream_free(u);
        return code;
    }
    *ret_self = u;
    return 0;
}

static void close_instance(void *self, struct sg_call *call)
{
    (void)call;
    upstream_free(self);
}

/* ---- sending ---- */

struct sending {
    struct upstream *upstream;
    struct sg_call *call;
    const struct form *form;
    const struct script_entry *entry; /* NULL: none */
    bool stream;                      /* the form of what is sent */
};

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

static size_t pieces_count(const struct pieces *p)
{
    return p->ends.len / sizeof(size_t);
}

/* Half of a stream's events, half of a body's bytes. */
static int send_half(struct sending *s, const struct pieces *p, struct sg_error *err)
{
    if (pieces_count(p) > 1) {
        return send_pieces(s, p, pieces_count(p) / 2, err);
    }
    return sg->emit(s->call, SG_OUT_DATA, p->bytes.data, p->bytes.len / 2, err);
}

static int hang(struct sending *s, struct sg_error *err)
{
    int code = 0;
    while (code == 0) {
        code = sg->sleep(s->call, 3600000, err);
    }
    return code;
}

static int send_error(struct sending *s, const struct problem *problem, int status,
                      struct sg_error *err)
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

/* Text without end, in the stream's form where there is one. */
static int flood(struct sending *s, const struct pieces *p, struct sg_error *err)
{
    static const char body[] = "{\"choices\":[{\"index\":0,\"message\":{\"content\":\"";
    int code = s->stream ? send_pieces(s, p, pieces_count(p) > 1 ? 1 : 0, err)
                         : sg->emit(s->call, SG_OUT_DATA, body, sizeof body - 1, err);
    TEXT_CLEANUP struct text piece = {0};
    if (s->stream) {
        text_puts(&piece, "data: {\"id\":\"chatcmpl-flood\",\"object\":\"chat.completion.chunk\","
                          "\"created\":0,\"model\":\"mock\",\"choices\":[{\"index\":0,\"delta\":"
                          "{\"content\":\"flood ");
    }
    while (piece.len < 4096 && !piece.overflow) {
        text_puts(&piece, "flood ");
    }
    text_puts(&piece, s->stream ? "\"},\"finish_reason\":null}]}\n\n" : "");
    while (code == 0) {
        code = sg->emit(s->call, SG_OUT_DATA, piece.data, piece.len, err);
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

static int send_error_event(struct sending *s, const struct pieces *p, struct sg_error *err)
{
    struct problem problem = {.code = "server_error"};
    text_puts(&problem.message, "mock upstream: the model failed");
    struct pieces end = {0};
    int code;
    if (s->stream) {
        s->form->write_error_event(&problem, &end);
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

static int send_answer(struct sending *s, const struct pieces *p, struct sg_error *err)
{
    const char *fault = s->entry == NULL ? "none" : s->entry->fault;
    int status = s->entry == NULL ? 200 : (int)s->entry->status;
    if (p->bytes.overflow || p->ends.overflow) {
        return sg->fail(err, SG_E_LIMIT, "the answer is longer than 64 MiB");
    }
    if (fault_is(fault, "error_event")) {
        return send_error_event(s, p, err);
    }
    int code = send_head(s, status, err);
    if (code != 0) {
        return code;
    }
    if (fault_is(fault, "flood")) {
        return flood(s, p, err);
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
    return fault_is(fault, "stall") ? hang(s, err)
                                    : sg->fail(err, SG_E_UNAVAILABLE, "the connection was reset");
}

/* ---- one turn ---- */

static const struct form *find_form(const char *surface)
{
    static const struct form *const forms[] = {&form_chat};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (strcmp(forms[i]->name, surface) == 0) {
            return forms[i];
        }
    }
    return NULL;
}

static void write_journal(struct upstream *u, struct sg_call *call, const struct sg_turn *turn)
{
    if (u->journal.fd < 0) {
        return;
    }
    TEXT_CLEANUP struct text line = {.max = (size_t)256 << 20};
    text_puts(&line, "{\"surface\": ");
    text_json(&line, turn->surface, strlen(turn->surface));
    text_puts(&line, ", \"body\": ");
    text_json(&line, turn->json, turn->json_len);
    text_puts(&line, "}");
    if (!line.overflow) {
        journal_write(&u->journal, call, line.data, line.len);
    }
}

/* The parser recurses: what is nested more deeply than any request may be is not handed to it. */
static bool is_shallow(const char *json, size_t len)
{
    size_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < len; i++) {
        if (in_string) {
            in_string = json[i] != '"';
            i += json[i] == '\\';
        } else if (json[i] == '"') {
            in_string = true;
        } else if (json[i] == '{' || json[i] == '[') {
            if (++depth > DEPTH_MAX) {
                return false;
            }
        } else if (json[i] == '}' || json[i] == ']') {
            depth -= depth > 0;
        }
    }
    return true;
}

static const struct script_entry *find_entry(struct upstream *u, const struct conversation *c)
{
    const struct script_entry *entries = u->config->script.items;
    for (size_t i = 0; i < u->config->script.count; i++) {
        if ((entries[i].turn == 0 || entries[i].turn == c->turn) &&
            pattern_matches(&u->patterns[i], c->user.data, c->user.len) &&
            count_allows(&u->entries_used[i], entries[i].times)) {
            return &entries[i];
        }
    }
    return NULL;
}

static bool is_given(const char *text)
{
    return text != NULL && text[0] != '\0';
}

/* A body that is given: a stream if it looks like one. */
static void take_raw(struct sending *s, const char *raw, struct pieces *p)
{
    s->stream = strncmp(raw, "data:", 5) == 0 || strncmp(raw, "event:", 6) == 0 || raw[0] == ':';
    while (*raw != '\0') {
        const char *gap = s->stream ? strstr(raw, "\n\n") : NULL;
        size_t len = gap == NULL ? strlen(raw) : (size_t)(gap - raw) + 2;
        text_put(&p->bytes, raw, len);
        pieces_end(p);
        raw += len;
    }
}

static void make_answer(struct sending *s, const struct conversation *c, struct pieces *p)
{
    struct reply *reply = calloc(1, sizeof *reply);
    if (reply == NULL) {
        p->bytes.overflow = true;
        return;
    }
    snprintf(reply->id, sizeof reply->id, "chatcmpl-mock%lld",
             (long long)atomic_fetch_add(&s->upstream->answers, 1) + 1);
    reply->created = time(NULL);
    if (s->entry != NULL) {
        reply_follow(reply, s->entry);
    } else {
        reply_decide(reply, c);
    }
    reply_limit(reply, c->tokens_max);
    if (s->stream) {
        s->form->write_stream(reply, c, (size_t)s->upstream->config->chunk, p);
    } else {
        s->form->write_json(reply, c, p);
    }
    reply_clear(reply);
    free(reply);
}

static int refuse_by_script(struct sending *s, struct sg_error *err)
{
    struct problem problem = {.code = s->entry->status == 429 ? "rate_limit_exceeded" : NULL};
    text_puts(&problem.message,
              is_given(s->entry->text) ? s->entry->text : "mock upstream: refused by its script");
    int code = send_error(s, &problem, (int)s->entry->status, err);
    text_clear(&problem.message);
    return code;
}

static int answer(struct sending *s, const struct conversation *c, struct sg_error *err)
{
    int64_t delay = s->upstream->config->delay + (s->entry == NULL ? 0 : s->entry->delay);
    int code = delay > 0 ? sg->sleep(s->call, delay, err) : 0;
    if (code != 0) {
        return code;
    }
    if (s->entry != NULL && fault_is(s->entry->fault, "refuse")) {
        return sg->fail(err, SG_E_UNAVAILABLE, "the connection was refused");
    }
    if (s->entry != NULL && fault_is(s->entry->fault, "hang")) {
        return hang(s, err);
    }
    bool is_raw = s->entry != NULL && is_given(s->entry->raw);
    if (!is_raw && s->entry != NULL && s->entry->status / 100 != 2) {
        return refuse_by_script(s, err);
    }
    struct pieces pieces = {0};
    if (is_raw) {
        take_raw(s, s->entry->raw, &pieces);
    } else {
        make_answer(s, c, &pieces);
    }
    code = send_answer(s, &pieces, err);
    pieces_clear(&pieces);
    return code;
}

static int answer_request(struct sending *s, const cJSON *request, size_t request_bytes,
                          struct sg_error *err)
{
    struct problem problem = {0};
    struct conversation *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return sg->fail(err, SG_E_INTERNAL, "no memory");
    }
    c->request_bytes = request_bytes;
    if (!cJSON_IsObject(request)) {
        problem_set(&problem, NULL, NULL,
                    "We could not parse the JSON body of your request as an object.");
    } else {
        s->form->read(request, c, &problem);
        if (s->upstream->config->strict) {
            s->form->check(request, &problem);
        }
    }
    int code;
    if (problem.message.len > 0) {
        code = send_error(s, &problem, 400, err);
    } else {
        s->stream = c->stream;
        s->entry = find_entry(s->upstream, c);
        code = answer(s, c, err);
    }
    text_clear(&problem.message);
    conversation_clear(c);
    free(c);
    return code;
}

static int turn(void *self, struct sg_call *call, const struct sg_turn *asked, struct sg_error *err)
{
    struct upstream *u = self;
    const struct form *form = find_form(asked->surface);
    write_journal(u, call, asked);
    if (form == NULL) {
        return sg->fail(err, SG_E_INVALID,
                        "the mock upstream speaks the surface 'chat' only, not '%s'; give it "
                        "surfaces: [chat] in the configuration",
                        asked->surface);
    }
    struct sending sending = {.upstream = u, .call = call, .form = form};
    cJSON *request = is_shallow(asked->json, asked->json_len)
                         ? cJSON_ParseWithLengthOpts(asked->json, asked->json_len, NULL, 0)
                         : NULL;
    int code = answer_request(&sending, request, asked->json_len, err);
    cJSON_Delete(request);
    return code;
}

static const struct sg_upstream_ops operations = {.turn = turn};

const struct sg_plugin mock_upstream = {
    .name = "mock",
    .help = "A model without a model: calls the tools it is asked to, follows scripts, fails on "
            "demand.",
    .options = options,
    .config_size = sizeof(struct upstream_config),
    .open = open_instance,
    .close = close_instance,
    .upstream = &operations,
    .flags = SG_ON_LOOP,
};
