/* Calls of plugins: the one mechanism by which work crosses between fibers, loops and worker threads.
 *
 * Each call has its own reference-counted sg_call with its own arena, copies of its arguments, a deadline and one
 * bounded queue for output. emit() copies into it and waits while it is full (a worker sleeps, a fiber switches); the
 * result is its last entry, so output never overtakes the end.
 *
 *   caller's fiber (home loop)                      the plugin's code
 *   call_new → arguments into call_arena → call_start → runs in a fiber of the home loop (SG_ON_LOOP) or on a worker
 *   call_next … call_next                          ← emit … emit, return
 *   call_result, call_unref
 *
 * The caller may leave at any time: it cancels (call_cancel) and drops its reference; the call lives until the plugin's
 * code returns. All functions but call_unref() are for the home loop's thread; waiting ones for a fiber of it. */
#ifndef SANDGATE_PLUGIN_CALL_H
#define SANDGATE_PLUGIN_CALL_H

#include "base/arena.h"
#include "base/error.h"
#include "loop/loop.h"
#include "sandgate/plugin.h"

/* One configured plugin. Made by the gateway's set-up; read-only once serving has begun. */
struct instance {
    const char *name;               /* as in the configuration */
    const struct sg_plugin *plugin; /* laid out at the core's sizes */
    void *self;                     /* what open() gave */
    const void *config;
    const char *libexec_dir; /* for sg->libexec_dir() */
    bool is_open;
};

struct sg_call;

/* Runs the operation: calls the plugin's function with what stands in `arguments` (in the call's arena). */
typedef int call_invoke(const struct instance *, struct sg_call *, void *arguments,
                        struct sg_error *);

/* `operation` is a literal ("create", "run" …). `context` is handed to the core services (call_context): the gateway's
 * request, or NULL. The caller must have cancelled and seen the end (call_wait_end) of a call that can reach `context`
 * before `context` ends. The request id, if not NULL, is copied for logs. */
struct sg_call *call_new(const struct instance *, const char *operation, void *context,
                         const char *request_id, int64_t deadline);
struct arena *call_arena(struct sg_call *);
void *call_context(const struct sg_call *);
const struct instance *call_instance(const struct sg_call *);
const char *call_request_id(const struct sg_call *);
int64_t call_deadline(const struct sg_call *);
bool call_is_cancelled(const struct sg_call *); /* any thread */

/* Starts it. Its failure (no worker, no stack) is the call's result. */
void call_start(struct sg_call *, call_invoke *, void *arguments);

struct call_output {
    enum sg_out kind;
    struct str data; /* until the next call_next() */
};

/* Waits for the next output: 1 with *ret, 0 when the call has ended (then call_result()), or a negative -SG_E_TIMEOUT /
 * -SG_E_CANCELLED for the caller's own fiber; the call goes on then. */
int call_next(struct sg_call *, struct call_output *ret);

/* The end's code; 0 or what the plugin returned, `err` filled and prefixed by plugin and instance. */
int call_result(struct sg_call *, struct sg_error *err);

/* The plugin's waiting functions return SG_E_CANCELLED from now on; output is dropped. Idempotent. */
void call_cancel(struct sg_call *);

/* Waits, shielded, until the plugin's code has returned. Drops output that is left. */
void call_wait_end(struct sg_call *);
bool call_has_ended(const struct sg_call *);

struct sg_call *call_ref(struct sg_call *);
void call_unref(struct sg_call *); /* NULL is fine; any thread */

/* The whole of it: start, hand every output to the sink (NULL: drop), return the result. If the caller's fiber is
 * cancelled or timed out, or the sink returns non-zero, the call is cancelled and left behind, and that code is
 * returned. Consumes the reference. */
int call_run(struct sg_call *, call_invoke *, void *arguments, const struct sg_sink *sink,
             struct sg_error *err);

/* open() and close(), which run alone in a fiber on the main thread's loop. */
int instance_open(struct instance *, struct sg_error *err);
void instance_close(struct instance *);

/* What a plugin may ask of the gateway. The gateway fills it once, before any call that could use it; each function
 * runs in a fiber of the call's home loop, whatever thread the plugin is on, and delivers to the sink as it goes. */
struct core_services {
    int (*run_code)(struct sg_call *, const struct sg_run *, const struct sg_sink *,
                    struct sg_error *);
    int (*file_put)(struct sg_call *, const char *path, const void *, size_t, struct sg_error *);
    int (*file_get)(struct sg_call *, const char *path, const struct sg_sink *, struct sg_error *);
    int (*file_list)(struct sg_call *, const char *path, const struct sg_sink *, struct sg_error *);
    int (*search)(struct sg_call *, const struct sg_query *, const struct sg_sink *,
                  struct sg_error *);
};
void core_services_set(const struct core_services *);

/* The table that every plugin gets. */
const struct sg_host *host_table(void);

#endif
