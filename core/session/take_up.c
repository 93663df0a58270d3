/* Taking up what an earlier process has kept: see kept.h. */
#include "session/internal.h"

#include "base/check.h"
#include "base/identity.h"
#include "base/log.h"
#include "http/admission.h"
#include "session/kept.h"

#include <stdlib.h>

enum {
    UNLIMITED = 1 << 30
}; /* room for all, at first: what is over a cap goes by the usual rule */

struct taking { /* one call of registry_take_up() */
    struct registry *registry;
    const struct take_up *options;
    struct take_up_report *report;
    struct hash handles; /* of those taken */
    int64_t from_unix;   /* what is added to Unix milliseconds to get clock_ms() */
};

struct taken_handle {
    struct hash_node node;
    struct str handle;
    const struct sandbox *sandbox;
};

static const struct sandbox *sandbox_find(const struct take_up *options, struct str name)
{
    for (size_t i = 0; i < options->sandboxes_count; i++) {
        if (str_is(name, options->sandboxes[i].name)) {
            return &options->sandboxes[i];
        }
    }
    return NULL;
}

/* ---- refusing ---- */

static void refusal_log(const struct kept_container *kept, const char *reason)
{
    struct log_line line;
    log_begin(&line, SG_WARN, "container_not_taken_up");
    log_str(&line, "sandbox", kept->sandbox);
    identity_log(&line, kept->identity);
    log_str(&line, "container", kept->id);
    log_str(&line, "label", kept->label);
    log_text(&line, "reason", reason);
    log_end(&line);
}

/* Its session is to be told, if it comes back to the sandbox. */
static void loss_leave(const struct taking *taking, const struct kept_container *kept,
                       const struct sandbox *sandbox)
{
    struct registry *registry = taking->registry;
    struct table_notice notice = {.identity = kept->identity, .since_ms = clock_ms()};
    if (kept->session_id.len == 0 || !(kept->is_used || kept->loss)) {
        return;
    }
    session_key(kept->identity, kept->session_id, sandbox, notice.key);
    registry_lock(registry);
    registry->table->ops->leave_notice(registry->table, &notice, clock_ms());
    registry->changes++;
    registry_unlock(registry);
}

static bool handle_is_taken(const struct taking *taking, const struct kept_container *kept,
                            const struct sandbox *sandbox)
{
    uint64_t hash = hash_bytes(kept->handle.data, kept->handle.len);
    for (struct hash_node *node = hash_first(&taking->handles, hash); node != NULL;
         node = hash_next(node)) {
        const struct taken_handle *taken = INDEX_OWNER(node, struct taken_handle, node);
        if (str_eq(taken->handle, kept->handle) && taken->sandbox->instance == sandbox->instance) {
            return true;
        }
    }
    return false;
}

/* Why it cannot be taken, or NULL; counted. */
static const char *refusal_of(struct taking *taking, const struct kept_container *kept,
                              const struct sandbox *sandbox)
{
    struct take_up_report *report = taking->report;
    if (sandbox == NULL) {
        report->without_sandbox++;
        return "there is no sandbox of that name any more; its provider ends it";
    }
    if (!sandbox->is_durable || memcmp(sandbox->account, kept->account, SHA256_BYTES) != 0) {
        report->of_other_account++;
        return "the sandbox's plugin or account, or auth.mode, is another one now; its provider "
               "ends it";
    }
    if (kept->life_latest_unix_ms <= clock_unix_ms()) {
        report->ended++;
        return "its provider has ended it meanwhile";
    }
    if (handle_is_taken(taking, kept, sandbox)) {
        report->doubled++;
        return "the state has its handle twice";
    }
    return NULL;
}

/* ---- taking ---- */

static int64_t clock_of(const struct taking *taking, int64_t unix_ms)
{
    return unix_ms + taking->from_unix;
}

/* As if it had been idle all the time; a clock that was set back gives nothing more than a use now would. */
static int64_t expiry_of(const struct taking *taking, const struct kept_container *kept)
{
    int64_t idle_ms = taking->registry->options.idle_timeout_ms;
    if (kept->session_id.len > 0) {
        return deadline_min(clock_of(taking, kept->used_unix_ms), clock_ms()) + idle_ms;
    }
    return deadline_min(clock_of(taking, kept->expires_unix_ms), deadline_in(LIMIT_KEEP_MS));
}

static char *text_of(struct str text)
{
    char *copy = check_alloc(calloc(1, text.len + 1));
    memcpy(copy, text.data, text.len);
    return copy;
}

static void container_fill(const struct taking *taking, struct container *container,
                           const struct kept_container *kept)
{
    memcpy(container->id, kept->id.data, kept->id.len);          /* kept_read() has checked … */
    memcpy(container->label, kept->label.data, kept->label.len); /* … the lengths */
    container->identity = text_of(kept->identity);
    container->session_id = kept->session_id.len == 0 ? NULL : text_of(kept->session_id);
    container->handle = text_of(kept->handle);
    container->created_unix_s = kept->created_unix_ms / 1000;
    container->used_at = deadline_min(clock_of(taking, kept->used_unix_ms), clock_ms());
    container->life_until = clock_of(taking, kept->life_unix_ms);
    container->life_latest = clock_of(taking, kept->life_latest_unix_ms);
    container->park_ms = kept->park_ms;
    container->is_used = kept->is_used;
    container->carries_loss = kept->loss;
}

/* Under the lock: a record of its key and id, READY and idle; false where there is one already. */
static bool record_make(struct taking *taking, const struct kept_container *kept,
                        const struct sandbox *sandbox, struct table_ref *ret)
{
    struct table *table = taking->registry->table;
    struct table_ask ask = {.identity = kept->identity,
                            .is_session = kept->session_id.len > 0,
                            .may_create = true,
                            .sessions = UNLIMITED,
                            .containers = UNLIMITED,
                            .total = UNLIMITED};
    struct table_reply reply;
    if (ask.is_session) {
        session_key(kept->identity, kept->session_id, sandbox, ask.key);
    } else {
        random_bytes(ask.key, sizeof ask.key);
    }
    if (kept->loss && ask.is_session) { /* the record takes it from there */
        struct table_notice notice = {.identity = kept->identity, .since_ms = clock_ms()};
        memcpy(notice.key, ask.key, sizeof notice.key);
        table->ops->leave_notice(table, &notice, clock_ms());
    }
    enum table_answer answer = table->ops->acquire(table, &ask, &reply);
    if (answer == TABLE_LEASED) {
        CHECK(table->ops->release(table, &reply.ref, expiry_of(taking, kept)));
    }
    *ret = reply.ref;
    return answer == TABLE_CREATE;
}

/* False where the session has a container already. */
static bool container_take(struct taking *taking, const struct kept_container *kept,
                           const struct sandbox *sandbox)
{
    struct registry *registry = taking->registry;
    struct table *table = registry->table;
    struct table_ref ref;
    registry_lock(registry);
    bool is_new = record_make(taking, kept, sandbox, &ref);
    if (is_new) {
        struct container *container =
            container_make(registry, sandbox, &ref, kept->session_id.len > 0);
        container_fill(taking, container, kept);
        CHECK(table->ops->attach(table, &ref, container));
        CHECK(table->ops->publish(table, &ref, container->id, 0, expiry_of(taking, kept)));
        if (kept->is_used) { /* its end would lose something */
            CHECK(table->ops->renew(table, &ref, expiry_of(taking, kept)));
        }
        container->state = CONTAINER_READY;
        registry->changes++;
        if (admission_take(container_descriptors(sandbox))) {
            container->descriptors = container_descriptors(sandbox);
        } else {
            taking->report->without_room++;
            container_close(container, CLOSE_EVICTED, container->is_used);
        }
        reaper_need(registry, table->ops->next_expiry(table));
    }
    registry_unlock(registry);
    return is_new;
}

static void handle_note(struct taking *taking, const struct kept_container *kept,
                        const struct sandbox *sandbox)
{
    struct taken_handle *taken = check_alloc(calloc(1, sizeof *taken));
    taken->handle = kept->handle;
    taken->sandbox = sandbox;
    hash_put(&taking->handles, &taken->node, hash_bytes(kept->handle.data, kept->handle.len));
}

static void kept_take(struct taking *taking, const struct kept_container *kept)
{
    const struct sandbox *sandbox = sandbox_find(taking->options, kept->sandbox);
    const char *refusal = refusal_of(taking, kept, sandbox);
    if (refusal == NULL && !container_take(taking, kept, sandbox)) {
        refusal = "the state has its session twice";
        taking->report->doubled++;
    } else if (refusal == NULL) {
        handle_note(taking, kept, sandbox);
        taking->report->taken++;
    } else if (sandbox != NULL) {
        loss_leave(taking, kept, sandbox);
    }
    if (refusal != NULL) {
        refusal_log(kept, refusal);
    }
}

/* ---- caps that are lower than they were ---- */

/* Under the lock. Evicts one that is over a cap; `closing` counts those on their way out by what stood against them. */
static bool evict_one(struct registry *registry, struct str identity,
                      const struct take_up_caps *caps)
{
    struct table_ask ask = {.identity = identity, .is_session = true}; /* may not create */
    struct table_reply reply;
    size_t closing[TABLE_LIMIT_COUNT] = {0};
    random_bytes(ask.key, sizeof ask.key); /* nobody's */
    for (size_t tries = 0; tries < TABLE_LIMIT_COUNT; tries++) {
        ask.sessions = caps->per_identity + 1 + closing[TABLE_LIMIT_SESSIONS];
        ask.containers = caps->max_containers + 1 + closing[TABLE_LIMIT_CONTAINERS];
        ask.total = registry->options.max_containers_total + 1 + closing[TABLE_LIMIT_TOTAL];
        (void)registry->table->ops->acquire(registry->table, &ask, &reply); /* FULL: it may not */
        if (reply.limit == TABLE_LIMIT_NONE) {
            return false;
        }
        if (closing[reply.limit] == reply.closing && reply.victim.fence != 0) {
            container_close(reply.victim_local, CLOSE_EVICTED, false);
            return true;
        }
        closing[reply.limit] = reply.closing;
    }
    return false;
}

static void evict_over(struct taking *taking, struct str identity)
{
    const struct registry_options *options = &taking->registry->options;
    struct take_up_caps caps = {0};
    if (taking->options->caps != NULL) {
        caps = taking->options->caps(taking->options->ctx, identity);
    }
    caps.per_identity = caps.per_identity > 0 ? caps.per_identity : options->per_identity;
    caps.max_containers = caps.max_containers > 0 ? caps.max_containers : options->max_containers;
    registry_lock(taking->registry);
    while (evict_one(taking->registry, identity, &caps)) {
        taking->report->evicted++;
    }
    registry_unlock(taking->registry);
}

/* ---- all ---- */

static void notices_take(struct taking *taking, const struct kept *kept)
{
    struct registry *registry = taking->registry;
    for (size_t i = 0; i < kept->notices_count; i++) {
        const struct kept_notice *one = &kept->notices[i];
        struct table_notice notice = {
            .identity = one->identity,
            .since_ms = deadline_min(clock_of(taking, one->since_unix_ms), clock_ms())};
        memcpy(notice.key, one->key, sizeof notice.key);
        registry_lock(registry);
        registry->table->ops->leave_notice(registry->table, &notice, clock_ms());
        registry_unlock(registry);
        taking->report->notices++;
    }
}

/* The least recently used first, as they stand in the table's lists. */
static int used_before(const void *a, const void *b)
{
    const struct kept_container *const *one = a, *const *other = b;
    return ((*one)->used_unix_ms > (*other)->used_unix_ms) -
           ((*one)->used_unix_ms < (*other)->used_unix_ms);
}

static void handles_clear(struct taking *taking)
{
    for (size_t i = 0; i < taking->handles.buckets_count; i++) {
        for (struct hash_node *node = taking->handles.buckets[i]; node != NULL;) {
            struct taken_handle *taken = INDEX_OWNER(node, struct taken_handle, node);
            node = node->next;
            free(taken);
        }
    }
    hash_clear(&taking->handles);
}

void registry_take_up(struct registry *registry, const struct take_up *options,
                      const struct kept *kept, struct take_up_report *ret)
{
    *ret = (struct take_up_report){0};
    struct taking taking = {.registry = registry,
                            .options = options,
                            .report = ret,
                            .from_unix = clock_ms() - clock_unix_ms()};
    size_t count = kept->containers_count;
    const struct kept_container **sorted = check_alloc(calloc(count + 1, sizeof *sorted));
    for (size_t i = 0; i < count; i++) {
        sorted[i] = &kept->containers[i];
    }
    qsort(sorted, count, sizeof *sorted, used_before);
    notices_take(&taking, kept);
    for (size_t i = 0; i < count; i++) {
        kept_take(&taking, sorted[i]);
    }
    for (size_t i = 0; i < count; i++) { /* once all are there: the least recently used goes */
        evict_over(&taking, sorted[i]->identity);
    }
    handles_clear(&taking);
    free(sorted);
}
