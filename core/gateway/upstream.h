/* One call of an upstream: the same three steps (head, pieces of the body, end) whether it is an HTTP server or a
 * plugin. All waits are of the request's fiber. */
#ifndef SANDGATE_GATEWAY_UPSTREAM_H
#define SANDGATE_GATEWAY_UPSTREAM_H

#include "gateway/request.h"

struct upstream_call {
    struct request *request;
    struct fetch *fetch;    /* an HTTP upstream's */
    struct sg_call *plugin; /* an upstream plugin's */
    struct str held;        /* a plugin's first piece, read for want of a head */
    int64_t began_us;
    int status;
    const struct fetch_field *fields;
    size_t fields_count;
    bool is_stream; /* the answer is server-sent events */
};

/* Sends `body` to the upstream of the request, on its path. */
int upstream_call_begin(struct request *, struct str body, bool intercepted,
                        struct upstream_call *ret, struct sg_error *err);
/* Waits for status and fields. */
int upstream_call_head(struct upstream_call *, struct sg_error *err);
/* Waits for the next piece; an empty one is the orderly end. */
int upstream_call_read(struct upstream_call *, struct str *ret_piece, struct sg_error *err);
/* Ends it wherever it is; a call that was not begun is fine. */
void upstream_call_end(struct upstream_call *);

/* Describes an answer that is not 2xx in the client's terms, from its body; keeps status and Retry-After. */
int upstream_call_failed(struct upstream_call *, struct sg_error *err);

struct str upstream_field(const struct upstream_call *, const char *name);

#endif
