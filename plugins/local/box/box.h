/* A box: one interpreter in namespaces, mounts and limits of its own, with pid 1 of ours. The broker starts it
 * (spawn.c); its pid 1 sets it up in the order of enter.c, starts the interpreter and watches over it (init.c).
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

/* What every box of one broker has; from the broker's command line. */
struct box_limits {
    const char *python;    /* the interpreter, a path that exists in the box: under /usr */
    uint64_t memory_bytes; /* of all processes and the disk together */
    uint64_t disk_bytes;   /* of the one writable file system */
    uint64_t inodes;
    uint64_t processes; /* and threads, pid 1 not counted */
    uint64_t files;     /* open descriptors a process */
    uint32_t uid_base;  /* root only: host uid of slot 0 */
    uint32_t boxes_max;
    uint64_t cpu_millis;           /* thousandths of a processor; 0: no limit */
    struct groups *groups;         /* the broker's; a box asks only what they limit */
    const unsigned char *compiled; /* the interpreter's side as a .pyc, or NULL */
    size_t compiled_len;
    const char *command; /* Python to run in place of the interpreter's side, or NULL */
    bool uid_is_shared;  /* boxes have the host uid of the gateway, since it is no root */
    char *arguments;     /* the broker's command line: not for a box to read */
    size_t arguments_len;
};

/* Below the box's root. */
#define BOX_DRIVER_TEXT "run/driver.py"
#define BOX_DRIVER_COMPILED "run/driver.pyc"

/* The descriptors with which pid 1 is born; everything else is closed. */
struct box_fds {
    int start;             /* readable once the id maps are written; end of file: give up */
    int lifeline;          /* hangs up when the broker is gone */
    int status;            /* to the gateway */
    int control, out, err; /* the interpreter's */
    struct box_group group;
};

/* privileges.c: the broker gives up what it does not need. False with errno. */
bool broker_keep_privileges(void);

/* spawn.c: a box with host uid and gid `host_id` (0: the broker's own). Sends the reply. Returns the host pid of the
 * box's pid 1, or -1 if none was started. */
pid_t box_spawn(const struct box_limits *, uint32_t host_id, int lifeline, int64_t life_ms,
                int reply_fd);

/* compile.c: a box that compiles the interpreter's side for the others; sets `compiled` if that went well. The box has
 * ended when this returns. */
void box_compile(struct box_limits *, uint32_t host_id, int lifeline);

/* enter.c: what pid 1 does from its first instruction on. */
void box_enter(const struct box_limits *, const struct box_fds *, int64_t life_ms)
    __attribute__((noreturn));

/* enter.c: reports the step with errno over the status socket and ends the box. */
void box_fail(int status_fd, const char *format, ...)
    __attribute__((noreturn, format(printf, 2, 3)));

/* mounts.c: makes the box's root and moves into it. */
void box_make_root(const struct box_limits *, int status_fd);

/* limits.c */
void box_limit_processors(const struct box_limits *, int status_fd);
void box_set_limits(const struct box_limits *, int status_fd);
void box_drop_privileges(int status_fd);
/* Limits that the interpreter has and pid 1 does not; in the interpreter's process. False with errno. */
bool box_limit_driver(const struct box_limits *);

/* limits.c: whether the processor time is limited by keeping the box to some processors, for want of a control group. */
bool box_is_pinned(const struct box_limits *);

/* filter.c: system calls are limited from here on, for pid 1 and all that it starts. */
void box_set_filter(const struct box_limits *, int status_fd);

/* init.c: watches over the interpreter until the end of the box. */
struct init {
    const struct box_limits *limits;
    int status, lifeline;
    pid_t driver;
    struct box_group group;
    int64_t life_until; /* monotonic ms */
    int64_t freeze_at;  /* likewise; INT64_MAX: not */
    bool frozen;
    bool busy;        /* code runs, as far as the gateway knows */
    bool memory_told; /* since the last run began */
    pid_t worker;     /* that serves a file; 0: none */
    int worker_socket; /* its own, too: with the closing of both the gateway sees that it is reaped */
    int64_t worker_until;
};
void init_run(struct init *) __attribute__((noreturn));

/* worker.c: one process at a time that serves a file with the rights of the box; see wire.h. */
#define WORKERS_MAX 1
/* Takes the socket. A worker that is left over from an earlier request is ended. */
void worker_start(struct init *, int socket_fd);
/* Whether this process that has ended was the worker. */
bool worker_reap(struct init *, pid_t);
void worker_end_if_late(struct init *);

/* memory.c: one look at the memory of all processes of the box but pid 1. */
#define WATCH_PIDS_MAX 4200
struct memory_watch {
    int proc_fd;
    pid_t worker; /* not looked at: it is pid 1's, and hides what it maps */
    size_t count;
    int32_t pids[WATCH_PIDS_MAX];
    int64_t cpu_ns[WATCH_PIDS_MAX];
};
/* Whether any process that was there at the last look has used the processor since: without that, no memory can have
 * been taken. */
bool memory_may_have_grown(const struct memory_watch *);
/* Kills the largest processes until the rest fits. Returns the bytes found in use if it killed any, else 0. */
uint64_t memory_enforce(struct memory_watch *, uint64_t limit_bytes, pid_t driver,
                        bool *ret_driver_killed);

/* The text of the interpreter's side, made from the files of driver/ at build time. */
extern const unsigned char driver_text[];
extern const size_t driver_text_len;

int64_t now_ms(void); /* monotonic */

#endif
