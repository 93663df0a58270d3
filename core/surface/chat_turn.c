/* The upstream's answer of one turn, streamed or plain: read piece by piece, put together, and judged at its end. */
#include "surface/chat.h"

#include "base/check.h"
#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>

void chat_turn_free(struct chat_turn *turn)
{
    if (turn == NULL) {
        return;
    }
    turn_stream_clear(&turn->stream);
    buf_clear(&turn->json);
    buf_clear(&turn->text);
    for (size_t i = 0; i < turn->fields_count; i++) {
        buf_clear(&turn->fields[i].value);
    }
    for (size_t i = 0; i < turn->calls_count; i++) {
        chat_call_free(turn->calls[i]);
    }
    buf_clear(&turn->finish_reason);
    buf_clear(&turn->usage);
    buf_clear(&turn->finish_chunk);
    buf_clear(&turn->held);
    buf_clear(&turn->assistant);
    arena_free(turn->arena);
    free(turn);
}

void chat_turn_begin(struct surface_exchange *exchange, bool is_stream)
{
    struct chat *chat = chat_of(exchange);
    chat_turn_free(chat->turn);
    struct chat_turn *turn = check_alloc(calloc(1, sizeof *turn));
    turn->arena = arena_new(0);
    turn->request = &chat->request;
    turn->is_stream = is_stream;
    turn->json.max = LIMIT_BODY_BYTES;
    turn->held.max = LIMIT_BODY_BYTES;
    turn->calls = arena_get(turn->arena, CHAT_CALLS_MAX * sizeof(void *));
    turn->fields = arena_get(turn->arena, CHAT_FIELDS_MAX * sizeof *turn->fields);
    turn->used = SURFACE_USAGE_NONE;
    turn_stream_init(&turn->stream);
    chat->turn = turn;
    if (chat->turns == 0 && !chat->role_given) { /* of an attempt that failed */
        buf_reset(&chat->id);
        buf_reset(&chat->created);
        buf_reset(&chat->model);
    }
}

/* ---- fields ---- */

static struct str inside_of(struct json_value string)
{
    return (struct str){string.raw.data + 1, string.raw.len - 2};
}

/* Text of `content` that is a list of parts. */
static void parts_take(struct chat_turn *turn, struct json_value parts)
{
    struct json_walk walk = json_walk_of(parts), inner;
    struct json_value part, value;
    struct str key;
    while (json_walk_element(&walk, &part)) {
        inner = part.type == JSON_OBJECT ? json_walk_of(part) : (struct json_walk){NULL, NULL};
        while (part.type == JSON_OBJECT && json_walk_member(&inner, &key, &value)) {
            if (value.type == JSON_STRING && json_key_is(key, "text")) {
                (void)buf_append_str(&turn->text,
                                     inside_of(value)); /* bounded by the turn's bytes */
            }
        }
    }
}

static int calls_take(struct chat_turn *turn, struct json_value list, bool streamed,
                      struct sg_error *err)
{
    if (list.type == JSON_NULL) {
        return SG_OK;
    }
    if (list.type != JSON_ARRAY) {
        return error_set(err, SG_E_INVALID, "tool_calls is no array");
    }
    for (size_t i = 0; i < turn->calls_count; i++) {
        turn->calls[i]->touched = false;
    }
    struct json_walk walk = json_walk_of(list);
    struct json_value entry;
    int code = SG_OK;
    for (size_t i = 0; code == SG_OK && json_walk_element(&walk, &entry); i++) {
        code = chat_call_take(turn, entry, i, streamed, err);
    }
    return code;
}

static struct chat_field *field_get(struct chat_turn *turn, struct str key_raw, enum json_type type)
{
    for (size_t i = 0; i < turn->fields_count; i++) {
        if (str_eq(turn->fields[i].key_raw, key_raw)) {
            return &turn->fields[i];
        }
    }
    if (turn->fields_count == CHAT_FIELDS_MAX) {
        return NULL;
    }
    struct chat_field *field = &turn->fields[turn->fields_count++];
    field->key_raw = (struct str){check_alloc(arena_copy(turn->arena, key_raw)), key_raw.len};
    field->type = type;
    return field;
}

/* What came under another type does not stand any more. */
static void field_become(struct chat_field *field, enum json_type type)
{
    if (field->type != type || (type != JSON_STRING && type != JSON_ARRAY)) {
        buf_reset(&field->value);
        field->type = type;
    }
}

static void field_element(struct chat_field *field, struct str element)
{
    (void)buf_puts(&field->value,
                   field->value.len > 0 ? "," : ""); /* bounded by the turn's bytes */
    (void)buf_append_str(&field->value, element);
}

void chat_list_extend(struct chat_turn *turn, struct str key_raw, struct str elements)
{
    struct chat_field *field = field_get(turn, key_raw, JSON_ARRAY);
    if (field != NULL) { /* else the message has more fields than one should */
        field_become(field, JSON_ARRAY);
        field_element(field, elements);
    }
}

/* A field that we do not know by name: text is joined, lists are too, of other things the last one stands. */
static int field_take(struct chat_turn *turn, const struct json_member *member,
                      struct sg_error *err)
{
    struct json_value value = member->value;
    if (value.type == JSON_NULL) {
        return SG_OK;
    }
    struct chat_field *field = field_get(turn, member->key_raw, value.type);
    if (field == NULL) {
        return error_set(err, SG_E_LIMIT, "more than %d fields in a message", CHAT_FIELDS_MAX);
    }
    field_become(field, value.type);
    if (value.type == JSON_ARRAY) {
        struct json_walk walk = json_walk_of(value);
        struct json_value element;
        while (json_walk_element(&walk, &element)) {
            field_element(field, element.raw);
        }
    } else {
        (void)buf_append_str(&field->value, /* bounded, as above */
                             value.type == JSON_STRING ? inside_of(value) : value.raw);
    }
    return SG_OK;
}

static int fields_take(struct chat_turn *turn, const struct json_member *members, size_t count,
                       bool streamed, struct sg_error *err)
{
    int code = SG_OK;
    for (size_t i = 0; code == SG_OK && i < count; i++) {
        struct json_value value = members[i].value;
        turn->kept_bytes += members[i].key_raw.len + value.raw.len;
        if (turn->kept_bytes > LIMIT_BODY_BYTES) {
            return answer_too_large(err);
        }
        if (str_is(members[i].key, "content")) {
            if (value.type == JSON_STRING) {
                (void)buf_append_str(&turn->text, inside_of(value)); /* bounded, as above */
            } else if (value.type == JSON_ARRAY) {
                parts_take(turn, value);
            } else if (value.type != JSON_NULL) {
                code = error_set(err, SG_E_INVALID, "content is neither text nor a list");
            }
        } else if (str_is(members[i].key, "tool_calls")) {
            code = calls_take(turn, value, streamed, err);
        } else if (streamed && !str_is(members[i].key, "role")) {
            code = field_take(turn, &members[i], err);
        }
    }
    turn->has_text = turn->text.len > 0;
    return code;
}

static void usage_note(struct chat_turn *turn, const struct json_member *members, size_t count)
{
    const struct json_member *usage = json_find_type(members, count, "usage", JSON_OBJECT);
    if (usage != NULL) {
        buf_reset(&turn->usage);
        (void)buf_append_str(&turn->usage, usage->value.raw); /* bounded by its event */
        turn->used = SURFACE_USAGE_NONE;
        usage_read(usage->value, &usage_names_chat, &turn->used);
    }
}

static void finish_note(struct chat_turn *turn, const struct json_member *members, size_t count,
                        struct arena *scratch)
{
    const struct json_member *reason = json_find_type(members, count, "finish_reason", JSON_STRING);
    if (reason != NULL) {
        turn->whole = true;
        buf_reset(&turn->finish_reason);
        (void)buf_append_str(&turn->finish_reason,
                             json_text_of(reason->value, scratch)); /* bounded by its event */
    }
}

/* ---- a stream ---- */

static void keep_raw(struct buf *to, const struct json_member *members, size_t count,
                     const char *name)
{
    const struct json_member *member = json_find(members, count, name);
    if (member != NULL && member->value.type != JSON_NULL) {
        buf_reset(to);
        (void)buf_append_str(to, member->value.raw); /* bounded by its event */
    }
}

static int chunk_take(struct chat *chat, const struct chat_chunk *chunk, struct arena *scratch,
                      struct buf *out, struct sg_error *err)
{
    struct chat_turn *turn = chat->turn;
    usage_note(turn, chunk->text.members, chunk->text.count);
    if (chunk->choice.raw.len == 0) {
        return SG_OK;
    }
    chat_identity_note(chat, chunk->text.members, chunk->text.count);
    keep_raw(&chat->fingerprint, chunk->text.members, chunk->text.count, "system_fingerprint");
    keep_raw(&chat->tier, chunk->text.members, chunk->text.count, "service_tier");
    int code = fields_take(turn, chunk->delta_members, chunk->delta_count, true, err);
    if (code != SG_OK) {
        return not_understood(err);
    }
    bool finished = turn->whole;
    finish_note(turn, chunk->choice_members, chunk->choice_count, scratch);
    if (turn->whole && !finished) {
        (void)buf_append_str(&turn->finish_chunk, chunk->text.raw); /* bounded by its event */
        turn->finish_has_text = chunk->has_text;
    }
    if (chat->request.wants_stream) {
        chat_chunk_pass(chat, chunk, scratch, out);
        chat_calls_release(chat, false, out);
    }
    return turn->held.overflow ? answer_too_large(err) : SG_OK;
}

static int event_read(struct chat *chat, struct sse_event event, struct arena *scratch,
                      struct buf *out, struct sg_error *err)
{
    struct chat_chunk chunk = {0};
    if (chat_chunk_read(event.data, scratch, &chunk, err) != SG_OK) {
        return not_understood(err);
    }
    int code = reported_error(&chunk.text, str_is(event.name, "error"), scratch, err);
    return code != SG_OK ? code : chunk_take(chat, &chunk, scratch, out, err);
}

struct feeding {
    struct chat *chat;
    struct buf *out;
};

static int event_take(void *context, struct sse_event event, struct sg_error *err)
{
    const struct feeding *feeding = context;
    struct chat *chat = feeding->chat;
    struct chat_turn *turn = chat->turn;
    if (turn->done) {
        return SG_OK;
    }
    if (str_is(str_trim(event.data), "[DONE]")) {
        turn->done = turn->whole = true;
        return SG_OK;
    }
    struct arena *scratch = arena_new(0);
    int code = event_read(chat, event, scratch, feeding->out, err);
    arena_free(scratch);
    return code;
}

static int stream_feed(struct chat *chat, struct str bytes, struct buf *out, struct sg_error *err)
{
    struct feeding feeding = {chat, out};
    return turn_stream_feed(&chat->turn->stream, bytes, event_take, &feeding, err);
}

int chat_turn_feed(struct surface_exchange *exchange, struct str bytes, struct buf *out,
                   struct sg_error *err)
{
    struct chat *chat = chat_of(exchange);
    CHECK(chat->turn != NULL);
    if (chat->turn->is_stream) {
        return stream_feed(chat, bytes, out, err);
    }
    return buf_append_str(&chat->turn->json, bytes) ? SG_OK : answer_too_large(err);
}

/* ---- a JSON answer ---- */

static int answer_scan(struct chat_turn *turn, struct chat_chunk *ret, struct sg_error *err)
{
    if (chat_chunk_read(buf_str(&turn->json), turn->arena, ret, err) != SG_OK) {
        return not_understood(err);
    }
    int code = reported_error(&ret->text, false, turn->arena, err);
    if (code != SG_OK) {
        return code;
    }
    if (!ret->has_delta) {
        error_set(err, SG_E_INVALID, "it has no choice with a message");
        return not_understood(err);
    }
    return SG_OK;
}

static int answer_read(struct chat *chat, struct sg_error *err)
{
    struct chat_turn *turn = chat->turn;
    struct chat_chunk chunk = {.is_answer = true};
    int code = answer_scan(turn, &chunk, err);
    if (code != SG_OK) {
        return code;
    }
    turn->answer = chunk;
    usage_note(turn, chunk.text.members, chunk.text.count);
    chat_identity_note(chat, chunk.text.members, chunk.text.count);
    code = fields_take(turn, chunk.delta_members, chunk.delta_count, false, err);
    if (code != SG_OK) {
        return not_understood(err);
    }
    finish_note(turn, chunk.choice_members, chunk.choice_count, turn->arena);
    turn->whole = true;
    return SG_OK;
}

/* ---- the end ---- */

static void usage_take(struct chat *chat, const struct chat_turn *turn)
{
    usage_add(&chat->used, &turn->used);
    if (turn->usage.len == 0) {
        return;
    }
    BUF_CLEANUP struct buf sum = {0};
    if (chat->usage.len > 0 && !chat->usage_last) {
        usage_sum(buf_str(&chat->usage), buf_str(&turn->usage), &sum);
    } else {
        (void)buf_append_str(&sum, buf_str(&turn->usage)); /* bounded by its event */
    }
    buf_reset(&chat->usage);
    (void)buf_append_str(&chat->usage, buf_str(&sum));
}

static bool ends_by_length(const struct chat_turn *turn)
{
    return str_is(buf_str(&turn->finish_reason), "length");
}

/* What the client has not yet seen of a turn that is whole. */
static void rest_give(struct chat *chat, struct buf *out)
{
    struct chat_turn *turn = chat->turn;
    if (!chat->request.wants_stream) {
        return;
    }
    if (!turn->is_stream) {
        chat_message_replay(chat, out);
    } else if (turn->text_given) {
        (void)buf_append_str(out, buf_str(&turn->held)); /* the owner asks for overflow */
    }
    chat_calls_release(chat, true, out);
}

static int turn_read_end(struct chat *chat, struct buf *out, struct sg_error *err)
{
    struct chat_turn *turn = chat->turn;
    if (!turn->is_stream) {
        return answer_read(chat, err);
    }
    int code = turn->whole ? SG_OK : stream_feed(chat, STR("\n\n"), out, err);
    if (code == SG_OK && !turn->whole) {
        code = error_set(err, SG_E_UNAVAILABLE,
                         "The upstream's stream ended before its answer was whole");
    }
    return code;
}

static void turn_tell(const struct chat_turn *turn, struct surface_turn *ret)
{
    *ret = (struct surface_turn){.calls = turn->ours,
                                 .calls_count = turn->ours_count,
                                 .has_client_calls = chat_client_calls(turn) > 0,
                                 .length = ends_by_length(turn),
                                 .has_text = turn->text_given,
                                 .usage = turn->used};
}

int chat_turn_end(struct surface_exchange *exchange, struct buf *out, struct surface_turn *ret,
                  struct sg_error *err)
{
    struct chat *chat = chat_of(exchange);
    struct chat_turn *turn = chat->turn;
    CHECK(turn != NULL);
    int code = turn_read_end(chat, out, err);
    if (code != SG_OK) {
        return code;
    }
    chat_calls_settle(chat, turn);
    usage_take(chat, turn);
    if (turn->ours_count > 0 && chat_tokens_spent(chat)) { /* no turn could follow what they give */
        buf_reset(&turn->finish_reason);
        (void)buf_puts(&turn->finish_reason, "length"); /* small: fits */
    }
    bool dropped = chat->request.holds_text && turn->ours_count > 0 && !ends_by_length(turn);
    turn->text_given = turn->has_text && !dropped;
    rest_give(chat, out);
    chat_turn_commit(chat);
    chat->turns++;
    chat->call_made = chat->call_made || turn->calls_count > 0;
    chat->text_before = chat->text_before || turn->text_given;
    chat->last = TAKE(chat->turn);
    chat_text_cite(chat);
    turn_tell(turn, ret);
    return SG_OK;
}
