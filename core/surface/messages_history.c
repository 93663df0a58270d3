/* What comes back: blocks that we made, in the client's messages, become what the upstream knows. A call and its result,
 * which both stand in the assistant's message, become a call of our function there and a result in the user's message
 * behind it; what the assistant went on to say becomes a message of its own behind that. Calls of one turn stay together,
 * the client's among them: then their results stand in one message too, in the order of the calls.
 *
 * Where the tool is not offered now, runs become text of the assistant, as servers refuse calls of tools that they do not
 * know. Calls without a result at the very end are run before the model is asked. A vendor's own blocks are left. */
#include "surface/messages.h"
#include "surface/results.h"

#include "base/check.h"
#include "base/limits.h"

#include <stdio.h>

static const char no_result[] = "[no result: the call was not run]";

struct past_call { /* of the assistant's message at hand, since its results began */
    struct str id; /* as the client has it */
    int offer;     /* -1: the client's, or told in words */
    bool in_words; /* ours, of a tool that is not offered */
    bool done;
    struct str name, input;
    struct str result; /* tool_result as JSON; empty: none yet */
};

struct past {
    struct messages_request *request;
    struct arena *arena;
    size_t place; /* of the message */
    struct past_call *calls;
    size_t count, cap;
    size_t taken; /* calls and results of the message, which are bounded */
    bool has_results, has_client_calls;
    struct buf out; /* the new content of the message */
    size_t segment; /* where its last part begins */
    bool role_first;
    struct past_call *earlier; /* of the message before, whose results may stand in this one */
    size_t earlier_count;
    struct str before; /* a message that goes in front of the one at hand */
};

struct past_block {
    struct json_value value, input, content;
    struct str type, id, name, tool_use_id, cache_control;
};

static bool holds(struct str text, const char *part)
{
    return text.len > 0 && memmem(text.data, text.len, part, strlen(part)) != NULL;
}

static bool is_ours(struct str id)
{
    return str_starts(id, STR(MESSAGES_MARK)) && id.len == MESSAGES_ID_BYTES - 1;
}

static struct past_block block_read(struct json_value value, struct arena *arena)
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

static bool is_our_result(const struct past_block *block)
{
    return !str_is(block->type, "tool_result") && is_ours(block->tool_use_id);
}

bool messages_history_is_ours(const struct messages_request *request)
{
    const struct json_member *messages = request->messages;
    return messages != NULL && messages->value.type == JSON_ARRAY &&
           holds(messages->value.raw, "\"" MESSAGES_MARK);
}

/* ---- results ---- */

/* The id under which the upstream knows the call: the prefix is reserved for calls that it made itself. */
static struct str up_id(struct str id)
{
    return (struct str){id.data + strlen("srv"), id.len - strlen("srv")};
}

static struct str result_make(struct past *past, struct str id, struct str text,
                              struct str cache_control)
{
    struct buf out = {0};
    messages_result_put(up_id(id), text, cache_control, &out); /* bounded by the body */
    return buf_to_arena(&out, past->arena);
}

static struct past_call *call_find(struct past_call *calls, size_t count, struct str id)
{
    for (size_t i = 0; i < count; i++) {
        if (!calls[i].done && (calls[i].offer >= 0 || calls[i].in_words) &&
            str_eq(calls[i].id, id)) {
            return &calls[i];
        }
    }
    return NULL;
}

static struct str words_of(struct past *past, const struct past_block *block,
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
static void result_put(struct past *past, const struct past_call *call, size_t start,
                       struct buf *out)
{
    (void)buf_puts(out, out->len > start ? "," : ""); /* bounded by the body */
    (void)buf_append_str(out, call->result.len > 0
                                  ? call->result
                                  : result_make(past, call->id, STR(no_result), (struct str){0}));
}

static void results_put(struct past *past, const struct past_call *calls, size_t count,
                        struct buf *out)
{
    size_t start = out->len;
    for (size_t i = 0; i < count; i++) {
        if (calls[i].offer >= 0) {
            result_put(past, &calls[i], start, out);
        }
    }
}

static bool has_ours(const struct past_call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (calls[i].offer >= 0) {
            return true;
        }
    }
    return false;
}

static void user_message_put(struct past *past, const struct past_call *calls, size_t count,
                             struct buf *out)
{
    (void)buf_puts(out, "{\"role\":\"user\",\"content\":["); /* bounded by the body */
    results_put(past, calls, count, out);
    (void)buf_puts(out, "]}");
}

/* ---- the assistant's message ---- */

/* The assistant goes on behind results: its message ends, and another begins behind them. */
static void segment_end(struct past *past)
{
    struct buf *out = &past->out;
    (void)buf_puts(out, past->role_first ? "]}," : "],\"role\":\"assistant\"},");
    user_message_put(past, past->calls, past->count, out);
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
        (void)buf_put_json(out, up_id(block->id));
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

static void our_result_take(struct past *past, const struct past_block *block)
{
    struct past_call *call = call_find(past->calls, past->count, block->tool_use_id);
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
    struct str words = words_of(past, block, call);
    if (call->in_words) {
        words_put(past, call, words);
        return;
    }
    call->result = result_make(past, call->id, words, block->cache_control);
    past->has_results = true;
}

static int block_take(struct past *past, struct json_value value, struct sg_error *err)
{
    struct past_block block = block_read(value, past->arena);
    bool is_client_call = str_is(block.type, "tool_use");
    if (is_our_call(&block)) {
        our_call_take(past, &block);
    } else if (is_our_result(&block)) {
        our_result_take(past, &block);
    } else {
        (void)buf_append_str(next_begin(past, is_client_call), value.raw); /* bounded by the body */
        if (!is_client_call) {
            return SG_OK;
        }
        past->has_client_calls = true;
        call_add(past, (struct past_call){.id = block.id, .offer = -1});
    }
    return taken_count(past, err);
}

struct past_message {
    struct json_value value;
    struct json_member *members;
    size_t count;
    const struct json_member *content;
    bool is_assistant, is_user;
};

static size_t place_of(const struct past *past, const char *at)
{
    return (size_t)(at - past->request->body->raw.data);
}

/* The message in front of this one, if there is to be one. */
static void before_insert(struct past *past, const struct past_message *message)
{
    if (past->before.len > 0) {
        struct str put = {arena_printf(past->arena, "%s,", past->before.data),
                          past->before.len + 1};
        CHECK(put.data != NULL);
        splice_add(&past->request->edits, place_of(past, message->value.raw.data), 0, put);
        past->before = (struct str){0};
    }
}

static int assistant_take(struct past *past, const struct past_message *message,
                          struct sg_error *err)
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
        splice_add(&past->request->edits, place_of(past, message->value.raw.data),
                   message->value.raw.len, past->before);
        past->before = (struct str){0};
        return SG_OK;
    }
    before_insert(past, message);
    splice_add(&past->request->edits, place_of(past, content.raw.data) + 1, content.raw.len - 2,
               buf_to_arena(&past->out, past->arena));
    return SG_OK;
}

/* ---- what follows it ---- */

/* Results of the message before that stand at the beginning of this one, as after a pause. */
static void earlier_results_take(struct past *past, const struct past_message *message)
{
    struct json_walk walk = json_walk_of(message->content->value);
    struct json_value element;
    while (json_walk_element(&walk, &element)) {
        struct past_block block = block_read(element, past->arena);
        struct past_call *call =
            is_our_result(&block) ? call_find(past->earlier, past->earlier_count, block.tool_use_id)
                                  : NULL;
        if (call == NULL) {
            return;
        }
        call->done = true;
        call->result =
            result_make(past, call->id, words_of(past, &block, call), block.cache_control);
    }
}

static struct str before_make(struct past *past, const struct past_call *calls, size_t count)
{
    struct buf text = {0};
    user_message_put(past, calls, count, &text);
    return buf_to_arena(&text, past->arena);
}

/* Results of ours that belong in front of the client's result of this call, or (NULL) in front of all that follows. A
 * client that has another order gets them in front of the first one that is out of it. */
static void merge_until(struct past *past, size_t *next, const struct past_block *block,
                        struct buf *out)
{
    size_t end = past->earlier_count;
    for (size_t i = *next; block != NULL && i < past->earlier_count; i++) {
        if (past->earlier[i].offer < 0 && str_eq(past->earlier[i].id, block->tool_use_id)) {
            end = i;
            break;
        }
    }
    for (; *next < end; *next += 1) {
        if (past->earlier[*next].offer >= 0) {
            result_put(past, &past->earlier[*next], 0, out);
        }
    }
}

static void merge_insert(struct past *past, const char *at, struct buf *results, bool comma_first)
{
    if (results->len == 0) {
        return;
    }
    struct buf put = {0};
    (void)buf_puts(&put, comma_first ? "," : ""); /* bounded by the body */
    (void)buf_append_str(&put, buf_str(results));
    (void)buf_puts(&put, comma_first ? "" : ",");
    buf_reset(results);
    splice_add(&past->request->edits, place_of(past, at), 0, buf_to_arena(&put, past->arena));
}

/* Our results go between the client's, in the order of the calls, and in front of anything else. */
static void user_array_merge(struct past *past, struct json_value content)
{
    struct json_walk walk = json_walk_of(content);
    struct json_value element;
    const char *last = NULL;
    size_t next = 0;
    BUF_CLEANUP struct buf results = {0};
    while (json_walk_element(&walk, &element)) {
        struct past_block block = block_read(element, past->arena);
        merge_until(past, &next, str_is(block.type, "tool_result") ? &block : NULL, &results);
        merge_insert(past, element.raw.data, &results, false);
        last = element.raw.data + element.raw.len;
    }
    merge_until(past, &next, NULL, &results);
    if (last != NULL) {
        merge_insert(past, last, &results, true);
    } else if (results.len > 0) {
        struct str put = buf_to_arena(&results, past->arena);
        splice_add(&past->request->edits, place_of(past, content.raw.data) + 1, 0, put);
    }
}

static void user_merge(struct past *past, const struct past_message *message)
{
    struct json_value content = message->content->value;
    if (content.type == JSON_ARRAY) {
        user_array_merge(past, content);
        return;
    }
    struct buf put = {0};
    (void)buf_putc(&put, '['); /* bounded by the body */
    results_put(past, past->earlier, past->earlier_count, &put);
    (void)buf_puts(&put, ",{\"type\":\"text\",\"text\":");
    (void)buf_append_str(&put, content.raw);
    (void)buf_puts(&put, "}]");
    splice_add(&past->request->edits, place_of(past, content.raw.data), content.raw.len,
               buf_to_arena(&put, past->arena));
}

static int message_read(struct past *past, struct json_value value, struct past_message *ret,
                        struct sg_error *err)
{
    char where[40];
    (void)snprintf(where, sizeof where, "messages[%zu]", past->place); /* fits */
    *ret = (struct past_message){.value = value};
    int code = json_members(value, where, past->arena, &ret->members, &ret->count, err);
    if (code == SG_OK) {
        struct str role = json_find_text(ret->members, ret->count, "role", past->arena);
        ret->is_assistant = str_is(role, "assistant");
        ret->is_user = str_is(role, "user");
        ret->content = json_find(ret->members, ret->count, "content");
    }
    return code;
}

static int message_take(struct past *past, struct json_value value, struct sg_error *err)
{
    bool carries = has_ours(past->calls, past->count);
    past->earlier = past->calls;
    past->earlier_count = past->count;
    past->calls = NULL;
    past->count = past->cap = 0;
    struct past_message message;
    if (value.type != JSON_OBJECT || (!carries && !holds(value.raw, "\"" MESSAGES_MARK))) {
        return SG_OK;
    }
    int code = message_read(past, value, &message, err);
    if (code != SG_OK) {
        return code;
    }
    enum json_type type = message.content == NULL ? JSON_NULL : message.content->value.type;
    bool merges = message.is_user && (type == JSON_ARRAY ||
                                      (type == JSON_STRING && message.content->value.raw.len > 2));
    if (carries && merges) {
        user_merge(past, &message);
    } else if (carries) {
        if (message.is_assistant && type == JSON_ARRAY) {
            earlier_results_take(past, &message);
        }
        past->before = before_make(past, past->earlier, past->earlier_count);
    }
    if (message.is_assistant && type == JSON_ARRAY && holds(value.raw, "\"" MESSAGES_MARK)) {
        return assistant_take(past, &message, err);
    }
    before_insert(past, &message);
    return SG_OK;
}

/* ---- the end of the history ---- */

/* Calls without a result are run first; the results that are there stand in one message with theirs. */
static void pending_read(struct past *past)
{
    struct messages_request *request = past->request;
    bool runs = request->choice.force != MESSAGES_NONE;
    struct buf before = {0};
    request->pending = arena_get(past->arena, (past->count + 1) * sizeof *request->pending);
    request->pending_shown =
        arena_get(past->arena, (past->count + 1) * sizeof *request->pending_shown);
    for (size_t i = 0; i < past->count; i++) {
        const struct past_call *call = &past->calls[i];
        if (call->offer < 0) {
            continue;
        }
        if (call->done || !runs) {
            result_put(past, call, 0, &before);
            continue;
        }
        request->pending_shown[request->pending_count] = call->id;
        request->pending[request->pending_count++] =
            (struct surface_call){(size_t)call->offer, up_id(call->id),
                                  request->set.shown[call->offer].name, call->input};
    }
    if (before.len > 0) {
        request->pending_before = buf_to_arena(&before, past->arena);
    }
}

/* ---- all ---- */

static bool runs_code(const struct tool_set *set)
{
    for (size_t i = 0; i < set->offers_count; i++) {
        const struct messages_kind *kind = messages_kind_of(set->offers[i].hosted);
        if (set->shown[i].shown && kind != NULL && strcmp(kind->tool, "code_execution") == 0) {
            return true;
        }
    }
    return false;
}

/* Files that the client put somewhere, for code to find: here it would not find them. */
static int uploads_check(const struct past *past, struct json_value message, struct sg_error *err)
{
    struct past_block outer = block_read(message, past->arena);
    if (outer.content.type != JSON_ARRAY) {
        return SG_OK;
    }
    struct json_walk walk = json_walk_of(outer.content);
    struct json_value element;
    for (size_t i = 0; json_walk_element(&walk, &element); i++) {
        if (str_is(block_read(element, past->arena).type, "container_upload")) {
            char where[64];
            (void)snprintf(where, sizeof where, "messages[%zu].content[%zu]", past->place, i);
            return error_set_param(err, SG_E_INVALID, where,
                                   "%s: files cannot be uploaded to containers here yet", where);
        }
    }
    return SG_OK;
}

int messages_history_read(struct messages_request *request, struct arena *arena,
                          struct sg_error *err)
{
    struct json_value messages = request->messages->value, element;
    struct past past = {.request = request, .arena = arena};
    bool ours = holds(messages.raw, "\"" MESSAGES_MARK);
    bool uploads = runs_code(&request->set) && holds(messages.raw, "\"container_upload\"");
    struct json_walk walk = json_walk_of(messages);
    request->edits.arena = arena;
    request->messages_empty = !json_walk_element(&walk, &element);
    walk = json_walk_of(messages);
    int code = SG_OK;
    for (; (ours || uploads) && code == SG_OK && json_walk_element(&walk, &element); past.place++) {
        if (uploads && holds(element.raw, "\"container_upload\"")) {
            code = uploads_check(&past, element, err);
        }
        code = code == SG_OK && ours ? message_take(&past, element, err) : code;
    }
    if (code == SG_OK && has_ours(past.calls, past.count)) {
        pending_read(&past);
    }
    buf_clear(&past.out);
    return code;
}
