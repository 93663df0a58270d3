/* Models with names of the operator's own (`models:`): each stands for entries, a model of an upstream each, among which every
 * request chooses. Of settings (settings.h), and never changed once they are in force. */
#ifndef SANDGATE_GATEWAY_NAMED_MODEL_H
#define SANDGATE_GATEWAY_NAMED_MODEL_H

#include "gateway/config.h"

enum { NAMED_MODEL_ENTRIES_MAX = 32, NAMED_MODEL_WEIGHT_MAX = 100, NAMED_MODEL_NAME_BYTES = 128 };

struct model_entry {
    const struct upstream *upstream;
    const char *model; /* its name there */
    unsigned weight;   /* of an entry of `to`: 1 to NAMED_MODEL_WEIGHT_MAX */
};

struct named_model {
    const char *name;
    struct model_entry
        entries[NAMED_MODEL_ENTRIES_MAX]; /* those of `to` before those of `fallback` */
    size_t to_count, count;
    bool is_sticky;
    uint8_t
        *schedule; /* places of entries of `to`, each as often as its weight says, and spread out */
    size_t schedule_count;
    atomic_uint ticket;            /* the next request's place in the schedule */
    const struct conf_node *entry; /* as it is written */
    struct hash_node by_name;
};

/* Fills in the schedule from the weights. At least one entry of `to` is there. */
void named_model_schedule(struct named_model *, struct arena *);

/* In which order a request tries the entries, by a ticket of its own or one that many requests have in common: first that
 * whose turn it is, then the others of `to` as they follow in the schedule, then those of `fallback` as they are written.
 * Fills `count` places. */
void named_model_order(const struct named_model *, unsigned ticket,
                       uint8_t ret[NAMED_MODEL_ENTRIES_MAX]);

/* NULL: there is none of that name. */
const struct named_model *named_model_find(const struct settings *, struct str name);

#endif
