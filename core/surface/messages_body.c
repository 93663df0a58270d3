/* The body of each turn, spliced from the client's: hosted tools swapped, the force of tool choice as the turn needs it,
 * the rest of the token limit, and behind the client's messages those of the turns so far. */
#include "surface/messages.h"

#include "base/check.h"
#include "base/limits.h"

#include <stdio.h>

enum { BUDGET_MIN = 1024 }; /* the least that servers take as a budget of thinking */

/* ---- messages ---- */

void messages_result_put(struct str id, struct str text, struct str cache_control, struct buf *out)
{
    (void)buf_puts(out, "{\"type\":\"tool_result\",\"tool_use_id\":"); /* the owner asks */
    (void)buf_put_json(out, id);
    (void)buf_puts(out, ",\"content\":");
    (void)buf_put_json(out, text);
    if (cache_control.len > 0) {
        (void)buf_puts(out, ",\"cache_control\":");
        (void)buf_append_str(out, cache_control);
    }
    (void)buf_putc(out, '}');
}

/* The turn's message whole, but for empty texts, which servers refuse in a request. */
static void assistant_put(struct messages_turn *turn, struct buf *out)
{
    (void)buf_puts(out, ",{\"role\":\"assistant\",\"content\":["); /* asked for with the body */
    size_t start = out->len;
    for (size_t i = 0; i < turn->blocks_count; i++) {
        const struct messages_block *block = turn->blocks[i];
        bool is_mute = block->kind == MESSAGES_TEXT && !messages_block_says(block);
        if (!block->dropped && !is_mute) {
            (void)buf_puts(out, out->len > start ? "," : "");
            messages_block_put(block, (struct str){0}, turn->arena, out);
        }
    }
    (void)buf_puts(out, "]}");
}

/* Both messages of a turn, each behind a comma. */
static void turn_put(const struct messages_turn *turn, struct buf *out)
{
    if (turn == NULL || (turn->ours_count == 0 && turn->results_before.len == 0)) {
        return;
    }
    (void)buf_append_str(out, buf_str(&turn->assistant)); /* overflow is asked for by the owner */
    (void)buf_puts(out, ",{\"role\":\"user\",\"content\":[");
    (void)buf_append_str(out, turn->results_before);
    for (size_t i = 0; i < turn->ours_count; i++) {
        (void)buf_puts(out, i > 0 || turn->results_before.len > 0 ? "," : "");
        messages_result_put(turn->ours[i].id, buf_str(&turn->our_blocks[i]->result),
                            (struct str){0}, out);
    }
    (void)buf_puts(out, "]}");
}

void messages_turn_commit(struct messages *m)
{
    struct messages_turn *turn = m->turn;
    if (turn->ours_count > 0) {
        assistant_put(turn, &turn->assistant);
    }
    turn_put(m->last, &m->history); /* what is too much shows in the next request */
    messages_turn_free(m->last);
    m->last = TAKE(m->turn);
    m->turns++;
    m->call_made = m->call_made || turn->ours_count > 0 || messages_client_calls(turn) > 0;
    m->has_text = m->has_text || turn->text_given;
}

/* `more` lives until the edits are applied. */
static void messages_edit(const struct messages *m, struct body_edit *edit, struct buf *more)
{
    (void)buf_append_str(more, buf_str(&m->history)); /* asked for at the end */
    turn_put(m->last, more);
    struct str text = buf_str(more), raw = m->request.messages->value.raw;
    if (text.len == 0) {
        return;
    }
    if (m->request.messages_empty) {
        text = (struct str){text.data + 1, text.len - 1};
    }
    splice_add(&edit->splice, body_edit_at(edit, raw.data) + raw.len - 1, 0, text);
}

/* ---- limits ---- */

bool messages_tokens_spent(const struct messages *m)
{
    int64_t left = tokens_left(m->request.max_tokens, m->used.output_tokens);
    int64_t budget;
    bool thinks = json_int_of(m->request.budget, &budget);
    return left == 0 || (thinks && left >= 0 && left <= BUDGET_MIN);
}

static struct str number_put(struct body_edit *edit, int64_t number)
{
    struct buf text = {0};
    (void)buf_printf(&text, "%lld", (long long)number); /* small: fits */
    return buf_to_arena(&text, edit->arena);
}

/* Later turns get what the earlier ones left of the client's limit; a budget of thinking must stay below it. */
static void limits_edit(const struct messages *m, struct body_edit *edit)
{
    const struct messages_request *request = &m->request;
    int64_t left = tokens_left(request->max_tokens, m->used.output_tokens), budget;
    if (m->turns == 0 || left < 0) {
        return;
    }
    body_edit_set(edit, request->max_tokens, "max_tokens", number_put(edit, left));
    if (json_int_of(request->budget, &budget) && budget >= left) {
        body_edit_value(edit, request->budget, number_put(edit, left - 1));
    }
}

/* ---- all ---- */

static void stream_edit(const struct messages_request *request,
                        const struct surface_turn_options *options, struct body_edit *edit)
{
    if (options->stream != request->wants_stream) {
        body_edit_set(edit, request->stream, "stream",
                      options->stream ? STR("true") : STR("false"));
    }
}

int messages_turn_request(struct surface_exchange *exchange,
                          const struct surface_turn_options *options, struct buf *ret,
                          struct sg_error *err)
{
    static const char *const gone_with_tools[] = {NULL};
    struct messages *m = messages_of(exchange);
    const struct messages_request *request = &m->request;
    if (m->turns > 0 && messages_tokens_spent(m)) {
        error_set(err, SG_E_LIMIT, "the client's token limit is used up");
        (void)snprintf(err->reason, sizeof err->reason, "token_limit"); /* fits */
        return SG_E_LIMIT;
    }
    BUF_CLEANUP struct buf more = {0};
    struct body_edit edit = body_edit_begin(request->body, m->arena);
    for (size_t i = 0; i < request->edits.count; i++) {
        const struct splice_edit *one = &request->edits.edits[i];
        splice_add(&edit.splice, one->at, one->cut, one->put);
    }
    body_edit_tools(&edit, &request->set, options->last && options->remove_tools, gone_with_tools);
    messages_choice_edit(&edit, request, options, m->call_made);
    body_edit_cut(&edit, request->container_member);
    messages_edit(m, &edit, &more);
    stream_edit(request, options, &edit);
    limits_edit(m, &edit);
    bool is_whole = body_edit_apply(&edit, ret) && !more.overflow;
    return is_whole ? SG_OK : body_too_large(m->turns == 0, err);
}
