/* The relay: a request in which no interceptor takes part goes up as it came (less control keys), and its answer comes
 * back byte for byte, streams as they happen. */
#include "gateway/relayed_ids.h"
#include "gateway/relayed_usage.h"
#include "gateway/upstream.h"

#include "base/check.h"
#include "base/limits.h"

#include <stdio.h>
#include <string.h>

enum {
    FIELDS_DOWN_MAX = LIMIT_HEADER_COUNT + ANSWER_FIELDS_MAX,
    REFUSAL_BYTES_MAX = 1024 * 1024, /* of an error that is looked at before it is passed on */
    SETTLED_BYTES_MAX = 16 * 1024    /* of an answer that go out when its place is free */
};

static bool begins_with(struct str name, struct str start)
{
    return name.len > start.len && str_eq_nocase((struct str){name.data, start.len}, start);
}

/* What would speak for the gateway: who may read its answers, where it is, what browsers keep of it, and what servers in front
 * shall do (answer with a file of theirs, or another address); and what tells of the operator: the software, hosts and account
 * behind. */
static bool field_is_ours(struct str name)
{
    static const char *const ours[] = {"content-length",
                                       "set-cookie",
                                       "x-request-id",
                                       "request-id",
                                       "date",
                                       "alt-svc",
                                       "refresh",
                                       "clear-site-data",
                                       "strict-transport-security",
                                       "nel",
                                       "report-to",
                                       "reporting-endpoints",
                                       "service-worker-allowed",
                                       "x-sendfile",
                                       "x-lighttpd-send-file",
                                       "x-litespeed-location",
                                       "x-reproxy-url",
                                       "server",
                                       "via",
                                       "x-powered-by",
                                       "location",
                                       "openai-organization",
                                       "openai-project",
                                       NULL};
    for (const char *const *one = ours; *one != NULL; one++) {
        if (str_eq_nocase(name, str_of(*one))) {
            return true;
        }
    }
    /* That nginx shall not wait for all of an answer is as good behind it as before. */
    return begins_with(name, STR("access-control-")) ||
           (begins_with(name, STR("x-accel-")) && !str_eq_nocase(name, STR("x-accel-buffering")));
}

static bool field_goes_down(const struct upstream_call *call, struct str name)
{
    if (field_is_ours(name) || limits_replace_field(call->request, name)) {
        return false;
    }
    for (size_t i = 0; i < call->fields_count; i++) {
        if (str_eq_nocase(call->fields[i].name, STR("connection")) &&
            http_is_hop_by_hop(name, call->fields[i].value)) {
            return false;
        }
    }
    return !http_is_hop_by_hop(name, (struct str){0});
}

static int length_unclear(struct request *r, const char *cause, struct sg_error *err)
{
    snprintf(r->cause, sizeof r->cause, "%s", cause);
    return error_set(err, SG_E_UNAVAILABLE, "The model server's answer cannot be understood.");
}

/* Two lengths are two readings of one answer: neither is passed on. */
static int check_length(struct request *r, const struct upstream_call *call, struct sg_error *err)
{
    struct str first = upstream_field(call, "content-length");
    if (first.data != NULL && upstream_field(call, "transfer-encoding").data != NULL) {
        return length_unclear(r, "the upstream sent Content-Length and Transfer-Encoding", err);
    }
    for (size_t i = 0; i < call->fields_count; i++) {
        if (str_eq_nocase(call->fields[i].name, STR("content-length")) &&
            !str_eq(call->fields[i].value, first)) {
            return length_unclear(r, "the upstream sent two different Content-Length", err);
        }
    }
    return 0;
}

/* The upstream's own length, where its framing was one: the client then sees the same. */
static int64_t length_down(const struct upstream_call *call)
{
    struct str text = upstream_field(call, "content-length");
    int64_t length = 0;
    if (text.len == 0 || text.len > 15) {
        return -1;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return -1;
        }
        length = length * 10 + (text.data[i] - '0');
    }
    return length;
}

static int relay_head(struct request *r, const struct upstream_call *call, struct sg_error *err)
{
    struct http_answer_field *fields = arena_get(r->arena, FIELDS_DOWN_MAX * sizeof *fields);
    size_t count = answer_fields(r, fields);
    for (size_t i = 0; i < call->fields_count && count < FIELDS_DOWN_MAX; i++) {
        if (field_goes_down(call, call->fields[i].name)) {
            fields[count++] =
                (struct http_answer_field){call->fields[i].name, call->fields[i].value};
        }
    }
    if (call->plugin != NULL && upstream_field(call, "content-type").data == NULL) {
        struct str type =
            call->is_stream ? STR("text/event-stream; charset=utf-8") : STR("application/json");
        fields[count++] = (struct http_answer_field){STR("content-type"), type};
    }
    int rc = http_answer_begin(r->exchange, call->status, fields, count,
                               call->is_renamed ? -1 : length_down(call), err);
    return rc == 0 && call->is_stream ? http_answer_flush(r->exchange, err) : rc;
}

struct beside { /* what is read of an answer on its way */
    struct relayed_ids ids;
    struct relayed_usage usage;
};

/* Before the client has the whole answer, and can come back. */
static void relay_settle(struct request *r, struct beside *beside)
{
    relayed_ids_end(&beside->ids);
    request_settle(r);
}

/* Where the length is told, nothing follows the last byte. Who takes it slowly keeps the place for the most of it. */
static int relay_last(struct request *r, struct beside *beside, struct str piece,
                      struct sg_error *err)
{
    size_t before = piece.len > SETTLED_BYTES_MAX ? piece.len - SETTLED_BYTES_MAX : 0;
    int rc = http_answer_write(r->exchange, (struct str){piece.data, before}, err);
    if (rc != 0) {
        return rc;
    }
    relay_settle(r, beside);
    return http_answer_write(r->exchange, (struct str){piece.data + before, piece.len - before},
                             err);
}

static int relay_pieces(struct request *r, struct upstream_call *call, struct beside *beside,
                        struct sg_error *err)
{
    int64_t left = call->is_renamed ? -1 : length_down(call);
    for (;;) {
        struct str piece;
        int rc = upstream_call_read(call, &piece, err);
        if (rc != 0) {
            http_answer_abort(r->exchange); /* the client must see that it was cut */
            return rc;
        }
        if (piece.len == 0) {
            relay_settle(r, beside);
            return http_answer_end(r->exchange, err);
        }
        relayed_ids_feed(&beside->ids, piece);
        relayed_usage_feed(&beside->usage, piece);
        left -= left > 0 ? (int64_t)piece.len : 0;
        rc = left == 0 ? relay_last(r, beside, piece, err)
                       : http_answer_write(r->exchange, piece, err);
        if (rc != 0) {
            return rc;
        }
    }
}

static int relay_body(struct request *r, struct upstream_call *call, struct sg_error *err)
{
    struct beside beside;
    relayed_ids_begin(&beside.ids, call);
    relayed_usage_begin(&beside.usage, call);
    int rc = relay_pieces(r, call, &beside, err);
    relayed_ids_end(&beside.ids);
    relayed_usage_end(&beside.usage, r);
    return rc;
}

static int relay_begin(struct request *r, struct upstream_call *call, struct sg_error *err)
{
    if (r->route.kind != ROUTE_RELAY_PATH) {
        return upstream_call_begin(r, r->body.raw, false, call, err);
    }
    int rc = upstream_call_begin_streamed(r, call, err);
    return rc == 0 ? upstream_call_pump(call, err) : rc;
}

/* Up to the head of the answer. A request of which nothing was sent yet is tried again, as an intercepted turn is; what
 * an upstream answers, "later" included, is the client's to act upon. */
static int relay_call(struct request *r, struct upstream_call *call, struct sg_error *err)
{
    for (r->tries = 1;;) {
        int rc = relay_begin(r, call, err);
        if (rc == 0) {
            rc = upstream_call_head(call, err);
        }
        if (rc == 0 ? status_is_the_upstreams(r, call->status) && fallback_begin(call, err)
                    : fallback_begin(call, err)) {
            return rc;
        }
        bool may_repeat = call->is_unsent && r->streamed_bytes == 0;
        int64_t delay_ms = rc != 0 && may_repeat ? retry_delay(call, err) : -1;
        if (delay_ms < 0 || ++r->tries > r->upstream->tries_max) {
            return rc;
        }
        upstream_call_end(call);
        rc = retry_wait(r, delay_ms, err);
        if (rc != 0) {
            *call = (struct upstream_call){.request = r};
            return rc;
        }
    }
}

/* Redirects lead to places that are not the client's to know, and what is no status is no answer. A refusal that shows
 * the operator's key (401 may show a part of it) is told in our words. */
static int relay_check(struct request *r, struct upstream_call *call, struct buf *ret_held,
                       struct sg_error *err)
{
    if (r->next_candidate != NULL) {
        return upstream_call_failed(call, err);
    }
    if (call->status < 200 || (call->status >= 300 && call->status < 400) || call->status > 599) {
        return upstream_call_failed(call, err);
    }
    if (call->status == 401 && !r->upstream->passthrough) {
        return upstream_call_failed(call, err); /* not of the client's key, which did not go up */
    }
    bool has_secret = r->upstream->api_key != NULL || r->upstream->headers_count > 0;
    if ((!has_secret && !call->is_renamed) || call->status < 400) {
        return 0;
    }
    struct str piece;
    int rc;
    while ((rc = upstream_call_read(call, &piece, err)) == 0 && piece.len > 0 &&
           buf_append_str(ret_held, piece)) {
    }
    renamed_words(r, ret_held);
    if (rc == 0 && ret_held->overflow) {
        return error_set(err, SG_E_UNAVAILABLE, "The model server's refusal is too long.");
    }
    if (rc == 0 && upstream_secret_in(r->upstream, buf_str(ret_held))) {
        rc = upstream_credentials_shown(call, err);
    }
    return rc;
}

int relay_serve(struct request *r, struct sg_error *err)
{
    struct upstream_call call;
    BUF_CLEANUP struct buf held = {.max = REFUSAL_BYTES_MAX};
    int rc = relay_call(r, &call, err);
    if (rc == 0) {
        rc = relay_check(r, &call, &held, err);
    }
    if (rc == 0) {
        rc = check_length(r, &call, err);
    }
    if (rc == 0 && !call.is_stream && held.len == 0) {
        rc = upstream_call_hold(&call,
                                err); /* as long as nothing was sent, a failure has a status */
        if (rc != 0) {
            (void)fallback_begin(&call, err); /* request.c goes on with it */
        }
    }
    if (rc == 0) {
        rc = relay_head(r, &call, err);
    }
    if (rc == 0 && held.len > 0) {
        request_settle(r); /* it is all of the answer: as in relay_settle() */
        rc = http_answer_write(r->exchange, buf_str(&held), err);
    }
    if (rc == 0) {
        rc = relay_body(r, &call, err);
    }
    upstream_call_end(&call);
    return rc;
}
