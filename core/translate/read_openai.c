/* What both APIs of OpenAI have alike: parts of messages, rows of results, and `tool_choice`, whose names chat writes one level
 * deeper. */
#include "translate/reading.h"

int read_text_part(struct reading *reading, const struct object *o, struct message *message,
                   struct sg_error *err)
{
    (void)err;
    part_add(reading, message, PART_TEXT, o->path)->text = object_text(reading, o, "text");
    return SG_OK;
}

int read_refusal_part(struct reading *reading, const struct object *o, struct message *message,
                      struct sg_error *err)
{
    (void)err;
    part_add(reading, message, PART_REFUSAL, o->path)->text = object_text(reading, o, "refusal");
    return SG_OK;
}

static int part_read(struct reading *reading, const struct part_form *forms, const char *path,
                     struct json_value value, struct message *message, struct sg_error *err)
{
    struct object o;
    int code = object_open(reading, path, value, &o, err);
    for (; code == SG_OK && forms->type != NULL; forms++) {
        if (str_is(o.type, forms->type)) {
            code = members_check(reading, path, o.members, o.count, forms->members, err);
            return code == SG_OK ? forms->read(reading, &o, message, err) : code;
        }
    }
    return code == SG_OK ? refuse_field(reading, path_at(reading, path, "type"),
                                        "is of a kind that this model's server does not have", err)
                         : code;
}

int read_openai_content(struct reading *reading, const struct part_form *forms, const char *path,
                        const struct json_member *content, enum part_kind kind,
                        struct message *message, struct sg_error *err)
{
    int code = SG_OK;
    if (content == NULL || content->value.type == JSON_NULL) {
        return SG_OK;
    }
    if (content->value.type == JSON_STRING) {
        part_add(reading, message, kind, path)->text = json_text_of(content->value, reading->arena);
        return SG_OK;
    }
    if (content->value.type != JSON_ARRAY) {
        return wrong_type(path, "a string or an array of parts", err);
    }
    struct json_walk walk = json_walk_of(content->value);
    struct json_value value;
    for (size_t i = 0; code == SG_OK && json_walk_element(&walk, &value); i++) {
        code = part_read(reading, forms, path_item(reading, path, i), value, message, err);
    }
    return code;
}

bool message_is_results(const struct message *message)
{
    return message->role == ROLE_USER && message->count > 0 &&
           message->parts[message->count - 1].kind == PART_RESULT;
}

struct message *message_for_results(struct reading *reading, const char *path)
{
    struct conversation *to = reading->to;
    struct message *last = to->messages_count == 0 ? NULL : &to->messages[to->messages_count - 1];
    return last != NULL && message_is_results(last) ? last : message_add(reading, ROLE_USER, path);
}

/* ---- tool_choice ---- */

static const char path[] = "tool_choice";

struct choosing {
    struct reading *reading;
    bool is_nested;
};

/* The name in {"type": "function", "name": …} or {"type": "function", "function": {"name": …}}. */
static int name_read(const struct choosing *c, const struct json_member *members, size_t count,
                     struct str type, struct str *ret, struct sg_error *err)
{
    struct arena *arena = c->reading->arena;
    const char *inside = str_is(type, "custom") ? "custom" : "function";
    const struct json_member *inner = json_find_type(members, count, inside, JSON_OBJECT);
    struct json_member *deeper = NULL;
    size_t deeper_count = 0;
    int code = SG_OK;
    if (c->is_nested && inner != NULL) {
        code = json_members(inner->value, path, arena, &deeper, &deeper_count, err);
    }
    if (code == SG_OK) {
        *ret = c->is_nested ? json_find_text(deeper, deeper_count, "name", arena)
                            : json_find_text(members, count, "name", arena);
    }
    bool is_function = str_is(type, "function") || str_is(type, "custom");
    return code != SG_OK || (is_function && ret->len > 0)
               ? code
               : refuse_field(c->reading, path,
                              "names a tool that only the vendor's own server has", err);
}

static int allowed_read(const struct choosing *c, const struct json_member *members, size_t count,
                        struct sg_error *err)
{
    struct arena *arena = c->reading->arena;
    struct choice *choice = &c->reading->to->choice;
    const struct json_member *tools = json_find_type(members, count, "tools", JSON_ARRAY);
    size_t tools_count = 0;
    int code = SG_OK;
    if (tools == NULL) {
        return wrong_type("tool_choice.tools", "an array of tools", err);
    }
    const struct json_value *values = json_elements(tools->value, arena, &tools_count);
    choice->kind = CHOICE_ALLOWED;
    choice->is_required = str_is(json_find_text(members, count, "mode", arena), "required");
    choice->names = arena_get(arena, (tools_count + 1) * sizeof *choice->names);
    for (size_t i = 0; code == SG_OK && i < tools_count; i++) {
        struct json_member *tool;
        size_t tool_count;
        if (values[i].type != JSON_OBJECT) {
            return wrong_type("tool_choice.tools", "an array of tools", err);
        }
        code = json_members(values[i], path, arena, &tool, &tool_count, err);
        struct str type =
            code == SG_OK ? json_find_text(tool, tool_count, "type", arena) : (struct str){0};
        struct str name = {0};
        code = code == SG_OK ? name_read(c, tool, tool_count, type, &name, err) : code;
        if (code == SG_OK && name.len > 0) {
            choice->names[choice->count++] = name;
        }
    }
    return code;
}

static int word_read(struct choice *choice, struct str word, struct sg_error *err)
{
    choice->kind = str_is(word, "auto")       ? CHOICE_AUTO
                   : str_is(word, "none")     ? CHOICE_NONE
                   : str_is(word, "required") ? CHOICE_REQUIRED
                                              : CHOICE_UNSAID;
    return choice->kind != CHOICE_UNSAID
               ? SG_OK
               : wrong_type(path, "'auto', 'none', 'required' or an object", err);
}

int read_openai_choice(struct reading *reading, const struct json_member *member, bool is_nested,
                       struct sg_error *err)
{
    const struct choosing c = {reading, is_nested};
    struct choice *choice = &reading->to->choice;
    struct json_member *members, *inner;
    size_t count, inner_count;
    if (member->value.type == JSON_STRING) {
        return word_read(choice, json_text_of(member->value, reading->arena), err);
    }
    if (member->value.type != JSON_OBJECT) {
        return wrong_type(path, "'auto', 'none', 'required' or an object", err);
    }
    int code = json_members(member->value, path, reading->arena, &members, &count, err);
    if (code != SG_OK) {
        return code;
    }
    struct str type = json_find_text(members, count, "type", reading->arena);
    const struct json_member *allowed =
        json_find_type(members, count, "allowed_tools", JSON_OBJECT);
    if (str_is(type, "allowed_tools") && is_nested && allowed != NULL) {
        code = json_members(allowed->value, path, reading->arena, &inner, &inner_count, err);
        return code == SG_OK ? allowed_read(&c, inner, inner_count, err) : code;
    }
    if (str_is(type, "allowed_tools")) {
        return allowed_read(&c, members, count, err);
    }
    choice->is_custom = str_is(type, "custom");
    code = name_read(&c, members, count, type, &choice->name, err);
    choice->kind = code == SG_OK && choice->name.len > 0 ? CHOICE_FUNCTION : CHOICE_UNSAID;
    return code;
}
