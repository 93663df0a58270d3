/* Serving: what happens between the opening of the plugins and their closing (life.c), from the first connection that
 * may come to the last container that is deleted. */
#include "gateway/life.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway/metrics.h"
#include "gateway/request.h"
<<<<<<< HEAD
#include "gateway/systemd.h"
=======
#include "http/admission.h"
#include "http/fetch.h"
#include "session/records.h"
>>>>>>> rules

#include <stdio.h>
#include <unistd.h>

int gateway_make_registry(struct gateway *gateway, struct sg_error *err)
{
    const struct sessions_config *from = &gateway->config->sessions;
    struct registry_options options;
    registry_options_default(&options);
    options.loops = gateway->loops;
    options.loops_count = gateway->loops_count;
    options.idle_timeout_ms = from->idle_timeout_ms;
    options.per_identity = (size_t)from->per_identity;
    options.max_containers = (size_t)from->max_containers;
    options.max_containers_total = (size_t)from->max_containers_total;
    return registry_new(&options, &gateway->registry, err);
}

static bool start_serving(struct life *life)
{
    struct gateway *gateway = &life->gateway;
    struct sg_error err = {0};
<<<<<<< HEAD
=======
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
>>>>>>> rules
    gateway->listen.loops = gateway->loops;
    gateway->listen.loops_count = gateway->loops_count;
    gateway->listen.handle = request_handle;
    gateway->listen.ctx = gateway;
    if (gateway_make_registry(gateway, &err) != 0 ||
        http_server_new(&gateway->listen, &gateway->server, &err) != 0) {
        life_fail(life, "start_failed", &err);
        return false;
    }
    if (!life_start_threads(life)) {
        return false;
    }
    http_server_start(gateway->server);
    return true;
}

static void log_serving(const struct life *life, const char *address)
{
    const struct config *config = life->gateway.config;
    struct log_line line;
    if (geteuid() == 0) {
        log_begin(&line, SG_WARN, "serving_as_root");
        log_text(&line, "message", "run the gateway as a user of its own");
        log_end(&line);
    }
    log_begin(&line, SG_INFO, "serving");
    log_text(&line, "address", address);
    log_int(&line, "loops", (int64_t)life->gateway.loops_count);
    log_int(&line, "upstreams", (int64_t)config->upstreams_count);
    log_int(&line, "interceptors", (int64_t)config->interceptors_count);
    if (life->gateway.listen.listen_fd != 0) {
        log_text(&line, "socket", "handed_over");
    }
    log_end(&line);
}

static void tell_serving(const struct life *life)
{
    const struct gateway *gateway = &life->gateway;
    char address[sizeof gateway->listen_host + 8], state[sizeof address + 32];
    (void)snprintf(address, sizeof address, "%s:%u", gateway->listen_host,
                   http_server_port(gateway->server));                             /* fits */
    (void)snprintf(state, sizeof state, "READY=1\nSTATUS=Serving at %s", address); /* fits */
    log_serving(life, address);
    service_notify(state);
}

/* Until no exchange is in progress, or `deadline`. */
static void wait_quiet(struct http_server *server, int64_t deadline, bool connections)
{
    while ((connections ? http_server_connections(server) : http_server_busy(server)) > 0 &&
           clock_ms() < deadline) {
        (void)fiber_sleep(10); /* nothing cancels the main fiber */
    }
}

static void stop_serving(struct life *life)
{
    struct gateway *gateway = &life->gateway;
    struct log_line line;
    atomic_store(&gateway->is_draining, true);
    service_notify("STOPPING=1\nSTATUS=Finishing what is in progress");
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

static int serve(struct life *life)
{
    int code = life->failure_code;
    if (start_serving(life)) {
        tell_serving(life);
        life_wait_for_stop(life);
        stop_serving(life);
        code = 0;
    }
    return code;
}

static size_t loops_wanted(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
<<<<<<< HEAD
    return cores < 1 ? 1 : cores > LOOPS_MAX ? LOOPS_MAX : (size_t)cores;
=======
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
>>>>>>> rules
}

int gateway_serve(struct config *config)
{
    struct life life = {.gateway = {.config = config},
                        .signal_fd = -1,
                        .instances = config->instances,
                        .instances_count = config->instances_count,
                        .work = serve,
                        .failure_code = 1};
    struct sg_error err = {0};
    if (gateway_choose_listen(&life.gateway, &err) != 0) {
        fprintf(stderr, "sandgate: %s\n", err.message);
        return 1;
    }
    size_t loops_count = loops_wanted();
    life.gateway.metrics = metrics_new(config, loops_count);
    int code = life_live(&life, loops_count);
    metrics_free(life.gateway.metrics);
    return code;
}
