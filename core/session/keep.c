/* What could be handed to the next process, looked at while this one runs and at its end: see kept.h. */
#include "session/internal.h"

#include "base/check.h"
#include "base/log.h"
#include "session/kept.h"

#include <stdlib.h>

enum { LOOKED_AT_ONCE = 64 }; /* containers that are copied while the lock is held */

bool container_can_be_kept(const struct container *container)
{
    return container->state == CONTAINER_READY && container->sandbox->is_durable &&
           container->registry->options.keep != NULL;
}

bool container_end_is_loss(const struct container *container)
{
    return container->registry->options.keep != NULL && container->is_session && container->is_used;
}

static struct str copy(struct arena *arena, const char *text)
{
    return text == NULL ? (struct str){0} : str_of(arena_copy(arena, str_of(text)));
}

/* Under the lock. */
static void container_look(const struct container *container, int64_t to_unix, struct arena *arena,
                           struct kept_container *ret)
{
    const struct table *table = container->registry->table;
    struct table_view view;
    CHECK(table->ops->look(table, &container->ref, &view)); /* it is READY */
    bool is_busy = view.expires_ms == DEADLINE_NONE;
    *ret = (struct kept_container){
        .identity = copy(arena, container->identity),
        .session_id = copy(arena, container->session_id),
        .sandbox = str_of(container->sandbox->name),
        .handle = copy(arena, container->handle),
        .id = copy(arena, container->id),
        .label = copy(arena, container->label),
        .created_unix_ms = container->created_unix_s * 1000,
        .used_unix_ms = (is_busy ? clock_ms() : container->used_at) + to_unix,
        .expires_unix_ms = (is_busy ? clock_ms() + container->park_ms : view.expires_ms) + to_unix,
        .life_unix_ms = container->life_until + to_unix,
        .life_latest_unix_ms = container->life_latest + to_unix,
        .park_ms = container->park_ms,
        .is_used = container->is_used,
        .loss = view.loss,
    };
    memcpy(ret->account, container->sandbox->account, sizeof ret->account);
}

/* One that is in use and belongs to its request alone would be of no use to anybody. */
static bool is_worth_it(const struct container *container)
{
    return container_can_be_kept(container) &&
           (container->is_session || container->leases == 0 || container->park_ms > 0);
}

static void notice_look(void *context, const struct table_notice *notice)
{
    struct kept *kept = context;
    if ((kept->notices_count & (kept->notices_count - 1)) == 0) { /* full at each power of two */
        struct kept_notice *more = arena_get(
            kept->arena, (kept->notices_count == 0 ? 1 : 2 * kept->notices_count) * sizeof *more);
        if (kept->notices_count > 0) {
            memcpy(more, kept->notices, kept->notices_count * sizeof *more);
        }
        kept->notices = more;
    }
    struct kept_notice *one = &kept->notices[kept->notices_count++];
    one->identity = (struct str){arena_copy(kept->arena, notice->identity), notice->identity.len};
    memcpy(one->key, notice->key, sizeof one->key);
    one->since_unix_ms = notice->since_ms + clock_unix_ms() - clock_ms();
}

void registry_look(struct registry *registry, struct kept *ret)
{
    size_t count;
    struct container **all = registry_hold_all(registry, &count);
    int64_t to_unix = clock_unix_ms() - clock_ms();
    ret->containers = arena_get(ret->arena, (count + 1) * sizeof *ret->containers);
    for (size_t i = 0; i < count; i += LOOKED_AT_ONCE) {
        registry_lock(registry);
        for (size_t k = i; k < count && k < i + LOOKED_AT_ONCE; k++) {
            if (is_worth_it(all[k])) {
                container_look(all[k], to_unix, ret->arena,
                               &ret->containers[ret->containers_count++]);
            }
        }
        registry_unlock(registry);
    }
    registry_let_go(registry, all, count);
    registry_lock(registry);
    registry->table->ops->notices(registry->table, clock_ms(), notice_look, ret);
    registry_unlock(registry);
}

uint64_t registry_changes(struct registry *registry)
{
    registry_lock(registry);
    uint64_t changes = registry->changes;
    registry_unlock(registry);
    return changes;
}

/* ---- the end ---- */

static void container_hand_over(struct container *container)
{
    struct log_line line;
    container_log(&line, SG_INFO, "container_kept", container);
    log_int(&line, "life_left_ms", container->life_until - clock_ms());
    log_end(&line);
    registry_lock(container->registry);
    if (container->state == CONTAINER_READY) { /* else its time was over just now */
        container_close(container, CLOSE_SHUTDOWN, false);
        container_end(container, false);
    }
    registry_unlock(container->registry);
}

static void keep_log_failure(const struct sg_error *err)
{
    struct log_line line;
    log_begin(&line, SG_ERROR, "sessions_not_kept");
    log_text(&line, "error", err->message);
    log_end(&line);
}

/* Nobody has a lease any more, and nobody gets one. */
void registry_keep(struct registry *registry)
{
    const struct registry_options *options = &registry->options;
    struct kept kept = {.arena = arena_new(0)};
    struct sg_error err = {0};
    if (options->keep == NULL) {
        arena_free(kept.arena);
        return;
    }
    registry_look(registry, &kept);
    size_t count;
    struct container **all = registry_hold_all(registry, &count);
    bool is_kept = options->keep(options->keep_ctx, &kept, &err) == 0;
    if (!is_kept) {
        keep_log_failure(&err);
    }
    for (size_t i = 0; i < count; i++) {
        if (is_kept && container_can_be_kept(all[i])) {
            container_hand_over(all[i]);
        }
    }
    registry_let_go(registry, all, count);
    arena_free(kept.arena);
}
