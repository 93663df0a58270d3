/* How long it takes, and what it costs to wait: from create to the first output of print(1), out of the pool and cold, with
 * and without packages that templates have loaded; a later run; many sessions that begin at one time; the memory of an idle
 * session. Beside them the interpreter by itself. Prints minimum, median and the 95th percentile.
 *
 *   bench_local [ROUNDS]
 *
 * The memory is Pss of /proc/PID/smaps_rollup, of the interpreter and of pid 1 together, in the middle of MANY sessions: what
 * they share with their template counts in equal parts. */
#include "host.h"

#include "base/check.h"
#include "base/clock.h"
#include "loop/loop.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS_MAX 1000
#define MANY 50
#define POOL 4
#define SETTLE_MS 300 /* before memory is looked at, and between two rounds with the pool */

struct series {
    int64_t values[ROUNDS_MAX];
    int count;
};

static int rounds = 40;
static const char *const packages[] = {"numpy", "pandas", "matplotlib.pyplot", NULL};

static int ascending(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return left < right ? -1 : left > right ? 1 : 0;
}

static void series_add(struct series *series, int64_t value)
{
    if (series->count < ROUNDS_MAX) {
        series->values[series->count++] = value;
    }
}

/* Thousandths of the unit. Empties it. */
static void series_print(const char *name, struct series *series, const char *unit)
{
    int count = series->count;
    if (count == 0) {
        return;
    }
    qsort(series->values, (size_t)count, sizeof series->values[0], ascending);
    printf("%-44s min %7.2f  median %7.2f  p95 %7.2f %s\n", name, (double)series->values[0] / 1000,
           (double)series->values[count / 2] / 1000,
           (double)series->values[count * 95 / 100] / 1000, unit);
    fflush(stdout);
    series->count = 0;
}

/* ---- the interpreter by itself ---- */

static void bare(void)
{
    static struct series took;
    char *const argv[] = {(char[]){"python3"}, (char[]){"-c"}, (char[]){"print(1)"}, NULL};
    for (int i = 0; i < rounds; i++) {
        posix_spawn_file_actions_t actions;
        pid_t pid;
        int status, ends[2];
        char byte;
        CHECK(pipe(ends) == 0 && posix_spawn_file_actions_init(&actions) == 0 &&
              posix_spawn_file_actions_adddup2(&actions, ends[1], 1) == 0);
        int64_t start = clock_us();
        CHECK(posix_spawn(&pid, "/usr/bin/python3", &actions, NULL, argv, environ) == 0);
        close(ends[1]);
        CHECK(read(ends[0], &byte, 1) == 1);
        series_add(&took, clock_us() - start);
        close(ends[0]);
        CHECK(waitpid(pid, &status, 0) == pid);
        posix_spawn_file_actions_destroy(&actions);
    }
    series_print("python3 -c 'print(1)' by itself", &took, "ms");
}

/* ---- one session after another ---- */

static struct series created, first, next, destroyed;

static void one_round(void)
{
    struct sg_error err = {0};
    struct outcome outcome = {0};
    char handle[128];
    int64_t start = clock_us();
    CHECK(host_create(600000, handle, &err) == 0);
    int64_t create_us = clock_us() - start;
    series_add(&created, create_us);
    host_exec(handle, NULL, "print(1)", 8, 20000, &outcome);
    CHECK(strcmp(outcome.all.data, "[out]1\n") == 0);
    series_add(&first, create_us + outcome.first_us);
    host_exec(handle, NULL, "print(1)", 8, 20000, &outcome);
    series_add(&next, outcome.took_us);
    start = clock_us();
    CHECK(host_destroy(handle, &err) == 0);
    series_add(&destroyed, clock_us() - start);
    outcome_clear(&outcome);
}

static void await_pool(size_t pool)
{
    while (pool > 0 && host_boxes(NULL, 0) != pool) {
        CHECK(fiber_sleep(2) == 0);
    }
    CHECK(pool == 0 || fiber_sleep(SETTLE_MS) == 0); /* the last of them is being set up */
}

static void one_after_another(size_t pool, const char *what)
{
    char name[80];
    await_pool(pool);
    for (int i = 0; i < rounds; i++) {
        one_round();
        await_pool(pool);
    }
    snprintf(name, sizeof name, "create%s", what);
    series_print(name, &created, "ms");
    snprintf(name, sizeof name, "create to first output%s", what);
    series_print(name, &first, "ms");
    snprintf(name, sizeof name, "next run%s", what);
    series_print(name, &next, "ms");
    snprintf(name, sizeof name, "destroy%s", what);
    series_print(name, &destroyed, "ms");
}

/* ---- many at one time ---- */

struct session {
    char handle[128];
    struct outcome outcome;
    int64_t start_us, took_us;
    bool ended;
};

static struct session sessions[MANY];

static void session_begin(void *arg)
{
    struct session *session = arg;
    struct sg_error err = {0};
    if (host_create(600000, session->handle, &err) != 0) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    host_exec(session->handle, NULL, "print(1)", 8, 60000, &session->outcome);
    CHECK(strcmp(session->outcome.all.data, "[out]1\n") == 0);
    session->took_us = clock_us() - session->start_us;
    session->ended = true;
}

static void begin_many(const char *what)
{
    static struct series each, all;
    int64_t start = clock_us();
    char name[80];
    for (int i = 0; i < MANY; i++) {
        sessions[i] = (struct session){.start_us = start};
        host_start(session_begin, &sessions[i]);
    }
    for (int i = 0; i < MANY; i++) {
        while (!sessions[i].ended) {
            CHECK(fiber_sleep(1) == 0);
        }
        series_add(&each, sessions[i].took_us);
    }
    series_add(&all, (clock_us() - start) / MANY);
    snprintf(name, sizeof name, "%d at one time, first output%s", MANY, what);
    series_print(name, &each, "ms");
    snprintf(name, sizeof name, "the same, for each of them%s", what);
    series_print(name, &all, "ms");
}

static void end_many(void)
{
    struct sg_error err = {0};
    for (int i = 0; i < MANY; i++) {
        CHECK(host_destroy(sessions[i].handle, &err) == 0);
        outcome_clear(&sessions[i].outcome);
    }
}

/* ---- memory ---- */

/* Pss of a process in thousandths of a MB; -1 if it cannot be seen. */
static int64_t pss_of(int64_t pid)
{
    char path[64], line[256];
    long long kib = -1;
    snprintf(path, sizeof path, "/proc/%lld/smaps_rollup", (long long)pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "Pss:", 4) == 0) {
            kib = strtoll(line + 4, NULL, 10);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kib < 0 ? -1 : (int64_t)kib * 1000 / 1024;
}

static int64_t child_of(int64_t pid)
{
    char path[64];
    long long child = -1;
    snprintf(path, sizeof path, "/proc/%lld/task/%lld/children", (long long)pid, (long long)pid);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        child = fscanf(file, "%lld", &child) == 1 ? child : -1;
        fclose(file);
    }
    return child;
}

static void idle_memory(const char *what)
{
    static struct series taken;
    static pid_t firsts[MANY * 2];
    char name[80];
    CHECK(fiber_sleep(SETTLE_MS) == 0);
    size_t count = host_boxes(firsts, MANY * 2);
    for (size_t i = 0; i < count && i < MANY * 2; i++) {
        int64_t init = pss_of(firsts[i]), driver = pss_of(child_of(firsts[i]));
        if (init >= 0 && driver >= 0) {
            series_add(&taken, init + driver);
        }
    }
    snprintf(name, sizeof name, "memory of an idle session%s", what);
    if (taken.count == 0) {
        printf("%-44s cannot be seen by this user\n", name);
    }
    series_print(name, &taken, "MB");
}

/* ---- all of it ---- */

static bool with(const struct host_options *options)
{
    struct sg_error err = {0};
    if (host_open(options, &err) != 0) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    return true;
}

static bool packages_are_there(void)
{
    return system("/usr/bin/python3 -c 'import numpy, pandas, matplotlib.pyplot' 2>/dev/null") == 0;
}

static void measure(const char *const *preload, const char *pooled, const char *cold)
{
    with(&(struct host_options){.pool = POOL, .preload = preload});
    one_after_another(POOL, pooled);
    host_close();
    with(&(struct host_options){.preload = preload});
    one_after_another(0, cold);
    begin_many(pooled);
    idle_memory(pooled);
    end_many();
    host_close();
}

static void bench(void *arg)
{
    (void)arg;
    bare();
    measure(NULL, "", ", cold");
    if (packages_are_there()) {
        measure(packages, ", with packages", ", cold, with packages");
    } else {
        printf("numpy, pandas and matplotlib are not all installed: not measured with packages\n");
    }
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
