/* Starting a box: its sockets and pipes, one clone3() into all new namespaces, the id maps, the reply.
 *
 * The maps are written from outside, by the broker or by a template (maps.c). So root needs no unprivileged user
 * namespaces for boxes that are copies of the broker, and the process that becomes pid 1 never has to be root on the host
 * with an identity that it could go back to. */
#include "template.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* All descriptors that a box needs, both ends. */
struct plumbing {
    int control[2], status[2];    /* [0] the gateway's, [1] the box's */
    int out[2], err[2], start[2]; /* [0] reading, [1] writing */
    struct box_birth birth;
};

static void plumbing_clear(struct plumbing *plumbing)
{
    fds_close((int *)plumbing, offsetof(struct plumbing, birth) / sizeof(int));
    fds_close(&plumbing->birth.pidfd, 1);
}

/* The step that failed, or NULL. */
static const char *plumbing_make(struct plumbing *plumbing, uint32_t host_id)
{
    memset(plumbing, 0xff, sizeof *plumbing);
    plumbing->birth.is_in_group = false;
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

/* Born in its group where that is v2's: it costs nothing there. */
static pid_t clone_namespaces(const struct box_group *group, struct box_birth *birth)
{
    struct clone_args args = {.flags = BOX_NAMESPACES | CLONE_PIDFD,
                              .pidfd = (uint64_t)(uintptr_t)&birth->pidfd,
                              .exit_signal = SIGCHLD};
    birth->is_in_group = group->into >= 0;
    if (group->into >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)group->into;
    }
    return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

/* A copy of the broker. The step that failed, or NULL. */
static const char *clone_broker(const struct box_maker *maker, uint32_t host_id,
                                const struct box_fds *fds, int other_end, int64_t life_ms,
                                struct box_birth *birth)
{
    birth->pid = clone_namespaces(&fds->group, birth);
    if (birth->pid < 0) {
        return "create namespaces (clone3)";
    }
    if (birth->pid == 0) {
        struct box_limits limits = maker->limits;
        int status_fd;
        close(other_end);
        box_enter(&limits, fds, life_ms, &status_fd);
        box_run_driver(&limits, status_fd);
    }
    if (!proc_write(birth->pid, "oom_score_adj", OOM_SCORE)) {
        return "make the box the first to be killed where the host lacks memory (oom_score_adj)";
    }
    const struct id_map users = {BOX_UID, host_id != 0 ? host_id : (uint32_t)geteuid(), 1};
    const struct id_map groups = {BOX_UID, host_id != 0 ? host_id : (uint32_t)getegid(), 1};
    return maps_write(birth->pid, &users, &groups);
}

/* The gateway's ends leave the plumbing. */
static void ends_take(struct plumbing *plumbing, struct box_group *group, struct box_ends *ret)
{
    int *const ends[WIRE_FDS] = {&plumbing->control[0], &plumbing->status[0],   &plumbing->out[0],
                                 &plumbing->err[0],     &plumbing->birth.pidfd, &group->events};
    for (size_t i = 0; i < WIRE_FDS; i++) {
        ret->fds[i] = *ends[i];
        *ends[i] = -1;
    }
}

/* The step that failed, or NULL. */
static const char *start_in(const struct box_maker *maker, struct box_template *template,
                            uint32_t host_id, int64_t life_ms, struct plumbing *plumbing,
                            const struct box_group *group)
{
    const char *failed = plumbing_make(plumbing, host_id);
    if (failed != NULL) {
        return failed;
    }
    const struct box_fds fds = {
        plumbing->start[0], maker->lifeline,  plumbing->status[1], plumbing->control[1],
        plumbing->out[1],   plumbing->err[1], maker->init,         *group};
    struct box_birth *birth = &plumbing->birth;
    failed = template != NULL
                 ? template_clone(template, maker, host_id, &fds, life_ms, birth)
                 : clone_broker(maker, host_id, &fds, plumbing->start[1], life_ms, birth);
    if (failed == NULL && !group_join(maker->groups, group, birth->pid, birth->is_in_group)) {
        failed = "join the control group of a box";
    }
    if (failed == NULL && write(plumbing->start[1], "g", 1) != 1) {
        failed = "let the box go";
    }
    return failed; /* it reads the end of file in place of the byte, and leaves */
}

const char *box_start(const struct box_maker *maker, struct box_template *template,
                      uint32_t host_id, int64_t life_ms, struct box_ends *ret)
{
    struct plumbing plumbing;
    struct box_group group;
    *ret = (struct box_ends){.pid = -1, .fds = {-1, -1, -1, -1, -1, -1}};
    if (!group_take(maker->groups, &group)) {
        return "make the control group of a box";
    }
    const char *failed = start_in(maker, template, host_id, life_ms, &plumbing, &group);
    int error = errno;
    ret->pid = plumbing.birth.pid;
    if (ret->pid > 0) {
        group_note(maker->groups, &group, ret->pid);
    } else {
        group_drop(maker->groups, &group);
    }
    if (failed == NULL) {
        ends_take(&plumbing, &group, ret);
    }
    plumbing_clear(&plumbing);
    box_group_close(&group);
    errno = error;
    return failed;
}
