/* tool_choice: what the client forces, and what becomes of it turn by turn. The force on a hosted tool is translated and
 * ends with the first turn that calls something; what the client says of its own tools is left. */
#include "surface/messages.h"

bool messages_choice_refuses(const struct json_member *choice)
{
    struct str key;
    struct json_value value;
    bool refuses = false;
    if (choice == NULL || choice->value.type != JSON_OBJECT) {
        return false;
    }
    struct json_walk walk = json_walk_of(choice->value);
    while (json_walk_member(&walk, &key, &value)) {
        refuses = refuses || (json_key_is(key, "type") && str_is(value.raw, "\"none\""));
    }
    return refuses;
}

/* The shown offer that a name means: its function's, its block's, or that of the client's entry. */
static int shown_find(const struct tool_set *set, struct str name)
{
    int offer = tools_offer_of(set, name);
    for (size_t i = 0; offer < 0 && messages_kinds[i].hosted != NULL; i++) {
        const struct messages_kind *kind = &messages_kinds[i];
        if (str_is(name, kind->tool) || str_is(name, kind->name) || str_is(name, kind->hosted)) {
            int found = tools_offer_for(set, str_of(kind->hosted));
            offer = found >= 0 && set->shown[found].shown ? found : -1;
        }
    }
    return offer;
}

static void force_read(struct messages_request *request, struct arena *arena)
{
    struct messages_choice *choice = &request->choice;
    struct str type = json_find_text(choice->members, choice->count, "type", arena);
    struct str name = json_find_text(choice->members, choice->count, "name", arena);
    if (str_is(type, "none")) {
        choice->force = MESSAGES_NONE;
        return;
    }
    if (str_is(type, "any")) {
        choice->force = MESSAGES_ANY;
        return;
    }
    bool is_tool = str_is(type, "tool");
    if (!is_tool && messages_kind_of(type) == NULL) {
        return;
    }
    bool own = is_tool && tools_client_has(&request->set, name);
    int offer = own ? -1 : shown_find(&request->set, is_tool ? name : type);
    choice->force = offer >= 0 ? MESSAGES_OURS : MESSAGES_CLIENT;
    choice->offer = offer >= 0 ? (size_t)offer : 0;
}

int messages_choice_read(struct messages_request *request, struct arena *arena,
                         struct sg_error *err)
{
    struct messages_choice *choice = &request->choice;
    if (choice->member == NULL || choice->member->value.type != JSON_OBJECT) {
        return SG_OK;
    }
    int code = json_members(choice->member->value, "tool_choice", arena, &choice->members,
                            &choice->count, err);
    if (code == SG_OK) {
        force_read(request, arena);
        request->parallel_off = json_find_type(choice->members, choice->count,
                                               "disable_parallel_tool_use", JSON_TRUE) != NULL;
    }
    return code;
}

/* ---- edits ---- */

/* The choice with this type and name (empty: none); what else it says stays. */
static void choice_set(struct body_edit *edit, const struct messages_choice *choice,
                       const char *type, struct str name)
{
    struct buf added = {0}, text = {0};
    bool *gone = arena_get(edit->arena, choice->count + 1);
    (void)buf_put_json(&text, str_of(type)); /* small: fits, here and below */
    const struct json_member *member = json_find(choice->members, choice->count, "type");
    body_edit_value(edit, member->value, buf_to_arena(&text, edit->arena));
    member = json_find(choice->members, choice->count, "name");
    if (name.len > 0) {
        (void)buf_put_json(&text, name);
        struct str put = buf_to_arena(&text, edit->arena);
        if (member != NULL) {
            body_edit_value(edit, member->value, put);
        } else {
            (void)buf_puts(&added, ",\"name\":");
            (void)buf_append_str(&added, put);
        }
    } else if (member != NULL) {
        gone[member - choice->members] = true;
    }
    struct str more = added.len > 0 ? buf_to_arena(&added, edit->arena) : (struct str){0};
    members_edit(&edit->splice, edit->body->raw, choice->member->value, choice->members,
                 choice->count, gone, more);
}

void messages_choice_edit(struct body_edit *edit, const struct messages_request *request,
                          const struct surface_turn_options *options, bool call_made)
{
    const struct messages_choice *choice = &request->choice;
    bool is_forced = choice->force == MESSAGES_OURS || choice->force == MESSAGES_ANY;
    if (options->last && options->remove_tools) {
        body_edit_cut(edit, is_forced || !edit->tools_left ? choice->member : NULL);
    } else if (options->last && request->set.names_hosted && choice->force != MESSAGES_CLIENT) {
        body_edit_set(edit, choice->member, "tool_choice", STR("{\"type\":\"none\"}"));
    } else if (is_forced && call_made) {
        choice_set(edit, choice, "auto", (struct str){0});
    } else if (choice->force == MESSAGES_OURS) {
        choice_set(edit, choice, "tool", request->set.shown[choice->offer].name);
    }
}
