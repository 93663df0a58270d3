/* Errands: fibers of the registry's own, outside any request, which its shutdown can find and cancel on their loops. */
#include "session/internal.h"

#include "base/check.h"

#include <stdlib.h>

static void errand_unref(struct errand *errand)
{
    CHECK(errand->refs > 0);
    if (--errand->refs == 0) {
        errand->magic = 0;
        free(errand);
    }
}

static void errand_end(struct errand *errand)
{
    struct registry *registry = errand->registry;
    registry_lock(registry);
    list_remove(&errand->in_registry);
    if (registry->is_stopping) {
        reaper_need(registry, 0);
    }
    errand_unref(errand);
    registry_unlock(registry);
}

static void errand_main(void *arg)
{
    struct errand *errand = arg;
    CHECK_MAGIC(errand, ERRAND_MAGIC);
    errand->run(errand->arg);
    errand->fiber = NULL;
    errand_end(errand);
}

static void cancel_on_loop(struct loop_task *task)
{
    struct errand *errand = INDEX_OWNER(task, struct errand, cancel.task);
    CHECK_MAGIC(errand, ERRAND_MAGIC);
    struct registry *registry = errand->registry;
    if (errand->fiber != NULL) {
        fiber_cancel(errand->fiber);
    }
    registry_lock(registry);
    errand_unref(errand);
    registry_arrived(registry);
    registry_unlock(registry);
}

int errand_start(struct registry *registry, const char *name, void (*run)(void *), void *arg,
                 struct sg_error *err)
{
    struct errand *errand = check_alloc(calloc(1, sizeof *errand));
    *errand = (struct errand){.magic = ERRAND_MAGIC,
                              .refs = 1,
                              .registry = registry,
                              .run = run,
                              .arg = arg,
                              .cancel = {.task = {.run = cancel_on_loop}, .loop = loop_self()}};
    registry_lock(registry);
    bool is_refused = registry->is_abandoned;
    list_init(&errand->in_registry);
    if (!is_refused) {
        list_append(&registry->errands, &errand->in_registry);
    }
    registry_unlock(registry);
    if (is_refused) {
        free(errand);
        return error_set(err, SG_E_UNAVAILABLE, "the gateway is shutting down");
    }
    int code = fiber_start(loop_self(), name, errand_main, errand, &errand->fiber, err);
    if (code != 0) {
        errand_end(errand);
    }
    return code;
}

void errand_patience(const struct sg_call *call)
{
    fiber_set_deadline(fiber_self(), call_deadline(call) + ABANDON_MS);
}

void errands_cancel(struct registry *registry)
{
    registry->is_abandoned = true;
    for (struct list *node = registry->errands.next; node != &registry->errands;
         node = node->next) {
        struct errand *errand = INDEX_OWNER(node, struct errand, in_registry);
        if (!errand->is_cancelled) {
            errand->is_cancelled = true;
            errand->refs++;
            registry_post(registry, &errand->cancel);
        }
    }
}
