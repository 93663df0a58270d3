/* Groups of single boxes: made, joined, frozen, removed. Which hierarchies there are is cgroup_start.c's. */
#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SPARES 2    /* made ahead */
#define RETRY_MS 50 /* until a group that was still in use is tried again */
/* Tried to remove at one time: the kernel takes up to milliseconds for each, and somebody may be asking for a box. */
#define REMOVALS_AT_ONCE 4
#define CPU_PERIOD_US 100000u

/* ---- files ---- */

bool group_file_read(const char *path, char *ret_text, size_t size)
{
    size_t used = 0;
    ssize_t len = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && used < size - 1 && (len = read(fd, ret_text + used, size - 1 - used)) > 0) {
        used += (size_t)len; /* the kernel gives such files a page at a time */
    }
    int error = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = error;
    ret_text[used] = '\0';
    return fd >= 0 && len >= 0;
}

static bool fd_write(int fd, const char *text)
{
    ssize_t len = write(fd, text, strlen(text));
    return len == (ssize_t)strlen(text);
}

void group_file_path(char ret[GROUP_FILE_PATH], const char *folder, const char *name)
{
    /* (Both fit: group_trees_find() leaves room, and the kernel's names are no longer.) */
    snprintf(ret, GROUP_FILE_PATH, "%.*s/%.*s", GROUP_PATH, folder, 255, name);
}

bool group_file_write(const char *folder, const char *name, const char *text)
{
    char path[GROUP_FILE_PATH];
    group_file_path(path, folder, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool written = fd >= 0 && fd_write(fd, text);
    int error = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = error;
    return written;
}

static void group_folder(const struct group_tree *tree, unsigned index, char ret[GROUP_PATH])
{
    snprintf(ret, GROUP_PATH, "%.*s/box-%u", GROUP_PATH - 24, tree->path, index);
}

/* ---- making ---- */

struct limit_file {
    unsigned control;
    bool is_v2, may_lack; /* not there: without swap there is nothing to limit */
    const char *name;
    const char *value;
};

static bool limit_write(const struct limit_file *file, const struct group_tree *tree,
                        const char *folder)
{
    if ((file->control & tree->controls) == 0 || file->is_v2 != tree->is_v2 ||
        file->value[0] == '\0') {
        return true;
    }
    return group_file_write(folder, file->name, file->value) || (file->may_lack && errno == ENOENT);
}

static bool limits_write(const struct group_limits *limits, const struct group_tree *tree,
                         const char *folder)
{
    char memory[32], pids[32], quota[32] = "", max[48] = "";
    snprintf(memory, sizeof memory, "%llu", (unsigned long long)limits->memory_bytes);
    snprintf(pids, sizeof pids, "%llu", (unsigned long long)limits->processes);
    if (limits->cpu_millis != 0) {
        snprintf(quota, sizeof quota, "%llu",
                 (unsigned long long)limits->cpu_millis * CPU_PERIOD_US / 1000);
        snprintf(max, sizeof max, "%s %u", quota, CPU_PERIOD_US);
    }
    const struct limit_file files[] = {
        {GROUP_MEMORY, true, false, "memory.max", memory},
        {GROUP_MEMORY, true, true, "memory.swap.max", "0"},
        {GROUP_MEMORY, false, false, "memory.limit_in_bytes", memory},
        {GROUP_MEMORY, false, true, "memory.memsw.limit_in_bytes", memory},
        {GROUP_PIDS, true, false, GROUP_PIDS_FILE, pids},
        {GROUP_PIDS, false, false, GROUP_PIDS_FILE, pids},
        {GROUP_CPU, true, false, "cpu.max", max},
        {GROUP_CPU, false, false, "cpu.cfs_quota_us", quota},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (!limit_write(&files[i], tree, folder)) {
            return false;
        }
    }
    return true;
}

bool group_make(const struct groups *groups, const struct group_tree *tree, unsigned index)
{
    char folder[GROUP_PATH], work[GROUP_FILE_PATH];
    group_folder(tree, index, folder);
    group_file_path(work, folder, "work");
    return (mkdir(folder, 0755) == 0 || errno == EEXIST) &&
           limits_write(&groups->limits, tree, folder) &&
           ((tree->controls & GROUP_FREEZE) == 0 || mkdir(work, 0755) == 0 || errno == EEXIST);
}

static bool folder_remove(const char *folder)
{
    return rmdir(folder) == 0 || errno == ENOENT;
}

bool group_remove(const struct groups *groups, unsigned index)
{
    bool removed = true;
    for (size_t i = 0; i < groups->trees_count; i++) {
        char folder[GROUP_PATH], work[GROUP_FILE_PATH];
        group_folder(&groups->trees[i], index, folder);
        group_file_path(work, folder, "work");
        removed = folder_remove(work) && folder_remove(folder) && removed;
    }
    return removed;
}

static int entry_find(const struct groups *groups, enum group_state state)
{
    for (int i = 0; i < GROUPS_MAX; i++) {
        if (groups->entries[i].state == state) {
            return i;
        }
    }
    return -1;
}

static bool spare_make(struct groups *groups)
{
    int index = entry_find(groups, GROUP_NONE);
    if (index < 0) {
        errno = ENOSPC;
        return false;
    }
    for (size_t i = 0; i < groups->trees_count; i++) {
        if (!group_make(groups, &groups->trees[i], (unsigned)index)) {
            int error = errno;
            groups->entries[index].state = GROUP_LEAVING;
            errno = error;
            return false;
        }
    }
    groups->entries[index].state = GROUP_SPARE;
    return true;
}

/* ---- a box's ---- */

static int file_open(const struct group_tree *tree, int index, const char *name, int flags)
{
    char folder[GROUP_PATH], path[GROUP_FILE_PATH];
    group_folder(tree, (unsigned)index, folder);
    group_file_path(path, folder, name);
    return open(path, flags | O_CLOEXEC);
}

static bool files_open(const struct groups *groups, struct box_group *group)
{
    bool good = true;
    for (size_t i = 0; i < groups->trees_count && good; i++) {
        const struct group_tree *tree = &groups->trees[i];
        if (tree->is_v2) {
            group->into = file_open(tree, group->index, ".", O_RDONLY | O_DIRECTORY);
            good = group->into >= 0;
        }
        if (good && (tree->controls & GROUP_FREEZE) != 0) {
            group->work = file_open(tree, group->index, "work/cgroup.procs", O_WRONLY);
            group->freeze = file_open(tree, group->index, "work/cgroup.freeze", O_WRONLY);
            good = group->work >= 0 && group->freeze >= 0;
        }
        if (good && (tree->controls & GROUP_MEMORY) != 0) {
            group->events = file_open(
                tree, group->index, tree->is_v2 ? "memory.events" : "memory.oom_control", O_RDONLY);
            good = group->events >= 0;
        }
    }
    return good;
}

bool group_take(struct groups *groups, struct box_group *ret)
{
    *ret = (struct box_group){-1, -1, -1, -1, -1};
    if (groups->controls == 0) {
        return true;
    }
    if (entry_find(groups, GROUP_SPARE) < 0 && !spare_make(groups)) {
        return false;
    }
    ret->index = entry_find(groups, GROUP_SPARE);
    groups->entries[ret->index].state = GROUP_USED;
    groups->entries[ret->index].pid = 0;
    if (!files_open(groups, ret)) {
        int error = errno;
        group_drop(groups, ret);
        box_group_close(ret);
        errno = error;
        return false;
    }
    return true;
}

void box_group_close(struct box_group *group)
{
    int *const fds[] = {&group->into, &group->work, &group->freeze, &group->events};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (*fds[i] >= 0) {
            close(*fds[i]);
        }
        *fds[i] = -1;
    }
}

bool group_join(const struct groups *groups, const struct box_group *group, pid_t pid,
                bool is_in_v2)
{
    char folder[GROUP_PATH], number[16];
    snprintf(number, sizeof number, "%d", (int)pid);
    for (size_t i = 0; group->index >= 0 && i < groups->trees_count; i++) {
        group_folder(&groups->trees[i], (unsigned)group->index, folder);
        if (!(groups->trees[i].is_v2 && is_in_v2) &&
            !group_file_write(folder, "cgroup.procs", number)) {
            return false;
        }
    }
    return true;
}

/* ---- from birth to removal ---- */

void group_note(struct groups *groups, const struct box_group *group, pid_t pid)
{
    if (group->index >= 0) {
        groups->entries[group->index].pid = pid;
    }
}

void group_drop(struct groups *groups, const struct box_group *group)
{
    if (group->index >= 0) {
        groups->entries[group->index].state = GROUP_LEAVING;
    }
}

void groups_reaped(struct groups *groups, pid_t pid)
{
    for (int i = 0; i < GROUPS_MAX; i++) {
        if (groups->entries[i].state == GROUP_USED && groups->entries[i].pid == pid) {
            groups->entries[i].state = GROUP_LEAVING;
        }
    }
}

static size_t spares_count(const struct groups *groups)
{
    size_t count = 0;
    for (int i = 0; i < GROUPS_MAX; i++) {
        count += groups->entries[i].state == GROUP_SPARE;
    }
    return count;
}

static bool sweep_again(struct groups *groups)
{
    bool clean = true;
    broker_override_modes(true);
    for (size_t i = 0; i < groups->trees_count; i++) {
        clean = groups_sweep(&groups->trees[i]) && clean;
    }
    broker_override_modes(false);
    groups->sweeps_left = clean ? 0 : groups->sweeps_left - 1;
    return clean;
}

/* Some of those that are to go, round and round, so that none that stays in use keeps others from their turn. As
 * groups_tend(). */
static int remove_some(struct groups *groups)
{
    int tries = 0, wait_ms = -1;
    for (unsigned seen = 0; seen < GROUPS_MAX; seen++) {
        unsigned i = groups->next_removal;
        if (groups->entries[i].state == GROUP_LEAVING) {
            if (tries++ == REMOVALS_AT_ONCE) {
                return 0;
            }
            bool removed = group_remove(groups, i);
            groups->entries[i].state = removed ? GROUP_NONE : GROUP_LEAVING;
            wait_ms = removed ? wait_ms : RETRY_MS;
        }
        groups->next_removal = (i + 1) % GROUPS_MAX;
    }
    return wait_ms;
}

int groups_tend(struct groups *groups)
{
    if (groups->controls == 0) {
        return -1;
    }
    int wait_ms = remove_some(groups);
    if (groups->sweeps_left > 0 && !sweep_again(groups) && wait_ms < 0) {
        wait_ms = RETRY_MS;
    }
    while (spares_count(groups) < SPARES && spare_make(groups)) {
    }
    return wait_ms;
}
