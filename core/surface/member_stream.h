/* The text of one member of a JSON object that comes in pieces: the code of a call while the model writes it. Lenient, as
 * what a model writes may be anything at all: what cannot be understood adds nothing. */
#ifndef SANDGATE_SURFACE_MEMBER_STREAM_H
#define SANDGATE_SURFACE_MEMBER_STREAM_H

#include "base/buf.h"

enum { MEMBER_NAME_BYTES = 32 }; /* of a key that is compared; a longer one is another */

struct member_stream {
    const char *name; /* of the member; the first of that name counts */
    struct buf text;  /* decoded so far: whole characters; lone surrogates as U+FFFD */

    int state;      /* enum member_state */
    unsigned depth; /* within another member's value */
    char key[MEMBER_NAME_BYTES];
    size_t key_len;
    bool is_wanted, is_found, in_string, is_escaped;
    unsigned hex_left; /* digits of \uXXXX that are to come */
    uint32_t hex;
    uint32_t high; /* the first half of a pair, waiting for the second; 0: none */
};

void member_stream_init(struct member_stream *, const char *name);
void member_stream_clear(struct member_stream *);

/* The next bytes of the object's text, UTF-8, in any pieces between characters. */
void member_stream_feed(struct member_stream *, struct str);
/* There is no more: half a pair becomes U+FFFD. */
void member_stream_end(struct member_stream *);

#endif
