/* What a request may not name where several identities share the gateway: objects that an upstream keeps under the
 * operator's key, since another tenant may have made them. Members are looked at one by one, a second of the same name too:
 * which of them counts is the upstream's to decide. */
#include "gateway/request.h"

#include "base/check.h"

#include <stdio.h>

static int refuse(struct sg_error *err, const char *param, const char *advice)
{
    return error_set_param(err, SG_E_INVALID, param, "'%s' is not available on this gateway: %s.",
                           param, advice);
}

static bool value_is(struct json_value value, const char *text, struct arena *arena)
{
    return value.type == JSON_STRING && str_is(json_text_of(value, arena), text);
}

static int check_members(const struct json_text *body, struct sg_error *err)
{
    static const char *const names[] = {"previous_response_id", "conversation"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const struct json_member *member = json_find(body->members, body->count, names[i]);
        if (member != NULL && member->value.type != JSON_NULL) {
            return refuse(err, names[i], "send the whole input");
        }
    }
    return 0;
}

/* {"type": "item_reference", "id": …}, of which the type may be left out; messages without one have a role. */
static bool is_reference(struct json_walk *item, struct arena *arena)
{
    bool is_named = false, is_typed = false, has_role = false, has_id = false;
    struct str key;
    struct json_value value;
    while (json_walk_member(item, &key, &value)) {
        if (json_key_is(key, "type")) {
            is_named = is_named || value_is(value, "item_reference", arena);
            is_typed = value.type == JSON_STRING;
        }
        has_role = has_role || json_key_is(key, "role");
        has_id = has_id || json_key_is(key, "id");
    }
    return is_named || (has_id && !is_typed && !has_role);
}

static int check_input(struct json_value input, struct arena *arena, struct sg_error *err)
{
    struct json_walk items = json_walk_of(input), item;
    struct json_value other;
    for (size_t i = 0;; i++) {
        if (json_walk_enter(&items, &item)) {
            bool refused = is_reference(&item, arena);
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
static bool names_container(struct json_value container)
{
    struct str key;
    struct json_value value;
    if (container.type != JSON_OBJECT) {
        return container.type == JSON_STRING;
    }
    struct json_walk walk = json_walk_of(container);
    while (json_walk_member(&walk, &key, &value)) {
        if (json_key_is(key, "id") && value.type != JSON_NULL) {
            return true;
        }
    }
    return false;
}

static int check_tools(struct json_value tools, struct sg_error *err)
{
    struct json_walk entries = json_walk_of(tools), entry;
    struct json_value other, value;
    struct str key;
    for (size_t i = 0;; i++) {
        if (json_walk_enter(&entries, &entry)) {
            bool refused = false;
            while (json_walk_member(&entry, &key, &value)) {
                refused = refused || (json_key_is(key, "container") && names_container(value));
            }
            json_walk_leave(&entries, &entry);
            if (refused) {
                char param[48];
                (void)snprintf(param, sizeof param, "tools[%zu].container", i); /* fits */
                return refuse(err, param, "say {\"type\": \"auto\"}");
            }
        } else if (!json_walk_element(&entries, &other)) {
            return 0;
        }
    }
}

static int check_responses(const struct request *r, struct sg_error *err)
{
    const struct json_text *body = &r->body;
    const struct json_member *input = json_find(body->members, body->count, "input");
    const struct json_member *tools = json_find(body->members, body->count, "tools");
    int rc = check_members(body, err);
    if (rc == 0 && input != NULL && input->value.type == JSON_ARRAY) {
        rc = check_input(input->value, r->arena, err);
    }
    if (rc == 0 && tools != NULL && tools->value.type == JSON_ARRAY) {
        rc = check_tools(tools->value, err);
    }
    return rc;
}

int stored_check(const struct request *r, struct sg_error *err)
{
    const char *surface = r->route.surface_name;
    if (r->gateway->config->auth.mode == AUTH_NONE || surface == NULL) {
        return 0; /* with one tenant there is no other */
    }
    if (strcmp(surface, "responses") == 0) {
        return check_responses(r, err);
    }
    const struct json_member *container = json_find(r->body.members, r->body.count, "container");
    if (strcmp(surface, "messages") == 0 && container != NULL &&
        names_container(container->value)) {
        return refuse(err, "container", "leave its id out");
    }
    return 0;
}
