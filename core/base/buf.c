/* Growing bytes, and text written as JSON. */
#include "base/buf.h"

#include "base/check.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>

void buf_clear(struct buf *b)
{
    free(b->data);
    *b = (struct buf){.max = b->max};
}

void buf_reset(struct buf *b)
{
    b->len = 0;
    b->overflow = false;
    if (b->data != NULL) {
        b->data[0] = '\0';
    }
}

char *buf_reserve(struct buf *b, size_t len)
{
    size_t max = b->max != 0 ? b->max : BUF_MAX_DEFAULT;
    if (b->overflow || len > max || b->len > max - len) {
        b->overflow = true;
        return NULL;
    }
    size_t needed = b->len + len + 1;
    if (needed > b->cap) {
        size_t cap = b->cap < 64 ? 64 : b->cap;
        while (cap < needed) {
            cap += cap / 2;
        }
        char *data = realloc(b->data, cap);
        if (data == NULL) {
            if (cap <= BUF_SMALL_MAX) {
                check_out_of_memory();
            }
            b->overflow = true;
            return NULL;
        }
        b->data = data;
        b->cap = cap;
    }
    return b->data + b->len;
}

void buf_commit(struct buf *b, size_t len)
{
    CHECK(b->len + len < b->cap);
    b->len += len;
    b->data[b->len] = '\0';
}

bool buf_append(struct buf *b, const void *data, size_t len)
{
    char *room = buf_reserve(b, len);
    if (room == NULL) {
        return false;
    }
    if (len > 0) {
        memcpy(room, data, len);
    }
    buf_commit(b, len);
    return true;
}

bool buf_append_str(struct buf *b, struct str text)
{
    return buf_append(b, text.data, text.len);
}

bool buf_puts(struct buf *b, const char *text)
{
    return buf_append(b, text, strlen(text));
}

bool buf_putc(struct buf *b, char c)
{
    return buf_append(b, &c, 1);
}

bool buf_vprintf(struct buf *b, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int len = vsnprintf(NULL, 0, format, arguments);
    CHECK(len >= 0);
    char *room = buf_reserve(b, (size_t)len);
    if (room != NULL) {
        (void)vsnprintf(room, (size_t)len + 1, format, again); /* measured above */
        buf_commit(b, (size_t)len);
    }
    va_end(again);
    return room != NULL;
}

bool buf_printf(struct buf *b, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    bool done = buf_vprintf(b, format, arguments);
    va_end(arguments);
    return done;
}

void buf_consume(struct buf *b, size_t len)
{
    CHECK(len <= b->len);
    if (len == 0) {
        return;
    }
    memmove(b->data, b->data + len, b->len - len);
    b->len -= len;
    b->data[b->len] = '\0';
}

/* The escape for one control character, quote or backslash. */
static bool put_escape(struct buf *b, unsigned char c)
{
    switch (c) {
    case '"':
        return buf_append(b, "\\\"", 2);
    case '\\':
        return buf_append(b, "\\\\", 2);
    case '\n':
        return buf_append(b, "\\n", 2);
    case '\r':
        return buf_append(b, "\\r", 2);
    case '\t':
        return buf_append(b, "\\t", 2);
    case '\b':
        return buf_append(b, "\\b", 2);
    case '\f':
        return buf_append(b, "\\f", 2);
    default: { /* without printf, which takes ten times as long: a text may be nothing else */
        static const char digits[] = "0123456789abcdef";
        const char text[] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15]};
        return buf_append(b, text, sizeof text);
    }
    }
}

bool buf_put_json_inner(struct buf *b, struct str text)
{
    size_t done = 0, i = 0;
    while (i < text.len) {
        unsigned char c = (unsigned char)text.data[i];
        if (c >= 0x20 && c != '"' && c != '\\' && c < 0x80) {
            i++;
            continue;
        }
        size_t length = c < 0x80 ? 0 : utf8_length(text.data + i, text.len - i);
        if (length > 0) {
            i += length;
            continue;
        }
        (void)buf_append(b, text.data + done, i - done); /* overflow is asked for at the end */
        (void)(c < 0x80 ? put_escape(b, c) : buf_append(b, "\xEF\xBF\xBD", 3));
        done = ++i;
    }
    return i == done ? !b->overflow : buf_append(b, text.data + done, i - done);
}

bool buf_put_json(struct buf *b, struct str text)
{
    (void)buf_putc(b, '"');
    (void)buf_put_json_inner(b, text);
    return buf_putc(b, '"');
}
