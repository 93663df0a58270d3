/* The process that becomes a template, from its first instruction to the start of the interpreter. */
#include "template.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

struct id_map template_map(const struct box_limits *limits, bool is_group)
{
    if (limits->uid_is_shared) {
        uint32_t own = is_group ? (uint32_t)getegid() : (uint32_t)geteuid();
        return (struct id_map){BOX_UID, own, 1};
    }
    /* 0 stays free: nobody in a template is root even there. */
    return (struct id_map){1, limits->uid_base, limits->boxes_max + 1};
}

uint32_t template_own_id(const struct box_limits *limits)
{
    return limits->uid_is_shared ? BOX_UID : 1 + limits->boxes_max;
}

static void take_identity(const struct box_limits *limits, int socket_fd)
{
    uid_t id = template_own_id(limits);
    if (setresgid(id, id, id) != 0 || setresuid(id, id, id) != 0) {
        box_fail(socket_fd, "become the template's user");
    }
    /* Changing the user made this process undumpable, and with that its /proc files root's. */
    if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0 || setsid() < 0) {
        box_fail(socket_fd, "start a session");
    }
}

static _Noreturn void run_interpreter(const struct box_limits *limits, int socket_fd)
{
    const char *script = limits->compiled != NULL ? "/" BOX_DRIVER_COMPILED : "/" BOX_DRIVER_TEXT;
    const char *const argv[] = {"python3", "-I", "-S", script, "template", limits->preload, NULL};
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(limits->python, (char *const *)(uintptr_t)argv,
           (char *const *)(uintptr_t)box_environment);
    box_fail(socket_fd, "run '%s' as a template", limits->python);
}

void template_enter(const struct box_limits *limits, const struct template_fds *given)
{
    int fds[] = {given->start, given->socket, given->library};
    int *const list[] = {&fds[0], &fds[1], &fds[2]};
    box_keep_only(list, 3, &fds[1]);
    box_wait_for_start(fds[0]);
    umask(022);
    take_identity(limits, fds[1]);
    template_make_root(limits, fds[1]);
    box_use_null_device(fds[1]);
    if (!template_keep_privileges(!limits->uid_is_shared)) {
        box_fail(fds[1], "give up capabilities");
    }
    if (dup2(fds[1], TEMPLATE_FD_SOCKET) < 0 || dup2(fds[2], TEMPLATE_FD_LIBRARY) < 0 ||
        chdir("/home/user") != 0) {
        box_fail(fds[1], "arrange descriptors");
    }
    /* It hears of the broker's end by its socket too, but not while it loads modules. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) {
        box_fail(fds[1], "end with the broker");
    }
    run_interpreter(limits, fds[1]);
}
