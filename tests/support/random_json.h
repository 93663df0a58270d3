/* Random but repeatable JSON texts for property tests: deep, odd numbers, every escape, lone surrogates, white space
 * everywhere. The keys of an object differ. */
#ifndef TESTS_SUPPORT_RANDOM_JSON_H
#define TESTS_SUPPORT_RANDOM_JSON_H

#include "base/buf.h"

#include <stdint.h>
#include <stdio.h>

struct random {
    uint64_t state;
};

static inline uint32_t random_below(struct random *r, uint32_t bound)
{
    r->state = r->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((r->state >> 33) % bound);
}

static inline void random_space(struct random *r, struct buf *out)
{
    static const char spaces[] = {' ', '\n', '\r', '\t'};
    for (uint32_t i = random_below(r, 4) == 0 ? random_below(r, 4) : 0; i > 0; i--) {
        buf_putc(out, spaces[random_below(r, 4)]);
    }
}

static inline void random_string(struct random *r, struct buf *out, const char *prefix)
{
    static const char *const pieces[] = {"plain text of some length, more than sixteen bytes",
                                         "a",
                                         "\\n",
                                         "\\\"",
                                         "\\\\",
                                         "\\/",
                                         "\\b\\f\\r\\t",
                                         "\\u00e4",
                                         "\\ud83d\\ude00",
                                         "\\ud800",
                                         "\\udc00x",
                                         "\\uDBFF\\u0041",
                                         "\xC3\xA4",
                                         "\xE2\x82\xAC",
                                         "\xF0\x9F\x98\x80",
                                         "{",
                                         "]",
                                         ",",
                                         ":",
                                         "\\u0001",
                                         "\x7F",
                                         " "};
    buf_putc(out, '"');
    buf_puts(out, prefix);
    for (uint32_t i = random_below(r, 6); i > 0; i--) {
        buf_puts(out, pieces[random_below(r, sizeof pieces / sizeof pieces[0])]);
    }
    buf_putc(out, '"');
}

static inline void random_value(struct random *r, struct buf *out, unsigned depth);

static inline void random_nested(struct random *r, struct buf *out, unsigned depth, bool object)
{
    uint32_t count = random_below(r, 5);
    buf_putc(out, object ? '{' : '[');
    random_space(r, out);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0) {
            buf_putc(out, ',');
            random_space(r, out);
        }
        if (object) {
            char prefix[16];
            (void)snprintf(prefix, sizeof prefix, "%u_", i); /* fits */
            random_string(r, out, prefix);
            random_space(r, out);
            buf_putc(out, ':');
            random_space(r, out);
        }
        random_value(r, out, depth - 1);
        random_space(r, out);
    }
    buf_putc(out, object ? '}' : ']');
}

static inline void random_value(struct random *r, struct buf *out, unsigned depth)
{
    static const char *const scalars[] = {"null",
                                          "true",
                                          "false",
                                          "0",
                                          "-0",
                                          "1.0",
                                          "9007199254740993",
                                          "1e400",
                                          "-1E-7",
                                          "0.1e+2",
                                          "123456789012345678901234567890",
                                          "3.14159265358979323846"};
    uint32_t kind = random_below(r, depth == 0 ? 2 : 5);
    if (kind == 0) {
        buf_puts(out, scalars[random_below(r, sizeof scalars / sizeof scalars[0])]);
    } else if (kind == 1) {
        random_string(r, out, "");
    } else {
        random_nested(r, out, depth, kind != 2);
    }
}

#endif
