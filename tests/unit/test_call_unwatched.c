/* What a plugin that waits for a descriptor is told when the kernel gives no more watches (unwatched_fixture.h), on the loop
 * and on a worker; once there are some again it waits as before. */
#include "call_fixture.h"
#include "unwatched_fixture.h"

#include <fcntl.h>
#include <unistd.h>

static int wait_unwatched(const struct instance *i, struct sg_call *call, void *arguments,
                          struct sg_error *err)
{
    int *fds = arguments, events = 0;
    (void)i;
    CU_ASSERT_EQUAL(host->wait_fd(call, fds[1], SG_WRITE, -1, &events, err), 0);
    CU_ASSERT_EQUAL(events, SG_WRITE);
    return host->wait_fd(call, fds[0], SG_READ, -1, &events, err);
}

static int wait_once(int *fds, struct sg_error *err)
{
    struct sg_call *call = call_of("call");
    int code = call_run(call_ref(call), wait_unwatched, fds, NULL, err);
    call_unref(call);
    return code;
}

static void wait_fiber(void *arg)
{
    struct sg_error err = {0};
    int fds[2];
    (void)arg;
    CU_ASSERT_EQUAL_FATAL(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    CU_ASSERT_EQUAL(write(fds[1], "x", 1), 1);
    CU_ASSERT_EQUAL(wait_once(fds, &err), 0);
    close(fds[0]);
    close(fds[1]);
}

static int refused_wait(const struct instance *i, struct sg_call *call, void *arguments,
                        struct sg_error *err)
{
    int events = 0;
    (void)i;
    return host->wait_fd(call, *(int *)arguments, SG_READ, -1, &events, err);
}

static void refused_fiber(void *arg)
{
    struct sg_error err = {0};
    int fds[2];
    CU_ASSERT_EQUAL_FATAL(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    struct sg_call *call = call_of("call");
    refuses = true;
    refused = 0;
    CU_ASSERT_EQUAL(call_run(call_ref(call), refused_wait, &fds[0], NULL, &err), SG_E_LIMIT);
    refuses = false;
    CU_ASSERT_STRING_EQUAL(err.message,
                           "fake (one): wait_fd(): the kernel has no watch left for a descriptor "
                           "(fs.epoll.max_user_watches)");
    CU_ASSERT_TRUE(refused > 0);
    call_unref(call);
    close(fds[0]);
    close(fds[1]);
    wait_fiber(arg);
}

static void a_plugin_is_told_that_no_watch_is_left(void)
{
    run_both(refused_fiber);
}

static const struct test tests[] = {
    TEST(a_plugin_is_told_that_no_watch_is_left),
};

int main(int argc, char **argv)
{
    return run_tests("call_unwatched", tests, COUNT_OF(tests), argc, argv);
}
