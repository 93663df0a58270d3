/* The parameters behind a path's '?'. Pure. */
#ifndef SANDGATE_GATEWAY_QUERY_H
#define SANDGATE_GATEWAY_QUERY_H

#include "base/arena.h"

/* Each parameter in its order, decoded, in the arena and ended by a NUL that is not counted; "" for a value that is not there. */
void query_each(struct str query, struct arena *,
                void (*take)(void *ctx, struct str name, struct str value), void *ctx);

#endif
