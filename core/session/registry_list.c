/* What an identity may do with its sessions by their own ids, outside any request that uses them. */
#include "session/internal.h"

#include "base/check.h"

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
