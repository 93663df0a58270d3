/* The plugin contract of sandgate: all that a plugin needs of the core, and all that the core needs of a plugin.
 *
 * A plugin is one shared object that includes this header, nothing else of the core, and exports one constant,
 * `sg_plugin_set`, written with SG_PLUGIN_SET(). docs/writing-plugins.md walks through a whole one.
 *
 * Ownership.  Every pointer, either way, is borrowed until the call returns; only `config` lives until close(). Data
 *             leaves a plugin through sg->emit(), which copies. Memory from sg->alloc() ends with the call. Nothing
 *             allocated on one side is freed on the other. JSON crosses as UTF-8 text, never as a library's tree.
 * Waiting.    A function marked "waits" may let other requests run. It returns when the thing is done, when the call's
 *             deadline has come (SG_E_TIMEOUT) or when the call is cancelled (SG_E_CANCELLED): hand that code back
 *             unchanged. Hold no lock across it. Keep stack frames under 16 KiB: a call may run on a 256 KiB stack.
 * Threads.    open() and close() run alone, on the main thread. All else may run at the same time on several threads
 *             for one instance; an sg_call is used only by the thread that was called with it. interrupt() and
 *             destroy() may come while run() runs. A plugin joins its own threads in close() and never forks (except
 *             through sg->spawn), exits, or changes signals, locale, environment or working directory.
 * Errors.     0 is success; anything else is `return sg->fail(err, SG_E_…, "what happened, and what to do")`. The core
 *             adds plugin, instance and request, and logs: a plugin never logs an error that it returns.
 *
 * What each minor added:
 *   1.0  the first.
 *   1.1  sg->identity(), the state "output" of a run.
 *   1.2  of http(): ca_file and tick_ms of a request, failed_at of a reply; the states "restarted" and
 *        "begun" of a run; sg->tool_options(), freshness of a query; the reason "too_long" of a tool's call; the
 *        status of open(), SG_TELLS_OF_HOST; account() of a sandbox.
 */
#ifndef SANDGATE_PLUGIN_H
#define SANDGATE_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SG_ABI_MAJOR 1
#define SG_ABI_MINOR 2
#define SG_PLUGIN_MAGIC 0x53475031u /* "SGP1" */

#if defined(__GNUC__)
#define SG_PRINTF(format_index, first_index) \
    __attribute__((format(printf, format_index, first_index)))
#else
#define SG_PRINTF(format_index, first_index)
#endif

struct sg_call;  /* one call of a plugin by the core: its memory, deadline, output. Opaque. */
struct sg_error; /* where a failure is described. Opaque; written by sg->fail(). */

/* Result codes. The numbers are frozen. The comment says what the core answers to a client where a code reaches one
 * (from a hook's request() and an upstream's turn()); from sandbox, search and tool calls a failure becomes a labelled
 * result for the model. */
enum sg_code {
    SG_OK = 0,
    SG_E_INVALID = 1,     /* 400: the input is wrong */
    SG_E_DENIED = 2,      /* 403 */
    SG_E_NOT_FOUND = 3,   /* 404 */
    SG_E_LIMIT = 4,       /* 429: a limit or quota is reached */
    SG_E_UNAVAILABLE = 5, /* 502: the service behind cannot be reached or failed */
    SG_E_TIMEOUT = 6,     /* 504 */
    SG_E_INTERNAL = 7,    /* 500 */
    SG_E_CANCELLED = 8,   /* nobody waits any more; only logged */
    SG_E_CONFIG = 9,      /* stops the start; from open() only */
    SG_E_GONE = 10,       /* the container no longer exists: the core replaces it once */
    SG_E_GONE_BEFORE =
        11 /* the same, and nothing of the run had started: the core also runs the code again */
};

/* What sg->emit() hands over. The numbers are frozen; new kinds are added at the end. */
enum sg_out {
    SG_OUT_DATA =
        1, /* bytes: an upstream's answer (JSON or SSE), a file's content, a hook's new request */
    SG_OUT_HEAD =
        2, /* upstream, once, before DATA: {"status": 429, "headers": {"retry-after": "1"}} */
    SG_OUT_HANDLE =
        3, /* create(): the provider's own text for the container, 1 B to 4 KiB, without NUL */
    SG_OUT_LOG_OUT = 4, /* UTF-8 text of standard output, as it comes */
    SG_OUT_LOG_ERR = 5, /* UTF-8 text of standard error, as it comes */
    SG_OUT_RESULT =
        6, /* a displayed value as a MIME bundle: {"text/plain": "…", "image/png": "BASE64"} */
    SG_OUT_FILE =
        7, /* a file: {"path": "…", "size": 12, "type": "file"}; type file, directory or other */
    SG_OUT_HIT =
        8, /* a search hit: {"title": "…", "url": "…", "snippet": "…", "date": "…" or null} */
    /* a word on how it goes or ended, as JSON: {"state": "…", "note": "…"}.
     * Of run(): state "memory" if processes of the code were killed for their memory and the run went on; its note is told
     * to the model. State "restarted" (1.2) if the interpreter was begun anew in the same container, so that variables are
     * gone and files are kept; its note is told likewise. State "output" before SG_E_LIMIT: it is the run's output that was too much, even if none of it was
     * emitted. State "begun" (1.2) before SG_E_UNAVAILABLE: the code ran or may have, even if nothing was emitted, and the
     * model is told that it may have had effects. At the end of a shell command {"state": "exited", "code": N}, its exit status (128 and the signal's
     * number where a signal ended it).
     * Of run_code() and the reading file functions also state "lost", before all else: the container was replaced; the
     * note is for the model.
     * Of a tool's call(), the last one: {"state": "completed" | "failed" | "invalid", "reason": "…", "code": N}. Invalid:
     * the arguments were wrong, and nothing was done. The reason of the other two, where it is one of these: "timeout",
     * "limit", "unavailable", "invalid" (the input does not fit), "not_found" (a file); of both that and invalid
     * "too_long" (1.2: a query, a URL). Whether a limit was the client's own (max_uses) the core knows itself. The code:
     * what a program returned, not 0 where code raised. All but the state may be left out, and so may the status of a
     * call that went well.
     * Of open() (1.2): state "open", with what an operator should know of the instance on this machine, as a note and as
     * members of the plugin's own; 2 KiB at most, the last one counts. It is published in /health/ready, which needs no
     * key: no secrets, no names. */
    SG_OUT_STATUS = 9,
    SG_OUT_MODEL = 10, /* tool call: what the model is told; several are joined */
    SG_OUT_EXCEPTION =
        11 /* the user's code raised: {"name": "NameError", "value": "…", "traceback": "…"} */
};

enum sg_level { SG_DEBUG = 1, SG_INFO = 2, SG_WARN = 3, SG_ERROR = 4 };

struct sg_map { /* name → text, in file order */
    const char *const *keys;
    const char *const *values;
    size_t count;
};

struct sg_list { /* an option of type SG_LIST: `count` structs of the option's fields_size */
    const void *items;
    size_t count;
};

/* Receives what a nested call emits, in the caller's own thread or fiber. Non-zero ends the work and is returned. */
struct sg_sink {
    int (*event)(void *ctx, enum sg_out, const void *data, size_t len, struct sg_error *err);
    void *ctx;
};

/* ---- sandbox -------------------------------------------------------------------------------------------------- */

struct sg_sandbox_spec {
    const char *template_name; /* NULL: the provider's default */
    const char *
        label; /* random text that names this container towards the provider; carries no identity */
    int64_t idle_ms; /* the core deletes it after so long without use */
    int64_t life_ms; /* the provider should end it by itself after so long without touch() */
};

struct sg_run {
    /* "python" (so does NULL), or "bash": a shell command line, carried out by a bash, or by sh where there is none, that
     * starts in the working directory: a fresh one for each, or one that lasts; a lasting one that had to be begun anew
     * is told by the state "restarted". Standard input is empty, and the exit status is told (SG_OUT_STATUS). Files are the same
     * ones for both, and for put() and get(). Others, "javascript" above all,
     * where a provider has them. A provider without a shell, or of another language: SG_E_INVALID. */
    const char *language;
    const char *code; /* may hold NUL bytes */
    size_t code_len;
    int64_t
        timeout_ms; /* the provider ends the run then (SG_E_TIMEOUT); the call's deadline is 5 s later */
};

struct sg_sandbox_ops {
    /* Makes a container and emits SG_OUT_HANDLE as soon as it exists: from then on the core owns it, and will destroy it
     * even if create() then fails. Required. */
    int (*create)(void *self, struct sg_call *, const struct sg_sandbox_spec *, struct sg_error *);
    /* Runs code; emits LOG_OUT, LOG_ERR, RESULT, FILE, EXCEPTION, STATUS as they happen. Code that raises is a success.
     * The core runs one at a time in a container. SG_E_TIMEOUT: the run was ended, the container lives. Required. */
    int (*run)(void *self, struct sg_call *, const char *handle, const struct sg_run *,
               struct sg_error *);
    /* Ends a container; one that is gone already is a success. May come while run() runs. Required. */
    int (*destroy)(void *self, struct sg_call *, const char *handle, struct sg_error *);
    /* Pushes the container's end to life_ms from now. */
    int (*touch)(void *self, struct sg_call *, const char *handle, int64_t life_ms,
                 struct sg_error *);
    /* Makes a run() in progress return soon, the container staying usable if possible. */
    int (*interrupt)(void *self, struct sg_call *, const char *handle, struct sg_error *);
    /* Files; paths are absolute or relative to the working directory, UTF-8, without NUL. Missing: SG_E_NOT_FOUND. A
     * folder where a file must be, or the other way round: SG_E_INVALID. Too large: SG_E_LIMIT. The message of these
     * three is told to the model. put() makes the folders that are missing, and replaces a file; get() emits a single
     * empty DATA, or none, for an empty file. */
    int (*put)(void *self, struct sg_call *, const char *handle, const char *path, const void *,
               size_t, struct sg_error *);
    int (*get)(void *self, struct sg_call *, const char *handle, const char *path,
               struct sg_error *); /* emits DATA */
    int (*list)(void *self, struct sg_call *, const char *handle, const char *path,
                struct sg_error *); /* emits FILE */
    uint32_t fds_per_container;     /* descriptors that one container holds in the gateway */
    /* 1.2. With SG_DURABLE: what this instance's handles belong to (a service's address and the key of an account, a
     * folder), as text that lives until close(). Handles that an earlier process got are used only where it gave the same
     * text. It may be a secret: the core keeps a hash of it alone. NULL: handles of this instance end with the process.
     * Must not wait; called once, after open(). Without the function all instances of the plugin have one account. */
    const char *(*account)(void *self);
};

/* ---- interceptor ---------------------------------------------------------------------------------------------- */

#define SG_TOOL_PARALLEL (1u << 0) /* calls of one turn may run side by side */

struct sg_tool {
    const char *
        hosted; /* "code_interpreter", "web_search": which native tools and items; NULL: always offered */
    const char *name; /* the function the model sees, unless the client has one of that name */
    const char *description;
    const char *parameters_json; /* JSON Schema of its arguments */
    uint32_t flags;              /* SG_TOOL_* */
    /* Carries out one call of the model. Emits what happened, for the client's native items, and SG_OUT_MODEL. */
    int (*call)(void *self, struct sg_call *, const char *arguments_json, size_t len,
                struct sg_error *);
};

struct sg_interceptor_ops {
    const struct sg_tool *tools; /* ends with a NULL name; NULL: a hook only */
    /* Looks at a request before anything is sent. May emit DATA (the whole new JSON) or fail (refuse it). */
    int (*request)(void *self, struct sg_call *, const char *json, size_t len, void **ret_state,
                   struct sg_error *);
    /* Once for each request() that returned 0, however the request ended; before the last bytes of its answer go out.
     * Must not wait. */
    void (*done)(void *self, void *state);
};

/* ---- search and upstream -------------------------------------------------------------------------------------- */

struct sg_query {
    const char *text;
    /* Hits wanted; 0: the provider's default. More may be emitted: the core hands on the first that fit. */
    int64_t count_max;
    /* Domains, ended by NULL; NULL: any. A provider gets plain hosts. The core looks at every hit's URL itself, paths
     * included, so a provider whose service cannot be asked for domains leaves them alone. */
    const char *const *allowed;
    const char *const *blocked; /* likewise */
    const char *country;        /* two letters, or NULL */
    const char *language;       /* two letters, or NULL */
    const char *freshness;      /* 1.2. "day", "week", "month", "year": not older; NULL: any age */
};

struct sg_search_ops {
    int (*search)(void *self, struct sg_call *, const struct sg_query *,
                  struct sg_error *); /* emits HIT */
};

struct sg_turn {
    const char *surface; /* "chat", "responses", "messages" */
    const char *json;    /* the request body */
    size_t json_len;
    bool stream; /* the body asks for a stream; answering in the other form is allowed */
};

struct sg_upstream_ops {
    int (*turn)(void *self, struct sg_call *, const struct sg_turn *,
                struct sg_error *); /* emits HEAD?, DATA… */
};

/* ---- options -------------------------------------------------------------------------------------------------- */

/* The C member for each type stands behind it. */
enum sg_option_type {
    SG_STRING = 1,   /* const char *; NULL if absent and without default */
    SG_BOOL = 2,     /* bool */
    SG_INT = 3,      /* int64_t */
    SG_DURATION = 4, /* int64_t, milliseconds; written 250ms, 30s, 5m, 2h */
    SG_SIZE = 5,     /* uint64_t, bytes; written 64KiB, 512MiB, 1GiB */
    SG_CHOICE = 6,   /* const char *, one of `choices` */
    SG_STRINGS = 7,  /* const char *const *, ended by NULL; never NULL itself */
    SG_MAP = 8,      /* struct sg_map: name → text */
    SG_LIST = 9      /* struct sg_list of maps, each described by `fields` */
};

#define SG_REQUIRED (1u << 0)
#define SG_SECRET (1u << 1) /* never printed or logged */
#define SG_DEPRECATED (1u << 2)

struct sg_option {
    const char *name; /* the YAML key: lower case, digits, '_' */
    uint32_t type;    /* enum sg_option_type */
    uint32_t flags;
    size_t offset, size;            /* SG_FIELD(struct, member) */
    const char *def, *min, *max;    /* written as in YAML; NULL: none (zero, "" or absent) */
    const char *choices;            /* SG_CHOICE: "fast|slow" */
    const char *help;               /* one sentence, required */
    const struct sg_option *fields; /* SG_LIST: ends with a NULL name */
    size_t fields_size;             /* SG_LIST: sizeof one item */
};

/* Sets offset and size, whatever stands before it: members left out in between are zero. */
#ifdef __cplusplus
#define SG_FIELD(type, member) offsetof(type, member), sizeof(((type *)0)->member)
#else
#define SG_FIELD(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
#endif

/* ---- what the core offers -------------------------------------------------------------------------------------- */

struct sg_http_request {
    const char *method; /* NULL: GET, or POST where there is a body */
    const char *url;    /* http:// or https:// */
    struct sg_map headers;
    const void *body;
    size_t body_len;
    int64_t timeout_ms;      /* the whole; 0: until the call's deadline */
    int64_t first_byte_ms;   /* 0: 60 s */
    int64_t silence_ms;      /* longest pause in the answer; 0: 60 s */
    uint64_t body_bytes_max; /* of the answer; 0: 16 MiB; more is SG_E_LIMIT */
    const char *ca_file; /* 1.2. Certificates to trust instead of the system's (PEM); NULL: those */
    /* 1.2. With a sink: it is called with no bytes each time so long has passed without any, from the start on, so that
     * it may end the exchange. 0: never. */
    int64_t tick_ms;
};

/* 1.2. How far an exchange had come that failed. Up to SG_HTTP_NO_TLS nothing of the request had been sent. */
enum sg_http_stage {
    SG_HTTP_UNRESOLVED = 1, /* there was no address, or nothing to connect with */
    SG_HTTP_UNCONNECTED = 2,
    SG_HTTP_NO_TLS = 3,
    SG_HTTP_UNANSWERED = 4, /* it may have arrived; status and headers had not come */
    SG_HTTP_CUT = 5         /* amid the answer */
};

struct sg_http_reply { /* lives as long as the call */
    int status;
    struct sg_map headers; /* names in lower case */
    const char
        *body; /* NULL where a sink took it; else ended by a NUL that body_len does not count */
    size_t body_len;
    /* 1.2. Where http() failed: enum sg_http_stage. Nothing else is set then, but for status and headers with a sink. */
    uint32_t failed_at;
};

struct sg_spawn_fd {
    int fd;       /* the gateway's descriptor; stays the caller's */
    int child_fd; /* its number in the child */
};

struct sg_spawn {
    const char *path;        /* absolute */
    const char *const *argv; /* ended by NULL */
    const char *const *envp; /* ended by NULL; nothing is inherited */
    const struct sg_spawn_fd
        *fds; /* nothing else is inherited; 0, 1 are /dev/null and 2 the gateway's unless given */
    size_t fds_count;
};

struct sg_child {
    int64_t pid;
    int pidfd; /* the plugin's: closed by it */
};

#define SG_READ (1 << 0)
#define SG_WRITE (1 << 1)

/* Grows at the end only. All functions may be used by a plugin's calls on any thread, with the call that it was given. */
struct sg_host {
    uint32_t size, abi_minor;
    /* One line; never secrets, handles or user data. */
    void (*log)(struct sg_call *, enum sg_level, const char *format, ...) SG_PRINTF(3, 4);
    /* Describes a failure; returns the code. What message() gave may be among the arguments. */
    int (*fail)(struct sg_error *, enum sg_code, const char *format, ...) SG_PRINTF(3, 4);
    /* Zeroed memory that ends with the call; NULL beyond 16 MiB a call. */
    void *(*alloc)(struct sg_call *, size_t);
    int64_t (*time_left_ms)(struct sg_call *);                     /* 0 if over or cancelled */
    int (*sleep)(struct sg_call *, int64_t ms, struct sg_error *); /* waits */
    /* An HTTP exchange. Status 4xx and 5xx are a success here. Redirects are not followed, TLS is verified. A body is sent
     * once only, so that nothing is done twice unless the plugin asks twice. With a sink the answer's body goes there as
     * SG_OUT_DATA; a sink that returns non-zero closes the connection. Waits. */
    int (*http)(struct sg_call *, const struct sg_http_request *, struct sg_http_reply *,
                const struct sg_sink *body, struct sg_error *);
    int (*emit)(struct sg_call *, enum sg_out, const void *, size_t,
                struct sg_error *); /* waits while its queue is full */
    /* Until fd is ready for `events` (SG_READ, SG_WRITE); ms < 0: no limit of its own. fd stays the plugin's. Waits. */
    int (*wait_fd)(struct sg_call *, int fd, int events, int64_t ms, int *ret_events,
                   struct sg_error *);
    /* For interceptors: runs code in the request's container. The sink sees LOG_OUT … EXCEPTION; emit yourself what the
     * client shall see. Waits. */
    int (*run_code)(struct sg_call *, const struct sg_run *, const struct sg_sink *,
                    struct sg_error *);
    /* Files of the request's container; fail as the provider's put(), get(), list() do, and with SG_E_UNAVAILABLE where it
     * has none of them. The sinks see DATA and FILE, and a STATUS "lost". Wait. */
    int (*file_put)(struct sg_call *, const char *path, const void *, size_t, struct sg_error *);
    int (*file_get)(struct sg_call *, const char *path, const struct sg_sink *, struct sg_error *);
    int (*file_list)(struct sg_call *, const char *path, const struct sg_sink *, struct sg_error *);
    int (*search)(struct sg_call *, const struct sg_query *, const struct sg_sink *,
                  struct sg_error *); /* waits */
    /* Runs fn(arg) on a worker thread, where it may block; returns what it returned. Waits, also when cancelled. */
    int (*blocking)(struct sg_call *, int (*fn)(void *), void *arg, struct sg_error *);
    /* Starts a child process with default signals. It should end by itself when its socket closes. */
    int (*spawn)(struct sg_call *, const struct sg_spawn *, struct sg_child *ret_child,
                 struct sg_error *);
    /* Until the child has ended; *ret_status as of waitpid(). ms < 0: no limit of its own. Waits. */
    int (*wait_child)(struct sg_call *, const struct sg_child *, int64_t ms, int *ret_status,
                      struct sg_error *);
    /* The absolute path of this plugin's folder of helper programs (no trailing slash). */
    const char *(*libexec_dir)(struct sg_call *);
    /* What fail() wrote: after a nested call that failed, why it did. "" if nothing was written; until it is written
     * again. */
    const char *(*message)(const struct sg_error *);
    /* 1.1. For interceptors: who asks, the name of the key's entry in the configuration; "anonymous" where authentication
     * is off. NULL in all other calls: providers are not told. */
    const char *(*identity)(struct sg_call *);
    /* 1.2. For a tool's call(): what the client asked of the hosted tool, in one form whatever the API, as a JSON object; all
     * members may be left out: max_uses (a number), allowed_domains, blocked_domains (arrays of strings), country, region,
     * city, timezone (strings, of the user's approximate location), context_size ("low", "medium", "high"). NULL: nothing. */
    const char *(*tool_options)(struct sg_call *);
};

/* ---- the plugin ------------------------------------------------------------------------------------------------ */

#define SG_ON_LOOP \
    (1u << 0) /* never blocks outside sg->…: calls run on the event loop, which is cheaper */
/* Sandbox: handles outlive the process. A later one may use a handle that an earlier one got, where account() agrees: any
 * operation may be the first that an instance sees of it. One whose container is gone meanwhile is SG_E_GONE_BEFORE in
 * run(), SG_E_GONE elsewhere. */
#define SG_DURABLE (1u << 1)
/* 1.2. `sandgate describe` opens an instance with the default options, shows the note of its status, or why it failed, and
 * closes it. No option may be required; http() and blocking() are not at hand. */
#define SG_TELLS_OF_HOST (1u << 2)

struct sg_plugin {
    const char *name;                /* unique within its kind in the set */
    const char *help;                /* one sentence */
    const struct sg_option *options; /* ends with a NULL name; NULL: none */
    size_t config_size;              /* sizeof the struct that the options fill; 0: none */
    /* Makes an instance. Rules between options are checked here (SG_E_CONFIG). `config` lives until close(). */
    int (*open)(const void *config, struct sg_call *, void **ret_self, struct sg_error *);
    void (*close)(void *self, struct sg_call *);
    const struct sg_sandbox_ops *sandbox; /* exactly one of the four is set */
    const struct sg_interceptor_ops *interceptor;
    const struct sg_search_ops *search;
    const struct sg_upstream_ops *upstream;
    uint32_t flags; /* SG_ON_LOOP, SG_DURABLE, SG_TELLS_OF_HOST */
};

/* Index of each struct that crosses, in sg_plugin_set.sizes. Only grows. */
enum sg_struct {
    SG_STRUCT_HOST,
    SG_STRUCT_PLUGIN,
    SG_STRUCT_OPTION,
    SG_STRUCT_SANDBOX_OPS,
    SG_STRUCT_INTERCEPTOR_OPS,
    SG_STRUCT_SEARCH_OPS,
    SG_STRUCT_UPSTREAM_OPS,
    SG_STRUCT_TOOL,
    SG_STRUCT_SANDBOX_SPEC,
    SG_STRUCT_RUN,
    SG_STRUCT_QUERY,
    SG_STRUCT_TURN,
    SG_STRUCT_SINK,
    SG_STRUCT_HTTP_REQUEST,
    SG_STRUCT_HTTP_REPLY,
    SG_STRUCT_SPAWN,
    SG_STRUCT_SPAWN_FD,
    SG_STRUCT_CHILD,
    SG_STRUCT_MAP,
    SG_STRUCT_LIST,
    SG_STRUCT_COUNT
};

/* The order of magic … sizes may never change. */
struct sg_plugin_set {
    uint32_t magic, size;
    uint16_t abi_major, abi_minor;
    uint32_t sizes_count;
    const uint32_t *sizes;
    const struct sg_host **host; /* where the core writes its table, before open() */
    const char *version;
    const struct sg_plugin *const *plugins; /* ended by NULL */
};

/* The core's functions, for this shared object alone. */
extern const struct sg_host *sg __attribute__((visibility("hidden")));

/* SG_PLUGIN_SET("1.2", &one, &another); */
#define SG_PLUGIN_SET(version_text, ...)                                                    \
    const struct sg_host *sg;                                                               \
    static const uint32_t sg_set_sizes[SG_STRUCT_COUNT] = {                                 \
        [SG_STRUCT_HOST] = sizeof(struct sg_host),                                          \
        [SG_STRUCT_PLUGIN] = sizeof(struct sg_plugin),                                      \
        [SG_STRUCT_OPTION] = sizeof(struct sg_option),                                      \
        [SG_STRUCT_SANDBOX_OPS] = sizeof(struct sg_sandbox_ops),                            \
        [SG_STRUCT_INTERCEPTOR_OPS] = sizeof(struct sg_interceptor_ops),                    \
        [SG_STRUCT_SEARCH_OPS] = sizeof(struct sg_search_ops),                              \
        [SG_STRUCT_UPSTREAM_OPS] = sizeof(struct sg_upstream_ops),                          \
        [SG_STRUCT_TOOL] = sizeof(struct sg_tool),                                          \
        [SG_STRUCT_SANDBOX_SPEC] = sizeof(struct sg_sandbox_spec),                          \
        [SG_STRUCT_RUN] = sizeof(struct sg_run),                                            \
        [SG_STRUCT_QUERY] = sizeof(struct sg_query),                                        \
        [SG_STRUCT_TURN] = sizeof(struct sg_turn),                                          \
        [SG_STRUCT_SINK] = sizeof(struct sg_sink),                                          \
        [SG_STRUCT_HTTP_REQUEST] = sizeof(struct sg_http_request),                          \
        [SG_STRUCT_HTTP_REPLY] = sizeof(struct sg_http_reply),                              \
        [SG_STRUCT_SPAWN] = sizeof(struct sg_spawn),                                        \
        [SG_STRUCT_SPAWN_FD] = sizeof(struct sg_spawn_fd),                                  \
        [SG_STRUCT_CHILD] = sizeof(struct sg_child),                                        \
        [SG_STRUCT_MAP] = sizeof(struct sg_map),                                            \
        [SG_STRUCT_LIST] = sizeof(struct sg_list),                                          \
    };                                                                                      \
    static const struct sg_plugin *const sg_set_plugins[] = {__VA_ARGS__, NULL};            \
    __attribute__((visibility("default"))) extern const struct sg_plugin_set sg_plugin_set; \
    __attribute__((used))                                                                   \
    const struct sg_plugin_set sg_plugin_set = {SG_PLUGIN_MAGIC,                            \
                                                sizeof(struct sg_plugin_set),               \
                                                SG_ABI_MAJOR,                               \
                                                SG_ABI_MINOR,                               \
                                                SG_STRUCT_COUNT,                            \
                                                sg_set_sizes,                               \
                                                &sg,                                        \
                                                version_text,                               \
                                                sg_set_plugins}

#ifdef __cplusplus
}
#endif

#endif
