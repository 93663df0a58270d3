/* The service manager's side of the process: sd_notify(3) and sd_listen_fds(3), as their pages describe them. */
#include "gateway/systemd.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FIRST_FD = 3 }; /* SD_LISTEN_FDS_START */

/* ---- telling the state ---- */

static void log_unheard(const char *why)
{
    struct log_line line;
    log_begin(&line, SG_WARN, "notify_failed");
    log_text(&line, "message", why);
    log_end(&line);
}

void service_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t len = path != NULL ? strlen(path) : 0;
    if (len == 0) {
        return;
    }
    if ((path[0] != '/' && path[0] != '@') || len >= sizeof to.sun_path) {
        log_unheard("NOTIFY_SOCKET must be an absolute path or an abstract name");
        return;
    }
    memcpy(to.sun_path, path, len);
    if (path[0] == '@') {
        to.sun_path[0] = '\0'; /* an abstract name has no NUL at its end */
    }
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (path[0] == '/'));
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || sendto(fd, state, strlen(state), MSG_NOSIGNAL, (void *)&to, size) < 0) {
        log_unheard(strerror(errno));
    }
    if (fd >= 0) {
        (void)close(fd); /* nothing was written that could be lost */
    }
}

/* ---- the sockets that were handed over ---- */

static bool read_number(const char *name, long *ret)
{
    const char *text = getenv(name);
    char *end;
    if (text == NULL || text[0] < '0' || text[0] > '9') {
        return false;
    }
    errno = 0;
    *ret = strtol(text, &end, 10);
    return *end == '\0' && errno == 0;
}

static int socket_option(int fd, int option)
{
    int value = -1;
    socklen_t len = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 ? value : -1;
}

static bool is_listener(int fd, struct http_listener_options *ret)
{
    ret->address_len = sizeof ret->address;
    return socket_option(fd, SO_TYPE) == SOCK_STREAM && socket_option(fd, SO_ACCEPTCONN) == 1 &&
           getsockname(fd, (void *)&ret->address, &ret->address_len) == 0 &&
           (ret->address.ss_family == AF_INET || ret->address.ss_family == AF_INET6 ||
            ret->address.ss_family == AF_UNIX);
}

/* The number of sockets that are announced to this process. */
static size_t announced(void)
{
    long pid = 0, count = 0;
    bool is_ours = read_number("LISTEN_PID", &pid) && pid == (long)getpid();
    bool is_told = read_number("LISTEN_FDS", &count) && count > 0;
    return is_ours && is_told ? (size_t)count : 0;
}

bool activation_is_announced(void)
{
    return announced() > 0;
}

/* Nobody else is told of them from now on. */
static size_t announced_take(void)
{
    size_t count = announced();
    (void)unsetenv("LISTEN_PID"); /* these names are valid, so that it cannot fail */
    (void)unsetenv("LISTEN_FDS");
    (void)unsetenv("LISTEN_FDNAMES");
    return count;
}

int activation_take_from(int first_fd, struct listen *ret, struct sg_error *err)
{
    size_t count = announced_take();
    ret->count = 0;
    if (count > HTTP_LISTENERS_MAX) {
        return error_set(err, SG_E_CONFIG,
                         "the service manager handed over %zu sockets; sandgate serves at %d at "
                         "the most: leave some ListenStream= out of the socket units",
                         count, HTTP_LISTENERS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        int fd = first_fd + (int)i;
        if (!is_listener(fd, &ret->at[i])) {
            return error_set(
                err, SG_E_CONFIG,
                "what the service manager handed over as socket %zu is not a listening "
                "stream socket: the socket unit needs 'ListenStream=ADDRESS:PORT' or "
                "'ListenStream=/PATH', and 'Accept=no'",
                i + 1);
        }
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* an open descriptor takes it */
        ret->at[i].listen_fd = fd;
    }
    ret->count = count;
    return 0;
}

int activation_take(struct listen *ret, struct sg_error *err)
{
    return activation_take_from(FIRST_FD, ret, err);
}
