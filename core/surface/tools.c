/* The tools of a request: what is offered, under which names. */
#include "surface/tools.h"

#include "base/check.h"
#include "base/limits.h"

#include <stdio.h>

#define FUNCTIONS STR("functions.")

void tools_init(struct tool_set *set, const struct surface_input *input, struct arena *arena)
{
    const struct json_text *body = input->body;
    *set = (struct tool_set){.offers = input->offers,
                             .offers_count = input->offers_count,
                             .is_translated = input->is_translated};
    set->member = json_find(body->members, body->count, "tools");
    set->shown = arena_get(arena, (set->offers_count + 1) * sizeof *set->shown);
}

const char *tools_reason(const struct tool_set *set)
{
    return set->names_hosted || !set->is_translated
               ? "a request with hosted tools"
               : "a request to a model whose server speaks another API";
}

int tools_count(struct json_value array, const char *param, size_t *ret, struct sg_error *err)
{
    struct json_walk walk = json_walk_of(array);
    struct json_value value;
    size_t count = 0;
    while (json_walk_element(&walk, &value)) {
        if (++count > LIMIT_TOOLS) {
            return error_set_param(err, SG_E_INVALID, param, "More than %d tools", LIMIT_TOOLS);
        }
    }
    *ret = count;
    return SG_OK;
}

static int entries_list(struct tool_set *set, struct json_value array, struct arena *arena,
                        struct sg_error *err)
{
    size_t count = 0;
    int code = tools_count(array, "tools", &count, err);
    if (code != SG_OK) {
        return code;
    }
    set->entries = arena_get(arena, (count + 1) * sizeof *set->entries);
    set->entries_count = count;
    struct json_walk walk = json_walk_of(array);
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

struct str tools_kind_of(const struct surface_offer *offer)
{
    return offer->hosted.len > 0 ? offer->hosted : offer->name;
}

int tools_shown_of_kind(const struct tool_set *set, struct str kind)
{
    for (size_t i = 0; i < set->offers_count && kind.len > 0; i++) {
        if (set->shown[i].shown && str_eq(tools_kind_of(&set->offers[i]), kind)) {
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

/* Of two entries for one tool only one's wishes could hold. */
static int options_mark(struct tool_set *set, const struct tool_entry *entry, size_t index,
                        struct sg_error *err)
{
    struct tool_offer *offer = &set->shown[entry->offer];
    char where[48];
    if (entry->first) {
        offer->options = entry->options;
    }
    if (str_eq(offer->options, entry->options)) {
        return SG_OK;
    }
    (void)snprintf(where, sizeof where, "tools[%zu]", index); /* fits */
    return error_set_param(err, SG_E_INVALID, where,
                           "%s names a tool that is named before, with other options", where);
}

static int entries_mark(struct tool_set *set, struct sg_error *err)
{
    int code = SG_OK;
    for (size_t i = 0; code == SG_OK && i < set->entries_count; i++) {
        struct tool_entry *entry = &set->entries[i];
        entry->first = offer_show(set, entry->offer);
        entry->also_first = offer_show(set, entry->also);
        code = entry->offer < 0 ? SG_OK : options_mark(set, entry, i, err);
    }
    return code;
}

int tools_read(struct tool_set *set, int (*read)(const struct tool_read *, struct sg_error *),
               void *context, struct arena *arena, struct sg_error *err)
{
    if (set->member == NULL || set->member->value.type != JSON_ARRAY) {
        return SG_OK;
    }
    int code = entries_list(set, set->member->value, arena, err);
    for (size_t i = 0; code == SG_OK && i < set->entries_count; i++) {
        char where[48];
        struct json_member *members = NULL;
        struct tool_read one = {context, &set->entries[i], where, NULL, 0, arena};
        if (one.entry->value.type != JSON_OBJECT) {
            continue;
        }
        (void)snprintf(where, sizeof where, "tools[%zu]", i); /* fits */
        code = json_members(one.entry->value, where, arena, &members, &one.count, err);
        one.members = members;
        code = code == SG_OK ? read(&one, err) : code;
    }
    return code == SG_OK ? entries_mark(set, err) : code;
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

static struct str name_choose(const struct tool_set *set, size_t offer, struct arena *arena)
{
    struct str name = set->offers[offer].name, chosen = name;
    for (unsigned n = 2; name_is_taken(set, chosen, offer); n++) {
        chosen = str_of(check_alloc(arena_printf(arena, "%.*s_%u", (int)name.len, name.data, n)));
    }
    return chosen;
}

static struct str definition_make(const struct surface_offer *offer, struct str name,
                                  struct str cache_control, const struct tool_form *form,
                                  struct arena *arena)
{
    BUF_CLEANUP struct buf out = {0};
    (void)buf_puts(&out, form->open); /* small: fits */
    (void)buf_put_json(&out, name);
    (void)buf_puts(&out, ",\"description\":");
    (void)buf_put_json(&out, offer->description);
    (void)buf_printf(&out, ",\"%s\":", form->schema);
    (void)buf_append_str(&out, offer->parameters.len > 0
                                   ? offer->parameters
                                   : STR("{\"type\":\"object\",\"properties\":{}}"));
    (void)buf_puts(&out, form->close);
    if (cache_control.len > 0) {
        (void)buf_puts(&out, ",\"cache_control\":");
        (void)buf_append_str(&out, cache_control);
    }
    (void)buf_putc(&out, '}');
    CHECK(!out.overflow);
    return (struct str){check_alloc(arena_copy(arena, buf_str(&out))), out.len};
}

int tools_define(struct tool_set *set, const struct tool_form *form, struct arena *arena,
                 struct sg_error *err)
{
    const struct json_member *tools = set->member;
    if (tools_appends(set) && tools != NULL && tools->value.type != JSON_ARRAY &&
        tools->value.type != JSON_NULL) {
        return error_set_param(err, SG_E_INVALID, "tools", "tools must be an array");
    }
    for (size_t i = 0; i < set->offers_count; i++) {
        struct tool_offer *shown = &set->shown[i];
        if (shown->shown) {
            shown->name = name_choose(set, i, arena);
            shown->definition = definition_make(&set->offers[i], shown->name,
                                                tools_cache_control(set, i), form, arena);
        }
    }
    return SG_OK;
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

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct str name_trim(struct str name)
{
    while (name.len > 0 && is_space(name.data[0])) {
        name = (struct str){name.data + 1, name.len - 1};
    }
    while (name.len > 0 && is_space(name.data[name.len - 1])) {
        name.len--;
    }
    return name;
}

/* Models write names with white space around them, or behind the namespace that their template has for functions. */
static struct str name_bare(struct str name)
{
    struct str bare = name_trim(name), prefix = FUNCTIONS;
    return str_starts(bare, prefix)
               ? name_trim((struct str){bare.data + prefix.len, bare.len - prefix.len})
               : bare;
}

int tools_offer_of(const struct tool_set *set, struct str name)
{
    struct str bare = tools_client_has(set, name) ? name : name_bare(name);
    for (size_t i = 0; i < set->offers_count; i++) {
        if (set->shown[i].shown && str_eq(set->shown[i].name, bare)) {
            return (int)i;
        }
    }
    return -1;
}

bool tools_begins_ours(const struct tool_set *set, struct str start)
{
    struct str bare = name_bare(start);
    for (size_t i = 0; i < set->offers_count; i++) {
        if (set->shown[i].shown && str_starts(set->shown[i].name, bare)) {
            return true;
        }
    }
    return false;
}

bool tools_may_be_ours(const struct tool_set *set, struct str start)
{
    bool is_prefix = set->names_hosted && str_starts(FUNCTIONS, name_trim(start));
    return is_prefix || tools_begins_ours(set, start);
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
