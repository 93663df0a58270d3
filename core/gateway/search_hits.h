/* What a search's hits go through before anybody sees them, whatever the provider did: each is brought into one form, and
 * those without a usable URL, of domains that the client did not want, or that came before are dropped. Pure. */
#ifndef SANDGATE_GATEWAY_SEARCH_HITS_H
#define SANDGATE_GATEWAY_SEARCH_HITS_H

#include "base/arena.h"
#include "base/buf.h"
#include "sandgate/plugin.h"

enum hit_fate {
    HIT_PASSED,
    HIT_MALFORMED, /* not a JSON object with a URL as it must be */
    HIT_FILTERED,  /* of a domain that is not wanted */
    HIT_DUPLICATE, /* its URL was there before */
    HIT_SURPLUS,   /* more than were asked for */
    HIT_FATES
};

enum { HITS_MAX = 50 }; /* of one search, where it wants no fewer */

struct hits {
    const struct sg_query *query; /* borrowed */
    struct arena *arena;          /* borrowed, of the URLs */
    struct buf lines;             /* those that passed, each ended by a line break */
    struct str urls[HITS_MAX];
    struct domains *domains; /* of the query, read at the first hit */
    size_t counts[HIT_FATES];
};

/* Takes what a provider emitted. A hit that passes is written anew: {"title": "…", "url": "…", "snippet": "…", "date": "…"
 * or null}, bounded, without control characters and characters that nobody sees. */
enum hit_fate hits_take(struct hits *, struct str json);

/* The next hit of such lines, and *rest behind it; false at the end. */
bool hits_next(struct str *rest, struct str *ret);

#endif
