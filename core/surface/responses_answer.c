/* The response around the items: told at the start, and whole at the end. */
#include "surface/responses.h"
#include "surface/responses_stored.h"

#include "base/check.h"
#include "base/clock.h"

enum { IDENTITY_BYTES_MAX = 1024 }; /* of a model's name */

/* ---- the object ---- */

/* Members that are told as the client sent them, and what they are where it did not. */
static const char *const echoed[][2] = {
    {"background", "false"},
    {"instructions", "null"},
    {"max_output_tokens", "null"},
    {"max_tool_calls", "null"},
    {"parallel_tool_calls", "true"},
    {"previous_response_id", "null"},
    {"prompt_cache_key", "null"},
    {"reasoning", "{\"effort\":null,\"summary\":null}"},
    {"safety_identifier", "null"},
    {"store", "true"},
    {"temperature", "1"},
    {"text", "{\"format\":{\"type\":\"text\"},\"verbosity\":\"medium\"}"},
    {"tool_choice", "\"auto\""},
    {"tools", "[]"},
    {"top_logprobs", "0"},
    {"top_p", "1"},
    {"truncation", "\"disabled\""},
    {"user", "null"},
    {"metadata", "{}"},
};

static void echo_put(const struct responses *r, struct buf *out)
{
    const struct json_text *body = r->request.body;
    for (size_t i = 0; i < COUNT_OF(echoed); i++) {
        const struct json_member *member = json_find(body->members, body->count, echoed[i][0]);
        bool is_given = member != NULL && member->value.type != JSON_NULL;
        (void)buf_printf(out, ",\"%s\":", echoed[i][0]); /* the owner asks for overflow */
        (void)buf_append_str(out, is_given ? member->value.raw : str_of(echoed[i][1]));
    }
}

static bool has_results(const struct responses *r, const struct responses_kind *kind,
                        enum responses_results results)
{
    return results == RESPONSES_RESULTS_ALL ||
           (results == RESPONSES_RESULTS_ASKED &&
            responses_includes(r->request.include, kind->include));
}

static void output_put(const struct responses *r, enum responses_results results, struct buf *out)
{
    bool first = true;
    (void)buf_puts(out, ",\"output\":["); /* the owner asks for overflow */
    for (size_t i = 0; i < r->shown_count; i++) {
        const struct responses_shown *shown = r->shown[i];
        if (!shown->is_closed) {
            continue; /* nothing is, until the end; then all are */
        }
        (void)buf_puts(out, first ? "" : ",");
        first = false;
        if (shown->kind != NULL) {
            shown->kind->put(shown, has_results(r, shown->kind, results), out);
        } else {
            (void)buf_append_str(out, buf_str(&shown->final));
        }
    }
    (void)buf_putc(out, ']');
}

static void id_put(const struct responses *r, struct buf *out)
{
    (void)buf_puts(out, "\"" RESPONSES_ID_MARK); /* small: fits */
    (void)buf_put_json_inner(out, r->answer_id);
    (void)buf_putc(out, '"');
}

static void error_put(const struct sg_error *err, struct buf *out)
{
    if (err == NULL) {
        (void)buf_puts(out, "null"); /* the owner asks for overflow */
        return;
    }
    int status = error_status(err);
    (void)buf_puts(out, "{\"code\":");
    (void)buf_put_json(out, err->reason[0] != '\0' ? str_of(err->reason)
                            : status == 429        ? STR("rate_limit_exceeded")
                                                   : STR("server_error"));
    (void)buf_puts(out, ",\"message\":");
    (void)buf_put_json(out, str_of(err->message));
    (void)buf_putc(out, '}');
}

/* Servers of this API always count, and strict clients want what they do. Those of others may not: then nothing is known, and that
 * is told as 0, as it has to be on messages; the log has no number for it. */
static void usage_put(const struct responses *r, bool is_over, struct buf *out)
{
    static const struct str unknown =
        STR("{\"input_tokens\":0,\"input_tokens_details\":{\"cached_tokens\":0},"
            "\"output_tokens\":0,\"output_tokens_details\":{\"reasoning_tokens\":0},"
            "\"total_tokens\":0}");
    bool is_counted =
        r->used.input_tokens >= 0 && r->used.output_tokens >= 0; /* clients want both */
    bool is_answered = is_over && strcmp(r->status, "failed") != 0;
    (void)buf_puts(out, ",\"usage\":"); /* the owner asks for overflow */
    (void)buf_append_str(out, is_over && is_counted                         ? buf_str(&r->usage)
                              : is_answered && r->request.set.is_translated ? unknown
                                                                            : STR("null"));
}

static void object_put(const struct responses *r, const struct sg_error *err,
                       enum responses_results results, struct buf *out)
{
    bool is_over = strcmp(r->status, "in_progress") != 0;
    const struct json_text *body = r->request.body;
    const struct json_member *tier =
        json_find_type(body->members, body->count, "service_tier", JSON_STRING);
    (void)buf_puts(out, "{\"id\":"); /* the owner asks for overflow, here and below */
    id_put(r, out);
    (void)buf_puts(out, ",\"object\":\"response\",\"created_at\":");
    (void)buf_append_str(out, buf_str(&r->created));
    (void)buf_printf(out, ",\"status\":\"%s\",\"completed_at\":", r->status);
    (void)(r->completed_at > 0 ? buf_printf(out, "%lld", (long long)r->completed_at)
                               : buf_puts(out, "null"));
    (void)buf_puts(out, ",\"error\":");
    error_put(err, out);
    (void)buf_puts(out, ",\"incomplete_details\":");
    if (r->incomplete_reason.len > 0) {
        (void)buf_puts(out, "{\"reason\":");
        (void)buf_put_json(out, r->incomplete_reason);
        (void)buf_putc(out, '}');
    } else {
        (void)buf_puts(out, "null");
    }
    (void)buf_puts(out, ",\"model\":");
    (void)buf_append_str(out, buf_str(&r->model));
    output_put(r, results, out);
    echo_put(r, out);
    (void)buf_puts(out, ",\"service_tier\":");
    (void)buf_append_str(out, r->tier.len > 0 ? buf_str(&r->tier)
                              : tier != NULL  ? tier->value.raw
                                              : STR("null"));
    usage_put(r, is_over, out);
    (void)buf_putc(out, '}');
}

void responses_object_write(const struct responses *r, enum responses_results results,
                            struct buf *out)
{
    object_put(r, NULL, results, out);
}

static void object_tell(struct responses *r, const char *type, const struct sg_error *err,
                        struct buf *out)
{
    if (!r->request.wants_stream) {
        return;
    }
    BUF_CLEANUP struct buf object = {0};
    object_put(r, err, RESPONSES_RESULTS_ASKED, &object);
    responses_event_put(r, type, NULL, (struct responses_member[]){{"response", buf_str(&object)}},
                        1, out);
    out->overflow = out->overflow || object.overflow;
}

/* ---- the start ---- */

void responses_identity_note(struct responses *r, const struct json_member *members, size_t count)
{
    const struct json_member *model = json_find_type(members, count, "model", JSON_STRING);
    const struct json_member *created = json_find_type(members, count, "created_at", JSON_NUMBER);
    int64_t seconds;
    if (r->turns > 0 || r->begun) {
        return;
    }
    if (model != NULL && r->model.len == 0 && model->value.raw.len > 2 &&
        model->value.raw.len <= IDENTITY_BYTES_MAX) {
        (void)buf_append_str(&r->model, model->value.raw); /* small: fits */
    }
    if (created != NULL && r->created.len == 0 && json_int_of(created->value, &seconds)) {
        (void)buf_append_str(&r->created, created->value.raw); /* small: fits */
    }
}

static void identity_fill(struct responses *r)
{
    const struct json_text *body = r->request.body;
    const struct json_member *model =
        json_find_type(body->members, body->count, "model", JSON_STRING);
    if (r->model.len == 0) {
        (void)buf_append_str(&r->model, model == NULL ? STR("\"\"") : model->value.raw); /* fits */
    }
    if (r->created.len == 0) {
        (void)buf_printf(&r->created, "%lld", (long long)clock_unix_s()); /* small: fits */
    }
}

void responses_begin(struct responses *r, struct buf *out)
{
    if (r->begun) {
        return;
    }
    r->begun = true;
    identity_fill(r);
    object_tell(r, "response.created", NULL, out);
    object_tell(r, "response.in_progress", NULL, out);
}

/* ---- the end ---- */

/* Calls of the client that waited for ours to have run, and text that waited with them. */
static void held_release(struct responses *r, struct buf *out)
{
    struct responses_turn *turn = r->last;
    for (size_t i = 0; turn != NULL && i < turn->items_count; i++) {
        struct responses_item *item = turn->items[i];
        if (item->is_held && !item->is_dropped) {
            item->is_held = false;
            responses_item_close(r, item, turn->is_incomplete ? "incomplete" : "completed", out);
        }
    }
}

static void hosted_close(struct responses *r, struct buf *out)
{
    for (size_t i = 0; i < r->shown_count; i++) {
        if (r->shown[i]->kind != NULL) {
            responses_hosted_close(r, r->shown[i], NULL, out);
        }
    }
}

/* A message of ours, item and part and all, as an upstream would have said it. */
static int closing_say(struct responses *r, struct str closing, struct buf *out,
                       struct sg_error *err)
{
    r->turn = responses_turn_new();
    struct responses_item *item = responses_item_add(r->turn, err);
    CHECK(item != NULL); /* the first one */
    r->turn->is_released = true;
    responses_item_set_type(item, STR("message"));
    struct responses_part *part = responses_part_get(item, false, 0, RESPONSES_TEXT);
    CHECK(part != NULL);
    BUF_CLEANUP struct buf inner = {0};
    (void)buf_put_json_inner(&inner, closing); /* a sentence: fits */
    int code = responses_keep(r->turn, &part->text, buf_str(&inner), err);
    responses_item_close(r, item, "completed", out);
    responses_turn_free(r->turn);
    r->turn = NULL;
    return code;
}

int responses_finish(struct surface_exchange *exchange, struct str closing, struct buf *out,
                     struct sg_error *err)
{
    struct responses *r = responses_of(exchange);
    const struct responses_turn *turn = r->last;
    bool is_cut = turn != NULL && turn->is_incomplete;
    int code = SG_OK;
    responses_begin(r, out);
    hosted_close(r, out);
    held_release(r, out);
    if (closing.len > 0 && !r->has_said && (turn == NULL || turn->client_calls == 0)) {
        code = closing_say(r, closing, out, err);
    }
    r->status = is_cut ? "incomplete" : "completed";
    r->incomplete_reason = is_cut ? buf_str(&turn->incomplete_reason) : (struct str){0};
    r->completed_at = is_cut ? 0 : clock_unix_s();
    responses_answer_keep(r);
    responses_memory_keep(r);
    if (r->request.wants_stream) {
        object_tell(r, is_cut ? "response.incomplete" : "response.completed", NULL, out);
    } else {
        object_put(r, NULL, RESPONSES_RESULTS_ASKED, out);
    }
    return code == SG_OK && out->overflow
               ? error_set(err, SG_E_LIMIT, "The answer is too large for this gateway.")
               : code;
}

/* What the client has seen open is closed: strict clients refuse an answer that forgets an item. */
static void all_close(struct responses *r, struct buf *out)
{
    struct responses_turn *const turns[] = {r->last, r->turn};
    hosted_close(r, out);
    for (size_t k = 0; k < COUNT_OF(turns); k++) {
        for (size_t i = 0; turns[k] != NULL && i < turns[k]->items_count; i++) {
            struct responses_item *item = turns[k]->items[i];
            if (item->shown != NULL && item->shown->kind == NULL) {
                responses_item_close(r, item, "incomplete", out);
            }
        }
    }
}

/* Flat as the schema has it and nested as the live service has it: some clients look at one only. */
void responses_fail(struct surface_exchange *exchange, const struct sg_error *err, struct buf *out)
{
    struct responses *r = responses_of(exchange);
    BUF_CLEANUP struct buf body = {0}, code = {0}, message = {0}, param = {0};
    struct arena *arena = arena_new(0);
    struct json_text text;
    struct sg_error ignored = {0};
    responses_begin(r, out);
    all_close(r, out);
    openai_error_body(err, "", &body); /* small: fits */
    int scanned = json_scan(buf_str(&body), arena, &text, &ignored);
    CHECK(scanned == SG_OK);
    (void)buf_put_json(&message, str_of(err->message));
    (void)buf_put_json(&code, err->reason[0] != '\0'     ? str_of(err->reason)
                              : error_status(err) == 429 ? STR("rate_limit_exceeded")
                                                         : STR("server_error"));
    if (err->param[0] != '\0') {
        (void)buf_put_json(&param, str_of(err->param));
    } else {
        (void)buf_puts(&param, "null");
    }
    responses_event_put(r, "error", NULL,
                        (struct responses_member[]){{"code", buf_str(&code)},
                                                    {"message", buf_str(&message)},
                                                    {"param", buf_str(&param)},
                                                    {"error", text.members[0].value.raw}},
                        4, out);
    r->status = "failed";
    object_tell(r, "response.failed", err, out);
    arena_free(arena);
}
