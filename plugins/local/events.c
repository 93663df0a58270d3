/* What comes from a box: which of its descriptors has something, and reading from each without ever blocking. */
#include "local.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

int box_wait(struct sg_call *call, const struct box *box, int64_t ms, unsigned *ret_ready,
             struct sg_error *err)
{
    int events = 0;
    *ret_ready = 0;
    int result = sg->wait_fd(call, box->epoll, SG_READ, ms, &events, err);
    if (result == SG_E_TIMEOUT && ms >= 0 && sg->time_left_ms(call) > 0) {
        return 0; /* our own time, not the call's */
    }
    if (result != 0) {
        return result;
    }
    struct epoll_event ready[5];
    int count = epoll_wait(box->epoll, ready, 5, 0);
    for (int i = 0; i < count; i++) {
        *ret_ready |= ready[i].data.u32;
    }
    if ((*ret_ready & READY_WAKE) != 0) {
        uint64_t times;
        (void)!read(box->wake, &times, sizeof times);
    }
    return 0;
}

/* A descriptor at its end must leave the epoll, which would report it for ever. */
static void fd_end(const struct box *box, int *fd)
{
    epoll_ctl(box->epoll, EPOLL_CTL_DEL, *fd, NULL);
    close(*fd);
    *fd = -1;
}

/* The host's pid of a pidfd, from the kernel; -1 if it has ended. */
static pid_t pid_of(int pidfd)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return -1;
    }
    size_t len = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[len] = '\0';
    const char *line = strstr(text, "\nPid:");
    return line == NULL ? -1 : (pid_t)strtol(line + 5, NULL, 10);
}

/* The kernel kills for a group's memory by SIGKILL, and counts it. (Where that happened to a process of the same run before,
 * and its own code then killed the interpreter, the memory is what is told.) */
static bool was_killed_for_memory(const struct box *box, const struct wire_status *status)
{
    return WIFSIGNALED(status->value) && WTERMSIG(status->value) == SIGKILL &&
           status->bytes > box->group_kills;
}

static void status_apply(struct box *box, const struct wire_status *status, int fd)
{
    switch (status->kind) {
    case WIRE_READY:
        if (fd >= 0 && box->driver < 0) {
            box->driver = fd;
            box->driver_pid = pid_of(fd);
            return;
        }
        break;
    case WIRE_FAILED:
        box->end = END_SETUP;
        box->setup_error = status->value;
        snprintf(box->setup_step, sizeof box->setup_step, "%.*s",
                 (int)strnlen(status->step, sizeof status->step), status->step);
        break;
    case WIRE_ENDED:
        box->wait_status = status->value;
        box->end = box->end != END_NONE                 ? box->end
                   : was_killed_for_memory(box, status) ? END_MEMORY
                                                        : END_DRIVER;
        break;
    case WIRE_MEMORY:
        box->memory_bytes = status->bytes;
        box->memory_killed = true;
        box->end = status->driver_killed ? END_MEMORY : box->end;
        break;
    case WIRE_LIFE_OVER:
        box->end = END_LIFE;
        break;
    default:
        break;
    }
    if (fd >= 0) {
        close(fd);
    }
}

/* One message of pid 1. 1, 0: none now, -1: closed. */
static int status_receive(struct box *box)
{
    struct wire_status status;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = {&status, sizeof status};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t len = recvmsg(box->status, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (len < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    if (len < 0 && errno == ECONNRESET) {
        return 1; /* it left before it read all orders; told once, before what it had sent */
    }
    struct cmsghdr *header = len > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    int fd = -1;
    if (header != NULL && header->cmsg_type == SCM_RIGHTS) {
        memcpy(&fd, CMSG_DATA(header), sizeof fd);
    }
    if (len != (ssize_t)sizeof status || status.magic != WIRE_MAGIC) {
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    status_apply(box, &status, fd);
    return 1;
}

void box_read_status(struct box *box)
{
    int got = 1;
    while (box->status >= 0 && (got = status_receive(box)) > 0) {
    }
    if (got < 0) {
        /* Not closed here: destroy() and touch() may be sending on it. */
        epoll_ctl(box->epoll, EPOLL_CTL_DEL, box->status, NULL);
        box->end = box->end == END_NONE ? END_UNKNOWN : box->end;
    }
}

/* The kernel's word on who sent a packet. No room is given for descriptors: the kernel closes them, here and now, which
 * may take its time for what they hold. Nothing of ours sends any: such a box is ended. (A close that waits, of a socket
 * with SO_LINGER, is kept away by the filter.) */
static ssize_t packet_receive(struct box *box, void *packet, size_t size, pid_t *ret_pid,
                              bool *ret_whole)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct iovec iov = {packet, size};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t len = recvmsg(box->control, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (len < 0) {
        return len;
    }
    *ret_pid = 0; /* nobody's */
    if ((message.msg_flags & MSG_CTRUNC) != 0) {
        box->end = box->end == END_NONE ? END_INTRUDED : box->end;
        box_kill(box);
        return len;
    }
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header != NULL && header->cmsg_level == SOL_SOCKET &&
        header->cmsg_type == SCM_CREDENTIALS) {
        struct ucred sender;
        memcpy(&sender, CMSG_DATA(header), sizeof sender);
        *ret_pid = sender.pid;
    }
    *ret_whole = (message.msg_flags & MSG_TRUNC) == 0;
    return len;
}

ssize_t box_read_packet(struct box *box, void *packet, size_t size, size_t *ret_bytes)
{
    pid_t pid = 0;
    bool whole = false;
    *ret_bytes = 0;
    if (box->control < 0) {
        return -1;
    }
    ssize_t len = packet_receive(box, packet, size, &pid, &whole);
    if (len < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    if (len < 0 || (len == 0 && pid == 0)) {
        fd_end(box, &box->control);
        return -1;
    }
    *ret_bytes = (size_t)len + 64; /* an empty packet costs something too */
    bool is_drivers = pid == box->driver_pid && pid > 0;
    return is_drivers && whole ? len : 0;
}

ssize_t box_read_pipe(struct box *box, int *fd, void *data, size_t size)
{
    if (*fd < 0) {
        return -1;
    }
    ssize_t len = read(*fd, data, size);
    if (len < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    if (len <= 0) {
        fd_end(box, fd);
        return -1;
    }
    return len;
}

static void size_text(uint64_t bytes, char *text, size_t size)
{
    bool is_mib = bytes % (1u << 20) == 0;
    snprintf(text, size, "%llu%s", (unsigned long long)(is_mib ? bytes >> 20 : bytes >> 10),
             is_mib ? "MiB" : "KiB");
}

static void wait_status_text(int status, char *text, size_t size)
{
    if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));
        snprintf(text, size, "the interpreter crashed with SIG%s", name != NULL ? name : "?");
    } else {
        snprintf(text, size, "the interpreter exited with status %d", WEXITSTATUS(status));
    }
}

const char *box_end_text(const struct local *local, const struct box *box, char *text, size_t size)
{
    char limit[32];
    size_text(local->config->memory, limit, sizeof limit);
    switch (box->end) {
    case END_DRIVER:
        wait_status_text(box->wait_status, text, size);
        break;
    case END_MEMORY:
        snprintf(text, size, "the interpreter ran out of memory (limit %s)", limit);
        break;
    case END_INTRUDED:
        snprintf(
            text, size,
            "the code passed descriptors over the interpreter's own connection and was killed");
        break;
    case END_LIFE:
        snprintf(text, size, "the container was not used for its life and ended by itself");
        break;
    case END_SETUP:
        snprintf(text, size, "cannot %s: %s", box->setup_step, strerror(box->setup_error));
        break;
    default:
        snprintf(text, size, "the container was ended from outside");
        break;
    }
    return text;
}
