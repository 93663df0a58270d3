/* The program that pid 1 of a box becomes (local-init): linked by itself, statically, so that it costs next to nothing. */
#ifndef LOCAL_INIT_H
#define LOCAL_INIT_H

#include "box.h"

/* The descriptors that it is born with. */
enum init_fd {
    INIT_FD_CONFIG = 3,
    INIT_FD_STATUS,
    INIT_FD_LIFELINE,
    INIT_FD_EVENTS, /* of the box's group, if it has one */
    INIT_FD_FREEZE,
    INIT_FDS_END
};

/* What it reads first, from INIT_FD_CONFIG. */
struct init_config {
    uint32_t magic;
    int32_t driver;
    int64_t life_ms; /* 0: until it is touched */
    struct box_limits limits;
};

/* init.c: watches over the interpreter until the end of the box. */
struct init {
    const struct box_limits *limits;
    int status, lifeline;
    pid_t driver;
    struct box_group group;
    int64_t life_until; /* monotonic ms */
    int64_t freeze_at;  /* likewise; INT64_MAX: not */
    bool frozen;
    bool waits;       /* in the pool: there is nothing to watch */
    bool begun;       /* its process is the interpreter, no longer a copy of what made the box */
    bool busy;        /* code runs, as far as the gateway knows */
    bool memory_told; /* since the last run began */
    pid_t worker;     /* that serves a file; 0: none */
    int worker_socket; /* its own, too: with the closing of both the gateway sees that it is reaped */
    int64_t worker_until;
};
void init_run(struct init *) __attribute__((noreturn));

/* worker.c: one process at a time that serves a file with the rights of the box; see wire.h. */

/* Takes the socket, and serves the request on it, mostly by a worker. One that is left over from an earlier request is
 * ended. */
void file_serve(struct init *, int socket_fd);
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
/* Whether a process lets its mappings be looked at, or has ended. */
bool memory_is_shown(const struct memory_watch *, pid_t);
/* Kills the largest processes until the rest fits. Returns the bytes found in use if it killed any, else 0. */
uint64_t memory_enforce(struct memory_watch *, uint64_t limit_bytes, pid_t driver,
                        bool *ret_driver_killed);

#endif
