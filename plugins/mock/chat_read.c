/* Reading a Chat Completions request. */
#include "chat.h"
#include "openai.h"

static void read_messages(const cJSON *messages, struct conversation *c)
{
    const cJSON *message;
    cJSON_ArrayForEach(message, messages)
    {
        const cJSON *role = json_member(message, "role");
        const cJSON *content = json_member(message, "content");
        if (json_is(role, "user")) {
            conversation_user(c, content);
        } else if (json_is(role, "tool")) {
            conversation_result(c, content);
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
        const cJSON *function = json_member(tool, "function");
        if (json_is(json_member(tool, "type"), "function")) {
            conversation_tool(c, json_member(function, "name"),
                              json_member(function, "parameters"));
        }
    }
}

static void read_allowed(const cJSON *allowed, struct conversation *c)
{
    const cJSON *one;
    openai_read_mode(c, json_member(allowed, "mode"));
    conversation_allow_none(c);
    cJSON_ArrayForEach(one, json_member(allowed, "tools"))
    {
        conversation_allow(c, json_member(json_member(one, "function"), "name"));
    }
}

static void read_choice(const cJSON *choice, struct conversation *c)
{
    const cJSON *name = json_member(json_member(choice, "function"), "name");
    if (json_is(json_member(choice, "type"), "allowed_tools")) {
        read_allowed(json_member(choice, "allowed_tools"), c);
    } else if (cJSON_IsString(name)) {
        c->choice = CHOICE_NAMED;
        c->choice_name = name->valuestring;
    } else {
        openai_read_mode(c, choice);
    }
}

void chat_read(struct conversation *c, struct problem *problem)
{
    const cJSON *request = c->request;
    const cJSON *messages = json_member(request, "messages");
    openai_read_model(c, problem);
    if (!cJSON_IsArray(messages)) {
        openai_missing("messages", problem);
    }
    c->include_usage =
        cJSON_IsTrue(json_member(json_member(request, "stream_options"), "include_usage"));
    conversation_limit(c, json_member(request, "max_tokens"));
    conversation_limit(c, json_member(request, "max_completion_tokens"));
    read_messages(messages, c);
    read_tools(json_member(request, "tools"), c);
    read_choice(json_member(request, "tool_choice"), c);
}
