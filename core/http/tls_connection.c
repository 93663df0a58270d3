/* A connection's use of TLS: the handshake in its fiber, then reading and writing as with a bare socket, without waiting.
 *
 * OpenSSL sees the socket through a BIO of ours, so that a record behind which more follows is sent with MSG_MORE: a chunk's
 * frame would otherwise leave in a packet of its own. Small pieces are put together to one record first. */
#include "http/server_internal.h"
#include "http/tls_internal.h"

#include "base/log.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_BYTES ((size_t)16 * 1024) /* the most that TLS puts into one */

struct connection_tls {
    struct http_tls *of;
    SSL *ssl;
    bool is_open;   /* the handshake is done */
    bool is_broken; /* by a failure: nothing more may be said, not even the end */
    bool has_more;  /* what is being written is not the end of a piece */
    int wants;      /* SG_READ or SG_WRITE, where it has to wait */
};

/* ---- the socket, for OpenSSL ---- */

static int socket_result(BIO *bio, ssize_t count, bool is_read)
{
    BIO_clear_retry_flags(bio);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
        if (is_read) {
            BIO_set_retry_read(bio);
        } else {
            BIO_set_retry_write(bio);
        }
    }
    return (int)count;
}

static int socket_write(BIO *bio, const char *data, int len)
{
    const struct connection *connection = BIO_get_data(bio);
    int more = connection->tls->has_more ? MSG_MORE : 0;
    ssize_t sent = send(connection->fd, data, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL | more);
    return socket_result(bio, sent, false);
}

static int socket_read(BIO *bio, char *ret, int len)
{
    const struct connection *connection = BIO_get_data(bio);
    return socket_result(bio, recv(connection->fd, ret, (size_t)len, MSG_DONTWAIT), true);
}

static long socket_control(BIO *bio, int command, long number, void *arg)
{
    (void)bio, (void)number, (void)arg;
    return command == BIO_CTRL_FLUSH ? 1 : 0; /* nothing is held back here */
}

BIO_METHOD *tls_socket_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "connection");
    bool is_set = method != NULL && BIO_meth_set_write(method, socket_write) == 1 &&
                  BIO_meth_set_read(method, socket_read) == 1 &&
                  BIO_meth_set_ctrl(method, socket_control) == 1;
    if (!is_set) {
        BIO_meth_free(method);
        return NULL;
    }
    return method;
}

/* ---- reading and writing ---- */

/* What a call that brought nothing means, as recv() and send() tell it: 0 the end, -1 with errno. */
static ssize_t nothing_came(struct connection_tls *tls, int result)
{
    int reason = SSL_get_error(tls->ssl, result);
    if (reason == SSL_ERROR_ZERO_RETURN) {
        return 0;
    }
    if (reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE) {
        tls->wants = reason == SSL_ERROR_WANT_READ ? SG_READ : SG_WRITE;
        errno = EAGAIN;
        return -1;
    }
    tls->is_broken = true;
    errno = ECONNRESET;
    return -1;
}

ssize_t connection_tls_read(struct connection *connection, char *ret, size_t room)
{
    struct connection_tls *tls = connection->tls;
    int most = room < RECORD_BYTES ? (int)room : (int)RECORD_BYTES;
    ERR_clear_error();
    int count = SSL_read(tls->ssl, ret, most);
    return count > 0 ? count : nothing_came(tls, count);
}

static size_t bytes_of(const struct iovec *vectors, size_t count)
{
    size_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += vectors[i].iov_len;
    }
    return sum;
}

static void gather(const struct iovec *vectors, char *ret, size_t len)
{
    for (size_t at = 0; at < len; vectors++) {
        size_t part = vectors->iov_len < len - at ? vectors->iov_len : len - at;
        if (part > 0) {
            memcpy(ret + at, vectors->iov_base, part);
        }
        at += part;
    }
}

/* One record. Called again after it had to wait, it builds the same bytes anew, as OpenSSL demands. */
ssize_t connection_tls_send(struct connection *connection, const struct iovec *vectors,
                            size_t count)
{
    struct connection_tls *tls = connection->tls;
    size_t all = bytes_of(vectors, count);
    size_t len = all < RECORD_BYTES ? all : RECORD_BYTES;
    char *gathered = vectors->iov_len >= len ? NULL : check_alloc(malloc(len));
    if (gathered != NULL) {
        gather(vectors, gathered, len);
    }
    tls->has_more = all > len;
    ERR_clear_error();
    int sent = SSL_write(tls->ssl, gathered != NULL ? gathered : vectors->iov_base, (int)len);
    free(gathered);
    tls->has_more = false;
    return sent > 0 ? sent : nothing_came(tls, sent);
}

int connection_tls_wants(const struct connection *connection)
{
    return connection->tls->wants;
}

bool connection_tls_has_bytes(const struct connection *connection)
{
    return connection->tls->is_open && SSL_has_pending(connection->tls->ssl) == 1;
}

void connection_tls_close(struct connection *connection)
{
    struct connection_tls *tls = connection->tls;
    if (tls->is_open && !tls->is_broken) {
        tls->is_broken = true; /* once */
        ERR_clear_error();
        (void)SSL_shutdown(
            tls->ssl); /* the client may be gone; what does not fit now is not sent */
        ERR_clear_error();
    }
}

void connection_tls_free(struct connection *connection)
{
    struct connection_tls *tls = connection->tls;
    if (tls != NULL) {
        SSL_free(tls->ssl);
        http_tls_unref(tls->of);
        free(tls);
        connection->tls = NULL;
    }
}

/* ---- the handshake ---- */

static struct connection_tls *tls_begin(struct connection *connection)
{
    struct connection_tls *tls = check_alloc(calloc(1, sizeof *tls));
    tls->of = server_tls_take(connection->home->server);
    tls->ssl = check_alloc(SSL_new(tls->of->context));
    BIO *bio = check_alloc(BIO_new(tls->of->method));
    BIO_set_data(bio, connection);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio); /* takes it */
    SSL_set_accept_state(tls->ssl);
    return tls;
}

static enum http_handshake outcome_of_error(unsigned long error)
{
    int reason = ERR_GET_REASON(error);
    if (ERR_GET_LIB(error) != ERR_LIB_SSL) {
        return HTTP_HANDSHAKE_OTHER;
    }
    switch (reason) {
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_VERSION_TOO_LOW:
    case SSL_R_UNKNOWN_PROTOCOL:
    case SSL_R_NO_PROTOCOLS_AVAILABLE:
        return HTTP_HANDSHAKE_VERSION;
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
        return HTTP_HANDSHAKE_CERTIFICATE;
    case SSL_R_UNEXPECTED_EOF_WHILE_READING:
        return HTTP_HANDSHAKE_LEFT;
    default:
        return reason >= SSL_AD_REASON_OFFSET ? HTTP_HANDSHAKE_REFUSED : HTTP_HANDSHAKE_OTHER;
    }
}

/* By an outcome and, for the log, in words. */
struct failure {
    enum http_handshake outcome;
    char reason[160]; /* "": it is none */
};

static struct failure failure_of(const struct connection_tls *tls, int result)
{
    int kind = SSL_get_error(tls->ssl, result);
    unsigned long error = ERR_peek_error();
    if (kind == SSL_ERROR_SYSCALL || kind == SSL_ERROR_ZERO_RETURN) {
        return (struct failure){HTTP_HANDSHAKE_LEFT, "the client closed"};
    }
    struct failure failure = {.outcome = outcome_of_error(error)};
    long verdict = SSL_get_verify_result(tls->ssl);
    bool is_client = ERR_GET_LIB(error) == ERR_LIB_SSL &&
                     ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED;
    (void)snprintf(failure.reason, sizeof failure.reason, "%s%s%s", tls_reason(),
                   is_client ? ": " : "",
                   is_client ? X509_verify_cert_error_string(verdict) : ""); /* may be cut */
    return failure;
}

static struct failure failure_of_wait(int code)
{
    return code == SG_E_TIMEOUT ? (struct failure){HTTP_HANDSHAKE_TIMEOUT, "it took too long"}
                                : (struct failure){HTTP_HANDSHAKE_LEFT, "it was given up"};
}

/* A request's first letter, where a record of TLS would begin with 22. */
static bool is_http(const struct connection *connection)
{
    char first = 0;
    return recv(connection->fd, &first, 1, MSG_DONTWAIT | MSG_PEEK) == 1 && first >= 'A' &&
           first <= 'Z';
}

static void answer_http(struct connection *connection)
{
    static const char body[] = "This address speaks HTTPS: write https:// in place of http://.\n";
    char answer[400];
    int len = snprintf(answer, sizeof answer,
                       "HTTP/1.1 400 Bad Request\r\ndate: %s\r\ncontent-type: text/plain\r\n"
                       "content-length: %zu\r\nconnection: close\r\n\r\n%s",
                       server_loop_date(connection->home), sizeof body - 1, body);
    CHECK(len > 0 && (size_t)len < sizeof answer);
    /* A fresh socket has room for it; a client that is gone already needs none. */
    (void)send(connection->fd, answer, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static struct failure shake_hands(struct connection *connection, int64_t deadline)
{
    struct connection_tls *tls = connection->tls;
    int code = connection_wait(connection, SG_READ, deadline);
    if (code == 0 && is_http(connection)) {
        answer_http(connection);
        return (struct failure){HTTP_HANDSHAKE_HTTP, "HTTP without TLS"};
    }
    while (code == 0 && !fiber_is_cancelled(connection->fiber)) {
        ERR_clear_error();
        int result = SSL_accept(tls->ssl);
        if (result == 1) {
            tls->is_open = true;
            bool is_resumed = SSL_session_reused(tls->ssl) == 1;
            return (struct failure){is_resumed ? HTTP_HANDSHAKE_RESUMED : HTTP_HANDSHAKE_FULL, ""};
        }
        int kind = SSL_get_error(tls->ssl, result);
        if (kind != SSL_ERROR_WANT_READ && kind != SSL_ERROR_WANT_WRITE) {
            return failure_of(tls, result);
        }
        code =
            connection_wait(connection, kind == SSL_ERROR_WANT_READ ? SG_READ : SG_WRITE, deadline);
    }
    return failure_of_wait(code);
}

static void log_failure(struct connection *connection, const struct failure *failure)
{
    struct log_line line;
    log_begin(&line, SG_INFO, "handshake_failed");
    log_text(&line, "client", connection_address(connection));
    log_text(&line, "kind", http_handshake_name(failure->outcome));
    log_text(&line, "reason", failure->reason);
    log_end(&line);
}

/* Room among those that are at it: the one that has been so for the longest time without a word gives way. */
static bool is_crowded(struct server_loop *home)
{
    return home->handshakes >= LIMIT_HANDSHAKES && !connection_give_way_shaking(home);
}

enum http_handshake connection_tls_start(struct connection *connection)
{
    struct server_loop *home = connection->home;
    struct failure ended = {HTTP_HANDSHAKE_CROWDED, "too many at a time"};
    if (!is_crowded(home)) {
        connection->tls = tls_begin(connection);
        connection_set_place(connection, PLACE_HANDSHAKE);
        home->handshakes++;
        ended = shake_hands(connection, deadline_in(home->server->tuning.handshake_ms));
        home->handshakes--;
        connection_set_place(connection, PLACE_KEPT);
    }
    atomic_fetch_add_explicit(&home->handshake_counts[ended.outcome], 1, memory_order_relaxed);
    if (ended.reason[0] != '\0') {
        log_failure(connection, &ended);
    }
    return ended.outcome;
}
