/* Answers of Chat Completions, as servers in the field give them: with parts missing, arguments as objects, usage in the
 * last chunk or nowhere, no end mark. */
#include "translate/hear_chat.h"

#include "base/check.h"
#include "base/json.h"
#include "surface/reported.h"

#include <stdio.h>
#include <stdlib.h>

enum { CITATIONS_MAX = 1000 };

static void *hear_open(struct arena *arena, const char *id, const struct sayer *to)
{
    struct hearing *h = arena_get(arena, sizeof *h);
    *h = (struct hearing){.arena = arena, .id = id, .to = *to, .usage = {-1, -1, -1, -1, -1}};
    return h;
}

int hearing_say(const struct hearing *h, const struct said *said, struct sg_error *err)
{
    return h->to.say(h->to.context, said, err);
}

static void details_read(struct arena *arena, const struct json_member *members, size_t count,
                         const char *where, const char *name, int64_t *ret)
{
    const struct json_member *details = json_find_type(members, count, where, JSON_OBJECT);
    struct json_member *inner;
    size_t inner_count;
    struct sg_error ignored = {0};
    if (details != NULL &&
        json_members(details->value, where, arena, &inner, &inner_count, &ignored) == SG_OK) {
        said_count_read(arena, inner, inner_count, name, ret);
    }
}

static void usage_take(struct hearing *h, struct arena *scratch, const struct json_member *usage)
{
    struct json_member *members;
    size_t count;
    struct sg_error ignored = {0};
    if (usage == NULL || usage->value.type != JSON_OBJECT ||
        json_members(usage->value, "usage", scratch, &members, &count, &ignored) != SG_OK) {
        return;
    }
    said_count_read(scratch, members, count, "prompt_tokens", &h->usage.input);
    said_count_read(scratch, members, count, "completion_tokens", &h->usage.output);
    details_read(scratch, members, count, "prompt_tokens_details", "cached_tokens",
                 &h->usage.cached);
    details_read(scratch, members, count, "completion_tokens_details", "reasoning_tokens",
                 &h->usage.reasoning);
}

/* ---- text ---- */

static int text_say(struct hearing *h, enum said_kind kind, struct str text, struct str logprobs,
                    struct sg_error *err)
{
    if (text.len == 0 && logprobs.len == 0) { /* half a character has logprobs and no text yet */
        return SG_OK;
    }
    h->has_text = true;
    h->characters += kind == SAID_TEXT ? said_characters(text) : 0;
    return hearing_say(h, &(struct said){.kind = kind, .text = text, .logprobs = logprobs}, err);
}

/* The texts of an array of parts. They are said at once: said one by one, small parts make an event each. */
static struct str parts_text(struct arena *scratch, struct json_value array)
{
    char *all = check_alloc(arena_alloc(scratch, array.raw.len)); /* no text is longer decoded */
    size_t len = 0;
    struct json_walk walk = json_walk_of(array);
    struct json_value value;
    while (json_walk_element(&walk, &value)) {
        struct json_member *members;
        size_t count;
        struct sg_error ignored = {0};
        if (value.type == JSON_OBJECT &&
            json_members(value, "content", scratch, &members, &count, &ignored) == SG_OK) {
            struct str text = json_find_text(members, count, "text", scratch);
            len += text.len;
            memcpy(all + len - text.len, text.len > 0 ? text.data : "", text.len);
        }
    }
    return (struct str){all, len};
}

/* A string, or parts with a text each. */
static int text_take(struct hearing *h, struct arena *scratch, enum said_kind kind,
                     const struct json_member *member, struct str logprobs, struct sg_error *err)
{
    if (member == NULL) {
        return SG_OK;
    }
    if (member->value.type == JSON_STRING) {
        return text_say(h, kind, json_text_of(member->value, scratch), logprobs, err);
    }
    return member->value.type == JSON_ARRAY
               ? text_say(h, kind, parts_text(scratch, member->value), logprobs, err)
               : SG_OK;
}

/* ---- citations ---- */

/* {"type": "url_citation", "url_citation": {"url", "title", "start_index", "end_index"}}, or all in one object. Without a
 * place it is at all that was said so far. */
static int citation_take(struct hearing *h, struct arena *scratch, struct json_value value,
                         struct sg_error *err)
{
    struct json_member *members, *inner;
    size_t count, inner_count;
    struct sg_error ignored = {0};
    int64_t start = 0, end = -1;
    if (value.type != JSON_OBJECT ||
        json_members(value, "an annotation", scratch, &members, &count, &ignored) != SG_OK) {
        return SG_OK;
    }
    const struct json_member *nested = json_find_type(members, count, "url_citation", JSON_OBJECT);
    if (nested != NULL && json_members(nested->value, "an annotation", scratch, &inner,
                                       &inner_count, &ignored) == SG_OK) {
        members = inner;
        count = inner_count;
    }
    struct said said = {.kind = SAID_CITATION,
                        .url = json_find_text(members, count, "url", scratch),
                        .title = json_find_text(members, count, "title", scratch)};
    said_count_read(scratch, members, count, "start_index", &start);
    said_count_read(scratch, members, count, "end_index", &end);
    bool is_placed = start <= end;
    said.start = is_placed ? (size_t)start : 0;
    said.end = is_placed ? (size_t)end : h->characters;
    if (said.url.len == 0 || h->citations == CITATIONS_MAX) {
        return SG_OK;
    }
    h->citations++;
    return hearing_say(h, &said, err);
}

static int citations_take(struct hearing *h, struct arena *scratch, const struct json_member *list,
                          struct sg_error *err)
{
    struct json_value value;
    int code = SG_OK;
    if (list == NULL || list->value.type != JSON_ARRAY) {
        return SG_OK;
    }
    struct json_walk walk = json_walk_of(list->value);
    while (code == SG_OK && json_walk_element(&walk, &value)) {
        code = citation_take(h, scratch, value, err);
    }
    return code;
}

/* ---- an answer, or a piece of one ---- */

static int delta_take(struct hearing *h, struct arena *scratch, struct json_value delta,
                      struct str logprobs, bool is_whole, struct sg_error *err)
{
    static const char *const reasonings[] = {"reasoning_content", "reasoning"};
    struct json_member *members;
    size_t count;
    if (json_members(delta, "a message", scratch, &members, &count, err) != SG_OK) {
        return not_understood(err);
    }
    int code = SG_OK;
    const struct json_member *reasoning = NULL;
    for (size_t i = 0; reasoning == NULL && i < COUNT_OF(reasonings); i++) {
        reasoning = json_find_type(members, count, reasonings[i], JSON_STRING);
        bool is_empty = reasoning != NULL && reasoning->value.raw.len == 2;
        reasoning = is_empty ? NULL : reasoning; /* some say it under both names, one empty */
    }
    code = text_take(h, scratch, SAID_REASONING, reasoning, (struct str){0}, err);
    if (code == SG_OK) {
        code =
            text_take(h, scratch, SAID_TEXT, json_find(members, count, "content"), logprobs, err);
    }
    if (code == SG_OK) {
        code = text_take(h, scratch, SAID_REFUSAL, json_find(members, count, "refusal"),
                         (struct str){0}, err);
    }
    if (code == SG_OK) {
        code = citations_take(h, scratch, json_find(members, count, "annotations"), err);
    }
    if (code == SG_OK) {
        code =
            hearing_calls_take(h, scratch, json_find(members, count, "tool_calls"), is_whole, err);
    }
    return code == SG_OK
               ? hearing_old_call_take(h, scratch, json_find(members, count, "function_call"), err)
               : code;
}

static void reason_take(struct hearing *h, struct str reason)
{
    static const struct {
        const char *word;
        enum said_stop stop;
    } words[] = {{"length", STOP_TOKENS},
                 {"max_tokens", STOP_TOKENS},
                 {"content_filter", STOP_FILTER},
                 {"tool_calls", STOP_CALLS},
                 {"function_call", STOP_CALLS}};
    if (reason.len == 0) {
        return;
    }
    h->has_reason = true;
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (str_is(reason, words[i].word)) {
            h->stop = words[i].stop;
        }
    }
}

/* On one line, as an event wants it; strings have no bare line ends within. */
static struct str one_line(struct str raw, struct arena *scratch)
{
    char *copy = check_alloc(arena_copy(scratch, raw));
    for (size_t i = 0; i < raw.len; i++) {
        copy[i] = copy[i] == '\n' || copy[i] == '\r' ? ' ' : copy[i];
    }
    return str_trim((struct str){copy, raw.len});
}

/* The elements of logprobs.content, without their brackets. */
static struct str logprobs_of(const struct json_member *members, size_t count,
                              struct arena *scratch)
{
    const struct json_member *logprobs = json_find_type(members, count, "logprobs", JSON_OBJECT);
    struct json_member *inner;
    size_t inner_count;
    struct sg_error ignored = {0};
    if (logprobs == NULL || json_members(logprobs->value, "logprobs", scratch, &inner, &inner_count,
                                         &ignored) != SG_OK) {
        return (struct str){0};
    }
    const struct json_member *content = json_find_type(inner, inner_count, "content", JSON_ARRAY);
    return content == NULL
               ? (struct str){0}
               : one_line((struct str){content->value.raw.data + 1, content->value.raw.len - 2},
                          scratch);
}

/* The first choice; others were not asked for. */
static int choice_take(struct hearing *h, struct arena *scratch, const struct json_member *choices,
                       bool is_whole, struct sg_error *err)
{
    struct json_value choice;
    struct json_member *members;
    size_t count;
    int64_t index;
    struct json_walk walk = json_walk_of(choices->value);
    while (json_walk_element(&walk, &choice)) {
        if (choice.type != JSON_OBJECT) {
            continue;
        }
        if (json_members(choice, "a choice", scratch, &members, &count, err) != SG_OK) {
            return not_understood(err);
        }
        if (hearing_index_read(scratch, members, count, &index) && index != 0) {
            continue;
        }
        const struct json_member *delta = json_find_type(members, count, "delta", JSON_OBJECT);
        if (delta == NULL && (is_whole || (!h->has_text && h->calls_count == 0))) {
            delta = json_find_type(members, count, "message", JSON_OBJECT);
        } /* else some servers say all of it once more */
        int code = delta == NULL ? SG_OK
                                 : delta_take(h, scratch, delta->value,
                                              logprobs_of(members, count, scratch), is_whole, err);
        reason_take(h, json_find_text(members, count, "finish_reason", scratch));
        return code;
    }
    return SG_OK;
}

static int begin_say(struct hearing *h, const struct json_text *text, struct sg_error *err)
{
    if (h->has_begun) {
        return SG_OK;
    }
    h->has_begun = true;
    struct said said = {.kind = SAID_BEGIN};
    said.model = json_find_text(text->members, text->count, "model", h->arena);
    return hearing_say(h, &said, err);
}

static int text_hear(struct hearing *h, struct str json, bool is_whole, bool is_error,
                     struct sg_error *err)
{
    struct arena *scratch = arena_new(0);
    struct json_text text;
    int code = said_scan(json, scratch, &text, err);
    if (code != SG_OK) {
        arena_free(scratch);
        return code;
    }
    code = reported_error(&text, is_error, scratch, err);
    code = code == SG_OK ? begin_say(h, &text, err) : code;
    const struct json_member *choices =
        json_find_type(text.members, text.count, "choices", JSON_ARRAY);
    if (code == SG_OK && choices != NULL) {
        code = choice_take(h, scratch, choices, is_whole, err);
    } else if (code == SG_OK && is_whole) {
        (void)error_set(err, SG_E_INVALID, "there are no choices in it");
        code = not_understood(err);
    }
    usage_take(h, scratch, json_find(text.members, text.count, "usage"));
    arena_free(scratch);
    return code;
}

static int end_say(struct hearing *h, struct sg_error *err)
{
    bool stops_for_calls = h->calls_count > 0 && h->stop == STOP_END;
    struct said said = {
        .kind = SAID_END, .stop = stops_for_calls ? STOP_CALLS : h->stop, .usage = h->usage};
    h->is_over = true;
    int code = hearing_calls_tell(h, h->calls_count, err);
    return code == SG_OK ? hearing_say(h, &said, err) : code;
}

static int hear_event(void *hearing, struct str data, bool is_error, struct sg_error *err)
{
    struct hearing *h = hearing;
    if (h->is_over) {
        return SG_OK;
    }
    if (str_is(str_trim(data), "[DONE]")) {
        return h->has_begun ? end_say(h, err)
                            : error_set(err, SG_E_UNAVAILABLE, "The upstream's stream was empty");
    }
    return text_hear(h, data, false, is_error, err);
}

static int hear_whole(void *hearing, struct str json, struct sg_error *err)
{
    struct hearing *h = hearing;
    int code = text_hear(h, json, true, false, err);
    return code == SG_OK ? end_say(h, err) : code;
}

static int hear_end(void *hearing, struct sg_error *err)
{
    struct hearing *h = hearing;
    if (h->is_over) {
        return SG_OK;
    }
    return h->has_reason ? end_say(h, err)
                         : error_set(err, SG_E_UNAVAILABLE,
                                     "The upstream's stream ended before its answer was whole");
}

static size_t hear_kept(const void *hearing)
{
    return ((const struct hearing *)hearing)->kept;
}

const struct hearer_ops hear_chat = {hear_open, hear_event, hear_whole, hear_end, hear_kept};
