/* core/plugin/child.c: child processes of plugins. The children are this program itself, started as a reporter: it writes
 * what it finds (descriptors, signals, environment) to its descriptor 1, or ends as it is told. */
#include "call_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char self_path[4096];

/* ---- the child ---- */

static void report_fds(struct buf *out)
{
    for (int fd = 0; fd < 1024; fd++) {
        struct stat status;
        if (fstat(fd, &status) != 0) {
            continue;
        }
        char content[16] = "";
        const char *kind = fd == 2                    ? "ours"
                           : S_ISCHR(status.st_mode)  ? "device"
                           : S_ISFIFO(status.st_mode) ? "pipe"
                                                      : "other";
        if (fd > 2 && S_ISFIFO(status.st_mode) && read(fd, content, sizeof content - 1) > 0) {
            kind = content;
        }
        buf_printf(out, "%s%d=%s", fd > 0 ? " " : "", fd, kind);
    }
}

static int report(int argc, char **argv)
{
    BUF_CLEANUP struct buf out = {0};
    sigset_t mask;
    struct sigaction action;
    report_fds(&out);
    (void)sigprocmask(SIG_SETMASK, NULL, &mask);
    (void)sigaction(SIGPIPE, NULL, &action);
    buf_printf(&out, "; term=%d pipe=%s group=%d", sigismember(&mask, SIGTERM),
               action.sa_handler == SIG_DFL ? "default" : "other", getpgrp() == getpid());
    for (char **at = environ; *at != NULL; at++) {
        buf_printf(&out, "; env %s", *at);
    }
    for (int i = 1; i < argc; i++) {
        buf_printf(&out, "; arg %s", argv[i]);
    }
    return write(1, out.data, out.len) == (ssize_t)out.len ? 7 : 8;
}

static int child_main(int argc, char **argv)
{
    if (strcmp(argv[1], "--wait") == 0) {
        char end;
        return (int)read(0, &end, 1); /* until the other end is closed or kills it */
    }
    return report(argc, argv);
}

/* ---- the plugin ---- */

struct pipe_ends {
    int read, write;
};

static struct pipe_ends pipe_with(const char *content)
{
    int fds[2];
    CU_ASSERT_EQUAL_FATAL(pipe2(fds, O_CLOEXEC), 0);
    CU_ASSERT_EQUAL(write(fds[1], content, strlen(content)), (ssize_t)strlen(content));
    return (struct pipe_ends){fds[0], fds[1]};
}

static void pipe_close(struct pipe_ends pipe)
{
    close(pipe.read);
    close(pipe.write);
}

static int start_child(struct sg_call *call, const char *how, const struct sg_spawn_fd *fds,
                       size_t count, struct sg_child *child, struct sg_error *err)
{
    const char *const argv[] = {"child", how, "two words", NULL};
    const char *const envp[] = {"ONE=1", NULL};
    struct sg_spawn spawn = {
        .path = self_path, .argv = argv, .envp = envp, .fds = fds, .fds_count = count};
    return host->spawn(call, &spawn, child, err);
}

static void await_child(struct sg_call *call, const struct sg_child *child, int wanted)
{
    struct sg_error err = {0};
    int status = -1;
    CU_ASSERT_EQUAL(host->wait_child(call, child, -1, &status, &err), 0);
    CU_ASSERT_EQUAL(status, wanted);
    CU_ASSERT_EQUAL(host->wait_child(call, child, -1, &status, &err), SG_E_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "is not, or no longer, ours"));
    CU_ASSERT_EQUAL(close(child->pidfd), 0);
}

static int spawn_reporter(const struct instance *i, struct sg_call *call, void *arguments,
                          struct sg_error *err)
{
    (void)i, (void)arguments;
    struct pipe_ends out = pipe_with(""), a = pipe_with("A"), b = pipe_with("B");
    int leaked = dup(a.write); /* not close-on-exec */
    /* Each source stands at a number that the child uses for another. */
    struct sg_spawn_fd fds[] = {{a.read, b.read}, {b.read, a.read}, {out.write, 1}};
    struct sg_child child = {0};
    char text[1024] = "", wanted[1024];
    CU_ASSERT_EQUAL(start_child(call, "--report", fds, 3, &child, err), 0);
    CU_ASSERT_EQUAL(fcntl(child.pidfd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    await_child(call, &child, 7 << 8);
    CU_ASSERT(read(out.read, text, sizeof text - 1) > 0);
    int low = a.read < b.read ? a.read : b.read, high = a.read < b.read ? b.read : a.read;
    (void)snprintf(
        wanted, sizeof wanted,
        "0=device 1=pipe 2=ours %d=%s %d=%s; term=0 pipe=default group=1; env ONE=1; arg "
        "--report; arg two words",
        low, low == a.read ? "B" : "A", high, high == a.read ? "B" : "A");
    CU_ASSERT_STRING_EQUAL(text, wanted);
    CU_ASSERT_EQUAL(fcntl(a.read, F_GETFD), FD_CLOEXEC); /* ours are as they were */
    pipe_close(out);
    pipe_close(a);
    pipe_close(b);
    close(leaked);
    return 0;
}

static void reporter_fiber(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(call_run(call_of("run"), spawn_reporter, NULL, NULL, &err), 0);
}

static void a_child_gets_what_it_was_given_and_nothing_else(void)
{
    sigset_t term, before;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    CU_ASSERT_EQUAL(pthread_sigmask(SIG_BLOCK, &term, &before), 0);
    (void)signal(SIGPIPE, SIG_IGN);
    run_both(reporter_fiber);
    (void)signal(SIGPIPE, SIG_DFL);
    CU_ASSERT_EQUAL(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

static int spawn_waiting(const struct instance *i, struct sg_call *call, void *arguments,
                         struct sg_error *err)
{
    (void)i, (void)arguments;
    struct pipe_ends in = pipe_with("");
    struct sg_spawn_fd fds[] = {{in.read, 0}};
    struct sg_child child = {0};
    int status = 77;
    CU_ASSERT_EQUAL(start_child(call, "--wait", fds, 1, &child, err), 0);
    CU_ASSERT_EQUAL(host->wait_child(call, &child, 3, &status, err), SG_E_TIMEOUT);
    CU_ASSERT_STRING_EQUAL(err->message, "wait_child() in 'run' ended: time is up");
    CU_ASSERT_EQUAL(status, 77);
    CU_ASSERT_EQUAL(kill((pid_t)child.pid, SIGKILL), 0);
    await_child(call, &child, SIGKILL);
    CU_ASSERT_EQUAL(start_child(call, "--wait", fds, 1, &child, err), 0);
    pipe_close(in);
    await_child(call, &child, 0);
    return 0;
}

static void waiting_fiber(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(call_run(call_of("run"), spawn_waiting, NULL, NULL, &err), 0);
}

static void waiting_for_a_child_tells_how_it_ended(void)
{
    run_both(waiting_fiber);
}

static int spawn_wrongly(const struct instance *i, struct sg_call *call, void *arguments,
                         struct sg_error *err)
{
    (void)i, (void)arguments;
    struct sg_child child = {.pid = 77};
    struct sg_spawn_fd twice[] = {{2, 5}, {2, 5}}, far = {2, 256}, closed = {1000, 3};
    struct sg_spawn absent = {.path = "/no/such/program"}, relative = {.path = "program"};
    int status = 0;
    CU_ASSERT_EQUAL(host->spawn(call, &absent, &child, err), SG_E_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(err->message,
                           "cannot start '/no/such/program': No such file or directory");
    CU_ASSERT_EQUAL(host->spawn(call, &relative, &child, err), SG_E_INVALID);
    CU_ASSERT_STRING_EQUAL(err->message, "spawn(): path must be absolute");
    CU_ASSERT_EQUAL(start_child(call, "--wait", twice, 2, &child, err), SG_E_INVALID);
    CU_ASSERT_STRING_EQUAL(err->message, "spawn(): child_fd 5 is given twice");
    CU_ASSERT_EQUAL(start_child(call, "--wait", &far, 1, &child, err), SG_E_INVALID);
    CU_ASSERT_STRING_EQUAL(err->message, "spawn(): child_fd must be within 0 and 255, not 256");
    CU_ASSERT_EQUAL(start_child(call, "--wait", &closed, 1, &child, err), SG_E_INVALID);
    CU_ASSERT_STRING_EQUAL(err->message,
                           "spawn(): cannot give descriptor 1000 to a child: Bad file descriptor");
    CU_ASSERT_EQUAL(child.pid, 77);
    child.pidfd = -1;
    CU_ASSERT_EQUAL(host->wait_child(call, &child, -1, &status, err), SG_E_INVALID);
    CU_ASSERT_STRING_EQUAL(err->message, "wait_child(): process 77 is not, or no longer, ours");
    return 0;
}

static int fds_open(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

static void wrong_fiber(void *arg)
{
    (void)arg;
    struct sg_error err = {0};
    int before = fds_open();
    CU_ASSERT_EQUAL(call_run(call_of("run"), spawn_wrongly, NULL, NULL, &err), 0);
    CU_ASSERT_EQUAL(fds_open(), before);
}

static void a_child_that_cannot_be_started_leaves_nothing(void)
{
    run_both(wrong_fiber);
}

static const struct test tests[] = {
    TEST(a_child_gets_what_it_was_given_and_nothing_else),
    TEST(waiting_for_a_child_tells_how_it_ended),
    TEST(a_child_that_cannot_be_started_leaves_nothing),
};

int main(int argc, char **argv)
{
    if (argc > 1 && strncmp(argv[1], "--", 2) == 0) {
        return child_main(argc, argv);
    }
    ssize_t len = readlink("/proc/self/exe", self_path, sizeof self_path - 1);
    if (len <= 0) {
        return 2;
    }
    self_path[len] = '\0';
    return run_tests("child", tests, COUNT_OF(tests), argc, argv);
}
