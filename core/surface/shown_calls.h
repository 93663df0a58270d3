/* What a client has of an answer that called its functions, as a hash: does what comes back stand for it still? */
#ifndef SANDGATE_SURFACE_SHOWN_CALLS_H
#define SANDGATE_SURFACE_SHOWN_CALLS_H

#include "base/arena.h"

/* The mark of the ids that we give to calls of the client's functions. */
#define SHOWN_CALL_MARK "call_sg"

struct shown_call { /* as the client has it */
    struct str id, name, arguments;
};

#define SHOWN_HASH_BYTES 65 /* hexadecimal digits and a NUL */

/* Of a text and calls as the client has them; arguments that mean the same count as the same. */
void shown_hash(struct str text, const struct shown_call *, size_t count, struct arena *,
                char ret[SHOWN_HASH_BYTES]);

#endif
