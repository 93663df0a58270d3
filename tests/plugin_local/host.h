/* local.so under the core's real loops, fibers and calls. A test is a fiber of one loop; what it starts in the
 * background runs in another. */
#ifndef TESTS_PLUGIN_LOCAL_HOST_H
#define TESTS_PLUGIN_LOCAL_HOST_H

#include "base/buf.h"
#include "base/error.h"
#include "plugin/call.h"

#include <stdbool.h>
#include <sys/types.h>

/* The options that tests change; the others have their defaults. 0 and NULL: the default, but for `pool`, which is 0 unless
 * given: most tests count boxes. */
struct host_options {
    const char *python, *cpu, *isolation;
    uint64_t memory, disk, output, results;
    int64_t inodes, processes, files, uid_base, boxes, pool;
    const char *const *preload; /* ended by NULL */
    const char *libexec;        /* the folder of the broker; NULL: that of the build */
};

/* Runs the fiber on a fresh loop until it and all others have ended. */
void host_run(void (*fiber)(void *), void *arg);

/* From here on within the fiber. */
void host_start(void (*fiber)(void *), void *arg); /* another one beside it */
int host_open(const struct host_options *, struct sg_error *err);
void host_close(void);
int64_t host_broker_pid(void);
/* How many boxes the broker has, those of the pool too; up to `max` of their first processes. */
size_t host_boxes(pid_t *ret_pids, size_t max);
/* Waits until there are so many: the first processes of all of them. False if this fiber is stopped. */
bool host_await_boxes(size_t count, pid_t *ret_pids);
/* The processes that boxes are copies of; up to `max` of them. */
size_t host_templates(pid_t *ret_pids, size_t max);
/* Waits until there is one, and not `other`: one that is replaced takes a moment to end. -1 if this fiber is stopped. */
pid_t host_await_template_but(pid_t other);

int host_create(int64_t life_ms, char handle[128], struct sg_error *err);
/* Given up after so long, as by a request whose client has gone. */
void host_create_abandon(int64_t after_ms);
int host_destroy(const char *handle, struct sg_error *err);
int host_touch(const char *handle, int64_t life_ms, struct sg_error *err);
int host_interrupt(const char *handle, struct sg_error *err);

/* What came out of one run. */
struct outcome {
    int code;
    struct sg_error error;
    /* Every output in order: "[out]text", "[err]text", "[result]json", "[exception]json", "[status]json". Text of one
     * stream that nothing else came between stands behind one "[out]" or "[err]". */
    struct buf all;
    enum sg_out last;
    struct buf out, err;  /* the streams alone */
    struct buf exception; /* its JSON */
    struct buf results;   /* their JSON, each on a line */
    struct buf files;     /* of a run: new and changed ones, likewise; they are not in `all` */
    bool is_run;
    size_t pieces; /* outputs */
    int64_t first_us, took_us;
};
void outcome_clear(struct outcome *);
void host_exec(const char *handle, const char *language, const char *code, size_t code_len,
               int64_t timeout_ms, struct outcome *ret);
/* Files: the content in `out`, the JSON of entries in `results`. */
void host_get(const char *handle, const char *path, struct outcome *ret);
void host_list(const char *handle, const char *path, struct outcome *ret);
void host_put(const char *handle, const char *path, const void *data, size_t len,
              struct outcome *ret);
/* A put of zeros that is given up after so long, as by a request whose client has gone. */
void host_put_abandon(const char *handle, const char *path, size_t len, int64_t after_ms,
                      struct sg_error *err);
/* host_exec() of Python in a fiber of its own; host_finish() waits for it. */
struct background;
struct background *host_exec_background(const char *handle, const char *code, int64_t timeout_ms,
                                        struct outcome *ret);
struct background *host_exec_background_in(const char *handle, const char *language,
                                           const char *code, int64_t timeout_ms,
                                           struct outcome *ret);
void host_finish(struct background *);
bool host_has_ended(const struct background *);
/* Leaves the run behind as a request does whose client has gone. */
void host_exec_abandon(const char *handle, const char *code, const char *until_output);

#endif
