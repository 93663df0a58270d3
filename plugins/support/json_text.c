/* The strict reader behind json_text.h: a recursive descent that only moves a pointer, with a bound on nesting because it
 * may run on a small stack. */
#include "json_text.h"

#include <string.h>

#define DEPTH_MAX 64

static bool skip_value(struct json_reader *r, unsigned depth);

struct json_reader json_reader_of(const char *text, size_t len)
{
    return (struct json_reader){.start = text, .at = text, .end = text + len};
}

static bool fail(struct json_reader *r, const char *problem)
{
    if (r->problem == NULL) {
        r->problem = problem;
    }
    return false;
}

static void skip_space(struct json_reader *r)
{
    while (r->at < r->end &&
           (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')) {
        r->at++;
    }
}

static bool next_is(struct json_reader *r, char c)
{
    skip_space(r);
    if (r->at < r->end && *r->at == c) {
        r->at++;
        return true;
    }
    return false;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static bool skip_escape(struct json_reader *r)
{
    r->at++; /* the backslash */
    if (r->at == r->end) {
        return fail(r, "the text ends within a string");
    }
    char c = *r->at++;
    if (c != 'u') {
        return strchr("\"\\/bfnrt", c) != NULL && c != '\0'
                   ? true
                   : fail(r, "an escape that JSON does not have");
    }
    for (int i = 0; i < 4; i++) {
        if (r->at == r->end || hex_digit(*r->at) < 0) {
            return fail(r, "\\u needs four hexadecimal digits");
        }
        r->at++;
    }
    return true;
}

static bool skip_string(struct json_reader *r)
{
    r->at++; /* the opening quote */
    while (r->at < r->end && *r->at != '"') {
        if (*r->at == '\n') {
            return fail(r, "a line break within a string must be written \\n");
        }
        if ((unsigned char)*r->at < 0x20) {
            return fail(r, "a control character within a string must be escaped");
        }
        if (*r->at == '\\') {
            if (!skip_escape(r)) {
                return false;
            }
        } else {
            r->at++;
        }
    }
    if (r->at == r->end) {
        return fail(r, "the text ends within a string");
    }
    r->at++;
    return true;
}

static size_t skip_digits(struct json_reader *r)
{
    const char *from = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9') {
        r->at++;
    }
    return (size_t)(r->at - from);
}

static bool skip_number(struct json_reader *r)
{
    r->at += *r->at == '-';
    bool zero = r->at < r->end && *r->at == '0';
    size_t digits = skip_digits(r);
    if (digits == 0 || (zero && digits > 1)) {
        return fail(r, "not a value");
    }
    if (r->at < r->end && *r->at == '.') {
        r->at++;
        if (skip_digits(r) == 0) {
            return fail(r, "a number needs digits behind its point");
        }
    }
    if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
        r->at++;
        if (r->at < r->end && (*r->at == '+' || *r->at == '-')) {
            r->at++;
        }
        if (skip_digits(r) == 0) {
            return fail(r, "a number needs digits in its exponent");
        }
    }
    return true;
}

static bool skip_word(struct json_reader *r, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) != 0) {
        return fail(r, "not a value");
    }
    r->at += len;
    return true;
}

static bool read_key(struct json_reader *r, struct json_value *ret)
{
    skip_space(r);
    if (r->at == r->end || *r->at != '"') {
        return fail(r, "expected a name in double quotes");
    }
    const char *from = r->at;
    if (!skip_string(r)) {
        return false;
    }
    *ret = (struct json_value){from, (size_t)(r->at - from)};
    return next_is(r, ':') || fail(r, "expected a colon");
}

static bool skip_object(struct json_reader *r, unsigned depth)
{
    r->at++;
    if (next_is(r, '}')) {
        return true;
    }
    do {
        struct json_value key;
        if (!read_key(r, &key) || !skip_value(r, depth + 1)) {
            return false;
        }
    } while (next_is(r, ','));
    return next_is(r, '}') || fail(r, "expected a comma or the end of an object");
}

static bool skip_array(struct json_reader *r, unsigned depth)
{
    r->at++;
    if (next_is(r, ']')) {
        return true;
    }
    do {
        if (!skip_value(r, depth + 1)) {
            return false;
        }
    } while (next_is(r, ','));
    return next_is(r, ']') || fail(r, "expected a comma or the end of an array");
}

static bool skip_value(struct json_reader *r, unsigned depth)
{
    skip_space(r);
    if (r->at == r->end) {
        return fail(r, "the text ends where a value should stand");
    }
    if (depth > DEPTH_MAX) {
        return fail(r, "nested too deeply");
    }
    switch (*r->at) {
    case '"':
        return skip_string(r);
    case '{':
        return skip_object(r, depth);
    case '[':
        return skip_array(r, depth);
    case 't':
        return skip_word(r, "true");
    case 'f':
        return skip_word(r, "false");
    case 'n':
        return skip_word(r, "null");
    default:
        return skip_number(r);
    }
}

/* Behind the last member or element: nothing may follow but white space. */
static bool end_text(struct json_reader *r, const char *more)
{
    skip_space(r);
    if (r->at < r->end) {
        return fail(r, more);
    }
    return false;
}

/* The value at hand, without the white space around it; something must follow it. */
static bool take_value(struct json_reader *r, struct json_value *ret, const char *unended)
{
    skip_space(r);
    const char *from = r->at;
    if (!skip_value(r, 2)) {
        return false;
    }
    const char *to = r->at;
    skip_space(r);
    if (r->at == r->end) {
        return fail(r, unended);
    }
    *ret = (struct json_value){from, (size_t)(to - from)};
    return true;
}

bool json_next(struct json_reader *r, struct json_value *ret_key, struct json_value *ret_value)
{
    if (r->problem != NULL || (r->begun && r->at == r->end)) {
        return false;
    }
    if (!r->begun) {
        if (!next_is(r, '{')) {
            return fail(r, r->at == r->end ? "the text is empty" : "not an object");
        }
        r->begun = true;
        if (next_is(r, '}')) {
            return end_text(r, "more text behind the object");
        }
    } else if (next_is(r, '}')) {
        return end_text(r, "more text behind the object");
    } else if (!next_is(r, ',')) {
        return fail(r, "expected a comma or the end of an object");
    }
    struct json_value key, value;
    if (!read_key(r, &key) || !take_value(r, &value, "the text ends within an object")) {
        return false;
    }
    *ret_key = key;
    *ret_value = value;
    return true;
}

bool json_next_element(struct json_reader *r, struct json_value *ret_value)
{
    if (r->problem != NULL || (r->begun && r->at == r->end)) {
        return false;
    }
    if (!r->begun) {
        if (!next_is(r, '[')) {
            return fail(r, r->at == r->end ? "the text is empty" : "not an array");
        }
        r->begun = true;
        if (next_is(r, ']')) {
            return end_text(r, "more text behind the array");
        }
    } else if (next_is(r, ']')) {
        return end_text(r, "more text behind the array");
    } else if (!next_is(r, ',')) {
        return fail(r, "expected a comma or the end of an array");
    }
    return take_value(r, ret_value, "the text ends within an array");
}

static uint32_t hex_four(const char *p)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        value = value << 4 | (uint32_t)hex_digit(p[i]);
    }
    return value;
}

static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xE0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3F));
        out[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3F));
    out[2] = (char)(0x80 | (c >> 6 & 0x3F));
    out[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

/* The character of a \u escape at *at (behind the u); moves *at behind it, and behind its second half if it has one. */
static uint32_t decode_unicode(const char **at, const char *end)
{
    uint32_t c = hex_four(*at);
    *at += 4;
    if (c < 0xD800 || c > 0xDFFF) {
        return c;
    }
    if (c < 0xDC00 && end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u') {
        uint32_t low = hex_four(*at + 2);
        if (low >= 0xDC00 && low <= 0xDFFF) {
            *at += 6;
            return 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
        }
    }
    return 0xFFFD;
}

size_t json_decode(struct json_value *rest, char *out, size_t room)
{
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *at = rest->data, *end = rest->data + rest->len;
    size_t len = 0;
    while (at < end && room - len >= 4) {
        if (*at != '\\') {
            out[len++] = *at++;
            continue;
        }
        at += 2;
        if (at[-1] == 'u') {
            len += put_utf8(out + len, decode_unicode(&at, end));
        } else {
            out[len++] = values[strchr(letters, at[-1]) - letters];
        }
    }
    *rest = (struct json_value){at, (size_t)(end - at)};
    return len;
}

bool json_string_is(struct json_value string, const char *text)
{
    char decoded[128];
    if (!json_is_string(string) || string.len > sizeof decoded - 4) {
        return false; /* no name that we look for is written so long */
    }
    struct json_value inside = json_inside(string);
    size_t len = json_decode(&inside, decoded, sizeof decoded);
    return len == strlen(text) && memcmp(decoded, text, len) == 0;
}

bool json_int(struct json_value value, int64_t *ret)
{
    size_t sign = value.len > 0 && value.data[0] == '-';
    if (value.len == sign || value.len > sign + 15) {
        return false;
    }
    int64_t number = 0;
    for (size_t i = sign; i < value.len; i++) {
        if (value.data[i] < '0' || value.data[i] > '9') {
            return false;
        }
        number = number * 10 + (value.data[i] - '0');
    }
    *ret = sign != 0 ? -number : number;
    return true;
}

bool json_find(const char *text, size_t len, const char *const *names,
               struct json_value *ret_values, size_t count)
{
    struct json_reader reader = json_reader_of(text, len);
    struct json_value key, value;
    memset(ret_values, 0, count * sizeof *ret_values);
    while (json_next(&reader, &key, &value)) {
        for (size_t i = 0; i < count; i++) {
            if (json_string_is(key, names[i])) {
                ret_values[i] = value;
            }
        }
    }
    return reader.problem == NULL;
}
