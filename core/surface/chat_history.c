/* What a turn leaves behind: the results of its calls, what ran, and its messages for the turns that follow. */
#include "surface/chat.h"
#include "surface/results.h"

#include "base/check.h"
#include "base/digest.h"
#include "base/limits.h"
#include "base/utf8.h"

/* ---- results ---- */

static const char *mark_of(struct str hosted)
{
    return str_is(hosted, "code_interpreter") ? "ci_sg"
           : str_is(hosted, "web_search")     ? "ws_sg"
                                              : "run_sg";
}

static void output_put(const struct surface_output *output, struct buf *out)
{
    static const char *const result[] = {"text/plain", NULL};
    static const char *const hit[] = {"title", "url", "snippet", NULL};
    static const char *const exception[] = {"traceback", NULL};
    switch (output->kind) {
    case SG_OUT_LOG_OUT:
    case SG_OUT_LOG_ERR:
        (void)buf_append_str(out, output->data); /* cut below */
        break;
    case SG_OUT_RESULT:
        (void)result_members_put(output->data, result, out);
        break;
    case SG_OUT_HIT:
        (void)result_members_put(output->data, hit, out);
        break;
    case SG_OUT_EXCEPTION:
        (void)result_members_put(output->data, exception, out);
        break;
    default:
        break;
    }
}

/* The entry of `executed_tools`, behind its index. */
static void run_write(const struct chat *chat, const struct chat_turn *turn, size_t i,
                      const struct surface_result *result, struct buf *out)
{
    const struct surface_offer *offer = &chat->request.set.offers[turn->ours[i].offer];
    char random[RANDOM_ID_BYTES];
    random_id(random);
    buf_reset(out);
    struct str type = offer->hosted.len > 0 ? offer->hosted : offer->name;
    (void)buf_puts(out, ",\"type\":"); /* bounded by the shown output */
    (void)buf_put_json(out, type);
    (void)buf_printf(out, ",\"id\":\"%s%s\",\"container_id\":", mark_of(offer->hosted), random);
    if (result->container_id.len > 0) {
        (void)buf_put_json(out, result->container_id);
    } else {
        (void)buf_puts(out, "null");
    }
    (void)buf_puts(out, ",\"arguments\":");
    (void)buf_put_json(out, turn->ours[i].arguments);
    BUF_CLEANUP struct buf shown = {0};
    for (size_t k = 0; k < result->outputs_count && shown.len < LIMIT_TOOL_SHOWN_BYTES; k++) {
        output_put(&result->outputs[k], &shown);
    }
    (void)buf_puts(out, ",\"output\":");
    (void)buf_put_json(out,
                       (struct str){shown.data, utf8_cut(buf_str(&shown), LIMIT_TOOL_SHOWN_BYTES)});
    (void)buf_putc(out, '}');
}

void chat_call_end(struct surface_exchange *exchange, size_t i, const struct surface_result *result,
                   struct buf *out)
{
    (void)out; /* runs show in the answer's end only */
    struct chat *chat = chat_of(exchange);
    struct chat_turn *turn = chat->last;
    CHECK(turn != NULL);
    CHECK(i < turn->ours_count);
    struct chat_call *call = turn->ours_calls[i];
    if (!call->has_result) {
        chat_pages_note(chat, result);
    }
    buf_reset(&call->result);
    (void)buf_append_str(&call->result, result->model_text); /* shown text is bounded */
    call->has_result = true;
    bool shows = chat->request.set.offers[turn->ours[i].offer].show_runs;
    if (shows && result->status != SURFACE_CALL_NOT_RUN && call->run.len == 0) {
        run_write(chat, turn, i, result, &call->run);
    }
}

bool chat_results_cut(struct surface_exchange *exchange, size_t bytes_max)
{
    struct chat_turn *turn = chat_of(exchange)->last;
    bool is_cut = false;
    for (size_t i = 0; turn != NULL && i < turn->ours_count; i++) {
        is_cut =
            result_cut(&turn->ours_calls[i]->result, bytes_max, "the context is full") || is_cut;
    }
    return is_cut;
}

static void turn_runs_put(const struct chat_turn *turn, size_t *index, struct buf *out)
{
    for (size_t i = 0; turn != NULL && i < turn->ours_count; i++) {
        struct str run = buf_str(&turn->ours_calls[i]->run);
        if (run.len > 0) {
            (void)buf_printf(out, "%s{\"index\":%zu", *index == 0 ? "" : ",", *index);
            (void)buf_append_str(out, run); /* the owner asks for overflow */
            *index += 1;
        }
    }
}

bool chat_runs_put(const struct chat *chat, struct buf *out)
{
    size_t index = chat->runs_count;
    (void)buf_putc(out, '['); /* the owner asks for overflow */
    (void)buf_append_str(out, buf_str(&chat->runs));
    turn_runs_put(chat->last, &index, out);
    (void)buf_putc(out, ']');
    return index > 0;
}

/* ---- history ---- */

static bool call_stands(const struct chat_call *call, enum chat_calls_of which)
{
    bool is_ours = call->offer >= 0;
    switch (which) {
    case CHAT_CALLS_CLIENTS:
        return !call->dropped && !is_ours;
    case CHAT_CALLS_OURS:
        return !call->dropped && is_ours;
    default:
        return !call->dropped && (!is_ours || call->has_result);
    }
}

void chat_calls_put(const struct chat_turn *turn, enum chat_calls_of which, struct buf *out)
{
    bool first = true;
    for (size_t i = 0; i < turn->calls_count; i++) {
        const struct chat_call *call = turn->calls[i];
        if (call_stands(call, which)) {
            (void)buf_puts(out, first ? "" : ","); /* the owner asks for overflow */
            chat_call_put(call, which != CHAT_CALLS_CLIENTS, out);
            first = false;
        }
    }
}

/* The upstream's own message with our changes only: calls that stand, under ids that are there, with sound arguments. */
static void assistant_splice(struct chat_turn *turn, struct str calls, struct buf *out)
{
    const struct chat_chunk *answer = &turn->answer;
    struct splice splice = {.arena = turn->arena};
    bool *gone = arena_get(turn->arena, answer->delta_count + 1);
    const struct json_member *list =
        json_find(answer->delta_members, answer->delta_count, "tool_calls");
    CHECK(list != NULL);
    struct str raw = answer->delta.raw;
    splice_add(&splice, (size_t)(list->value.raw.data - raw.data), list->value.raw.len, calls);
    bool role = json_find(answer->delta_members, answer->delta_count, "role") != NULL;
    members_edit(&splice, raw, answer->delta, answer->delta_members, answer->delta_count, gone,
                 role ? (struct str){0} : STR(",\"role\":\"assistant\""));
    (void)splice_apply(&splice, raw, out); /* the owner asks for overflow */
}

void chat_fields_put(const struct chat_turn *turn, const char *without, struct buf *out)
{
    static const char *const around[JSON_OBJECT + 1][2] = {
        [JSON_STRING] = {"\"", "\""}, [JSON_ARRAY] = {"[", "]"}};
    for (size_t i = 0; i < turn->fields_count; i++) {
        const struct chat_field *field = &turn->fields[i];
        if (without != NULL && json_key_is(field->key_raw, without)) {
            continue;
        }
        const char *const *marks = around[field->type];
        (void)buf_putc(out, ','); /* the owner asks for overflow */
        (void)buf_append_str(out, field->key_raw);
        (void)buf_printf(out, ":%s", marks[0] == NULL ? "" : marks[0]);
        (void)buf_append_str(out, buf_str(&field->value));
        (void)buf_puts(out, marks[1] == NULL ? "" : marks[1]);
    }
}

void chat_assistant_put(struct chat_turn *turn, enum chat_calls_of which, struct buf *out)
{
    BUF_CLEANUP struct buf calls = {0};
    (void)buf_putc(&calls, '['); /* all of it bounded by the turn's bytes */
    chat_calls_put(turn, which, &calls);
    (void)buf_putc(&calls, ']');
    if (!turn->is_stream) {
        assistant_splice(turn, buf_str(&calls), out);
        return;
    }
    (void)buf_puts(out, "{\"role\":\"assistant\",\"content\":"); /* the owner asks for overflow */
    (void)buf_puts(out, turn->has_text ? "\"" : "null");
    (void)buf_append_str(out, buf_str(&turn->text));
    (void)buf_puts(out, turn->has_text ? "\"" : "");
    chat_fields_put(turn, NULL, out);
    (void)buf_puts(out, ",\"tool_calls\":");
    (void)buf_append_str(out, buf_str(&calls));
    (void)buf_putc(out, '}');
}

/* The last whole turn becomes history, the one that was read is about to take its place. */
void chat_turn_commit(struct chat *chat)
{
    struct chat_turn *last = chat->last;
    if (chat->turn->ours_count > 0) {
        chat_assistant_put(chat->turn, CHAT_CALLS_OURS, &chat->turn->assistant);
    }
    if (last == NULL) {
        return;
    }
    chat_messages_put(last, &chat->history); /* what is too much shows in the next request */
    turn_runs_put(last, &chat->runs_count, &chat->runs);
    if (last->text_given) {
        (void)buf_puts(&chat->before, chat->before.len > 0 ? "\\n\\n" : "");
        (void)buf_append_str(&chat->before, buf_str(&last->text));
    }
    chat_turn_free(last);
    chat->last = NULL;
}
