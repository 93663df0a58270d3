/* The strict, linear check of a whole JSON text: RFC 8259 grammar, UTF-8, depth. No recursion: the open arrays and
 * objects are bits of a small stack. On the way the members of the top-level object are noted. */
#include "base/json.h"

#include "base/check.h"
#include "base/json_string.h"
#include "base/limits.h"
#include "base/utf8.h"

enum step { STEP_VALUE, STEP_KEY, STEP_AFTER, STEP_DONE, STEP_FAILED };

struct scanner {
    const char *start, *at, *end;
    unsigned depth;
    uint64_t is_object[LIMIT_JSON_DEPTH / 64]; /* a bit for each open array or object */
    struct json_text *text;
    size_t members_cap;
    struct arena *arena;
    struct sg_error *err;
};

_Static_assert(LIMIT_JSON_DEPTH % 64 == 0, "the stack is made of whole words");

static enum step scan_fail(struct scanner *s, const char *at, const char *what)
{
    error_set(s->err, SG_E_INVALID, "invalid JSON at byte %zu: %s", (size_t)(at - s->start), what);
    return STEP_FAILED;
}

static void skip_space(struct scanner *s)
{
    while (s->at < s->end && json_is_space(*s->at)) {
        s->at++;
    }
}

static bool in_object(const struct scanner *s)
{
    unsigned top = s->depth - 1;
    return s->is_object[top / 64] >> (top % 64) & 1;
}

static bool is_hex4(const char *p)
{
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))) {
            return false;
        }
    }
    return true;
}

/* Past the escape whose backslash stands at p; NULL if it is none. */
static const char *escape_end(const char *p, const char *end)
{
    if (end - p < 2) {
        return NULL;
    }
    switch (p[1]) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return p + 2;
    case 'u':
        return end - p >= 6 && is_hex4(p + 2) ? p + 6 : NULL;
    default:
        return NULL;
    }
}

/* Past the special byte at p, or NULL with the failure described. */
static const char *special_pass(struct scanner *s, const char *p)
{
    unsigned char c = (unsigned char)*p;
    if (c == '\\') {
        const char *next = escape_end(p, s->end);
        if (next == NULL) {
            (void)scan_fail(s, p, "not an escape sequence of JSON"); /* NULL says it */
        }
        return next;
    }
    if (c < 0x20) {
        (void)scan_fail(s, p, "a control character in a string must be escaped");
        return NULL;
    }
    while (p < s->end && (unsigned char)*p >= 0x80) {
        size_t length = utf8_length(p, (size_t)(s->end - p));
        if (length == 0) {
            (void)scan_fail(s, p, "not UTF-8");
            return NULL;
        }
        p += length;
    }
    return p;
}

/* The string at `at`, a quote. */
static bool scan_string(struct scanner *s)
{
    const char *opening = s->at, *p = opening + 1;
    for (;;) {
        p = json_special_find(p, s->end);
        if (p == s->end) {
            (void)scan_fail(s, opening, "the string has no closing quote");
            return false;
        }
        if (*p == '"') {
            s->at = p + 1;
            return true;
        }
        p = special_pass(s, p);
        if (p == NULL) {
            return false;
        }
    }
}

static const char *digits_end(const char *p, const char *end)
{
    while (p < end && *p >= '0' && *p <= '9') {
        p++;
    }
    return p;
}

static enum step scan_number(struct scanner *s)
{
    const char *p = s->at + (*s->at == '-'), *whole = p;
    p = digits_end(p, s->end);
    if (p == whole) {
        return scan_fail(s, p, "a digit is missing");
    }
    if (*whole == '0' && p - whole > 1) {
        return scan_fail(s, whole, "a number must not start with 0");
    }
    if (p < s->end && *p == '.') {
        const char *fraction = ++p;
        p = digits_end(p, s->end);
        if (p == fraction) {
            return scan_fail(s, p, "a digit is missing after the decimal point");
        }
    }
    if (p < s->end && (*p == 'e' || *p == 'E')) {
        p++;
        p += p < s->end && (*p == '+' || *p == '-');
        const char *exponent = p;
        p = digits_end(p, s->end);
        if (p == exponent) {
            return scan_fail(s, p, "a digit is missing in the exponent");
        }
    }
    s->at = p;
    return STEP_AFTER;
}

static enum step scan_literal(struct scanner *s, struct str word)
{
    if ((size_t)(s->end - s->at) < word.len || memcmp(s->at, word.data, word.len) != 0) {
        return scan_fail(s, s->at, "expected a value");
    }
    s->at += word.len;
    return STEP_AFTER;
}

static enum step scan_open(struct scanner *s, bool object)
{
    if (s->depth == LIMIT_JSON_DEPTH) {
        error_set(s->err, SG_E_INVALID, "JSON at byte %zu: nested deeper than %d levels",
                  (size_t)(s->at - s->start), LIMIT_JSON_DEPTH);
        return STEP_FAILED;
    }
    uint64_t bit = UINT64_C(1) << (s->depth % 64), *word = &s->is_object[s->depth / 64];
    *word = object ? *word | bit : *word & ~bit;
    s->depth++;
    s->at++;
    skip_space(s);
    if (s->at < s->end && *s->at == (object ? '}' : ']')) {
        s->at++;
        s->depth--;
        return STEP_AFTER;
    }
    return object ? STEP_KEY : STEP_VALUE;
}

static enum step scan_value(struct scanner *s)
{
    skip_space(s);
    if (s->at == s->end) {
        return scan_fail(s, s->at, "the text ends where a value is expected");
    }
    switch (*s->at) {
    case '"':
        return scan_string(s) ? STEP_AFTER : STEP_FAILED;
    case '{':
        return scan_open(s, true);
    case '[':
        return scan_open(s, false);
    case 't':
        return scan_literal(s, STR("true"));
    case 'f':
        return scan_literal(s, STR("false"));
    case 'n':
        return scan_literal(s, STR("null"));
    default:
        if (*s->at == '-' || (*s->at >= '0' && *s->at <= '9')) {
            return scan_number(s);
        }
        return scan_fail(s, s->at,
                         (unsigned char)*s->at >= 0x80 &&
                                 utf8_length(s->at, (size_t)(s->end - s->at)) == 0
                             ? "not UTF-8"
                             : "expected a value");
    }
}

/* A member of the top-level object begins: its key has just been read. */
static bool member_begin(struct scanner *s, struct str key_raw)
{
    struct json_text *text = s->text;
    if (text->count == LIMIT_JSON_MEMBERS) {
        error_set(s->err, SG_E_INVALID, "JSON at byte %zu: more than %d members in one object",
                  (size_t)(key_raw.data - s->start), LIMIT_JSON_MEMBERS);
        return false;
    }
    if (text->count == s->members_cap) {
        size_t cap = s->members_cap == 0 ? 16 : s->members_cap * 2;
        struct json_member *members = arena_alloc(s->arena, cap * sizeof *members);
        if (members == NULL) {
            error_set(s->err, SG_E_LIMIT, "no memory for the members of the JSON text");
            return false;
        }
        if (text->count > 0) {
            memcpy(members, text->members, text->count * sizeof *members);
        }
        text->members = members;
        s->members_cap = cap;
    }
    text->members[text->count].key_raw = key_raw;
    text->members[text->count].value.raw.data = s->at;
    text->count++;
    return true;
}

static enum step scan_key(struct scanner *s)
{
    skip_space(s);
    const char *key = s->at;
    if (key == s->end || *key != '"') {
        return scan_fail(s, key, "expected a key in quotes");
    }
    if (!scan_string(s)) {
        return STEP_FAILED;
    }
    size_t key_len = (size_t)(s->at - key);
    skip_space(s);
    if (s->at == s->end || *s->at != ':') {
        return scan_fail(s, s->at, "expected ':' after the key");
    }
    s->at++;
    skip_space(s);
    if (s->depth == 1 && !member_begin(s, (struct str){key, key_len})) {
        return STEP_FAILED;
    }
    return STEP_VALUE;
}

/* A value has ended: what follows it. */
static enum step scan_after(struct scanner *s)
{
    if (s->depth == 0) {
        return STEP_DONE;
    }
    bool object = in_object(s);
    if (s->depth == 1 && object) {
        struct json_value *value = &s->text->members[s->text->count - 1].value;
        value->raw.len = (size_t)(s->at - value->raw.data);
        value->type = json_type_of(value->raw.data[0]);
    }
    skip_space(s);
    char c = s->at == s->end ? '\0' : *s->at;
    if (c == ',') {
        s->at++;
        return object ? STEP_KEY : STEP_VALUE;
    }
    if (c == (object ? '}' : ']')) {
        s->at++;
        s->depth--;
        return STEP_AFTER;
    }
    return scan_fail(s, s->at, object ? "expected ',' or '}'" : "expected ',' or ']'");
}

static enum step scan_whole(struct scanner *s)
{
    enum step step = STEP_VALUE;
    while (step < STEP_DONE) {
        switch (step) {
        case STEP_VALUE:
            step = scan_value(s);
            break;
        case STEP_KEY:
            step = scan_key(s);
            break;
        default:
            step = scan_after(s);
            break;
        }
    }
    return step;
}

int json_scan(struct str text, struct arena *arena, struct json_text *ret, struct sg_error *err)
{
    CHECK(arena != NULL);
    static const char nothing[] = "";
    const char *start = text.data != NULL ? text.data : nothing;
    struct json_text result = {.raw = text};
    struct scanner s = {.start = start,
                        .at = start,
                        .end = start + text.len,
                        .text = &result,
                        .arena = arena,
                        .err = err};
    if (str_starts(text, STR("\xEF\xBB\xBF"))) {
        (void)scan_fail(&s, start, "a byte order mark; leave it out");
        return err->code;
    }
    skip_space(&s);
    result.root.raw.data = s.at;
    if (scan_whole(&s) == STEP_FAILED) {
        return err->code;
    }
    result.root.raw.len = (size_t)(s.at - result.root.raw.data);
    result.root.type = json_type_of(result.root.raw.data[0]);
    skip_space(&s);
    if (s.at != s.end) {
        (void)scan_fail(&s, s.at, "more text after the value");
        return err->code;
    }
    int code = json_keys_decode(result.members, result.count, "", arena, err);
    if (code != SG_OK) {
        return code;
    }
    *ret = result;
    return SG_OK;
}
