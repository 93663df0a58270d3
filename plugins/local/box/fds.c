/* Packets with descriptors over the sockets between broker, templates, pid 1 and the gateway. */
#include "box.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int) * PACKET_FDS_MAX)];
};

bool packet_send(int socket_fd, const void *packet, size_t len, const int *fds, size_t count)
{
    union control control;
    struct iovec iov = {(void *)(uintptr_t)packet, len};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    if (count > 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * count);
        memcpy(CMSG_DATA(header), fds, sizeof(int) * count);
    }
    return sendmsg(socket_fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len;
}

ssize_t packet_receive(int socket_fd, void *packet, size_t size, int *fds, size_t count, int flags)
{
    union control control;
    struct iovec iov = {packet, size};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CMSG_SPACE(sizeof(int) * count)};
    for (size_t i = 0; i < count; i++) {
        fds[i] = -1;
    }
    ssize_t len = recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC | flags);
    struct cmsghdr *header = len > 0 && count > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
        size_t bytes = header->cmsg_len - CMSG_LEN(0); /* at most what there was room for */
        memcpy(fds, CMSG_DATA(header), bytes);
    }
    return len;
}

void fds_close(int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
            fds[i] = -1;
        }
    }
}

void box_fds_list(struct box_fds *fds, int *ret_fds[BOX_FDS_MAX])
{
    int *const list[BOX_FDS_MAX] = {&fds->start,        &fds->lifeline,     &fds->status,
                                    &fds->control,      &fds->out,          &fds->err,
                                    &fds->init,         &fds->group.events, &fds->group.work,
                                    &fds->group.freeze, &fds->group.into};
    memcpy(ret_fds, list, sizeof list);
}
