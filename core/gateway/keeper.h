/* What goes on after a restart (`sessions.on_shutdown: keep`): taken up from the state file at the start, written there
 * every so often while serving, and at the end. All functions are for the main fiber. */
#ifndef SANDGATE_GATEWAY_KEEPER_H
#define SANDGATE_GATEWAY_KEEPER_H

#include "gateway/gateway.h"

struct keeper;
struct kept;

/* Once the plugins are open: has the state file from now on, but reads nothing yet. NULL where nothing is kept. */
int keeper_new(struct gateway *, struct keeper **ret, struct sg_error *err);
void keeper_free(struct keeper *); /* NULL is fine, here and below */

/* When nothing can keep the gateway from serving any more, and before it does: takes up what the file has, which is removed
 * then. What is wrong with it is logged, and then there is nothing to take up. */
void keeper_take_up(struct keeper *);
/* Writes changes every so often from now on. */
void keeper_start(struct keeper *);
void keeper_stop(struct keeper *);

/* registry_options.keep; the context is the keeper. */
int keeper_keep(void *keeper, const struct kept *, struct sg_error *err);

#endif
