/* Leases: getting a container for a request, again where it died, and giving it back. */
#include "session/internal.h"

#include "base/check.h"

#include <stdlib.h>

struct
    attach_waiter { /* on the stack of a fiber that waits while another one attaches the same lease */
    struct list link;
    struct fiber *fiber;
};

/* An ephemeral container has a key that nobody can name. */
static void lease_choose_key(struct lease *lease, struct str session_id)
{
    if (lease->is_session) {
        session_key(str_of(lease->identity), session_id, lease->sandbox, lease->key);
    } else {
        random_bytes(lease->key, sizeof lease->key);
    }
}

static char *text_copy(struct str text)
{
    char *copy = check_alloc(malloc(text.len + 1));
    if (text.len > 0) {
        memcpy(copy, text.data, text.len);
    }
    copy[text.len] = '\0';
    return copy;
}

static struct lease *lease_new(struct registry *registry, const struct acquire *acquire)
{
    struct lease *lease = check_alloc(calloc(1, sizeof *lease));
    lease->magic = LEASE_MAGIC;
    lease->registry = registry;
    lease->home = loop_self();
    lease->is_session = acquire->session_id.len > 0;
    lease->sandbox = acquire->sandbox;
    lease->per_identity =
        acquire->per_identity > 0 ? acquire->per_identity : registry->options.per_identity;
    lease->max_containers =
        acquire->max_containers > 0 ? acquire->max_containers : registry->options.max_containers;
    lease->identity = text_copy(acquire->identity);
    lease->request_id = acquire->request_id == NULL ? NULL : text_copy(str_of(acquire->request_id));
    lease->session_id = lease->is_session ? text_copy(acquire->session_id) : NULL;
    if (acquire->new_id != NULL) {
        memcpy(lease->new_id, acquire->new_id, sizeof lease->new_id);
    }
    list_init(&lease->attach_waiters);
    lease_choose_key(lease, acquire->session_id);
    return lease;
}

static void lease_free(struct lease *lease)
{
    CHECK(lease->operations == 0 && !lease->is_attaching);
    lease->magic = 0;
    free(lease->identity);
    free(lease->request_id);
    free(lease->session_id);
    free(lease);
}

/* ---- attaching ---- */

/* Takes the container over; under the lock. The old one, if any, is dead. */
static void lease_take(struct lease *lease, struct container *container)
{
    struct container *old = lease->container;
    lease->container = container_ref(container);
    memcpy(lease->container_id, container->id, sizeof lease->container_id);
    if (old != NULL) {
        lease->has_lost |= !lease->is_session && old->is_loss;
        lease->registry->replaced++;
        old->leases--;
        container_unref(old);
    }
}

static int limit_error(const struct lease *lease, enum table_limit limit, struct sg_error *err)
{
    const struct registry_options *o = &lease->registry->options;
    switch (limit) {
    case TABLE_LIMIT_SESSIONS:
        return error_set(err, SG_E_LIMIT,
                         "%sper_identity is %zu: no session became free within %lld ms",
                         lease->per_identity == o->per_identity ? "sessions." : "the key's ",
                         lease->per_identity, (long long)o->wait_ms);
    case TABLE_LIMIT_CONTAINERS:
        return error_set(err, SG_E_LIMIT,
                         "%smax_containers is %zu: no container became free within %lld ms",
                         lease->max_containers == o->max_containers ? "sessions." : "the key's ",
                         lease->max_containers, (long long)o->wait_ms);
    case TABLE_LIMIT_TOTAL:
        return error_set(
            err, SG_E_LIMIT,
            "sessions.max_containers_total is %zu: no container became free within %lld ms",
            o->max_containers_total, (long long)o->wait_ms);
    default:
        return error_set(err, SG_E_TIMEOUT,
                         "no container of sandbox '%s' within the request's time",
                         lease->sandbox->name);
    }
}

/* Places the waiter, unless the registry ends; which limit it waits for. */
static void attach_place(struct lease *lease, struct waiter *waiter)
{
    struct registry *registry = lease->registry;
    registry_lock(registry);
    if (registry->is_stopping) {
        struct sg_error err = {0};
        (void)error_set(&err, SG_E_UNAVAILABLE, "the gateway is shutting down"); /* the code */
        waiter_fail(waiter, &err);
    } else {
        if (!lease->is_session) {
            random_bytes(lease->key, sizeof lease->key); /* a new one for each container */
        }
        room_place(waiter);
    }
    registry_unlock(registry);
}

/* What came of it, under the lock: takes the container, or passes on what the fiber does not want any more. */
static int attach_settle(struct lease *lease, struct waiter *waiter, int code, struct sg_error *err)
{
    if (waiter->state == WAITER_FAILED && code == 0) {
        *err = waiter->err;
        return err->code;
    }
    if (waiter->state == WAITER_GRANTED && code == 0) {
        lease_take(lease, waiter->container);
        return 0;
    }
    if (waiter->state == WAITER_GRANTED) {
        container_release(waiter->container, 0);
    }
    if (code == SG_E_CANCELLED) {
        return error_set(err, code, "cancelled while waiting for a container");
    }
    return limit_error(lease, waiter->stood_before, err);
}

static int attach_once(struct lease *lease, int64_t deadline, struct sg_error *err)
{
    struct registry *registry = lease->registry;
    int64_t room_deadline = deadline_in(registry->options.wait_ms);
    struct waiter *waiter = waiter_new(registry, lease);
    attach_place(lease, waiter);
    int code = waiter_wait(waiter, room_deadline, deadline);
    registry_lock(registry);
    code = attach_settle(lease, waiter, code, err);
    registry_unlock(registry);
    waiter_leave(waiter);
    return code;
}

static bool lease_is_alive(const struct lease *lease)
{
    registry_lock(lease->registry);
    bool is_alive = lease->container != NULL && lease->container->state == CONTAINER_READY;
    registry_unlock(lease->registry);
    return is_alive;
}

/* Waits while another fiber of the request attaches. */
static int attach_wait(struct lease *lease, int64_t deadline, struct sg_error *err)
{
    struct attach_waiter self = {.fiber = fiber_self()};
    list_append(&lease->attach_waiters, &self.link);
    int code = 0;
    while (lease->is_attaching && code == 0) {
        code = fiber_park(deadline);
    }
    list_remove(&self.link);
    return code == 0 ? 0 : error_set(err, code, "gave up while waiting for a container");
}

int lease_attach(struct lease *lease, int64_t deadline, struct sg_error *err)
{
    while (lease->is_attaching) {
        int code = attach_wait(lease, deadline, err);
        if (code != 0) {
            return code;
        }
    }
    if (lease_is_alive(lease)) {
        return 0;
    }
    lease->is_attaching = true;
    int code = attach_once(lease, deadline, err);
    lease->is_attaching = false;
    for (struct list *node = lease->attach_waiters.next; node != &lease->attach_waiters;
         node = node->next) {
        fiber_wake(INDEX_OWNER(node, struct attach_waiter, link)->fiber);
    }
    return code;
}

/* ---- the public functions ---- */

/* Takes the container with that id, which may be a session's or one that was kept; or else one that is parked. */
static int acquire_by_id(struct lease *lease, const struct acquire *acquire, struct sg_error *err)
{
    struct registry *registry = lease->registry;
    struct str container_id = acquire->container_id, identity = acquire->identity;
    struct table_reply reply;
    registry_lock(registry);
    bool was_parked = parked_take(registry, identity, container_id);
    bool found = !registry->is_stopping &&
                 registry->table->ops->acquire_id(registry->table, container_id, identity, &reply);
    struct container *container = found ? reply.local : NULL;
    if (found && acquire->is_parked && !was_parked && container->leases > 0) {
        CHECK(
            registry->table->ops->release(registry->table, &reply.ref, registry_expiry(registry)));
        found = false; /* somebody has it */
    }
    if (found) {
        container->leases++;
        lease->is_session = container->is_session;
        lease->sandbox = container->sandbox;
        lease->session_id =
            container->session_id == NULL ? NULL : text_copy(str_of(container->session_id));
        memcpy(lease->key, reply.ref.key, sizeof lease->key);
        lease_take(lease, container);
    }
    registry_unlock(registry);
    if (!found) {
        return error_set(err, SG_E_NOT_FOUND, "container '%.*s' does not exist or has expired",
                         (int)(container_id.len < 64 ? container_id.len : 64), container_id.data);
    }
    return 0;
}

int registry_acquire(struct registry *registry, const struct acquire *acquire, struct lease **ret,
                     struct sg_error *err)
{
    CHECK_MAGIC(registry, REGISTRY_MAGIC);
    CHECK(acquire->sandbox != NULL);
    struct lease *lease = lease_new(registry, acquire);
    int code = acquire->container_id.len > 0 ? acquire_by_id(lease, acquire, err)
                                             : lease_attach(lease, acquire->deadline, err);
    if (code != 0) {
        lease_free(lease);
        return code;
    }
    *ret = lease;
    return 0;
}

void lease_keep(struct lease *lease, int64_t keep_ms)
{
    CHECK_MAGIC(lease, LEASE_MAGIC);
    CHECK(keep_ms >= 0);
    lease->keep_ms = keep_ms;
    if (keep_ms > 0) {
        container_touch(lease->container, keep_ms + lease->sandbox->run_timeout_ms);
    }
}

bool lease_is_kept(const struct lease *lease)
{
    CHECK_MAGIC(lease, LEASE_MAGIC);
    return lease->keep_ms > 0;
}

const char *lease_container_id(const struct lease *lease)
{
    CHECK_MAGIC(lease, LEASE_MAGIC);
    return lease->container_id;
}

const struct sandbox *lease_sandbox(const struct lease *lease)
{
    CHECK_MAGIC(lease, LEASE_MAGIC);
    return lease->sandbox;
}

int64_t lease_stays_ms(const struct lease *lease)
{
    CHECK_MAGIC(lease, LEASE_MAGIC);
    if (lease->is_session) {
        return lease->registry->options.idle_timeout_ms;
    }
    registry_lock(lease->registry);
    int64_t park_ms = lease->container->park_ms;
    registry_unlock(lease->registry);
    return park_ms > lease->keep_ms ? park_ms : lease->keep_ms;
}

bool lease_is_unused(const struct lease *lease)
{
    CHECK_MAGIC(lease, LEASE_MAGIC);
    registry_lock(lease->registry);
    bool is_unused = !lease->container->is_used;
    registry_unlock(lease->registry);
    return is_unused;
}

bool lease_take_loss(struct lease *lease)
{
    CHECK_MAGIC(lease, LEASE_MAGIC);
    struct registry *registry = lease->registry;
    struct container *container = lease->container;
    if (!container->carries_loss && !lease->has_lost) {
        return false; /* asked for every piece of output: without the lock */
    }
    registry_lock(registry);
    bool loss = container->state == CONTAINER_READY && lease->has_lost;
    if (lease->is_session) {
        loss = registry->table->ops->take_loss(registry->table, &container->ref);
    }
    registry_unlock(registry);
    lease->has_lost = lease->has_lost && !loss;
    return loss;
}

void lease_release(struct lease *lease)
{
    if (lease == NULL) {
        return;
    }
    CHECK_MAGIC(lease, LEASE_MAGIC);
    CHECK(lease->home == loop_self());
    struct registry *registry = lease->registry;
    registry_lock(registry);
    container_release(lease->container, lease->keep_ms);
    container_unref(lease->container);
    registry_unlock(registry);
    lease_free(lease);
}
