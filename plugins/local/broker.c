/* The broker: starting it, asking it for a box, replacing it if it has died. It is the only process that the gateway
 * starts; it ends by the end of file of its socket, and every box ends with it. */
#include "local.h"
#include "patience.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BROKER_END_MS 5000 /* for an ending broker */
#define ASK_TRIES 3        /* of a broker that dies */
#define HELLO_MS 20000     /* for a new broker to say what it found */
#define BUSY_MS \
    5 /* until a full socket, or another call that starts the broker, is looked at again */

struct arguments {
    char python[320], preload[MODULES_MAX * (MODULE_NAME_MAX + 1) + 16], numbers[9][40];
    const char *argv[13];
};

static void preload_join(const struct local_config *config, char *text, size_t size)
{
    size_t len = (size_t)snprintf(text, size, "preload=");
    for (size_t i = 0; config->preload[i] != NULL; i++) {
        len +=
            (size_t)snprintf(text + len, size - len, "%s%s", i == 0 ? "" : " ", config->preload[i]);
    }
}

static const char *const *arguments_make(struct arguments *arguments, const char *path,
                                         const struct local *local)
{
    const struct local_config *config = local->config;
    const struct {
        const char *name;
        uint64_t value;
    } numbers[9] = {
        {"memory", config->memory},           {"disk", config->disk},
        {"inodes", (uint64_t)config->inodes}, {"processes", (uint64_t)config->processes},
        {"files", (uint64_t)config->files},   {"uid_base", (uint64_t)config->uid_base},
        {"boxes", (uint64_t)config->boxes},   {"pool", (uint64_t)config->pool},
        {"cpu", local->cpu_millis},
    };
    const char **argument = arguments->argv;
    *argument++ = path;
    snprintf(arguments->python, sizeof arguments->python, "python=%s", config->python);
    *argument++ = arguments->python;
    preload_join(config, arguments->preload, sizeof arguments->preload);
    *argument++ = arguments->preload;
    for (size_t i = 0; i < 9; i++) {
        snprintf(arguments->numbers[i], sizeof arguments->numbers[i], "%s=%llu", numbers[i].name,
                 (unsigned long long)numbers[i].value);
        *argument++ = arguments->numbers[i];
    }
    *argument = NULL;
    return arguments->argv;
}

static int broker_spawn(struct local *local, struct sg_call *call, int child_end,
                        struct sg_child *ret_child, struct sg_error *err)
{
    static const char *const environment[] = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8", NULL};
    char path[4096];
    struct arguments arguments;
    snprintf(path, sizeof path, "%s/local-broker", sg->libexec_dir(call));
    const struct sg_spawn_fd fds[] = {{child_end, WIRE_BROKER_FD}};
    const struct sg_spawn spawn = {.path = path,
                                   .argv = arguments_make(&arguments, path, local),
                                   .envp = environment,
                                   .fds = fds,
                                   .fds_count = 1};
    return sg->spawn(call, &spawn, ret_child, err);
}

static int broker_replace(struct local *local, struct sg_call *call, struct sg_error *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return sg->fail(err, local->unavailable, "cannot make the broker's socket: %s",
                        strerror(errno));
    }
    struct sg_child child = {0};
    int result = broker_spawn(local, call, ends[1], &child, err);
    close(ends[1]);
    if (result != 0) {
        close(ends[0]);
        return result;
    }
    if (local->broker_fd < 0) {
        local->broker_fd = ends[0];
    } else {
        /* Onto the same number: another call may be about to use it, and must find either end, never a foreign file. */
        dup3(ends[0], local->broker_fd, O_CLOEXEC);
        close(ends[0]);
    }
    local->broker = child;
    return 0;
}

/* Reaps a broker that has ended or is ending; by force after a while. */
static void broker_bury(struct local *local, struct sg_call *call)
{
    int status = 0;
    siginfo_t info = {0};
    if (local->broker.pidfd < 0) {
        return;
    }
    /* At once if it is dead already: a call that is cancelled cannot wait any more. */
    if ((waitid(P_PIDFD, (id_t)local->broker.pidfd, &info, WEXITED | WNOHANG) != 0 ||
         info.si_pid == 0) &&
        sg->wait_child(call, &local->broker, BROKER_END_MS, &status, NULL) != 0) {
        (void)syscall(SYS_pidfd_send_signal, local->broker.pidfd, SIGKILL, NULL, 0);
        (void)sg->wait_child(call, &local->broker, BROKER_END_MS, &status, NULL);
    }
    close(local->broker.pidfd);
    local->broker.pidfd = -1;
}

/* The first word of a new broker; what it found must be enough. */
static int hello_take(struct local *local, struct sg_call *call, struct sg_error *err)
{
    struct wire_hello hello;
    int events = 0;
    int result = sg->wait_fd(call, local->broker_fd, SG_READ, HELLO_MS, &events, err);
    if (result == SG_E_TIMEOUT && sg->time_left_ms(call) > 0) {
        return sg->fail(err, local_busy(local),
                        "the broker did not start within 20s: the machine is too busy");
    }
    if (result != 0) {
        return result;
    }
    ssize_t len = recv(local->broker_fd, &hello, sizeof hello, MSG_DONTWAIT);
    if (len != (ssize_t)sizeof hello || hello.magic != WIRE_MAGIC) {
        return sg->fail(err, local->unavailable, "the broker ended before it had started");
    }
    struct isolation isolation = isolation_of(&hello);
    result = isolation_check(local, &isolation, err);
    pthread_mutex_lock(&local->lock);
    local->isolation = isolation;
    pthread_mutex_unlock(&local->lock);
    return result;
}

/* Waits until no other call is starting it. Returns 0 with the state. */
static int broker_settle(struct local *local, struct sg_call *call, bool *ret_ours_to_start,
                         struct sg_error *err)
{
    for (;;) {
        pthread_mutex_lock(&local->lock);
        enum broker_state state = local->broker_state;
        if (state == BROKER_DEAD) {
            local->broker_state = BROKER_STARTING;
        }
        pthread_mutex_unlock(&local->lock);
        if (state != BROKER_STARTING) {
            *ret_ours_to_start = state == BROKER_DEAD;
            return 0;
        }
        int result = sg->sleep(call, BUSY_MS, err);
        if (result != 0) {
            return result;
        }
    }
}

int broker_start(struct local *local, struct sg_call *call, uint64_t *ret_generation,
                 struct sg_error *err)
{
    bool ours = false;
    int result = broker_settle(local, call, &ours, err);
    if (result == 0 && ours) {
        broker_bury(local, call);
        result = broker_replace(local, call, err);
        result = result == 0 ? hello_take(local, call, err) : result;
    }
    pthread_mutex_lock(&local->lock);
    if (ours) {
        local->broker_state = result == 0 ? BROKER_LIVE : BROKER_DEAD;
        local->broker_generation++;
    }
    *ret_generation = local->broker_generation;
    pthread_mutex_unlock(&local->lock);
    return result;
}

void broker_stop(struct local *local, struct sg_call *call)
{
    if (local->broker_fd >= 0) {
        close(local->broker_fd);
        local->broker_fd = -1;
    }
    broker_bury(local, call);
}

/* Once for each: a late finder must not have the next one replaced. */
static void broker_is_dead(struct local *local, struct sg_call *call, uint64_t generation)
{
    pthread_mutex_lock(&local->lock);
    bool was_live = local->broker_state == BROKER_LIVE && local->broker_generation == generation;
    if (was_live) {
        local->broker_state = BROKER_DEAD;
    }
    pthread_mutex_unlock(&local->lock);
    if (was_live) {
        sg->log(call, SG_WARN, "the broker has ended; its boxes are gone, another is started");
    }
}

/* One request with its reply socket. 0, -1 for a full socket, or errno. */
static int ask_send(const struct local *local, int reply_end, int64_t life_ms)
{
    bool opens = local->unavailable == SG_E_CONFIG; /* the test container is to be one of many */
    struct wire_ask ask = {.magic = WIRE_MAGIC, .await_template = opens, .life_ms = life_ms};
    ssize_t len = socket_send_with_fd(local->broker_fd, &ask, sizeof ask, reply_end);
    return len >= 0 ? 0 : errno == EAGAIN || errno == ETOOMANYREFS ? -1 : errno;
}

/* Takes the descriptors of a reply into the box; also those of a short or foreign one, so that none leaks. */
static ssize_t reply_receive(int fd, struct wire_reply *reply, struct box *box)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * WIRE_FDS)];
    } control;
    struct iovec iov = {reply, sizeof *reply};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t len = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    struct cmsghdr *header = len > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header != NULL && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len >= CMSG_LEN(sizeof(int) * WIRE_FD_EVENTS)) {
        int fds[WIRE_FDS];
        memset(fds, 0xff, sizeof fds);
        memcpy(fds, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
        box->control = fds[WIRE_FD_CONTROL];
        box->status = fds[WIRE_FD_STATUS];
        box->out = fds[WIRE_FD_STDOUT];
        box->err = fds[WIRE_FD_STDERR];
        box->init = fds[WIRE_FD_INIT];
        box->events = fds[WIRE_FD_EVENTS];
    }
    return len;
}

static uint64_t answers_read(struct local *local)
{
    pthread_mutex_lock(&local->lock);
    uint64_t answers = local->answers;
    pthread_mutex_unlock(&local->lock);
    return answers;
}

static void answers_count(struct local *local)
{
    pthread_mutex_lock(&local->lock);
    local->answers++;
    pthread_mutex_unlock(&local->lock);
}

static int await_reply(struct local *local, struct sg_call *call, int fd, struct sg_error *err)
{
    bool opens = local->unavailable == SG_E_CONFIG;
    struct patience patience = patience_begin(answers_read(local), local_now_ms(), opens);
    for (;;) {
        bool is_silent = false;
        int ready = 0;
        int64_t ms = patience_look(&patience, answers_read(local), local_now_ms(), &is_silent);
        if (ms == 0) {
            return is_silent ? sg->fail(err, local_busy(local),
                                        "the broker gave no answer to anybody within %ds: the "
                                        "machine is too busy, or the broker is stopped",
                                        PATIENCE_SILENCE_MS / 1000)
                             : sg->fail(err, local_busy(local),
                                        "no box could be made within %ds: the machine is too busy",
                                        PATIENCE_MOST_MS / 1000);
        }
        int result = sg->wait_fd(call, fd, SG_READ, ms, &ready, err);
        if (result != SG_E_TIMEOUT || sg->time_left_ms(call) <= 0) {
            return result;
        }
    }
}

static int reply_take(struct local *local, struct sg_call *call, int fd, struct box *box,
                      bool *ret_died, struct sg_error *err)
{
    struct wire_reply reply;
    ssize_t len = reply_receive(fd, &reply, box);
    *ret_died = len != (ssize_t)sizeof reply || reply.magic != WIRE_MAGIC;
    if (*ret_died) {
        return sg->fail(err, local->unavailable, "the broker ended before it had made the box");
    }
    answers_count(local);
    reply.step[sizeof reply.step - 1] = '\0';
    reply.note[sizeof reply.note - 1] = '\0';
    if (reply.note[0] != '\0') {
        sg->log(call, SG_WARN, "%s", reply.note);
    }
    if (reply.error == EUSERS && strcmp(reply.step, "find a free slot") == 0) {
        return sg->fail(err, SG_E_LIMIT, "all %lld boxes are in use; raise 'boxes'",
                        (long long)local->config->boxes);
    }
    if (reply.error != 0) {
        box->end = END_SETUP;
        box->setup_error = reply.error;
        snprintf(box->setup_step, sizeof box->setup_step, "%s", reply.step);
        return sg->fail(err, local->unavailable, "cannot %s: %s. %s", reply.step,
                        strerror(reply.error), remedy_for(reply.step, reply.error));
    }
    if (box->init < 0 || fcntl(box->out, F_SETFL, O_NONBLOCK) != 0 ||
        fcntl(box->err, F_SETFL, O_NONBLOCK) != 0 || !box_prepare(box)) {
        return sg->fail(err, local->unavailable, "no descriptors left for a box: %s",
                        strerror(errno));
    }
    return 0;
}

/* Sends the request, starting the broker if need be. */
static int ask_deliver(struct local *local, struct sg_call *call, int reply_end, int64_t life_ms,
                       uint64_t *ret_generation, struct sg_error *err)
{
    for (int tries = 0; tries < ASK_TRIES;) {
        int result = broker_start(local, call, ret_generation, err);
        if (result != 0) {
            return result;
        }
        int error = ask_send(local, reply_end, life_ms);
        if (error == 0) {
            return 0;
        }
        if (error > 0) {
            broker_is_dead(local, call, *ret_generation);
            tries++;
        } else if ((result = sg->sleep(call, BUSY_MS, err)) != 0) {
            return result;
        }
    }
    return sg->fail(err, local->unavailable, "the broker ended before it was asked for a box");
}

/* *ret_died: the broker has, before it answered. */
static int ask_once(struct local *local, struct sg_call *call, int64_t life_ms, struct box *box,
                    bool *ret_died, struct sg_error *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return sg->fail(err, local->unavailable, "no descriptors left for a box: %s",
                        strerror(errno));
    }
    uint64_t generation = 0;
    int result = ask_deliver(local, call, ends[1], life_ms, &generation, err);
    close(ends[1]); /* the broker's copy is the only one: its end is seen */
    if (result == 0) {
        result = await_reply(local, call, ends[0], err);
    }
    if (result == 0) {
        result = reply_take(local, call, ends[0], box, ret_died, err);
    }
    if (*ret_died) {
        broker_is_dead(local, call, generation);
    }
    /* Descriptors in a reply that nobody took are closed with the socket, and the box ends. */
    close(ends[0]);
    return result;
}

int broker_ask(struct local *local, struct sg_call *call, int64_t life_ms, struct box *box,
               struct sg_error *err)
{
    int result = 0;
    bool died = true;
    /* Again if it died meanwhile: what it may have made has died with it. */
    for (int tries = 0; died && tries < ASK_TRIES; tries++) {
        died = false;
        result = ask_once(local, call, life_ms, box, &died, err);
    }
    return result;
}
