/* One attack: its code with the bait filled in, how its run ended in the words of the cases, and what is looked at
 * afterwards: what was printed, files through the provider's functions, whether the session lives, and what is left. */
#include "attack.h"

#include "bait.h"
#include "base/check.h"
#include "cunit_main.h"
#include "host.h"
#include "loop/loop.h"

#include <dirent.h>
#include <fcntl.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define START_MS 60000
#define ALIVE_MS 3000
#define RACE_READS 200
#define END_MS 10000

struct attempt {
    const cJSON *attack, *expect;
    const char *id;
    enum attack_way way;
    char box[128], pid_namespace[64];
    int namespace_fd;
    struct outcome outcome; /* of the attack */
    struct outcome other;   /* of what is looked at afterwards */
    struct sg_error err;
    struct buf end; /* how the attack's run ended */
};

const char *attack_text(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

static void expect_that(const struct attempt *a, bool holds, const char *what, const char *seen)
{
    CU_ASSERT_TRUE(holds);
    if (!holds) {
        fprintf(stderr, "\n%s%s: %s; it ended with '%s': %.2000s\n", a->id,
                a->way == ATTACK_IN_LANGUAGE ? " in its language" : "", what, a->end.data,
                seen != NULL ? seen : "");
    }
}

/* ---- patterns ---- */

/* The two ways in which Python's patterns here differ from POSIX ones are translated. */
static void pattern_translate(const char *pattern, bool whole, struct buf *ret)
{
    BUF_CLEANUP struct buf filled = {0};
    bait_fill_in(strncmp(pattern, "(?s)", 4) == 0 ? pattern + 4 : pattern, true, &filled);
    buf_puts(ret, whole ? "^(" : "(");
    for (const char *c = filled.data; *c != '\0'; c++) {
        bool digit = c[0] == '\\' && c[1] == 'd';
        buf_append(ret, digit ? "[0-9]" : c, digit ? 5 : 1);
        c += digit;
    }
    buf_puts(ret, whole ? ")$" : ")");
}

/* Whether the pattern occurs in the text, or is all of it. */
static bool matches(const char *pattern, bool whole, const struct buf *text)
{
    BUF_CLEANUP struct buf posix = {0}, visible = {0};
    regex_t compiled;
    pattern_translate(pattern, whole, &posix);
    CU_ASSERT_EQUAL_FATAL(regcomp(&compiled, posix.data, REG_EXTENDED | REG_NOSUB), 0);
    buf_puts(&visible, "");
    buf_append(&visible, text->data, text->len);
    for (size_t i = 0; i < visible.len; i++) { /* NUL would end it */
        visible.data[i] = visible.data[i] == '\0' ? ' ' : visible.data[i];
    }
    bool found = regexec(&compiled, visible.data, 0, NULL, 0) == 0;
    regfree(&compiled);
    return found;
}

/* ---- running it ---- */

static bool is_python(const struct attempt *a)
{
    return strcmp(attack_text(a->attack, "language"), "python") == 0;
}

static void code_make(const struct attempt *a, struct buf *ret)
{
    BUF_CLEANUP struct buf code = {0};
    bait_fill_in(attack_text(a->attack, "code"), false, &code);
    if (is_python(a) || a->way == ATTACK_IN_LANGUAGE) {
        buf_append(ret, code.data, code.len);
        return;
    }
    bool is_bash = strcmp(attack_text(a->attack, "language"), "bash") == 0;
    buf_puts(ret, "import subprocess\nr = subprocess.run([");
    buf_puts(ret, is_bash ? "'/bin/bash', '-c', " : "'/usr/bin/node', '-e', ");
    buf_put_json(ret, buf_str(&code));
    buf_puts(ret, "])");
}

/* The words of the cases for how a run ended. */
static void end_name(const struct outcome *o, struct buf *ret)
{
    const char *message = o->error.message, *at;
    bool killed = o->code == SG_E_GONE;
    if (o->code == 0) {
        buf_puts(ret, o->exception.len > 0 ? "error" : "ok");
    } else if (strstr(message, "ran longer than") != NULL) {
        buf_puts(ret, killed ? "timeout-killed" : "timeout-interrupted");
    } else if (strstr(message, "printed more than") != NULL) {
        buf_puts(ret, killed ? "flood-killed" : "flood-interrupted");
    } else if (strstr(message, "ran out of memory") != NULL) {
        buf_puts(ret, "oom");
    } else if ((at = strstr(message, "crashed with ")) != NULL) {
        buf_printf(ret, "crash:%.*s", (int)strcspn(at + 13, ";"), at + 13);
    } else if ((at = strstr(message, "exited with status ")) != NULL) {
        buf_printf(ret, "exit:%.*s", (int)strcspn(at + 19, ";"), at + 19);
    } else {
        buf_puts(ret, "sandbox-gone");
    }
}

static bool must_end_by_time(const struct attempt *a)
{
    return strstr(attack_text(a->expect, "outcome"), "timeout") != NULL;
}

/* Processes in a box's pid namespace, as far as this user may see in which one they are; *ret_fd, if it is asked for, is of
 * the namespace: while it is open no other gets the same name. */
static size_t processes_in(const char *pid_namespace, int *ret_fd)
{
    size_t count = 0;
    DIR *folder = opendir("/proc");
    CU_ASSERT_PTR_NOT_NULL_FATAL(folder);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char path[300], target[64] = "";
        snprintf(path, sizeof path, "/proc/%.200s/ns/pid", entry->d_name);
        bool is_inside =
            readlink(path, target, sizeof target - 1) > 0 && strcmp(target, pid_namespace) == 0;
        count += is_inside;
        if (is_inside && ret_fd != NULL && *ret_fd < 0) {
            *ret_fd = open(path, O_RDONLY | O_CLOEXEC);
        }
    }
    closedir(folder);
    return count;
}

static void attempt_begin(struct attempt *a)
{
    static const char code[] = "import os; print(os.readlink('/proc/self/ns/pid'), end='')";
    int result = host_create(600000, a->box, &a->err);
    if (result != 0) {
        fprintf(stderr, "\n%s: no box: %s\n", a->id, a->err.message);
    }
    CU_ASSERT_EQUAL_FATAL(result, 0);
    host_exec(a->box, "python", code, sizeof code - 1, START_MS, &a->other);
    CU_ASSERT_EQUAL(strncmp(a->other.out.data, "pid:[", 5), 0);
    snprintf(a->pid_namespace, sizeof a->pid_namespace, "%s", a->other.out.data);
    CU_ASSERT_TRUE(processes_in(a->pid_namespace, &a->namespace_fd) > 0 && a->namespace_fd >= 0);
}

static void attempt_make(struct attempt *a, int times_slower)
{
    const cJSON *timeout = cJSON_GetObjectItemCaseSensitive(a->expect, "timeout_s");
    int64_t timeout_ms = cJSON_IsNumber(timeout) ? (int64_t)(timeout->valuedouble * 1000) : 5000;
    BUF_CLEANUP struct buf code = {0};
    code_make(a, &code);
    host_exec(a->box, a->way == ATTACK_IN_LANGUAGE ? attack_text(a->attack, "language") : "python",
              code.data, code.len, must_end_by_time(a) ? timeout_ms : timeout_ms * times_slower,
              &a->outcome);
    end_name(&a->outcome, &a->end);
}

/* ---- what it printed ---- */

static void check_exception(const struct attempt *a)
{
    const char *part = attack_text(a->expect, "stderr_has");
    if (part != NULL) {
        expect_that(a, strstr(a->outcome.exception.data, part) != NULL, part,
                    a->outcome.exception.data);
    }
    if ((part = attack_text(a->expect, "error")) != NULL) {
        char name[80];
        snprintf(name, sizeof name, "{\"name\":\"%s\"", part);
        expect_that(a, strncmp(a->outcome.exception.data, name, strlen(name)) == 0, name,
                    a->outcome.exception.data);
    }
}

/* "+oomkill-in-child" may follow an end: here that is a status beside it, and not in the end's name. */
static void check_outcome(const struct attempt *a)
{
    BUF_CLEANUP struct buf printed = {0};
    const char *pattern = attack_text(a->expect, "outcome");
    const char *other = attack_text(a->expect, "outcome_alt");
    buf_puts(&printed, "");
    buf_append(&printed, a->outcome.out.data, a->outcome.out.len);
    buf_append(&printed, a->outcome.err.data, a->outcome.err.len);
    expect_that(a,
                matches(pattern, true, &a->end) || (other != NULL && matches(other, true, &a->end)),
                pattern, printed.data);
    if ((pattern = attack_text(a->expect, "stdout")) != NULL) {
        expect_that(a, matches(pattern, false, &printed), pattern, printed.data);
    }
    if ((pattern = attack_text(a->expect, "not_stdout")) != NULL) {
        expect_that(a, !matches(pattern, false, &printed), pattern, printed.data);
    }
    expect_that(a, !bait_is_in(&a->outcome.all), "a secret was printed", printed.data);
}

/* ---- files ---- */

/* "ok", or why not. */
static void answer_name(const struct outcome *o, struct buf *ret)
{
    buf_puts(ret, o->code == 0 ? "ok" : o->error.message);
}

static void check_file(struct attempt *a, const cJSON *wanted, bool is_upload)
{
    BUF_CLEANUP struct buf answer = {0};
    if (is_upload) {
        host_put(a->box, wanted->string, "uploaded", 8, &a->other);
    } else {
        host_get(a->box, wanted->string, &a->other);
    }
    answer_name(&a->other, &answer);
    expect_that(a, matches(wanted->valuestring, false, &answer), wanted->string, answer.data);
    expect_that(a, !bait_is_in(&a->other.out), "a secret was read", wanted->string);
}

static void check_files(struct attempt *a)
{
    const cJSON *wanted;
    cJSON_ArrayForEach(wanted, cJSON_GetObjectItemCaseSensitive(a->expect, "download"))
    {
        check_file(a, wanted, false);
    }
    cJSON_ArrayForEach(wanted, cJSON_GetObjectItemCaseSensitive(a->expect, "upload"))
    {
        check_file(a, wanted, true);
    }
    cJSON_ArrayForEach(wanted, cJSON_GetObjectItemCaseSensitive(a->expect, "download_has"))
    {
        host_get(a->box, wanted->string, &a->other);
        expect_that(a, matches(wanted->valuestring, false, &a->other.out), wanted->string,
                    a->other.out.data);
    }
}

/* A file that is replaced all the time by a link to one of the host's: its own content, nothing, or an error. */
static void check_race(struct attempt *a)
{
    const char *path = attack_text(a->expect, "race");
    for (int i = 0; path != NULL && i < RACE_READS; i++) {
        host_get(a->box, path, &a->other);
        const struct buf *read = &a->other.out;
        bool is_own = a->other.code != 0 || read->len == 0 || strcmp(read->data, "mine") == 0;
        expect_that(a, is_own, "something foreign was read", read->data);
    }
}

/* ---- what is left ---- */

static void check_session(struct attempt *a, int times_slower)
{
    const char *wanted = attack_text(a->expect, "session");
    host_exec(a->box, "python", "print(6*7)", 10, (int64_t)ALIVE_MS * times_slower, &a->other);
    bool alive = a->other.code == 0 && strstr(a->other.out.data, "42") != NULL;
    expect_that(a, strcmp(wanted, "any") == 0 || alive == (strcmp(wanted, "alive") == 0), wanted,
                a->other.error.message);
}

/* A box that a run has ended is no longer known when it is deleted, and may be about to end; and the broker reaps in its own
 * time. */
static bool processes_end(const struct attempt *a)
{
    int64_t until = clock_ms() + END_MS;
    while (processes_in(a->pid_namespace, NULL) > 0 && clock_ms() < until) {
        CHECK(fiber_sleep(1) == 0);
    }
    return processes_in(a->pid_namespace, NULL) == 0;
}

static void attempt_end(struct attempt *a)
{
    int result = host_destroy(a->box, &a->err);
    expect_that(a, result == 0, "it cannot be deleted", a->err.message);
    expect_that(a, processes_end(a), "processes are left", NULL);
    close(a->namespace_fd);
    expect_that(a, bait_peer_is_well(), "the other session is not what it was", NULL);
    outcome_clear(&a->outcome);
    outcome_clear(&a->other);
    buf_clear(&a->end);
}

void attack_run(const cJSON *attack, enum attack_way way, int times_slower)
{
    struct attempt *a = check_alloc(calloc(1, sizeof *a));
    *a = (struct attempt){.attack = attack,
                          .expect = cJSON_GetObjectItemCaseSensitive(attack, "expect"),
                          .id = attack_text(attack, "id"),
                          .way = way,
                          .namespace_fd = -1};
    attempt_begin(a);
    attempt_make(a, times_slower);
    check_outcome(a);
    check_exception(a);
    check_files(a);
    check_race(a);
    check_session(a, times_slower);
    attempt_end(a);
    free(a);
}
