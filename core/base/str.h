/* Borrowed bytes: a pointer and a length, not ended by NUL, possibly holding NUL. */
#ifndef SANDGATE_BASE_STR_H
#define SANDGATE_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
    const char *data; /* may be NULL where len is 0 */
    size_t len;
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})

static inline struct str str_of(const char *text)
{
    return (struct str){text, text == NULL ? 0 : strlen(text)};
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static inline bool str_is(struct str a, const char *text)
{
    return str_eq(a, str_of(text));
}

static inline bool str_starts(struct str a, struct str prefix)
{
    return a.len >= prefix.len && (prefix.len == 0 || memcmp(a.data, prefix.data, prefix.len) == 0);
}

/* ASCII only, as HTTP wants it; never depends on the locale. */
bool str_eq_nocase(struct str a, struct str b);

/* FNV-1a, for tables of names that are the operator's: who chooses the names can make them meet in one bucket. */
static inline uint32_t str_hash(struct str a)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < a.len; i++) {
        hash = (hash ^ (unsigned char)a.data[i]) * 16777619u;
    }
    return hash;
}

/* Without the spaces and tabs at both ends. */
struct str str_trim(struct str a);

#endif
