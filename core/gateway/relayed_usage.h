/* The token counts in an answer that is relayed, read beside its way to the client. Only its first and last bytes are looked at: the
 * APIs put their counts there, and the cost of a relayed byte stays what it was. */
#ifndef SANDGATE_GATEWAY_RELAYED_USAGE_H
#define SANDGATE_GATEWAY_RELAYED_USAGE_H

#include "gateway/upstream.h"

enum {
    RELAYED_HEAD_BYTES = 2048, /* Messages say the input's tokens in the first event of a stream */
    RELAYED_TAIL_BYTES = 8192,
};

struct relayed_usage { /* of one answer */
    bool is_on;
    const struct usage_names *names;
    char *head; /* of a stream of Messages; NULL: none is kept */
    size_t head_len;
    char *tail; /* the last bytes; up to twice as many while it goes on */
    size_t tail_len;
};

void relayed_usage_begin(struct relayed_usage *, const struct upstream_call *);
void relayed_usage_feed(struct relayed_usage *, struct str piece);
/* Into the request what was said; what was not stays unknown. */
void relayed_usage_end(const struct relayed_usage *, struct request *);

/* The last object under "usage" in a piece of JSON or of events that may begin and end anywhere; false: there is none. Pure. */
bool usage_find_last(struct str text, struct str *ret);

#endif
