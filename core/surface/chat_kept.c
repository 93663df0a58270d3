/* Puts back what was kept of an answer (chat_memory.c) when the client brings the results of its calls. A small history can
 * name one answer often: its record is read once and put back once, and what its ids become is bounded. */
#include "surface/body_edit.h"
#include "surface/chat_recall.h"

#include "base/check.h"
#include "base/limits.h"

#include <stdio.h>

struct kept_call {
    struct str id, up;        /* decoded; `up` of the client's only */
    struct json_value result; /* of ours; raw is empty for the client's */
};

struct kept { /* what was kept of one answer, read */
    struct kept *next;
    const char *data; /* of the record, which tells it from others */
    bool is_put_back; /* where it stands again, it is as the client has it */
    struct str hash;
    struct json_member *names;
    size_t names_count;
    struct json_value *front;
    size_t front_count;
    struct json_value assistant; /* raw is empty: only what the ids are called upstream */
    struct kept_call *calls;
    size_t calls_count;
};

struct answer { /* a tool message behind the calls */
    struct json_value message, id;
    struct str id_text;
};

struct turned { /* the client's calls and its results */
    struct shown_call calls[CHAT_CALLS_MAX];
    struct json_value ids[CHAT_CALLS_MAX];
    size_t calls_count;
    struct answer answers[CHAT_CALLS_MAX];
    size_t answers_count;
};

/* ---- what was kept, read ---- */

static void kept_calls_read(struct kept *kept, struct json_value list, struct arena *arena)
{
    struct json_walk walk = json_walk_of(list);
    struct json_value entry, value;
    kept->calls = arena_get(arena, CHAT_CALLS_MAX * sizeof *kept->calls);
    while (json_walk_element(&walk, &entry)) {
        CHECK(kept->calls_count < CHAT_CALLS_MAX);
        struct kept_call *call = &kept->calls[kept->calls_count++];
        CHECK(chat_member_walk(entry, "id", &value));
        call->id = json_text_of(value, arena);
        if (!chat_member_walk(entry, "result", &call->result)) {
            call->result = (struct json_value){0};
            CHECK(chat_member_walk(entry, "up", &value));
            call->up = json_text_of(value, arena);
        }
    }
}

/* It is of our own making: what is wrong with it is our mistake. */
static struct kept *kept_read(struct str data, struct arena *arena)
{
    struct kept *kept = arena_get(arena, sizeof *kept);
    struct json_text text;
    struct sg_error err = {0};
    CHECK(json_scan(data, arena, &text, &err) == SG_OK);
    kept->hash = json_find_text(text.members, text.count, "hash", arena);
    const struct json_member *calls = json_find_type(text.members, text.count, "calls", JSON_ARRAY);
    CHECK(calls != NULL);
    kept_calls_read(kept, calls->value, arena);
    const struct json_member *names =
        json_find_type(text.members, text.count, "names", JSON_OBJECT);
    const struct json_member *front = json_find_type(text.members, text.count, "front", JSON_ARRAY);
    const struct json_member *last =
        json_find_type(text.members, text.count, "assistant", JSON_OBJECT);
    if (last == NULL) {
        return kept;
    }
    CHECK(names != NULL && front != NULL);
    CHECK(json_members(names->value, "names", arena, &kept->names, &kept->names_count, &err) ==
          SG_OK);
    kept->front = json_elements(front->value, arena, &kept->front_count);
    kept->assistant = last->value;
    return kept;
}

static const struct kept_call *kept_find(const struct kept *kept, struct str id, size_t *ret_place)
{
    for (size_t i = 0; i < kept->calls_count; i++) {
        if (str_eq(kept->calls[i].id, id) && kept->calls[i].result.raw.len == 0) {
            *ret_place = i;
            return &kept->calls[i];
        }
    }
    return NULL;
}

/* ---- the message, read ---- */

/* One of the client's calls as it has it; a call that is none of the known forms has no name. */
static int call_read(struct turned *turned, struct json_value entry, const char *where,
                     struct arena *arena, struct sg_error *err)
{
    struct json_member *members = NULL, *inside = NULL;
    size_t count = 0, inside_count = 0;
    int code = entry.type != JSON_OBJECT ? SG_OK
                                         : json_members(entry, where, arena, &members, &count, err);
    const struct json_member *id = json_find_type(members, count, "id", JSON_STRING);
    const struct json_member *function = json_find_type(members, count, "function", JSON_OBJECT);
    bool custom = function == NULL;
    if (custom) {
        function = json_find_type(members, count, "custom", JSON_OBJECT);
    }
    if (code == SG_OK && function != NULL) {
        code = json_members(function->value, where, arena, &inside, &inside_count, err);
    }
    if (code != SG_OK || id == NULL) {
        return code;
    }
    size_t i = turned->calls_count++;
    turned->ids[i] = id->value;
    turned->calls[i] = (struct shown_call){
        json_text_of(id->value, arena), json_find_text(inside, inside_count, "name", arena),
        json_find_text(inside, inside_count, custom ? "input" : "arguments", arena)};
    return SG_OK;
}

static int calls_read(struct turned *turned, struct json_value list, size_t i, struct arena *arena,
                      struct sg_error *err)
{
    char where[48];
    (void)snprintf(where, sizeof where, "messages[%zu].tool_calls", i); /* fits */
    struct json_walk walk = json_walk_of(list);
    struct json_value entry;
    int code = SG_OK;
    while (code == SG_OK && turned->calls_count < CHAT_CALLS_MAX &&
           json_walk_element(&walk, &entry)) {
        code = call_read(turned, entry, where, arena, err);
    }
    return code;
}

/* The tool messages that follow. */
static void answers_read(struct turned *turned, struct json_walk ahead, struct arena *arena)
{
    struct json_value message, id;
    while (turned->answers_count < CHAT_CALLS_MAX && json_walk_element(&ahead, &message)) {
        if (message.type != JSON_OBJECT || !chat_role_is(message, "tool")) {
            return;
        }
        if (chat_member_walk(message, "tool_call_id", &id) && id.type == JSON_STRING) {
            turned->answers[turned->answers_count++] =
                (struct answer){message, id, json_text_of(id, arena)};
        }
    }
}

/* The text of a message's content, parts joined. */
static struct str content_text(const struct chat_message *message, struct arena *arena)
{
    const struct json_member *content = json_find(message->members, message->count, "content");
    if (content == NULL || content->value.type != JSON_ARRAY) {
        return json_find_text(message->members, message->count, "content", arena);
    }
    BUF_CLEANUP struct buf joined = {0};
    struct json_walk walk = json_walk_of(content->value);
    struct json_value part, text;
    while (json_walk_element(&walk, &part)) {
        if (part.type == JSON_OBJECT && chat_member_walk(part, "text", &text) &&
            text.type == JSON_STRING) {
            (void)buf_append_str(&joined, json_text_of(text, arena)); /* bounded by the body */
        }
    }
    return chat_text_copy(arena, &joined);
}

/* Are these the client's calls as they were given, in their order? */
static bool calls_are_the_same(const struct kept *kept, const struct turned *turned)
{
    size_t next = 0;
    for (size_t i = 0; i < kept->calls_count; i++) {
        if (kept->calls[i].result.raw.len > 0) {
            continue;
        }
        if (next == turned->calls_count || !str_eq(turned->calls[next].id, kept->calls[i].id)) {
            return false;
        }
        next++;
    }
    return next == turned->calls_count;
}

static bool is_answered(const struct turned *turned, struct str id)
{
    for (size_t i = 0; i < turned->answers_count; i++) {
        if (str_eq(turned->answers[i].id_text, id)) {
            return true;
        }
    }
    return false;
}

/* Does the message stand for what was kept, as the client was given it, with all results behind it? */
static bool is_unchanged(const struct kept *kept, const struct chat_message *message,
                         const struct turned *turned, struct arena *arena)
{
    if (!calls_are_the_same(kept, turned)) {
        return false;
    }
    for (size_t i = 0; i < turned->calls_count; i++) {
        if (!is_answered(turned, turned->calls[i].id)) {
            return false;
        }
    }
    char hash[SHOWN_HASH_BYTES];
    shown_hash(content_text(message, arena), turned->calls, turned->calls_count, arena, hash);
    return str_is(kept->hash, hash);
}

/* ---- put back ---- */

static bool all_are_offered(const struct chat_request *request, const struct kept *kept)
{
    for (size_t i = 0; i < kept->names_count; i++) {
        if (tools_shown_of_kind(&request->set, kept->names[i].key) < 0) {
            return false;
        }
    }
    return true;
}

/* What a function of ours is called now; empty: as it is. */
static struct str name_now(const struct chat_recall *recall, const struct kept *kept,
                           struct str name)
{
    for (size_t i = 0; i < kept->names_count; i++) {
        int offer = tools_shown_of_kind(&recall->request->set, kept->names[i].key);
        if (str_eq(json_text_of(kept->names[i].value, recall->arena), name) && offer >= 0) {
            return recall->request->set.shown[offer].name;
        }
    }
    return (struct str){0};
}

/* A message that was kept, with functions of ours under their present names. */
static void message_put(const struct chat_recall *recall, const struct kept *kept,
                        struct json_value message, struct buf *out)
{
    struct splice splice = {.arena = recall->arena};
    struct json_value calls, call, function, name;
    if (chat_member_walk(message, "tool_calls", &calls) && calls.type == JSON_ARRAY) {
        struct json_walk walk = json_walk_of(calls);
        while (json_walk_element(&walk, &call)) {
            if (!chat_member_walk(call, "function", &function) ||
                !chat_member_walk(function, "name", &name)) {
                continue;
            }
            struct str old = json_text_of(name, recall->arena);
            struct str now = name_now(recall, kept, old);
            if (now.len > 0 && !str_eq(now, old)) {
                BUF_CLEANUP struct buf quoted = {0};
                (void)buf_put_json(&quoted, now); /* small: fits */
                splice_add(&splice, (size_t)(name.raw.data - message.raw.data), name.raw.len,
                           chat_text_copy(recall->arena, &quoted));
            }
        }
    }
    (void)splice_apply(&splice, message.raw, out); /* overflow is asked for by the owner */
}

static void result_put(const struct kept_call *call, struct buf *out)
{
    (void)buf_puts(out, "{\"role\":\"tool\",\"tool_call_id\":"); /* as above */
    (void)buf_put_json(out, call->id);
    (void)buf_puts(out, ",\"content\":");
    (void)buf_append_str(out, call->result.raw);
    (void)buf_putc(out, '}');
}

/* The first of the client's results that answers a call behind `place`; NULL: none. */
static const struct answer *answer_behind(const struct kept *kept, const struct turned *turned,
                                          size_t place)
{
    for (size_t i = 0; i < turned->answers_count; i++) {
        size_t its;
        if (kept_find(kept, turned->answers[i].id_text, &its) != NULL && its > place) {
            return &turned->answers[i];
        }
    }
    return NULL;
}

/* Our results, each in front of the client's result of the next call. */
static void results_put_back(struct chat_recall *recall, const struct kept *kept,
                             const struct turned *turned)
{
    CHECK(turned->answers_count > 0);
    struct str end = turned->answers[turned->answers_count - 1].message.raw;
    for (size_t i = 0; i < kept->calls_count; i++) {
        if (kept->calls[i].result.raw.len == 0) {
            continue;
        }
        const struct answer *next = answer_behind(kept, turned, i);
        BUF_CLEANUP struct buf text = {0};
        (void)buf_puts(&text, next == NULL ? "," : ""); /* bounded by what was kept */
        result_put(&kept->calls[i], &text);
        (void)buf_puts(&text, next == NULL ? "" : ",");
        size_t at = next != NULL ? chat_body_at(recall, next->message.raw.data)
                                 : chat_body_at(recall, end.data) + end.len;
        splice_add(&recall->request->edits, at, 0, chat_text_copy(recall->arena, &text));
    }
}

static void turns_put_back(struct chat_recall *recall, const struct kept *kept,
                           const struct chat_message *message, const struct turned *turned)
{
    BUF_CLEANUP struct buf text = {0};
    for (size_t i = 0; i < kept->front_count; i++) {
        message_put(recall, kept, kept->front[i], &text); /* bounded by what was kept */
        (void)buf_putc(&text, ',');
    }
    message_put(recall, kept, kept->assistant, &text);
    chat_value_replace(recall, message->value, chat_text_copy(recall->arena, &text));
    results_put_back(recall, kept, turned);
}

/* ---- ids ---- */

/* An upstream's id may be long, and stand for a short one of ours that is named often. */
static int id_map(struct chat_recall *recall, const struct kept *kept, struct json_value id,
                  struct str text, struct sg_error *err)
{
    size_t place;
    const struct kept_call *call = kept_find(kept, text, &place);
    if (call == NULL || str_eq(call->up, call->id)) {
        return SG_OK;
    }
    if (call->up.len > LIMIT_BODY_BYTES - recall->ids_bytes) {
        return body_too_large(true, err);
    }
    recall->ids_bytes += call->up.len;
    BUF_CLEANUP struct buf quoted = {0};
    (void)buf_put_json(&quoted, call->up); /* bounded by what was kept */
    chat_value_replace(recall, id, chat_text_copy(recall->arena, &quoted));
    return SG_OK;
}

static int calls_map(struct chat_recall *recall, const struct kept *kept,
                     const struct turned *turned, struct sg_error *err)
{
    int code = SG_OK;
    for (size_t i = 0; code == SG_OK && i < turned->calls_count; i++) {
        code = id_map(recall, kept, turned->ids[i], turned->calls[i].id, err);
    }
    return code;
}

static int answers_map(struct chat_recall *recall, const struct kept *kept,
                       const struct turned *turned, struct sg_error *err)
{
    int code = SG_OK;
    for (size_t i = 0; code == SG_OK && i < turned->answers_count; i++) {
        code = id_map(recall, kept, turned->answers[i].id, turned->answers[i].id_text, err);
    }
    return code;
}

/* ---- runs in words ---- */

/* A run of ours, by the call's id in the message that made it. */
static void kept_run_put(const struct chat_recall *recall, struct json_value message, struct str id,
                         struct json_value result, struct buf *out)
{
    struct json_value calls, call, its_id, function, name, arguments;
    if (!chat_member_walk(message, "tool_calls", &calls) || calls.type != JSON_ARRAY) {
        return;
    }
    struct json_walk walk = json_walk_of(calls);
    while (json_walk_element(&walk, &call)) {
        if (chat_member_walk(call, "id", &its_id) &&
            str_eq(json_text_of(its_id, recall->arena), id) &&
            chat_member_walk(call, "function", &function) &&
            chat_member_walk(function, "name", &name) &&
            chat_member_walk(function, "arguments", &arguments)) {
            result_text_put(json_text_of(name, recall->arena),
                            json_text_of(arguments, recall->arena),
                            json_text_of(result, recall->arena), out);
            return;
        }
    }
}

static void kept_runs_put(const struct chat_recall *recall, const struct kept *kept,
                          struct buf *out)
{
    struct json_value assistant = {0}, id, content;
    for (size_t i = 0; i < kept->front_count; i++) {
        if (chat_role_is(kept->front[i], "assistant")) {
            assistant = kept->front[i];
        } else if (assistant.raw.len > 0 && chat_member_walk(kept->front[i], "tool_call_id", &id) &&
                   chat_member_walk(kept->front[i], "content", &content)) {
            kept_run_put(recall, assistant, json_text_of(id, recall->arena), content, out);
        }
    }
    for (size_t i = 0; i < kept->calls_count; i++) {
        if (kept->calls[i].result.raw.len > 0) {
            kept_run_put(recall, kept->assistant, kept->calls[i].id, kept->calls[i].result, out);
        }
    }
}

/* ---- a message with ids of ours ---- */

/* The record, read once for the request. */
static struct kept *kept_get(struct chat_recall *recall, struct str data)
{
    struct kept *kept = recall->kept;
    while (kept != NULL && kept->data != data.data) {
        kept = kept->next;
    }
    if (kept == NULL) {
        kept = kept_read(data, recall->arena);
        kept->data = data.data;
        kept->next = recall->kept;
        recall->kept = kept;
    }
    return kept;
}

static struct kept *kept_of(struct chat_recall *recall, const struct turned *turned,
                            struct str *ret_id)
{
    const struct surface_memory *memory = recall->request->memory;
    struct str data;
    for (size_t i = 0; i < turned->calls_count; i++) {
        struct str id = turned->calls[i].id;
        if (str_starts(id, STR(SHOWN_CALL_MARK)) && memory->find(memory->context, id, &data)) {
            *ret_id = id;
            return kept_get(recall, data);
        }
    }
    return NULL;
}

static int kept_use(struct chat_recall *recall, struct kept *kept,
                    const struct chat_message *message, const struct turned *turned, struct str id,
                    enum chat_kept_outcome *ret, struct sg_error *err)
{
    bool unchanged = is_unchanged(kept, message, turned, recall->arena);
    int code = answers_map(recall, kept, turned, err);
    if (unchanged) {
        recall->resumes = id;
    }
    bool is_whole = unchanged && kept->assistant.raw.len > 0 && !kept->is_put_back;
    bool is_offered = is_whole && all_are_offered(recall->request, kept);
    if (code == SG_OK && !is_offered) {
        code = calls_map(recall, kept, turned, err);
    }
    if (code != SG_OK || !is_whole) {
        return code;
    }
    kept->is_put_back = true;
    if (is_offered) {
        turns_put_back(recall, kept, message, turned);
        *ret = CHAT_KEPT_PUT_BACK;
        return SG_OK;
    }
    BUF_CLEANUP struct buf text = {0};
    kept_runs_put(recall, kept, &text); /* bounded by what was kept */
    chat_content_prefix(recall, message, chat_text_copy(recall->arena, &text));
    *ret = CHAT_KEPT_AS_TEXT;
    return SG_OK;
}

int chat_kept_apply(struct chat_recall *recall, const struct chat_message *message,
                    enum chat_kept_outcome *ret, struct sg_error *err)
{
    const struct json_member *calls =
        json_find_type(message->members, message->count, "tool_calls", JSON_ARRAY);
    *ret = CHAT_KEPT_NOTHING;
    if (calls == NULL) {
        return SG_OK;
    }
    if (recall->turned == NULL) {
        recall->turned = arena_get(recall->arena, sizeof *recall->turned);
    }
    struct turned *turned = recall->turned;
    turned->calls_count = turned->answers_count = 0;
    int code = calls_read(turned, calls->value, message->place, recall->arena, err);
    if (code != SG_OK) {
        return code;
    }
    struct str id;
    struct kept *kept = kept_of(recall, turned, &id);
    if (kept != NULL) {
        answers_read(turned, message->ahead, recall->arena);
        code = kept_use(recall, kept, message, turned, id, ret, err);
    }
    return code;
}
