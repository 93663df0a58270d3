/* Worker threads and their pool; a fiber's way to them. Whose task is next stands in worker_share.c. */
#include "loop/worker.h"

#include "base/check.h"
#include "loop/internal.h"
#include "loop/worker_internal.h"

#include <signal.h>
#include <stdlib.h>

static void lane_init(struct lane *lane, struct worker_pool *pool)
{
    lane->pool = pool;
    lock_condition_init(&lane->changed);
    lane->workers = check_alloc(calloc(2 * pool->threads_max, sizeof *lane->workers));
    for (size_t i = 0; i < TENANT_BUCKETS; i++) {
        LIST_INIT(&lane->tenants[i]);
    }
    TAILQ_INIT(&lane->ready);
}

int worker_pool_new(size_t threads_max, size_t queue_max, struct worker_pool **ret,
                    struct sg_error *err)
{
    if (threads_max == 0) {
        return error_set(err, SG_E_INVALID, "a pool of 0 worker threads can do no work");
    }
    struct worker_pool *pool = check_alloc(calloc(1, sizeof *pool));
    pool->magic = POOL_MAGIC;
    pool->queue_max = queue_max;
    pool->threads_max = threads_max;
    pool->share = threads_max > 1 ? threads_max / 2 : 1;
    lock_init(&pool->lock);
    for (size_t i = 0; i < WORKER_LANE_COUNT; i++) {
        lane_init(&pool->lanes[i], pool);
    }
    *ret = pool;
    return 0;
}

void worker_pool_set_share(struct worker_pool *pool, size_t threads)
{
    CHECK_MAGIC(pool, POOL_MAGIC);
    CHECK(threads > 0 && threads <= pool->threads_max);
    pool->share = threads;
}

/* ---- a thread ---- */

/* The next task, or NULL when the pool closes and nothing is left. With the lock. */
static struct worker_task *task_wait(struct lane *lane)
{
    struct worker_task *task;
    while ((task = lane_take(lane)) == NULL && !(lane->pool->is_closing && lane->queued == 0)) {
        CHECK(lock_wait(&lane->pool->lock, &lane->changed, DEADLINE_NONE) == 0);
    }
    return task;
}

/* With the lock, which is released while the task runs. */
static void task_run(struct worker *self, struct worker_task *task)
{
    struct lane *lane = self->lane;
    struct worker_tenant *tenant = task->tenant;
    task->tenant = NULL; /* it has left the queue */
    self->task = task;
    lane->idle--;
    lock_release(&lane->pool->lock);
    task->run(task); /* its owner may free it in there */
    CHECK(locks_held() == 0);
    lock_take(&lane->pool->lock);
    self->task = NULL;
    lane->idle++;
    *(self->is_lost ? &lane->lost : &lane->running) -= 1;
    self->is_lost = false;
    lane_task_ended(lane, tenant);
    if (lane->pool->is_closing) { /* others may wait for the queue to be empty */
        CHECK(pthread_cond_broadcast(&lane->changed) == 0);
    }
}

static void *worker_main(void *arg)
{
    struct worker *self = arg;
    struct worker_pool *pool = self->lane->pool;
    CHECK_MAGIC(pool, POOL_MAGIC);
    (void)pthread_setname_np(pthread_self(), "worker"); /* for debuggers only */
    lock_take(&pool->lock);
    for (struct worker_task *task; (task = task_wait(self->lane)) != NULL;) {
        task_run(self, task);
    }
    lock_release(&pool->lock);
    return NULL;
}

/* With the lock. Signals are not for workers: a plugin's system calls are not to be interrupted. */
static int thread_start(struct lane *lane)
{
    sigset_t all, before;
    sigfillset(&all);
    struct worker *worker = &lane->workers[lane->workers_count];
    worker->lane = lane;
    CHECK(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    int error = pthread_create(&worker->thread, NULL, worker_main, worker);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    if (error == 0) {
        lane->workers_count++;
        lane->idle++;
    }
    return error;
}

/* With the lock: sees to a thread for so many tasks that wait. 0, or why there is none. */
static int thread_need(struct lane *lane, size_t waiting)
{
    size_t most = lane->pool->threads_max + lane->lost;
    bool is_needed = waiting > lane->idle && lane->workers_count < most &&
                     lane->workers_count < 2 * lane->pool->threads_max && !lane->pool->is_closing;
    return is_needed ? thread_start(lane) : 0;
}

/* ---- submitting, taking back, giving up ---- */

static struct lane *lane_of(struct worker_pool *pool, const struct worker_task *task)
{
    CHECK((unsigned)task->lane < WORKER_LANE_COUNT);
    return &pool->lanes[task->lane];
}

/* With the lock. */
static int submit(struct lane *lane, struct worker_task *task, struct sg_error *err)
{
    int error = thread_need(lane, lane->queued + 1);
    if (lane->workers_count == 0) {
        return error_set(err, SG_E_LIMIT, "cannot start a worker thread: %s", strerror(error));
    }
    int code = lane_put(lane, task, err);
    if (code == 0) {
        CHECK(pthread_cond_signal(&lane->changed) == 0);
    }
    return code;
}

int worker_submit(struct worker_pool *pool, struct worker_task *task, struct sg_error *err)
{
    CHECK_MAGIC(pool, POOL_MAGIC);
    lock_take(&pool->lock);
    int code = submit(lane_of(pool, task), task, err);
    lock_release(&pool->lock);
    return code;
}

bool worker_withdraw(struct worker_pool *pool, struct worker_task *task)
{
    CHECK_MAGIC(pool, POOL_MAGIC);
    lock_take(&pool->lock);
    bool was_queued = lane_remove(lane_of(pool, task), task);
    lock_release(&pool->lock);
    return was_queued;
}

void worker_give_up(struct worker_pool *pool, const struct worker_task *task)
{
    CHECK_MAGIC(pool, POOL_MAGIC);
    struct lane *lane = lane_of(pool, task);
    lock_take(&pool->lock);
    for (size_t i = 0; i < lane->workers_count && lane->lost < pool->threads_max; i++) {
        struct worker *worker = &lane->workers[i];
        if (worker->task == task && !worker->is_lost) {
            worker->is_lost = true;
            lane->running--;
            lane->lost++;
            (void)thread_need(
                lane, lane->queued); /* without one, what waits goes on when another is free */
            CHECK(pthread_cond_signal(&lane->changed) == 0);
            break;
        }
    }
    lock_release(&pool->lock);
}

size_t worker_pool_busy(struct worker_pool *pool)
{
    size_t busy = 0;
    CHECK_MAGIC(pool, POOL_MAGIC);
    lock_take(&pool->lock);
    for (size_t i = 0; i < WORKER_LANE_COUNT; i++) {
        busy += pool->lanes[i].running + pool->lanes[i].lost + pool->lanes[i].queued;
    }
    lock_release(&pool->lock);
    return busy;
}

static void lane_clear(struct lane *lane)
{
    for (size_t i = 0; i < lane->workers_count; i++) {
        CHECK(pthread_join(lane->workers[i].thread, NULL) == 0);
    }
    CHECK(lane->queued == 0 && lane->running == 0 && lane->lost == 0);
    CHECK(pthread_cond_destroy(&lane->changed) == 0);
    free(lane->workers);
}

void worker_pool_free(struct worker_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    CHECK_MAGIC(pool, POOL_MAGIC);
    lock_take(&pool->lock);
    pool->is_closing = true; /* no thread is added from now on */
    for (size_t i = 0; i < WORKER_LANE_COUNT; i++) {
        CHECK(pthread_cond_broadcast(&pool->lanes[i].changed) == 0);
    }
    lock_release(&pool->lock);
    for (size_t i = 0; i < WORKER_LANE_COUNT; i++) {
        lane_clear(&pool->lanes[i]);
    }
    lock_destroy(&pool->lock);
    pool->magic = 0;
    free(pool);
}

/* ---- a fiber's function on a worker ---- */

static void visit_back(struct loop_task *task)
{
    struct worker_visit *visit =
        (struct worker_visit *)((char *)task - offsetof(struct worker_visit, back));
    visit->is_done = true;
    fiber_wake(visit->fiber);
}

static void visit_run(struct worker_task *task)
{
    struct worker_visit *visit = (struct worker_visit *)task;
    visit->result = visit->fn(visit->arg);
    loop_post(visit->home, &visit->back); /* the fiber may go on at once and end it */
}

int fiber_visit_worker(struct worker_visit *visit, int (*fn)(void *), void *arg,
                       struct sg_error *err)
{
    struct fiber *fiber = fiber_self();
    CHECK(fiber != NULL);
    struct worker_pool *pool = loop_pool(fiber_home(fiber));
    CHECK(pool != NULL);
    visit->task.run = visit_run;
    visit->back.run = visit_back;
    visit->fiber = fiber;
    visit->home = fiber_home(fiber);
    visit->fn = fn;
    visit->arg = arg;
    visit->is_done = false;
    int code = worker_submit(pool, &visit->task, err);
    if (code != 0) {
        return code;
    }
    fiber_shield();
    CHECK(fiber_park_for(&visit->is_done, DEADLINE_NONE) == 0);
    fiber_unshield();
    return visit->result;
}

int fiber_blocking(int (*fn)(void *), void *arg, struct sg_error *err)
{
    struct worker_visit visit = {.task.lane = WORKER_CORE};
    return fiber_visit_worker(&visit, fn, arg, err);
}
