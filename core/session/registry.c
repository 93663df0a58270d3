/* The registry as a whole: its life, its lock and what is posted after it, its figures. */
#include "session/internal.h"

#include "base/check.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>

void registry_options_default(struct registry_options *options)
{
    *options = (struct registry_options){
        .idle_timeout_ms = 15 * 60 * 1000,
        .per_identity = 10,
        .max_containers = 100,
        .max_containers_total = 1000,
        .wait_ms = 10000,
        .create_ms = 60000,
        .destroy_ms = 15000,
        .lost_after_ms = 60000,
        .lost_max = 10,
        .interrupt_ms = 5000,
        .run_slack_ms = 5000,
        .life_slack_ms = 60000,
    };
}

static int options_check(const struct registry_options *o, struct sg_error *err)
{
    CHECK(o->loops != NULL && o->loops_count > 0);
    if (o->per_identity == 0 || o->max_containers == 0 || o->max_containers_total == 0) {
        return error_set(err, SG_E_CONFIG,
                         "sessions: per_identity, max_containers and max_containers_total must be "
                         "at least 1");
    }
    if (o->idle_timeout_ms <= 0) {
        return error_set(err, SG_E_CONFIG, "sessions: idle_timeout must be longer than 0");
    }
    CHECK(o->wait_ms >= 0 && o->create_ms > 0 && o->destroy_ms > 0);
    CHECK(o->lost_after_ms >= 0 && o->interrupt_ms >= 0);
    CHECK(o->run_slack_ms > 0 && o->life_slack_ms > 0);
    return 0;
}

int registry_new(const struct registry_options *options, struct registry **ret,
                 struct sg_error *err)
{
    if (options_check(options, err) != 0) {
        return err->code;
    }
    struct registry *registry = check_alloc(calloc(1, sizeof *registry));
    registry->magic = REGISTRY_MAGIC;
    registry->options = *options;
    lock_init(&registry->lock);
    registry->table = table_memory_new();
    list_init(&registry->containers);
    list_init(&registry->errands);
    list_init(&registry->room.rotation);
    reaper_init(registry);
    *ret = registry;
    return 0;
}

void registry_free(struct registry *registry)
{
    if (registry == NULL) {
        return;
    }
    CHECK_MAGIC(registry, REGISTRY_MAGIC);
    CHECK(registry->reaper.fiber == NULL);
    CHECK(list_is_empty(&registry->errands));
    for (struct list *first; (first = list_first(&registry->containers)) != NULL;) {
        struct container *container = INDEX_OWNER(first, struct container, in_registry);
        list_remove(first);
        container_unref(container); /* left behind by the shutdown, and logged there */
    }
    registry->table->ops->free(registry->table);
    hash_clear(&registry->room.tenants);
    hash_clear(&registry->runners);
    heap_clear(&registry->reaper.deletions);
    lock_destroy(&registry->lock);
    registry->magic = 0;
    free(registry);
}

/* ---- the lock ---- */

void registry_lock(struct registry *registry)
{
    CHECK_MAGIC(registry, REGISTRY_MAGIC);
    lock_take(&registry->lock);
}

void registry_post(struct registry *registry, struct message *message)
{
    message->next = NULL;
    if (registry->outbox_last == NULL) {
        registry->outbox_first = message;
    } else {
        registry->outbox_last->next = message;
    }
    registry->outbox_last = message;
    registry->in_flight++;
}

void registry_arrived(struct registry *registry)
{
    CHECK(registry->in_flight > 0);
    registry->in_flight--;
    if (registry->is_abandoned && registry->in_flight == 0) {
        reaper_need(registry, 0);
    }
}

void registry_unlock(struct registry *registry)
{
    struct message *message = registry->outbox_first;
    registry->outbox_first = registry->outbox_last = NULL;
    lock_release(&registry->lock);
    while (message != NULL) {
        struct message *next = message->next; /* it is its receiver's once it is posted */
        loop_post(message->loop, &message->task);
        message = next;
    }
}

int64_t registry_expiry(const struct registry *registry)
{
    return deadline_in(registry->options.idle_timeout_ms);
}

/* ---- figures ---- */

void registry_stats(struct registry *registry, struct registry_stats *ret)
{
    struct table_counts counts;
    registry_lock(registry);
    registry->table->ops->counts(registry->table, &counts);
    *ret = (struct registry_stats){
        .creating = counts.creating,
        .ready = counts.ready,
        .closing = counts.closing,
        .lost = registry->lost,
        .leases = counts.leases,
        .sessions = counts.sessions,
        .created = registry->created,
        .destroyed = registry->destroyed,
        .replaced = registry->replaced,
        .evicted = registry->evicted,
        .expired = registry->expired,
        .destroy_failures = registry->destroy_failures,
    };
    registry_unlock(registry);
}

struct listing {
    struct container_info *infos;
    size_t count, cap;
};

static void listing_add(void *context, const struct table_view *view)
{
    struct listing *listing = context;
    const struct container *container = view->local;
    if (view->state != TABLE_READY) {
        return;
    }
    if (listing->count == listing->cap) {
        listing->cap = 2 * listing->cap + 8;
        listing->infos =
            check_alloc(realloc(listing->infos, listing->cap * sizeof *listing->infos));
    }
    struct container_info *info = &listing->infos[listing->count++];
    *info = (struct container_info){
        .sandbox = container->sandbox->name,
        .is_session = view->is_session,
        .leases = view->leases,
        .created_unix_s = container->created_unix_s,
        .idle_left_ms = view->expires_ms == DEADLINE_NONE ? -1 : view->expires_ms - clock_ms(),
    };
    if (container->session_id != NULL) {
        (void)snprintf(info->session_id, sizeof info->session_id, "%s",
                       container->session_id); /* such ids are no longer */
    }
    memcpy(info->container_id, container->id, sizeof info->container_id);
}

size_t registry_list(struct registry *registry, struct str identity, struct container_info **ret)
{
    struct listing listing = {0};
    registry_lock(registry);
    registry->table->ops->list(registry->table, identity, listing_add, &listing);
    registry_unlock(registry);
    *ret = listing.infos;
    return listing.count;
}

bool registry_end(struct registry *registry, struct str identity, struct str container_id)
{
    struct table_reply reply;
    registry_lock(registry);
    bool found = registry->table->ops->acquire_id(registry->table, container_id, identity, &reply);
    if (found) {
        container_close(reply.local, CLOSE_ENDED, false); /* with it that lease */
    }
    registry_unlock(registry);
    return found;
}

/* ---- the end ---- */

/* Under the lock. */
static size_t containers_left(const struct registry *registry)
{
    struct table_counts counts;
    registry->table->ops->counts(registry->table, &counts);
    return counts.creating + counts.ready + counts.closing + registry->lost;
}

/* Under the lock: who has a lease, or waits to get one. */
static size_t uses_left(const struct registry *registry)
{
    struct table_counts counts;
    registry->table->ops->counts(registry->table, &counts);
    return counts.creating + counts.leases;
}

/* Waits until none of what `left` counts is left, or the deadline. */
static void wait_none(struct registry *registry, size_t (*left)(const struct registry *),
                      int64_t deadline)
{
    for (;;) {
        registry_lock(registry);
        bool is_over = left(registry) == 0;
        registry_unlock(registry);
        if (is_over || clock_ms() >= deadline) {
            return;
        }
        (void)fiber_park(deadline); /* the round decides */
    }
}

enum close_what { CLOSE_NOT_KEPT, CLOSE_BUSY, CLOSE_ALL };

/* NOT_KEPT: those without a lease that cannot be kept. BUSY: also those with a lease. */
static void close_all(struct registry *registry, enum close_what what)
{
    registry_lock(registry);
    for (struct list *node = registry->containers.next; node != &registry->containers;) {
        struct container *container = INDEX_OWNER(node, struct container, in_registry);
        node = node->next;
        bool is_idle = container->leases == 0;
        if (what == CLOSE_ALL || (is_idle && !container_can_be_kept(container)) ||
            (!is_idle && what == CLOSE_BUSY)) {
            container_close(container, CLOSE_SHUTDOWN, container_end_is_loss(container));
        }
    }
    registry_unlock(registry);
}

/* No waiter is left when this returns, and none comes after it. */
static void turn_away_all(struct registry *registry)
{
    struct sg_error err = {0};
    (void)error_set(&err, SG_E_UNAVAILABLE, "the gateway is shutting down"); /* the code */
    registry_lock(registry);
    registry->is_stopping = true;
    room_fail_all(registry, &err);
    runs_fail_all(registry, &err);
    for (struct list *node = registry->containers.next; node != &registry->containers;
         node = node->next) {
        struct container *container = INDEX_OWNER(node, struct container, in_registry);
        for (struct list *first; (first = list_first(&container->waiters)) != NULL;) {
            waiter_fail(INDEX_OWNER(first, struct waiter, link), &err);
        }
    }
    registry_unlock(registry);
}

/* Cancels the errands that are left and waits for their fibers, and until no message of ours is on its way: these end
 * without waiting for anything. */
static void errands_end(struct registry *registry)
{
    registry_lock(registry);
    errands_cancel(registry);
    reaper_need(registry, 0);
    registry_unlock(registry);
    for (;;) {
        registry_lock(registry);
        bool is_done = list_is_empty(&registry->errands) && registry->in_flight == 0;
        registry_unlock(registry);
        if (is_done && registry->reaper.fiber == NULL) {
            return;
        }
        (void)fiber_park(DEADLINE_NONE); /* the round decides */
    }
}

static void left_log(const struct container *container)
{
    struct log_line line;
    container_log(&line, SG_WARN, "container_left", container);
    log_int(&line, "life_left_ms", container->life_latest - clock_ms());
    log_end(&line);
}

struct container **registry_hold_all(struct registry *registry, size_t *ret_count)
{
    size_t count = 0;
    registry_lock(registry);
    struct container **held = check_alloc(calloc(containers_left(registry) + 1, sizeof *held));
    for (struct list *node = registry->containers.next; node != &registry->containers;
         node = node->next) {
        held[count++] = container_ref(INDEX_OWNER(node, struct container, in_registry));
    }
    registry_unlock(registry);
    *ret_count = count;
    return held;
}

void registry_let_go(struct registry *registry, struct container **held, size_t count)
{
    registry_lock(registry);
    for (size_t i = 0; i < count; i++) {
        container_unref(held[i]);
    }
    registry_unlock(registry);
    free(held);
}

/* One line for each; they stay in the list, for registry_free(). */
static size_t left_report(struct registry *registry)
{
    size_t count;
    struct container **left = registry_hold_all(registry, &count);
    for (size_t i = 0; i < count; i++) {
        left_log(left[i]);
    }
    registry_let_go(registry, left, count);
    return count;
}

size_t registry_shutdown(struct registry *registry, int64_t deadline)
{
    struct reaper *reaper = &registry->reaper;
    CHECK(loop_self() == registry->options.loops[0]);
    fiber_shield();
    reaper->shutdown_fiber = fiber_self();
    turn_away_all(registry);
    close_all(registry, CLOSE_NOT_KEPT);
    int64_t grace = deadline_in(registry->options.interrupt_ms);
    wait_none(registry, uses_left, deadline_min(deadline, grace));
    close_all(registry, CLOSE_BUSY);
    registry_keep(registry);
    close_all(registry, CLOSE_ALL);                 /* what was to be kept and could not */
    wait_none(registry, containers_left, deadline); /* left_report() says what is left */
    errands_end(registry);
    reaper->shutdown_fiber = NULL;
    fiber_unshield();
    return left_report(registry);
}
