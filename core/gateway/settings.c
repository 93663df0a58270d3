/* References to settings, and which are in force: see settings.h. */
#include "gateway/settings.h"

#include "base/check.h"
#include "gateway/config.h"
#include "gateway/quota.h"
#include "http/tls.h"
#include "gateway/upstream_state.h"

#include <stdlib.h>

#define SETTINGS_MAGIC 0x53475354u /* "SGST" */

struct settings *settings_new(void)
{
    struct settings *settings = check_alloc(calloc(1, sizeof *settings));
    settings->magic = SETTINGS_MAGIC;
    atomic_init(&settings->refs, 1);
    settings->arena = arena_new(0);
    return settings;
}

struct settings *settings_ref(struct settings *settings)
{
    CHECK_MAGIC(settings, SETTINGS_MAGIC);
    (void)atomic_fetch_add(&settings->refs, 1);
    return settings;
}

void settings_unref(struct settings *settings)
{
    if (settings == NULL) {
        return;
    }
    CHECK_MAGIC(settings, SETTINGS_MAGIC);
    if (atomic_fetch_sub(&settings->refs, 1) > 1) {
        return;
    }
    for (size_t i = 0; settings->quotas != NULL && i < settings->keys.count; i++) {
        quota_give(settings->quotas, settings->keys.keys[i].quota);
    }
    keys_clear(&settings->keys);
    http_tls_unref(settings->tls);
    hash_clear(&settings->models_by_name);
    settings->magic = 0;
    arena_free(settings->arena);
    free(settings);
}

void settings_place_init(struct settings_place *place)
{
    lock_init(&place->lock);
    place->now = NULL;
}

struct settings *settings_take(struct settings_place *place)
{
    lock_take(&place->lock);
    struct settings *settings = place->now == NULL ? NULL : settings_ref(place->now);
    lock_release(&place->lock);
    return settings;
}

static void settings_replace(struct settings_place *place, struct settings *settings)
{
    lock_take(&place->lock);
    struct settings *before = place->now;
    place->now = settings;
    lock_release(&place->lock);
    settings_unref(before);
}

void settings_put_in_force(struct settings_place *place, struct settings *settings,
                           struct quotas *quotas, struct upstream_states *states)
{
    CHECK(settings->quotas == NULL);
    for (size_t i = 0; i < settings->keys.count; i++) {
        settings->keys.keys[i].quota = quota_of(quotas, str_of(settings->keys.keys[i].name));
    }
    settings->quotas = quotas;
    for (size_t i = 0; i < settings->upstreams_count; i++) {
        settings->upstreams[i].state = upstream_state_of(states, settings->upstreams[i].name);
    }
    settings_replace(place, settings);
}

void settings_place_clear(struct settings_place *place)
{
    settings_replace(place, NULL);
    lock_destroy(&place->lock);
}
