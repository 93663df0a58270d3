/* The upstream's answer of one turn, streamed or plain: read piece by piece, and judged at its end. */
#include "surface/responses.h"

#include "base/check.h"
#include "base/limits.h"

#include <stdlib.h>

void responses_turn_free(struct responses_turn *turn)
{
    if (turn == NULL) {
        return;
    }
    turn_stream_clear(&turn->stream);
    for (size_t i = 0; i < turn->items_count; i++) {
        responses_item_free(turn->items[i]);
    }
    buf_clear(&turn->json);
    buf_clear(&turn->incomplete_reason);
    buf_clear(&turn->usage);
    arena_free(turn->arena);
    free(turn);
}

/* What was shown of a turn that failed: nothing of it has gone to the client, or it would not be tried again. */
static void shown_take_back(struct responses *r)
{
    while (r->shown_count > r->shown_whole) {
        responses_shown_free(r->shown[--r->shown_count]);
    }
}

struct responses_turn *responses_turn_new(void)
{
    struct responses_turn *turn = check_alloc(calloc(1, sizeof *turn));
    turn->arena = arena_new(0);
    turn->json.max = LIMIT_BODY_BYTES;
    turn->items = arena_get(turn->arena, RESPONSES_ITEMS_MAX * sizeof(void *));
    turn->used = SURFACE_USAGE_NONE;
    turn_stream_init(&turn->stream);
    return turn;
}

void responses_turn_begin(struct surface_exchange *exchange, bool is_stream)
{
    struct responses *r = responses_of(exchange);
    responses_turn_free(r->turn);
    shown_take_back(r);
    r->turn = responses_turn_new();
    r->turn->is_stream = is_stream;
    r->turn->is_last = r->next_is_last;
    if (r->turns == 0 && !(r->begun && r->request.wants_stream)) { /* of an attempt that failed */
        r->begun = false;
        buf_reset(&r->created);
        buf_reset(&r->model);
    }
}

int responses_keep_bytes(struct responses_turn *turn, size_t bytes, struct sg_error *err)
{
    turn->kept_bytes += bytes;
    return turn->kept_bytes <= LIMIT_BODY_BYTES ? SG_OK : answer_too_large(err);
}

int responses_keep(struct responses_turn *turn, struct buf *to, struct str bytes,
                   struct sg_error *err)
{
    int code = responses_keep_bytes(turn, bytes.len, err);
    return code == SG_OK && !buf_append_str(to, bytes) ? answer_too_large(err) : code;
}

/* ---- feeding ---- */

struct feeding {
    struct responses *r;
    struct buf *out;
};

static int event_take(void *context, struct sse_event event, struct sg_error *err)
{
    const struct feeding *feeding = context;
    bool is_end_mark = str_is(str_trim(event.data), "[DONE]");
    if (feeding->r->turn->is_whole || is_end_mark) {
        return SG_OK;
    }
    struct arena *scratch = arena_new(0);
    int code = responses_event_take(feeding->r, event, scratch, feeding->out, err);
    arena_free(scratch);
    return code;
}

static int stream_feed(struct responses *r, struct str bytes, struct buf *out, struct sg_error *err)
{
    struct feeding feeding = {r, out};
    return turn_stream_feed(&r->turn->stream, bytes, event_take, &feeding, err);
}

int responses_turn_feed(struct surface_exchange *exchange, struct str bytes, struct buf *out,
                        struct sg_error *err)
{
    struct responses *r = responses_of(exchange);
    CHECK(r->turn != NULL);
    if (r->turn->is_stream) {
        return stream_feed(r, bytes, out, err);
    }
    return buf_append_str(&r->turn->json, bytes) ? SG_OK : answer_too_large(err);
}

/* ---- the end ---- */

static int answer_read(struct responses *r, struct buf *out, struct sg_error *err)
{
    struct responses_turn *turn = r->turn;
    struct json_text text;
    if (json_scan(buf_str(&turn->json), turn->arena, &text, err) != SG_OK) {
        return not_understood(err);
    }
    int code = reported_error(&text, false, turn->arena, err);
    if (code != SG_OK) {
        return code;
    }
    if (json_find_type(text.members, text.count, "output", JSON_ARRAY) == NULL) {
        error_set(err, SG_E_INVALID, "it has no output");
        return not_understood(err);
    }
    responses_identity_note(r, text.members, text.count);
    responses_begin(r, out);
    code = responses_whole_take(r, text.root, turn->arena, out, err);
    return code == SG_OK ? code : not_understood(err);
}

static int turn_read_end(struct responses *r, struct buf *out, struct sg_error *err)
{
    struct responses_turn *turn = r->turn;
    if (!turn->is_stream) {
        return answer_read(r, out, err);
    }
    int code = turn->is_whole ? SG_OK : stream_feed(r, STR("\n\n"), out, err);
    if (code == SG_OK && !turn->is_whole) {
        code = error_set(err, SG_E_UNAVAILABLE,
                         "The upstream's stream ended before its answer was whole");
    }
    return code;
}

static void usage_take(struct responses *r, const struct responses_turn *turn)
{
    usage_add(&r->used, &turn->used);
    if (turn->usage.len == 0) {
        return;
    }
    BUF_CLEANUP struct buf sum = {0};
    if (r->usage.len > 0 && !r->usage_last) {
        usage_sum(buf_str(&r->usage), buf_str(&turn->usage), &sum);
    } else {
        (void)buf_append_str(&sum, buf_str(&turn->usage)); /* bounded by its event */
    }
    buf_reset(&r->usage);
    (void)buf_append_str(&r->usage, buf_str(&sum));
}

/* Whatever is open is closed, but for calls that are still to run and those that wait until they have. */
static void rest_give(struct responses *r, bool drops_text, struct buf *out)
{
    struct responses_turn *turn = r->turn;
    const char *status = turn->is_incomplete ? "incomplete" : "completed";
    for (size_t i = 0; i < turn->items_count; i++) {
        struct responses_item *item = turn->items[i];
        if (item->offer >= 0) {
            responses_hosted_show(r, item, true, out);
            if (turn->is_incomplete && item->shown != NULL) {
                responses_hosted_close(r, item->shown, NULL, out);
            }
        } else if (!drops_text || item->kind != RESPONSES_MESSAGE) {
            responses_item_close(r, item, status, out);
        }
    }
}

/* The last whole turn becomes history, the one that was read takes its place. */
static void turn_commit(struct responses *r)
{
    responses_memory_note(r);
    responses_turn_items_put(r->last, &r->history); /* what is too much shows in the next request */
    responses_turn_free(r->last);
    r->turns++;
    r->call_made = r->call_made || r->turn->ours_count > 0 || r->turn->client_calls > 0;
    r->shown_whole = r->shown_count;
    r->last = TAKE(r->turn);
}

static bool turn_has_text(const struct responses_turn *turn)
{
    for (size_t i = 0; i < turn->items_count; i++) {
        if (turn->items[i]->shown != NULL && responses_item_has_text(turn->items[i])) {
            return true;
        }
    }
    return false;
}

int responses_turn_end(struct surface_exchange *exchange, struct buf *out, struct surface_turn *ret,
                       struct sg_error *err)
{
    struct responses *r = responses_of(exchange);
    struct responses_turn *turn = r->turn;
    CHECK(turn != NULL);
    int code = turn_read_end(r, out, err);
    if (code != SG_OK) {
        return code;
    }
    responses_calls_settle(r, turn);
    usage_take(r, turn);
    if (turn->ours_count > 0 && responses_tokens_spent(r)) { /* no turn could follow */
        turn->is_incomplete = true;
        buf_reset(&turn->incomplete_reason);
        (void)buf_puts(&turn->incomplete_reason, "max_output_tokens"); /* small: fits */
    }
    bool drops_text =
        r->request.holds_text && turn->ours_count > 0 && !turn->is_incomplete && !turn->is_last;
    turn->is_released = true;
    rest_give(r, drops_text, out);
    *ret = (struct surface_turn){.calls = turn->ours,
                                 .calls_count = turn->ours_count,
                                 .has_client_calls = turn->client_calls > 0,
                                 .length = turn->is_incomplete,
                                 .has_text = turn_has_text(turn),
                                 .usage = turn->used};
    r->has_said = r->has_said || ret->has_text;
    turn_commit(r);
    return SG_OK;
}
