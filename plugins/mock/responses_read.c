/* Reading a Responses request: items instead of messages, flat tools. */
#include "openai.h"
#include "responses.h"

static void read_item(const cJSON *item, struct conversation *c)
{
    const cJSON *type = json_member(item, "type");
    if (json_is(type, "function_call_output") || json_is(type, "custom_tool_call_output")) {
        conversation_result(c, json_member(item, "output"));
    } else if (json_is(json_member(item, "role"), "user")) {
        conversation_user(c, json_member(item, "content"));
    } else {
        conversation_other(c);
    }
}

static void read_input(const cJSON *input, struct conversation *c)
{
    const cJSON *item;
    if (cJSON_IsString(input)) {
        conversation_user(c, input);
        return;
    }
    cJSON_ArrayForEach(item, input)
    {
        read_item(item, c);
    }
}

static void read_tools(const cJSON *tools, struct conversation *c)
{
    const cJSON *tool;
    cJSON_ArrayForEach(tool, tools)
    {
        if (json_is(json_member(tool, "type"), "function")) {
            conversation_tool(c, json_member(tool, "name"), json_member(tool, "parameters"));
        }
    }
}

static void read_choice(const cJSON *choice, struct conversation *c)
{
    const cJSON *name = json_member(choice, "name"), *one;
    if (json_is(json_member(choice, "type"), "allowed_tools")) {
        openai_read_mode(c, json_member(choice, "mode"));
        conversation_allow_none(c);
        cJSON_ArrayForEach(one, json_member(choice, "tools"))
        {
            conversation_allow(c, json_member(one, "name"));
        }
    } else if (cJSON_IsString(name)) {
        c->choice = CHOICE_NAMED;
        c->choice_name = name->valuestring;
    } else {
        openai_read_mode(c, choice);
    }
}

void responses_read(struct conversation *c, struct problem *problem)
{
    const cJSON *request = c->request;
    const cJSON *input = json_member(request, "input");
    const cJSON *previous = json_member(request, "previous_response_id");
    openai_read_model(c, problem);
    if (!cJSON_IsString(input) && !cJSON_IsArray(input)) {
        openai_missing("input", problem);
    }
    if (cJSON_IsString(previous)) { /* nothing is kept here */
        problem_set(problem, "previous_response_id", "previous_response_not_found",
                    "Previous response with id '%.60s' not found.", previous->valuestring);
    }
    conversation_limit(c, json_member(request, "max_output_tokens"));
    read_input(input, c);
    read_tools(json_member(request, "tools"), c);
    read_choice(json_member(request, "tool_choice"), c);
}
