/* What the two halves of reading a responses input share: responses_input.c walks the input, responses_recall.c finds in
 * the store what it refers to, and bounds what that becomes. */
#ifndef SANDGATE_SURFACE_RESPONSES_RECALL_H
#define SANDGATE_SURFACE_RESPONSES_RECALL_H

#include "surface/responses.h"
#include "surface/responses_stored.h"

struct peek { /* what an item says of itself; texts are empty where it does not */
    struct str type, id, role, call_id;
    struct json_value call; /* call_id as it stands; raw is empty: nowhere */
    bool has_role;
    bool is_named_reference; /* a type of it says so, if another does not */
};

struct recall_insert {    /* items that are put into the client's list */
    size_t at, number;    /* which of the client's items they stand at; the order among these */
    bool is_behind;       /* … behind it, else in front */
    bool is_instead;      /* that item goes, as it says the same; nothing else stands there */
    struct str put;       /* with a comma */
    struct str container; /* that a call among them ran in; empty: none */
};

struct recall_inserts { /* sorted, by the time that the list is read */
    struct recall_insert *list;
    size_t count, cap;
    size_t done;
};

struct recalled { /* something of a record, by its id */
    struct str id;
    uint32_t at; /* of the record's data: where its value begins */
    bool is_taken;
};

struct recall_index { /* sorted; made when it is first asked for */
    struct recalled *list;
    size_t count;
    bool is_made;
};

struct known_record { /* one that was read for this request */
    struct known_record *next;
    struct str data;
    struct responses_record record;
    struct recall_index items, calls;
};

struct recalling { /* the input, on its way up */
    struct responses_request *request;
    struct arena *arena;         /* the request's: what goes up */
    struct arena *scratch;       /* what is only looked at */
    struct known_record *record; /* that the item is of; NULL: the client's own */
    struct known_record *known;
    size_t references, calls_found;
    size_t bytes; /* of what the input becomes, so far */
    struct recall_inserts inserts;
};

/* Walks an item to its end. */
struct peek recall_peek(struct json_walk *item, struct arena *);

/* Sorts an index whose `list` is filled; finds the first that has the id; NULL: none. */
void recall_index_sort(struct recall_index *);
struct recalled *recall_index_find(const struct recall_index *, struct str id);

/* What goes up of a call of ours: its id, made of its item's, since upstreams number theirs from one in each turn; the
 * call; its result; and all of it in words, where the tool is not offered. The owner asks for overflow. */
void recall_call_id_put(struct str item_id, struct buf *out);
void recall_call_put(struct str name, struct str call_id, struct str arguments, struct buf *out);
void recall_output_put(struct str call_id, struct str output, struct buf *out);
void recall_text_put(struct str kind, struct str arguments, struct str output, struct buf *out);

/* Counts bytes of what the input becomes; fails where that is more than a request may be. */
int recall_count(struct recalling *, size_t bytes, struct sg_error *err);

bool recall_store_find(const struct responses_request *, struct str id, struct str *ret);
/* The record that is kept under the id, read once for the request; NULL: none. */
struct known_record *recall_record(struct recalling *, struct str id);

/* What a reference stands for; the record that it is of becomes `recalling->record`. */
int recall_reference(struct recalling *, struct str id, struct json_value *ret,
                     struct sg_error *err);

/* What the model was told of a call. */
struct told {
    bool is_there;
    struct str arguments, output;
};
/* … if the item does not show it: an item of a record finds it in that record, the client's own in the one that is kept
 * under its id. Once: where the call stands again, its item is all that is said of it. */
int recall_told(struct recalling *, struct str id, bool has_result, struct told *ret,
                struct sg_error *err);

/* ---- responses_kept.c ---- */

/* Looks through the client's list for answers that were kept, and notes what is to be put into it. Bounded by the record's
 * size, each once, and by a body's. */
int responses_kept_look(struct recalling *, struct json_value list, struct sg_error *err);

/* ---- responses_memory.c: for responses_kept.c ---- */

/* What was kept under the id that a call of the client's was given. */
bool responses_memory_find(const struct responses_request *, struct str call_id, struct str *ret);
/* Of a message of the assistant or reasoning, as a client has it; false: of neither, or of one that says nothing. */
bool responses_seen_hash(struct json_value item, struct arena *, char ret[SHOWN_HASH_BYTES]);
/* A call of a client's function or custom tool; false: it is none. */
bool responses_given_read(struct json_value item, struct arena *, struct shown_call *ret);

#endif
