/* A box: one interpreter in namespaces, mounts and limits of its own, with pid 1 of ours. Its pid 1 begins as a copy of the
 * broker (spawn.c) or of a template (template_child.c), sets the box up in the order of enter.c, starts the interpreter
 * (launch.c), and becomes the program that watches over it (init.c).
 *
 * Everything below box_enter() runs as pid 1 of the box. A step that fails is reported over the status socket with its
 * name and errno, and the box ends: no code of a user ever runs in a box that is not whole. */
#ifndef LOCAL_BOX_H
#define LOCAL_BOX_H

#include "../wire.h"
#include "cgroup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BOX_UID 1000 /* uid and gid within the box */

/* What every box of one broker has; from the broker's command line. The numbers travel to templates and to pid 1, the
 * pointers do not. */
struct box_limits {
    const char *python;    /* the interpreter, a path that exists in the box: under /usr */
    const char *preload;   /* modules that a template loads, with blanks between */
    uint64_t memory_bytes; /* of all processes and the disk together */
    uint64_t disk_bytes;   /* of the one writable file system */
    uint64_t inodes;
    uint64_t processes; /* and threads, pid 1 not counted */
    uint64_t files;     /* open descriptors a process */
    uint64_t pool;      /* boxes kept ready */
    uint32_t uid_base;  /* root only: host uid of slot 0 */
    uint32_t boxes_max;
    uint64_t cpu_millis;           /* thousandths of a processor; 0: no limit */
    uint32_t group_controls;       /* what control groups do: enum group_control */
    const unsigned char *compiled; /* the interpreter's side as a .pyc, or NULL */
    size_t compiled_len;
    const char *command; /* Python to run in place of the interpreter's side, or NULL */
    bool uid_is_shared;  /* boxes have the host uid of the gateway, since it is no root */
    char *arguments;     /* the broker's command line: not for a box to read */
    size_t arguments_len;
    /* Of a copy of a template: what it has from there, which is not the box's own. */
    uint64_t loaded_bytes;      /* pages in memory */
    uint64_t loaded_data_bytes; /* as RLIMIT_DATA counts */
};

/* Whether pid 1 limits the memory by looking at what the processes map (memory.c), for want of a control group. What can be
 * held without being seen there must not be given then: memory shared without a file, and huge pages, of both of which all
 * stays while one page is mapped. */
static inline bool box_memory_is_polled(const struct box_limits *limits)
{
    return (limits->group_controls & GROUP_MEMORY) == 0;
}

/* Below the box's root. */
#define BOX_DRIVER_TEXT "run/driver.py"
#define BOX_DRIVER_COMPILED "run/driver.pyc"

/* The descriptors with which pid 1 is born; everything else is closed. */
struct box_fds {
    int start;             /* readable once the id maps are written; end of file: give up */
    int lifeline;          /* hangs up when the broker is gone */
    int status;            /* to the gateway */
    int control, out, err; /* the interpreter's */
    int init;              /* the program that pid 1 becomes */
    struct box_group group;
};

/* The gateway's ends of a box. */
struct box_ends {
    pid_t pid; /* of its pid 1, on the host */
    int fds[WIRE_FDS];
};

/* ---- common.c ---- */

int64_t now_ms(void); /* monotonic */

/* Reports the step with errno over the status socket and ends the process. */
void box_fail(int status_fd, const char *format, ...)
    __attribute__((noreturn, format(printf, 2, 3)));

/* ---- maps.c ---- */

/* A file of /proc/PID. False with errno. */
bool proc_write(pid_t, const char *name, const char *text);

struct id_map {
    uint32_t inside, outside, count;
};
/* The step that failed, with errno, or NULL. */
const char *maps_write(pid_t, const struct id_map *users, const struct id_map *groups);

/* ---- fds.c ---- */

#define PACKET_FDS_MAX 12
bool packet_send(int socket_fd, const void *packet, size_t len, const int *fds, size_t count);
/* Up to `count` descriptors come along; the others of `fds` are -1. As recvmsg() otherwise. */
ssize_t packet_receive(int socket_fd, void *packet, size_t size, int *fds, size_t count, int flags);
void fds_close(int *fds, size_t count); /* those that are open; -1 then */
/* All of them, and how many are to be kept in the box; those that are not there are -1. */
#define BOX_FDS_MAX 11
#define BOX_FDS_KEPT 10
void box_fds_list(struct box_fds *, int *ret_fds[BOX_FDS_MAX]);

/* ---- privileges.c ---- */

/* The broker gives up what it does not need. False with errno. */
bool broker_keep_privileges(void);
/* A template keeps what it needs for the id maps of its boxes, over its exec; nothing if `is_root` is false. False with
 * errno. */
bool template_keep_privileges(bool is_root);

/* ---- programs.c ---- */

/* Files in memory, or -1. That of pid 1 can be run by everybody and read by nobody: so the kernel hides the process that
 * runs it (not dumpable) from its first instruction on. */
int program_init(void);
int program_template(void);

/* ---- spawn.c ---- */

struct box_template;

/* What all boxes of a broker are made with. */
struct box_maker {
    struct box_limits limits;
    struct groups *groups;
    int lifeline, init;
};
/* A box's cgroup namespace comes later, when it is in its group. */
#define BOX_NAMESPACES \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)
#define OOM_SCORE \
    "500" /* of -1000 to 1000: boxes go first where memory runs short on the whole host */

/* Starts a box with host uid and gid `host_id` (0: the broker's own), as a copy of the template, or of the broker where
 * that is NULL. life_ms 0: it waits until it is touched. The step that failed, with errno, or NULL; ret->pid > 0 also
 * after a failure if there is a process to be reaped, but no descriptors. */
const char *box_start(const struct box_maker *, struct box_template *, uint32_t host_id,
                      int64_t life_ms, struct box_ends *ret);

/* ---- compile.c ---- */

/* A box that compiles the interpreter's side for the others; sets `compiled` if that went well. The box has ended when
 * this returns. */
void box_compile(struct box_maker *, uint32_t host_id);

/* ---- enter.c ---- */

/* What pid 1 does from its first instruction on. Returns in the interpreter's process, with its descriptors where they
 * belong, and only `fds->status` besides. */
void box_enter(struct box_limits *, const struct box_fds *given, int64_t life_ms,
               int *ret_status_fd);
/* Moves descriptors to BOX_KEPT_FD and up, in their order, and closes everything else but 0, 1 and 2. `status` is one of
 * them. */
#define BOX_KEPT_FD 100 /* far above what is open */
void box_keep_only(int *const *fds, size_t count, const int *status);
void box_wait_for_start(int start_fd);
void box_use_null_device(int status_fd);
/* Runs the interpreter, which waits for cells. */
void box_run_driver(const struct box_limits *, int status_fd) __attribute__((noreturn));
extern const char *const box_environment[];

/* ---- launch.c ---- */

/* Starts the interpreter's process and becomes the box's init; returns in the interpreter's process. */
void box_launch(const struct box_limits *, const struct box_fds *, int64_t life_ms);

/* ---- mounts.c: makes the box's root and moves into it ---- */

void box_make_root(const struct box_limits *, int status_fd);
/* The same for a template: no user's code comes there, and boxes must be able to mount what is theirs. */
void template_make_root(const struct box_limits *, int status_fd);

/* ---- limits.c ---- */

/* Whether the processor time is limited by keeping the box to some processors, for want of a control group. */
bool box_is_pinned(const struct box_limits *);
void box_limit_processors(const struct box_limits *, int status_fd);
/* One process at a time that serves a file with the rights of the box (worker.c). */
#define WORKERS_MAX 1
void box_set_limits(const struct box_limits *, int status_fd);
void box_drop_privileges(int status_fd);
/* Limits that the interpreter has and pid 1 does not; in the interpreter's process. False with errno. */
bool box_limit_driver(const struct box_limits *);

/* ---- filter.c: system calls are limited from here on, for pid 1 and its workers (is_init), or for the interpreter ---- */

#define FILTER_MAX 1024 /* instructions */
struct sock_filter;
unsigned box_make_filter(const struct box_limits *, bool is_init,
                         struct sock_filter *ret); /* how many */
void box_set_filter(const struct box_limits *, bool is_init, int status_fd);

/* The text of the interpreter's side, made from the files of driver/ at build time. */
extern const unsigned char driver_text[];
extern const size_t driver_text_len;

#endif
