/* One pass over the text that copies what is fine in long pieces and puts something else for what is not. It knows strings
 * from the rest and how deep it is, nothing more: whether it is JSON is found by who reads it. */
#include "lenient.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define DEPTH_MAX 60 /* json_text.h reads 64; some levels are left for what the value is put into */

struct pass {
    const char *at, *end;
    const char *from; /* what is not copied yet */
    struct text *out;
    unsigned depth;
};

static void copy_so_far(struct pass *p)
{
    text_put(p->out, p->from, (size_t)(p->at - p->from));
    p->from = p->at;
}

/* Puts `text` in place of the next `len` bytes. */
static void replace(struct pass *p, size_t len, const char *text)
{
    copy_so_far(p);
    text_puts(p->out, text);
    p->at = p->out->overflow ? p->end : p->at + len; /* what does not fit is not read either */
    p->from = p->at;
}

/* ---- strings ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* The number behind \u at p; -1 if that is not what stands there. */
static int32_t unicode_at(const char *p, const char *end)
{
    if (end - p < 6 || p[0] != '\\' || p[1] != 'u') {
        return -1;
    }
    int32_t value = 0;
    for (int i = 2; i < 6; i++) {
        int digit = hex_digit(p[i]);
        if (digit < 0) {
            return -1;
        }
        value = value << 4 | digit;
    }
    return value;
}

/* Bytes of the escape at p that can stay; 0 if it cannot. */
static size_t escape_length(const char *p, const char *end)
{
    int32_t value = unicode_at(p, end);
    if (value < 0) {
        bool is_short = end - p >= 2 && p[1] != '\0' && strchr("\"\\/bfnrt", p[1]) != NULL;
        return is_short ? 2 : 0;
    }
    if (value < 0xD800 || value > 0xDFFF) {
        return 6;
    }
    int32_t low = value < 0xDC00 ? unicode_at(p + 6, end) : -1;
    return low >= 0xDC00 && low <= 0xDFFF ? 12 : 0;
}

static void replace_in_string(struct pass *p)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char c = (unsigned char)*p->at;
    if (c == '\\' && unicode_at(p->at, p->end) < 0) {
        replace(p, 1, "\\\\");
    } else if (c == '\\') {
        replace(p, 6, "\\ufffd");
    } else if (c < 0x20) {
        char escape[] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15], '\0'};
        replace(p, 1, escape);
    } else {
        replace(p, 1, "\\ufffd");
    }
}

/* From the opening quote to behind the closing one. */
static void pass_string(struct pass *p)
{
    p->at++;
    while (p->at < p->end && *p->at != '"') {
        size_t fine = 0;
        if (*p->at == '\\') {
            fine = escape_length(p->at, p->end);
        } else if ((unsigned char)*p->at >= 0x20) {
            fine = text_character(p->at, (size_t)(p->end - p->at));
        }
        if (fine > 0) {
            p->at += fine;
        } else {
            replace_in_string(p);
        }
    }
    p->at += p->at < p->end;
}

/* ---- the rest ---- */

static size_t string_length(const char *p, const char *end)
{
    const char *at = p + 1;
    while (at < end && *at != '"') {
        at += *at == '\\' && end - at >= 2 ? 2 : 1;
    }
    return (size_t)(at - p) + (at < end);
}

size_t lenient_nested_length(const char *json, const char *end)
{
    size_t level = 0;
    const char *at = json;
    while (at < end) {
        if (*at == '"') {
            at += string_length(at, end);
            continue;
        }
        level += *at == '{' || *at == '[';
        level -= *at == '}' || *at == ']';
        at++;
        if (level == 0) {
            break;
        }
    }
    return (size_t)(at - json);
}

static void pass_opening(struct pass *p)
{
    if (p->depth == DEPTH_MAX) {
        replace(p, lenient_nested_length(p->at, p->end), "null");
        return;
    }
    p->depth++;
    p->at++;
}

static void pass_word(struct pass *p)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity", "-NaN"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t len = strlen(words[i]);
        if ((size_t)(p->end - p->at) >= len && memcmp(p->at, words[i], len) == 0) {
            replace(p, len, "null");
            return;
        }
    }
    p->at++;
}

void lenient_put(struct text *out, const char *json, size_t len)
{
    struct pass pass = {.at = json, .end = json + len, .from = json, .out = out};
    while (pass.at < pass.end) {
        switch (*pass.at) {
        case '"':
            pass_string(&pass);
            break;
        case '{':
        case '[':
            pass_opening(&pass);
            break;
        case '}':
        case ']':
            pass.depth -= pass.depth > 0;
            pass.at++;
            break;
        case 'N':
        case 'I':
        case '-':
            pass_word(&pass);
            break;
        default:
            pass.at++;
        }
    }
    copy_so_far(&pass);
}
