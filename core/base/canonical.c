/* JSON in one spelling. Recursion is bounded by the scan's depth. */
#include "base/canonical.h"

#include "base/check.h"
#include "base/json.h"

#include <stdlib.h>

enum { EXPONENT_DIGITS_MAX = 9 };

struct pair {
    struct str key; /* decoded */
    struct json_value value;
};

static void value_put(struct json_value value, struct arena *arena, struct buf *out);

static int pairs_compare(const void *a, const void *b)
{
    const struct pair *one = a, *other = b;
    size_t least = one->key.len < other->key.len ? one->key.len : other->key.len;
    int order = least == 0 ? 0 : memcmp(one->key.data, other->key.data, least);
    if (order == 0 && one->key.len != other->key.len) {
        return one->key.len < other->key.len ? -1 : 1;
    }
    if (order == 0) { /* the same name twice: as they stand in the text */
        return one->value.raw.data < other->value.raw.data ? -1 : 1;
    }
    return order;
}

static struct pair *pairs_list(struct json_value object, struct arena *arena, size_t *ret_count)
{
    struct json_walk walk = json_walk_of(object);
    struct json_value value;
    struct str key;
    size_t count = 0;
    while (json_walk_member(&walk, &key, &value)) {
        count++;
    }
    struct pair *pairs = check_alloc(arena_alloc(arena, (count + 1) * sizeof *pairs));
    walk = json_walk_of(object);
    for (size_t i = 0; i < count; i++) {
        (void)json_walk_member(&walk, &key, &pairs[i].value); /* counted above */
        pairs[i].key = json_text_of((struct json_value){JSON_STRING, key}, arena);
    }
    qsort(pairs, count, sizeof *pairs, pairs_compare);
    *ret_count = count;
    return pairs;
}

static void object_put(struct json_value object, struct arena *arena, struct buf *out)
{
    size_t count;
    struct pair *pairs = pairs_list(object, arena, &count);
    (void)buf_putc(out, '{'); /* overflow is the owner's to ask for, here and below */
    for (size_t i = 0; i < count; i++) {
        (void)buf_puts(out, i == 0 ? "" : ",");
        (void)buf_put_json(out, pairs[i].key);
        (void)buf_putc(out, ':');
        value_put(pairs[i].value, arena, out);
    }
    (void)buf_putc(out, '}');
}

static void array_put(struct json_value array, struct arena *arena, struct buf *out)
{
    struct json_walk walk = json_walk_of(array);
    struct json_value element;
    bool first = true;
    (void)buf_putc(out, '['); /* as above */
    while (json_walk_element(&walk, &element)) {
        (void)buf_puts(out, first ? "" : ",");
        value_put(element, arena, out);
        first = false;
    }
    (void)buf_putc(out, ']');
}

/* Reads from *at the digits of a number, a dot among them, into `digits`; how many stand behind the dot. */
static long digits_take(struct str raw, size_t *at, char *digits, size_t *ret_len)
{
    long behind = 0;
    bool dot = false;
    size_t len = 0;
    for (; *at < raw.len && raw.data[*at] != 'e' && raw.data[*at] != 'E'; (*at)++) {
        if (raw.data[*at] == '.') {
            dot = true;
        } else {
            digits[len++] = raw.data[*at];
            behind += dot;
        }
    }
    *ret_len = len;
    return behind;
}

/* The exponent that is written; false if it is absurd. */
static bool exponent_take(struct str raw, size_t at, long *ret)
{
    char text[EXPONENT_DIGITS_MAX + 2] = "0";
    size_t len = at < raw.len ? raw.len - at - 1 : 0;
    if (len >= sizeof text) {
        return false;
    }
    if (len > 0) {
        memcpy(text, raw.data + at + 1, len);
        text[len] = '\0';
    }
    *ret = strtol(text, NULL, 10);
    return true;
}

/* As DIGITSeEXPONENT without zeros at either end of the digits. */
static void number_put(struct str raw, struct arena *arena, struct buf *out)
{
    char *digits = check_alloc(arena_alloc(arena, raw.len + 1));
    size_t at = raw.data[0] == '-', len;
    long exponent, behind = digits_take(raw, &at, digits, &len);
    if (!exponent_take(raw, at, &exponent)) {
        (void)buf_append_str(out, raw); /* as above */
        return;
    }
    exponent -= behind;
    while (len > 0 && digits[len - 1] == '0') {
        len--;
        exponent++;
    }
    while (len > 0 && digits[0] == '0') {
        digits++;
        len--;
    }
    if (len == 0) {
        (void)buf_putc(out, '0');
        return;
    }
    (void)buf_puts(out, raw.data[0] == '-' ? "-" : "");
    (void)buf_append(out, digits, len);
    (void)buf_printf(out, "e%ld", exponent);
}

static void value_put(struct json_value value, struct arena *arena, struct buf *out)
{
    switch (value.type) {
    case JSON_OBJECT:
        object_put(value, arena, out);
        break;
    case JSON_ARRAY:
        array_put(value, arena, out);
        break;
    case JSON_STRING:
        (void)buf_put_json(out, json_text_of(value, arena)); /* as above */
        break;
    case JSON_NUMBER:
        number_put(value.raw, arena, out);
        break;
    default:
        (void)buf_append_str(out, value.raw); /* as above */
        break;
    }
}

bool json_canonical(struct str text, struct buf *out)
{
    struct arena *arena = arena_new(0);
    struct json_text scanned;
    struct sg_error err = {0};
    bool good = json_scan(text, arena, &scanned, &err) == SG_OK;
    if (good) {
        value_put(scanned.root, arena, out);
    }
    arena_free(arena);
    return good;
}
