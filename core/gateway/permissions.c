/* What the request's key may use: models, and tools that somebody hosts, here or at the upstream. Functions of the client's
 * own are nobody's to forbid. */
#include "gateway/request.h"

#include "base/check.h"

#include <stdio.h>

/* Hosted kinds that surfaces know by several types, and the kind whose permission is theirs too. */
static const struct {
    const char *kind, *with;
} kinds[] = {{"code_interpreter", NULL},
             {"bash_code_execution", "code_interpreter"},
             {"text_editor_code_execution", "code_interpreter"},
             {"web_search", NULL},
             {"web_fetch", NULL}};

/* Hosted tools that a body can ask for beside its list. What the upstream keeps as a prompt may have any. */
static const struct {
    const char *member, *kind;
    bool may_be_text; /* text there is the client's own words */
} members[] = {{"web_search_options", "web_search", false},
               {"mcp_servers", "mcp", false},
               {"prompt", "prompt", true}};

static bool list_allows(const char *const *patterns, struct str name)
{
    for (; patterns != NULL && *patterns != NULL; patterns++) {
        if (model_matches(*patterns, name)) {
            return true;
        }
    }
    return patterns == NULL;
}

bool key_allows_model(const struct auth_key *key, struct str model)
{
    return key == NULL || list_allows(key->models, model);
}

bool key_allows_kind(const struct auth_key *key, struct str kind)
{
    if (key == NULL || list_allows(key->tools, kind)) {
        return true;
    }
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        if (str_is(kind, kinds[i].kind) && kinds[i].with != NULL) {
            return list_allows(key->tools, str_of(kinds[i].with));
        }
    }
    return false;
}

/* A type as the client writes it: by itself, or as one of the kinds that it stands for on this surface. */
static bool type_allowed(const struct request *r, struct str type)
{
    bool is_allowed = key_allows_kind(r->key, type);
    for (size_t i = 0; i < COUNT_OF(kinds) && !is_allowed; i++) {
        struct surface_offer offer = {.hosted = str_of(kinds[i].kind)};
        is_allowed =
            key_allows_kind(r->key, offer.hosted) && r->route.surface->answers(&offer, 1, type);
    }
    return is_allowed;
}

static int refuse(const char *where, struct str type, struct sg_error *err)
{
    int rc = error_set_param(err, SG_E_DENIED, where, "This key may not use the tool '%.*s'.",
                             (int)(type.len < 64 ? type.len : 64), type.data);
    err->status = 403;
    (void)snprintf(err->reason, sizeof err->reason, "tool_not_allowed"); /* fits */
    return rc;
}

/* For a key without `tools` what is wrong is said where it is read. */
static int not_judged(const struct request *r, const char *where, const char *wanted,
                      struct sg_error *err)
{
    return r->key->tools == NULL
               ? 0
               : error_set_param(err, SG_E_INVALID, where, "%s must be %s.", where, wanted);
}

static int entry_permit(struct request *r, size_t index, struct json_value entry,
                        struct sg_error *err)
{
    struct json_member *found = NULL;
    size_t count = 0;
    char where[48];
    (void)snprintf(where, sizeof where, "tools[%zu]", index); /* fits */
    if (entry.type != JSON_OBJECT) {
        return not_judged(r, where, "an object", err);
    }
    int rc = json_members(entry, where, r->arena, &found, &count, err);
    if (rc != 0) {
        return rc; /* said twice, it could be one type here and another at the upstream */
    }
    struct str type = json_find_text(found, count, "type", r->arena);
    if (tool_type_is_plain(type)) {
        return 0;
    }
    r->names_tools = r->names_tools || r->route.surface->answers(r->offers, r->offers_count, type);
    (void)snprintf(where, sizeof where, "tools[%zu].type", index); /* fits */
    return type_allowed(r, type) ? 0 : refuse(where, type, err);
}

static int members_permit(struct request *r, struct sg_error *err)
{
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        const struct json_member *member =
            json_find(r->body.members, r->body.count, members[i].member);
        if (member == NULL || member->value.type == JSON_NULL ||
            (members[i].may_be_text && member->value.type == JSON_STRING)) {
            continue;
        }
        struct str kind = str_of(members[i].kind);
        for (size_t k = 0; k < r->offers_count; k++) {
            r->names_tools = r->names_tools || str_eq(r->offers[k].hosted, kind);
        }
        if (!key_allows_kind(r->key, kind)) {
            return refuse(members[i].member, kind, err);
        }
    }
    return 0;
}

int tools_permit(struct request *r, struct sg_error *err)
{
    if (r->key == NULL) {
        return 0;
    }
    const struct json_member *tools = json_find(r->body.members, r->body.count, "tools");
    size_t count = 0;
    struct json_value *entries = NULL;
    int rc = 0;
    if (tools != NULL && tools->value.type == JSON_ARRAY) {
        entries = json_elements(tools->value, r->arena, &count);
    } else if (tools != NULL && tools->value.type != JSON_NULL) {
        rc = not_judged(r, "tools", "a list", err);
    }
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = entry_permit(r, i, entries[i], err);
    }
    return rc == 0 ? members_permit(r, err) : rc;
}
