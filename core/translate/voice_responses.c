/* What was heard, as an answer of the Responses API. The surface that reads it is lenient; what a client sees is its work. */
#include "translate/said.h"

#include "base/check.h"

#include <stdio.h>

enum { ITEMS_MAX = 4096 };

enum item_kind { ITEM_MESSAGE, ITEM_REASONING, ITEM_CALL };

struct voice_part { /* of a message: text, or a refusal */
    bool is_refusal;
    size_t start; /* characters of the answer before it */
    size_t annotations_count;
    struct buf text, logprobs, annotations;
};

struct voice_item {
    enum item_kind kind;
    size_t call;
    bool is_custom;
    struct buf text, seal, call_id, name; /* text: arguments, or reasoning */
    struct voice_part parts[2];           /* text and refusal, in the order in which they came */
    size_t parts_count;
};

struct voice {
    struct arena *arena;
    const char *id;
    bool as_stream;
    struct str model;
    struct voice_item **items;
    size_t count, room;
    size_t open; /* the item that goes on, from 1 on; 0: none. Calls go on to the end */
    size_t sequence, characters;
};

static void *voice_open(struct arena *arena, const char *id, bool as_stream)
{
    struct voice *v = arena_get(arena, sizeof *v);
    *v = (struct voice){.arena = arena, .id = id, .as_stream = as_stream, .model = STR("")};
    return v;
}

static void item_clear(struct voice_item *item)
{
    buf_clear(&item->text);
    buf_clear(&item->seal);
    buf_clear(&item->call_id);
    buf_clear(&item->name);
    for (size_t i = 0; i < item->parts_count; i++) {
        buf_clear(&item->parts[i].text);
        buf_clear(&item->parts[i].logprobs);
        buf_clear(&item->parts[i].annotations);
    }
}

static void voice_close(void *voice)
{
    struct voice *v = voice;
    for (size_t i = 0; v != NULL && i < v->count; i++) {
        item_clear(v->items[i]);
    }
}

/* ---- items as JSON; the owner asks for overflow ---- */

static void item_id_put(const struct voice *v, size_t index, struct buf *out)
{
    static const char *const marks[] = {
        [ITEM_MESSAGE] = "msg", [ITEM_REASONING] = "rs", [ITEM_CALL] = "fc"};
    (void)buf_printf(out, "\"%s_%.64s_%zu\"", marks[v->items[index]->kind], v->id, index);
}

static void part_put(const struct voice_part *part, bool is_empty, struct buf *out)
{
    if (part->is_refusal) {
        (void)buf_puts(out, "{\"type\":\"refusal\",\"refusal\":");
        (void)buf_put_json(out, is_empty ? STR("") : buf_str(&part->text));
    } else {
        (void)buf_puts(out, "{\"type\":\"output_text\",\"annotations\":[");
        (void)buf_append_str(out, is_empty ? STR("") : buf_str(&part->annotations));
        (void)buf_puts(out, "],\"logprobs\":[");
        (void)buf_append_str(out, is_empty ? STR("") : buf_str(&part->logprobs));
        (void)buf_puts(out, "],\"text\":");
        (void)buf_put_json(out, is_empty ? STR("") : buf_str(&part->text));
    }
    (void)buf_putc(out, '}');
}

static void message_put(const struct voice_item *item, bool is_empty, struct buf *out)
{
    (void)buf_puts(out, ",\"type\":\"message\",\"role\":\"assistant\",\"content\":[");
    for (size_t i = 0; !is_empty && i < item->parts_count; i++) {
        (void)buf_puts(out, i > 0 ? "," : "");
        part_put(&item->parts[i], false, out);
    }
    (void)buf_putc(out, ']');
}

static void reasoning_put(const struct voice_item *item, bool is_empty, struct buf *out)
{
    (void)buf_puts(out, ",\"type\":\"reasoning\",\"summary\":[");
    if (!is_empty && item->text.len > 0) {
        (void)buf_puts(out, "{\"type\":\"summary_text\",\"text\":");
        (void)buf_put_json(out, buf_str(&item->text));
        (void)buf_putc(out, '}');
    }
    (void)buf_putc(out, ']');
    if (!is_empty && item->seal.len > 0) {
        (void)buf_puts(out, ",\"encrypted_content\":");
        (void)buf_put_json(out, buf_str(&item->seal));
    }
}

static void call_put(const struct voice_item *item, bool is_empty, struct buf *out)
{
    (void)buf_printf(out, ",\"type\":\"%s\",\"call_id\":",
                     item->is_custom ? "custom_tool_call" : "function_call");
    (void)buf_put_json(out, buf_str(&item->call_id));
    (void)buf_puts(out, ",\"name\":");
    (void)buf_put_json(out, buf_str(&item->name));
    (void)buf_puts(out, item->is_custom ? ",\"input\":" : ",\"arguments\":");
    (void)buf_put_json(out, is_empty ? STR("") : buf_str(&item->text));
}

/* `is_empty`: as it begins. */
static void item_put(const struct voice *v, size_t index, bool is_empty, struct buf *out)
{
    const struct voice_item *item = v->items[index];
    (void)buf_puts(out, "{\"id\":");
    item_id_put(v, index, out);
    (void)buf_printf(out, ",\"status\":\"%s\"", is_empty ? "in_progress" : "completed");
    if (item->kind == ITEM_MESSAGE) {
        message_put(item, is_empty, out);
    } else if (item->kind == ITEM_REASONING) {
        reasoning_put(item, is_empty, out);
    } else {
        call_put(item, is_empty, out);
    }
    (void)buf_putc(out, '}');
}

/* ---- events ---- */

static void event_begin(struct voice *v, const char *type, struct buf *out)
{
    (void)buf_printf(out, "event: %s\ndata: {\"type\":\"%s\",\"sequence_number\":%zu", type, type,
                     v->sequence++);
}

static void event_end(struct buf *out)
{
    (void)buf_puts(out, "}\n\n");
}

static void place_put(const struct voice *v, size_t index, struct buf *out)
{
    (void)buf_printf(out, ",\"output_index\":%zu,\"item_id\":", index);
    item_id_put(v, index, out);
}

static void item_event_put(struct voice *v, size_t index, bool is_added, struct buf *out)
{
    event_begin(v, is_added ? "response.output_item.added" : "response.output_item.done", out);
    (void)buf_printf(out, ",\"output_index\":%zu,\"item\":", index);
    item_put(v, index, is_added, out);
    event_end(out);
}

static void part_event_put(struct voice *v, size_t index, size_t part, bool is_added,
                           struct buf *out)
{
    event_begin(v, is_added ? "response.content_part.added" : "response.content_part.done", out);
    place_put(v, index, out);
    (void)buf_printf(out, ",\"content_index\":%zu,\"part\":", part);
    part_put(&v->items[index]->parts[part], is_added, out);
    event_end(out);
}

/* A delta, or the whole of what grew. */
static void text_event_put(struct voice *v, size_t index, const char *type, const char *place,
                           const char *member, struct str text, struct str more, struct buf *out)
{
    event_begin(v, type, out);
    place_put(v, index, out);
    (void)buf_puts(out, place);
    (void)buf_append_str(out, more);
    (void)buf_printf(out, ",\"%s\":", member);
    (void)buf_put_json(out, text);
    event_end(out);
}

/* ---- items ---- */

static struct voice_item *item_add(struct voice *v, enum item_kind kind, struct sg_error *err)
{
    if (v->count == ITEMS_MAX) {
        (void)error_set(err, SG_E_UNAVAILABLE, "The upstream's answer has more than %d parts",
                        ITEMS_MAX);
        return NULL;
    }
    if (v->count == v->room) {
        size_t room = v->room == 0 ? 8 : 2 * v->room;
        struct voice_item **more = arena_get(v->arena, room * sizeof *more);
        if (v->count > 0) {
            memcpy(more, v->items, v->count * sizeof *more);
        }
        v->items = more;
        v->room = room;
    }
    struct voice_item *item = arena_get(v->arena, sizeof *item);
    *item = (struct voice_item){.kind = kind};
    v->items[v->count++] = item;
    return item;
}

static void part_close(struct voice *v, size_t index, size_t part, struct buf *out)
{
    static const char place[] = ",\"content_index\":";
    const struct voice_part *one = &v->items[index]->parts[part];
    char where[48];
    snprintf(where, sizeof where, "%s%zu", place, part);
    text_event_put(v, index,
                   one->is_refusal ? "response.refusal.done" : "response.output_text.done", where,
                   one->is_refusal ? "refusal" : "text", buf_str(&one->text), (struct str){0}, out);
    part_event_put(v, index, part, false, out);
}

static void item_close(struct voice *v, size_t index, struct buf *out)
{
    struct voice_item *item = v->items[index];
    if (item->kind == ITEM_MESSAGE && item->parts_count > 0) {
        part_close(v, index, item->parts_count - 1, out);
    } else if (item->kind == ITEM_REASONING) {
        text_event_put(v, index, "response.reasoning_summary_text.done", ",\"summary_index\":0",
                       "text", buf_str(&item->text), (struct str){0}, out);
    } else if (item->kind == ITEM_CALL) {
        text_event_put(v, index,
                       item->is_custom ? "response.custom_tool_call_input.done"
                                       : "response.function_call_arguments.done",
                       "", item->is_custom ? "input" : "arguments", buf_str(&item->text),
                       (struct str){0}, out);
    }
    item_event_put(v, index, false, out);
}

static void open_close(struct voice *v, struct buf *out)
{
    if (v->as_stream && v->open > 0 && v->items[v->open - 1]->kind != ITEM_CALL) {
        item_close(v, v->open - 1, out);
    }
    v->open = 0;
}

/* The item that text of this kind goes on with. */
static struct voice_item *item_for(struct voice *v, enum item_kind kind, struct buf *out,
                                   struct sg_error *err)
{
    if (v->open > 0 && v->items[v->open - 1]->kind == kind) {
        return v->items[v->open - 1];
    }
    open_close(v, out);
    struct voice_item *item = item_add(v, kind, err);
    if (item != NULL) {
        v->open = v->count;
        if (v->as_stream) {
            item_event_put(v, v->count - 1, true, out);
        }
    }
    return item;
}

/* The part of a message: a refusal behind text, or the other way round, is a part of its own. */
static size_t part_for(struct voice *v, struct voice_item *item, bool is_refusal, struct buf *out)
{
    size_t index = v->open - 1;
    for (size_t i = 0; i < item->parts_count; i++) {
        if (item->parts[i].is_refusal == is_refusal) {
            return i;
        }
    }
    if (v->as_stream && item->parts_count > 0) {
        part_close(v, index, item->parts_count - 1, out);
    }
    item->parts[item->parts_count] =
        (struct voice_part){.is_refusal = is_refusal, .start = v->characters};
    if (v->as_stream) {
        part_event_put(v, index, item->parts_count, true, out);
    }
    return item->parts_count++;
}

static void logprobs_keep(struct voice_part *part, struct str logprobs)
{
    if (logprobs.len > 0) {
        (void)buf_puts(&part->logprobs,
                       part->logprobs.len > 0 ? "," : ""); /* bounded by the turn */
        (void)buf_append_str(&part->logprobs, logprobs);
    }
}

static int text_say(void *voice, const struct said *said, struct buf *out, struct sg_error *err)
{
    struct voice *v = voice;
    bool is_refusal = said->kind == SAID_REFUSAL;
    struct voice_item *item = item_for(v, ITEM_MESSAGE, out, err);
    if (item != NULL && item->parts_count == 2 && item->parts[1].is_refusal != is_refusal) {
        open_close(v, out); /* its part of this kind is closed */
        item = item_for(v, ITEM_MESSAGE, out, err);
    }
    if (item == NULL) {
        return err->code;
    }
    size_t index = part_for(v, item, is_refusal, out);
    struct voice_part *part = &item->parts[index];
    (void)buf_append_str(&part->text, said->text); /* bounded by the turn */
    logprobs_keep(part, said->logprobs);
    v->characters += is_refusal ? 0 : said_characters(said->text);
    if (v->as_stream) {
        BUF_CLEANUP struct buf more = {0};
        (void)buf_printf(&more, ",\"content_index\":%zu", index);
        if (!is_refusal) {
            (void)buf_puts(&more, ",\"logprobs\":[");
            (void)buf_append_str(&more, said->logprobs);
            (void)buf_putc(&more, ']');
        }
        text_event_put(v, v->open - 1,
                       is_refusal ? "response.refusal.delta" : "response.output_text.delta", "",
                       "delta", said->text, buf_str(&more), out);
    }
    return SG_OK;
}

static void annotation_put(const struct said *said, size_t start, struct buf *out)
{
    size_t from = said->start < start ? 0 : said->start - start,
           to = said->end < start ? 0 : said->end - start;
    (void)buf_printf(out, "{\"type\":\"url_citation\",\"start_index\":%zu,\"end_index\":%zu,", from,
                     to);
    (void)buf_puts(out, "\"title\":");
    (void)buf_put_json(out, said->title.len > 0 ? said->title : said->url);
    (void)buf_puts(out, ",\"url\":");
    (void)buf_put_json(out, said->url);
    (void)buf_putc(out, '}');
}

/* The part that a citation is at: the last text of the last message, unless that was closed in a stream. */
static struct voice_part *cited_part(const struct voice *v, size_t *ret_item, size_t *ret_part)
{
    size_t at = v->count;
    while (at > 0 && v->items[at - 1]->kind != ITEM_MESSAGE) {
        at--;
    }
    if (at == 0 || (v->as_stream && at != v->open)) {
        return NULL;
    }
    struct voice_item *item = v->items[at - 1];
    *ret_item = at - 1;
    *ret_part = item->parts_count - 1;
    return item->parts_count == 0 || item->parts[*ret_part].is_refusal ? NULL
                                                                       : &item->parts[*ret_part];
}

static int citation_say(void *voice, const struct said *said, struct buf *out, struct sg_error *err)
{
    struct voice *v = voice;
    size_t index, place;
    struct voice_part *part = cited_part(v, &index, &place);
    (void)err;
    if (part == NULL) {
        return SG_OK;
    }
    BUF_CLEANUP struct buf annotation = {0};
    annotation_put(said, part->start, &annotation);
    (void)buf_puts(&part->annotations, part->annotations_count > 0 ? "," : ""); /* bounded */
    (void)buf_append_str(&part->annotations, buf_str(&annotation));
    if (v->as_stream) {
        event_begin(v, "response.output_text.annotation.added", out);
        place_put(v, index, out);
        (void)buf_printf(out,
                         ",\"content_index\":%zu,\"annotation_index\":%zu,\"annotation\":", place,
                         part->annotations_count);
        (void)buf_append_str(out, buf_str(&annotation));
        event_end(out);
    }
    part->annotations_count++;
    return SG_OK;
}

static int reasoning_say(void *voice, const struct said *said, struct buf *out,
                         struct sg_error *err)
{
    struct voice *v = voice;
    struct voice_item *item = item_for(v, ITEM_REASONING, out, err);
    if (item == NULL) {
        return err->code;
    }
    if (said->kind == SAID_SEAL) {
        (void)buf_append_str(&item->seal, said->text); /* bounded by the turn, as is the next */
        return SG_OK;
    }
    (void)buf_append_str(&item->text, said->text);
    if (v->as_stream) {
        text_event_put(v, v->open - 1, "response.reasoning_summary_text.delta",
                       ",\"summary_index\":0", "delta", said->text, (struct str){0}, out);
    }
    return SG_OK;
}

/* Each call is an item of its own; all go on until the end. */
static int call_say(void *voice, const struct said *said, struct buf *out, struct sg_error *err)
{
    struct voice *v = voice;
    open_close(v, out);
    struct voice_item *item = item_add(v, ITEM_CALL, err);
    if (item == NULL) {
        return err->code;
    }
    item->call = said->call;
    item->is_custom = said->is_custom;
    (void)buf_append_str(&item->call_id, said->id); /* bounded by the turn, as is the next */
    (void)buf_append_str(&item->name, said->name);
    v->open = v->count;
    if (v->as_stream) {
        item_event_put(v, v->count - 1, true, out);
    }
    return SG_OK;
}

static int arguments_say(void *voice, const struct said *said, struct buf *out,
                         struct sg_error *err)
{
    struct voice *v = voice;
    (void)err;
    for (size_t i = v->count; i > 0; i--) {
        struct voice_item *item = v->items[i - 1];
        if (item->kind != ITEM_CALL || item->call != said->call) {
            continue;
        }
        (void)buf_append_str(&item->text, said->text); /* bounded by the turn */
        if (v->as_stream) {
            text_event_put(v, i - 1,
                           item->is_custom ? "response.custom_tool_call_input.delta"
                                           : "response.function_call_arguments.delta",
                           "", "delta", said->text, (struct str){0}, out);
        }
        return SG_OK;
    }
    return SG_OK;
}

/* ---- the answer ---- */

static void usage_put(const struct said_usage *usage, struct buf *out)
{
    if (usage->input < 0 && usage->output < 0) {
        (void)buf_puts(out, "null");
        return;
    }
    int64_t input = usage->input < 0 ? 0 : usage->input,
            output = usage->output < 0 ? 0 : usage->output;
    (void)buf_printf(out,
                     "{\"input_tokens\":%lld,\"input_tokens_details\":{\"cached_tokens\":%lld},"
                     "\"output_tokens\":%lld,\"output_tokens_details\":{\"reasoning_tokens\":%lld},"
                     "\"total_tokens\":%lld}",
                     (long long)input, (long long)(usage->cached < 0 ? 0 : usage->cached),
                     (long long)output, (long long)(usage->reasoning < 0 ? 0 : usage->reasoning),
                     (long long)(input + output));
}

/* said NULL: as it begins. */
static void response_put(const struct voice *v, const struct said *said, struct buf *out)
{
    const char *reason = said == NULL                 ? NULL
                         : said->stop == STOP_TOKENS  ? "max_output_tokens"
                         : said->stop == STOP_CONTEXT ? "max_output_tokens"
                         : said->stop == STOP_FILTER  ? "content_filter"
                                                      : NULL;
    (void)buf_printf(
        out, "{\"id\":\"resp_%.64s\",\"object\":\"response\",\"status\":\"%s\",\"model\":", v->id,
        said == NULL     ? "in_progress"
        : reason != NULL ? "incomplete"
                         : "completed");
    (void)buf_put_json(out, v->model);
    (void)buf_puts(out, ",\"error\":null,\"incomplete_details\":");
    if (reason == NULL) {
        (void)buf_puts(out, "null");
    } else {
        (void)buf_printf(out, "{\"reason\":\"%s\"}", reason);
    }
    (void)buf_puts(out, ",\"output\":[");
    for (size_t i = 0; said != NULL && i < v->count; i++) {
        (void)buf_puts(out, i > 0 ? "," : "");
        item_put(v, i, false, out);
    }
    (void)buf_puts(out, "],\"usage\":");
    if (said == NULL) {
        (void)buf_puts(out, "null");
    } else {
        usage_put(&said->usage, out);
    }
    (void)buf_putc(out, '}');
}

static void response_event_put(struct voice *v, const char *type, const struct said *said,
                               struct buf *out)
{
    event_begin(v, type, out);
    (void)buf_puts(out, ",\"response\":");
    response_put(v, said, out);
    event_end(out);
}

static void stream_end(struct voice *v, const struct said *said, struct buf *out)
{
    bool is_cut =
        said->stop == STOP_TOKENS || said->stop == STOP_CONTEXT || said->stop == STOP_FILTER;
    open_close(v, out);
    for (size_t i = 0; i < v->count; i++) {
        if (v->items[i]->kind == ITEM_CALL) {
            item_close(v, i, out);
        }
    }
    response_event_put(v, is_cut ? "response.incomplete" : "response.completed", said, out);
}

static int begin_say(void *voice, const struct said *said, struct buf *out, struct sg_error *err)
{
    struct voice *v = voice;
    (void)err;
    v->model = (struct str){check_alloc(arena_copy(v->arena, said->model)), said->model.len};
    if (v->as_stream) {
        response_event_put(v, "response.created", NULL, out);
    }
    return SG_OK;
}

static int end_say(void *voice, const struct said *said, struct buf *out, struct sg_error *err)
{
    struct voice *v = voice;
    (void)err;
    if (v->as_stream) {
        stream_end(v, said, out);
    } else {
        response_put(v, said, out);
    }
    return SG_OK;
}

static size_t voice_kept(const void *voice)
{
    const struct voice *v = voice;
    size_t kept = 0;
    for (size_t i = 0; i < v->count; i++) {
        const struct voice_item *item = v->items[i];
        kept += sizeof *item + item->text.len + item->seal.len;
        kept += item->call_id.len + item->name.len;
        for (size_t k = 0; k < item->parts_count; k++) {
            kept += item->parts[k].text.len + item->parts[k].logprobs.len +
                    item->parts[k].annotations.len;
        }
    }
    return kept;
}

const struct voice_ops voice_responses = {.open = voice_open,
                                          .say = {[SAID_BEGIN] = begin_say,
                                                  [SAID_TEXT] = text_say,
                                                  [SAID_REFUSAL] = text_say,
                                                  [SAID_CITATION] = citation_say,
                                                  [SAID_REASONING] = reasoning_say,
                                                  [SAID_SEAL] = reasoning_say,
                                                  [SAID_CALL] = call_say,
                                                  [SAID_ARGUMENTS] = arguments_say,
                                                  [SAID_END] = end_say},
                                          .kept = voice_kept,
                                          .close = voice_close};
