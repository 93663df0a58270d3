/* sg->http(): an HTTP exchange for a plugin, over the home loop's connections. */
#include "plugin/call_internal.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/limits.h"
#include "http/fetch.h"

enum {
    HTTP_WAIT_MS = 60000
}; /* for the first byte, and between two, where the plugin says nothing */
static const uint64_t body_bytes_default = 16 * MIB;

struct http_arguments {
    const struct sg_http_request *request;
    struct sg_http_reply *reply; /* the plugin's, at its size */
    bool has_sink;
};

/* One exchange: what lives as long as it, while the reply lives in the call's arena. */
struct exchange {
    struct sg_call *call;
    struct arena *arena;
    struct fetch *fetch;
    struct buf body;
};

static void exchange_clear(struct exchange *exchange)
{
    fetch_end(exchange->fetch);
    buf_clear(&exchange->body);
    arena_free(exchange->arena);
}

static int no_memory(struct sg_error *err)
{
    return error_set(err, SG_E_LIMIT, "http(): no memory for the exchange");
}

/* ---- the request ---- */

static struct fetch_field *fields_of(const struct sg_map *headers, struct arena *arena)
{
    struct fetch_field *fields = arena_alloc(arena, (headers->count + 1) * sizeof *fields);
    for (size_t i = 0; fields != NULL && i < headers->count; i++) {
        fields[i].name = str_of(headers->keys[i]);
        fields[i].value = str_of(headers->values[i]);
    }
    return fields;
}

static int64_t or_default(int64_t ms)
{
    return ms > 0 ? ms : HTTP_WAIT_MS;
}

static int send_request(struct exchange *exchange, const struct sg_http_request *request,
                        struct sg_error *err)
{
    struct fetch_field *fields = fields_of(&request->headers, exchange->arena);
    if (fields == NULL) {
        return no_memory(err);
    }
    if (request->url == NULL) {
        return error_set(err, SG_E_INVALID, "http(): a request needs a url");
    }
    struct fetch_request wanted = {
        .method = request->method,
        .url = request->url,
        .fields = fields,
        .fields_count = request->headers.count,
        .body = {request->body, request->body_len},
        .has_body = request->body != NULL,
        .is_once = true, /* a plugin decides by failed_at whether to ask again */
        .first_byte_ms = or_default(request->first_byte_ms),
        .silence_ms = or_default(request->silence_ms),
        .ca_file = request->ca_file,
        .deadline =
            deadline_min(request->timeout_ms > 0 ? deadline_in(request->timeout_ms) : DEADLINE_NONE,
                         exchange->call->deadline),
    };
    return fetch_start(&wanted, exchange->arena, &exchange->fetch, err);
}

/* ---- the answer ---- */

static char *copy_lower(struct arena *arena, struct str name)
{
    char *copy = arena_copy(arena, name);
    for (size_t i = 0; copy != NULL && i < name.len; i++) {
        copy[i] = (char)(copy[i] >= 'A' && copy[i] <= 'Z' ? copy[i] - 'A' + 'a' : copy[i]);
    }
    return copy;
}

static int keep_head(struct exchange *exchange, const struct fetch_reply *head,
                     struct sg_http_reply *reply, struct sg_error *err)
{
    struct arena *arena = exchange->call->arena;
    const char **keys = arena_alloc(arena, (head->fields_count + 1) * sizeof *keys);
    const char **values = arena_alloc(arena, (head->fields_count + 1) * sizeof *values);
    if (keys == NULL || values == NULL) {
        return no_memory(err);
    }
    for (size_t i = 0; i < head->fields_count; i++) {
        keys[i] = copy_lower(arena, head->fields[i].name);
        values[i] = arena_copy(arena, head->fields[i].value);
        if (keys[i] == NULL || values[i] == NULL) {
            return no_memory(err);
        }
    }
    reply->status = head->status;
    reply->headers = (struct sg_map){keys, values, head->fields_count};
    return 0;
}

static int too_large(uint64_t max, struct sg_error *err)
{
    return error_set(err, SG_E_LIMIT,
                     "http(): the answer is larger than %llu bytes (body_bytes_max)",
                     (unsigned long long)max);
}

/* ---- ticks ---- */

typedef int wait_for(struct exchange *, void *ret, struct sg_error *err);

static int wait_head(struct exchange *exchange, void *ret, struct sg_error *err)
{
    return fetch_head(exchange->fetch, ret, err);
}

static int wait_body(struct exchange *exchange, void *ret, struct sg_error *err)
{
    return fetch_read(exchange->fetch, ret, err);
}

/* Waits for the next of the answer; each time the plugin's tick has passed, its sink is called and may end it. (A limit of
 * the exchange's own that is over as well ends the next wait at once.) */
static int wait_ticking(struct exchange *exchange, const struct http_arguments *arguments,
                        const struct sg_sink *sink, wait_for *wait, void *ret, struct sg_error *err)
{
    int64_t tick_ms = arguments->request->tick_ms;
    if (!arguments->has_sink || tick_ms <= 0) {
        return wait(exchange, ret, err);
    }
    struct fiber *self = fiber_self();
    int64_t own = fiber_deadline(self);
    for (;;) {
        int64_t next = deadline_in(tick_ms);
        fiber_set_deadline(self, deadline_min(own, next));
        int code = wait(exchange, ret, err);
        fiber_set_deadline(self, own);
        bool is_tick = code == SG_E_TIMEOUT && clock_ms() >= next && clock_ms() < own;
        code = is_tick ? sink->event(sink->ctx, SG_OUT_DATA, "", 0, err) : code;
        if (!is_tick || code != 0) {
            return code;
        }
    }
}

/* Hands each piece to the sink, or collects it. */
static int read_body(struct exchange *exchange, const struct http_arguments *arguments,
                     const struct sg_sink *sink, struct sg_error *err)
{
    uint64_t max = arguments->request->body_bytes_max, total = 0;
    max = max > 0 ? max : body_bytes_default;
    exchange->body.max = max < BUF_MAX_DEFAULT ? (size_t)max : BUF_MAX_DEFAULT;
    struct str data = {0};
    int code = 0;
    while ((code = wait_ticking(exchange, arguments, sink, wait_body, &data, err)) == 0 &&
           data.len > 0) {
        total += data.len;
        if (total > max) {
            return too_large(max, err);
        }
        if (arguments->has_sink) {
            code = sink->event(sink->ctx, SG_OUT_DATA, data.data, data.len, err);
        } else if (!buf_append_str(&exchange->body, data)) {
            code = no_memory(err);
        }
        if (code != 0) {
            return code;
        }
    }
    return code;
}

static int keep_body(struct exchange *exchange, struct sg_http_reply *reply, struct sg_error *err)
{
    reply->body = arena_copy(exchange->call->arena, buf_str(&exchange->body));
    reply->body_len = exchange->body.len;
    return reply->body != NULL ? 0 : no_memory(err);
}

static void reply_give(const struct sg_call *call, const struct sg_http_reply *reply,
                       const struct http_arguments *arguments)
{
    struct_give(call, SG_STRUCT_HTTP_REPLY, reply, sizeof *reply, arguments->reply);
}

static int part_http(struct sg_call *call, void *arguments, const struct sg_sink *sink,
                     struct sg_error *err)
{
    struct http_arguments *a = arguments;
    struct exchange exchange = {.call = call, .arena = arena_new(0)};
    struct sg_http_reply reply = {0};
    struct fetch_reply head = {0};
    int code = send_request(&exchange, a->request, err);
    code = code != 0 ? code : wait_ticking(&exchange, a, sink, wait_head, &head, err);
    code = code != 0 ? code : keep_head(&exchange, &head, &reply, err);
    if (code == 0 && a->has_sink) {
        reply_give(call, &reply, a); /* the sink may want to know the status */
    }
    code = code != 0 ? code : read_body(&exchange, a, sink, err);
    if (code == 0 && !a->has_sink) {
        code = keep_body(&exchange, &reply, err);
    }
    if (code != 0) {
        reply = (struct sg_http_reply){.status = a->has_sink ? reply.status : 0,
                                       .headers = a->has_sink ? reply.headers : (struct sg_map){0},
                                       .failed_at = (uint32_t)fetch_stage(exchange.fetch)};
    }
    exchange_clear(&exchange);
    reply_give(call, &reply, a);
    return code;
}

int host_http(struct sg_call *call, const struct sg_http_request *request,
              struct sg_http_reply *reply, const struct sg_sink *body, struct sg_error *err)
{
    struct sg_http_request copy;
    struct http_arguments arguments = {&copy, reply, body != NULL};
    struct sg_error unheard = {
        0}; /* in close() a plugin has nobody to tell, but the exchange asks what failed */
    err = err != NULL ? err : &unheard;
    if (!call_is_ours(call, "http", err)) {
        return SG_E_INTERNAL;
    }
    struct_take(call, SG_STRUCT_HTTP_REQUEST, request, 0, &copy, sizeof copy);
    return call_cross(call, "http", part_http, &arguments, body, err);
}
