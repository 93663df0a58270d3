/* The assistant's messages of a history: blocks that we made become calls of our functions and results behind them, or
 * words where the tool is not offered. */
#include "surface/messages_past.h"
#include "surface/results.h"

#include "base/check.h"

#include <stdio.h>

static const char no_result[] = "[no result: the call was not run]";

static bool is_ours(struct str id)
{
    return str_starts(id, STR(MESSAGES_MARK)) && id.len == MESSAGES_ID_BYTES - 1;
}

struct past_block past_block_read(struct json_value value, struct arena *arena)
{
    struct past_block block = {.value = value};
    struct json_walk walk = {0};
    struct str key;
    struct json_value member;
    if (value.type == JSON_OBJECT) {
        walk = json_walk_of(value);
    }
    while (value.type == JSON_OBJECT && json_walk_member(&walk, &key, &member)) {
        bool is_text = member.type == JSON_STRING;
        if (is_text && json_key_is(key, "type")) {
            block.type = json_text_of(member, arena);
        } else if (is_text && json_key_is(key, "id")) {
            block.id = json_text_of(member, arena);
        } else if (is_text && json_key_is(key, "name")) {
            block.name = json_text_of(member, arena);
        } else if (is_text && json_key_is(key, "tool_use_id")) {
            block.tool_use_id = json_text_of(member, arena);
        } else if (json_key_is(key, "input")) {
            block.input = member;
        } else if (json_key_is(key, "content")) {
            block.content = member;
        } else if (member.type == JSON_OBJECT && json_key_is(key, "cache_control")) {
            block.cache_control = member.raw;
        }
    }
    return block;
}

static bool is_our_call(const struct past_block *block)
{
    return str_is(block->type, "server_tool_use") && is_ours(block->id);
}

bool past_is_our_result(const struct past_block *block)
{
    return !str_is(block->type, "tool_result") && is_ours(block->tool_use_id);
}

/* ---- results ---- */

/* The id under which the upstream knows the call: the prefix is reserved for calls that it made itself. */
struct str past_up_id(struct str id)
{
    return (struct str){id.data + strlen("srv"), id.len - strlen("srv")};
}

struct str past_result_make(struct past *past, struct str id, struct str text,
                            struct str cache_control)
{
    struct buf out = {0};
    messages_result_put(past_up_id(id), text, cache_control, &out); /* bounded by the body */
    return buf_to_arena(&out, past->arena);
}

struct past_call *past_call_find(struct past_call *calls, size_t count, struct str id)
{
    for (size_t i = 0; i < count; i++) {
        if (!calls[i].done && (calls[i].offer >= 0 || calls[i].in_words) &&
            str_eq(calls[i].id, id)) {
            return &calls[i];
        }
    }
    return NULL;
}

struct str past_words_of(struct past *past, const struct past_block *block,
                         const struct past_call *call)
{
    struct buf words = {0};
    const struct messages_kind *kind = messages_kind_named(call->name);
    if (kind == NULL) {
        return STR("[no output]");
    }
    messages_kind_words_put(kind, block->content, past->arena, &words); /* cut to what is shown */
    return buf_to_arena(&words, past->arena);
}

/* What a call comes to for the upstream; one that nobody ran says so, since each must have a result. */
void past_result_put(struct past *past, const struct past_call *call, size_t start, struct buf *out)
{
    (void)buf_puts(out, out->len > start ? "," : ""); /* bounded by the body */
    (void)buf_append_str(out,
                         call->result.len > 0
                             ? call->result
                             : past_result_make(past, call->id, STR(no_result), (struct str){0}));
}

void past_results_put(struct past *past, const struct past_call *calls, size_t count,
                      struct buf *out)
{
    size_t start = out->len;
    for (size_t i = 0; i < count; i++) {
        if (calls[i].offer >= 0) {
            past_result_put(past, &calls[i], start, out);
        }
    }
}

bool past_has_ours(const struct past_call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (calls[i].offer >= 0) {
            return true;
        }
    }
    return false;
}

void past_user_message_put(struct past *past, const struct past_call *calls, size_t count,
                           struct buf *out)
{
    (void)buf_puts(out, "{\"role\":\"user\",\"content\":["); /* bounded by the body */
    past_results_put(past, calls, count, out);
    (void)buf_puts(out, "]}");
}

/* ---- the assistant's message ---- */

/* The assistant goes on behind results: its message ends, and another begins behind them. */
static void segment_end(struct past *past)
{
    struct buf *out = &past->out;
    (void)buf_puts(out, past->role_first ? "]}," : "],\"role\":\"assistant\"},");
    past_user_message_put(past, past->calls, past->count, out);
    (void)buf_puts(out,
                   past->role_first ? ",{\"role\":\"assistant\",\"content\":[" : ",{\"content\":[");
    past->segment = out->len;
    past->count = 0;
    past->has_results = past->has_client_calls = false;
}

/* Room for the next block. A call of the client's behind our results is of the same turn; and one that waits for its
 * result holds the message together. */
static struct buf *next_begin(struct past *past, bool is_client_call)
{
    if (past->has_results && !past->has_client_calls && !is_client_call) {
        segment_end(past);
    }
    (void)buf_puts(&past->out, past->out.len > past->segment ? "," : ""); /* bounded by the body */
    return &past->out;
}

static void text_block_put(struct past *past, struct str text)
{
    struct buf *out = next_begin(past, false);
    (void)buf_puts(out, "{\"type\":\"text\",\"text\":"); /* bounded by the body */
    (void)buf_put_json(out, text);
    (void)buf_putc(out, '}');
}

static void words_put(struct past *past, const struct past_call *call, struct str result)
{
    struct buf text = {0};
    result_text_put(call->name, call->input, result, &text); /* bounded by the body */
    text_block_put(past, buf_to_arena(&text, past->arena));
}

static int taken_count(struct past *past, struct sg_error *err)
{
    char where[40];
    if (past->taken++ < MESSAGES_PAST_CALLS_MAX) {
        return SG_OK;
    }
    (void)snprintf(where, sizeof where, "messages[%zu]", past->place); /* fits */
    return error_set_param(err, SG_E_INVALID, where, "%s holds more than %d calls and results",
                           where, MESSAGES_PAST_CALLS_MAX);
}

static void call_add(struct past *past, struct past_call call)
{
    if (past->count == past->cap) {
        size_t cap = past->cap == 0 ? 8 : 2 * past->cap;
        struct past_call *more = arena_get(past->arena, cap * sizeof *more);
        if (past->count > 0) {
            memcpy(more, past->calls, past->count * sizeof *more);
        }
        past->calls = more;
        past->cap = cap;
    }
    past->calls[past->count++] = call;
}

static void our_call_take(struct past *past, const struct past_block *block)
{
    const struct messages_request *request = past->request;
    const struct messages_kind *kind = messages_kind_named(block->name);
    int offer = kind == NULL ? -1 : tools_offer_for(&request->set, str_of(kind->hosted));
    struct str input = block->input.type == JSON_OBJECT ? block->input.raw : STR("{}");
    offer = offer >= 0 && request->set.shown[offer].shown ? offer : -1;
    if (offer >= 0) {
        struct buf *out = next_begin(past, false);
        (void)buf_puts(out, "{\"type\":\"tool_use\",\"id\":"); /* bounded by the body */
        (void)buf_put_json(out, past_up_id(block->id));
        (void)buf_puts(out, ",\"name\":");
        (void)buf_put_json(out, request->set.shown[offer].name);
        (void)buf_puts(out, ",\"input\":");
        (void)buf_append_str(out, input);
        (void)buf_puts(out, block->cache_control.len > 0 ? ",\"cache_control\":" : "");
        (void)buf_append_str(out, block->cache_control);
        (void)buf_putc(out, '}');
    }
    struct past_call call = {.id = block->id,
                             .offer = offer,
                             .in_words = offer < 0,
                             .name = block->name,
                             .input = input};
    call_add(past, call);
}

/* Pages of earlier searches may be cited still, by their URLs: what a number means so much later is not known. They leave
 * room for those of new ones. */
static void pages_note(struct past *past, const struct past_block *block,
                       const struct past_call *call)
{
    struct cited_pages *pages = &past->request->pages;
    if (!str_is(call->name, "web_search") || pages->count >= CITED_PAGES_MAX / 2) {
        return;
    }
    BUF_CLEANUP struct buf hits = {0};
    messages_hits_read(block->content, past->arena, &hits);
    struct surface_result result = {.outputs = (const struct surface_output *)(void *)hits.data,
                                    .outputs_count = hits.len / sizeof(struct surface_output)};
    cited_pages_add(pages, &result, past->arena);
    pages->searches = pages->count > 0 ? 2 : 0;
}

static void our_result_take(struct past *past, const struct past_block *block)
{
    struct past_call *call = past_call_find(past->calls, past->count, block->tool_use_id);
    if (call == NULL) { /* taken with the message before, or of a call that is nowhere */
        for (size_t i = 0; i < past->earlier_count; i++) {
            if (past->earlier[i].done && str_eq(past->earlier[i].id, block->tool_use_id)) {
                return;
            }
        }
        text_block_put(past, STR("[a tool returned something that is not known any more]"));
        return;
    }
    call->done = true;
    pages_note(past, block, call);
    struct str words = past_words_of(past, block, call);
    if (call->in_words) {
        words_put(past, call, words);
        return;
    }
    call->result = past_result_make(past, call->id, words, block->cache_control);
    past->has_results = true;
}

static int block_take(struct past *past, struct json_value value, struct sg_error *err)
{
    struct past_block block = past_block_read(value, past->arena);
    bool is_client_call = str_is(block.type, "tool_use");
    if (is_our_call(&block)) {
        our_call_take(past, &block);
    } else if (past_is_our_result(&block)) {
        our_result_take(past, &block);
    } else {
        struct str kept = messages_citations_cut(value, past->arena);
        (void)buf_append_str(next_begin(past, is_client_call), kept); /* bounded by the body */
        if (!is_client_call) {
            return SG_OK;
        }
        past->has_client_calls = true;
        call_add(past, (struct past_call){.id = block.id, .offer = -1});
    }
    return taken_count(past, err);
}

size_t past_place_of(const struct past *past, const char *at)
{
    return (size_t)(at - past->request->body->raw.data);
}

/* The message in front of this one, if there is to be one. */
void past_before_insert(struct past *past, const struct past_message *message)
{
    if (past->before.len > 0) {
        struct str put = {arena_printf(past->arena, "%s,", past->before.data),
                          past->before.len + 1};
        CHECK(put.data != NULL);
        splice_add(&past->request->edits, past_place_of(past, message->value.raw.data), 0, put);
        past->before = (struct str){0};
    }
}

int past_assistant_take(struct past *past, const struct past_message *message, struct sg_error *err)
{
    struct json_value content = message->content->value, element;
    struct json_walk walk = json_walk_of(content);
    past->count = past->taken = past->segment = 0;
    past->has_results = past->has_client_calls = false;
    past->role_first =
        message->members < message->content &&
        json_find(message->members, (size_t)(message->content - message->members), "role") != NULL;
    buf_reset(&past->out);
    while (json_walk_element(&walk, &element)) {
        int code = block_take(past, element, err);
        if (code != SG_OK) {
            return code;
        }
    }
    for (size_t i = 0; i < past->count; i++) {
        if (past->calls[i].in_words && !past->calls[i].done) {
            words_put(past, &past->calls[i], STR(no_result));
        }
    }
    if (past->out.len == 0 && past->before.len > 0) { /* only what stands in front of it now */
        splice_add(&past->request->edits, past_place_of(past, message->value.raw.data),
                   message->value.raw.len, past->before);
        past->before = (struct str){0};
        return SG_OK;
    }
    past_before_insert(past, message);
    splice_add(&past->request->edits, past_place_of(past, content.raw.data) + 1,
               content.raw.len - 2, buf_to_arena(&past->out, past->arena));
    return SG_OK;
}
