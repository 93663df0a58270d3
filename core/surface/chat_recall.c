/* What comes back. A client's history may hold what we made: calls of its own functions under ids of ours, and runs that
 * were shown as `executed_tools`. Read here, in one pass over the messages, and noted as edits of the body, so that the
 * upstream finds its own calls and our results in their place:
 *
 * - a message whose calls were kept (chat_memory.c), unchanged and with all its results behind it, becomes the messages
 *   of the turns that it stands for; our results go between the client's in the order of the calls;
 * - ids of ours become the upstream's;
 * - a run that was shown becomes a call and its result in front of its message;
 * - citations of pages go where the hosted search is ours now: servers that have none refuse messages with them.
 *
 * Where the tool is not offered now, runs become text of the assistant instead, as servers refuse calls of tools that
 * they do not know. What was changed or is not known goes up as the client has it: nothing is guessed. */
#include "surface/arguments.h"
#include "surface/chat_recall.h"

#include "base/check.h"
#include "base/digest.h"

#include <stdio.h>

static bool holds(struct str text, const char *part)
{
    return text.len > 0 && memmem(text.data, text.len, part, strlen(part)) != NULL;
}

bool chat_member_walk(struct json_value object, const char *name, struct json_value *ret)
{
    struct json_walk walk = json_walk_of(object);
    struct str key;
    while (json_walk_member(&walk, &key, ret)) {
        if (json_key_is(key, name)) {
            return true;
        }
    }
    return false;
}

bool chat_role_is(struct json_value message, const char *role)
{
    struct json_value value;
    return chat_member_walk(message, "role", &value) && value.type == JSON_STRING &&
           json_key_is(value.raw, role);
}

struct str chat_text_copy(struct arena *arena, const struct buf *text)
{
    CHECK(!text->overflow);
    return (struct str){check_alloc(arena_copy(arena, buf_str(text))), text->len};
}

size_t chat_body_at(const struct chat_recall *recall, const char *p)
{
    return (size_t)(p - recall->request->body->raw.data);
}

void chat_value_replace(struct chat_recall *recall, struct json_value value, struct str put)
{
    splice_add(&recall->request->edits, chat_body_at(recall, value.raw.data), value.raw.len, put);
}

/* ---- is there anything of ours? ---- */

static bool id_is_known(const struct surface_memory *memory, struct json_value call)
{
    struct json_value id;
    struct str ignored;
    if (call.type != JSON_OBJECT || !chat_member_walk(call, "id", &id) || id.type != JSON_STRING) {
        return false;
    }
    struct str text = {id.raw.data + 1, id.raw.len - 2}; /* ours need no escapes */
    return str_starts(text, STR(SHOWN_CALL_MARK)) && memory->find(memory->context, text, &ignored);
}

static bool calls_are_known(const struct surface_memory *memory, struct json_value message)
{
    struct json_value calls, call;
    if (!chat_member_walk(message, "tool_calls", &calls) || calls.type != JSON_ARRAY) {
        return false;
    }
    struct json_walk walk = json_walk_of(calls);
    while (json_walk_element(&walk, &call)) {
        if (id_is_known(memory, call)) {
            return true;
        }
    }
    return false;
}

bool chat_history_is_ours(const struct chat_request *request)
{
    if (request->messages == NULL || request->messages->value.type != JSON_ARRAY) {
        return false;
    }
    struct str raw = request->messages->value.raw; /* searched, which is fast: usually it is none */
    bool by_ids = request->memory != NULL && holds(raw, "\"" SHOWN_CALL_MARK);
    bool by_runs = holds(raw, "\"executed_tools\"");
    struct json_walk walk = json_walk_of(request->messages->value);
    struct json_value message, runs;
    while ((by_ids || by_runs) && json_walk_element(&walk, &message)) {
        if (message.type != JSON_OBJECT) {
            continue;
        }
        if ((by_runs && chat_member_walk(message, "executed_tools", &runs) &&
             holds(runs.raw, "_sg")) ||
            (by_ids && calls_are_known(request->memory, message))) {
            return true;
        }
    }
    return false;
}

/* ---- runs in words ---- */

void chat_content_prefix(struct chat_recall *recall, const struct chat_message *message,
                         struct str prefix)
{
    const struct json_member *content = json_find(message->members, message->count, "content");
    enum json_type type = content == NULL ? JSON_NULL : content->value.type;
    BUF_CLEANUP struct buf text = {0};
    if (type == JSON_STRING) {
        (void)buf_put_json_inner(&text, prefix); /* bounded by the body and what was kept */
        (void)buf_puts(&text, content->value.raw.len > 2 ? "\\n\\n" : "");
        splice_add(&recall->request->edits, chat_body_at(recall, content->value.raw.data) + 1, 0,
                   chat_text_copy(recall->arena, &text));
    } else if (type == JSON_ARRAY) {
        struct json_walk walk = json_walk_of(content->value);
        struct json_value first;
        (void)buf_puts(&text, "{\"type\":\"text\",\"text\":");
        (void)buf_put_json(&text, prefix);
        (void)buf_puts(&text, json_walk_element(&walk, &first) ? "}," : "}");
        splice_add(&recall->request->edits, chat_body_at(recall, content->value.raw.data) + 1, 0,
                   chat_text_copy(recall->arena, &text));
    } else if (content != NULL) {
        (void)buf_put_json(&text, prefix);
        chat_value_replace(recall, content->value, chat_text_copy(recall->arena, &text));
    } else {
        (void)buf_puts(&text, "\"content\":");
        (void)buf_put_json(&text, prefix);
        (void)buf_putc(&text, ',');
        CHECK(message->count > 0); /* it has a role */
        splice_add(&recall->request->edits, chat_body_at(recall, message->value.raw.data) + 1, 0,
                   chat_text_copy(recall->arena, &text));
    }
}

/* ---- a message with runs that were shown ---- */

struct shown_run {
    struct str type, id, arguments, output;
};

/* A mark of ours and 128 random bits behind it. */
static bool run_is_ours(struct str id)
{
    static const struct str marks[] = {{"ci_sg", 5}, {"ws_sg", 5}, {"run_sg", 6}};
    for (size_t i = 0; i < COUNT_OF(marks); i++) {
        if (str_starts(id, marks[i]) && id.len == marks[i].len + RANDOM_ID_BYTES - 1) {
            uint8_t bits[(RANDOM_ID_BYTES - 1) / 2];
            struct str digits = {id.data + marks[i].len, RANDOM_ID_BYTES - 1};
            return hex_decode(digits, bits, sizeof bits);
        }
    }
    return false;
}

static struct str text_walk(struct json_value object, const char *name, struct arena *arena)
{
    struct json_value value;
    return chat_member_walk(object, name, &value) && value.type == JSON_STRING
               ? json_text_of(value, arena)
               : (struct str){0};
}

static void pair_put(struct str function, const struct shown_run *run, struct buf *out)
{
    bool sound = arguments_is_object(run->arguments);
    (void)buf_puts(out, "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":");
    (void)buf_put_json(out, run->id); /* overflow is asked for by the owner */
    (void)buf_puts(out, ",\"type\":\"function\",\"function\":{\"name\":");
    (void)buf_put_json(out, function);
    (void)buf_puts(out, ",\"arguments\":");
    (void)buf_put_json(out, sound ? run->arguments : STR("{}"));
    (void)buf_puts(out, "}}]},{\"role\":\"tool\",\"tool_call_id\":");
    (void)buf_put_json(out, run->id);
    (void)buf_puts(out, ",\"content\":");
    (void)buf_put_json(out, run->output);
    (void)buf_puts(out, "},");
}

/* Runs of ours as pairs, or as text where their tool is not offered; a vendor's own are nothing to us. */
static void runs_take(const struct chat_recall *recall, struct json_value list, struct buf *pairs,
                      struct buf *text)
{
    struct json_walk walk = json_walk_of(list);
    struct json_value entry;
    while (json_walk_element(&walk, &entry)) {
        if (entry.type != JSON_OBJECT) {
            continue;
        }
        struct shown_run run = {text_walk(entry, "type", recall->arena),
                                text_walk(entry, "id", recall->arena),
                                text_walk(entry, "arguments", recall->arena),
                                text_walk(entry, "output", recall->arena)};
        int offer = tools_shown_of_kind(&recall->request->set, run.type);
        if (!run_is_ours(run.id) || run.type.len == 0) {
            continue;
        }
        if (offer >= 0) {
            pair_put(recall->request->set.shown[offer].name, &run, pairs);
        } else {
            result_text_put(run.type, run.arguments, run.output, text);
        }
    }
}

struct shown { /* what a message has that only answers have */
    bool runs, citations;
};

static bool are_citations(struct json_value list)
{
    struct json_walk walk = json_walk_of(list);
    struct json_value entry, type;
    bool is_any = false;
    while (json_walk_element(&walk, &entry)) {
        is_any = entry.type == JSON_OBJECT && chat_member_walk(entry, "type", &type) &&
                 type.type == JSON_STRING && json_key_is(type.raw, "url_citation");
        if (!is_any) {
            return false;
        }
    }
    return is_any;
}

static void shown_cut(struct chat_recall *recall, const struct chat_message *message,
                      struct shown shown)
{
    bool *gone = arena_get(recall->arena, message->count + 1);
    for (size_t k = 0; k < message->count; k++) {
        const struct json_member *member = &message->members[k];
        gone[k] = (shown.runs && str_is(member->key, "executed_tools")) ||
                  (shown.citations && str_is(member->key, "annotations"));
    }
    splice_cut_members(&recall->request->edits, recall->request->body->raw, message->members,
                       message->count, gone);
}

static void runs_put_back(struct chat_recall *recall, const struct chat_message *message)
{
    const struct json_member *runs =
        json_find_type(message->members, message->count, "executed_tools", JSON_ARRAY);
    BUF_CLEANUP struct buf pairs = {0}, text = {0};
    if (runs != NULL) {
        runs_take(recall, runs->value, &pairs, &text); /* bounded by the body */
    }
    if (pairs.len > 0) {
        splice_add(&recall->request->edits, chat_body_at(recall, message->value.raw.data), 0,
                   chat_text_copy(recall->arena, &pairs));
    }
    if (text.len > 0) {
        chat_content_prefix(recall, message, chat_text_copy(recall->arena, &text));
    }
}

/* ---- all messages ---- */

/* One that holds something of ours, or looks so. */
static int message_take(struct chat_recall *recall, struct chat_message *message,
                        struct shown shown, struct sg_error *err)
{
    char where[40];
    (void)snprintf(where, sizeof where, "messages[%zu]", message->place); /* fits */
    int code =
        json_members(message->value, where, recall->arena, &message->members, &message->count, err);
    enum chat_kept_outcome outcome = CHAT_KEPT_NOTHING;
    bool is_assistant = chat_role_is(message->value, "assistant");
    if (code == SG_OK && is_assistant && recall->by_ids) {
        code = chat_kept_apply(recall, message, &outcome, err);
    }
    if (code != SG_OK || outcome == CHAT_KEPT_PUT_BACK) {
        return code;
    }
    if (shown.runs && is_assistant && outcome == CHAT_KEPT_NOTHING) {
        runs_put_back(recall, message);
    }
    shown.citations = shown.citations && is_assistant;
    if (shown.runs || shown.citations) {
        shown_cut(recall, message, shown);
    }
    return SG_OK;
}

/* Walks a message to its end. */
static struct shown shown_pass(const struct chat_recall *recall, struct json_walk *message)
{
    struct shown shown = {0};
    struct str key;
    struct json_value value;
    while (json_walk_member(message, &key, &value)) {
        shown.runs = shown.runs || json_key_is(key, "executed_tools");
        shown.citations = shown.citations || (recall->searches && json_key_is(key, "annotations") &&
                                              value.type == JSON_ARRAY && are_citations(value));
    }
    return shown;
}

/* One pass over all messages, which may be most of the body; what follows a message is looked at again only behind
 * calls that were kept. */
static int messages_walk(struct chat_recall *recall, struct json_value list, struct sg_error *err)
{
    struct json_walk walk = json_walk_of(list), inner;
    struct json_value other;
    size_t i = 0;
    for (;; i++) {
        if (!json_walk_enter(&walk, &inner)) {
            if (!json_walk_element(&walk, &other)) {
                break;
            }
            continue;
        }
        const char *start = walk.at;
        struct shown shown = shown_pass(recall, &inner);
        json_walk_leave(&walk, &inner);
        struct json_value value = {JSON_OBJECT, {start, (size_t)(inner.at + 1 - start)}};
        if (recall->resumes.len > 0 && chat_role_is(value, "assistant")) {
            recall->resumes = (struct str){0}; /* that answer was continued before */
        }
        if (shown.runs || shown.citations ||
            (recall->by_ids && holds(value.raw, "\"" SHOWN_CALL_MARK))) {
            struct chat_message message = {.value = value, .place = i, .ahead = walk};
            int code = message_take(recall, &message, shown, err);
            if (code != SG_OK) {
                return code;
            }
        }
    }
    recall->request->messages_empty = i == 0;
    return SG_OK;
}

int chat_messages_read(struct chat_request *request, struct arena *arena, struct sg_error *err)
{
    const struct json_member *messages = request->messages;
    const struct surface_memory *memory = request->memory;
    if (messages == NULL || messages->value.type != JSON_ARRAY) {
        return error_set_param(err, SG_E_INVALID, "messages", "messages must be an array%s",
                               messages == NULL ? ", and is missing" : "");
    }
    request->edits.arena = arena;
    struct chat_recall recall = {.request = request, .arena = arena};
    recall.by_ids = memory != NULL && holds(messages->value.raw, "\"" SHOWN_CALL_MARK);
    recall.searches = tools_shown_of_kind(&request->set, STR("web_search")) >= 0;
    int code = messages_walk(&recall, messages->value, err);
    if (code == SG_OK && recall.resumes.len > 0) {
        request->resumes = memory->resume(memory->context, recall.resumes);
    }
    return code;
}
