/* Upstreams' states by name and by number: see upstream_state.h. */
#include "gateway/upstream_state.h"

#include "base/check.h"
#include "base/lock.h"

#include <stdlib.h>
#include <string.h>

struct upstream_states {
    struct lock lock; /* of all but what is in a state */
    struct hash by_name;
    struct upstream_state **states;
    size_t count, cap;
};

struct upstream_states *upstream_states_new(void)
{
    struct upstream_states *states = check_alloc(calloc(1, sizeof *states));
    lock_init(&states->lock);
    return states;
}

void upstream_states_free(struct upstream_states *states)
{
    if (states == NULL) {
        return;
    }
    for (size_t i = 0; i < states->count; i++) {
        circuit_destroy(&states->states[i]->circuit);
        model_list_cache_clear(&states->states[i]->models);
        free(states->states[i]);
    }
    free(states->states);
    hash_clear(&states->by_name);
    lock_destroy(&states->lock);
    free(states);
}

/* Under the lock. */
static struct upstream_state *state_find(const struct upstream_states *states, const char *name,
                                         uint64_t hash)
{
    for (struct hash_node *node = hash_first(&states->by_name, hash); node != NULL;
         node = hash_next(node)) {
        struct upstream_state *state = INDEX_OWNER(node, struct upstream_state, by_name);
        if (strcmp(state->name, name) == 0) {
            return state;
        }
    }
    return NULL;
}

/* Under the lock. */
static struct upstream_state *state_new(struct upstream_states *states, const char *name,
                                        uint64_t hash)
{
    size_t bytes = strlen(name) + 1;
    struct upstream_state *state = check_alloc(calloc(1, sizeof *state + bytes));
    if (states->count == states->cap) {
        states->cap = states->cap == 0 ? 16 : 2 * states->cap;
        states->states =
            check_alloc(realloc(states->states, states->cap * sizeof(struct upstream_state *)));
    }
    memcpy(state->name, name, bytes);
    circuit_init(&state->circuit);
    model_list_cache_init(&state->models);
    state->number = states->count;
    states->states[states->count++] = state;
    hash_put(&states->by_name, &state->by_name, hash);
    return state;
}

struct upstream_state *upstream_state_of(struct upstream_states *states, const char *name)
{
    uint64_t hash = hash_bytes(name, strlen(name));
    lock_take(&states->lock);
    struct upstream_state *state = state_find(states, name, hash);
    if (state == NULL) {
        state = state_new(states, name, hash);
    }
    lock_release(&states->lock);
    return state;
}

size_t upstream_states_count(struct upstream_states *states)
{
    lock_take(&states->lock);
    size_t count = states->count;
    lock_release(&states->lock);
    return count;
}

struct upstream_state *upstream_state_at(struct upstream_states *states, size_t number)
{
    lock_take(&states->lock);
    CHECK(number < states->count);
    struct upstream_state *state = states->states[number];
    lock_release(&states->lock);
    return state;
}
