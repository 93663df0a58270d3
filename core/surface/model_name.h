/* Another model's name in an answer: the client asked for a name that its model server does not know, and shall read that name
 * where the server has written its own. Replaced as the bytes pass, without keeping any: the text that is the value of "model"
 * in the answer's object, or in the object under "response" or "message" there, as events of Responses and Messages have it.
 * Everything else stays as it is, byte for byte. Pure. */
#ifndef SANDGATE_SURFACE_MODEL_NAME_H
#define SANDGATE_SURFACE_MODEL_NAME_H

#include "base/buf.h"

struct model_name {
    struct str name_json; /* what stands there instead, with its quotes */
    bool is_stream;       /* server-sent events: each one's data is such an object */

    /* Of a stream: the line. */
    size_t field_len; /* bytes of the line that are "data:" so far */
    bool in_data, is_line_other, is_line_empty, is_behind_cr;

    /* Of the object. */
    unsigned depth;
    bool in_string, is_escaped, is_key, awaits_value, is_cut;
    bool is_list;   /* what is outermost is an array */
    bool is_inner;  /* the object at depth 2 is one of those that are looked into */
    size_t key_len; /* of the last key where keys matter; more than fits: another one */
    char key[9];
};

/* `name_json` is borrowed. */
void model_name_init(struct model_name *, struct str name_json, bool is_stream);
/* The next bytes, in any pieces; appends what they become. */
void model_name_feed(struct model_name *, struct str bytes, struct buf *out);

#endif
