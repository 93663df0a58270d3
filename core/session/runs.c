/* How much code of one identity runs at a time: beyond its share, runs that have their container already wait for the
 * identity's earlier ones, first come first served. A run counts until it has returned, or, where nobody could end it,
 * until its container is gone. */
#include "session/internal.h"

#include "base/check.h"
#include "base/identity.h"

#include <stdlib.h>

struct runner { /* a key, with all its users, of whom code runs, or waits to */
    struct hash_node by_name;
    size_t running;
    struct list waiting;
    size_t name_len;
    char name[];
};

/* ---- under the lock ---- */

/* Whose share it takes: users share their key's. */
static struct str owner_of(const struct container *container)
{
    return identity_key(str_of(container->identity));
}

static struct runner *runner_find(const struct registry *registry, struct str name)
{
    for (struct hash_node *node = hash_first(&registry->runners, hash_bytes(name.data, name.len));
         node != NULL; node = hash_next(node)) {
        struct runner *runner = INDEX_OWNER(node, struct runner, by_name);
        if (str_eq(name, (struct str){runner->name, runner->name_len})) {
            return runner;
        }
    }
    return NULL;
}

static struct runner *runner_get(struct registry *registry, struct str name)
{
    struct runner *runner = runner_find(registry, name);
    if (runner == NULL) {
        runner = check_alloc(calloc(1, sizeof *runner + name.len + 1));
        list_init(&runner->waiting);
        runner->name_len = name.len;
        memcpy(runner->name, name.data, name.len);
        hash_put(&registry->runners, &runner->by_name, hash_bytes(name.data, name.len));
    }
    return runner;
}

static void runner_drop_unused(struct registry *registry, struct runner *runner)
{
    if (runner->running == 0 && list_is_empty(&runner->waiting)) {
        hash_remove(&registry->runners, &runner->by_name);
        free(runner);
    }
}

/* One place less is taken, or the next has it. */
static void place_give(struct registry *registry, struct str name)
{
    struct runner *runner = runner_find(registry, name);
    CHECK(runner != NULL && runner->running > 0);
    struct list *first = list_first(&runner->waiting);
    if (first != NULL) {
        waiter_grant(INDEX_OWNER(first, struct waiter, link), NULL);
    } else {
        runner->running--;
        runner_drop_unused(registry, runner);
    }
}

/* True if there is a place; else *ret_waiter stands in the queue for one. */
static bool place_try(struct container *container, struct waiter **ret_waiter)
{
    struct registry *registry = container->registry;
    size_t most = registry->options.runs_per_identity;
    struct runner *runner = runner_get(registry, owner_of(container));
    bool is_free = most == 0 || (runner->running < most && list_is_empty(&runner->waiting));
    if (is_free) {
        runner->running++;
    } else {
        *ret_waiter = waiter_new(registry, NULL);
        list_append(&runner->waiting, &(*ret_waiter)->link);
    }
    return is_free;
}

/* What the waiting came to. */
static int place_settle(struct container *container, struct waiter *waiter, int code,
                        struct sg_error *err)
{
    struct registry *registry = container->registry;
    struct runner *runner = runner_find(registry, owner_of(container));
    if (code == 0 && waiter->state == WAITER_GRANTED) {
        return 0;
    }
    if (waiter->state == WAITER_GRANTED) {
        place_give(registry, owner_of(container));
    } else if (runner != NULL) {
        runner_drop_unused(registry, runner);
    }
    if (waiter->state == WAITER_FAILED) {
        *err = waiter->err;
        return err->code;
    }
    return error_set(err, code,
                     "gave up while %zu runs of this identity, its share, were under way",
                     registry->options.runs_per_identity);
}

void runs_leave(struct container *container)
{
    if (container->is_running) {
        container->is_running = false;
        place_give(container->registry, owner_of(container));
    }
}

void runs_fail_all(struct registry *registry, const struct sg_error *err)
{
    for (size_t i = 0; i < registry->runners.buckets_count; i++) {
        for (struct hash_node *node = registry->runners.buckets[i]; node != NULL;
             node = node->next) {
            struct runner *runner = INDEX_OWNER(node, struct runner, by_name);
            for (struct list *first; (first = list_first(&runner->waiting)) != NULL;) {
                waiter_fail(INDEX_OWNER(first, struct waiter, link), err);
            }
        }
    }
}

/* ---- by the run ---- */

/* Under the lock. */
static int check_ready(const struct container *container, struct sg_error *err)
{
    return container->state == CONTAINER_READY
               ? 0
               : error_set(err, SG_E_GONE_BEFORE,
                           "the container ended before its code could begin");
}

int runs_enter(struct container *container, struct sg_error *err)
{
    struct registry *registry = container->registry;
    struct waiter *waiter = NULL;
    registry_lock(registry);
    int code = check_ready(container, err); /* after a shutdown nobody begins to wait */
    if (code == 0 && !place_try(container, &waiter)) {
        registry_unlock(registry);
        code = waiter_wait(waiter, DEADLINE_NONE, DEADLINE_NONE);
        registry_lock(registry);
        code = place_settle(container, waiter, code, err);
    }
    container->is_running = code == 0;
    code = code == 0 ? check_ready(container, err) : code;
    if (code != 0) {
        runs_leave(container);
    }
    registry_unlock(registry);
    if (waiter != NULL) {
        waiter_leave(waiter);
    }
    return code;
}
