/* What a client asks of the hosted search, in one form whatever the API: what a tool reads with sg->tool_options(). Where
 * each value stands in a request is each surface's own. */
#ifndef SANDGATE_SURFACE_SEARCH_OPTIONS_H
#define SANDGATE_SURFACE_SEARCH_OPTIONS_H

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"

struct search_option {
    const char *name;               /* in messages, below the tool's: "filters.allowed_domains" */
    const struct json_value *value; /* NULL: not said; a JSON null is not said either */
};

struct search_asked {
    struct search_option max_uses;         /* a whole number from 1 on */
    struct search_option allowed, blocked; /* arrays of strings; an empty one is not said */
    struct search_option location;         /* an object with country, region, city, timezone */
    struct search_option context_size;     /* "low", "medium", "high" */
    bool either_domains; /* allowed and blocked together are refused, as the hosted tool does */
};

/* As sg->tool_options() says it; empty: nothing is asked. `where` names the tool ("tools[2]") in messages, and may be
 * empty. A value that cannot be heeded is refused (SG_E_INVALID, with its path as param): a filter that is dropped in
 * silence would show what the client did not want. */
int search_options_write(const struct search_asked *, const char *where, struct arena *,
                         struct str *ret, struct sg_error *err);

#endif
