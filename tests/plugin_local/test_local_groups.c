/* Control groups of boxes, and what is done where there are none.
 *
 * All is done with real boxes: as root with the groups that this system has, and where it has none, or as an ordinary user,
 * without. What needs them and does not find
 * them says so and is passed over; what happens without them is always tested, in the run as an ordinary user. */
#include "fixture.h"

#include "box/cgroup.h"
#include "loop/loop.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB_BYTES ((uint64_t)1 << 20)

/* ---- what this system has ---- */

static struct group_tree trees[GROUP_TREES_MAX]; /* in which the test itself is */
static size_t trees_count;
static unsigned controls; /* that a broker of this system can have; by groups of its own */

static void look_around(void)
{
    static char memberships[65536], mounts[262144];
    static struct groups groups;
    CHECK(group_file_read("/proc/self/cgroup", memberships, sizeof memberships));
    CHECK(group_file_read("/proc/self/mountinfo", mounts, sizeof mounts));
    trees_count = group_trees_find(memberships, mounts, trees);
    groups_start(&groups, &(struct group_limits){64 * MIB_BYTES, 10, 500});
    controls = groups.controls;
    groups_end(&groups);
}

static bool lacks(unsigned needed, const char *what)
{
    if ((controls & needed) == needed) {
        return false;
    }
    fprintf(stderr, "not tested: no control groups %s here for uid %d ", what, (int)geteuid());
    return true;
}

static const struct group_tree *tree_of(unsigned control)
{
    for (size_t i = 0; i < trees_count; i++) {
        bool is_only = trees_count == 1; /* v2 for all */
        if (is_only || (trees[i].controls & control) != 0) {
            return &trees[i];
        }
    }
    return NULL;
}

/* The folder of a process's group, if it is one that a broker made. */
static bool group_of(unsigned control, pid_t pid, char ret_folder[GROUP_FILE_PATH])
{
    const struct group_tree *tree = tree_of(control);
    char path[64], text[4096], line[GROUP_PATH];
    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    if (tree == NULL || !group_file_read(path, text, sizeof text)) {
        return false;
    }
    static const char *const names[] = {":memory:", ":pids:", ":cpu", "0::"};
    const char *name = tree->is_v2               ? names[3]
                       : control == GROUP_MEMORY ? names[0]
                       : control == GROUP_PIDS   ? names[1]
                                                 : names[2];
    const char *at = strstr(text, name);
    at = at == NULL ? NULL : strstr(at, "/sandgate-local.");
    if (at == NULL) {
        return false;
    }
    snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at + 1);
    line[strcspn(line, "\n")] = '\0';
    group_file_path(ret_folder, tree->path, line);
    return true;
}

static bool file_says(const char *folder, const char *name, const char *expected)
{
    char path[GROUP_FILE_PATH], text[256];
    group_file_path(path, folder, name);
    if (!group_file_read(path, text, sizeof text)) {
        snprintf(text, sizeof text, "(not there)");
    }
    text[strcspn(text, "\n")] = '\0';
    return same(text, expected, __LINE__);
}

/* The only child of a process. */
static pid_t child_of(pid_t parent)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    return group_file_read(path, text, sizeof text) ? (pid_t)strtol(text, NULL, 10) : -1;
}

/* Of the only box, once those before it have ended. */
static pid_t driver_pid(void)
{
    pid_t first = 0;
    CU_ASSERT_TRUE_FATAL(host_await_boxes(1, &first));
    return child_of(first);
}

static size_t folders_below(const char *parent, const char *prefix)
{
    size_t count = 0;
    DIR *listing = opendir(parent);
    const struct dirent *entry;
    while (listing != NULL && (entry = readdir(listing)) != NULL) {
        count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    }
    if (listing != NULL) {
        closedir(listing);
    }
    return count;
}

/* ---- limits ---- */

static const struct host_options small = {
    .memory = 128 * MIB_BYTES, .disk = 32 * MIB_BYTES, .processes = 16, .cpu = "0.5"};

static void limits_body(void)
{
    char folder[GROUP_FILE_PATH];
    pid_t driver = driver_pid();
    bool v2 = tree_of(GROUP_MEMORY) != NULL && tree_of(GROUP_MEMORY)->is_v2;
    CU_ASSERT_TRUE_FATAL(group_of(GROUP_MEMORY, driver, folder));
    char *work = strstr(folder, "/work");
    if (work != NULL) {
        *work = '\0';
    }
    /* 16 MiB of the kernel's own come on top. */
    CU_ASSERT_TRUE(file_says(folder, v2 ? "memory.max" : "memory.limit_in_bytes", "150994944"));
    if (!v2) {
        CU_ASSERT_TRUE_FATAL(group_of(GROUP_PIDS, driver, folder));
    }
    CU_ASSERT_TRUE(file_says(folder, "pids.max", "18")); /* pid 1, a worker */
    if (!v2) {
        CU_ASSERT_TRUE_FATAL(group_of(GROUP_CPU, driver, folder));
    }
    CU_ASSERT_TRUE(
        file_says(folder, v2 ? "cpu.max" : "cpu.cfs_quota_us", v2 ? "50000 100000" : "50000"));
    /* Inside nothing is seen of all that. */
    exec("print([line for line in open('/proc/self/cgroup') if 'sandgate' in line])");
    EXPECT_TEXT(o.out.data, "[]\n");
    /* Where the host lacks memory, boxes go first; and that cannot be taken back. */
    exec("print(open('/proc/self/oom_score_adj').read().strip())\n"
         "try: open('/proc/self/oom_score_adj', 'w').write('0')\n"
         "except OSError as e: print(e.errno)");
    EXPECT_TEXT(o.out.data, "500\n30\n");
}

static void every_limit_is_in_the_group_of_a_box(void)
{
    if (!lacks(GROUP_LIMITS, "of memory, pids and cpu")) {
        with_options(&small, limits_body);
    }
}

/* In memory that RLIMIT_DATA does not count and that a look every 50 ms would see too late. */
static void memory_body(void)
{
    exec("import mmap\nm = mmap.mmap(-1, 512 << 20, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)\n"
         "m.madvise(23)\nprint('alive')"); /* MADV_POPULATE_WRITE */
    CU_ASSERT_EQUAL(o.code, SG_E_GONE);
    EXPECT_TEXT(o.error.message,
                "local (box): the interpreter ran out of memory (limit 128MiB); variables "
                "and files are gone");
    EXPECT_TEXT(o.out.data, "");
    create(box);
    exec("import subprocess, sys\n"
         "r = subprocess.run([sys.executable, '-c', '''import mmap\n"
         "m = mmap.mmap(-1, 512 << 20, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)\n"
         "m.madvise(23)'''])\nprint(r.returncode)");
    CU_ASSERT_EQUAL(o.code, 0);
    EXPECT_TEXT(o.out.data, "-9\n");
    EXPECT_PART(o.all.data,
                "[status]{\"state\":\"memory\",\"note\":\"processes started by the code "
                "were killed for the memory they took (limit 128MiB)\"}");
    /* That was that run's; this one's interpreter is killed by its own code, and has memory enough. */
    exec("import os, subprocess\nsubprocess.run(['kill', '-9', str(os.getpid())])");
    EXPECT_TEXT(o.error.message, "local (box): the interpreter crashed with SIGKILL; variables and "
                                 "files are gone");
    create(box);
}

static void whose_memory_it_was_is_told_by_the_groups_counter(void)
{
    if (!lacks(GROUP_MEMORY, "of memory")) {
        with_options(&small, memory_body);
    }
}

static void pinned_body(void)
{
    exec("import os, threading\n"
         "print(len(os.sched_getaffinity(0)), os.getpriority(os.PRIO_PROCESS, 0))\n"
         "try: os.sched_setaffinity(0, range(os.cpu_count()))\n"
         "except OSError as e: print(e.errno)\n"
         "print(len(os.sched_getaffinity(0)))\n"
         "try: os.setpriority(os.PRIO_PROCESS, 0, 0)\n"
         "except OSError as e: print(e.errno)\n");
    CU_ASSERT_EQUAL(o.code, 0);
    EXPECT_PART(o.out.data, "1 ");
    EXPECT_PART(o.out.data, "\n1\n1\n13\n");
}

static void free_body(void)
{
    char expected[32]; /* as nice as who made it */
    snprintf(expected, sizeof expected, "[out]True %d\n", getpriority(PRIO_PROCESS, 0));
    EXPECT_RUN("import os\nprint(len(os.sched_getaffinity(0)) == os.cpu_count(),\n"
               "      os.getpriority(os.PRIO_PROCESS, 0))",
               expected);
}

static void without_a_group_a_box_stays_on_some_processors(void)
{
    if ((controls & GROUP_CPU) != 0) {
        with_options(&(struct host_options){.cpu = "1"}, free_body);
        return;
    }
    with_options(&(struct host_options){.cpu = "1"}, pinned_body);
    with_options(&(struct host_options){.cpu = "0"}, free_body);
}

/* ---- freezing ---- */

static bool is_frozen(pid_t driver)
{
    char folder[GROUP_FILE_PATH], path[GROUP_FILE_PATH], text[256];
    if (!group_of(GROUP_FREEZE, driver, folder)) {
        return false;
    }
    group_file_path(path, folder, "cgroup.events");
    return group_file_read(path, text, sizeof text) && strstr(text, "frozen 1") != NULL;
}

static void await_frozen(pid_t driver, bool frozen)
{
    while (is_frozen(driver) != frozen) {
        CU_ASSERT_EQUAL_FATAL(fiber_sleep(1), 0);
    }
}

static long long ticks_of(pid_t pid)
{
    char path[64], text[1024];
    long long user = -1, system = -1;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (group_file_read(path, text, sizeof text)) {
        (void)sscanf(strrchr(text, ')') + 2,
                     "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld", &user, &system);
    }
    return user + system;
}

static void left_over_body(void)
{
    char other[128];
    exec("import threading, itertools\ncount = itertools.count()\n"
         "def spin():\n    while True: next(count)\n"
         "threading.Thread(target=spin, daemon=True).start()\nprint('on')");
    EXPECT_TEXT(o.out.data, "on\n");
    pid_t driver = driver_pid();
    await_frozen(driver, true);
    long long before = ticks_of(driver);
    /* While another box computes, so that time passes. */
    create(other);
    host_exec(other, NULL, "print(sum(range(3000000)))", 26, DEFAULT_TIMEOUT_MS, &o);
    EXPECT_TEXT(o.out.data, "4499998500000\n");
    CU_ASSERT_EQUAL(host_destroy(other, &e), 0);
    CU_ASSERT_EQUAL(ticks_of(driver), before);
    /* The next run finds it going on. */
    exec("import time\nfirst = next(count)\ntime.sleep(0.05)\nprint(next(count) > first + 1)");
    EXPECT_TEXT(o.out.data, "True\n");
    /* So do file functions find the box. */
    await_frozen(driver, true);
    host_put(box, "kept", "content", 7, &o);
    CU_ASSERT_EQUAL(o.code, 0);
    await_frozen(driver, true);
    host_get(box, "kept", &o);
    EXPECT_TEXT(o.out.data, "content");
    await_frozen(driver, true);
    CU_ASSERT_EQUAL(host_interrupt(box, &e), 0); /* of nothing */
    CU_ASSERT_EQUAL(host_touch(box, 600000, &e), 0);
    CU_ASSERT_TRUE(is_frozen(driver));
    EXPECT_RUN("print(6 * 7)", "[out]42\n");
    await_frozen(driver, true); /* and so it is destroyed */
}

static void what_a_run_leaves_is_frozen_until_the_next(void)
{
    if (!lacks(GROUP_FREEZE, "for freezing")) {
        with_box(left_over_body);
    }
}

static void frozen_ends_body(void)
{
    char other[128];
    exec("1");
    await_frozen(driver_pid(), true);
    CU_ASSERT_EQUAL(host_touch(box, 100, &e), 0);
    while (host_boxes(NULL, 0) > 0) { /* its life is over */
        CU_ASSERT_EQUAL_FATAL(fiber_sleep(1), 0);
    }
    exec("1");
    CU_ASSERT_EQUAL(o.code, SG_E_GONE_BEFORE);
    create(other);
    host_exec(other, NULL, "1", 1, DEFAULT_TIMEOUT_MS, &o);
    pid_t driver = driver_pid();
    await_frozen(driver, true);
    pid_t broker = (pid_t)host_broker_pid();
    CU_ASSERT_EQUAL(kill(broker, SIGKILL), 0);
    host_exec(other, NULL, "import time\ntime.sleep(15)", 26, DEFAULT_TIMEOUT_MS, &o);
    CU_ASSERT_TRUE(o.code == SG_E_GONE || o.code == SG_E_GONE_BEFORE);
    create(box); /* by a new broker, which sweeps */
    EXPECT_RUN("print(6 * 7)", "[out]42\n");
    while (kill(driver, 0) == 0) {
        CU_ASSERT_EQUAL_FATAL(fiber_sleep(1), 0);
    }
}

static void a_frozen_box_ends_as_any_other(void)
{
    if (!lacks(GROUP_FREEZE, "for freezing")) {
        with_box(frozen_ends_body);
    }
}

static void abandoned_body(void)
{
    exec("kept = 3");
    host_exec_abandon(box,
                      "import time\nprint('on', flush=True)\ntry: time.sleep(60)\n"
                      "except KeyboardInterrupt: kept += 1\n",
                      "on");
    exec("print(kept)");
    EXPECT_TEXT(o.out.data, "4\n");
}

static void what_was_abandoned_comes_to_its_end_before_it_is_frozen(void)
{
    with_box(abandoned_body);
}

/* ---- making and removing ---- */

static char broker_name[GROUP_FILE_PATH]; /* of its folders */

static size_t brokers_folders(void)
{
    size_t count = 0;
    for (size_t i = 0; i < trees_count; i++) {
        count += folders_below(trees[i].path, broker_name);
    }
    return count;
}

static void removed_body(void)
{
    char handle[128], folder[GROUP_FILE_PATH];
    for (int i = 0; i < 10; i++) {
        create(handle);
        CU_ASSERT_TRUE_FATAL(group_of(GROUP_MEMORY, driver_pid(), folder));
        CU_ASSERT_EQUAL(host_destroy(handle, &e), 0);
        while (host_boxes(NULL, 0) > 0) {
            CU_ASSERT_EQUAL_FATAL(fiber_sleep(1), 0);
        }
    }
    *strstr(folder, "/box-") = '\0';
    while (folders_below(folder, "box-") > 2) { /* those that are made ahead */
        CU_ASSERT_EQUAL_FATAL(fiber_sleep(1), 0);
    }
    snprintf(broker_name, sizeof broker_name, "%s", strrchr(folder, '/') + 1);
    CU_ASSERT_TRUE(brokers_folders() > 0);
}

static void groups_go_with_their_boxes_and_with_their_broker(void)
{
    if (!lacks(GROUP_MEMORY, "of memory")) {
        without_box(NULL, removed_body);
        CU_ASSERT_EQUAL(brokers_folders(), 0);
    }
}

static void folder_at(const struct group_tree *tree, const struct group_owner *owner,
                      char ret[GROUP_FILE_PATH])
{
    char name[GROUP_NAME_BYTES];
    group_owner_write(owner, name);
    group_file_path(ret, tree->path, name);
}

static bool is_there(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

static void no_body(void)
{
}

static void only_what_dead_brokers_have_left_is_swept(void)
{
    if (lacks(GROUP_MEMORY, "of memory")) {
        return;
    }
    struct stat info;
    char stale[GROUP_FILE_PATH], box_in_it[GROUP_FILE_PATH + 8], elsewhere[GROUP_FILE_PATH],
        living[GROUP_FILE_PATH], foreign[GROUP_FILE_PATH];
    const struct group_tree *tree = tree_of(GROUP_MEMORY);
    CU_ASSERT_EQUAL_FATAL(stat("/proc/self/ns/pid", &info), 0);
    /* The broker was killed and its pid is another process's now (ours); a broker in another pid namespace; one that lives. */
    const char *at = NULL;
    char text[1024];
    CU_ASSERT_TRUE_FATAL(group_file_read("/proc/self/stat", text, sizeof text));
    at = strrchr(text, ')');
    for (int field = 2; field < 22; field++) {
        at = strchr(at + 1, ' ');
    }
    uint64_t start = strtoull(at, NULL, 10);
    struct group_owner owner = {info.st_ino, (uint64_t)getpid(), start + 1};
    folder_at(tree, &owner, stale);
    owner.start = start;
    folder_at(tree, &owner, living);
    owner = (struct group_owner){info.st_ino + 1, 1, 1};
    folder_at(tree, &owner, elsewhere);
    group_file_path(foreign, tree->path, "sandgate-local.not-ours");
    snprintf(box_in_it, sizeof box_in_it, "%.*s/box-7", GROUP_FILE_PATH - 1, stale);
    const char *const made[] = {stale, box_in_it, elsewhere, living, foreign};
    for (size_t i = 0; i < COUNT_OF(made); i++) {
        CU_ASSERT_EQUAL_FATAL(mkdir(made[i], 0755), 0);
    }
    without_box(NULL, no_body);
    CU_ASSERT_FALSE(is_there(stale));
    CU_ASSERT_TRUE(is_there(elsewhere));
    CU_ASSERT_TRUE(is_there(living));
    CU_ASSERT_TRUE(is_there(foreign));
    CU_ASSERT_EQUAL(rmdir(elsewhere) | rmdir(living) | rmdir(foreign), 0);
}

/* ---- tiers ---- */

static void strict_is_refused_where_groups_are_not_there(void)
{
    struct host_options options = {.isolation = "strict"};
    host_run(open_fiber, &options);
    if ((controls & GROUP_LIMITS) == GROUP_LIMITS) {
        EXPECT_TEXT(e.message, "");
        CU_ASSERT_EQUAL(open_code, 0);
        return;
    }
    CU_ASSERT_EQUAL(open_code, SG_E_CONFIG);
    EXPECT_PART(e.message, "local (box): 'isolation: strict' needs control groups of memory, pids "
                           "and cpu, and there are not all of them: ");
    EXPECT_PART(e.message,
                ". Run the gateway as root, or as a service with Delegate=yes (systemd), "
                "or set 'isolation: best-effort'");
}

static void a_number_of_processors_is_a_number_of_processors(void)
{
    static const char *const wrong[] = {"",     "x",   "-1", "1.", "1,5", "0.01", "0.0499",
                                        "1025", "1e3", " 1", "1 ", "0x1", "99999"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        char message[200];
        struct host_options options = {.cpu = wrong[i]};
        host_run(open_fiber, &options);
        CU_ASSERT_EQUAL(open_code, SG_E_CONFIG);
        snprintf(message, sizeof message,
                 "local (box): 'cpu' must be a number of processors such as 0.5 or 2, from 0.05 to "
                 "1024, or 0 for no limit, not '%s'",
                 wrong[i]);
        EXPECT_TEXT(e.message, message);
    }
}

static size_t boxes_in(const char *folder)
{
    size_t count = 0;
    DIR *listing = opendir(folder);
    const struct dirent *entry;
    while (listing != NULL && (entry = readdir(listing)) != NULL) {
        count += strncmp(entry->d_name, "box-", 4) == 0;
    }
    if (listing != NULL) {
        closedir(listing);
    }
    return count;
}

#define LEAVING 11
#define AT_ONCE 4
#define SPARES 2

/* Fewer than there are, so that an ask is heard in between; one that is still in use keeps no other from its turn. */
static void groups_are_removed_a_few_at_a_time(void)
{
    static struct groups groups;
    struct box_group boxes[LEAVING];
    if (lacks(GROUP_FREEZE, "to be removed")) {
        return;
    }
    groups_start(&groups, &(struct group_limits){64 * MIB_BYTES, 10, 500});
    const char *folder = groups.trees[0].path;
    for (int i = 0; i < LEAVING; i++) {
        CU_ASSERT_TRUE_FATAL(group_take(&groups, &boxes[i]));
    }
    pid_t user = fork();
    if (user == 0) {
        pause();
    }
    CU_ASSERT_TRUE(group_join(&groups, &boxes[0], user, false));
    for (int i = 0; i < LEAVING; i++) {
        group_drop(&groups, &boxes[i]);
        box_group_close(&boxes[i]);
    }
    CU_ASSERT_EQUAL(boxes_in(folder), LEAVING);
    CU_ASSERT_EQUAL(groups_tend(&groups), 0);
    CU_ASSERT_EQUAL(boxes_in(folder), LEAVING - (AT_ONCE - 1) + SPARES);
    CU_ASSERT_EQUAL(groups_tend(&groups), 0);
    CU_ASSERT_EQUAL(boxes_in(folder), LEAVING - (2 * AT_ONCE - 1) + SPARES);
    CU_ASSERT_TRUE(groups_tend(&groups) > 0);
    CU_ASSERT_EQUAL(boxes_in(folder), 1 + SPARES); /* the one that is in use */
    CU_ASSERT_EQUAL(kill(user, SIGKILL), 0);
    CU_ASSERT_EQUAL(waitpid(user, NULL, 0), user);
    while (groups_tend(&groups) >= 0) {
    }
    CU_ASSERT_EQUAL(boxes_in(folder), SPARES);
    groups_end(&groups);
}

static const struct test tests[] = {
    TEST(every_limit_is_in_the_group_of_a_box),
    TEST(whose_memory_it_was_is_told_by_the_groups_counter),
    TEST(without_a_group_a_box_stays_on_some_processors),
    TEST(what_a_run_leaves_is_frozen_until_the_next),
    TEST(a_frozen_box_ends_as_any_other),
    TEST(what_was_abandoned_comes_to_its_end_before_it_is_frozen),
    TEST(groups_go_with_their_boxes_and_with_their_broker),
    TEST(only_what_dead_brokers_have_left_is_swept),
    TEST(groups_are_removed_a_few_at_a_time),
    TEST(strict_is_refused_where_groups_are_not_there),
    TEST(a_number_of_processors_is_a_number_of_processors),
};

int main(int argc, char **argv)
{
    look_around();
    return run_tests("local_groups", tests, COUNT_OF(tests), argc, argv);
}
