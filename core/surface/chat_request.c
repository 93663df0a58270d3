/* Reads a chat request: which tools are hosted, which names are taken, what the client wants. Nothing is changed here. */
#include "surface/chat.h"
#include "surface/openai_search.h"

#include "base/check.h"
#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>

static int offer_find(const struct tool_set *set, struct str type)
{
    for (size_t i = 0; i < set->offers_count; i++) {
        if (openai_offer_answers(&set->offers[i], type)) {
            return (int)i;
        }
    }
    return -1;
}

static bool is_search(const struct tool_set *set, int offer)
{
    return str_is(set->offers[offer].hosted, "web_search");
}

/* The name that an entry of the client's own is called by: {"type":"function","function":{"name"}} and the like. */
static int own_name_read(struct tool_entry *entry, struct str type, const char *where,
                         const struct json_member *members, size_t count, struct arena *arena,
                         struct sg_error *err)
{
    const char *inner = str_is(type, "custom") ? "custom" : "function";
    const struct json_member *object = json_find_type(members, count, inner, JSON_OBJECT);
    if (object == NULL) {
        entry->function = json_find_text(members, count, "name", arena);
        return SG_OK;
    }
    char inner_where[64];
    (void)snprintf(inner_where, sizeof inner_where, "%s.%s", where, inner); /* fits */
    struct json_member *inside = NULL;
    size_t inside_count = 0;
    int code = json_members(object->value, inner_where, arena, &inside, &inside_count, err);
    if (code == SG_OK) {
        entry->function = json_find_text(inside, inside_count, "name", arena);
    }
    return code;
}

/* {"type":"code_interpreter","container":"cntr_…"} means variables and files of before: to run in a fresh container
 * would be worse than to refuse. Whether there is one of that id makes no difference, so none can be probed for. */
static bool names_container(const struct json_member *members, size_t count, struct arena *arena)
{
    return str_starts(json_find_text(members, count, "container", arena), STR("cntr_"));
}

static int entry_read(const struct tool_read *read, struct sg_error *err)
{
    struct chat_request *request = read->context;
    struct tool_entry *entry = read->entry;
    const struct json_member *members = read->members;
    size_t count = read->count;
    struct arena *arena = read->arena;
    char where[48];
    struct str type = json_find_text(members, count, "type", arena);
    if (str_is(type, "function") || str_is(type, "custom") || type.len == 0) {
        return own_name_read(entry, type, read->where, members, count, arena, err);
    }
    entry->offer = offer_find(&request->set, type);
    if (entry->offer >= 0 && names_container(members, count, arena)) {
        (void)snprintf(where, sizeof where, "%s.container", read->where); /* fits */
        return error_set_param(err, SG_E_INVALID, where,
                               "A container cannot be named in a chat request; "
                               "metadata.session_id says whose variables and files it finds.");
    }
    const struct json_member *cache = json_find(members, count, "cache_control");
    if (entry->offer >= 0 && cache != NULL) {
        entry->cache_control = cache->value.raw;
    }
    return entry->offer >= 0 && is_search(&request->set, entry->offer)
               ? openai_search_read(members, count, read->where, arena, &entry->options, err)
               : SG_OK;
}

static int n_check(const struct chat_request *request, struct sg_error *err)
{
    const struct json_member *n =
        json_find_type(request->body->members, request->body->count, "n", JSON_NUMBER);
    if (n == NULL) {
        return SG_OK;
    }
    char text[32]; /* a longer number is cut, which makes it no smaller than 2 if it was not */
    (void)snprintf(text, sizeof text, "%.*s", (int)(n->value.raw.len < 31 ? n->value.raw.len : 31),
                   n->value.raw.data);
    if (strtod(text, NULL) > 1) {
        return error_set_param(err, SG_E_INVALID, "n", "n must be 1 in %s, not %s",
                               tools_reason(&request->set), text);
    }
    return SG_OK;
}

/* `web_search_options`, chat's own way of naming the hosted search, counts as an entry where ours answers it; what an entry
 * of `tools` asks stands before what it asks. */
static int search_options_read(struct chat_request *request, struct arena *arena,
                               struct sg_error *err)
{
    const struct json_text *body = request->body;
    struct json_member *members;
    struct str asked;
    size_t count;
    int offer = offer_find(&request->set, STR("web_search"));
    const struct json_member *options =
        json_find_type(body->members, body->count, "web_search_options", JSON_OBJECT);
    if (options == NULL || offer < 0) {
        return SG_OK;
    }
    request->search_options = options;
    tools_append(&request->set, (size_t)offer);
    int code = json_members(options->value, "web_search_options", arena, &members, &count, err);
    if (code == SG_OK) {
        code = openai_search_read(members, count, "web_search_options", arena, &asked, err);
    }
    if (code == SG_OK && request->set.shown[offer].options.len == 0) {
        request->set.shown[offer].options = asked;
    }
    return code;
}

/* `always` counts as named, except with tool choice none. */
static bool refuses_tools(const struct chat_request *request)
{
    return request->choice.member != NULL && str_is(request->choice.member->value.raw, "\"none\"");
}

int chat_tools_read(struct chat_request *request, const struct surface_input *input,
                    struct arena *arena, struct sg_error *err)
{
    const struct json_text *body = input->body;
    *request = (struct chat_request){.body = body, .memory = input->memory};
    tools_init(&request->set, input, arena);
    request->choice.member = json_find(body->members, body->count, "tool_choice");
    request->messages = json_find(body->members, body->count, "messages");
    if (input->offers_count == 0) {
        return SG_OK;
    }
    int code = tools_read(&request->set, entry_read, request, arena, err);
    code = code == SG_OK ? search_options_read(request, arena, err) : code;
    if (code != SG_OK) {
        return code;
    }
    if (!refuses_tools(request)) {
        tools_mark_always(&request->set, openai_kinds);
    }
    return request->set.names_hosted ? n_check(request, err) : SG_OK;
}

/* ---- the rest ---- */

static bool member_is_true(const struct json_member *members, size_t count, const char *name)
{
    return json_find_type(members, count, name, JSON_TRUE) != NULL;
}

static int options_read(struct chat_request *request, struct arena *arena, struct sg_error *err)
{
    const struct json_text *body = request->body;
    request->stream = json_find(body->members, body->count, "stream");
    request->stream_options = json_find(body->members, body->count, "stream_options");
    request->wants_stream = member_is_true(body->members, body->count, "stream");
    request->has_functions = json_find(body->members, body->count, "functions") != NULL;
    request->parallel_off =
        json_find_type(body->members, body->count, "parallel_tool_calls", JSON_FALSE) != NULL;
    const struct json_member *format =
        json_find_type(body->members, body->count, "response_format", JSON_OBJECT);
    struct json_member *members = NULL;
    size_t count = 0;
    int code = SG_OK;
    if (format != NULL) {
        code = json_members(format->value, "response_format", arena, &members, &count, err);
        struct str type = code == SG_OK ? json_find_text(members, count, "type", arena) : STR("");
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
    static const struct tool_form form = {
        "{\"type\":\"function\",\"function\":{\"name\":", "parameters", "}"};
    CHECK(request->body != NULL);
    int code = tools_define(&request->set, &form, arena, err);
    if (code == SG_OK) {
        code = chat_messages_read(request, arena, err);
    }
    if (code == SG_OK) {
        code = options_read(request, arena, err);
    }
    return code == SG_OK ? openai_choice_read(&request->choice, &request->set, arena, err) : code;
}
