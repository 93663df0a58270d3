/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing beyond U+10FFFF. */
#ifndef SANDGATE_BASE_UTF8_H
#define SANDGATE_BASE_UTF8_H

#include "base/str.h"

#include <stdint.h>

/* Bytes of the well-formed character at p (1 to 4), or 0. */
static inline size_t utf8_length(const char *p, size_t left)
{
    const unsigned char *u = (const unsigned char *)p;
    if (left == 0) {
        return 0;
    }
    if (u[0] < 0x80) {
        return 1;
    }
    if (u[0] >= 0xC2 && u[0] <= 0xDF) {
        return left >= 2 && (u[1] & 0xC0) == 0x80 ? 2 : 0;
    }
    if (u[0] >= 0xE0 && u[0] <= 0xEF) {
        unsigned char low = u[0] == 0xE0 ? 0xA0 : 0x80, high = u[0] == 0xED ? 0x9F : 0xBF;
        return left >= 3 && u[1] >= low && u[1] <= high && (u[2] & 0xC0) == 0x80 ? 3 : 0;
    }
    if (u[0] >= 0xF0 && u[0] <= 0xF4) {
        unsigned char low = u[0] == 0xF0 ? 0x90 : 0x80, high = u[0] == 0xF4 ? 0x8F : 0xBF;
        return left >= 4 && u[1] >= low && u[1] <= high && (u[2] & 0xC0) == 0x80 &&
                       (u[3] & 0xC0) == 0x80
                   ? 4
                   : 0;
    }
    return 0;
}

bool utf8_valid(struct str);

/* Writes code point `c` (a scalar value) to out[4]; returns its bytes. */
size_t utf8_put(char out[4], uint32_t c);

/* The longest start of `text` of at most `max` bytes that cuts no character in two. */
size_t utf8_cut(struct str text, size_t max);

#endif
