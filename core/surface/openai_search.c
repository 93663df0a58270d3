/* Where the values stand that clients of the OpenAI forms give the hosted search. */
#include "surface/openai_search.h"

#include "surface/search_options.h"

#include <stdio.h>

static struct search_option option_of(const struct json_member *members, size_t count,
                                      const char *key, const char *path)
{
    const struct json_member *member = json_find(members, count, key);
    return (struct search_option){path, member == NULL ? NULL : &member->value};
}

/* {"type":"approximate","country":…}, or {"type":"approximate","approximate":{"country":…}} as chat has it. */
static int location_read(const struct json_member *members, size_t count, const char *where,
                         struct arena *arena, struct search_asked *asked, struct sg_error *err)
{
    struct json_member *inside;
    size_t inside_count;
    char path[128];
    asked->location = option_of(members, count, "user_location", "user_location");
    if (asked->location.value == NULL || asked->location.value->type != JSON_OBJECT) {
        return SG_OK; /* search_options_write() looks at it */
    }
    (void)snprintf(path, sizeof path, "%s.user_location", where); /* fits */
    int code = json_members(*asked->location.value, path, arena, &inside, &inside_count, err);
    if (code == SG_OK && json_find(inside, inside_count, "approximate") != NULL) {
        asked->location =
            option_of(inside, inside_count, "approximate", "user_location.approximate");
    }
    return code;
}

static void option_override(struct search_option *option, struct search_option by)
{
    if (by.value != NULL && by.value->type != JSON_NULL) {
        *option = by;
    }
}

static int filters_read(const struct json_member *members, size_t count, const char *where,
                        struct arena *arena, struct search_asked *asked, struct sg_error *err)
{
    const struct json_member *filters = json_find(members, count, "filters");
    struct json_member *inside;
    size_t inside_count;
    char path[128];
    if (filters == NULL || filters->value.type == JSON_NULL) {
        return SG_OK;
    }
    (void)snprintf(path, sizeof path, "%s.filters", where); /* fits */
    if (filters->value.type != JSON_OBJECT) {
        return error_set_param(err, SG_E_INVALID, path, "%s must be an object", path);
    }
    int code = json_members(filters->value, path, arena, &inside, &inside_count, err);
    if (code == SG_OK) {
        option_override(&asked->allowed, option_of(inside, inside_count, "allowed_domains",
                                                   "filters.allowed_domains"));
        option_override(&asked->blocked, option_of(inside, inside_count, "blocked_domains",
                                                   "filters.blocked_domains"));
    }
    return code;
}

int openai_search_read(const struct json_member *members, size_t count, const char *where,
                       struct arena *arena, struct str *ret, struct sg_error *err)
{
    struct search_asked asked = {
        .max_uses = option_of(members, count, "max_uses", "max_uses"),
        .allowed = option_of(members, count, "allowed_domains", "allowed_domains"),
        .blocked = option_of(members, count, "blocked_domains", "blocked_domains"),
        .context_size = option_of(members, count, "search_context_size", "search_context_size")};
    int code = location_read(members, count, where, arena, &asked, err);
    code = code == SG_OK ? filters_read(members, count, where, arena, &asked, err) : code;
    return code == SG_OK ? search_options_write(&asked, where, arena, ret, err) : code;
}
