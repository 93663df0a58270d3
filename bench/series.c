/* Every value is kept, so that percentiles are exact. */
#include "series.h"

#include <stdio.h>
#include <stdlib.h>

void series_add(struct series *s, int64_t ns)
{
    if (s->count == s->size) {
        s->size = s->size == 0 ? 4096 : s->size * 2;
        s->ns = realloc(s->ns, s->size * sizeof s->ns[0]);
        if (s->ns == NULL) {
            abort();
        }
    }
    s->ns[s->count++] = ns;
}

void series_reset(struct series *s)
{
    s->count = 0;
}

void series_clear(struct series *s)
{
    free(s->ns);
    *s = (struct series){0};
}

static int ascending(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

/* The smallest value that at least `percent` of all do not exceed. */
static double percentile_us(const struct series *s, unsigned percent)
{
    size_t rank = (s->count * percent + 99) / 100;
    return s->count == 0 ? 0 : (double)s->ns[rank == 0 ? 0 : rank - 1] / 1000;
}

void series_print(struct series *s, const char *name)
{
    if (s->count > 0) {
        qsort(s->ns, s->count, sizeof s->ns[0], ascending);
    }
    printf("\"%s\": {\"count\": %zu, \"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f}", name,
           s->count, percentile_us(s, 50), percentile_us(s, 99), percentile_us(s, 100));
}
