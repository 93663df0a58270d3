/* Memory that ends together: a request's, a configuration's, a plugin call's. Not for use by two threads at once. */
#ifndef SANDGATE_BASE_ARENA_H
#define SANDGATE_BASE_ARENA_H

#include "base/str.h"

struct arena; /* opaque */

/* bytes_max: arena_alloc() gives NULL beyond it; 0: no bound. */
struct arena *arena_new(size_t bytes_max);
void arena_free(struct arena *); /* NULL is fine */

/* Zeroed and aligned for any type. NULL beyond the bound only (and for a large block that the system refuses). */
void *arena_alloc(struct arena *, size_t size);

/* The same for small fixed sizes in an arena without a bound, where NULL cannot be: asserted. */
void *arena_get(struct arena *, size_t size) __attribute__((returns_nonnull));

/* A copy, ended by a NUL that is not counted. NULL as arena_alloc(). */
char *arena_copy(struct arena *, struct str);
char *arena_printf(struct arena *, const char *format, ...) __attribute__((format(printf, 2, 3)));

size_t arena_bytes(const struct arena *); /* given out so far */

#endif
