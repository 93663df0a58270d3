/* The sockets that libcurl opens, counted against the process's descriptors.
 *
 * libcurl 7.88 tells of a socket's end only if the socket was ever connected; one that was given up while connecting it
 * closes silently. So each socket is noted with the transfer that opened it, and when that transfer ends, whatever of
 * its sockets is not the connection that remains is taken to be closed. */
#include "http/admission.h"
#include "http/fetch_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct fetch_socket *socket_at(struct fetch_loop *home, int fd)
{
    CHECK(fd >= 0);
    if ((size_t)fd >= home->sockets_size) {
        size_t size = (size_t)fd + 64 + home->sockets_size;
        home->sockets = check_alloc(reallocarray(home->sockets, size, sizeof *home->sockets));
        memset(home->sockets + home->sockets_size, 0,
               (size - home->sockets_size) * sizeof *home->sockets);
        home->sockets_size = size;
    }
    return &home->sockets[fd];
}

static void socket_forget(struct fetch_socket *socket)
{
    socket_unwatch(socket);
    if (socket->multi != NULL) {
        CHECK(socket->multi->sockets > 0);
        socket->multi->sockets--;
        admission_give(1);
        *socket = (struct fetch_socket){0};
    }
}

/* A number that comes again was closed silently before. */
static void socket_note(struct fetch *fetch, int fd)
{
    struct fetch_socket *socket = socket_at(fetch->home, fd);
    socket_forget(socket);
    *socket =
        (struct fetch_socket){.multi = fetch->multi, .opener = fetch, .way_id = fetch->way_id};
    fetch->multi->sockets++;
    if (fetch->opened_count < COUNT_OF(fetch->opened)) {
        fetch->opened[fetch->opened_count++] = fd;
    }
}

curl_socket_t socket_open(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct fetch *fetch = arg;
    CHECK_MAGIC(fetch, FETCH_MAGIC);
    CHECK(fetch->multi != NULL);
    if (purpose != CURLSOCKTYPE_IPCXN || !admission_take(1)) {
        fetch->no_descriptor = true;
        return CURL_SOCKET_BAD;
    }
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                    address->protocol);
    if (fd < 0) {
        fetch->no_descriptor = errno == EMFILE || errno == ENFILE;
        admission_give(1);
        return CURL_SOCKET_BAD;
    }
    socket_note(fetch, fd);
    return fd;
}

int socket_close(void *arg, curl_socket_t fd)
{
    struct fetch_loop *home = arg;
    CHECK_MAGIC(home, FETCH_LOOP_MAGIC);
    socket_forget(socket_at(home, fd));
    return close(fd);
}

/* ---- what is kept, before it is used again ---- */

static uint16_t local_port_of(int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &len) != 0) {
        return 0;
    }
    return address.ss_family == AF_INET6
               ? ntohs(((const struct sockaddr_in6 *)(const void *)&address)->sin6_port)
               : ntohs(((const struct sockaddr_in *)(const void *)&address)->sin_port);
}

static void note_port(struct fetch *fetch, uint16_t port)
{
    for (size_t i = 0; i < fetch->opened_count; i++) {
        if (fetch->opened_count == 1 || local_port_of(fetch->opened[i]) == port) {
            fetch->home->fd_by_port[port] = fetch->opened[i];
        }
    }
}

/* Bytes that nobody asked for, or its end: what would be read as the answer to a request that is not sent yet. Or it was made
 * by another way: libcurl compares much of that, but not in all of its versions for whom a proxy has made the tunnel. */
static bool is_spoiled(struct fetch *fetch, int fd)
{
    char byte;
    const struct fetch_socket *socket = socket_at(fetch->home, fd);
    return socket->multi == fetch->multi &&
           (socket->way_id != fetch->way_id || recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0);
}

/* libcurl 7.88 takes a kept connection up though there are bytes to read. It says which one only by its own port. */
int socket_before_request(void *arg, char *remote_ip, char *local_ip, int remote_port,
                          int local_port)
{
    struct fetch *fetch = arg;
    (void)remote_ip, (void)local_ip, (void)remote_port;
    CHECK_MAGIC(fetch, FETCH_MAGIC);
    uint16_t port = (uint16_t)local_port;
    if (fetch->opened_count > 0) {
        note_port(fetch, port);
    } else {
        fetch->is_spoiled = is_spoiled(fetch, fetch->home->fd_by_port[port]);
    }
    fetch->is_connected = !fetch->is_spoiled;
    return fetch->is_spoiled ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

size_t sockets_open_count(const struct fetch *fetch)
{
    size_t count = 0;
    for (size_t i = 0; i < fetch->opened_count; i++) {
        count += socket_at(fetch->home, fetch->opened[i])->opener == fetch;
    }
    return count;
}

void sockets_settle(struct fetch *fetch, curl_socket_t remaining)
{
    for (size_t i = 0; i < fetch->opened_count; i++) {
        struct fetch_socket *socket = socket_at(fetch->home, fetch->opened[i]);
        if (socket->opener != fetch) {
            continue; /* closed, and the number may be another's by now */
        }
        socket->opener = NULL;
        if (fetch->opened[i] != remaining) {
            socket_forget(socket);
        }
    }
    fetch->opened_count = 0;
}
