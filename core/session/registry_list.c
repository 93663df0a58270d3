/* What is asked of an identity's sessions by their own ids, outside any request that uses them or before it does. */
#include "session/internal.h"

#include "base/check.h"

#include <stdio.h>

void session_key(struct str identity, struct str session_id, const struct sandbox *sandbox,
                 uint8_t key[TABLE_KEY_BYTES])
{
    struct str parts[] = {identity, session_id, str_of(sandbox->name)};
    sha256_parts(parts, COUNT_OF(parts), key);
}

bool registry_end_session(struct registry *registry, struct str identity, struct str session_id,
                          const struct sandbox *sandbox)
{
    struct table_ask ask = {.identity = identity, .is_session = true}; /* may not create */
    struct table_reply reply;
    session_key(identity, session_id, sandbox, ask.key);
    registry_lock(registry);
    enum table_answer answer = registry->table->ops->acquire(registry->table, &ask, &reply);
    CHECK(answer != TABLE_CREATE);
    bool found = answer != TABLE_FULL;
    if (found) {
        container_close(reply.local, CLOSE_ENDED, false); /* with it a lease that was taken */
    }
    registry_unlock(registry);
    return found;
}

/* Under the lock; it stays as it is, but for its idle time. */
static bool session_id_find(struct registry *registry, const struct table_ask *ask,
                            char ret[CONTAINER_ID_BYTES])
{
    struct table_reply reply;
    enum table_answer answer = registry->table->ops->acquire(registry->table, ask, &reply);
    CHECK(answer != TABLE_CREATE); /* it may not */
    if (answer == TABLE_FULL) {
        return false;
    }
    const struct container *container = reply.local;
    memcpy(ret, container->id, CONTAINER_ID_BYTES);
    if (answer == TABLE_LEASED) {
        CHECK(
            registry->table->ops->release(registry->table, &reply.ref, registry_expiry(registry)));
    }
    return true;
}

void registry_reserve_id(struct registry *registry, struct str identity, struct str session_id,
                         const struct sandbox *sandbox, char ret[CONTAINER_ID_BYTES],
                         bool *ret_is_new)
{
    bool found = false;
    if (session_id.len > 0) {
        struct table_ask ask = {.identity = identity, .is_session = true};
        session_key(identity, session_id, sandbox, ask.key);
        registry_lock(registry);
        found = session_id_find(registry, &ask, ret);
        registry_unlock(registry);
    }
    *ret_is_new = !found;
    if (!found) {
        container_id_make(ret);
    }
}
