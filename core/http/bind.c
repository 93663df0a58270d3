/* Binding: the sockets at which the server listens. An address of TCP has a socket for each loop, between which the kernel
 * divides connections (SO_REUSEPORT); a Unix socket, or one that was handed over, is one for all loops. */
#include "http/server_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define LISTEN_QUEUE 4096         /* the kernel lowers it to net.core.somaxconn */
#define NOTSENT_BYTES (64 * 1024) /* more is not handed to the kernel than it can send soon */

static int cannot_listen(const struct http_listener_options *at, struct sg_error *err)
{
    int error = errno;
    char address[HTTP_ADDRESS_BYTES];
    http_address_write(&at->address, at->address_len, address);
    const char *hint = error == EADDRINUSE ? " (is another server running there?)"
                       : error == EACCES && at->address.ss_family != AF_UNIX
                           ? " (ports below 1024 need a privilege)"
                           : "";
    return error_set(err, SG_E_CONFIG, "cannot listen on %s: %s%s", address, strerror(error), hint);
}

static bool option_set(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

static void close_unused(int fd)
{
    if (fd >= 0) {
        (void)close(fd); /* nothing was written that could be lost */
    }
}

/* A socket at the address, or -1; with `reuse` a socket option that is set before, or 0. */
static int socket_bind(const struct http_listener_options *at, int reuse)
{
    int family = at->address.ss_family;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -1;
    }
    /* [::] alone: so 0.0.0.0 may be listed beside it, and no client's address is a mapped one. */
    bool is_set = (reuse == 0 || option_set(fd, SOL_SOCKET, reuse, 1)) &&
                  (family != AF_INET6 || option_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1));
    if (!is_set || bind(fd, (const void *)&at->address, at->address_len) != 0) {
        int error = errno;
        (void)close(fd); /* the first failure is the one to tell */
        errno = error;
        return -1;
    }
    return fd;
}

/* With SO_REUSEPORT a second process would take half of the connections unseen. This socket has only SO_REUSEADDR, so
 * it meets every other one that listens; and also those that are bound and do not listen yet, since listeners get their
 * SO_REUSEADDR (which lets them come back while old connections linger) only when they start. */
static int probe(const struct http_listener_options *at, struct sg_error *err)
{
    int fd = socket_bind(at, SO_REUSEADDR);
    int code = fd < 0 || listen(fd, 1) != 0 ? cannot_listen(at, err) : 0;
    close_unused(fd);
    return code;
}

/* Accepted sockets inherit these options. */
static bool connections_prepare(const struct http_listener_options *at, int fd)
{
    return at->address.ss_family == AF_UNIX ||
           (option_set(fd, IPPROTO_TCP, TCP_NODELAY, 1) &&
            option_set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, NOTSENT_BYTES));
}

static void address_read(struct http_listener *listener, int fd)
{
    listener->at.address_len = sizeof listener->at.address;
    CHECK(getsockname(fd, (void *)&listener->at.address, &listener->at.address_len) == 0);
}

/* ---- a socket for each loop ---- */

static int bind_each(struct http_server *server, size_t index, struct sg_error *err)
{
    struct http_listener *listener = &server->listeners[index];
    int code = http_address_port(&listener->at.address) != 0 ? probe(&listener->at, err) : 0;
    for (size_t i = 0; code == 0 && i < server->loops_count; i++) {
        struct loop_listener *here = &server->loops[i].listeners[index];
        here->fd = socket_bind(&listener->at, SO_REUSEPORT);
        if (here->fd < 0 || !connections_prepare(&listener->at, here->fd)) {
            code = cannot_listen(&listener->at, err);
        } else if (i == 0) { /* port 0 becomes the same for all */
            address_read(listener, here->fd);
        }
    }
    return code;
}

/* ---- one socket for all ---- */

/* Takes the descriptor; each loop gets one of its own to the same socket. */
static int share(struct http_server *server, size_t index, int fd, struct sg_error *err)
{
    struct http_listener *listener = &server->listeners[index];
    server->loops[0].listeners[index].fd = fd;
    bool is_good = fcntl(fd, F_SETFL, O_NONBLOCK) == 0 && connections_prepare(&listener->at, fd);
    for (size_t i = 1; is_good && i < server->loops_count; i++) {
        int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        server->loops[i].listeners[index].fd = own;
        is_good = own >= 0;
    }
    return is_good ? 0 : cannot_listen(&listener->at, err);
}

static const char *file_of(const struct http_listener_options *at)
{
    const struct sockaddr_un *address = (const void *)&at->address;
    bool is_file = at->address.ss_family == AF_UNIX && address->sun_path[0] == '/';
    return is_file ? address->sun_path : NULL;
}

/* Does nobody answer there? Only a socket that refuses is left over; one whose queue is full is in use. */
static bool is_left_over(const struct http_listener_options *at)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool refuses = fd >= 0 && connect(fd, (const void *)&at->address, at->address_len) != 0 &&
                   errno == ECONNREFUSED;
    close_unused(fd);
    return refuses;
}

/* A process that was killed leaves its socket's file. Looked at again before it is removed, so that what another process
 * has just put in its place stays. */
static bool left_over_remove(const struct http_listener_options *at)
{
    const char *path = file_of(at);
    struct stat before, now;
    return path != NULL && lstat(path, &before) == 0 && S_ISSOCK(before.st_mode) &&
           is_left_over(at) && lstat(path, &now) == 0 && now.st_ino == before.st_ino &&
           now.st_dev == before.st_dev && unlink(path) == 0;
}

/* May a file be made in the folder of that path? */
static int folder_check(const char *path, struct sg_error *err)
{
    char copy[sizeof((struct sockaddr_un *)NULL)->sun_path + 1];
    struct stat is;
    (void)snprintf(copy, sizeof copy, "%s", path); /* fits */
    const char *folder = dirname(copy);
    if (stat(folder, &is) != 0 || !S_ISDIR(is.st_mode)) {
        return error_set(err, SG_E_CONFIG,
                         "cannot listen on unix:%s: its folder '%s' is not there: make it, for the "
                         "user that runs the gateway (systemd does with RuntimeDirectory=)",
                         path, folder);
    }
    if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) != 0) {
        return error_set(err, SG_E_CONFIG,
                         "cannot listen on unix:%s: the running user %u may not write in its "
                         "folder '%s': let that user or its group, or choose another",
                         path, geteuid(), folder);
    }
    return 0;
}

int http_listener_check(const struct http_listener_options *at, struct sg_error *err)
{
    const char *path = file_of(at);
    struct stat is;
    if (path == NULL) {
        return 0;
    }
    if (lstat(path, &is) != 0) {
        return folder_check(path, err);
    }
    return S_ISSOCK(is.st_mode)
               ? 0
               : error_set(err, SG_E_CONFIG,
                           "cannot listen on unix:%s: something that is no socket has this name: "
                           "move it away, or choose another path",
                           path);
}

static int cannot_bind_unix(const struct http_listener_options *at, struct sg_error *err)
{
    int error = errno;
    int code = http_listener_check(at, err);
    errno = error;
    return code != 0 ? code : cannot_listen(at, err);
}

/* It listens at once: while it does not, it would look like one that is left over. Its mode is set before. */
static int bind_unix(struct http_server *server, size_t index, struct sg_error *err)
{
    struct http_listener *listener = &server->listeners[index];
    const char *path = file_of(&listener->at);
    int fd = socket_bind(&listener->at, 0);
    if (fd < 0 && errno == EADDRINUSE) {
        fd = left_over_remove(&listener->at) ? socket_bind(&listener->at, 0) : -1;
        errno = fd < 0 ? EADDRINUSE : errno;
    }
    if (fd < 0) {
        return cannot_bind_unix(&listener->at, err);
    }
    struct stat is;
    if (path != NULL && lstat(path, &is) == 0 && S_ISSOCK(is.st_mode)) {
        listener->has_file = true;
        listener->file_device = is.st_dev;
        listener->file_number = is.st_ino;
    }
    int code = share(server, index, fd, err); /* it is the loop's now, whatever comes */
    if (code == 0 &&
        ((path != NULL && fchmodat(AT_FDCWD, path, listener->at.mode, AT_SYMLINK_NOFOLLOW) != 0) ||
         listen(fd, LISTEN_QUEUE) != 0)) {
        code = cannot_listen(&listener->at, err);
    }
    return code;
}

/* ---- all of them ---- */

static int bind_one(struct http_server *server, size_t index, struct sg_error *err)
{
    struct http_listener *listener = &server->listeners[index];
    int fd = listener->at.listen_fd;
    if (fd == 0) {
        return listener->at.address.ss_family == AF_UNIX ? bind_unix(server, index, err)
                                                         : bind_each(server, index, err);
    }
    listener->keeps_queue = true;
    address_read(listener, fd);
    return share(server, index, fd, err);
}

int listeners_bind(struct http_server *server, struct sg_error *err)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < server->listeners_count; i++) {
        code = bind_one(server, i, err);
    }
    return code;
}

void listeners_listen(struct http_server *server)
{
    for (size_t i = 0; i < server->loops_count; i++) {
        for (size_t k = 0; k < server->listeners_count; k++) {
            int fd = server->loops[i].listeners[k].fd;
            CHECK(option_set(fd, SOL_SOCKET, SO_REUSEADDR, 1));
            CHECK(listen(fd, LISTEN_QUEUE) == 0); /* bound, so it can */
        }
    }
}

void listeners_remove_files(struct http_server *server)
{
    for (size_t i = 0; i < server->listeners_count; i++) {
        struct http_listener *listener = &server->listeners[i];
        const char *path = file_of(&listener->at);
        struct stat is;
        if (listener->has_file && lstat(path, &is) == 0 && is.st_dev == listener->file_device &&
            is.st_ino == listener->file_number) {
            (void)unlink(path); /* what stays is left over, which the next start removes */
        }
        listener->has_file = false;
    }
}

void listeners_close(struct http_server *server)
{
    listeners_remove_files(server);
    for (size_t i = 0; i < server->loops_count; i++) {
        for (size_t k = 0; k < server->listeners_count; k++) {
            close_unused(server->loops[i].listeners[k].fd);
        }
    }
    for (size_t k = 0; k < server->listeners_count; k++) { /* else the first loop has it */
        if (!server->listeners[k].keeps_queue && server->listeners[k].at.listen_fd != 0) {
            (void)close(server->listeners[k].at.listen_fd); /* as above */
        }
    }
}
