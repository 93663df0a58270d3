/* What the paths /v1/responses/{id}… say of an answer that was kept: the response, its input, its end. */
#include "surface/responses_stored.h"
#include "surface/responses.h"

#include "base/check.h"

#include <stdio.h>

enum { LIMIT_LIST_DEFAULT = 20, LIMIT_LIST_MAX = 100 };

/* An object within a record, which was checked when the record was read. */
static void members_of(struct json_value object, struct arena *arena, struct json_member **ret,
                       size_t *ret_count)
{
    struct sg_error err = {0};
    if (json_members(object, "", arena, ret, ret_count, &err) != SG_OK) {
        *ret = NULL; /* a client's item with a member twice: it goes out as it came */
        *ret_count = 0;
    }
}

/* ---- the response ---- */

static bool asks_for(const struct responses_include *include, const char *value)
{
    for (size_t i = 0; include != NULL && i < include->count; i++) {
        if (str_is(include->values[i], value)) {
            return true;
        }
    }
    return false;
}

static void item_put(struct json_value item, const struct responses_include *include,
                     struct buf *out)
{
    struct arena *arena = arena_new(0);
    struct json_member *members = NULL;
    size_t count = 0;
    members_of(item, arena, &members, &count);
    const struct responses_kind *kind = responses_kind_of_item(
        json_find_text(members, count, "type", arena), json_find_text(members, count, "id", arena));
    if (kind != NULL && !asks_for(include, kind->include)) {
        kind->withhold(members, count, out);
    } else {
        (void)buf_append_str(out, item.raw); /* the owner asks for overflow */
    }
    arena_free(arena);
}

static void output_put(const struct responses_record *record,
                       const struct responses_include *include, struct buf *out)
{
    struct json_walk walk = json_walk_of(record->output);
    struct json_value item;
    bool first = true;
    (void)buf_putc(out, '['); /* the owner asks for overflow */
    while (json_walk_element(&walk, &item)) {
        (void)buf_puts(out, first ? "" : ",");
        first = false;
        if (item.type == JSON_OBJECT) {
            item_put(item, include, out);
        } else {
            (void)buf_append_str(out, item.raw);
        }
    }
    (void)buf_putc(out, ']');
}

void responses_stored_put(const struct responses_record *record,
                          const struct responses_include *include, struct buf *out)
{
    struct arena *arena = arena_new(0);
    struct json_member *members = NULL;
    size_t count = 0;
    BUF_CLEANUP struct buf output = {0};
    members_of(record->response, arena, &members, &count);
    output_put(record, include, &output);
    const struct responses_member put = {"output", buf_str(&output)};
    responses_object_put(members, count, &put, 1, out);
    out->overflow = out->overflow || output.overflow;
    arena_free(arena);
}

/* ---- its input ---- */

struct listing { /* of input items, the oldest first */
    struct json_value *items, *ids;
    size_t count;
    struct arena *arena;
};

/* Text as a list of parts, as this list always has it. */
static void content_put(struct json_value content, bool is_assistant, struct buf *out)
{
    if (content.type != JSON_STRING) {
        (void)buf_append_str(out, content.raw); /* the owner asks for overflow */
        return;
    }
    (void)buf_puts(out, is_assistant ? "[{\"type\":\"output_text\",\"annotations\":[],\"text\":"
                                     : "[{\"type\":\"input_text\",\"text\":");
    (void)buf_append_str(out, content.raw);
    (void)buf_puts(out, "}]");
}

static void input_item_put(const struct listing *list, size_t i, struct buf *out)
{
    struct json_member *members = NULL;
    size_t count = 0, n = 0;
    struct responses_member puts[4];
    BUF_CLEANUP struct buf parts = {0};
    if (list->items[i].type != JSON_OBJECT) {
        (void)buf_append_str(out, list->items[i].raw); /* the owner asks for overflow */
        return;
    }
    members_of(list->items[i], list->arena, &members, &count);
    struct str role = json_find_text(members, count, "role", list->arena);
    const struct json_member *content = json_find(members, count, "content");
    const struct json_member *type = json_find_type(members, count, "type", JSON_STRING);
    puts[n++] = (struct responses_member){"id", list->ids[i].raw};
    if (type == NULL) {
        puts[n++] = (struct responses_member){"type", STR("\"message\"")};
    }
    if (role.len > 0 && json_find_type(members, count, "status", JSON_STRING) == NULL) {
        puts[n++] = (struct responses_member){"status", STR("\"completed\"")};
    }
    if (role.len > 0 && content != NULL) {
        content_put(content->value, str_is(role, "assistant"), &parts);
        puts[n++] = (struct responses_member){"content", buf_str(&parts)};
    }
    responses_object_put(members, count, puts, n, out);
    out->overflow = out->overflow || parts.overflow;
}

static int limit_read(struct str text, size_t *ret, struct sg_error *err)
{
    int64_t n = LIMIT_LIST_DEFAULT;
    bool is_number = text.len > 0 && text.len < 8 && strspn(text.data, "0123456789") >= text.len;
    if (text.len > 0 && (!is_number || !json_int_of((struct json_value){JSON_NUMBER, text}, &n) ||
                         n < 1 || n > LIMIT_LIST_MAX)) {
        return error_set_param(err, SG_E_INVALID, "limit", "limit must be a number from 1 to %d",
                               LIMIT_LIST_MAX);
    }
    *ret = (size_t)n;
    return SG_OK;
}

static int order_read(struct str text, bool *ret_ascending, struct sg_error *err)
{
    *ret_ascending = str_is(text, "asc");
    return text.len == 0 || *ret_ascending || str_is(text, "desc")
               ? SG_OK
               : error_set_param(err, SG_E_INVALID, "order", "order must be 'asc' or 'desc'");
}

/* The place behind the item `after`, counted in the order that is asked for. */
static int start_find(const struct listing *list, struct str after, bool ascending, size_t *ret,
                      struct sg_error *err)
{
    *ret = 0;
    if (after.len == 0) {
        return SG_OK;
    }
    for (size_t i = 0; i < list->count; i++) {
        if (str_eq(json_text_of(list->ids[i], list->arena), after)) {
            *ret = ascending ? i + 1 : list->count - i;
            return SG_OK;
        }
    }
    return error_set_param(err, SG_E_INVALID, "after", "Item with id '%.*s' not found.",
                           after.len < 128 ? (int)after.len : 128, after.data);
}

static void page_put(const struct listing *list, size_t start, size_t limit, bool ascending,
                     struct buf *out)
{
    size_t end = list->count - start > limit ? start + limit : list->count;
    struct str first = STR("null"), last = STR("null");
    (void)buf_puts(out, "{\"object\":\"list\",\"data\":["); /* the owner asks for overflow */
    for (size_t n = start; n < end; n++) {
        size_t i = ascending ? n : list->count - 1 - n;
        (void)buf_puts(out, n == start ? "" : ",");
        input_item_put(list, i, out);
        first = n == start ? list->ids[i].raw : first;
        last = list->ids[i].raw;
    }
    (void)buf_puts(out, "],\"first_id\":");
    (void)buf_append_str(out, first);
    (void)buf_puts(out, ",\"last_id\":");
    (void)buf_append_str(out, last);
    (void)buf_printf(out, ",\"has_more\":%s}", end < list->count ? "true" : "false");
}

int responses_stored_inputs(const struct responses_record *record,
                            const struct responses_list_query *query, struct buf *out,
                            struct sg_error *err)
{
    struct arena *arena = arena_new(0);
    struct listing list = {.arena = arena};
    size_t ids_count = 0, limit = 0, start = 0;
    bool ascending = false;
    list.items = json_elements(record->input, arena, &list.count);
    list.ids = json_elements(record->input_ids, arena, &ids_count);
    CHECK(ids_count == list.count); /* they were written together */
    int code = limit_read(query->limit, &limit, err);
    if (code == SG_OK) {
        code = order_read(query->order, &ascending, err);
    }
    if (code == SG_OK) {
        code = start_find(&list, query->after, ascending, &start, err);
    }
    if (code == SG_OK) {
        page_put(&list, start, limit, ascending, out);
    }
    arena_free(arena);
    return code;
}

/* ---- its end ---- */

void responses_stored_deleted(struct str id, struct buf *out)
{
    (void)buf_puts(out, "{\"id\":"); /* the owner asks for overflow */
    (void)buf_put_json(out, id);
    (void)buf_puts(out, ",\"object\":\"response\",\"deleted\":true}");
}

int responses_stored_cancel(struct sg_error *err)
{
    return error_set(err, SG_E_INVALID, "Cannot cancel a synchronous response.");
}

int responses_stored_missing(struct str id, struct sg_error *err)
{
    return error_set(err, SG_E_NOT_FOUND, "Response with id '%.*s' not found.",
                     id.len < 128 ? (int)id.len : 128, id.data);
}
