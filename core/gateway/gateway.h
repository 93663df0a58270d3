/* The gateway as a whole: what every request of the process shares. */
#ifndef SANDGATE_GATEWAY_GATEWAY_H
#define SANDGATE_GATEWAY_GATEWAY_H

#include "base/error.h"
#include "gateway/accounting.h"
#include "gateway/config.h"
#include "gateway/listen.h"
#include "loop/worker.h"

#include <stdatomic.h>

struct gateway {
    struct config *config;
    struct settings_place settings; /* those in force */
    struct quotas *quotas;
    struct upstream_states *upstream_states;
    struct passthrough *passthrough;
    struct registry *registry;
    struct keeper *keeper;     /* of what goes on after a restart; NULL: nothing does */
    struct records *records;   /* what answers leave for the requests that continue them */
    struct records *responses; /* stored answers */
    struct records *relayed;   /* ids that upstreams gave away */
    struct records *pasts;     /* of sessions: may something have run in them? (past.c) */
    struct search_state *searches;
    struct http_server *server;
    struct worker_pool *pool;
    struct loop **loops;
    size_t loops_count;
    atomic_bool is_draining;
    atomic_bool
        admin_by_key; /* a key for the admin address was in force: without one it is closed */
    atomic_llong reload_failed_unix_ms; /* since the settings in force were read; 0: none has */
    struct metrics *metrics;            /* NULL: nothing is counted */
    struct accounting accounting;
    struct listen listen; /* where it serves */
};

/* serve.c: serving, from the configuration to the exit code. */
int gateway_serve(struct config *);
/* reload.c. In a fiber: reads again what may change while the gateway serves, and puts it in force, whole or not at all; the
 * log says which. Waits. */
void gateway_reload(struct gateway *);
/* The registry as the configuration wants it, over the gateway's loops. */
int gateway_make_registry(struct gateway *, struct sg_error *err);

/* host.c and search.c: what plugins may ask of the gateway. */
const struct core_services *gateway_services(void);

#endif
