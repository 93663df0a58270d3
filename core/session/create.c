/* Making a container: an errand on the loop of the first who asked for it, with a call and a deadline of its own. The
 * requests that wait may leave; a handle that the provider gave is ours whatever its create() returns then. */
#include "session/internal.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/log.h"
#include "http/admission.h"

#include <stdlib.h>

static void creation_log(const struct container *container, int64_t since,
                         const struct sg_error *err)
{
    struct log_line line;
    bool failed = err->code != 0;
    container_log(&line, failed ? SG_WARN : SG_INFO,
                  failed ? "container_create_failed" : "container_created", container);
    log_text(&line, "request", container->request_id);
    log_int(&line, "ms", clock_ms() - since);
    if (failed) {
        log_text(&line, "code", error_code_name(err->code));
        log_text(&line, "error", err->message);
    }
    log_end(&line);
}

static void waiters_fail(struct container *container, const struct sg_error *err)
{
    for (struct list *first; (first = list_first(&container->waiters)) != NULL;) {
        waiter_fail(INDEX_OWNER(first, struct waiter, link), err);
    }
}

static void container_publish(struct container *container)
{
    struct registry *registry = container->registry;
    size_t leases = 0;
    for (struct list *node = container->waiters.next; node != &container->waiters;
         node = node->next) {
        leases++;
    }
    CHECK(registry->table->ops->publish(registry->table, &container->ref, container->id, leases,
                                        registry_expiry(registry)));
    container->state = CONTAINER_READY;
    container->leases = leases;
    container->used_at = clock_ms();
    registry->changes++;
    for (struct list *first; (first = list_first(&container->waiters)) != NULL;) {
        waiter_grant(INDEX_OWNER(first, struct waiter, link), container);
    }
    reaper_need(registry, registry->table->ops->next_expiry(registry->table));
}

/* Made, but not to be used: it goes out at once. */
static void container_refuse(struct container *container, enum close_reason reason,
                             const struct sg_error *err)
{
    struct registry *registry = container->registry;
    waiters_fail(container, err);
    CHECK(registry->table->ops->evict(registry->table, &container->ref, false, clock_ms()));
    container_discard(container, reason);
}

static bool is_wanted(const struct container *container)
{
    return !container->is_unwanted &&
           (container->is_session || !list_is_empty(&container->waiters));
}

static void creation_settle(struct container *container, const struct sg_error *failure)
{
    struct sg_error err = *failure;
    container->registry->created += container->handle != NULL;
    if (container->handle == NULL) {
        CHECK(err.code != 0);
        waiters_fail(container, &err);
        container_end(container, false);
    } else if (err.code != 0) {
        container_refuse(container, CLOSE_FAILED, &err);
    } else if (!is_wanted(container)) {
        (void)error_set(&err, SG_E_UNAVAILABLE, "the container was ended before it was used");
        container_refuse(container, container->is_unwanted ? container->reason : CLOSE_UNWANTED,
                         &err);
    } else {
        container_publish(container);
    }
    if (container->state == CONTAINER_READY) { /* an idle one may have to make room at once */
        room_retry(container->registry, container->identity);
    }
}

/* One that is being made may just be given its handle, by its own loop, and looks for others when it is settled. */
static bool has_handle(const struct container *other, const struct container *container)
{
    return other->state != CONTAINER_CREATING &&
           other->sandbox->instance == container->sandbox->instance && other->handle != NULL &&
           strcmp(other->handle, container->handle) == 0;
}

/* Two containers with one handle would be one, perhaps of two tenants. It is the older one's, and not for us to destroy. */
static void handle_check(struct container *container, struct sg_error *err)
{
    const struct list *all = &container->registry->containers;
    for (struct list *node = all->next; container->handle != NULL && node != all;
         node = node->next) {
        if (has_handle(INDEX_OWNER(node, struct container, in_registry), container)) {
            free(TAKE(container->handle));
            (void)error_set(err, SG_E_INTERNAL, /* the code */
                            "sandbox '%s': create() gave the handle of another container",
                            container->sandbox->name);
        }
    }
}

static void creation_end(struct container *container, int64_t since, const struct sg_error *failure)
{
    struct registry *registry = container->registry;
    struct sg_error err = *failure;
    registry_lock(registry);
    handle_check(container, &err);
    creation_settle(container, &err);
    registry_unlock(registry);
    creation_log(container, since, &err);
    registry_lock(registry);
    container_unref(container); /* the message's */
    registry_unlock(registry);
}

/* Takes the handle; the first that can be used as one counts. */
static void handle_take(struct container *container, struct str handle)
{
    bool is_valid = handle.len > 0 && handle.len <= LIMIT_HANDLE_BYTES &&
                    memchr(handle.data, '\0', handle.len) == NULL;
    if (container->handle == NULL && is_valid) {
        char *copy = check_alloc(malloc(handle.len + 1));
        memcpy(copy, handle.data, handle.len);
        copy[handle.len] = '\0';
        container->handle = copy; /* nobody else looks at it while it is CREATING */
    }
}

static int descriptors_take(struct container *container, struct sg_error *err)
{
    size_t count = container_descriptors(container->sandbox);
    if (!admission_take_waiting(count)) {
        return error_set(err, SG_E_LIMIT,
                         "no descriptors are left for another container: %zu of %zu are in use",
                         admission_used(), admission_limit());
    }
    container->descriptors = count;
    return 0;
}

static struct sg_call *create_call(struct container *container, int64_t since,
                                   struct provider_arguments **ret_arguments)
{
    const struct registry_options *options = &container->registry->options;
    struct sg_call *call = provider_call(container, "create", container->request_id,
                                         deadline_in(options->create_ms), ret_arguments);
    call_set_identity(call, str_of(container->identity));
    (*ret_arguments)->spec = (struct sg_sandbox_spec){
        .label = container->label,
        .idle_ms = options->idle_timeout_ms,
        .life_ms = container->life_ms,
    };
    container->life_until = since + container->life_ms;
    container->life_latest = container->life_until + options->create_ms;
    return call;
}

/* The handle may come before a failure. */
static int handle_await(struct container *container, struct sg_call *call, struct sg_error *err)
{
    struct call_output output;
    int next;
    while ((next = call_next(call, &output)) == 1) {
        if (output.kind == SG_OUT_HANDLE) {
            handle_take(container, output.data);
        }
    }
    if (next < 0) { /* what it emits from now on is not taken, as it is told */
        call_cancel(call);
        return error_set(err, -next, "sandbox '%s': create() %s", container->sandbox->name,
                         next == -SG_E_TIMEOUT ? "does not return" : "is left: shutting down");
    }
    int code = call_result(call, err);
    if (code == 0 && container->handle == NULL) {
        return error_set(err, SG_E_INTERNAL,
                         "sandbox '%s': create() gave no handle of 1 to %zu bytes without NUL",
                         container->sandbox->name, LIMIT_HANDLE_BYTES);
    }
    return code;
}

static void create_run(void *arg)
{
    struct container *container = arg;
    struct sg_error err = {0};
    int64_t since = clock_ms();
    if (descriptors_take(container, &err) == 0) {
        struct provider_arguments *arguments;
        struct sg_call *call = create_call(container, since, &arguments);
        errand_patience(call);
        call_start(call, provider_create, arguments);
        (void)handle_await(container, call, &err); /* the code stands in err */
        call_unref(call);
    }
    creation_end(container, since, &err);
}

/* Whoever wanted it may have left before it was begun. */
static bool is_still_wanted(struct container *container, struct sg_error *err)
{
    registry_lock(container->registry);
    bool wanted = is_wanted(container);
    registry_unlock(container->registry);
    if (!wanted) {
        (void)error_set(err, SG_E_CANCELLED, "nobody waits for it any more"); /* the code */
    }
    return wanted;
}

void create_on_loop(struct loop_task *task)
{
    struct container *container = INDEX_OWNER(task, struct container, create.task);
    CHECK_MAGIC(container, CONTAINER_MAGIC);
    struct registry *registry = container->registry;
    struct sg_error err = {0};
    if (!is_still_wanted(container, &err) ||
        errand_start(registry, "create", create_run, container, &err) != 0) {
        creation_end(container, clock_ms(), &err);
    }
    registry_lock(registry);
    registry_arrived(registry);
    registry_unlock(registry);
}
