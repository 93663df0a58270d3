/* Serving: what happens between the opening of the plugins and their closing (life.c), from the first connection that
 * may come to the last container that is deleted. */
#include "gateway/life.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway/keeper.h"
#include "gateway/metrics.h"
#include "gateway/passthrough.h"
#include "gateway/quota.h"
#include "gateway/request.h"
#include "gateway/search_state.h"
#include "gateway/systemd.h"
#include "gateway/upstream_state.h"
#include "session/records.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
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
    options.runs_per_identity = config_worker_share(gateway->config);
    options.keep = gateway->keeper != NULL ? keeper_keep : NULL;
    options.keep_ctx = gateway->keeper;
    return registry_new(&options, &gateway->registry, err);
}

static bool is_unix(const struct http_listener_options *at)
{
    return at->address.ss_family == AF_UNIX;
}

static int make_server(struct gateway *gateway, struct sg_error *err)
{
    struct settings *settings = settings_take(&gateway->settings);
    struct http_server_options options = {.listeners_count = gateway->listen.count,
                                          .loops = gateway->loops,
                                          .loops_count = gateway->loops_count,
                                          .tls = settings->tls,
                                          .handle = request_handle,
                                          .ctx = gateway};
    memcpy(options.listeners, gateway->listen.at, sizeof options.listeners);
    for (size_t i = 0; i < options.listeners_count; i++) {
        options.listeners[i].has_tls = settings->tls != NULL && !is_unix(&options.listeners[i]);
    }
    int code = http_server_new(&options, &gateway->server, err);
    if (code == 0 && settings->tls != NULL) {
        config_tls_log(settings->tls);
    }
    settings_unref(settings);
    return code;
}

static bool start_serving(struct life *life)
{
    struct gateway *gateway = &life->gateway;
    struct sg_error err = {0};
    struct records_options records;
    records_options_default(&records);
    gateway->records = records_new(&records);
    records.life_ms = LIMIT_RESPONSE_LIFE_MS;
    gateway->relayed = records_new(&records);
    records.record_bytes = LIMIT_RESPONSE_BYTES;
    records.identity_bytes = LIMIT_RESPONSES_IDENTITY_BYTES;
    records.total_bytes = LIMIT_RESPONSES_TOTAL_BYTES;
    gateway->responses = records_new(&records);
    gateway->pasts = pasts_new();
    gateway->searches = search_state_new();
    if (accounting_open(&gateway->accounting, &gateway->config->accounting, &err) != 0 ||
        keeper_new(gateway, &gateway->keeper, &err) != 0 ||
        gateway_make_registry(gateway, &err) != 0 || make_server(gateway, &err) != 0) {
        life_fail(life, "start_failed", &err);
        return false;
    }
    if (!life_start_threads(life)) {
        return false;
    }
    keeper_take_up(gateway->keeper);
    http_server_start(gateway->server);
    keeper_start(gateway->keeper);
    return true;
}

/* One line for each address, where there are several. */
static void log_listeners(const struct gateway *gateway)
{
    struct log_line line;
    for (size_t i = 0; gateway->listen.count > 1 && i < gateway->listen.count; i++) {
        char address[HTTP_ADDRESS_BYTES];
        http_server_address(gateway->server, i, address);
        log_begin(&line, SG_INFO, "listening");
        log_text(&line, "address", address);
        if (gateway->config->server.has_tls && !is_unix(&gateway->listen.at[i])) {
            log_text(&line, "tls", "yes");
        }
        log_text(&line, "use", gateway->listen.at[i].use == HTTP_USE_ADMIN ? "admin" : NULL);
        log_end(&line);
    }
}

/* Unix sockets never do. */
static bool speaks_tls(const struct gateway *gateway)
{
    bool is_any = false;
    for (size_t i = 0; i < gateway->listen.count; i++) {
        is_any = is_any || !is_unix(&gateway->listen.at[i]);
    }
    return is_any && gateway->config->server.has_tls;
}

static void log_serving(const struct life *life, const char *address)
{
    const struct config *config = life->gateway.config;
    struct log_line line;
    size_t upstreams = upstream_states_count(life->gateway.upstream_states);
    if (geteuid() == 0) {
        log_begin(&line, SG_WARN, "serving_as_root");
        log_text(&line, "message", "run the gateway as a user of its own");
        log_end(&line);
    }
    log_begin(&line, SG_INFO, "serving");
    log_text(&line, "address", address);
    if (life->gateway.listen.count > 1) {
        log_int(&line, "addresses", (int64_t)life->gateway.listen.count);
    }
    log_int(&line, "loops", (int64_t)life->gateway.loops_count);
    log_int(&line, "upstreams", (int64_t)upstreams);
    log_int(&line, "interceptors", (int64_t)config->interceptors_count);
    if (speaks_tls(&life->gateway)) {
        log_text(&line, "tls", "yes");
    }
    if (life->gateway.listen.is_handed_over) {
        log_text(&line, "socket", "handed_over");
    }
    log_end(&line);
}

static void tell_serving(const struct life *life)
{
    const struct gateway *gateway = &life->gateway;
    char address[HTTP_ADDRESS_BYTES], others[32] = "", state[sizeof address + 64];
    http_server_address(gateway->server, 0, address);
    if (gateway->listen.count > 1) {
        (void)snprintf(others, sizeof others, " and %zu more",
                       gateway->listen.count - 1); /* fits */
    }
    (void)snprintf(state, sizeof state, "READY=1\nSTATUS=Serving at %s%s", address,
                   others); /* fits */
    log_listeners(gateway);
    log_serving(life, address);
    service_notify(state);
}

/* systemd waits for the second word before it calls the reload done, and wants to know when it began. */
static void reload(struct life *life)
{
    char state[64];
    (void)snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%lld",
                   (long long)clock_us()); /* fits */
    service_notify(state);
    accounting_reopen(&life->gateway.accounting);
    gateway_reload(&life->gateway);
    service_notify("READY=1");
}

enum { CANCELLED_MS = 5000 }; /* how long deletions wait for what was cancelled */

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
    int64_t deadline = deadline_in(DELETIONS_MS);
    wait_quiet(gateway->server, deadline_in(CANCELLED_MS), true);
    keeper_stop(gateway->keeper);
    size_t left = registry_shutdown(gateway->registry, deadline);
    log_begin(&line, left > 0 ? SG_WARN : SG_INFO, "stopped");
    log_int(&line, "containers_left", (int64_t)left);
    log_end(&line);
}

static int serve(struct life *life)
{
    int code = life->failure_code;
    if (start_serving(life)) {
        tell_serving(life);
        while (life_wait(life)) {
            reload(life);
        }
        stop_serving(life);
        code = 0;
    }
    return code;
}

static size_t loops_wanted(void)
{
    cpu_set_t allowed; /* as taskset or a service manager has it */
    int cores = sched_getaffinity(0, sizeof allowed, &allowed) == 0
                    ? CPU_COUNT(&allowed)
                    : (int)sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : cores > LOOPS_MAX ? LOOPS_MAX : (size_t)cores;
}

int gateway_serve(struct config *config)
{
    struct life life = {.gateway = {.config = config},
                        .signal_fd = -1,
                        .instances = config->instances,
                        .instances_count = config->instances_count,
                        .work = serve,
                        .failure_code = 1,
                        .drain_ms = config->server.drain_ms};
    struct sg_error err = {0};
    if (listen_choose(config, &life.gateway.listen, &err) != 0) {
        fprintf(stderr, "sandgate: %s\n", err.message);
        return 1;
    }
    size_t loops_count = loops_wanted();
    struct gateway *gateway = &life.gateway;
    gateway->upstream_states = upstream_states_new();
    gateway->metrics = metrics_new(config, gateway->upstream_states, loops_count);
    gateway->quotas = quotas_new(QUOTAS_IDLE_MAX);
    gateway->passthrough = passthrough_new(LIMIT_ACCEPTED_MS, LIMIT_ACCEPTED_KEYS);
    settings_place_init(&gateway->settings);
    atomic_store(&gateway->admin_by_key, keys_open_admin(&config->settings->keys));
    settings_put_in_force(&gateway->settings, TAKE(config->settings), gateway->quotas,
                          gateway->upstream_states);
    int code = life_live(&life, loops_count);
    settings_place_clear(&gateway->settings);
    quotas_free(gateway->quotas);
    passthrough_free(gateway->passthrough);
    metrics_free(gateway->metrics);
    upstream_states_free(gateway->upstream_states);
    return code;
}
