/* A service's text made fit to be shown and told: one pass over the decoded string, character by character. */
#include "search_answer.h"

#include <string.h>

#define TAG_MAX 512
#define ENTITY_MAX 10

struct clean {
    const char *at, *end;
    struct text *out;
    size_t start, max;
    bool is_html, wants_space, is_full;
};

/* What was written so far gives way to the mark where that has no room otherwise. */
static void cut(struct clean *c)
{
    static const char mark[] = "\xE2\x80\xA6";
    size_t mark_len = c->max < sizeof mark - 1 ? 0 : sizeof mark - 1;
    if (c->out->data != NULL) {
        c->out->len =
            c->start + text_cut(c->out->data + c->start, c->out->len - c->start, c->max - mark_len);
        text_put(c->out, mark, mark_len);
    }
    c->is_full = true;
}

/* With the space that stood in front. */
static void put(struct clean *c, const char *data, size_t len)
{
    size_t used = c->out->len - c->start, space = c->wants_space && used > 0;
    if (used + space + len > c->max) {
        cut(c);
        return;
    }
    text_put(c->out, " ", space);
    text_put(c->out, data, len);
    c->wants_space = false;
}

static uint32_t code_point(const char *p, size_t len)
{
    const unsigned char *u = (const unsigned char *)p;
    uint32_t value = len == 1   ? u[0]
                     : len == 2 ? u[0] & 0x1Fu
                     : len == 3 ? u[0] & 0x0Fu
                                : u[0] & 7u;
    for (size_t i = 1; i < len; i++) {
        value = value << 6 | (u[i] & 0x3Fu);
    }
    return value;
}

static bool is_space(uint32_t c)
{
    return c <= 0x20 || c == 0x7F || (c >= 0x80 && c <= 0xA0) || c == 0x2028 || c == 0x2029;
}

/* What is not seen and yet changes how the rest is read: marks of direction, tags, a byte order mark. */
static bool is_hidden(uint32_t c)
{
    return c == 0xAD || c == 0x200B || (c >= 0x200E && c <= 0x200F) ||
           (c >= 0x202A && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF ||
           (c >= 0xFFF9 && c <= 0xFFFB) || (c >= 0xE0000 && c <= 0xE007F);
}

static void put_character(struct clean *c, const char *data, size_t len)
{
    uint32_t character = code_point(data, len);
    if (is_space(character)) {
        c->wants_space = true;
    } else if (!is_hidden(character)) {
        put(c, data, len);
    }
}

static bool is_letter(char c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

/* The length of a tag at hand; 0 if there is none. */
static size_t tag_length(const struct clean *c)
{
    size_t left = (size_t)(c->end - c->at);
    bool begins = left >= 3 && (is_letter(c->at[1]) || c->at[1] == '/' || c->at[1] == '!');
    const char *close = begins ? memchr(c->at, '>', left < TAG_MAX ? left : TAG_MAX) : NULL;
    return close == NULL ? 0 : (size_t)(close - c->at) + 1;
}

/* Words on both sides of a tag of a paragraph are two words; <b> and <strong> may stand within one. */
static bool tag_parts(const char *tag)
{
    const char *name = tag + 1 + (tag[1] == '/');
    return strncmp(name, "br", 2) == 0 || strncmp(name, "p>", 2) == 0 ||
           strncmp(name, "li", 2) == 0 || strncmp(name, "div", 3) == 0;
}

static size_t encode(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t len = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = len; i > 1; i--, c >>= 6) {
        out[i - 1] = (char)(0x80 | (c & 0x3F));
    }
    out[0] = (char)(first[len] | c);
    return len;
}

/* "#39" or "#x27"; 0 if it is none. */
static uint32_t number_of(const char *name, size_t len)
{
    bool is_hex = len > 2 && (name[1] | 0x20) == 'x';
    uint32_t value = 0;
    for (size_t i = is_hex ? 2 : 1; i < len; i++) {
        char c = (char)(name[i] | 0x20);
        bool is_digit = name[i] >= '0' && name[i] <= '9';
        if (!is_digit && !(is_hex && c >= 'a' && c <= 'f')) {
            return 0;
        }
        value = value * (is_hex ? 16 : 10) + (uint32_t)(is_digit ? name[i] - '0' : c - 'a' + 10);
    }
    bool is_character = value <= 0x10FFFF && (value < 0xD800 || value > 0xDFFF);
    return is_character ? value : 0xFFFD;
}

static uint32_t named(const char *name, size_t len)
{
    static const struct {
        const char *name;
        uint32_t value;
    } names[] = {{"amp", '&'},      {"lt", '<'},       {"gt", '>'},        {"quot", '"'},
                 {"apos", '\''},    {"nbsp", 0xA0},    {"hellip", 0x2026}, {"ndash", 0x2013},
                 {"mdash", 0x2014}, {"lsquo", 0x2018}, {"rsquo", 0x2019},  {"ldquo", 0x201C},
                 {"rdquo", 0x201D}, {"middot", 0xB7}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i].name) == len && memcmp(names[i].name, name, len) == 0) {
            return names[i].value;
        }
    }
    return 0;
}

/* Takes "&amp;" and the like; false if there is none. */
static bool take_entity(struct clean *c)
{
    size_t left = (size_t)(c->end - c->at) - 1;
    const char *name = c->at + 1;
    const char *close = memchr(name, ';', left < ENTITY_MAX ? left : ENTITY_MAX);
    size_t len = close == NULL ? 0 : (size_t)(close - name);
    uint32_t value = len < 2 ? 0 : name[0] == '#' ? number_of(name, len) : named(name, len);
    if (value == 0) {
        return false;
    }
    char encoded[4];
    put_character(c, encoded, encode(value, encoded));
    c->at += len + 2;
    return true;
}

static void take(struct clean *c)
{
    size_t tag = c->is_html && *c->at == '<' ? tag_length(c) : 0;
    if (tag > 0) {
        c->wants_space = c->wants_space || tag_parts(c->at);
        c->at += tag;
        return;
    }
    if (c->is_html && *c->at == '&' && take_entity(c)) {
        return;
    }
    size_t len = text_character(c->at, (size_t)(c->end - c->at));
    if (len > 0) {
        put_character(c, c->at, len);
    } else {
        put(c, "\xEF\xBF\xBD", 3);
    }
    c->at += len > 0 ? len : 1;
}

void search_clean(struct text *out, struct json_value string, bool is_html, size_t max)
{
    TEXT_CLEANUP struct text decoded = {0};
    char piece[1024];
    struct json_value rest = json_inside(string);
    /* Tags and spaces take room that the result does not; beyond this the rest is cut. */
    while (rest.len > 0 && decoded.len < 16 * max) {
        size_t len = json_decode(&rest, piece, sizeof piece);
        text_put(&decoded, piece, len);
    }
    if (decoded.len == 0 || decoded.overflow) {
        return;
    }
    struct clean clean = {
        decoded.data, decoded.data + decoded.len, out, out->len, max, is_html, false, false};
    while (clean.at < clean.end && !clean.is_full) {
        take(&clean);
    }
}
