/* What the operator sees of all containers, and ending them: see registry.h. A tenant's own view is registry_list.c. */
#include "session/internal.h"

#include "base/check.h"
#include "base/identity.h"

static const char *const state_names[] = {[CONTAINER_CREATING] = "creating",
                                          [CONTAINER_READY] = "ready",
                                          [CONTAINER_CLOSING] = "closing",
                                          [CONTAINER_LOST] = "lost"};

/* A key's name stands for all of its users too. */
static bool is_chosen(const struct container *container, struct str identity)
{
    struct str own = str_of(container->identity);
    return identity.len == 0 || str_eq(own, identity) || str_eq(identity_key(own), identity);
}

static struct str copy(struct arena *arena, const char *text)
{
    return text == NULL ? STR("") : str_of(arena_copy(arena, str_of(text)));
}

/* Under the lock. */
static void container_see(const struct container *container, struct arena *arena,
                          struct container_seen *ret)
{
    const struct table *table = container->registry->table;
    struct table_view view = {.expires_ms = DEADLINE_NONE};
    bool is_ready = container->state == CONTAINER_READY;
    (void)table->ops->look(table, &container->ref, &view); /* a lost one is in it no more */
    bool is_idle = is_ready && view.expires_ms != DEADLINE_NONE;
    *ret = (struct container_seen){
        .number = container->ref.fence,
        .identity = copy(arena, container->identity),
        .session_id = copy(arena, container->session_id),
        .container_id = copy(arena, container->id),
        .sandbox = str_of(container->sandbox->name),
        .label = copy(arena, container->label),
        .state = state_names[container->state],
        .is_parked = container->park_ms > 0,
        .leases = is_ready ? container->leases : 0,
        .uses = container->uses,
        .created_unix_s = container->created_unix_s,
        .unused_ms = is_idle ? clock_ms() - container->used_at : -1,
        .idle_left_ms = is_idle ? view.expires_ms - clock_ms() : -1,
    };
}

size_t registry_see(struct registry *registry, const struct container_choice *choice,
                    struct arena *arena, struct container_seen **ret)
{
    struct container_seen *seen = arena_get(arena, (choice->most + 1) * sizeof *seen);
    size_t count = 0;
    registry_lock(registry);
    for (struct list *node = registry->containers.next;
         node != &registry->containers && count < choice->most; node = node->next) {
        const struct container *container = INDEX_OWNER(node, struct container, in_registry);
        if (container->ref.fence > choice->after && is_chosen(container, choice->identity)) {
            container_see(container, arena, &seen[count++]);
        }
    }
    registry_unlock(registry);
    *ret = seen;
    return count;
}

/* Under the lock. Nobody of the identity has asked for it: what is lost is told. */
static bool container_end_for_operator(struct container *container)
{
    bool is_there = container->state == CONTAINER_READY ||
                    (container->state == CONTAINER_CREATING && !container->is_unwanted);
    if (is_there) {
        container_close(container, CLOSE_ENDED, container->is_session && container->is_used);
    }
    return is_there;
}

static size_t end_those(struct registry *registry, struct str container_id, struct str identity)
{
    size_t count = 0;
    registry_lock(registry);
    for (struct list *node = registry->containers.next; node != &registry->containers;) {
        struct container *container = INDEX_OWNER(node, struct container, in_registry);
        node = node->next;
        bool is_meant = container_id.len > 0 ? str_is(container_id, container->id)
                                             : is_chosen(container, identity);
        count += is_meant && container_end_for_operator(container);
    }
    registry_unlock(registry);
    return count;
}

bool registry_end_any(struct registry *registry, struct str container_id)
{
    CHECK(container_id.len > 0);
    return end_those(registry, container_id, (struct str){0}) > 0;
}

size_t registry_end_all(struct registry *registry, struct str identity)
{
    CHECK(identity.len > 0);
    return end_those(registry, (struct str){0}, identity);
}
