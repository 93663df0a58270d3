/* What the readers of requests share. */
#include "translate/reading.h"

#include "base/check.h"

#include <stdio.h>
#include <string.h>

enum { OBJECTS_MAX = 131072 }; /* read of one request: each takes some hundred bytes */

static const char unknown_field[] = "cannot be carried to the API of this model's server";

/* Does the operator's path reach this one? An index matches itself, and "[]" matches each. */
static bool path_reaches(const char *listed, const char *path)
{
    while (*listed != '\0') {
        if (listed[0] == '[' && listed[1] == ']' && path[0] == '[') {
            path += strcspn(path, "]");
            listed++;
        }
        if (*listed++ != *path++) {
            return false;
        }
    }
    return *path == '\0' || *path == '.' || *path == '[';
}

bool is_let_go(const struct reading *reading, const char *path)
{
    for (const char *const *one = reading->drop; one != NULL && *one != NULL; one++) {
        if (path_reaches(*one, path)) {
            return true;
        }
    }
    return false;
}

int refuse_field(const struct reading *reading, const char *path, const char *why,
                 struct sg_error *err)
{
    if (is_let_go(reading, path)) {
        return SG_OK;
    }
    return error_set_param(err, SG_E_INVALID, path,
                           "'%s' %s. Leave it out, or have the operator list it in 'drop_params'.",
                           path, why);
}

int wrong_type(const char *path, const char *expected, struct sg_error *err)
{
    return error_set_param(err, SG_E_INVALID, path, "'%s' must be %s.", path, expected);
}

static bool has_field(const struct field *fields, struct str name)
{
    for (; fields->name != NULL; fields++) {
        if (str_is(name, fields->name)) {
            return true;
        }
    }
    return false;
}

static int field_read(struct reading *reading, const struct json_member *member,
                      const struct field *field, struct sg_error *err)
{
    if (field->kind == FIELD_OPTION) {
        option_set(reading, field->option, field->name, member->value);
    }
    return field->read != NULL ? field->read(reading, member, err) : SG_OK;
}

/* In the order of the table, whatever the client's is: what is said to the model first comes first. */
int fields_read(struct reading *reading, const struct json_member *members, size_t count,
                const struct field *fields, struct sg_error *err)
{
    int code = SG_OK;
    for (const struct field *field = fields; code == SG_OK && field->name != NULL; field++) {
        const struct json_member *member = json_find(members, count, field->name);
        if (member != NULL && member->value.type != JSON_NULL) {
            code = field_read(reading, member, field, err);
        }
    }
    for (size_t i = 0; code == SG_OK && i < count; i++) {
        if (members[i].value.type != JSON_NULL && !has_field(fields, members[i].key)) {
            int len = (int)(members[i].key.len < 64 ? members[i].key.len : 64);
            const char *path = arena_printf(reading->arena, "%.*s", len, members[i].key.data);
            code = refuse_field(reading, path, unknown_field, err);
        }
    }
    return code == SG_OK && reading->wrong != NULL
               ? wrong_type(reading->wrong, reading->expected, err)
               : code;
}

static bool is_listed(const char *const *names, struct str name)
{
    for (; *names != NULL; names++) {
        if (str_is(name, *names)) {
            return true;
        }
    }
    return false;
}

int members_check(struct reading *reading, const char *path, const struct json_member *members,
                  size_t count, const char *const *known, struct sg_error *err)
{
    int code = SG_OK;
    if (++reading->objects > OBJECTS_MAX) {
        return error_set(
            err, SG_E_LIMIT,
            "The request has more than %d messages, parts and tools, which is too many "
            "for another API. Send fewer.",
            OBJECTS_MAX);
    }
    for (size_t i = 0; code == SG_OK && i < count; i++) {
        if (members[i].value.type == JSON_NULL || is_listed(known, members[i].key)) {
            continue;
        }
        int len = (int)(members[i].key.len < 64 ? members[i].key.len : 64);
        const char *whole = arena_printf(reading->arena, "%s.%.*s", path, len, members[i].key.data);
        code = refuse_field(reading, whole, unknown_field, err);
    }
    return code;
}

void option_set(struct reading *reading, enum option_kind kind, const char *path,
                struct json_value value)
{
    if (value.type != JSON_NULL) {
        reading->to->options[kind] = (struct option){true, path, value};
    }
}

struct json_value value_of(struct reading *reading, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    CHECK(len > 0 && (size_t)len < sizeof text);
    struct str raw = {text, (size_t)len};
    raw.data = check_alloc(arena_copy(reading->arena, raw));
    return (struct json_value){json_type_of(text[0]), raw};
}

const char *path_at(struct reading *reading, const char *path, const char *name)
{
    return arena_printf(reading->arena, "%s.%s", path, name);
}

const char *path_item(struct reading *reading, const char *path, size_t index)
{
    return arena_printf(reading->arena, "%s[%zu]", path, index);
}

/* ---- objects ---- */

const struct json_member *object_member(struct reading *reading, const struct object *o,
                                        const char *name, enum json_type type)
{
    static const char *const words[] = {[JSON_NUMBER] = "a number",
                                        [JSON_STRING] = "a string",
                                        [JSON_ARRAY] = "an array",
                                        [JSON_OBJECT] = "an object"};
    const struct json_member *member = json_find(o->members, o->count, name);
    if (member == NULL || member->value.type == JSON_NULL || member->value.type == type) {
        return member == NULL || member->value.type == JSON_NULL ? NULL : member;
    }
    if (reading->wrong == NULL) {
        reading->wrong = path_at(reading, o->path, name);
        reading->expected = words[type];
    }
    return NULL;
}

struct str object_text(struct reading *reading, const struct object *o, const char *name)
{
    const struct json_member *member = object_member(reading, o, name, JSON_STRING);
    return member == NULL ? (struct str){0} : json_text_of(member->value, reading->arena);
}

int object_open(struct reading *reading, const char *path, struct json_value value,
                struct object *ret, struct sg_error *err)
{
    struct json_member *members;
    *ret = (struct object){.path = path};
    if (value.type != JSON_OBJECT) {
        return wrong_type(path, "an object", err);
    }
    int code = json_members(value, path, reading->arena, &members, &ret->count, err);
    if (code == SG_OK) {
        ret->members = members;
        ret->type = object_text(reading, ret, "type");
    }
    return code;
}

/* ---- lists ---- */

/* Twice the room in the arena for a list that is full. Most have one element. */
static void *list_grown(struct reading *reading, const void *list, size_t count, size_t *room,
                        size_t size)
{
    *room = *room == 0 ? 1 : 2 * *room;
    void *more = arena_get(reading->arena, *room * size);
    if (count > 0) {
        memcpy(more, list, count * size);
    }
    return more;
}

struct message *message_add(struct reading *reading, enum role role, const char *path)
{
    struct conversation *to = reading->to;
    if (to->messages_count == reading->messages_room) {
        to->messages = list_grown(reading, to->messages, to->messages_count,
                                  &reading->messages_room, sizeof *to->messages);
    }
    struct message *message = &to->messages[to->messages_count++];
    *message = (struct message){.role = role, .path = path};
    return message;
}

static struct part *part_room(struct reading *reading, struct message *message)
{
    if (message->count == message->room) {
        message->parts = list_grown(reading, message->parts, message->count, &message->room,
                                    sizeof *message->parts);
    }
    return &message->parts[message->count++];
}

struct part *part_add(struct reading *reading, struct message *message, enum part_kind kind,
                      const char *path)
{
    struct part *part = part_room(reading, message);
    *part = (struct part){.kind = kind, .path = path};
    return part;
}

static struct message *part_spread(struct reading *reading, const struct message *whole,
                                   struct message *message, const struct part *part)
{
    enum role role = part->kind == PART_RESULT ? ROLE_USER : whole->role;
    if (message == NULL || message->role != role) {
        message = message_add(reading, role, whole->path);
        message->name = whole->name;
    }
    *part_room(reading, message) = *part;
    return message;
}

static bool has_results(const struct message *message)
{
    bool has_one = false;
    for (size_t i = 0; !has_one && i < message->count; i++) {
        has_one = message->parts[i].kind == PART_RESULT;
    }
    return has_one;
}

/* Of a user's parts the results come first: they belong to the calls before. */
void message_spread(struct reading *reading, const struct message *whole)
{
    struct message *message = NULL;
    bool is_user = whole->role == ROLE_USER;
    if (whole->count > 0 && !has_results(whole)) {
        *message_add(reading, whole->role, whole->path) = *whole;
        return;
    }
    for (size_t i = 0; i < whole->count; i++) {
        if (!is_user || whole->parts[i].kind == PART_RESULT) {
            message = part_spread(reading, whole, message, &whole->parts[i]);
        }
    }
    for (size_t i = 0; is_user && i < whole->count; i++) {
        if (whole->parts[i].kind != PART_RESULT) {
            message = part_spread(reading, whole, message, &whole->parts[i]);
        }
    }
}

int part_refuse(const struct reading *reading, struct message *message, const char *path,
                const char *why, struct sg_error *err)
{
    message->count--;
    return refuse_field(reading, path, why, err);
}

struct str words_join(struct reading *reading, const struct str *words, size_t count)
{
    size_t len = 0, at = 0;
    for (size_t i = 0; i < count; i++) {
        len += words[i].len;
    }
    char *all = check_alloc(arena_alloc(reading->arena, len + 1));
    for (size_t i = 0; i < count; i++) {
        if (words[i].len > 0) {
            memcpy(all + at, words[i].data, words[i].len);
        }
        at += words[i].len;
    }
    return (struct str){all, len};
}

/* ---- what all APIs have ---- */

int model_read(struct reading *reading, const struct json_member *member, struct sg_error *err)
{
    if (member->value.type != JSON_STRING) {
        return wrong_type("model", "a string", err);
    }
    reading->to->model = json_text_of(member->value, reading->arena);
    return SG_OK;
}

int stream_read(struct reading *reading, const struct json_member *member, struct sg_error *err)
{
    if (member->value.type != JSON_TRUE && member->value.type != JSON_FALSE) {
        return wrong_type("stream", "true or false", err);
    }
    reading->to->stream = member->value.type == JSON_TRUE;
    return SG_OK;
}

int functions_read(struct reading *reading, const struct json_member *tools,
                   int (*read)(struct reading *, const char *, struct json_value, struct function *,
                               struct sg_error *),
                   struct sg_error *err)
{
    struct conversation *to = reading->to;
    size_t count;
    int code = SG_OK;
    if (tools->value.type != JSON_ARRAY) {
        return wrong_type("tools", "an array of tools", err);
    }
    const struct json_value *values = json_elements(tools->value, reading->arena, &count);
    to->functions = arena_get(reading->arena, (count + 1) * sizeof *to->functions);
    for (size_t i = 0; code == SG_OK && i < count; i++) {
        struct function *function = &to->functions[to->functions_count];
        code = read(reading, path_item(reading, "tools", i), values[i], function, err);
        bool is_let_go = code == SG_OK && function->path == NULL;
        if (code == SG_OK && !is_let_go && function->name.len == 0) {
            code = wrong_type(function->path, "a tool with a name", err);
        }
        to->functions_count += code == SG_OK && !is_let_go;
    }
    return code;
}

/* ---- response formats ---- */

int format_read(struct reading *reading, const char *path, struct json_value format, bool is_nested,
                struct sg_error *err)
{
    static const char *const known[] = {"type",   "json_schema", "name", "description",
                                        "schema", "strict",      NULL};
    struct json_member *members;
    size_t count;
    if (format.type != JSON_OBJECT) {
        return wrong_type(path, "an object", err);
    }
    int code = json_members(format, path, reading->arena, &members, &count, err);
    code = code == SG_OK ? members_check(reading, path, members, count, known, err) : code;
    if (code != SG_OK) {
        return code;
    }
    struct str type = json_find_text(members, count, "type", reading->arena);
    const struct json_member *inner = json_find_type(members, count, "json_schema", JSON_OBJECT);
    if (is_nested && inner != NULL) {
        struct json_member *named;
        size_t named_count;
        const char *where = path_at(reading, path, "json_schema");
        code = json_members(inner->value, where, reading->arena, &named, &named_count, err);
        code = code == SG_OK ? members_check(reading, where, named, named_count, known + 2, err)
                             : code;
    }
    if (code != SG_OK) {
        return code;
    }
    if (str_is(type, "json_object")) {
        option_set(reading, OPTION_JSON, path, format);
    } else if (str_is(type, "json_schema") && (!is_nested || inner != NULL)) {
        option_set(reading, OPTION_SCHEMA, path, is_nested ? inner->value : format);
    } else if (!str_is(type, "text")) {
        return refuse_field(reading, path, "is of a type that this model's server does not have",
                            err);
    }
    return SG_OK;
}
