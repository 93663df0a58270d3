/* Times in nanoseconds, any number of them, and what is printed of them. */
#ifndef SANDGATE_BENCH_SERIES_H
#define SANDGATE_BENCH_SERIES_H

#include <stddef.h>
#include <stdint.h>

struct series {
    int64_t *ns;
    size_t count, size;
};

void series_add(struct series *, int64_t ns);
void series_reset(struct series *); /* empty again */
void series_clear(struct series *);

/* "NAME": {"count": …, "p50_us": …, "p99_us": …, "max_us": …}; sorts it. */
void series_print(struct series *, const char *name);

#endif
