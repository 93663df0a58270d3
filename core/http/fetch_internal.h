/* What the files of fetching share: fetch.c (the fiber's side), fetch_loop.c (a loop's part), request.c (what is asked of libcurl), multi.c
 * (libcurl's multis on libevent), sockets.c (counting descriptors), resolve.c (names), way.c (proxies and certificates) and url.c.
 * Tests include it for the resolver's look-up and the counts. */
#ifndef SANDGATE_HTTP_FETCH_INTERNAL_H
#define SANDGATE_HTTP_FETCH_INTERNAL_H

#include "base/buf.h"
#include "base/check.h"
#include "http/fetch.h"

#include <curl/curl.h>
#include <event2/event_struct.h>
#include <sys/queue.h>

#define FETCH_MAGIC 0x46544348u      /* "FTCH" */
#define FETCH_LOOP_MAGIC 0x464C4F50u /* "FLOP" */

enum {
    FETCH_MULTIS_FIRST = 16, /* that a loop always has */
    FETCH_MULTIS = 128,      /* with those that are made when all others have much to do */
    FETCH_HOST_BYTES = 256
};

/* ---- url.c ---- */

struct fetch_address {
    char host[FETCH_HOST_BYTES]; /* in lower case, without brackets */
    uint16_t port;
    bool is_literal; /* an IP address: nothing to resolve */
    bool is_six;
};

/* SG_E_INVALID for anything but http:// or https:// with a plain host. The URL itself is not repeated in messages. */
int url_parse(const char *url, struct fetch_address *ret, struct sg_error *err);
/* Its parts: spaces and the like; "host[:port]", without user info; "the URL " and what is wrong. */
int url_check_characters(const char *url, struct sg_error *err);
int url_parse_authority(struct str authority, struct fetch_address *ret, struct sg_error *err);
int url_refuse(struct sg_error *err, const char *what);
/* "host:port" or "[host]:port" for messages. */
void address_write(const struct fetch_address *, struct buf *out);

/* ---- way.c ---- */

struct fetch_way {
    uint64_t id; /* the same for the same contents; never 0, which stands for no way */
    struct str ca, certificate, key;
    const char *proxy;                       /* "http://host:port", for libcurl; NULL: none */
    const char *proxy_user, *proxy_password; /* NULL: none; secrets */
    struct fetch_address proxy_address;
};

/* ---- resolve.c ---- */

struct resolver_entry;
struct resolver {
    struct loop *loop;
    /* On a worker thread: appends "a,b,c" to `ret`; else a reason that lives on. NULL: it worked. */
    const char *(*lookup)(const char *name, struct buf *ret);
    TAILQ_HEAD(, resolver_entry) entries; /* the longest unused first */
    TAILQ_HEAD(resolver_bucket, resolver_entry) buckets[256];
    size_t count;
};

void resolver_init(struct resolver *, struct loop *);
void resolver_clear(struct resolver *);
/* Appends the addresses of `name` as CURLOPT_RESOLVE takes them. Concurrent calls for one name share one look-up. Waits;
 * SG_E_TIMEOUT and SG_E_CANCELLED are for the caller to describe. */
int resolver_find(struct resolver *, const char *name, int64_t deadline, struct buf *ret,
                  struct sg_error *err);

/* ---- multi.c ---- */

struct fetch_multi {
    CURLM *multi; /* NULL: not made */
    struct fetch_loop *home;
    struct event timer;
    size_t running; /* transfers */
    size_t sockets; /* open, in use or kept */
};

struct watch; /* of a socket, for a multi */

struct fetch_socket { /* by its number */
    struct fetch_multi *multi;
    struct fetch *opener; /* until its transfer has ended */
    struct watch *watch;  /* NULL: nothing of it is watched */
    uint64_t way_id;      /* of the transfer that opened it */
};

struct fetch_loop {
    uint32_t magic;
    struct loop *loop;
    CURLSH *share; /* names and TLS sessions, within this loop: no locks */
    struct fetch_multi multis[FETCH_MULTIS];
    struct resolver resolver;
    size_t fetches; /* not yet ended */
    struct fetch_socket *sockets;
    size_t sockets_size;
    int fd_by_port[65536]; /* of connections, by their own port; may be out of date */
};

/* Where it is not one of the first, its descriptors have been taken. */
int multi_init(struct fetch_multi *, struct fetch_loop *, struct sg_error *err);
void multi_clear(struct fetch_multi *);
/* The one that shall carry a transfer to this address, by this way. */
struct fetch_multi *multi_choose(struct fetch_loop *, const struct fetch_address *,
                                 uint64_t way_id);
/* Closes what is kept by multis without a transfer. */
void multis_close_idle(struct fetch_loop *);
/* Adds the transfer and lets it take its first steps. */
int multi_add(struct fetch_multi *, struct fetch *, struct sg_error *err);
/* Ends it, wherever it is. */
void multi_remove(struct fetch *);
/* The socket is closed, or about to be: its number may become another's. */
void socket_unwatch(struct fetch_socket *);

/* ---- sockets.c ---- */

struct fetch_socket *socket_at(struct fetch_loop *, int fd);

curl_socket_t socket_open(void *fetch, curlsocktype, struct curl_sockaddr *);
int socket_close(void *fetch_loop, curl_socket_t);
/* Before a request is sent on a connection. Ends the transfer, and notes it, where it is one that was kept and has
 * something to read, or was made by another way: the transfer is then to begin anew, on a connection of its own. */
int socket_before_request(void *fetch, char *remote_ip, char *local_ip, int remote_port,
                          int local_port);
/* How many of the sockets that the transfer opened have not been told to be closed. */
size_t sockets_open_count(const struct fetch *);
/* The transfer has ended: of its sockets only `remaining` (or none) is still open. */
void sockets_settle(struct fetch *, curl_socket_t remaining);

/* ---- a transfer ---- */

struct fetch {
    uint32_t magic;
    struct fetch_loop *home;
    struct fetch_multi *multi; /* NULL once the transfer has ended */
    CURL *easy;
    struct curl_slist *headers, *resolve;
    struct fiber *waiter; /* parked in fetch_head() or fetch_read() */
    struct arena *arena;
    struct fetch_address address;
    const struct fetch_way *way; /* NULL: none */
    uint64_t way_id;
    struct str unsent; /* of a body that is sent once only */

    /* A body that is streamed: what was written, and how much of it libcurl has taken. It pauses where there is no more. */
    struct buf up;
    size_t up_taken;
    int64_t up_left; /* to be written; < 0: until fetch_write_end() */
    bool is_streamed, up_ended, up_paused;

    /* The answer's head. */
    int status;
    bool is_in_head, has_head;
    size_t header_bytes; /* of all heads, 1xx and trailers too */
    struct fetch_field *fields;
    size_t fields_count, fields_size;

    /* Its body: `in` fills, `out` is with the reader. */
    struct buf in, out;
    bool is_paused;

    int opened[16]; /* sockets, while the transfer runs */
    size_t opened_count;

    /* Its end. */
    bool is_done, was_sent, no_descriptor;
    bool is_connected;   /* to the server itself, so that what was sent was not a proxy's */
    bool is_spoiled;     /* the connection that it would have used */
    const char *problem; /* ours, a literal, where libcurl stopped because we told it to */
    int problem_code;
    CURLcode result;
    char detail[CURL_ERROR_SIZE]; /* libcurl's words */

    int64_t connect_ms, first_byte_ms, silence_ms;
    int64_t first_byte_deadline, deadline;
    int64_t silence_deadline; /* of what is waited for now; 0: nothing is */
};

/* Something has come of it, or it takes more: whoever waits looks. */
void fetch_wake(struct fetch *);
/* Called by multi.c when libcurl has ended the transfer, which is out of its multi then. Must not wait. */
void fetch_finished(struct fetch *, CURLcode result);

/* ---- request.c ---- */

/* Fills the easy handle. SG_E_INVALID for what may not be sent. */
int request_prepare(struct fetch *, const struct fetch_request *, struct sg_error *err);

#endif
