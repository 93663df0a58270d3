/* What a search's hits go through before anybody sees them, whatever the provider did: each is brought into one form, and
 * those without a usable URL, of domains that the client did not want, or that came before are dropped. Pure. */
#ifndef SANDGATE_GATEWAY_SEARCH_HITS_H
#define SANDGATE_GATEWAY_SEARCH_HITS_H

#include "base/arena.h"
#include "base/buf.h"
#include "sandgate/plugin.h"

/* An entry of a list of domains, as clients write it: example.com, https://example.com/blog. */
struct domain {
    struct str host; /* empty: it is none, and holds nothing */
    struct str path; /* from the slash on, without one at its end; may hold '*'; empty: all */
};
struct domain domain_read(const char *entry);

/* Is the URL (http or https) of that host or a subdomain of it, and under that path? A path holds what begins with its
 * whole segments: /blog also /blog/1 and /blog?p=1, not /blogs. '*' stands for any characters. */
bool domain_holds(const struct domain *, struct str url);

/* Splits an http or https URL; false where it is none that can be shown: user info, backslashes, spaces and control
 * characters make it look like another one. The path goes up to '?' or '#' and may be empty. */
bool url_split(struct str url, struct str *ret_host, struct str *ret_path);

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
    size_t counts[HIT_FATES];
};

/* Takes what a provider emitted. A hit that passes is written anew: {"title": "…", "url": "…", "snippet": "…", "date": "…"
 * or null}, bounded, without control characters and characters that nobody sees. */
enum hit_fate hits_take(struct hits *, struct str json);

/* The next hit of such lines, and *rest behind it; false at the end. */
bool hits_next(struct str *rest, struct str *ret);

#endif
