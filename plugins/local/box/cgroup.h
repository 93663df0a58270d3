/* Control groups of boxes, v2 and v1, as far as this process may make any.
 *
 * The broker makes one folder of its own below the group that it was started in, for each hierarchy that it uses, and in it
 * one group for each box: of memory, number of processes and processor time, and for freezing. The name of the folder says
 * whose it is, so that a later broker removes what a dead one has left, and touches nothing else.
 *
 *   v2    GROUP/sandgate-local.NAMESPACE.PID.START/box-N        pid 1 of the box, and its limits
 *                                                 /box-N/work   all other processes: these are frozen
 *         GROUP/sandgate-main                                   gateway and broker, which must leave GROUP for that
 *   v1    likewise for each controller, without `work` and `sandgate-main`
 *
 * Where v1 has the controllers and a tree of v2 stands beside them, that is used to freeze. The freezer of v1 is not: what
 * it has frozen cannot be killed, not even by the end of the box's pid 1.
 *
 * Joining a group can take 15 ms, until the kernel has looked at all processors; so can leaving an old one. Groups are
 * made ahead and removed later, never while somebody waits for a box. */
#ifndef LOCAL_CGROUP_H
#define LOCAL_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum group_control {
    GROUP_MEMORY = 1u << 0,
    GROUP_PIDS = 1u << 1,
    GROUP_CPU = 1u << 2,
    GROUP_FREEZE = 1u << 3, /* idle boxes: no limit */
};
#define GROUP_LIMITS ((unsigned)(GROUP_MEMORY | GROUP_PIDS | GROUP_CPU))

/* Another controller takes the place of this one in the test of v2 on systems where v1 has it. */
#ifndef GROUP_PIDS_CONTROLLER
#define GROUP_PIDS_CONTROLLER "pids"
#define GROUP_PIDS_FILE "pids.max"
#endif

#define GROUP_PATH 512
#define GROUP_TREES_MAX 4
#define GROUPS_MAX 4200 /* boxes, some that are made ahead, and some that are not yet removed */

/* One hierarchy. */
struct group_tree {
    char path[GROUP_PATH]; /* the folder in which groups are made */
    unsigned controls;     /* what it is used for */
    bool is_v2;
};

struct group_limits {
    uint64_t memory_bytes, processes;
    uint64_t cpu_millis; /* thousandths of a processor; 0: no limit */
};

enum group_state { GROUP_NONE, GROUP_SPARE, GROUP_USED, GROUP_LEAVING };

struct groups {
    struct group_tree trees[GROUP_TREES_MAX];
    size_t trees_count;
    unsigned controls; /* of all trees */
    int version;       /* 1, 2; 0: there are no limits by groups */
    char missing[160]; /* why GROUP_LIMITS are not all there, and what to do; "" if they are */
    struct group_limits limits;
    unsigned sweeps_left;  /* times that stale groups are looked for again */
    unsigned next_removal; /* the entry that is looked at first */
    struct {
        pid_t pid;
        enum group_state state;
    } entries[GROUPS_MAX];
};

/* The group of one box, and its open files; -1: not there. */
struct box_group {
    int index;  /* -1: the box has no group */
    int into;   /* v2: its folder, to be born in */
    int work;   /* where a process writes "0" to become one that is frozen with the others */
    int freeze; /* takes group_freeze() */
    int events; /* read by group_kills() */
};

/* cgroup_find.c: the groups that this process is in, by /proc/self/cgroup and /proc/self/mountinfo. How many. */
size_t group_trees_find(const char *memberships, const char *mounts,
                        struct group_tree ret_trees[GROUP_TREES_MAX]);
/* GROUP_LIMITS out of a line such as "cpuset cpu memory pids". */
unsigned group_controls_read(const char *line);

/* A folder's name of the form above; false if it is none. */
struct group_owner {
    uint64_t pid_namespace, pid, start;
};
#define GROUP_NAME_BYTES 96
void group_owner_write(const struct group_owner *, char ret_name[GROUP_NAME_BYTES]);
bool group_owner_read(const char *name, struct group_owner *ret);

/* cgroup_start.c */

/* Finds out what can be had, and makes it. */
void groups_start(struct groups *, const struct group_limits *);
/* At the broker's end, when no box is left. */
void groups_end(struct groups *);
/* One look for groups of dead brokers; false if some are left. */
bool groups_sweep(const struct group_tree *);

/* cgroup.c */

/* A group for a new box, and its files. False with errno: none could be made. Without any control: true, all -1. */
bool group_take(struct groups *, struct box_group *ret);
void box_group_close(struct box_group *);
/* Puts the process into it where it was not born there, as it may be in that of v2. False with errno. */
bool group_join(const struct groups *, const struct box_group *, pid_t pid, bool is_in_v2);
/* From here on it goes when the process has been reaped. */
void group_note(struct groups *, const struct box_group *, pid_t pid);
void group_drop(struct groups *, const struct box_group *); /* nobody is in it */
void groups_reaped(struct groups *, pid_t pid);
/* Makes groups ahead and removes old ones, a few at a time. Milliseconds until it wants to be called again, -1: not by
 * itself. */
int groups_tend(struct groups *);
/* privileges.c: root may write what modes forbid, or not; without effect for others. */
void broker_override_modes(bool on);

bool group_make(const struct groups *, const struct group_tree *, unsigned index);
bool group_remove(const struct groups *, unsigned index);

/* group_files.c: within a box. False with errno. */
bool group_enter_work(const struct box_group *);
bool group_freeze(const struct box_group *, bool frozen);

/* group_events.c: processes that were killed for the group's memory so far; 0 where that is not counted. */
uint64_t group_kills(int events_fd);

#define GROUP_FILE_PATH (GROUP_PATH + 300)
void group_file_path(char ret[GROUP_FILE_PATH], const char *folder, const char *name);
bool group_file_write(const char *folder, const char *name, const char *text);
/* The file's beginning, ended by NUL. */
bool group_file_read(const char *path, char *ret_text, size_t size);

#endif
