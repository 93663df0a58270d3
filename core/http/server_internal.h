/* What the files of the HTTP front share: server.c (all loops), bind.c (addresses), accept.c (a listener), conn.c (a connection's fiber),
 * place.c (who gives way), body.c (reading) and answer.c (writing). Tests include it for http_server_tune(), and those of
 * relief for connection_give_way(). */
#ifndef SANDGATE_HTTP_SERVER_INTERNAL_H
#define SANDGATE_HTTP_SERVER_INTERNAL_H

#include "base/check.h"
#include "http/address.h"
#include "http/admission.h"
#include "http/server.h"
#include "base/lock.h"

#include <event2/event_struct.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include <sys/uio.h>

#define SERVER_MAGIC 0x48535256u     /* "HSRV" */
#define CONNECTION_MAGIC 0x434F4E4Eu /* "CONN" */
#define EXCHANGE_MAGIC 0x45584348u   /* "EXCH" */

#define DATE_BYTES 30 /* "Sun, 06 Nov 1994 08:49:37 GMT" and a NUL */

struct http_tuning { /* the deadlines of base/limits.h, shorter in tests */
    int64_t header_ms, body_silence_ms, idle_ms, write_ms, linger_ms;
    int64_t settled_ms; /* idle for so long, a client is not about to send its next request */
    int64_t handshake_ms;
};

/* Before http_server_start(). */
void http_server_tune(struct http_server *, const struct http_tuning *);

/* A connection that was answered 503 at once; it stays a moment so that the answer is not lost to a reset. */
struct rejected {
    int fd;
    struct server_loop *home;
    struct event event;
    TAILQ_ENTRY(rejected) link;
};

/* How firmly a connection has its place: where there are too few, those of the first kind go first. */
enum place {
    PLACE_KEPT,      /* its request is being handled, or its head is here: it never gives way */
    PLACE_IDLE,      /* between two requests */
    PLACE_OVER,      /* its answer is over, and what it still sends is dropped */
    PLACE_HANDSHAKE, /* with TLS: new, or it has not ended its handshake */
    PLACE_HEAD,      /* new, or it has sent a part of a head */
    PLACE_COUNT
};

/* An address at which the server listens, on all loops. */
struct http_listener {
    struct http_listener_options at; /* with the port that was bound */
    bool keeps_queue; /* the socket is somebody else's too, who hands it to the next process */
    bool has_file;    /* a Unix socket's, made here: removed at the end, if it still is the same */
    dev_t file_device;
    ino_t file_number;
};

/* One loop's part of it. */
struct loop_listener {
    struct server_loop *home;
    const struct http_listener *listener;
    int fd; /* -1: none */
    struct event accept_event, retry_event;
};

/* One loop's part of the server; touched by its thread, but for the two counts. */
struct server_loop {
    struct http_server *server;
    struct loop *loop;
    struct loop_listener listeners[HTTP_LISTENERS_MAX]; /* as many as the server's */
    int spare_fd; /* given up for a moment where accept() meets EMFILE */
    bool is_accepting, is_draining;
    TAILQ_HEAD(, connection) connections;
    TAILQ_HEAD(, connection) places[PLACE_COUNT]; /* the longest there first; of PLACE_KEPT none */
    TAILQ_HEAD(, rejected) rejected;
    size_t rejected_count;
    size_t handshakes;                                           /* under way */
    atomic_uint_fast64_t handshake_counts[HTTP_HANDSHAKE_COUNT]; /* that have ended */
    int room_tries; /* how often the one that waits to be taken has been left waiting */
    atomic_size_t connections_count, busy_count;
    int64_t date_s;
    char date[DATE_BYTES];
};

struct http_server {
    uint32_t magic;
    atomic_size_t refs; /* the owner's and one for each posted task */
    struct admission_reliever reliever;
    atomic_size_t relieving;    /* loops that have been told to make room, and have not */
    atomic_size_t relief;       /* how many clients' connections each of them may close */
    atomic_size_t relief_heads; /* of them, on all loops together, those without a whole head */
    http_handler *handle;
    void *ctx;
    bool is_started;
    struct lock tls_lock; /* of the pointer; for as long as it takes to count a reference */
    struct http_tls *tls; /* for new connections; NULL: no listener has TLS */
    struct http_tuning tuning;
    struct http_listener listeners[HTTP_LISTENERS_MAX];
    size_t listeners_count;
    size_t loops_count;
    struct server_loop loops[];
};

struct connection {
    uint32_t magic;
    int fd;
    struct server_loop *home;
    const struct http_listener *listener; /* by which it came */
    struct connection_tls *tls;           /* NULL: bare */
    struct fiber *fiber;
    struct fiber_watch *watch;
    struct http_exchange *exchange;  /* while a handler runs */
    bool is_gone;                    /* the client closed or half-closed */
    enum place place;                /* it stands in home->places of it */
    int64_t place_since;             /* for so long, clock_ms() */
    bool must_reset;                 /* at its end the client shall see a cut, not an end */
    struct buf in;                   /* read and not yet used */
    struct buf head;                 /* of the exchange */
    struct buf out;                  /* an answer's head that was not yet sent */
    struct sockaddr_storage address; /* the client's, never a mapped one */
    socklen_t address_len;
    char address_text[HTTP_ADDRESS_BYTES]; /* filled when it is asked for */
    TAILQ_ENTRY(connection) link, place_link;
};

enum body_state { BODY_UNREAD, BODY_IN_PIECES, BODY_DONE, BODY_BROKEN };
enum answer_state { ANSWER_NONE, ANSWER_BEGUN, ANSWER_ENDED, ANSWER_BROKEN };

struct http_exchange {
    uint32_t magic;
    struct connection *connection;
    enum body_state body;
    uint64_t body_left;      /* with a length */
    uint64_t body_given;     /* in pieces, before the one that is being read */
    struct account *account; /* of the body, or NULL */
    size_t body_counted;     /* taken of it */
    struct http_chunks chunks;
    enum answer_state answer;
    int status;
    bool keep_alive;   /* after the answer */
    bool is_chunked;   /* the answer */
    bool is_bodyless;  /* HEAD, 204, 304 */
    int64_t body_size; /* the answer's, -1: not known before */
    uint64_t body_bytes;
    struct http_head head; /* last, as it is large */
};

/* ---- server.c ---- */
/* True from seven eighths of the connections on that there may be. */
bool server_connections_are_near(struct http_server *);
/* Has every loop close up to `count` connections in its next turn, as connection_give_way(): where the limits are near
 * idle and lingering ones, and where so many more would be beyond them as many others on all loops. Any thread. */
void server_relieve(struct http_server *, size_t count);

/* The one for new connections; a reference. */
struct http_tls *server_tls_take(struct http_server *);

/* ---- bind.c ---- */
/* Binds all of server->listeners, for each loop. SG_E_CONFIG with the address; listeners_close() is owed in either case. */
int listeners_bind(struct http_server *, struct sg_error *err);
void listeners_listen(struct http_server *);
/* The files of Unix sockets: nobody finds them from now on. */
void listeners_remove_files(struct http_server *);
void listeners_close(
    struct http_server *); /* those that no loop has closed; any of them bound or not */

/* ---- accept.c ---- */
void listeners_start(struct server_loop *);
void listeners_stop(struct server_loop *); /* takes what waits in their queues, then closes them */
void rejected_close_all(struct server_loop *);
const char *server_loop_date(struct server_loop *); /* now, as HTTP writes it */

/* ---- conn.c ---- */
/* Takes the descriptor; false (and it stays the caller's) where no fiber can be had. */
bool connection_start(const struct loop_listener *, int fd, const struct sockaddr_storage *,
                      socklen_t);

/* Appends what there is, at most `room` bytes. 0, SG_E_TIMEOUT, or SG_E_CANCELLED where the client or the fiber is
 * gone. Waits. */
int connection_read(struct connection *, struct buf *into, size_t room, int64_t deadline);
/* Sends all of it; changes the vectors. 0, or SG_E_TIMEOUT or SG_E_CANCELLED: nothing more can be sent. Waits. */
int connection_send(struct connection *, struct iovec *, size_t count);

/* Waits until the socket is ready. 0, SG_E_TIMEOUT or SG_E_CANCELLED. */
int connection_wait(struct connection *, int event, int64_t deadline);
/* Drops what has come in, up to 1 MiB, without a copy (MSG_TRUNC of tcp(7)). As recv(): the bytes, 0 at the end, -1 with errno. */
ssize_t connection_drop_input(int fd);
const char *connection_address(struct connection *); /* the client's, as text */

/* ---- tls_connection.c: of connections that came by a listener with TLS ---- */
/* The handshake, within its time. What has failed is logged; the client may still be reading why. Waits. */
enum http_handshake connection_tls_start(struct connection *);
/* As recv() and send() of a bare one, without waiting: bytes, 0 for the client's end, -1 and errno. With EAGAIN
 * connection_tls_wants() is what to wait for; what was to be sent must then be sent again as it was. */
ssize_t connection_tls_read(struct connection *, char *ret, size_t room);
ssize_t connection_tls_send(struct connection *, const struct iovec *, size_t count);
int connection_tls_wants(const struct connection *);
bool connection_tls_has_bytes(
    const struct connection *);                 /* taken from the socket and not yet read */
void connection_tls_close(struct connection *); /* says that nothing more comes */
void connection_tls_free(struct connection *);  /* of a bare one: no effect */

/* ---- place.c ---- */
void connection_set_place(struct connection *, enum place);
bool connection_has_bytes(const struct connection *); /* something has come that was not read yet */
/* Closes, without a word, the connection of the loop that is the first to give way, of the kinds up to `last`; false if
 * there is none. One to which something has come that its fiber has not read stays, unless its answer is over. The place is
 * free when its fiber has had its turn. */
bool connection_give_way(struct server_loop *, enum place last);
/* The same where places are only becoming scarce: one whose answer is over, or that has been idle for a while. A client
 * that goes on mostly does so at once, and would find its connection closed under its next request. */
bool connection_give_way_early(struct server_loop *);
/* The same among those that are shaking hands. */
bool connection_give_way_shaking(struct server_loop *);
/* Closes all that have sent nothing since they came, or since their last answer. */
void connections_close_silent(struct server_loop *);

/* ---- body.c ---- */
void body_init(struct http_exchange *);
/* Drops a body that nobody wanted, as far as it has come already. */
void body_skip_buffered(struct http_exchange *);

/* ---- answer.c ---- */
/* The error of a request that no handler saw, or did not answer, in the form of OpenAI's API. */
void answer_error(struct http_exchange *, const struct sg_error *);

static inline struct server_loop *exchange_home(const struct http_exchange *exchange)
{
    return exchange->connection->home;
}

#endif
