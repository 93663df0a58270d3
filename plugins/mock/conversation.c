/* What was asked, whatever the form: the readers tell it piece by piece. */
#include "upstream.h"

void conversation_clear(struct conversation *c)
{
    text_clear(&c->user);
    text_clear(&c->results);
}

static void put_content(struct text *out, const cJSON *content)
{
    if (cJSON_IsString(content)) {
        text_puts(out, content->valuestring);
        return;
    }
    const cJSON *part;
    bool first = true;
    cJSON_ArrayForEach(part, content)
    {
        const cJSON *text = json_member(part, "text");
        if (cJSON_IsString(text)) {
            text_puts(out, first ? "" : "\n");
            text_puts(out, text->valuestring);
            first = false;
        }
    }
}

void conversation_user(struct conversation *c, const cJSON *content)
{
    text_clear(&c->user);
    put_content(&c->user, content);
    c->turn = 1;
    c->ends_with_results = false;
}

void conversation_result(struct conversation *c, const cJSON *content)
{
    if (c->ends_with_results) {
        text_puts(&c->results, "\n");
    } else {
        text_clear(&c->results);
        c->turn++;
        c->ends_with_results = true;
    }
    put_content(&c->results, content);
}

void conversation_other(struct conversation *c)
{
    c->ends_with_results = false;
}

void conversation_tool(struct conversation *c, const cJSON *name, const cJSON *parameters)
{
    if (cJSON_IsString(name) && c->tools_count < TOOLS_MAX) {
        c->tools[c->tools_count++] = (struct tool){name->valuestring, parameters, true};
    }
}

void conversation_allow_none(struct conversation *c)
{
    for (size_t i = 0; i < c->tools_count; i++) {
        c->tools[i].allowed = false;
    }
}

void conversation_allow(struct conversation *c, const cJSON *name)
{
    for (size_t i = 0; i < c->tools_count; i++) {
        c->tools[i].allowed |= json_is(name, c->tools[i].name);
    }
}

void conversation_limit(struct conversation *c, const cJSON *tokens_max)
{
    if (cJSON_IsNumber(tokens_max) && tokens_max->valueint >= 0) {
        c->tokens_max = tokens_max->valueint;
    }
}
