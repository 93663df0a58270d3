/* Boxes that are copies of a template, and boxes that wait in the pool: that they are boxes like others, that nothing goes
 * from one to the next, and what happens when templates, pool boxes or packages are no longer what they were. */
#include "fixture.h"

#include "loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define POOL 2

/* What a copy of a template has on its command line. */
static const char is_copy[] =
    "print(open('/proc/self/cmdline').read().split('\\0')[4:5] == ['template'])";

static void await_boxes(size_t count)
{
    pid_t pids[8];
    CU_ASSERT_TRUE_FATAL(count <= COUNT_OF(pids) && host_await_boxes(count, pids));
}

/* ---- a session in a fiber of its own ---- */

struct one {
    char handle[128];
    struct outcome outcome;
    bool ended;
};

static void one_session(void *arg)
{
    struct one *one = arg;
    struct sg_error error = {0};
    if (host_create(600000, one->handle, &error) == 0) {
        host_exec(one->handle, NULL, "print(6 * 7)", 12, 60000, &one->outcome);
    }
    one->ended = true;
}

static void await_one(struct one *one)
{
    while (!one->ended) {
        CU_ASSERT_EQUAL_FATAL(fiber_sleep(1), 0);
    }
    EXPECT_TEXT(one->outcome.all.data, "[out]42\n");
    outcome_clear(&one->outcome);
}

/* ---- copies ---- */

static void copy_body(void)
{
    CU_ASSERT_EQUAL(host_templates(NULL, 0), 1);
    EXPECT_RUN(is_copy, "[out]True\n");
    EXPECT_RUN("import os\n"
               "print(sorted(map(int, os.listdir('/proc/self/fd')))[:4])\n"
               "print([os.readlink(f'/proc/self/fd/{n}').split(':')[0] for n in range(4)])\n"
               "print(len(os.listdir('/proc/self/fd')))",
               "[out][0, 1, 2, 3]\n['/dev/null', 'pipe', 'pipe', 'socket']\n5\n");
    EXPECT_RUN(
        "print(os.getpid(), os.getppid(), os.getuid(), os.getcwd())\n"
        "print(open('/proc/1/comm').read().strip(), open('/proc/1/cmdline').read())\n"
        "for name in 'exe', 'fd', 'environ', 'maps', 'mem':\n"
        "    try: print(os.listdir('/proc/1/fd') if name == 'fd' else open(f'/proc/1/{name}'))\n"
        "    except OSError as error: print(name, error.errno)",
        "[out]2 1 1000 /home/user\nbox-init box-init\0\n"
        "exe 13\nfd 13\nenviron 13\nmaps 13\nmem 13\n");
}

static void a_box_is_a_copy_that_holds_nothing_but_its_own(void)
{
    with_box(copy_body);
}

/* All that differs by design is left out: what a template has loaded. */
static const char portrait[] =
    "import os, resource, signal, sys, threading\n"
    "def show(*values): print(*values)\n"
    "show(sorted(os.environ.items()), os.umask(0o22), os.getpgrp() == os.getsid(0) == "
    "os.getpid())\n"
    "show([resource.getrlimit(n) for n in range(16) if n != resource.RLIMIT_DATA])\n"
    "show([(s.name, signal.getsignal(s) in (signal.SIG_DFL, signal.SIG_IGN), signal.getsignal(s) "
    "==\n"
    "       signal.SIG_IGN) for s in signal.Signals], signal.pthread_sigmask(0, []))\n"
    "show(sys.argv, sys.path, sys.flags, sys.warnoptions, sys._xoptions, sys.prefix)\n"
    "show(sorted(set(globals()) - {'_'}), threading.active_count(), threading.main_thread() ==\n"
    "     threading.current_thread())\n"
    "show([line for line in open('/proc/self/status') if line[:3] in ('Cap', 'NoN', 'Sec', 'Uid',\n"
    "      'Gid', 'Gro')])\n"
    "show(sorted(line.split(' - ')[1].split()[0] + line.split()[4] + line.split()[5]\n"
    "            for line in open('/proc/self/mountinfo')))\n"
    "show([open(f'/proc/sys/user/max_{n}_namespaces').read() for n in ('user', 'net')])";

static struct buf of_copy, of_fresh;

static void portrait_body(void)
{
    EXPECT_RUN(is_copy, "[out]True\n");
    exec(portrait);
    CU_ASSERT_EQUAL(o.code, 0);
    buf_puts(&of_copy, o.all.data);
}

/* A box while there is no template: until one that is killed is started again. */
static void create_fresh(void)
{
    for (;;) {
        pid_t pid;
        if (host_templates(&pid, 1) == 1) {
            CU_ASSERT_EQUAL(kill(pid, SIGKILL), 0);
        }
        CU_ASSERT_EQUAL_FATAL(host_create(600000, box, &e), 0);
        exec(is_copy);
        if (strcmp(o.all.data, "[out]False\n") == 0) {
            return;
        }
        CU_ASSERT_EQUAL(host_destroy(box, &e), 0);
    }
}

static void fresh_body(void)
{
    create_fresh();
    exec(portrait);
    CU_ASSERT_EQUAL(o.code, 0);
    buf_puts(&of_fresh, o.all.data);
}

static void a_copy_is_like_a_box_that_was_started_by_itself(void)
{
    with_box(portrait_body);
    without_box(NULL, fresh_body);
    EXPECT_TEXT(of_copy.data, of_fresh.data);
    CU_ASSERT_TRUE(of_copy.len > 2000);
    buf_clear(&of_copy);
    buf_clear(&of_fresh);
}

static void random_body(void)
{
    static const char draw[] =
        "import random, uuid, tempfile, secrets, sys\n"
        "print('uuid' in sys.modules)\n"
        "print(random.random(), uuid.uuid4(), tempfile.mktemp(), secrets.token_hex(8),\n"
        "      sys.modules['numpy'].random.random() if 'numpy' in sys.modules else id(draw))";
    char other[128], words[5][64], others[5][64];
    CU_ASSERT_EQUAL(host_create(600000, other, &e), 0);
    exec("draw = object()");
    exec(draw);
    CU_ASSERT_EQUAL(sscanf(o.out.data, "True\n%63s %63s %63s %63s %63s", words[0], words[1],
                           words[2], words[3], words[4]),
                    5);
    host_exec(other, NULL, "draw = [0] * 99", 15, DEFAULT_TIMEOUT_MS, &o);
    host_exec(other, NULL, draw, sizeof draw - 1, DEFAULT_TIMEOUT_MS, &o);
    CU_ASSERT_EQUAL(sscanf(o.out.data, "True\n%63s %63s %63s %63s %63s", others[0], others[1],
                           others[2], others[3], others[4]),
                    5);
    for (int i = 0; i < 4; i++) {
        CU_ASSERT_STRING_NOT_EQUAL(words[i], others[i]);
    }
    CU_ASSERT_STRING_NOT_EQUAL(words[4], others[4]);
    CU_ASSERT_EQUAL(host_destroy(other, &e), 0);
}

static void copies_draw_different_random_numbers(void)
{
    static const char *const modules[] = {"random", "uuid", "tempfile", "secrets", "numpy", NULL};
    with_options(&(struct host_options){.preload = modules}, random_body);
}

/* ---- templates that die ---- */

static void dead_template_body(void)
{
    pid_t first;
    char other[128];
    CU_ASSERT_EQUAL_FATAL(host_templates(&first, 1), 1);
    EXPECT_RUN("x = 6", "");
    CU_ASSERT_EQUAL(kill(first, SIGKILL), 0);
    CU_ASSERT_EQUAL(host_create(600000, other, &e), 0); /* whatever it is made of */
    host_exec(other, NULL, "print(1)", 8, DEFAULT_TIMEOUT_MS, &o);
    EXPECT_TEXT(o.all.data, "[out]1\n");
    CU_ASSERT_EQUAL(host_destroy(other, &e), 0);
    EXPECT_RUN("print(x * 7)", "[out]42\n");
    CU_ASSERT_TRUE(host_await_template_but(first) > 0);
    do { /* until it has shown that it can */
        CU_ASSERT_EQUAL_FATAL(host_create(600000, other, &e), 0);
        host_exec(other, NULL, is_copy, strlen(is_copy), DEFAULT_TIMEOUT_MS, &o);
        CU_ASSERT_EQUAL(host_destroy(other, &e), 0);
    } while (strcmp(o.out.data, "True\n") != 0);
}

static void a_dead_template_is_replaced_and_its_boxes_live_on(void)
{
    with_box(dead_template_body);
}

/* ---- the pool ---- */

static void pool_body(void)
{
    pid_t ready[8], now[8];
    CU_ASSERT_EQUAL(host_create(600000, box, &e), 0);
    await_boxes(1 + POOL);
    size_t count = host_boxes(ready, 8);
    char other[128];
    CU_ASSERT_EQUAL(host_create(600000, other, &e), 0);
    host_exec(other, NULL, is_copy, strlen(is_copy), DEFAULT_TIMEOUT_MS, &o);
    EXPECT_TEXT(o.out.data, "True\n");
    await_boxes(2 + POOL);
    CU_ASSERT_EQUAL(host_boxes(now, 8), count + 1);
    for (size_t i = 0; i < count; i++) { /* what was there is there: one of it was handed out */
        CU_ASSERT_EQUAL(now[i], ready[i]);
    }
    CU_ASSERT_EQUAL(host_destroy(other, &e), 0);
    CU_ASSERT_EQUAL(host_destroy(box, &e), 0);
    await_boxes(POOL);
}

static void a_box_comes_from_the_pool_and_the_pool_is_filled_again(void)
{
    without_box(&(struct host_options){.pool = POOL}, pool_body);
}

/* 'Z' of a process that has ended and is not reaped. */
static char state_of(pid_t pid)
{
    char path[64], state = '?';
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        CU_ASSERT_EQUAL(fscanf(file, "%*d %*s %c", &state), 1);
        fclose(file);
    }
    return state;
}

/* The broker stands still meanwhile, and hears of the end no earlier than of the ask. */
static void dead_pool_body(void)
{
    pid_t ready[8], broker = (pid_t)host_broker_pid();
    for (int round = 0; round < 3; round++) {
        await_boxes((size_t)round + POOL);
        size_t count = host_boxes(ready, 8);
        CU_ASSERT_EQUAL(kill(broker, SIGSTOP), 0);
        for (size_t i = 0; i < POOL; i++) {
            pid_t pid = ready[count - 1 - i];
            CU_ASSERT_EQUAL(kill(pid, SIGKILL), 0);
            while (state_of(pid) != 'Z') {
                CU_ASSERT_EQUAL_FATAL(fiber_sleep(1), 0);
            }
        }
        struct one one = {0};
        host_start(one_session, &one);
        CU_ASSERT_EQUAL_FATAL(fiber_sleep(20), 0); /* for the ask to be on its way */
        CU_ASSERT_EQUAL(kill(broker, SIGCONT), 0);
        await_one(&one);
    }
}

static void a_box_of_the_pool_that_died_is_not_handed_out(void)
{
    without_box(&(struct host_options){.pool = POOL}, dead_pool_body);
}

static void full_body(void)
{
    char handles[3][128];
    for (int i = 0; i < 3; i++) {
        await_boxes(3);
        CU_ASSERT_EQUAL(host_create(600000, handles[i], &e), 0);
        host_exec(handles[i], NULL, "print(1)", 8, DEFAULT_TIMEOUT_MS, &o);
        EXPECT_TEXT(o.all.data, "[out]1\n");
    }
    CU_ASSERT_EQUAL(host_boxes(NULL, 0), 3);
    CU_ASSERT_EQUAL(host_create(600000, box, &e), SG_E_LIMIT);
    EXPECT_TEXT(e.message, "local (box): all 3 boxes are in use; raise 'boxes'");
    CU_ASSERT_EQUAL(host_destroy(handles[0], &e), 0);
    await_boxes(3);
}

static void the_pool_makes_way_when_all_boxes_are_in_use(void)
{
    without_box(&(struct host_options){.pool = 3, .boxes = 3}, full_body);
}

/* Its life begins when it is handed out, and ends as any other's. */
static void life_body(void)
{
    await_boxes(POOL);
    CU_ASSERT_EQUAL(host_create(300, box, &e), 0);
    host_exec(box, NULL, "import time\ntime.sleep(60)", 26, 60000, &o);
    EXPECT_PART(o.error.message, "the container was not used for its life and ended by itself");
    CU_ASSERT_EQUAL(host_create(600000, box, &e), 0);
    EXPECT_RUN("print(6 * 7)", "[out]42\n");
}

static void the_life_of_a_pool_box_begins_when_it_is_handed_out(void)
{
    without_box(&(struct host_options){.pool = POOL}, life_body);
}

static long switches_of(pid_t pid)
{
    char path[64], line[256];
    long count = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strstr(line, "voluntary_ctxt_switches:") != NULL) {
            count += strtol(strchr(line, ':') + 1, NULL, 10);
        }
    }
    fclose(file);
    return count;
}

/* The only child of pid 1; 0: it is still being set up. */
static int interpreter_of(pid_t first)
{
    char path[64];
    int child = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)first, (int)first);
    FILE *file = fopen(path, "re");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    if (fscanf(file, "%d", &child) != 1) {
        child = 0;
    }
    fclose(file);
    return child;
}

static long switches_of_box(pid_t first)
{
    int interpreter;
    while ((interpreter = interpreter_of(first)) == 0) {
        CU_ASSERT_EQUAL_FATAL(fiber_sleep(1), 0);
    }
    return switches_of(first) + switches_of(interpreter);
}

/* In how many of the boxes nothing goes on while code sleeps in one of them. */
static size_t count_idle(const pid_t *boxes, size_t count)
{
    long before[8];
    size_t idle = 0;
    for (size_t i = 0; i < count; i++) {
        before[i] = switches_of_box(boxes[i]);
    }
    EXPECT_RUN("time.sleep(1.2)", "");
    for (size_t i = 0; i < count; i++) {
        idle += switches_of_box(boxes[i]) == before[i];
    }
    return idle;
}

static void idle_body(void)
{
    pid_t boxes[1 + POOL];
    CU_ASSERT_EQUAL(host_create(600000, box, &e), 0);
    EXPECT_RUN("import time", "");
    CU_ASSERT_TRUE_FATAL(host_await_boxes(1 + POOL, boxes));
    /* Those of the pool may still be about to settle, on a busy machine for long. */
    size_t idle = 0;
    for (int tries = 0; tries < 10 && idle != POOL; tries++) {
        idle = count_idle(boxes, 1 + POOL);
    }
    CU_ASSERT_EQUAL(idle, POOL);
}

static void boxes_that_wait_use_no_processor(void)
{
    without_box(&(struct host_options){.pool = POOL}, idle_body);
}

/* ---- side by side ---- */

#define MANY 50

static void many_body(void)
{
    static struct one all[MANY];
    for (int i = 0; i < MANY; i++) {
        host_start(one_session, &all[i]);
    }
    for (int i = 0; i < MANY; i++) {
        await_one(&all[i]);
        CU_ASSERT_EQUAL(host_destroy(all[i].handle, &e), 0);
    }
}

static void fifty_sessions_begin_side_by_side(void)
{
    without_box(&(struct host_options){.pool = POOL}, many_body);
}

static const struct test tests[] = {
    TEST(a_box_is_a_copy_that_holds_nothing_but_its_own),
    TEST(a_copy_is_like_a_box_that_was_started_by_itself),
    TEST(copies_draw_different_random_numbers),
    TEST(a_dead_template_is_replaced_and_its_boxes_live_on),
    TEST(a_box_comes_from_the_pool_and_the_pool_is_filled_again),
    TEST(a_box_of_the_pool_that_died_is_not_handed_out),
    TEST(the_pool_makes_way_when_all_boxes_are_in_use),
    TEST(the_life_of_a_pool_box_begins_when_it_is_handed_out),
    TEST(boxes_that_wait_use_no_processor),
    TEST(fifty_sessions_begin_side_by_side),
};

int main(int argc, char **argv)
{
    return run_tests("local_pool", tests, COUNT_OF(tests), argc, argv);
}
