/* What an answer leaves behind. A turn that calls both our tools and the client's leaves the client with half of it: its
 * own calls, under ids of ours. Under these ids the rest is kept, as one JSON text that chat_recall.c reads:
 *
 *   {"hash":H,"names":{KIND:FUNCTION},"front":[MESSAGE…],"assistant":MESSAGE,"calls":[CALL…]}
 *
 * H is of the message as the client has it; `front` are the messages of earlier turns; `assistant` is the last turn's,
 * with all its calls; a CALL is {"id":…,"result":…} for ours and {"id":SHOWN,"up":…} for the client's, in their order.
 * Where nothing of ours has run, `hash` and `calls` are all: what the ids are called upstream. */
#include "surface/chat.h"

#include "base/check.h"
#include "base/limits.h"

/* Decoded, in the arena. */
static struct str decoded(struct str inner, struct arena *arena)
{
    BUF_CLEANUP struct buf quoted = {0};
    (void)buf_putc(&quoted, '"'); /* the inner text is bounded */
    (void)buf_append_str(&quoted, inner);
    (void)buf_putc(&quoted, '"');
    CHECK(!quoted.overflow);
    struct str raw = {check_alloc(arena_copy(arena, buf_str(&quoted))), quoted.len};
    return json_text_of((struct json_value){JSON_STRING, raw}, arena);
}

static bool is_clients(const struct chat_call *call)
{
    return call->offer < 0 && !call->dropped;
}

static void hash_put(const struct chat *chat, struct arena *arena, struct buf *out)
{
    const struct chat_turn *turn = chat->last;
    struct shown_call *calls = check_alloc(arena_alloc(arena, turn->calls_count * sizeof *calls));
    size_t count = 0;
    for (size_t i = 0; i < turn->calls_count; i++) {
        const struct chat_call *call = turn->calls[i];
        if (is_clients(call)) {
            calls[count++] = (struct shown_call){buf_str(&call->shown_id), buf_str(&call->name),
                                                 decoded(buf_str(&call->arguments), arena)};
        }
    }
    BUF_CLEANUP struct buf content = {0};
    chat_content_put(chat, (struct str){0}, &content); /* bounded by the turns' bytes */
    char hash[SHOWN_HASH_BYTES];
    shown_hash(decoded(buf_str(&content), arena), calls, count, arena, hash);
    (void)buf_printf(out, "\"hash\":\"%s\"", hash); /* overflow is asked for at the end */
}

/* Is it named before? Tools of no hosted kind may have the same name. */
static bool kind_is_named(const struct chat_request *request, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (request->set.shown[k].called && str_eq(tools_kind_of(&request->set.offers[k]),
                                                   tools_kind_of(&request->set.offers[i]))) {
            return true;
        }
    }
    return false;
}

/* Which function each kind had in this request: it may have another when the client comes back. */
static void names_put(const struct chat *chat, struct buf *out)
{
    const struct chat_request *request = &chat->request;
    bool first = true;
    (void)buf_puts(out, ",\"names\":{"); /* as above */
    for (size_t i = 0; i < request->set.offers_count; i++) {
        if (request->set.shown[i].called && !kind_is_named(request, i)) {
            (void)buf_puts(out, first ? "" : ",");
            (void)buf_put_json(out, tools_kind_of(&request->set.offers[i]));
            (void)buf_putc(out, ':');
            (void)buf_put_json(out, request->set.shown[i].name);
            first = false;
        }
    }
    (void)buf_putc(out, '}');
}

static void calls_put(const struct chat_turn *turn, bool with_results, struct buf *out)
{
    bool first = true;
    (void)buf_puts(out, "\"calls\":["); /* as above */
    for (size_t i = 0; i < turn->calls_count; i++) {
        const struct chat_call *call = turn->calls[i];
        bool has_result = with_results && call->offer >= 0 && !call->dropped && call->has_result;
        if (!has_result && !is_clients(call)) {
            continue;
        }
        (void)buf_puts(out, first ? "{\"id\":" : ",{\"id\":");
        (void)buf_put_json(out, buf_str(&call->shown_id));
        (void)buf_puts(out, has_result ? ",\"result\":" : ",\"up\":");
        (void)buf_put_json(out, has_result ? buf_str(&call->result) : chat_call_up_id(call));
        (void)buf_putc(out, '}');
        first = false;
    }
    (void)buf_putc(out, ']');
}

static void record_put(struct chat *chat, struct arena *arena, struct buf *out)
{
    struct str front = buf_str(&chat->history); /* each message behind a comma */
    (void)buf_putc(out, '{');                   /* as above */
    hash_put(chat, arena, out);
    names_put(chat, out);
    (void)buf_puts(out, ",\"front\":[");
    if (front.len > 0) {
        (void)buf_append(out, front.data + 1, front.len - 1);
    }
    (void)buf_puts(out, "],\"assistant\":");
    chat_assistant_put(chat->last, CHAT_CALLS_ALL, out);
    (void)buf_putc(out, ',');
    calls_put(chat->last, true, out);
    (void)buf_putc(out, '}');
}

/* Has something of ours run that the client's next request would miss? */
static bool has_run(const struct chat *chat)
{
    const struct chat_turn *turn = chat->last;
    for (size_t i = 0; i < turn->ours_count; i++) {
        if (turn->ours_calls[i]->has_result) {
            return true;
        }
    }
    return chat->history.len > 0;
}

/* The ids of ours that the client was given. */
static size_t ids_list(const struct chat_turn *turn, struct str *ids)
{
    size_t count = 0;
    for (size_t i = 0; i < turn->calls_count; i++) {
        const struct chat_call *call = turn->calls[i];
        if (is_clients(call) && str_starts(buf_str(&call->shown_id), STR(SHOWN_CALL_MARK))) {
            ids[count++] = buf_str(&call->shown_id);
        }
    }
    return count;
}

/* All of it, if it is not too large. */
static bool record_keep(struct chat *chat, const struct str *ids, size_t count)
{
    const struct surface_memory *memory = chat->request.memory;
    struct arena *arena = arena_new(0);
    BUF_CLEANUP struct buf record = {.max = LIMIT_RECORD_BYTES};
    record_put(chat, arena, &record);
    arena_free(arena);
    return !record.overflow && memory->keep(memory->context, ids, count, buf_str(&record), true);
}

static void ids_keep(struct chat *chat, const struct str *ids, size_t count)
{
    const struct surface_memory *memory = chat->request.memory;
    struct arena *arena = arena_new(0);
    BUF_CLEANUP struct buf record = {.max = LIMIT_RECORD_BYTES};
    (void)buf_putc(&record, '{'); /* as above */
    hash_put(chat, arena, &record);
    (void)buf_putc(&record, ',');
    calls_put(chat->last, false, &record);
    (void)buf_putc(&record, '}');
    arena_free(arena);
    if (!record.overflow) { /* refused: the history goes up as the client has it */
        (void)memory->keep(memory->context, ids, count, buf_str(&record), chat->request.resumes);
    }
}

void chat_answer_keep(struct chat *chat)
{
    const struct surface_memory *memory = chat->request.memory;
    const struct chat_turn *turn = chat->last;
    if (memory == NULL || turn == NULL) {
        return;
    }
    struct str ids[CHAT_CALLS_MAX];
    size_t count = ids_list(turn, ids);
    if (count == 0 || (has_run(chat) && record_keep(chat, ids, count))) {
        return;
    }
    ids_keep(chat, ids, count); /* these at least */
}
