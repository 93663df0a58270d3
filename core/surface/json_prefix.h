/* A JSON object that comes in pieces and may never become one: how far it can still be one, and what would complete it.
 * For arguments that a client reads as JSON while a model writes them. Pure; no memory of its own. */
#ifndef SANDGATE_SURFACE_JSON_PREFIX_H
#define SANDGATE_SURFACE_JSON_PREFIX_H

#include "base/buf.h"

enum { JSON_PREFIX_DEPTH_MAX = 64 };

struct json_prefix {  /* all zero: nothing has come */
    int state;        /* enum prefix_state */
    unsigned depth;   /* objects and arrays that are open */
    uint64_t arrays;  /* which of them are arrays: bit 0 is the outermost */
    bool is_key;      /* the text that is open, or the last one */
    unsigned left;    /* hexadecimal digits of \uXXXX that are to come */
    const char *word; /* what is left of true, false or null */
};

/* The next byte of the text. False: it cannot stand here, or the object has ended; nothing has changed then. */
bool json_prefix_take(struct json_prefix *, char c);

bool json_prefix_has_begun(const struct json_prefix *);
bool json_prefix_has_ended(const struct json_prefix *);

/* Appends what makes an object that has begun whole; nothing if it is. */
void json_prefix_complete(struct json_prefix, struct buf *out);

#endif
