/* The life of a process that uses plugins, whatever it does with them: signals are blocked before any thread exists;
 * plugins open alone, in a fiber on the main thread's loop; then comes the work; at the end everything goes in reverse.
 * serve.c and command_run.c are the two kinds of work. */
#ifndef SANDGATE_GATEWAY_LIFE_H
#define SANDGATE_GATEWAY_LIFE_H

#include "gateway/gateway.h"

#include <pthread.h>

enum { LOOPS_MAX = 64, DELETIONS_MS = 20000 /* how long an end waits for deletions */ };

struct life {
    struct gateway gateway;
    struct loop *loops[LOOPS_MAX];
    pthread_t threads[LOOPS_MAX]; /* of loops 1 and up */
    size_t threads_count;
    struct quiet {
        struct loop_task task;
        struct loop *loop;
        atomic_size_t fibers_left; /* once it has stopped */
        atomic_bool has_stopped;
        int64_t deadline; /* … even if it has fibers */
    } quiet[LOOPS_MAX];
    int64_t calls_deadline; /* until then they may return */
    size_t calls_left;      /* that did not return: nothing they may touch is freed */
    int signal_fd;
    bool has_fetch;
    struct event *signal_event;
    struct fiber *main_fiber;
    int stop_signal;         /* SIGTERM or SIGINT once it came, else 0 */
    bool wants_reload;       /* SIGHUP came, and was not yet acted upon */
    struct sg_error failure; /* why it could not do its work: the first reason */
    int exit_code;

    /* Given by whoever lives it. */
    struct instance *const *instances; /* opened in this order, closed in reverse */
    size_t instances_count;
    int (*work)(struct life *); /* in the main fiber, between open and close; gives the exit code */
    void *ctx;                  /* the work's own */
    bool stop_cancels;          /* a signal cancels the main fiber, instead of only waking it */
    int failure_code;           /* the exit code where it could not begin, or not end */
    int64_t drain_ms;           /* how long the work goes on once it was told to end */
};

/* All of it, on the calling thread; the exit code. A failure that kept it from beginning is the last line that is
 * written to standard error. A second signal ends the process at once, with code 1. A process that does not end, since a
 * plugin holds one of its loops, is ended when all the time that an end may take has passed, with `failure_code`. */
int life_live(struct life *, size_t loops_count);

/* For the work, in the main fiber. */
bool life_start_threads(struct life *); /* of loops 1 and up; a failure was told */
/* Waits for a signal: true for SIGHUP, which asks to read the configuration again; false for those that end the process. */
bool life_wait(struct life *);

/* Describes, as the last line of the process, why it could not do its work. `event` names the line in the log; NULL:
 * none. */
void life_fail(struct life *, const char *event, const struct sg_error *);

#endif
