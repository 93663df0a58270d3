/* The server as a whole: binding, starting and draining on all loops. What touches a loop's part is posted to it. */
#include "http/fetch.h"
#include "http/server_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LISTEN_QUEUE 4096         /* the kernel lowers it to net.core.somaxconn */
#define NOTSENT_BYTES (64 * 1024) /* more is not handed to the kernel than it can send soon */

/* ---- binding ---- */

static void address_write(const struct sockaddr_storage *address, char *out, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "?";
    if (address->ss_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const void *)address;
        (void)inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host); /* else it stays '?' */
        (void)snprintf(out, size, "[%s]:%u", host, ntohs(six->sin6_port));
        return;
    }
    const struct sockaddr_in *four = (const void *)address;
    (void)inet_ntop(AF_INET, &four->sin_addr, host, sizeof host); /* else it stays '?' */
    (void)snprintf(out, size, "%s:%u", host, ntohs(four->sin_port));
}

static uint16_t *address_port(struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? &((struct sockaddr_in6 *)(void *)address)->sin6_port
                                          : &((struct sockaddr_in *)(void *)address)->sin_port;
}

static int cannot_listen(const struct http_server_options *options, struct sg_error *err)
{
    int error = errno;
    char address[96];
    address_write(&options->address, address, sizeof address);
    const char *hint = error == EADDRINUSE ? " (is another server running there?)"
                       : error == EACCES   ? " (ports below 1024 need a privilege)"
                                           : "";
    return error_set(err, SG_E_CONFIG, "cannot listen on %s: %s%s", address, strerror(error), hint);
}

static bool option_set(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

static int socket_bind(const struct http_server_options *options, int reuse)
{
    int fd = socket(options->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -1;
    }
    if (!option_set(fd, SOL_SOCKET, reuse, 1) ||
        bind(fd, (const void *)&options->address, options->address_len) != 0) {
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
static int probe(const struct http_server_options *options, struct sg_error *err)
{
    int fd = socket_bind(options, SO_REUSEADDR);
    if (fd < 0 || listen(fd, 1) != 0) {
        (void)cannot_listen(options, err); /* the code is returned below */
        if (fd >= 0) {
            (void)close(fd); /* nothing was written that could be lost */
        }
        return SG_E_CONFIG;
    }
    (void)close(fd); /* as above */
    return 0;
}

static int port_read(int fd, uint16_t *ret)
{
    struct sockaddr_storage bound;
    socklen_t len = sizeof bound;
    if (getsockname(fd, (void *)&bound, &len) != 0) {
        return -1;
    }
    *ret = ntohs(*address_port(&bound));
    return 0;
}

/* Accepted sockets inherit these options. */
static int listener_bind(const struct http_server_options *options, struct server_loop *home,
                         struct sg_error *err)
{
    home->listen_fd = socket_bind(options, SO_REUSEPORT);
    home->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (home->listen_fd < 0 || home->spare_fd < 0 ||
        !option_set(home->listen_fd, IPPROTO_TCP, TCP_NODELAY, 1) ||
        !option_set(home->listen_fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, NOTSENT_BYTES)) {
        return cannot_listen(options, err);
    }
    return 0;
}

/* One listening socket for all: each loop has a descriptor of its own to it. */
static int share_all(const struct http_server_options *options, struct http_server *server,
                     struct sg_error *err)
{
    for (size_t i = 0; i < server->loops_count; i++) {
        struct server_loop *home = &server->loops[i];
        home->is_shared = true;
        home->listen_fd =
            i == 0 ? options->listen_fd : fcntl(server->loops[0].listen_fd, F_DUPFD_CLOEXEC, 0);
        home->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (home->listen_fd < 0 || home->spare_fd < 0 ||
            fcntl(home->listen_fd, F_SETFL, O_NONBLOCK) != 0 ||
            !option_set(home->listen_fd, IPPROTO_TCP, TCP_NODELAY, 1) ||
            !option_set(home->listen_fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, NOTSENT_BYTES)) {
            return cannot_listen(options, err);
        }
    }
    CHECK(port_read(options->listen_fd, &server->port) == 0);
    return 0;
}

static int bind_all(const struct http_server_options *given, struct http_server *server,
                    struct sg_error *err)
{
    struct http_server_options options = *given;
    if (*address_port(&options.address) != 0) {
        int code = probe(&options, err);
        if (code != 0) {
            return code;
        }
    }
    for (size_t i = 0; i < server->loops_count; i++) {
        int code = listener_bind(&options, &server->loops[i], err);
        if (code != 0) {
            return code;
        }
        if (i == 0) { /* port 0 becomes the same for all */
            CHECK(port_read(server->loops[0].listen_fd, &server->port) == 0);
            *address_port(&options.address) = htons(server->port);
        }
    }
    return 0;
}

/* ---- beginning and end ---- */

static void server_loop_init(struct server_loop *home, struct http_server *server,
                             struct loop *loop)
{
    home->server = server;
    home->loop = loop;
    home->listen_fd = home->spare_fd = -1;
    TAILQ_INIT(&home->connections);
    for (int i = 0; i < PLACE_COUNT; i++) {
        TAILQ_INIT(&home->places[i]);
    }
    TAILQ_INIT(&home->rejected);
}

static void server_unref(struct http_server *server)
{
    if (atomic_fetch_sub(&server->refs, 1) > 1) {
        return;
    }
    for (size_t i = 0; i < server->loops_count; i++) {
        struct server_loop *home = &server->loops[i];
        if (home->listen_fd >= 0) {
            (void)close(home->listen_fd); /* nothing was written that could be lost */
        }
        if (home->spare_fd >= 0) {
            (void)close(home->spare_fd); /* as above */
        }
    }
    server->magic = 0;
    free(server);
}

int http_server_new(const struct http_server_options *options, struct http_server **ret,
                    struct sg_error *err)
{
    CHECK(options->loops_count > 0);
    CHECK(options->address.ss_family == AF_INET || options->address.ss_family == AF_INET6);
    size_t size = sizeof(struct http_server) + options->loops_count * sizeof(struct server_loop);
    struct http_server *server = check_alloc(calloc(1, size));
    server->magic = SERVER_MAGIC;
    atomic_init(&server->refs, 1);
    server->handle = options->handle;
    server->ctx = options->ctx;
    server->loops_count = options->loops_count;
    server->tuning = (struct http_tuning){.header_ms = LIMIT_HEADER_MS,
                                          .body_silence_ms = LIMIT_BODY_SILENCE_MS,
                                          .idle_ms = LIMIT_IDLE_MS,
                                          .write_ms = LIMIT_WRITE_MS,
                                          .linger_ms = 5000,
                                          .settled_ms = 15000};
    for (size_t i = 0; i < server->loops_count; i++) {
        server_loop_init(&server->loops[i], server, options->loops[i]);
    }
    int code =
        options->listen_fd != 0 ? share_all(options, server, err) : bind_all(options, server, err);
    if (code != 0) {
        server_unref(server);
        return code;
    }
    *ret = server;
    return 0;
}

void http_server_free(struct http_server *server)
{
    if (server == NULL) {
        return;
    }
    CHECK_MAGIC(server, SERVER_MAGIC);
    CHECK(http_server_connections(server) == 0);
    for (size_t i = 0; i < server->loops_count; i++) {
        CHECK(!server->loops[i].is_accepting);
    }
    server_unref(server);
}

void http_server_tune(struct http_server *server, const struct http_tuning *tuning)
{
    CHECK(!server->is_started);
    server->tuning = *tuning;
}

/* ---- work for every loop ---- */

struct server_task { /* keeps the server until it has run */
    struct loop_task task;
    struct server_loop *home;
    void (*run)(struct server_loop *, void *arg);
    void *arg;
};

static void server_task_run(struct loop_task *task)
{
    struct server_task *work = (void *)task;
    CHECK_MAGIC(work->home->server, SERVER_MAGIC);
    work->run(work->home, work->arg);
    server_unref(work->home->server);
    free(work);
}

static void post_to_all(struct http_server *server, void (*run)(struct server_loop *, void *),
                        void *arg)
{
    CHECK_MAGIC(server, SERVER_MAGIC);
    for (size_t i = 0; i < server->loops_count; i++) {
        struct server_task *work = check_alloc(calloc(1, sizeof *work));
        work->task.run = server_task_run;
        work->home = &server->loops[i];
        work->run = run;
        work->arg = arg;
        atomic_fetch_add(&server->refs, 1);
        loop_post(work->home->loop, &work->task);
    }
}

/* ---- relief: descriptors or places are nearly used up ---- */

bool server_connections_are_near(struct http_server *server)
{
    size_t most = admission_connections_max();
    return http_server_connections(server) >= most - most / 8;
}

/* Would so many more be too many? */
static bool is_over(struct http_server *server, size_t count)
{
    return http_server_connections(server) >= admission_connections_max() ||
           count > admission_limit() || admission_used() > admission_limit() - count;
}

/* One of those that may be about to send their head: no more of them than are wanted, on all loops together, since the
 * newest may be the one for which room was made. */
static bool head_gives_way(struct server_loop *home, size_t count)
{
    struct http_server *server = home->server;
    size_t left = atomic_load(&server->relief_heads);
    while (left > 0 && !atomic_compare_exchange_weak(&server->relief_heads, &left, left - 1)) {
    }
    if (left == 0) {
        return false;
    }
    bool is_found = is_over(server, count) && connection_give_way(home, PLACE_HEAD);
    if (!is_found) {
        atomic_fetch_add(&server->relief_heads, 1); /* another loop may have one */
    }
    return is_found;
}

static void relieve_here(struct server_loop *home, void *arg)
{
    struct http_server *server = home->server;
    (void)arg;
    if (admission_is_near()) {
        fetch_close_idle(home->loop);
    }
    bool is_near = admission_is_near() || server_connections_are_near(server);
    size_t count = is_near ? atomic_load(&server->relief) : 0;
    for (size_t i = 0; i < count; i++) { /* each ends in its fiber */
        bool has_given = is_over(home->server, count) ? connection_give_way(home, PLACE_OVER)
                                                      : connection_give_way_early(home);
        if (!has_given && !head_gives_way(home, count)) {
            break;
        }
    }
    atomic_fetch_sub(&server->relieving, 1);
}

void server_relieve(struct http_server *server, size_t count)
{
    size_t none = 0;
    size_t heads = is_over(server, count) ? count : 0;
    if (atomic_compare_exchange_strong(&server->relieving, &none, server->loops_count)) {
        atomic_store(&server->relief, count);
        atomic_store(&server->relief_heads, heads);
        post_to_all(server, relieve_here, NULL);
    } /* else they are at it */
}

static void relieve(struct admission_reliever *reliever, size_t count)
{
    server_relieve(
        (struct http_server *)((char *)reliever - offsetof(struct http_server, reliever)), count);
}

static void start_here(struct server_loop *home, void *arg)
{
    (void)arg;
    listener_start(home);
}

void http_server_start(struct http_server *server)
{
    CHECK(!server->is_started);
    server->is_started = true;
    for (size_t i = 0; i < server->loops_count; i++) {
        CHECK(option_set(server->loops[i].listen_fd, SOL_SOCKET, SO_REUSEADDR, 1));
        CHECK(listen(server->loops[i].listen_fd, LISTEN_QUEUE) == 0); /* bound, so it can */
    }
    post_to_all(server, start_here, NULL);
    server->reliever.relieve = relieve;
    admission_set_reliever(&server->reliever);
}

/* A drain waits on its fiber's stack until each loop has posted its `done`. */
struct drain {
    struct fiber *waiter;
    size_t left;
    struct drain_done {
        struct loop_task task;
        struct drain *drain;
    } * done; /* one a loop */
};

static void drain_done(struct loop_task *task)
{
    struct drain *drain = ((struct drain_done *)(void *)task)->drain;
    drain->left--;
    fiber_wake(drain->waiter);
}

static void drain_here(struct server_loop *home, void *arg)
{
    struct drain *drain = arg;
    home->is_draining = true;
    listener_stop(home);
    rejected_close_all(home);
    connections_close_silent(home);
    struct drain_done *done = &drain->done[home - home->server->loops];
    loop_post(fiber_home(drain->waiter), &done->task);
}

void http_server_drain(struct http_server *server)
{
    admission_set_reliever(NULL); /* all that is idle is closed below */
    struct drain drain = {.waiter = fiber_self(), .left = server->loops_count};
    CHECK(drain.waiter != NULL);
    drain.done = check_alloc(calloc(drain.left, sizeof *drain.done));
    for (size_t i = 0; i < drain.left; i++) {
        drain.done[i] = (struct drain_done){.task.run = drain_done, .drain = &drain};
    }
    post_to_all(server, drain_here, &drain);
    fiber_shield(); /* the loops hold pointers to this stack */
    while (drain.left > 0) {
        (void)fiber_park(DEADLINE_NONE); /* shielded: only wake-ups end it */
    }
    fiber_unshield();
    free(drain.done);
}

static void cancel_here(struct server_loop *home, void *arg)
{
    (void)arg;
    struct connection *connection;
    TAILQ_FOREACH(connection, &home->connections, link)
    {
        fiber_cancel(connection->fiber);
    }
}

void http_server_cancel(struct http_server *server)
{
    post_to_all(server, cancel_here, NULL);
}

/* ---- counts ---- */

size_t http_server_busy(struct http_server *server)
{
    size_t count = 0;
    for (size_t i = 0; i < server->loops_count; i++) {
        count += atomic_load(&server->loops[i].busy_count);
    }
    return count;
}

size_t http_server_connections(struct http_server *server)
{
    size_t count = 0;
    for (size_t i = 0; i < server->loops_count; i++) {
        count += atomic_load(&server->loops[i].connections_count);
    }
    return count;
}

uint16_t http_server_port(const struct http_server *server)
{
    return server->port;
}
