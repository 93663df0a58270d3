/* Dividing a control group of v2, as systemd delegates one: gateway and broker leave it, controllers are handed down level by
 * level, each box has its limit in it. That takes a controller of v2. Where v1 has those that boxes are limited by, the program is
 * built with another in the place of pids (CMakeLists.txt): hugetlb, which is hardly ever anybody's.
 *
 * As root; 77: no tree of v2, or none of these controllers in it. */
#include "box/cgroup.h"

#include "base/check.h"
#include "cunit_main.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char parent[GROUP_PATH];     /* the group that the test is in */
static char group[GROUP_FILE_PATH]; /* the one that is divided */
static bool enabled_here;

#define STEP(condition)                                                 \
    do {                                                                \
        if (!(condition)) {                                             \
            fprintf(stderr, "line %d: %s: %m\n", __LINE__, #condition); \
            _exit(1);                                                   \
        }                                                               \
    } while (0)

static bool says(const char *folder, const char *name, const char *part)
{
    char path[GROUP_FILE_PATH], text[512];
    group_file_path(path, folder, name);
    return group_file_read(path, text, sizeof text) && strstr(text, part) != NULL;
}

static bool move_to(const char *folder)
{
    char number[16];
    snprintf(number, sizeof number, "%d", (int)getpid());
    return group_file_write(folder, "cgroup.procs", number);
}

/* ---- a broker ---- */

static const struct group_tree *v2_of(const struct groups *groups)
{
    for (size_t i = 0; i < groups->trees_count; i++) {
        if (groups->trees[i].is_v2) {
            return &groups->trees[i];
        }
    }
    return NULL;
}

static void broker_run(void)
{
    static struct groups groups;
    struct box_group box;
    char folder[GROUP_FILE_PATH];
    groups_start(&groups, &(struct group_limits){64u << 20, 0, 500});
    const struct group_tree *tree = v2_of(&groups);
    STEP(tree != NULL && (tree->controls & GROUP_PIDS) != 0 &&
         (tree->controls & GROUP_FREEZE) != 0);
    STEP(strncmp(tree->path, group, strlen(group)) == 0 && strlen(tree->path) > strlen(group));
    STEP(says("/proc/self", "cgroup", "/sandgate-main\n"));
    STEP(group_take(&groups, &box) && box.into >= 0 && box.work >= 0 && box.freeze >= 0);
    snprintf(folder, sizeof folder, "box-%d", box.index);
    char path[GROUP_FILE_PATH];
    group_file_path(path, tree->path, folder);
    STEP(says(path, GROUP_PIDS_FILE, "0\n"));
    pid_t pid = fork();
    if (pid == 0) {
        STEP(group_enter_work(&box));
        pause();
    }
    while (!says(path, "cgroup.events", "populated 1")) { /* once it is in it */
        sched_yield();
    }
    STEP(group_freeze(&box, true));
    group_file_path(folder, path, "work");
    while (!says(folder, "cgroup.events", "frozen 1")) {
        sched_yield();
    }
    kill(pid, SIGKILL); /* frozen or not */
    STEP(waitpid(pid, NULL, 0) == pid);
    group_note(&groups, &box, pid);
    groups_reaped(&groups, pid);
    box_group_close(&box);
    while (groups_tend(&groups) >= 0) {
        sched_yield();
    }
    struct stat info;
    groups_end(&groups);
    STEP(stat(tree->path, &info) != 0 && errno == ENOENT);
}

/* As the gateway starts it: its child, in its group. */
static void broker_start(void)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        broker_run();
        _exit(0);
    }
    STEP(waitpid(pid, &status, 0) == pid && status == 0);
}

/* ---- a gateway ---- */

static void in_gateway(void (*body)(void))
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        STEP(move_to(group));
        body();
        _exit(0);
    }
    waitpid(pid, &status, 0);
    CU_ASSERT_EQUAL(status, 0);
    (void)group_file_write(group, "cgroup.subtree_control", "-" GROUP_PIDS_CONTROLLER);
    char main_path[GROUP_FILE_PATH];
    group_file_path(main_path, group, "sandgate-main");
    (void)rmdir(main_path); /* only there where the group was divided */
}

static void two_brokers(void)
{
    broker_start();
    STEP(says("/proc/self", "cgroup", "/sandgate-main\n")); /* the gateway was moved along */
    broker_start();                                         /* and the next one finds that */
}

static void gateway_and_broker_leave_the_group_that_is_divided(void)
{
    in_gateway(two_brokers);
}

static void beside_another(void)
{
    static struct groups groups;
    int status = -1;
    pid_t other = fork();
    if (other == 0) {
        pause();
    }
    pid_t broker = fork();
    if (broker == 0) {
        groups_start(&groups, &(struct group_limits){64u << 20, 0, 500});
        STEP(v2_of(&groups) != NULL && (v2_of(&groups)->controls & GROUP_PIDS) == 0);
        STEP(strncmp(groups.missing, "other processes than the gateway's are in its control group",
                     59) == 0);
        groups_end(&groups);
        _exit(0);
    }
    STEP(waitpid(broker, &status, 0) == broker && status == 0);
    char path[64];
    snprintf(path, sizeof path, "/proc/%d", (int)other);
    STEP(!says(path, "cgroup", "/sandgate-main\n")); /* nobody else is moved */
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
}

static void other_processes_in_the_group_are_left_alone(void)
{
    in_gateway(beside_another);
}

/* ---- the place for it ---- */

static bool prepare(void)
{
    static char memberships[65536], mounts[262144];
    struct group_tree trees[GROUP_TREES_MAX];
    char name[64];
    if (geteuid() != 0 || !group_file_read("/proc/self/cgroup", memberships, sizeof memberships) ||
        !group_file_read("/proc/self/mountinfo", mounts, sizeof mounts) ||
        group_trees_find(memberships, mounts, trees) == 0 || !trees[0].is_v2) {
        return false;
    }
    memcpy(parent, trees[0].path, sizeof parent);
    snprintf(name, sizeof name, "sandgate-test-v2-%d", (int)getpid());
    group_file_path(group, parent, name);
    if (!says(parent, "cgroup.controllers", GROUP_PIDS_CONTROLLER)) {
        return false;
    }
    if (!says(parent, "cgroup.subtree_control", GROUP_PIDS_CONTROLLER)) {
        enabled_here =
            group_file_write(parent, "cgroup.subtree_control", "+" GROUP_PIDS_CONTROLLER);
        if (!enabled_here) {
            return false;
        }
    }
    return mkdir(group, 0755) == 0;
}

static const struct test tests[] = {
    TEST(gateway_and_broker_leave_the_group_that_is_divided),
    TEST(other_processes_in_the_group_are_left_alone),
};

int main(int argc, char **argv)
{
    if (!prepare()) {
        fprintf(stderr, "no control group of v2 with " GROUP_PIDS_CONTROLLER " can be made here\n");
        return 77;
    }
    int result = run_tests("local_groups_v2", tests, COUNT_OF(tests), argc, argv);
    CHECK(rmdir(group) == 0);
    if (enabled_here) {
        (void)group_file_write(parent, "cgroup.subtree_control", "-" GROUP_PIDS_CONTROLLER);
    }
    return result;
}
