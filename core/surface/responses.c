/* The Responses surface, /v1/responses: its table of functions, and an exchange's life. */
#include "surface/responses.h"

#include "base/check.h"
#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>

struct responses *responses_of(struct surface_exchange *exchange)
{
    struct responses *r = (struct responses *)exchange;
    CHECK_MAGIC(r, RESPONSES_MAGIC);
    return r;
}

const struct responses *responses_of_const(const struct surface_exchange *exchange)
{
    const struct responses *r = (const struct responses *)exchange;
    CHECK_MAGIC(r, RESPONSES_MAGIC);
    return r;
}

static int responses_looks_for(const struct surface_input *input, struct arena *arena, bool *ret,
                               struct sg_error *err)
{
    struct responses_request request;
    responses_request_init(&request, input, arena);
    /* Where nothing is offered nobody minds how the tools are written. */
    int code = input->offers_count == 0 ? SG_OK : responses_tools_read(&request, arena, err);
    if (code == SG_OK) {
        *ret = request.set.names_hosted || responses_input_is_ours(&request, arena);
    }
    return code;
}

static int responses_open(const struct surface_input *input, struct arena *arena,
                          struct surface_exchange **ret, struct sg_error *err)
{
    struct responses_request request;
    CHECK(input->container != NULL);
    responses_request_init(&request, input, arena);
    int code = responses_tools_read(&request, arena, err);
    if (code == SG_OK) {
        code = responses_request_read(&request, arena, err);
    }
    if (code != SG_OK) {
        return code;
    }
    struct responses *r = check_alloc(calloc(1, sizeof *r));
    r->magic = RESPONSES_MAGIC;
    r->arena = arena;
    r->request = request;
    r->container = *input->container;
    r->usage_last = input->usage_last;
    r->answer_id = str_of(check_alloc(arena_copy(arena, str_of(input->answer_id))));
    r->used = SURFACE_USAGE_NONE;
    r->status = "in_progress";
    r->history.max = 2 * LIMIT_BODY_BYTES; /* more goes up in no request */
    r->turns_noted.max = LIMIT_RECORD_BYTES;
    *ret = (struct surface_exchange *)r;
    return SG_OK;
}

static void responses_free(struct surface_exchange *exchange)
{
    if (exchange == NULL) {
        return;
    }
    struct responses *r = responses_of(exchange);
    responses_turn_free(r->turn);
    responses_turn_free(r->last);
    for (size_t i = 0; i < r->shown_count; i++) {
        responses_shown_free(r->shown[i]);
    }
    free(r->shown);
    struct buf *const owned[] = {&r->history, &r->turns_noted, &r->created,
                                 &r->model,   &r->tier,        &r->usage};
    for (size_t i = 0; i < COUNT_OF(owned); i++) {
        buf_clear(owned[i]);
    }
    r->magic = 0;
    free(r);
}

static bool responses_wants_stream(const struct surface_exchange *exchange)
{
    return responses_of_const(exchange)->request.wants_stream;
}

static bool responses_runs_nothing(const struct surface_exchange *exchange)
{
    return responses_of_const(exchange)->request.choice.kind == TOOL_CHOICE_NONE;
}

static size_t responses_calls_max(const struct surface_exchange *exchange)
{
    return responses_of_const(exchange)->request.calls_max;
}

static struct surface_container responses_container(const struct surface_exchange *exchange)
{
    const struct responses *r = responses_of_const(exchange);
    struct json_value named = r->request.container;
    if (named.raw.len > 0) {
        struct str id = json_text_of(named, r->arena);
        return (struct surface_container){.id = id, .given = id, .is_demanded = true};
    }
    struct str id = r->request.history_container;
    return (struct surface_container){.id = id, .given = id};
}

static size_t responses_turn_bytes(const struct surface_exchange *exchange)
{
    const struct responses_turn *turn = responses_of_const(exchange)->turn;
    return turn->kept_bytes + turn->json.len + turn_stream_held(&turn->stream);
}

static bool responses_turn_is_done(const struct surface_exchange *exchange)
{
    const struct responses_turn *turn = responses_of_const(exchange)->turn;
    return turn != NULL && turn->is_whole;
}

static struct surface_usage responses_usage(const struct surface_exchange *exchange)
{
    return responses_of_const(exchange)->used;
}

const struct surface surface_responses = {
    .name = "responses",
    .path = "/responses",
    .looks_for = responses_looks_for,
    .answers = openai_offers_answer,
    .open = responses_open,
    .free = responses_free,
    .wants_stream = responses_wants_stream,
    .runs_nothing = responses_runs_nothing,
    .container = responses_container,
    .calls_max = responses_calls_max,
    .turn_request = responses_turn_request,
    .turn_begin = responses_turn_begin,
    .turn_feed = responses_turn_feed,
    .turn_bytes = responses_turn_bytes,
    .turn_is_done = responses_turn_is_done,
    .turn_end = responses_turn_end,
    .call_begin = responses_call_begin,
    .call_end = responses_call_end,
    .results_cut = responses_results_cut,
    .finish = responses_finish,
    .fail = responses_fail,
    .usage = responses_usage,
    .keep_alive = ": keep-alive\n\n",
    .error_body = openai_error_body,
};
