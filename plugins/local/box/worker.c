/* Workers: starting and ending them in pid 1, and what one does with its request. Its paths are the box's, and so are its
 * rights: what it may not read or write, code in the box may not either. */
#include "worker.h"

#include "init.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKER_MS 25000 /* a little more than the gateway waits */
#define PROC_MAGIC 0x9fa0

struct known_files *worker_known_files;

/* ---- what all requests need ---- */

bool piece_send(int socket_fd, const struct wire_piece *piece, const void *data, size_t len,
                int flags)
{
    struct iovec iov[] = {{(void *)(uintptr_t)piece, sizeof *piece},
                          {(void *)(uintptr_t)data, len}};
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = 2};
    ssize_t sent;
    do {
        sent = sendmsg(socket_fd, &message, MSG_NOSIGNAL | flags);
    } while (sent < 0 && errno == EINTR);
    return sent >= 0;
}

void worker_send(enum wire_piece_kind kind, uint32_t number, uint64_t size, const void *data,
                 size_t len)
{
    const struct wire_piece piece = {(uint32_t)kind, number, size};
    if (!piece_send(WORKER_SOCKET, &piece, data, len, 0)) {
        _exit(1);
    }
}

enum wire_refusal worker_refusal(void)
{
    switch (errno) {
    case ENOENT:
        return WIRE_NOT_FOUND;
    case EISDIR:
        return WIRE_IS_FOLDER;
    case ENOTDIR:
        return WIRE_NO_FOLDER;
    case ENXIO:
    case ENODEV:
        return WIRE_NO_FILE;
    case EACCES:
    case EPERM:
    case EROFS:
        return WIRE_DENIED;
    case ENOSPC:
        return WIRE_DISK_FULL;
    case EFBIG:
        return WIRE_TOO_LARGE;
    default:
        return WIRE_OTHER;
    }
}

enum wire_entry worker_entry_of(mode_t mode)
{
    return S_ISREG(mode) ? WIRE_ENTRY_FILE : S_ISDIR(mode) ? WIRE_ENTRY_FOLDER : WIRE_ENTRY_OTHER;
}

int worker_open(int folder, const char *path, int flags)
{
    const struct open_how how = {.flags = (uint64_t)(flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC),
                                 .resolve = RESOLVE_NO_MAGICLINKS};
    int fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
    struct statfs fs;
    if (fd >= 0 && (fstatfs(fd, &fs) != 0 || fs.f_type == PROC_MAGIC)) {
        close(fd);
        errno = EACCES;
        return -1;
    }
    return fd;
}

/* ---- reading and listing ---- */

static enum wire_refusal send_content(int fd)
{
    static char data[WIRE_PIECE_BYTES];
    uint64_t left = WIRE_FILE_BYTES_MAX;
    for (;;) {
        ssize_t len = read(fd, data, sizeof data);
        if (len <= 0) {
            return len == 0 ? WIRE_DONE : worker_refusal();
        }
        if ((uint64_t)len > left) {
            return WIRE_TOO_LARGE;
        }
        left -= (uint64_t)len;
        worker_send(WIRE_DATA, 0, 0, data, (size_t)len);
    }
}

static enum wire_refusal get(const char *path)
{
    struct stat state;
    int fd = worker_open(AT_FDCWD, path, O_RDONLY);
    if (fd < 0 || fstat(fd, &state) != 0) {
        return worker_refusal();
    }
    if (!S_ISREG(state.st_mode)) {
        return S_ISDIR(state.st_mode) ? WIRE_IS_FOLDER : WIRE_NO_FILE;
    }
    return state.st_size > (off_t)WIRE_FILE_BYTES_MAX ? WIRE_TOO_LARGE : send_content(fd);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names of a folder; the process ends with their memory. */
static enum wire_refusal names_read(DIR *folder, char **names, size_t *ret_count)
{
    const struct dirent *entry;
    size_t count = 0;
    errno = 0;
    while ((entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        if (count == WIRE_ENTRIES_MAX) {
            return WIRE_TOO_LARGE;
        }
        names[count] = strdup(entry->d_name);
        if (names[count++] == NULL) {
            return WIRE_OTHER;
        }
    }
    *ret_count = count;
    return errno == 0 ? WIRE_DONE : worker_refusal();
}

static enum wire_refusal list(const char *path)
{
    static char *names[WIRE_ENTRIES_MAX];
    size_t count = 0;
    int fd = worker_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    enum wire_refusal refusal =
        folder == NULL ? worker_refusal() : names_read(folder, names, &count);
    if (refusal != WIRE_DONE) {
        return refusal;
    }
    qsort(names, count, sizeof names[0], by_name);
    for (size_t i = 0; i < count; i++) {
        struct stat state = {0}; /* a link that leads nowhere is something else */
        (void)fstatat(fd, names[i], &state, 0);
        worker_send(WIRE_ENTRY, worker_entry_of(state.st_mode),
                    S_ISREG(state.st_mode) ? (uint64_t)state.st_size : 0, names[i],
                    strlen(names[i]));
    }
    return WIRE_DONE;
}

/* ---- one request ---- */

static enum wire_refusal serve(const struct wire_file *file, uint64_t *ret_size)
{
    char path[sizeof WORKER_HOME + WIRE_PATH_BYTES];
    snprintf(path, sizeof path, "%s%s", file->path[0] == '/' ? "" : WORKER_HOME "/", file->path);
    switch (file->kind) {
    case WIRE_GET:
        return get(path);
    case WIRE_PUT:
        return worker_put(path, file->size);
    case WIRE_LIST:
        return list(path);
    case WIRE_CHANGED:
        *ret_size = worker_changes(worker_known_files);
        return WIRE_DONE;
    default:
        return WIRE_OTHER;
    }
}

static _Noreturn void worker_run(int socket_fd, const struct wire_file *file)
{
    uint64_t size = 0;
    if (dup2(socket_fd, WORKER_SOCKET) != WORKER_SOCKET ||
        syscall(SYS_close_range, WORKER_SOCKET + 1, ~0u, 0) != 0) {
        _exit(1);
    }
    worker_put_clean();
    enum wire_refusal refusal = serve(file, &size);
    worker_send(WIRE_END, (uint32_t)refusal, size, NULL, 0);
    _exit(0);
}

/* ---- in pid 1 ---- */

/* A worker is there for as long as its process is: code that runs right after a file was served does not see it. */
static void worker_forget(struct init *init)
{
    close(init->worker_socket);
    init->worker = 0;
}

static void worker_end(struct init *init)
{
    if (init->worker > 0) {
        kill(init->worker, SIGKILL);
        while (waitpid(init->worker, NULL, 0) < 0 && errno == EINTR) {
        }
        worker_forget(init);
    }
}

static void worker_start(struct init *init, int socket_fd, const struct wire_file *file)
{
    pid_t pid = fork();
    if (pid == 0) {
        worker_run(socket_fd, file);
    }
    if (pid < 0) { /* the gateway sees the end of the socket */
        close(socket_fd);
        return;
    }
    init->worker = pid;
    init->worker_socket = socket_fd;
    init->worker_until = now_ms() + WORKER_MS;
}

/* The gateway has sent it before the order. */
static bool request_take(int socket_fd, struct wire_file *ret)
{
    ssize_t len = recv(socket_fd, ret, sizeof *ret, MSG_DONTWAIT);
    ret->path[sizeof ret->path - 1] = '\0';
    return len == (ssize_t)sizeof *ret && ret->magic == WIRE_MAGIC;
}

void file_serve(struct init *init, int socket_fd)
{
    static struct wire_file file;
    if (socket_fd < 0) {
        return;
    }
    worker_end(init);
    if (worker_known_files == NULL) {
        worker_known_files = known_files_new();
        worker_put_prepare();
    }
    bool is_served = !request_take(socket_fd, &file) ||
                     (file.kind == WIRE_CHANGED && !worker_put_is_unfinished() &&
                      changes_at_once(worker_known_files, socket_fd));
    if (is_served) {
        close(socket_fd);
    } else {
        worker_start(init, socket_fd, &file);
    }
}

bool worker_reap(struct init *init, pid_t pid)
{
    bool is_worker = pid == init->worker;
    if (is_worker) {
        worker_forget(init);
    }
    return is_worker;
}

void worker_end_if_late(struct init *init)
{
    if (init->worker > 0 && now_ms() >= init->worker_until) {
        worker_end(init);
    }
}
