/* Growing bytes. A buffer that is all zero is valid and empty; `data` is always ended by a NUL once anything was
 * appended, which `len` does not count. Appending fails only at `max` (set it before use; 0: BUF_MAX_DEFAULT): then
 * `overflow` is set, nothing more is taken, and the owner asks once at the end. Running out of memory for more
 * than BUF_SMALL_MAX counts as overflow too; for less it ends the process, as any small allocation does, since nobody asks
 * a buffer that holds a line whether it could. */
#ifndef SANDGATE_BASE_BUF_H
#define SANDGATE_BASE_BUF_H

#include "base/str.h"

#include <stdarg.h>
#include <stdint.h>

#define BUF_MAX_DEFAULT ((size_t)1 << 30)
#define BUF_SMALL_MAX ((size_t)64 << 10)

struct buf {
    char *data;
    size_t len, cap, max;
    bool overflow;
};

#define BUF_CLEANUP __attribute__((cleanup(buf_clear)))

/* Frees the bytes and makes it empty again; `max` stays. */
void buf_clear(struct buf *);

/* Empties it and keeps the memory. */
void buf_reset(struct buf *);

/* All return false where `overflow` is or becomes set. */
bool buf_append(struct buf *, const void *data, size_t len);
bool buf_append_str(struct buf *, struct str);
bool buf_puts(struct buf *, const char *text);
bool buf_putc(struct buf *, char c);
bool buf_printf(struct buf *, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool buf_vprintf(struct buf *, const char *format, va_list) __attribute__((format(printf, 2, 0)));

/* Room for `len` more bytes at data + len; the caller then adds what it wrote to len by buf_commit(). */
char *buf_reserve(struct buf *, size_t len);
void buf_commit(struct buf *, size_t len);

/* Drops the first `len` bytes, moving the rest down. */
void buf_consume(struct buf *, size_t len);

/* Appends text as a JSON string with its quotes: control characters, quotes and backslashes are escaped; bytes that are
 * not UTF-8 become U+FFFD, so that what we author is always valid JSON. */
bool buf_put_json(struct buf *, struct str text);
/* Only the inside of such a string. */
bool buf_put_json_inner(struct buf *, struct str text);

static inline struct str buf_str(const struct buf *b)
{
    return (struct str){b->data, b->len};
}

#endif
