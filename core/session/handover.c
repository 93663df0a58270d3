/* A run whose caller has left: an errand interrupts it and gives the container's turn on when the run has returned and
 * the interrupt, which could hit the next run, too. Without both in time nobody knows what goes on in there: the
 * container is destroyed and the loss announced. The run's call is not cancelled before that: its return is what says
 * that the code has ended. */
#include "session/internal.h"

#include "base/check.h"

#include <stdlib.h>

struct handover {
    struct container *container; /* with a reference and the turn */
    struct sg_call *call;
    char *request_id;
    bool has_lease;
};

/* Drops the output that is left; true if the call has ended by the fiber's deadline. */
static bool drain(struct sg_call *call)
{
    struct call_output output;
    int next;
    do {
        next = call_next(call, &output);
    } while (next == 1);
    return next == 0;
}

static struct sg_call *interrupt_start(const struct handover *handover)
{
    struct container *container = handover->container;
    if (container->sandbox->instance->plugin->sandbox->interrupt == NULL) {
        return NULL;
    }
    struct provider_arguments *arguments;
    struct sg_call *call =
        provider_call(container, "interrupt", handover->request_id,
                      deadline_in(container->registry->options.interrupt_ms), &arguments);
    call_start(call, provider_interrupt, arguments);
    return call;
}

static void handover_settle(struct handover *handover, bool is_over)
{
    struct container *container = handover->container;
    struct registry *registry = container->registry;
    struct sg_error err = {0};
    int code = is_over ? call_result(handover->call, &err) : 0;
    registry_lock(registry);
    if (is_over) {
        container_run_ended(container, code, call_deadline(handover->call));
    } else {
        container_close(container, CLOSE_HUNG, true);
    }
    if (handover->has_lease) {
        container_release(container, 0);
    }
    container_unref(container);
    registry_unlock(registry);
}

static void call_end(struct sg_call *call)
{
    if (call != NULL) {
        call_cancel(call);
        call_unref(call);
    }
}

static void handover_finish(struct handover *handover, bool is_over)
{
    handover_settle(handover, is_over);
    call_end(handover->call);
    free(handover->request_id);
    free(handover);
}

/* Can the interrupt not hit the next run any more? One that ran out of time may still be on its way. */
static bool interrupt_is_over(struct sg_call *interrupt)
{
    struct sg_error err = {0};
    return interrupt == NULL || (drain(interrupt) && call_result(interrupt, &err) != SG_E_TIMEOUT);
}

static void handover_run(void *arg)
{
    struct handover *handover = arg;
    fiber_set_deadline(fiber_self(),
                       deadline_in(handover->container->registry->options.interrupt_ms));
    struct sg_call *interrupt = interrupt_start(handover);
    bool is_over = drain(handover->call) && interrupt_is_over(interrupt);
    call_end(interrupt);
    handover_finish(handover, is_over);
}

void handover_start(struct container *container, struct sg_call *call, const char *request_id)
{
    struct registry *registry = container->registry;
    struct handover *handover = check_alloc(calloc(1, sizeof *handover));
    handover->call = call;
    handover->request_id = request_id == NULL ? NULL : check_alloc(strdup(request_id));
    registry_lock(registry);
    handover->container = container_ref(container);
    /* An ephemeral container goes with its request, whatever still runs in it. */
    handover->has_lease = container->is_session && container->state == CONTAINER_READY;
    if (handover->has_lease) {
        CHECK(registry->table->ops->lease(registry->table, &container->ref));
        container->leases++;
    }
    registry_unlock(registry);
    struct sg_error err = {0};
    if (errand_start(registry, "handover", handover_run, handover, &err) != 0) {
        handover_finish(handover, false);
    }
}
