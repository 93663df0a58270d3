/* Whose task is next: each identity has a queue of its own and a share of the threads, and those who may go on take
 * turns, so that no identity's flood, nor its hung calls, holds up another's. All of it is under the pool's lock. */
#include "base/check.h"
#include "loop/worker_internal.h"

#include <stdlib.h>

static struct worker_tenant *tenant_get(struct lane *lane, struct str name)
{
    struct worker_tenant *tenant;
    size_t bucket = str_hash(name) % TENANT_BUCKETS;
    LIST_FOREACH(tenant, &lane->tenants[bucket], in_bucket)
    {
        if (str_eq(name, (struct str){tenant->name, tenant->name_len})) {
            return tenant;
        }
    }
    tenant = check_alloc(calloc(1, sizeof *tenant + name.len));
    tenant->end = &tenant->first;
    tenant->name_len = name.len;
    if (name.len > 0) {
        memcpy(tenant->name, name.data, name.len);
    }
    LIST_INSERT_HEAD(&lane->tenants[bucket], tenant, in_bucket);
    return tenant;
}

static bool has_share(const struct worker_tenant *tenant)
{
    return tenant->name_len > 0;
}

/* Enters it among those whose next task may begin, takes it out of them, or ends it, as its counts say. */
static void tenant_settle(struct lane *lane, struct worker_tenant *tenant)
{
    bool may_run = !has_share(tenant) || tenant->running < lane->pool->share;
    bool is_ready = tenant->queued > 0 && may_run;
    if (is_ready && !tenant->is_ready) {
        TAILQ_INSERT_TAIL(&lane->ready, tenant, in_ready);
    } else if (!is_ready && tenant->is_ready) {
        TAILQ_REMOVE(&lane->ready, tenant, in_ready);
    }
    tenant->is_ready = is_ready;
    if (tenant->queued == 0 && tenant->running == 0) {
        LIST_REMOVE(tenant, in_bucket);
        free(tenant);
    }
}

/* Idle threads are about to take some of what is queued. */
static int check_room(const struct lane *lane, const struct worker_tenant *tenant,
                      struct sg_error *err)
{
    const struct worker_pool *pool = lane->pool;
    if (lane->queued >= lane->idle + pool->queue_max) {
        return error_set(err, SG_E_LIMIT,
                         "all %zu worker threads are busy and %zu tasks wait for one",
                         lane->workers_count, pool->queue_max);
    }
    size_t free_share = tenant->running < pool->share ? pool->share - tenant->running : 0;
    size_t queue_share = pool->queue_max * pool->share / pool->threads_max;
    if (has_share(tenant) && tenant->queued >= free_share + queue_share) {
        return error_set(err, SG_E_LIMIT,
                         "%zu worker threads are busy for this identity, its share is %zu, and %zu "
                         "tasks of it wait",
                         tenant->running, pool->share, queue_share);
    }
    return 0;
}

int lane_put(struct lane *lane, struct worker_task *task, struct sg_error *err)
{
    struct worker_tenant *tenant = tenant_get(lane, task->identity);
    int code = check_room(lane, tenant, err);
    if (code == 0) {
        task->next = NULL;
        task->tenant = tenant;
        *tenant->end = task;
        tenant->end = &task->next;
        tenant->queued++;
        lane->queued++;
    }
    tenant_settle(lane, tenant);
    return code;
}

static void unlink_task(struct lane *lane, struct worker_tenant *tenant, struct worker_task **at)
{
    struct worker_task *task = *at;
    *at = task->next;
    if (task->next == NULL) {
        tenant->end = at;
    }
    tenant->queued--;
    lane->queued--;
}

struct worker_task *lane_take(struct lane *lane)
{
    struct worker_tenant *tenant = TAILQ_FIRST(&lane->ready);
    if (tenant == NULL || lane->running >= lane->pool->threads_max) {
        return NULL;
    }
    struct worker_task *task = tenant->first;
    CHECK(task != NULL);
    unlink_task(lane, tenant, &tenant->first);
    tenant->running++;
    lane->running++;
    TAILQ_REMOVE(&lane->ready, tenant, in_ready); /* the others first */
    tenant->is_ready = false;
    tenant_settle(lane, tenant);
    return task;
}

bool lane_remove(struct lane *lane, struct worker_task *task)
{
    struct worker_tenant *tenant = task->tenant;
    if (tenant == NULL) {
        return false; /* it has begun, or was never there */
    }
    struct worker_task **at = &tenant->first;
    while (*at != NULL && *at != task) {
        at = &(*at)->next;
    }
    CHECK(*at == task);
    unlink_task(lane, tenant, at);
    task->tenant = NULL;
    tenant_settle(lane, tenant);
    return true;
}

void lane_task_ended(struct lane *lane, struct worker_tenant *tenant)
{
    CHECK(tenant->running > 0);
    tenant->running--;
    tenant_settle(lane, tenant);
}
