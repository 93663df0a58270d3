/* What the files of TLS share: tls.c (the object), tls_files.c (what it is read from), tls_tickets.c (the keys of sessions),
 * tls_connection.c (a connection's use of it). Tests include it for tickets_key_for_new() and for the context. */
#ifndef SANDGATE_HTTP_TLS_INTERNAL_H
#define SANDGATE_HTTP_TLS_INTERNAL_H

#include "base/lock.h"
#include "http/tls.h"

#include <openssl/ssl.h>
#include <stdatomic.h>

#define TLS_MAGIC 0x48544C53u /* "HTLS" */

#define TICKET_KEY_S \
    7200 /* for so long a key makes tickets; then for as long it still reads them */

struct ticket_key {
    bool is_set;
    int64_t made_s; /* clock_ms() / 1000 */
    unsigned char name[16], cipher[32], mac[32];
};

struct tickets {
    struct lock lock; /* of the keys, copied out under it */
    struct ticket_key now, before;
};

struct http_tls {
    uint32_t magic;
    atomic_uint refs;
    SSL_CTX *context;
    BIO_METHOD *method; /* of the connections' sockets */
    struct tickets tickets;
    struct http_tls_facts facts;
};

/* ---- tls.c ---- */
int64_t tls_seconds_of(const ASN1_TIME *); /* since 1970; 0: it is no time */

/* ---- tls_files.c ---- */
int tls_use_pair(SSL_CTX *, const struct http_tls_options *, struct sg_error *err);
int tls_use_client_ca(SSL_CTX *, const char *path, struct sg_error *err);

/* ---- tls_tickets.c ---- */
void tickets_init(struct tickets *);
void tickets_clear(struct tickets *);
/* The key that makes tickets at that second; a fresh one takes its place when its time is over. False without randomness. */
bool tickets_key_for_new(struct tickets *, int64_t now_s, struct ticket_key *ret);
/* The key of that name, if it still reads at that second; *ret_is_old if tickets should be made anew. */
bool tickets_key_named(struct tickets *, const unsigned char name[16], int64_t now_s,
                       struct ticket_key *ret, bool *ret_is_old);
/* Has the context, whose application data is the struct http_tls, use them. */
bool tickets_use(SSL_CTX *);

/* ---- tls_connection.c ---- */
BIO_METHOD *tls_socket_method(void); /* NULL without memory */

/* ---- for messages ---- */
const char *tls_reason(
    void); /* the oldest in OpenSSL's queue of this thread, in its words; empties the queue */

#endif
