/* How long it takes: from create to the first output of print(1), a later run, and destroy. Prints minimum, median and the
 * 95th percentile in milliseconds. bench_local [ROUNDS] */
#include "host.h"

#include "base/check.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS_MAX 1000

struct series {
    const char *name;
    int64_t us[ROUNDS_MAX];
};

static int rounds = 40;
static struct series create = {.name = "create"}, first = {.name = "create to first output"},
                     next = {.name = "next run"}, destroy = {.name = "destroy"};

static int ascending(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return left < right ? -1 : left > right ? 1 : 0;
}

static void series_print(struct series *series)
{
    qsort(series->us, (size_t)rounds, sizeof series->us[0], ascending);
    printf("%-24s min %7.2f  median %7.2f  p95 %7.2f ms\n", series->name,
           (double)series->us[0] / 1000, (double)series->us[rounds / 2] / 1000,
           (double)series->us[rounds * 95 / 100] / 1000);
}

static void one_round(int i)
{
    struct sg_error err = {0};
    struct outcome outcome = {0};
    char handle[128];
    int64_t start = clock_us();
    CHECK(host_create(600000, handle, &err) == 0);
    create.us[i] = clock_us() - start;
    host_exec(handle, NULL, "print(1)", 8, 20000, &outcome);
    CHECK(strcmp(outcome.all.data, "[out]1\n") == 0);
    first.us[i] = create.us[i] + outcome.first_us;
    host_exec(handle, NULL, "print(1)", 8, 20000, &outcome);
    next.us[i] = outcome.took_us;
    start = clock_us();
    CHECK(host_destroy(handle, &err) == 0);
    destroy.us[i] = clock_us() - start;
    outcome_clear(&outcome);
}

static void bench(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    if (host_open(NULL, &err) != 0) {
        fprintf(stderr, "%s\n", err.message);
        return;
    }
    for (int i = 0; i < rounds; i++) {
        one_round(i);
    }
    host_close();
    series_print(&create);
    series_print(&first);
    series_print(&next);
    series_print(&destroy);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        rounds = (int)strtol(argv[1], NULL, 10);
        rounds = rounds < 1 ? 1 : rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds;
    }
    host_run(bench, NULL);
    return 0;
}
