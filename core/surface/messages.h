/* The messages surface's own structs, shared by messages*.c only.
 *
 * An answer is a row of content blocks. A block is the same struct whether the upstream streams it or not, and is shown
 * to the client in the form that the client wants (messages_show.c): event by event, or whole. Strings that grow piece by
 * piece are kept as "inner" text: the bytes between the quotes, as the upstream wrote them. */
#ifndef SANDGATE_SURFACE_MESSAGES_H
#define SANDGATE_SURFACE_MESSAGES_H

#include "surface/citations.h"
#include "surface/json_prefix.h"
#include "surface/messages_kinds.h"
#include "surface/reported.h"
#include "surface/turn_stream.h"
#include "surface/usage.h"

enum {
    MESSAGES_BLOCKS_MAX = 4096, /* of one turn */
    MESSAGES_PAST_CALLS_MAX =
        1024, /* calls and results of one message of the history that we look at */
    MESSAGES_IDENTITY_BYTES = 1024 /* of an id, a model's name */
};

#define MESSAGES_MARK "srvtoolu_sg"
#define MESSAGES_ID_BYTES (sizeof MESSAGES_MARK + 32)

/* ---- the request ---- */

enum messages_force {
    MESSAGES_AUTO, /* also a choice that is absent */
    MESSAGES_ANY,
    MESSAGES_OURS,   /* our function */
    MESSAGES_CLIENT, /* the client's */
    MESSAGES_NONE
};

struct messages_choice {
    const struct json_member *member; /* of the body, or NULL */
    struct json_member *members;      /* of the choice, where it is an object */
    size_t count;
    enum messages_force force;
    size_t offer; /* of MESSAGES_OURS */
};

struct messages_request {
    const struct json_text *body;
    struct tool_set set;
    const struct json_member *messages, *stream, *container_member;
    struct messages_choice choice;
    bool wants_stream, parallel_off, holds_text;
    struct surface_container container;
    const struct json_member *max_tokens;
    struct json_value budget; /* of thinking, which max_tokens must exceed; raw is empty: none */
    struct splice edits;      /* of messages: what we made in them, as the upstream knows it */
    bool messages_empty;
    struct surface_call *pending; /* calls that wait for their results at the end of the history */
    struct str *pending_shown;    /* their ids as the client knows them */
    size_t pending_count;
    struct str pending_before; /* results that stand before theirs in one message */
    struct cited_pages pages;  /* that earlier answers found */
};

/* ---- a turn ---- */

enum messages_block_kind {
    MESSAGES_TEXT,
    MESSAGES_THINKING,
    MESSAGES_TOOL_USE,
    MESSAGES_INPUT, /* other calls: the vendor's own tools */
    MESSAGES_OTHER
};

/* What grows in a block. */
enum messages_piece {
    MESSAGES_PIECE_CITATION,
    MESSAGES_PIECE_TEXT,
    MESSAGES_PIECE_THINKING,
    MESSAGES_PIECE_SIGNATURE,
    MESSAGES_PIECE_INPUT,
    MESSAGES_PIECES
};

/* Follows a call's arguments: what of them the client gets. */
struct messages_input {
    bool begun, is_broken; /* what the model wrote is no JSON from here on */
    struct json_prefix prefix;
};

struct messages_block {
    enum messages_block_kind kind;
    struct str original;               /* the whole block as it came, if it came so; the turn's */
    struct buf raw;                    /* the block with all that grows taken out */
    struct buf grown[MESSAGES_PIECES]; /* inner text; of citations the elements, with commas */
    size_t given[MESSAGES_PIECES];     /* bytes of it that the client has */
    bool input_came_whole;             /* … with the start of the block; pieces would win */
    struct messages_input input;
    bool has_index, complete;
    int64_t index; /* the upstream's */

    bool held;    /* until the end of the turn */
    bool waits;   /* until results of ours stand before it */
    bool hidden;  /* not for the client */
    bool dropped; /* for nobody */
    enum { MESSAGES_UNSEEN, MESSAGES_OPEN, MESSAGES_CLOSED } seen;
    size_t client_index;

    struct buf id, name;                /* of a call, decoded */
    int offer;                          /* whose it is; -1: the client's */
    const struct messages_kind *native; /* NULL: it has no form of the client's */
    char shown_id[MESSAGES_ID_BYTES];   /* of a call of ours */
    struct str arguments, history;      /* of ours: what the tool gets, and what goes up */
    bool has_result;
    struct buf result; /* what the model is told */

    struct citation_reader reader; /* of a text: what was read for citations of ours, … */
    size_t cited_at;               /* … up to this byte of the inner text */
    struct buf cited;              /* those found: elements, with commas … */
    struct buf pages;              /* … and their pages, as pointers */
};

struct messages_turn {
    struct arena *arena;
    bool is_stream, whole, done, text_held, text_given, has_ours;
    size_t kept_bytes;
    struct turn_stream stream;
    struct buf json; /* a JSON answer, and what it says: */
    struct json_text answer;
    struct messages_block **blocks;
    size_t blocks_count, blocks_cap;
    size_t show_from;         /* blocks before it are behind us, or wait for the end */
    struct buf stop_reason;   /* decoded */
    struct buf stop_sequence; /* raw */
    struct buf usage;         /* raw */
    struct buf end_event;     /* raw: message_delta with the stop reason */
    struct surface_call *ours;
    struct messages_block **our_blocks;
    size_t ours_count;
    struct buf assistant;      /* its message, behind a comma; empty: the client's body has it */
    struct str results_before; /* of the client's body, in one message with its own */
    struct surface_usage used;
};

struct messages {
    uint32_t magic;
    struct arena *arena;
    struct str answer_id;
    bool usage_last;
    const struct surface_container_source *container; /* NULL: none is shown */
    const struct surface_memory *memory;              /* NULL: nothing is remembered */
    char last_run[MESSAGES_ID_BYTES]; /* the id of the newest call that ran; "": none did */
    struct messages_request request;
    struct messages_turn *turn; /* the one that is read */
    struct messages_turn *last; /* the last whole one */
    size_t turns;               /* whole ones */
    bool call_made, start_given, ran;
    bool changed; /* the content is not just what the upstream said */
    bool has_text;
    struct buf history;   /* messages of the turns before `last`, each behind a comma */
    struct buf id, model; /* raw, of the first turn */
    struct buf content;   /* of a JSON answer: blocks with commas */
    size_t blocks_given;  /* begun at the client */
    size_t searches;      /* that found something, or found that there is nothing */
    struct cited_pages pages;
    size_t citations; /* of ours */
    struct buf usage; /* the sum, raw */
    struct surface_usage used;
};

#define MESSAGES_MAGIC 0x6D657367u /* "mesg" */
struct messages *messages_of(struct surface_exchange *);
const struct messages *messages_of_const(const struct surface_exchange *);

/* ---- messages_request.c ---- */
int messages_tools_read(struct messages_request *, const struct surface_input *, struct arena *,
                        struct sg_error *err);
int messages_request_read(struct messages_request *, struct arena *, struct sg_error *err);

/* ---- messages_choice.c ---- */
bool messages_choice_refuses(const struct json_member *choice); /* {"type":"none"} */
int messages_choice_read(struct messages_request *, struct arena *, struct sg_error *err);
void messages_choice_edit(struct body_edit *, const struct messages_request *,
                          const struct surface_turn_options *, bool call_made);

/* ---- messages_history.c ---- */
bool messages_history_is_ours(const struct messages_request *);
/* Notes as edits what becomes of blocks that we made, and what is to be run first. */
int messages_history_read(struct messages_request *, struct arena *, struct sg_error *err);
/* The id of the newest call of ours that it shows; empty: none. */
struct str messages_history_newest(const struct messages_request *);

/* ---- messages_body.c ---- */
int messages_turn_request(struct surface_exchange *, const struct surface_turn_options *,
                          struct buf *ret, struct sg_error *err);
bool messages_tokens_spent(const struct messages *);
/* The last whole turn becomes history, the one that was read takes its place. */
void messages_turn_commit(struct messages *);
void messages_result_put(struct str id, struct str text, struct str cache_control, struct buf *out);

/* ---- messages_block.c: one block, in pieces and whole ---- */
/* From content_block_start, or a whole block; NULL where it is not understood. */
struct messages_block *messages_block_new(struct json_value, bool is_whole, struct arena *,
                                          struct sg_error *err);
void messages_block_free(struct messages_block *);
/* Adds what a delta says; *ret_known: it is of a kind that we know. False: it does not fit the block. */
bool messages_block_grow(struct messages_block *, const struct json_member *delta, size_t count,
                         struct arena *, bool *ret_known);
/* The delta of so much inner text (of a citation: the element). */
void messages_delta_put(enum messages_piece, struct str more, struct buf *out);
/* The whole block, with an object as the input of a call; under this id, if it is not empty. */
void messages_block_put(const struct messages_block *, struct str id, struct arena *,
                        struct buf *out);
/* Decoded, in the arena. */
struct str messages_inner_text(struct str inner, struct arena *);
/* The arguments of a call, as text. */
struct str messages_block_input(const struct messages_block *, struct arena *);
bool messages_block_says(const struct messages_block *); /* text other than white space */
/* The part of the next piece of arguments (inner text) that the client gets: from the brace that opens their object to
 * the one that closes it. Of a call of ours no more than can still become JSON, since clients that read it as such would
 * end there; of a call of the client's, what the model wrote. */
struct str messages_input_next(struct messages_input *, bool is_ours, struct str piece);

/* ---- messages_turn.c ---- */
void messages_turn_free(struct messages_turn *);
struct messages_turn *messages_turn_new(bool is_stream);
void messages_turn_begin(struct surface_exchange *, bool is_stream);
int messages_turn_feed(struct surface_exchange *, struct str bytes, struct buf *out,
                       struct sg_error *err);
int messages_turn_end(struct surface_exchange *, struct buf *out, struct surface_turn *ret,
                      struct sg_error *err);

/* ---- messages_blocks.c: the blocks of a turn ---- */
/* A block begins, or came whole; what may be shown of it is not shown yet. */
int messages_block_take(struct messages *, struct json_value, const struct json_member *index,
                        bool is_whole, struct sg_error *err);
/* The block that a delta or stop means; NULL: none that goes on. */
struct messages_block *messages_block_find(const struct messages_turn *,
                                           const struct json_member *index);
/* At the turn's end: whose is each call and does it stand; lists ours. */
void messages_calls_settle(struct messages *, struct messages_turn *);
size_t messages_client_calls(const struct messages_turn *); /* that stand */

/* ---- messages_show.c: what the client sees of blocks ---- */
/* Shows what may be shown by now. To clients of JSON only at the turn's end. */
void messages_show(struct messages *, struct messages_turn *, struct buf *out);
/* The calls of the client's that waited for the results of ours. */
void messages_show_waiting(struct messages *, struct buf *out);
/* A whole block that we wrote. */
void messages_show_own(struct messages *, struct str block, struct buf *out);
void messages_show_text(struct messages *, struct str text, struct buf *out);
/* The upstream's delta of a block, which has been added to it. */
void messages_show_delta(struct messages *, struct messages_block *, const struct json_text *event,
                         bool is_known, struct arena *, struct buf *out);
void messages_event_begin(const char *type, struct buf *out); /* up to `{"type":TYPE` */
void messages_delta_event_put(size_t index, enum messages_piece, struct str more, struct buf *out);

/* ---- messages_cite.c ---- */
/* Reads on in a text that the client has; says what it cites to streams. `ended`: no more of it comes. */
void messages_cite(struct messages *, struct messages_block *, bool ended, struct buf *out);
/* The block with these citations behind its own; always with a list of them. */
void messages_citations_put(struct str block, struct str cited, struct arena *, struct buf *out);
/* May there be citations of ours in this JSON? */
bool messages_holds_citation(struct str raw);
/* A block without citations of ours; itself where it has none. */
struct str messages_citations_cut(struct json_value block, struct arena *);

/* ---- messages_answer.c: the frame around the blocks ---- */
void messages_identity_note(struct messages *, const struct json_member *, size_t count);
/* message_start, once. `event`: the upstream's, or NULL. */
void messages_start_give(struct messages *, const struct json_text *event, struct arena *,
                         struct buf *out);
void messages_call_begin(struct surface_exchange *, size_t call, struct str container_id,
                         struct buf *out);
void messages_call_end(struct surface_exchange *, size_t call, const struct surface_result *,
                       struct buf *out);
bool messages_results_cut(struct surface_exchange *, size_t bytes_max);
int messages_finish(struct surface_exchange *, struct str closing, struct buf *out,
                    struct sg_error *err);

/* ---- messages_error.c ---- */
void messages_error_body(const struct sg_error *, const char *request_id, struct buf *out);
void messages_fail(struct surface_exchange *, const struct sg_error *, struct buf *out);
int messages_reported(const struct json_text *, bool is_error_event, struct arena *,
                      struct sg_error *err);

#endif
