/* Calling upstreams, and reading answers of HTTP servers and plugins alike. Messages
 * about the connection name hosts and ports: they go to the log, and the client is told in general terms. */
#include "gateway/upstream.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "gateway/metrics.h"

#include <stdio.h>
#include <string.h>

enum { DRAIN_MS = 50 };

/* For the metrics; 0 is a failure, else the status of an answer. */
static void count_fault(struct request *r, int status, int code)
{
    enum metric_fault fault = METRIC_FAULT_BROKEN;
    if (status == 0 && code == SG_E_CANCELLED) {
        return; /* the client's doing */
    }
    if (status == 0) {
        fault = code == SG_E_UNAVAILABLE ? METRIC_FAULT_UNREACHABLE
                : code == SG_E_TIMEOUT   ? METRIC_FAULT_TIMEOUT
                                         : METRIC_FAULT_BROKEN;
    } else if (status < 600) {
        fault = status == 429                    ? METRIC_FAULT_LIMITED
                : status == 401 || status == 403 ? METRIC_FAULT_REFUSED
                : status >= 500                  ? METRIC_FAULT_SERVER
                                                 : METRIC_FAULT_CLIENT;
    }
    metrics_upstream_fault(r->gateway->metrics, r->upstream, fault);
}

/* The wait of the fiber's own is over, for the client's sake (alive_wait), and the upstream has all the time it had. */
static bool is_own_time(const struct request *r, const struct sg_error *err)
{
    int64_t own = fiber_deadline(fiber_self());
    return err->code == SG_E_TIMEOUT && own < r->deadline && clock_ms() >= own;
}

/* A fault of the connection: the detail is kept for the log, the client hears what it can use. */
static int hide_detail(struct request *r, struct sg_error *err)
{
    if (is_own_time(r, err)) {
        return err->code;
    }
    count_fault(r, 0, err->code);
    bool is_full = err->code == SG_E_LIMIT && err->status == 503; /* no descriptor is left */
    if (!is_full && err->code != SG_E_UNAVAILABLE && err->code != SG_E_TIMEOUT) {
        return err->code;
    }
    snprintf(r->cause, sizeof r->cause, "%.511s", err->message);
    if (err->code == SG_E_TIMEOUT && clock_ms() >= r->deadline) {
        return error_set(err, SG_E_TIMEOUT, "The request took too long.");
    }
    if (is_full) {
        (void)error_set(err, SG_E_LIMIT,
                        "The gateway has no room for another connection: try again later.");
        err->status = 503;
        return SG_E_LIMIT;
    }
    return err->code == SG_E_TIMEOUT
               ? error_set(err, SG_E_TIMEOUT, "The model server did not answer in time.")
               : error_set(err, SG_E_UNAVAILABLE,
                           "The model server could not be reached or broke off its answer.");
}

/* … before an answer began: that speaks of the upstream's health too. What breaks off later says little of the next one. */
static int hide_no_answer(struct request *r, struct sg_error *err)
{
    bool is_own = is_own_time(r, err);
    int rc = hide_detail(r, err);
    if (!is_own) {
        upstream_failed(r, err);
    }
    return rc;
}

/* `request` says the method and what of a body there is. */
static int begin_http(struct upstream_call *call, struct fetch_request request, bool intercepted,
                      struct sg_error *err)
{
    struct request *r = call->request;
    request.url = upstream_url(r);
    request.fields = upstream_fields(r, intercepted, &request.fields_count);
    request.connect_ms = r->upstream->connect_ms;
    request.first_byte_ms = r->upstream->first_byte_ms;
    request.silence_ms = r->upstream->silence_ms;
    request.deadline = r->deadline;
    request.way = r->upstream->way;
    int rc = fetch_start(&request, r->arena, &call->fetch, err);
    call->is_broken = call->is_unsent = rc == SG_E_UNAVAILABLE || rc == SG_E_TIMEOUT;
    return rc == 0 ? 0 : hide_no_answer(r, err);
}

static int invoke_turn(const struct instance *instance, struct sg_call *call, void *arguments,
                       struct sg_error *err)
{
    return instance->plugin->upstream->turn(instance->self, call, arguments, err);
}

static bool body_asks_for_stream(const struct request *r)
{
    const struct json_member *stream = json_find(r->body.members, r->body.count, "stream");
    return stream != NULL && stream->value.type == JSON_TRUE;
}

static int begin_plugin(struct upstream_call *call, struct str body, bool stream,
                        struct sg_error *err)
{
    struct request *r = call->request;
    if (r->route.surface_name == NULL || !r->is_json) {
        return error_set(err, SG_E_NOT_FOUND, "This model is not served at this path.");
    }
    call->plugin = call_new(r->upstream->instance, "turn", NULL, r->id, r->deadline);
    call_set_identity(call->plugin, r->identity);
    int rc = call_hold(call->plugin, body.len, err);
    if (rc != 0) {
        return rc;
    }
    struct arena *arena = call_arena(call->plugin);
    struct sg_turn *turn = arena_alloc(arena, sizeof *turn);
    char *copy = arena_copy(arena, body);
    if (turn == NULL || copy == NULL) {
        return error_set(err, SG_E_LIMIT, "The request is too large for this model's plugin.");
    }
    *turn = (struct sg_turn){.surface = r->spoken != NULL ? r->spoken->name : r->route.surface_name,
                             .json = copy,
                             .json_len = body.len,
                             .stream = stream};
    call->silent_until = deadline_in(r->upstream->first_byte_ms);
    call_start(call->plugin, invoke_turn, turn);
    return 0;
}

int upstream_call_begin(struct request *r, struct str body, bool intercepted,
                        struct upstream_call *ret, struct sg_error *err)
{
    *ret = (struct upstream_call){.request = r, .began_us = clock_us()};
    metrics_upstream_call(r->gateway->metrics, r->upstream, intercepted);
    bool stream = body_asks_for_stream(r) && !(intercepted && r->upstream->replay);
    int rc = renamed_begin(ret, &body, err);
    rc = rc == 0 && r->spoken != NULL ? translated_begin(ret, &body, err) : rc;
    if (rc != 0) {
        return rc;
    }
    accounting_audit(r, AUDIT_BODY, (struct str){0}, body);
    struct fetch_request request = {.method = "POST", .body = body, .has_body = true};
    return r->upstream->instance != NULL ? begin_plugin(ret, body, stream, err)
                                         : begin_http(ret, request, intercepted, err);
}

/* What is no request for something has a body, be it an empty one. */
int upstream_call_begin_streamed(struct request *r, struct upstream_call *ret, struct sg_error *err)
{
    const struct http_head *head = http_request_head(r->exchange);
    bool is_post = str_is(head->method, "POST") || str_is(head->method, "PUT") ||
                   str_is(head->method, "PATCH");
    bool has_body = is_post || head->chunked || head->content_length > 0;
    *ret = (struct upstream_call){.request = r, .began_us = clock_us()};
    metrics_upstream_call(r->gateway->metrics, r->upstream, false);
    struct fetch_request request = {.method = arena_copy(r->arena, head->method),
                                    .is_fresh = str_is(head->method, "DELETE"),
                                    .is_streamed = has_body,
                                    .body_bytes = head->chunked              ? -1
                                                  : head->content_length > 0 ? head->content_length
                                                                             : 0};
    return begin_http(ret, request, false, err);
}

/* A piece of the body from the client to the upstream; *ret_goes_on where there may be another one. */
static int pump_piece(struct upstream_call *call, struct buf *piece, bool *ret_goes_on,
                      struct sg_error *err)
{
    struct request *r = call->request;
    int rc = fetch_await_write(call->fetch, ret_goes_on, err);
    if (rc != 0) {
        return hide_no_answer(r, err);
    }
    if (!*ret_goes_on) {
        return 0;
    }
    buf_reset(piece);
    rc = http_read_body_piece(r->exchange, LIMIT_RELAYED_BODY_BYTES, piece, err);
    if (rc == 0 && piece->len > 0) {
        r->streamed_bytes += piece->len;
        fetch_write(call->fetch, buf_str(piece));
    } else if (rc == 0) {
        fetch_write_end(call->fetch);
        *ret_goes_on = false;
    }
    return rc;
}

int upstream_call_pump(struct upstream_call *call, struct sg_error *err)
{
    BUF_CLEANUP struct buf piece = {0};
    bool goes_on = fetch_is_streamed(call->fetch);
    int rc = 0;
    while (rc == 0 && goes_on) {
        rc = pump_piece(call, &piece, &goes_on, err);
    }
    return rc;
}

/* {"status": 429, "headers": {"retry-after": "1"}} */
static int plugin_head(struct upstream_call *call, struct str text, struct sg_error *err)
{
    struct arena *arena = call->request->arena;
    struct json_text head;
    int64_t status = 200;
    char *copy = arena_copy(arena, text);
    int rc = json_scan((struct str){copy, text.len}, arena, &head, err);
    const struct json_member *member =
        rc == 0 ? json_find(head.members, head.count, "status") : NULL;
    if (rc != 0 || (member != NULL &&
                    (!json_int_of(member->value, &status) || status < 200 || status > 599))) {
        return error_set(err, SG_E_INTERNAL, "the upstream plugin gave a head without meaning");
    }
    call->status = (int)status;
    member = json_find(head.members, head.count, "headers");
    if (member == NULL || member->value.type != JSON_OBJECT) {
        return 0;
    }
    struct json_member *headers;
    rc = json_members(member->value, "headers", arena, &headers, &call->fields_count, err);
    if (rc != 0) {
        return rc;
    }
    struct fetch_field *fields = arena_get(arena, (call->fields_count + 1) * sizeof *fields);
    for (size_t i = 0; i < call->fields_count; i++) {
        struct str value = headers[i].value.type == JSON_STRING
                               ? json_text_of(headers[i].value, arena)
                               : headers[i].value.raw;
        fields[i] = (struct fetch_field){headers[i].key, value};
    }
    call->fields = fields;
    return 0;
}

/* A plugin may be silent as long as a server. May be called again after a time-out of the fiber's own. */
static int plugin_wait(struct upstream_call *call, struct call_output *ret, struct sg_error *err)
{
    struct fiber *self = fiber_self();
    int64_t own = fiber_deadline(self);
    fiber_set_deadline(self, deadline_min(own, call->silent_until));
    int rc = call_next(call->plugin, ret);
    fiber_set_deadline(self, own);
    if (rc >= 0) {
        call->silent_until = deadline_in(call->request->upstream->silence_ms);
        return rc;
    }
    bool is_silent = rc == -SG_E_TIMEOUT && clock_ms() >= call->silent_until;
    return -error_set(
        err, -rc, is_silent ? "the plugin was silent for too long" : "The request was given up.");
}

/* The next output of a plugin that matters here. 1: data, 0: the end, < 0: minus the failure's code. */
static int plugin_next(struct upstream_call *call, struct call_output *ret, struct sg_error *err)
{
    for (;;) {
        int rc = plugin_wait(call, ret, err);
        if (rc < 0) {
            return rc;
        }
        if (rc == 1 && ret->kind != SG_OUT_DATA && ret->kind != SG_OUT_HEAD) {
            continue;
        }
        if (rc == 0) {
            rc = call_result(call->plugin, err);
            if (rc != 0) {
                snprintf(call->request->cause, sizeof call->request->cause, "%.511s", err->message);
            }
            return -rc;
        }
        return rc;
    }
}

/* May be called again after a time-out of the fiber's own. */
static int head_plugin(struct upstream_call *call, struct sg_error *err)
{
    struct call_output output;
    int rc;
    while ((rc = plugin_next(call, &output, err)) == 1 && output.kind == SG_OUT_HEAD) {
        if (!call->has_head) { /* a second one says nothing */
            rc = plugin_head(call, output.data, err);
            if (rc != 0) {
                return rc;
            }
            call->has_head = true;
        }
    }
    if (rc < 0) {
        call->is_broken = err->code == SG_E_UNAVAILABLE;
        return hide_no_answer(call->request, err);
    }
    call->status = call->status == 0 ? 200 : call->status;
    if (rc == 1) {
        char *copy = arena_copy(call->request->arena, output.data);
        call->held = (struct str){copy, output.data.len};
    }
    return 0;
}

struct str upstream_field(const struct upstream_call *call, const char *name)
{
    for (size_t i = 0; i < call->fields_count; i++) {
        if (str_eq_nocase(call->fields[i].name, str_of(name))) {
            return call->fields[i].value;
        }
    }
    return (struct str){0};
}

static bool says_stream(const struct upstream_call *call)
{
    struct str type = upstream_field(call, "content-type");
    if (type.data != NULL) {
        return type.len >= 17 &&
               str_eq_nocase((struct str){type.data, 17}, STR("text/event-stream"));
    }
    struct str first = str_trim(call->held);
    return first.len > 0 && first.data[0] != '{';
}

int upstream_call_head(struct upstream_call *call, struct sg_error *err)
{
    if (call->plugin != NULL) {
        int rc = head_plugin(call, err);
        if (rc != 0) {
            return rc;
        }
    } else {
        struct fetch_reply reply;
        int rc = fetch_head(call->fetch, &reply, err);
        if (rc != 0) {
            call->is_unsent = fetch_failed_before_sending(call->fetch);
            call->is_broken = rc == SG_E_UNAVAILABLE || (rc == SG_E_TIMEOUT && call->is_unsent);
            return hide_no_answer(call->request, err);
        }
        call->status = reply.status;
        call->fields = reply.fields;
        call->fields_count = reply.fields_count;
    }
    struct request *r = call->request;
    metrics_upstream_first_byte(r->gateway->metrics, r->upstream, clock_us() - call->began_us);
    if (call->status >= 400) {
        count_fault(r, call->status, 0);
    }
    upstream_answered(r, call->status);
    client_note(r, call->status);
    call->is_stream = says_stream(call);
    renamed_head(call);
    translated_head(call);
    return 0;
}

int upstream_call_hold(struct upstream_call *call, struct sg_error *err)
{
    return call->plugin != NULL ? 0 : upstream_call_read(call, &call->held, err);
}

static int read_plugin(struct upstream_call *call, struct str *ret_piece, struct sg_error *err)
{
    struct call_output output;
    do {
        int rc = plugin_next(call, &output, err);
        if (rc < 0) {
            return -rc;
        }
        if (rc == 0) {
            *ret_piece = (struct str){0};
            return 0;
        }
    } while (output.kind != SG_OUT_DATA || output.data.len == 0);
    *ret_piece = output.data;
    return 0;
}

/* An upstream that always has more, or a client that takes it slowly, would never let a wait see the request's end. */
static int read_piece(struct upstream_call *call, struct str *ret_piece, struct sg_error *err)
{
    if (call->held.len > 0) {
        *ret_piece = call->held;
        call->held = (struct str){0};
        return 0;
    }
    struct str piece;
    int rc;
    do { /* a piece of nothing but a name that goes leaves nothing, and is no end */
        if (clock_ms() >= call->request->deadline) {
            return error_set(err, SG_E_TIMEOUT,
                             "the answer was not over by the request's deadline");
        }
        rc = call->plugin != NULL ? read_plugin(call, &piece, err)
                                  : fetch_read(call->fetch, &piece, err);
        *ret_piece = rc == 0 ? renamed_piece(call, piece) : (struct str){0};
    } while (rc == 0 && piece.len > 0 && ret_piece->len == 0);
    return rc;
}

static int read_told(struct upstream_call *call, struct str *ret_piece, struct sg_error *err)
{
    int rc = read_piece(call, ret_piece, err);
    call->is_broken = rc == SG_E_UNAVAILABLE;
    return rc == 0 ? 0 : hide_detail(call->request, err);
}

int upstream_call_read(struct upstream_call *call, struct str *ret_piece, struct sg_error *err)
{
    return call->answer_begun ? translated_read(call, read_told, ret_piece, err)
                              : read_told(call, ret_piece, err);
}

/* How that fails is no fault of its own: what counts of the answer is known. */
void upstream_call_rest(struct upstream_call *call, int64_t ms_max, struct buf *into)
{
    struct request *r = call->request;
    struct str piece;
    struct sg_error ignored = {0};
    int64_t until = deadline_min(deadline_in(ms_max), r->deadline);
    fiber_set_deadline(fiber_self(), until);
    while (clock_ms() < until && read_piece(call, &piece, &ignored) == 0 && piece.len > 0 &&
           (into == NULL || buf_append_str(into, piece))) {
    }
    fiber_set_deadline(fiber_self(), r->deadline);
    r->cause[0] = '\0'; /* a plugin's words about its end */
}

void upstream_call_drain(struct upstream_call *call)
{
    upstream_call_rest(call, DRAIN_MS, NULL);
}

void upstream_call_end(struct upstream_call *call)
{
    fetch_end(TAKE(call->fetch));
    if (call->plugin != NULL) {
        call_cancel(call->plugin);
        call_unref(TAKE(call->plugin));
    }
    translated_end(call);
    renamed_end(call);
}
