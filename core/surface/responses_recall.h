/* What the two halves of reading a responses input share: responses_input.c walks the input, responses_recall.c finds in
 * the store what it refers to, and bounds what that becomes. */
#ifndef SANDGATE_SURFACE_RESPONSES_RECALL_H
#define SANDGATE_SURFACE_RESPONSES_RECALL_H

#include "surface/responses.h"
#include "surface/responses_stored.h"

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
};

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

#endif
