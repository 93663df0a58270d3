/* The frame around the blocks: how an answer begins, the results of our calls, and how it ends, in a stream and in JSON. */
#include "surface/messages.h"
#include "surface/results.h"

#include "base/check.h"

#include <time.h>

/* ---- identity ---- */

/* Keeps the first one that says something. */
static void identity_keep(struct buf *to, const struct json_member *member)
{
    if (to->len == 0 && member != NULL && member->value.raw.len > 2 &&
        member->value.raw.len <= MESSAGES_IDENTITY_BYTES) {
        (void)buf_append_str(to, member->value.raw); /* small: fits */
    }
}

void messages_identity_note(struct messages *m, const struct json_member *members, size_t count)
{
    if (m->turns == 0) {
        identity_keep(&m->id, json_find_type(members, count, "id", JSON_STRING));
        identity_keep(&m->model, json_find_type(members, count, "model", JSON_STRING));
    }
}

static void identity_fill(struct messages *m)
{
    const struct json_text *body = m->request.body;
    if (m->id.len == 0) {
        (void)buf_puts(&m->id, "\"msg_sg"); /* small: fits */
        (void)buf_put_json_inner(&m->id, m->answer_id);
        (void)buf_putc(&m->id, '"');
    }
    if (m->model.len == 0) {
        const struct json_member *model =
            json_find_type(body->members, body->count, "model", JSON_STRING);
        (void)buf_append_str(&m->model, model == NULL ? STR("\"\"") : model->value.raw);
    }
}

/* ---- usage ---- */

/* With the counts that clients insist on. */
static void usage_complete(struct str usage, struct arena *arena, struct buf *out)
{
    static const char *const needed[] = {"input_tokens", "output_tokens"};
    struct json_text text;
    struct sg_error ignored = {0};
    struct splice splice = {.arena = arena};
    BUF_CLEANUP struct buf added = {0};
    if (usage.len == 0 || json_scan(usage, arena, &text, &ignored) != SG_OK) {
        (void)buf_puts(out, "{\"input_tokens\":0,\"output_tokens\":0}"); /* the owner asks */
        return;
    }
    for (size_t i = 0; i < COUNT_OF(needed); i++) {
        const struct json_member *member = json_find(text.members, text.count, needed[i]);
        if (member == NULL) {
            (void)buf_printf(&added, ",\"%s\":0", needed[i]); /* small: fits */
        } else if (member->value.type != JSON_NUMBER) {
            splice_add(&splice, (size_t)(member->value.raw.data - usage.data),
                       member->value.raw.len, STR("0"));
        }
    }
    bool *gone = arena_get(arena, text.count + 1);
    members_edit(&splice, usage, text.root, text.members, text.count, gone, buf_str(&added));
    (void)splice_apply(&splice, usage, out);
}

/* The whole answer's, with the searches that we made. */
static struct str usage_total(const struct messages *m, struct arena *arena)
{
    struct buf base = {0}, total = {0};
    usage_complete(buf_str(&m->usage), arena, &base);
    if (m->searches == 0) {
        return buf_to_arena(&base, arena);
    }
    BUF_CLEANUP struct buf ours = {0};
    (void)buf_printf(&ours,
                     "{\"server_tool_use\":{\"web_search_requests\":%zu,\"web_fetch_requests\":0}}",
                     m->searches); /* small: fits */
    usage_sum(buf_str(&ours), buf_str(&base), &total);
    buf_clear(&base);
    return buf_to_arena(&total, arena);
}

/* ---- edits of an object of the upstream's ---- */

struct framing {
    struct str text;
    struct json_value object;
    struct json_member *members;
    size_t count;
    struct splice *splice;
    struct arena *arena;
    struct buf added;
};

static void frame_set(struct framing *frame, const char *name, struct str value)
{
    const struct json_member *member = json_find(frame->members, frame->count, name);
    if (member == NULL) {
        (void)buf_printf(&frame->added, ",\"%s\":", name); /* the owner asks for overflow */
        (void)buf_append_str(&frame->added, value);
    } else if (!str_eq(member->value.raw, value)) {
        splice_add(frame->splice, (size_t)(member->value.raw.data - frame->text.data),
                   member->value.raw.len, value);
    }
}

static void frame_end(struct framing *frame)
{
    bool *gone = arena_get(frame->arena, frame->count + 1);
    struct str added =
        frame->added.len > 0 ? buf_to_arena(&frame->added, frame->arena) : (struct str){0};
    members_edit(frame->splice, frame->text, frame->object, frame->members, frame->count, gone,
                 added);
}

static struct framing frame_of(const struct json_text *text, struct splice *splice,
                               struct arena *arena)
{
    return (struct framing){.text = text->raw,
                            .object = text->root,
                            .members = text->members,
                            .count = text->count,
                            .splice = splice,
                            .arena = arena};
}

/* A member that is an object (NULL: none), to be edited within the same text. */
static bool frame_inner(const struct framing *outer, const struct json_member *member,
                        struct framing *ret)
{
    struct sg_error ignored = {0};
    *ret = (struct framing){.text = outer->text, .splice = outer->splice, .arena = outer->arena};
    if (member == NULL || member->value.type != JSON_OBJECT ||
        json_members(member->value, "a message", outer->arena, &ret->members, &ret->count,
                     &ignored) != SG_OK) {
        return false;
    }
    ret->object = member->value;
    return true;
}

/* ---- the beginning ---- */

static void message_frame(struct messages *m, struct framing *message, struct str usage)
{
    identity_fill(m);
    frame_set(message, "id", buf_str(&m->id));
    frame_set(message, "type", STR("\"message\""));
    frame_set(message, "role", STR("\"assistant\""));
    frame_set(message, "model", buf_str(&m->model));
    frame_set(message, "usage", usage);
}

static bool start_splice(struct messages *m, const struct json_text *event, struct arena *arena,
                         struct buf *out)
{
    struct splice splice = {.arena = arena};
    struct framing outer = frame_of(event, &splice, arena), message;
    if (!frame_inner(&outer, json_find(event->members, event->count, "message"), &message)) {
        return false;
    }
    struct buf usage = {0};
    const struct json_member *said =
        json_find_type(message.members, message.count, "usage", JSON_OBJECT);
    usage_complete(said == NULL ? (struct str){0} : said->value.raw, arena, &usage);
    message_frame(m, &message, buf_to_arena(&usage, arena));
    frame_set(&message, "content", STR("[]"));
    frame_set(&message, "stop_reason", STR("null"));
    frame_set(&message, "stop_sequence", STR("null"));
    frame_set(&outer, "type", STR("\"message_start\""));
    frame_end(&message);
    frame_end(&outer);
    (void)buf_puts(out, "event: message_start\ndata: "); /* the owner asks for overflow */
    size_t start = out->len;
    (void)splice_apply(&splice, event->raw, out);
    (void)buf_puts(out, "\n\n");
    line_flatten(out, start);
    return true;
}

void messages_start_give(struct messages *m, const struct json_text *event, struct arena *arena,
                         struct buf *out)
{
    if (m->start_given || !m->request.wants_stream) {
        return;
    }
    m->start_given = true;
    if (event != NULL && start_splice(m, event, arena, out)) {
        return;
    }
    identity_fill(m);
    messages_event_begin("message_start", out);
    size_t start = out->len;
    (void)buf_puts(out, ",\"message\":{\"id\":"); /* the owner asks for overflow */
    (void)buf_append_str(out, buf_str(&m->id));
    (void)buf_puts(out, ",\"type\":\"message\",\"role\":\"assistant\",\"model\":");
    (void)buf_append_str(out, buf_str(&m->model));
    (void)buf_puts(out, ",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":");
    usage_complete(m->turn == NULL ? (struct str){0} : buf_str(&m->turn->usage), arena, out);
    (void)buf_puts(out, "}}\n\n");
    line_flatten(out, start);
}

/* ---- results ---- */

void messages_call_begin(struct surface_exchange *exchange, size_t call, struct str container_id,
                         struct buf *out)
{
    (void)container_id, (void)out; /* the call was shown as it came; its result follows whole */
    const struct messages *m = messages_of(exchange);
    CHECK(m->last != NULL);
    CHECK(call < m->last->ours_count);
}

static void result_show(struct messages *m, const struct messages_block *block,
                        const struct surface_result *result, struct buf *out)
{
    if (block->native == NULL) {
        return;
    }
    struct arena *scratch = arena_new(0);
    BUF_CLEANUP struct buf text = {0};
    messages_start_give(m, NULL, scratch, out);
    messages_kind_result_put(block->native, block->shown_id, result, &text); /* bounded output */
    messages_show_own(m, buf_str(&text), out);
    arena_free(scratch);
}

void messages_call_end(struct surface_exchange *exchange, size_t i,
                       const struct surface_result *result, struct buf *out)
{
    struct messages *m = messages_of(exchange);
    CHECK(m->last != NULL);
    CHECK(i < m->last->ours_count);
    struct messages_block *block = m->last->our_blocks[i];
    buf_reset(&block->result);
    (void)buf_append_str(&block->result, result->model_text); /* shown text is bounded */
    block->has_result = true;
    if (result->status != SURFACE_CALL_NOT_RUN) {
        m->ran = true;
        memcpy(m->last_run, block->shown_id, sizeof m->last_run);
    }
    if (messages_kind_counts(block->native, result)) {
        m->searches++;
        cited_pages_add(&m->pages, result, m->arena);
    }
    result_show(m, block, result, out);
}

bool messages_results_cut(struct surface_exchange *exchange, size_t bytes_max)
{
    struct messages_turn *turn = messages_of(exchange)->last;
    bool is_cut = false;
    for (size_t i = 0; turn != NULL && i < turn->ours_count; i++) {
        is_cut |= result_cut(&turn->our_blocks[i]->result, bytes_max, "the context is full");
    }
    return is_cut;
}

/* Calls that were shown and will not be run: a call without a result would be one to go on with. */
static void unrun_show(struct messages *m, bool is_cut, struct buf *out)
{
    const struct surface_result result = {.status = SURFACE_CALL_NOT_RUN,
                                          .reason = is_cut ? SURFACE_REASON_INVALID
                                                           : SURFACE_REASON_NONE};
    for (size_t i = 0; m->last != NULL && i < m->last->ours_count; i++) {
        if (!m->last->our_blocks[i]->has_result) {
            result_show(m, m->last->our_blocks[i], &result, out);
        }
    }
}

/* ---- the end ---- */

/* Presence of calls decides, whatever the upstream says; a limit stays what it is. */
static const char *stop_reason(const struct messages *m)
{
    const struct messages_turn *turn = m->last;
    bool calls = turn != NULL && messages_client_calls(turn) > 0;
    if (turn == NULL || turn->stop_reason.len == 0) {
        return calls ? "tool_use" : "end_turn";
    }
    struct str reason = buf_str(&turn->stop_reason);
    if (calls) {
        return str_is(reason, "end_turn") ? "tool_use" : turn->stop_reason.data;
    }
    return str_is(reason, "tool_use") ? "end_turn" : turn->stop_reason.data;
}

static struct str quoted(const char *text, struct arena *arena)
{
    struct buf out = {0};
    (void)buf_put_json(&out, str_of(text)); /* bounded by its event */
    return buf_to_arena(&out, arena);
}

/* Empty where no container is left that could be named. */
static struct str container_text(const struct messages *m, struct arena *arena)
{
    const struct surface_container_source *source = m->container;
    int64_t expires = source == NULL || !m->ran ? 0 : source->expires_unix_s(source->context);
    time_t at = (time_t)expires;
    struct tm utc;
    char when[40];
    if (expires <= 0 || gmtime_r(&at, &utc) == NULL ||
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S.000000Z", &utc) == 0) {
        return (struct str){0};
    }
    struct str id = str_of(source->id(source->context)), prefix = STR("cntr_");
    if (str_starts(id, prefix)) {
        id = (struct str){id.data + prefix.len, id.len - prefix.len};
    }
    struct buf out = {0};
    (void)buf_puts(&out, "{\"id\":\"container_"); /* small: fits */
    (void)buf_put_json_inner(&out, id);
    (void)buf_printf(&out, "\",\"expires_at\":\"%s\",\"skills\":null}", when);
    return buf_to_arena(&out, arena);
}

static bool counts_output(struct json_value usage)
{
    struct json_walk walk = json_walk_of(usage);
    struct str key;
    struct json_value value;
    while (json_walk_member(&walk, &key, &value)) {
        if (value.type == JSON_NUMBER && json_key_is(key, "output_tokens")) {
            return true;
        }
    }
    return false;
}

/* The upstream's own last event, with what holds for the whole answer. */
static bool end_splice(const struct messages *m, struct str usage, struct str container,
                       struct arena *arena, struct buf *out)
{
    struct json_text event;
    struct sg_error ignored = {0};
    if (m->last == NULL || m->last->end_event.len == 0 ||
        json_scan(buf_str(&m->last->end_event), arena, &event, &ignored) != SG_OK) {
        return false;
    }
    struct splice splice = {.arena = arena};
    struct framing outer = frame_of(&event, &splice, arena), delta;
    if (!frame_inner(&outer, json_find(event.members, event.count, "delta"), &delta)) {
        return false;
    }
    frame_set(&delta, "stop_reason", quoted(stop_reason(m), arena));
    if (json_find(delta.members, delta.count, "stop_sequence") == NULL) {
        frame_set(&delta, "stop_sequence", STR("null"));
    }
    if (container.len > 0) {
        frame_set(&delta, "container", container);
    }
    const struct json_member *said =
        json_find_type(event.members, event.count, "usage", JSON_OBJECT);
    if (m->turns > 1 || m->searches > 0 || said == NULL || !counts_output(said->value)) {
        frame_set(&outer, "usage", usage);
    }
    frame_set(&outer, "type", STR("\"message_delta\""));
    frame_end(&delta);
    frame_end(&outer);
    (void)buf_puts(out, "event: message_delta\ndata: "); /* the owner asks for overflow */
    size_t start = out->len;
    (void)splice_apply(&splice, event.raw, out);
    (void)buf_puts(out, "\n\n");
    line_flatten(out, start);
    return true;
}

static struct str stop_sequence(const struct messages *m)
{
    bool is_told = m->last != NULL && m->last->stop_sequence.len > 0;
    return is_told ? buf_str(&m->last->stop_sequence) : STR("null");
}

static void end_author(const struct messages *m, struct str usage, struct str container,
                       struct arena *arena, struct buf *out)
{
    messages_event_begin("message_delta", out);
    size_t start = out->len;
    (void)buf_puts(out, ",\"delta\":{\"stop_reason\":"); /* the owner asks for overflow */
    (void)buf_append_str(out, quoted(stop_reason(m), arena));
    (void)buf_puts(out, ",\"stop_sequence\":");
    (void)buf_append_str(out, stop_sequence(m));
    (void)buf_puts(out, container.len > 0 ? ",\"container\":" : "");
    (void)buf_append_str(out, container);
    (void)buf_puts(out, "},\"usage\":");
    (void)buf_append_str(out, usage);
    (void)buf_puts(out, "}\n\n");
    line_flatten(out, start);
}

static void stream_finish(struct messages *m, struct arena *arena, struct buf *out)
{
    struct str usage = usage_total(m, arena), container = container_text(m, arena);
    if (!end_splice(m, usage, container, arena, out)) {
        end_author(m, usage, container, arena, out);
    }
    messages_event_begin("message_stop", out);
    (void)buf_puts(out, "}\n\n"); /* the owner asks for overflow */
}

static struct str content_text(const struct messages *m, struct arena *arena)
{
    struct buf content = {0};
    (void)buf_putc(&content, '['); /* bounded by LIMIT_BODY_BYTES a turn */
    (void)buf_append_str(&content, buf_str(&m->content));
    (void)buf_putc(&content, ']');
    return buf_to_arena(&content, arena);
}

/* The upstream's last answer, with what holds for the whole. */
static void answer_splice(struct messages *m, struct arena *arena, struct buf *out)
{
    struct splice splice = {.arena = arena};
    struct framing answer = frame_of(&m->last->answer, &splice, arena);
    struct str container = container_text(m, arena);
    bool is_own = !m->changed && m->turns == 1;
    message_frame(m, &answer, usage_total(m, arena));
    if (!is_own || json_find_type(answer.members, answer.count, "content", JSON_ARRAY) == NULL) {
        frame_set(&answer, "content", content_text(m, arena));
    }
    frame_set(&answer, "stop_reason", quoted(stop_reason(m), arena));
    if (json_find(answer.members, answer.count, "stop_sequence") == NULL) {
        frame_set(&answer, "stop_sequence", STR("null"));
    }
    if (container.len > 0) {
        frame_set(&answer, "container", container);
    }
    frame_end(&answer);
    (void)splice_apply(&splice, m->last->answer.raw, out); /* the owner asks for overflow */
}

static void answer_author(struct messages *m, struct arena *arena, struct buf *out)
{
    struct str container = container_text(m, arena);
    identity_fill(m);
    (void)buf_puts(out, "{\"id\":"); /* the owner asks for overflow */
    (void)buf_append_str(out, buf_str(&m->id));
    (void)buf_puts(out, ",\"type\":\"message\",\"role\":\"assistant\",\"model\":");
    (void)buf_append_str(out, buf_str(&m->model));
    (void)buf_puts(out, ",\"content\":");
    (void)buf_append_str(out, content_text(m, arena));
    (void)buf_puts(out, container.len > 0 ? ",\"container\":" : "");
    (void)buf_append_str(out, container);
    (void)buf_puts(out, ",\"stop_reason\":");
    (void)buf_append_str(out, quoted(stop_reason(m), arena));
    (void)buf_puts(out, ",\"stop_sequence\":");
    (void)buf_append_str(out, stop_sequence(m));
    (void)buf_puts(out, ",\"usage\":");
    (void)buf_append_str(out, usage_total(m, arena));
    (void)buf_putc(out, '}');
}

/* So that the next request finds the container by what it shows of this answer. */
static void container_keep(const struct messages *m)
{
    struct str id = str_of(m->last_run);
    if (m->memory != NULL && id.len > 0) {
        (void)m->memory->keep(m->memory->context, &id, 1, STR("{}"), false); /* it is small */
    }
}

int messages_finish(struct surface_exchange *exchange, struct str closing, struct buf *out,
                    struct sg_error *err)
{
    struct messages *m = messages_of(exchange);
    container_keep(m);
    struct arena *scratch = arena_new(0);
    messages_start_give(m, NULL, scratch, out);
    unrun_show(m, strcmp(stop_reason(m), "max_tokens") == 0, out);
    messages_show_waiting(m, out);
    bool calls = m->last != NULL && messages_client_calls(m->last) > 0;
    if (!m->has_text && !calls && closing.len > 0) {
        messages_show_text(m, closing, out);
    }
    if (m->request.wants_stream) {
        stream_finish(m, scratch, out);
    } else if (m->last != NULL && m->last->json.len > 0) {
        answer_splice(m, scratch, out);
    } else {
        answer_author(m, scratch, out);
    }
    arena_free(scratch);
    return out->overflow || m->content.overflow
               ? error_set(err, SG_E_LIMIT, "The answer is too large for this gateway.")
               : SG_OK;
}
