/* The upstream's answer of one turn, streamed or plain: read event by event, and judged at its end. Upstreams leave out
 * what the published form demands (indexes, stops, message_start, `event:` lines): what is said decides, not its form. */
#include "surface/messages.h"

#include "base/check.h"
#include "base/limits.h"

#include <stdlib.h>

void messages_turn_free(struct messages_turn *turn)
{
    if (turn == NULL) {
        return;
    }
    turn_stream_clear(&turn->stream);
    for (size_t i = 0; i < turn->blocks_count; i++) {
        messages_block_free(turn->blocks[i]);
    }
    struct buf *const owned[] = {&turn->json,  &turn->stop_reason, &turn->stop_sequence,
                                 &turn->usage, &turn->end_event,   &turn->assistant};
    for (size_t i = 0; i < COUNT_OF(owned); i++) {
        buf_clear(owned[i]);
    }
    arena_free(turn->arena);
    free(turn);
}

struct messages_turn *messages_turn_new(bool is_stream)
{
    struct messages_turn *turn = check_alloc(calloc(1, sizeof *turn));
    turn->arena = arena_new(0);
    turn->is_stream = is_stream;
    turn->json.max = LIMIT_BODY_BYTES;
    turn->used = SURFACE_USAGE_NONE;
    turn_stream_init(&turn->stream);
    return turn;
}

void messages_turn_begin(struct surface_exchange *exchange, bool is_stream)
{
    struct messages *m = messages_of(exchange);
    messages_turn_free(m->turn);
    m->turn = messages_turn_new(is_stream);
    if (m->turns == 0 && !m->start_given) { /* of an attempt that failed */
        buf_reset(&m->id);
        buf_reset(&m->model);
    }
}

/* ---- what is said beside blocks ---- */

static void usage_note(struct messages_turn *turn, const struct json_member *members, size_t count)
{
    const struct json_member *usage = json_find_type(members, count, "usage", JSON_OBJECT);
    if (usage == NULL) {
        return;
    }
    struct buf joined = {0};
    if (turn->usage.len > 0) {
        usage_overlay(buf_str(&turn->usage), usage->value.raw, &joined);
    } else {
        (void)buf_append_str(&joined, usage->value.raw); /* bounded by its event */
    }
    buf_clear(&turn->usage);
    turn->usage = joined;
    usage_read((struct json_value){JSON_OBJECT, buf_str(&turn->usage)}, &usage_names_messages,
               &turn->used);
}

static void stop_note(struct messages_turn *turn, const struct json_member *members, size_t count,
                      struct arena *arena)
{
    const struct json_member *sequence = json_find(members, count, "stop_sequence");
    struct str reason = json_find_text(members, count, "stop_reason", arena);
    if (reason.len > 0) {
        turn->whole = true;
        buf_reset(&turn->stop_reason);
        (void)buf_append_str(&turn->stop_reason, reason); /* bounded by its event */
    }
    if (sequence != NULL && sequence->value.type == JSON_STRING) {
        buf_reset(&turn->stop_sequence);
        (void)buf_append_str(&turn->stop_sequence, sequence->value.raw);
    }
}

/* ---- events ---- */

struct feeding { /* an event on its way */
    struct messages *m;
    struct buf *out;
    struct arena *arena; /* ends with the event */
    struct json_text event;
};

static const struct json_member *member_of(const struct feeding *feeding, const char *name)
{
    return json_find(feeding->event.members, feeding->event.count, name);
}

static int start_take(struct feeding *feeding, struct sg_error *err)
{
    const struct json_member *message =
        json_find_type(feeding->event.members, feeding->event.count, "message", JSON_OBJECT);
    struct json_member *members = NULL;
    size_t count = 0;
    int code = message == NULL ? SG_OK
                               : json_members(message->value, "the message", feeding->arena,
                                              &members, &count, err);
    if (code == SG_OK && message != NULL) {
        messages_identity_note(feeding->m, members, count);
        usage_note(feeding->m->turn, members, count);
        messages_start_give(feeding->m, &feeding->event, feeding->arena, feeding->out);
    }
    return code;
}

/* Pieces for a block that never began, as some upstreams send them: text begins one. */
static int block_imply(struct feeding *feeding, const struct json_member *delta, size_t count,
                       struct messages_block **ret, struct sg_error *err)
{
    struct str type = json_find_text(delta, count, "type", feeding->arena);
    struct json_value block = {JSON_OBJECT, {0}};
    if (str_is(type, "text_delta")) {
        block.raw = STR("{\"type\":\"text\",\"text\":\"\"}");
    } else if (str_is(type, "thinking_delta")) {
        block.raw = STR("{\"type\":\"thinking\",\"thinking\":\"\"}");
    } else {
        return error_set(err, SG_E_INVALID, "a delta of a content block that does not go on");
    }
    const struct json_member *index = member_of(feeding, "index");
    int code = messages_block_take(feeding->m, block, index, false, err);
    if (code == SG_OK) {
        *ret = feeding->m->turn->blocks[feeding->m->turn->blocks_count - 1];
    }
    return code;
}

static int delta_take(struct feeding *feeding, struct sg_error *err)
{
    const struct json_member *delta =
        json_find_type(feeding->event.members, feeding->event.count, "delta", JSON_OBJECT);
    struct json_member *members = NULL;
    size_t count = 0;
    if (delta == NULL) {
        return SG_OK;
    }
    int code = json_members(delta->value, "a delta", feeding->arena, &members, &count, err);
    if (code != SG_OK) {
        return code;
    }
    struct messages_block *block =
        messages_block_find(feeding->m->turn, member_of(feeding, "index"));
    if (block == NULL) {
        code = block_imply(feeding, members, count, &block, err);
        if (code != SG_OK) {
            return code;
        }
        if (feeding->m->request.wants_stream) {
            messages_show(feeding->m, feeding->m->turn, feeding->out);
        }
    }
    bool is_known;
    feeding->m->turn->kept_bytes += delta->value.raw.len;
    if (messages_block_grow(block, members, count, feeding->arena, &is_known)) {
        messages_show_delta(feeding->m, block, &feeding->event, is_known, feeding->arena,
                            feeding->out);
    }
    return SG_OK;
}

static int block_take(struct feeding *feeding, struct sg_error *err)
{
    const struct json_member *block = member_of(feeding, "content_block");
    if (block == NULL) {
        return error_set(err, SG_E_INVALID, "a content block is missing");
    }
    feeding->m->turn->kept_bytes += block->value.raw.len;
    return messages_block_take(feeding->m, block->value, member_of(feeding, "index"), false, err);
}

static int end_take(struct feeding *feeding, struct sg_error *err)
{
    struct messages_turn *turn = feeding->m->turn;
    const struct json_member *delta =
        json_find_type(feeding->event.members, feeding->event.count, "delta", JSON_OBJECT);
    struct json_member *members = NULL;
    size_t count = 0;
    int code = delta == NULL
                   ? SG_OK
                   : json_members(delta->value, "a delta", feeding->arena, &members, &count, err);
    if (code != SG_OK) {
        return code;
    }
    usage_note(turn, feeding->event.members, feeding->event.count);
    stop_note(turn, members, count, feeding->arena);
    if (turn->whole && json_find_type(members, count, "stop_reason", JSON_STRING) != NULL) {
        buf_reset(&turn->end_event);
        (void)buf_append_str(&turn->end_event, feeding->event.raw); /* bounded by its event */
    }
    return SG_OK;
}

static int named_event_take(struct feeding *feeding, struct str type, struct sg_error *err)
{
    struct messages_turn *turn = feeding->m->turn;
    if (str_is(type, "content_block_delta")) {
        return delta_take(feeding, err);
    }
    if (str_is(type, "content_block_start")) {
        return block_take(feeding, err);
    }
    if (str_is(type, "content_block_stop")) {
        struct messages_block *block = messages_block_find(turn, member_of(feeding, "index"));
        if (block != NULL) {
            block->complete = true;
        }
    } else if (str_is(type, "message_start")) {
        return start_take(feeding, err);
    } else if (str_is(type, "message_delta")) {
        return end_take(feeding, err);
    } else if (str_is(type, "message_stop")) {
        turn->whole = turn->done = true;
    }
    return SG_OK; /* pings, and what we do not know: clients would not either */
}

static int event_read(struct feeding *feeding, struct sse_event event, struct sg_error *err)
{
    struct messages *m = feeding->m;
    if (json_scan(event.data, feeding->arena, &feeding->event, err) != SG_OK) {
        return not_understood(err);
    }
    if (feeding->event.root.type != JSON_OBJECT) {
        error_set(err, SG_E_INVALID, "an event is no JSON object");
        return not_understood(err);
    }
    int code = messages_reported(&feeding->event, str_is(event.name, "error"), feeding->arena, err);
    if (code != SG_OK) {
        return code;
    }
    struct str type =
        json_find_text(feeding->event.members, feeding->event.count, "type", feeding->arena);
    if (named_event_take(feeding, type.len > 0 ? type : event.name, err) != SG_OK) {
        return not_understood(err);
    }
    if (m->turn->kept_bytes > LIMIT_BODY_BYTES) {
        return answer_too_large(err);
    }
    if (m->request.wants_stream) {
        messages_show(m, m->turn, feeding->out);
    }
    return SG_OK;
}

static int event_take(void *context, struct sse_event event, struct sg_error *err)
{
    struct feeding *feeding = context;
    struct messages_turn *turn = feeding->m->turn;
    if (turn->done) {
        return SG_OK;
    }
    struct str data = str_trim(event.data);
    turn->done = str_is(data, "[DONE]");
    if (turn->done || data.len == 0 || str_is(event.name, "ping")) {
        return SG_OK;
    }
    feeding->arena = arena_new(0);
    int code = event_read(feeding, event, err);
    arena_free(feeding->arena);
    return code;
}

static int stream_feed(struct messages *m, struct str bytes, struct buf *out, struct sg_error *err)
{
    struct feeding feeding = {.m = m, .out = out};
    return turn_stream_feed(&m->turn->stream, bytes, event_take, &feeding, err);
}

int messages_turn_feed(struct surface_exchange *exchange, struct str bytes, struct buf *out,
                       struct sg_error *err)
{
    struct messages *m = messages_of(exchange);
    CHECK(m->turn != NULL);
    if (m->turn->is_stream) {
        return stream_feed(m, bytes, out, err);
    }
    return buf_append_str(&m->turn->json, bytes) ? SG_OK : answer_too_large(err);
}

/* ---- a JSON answer ---- */

static int content_take(struct messages *m, const struct json_member *content, struct sg_error *err)
{
    struct json_value element;
    if (content == NULL || content->value.type == JSON_NULL) {
        return SG_OK;
    }
    if (content->value.type == JSON_STRING) {
        struct buf block = {0};
        (void)buf_puts(&block, "{\"type\":\"text\",\"text\":"); /* bounded by the answer */
        (void)buf_append_str(&block, content->value.raw);
        (void)buf_putc(&block, '}');
        element = (struct json_value){JSON_OBJECT, buf_to_arena(&block, m->turn->arena)};
        m->changed = true;
        return messages_block_take(m, element, NULL, true, err);
    }
    if (content->value.type != JSON_ARRAY) {
        return error_set(err, SG_E_INVALID, "its content is no array");
    }
    struct json_walk walk = json_walk_of(content->value);
    int code = SG_OK;
    while (code == SG_OK && json_walk_element(&walk, &element)) {
        code = messages_block_take(m, element, NULL, true, err);
    }
    return code;
}

static int answer_read(struct messages *m, struct sg_error *err)
{
    struct messages_turn *turn = m->turn;
    struct json_text *answer = &turn->answer;
    if (json_scan(buf_str(&turn->json), turn->arena, answer, err) != SG_OK) {
        return not_understood(err);
    }
    int code = messages_reported(answer, false, turn->arena, err);
    if (code != SG_OK) {
        return code;
    }
    const struct json_member *content = json_find(answer->members, answer->count, "content");
    if (content == NULL && json_find(answer->members, answer->count, "stop_reason") == NULL) {
        error_set(err, SG_E_INVALID, "it has no content");
        return not_understood(err);
    }
    messages_identity_note(m, answer->members, answer->count);
    usage_note(turn, answer->members, answer->count);
    stop_note(turn, answer->members, answer->count, turn->arena);
    if (content_take(m, content, err) != SG_OK) {
        return not_understood(err);
    }
    turn->kept_bytes = turn->json.len;
    turn->whole = true;
    return SG_OK;
}

/* ---- the end ---- */

static int turn_read_end(struct messages *m, struct buf *out, struct sg_error *err)
{
    struct messages_turn *turn = m->turn;
    if (!turn->is_stream) {
        return answer_read(m, err);
    }
    int code = turn->whole ? SG_OK : stream_feed(m, STR("\n\n"), out, err);
    if (code == SG_OK && !turn->whole) {
        code = error_set(err, SG_E_UNAVAILABLE,
                         "The upstream's stream ended before its answer was whole");
    }
    return code;
}

static void usage_take(struct messages *m, const struct messages_turn *turn)
{
    usage_add(&m->used, &turn->used);
    if (turn->usage.len == 0) {
        return;
    }
    struct buf sum = {0};
    if (m->usage.len > 0 && !m->usage_last) {
        usage_sum(buf_str(&m->usage), buf_str(&turn->usage), &sum);
    } else {
        (void)buf_append_str(&sum, buf_str(&turn->usage)); /* bounded by its events */
    }
    buf_clear(&m->usage);
    m->usage = sum;
}

static bool ends_by_length(const struct messages_turn *turn)
{
    struct str reason = buf_str(&turn->stop_reason);
    return str_is(reason, "max_tokens") || str_is(reason, "model_context_window_exceeded");
}

/* Whatever goes on, ends. */
static void blocks_end(struct messages *m, struct messages_turn *turn, struct buf *out)
{
    for (size_t i = 0; i < turn->blocks_count; i++) {
        turn->blocks[i]->complete = true;
    }
    if (m->request.wants_stream) {
        messages_start_give(m, NULL, turn->arena, out);
        messages_show(m, turn, out);
    }
}

/* The client gets the text that was held for the case that a call of ours follows, or never sees it. */
static void held_release(struct messages *m, struct messages_turn *turn)
{
    bool drops = turn->ours_count > 0 && !ends_by_length(turn);
    for (size_t i = 0; i < turn->blocks_count; i++) {
        struct messages_block *block = turn->blocks[i];
        if (block->held && drops && block->kind == MESSAGES_TEXT) {
            block->hidden = m->changed = true;
        }
        block->held = false;
        bool is_text = block->kind == MESSAGES_TEXT && !block->hidden;
        turn->text_given = turn->text_given || (is_text && messages_block_says(block));
    }
    turn->show_from = 0;
}

int messages_turn_end(struct surface_exchange *exchange, struct buf *out, struct surface_turn *ret,
                      struct sg_error *err)
{
    struct messages *m = messages_of(exchange);
    struct messages_turn *turn = m->turn;
    CHECK(turn != NULL);
    int code = turn_read_end(m, out, err);
    if (code != SG_OK) {
        return code;
    }
    messages_calls_settle(m, turn);
    usage_take(m, turn);
    if (turn->ours_count > 0 && messages_tokens_spent(m)) { /* no turn could follow */
        buf_reset(&turn->stop_reason);
        (void)buf_puts(&turn->stop_reason, "max_tokens"); /* small: fits */
    }
    blocks_end(m, turn, out);
    held_release(m, turn);
    messages_show(m, turn, out);
    messages_turn_commit(m);
    *ret = (struct surface_turn){.calls = turn->ours,
                                 .calls_count = turn->ours_count,
                                 .has_client_calls = messages_client_calls(turn) > 0,
                                 .length = ends_by_length(turn),
                                 .has_text = turn->text_given,
                                 .usage = turn->used};
    return SG_OK;
}
