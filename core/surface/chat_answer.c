/* The client's JSON answer, and what both forms of an answer share: identity, finish reason, usage. */
#include "surface/chat.h"

#include "base/check.h"
#include "base/clock.h"

enum { IDENTITY_BYTES_MAX = 1024 }; /* of an id, a model's name */

/* ---- shared ---- */

/* Keeps the first one that says something. One of absurd length, which every chunk would repeat, says nothing. */
static void identity_keep(struct buf *to, const struct json_member *member, size_t bytes_min)
{
    if (to->len == 0 && member != NULL && member->value.raw.len >= bytes_min &&
        member->value.raw.len <= IDENTITY_BYTES_MAX) {
        (void)buf_append_str(to, member->value.raw); /* small: fits */
    }
}

void chat_identity_note(struct chat *chat, const struct json_member *members, size_t count)
{
    if (chat->turns == 0) {
        identity_keep(&chat->id, json_find_type(members, count, "id", JSON_STRING), 3);
        identity_keep(&chat->created, json_find_type(members, count, "created", JSON_NUMBER), 1);
        identity_keep(&chat->model, json_find_type(members, count, "model", JSON_STRING), 3);
    }
}

void chat_identity_fill(struct chat *chat)
{
    if (chat->id.len == 0) {
        (void)buf_puts(&chat->id, "\"chatcmpl-"); /* small: fits */
        (void)buf_put_json_inner(&chat->id, chat->answer_id);
        (void)buf_putc(&chat->id, '"');
    }
    if (chat->created.len == 0) {
        (void)buf_printf(&chat->created, "%lld", (long long)clock_unix_s()); /* small: fits */
    }
    if (chat->model.len == 0) {
        const struct json_text *body = chat->request.body;
        const struct json_member *model =
            json_find_type(body->members, body->count, "model", JSON_STRING);
        (void)buf_append_str(&chat->model, model == NULL ? STR("\"\"") : model->value.raw);
    }
}

size_t chat_client_calls(const struct chat_turn *turn)
{
    size_t count = 0;
    for (size_t i = 0; i < turn->calls_count; i++) {
        count += turn->calls[i]->offer < 0 && !turn->calls[i]->dropped;
    }
    return count;
}

/* Presence of calls decides, whatever the upstream says; a limit stays what it is. */
const char *chat_finish_reason(const struct chat *chat)
{
    const struct chat_turn *turn = chat->last;
    if (turn == NULL || turn->finish_reason.len == 0) {
        return turn != NULL && chat_client_calls(turn) > 0 ? "tool_calls" : "stop";
    }
    struct str reason = buf_str(&turn->finish_reason);
    bool is_dropped = str_is(reason, "function_call") && !chat->request.has_functions;
    if (chat_client_calls(turn) > 0) {
        return str_is(reason, "stop") || is_dropped ? "tool_calls" : turn->finish_reason.data;
    }
    return str_is(reason, "tool_calls") || is_dropped ? "stop" : turn->finish_reason.data;
}

void chat_usage_put(const struct chat *chat, struct buf *out)
{
    size_t start = out->len;
    (void)buf_append_str(out, buf_str(&chat->usage)); /* the owner asks for overflow */
    for (size_t i = start; i < out->len; i++) {
        if (out->data[i] == '\n' || out->data[i] == '\r') {
            out->data[i] = ' '; /* white space; an event is one line */
        }
    }
}

/* ---- the JSON answer ---- */

void chat_content_put(const struct chat *chat, struct str closing, struct buf *out)
{
    const struct chat_turn *turn = chat->last;
    bool given = turn != NULL && turn->text_given;
    (void)buf_append_str(out, buf_str(&chat->before)); /* the owner asks for overflow */
    if (given) {
        (void)buf_puts(out, chat->before.len > 0 ? "\\n\\n" : "");
        (void)buf_append_str(out, buf_str(&turn->text));
    } else if (chat->before.len == 0 && (turn == NULL || chat_client_calls(turn) == 0)) {
        (void)buf_put_json_inner(out, closing);
    }
}

struct answer_edit {
    struct chat *chat;
    const struct chat_chunk *answer;
    struct splice splice;
    struct arena *arena; /* ends with the writing */
};

static void answer_put(struct answer_edit *edit, struct json_value value, struct str put)
{
    if (!str_eq(value.raw, put)) {
        splice_add(&edit->splice, (size_t)(value.raw.data - edit->answer->text.raw.data),
                   value.raw.len, put);
    }
}

static struct str kept(struct answer_edit *edit, struct buf *text)
{
    struct str copy = {check_alloc(arena_copy(edit->arena, buf_str(text))), text->len};
    buf_clear(text);
    return copy;
}

/* A member of the object gets the value, or is put with the added ones. */
static void member_put(struct answer_edit *edit, const struct json_member *members, size_t count,
                       const char *name, struct str put, struct buf *added)
{
    const struct json_member *member = json_find(members, count, name);
    if (member != NULL) {
        answer_put(edit, member->value, put);
        return;
    }
    (void)buf_printf(added, ",\"%s\":", name); /* bounded by the answer */
    (void)buf_append_str(added, put);
}

static void answer_head_edit(struct answer_edit *edit)
{
    struct chat *chat = edit->chat;
    const struct json_text *text = &edit->answer->text;
    bool *gone = arena_get(edit->arena, text->count + 1);
    struct buf added = {0};
    chat_identity_fill(chat);
    member_put(edit, text->members, text->count, "id", buf_str(&chat->id), &added);
    member_put(edit, text->members, text->count, "object", STR("\"chat.completion\""), &added);
    member_put(edit, text->members, text->count, "created", buf_str(&chat->created), &added);
    member_put(edit, text->members, text->count, "model", buf_str(&chat->model), &added);
    if (chat->usage.len > 0) {
        member_put(edit, text->members, text->count, "usage", buf_str(&chat->usage), &added);
    }
    struct str more = added.len > 0 ? kept(edit, &added) : (struct str){0};
    members_edit(&edit->splice, text->raw, text->root, text->members, text->count, gone, more);
}

static void answer_choices_edit(struct answer_edit *edit)
{
    const struct chat_chunk *answer = edit->answer;
    size_t count = 0;
    struct json_value *choices = json_elements(answer->choices, edit->arena, &count);
    bool *gone = arena_get(edit->arena, count);
    for (size_t i = 0; i < count; i++) {
        gone[i] = choices[i].raw.data != answer->choice.raw.data;
    }
    splice_cut_elements(&edit->splice, answer->text.raw, answer->choices, choices, count, gone);
    struct buf added = {0}, reason = {0};
    (void)buf_put_json(&reason, str_of(chat_finish_reason(edit->chat))); /* small: fits */
    member_put(edit, answer->choice_members, answer->choice_count, "finish_reason",
               kept(edit, &reason), &added);
    member_put(edit, answer->choice_members, answer->choice_count, "index", STR("0"), &added);
    struct str more = added.len > 0 ? kept(edit, &added) : (struct str){0};
    bool *gone_members = arena_get(edit->arena, answer->choice_count + 1);
    for (size_t i = 0; i < answer->choice_count; i++) { /* a chunk's, which may hold calls */
        gone_members[i] = str_is(answer->choice_members[i].key, "delta");
    }
    members_edit(&edit->splice, answer->text.raw, answer->choice, answer->choice_members,
                 answer->choice_count, gone_members, more);
}

/* The content stays as it came where nothing is to be put in front of it. */
static void answer_content_edit(struct answer_edit *edit, struct str closing, struct buf *added)
{
    struct chat *chat = edit->chat;
    const struct chat_chunk *answer = edit->answer;
    if (chat->last->text_given && chat->before.len == 0) {
        return;
    }
    struct buf content = {0};
    (void)buf_putc(&content, '"'); /* bounded by the turns' bytes */
    chat_content_put(chat, closing, &content);
    (void)buf_putc(&content, '"');
    const struct json_member *member =
        json_find(answer->delta_members, answer->delta_count, "content");
    bool empty = content.len == 2;
    bool keeps = empty && !chat->last->has_text && member != NULL;
    struct str put = kept(edit, &content);
    if (!keeps) {
        member_put(edit, answer->delta_members, answer->delta_count, "content",
                   empty ? STR("null") : put, added);
    }
}

/* The id of a call as it is shown, in place of the upstream's. */
static void answer_id_edit(struct answer_edit *edit, const struct chat_call *call,
                           struct json_value entry)
{
    struct json_walk walk = json_walk_of(entry);
    struct str key;
    struct json_value value;
    struct buf id = {0};
    (void)buf_put_json(&id, buf_str(&call->shown_id)); /* small: fits */
    struct str put = kept(edit, &id);
    while (json_walk_member(&walk, &key, &value)) {
        if (json_key_is(key, "id")) {
            answer_put(edit, value, put);
        }
    }
}

/* Ours go, the client's stay as they came, but for their ids and arguments that are no text. */
static void answer_calls_edit(struct answer_edit *edit, bool *gone_members)
{
    const struct chat_turn *turn = edit->chat->last;
    const struct chat_chunk *answer = edit->answer;
    const struct json_member *list =
        json_find_type(answer->delta_members, answer->delta_count, "tool_calls", JSON_ARRAY);
    if (list == NULL || turn->calls_count == 0) {
        return;
    }
    if (chat_client_calls(turn) == 0) {
        gone_members[list - answer->delta_members] = true;
        return;
    }
    size_t count = 0;
    struct json_value *entries = json_elements(list->value, edit->arena, &count);
    CHECK(count == turn->calls_count);
    bool *gone = arena_get(edit->arena, count);
    for (size_t i = 0; i < count; i++) {
        const struct chat_call *call = turn->calls[i];
        gone[i] = call->offer >= 0 || call->dropped;
        bool shows_another = !str_eq(buf_str(&call->id), buf_str(&call->shown_id));
        if (!gone[i] && call->replaced && !call->not_text) {
            answer_id_edit(edit, call, entries[i]);
        } else if (!gone[i] && (call->not_text || shows_another)) {
            struct buf entry = {0};
            chat_call_put(call, false, &entry); /* bounded by the turn's bytes */
            answer_put(edit, entries[i], kept(edit, &entry));
        }
    }
    splice_cut_elements(&edit->splice, answer->text.raw, list->value, entries, count, gone);
}

/* Ours behind those that the upstream gave. */
static void answer_annotations_edit(struct answer_edit *edit, struct buf *added)
{
    const struct chat_chunk *answer = edit->answer;
    const struct json_member *theirs =
        json_find_type(answer->delta_members, answer->delta_count, "annotations", JSON_ARRAY);
    struct buf list = {0};
    (void)buf_putc(&list, '['); /* bounded by the answer */
    if (theirs != NULL && theirs->value.raw.len > 2) {
        struct str raw = theirs->value.raw;
        (void)buf_append_str(&list, str_trim((struct str){raw.data + 1, raw.len - 2}));
        (void)buf_puts(&list, list.len > 1 ? "," : "");
    }
    if (chat_annotations_put(edit->chat, &list)) {
        (void)buf_putc(&list, ']');
        member_put(edit, answer->delta_members, answer->delta_count, "annotations",
                   kept(edit, &list), added);
    }
    buf_clear(&list);
}

static void answer_message_edit(struct answer_edit *edit, struct str closing)
{
    const struct chat_chunk *answer = edit->answer;
    bool *gone = arena_get(edit->arena, answer->delta_count + 1);
    struct buf added = {0}, runs = {0};
    answer_content_edit(edit, closing, &added);
    answer_annotations_edit(edit, &added);
    answer_calls_edit(edit, gone);
    for (size_t i = 0; i < answer->delta_count; i++) { /* the old kind of call, never asked for */
        gone[i] = gone[i] || (str_is(answer->delta_members[i].key, "function_call") &&
                              !edit->chat->request.has_functions);
    }
    if (chat_runs_put(edit->chat, &runs)) {
        member_put(edit, answer->delta_members, answer->delta_count, "executed_tools",
                   kept(edit, &runs), &added);
    }
    buf_clear(&runs);
    if (json_find(answer->delta_members, answer->delta_count, "role") == NULL) {
        (void)buf_puts(&added, ",\"role\":\"assistant\""); /* small: fits */
    }
    struct str more = added.len > 0 ? kept(edit, &added) : (struct str){0};
    members_edit(&edit->splice, answer->text.raw, answer->delta, answer->delta_members,
                 answer->delta_count, gone, more);
}

static void answer_splice(struct chat *chat, struct str closing, struct buf *out)
{
    struct arena *arena = arena_new(0);
    struct answer_edit edit = {
        .chat = chat, .answer = &chat->last->answer, .splice = {.arena = arena}, .arena = arena};
    answer_head_edit(&edit);
    answer_choices_edit(&edit);
    answer_message_edit(&edit, closing);
    (void)splice_apply(&edit.splice, edit.answer->text.raw, out); /* the owner asks for overflow */
    arena_free(arena);
}

static bool field_is_there(const struct chat_turn *turn, const char *name)
{
    for (size_t i = 0; turn != NULL && i < turn->fields_count; i++) {
        if (json_key_is(turn->fields[i].key_raw, name)) {
            return true;
        }
    }
    return false;
}

/* Ours behind those that the upstream gave. */
static void annotations_join(const struct chat *chat)
{
    BUF_CLEANUP struct buf list = {0};
    if (chat_annotations_put(chat, &list)) {
        chat_list_extend(chat->last, STR("\"annotations\""), buf_str(&list));
    }
}

static void message_author(struct chat *chat, struct str closing, struct buf *out)
{
    const struct chat_turn *turn = chat->last;
    annotations_join(chat);
    BUF_CLEANUP struct buf content = {0}, runs = {0};
    chat_content_put(chat, closing, &content);
    (void)buf_puts(out, "{\"role\":\"assistant\",\"content\":"); /* the owner asks for overflow */
    bool text = content.len > 0;
    (void)buf_puts(out, text ? "\"" : "null");
    (void)buf_append_str(out, buf_str(&content));
    (void)buf_puts(out, text ? "\"" : "");
    if (!field_is_there(turn, "refusal")) {
        (void)buf_puts(out, ",\"refusal\":null");
    }
    if (turn != NULL) {
        chat_fields_put(turn, chat->request.has_functions ? NULL : "function_call", out);
    }
    if (turn != NULL && chat_client_calls(turn) > 0) {
        (void)buf_puts(out, ",\"tool_calls\":[");
        chat_calls_put(turn, CHAT_CALLS_CLIENTS, out);
        (void)buf_putc(out, ']');
    }
    if (chat_runs_put(chat, &runs)) {
        (void)buf_puts(out, ",\"executed_tools\":");
        (void)buf_append_str(out, buf_str(&runs));
    }
    (void)buf_putc(out, '}');
}

static void raw_member_put(struct buf *out, const char *name, const struct buf *raw)
{
    if (raw->len > 0) {
        (void)buf_printf(out, ",\"%s\":", name); /* the owner asks for overflow */
        (void)buf_append_str(out, buf_str(raw));
    }
}

/* The upstream streamed although the client wants JSON. */
static void answer_author(struct chat *chat, struct str closing, struct buf *out)
{
    chat_identity_fill(chat);
    (void)buf_puts(out, "{\"id\":"); /* the owner asks for overflow */
    (void)buf_append_str(out, buf_str(&chat->id));
    (void)buf_puts(out, ",\"object\":\"chat.completion\"");
    raw_member_put(out, "created", &chat->created);
    raw_member_put(out, "model", &chat->model);
    (void)buf_puts(out, ",\"choices\":[{\"index\":0,\"message\":");
    message_author(chat, closing, out);
    (void)buf_puts(out, ",\"logprobs\":null,\"finish_reason\":");
    (void)buf_put_json(out, str_of(chat_finish_reason(chat)));
    (void)buf_puts(out, "}]");
    raw_member_put(out, "usage", &chat->usage);
    raw_member_put(out, "service_tier", &chat->tier);
    raw_member_put(out, "system_fingerprint", &chat->fingerprint);
    (void)buf_putc(out, '}');
}

int chat_answer_write(struct chat *chat, struct str closing, struct buf *out, struct sg_error *err)
{
    if (chat->last != NULL && !chat->last->is_stream) {
        answer_splice(chat, closing, out);
    } else {
        answer_author(chat, closing, out);
    }
    return out->overflow ? error_set(err, SG_E_LIMIT, "The answer is too large for this gateway.")
                         : SG_OK;
}
