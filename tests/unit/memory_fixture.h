/* What surfaces remember from one request to the next, as a list. The bench of the surface is included first. */
#ifndef TESTS_UNIT_MEMORY_FIXTURE_H
#define TESTS_UNIT_MEMORY_FIXTURE_H

#include "base/check.h"

struct memory {
    struct surface_memory calls;
    struct arena *arena;
    struct {
        struct str id, data;
    } kept[64];
    size_t count, too_large, bytes_max;
    size_t found; /* how often something was */
    bool goes_on, waits;
    struct str resumed;
};

static inline bool memory_keep(void *context, const struct str *ids, size_t count, struct str data,
                               bool goes_on)
{
    struct memory *m = context;
    if (m->bytes_max > 0 && data.len > m->bytes_max) {
        m->too_large++;
        return false;
    }
    struct str copy = {arena_copy(m->arena, data), data.len};
    for (size_t i = 0; i < count; i++) {
        CU_ASSERT_TRUE_FATAL(m->count < COUNT_OF(m->kept));
        m->kept[m->count].id = (struct str){arena_copy(m->arena, ids[i]), ids[i].len};
        m->kept[m->count++].data = copy;
    }
    m->goes_on = goes_on;
    return true;
}

static inline bool memory_find(void *context, struct str id, struct str *ret)
{
    struct memory *m = context;
    for (size_t i = 0; i < m->count; i++) {
        if (str_eq(m->kept[i].id, id)) {
            *ret = m->kept[i].data;
            m->found++;
            return true;
        }
    }
    return false;
}

static inline bool memory_resume(void *context, struct str id)
{
    struct memory *m = context;
    m->resumed = (struct str){arena_copy(m->arena, id), id.len};
    return m->waits;
}

static inline void memory_open(struct memory *m)
{
    *m = (struct memory){.arena = arena_new(0)};
    m->calls = (struct surface_memory){memory_keep, memory_find, memory_resume, m};
}

static inline void memory_clear(struct memory *m)
{
    arena_free(m->arena);
}
#define MEMORY_CLEANUP __attribute__((cleanup(memory_clear)))

static inline struct bench bench_with(struct memory *m)
{
    struct bench b = bench_new(0);
    b.memory = &m->calls;
    return b;
}

#endif
