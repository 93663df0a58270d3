/* Calls in answers of Chat Completions: in pieces, with numbers that clash, ids that are missing, names that come late. */
#include "translate/hear_chat.h"

#include "base/check.h"
#include "base/json.h"
#include "surface/reported.h"

#include <string.h>

enum { NAME_BYTES_MAX = 256 };
#define OLD_CALL INT64_MAX /* the number of a call in the older form: no other has it */

struct piece { /* of a call */
    bool has_index, is_custom;
    int64_t index;
    struct str id, name;
    const struct json_member *arguments;
};

/* Does the piece go on with this call? An id that is another one than that of the index begins a call: some servers number
 * all of them 0. So does another name behind arguments, where there are no ids. */
static bool goes_on(const struct heard_call *call, const struct piece *piece, bool is_last)
{
    bool is_known = call->id.len > 0 && !call->is_made;
    bool is_same_id = piece->id.len > 0 && is_known && str_eq(call->id, piece->id);
    if ((piece->id.len > 0 && is_known && !is_same_id) ||
        (piece->has_index && call->has_index && call->index != piece->index)) {
        return false;
    }
    bool begins = piece->name.len > 0 && call->has_arguments && !is_same_id &&
                  !(piece->has_index && str_eq(call->name, piece->name));
    return !begins && (piece->has_index || is_same_id || is_last);
}

/* The call that a piece belongs to: by its index; where there is none, by its id; a piece with neither goes on with the
 * last. */
static size_t call_find(const struct hearing *h, const struct piece *piece)
{
    for (size_t i = h->calls_count; i > 0; i--) {
        if (goes_on(&h->calls[i - 1], piece, i == h->calls_count)) {
            return i - 1;
        }
    }
    return h->calls_count;
}

static int call_tell(struct hearing *h, size_t index, struct sg_error *err)
{
    struct heard_call *call = &h->calls[index];
    if (call->is_told) {
        return SG_OK;
    }
    call->is_told = true;
    if (call->id.len == 0) {
        call->is_made = true;
        call->id = str_of(arena_printf(h->arena, "call_%.40s_%zu", h->id, index + 1));
    }
    struct said said = {.kind = SAID_CALL,
                        .call = index,
                        .id = call->id,
                        .name = call->name,
                        .is_custom = call->is_custom};
    return hearing_say(h, &said, err);
}

int hearing_calls_tell(struct hearing *h, size_t count, struct sg_error *err)
{
    int code = SG_OK;
    for (size_t i = 0; code == SG_OK && i < count; i++) {
        code = call_tell(h, i, err);
    }
    return code;
}

/* Id and name may come late, and a name in pieces; some servers say all of it in every piece. Once arguments have come
 * both are whole. */
static int call_grow(struct hearing *h, struct heard_call *call, const struct piece *piece,
                     struct sg_error *err)
{
    size_t len = call->name.len + piece->name.len;
    if (call->is_told) {
        return SG_OK;
    }
    call->is_custom = call->is_custom || piece->is_custom;
    if (call->id.len == 0 && piece->id.len > 0) {
        call->id = (struct str){check_alloc(arena_copy(h->arena, piece->id)), piece->id.len};
        h->kept += piece->id.len;
    }
    if (piece->name.len > 0 && !str_eq(call->name, piece->name)) {
        if (len > NAME_BYTES_MAX) { /* cut, it could be that of another tool */
            return error_set(err, SG_E_UNAVAILABLE,
                             "The upstream calls a tool by a name of more than %d bytes",
                             NAME_BYTES_MAX);
        }
        char *name = check_alloc(arena_alloc(h->arena, len));
        if (call->name.len > 0) {
            memcpy(name, call->name.data, call->name.len);
        }
        memcpy(name + call->name.len, piece->name.data, piece->name.len);
        call->name = (struct str){name, len};
        h->kept += len;
    }
    return SG_OK;
}

/* Text; or an object, which is the whole. */
static int arguments_say(struct hearing *h, struct arena *scratch, size_t call,
                         const struct json_member *arguments, struct sg_error *err)
{
    if (arguments == NULL || arguments->value.type == JSON_NULL) {
        return SG_OK;
    }
    struct str text = arguments->value.type == JSON_STRING ? json_text_of(arguments->value, scratch)
                                                           : arguments->value.raw;
    if (text.len == 0 || (arguments->value.type == JSON_OBJECT && h->calls[call].has_arguments)) {
        return SG_OK;
    }
    h->calls[call].has_arguments = true;
    int code = hearing_calls_tell(h, call + 1, err);
    return code == SG_OK
               ? hearing_say(h, &(struct said){.kind = SAID_ARGUMENTS, .call = call, .text = text},
                             err)
               : code;
}

bool hearing_index_read(struct arena *scratch, const struct json_member *members, size_t count,
                        int64_t *ret)
{
    int64_t index = -1;
    said_number_read(scratch, members, count, "index", &index);
    if (index >= 0) {
        *ret = index;
    }
    return index >= 0;
}

static int piece_read(struct arena *scratch, struct json_value value, struct piece *ret,
                      struct sg_error *err)
{
    struct json_member *members, *inner = NULL;
    size_t count, inner_count = 0;
    int code = json_members(value, "a call", scratch, &members, &count, err);
    if (code != SG_OK) {
        return not_understood(err);
    }
    const struct json_member *custom = json_find_type(members, count, "custom", JSON_OBJECT);
    const struct json_member *function =
        custom != NULL ? custom : json_find_type(members, count, "function", JSON_OBJECT);
    if (function != NULL &&
        json_members(function->value, "a call", scratch, &inner, &inner_count, err) != SG_OK) {
        return not_understood(err);
    }
    *ret = (struct piece){.is_custom = custom != NULL,
                          .id = json_find_text(members, count, "id", scratch),
                          .name = json_find_text(inner, inner_count, "name", scratch)};
    ret->has_index = hearing_index_read(scratch, members, count, &ret->index);
    ret->arguments = json_find(inner, inner_count, custom != NULL ? "input" : "arguments");
    return SG_OK;
}

static int piece_take(struct hearing *h, struct arena *scratch, const struct piece *piece,
                      struct sg_error *err)
{
    size_t call = call_find(h, piece);
    if (call == h->calls_count) {
        if (call == CALLS_MAX) {
            return error_set(err, SG_E_UNAVAILABLE, "The upstream made more than %d calls",
                             CALLS_MAX);
        }
        h->calls[h->calls_count++] =
            (struct heard_call){.has_index = piece->has_index, .index = piece->index};
    }
    int code = call_grow(h, &h->calls[call], piece, err);
    return code == SG_OK ? arguments_say(h, scratch, call, piece->arguments, err) : code;
}

static int call_take(struct hearing *h, struct arena *scratch, struct json_value value,
                     int64_t place, bool is_whole, struct sg_error *err)
{
    struct piece piece = {0};
    if (value.type != JSON_OBJECT) {
        return SG_OK;
    }
    int code = piece_read(scratch, value, &piece, err);
    if (code != SG_OK) {
        return code;
    }
    if (is_whole) {
        piece.has_index = true;
        piece.index = place;
    }
    return piece_take(h, scratch, &piece, err);
}

int hearing_old_call_take(struct hearing *h, struct arena *scratch, const struct json_member *call,
                          struct sg_error *err)
{
    struct json_member *members;
    size_t count;
    if (call == NULL || call->value.type != JSON_OBJECT) {
        return SG_OK;
    }
    if (json_members(call->value, "a call", scratch, &members, &count, err) != SG_OK) {
        return not_understood(err);
    }
    const struct piece piece = {.has_index = true,
                                .index = OLD_CALL,
                                .name = json_find_text(members, count, "name", scratch),
                                .arguments = json_find(members, count, "arguments")};
    return piece_take(h, scratch, &piece, err);
}

int hearing_calls_take(struct hearing *h, struct arena *scratch, const struct json_member *calls,
                       bool is_whole, struct sg_error *err)
{
    struct json_value value;
    int code = SG_OK;
    if (calls == NULL || calls->value.type != JSON_ARRAY) {
        return SG_OK;
    }
    struct json_walk walk = json_walk_of(calls->value);
    for (int64_t i = 0; code == SG_OK && json_walk_element(&walk, &value); i++) {
        code = call_take(h, scratch, value, i, is_whole, err);
    }
    return code;
}
