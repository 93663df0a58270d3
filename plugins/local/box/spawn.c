/* Starting a box: its sockets and pipes, one clone3() into all new namespaces, the id maps, the reply.
 *
 * The maps are written from outside by the broker, as root for any host uid and as an ordinary user for its own. So
 * root needs no unprivileged user namespaces, and the process that becomes pid 1 never has to be root on the host with
 * an identity that it could go back to. */
#include "box.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAMESPACES \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)

#define OOM_SCORE "500" /* of -1000 to 1000 */

/* All descriptors that a box needs, both ends. */
struct plumbing {
    int control[2], status[2];    /* [0] the gateway's, [1] the box's */
    int out[2], err[2], start[2]; /* [0] reading, [1] writing */
    int init;                     /* pidfd of pid 1 */
};

#define PLUMBING_INTS (sizeof(struct plumbing) / sizeof(int))

static void plumbing_clear(struct plumbing *plumbing)
{
    int fds[PLUMBING_INTS];
    memcpy(fds, plumbing, sizeof fds);
    for (size_t i = 0; i < PLUMBING_INTS; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
}

/* The step that failed, or NULL. */
static const char *plumbing_make(struct plumbing *plumbing, uint32_t host_id)
{
    memset(plumbing, 0xff, sizeof *plumbing);
    int packets = SOCK_SEQPACKET | SOCK_CLOEXEC, yes = 1;
    /* The kernel then says of each packet which process sent it; set before the box can send any. */
    if (socketpair(AF_UNIX, packets, 0, plumbing->control) != 0 ||
        setsockopt(plumbing->control[0], SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) != 0 ||
        socketpair(AF_UNIX, packets, 0, plumbing->status) != 0 ||
        pipe2(plumbing->out, O_CLOEXEC) != 0 || pipe2(plumbing->err, O_CLOEXEC) != 0 ||
        pipe2(plumbing->start, O_CLOEXEC) != 0) {
        return "make sockets and pipes";
    }
    /* Owned by the box's uid, or /dev/stderr could not be opened again inside. */
    if (host_id != 0 && (fchown(plumbing->out[1], host_id, host_id) != 0 ||
                         fchown(plumbing->err[1], host_id, host_id) != 0)) {
        return "use the host uid of a box";
    }
    return NULL;
}

static bool proc_write(pid_t pid, const char *name, const char *text)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t len = write(fd, text, strlen(text));
    int error = errno;
    close(fd);
    errno = error;
    return len == (ssize_t)strlen(text);
}

static bool write_map(pid_t pid, const char *name, uint32_t host_id)
{
    char line[64];
    snprintf(line, sizeof line, "%d %u 1\n", BOX_UID, (unsigned)host_id);
    return proc_write(pid, name, line);
}

/* The step that failed, or NULL. */
static const char *write_maps(pid_t pid, uint32_t host_id)
{
    if (!proc_write(pid, "setgroups", "deny")) {
        return "write setgroups of the user namespace";
    }
    if (!write_map(pid, "uid_map", host_id != 0 ? host_id : (uint32_t)geteuid())) {
        return "write uid_map of the user namespace";
    }
    if (!write_map(pid, "gid_map", host_id != 0 ? host_id : (uint32_t)getegid())) {
        return "write gid_map of the user namespace";
    }
    return NULL;
}

/* Born in its group where that is v2's: it costs nothing there. */
static pid_t clone_namespaces(const struct box_group *group, int *ret_pidfd)
{
    struct clone_args args = {.flags = NAMESPACES | CLONE_PIDFD,
                              .pidfd = (uint64_t)(uintptr_t)ret_pidfd,
                              .exit_signal = SIGCHLD};
    if (group->into >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)group->into;
    }
    return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

static bool send_with_fds(int socket_fd, const struct wire_reply *reply, const int *fds)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * WIRE_FDS)];
    } control;
    memset(&control, 0, sizeof control);
    struct iovec iov = {(void *)(uintptr_t)reply, sizeof *reply};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    if (fds != NULL) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        size_t count = fds[WIRE_FD_EVENTS] >= 0 ? WIRE_FDS : WIRE_FD_EVENTS;
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * count);
        message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        memcpy(CMSG_DATA(header), fds, sizeof(int) * count);
    }
    return sendmsg(socket_fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof *reply;
}

static pid_t refuse(int reply_fd, struct plumbing *plumbing, const char *step)
{
    struct wire_reply reply = {.magic = WIRE_MAGIC, .error = errno != 0 ? errno : EIO};
    snprintf(reply.step, sizeof reply.step, "%s", step);
    /* A gateway that no longer waits needs no answer. */
    (void)send_with_fds(reply_fd, &reply, NULL);
    plumbing_clear(plumbing);
    return -1;
}

/* What is done to the child from outside before it may begin; the step that failed, or NULL. */
static const char *child_prepare(const struct box_limits *limits, const struct box_group *group,
                                 pid_t pid, uint32_t host_id)
{
    /* Where memory runs short on the whole host, boxes go first. */
    if (!proc_write(pid, "oom_score_adj", OOM_SCORE)) {
        return "make the box the first to be killed where the host lacks memory (oom_score_adj)";
    }
    if (!group_join(limits->groups, group, pid)) {
        return "join the control group of a box";
    }
    return write_maps(pid, host_id);
}

static pid_t spawn_in(const struct box_limits *limits, uint32_t host_id, int lifeline,
                      int64_t life_ms, int reply_fd, const struct box_group *group)
{
    struct plumbing plumbing;
    const char *failed = plumbing_make(&plumbing, host_id);
    if (failed != NULL) {
        return refuse(reply_fd, &plumbing, failed);
    }
    pid_t pid = clone_namespaces(group, &plumbing.init);
    if (pid < 0) {
        return refuse(reply_fd, &plumbing, "create namespaces (clone3)");
    }
    if (pid == 0) {
        close(plumbing.start[1]);
        const struct box_fds fds = {
            plumbing.start[0], lifeline, plumbing.status[1], plumbing.control[1], plumbing.out[1],
            plumbing.err[1],   *group};
        box_enter(limits, &fds, life_ms);
    }
    failed = child_prepare(limits, group, pid, host_id);
    if (failed != NULL) {
        /* It reads the end of file in place of the byte and leaves; the main loop reaps it and frees the slot. */
        (void)refuse(reply_fd, &plumbing, failed);
        return pid;
    }
    struct wire_reply reply = {.magic = WIRE_MAGIC};
    const int fds[WIRE_FDS] = {plumbing.control[0], plumbing.status[0], plumbing.out[0],
                               plumbing.err[0],     plumbing.init,      group->events};
    /* If the reply cannot be sent, the status socket's other end closes with it and the box ends. */
    (void)send_with_fds(reply_fd, &reply, fds);
    (void)!write(plumbing.start[1], "g", 1);
    plumbing_clear(&plumbing);
    return pid;
}

pid_t box_spawn(const struct box_limits *limits, uint32_t host_id, int lifeline, int64_t life_ms,
                int reply_fd)
{
    struct box_group group;
    if (!group_take(limits->groups, &group)) {
        struct plumbing none;
        memset(&none, 0xff, sizeof none);
        return refuse(reply_fd, &none, "make the control group of a box");
    }
    pid_t pid = spawn_in(limits, host_id, lifeline, life_ms, reply_fd, &group);
    if (pid > 0) {
        group_note(limits->groups, &group, pid);
    } else {
        group_drop(limits->groups, &group);
    }
    box_group_close(&group);
    return pid;
}
