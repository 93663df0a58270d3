/* The path of a request, told step by step. It runs in the fiber of its connection and reads straight down; every
 * function that waits lets other requests run meanwhile.
 *
 *   route → authenticate → read the body → whose upstream? → hooks → which tools are offered?
 *     → cut control keys → the loop, where an interceptor takes part (loop.c); else the relay (relay.c)
 *     → give back what was taken, whatever happened above → one line in the log
 */
#include "gateway/request.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/identity.h"
#include "base/limits.h"
#include "base/log.h"
#include "gateway/upstream_state.h"
#include "session/control_keys.h"

#include <stdatomic.h>
#include <stdlib.h>

static struct request *request_begin(struct gateway *gateway, struct http_exchange *exchange)
{
    struct arena *arena = arena_new(0);
    struct request *r = arena_get(arena, sizeof *r);
    r->magic = REQUEST_MAGIC;
    r->gateway = gateway;
    r->exchange = exchange;
    r->arena = arena;
    memcpy(r->id, "req_", 4);
    random_id(r->id + 4);
    r->began_us = clock_us();
    r->relayed_usage = SURFACE_USAGE_NONE;
    r->deadline = deadline_in(gateway->config->server.request_timeout_ms);
    return r;
}

/* The client's own limit, less the time that an answer needs to reach it. */
static void request_heed_client_timeout(struct request *r)
{
    struct str text = http_head_get(http_request_head(r->exchange), "x-stainless-timeout");
    char digits[8] = {0};
    int64_t allowed_ms = r->gateway->config->server.request_timeout_ms;
    if (text.data != NULL && text.len > 0 && text.len < sizeof digits) {
        memcpy(digits, text.data, text.len);
        char *end;
        long seconds = strtol(digits, &end, 10);
        if (*end == '\0' && seconds > 0) {
            int64_t client_ms = (int64_t)seconds * 1000 - 10000;
            allowed_ms = deadline_min(allowed_ms, client_ms > 1000 ? client_ms : 1000);
        }
    }
    int64_t now = clock_ms();
    r->deadline = now + allowed_ms;
    r->tools_deadline = now + allowed_ms / 5 * 4;
    fiber_set_deadline(fiber_self(), r->deadline);
}

/* What instances of plugins say about themselves on this machine. They were checked as JSON when they were opened. */
static void put_words(const struct config *config, struct buf *out)
{
    size_t count = 0;
    for (size_t i = 0; i < config->instances_count; i++) {
        const struct instance *instance = config->instances[i];
        if (instance->about != NULL) {
            (void)buf_puts(out, count++ == 0 ? ",\"plugins\":{" : ",");
            (void)buf_put_json(out, str_of(instance->name));
            (void)buf_printf(out, ":%s", instance->about); /* overflow shows in the buffer */
        }
    }
    (void)buf_puts(out, count > 0 ? "}" : "");
}

/* Those that requests leave alone, or that have failed lately. */
static void put_upstreams(const struct settings *settings, struct buf *out)
{
    size_t count = 0;
    for (size_t i = 0; i < settings->upstreams_count; i++) {
        const struct upstream *upstream = &settings->upstreams[i];
        struct circuit_state state = circuit_look(&upstream->state->circuit);
        if (state.failures > 0) {
            (void)buf_puts(out, count++ == 0 ? ",\"upstreams\":{" : ",");
            (void)buf_put_json(out, str_of(upstream->name));
            (void)buf_printf(out, ":{\"circuit\":\"%s\",\"failures\":%lld}",
                             state.is_open ? "open" : "closed", (long long)state.failures);
        }
    }
    (void)buf_puts(out, count > 0 ? "}" : "");
}

static int health_answer(struct request *r, struct sg_error *err)
{
    BUF_CLEANUP struct buf body = {0};
    bool ready = r->route.kind == ROUTE_LIVE || !atomic_load(&r->gateway->is_draining);
    (void)buf_printf(&body, "{\"status\":\"%s\"", ready ? "ok" : "draining");
    if (r->route.kind == ROUTE_READY) {
        put_words(r->gateway->config, &body);
        r->settings = settings_take(&r->gateway->settings);
        put_upstreams(r->settings, &body);
    }
    (void)buf_puts(&body, "}\n"); /* overflow shows in the buffer */
    return answer_json(r, ready ? 200 : 503, (struct str){body.data, body.len}, err);
}

/* At the upstream that was chosen: on a surface, where interceptors may take part, or relayed as it is. */
static int request_serve_there(struct request *r, struct sg_error *err)
{
    int rc = hooks_run(r, err);
    if (rc != 0) {
        return rc;
    }
    if (r->route.counts_here || (r->route.counted != NULL && r->spoken != NULL)) {
        return count_serve(r, err);
    }
    bool intercepted = false;
    if (r->route.surface != NULL) {
        tools_offer(r);
        memory_attach(r);
        container_source_attach(r);
        struct surface_input input = {.body = &r->body,
                                      .offers = r->offers,
                                      .offers_count = r->offers_count,
                                      .memory = &r->memory,
                                      .store = &r->store};
        rc = tools_permit(r, err);
        if (rc == 0 && r->names_tools) {
            rc = limits_check_runs(r, err);
        }
        if (rc == 0) {
            rc = other_tools_judge(r, err);
        }
        if (rc == 0) {
            rc = r->route.surface->looks_for(&input, r->arena, &intercepted, err);
        }
    }
    if (rc == 0) {
        intercepted = intercepted || r->spoken != NULL; /* the surface writes all answers anew */
        rc = body_cut_control_keys(r, intercepted, err);
    }
    if (rc != 0) {
        return rc;
    }
    if (intercepted) {
        return loop_serve(r, err);
    }
    rc = stored_check(r, &r->body, err);
    return rc == 0 ? relay_serve(r, err) : rc;
}

/* A body with a model. */
static int request_serve_model(struct request *r, struct sg_error *err)
{
    account_open(&r->account, client_account(r));
    int rc = limits_enter(r, err);
    if (rc == 0) {
        rc = body_receive(r, err);
    }
    if (rc == 0) {
        rc = route_upstream(r, err);
    }
    if (rc != 0) {
        return rc;
    }
    do {
        rc = request_serve_there(r, err);
    } while (rc != 0 && candidate_next(r, err));
    return rc;
}

static int request_serve(struct request *r, struct sg_error *err)
{
    int rc = route_find(r, err);
    if (rc != 0) {
        return rc;
    }
    if (r->route.kind == ROUTE_LIVE || r->route.kind == ROUTE_READY) {
        return health_answer(r, err);
    }
    request_heed_client_timeout(r);
    rc = authenticate(r, err);
    if (rc != 0) {
        return rc;
    }
    if (str_is(http_request_head(r->exchange)->method, "OPTIONS")) {
        return answer_preflight(r, err);
    }
    if (r->route.kind == ROUTE_MODELS || r->route.kind == ROUTE_MODEL) {
        return models_answer(r, err);
    }
    if (r->route.kind == ROUTE_SESSIONS || r->route.kind == ROUTE_SESSION) {
        return sessions_answer(r, err);
    }
    if (r->route.kind == ROUTE_RESPONSE || r->route.kind == ROUTE_RESPONSE_INPUTS ||
        r->route.kind == ROUTE_RESPONSE_CANCEL) {
        return responses_answer(r, err);
    }
    if (r->route.kind == ROUTE_METRICS) {
        return metrics_answer(r, err);
    }
    if (r->route.kind == ROUTE_RELAY_PATH) {
        return relay_path_serve(r, err);
    }
    if (r->route.kind >= ROUTE_ADMIN_SESSIONS) {
        return admin_answer(r, err);
    }
    return request_serve_model(r, err);
}

/* Behind proxies, who they say that it is. */
static void log_client(struct log_line *line, const struct request *r)
{
    const struct http_proxies *proxies = &r->gateway->config->server.proxies;
    char said[HTTP_ADDRESS_BYTES];
    const char *peer = http_client_address(r->exchange);
    bool is_said =
        proxies->count > 0 && http_forwarded_client(proxies, http_request_head(r->exchange),
                                                    http_client_peer(r->exchange), said);
    log_text(line, "client", is_said ? said : peer);
    log_text(line, "proxy", is_said ? peer : NULL);
}

static void request_log(struct request *r, int64_t us)
{
    const struct http_head *head = http_request_head(r->exchange);
    int status = http_answer_status(r->exchange);
    struct log_line line;
    log_begin(&line, r->failure.code == SG_E_INTERNAL ? SG_ERROR : SG_INFO, "request");
    log_text(&line, "request", r->id);
    log_client(&line, r);
    log_str(&line, "method", head->method);
    log_str(&line, "path", head->path);
    log_int(&line, "status", status != 0 ? status : 499);
    log_int(&line, "ms", us / 1000);
    log_int(&line, "bytes", (int64_t)http_answer_bytes(r->exchange));
    if (r->identity.len > 0) {
        identity_log(&line, r->identity);
    }
    if (r->upstream != NULL) {
        if (r->model.len > 0) { /* a path of `relay_paths` names none */
            log_str(&line, "model", r->model);
        }
        log_text(&line, "upstream", r->upstream->name);
        log_text(&line, "upstream_model", r->asked_model);
    }
    if (r->talk != NULL) {
        struct surface_usage usage = r->route.surface->usage(r->talk);
        log_int(&line, "turns", r->turns);
        log_int(&line, "runs", r->runs);
        log_count(&line, "input_tokens", usage.input_tokens);
        log_count(&line, "output_tokens", usage.output_tokens);
    }
    struct str client_id = http_head_get(head, "x-request-id");
    if (client_id.len > 0) {
        log_str(&line, "client_request", client_id);
    }
    if (r->failure.code != 0) {
        log_text(&line, "error", error_code_name(r->failure.code));
        log_text(&line, "message", r->failure.message);
        log_text(&line, "cause", r->cause[0] != '\0' ? r->cause : NULL);
    }
    log_end(&line);
}

void request_settle(struct request *r)
{
    past_leave(r);
    hooks_done(r);
    limits_leave(r);
    account_give(&r->account, r->transit_bytes);
    r->transit_bytes = 0;
}

/* Gives back what the request took. Nothing here waits. */
static void request_end(struct request *r)
{
    CHECK_MAGIC(r, REQUEST_MAGIC);
    request_settle(r);
    container_leave(r);
    int64_t us = clock_us() - r->began_us;
    request_count(r, us); /* who has read its line finds it counted */
    request_log(r, us);
    accounting_request(r, us);
    if (r->route.surface != NULL) {
        r->route.surface->free(r->talk);
    }
    memory_end(r);
    account_close(&r->account);
    settings_unref(r->settings);
    for (size_t i = 0; i < COUNT_OF(r->body_storage); i++) {
        buf_clear(&r->body_storage[i]);
    }
    r->magic = 0;
    arena_free(r->arena);
}

void request_name_shutdown(struct request *r, struct sg_error *err)
{
    if (err->code == SG_E_CANCELLED && !http_client_has_left(r->exchange)) {
        error_set(err, SG_E_UNAVAILABLE, "The gateway is shutting down.");
        err->status = 503;
    }
}

void request_handle(void *gateway, struct http_exchange *exchange)
{
    struct request *r = request_begin(gateway, exchange);
    struct sg_error err = {0};
    if (request_serve(r, &err) != 0) {
        request_name_shutdown(r, &err);
        r->failure = err;
        if (http_answer_status(exchange) == 0 && err.code != SG_E_CANCELLED) {
            answer_failure(r, &err);
        }
    }
    fiber_set_deadline(fiber_self(), DEADLINE_NONE);
    request_end(r);
}
