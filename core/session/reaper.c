/* The reaper: one fiber on loop 0 that ends what has been idle for too long and works off the deletion queue. It sleeps
 * until the next of these times; whoever makes an earlier one posts to it. Each attempt to delete is an errand of its
 * own, so that a provider that does not answer holds up its own containers only. */
#include "session/internal.h"

#include "base/check.h"
#include "base/log.h"

/* ---- one attempt ---- */

static void deletion_log(const struct container *container, enum sg_level level, const char *event,
                         const struct sg_error *err)
{
    struct log_line line;
    container_log(&line, level, event, container);
    log_text(&line, "reason", close_reason_names[container->reason]);
    log_int(&line, "ms", clock_ms() - container->closing_since);
    log_int(&line, "attempts", container->attempts);
    if (err->code != 0) {
        log_text(&line, "code", error_code_name(err->code));
        log_text(&line, "error", err->message);
    }
    log_end(&line);
}

/* Before the first attempt: why it goes, where that is worth a line of its own. */
static void departure_log(const struct container *container)
{
    static const char *const events[CLOSE_REASON_COUNT] = {
        [CLOSE_EVICTED] = "container_evicted",
        [CLOSE_EXPIRED] = "container_expired",
        [CLOSE_GONE] = "container_gone",
        [CLOSE_HUNG] = "container_hung",
    };
    bool is_bad = container->reason == CLOSE_GONE || container->reason == CLOSE_HUNG;
    if (events[container->reason] != NULL) {
        struct log_line line;
        container_log(&line, is_bad ? SG_WARN : SG_INFO, events[container->reason], container);
        log_end(&line);
    }
}

/* Doubles from a hundredth of the time after which it counts as lost to a quarter of it. */
static int64_t back_off_next(const struct registry *registry, int64_t back_off_ms)
{
    int64_t most = registry->options.lost_after_ms / 4 + 1;
    int64_t next = back_off_ms == 0 ? registry->options.lost_after_ms / 100 + 1 : 2 * back_off_ms;
    return next < most ? next : most;
}

/* What a failure comes to: the event to be logged. */
static const char *failure_settle(struct container *container, int64_t now)
{
    struct registry *registry = container->registry;
    registry->destroy_failures++;
    if (now >= container->life_latest) {
        container_end(container, false);
        return "container_left";
    }
    bool is_lost = container->state == CONTAINER_CLOSING &&
                   now - container->closing_since >= registry->options.lost_after_ms &&
                   registry->lost < registry->options.lost_max;
    if (is_lost) {
        CHECK(registry->table->ops->remove(registry->table, &container->ref, now));
        container->state = CONTAINER_LOST;
        registry->lost++;
        runs_leave(container);
        room_retry(registry, container->identity);
    }
    container->back_off_ms = back_off_next(registry, container->back_off_ms);
    heap_put(&registry->reaper.deletions, &container->deletion, now + container->back_off_ms);
    return is_lost ? "container_lost" : "container_delete_failed";
}

static void attempt_end(struct container *container, bool is_destroyed, const struct sg_error *err)
{
    struct registry *registry = container->registry;
    const char *event = "container_deleted";
    registry_lock(registry);
    container->attempts++;
    if (is_destroyed) {
        container_end(container, true);
    } else {
        event = failure_settle(container, clock_ms());
    }
    registry->reaper.deleting--;
    reaper_need(registry, 0);
    registry_unlock(registry);
    deletion_log(container, is_destroyed ? SG_INFO : SG_WARN, event, err);
    registry_lock(registry);
    container_unref(container);
    registry_unlock(registry);
}

void delete_attempt(void *arg)
{
    struct container *container = arg;
    struct sg_error err = {0};
    struct provider_arguments *arguments;
    if (container->attempts == 0) { /* only attempts write it, and they follow each other */
        departure_log(container);
    }
    struct sg_call *call =
        provider_call(container, "destroy", NULL,
                      deadline_in(container->registry->options.destroy_ms), &arguments);
    errand_patience(call);
    int code = call_run(call, provider_destroy, arguments, NULL, &err);
    bool is_destroyed = code == 0 || code == SG_E_GONE || code == SG_E_GONE_BEFORE ||
                        code == SG_E_NOT_FOUND; /* not there any more is what is wanted */
    if (is_destroyed) {
        err = (struct sg_error){0};
    }
    attempt_end(container, is_destroyed, &err);
}

/* ---- the fiber ---- */

/* The next container that is due, with a reference and its place among those being deleted. */
static struct container *deletion_take(struct registry *registry, int64_t now)
{
    struct reaper *reaper = &registry->reaper;
    struct heap_node *top = heap_top(&reaper->deletions);
    if (top == NULL || top->at > now || reaper->deleting >= DELETIONS_MAX ||
        registry->is_abandoned) {
        return NULL;
    }
    heap_remove(&reaper->deletions, top);
    reaper->deleting++;
    return container_ref(INDEX_OWNER(top, struct container, deletion));
}

static void idle_end(struct registry *registry, int64_t now)
{
    struct table_ref ref;
    void *local;
    while (registry->table->ops->expired(registry->table, now, &ref, &local)) {
        struct container *container = local;
        CHECK(container->ref.fence == ref.fence && container->state == CONTAINER_READY);
        CHECK(container->leases == 0);
        container_discard(container, CLOSE_EXPIRED);
    }
}

static int64_t next_time(const struct registry *registry)
{
    const struct reaper *reaper = &registry->reaper;
    int64_t next = registry->table->ops->next_expiry(registry->table);
    struct heap_node *top = heap_top(&reaper->deletions);
    if (top != NULL && reaper->deleting < DELETIONS_MAX) { /* else an attempt's end wakes it */
        next = deadline_min(next, top->at);
    }
    return next;
}

/* Starts what is due; false when the registry has ended. */
static bool reaper_round(struct registry *registry, int64_t *ret_next)
{
    for (;;) {
        int64_t now = clock_ms();
        registry_lock(registry);
        idle_end(registry, now);
        struct container *container = deletion_take(registry, now);
        if (container == NULL) {
            bool is_over = registry->is_abandoned ||
                           (registry->is_stopping && list_is_empty(&registry->containers));
            *ret_next = registry->reaper.until = next_time(registry);
            registry_unlock(registry);
            return !is_over;
        }
        registry_unlock(registry);
        struct sg_error err = {0};
        if (errand_start(registry, "delete", delete_attempt, container, &err) != 0) {
            attempt_end(container, false, &err);
        }
    }
}

static void reaper_main(void *arg)
{
    struct registry *registry = arg;
    int64_t next;
    while (reaper_round(registry, &next)) {
        (void)fiber_park(next); /* whatever ends it, the round looks at everything */
    }
    registry->reaper.fiber = NULL;
    if (registry->reaper.shutdown_fiber != NULL) {
        fiber_wake(registry->reaper.shutdown_fiber);
    }
}

static void reaper_start(struct registry *registry)
{
    struct sg_error err = {0};
    if (fiber_start(loop_self(), "reaper", reaper_main, registry, &registry->reaper.fiber, &err) !=
        0) {
        struct log_line line;
        log_begin(&line, SG_ERROR, "reaper_start_failed"); /* the next need tries again */
        log_text(&line, "error", err.message);
        log_end(&line);
    }
}

static void reaper_on_loop(struct loop_task *task)
{
    struct registry *registry = INDEX_OWNER(task, struct registry, reaper.message.task);
    CHECK_MAGIC(registry, REGISTRY_MAGIC);
    struct reaper *reaper = &registry->reaper;
    registry_lock(registry);
    reaper->is_posted = false;
    registry->in_flight--; /* not registry_arrived(), which would send this very message again */
    bool is_needed = !registry->is_abandoned;
    registry_unlock(registry);
    if (reaper->fiber != NULL) {
        fiber_wake(reaper->fiber);
    } else if (is_needed) {
        reaper_start(registry);
    }
    if (reaper->shutdown_fiber != NULL) {
        fiber_wake(reaper->shutdown_fiber);
    }
}

void reaper_init(struct registry *registry)
{
    registry->reaper.message.task.run = reaper_on_loop;
    registry->reaper.message.loop = registry->options.loops[0];
    registry->reaper.until = DEADLINE_NONE;
}

void reaper_need(struct registry *registry, int64_t at)
{
    struct reaper *reaper = &registry->reaper;
    if (at < reaper->until && !reaper->is_posted) {
        reaper->is_posted = true;
        registry_post(registry, &reaper->message);
    }
}
