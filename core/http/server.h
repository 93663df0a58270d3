/* The HTTP front: listeners, connections, one exchange at a time. A connection is a fiber of the loop that accepted it;
 * the handler runs in it and writes straight down.
 *
 * Deadlines: header, body silence, idle, write (base/limits.h). A client that leaves (close or half-close) while its
 * exchange is being answered is noticed at once: the fiber is cancelled. (Half-close counts as leaving, since the one cannot be
 * told from the other: clients keep their side open until they have the answer.) One exchange at a time: a pipelined next
 * request waits in the socket. Where descriptors or places are scarce, connections whose request is not being handled give
 * way to those that come. A request that cannot be read is answered by the core, in the form of OpenAI's errors. */
#ifndef SANDGATE_HTTP_SERVER_H
#define SANDGATE_HTTP_SERVER_H

#include "base/buf.h"
#include "base/error.h"
#include "http/address.h"
#include "http/head.h"
#include "http/tls.h"
#include "loop/loop.h"

#include <sys/types.h>

/* Connections on each loop that were answered 503 and stay for a second until the client has read it; a loop holds a
 * spare descriptor besides, and one for each listener. The process's start counts them among admission_init()'s `fixed`. */
#define HTTP_SERVER_REJECTED_MAX 32
#define HTTP_SERVER_LOOP_DESCRIPTORS(listeners) (HTTP_SERVER_REJECTED_MAX + 1 + (listeners))

#define HTTP_LISTENERS_MAX 16 /* addresses of one server */

struct http_server;   /* for all loops */
struct http_exchange; /* one request and its answer; lives during the handler */

typedef void http_handler(void *ctx, struct http_exchange *);

/* What a listener is for. The server treats all alike; the handler asks by which one a request came. */
enum http_listener_use { HTTP_USE_PUBLIC, HTTP_USE_ADMIN };

struct http_listener_options {
    struct sockaddr_storage address; /* of IPv4, IPv6 or a Unix socket */
    socklen_t address_len;
    enum http_listener_use use;
    bool has_tls;  /* connections begin with a handshake */
    mode_t mode;   /* of a Unix socket's file, as chmod(2) takes it */
    int listen_fd; /* listens already, and tells the address: taken over, by failures too; 0: none */
};

struct http_server_options {
    struct http_listener_options listeners[HTTP_LISTENERS_MAX];
    size_t listeners_count;    /* 1 at the least */
    struct loop *const *loops; /* borrowed */
    size_t loops_count;
    struct http_tls *tls; /* a reference is taken; NULL: no listener has TLS */
    http_handler *handle;
    void *ctx;
};

/* Binds each address (once without SO_REUSEPORT, so that a second process fails with a clear SG_E_CONFIG message naming it),
 * then a listener for each loop. IPv6 addresses take IPv6 alone. A Unix socket is one for all loops; a file of its name at
 * which nobody listens is replaced, and its own is removed by http_server_drain() or http_server_free(). With listen_fd
 * nothing is bound: all loops accept on duplicates of it, and what nobody has accepted at the end stays for the next
 * process. Does not accept yet. */
int http_server_new(const struct http_server_options *, struct http_server **ret,
                    struct sg_error *err);
/* What binding a Unix socket's file would find, without making it: SG_E_CONFIG where its folder is not there or may not be
 * written, or something else than a socket has its name. A socket is good, since a server may be running there. Other
 * addresses are good. Any thread. */
int http_listener_check(const struct http_listener_options *, struct sg_error *err);
void http_server_start(struct http_server *); /* accepts on every loop */
/* Any fiber of loop 0: stops accepting, closes idle connections; those in an exchange close after it. Waits until all
 * loops have done so. */
void http_server_drain(struct http_server *);
size_t http_server_busy(struct http_server *); /* exchanges in progress, all loops; any thread */
void http_server_cancel(
    struct http_server *); /* cancels the fiber of every connection that is left; any thread */
void http_server_free(
    struct http_server *); /* after drain, once busy is 0 and no connection is left */
size_t http_server_connections(struct http_server *); /* open, all loops; any thread */
/* Has new connections use another certificate; those that are open keep theirs. Takes a reference. Any thread. */
void http_server_set_tls(struct http_server *, struct http_tls *);
/* How often handshakes have ended so, all loops; any thread. */
uint64_t http_server_handshakes(struct http_server *, enum http_handshake);
/* Where the listener of that index listens, with the port that was bound for port 0. */
void http_server_address(const struct http_server *, size_t listener, char ret[HTTP_ADDRESS_BYTES]);
uint16_t http_server_port(const struct http_server *); /* of the first listener */

const struct http_head *http_request_head(const struct http_exchange *);
/* The client's address as text, for logs. */
const char *http_client_address(const struct http_exchange *);
/* The same as it is: IPv4 (also where the socket has it mapped into IPv6), IPv6, or a Unix socket, mostly without a name. */
const struct sockaddr_storage *http_client_peer(const struct http_exchange *);
/* By which listener it came. */
enum http_listener_use http_request_listener(const struct http_exchange *);

/* What its body counts against: bytes are taken before they are read, and stay taken. Before http_read_body(). */
struct account;
void http_body_account(struct http_exchange *, struct account *);

/* Reads the whole body (answers Expect: 100-continue first). SG_E_LIMIT with status 413 beyond max bytes, or as account_take(),
 * SG_E_INVALID for a broken one, SG_E_TIMEOUT (408) for a slow one. Waits. */
int http_read_body(struct http_exchange *, size_t bytes_max, struct buf *ret, struct sg_error *err);
/* The same body in pieces, for who passes it on: appends the next one, of at most 64 KiB, to `ret`, or nothing at the end. Fails as
 * http_read_body() does, with bytes_max for all of them; no account is asked. One body is read by one of the two. Waits. */
int http_read_body_piece(struct http_exchange *, uint64_t bytes_max, struct buf *ret,
                         struct sg_error *err);

/* An answer's field. Names and values are checked: what http_value_valid() refuses is left out and logged. */
struct http_answer_field {
    struct str name, value;
};

/* A whole answer. The core adds date, content-length and connection. Waits. */
int http_answer(struct http_exchange *, int status, const struct http_answer_field *, size_t count,
                struct str body, struct sg_error *err);

/* A streamed one: chunked (or until close for HTTP/1.0), or with its length if content_length >= 0. Its head goes out
 * with the first write, or with http_answer_flush() or the end. Writing waits while the client takes nothing, so memory
 * stays bounded. An error means that the client is gone. */
int http_answer_begin(struct http_exchange *, int status, const struct http_answer_field *,
                      size_t count, int64_t content_length, struct sg_error *err);
int http_answer_write(struct http_exchange *, struct str data, struct sg_error *err);
int http_answer_flush(struct http_exchange *,
                      struct sg_error *err); /* the head, without waiting for a write */
int http_answer_end(struct http_exchange *, struct sg_error *err);

/* Breaks the connection off: for a relayed answer that was cut short, so that the client sees it as cut. */
void http_answer_abort(struct http_exchange *);

/* The client has closed or reset its connection, or its sending side. If a fiber is cancelled without that, it is the
 * server that ends, and there is somebody to be told. */
bool http_client_has_left(const struct http_exchange *);
int http_answer_status(const struct http_exchange *);     /* 0: nothing sent yet */
uint64_t http_answer_bytes(const struct http_exchange *); /* body bytes sent */

#endif
