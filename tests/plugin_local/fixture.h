/* What the tests with real boxes share: an open plugin, one box, one run's outcome. */
#ifndef TESTS_PLUGIN_LOCAL_FIXTURE_H
#define TESTS_PLUGIN_LOCAL_FIXTURE_H

#include "base/check.h"
#include "cunit_main.h"
#include "host.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

static char box[128];     /* its handle */
static struct outcome o;  /* of the last run */
static struct sg_error e; /* of the last other call */

#define DEFAULT_TIMEOUT_MS 20000

__attribute__((unused)) static bool same(const char *actual, const char *expected, int line)
{
    bool equal = strcmp(actual, expected) == 0;
    if (!equal) {
        fprintf(stderr, "\nline %d: <<%s>>\n expected <<%s>>\n", line, actual, expected);
    }
    return equal;
}

__attribute__((unused)) static bool holds(const char *actual, const char *part, int line)
{
    bool found = strstr(actual, part) != NULL;
    if (!found) {
        fprintf(stderr, "\nline %d: <<%s>>\n does not hold <<%s>>\n", line, actual, part);
    }
    return found;
}

#define EXPECT_TEXT(actual, expected) CU_ASSERT_TRUE(same(actual, expected, __LINE__))
#define EXPECT_PART(actual, part) CU_ASSERT_TRUE(holds(actual, part, __LINE__))

__attribute__((unused)) static void exec_for(const char *code, int64_t timeout_ms)
{
    host_exec(box, "python", code, strlen(code), timeout_ms, &o);
}

__attribute__((unused)) static void exec(const char *code)
{
    exec_for(code, DEFAULT_TIMEOUT_MS);
}

/* Runs code that must go well and give exactly this (see struct outcome, `all`). */
#define EXPECT_RUN(python, everything)       \
    do {                                     \
        exec(python);                        \
        EXPECT_TEXT(o.error.message, "");    \
        CU_ASSERT_EQUAL(o.code, 0);          \
        EXPECT_TEXT(o.all.data, everything); \
    } while (0)

/* A container that must come into being; one that does not says why. */
__attribute__((unused)) static void create(char handle[128])
{
    e = (struct sg_error){0};
    int code = host_create(600000, handle, &e);
    EXPECT_TEXT(e.message, "");
    CU_ASSERT_EQUAL_FATAL(code, 0);
}

/* What is broken off has a second to react, and on a machine that is too busy is killed after it: with its box, or with its
 * shell or node, as the next run tells. That is another case than the one that is meant: the body returns, and is tried again
 * in another box (with_calm_box). */
static bool was_too_busy;

__attribute__((unused)) static bool too_busy(void)
{
    was_too_busy =
        strstr(o.error.message, "did not react to the interrupt and was killed") != NULL ||
        strstr(o.error.message, " was killed, and node with it: ") != NULL ||
        strstr(o.all.data, " was killed with a run before; ") != NULL;
    return was_too_busy;
}

__attribute__((unused)) static size_t fds_open(void)
{
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count;
}

static int open_code;

/* Opens the plugin with these options, and closes it again: open_code, and the error in `e`. */
__attribute__((unused)) static void open_fiber(void *options)
{
    e = (struct sg_error){0};
    open_code = host_open(options, &e);
    if (open_code == 0) {
        host_close();
    }
}

struct session {
    const struct host_options *options;
    void (*body)(void);
    bool without_box;
};

static void session_fiber(void *arg)
{
    const struct session *session = arg;
    e = (struct sg_error){0};
    int code = host_open(session->options, &e);
    EXPECT_TEXT(e.message, "");
    CU_ASSERT_EQUAL_FATAL(code, 0);
    if (!session->without_box) {
        create(box);
    }
    session->body();
    if (!session->without_box) {
        CU_ASSERT_EQUAL(host_destroy(box, &e), 0);
    }
    outcome_clear(&o);
    host_close();
}

__attribute__((unused)) static void with_options(const struct host_options *options,
                                                 void (*body)(void))
{
    struct session session = {options, body, false};
    host_run(session_fiber, &session);
}

__attribute__((unused)) static void with_box(void (*body)(void))
{
    with_options(NULL, body);
}

#define CALM_TRIES 10

__attribute__((unused)) static void with_calm_options(const struct host_options *options,
                                                      void (*body)(void))
{
    int tries = 0;
    do {
        was_too_busy = false;
        with_options(options, body);
    } while (was_too_busy && ++tries < CALM_TRIES);
    CU_ASSERT_FALSE(was_too_busy);
}

__attribute__((unused)) static void with_calm_box(void (*body)(void))
{
    with_calm_options(NULL, body);
}

__attribute__((unused)) static void without_box(const struct host_options *options,
                                                void (*body)(void))
{
    struct session session = {options, body, true};
    host_run(session_fiber, &session);
}

#endif
