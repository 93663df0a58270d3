/* Growing bytes, UTF-8 and JSON strings. Pure functions over (pointer, length). */
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPLACEMENT "\xEF\xBF\xBD"

void text_clear(struct text *text)
{
    free(text->data);
    *text = (struct text){.max = text->max};
}

void text_reset(struct text *text)
{
    text->len = 0;
    text->cut = false;
}

static bool text_grow(struct text *text, size_t len)
{
    size_t max = text->max != 0 ? text->max : TEXT_MAX_DEFAULT;
    if (len > max || text->len > max - len) {
        return false;
    }
    size_t need = text->len + len;
    if (need <= text->cap) {
        return true;
    }
    size_t cap = text->cap < 512 ? 512 : text->cap;
    while (cap < need) {
        cap *= 2;
    }
    char *data = realloc(text->data, cap);
    if (data == NULL) {
        return false;
    }
    text->data = data;
    text->cap = cap;
    return true;
}

bool text_append(struct text *text, const void *data, size_t len)
{
    if (text->cut || !text_grow(text, len)) {
        text->cut = true;
        return false;
    }
    if (len > 0) {
        memcpy(text->data + text->len, data, len);
    }
    text->len += len;
    return true;
}

bool text_puts(struct text *text, const char *string)
{
    return text_append(text, string, strlen(string));
}

size_t character_length(const char *data, size_t left)
{
    const unsigned char *u = (const unsigned char *)data;
    if (left == 0) {
        return 0;
    }
    if (u[0] < 0x80) {
        return 1;
    }
    size_t len = u[0] >= 0xC2 && u[0] <= 0xDF   ? 2
                 : u[0] >= 0xE0 && u[0] <= 0xEF ? 3
                 : u[0] >= 0xF0 && u[0] <= 0xF4 ? 4
                                                : 0;
    if (len == 0 || left < len) {
        return 0;
    }
    unsigned low = u[0] == 0xE0 ? 0xA0 : u[0] == 0xF0 ? 0x90 : 0x80;
    unsigned high = u[0] == 0xED ? 0x9F : u[0] == 0xF4 ? 0x8F : 0xBF;
    if (u[1] < low || u[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < len; i++) {
        if ((u[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    return len;
}

size_t text_fitting(const char *data, size_t len, size_t max)
{
    if (len <= max) {
        return len;
    }
    size_t at = max;
    while (at > 0 && max - at < 3 && ((unsigned char)data[at] & 0xC0) == 0x80) {
        at--;
    }
    return at;
}

/* Bytes that could still become a character with more to come: 0 to 3 of them. */
static size_t unfinished_length(const char *data, size_t len)
{
    static const char fill[3] = {'\x80', '\x80', '\x80'};
    char trial[8];
    if (len == 0 || len > 3) {
        return 0;
    }
    for (size_t more = 1; len + more <= 4; more++) {
        memcpy(trial, data, len);
        memcpy(trial + len, fill, more);
        if (len == 1 && more >= 1) { /* the second byte has its own bounds after E0, F0 */
            trial[1] = data[0] == '\xE0' ? '\xA0' : data[0] == '\xF0' ? '\x90' : '\x80';
        }
        if (character_length(trial, len + more) == len + more) {
            return len;
        }
    }
    return 0;
}

/* Appends what is well formed, U+FFFD for the rest; stops before an unfinished character at the end. Returns the bytes
 * taken. */
static size_t decode(const char *data, size_t len, struct text *out)
{
    size_t at = 0, from = 0;
    while (at < len) {
        size_t step = character_length(data + at, len - at);
        if (step == 0) {
            text_append(out, data + from, at - from);
            if (unfinished_length(data + at, len - at) != 0) {
                return at;
            }
            text_puts(out, REPLACEMENT);
            from = ++at;
        } else {
            at += step;
        }
    }
    text_append(out, data + from, at - from);
    return at;
}

void decoder_feed(struct decoder *decoder, const char *data, size_t len, struct text *out)
{
    /* The bytes left over, with as many new ones as a character can need. */
    while (decoder->left_len > 0 && len > 0) {
        char joined[8];
        size_t old = decoder->left_len, more = len < 4 ? len : 4;
        memcpy(joined, decoder->left, old);
        memcpy(joined + old, data, more);
        size_t step = character_length(joined, old + more);
        if (step == 0 && unfinished_length(joined, old + more) != 0) {
            memcpy(decoder->left, joined, old + more);
            decoder->left_len = old + more;
            return;
        }
        decoder->left_len = 0;
        if (step >= old && step > 0) {
            text_append(out, joined, step);
            data += step - old;
            len -= step - old;
        } else {
            /* It never was a character. Its first byte stands for one; the others are none either. */
            for (size_t i = 0; i < old; i++) {
                text_puts(out, REPLACEMENT);
            }
        }
    }
    size_t taken = decode(data, len, out);
    if (taken < len) {
        memcpy(decoder->left, data + taken, len - taken);
        decoder->left_len = len - taken;
    }
}

void decoder_end(struct decoder *decoder, struct text *out)
{
    if (decoder->left_len > 0) {
        text_puts(out, REPLACEMENT);
        decoder->left_len = 0;
    }
}

static const char *json_escape(unsigned char c, char buffer[8])
{
    switch (c) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    default:
        snprintf(buffer, 8, "\\u%04x", c);
        return buffer;
    }
}

bool text_put_json(struct text *text, const char *data, size_t len)
{
    size_t from = 0, at = 0;
    char buffer[8];
    if (len == 0) {
        return true; /* then `data` may be NULL */
    }
    while (at < len) {
        unsigned char c = (unsigned char)data[at];
        size_t step = character_length(data + at, len - at);
        if (step == 0 || c < 0x20 || c == '"' || c == '\\' || c == 0x7F) {
            text_append(text, data + from, at - from);
            text_puts(text, step == 0 ? REPLACEMENT : json_escape(c, buffer));
            from = at + 1;
            step = 1;
        }
        at += step;
    }
    return text_append(text, data + from, at - from);
}
