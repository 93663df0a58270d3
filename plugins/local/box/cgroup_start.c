/* At the broker's start: which control groups can be had here, what dead brokers have left of theirs, and this broker's own
 * folders. Nothing of it needs to succeed; what did not is told. */
#include "cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SWEEPS 40     /* at RETRY_MS of cgroup.c: what was killed takes a moment to be gone */
#define END_TRIES 100 /* at 10 ms */
#define MAIN_NAME "sandgate-main"

/* The first reason is the one that counts. */
static void __attribute__((format(printf, 2, 3)))
miss(struct groups *groups, const char *format, ...)
{
    if (groups->missing[0] != '\0') {
        return;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(groups->missing, sizeof groups->missing, format, args);
    va_end(args);
}

/* ---- whose a folder is ---- */

static uint64_t pid_namespace(void)
{
    struct stat info;
    return stat("/proc/self/ns/pid", &info) == 0 ? (uint64_t)info.st_ino : 0;
}

#define START_UNKNOWN UINT64_MAX

/* When a process was started, in the kernel's ticks; 0: it has ended. */
static uint64_t start_of(uint64_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%llu/stat", (unsigned long long)pid);
    if (!group_file_read(path, text, sizeof text)) {
        return errno == ENOENT || errno == ESRCH ? 0 : START_UNKNOWN;
    }
    const char *at = strrchr(text, ')');
    if (at == NULL || at[1] == '\0' || at[2] == 'Z' || at[2] == 'X') {
        return 0;
    }
    for (int field = 2; field < 22 && at != NULL; field++) {
        at = strchr(at + 1, ' ');
    }
    return at == NULL ? 0 : strtoull(at, NULL, 10);
}

/* Only where that is sure: what it owned is killed. */
static bool owner_is_dead(const char *name)
{
    struct group_owner owner;
    if (!group_owner_read(name, &owner) || owner.pid_namespace != pid_namespace()) {
        return false;
    }
    uint64_t start = start_of(owner.pid);
    return start != START_UNKNOWN && owner.start != START_UNKNOWN && start != owner.start;
}

/* ---- sweeping ---- */

/* All processes in one group of a dead broker. Its boxes end with it by themselves; this is for what could not. */
static void group_kill_all(const char *folder)
{
    char path[GROUP_FILE_PATH], text[4096];
    if (group_file_write(folder, "cgroup.kill", "1")) {
        return;
    }
    group_file_path(path, folder, "cgroup.procs");
    if (group_file_read(path, text, sizeof text)) {
        char *end = text;
        for (long pid; (pid = strtol(end, &end, 10)) > 0;) {
            kill((pid_t)pid, SIGKILL);
        }
    }
}

/* A group with all below it; nothing here is deeper than box-N/work. */
static bool tree_remove(const char *folder, int depth)
{
    group_kill_all(folder);
    DIR *listing = depth == 0 ? NULL : opendir(folder);
    const struct dirent *entry;
    while (listing != NULL && (entry = readdir(listing)) != NULL) {
        char path[GROUP_FILE_PATH];
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
            group_file_path(path, folder, entry->d_name);
            (void)tree_remove(path, depth - 1); /* then this one is not removed either */
        }
    }
    if (listing != NULL) {
        closedir(listing);
    }
    return rmdir(folder) == 0 || errno == ENOENT;
}

/* Below the folder in which brokers have theirs. */
static bool sweep_below(const char *parent)
{
    bool clean = true;
    DIR *listing = opendir(parent);
    const struct dirent *entry;
    while (listing != NULL && (entry = readdir(listing)) != NULL) {
        if (entry->d_type == DT_DIR && owner_is_dead(entry->d_name)) {
            char path[GROUP_FILE_PATH];
            group_file_path(path, parent, entry->d_name);
            clean = tree_remove(path, 2) && clean;
        }
    }
    if (listing != NULL) {
        closedir(listing);
    }
    return clean;
}

bool groups_sweep(const struct group_tree *tree)
{
    char parent[GROUP_PATH];
    snprintf(parent, sizeof parent, "%s", tree->path);
    char *slash = strrchr(parent, '/');
    if (slash == NULL) {
        return true;
    }
    *slash = '\0';
    return sweep_below(parent);
}

/* ---- v2: leaving the group whose children get controllers ---- */

/* A broker that is started after another one, or anew, finds the gateway moved already. */
static void strip_main(char *path)
{
    char *name = strrchr(path, '/');
    if (name != NULL && strcmp(name + 1, MAIN_NAME) == 0) {
        *name = '\0';
    }
}

/* Moves gateway and broker out; false if others are there, whom nobody may move. */
static bool main_move(struct groups *groups, const char *folder)
{
    char path[GROUP_FILE_PATH], main_path[GROUP_FILE_PATH], text[4096], number[16];
    group_file_path(path, folder, "cgroup.procs");
    group_file_path(main_path, folder, MAIN_NAME);
    if (!group_file_read(path, text, sizeof text)) {
        return false;
    }
    char *end = text;
    for (long pid; (pid = strtol(end, &end, 10)) > 0;) {
        if (pid != (long)getpid() && pid != (long)getppid()) {
            miss(groups,
                 "other processes than the gateway's are in its control group '%.90s'; start it "
                 "as a service of its own",
                 folder);
            errno = EBUSY;
            return false;
        }
    }
    if (mkdir(main_path, 0755) != 0 && errno != EEXIST) {
        return false;
    }
    const pid_t ours[] = {getppid(), getpid()};
    for (int i = 0; i < 2; i++) {
        snprintf(number, sizeof number, "%d", (int)ours[i]);
        if (!group_file_write(main_path, "cgroup.procs", number)) {
            return false;
        }
    }
    return true;
}

static bool controllers_enable(const char *folder, unsigned controls)
{
    return ((controls & GROUP_MEMORY) == 0 ||
            group_file_write(folder, "cgroup.subtree_control", "+memory")) &&
           ((controls & GROUP_PIDS) == 0 ||
            group_file_write(folder, "cgroup.subtree_control", "+" GROUP_PIDS_CONTROLLER)) &&
           ((controls & GROUP_CPU) == 0 ||
            group_file_write(folder, "cgroup.subtree_control", "+cpu"));
}

/* What this tree can limit; enables it for groups below. */
static void v2_prepare(struct groups *groups, struct group_tree *tree)
{
    char path[GROUP_FILE_PATH], text[512];
    group_file_path(path, tree->path, "cgroup.controllers");
    unsigned there = group_file_read(path, text, sizeof text) ? group_controls_read(text) : 0;
    if (there == 0) {
        return; /* for freezing only, or not at all */
    }
    if (controllers_enable(tree->path, there) || (errno == EBUSY && main_move(groups, tree->path) &&
                                                  controllers_enable(tree->path, there))) {
        tree->controls |= there;
        return;
    }
    miss(groups, "the control group '%.90s' is not the gateway's to divide: %s", tree->path,
         strerror(errno));
}

/* ---- each hierarchy ---- */

/* Whether processes can be put into groups there: a child that waits for its end. */
static bool try_to_join(const char *folder)
{
    int ends[2];
    char number[16];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        close(ends[1]);
        (void)!read(ends[0], &byte, 1); /* nothing comes but the end */
        _exit(0);
    }
    snprintf(number, sizeof number, "%d", (int)pid);
    bool joined = pid > 0 && group_file_write(folder, "cgroup.procs", number);
    int error = errno;
    close(ends[0]);
    close(ends[1]);
    if (pid > 0) {
        waitpid(pid, NULL, 0);
    }
    errno = error;
    return joined;
}

static bool tree_try(const struct groups *groups, const struct group_tree *tree)
{
    char folder[GROUP_FILE_PATH], work[GROUP_FILE_PATH];
    group_file_path(folder, tree->path, "box-0");
    group_file_path(work, folder, "work");
    /* In v2 each level hands its controllers down by itself. */
    return mkdir(tree->path, 0755) == 0 &&
           (!tree->is_v2 || controllers_enable(tree->path, tree->controls & GROUP_LIMITS)) &&
           group_make(groups, tree, 0) &&
           try_to_join((tree->controls & GROUP_FREEZE) != 0 ? work : folder);
}

/* The broker's own folder in one hierarchy; false if it cannot be used. */
static bool tree_start(struct groups *groups, struct group_tree *tree)
{
    const struct group_owner owner = {pid_namespace(), (uint64_t)getpid(),
                                      start_of((uint64_t)getpid())};
    char name[GROUP_NAME_BYTES], parent[GROUP_PATH], path[GROUP_FILE_PATH];
    strip_main(tree->path);
    if (tree->is_v2) {
        v2_prepare(groups, tree);
    }
    memcpy(parent, tree->path, sizeof parent);
    group_owner_write(&owner, name);
    group_file_path(path, parent, name);
    memcpy(tree->path, path, sizeof tree->path); /* it fits: see folder_of() */
    if (!sweep_below(parent)) {
        groups->sweeps_left = SWEEPS;
    }
    if (tree_try(groups, tree)) {
        return true;
    }
    int error = errno;
    if ((tree->controls & GROUP_LIMITS) != 0) {
        miss(groups, "no control group can be made below '%.100s': %s", parent, strerror(error));
    }
    (void)tree_remove(tree->path, 2);
    return false;
}

static void tell_missing(struct groups *groups)
{
    unsigned lacks = GROUP_LIMITS & ~groups->controls;
    if (lacks == 0) {
        groups->missing[0] = '\0';
        return;
    }
    miss(groups, "the system offers no control group of%s%s%s",
         (lacks & GROUP_MEMORY) != 0 ? " memory" : "", (lacks & GROUP_PIDS) != 0 ? " pids" : "",
         (lacks & GROUP_CPU) != 0 ? " cpu" : "");
}

void groups_start(struct groups *groups, const struct group_limits *limits)
{
    static char memberships[65536], mounts[262144];
    struct group_tree found[GROUP_TREES_MAX];
    memset(groups, 0, sizeof *groups);
    groups->limits = *limits;
    if (!group_file_read("/proc/self/cgroup", memberships, sizeof memberships) ||
        !group_file_read("/proc/self/mountinfo", mounts, sizeof mounts)) {
        miss(groups, "/proc/self/cgroup or mountinfo cannot be read: %s", strerror(errno));
        return;
    }
    size_t count = group_trees_find(memberships, mounts, found);
    broker_override_modes(true);
    for (size_t i = 0; i < count; i++) {
        if (tree_start(groups, &found[i])) {
            groups->trees[groups->trees_count++] = found[i];
            groups->controls |= found[i].controls;
            groups->version = (found[i].controls & GROUP_LIMITS) == 0 ? groups->version
                              : found[i].is_v2                        ? 2
                                                                      : 1;
        }
    }
    broker_override_modes(false);
    tell_missing(groups);
    if (groups->controls != 0) {
        groups->entries[0].state = GROUP_SPARE;
    }
}

void groups_end(struct groups *groups)
{
    broker_override_modes(true);
    for (size_t i = 0; i < groups->trees_count; i++) {
        const struct timespec pause = {.tv_nsec = 10000000};
        for (int tries = 0; !tree_remove(groups->trees[i].path, 2) && tries < END_TRIES; tries++) {
            nanosleep(&pause, NULL);
        }
    }
}
