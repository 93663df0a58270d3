/* One request, from its head to its access log line, and the functions that its path goes through. Everything that
 * decides what may happen (identity, active tools, turn, container) lives here, never in the JSON: forging it is
 * impossible by construction. A request is touched by its home loop only. */
#ifndef SANDGATE_GATEWAY_REQUEST_H
#define SANDGATE_GATEWAY_REQUEST_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "gateway/config.h"
#include "gateway/gateway.h"
#include "http/admission.h"
#include "http/fetch.h"
#include "http/server.h"
#include "session/registry.h"

enum route_kind {
    ROUTE_NONE,       /* 404 */
    ROUTE_SURFACE,    /* an API form that interceptors may take part in */
    ROUTE_RELAY,      /* routed by the body's model and passed on */
    ROUTE_RELAY_PATH, /* one of `relay_paths`: passed on as it is, with every method */
    ROUTE_MODELS,
    ROUTE_MODEL, /* one of them */
    ROUTE_SESSIONS,
    ROUTE_SESSION,  /* one of them */
    ROUTE_RESPONSE, /* one that is kept */
    ROUTE_RESPONSE_INPUTS,
    ROUTE_RESPONSE_CANCEL,
    ROUTE_METRICS,
    ROUTE_LIVE,
    ROUTE_READY,
    ROUTE_ADMIN_SESSIONS, /* at the admin address alone, as what follows */
    ROUTE_ADMIN_SESSION,
    ROUTE_ADMIN_PROFILE,
    ROUTE_ADMIN_CONFIG
};

struct route {
    enum route_kind kind;
    const char *allow, *allow_too; /* the methods it takes; NULL: no other */
    const char *surface_name;      /* "chat", "responses", "messages", or NULL */
    const struct surface *surface; /* how an intercepted request is spoken; NULL: relayed only */
    const struct surface *counted; /* whose requests' tokens are counted here; NULL: none */
    bool counts_here;              /* … also where nothing has to be translated */
    const char *path;              /* towards the upstream: without /v1, in the arena */
    const struct upstream *relayed_to; /* of a path of `relay_paths`; of the request's settings */
    const char *object_id;             /* of a response; in the arena */
};

/* A key's limits, or a user's, and what was used of them (limits.c). */
struct limit_level {
    struct quota *quota;
    const struct key_limits *limits;
    bool is_user;      /* the quota is a reference of the request's */
    bool is_in_flight; /* it counts among those that are in progress */
};
enum { LIMIT_LEVELS_MAX = 2 };

struct request_rate { /* that the client is told of; limit 0: nothing */
    int64_t limit, remaining, full_us;
};

struct candidate { /* where a request may go */
    const struct upstream *upstream;
    const struct surface
        *spoken;       /* in which it is asked, where that is not the client's; or NULL */
    const char *model; /* its name there; NULL: the client's */
    bool is_tried;
};

struct request_beginning { /* what another try begins with */
    struct json_text body;
    struct str model, session_id;
};

struct request {
    uint32_t magic;
    struct gateway *gateway;
    struct http_exchange *exchange;
    struct arena *arena;
    char id[4 + RANDOM_ID_BYTES]; /* "req_…" */
    int64_t began_us;
    int64_t deadline, tools_deadline; /* no tool is started after the second */

    struct route route;
    struct settings *settings;  /* a reference, from its authentication on at the latest */
    const struct auth_key *key; /* of the settings; NULL: none was needed */
    struct str identity;        /* the name of the key entry, with the user that it speaks for */
    struct str client_key;      /* in mode passthrough: to be sent up; a secret */
    bool client_key_is_bare;    /* it came in x-api-key */
    struct limit_level levels[LIMIT_LEVELS_MAX];
    size_t levels_count;
    struct request_rate rate;
    struct str origin; /* an allowed Origin, to be answered with CORS headers */

    struct account account;     /* the bytes that it holds */
    size_t transit_bytes;       /* … of them for what is on its way between two connections */
    struct buf body_storage[3]; /* as received; without control keys; as a hook wants it */
    struct json_text body;      /* the text that goes on */
    bool is_json;
    struct str model; /* as the client names it */
    struct candidate *candidates;
    size_t candidates_count;
    struct candidate *next_candidate; /* one has failed, and this one shall be tried; else NULL */
    struct request_beginning beginning;
    const char *asked_model; /* its name at the upstream; NULL: the same */
    const struct upstream *upstream;
    const struct surface
        *spoken; /* in which it is asked, where that is not the client's; or NULL */
    struct str session_id;
    uint64_t streamed_bytes; /* of a body that went up as it came */

    /* The tools that interceptors offer to this request, and what answers each. */
    struct surface_offer *offers;
    struct offered_tool *tools;
    size_t offers_count;
    bool names_tools; /* one of them, so that it cannot be answered without a run (tools_permit) */
    struct hook_state *hooks; /* interceptors that looked at it and want to know of its end */

    struct surface_exchange *talk; /* where interceptors take part */
    struct surface_memory memory;  /* what it is given */
    struct surface_store store;    /* likewise */
    struct held_record *held_records;
    bool has_resumed;        /* the container of the answer that it continues was taken over */
    bool has_lost_container; /* … or has gone, as one that its history shows */
    bool may_have_lost;      /* its session's container is new, its conversation is not */
    bool has_told_loss;      /* … or another loss was told, with the result of a run */
    struct lease *lease;     /* of the container, once code was to be run */
    struct surface_container_source container_source;
    char container_id
        [CONTAINER_ID_BYTES]; /* told to the client before there is a lease; "": none was */
    bool container_is_new;    /* the container is still to be made, under that id */
    unsigned turns, calls_run;
    unsigned tries;                     /* of the upstream's call that is being made */
    unsigned code_runs;                 /* runs of code that were begun */
    bool has_used_container;            /* something ran in it, by this request or before */
    struct str past_left;               /* what past_leave() has written down */
    int64_t leased_us, container_us;    /* since when it has its container; how long it had it */
    struct surface_usage relayed_usage; /* of an answer that was relayed */
    unsigned runs;      /* that were begun: of code, searches, what a tool does by itself */
    unsigned files_put; /* … into the container */
    unsigned searches;  /* that were allowed, cached ones too */
    const struct offered_tool *active_tool; /* whose calls run now … */
    size_t active_calls;                    /* … and how many; several only of one that may */
    bool is_streaming;                      /* head and first bytes have gone to the client */
    bool
        may_begin_stream; /* a turn was good: the head may go, though there is nothing to say yet */
    int64_t spoke_ms;     /* when the streaming client was last written to */
    struct repeat *repeats; /* calls that were run, and what they gave */

    struct str retry_after;                    /* of an upstream that refused */
    struct http_answer_field *upstream_limits; /* of its rates, as the client's API has them */
    size_t upstream_limits_count;
    char cause[ERROR_MESSAGE_BYTES]; /* what the client is not told, for the access log */
    struct sg_error failure;         /* for the access log */
};

#define REQUEST_MAGIC 0x52455153u

/* Of its body, as received. */
static inline uint64_t request_body_bytes(const struct request *r)
{
    return r->body_storage[0].len + r->streamed_bytes;
}

/* From then on a failure must not make the client repeat the request. On its loop, and at any time: a run counts from its
 * beginning. */
static inline bool request_has_run(const struct request *r)
{
    return r->runs > 0 || r->files_put > 0;
}

struct offered_tool { /* beside offers[i] */
    const struct interceptor *interceptor;
    const struct sg_tool *tool;
};

/* request.c: the whole path. */
void request_handle(void *gateway, struct http_exchange *);

/* route.c */
int route_find(struct request *, struct sg_error *err);
int route_upstream(struct request *, struct sg_error *err);
const char *route_methods(struct request *); /* "GET, DELETE": what the path takes */
/* The path of the gateway's own, without /v1, with which a pattern (path_pattern.h) has one in common; NULL: there is none. */
const char *route_own_path(const char *pattern);
bool upstream_speaks(const struct upstream *, const char *surface_name);
bool upstream_serves(const struct upstream *, struct str model);
/* Can it be asked what the client asks at this path, in the client's API or in another (*ret_spoken, else NULL)? */
bool upstream_can_be_asked(struct request *, const struct upstream *,
                           const struct surface **ret_spoken);

/* candidates.c: filled in by one of the first two, once. */
struct named_model;
void candidates_one(struct request *, const struct upstream *, const struct surface *spoken);
void candidates_of_model(struct request *, const struct named_model *); /* may leave none */
void candidate_first(struct request *); /* … is the request's upstream from now on */
/* Behind a failure (err): is there another one that shall be tried? Then it is the request's upstream, all else is as it was
 * behind candidate_first(), and the failure is told and forgotten. */
bool candidate_next(struct request *, struct sg_error *err);

/* relay_paths.c */
/* Is it one of `relay_paths`? Then it is the request's route. `path` is decoded and without /v1. */
int relay_path_find(struct request *, struct str path, bool *ret_found, struct sg_error *err);
int relay_path_serve(struct request *, struct sg_error *err);
extern const char relay_path_methods[]; /* "GET, HEAD, …": those that are passed on */
bool relay_path_takes(struct str method);

/* auth.c */
int authenticate(struct request *, struct sg_error *err);

/* client_key.c: whose key goes up, and who has it, in mode passthrough; in the others the client is known. */
bool upstream_is_open(const struct request *, const struct upstream *);
const char *upstream_key(struct request *, const struct upstream *); /* NULL: none goes up */
/* Where no model that the client names leads there: of several upstreams that take clients' own keys only those that have
 * accepted this one lately. The only one may see any, and so may those that are sent the operator's. */
bool upstream_may_see_key(struct request *, const struct upstream *);
bool upstream_key_is_bare(const struct request *); /* in x-api-key, not in Authorization */
struct str client_account(struct request *);       /* whose share of the memory it takes */
void client_is_at(struct request *, const struct upstream *); /* the identity is that upstream's */
void client_note(struct request *, int status); /* what the upstream answered to the key */
/* May what belongs to the identity be used, and anything be run for it? */
bool client_is_believed(const struct request *);
/* The identities that may be used now: of each upstream that believes the key. */
size_t client_identities(struct request *, const struct str **ret);
int client_unknown(struct sg_error *err); /* 404: there are none */

/* limits.c: of the key and its users. */
/* One more request; 429 where that is over a limit. */
int limits_enter(struct request *, struct sg_error *err);
/* May a call of a tool be run? Takes it, then. */
bool limits_take_run(struct request *);
/* 429 where not even one may be run now. */
int limits_check_runs(struct request *, struct sg_error *err);
/* It is in progress no more. May be called again. */
void limits_leave(struct request *);
/* What the answer's head tells of them, in the client's API; how many fields, three at most. */
struct http_answer_field;
size_t limits_fields(struct request *, struct http_answer_field *);
/* When something will be, in so many microseconds, as OpenAI's fields tell it (6m0s) and as Anthropic's do (RFC 3339). */
const char *limits_duration_text(int64_t in_us, struct arena *);
const char *limits_time_text(int64_t in_us, struct arena *);
/* Do ours stand in the place of this field of an upstream? */
bool limits_replace_field(const struct request *, struct str name);

/* permissions.c: of a key; NULL may use all. */
bool key_allows_model(const struct auth_key *, struct str model);
bool key_allows_kind(const struct auth_key *, struct str kind);
/* Refuses hosted tools that the key may not use; notes whether the request names one that is answered here. */
int tools_permit(struct request *, struct sg_error *err);

/* body.c */
int body_receive(struct request *, struct sg_error *err);
/* One type alone may be told: nobody guesses which is meant. */
int body_check_type(const struct request *, struct sg_error *err);
int body_replace(struct request *, struct buf *text_take, struct sg_error *err);
/* What it was at `beginning`: what replaced it goes. */
void body_restore(struct request *, const struct json_text *beginning);
int body_cut_control_keys(struct request *, bool intercepted, struct sg_error *err);

/* stored.c: does the body name what an upstream keeps, and another tenant may have made? Refused then. */
int stored_check(struct request *, const struct json_text *body, struct sg_error *err);
/* … of the first turn of an intercepted request: what goes up of it. */
int stored_check_turn(struct request *, struct str turn, struct sg_error *err);

/* other_tools.c: hosted tools that nobody here answers, as the upstream's configuration wants it. */
int other_tools_judge(struct request *, struct sg_error *err);
bool tool_type_is_plain(struct str type); /* a function of the client's own */

/* relayed_ids.c */
/* Did the request's upstream give something with this id to the request's identity? */
bool relayed_id_is_own(struct request *, struct str id);
/* The name of the upstream that gave it to the request's identity; empty: none did, or it is not known. */
struct str relayed_id_origin(struct request *, struct str id);

/* hooks.c */
int hooks_run(struct request *, struct sg_error *err);
void hooks_done(struct request *);

/* tools.c */
void tools_offer(struct request *);
/* Begins a call, which goes on by itself. Others of the same offer may be begun before it has ended, where it may be beside
 * them; each must be finished or dropped. */
struct tool_call *tool_start(struct request *, const struct surface_call *);
bool tool_may_be_beside(const struct request *, const struct surface_call *);
/* Waits for its end and tells it. *ret_over where the call counts as over a limit although it was run: it repeats itself. */
int tool_finish(struct tool_call *, size_t index, struct buf *out, bool *ret_over,
                struct sg_error *err);
/* Nobody wants it any more: the first lets go of it, the second also waits for its end. */
void tool_cancel(struct tool_call *);
void tool_drop(struct tool_call *);
/* It is over a limit: not run, and told so. */
void tool_refuse(struct request *, size_t index, struct buf *out);

/* A wait was cancelled although the client is there: the server ends, and the failure says so. */
void request_name_shutdown(struct request *, struct sg_error *err);
/* Its end, as far as other requests notice: before the last bytes of the answer go out, for who has them may ask again at once.
 * `failure` is set where it failed. Called again when all is over, which may have been otherwise than it seemed. */
void request_settle(struct request *);

/* alive.c: a comment to a streaming client, if it has heard nothing for long enough. */
int alive_comment(struct request *, struct sg_error *err);
/* Waits as `wait` does, which ends with SG_E_TIMEOUT at its fiber's deadline and can go on when called again; in between
 * the client is kept alive. */
typedef int alive_waiting(void *context, struct sg_error *err);
int alive_wait(struct request *, alive_waiting *, void *context, struct sg_error *err);

/* repeat.c: notes what a call gave; has it given the same too often? */
bool repeat_is_over(struct request *, const struct surface_call *, struct str result);

/* records.c */
void memory_attach(struct request *);
void memory_end(struct request *);

/* containers.c */
void container_source_attach(struct request *);
/* A lease on the request's container: its session's, or one of its own, made now. Waits. */
int container_take(struct request *, const struct sandbox *, struct sg_error *err);
/* … on the one that the client names, where it does: NOT_FOUND if the identity has none of that id. */
int container_take_named(struct request *, struct sg_error *err);
/* Takes the container over that an earlier answer left waiting, so that it ends with this request or waits on. One that has
 * gone, or that somebody has, leaves a loss to be told with the next result. With a session nothing is touched. */
bool container_resume(struct request *, struct str id);
/* The answer ends with calls for the client: the container waits for the request that brings their results. On chat a
 * record of the answer does that (records.c). */
void container_await_client(struct request *);
/* Has something run in its container, by this request or before? */
bool container_was_used(const struct request *);
/* Gives the container back, if it has one. */
void container_leave(struct request *);

/* past.c: of sessions whose container is new */
struct records *pasts_new(void); /* what is remembered of them, for gateway->pasts */
/* Notes at a session's first request whether something may have run in it before. */
void past_note(const struct request *);
/* May something have run in the session, as far as is known? Not while its first runs are under way. */
bool past_may_have_run(const struct request *);
/* Was a loss told with a request that failed? */
bool past_told_in_vain(const struct request *);
/* Something has run, or a loss was told; before the lease goes. May be called again: the last call says what is true. */
void past_leave(struct request *);

/* relay.c and loop.c: the two ways on. The first passes on what the route says: the body as it stands, or as it comes. */
int relay_serve(struct request *, struct sg_error *err);
int loop_serve(struct request *, struct sg_error *err);
/* count.c: what would go up first is relayed to where its tokens are counted */
int count_serve(struct request *, struct sg_error *err);

/* models.c */
int models_answer(struct request *, struct sg_error *err);
/* Does its library speak Anthropic's API (`anthropic-version`), where the path does not tell? */
bool client_is_anthropics(const struct request *);
/* models_fetch.c: what an upstream says that it serves, kept as its options say. A reference. Waits. */
struct model_list;
int model_list_of(struct request *, const struct upstream *, struct model_list **ret,
                  struct sg_error *err);
/* models_ask.c: the same of several upstreams, side by side. `upstream` is the caller's, the rest is zero before. Waits. */
struct asked_list {
    const struct upstream *upstream;
    struct model_list *list; /* a reference; NULL: there is none */
    int code;                /* how it went … */
    struct sg_error err; /* … in words, where it failed; an older list may be there all the same */
};
void models_ask(struct request *, struct asked_list *, size_t count);

/* sessions.c */
int sessions_answer(struct request *, struct sg_error *err);

/* responses.c */
int responses_answer(struct request *, struct sg_error *err);

/* metrics_answer.c */
int metrics_answer(struct request *, struct sg_error *err);
/* The resident memory of the process; 0: not known. */
uint64_t process_resident_bytes(void);

/* admin.c, admin_profile.c and admin_config.c: what is at the admin address alone. */
int admin_answer(struct request *, struct sg_error *err);
int admin_profile_answer(struct request *, struct sg_error *err);
int admin_config_answer(struct request *, struct sg_error *err);
void request_count(const struct request *, int64_t us);

/* answer.c */
void answer_failure(struct request *, const struct sg_error *);
int answer_json(struct request *, int status, struct str body, struct sg_error *err);
int answer_preflight(struct request *, struct sg_error *err);
int answer_begin_stream(struct request *, struct sg_error *err);
size_t answer_fields(struct request *, struct http_answer_field *fields);
#define ANSWER_LIMITS_MAX 18
#define ANSWER_FIELDS_MAX (12 + ANSWER_LIMITS_MAX)

#endif
