/* The client's stream: chunks of the upstream passed on with as few edits as can be, and those that we author. */
#include "surface/chat.h"

#include "base/check.h"

/* ---- reading ---- */

static bool is_first(struct json_value choice)
{
    struct json_walk walk = json_walk_of(choice);
    struct str key;
    struct json_value value;
    int64_t index;
    while (json_walk_member(&walk, &key, &value)) {
        if (json_key_is(key, "index") && json_int_of(value, &index)) {
            return index == 0;
        }
    }
    return true;
}

/* The choice with index 0 (or none); of an answer otherwise the first one. */
static void choice_find(struct chat_chunk *chunk)
{
    struct json_walk walk = json_walk_of(chunk->choices);
    struct json_value choice, first = {0};
    while (json_walk_element(&walk, &choice)) {
        if (choice.type != JSON_OBJECT) {
            continue;
        }
        if (is_first(choice)) {
            chunk->choice = choice;
            return;
        }
        first = first.raw.len == 0 ? choice : first;
    }
    if (chunk->is_answer) {
        chunk->choice = first;
    }
}

static bool text_is_there(const struct chat_chunk *chunk, const char *name)
{
    const struct json_member *member = json_find(chunk->delta_members, chunk->delta_count, name);
    return member != NULL && member->value.raw.len > 2 &&
           (member->value.type == JSON_STRING || member->value.type == JSON_ARRAY);
}

static int delta_read(struct chat_chunk *chunk, struct arena *arena, struct sg_error *err)
{
    int code = json_members(chunk->choice, "a choice", arena, &chunk->choice_members,
                            &chunk->choice_count, err);
    if (code != SG_OK) {
        return code;
    }
    const struct json_member *delta =
        json_find_type(chunk->choice_members, chunk->choice_count,
                       chunk->is_answer ? "message" : "delta", JSON_OBJECT);
    if (delta == NULL) {
        return SG_OK;
    }
    chunk->has_delta = true;
    chunk->delta = delta->value;
    code = json_members(delta->value, "a message", arena, &chunk->delta_members,
                        &chunk->delta_count, err);
    chunk->has_text =
        code == SG_OK && (text_is_there(chunk, "content") || text_is_there(chunk, "refusal"));
    return code;
}

int chat_chunk_read(struct str data, struct arena *arena, struct chat_chunk *chunk,
                    struct sg_error *err)
{
    int code = json_scan(data, arena, &chunk->text, err);
    if (code != SG_OK) {
        return code;
    }
    if (chunk->text.root.type != JSON_OBJECT) {
        return error_set(err, SG_E_INVALID, "it is no JSON object");
    }
    const struct json_member *choices =
        json_find_type(chunk->text.members, chunk->text.count, "choices", JSON_ARRAY);
    if (choices == NULL) {
        return SG_OK;
    }
    chunk->choices = choices->value;
    choice_find(chunk);
    return chunk->choice.raw.len == 0 ? SG_OK : delta_read(chunk, arena, err);
}

/* ---- authored chunks ---- */

static void head_put(struct chat *chat, struct buf *out)
{
    chat_identity_fill(chat);
    (void)buf_puts(out, "data: {\"id\":"); /* the owner asks for overflow, here and below */
    (void)buf_append_str(out, buf_str(&chat->id));
    (void)buf_puts(out, ",\"object\":\"chat.completion.chunk\",\"created\":");
    (void)buf_append_str(out, buf_str(&chat->created));
    (void)buf_puts(out, ",\"model\":");
    (void)buf_append_str(out, buf_str(&chat->model));
}

static void chunk_begin(struct chat *chat, struct buf *out)
{
    head_put(chat, out);
    (void)buf_puts(out, ",\"choices\":[{\"index\":0,\"delta\":{");
    if (!chat->role_given) {
        (void)buf_puts(out, "\"role\":\"assistant\",");
        chat->role_given = true;
    }
}

/* `logprobs` raw; reason NULL: not the last one. */
static void tail_put(const struct chat *chat, struct str logprobs, const char *reason,
                     struct buf *out)
{
    (void)buf_puts(out, ",\"logprobs\":");
    (void)buf_append_str(out, logprobs);
    (void)buf_puts(out, ",\"finish_reason\":");
    if (reason == NULL) {
        (void)buf_puts(out, "null");
    } else {
        (void)buf_put_json(out, str_of(reason));
    }
    (void)buf_puts(out, "}]");
    (void)buf_puts(out, chat->request.include_usage ? ",\"usage\":null}\n\n" : "}\n\n");
}

static void chunk_end(const struct chat *chat, struct buf *out)
{
    (void)buf_putc(out, '}');
    tail_put(chat, STR("null"), NULL, out);
}

static void text_chunk_put(struct chat *chat, struct str inner, struct buf *out)
{
    chunk_begin(chat, out);
    (void)buf_puts(out, "\"content\":\"");
    (void)buf_append_str(out, inner);
    (void)buf_putc(out, '"');
    chunk_end(chat, out);
}

/* ---- edits of the upstream's ---- */

struct passing { /* a chunk on its way */
    struct chat *chat;
    const struct chat_chunk *chunk;
    struct splice splice;
    struct arena *arena;
};

static void value_put(struct passing *passing, struct json_value value, struct str put)
{
    if (!str_eq(value.raw, put)) {
        splice_add(&passing->splice, (size_t)(value.raw.data - passing->chunk->text.raw.data),
                   value.raw.len, put);
    }
}

static void value_put_or_add(struct passing *passing, const char *name, struct str put,
                             struct buf *added)
{
    const struct json_text *text = &passing->chunk->text;
    const struct json_member *member = json_find(text->members, text->count, name);
    if (member != NULL) {
        value_put(passing, member->value, put);
        return;
    }
    (void)buf_printf(added, ",\"%s\":", name); /* bounded by the answer's head */
    (void)buf_append_str(added, put);
}

static struct str kept(const struct passing *passing, struct buf *text)
{
    struct str copy = {check_alloc(arena_copy(passing->arena, buf_str(text))), text->len};
    buf_clear(text);
    return copy;
}

/* The first turn's id, created and model; usage only as the client wants it. */
static void head_edit(struct passing *passing)
{
    struct chat *chat = passing->chat;
    const struct json_text *text = &passing->chunk->text;
    bool *gone = arena_get(passing->arena, text->count + 1);
    struct buf added = {0};
    chat_identity_fill(chat);
    value_put_or_add(passing, "id", buf_str(&chat->id), &added);
    value_put_or_add(passing, "object", STR("\"chat.completion.chunk\""), &added);
    value_put_or_add(passing, "created", buf_str(&chat->created), &added);
    value_put_or_add(passing, "model", buf_str(&chat->model), &added);
    const struct json_member *usage = json_find(text->members, text->count, "usage");
    if (chat->request.include_usage) {
        value_put_or_add(passing, "usage", STR("null"), &added);
    } else if (usage != NULL) {
        gone[usage - text->members] = true;
    }
    struct str more = added.len > 0 ? kept(passing, &added) : (struct str){0};
    members_edit(&passing->splice, text->raw, text->root, text->members, text->count, gone, more);
}

static void choices_edit(struct passing *passing)
{
    const struct chat_chunk *chunk = passing->chunk;
    size_t count = 0;
    struct json_value *choices = json_elements(chunk->choices, passing->arena, &count);
    bool *gone = arena_get(passing->arena, count);
    for (size_t i = 0; i < count; i++) {
        gone[i] = choices[i].raw.data != chunk->choice.raw.data;
    }
    splice_cut_elements(&passing->splice, chunk->text.raw, chunk->choices, choices, count, gone);
}

/* The blank line between an earlier turn's text and this one's, once. */
static void separator_edit(struct passing *passing, const struct json_member *content)
{
    struct chat_turn *turn = passing->chat->turn;
    if (content == NULL || content->value.type != JSON_STRING || content->value.raw.len <= 2 ||
        turn->text_begun) {
        return;
    }
    turn->text_begun = true;
    if (passing->chat->text_before) {
        size_t at = (size_t)(content->value.raw.data - passing->chunk->text.raw.data) + 1;
        splice_add(&passing->splice, at, 0, STR("\\n\\n"));
    }
}

/* A list of parts as text, since clients read a stream's content as text. */
static void content_flatten(struct passing *passing, const struct json_member *content)
{
    if (content != NULL && content->value.type == JSON_ARRAY) {
        struct buf text = {0};
        (void)buf_putc(&text, '"'); /* bounded by the turn's bytes */
        (void)buf_puts(&text, passing->chat->text_before && passing->chat->turn->has_text &&
                                      !passing->chat->turn->text_begun
                                  ? "\\n\\n"
                                  : "");
        (void)buf_append_str(&text, buf_str(&passing->chat->turn->text));
        (void)buf_putc(&text, '"');
        value_put(passing, content->value, kept(passing, &text));
        passing->chat->turn->text_begun = passing->chat->turn->has_text;
    }
}

static void delta_edit(struct passing *passing, bool without_content)
{
    struct chat *chat = passing->chat;
    const struct chat_chunk *chunk = passing->chunk;
    bool *gone = arena_get(passing->arena, chunk->delta_count + 1);
    bool role_there = false;
    for (size_t i = 0; i < chunk->delta_count; i++) {
        const struct json_member *member = &chunk->delta_members[i];
        bool role = str_is(member->key, "role");
        gone[i] = str_is(member->key, "tool_calls") ||
                  (str_is(member->key, "function_call") && !chat->request.has_functions) ||
                  (role && (chat->role_given || !str_is(member->value.raw, "\"assistant\""))) ||
                  (without_content && str_is(member->key, "content"));
        role_there = role_there || (role && !gone[i]);
    }
    bool adds_role = !chat->role_given && !role_there;
    members_edit(&passing->splice, chunk->text.raw, chunk->delta, chunk->delta_members,
                 chunk->delta_count, gone,
                 adds_role ? STR(",\"role\":\"assistant\"") : (struct str){0});
    chat->role_given = true;
    if (!without_content) {
        const struct json_member *content =
            json_find(chunk->delta_members, chunk->delta_count, "content");
        separator_edit(passing, content);
        if (chunk->is_answer) {
            content_flatten(passing, content);
        }
    }
}

/* The choice around the delta: what strict clients miss is added. `finish` is the raw reason of the answer's last chunk,
 * whose delta was given before; NULL: not that one. */
static void choice_edit(struct passing *passing, const char *finish)
{
    const struct chat_chunk *chunk = passing->chunk;
    bool has_delta = false, has_index = false;
    bool *gone = arena_get(passing->arena, chunk->choice_count + 1);
    for (size_t i = 0; i < chunk->choice_count; i++) {
        const struct json_member *member = &chunk->choice_members[i];
        gone[i] = str_is(member->key, "message"); /* the whole answer again: its calls too */
        has_delta = has_delta || str_is(member->key, "delta");
        has_index = has_index || str_is(member->key, "index");
        if (str_is(member->key, "finish_reason")) {
            value_put(passing, member->value, finish == NULL ? STR("null") : str_of(finish));
        } else if (finish != NULL && str_is(member->key, "delta")) {
            value_put(passing, member->value, STR("{}"));
        } else if (finish != NULL && str_is(member->key, "logprobs") &&
                   passing->chat->last->finish_has_text) {
            value_put(passing, member->value, STR("null"));
        }
    }
    struct buf added = {0};
    (void)buf_puts(&added, has_index ? "" : ",\"index\":0"); /* small: fits */
    (void)buf_puts(&added, has_delta ? "" : ",\"delta\":{}");
    members_edit(&passing->splice, chunk->text.raw, chunk->choice, chunk->choice_members,
                 chunk->choice_count, gone, kept(passing, &added));
}

static void event_put(const struct passing *passing, struct buf *out)
{
    (void)buf_puts(out, "data: "); /* the owner asks for overflow */
    size_t start = out->len;
    (void)splice_apply(&passing->splice, passing->chunk->text.raw, out);
    (void)buf_puts(out, "\n\n");
    line_flatten(out, start);
}

/* Is there something for the client in the delta, beside role and calls? */
static bool has_substance(const struct chat *chat, const struct chat_chunk *chunk)
{
    for (size_t i = 0; i < chunk->delta_count; i++) {
        const struct json_member *member = &chunk->delta_members[i];
        struct json_value value = member->value;
        bool empty =
            value.type == JSON_NULL ||
            ((value.type == JSON_STRING || value.type == JSON_ARRAY) && value.raw.len == 2);
        if (!empty && !str_is(member->key, "role") && !str_is(member->key, "tool_calls") &&
            (!str_is(member->key, "function_call") || chat->request.has_functions)) {
            return true;
        }
    }
    return false;
}

void chat_chunk_pass(struct chat *chat, const struct chat_chunk *chunk, struct arena *arena,
                     struct buf *out)
{
    if (!chunk->has_delta || (chat->role_given && !has_substance(chat, chunk))) {
        return;
    }
    bool held = chat->request.holds_text && chunk->has_text;
    if (held && !chat->role_given) {
        text_chunk_put(chat, STR(""), out);
    }
    struct passing passing = {
        .chat = chat, .chunk = chunk, .splice = {.arena = arena}, .arena = arena};
    head_edit(&passing);
    choices_edit(&passing);
    delta_edit(&passing, false);
    choice_edit(&passing, NULL);
    event_put(&passing, held ? &chat->turn->held : out);
}

/* ---- calls of the client's functions ---- */

/* A name is whole once the arguments have begun: until then, pieces of it may follow. */
static bool is_the_clients(const struct chat *chat, const struct chat_call *call, bool ended)
{
    struct str name = buf_str(&call->name);
    if (ended) {
        return call->offer < 0 && !call->dropped;
    }
    const struct tool_set *set = &chat->request.set;
    return name.len > 0 && call->arguments.len > 0 &&
           (tools_client_has(set, name) || !tools_may_be_ours(set, name));
}

static void call_head_put(struct chat *chat, struct chat_call *call, struct buf *out)
{
    chat_call_identify(chat, chat->turn, call, true);
    call->released = true;
    call->client_index = chat->client_calls++;
    chunk_begin(chat, out);
    (void)buf_printf(out, "\"tool_calls\":[{\"index\":%zu,", call->client_index);
    size_t brace = out->len;
    chat_call_put(call, false, out);
    if (!out->overflow) { /* the call goes on inside the object that has begun */
        memmove(out->data + brace, out->data + brace + 1, out->len - brace - 1);
        out->data[--out->len] = '\0';
    }
    (void)buf_putc(out, ']');
    chunk_end(chat, out);
}

static void call_more_put(struct chat *chat, const struct chat_call *call, struct buf *out)
{
    struct str more = {call->arguments.data + call->arguments_given,
                       call->arguments.len - call->arguments_given};
    chunk_begin(chat, out);
    (void)buf_printf(out, "\"tool_calls\":[{\"index\":%zu,%s", call->client_index,
                     call->custom ? "\"custom\":{\"input\":\"" : "\"function\":{\"arguments\":\"");
    (void)buf_append_str(out, more);
    (void)buf_puts(out, "\"}}]");
    chunk_end(chat, out);
}

void chat_calls_release(struct chat *chat, bool ended, struct buf *out)
{
    struct chat_turn *turn = chat->turn;
    if (!chat->request.wants_stream || (chat->request.holds_text && !ended)) {
        return;
    }
    size_t count = chat->request.parallel_off && turn->calls_count > 1 ? 1 : turn->calls_count;
    for (size_t i = 0; i < count; i++) {
        struct chat_call *call = turn->calls[i];
        if (!call->released && is_the_clients(chat, call, ended)) {
            call_head_put(chat, call, out);
        } else if (call->released && call->arguments_given < call->arguments.len) {
            call_more_put(chat, call, out);
        } else {
            continue;
        }
        call->arguments_given = call->arguments.len;
    }
}

/* ---- a plain answer for a client that streams ---- */

void chat_message_replay(struct chat *chat, struct buf *out)
{
    struct chat_turn *turn = chat->turn;
    struct chat_chunk message = turn->answer;
    message.text.raw = message.delta.raw; /* only the message is passed on, in a frame of ours */
    struct passing passing = {
        .chat = chat, .chunk = &message, .splice = {.arena = turn->arena}, .arena = turn->arena};
    if (chat->role_given && !has_substance(chat, &message)) {
        return;
    }
    delta_edit(&passing, turn->has_text && !turn->text_given);
    head_put(chat, out);
    (void)buf_puts(out, ",\"choices\":[{\"index\":0,\"delta\":");
    size_t start = out->len;
    (void)splice_apply(&passing.splice, message.text.raw, out);
    const struct json_member *logprobs =
        json_find(message.choice_members, message.choice_count, "logprobs");
    tail_put(chat, logprobs != NULL ? logprobs->value.raw : STR("null"), NULL, out);
    line_flatten(out, start);
}

/* ---- the end ---- */

static void list_chunk_put(struct chat *chat, const char *name, const struct buf *list,
                           struct buf *out)
{
    chunk_begin(chat, out);
    (void)buf_printf(out, "\"%s\":", name); /* the owner asks for overflow */
    (void)buf_append_str(out, buf_str(list));
    chunk_end(chat, out);
}

/* What is known at the end alone. */
static void lists_put(struct chat *chat, struct buf *out)
{
    BUF_CLEANUP struct buf annotations = {0}, runs = {0};
    (void)buf_putc(&annotations, '['); /* bounded by the answer */
    if (chat_annotations_put(chat, &annotations)) {
        (void)buf_putc(&annotations, ']');
        list_chunk_put(chat, "annotations", &annotations, out);
    }
    if (chat_runs_put(chat, &runs)) {
        list_chunk_put(chat, "executed_tools", &runs, out);
    }
}

/* The upstream's own last chunk, with the reason that holds for the whole answer. */
static void finish_chunk_pass(struct chat *chat, const char *reason, struct buf *out)
{
    struct chat_chunk chunk = {0};
    struct arena *arena = arena_new(0);
    struct sg_error err = {0};
    int code = chat_chunk_read(buf_str(&chat->last->finish_chunk), arena, &chunk, &err);
    CHECK(code == SG_OK); /* it was read before */
    struct passing passing = {
        .chat = chat, .chunk = &chunk, .splice = {.arena = arena}, .arena = arena};
    head_edit(&passing);
    choices_edit(&passing);
    BUF_CLEANUP struct buf quoted = {0};
    (void)buf_put_json(&quoted, str_of(reason)); /* small: fits */
    choice_edit(&passing, quoted.data);
    event_put(&passing, out);
    arena_free(arena);
}

static void finish_put(struct chat *chat, struct buf *out)
{
    const char *reason = chat_finish_reason(chat);
    if (chat->last != NULL && chat->last->finish_chunk.len > 0) {
        finish_chunk_pass(chat, reason, out);
        return;
    }
    head_put(chat, out);
    (void)buf_puts(out,
                   ",\"choices\":[{\"index\":0,\"delta\":{}"); /* the owner asks for overflow */
    tail_put(chat, STR("null"), reason, out);
}

void chat_stream_finish(struct chat *chat, struct str closing, struct buf *out)
{
    bool silent = !chat->text_before && chat->client_calls == 0;
    if ((silent && closing.len > 0) || !chat->role_given) {
        BUF_CLEANUP struct buf inner = {0};
        (void)buf_put_json_inner(&inner, silent ? closing : STR("")); /* a sentence: fits */
        text_chunk_put(chat, buf_str(&inner), out);
    }
    lists_put(chat, out);
    finish_put(chat, out);
    if (chat->request.include_usage && chat->usage.len > 0) {
        head_put(chat, out);
        (void)buf_puts(out, ",\"choices\":[],\"usage\":"); /* the owner asks for overflow */
        chat_usage_put(chat, out);
        (void)buf_puts(out, "}\n\n");
    }
    (void)buf_puts(out, "data: [DONE]\n\n");
}
