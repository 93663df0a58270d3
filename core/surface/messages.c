/* The messages surface, /v1/messages: its table of functions, and an exchange's life. */
#include "surface/messages.h"

#include "base/check.h"
#include "base/limits.h"

#include <stdlib.h>

struct messages *messages_of(struct surface_exchange *exchange)
{
    struct messages *m = (struct messages *)exchange;
    CHECK_MAGIC(m, MESSAGES_MAGIC);
    return m;
}

const struct messages *messages_of_const(const struct surface_exchange *exchange)
{
    const struct messages *m = (const struct messages *)exchange;
    CHECK_MAGIC(m, MESSAGES_MAGIC);
    return m;
}

/* A type that is written wrong is ours to refuse. */
static bool messages_offers_answer(const struct surface_offer *offers, size_t count,
                                   struct str type)
{
    const struct tool_set set = {.offers = offers, .offers_count = count};
    struct sg_error ignored;
    int found[2];
    return messages_kind_offers(&set, type, "", found, &ignored) != SG_OK || found[0] >= 0;
}

static int messages_looks_for(const struct surface_input *input, struct arena *arena, bool *ret,
                              struct sg_error *err)
{
    struct messages_request request;
    int code = messages_tools_read(&request, input, arena, err);
    if (code == SG_OK) {
        *ret = request.set.names_hosted ||
               (input->offers_count > 0 && messages_history_is_ours(&request));
    }
    return code;
}

/* The calls that wait are a turn's whose message the client's body has. */
static void pending_begin(struct messages *m)
{
    const struct messages_request *request = &m->request;
    if (request->pending_count == 0 && request->pending_before.len == 0) {
        return;
    }
    struct messages_turn *turn = messages_turn_new(false);
    size_t count = request->pending_count;
    turn->results_before = request->pending_before;
    turn->ours = request->pending;
    turn->ours_count = turn->blocks_count = turn->show_from = count;
    turn->blocks = turn->our_blocks = arena_get(turn->arena, (count + 1) * sizeof(void *));
    for (size_t i = 0; i < count; i++) {
        struct messages_block *block = check_alloc(calloc(1, sizeof *block));
        struct str shown = request->pending_shown[i];
        CHECK(shown.len < sizeof block->shown_id);
        memcpy(block->shown_id, shown.data, shown.len);
        block->kind = MESSAGES_TOOL_USE;
        block->offer = (int)request->pending[i].offer;
        block->native = messages_kind_of(request->set.offers[block->offer].hosted);
        block->seen = MESSAGES_CLOSED;
        turn->blocks[i] = block;
    }
    m->changed = count > 0;
    m->last = turn;
}

/* Blocks do not carry their container: it is found by the newest call, where the client does not name it. */
static void container_take_up(const struct messages *m)
{
    struct str newest = m->request.container.id.len > 0 || m->memory == NULL
                            ? (struct str){0}
                            : messages_history_newest(&m->request);
    if (newest.len > 0) {
        (void)m->memory->resume(m->memory->context, newest); /* without it there is a new one */
    }
}

static int messages_open(const struct surface_input *input, struct arena *arena,
                         struct surface_exchange **ret, struct sg_error *err)
{
    struct messages_request request;
    int code = messages_tools_read(&request, input, arena, err);
    if (code == SG_OK) {
        code = messages_request_read(&request, arena, err);
    }
    if (code != SG_OK) {
        return code;
    }
    struct messages *m = check_alloc(calloc(1, sizeof *m));
    m->magic = MESSAGES_MAGIC;
    m->arena = arena;
    m->request = request;
    m->usage_last = input->usage_last;
    m->container = input->container;
    m->answer_id = str_of(check_alloc(arena_copy(arena, str_of(input->answer_id))));
    m->used = SURFACE_USAGE_NONE;
    m->content.max = LIMIT_BODY_BYTES;
    m->memory = input->memory;
    m->pages = request.pages;
    pending_begin(m);
    container_take_up(m);
    *ret = (struct surface_exchange *)m;
    return SG_OK;
}

static void messages_free(struct surface_exchange *exchange)
{
    if (exchange == NULL) {
        return;
    }
    struct messages *m = messages_of(exchange);
    messages_turn_free(m->turn);
    messages_turn_free(m->last);
    struct buf *const owned[] = {&m->history, &m->id, &m->model, &m->content, &m->usage};
    for (size_t i = 0; i < COUNT_OF(owned); i++) {
        buf_clear(owned[i]);
    }
    m->magic = 0;
    free(m);
}

static void messages_pending(struct surface_exchange *exchange, struct surface_turn *ret)
{
    const struct messages *m = messages_of(exchange);
    *ret = (struct surface_turn){.calls = m->request.pending,
                                 .calls_count = m->request.pending_count,
                                 .usage = SURFACE_USAGE_NONE};
}

static struct surface_container messages_container(const struct surface_exchange *exchange)
{
    return messages_of_const(exchange)->request.container;
}

static size_t messages_turn_bytes(const struct surface_exchange *exchange)
{
    const struct messages_turn *turn = messages_of_const(exchange)->turn;
    return turn->kept_bytes + turn->json.len + turn_stream_held(&turn->stream);
}

static bool messages_turn_is_done(const struct surface_exchange *exchange)
{
    const struct messages_turn *turn = messages_of_const(exchange)->turn;
    return turn != NULL && turn->done;
}

static bool messages_wants_stream(const struct surface_exchange *exchange)
{
    return messages_of_const(exchange)->request.wants_stream;
}

static bool messages_runs_nothing(const struct surface_exchange *exchange)
{
    return messages_of_const(exchange)->request.choice.force == MESSAGES_NONE;
}

static struct surface_usage messages_usage(const struct surface_exchange *exchange)
{
    return messages_of_const(exchange)->used;
}

const struct surface surface_messages = {
    .name = "messages",
    .path = "/messages",
    .looks_for = messages_looks_for,
    .answers = messages_offers_answer,
    .open = messages_open,
    .free = messages_free,
    .wants_stream = messages_wants_stream,
    .runs_nothing = messages_runs_nothing,
    .container = messages_container,
    .pending = messages_pending,
    .turn_request = messages_turn_request,
    .turn_begin = messages_turn_begin,
    .turn_feed = messages_turn_feed,
    .turn_bytes = messages_turn_bytes,
    .turn_is_done = messages_turn_is_done,
    .turn_end = messages_turn_end,
    .call_begin = messages_call_begin,
    .call_end = messages_call_end,
    .results_cut = messages_results_cut,
    .finish = messages_finish,
    .fail = messages_fail,
    .usage = messages_usage,
    .keep_alive = "event: ping\ndata: {\"type\": \"ping\"}\n\n",
    .error_body = messages_error_body,
};
