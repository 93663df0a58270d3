/* Pid 1 of a box, from its first instruction to the start of the interpreter. The order matters:
 *
 *   cgroup namespace, identity, session,
 *   host name, loopback                        needs the capabilities of the new user namespace
 *   mounts, new root                           likewise
 *   limits                                     the number of processes counts this box alone only in its own namespace
 *   privileges
 *   not dumpable                               so that the box cannot look into pid 1 through /proc/1
 *   interpreter, init                          one process more; pid 1 becomes another program (launch.c)
 *   the system call filter                     of each; nothing that needs more comes after
 */
#include "box.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void box_keep_only(int *const *fds, size_t count, const int *status)
{
    int first = BOX_KEPT_FD, after = BOX_KEPT_FD + (int)count;
    for (int i = 0; i < (int)count; i++) {
        if (*fds[i] >= 0 && dup3(*fds[i], first + i, O_CLOEXEC) < 0) {
            box_fail(*status, "arrange descriptors");
        }
        *fds[i] = *fds[i] >= 0 ? first + i : -1;
    }
    if (syscall(SYS_close_range, 3, first - 1, 0) != 0 ||
        syscall(SYS_close_range, after, ~0u, 0) != 0) {
        box_fail(*status, "close foreign descriptors (close_range)");
    }
}

void box_wait_for_start(int start_fd)
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
    if (limits->arguments == NULL) {
        return; /* a template's own tells nothing */
    }
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

void box_use_null_device(int status_fd)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0 || dup2(fd, 0) < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0) {
        box_fail(status_fd, "open /dev/null in the box");
    }
    close(fd);
}

const char *const box_environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin",
                                       "HOME=/home/user",
                                       "USER=user",
                                       "LOGNAME=user",
                                       "LANG=C.UTF-8",
                                       "TERM=dumb",
                                       "MPLBACKEND=Agg",
                                       "OPENBLAS_NUM_THREADS=1",
                                       "OMP_NUM_THREADS=1",
                                       NULL};

void box_run_driver(const struct box_limits *limits, int status_fd)
{
    /* -I: no PYTHON* variables, no user site, no script folder on the path. -S: the driver does what site does, when there
     * is time for it. */
    const char *script = limits->compiled != NULL ? "/" BOX_DRIVER_COMPILED : "/" BOX_DRIVER_TEXT;
    const char *const run_script[] = {"python3", "-I", "-S", script, NULL};
    const char *const run_command[] = {"python3", "-I", "-S", "-c", limits->command, NULL};
    const char *const *argv = limits->command != NULL ? run_command : run_script;
    signal(SIGPIPE, SIG_DFL);
    execve(limits->python, (char *const *)(uintptr_t)argv,
           (char *const *)(uintptr_t)box_environment);
    box_fail(status_fd, "run '%s' in the box", limits->python);
}

void box_enter(struct box_limits *limits, const struct box_fds *given, int64_t life_ms,
               int *ret_status_fd)
{
    struct box_fds fds = *given;
    int *list[BOX_FDS_MAX];
    sigset_t all;
    sigfillset(&all); /* no end of the interpreter is missed; it gets them back itself */
    sigprocmask(SIG_BLOCK, &all, NULL);
    box_fds_list(&fds, list);
    box_keep_only(list, BOX_FDS_KEPT, &fds.status);
    box_wait_for_start(fds.start);
    umask(022);
    take_name(limits);
    leave_groups_of_the_host(fds.status);
    take_identity(fds.status);
    raise_loopback(fds.status);
    box_make_root(limits, fds.status);
    box_use_null_device(fds.status);
    box_limit_processors(limits, fds.status);
    box_set_limits(limits, fds.status);
    box_drop_privileges(fds.status);
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
        box_fail(fds.status, "hide pid 1 from the box");
    }
    box_launch(limits, &fds, life_ms);
    *ret_status_fd = fds.status;
}
