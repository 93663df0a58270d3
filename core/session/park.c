/* Parked containers: an ephemeral container whose request ended with calls for the client waits for the request that
 * brings their results. Waiting is a mark on the container: its last release then leaves it idle with a time to live,
 * counted and evicted like any other idle one; whoever takes the mark off has it, so that two cannot. */
#include "session/internal.h"

#include "base/check.h"

void lease_park(struct lease *lease, int64_t park_ms)
{
    CHECK_MAGIC(lease, LEASE_MAGIC);
    CHECK(park_ms >= 0);
    if (lease->is_session) {
        return; /* it stays for longer by itself */
    }
    registry_lock(lease->registry);
    lease->container->park_ms = park_ms;
    registry_unlock(lease->registry);
    if (park_ms > 0) {
        container_touch(lease->container, park_ms + lease->sandbox->run_timeout_ms);
    }
}

struct parked_search {
    struct str container_id;
    struct container *found;
};

static void parked_match(void *context, const struct table_view *view)
{
    struct parked_search *search = context;
    struct container *container = view->local;
    if (view->state == TABLE_READY && str_is(search->container_id, view->container_id) &&
        container->park_ms > 0) {
        search->found = container;
    }
}

bool parked_take(struct registry *registry, struct str identity, struct str container_id)
{
    struct parked_search search = {.container_id = container_id};
    registry->table->ops->list(registry->table, identity, parked_match, &search);
    if (search.found != NULL) {
        search.found->park_ms = 0;
    }
    return search.found != NULL;
}
