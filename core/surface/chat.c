/* The chat surface, /v1/chat/completions: its table of functions, and an exchange's life. */
#include "surface/chat.h"

#include "base/check.h"

#include <stdlib.h>

struct chat *chat_of(struct surface_exchange *exchange)
{
    struct chat *chat = (struct chat *)exchange;
    CHECK_MAGIC(chat, CHAT_MAGIC);
    return chat;
}

const struct chat *chat_of_const(const struct surface_exchange *exchange)
{
    const struct chat *chat = (const struct chat *)exchange;
    CHECK_MAGIC(chat, CHAT_MAGIC);
    return chat;
}

/* With several choices nothing of ours in the history is worth the loss of all but one: then it stays as it is. */
static bool wants_choices(const struct json_text *body)
{
    const struct json_member *n = json_find(body->members, body->count, "n");
    return n != NULL && !str_is(n->value.raw, "1") && n->value.type != JSON_NULL;
}

static int chat_looks_for(const struct surface_input *input, struct arena *arena, bool *ret,
                          struct sg_error *err)
{
    struct chat_request request;
    int code = chat_tools_read(&request, input, arena, err);
    if (code == SG_OK) {
        *ret =
            request.set.names_hosted || (input->offers_count > 0 && !wants_choices(input->body) &&
                                         chat_history_is_ours(&request));
    }
    return code;
}

static int chat_open(const struct surface_input *input, struct arena *arena,
                     struct surface_exchange **ret, struct sg_error *err)
{
    struct chat_request request;
    int code = chat_tools_read(&request, input, arena, err);
    if (code == SG_OK) {
        code = chat_request_read(&request, arena, err);
    }
    if (code != SG_OK) {
        return code;
    }
    struct chat *chat = check_alloc(calloc(1, sizeof *chat));
    chat->magic = CHAT_MAGIC;
    chat->arena = arena;
    chat->request = request;
    chat->usage_last = input->usage_last;
    chat->answer_id = str_of(check_alloc(arena_copy(arena, str_of(input->answer_id))));
    chat->used = SURFACE_USAGE_NONE;
    *ret = (struct surface_exchange *)chat;
    return SG_OK;
}

static void chat_free(struct surface_exchange *exchange)
{
    if (exchange == NULL) {
        return;
    }
    struct chat *chat = chat_of(exchange);
    chat_turn_free(chat->turn);
    chat_turn_free(chat->last);
    struct buf *const owned[] = {&chat->history, &chat->id,          &chat->created, &chat->model,
                                 &chat->before,  &chat->fingerprint, &chat->tier,    &chat->usage,
                                 &chat->runs,    &chat->citations};
    for (size_t i = 0; i < COUNT_OF(owned); i++) {
        buf_clear(owned[i]);
    }
    citation_reader_clear(&chat->reader);
    chat->magic = 0;
    free(chat);
}

static size_t chat_turn_bytes(const struct surface_exchange *exchange)
{
    const struct chat_turn *turn = chat_of_const(exchange)->turn;
    return turn->kept_bytes + turn->json.len + turn->held.len + turn_stream_held(&turn->stream);
}

static bool chat_turn_is_done(const struct surface_exchange *exchange)
{
    const struct chat_turn *turn = chat_of_const(exchange)->turn;
    return turn != NULL && turn->done;
}

static bool chat_wants_stream(const struct surface_exchange *exchange)
{
    return chat_of_const(exchange)->request.wants_stream;
}

static bool chat_runs_nothing(const struct surface_exchange *exchange)
{
    return chat_of_const(exchange)->request.choice.kind == TOOL_CHOICE_NONE;
}

static void chat_call_begin(struct surface_exchange *exchange, size_t call, struct str container_id,
                            struct buf *out)
{
    (void)container_id, (void)out; /* chat shows nothing while a tool runs */
    const struct chat *chat = chat_of(exchange);
    CHECK(chat->last != NULL);
    CHECK(call < chat->last->ours_count);
}

/* Nothing of the answer so far changes the event. */
static void chat_fail(struct surface_exchange *exchange, const struct sg_error *err,
                      struct buf *out)
{
    (void)exchange;
    (void)buf_puts(out, "data: "); /* overflow is the owner's to ask for */
    openai_error_body(err, "", out);
    (void)buf_puts(out, "\n\ndata: [DONE]\n\n");
}

static int chat_finish(struct surface_exchange *exchange, struct str closing, struct buf *out,
                       struct sg_error *err)
{
    struct chat *chat = chat_of(exchange);
    chat_answer_keep(chat);
    if (!chat->request.wants_stream) {
        return chat_answer_write(chat, closing, out, err);
    }
    chat_stream_finish(chat, closing, out);
    return SG_OK;
}

static struct surface_usage chat_usage(const struct surface_exchange *exchange)
{
    return chat_of_const(exchange)->used;
}

const struct surface surface_chat = {
    .name = "chat",
    .path = "/chat/completions",
    .looks_for = chat_looks_for,
    .answers = openai_offers_answer,
    .open = chat_open,
    .free = chat_free,
    .wants_stream = chat_wants_stream,
    .turn_is_done = chat_turn_is_done,
    .turn_bytes = chat_turn_bytes,
    .runs_nothing = chat_runs_nothing,
    .turn_request = chat_turn_request,
    .turn_begin = chat_turn_begin,
    .turn_feed = chat_turn_feed,
    .turn_end = chat_turn_end,
    .call_begin = chat_call_begin,
    .call_end = chat_call_end,
    .results_cut = chat_results_cut,
    .finish = chat_finish,
    .fail = chat_fail,
    .usage = chat_usage,
    .keep_alive = ": keep-alive\n\n",
    .error_body = openai_error_body,
};
