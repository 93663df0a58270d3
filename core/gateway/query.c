/* Queries of targets: see query.h. */
#include "gateway/query.h"

#include "base/digest.h"

#include <stdlib.h>
#include <string.h>

/* '+' and %XX; what is no escape stays. */
static struct str text_decode(struct str text, struct arena *arena)
{
    char *out = arena_get(arena, text.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t byte;
        if (text.data[i] == '%' && i + 2 < text.len &&
            hex_decode((struct str){text.data + i + 1, 2}, &byte, 1)) {
            out[len++] = (char)byte;
            i += 2;
        } else {
            out[len++] = text.data[i] == '+' ? ' ' : text.data[i];
        }
    }
    return (struct str){out, len};
}

void query_walk(struct str query, struct arena *arena,
                void (*take)(void *context, struct str name, struct str value), void *context)
{
    while (query.len > 0) {
        const char *end = memchr(query.data, '&', query.len);
        struct str one = {query.data, end == NULL ? query.len : (size_t)(end - query.data)};
        const char *equals = memchr(one.data, '=', one.len);
        size_t name_len = equals == NULL ? one.len : (size_t)(equals - one.data);
        size_t value_at = equals == NULL ? one.len : name_len + 1;
        take(context, text_decode((struct str){one.data, name_len}, arena),
             text_decode((struct str){one.data + value_at, one.len - value_at}, arena));
        size_t used = one.len + (end != NULL);
        query = (struct str){query.data + used, query.len - used};
    }
}

int64_t query_number(struct str text)
{
    char *end;
    long long number = strtoll(text.data, &end, 10); /* ends with a NUL: of the arena */
    return text.len > 0 && end == text.data + text.len && number >= 0 ? number : -1;
}
