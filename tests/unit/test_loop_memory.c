/* A loop without memory for a timer or for the first wait for a descriptor ends the process and says why: event_add() is wrapped
 * by the linker (CMakeLists.txt) and has none. */
#include "loop_fixture.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum lacking { LACKS_NOTHING, LACKS_TIMERS, LACKS_WATCHES };

static enum lacking lacking;

int __real_event_add(struct event *event, const struct timeval *after);
int __wrap_event_add(struct event *event, const struct timeval *after);

int __wrap_event_add(struct event *event, const struct timeval *after)
{
    if (lacking == (event_get_fd(event) < 0 ? LACKS_TIMERS : LACKS_WATCHES)) {
        errno = ENOMEM;
        return -1;
    }
    return __real_event_add(event, after);
}

static void sleep_fiber(void *arg)
{
    lacking = *(enum lacking *)arg;
    (void)fiber_sleep(1);
}

static void wait_fiber(void *arg)
{
    int fds[2], events;
    if (pipe(fds) == 0) {
        lacking = *(enum lacking *)arg;
        (void)fiber_wait_fd(fds[0], SG_READ, DEADLINE_NONE, &events);
    }
}

/* What a process says that runs such a loop, and the signal by which it ends. */
static int end_of(void (*body)(void *), enum lacking what, char said[256])
{
    int fds[2], status = 0;
    CU_ASSERT_EQUAL_FATAL(pipe(fds), 0);
    pid_t pid = fork();
    CU_ASSERT_TRUE_FATAL(pid >= 0);
    if (pid == 0) {
        dup2(fds[1], STDERR_FILENO);
        begin();
        start("lacks", body, &what);
        run_to_end();
        end();
        _exit(0);
    }
    close(fds[1]);
    ssize_t len = read(fds[0], said, 255);
    said[len > 0 ? len : 0] = '\0';
    close(fds[0]);
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void no_memory_for_a_timer_ends_the_process(void)
{
    char said[256];
    CU_ASSERT_EQUAL(end_of(sleep_fiber, LACKS_TIMERS, said), SIGABRT);
    CU_ASSERT_STRING_EQUAL(said, "sandgate: out of memory\n");
}

static void no_memory_for_a_wait_ends_the_process(void)
{
    char said[256];
    CU_ASSERT_EQUAL(end_of(wait_fiber, LACKS_WATCHES, said), SIGABRT);
    CU_ASSERT_STRING_EQUAL(said, "sandgate: out of memory\n");
}

static const struct test tests[] = {
    TEST(no_memory_for_a_timer_ends_the_process),
    TEST(no_memory_for_a_wait_ends_the_process),
};

int main(int argc, char **argv)
{
    return run_tests("loop_memory", tests, COUNT_OF(tests), argc, argv);
}
