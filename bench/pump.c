/* The floor of a passed chunk: accepts connections, connects each to the upstream, and hands bytes on in both directions,
 * unread. What any program must spend on a chunk is one wake-up, one recv and one send; this one spends nothing else.
 *
 *   bench_pump --port PORT --upstream PORT */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS_MAX 256
#define BYTES_MAX 65536

static int peers[65536]; /* by descriptor: where its bytes go; 0: nowhere */

static _Noreturn void fail(const char *what)
{
    perror(what);
    exit(1);
}

static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int listen_at(int port)
{
    struct sockaddr_in address = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 4096) != 0) {
        fail("listening");
    }
    return fd;
}

static void watch(int epoll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* no TCP on the listener */
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        fail("watching");
    }
}

static void begin(int epoll, int client, int upstream_port)
{
    struct sockaddr_in address = loopback(upstream_port);
    int upstream = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (upstream < 0 || client >= 65536 || upstream >= 65536 ||
        connect(upstream, (struct sockaddr *)&address, sizeof address) != 0) {
        fail("connecting");
    }
    peers[client] = upstream;
    peers[upstream] = client;
    watch(epoll, client);
    watch(epoll, upstream);
}

static void end(int fd)
{
    int peer = peers[fd];
    peers[fd] = peers[peer] = 0;
    (void)close(fd);
    (void)close(peer);
}

static void hand_on(int fd)
{
    static char bytes[BYTES_MAX];
    ssize_t len = recv(fd, bytes, sizeof bytes, 0);
    if (len <= 0 || send(peers[fd], bytes, (size_t)len, MSG_NOSIGNAL) != len) {
        end(fd);
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"port", required_argument, NULL, 'p'}, {"upstream", required_argument, NULL, 'u'}, {0}};
    int port = 0, upstream = 0, option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        *(option == 'p' ? &port : &upstream) = option == '?' ? 0 : (int)strtol(optarg, NULL, 10);
    }
    int listener = listen_at(port), epoll = epoll_create1(EPOLL_CLOEXEC);
    watch(epoll, listener);
    for (;;) {
        struct epoll_event events[EVENTS_MAX];
        int count = epoll_wait(epoll, events, EVENTS_MAX, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
                if (client >= 0) {
                    begin(epoll, client, upstream);
                }
            } else if (peers[fd] != 0) { /* else it ended in this turn */
                hand_on(fd);
            }
        }
    }
}
