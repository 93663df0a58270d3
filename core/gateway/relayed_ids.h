/* Ids of what an upstream keeps and gave to an identity in relayed answers of /responses: the response's own, its items' and
 * their containers'. Other identities cannot name them. In memory, for as long as other records. */
#ifndef SANDGATE_GATEWAY_RELAYED_IDS_H
#define SANDGATE_GATEWAY_RELAYED_IDS_H

#include "gateway/upstream.h"
#include "surface/turn_stream.h"

struct relayed_ids { /* of one answer */
    struct request *request;
    bool is_on; /* such an answer, of an upstream that several identities share */
    bool is_stream;
    struct turn_stream stream;
    struct buf json;
    struct str *ids;
    size_t count;
    size_t kept; /* the first so many are recorded */
};

void relayed_ids_begin(struct relayed_ids *, const struct upstream_call *);
/* Before the client gets the piece: what a stream tells it is recorded then, since it may come back with it at once. */
void relayed_ids_feed(struct relayed_ids *, struct str piece);
/* The answer is over, in whatever way: what came of it is recorded. */
void relayed_ids_end(struct relayed_ids *);

#endif
