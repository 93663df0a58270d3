/* The mock upstream: one turn from the request's bytes to the last byte of the answer, with scripts and faults. */
#include "upstream.h"

#include "mock.h"
#include "upstream_send.h"

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
     .help = "Reasoning before it: reasoning_content, a reasoning item, a thinking block."},
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
     .help = "The finish reason, in the words of chat or the surface's own; else as it is."},
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

/* ---- one turn ---- */

static const struct form *find_form(const char *surface)
{
    static const struct form *const forms[] = {&form_chat, &form_responses, &form_messages};
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

/* What the model says: by its script, or as it decides. A flood is text only. */
static void make_reply(struct sending *s, const struct conversation *c, struct reply *reply)
{
    reply->number = (long long)atomic_fetch_add(&s->upstream->answers, 1) + 1;
    reply->created = time(NULL);
    if (s->entry != NULL && fault_is(s->entry->fault, "flood")) {
        text_puts(&reply->content, "flood");
        return;
    }
    if (s->entry != NULL) {
        reply_follow(reply, s->entry);
    } else {
        reply_decide(reply, c);
    }
    reply_limit(reply, c->tokens_max);
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

/* `raw`: the body that is given, or NULL. */
static int answer_in_pieces(struct sending *s, const struct conversation *c, const char *raw,
                            struct sg_error *err)
{
    struct reply *reply = calloc(1, sizeof *reply);
    if (reply == NULL) {
        return sg->fail(err, SG_E_INTERNAL, "no memory");
    }
    struct answer answer = {reply, c, (size_t)s->upstream->config->chunk};
    struct pieces pieces = {0};
    make_reply(s, c, reply);
    if (raw != NULL) {
        take_raw(s, raw, &pieces);
    } else if (s->stream) {
        s->form->write_stream(&answer, &pieces);
    } else {
        s->form->write_json(&answer, &pieces);
    }
    int code = send_answer(s, &answer, &pieces, err);
    pieces_clear(&pieces);
    reply_clear(reply);
    free(reply);
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
        return send_nothing(s, err);
    }
    bool is_raw = s->entry != NULL && is_given(s->entry->raw);
    if (!is_raw && s->entry != NULL && s->entry->status / 100 != 2) {
        return refuse_by_script(s, err);
    }
    return answer_in_pieces(s, c, is_raw ? s->entry->raw : NULL, err);
}

static int answer_request(struct sending *s, const cJSON *request, size_t request_bytes,
                          struct sg_error *err)
{
    struct problem problem = {0};
    struct conversation *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return sg->fail(err, SG_E_INTERNAL, "no memory");
    }
    *c = (struct conversation){
        .request = request, .request_bytes = request_bytes, .tokens_max = -1, .turn = 1};
    if (!cJSON_IsObject(request)) {
        problem_set(&problem, NULL, NULL,
                    "We could not parse the JSON body of your request as an object.");
    } else {
        c->stream = cJSON_IsTrue(json_member(request, "stream"));
        s->form->read(c, &problem);
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
                        "the mock upstream speaks chat, responses and messages, not '%s'",
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
