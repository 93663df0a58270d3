/* Reading what json_scan() has checked: walking ranges, decoding text and numbers, finding members. */
#include "base/json.h"

#include "base/check.h"
#include "base/json_string.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>

enum { KEYS_COMPARED_MAX = 24 }; /* so many are compared pair by pair, more are sorted */

enum json_type json_type_of(char first)
{
    switch (first) {
    case '{':
        return JSON_OBJECT;
    case '[':
        return JSON_ARRAY;
    case '"':
        return JSON_STRING;
    case 't':
        return JSON_TRUE;
    case 'f':
        return JSON_FALSE;
    case 'n':
        return JSON_NULL;
    default:
        return JSON_NUMBER;
    }
}

/* ---- walking ---- */

static const char *space_skip(const char *p, const char *end)
{
    while (p < end && json_is_space(*p)) {
        p++;
    }
    return p;
}

/* Past the array or object at p. */
static const char *nested_skip(const char *p, const char *end)
{
    size_t depth = 0;
    for (;;) {
        char c = *p;
        if (c == '"') {
            p = json_string_skip(p, end);
            continue;
        }
        p++;
        if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            if (--depth == 0) {
                return p;
            }
        }
    }
}

static const char *value_skip(const char *p, const char *end)
{
    if (*p == '"') {
        return json_string_skip(p, end);
    }
    if (*p == '{' || *p == '[') {
        return nested_skip(p, end);
    }
    while (p < end && *p != ',' && *p != ']' && *p != '}' && !json_is_space(*p)) {
        p++;
    }
    return p;
}

struct json_walk json_walk_of(struct json_value value)
{
    CHECK(value.type == JSON_ARRAY || value.type == JSON_OBJECT);
    CHECK(value.raw.len >= 2);
    return (struct json_walk){value.raw.data + 1, value.raw.data + value.raw.len - 1};
}

/* Goes on from a value's end to what follows its comma. */
static void walk_pass(struct json_walk *walk, const char *stop)
{
    walk->at = space_skip(stop, walk->end);
    walk->at += walk->at < walk->end && *walk->at == ',';
}

/* Reads the value at `at` and goes on to what follows its comma. */
static struct json_value walk_take(struct json_walk *walk, const char *at)
{
    const char *stop = value_skip(at, walk->end);
    walk_pass(walk, stop);
    return (struct json_value){json_type_of(*at), {at, (size_t)(stop - at)}};
}

bool json_walk_element(struct json_walk *walk, struct json_value *ret)
{
    const char *at = space_skip(walk->at, walk->end);
    if (at == walk->end) {
        return false;
    }
    *ret = walk_take(walk, at);
    return true;
}

bool json_walk_member(struct json_walk *walk, struct str *ret_key_raw, struct json_value *ret)
{
    const char *key = space_skip(walk->at, walk->end);
    if (key == walk->end || *key == '}') {
        walk->at = key;
        return false;
    }
    const char *at = json_string_skip(key, walk->end);
    *ret_key_raw = (struct str){key, (size_t)(at - key)};
    at = space_skip(at, walk->end) + 1; /* the colon */
    *ret = walk_take(walk, space_skip(at, walk->end));
    return true;
}

bool json_walk_enter(struct json_walk *walk, struct json_walk *ret_inner)
{
    walk->at = space_skip(walk->at, walk->end);
    if (walk->at == walk->end || *walk->at != '{') {
        return false;
    }
    *ret_inner = (struct json_walk){walk->at + 1, walk->end};
    return true;
}

void json_walk_leave(struct json_walk *walk, const struct json_walk *inner)
{
    CHECK(inner->at < walk->end);
    CHECK(*inner->at == '}');
    walk_pass(walk, inner->at + 1);
}

struct json_value *json_elements(struct json_value array, struct arena *arena, size_t *ret_count)
{
    CHECK(array.type == JSON_ARRAY);
    size_t count = 0, cap = 0;
    struct json_value *elements = NULL, element;
    struct json_walk walk = json_walk_of(array);
    while (json_walk_element(&walk, &element)) {
        if (count == cap) {
            cap = cap == 0 ? 8 : cap * 2;
            struct json_value *more = check_alloc(arena_alloc(arena, cap * sizeof *more));
            if (count > 0) {
                memcpy(more, elements, count * sizeof *more);
            }
            elements = more;
        }
        elements[count++] = element;
    }
    *ret_count = count;
    return elements;
}

/* ---- text ---- */

static uint32_t hex4_of(const char *p)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        unsigned char c = (unsigned char)p[i];
        value = value << 4 | (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return value;
}

/* The character of the \u escape at p; moves p past it, and past the second half of a pair. */
static uint32_t unicode_take(const char **p, const char *end)
{
    uint32_t c = hex4_of(*p + 2);
    *p += 6;
    if (c < 0xD800 || c > 0xDFFF) {
        return c;
    }
    if (c < 0xDC00 && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u') {
        uint32_t low = hex4_of(*p + 2);
        if (low >= 0xDC00 && low <= 0xDFFF) {
            *p += 6;
            return 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
        }
    }
    return 0xFFFD; /* a half alone */
}

char json_escaped(char c)
{
    switch (c) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return c;
    }
}

/* Decodes the inside of a checked string to `out`, which has room for as many bytes: no escape grows. */
static size_t inside_decode(struct str inside, char *out)
{
    const char *p = inside.data, *end = p + inside.len;
    char *o = out;
    while (p < end) {
        const char *next = memchr(p, '\\', (size_t)(end - p));
        size_t plain = (size_t)((next == NULL ? end : next) - p);
        memcpy(o, p, plain);
        o += plain;
        p += plain;
        if (p == end) {
            break;
        }
        if (p[1] == 'u') {
            o += utf8_put(o, unicode_take(&p, end));
        } else {
            *o++ = json_escaped(p[1]);
            p += 2;
        }
    }
    return (size_t)(o - out);
}

static struct str inside_of(struct str raw)
{
    CHECK(raw.len >= 2);
    return (struct str){raw.data + 1, raw.len - 2};
}

static struct str text_decode(struct str raw, struct arena *arena)
{
    struct str inside = inside_of(raw);
    if (inside.len == 0 || memchr(inside.data, '\\', inside.len) == NULL) {
        return inside;
    }
    char *out = check_alloc(arena_alloc(arena, inside.len));
    return (struct str){out, inside_decode(inside, out)};
}

struct str json_text_of(struct json_value string, struct arena *arena)
{
    CHECK(string.type == JSON_STRING);
    return text_decode(string.raw, arena);
}

bool json_key_is(struct str key_raw, const char *name)
{
    struct str inside = inside_of(key_raw), wanted = str_of(name);
    if (inside.len == 0 || memchr(inside.data, '\\', inside.len) == NULL) {
        return str_eq(inside, wanted);
    }
    char decoded[256];
    if (inside.len > sizeof decoded || wanted.len * 6 < inside.len) {
        return false; /* too long for that name, however it is escaped */
    }
    return str_eq((struct str){decoded, inside_decode(inside, decoded)}, wanted);
}

bool json_int_of(struct json_value number, int64_t *ret)
{
    struct str raw = number.raw;
    if (number.type != JSON_NUMBER) {
        return false;
    }
    bool negative = raw.data[0] == '-';
    int64_t value = 0; /* kept negative, which reaches further */
    for (size_t i = negative; i < raw.len; i++) {
        if (raw.data[i] < '0' || raw.data[i] > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, raw.data[i] - '0', &value)) {
            return false;
        }
    }
    if (!negative && value == INT64_MIN) {
        return false;
    }
    *ret = negative ? value : -value;
    return true;
}

/* ---- members ---- */

static int compare_keys(const void *a, const void *b)
{
    const struct json_member *one = *(const struct json_member *const *)a;
    const struct json_member *other = *(const struct json_member *const *)b;
    if (one->key.len != other->key.len) {
        return one->key.len < other->key.len ? -1 : 1;
    }
    return one->key.len == 0 ? 0 : memcmp(one->key.data, other->key.data, one->key.len);
}

static const struct json_member *duplicate_of_few(const struct json_member *members, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (str_eq(members[i].key, members[j].key)) {
                return &members[i];
            }
        }
    }
    return NULL;
}

/* A member whose name another one has; of many sorted by name, so that a hostile object costs n log n. */
static const struct json_member *duplicate_find(const struct json_member *members, size_t count,
                                                struct arena *arena)
{
    if (count <= KEYS_COMPARED_MAX) {
        return duplicate_of_few(members, count);
    }
    const struct json_member **sorted = check_alloc(arena_alloc(arena, count * sizeof(void *)));
    for (size_t i = 0; i < count; i++) {
        sorted[i] = &members[i];
    }
    qsort(sorted, count, sizeof(void *), compare_keys);
    for (size_t i = 1; i < count; i++) {
        if (compare_keys(&sorted[i - 1], &sorted[i]) == 0) {
            return sorted[i];
        }
    }
    return NULL;
}

int json_keys_decode(struct json_member *members, size_t count, const char *where,
                     struct arena *arena, struct sg_error *err)
{
    for (size_t i = 0; i < count; i++) {
        members[i].key = text_decode(members[i].key_raw, arena);
    }
    const struct json_member *twice = duplicate_find(members, count, arena);
    if (twice == NULL) {
        return SG_OK;
    }
    int len = (int)utf8_cut(twice->key, 64);
    if (where[0] == '\0') {
        char param[80];
        (void)snprintf(param, sizeof param, "%.*s", len, twice->key.data); /* cut is fine */
        return error_set_param(err, SG_E_INVALID, param, "duplicate key '%s'", param);
    }
    return error_set_param(err, SG_E_INVALID, where, "duplicate key '%.*s' in %s", len,
                           twice->key.data, where);
}

/* Room for one more; small objects, which are most, fit at once. */
static struct json_member *members_room(struct json_member *members, size_t count, size_t *cap,
                                        struct arena *arena)
{
    if (count < *cap) {
        return members;
    }
    *cap = *cap == 0 ? 8 : *cap * 4;
    struct json_member *more = arena_alloc(arena, *cap * sizeof *more);
    if (more != NULL && count > 0) {
        memcpy(more, members, count * sizeof *more);
    }
    return more;
}

int json_members(struct json_value object, const char *where, struct arena *arena,
                 struct json_member **ret_members, size_t *ret_count, struct sg_error *err)
{
    CHECK(object.type == JSON_OBJECT);
    size_t count = 0, cap = 0;
    struct json_member *members = NULL, member = {0};
    struct json_walk walk = json_walk_of(object);
    while (json_walk_member(&walk, &member.key_raw, &member.value)) {
        if (count == LIMIT_JSON_MEMBERS) {
            return error_set_param(err, SG_E_INVALID, where, "more than %d members in %s",
                                   LIMIT_JSON_MEMBERS, where);
        }
        members = members_room(members, count, &cap, arena);
        if (members == NULL) {
            return error_set(err, SG_E_LIMIT, "no memory for the members of %s", where);
        }
        members[count++] = member;
    }
    int code = json_keys_decode(members, count, where, arena, err);
    if (code != SG_OK) {
        return code;
    }
    *ret_members = members;
    *ret_count = count;
    return SG_OK;
}

const struct json_member *json_find(const struct json_member *members, size_t count,
                                    const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (str_is(members[i].key, name)) {
            return &members[i];
        }
    }
    return NULL;
}

const struct json_member *json_find_type(const struct json_member *members, size_t count,
                                         const char *name, enum json_type type)
{
    const struct json_member *member = json_find(members, count, name);
    return member != NULL && member->value.type == type ? member : NULL;
}

struct str json_find_text(const struct json_member *members, size_t count, const char *name,
                          struct arena *arena)
{
    const struct json_member *member = json_find_type(members, count, name, JSON_STRING);
    return member == NULL ? (struct str){0} : json_text_of(member->value, arena);
}
