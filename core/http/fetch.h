/* HTTP requests of ours, over libcurl's multi interface: the answer comes in pieces to the fiber that asked.
 *
 * 16 to 128 multis a loop (libcurl's look-up of a connection is linear in those open), connections kept, names resolved ahead
 * on a worker thread and cached for 60 s, TLS verified, redirects not followed, proxies of the environment (no_proxy too)
 * ignored, HTTP/1.1. At most LIMIT_STREAM_BYTES of an answer are held; a reader that is slow pauses the transfer. */
#ifndef SANDGATE_HTTP_FETCH_H
#define SANDGATE_HTTP_FETCH_H

#include "base/arena.h"
#include "base/error.h"
#include "http/head.h"
#include "loop/loop.h"

struct fetch;
struct fetch_way;

struct fetch_field {
    struct str name, value;
};

struct fetch_request {
    const char *method; /* NULL: GET, or POST with a body */
    const char
        *url; /* http:// or https://; without user info, CR, LF, control characters (checked) */
    const struct fetch_field *fields; /* names and values are checked: SG_E_INVALID */
    size_t fields_count;
    struct str body; /* borrowed until fetch_end() */
    bool has_body;   /* an empty body is sent as one */
    /* A body is sent once only. Else, where a kept connection ends without a byte of an answer, the whole request is sent
     * anew, though the other side may have carried it out. */
    bool is_once;
    bool is_fresh; /* by a new connection: what has no body is sent once only so */
    /* A body that comes by fetch_write(), instead of `body`: body_bytes long, or, -1, in chunks. It is sent once only, by a connection
     * of its own, which is closed behind it: whoever chooses its bytes reaches no other request's. */
    bool is_streamed;
    int64_t body_bytes;
    int64_t connect_ms, first_byte_ms, silence_ms; /* 0: as in limits.h; the first byte's begins
                                                    * when a streamed body has ended */
    int64_t deadline;                              /* of the whole */
    const char *ca_file; /* certificates to trust instead of the system's (PEM); NULL: those */
    /* How the server is reached, instead of ca_file; NULL: by itself, as the system trusts it. Borrowed until fetch_end(). */
    const struct fetch_way *way;
};

/* How a server is reached, where that is not as usual. Transfers with different ways never share a connection; those whose
 * ways have the same contents do, whichever object says it. */
struct fetch_way_options {
    /* Texts that pem_read() gave; len 0: none. The authorities that are trusted instead of the system's, by an https proxy too;
     * the certificate (and those that lead to its authority) that is shown to a server that asks, and its key. */
    struct str ca, certificate, key;
    /* "http://[user:password@]host:port", or https or socks5h, which looks the server's name up itself, as the others do: every
     * exchange goes through a tunnel (CONNECT), plain http too. NULL: none. */
    const char *proxy;
};

/* All in the arena but the texts, which are borrowed. Read-only from then on, by any thread. SG_E_INVALID with "the URL …"
 * (which is not repeated) if the proxy's is none. */
int fetch_way_new(const struct fetch_way_options *, struct arena *, const struct fetch_way **ret,
                  struct sg_error *err);
/* The same for the same contents; 0 for NULL, and for that alone. */
uint64_t fetch_way_id(const struct fetch_way *);

struct fetch_reply {
    int status;
    const struct fetch_field *fields; /* names as sent */
    size_t fields_count;
};

/* Descriptors of a loop's first 16 multis; the process's start counts them among admission_init()'s `fixed`. More multis
 * and connections are counted by themselves. */
#define FETCH_LOOP_DESCRIPTORS 32

/* What a loop needs for fetching; once for each loop, on its thread, before and after all use. */
int fetch_loop_init(struct loop *, struct sg_error *err);
void fetch_loop_clear(struct loop *);
/* Closes connections that are kept and idle, for others to have their descriptors. On the loop's thread. */
void fetch_close_idle(struct loop *);
/* libcurl's own start and end; once a process. */
int fetch_global_init(struct sg_error *err);
void fetch_global_clear(void);

/* Is this a URL that can be fetched? SG_E_INVALID with "the URL …" if not. Pure. */
int fetch_check_url(const char *url, struct sg_error *err);

/* Starts it. Waits only for the name. Failures: UNAVAILABLE (cannot resolve, connect, TLS, reset; the message says
 * which and to which host and port), TIMEOUT (says which limit), INVALID, CANCELLED. */
int fetch_start(const struct fetch_request *, struct arena *, struct fetch **ret,
                struct sg_error *err);

/* Of a streamed body. Waits until the server takes more: until it is connected, and what was written before is on its way. *ret_wants
 * is false where all of a body with a length was written, and where the server will take no more, since it has refused the
 * request or the transfer has ended: fetch_head() tells. To be called until then, or until fetch_write_end(). */
bool fetch_is_streamed(const struct fetch *);
int fetch_await_write(struct fetch *, bool *ret_wants, struct sg_error *err);
/* The next bytes, copied, and no more than the length says; once for each fetch_await_write() that wants some. */
void fetch_write(struct fetch *, struct str data);
void fetch_write_end(struct fetch *); /* of a body without a length: there are no more; the same */

/* Waits for status and headers (1xx are skipped). */
int fetch_head(struct fetch *, struct fetch_reply *ret, struct sg_error *err);

/* Waits for more of the body: *ret_data until the next call. An empty one is the orderly end; a cut one is
 * SG_E_UNAVAILABLE. After a time-out of the fiber's own it, or fetch_head(), may be called again: the limits go on. */
int fetch_read(struct fetch *, struct str *ret_data, struct sg_error *err);

/* Ends the transfer at once, wherever it is. NULL is fine. */
void fetch_end(struct fetch *);

/* How far the exchange has come, or had when it failed. NULL stands for a fetch_start() that failed. */
enum fetch_stage {
    FETCH_RESOLVING = 1, /* the numbers of enum sg_http_stage */
    FETCH_CONNECTING,
    FETCH_SECURING,
    FETCH_SENT, /* at least in part */
    FETCH_ANSWERED,
};
enum fetch_stage fetch_stage(const struct fetch *);

/* A failure that came before anything was sent (connection refused, no name): safe to try again. NULL stands for a
 * fetch_start() that failed. */
bool fetch_failed_before_sending(const struct fetch *);

#endif
