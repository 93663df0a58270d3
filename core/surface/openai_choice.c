/* tool_choice: what the client forces or allows, and what becomes of it turn by turn. The force on a hosted tool is
 * translated and ends with the first turn that calls something; what the client says of its own tools is left. */
#include "surface/openai_choice.h"

#include "base/check.h"

const char *const openai_kinds[] = {"code_interpreter", "web_search", NULL};

static bool is_native(struct str hosted)
{
    for (const char *const *kind = openai_kinds; *kind != NULL; kind++) {
        if (str_is(hosted, *kind)) {
            return true;
        }
    }
    return false;
}

bool openai_offer_answers(const struct surface_offer *offer, struct str type)
{
    if (offer->hosted.len == 0) {
        return false;
    }
    if (str_eq(offer->hosted, type)) {
        return is_native(type);
    }
    return str_is(offer->hosted, "web_search") &&
           (str_is(type, "browser_search") || str_starts(type, STR("web_search_")));
}

bool openai_offers_answer(const struct surface_offer *offers, size_t count, struct str type)
{
    for (size_t i = 0; i < count; i++) {
        if (openai_offer_answers(&offers[i], type)) {
            return true;
        }
    }
    return false;
}

/* The shown offer that a hosted type, or the name of one, means. */
static int shown_find(const struct tool_set *set, struct str name)
{
    for (size_t i = 0; i < set->offers_count && name.len > 0; i++) {
        const struct tool_offer *shown = &set->shown[i];
        if (shown->shown &&
            (openai_offer_answers(&set->offers[i], name) || str_eq(shown->name, name))) {
            return (int)i;
        }
    }
    return -1;
}

/* Which shown offer do these members mean? {"type":"code_interpreter"}, {"type":"hosted_tool","name":…},
 * {"type":"function","function":{"name":…}}, {"type":"function","name":…}; *ret_own if it is one of the client's tools. */
static int meant_find(const struct tool_set *set, const struct json_member *members, size_t count,
                      const char *where, struct arena *arena, int *ret_offer, bool *ret_own,
                      struct sg_error *err)
{
    struct str type = json_find_text(members, count, "type", arena);
    bool named = str_is(type, "function") || str_is(type, "hosted_tool") || str_is(type, "custom");
    struct str name = named ? json_find_text(members, count, "name", arena) : type;
    const struct json_member *object = json_find_type(members, count, "function", JSON_OBJECT);
    if (str_is(type, "function") && object != NULL) {
        struct json_member *inside = NULL;
        size_t inside_count = 0;
        int code = json_members(object->value, where, arena, &inside, &inside_count, err);
        if (code != SG_OK) {
            return code;
        }
        name = json_find_text(inside, inside_count, "name", arena);
    }
    bool own = str_is(type, "custom") || (str_is(type, "function") && tools_client_has(set, name));
    *ret_offer = own ? -1 : shown_find(set, name);
    *ret_own = own || (str_is(type, "function") && *ret_offer < 0);
    return SG_OK;
}

static int allowed_tools_read(struct tool_choice *choice, const struct tool_set *set,
                              const struct json_member *tools, struct arena *arena,
                              struct sg_error *err)
{
    int code = tools_count(tools->value, "tool_choice", &choice->tools_count, err);
    if (code != SG_OK) {
        return code;
    }
    choice->list = tools->value;
    choice->tools = json_elements(tools->value, arena, &choice->tools_count);
    choice->tool_offers = arena_get(arena, (choice->tools_count + 1) * sizeof(int));
    for (size_t i = 0; i < choice->tools_count; i++) {
        choice->tool_offers[i] = -1;
        if (choice->tools[i].type != JSON_OBJECT) {
            continue;
        }
        struct json_member *members = NULL;
        size_t count = 0;
        bool own;
        code = json_members(choice->tools[i], "tool_choice", arena, &members, &count, err);
        if (code == SG_OK) {
            code = meant_find(set, members, count, "tool_choice", arena, &choice->tool_offers[i],
                              &own, err);
        }
        if (code != SG_OK) {
            return code;
        }
    }
    return SG_OK;
}

/* {"type":"allowed_tools","allowed_tools":{"mode":…,"tools":[…]}}; also with mode and tools not nested. */
static int allowed_read(struct tool_choice *choice, const struct tool_set *set,
                        struct json_member *members, size_t count, struct arena *arena,
                        struct sg_error *err)
{
    const struct json_member *nested = json_find_type(members, count, "allowed_tools", JSON_OBJECT);
    if (nested != NULL) {
        int code = json_members(nested->value, "tool_choice", arena, &members, &count, err);
        if (code != SG_OK) {
            return code;
        }
    }
    const struct json_member *mode = json_find_type(members, count, "mode", JSON_STRING);
    const struct json_member *tools = json_find_type(members, count, "tools", JSON_ARRAY);
    if (tools == NULL) {
        return SG_OK;
    }
    choice->kind = TOOL_CHOICE_ALLOWED;
    if (mode != NULL) {
        choice->mode = mode->value;
        choice->mode_required = str_is(json_text_of(mode->value, arena), "required");
    }
    return allowed_tools_read(choice, set, tools, arena, err);
}

static int choice_object_read(struct tool_choice *choice, const struct tool_set *set,
                              struct arena *arena, struct sg_error *err)
{
    struct json_member *members = NULL;
    size_t count = 0;
    int code = json_members(choice->member->value, "tool_choice", arena, &members, &count, err);
    if (code != SG_OK) {
        return code;
    }
    if (str_is(json_find_text(members, count, "type", arena), "allowed_tools")) {
        return allowed_read(choice, set, members, count, arena, err);
    }
    int offer = -1;
    bool own = false;
    code = meant_find(set, members, count, "tool_choice", arena, &offer, &own, err);
    if (code == SG_OK && offer >= 0) {
        choice->kind = TOOL_CHOICE_OURS;
        choice->offer = (size_t)offer;
    } else if (code == SG_OK && own) {
        choice->kind = TOOL_CHOICE_CLIENT;
    }
    return code;
}

int openai_choice_read(struct tool_choice *choice, const struct tool_set *set, struct arena *arena,
                       struct sg_error *err)
{
    if (choice->member == NULL) {
        return SG_OK;
    }
    struct json_value value = choice->member->value;
    if (value.type == JSON_OBJECT) {
        return choice_object_read(choice, set, arena, err);
    }
    if (value.type == JSON_STRING) {
        struct str text = json_text_of(value, arena);
        if (str_is(text, "none")) {
            choice->kind = TOOL_CHOICE_NONE;
        } else if (str_is(text, "required")) {
            choice->kind = TOOL_CHOICE_REQUIRED;
        }
    }
    return SG_OK;
}

/* ---- edits ---- */

struct choosing { /* the choice of one turn */
    struct body_edit *edit;
    const struct tool_choice *choice;
    const struct tool_set *set;
    bool call_made, is_flat;
};

static struct str function_choice(const struct choosing *c, size_t offer)
{
    struct buf out = {0};
    (void)buf_puts(&out, c->is_flat ? "{\"type\":\"function\",\"name\":"
                                    : "{\"type\":\"function\",\"function\":{\"name\":");
    (void)buf_put_json(&out, c->set->shown[offer].name); /* small: fits */
    (void)buf_puts(&out, c->is_flat ? "}" : "}}");
    return buf_to_arena(&out, c->edit->arena);
}

/* The list with the hosted entries renamed, each offer once; or without them. True if something is left in it. */
static bool allowed_edit(const struct choosing *c, bool without_ours)
{
    const struct tool_choice *choice = c->choice;
    bool *gone = arena_get(c->edit->arena, choice->tools_count + 1);
    size_t left = 0;
    for (size_t i = 0; i < choice->tools_count; i++) {
        int offer = choice->tool_offers[i];
        gone[i] = offer >= 0 && without_ours;
        for (size_t k = 0; k < i && offer >= 0; k++) {
            gone[i] = gone[i] || choice->tool_offers[k] == offer;
        }
        left += !gone[i];
    }
    if (left == 0) {
        return false;
    }
    for (size_t i = 0; i < choice->tools_count; i++) {
        if (!gone[i] && choice->tool_offers[i] >= 0) {
            body_edit_value(c->edit, choice->tools[i],
                            function_choice(c, (size_t)choice->tool_offers[i]));
        }
    }
    splice_cut_elements(&c->edit->splice, c->edit->body->raw, choice->list, choice->tools,
                        choice->tools_count, gone);
    if (choice->mode_required && c->call_made) {
        body_edit_value(c->edit, choice->mode, STR("\"auto\""));
    }
    return true;
}

/* The last turn of an upstream that ignores tool choice: our tools are gone, and so is what names them. */
static bool goes_without_tools(const struct choosing *c)
{
    bool tools_left = c->edit->tools_left;
    switch (c->choice->kind) {
    case TOOL_CHOICE_ALLOWED:
        return !tools_left || !allowed_edit(c, true);
    case TOOL_CHOICE_OURS:
    case TOOL_CHOICE_REQUIRED:
        return true;
    default:
        return !tools_left;
    }
}

void openai_choice_edit(struct body_edit *edit, const struct tool_choice *choice,
                        const struct tool_set *set, const struct surface_turn_options *options,
                        bool call_made, bool is_flat)
{
    const struct choosing c = {edit, choice, set, call_made, is_flat};
    if (options->last && options->remove_tools) {
        body_edit_cut(edit, goes_without_tools(&c) ? choice->member : NULL);
        return;
    }
    if (options->last && set->names_hosted && choice->kind != TOOL_CHOICE_CLIENT) {
        body_edit_set(edit, choice->member, "tool_choice", STR("\"none\""));
        return;
    }
    if (choice->kind == TOOL_CHOICE_ALLOWED) {
        (void)allowed_edit(&c, false); /* nothing goes as a whole here */
    } else if (choice->kind == TOOL_CHOICE_OURS) {
        body_edit_value(edit, choice->member->value,
                        call_made ? STR("\"auto\"") : function_choice(&c, choice->offer));
    } else if (choice->kind == TOOL_CHOICE_REQUIRED && call_made) {
        body_edit_value(edit, choice->member->value, STR("\"auto\""));
    }
}
