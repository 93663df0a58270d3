/* Where this process's control groups are: pure functions over the kernel's texts. */
#include "cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS_MAX 32

static const struct {
    const char *name;
    unsigned control;
} controllers[] = {
    {"memory", GROUP_MEMORY},
    {GROUP_PIDS_CONTROLLER, GROUP_PIDS},
    {"cpu", GROUP_CPU},
};

/* Those of a list of names. */
static unsigned controls_of(const char *list, size_t len, const char *separators)
{
    unsigned controls = 0;
    for (size_t at = 0; at < len;) {
        size_t word = strcspn(list + at, separators);
        word = word < len - at ? word : len - at;
        for (size_t i = 0; i < sizeof controllers / sizeof controllers[0]; i++) {
            if (strlen(controllers[i].name) == word &&
                strncmp(list + at, controllers[i].name, word) == 0) {
                controls |= controllers[i].control;
            }
        }
        at += word + 1;
    }
    return controls;
}

unsigned group_controls_read(const char *line)
{
    return controls_of(line, strlen(line), " \n") & GROUP_LIMITS;
}

/* ---- what the process is in ---- */

struct text_part {
    const char *data;
    size_t len;
};

/* The path of a line "ID:CONTROLLERS:PATH" that has the controller; of "0::PATH" for v2. Empty if there is none. */
static struct text_part membership(const char *memberships, unsigned control, bool is_v2)
{
    for (const char *line = memberships; *line != '\0';) {
        size_t len = strcspn(line, "\n");
        const char *names = memchr(line, ':', len);
        const char *path =
            names == NULL ? NULL : memchr(names + 1, ':', (size_t)(line + len - names) - 1);
        if (path != NULL) {
            size_t names_len = (size_t)(path - names) - 1;
            bool fits = is_v2 ? names_len == 0 && strncmp(line, "0:", 2) == 0
                              : (controls_of(names + 1, names_len, ",:") & control) != 0;
            if (fits) {
                return (struct text_part){path + 1, (size_t)(line + len - path) - 1};
            }
        }
        line += len + (line[len] == '\n');
    }
    return (struct text_part){"", 0};
}

/* ---- where that is mounted ---- */

struct mount {
    struct text_part root, point, type, options;
};

/* "ID PARENT DEVICE ROOT POINT OPTIONS [TAG…] - TYPE SOURCE SUPER_OPTIONS" */
static bool mount_read(const char *line, size_t len, struct mount *ret)
{
    struct text_part fields[FIELDS_MAX];
    size_t count = 0, dash = 0;
    for (size_t at = 0; at < len && count < FIELDS_MAX;) {
        size_t word = 0;
        while (at + word < len && line[at + word] != ' ') {
            word++;
        }
        if (word == 1 && line[at] == '-' && count >= 6 && dash == 0) {
            dash = count;
        }
        fields[count++] = (struct text_part){line + at, word};
        at += word + 1;
    }
    if (dash == 0 || count < dash + 4) {
        return false;
    }
    *ret = (struct mount){fields[3], fields[4], fields[dash + 1], fields[dash + 3]};
    return memchr(ret->point.data, '\\', ret->point.len) == NULL &&
           memchr(ret->root.data, '\\', ret->root.len) == NULL; /* octal: none of ours */
}

static bool part_is(struct text_part part, const char *text)
{
    return part.len == strlen(text) && memcmp(part.data, text, part.len) == 0;
}

/* The folder of a group by its path, as far as the mount shows it. */
static bool folder_of(const struct mount *mount, struct text_part path, char ret[GROUP_PATH])
{
    size_t hidden = part_is(mount->root, "/") ? 0 : mount->root.len;
    bool is_below = path.len >= hidden && memcmp(path.data, mount->root.data, hidden) == 0 &&
                    (path.len == hidden || path.data[hidden] == '/');
    if (path.len == 0 || path.data[0] != '/' || !is_below ||
        memmem(path.data, path.len, "/..", 3) != NULL) {
        return false;
    }
    struct text_part rest = {path.data + hidden, path.len - hidden};
    if (part_is(rest, "/")) {
        rest.len = 0;
    }
    int len = snprintf(ret, GROUP_PATH, "%.*s%.*s", (int)mount->point.len, mount->point.data,
                       (int)rest.len, rest.data);
    return len > 0 && len < GROUP_PATH - GROUP_NAME_BYTES;
}

static void tree_add(struct group_tree *trees, size_t *count, const struct group_tree *tree)
{
    for (size_t i = 0; i < *count; i++) {
        if (strcmp(trees[i].path, tree->path) == 0) {
            trees[i].controls |= tree->controls;
            return;
        }
    }
    if (*count < GROUP_TREES_MAX) {
        trees[(*count)++] = *tree;
    }
}

static void mount_add(const struct mount *mount, const char *memberships, unsigned wanted,
                      struct group_tree *trees, size_t *count)
{
    struct group_tree tree = {.is_v2 = part_is(mount->type, "cgroup2")};
    unsigned offered = tree.is_v2 ? GROUP_FREEZE
                       : part_is(mount->type, "cgroup")
                           ? controls_of(mount->options.data, mount->options.len, ",")
                           : 0;
    tree.controls = offered & wanted;
    if (tree.controls != 0 &&
        folder_of(mount, membership(memberships, tree.controls, tree.is_v2), tree.path)) {
        tree_add(trees, count, &tree);
    }
}

/* All mounts of one of both versions that give what is wanted and not there yet. */
static void mounts_add(const char *mounts, const char *memberships, bool v2,
                       struct group_tree *trees, size_t *count)
{
    for (const char *line = mounts; *line != '\0';) {
        size_t len = strcspn(line, "\n");
        struct mount mount;
        unsigned wanted = GROUP_LIMITS | GROUP_FREEZE;
        for (size_t i = 0; i < *count; i++) {
            wanted &= ~trees[i].controls;
        }
        if (mount_read(line, len, &mount) && part_is(mount.type, "cgroup2") == v2) {
            mount_add(&mount, memberships, wanted, trees, count);
        }
        line += len + (line[len] == '\n');
    }
}

size_t group_trees_find(const char *memberships, const char *mounts,
                        struct group_tree ret_trees[GROUP_TREES_MAX])
{
    size_t count = 0;
    mounts_add(mounts, memberships, true, ret_trees, &count);
    mounts_add(mounts, memberships, false, ret_trees, &count);
    return count;
}

/* ---- names ---- */

static const char name_prefix[] = "sandgate-local.";

void group_owner_write(const struct group_owner *owner, char ret_name[GROUP_NAME_BYTES])
{
    snprintf(ret_name, GROUP_NAME_BYTES, "%s%llu.%llu.%llu", name_prefix,
             (unsigned long long)owner->pid_namespace, (unsigned long long)owner->pid,
             (unsigned long long)owner->start);
}

bool group_owner_read(const char *name, struct group_owner *ret)
{
    size_t prefix = sizeof name_prefix - 1;
    if (strncmp(name, name_prefix, prefix) != 0) {
        return false;
    }
    uint64_t *const numbers[] = {&ret->pid_namespace, &ret->pid, &ret->start};
    char *end = NULL;
    const char *at = name + prefix;
    for (size_t i = 0; i < 3; i++) {
        *numbers[i] = strtoull(at, &end, 10);
        at = end + 1;
        if (*end != (i == 2 ? '\0' : '.')) {
            return false;
        }
    }
    /* Written as this file writes it, and no other way: signs, blanks and zeros in front are none of ours. */
    char again[GROUP_NAME_BYTES];
    group_owner_write(ret, again);
    return strcmp(again, name) == 0;
}
