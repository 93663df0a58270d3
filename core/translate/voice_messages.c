/* What was heard, as an answer of the Messages API. The surface that reads it is lenient; what a client sees is its work. */
#include "translate/said.h"

#include "base/check.h"

#include <stdio.h>

enum { BLOCKS_MAX = 4096 };

struct voice_block {
    enum said_kind kind; /* SAID_TEXT, SAID_REASONING or SAID_CALL */
    size_t call;
    struct buf text, seal, id, name, citations; /* of a whole answer */
};

struct voice {
    struct arena *arena;
    const char *id;
    bool as_stream;
    struct str model;
    struct voice_block *blocks;
    size_t count, room;
    size_t
        open; /* the block that is open in a stream, from 1 on; 0: none. Calls are not closed before the end */
    bool refused;
};

static void *voice_open(struct arena *arena, const char *id, bool as_stream)
{
    struct voice *v = arena_get(arena, sizeof *v);
    *v = (struct voice){.arena = arena, .id = id, .as_stream = as_stream, .model = STR("")};
    return v;
}

static void voice_close(void *voice)
{
    struct voice *v = voice;
    for (size_t i = 0; v != NULL && i < v->count; i++) {
        buf_clear(&v->blocks[i].text);
        buf_clear(&v->blocks[i].seal);
        buf_clear(&v->blocks[i].id);
        buf_clear(&v->blocks[i].name);
        buf_clear(&v->blocks[i].citations);
    }
}

/* ---- events ---- */

static void event_begin(struct buf *out, const char *type)
{
    (void)buf_printf(out, "event: %s\ndata: {\"type\":\"%s\"", type, type); /* the owner asks */
}

static void event_end(struct buf *out)
{
    (void)buf_puts(out, "}\n\n");
}

static void id_put(struct buf *out, struct str id)
{
    (void)buf_puts(out, "\"toolu_");
    (void)buf_put_json_inner(out, id);
    (void)buf_putc(out, '"');
}

static void usage_put(struct buf *out, const struct said_usage *usage)
{
    static const char *const names[] = {"input_tokens", "output_tokens", "cache_read_input_tokens",
                                        "cache_creation_input_tokens"};
    int64_t cached = usage->cached > 0 && usage->cached <= usage->input ? usage->cached : 0;
    const int64_t counts[] = {usage->input < 0 ? -1 : usage->input - cached, usage->output,
                              usage->cached, usage->cache_written};
    const char *comma = "";
    (void)buf_putc(out, '{');
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (counts[i] >= 0) {
            (void)buf_printf(out, "%s\"%s\":%lld", comma, names[i], (long long)counts[i]);
            comma = ",";
        }
    }
    (void)buf_putc(out, '}');
}

static void start_put(const struct voice *v, struct buf *out)
{
    event_begin(out, "message_start");
    (void)buf_printf(
        out,
        ",\"message\":{\"id\":\"msg_%.64s\",\"type\":\"message\",\"role\":\"assistant\",\"model\":",
        v->id);
    (void)buf_put_json(out, v->model);
    (void)buf_puts(out, ",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,"
                        "\"usage\":{\"input_tokens\":0,\"output_tokens\":0}}");
    event_end(out);
}

static void block_start_put(const struct said *said, size_t index, struct buf *out)
{
    event_begin(out, "content_block_start");
    (void)buf_printf(out, ",\"index\":%zu,\"content_block\":", index);
    if (said->kind == SAID_CALL) {
        (void)buf_puts(out, "{\"type\":\"tool_use\",\"id\":");
        id_put(out, said->id);
        (void)buf_puts(out, ",\"name\":");
        (void)buf_put_json(out, said->name);
        (void)buf_puts(out, ",\"input\":{}}");
    } else if (said->kind == SAID_REASONING) {
        (void)buf_puts(out, "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}");
    } else {
        /* Clients add to the list what is cited, which shows only later. */
        (void)buf_puts(out, "{\"type\":\"text\",\"text\":\"\",\"citations\":[]}");
    }
    event_end(out);
}

static void delta_put(size_t index, const char *type, const char *member, struct str text,
                      struct buf *out)
{
    event_begin(out, "content_block_delta");
    (void)buf_printf(out, ",\"index\":%zu,\"delta\":{\"type\":\"%s\",\"%s\":", index, type, member);
    (void)buf_put_json(out, text);
    (void)buf_putc(out, '}');
    event_end(out);
}

static void stop_put(size_t index, struct buf *out)
{
    event_begin(out, "content_block_stop");
    (void)buf_printf(out, ",\"index\":%zu", index);
    event_end(out);
}

/* ---- blocks ---- */

static struct voice_block *block_add(struct voice *v, enum said_kind kind, size_t call)
{
    if (v->count == v->room) {
        size_t room = v->room == 0 ? 8 : 2 * v->room;
        struct voice_block *more = arena_get(v->arena, room * sizeof *more);
        if (v->count > 0) {
            memcpy(more, v->blocks, v->count * sizeof *more);
        }
        v->blocks = more;
        v->room = room;
    }
    struct voice_block *block = &v->blocks[v->count++];
    *block = (struct voice_block){.kind = kind, .call = call};
    return block;
}

static void open_close(struct voice *v, struct buf *out)
{
    if (v->as_stream && v->open > 0 && v->blocks[v->open - 1].kind != SAID_CALL) {
        stop_put(v->open - 1, out);
    }
    v->open = 0;
}

static int block_begin(void *voice, const struct said *said, struct buf *out, struct sg_error *err)
{
    struct voice *v = voice;
    if (v->count == BLOCKS_MAX) {
        return error_set(err, SG_E_UNAVAILABLE, "The upstream's answer has more than %d parts",
                         BLOCKS_MAX);
    }
    open_close(v, out);
    enum said_kind kind = said->kind == SAID_REFUSAL ? SAID_TEXT
                          : said->kind == SAID_SEAL  ? SAID_REASONING
                                                     : said->kind;
    struct voice_block *block = block_add(v, kind, said->call);
    v->open = v->count;
    if (v->as_stream) {
        struct said start = *said;
        start.kind = kind;
        block_start_put(&start, v->count - 1, out);
    } else if (kind == SAID_CALL) {
        (void)buf_append_str(&block->id, said->id); /* bounded by the answer, as all that is kept */
        (void)buf_append_str(&block->name, said->name);
    }
    return SG_OK;
}

/* The block that text of this kind goes on with. */
static int text_block(struct voice *v, const struct said *said, enum said_kind kind,
                      struct buf *out, struct sg_error *err)
{
    bool goes_on = v->open > 0 && v->blocks[v->open - 1].kind == kind;
    return goes_on ? SG_OK : block_begin(v, said, out, err);
}

static int text_say(void *voice, const struct said *said, struct buf *out, struct sg_error *err)
{
    struct voice *v = voice;
    bool is_seal = said->kind == SAID_SEAL;
    bool is_reasoning = is_seal || said->kind == SAID_REASONING;
    int code = text_block(v, said, is_reasoning ? SAID_REASONING : SAID_TEXT, out, err);
    if (code != SG_OK) {
        return code;
    }
    v->refused = v->refused || said->kind == SAID_REFUSAL;
    if (!v->as_stream) {
        struct voice_block *block = &v->blocks[v->open - 1];
        (void)buf_append_str(is_seal ? &block->seal : &block->text, said->text);
    } else if (is_seal) {
        delta_put(v->open - 1, "signature_delta", "signature", said->text, out);
    } else {
        delta_put(v->open - 1, is_reasoning ? "thinking_delta" : "text_delta",
                  is_reasoning ? "thinking" : "text", said->text, out);
    }
    return SG_OK;
}

/* What was cited of the page is not known; the empty index is one that this gateway takes back. */
static void citation_put(const struct said *said, struct buf *out)
{
    (void)buf_puts(out, "{\"type\":\"web_search_result_location\",\"url\":");
    (void)buf_put_json(out, said->url);
    (void)buf_puts(out, ",\"title\":");
    (void)buf_put_json(out, said->title);
    (void)buf_puts(out, ",\"cited_text\":\"\",\"encrypted_index\":\"\"}");
}

/* At the last text, unless that was closed in a stream: calls stand behind it. */
static int citation_say(void *voice, const struct said *said, struct buf *out, struct sg_error *err)
{
    struct voice *v = voice;
    size_t at = v->count;
    (void)err;
    while (at > 0 && v->blocks[at - 1].kind != SAID_TEXT) {
        at--;
    }
    if (at == 0 || (v->as_stream && at != v->open)) {
        return SG_OK;
    }
    if (v->as_stream) {
        event_begin(out, "content_block_delta");
        (void)buf_printf(
            out, ",\"index\":%zu,\"delta\":{\"type\":\"citations_delta\",\"citation\":", at - 1);
        citation_put(said, out);
        (void)buf_putc(out, '}');
        event_end(out);
    } else {
        struct buf *citations = &v->blocks[at - 1].citations;
        (void)buf_puts(citations, citations->len > 0 ? "," : ""); /* bounded by the answer */
        citation_put(said, citations);
    }
    return SG_OK;
}

static int arguments_say(void *voice, const struct said *said, struct buf *out,
                         struct sg_error *err)
{
    struct voice *v = voice;
    (void)err;
    for (size_t i = v->count; i > 0; i--) {
        struct voice_block *block = &v->blocks[i - 1];
        if (block->kind == SAID_CALL && block->call == said->call) {
            if (v->as_stream) {
                delta_put(i - 1, "input_json_delta", "partial_json", said->text, out);
            } else {
                (void)buf_append_str(&block->text, said->text);
            }
            return SG_OK;
        }
    }
    return SG_OK;
}

/* ---- the end ---- */

static void block_put(const struct voice_block *block, struct buf *out)
{
    if (block->kind == SAID_CALL) {
        (void)buf_puts(out, "{\"type\":\"tool_use\",\"id\":");
        id_put(out, buf_str(&block->id));
        (void)buf_puts(out, ",\"name\":");
        (void)buf_put_json(out, buf_str(&block->name));
        (void)buf_puts(out, ",\"input\":");
        (void)buf_put_json(out,
                           buf_str(&block->text)); /* it may be no object: the reader's to judge */
    } else if (block->kind == SAID_REASONING) {
        (void)buf_puts(out, "{\"type\":\"thinking\",\"thinking\":");
        (void)buf_put_json(out, buf_str(&block->text));
        (void)buf_puts(out, ",\"signature\":");
        (void)buf_put_json(out, buf_str(&block->seal));
    } else {
        (void)buf_puts(out, "{\"type\":\"text\",\"text\":");
        (void)buf_put_json(out, buf_str(&block->text));
        if (block->citations.len > 0) {
            (void)buf_puts(out, ",\"citations\":[");
            (void)buf_append_str(out, buf_str(&block->citations));
            (void)buf_putc(out, ']');
        }
    }
    (void)buf_putc(out, '}');
}

static const char *stop_reason(const struct voice *v, const struct said *said)
{
    static const char *const reasons[] = {
        [STOP_END] = "end_turn",           [STOP_TOKENS] = "max_tokens",
        [STOP_SEQUENCE] = "stop_sequence", [STOP_CALLS] = "tool_use",
        [STOP_FILTER] = "refusal",         [STOP_CONTEXT] = "model_context_window_exceeded"};
    return v->refused && said->stop == STOP_END ? "refusal" : reasons[said->stop];
}

static void stop_members_put(const struct voice *v, const struct said *said, struct buf *out)
{
    (void)buf_printf(out, "\"stop_reason\":\"%s\",\"stop_sequence\":", stop_reason(v, said));
    if (said->stop == STOP_SEQUENCE && said->stop_sequence.len > 0) {
        (void)buf_put_json(out, said->stop_sequence);
    } else {
        (void)buf_puts(out, "null");
    }
}

static void stream_end(struct voice *v, const struct said *said, struct buf *out)
{
    open_close(v, out);
    for (size_t i = 0; i < v->count; i++) {
        if (v->blocks[i].kind == SAID_CALL) {
            stop_put(i, out);
        }
    }
    event_begin(out, "message_delta");
    (void)buf_puts(out, ",\"delta\":{");
    stop_members_put(v, said, out);
    (void)buf_puts(out, "},\"usage\":");
    usage_put(out, &said->usage);
    event_end(out);
    event_begin(out, "message_stop");
    event_end(out);
}

static void whole_end(const struct voice *v, const struct said *said, struct buf *out)
{
    (void)buf_printf(
        out, "{\"id\":\"msg_%.64s\",\"type\":\"message\",\"role\":\"assistant\",\"model\":", v->id);
    (void)buf_put_json(out, v->model);
    (void)buf_puts(out, ",\"content\":[");
    for (size_t i = 0; i < v->count; i++) {
        (void)buf_puts(out, i > 0 ? "," : "");
        block_put(&v->blocks[i], out);
    }
    (void)buf_puts(out, "],");
    stop_members_put(v, said, out);
    (void)buf_puts(out, ",\"usage\":");
    usage_put(out, &said->usage);
    (void)buf_putc(out, '}');
}

static int begin_say(void *voice, const struct said *said, struct buf *out, struct sg_error *err)
{
    struct voice *v = voice;
    (void)err;
    v->model = (struct str){check_alloc(arena_copy(v->arena, said->model)), said->model.len};
    if (v->as_stream) {
        start_put(v, out);
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
        whole_end(v, said, out);
    }
    return SG_OK;
}

static size_t voice_kept(const void *voice)
{
    const struct voice *v = voice;
    size_t kept = 0;
    for (size_t i = 0; i < v->count; i++) {
        const struct voice_block *block = &v->blocks[i];
        kept += sizeof *block + block->text.len + block->seal.len + block->id.len +
                block->name.len + block->citations.len;
    }
    return kept;
}

const struct voice_ops voice_messages = {.open = voice_open,
                                         .say = {[SAID_BEGIN] = begin_say,
                                                 [SAID_TEXT] = text_say,
                                                 [SAID_REFUSAL] = text_say,
                                                 [SAID_REASONING] = text_say,
                                                 [SAID_SEAL] = text_say,
                                                 [SAID_CITATION] = citation_say,
                                                 [SAID_CALL] = block_begin,
                                                 [SAID_ARGUMENTS] = arguments_say,
                                                 [SAID_END] = end_say},
                                         .kept = voice_kept,
                                         .close = voice_close};
