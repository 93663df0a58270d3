/* Worker threads and their queue; a fiber's way to them. */
#include "loop/worker.h"

#include "base/check.h"
#include "base/lock.h"
#include "loop/internal.h"

#include <signal.h>
#include <stdlib.h>

#define POOL_MAGIC 0x504F4F4Cu /* "POOL" */

struct worker_pool {
    uint32_t magic;
    struct lock lock; /* all below */
    pthread_cond_t changed;
    struct worker_task *first, **end;
    size_t queue_count, queue_max;
    pthread_t *threads;
    size_t threads_count, threads_max;
    size_t idle_count; /* threads that look for a task, those just started among them */
    bool is_closing;
};

int worker_pool_new(size_t threads_max, size_t queue_max, struct worker_pool **ret,
                    struct sg_error *err)
{
    if (threads_max == 0) {
        return error_set(err, SG_E_INVALID, "a pool of 0 worker threads can do no work");
    }
    struct worker_pool *pool = check_alloc(calloc(1, sizeof *pool));
    pool->magic = POOL_MAGIC;
    lock_init(&pool->lock);
    lock_condition_init(&pool->changed);
    pool->end = &pool->first;
    pool->queue_max = queue_max;
    pool->threads_max = threads_max;
    pool->threads = check_alloc(calloc(threads_max, sizeof *pool->threads));
    *ret = pool;
    return 0;
}

/* ---- a thread ---- */

/* The next task, or NULL when the pool closes and nothing is left. With the lock. */
static struct worker_task *task_wait(struct worker_pool *pool)
{
    while (pool->first == NULL && !pool->is_closing) {
        CHECK(lock_wait(&pool->lock, &pool->changed, DEADLINE_NONE) == 0);
    }
    struct worker_task *task = pool->first;
    if (task != NULL) {
        pool->first = task->next;
        pool->end = pool->first == NULL ? &pool->first : pool->end;
        pool->queue_count--;
    }
    return task;
}

static void *worker_main(void *arg)
{
    struct worker_pool *pool = arg;
    CHECK_MAGIC(pool, POOL_MAGIC);
    (void)pthread_setname_np(pthread_self(), "worker"); /* for debuggers only */
    lock_take(&pool->lock);
    for (struct worker_task *task; (task = task_wait(pool)) != NULL;) {
        pool->idle_count--;
        lock_release(&pool->lock);
        task->run(task);
        CHECK(locks_held() == 0);
        lock_take(&pool->lock);
        pool->idle_count++;
    }
    lock_release(&pool->lock);
    return NULL;
}

/* With the lock. Signals are not for workers: a plugin's system calls are not to be interrupted. */
static int thread_start(struct worker_pool *pool)
{
    sigset_t all, before;
    sigfillset(&all);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    int error = pthread_create(&pool->threads[pool->threads_count], NULL, worker_main, pool);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    if (error == 0) {
        pool->threads_count++;
        pool->idle_count++;
    }
    return error;
}

/* ---- submitting ---- */

/* With the lock: sees to a thread for one more task, and says whether it can be taken. */
static int make_room(struct worker_pool *pool, struct sg_error *err)
{
    int error = 0;
    if (pool->queue_count >= pool->idle_count && pool->threads_count < pool->threads_max &&
        !pool->is_closing) {
        error = thread_start(pool);
    }
    if (pool->threads_count == 0) {
        return error_set(err, SG_E_LIMIT, "cannot start a worker thread: %s", strerror(error));
    }
    if (pool->queue_count >= pool->idle_count + pool->queue_max) {
        return error_set(err, SG_E_LIMIT,
                         "all %zu worker threads are busy and %zu tasks wait for one",
                         pool->threads_count, pool->queue_max);
    }
    return 0;
}

int worker_submit(struct worker_pool *pool, struct worker_task *task, struct sg_error *err)
{
    CHECK_MAGIC(pool, POOL_MAGIC);
    task->next = NULL;
    lock_take(&pool->lock);
    int code = make_room(pool, err);
    if (code == 0) {
        *pool->end = task;
        pool->end = &task->next;
        pool->queue_count++;
        CHECK(pthread_cond_signal(&pool->changed) == 0);
    }
    lock_release(&pool->lock);
    return code;
}

size_t worker_pool_busy(struct worker_pool *pool)
{
    CHECK_MAGIC(pool, POOL_MAGIC);
    lock_take(&pool->lock);
    size_t busy = pool->threads_count - pool->idle_count + pool->queue_count;
    lock_release(&pool->lock);
    return busy;
}

void worker_pool_free(struct worker_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    CHECK_MAGIC(pool, POOL_MAGIC);
    lock_take(&pool->lock);
    pool->is_closing = true; /* no thread is added from now on */
    CHECK(pthread_cond_broadcast(&pool->changed) == 0);
    lock_release(&pool->lock);
    for (size_t i = 0; i < pool->threads_count; i++) {
        CHECK(pthread_join(pool->threads[i], NULL) == 0);
    }
    CHECK(pool->first == NULL);
    CHECK(pthread_cond_destroy(&pool->changed) == 0);
    lock_destroy(&pool->lock);
    pool->magic = 0;
    free(pool->threads);
    free(pool);
}

/* ---- a fiber's function on a worker ---- */

struct blocking { /* on the fiber's stack */
    struct worker_task task;
    struct loop_task back;
    struct fiber *fiber;
    struct loop *home;
    int (*fn)(void *);
    void *arg;
    int result;
    bool is_done;
};

static void blocking_back(struct loop_task *task)
{
    struct blocking *blocking = (struct blocking *)((char *)task - offsetof(struct blocking, back));
    blocking->is_done = true;
    fiber_wake(blocking->fiber);
}

static void blocking_run(struct worker_task *task)
{
    struct blocking *blocking = (struct blocking *)task;
    blocking->result = blocking->fn(blocking->arg);
    loop_post(blocking->home, &blocking->back); /* the fiber may go on at once and end it */
}

int fiber_blocking(int (*fn)(void *), void *arg, struct sg_error *err)
{
    struct fiber *fiber = fiber_self();
    CHECK(fiber != NULL);
    struct loop *home = fiber_home(fiber);
    CHECK(loop_pool(home) != NULL);
    struct blocking blocking = {.task.run = blocking_run,
                                .back.run = blocking_back,
                                .fiber = fiber,
                                .home = home,
                                .fn = fn,
                                .arg = arg};
    int code = worker_submit(loop_pool(home), &blocking.task, err);
    if (code != 0) {
        return code;
    }
    fiber_shield();
    CHECK(fiber_park_for(&blocking.is_done, DEADLINE_NONE) == 0);
    fiber_unshield();
    return blocking.result;
}
