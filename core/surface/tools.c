/* The tools of a request: what is offered, under which names. */
#include "surface/tools.h"

#include "base/check.h"
#include "base/limits.h"

void tools_init(struct tool_set *set, const struct surface_offer *offers, size_t count,
                struct arena *arena)
{
    *set = (struct tool_set){.offers = offers, .offers_count = count};
    set->shown = arena_get(arena, (count + 1) * sizeof *set->shown);
}

int tools_list(struct tool_set *set, struct json_value array, struct arena *arena,
               struct sg_error *err)
{
    CHECK(array.type == JSON_ARRAY);
    struct json_walk walk = json_walk_of(array);
    struct json_value value;
    size_t count = 0;
    while (json_walk_element(&walk, &value)) {
        if (++count > LIMIT_TOOLS) {
            return error_set_param(err, SG_E_INVALID, "tools", "More than %d tools", LIMIT_TOOLS);
        }
    }
    set->entries = arena_get(arena, (count + 1) * sizeof *set->entries);
    set->entries_count = count;
    walk = json_walk_of(array);
    for (size_t i = 0; i < count; i++) {
        (void)json_walk_element(&walk, &set->entries[i].value); /* counted above */
        set->entries[i].offer = set->entries[i].also = -1;
    }
    return SG_OK;
}

int tools_offer_for(const struct tool_set *set, struct str hosted)
{
    for (size_t i = 0; i < set->offers_count && hosted.len > 0; i++) {
        if (str_eq(set->offers[i].hosted, hosted)) {
            return (int)i;
        }
    }
    return -1;
}

/* True if it was not shown before. */
static bool offer_show(struct tool_set *set, int offer)
{
    if (offer < 0 || set->shown[offer].shown) {
        return false;
    }
    set->shown[offer].shown = true;
    set->names_hosted = true;
    return true;
}

void tools_mark_named(struct tool_set *set)
{
    for (size_t i = 0; i < set->entries_count; i++) {
        struct tool_entry *entry = &set->entries[i];
        entry->first = offer_show(set, entry->offer);
        entry->also_first = offer_show(set, entry->also);
    }
}

void tools_append(struct tool_set *set, size_t offer)
{
    CHECK(offer < set->offers_count);
    set->names_hosted = true;
    if (!set->shown[offer].shown) {
        set->shown[offer].shown = true;
        set->shown[offer].appended = true;
    }
}

static bool kind_is_shown(const struct tool_set *set, struct str hosted)
{
    for (size_t i = 0; i < set->offers_count && hosted.len > 0; i++) {
        if (set->shown[i].shown && str_eq(set->offers[i].hosted, hosted)) {
            return true;
        }
    }
    return false;
}

static bool is_listed(const char *const *kinds, struct str hosted)
{
    for (; *kinds != NULL; kinds++) {
        if (str_is(hosted, *kinds)) {
            return true;
        }
    }
    return hosted.len == 0;
}

void tools_mark_always(struct tool_set *set, const char *const *kinds)
{
    for (size_t i = 0; i < set->offers_count; i++) {
        const struct surface_offer *offer = &set->offers[i];
        bool always = offer->always || offer->hosted.len == 0;
        if (always && is_listed(kinds, offer->hosted) && !kind_is_shown(set, offer->hosted)) {
            tools_append(set, i);
        }
    }
}

bool tools_client_has(const struct tool_set *set, struct str name)
{
    for (size_t i = 0; i < set->entries_count; i++) {
        if (str_eq(set->entries[i].function, name)) {
            return true;
        }
    }
    return false;
}

static bool name_is_taken(const struct tool_set *set, struct str name, size_t before)
{
    if (tools_client_has(set, name)) {
        return true;
    }
    for (size_t i = 0; i < before; i++) {
        if (set->shown[i].shown && str_eq(set->shown[i].name, name)) {
            return true;
        }
    }
    return false;
}

void tools_choose_names(struct tool_set *set, struct arena *arena)
{
    for (size_t i = 0; i < set->offers_count; i++) {
        if (!set->shown[i].shown) {
            continue;
        }
        struct str name = set->offers[i].name, chosen = name;
        for (unsigned n = 2; name_is_taken(set, chosen, i); n++) {
            chosen =
                str_of(check_alloc(arena_printf(arena, "%.*s_%u", (int)name.len, name.data, n)));
        }
        set->shown[i].name = chosen;
    }
}

struct str tools_cache_control(const struct tool_set *set, size_t offer)
{
    for (size_t i = 0; i < set->entries_count; i++) {
        const struct tool_entry *entry = &set->entries[i];
        int last = entry->also >= 0 ? entry->also : entry->offer;
        if (last == (int)offer && entry->cache_control.len > 0) {
            return entry->cache_control;
        }
    }
    return (struct str){0};
}

int tools_offer_of(const struct tool_set *set, struct str name)
{
    for (size_t i = 0; i < set->offers_count; i++) {
        if (set->shown[i].shown && str_eq(set->shown[i].name, name)) {
            return (int)i;
        }
    }
    return -1;
}

bool tools_may_be_ours(const struct tool_set *set, struct str start)
{
    for (size_t i = 0; i < set->offers_count; i++) {
        if (set->shown[i].shown && str_starts(set->shown[i].name, start)) {
            return true;
        }
    }
    return false;
}

bool tools_has_others(const struct tool_set *set)
{
    for (size_t i = 0; i < set->entries_count; i++) {
        if (set->entries[i].offer < 0) {
            return true;
        }
    }
    return false;
}

bool tools_appends(const struct tool_set *set)
{
    for (size_t i = 0; i < set->offers_count; i++) {
        if (set->shown[i].appended) {
            return true;
        }
    }
    return false;
}
