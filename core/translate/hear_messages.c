/* Answers of the Messages API. */
#include "translate/said.h"

#include "base/check.h"
#include "surface/messages.h"
#include "surface/reported.h"

#include <stdio.h>

enum { BLOCKS_MAX = 4096, CITATIONS_MAX = 1000 };

enum heard_kind { HEARD_TEXT, HEARD_THINKING, HEARD_CALL, HEARD_OTHER };

struct heard_citation {
    struct str url, title;
    struct heard_citation *next;
};

struct heard_block {
    enum heard_kind kind;
    int64_t index; /* the upstream's */
    size_t call;
    size_t start;                     /* of a text, in characters of the answer */
    struct heard_citation *citations; /* the newest first, until their text is whole */
    bool has_input;                   /* some has come in pieces */
    struct str input; /* that came with the block's start: told at its end, unless pieces come */
};

struct hearing {
    struct arena *arena;
    const char *id;
    struct sayer to;
    bool has_begun, is_over, has_reason;
    struct heard_block *blocks;
    size_t count, room, calls;
    size_t kept; /* of inputs and citations that wait for their block's end */
    size_t characters, citations;
    enum said_stop stop;
    struct str stop_sequence;
    struct said_usage usage;
};

static void *hear_open(struct arena *arena, const char *id, const struct sayer *to)
{
    struct hearing *h = arena_get(arena, sizeof *h);
    *h = (struct hearing){.arena = arena, .id = id, .to = *to, .usage = {-1, -1, -1, -1, -1}};
    return h;
}

static int say(const struct hearing *h, const struct said *said, struct sg_error *err)
{
    return h->to.say(h->to.context, said, err);
}

static int text_say(struct hearing *h, enum said_kind kind, struct str text, struct sg_error *err)
{
    h->characters += kind == SAID_TEXT ? said_characters(text) : 0;
    return text.len == 0 ? SG_OK : say(h, &(struct said){.kind = kind, .text = text}, err);
}

/* ---- usage ---- */

/* The input without what came from a cache: other APIs count all of it. */
static void usage_take(struct hearing *h, struct arena *scratch, const struct json_member *usage)
{
    struct json_member *members;
    size_t count;
    struct sg_error ignored = {0};
    if (usage == NULL || usage->value.type != JSON_OBJECT ||
        json_members(usage->value, "usage", scratch, &members, &count, &ignored) != SG_OK) {
        return;
    }
    said_count_read(scratch, members, count, "input_tokens", &h->usage.input);
    said_count_read(scratch, members, count, "output_tokens", &h->usage.output);
    said_count_read(scratch, members, count, "cache_read_input_tokens", &h->usage.cached);
    said_count_read(scratch, members, count, "cache_creation_input_tokens",
                    &h->usage.cache_written);
}

static int64_t or_none(int64_t count)
{
    return count < 0 ? 0 : count;
}

/* ---- blocks ---- */

static struct heard_block *block_add(struct hearing *h, enum heard_kind kind)
{
    if (h->count == h->room) {
        size_t room = h->room == 0 ? 8 : 2 * h->room;
        struct heard_block *more = arena_get(h->arena, room * sizeof *more);
        if (h->count > 0) {
            memcpy(more, h->blocks, h->count * sizeof *more);
        }
        h->blocks = more;
        h->room = room;
    }
    struct heard_block *block = &h->blocks[h->count++];
    *block = (struct heard_block){.kind = kind, .index = (int64_t)h->count - 1};
    return block;
}

static int call_say(struct hearing *h, struct heard_block *block, const struct json_member *members,
                    size_t count, struct arena *scratch, struct sg_error *err)
{
    char made[64];
    struct str mark = STR("toolu_"), id = json_find_text(members, count, "id", scratch);
    block->call = h->calls++;
    if (str_starts(id, mark)) { /* this API's way of writing an id; the other's */
        id = (struct str){id.data + mark.len, id.len - mark.len};
        id = str_of(arena_printf(scratch, "call_%.*s", (int)id.len, id.data));
    }
    if (id.len == 0) {
        snprintf(made, sizeof made, "call_%.40s_%zu", h->id, block->call);
        id = str_of(made);
    }
    struct said said = {.kind = SAID_CALL,
                        .call = block->call,
                        .id = id,
                        .name = json_find_text(members, count, "name", scratch)};
    return say(h, &said, err);
}

static int input_say(const struct hearing *h, const struct heard_block *block, struct str text,
                     struct sg_error *err)
{
    struct said said = {.kind = SAID_ARGUMENTS, .call = block->call, .text = text};
    return text.len == 0 ? SG_OK : say(h, &said, err);
}

/* Input that comes with a block's start is its whole, unless pieces of it follow. */
static void input_keep(struct hearing *h, struct heard_block *block,
                       const struct json_member *input, struct arena *scratch)
{
    struct str text = input == NULL                      ? STR("{}")
                      : input->value.type == JSON_STRING ? json_text_of(input->value, scratch)
                                                         : input->value.raw;
    block->input = (struct str){check_alloc(arena_copy(h->arena, text)), text.len};
    h->kept += text.len;
}

/* ---- citations: a text is what they are at, and may come behind them ---- */

static struct str text_kept(struct hearing *h, struct str text)
{
    h->kept += text.len;
    return (struct str){check_alloc(arena_copy(h->arena, text)), text.len};
}

/* Of a page alone: no other API has citations of documents, and none can ask for them. */
static void citation_keep(struct hearing *h, struct heard_block *block, struct json_value value,
                          struct arena *scratch)
{
    struct json_member *members;
    size_t count;
    struct sg_error ignored = {0};
    if (h->citations == CITATIONS_MAX || value.type != JSON_OBJECT ||
        json_members(value, "a citation", scratch, &members, &count, &ignored) != SG_OK) {
        return;
    }
    struct str url = json_find_text(members, count, "url", scratch);
    if (url.len == 0) {
        return;
    }
    struct heard_citation *citation = arena_get(h->arena, sizeof *citation);
    *citation = (struct heard_citation){
        text_kept(h, url), text_kept(h, json_find_text(members, count, "title", scratch)),
        block->citations};
    block->citations = citation;
    h->citations++;
    h->kept += sizeof *citation;
}

static void citations_keep(struct hearing *h, struct heard_block *block,
                           const struct json_member *list, struct arena *scratch)
{
    struct json_value value;
    if (list == NULL || list->value.type != JSON_ARRAY) {
        return;
    }
    struct json_walk walk = json_walk_of(list->value);
    while (json_walk_element(&walk, &value)) {
        citation_keep(h, block, value, scratch);
    }
}

/* In the order in which they came. */
static int citations_say(struct hearing *h, struct heard_block *block, struct sg_error *err)
{
    struct heard_citation *first = NULL, *next;
    int code = SG_OK;
    for (struct heard_citation *one = block->citations; one != NULL; one = next) {
        next = one->next;
        one->next = first;
        first = one;
    }
    block->citations = NULL;
    for (; code == SG_OK && first != NULL; first = first->next) {
        struct said said = {.kind = SAID_CITATION,
                            .url = first->url,
                            .title = first->title,
                            .start = block->start,
                            .end = h->characters};
        code = say(h, &said, err);
    }
    return code;
}

/* A block begins, or is there as a whole. */
static int block_take(struct hearing *h, struct json_value value, struct arena *scratch,
                      struct sg_error *err)
{
    struct json_member *members;
    size_t count;
    if (h->count == BLOCKS_MAX || value.type != JSON_OBJECT ||
        json_members(value, "a block", scratch, &members, &count, err) != SG_OK) {
        (void)error_set(err, SG_E_INVALID, "a content block is no object, or one too many");
        return not_understood(err);
    }
    struct str type = json_find_text(members, count, "type", scratch);
    if (str_is(type, "text")) {
        struct heard_block *block = block_add(h, HEARD_TEXT);
        block->start = h->characters;
        citations_keep(h, block, json_find(members, count, "citations"), scratch);
        return text_say(h, SAID_TEXT, json_find_text(members, count, "text", scratch), err);
    }
    if (str_is(type, "thinking")) {
        (void)block_add(h, HEARD_THINKING);
        int code =
            text_say(h, SAID_REASONING, json_find_text(members, count, "thinking", scratch), err);
        struct str seal = json_find_text(members, count, "signature", scratch);
        return code == SG_OK ? text_say(h, SAID_SEAL, seal, err) : code;
    }
    if (str_is(type, "tool_use")) {
        struct heard_block *block = block_add(h, HEARD_CALL);
        input_keep(h, block, json_find(members, count, "input"), scratch);
        return call_say(h, block, members, count, scratch, err);
    }
    (void)block_add(h, HEARD_OTHER); /* what no other API has a place for */
    return SG_OK;
}

/* By the number that the upstream gave it; the last one where there is none. */
static struct heard_block *block_of(struct hearing *h, const struct json_text *event,
                                    struct arena *scratch)
{
    int64_t index = -1;
    said_number_read(scratch, event->members, event->count, "index", &index);
    for (size_t i = h->count; i > 0; i--) {
        if (index < 0 || h->blocks[i - 1].index == index) {
            return &h->blocks[i - 1];
        }
    }
    return NULL;
}

static int delta_take(struct hearing *h, const struct json_text *event, struct arena *scratch,
                      struct sg_error *err)
{
    const struct json_member *delta =
        json_find_type(event->members, event->count, "delta", JSON_OBJECT);
    struct heard_block *block = block_of(h, event, scratch);
    struct json_member *members;
    size_t count;
    if (delta == NULL || block == NULL) {
        return SG_OK;
    }
    if (json_members(delta->value, "a delta", scratch, &members, &count, err) != SG_OK) {
        return not_understood(err);
    }
    struct str type = json_find_text(members, count, "type", scratch);
    if (str_is(type, "text_delta") && block->kind == HEARD_TEXT) {
        return text_say(h, SAID_TEXT, json_find_text(members, count, "text", scratch), err);
    }
    const struct json_member *citation = json_find(members, count, "citation");
    if (str_is(type, "citations_delta") && block->kind == HEARD_TEXT && citation != NULL) {
        citation_keep(h, block, citation->value, scratch);
    }
    if (str_is(type, "thinking_delta") && block->kind == HEARD_THINKING) {
        return text_say(h, SAID_REASONING, json_find_text(members, count, "thinking", scratch),
                        err);
    }
    if (str_is(type, "signature_delta") && block->kind == HEARD_THINKING) {
        return text_say(h, SAID_SEAL, json_find_text(members, count, "signature", scratch), err);
    }
    if (str_is(type, "input_json_delta") && block->kind == HEARD_CALL) {
        struct str more = json_find_text(members, count, "partial_json", scratch);
        block->has_input = block->has_input || more.len > 0;
        return input_say(h, block, more, err);
    }
    return SG_OK;
}

/* ---- the frame ---- */

static void stop_take(struct hearing *h, const struct json_member *members, size_t count,
                      struct arena *scratch)
{
    static const struct {
        const char *word;
        enum said_stop stop;
    } words[] = {{"max_tokens", STOP_TOKENS},
                 {"stop_sequence", STOP_SEQUENCE},
                 {"tool_use", STOP_CALLS},
                 {"refusal", STOP_FILTER},
                 {"model_context_window_exceeded", STOP_CONTEXT}};
    struct str reason = json_find_text(members, count, "stop_reason", scratch);
    h->has_reason = h->has_reason || reason.len > 0;
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (str_is(reason, words[i].word)) {
            h->stop = words[i].stop;
        }
    }
}

static int begin_say(struct hearing *h, const struct json_member *members, size_t count,
                     struct arena *scratch, struct sg_error *err)
{
    if (h->has_begun) {
        return SG_OK;
    }
    h->has_begun = true;
    usage_take(h, scratch, json_find(members, count, "usage"));
    struct said said = {.kind = SAID_BEGIN,
                        .model = json_find_text(members, count, "model", scratch)};
    return say(h, &said, err);
}

static int end_say(struct hearing *h, struct sg_error *err)
{
    int code = SG_OK;
    for (size_t i = 0; code == SG_OK && i < h->count; i++) {
        struct heard_block *block = &h->blocks[i];
        code = citations_say(h, block, err); /* of a block that had no end */
        if (code == SG_OK && block->kind == HEARD_CALL && !block->has_input) {
            code = input_say(h, block, block->input, err);
        }
    }
    bool stops_for_calls = h->calls > 0 && h->stop == STOP_END;
    struct said said = {
        .kind = SAID_END, .stop = stops_for_calls ? STOP_CALLS : h->stop, .usage = h->usage};
    if (h->usage.input >= 0) {
        said.usage.input += or_none(h->usage.cached) + or_none(h->usage.cache_written);
    }
    h->is_over = true;
    return code == SG_OK ? say(h, &said, err) : code;
}

/* The members of an object in an event; none where there is no such. */
static int inside(const struct json_text *event, const char *name, struct arena *scratch,
                  struct json_member **ret, size_t *ret_count, struct sg_error *err)
{
    const struct json_member *member =
        json_find_type(event->members, event->count, name, JSON_OBJECT);
    *ret = NULL;
    *ret_count = 0;
    return member == NULL ? SG_OK : json_members(member->value, name, scratch, ret, ret_count, err);
}

static int start_take(struct hearing *h, const struct json_text *event, struct arena *scratch,
                      struct sg_error *err)
{
    const struct json_member *block = json_find(event->members, event->count, "content_block");
    size_t before = h->count;
    int code = block == NULL ? SG_OK : block_take(h, block->value, scratch, err);
    if (h->count > before) {
        said_number_read(scratch, event->members, event->count, "index", &h->blocks[before].index);
    }
    return code;
}

static int event_take(struct hearing *h, const struct json_text *event, struct arena *scratch,
                      struct sg_error *err)
{
    struct str type = json_find_text(event->members, event->count, "type", scratch);
    struct json_member *members;
    size_t count;
    int code = inside(event, str_is(type, "message_start") ? "message" : "delta", scratch, &members,
                      &count, err);
    if (code != SG_OK) {
        return not_understood(err);
    }
    if (str_is(type, "message_start")) {
        return begin_say(h, members, count, scratch, err);
    }
    code = str_is(type, "ping") ? SG_OK : begin_say(h, NULL, 0, scratch, err);
    if (code == SG_OK && str_is(type, "content_block_start")) {
        return start_take(h, event, scratch, err);
    }
    if (code == SG_OK && str_is(type, "content_block_delta")) {
        return delta_take(h, event, scratch, err);
    }
    struct heard_block *block = block_of(h, event, scratch);
    if (code == SG_OK && str_is(type, "content_block_stop") && block != NULL) {
        return citations_say(h, block, err);
    }
    if (code == SG_OK && str_is(type, "message_delta")) {
        stop_take(h, members, count, scratch);
        usage_take(h, scratch, json_find(event->members, event->count, "usage"));
    }
    return code == SG_OK && str_is(type, "message_stop") ? end_say(h, err) : code;
}

static int whole_take(struct hearing *h, const struct json_text *text, struct arena *scratch,
                      struct sg_error *err)
{
    const struct json_member *content =
        json_find_type(text->members, text->count, "content", JSON_ARRAY);
    if (content == NULL) {
        (void)error_set(err, SG_E_INVALID, "there is no content in it");
        return not_understood(err);
    }
    int code = begin_say(h, text->members, text->count, scratch, err);
    struct json_walk walk = json_walk_of(content->value);
    struct json_value block;
    while (code == SG_OK && json_walk_element(&walk, &block)) {
        code = block_take(h, block, scratch, err);
        code = code == SG_OK ? citations_say(h, &h->blocks[h->count - 1], err) : code;
    }
    stop_take(h, text->members, text->count, scratch);
    return code == SG_OK ? end_say(h, err) : code;
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
    code = messages_reported(&text, is_error, scratch, err);
    if (code == SG_OK) {
        code = is_whole ? whole_take(h, &text, scratch, err) : event_take(h, &text, scratch, err);
    }
    arena_free(scratch);
    return code;
}

static int hear_event(void *hearing, struct str data, bool is_error, struct sg_error *err)
{
    struct hearing *h = hearing;
    if (h->is_over || str_is(str_trim(data), "[DONE]")) {
        return SG_OK;
    }
    return text_hear(h, data, false, is_error, err);
}

static int hear_whole(void *hearing, struct str json, struct sg_error *err)
{
    return text_hear(hearing, json, true, false, err);
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
    const struct hearing *h = hearing;
    return h->kept + h->room * sizeof *h->blocks;
}

const struct hearer_ops hear_messages = {hear_open, hear_event, hear_whole, hear_end, hear_kept};
