/* Request bodies: with a length or chunked, read to their end and no further, so that a next request's bytes stay. */
#include "http/server_internal.h"

#define READ_BYTES ((size_t)16 * 1024)
#define COUNT_BYTES ((size_t)64 * 1024)      /* a chunked body is counted in such steps */
#define READ_BYTES_MAX ((size_t)1024 * 1024) /* at once, once a body has shown that it is long */
#define PIECE_BYTES_MAX ((size_t)64 * 1024)

void body_init(struct http_exchange *exchange)
{
    const struct http_head *head = &exchange->head;
    exchange->body_left = head->content_length > 0 ? (uint64_t)head->content_length : 0;
    exchange->body = exchange->body_left > 0 || head->chunked ? BODY_UNREAD : BODY_DONE;
}

void body_skip_buffered(struct http_exchange *exchange)
{
    struct buf *in = &exchange->connection->in;
    if (exchange->body == BODY_UNREAD && !exchange->head.chunked &&
        in->len >= exchange->body_left) {
        buf_consume(in, (size_t)exchange->body_left);
        exchange->body_left = 0;
        exchange->body = BODY_DONE;
    }
}

static int too_long(uint64_t bytes_max, struct sg_error *err)
{
    (void)error_set(err, SG_E_LIMIT, "the request's body is longer than %llu bytes",
                    (unsigned long long)bytes_max); /* the code is returned below */
    err->status = 413;
    return SG_E_LIMIT;
}

static int cannot_read(struct http_exchange *exchange, int code, struct sg_error *err)
{
    if (code == SG_E_TIMEOUT) {
        (void)error_set(err, code, "the request's body paused for longer than %lld ms",
                        (long long)exchange_home(exchange)->server->tuning.body_silence_ms);
        err->status = 408;
        return code;
    }
    return error_set(err, code, "the client left before the request's body was whole");
}

/* More of the body; the pause before it is bounded. */
static int read_more(struct http_exchange *exchange, struct buf *into, size_t room,
                     struct sg_error *err)
{
    int64_t silence_ms = exchange_home(exchange)->server->tuning.body_silence_ms;
    int code = connection_read(exchange->connection, into, room, deadline_in(silence_ms));
    return code == 0 ? 0 : cannot_read(exchange, code, err);
}

/* A client that asked gets its "go on", unless its body is here already. */
static int send_continue(struct http_exchange *exchange, struct sg_error *err)
{
    static char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct iovec vector = {text, sizeof text - 1};
    if (!exchange->head.expect_continue || exchange->connection->in.len > 0) {
        return 0;
    }
    exchange->head.expect_continue = false; /* once */
    int code = connection_send(exchange->connection, &vector, 1);
    return code == 0 ? 0 : cannot_read(exchange, SG_E_CANCELLED, err);
}

/* Has it counted that the body will be so long? */
static int count_body(struct http_exchange *exchange, size_t bytes, struct sg_error *err)
{
    if (exchange->account == NULL || bytes <= exchange->body_counted) {
        return 0;
    }
    size_t more = bytes - exchange->body_counted;
    int code = account_take(exchange->account, more, err);
    exchange->body_counted += code == 0 ? more : 0;
    return code;
}

/* The same ahead of chunks, a step further where there is room for one. */
static int count_ahead(struct http_exchange *exchange, size_t bytes, struct sg_error *err)
{
    struct sg_error ignored;
    bool is_counted =
        bytes <= exchange->body_counted || count_body(exchange, bytes + COUNT_BYTES, &ignored) == 0;
    return is_counted ? 0 : count_body(exchange, bytes, err);
}

static size_t smaller(uint64_t a, size_t b)
{
    return a < b ? (size_t)a : b;
}

/* How much to ask for: more the longer the body already is, so that memory follows bytes and not promises. */
static size_t step_for(const struct buf *body)
{
    size_t step = body->len < READ_BYTES ? READ_BYTES : body->len;
    return step < READ_BYTES_MAX ? step : READ_BYTES_MAX;
}

static int read_with_length(struct http_exchange *exchange, struct buf *body, struct sg_error *err)
{
    struct buf *in = &exchange->connection->in;
    size_t buffered = smaller(exchange->body_left, in->len);
    if (!buf_append(body, in->data, buffered)) {
        return too_long(body->max, err);
    }
    buf_consume(in, buffered);
    exchange->body_left -= buffered;
    while (exchange->body_left > 0) {
        size_t room = smaller(exchange->body_left, step_for(body)), before = body->len;
        if (buf_reserve(body, room) == NULL) {
            return too_long(body->max, err);
        }
        int code = read_more(exchange, body, room, err);
        if (code != 0) {
            return code;
        }
        exchange->body_left -= body->len - before;
    }
    return 0;
}

/* Decodes what stands in `in`. *ret_ended once the last chunk was seen; what is behind it stays. */
static int decode_buffered(struct http_exchange *exchange, uint64_t bytes_max, struct buf *body,
                           bool *ret_ended, struct sg_error *err)
{
    struct buf *in = &exchange->connection->in;
    size_t at = 0;
    int result = 0;
    while (at < in->len && result == 0) {
        struct str span;
        size_t used = 0;
        result = http_chunks_feed(&exchange->chunks, (struct str){in->data + at, in->len - at},
                                  &used, &span);
        at += used;
        if (span.len > bytes_max - exchange->body_given - body->len) {
            return too_long(bytes_max, err);
        }
        int code = count_ahead(exchange, body->len + span.len, err);
        if (code != 0) {
            return code;
        }
        if (!buf_append_str(body, span)) {
            return too_long(bytes_max, err);
        }
    }
    buf_consume(in, at);
    if (result < 0) {
        return error_set(err, SG_E_INVALID, "the request's body is not well chunked");
    }
    *ret_ended = result == 1;
    return 0;
}

static int read_chunked(struct http_exchange *exchange, size_t bytes_max, struct buf *body,
                        struct sg_error *err)
{
    bool is_ended = false;
    for (;;) {
        int code = decode_buffered(exchange, bytes_max, body, &is_ended, err);
        if (code != 0 || is_ended) {
            return code;
        }
        code = read_more(exchange, &exchange->connection->in, READ_BYTES, err);
        if (code != 0) {
            return code;
        }
    }
}

int http_read_body(struct http_exchange *exchange, size_t bytes_max, struct buf *ret,
                   struct sg_error *err)
{
    CHECK_MAGIC(exchange, EXCHANGE_MAGIC);
    CHECK(ret->len == 0);
    CHECK(exchange->body == BODY_UNREAD || exchange->body == BODY_DONE);
    if (exchange->body == BODY_DONE) {
        return 0;
    }
    if (exchange->body_left > bytes_max) {
        return too_long(bytes_max, err);
    }
    int code = count_body(exchange, (size_t)exchange->body_left, err); /* within bytes_max */
    if (code == 0) {
        code = send_continue(exchange, err);
    }
    if (code == 0) {
        code = exchange->head.chunked ? read_chunked(exchange, bytes_max, ret, err)
                                      : read_with_length(exchange, ret, err);
    }
    exchange->body = code == 0 ? BODY_DONE : BODY_BROKEN;
    if (exchange->connection->in.len == 0) {
        buf_clear(&exchange->connection->in); /* nothing is read before the answer has gone */
    }
    if (exchange->account != NULL && exchange->body_counted > ret->len) {
        account_give(exchange->account, exchange->body_counted - ret->len);
        exchange->body_counted = ret->len;
    }
    return code;
}

/* What is there already, else what comes next. */
static int piece_with_length(struct http_exchange *exchange, struct buf *ret, struct sg_error *err)
{
    struct buf *in = &exchange->connection->in;
    size_t room = smaller(exchange->body_left, PIECE_BYTES_MAX), buffered = smaller(room, in->len);
    if (buffered == 0) {
        int code = read_more(exchange, ret, room, err);
        exchange->body_left -= ret->len;
        return code;
    }
    CHECK(buf_append(ret, in->data, buffered));
    buf_consume(in, buffered);
    exchange->body_left -= buffered;
    return 0;
}

/* Chunks are decoded as they were read, READ_BYTES at a time. */
static int piece_chunked(struct http_exchange *exchange, uint64_t bytes_max, struct buf *ret,
                         bool *ret_ended, struct sg_error *err)
{
    for (;;) {
        int code = decode_buffered(exchange, bytes_max, ret, ret_ended, err);
        if (code != 0 || *ret_ended || ret->len > 0) {
            return code;
        }
        code = read_more(exchange, &exchange->connection->in, READ_BYTES, err);
        if (code != 0) {
            return code;
        }
    }
}

static int pieces_begin(struct http_exchange *exchange, uint64_t bytes_max, struct sg_error *err)
{
    if (exchange->body_left > bytes_max) {
        return too_long(bytes_max, err);
    }
    exchange->body = BODY_IN_PIECES;
    return send_continue(exchange, err);
}

int http_read_body_piece(struct http_exchange *exchange, uint64_t bytes_max, struct buf *ret,
                         struct sg_error *err)
{
    CHECK_MAGIC(exchange, EXCHANGE_MAGIC);
    CHECK(exchange->body != BODY_BROKEN);
    CHECK(ret->len == 0);
    bool is_ended = false;
    if (exchange->body == BODY_DONE) {
        return 0;
    }
    int code = exchange->body == BODY_UNREAD ? pieces_begin(exchange, bytes_max, err) : 0;
    if (code == 0 && exchange->head.chunked) {
        code = piece_chunked(exchange, bytes_max, ret, &is_ended, err);
    } else if (code == 0) {
        code = piece_with_length(exchange, ret, err);
        is_ended = exchange->body_left == 0;
    }
    exchange->body_given += ret->len;
    exchange->body = code != 0 ? BODY_BROKEN : is_ended ? BODY_DONE : BODY_IN_PIECES;
    return code;
}

void http_body_account(struct http_exchange *exchange, struct account *account)
{
    CHECK_MAGIC(exchange, EXCHANGE_MAGIC);
    exchange->account = account;
}
