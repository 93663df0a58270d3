/* One template, as the broker sees it. What it says is not believed further than it must be: texts are bounded, paths are
 * only looked at, and a box is known by the pidfd that comes with it. */
#include "template.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEMPLATE_NAMESPACES (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC)
#define CLONE_MS 3000 /* for one box: it has nothing else to do */

/* ---- its start ---- */

static const char *start_process(struct box_template *template, const struct box_maker *maker,
                                 int socket_end, int library, int start[2])
{
    struct clone_args args = {.flags = TEMPLATE_NAMESPACES, .exit_signal = SIGCHLD};
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (pid < 0) {
        return "create namespaces (clone3) for a template";
    }
    if (pid == 0) {
        close(start[1]);
        const struct template_fds fds = {start[0], socket_end, library};
        template_enter(&maker->limits, &fds);
    }
    template->pid = pid;
    const struct id_map users = template_map(&maker->limits, false);
    const struct id_map groups = template_map(&maker->limits, true);
    /* All its copies have it from there. */
    const char *failed = proc_write(pid, "oom_score_adj", OOM_SCORE)
                             ? maps_write(pid, &users, &groups)
                             : "make a template the first to be killed where the host lacks memory "
                               "(oom_score_adj)";
    if (failed == NULL && write(start[1], "g", 1) != 1) {
        failed = "let a template go";
    }
    return failed;
}

bool template_start(struct box_template *template, const struct box_maker *maker,
                    const char **ret_step)
{
    int ends[2] = {-1, -1}, start[2] = {-1, -1}, library = program_template();
    *template = (struct box_template){.state = TEMPLATE_STARTING, .socket = -1, .since = now_ms()};
    *ret_step = "make a template's descriptors";
    if (library >= 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0 &&
        pipe2(start, O_CLOEXEC) == 0) {
        template->socket = ends[0];
        *ret_step = start_process(template, maker, ends[1], library, start);
    }
    int error = errno;
    fds_close((int[]){ends[1], start[0], start[1], library}, 4);
    if (*ret_step != NULL) {
        fds_close(ends, template->socket < 0 ? 1 : 0);
        template_leave(template);
        errno = error;
    }
    return *ret_step == NULL;
}

void template_leave(struct box_template *template)
{
    fds_close(&template->socket, 1);
    template->state = TEMPLATE_NONE;
    template->folders_len = 0;
}

/* ---- what it says ---- */

static const char *failure_text(const struct wire_status *status)
{
    static char text[WIRE_STEP_BYTES + 100];
    snprintf(text, sizeof text, "cannot %.*s: %s", (int)strnlen(status->step, WIRE_STEP_BYTES),
             status->step, strerror(status->value));
    return text;
}

const char *template_hear(struct box_template *template, char *note, size_t size)
{
    static union {
        char text[TEMPLATE_PACKET_MAX];
        struct wire_status status;
    } said;
    ssize_t len = recv(template->socket, said.text, sizeof said.text - 1, MSG_DONTWAIT);
    if (len < 0 && (errno == EAGAIN || errno == EINTR)) {
        return NULL;
    }
    if (len == (ssize_t)sizeof said.status && said.status.magic == WIRE_MAGIC) {
        return failure_text(&said.status);
    }
    said.text[len > 0 ? len : 0] = '\0';
    switch (said.text[0]) {
    case TEMPLATE_SAYS_FOLDERS:
        template->folders_len = (size_t)len - 1;
        memcpy(template->folders, said.text + 1, (size_t)len);
        return NULL;
    case TEMPLATE_SAYS_READY:
        template->state = TEMPLATE_READY;
        snprintf(note, size, "%s", said.text + 1);
        return NULL;
    case TEMPLATE_SAYS_CANNOT:
        return said.text + 1;
    default:
        return "it ended";
    }
}

/* One line "mtime_ns inode path"; whether it is still so. A path that is not there has zeros. */
static bool is_unchanged(const char *line)
{
    char *end = NULL;
    struct stat st = {0};
    long long mtime = strtoll(line, &end, 10);
    unsigned long long inode = strtoull(end, &end, 10);
    if (*end++ != ' ' || stat(end, &st) != 0) {
        return mtime == 0 && inode == 0;
    }
    return inode == st.st_ino &&
           mtime == (long long)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

bool template_is_outdated(const struct box_template *template)
{
    char lines[TEMPLATE_PACKET_MAX];
    memcpy(lines, template->folders, template->folders_len);
    lines[template->folders_len] = '\0';
    char *rest = lines;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        if (*line != '\0' && !is_unchanged(line)) {
            return true;
        }
    }
    return false;
}

/* ---- boxes ---- */

/* The pid of a pidfd, as the kernel has it; -1 if it is of no child of ours. */
static pid_t child_of(int pidfd)
{
    char path[64], text[512];
    siginfo_t info = {0};
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    if (pidfd < 0 || waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
        return -1;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    fds_close(&fd, 1);
    text[len > 0 ? len : 0] = '\0';
    const char *line = strstr(text, "\nPid:");
    return line == NULL ? -1 : (pid_t)strtol(line + 5, NULL, 10);
}

static const char *answer_take(const struct box_template *template, struct box_birth *ret)
{
    static struct template_answer answer;
    struct pollfd event = {.fd = template->socket, .events = POLLIN};
    if (poll(&event, 1, CLONE_MS) != 1) {
        errno = ETIMEDOUT;
        return "copy the template";
    }
    ssize_t len =
        packet_receive(template->socket, &answer, sizeof answer, &ret->pidfd, 1, MSG_DONTWAIT);
    if (len != (ssize_t)sizeof answer || answer.magic != WIRE_MAGIC) {
        errno = EPIPE;
        return "copy the template";
    }
    ret->pid = child_of(ret->pidfd);
    ret->is_in_group = answer.is_in_group != 0;
    answer.error = answer.error == 0 && ret->pid <= 0 ? ESRCH : answer.error;
    answer.step[sizeof answer.step - 1] = '\0';
    errno = answer.error;
    return answer.error != 0 ? answer.step : NULL;
}

const char *template_clone(struct box_template *template, const struct box_maker *maker,
                           uint32_t host_id, const struct box_fds *given, int64_t life_ms,
                           struct box_birth *ret)
{
    const struct box_limits *limits = &maker->limits;
    uint32_t outside = limits->uid_is_shared ? BOX_UID : 1 + host_id - limits->uid_base;
    struct template_ask ask = {
        .magic = WIRE_MAGIC, .map = {BOX_UID, outside, 1}, .life_ms = life_ms, .limits = *limits};
    struct box_fds fds = *given;
    int *list[BOX_FDS_MAX], sent[BOX_FDS_MAX];
    size_t count = 0;
    box_fds_list(&fds, list);
    for (unsigned i = 0; i < BOX_FDS_MAX; i++) {
        if (*list[i] >= 0) {
            ask.fds |= 1u << i;
            sent[count++] = *list[i];
        }
    }
    if (!packet_send(template->socket, &ask, sizeof ask, sent, count)) {
        return "ask the template for a copy";
    }
    return answer_take(template, ret);
}
