/* A connection's fiber: reads one head after the other, calls the handler for each, and closes so that the client gets
 * what was said to it.
 *
 * The head of an exchange stands in a buffer of its own while the handler runs; what was read behind it stays in `in`
 * for the body and the next exchange. */
#include "http/admission.h"
#include "http/server_internal.h"

#include "base/log.h"
#include "base/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define READ_BYTES ((size_t)16 * 1024)

/* ---- reading and writing ---- */

int connection_wait(struct connection *connection, int event, int64_t deadline)
{
    int ready = 0;
    int code = fiber_wait_fd(connection->fd, event, deadline, &ready);
    if (code == SG_E_LIMIT) {
        struct log_line line;
        log_begin(&line, SG_ERROR, "connection_not_watched");
        log_text(&line, "client", connection_address(connection));
        log_text(&line, "reason",
                 "the user's watches of epoll are used up: raise fs.epoll.max_user_watches, or run "
                 "the gateway under a user of its own");
        log_end(&line);
    }
    return code == 0 || code == SG_E_TIMEOUT ? code : SG_E_CANCELLED;
}

/* With TLS reading may have to write, and the other way round. */
static int waits_for(const struct connection *connection, int event)
{
    return connection->tls != NULL ? connection_tls_wants(connection) : event;
}

int connection_read(struct connection *connection, struct buf *into, size_t room, int64_t deadline)
{
    char *space = buf_reserve(into, room);
    CHECK(space != NULL);
    for (;;) {
        ssize_t count = connection->tls != NULL ? connection_tls_read(connection, space, room)
                                                : recv(connection->fd, space, room, MSG_DONTWAIT);
        if (count > 0) {
            buf_commit(into, (size_t)count);
            return 0;
        }
        if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
            connection->is_gone = true;
            return SG_E_CANCELLED;
        }
        int code = connection_wait(connection, waits_for(connection, SG_READ), deadline);
        if (code != 0) {
            return code;
        }
    }
}

/* Takes what was sent off the front of the vectors. */
static void vectors_advance(struct msghdr *message, size_t sent)
{
    while (message->msg_iovlen > 0 && sent >= message->msg_iov->iov_len) {
        sent -= message->msg_iov->iov_len;
        message->msg_iov++;
        message->msg_iovlen--;
    }
    if (message->msg_iovlen > 0) {
        message->msg_iov->iov_base = (char *)message->msg_iov->iov_base + sent;
        message->msg_iov->iov_len -= sent;
    }
}

static int send_all(struct connection *connection, struct msghdr *message, int64_t write_ms)
{
    vectors_advance(message, 0);
    while (message->msg_iovlen > 0) {
        if (connection->is_gone) {
            return SG_E_CANCELLED;
        }
        ssize_t sent = connection->tls != NULL
                           ? connection_tls_send(connection, message->msg_iov, message->msg_iovlen)
                           : sendmsg(connection->fd, message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent >= 0) {
            vectors_advance(message, (size_t)sent);
            continue;
        }
        if (errno != EAGAIN && errno != EINTR) {
            connection->is_gone = true;
            return SG_E_CANCELLED;
        }
        int code =
            connection_wait(connection, waits_for(connection, SG_WRITE), deadline_in(write_ms));
        if (code != 0) {
            connection->must_reset = true; /* it has half of something */
            return code;
        }
    }
    return 0;
}

/* The handler's time may be over while a piece is under way. What was begun is finished, if the client takes it within
 * the time for a write: half a piece would leave no way to say anything more, not even why. */
int connection_send(struct connection *connection, struct iovec *vectors, size_t count)
{
    struct msghdr message = {.msg_iov = vectors, .msg_iovlen = count};
    int64_t write_ms = connection->home->server->tuning.write_ms;
    int64_t own = fiber_deadline(connection->fiber);
    if (own != DEADLINE_NONE) {
        fiber_set_deadline(connection->fiber, own + write_ms);
    }
    int code = send_all(connection, &message, write_ms);
    fiber_set_deadline(connection->fiber, own);
    return code;
}

/* ---- ends ---- */

const char *connection_address(struct connection *connection)
{
    if (connection->address_text[0] == '\0') {
        http_address_write(&connection->address, connection->address_len, connection->address_text);
    }
    return connection->address_text;
}

static void log_refusal(struct connection *connection, const struct sg_error *err)
{
    struct log_line line;
    log_begin(&line, SG_INFO, "request_refused");
    log_text(&line, "client", connection_address(connection));
    log_int(&line, "status", error_status(err));
    log_text(&line, "reason", err->message);
    log_end(&line);
}

/* Waits for more to drop; one that sends without a pause must not keep the others from running either. */
static bool may_linger(struct connection *connection, bool is_empty, int64_t deadline)
{
    if (is_empty) {
        return connection_wait(connection, SG_READ, deadline) == 0;
    }
    fiber_yield();
    return clock_ms() < deadline && !fiber_is_cancelled(connection->fiber);
}

/* Called by its number, since ThreadSanitizer takes recv() to have written at NULL, by two loops at a time. */
ssize_t connection_drop_input(int fd)
{
    return syscall(SYS_recvfrom, fd, NULL, (size_t)1 << 20, MSG_DONTWAIT | MSG_TRUNC, NULL, NULL);
}

/* The client may still be sending: closing at once would reset the connection and could take the answer from it. */
static void linger(struct connection *connection)
{
    int64_t deadline = deadline_in(connection->home->server->tuning.linger_ms);
    if (connection->tls != NULL) {
        connection_tls_close(connection);
    }
    (void)shutdown(connection->fd, SHUT_WR); /* fails where the client is gone */
    connection_set_place(connection, PLACE_OVER);
    while (!connection->is_gone) {
        ssize_t count = connection_drop_input(connection->fd);
        bool is_empty = count < 0 && errno == EAGAIN;
        if (count == 0 || (count < 0 && !is_empty && errno != EINTR)) {
            return;
        }
        if (clock_ms() >= deadline || !may_linger(connection, is_empty, deadline)) {
            return;
        }
    }
}

/* Answers a head that could not be read. */
static void refuse(struct connection *connection, const struct sg_error *err)
{
    struct http_exchange exchange = {
        .magic = EXCHANGE_MAGIC, .connection = connection, .body = BODY_BROKEN, .head.minor = 1};
    log_refusal(connection, err);
    answer_error(&exchange, err);
    linger(connection);
}

static void close_socket(struct connection *connection)
{
    if (connection->must_reset) {
        struct linger none = {.l_onoff = 1, .l_linger = 0};
        /* A socket that is broken already needs no reset. */
        (void)setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    } else if (connection->tls != NULL) {
        connection_tls_close(connection);
    }
    connection_tls_free(connection);
    (void)close(connection->fd); /* nothing is left that could be lost */
    admission_give(1);
}

static void connection_free(struct connection *connection)
{
    struct server_loop *home = connection->home;
    connection_set_place(connection, PLACE_KEPT);
    CHECK(connection->exchange == NULL);
    fiber_watch_end(connection->watch);
    close_socket(connection);
    TAILQ_REMOVE(&home->connections, connection, link);
    buf_clear(&connection->in);
    buf_clear(&connection->head);
    buf_clear(&connection->out);
    connection->magic = 0;
    free(connection);
    atomic_fetch_sub(&home->connections_count, 1);
}

/* ---- between exchanges ---- */

/* Waits for a request's first bytes. An idle connection holds no buffer. */
static int wait_for_request(struct connection *connection, bool is_first)
{
    const struct http_tuning *tuning = &connection->home->server->tuning;
    if (connection->in.len > 0) {
        return 0;
    }
    buf_clear(&connection->head);
    buf_clear(&connection->out);
    int code = 0;
    /* A new connection's request has mostly arrived; an old one's client has just been answered. */
    if (!is_first || !connection_has_bytes(connection)) {
        buf_clear(&connection->in);
        if (connection->home->is_draining) {
            return SG_E_CANCELLED;
        }
        connection_set_place(connection, is_first ? PLACE_HEAD : PLACE_IDLE);
        code = connection_wait(connection, SG_READ,
                               deadline_in(is_first ? tuning->header_ms : tuning->idle_ms));
    }
    /* Told to close in the same turn in which bytes came: a cancelled fiber could not serve them. */
    return code == 0 && fiber_is_cancelled(connection->fiber) ? SG_E_CANCELLED : code;
}

static int head_too_slow(const struct http_tuning *tuning, struct sg_error *err)
{
    (void)error_set(err, SG_E_TIMEOUT, "the request's head took longer than %lld ms",
                    (long long)tuning->header_ms); /* the code is returned below */
    err->status = 408;
    return SG_E_TIMEOUT;
}

/* Reads until `in` starts with a whole head, *ret_length bytes. A head can only end with a LF: without a new one there
 * is nothing to look for. */
static int read_head(struct connection *connection, size_t *ret_length, struct sg_error *err)
{
    const struct http_tuning *tuning = &connection->home->server->tuning;
    int64_t deadline = deadline_in(tuning->header_ms);
    struct buf *in = &connection->in;
    size_t seen = 0;
    for (;;) {
        size_t length = 0;
        if (in->len > seen && memchr(in->data + seen, '\n', in->len - seen) != NULL) {
            length = http_head_length(buf_str(in));
        }
        if (length > 0 || in->len > LIMIT_HEADER_BYTES) {
            *ret_length = length > 0 ? length : in->len; /* too long: refused by the parser */
            return 0;
        }
        seen = in->len;
        int code =
            connection_read(connection, in, in->len == 0 ? READ_BYTES / 4 : READ_BYTES, deadline);
        if (code != 0) {
            return code == SG_E_TIMEOUT ? head_too_slow(tuning, err) : code;
        }
    }
}

/* Moves the head out of `in`, without copying where nothing stands behind it. */
static void take_head(struct connection *connection, size_t length)
{
    if (length == connection->in.len) {
        struct buf empty = connection->head;
        connection->head = connection->in;
        connection->in = empty;
        buf_reset(&connection->in);
        return;
    }
    buf_reset(&connection->head);
    CHECK(buf_append(&connection->head, connection->in.data, length));
    buf_consume(&connection->in, length);
}

/* ---- exchanges ---- */

/* What a handler left undone. */
static void finish_answer(struct http_exchange *exchange, struct sg_error *err)
{
    struct connection *connection = exchange->connection;
    if (exchange->answer == ANSWER_BEGUN) {
        http_answer_abort(exchange);
    }
    if (exchange->answer == ANSWER_NONE && !connection->is_gone) {
        if (fiber_is_cancelled(connection->fiber)) {
            (void)error_set(err, SG_E_UNAVAILABLE, "the server is shutting down");
            err->status = 503;
        } else {
            (void)error_set(err, SG_E_INTERNAL, "the request was not answered");
        }
        answer_error(exchange, err);
    }
}

/* True if another request may follow. `err` is the caller's, since an error is large: every page of a stack that is
 * touched on the way to the longest wait, that for an upstream, is held by every request that waits. */
static bool exchange_run(struct connection *connection, struct sg_error *err)
{
    struct http_exchange exchange;
    memset(&exchange, 0, offsetof(struct http_exchange, head));
    if (http_head_parse(buf_str(&connection->head), &exchange.head, err) != 0) {
        refuse(connection, err);
        return false;
    }
    if (connection->is_gone) { /* nobody waits for an answer */
        return false;
    }
    struct http_server *server = connection->home->server;
    exchange.magic = EXCHANGE_MAGIC;
    exchange.connection = connection;
    body_init(&exchange);
    connection->exchange = &exchange;
    trace_say(TRACE_HTTP, "request", connection, exchange.head.target,
              exchange.head.content_length);
    atomic_fetch_add(&connection->home->busy_count, 1);
    server->handle(server->ctx, &exchange);
    finish_answer(&exchange, err);
    atomic_fetch_sub(&connection->home->busy_count, 1);
    connection->exchange = NULL;
    exchange.magic = 0;
    fiber_set_deadline(connection->fiber, DEADLINE_NONE);
    if (exchange.answer != ANSWER_ENDED || connection->is_gone) {
        return false;
    }
    if (!exchange.keep_alive && (exchange.body != BODY_DONE || connection->in.len > 0)) {
        linger(connection);
    }
    return exchange.keep_alive && !fiber_is_cancelled(connection->fiber);
}

static void serve(struct connection *connection)
{
    bool goes_on = true;
    for (bool is_first = true; goes_on; is_first = false) {
        struct sg_error err = {0};
        size_t length = 0;
        if (wait_for_request(connection, is_first) != 0) {
            return;
        }
        connection_set_place(connection, PLACE_HEAD); /* since it came, if it is new */
        int code = read_head(connection, &length, &err);
        connection_set_place(connection, PLACE_KEPT);
        if (code == SG_E_TIMEOUT) {
            refuse(connection, &err);
        }
        if (code != 0) {
            return;
        }
        take_head(connection, length);
        goes_on = exchange_run(connection, &err);
    }
}

static void connection_gone(void *arg)
{
    struct connection *connection = arg;
    CHECK_MAGIC(connection, CONNECTION_MAGIC);
    connection->is_gone = true;
    if (connection->exchange != NULL) {
        fiber_cancel(connection->fiber);
    }
}

/* Where it is not, the client reads an alert, or an answer, of ours. */
static bool tls_is_up(struct connection *connection)
{
    switch (connection_tls_start(connection)) {
    case HTTP_HANDSHAKE_FULL:
    case HTTP_HANDSHAKE_RESUMED:
        return true;
    case HTTP_HANDSHAKE_TIMEOUT:
    case HTTP_HANDSHAKE_LEFT:
    case HTTP_HANDSHAKE_CROWDED:
        return false;
    default:
        linger(connection);
        return false;
    }
}

static void connection_run(void *arg)
{
    struct connection *connection = arg;
    CHECK_MAGIC(connection, CONNECTION_MAGIC);
    connection->watch = fiber_watch_hangup(connection->fd, connection_gone, connection);
    if (!connection->listener->at.has_tls || tls_is_up(connection)) {
        serve(connection);
    }
    connection_free(connection);
}

bool connection_start(const struct loop_listener *here, int fd,
                      const struct sockaddr_storage *address, socklen_t address_len)
{
    struct server_loop *home = here->home;
    struct connection *connection = check_alloc(calloc(1, sizeof *connection));
    connection->magic = CONNECTION_MAGIC;
    connection->fd = fd;
    connection->home = home;
    connection->listener = here->listener;
    connection->address = *address;
    connection->address_len = address_len;
    http_address_unmap(&connection->address);
    struct sg_error err = {0};
    if (fiber_start(home->loop, "connection", connection_run, connection, &connection->fiber,
                    &err) != 0) {
        struct log_line line;
        log_begin(&line, SG_WARN, "connection_refused");
        log_text(&line, "reason", err.message);
        log_end(&line);
        free(connection);
        return false;
    }
    TAILQ_INSERT_TAIL(&home->connections, connection, link);
    atomic_fetch_add(&home->connections_count, 1);
    return true;
}

const struct http_head *http_request_head(const struct http_exchange *exchange)
{
    CHECK_MAGIC(exchange, EXCHANGE_MAGIC);
    return &exchange->head;
}

bool http_client_has_left(const struct http_exchange *exchange)
{
    CHECK_MAGIC(exchange, EXCHANGE_MAGIC);
    return exchange->connection->is_gone;
}

const char *http_client_address(const struct http_exchange *exchange)
{
    CHECK_MAGIC(exchange, EXCHANGE_MAGIC);
    return connection_address(exchange->connection);
}

const struct sockaddr_storage *http_client_peer(const struct http_exchange *exchange)
{
    CHECK_MAGIC(exchange, EXCHANGE_MAGIC);
    return &exchange->connection->address;
}

enum http_listener_use http_request_listener(const struct http_exchange *exchange)
{
    CHECK_MAGIC(exchange, EXCHANGE_MAGIC);
    return exchange->connection->listener->at.use;
}
