/* What was heard, as an answer of Chat Completions. The surface that reads it is lenient; what a client sees is its work. */
#include "translate/said.h"

#include "base/check.h"

#include <stdio.h>

enum { CALLS_MAX = 128 };

struct voice_call {
    bool is_custom;
    struct buf id, name, arguments;
};

struct voice {
    struct arena *arena;
    const char *id;
    bool as_stream, role_given;
    struct str model;
    struct buf text, refusal, reasoning, logprobs,
        annotations; /* of a whole answer, as are the calls' */
    struct voice_call *calls[CALLS_MAX];
    size_t calls_count;
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
    buf_clear(&v->text);
    buf_clear(&v->refusal);
    buf_clear(&v->reasoning);
    buf_clear(&v->logprobs);
    buf_clear(&v->annotations);
    for (size_t i = 0; i < v->calls_count; i++) {
        buf_clear(&v->calls[i]->id);
        buf_clear(&v->calls[i]->name);
        buf_clear(&v->calls[i]->arguments);
    }
}

/* ---- the frame; the owner asks for overflow ---- */

static void head_put(const struct voice *v, const char *object, struct buf *out)
{
    (void)buf_printf(out, "{\"id\":\"chatcmpl-%.64s\",\"object\":\"%s\",\"model\":", v->id, object);
    (void)buf_put_json(out, v->model);
}

static void chunk_begin(struct voice *v, struct buf *out)
{
    (void)buf_puts(out, "data: ");
    head_put(v, "chat.completion.chunk", out);
    (void)buf_puts(out, ",\"choices\":[{\"index\":0,\"delta\":{");
    if (!v->role_given) {
        (void)buf_puts(out, "\"role\":\"assistant\",");
        v->role_given = true;
    }
}

static void chunk_end(struct str logprobs, const char *reason, struct buf *out)
{
    (void)buf_puts(out, "}");
    if (logprobs.len > 0) {
        (void)buf_puts(out, ",\"logprobs\":{\"content\":[");
        (void)buf_append_str(out, logprobs);
        (void)buf_puts(out, "]}");
    }
    (void)buf_puts(out, ",\"finish_reason\":");
    (void)buf_printf(out, reason == NULL ? "%snull}]}\n\n" : "\"%s\"}]}\n\n",
                     reason == NULL ? "" : reason);
}

static void usage_put(const struct said_usage *usage, struct buf *out)
{
    int64_t input = usage->input < 0 ? 0 : usage->input,
            output = usage->output < 0 ? 0 : usage->output;
    (void)buf_printf(out,
                     "{\"prompt_tokens\":%lld,\"completion_tokens\":%lld,\"total_tokens\":%lld",
                     (long long)input, (long long)output, (long long)(input + output));
    if (usage->cached >= 0) {
        (void)buf_printf(out, ",\"prompt_tokens_details\":{\"cached_tokens\":%lld}",
                         (long long)usage->cached);
    }
    if (usage->reasoning >= 0) {
        (void)buf_printf(out, ",\"completion_tokens_details\":{\"reasoning_tokens\":%lld}",
                         (long long)usage->reasoning);
    }
    (void)buf_putc(out, '}');
}

static bool has_usage(const struct said_usage *usage)
{
    return usage->input >= 0 || usage->output >= 0;
}

/* ---- text and calls ---- */

static int text_say(void *voice, const struct said *said, struct buf *out, struct sg_error *err)
{
    struct voice *v = voice;
    (void)err;
    const char *name = said->kind == SAID_REASONING ? "reasoning_content"
                       : said->kind == SAID_REFUSAL ? "refusal"
                                                    : "content";
    struct buf *kept = said->kind == SAID_REASONING ? &v->reasoning
                       : said->kind == SAID_REFUSAL ? &v->refusal
                                                    : &v->text;
    if (v->as_stream) {
        chunk_begin(v, out);
        (void)buf_printf(out, "\"%s\":", name);
        (void)buf_put_json(out, said->text);
        chunk_end(said->logprobs, NULL, out);
        return SG_OK;
    }
    (void)buf_append_str(kept, said->text); /* bounded by the answer, as all that is kept */
    if (said->logprobs.len > 0) {
        (void)buf_puts(&v->logprobs, v->logprobs.len > 0 ? "," : "");
        (void)buf_append_str(&v->logprobs, said->logprobs);
    }
    return SG_OK;
}

static void annotation_put(const struct said *said, struct buf *out)
{
    (void)buf_printf(
        out, "{\"type\":\"url_citation\",\"url_citation\":{\"start_index\":%zu,\"end_index\":%zu,",
        said->start, said->end);
    (void)buf_puts(out, "\"title\":");
    (void)buf_put_json(out, said->title.len > 0 ? said->title : said->url);
    (void)buf_puts(out, ",\"url\":");
    (void)buf_put_json(out, said->url);
    (void)buf_puts(out, "}}");
}

static int citation_say(void *voice, const struct said *said, struct buf *out, struct sg_error *err)
{
    struct voice *v = voice;
    (void)err;
    if (v->as_stream) {
        chunk_begin(v, out);
        (void)buf_puts(out, "\"annotations\":[");
        annotation_put(said, out);
        (void)buf_putc(out, ']');
        chunk_end((struct str){0}, NULL, out);
    } else {
        (void)buf_puts(&v->annotations,
                       v->annotations.len > 0 ? "," : ""); /* bounded by the answer */
        annotation_put(said, &v->annotations);
    }
    return SG_OK;
}

static void call_begin_put(const struct said *said, struct buf *out)
{
    const char *kind = said->is_custom ? "custom" : "function";
    (void)buf_printf(out, "\"tool_calls\":[{\"index\":%zu,\"id\":", said->call);
    (void)buf_put_json(out, said->id);
    (void)buf_printf(out, ",\"type\":\"%s\",\"%s\":{\"name\":", kind, kind);
    (void)buf_put_json(out, said->name);
    (void)buf_printf(out, ",\"%s\":\"\"}}]", said->is_custom ? "input" : "arguments");
}

static int call_say(void *voice, const struct said *said, struct buf *out, struct sg_error *err)
{
    struct voice *v = voice;
    if (v->calls_count == CALLS_MAX) {
        return error_set(err, SG_E_UNAVAILABLE, "The upstream made more than %d calls", CALLS_MAX);
    }
    struct voice_call *call = arena_get(v->arena, sizeof *call);
    *call = (struct voice_call){.is_custom = said->is_custom};
    v->calls[v->calls_count++] = call;
    if (v->as_stream) {
        chunk_begin(v, out);
        call_begin_put(said, out);
        chunk_end((struct str){0}, NULL, out);
    } else {
        (void)buf_append_str(&call->id, said->id); /* bounded by the answer, as is the next */
        (void)buf_append_str(&call->name, said->name);
    }
    return SG_OK;
}

static int arguments_say(void *voice, const struct said *said, struct buf *out,
                         struct sg_error *err)
{
    struct voice *v = voice;
    (void)err;
    if (said->call >= v->calls_count) {
        return SG_OK;
    }
    struct voice_call *call = v->calls[said->call];
    if (!v->as_stream) {
        (void)buf_append_str(&call->arguments, said->text); /* bounded by the answer */
        return SG_OK;
    }
    chunk_begin(v, out);
    (void)buf_printf(out, "\"tool_calls\":[{\"index\":%zu,\"%s\":{\"%s\":", said->call,
                     call->is_custom ? "custom" : "function",
                     call->is_custom ? "input" : "arguments");
    (void)buf_put_json(out, said->text);
    (void)buf_puts(out, "}}]");
    chunk_end((struct str){0}, NULL, out);
    return SG_OK;
}

/* ---- the end ---- */

static const char *reason_of(const struct said *said)
{
    static const char *const reasons[] = {
        [STOP_END] = "stop",         [STOP_TOKENS] = "length",         [STOP_SEQUENCE] = "stop",
        [STOP_CALLS] = "tool_calls", [STOP_FILTER] = "content_filter", [STOP_CONTEXT] = "length"};
    return reasons[said->stop];
}

static void stream_end(struct voice *v, const struct said *said, struct buf *out)
{
    chunk_begin(v, out);
    if (out->data[out->len - 1] == ',') { /* behind the role */
        out->len--;
    }
    chunk_end((struct str){0}, reason_of(said), out);
    if (has_usage(&said->usage)) {
        (void)buf_puts(out, "data: ");
        head_put(v, "chat.completion.chunk", out);
        (void)buf_puts(out, ",\"choices\":[],\"usage\":");
        usage_put(&said->usage, out);
        (void)buf_puts(out, "}\n\n");
    }
    (void)buf_puts(out, "data: [DONE]\n\n");
}

static void calls_put(const struct voice *v, struct buf *out)
{
    (void)buf_puts(out, ",\"tool_calls\":[");
    for (size_t i = 0; i < v->calls_count; i++) {
        const struct voice_call *call = v->calls[i];
        const char *kind = call->is_custom ? "custom" : "function";
        (void)buf_puts(out, i > 0 ? ",{\"id\":" : "{\"id\":");
        (void)buf_put_json(out, buf_str(&call->id));
        (void)buf_printf(out, ",\"type\":\"%s\",\"%s\":{\"name\":", kind, kind);
        (void)buf_put_json(out, buf_str(&call->name));
        (void)buf_printf(out, ",\"%s\":", call->is_custom ? "input" : "arguments");
        (void)buf_put_json(out, buf_str(&call->arguments));
        (void)buf_puts(out, "}}");
    }
    (void)buf_putc(out, ']');
}

static void text_or_null(const char *name, const struct buf *text, struct buf *out)
{
    (void)buf_printf(out, ",\"%s\":", name);
    if (text->len > 0) {
        (void)buf_put_json(out, buf_str(text));
    } else {
        (void)buf_puts(out, "null");
    }
}

static void whole_end(const struct voice *v, const struct said *said, struct buf *out)
{
    head_put(v, "chat.completion", out);
    (void)buf_puts(out, ",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\"");
    text_or_null("content", &v->text, out);
    text_or_null("refusal", &v->refusal, out);
    if (v->reasoning.len > 0) {
        text_or_null("reasoning_content", &v->reasoning, out);
    }
    if (v->annotations.len > 0) {
        (void)buf_puts(out, ",\"annotations\":[");
        (void)buf_append_str(out, buf_str(&v->annotations));
        (void)buf_putc(out, ']');
    }
    if (v->calls_count > 0) {
        calls_put(v, out);
    }
    (void)buf_puts(out, "},\"logprobs\":");
    if (v->logprobs.len > 0) {
        (void)buf_puts(out, "{\"content\":[");
        (void)buf_append_str(out, buf_str(&v->logprobs));
        (void)buf_puts(out, "]}");
    } else {
        (void)buf_puts(out, "null");
    }
    (void)buf_printf(out, ",\"finish_reason\":\"%s\"}]", reason_of(said));
    if (has_usage(&said->usage)) {
        (void)buf_puts(out, ",\"usage\":");
        usage_put(&said->usage, out);
    }
    (void)buf_putc(out, '}');
}

static int begin_say(void *voice, const struct said *said, struct buf *out, struct sg_error *err)
{
    struct voice *v = voice;
    (void)out, (void)err;
    v->model = (struct str){check_alloc(arena_copy(v->arena, said->model)), said->model.len};
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
    size_t kept =
        v->text.len + v->refusal.len + v->reasoning.len + v->logprobs.len + v->annotations.len;
    for (size_t i = 0; i < v->calls_count; i++) {
        const struct voice_call *call = v->calls[i];
        kept += sizeof *call + call->id.len + call->name.len + call->arguments.len;
    }
    return kept;
}

const struct voice_ops voice_chat = {.open = voice_open,
                                     .say = {[SAID_BEGIN] = begin_say,
                                             [SAID_TEXT] = text_say,
                                             [SAID_REFUSAL] = text_say,
                                             [SAID_REASONING] = text_say,
                                             [SAID_CITATION] = citation_say,
                                             [SAID_CALL] = call_say,
                                             [SAID_ARGUMENTS] = arguments_say,
                                             [SAID_END] = end_say},
                                     .kept = voice_kept,
                                     .close = voice_close};
