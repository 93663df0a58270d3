/* /metrics, and how a request's end becomes numbers. Who may read it is auth.c's to say. */
#include "gateway/request.h"

#include "base/check.h"
#include "base/clock.h"
#include "gateway/metrics.h"
#include "http/admission.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static enum metric_route route_of(const struct route *route)
{
    static const enum metric_route routes[] = {[ROUTE_NONE] = METRIC_ROUTE_NONE,
                                               [ROUTE_SURFACE] = METRIC_ROUTE_RELAY,
                                               [ROUTE_RELAY] = METRIC_ROUTE_RELAY,
                                               [ROUTE_RELAY_PATH] = METRIC_ROUTE_RELAY,
                                               [ROUTE_MODELS] = METRIC_ROUTE_MODELS,
                                               [ROUTE_MODEL] = METRIC_ROUTE_MODELS,
                                               [ROUTE_SESSIONS] = METRIC_ROUTE_SESSIONS,
                                               [ROUTE_SESSION] = METRIC_ROUTE_SESSIONS,
                                               [ROUTE_RESPONSE] = METRIC_ROUTE_RESPONSES,
                                               [ROUTE_RESPONSE_INPUTS] = METRIC_ROUTE_RESPONSES,
                                               [ROUTE_RESPONSE_CANCEL] = METRIC_ROUTE_RESPONSES,
                                               [ROUTE_METRICS] = METRIC_ROUTE_METRICS,
                                               [ROUTE_LIVE] = METRIC_ROUTE_HEALTH,
                                               [ROUTE_READY] = METRIC_ROUTE_HEALTH,
                                               [ROUTE_ADMIN_SESSIONS] = METRIC_ROUTE_ADMIN,
                                               [ROUTE_ADMIN_SESSION] = METRIC_ROUTE_ADMIN,
                                               [ROUTE_ADMIN_PROFILE] = METRIC_ROUTE_ADMIN,
                                               [ROUTE_ADMIN_CONFIG] = METRIC_ROUTE_ADMIN};
    static const char *const spoken[] = {"chat", "responses", "messages"};
    CHECK((size_t)route->kind < COUNT_OF(routes));
    for (size_t i = 0; route->surface_name != NULL && i < COUNT_OF(spoken); i++) {
        if (strcmp(route->surface_name, spoken[i]) == 0) {
            return (enum metric_route)i;
        }
    }
    return routes[route->kind];
}

void request_count(const struct request *r, int64_t us)
{
    struct metric_request ended = {.route = route_of(&r->route),
                                   .status = http_answer_status(r->exchange),
                                   .is_client_gone = r->failure.code == SG_E_CANCELLED,
                                   .us = us,
                                   .bytes_in = request_body_bytes(r),
                                   .bytes_out = http_answer_bytes(r->exchange)};
    metrics_request(r->gateway->metrics, &ended);
}

static uint64_t cpu_us(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000u +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* From the second number of /proc/self/statm; 0 where there is none. */
uint64_t process_resident_bytes(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file != NULL) {
        if (fscanf(file, "%*u %llu", &pages) != 1) {
            pages = 0;
        }
        (void)fclose(file); /* only read */
    }
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t calls_abandoned(const struct config *config)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < config->instances_count; i++) {
        sum += instance_abandoned(config->instances[i]);
    }
    return sum;
}

static void tls_now(struct gateway *gateway, struct metrics_now *now)
{
    struct settings *settings = settings_take(&gateway->settings);
    now->has_tls = gateway->config->server.has_tls && settings->tls != NULL;
    for (int i = 0; i < HTTP_HANDSHAKE_COUNT; i++) {
        now->handshakes[i] = http_server_handshakes(gateway->server, (enum http_handshake)i);
    }
    if (now->has_tls) {
        now->certificate_days = http_tls_days_left(settings->tls, clock_unix_s());
    }
    settings_unref(settings);
}

int metrics_answer(struct request *r, struct sg_error *err)
{
    struct gateway *gateway = r->gateway;
    BUF_CLEANUP struct buf out = {0};
    struct metrics_now now = {.containers_max =
                                  (size_t)gateway->config->sessions.max_containers_total,
                              .connections = http_server_connections(gateway->server),
                              .requests = http_server_busy(gateway->server),
                              .descriptors = admission_used(),
                              .descriptors_max = admission_limit(),
                              .worker_tasks = worker_pool_busy(gateway->pool),
                              .worker_threads_max = (size_t)gateway->config->server.workers,
                              .calls_abandoned = calls_abandoned(gateway->config),
                              .memory_bytes = admission_bytes(),
                              .memory_budget = admission_budget(),
                              .loops = gateway->loops_count,
                              .is_draining = atomic_load(&gateway->is_draining),
                              .cpu_us = cpu_us(),
                              .resident_bytes = process_resident_bytes()};
    registry_stats(gateway->registry, &now.registry);
    tls_now(gateway, &now);
    metrics_put(gateway->metrics, &now, &out);
    accounting_put_metrics(&gateway->accounting, &out);
    struct http_answer_field fields[ANSWER_FIELDS_MAX];
    size_t count = answer_fields(r, fields);
    fields[count++] = (struct http_answer_field){STR("content-type"),
                                                 STR("text/plain; version=0.0.4; charset=utf-8")};
    return http_answer(r->exchange, 200, fields, count, buf_str(&out), err);
}
