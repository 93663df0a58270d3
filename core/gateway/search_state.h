/* How often may be searched, and what searches of a process share: answers that were good and are new enough to be given again, and when an identity
 * searched last. Everything is kept by identity: hits are public, but that somebody has asked before shows in how fast an
 * answer comes. In memory, any thread; times are the caller's (clock_ms()). */
#ifndef SANDGATE_GATEWAY_SEARCH_STATE_H
#define SANDGATE_GATEWAY_SEARCH_STATE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"

#include <stdint.h>

#define SEARCH_PER_MINUTE_MAX 10000

/* The most searches that the client allows in a request, from what sg->tool_options() gives; -1: it says nothing. */
int64_t search_client_max(const char *options, struct arena *);
/* May a request search once more that has done so `begun` times? SG_E_LIMIT with the limit that is in the way: the client's
 * (-1: none), with reason "max_uses", or the operator's (0: none). */
int search_is_allowed(int64_t begun, int64_t theirs, int64_t ours, struct sg_error *err);

struct search_state;

struct search_state *search_state_new(void);
void search_state_free(struct search_state *); /* NULL is fine */

/* May the identity search now, by the search of that number? 0: yes, and it is counted; else the milliseconds until it may:
 * `per_minute` were begun within the last 60 s. Identities are names of the configuration, and so is the memory bounded. */
int64_t search_rate_take(struct search_state *, size_t search, struct str identity,
                         size_t per_minute, int64_t now_ms);
/* How many it is kept of: not many more than have asked within a minute. */
size_t search_rate_known(struct search_state *);

/* Appends what was kept under the key less than `life_ms` ago; false: nothing. */
bool search_cache_find(struct search_state *, struct str identity, struct str key, int64_t life_ms,
                       int64_t now_ms, struct buf *ret);
/* Bounded in bytes (an entry, an identity's, all), and as an entry has some hundred bytes of its own, in number; the least
 * recently used go first. */
void search_cache_keep(struct search_state *, struct str identity, struct str key, struct str data,
                       int64_t now_ms);

#endif
