/* Room for new containers: who waits for it, who is next, and what is evicted for whom. Queues are for each identity and
 * each limit, so that no identity's waiting holds up another's; those who wait for the total limit take turns by
 * identity. All of it is under the lock. */
#include "session/internal.h"

#include "base/check.h"
#include "base/identity.h"

#include <stdlib.h>

static struct tenant *tenant_find(const struct room *room, struct str name)
{
    for (struct hash_node *node = hash_first(&room->tenants, hash_bytes(name.data, name.len));
         node != NULL; node = hash_next(node)) {
        struct tenant *tenant = INDEX_OWNER(node, struct tenant, by_name);
        if (str_eq(name, (struct str){tenant->name, tenant->name_len})) {
            return tenant;
        }
    }
    return NULL;
}

static struct tenant *tenant_get(struct room *room, struct str name)
{
    struct tenant *tenant = tenant_find(room, name);
    if (tenant != NULL) {
        return tenant;
    }
    tenant = check_alloc(calloc(1, sizeof *tenant + name.len + 1));
    for (size_t i = 0; i < TABLE_LIMIT_COUNT; i++) {
        list_init(&tenant->queues[i]);
    }
    list_init(&tenant->in_rotation);
    tenant->name_len = name.len;
    memcpy(tenant->name, name.data, name.len);
    hash_put(&room->tenants, &tenant->by_name, hash_bytes(name.data, name.len));
    return tenant;
}

static void tenant_drop_unused(struct room *room, struct tenant *tenant)
{
    for (size_t i = 0; i < TABLE_LIMIT_COUNT; i++) {
        if (tenant->waiting[i] > 0) {
            return;
        }
    }
    hash_remove(&room->tenants, &tenant->by_name);
    free(tenant);
}

/* Who waits together: those of an identity for a session, those of a key, with all its users, for a container. */
static struct str tenant_name(struct str identity, enum table_limit queue)
{
    return queue == TABLE_LIMIT_SESSIONS ? identity : identity_key(identity);
}

static void room_enter(struct waiter *waiter, enum table_limit queue)
{
    struct room *room = &waiter->registry->room;
    struct tenant *tenant = tenant_get(room, tenant_name(str_of(waiter->lease->identity), queue));
    CHECK(waiter->queue == TABLE_LIMIT_NONE);
    waiter->tenant = tenant;
    waiter->queue = queue;
    list_append(&tenant->queues[queue], &waiter->link);
    tenant->waiting[queue]++;
    if (queue == TABLE_LIMIT_TOTAL) {
        room->waiting_total++;
        if (tenant->waiting[queue] == 1) {
            list_append(&room->rotation, &tenant->in_rotation);
        }
    }
}

void room_leave(struct waiter *waiter)
{
    struct room *room = &waiter->registry->room;
    struct tenant *tenant = waiter->tenant;
    if (tenant == NULL) {
        return;
    }
    list_remove(&waiter->link);
    tenant->waiting[waiter->queue]--;
    if (waiter->queue == TABLE_LIMIT_TOTAL) {
        room->waiting_total--;
        list_remove(&tenant->in_rotation);
        if (tenant->waiting[TABLE_LIMIT_TOTAL] > 0) { /* the others first */
            list_append(&room->rotation, &tenant->in_rotation);
        }
    }
    waiter->tenant = NULL;
    waiter->queue = TABLE_LIMIT_NONE;
    tenant_drop_unused(room, tenant);
}

/* The queue of those who have waited longer for what this one would take; NONE: nobody. */
static enum table_limit room_before(const struct waiter *waiter)
{
    const struct room *room = &waiter->registry->room;
    struct str identity = str_of(waiter->lease->identity);
    struct tenant *tenant = tenant_find(room, identity);
    struct tenant *key = tenant_find(room, identity_key(identity));
    if (tenant != NULL && waiter->lease->is_session && tenant->waiting[TABLE_LIMIT_SESSIONS] > 0) {
        return TABLE_LIMIT_SESSIONS;
    }
    if (key != NULL && key->waiting[TABLE_LIMIT_CONTAINERS] > 0) {
        return TABLE_LIMIT_CONTAINERS;
    }
    return room->waiting_total > 0 ? TABLE_LIMIT_TOTAL : TABLE_LIMIT_NONE;
}

static void waiter_create(struct waiter *waiter, const struct table_reply *created)
{
    struct registry *registry = waiter->registry;
    struct container *container =
        container_new(registry, waiter->lease, created, waiter->message.loop);
    CHECK(registry->table->ops->attach(registry->table, &created->ref, container));
    room_leave(waiter);
    list_append(&container->waiters, &waiter->link);
}

/* One is evicted for each that waits; those on their way out already count. */
static void waiter_queue(struct waiter *waiter, enum table_limit queue,
                         const struct table_reply *reply)
{
    if (waiter->queue != queue) {
        room_leave(waiter);
        room_enter(waiter, queue);
    }
    size_t waiting = queue == TABLE_LIMIT_TOTAL ? waiter->registry->room.waiting_total
                                                : waiter->tenant->waiting[queue];
    if (reply->victim.fence != 0 && reply->closing < waiting) {
        struct container *victim = reply->victim_local;
        container_close(victim, CLOSE_EVICTED, victim->is_used);
    }
}

/* `before`: the queue of those before it; NONE: it may create. */
static void waiter_ask(struct waiter *waiter, enum table_limit before)
{
    struct registry *registry = waiter->registry;
    struct table_ask ask = {
        .identity = str_of(waiter->lease->identity),
        .is_session = waiter->lease->is_session,
        .may_create = before == TABLE_LIMIT_NONE,
        .sessions = waiter->lease->per_identity,
        .containers = waiter->lease->max_containers,
        .total = registry->options.max_containers_total,
    };
    memcpy(ask.key, waiter->lease->key, sizeof ask.key);
    struct table_reply reply;
    enum table_answer answer = registry->table->ops->acquire(registry->table, &ask, &reply);
    struct container *container = reply.local;
    switch (answer) {
    case TABLE_LEASED:
        container->leases++;
        waiter_grant(waiter, container);
        return;
    case TABLE_PENDING:
        room_leave(waiter);
        list_append(&container->waiters, &waiter->link);
        return;
    case TABLE_CREATE:
        waiter_create(waiter, &reply);
        return;
    case TABLE_FULL:
        waiter_queue(waiter, reply.limit == TABLE_LIMIT_NONE ? before : reply.limit, &reply);
        return;
    }
}

void room_place(struct waiter *waiter)
{
    waiter_ask(waiter, room_before(waiter));
}

static struct waiter *queue_head(const struct tenant *tenant, enum table_limit queue)
{
    struct list *first = list_first(&tenant->queues[queue]);
    return first == NULL ? NULL : INDEX_OWNER(first, struct waiter, link);
}

static void retry_tenant(struct room *room, struct str name, enum table_limit queue)
{
    struct tenant *tenant;
    while ((tenant = tenant_find(room, name)) != NULL) { /* it ends with its last waiter */
        struct waiter *head = queue_head(tenant, queue);
        if (head == NULL) {
            return;
        }
        waiter_ask(head, TABLE_LIMIT_NONE);
        if (head->queue == queue) {
            return;
        }
    }
}

void room_retry(struct registry *registry, const char *identity)
{
    struct room *room = &registry->room;
    retry_tenant(room, str_of(identity), TABLE_LIMIT_SESSIONS);
    retry_tenant(room, tenant_name(str_of(identity), TABLE_LIMIT_CONTAINERS),
                 TABLE_LIMIT_CONTAINERS);
    for (struct list *first; (first = list_first(&room->rotation)) != NULL;) {
        struct tenant *tenant = INDEX_OWNER(first, struct tenant, in_rotation);
        struct waiter *head = queue_head(tenant, TABLE_LIMIT_TOTAL);
        waiter_ask(head, TABLE_LIMIT_NONE);
        if (head->queue == TABLE_LIMIT_TOTAL) {
            return;
        }
    }
}

static void fail_queue(struct list *queue, const struct sg_error *err)
{
    for (struct list *first; (first = list_first(queue)) != NULL;) {
        bool is_last = first->next == queue; /* then the tenant may be gone */
        waiter_fail(INDEX_OWNER(first, struct waiter, link), err);
        if (is_last) {
            return;
        }
    }
}

void room_fail_all(struct registry *registry, const struct sg_error *err)
{
    struct hash *tenants = &registry->room.tenants;
    while (tenants->count > 0) {
        struct hash_node *node = NULL;
        for (size_t i = 0; node == NULL; i++) {
            node = tenants->buckets[i];
        }
        struct tenant *tenant = INDEX_OWNER(node, struct tenant, by_name);
        for (size_t i = 0; i < TABLE_LIMIT_COUNT; i++) {
            if (tenant->waiting[i] > 0) {
                fail_queue(&tenant->queues[i], err);
                break; /* the tenant may be gone: look for the next queue afresh */
            }
        }
    }
}
