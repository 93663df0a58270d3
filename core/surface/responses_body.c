/* The body of each turn, spliced from the client's: hosted tools swapped, the force of tool choice as the turn needs it,
 * the rest of the token limit, what only we answer taken out; and around the client's input the items of earlier responses
 * and of the turns so far. */
#include "surface/responses.h"

#include "base/check.h"
#include "base/limits.h"

#include <stdio.h>

enum { TOKENS_LEAST = 16 }; /* of max_output_tokens: hosted services refuse less */

static const struct json_member *body_find(const struct body_edit *edit, const char *name)
{
    return json_find(edit->body->members, edit->body->count, name);
}

/* ---- tools ---- */

static void tools_edit(struct responses *r, const struct surface_turn_options *options,
                       struct body_edit *edit)
{
    static const char *const gone_with_tools[] = {"parallel_tool_calls", NULL};
    const struct responses_request *request = &r->request;
    body_edit_tools(edit, &request->set, options->last && options->remove_tools, gone_with_tools);
    openai_choice_edit(edit, &request->choice, &request->set, options, r->call_made, true);
}

/* ---- input ---- */

static void output_put(const struct responses_item *item, struct buf *out)
{
    (void)buf_puts(out, ",{\"type\":\"function_call_output\",\"call_id\":"); /* asked for below */
    (void)buf_put_json(out, buf_str(&item->call_id));
    (void)buf_puts(out, ",\"output\":");
    (void)buf_put_json(out, buf_str(&item->result));
    (void)buf_putc(out, '}');
}

/* Does the item go up again? Reasoning that carries nothing, and messages without text, would be refused. */
static bool goes_up(const struct responses_item *item)
{
    switch (item->kind) {
    case RESPONSES_CALL:
        return item->offer >= 0 && !item->is_dropped && item->has_result;
    case RESPONSES_MESSAGE:
        return responses_item_has_text(item);
    case RESPONSES_REASONING:
        return responses_reasoning_says(item);
    case RESPONSES_OTHER:
        return !item->awaits_client && item->raw.len > 0;
    default:
        return false;
    }
}

void responses_turn_items_put(const struct responses_turn *turn, struct buf *out)
{
    if (turn == NULL || turn->ours_count == 0) {
        return;
    }
    for (size_t i = 0; i < turn->items_count; i++) {
        if (goes_up(turn->items[i])) {
            (void)buf_putc(out, ','); /* overflow is asked for by the owner */
            responses_item_put(turn->items[i], true, "completed", out);
        }
    }
    for (size_t i = 0; i < turn->ours_count; i++) {
        output_put(turn->ours_items[i], out);
    }
}

static struct str without_comma(struct str text, bool is_behind)
{
    return is_behind ? (struct str){text.data, text.len - 1}
                     : (struct str){text.data + 1, text.len - 1};
}

/* A list that is there: what was before at its start, what is new at its end. */
static void list_edit(const struct responses_request *request, struct body_edit *edit,
                      struct str more)
{
    struct str before = request->before, raw = request->input->value.raw;
    size_t at = body_edit_at(edit, raw.data);
    if (!request->items_left && before.len > 0) {
        before = more.len > 0 ? before : without_comma(before, true);
        more = more.len > 0 ? without_comma(more, false) : more;
    } else if (!request->items_left && more.len > 0) {
        more = without_comma(more, false);
    }
    if (before.len > 0) {
        splice_add(&edit->splice, at + 1, 0, before);
    }
    if (more.len > 0) {
        splice_add(&edit->splice, at + raw.len - 1, 0, more);
    }
}

/* A text, or nothing at all, becomes a list around it. `list` lives until the edits are applied. */
static void text_edit(const struct responses_request *request, struct body_edit *edit,
                      struct str more, struct buf *list)
{
    const struct json_member *input = request->input;
    bool is_text = input != NULL && input->value.type == JSON_STRING;
    if (request->before.len == 0 && more.len == 0) {
        return;
    }
    (void)buf_putc(list, '['); /* asked for at the end */
    (void)buf_append_str(list, request->before);
    if (is_text) {
        (void)buf_puts(list, "{\"role\":\"user\",\"content\":");
        (void)buf_append_str(list, input->value.raw);
        (void)buf_putc(list, '}');
    } else if (more.len > 0) {
        more = without_comma(more, false);
    } else {
        list->len--;
    }
    (void)buf_append_str(list, more);
    (void)buf_putc(list, ']');
    body_edit_set(edit, input, "input", buf_str(list));
}

/* ---- include ---- */

static bool is_vendors(const struct tool_set *set, const char *kind)
{
    for (size_t i = 0; i < set->entries_count; i++) {
        if (set->entries[i].offer < 0 && str_starts(set->entries[i].type, str_of(kind))) {
            return true;
        }
    }
    return false;
}

/* Is this a value that only we answer? Of a tool that the upstream answers itself it is the upstream's. */
static bool is_our_value(const struct responses_request *request, struct json_value value,
                         struct arena *arena)
{
    static const char *const of_kind[][2] = {{"code_interpreter_call.", "code_interpreter"},
                                             {"web_search_call.", "web_search"}};
    struct str text = value.type == JSON_STRING ? json_text_of(value, arena) : (struct str){0};
    for (size_t i = 0; i < COUNT_OF(of_kind); i++) {
        if (str_starts(text, str_of(of_kind[i][0]))) {
            return !is_vendors(&request->set, of_kind[i][1]);
        }
    }
    return false;
}

static void include_edit(const struct responses_request *request, struct body_edit *edit)
{
    static const char encrypted[] = "reasoning.encrypted_content";
    const struct json_member *include = request->include;
    bool adds = request->asks_for_reasoning && !responses_includes(include, encrypted);
    if (include == NULL || include->value.type != JSON_ARRAY) {
        if (adds) {
            body_edit_set(edit, include, "include", STR("[\"reasoning.encrypted_content\"]"));
        }
        return;
    }
    size_t count = 0, left = 0;
    struct json_value *values = json_elements(include->value, edit->arena, &count);
    bool *gone = arena_get(edit->arena, count + 1);
    for (size_t i = 0; i < count; i++) {
        gone[i] = is_our_value(request, values[i], edit->arena);
        left += !gone[i];
    }
    if (left == 0 && !adds) {
        body_edit_cut(edit, include);
    } else if (left == 0) {
        body_edit_set(edit, include, "", STR("[\"reasoning.encrypted_content\"]"));
    } else {
        splice_cut_elements(&edit->splice, edit->body->raw, include->value, values, count, gone);
        size_t at = body_edit_at(edit, include->value.raw.data) + 1;
        splice_add(&edit->splice, at, 0,
                   adds ? STR("\"reasoning.encrypted_content\",") : (struct str){0});
    }
}

/* ---- state, streaming and limits ---- */

/* The upstream keeps nothing: its ids would mean nothing to the client, who has ours. */
static void state_edit(struct body_edit *edit)
{
    static const char *const ours[] = {"max_tool_calls", "previous_response_id", "background",
                                       "conversation"};
    const struct json_member *store = body_find(edit, "store");
    if (store == NULL || store->value.type != JSON_FALSE) {
        body_edit_set(edit, store, "store", STR("false"));
    }
    for (size_t i = 0; i < COUNT_OF(ours); i++) {
        body_edit_cut(edit, body_find(edit, ours[i]));
    }
}

static void stream_edit(const struct responses_request *request,
                        const struct surface_turn_options *options, struct body_edit *edit)
{
    if (options->stream != request->wants_stream) {
        body_edit_set(edit, request->stream, "stream",
                      options->stream ? STR("true") : STR("false"));
    }
    if (!options->stream) {
        body_edit_cut(edit, body_find(edit, "stream_options"));
    }
}

static const struct json_member *limit_of(const struct responses *r)
{
    const struct json_text *body = r->request.body;
    return json_find(body->members, body->count, "max_output_tokens");
}

bool responses_tokens_spent(const struct responses *r)
{
    int64_t left = tokens_left(limit_of(r), r->used.output_tokens);
    return left >= 0 && left < TOKENS_LEAST;
}

/* Later turns get what the earlier ones left of the client's limit. */
static void limit_edit(const struct responses *r, struct body_edit *edit)
{
    const struct json_member *limit = limit_of(r);
    int64_t left = r->turns == 0 ? -1 : tokens_left(limit, r->used.output_tokens);
    if (left >= 0) {
        struct buf number = {0};
        (void)buf_printf(&number, "%lld", (long long)left); /* small: fits */
        body_edit_set(edit, limit, "", buf_to_arena(&number, edit->arena));
    }
}

/* ---- all ---- */

int responses_turn_request(struct surface_exchange *exchange,
                           const struct surface_turn_options *options, struct buf *ret,
                           struct sg_error *err)
{
    struct responses *r = responses_of(exchange);
    if (r->turns > 0 && responses_tokens_spent(r)) {
        error_set(err, SG_E_LIMIT, "the client's token limit is used up");
        (void)snprintf(err->reason, sizeof err->reason, "token_limit"); /* fits */
        return SG_E_LIMIT;
    }
    const struct responses_request *request = &r->request;
    BUF_CLEANUP struct buf more = {.max = LIMIT_BODY_BYTES}, list = {.max = 2 * LIMIT_BODY_BYTES};
    struct body_edit edit = body_edit_begin(request->body, r->arena);
    (void)buf_append_str(&more, buf_str(&r->history)); /* asked for at the end */
    responses_turn_items_put(r->last, &more);
    if (request->input != NULL && request->input->value.type == JSON_ARRAY) {
        for (size_t i = 0; i < request->edits.count; i++) {
            const struct splice_edit *done = &request->edits.edits[i];
            splice_add(&edit.splice, done->at, done->cut, done->put);
        }
        list_edit(request, &edit, buf_str(&more));
    } else {
        text_edit(request, &edit, buf_str(&more), &list);
    }
    tools_edit(r, options, &edit);
    include_edit(request, &edit);
    state_edit(&edit);
    stream_edit(request, options, &edit);
    limit_edit(r, &edit);
    r->next_is_last = options->last;
    bool is_whole =
        body_edit_apply(&edit, ret) && !more.overflow && !list.overflow && !r->history.overflow;
    return is_whole ? SG_OK : body_too_large(r->turns == 0, err);
}
