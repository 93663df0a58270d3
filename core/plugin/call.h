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
 * code returns. All functions but call_unref() are for the home loop's thread; waiting ones for a fiber of it.
 *
 * Nobody waits for ever for code that blocks a worker: a call that has not returned 2 s after its deadline, or after it
 * was cancelled, is abandoned. It has then ended for its caller (SG_E_TIMEOUT, SG_E_CANCELLED); what its code still asks
 * of the core is SG_E_CANCELLED at once, and `context` cannot be reached by it any more. */
#ifndef SANDGATE_PLUGIN_CALL_H
#define SANDGATE_PLUGIN_CALL_H

#include "base/arena.h"
#include "base/error.h"
#include "loop/loop.h"
#include "sandgate/plugin.h"

struct conf_node;

/* One configured plugin. Made by the gateway's set-up; read-only once serving has begun, but for its count. */
struct instance {
    const char *name;               /* as in the configuration */
    const struct sg_plugin *plugin; /* laid out at the core's sizes */
    const uint32_t *sizes; /* of the structs that the plugin was built with; NULL: the core's … */
    uint32_t sizes_count;  /* … and their number */
    void *self;            /* what open() gave */
    const void *config;
    const struct conf_node *entry; /* what it was read from; NULL: none */
    const char *libexec_dir;       /* for sg->libexec_dir() */
    char *about; /* from open to close: the status that open() emitted, a JSON object; NULL: none */
    bool is_open;
    _Atomic uint64_t *abandoned; /* calls that were; from open to close, NULL: not counted */
};

struct sg_call;

/* Its calls that were abandoned. Any thread, while it is open. */
uint64_t instance_abandoned(const struct instance *);

/* Runs the operation: calls the plugin's function with what stands in `arguments` (in the call's arena). */
typedef int call_invoke(const struct instance *, struct sg_call *, void *arguments,
                        struct sg_error *);

/* `operation` is a literal ("create", "run" …). `context` is handed to the core services (call_context): the gateway's
 * request, or NULL for a call that may not use them, and so waits for no other plugin. The caller must have cancelled and
 * seen the end (call_wait_end) of a call that can reach `context` before `context` ends. The request id, if not NULL, is
 * copied for logs. */
struct sg_call *call_new(const struct instance *, const char *operation, void *context,
                         const char *request_id, int64_t deadline);

/* Before the start: on whose behalf it is (copied); users share what their key has. On a worker it then keeps to the identity's share of the pool: beyond
 * it, calls wait for the identity's earlier ones, first come first served, until their deadline. */
void call_set_identity(struct sg_call *, struct str identity);

/* Before the start, of a tool's call: what sg->tool_options() gives (copied); empty: NULL. */
void call_set_tool_options(struct sg_call *, struct str json);
const char *call_tool_options(const struct sg_call *); /* NULL: none */
/* The core refused the call something because the client's own limit of uses (max_uses) is reached; the home thread's. */
void call_note_uses_spent(struct sg_call *);
bool call_uses_are_spent(const struct sg_call *);

/* Before the start, with an identity: counts bytes that the caller puts into the call's arena, until the call is gone.
 * SG_E_LIMIT as account_take() (http/admission.h). Output that waits in the queue is counted by itself. */
int call_hold(struct sg_call *, size_t bytes, struct sg_error *err);

/* Before the start: what is to be done where the plugin's code returns after all, when the call was abandoned. It runs on
 * the plugin's thread, with the call's arguments and what was returned. */
typedef void call_late(const struct instance *, void *arguments, int code);
void call_set_late(struct sg_call *, call_late *);

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

/* The plugin's waiting functions return SG_E_CANCELLED from now on; output is dropped. What has not begun does not begin.
 * Idempotent. */
void call_cancel(struct sg_call *);

/* Waits, shielded, until the plugin's code has returned or the call is abandoned. Drops output that is left. */
void call_wait_end(struct sg_call *);
bool call_has_ended(const struct sg_call *);

struct sg_call *call_ref(struct sg_call *);
void call_unref(struct sg_call *); /* NULL is fine; any thread */

/* The whole of it: start, hand every output to the sink (NULL: drop), return the result. If the caller's fiber is
 * cancelled or timed out, or the sink returns non-zero, the call is cancelled and left behind, and that code is
 * returned. Consumes the reference. */
int call_run(struct sg_call *, call_invoke *, void *arguments, const struct sg_sink *sink,
             struct sg_error *err);

/* open() and close(), which run alone in a fiber on the main thread's loop: no code of the plugin may run, abandoned calls
 * included. */
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
