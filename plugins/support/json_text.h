/* Reading small JSON: the arguments of a call, and the events of a run. Strict (RFC 8259), without a tree, in
 * constant memory, and with lengths, so that a NUL from \u0000 cuts nothing short. */
#ifndef PLUGINS_SUPPORT_JSON_TEXT_H
#define PLUGINS_SUPPORT_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_value { /* its bytes within the text, from the first to the last */
    const char *data;
    size_t len;
};

struct json_reader {
    const char *start, *at, *end;
    bool begun;
    const char *problem; /* set where the text is not one JSON object; then `at` is the place */
};

struct json_reader json_reader_of(const char *text, size_t len);

/* The next member of the object. False at the end or at a problem: what was read so far counts only if `problem` is
 * then NULL. `ret_key` is the string with its quotes. */
bool json_next(struct json_reader *, struct json_value *ret_key, struct json_value *ret_value);

/* The next element of an array, likewise. */
bool json_next_element(struct json_reader *, struct json_value *ret_value);

/* True if a string (with its quotes) decodes to exactly `text`. */
bool json_string_is(struct json_value string, const char *text);

static inline bool json_is_string(struct json_value value)
{
    return value.len >= 2 && value.data[0] == '"';
}

static inline bool json_is_object(struct json_value value)
{
    return value.len >= 2 && value.data[0] == '{';
}

static inline bool json_is_array(struct json_value value)
{
    return value.len >= 2 && value.data[0] == '[';
}

static inline bool json_is_null(struct json_value value)
{
    return value.len == 4 && value.data[0] == 'n';
}

/* What stands between a string's quotes, for json_decode(). */
static inline struct json_value json_inside(struct json_value string)
{
    return (struct json_value){string.data + 1, string.len - 2};
}

/* Decodes the start of *rest into `out` (at most `room` bytes, at least 4), moves *rest behind it and returns the bytes
 * written; 0 once *rest is empty. No decoded character is cut in two that came as one escape. A lone surrogate becomes
 * U+FFFD. The whole takes at most as many bytes as it is written with. */
size_t json_decode(struct json_value *rest, char *out, size_t room);

/* The value as a whole number of at most 15 digits; false if it is none. */
bool json_int(struct json_value, int64_t *ret);

/* The members of an object that have these names: values[i] for names[i], {NULL, 0} where absent, the last where there
 * are several. False if the text is not one JSON object. */
bool json_find(const char *text, size_t len, const char *const *names,
               struct json_value *ret_values, size_t count);

#endif
