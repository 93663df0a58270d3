/* The native shape of the hosted search on this surface: web_search_call items. One that runs says nothing of its query; at
 * its end it has an action, with the pages that were found as sources for who asks for them. */
#include "surface/responses.h"
#include "surface/results.h"

/* ---- towards the client ---- */

/* One without a query (the arguments were wrong) has an action too: clients look into it. */
static void action_put(const struct responses_shown *shown, bool with_results, struct buf *out)
{
    struct str query = buf_str(&shown->text.text);
    responses_text_put(out, ",\"action\":{\"type\":\"search\",\"query\":", query);
    if (query.len > 0) {
        responses_text_put(out, ",\"queries\":[", query);
        (void)buf_putc(out, ']'); /* the owner asks for overflow, here and below */
    } else {
        (void)buf_puts(out, ",\"queries\":[]");
    }
    if (with_results) {
        (void)buf_puts(out, ",\"sources\":");
        (void)buf_append_str(out, shown->results.len > 0 ? buf_str(&shown->results) : STR("[]"));
    }
    (void)buf_putc(out, '}');
}

static void search_put(const struct responses_shown *shown, bool with_results, struct buf *out)
{
    responses_text_put(out, "{\"id\":", buf_str(&shown->id));
    responses_text_put(out, ",\"type\":\"web_search_call\",\"status\":", str_of(shown->status));
    if (shown->is_closed) {
        action_put(shown, with_results, out);
    }
    (void)buf_putc(out, '}'); /* the owner asks for overflow */
}

static void search_opened(struct responses *r, struct responses_shown *shown, struct buf *out)
{
    responses_event_put(r, "response.web_search_call.in_progress", shown, NULL, 0, out);
}

/* No event carries the query. */
static void search_argued(struct responses *r, struct responses_shown *shown, bool ended,
                          struct buf *out)
{
    (void)r;
    (void)shown;
    (void)ended;
    (void)out;
}

static void search_begun(struct responses *r, struct responses_shown *shown, struct buf *out)
{
    shown->status = "searching";
    responses_event_put(r, "response.web_search_call.searching", shown, NULL, 0, out);
}

static void sources_take(struct responses_shown *shown, const struct surface_result *result)
{
    static const char *const names[] = {"url", NULL};
    struct buf *list = &shown->results;
    buf_reset(list);
    (void)buf_putc(list, '['); /* bounded by the call's output, as all here */
    for (size_t i = 0; i < result->outputs_count; i++) {
        BUF_CLEANUP struct buf url = {0};
        const struct surface_output *output = &result->outputs[i];
        if (output->kind == SG_OUT_HIT && result_members_put(output->data, names, &url)) {
            (void)buf_puts(list, list->len > 1 ? "," : "");
            responses_text_put(list, "{\"type\":\"url\",\"url\":",
                               (struct str){url.data, url.len - 1}); /* less the line's end */
            (void)buf_putc(list, '}');
        }
    }
    (void)buf_putc(list, ']');
}

static void search_ended(struct responses *r, struct responses_shown *shown,
                         const struct surface_result *result, struct buf *out)
{
    if (result != NULL && result->status == SURFACE_CALL_COMPLETED) {
        sources_take(shown, result);
        responses_results_bound(r, shown, STR("[]"));
    }
    if (result == NULL || result->status == SURFACE_CALL_COMPLETED) {
        responses_event_put(r, "response.web_search_call.completed", shown, NULL, 0, out);
    }
}

/* ---- what comes back ---- */

struct searched { /* what an item says of itself */
    struct json_member *action;
    size_t action_count;
    struct str query;
    const struct json_member *sources; /* NULL: it does not show them */
};

static struct searched searched_read(const struct json_member *members, size_t count,
                                     struct arena *arena)
{
    struct searched searched = {0};
    struct sg_error ignored = {0};
    const struct json_member *action = json_find_type(members, count, "action", JSON_OBJECT);
    if (action == NULL || json_members(action->value, "action", arena, &searched.action,
                                       &searched.action_count, &ignored) != SG_OK) {
        return (struct searched){0}; /* the client has changed it */
    }
    searched.query = json_find_text(searched.action, searched.action_count, "query", arena);
    searched.sources =
        json_find_type(searched.action, searched.action_count, "sources", JSON_ARRAY);
    return searched;
}

static void sources_recall(struct json_value sources, struct arena *arena, struct buf *result)
{
    struct json_walk walk = json_walk_of(sources), inner;
    struct json_value source, value;
    struct str key;
    (void)buf_puts(result, "The search found these pages; what they say is no longer available.");
    while (json_walk_element(&walk, &source)) {
        if (source.type != JSON_OBJECT) {
            continue;
        }
        inner = json_walk_of(source);
        while (json_walk_member(&inner, &key, &value)) {
            if (value.type == JSON_STRING && json_key_is(key, "url")) {
                (void)buf_putc(result, '\n'); /* bounded by the body */
                (void)buf_append_str(result, json_text_of(value, arena));
            }
        }
    }
}

/* An item never shows what the model was told: that is in the record, or gone. */
static void search_recall(const struct json_member *members, size_t count, struct arena *arena,
                          struct buf *arguments, struct buf *result, bool *ret_has_result)
{
    struct searched searched = searched_read(members, count, arena);
    responses_text_put(arguments, "{\"query\":", searched.query);
    (void)buf_putc(arguments, '}'); /* bounded by the body */
    *ret_has_result = false;
    if (str_is(json_find_text(members, count, "status", arena), "failed")) {
        (void)buf_puts(result, "The search failed. Whether there are results is not known.");
    } else if (searched.sources != NULL && searched.sources->value.raw.len > 2) {
        sources_recall(searched.sources->value, arena, result);
    } else {
        (void)buf_puts(result, "The results of this search are no longer available.");
    }
}

static void search_load(const struct json_member *members, size_t count, struct arena *arena,
                        struct responses_shown *shown, struct str *ret_text)
{
    struct searched searched = searched_read(members, count, arena);
    *ret_text = searched.query;
    if (searched.sources != NULL) {
        (void)buf_append_str(&shown->results, searched.sources->value.raw); /* the record's */
    }
}

static void search_withhold(const struct json_member *members, size_t count, struct buf *out)
{
    static const struct responses_member none = {"sources", {"", 0}};
    struct arena *arena = arena_new(0);
    BUF_CLEANUP struct buf action = {0};
    struct searched searched = searched_read(members, count, arena);
    responses_object_put(searched.action, searched.action_count, &none, 1, &action);
    const struct responses_member less = {"action", buf_str(&action)};
    responses_object_put(members, count, &less, searched.sources != NULL ? 1 : 0, out);
    arena_free(arena);
}

const struct responses_kind responses_web_search = {.hosted = "web_search",
                                                    .mark = "ws_sg",
                                                    .item_type = "web_search_call",
                                                    .include = "web_search_call.action.sources",
                                                    .member = "query",
                                                    .unfinished = "failed",
                                                    .put = search_put,
                                                    .opened = search_opened,
                                                    .argued = search_argued,
                                                    .begun = search_begun,
                                                    .ended = search_ended,
                                                    .recall = search_recall,
                                                    .load = search_load,
                                                    .withhold = search_withhold};
