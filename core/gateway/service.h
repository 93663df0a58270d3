/* What the services that plugins may ask for (host.c, search.c) share: whose call it is, and what is told of a failure. */
#ifndef SANDGATE_GATEWAY_SERVICE_H
#define SANDGATE_GATEWAY_SERVICE_H

#include "gateway/request.h"

/* What the model, and so the client, is told of a failure. Of a run a plugin's own words are passed on, if they say how
 * the code ended. */
struct failure_texts {
    bool tells_ends, tells_limits, tells_files;
    const char *limit, *timeout, *other; /* where they are not */
};

/* The request in one of whose tool calls a plugin asks. */
int service_request(struct sg_call *, struct request **ret, struct sg_error *err);

/* The operator gets the cause. The model gets what it can use: how its code ended; but no hosts, statuses, settings or
 * names of what is behind. Returns the code. */
int service_report(struct request *, const struct instance *, const char *operation,
                   const struct failure_texts *, struct sg_error *err);

/* search.c: sg->search(). */
int service_search(struct sg_call *, const struct sg_query *, const struct sg_sink *,
                   struct sg_error *err);

#endif
