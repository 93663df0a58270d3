/* Items on their way to the client: opened, filled, closed, each under the next free index. What the client has of an
 * item is noted in it, so that live pieces and replays of what was held are the same thing. */
#include "surface/responses.h"

#include "base/check.h"
#include "base/digest.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- ids and places ---- */

void responses_id_mint(struct buf *out, const char *mark)
{
    char random[RANDOM_ID_BYTES];
    random_id(random);
    (void)buf_printf(out, "%s%s", mark, random); /* small: fits */
}

bool responses_id_is_taken(const struct responses *r, struct str id)
{
    for (size_t i = 0; i < r->shown_count; i++) {
        if (str_eq(buf_str(&r->shown[i]->id), id)) {
            return true;
        }
    }
    const struct surface_store *store = r->request.store;
    struct str ignored;
    return store != NULL && store->find(store->context, id, &ignored);
}

struct responses_shown *responses_shown_add(struct responses *r)
{
    if (r->shown_count == r->shown_cap) {
        r->shown_cap = r->shown_cap == 0 ? 8 : 2 * r->shown_cap;
        r->shown = check_alloc(realloc(r->shown, r->shown_cap * sizeof(void *)));
    }
    struct responses_shown *shown = check_alloc(calloc(1, sizeof *shown));
    shown->index = r->shown_count;
    r->shown[r->shown_count++] = shown;
    return shown;
}

void responses_shown_free(struct responses_shown *shown)
{
    if (shown == NULL) {
        return;
    }
    member_stream_clear(&shown->text);
    struct buf *const owned[] = {&shown->id,        &shown->final,   &shown->container_id,
                                 &shown->results,   &shown->call_id, &shown->arguments,
                                 &shown->model_text};
    for (size_t i = 0; i < COUNT_OF(owned); i++) {
        buf_clear(owned[i]);
    }
    free(shown);
}

static const char *mark_of(const struct responses_item *item)
{
    return item->kind == RESPONSES_MESSAGE     ? "msg_sg"
           : item->kind == RESPONSES_REASONING ? "rs_sg"
           : item->kind == RESPONSES_CALL      ? "fc_sg"
                                               : "item_sg";
}

/* ---- opening ---- */

static bool may_open(const struct responses *r, const struct responses_item *item)
{
    switch (item->kind) {
    case RESPONSES_MESSAGE:
        return !r->request.holds_text || r->turn == NULL || r->turn->is_released;
    case RESPONSES_REASONING:
        return true;
    case RESPONSES_OTHER:
        return item->raw.len > 0 && (!item->awaits_client || (!item->is_dropped && !item->is_held));
    case RESPONSES_CALL:
        return item->is_decided && item->offer < 0 && !item->is_dropped && !item->is_held;
    default:
        return false;
    }
}

struct opening { /* what an item's first form has in place of its last */
    struct buf id, type, name, call_id;
    struct responses_member puts[8];
    size_t n;
};

static void opening_add(struct opening *opening, const char *key, struct str value)
{
    opening->puts[opening->n++] = (struct responses_member){key, value};
}

static void call_id_add(const struct responses_item *item, struct opening *opening)
{
    (void)buf_put_json(&opening->call_id, responses_call_shown_id(item)); /* small: fits */
    opening_add(opening, "call_id", buf_str(&opening->call_id));
}

static void opening_fill(const struct responses_item *item, struct opening *opening)
{
    (void)buf_put_json(&opening->id, buf_str(&item->shown->id)); /* small, as all here */
    (void)buf_put_json(&opening->type, buf_str(&item->type));
    opening_add(opening, "id", buf_str(&opening->id));
    opening_add(opening, "type", buf_str(&opening->type));
    if (item->kind == RESPONSES_MESSAGE) {
        opening_add(opening, "status", STR("\"in_progress\""));
        opening_add(opening, "role", STR("\"assistant\""));
        opening_add(opening, "content", STR("[]"));
    } else if (item->kind == RESPONSES_REASONING) {
        opening_add(opening, "summary", STR("[]"));
        opening_add(opening, "content", STR(""));
    } else if (item->kind == RESPONSES_CALL) {
        (void)buf_put_json(&opening->name, buf_str(&item->name));
        opening_add(opening, "status", STR("\"in_progress\""));
        opening_add(opening, "arguments", STR("\"\""));
        call_id_add(item, opening);
        opening_add(opening, "name", buf_str(&opening->name));
    }
    if (item->kind == RESPONSES_OTHER && item->given_id.len > 0) {
        call_id_add(item, opening);
    }
}

static void opening_put(const struct responses_item *item, struct buf *out)
{
    struct arena *arena = arena_new(0);
    struct opening opening = {0};
    struct json_member *members = NULL;
    size_t count = 0;
    struct sg_error err = {0};
    if (item->raw.len > 0) { /* checked when it was kept */
        (void)json_members((struct json_value){JSON_OBJECT, buf_str(&item->raw)}, "", arena,
                           &members, &count, &err);
    }
    opening_fill(item, &opening);
    if (item->kind == RESPONSES_OTHER && json_find(members, count, "status") == NULL) {
        opening_add(&opening, "status", STR("\"in_progress\"")); /* strict clients ask for one */
    }
    responses_object_put(members, count, opening.puts, opening.n, out);
    buf_clear(&opening.id);
    buf_clear(&opening.type);
    buf_clear(&opening.name);
    buf_clear(&opening.call_id);
    arena_free(arena);
}

bool responses_item_open(struct responses *r, struct responses_item *item, struct buf *out)
{
    if (item->shown != NULL) {
        return true;
    }
    if (!may_open(r, item)) {
        return false;
    }
    bool own = item->id.len > 0 && !responses_id_is_taken(r, buf_str(&item->id));
    item->shown = responses_shown_add(r);
    if (own) {
        (void)buf_append_str(&item->shown->id, buf_str(&item->id)); /* bounded by its event */
    } else {
        responses_id_mint(&item->shown->id, mark_of(item));
    }
    BUF_CLEANUP struct buf object = {0};
    opening_put(item, &object);
    responses_event_put(r, "response.output_item.added", item->shown,
                        (struct responses_member[]){{"item", buf_str(&object)}}, 1, out);
    return true;
}

/* ---- parts ---- */

static struct str number(char to[24], size_t n)
{
    (void)snprintf(to, 24, "%zu", n); /* fits */
    return str_of(to);
}

bool responses_part_open(struct responses *r, struct responses_item *item,
                         struct responses_part *part, struct buf *out)
{
    if (part->is_opened) {
        return true;
    }
    if (!responses_item_open(r, item, out)) {
        return false;
    }
    for (size_t i = 0; i < item->parts_count && item->parts[i] != part; i++) {
        if (item->parts[i]->is_summary == part->is_summary) { /* places are given in order */
            (void)responses_part_open(r, item, item->parts[i], out);
        }
    }
    const struct responses_part_form *form = &responses_part_forms[part->kind];
    char index[24];
    BUF_CLEANUP struct buf object = {0};
    part->is_opened = true;
    part->shown_index = part->is_summary ? item->summaries_opened++ : item->contents_opened++;
    responses_part_put(part, RESPONSES_OPENING, &object);
    responses_event_put(
        r, form->added, item->shown,
        (struct responses_member[]){{form->index_key, number(index, part->shown_index)},
                                    {"part", buf_str(&object)}},
        2, out);
    return true;
}

void responses_annotations_flush(struct responses *r, const struct responses_item *item,
                                 struct responses_part *part, bool ended, struct buf *out)
{
    BUF_CLEANUP struct buf list = {0};
    if (item->kind == RESPONSES_MESSAGE) {
        responses_citations_read(r, part, ended);
    }
    if (part->annotations_given == part->annotations_count) {
        return;
    }
    size_t from = part->annotations_given_bytes + (part->annotations_given > 0); /* a comma */
    (void)buf_putc(&list, '['); /* as large as what is new */
    (void)buf_append_str(&list,
                         (struct str){part->annotations.data + from, part->annotations.len - from});
    (void)buf_putc(&list, ']');
    struct json_walk walk = json_walk_of((struct json_value){JSON_ARRAY, buf_str(&list)});
    struct json_value annotation;
    for (size_t i = part->annotations_given; json_walk_element(&walk, &annotation); i++) {
        char content[24], place[24];
        responses_event_put(
            r, "response.output_text.annotation.added", item->shown,
            (struct responses_member[]){{"content_index", number(content, part->shown_index)},
                                        {"annotation_index", number(place, i)},
                                        {"annotation", annotation.raw}},
            3, out);
    }
    part->annotations_given = part->annotations_count;
    part->annotations_given_bytes = part->annotations.len;
}

void responses_part_flush(struct responses *r, struct responses_item *item,
                          struct responses_part *part, bool ended, struct buf *out)
{
    const struct responses_part_form *form = &responses_part_forms[part->kind];
    if (!responses_part_open(r, item, part, out) || form->delta == NULL) {
        return;
    }
    if (part->given < part->text.len) {
        char index[24];
        BUF_CLEANUP struct buf delta = {0};
        responses_quote((struct str){part->text.data + part->given, part->text.len - part->given},
                        &delta); /* as large as what is kept */
        part->given = part->text.len;
        responses_event_put(
            r, form->delta, item->shown,
            (struct responses_member[]){{form->index_key, number(index, part->shown_index)},
                                        {"delta", buf_str(&delta)},
                                        {"logprobs", STR("[]")}},
            part->kind == RESPONSES_TEXT ? 3 : 2, out);
    }
    responses_annotations_flush(r, item, part, ended, out);
}

void responses_part_close(struct responses *r, struct responses_item *item,
                          struct responses_part *part, struct buf *out)
{
    const struct responses_part_form *form = &responses_part_forms[part->kind];
    char index[24];
    responses_part_flush(r, item, part, true, out);
    if (!part->is_opened || part->is_closed) {
        return;
    }
    BUF_CLEANUP struct buf text = {0}, object = {0};
    struct str place = number(index, part->shown_index);
    if (form->done != NULL && !part->is_told) {
        responses_quote(buf_str(&part->text), &text); /* as large as what is kept */
        responses_event_put(r, form->done, item->shown,
                            (struct responses_member[]){{form->index_key, place},
                                                        {form->text_key, buf_str(&text)},
                                                        {"logprobs", STR("[]")}},
                            part->kind == RESPONSES_TEXT ? 3 : 2, out);
    }
    part->is_told = part->is_closed = true;
    responses_part_put(part, RESPONSES_SHOWN, &object);
    responses_event_put(
        r, form->closed, item->shown,
        (struct responses_member[]){{form->index_key, place}, {"part", buf_str(&object)}}, 2, out);
}

/* ---- calls of the client's functions ---- */

static void arguments_flush(struct responses *r, struct responses_item *item, bool ended,
                            struct buf *out)
{
    BUF_CLEANUP struct buf text = {0}, name = {0};
    if (item->arguments_given < item->arguments.len) {
        responses_quote((struct str){item->arguments.data + item->arguments_given,
                                     item->arguments.len - item->arguments_given},
                        &text); /* as large as what is kept */
        item->arguments_given = item->arguments.len;
        responses_event_put(r, "response.function_call_arguments.delta", item->shown,
                            (struct responses_member[]){{"delta", buf_str(&text)}}, 1, out);
    }
    if (ended && !item->is_told) {
        item->is_told = true;
        buf_reset(&text);
        responses_quote(buf_str(&item->arguments), &text);
        (void)buf_put_json(&name, buf_str(&item->name)); /* small: fits */
        responses_event_put(
            r, "response.function_call_arguments.done", item->shown,
            (struct responses_member[]){{"name", buf_str(&name)}, {"arguments", buf_str(&text)}}, 2,
            out);
    }
}

/* ---- items ---- */

void responses_item_flush(struct responses *r, struct responses_item *item, struct buf *out)
{
    if (!responses_item_open(r, item, out)) {
        return;
    }
    for (size_t i = 0; i < item->parts_count; i++) {
        responses_part_flush(r, item, item->parts[i], false, out);
    }
    if (item->kind == RESPONSES_CALL) {
        arguments_flush(r, item, false, out);
    }
}

void responses_item_close(struct responses *r, struct responses_item *item, const char *status,
                          struct buf *out)
{
    if (!responses_item_open(r, item, out) || item->shown->is_closed) {
        return;
    }
    for (size_t i = 0; i < item->parts_count; i++) {
        responses_part_close(r, item, item->parts[i], out);
    }
    if (item->kind == RESPONSES_CALL) {
        arguments_flush(r, item, true, out);
    }
    item->shown->is_closed = true;
    responses_item_put(item, false, status, &item->shown->final); /* bounded by what is kept */
    responses_event_put(r, "response.output_item.done", item->shown,
                        (struct responses_member[]){{"item", buf_str(&item->shown->final)}}, 1,
                        out);
}
