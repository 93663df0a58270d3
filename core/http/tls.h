/* TLS of the server: a certificate with its key and its rules (struct http_tls), counted by references and never changed; who
 * wants another puts a new one in its place (http_server_set_tls()).
 *
 * TLS 1.2 and 1.3, with forward secrecy alone; HTTP/1.1 is all that ALPN offers; no renegotiation, no compression, no early
 * data. Sessions are resumed by tickets, which nothing is kept for: their keys live in memory, change every two hours, and are
 * this object's own, so that none is good after another certificate or list of clients' authorities came into force; nor is
 * one whose client's certificate has ended. */
#ifndef SANDGATE_HTTP_TLS_H
#define SANDGATE_HTTP_TLS_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct http_tls;

struct http_tls_options {    /* PEM files, as pem.h wants them */
    const char *certificate; /* with what leads to its authority behind it */
    const char *key;         /* not encrypted; nobody but its owner and its group may read it */
    const char *
        client_ca; /* clients need a certificate of one of these authorities; NULL: they need none */
    bool needs_13; /* TLS 1.3 at the least, else 1.2 */
};

/* Reads and checks: that the files can be read and trusted, and that key and certificate belong together. SG_E_CONFIG, with
 * err->param the option that is wrong: "certificate", "key" or "client_ca", behind whose name the message is said. An expired certificate is taken; see below.
 * Reads files: not on a loop that serves. */
int http_tls_new(const struct http_tls_options *, struct http_tls **ret, struct sg_error *err);
struct http_tls *http_tls_ref(struct http_tls *);
void http_tls_unref(struct http_tls *); /* any thread; NULL is fine */

struct http_tls_facts {
    char subject[200];        /* as RFC 2253 writes it; may be cut */
    char not_after[32];       /* "2027-03-01T12:00:00Z" */
    int64_t not_after_s;      /* seconds since 1970 */
    int64_t not_before_s;     /* as above */
    unsigned char sha256[32]; /* of the certificate */
    bool asks_clients;        /* for a certificate of theirs */
    char rare_curve[40];      /* of its key, where clients do not usually know it; "" otherwise */
};
const struct http_tls_facts *http_tls_facts(const struct http_tls *);

#define HTTP_TLS_WARN_DAYS 14 /* so long before its end a certificate is spoken of */

/* Whole days that are left, rounded down: -1 as soon as it has expired. */
int64_t http_tls_days_left(const struct http_tls *, int64_t now_unix_s);

/* What became of handshakes. */
enum http_handshake {
    HTTP_HANDSHAKE_FULL,
    HTTP_HANDSHAKE_RESUMED,
    HTTP_HANDSHAKE_TIMEOUT,     /* not done within LIMIT_HANDSHAKE_MS */
    HTTP_HANDSHAKE_LEFT,        /* the client closed, or was closed in favour of others */
    HTTP_HANDSHAKE_CROWDED,     /* too many at a time */
    HTTP_HANDSHAKE_HTTP,        /* HTTP without TLS: the client is told so */
    HTTP_HANDSHAKE_VERSION,     /* no version that both speak */
    HTTP_HANDSHAKE_CERTIFICATE, /* the client has none, or none of an authority that is known here */
    HTTP_HANDSHAKE_REFUSED, /* the client broke off with an alert: it does not trust us, mostly */
    HTTP_HANDSHAKE_OTHER,
    HTTP_HANDSHAKE_COUNT
};
/* "full", "resumed", "timeout" … for metrics and logs. */
const char *http_handshake_name(enum http_handshake);

#endif
