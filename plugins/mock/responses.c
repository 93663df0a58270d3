/* Writing Responses: the response object, its items, and the events that build them up. */
#include "responses.h"

#include "openai.h"

#include <inttypes.h>
#include <stdint.h>

/* ---- items ---- */

enum item_kind { ITEM_REASONING, ITEM_MESSAGE, ITEM_CALL };

struct item {
    enum item_kind kind;
    size_t call;      /* index, ITEM_CALL */
    bool is_complete; /* false: the token limit ended it */
};

#define ITEMS_MAX (CALLS_MAX + 2)
#define LIFECYCLE_EVENTS 2 /* response.created, response.in_progress */
#define ALL_EVENTS SIZE_MAX

static size_t items_of(const struct reply *r, struct item items[ITEMS_MAX])
{
    size_t count = 0;
    bool has_message = r->content.len > 0 || (r->calls_count == 0 && r->reasoning.len == 0);
    if (r->reasoning.len > 0) {
        items[count++] = (struct item){ITEM_REASONING, 0, true};
    }
    if (has_message) {
        items[count++] = (struct item){ITEM_MESSAGE, 0, true};
    }
    for (size_t i = 0; i < r->calls_count; i++) {
        items[count++] = (struct item){ITEM_CALL, i, true};
    }
    items[count - 1].is_complete = !r->cut;
    return count;
}

static const char *end_status(struct item item)
{
    return item.is_complete ? "completed" : "incomplete";
}

static void put_id(const struct reply *r, struct item item, struct text *out)
{
    static const char *const prefixes[] = {"rs", "msg", "fc"};
    text_printf(out, "\"%s_mock%lld", prefixes[item.kind], r->number);
    if (item.kind == ITEM_CALL) {
        text_printf(out, "_%zu", item.call);
    }
    text_puts(out, "\"");
}

static void put_text_part(const struct text *text, struct text *out)
{
    text_puts(out, "{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":");
    text_put_json_string(out, text);
    text_puts(out, "}");
}

static void put_summary_part(const struct text *text, struct text *out)
{
    text_puts(out, "{\"type\":\"summary_text\",\"text\":");
    text_put_json_string(out, text);
    text_puts(out, "}");
}

/* Encrypted reasoning is for those who ask for it. */
static bool is_included(const struct conversation *c, const char *what)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, json_member(c->request, "include"))
    {
        if (json_is(one, what)) {
            return true;
        }
    }
    return false;
}

static void put_reasoning(const struct answer *a, bool is_done, struct text *out)
{
    text_puts(out, ",\"type\":\"reasoning\",\"summary\":[");
    if (is_done) {
        put_summary_part(&a->reply->reasoning, out);
    }
    text_puts(out, "]");
    if (is_included(a->conversation, "reasoning.encrypted_content")) {
        text_printf(out, ",\"encrypted_content\":\"mock%lld\"", a->reply->number);
    }
}

static void put_call(const struct reply *r, size_t index, bool is_done, struct text *out)
{
    static const struct text nothing = {0};
    text_printf(out, ",\"call_id\":\"call_mock%lld_%zu\",\"name\":", r->number, index);
    text_put_json_string(out, &r->calls[index].name);
    text_puts(out, ",\"arguments\":");
    text_put_json_string(out, is_done ? &r->calls[index].arguments : &nothing);
}

/* As it is added, or as it is when done. */
static void put_item(const struct answer *a, struct item item, const char *status, bool is_done,
                     struct text *out)
{
    text_puts(out, "{\"id\":");
    put_id(a->reply, item, out);
    if (item.kind == ITEM_REASONING) {
        put_reasoning(a, is_done, out);
    } else if (item.kind == ITEM_MESSAGE) {
        text_printf(out, ",\"type\":\"message\",\"status\":\"%s\",\"content\":[", status);
        if (is_done) {
            put_text_part(&a->reply->content, out);
        }
        text_puts(out, "],\"role\":\"assistant\"");
    } else {
        text_printf(out, ",\"type\":\"function_call\",\"status\":\"%s\"", status);
        put_call(a->reply, item.call, is_done, out);
    }
    text_puts(out, "}");
}

/* ---- the response object ---- */

/* Why it is incomplete; NULL where it is complete. */
static const char *incomplete_reason(const struct reply *r)
{
    if (r->finish == NULL) {
        return r->cut ? "max_output_tokens" : NULL;
    }
    return strcmp(r->finish, "length") == 0 || strcmp(r->finish, "max_output_tokens") == 0
               ? "max_output_tokens"
           : strcmp(r->finish, "content_filter") == 0 ? "content_filter"
                                                      : NULL;
}

/* A member as the client gave it, or its default. */
static void put_echo(const cJSON *request, const char *name, const char *fallback, struct text *out)
{
    const cJSON *value = json_member(request, name);
    text_printf(out, ",\"%s\":", name);
    if (value == NULL || cJSON_IsNull(value)) {
        text_puts(out, fallback);
    } else {
        text_put_json_value(out, value);
    }
}

static void put_error(const struct problem *problem, struct text *out)
{
    if (problem == NULL) {
        text_puts(out, "null");
        return;
    }
    text_printf(out, "{\"code\":\"%s\",\"message\":", problem->code);
    text_put_json_string(out, &problem->message);
    text_puts(out, "}");
}

/* Of the item, from added to done. */
static size_t item_events(const struct answer *a, struct item item)
{
    const struct text *text = item.kind == ITEM_REASONING ? &a->reply->reasoning
                              : item.kind == ITEM_MESSAGE ? &a->reply->content
                                                          : &a->reply->calls[item.call].arguments;
    size_t events = item.kind == ITEM_CALL ? 3 : 5;
    for (size_t at = 0; at < text->len; at += piece_length(text, at, a->chunk)) {
        events++;
    }
    return events;
}

/* The items that so many events have shown; one that was not done by then is as it was added, and incomplete. */
static void put_output(const struct answer *a, size_t events, struct text *out)
{
    struct item items[ITEMS_MAX];
    size_t count = items_of(a->reply, items), at = LIFECYCLE_EVENTS;
    for (size_t i = 0; i < count && at < events; i++) {
        size_t item_end = at + item_events(a, items[i]);
        bool is_done = item_end <= events;
        text_puts(out, i == 0 ? "" : ",");
        put_item(a, items[i], is_done ? end_status(items[i]) : "incomplete", is_done, out);
        at = item_end;
    }
}

static void put_usage(const struct answer *a, struct text *out)
{
    struct reply_usage usage = reply_usage(a->reply, a->conversation);
    text_printf(out,
                "{\"input_tokens\":%zu,\"input_tokens_details\":{\"cached_tokens\":0},"
                "\"output_tokens\":%zu,\"output_tokens_details\":{\"reasoning_tokens\":%zu},"
                "\"total_tokens\":%zu}",
                usage.input, usage.output, usage.reasoning, usage.input + usage.output);
}

/* What the client said, and what stands there where it said nothing. */
static void put_echoes(const struct answer *a, struct text *out)
{
    static const struct {
        const char *name, *fallback;
    } echoes[] = {{"instructions", "null"},
                  {"max_output_tokens", "null"},
                  {"max_tool_calls", "null"},
                  {"parallel_tool_calls", "true"},
                  {"previous_response_id", "null"},
                  {"prompt_cache_key", "null"},
                  {"reasoning", "{\"effort\":null,\"summary\":null}"},
                  {"safety_identifier", "null"},
                  {"service_tier", "\"default\""},
                  {"store", "true"},
                  {"temperature", "1"},
                  {"text", "{\"format\":{\"type\":\"text\"},\"verbosity\":\"medium\"}"},
                  {"tool_choice", "\"auto\""},
                  {"tools", "[]"},
                  {"top_logprobs", "0"},
                  {"top_p", "1"},
                  {"truncation", "\"disabled\""},
                  {"user", "null"},
                  {"metadata", "{}"}};
    for (size_t i = 0; i < sizeof echoes / sizeof *echoes; i++) {
        put_echo(a->conversation->request, echoes[i].name, echoes[i].fallback, out);
    }
}

/* `problem`: why it failed, or NULL. `events`: it shows what so many have shown. */
static void put_response(const struct answer *a, const char *status, const struct problem *problem,
                         size_t events, struct text *out)
{
    bool is_completed = strcmp(status, "completed") == 0;
    bool is_incomplete = strcmp(status, "incomplete") == 0;
    text_printf(out,
                "{\"id\":\"resp_mock%lld\",\"object\":\"response\",\"created_at\":%" PRId64
                ",\"status\":\"%s\",\"background\":false,\"completed_at\":",
                a->reply->number, a->reply->created, status);
    if (is_completed) {
        text_printf(out, "%" PRId64, a->reply->created);
    } else {
        text_puts(out, "null");
    }
    text_puts(out, ",\"error\":");
    put_error(problem, out);
    text_puts(out, ",\"incomplete_details\":");
    if (is_incomplete) {
        text_printf(out, "{\"reason\":\"%s\"}", incomplete_reason(a->reply));
    } else {
        text_puts(out, "null");
    }
    text_puts(out, ",\"model\":");
    text_json(out, a->conversation->model, strlen(a->conversation->model));
    text_puts(out, ",\"output\":[");
    put_output(a, events, out);
    text_puts(out, "]");
    put_echoes(a, out);
    text_puts(out, ",\"usage\":");
    if (is_completed || is_incomplete) {
        put_usage(a, out);
    } else {
        text_puts(out, "null");
    }
    text_puts(out, "}");
}

static const char *final_status(const struct reply *r)
{
    return incomplete_reason(r) == NULL ? "completed" : "incomplete";
}

static void write_json(const struct answer *a, struct pieces *p)
{
    put_response(a, final_status(a->reply), NULL, ALL_EVENTS, &p->bytes);
    pieces_end(p);
}

/* ---- events ---- */

static void begin_event(const char *type, size_t number, struct text *out)
{
    text_printf(out, "event: %s\ndata: {\"type\":\"%s\",\"sequence_number\":%zu", type, type,
                number);
}

static void end_event(struct text *out)
{
    text_puts(out, "}\n\n");
}

struct stream {
    const struct answer *answer;
    struct pieces *pieces;
    struct item item;
    size_t output_index;
};

static struct text *begin(struct stream *s, const char *type)
{
    begin_event(type, pieces_count(s->pieces), &s->pieces->bytes);
    return &s->pieces->bytes;
}

static void end(struct stream *s)
{
    end_event(&s->pieces->bytes);
    pieces_end(s->pieces);
}

static void write_lifecycle(struct stream *s, const char *type, const char *status, size_t events)
{
    struct text *out = begin(s, type);
    text_puts(out, ",\"response\":");
    put_response(s->answer, status, NULL, events, out);
    end(s);
}

static void write_item_event(struct stream *s, const char *type, bool is_done)
{
    struct text *out = begin(s, type);
    text_printf(out, ",\"output_index\":%zu,\"item\":", s->output_index);
    put_item(s->answer, s->item, is_done ? end_status(s->item) : "in_progress", is_done, out);
    end(s);
}

/* Up to which part of the item is meant: `index` is "content_index", "summary_index", or NULL. */
static struct text *begin_part(struct stream *s, const char *type, const char *index)
{
    struct text *out = begin(s, type);
    text_puts(out, ",\"item_id\":");
    put_id(s->answer->reply, s->item, out);
    text_printf(out, ",\"output_index\":%zu", s->output_index);
    if (index != NULL) {
        text_printf(out, ",\"%s\":0", index);
    }
    return out;
}

/* The events of one growing text: a delta for each piece, then the whole. `more`: members that both have. */
static void write_growing(struct stream *s, const char *delta_type, const char *done_type,
                          const char *index, const char *key, const struct text *text,
                          const char *more)
{
    struct text *out;
    for (size_t at = 0; at < text->len;) {
        size_t len = piece_length(text, at, s->answer->chunk);
        out = begin_part(s, delta_type, index);
        text_puts(out, ",\"delta\":");
        text_json(out, text->data + at, len);
        text_puts(out, more);
        end(s);
        at += len;
    }
    out = begin_part(s, done_type, index);
    text_printf(out, ",\"%s\":", key);
    text_put_json_string(out, text);
    text_puts(out, more);
    end(s);
}

static void write_part_event(struct stream *s, const char *type, const char *index,
                             const struct text *text)
{
    struct text *out = begin_part(s, type, index);
    text_puts(out, ",\"part\":");
    if (s->item.kind == ITEM_MESSAGE) {
        put_text_part(text, out);
    } else {
        put_summary_part(text, out);
    }
    end(s);
}

static void write_message(struct stream *s)
{
    static const struct text nothing = {0};
    const struct text *text = &s->answer->reply->content;
    write_part_event(s, "response.content_part.added", "content_index", &nothing);
    write_growing(s, "response.output_text.delta", "response.output_text.done", "content_index",
                  "text", text, ",\"logprobs\":[]");
    write_part_event(s, "response.content_part.done", "content_index", text);
}

static void write_reasoning(struct stream *s)
{
    static const struct text nothing = {0};
    const struct text *text = &s->answer->reply->reasoning;
    write_part_event(s, "response.reasoning_summary_part.added", "summary_index", &nothing);
    write_growing(s, "response.reasoning_summary_text.delta",
                  "response.reasoning_summary_text.done", "summary_index", "text", text, "");
    write_part_event(s, "response.reasoning_summary_part.done", "summary_index", text);
}

static void write_item(struct stream *s)
{
    write_item_event(s, "response.output_item.added", false);
    if (s->item.kind == ITEM_REASONING) {
        write_reasoning(s);
    } else if (s->item.kind == ITEM_MESSAGE) {
        write_message(s);
    } else {
        write_growing(s, "response.function_call_arguments.delta",
                      "response.function_call_arguments.done", NULL, "arguments",
                      &s->answer->reply->calls[s->item.call].arguments, "");
    }
    write_item_event(s, "response.output_item.done", true);
}

static void write_stream(const struct answer *a, struct pieces *p)
{
    struct item items[ITEMS_MAX];
    size_t count = items_of(a->reply, items);
    struct stream s = {.answer = a, .pieces = p};
    write_lifecycle(&s, "response.created", "in_progress", 0);
    write_lifecycle(&s, "response.in_progress", "in_progress", 0);
    for (size_t i = 0; i < count; i++) {
        s.item = items[i];
        s.output_index = i;
        write_item(&s);
    }
    if (incomplete_reason(a->reply) == NULL) {
        write_lifecycle(&s, "response.completed", "completed", ALL_EVENTS);
    } else {
        write_lifecycle(&s, "response.incomplete", "incomplete", ALL_EVENTS);
    }
}

static void write_text_event(const struct answer *a, size_t number, const struct text *text,
                             struct text *out)
{
    begin_event("response.output_text.delta", number, out);
    text_puts(out, ",\"item_id\":");
    put_id(a->reply, (struct item){.kind = ITEM_MESSAGE}, out);
    text_puts(out, ",\"output_index\":0,\"content_index\":0,\"delta\":");
    text_put_json_string(out, text);
    text_puts(out, ",\"logprobs\":[]");
    end_event(out);
}

/* In the flat form of the schema and the nested one of the live service at once; then the response that failed. */
static void write_error_event(const struct answer *a, size_t events, const struct problem *problem,
                              struct pieces *p)
{
    struct text *out = &p->bytes;
    begin_event("error", events, out);
    text_puts(out, ",\"code\":");
    text_json(out, problem->code, strlen(problem->code));
    text_puts(out, ",\"message\":");
    text_put_json_string(out, &problem->message);
    text_puts(out, ",\"param\":null,\"error\":");
    openai_put_error(problem, 500, out);
    end_event(out);
    pieces_end(p);
    begin_event("response.failed", events + 1, out);
    text_puts(out, ",\"response\":");
    put_response(a, "failed", problem, events, out);
    end_event(out);
    pieces_end(p);
}

const struct form form_responses = {
    .name = "responses",
    .read = responses_read,
    .check = responses_check,
    .write_json = write_json,
    .write_stream = write_stream,
    .write_error = openai_write_error,
    .write_error_event = write_error_event,
    .opening_events = LIFECYCLE_EVENTS + 2, /* the item, its part */
    .write_text_event = write_text_event,
    .json_up_to_text = "{\"object\":\"response\",\"output\":[{\"type\":\"message\",\"content\":[{"
                       "\"type\":\"output_text\",\"text\":\"",
};
