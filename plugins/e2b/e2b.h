/* What the files of the plugin share. E2B's protocol: the control plane ("API") makes and ends sandboxes; each sandbox has
 * two servers of its own, the code interpreter (port 49999) and envd for files and processes (49983).
 *
 *   plugin.c     options, open, close               run.c      Python and other languages, by the interpreter
 *   options.c    what options may be                stream.c   the interpreter's answer: lines
 *   api.c        what is asked of the API
 *   create.c     making one, lost answers           event.c    what one line says (with lenient.c, traceback.c)
 *   life.c       connect, touch, destroy            command.c  bash, by envd's processes (frames.c, process.c)
 *   sandboxes.c  those that are known               files.c    put, get, list, by envd (envd.c)
 *   exchange.c   one HTTP exchange                  fault.c    what a failed one means
 *
 * Secrets: the API key goes to the API only; a sandbox's id and tokens only to that sandbox and the API. None of them, and
 * no host name that holds an id, stands in a message or a log line. */
#ifndef E2B_E2B_H
#define E2B_E2B_H

#include <sandgate/plugin.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define E2B_MAGIC 0x45324250u     /* "E2BP" */
#define SANDBOX_MAGIC 0x45324253u /* "E2BS" */

enum e2b_port { PORT_ENVD = 49983, PORT_INTERPRETER = 49999 };

struct e2b_config {
    const char *api_key, *domain, *api_url, *sandbox_url, *ca_file, *template_name;
    int64_t lifetime, request_timeout; /* ms */
    int64_t concurrency;               /* sandboxes at one time; 0: no limit of ours */
    bool internet, public_traffic;
    const char *const *sandbox_domains;
    const char *const *allow_out, *const *deny_out; /* hosts, addresses, networks */
    struct sg_map env;
};

/* ---- sandboxes.c: those that are known ---- */

/* All strings are fixed once it is in the table; the rest is used by the run that has the container's turn, except where
 * the lock is named. */
struct sandbox {
    uint32_t magic;
    struct sandbox *next;                     /* in its bucket; under the lock */
    size_t refs;                              /* under the lock */
    char id[64];                              /* [a-z0-9]+; also the handle */
    char domain[256];                         /* "" where sandbox_url says where it is */
    char envd_token[512], traffic_token[512]; /* "": none */
    unsigned envd_version[3];
    bool interrupt_wanted, is_running; /* under the lock */
    bool is_gone;                      /* under the lock: E2B has ended it */
    int64_t kept_until;                /* clock_ms(), under the lock: by then E2B has ended it */
    int64_t quiet_until;               /* no run before (clock_ms()): the one before was cut off */
    bool may_be_busy;                  /* the code that was cut off may not have ended */
    int64_t
        executions; /* of Python's interpreter so far, as it counts them; 0: none, or not known */
    int64_t stray_pid; /* a command's process that could not be killed yet; 0: none */
};

#define SANDBOX_BUCKETS 256

struct orphan { /* a create whose answer was lost: perhaps there is a sandbox of this label */
    struct orphan *next;
    /* clock_ms(): looked for again not before; not listed then, it is not there; by then it has ended by itself */
    int64_t again_at, settled_at, until;
    char label[128];
};

struct
    coming_run { /* whose sandbox is being looked for: there is none yet that could be told of an interrupt */
    struct coming_run *next;
    char id[64]; /* "": its handle is none */
    bool is_interrupted;
};

struct e2b { /* an instance */
    uint32_t magic;
    const struct e2b_config *config;
    char *api_url;     /* without a slash at its end */
    char *sandbox_url; /* likewise; NULL: each has a host of its own */
    char *account;     /* whose sandboxes are found here: the API and the key. A secret */
    pthread_mutex_t lock;
    struct sandbox *buckets[SANDBOX_BUCKETS];
    size_t count;              /* sandboxes that are there or being made */
    struct coming_run *coming; /* under the lock */
    struct orphan *orphans;    /* under the lock */
    int64_t api_closed_until;  /* clock_ms(), under the lock: the API has said to wait until then */
    bool
        wants_probe; /* under the lock: it said longer than we keep to; one call asks first, then all */
    /* A create was refused since the account is full, with this message: clock_ms(), under the lock: none is asked for
     * before, unless one of ours is ended. */
    int64_t full_until;
    char full_message[512];
    bool has_warned_of_life; /* under the lock */
    bool is_closing;         /* set by close(): nothing waits for long any more */
};

/* The known sandbox of this handle with a reference; one that is not known (of an earlier process) is connected to, which
 * asks the API. SG_E_GONE: E2B does not know it. Waits. */
int sandbox_get(struct e2b *, struct sg_call *, const char *handle, struct sandbox **ret,
                struct sg_error *);
/* The same for a run, which begins with it: from before it is looked for an interrupt reaches the run, until the run has
 * ended. SG_E_GONE: as above. Waits. */
int sandbox_begin_run(struct e2b *, struct sg_call *, const char *handle, struct sandbox **ret,
                      struct sg_error *);
void sandbox_end_run(struct e2b *, struct sandbox *);
/* True if an interrupt has come since: the run is to end soon with SG_E_CANCELLED. */
bool sandbox_is_interrupted(struct e2b *, struct sandbox *);
/* Interrupts the run in the sandbox of this handle, if there is one. */
void sandbox_interrupt(struct e2b *, const char *handle);
void sandbox_unref(struct e2b *, struct sandbox *);
/* It has ended: the table forgets it. The references stay good. */
void sandbox_forget(struct e2b *, struct sandbox *);

/* ---- exchange.c: one HTTP exchange ---- */

struct text;

struct exchange {       /* one at a time; all zero but for what is asked */
    const char *method; /* NULL: GET, or POST with a body */
    const char *path;   /* with query, from the slash on, percent-encoded */
    const char *content_type;
    const struct sg_map *headers; /* more of them; NULL: none */
    const void *body;
    size_t body_len;
    int64_t timeout_ms; /* the whole; 0: request_timeout */
    bool never_waits;   /* for an API that wants rest, or cannot be reached: it fails at once */
    int64_t silence_ms; /* 0: the whole */
    uint64_t bytes_max; /* of the answer; 0: 1 MiB */
    int64_t tick_ms;    /* see sg_http_request */
    const struct sg_sink *
        sink; /* gets the body of a 2xx answer in pieces; of another it is kept (64 KiB). NULL: kept */
    struct sg_http_reply
        reply; /* status, headers and body (kept) of the answer, also where a sink is used */
    const char *body_kept; /* ended by a NUL; "" if there is none. In the call's memory */
    size_t body_kept_len;
};

/* To the API, with the key. 0 if there is an answer, whatever its status. */
int exchange_api(struct e2b *, struct sg_call *, struct exchange *, struct sg_error *);
/* To a server of the sandbox, with its tokens as the port wants them. Likewise. On failure reply.failed_at says how far it
 * came, and the error is described without the host's name. A sink's own failure is handed back. */
int exchange_sandbox(struct e2b *, struct sg_call *, struct sandbox *, enum e2b_port,
                     struct exchange *, struct sg_error *);

/* ---- fault.c: what a failed one means ---- */

/* The plugin's failure for an answer of the API that is no success: code and message by status, body and headers.
 * `what` is said as in "cannot make a sandbox". */
int fault_api(struct e2b *, struct sg_call *, const struct exchange *, const char *what,
              struct sg_error *);
/* Likewise of a sandbox's server, before anything ran: SG_E_GONE_BEFORE where the sandbox is not there any more. */
int fault_sandbox(struct e2b *, struct sg_call *, struct sandbox *, const struct exchange *,
                  const char *what, struct sg_error *);
/* "The sandbox is running but port is not open": whoever answers is about to be back. */
bool fault_is_port_closed(const struct exchange *);
/* After a connection to the sandbox was lost: SG_E_GONE if it is not there any more (asks envd's /health), else
 * SG_E_UNAVAILABLE with `what`. */
int fault_lost(struct e2b *, struct sg_call *, struct sandbox *, const char *what,
               struct sg_error *);

/* ---- stream.c, event.c: the interpreter's answer ---- */

struct stream { /* all zero to begin with, but for `call` and, where it is known, `executions` */
    struct sg_call *call;
    char *line; /* the one that is not whole yet */
    size_t line_len, line_size;
    uint64_t emitted;        /* bytes of output so far */
    size_t unshared;         /* bytes of lines that were read since others had a turn */
    bool has_begun;          /* number_of_executions, or any output, came: the code ran */
    bool has_ended;          /* end_of_execution came */
    bool was_restarted;      /* the interpreter's process ended (ContextRestarting and its like) */
    bool is_kept_alive;      /* a keepalive came: this server sends one each 5 s of silence */
    size_t unreadable_count; /* lines that were no JSON object, left out */
    int64_t executions;      /* the interpreter's count of them: before this one, then with it */
    int code;                /* why it was ended: emit()'s or SG_E_LIMIT; 0: it was not */
};

/* More bytes of the answer, of any length. Emits what whole lines say. Non-zero ends the run and is kept in `code`. */
int stream_take(struct stream *, const char *data, size_t len, struct sg_error *);
/* The end: a last line without an end of line counts too. */
int stream_end(struct stream *, struct sg_error *);
void stream_clear(struct stream *);

/* ---- run.c ---- */

/* A run that has begun, or may have, fails with `code`: where the model would not learn that it may have had effects, this is
 * said. Returns the code, or that of emit(). */
int run_tell_begun(struct sg_call *, int code, struct sg_error *);

/* ---- the operations ---- */

int e2b_create(void *self, struct sg_call *, const struct sg_sandbox_spec *, struct sg_error *);
int e2b_destroy(void *self, struct sg_call *, const char *handle, struct sg_error *);
int e2b_touch(void *self, struct sg_call *, const char *handle, int64_t life_ms, struct sg_error *);
int e2b_run(void *self, struct sg_call *, const char *handle, const struct sg_run *,
            struct sg_error *);
int e2b_interrupt(void *self, struct sg_call *, const char *handle, struct sg_error *);
int e2b_put(void *self, struct sg_call *, const char *handle, const char *path, const void *,
            size_t, struct sg_error *);
int e2b_get(void *self, struct sg_call *, const char *handle, const char *path, struct sg_error *);
int e2b_list(void *self, struct sg_call *, const char *handle, const char *path, struct sg_error *);

/* command.c: a run in language "bash". */
int command_run(struct e2b *, struct sg_call *, struct sandbox *, const struct sg_run *,
                struct sg_error *);

#endif
