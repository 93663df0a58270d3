/* Child processes of plugins: they get default signals, a process group of their own, the given descriptors and
 * environment, and nothing else. */
#include "plugin/call_internal.h"

#include "base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_FD_MAX = 255 }; /* the highest number a plugin may ask for */

/* ---- which descriptors ---- */

/* What a child's descriptors come from. The sources are copied beyond all numbers that the child will use, so that
 * giving one its number never overwrites another that is still to be given. */
struct child_fds {
    int source[CHILD_FD_MAX + 1]; /* by the child's number: our copy, or -1 */
    int highest;                  /* at least 2 */
};

static void child_fds_clear(struct child_fds *fds)
{
    for (int i = 0; i <= CHILD_FD_MAX; i++) {
        if (fds->source[i] >= 0) {
            (void)close(fds->source[i]); /* a copy */
        }
    }
}

static int check_numbers(const struct sg_spawn *spawn, int *ret_highest, struct sg_error *err)
{
    bool is_given[CHILD_FD_MAX + 1] = {false};
    int highest = 2;
    for (size_t i = 0; i < spawn->fds_count; i++) {
        int number = spawn->fds[i].child_fd;
        if (number < 0 || number > CHILD_FD_MAX) {
            return error_set(err, SG_E_INVALID, "spawn(): child_fd must be within 0 and %d, not %d",
                             CHILD_FD_MAX, number);
        }
        if (is_given[number]) {
            return error_set(err, SG_E_INVALID, "spawn(): child_fd %d is given twice", number);
        }
        is_given[number] = true;
        highest = number > highest ? number : highest;
    }
    *ret_highest = highest;
    return 0;
}

static int child_fds_init(struct child_fds *fds, const struct sg_spawn *spawn, struct sg_error *err)
{
    for (int i = 0; i <= CHILD_FD_MAX; i++) {
        fds->source[i] = -1;
    }
    fds->highest = 2;
    int code = check_numbers(spawn, &fds->highest, err);
    for (size_t i = 0; code == 0 && i < spawn->fds_count; i++) {
        int copy = fcntl(spawn->fds[i].fd, F_DUPFD_CLOEXEC, fds->highest + 1);
        if (copy < 0) {
            code = error_set(err, errno == EBADF ? SG_E_INVALID : SG_E_LIMIT,
                             "spawn(): cannot give descriptor %d to a child: %s", spawn->fds[i].fd,
                             strerror(errno));
        }
        fds->source[spawn->fds[i].child_fd] = copy;
    }
    return code;
}

/* Everything above 2 that was not given is closed, close-on-exec or not. Errors are out of memory only. */
static int add_fds(posix_spawn_file_actions_t *actions, const struct child_fds *fds)
{
    int error = 0;
    for (int i = 0; error == 0 && i <= fds->highest; i++) {
        if (fds->source[i] >= 0) {
            error = posix_spawn_file_actions_adddup2(actions, fds->source[i], i);
        } else if (i < 2) {
            error = posix_spawn_file_actions_addopen(actions, i, "/dev/null",
                                                     i == 0 ? O_RDONLY : O_WRONLY, 0);
        } else if (i > 2) {
            error = posix_spawn_file_actions_addclose(actions, i);
        }
    }
    return error != 0 ? error : posix_spawn_file_actions_addclosefrom_np(actions, fds->highest + 1);
}

/* ---- starting ---- */

static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    int error = posix_spawnattr_setsigdefault(attributes, &all);
    error = error != 0 ? error : posix_spawnattr_setsigmask(attributes, &none);
    error = error != 0 ? error : posix_spawnattr_setpgroup(attributes, 0);
    return error != 0 ? error
                      : posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGDEF |
                                                                 POSIX_SPAWN_SETSIGMASK |
                                                                 POSIX_SPAWN_SETPGROUP);
}

static int start(const struct sg_spawn *spawn, const struct child_fds *fds, pid_t *ret_pid)
{
    const char *const only_path[] = {spawn->path, NULL};
    const char *const nothing[] = {NULL};
    const char *const *argv = spawn->argv != NULL ? spawn->argv : only_path;
    const char *const *envp = spawn->envp != NULL ? spawn->envp : nothing;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    CHECK(posix_spawn_file_actions_init(&actions) == 0);
    CHECK(posix_spawnattr_init(&attributes) == 0);
    int error = add_fds(&actions, fds);
    error = error != 0 ? error : set_attributes(&attributes);
    if (error == 0) { /* posix_spawn() does not change them, whatever its types say */
        error = posix_spawn(ret_pid, spawn->path, &actions, &attributes, (char *const *)argv,
                            (char *const *)envp);
    }
    (void)posix_spawnattr_destroy(&attributes);       /* cannot fail */
    (void)posix_spawn_file_actions_destroy(&actions); /* likewise */
    return error;
}

/* The child has not been waited for, so that its number is still its own. */
static int open_pidfd(pid_t pid, const char *path, struct sg_child *ret_child, struct sg_error *err)
{
    int pidfd = pidfd_open(pid, 0);
    if (pidfd < 0) {
        int error = errno;
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        return error_set(err, SG_E_LIMIT, "spawn(): no descriptor to watch '%s' with: %s", path,
                         strerror(error));
    }
    *ret_child = (struct sg_child){.pid = pid, .pidfd = pidfd};
    return 0;
}

static int spawn_child(const struct sg_spawn *spawn, struct sg_child *ret_child,
                       struct sg_error *err)
{
    if (spawn->path == NULL || spawn->path[0] != '/') {
        return error_set(err, SG_E_INVALID, "spawn(): path must be absolute");
    }
    struct child_fds fds;
    pid_t pid = -1;
    int code = child_fds_init(&fds, spawn, err);
    if (code == 0) {
        int error = start(spawn, &fds, &pid);
        code = error == 0 ? 0
                          : error_set(err, SG_E_UNAVAILABLE, "cannot start '%s': %s", spawn->path,
                                      strerror(error));
    }
    child_fds_clear(&fds);
    return code != 0 ? code : open_pidfd(pid, spawn->path, ret_child, err);
}

/* The plugin's request at the core's sizes. */
static int spawn_take(const struct sg_call *call, const struct sg_spawn *from, struct sg_spawn *ret,
                      struct sg_spawn_fd fds[CHILD_FD_MAX + 1], struct sg_error *err)
{
    struct_take(call, SG_STRUCT_SPAWN, from, 0, ret, sizeof *ret);
    if (ret->fds_count > CHILD_FD_MAX + 1) {
        return error_set(err, SG_E_INVALID, "spawn(): %zu descriptors are more than %d",
                         ret->fds_count, CHILD_FD_MAX + 1);
    }
    for (size_t i = 0; i < ret->fds_count; i++) {
        struct_take(call, SG_STRUCT_SPAWN_FD, ret->fds, i, &fds[i], sizeof fds[i]);
    }
    ret->fds = fds;
    return 0;
}

int host_spawn(struct sg_call *call, const struct sg_spawn *spawn, struct sg_child *ret_child,
               struct sg_error *err)
{
    struct sg_spawn copy;
    struct sg_spawn_fd fds[CHILD_FD_MAX + 1];
    struct sg_child child;
    if (!call_is_ours(call, "spawn", err)) {
        return SG_E_INTERNAL;
    }
    if (call_is_cancelled(call)) {
        return call_wait_failed(call, "spawn", SG_E_CANCELLED, err);
    }
    int code = spawn_take(call, spawn, &copy, fds, err);
    code = code == 0 ? spawn_child(&copy, &child, err) : code;
    if (code == 0) {
        struct_give(call, SG_STRUCT_CHILD, &child, sizeof child, ret_child);
    }
    return code;
}

/* ---- waiting ---- */

struct wait_child_arguments {
    const struct sg_child *child;
    int64_t deadline;
    int *ret_status;
};

/* What waitpid() would have said. */
static int wait_status(const siginfo_t *info)
{
    if (info->si_code == CLD_EXITED) {
        return (info->si_status & 0xFF) << 8;
    }
    return info->si_status | (info->si_code == CLD_DUMPED ? WCOREFLAG : 0);
}

static int part_wait_child(struct sg_call *call, void *arguments, const struct sg_sink *sink,
                           struct sg_error *err)
{
    struct wait_child_arguments *a = arguments;
    siginfo_t info = {0};
    int events = 0;
    (void)sink;
    int code = fiber_wait_fd(a->child->pidfd, SG_READ, a->deadline, &events);
    if (code == SG_E_TIMEOUT || code == SG_E_CANCELLED) {
        return call_wait_failed(call, "wait_child", code, err);
    }
    if (code != 0 || waitid(P_PIDFD, (id_t)a->child->pidfd, &info, WEXITED | WNOHANG) != 0 ||
        info.si_pid == 0) {
        return error_set(err, SG_E_INVALID, "wait_child(): process %lld is not, or no longer, ours",
                         (long long)a->child->pid);
    }
    *a->ret_status = wait_status(&info);
    return 0;
}

int host_wait_child(struct sg_call *call, const struct sg_child *child, int64_t ms, int *ret_status,
                    struct sg_error *err)
{
    struct sg_child copy;
    struct wait_child_arguments arguments = {&copy, deadline_in(ms), ret_status};
    if (!call_is_ours(call, "wait_child", err)) {
        return SG_E_INTERNAL;
    }
    struct_take(call, SG_STRUCT_CHILD, child, 0, &copy, sizeof copy);
    return call_cross(call, "wait_child", part_wait_child, &arguments, NULL, err);
}
