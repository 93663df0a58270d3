/* What an answer leaves behind for a client that keeps no items of ours. Where calls of the client's functions stand beside
 * runs of ours, the client has their items, under ids of ours for the calls. Under these ids the rest is kept, as one JSON
 * text that responses_kept.c reads:
 *
 *   {"hash":H,"container":ID,"turns":[[ENTRY…]…]}
 *
 * in the order in which the upstream said it. H is of the client's calls as it has them; an ENTRY is {"seen":H} for a
 * message or reasoning of the client's, {"given":CALL_ID} for a call of its, and for one of ours
 * {"ours":CALL_ID,"item":ID,"kind":KIND,"arguments":TEXT,"output":TEXT}; `item` is empty where it was not shown.
 *
 * An id of ours carries the upstream's own, if that is short and plain: it goes up again without a record, as some
 * servers know only ids of their own making. A long one is random, and no server minds that it is another. */
#include "surface/responses_recall.h"

#include "base/check.h"
#include "base/digest.h"
#include "base/limits.h"

#include <stdio.h>

enum {
    ID_BYTES = sizeof SHOWN_CALL_MARK - 1 + RANDOM_ID_BYTES - 1, /* mark and digits */
    RECORD_ID_BYTES = ID_BYTES + 16,
    OWN_BYTES_MAX = 24 /* of an upstream's id in one of ours: 64 together, as vendors take */
};

/* ---- ids ---- */

static bool is_plain(struct str id)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:";
    for (size_t i = 0; i < id.len; i++) {
        if (memchr(plain, id.data[i], sizeof plain - 1) == NULL) {
            return false;
        }
    }
    return true;
}

/* Does the turn, all of which is known, call something of ours? */
static bool calls_ours(const struct responses *r)
{
    for (size_t i = 0; i < r->turn->items_count; i++) {
        const struct responses_item *item = r->turn->items[i];
        if (item->kind == RESPONSES_CALL && !item->is_dropped &&
            tools_offer_of(&r->request.set, buf_str(&item->name)) >= 0) {
            return true;
        }
    }
    return false;
}

/* In a stream the first call may have to be shown before it is known what else the turn calls. */
static bool is_to_be_found(const struct responses *r)
{
    const struct responses_request *request = &r->request;
    if (request->memory == NULL || !request->set.names_hosted ||
        request->choice.kind == TOOL_CHOICE_NONE) {
        return false;
    }
    return r->turns > 0 || (r->turn->is_stream && !request->parallel_off) || calls_ours(r);
}

void responses_call_give(const struct responses *r, struct responses_item *item)
{
    struct str own = buf_str(&item->call_id);
    if (own.len == 0 || !is_to_be_found(r)) {
        return;
    }
    responses_id_mint(&item->given_id, SHOWN_CALL_MARK);
    if (own.len <= OWN_BYTES_MAX && is_plain(own)) {
        (void)buf_putc(&item->given_id, '_'); /* small: fits */
        (void)buf_append_str(&item->given_id, own);
    }
}

bool responses_call_is_given(struct str id)
{
    uint8_t bits[(RANDOM_ID_BYTES - 1) / 2];
    size_t mark = sizeof SHOWN_CALL_MARK - 1;
    return id.len >= ID_BYTES && str_starts(id, STR(SHOWN_CALL_MARK)) &&
           hex_decode((struct str){id.data + mark, RANDOM_ID_BYTES - 1}, bits, sizeof bits) &&
           (id.len == ID_BYTES || (id.data[ID_BYTES] == '_' && id.len > ID_BYTES + 1 &&
                                   id.len <= ID_BYTES + 1 + OWN_BYTES_MAX));
}

struct str responses_call_up_id(struct str id)
{
    return responses_call_is_given(id) && id.len > ID_BYTES
               ? (struct str){id.data + ID_BYTES + 1, id.len - ID_BYTES - 1}
               : id;
}

/* Chat's records lie beside: its ids find none of these, and ours none of its. */
static struct str record_id(struct str call_id, char to[RECORD_ID_BYTES])
{
    CHECK(responses_call_is_given(call_id));
    (void)snprintf(to, RECORD_ID_BYTES, "responses:%.*s", (int)ID_BYTES, call_id.data); /* fits */
    return str_of(to);
}

bool responses_memory_find(const struct responses_request *request, struct str call_id,
                           struct str *ret)
{
    const struct surface_memory *memory = request->memory;
    char id[RECORD_ID_BYTES];
    return memory != NULL && responses_call_is_given(call_id) &&
           memory->find(memory->context, record_id(call_id, id), ret);
}

/* ---- items as the client has them ---- */

static void texts_put(struct json_value list, struct arena *arena, struct buf *out)
{
    struct json_walk walk = json_walk_of(list), inner;
    struct json_value part, value;
    struct str key;
    while (json_walk_element(&walk, &part)) {
        inner = json_walk_of(part);
        while (part.type == JSON_OBJECT && json_walk_member(&inner, &key, &value)) {
            if (value.type == JSON_STRING &&
                (json_key_is(key, "text") || json_key_is(key, "refusal"))) {
                (void)buf_append_str(out, json_text_of(value, arena)); /* bounded by the item */
            }
        }
    }
}

static void member_texts_put(const struct json_member *members, size_t count, const char *name,
                             struct arena *arena, struct buf *out)
{
    const struct json_member *member = json_find(members, count, name);
    if (member != NULL && member->value.type == JSON_ARRAY) {
        texts_put(member->value, arena, out);
    } else if (member != NULL && member->value.type == JSON_STRING) {
        (void)buf_append_str(out, json_text_of(member->value, arena)); /* as above */
    }
}

static bool members_read(struct json_value item, struct arena *arena, struct json_member **ret,
                         size_t *ret_count)
{
    struct sg_error ignored = {0}; /* said where the input is read */
    return item.type == JSON_OBJECT &&
           json_members(item, "", arena, ret, ret_count, &ignored) == SG_OK;
}

bool responses_seen_hash(struct json_value item, struct arena *arena, char ret[SHOWN_HASH_BYTES])
{
    static const char *const of_reasoning[] = {"encrypted_content", "summary", "content"};
    struct json_member *members = NULL;
    size_t count = 0;
    if (!members_read(item, arena, &members, &count)) {
        return false;
    }
    struct str type = json_find_text(members, count, "type", arena);
    bool is_reasoning = str_is(type, "reasoning");
    BUF_CLEANUP struct buf text = {0};
    for (size_t i = 0; is_reasoning && i < COUNT_OF(of_reasoning) && text.len == 0; i++) {
        member_texts_put(members, count, of_reasoning[i], arena, &text); /* the first says it all */
    }
    if (!is_reasoning && str_is(json_find_text(members, count, "role", arena), "assistant")) {
        member_texts_put(members, count, "content", arena, &text);
    }
    if (text.len == 0 || text.overflow) {
        return false;
    }
    const struct shown_call kind = {.name = is_reasoning ? STR("reasoning") : STR("message")};
    shown_hash(buf_str(&text), &kind, 1, arena, ret);
    return true;
}

bool responses_given_read(struct json_value item, struct arena *arena, struct shown_call *ret)
{
    struct json_member *members = NULL;
    size_t count = 0;
    if (!members_read(item, arena, &members, &count)) {
        return false;
    }
    struct str type = json_find_text(members, count, "type", arena);
    bool is_custom = str_is(type, "custom_tool_call");
    *ret = (struct shown_call){
        json_find_text(members, count, "call_id", arena),
        json_find_text(members, count, "name", arena),
        json_find_text(members, count, is_custom ? "input" : "arguments", arena)};
    return is_custom || str_is(type, "function_call");
}

/* ---- what is kept ---- */

static void entry_begin(const char *name, struct str text, struct buf *out)
{
    bool is_first = out->len > 0 && out->data[out->len - 1] == '[';
    (void)buf_printf(out, is_first ? "{\"%s\":" : ",{\"%s\":", name); /* asked for at the end */
    (void)buf_put_json(out, text);
}

static void ours_put(const struct responses *r, const struct responses_item *item,
                     struct arena *arena, struct buf *out)
{
    struct buf call_id = {0};
    if (item->shown != NULL) {
        recall_call_id_put(buf_str(&item->shown->id), &call_id);
    } else {
        responses_id_mint(&call_id, SHOWN_CALL_MARK);
    }
    entry_begin("ours", buf_str(&call_id), out);
    buf_clear(&call_id);
    responses_text_put(
        out, ",\"item\":", item->shown == NULL ? (struct str){0} : buf_str(&item->shown->id));
    responses_text_put(out, ",\"kind\":", tools_kind_of(&r->request.set.offers[item->offer]));
    responses_text_put(out, ",\"arguments\":", responses_inner_text(item->history, arena));
    responses_text_put(out, ",\"output\":", buf_str(&item->result));
    (void)buf_putc(out, '}');
}

static struct json_value final_of(const struct responses_item *item)
{
    bool has_final = item->shown != NULL && item->shown->kind == NULL && item->shown->is_closed;
    return has_final ? (struct json_value){JSON_OBJECT, buf_str(&item->shown->final)}
                     : (struct json_value){0};
}

static void entry_put(const struct responses *r, const struct responses_item *item,
                      struct arena *arena, struct buf *out)
{
    char hash[SHOWN_HASH_BYTES];
    if (item->offer >= 0) {
        if (!item->is_dropped && item->has_result) {
            ours_put(r, item, arena, out);
        }
        return;
    }
    struct json_value final = final_of(item);
    if (item->given_id.len > 0 && final.raw.len > 0) {
        entry_begin("given", buf_str(&item->given_id), out);
    } else if (responses_seen_hash(final, arena, hash)) {
        entry_begin("seen", str_of(hash), out);
    } else {
        return;
    }
    (void)buf_putc(out, '}'); /* asked for at the end */
}

static void turn_put(const struct responses *r, const struct responses_turn *turn, struct buf *out)
{
    struct arena *arena = arena_new(0);
    (void)buf_putc(out, '['); /* asked for at the end */
    for (size_t i = 0; i < turn->items_count; i++) {
        entry_put(r, turn->items[i], arena, out);
    }
    (void)buf_putc(out, ']');
    arena_free(arena);
}

void responses_memory_note(struct responses *r)
{
    if (r->request.memory != NULL && r->last != NULL) {
        turn_put(r, r->last, &r->turns_noted);
        (void)buf_putc(&r->turns_noted, ','); /* bounded, and asked for at the end */
    }
}

/* Of the run that was shown last. */
static struct str container_of_answer(const struct responses *r)
{
    for (size_t i = r->shown_count; i-- > 0;) {
        if (r->shown[i]->container_id.len > 0) {
            return buf_str(&r->shown[i]->container_id);
        }
    }
    return (struct str){0};
}

/* The client's calls that are shown under ids of ours. */
static size_t given_list(const struct responses_turn *turn, struct arena *arena,
                         struct shown_call *calls)
{
    size_t count = 0;
    for (size_t i = 0; i < turn->items_count; i++) {
        struct json_value final = final_of(turn->items[i]);
        if (turn->items[i]->given_id.len > 0 && final.raw.len > 0) {
            CHECK(responses_given_read(final, arena, &calls[count]));
            count++;
        }
    }
    return count;
}

static bool has_run(const struct responses *r)
{
    for (size_t i = 0; i < r->last->ours_count; i++) {
        if (r->last->ours_items[i]->has_result) {
            return true;
        }
    }
    return r->turns > 1; /* those before it called tools of ours */
}

static void keep(const struct responses *r, const struct shown_call *calls, size_t count,
                 struct arena *arena)
{
    const struct surface_memory *memory = r->request.memory;
    struct str *ids = check_alloc(arena_alloc(arena, count * sizeof *ids));
    char hash[SHOWN_HASH_BYTES];
    BUF_CLEANUP struct buf record = {.max = LIMIT_RECORD_BYTES};
    shown_hash((struct str){0}, calls, count, arena, hash);
    for (size_t i = 0; i < count; i++) {
        ids[i] = record_id(calls[i].id, arena_get(arena, RECORD_ID_BYTES));
    }
    (void)buf_printf(&record, "{\"hash\":\"%s\"", hash); /* asked for at the end */
    responses_text_put(&record, ",\"container\":", container_of_answer(r));
    (void)buf_puts(&record, ",\"turns\":[");
    (void)buf_append_str(&record, buf_str(&r->turns_noted));
    turn_put(r, r->last, &record);
    (void)buf_puts(&record, "]}");
    if (!record.overflow && !r->turns_noted.overflow) { /* else the history goes up as it comes */
        /* The container waits for every client that is given calls. */
        (void)memory->keep(memory->context, ids, count, buf_str(&record), false);
    }
}

void responses_memory_keep(const struct responses *r)
{
    if (r->request.memory == NULL || r->last == NULL || !has_run(r)) {
        return;
    }
    struct arena *arena = arena_new(0);
    struct shown_call *calls = arena_get(arena, (r->last->items_count + 1) * sizeof *calls);
    size_t count = given_list(r->last, arena, calls);
    if (count > 0) {
        keep(r, calls, count, arena);
    }
    arena_free(arena);
}
