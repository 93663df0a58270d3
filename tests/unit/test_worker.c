/* core/loop: worker threads, fiber_blocking, the watchdog. Threads meet at gates (a lock and a condition), never by
 * sleeping. */
#include "base/check.h"
#include "base/limits.h"
#include "base/lock.h"
#include "base/log.h"
#include "loop/worker.h"
#include "gate.h"
#include "loop_fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* ---- shares, lanes, lost threads ---- */

struct named_task {
    struct worker_task task;
    char name;
};

static struct lock order_lock = LOCK_INIT;
static char order[16];

static void note(const struct named_task *task)
{
    lock_take(&order_lock);
    size_t len = strlen(order);
    CU_ASSERT(len < sizeof order - 1);
    order[len] = task->name;
    lock_release(&order_lock);
}

static void note_and_wait(struct worker_task *task)
{
    note((struct named_task *)task);
    gate_wait();
}

static void note_only(struct worker_task *task)
{
    note((struct named_task *)task);
}

static struct named_task task_of(char name, const char *identity, void (*run)(struct worker_task *))
{
    return (struct named_task){.task = {.run = run, .identity = str_of(identity)}, .name = name};
}

static struct worker_pool *pool_begin(size_t threads, size_t queue)
{
    struct worker_pool *pool = NULL;
    struct sg_error err = {0};
    gate_close();
    memset(order, 0, sizeof order);
    CU_ASSERT_EQUAL_FATAL(worker_pool_new(threads, queue, &pool, &err), 0);
    return pool;
}

static void submit_all(struct worker_pool *pool, struct named_task *tasks, size_t count)
{
    struct sg_error err = {0};
    for (size_t i = 0; i < count; i++) {
        CU_ASSERT_EQUAL(worker_submit(pool, &tasks[i].task, &err), 0);
    }
}

static void an_identity_gets_half_of_the_threads_and_others_the_rest(void)
{
    struct worker_pool *pool = pool_begin(4, 10);
    struct named_task tasks[] = {
        task_of('a', "A", note_and_wait), task_of('a', "A", note_and_wait),
        task_of('a', "A", note_and_wait), task_of('b', "B", note_and_wait),
        task_of('c', "", note_and_wait),
    };
    submit_all(pool, tasks, COUNT_OF(tasks));
    gate_await(4); /* two of A, B's, nobody's; A's third waits though a thread is free of it */
    CU_ASSERT_EQUAL(worker_pool_busy(pool), 5);
    CU_ASSERT_EQUAL(strlen(order), 4);
    CU_ASSERT_PTR_NOT_NULL(strchr(order, 'b'));
    CU_ASSERT_PTR_NOT_NULL(strchr(order, 'c'));
    gate_let_go();
    worker_pool_free(pool);
    CU_ASSERT_EQUAL(strlen(order), 5);
    CU_ASSERT_EQUAL(order[4], 'a');
}

static void a_share_may_be_the_whole_pool(void)
{
    struct worker_pool *pool = pool_begin(2, 10);
    struct named_task tasks[] = {task_of('a', "A", note_and_wait),
                                 task_of('a', "A", note_and_wait)};
    worker_pool_set_share(pool, 2);
    submit_all(pool, tasks, COUNT_OF(tasks));
    gate_await(2);
    gate_let_go();
    worker_pool_free(pool);
}

static void identities_take_turns(void)
{
    struct worker_pool *pool = pool_begin(1, 10);
    struct named_task tasks[] = {
        task_of('x', "", note_and_wait), task_of('1', "A", note_only), task_of('2', "A", note_only),
        task_of('3', "A", note_only),    task_of('4', "B", note_only), task_of('5', "C", note_only),
    };
    submit_all(pool, tasks, COUNT_OF(tasks));
    gate_await(1);
    gate_let_go();
    worker_pool_free(pool);
    CU_ASSERT_STRING_EQUAL(order, "x14523"); /* not x12345 */
}

static void an_identity_fills_its_part_of_the_queue_only(void)
{
    struct worker_pool *pool = pool_begin(2, 4);
    struct sg_error err = {0};
    struct named_task tasks[] = {
        task_of('a', "A", note_and_wait),
        task_of('a', "A", note_and_wait),
        task_of('a', "A", note_and_wait),
        task_of('b', "B", note_and_wait),
    };
    struct named_task more = task_of('a', "A", note_and_wait);
    submit_all(pool, tasks, 1);
    gate_await(1);
    submit_all(pool, tasks + 1, 2);
    CU_ASSERT_EQUAL(worker_submit(pool, &more.task, &err), SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(err.message, "1 worker threads are busy for this identity, its share is "
                                        "1, and 2 tasks of it wait");
    submit_all(pool, tasks + 3, 1);
    gate_await(2);
    gate_let_go();
    worker_pool_free(pool);
    CU_ASSERT_STRING_EQUAL(order, "abaa");
}

static struct worker_pool *waited_on;

/* Sleeps until a task of a lower lane has run. */
static void wait_for_a_task(struct worker_task *task)
{
    struct named_task inner = task_of('i', "A", note_only);
    struct sg_error err = {0};
    note((struct named_task *)task);
    CU_ASSERT_EQUAL(worker_submit(waited_on, &inner.task, &err), 0);
    for (bool was_run = false; !was_run; sched_yield()) {
        lock_take(&order_lock);
        was_run = strchr(order, 'i') != NULL;
        lock_release(&order_lock);
    }
    while (worker_withdraw(waited_on, &inner.task)) { /* it has begun, as was seen */
        CU_FAIL("a task that has run stands in the queue");
    }
}

static void tasks_that_wait_for_tasks_leave_them_a_thread(void)
{
    struct worker_pool *pool = pool_begin(1, 10);
    struct named_task tasks[] = {task_of('o', "A", wait_for_a_task)};
    tasks[0].task.lane = WORKER_CALL;
    waited_on = pool;
    submit_all(pool, tasks, 1);
    while (worker_pool_busy(pool) > 0) { /* for ever, if both stood in one queue */
        sched_yield();
    }
    worker_pool_free(pool);
    CU_ASSERT_STRING_EQUAL(order, "oi");
}

static void what_has_not_begun_can_be_taken_back(void)
{
    struct worker_pool *pool = pool_begin(1, 10);
    struct named_task tasks[] = {task_of('1', "A", note_and_wait), task_of('2', "A", note_only),
                                 task_of('3', "A", note_only), task_of('4', "B", note_only)};
    submit_all(pool, tasks, 1);
    gate_await(1);
    submit_all(pool, tasks + 1, 3);
    CU_ASSERT_FALSE(worker_withdraw(pool, &tasks[0].task));
    CU_ASSERT_TRUE(worker_withdraw(pool, &tasks[1].task));
    CU_ASSERT_FALSE(worker_withdraw(pool, &tasks[1].task));
    CU_ASSERT_TRUE(worker_withdraw(pool, &tasks[3].task)); /* B's only one */
    CU_ASSERT_EQUAL(worker_pool_busy(pool), 2);
    submit_all(pool, tasks + 3, 1); /* again */
    gate_let_go();
    worker_pool_free(pool);
    CU_ASSERT_STRING_EQUAL(order, "143"); /* A had the thread last */
}

static void a_lost_thread_is_replaced_and_counts_against_its_identity(void)
{
    struct worker_pool *pool = pool_begin(1, 10);
    struct named_task tasks[] = {
        task_of('1', "A", note_and_wait),
        task_of('2', "A", note_only),
        task_of('3', "B", note_and_wait),
        task_of('4', "C", note_only),
    };
    submit_all(pool, tasks, 1);
    gate_await(1);
    submit_all(pool, tasks + 1, 3);
    CU_ASSERT_EQUAL(strlen(order), 1);
    worker_give_up(pool, &tasks[0].task);
    worker_give_up(pool, &tasks[0].task); /* once is enough */
    gate_await(2);                        /* B's; A's second still waits for its share */
    CU_ASSERT_STRING_EQUAL(order, "13");
    worker_give_up(pool, &tasks[2].task); /* one more than the lane has threads: it is kept */
    CU_ASSERT_EQUAL(worker_pool_busy(pool), 4);
    CU_ASSERT_STRING_EQUAL(order, "13");
    gate_let_go();
    worker_pool_free(pool);
    CU_ASSERT_EQUAL(strlen(order), 4);
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

static const struct watchdog_end no_end = {.patience_ms = INT32_MAX};

static void the_watchdog_names_what_holds_a_loop(void)
{
    struct sg_error err = {0};
    begin();
    log_begin_reading();
    CU_ASSERT_EQUAL_FATAL(watchdog_start(&loop, 1, &no_end, &err), 0);
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
    CU_ASSERT_EQUAL_FATAL(watchdog_start(&loop, 1, &no_end, &err), 0);
    loop_post(loop, &task);
    loop_run(loop);
    watchdog_stop();
    log_end_reading();
    CU_ASSERT_PTR_NOT_NULL(
        strstr(log_text_read, "event=loop_held loop=0 fiber=(call-back) held_ms="));
    end();
}

/* The child: nothing holds its loop, and nothing ends it. */
static _Noreturn void outlive_the_end(int said)
{
    struct sg_error err = {0};
    const struct watchdog_end at_once = {.patience_ms = 0, .exit_code = 7};
    begin();
    CHECK(dup2(said, STDERR_FILENO) == STDERR_FILENO);
    CHECK(watchdog_start(&loop, 1, &at_once, &err) == 0);
    watchdog_end_begins();
    loop_run(loop);
    _exit(1);
}

static void the_watchdog_ends_a_process_that_outlives_its_end(void)
{
    int said[2], status = 0;
    char text[1024];
    size_t len = 0;
    CU_ASSERT_EQUAL_FATAL(pipe2(said, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        outlive_the_end(said[1]);
    }
    close(said[1]);
    for (ssize_t got; (got = read(said[0], text + len, sizeof text - 1 - len)) > 0;) {
        len += (size_t)got;
    }
    text[len] = '\0';
    close(said[0]);
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "level=error event=calls_left calls=0\n"
                                        "sandgate: the end took too long and was forced\n"));
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
    CU_ASSERT_EQUAL_FATAL(watchdog_start(&loop, 1, &no_end, &err), 0);
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
    TEST(an_identity_gets_half_of_the_threads_and_others_the_rest),
    TEST(a_share_may_be_the_whole_pool),
    TEST(identities_take_turns),
    TEST(an_identity_fills_its_part_of_the_queue_only),
    TEST(tasks_that_wait_for_tasks_leave_them_a_thread),
    TEST(what_has_not_begun_can_be_taken_back),
    TEST(a_lost_thread_is_replaced_and_counts_against_its_identity),
    TEST(a_fiber_waits_for_a_function_on_a_worker),
    TEST(a_full_pool_refuses_a_fiber),
    TEST(the_watchdog_names_what_holds_a_loop),
    TEST(the_watchdog_sees_a_callback_too),
    TEST(an_idle_loop_is_not_named),
    TEST(the_watchdog_ends_a_process_that_outlives_its_end),
};

int main(int argc, char **argv)
{
    return run_tests("worker", tests, COUNT_OF(tests), argc, argv);
}
