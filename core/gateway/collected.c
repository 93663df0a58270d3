/* Taking what a tool emits. */
#include "gateway/collected.h"

#include "base/limits.h"

#include <stdint.h>
#include <string.h>

enum { OUTPUTS_MAX = 4096, STATUS_BYTES_MAX = 4096 };

static bool is_log(enum sg_out kind)
{
    return kind == SG_OUT_LOG_OUT || kind == SG_OUT_LOG_ERR;
}

/* What is printed piece by piece is one log: the last one grows. */
static bool goes_on(struct collected *c, const struct call_output *output)
{
    struct surface_output *last = c->count == 0 ? NULL : &c->outputs[c->count - 1];
    if (last == NULL || last->kind != output->kind || !is_log(output->kind)) {
        return false;
    }
    size_t len = last->data.len + output->data.len;
    char *text = (char *)last->data.data; /* the arena's, and ours */
    if (len > c->last_room) {
        c->last_room = 2 * len;
        text = arena_get(c->arena, c->last_room);
        memcpy(text, last->data.data, last->data.len);
    }
    memcpy(text + last->data.len, output->data.data, output->data.len);
    last->data = (struct str){text, len};
    c->bytes += output->data.len;
    return true;
}

static void take_output(struct collected *c, const struct call_output *output)
{
    if (c->bytes + output->data.len > LIMIT_TOOL_OUTPUT_BYTES) {
        return; /* the model's text says what was cut; this is the client's view of it */
    }
    struct sg_error ignored;
    if (account_take(c->account, output->data.len, &ignored) != 0) {
        return; /* likewise */
    }
    if (output->data.len == 0 || goes_on(c, output) || c->count == OUTPUTS_MAX) {
        return;
    }
    if (c->count == c->cap) {
        size_t cap = c->cap == 0 ? 8 : 2 * c->cap;
        struct surface_output *more = arena_get(c->arena, cap * sizeof *more);
        if (c->count > 0) {
            memcpy(more, c->outputs, c->count * sizeof *more);
        }
        c->outputs = more;
        c->cap = cap;
    }
    c->bytes += output->data.len;
    c->last_room = output->data.len;
    c->outputs[c->count++] = (struct surface_output){
        output->kind, {arena_copy(c->arena, output->data), output->data.len}};
}

static enum surface_reason reason_of(struct str name)
{
    static const struct {
        const char *name;
        enum surface_reason reason;
    } reasons[] = {
        {"invalid", SURFACE_REASON_INVALID},     {"timeout", SURFACE_REASON_TIMEOUT},
        {"limit", SURFACE_REASON_LIMIT},         {"unavailable", SURFACE_REASON_UNAVAILABLE},
        {"not_found", SURFACE_REASON_NOT_FOUND}, {"too_long", SURFACE_REASON_TOO_LONG},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        if (str_is(name, reasons[i].name)) {
            return reasons[i].reason;
        }
    }
    return SURFACE_REASON_NONE;
}

/* Of one that says how the call ended: the last such status holds. */
static void note_end(struct collected *c, const struct json_text *status, struct arena *scratch)
{
    struct str state = json_find_text(status->members, status->count, "state", scratch);
    bool is_invalid = str_is(state, "invalid"), is_failed = str_is(state, "failed");
    if (!is_invalid && !is_failed && !str_is(state, "completed")) {
        return;
    }
    c->failed = is_invalid || is_failed;
    c->reason = SURFACE_REASON_NONE;
    if (c->failed) {
        c->reason = reason_of(json_find_text(status->members, status->count, "reason", scratch));
    }
    if (is_invalid && c->reason == SURFACE_REASON_NONE) {
        c->reason = SURFACE_REASON_INVALID;
    }
    const struct json_member *code =
        json_find_type(status->members, status->count, "code", JSON_NUMBER);
    int64_t number = 0;
    c->has_code = code != NULL && json_int_of(code->value, &number) && number >= INT32_MIN &&
                  number <= INT32_MAX;
    c->return_code = c->has_code ? (int)number : 0;
}

static void take_status(struct collected *c, struct str text)
{
    if (text.len > STATUS_BYTES_MAX) {
        return;
    }
    struct arena *scratch = arena_new(0);
    struct json_text status;
    struct sg_error ignored = {0};
    if (json_scan(text, scratch, &status, &ignored) == 0) {
        note_end(c, &status, scratch);
    }
    arena_free(scratch);
}

void collected_take(struct collected *c, const struct call_output *output)
{
    c->emitted += output->data.len + (is_log(output->kind) ? 1 : sizeof *output);
    switch (output->kind) {
    case SG_OUT_MODEL:
        (void)buf_append_str(&c->model, output->data); /* bounded; the interceptor caps its text */
        break;
    case SG_OUT_STATUS:
        take_status(c, output->data);
        break;
    case SG_OUT_EXCEPTION:
        c->has_raised = true;
        take_output(c, output);
        break;
    case SG_OUT_LOG_OUT:
    case SG_OUT_LOG_ERR:
    case SG_OUT_RESULT:
    case SG_OUT_FILE:
    case SG_OUT_HIT:
        take_output(c, output);
        break;
    default:
        break;
    }
}

void collected_fail(struct collected *c, enum surface_reason reason)
{
    c->failed = true;
    c->reason = reason;
}

void collected_result(const struct collected *c, struct surface_result *ret)
{
    ret->status = c->failed ? SURFACE_CALL_FAILED : SURFACE_CALL_COMPLETED;
    ret->reason = c->reason;
    ret->return_code = c->has_code ? c->return_code : c->has_raised;
    ret->outputs = c->outputs;
    ret->outputs_count = c->count;
}
