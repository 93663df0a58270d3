/* What a template does once its modules are loaded (local-template, a library that the interpreter loads): for each ask
 * one copy of itself, which is pid 1 of a new box, and in which another one goes on as that box's interpreter. */
#include "template.h"

#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What this process has, which a copy of it shares: in pages of its own in memory, and as RLIMIT_DATA counts. */
static void measure_loaded(struct box_limits *limits)
{
    unsigned long long size = 0, resident = 0, shared = 0, text = 0, library = 0, data = 0;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL) {
        return;
    }
    if (fscanf(file, "%llu %llu %llu %llu %llu %llu", &size, &resident, &shared, &text, &library,
               &data) == 6) {
        limits->loaded_bytes = resident > shared ? (resident - shared) * page : 0;
        limits->loaded_data_bytes = data * page;
    }
    fclose(file);
}

/* The broker's child, as every box is: it reaps it, also when this template has ended. Born in its group where that is v2's
 * and this process may do so; else the broker puts it there. */
static pid_t clone_box(int into, struct box_birth *birth)
{
    struct clone_args args = {.flags = BOX_NAMESPACES | CLONE_PIDFD | CLONE_PARENT,
                              .pidfd = (uint64_t)(uintptr_t)&birth->pidfd};
    if (into >= 0) {
        struct clone_args born = args;
        born.flags |= CLONE_INTO_CGROUP;
        born.cgroup = (uint64_t)into;
        birth->is_in_group = true;
        pid_t pid = (pid_t)syscall(SYS_clone3, &born, sizeof born);
        if (pid >= 0 || errno != EACCES) {
            return pid;
        }
        birth->is_in_group = false;
    }
    return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

static void answer(int socket_fd, const char *failed, const struct box_birth *birth)
{
    struct template_answer answer = {.magic = WIRE_MAGIC,
                                     .error = failed == NULL ? 0 : errno,
                                     .is_in_group = birth->is_in_group};
    snprintf(answer.step, sizeof answer.step, "%s", failed == NULL ? "" : failed);
    if (!packet_send(socket_fd, &answer, sizeof answer, &birth->pidfd, birth->pidfd >= 0)) {
        _exit(0); /* the broker is gone */
    }
}

/* True in the copy that is a box's interpreter. */
static bool serve(int socket_fd, const struct template_ask *ask, const struct box_fds *fds,
                  struct box_limits *limits)
{
    struct box_birth birth = {.pid = -1, .pidfd = -1};
    int status_fd;
    birth.pid = clone_box(fds->group.into, &birth);
    if (birth.pid == 0) {
        box_enter(limits, fds, ask->life_ms, &status_fd);
        return true;
    }
    const char *failed =
        birth.pid < 0 ? "create namespaces (clone3)" : maps_write(birth.pid, &ask->map, &ask->map);
    answer(socket_fd, failed, &birth);
    fds_close(&birth.pidfd, 1);
    return false;
}

static bool ask_take(int socket_fd, struct template_ask *ask, struct box_fds *fds)
{
    int *list[BOX_FDS_MAX], came[BOX_FDS_MAX];
    size_t used = 0;
    ssize_t len;
    do {
        len = packet_receive(socket_fd, ask, sizeof *ask, came, BOX_FDS_MAX, 0);
    } while (len < 0 && errno == EINTR);
    if (len != (ssize_t)sizeof *ask || ask->magic != WIRE_MAGIC) {
        return false;
    }
    fds->group.index = -1;
    box_fds_list(fds, list);
    for (unsigned i = 0; i < BOX_FDS_MAX; i++) {
        *list[i] = (ask->fds >> i & 1) != 0 ? came[used++] : -1;
    }
    return true;
}

static void close_all(struct box_fds *fds)
{
    int *list[BOX_FDS_MAX];
    box_fds_list(fds, list);
    for (unsigned i = 0; i < BOX_FDS_MAX; i++) {
        fds_close(list[i], 1);
    }
}

/* Returns in the interpreter's process of a box. */
__attribute__((visibility("default"))) void template_serve(void);

void template_serve(void)
{
    struct template_ask ask;
    struct box_fds fds;
    bool is_box = false;
    while (!is_box && ask_take(TEMPLATE_FD_SOCKET, &ask, &fds)) {
        struct box_limits limits = ask.limits;
        limits.python = limits.preload = limits.command = "";
        limits.compiled = NULL; /* it is loaded already */
        limits.arguments = NULL;
        measure_loaded(&limits);
        is_box = serve(TEMPLATE_FD_SOCKET, &ask, &fds, &limits);
        if (!is_box) {
            close_all(&fds);
        }
    }
    /* All that a box's interpreter has is 0, 1, 2 and its connection. */
    if (!is_box || syscall(SYS_close_range, TEMPLATE_FD_SOCKET + 1, ~0u, 0) != 0) {
        _exit(0);
    }
}
