/* The responses surface's own structs, shared by responses*.c only.
 *
 * A turn's answer is kept as items and their parts, whatever form it came in. What the client has of each is noted beside
 * it, so that the same code passes a stream on as it comes, opens what an upstream forgot to open, replays what was
 * held, and tells a plain answer as a stream.
 *
 * "Inner" text is the bytes between the quotes of a JSON string, as the upstream wrote them: pieces of it join without
 * decoding. `raw` is a JSON value as it came. */
#ifndef SANDGATE_SURFACE_RESPONSES_H
#define SANDGATE_SURFACE_RESPONSES_H

#include "surface/citations.h"
#include "surface/member_stream.h"
#include "surface/openai_choice.h"
#include "surface/reported.h"
#include "surface/shown_calls.h"
#include "surface/turn_stream.h"
#include "surface/usage.h"

enum {
    RESPONSES_ITEMS_MAX = 512,                      /* of a turn */
    RESPONSES_PARTS_MAX = 512,                      /* of an item */
    RESPONSES_ANNOTATIONS_MAX = 4096,               /* of a part */
    RESPONSES_RESULTS_BYTES_MAX = 16 * 1024 * 1024, /* of all runs in one answer */
    RESPONSES_INPUT_ITEMS_MAX = 65536,
    RESPONSES_CHAIN_MAX = 256 /* responses before the one that is asked for */
};

struct responses;
struct responses_shown;

/* ---- the request ---- */

struct responses_input_item {
    struct json_value value; /* the client's own; of a reference what it stands for */
    bool is_reference;
};

struct responses_request {
    const struct json_text *body;
    struct tool_set set;
    const struct surface_store *store;
    const struct surface_memory *memory;
    const struct json_member *input, *stream, *include, *previous;
    struct json_value container; /* of the hosted tool's entry; raw is empty where it has none */
    struct tool_choice choice;
    bool wants_stream, parallel_off, asks_for_reasoning;
    bool holds_text;  /* a JSON format: text may have to be dropped */
    bool keeps;       /* the answer goes into the store */
    size_t calls_max; /* of ours; SIZE_MAX: any number */

    struct responses_input_item *items; /* of `input`, where that is a list */
    size_t items_count;
    struct str before;            /* items of earlier responses, a comma behind each */
    struct splice edits;          /* of `input`: what we made in it, as the upstream knows it */
    bool items_left;              /* does a list hold anything, once edited? */
    struct str history_container; /* of the newest call of ours in all that */
};

/* ---- what the client has ---- */

/* A native shape: how a call of a hosted kind shows on this surface. */
struct responses_kind {
    const char *hosted;     /* "code_interpreter" */
    const char *mark;       /* of its items' ids */
    const char *item_type;  /* "code_interpreter_call" */
    const char *include;    /* the value of `include` that asks for its results */
    const char *member;     /* of the arguments, whose text the item shows */
    const char *unfinished; /* the status of one that was not run, or not to its end */
    /* Below, all but put() and those for a history write events, by the functions of responses_emit.c.
     * The item as it stands. */
    void (*put)(const struct responses_shown *, bool with_results, struct buf *out);
    void (*opened)(struct responses *, struct responses_shown *, struct buf *out);
    /* More of the member's text has come, or all of it. */
    void (*argued)(struct responses *, struct responses_shown *, bool ended, struct buf *out);
    void (*begun)(struct responses *, struct responses_shown *, struct buf *out);
    /* Takes the results (NULL: they are there); tells of the end, but for the item itself. */
    void (*ended)(struct responses *, struct responses_shown *, const struct surface_result *,
                  struct buf *out);
    /* An item of ours in a history as a call: its arguments, and its results as text. These stand where what the model
     * was told is not known; `ret_has_result`: or need not be looked for. */
    void (*recall)(const struct json_member *, size_t count, struct arena *, struct buf *arguments,
                   struct buf *result, bool *ret_has_result);
    /* Such an item as it was, but for the status: container, text and results. */
    void (*load)(const struct json_member *, size_t count, struct arena *, struct responses_shown *,
                 struct str *ret_text);
    /* Such an item for who does not ask for its results. */
    void (*withhold)(const struct json_member *, size_t count, struct buf *out);
    /* The container that such an item names; empty: none. NULL: the kind runs in no container. */
    struct str (*container)(const struct json_member *, size_t count, struct arena *);
};

struct responses_shown { /* an item of the answer, under its index */
    size_t index;
    struct buf id;
    bool is_closed;
    struct buf final; /* the whole item, once closed; not of a call of ours */

    const struct responses_kind *kind; /* of a call of ours; else NULL */
    struct member_stream text;         /* of the kind's member */
    size_t text_given;                 /* bytes of it that the client has */
    bool is_argued;                    /* … and that it was all */
    struct buf container_id;
    struct buf results; /* a JSON list; empty: none yet */
    const char *status;
    struct buf call_id, arguments, model_text; /* for the record */
};

/* ---- a turn ---- */

enum responses_part_kind {
    RESPONSES_TEXT,
    RESPONSES_REFUSAL,
    RESPONSES_REASONING_TEXT,
    RESPONSES_SUMMARY,
    RESPONSES_PART_UNKNOWN
};

struct responses_part {
    enum responses_part_kind kind;
    bool is_summary; /* in the list `summary`, else in `content` */
    int64_t index;   /* the upstream's, within its list */
    size_t shown_index;
    struct buf text;                                   /* inner */
    size_t given;                                      /* bytes of it that the client has */
    struct buf raw;                                    /* as the upstream last gave it whole */
    struct buf annotations;                            /* with commas */
    size_t annotations_count, annotations_theirs;      /* theirs: the upstream's among them */
    size_t annotations_given, annotations_given_bytes; /* that the client has of them */
    struct buf own;                                    /* places of ours among them, as size_t */
    struct citation_reader reader;
    size_t text_read;                   /* bytes of the text that the reader has */
    bool is_read;                       /* … and that it was all */
    bool is_opened, is_told, is_closed; /* towards the client; told: its text's end */
};

enum responses_item_kind {
    RESPONSES_ITEM_UNKNOWN, /* its type has not come */
    RESPONSES_MESSAGE,
    RESPONSES_REASONING,
    RESPONSES_CALL,
    RESPONSES_OTHER /* passed on as it is */
};

struct responses_item {
    enum responses_item_kind kind;
    struct buf id, type; /* the upstream's, decoded */
    bool has_index, is_ended, is_matched;
    int64_t index;
    struct buf raw;   /* as the upstream last gave it; empty: never */
    bool raw_is_last; /* … and that was its end */
    struct responses_part **parts;
    size_t parts_count, contents_opened, summaries_opened;

    struct buf name, call_id; /* of a call */
    struct buf given_id;      /* … the id that the client has for call_id; empty: that itself */
    struct buf arguments;     /* inner */
    size_t arguments_given, arguments_read; /* that the client, or a kind, has of them */
    bool is_told;                           /* the client has their end */
    bool awaits_client;                     /* the client answers it: the response ends with it */
    bool is_decided;                        /* it is known whose it is */
    int offer;                              /* -1: not ours */
    bool is_dropped;                        /* neither run nor shown */
    bool is_hidden;                         /* ours, not shown */
    bool is_held;                           /* the client's, shown at the end */
    struct responses_shown *shown;          /* NULL: not announced */

    struct str settled, history; /* of ours, at the turn's end: what the tool gets, what goes up */
    bool has_result;
    struct buf result; /* what the model is told */
};

struct responses_turn {
    struct arena *arena;
    bool is_stream, is_last, is_whole;
    bool is_released; /* text that was held may be shown */
    size_t kept_bytes;
    struct turn_stream stream;
    struct buf json; /* a plain answer */
    struct responses_item **items;
    size_t items_count;
    bool is_incomplete;
    struct buf incomplete_reason; /* decoded */
    struct buf usage;             /* raw */
    struct surface_call *ours;
    struct responses_item **ours_items;
    size_t ours_count, client_calls;
    struct surface_usage used;
};

#define RESPONSES_MAGIC 0x72657370u /* "resp" */

struct responses {
    uint32_t magic;
    struct arena *arena;
    struct str answer_id;
    bool usage_last; /* the client is told the last turn's */
    struct surface_container_source container;
    struct responses_request request;
    struct responses_turn *turn; /* the one that is read */
    struct responses_turn *last; /* the last whole one */
    size_t turns;                /* whole ones */
    bool call_made, next_is_last;
    size_t results_bytes;     /* of all calls of ours, as the client gets them */
    struct cited_pages pages; /* that searches of this request found */
    size_t cited_bytes;       /* of all citations */
    size_t calls_counted;     /* of ours, against the client's max_tool_calls */
    struct buf history;       /* items of the turns before `last`, each behind a comma */
    struct buf turns_noted; /* these turns as responses_memory.c keeps them, a comma behind each */
    struct responses_shown **shown;
    size_t shown_count, shown_cap, shown_whole; /* whole: of whole turns */
    bool begun, has_said;                       /* said: the client has text */
    int64_t sequence;
    int64_t sequence_silent;         /* of a replay: events below it are counted and not written */
    struct buf created, model, tier; /* raw */
    struct buf usage;                /* the sum, raw */
    struct surface_usage used;
    const char *status;
    struct str incomplete_reason;
    int64_t completed_at;
};

struct responses *responses_of(struct surface_exchange *);
const struct responses *responses_of_const(const struct surface_exchange *);

/* ---- responses_request.c ---- */

void responses_request_init(struct responses_request *, const struct surface_input *,
                            struct arena *);
/* Finds what the client's tools name. Fails on duplicates in entries, on more than LIMIT_TOOLS, and on what no request
 * with hosted tools can ask for. */
int responses_tools_read(struct responses_request *, struct arena *, struct sg_error *err);
int responses_request_read(struct responses_request *, struct arena *, struct sg_error *err);
/* Does the client's `include` have this value? */
bool responses_includes(const struct json_member *include, const char *value);

/* ---- responses_input.c: what comes back ---- */

/* Does the input, or what it refers to, hold something that we made or keep? */
bool responses_input_is_ours(const struct responses_request *, struct arena *);
/* Resolves what earlier responses are needed for, and notes what becomes of the input. */
int responses_input_read(struct responses_request *, struct arena *, struct sg_error *err);

/* ---- responses_body.c ---- */
int responses_turn_request(struct surface_exchange *, const struct surface_turn_options *,
                           struct buf *ret, struct sg_error *err);
bool responses_tokens_spent(const struct responses *);
/* Appends the items of a turn as they go up and the results of its calls, each behind a comma. */
void responses_turn_items_put(const struct responses_turn *, struct buf *out);

/* ---- responses_turn.c ---- */
struct responses_turn *responses_turn_new(void);
void responses_turn_free(struct responses_turn *);
void responses_turn_begin(struct surface_exchange *, bool is_stream);
int responses_turn_feed(struct surface_exchange *, struct str bytes, struct buf *out,
                        struct sg_error *err);
int responses_turn_end(struct surface_exchange *, struct buf *out, struct surface_turn *ret,
                       struct sg_error *err);
/* Counts bytes that the turn keeps, within their bound. */
int responses_keep_bytes(struct responses_turn *, size_t bytes, struct sg_error *err);
/* Appends to something that the turn keeps, likewise. */
int responses_keep(struct responses_turn *, struct buf *to, struct str bytes, struct sg_error *err);

/* ---- responses_event.c: one event of the upstream's stream ---- */
int responses_event_take(struct responses *, struct sse_event, struct arena *, struct buf *out,
                         struct sg_error *err);

/* ---- responses_whole.c: the answer's end ---- */
/* The response object of an answer's end: its status, its items, its usage. */
int responses_whole_take(struct responses *, struct json_value response, struct arena *,
                         struct buf *out, struct sg_error *err);

/* ---- responses_event.c, for its parts ---- */
/* Gives what has come of the item. */
void responses_item_advance(struct responses *, struct responses_item *, struct buf *out);
/* Is it one of this type, or one whose type has not come? */
bool responses_type_fits(const struct responses_item *, struct str type);
struct responses_item *responses_item_make(struct responses *, struct str id, const int64_t *index,
                                           struct str type, struct sg_error *err);

/* ---- responses_item.c: items and their parts, put together ---- */
struct responses_item *responses_item_add(struct responses_turn *, struct sg_error *err);
void responses_item_free(struct responses_item *);
void responses_item_set_type(struct responses_item *, struct str type);
/* The part at a place of one of the item's lists, made where there is none. NULL beyond RESPONSES_PARTS_MAX. */
struct responses_part *responses_part_get(struct responses_item *, bool is_summary, int64_t index,
                                          enum responses_part_kind);
/* What the upstream says of an item: when it opens it, when it closes it (`is_last`), or in a whole answer. */
int responses_item_take(struct responses *, struct responses_item *, struct json_value object,
                        bool is_last, struct arena *, struct sg_error *err);
int responses_part_take(struct responses *, struct responses_item *, struct responses_part *,
                        struct json_value object, struct arena *, struct sg_error *err);
/* The type of an item, as we take it. */
struct str responses_type_of(const struct responses *, const struct json_member *, size_t count,
                             struct arena *);
/* The item, for the upstream or for the client; `status` where it has none of its own. */
void responses_item_put(const struct responses_item *, bool upwards, const char *status,
                        struct buf *out);
enum responses_view {
    RESPONSES_OPENING, /* for the client, before anything of it has come */
    RESPONSES_SHOWN,   /* for the client */
    RESPONSES_UPWARDS  /* as the upstream gave it */
};
void responses_part_put(const struct responses_part *, enum responses_view, struct buf *out);
bool responses_item_has_text(const struct responses_item *);
struct str responses_call_shown_id(const struct responses_item *); /* that the client has */
bool responses_reasoning_says(const struct responses_item *);      /* does it carry anything? */

struct responses_part_form { /* how a kind of part is written */
    const char *type, *text_key, *list, *index_key;
    const char *delta, *done, *added, *closed; /* its events */
};
extern const struct responses_part_form responses_part_forms[];

/* ---- responses_text.c: inner text ---- */
struct str responses_inner_text(struct str inner, struct arena *arena); /* decoded */
/* What has come behind the first `*read` bytes, decoded. The first half of a pair waits for the second, until it `ended`. */
struct str responses_inner_next(const struct buf *inner, size_t *read, bool ended, struct arena *);
/* The whole text of a part, once more or at last: what is new in it is added. */
int responses_text_complete(struct responses *, struct buf *text, struct json_value whole,
                            struct arena *, struct sg_error *err);

/* ---- responses_annotations.c: what is noted at a text ---- */
/* One more annotation of the upstream's in a part, which may hold so many. */
int responses_annotation_keep(struct responses *, struct responses_part *, struct str annotation,
                              struct sg_error *err);
/* All of the upstream's, where the whole part has more than have come one by one. */
int responses_annotations_take(struct responses *, struct responses_part *, struct json_value list,
                               struct sg_error *err);
/* Adds what is cited in the text that has come; `ended`: no more of it comes. */
void responses_citations_read(struct responses *, struct responses_part *, bool ended);
/* As a JSON list; `upwards`: without ours. */
void responses_annotations_put(const struct responses_part *, bool upwards, struct buf *out);

/* ---- responses_show.c: items on their way to the client ---- */
/* Announces the item as soon as it may be; false: not yet, or never. */
bool responses_item_open(struct responses *, struct responses_item *, struct buf *out);
/* Gives what the client does not have of an item that is announced. */
void responses_item_flush(struct responses *, struct responses_item *, struct buf *out);
bool responses_part_open(struct responses *, struct responses_item *, struct responses_part *,
                         struct buf *out);
/* Gives what the client does not have of it; `ended`: its text is whole. */
void responses_part_flush(struct responses *, struct responses_item *, struct responses_part *,
                          bool ended, struct buf *out);
/* The same of what is noted at its text, all of which the client has. */
void responses_annotations_flush(struct responses *, const struct responses_item *,
                                 struct responses_part *, bool ended, struct buf *out);
void responses_part_close(struct responses *, struct responses_item *, struct responses_part *,
                          struct buf *out);
/* Closes what is open of the item and the item itself; opens it if need be. */
void responses_item_close(struct responses *, struct responses_item *, const char *status,
                          struct buf *out);
struct responses_shown *responses_shown_add(struct responses *);
void responses_shown_free(struct responses_shown *);
/* Is this id one that another item of the answer, or of an earlier one, has? */
bool responses_id_is_taken(const struct responses *, struct str id);
void responses_id_mint(struct buf *out, const char *mark);

/* ---- responses_calls.c: calls of functions ---- */
/* As soon as the name is known: whose is it, is it shown, is it held? */
void responses_call_decide(struct responses *, struct responses_item *);
/* The same for other items that the client answers. */
bool responses_is_held(const struct responses *, const struct responses_item *);
void responses_calls_settle(struct responses *, struct responses_turn *);
void responses_call_begin(struct surface_exchange *, size_t call, struct str container_id,
                          struct buf *out);
void responses_call_end(struct surface_exchange *, size_t call, const struct surface_result *,
                        struct buf *out);
bool responses_results_cut(struct surface_exchange *, size_t bytes_max);
/* What there is of a call of ours so far, if it is shown; `ended`: its arguments are all there. */
void responses_hosted_show(struct responses *, struct responses_item *, bool ended,
                           struct buf *out);
/* Announces it. */
void responses_hosted_announce(struct responses *, struct responses_shown *, struct buf *out);
/* The item of a call of ours, closed with this status; NULL: it is unfinished. */
void responses_hosted_close(struct responses *, struct responses_shown *, const char *status,
                            struct buf *out);

/* ---- responses_kinds.c ---- */
extern const struct responses_kind *const responses_kinds[]; /* ended by NULL */
extern const struct responses_kind responses_web_search;     /* responses_search.c */
const struct responses_kind *responses_kind_of_hosted(struct str hosted);
const struct responses_kind *responses_kind_of_type(struct str item_type);
/* Of an item in a history that we made; NULL: it is none. */
const struct responses_kind *responses_kind_of_item(struct str type, struct str id);

/* What shapes share. Text as JSON, behind `before`. */
void responses_text_put(struct buf *out, const char *before, struct str text);
/* Results that would make the answer too large to be given at all are left out of it: `instead` stands for them. The model
 * was told what it is told. */
void responses_results_bound(struct responses *, struct responses_shown *, struct str instead);

/* ---- responses_emit.c: events for the client ---- */
struct responses_member {
    const char *key;
    struct str value; /* raw; empty: the member goes */
};
/* An object with these members set or added; the others stay as they are. */
void responses_object_put(const struct json_member *, size_t count,
                          const struct responses_member *puts, size_t puts_count, struct buf *out);
/* An event of ours; `shown` NULL: of no item. Writes nothing where the client wants no stream. */
void responses_event_put(struct responses *, const char *type, const struct responses_shown *shown,
                         const struct responses_member *, size_t count, struct buf *out);
/* The upstream's event, with its number, its item and `puts` set. */
void responses_event_pass(struct responses *, const char *type, const struct json_text *event,
                          const struct responses_shown *shown, const struct responses_member *puts,
                          size_t count, struct buf *out);
/* As JSON text, of inner text. */
void responses_quote(struct str inner, struct buf *out);

/* ---- responses_answer.c: the response around the items ---- */
void responses_begin(struct responses *, struct buf *out);
void responses_identity_note(struct responses *, const struct json_member *, size_t count);
enum responses_results {                          /* of calls of ours, in a response object */
                         RESPONSES_RESULTS_ASKED, /* those that the client asks for */
                         RESPONSES_RESULTS_ALL,
                         RESPONSES_RESULTS_NONE
};
void responses_object_write(const struct responses *, enum responses_results, struct buf *out);
int responses_finish(struct surface_exchange *, struct str closing, struct buf *out,
                     struct sg_error *err);
void responses_fail(struct surface_exchange *, const struct sg_error *, struct buf *out);

/* ---- responses_memory.c: what it leaves for a client that keeps no items of ours ---- */
/* Gives a call of the client's an id of ours, if what goes with it is to be found again. */
void responses_call_give(const struct responses *, struct responses_item *);
/* Has the id the form of one that was given so? */
bool responses_call_is_given(struct str id);
/* What the upstream calls it: its own id, where the given one carries that; else the id as it is. */
struct str responses_call_up_id(struct str id);
/* Notes the last whole turn, before another takes its place. */
void responses_memory_note(struct responses *);
/* Keeps the answer under the ids that were given. Before its end is written. */
void responses_memory_keep(const struct responses *);

/* ---- responses_record.c: what an answer leaves behind (responses_stored.h) ---- */
void responses_answer_keep(struct responses *);

#endif
