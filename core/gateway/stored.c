/* What a request may not name where several identities share the gateway: objects that an upstream keeps under the
 * operator's key, since another tenant may have made them; nor may it make one that only its id leads to. Those that the
 * upstream gave to this identity may be named (relayed_ids.c). Members are looked at one by one, a second of the same name
 * too: which of them counts is the upstream's to decide. */
#include "gateway/request.h"

#include "base/check.h"

#include <stdio.h>

static int refuse(struct sg_error *err, const char *param, const char *advice)
{
    return error_set_param(
        err, SG_E_INVALID, param,
        "'%s' names nothing that a model server gave you through this gateway: %s.", param, advice);
}

static bool value_is(struct json_value value, const char *text, struct arena *arena)
{
    return value.type == JSON_STRING && str_is(json_text_of(value, arena), text);
}

/* Text that is the id of something that the request's upstream gave to its identity. */
static bool is_own(struct request *r, struct json_value id)
{
    return id.type == JSON_STRING && relayed_id_is_own(r, json_text_of(id, r->arena));
}

static int check_members(struct request *r, const struct json_text *body, struct sg_error *err)
{
    static const char *const names[] = {"previous_response_id", "conversation"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const struct json_member *member = json_find(body->members, body->count, names[i]);
        if (member != NULL && member->value.type != JSON_NULL && !is_own(r, member->value)) {
            return refuse(err, names[i], "send the whole input");
        }
    }
    return 0;
}

/* {"type": "item_reference", "id": …}, of which the type may be left out; messages without one have a role. What is no
 * text counts as left out. */
static bool is_foreign_reference(struct request *r, struct json_walk *item)
{
    enum { ABSENT, TEXT, ODD } type = ABSENT, role = ABSENT;
    bool is_named = false, has_id = false, all_own = false;
    struct str key;
    struct json_value value;
    while (json_walk_member(item, &key, &value)) {
        if (json_key_is(key, "type")) {
            is_named = is_named || value_is(value, "item_reference", r->arena);
            type = value.type == JSON_STRING && type != ODD ? TEXT : ODD;
        }
        if (json_key_is(key, "role")) {
            role = value.type == JSON_STRING && role != ODD ? TEXT : ODD;
        }
        if (json_key_is(key, "id")) {
            all_own = (!has_id || all_own) && is_own(r, value);
            has_id = true;
        }
    }
    return (is_named || (has_id && type != TEXT && role != TEXT)) && !all_own;
}

static int check_input(struct request *r, struct json_value input, struct sg_error *err)
{
    struct json_walk items = json_walk_of(input), item;
    struct json_value other;
    for (size_t i = 0;; i++) {
        if (json_walk_enter(&items, &item)) {
            bool refused = is_foreign_reference(r, &item);
            json_walk_leave(&items, &item);
            if (refused) {
                char param[48];
                (void)snprintf(param, sizeof param, "input[%zu]", i); /* fits */
                return refuse(err, param, "send the item itself, not a reference to it");
            }
        } else if (!json_walk_element(&items, &other)) {
            return 0;
        }
    }
}

/* A container by its id: a text, or an object with one. */
static bool names_container(struct request *r, struct json_value container)
{
    struct str key;
    struct json_value value;
    if (container.type != JSON_OBJECT) {
        return container.type == JSON_STRING && !is_own(r, container);
    }
    struct json_walk walk = json_walk_of(container);
    while (json_walk_member(&walk, &key, &value)) {
        bool is_id = json_key_is(key, "id") || json_key_is(key, "container_id");
        if (is_id && value.type != JSON_NULL && !is_own(r, value)) {
            return true;
        }
    }
    return false;
}

static const struct place { /* of an entry of `tools` where it can name a container */
    const char *name, *advice;
    bool may_be_text; /* text there means something else */
} places[] = {{"container", "say {\"type\": \"auto\"}", false},
              {"environment", "say {\"type\": \"container_auto\"}", true}};

/* Where this entry names a container that is not the identity's own; NULL: nowhere. */
static const struct place *container_place(struct request *r, struct json_walk *entry)
{
    const struct place *ret = NULL;
    struct str key;
    struct json_value value;
    while (json_walk_member(entry, &key, &value)) {
        for (size_t i = 0; i < COUNT_OF(places) && ret == NULL; i++) {
            bool is_here = json_key_is(key, places[i].name);
            bool is_looked_at = value.type != JSON_STRING || !places[i].may_be_text;
            ret = is_here && is_looked_at && names_container(r, value) ? &places[i] : NULL;
        }
    }
    return ret;
}

static int check_tools(struct request *r, struct json_value tools, struct sg_error *err)
{
    struct json_walk entries = json_walk_of(tools), entry;
    struct json_value other;
    for (size_t i = 0;; i++) {
        if (json_walk_enter(&entries, &entry)) {
            const struct place *place = container_place(r, &entry);
            json_walk_leave(&entries, &entry);
            if (place != NULL) {
                char param[48];
                (void)snprintf(param, sizeof param, "tools[%zu].%s", i, place->name); /* fits */
                return refuse(err, param, place->advice);
            }
        } else if (!json_walk_element(&entries, &other)) {
            return 0;
        }
    }
}

static int check_responses(struct request *r, const struct json_text *body, struct sg_error *err)
{
    const struct json_member *input = json_find(body->members, body->count, "input");
    const struct json_member *tools = json_find(body->members, body->count, "tools");
    const struct json_member *background = json_find(body->members, body->count, "background");
    if (background != NULL && background->value.type == JSON_TRUE) {
        return error_set_param(err, SG_E_INVALID, "background",
                               "background cannot be true on this gateway: what runs behind the "
                               "answer could not be fetched.");
    }
    int rc = check_members(r, body, err);
    if (rc == 0 && input != NULL && input->value.type == JSON_ARRAY) {
        rc = check_input(r, input->value, err);
    }
    if (rc == 0 && tools != NULL && tools->value.type == JSON_ARRAY) {
        rc = check_tools(r, tools->value, err);
    }
    return rc;
}

int stored_check(struct request *r, const struct json_text *body, struct sg_error *err)
{
    const char *surface = r->route.surface_name;
    if (r->gateway->config->auth.mode != AUTH_KEYS || surface == NULL) {
        return 0; /* with one tenant there is no other; with a key of their own it is theirs */
    }
    if (strcmp(surface, "responses") == 0) {
        return check_responses(r, body, err);
    }
    const struct json_member *container = json_find(body->members, body->count, "container");
    if (strcmp(surface, "messages") == 0 && container != NULL &&
        names_container(r, container->value)) {
        return refuse(err, "container", "leave its id out");
    }
    return 0;
}

int stored_check_turn(struct request *r, struct str turn, struct sg_error *err)
{
    struct sg_error ignored;
    if (stored_check(r, &r->body, &ignored) == 0) {
        return 0;
    }
    struct json_text body; /* what we answer ourselves is not in it any more */
    int rc = json_scan(turn, r->arena, &body, err);
    return rc == 0 ? stored_check(r, &body, err) : rc;
}
