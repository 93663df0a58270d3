/* core/loop: worker threads, fiber_blocking, the watchdog. Threads meet at gates (a lock and a condition), never by
 * sleeping. */
#include "base/limits.h"
#include "base/lock.h"
#include "base/log.h"
#include "loop/worker.h"
#include "loop_fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- a gate: threads wait until it is opened; the test waits until so many wait ---- */

static struct lock gate_lock = LOCK_INIT;
static pthread_cond_t gate_changed;
static size_t gate_waiting;
static bool gate_open;

static void gate_close(void)
{
    gate_waiting = 0;
    gate_open = false;
    lock_condition_init(&gate_changed);
}

static void gate_wait(void)
{
    lock_take(&gate_lock);
    gate_waiting++;
    pthread_cond_broadcast(&gate_changed);
    while (!gate_open) {
        lock_wait(&gate_lock, &gate_changed, DEADLINE_NONE);
    }
    lock_release(&gate_lock);
}

static void gate_await(size_t waiting)
{
    lock_take(&gate_lock);
    while (gate_waiting < waiting) {
        lock_wait(&gate_lock, &gate_changed, DEADLINE_NONE);
    }
    lock_release(&gate_lock);
}

static void gate_let_go(void)
{
    lock_take(&gate_lock);
    gate_open = true;
    pthread_cond_broadcast(&gate_changed);
    lock_release(&gate_lock);
}

/* ---- the pool ---- */

static atomic_int tasks_run_count;

static void run_through_gate(struct worker_task *task)
{
    (void)task;
    gate_wait();
    atomic_fetch_add(&tasks_run_count, 1);
}

static void a_full_queue_is_refused_and_what_was_taken_is_done(void)
{
    struct worker_pool *pool = NULL;
    struct sg_error err = {0};
    struct worker_task tasks[6] = {{0}};
    gate_close();
    atomic_store(&tasks_run_count, 0);
    CU_ASSERT_EQUAL_FATAL(worker_pool_new(2, 3, &pool, &err), 0);
    for (size_t i = 0; i < 6; i++) {
        tasks[i].run = run_through_gate;
        int code = worker_submit(pool, &tasks[i], &err);
        CU_ASSERT_EQUAL(code, i < 5 ? 0 : SG_E_LIMIT);
    }
    CU_ASSERT_STRING_EQUAL(err.message, "all 2 worker threads are busy and 3 tasks wait for one");
    gate_await(2); /* both threads are in a task, three tasks wait */
    CU_ASSERT_EQUAL(gate_waiting, 2);
    gate_let_go();
    worker_pool_free(pool);
    CU_ASSERT_EQUAL(atomic_load(&tasks_run_count), 5);
}

static void refused_tasks_are_taken_again_when_there_is_room(void)
{
    struct worker_pool *pool = NULL;
    struct sg_error err = {0};
    struct worker_task one = {.run = run_through_gate}, two = one;
    gate_close();
    atomic_store(&tasks_run_count, 0);
    CU_ASSERT_EQUAL_FATAL(worker_pool_new(1, 0, &pool, &err), 0);
    CU_ASSERT_EQUAL(worker_submit(pool, &one, &err), 0);
    CU_ASSERT_EQUAL(worker_submit(pool, &two, &err), SG_E_LIMIT);
    gate_let_go();
    while (worker_submit(pool, &two, &err) != 0) {
        sched_yield();
    }
    worker_pool_free(pool);
    CU_ASSERT_EQUAL(atomic_load(&tasks_run_count), 2);
}

static void a_pool_without_threads_is_refused(void)
{
    struct worker_pool *pool = NULL;
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(worker_pool_new(0, 1, &pool, &err), SG_E_INVALID);
    CU_ASSERT_STRING_EQUAL(err.message, "a pool of 0 worker threads can do no work");
    CU_ASSERT_PTR_NULL(pool);
    worker_pool_free(NULL);
}

struct signals_task {
    struct worker_task task;
    int is_blocked;
};

static void look_at_signals(struct worker_task *task)
{
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    ((struct signals_task *)task)->is_blocked = sigismember(&mask, SIGTERM);
}

static void workers_get_no_signals(void)
{
    struct worker_pool *pool = NULL;
    struct sg_error err = {0};
    struct signals_task task = {.task.run = look_at_signals};
    CU_ASSERT_EQUAL_FATAL(worker_pool_new(1, 1, &pool, &err), 0);
    CU_ASSERT_EQUAL(worker_submit(pool, &task.task, &err), 0);
    worker_pool_free(pool);
    CU_ASSERT_EQUAL(task.is_blocked, 1);
}

/* ---- fiber_blocking ---- */

static pthread_t loop_thread;

static int block(void *arg)
{
    CU_ASSERT_FALSE(pthread_equal(pthread_self(), loop_thread));
    gate_wait();
    *(int *)arg += 1;
    return 42;
}

static void block_in_fiber(void *arg)
{
    struct sg_error err = {0};
    int *count = arg;
    CU_ASSERT_EQUAL(fiber_blocking(block, count, &err), 42);
    CU_ASSERT_EQUAL(*count, 1);
    buf_puts(&record, "blocked ");
    CU_ASSERT_EQUAL(fiber_park(DEADLINE_NONE), SG_E_CANCELLED); /* cancelled meanwhile */
}

static void cancel_then_open(void *arg)
{
    (void)arg;
    fiber_yield();
    fiber_cancel(first);
    fiber_wake(first); /* neither ends the wait */
    fiber_yield();
    buf_puts(&record, "meanwhile ");
    gate_let_go();
}

static void a_fiber_waits_for_a_function_on_a_worker(void)
{
    struct worker_pool *pool = NULL;
    struct sg_error err = {0};
    int count = 0;
    gate_close();
    loop_thread = pthread_self();
    CU_ASSERT_EQUAL_FATAL(worker_pool_new(1, 1, &pool, &err), 0);
    begin_with(pool);
    first = start("blocking", block_in_fiber, &count);
    start("cancel", cancel_then_open, NULL);
    run_to_end();
    CU_ASSERT_STRING_EQUAL(record.data, "meanwhile blocked ");
    end();
    worker_pool_free(pool);
}

static void block_refused(void *arg)
{
    struct sg_error err = {0};
    struct worker_task task = {.run = run_through_gate};
    CU_ASSERT_EQUAL(worker_submit(arg, &task, &err), 0);
    CU_ASSERT_EQUAL(fiber_blocking(block, NULL, &err), SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(err.message, "all 1 worker threads are busy and 0 tasks wait for one");
    gate_let_go();
    worker_pool_free(arg); /* before `task` ends */
}

static void a_full_pool_refuses_a_fiber(void)
{
    struct worker_pool *pool = NULL;
    struct sg_error err = {0};
    gate_close();
    CU_ASSERT_EQUAL_FATAL(worker_pool_new(1, 0, &pool, &err), 0);
    begin_with(pool);
    start("refused", block_refused, pool);
    run_to_end();
    end();
}

/* ---- the watchdog ---- */

static int log_pipe[2];
static char log_text_read[4096];

static void log_begin_reading(void)
{
    CU_ASSERT_EQUAL_FATAL(pipe2(log_pipe, O_CLOEXEC | O_NONBLOCK), 0);
    log_set_fd(log_pipe[1]);
}

static void log_end_reading(void)
{
    log_set_fd(2);
    close(log_pipe[0]);
    close(log_pipe[1]);
}

/* Holds the thread until the log has a line. */
static void hold_until_logged(void)
{
    ssize_t len = -1;
    while (len <= 0) {
        len = read(log_pipe[0], log_text_read, sizeof log_text_read - 1);
    }
    log_text_read[len] = '\0';
}

static void hold_the_loop(void *arg)
{
    (void)arg;
    fiber_note("turn", "mock");
    hold_until_logged();
}

static void the_watchdog_names_what_holds_a_loop(void)
{
    struct sg_error err = {0};
    begin();
    log_begin_reading();
    CU_ASSERT_EQUAL_FATAL(watchdog_start(&loop, 1, &err), 0);
    start("request", hold_the_loop, NULL);
    run_to_end();
    watchdog_stop();
    log_end_reading();
    CU_ASSERT_PTR_NOT_NULL(strstr(
        log_text_read, "level=warn event=loop_held loop=0 fiber=request step=turn plugin=mock"));
    const char *held = strstr(log_text_read, " held_ms=");
    CU_ASSERT(held != NULL && strtol(held + 9, NULL, 10) >= 200);
    end();
}

static void hold_in_callback(struct loop_task *task)
{
    (void)task;
    hold_until_logged();
    loop_stop(loop);
}

static void the_watchdog_sees_a_callback_too(void)
{
    struct sg_error err = {0};
    struct loop_task task = {.run = hold_in_callback};
    begin();
    log_begin_reading();
    CU_ASSERT_EQUAL_FATAL(watchdog_start(&loop, 1, &err), 0);
    loop_post(loop, &task);
    loop_run(loop);
    watchdog_stop();
    log_end_reading();
    CU_ASSERT_PTR_NOT_NULL(
        strstr(log_text_read, "event=loop_held loop=0 fiber=(call-back) held_ms="));
    end();
}

static void idle(void *arg)
{
    (void)arg;
    CU_ASSERT_EQUAL(fiber_sleep(5 * LIMIT_LOOP_HELD_MS / 2), 0);
    loop_stop(loop);
}

static void an_idle_loop_is_not_named(void)
{
    struct sg_error err = {0};
    begin();
    log_begin_reading();
    CU_ASSERT_EQUAL_FATAL(watchdog_start(&loop, 1, &err), 0);
    start("idle", idle, NULL);
    loop_run(loop);
    watchdog_stop();
    CU_ASSERT_EQUAL(read(log_pipe[0], log_text_read, sizeof log_text_read), -1);
    log_end_reading();
    end();
}

static const struct test tests[] = {
    TEST(a_full_queue_is_refused_and_what_was_taken_is_done),
    TEST(refused_tasks_are_taken_again_when_there_is_room),
    TEST(a_pool_without_threads_is_refused),
    TEST(workers_get_no_signals),
    TEST(a_fiber_waits_for_a_function_on_a_worker),
    TEST(a_full_pool_refuses_a_fiber),
    TEST(the_watchdog_names_what_holds_a_loop),
    TEST(the_watchdog_sees_a_callback_too),
    TEST(an_idle_loop_is_not_named),
};

int main(int argc, char **argv)
{
    return run_tests("worker", tests, COUNT_OF(tests), argc, argv);
}
