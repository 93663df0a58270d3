/* One call of an upstream: the same three steps (head, pieces of the body, end) whether it is an HTTP server or a
 * plugin. All waits are of the request's fiber. */
#ifndef SANDGATE_GATEWAY_UPSTREAM_H
#define SANDGATE_GATEWAY_UPSTREAM_H

#include "gateway/request.h"
#include "surface/model_name.h"

struct upstream_call {
    struct request *request;
    struct fetch *fetch;    /* an HTTP upstream's */
    struct sg_call *plugin; /* an upstream plugin's */
    struct str
        held; /* the first piece: a plugin's, read for want of a head, or one that was waited for */
    int64_t began_us;
    int64_t silent_until; /* a plugin's next word must come before */
    int status;
    const struct fetch_field *fields;
    size_t fields_count;
    bool is_stream;                      /* the answer is server-sent events */
    bool has_head;                       /* a plugin's: it has been read */
    bool is_broken;                      /* the connection failed: refused, reset, cut off */
    bool is_unsent;                      /* … before anything of the request was sent */
    struct translation *translation;     /* of an upstream that speaks another API; NULL: none */
    struct buf translated;               /* the request in that API; */
    struct buf answer;                   /* a piece of the answer in the client's */
    size_t translated_bytes, kept_bytes; /* of it, and of the answer, on the account */
    bool answer_begun, answer_ended;     /* of a translated answer: the translation's */
    struct sg_error failed; /* … how it failed behind the piece that was given last */
    struct buf renamed;     /* the request under the upstream's name for the model, */
    size_t renamed_bytes;   /* … on the account */
    bool is_renamed;        /* the answer gets the client's name for it: */
    struct model_name name;
    struct str name_json;
    struct buf renamed_answer; /* a piece of it */
};

/* Sends `body` to the upstream of the request, on its path. */
int upstream_call_begin(struct request *, struct str body, bool intercepted,
                        struct upstream_call *ret, struct sg_error *err);
/* Sends the request's own method, and its body, if it has one, as it comes; that is what the second does, until all is sent or the
 * upstream wants no more of it. */
int upstream_call_begin_streamed(struct request *, struct upstream_call *ret, struct sg_error *err);
int upstream_call_pump(struct upstream_call *, struct sg_error *err);
/* Waits for status and fields. */
int upstream_call_head(struct upstream_call *, struct sg_error *err);
/* Waits for the first piece, which the next reading gives: what fails before it has not yet begun an answer. */
int upstream_call_hold(struct upstream_call *, struct sg_error *err);
/* Waits for the next piece; an empty one is the orderly end. */
int upstream_call_read(struct upstream_call *, struct str *ret_piece, struct sg_error *err);
/* Reads on for so long at most, up to the end or until `into` is full (NULL: what comes is not needed). */
void upstream_call_rest(struct upstream_call *, int64_t ms_max, struct buf *into);
/* The answer is whole: gives its transfer a moment to end in good order, so that the connection can serve again. An
 * upstream that keeps it open does not keep the client waiting. */
void upstream_call_drain(struct upstream_call *);
/* upstream_translated.c: what lies between a client's API and the upstream's. The first gives the body that goes up. */
int translated_begin(struct upstream_call *, struct str *body, struct sg_error *err);
void translated_head(struct upstream_call *);
/* Reads pieces by `read` until there is something to say in the client's API. */
int translated_read(struct upstream_call *,
                    int (*read)(struct upstream_call *, struct str *, struct sg_error *),
                    struct str *ret_piece, struct sg_error *err);
/* An error of the upstream's, where it is one of another API: its field becomes the client's. */
void translated_failed(const struct upstream_call *, struct sg_error *err);
void translated_end(struct upstream_call *);

/* upstream_renamed.c: the two names of a model. The first gives the body that goes up; the second is told the answer's head, the
 * third each piece as it comes from the upstream. */
int renamed_begin(struct upstream_call *, struct str *body, struct sg_error *err);
void renamed_head(struct upstream_call *);
struct str renamed_piece(struct upstream_call *, struct str piece);
/* The upstream's name in words, a refusal's, becomes the client's. */
void renamed_words(const struct request *, struct buf *text);
void renamed_failed(const struct request *, struct sg_error *err);
void renamed_end(struct upstream_call *);

/* upstream_health.c: how a call of the request's upstream went. */
void upstream_answered(const struct request *, int status);
void upstream_failed(const struct request *, const struct sg_error *);
/* Does this status speak of the upstream, rather than of the request? */
bool status_is_the_upstreams(const struct request *, int status);

/* Ends it wherever it is; a call that was not begun is fine. */
void upstream_call_end(struct upstream_call *);

/* upstream_refused.c. Describes an answer that is not 2xx in the client's terms, from its body; keeps status and Retry-After. */
int upstream_call_failed(struct upstream_call *, struct sg_error *err);

/* The answer shows the operator's key: the client is told 502 in general terms. */
int upstream_credentials_shown(struct upstream_call *, struct sg_error *err);
/* An answer with 2xx ended in this failure, which may be told in the upstream's words: not if they show that key. */
int upstream_turn_failed(struct upstream_call *, struct sg_error *err);

/* upstream_fields.c: what goes up beside the body; in the request's arena. */
const struct fetch_field *upstream_fields(struct request *, bool intercepted, size_t *ret_count);
const char *upstream_url(struct request *);

/* upstream_way.c */
bool upstream_sets_field(const struct upstream *, struct str name); /* of the operator's headers */
/* Does the text hold a secret that goes up: the operator's key, or the value of one of his headers? */
bool upstream_secret_in(const struct upstream *, struct str text);

/* Is this a header of the client that no upstream gets, whatever the configuration says? */
bool field_never_goes_up(struct str name);

/* upstream_limits.c: what it says of its rate limits goes with the client's answer. */
void upstream_limits_keep(const struct upstream_call *);

struct str upstream_field(const struct upstream_call *, const char *name);

/* retry.c: after a failure of the call. How long to wait before it is tried again; -1: it would not help, or not within
 * the request's time. */
int64_t retry_delay(const struct upstream_call *, const struct sg_error *);
/* May this failure pass by itself? */
bool failure_may_pass(const struct upstream_call *, const struct sg_error *);
/* Waits so long, says so in the log, and forgets the failure. */
int retry_wait(struct request *, int64_t delay_ms, struct sg_error *err);
/* What retry-after-ms and retry-after (seconds or a date) ask for; -1: nothing that can be understood. */
int64_t retry_after_ms(struct str ms_field, struct str field);

/* candidates.c: behind a failure of the call. True where another candidate shall be tried instead, and may: nothing has gone to
 * the client, and nothing was run. It is noted, and whoever asks comes back to candidate_next() with the failure. */
bool fallback_begin(const struct upstream_call *, const struct sg_error *);

/* context.c */
bool error_says_context_full(const struct sg_error *);

#endif
