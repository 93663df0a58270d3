/* core/loop: fibers, stacks, waking, cancelling, deadlines. Each test makes a loop, starts fibers and runs it until all
 * have ended. Order is recorded as text, so that a wrong order is a wrong value. */
#include "loop/internal.h"
#include "loop/sanitize.h"
#include "loop_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- switching ---- */

static void say_thrice(void *arg)
{
    for (int i = 0; i < 3; i++) {
        buf_puts(&record, arg);
        fiber_yield();
    }
}

static void yielding_fibers_take_turns(void)
{
    begin();
    start("a", say_thrice, (char *)"a");
    start("b", say_thrice, (char *)"b");
    run_to_end();
    CU_ASSERT_STRING_EQUAL(record.data, "ababab");
    end();
}

static void keep_numbers(void *arg)
{
    volatile double third = 1.0 / 3, *out = arg;
    long a = 1, b = 2, c = 3, d = 4, e = 5, f = 6;
    for (int i = 0; i < 10; i++) {
        fiber_yield();
        a += b, b += c, c += d, d += e, e += f, f += a;
    }
    *out = third + (double)(a + b + c + d + e + f);
}

static void registers_survive_a_switch(void)
{
    double one = 0, other = 0;
    long n[6] = {1, 2, 3, 4, 5, 6}, sum = 0;
    for (int i = 0; i < 10; i++) {
        for (int k = 0; k < 6; k++) {
            n[k] += n[(k + 1) % 6];
        }
    }
    for (int k = 0; k < 6; k++) {
        sum += n[k];
    }
    begin();
    start("one", keep_numbers, &one);
    start("other", keep_numbers, &other);
    run_to_end();
    CU_ASSERT_EQUAL(one, 1.0 / 3 + (double)sum);
    CU_ASSERT_EQUAL(other, one);
    end();
}

static __attribute__((noinline)) size_t dig(char *bottom, size_t margin)
{
    volatile char frame[2048];
    memset((char *)frame, 7, sizeof frame);
    size_t left = (size_t)((char *)&frame[0] - bottom);
    if (left <= margin) {
        return left + frame[0] - 7;
    }
    size_t rest = dig(bottom, margin);
    return rest + frame[2047] - 7;
}

static void dig_deep(void *arg)
{
    *(size_t *)arg = dig(fiber_self()->stack->base, 12 * 1024);
}

static void a_stack_can_be_used_down_to_its_guard(void)
{
    size_t left = 0;
    begin();
    start("deep", dig_deep, &left);
    start("again", dig_deep, &left); /* on a stack that was left in any state */
    run_to_end();
    CU_ASSERT(left > 0 && left <= 12 * 1024);
    end();
}

static void dig_too_deep(void *arg)
{
    *(size_t *)arg = dig(fiber_self()->stack->base - 1024 * 1024, 0);
}

static void an_overflow_hits_the_guard_page(void)
{
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 2);
        size_t left = 0;
        begin();
        start("too_deep", dig_too_deep, &left);
        run_to_end();
        _exit(42);
    }
    int status = 0;
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) == 42);
#if !defined(SANDGATE_ASAN) && !defined(SANDGATE_TSAN)
    CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
#endif
}

static void park_until_woken(void *arg)
{
    size_t *woken = arg;
    *woken += fiber_park(DEADLINE_NONE) == 0;
}

static void wake_all(void *arg)
{
    size_t count = *(size_t *)arg, woken = 0;
    CU_ASSERT_EQUAL(loop->stacks.mapped_count, count + 2);
    for (struct fiber *fiber = loop->youngest; fiber != NULL; fiber = fiber->older) {
        if (fiber->state == FIBER_PARKED) {
            fiber_wake(fiber);
            woken++;
        }
    }
    CU_ASSERT_EQUAL(woken, count);
}

static void ten_thousand_fibers_leave_only_the_pool(void)
{
#if defined(SANDGATE_TSAN)
    size_t count = 2000; /* ThreadSanitizer knows at most some thousand */
#else
    size_t count = 10000;
#endif
    size_t woken = 0;
    begin();
    for (size_t i = 0; i < count; i++) {
        start("many", park_until_woken, &woken);
    }
    start("wake", wake_all, &count);
    run_to_end();
    CU_ASSERT_EQUAL(woken, count);
    CU_ASSERT_EQUAL(loop->stacks.mapped_count, STACKS_KEPT_MAX);
    CU_ASSERT_EQUAL(loop->stacks.kept_count, STACKS_KEPT_MAX);
    end();
}

/* ---- waking, cancelling, deadlines ---- */

static void wake_itself_then_park(void *arg)
{
    (void)arg;
    fiber_wake(fiber_self());
    CU_ASSERT_EQUAL(fiber_park(DEADLINE_NONE), 0);
    CU_ASSERT_EQUAL(fiber_park(clock_ms()), SG_E_TIMEOUT); /* one wake-up, one return */
    buf_puts(&record, "done");
}

static void a_wake_before_the_park_is_not_lost(void)
{
    begin();
    start("early", wake_itself_then_park, NULL);
    run_to_end();
    CU_ASSERT_STRING_EQUAL(record.data, "done");
    end();
}

static void sleep_then_park(void *arg)
{
    (void)arg;
    CU_ASSERT_EQUAL(fiber_sleep(1), 0);
    CU_ASSERT_EQUAL(fiber_park(DEADLINE_NONE), 0);
    buf_puts(&record, "parked");
}

static void wake_first(void *arg)
{
    (void)arg;
    fiber_wake(first);
}

static void a_wake_during_a_sleep_is_kept_for_the_park(void)
{
    begin();
    first = start("sleeper", sleep_then_park, NULL);
    start("waker", wake_first, NULL);
    run_to_end();
    CU_ASSERT_STRING_EQUAL(record.data, "parked");
    end();
}

static void wait_in_every_way(void *arg)
{
    int *fds = arg, events = 77;
    CU_ASSERT_EQUAL(fiber_park(DEADLINE_NONE), SG_E_CANCELLED); /* was waiting when cancelled */
    CU_ASSERT_EQUAL(fiber_park(DEADLINE_NONE), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(fiber_sleep(100000), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(fiber_wait_fd(fds[0], SG_READ, DEADLINE_NONE, &events), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(events, 77);
    CU_ASSERT_EQUAL(fiber_check(), SG_E_CANCELLED);
    fiber_shield();
    fiber_shield();
    CU_ASSERT_EQUAL(fiber_check(), 0);
    CU_ASSERT_EQUAL(fiber_sleep(1), 0);
    fiber_unshield();
    CU_ASSERT_EQUAL(fiber_sleep(1), 0);
    fiber_unshield();
    CU_ASSERT_EQUAL(fiber_sleep(1), SG_E_CANCELLED);
    CU_ASSERT_TRUE(fiber_is_cancelled(fiber_self()));
    buf_puts(&record, "done");
}

static void cancel_first(void *arg)
{
    (void)arg;
    fiber_cancel(first);
}

static void cancelling_ends_every_wait_until_shielded(void)
{
    int fds[2];
    CU_ASSERT_EQUAL_FATAL(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    begin();
    first = start("waits", wait_in_every_way, fds);
    start("cancel", cancel_first, NULL);
    run_to_end();
    CU_ASSERT_STRING_EQUAL(record.data, "done");
    end();
    close(fds[0]);
    close(fds[1]);
}

static void wait_on_fd_until_cancelled(void *arg)
{
    int events = 0;
    CU_ASSERT_EQUAL(fiber_wait_fd(*(int *)arg, SG_READ | SG_HANGUP, DEADLINE_NONE, &events),
                    SG_E_CANCELLED);
    buf_puts(&record, "cancelled");
}

static void cancelling_ends_a_wait_for_a_descriptor(void)
{
    int fds[2];
    CU_ASSERT_EQUAL_FATAL(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    begin();
    first = start("waits", wait_on_fd_until_cancelled, fds);
    start("cancel", cancel_first, NULL);
    run_to_end();
    CU_ASSERT_STRING_EQUAL(record.data, "cancelled");
    end();
    close(fds[0]);
    close(fds[1]);
}

static void sleep_shielded(void *arg)
{
    (void)arg;
    fiber_shield();
    CU_ASSERT_EQUAL(fiber_sleep(5), 0);
    buf_puts(&record, "slept ");
    fiber_unshield();
    CU_ASSERT_EQUAL(fiber_sleep(5), SG_E_CANCELLED);
    buf_puts(&record, "cancelled");
}

static void a_shielded_wait_goes_on_when_cancelled(void)
{
    begin();
    first = start("shielded", sleep_shielded, NULL);
    start("cancel", cancel_first, NULL);
    run_to_end();
    CU_ASSERT_STRING_EQUAL(record.data, "slept cancelled");
    end();
}

struct waiter {
    const char *name;
    int64_t deadline;
};

static void park_to_deadline(void *arg)
{
    struct waiter *waiter = arg;
    CU_ASSERT_EQUAL(fiber_park(waiter->deadline), SG_E_TIMEOUT);
    CU_ASSERT(clock_ms() >= waiter->deadline);
    buf_puts(&record, waiter->name);
}

static void deadlines_end_in_order_and_never_early(void)
{
    int64_t now = clock_ms();
    struct waiter waiters[] = {{"d", now + 31}, {"a", now + 3},  {"c", now + 23},
                               {"b", now + 13}, {"e", now + 37}, {"0", now - 5}};
    begin();
    for (size_t i = 0; i < COUNT_OF(waiters); i++) {
        start("waiter", park_to_deadline, &waiters[i]);
    }
    run_to_end();
    CU_ASSERT_STRING_EQUAL(record.data, "0abcde");
    end();
}

/* Its entry in the heap stands for +1 ms, its wait for +9; the loop comes round when both and the other's have passed. */
static void wait_twice(void *arg)
{
    struct waiter *waiter = arg;
    fiber_wake(fiber_self());
    CU_ASSERT_EQUAL(fiber_park(waiter->deadline - 8), 0);
    first = fiber_self();
    CU_ASSERT_EQUAL(fiber_park(waiter->deadline - 8), 0); /* woken by hold_the_loop */
    park_to_deadline(waiter);
}

static void hold_the_loop(void *arg)
{
    struct waiter *last = arg;
    fiber_wake(first);
    fiber_yield();
    while (clock_ms() <= last->deadline) {
    }
}

static void order_holds_when_the_loop_comes_late(void)
{
    int64_t now = clock_ms();
    struct waiter waiters[] = {{"b", now + 1009}, {"a", now + 1005}};
    waiters[0].deadline = now + 9;
    waiters[1].deadline = now + 5;
    begin();
    start("twice", wait_twice, &waiters[0]);
    start("once", park_to_deadline, &waiters[1]);
    start("holder", hold_the_loop, &waiters[0]);
    run_to_end();
    CU_ASSERT_STRING_EQUAL(record.data, "ab");
    end();
}

static void limited(void *arg)
{
    (void)arg;
    int64_t deadline = deadline_in(5);
    CU_ASSERT_EQUAL(fiber_check(), 0);
    fiber_set_deadline(fiber_self(), deadline);
    CU_ASSERT_EQUAL(fiber_deadline(fiber_self()), deadline);
    CU_ASSERT_EQUAL(fiber_sleep(100000), SG_E_TIMEOUT);
    CU_ASSERT_EQUAL(fiber_check(), SG_E_TIMEOUT);
    CU_ASSERT_EQUAL(fiber_park(DEADLINE_NONE), SG_E_TIMEOUT);
    fiber_shield();
    CU_ASSERT_EQUAL(fiber_sleep(1), 0);
    fiber_unshield();
    fiber_set_deadline(fiber_self(), DEADLINE_NONE);
    CU_ASSERT_EQUAL(fiber_sleep(1), 0);
    CU_ASSERT_EQUAL(fiber_park(DEADLINE_NONE), SG_E_TIMEOUT); /* limit_first sets it */
    buf_puts(&record, "done");
}

static void limit_first(void *arg)
{
    (void)arg;
    while (first->state != FIBER_PARKED || first->park_deadline != DEADLINE_NONE ||
           first->deadline != DEADLINE_NONE) {
        fiber_yield();
    }
    fiber_set_deadline(first, clock_ms());
}

static void no_wait_lasts_beyond_the_fibers_own_deadline(void)
{
    begin();
    first = start("limited", limited, NULL);
    start("limit", limit_first, NULL);
    run_to_end();
    CU_ASSERT_STRING_EQUAL(record.data, "done");
    end();
}

static uint64_t random_state = 12345;

static uint64_t next_random(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state >> 33;
}

static int64_t last_ended;

static void wait_at_random(void *arg)
{
    int64_t base = *(int64_t *)arg, until = 0;
    for (int i = 0; i < 5; i++) {
        until = base + (int64_t)(next_random() % 40) + 8 * i;
        int64_t began = clock_ms();
        CU_ASSERT_EQUAL(fiber_park(until), SG_E_TIMEOUT);
        CU_ASSERT(clock_ms() >= until);
        if (until > began) { /* not over before it began */
            CU_ASSERT(until >= last_ended);
            last_ended = until;
        }
    }
}

static void many_random_deadlines_end_in_order(void)
{
    begin();
    int64_t base = clock_ms();
    last_ended = 0;
    for (int i = 0; i < 500; i++) {
        start("random", wait_at_random, &base);
    }
    run_to_end();
    CU_ASSERT_EQUAL(loop->timers_count, 0);
    end();
}

static struct lock some_lock = LOCK_INIT;

static void wait_with_a_lock(void *arg)
{
    (void)arg;
    lock_take(&some_lock);
    fiber_yield();
}

static void waiting_with_a_lock_is_caught(void)
{
    int fds[2];
    char text[512] = "";
    CU_ASSERT_EQUAL_FATAL(pipe2(fds, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)dup2(fds[1], 2);
        begin();
        start("locked", wait_with_a_lock, NULL);
        run_to_end();
        _exit(0);
    }
    int status = 0;
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT(read(fds[0], text, sizeof text - 1) > 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "assertion failed: locks_held() == 0"));
    close(fds[0]);
    close(fds[1]);
}

/* ---- the tests themselves ---- */

static void fail_fatally(void *arg)
{
    (void)arg;
    CU_ASSERT_EQUAL_FATAL(1 + 1, 3);
    buf_puts(&record, "went on");
}

static void a_fatal_assertion_in_a_fiber_ends_the_program(void)
{
    int fds[2], status = 0;
    char text[512] = "";
    CU_ASSERT_EQUAL_FATAL(pipe2(fds, O_CLOEXEC), 0);
    fflush(stdout); /* else the child says it again */
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(20); /* or it hangs */
        (void)dup2(fds[1], 2);
        begin();
        start("fails", fail_fatally, NULL);
        run_to_end();
        _exit(0);
    }
    close(fds[1]);
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_TRUE(WIFEXITED(status));
    CU_ASSERT_EQUAL(WEXITSTATUS(status), 1);
    CU_ASSERT(read(fds[0], text, sizeof text - 1) > 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "CU_ASSERT_EQUAL_FATAL(1 + 1,3) failed in a fiber"));
    close(fds[0]);
}

static const struct test tests[] = {
    TEST(a_fatal_assertion_in_a_fiber_ends_the_program),
    TEST(yielding_fibers_take_turns),
    TEST(registers_survive_a_switch),
    TEST(a_stack_can_be_used_down_to_its_guard),
    TEST(an_overflow_hits_the_guard_page),
    TEST(ten_thousand_fibers_leave_only_the_pool),
    TEST(a_wake_before_the_park_is_not_lost),
    TEST(a_wake_during_a_sleep_is_kept_for_the_park),
    TEST(cancelling_ends_every_wait_until_shielded),
    TEST(cancelling_ends_a_wait_for_a_descriptor),
    TEST(a_shielded_wait_goes_on_when_cancelled),
    TEST(deadlines_end_in_order_and_never_early),
    TEST(order_holds_when_the_loop_comes_late),
    TEST(no_wait_lasts_beyond_the_fibers_own_deadline),
    TEST(many_random_deadlines_end_in_order),
    TEST(waiting_with_a_lock_is_caught),
};

int main(int argc, char **argv)
{
    return run_tests("loop", tests, COUNT_OF(tests), argc, argv);
}
