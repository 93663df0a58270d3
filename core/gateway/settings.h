/* What may change while the gateway serves. Settings are counted by references and never changed once they are in force:
 * others take their place. Whoever reads of them holds a reference: a request from its authentication to its end. */
#ifndef SANDGATE_GATEWAY_SETTINGS_H
#define SANDGATE_GATEWAY_SETTINGS_H

#include "base/lock.h"
#include "gateway/changes.h"
#include "gateway/keys.h"

#include <stdatomic.h>

struct http_tls;
struct quotas;
struct named_model;
struct upstream;
struct upstream_states;

struct settings {
    uint32_t magic;
    atomic_uint refs;
    struct arena *arena;                      /* all that it points to */
    int64_t read_unix_ms;                     /* when its files were */
    const struct conf_node *root, *keys_file; /* what they hold; NULL: there is no keys_file */
    struct changes pending;                   /* of the file, without effect until a restart */
    struct key_set keys;
    struct upstream *upstreams; /* in the order of the file */
    size_t upstreams_count;
    struct http_tls *tls;       /* a reference; NULL: none */
    struct named_model *models; /* likewise; found by named_model_find() */
    size_t models_count;
    struct hash models_by_name;
    struct quotas *quotas; /* whose the keys' quotas are; NULL: never in force */
};

struct settings *settings_new(void); /* empty, with one reference */
struct settings *settings_ref(struct settings *);
void settings_unref(struct settings *); /* any thread; NULL is fine */

/* The settings in force. Any thread. */
struct settings_place {
    struct lock lock; /* of the pointer; for as long as it takes to count a reference */
    struct settings *now;
};
void settings_place_init(struct settings_place *);
struct settings *settings_take(struct settings_place *); /* a reference; NULL: none are in force */
/* Puts them in force, with what the names of their keys and upstreams have or get. Those before are let go of. */
void settings_put_in_force(struct settings_place *, struct settings *settings_take, struct quotas *,
                           struct upstream_states *);
/* None any more. */
void settings_place_clear(struct settings_place *);

#endif
