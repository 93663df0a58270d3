/* The query of a request's target: name=value, and more of them behind '&'. */
#ifndef SANDGATE_GATEWAY_QUERY_H
#define SANDGATE_GATEWAY_QUERY_H

#include "base/arena.h"
#include "base/str.h"

/* Calls `take` for each, in order, decoded ('+' and %XX; what is no escape stays) and, in the arena, ended by a NUL. */
void query_walk(struct str query, struct arena *,
                void (*take)(void *context, struct str name, struct str value), void *context);

/* -1: it is no whole number of at least 0. */
int64_t query_number(struct str value);

#endif
