/* Reads a messages request: which tools are hosted, which names are taken, which container is named, what the client
 * wants. Nothing is changed here. */
#include "surface/messages.h"
#include "surface/search_options.h"

#include "base/check.h"

#include <stdio.h>

/* ---- tools ---- */

static int search_read(const struct tool_read *read, struct sg_error *err)
{
    static const char *const names[] = {"max_uses", "allowed_domains", "blocked_domains",
                                        "user_location"};
    struct search_option options[COUNT_OF(names)];
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const struct json_member *member = json_find(read->members, read->count, names[i]);
        options[i] = (struct search_option){names[i], member == NULL ? NULL : &member->value};
    }
    struct search_asked asked = {.max_uses = options[0],
                                 .allowed = options[1],
                                 .blocked = options[2],
                                 .location = options[3],
                                 .either_domains = true};
    return search_options_write(&asked, read->where, read->arena, &read->entry->options, err);
}

static int entry_read(const struct tool_read *read, struct sg_error *err)
{
    struct messages_request *request = read->context;
    struct tool_entry *entry = read->entry;
    const struct json_member *members = read->members;
    size_t count = read->count;
    struct arena *arena = read->arena;
    char where[48];
    struct str type = json_find_text(members, count, "type", arena);
    entry->function = json_find_text(members, count, "name", arena);
    if (type.len == 0 || str_is(type, "custom")) {
        return SG_OK;
    }
    int offers[2];
    (void)snprintf(where, sizeof where, "%s.type", read->where); /* fits */
    int code = messages_kind_offers(&request->set, type, where, offers, err);
    if (code != SG_OK || offers[0] < 0) {
        return code; /* a tool of the vendor's own: its name is taken */
    }
    entry->offer = offers[0];
    entry->also = offers[1];
    entry->type = type;
    entry->function = (struct str){0};
    const struct json_member *cache = json_find(members, count, "cache_control");
    if (cache != NULL && cache->value.type != JSON_NULL) {
        entry->cache_control = cache->value.raw;
    }
    bool is_search = str_is(request->set.offers[entry->offer].hosted, "web_search");
    return is_search ? search_read(read, err) : SG_OK;
}

int messages_tools_read(struct messages_request *request, const struct surface_input *input,
                        struct arena *arena, struct sg_error *err)
{
    const struct json_text *body = input->body;
    *request = (struct messages_request){.body = body};
    tools_init(&request->set, input, arena);
    request->choice.member = json_find(body->members, body->count, "tool_choice");
    request->messages = json_find(body->members, body->count, "messages");
    if (input->offers_count == 0) {
        return SG_OK;
    }
    int code = tools_read(&request->set, entry_read, request, arena, err);
    if (code != SG_OK) {
        return code;
    }
    if (!messages_choice_refuses(request->choice.member)) {
        tools_mark_always(&request->set, messages_kinds_always(&request->set));
    }
    return SG_OK;
}

/* ---- the container ---- */

static int container_id_read(struct messages_request *request, struct json_value value,
                             struct arena *arena, struct sg_error *err)
{
    struct str given = json_text_of(value, arena), prefix = STR("container_");
    if (memchr(given.data, '\0', given.len) != NULL) {
        return error_set_param(err, SG_E_INVALID, "container", "container holds a NUL");
    }
    struct str id = given;
    if (str_starts(given, prefix)) {
        id = str_of(check_alloc(arena_printf(arena, "cntr_%.*s", (int)(given.len - prefix.len),
                                             given.data + prefix.len)));
    }
    request->container = (struct surface_container){.id = id, .given = given, .is_demanded = true};
    return SG_OK;
}

/* Files of the vendor's that would be put into the container: here they would be missing without a word. */
static bool has_skills(const struct json_member *members, size_t count)
{
    const struct json_member *skills = json_find_type(members, count, "skills", JSON_ARRAY);
    struct json_value first;
    struct json_walk walk = {0};
    if (skills != NULL) {
        walk = json_walk_of(skills->value);
    }
    return skills != NULL && json_walk_element(&walk, &first);
}

/* "container_…" or {"id": "container_…"}. */
static int container_read(struct messages_request *request, struct arena *arena,
                          struct sg_error *err)
{
    const struct json_member *member =
        json_find(request->body->members, request->body->count, "container");
    struct json_member *members = NULL;
    size_t count = 0;
    request->container_member = member;
    if (member == NULL || member->value.type == JSON_NULL) {
        return SG_OK;
    }
    struct json_value value = member->value;
    if (value.type == JSON_OBJECT) {
        int code = json_members(value, "container", arena, &members, &count, err);
        if (code != SG_OK) {
            return code;
        }
        if (has_skills(members, count)) {
            return error_set_param(err, SG_E_INVALID, "container.skills",
                                   "container.skills: there are no skills on this gateway");
        }
        const struct json_member *id = json_find(members, count, "id");
        if (id == NULL || id->value.type == JSON_NULL) {
            return SG_OK;
        }
        value = id->value;
    }
    if (value.type != JSON_STRING || value.raw.len == 2) {
        return error_set_param(err, SG_E_INVALID, "container",
                               "container must be a container's id, or an object with its id");
    }
    return container_id_read(request, value, arena, err);
}

/* ---- the rest ---- */

/* Is the answer asked for as JSON? {"type":"json_schema"} in output_config.format or output_format. */
static bool is_json_format(const struct json_member *format, struct arena *arena)
{
    struct json_walk walk = json_walk_of(format->value);
    struct str key;
    struct json_value value;
    while (json_walk_member(&walk, &key, &value)) {
        if (value.type == JSON_STRING && json_key_is(key, "type")) {
            return str_starts(json_text_of(value, arena), STR("json"));
        }
    }
    return false;
}

static int format_read(struct messages_request *request, struct arena *arena, struct sg_error *err)
{
    const struct json_text *body = request->body;
    const struct json_member *format =
        json_find_type(body->members, body->count, "output_format", JSON_OBJECT);
    const struct json_member *config =
        json_find_type(body->members, body->count, "output_config", JSON_OBJECT);
    struct json_member *members = NULL;
    size_t count = 0;
    request->holds_text = format != NULL && is_json_format(format, arena);
    if (config == NULL) {
        return SG_OK;
    }
    int code = json_members(config->value, "output_config", arena, &members, &count, err);
    format = code == SG_OK ? json_find_type(members, count, "format", JSON_OBJECT) : NULL;
    request->holds_text = request->holds_text || (format != NULL && is_json_format(format, arena));
    return code;
}

static int thinking_read(struct messages_request *request, struct arena *arena,
                         struct sg_error *err)
{
    const struct json_text *body = request->body;
    const struct json_member *thinking =
        json_find_type(body->members, body->count, "thinking", JSON_OBJECT);
    struct json_member *members = NULL;
    size_t count = 0;
    if (thinking == NULL) {
        return SG_OK;
    }
    int code = json_members(thinking->value, "thinking", arena, &members, &count, err);
    const struct json_member *budget =
        code == SG_OK ? json_find_type(members, count, "budget_tokens", JSON_NUMBER) : NULL;
    if (budget != NULL) {
        request->budget = budget->value;
    }
    return code;
}

int messages_request_read(struct messages_request *request, struct arena *arena,
                          struct sg_error *err)
{
    static const struct tool_form form = {"{\"name\":", "input_schema", ""};
    const struct json_text *body = request->body;
    CHECK(body != NULL);
    if (request->messages == NULL || request->messages->value.type != JSON_ARRAY) {
        return error_set_param(err, SG_E_INVALID, "messages", "messages must be an array");
    }
    int code = tools_define(&request->set, &form, arena, err);
    request->stream = json_find(body->members, body->count, "stream");
    request->wants_stream = json_find_type(body->members, body->count, "stream", JSON_TRUE) != NULL;
    request->max_tokens = json_find(body->members, body->count, "max_tokens");
    int (*const parts[])(struct messages_request *, struct arena *, struct sg_error *) = {
        container_read, format_read, thinking_read, messages_choice_read, messages_history_read};
    for (size_t i = 0; i < COUNT_OF(parts) && code == SG_OK; i++) {
        code = parts[i](request, arena, err);
    }
    bool runs = request->set.names_hosted && request->choice.force != MESSAGES_NONE;
    request->holds_text = request->holds_text && runs; /* else no call of ours can follow */
    return code;
}
