/* The table of boxes: handles, references, the end of a box's descriptors. */
#include "local.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

struct box *box_new(void)
{
    struct box *box = calloc(1, sizeof *box);
    if (box != NULL) {
        box->magic = BOX_MAGIC;
        box->refs = 1;
        box->control = box->status = box->out = box->err = -1;
        box->init = box->driver = box->epoll = box->wake = box->events = -1;
    }
    return box;
}

static void box_free(struct box *box)
{
    const int fds[BOX_FDS] = {box->control, box->status, box->out,  box->err,   box->init,
                              box->driver,  box->epoll,  box->wake, box->events};
    for (int i = 0; i < BOX_FDS; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
    box->magic = 0;
    free(box);
}

static bool watch(const struct box *box, int fd, unsigned ready)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = ready};
    return epoll_ctl(box->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

bool box_prepare(struct box *box)
{
    box->epoll = epoll_create1(EPOLL_CLOEXEC);
    box->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return box->epoll >= 0 && box->wake >= 0 && watch(box, box->control, READY_CONTROL) &&
           watch(box, box->status, READY_STATUS) && watch(box, box->out, READY_STDOUT) &&
           watch(box, box->err, READY_STDERR) && watch(box, box->wake, READY_WAKE);
}

int box_add(struct local *local, struct box *box, struct sg_error *err)
{
    uint64_t random[2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        return sg->fail(err, SG_E_INTERNAL, "the system gave no random bytes for a handle");
    }
    pthread_mutex_lock(&local->lock);
    box->number = ++local->boxes_made;
    snprintf(box->handle, sizeof box->handle, "box-%llu-%016llx%016llx",
             (unsigned long long)box->number, (unsigned long long)random[0],
             (unsigned long long)random[1]);
    struct box **bucket = &local->buckets[box->number % BOX_BUCKETS];
    box->next = *bucket;
    *bucket = box;
    box->in_table = true;
    box->refs++;
    pthread_mutex_unlock(&local->lock);
    return 0;
}

struct box *box_find(struct local *local, const char *handle)
{
    char *end = NULL;
    if (strncmp(handle, "box-", 4) != 0) {
        return NULL;
    }
    uint64_t number = strtoull(handle + 4, &end, 10);
    pthread_mutex_lock(&local->lock);
    struct box *box = local->buckets[number % BOX_BUCKETS];
    while (box != NULL && (box->number != number || strcmp(box->handle, handle) != 0)) {
        box = box->next;
    }
    if (box != NULL) {
        box->refs++;
    }
    pthread_mutex_unlock(&local->lock);
    return box;
}

void box_remove(struct local *local, struct box *box)
{
    pthread_mutex_lock(&local->lock);
    bool was_in_table = box->in_table;
    if (was_in_table) {
        struct box **at = &local->buckets[box->number % BOX_BUCKETS];
        while (*at != box) {
            at = &(*at)->next;
        }
        *at = box->next;
        box->in_table = false;
    }
    pthread_mutex_unlock(&local->lock);
    if (was_in_table) {
        box_unref(local, box);
    }
}

void box_unref(struct local *local, struct box *box)
{
    pthread_mutex_lock(&local->lock);
    bool last = --box->refs == 0;
    pthread_mutex_unlock(&local->lock);
    if (last) {
        box_free(box);
    }
}

ssize_t socket_send_with_fd(int socket_fd, const void *packet, size_t len, int fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    memset(&control, 0, sizeof control);
    struct iovec iov = {(void *)(uintptr_t)packet, len};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    return sendmsg(socket_fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void box_wake(struct box *box)
{
    uint64_t one = 1;
    (void)!write(box->wake, &one, sizeof one); /* full means that it is awake */
}

void box_kill(const struct box *box)
{
    /* Fails only if it has ended already, which is what is wanted. */
    (void)syscall(SYS_pidfd_send_signal, box->init, SIGKILL, NULL, 0);
}

bool box_interrupt(const struct box *box)
{
    return box->driver >= 0 && syscall(SYS_pidfd_send_signal, box->driver, SIGINT, NULL, 0) == 0;
}

bool box_order(const struct box *box, enum wire_order_kind kind, int64_t life_ms)
{
    struct wire_order order = {.magic = WIRE_MAGIC, .kind = kind, .life_ms = life_ms};
    ssize_t len = send(box->status, &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT);
    return len == (ssize_t)sizeof order || errno == EAGAIN;
}

int box_order_file(const struct box *box, int socket_fd)
{
    struct wire_order order = {.magic = WIRE_MAGIC, .kind = WIRE_FILE};
    ssize_t len = socket_send_with_fd(box->status, &order, sizeof order, socket_fd);
    return len >= 0 ? 0 : errno == ETOOMANYREFS ? EAGAIN : errno;
}
