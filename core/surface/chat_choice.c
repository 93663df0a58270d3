/* tool_choice: what the client forces or allows, and what becomes of it turn by turn. The force on a hosted tool is
 * translated and ends with the first turn that calls something; what the client says of its own tools is left. */
#include "surface/chat.h"

#include "base/check.h"

static struct str text_of_member(const struct json_member *members, size_t count, const char *name,
                                 struct arena *arena)
{
    const struct json_member *member = chat_find(members, count, name, JSON_STRING);
    return member == NULL ? (struct str){0} : json_text_of(member->value, arena);
}

static bool client_has(const struct chat_request *request, struct str name)
{
    for (size_t i = 0; i < request->entries_count; i++) {
        if (str_eq(request->entries[i].function, name)) {
            return true;
        }
    }
    return false;
}

/* The shown offer that a hosted type, or the name of one, means. */
static int shown_find(const struct chat_request *request, struct str name)
{
    for (size_t i = 0; i < request->offers_count && name.len > 0; i++) {
        const struct chat_offer *shown = &request->shown[i];
        if (shown->shown &&
            (chat_offer_answers(&request->offers[i], name) || str_eq(shown->name, name))) {
            return (int)i;
        }
    }
    return -1;
}

/* Which shown offer do these members mean? {"type":"code_interpreter"}, {"type":"hosted_tool","name":…},
 * {"type":"function","function":{"name":…}}, {"type":"function","name":…}; *ret_own if it is one of the client's tools. */
static int meant_find(const struct chat_request *request, const struct json_member *members,
                      size_t count, const char *where, struct arena *arena, int *ret_offer,
                      bool *ret_own, struct sg_error *err)
{
    struct str type = text_of_member(members, count, "type", arena);
    bool named = str_is(type, "function") || str_is(type, "hosted_tool") || str_is(type, "custom");
    struct str name = named ? text_of_member(members, count, "name", arena) : type;
    const struct json_member *object = chat_find(members, count, "function", JSON_OBJECT);
    if (str_is(type, "function") && object != NULL) {
        struct json_member *inside = NULL;
        size_t inside_count = 0;
        int code = json_members(object->value, where, arena, &inside, &inside_count, err);
        if (code != SG_OK) {
            return code;
        }
        name = text_of_member(inside, inside_count, "name", arena);
    }
    bool own = str_is(type, "custom") || (str_is(type, "function") && client_has(request, name));
    *ret_offer = own ? -1 : shown_find(request, name);
    *ret_own = own || (str_is(type, "function") && *ret_offer < 0);
    return SG_OK;
}

static int allowed_tools_read(struct chat_request *request, const struct json_member *tools,
                              struct arena *arena, struct sg_error *err)
{
    struct chat_choice *choice = &request->choice;
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
        int code = json_members(choice->tools[i], "tool_choice", arena, &members, &count, err);
        if (code == SG_OK) {
            code = meant_find(request, members, count, "tool_choice", arena,
                              &choice->tool_offers[i], &own, err);
        }
        if (code != SG_OK) {
            return code;
        }
    }
    return SG_OK;
}

/* {"type":"allowed_tools","allowed_tools":{"mode":…,"tools":[…]}}; also with mode and tools not nested. */
static int allowed_read(struct chat_request *request, struct json_member *members, size_t count,
                        struct arena *arena, struct sg_error *err)
{
    const struct json_member *nested = chat_find(members, count, "allowed_tools", JSON_OBJECT);
    if (nested != NULL) {
        int code = json_members(nested->value, "tool_choice", arena, &members, &count, err);
        if (code != SG_OK) {
            return code;
        }
    }
    const struct json_member *mode = chat_find(members, count, "mode", JSON_STRING);
    const struct json_member *tools = chat_find(members, count, "tools", JSON_ARRAY);
    if (tools == NULL) {
        return SG_OK;
    }
    struct chat_choice *choice = &request->choice;
    choice->kind = CHAT_CHOICE_ALLOWED;
    if (mode != NULL) {
        choice->mode = mode->value;
        choice->mode_required = str_is(json_text_of(mode->value, arena), "required");
    }
    return allowed_tools_read(request, tools, arena, err);
}

static int choice_object_read(struct chat_request *request, struct arena *arena,
                              struct sg_error *err)
{
    struct json_member *members = NULL;
    size_t count = 0;
    int code =
        json_members(request->tool_choice->value, "tool_choice", arena, &members, &count, err);
    if (code != SG_OK) {
        return code;
    }
    if (str_is(text_of_member(members, count, "type", arena), "allowed_tools")) {
        return allowed_read(request, members, count, arena, err);
    }
    int offer = -1;
    bool own = false;
    code = meant_find(request, members, count, "tool_choice", arena, &offer, &own, err);
    if (code == SG_OK && offer >= 0) {
        request->choice.kind = CHAT_CHOICE_OURS;
        request->choice.offer = (size_t)offer;
    } else if (code == SG_OK && own) {
        request->choice.kind = CHAT_CHOICE_CLIENT;
    }
    return code;
}

int chat_choice_read(struct chat_request *request, struct arena *arena, struct sg_error *err)
{
    const struct json_member *choice = request->tool_choice;
    if (choice == NULL) {
        return SG_OK;
    }
    if (choice->value.type == JSON_OBJECT) {
        return choice_object_read(request, arena, err);
    }
    if (choice->value.type == JSON_STRING) {
        struct str text = json_text_of(choice->value, arena);
        if (str_is(text, "none")) {
            request->choice.kind = CHAT_CHOICE_NONE;
        } else if (str_is(text, "required")) {
            request->choice.kind = CHAT_CHOICE_REQUIRED;
        }
    }
    return SG_OK;
}

/* ---- edits ---- */

static struct str function_choice(const struct chat *chat, size_t offer)
{
    BUF_CLEANUP struct buf out = {0};
    (void)buf_puts(&out, "{\"type\":\"function\",\"function\":{\"name\":"); /* small: fits */
    (void)buf_put_json(&out, chat->request.shown[offer].name);
    (void)buf_puts(&out, "}}");
    CHECK(!out.overflow);
    return (struct str){check_alloc(arena_copy(chat->arena, buf_str(&out))), out.len};
}

static void value_replace(const struct chat *chat, struct splice *splice, struct json_value value,
                          struct str put)
{
    splice_add(splice, (size_t)(value.raw.data - chat->request.body->raw.data), value.raw.len, put);
}

/* The list with the hosted entries renamed, each offer once; or without them. True if something is left in it. */
static bool allowed_edit(const struct chat *chat, bool without_ours, struct splice *splice)
{
    const struct chat_choice *choice = &chat->request.choice;
    bool *gone = arena_get(chat->arena, choice->tools_count + 1);
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
            value_replace(chat, splice, choice->tools[i],
                          function_choice(chat, (size_t)choice->tool_offers[i]));
        }
    }
    splice_cut_elements(splice, chat->request.body->raw, choice->list, choice->tools,
                        choice->tools_count, gone);
    if (choice->mode_required && chat->call_made) {
        value_replace(chat, splice, choice->mode, STR("\"auto\""));
    }
    return true;
}

/* The last turn of an upstream that ignores tool choice: our tools are gone, and so is what names them. */
static void edit_without_tools(const struct chat *chat, bool tools_left, struct splice *splice,
                               bool *ret_cut)
{
    const struct chat_request *request = &chat->request;
    switch (request->choice.kind) {
    case CHAT_CHOICE_ALLOWED:
        *ret_cut = !tools_left || !allowed_edit(chat, true, splice);
        break;
    case CHAT_CHOICE_CLIENT:
        *ret_cut = !tools_left;
        break;
    case CHAT_CHOICE_OURS:
    case CHAT_CHOICE_REQUIRED:
        *ret_cut = true;
        break;
    default:
        *ret_cut = !tools_left && request->tool_choice != NULL;
        break;
    }
}

void chat_choice_edit(const struct chat *chat, const struct surface_turn_options *options,
                      bool tools_left, struct splice *splice, bool *ret_cut, const char **ret_put)
{
    const struct chat_request *request = &chat->request;
    const struct json_member *member = request->tool_choice;
    *ret_cut = false;
    *ret_put = NULL;
    if (options->last && options->remove_tools) {
        edit_without_tools(chat, tools_left, splice, ret_cut);
        return;
    }
    if (options->last && request->names_hosted && request->choice.kind != CHAT_CHOICE_CLIENT) {
        if (member != NULL) {
            value_replace(chat, splice, member->value, STR("\"none\""));
        } else {
            *ret_put = "\"none\"";
        }
        return;
    }
    if (request->choice.kind == CHAT_CHOICE_ALLOWED) {
        (void)allowed_edit(chat, false, splice); /* nothing goes as a whole here */
    } else if (request->choice.kind == CHAT_CHOICE_OURS) {
        value_replace(chat, splice, member->value,
                      chat->call_made ? STR("\"auto\"")
                                      : function_choice(chat, request->choice.offer));
    } else if (request->choice.kind == CHAT_CHOICE_REQUIRED && chat->call_made) {
        value_replace(chat, splice, member->value, STR("\"auto\""));
    }
}
