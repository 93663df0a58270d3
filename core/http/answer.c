/* Answers: their head, their framing, their bytes. The head of a streamed answer waits for the first bytes of its body,
 * so that both leave in one packet. */
#include "http/server_internal.h"

#include "base/log.h"
#include "base/trace.h"

#include <stdio.h>

/* What the core alone says about an answer. */
static bool is_framing(struct str name)
{
    return str_eq_nocase(name, STR("content-length")) || str_eq_nocase(name, STR("date")) ||
           http_is_hop_by_hop(name, (struct str){NULL, 0});
}

static void put_field(struct buf *out, const struct http_answer_field *field)
{
    if (!http_token_valid(field->name) || !http_value_valid(field->value)) {
        struct log_line line;
        log_begin(&line, SG_WARN, "answer_field_left_out");
        log_str(&line, "name", field->name);
        log_end(&line);
        return;
    }
    if (!is_framing(field->name)) {
        (void)buf_append_str(out, field->name); /* overflow is asked for at the end */
        (void)buf_append(out, ": ", 2);
        (void)buf_append_str(out, field->value);
        (void)buf_append(out, "\r\n", 2);
    }
}

/* How the answer's end is told: by a length, by chunks, or for HTTP/1.0 by the connection's end. */
static void choose_framing(struct http_exchange *exchange, int status, int64_t content_length)
{
    struct connection *connection = exchange->connection;
    body_skip_buffered(exchange);
    exchange->status = status;
    exchange->body_size = content_length;
    exchange->is_bodyless = str_is(exchange->head.method, "HEAD") || status == 204 || status == 304;
    exchange->is_chunked = content_length < 0 && exchange->head.minor >= 1;
    exchange->keep_alive = exchange->head.keep_alive && exchange->body == BODY_DONE &&
                           !connection->home->is_draining &&
                           !fiber_is_cancelled(connection->fiber) &&
                           (content_length >= 0 || exchange->is_chunked);
}

static void put_framing(struct buf *out, const struct http_exchange *exchange)
{
    if (exchange->status != 204 && exchange->body_size >= 0) {
        (void)buf_printf(out, "content-length: %lld\r\n", (long long)exchange->body_size);
    } else if (exchange->status != 204 && exchange->is_chunked) {
        (void)buf_puts(out, "transfer-encoding: chunked\r\n");
    }
    (void)buf_puts(out, exchange->keep_alive ? "connection: keep-alive\r\n\r\n"
                                             : "connection: close\r\n\r\n");
}

static void put_head(struct http_exchange *exchange, int status,
                     const struct http_answer_field *fields, size_t count, int64_t content_length)
{
    struct buf *out = &exchange->connection->out;
    CHECK(exchange->answer == ANSWER_NONE);
    CHECK(status >= 200 && status <= 999);
    choose_framing(exchange, status, content_length);
    buf_reset(out);
    (void)buf_printf(out, "HTTP/1.1 %d %s\r\ndate: %s\r\n", status, http_reason(status),
                     server_loop_date(exchange_home(exchange)));
    for (size_t i = 0; i < count; i++) {
        put_field(out, &fields[i]);
    }
    put_framing(out, exchange);
    CHECK(!out->overflow);
    exchange->answer = ANSWER_BEGUN;
    trace_say(TRACE_HTTP, "answer", exchange->connection, exchange->head.target, status);
}

static int send_failed(struct http_exchange *exchange, int code, struct sg_error *err)
{
    exchange->answer = ANSWER_BROKEN;
    if (code == SG_E_TIMEOUT) {
        return error_set(err, code, "the client took nothing for %lld ms",
                         (long long)exchange_home(exchange)->server->tuning.write_ms);
    }
    return error_set(err, code, "the client left before its answer was whole");
}

/* The head, if it still waits, and up to three pieces. vectors[0] is left free for it. */
static int send_pieces(struct http_exchange *exchange, struct iovec *vectors, size_t count,
                       struct sg_error *err)
{
    struct buf *out = &exchange->connection->out;
    vectors[0] = (struct iovec){out->data, out->len};
    int code = connection_send(exchange->connection, vectors, count);
    buf_reset(out);
    return code == 0 ? 0 : send_failed(exchange, code, err);
}

static struct iovec vector_of(struct str text)
{
    return (struct iovec){(void *)(uintptr_t)text.data, text.len}; /* sendmsg only reads */
}

int http_answer(struct http_exchange *exchange, int status, const struct http_answer_field *fields,
                size_t count, struct str body, struct sg_error *err)
{
    CHECK_MAGIC(exchange, EXCHANGE_MAGIC);
    put_head(exchange, status, fields, count, (int64_t)body.len);
    struct iovec vectors[2] = {{NULL, 0}, vector_of(body)};
    int code = send_pieces(exchange, vectors, exchange->is_bodyless ? 1 : 2, err);
    if (code == 0) {
        exchange->body_bytes = exchange->is_bodyless ? 0 : body.len;
        exchange->answer = ANSWER_ENDED;
    }
    return code;
}

int http_answer_begin(struct http_exchange *exchange, int status,
                      const struct http_answer_field *fields, size_t count, int64_t content_length,
                      struct sg_error *err)
{
    CHECK_MAGIC(exchange, EXCHANGE_MAGIC);
    put_head(exchange, status, fields, count, content_length);
    return exchange->connection->is_gone ? send_failed(exchange, SG_E_CANCELLED, err) : 0;
}

/* What the exchange cannot send any more. */
static int check_begun(const struct http_exchange *exchange, struct sg_error *err)
{
    CHECK_MAGIC(exchange, EXCHANGE_MAGIC);
    CHECK(exchange->answer == ANSWER_BEGUN || exchange->answer == ANSWER_BROKEN);
    return exchange->answer == ANSWER_BEGUN
               ? 0
               : error_set(err, SG_E_CANCELLED, "the answer was broken off");
}

int http_answer_flush(struct http_exchange *exchange, struct sg_error *err)
{
    struct iovec vectors[1];
    int code = check_begun(exchange, err);
    return code == 0 ? send_pieces(exchange, vectors, 1, err) : code;
}

static int wrong_length(struct http_exchange *exchange, const char *how, struct sg_error *err)
{
    http_answer_abort(exchange);
    return error_set(err, SG_E_INTERNAL, "the answer's body is %s than its content-length of %lld",
                     how, (long long)exchange->body_size);
}

int http_answer_write(struct http_exchange *exchange, struct str data, struct sg_error *err)
{
    int code = check_begun(exchange, err);
    if (code != 0 || data.len == 0 || exchange->is_bodyless) {
        return code;
    }
    if (exchange->body_size >= 0 &&
        data.len > (uint64_t)exchange->body_size - exchange->body_bytes) {
        return wrong_length(exchange, "longer", err);
    }
    char size[24];
    int size_len = exchange->is_chunked ? snprintf(size, sizeof size, "%zx\r\n", data.len) : 0;
    struct iovec vectors[4] = {
        {NULL, 0}, {size, (size_t)size_len}, vector_of(data), vector_of(STR("\r\n"))};
    code = send_pieces(exchange, vectors, exchange->is_chunked ? 4 : 3, err);
    exchange->body_bytes += code == 0 ? data.len : 0;
    return code;
}

int http_answer_end(struct http_exchange *exchange, struct sg_error *err)
{
    int code = check_begun(exchange, err);
    if (code != 0) {
        return code;
    }
    if (!exchange->is_bodyless && exchange->body_size >= 0 &&
        exchange->body_bytes < (uint64_t)exchange->body_size) {
        return wrong_length(exchange, "shorter", err);
    }
    bool has_last_chunk = exchange->is_chunked && !exchange->is_bodyless;
    struct iovec vectors[2] = {{NULL, 0}, vector_of(STR("0\r\n\r\n"))};
    code = send_pieces(exchange, vectors, has_last_chunk ? 2 : 1, err);
    if (code == 0) {
        exchange->answer = ANSWER_ENDED;
    }
    return code;
}

void http_answer_abort(struct http_exchange *exchange)
{
    CHECK_MAGIC(exchange, EXCHANGE_MAGIC);
    /* Without length and chunks an end is an end, and a held back head would be a closed connection without a word. */
    exchange->connection->must_reset |= exchange->body_size < 0 && !exchange->is_chunked;
    exchange->answer = ANSWER_BROKEN;
}

int http_answer_status(const struct http_exchange *exchange)
{
    return exchange->status;
}

uint64_t http_answer_bytes(const struct http_exchange *exchange)
{
    return exchange->body_bytes;
}

static const char *error_type(int code)
{
    bool is_ours = code == SG_E_INTERNAL || code == SG_E_UNAVAILABLE;
    return is_ours ? "server_error" : "invalid_request_error";
}

void answer_error(struct http_exchange *exchange, const struct sg_error *failure)
{
    static const struct http_answer_field type = {STR("content-type"), STR("application/json")};
    BUF_CLEANUP struct buf body = {0};
    int status = error_status(failure);
    (void)buf_puts(&body, "{\"error\":{\"message\":"); /* bounded, cannot overflow */
    (void)buf_put_json(&body, str_of(failure->message));
    (void)buf_printf(&body, ",\"type\":\"%s\",\"param\":null,\"code\":null}}",
                     error_type(failure->code));
    struct sg_error ignored = {0};
    /* Where the client is gone there is nobody to tell. */
    (void)http_answer(exchange, status, &type, 1, buf_str(&body), &ignored);
}
