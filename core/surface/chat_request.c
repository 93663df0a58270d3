/* Reads a chat request: which tools are hosted, which names are taken, what the client wants. Nothing is changed here. */
#include "surface/chat.h"

#include "base/check.h"
#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>

bool chat_offer_answers(const struct surface_offer *offer, struct str type)
{
    if (offer->hosted.len == 0) {
        return false;
    }
    if (str_eq(offer->hosted, type)) {
        return true;
    }
    return str_is(offer->hosted, "web_search") &&
           (str_is(type, "browser_search") || str_starts(type, STR("web_search_")));
}

static int offer_find(const struct chat_request *request, struct str type)
{
    for (size_t i = 0; i < request->offers_count; i++) {
        if (chat_offer_answers(&request->offers[i], type)) {
            return (int)i;
        }
    }
    return -1;
}

static struct str text_member(const struct json_member *members, size_t count, const char *name,
                              struct arena *arena)
{
    const struct json_member *member = chat_find(members, count, name, JSON_STRING);
    return member == NULL ? (struct str){0} : json_text_of(member->value, arena);
}

const struct json_member *chat_find(const struct json_member *members, size_t count,
                                    const char *name, enum json_type type)
{
    const struct json_member *member = json_find(members, count, name);
    return member != NULL && member->value.type == type ? member : NULL;
}

/* The name that an entry of the client's own is called by: {"type":"function","function":{"name"}} and the like. */
static int own_name_read(struct chat_entry *entry, struct str type, const char *where,
                         const struct json_member *members, size_t count, struct arena *arena,
                         struct sg_error *err)
{
    const char *inner = str_is(type, "custom") ? "custom" : "function";
    const struct json_member *object = chat_find(members, count, inner, JSON_OBJECT);
    if (object == NULL) {
        entry->function = text_member(members, count, "name", arena);
        return SG_OK;
    }
    char inner_where[64];
    (void)snprintf(inner_where, sizeof inner_where, "%s.%s", where, inner); /* fits */
    struct json_member *inside = NULL;
    size_t inside_count = 0;
    int code = json_members(object->value, inner_where, arena, &inside, &inside_count, err);
    if (code == SG_OK) {
        entry->function = text_member(inside, inside_count, "name", arena);
    }
    return code;
}

/* {"type":"code_interpreter","container":"cntr_…"} means variables and files of before: to run in a fresh container
 * would be worse than to refuse. Whether there is one of that id makes no difference, so none can be probed for. */
static bool names_container(const struct json_member *members, size_t count, struct arena *arena)
{
    return str_starts(text_member(members, count, "container", arena), STR("cntr_"));
}

static int entry_read(struct chat_request *request, size_t i, struct arena *arena,
                      struct sg_error *err)
{
    struct chat_entry *entry = &request->entries[i];
    entry->offer = -1;
    if (entry->value.type != JSON_OBJECT) {
        return SG_OK;
    }
    char where[48];
    (void)snprintf(where, sizeof where, "tools[%zu]", i); /* fits */
    struct json_member *members = NULL;
    size_t count = 0;
    int code = json_members(entry->value, where, arena, &members, &count, err);
    if (code != SG_OK) {
        return code;
    }
    struct str type = text_member(members, count, "type", arena);
    if (str_is(type, "function") || str_is(type, "custom") || type.len == 0) {
        return own_name_read(entry, type, where, members, count, arena, err);
    }
    entry->offer = offer_find(request, type);
    if (entry->offer >= 0 && names_container(members, count, arena)) {
        (void)snprintf(where, sizeof where, "tools[%zu].container", i); /* fits */
        return error_set_param(err, SG_E_INVALID, where,
                               "A container cannot be named in a chat request; "
                               "metadata.session_id says whose variables and files it finds.");
    }
    const struct json_member *cache = json_find(members, count, "cache_control");
    if (entry->offer >= 0 && cache != NULL) {
        entry->cache_control = cache->value.raw;
    }
    return SG_OK;
}

static int entries_list(struct chat_request *request, struct json_value tools, struct arena *arena,
                        struct sg_error *err)
{
    struct json_walk walk = json_walk_of(tools);
    struct json_value value;
    size_t count = 0;
    while (json_walk_element(&walk, &value)) {
        if (++count > LIMIT_TOOLS) {
            return error_set_param(err, SG_E_INVALID, "tools", "More than %d tools", LIMIT_TOOLS);
        }
    }
    request->entries = arena_get(arena, (count + 1) * sizeof *request->entries);
    request->entries_count = count;
    walk = json_walk_of(tools);
    for (size_t i = 0; i < count; i++) {
        (void)json_walk_element(&walk, &request->entries[i].value); /* counted above */
    }
    return SG_OK;
}

/* Offers that the client's entries name are shown in the place of the first. */
static void named_mark(struct chat_request *request)
{
    for (size_t i = 0; i < request->entries_count; i++) {
        struct chat_entry *entry = &request->entries[i];
        if (entry->offer >= 0) {
            struct chat_offer *shown = &request->shown[entry->offer];
            entry->first = !shown->shown;
            shown->shown = true;
            request->names_hosted = true;
        }
    }
}

static bool kind_is_shown(const struct chat_request *request, struct str hosted)
{
    for (size_t i = 0; i < request->offers_count && hosted.len > 0; i++) {
        if (request->shown[i].shown && str_eq(request->offers[i].hosted, hosted)) {
            return true;
        }
    }
    return false;
}

/* `always` counts as named, except with tool choice none. */
static void always_mark(struct chat_request *request)
{
    const struct json_member *choice = request->tool_choice;
    if (choice != NULL && str_is(choice->value.raw, "\"none\"")) {
        return;
    }
    for (size_t i = 0; i < request->offers_count; i++) {
        const struct surface_offer *offer = &request->offers[i];
        bool always = offer->always || offer->hosted.len == 0;
        if (always && !request->shown[i].shown && !kind_is_shown(request, offer->hosted)) {
            request->shown[i].shown = true;
            request->shown[i].appended = true;
            request->names_hosted = true;
        }
    }
}

static int n_check(const struct chat_request *request, struct sg_error *err)
{
    const struct json_member *n =
        chat_find(request->body->members, request->body->count, "n", JSON_NUMBER);
    if (n == NULL) {
        return SG_OK;
    }
    char text[32]; /* a longer number is cut, which makes it no smaller than 2 if it was not */
    (void)snprintf(text, sizeof text, "%.*s", (int)(n->value.raw.len < 31 ? n->value.raw.len : 31),
                   n->value.raw.data);
    if (strtod(text, NULL) > 1) {
        return error_set_param(err, SG_E_INVALID, "n",
                               "n must be 1 in a request with hosted tools, not %s", text);
    }
    return SG_OK;
}

/* `web_search_options`, chat's own way of naming the hosted search, counts as an entry where ours answers it. */
static void search_options_mark(struct chat_request *request)
{
    const struct json_text *body = request->body;
    int offer = offer_find(request, STR("web_search"));
    const struct json_member *options =
        chat_find(body->members, body->count, "web_search_options", JSON_OBJECT);
    if (options == NULL || offer < 0) {
        return;
    }
    request->search_options = options;
    request->names_hosted = true;
    if (!request->shown[offer].shown) {
        request->shown[offer].shown = true;
        request->shown[offer].appended = true;
    }
}

int chat_tools_read(struct chat_request *request, const struct surface_input *input,
                    struct arena *arena, struct sg_error *err)
{
    const struct json_text *body = input->body;
    size_t count = input->offers_count;
    *request = (struct chat_request){
        .body = body, .offers = input->offers, .offers_count = count, .memory = input->memory};
    request->shown = arena_get(arena, (count + 1) * sizeof *request->shown);
    request->tools = json_find(body->members, body->count, "tools");
    request->tool_choice = json_find(body->members, body->count, "tool_choice");
    request->messages = json_find(body->members, body->count, "messages");
    if (count == 0) {
        return SG_OK;
    }
    if (request->tools != NULL && request->tools->value.type == JSON_ARRAY) {
        int code = entries_list(request, request->tools->value, arena, err);
        for (size_t i = 0; code == SG_OK && i < request->entries_count; i++) {
            code = entry_read(request, i, arena, err);
        }
        if (code != SG_OK) {
            return code;
        }
    }
    named_mark(request);
    search_options_mark(request);
    always_mark(request);
    return request->names_hosted ? n_check(request, err) : SG_OK;
}

/* ---- names and definitions ---- */

static bool name_is_taken(const struct chat_request *request, struct str name, size_t before)
{
    for (size_t i = 0; i < request->entries_count; i++) {
        if (str_eq(request->entries[i].function, name)) {
            return true;
        }
    }
    for (size_t i = 0; i < before; i++) {
        if (request->shown[i].shown && str_eq(request->shown[i].name, name)) {
            return true;
        }
    }
    return false;
}

/* The offer's own name, or the first of NAME_2, NAME_3 … that is free. */
static struct str name_choose(const struct chat_request *request, size_t offer, struct arena *arena)
{
    struct str name = request->offers[offer].name, chosen = name;
    for (unsigned i = 2; name_is_taken(request, chosen, offer); i++) {
        chosen = str_of(check_alloc(arena_printf(arena, "%.*s_%u", (int)name.len, name.data, i)));
    }
    return chosen;
}

static struct str definition_make(const struct surface_offer *offer, struct str name,
                                  struct str cache_control, struct arena *arena)
{
    BUF_CLEANUP struct buf out = {0};
    (void)buf_puts(&out, "{\"type\":\"function\",\"function\":{\"name\":"); /* small: fits */
    (void)buf_put_json(&out, name);
    (void)buf_puts(&out, ",\"description\":");
    (void)buf_put_json(&out, offer->description);
    (void)buf_puts(&out, ",\"parameters\":");
    (void)buf_append_str(&out, offer->parameters.len > 0
                                   ? offer->parameters
                                   : STR("{\"type\":\"object\",\"properties\":{}}"));
    (void)buf_putc(&out, '}');
    if (cache_control.len > 0) {
        (void)buf_puts(&out, ",\"cache_control\":");
        (void)buf_append_str(&out, cache_control);
    }
    (void)buf_putc(&out, '}');
    CHECK(!out.overflow);
    return (struct str){check_alloc(arena_copy(arena, buf_str(&out))), out.len};
}

static struct str cache_control_of(const struct chat_request *request, size_t offer)
{
    for (size_t i = 0; i < request->entries_count; i++) {
        if (request->entries[i].offer == (int)offer && request->entries[i].cache_control.len > 0) {
            return request->entries[i].cache_control;
        }
    }
    return (struct str){0};
}

static void definitions_make(struct chat_request *request, struct arena *arena)
{
    for (size_t i = 0; i < request->offers_count; i++) {
        struct chat_offer *shown = &request->shown[i];
        if (shown->shown) {
            shown->name = name_choose(request, i, arena);
            shown->definition = definition_make(&request->offers[i], shown->name,
                                                cache_control_of(request, i), arena);
        }
    }
}

/* ---- the rest ---- */

static bool member_is_true(const struct json_member *members, size_t count, const char *name)
{
    return chat_find(members, count, name, JSON_TRUE) != NULL;
}

static int options_read(struct chat_request *request, struct arena *arena, struct sg_error *err)
{
    const struct json_text *body = request->body;
    request->stream = json_find(body->members, body->count, "stream");
    request->stream_options = json_find(body->members, body->count, "stream_options");
    request->wants_stream = member_is_true(body->members, body->count, "stream");
    request->has_functions = json_find(body->members, body->count, "functions") != NULL;
    request->parallel_off =
        chat_find(body->members, body->count, "parallel_tool_calls", JSON_FALSE) != NULL;
    const struct json_member *format =
        chat_find(body->members, body->count, "response_format", JSON_OBJECT);
    struct json_member *members = NULL;
    size_t count = 0;
    int code = SG_OK;
    if (format != NULL) {
        code = json_members(format->value, "response_format", arena, &members, &count, err);
        struct str type = code == SG_OK ? text_member(members, count, "type", arena) : STR("");
        request->holds_text = str_is(type, "json_object") || str_is(type, "json_schema");
    }
    if (code == SG_OK && request->stream_options != NULL &&
        request->stream_options->value.type == JSON_OBJECT) {
        code = json_members(request->stream_options->value, "stream_options", arena,
                            &request->stream_option_members, &request->stream_option_count, err);
    }
    request->include_usage =
        request->wants_stream && member_is_true(request->stream_option_members,
                                                request->stream_option_count, "include_usage");
    return code;
}

int chat_request_read(struct chat_request *request, struct arena *arena, struct sg_error *err)
{
    CHECK(request->body != NULL);
    bool appends = false;
    for (size_t i = 0; i < request->offers_count; i++) {
        appends = appends || request->shown[i].appended;
    }
    const struct json_member *tools = request->tools;
    if (appends && tools != NULL && tools->value.type != JSON_ARRAY &&
        tools->value.type != JSON_NULL) {
        return error_set_param(err, SG_E_INVALID, "tools", "tools must be an array");
    }
    definitions_make(request, arena);
    int code = chat_messages_read(request, arena, err);
    if (code == SG_OK) {
        code = options_read(request, arena, err);
    }
    return code == SG_OK ? chat_choice_read(request, arena, err) : code;
}
