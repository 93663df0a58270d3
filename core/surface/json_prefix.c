/* A JSON object that comes in pieces and may never become one. */
#include "surface/json_prefix.h"

#include "base/check.h"

#include <string.h>

enum prefix_state {
    PREFIX_BEFORE,    /* nothing has come */
    PREFIX_FIRST_KEY, /* or the end of the object */
    PREFIX_KEY,       /* behind a comma */
    PREFIX_COLON,
    PREFIX_FIRST_VALUE, /* of an array, or its end */
    PREFIX_VALUE,
    PREFIX_TEXT,
    PREFIX_ESCAPE, /* behind its backslash */
    PREFIX_HEX,
    PREFIX_WORD, /* true, false, null */
    PREFIX_MINUS,
    PREFIX_ZERO, /* which no digit may follow */
    PREFIX_INTEGER,
    PREFIX_POINT,
    PREFIX_FRACTION,
    PREFIX_E,
    PREFIX_E_SIGN,
    PREFIX_EXPONENT,
    PREFIX_NEXT, /* a comma, or an end */
    PREFIX_AFTER
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool in_array(const struct json_prefix *prefix)
{
    return (prefix->arrays >> (prefix->depth - 1) & 1) != 0;
}

static bool go(struct json_prefix *prefix, enum prefix_state state)
{
    prefix->state = (int)state;
    return true;
}

static bool open(struct json_prefix *prefix, bool is_array)
{
    if (prefix->depth == JSON_PREFIX_DEPTH_MAX) {
        return false;
    }
    uint64_t bit = UINT64_C(1) << prefix->depth++;
    prefix->arrays = is_array ? prefix->arrays | bit : prefix->arrays & ~bit;
    return go(prefix, is_array ? PREFIX_FIRST_VALUE : PREFIX_FIRST_KEY);
}

static bool close(struct json_prefix *prefix, char c)
{
    if (c != (in_array(prefix) ? ']' : '}')) {
        return false;
    }
    prefix->depth--;
    return go(prefix, prefix->depth == 0 ? PREFIX_AFTER : PREFIX_NEXT);
}

static bool text_begin(struct json_prefix *prefix, bool is_key)
{
    prefix->is_key = is_key;
    return go(prefix, PREFIX_TEXT);
}

static bool word_begin(struct json_prefix *prefix, const char *rest)
{
    prefix->word = rest;
    return go(prefix, PREFIX_WORD);
}

static bool value_begin(struct json_prefix *prefix, char c)
{
    switch (c) {
    case '{':
    case '[':
        return open(prefix, c == '[');
    case '"':
        return text_begin(prefix, false);
    case 't':
        return word_begin(prefix, "rue");
    case 'f':
        return word_begin(prefix, "alse");
    case 'n':
        return word_begin(prefix, "ull");
    case '-':
        return go(prefix, PREFIX_MINUS);
    default:
        return is_digit(c) && go(prefix, c == '0' ? PREFIX_ZERO : PREFIX_INTEGER);
    }
}

static bool next_take(struct json_prefix *prefix, char c)
{
    return c == ',' ? go(prefix, in_array(prefix) ? PREFIX_VALUE : PREFIX_KEY) : close(prefix, c);
}

/* ---- within texts, words and numbers: every byte counts ---- */

static bool text_take(struct json_prefix *prefix, char c)
{
    if (prefix->state == PREFIX_ESCAPE) {
        prefix->left = 4;
        return c != '\0' && strchr("\"\\/bfnrtu", c) != NULL &&
               go(prefix, c == 'u' ? PREFIX_HEX : PREFIX_TEXT);
    }
    if (prefix->state == PREFIX_HEX) {
        return is_hex(c) && go(prefix, --prefix->left == 0 ? PREFIX_TEXT : PREFIX_HEX);
    }
    if (c == '"') {
        return go(prefix, prefix->is_key ? PREFIX_COLON : PREFIX_NEXT);
    }
    return (unsigned char)c >= 0x20 && go(prefix, c == '\\' ? PREFIX_ESCAPE : PREFIX_TEXT);
}

static bool word_take(struct json_prefix *prefix, char c)
{
    if (c != *prefix->word) {
        return false;
    }
    prefix->word++;
    return go(prefix, *prefix->word == '\0' ? PREFIX_NEXT : PREFIX_WORD);
}

/* What may follow within a number: false where it is none of the number's. */
static bool number_take(struct json_prefix *prefix, char c)
{
    int state = prefix->state;
    bool in_integer = state == PREFIX_ZERO || state == PREFIX_INTEGER;
    if (is_digit(c)) {
        return state == PREFIX_MINUS      ? go(prefix, c == '0' ? PREFIX_ZERO : PREFIX_INTEGER)
               : state == PREFIX_ZERO     ? false
               : state == PREFIX_INTEGER  ? true
               : state == PREFIX_POINT    ? go(prefix, PREFIX_FRACTION)
               : state == PREFIX_FRACTION ? true
                                          : go(prefix, PREFIX_EXPONENT);
    }
    if (c == '.') {
        return in_integer && go(prefix, PREFIX_POINT);
    }
    if (c == 'e' || c == 'E') {
        return (in_integer || state == PREFIX_FRACTION) && go(prefix, PREFIX_E);
    }
    return (c == '+' || c == '-') && state == PREFIX_E && go(prefix, PREFIX_E_SIGN);
}

static bool number_is_whole(const struct json_prefix *prefix)
{
    return prefix->state == PREFIX_ZERO || prefix->state == PREFIX_INTEGER ||
           prefix->state == PREFIX_FRACTION || prefix->state == PREFIX_EXPONENT;
}

/* ---- all ---- */

/* Between texts, words and numbers, where white space may stand. */
static bool structure_take(struct json_prefix *prefix, char c)
{
    switch (prefix->state) {
    case PREFIX_BEFORE:
        return c == '{' && open(prefix, false);
    case PREFIX_FIRST_KEY:
        return is_space(c) || (c == '"' ? text_begin(prefix, true) : close(prefix, c));
    case PREFIX_KEY:
        return is_space(c) || (c == '"' && text_begin(prefix, true));
    case PREFIX_COLON:
        return is_space(c) || (c == ':' && go(prefix, PREFIX_VALUE));
    case PREFIX_FIRST_VALUE:
        return is_space(c) || (c == ']' ? close(prefix, c) : value_begin(prefix, c));
    case PREFIX_VALUE:
        return is_space(c) || value_begin(prefix, c);
    case PREFIX_NEXT:
        return is_space(c) || next_take(prefix, c);
    default:
        return false; /* it has ended */
    }
}

bool json_prefix_take(struct json_prefix *prefix, char c)
{
    if (prefix->state >= PREFIX_TEXT && prefix->state <= PREFIX_HEX) {
        return text_take(prefix, c);
    }
    if (prefix->state == PREFIX_WORD) {
        return word_take(prefix, c);
    }
    if (prefix->state >= PREFIX_MINUS && prefix->state <= PREFIX_EXPONENT) {
        return number_take(prefix, c) ||
               (number_is_whole(prefix) &&
                (is_space(c) ? go(prefix, PREFIX_NEXT) : next_take(prefix, c)));
    }
    return structure_take(prefix, c);
}

bool json_prefix_has_begun(const struct json_prefix *prefix)
{
    return prefix->state != PREFIX_BEFORE;
}

bool json_prefix_has_ended(const struct json_prefix *prefix)
{
    return prefix->state == PREFIX_AFTER;
}

/* The next byte on the shortest way to the end. */
static char byte_missing(const struct json_prefix *prefix)
{
    switch (prefix->state) {
    case PREFIX_ESCAPE:
        return '\\';
    case PREFIX_KEY:
    case PREFIX_TEXT:
        return '"';
    case PREFIX_COLON:
        return ':';
    case PREFIX_VALUE:
        return 'n'; /* null */
    case PREFIX_WORD:
        return *prefix->word;
    case PREFIX_HEX:
    case PREFIX_MINUS:
    case PREFIX_POINT:
    case PREFIX_E:
    case PREFIX_E_SIGN:
        return '0';
    default:
        return in_array(prefix) ? ']' : '}';
    }
}

void json_prefix_complete(struct json_prefix prefix, struct buf *out)
{
    CHECK(json_prefix_has_begun(&prefix));
    while (!json_prefix_has_ended(&prefix)) {
        char c = byte_missing(&prefix);
        bool is_taken = json_prefix_take(&prefix, c);
        CHECK(is_taken);
        (void)buf_putc(out, c); /* at most some hundred bytes: the depth is bounded */
    }
}
