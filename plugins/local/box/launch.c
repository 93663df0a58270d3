/* The last steps of setting a box up: the interpreter's process is made, and pid 1 becomes the program that watches over
 * it. Both go on at one time. No code of a user runs before that program is there, since the gateway sends none before it
 * has been told so; and it cannot look into pid 1, neither as a copy of the broker or of a template, which is not dumpable
 * any more, nor as the new program, which nobody may read. */
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DRIVER_CONTROL_FD 3

static void driver_settle(const struct box_limits *limits, const struct box_fds *fds)
{
    sigset_t none;
    sigemptyset(&none);
    box_set_filter(limits, false, fds->status);
    /* Dumpable, whatever pid 1 was, for /proc/self. */
    if (!group_enter_work(&fds->group)) {
        box_fail(fds->status, "join the control group of a box");
    }
    if (setsid() < 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0 || dup2(fds->out, 1) != 1 ||
        dup2(fds->err, 2) != 2 || dup2(fds->control, DRIVER_CONTROL_FD) != DRIVER_CONTROL_FD ||
        chdir("/home/user") != 0 || !box_limit_driver(limits) ||
        sigprocmask(SIG_SETMASK, &none, NULL) != 0) {
        box_fail(fds->status, "prepare the interpreter's process");
    }
}

/* Onto their numbers in the new program, which they reach because dup2() leaves them open over an exec. What is not there
 * leaves its number free. */
static bool arrange(const int from[INIT_FDS_END])
{
    for (int fd = INIT_FD_CONFIG; fd < INIT_FDS_END; fd++) {
        if (from[fd] < 0 ? close(fd) != 0 && errno != EBADF : dup2(from[fd], fd) != fd) {
            return false;
        }
    }
    return true;
}

static _Noreturn void become_init(const struct box_limits *limits, const struct box_fds *fds,
                                  pid_t driver, int64_t life_ms)
{
    static char name[] = "box-init";
    char *const argv[] = {name, NULL}, *const envp[] = {NULL};
    const struct init_config config = {
        .magic = WIRE_MAGIC, .driver = driver, .life_ms = life_ms, .limits = *limits};
    int ends[2];
    box_set_filter(limits, true, fds->status);
    /* All of it fits into an empty pipe. */
    if (pipe2(ends, O_CLOEXEC) != 0 ||
        write(ends[1], &config, sizeof config) != (ssize_t)sizeof config) {
        box_fail(fds->status, "tell init what to do");
    }
    int from[INIT_FDS_END] = {0};
    from[INIT_FD_CONFIG] = fcntl(ends[0], F_DUPFD_CLOEXEC, BOX_KEPT_FD);
    from[INIT_FD_STATUS] = fds->status;
    from[INIT_FD_LIFELINE] = fds->lifeline;
    from[INIT_FD_EVENTS] = fds->group.events;
    from[INIT_FD_FREEZE] = fds->group.freeze;
    if (arrange(from)) {
        syscall(SYS_execveat, fds->init, "", argv, envp, AT_EMPTY_PATH);
    }
    box_fail(fds->status, "run init in the box");
}

void box_launch(const struct box_limits *limits, const struct box_fds *fds, int64_t life_ms)
{
    pid_t driver = fork();
    if (driver < 0) {
        box_fail(fds->status, "start the interpreter (fork)");
    }
    if (driver > 0) {
        become_init(limits, fds, driver, life_ms);
    }
    driver_settle(limits, fds);
}
