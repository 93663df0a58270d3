/* Hosted tools that nobody here answers (`upstreams[].other_tools`): they go up as they are, they are taken out, or the request
 * is refused. A type that is no plain function's counts, whoever would run the tool; the operator knows what the server
 * takes. */
#include "gateway/request.h"

#include "base/check.h"
#include "base/log.h"
#include "surface/body_edit.h"

#include <stdio.h>

struct others { /* of a request */
    struct request *request;
    struct json_value *entries;
    size_t count, gone_count;
    bool *gone;
    struct str *types; /* of those that go */
};

bool tool_type_is_plain(struct str type)
{
    return type.len == 0 || str_is(type, "function") || str_is(type, "custom");
}

/* The type of an entry that nobody here answers; else empty. */
static struct str other_type(const struct request *r, struct json_value entry)
{
    struct json_member *members = NULL;
    size_t count = 0;
    struct sg_error ignored;
    if (entry.type != JSON_OBJECT ||
        json_members(entry, "", r->arena, &members, &count, &ignored) != 0) {
        return (struct str){0}; /* what is wrong with it is said where it is read */
    }
    struct str type = json_find_text(members, count, "type", r->arena);
    bool answered =
        tool_type_is_plain(type) || r->route.surface->answers(r->offers, r->offers_count, type);
    return answered ? (struct str){0} : type;
}

static int refuse(size_t i, struct str type, struct sg_error *err)
{
    char where[48];
    (void)snprintf(where, sizeof where, "tools[%zu].type", i); /* fits */
    int rc = error_set_param(err, SG_E_INVALID, where,
                             "The tool type '%.*s' is not available for this model.",
                             (int)(type.len < 64 ? type.len : 64), type.data);
    (void)snprintf(err->reason, sizeof err->reason, "unsupported_tool"); /* fits */
    return rc;
}

static bool is_gone(const struct others *others, struct str type)
{
    for (size_t i = 0; i < others->gone_count; i++) {
        if (str_eq(others->types[i], type)) {
            return true;
        }
    }
    return false;
}

static struct str type_of(struct json_value object, struct arena *arena)
{
    struct json_walk walk = json_walk_of(object);
    struct str key;
    struct json_value value;
    while (json_walk_member(&walk, &key, &value)) {
        if (value.type == JSON_STRING && json_key_is(key, "type")) {
            return json_text_of(value, arena);
        }
    }
    return (struct str){0};
}

/* The list of a choice {"type":"allowed_tools",…}, nested or not; false: it has none. */
static bool allowed_find(struct json_value object, struct json_value *ret)
{
    struct json_walk walk = json_walk_of(object);
    struct str key;
    struct json_value value;
    while (json_walk_member(&walk, &key, &value)) {
        if (value.type == JSON_ARRAY && json_key_is(key, "tools")) {
            *ret = value;
            return true;
        }
        if (value.type == JSON_OBJECT && json_key_is(key, "allowed_tools")) {
            return allowed_find(value, ret);
        }
    }
    return false;
}

/* A choice of what is gone goes too; of a list, those entries. */
static void choice_edit(const struct others *others, bool tools_left, struct body_edit *edit)
{
    struct arena *arena = others->request->arena;
    const struct json_member *choice =
        json_find(edit->body->members, edit->body->count, "tool_choice");
    struct json_value list;
    if (choice == NULL || (choice->value.type != JSON_OBJECT && tools_left)) {
        return;
    }
    if (!tools_left || is_gone(others, type_of(choice->value, arena))) {
        body_edit_cut(edit, choice);
        return;
    }
    if (!allowed_find(choice->value, &list)) {
        return;
    }
    size_t count = 0, left = 0;
    struct json_value *elements = json_elements(list, arena, &count);
    bool *gone = arena_get(arena, count + 1);
    for (size_t i = 0; i < count; i++) {
        gone[i] = elements[i].type == JSON_OBJECT && is_gone(others, type_of(elements[i], arena));
        left += !gone[i];
    }
    if (left == 0) {
        body_edit_cut(edit, choice);
    } else {
        splice_cut_elements(&edit->splice, edit->body->raw, list, elements, count, gone);
    }
}

static int drop(struct others *others, const struct json_member *tools, struct sg_error *err)
{
    struct request *r = others->request;
    struct body_edit edit = body_edit_begin(&r->body, r->arena);
    bool tools_left = others->gone_count < others->count;
    if (tools_left) {
        splice_cut_elements(&edit.splice, r->body.raw, tools->value, others->entries, others->count,
                            others->gone);
    } else {
        body_edit_cut(&edit, tools);
        body_edit_cut(&edit, json_find(r->body.members, r->body.count, "parallel_tool_calls"));
    }
    choice_edit(others, tools_left, &edit);
    BUF_CLEANUP struct buf text = {0};
    bool is_whole = body_edit_apply(&edit, &text);
    CHECK(is_whole); /* it became shorter */
    return body_replace(r, &text, err);
}

static void drop_log(const struct others *others)
{
    BUF_CLEANUP struct buf types = {.max = 512};
    for (size_t i = 0; i < others->gone_count; i++) {
        (void)buf_puts(&types, i > 0 ? "," : ""); /* a long list is cut */
        (void)buf_append_str(&types, others->types[i]);
    }
    struct log_line line;
    log_begin(&line, SG_INFO, "tools_dropped");
    log_text(&line, "request", others->request->id);
    log_str(&line, "types", buf_str(&types));
    log_end(&line);
}

int other_tools_judge(struct request *r, struct sg_error *err)
{
    const struct json_member *tools =
        json_find_type(r->body.members, r->body.count, "tools", JSON_ARRAY);
    if (r->upstream->other_tools == OTHER_TOOLS_PASS || tools == NULL) {
        return 0;
    }
    struct others others = {.request = r};
    others.entries = json_elements(tools->value, r->arena, &others.count);
    others.gone = arena_get(r->arena, others.count + 1);
    others.types = arena_get(r->arena, (others.count + 1) * sizeof *others.types);
    for (size_t i = 0; i < others.count; i++) {
        struct str type = other_type(r, others.entries[i]);
        if (type.len > 0 && r->upstream->other_tools == OTHER_TOOLS_REJECT) {
            return refuse(i, type, err);
        }
        if (type.len > 0) {
            others.gone[i] = true;
            others.types[others.gone_count++] = type;
        }
    }
    if (others.gone_count == 0) {
        return 0;
    }
    drop_log(&others);
    return drop(&others, tools, err);
}
