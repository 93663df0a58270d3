/* Edits of JSON objects by splicing. */
#include "surface/body_edit.h"

#include "base/check.h"
#include "base/limits.h"

#include <stdio.h>

struct body_edit body_edit_begin(const struct json_text *body, struct arena *arena)
{
    struct body_edit edit = {
        .body = body, .arena = arena, .splice = {.arena = arena}, .tools_left = true};
    edit.gone = arena_get(arena, body->count + 1);
    return edit;
}

size_t body_edit_at(const struct body_edit *edit, const char *p)
{
    return (size_t)(p - edit->body->raw.data);
}

void body_edit_cut(struct body_edit *edit, const struct json_member *member)
{
    if (member != NULL) {
        edit->gone[member - edit->body->members] = true;
    }
}

void body_edit_value(struct body_edit *edit, struct json_value value, struct str put)
{
    splice_add(&edit->splice, body_edit_at(edit, value.raw.data), value.raw.len, put);
}

void body_edit_set(struct body_edit *edit, const struct json_member *member, const char *key,
                   struct str value)
{
    if (member != NULL) {
        body_edit_value(edit, member->value, value);
        return;
    }
    (void)buf_printf(&edit->added, ",\"%s\":", key); /* overflow is asked for at the end */
    (void)buf_append_str(&edit->added, value);
}

bool body_edit_apply(struct body_edit *edit, struct buf *ret)
{
    const struct json_text *body = edit->body;
    CHECK(body->count > 0); /* a model is named, and what it is asked */
    members_edit(&edit->splice, body->raw, body->root, body->members, body->count, edit->gone,
                 buf_str(&edit->added));
    size_t before = ret->len;
    bool is_whole = splice_apply(&edit->splice, body->raw, ret) && !edit->added.overflow;
    buf_clear(&edit->added);
    return is_whole && ret->len - before <= LIMIT_BODY_BYTES;
}

struct str buf_to_arena(struct buf *text, struct arena *arena)
{
    CHECK(!text->overflow);
    struct str copy = {check_alloc(arena_copy(arena, buf_str(text))), text->len};
    buf_clear(text);
    return copy;
}

/* ---- tools ---- */

/* The definitions of the offers that the client did not name, each behind a comma. */
static struct str appended_tools(const struct tool_set *set, struct arena *arena)
{
    struct buf out = {0};
    for (size_t i = 0; i < set->offers_count; i++) {
        if (set->shown[i].appended) {
            (void)buf_putc(&out, ','); /* descriptions are small: fits */
            (void)buf_append_str(&out, set->shown[i].definition);
        }
    }
    return out.len == 0 ? (struct str){0} : buf_to_arena(&out, arena);
}

/* What takes the entry's place: the definition of its offer, or of both that answer it. */
static struct str entry_definition(const struct tool_set *set, const struct tool_entry *entry,
                                   struct arena *arena)
{
    if (!entry->also_first) {
        return set->shown[entry->offer].definition;
    }
    struct str also = set->shown[entry->also].definition;
    if (!entry->first) {
        return also;
    }
    struct buf both = {0};
    (void)buf_append_str(&both, set->shown[entry->offer].definition); /* small: fits */
    (void)buf_putc(&both, ',');
    (void)buf_append_str(&both, also);
    return buf_to_arena(&both, arena);
}

static void entries_swap(struct body_edit *edit, const struct tool_set *set, bool remove)
{
    size_t count = set->entries_count;
    struct json_value *values = arena_get(edit->arena, (count + 1) * sizeof *values);
    bool *gone = arena_get(edit->arena, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct tool_entry *entry = &set->entries[i];
        values[i] = entry->value;
        gone[i] = entry->offer >= 0 && (remove || !(entry->first || entry->also_first));
        if (entry->offer >= 0 && !gone[i]) {
            body_edit_value(edit, entry->value, entry_definition(set, entry, edit->arena));
        }
    }
    splice_cut_elements(&edit->splice, edit->body->raw, set->member->value, values, count, gone);
}

/* Our tools go, and with the last of them all that makes no sense without tools. */
static void tools_remove(struct body_edit *edit, const struct tool_set *set,
                         const char *const *gone_with_tools)
{
    edit->tools_left = tools_has_others(set);
    if (edit->tools_left) {
        entries_swap(edit, set, true);
        return;
    }
    body_edit_cut(edit, set->member);
    for (; *gone_with_tools != NULL; gone_with_tools++) {
        body_edit_cut(edit, json_find(edit->body->members, edit->body->count, *gone_with_tools));
    }
}

void body_edit_tools(struct body_edit *edit, const struct tool_set *set, bool remove,
                     const char *const *gone_with_tools)
{
    if (remove) {
        tools_remove(edit, set, gone_with_tools);
        return;
    }
    bool is_array = set->member != NULL && set->member->value.type == JSON_ARRAY;
    if (is_array) {
        entries_swap(edit, set, false);
    }
    struct str more = appended_tools(set, edit->arena);
    if (more.len == 0) {
        return;
    }
    if (is_array && set->entries_count > 0) {
        struct str raw = set->entries[set->entries_count - 1].value.raw;
        splice_add(&edit->splice, body_edit_at(edit, raw.data) + raw.len, 0, more);
        return;
    }
    struct buf list = {0};
    (void)buf_printf(&list, "[%.*s]", (int)more.len - 1, more.data + 1); /* without its comma */
    body_edit_set(edit, set->member, "tools", buf_to_arena(&list, edit->arena));
}

/* ---- limits ---- */

int64_t tokens_left(const struct json_member *limit, int64_t used)
{
    int64_t tokens;
    if (limit == NULL || used < 0 || !json_int_of(limit->value, &tokens) || tokens < 0) {
        return -1;
    }
    return tokens > used ? tokens - used : 0;
}

int body_too_large(bool is_first_turn, struct sg_error *err)
{
    error_set(err, SG_E_LIMIT, "The request%s is larger than %zu MiB.",
              is_first_turn ? ", with what the gateway adds to it,"
                            : " for the next turn, with the results of its tools,",
              LIMIT_BODY_BYTES / MIB);
    err->status = 413;
    (void)snprintf(err->reason, sizeof err->reason, "request_too_large"); /* fits */
    return SG_E_LIMIT;
}

/* ---- members of any object ---- */

void members_edit(struct splice *splice, struct str text, struct json_value object,
                  const struct json_member *members, size_t count, const bool *gone,
                  struct str added)
{
    splice_cut_members(splice, text, members, count, gone);
    if (added.len == 0) {
        return;
    }
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        left += !gone[i];
    }
    CHECK(added.data[0] == ',');
    if (left == 0) {
        added = (struct str){added.data + 1, added.len - 1};
    }
    struct str after = count == 0 ? (struct str){object.raw.data, 1} : members[count - 1].value.raw;
    splice_add(splice, (size_t)(after.data - text.data) + after.len, 0, added);
}

void line_flatten(struct buf *out, size_t start)
{
    for (size_t i = start; i + 2 < out->len; i++) {
        if (out->data[i] == '\n' || out->data[i] == '\r') {
            out->data[i] = ' ';
        }
    }
}
