/* Domains as people list them, and the places of URLs, in one spelling: hosts in ASCII and small letters (UTS 46, by
 * libidn2), paths decoded, without dots and doubled slashes. Two spellings of one place are one then, which a list of what is
 * not wanted depends on. Pure. */
#ifndef SANDGATE_BASE_DOMAIN_H
#define SANDGATE_BASE_DOMAIN_H

#include "base/arena.h"
#include "base/str.h"

enum { DOMAIN_BYTES_MAX = 256, URL_BYTES_MAX = 2048 };

struct place {
    struct str host;
    struct str
        path; /* from its first slash on, without one at its end; empty: the whole host. Of a domain it may hold
                        '*', for any characters */
};

/* An entry of a list: example.com, https://example.com/blog. False where it is none, or longer than DOMAIN_BYTES_MAX. */
bool domain_read(struct str entry, struct arena *, struct place *ret);

/* Of an http or https URL; false where it is none that can be shown, or longer than URL_BYTES_MAX: user info, backslashes,
 * spaces, control characters and odd spellings of addresses make it look like another one. */
bool url_place(struct str url, struct arena *, struct place *ret);

/* Is it that host or a subdomain of it, and under that path? A path holds what begins with its whole segments: /blog also
 * /blog/1, not /blogs. */
bool domain_holds(const struct place *domain, const struct place *place);

#endif
