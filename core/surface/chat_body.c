/* The body of each turn, spliced from the client's: hosted tools swapped, the force of tool choice as the turn needs it,
 * the streaming form, the rest of the token limit, and behind the client's messages those of the turns so far. */
#include "surface/chat.h"

#include "base/check.h"
#include "base/limits.h"

#include <stdio.h>

struct edit { /* of one turn's body */
    struct chat *chat;
    const struct surface_turn_options *options;
    struct splice splice;
    bool *gone;       /* members of the body that go */
    struct buf added; /* members that are added: `,"key":value`… */
    bool tools_left;  /* are there tools in this turn? */
};

static size_t at_of(const struct edit *edit, const char *p)
{
    return (size_t)(p - edit->chat->request.body->raw.data);
}

static void member_cut(struct edit *edit, const struct json_member *member)
{
    if (member != NULL) {
        edit->gone[member - edit->chat->request.body->members] = true;
    }
}

/* The member gets this value, or is added with it. `value` lives until the edits are applied. */
static void member_set(struct edit *edit, const struct json_member *member, const char *key,
                       struct str value)
{
    if (member != NULL) {
        splice_add(&edit->splice, at_of(edit, member->value.raw.data), member->value.raw.len,
                   value);
        return;
    }
    (void)buf_printf(&edit->added, ",\"%s\":", key); /* overflow is asked for at the end */
    (void)buf_append_str(&edit->added, value);
}

static struct str kept(const struct edit *edit, struct buf *text)
{
    CHECK(!text->overflow);
    struct str copy = {check_alloc(arena_copy(edit->chat->arena, buf_str(text))), text->len};
    buf_clear(text);
    return copy;
}

/* ---- tools ---- */

/* The definitions of the offers that the client did not name, each behind a comma. */
static struct str appended_tools(const struct edit *edit)
{
    const struct chat_request *request = &edit->chat->request;
    struct buf out = {0};
    for (size_t i = 0; i < request->offers_count; i++) {
        if (request->shown[i].appended) {
            (void)buf_putc(&out, ',');
            (void)buf_append_str(&out, request->shown[i].definition);
        }
    }
    return out.len == 0 ? (struct str){0} : kept(edit, &out);
}

static void entries_swap(struct edit *edit, bool remove)
{
    const struct chat_request *request = &edit->chat->request;
    size_t count = request->entries_count;
    struct json_value *values = arena_get(edit->chat->arena, (count + 1) * sizeof *values);
    bool *gone = arena_get(edit->chat->arena, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct chat_entry *entry = &request->entries[i];
        values[i] = entry->value;
        gone[i] = entry->offer >= 0 && (remove || !entry->first);
        if (entry->offer >= 0 && !gone[i]) {
            splice_add(&edit->splice, at_of(edit, entry->value.raw.data), entry->value.raw.len,
                       request->shown[entry->offer].definition);
        }
    }
    splice_cut_elements(&edit->splice, request->body->raw, request->tools->value, values, count,
                        gone);
}

static bool own_entries_exist(const struct chat_request *request)
{
    for (size_t i = 0; i < request->entries_count; i++) {
        if (request->entries[i].offer < 0) {
            return true;
        }
    }
    return false;
}

/* Our tools go, and with the last of them all that makes no sense without tools. */
static void tools_remove(struct edit *edit)
{
    const struct chat_request *request = &edit->chat->request;
    const struct json_text *body = request->body;
    edit->tools_left = own_entries_exist(request);
    if (!edit->tools_left) {
        member_cut(edit, request->tools);
        member_cut(edit, json_find(body->members, body->count, "parallel_tool_calls"));
    } else {
        entries_swap(edit, true);
    }
}

static void tools_edit(struct edit *edit)
{
    const struct chat_request *request = &edit->chat->request;
    member_cut(edit, request->search_options);
    if (edit->options->last && edit->options->remove_tools) {
        tools_remove(edit);
        return;
    }
    edit->tools_left = true;
    bool is_array = request->tools != NULL && request->tools->value.type == JSON_ARRAY;
    if (is_array) {
        entries_swap(edit, false);
    }
    struct str more = appended_tools(edit);
    if (more.len == 0) {
        return;
    }
    if (is_array && request->entries_count > 0) {
        struct str raw = request->entries[request->entries_count - 1].value.raw;
        splice_add(&edit->splice, at_of(edit, raw.data) + raw.len, 0, more);
        return;
    }
    struct buf list = {0};
    (void)buf_printf(&list, "[%.*s]", (int)more.len - 1, more.data + 1); /* without its comma */
    member_set(edit, request->tools, "tools", kept(edit, &list));
}

static void choice_edit(struct edit *edit)
{
    bool cut = false;
    const char *put = NULL;
    chat_choice_edit(edit->chat, edit->options, edit->tools_left, &edit->splice, &cut, &put);
    if (cut) {
        member_cut(edit, edit->chat->request.tool_choice);
    } else if (put != NULL) {
        member_set(edit, NULL, "tool_choice", str_of(put));
    }
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
static void messages_edit(struct edit *edit, struct buf *more)
{
    const struct chat *chat = edit->chat;
    (void)buf_append_str(more, buf_str(&chat->history)); /* asked for at the end */
    chat_messages_put(chat->last, more);
    struct str text = buf_str(more), raw = chat->request.messages->value.raw;
    if (text.len == 0) {
        return;
    }
    if (chat->request.messages_empty) {
        text = (struct str){text.data + 1, text.len - 1};
    }
    splice_add(&edit->splice, at_of(edit, raw.data) + raw.len - 1, 0, text);
}

/* ---- streaming and limits ---- */

static void usage_ask(struct edit *edit)
{
    const struct chat_request *request = &edit->chat->request;
    const struct json_member *options = request->stream_options;
    if (options == NULL || options->value.type != JSON_OBJECT) {
        member_set(edit, options, "stream_options", STR("{\"include_usage\":true}"));
        return;
    }
    const struct json_member *include =
        json_find(request->stream_option_members, request->stream_option_count, "include_usage");
    if (include != NULL) {
        member_set(edit, include, "", STR("true"));
        return;
    }
    size_t at = at_of(edit, options->value.raw.data) + 1;
    splice_add(&edit->splice, at, 0,
               request->stream_option_count == 0 ? STR("\"include_usage\":true")
                                                 : STR("\"include_usage\":true,"));
}

static void stream_edit(struct edit *edit)
{
    const struct chat_request *request = &edit->chat->request;
    if (edit->options->stream) {
        if (!request->wants_stream) {
            member_set(edit, request->stream, "stream", STR("true"));
        }
        usage_ask(edit);
        return;
    }
    if (request->wants_stream) {
        member_set(edit, request->stream, "stream", STR("false"));
    }
    member_cut(edit, request->stream_options);
}

static const char *const limit_names[] = {"max_tokens", "max_completion_tokens"};

int64_t chat_tokens_left(const struct chat *chat, const struct json_member *limit)
{
    int64_t tokens;
    if (limit == NULL || chat->used.output_tokens < 0 || !json_int_of(limit->value, &tokens) ||
        tokens < 0) {
        return -1;
    }
    int64_t left = tokens - chat->used.output_tokens;
    return left > 0 ? left : 0;
}

bool chat_tokens_spent(const struct chat *chat)
{
    const struct json_text *body = chat->request.body;
    for (size_t i = 0; i < COUNT_OF(limit_names); i++) {
        if (chat_tokens_left(chat, json_find(body->members, body->count, limit_names[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* Later turns get what the earlier ones left of the client's limit. */
static void limits_edit(struct edit *edit)
{
    const struct json_text *body = edit->chat->request.body;
    for (size_t i = 0; i < COUNT_OF(limit_names) && edit->chat->turns > 0; i++) {
        const struct json_member *limit = json_find(body->members, body->count, limit_names[i]);
        int64_t left = chat_tokens_left(edit->chat, limit);
        if (left >= 0) {
            struct buf number = {0};
            (void)buf_printf(&number, "%lld", (long long)left); /* small: fits */
            member_set(edit, limit, limit_names[i], kept(edit, &number));
        }
    }
}

/* ---- all ---- */

static void members_finish(struct edit *edit)
{
    const struct json_text *body = edit->chat->request.body;
    splice_cut_members(&edit->splice, body->raw, body->members, body->count, edit->gone);
    CHECK(body->count > 0); /* messages are there */
    struct str last = body->members[body->count - 1].value.raw;
    splice_add(&edit->splice, at_of(edit, last.data) + last.len, 0, buf_str(&edit->added));
}

static struct edit edit_begin(struct chat *chat, const struct surface_turn_options *options)
{
    struct edit edit = {.chat = chat, .options = options, .splice = {.arena = chat->arena}};
    edit.gone = arena_get(chat->arena, chat->request.body->count + 1);
    const struct splice *edits = &chat->request.edits;
    for (size_t i = 0; i < edits->count; i++) {
        splice_add(&edit.splice, edits->edits[i].at, edits->edits[i].cut, edits->edits[i].put);
    }
    return edit;
}

/* 413, which no client library repeats by itself: the same request would be too large again. */
static int too_large(const struct chat *chat, struct sg_error *err)
{
    error_set(err, SG_E_LIMIT, "The request%s is larger than %zu MiB.",
              chat->turns > 0 ? " for the next turn, with the results of its tools,"
                              : ", with what the gateway adds to it,",
              LIMIT_BODY_BYTES / MIB);
    err->status = 413;
    (void)snprintf(err->reason, sizeof err->reason, "request_too_large"); /* fits */
    return SG_E_LIMIT;
}

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
    struct edit edit = edit_begin(chat, options);
    tools_edit(&edit);
    choice_edit(&edit);
    messages_edit(&edit, &more);
    stream_edit(&edit);
    limits_edit(&edit);
    members_finish(&edit);
    size_t before = ret->len;
    bool whole = splice_apply(&edit.splice, chat->request.body->raw, ret) && !more.overflow &&
                 !edit.added.overflow;
    buf_clear(&edit.added);
    if (!whole || ret->len - before > LIMIT_BODY_BYTES) {
        return too_large(chat, err);
    }
    return SG_OK;
}
