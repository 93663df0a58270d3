/* Work in a container: waiting for the turn, replacing a container that is dead, carrying the operation out, and what its
 * end says about the container. Runs and file operations take turns, one at a time in a container, first come first
 * served. */
#include "session/internal.h"

#include "base/check.h"

struct operation {
    const char *name;
    call_invoke *invoke;
    int64_t limit_ms; /* of the call */
    const struct sg_run *run;
    const char *path;
    const void *data;
    size_t len;
    unsigned *begun; /* counts what may have had an effect; NULL: nobody asks */
};

#define ATTACHES_MAX 2 /* replacements in one operation: one found dead before, one by it */

/* ---- the turn ---- */

enum turn { TURN_TAKEN, TURN_DEAD, TURN_WAIT };

/* Under the lock. */
static enum turn turn_try(struct container *container)
{
    if (container->state != CONTAINER_READY) {
        return TURN_DEAD;
    }
    if (container->turn_taken) {
        return TURN_WAIT;
    }
    container->turn_taken = true;
    return TURN_TAKEN;
}

/* Under the lock: what the waiting came to. A turn that is not wanted any more goes to the next. */
static int turn_settle(struct waiter *waiter, int code, struct sg_error *err)
{
    if (code == 0) {
        if (waiter->state == WAITER_FAILED) {
            *err = waiter->err;
            return err->code;
        }
        return 0;
    }
    if (waiter->state == WAITER_GRANTED && waiter->container->state == CONTAINER_READY) {
        container_pass_turn(waiter->container);
    }
    return error_set(err, code, "gave up while waiting for its turn in the container");
}

/* 0 with the turn; SG_E_GONE if the container died; else the fiber's end. */
static int turn_take(struct container *container, struct sg_error *err)
{
    struct registry *registry = container->registry;
    struct waiter *waiter = NULL;
    registry_lock(registry);
    enum turn turn = turn_try(container);
    if (turn == TURN_WAIT) {
        waiter = waiter_new(registry, NULL);
        list_append(&container->turns, &waiter->link);
    }
    registry_unlock(registry);
    if (turn == TURN_DEAD) {
        return error_set(err, SG_E_GONE, "the container has ended");
    }
    if (turn == TURN_TAKEN) {
        return 0;
    }
    int code = waiter_wait(waiter, DEADLINE_NONE, DEADLINE_NONE);
    registry_lock(registry);
    code = turn_settle(waiter, code, err);
    registry_unlock(registry);
    waiter_leave(waiter);
    return code;
}

/* The turn in the lease's container, which is replaced first if it is dead. *ret_container has a reference. */
static int lease_take_turn(struct lease *lease, unsigned *attaches,
                           struct container **ret_container, struct sg_error *err)
{
    for (;;) {
        registry_lock(lease->registry);
        struct container *container = container_ref(lease->container);
        registry_unlock(lease->registry);
        int code = turn_take(container, err);
        if (code == 0) {
            *ret_container = container;
            return 0;
        }
        registry_lock(lease->registry);
        container_unref(container);
        registry_unlock(lease->registry);
        if (code != SG_E_GONE || ++*attaches > ATTACHES_MAX) {
            return code;
        }
        code = lease_attach(lease, DEADLINE_NONE, err);
        if (code != 0) {
            return code;
        }
    }
}

/* ---- the call ---- */

/* A copy that lives as long as the call, which may outlive the caller. NULL if the system refuses. */
static const void *copy_in(struct sg_call *call, const void *data, size_t len)
{
    char *copy = arena_alloc(call_arena(call), len + 1);
    if (copy != NULL && len > 0) {
        memcpy(copy, data, len);
    }
    return copy;
}

static bool arguments_fill(struct provider_arguments *arguments, struct sg_call *call,
                           const struct operation *operation)
{
    bool fits = true;
    if (operation->run != NULL) {
        const struct sg_run *run = operation->run;
        arguments->run = *run;
        arguments->run.code = copy_in(call, run->code, run->code_len);
        fits = arguments->run.code != NULL;
        if (run->language != NULL) {
            arguments->run.language = copy_in(call, run->language, strlen(run->language));
            fits = fits && arguments->run.language != NULL;
        }
    }
    if (operation->path != NULL) {
        arguments->path = copy_in(call, operation->path, strlen(operation->path));
        fits = arguments->path != NULL;
    }
    if (operation->data != NULL) {
        arguments->data = copy_in(call, operation->data, operation->len);
        arguments->len = operation->len;
        fits = fits && arguments->data != NULL;
    }
    return fits;
}

/* The next output, waited for as long as the fiber may and the call deserves. */
static int output_next(struct sg_call *call, struct call_output *ret)
{
    struct fiber *self = fiber_self();
    int64_t own = fiber_deadline(self);
    fiber_set_deadline(self, deadline_min(own, call_deadline(call) + ABANDON_MS));
    int next = call_next(call, ret);
    fiber_set_deadline(self, own);
    return next;
}

/* Passes the output on until the end (0), the caller's end, or the sink's refusal. */
static int output_pass(struct sg_call *call, const struct sg_sink *sink, struct sg_error *err)
{
    struct call_output output;
    int next;
    while ((next = output_next(call, &output)) == 1) {
        if (sink == NULL) {
            continue;
        }
        int code = sink->event(sink->ctx, output.kind, output.data.data, output.data.len, err);
        if (code != 0) {
            return code;
        }
    }
    if (next < 0) {
        return error_set(err, -next,
                         next == -SG_E_CANCELLED ? "cancelled while code ran"
                                                 : "time is up and code still runs");
    }
    return 0;
}

/* Must the container go at once? An ephemeral one whose only request is over, while the run still runs; and one whose
 * plugin does not return long after its deadline. */
static bool close_at_once(struct container *container, const struct sg_call *call)
{
    struct fiber *self = fiber_self();
    bool is_over = fiber_is_cancelled(self) || fiber_deadline(self) <= clock_ms();
    bool is_hung = clock_ms() >= call_deadline(call) + ABANDON_MS;
    registry_lock(container->registry);
    bool is_free = is_over && !container->is_session && container->leases <= 1;
    if (is_free || is_hung) {
        container_close(container, is_free ? CLOSE_RELEASED : CLOSE_HUNG, !is_free);
    }
    registry_unlock(container->registry);
    return is_free || is_hung;
}

/* Leaves a call that goes on. Consumes it, and the turn. */
static void call_leave(struct container *container, struct sg_call *call, const char *request_id)
{
    if (close_at_once(container, call)) {
        call_cancel(call);
        call_unref(call);
    } else {
        handover_start(container, call, request_id);
    }
}

/* Before the call begins, since its caller may be asked while it is under way; taken back where nothing was done. */
static void begun_count(const struct operation *operation, int by)
{
    if (operation->begun != NULL) {
        *operation->begun += (unsigned)by;
    }
}

/* Consumes the call and the turn. */
static int call_carry_out(struct lease *lease, struct container *container,
                          const struct operation *operation, struct sg_call *call,
                          const struct sg_sink *sink, struct sg_error *err)
{
    int code = output_pass(call, sink, err);
    if (code != 0) {
        call_leave(container, call, lease->request_id);
        return code;
    }
    code = call_result(call, err);
    if (code == SG_E_GONE_BEFORE) {
        begun_count(operation, -1);
    }
    registry_lock(container->registry);
    container_run_ended(container, code, call_deadline(call));
    registry_unlock(container->registry);
    call_unref(call);
    return code;
}

/* Nothing was begun. Consumes the turn. */
static int turn_give_back(struct container *container, int code)
{
    registry_lock(container->registry);
    runs_leave(container);
    if (container->state == CONTAINER_READY) {
        container_pass_turn(container);
    }
    registry_unlock(container->registry);
    return code;
}

static int no_memory(struct container *container, struct sg_call *call, struct sg_error *err)
{
    call_unref(call);
    return turn_give_back(container,
                          error_set(err, SG_E_LIMIT, "no memory for what the sandbox shall get"));
}

/* Consumes the turn. */
static int carry_out(struct lease *lease, struct container *container,
                     const struct operation *operation, const struct sg_sink *sink,
                     struct sg_error *err)
{
    struct provider_arguments *arguments;
    int code = operation->run != NULL ? runs_enter(container, err) : 0;
    if (code != 0) {
        return turn_give_back(container, code);
    }
    struct sg_call *call = provider_call(container, operation->name, lease->request_id,
                                         deadline_in(operation->limit_ms), &arguments);
    call_set_identity(call, str_of(container->identity));
    if (!arguments_fill(arguments, call, operation)) {
        return no_memory(container, call, err);
    }
    container_touch(container, container->life_needed_ms);
    begun_count(operation, 1);
    call_start(call, operation->invoke, arguments);
    return call_carry_out(lease, container, operation, call, sink, err);
}

static int lease_operate(struct lease *lease, const struct operation *operation,
                         const struct sg_sink *sink, struct sg_error *err)
{
    CHECK_MAGIC(lease, LEASE_MAGIC);
    CHECK(lease->home == loop_self());
    if (fiber_is_cancelled(fiber_self())) { /* before anything is run for nobody */
        return error_set(err, SG_E_CANCELLED, "cancelled before it ran");
    }
    unsigned attaches = 0;
    int code;
    lease->operations++;
    do {
        struct container *container;
        code = lease_take_turn(lease, &attaches, &container, err);
        if (code != 0) {
            break;
        }
        code = carry_out(lease, container, operation, sink, err);
        registry_lock(lease->registry);
        container_unref(container);
        registry_unlock(lease->registry);
    } while (code == SG_E_GONE_BEFORE && attaches < ATTACHES_MAX);
    lease->operations--;
    return code;
}

/* ---- the public functions ---- */

/* A run's limit is the sandbox's at most: the provider's life of the container counts on it. */
static int64_t run_limit_ms(const struct lease *lease, const struct sg_run *run)
{
    int64_t most = lease->sandbox->run_timeout_ms;
    return run->timeout_ms > 0 && run->timeout_ms < most ? run->timeout_ms : most;
}

int lease_run(struct lease *lease, const struct sg_run *run, const struct sg_sink *sink,
              unsigned *begun, struct sg_error *err)
{
    struct sg_run limited = *run;
    limited.timeout_ms = run_limit_ms(lease, run);
    struct operation operation = {
        .name = "run",
        .invoke = provider_run,
        .limit_ms = limited.timeout_ms + lease->registry->options.run_slack_ms,
        .run = &limited,
        .begun = begun,
    };
    return lease_operate(lease, &operation, sink, err);
}

int sandbox_without_files(const struct sandbox *sandbox, struct sg_error *err)
{
    return error_set(err, SG_E_UNAVAILABLE, "the sandbox '%s' cannot hold files", sandbox->name);
}

int lease_file_put(struct lease *lease, const char *path, const void *data, size_t len,
                   unsigned *begun, struct sg_error *err)
{
    struct operation operation = {
        .name = "put",
        .invoke = provider_put,
        .limit_ms = FILE_MS,
        .path = path,
        .data = len == 0 ? "" : data,
        .len = len,
        .begun = begun,
    };
    return lease->sandbox->instance->plugin->sandbox->put == NULL
               ? sandbox_without_files(lease->sandbox, err)
               : lease_operate(lease, &operation, NULL, err);
}

int lease_file_get(struct lease *lease, const char *path, const struct sg_sink *sink,
                   struct sg_error *err)
{
    struct operation operation = {
        .name = "get", .invoke = provider_get, .limit_ms = FILE_MS, .path = path};
    return lease->sandbox->instance->plugin->sandbox->get == NULL
               ? sandbox_without_files(lease->sandbox, err)
               : lease_operate(lease, &operation, sink, err);
}

int lease_file_list(struct lease *lease, const char *path, const struct sg_sink *sink,
                    struct sg_error *err)
{
    struct operation operation = {
        .name = "list", .invoke = provider_list, .limit_ms = FILE_MS, .path = path};
    return lease->sandbox->instance->plugin->sandbox->list == NULL
               ? sandbox_without_files(lease->sandbox, err)
               : lease_operate(lease, &operation, sink, err);
}
