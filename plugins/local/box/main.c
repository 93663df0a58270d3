/* local-broker: makes boxes for local.so, and does nothing else.
 *
 * It is started once with a clean environment, has one thread, and reads from one socket: each packet asks for a box
 * and brings the socket on which the answer goes back. It ends when that socket is closed. It never sees what runs in
 * a box: the gateway gets the descriptors, and talks to the box itself.
 *
 * As root every box gets a host uid of its own, uid_base plus the number of a slot; a slot is free again when the box's
 * pid 1 has been reaped, which is when the kernel has ended everything in it. */
#include "box.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BOXES_MAX 4096
#define END_SECONDS 4

struct broker {
    struct box_limits limits;
    struct groups groups;
    int lifeline[2]; /* the reading end goes to every box; hangs up when this process ends */
    int signals;
    uint32_t next_slot; /* round and round, so that a uid is not used again at once */
    pid_t slots[BOXES_MAX];
};

int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "local-broker: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- command line: NAME=VALUE, every name once ---- */

struct argument {
    const char *name;
    uint64_t *number;
    const char **text;
};

static bool argument_take(const struct argument *argument, const char *value)
{
    if (argument->text != NULL) {
        *argument->text = value;
        return value[0] == '/';
    }
    char *end = NULL;
    errno = 0;
    *argument->number = strtoull(value, &end, 10);
    return errno == 0 && end != value && *end == '\0' && value[0] != '-';
}

static void limits_read(struct box_limits *limits, int argc, char **argv)
{
    uint64_t uid_base = 0, boxes = 0;
    const struct argument known[] = {
        {"python", NULL, &limits->python},       {"memory", &limits->memory_bytes, NULL},
        {"disk", &limits->disk_bytes, NULL},     {"inodes", &limits->inodes, NULL},
        {"processes", &limits->processes, NULL}, {"files", &limits->files, NULL},
        {"uid_base", &uid_base, NULL},           {"boxes", &boxes, NULL},
        {"cpu", &limits->cpu_millis, NULL},
    };
    unsigned seen = 0;
    for (int i = 1; i < argc; i++) {
        for (unsigned k = 0; k < sizeof known / sizeof known[0]; k++) {
            size_t len = strlen(known[k].name);
            if (strncmp(argv[i], known[k].name, len) == 0 && argv[i][len] == '=' &&
                argument_take(&known[k], argv[i] + len + 1)) {
                seen |= 1u << k;
            }
        }
    }
    if (seen != (1u << sizeof known / sizeof known[0]) - 1 || boxes == 0 || boxes > BOXES_MAX ||
        uid_base > UINT32_MAX - BOXES_MAX) {
        fprintf(stderr, "local-broker: started by local.so only\n");
        exit(2);
    }
    limits->python = strdup(limits->python); /* the arguments are wiped in every box */
    if (limits->python == NULL) {
        die("no memory");
    }
    limits->arguments = argv[0];
    limits->arguments_len = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) + 1 - argv[0]);
    limits->uid_base = (uint32_t)uid_base;
    limits->uid_is_shared = geteuid() != 0;
    limits->boxes_max = (uint32_t)boxes;
}

/* ---- slots ---- */

static int slot_take(struct broker *broker)
{
    for (uint32_t i = 0; i < broker->limits.boxes_max; i++) {
        uint32_t slot = (broker->next_slot + i) % broker->limits.boxes_max;
        if (broker->slots[slot] == 0) {
            broker->next_slot = (slot + 1) % broker->limits.boxes_max;
            return (int)slot;
        }
    }
    return -1;
}

static void slots_reap(struct broker *broker)
{
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        groups_reaped(&broker->groups, pid);
        for (uint32_t slot = 0; slot < broker->limits.boxes_max; slot++) {
            if (broker->slots[slot] == pid) {
                broker->slots[slot] = 0;
            }
        }
    }
}

/* ---- asking ---- */

/* One request: its reply socket, or -1 if there is none (yet). *ret_closed: the gateway is gone. */
static int ask_receive(struct wire_ask *ask, bool *ret_closed)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = {ask, sizeof *ask};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t len = recvmsg(WIRE_BROKER_FD, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    *ret_closed = len == 0 || (len < 0 && errno != EAGAIN && errno != EINTR);
    struct cmsghdr *header = len > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    int fd = -1;
    if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
        memcpy(&fd, CMSG_DATA(header), sizeof fd);
    }
    if (fd >= 0 && (len != (ssize_t)sizeof *ask || ask->magic != WIRE_MAGIC)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static uint32_t host_id_of(const struct broker *broker, int slot)
{
    return geteuid() == 0 ? broker->limits.uid_base + (uint32_t)slot : 0;
}

static void refuse_full(int reply_fd)
{
    struct wire_reply reply = {.magic = WIRE_MAGIC, .error = EUSERS};
    snprintf(reply.step, sizeof reply.step, "find a free slot");
    /* A gateway that no longer waits needs no answer. */
    (void)send(reply_fd, &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static bool ask_serve(struct broker *broker)
{
    struct wire_ask ask = {0};
    bool closed = false;
    int reply_fd = ask_receive(&ask, &closed);
    if (reply_fd < 0) {
        return !closed;
    }
    slots_reap(broker);
    int slot = slot_take(broker);
    if (slot < 0) {
        refuse_full(reply_fd);
    } else {
        pid_t pid = box_spawn(&broker->limits, host_id_of(broker, slot), broker->lifeline[0],
                              ask.life_ms, reply_fd);
        broker->slots[slot] = pid > 0 ? pid : 0;
    }
    close(reply_fd);
    return true;
}

static void broker_prepare(struct broker *broker)
{
    /* Standard input and output are /dev/null already; the working directory must not hold a mount busy. */
    if (chdir("/") != 0) {
        die("chdir /");
    }
    /* Root of a user namespace that forbids it keeps them, as an ordinary user does. */
    if (geteuid() == 0 && setgroups(0, NULL) != 0 && errno != EPERM) {
        die("give up supplementary groups");
    }
    if (!broker_keep_privileges()) {
        die("give up privileges");
    }
    if (fcntl(WIRE_BROKER_FD, F_SETFD, FD_CLOEXEC) != 0) {
        die("started by local.so only");
    }
    if (pipe2(broker->lifeline, O_CLOEXEC) != 0) {
        die("pipe");
    }
    sigset_t chld;
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    sigprocmask(SIG_BLOCK, &chld, NULL);
    signal(SIGPIPE, SIG_IGN);
    broker->signals = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
    if (broker->signals < 0) {
        die("signalfd");
    }
}

static void hello_send(const struct broker *broker)
{
    struct wire_hello hello = {.magic = WIRE_MAGIC,
                               .is_root = geteuid() == 0,
                               .controls = broker->groups.controls,
                               .groups_version = (uint32_t)broker->groups.version};
    snprintf(hello.missing, sizeof hello.missing, "%s", broker->groups.missing);
    /* A gateway that no longer waits is seen by the end of its socket. */
    (void)send(WIRE_BROKER_FD, &hello, sizeof hello, MSG_NOSIGNAL);
}

/* Memory that the kernel uses for a box, tables and buffers, and pid 1 itself, comes on top: a box that is full shall get a
 * MemoryError, or an error of its disk, rather than be killed. */
#define KERNEL_BYTES ((uint64_t)16 << 20)

static void groups_prepare(struct broker *broker)
{
    struct box_limits *limits = &broker->limits;
    const struct group_limits group = {.memory_bytes = limits->memory_bytes + KERNEL_BYTES,
                                       .processes = limits->processes + 1, /* and pid 1 */
                                       .cpu_millis = limits->cpu_millis};
    groups_start(&broker->groups, &group);
    limits->groups = &broker->groups;
}

/* The gateway is gone, or done. All boxes end with the lifeline; they are waited for, so that nothing is left when this
 * process is: as pid 1 of a container the gateway would inherit them. */
static void end_all(struct broker *broker)
{
    close(broker->lifeline[1]);
    alarm(END_SECONDS); /* a box that does not end is not waited for */
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) {
    }
    groups_end(&broker->groups);
}

int main(int argc, char **argv)
{
    static struct broker broker;
    limits_read(&broker.limits, argc, argv);
    broker_prepare(&broker);
    groups_prepare(&broker);
    hello_send(&broker);
    box_compile(&broker.limits, host_id_of(&broker, 0), broker.lifeline[0]);
    struct pollfd events[] = {{WIRE_BROKER_FD, POLLIN, 0}, {broker.signals, POLLIN, 0}};
    for (bool open = true; open;) {
        if (poll(events, 2, groups_tend(&broker.groups)) < 0 && errno != EINTR) {
            die("poll");
        }
        if (events[1].revents != 0) {
            struct signalfd_siginfo info[8];
            while (read(broker.signals, info, sizeof info) > 0) {
            }
            slots_reap(&broker);
        }
        if (events[0].revents != 0) {
            open = ask_serve(&broker);
        }
    }
    end_all(&broker);
    return 0;
}
