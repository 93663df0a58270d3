/* The life of the process: from the checked configuration to the exit code. The order matters and is told by
 * gateway_serve(): signals are blocked before any thread exists; plugins open alone on the main thread's loop; loops and
 * workers start; requests are served; at the end everything goes in reverse. */
#include "gateway/gateway.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "gateway/request.h"
#include "http/admission.h"
#include "http/fetch.h"
#include "session/records.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    DELETIONS_MS = 20000, /* how long a shutdown waits for containers to be deleted */
    CALLS_MS = 5000,      /* … and then for plugins' calls to return */
    QUIET_EVERY_MS = 10,
    FIXED_FDS = 64, /* the log, the signals, what libraries and plugins hold */
    LOOPS_MAX = 64
};

struct life { /* of one process */
    struct gateway gateway;
    struct loop *loops[LOOPS_MAX];
    pthread_t threads[LOOPS_MAX]; /* of loops 1 and up */
    size_t threads_count;
    struct quiet {
        struct loop_task task;
        struct loop *loop;
        atomic_size_t fibers_left; /* once it has stopped */
    } quiet[LOOPS_MAX];
    int signal_fd;
    struct event *signal_event;
    struct fiber *main_fiber;
    bool stop_wanted;
    size_t calls_left; /* that did not return: nothing they may touch is freed */
    int exit_code;
};

/* ---- the address ---- */

static bool address_is_loopback(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)address;
        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
    return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

/* "127.0.0.1:4000", "[::1]:4000", "localhost:4000" */
static int parse_listen(const char *text, struct http_server_options *ret, struct sg_error *err)
{
    const char *colon = strrchr(text, ':');
    char host[256] = {0};
    size_t len = colon != NULL ? (size_t)(colon - text) : 0;
    bool bracketed = len > 2 && text[0] == '[' && text[len - 1] == ']';
    if (colon == NULL || colon[1] == '\0' || len >= sizeof host ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1) ||
        strtol(colon + 1, NULL, 10) > 65535) {
        return error_set(err, SG_E_CONFIG,
                         "server: 'listen' must be an address and port such as 127.0.0.1:4000, not "
                         "'%s'",
                         text);
    }
    memcpy(host, bracketed ? text + 1 : text, bracketed ? len - 2 : len);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int rc = getaddrinfo(host[0] != '\0' ? host : NULL, colon + 1, &hints, &found);
    if (rc != 0) {
        return error_set(err, SG_E_CONFIG, "server: 'listen' address '%s' is not known here: %s",
                         text, gai_strerror(rc));
    }
    memcpy(&ret->address, found->ai_addr, found->ai_addrlen);
    ret->address_len = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

int gateway_check_listen(struct config *config, struct http_server_options *ret,
                         struct sg_error *err)
{
    int rc = parse_listen(config->server.listen, ret, err);
    if (rc == 0 && config->auth.mode == AUTH_NONE && !config->auth.insecure &&
        !address_is_loopback(&ret->address)) {
        rc = error_set(
            err, SG_E_CONFIG,
            "auth: mode 'none' at %s would let everybody who reaches it run code: listen at "
            "127.0.0.1, set keys, or say 'insecure: true'",
            config->server.listen);
    }
    return rc;
}

static struct str listen_host(const struct config *config)
{
    const char *colon = strrchr(config->server.listen, ':');
    return (struct str){config->server.listen, (size_t)(colon - config->server.listen)};
}

/* ---- plugins ---- */

static void log_failure(const char *event, const struct sg_error *err)
{
    struct log_line line;
    log_begin(&line, SG_ERROR, event);
    log_text(&line, "error", error_code_name(err->code));
    log_text(&line, "message", err->message);
    log_end(&line);
    fprintf(stderr, "sandgate: %s\n", err->message);
}

static bool open_plugins(struct config *config)
{
    for (size_t i = 0; i < config->instances_count; i++) {
        struct sg_error err = {0};
        if (instance_open(config->instances[i], &err) != 0) {
            log_failure("plugin_open_failed", &err);
            return false;
        }
    }
    return true;
}

static void close_plugins(struct config *config)
{
    for (size_t i = config->instances_count; i > 0; i--) {
        if (config->instances[i - 1]->is_open) {
            instance_close(config->instances[i - 1]);
        }
    }
}

/* ---- threads ---- */

static void *run_loop(void *loop)
{
    struct sg_error err = {0};
    if (fetch_loop_init(loop, &err) != 0) {
        log_failure("loop_failed", &err);
        abort();
    }
    loop_run(loop);
    fetch_loop_clear(loop);
    return NULL;
}

static bool start_threads(struct life *life)
{
    for (size_t i = 1; i < life->gateway.loops_count; i++) {
        if (pthread_create(&life->threads[i], NULL, run_loop, life->loops[i]) != 0) {
            struct sg_error err = {0};
            error_set(&err, SG_E_LIMIT, "no thread can be made for loop %zu", i);
            log_failure("start_failed", &err);
            return false;
        }
        life->threads_count = i;
    }
    return true;
}

/* A loop's last fiber: stops it when no other is left, or when waiting has no end. */
static void quiet_run(void *arg)
{
    struct quiet *quiet = arg;
    int64_t deadline = deadline_in(CALLS_MS);
    while (loop_fibers(quiet->loop) > 1 && clock_ms() < deadline) {
        (void)fiber_sleep(QUIET_EVERY_MS); /* nothing cancels it */
    }
    atomic_store(&quiet->fibers_left, loop_fibers(quiet->loop) - 1);
    loop_stop(quiet->loop);
}

static void quiet_begin(struct loop_task *task)
{
    struct quiet *quiet = (struct quiet *)((char *)task - offsetof(struct quiet, task));
    struct sg_error err = {0};
    if (fiber_start(quiet->loop, "quiet", quiet_run, quiet, NULL, &err) != 0) {
        atomic_store(&quiet->fibers_left, loop_fibers(quiet->loop));
        loop_stop(quiet->loop);
    }
}

/* Each other loop stops when its fibers have ended; before that no worker may still need one. */
static void stop_threads(struct life *life)
{
    int64_t deadline = deadline_in(CALLS_MS);
    while (worker_pool_busy(life->gateway.pool) > 0 && clock_ms() < deadline) {
        (void)fiber_sleep(QUIET_EVERY_MS); /* nothing cancels the main fiber */
    }
    for (size_t i = 1; i <= life->threads_count; i++) {
        struct quiet *quiet = &life->quiet[i];
        quiet->task.run = quiet_begin;
        quiet->loop = life->loops[i];
        loop_post(quiet->loop, &quiet->task);
    }
    for (size_t i = 1; i <= life->threads_count; i++) {
        (void)pthread_join(life->threads[i], NULL); /* ours, joined once */
        life->calls_left += atomic_load(&life->quiet[i].fibers_left);
    }
    life->calls_left += worker_pool_busy(life->gateway.pool);
    life->threads_count = 0;
}

/* ---- signals ---- */

static void on_signal(evutil_socket_t fd, short events, void *arg)
{
    (void)events;
    struct life *life = arg;
    struct signalfd_siginfo info;
    while (read(fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGTERM && info.ssi_signo != SIGINT) {
            continue; /* children are waited for by their descriptors */
        }
        if (life->stop_wanted) {
            _exit(1); /* asked a second time */
        }
        life->stop_wanted = true;
        fiber_wake(life->main_fiber);
    }
}

/* Before any thread exists, so that all inherit it. */
static int block_signals(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGCHLD);
    (void)signal(SIGPIPE, SIG_IGN);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* ---- serving and stopping ---- */

static size_t fixed_fds(const struct life *life)
{
    return FIXED_FDS +
           (HTTP_SERVER_LOOP_DESCRIPTORS + FETCH_LOOP_DESCRIPTORS) * life->gateway.loops_count;
}

static bool start_serving(struct life *life)
{
    struct gateway *gateway = &life->gateway;
    const struct config *config = gateway->config;
    struct sg_error err = {0};
    struct records_options records;
    records_options_default(&records);
    gateway->records = records_new(&records);
    struct registry_options sessions;
    registry_options_default(&sessions);
    sessions.loops = gateway->loops;
    sessions.loops_count = gateway->loops_count;
    sessions.idle_timeout_ms = config->sessions.idle_timeout_ms;
    sessions.per_identity = (size_t)config->sessions.per_identity;
    sessions.max_containers = (size_t)config->sessions.max_containers;
    sessions.max_containers_total = (size_t)config->sessions.max_containers_total;
    gateway->listen.loops = gateway->loops;
    gateway->listen.loops_count = gateway->loops_count;
    gateway->listen.handle = request_handle;
    gateway->listen.ctx = gateway;
    if (registry_new(&sessions, &gateway->registry, &err) != 0 ||
        http_server_new(&gateway->listen, &gateway->server, &err) != 0) {
        log_failure("start_failed", &err);
        return false;
    }
    if (!start_threads(life)) {
        return false;
    }
    http_server_start(gateway->server);
    return true;
}

static void log_serving(const struct life *life)
{
    const struct config *config = life->gateway.config;
    struct log_line line;
    if (geteuid() == 0) {
        log_begin(&line, SG_WARN, "serving_as_root");
        log_text(&line, "message", "run the gateway as a user of its own");
        log_end(&line);
    }
    struct str host = life->gateway.listen_host;
    char address[300];
    (void)snprintf(address, sizeof address, "%.*s:%u", (int)host.len, host.data,
                   http_server_port(life->gateway.server));
    log_begin(&line, SG_INFO, "serving");
    log_text(&line, "address", address);
    log_int(&line, "loops", (int64_t)life->gateway.loops_count);
    log_int(&line, "upstreams", (int64_t)config->upstreams_count);
    log_int(&line, "interceptors", (int64_t)config->interceptors_count);
    log_end(&line);
}

/* Until no exchange is in progress, or `deadline`. */
static void wait_quiet(struct http_server *server, int64_t deadline, bool connections)
{
    while ((connections ? http_server_connections(server) : http_server_busy(server)) > 0 &&
           clock_ms() < deadline) {
        (void)fiber_sleep(QUIET_EVERY_MS); /* nothing cancels the main fiber */
    }
}

static void stop_serving(struct life *life)
{
    struct gateway *gateway = &life->gateway;
    struct log_line line;
    atomic_store(&gateway->is_draining, true);
    log_begin(&line, SG_INFO, "draining");
    log_int(&line, "requests", (int64_t)http_server_busy(gateway->server));
    log_end(&line);
    http_server_drain(gateway->server);
    wait_quiet(gateway->server, deadline_in(gateway->config->server.drain_ms), false);
    http_server_cancel(gateway->server);
    wait_quiet(gateway->server, deadline_in(DELETIONS_MS), true);
    size_t left = registry_shutdown(gateway->registry, deadline_in(DELETIONS_MS));
    log_begin(&line, left > 0 ? SG_WARN : SG_INFO, "stopped");
    log_int(&line, "containers_left", (int64_t)left);
    log_end(&line);
}

static void wait_for_stop(struct life *life)
{
    while (!life->stop_wanted) {
        (void)fiber_park(DEADLINE_NONE); /* woken by the signals */
    }
}

/* The main fiber: everything that waits between start and end runs in it. */
static void life_run(void *arg)
{
    struct life *life = arg;
    struct gateway *gateway = &life->gateway;
    struct sg_error err = {0};
    life->exit_code = 1;
    life->main_fiber = fiber_self();
    if (fetch_loop_init(life->loops[0], &err) != 0) {
        log_failure("start_failed", &err);
        loop_stop(life->loops[0]);
        return;
    }
    core_services_set(gateway_services());
    if (open_plugins(gateway->config) && !life->stop_wanted) {
        if (start_serving(life)) {
            log_serving(life);
            wait_for_stop(life);
            stop_serving(life);
            life->exit_code = 0;
        }
        stop_threads(life);
    }
    int64_t deadline = deadline_in(CALLS_MS);
    close_plugins(gateway->config);
    fetch_loop_clear(life->loops[0]);
    while (loop_fibers(life->loops[0]) > 1 && clock_ms() < deadline) {
        (void)fiber_sleep(QUIET_EVERY_MS); /* nothing cancels it */
    }
    life->calls_left += loop_fibers(life->loops[0]) - 1;
    loop_stop(life->loops[0]);
}

static int make_loops(struct life *life, struct sg_error *err)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct gateway *gateway = &life->gateway;
    gateway->loops = life->loops;
    size_t wanted = cores < 1 ? 1 : cores > LOOPS_MAX ? LOOPS_MAX : (size_t)cores;
    int rc = worker_pool_new((size_t)gateway->config->server.workers, 1024, &gateway->pool, err);
    for (size_t i = 0; rc == 0 && i < wanted; i++) {
        rc = loop_new((unsigned)i, gateway->pool, &life->loops[i], err);
        gateway->loops_count += rc == 0;
    }
    return rc;
}

static void life_free(struct life *life)
{
    struct gateway *gateway = &life->gateway;
    worker_pool_free(gateway->pool);
    http_server_free(gateway->server);
    registry_free(gateway->registry);
    records_free(gateway->records);
    if (life->signal_event != NULL) {
        event_free(life->signal_event);
    }
    for (size_t i = 0; i < gateway->loops_count; i++) {
        loop_free(life->loops[i]);
    }
    if (life->signal_fd >= 0) {
        close(life->signal_fd);
    }
}

static int life_prepare(struct life *life, struct sg_error *err)
{
    int rc = gateway_check_listen(life->gateway.config, &life->gateway.listen, err);
    if (rc != 0) {
        return rc;
    }
    life->gateway.listen_host = listen_host(life->gateway.config);
    life->signal_fd = block_signals();
    CHECK(life->signal_fd >= 0);
    rc = fetch_global_init(err);
    rc = rc == 0 ? make_loops(life, err) : rc;
    if (rc == 0) {
        (void)admission_init(fixed_fds(life)); /* the limit is asked for where it counts */
        life->signal_event = event_new(loop_base(life->loops[0]), life->signal_fd,
                                       EV_READ | EV_PERSIST, on_signal, life);
        CHECK(life->signal_event != NULL);
        CHECK(event_add(life->signal_event, NULL) == 0);
        rc = fiber_start(life->loops[0], "main", life_run, life, &life->main_fiber, err);
    }
    return rc;
}

int gateway_serve(struct config *config)
{
    struct life life = {.gateway = {.config = config}, .signal_fd = -1, .exit_code = 1};
    struct sg_error err = {0};
    if (life_prepare(&life, &err) != 0) {
        fprintf(stderr, "sandgate: %s\n", err.message);
        life_free(&life);
        return 1;
    }
    bool watched = watchdog_start(life.loops, life.gateway.loops_count, &err) == 0;
    loop_run(life.loops[0]);
    if (watched) {
        watchdog_stop();
    }
    if (life.calls_left > 0) {
        struct log_line line;
        log_begin(&line, SG_ERROR, "calls_left");
        log_int(&line, "calls", (int64_t)life.calls_left);
        log_end(&line);
        _exit(1); /* what they may still touch must not be freed */
    }
    life_free(&life);
    fetch_global_clear();
    return life.exit_code;
}
