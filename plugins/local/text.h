/* Growing bytes and what is done with text from a box: decoding that never fails, JSON that is always valid. */
#ifndef LOCAL_TEXT_H
#define LOCAL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero is empty. What goes beyond `max` (0: TEXT_MAX_DEFAULT) is dropped and `cut` is set; so is what the system
 * has no memory for. */
struct text {
    char *data;
    size_t len, cap, max;
    bool cut;
};
#define TEXT_MAX_DEFAULT ((size_t)1 << 26)

void text_clear(struct text *);                                /* frees; `max` stays */
void text_reset(struct text *);                                /* empties, keeps the memory */
bool text_append(struct text *, const void *data, size_t len); /* all or nothing */
bool text_puts(struct text *, const char *);

/* Appends as the inside of a JSON string; bytes that are not UTF-8 as U+FFFD. */
bool text_put_json(struct text *, const char *data, size_t len);

/* Decodes a stream that comes in pieces: what is not UTF-8 becomes U+FFFD, a character that is cut by the end of a piece
 * waits for the next. */
struct decoder {
    char left[4];
    size_t left_len;
};
void decoder_feed(struct decoder *, const char *data, size_t len, struct text *out);
void decoder_end(struct decoder *, struct text *out); /* a character that never got whole */

/* Bytes of the well-formed character at the start, or 0. */
size_t character_length(const char *, size_t left);

/* The longest start of at most `max` bytes that cuts no character. */
size_t text_fitting(const char *, size_t len, size_t max);

#endif
