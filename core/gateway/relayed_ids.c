/* Ids that upstreams gave away. An answer is read beside its way to the client; one that cannot be understood, or is larger
 * than any answer that we would read ourselves, leaves nothing behind. Only the places where the API puts its own ids are
 * looked at: a client can have its metadata repeated in an answer. */
#include "gateway/relayed_ids.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/limits.h"
#include "session/records.h"

enum { IDS_MAX = 512, ID_BYTES_MAX = 256 };

static void id_add(struct relayed_ids *ids, const struct json_member *members, size_t count,
                   const char *name, struct arena *scratch)
{
    struct arena *arena = ids->request->arena;
    struct str id = json_find_text(members, count, name, scratch);
    if (id.len == 0 || id.len > ID_BYTES_MAX || ids->count == IDS_MAX) {
        return;
    }
    for (size_t i = 0; i < ids->count; i++) {
        if (str_eq(ids->ids[i], id)) {
            return;
        }
    }
    if (ids->ids == NULL) {
        ids->ids = arena_get(arena, IDS_MAX * sizeof *ids->ids);
    }
    ids->ids[ids->count++] = (struct str){arena_copy(arena, id), id.len};
}

static void item_take(struct relayed_ids *ids, struct json_value item, struct arena *scratch)
{
    struct json_member *members = NULL;
    size_t count = 0;
    struct sg_error ignored;
    if (item.type == JSON_OBJECT &&
        json_members(item, "an item", scratch, &members, &count, &ignored) == 0) {
        id_add(ids, members, count, "id", scratch);
        id_add(ids, members, count, "container_id", scratch);
    }
}

static void response_take(struct relayed_ids *ids, struct json_value response,
                          struct arena *scratch)
{
    struct json_member *members = NULL;
    size_t count = 0;
    struct sg_error ignored;
    if (json_members(response, "the response", scratch, &members, &count, &ignored) != 0) {
        return;
    }
    id_add(ids, members, count, "id", scratch);
    const struct json_member *output = json_find_type(members, count, "output", JSON_ARRAY);
    struct json_walk walk = output == NULL ? (struct json_walk){0} : json_walk_of(output->value);
    struct json_value item;
    while (output != NULL && json_walk_element(&walk, &item)) {
        item_take(ids, item, scratch);
    }
}

static int event_take(void *context, struct sse_event event, struct sg_error *err)
{
    struct relayed_ids *ids = context;
    struct arena *scratch = arena_new(0);
    struct json_text text;
    if (json_scan(event.data, scratch, &text, err) == 0) {
        const struct json_member *response =
            json_find_type(text.members, text.count, "response", JSON_OBJECT);
        const struct json_member *item =
            json_find_type(text.members, text.count, "item", JSON_OBJECT);
        if (response != NULL) {
            response_take(ids, response->value, scratch);
        } else if (item != NULL) {
            item_take(ids, item->value, scratch);
        }
    }
    arena_free(scratch);
    return 0;
}

void relayed_ids_begin(struct relayed_ids *ids, const struct upstream_call *call)
{
    struct request *r = call->request;
    *ids = (struct relayed_ids){.request = r, .json = {.max = LIMIT_BODY_BYTES}};
    ids->is_on = r->gateway->config->auth.mode == AUTH_KEYS && call->status < 300 &&
                 str_is(str_of(r->route.path), "/responses");
    ids->is_stream = call->is_stream;
    turn_stream_init(&ids->stream);
}

/* Each by itself: an upstream may give one of them again, and the others still stand. */
static void ids_keep(struct relayed_ids *ids)
{
    struct request *r = ids->request;
    for (; ids->kept < ids->count; ids->kept++) {
        struct record_input input = {.identity = r->identity,
                                     .ids = &ids->ids[ids->kept],
                                     .ids_count = 1,
                                     .data = str_of(r->upstream->name)};
        (void)records_keep(r->gateway->relayed, &input, clock_ms()); /* too much: it is not known */
    }
}

void relayed_ids_feed(struct relayed_ids *ids, struct str piece)
{
    struct sg_error ignored;
    if (ids->is_on && ids->is_stream) { /* an event at a time is kept of it */
        ids->is_on = turn_stream_feed(&ids->stream, piece, event_take, ids, &ignored) == 0;
        ids_keep(ids);
    } else if (ids->is_on) {
        ids->is_on = account_take(&ids->request->account, piece.len, &ignored) == 0 &&
                     buf_append_str(&ids->json, piece);
    }
}

void relayed_ids_end(struct relayed_ids *ids)
{
    struct arena *scratch = arena_new(0);
    struct json_text text;
    struct sg_error ignored;
    if (ids->is_on && ids->json.len > 0 &&
        json_scan(buf_str(&ids->json), scratch, &text, &ignored) == 0 &&
        text.root.type == JSON_OBJECT) {
        response_take(ids, text.root, scratch);
    }
    arena_free(scratch);
    ids_keep(ids);
    ids->count = ids->kept = 0;
    ids->is_on = false;
    turn_stream_clear(&ids->stream);
    buf_clear(&ids->json);
}

struct str relayed_id_origin(struct request *r, struct str id)
{
    struct record *record = records_find(r->gateway->relayed, r->identity, id, clock_ms());
    struct str name = record != NULL ? record_data(record) : (struct str){0};
    name.data = name.len > 0 ? check_alloc(arena_copy(r->arena, name)) : NULL; /* a name is small */
    record_unref(record);
    return name;
}

bool relayed_id_is_own(struct request *r, struct str id)
{
    return r->upstream != NULL && str_is(relayed_id_origin(r, id), r->upstream->name);
}
