/* The mock upstream: what it reads from a request, what it decides, and how an answer is written. The decision knows no
 * API form; each form is one `struct form`. */
#ifndef MOCK_UPSTREAM_H
#define MOCK_UPSTREAM_H

#include "faults.h"
#include "journal.h"
#include "pattern.h"
#include "text.h"

#include <cjson/cJSON.h>

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
    const char *model;
    bool stream, include_usage;
    int64_t tokens_max;     /* -1: no limit */
    struct text user;       /* the last user message's */
    struct text results;    /* of the tool messages at the end, a line break between two */
    bool ends_with_results; /* the last message is a tool's */
    int64_t turn;           /* 1, and one more for each group of tool messages since the user's */
    struct tool tools[TOOLS_MAX];
    size_t tools_count;
    enum choice choice;
    const char *choice_name; /* CHOICE_NAMED */
    size_t request_bytes;
};

void conversation_clear(struct conversation *);

/* ---- an answer, whatever its form ---- */

#define CALLS_MAX 32

struct reply_call {
    struct text name, arguments;
};

struct reply {
    struct text content, reasoning;
    struct reply_call calls[CALLS_MAX];
    size_t calls_count;
    const char *finish; /* NULL: as it is */
    char id[64];
    int64_t created; /* seconds of the epoch */
};

void reply_clear(struct reply *);

/* What a model would do: see README.md. */
void reply_decide(struct reply *, const struct conversation *);
void reply_follow(struct reply *, const struct script_entry *);
/* Cuts it to the client's token limit. */
void reply_limit(struct reply *, int64_t tokens_max);

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
void pieces_clear(struct pieces *);

struct form {
    const char *name; /* the surface */
    /* The conversation borrows from the tree. */
    void (*read)(const cJSON *request, struct conversation *, struct problem *);
    /* What a strict server refuses. */
    void (*check)(const cJSON *request, struct problem *);
    void (*write_json)(const struct reply *, const struct conversation *, struct pieces *);
    /* `chunk`: bytes of text in one event. */
    void (*write_stream)(const struct reply *, const struct conversation *, size_t chunk,
                         struct pieces *);
    void (*write_error)(const struct problem *, int status, struct text *out);
    void (*write_error_event)(const struct problem *, struct pieces *);
};

extern const struct form form_chat;

#endif
