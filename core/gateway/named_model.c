/* Which entry of a named model is whose turn: see named_model.h.
 *
 * The schedule is that of smooth weighted round robin: in every round each entry gains its weight, and the one that has most is
 * chosen and pays all weights. So the shares are exact after one round, and the chosen ones lie apart. A ticket, counted by one
 * atomic addition, is a place in it: no lock, and the same choice for the same ticket wherever it is made. */
#include "gateway/named_model.h"

#include "base/check.h"

#include <string.h>

static unsigned common_divisor(unsigned a, unsigned b)
{
    while (b != 0) {
        unsigned rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static size_t richest(const int *wealth, size_t count)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++) {
        best = wealth[i] > wealth[best] ? i : best;
    }
    return best;
}

void named_model_schedule(struct named_model *model, struct arena *arena)
{
    int weights[NAMED_MODEL_ENTRIES_MAX], wealth[NAMED_MODEL_ENTRIES_MAX] = {0};
    unsigned divisor = 0;
    int total = 0;
    CHECK(model->to_count > 0 && model->to_count <= NAMED_MODEL_ENTRIES_MAX);
    for (size_t i = 0; i < model->to_count; i++) {
        divisor = common_divisor(model->entries[i].weight, divisor);
    }
    for (size_t i = 0; i < model->to_count; i++) {
        weights[i] = (int)(model->entries[i].weight / divisor);
        total += weights[i];
    }
    model->schedule_count = (size_t)total;
    model->schedule = arena_get(arena, model->schedule_count);
    for (size_t at = 0; at < model->schedule_count; at++) {
        for (size_t i = 0; i < model->to_count; i++) {
            wealth[i] += weights[i];
        }
        size_t chosen = richest(wealth, model->to_count);
        wealth[chosen] -= total;
        model->schedule[at] = (uint8_t)chosen;
    }
}

void named_model_order(const struct named_model *model, unsigned ticket,
                       uint8_t ret[NAMED_MODEL_ENTRIES_MAX])
{
    bool is_in[NAMED_MODEL_ENTRIES_MAX] = {false};
    size_t count = 0;
    for (size_t step = 0; count < model->to_count && step < model->schedule_count; step++) {
        uint8_t place = model->schedule[(ticket + step) % model->schedule_count];
        if (!is_in[place]) {
            is_in[place] = true;
            ret[count++] = place;
        }
    }
    CHECK(count == model->to_count);
    for (; count < model->count; count++) {
        ret[count] = (uint8_t)count;
    }
}

const struct named_model *named_model_find(const struct settings *settings, struct str name)
{
    if (settings->models_count == 0) {
        return NULL;
    }
    for (struct hash_node *node =
             hash_first(&settings->models_by_name, hash_bytes(name.data, name.len));
         node != NULL; node = hash_next(node)) {
        const struct named_model *model = INDEX_OWNER(node, struct named_model, by_name);
        if (str_is(name, model->name)) {
            return model;
        }
    }
    return NULL;
}
