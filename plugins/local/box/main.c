/* local-broker: makes boxes for local.so, and does nothing else.
 *
 * It is started once with a clean environment, has one thread, and reads from one socket: each packet asks for a box
 * and brings the socket on which the answer goes back. It ends when that socket is closed. It never sees what runs in
 * a box: the gateway gets the descriptors, and talks to the box itself.
 *
 * As root every box gets a host uid of its own, uid_base plus the number of a slot; a slot is free again when the box's
 * pid 1 has been reaped, which is when the kernel has ended everything in it. */
#include "broker.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define END_SECONDS 4
#define PROOF_MS 9000 /* for a first template to get ready, where it is asked for */

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
        *argument->text = strdup(value); /* the arguments are wiped in every box */
        return *argument->text != NULL;
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
        {"pool", &limits->pool, NULL},           {"preload", NULL, &limits->preload},
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
        limits->pool > POOL_MAX || uid_base > UINT32_MAX - BOXES_MAX - 1) {
        fprintf(stderr, "local-broker: started by local.so only\n");
        exit(2);
    }
    limits->arguments = argv[0];
    limits->arguments_len = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) + 1 - argv[0]);
    limits->uid_base = (uint32_t)uid_base;
    limits->uid_is_shared = geteuid() != 0;
    limits->boxes_max = (uint32_t)boxes;
}

void broker_note(struct broker *broker, const char *format, ...)
{
    char note[sizeof broker->note];
    va_list args;
    va_start(args, format);
    vsnprintf(note, sizeof note, format, args);
    va_end(args);
    if (strcmp(note, broker->last_note) != 0) {
        memcpy(broker->note, note, sizeof note);
        memcpy(broker->last_note, note, sizeof note);
    }
}

/* ---- slots ---- */

static int slot_find(struct broker *broker)
{
    uint32_t boxes_max = broker->maker.limits.boxes_max;
    for (uint32_t i = 0; i < boxes_max; i++) {
        uint32_t slot = (broker->next_slot + i) % boxes_max;
        if (broker->slots[slot] == 0) {
            broker->next_slot = (slot + 1) % boxes_max;
            return (int)slot;
        }
    }
    return -1;
}

void broker_reap(struct broker *broker)
{
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        templates_reaped(broker, pid);
        groups_reaped(&broker->groups, pid);
        for (uint32_t slot = 0; slot < broker->maker.limits.boxes_max; slot++) {
            if (broker->slots[slot] == pid) {
                broker->slots[slot] = 0;
                broker->slots_used--;
            }
        }
    }
}

static uint32_t host_id_of(const struct broker *broker, int slot)
{
    return geteuid() == 0 ? broker->maker.limits.uid_base + (uint32_t)slot : 0;
}

const char *broker_start_box(struct broker *broker, struct box_template *template, int64_t life_ms,
                             struct box_ends *ret)
{
    broker_reap(broker);
    int slot = slot_find(broker);
    if (slot < 0) {
        errno = EUSERS;
        return "find a free slot";
    }
    const char *failed =
        box_start(&broker->maker, template, host_id_of(broker, slot), life_ms, ret);
    if (ret->pid > 0) {
        broker->slots[slot] = ret->pid;
        broker->slots_used++;
    }
    return failed;
}

/* ---- asking ---- */

/* One request: its reply socket, or -1 if there is none (yet). *ret_closed: the gateway is gone. */
static int ask_receive(struct wire_ask *ask, bool *ret_closed)
{
    int fd;
    ssize_t len = packet_receive(WIRE_BROKER_FD, ask, sizeof *ask, &fd, 1, MSG_DONTWAIT);
    *ret_closed = len == 0 || (len < 0 && errno != EAGAIN && errno != EINTR);
    if (len != (ssize_t)sizeof *ask || ask->magic != WIRE_MAGIC) {
        fds_close(&fd, 1);
    }
    return fd;
}

/* Who has asked may have left while others were served: a box for nobody would take the time of those who still wait. */
static bool asker_has_left(int reply_fd)
{
    struct pollfd end = {.fd = reply_fd, .events = 0};
    return poll(&end, 1, 0) == 1 && (end.revents & (POLLHUP | POLLERR)) != 0;
}

/* A gateway that no longer waits needs no answer; descriptors that do not reach it are closed, and the box ends. */
static void reply(struct broker *broker, int reply_fd, const char *failed, struct box_ends *ends)
{
    struct wire_reply reply = {.magic = WIRE_MAGIC, .error = failed == NULL ? 0 : errno};
    reply.error = failed != NULL && reply.error == 0 ? EIO : reply.error;
    snprintf(reply.step, sizeof reply.step, "%s", failed == NULL ? "" : failed);
    if (failed == NULL) { /* else that is the news */
        memcpy(reply.note, broker->note, sizeof reply.note);
    }
    size_t count = failed != NULL ? 0 : ends->fds[WIRE_FD_EVENTS] >= 0 ? WIRE_FDS : WIRE_FD_EVENTS;
    if (packet_send(reply_fd, &reply, sizeof reply, ends->fds, count) && failed == NULL) {
        broker->note[0] = '\0';
    }
    fds_close(ends->fds, WIRE_FDS);
}

/* From the pool, as a copy of the template, or from nothing: what is there, in this order. */
static const char *find_box(struct broker *broker, int64_t life_ms, struct box_ends *ret)
{
    const char *failed = NULL;
    uint64_t number = 0;
    bool is_full = broker->slots_used >= broker->maker.limits.boxes_max;
    if (pool_take(broker, life_ms, is_full, ret)) {
        return NULL;
    }
    struct box_template *template = templates_pick(broker, &number);
    if (template != NULL) {
        failed = broker_start_box(broker, template, life_ms, ret);
        if (failed == NULL || errno == EUSERS) {
            return failed;
        }
        char why[WIRE_STEP_BYTES + 100];
        snprintf(why, sizeof why, "cannot %s: %s", failed, strerror(errno));
        templates_failed(broker, number, why);
    }
    return broker_start_box(broker, NULL, life_ms, ret);
}

static void turn(struct broker *, int64_t until, bool *asked);
static int64_t look_after(struct broker *);

static void await_template(struct broker *broker)
{
    int64_t until = now_ms() + PROOF_MS;
    int64_t next = look_after(broker);
    while (!templates_are_settled(broker) && now_ms() < until) {
        turn(broker, next < until ? next : until, NULL);
        next = look_after(broker);
    }
}

static bool ask_serve(struct broker *broker)
{
    struct wire_ask ask = {0};
    bool closed = false;
    int reply_fd = ask_receive(&ask, &closed);
    if (reply_fd < 0) {
        return !closed;
    }
    if (asker_has_left(reply_fd)) {
        close(reply_fd);
        return true;
    }
    if (ask.await_template != 0) {
        await_template(broker);
    }
    broker_reap(broker);
    struct box_ends ends;
    const char *failed = find_box(broker, ask.life_ms, &ends);
    reply(broker, reply_fd, failed, &ends);
    close(reply_fd);
    pool_disturb(broker);
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
    broker->maker.lifeline = broker->lifeline[0];
    broker->maker.init = program_init();
    if (broker->maker.init < 0) {
        die("make the init of boxes (memfd_create)");
    }
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
    struct box_limits *limits = &broker->maker.limits;
    const struct group_limits group = {
        .memory_bytes = limits->memory_bytes + KERNEL_BYTES,
        /* Pid 1 and its worker; the interpreter has a limit of its own. */
        .processes = limits->processes + 1 + WORKERS_MAX,
        .cpu_millis = limits->cpu_millis};
    groups_start(&broker->groups, &group);
    broker->maker.groups = &broker->groups;
    limits->group_controls = broker->groups.controls;
}

/* The gateway is gone, or done. All boxes end with the lifeline; they are waited for, so that nothing is left when this
 * process is: as pid 1 of a container the gateway would inherit them. */
static void end_all(struct broker *broker)
{
    templates_end(broker);
    close(broker->lifeline[1]);
    alarm(END_SECONDS); /* a box that does not end is not waited for */
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) {
    }
    groups_end(&broker->groups);
}

static int64_t upkeep(struct broker *broker)
{
    int64_t templates = templates_upkeep(broker), pool = pool_upkeep(broker);
    int groups_ms = groups_tend(&broker->groups);
    int64_t groups = groups_ms < 0 ? INT64_MAX : now_ms() + groups_ms;
    int64_t next = templates < pool ? templates : pool;
    return groups < next ? groups : next;
}

static int pause_until(int64_t until)
{
    int64_t left = until - now_ms();
    return until == INT64_MAX ? -1 : left < 0 ? 0 : left > INT32_MAX ? INT32_MAX : (int)left;
}

/* One wait and what it brings; an ask only where `asked` is given. */
static void turn(struct broker *broker, int64_t until, bool *asked)
{
    struct pollfd events[4 + POOL_MAX + 1] = {
        {asked != NULL ? WIRE_BROKER_FD : -1, POLLIN, 0},
        {broker->signals, POLLIN, 0},
        {broker->templates.current_number != 0 ? broker->templates.current.socket : -1, POLLIN, 0},
        {broker->templates.next_number != 0 ? broker->templates.next.socket : -1, POLLIN, 0}};
    int watched[POOL_MAX + 1];
    size_t count = pool_watched(broker, watched);
    for (size_t i = 0; i < count; i++) {
        events[4 + i] = (struct pollfd){watched[i], POLLIN, 0};
    }
    if (poll(events, 4 + count, pause_until(until)) < 0 && errno != EINTR) {
        die("poll");
    }
    struct signalfd_siginfo info[8];
    while (read(broker->signals, info, sizeof info) > 0) {
    }
    if (asked != NULL) {
        *asked = events[0].revents != 0;
    }
}

/* What can wait until nobody asks. */
static int64_t look_after(struct broker *broker)
{
    broker_reap(broker);
    templates_hear(broker);
    pool_look(broker);
    return upkeep(broker);
}

int main(int argc, char **argv)
{
    static struct broker broker;
    limits_read(&broker.maker.limits, argc, argv);
    broker_prepare(&broker);
    groups_prepare(&broker);
    hello_send(&broker);
    box_compile(&broker.maker, host_id_of(&broker, 0));
    for (bool open = true; open;) {
        bool asked = false;
        turn(&broker, look_after(&broker), &asked);
        if (asked) {
            open = ask_serve(&broker);
        }
    }
    end_all(&broker);
    return 0;
}
