/* The mock upstream: what it reads from a request, what it decides, and how an answer is written. The decision knows no
 * API form; each form is one `struct form`. */
#ifndef MOCK_UPSTREAM_H
#define MOCK_UPSTREAM_H

#include "faults.h"
#include "journal.h"
#include "json.h"
#include "pattern.h"
#include "text.h"

struct script_entry {
    const char *when; /* first: see patterns_new() */
    int64_t turn, status, times, delay, chunk_delay;
    const char *text, *call, *arguments, *reasoning, *finish, *retry_after, *fault, *raw;
    const char *const *calls; /* "name ARGUMENTS" */
    struct sg_map headers;
};

struct upstream_config {
    struct sg_list script;
    int64_t delay, chunk_delay, chunk;
    bool strict;
    const char *journal;
};

struct upstream {
    const struct upstream_config *config;
    struct pattern *patterns;
    atomic_llong *entries_used;
    atomic_llong answers; /* for ids */
    struct journal journal;
};

/* ---- a request, whatever its form ---- */

enum choice { CHOICE_AUTO, CHOICE_NONE, CHOICE_REQUIRED, CHOICE_NAMED };

struct tool { /* borrowed from the request's tree */
    const char *name;
    const cJSON *parameters;
    bool allowed; /* by a list of allowed tools; true without one */
};

#define TOOLS_MAX 128

struct conversation {
    const cJSON *request; /* borrowed; an object */
    const char *model;
    bool stream, include_usage;
    int64_t tokens_max;     /* -1: no limit */
    struct text user;       /* the last user message's */
    struct text results;    /* of the tools' results at the end, a line break between two */
    bool ends_with_results; /* what stands last is a tool's result */
    int64_t turn;           /* 1, and one more for each group of results since the user's message */
    struct tool tools[TOOLS_MAX];
    size_t tools_count;
    enum choice choice;
    const char *choice_name; /* CHOICE_NAMED */
    size_t request_bytes;
};

void conversation_clear(struct conversation *);

/* What the readers of all forms tell, in the order of the request. */
void conversation_user(struct conversation *,
                       const cJSON *content); /* a string, or parts with a text each */
void conversation_result(struct conversation *, const cJSON *content); /* likewise */
void conversation_other(struct conversation *); /* anything else stands between */
void conversation_tool(struct conversation *, const cJSON *name, const cJSON *parameters);
void conversation_allow_none(
    struct conversation *); /* of the tools so far, but those that follow */
void conversation_allow(struct conversation *, const cJSON *name);
void conversation_limit(struct conversation *,
                        const cJSON *tokens_max); /* ignored if it is no number */

/* ---- an answer, whatever its form ---- */

#define CALLS_MAX 32

struct reply_call {
    struct text name, arguments;
};

struct reply {
    struct text content, reasoning;
    struct reply_call calls[CALLS_MAX];
    size_t calls_count;
    bool cut;           /* by the client's token limit */
    const char *finish; /* given, in the words of chat or those of the form; NULL: as it is */
    long long number;   /* of the answers of this instance, for ids */
    int64_t created;    /* seconds of the epoch */
};

void reply_clear(struct reply *);

/* What a model would do: see README.md. */
void reply_decide(struct reply *, const struct conversation *);
void reply_follow(struct reply *, const struct script_entry *);
/* Cuts it to the client's token limit. */
void reply_limit(struct reply *, int64_t tokens_max);

struct reply_usage { /* a token is four bytes */
    size_t input, output, reasoning;
};

struct reply_usage reply_usage(const struct reply *, const struct conversation *);

struct problem { /* a refusal; message.len is 0 without one */
    struct text message;
    char param[160];
    const char *code; /* a literal */
};

void problem_set(struct problem *, const char *param, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Pieces that go out one by one. */
struct pieces {
    struct text bytes;
    struct text ends; /* size_t, one a piece */
};

void pieces_end(struct pieces *); /* what was appended since the last one is a piece */
size_t pieces_count(const struct pieces *);
void pieces_clear(struct pieces *);

/* Bytes of the next piece of a text from `at` on: about `chunk`, and at least one character. */
size_t piece_length(const struct text *, size_t at, size_t chunk);

struct answer { /* what a writer writes */
    const struct reply *reply;
    const struct conversation *conversation;
    size_t chunk; /* bytes of text in one event */
};

struct form {
    const char *name; /* the surface */
    /* The conversation borrows from the tree. */
    void (*read)(struct conversation *, struct problem *);
    /* What a strict server refuses. */
    void (*check)(const cJSON *request, struct problem *);
    void (*write_json)(const struct answer *, struct pieces *);
    void (*write_stream)(const struct answer *, struct pieces *); /* a piece is an event */
    void (*write_error)(const struct problem *, int status, struct text *out);
    /* After so many events of the answer's stream. */
    void (*write_error_event)(const struct answer *, size_t events, const struct problem *,
                              struct pieces *);
    /* Of an answer that has text only: so many events come before the first piece of text … */
    size_t opening_events;
    /* … and this is one, as the stream's event of that number. */
    void (*write_text_event)(const struct answer *, size_t number, const struct text *,
                             struct text *out);
    const char *json_up_to_text; /* how a plain answer begins, up to within its text */
};

extern const struct form form_chat, form_responses, form_messages;

#endif
