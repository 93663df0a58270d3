/* The body of each turn, spliced from the client's: hosted tools swapped, the force of tool choice as the turn needs it,
 * the streaming form, the rest of the token limit, and behind the client's messages those of the turns so far. */
#include "surface/chat.h"

#include "base/check.h"
#include "base/limits.h"

#include <stdio.h>

static struct str kept(const struct body_edit *edit, struct buf *text)
{
    return buf_to_arena(text, edit->arena);
}

static void tools_edit(struct chat *chat, const struct surface_turn_options *options,
                       struct body_edit *edit)
{
    static const char *const gone_with_tools[] = {"parallel_tool_calls", NULL};
    const struct chat_request *request = &chat->request;
    body_edit_cut(edit, request->search_options);
    body_edit_tools(edit, &request->set, options->last && options->remove_tools, gone_with_tools);
    openai_choice_edit(edit, &request->choice, &request->set, options, chat->call_made, false);
}

/* ---- messages ---- */

void chat_messages_put(const struct chat_turn *turn, struct buf *out)
{
    if (turn == NULL || turn->ours_count == 0) {
        return;
    }
    (void)buf_putc(out, ','); /* overflow is asked for by the owner */
    (void)buf_append_str(out, buf_str(&turn->assistant));
    for (size_t i = 0; i < turn->ours_count; i++) {
        const struct chat_call *call = turn->ours_calls[i];
        (void)buf_puts(out, ",{\"role\":\"tool\",\"tool_call_id\":");
        (void)buf_put_json(out, buf_str(&call->shown_id));
        (void)buf_puts(out, ",\"content\":");
        (void)buf_put_json(out, buf_str(&call->result));
        (void)buf_putc(out, '}');
    }
}

/* `more` lives until the edits are applied. */
static void messages_edit(const struct chat *chat, struct body_edit *edit, struct buf *more)
{
    (void)buf_append_str(more, buf_str(&chat->history)); /* asked for at the end */
    chat_messages_put(chat->last, more);
    struct str text = buf_str(more), raw = chat->request.messages->value.raw;
    if (text.len == 0) {
        return;
    }
    if (chat->request.messages_empty) {
        text = (struct str){text.data + 1, text.len - 1};
    }
    splice_add(&edit->splice, body_edit_at(edit, raw.data) + raw.len - 1, 0, text);
}

/* ---- streaming and limits ---- */

static void usage_ask(const struct chat_request *request, struct body_edit *edit)
{
    const struct json_member *options = request->stream_options;
    if (options == NULL || options->value.type != JSON_OBJECT) {
        body_edit_set(edit, options, "stream_options", STR("{\"include_usage\":true}"));
        return;
    }
    const struct json_member *include =
        json_find(request->stream_option_members, request->stream_option_count, "include_usage");
    if (include != NULL) {
        body_edit_set(edit, include, "", STR("true"));
        return;
    }
    size_t at = body_edit_at(edit, options->value.raw.data) + 1;
    splice_add(&edit->splice, at, 0,
               request->stream_option_count == 0 ? STR("\"include_usage\":true")
                                                 : STR("\"include_usage\":true,"));
}

static void stream_edit(const struct chat_request *request,
                        const struct surface_turn_options *options, struct body_edit *edit)
{
    if (options->stream) {
        if (!request->wants_stream) {
            body_edit_set(edit, request->stream, "stream", STR("true"));
        }
        usage_ask(request, edit);
        return;
    }
    if (request->wants_stream) {
        body_edit_set(edit, request->stream, "stream", STR("false"));
    }
    body_edit_cut(edit, request->stream_options);
}

static const char *const limit_names[] = {"max_tokens", "max_completion_tokens"};

bool chat_tokens_spent(const struct chat *chat)
{
    const struct json_text *body = chat->request.body;
    for (size_t i = 0; i < COUNT_OF(limit_names); i++) {
        if (tokens_left(json_find(body->members, body->count, limit_names[i]),
                        chat->used.output_tokens) == 0) {
            return true;
        }
    }
    return false;
}

/* Later turns get what the earlier ones left of the client's limit. */
static void limits_edit(const struct chat *chat, struct body_edit *edit)
{
    const struct json_text *body = edit->body;
    for (size_t i = 0; i < COUNT_OF(limit_names) && chat->turns > 0; i++) {
        const struct json_member *limit = json_find(body->members, body->count, limit_names[i]);
        int64_t left = tokens_left(limit, chat->used.output_tokens);
        if (left >= 0) {
            struct buf number = {0};
            (void)buf_printf(&number, "%lld", (long long)left); /* small: fits */
            body_edit_set(edit, limit, limit_names[i], kept(edit, &number));
        }
    }
}

/* ---- all ---- */

int chat_turn_request(struct surface_exchange *exchange, const struct surface_turn_options *options,
                      struct buf *ret, struct sg_error *err)
{
    struct chat *chat = chat_of(exchange);
    if (chat->turns > 0 && chat_tokens_spent(chat)) {
        error_set(err, SG_E_LIMIT, "the client's token limit is used up");
        (void)snprintf(err->reason, sizeof err->reason, "token_limit"); /* fits */
        return SG_E_LIMIT;
    }
    BUF_CLEANUP struct buf more = {0};
    struct body_edit edit = body_edit_begin(chat->request.body, chat->arena);
    const struct splice *edits = &chat->request.edits;
    for (size_t i = 0; i < edits->count; i++) {
        splice_add(&edit.splice, edits->edits[i].at, edits->edits[i].cut, edits->edits[i].put);
    }
    tools_edit(chat, options, &edit);
    messages_edit(chat, &edit, &more);
    stream_edit(&chat->request, options, &edit);
    limits_edit(chat, &edit);
    bool is_whole = body_edit_apply(&edit, ret) && !more.overflow;
    return is_whole ? SG_OK : body_too_large(chat->turns == 0, err);
}
