/* The blocks of a turn: found by the upstream's indexes, whatever it does with them; whose each call is, and what the
 * client may see of it. */
#include "surface/arguments.h"
#include "surface/messages.h"

#include "base/check.h"
#include "base/digest.h"
#include "base/limits.h"

#include <stdio.h>

static void blocks_grow(struct messages_turn *turn)
{
    size_t cap = turn->blocks_cap == 0 ? 16 : 2 * turn->blocks_cap;
    struct messages_block **more = arena_get(turn->arena, cap * sizeof *more);
    if (turn->blocks_count > 0) {
        memcpy(more, turn->blocks, turn->blocks_count * sizeof *more);
    }
    turn->blocks = more;
    turn->blocks_cap = cap;
}

struct messages_block *messages_block_find(const struct messages_turn *turn,
                                           const struct json_member *index)
{
    int64_t number;
    if (index == NULL || !json_int_of(index->value, &number)) {
        struct messages_block *last =
            turn->blocks_count == 0 ? NULL : turn->blocks[turn->blocks_count - 1];
        return last == NULL || last->complete ? NULL : last;
    }
    for (size_t i = turn->blocks_count; i-- > 0;) {
        struct messages_block *block = turn->blocks[i];
        if (block->has_index && block->index == number) {
            return block->complete ? NULL : block;
        }
    }
    return NULL;
}

/* ---- whose is it? ---- */

static bool id_is_taken(const struct messages_turn *turn, const struct messages_block *block)
{
    for (size_t i = 0; i < turn->blocks_count; i++) {
        const struct messages_block *other = turn->blocks[i];
        bool is_call = other != block && other->kind == MESSAGES_TOOL_USE;
        if (is_call && str_eq(buf_str(&other->id), buf_str(&block->id))) {
            return true;
        }
    }
    return false;
}

/* Results find their calls by ids: one that is missing, or that another call of the turn has, is replaced. */
static void call_identify(struct messages *m, struct messages_block *block)
{
    char random[RANDOM_ID_BYTES];
    random_id(random);
    if (block->id.len == 0 || id_is_taken(m->turn, block)) {
        buf_reset(&block->id);
        (void)buf_printf(&block->id, "toolu_sg%s", random); /* small: fits */
        struct buf raw = {0};
        struct arena *scratch = arena_new(0);
        struct messages_block start = {.raw = block->raw};
        messages_block_put(&start, buf_str(&block->id), scratch, &raw);
        buf_clear(&block->raw);
        block->raw = raw;
        block->original = (struct str){0};
        m->changed = true;
        arena_free(scratch);
    }
    if (block->offer >= 0) {
        (void)snprintf(block->shown_id, sizeof block->shown_id, MESSAGES_MARK "%s",
                       random); /* fits */
    }
}

static bool has_calls(const struct messages_turn *turn)
{
    for (size_t i = 0; i < turn->blocks_count; i++) {
        if (turn->blocks[i]->kind == MESSAGES_TOOL_USE && !turn->blocks[i]->dropped) {
            return true;
        }
    }
    return false;
}

static void call_judge(struct messages *m, struct messages_block *block)
{
    struct messages_turn *turn = m->turn;
    const struct messages_request *request = &m->request;
    block->offer = tools_offer_of(&request->set, buf_str(&block->name));
    bool refused = block->offer >= 0 && request->choice.force == MESSAGES_NONE;
    block->dropped = block->name.len == 0 || refused || (request->parallel_off && has_calls(turn));
    if (block->dropped) {
        m->changed = true;
        return;
    }
    if (block->offer >= 0) {
        block->native = messages_kind_of(request->set.offers[block->offer].hosted);
        block->hidden = block->native == NULL;
        turn->has_ours = true;
        m->changed = true;
    } else {
        block->waits = turn->has_ours;
        block->held = turn->text_held;
    }
    call_identify(m, block);
}

/* No call, but named as one of ours: the upstream mistook it. A name that the client itself uses tells it nothing. */
static bool names_ours(const struct messages *m, const struct messages_block *block)
{
    struct str name = buf_str(&block->name);
    int offer = name.len == 0 ? -1 : tools_offer_of(&m->request.set, name);
    const struct messages_kind *native =
        offer < 0 ? NULL : messages_kind_of(m->request.set.offers[offer].hosted);
    return offer >= 0 && (native == NULL || !str_is(name, native->name));
}

int messages_block_take(struct messages *m, struct json_value value,
                        const struct json_member *index, bool is_whole, struct sg_error *err)
{
    struct messages_turn *turn = m->turn;
    struct arena *scratch = arena_new(0);
    struct messages_block *block = messages_block_new(value, is_whole, scratch, err);
    arena_free(scratch);
    if (block == NULL) {
        return err->code;
    }
    if (turn->blocks_count == MESSAGES_BLOCKS_MAX) {
        messages_block_free(block);
        return error_set(err, SG_E_INVALID, "more than %d content blocks", MESSAGES_BLOCKS_MAX);
    }
    block->has_index = index != NULL && json_int_of(index->value, &block->index);
    struct messages_block *before = messages_block_find(turn, index);
    if (before != NULL) { /* nobody said that it ended */
        before->complete = true;
    }
    if (is_whole && block->original.len == 0) { /* something that it needs was not there */
        m->changed = true;
    }
    if (block->kind == MESSAGES_TOOL_USE) {
        call_judge(m, block);
    } else if (block->dropped || names_ours(m, block)) {
        block->dropped = m->changed = true;
    } else if (block->kind == MESSAGES_TEXT && m->request.holds_text) {
        block->held = turn->text_held = true;
    }
    if (turn->blocks_count == turn->blocks_cap) {
        blocks_grow(turn);
    }
    turn->blocks[turn->blocks_count++] = block;
    return SG_OK;
}

/* ---- when the turn has ended ---- */

void messages_calls_settle(struct messages *m, struct messages_turn *turn)
{
    turn->ours = arena_get(turn->arena, (turn->blocks_count + 1) * sizeof *turn->ours);
    turn->our_blocks = arena_get(turn->arena, (turn->blocks_count + 1) * sizeof(void *));
    for (size_t i = 0; i < turn->blocks_count; i++) {
        struct messages_block *block = turn->blocks[i];
        if (block->offer < 0 || block->dropped) {
            continue;
        }
        struct str input = messages_block_input(block, turn->arena);
        block->arguments = arguments_settle(input, &block->history);
        m->request.set.shown[block->offer].called = true;
        turn->our_blocks[turn->ours_count] = block;
        turn->ours[turn->ours_count++] = (struct surface_call){
            .offer = (size_t)block->offer,
            .id = buf_str(&block->id),
            .name = buf_str(&block->name),
            .arguments = block->arguments.len > 0 ? block->arguments : STR("{}"),
            .options = m->request.set.shown[block->offer].options};
    }
}

size_t messages_client_calls(const struct messages_turn *turn)
{
    size_t count = 0;
    for (size_t i = 0; i < turn->blocks_count; i++) {
        const struct messages_block *block = turn->blocks[i];
        count += block->kind == MESSAGES_TOOL_USE && block->offer < 0 && !block->dropped;
    }
    return count;
}
