/* One container from the registry's side: its making as a record, its turns, its leases, its way out. All of it but
 * container_touch() is under the lock. */
#include "session/internal.h"

#include "base/check.h"
#include "base/log.h"
#include "http/admission.h"

#include <stdio.h>
#include <stdlib.h>

const char *const close_reason_names[CLOSE_REASON_COUNT] = {
    [CLOSE_RELEASED] = "released", [CLOSE_UNWANTED] = "unwanted", [CLOSE_EVICTED] = "evicted",
    [CLOSE_EXPIRED] = "expired",   [CLOSE_GONE] = "gone",         [CLOSE_HUNG] = "hung",
    [CLOSE_FAILED] = "failed",     [CLOSE_ENDED] = "ended",       [CLOSE_SHUTDOWN] = "shutdown",
};

static int64_t life_of(const struct registry *registry, const struct sandbox *sandbox)
{
    int64_t idle_ms = registry->options.idle_timeout_ms;
    idle_ms = sandbox->keep_ms > idle_ms ? sandbox->keep_ms : idle_ms;
    return idle_ms + sandbox->run_timeout_ms + registry->options.life_slack_ms;
}

void container_id_make(char ret[CONTAINER_ID_BYTES])
{
    char random[RANDOM_ID_BYTES];
    random_id(random);
    (void)snprintf(ret, CONTAINER_ID_BYTES, CONTAINER_ID_PREFIX "%s", random); /* fits */
}

struct container *container_make(struct registry *registry, const struct sandbox *sandbox,
                                 const struct table_ref *ref, bool is_session)
{
    struct container *container = check_alloc(calloc(1, sizeof *container));
    container->magic = CONTAINER_MAGIC;
    container->refs = 1;
    container->registry = registry;
    container->ref = *ref;
    container->sandbox = sandbox;
    container->is_session = is_session;
    container->life_ms = life_of(registry, sandbox);
    int64_t half_idle_ms = registry->options.idle_timeout_ms / 2;
    container->life_needed_ms =
        container->life_ms - (half_idle_ms < TOUCH_SLACK_MS ? half_idle_ms : TOUCH_SLACK_MS);
    container->created_unix_s = clock_unix_s();
    list_init(&container->waiters);
    list_init(&container->turns);
    list_append(&registry->containers, &container->in_registry);
    return container;
}

struct container *container_new(struct registry *registry, const struct lease *lease,
                                const struct table_reply *created, struct loop *home)
{
    struct container *container =
        container_make(registry, lease->sandbox, &created->ref, lease->is_session);
    char random[RANDOM_ID_BYTES];
    (void)container_ref(container); /* the message's */
    container->carries_loss = created->loss;
    if (lease->new_id[0] != '\0' && lease->container == NULL) {
        memcpy(container->id, lease->new_id, sizeof container->id);
    } else { /* one that replaces it is another */
        container_id_make(container->id);
    }
    random_id(random);
    (void)snprintf(container->label, sizeof container->label, LABEL_PREFIX "%s", random); /* fits */
    container->identity = check_alloc(strdup(lease->identity));
    container->request_id =
        lease->request_id == NULL ? NULL : check_alloc(strdup(lease->request_id));
    container->session_id =
        lease->session_id == NULL ? NULL : check_alloc(strdup(lease->session_id));
    container->create.task.run = create_on_loop;
    container->create.loop = home;
    registry_post(registry, &container->create);
    return container;
}

size_t container_descriptors(const struct sandbox *sandbox)
{
    return sandbox->instance->plugin->sandbox->fds_per_container + 1;
}

static void descriptors_give(struct container *container)
{
    admission_give(container->descriptors);
    container->descriptors = 0;
}

struct container *container_ref(struct container *container)
{
    CHECK_MAGIC(container, CONTAINER_MAGIC);
    container->refs++;
    return container;
}

void container_unref(struct container *container)
{
    if (container == NULL) {
        return;
    }
    CHECK_MAGIC(container, CONTAINER_MAGIC);
    CHECK(container->refs > 0);
    if (--container->refs == 0) {
        CHECK(list_is_empty(&container->waiters) && list_is_empty(&container->turns));
        descriptors_give(container); /* one that was left behind */
        container->magic = 0;
        free(container->identity);
        free(container->request_id);
        free(container->session_id);
        free(container->handle);
        free(container);
    }
}

/* ---- use ---- */

void container_pass_turn(struct container *container)
{
    CHECK(container->turn_taken);
    struct list *first = list_first(&container->turns);
    container->turn_taken = first != NULL;
    if (first != NULL) {
        waiter_grant(INDEX_OWNER(first, struct waiter, link), container);
    }
}

void container_release(struct container *container, int64_t keep_ms)
{
    struct registry *registry = container->registry;
    CHECK(container->leases > 0);
    container->leases--;
    container->used_at = clock_ms();
    registry->changes++;
    if (container->state != CONTAINER_READY) {
        return; /* its leases ended with it */
    }
    bool is_last = container->leases == 0;
    int64_t stay_ms = container->park_ms > keep_ms ? container->park_ms : keep_ms;
    bool is_kept = container->is_session || (stay_ms > 0 && !container->turn_taken) || !is_last;
    if (is_last && registry->is_stopping && !(is_kept && container_can_be_kept(container))) {
        container_close(container, CLOSE_SHUTDOWN, container_end_is_loss(container));
    } else if (!is_kept) {
        container_close(container, CLOSE_RELEASED, false);
    } else {
        int64_t expires = container->is_session ? registry_expiry(registry) : deadline_in(stay_ms);
        CHECK(registry->table->ops->release(registry->table, &container->ref, expires));
        reaper_need(registry, registry->table->ops->next_expiry(registry->table));
    }
    room_retry(registry, container->identity);
    if (registry->is_stopping) {
        reaper_need(registry, 0); /* registry_shutdown() waits for the last lease */
    }
}

/* ---- the way out ---- */

static void turns_fail(struct container *container)
{
    struct sg_error err = {0};
    (void)error_set(&err, SG_E_GONE, "the container ended before its turn came"); /* the code */
    for (struct list *first; (first = list_first(&container->turns)) != NULL;) {
        waiter_fail(INDEX_OWNER(first, struct waiter, link), &err);
    }
}

void container_discard(struct container *container, enum close_reason reason)
{
    struct registry *registry = container->registry;
    CHECK(container->state <= CONTAINER_READY);
    CHECK(container->handle != NULL);
    registry->changes++;
    container->state = CONTAINER_CLOSING;
    container->reason = reason;
    container->closing_since = clock_ms();
    registry->evicted += reason == CLOSE_EVICTED;
    registry->expired += reason == CLOSE_EXPIRED;
    turns_fail(container);
    heap_put(&registry->reaper.deletions, &container->deletion, container->closing_since);
    reaper_need(registry, 0);
}

void container_close(struct container *container, enum close_reason reason, bool loss)
{
    struct table *table = container->registry->table;
    if (container->state == CONTAINER_CREATING) {
        container->is_unwanted = true;
        container->reason = reason;
    }
    if (container->state == CONTAINER_READY) {
        container->is_loss = loss;
        CHECK(table->ops->evict(table, &container->ref, loss, clock_ms()));
        container_discard(container, reason);
    }
}

void container_end(struct container *container, bool destroyed)
{
    struct registry *registry = container->registry;
    CHECK(container->state != CONTAINER_GONE && container->state != CONTAINER_READY);
    if (container->state == CONTAINER_LOST) {
        registry->lost--;
    } else {
        CHECK(registry->table->ops->remove(registry->table, &container->ref, clock_ms()));
    }
    container->state = CONTAINER_GONE;
    runs_leave(container);
    descriptors_give(container);
    registry->destroyed += destroyed;
    heap_remove(&registry->reaper.deletions, &container->deletion);
    list_remove(&container->in_registry);
    room_retry(registry, container->identity);
    if (registry->is_stopping) {
        reaper_need(registry, 0);
    }
    container_unref(container); /* the list's */
}

void container_run_ended(struct container *container, int code, int64_t call_deadline)
{
    bool is_gone = code == SG_E_GONE || code == SG_E_GONE_BEFORE;
    container->uses++;
    runs_leave(container);
    if (is_gone) {
        container_close(container, CLOSE_GONE, container->is_used || code == SG_E_GONE);
    } else if (code == SG_E_TIMEOUT && clock_ms() >= call_deadline) {
        /* The call ran out, not the run: nobody knows what still runs in there. */
        container_close(container, CLOSE_HUNG, true);
    } else {
        container->is_used = true;
    }
    if (container->state == CONTAINER_READY) {
        struct registry *registry = container->registry;
        (void)registry->table->ops->renew(registry->table, &container->ref,
                                          registry_expiry(registry)); /* it is ready */
        container_pass_turn(container);
    }
}

/* ---- the provider's life of it ---- */

static void touch_run(void *arg)
{
    struct container *container = arg;
    struct registry *registry = container->registry;
    struct provider_arguments *arguments;
    struct sg_error err = {0};
    struct sg_call *call = provider_call(container, "touch", NULL,
                                         deadline_in(registry->options.destroy_ms), &arguments);
    arguments->life_ms = container->touch_life_ms;
    errand_patience(call);
    int code = call_run(call, provider_touch, arguments, NULL, &err);
    if (code != 0 && code != SG_E_GONE && code != SG_E_GONE_BEFORE) { /* its run will say so */
        struct log_line line;
        container_log(&line, SG_WARN, "container_touch_failed", container);
        log_text(&line, "error", err.message);
        log_end(&line);
    }
    registry_lock(registry);
    container->is_touching = false;
    if (code == 0) { /* else it is tried again at the next use */
        container->life_until = container->touch_since + container->touch_life_ms;
    }
    container_unref(container);
    registry_unlock(registry);
}

/* Marks a touch as under way, where one is needed. */
static bool touch_begin(struct container *container, int64_t need_ms)
{
    int64_t now = clock_ms();
    if (container->state != CONTAINER_READY || container->is_touching ||
        container->life_until - now >= need_ms) {
        return false;
    }
    bool is_longer = need_ms > container->life_needed_ms; /* than an ordinary use wants it */
    container->is_touching = true;
    container->touch_since = now;
    container->touch_life_ms = is_longer ? need_ms + TOUCH_SLACK_MS : container->life_ms;
    if (container->life_latest < now + container->touch_life_ms) {
        container->life_latest = now + container->touch_life_ms;
    }
    (void)container_ref(container); /* the errand's */
    return true;
}

void container_touch(struct container *container, int64_t need_ms)
{
    struct registry *registry = container->registry;
    if (container->sandbox->instance->plugin->sandbox->touch == NULL) {
        return;
    }
    registry_lock(registry);
    bool is_due = touch_begin(container, need_ms);
    registry_unlock(registry);
    struct sg_error err = {0};
    if (is_due && errand_start(registry, "touch", touch_run, container, &err) != 0) {
        registry_lock(registry);
        container->is_touching = false; /* the next use tries again */
        container_unref(container);
        registry_unlock(registry);
    }
}
