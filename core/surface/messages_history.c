/* What comes back: blocks that we made, in the client's messages, become what the upstream knows. A call and its result,
 * which both stand in the assistant's message, become a call of our function there and a result in the user's message
 * behind it; what the assistant went on to say becomes a message of its own behind that. Calls of one turn stay together,
 * the client's among them: then their results stand in one message too, in the order of the calls.
 *
 * Where the tool is not offered now, runs become text of the assistant, as servers refuse calls of tools that they do not
 * know. Calls without a result at the very end are run before the model is asked. A vendor's own blocks are left. */
#include "surface/messages_past.h"

#include "base/check.h"

#include <stdio.h>

static bool holds(struct str text, const char *part)
{
    return text.len > 0 && memmem(text.data, text.len, part, strlen(part)) != NULL;
}

bool messages_history_is_ours(const struct messages_request *request)
{
    const struct json_member *messages = request->messages;
    return messages != NULL && messages->value.type == JSON_ARRAY &&
           (holds(messages->value.raw, "\"" MESSAGES_MARK) ||
            messages_holds_citation(messages->value.raw));
}

struct str messages_history_newest(const struct messages_request *request)
{
    struct str raw = request->messages->value.raw, mark = STR("\"" MESSAGES_MARK);
    size_t id_len = MESSAGES_ID_BYTES - 1;
    for (size_t at = raw.len; at-- > 1;) {
        bool is_id = raw.len - at > id_len + 1 && raw.data[at] == '"' && raw.data[at - 1] != '\\' &&
                     memcmp(raw.data + at, mark.data, mark.len) == 0 &&
                     raw.data[at + 1 + id_len] == '"';
        if (is_id) {
            return (struct str){raw.data + at + 1, id_len};
        }
    }
    return (struct str){0};
}

/* ---- what follows a message with calls of ours ---- */

/* Results of the message before that stand at the beginning of this one, as after a pause. */
static void earlier_results_take(struct past *past, const struct past_message *message)
{
    struct json_walk walk = json_walk_of(message->content->value);
    struct json_value element;
    while (json_walk_element(&walk, &element)) {
        struct past_block block = past_block_read(element, past->arena);
        struct past_call *call =
            past_is_our_result(&block)
                ? past_call_find(past->earlier, past->earlier_count, block.tool_use_id)
                : NULL;
        if (call == NULL) {
            return;
        }
        call->done = true;
        call->result = past_result_make(past, call->id, past_words_of(past, &block, call),
                                        block.cache_control);
    }
}

static struct str before_make(struct past *past, const struct past_call *calls, size_t count)
{
    struct buf text = {0};
    past_user_message_put(past, calls, count, &text);
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
            past_result_put(past, &past->earlier[*next], 0, out);
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
    splice_add(&past->request->edits, past_place_of(past, at), 0, buf_to_arena(&put, past->arena));
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
        struct past_block block = past_block_read(element, past->arena);
        merge_until(past, &next, str_is(block.type, "tool_result") ? &block : NULL, &results);
        merge_insert(past, element.raw.data, &results, false);
        last = element.raw.data + element.raw.len;
    }
    merge_until(past, &next, NULL, &results);
    if (last != NULL) {
        merge_insert(past, last, &results, true);
    } else if (results.len > 0) {
        struct str put = buf_to_arena(&results, past->arena);
        splice_add(&past->request->edits, past_place_of(past, content.raw.data) + 1, 0, put);
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
    past_results_put(past, past->earlier, past->earlier_count, &put);
    (void)buf_puts(&put, ",{\"type\":\"text\",\"text\":");
    (void)buf_append_str(&put, content.raw);
    (void)buf_puts(&put, "}]");
    splice_add(&past->request->edits, past_place_of(past, content.raw.data), content.raw.len,
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

/* Within the blocks, since results of ours may be put between them. */
static void citations_cut(struct past *past, struct json_value content)
{
    struct json_walk walk = json_walk_of(content);
    struct json_value block;
    while (json_walk_element(&walk, &block)) {
        struct str kept = messages_citations_cut(block, past->arena);
        if (kept.len < block.raw.len) {
            splice_add(&past->request->edits, past_place_of(past, block.raw.data) + 1,
                       block.raw.len - 2, (struct str){kept.data + 1, kept.len - 2});
        }
    }
}

static int message_take(struct past *past, struct json_value value, struct sg_error *err)
{
    bool carries = past_has_ours(past->calls, past->count);
    past->earlier = past->calls;
    past->earlier_count = past->count;
    past->calls = NULL;
    past->count = past->cap = 0;
    struct past_message message;
    bool cites = messages_holds_citation(value.raw);
    if (value.type != JSON_OBJECT ||
        (!carries && !cites && !holds(value.raw, "\"" MESSAGES_MARK))) {
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
        return past_assistant_take(past, &message, err);
    }
    past_before_insert(past, &message);
    if (cites && type == JSON_ARRAY) {
        citations_cut(past, message.content->value);
    }
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
            past_result_put(past, call, 0, &before);
            continue;
        }
        request->pending_shown[request->pending_count] = call->id;
        request->pending[request->pending_count++] =
            (struct surface_call){.offer = (size_t)call->offer,
                                  .id = past_up_id(call->id),
                                  .name = request->set.shown[call->offer].name,
                                  .arguments = call->input,
                                  .options = request->set.shown[call->offer].options};
    }
    if (before.len > 0) {
        request->pending_before = buf_to_arena(&before, past->arena);
    }
}

/* ---- all ---- */

/* Files that the client put somewhere, for code to find: here it would not find them. */
static int uploads_check(const struct past *past, struct json_value message, struct sg_error *err)
{
    struct past_block outer = past_block_read(message, past->arena);
    if (outer.content.type != JSON_ARRAY) {
        return SG_OK;
    }
    struct json_walk walk = json_walk_of(outer.content);
    struct json_value element;
    for (size_t i = 0; json_walk_element(&walk, &element); i++) {
        if (str_is(past_block_read(element, past->arena).type, "container_upload")) {
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
    bool ours = messages_history_is_ours(request);
    bool uploads =
        messages_kinds_run_code(&request->set) && holds(messages.raw, "\"container_upload\"");
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
    if (code == SG_OK && past_has_ours(past.calls, past.count)) {
        pending_read(&past);
    }
    buf_clear(&past.out);
    return code;
}
