/* What the client sees of blocks: one after another, under indexes that count up over the whole answer. In a stream a
 * block is shown as it grows, if no other is open; else it waits for that one's end. */
#include "surface/messages.h"

#include "base/check.h"

/* ---- events ---- */

void messages_event_begin(const char *type, struct buf *out)
{
    (void)buf_printf(out, "event: %s\ndata: {\"type\":\"%s\"", type, type); /* the owner asks */
}

static void block_event_begin(const char *type, size_t index, struct buf *out)
{
    messages_event_begin(type, out);
    (void)buf_printf(out, ",\"index\":%zu", index); /* the owner asks for overflow */
}

/* Ends an event that holds JSON of others behind `start`. */
static void event_end(size_t start, struct buf *out)
{
    (void)buf_puts(out, "}\n\n"); /* the owner asks for overflow */
    line_flatten(out, start);
}

void messages_delta_event_put(size_t index, enum messages_piece piece, struct str more,
                              struct buf *out)
{
    block_event_begin("content_block_delta", index, out);
    size_t start = out->len;
    (void)buf_puts(out, ",\"delta\":"); /* the owner asks for overflow */
    messages_delta_put(piece, more, out);
    event_end(start, out);
}

static void start_event_put(size_t index, struct str block, struct buf *out)
{
    block_event_begin("content_block_start", index, out);
    size_t start = out->len;
    (void)buf_puts(out, ",\"content_block\":"); /* the owner asks for overflow */
    (void)buf_append_str(out, block);
    event_end(start, out);
}

static void stop_event_put(size_t index, struct buf *out)
{
    block_event_begin("content_block_stop", index, out);
    (void)buf_puts(out, "}\n\n"); /* the owner asks for overflow */
}

/* ---- a call of ours ---- */

static void call_put(const struct messages_block *block, struct str input, struct buf *out)
{
    (void)buf_printf(out, "{\"type\":\"server_tool_use\",\"id\":\"%s\",\"name\":\"%s\",\"input\":",
                     block->shown_id, block->native->name); /* the owner asks for overflow */
    (void)buf_append_str(out, input);
    (void)buf_puts(out, ",\"caller\":{\"type\":\"direct\"}}");
}

/* ---- in a stream ---- */

/* A text that may yet be cited begins with an empty list of citations: clients add to it. */
static void text_begin(const struct messages_block *block, struct buf *out)
{
    struct arena *scratch = arena_new(0);
    BUF_CLEANUP struct buf start = {0};
    messages_citations_put(buf_str(&block->raw), STR(""), scratch, &start); /* its event's size */
    start_event_put(block->client_index, buf_str(&start), out);
    arena_free(scratch);
}

static void block_begin(struct messages *m, struct messages_block *block, struct buf *out)
{
    block->seen = MESSAGES_OPEN;
    block->client_index = m->blocks_given++;
    if (block->kind == MESSAGES_TEXT && m->pages.count > 0) {
        text_begin(block, out);
        return;
    }
    if (block->offer < 0) {
        start_event_put(block->client_index, buf_str(&block->raw), out);
        return;
    }
    BUF_CLEANUP struct buf call = {0};
    call_put(block, STR("{}"), &call); /* small: fits */
    start_event_put(block->client_index, buf_str(&call), out);
}

static void citations_give(const struct messages_block *block, struct str more, struct buf *out)
{
    BUF_CLEANUP struct buf list = {0};
    (void)buf_putc(&list, '['); /* bounded by the turn's bytes */
    (void)buf_append_str(&list,
                         more.data[0] == ',' ? (struct str){more.data + 1, more.len - 1} : more);
    (void)buf_putc(&list, ']');
    struct json_walk walk = json_walk_of((struct json_value){JSON_ARRAY, buf_str(&list)});
    struct json_value citation;
    while (json_walk_element(&walk, &citation)) {
        messages_delta_event_put(block->client_index, MESSAGES_PIECE_CITATION, citation.raw, out);
    }
}

/* What has grown and the client does not have. */
static void rest_give(struct messages_block *block, struct buf *out)
{
    for (enum messages_piece i = 0; i < MESSAGES_PIECES; i++) {
        const struct buf *grown = &block->grown[i];
        bool may_change = i == MESSAGES_PIECE_INPUT && block->input_came_whole;
        if (block->given[i] >= grown->len || (may_change && !block->complete)) {
            continue;
        }
        struct str more = {grown->data + block->given[i], grown->len - block->given[i]};
        block->given[i] = grown->len;
        if (i == MESSAGES_PIECE_CITATION) {
            citations_give(block, more, out);
            continue;
        }
        more = i == MESSAGES_PIECE_INPUT
                   ? messages_input_next(&block->input, block->offer >= 0, more)
                   : more;
        if (more.len > 0) {
            messages_delta_event_put(block->client_index, i, more, out);
        }
    }
}

/* The end of arguments that have none: clients read them as JSON. */
static void input_complete(const struct messages_block *block, struct buf *out)
{
    BUF_CLEANUP struct buf rest = {0}, inner = {0};
    json_prefix_complete(block->input.prefix, &rest);
    (void)buf_put_json_inner(&inner, buf_str(&rest)); /* small: fits */
    if (inner.len > 0) {
        messages_delta_event_put(block->client_index, MESSAGES_PIECE_INPUT, buf_str(&inner), out);
    }
}

static void block_end(struct messages_block *block, struct buf *out)
{
    if (block->kind == MESSAGES_TOOL_USE && !block->input.begun) {
        messages_delta_event_put(block->client_index, MESSAGES_PIECE_INPUT, STR("{}"), out);
    } else if (block->offer >= 0) {
        input_complete(block, out);
    }
    stop_event_put(block->client_index, out);
    block->seen = MESSAGES_CLOSED;
}

void messages_show_delta(struct messages *m, struct messages_block *block,
                         const struct json_text *event, bool is_known, struct arena *arena,
                         struct buf *out)
{
    if (!m->request.wants_stream || block->seen != MESSAGES_OPEN) {
        return;
    }
    if (is_known && (block->kind == MESSAGES_TOOL_USE || block->kind == MESSAGES_INPUT)) {
        rest_give(block, out);
        return;
    }
    const struct json_member *delta = json_find(event->members, event->count, "delta");
    const struct json_member *index = json_find(event->members, event->count, "index");
    CHECK(delta != NULL);
    struct splice splice = {.arena = arena};
    struct str number = str_of(check_alloc(arena_printf(arena, "%zu", block->client_index))),
               added = {0};
    if (index != NULL && !str_eq(index->value.raw, number)) {
        splice_add(&splice, (size_t)(index->value.raw.data - event->raw.data), index->value.raw.len,
                   number);
    } else if (index == NULL) {
        added = str_of(check_alloc(arena_printf(arena, ",\"index\":%s", number.data)));
    }
    if (json_find(event->members, event->count, "type") == NULL) {
        added = str_of(check_alloc(arena_printf(arena, "%s,\"type\":\"content_block_delta\"",
                                                added.len > 0 ? added.data : "")));
    }
    bool *gone = arena_get(arena, event->count + 1);
    members_edit(&splice, event->raw, event->root, event->members, event->count, gone, added);
    (void)buf_puts(out, "event: content_block_delta\ndata: "); /* the owner asks for overflow */
    size_t start = out->len;
    (void)splice_apply(&splice, event->raw, out);
    (void)buf_puts(out, "\n\n");
    line_flatten(out, start);
    for (size_t i = 0; i < MESSAGES_PIECES; i++) {
        block->given[i] = block->grown[i].len;
    }
    messages_cite(m, block, false, out);
}

/* ---- in JSON ---- */

static void content_add(struct messages *m, struct str block)
{
    (void)buf_puts(&m->content, m->blocks_given++ > 0 ? "," : ""); /* asked at the end */
    (void)buf_append_str(&m->content, block);
}

static void block_add(struct messages *m, struct messages_block *block)
{
    struct arena *scratch = arena_new(0);
    BUF_CLEANUP struct buf text = {0}, cited = {0};
    messages_cite(m, block, true, NULL);
    if (block->offer >= 0) {
        call_put(block, block->history, &text);
    } else {
        messages_block_put(block, str_of(block->shown_id), scratch, &text);
    }
    if (block->cited.len > 0) {
        messages_citations_put(buf_str(&text), buf_str(&block->cited), scratch, &cited);
    }
    content_add(m, cited.len > 0 ? buf_str(&cited) : buf_str(&text));
    block->seen = MESSAGES_CLOSED;
    arena_free(scratch);
}

/* ---- both ---- */

/* True once the client has it all. */
static bool block_give(struct messages *m, struct messages_block *block, struct buf *out)
{
    if (!m->request.wants_stream) {
        block_add(m, block);
        return true;
    }
    if (block->seen == MESSAGES_UNSEEN) {
        messages_start_give(m, NULL, m->arena, out);
        block_begin(m, block, out);
    }
    rest_give(block, out);
    messages_cite(m, block, block->complete, out);
    if (block->complete) {
        block_end(block, out);
    }
    return block->complete;
}

void messages_show(struct messages *m, struct messages_turn *turn, struct buf *out)
{
    for (; turn->show_from < turn->blocks_count; turn->show_from++) {
        struct messages_block *block = turn->blocks[turn->show_from];
        bool skips = block->dropped || block->hidden || block->held || block->waits ||
                     block->seen == MESSAGES_CLOSED;
        if (!skips && !block_give(m, block, out)) {
            return;
        }
    }
}

void messages_show_waiting(struct messages *m, struct buf *out)
{
    struct messages_turn *turn = m->last;
    for (size_t i = 0; turn != NULL && i < turn->blocks_count; i++) {
        turn->blocks[i]->waits = false;
    }
    if (turn != NULL) {
        turn->show_from = 0;
        messages_show(m, turn, out);
    }
}

void messages_show_own(struct messages *m, struct str block, struct buf *out)
{
    m->changed = true;
    if (!m->request.wants_stream) {
        content_add(m, block);
        return;
    }
    size_t index = m->blocks_given++;
    start_event_put(index, block, out);
    stop_event_put(index, out);
}

void messages_show_text(struct messages *m, struct str text, struct buf *out)
{
    BUF_CLEANUP struct buf block = {0};
    m->changed = true;
    (void)buf_puts(&block, "{\"type\":\"text\",\"text\":"); /* a sentence: fits */
    if (!m->request.wants_stream) {
        (void)buf_put_json(&block, text);
        (void)buf_putc(&block, '}');
        content_add(m, buf_str(&block));
        return;
    }
    BUF_CLEANUP struct buf inner = {0};
    (void)buf_put_json_inner(&inner, text);
    (void)buf_puts(&block, "\"\"}");
    size_t index = m->blocks_given++;
    start_event_put(index, buf_str(&block), out);
    messages_delta_event_put(index, MESSAGES_PIECE_TEXT, buf_str(&inner), out);
    stop_event_put(index, out);
}
