/* How calls are looked at: what they carry, what their results say, and whether a plugin uses one where it may. */
#include "plugin/call_internal.h"

#include "base/check.h"
#include "base/log.h"

/* ---- what it carries ---- */

struct arena *call_arena(struct sg_call *call)
{
    return call->arena;
}

void *call_context(const struct sg_call *call)
{
    return call->context;
}

const struct instance *call_instance(const struct sg_call *call)
{
    return call->instance;
}

const char *call_request_id(const struct sg_call *call)
{
    return call->request_id;
}

int64_t call_deadline(const struct sg_call *call)
{
    return call->deadline;
}

bool call_is_cancelled(const struct sg_call *call)
{
    return atomic_load(&call->is_cancelled);
}

/* ---- results ---- */

int call_wait_failed(struct sg_call *call, const char *function, int code, struct sg_error *err)
{
    if (code == SG_E_CANCELLED) {
        return error_set(err, code, "%s() in '%s' ended: the call is cancelled", function,
                         call->operation);
    }
    return error_set(err, code, "%s() in '%s' ended: time is up", function, call->operation);
}

/* A code that nobody explained is the plugin's mistake, except that time is up or the call cancelled, which speak for
 * themselves; and a plugin cannot claim to have been cancelled. */
void call_judge(struct sg_call *call, int code)
{
    struct sg_error *error = &call->error;
    bool is_cancelled =
        call_is_cancelled(call) || (call->place == CALL_INLINE && fiber_is_cancelled(call->runner));
    bool is_told = error->code == code && error->message[0] != '\0';
    if (code == SG_E_CANCELLED && !is_cancelled) {
        code = error_set(error, SG_E_INTERNAL, "'%s' returned CANCELLED, but nobody cancelled it",
                         call->operation);
    } else if ((code == SG_E_CANCELLED || code == SG_E_TIMEOUT) && !is_told) {
        (void)error_set(error, code, "'%s' ended: %s", call->operation,
                        code == SG_E_TIMEOUT ? "time is up" : "the call is cancelled");
    } else if (code < SG_OK || code > SG_E_GONE_BEFORE) {
        code = error_set(error, SG_E_INTERNAL, "'%s' returned %d, which is no code",
                         call->operation, code);
    } else if (code != SG_OK && !is_told) {
        code = error_set(error, SG_E_INTERNAL, "'%s' returned %s and gave no message",
                         call->operation, error_code_name(code));
    }
    call->code = code;
}

/* "e2b (cloud)", or just the name where both are equal. */
void call_add_names(const struct sg_call *call, struct sg_error *error)
{
    const struct instance *instance = call->instance;
    const char *plugin = instance->plugin->name;
    if (strcmp(plugin, instance->name) == 0) {
        (void)error_context(error, "%s", plugin);
    } else {
        (void)error_context(error, "%s (%s)", plugin, instance->name);
    }
}

/* ---- misuse ---- */

static bool is_called_here(const struct sg_call *call)
{
    switch (call->place) {
    case CALL_IN_FIBER:
    case CALL_INLINE:
        return call->runner != NULL && call->runner == fiber_self();
    case CALL_ON_WORKER:
        return pthread_equal(call->thread, pthread_self());
    case CALL_NOT_STARTED:
        break;
    }
    return false;
}

bool call_is_ours(struct sg_call *call, const char *function, struct sg_error *err)
{
    bool is_call = call != NULL && call->magic == CALL_MAGIC;
    if (is_call && is_called_here(call)) {
        return true;
    }
    struct log_line line;
    log_begin(&line, SG_ERROR, "plugin_misuse");
    log_text(&line, "function", function);
    if (is_call) {
        log_text(&line, "plugin", call->instance->plugin->name);
        log_text(&line, "instance", call->instance->name);
        log_text(&line, "operation", call->operation);
    }
    log_end(&line);
    if (err != NULL) {
        (void)error_set(err, SG_E_INTERNAL, "%s() was used on a thread that was not called",
                        function);
    }
    return false;
}
