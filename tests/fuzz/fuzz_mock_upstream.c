/* The mock upstream's three forms: any bytes as a request, read, checked strictly and answered, whole and streamed. The first
 * byte says which form. What comes out is JSON, and whole events. */
#include "../../plugins/mock/upstream.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void demand_json(const struct text *text)
{
    cJSON *parsed = cJSON_ParseWithLength(text->data, text->len);
    demand(parsed != NULL);
    cJSON_Delete(parsed);
}

static void demand_events(const struct pieces *p)
{
    size_t from = 0;
    for (size_t i = 0; i < pieces_count(p); i++) {
        size_t end;
        memcpy(&end, p->ends.data + i * sizeof end, sizeof end);
        demand(end >= from + 3 && memcmp(p->bytes.data + end - 2, "\n\n", 2) == 0);
        demand(memchr(p->bytes.data + from, '\0', end - from) == NULL);
        from = end;
    }
}

static void write_all(const struct form *form, const struct answer *answer, struct problem *problem)
{
    struct pieces json = {0}, stream = {0};
    struct text error = {0};
    form->write_json(answer, &json);
    form->write_stream(answer, &stream);
    problem->code = "server_error";
    form->write_error_event(answer, pieces_count(&stream) / 2, problem, &stream);
    form->write_error(problem, 400, &error);
    demand_json(&json.bytes);
    demand_json(&error);
    demand_events(&stream);
    pieces_clear(&json);
    pieces_clear(&stream);
    text_clear(&error);
}

static void answer_request(const struct form *form, const cJSON *request, size_t bytes)
{
    struct conversation *c = calloc(1, sizeof *c);
    struct reply *reply = calloc(1, sizeof *reply);
    struct problem problem = {0};
    demand(c != NULL && reply != NULL);
    *c = (struct conversation){
        .request = request, .request_bytes = bytes, .tokens_max = -1, .turn = 1};
    form->read(c, &problem);
    form->check(request, &problem);
    reply_decide(reply, c);
    reply_limit(reply, c->tokens_max);
    text_puts(&reply->reasoning, reply->content.len % 2 == 0 ? "" : "because");
    struct answer answer = {reply, c, 8};
    write_all(form, &answer, &problem);
    text_clear(&problem.message);
    reply_clear(reply);
    conversation_clear(c);
    free(reply);
    free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct form *const forms[] = {&form_chat, &form_responses, &form_messages};
    if (size < 2) {
        return 0;
    }
    cJSON *request = cJSON_ParseWithLength((const char *)data + 1, size - 1);
    if (cJSON_IsObject(request)) {
        answer_request(forms[data[0] % 3], request, size - 1);
    }
    cJSON_Delete(request);
    return 0;
}
