/* The chat surface's own structs, shared by chat*.c only.
 *
 * Text travels as "inner" text: the bytes between the quotes of a JSON string, as the upstream wrote them. Pieces of it
 * join without decoding (halves of surrogate pairs meet again), and what goes up and down is what came. */
#ifndef SANDGATE_SURFACE_CHAT_H
#define SANDGATE_SURFACE_CHAT_H

#include "surface/citations.h"
#include "surface/openai_choice.h"
#include "surface/reported.h"
#include "surface/shown_calls.h"
#include "surface/turn_stream.h"
#include "surface/usage.h"

enum {
    CHAT_CALLS_MAX = 128, /* tool calls of one turn, ours and the client's */
    CHAT_FIELDS_MAX = 64  /* message fields of one turn that we do not know by name */
};

/* ---- the request ---- */

struct chat_request {
    const struct json_text *body;
    struct tool_set set;
    const struct surface_memory *memory;
    bool resumes; /* it continues an answer of ours, which left something that goes on */
    const struct json_member *messages, *stream, *stream_options;
    const struct json_member *search_options; /* that stand for a hosted tool of ours, or NULL */
    struct json_member *stream_option_members;
    size_t stream_option_count;
    struct tool_choice choice;
    bool wants_stream, include_usage, parallel_off, holds_text;
    bool has_functions;  /* of the old kind: answers may hold `function_call` */
    struct splice edits; /* of messages: what we made in them, as the upstream knows it */
    bool messages_empty;
};

/* ---- a turn ---- */

struct chat_call {
    struct buf id, name;  /* the upstream's, decoded */
    struct buf shown_id;  /* in history and towards the client: that, or one of ours */
    struct buf arguments; /* inner text */
    struct buf extras, function_extras; /* members that we do not know: `,"key":value`… */
    bool not_text;                      /* the arguments came as an object */
    bool custom;                        /* of the client's custom tools: the text is `input` */
    bool has_index, touched;            /* touched: by the chunk that is read */
    int64_t index;                      /* the upstream's */
    unsigned depth;                     /* of the arguments so far: to see where an object ends */
    bool in_string, escaped, complete;

    int offer;              /* when the turn has ended: whose it is; -1: the client's */
    bool dropped;           /* neither run nor shown */
    bool replaced;          /* shown under an id of ours although the upstream gave one */
    bool released;          /* the client has its head */
    size_t client_index;    /* its index towards the client */
    size_t arguments_given; /* bytes of them that the client has */
    struct str history;     /* inner text of its arguments as they go up: a JSON object */

    bool has_result;
    struct buf result; /* what the model is told */
    struct buf run;    /* its entry of `executed_tools`, but for the index; empty if not shown */
};

struct chat_field { /* a field of the message, joined from its pieces */
    struct str key_raw;
    enum json_type
        type; /* JSON_STRING: value is inner text; JSON_ARRAY: elements with commas; else the last one, raw */
    struct buf value;
};

struct
    chat_chunk { /* of the upstream, read; a whole answer has the same form with `message` for `delta` */
    bool is_answer;
    struct json_text text;
    struct json_value choices, choice, delta; /* raw is empty where there is none */
    struct json_member *choice_members, *delta_members;
    size_t choice_count, delta_count;
    bool has_delta;
    bool has_text; /* text or a refusal */
};

struct chat_turn {
    struct arena *arena;
    const struct chat_request *request; /* whose functions have names that may come in pieces */
    bool is_stream, whole, done, has_text;
    bool text_begun;   /* the separator from earlier text is behind us */
    bool text_given;   /* the client has, or will have, its text */
    size_t kept_bytes; /* of the message */
    struct turn_stream stream;
    struct buf json; /* a JSON answer, and what it says: */
    struct chat_chunk answer;
    struct buf text; /* inner text */
    struct chat_field *fields;
    size_t fields_count;
    struct chat_call **calls;
    size_t calls_count, group_first;
    struct buf finish_reason; /* decoded */
    struct buf usage;         /* raw */
    struct buf finish_chunk;  /* raw; the one with the finish reason */
    bool finish_has_text;
    struct buf held;      /* chunks of text that may have to be dropped */
    struct buf assistant; /* the message as it goes up */
    struct surface_call *ours;
    struct chat_call **ours_calls;
    size_t ours_count;
    struct surface_usage used;
};

struct chat {
    uint32_t magic;
    struct arena *arena;
    struct str answer_id;
    bool usage_last; /* the client is told the last turn's */
    struct chat_request request;
    struct chat_turn *turn; /* the one that is read */
    struct chat_turn *last; /* the last whole one */
    size_t turns;           /* whole ones */
    bool call_made;
    struct buf history;            /* messages of the turns before `last`, each behind a comma */
    struct buf id, created, model; /* raw, of the first turn */
    struct buf fingerprint, tier;  /* raw, of the last stream that told them */
    bool role_given,
        text_before;   /* text_before: the client has text of a turn before the one that is read */
    struct buf before; /* inner text that the client got of the turns before `last` */
    size_t client_calls; /* released */
    struct buf usage;    /* the sum, raw */
    struct surface_usage used;
    struct buf runs; /* entries of `executed_tools` of the turns before `last` */
    size_t runs_count;
    struct cited_pages pages;      /* that searches found */
    struct citation_reader reader; /* of the answer's content, once there are some */
    struct buf citations;          /* struct citation */
};

/* ---- chat_request.c ---- */

/* Finds what the client's tools name. Fails on duplicates in entries and on more than LIMIT_TOOLS. */
int chat_tools_read(struct chat_request *, const struct surface_input *, struct arena *,
                    struct sg_error *err);
int chat_request_read(struct chat_request *, struct arena *, struct sg_error *err);
/* ---- chat_body.c ---- */
int chat_turn_request(struct surface_exchange *, const struct surface_turn_options *,
                      struct buf *ret, struct sg_error *err);
bool chat_tokens_spent(const struct chat *);
/* Appends the messages of a turn and its results, each behind a comma. */
void chat_messages_put(const struct chat_turn *, struct buf *out);

/* ---- chat_calls.c ---- */
/* One element of `tool_calls`; `position` within its array. */
int chat_call_take(struct chat_turn *, struct json_value entry, size_t position, bool streamed,
                   struct sg_error *err);
void chat_calls_settle(struct chat *, struct chat_turn *);
void chat_call_free(struct chat_call *);
/* The call as JSON. For the client under its shown id and with its arguments as they are, for the upstream under the id
 * that it knows, and ours with valid arguments. */
void chat_call_put(const struct chat_call *, bool upwards, struct buf *out);
/* Decides the id that is shown: one of ours if the call has none, if another of the turn has the same, or if it is the
 * client's and what goes with it is to be found again. */
void chat_call_identify(const struct chat *, const struct chat_turn *, struct chat_call *,
                        bool is_clients);
struct str chat_call_up_id(const struct chat_call *); /* as the upstream knows it */

/* ---- chat_turn.c ---- */
void chat_turn_free(struct chat_turn *);
void chat_turn_begin(struct surface_exchange *, bool is_stream);
int chat_turn_feed(struct surface_exchange *, struct str bytes, struct buf *out,
                   struct sg_error *err);
int chat_turn_end(struct surface_exchange *, struct buf *out, struct surface_turn *ret,
                  struct sg_error *err);

/* More elements of a list in a streamed message. */
void chat_list_extend(struct chat_turn *, struct str key_raw, struct str elements);

/* ---- chat_cite.c: where the answer names pages that its searches found ---- */
void chat_pages_note(struct chat *, const struct surface_result *);
/* Reads the text of the last whole turn, which the client has behind that of the turns before it. */
void chat_text_cite(struct chat *);
/* The elements of `annotations` for the answer's content; false: there are none. */
bool chat_annotations_put(const struct chat *, struct buf *out);

/* ---- chat_chunk.c: the client's stream ---- */
/* Fails where the text is not JSON, or no object. Other choices than the first are left out of account. */
int chat_chunk_read(struct str data, struct arena *, struct chat_chunk *ret, struct sg_error *err);
void chat_chunk_pass(struct chat *, const struct chat_chunk *, struct arena *, struct buf *out);
void chat_calls_release(struct chat *, bool ended, struct buf *out);
void chat_message_replay(struct chat *, struct buf *out); /* a JSON turn for a streaming client */
void chat_stream_finish(struct chat *, struct str closing, struct buf *out);

/* ---- chat_answer.c: the client's JSON, and what both forms share ---- */
int chat_answer_write(struct chat *, struct str closing, struct buf *out, struct sg_error *err);
const char *chat_finish_reason(const struct chat *);
void chat_identity_note(struct chat *, const struct json_member *, size_t count);
void chat_usage_put(const struct chat *, struct buf *out);
void chat_identity_fill(struct chat *); /* where the upstream gave none */
size_t chat_client_calls(const struct chat_turn *);
/* The inner text of the whole answer's content. */
void chat_content_put(const struct chat *, struct str closing, struct buf *out);

/* ---- chat_history.c ---- */
void chat_call_end(struct surface_exchange *, size_t call, const struct surface_result *,
                   struct buf *out);
/* The last whole turn becomes history, the one that was read is about to take its place. */
void chat_turn_commit(struct chat *);
enum chat_calls_of {
    CHAT_CALLS_CLIENTS, /* as the client gets them */
    CHAT_CALLS_OURS,    /* as they go up */
    CHAT_CALLS_ALL      /* … with the client's; ours that have a result */
};
/* The elements of `tool_calls` that stand. */
void chat_calls_put(const struct chat_turn *, enum chat_calls_of, struct buf *out);
/* The turn's message as it goes up, with these calls. */
void chat_assistant_put(struct chat_turn *, enum chat_calls_of, struct buf *out);
bool chat_results_cut(struct surface_exchange *, size_t bytes_max);
/* The other fields of a streamed message, each behind a comma; without that one (NULL: all). */
void chat_fields_put(const struct chat_turn *, const char *without, struct buf *out);
bool chat_runs_put(const struct chat *,
                   struct buf *out); /* the value of `executed_tools`; false: nothing ran */

/* ---- chat_memory.c: what an answer leaves behind ---- */
/* Keeps what the client's calls need when their results come. Before the end of the answer is written. */
void chat_answer_keep(struct chat *);

/* ---- chat_recall.c: what comes back ---- */
bool chat_history_is_ours(const struct chat_request *);
/* Notes as edits what becomes of what we made: calls and results put back in their place, ids mapped, runs that were
 * shown as pairs or text. */
int chat_messages_read(struct chat_request *, struct arena *, struct sg_error *err);

#define CHAT_MAGIC 0x63686174u /* "chat" */

struct chat *chat_of(struct surface_exchange *);
const struct chat *chat_of_const(const struct surface_exchange *);

#endif
