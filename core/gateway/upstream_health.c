/* What calls of an upstream say of its health: how each went is told to its circuit (circuit.h), and a change to the log. */
#include "gateway/upstream.h"

#include "base/clock.h"
#include "base/log.h"
#include "gateway/upstream_state.h"

/* `status` 0: it gave no answer. */
static void change_log(const struct request *r, enum circuit_change change, int status)
{
    if (change == CIRCUIT_SAME) {
        return;
    }
    struct circuit_state state = circuit_look(&r->upstream->state->circuit);
    struct log_line line;
    log_begin(&line, change == CIRCUIT_OPENED ? SG_WARN : SG_INFO,
              change == CIRCUIT_OPENED ? "upstream_circuit_opened" : "upstream_circuit_closed");
    log_text(&line, "upstream", r->upstream->name);
    log_text(&line, "request", r->id);
    if (change == CIRCUIT_OPENED) {
        log_int(&line, "failures", state.failures);
        log_int(&line, "open_ms", state.open_ms);
        if (status != 0) {
            log_int(&line, "status", status);
        }
        log_text(&line, "cause", status == 0 && r->cause[0] != '\0' ? r->cause : NULL);
    }
    log_end(&line);
}

/* What a server keeps, and what it makes of clients' requests for it, says little about its models. */
static bool is_of_models(const struct request *r)
{
    return r->route.kind != ROUTE_RELAY_PATH;
}

static void failed(const struct request *r, int status)
{
    struct circuit *circuit = &r->upstream->state->circuit;
    change_log(r, circuit_failure(circuit, &r->upstream->circuit, clock_ms()), status);
}

bool status_is_the_upstreams(const struct request *r, int status)
{
    /* A key of the client's own is refused, or has its own limits: that says nothing of others'. */
    bool is_of_key = status == 401 || status == 429;
    return status == 408 || status >= 500 || (is_of_key && !r->upstream->passthrough);
}

void upstream_answered(const struct request *r, int status)
{
    if (!is_of_models(r)) {
        return;
    }
    if (status_is_the_upstreams(r, status)) {
        failed(r, status);
    } else {
        change_log(r, circuit_success(&r->upstream->state->circuit), status);
    }
}

void upstream_failed(const struct request *r, const struct sg_error *err)
{
    bool is_too_late =
        err->code == SG_E_TIMEOUT && clock_ms() >= r->deadline; /* the request's own */
    if (!is_of_models(r)) {
        return;
    }
    if ((err->code == SG_E_UNAVAILABLE || err->code == SG_E_TIMEOUT) && !is_too_late) {
        failed(r, 0);
    } else if (err->code == SG_E_CANCELLED) {
        circuit_unknown(&r->upstream->state->circuit, clock_ms());
    }
}
