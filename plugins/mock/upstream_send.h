/* Between the mock upstream's turn and the bytes that go out: heads, pieces in their time, and what goes wrong on the
 * way. */
#ifndef MOCK_UPSTREAM_SEND_H
#define MOCK_UPSTREAM_SEND_H

#include "upstream.h"

#include <sandgate/plugin.h>

struct sending {
    struct upstream *upstream;
    struct sg_call *call;
    const struct form *form;
    const struct script_entry *entry; /* NULL: none */
    bool stream;                      /* the form of what is sent */
};

int send_error(struct sending *, const struct problem *, int status, struct sg_error *err);

/* The answer's pieces, or what is left of them by the entry's fault. */
int send_answer(struct sending *, const struct answer *, const struct pieces *,
                struct sg_error *err);

/* Until the call is ended. */
int send_nothing(struct sending *, struct sg_error *err);

#endif
