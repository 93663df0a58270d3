/* What the process knows of an upstream by its name, whatever becomes of the settings that name it (settings.h): one that
 * is gone and comes back finds its own again. */
#ifndef SANDGATE_GATEWAY_UPSTREAM_STATE_H
#define SANDGATE_GATEWAY_UPSTREAM_STATE_H

#include "gateway/circuit.h"
#include "gateway/model_list.h"
#include "session/index.h"

struct upstream_state {
    size_t number; /* from 0, in the order in which names were first seen; never another's */
    struct hash_node by_name;
    struct circuit circuit;
    struct model_list_cache models;
    char name[];
};

struct upstream_states;
struct upstream_states *upstream_states_new(void);
void upstream_states_free(struct upstream_states *); /* NULL is fine */

/* The state of that name, made if there is none; it lives as long as all of them. How many there are is what operators
 * write into their files, nothing of a client's. Any thread. */
struct upstream_state *upstream_state_of(struct upstream_states *, const char *name);
size_t upstream_states_count(struct upstream_states *);
/* number < count */
struct upstream_state *upstream_state_at(struct upstream_states *, size_t number);

#endif
