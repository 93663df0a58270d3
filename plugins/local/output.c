/* What one run has produced, on its way to the core. */
#include "output.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PENDING_MAX 32768 /* handed on at the latest then */
#define VALUE_COST 64     /* of one value beside its bytes, so that many empty ones end too */

void output_init(struct output *output, const struct sg_sink *sink, uint64_t shown_max,
                 uint64_t results_max)
{
    static const size_t exception_max[EXCEPTION_FIELDS] = {256, 16384, 65536};
    *output = (struct output){.sink = sink, .shown_max = shown_max, .results_max = results_max};
    output->value.max = results_max + 4096;
    for (int i = 0; i < EXCEPTION_FIELDS; i++) {
        output->exception[i].max = exception_max[i];
    }
}

void output_clear(struct output *output)
{
    text_clear(&output->pending);
    text_clear(&output->value);
    text_clear(&output->scratch);
    for (int i = 0; i < EXCEPTION_FIELDS; i++) {
        text_clear(&output->exception[i]);
    }
}

static int give(struct output *output, enum sg_out kind, const struct text *text,
                struct sg_error *err)
{
    return output->sink->event(output->sink->ctx, kind, text->data, text->len, err);
}

/* ---- text ---- */

int output_flush(struct output *output, struct sg_error *err)
{
    if (output->pending.len == 0) {
        return 0;
    }
    int result = give(output, output->pending_kind, &output->pending, err);
    text_reset(&output->pending);
    return result;
}

static int pending_start(struct output *output, enum sg_out kind, int64_t now_ms,
                         struct sg_error *err)
{
    int result = output->pending_kind != kind ? output_flush(output, err) : 0;
    if (output->pending.len == 0) {
        output->pending_kind = kind;
        output->pending_since_ms = now_ms;
    }
    return result;
}

/* Text that is UTF-8 already, as far as there is room. */
static int pending_add(struct output *output, enum sg_out kind, const struct text *text,
                       int64_t now_ms, struct sg_error *err)
{
    size_t room = (size_t)(output->shown_max - output->shown);
    size_t len = text_fitting(text->data, text->len, room);
    output->total += text->len;
    if (len < text->len) {
        output->shown = output->shown_max; /* nothing after the cut, however short */
    } else {
        output->shown += len;
    }
    int result = len > 0 ? pending_start(output, kind, now_ms, err) : 0;
    if (result == 0 && len > 0) {
        text_append(&output->pending, text->data, len);
        result = output->pending.len >= PENDING_MAX ? output_flush(output, err) : 0;
    }
    return result;
}

static enum sg_out kind_of(enum output_source source)
{
    bool is_out = source == SOURCE_CONTROL_OUT || source == SOURCE_PIPE_OUT;
    return is_out ? SG_OUT_LOG_OUT : SG_OUT_LOG_ERR;
}

int output_bytes(struct output *output, enum output_source source, const char *data, size_t len,
                 int64_t now_ms, struct sg_error *err)
{
    text_reset(&output->scratch);
    decoder_feed(&output->decoders[source], data, len, &output->scratch);
    return pending_add(output, kind_of(source), &output->scratch, now_ms, err);
}

/* ---- shown values ---- */

static bool is_base64_form(const char *mime, size_t len)
{
    static const char *const binary[] = {"image/png", "image/jpeg", "image/gif", "image/webp",
                                         "application/pdf"};
    for (size_t i = 0; i < sizeof binary / sizeof binary[0]; i++) {
        if (strlen(binary[i]) == len && memcmp(binary[i], mime, len) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_base64(const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = data[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && c != '+' && c != '/' && c != '=') {
            return false;
        }
    }
    return true;
}

static bool form_is_new(struct output *output, const struct frame *frame)
{
    for (size_t i = 0; i < output->forms_count; i++) {
        if (strlen(output->forms[i]) == frame->mime_len &&
            memcmp(output->forms[i], frame->mime, frame->mime_len) == 0) {
            return false;
        }
    }
    if (output->forms_count == OUTPUT_FORMS_MAX) {
        return false;
    }
    char *name = output->forms[output->forms_count++];
    memcpy(name, frame->mime, frame->mime_len);
    name[frame->mime_len] = '\0';
    return true;
}

static void form_begin(struct output *output, const struct frame *frame)
{
    output->in_form = true;
    output->form_start = output->value.len;
    output->form_decoder = (struct decoder){0};
    output->skip_form = !form_is_new(output, frame);
    if (!output->skip_form) {
        text_puts(&output->value, output->value.len == 0 ? "{\"" : ",\"");
        text_append(&output->value, frame->mime, frame->mime_len);
        text_puts(&output->value, "\":\"");
    }
}

/* As if it had never begun. */
static void form_drop(struct output *output)
{
    if (!output->skip_form) {
        output->value.len = output->form_start;
        output->value.cut = false;
        output->skip_form = true;
        output->left_out++;
    }
}

static void form_add(struct output *output, const struct frame *frame)
{
    if (!output->in_form) {
        form_begin(output, frame);
    }
    if (!output->skip_form) {
        text_reset(&output->scratch);
        decoder_feed(&output->form_decoder, frame->body, frame->body_len, &output->scratch);
        if (!frame->more) {
            decoder_end(&output->form_decoder, &output->scratch);
        }
        text_put_json(&output->value, output->scratch.data, output->scratch.len);
    }
    bool is_wrong =
        is_base64_form(frame->mime, frame->mime_len) && !is_base64(frame->body, frame->body_len);
    if (is_wrong || output->value.cut ||
        output->results_bytes + output->value.len > output->results_max) {
        form_drop(output);
    }
    if (!frame->more) {
        output->in_form = false;
        if (!output->skip_form) {
            text_puts(&output->value, "\"");
        }
    }
}

static int value_end(struct output *output, struct sg_error *err)
{
    int result = 0;
    if (output->in_form) {
        form_drop(output); /* its end never came */
    }
    output->results_bytes += output->value.len + VALUE_COST;
    if (output->value.len > 0) {
        text_puts(&output->value, "}");
        result = output_flush(output, err);
        if (result == 0 && !output->value.cut) {
            result = give(output, SG_OUT_RESULT, &output->value, err);
        }
    }
    text_reset(&output->value);
    output->in_form = false;
    output->forms_count = 0;
    return result;
}

/* ---- the exception ---- */

static int exception_give(struct output *output, struct sg_error *err)
{
    static const char *const keys[EXCEPTION_FIELDS] = {"{\"name\":\"", "\",\"value\":\"",
                                                       "\",\"traceback\":\""};
    if (output->exception_given || output->exception[EXCEPTION_NAME].len == 0) {
        return 0;
    }
    output->exception_given = true;
    text_reset(&output->scratch);
    for (int i = 0; i < EXCEPTION_FIELDS; i++) {
        text_puts(&output->scratch, keys[i]);
        text_put_json(&output->scratch, output->exception[i].data, output->exception[i].len);
    }
    text_puts(&output->scratch, "\"}");
    int result = output_flush(output, err);
    return result != 0 ? result : give(output, SG_OUT_EXCEPTION, &output->scratch, err);
}

int output_frame(struct output *output, const struct frame *frame, int64_t now_ms,
                 struct sg_error *err)
{
    switch (frame->kind) {
    case FRAME_STDOUT:
        return output_bytes(output, SOURCE_CONTROL_OUT, frame->body, frame->body_len, now_ms, err);
    case FRAME_STDERR:
        return output_bytes(output, SOURCE_CONTROL_ERR, frame->body, frame->body_len, now_ms, err);
    case FRAME_FORM:
        form_add(output, frame);
        return 0;
    case FRAME_VALUE:
        return value_end(output, err);
    case FRAME_EXCEPTION:
        if (!output->exception_given) {
            text_append(&output->exception[frame->number], frame->body, frame->body_len);
        }
        return 0;
    case FRAME_FINISHED:
        return exception_give(output, err);
    default:
        return 0;
    }
}

/* ---- the end ---- */

static int cut_notice(struct output *output, struct sg_error *err)
{
    char line[160];
    text_reset(&output->scratch);
    if (output->total > output->shown_max) {
        snprintf(line, sizeof line,
                 "\n[output cut: the first %" PRIu64 " of %" PRIu64 " bytes are shown]\n",
                 output->shown_max, output->total);
        text_puts(&output->scratch, line);
    }
    if (output->left_out > 0) {
        snprintf(line, sizeof line,
                 "\n[%u shown values left out: more than %" PRIu64
                 " bytes in all, or not what their type says]\n",
                 output->left_out, output->results_max);
        text_puts(&output->scratch, line);
    }
    return output->scratch.len == 0 ? 0 : give(output, SG_OUT_LOG_ERR, &output->scratch, err);
}

int output_end(struct output *output, struct sg_error *err)
{
    int result = 0;
    for (int source = 0; source < SOURCE_COUNT && result == 0; source++) {
        text_reset(&output->scratch);
        decoder_end(&output->decoders[source], &output->scratch);
        result = pending_add(output, kind_of((enum output_source)source), &output->scratch, 0, err);
    }
    result = result != 0 ? result : output_flush(output, err);
    result = result != 0 ? result : exception_give(output, err);
    return result != 0 ? result : cut_notice(output, err);
}
