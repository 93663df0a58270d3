/* Reading a Messages request: blocks in messages; results are what a user's message begins with. */
#include "messages.h"

static void read_user(const cJSON *content, struct conversation *c)
{
    const cJSON *block;
    bool has_results = false, has_others = cJSON_IsString(content);
    cJSON_ArrayForEach(block, content)
    {
        if (json_is(json_member(block, "type"), "tool_result")) {
            conversation_result(c, json_member(block, "content"));
            has_results = true;
        } else {
            has_others = true;
        }
    }
    if (has_others || !has_results) { /* the user said something besides */
        conversation_user(c, content);
    }
}

static void read_messages(const cJSON *messages, struct conversation *c)
{
    const cJSON *message;
    cJSON_ArrayForEach(message, messages)
    {
        if (json_is(json_member(message, "role"), "user")) {
            read_user(json_member(message, "content"), c);
        } else {
            conversation_other(c);
        }
    }
}

static void read_tools(const cJSON *tools, struct conversation *c)
{
    const cJSON *tool;
    cJSON_ArrayForEach(tool, tools)
    {
        const cJSON *type = json_member(tool, "type");
        if (type == NULL || cJSON_IsNull(type) || json_is(type, "custom")) {
            conversation_tool(c, json_member(tool, "name"), json_member(tool, "input_schema"));
        }
    }
}

static void read_choice(const cJSON *choice, struct conversation *c)
{
    const cJSON *type = json_member(choice, "type"), *name = json_member(choice, "name");
    if (json_is(type, "tool") && cJSON_IsString(name)) {
        c->choice = CHOICE_NAMED;
        c->choice_name = name->valuestring;
    } else {
        c->choice = json_is(type, "none")  ? CHOICE_NONE
                    : json_is(type, "any") ? CHOICE_REQUIRED
                                           : CHOICE_AUTO;
    }
}

static void require(bool is_there, const char *name, struct problem *problem)
{
    if (!is_there) {
        problem_set(problem, name, NULL, "%s: Field required", name);
    }
}

void messages_read(struct conversation *c, struct problem *problem)
{
    const cJSON *model = json_member(c->request, "model");
    const cJSON *messages = json_member(c->request, "messages");
    const cJSON *limit = json_member(c->request, "max_tokens");
    require(cJSON_IsString(model), "model", problem);
    require(cJSON_IsArray(messages), "messages", problem);
    require(cJSON_IsNumber(limit), "max_tokens", problem);
    c->model = cJSON_IsString(model) ? model->valuestring : "";
    conversation_limit(c, limit);
    read_messages(messages, c);
    read_tools(json_member(c->request, "tools"), c);
    read_choice(json_member(c->request, "tool_choice"), c);
}
