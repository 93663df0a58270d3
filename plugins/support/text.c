/* Growing text, JSON strings and the clock: what several of the shipped plugins need. */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TEXT_MAX_DEFAULT ((size_t)64 * 1024 * 1024)

void text_clear(struct text *t)
{
    free(t->data);
    *t = (struct text){.max = t->max};
}

static bool make_room(struct text *t, size_t len)
{
    size_t max = t->max == 0 ? TEXT_MAX_DEFAULT : t->max;
    if (t->overflow || len > max - t->len) {
        t->overflow = true;
        return false;
    }
    if (t->len + len + 1 <= t->cap) {
        return true;
    }
    size_t cap = t->cap < 128 ? 256 : t->cap * 2;
    while (cap < t->len + len + 1) {
        cap *= 2;
    }
    char *data = realloc(t->data, cap);
    if (data == NULL) {
        t->overflow = true;
        return false;
    }
    t->data = data;
    t->cap = cap;
    return true;
}

void text_put(struct text *t, const void *data, size_t len)
{
    if (make_room(t, len)) {
        if (len > 0) {
            memcpy(t->data + t->len, data, len);
        }
        t->len += len;
        t->data[t->len] = '\0';
    }
}

void text_puts(struct text *t, const char *string)
{
    text_put(t, string, strlen(string));
}

void text_printf(struct text *t, const char *format, ...)
{
    char small[512];
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(small, sizeof small, format, arguments);
    va_end(arguments);
    if (len < 0) {
        t->overflow = true;
    } else if ((size_t)len < sizeof small) {
        text_put(t, small, (size_t)len);
    } else if (make_room(t, (size_t)len)) {
        va_start(arguments, format);
        vsnprintf(t->data + t->len, (size_t)len + 1, format, arguments);
        va_end(arguments);
        t->len += (size_t)len;
    }
}

size_t text_character(const char *p, size_t left)
{
    const unsigned char *u = (const unsigned char *)p;
    if (left == 0) {
        return 0;
    }
    if (u[0] < 0x80) {
        return 1;
    }
    size_t want = u[0] < 0xC2 || u[0] > 0xF4 ? 0 : u[0] < 0xE0 ? 2 : u[0] < 0xF0 ? 3 : 4;
    if (want == 0 || want > left) {
        return 0;
    }
    unsigned char low = u[0] == 0xE0 ? 0xA0 : u[0] == 0xF0 ? 0x90 : 0x80;
    unsigned char high = u[0] == 0xED ? 0x9F : u[0] == 0xF4 ? 0x8F : 0xBF;
    for (size_t i = 1; i < want; i++) {
        if (u[i] < low || u[i] > high) {
            return 0;
        }
        low = 0x80;
        high = 0xBF;
    }
    return want;
}

size_t text_cut(const char *data, size_t len, size_t max)
{
    if (len <= max) {
        return len;
    }
    while (max > 0 && ((unsigned char)data[max] & 0xC0) == 0x80) {
        max--;
    }
    return max;
}

static void put_escaped(struct text *t, unsigned char c)
{
    static const char plain[] = "\"\\\n\r\t", letters[] = "\"\\nrt";
    const char *found = c == 0 ? NULL : strchr(plain, c);
    if (found != NULL) {
        char pair[2] = {'\\', letters[found - plain]};
        text_put(t, pair, 2);
    } else {
        text_printf(t, "\\u%04x", c);
    }
}

void text_json(struct text *t, const char *data, size_t len)
{
    if (len == 0) { /* data may be NULL then */
        text_puts(t, "\"\"");
        return;
    }
    text_put(t, "\"", 1);
    size_t from = 0, at = 0;
    while (at < len) {
        size_t character = text_character(data + at, len - at);
        unsigned char c = (unsigned char)data[at];
        if (character > 0 && c >= 0x20 && c != '"' && c != '\\') {
            at += character;
            continue;
        }
        text_put(t, data + from, at - from);
        if (character == 0) {
            text_puts(t, "\xEF\xBF\xBD");
        } else {
            put_escaped(t, c);
        }
        from = ++at;
    }
    text_put(t, data + from, at - from);
    text_put(t, "\"", 1);
}

long long clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
