/* Surfaces: the API forms that clients and upstreams speak. Pure: JSON in, JSON or events out, no I/O, so that every
 * wire rule is a unit test. The gateway's loop drives one `struct surface_exchange` for each intercepted request:
 *
 *   looks_for  → does the request name a hosted tool that one of the offers answers, or hold what we made?
 *   open       → reads the request; swaps hosted tools for plain functions
 *   each turn:   turn_request → body for the upstream;  turn_begin, turn_feed…, turn_end → text passed on, our calls held
 *   each call:   call_begin, call_end
 *   finish     → the end of the stream, or the whole answer
 *
 * `out` collects bytes for the client: server-sent events where the client asked for a stream, else nothing until
 * finish(). All memory is the exchange's arena's or owned by it until free(). */
#ifndef SANDGATE_SURFACE_SURFACE_H
#define SANDGATE_SURFACE_SURFACE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"

struct
    surface_offer { /* a tool that an interceptor in scope would answer; borrowed for the exchange's life */
    struct str hosted; /* "code_interpreter", "web_search"; empty: always offered */
    struct str name;   /* the function's name, unless the client has one of that name */
    struct str description;
    struct str parameters; /* JSON Schema */
    bool always;           /* `offer: always`: counts as named, except with tool choice none */
    bool show_runs;        /* chat: list what ran in `executed_tools` */
};

/* What is remembered of an answer for the request that continues it, for one identity and not for ever. Chat needs it,
 * where a turn with calls of ours and of the client's leaves the client with half of it, and responses for clients that keep
 * no items of ours. */
struct surface_memory {
    /* Keeps `data` under each of the ids. `goes_on`: so does what tools of ours have left (their container), for the
     * request that continues. False: it is too large. */
    bool (*keep)(void *context, const struct str *ids, size_t count, struct str data, bool goes_on);
    /* What was kept under the id, until the request ends; false: nothing, or not any more. */
    bool (*find)(void *context, struct str id, struct str *ret);
    /* The request continues the answer that was kept under the id; true if that left something that goes on in this
     * request, and may do so in the next. What it left and is gone is told to the model with the next result. */
    bool (*resume)(void *context, struct str id);
    void *context;
};

/* Answers that the client may come back to by their ids, and by those of their items, in one identity. Responses needs
 * it. */
struct surface_store {
    /* Keeps `data` under each of the ids; false: it is too large. */
    bool (*keep)(void *context, const struct str *ids, size_t count, struct str data);
    /* What was kept under the id, until the request ends; false: nothing, or not any more. */
    bool (*find)(void *context, struct str id, struct str *ret);
    void *context;
};

/* The request's container, as far as a surface shows it. */
struct surface_container_source {
    /* The id ("cntr_…") that the container has, or that it will get when it is made; never NULL. Another one once a
     * container was replaced. */
    const char *(*id)(void *context);
    /* Until when it can be named in another request, in seconds since 1970; 0: there is none, or it ends with this
     * request. */
    int64_t (*expires_unix_s)(void *context);
    void *context;
};

struct surface_input {
    const struct json_text *body; /* borrowed for the exchange's life; for open() without control
                                     keys */
    const struct surface_offer *offers;
    size_t offers_count;
    const struct surface_memory *memory;              /* NULL: nothing is remembered */
    const struct surface_store *store;                /* NULL: nothing is stored */
    const struct surface_container_source *container; /* open() only; never NULL there */
    bool asks_for_reasoning; /* the upstream gives encrypted reasoning to those that ask for it */
    const char *answer_id;   /* random text for ids that we mint; open() only */
    bool parallel_off;       /* reserved for upstreams that cannot make parallel calls */
    bool is_translated;      /* it goes to a server of another API, and is read for that too */
    bool usage_last;         /* the client is told the last turn's usage, not the sum */
};

struct surface_turn_options {
    bool stream; /* ask the upstream for a stream */
    bool last;   /* tool choice none: the model shall answer with what it has */
    bool
        remove_tools; /* with `last`: take our tools away instead, for upstreams that ignore tool choice */
};

struct surface_call { /* a call of a tool of ours, in the model's order */
    size_t offer;     /* index into the offers */
    struct str id;    /* the upstream's, or one of ours where it gave none */
    struct str name;
    struct str arguments; /* as text; may be anything at all */
    struct str options; /* what the client asked of the hosted tool, as sg->tool_options() says it;
                             empty: nothing */
};

struct surface_usage { /* -1: not said */
    int64_t input_tokens, output_tokens, total_tokens;
    int64_t cached_tokens;    /* of the input (of Messages: beside it), read from a prompt cache */
    int64_t reasoning_tokens; /* of the output */
};
#define SURFACE_USAGE_NONE ((struct surface_usage){-1, -1, -1, -1, -1})

struct surface_turn { /* what a turn came to */
    const struct surface_call *calls;
    size_t calls_count;
    bool has_client_calls; /* the client's functions are called: the answer ends with this turn */
    bool length;           /* ended by the token limit, or it left nothing of it: nothing is run */
    bool has_text;
    struct surface_usage usage;
};

enum surface_call_status { SURFACE_CALL_COMPLETED, SURFACE_CALL_FAILED, SURFACE_CALL_NOT_RUN };

enum surface_reason { /* why it failed, for surfaces with codes of their own */
                      SURFACE_REASON_NONE,
                      SURFACE_REASON_INVALID,     /* the model's arguments */
                      SURFACE_REASON_TIMEOUT,     /* the run's time limit */
                      SURFACE_REASON_LIMIT,       /* too much at a time, or too often */
                      SURFACE_REASON_UNAVAILABLE, /* the sandbox or service */
                      SURFACE_REASON_NOT_FOUND,   /* a file */
                      SURFACE_REASON_TOO_LONG,    /* the model's arguments, a query above all */
                      SURFACE_REASON_USES         /* the client's own limit of uses is reached */
};

struct surface_output { /* one thing a run showed, in order */
    enum sg_out kind;   /* LOG_OUT, LOG_ERR, RESULT, FILE, HIT, EXCEPTION */
    struct str data;
};

struct surface_result {
    enum surface_call_status status;
    enum surface_reason reason;
    int return_code;         /* of a program; 1 where code raised */
    struct str model_text;   /* what the model is told */
    struct str container_id; /* "cntr_…" or empty */
    const struct surface_output *outputs;
    size_t outputs_count;
};

struct surface_container { /* that the request names */
    struct str id;         /* "cntr_…"; empty: none */
    struct str given; /* as the client wrote it, for the message that there is none of that id */
    bool is_demanded; /* without it the request fails; else it is taken up if it is still there */
};

struct surface_exchange; /* each surface's own */

struct surface {
    const char *name; /* "chat" */
    const char *path; /* "/chat/completions", without the optional /v1 */

    /* True in *ret if the request names a hosted tool of one of the offers (or one is always offered), or its history
     * holds what we made. Refuses what makes an intercepted request impossible: duplicates in tool entries, hosted tools
     * with n > 1. */
    int (*looks_for)(const struct surface_input *, struct arena *, bool *ret, struct sg_error *err);

    /* Does one of the offers answer tools of this type, as this surface writes types? */
    bool (*answers)(const struct surface_offer *, size_t count, struct str type);

    int (*open)(const struct surface_input *, struct arena *, struct surface_exchange **ret,
                struct sg_error *err);
    void (*free)(struct surface_exchange *); /* NULL is fine */
    bool (*wants_stream)(const struct surface_exchange *);
    bool (*runs_nothing)(
        const struct surface_exchange *); /* tool choice none: no tool of ours is run */

    /* The container that the request names, or that its history shows; NULL: this surface names none. */
    struct surface_container (*container)(const struct surface_exchange *);
    /* The most calls of ours that the client allows in this request; NULL: any number. */
    size_t (*calls_max)(const struct surface_exchange *);
    /* Calls that an earlier answer left to be run before the first turn; they get their results as those of a turn do.
     * NULL: there are never any. */
    void (*pending)(struct surface_exchange *, struct surface_turn *ret);

    /* Appends the body of the next turn to `ret`; may be asked again, also with other results for the last turn's calls.
     * SG_E_LIMIT beyond LIMIT_BODY_BYTES, and with reason "token_limit" where the client's token limit is used up: then
     * the answer ends as it is (a turn whose calls no turn could follow says `length` already). */
    int (*turn_request)(struct surface_exchange *, const struct surface_turn_options *,
                        struct buf *ret, struct sg_error *err);

    /* The upstream's 2xx answer begins; `is_stream` by its content type. Forgets a turn that was begun and failed
     * without anything having gone to `out`. */
    void (*turn_begin)(struct surface_exchange *, bool is_stream);
    /* Its bytes, in any pieces. Fails on an error event (the upstream's message; err->status where it names one) and on
     * what cannot be understood (UNAVAILABLE). */
    int (*turn_feed)(struct surface_exchange *, struct str bytes, struct buf *out,
                     struct sg_error *err);
    /* So many bytes of the turn are kept, for its own end or for the turns to come. */
    size_t (*turn_bytes)(const struct surface_exchange *);
    /* True once the answer's own end mark has come: what the upstream sends after it does not matter. */
    bool (*turn_is_done)(const struct surface_exchange *);
    /* Its end: fails with UNAVAILABLE where it came before the turn was whole (a cut stream runs nothing). */
    int (*turn_end)(struct surface_exchange *, struct buf *out, struct surface_turn *ret,
                    struct sg_error *err);

    /* A call of the last turn begins to run and has ended; every call of it gets a result before the next turn. */
    void (*call_begin)(struct surface_exchange *, size_t call, struct str container_id,
                       struct buf *out);
    void (*call_end)(struct surface_exchange *, size_t call, const struct surface_result *,
                     struct buf *out);

    /* Cuts the results of the last turn's calls to so many bytes each, for an upstream that finds them too long; false if
     * none was longer. */
    bool (*results_cut)(struct surface_exchange *, size_t bytes_max);

    /* The answer's end. `closing` is text for an answer that would otherwise have none; may be empty. Without a stream
     * the whole JSON answer. Calls of ours in the last turn are dropped. */
    int (*finish)(struct surface_exchange *, struct str closing, struct buf *out,
                  struct sg_error *err);

    /* Inside a stream that has begun: the error event and the end mark. */
    void (*fail)(struct surface_exchange *, const struct sg_error *, struct buf *out);

    /* The sum over the turns so far, for the log. */
    struct surface_usage (*usage)(const struct surface_exchange *);

    const char *keep_alive; /* written while a tool runs */

    /* An HTTP error's body in this surface's form. `x_should_not_retry` cases carry reason "failed_after_run". */
    void (*error_body)(const struct sg_error *, const char *request_id, struct buf *out);
};

extern const struct surface surface_chat, surface_messages, surface_responses;

/* All surfaces, ended by NULL. */
extern const struct surface *const surfaces[];

/* The surface of a decoded request path, with or without /v1; NULL if it is none. */
const struct surface *surface_of_path(struct str path);

/* The surface of that name; NULL: none, or no name. */
const struct surface *surface_named(const char *name);

#endif
