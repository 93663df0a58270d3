/* Growing text. All zero is valid and empty. Once anything was appended, `data` is ended by a NUL that `len` does not
 * count. Beyond `max` (0: 64 MiB), or without memory, nothing more is taken and `overflow` is set: ask once at the end. */
#ifndef PLUGINS_SUPPORT_TEXT_H
#define PLUGINS_SUPPORT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text {
    char *data;
    size_t len, cap, max;
    bool overflow;
};

#define TEXT_CLEANUP __attribute__((cleanup(text_clear)))

void text_clear(struct text *);
void text_put(struct text *, const void *data, size_t len);
void text_puts(struct text *, const char *string);
void text_printf(struct text *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As a JSON string with its quotes; what is not UTF-8 becomes U+FFFD. */
void text_json(struct text *, const char *data, size_t len);

/* The longest start of at most `max` bytes that cuts no character in two. */
size_t text_cut(const char *data, size_t len, size_t max);

/* Bytes of the UTF-8 character at p, 0 if there is none. */
size_t text_character(const char *p, size_t left);

/* Milliseconds of the monotonic clock. */
long long clock_ms(void);

#endif
