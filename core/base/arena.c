/* Memory that ends together, in chunks that double up to 64 KiB. */
#include "base/arena.h"

#include "base/check.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHUNK_FIRST = 2048, CHUNK_MAX = 65536 };

struct chunk {
    struct chunk *next;
    size_t size, used;
    _Alignas(max_align_t) char data[];
};

struct arena {
    struct chunk *chunks; /* the first is the one that is filled */
    size_t bytes, bytes_max, chunk_size;
};

struct arena *arena_new(size_t bytes_max)
{
    struct arena *arena = check_alloc(calloc(1, sizeof *arena));
    arena->bytes_max = bytes_max;
    arena->chunk_size = CHUNK_FIRST;
    return arena;
}

void arena_free(struct arena *arena)
{
    if (arena == NULL) {
        return;
    }
    while (arena->chunks != NULL) {
        struct chunk *next = arena->chunks->next;
        free(arena->chunks);
        arena->chunks = next;
    }
    free(arena);
}

static struct chunk *chunk_add(struct arena *arena, size_t size)
{
    bool large = size > arena->chunk_size / 2;
    size_t chunk_size = large ? size : arena->chunk_size;
    struct chunk *chunk = malloc(sizeof *chunk + chunk_size);
    if (chunk == NULL) {
        return NULL;
    }
    chunk->size = chunk_size;
    chunk->used = 0;
    if (large && arena->chunks != NULL) { /* goes behind the one that still has room */
        chunk->next = arena->chunks->next;
        arena->chunks->next = chunk;
    } else {
        chunk->next = arena->chunks;
        arena->chunks = chunk;
    }
    if (!large && arena->chunk_size < CHUNK_MAX) {
        arena->chunk_size *= 2;
    }
    return chunk;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    const size_t align = _Alignof(max_align_t);
    if (size > SIZE_MAX / 2) {
        return NULL;
    }
    size = (size + align - 1) / align * align;
    if (arena->bytes_max != 0 && size > arena->bytes_max - arena->bytes) {
        return NULL;
    }
    struct chunk *chunk = arena->chunks;
    if (chunk == NULL || size > chunk->size - chunk->used) {
        chunk = chunk_add(arena, size);
        if (chunk == NULL) {
            return NULL;
        }
    }
    void *memory = chunk->data + chunk->used;
    chunk->used += size;
    arena->bytes += size;
    return memset(memory, 0, size);
}

void *arena_get(struct arena *arena, size_t size)
{
    return check_alloc(arena_alloc(arena, size));
}

char *arena_copy(struct arena *arena, struct str text)
{
    char *copy = arena_alloc(arena, text.len + 1);
    if (copy != NULL && text.len > 0) {
        memcpy(copy, text.data, text.len);
    }
    return copy;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int len = vsnprintf(NULL, 0, format, arguments);
    CHECK(len >= 0);
    char *text = arena_alloc(arena, (size_t)len + 1);
    if (text != NULL) {
        (void)vsnprintf(text, (size_t)len + 1, format, again); /* measured above */
    }
    va_end(again);
    va_end(arguments);
    return text;
}

size_t arena_bytes(const struct arena *arena)
{
    return arena->bytes;
}
