/* The native shapes of hosted tools on this surface, one table entry each, and that of code. Nothing else of the surface
 * knows one. */
#include "surface/responses.h"
#include "surface/results.h"

#include "base/limits.h"

/* ---- what shapes share ---- */

static void plain_event(struct responses *r, struct responses_shown *shown, const char *type,
                        struct buf *out)
{
    responses_event_put(r, type, shown, NULL, 0, out);
}

void responses_text_put(struct buf *out, const char *before, struct str text)
{
    (void)buf_puts(out, before); /* the owner asks for overflow */
    (void)buf_put_json(out, text);
}

void responses_results_bound(struct responses *r, struct responses_shown *shown, struct str instead)
{
    if (r->results_bytes + shown->results.len > RESPONSES_RESULTS_BYTES_MAX) {
        buf_reset(&shown->results);
        (void)buf_append_str(&shown->results, instead); /* small: fits */
    }
    r->results_bytes += shown->results.len;
}

/* ---- code_interpreter_call ---- */

static void code_put(const struct responses_shown *shown, bool with_results, struct buf *out)
{
    responses_text_put(out, "{\"id\":", buf_str(&shown->id));
    responses_text_put(out,
                       ",\"type\":\"code_interpreter_call\",\"status\":", str_of(shown->status));
    responses_text_put(out, ",\"code\":", buf_str(&shown->text.text));
    responses_text_put(out, ",\"container_id\":", buf_str(&shown->container_id));
    (void)buf_puts(out, ",\"outputs\":");
    if (!with_results) {
        (void)buf_puts(out, "null");
    } else {
        (void)buf_append_str(out, shown->results.len > 0 ? buf_str(&shown->results) : STR("[]"));
    }
    (void)buf_putc(out, '}');
}

static void code_opened(struct responses *r, struct responses_shown *shown, struct buf *out)
{
    plain_event(r, shown, "response.code_interpreter_call.in_progress", out);
}

static void code_argued(struct responses *r, struct responses_shown *shown, bool ended,
                        struct buf *out)
{
    struct str text = buf_str(&shown->text.text);
    BUF_CLEANUP struct buf quoted = {0};
    if (shown->text_given < text.len) {
        (void)buf_put_json(&quoted, (struct str){text.data + shown->text_given,
                                                 text.len - shown->text_given}); /* bounded */
        shown->text_given = text.len;
        responses_event_put(r, "response.code_interpreter_call_code.delta", shown,
                            (struct responses_member[]){{"delta", buf_str(&quoted)}}, 1, out);
    }
    if (ended) {
        buf_reset(&quoted);
        (void)buf_put_json(&quoted, text); /* bounded by the turn's bytes */
        responses_event_put(r, "response.code_interpreter_call_code.done", shown,
                            (struct responses_member[]){{"code", buf_str(&quoted)}}, 1, out);
    }
}

static void code_begun(struct responses *r, struct responses_shown *shown, struct buf *out)
{
    shown->status = "interpreting";
    plain_event(r, shown, "response.code_interpreter_call.interpreting", out);
}

/* What gathers for the next entry of `outputs`. */
static void logs_end(struct buf *logs, struct buf *list)
{
    if (logs->len > 0) {
        (void)buf_puts(list, list->len > 1 ? "," : ""); /* bounded by the run's output */
        responses_text_put(list, "{\"type\":\"logs\",\"logs\":", buf_str(logs));
        (void)buf_putc(list, '}');
        buf_reset(logs);
    }
}

/* The one picture of a bundle that a client can show, the sharpest first. */
static bool image_put(const struct json_text *bundle, struct arena *arena, struct buf *logs,
                      struct buf *list)
{
    static const char *const types[] = {"image/png", "image/jpeg", "image/svg+xml"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct str data = json_find_text(bundle->members, bundle->count, types[i], arena);
        if (data.len == 0) {
            continue;
        }
        BUF_CLEANUP struct buf url = {0};
        bool is_markup = data.data[0] == '<'; /* drawings may come as they are, not as base64 */
        (void)buf_printf(&url, "data:%s%s,", types[i], is_markup ? ";utf8" : ";base64");
        for (size_t k = 0; k < data.len; k++) {
            bool is_safe = !is_markup || strchr("%#\"<>\r\n\t", data.data[k]) == NULL;
            if (is_safe && data.data[k] != '\n') {
                (void)buf_putc(&url, data.data[k]); /* bounded by the run's output */
            } else if (is_markup) {
                (void)buf_printf(&url, "%%%02X", (unsigned char)data.data[k]);
            }
        }
        logs_end(logs, list);
        (void)buf_puts(list, list->len > 1 ? "," : "");
        responses_text_put(list, "{\"type\":\"image\",\"url\":", buf_str(&url));
        (void)buf_putc(list, '}');
        return true;
    }
    return false;
}

static void result_put(struct str bundle, struct buf *logs, struct buf *list)
{
    static const char *const plain[] = {"text/plain", NULL};
    struct arena *arena = arena_new(0);
    struct json_text text;
    struct sg_error err = {0};
    bool is_image = json_scan(bundle, arena, &text, &err) == SG_OK &&
                    text.root.type == JSON_OBJECT && image_put(&text, arena, logs, list);
    if (!is_image) {
        (void)result_members_put(bundle, plain, logs);
    }
    arena_free(arena);
}

/* As a notebook's cell shows it: what was printed and what was displayed, in order. */
static void outputs_take(struct responses_shown *shown, const struct surface_result *result)
{
    static const char *const traceback[] = {"traceback", NULL};
    BUF_CLEANUP struct buf logs = {0};
    buf_reset(&shown->results);
    (void)buf_putc(&shown->results, '['); /* bounded by the run's output, as all here */
    for (size_t i = 0; i < result->outputs_count; i++) {
        const struct surface_output *output = &result->outputs[i];
        if (output->kind == SG_OUT_LOG_OUT || output->kind == SG_OUT_LOG_ERR) {
            (void)buf_append_str(&logs, output->data);
        } else if (output->kind == SG_OUT_RESULT) {
            result_put(output->data, &logs, &shown->results);
        } else if (output->kind == SG_OUT_EXCEPTION) {
            (void)result_members_put(output->data, traceback, &logs);
        }
    }
    logs_end(&logs, &shown->results);
    (void)buf_putc(&shown->results, ']');
}

static void code_ended(struct responses *r, struct responses_shown *shown,
                       const struct surface_result *result, struct buf *out)
{
    if (result != NULL) {
        outputs_take(shown, result);
        responses_results_bound(
            r, shown,
            STR("[{\"type\":\"logs\",\"logs\":\"[output left out: the answer is "
                "too large]\"}]"));
    }
    if (result == NULL || result->status == SURFACE_CALL_COMPLETED) {
        plain_event(r, shown, "response.code_interpreter_call.completed", out);
    }
}

static void code_outputs_recall(struct json_value outputs, struct arena *arena, struct buf *result)
{
    struct json_walk walk = json_walk_of(outputs), inner;
    struct json_value output, value;
    struct str key;
    while (json_walk_element(&walk, &output)) {
        if (output.type != JSON_OBJECT) {
            continue;
        }
        inner = json_walk_of(output);
        while (json_walk_member(&inner, &key, &value)) {
            if (value.type == JSON_STRING && json_key_is(key, "logs")) {
                (void)buf_append_str(result, json_text_of(value, arena)); /* bounded by the body */
            } else if (value.type == JSON_STRING && json_key_is(key, "url")) {
                (void)buf_puts(result, "[image]\n"); /* the model is told that there was one */
            }
        }
    }
}

static void code_recall(const struct json_member *members, size_t count, struct arena *arena,
                        struct buf *arguments, struct buf *result, bool *ret_has_result)
{
    const struct json_member *outputs = json_find_type(members, count, "outputs", JSON_ARRAY);
    responses_text_put(arguments, "{\"code\":", json_find_text(members, count, "code", arena));
    (void)buf_putc(arguments, '}'); /* bounded by the body */
    *ret_has_result = outputs != NULL;
    if (outputs != NULL) {
        code_outputs_recall(outputs->value, arena, result);
    }
}

static void code_load(const struct json_member *members, size_t count, struct arena *arena,
                      struct responses_shown *shown, struct str *ret_text)
{
    const struct json_member *outputs = json_find_type(members, count, "outputs", JSON_ARRAY);
    *ret_text = json_find_text(members, count, "code", arena);
    (void)buf_append_str(&shown->container_id, /* bounded by the record, likewise below */
                         json_find_text(members, count, "container_id", arena));
    if (outputs != NULL) {
        (void)buf_append_str(&shown->results, outputs->value.raw);
    }
}

static void code_withhold(const struct json_member *members, size_t count, struct buf *out)
{
    const struct responses_member none = {"outputs", STR("null")};
    responses_object_put(members, count, &none, 1, out);
}

static struct str code_container(const struct json_member *members, size_t count,
                                 struct arena *arena)
{
    return json_find_text(members, count, "container_id", arena);
}

static const struct responses_kind code_interpreter = {.hosted = "code_interpreter",
                                                       .mark = "ci_sg",
                                                       .item_type = "code_interpreter_call",
                                                       .include = "code_interpreter_call.outputs",
                                                       .member = "code",
                                                       .unfinished = "incomplete",
                                                       .put = code_put,
                                                       .opened = code_opened,
                                                       .argued = code_argued,
                                                       .begun = code_begun,
                                                       .ended = code_ended,
                                                       .recall = code_recall,
                                                       .load = code_load,
                                                       .withhold = code_withhold,
                                                       .container = code_container};

/* ---- the table ---- */

const struct responses_kind *const responses_kinds[] = {&code_interpreter, &responses_web_search,
                                                        NULL};

const struct responses_kind *responses_kind_of_hosted(struct str hosted)
{
    for (size_t i = 0; responses_kinds[i] != NULL; i++) {
        if (str_is(hosted, responses_kinds[i]->hosted)) {
            return responses_kinds[i];
        }
    }
    return NULL;
}

const struct responses_kind *responses_kind_of_type(struct str item_type)
{
    for (size_t i = 0; responses_kinds[i] != NULL; i++) {
        if (str_is(item_type, responses_kinds[i]->item_type)) {
            return responses_kinds[i];
        }
    }
    return NULL;
}

const struct responses_kind *responses_kind_of_item(struct str type, struct str id)
{
    const struct responses_kind *kind = responses_kind_of_type(type);
    return kind != NULL && str_starts(id, str_of(kind->mark)) ? kind : NULL;
}
