/* Reads a Responses request: which tools are hosted, which names are taken, what the client wants. Nothing is changed
 * here. */
#include "surface/openai_search.h"
#include "surface/responses.h"

#include "base/check.h"
#include "base/limits.h"

#include <stdio.h>

/* ---- tools ---- */

static int offer_find(const struct tool_set *set, struct str type)
{
    for (size_t i = 0; i < set->offers_count; i++) {
        if (openai_offer_answers(&set->offers[i], type)) {
            return (int)i;
        }
    }
    return -1;
}

static int container_refuse(const char *where, struct sg_error *err)
{
    return error_set_param(err, SG_E_INVALID, where,
                           "%s must be a container's id or {\"type\": \"auto\"}", where);
}

/* {"type":"auto"}. An id in it, or files, would be left out without a word. */
static int auto_check(struct json_value value, const char *where, struct arena *arena,
                      struct sg_error *err)
{
    struct json_member *members = NULL;
    size_t count = 0, files_count = 0;
    int code = json_members(value, where, arena, &members, &count, err);
    if (code != SG_OK) {
        return code;
    }
    const struct json_member *type = json_find(members, count, "type");
    const struct json_member *files = json_find_type(members, count, "file_ids", JSON_ARRAY);
    if (type != NULL && !str_is(json_find_text(members, count, "type", arena), "auto")) {
        return container_refuse(where, err);
    }
    if (json_find(members, count, "id") != NULL) {
        return container_refuse(where, err);
    }
    if (files != NULL) {
        (void)json_elements(files->value, arena, &files_count); /* only how many */
    }
    return files_count == 0
               ? SG_OK
               : error_set_param(err, SG_E_INVALID, where,
                                 "%s.file_ids: there are no uploaded files on this gateway", where);
}

/* The first container that is named is the request's. */
static int container_read(struct responses_request *request, struct json_value value,
                          const char *entry, struct arena *arena, struct sg_error *err)
{
    char where[64];
    (void)snprintf(where, sizeof where, "%s.container", entry); /* fits */
    if (value.type == JSON_OBJECT) {
        return auto_check(value, where, arena, err);
    }
    if (value.type == JSON_NULL) {
        return SG_OK;
    }
    if (value.type != JSON_STRING || value.raw.len == 2) {
        return container_refuse(where, err);
    }
    if (request->container.raw.len == 0) {
        request->container = value;
    }
    return SG_OK;
}

static int entry_read(const struct tool_read *read, struct sg_error *err)
{
    struct responses_request *request = read->context;
    struct tool_entry *entry = read->entry;
    const struct json_member *members = read->members;
    size_t count = read->count;
    struct arena *arena = read->arena;
    struct str type = json_find_text(members, count, "type", arena);
    if (str_is(type, "function") || str_is(type, "custom") || type.len == 0) {
        entry->function = json_find_text(members, count, "name", arena);
        return SG_OK;
    }
    entry->type = type;
    entry->offer = offer_find(&request->set, type);
    if (entry->offer < 0) {
        return SG_OK;
    }
    const struct json_member *cache = json_find(members, count, "cache_control");
    entry->cache_control = cache == NULL ? (struct str){0} : cache->value.raw;
    if (str_is(request->set.offers[entry->offer].hosted, responses_web_search.hosted)) {
        return openai_search_read(members, count, read->where, arena, &entry->options, err);
    }
    const struct json_member *container = json_find(members, count, "container");
    return container == NULL ? SG_OK
                             : container_read(request, container->value, read->where, arena, err);
}

/* `always` counts as named, except with tool choice none. */
static bool refuses_tools(const struct responses_request *request)
{
    return request->choice.member != NULL && str_is(request->choice.member->value.raw, "\"none\"");
}

static const struct json_member *body_find(const struct responses_request *request,
                                           const char *name)
{
    return json_find(request->body->members, request->body->count, name);
}

/* What only the one who keeps the state of a response could do. */
static int state_check(const struct responses_request *request, struct sg_error *err)
{
    const struct json_member *background = body_find(request, "background");
    const struct json_member *conversation = body_find(request, "conversation");
    const char *reason = tools_reason(&request->set);
    if (background != NULL && background->value.type == JSON_TRUE) {
        return error_set_param(err, SG_E_INVALID, "background",
                               "background cannot be true in %s: nothing runs behind the answer.",
                               reason);
    }
    if (conversation != NULL && conversation->value.type != JSON_NULL) {
        return error_set_param(err, SG_E_INVALID, "conversation",
                               "conversation has no meaning in %s: say previous_response_id, or "
                               "send the whole input.",
                               reason);
    }
    return SG_OK;
}

void responses_request_init(struct responses_request *request, const struct surface_input *input,
                            struct arena *arena)
{
    *request = (struct responses_request){.body = input->body,
                                          .store = input->store,
                                          .memory = input->memory,
                                          .asks_for_reasoning = input->asks_for_reasoning};
    tools_init(&request->set, input, arena);
    request->choice.member = body_find(request, "tool_choice");
    request->input = body_find(request, "input");
    request->include = body_find(request, "include");
    request->previous = body_find(request, "previous_response_id");
    if (request->previous != NULL && request->previous->value.type == JSON_NULL) {
        request->previous = NULL;
    }
}

int responses_tools_read(struct responses_request *request, struct arena *arena,
                         struct sg_error *err)
{
    int code = tools_read(&request->set, entry_read, request, arena, err);
    if (code != SG_OK) {
        return code;
    }
    if (!refuses_tools(request)) {
        tools_mark_always(&request->set, openai_kinds);
    }
    return request->set.names_hosted ? state_check(request, err) : SG_OK;
}

/* ---- the rest ---- */

bool responses_includes(const struct json_member *include, const char *value)
{
    if (include == NULL || include->value.type != JSON_ARRAY) {
        return false;
    }
    struct json_walk walk = json_walk_of(include->value);
    struct json_value element;
    while (json_walk_element(&walk, &element)) {
        if (element.type == JSON_STRING && json_key_is(element.raw, value)) {
            return true;
        }
    }
    return false;
}

static int format_read(struct responses_request *request, struct arena *arena, struct sg_error *err)
{
    const struct json_member *text =
        json_find_type(request->body->members, request->body->count, "text", JSON_OBJECT);
    struct json_member *members = NULL;
    size_t count = 0;
    if (text == NULL) {
        return SG_OK;
    }
    int code = json_members(text->value, "text", arena, &members, &count, err);
    const struct json_member *format =
        code == SG_OK ? json_find_type(members, count, "format", JSON_OBJECT) : NULL;
    if (format == NULL) {
        return code;
    }
    code = json_members(format->value, "text.format", arena, &members, &count, err);
    if (code == SG_OK) {
        struct str type = json_find_text(members, count, "type", arena);
        request->holds_text = str_is(type, "json_object") || str_is(type, "json_schema");
    }
    return code;
}

static int calls_max_read(struct responses_request *request, struct sg_error *err)
{
    const struct json_member *max = body_find(request, "max_tool_calls");
    int64_t n;
    request->calls_max = SIZE_MAX;
    if (max == NULL || max->value.type == JSON_NULL) {
        return SG_OK;
    }
    if (!json_int_of(max->value, &n) || n < 0) {
        return error_set_param(err, SG_E_INVALID, "max_tool_calls",
                               "max_tool_calls must be a whole number, 0 or more");
    }
    request->calls_max = (size_t)n;
    return SG_OK;
}

static int shapes_check(const struct responses_request *request, struct sg_error *err)
{
    const struct json_member *input = request->input;
    if (input != NULL && input->value.type != JSON_STRING && input->value.type != JSON_ARRAY &&
        input->value.type != JSON_NULL) {
        return error_set_param(err, SG_E_INVALID, "input", "input must be a string or an array");
    }
    if (request->previous != NULL && request->previous->value.type != JSON_STRING) {
        return error_set_param(err, SG_E_INVALID, "previous_response_id",
                               "previous_response_id must be a string");
    }
    return SG_OK;
}

static void options_read(struct responses_request *request)
{
    const struct json_member *stream = body_find(request, "stream");
    const struct json_member *parallel = body_find(request, "parallel_tool_calls");
    const struct json_member *store = body_find(request, "store");
    request->stream = stream;
    request->wants_stream = stream != NULL && stream->value.type == JSON_TRUE;
    request->parallel_off = parallel != NULL && parallel->value.type == JSON_FALSE;
    request->keeps = request->store != NULL && !(store != NULL && store->value.type == JSON_FALSE);
}

int responses_request_read(struct responses_request *request, struct arena *arena,
                           struct sg_error *err)
{
    static const struct tool_form form = {"{\"type\":\"function\",\"name\":", "parameters",
                                          ",\"strict\":false"};
    CHECK(request->body != NULL);
    int code = state_check(request, err);
    if (code == SG_OK) {
        code = tools_define(&request->set, &form, arena, err);
    }
    if (code == SG_OK) {
        code = shapes_check(request, err);
    }
    if (code == SG_OK) {
        code = calls_max_read(request, err);
    }
    if (code == SG_OK) {
        options_read(request);
        code = format_read(request, arena, err);
    }
    if (code == SG_OK) {
        code = openai_choice_read(&request->choice, &request->set, arena, err);
    }
    return code == SG_OK ? responses_input_read(request, arena, err) : code;
}
