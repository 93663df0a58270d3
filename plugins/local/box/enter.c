/* Pid 1 of a box, from its first instruction to the start of the interpreter. The order matters:
 *
 *   cgroup namespace, identity, session,
 *   host name, loopback                        needs the capabilities of the new user namespace
 *   mounts, new root                           likewise
 *   limits                                     the number of processes counts this box alone only in its own namespace
 *   privileges
 *   not dumpable                               so that the box cannot look into pid 1 through /proc/1
 *   the system call filter                     nothing that needs more comes after
 *   interpreter                                the first and only code of a user
 */
#include "box.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KEPT_FD_FIRST 100 /* far above what the broker has open */
#define KEPT_FDS 9
#define DRIVER_CONTROL_FD 3

void box_fail(int status_fd, const char *format, ...)
{
    struct wire_status status = {.magic = WIRE_MAGIC, .kind = WIRE_FAILED, .value = errno};
    va_list args;
    va_start(args, format);
    vsnprintf(status.step, sizeof status.step, format, args);
    va_end(args);
    /* Nobody else could be told. */
    (void)send(status_fd, &status, sizeof status, MSG_NOSIGNAL | MSG_DONTWAIT);
    _exit(1);
}

/* Moves the descriptors of the box out of the way and closes everything else but 0, 1 and 2. */
static struct box_fds keep_only(const struct box_fds *given)
{
    struct box_fds fds = *given;
    int *const kept[KEPT_FDS] = {&fds.start,        &fds.lifeline,   &fds.status,
                                 &fds.control,      &fds.out,        &fds.err,
                                 &fds.group.events, &fds.group.work, &fds.group.freeze};
    for (int i = 0; i < KEPT_FDS; i++) {
        if (*kept[i] >= 0 && dup3(*kept[i], KEPT_FD_FIRST + i, O_CLOEXEC) < 0) {
            box_fail(given->status, "arrange descriptors");
        }
        *kept[i] = *kept[i] >= 0 ? KEPT_FD_FIRST + i : -1;
    }
    fds.group.into = -1;
    if (syscall(SYS_close_range, 3, KEPT_FD_FIRST - 1, 0) != 0 ||
        syscall(SYS_close_range, KEPT_FD_FIRST + KEPT_FDS, ~0u, 0) != 0) {
        box_fail(fds.status, "close foreign descriptors (close_range)");
    }
    return fds;
}

static void wait_for_maps(int start_fd)
{
    char byte;
    ssize_t len;
    do {
        len = read(start_fd, &byte, 1);
    } while (len < 0 && errno == EINTR);
    if (len != 1) {
        _exit(1); /* the broker has said why */
    }
    close(start_fd);
}

/* What the box sees of pid 1, in place of the broker's command line with the operator's settings. */
static void take_name(const struct box_limits *limits)
{
    static const char name[] = "box-init";
    prctl(PR_SET_NAME, name, 0, 0, 0);
    memset(limits->arguments, 0, limits->arguments_len);
    size_t len = limits->arguments_len < sizeof name ? limits->arguments_len : sizeof name;
    memcpy(limits->arguments, name, len);
}

/* Only now, so that its root is the group that the box has been put into: nothing above is seen. */
static void leave_groups_of_the_host(int status_fd)
{
    if (unshare(CLONE_NEWCGROUP) != 0) {
        box_fail(status_fd, "create a cgroup namespace (unshare)");
    }
}

static void take_identity(int status_fd)
{
    if (setresgid(BOX_UID, BOX_UID, BOX_UID) != 0 || setresuid(BOX_UID, BOX_UID, BOX_UID) != 0) {
        box_fail(status_fd, "become the box's user");
    }
    /* Changing the user made this process undumpable, and with that its /proc files root's. */
    if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0 || setsid() < 0) {
        box_fail(status_fd, "start a session");
    }
    if (sethostname("sandbox", 7) != 0) {
        box_fail(status_fd, "set the host name");
    }
}

/* The box's only interface; it is born down, and local servers of the user's need it. */
static void raise_loopback(int status_fd)
{
    struct ifreq request = {.ifr_name = "lo"};
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) != 0) {
        box_fail(status_fd, "raise the loopback interface");
    }
    close(fd);
}

static void use_null_device(int status_fd)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0 || dup2(fd, 0) < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0) {
        box_fail(status_fd, "open /dev/null in the box");
    }
    close(fd);
}

/* The interpreter's process up to its execve(). A failure's errno goes through `report_fd`, which closes by itself if
 * execve() succeeds. */
static _Noreturn void driver_exec(const struct box_limits *limits, const struct box_fds *fds,
                                  int report_fd)
{
    static const char *const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin",
                                              "HOME=/home/user",
                                              "USER=user",
                                              "LOGNAME=user",
                                              "LANG=C.UTF-8",
                                              "TERM=dumb",
                                              "MPLBACKEND=Agg",
                                              "OPENBLAS_NUM_THREADS=1",
                                              "OMP_NUM_THREADS=1",
                                              NULL};
    /* -I: no PYTHON* variables, no user site, no script folder on the path. -S: the driver does what site does, when there
     * is time for it. */
    const char *script = limits->compiled != NULL ? "/" BOX_DRIVER_COMPILED : "/" BOX_DRIVER_TEXT;
    const char *const run_script[] = {"python3", "-I", "-S", script, NULL};
    const char *const run_command[] = {"python3", "-I", "-S", "-c", limits->command, NULL};
    const char *const *argv = limits->command != NULL ? run_command : run_script;
    sigset_t none;
    sigemptyset(&none);
    /* Dumpable again, for /proc/self. */
    bool grouped = group_enter_work(&fds->group);
    bool ready = grouped && setsid() >= 0 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0;
    ready = ready && dup2(fds->out, 1) == 1 && dup2(fds->err, 2) == 2 &&
            dup2(fds->control, DRIVER_CONTROL_FD) == DRIVER_CONTROL_FD &&
            chdir("/home/user") == 0 && sigprocmask(SIG_SETMASK, &none, NULL) == 0 &&
            signal(SIGPIPE, SIG_DFL) != SIG_ERR && box_limit_driver(limits);
    if (ready) {
        execve(limits->python, (char *const *)(uintptr_t)argv,
               (char *const *)(uintptr_t)environment);
    }
    int error = grouped ? errno : -errno;
    (void)!write(report_fd, &error, sizeof error);
    _exit(127);
}

static pid_t driver_start(const struct box_limits *limits, const struct box_fds *fds)
{
    int report[2];
    if (pipe2(report, O_CLOEXEC) != 0) {
        box_fail(fds->status, "make a pipe");
    }
    pid_t pid = fork();
    if (pid < 0) {
        box_fail(fds->status, "start the interpreter (fork)");
    }
    if (pid == 0) {
        driver_exec(limits, fds, report[1]);
    }
    close(report[1]);
    int error = 0;
    if (read(report[0], &error, sizeof error) == (ssize_t)sizeof error) {
        errno = error < 0 ? -error : error;
        if (error < 0) {
            box_fail(fds->status, "join the control group of a box");
        }
        box_fail(fds->status, "run '%s' in the box", limits->python);
    }
    close(report[0]);
    close(fds->control);
    close(fds->out);
    close(fds->err);
    return pid;
}

static void report_ready(int status_fd, pid_t driver)
{
    struct wire_status status = {.magic = WIRE_MAGIC, .kind = WIRE_READY};
    int pidfd = (int)syscall(SYS_pidfd_open, driver, 0);
    if (pidfd < 0) {
        box_fail(status_fd, "open a pidfd");
    }
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    memset(&control, 0, sizeof control);
    struct iovec iov = {&status, sizeof status};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &pidfd, sizeof pidfd);
    if (sendmsg(status_fd, &message, MSG_NOSIGNAL) != (ssize_t)sizeof status) {
        _exit(1); /* nobody is there any more */
    }
    close(pidfd);
}

void box_enter(const struct box_limits *limits, const struct box_fds *given, int64_t life_ms)
{
    struct box_fds fds = keep_only(given);
    wait_for_maps(fds.start);
    umask(022);
    take_name(limits);
    leave_groups_of_the_host(fds.status);
    take_identity(fds.status);
    raise_loopback(fds.status);
    box_make_root(limits, fds.status);
    use_null_device(fds.status);
    box_limit_processors(limits, fds.status);
    box_set_limits(limits, fds.status);
    box_drop_privileges(fds.status);
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
        box_fail(fds.status, "hide pid 1 from the box");
    }
    box_set_filter(limits, fds.status);
    pid_t driver = driver_start(limits, &fds);
    report_ready(fds.status, driver);
    struct init init = {.limits = limits,
                        .status = fds.status,
                        .lifeline = fds.lifeline,
                        .driver = driver,
                        .group = fds.group,
                        .life_until = now_ms() + life_ms,
                        .freeze_at = INT64_MAX,
                        .busy = true};
    init_run(&init);
}
