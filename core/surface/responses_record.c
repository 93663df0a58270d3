/* What an answer leaves behind: the record of a response, written at its end and read for the requests that come back to
 * it. Its form stands in responses_stored.h. */
#include "surface/responses.h"
#include "surface/responses_stored.h"

#include "base/check.h"
#include "base/limits.h"

/* ---- reading ---- */

bool responses_record_read(struct str data, struct arena *arena, struct responses_record *ret)
{
    struct json_text text;
    struct sg_error err = {0};
    int64_t version;
    if (json_scan(data, arena, &text, &err) != SG_OK || text.root.type != JSON_OBJECT) {
        return false;
    }
    const struct json_member *members = text.members;
    const struct json_member *v = json_find(members, text.count, "v");
    const struct json_member *response =
        json_find_type(members, text.count, "response", JSON_OBJECT);
    const struct json_member *input = json_find_type(members, text.count, "input", JSON_ARRAY);
    const struct json_member *ids = json_find_type(members, text.count, "input_ids", JSON_ARRAY);
    const struct json_member *previous = json_find(members, text.count, "previous");
    const struct json_member *calls = json_find_type(members, text.count, "calls", JSON_OBJECT);
    if (v == NULL || !json_int_of(v->value, &version) || version != 1 || response == NULL ||
        input == NULL || ids == NULL || previous == NULL || calls == NULL) {
        return false;
    }
    struct json_member *inside = NULL;
    size_t count = 0;
    if (json_members(response->value, "response", arena, &inside, &count, &err) != SG_OK) {
        return false;
    }
    const struct json_member *output = json_find_type(inside, count, "output", JSON_ARRAY);
    if (output == NULL) {
        return false;
    }
    *ret = (struct responses_record){.response = response->value,
                                     .output = output->value,
                                     .input = input->value,
                                     .input_ids = ids->value,
                                     .previous = previous->value,
                                     .calls = calls->value,
                                     .id = json_find_text(inside, count, "id", arena)};
    return true;
}

/* ---- writing ---- */

struct keeping { /* a record, and the ids under which it is kept */
    struct responses *r;
    struct arena *arena;
    struct buf data;
    struct str *ids;
    size_t ids_count;
};

/* An id that finds an earlier answer goes on doing so, unless it is ours: servers that number their items from one would
 * drop what is kept of the answer before. */
static void id_add(struct keeping *keeping, struct str id)
{
    const struct surface_store *store = keeping->r->request.store;
    struct str ignored;
    if (!store->find(store->context, id, &ignored)) {
        keeping->ids[keeping->ids_count++] = id;
    }
}

static struct str own_id(struct json_value item, struct arena *arena)
{
    struct str key;
    struct json_value value;
    if (item.type != JSON_OBJECT) {
        return (struct str){0};
    }
    struct json_walk walk = json_walk_of(item);
    while (json_walk_member(&walk, &key, &value)) {
        if (value.type == JSON_STRING && json_key_is(key, "id")) {
            return json_text_of(value, arena);
        }
    }
    return (struct str){0};
}

static void input_id_put(struct keeping *keeping, struct json_value item, struct buf *ids)
{
    struct str id = own_id(item, keeping->arena);
    if (id.len == 0) {
        struct buf minted = {0};
        responses_id_mint(&minted, "msg_sg");
        id = buf_to_arena(&minted, keeping->arena);
        id_add(keeping, id);
    }
    (void)buf_puts(ids, ids->len > 1 ? "," : ""); /* asked for at the end */
    (void)buf_put_json(ids, id);
}

static void input_put(struct keeping *keeping, struct buf *ids)
{
    const struct responses_request *request = &keeping->r->request;
    struct buf *out = &keeping->data;
    (void)buf_puts(out, ",\"input\":["); /* asked for at the end */
    (void)buf_putc(ids, '[');
    for (size_t i = 0; i < request->items_count; i++) {
        (void)buf_puts(out, i == 0 ? "" : ",");
        (void)buf_append_str(out, request->items[i].value.raw);
        input_id_put(keeping, request->items[i].value, ids);
    }
    if (request->input != NULL && request->input->value.type == JSON_STRING) {
        (void)buf_puts(out, "{\"role\":\"user\",\"content\":");
        (void)buf_append_str(out, request->input->value.raw);
        (void)buf_putc(out, '}');
        input_id_put(keeping, (struct json_value){JSON_NULL, STR("null")}, ids);
    }
    (void)buf_putc(out, ']');
    (void)buf_putc(ids, ']');
}

static void calls_put(struct keeping *keeping)
{
    struct buf *out = &keeping->data;
    bool first = true;
    (void)buf_puts(out, ",\"calls\":{"); /* asked for at the end */
    for (size_t i = 0; i < keeping->r->shown_count; i++) {
        const struct responses_shown *shown = keeping->r->shown[i];
        if (shown->call_id.len == 0) {
            continue;
        }
        (void)buf_puts(out, first ? "" : ",");
        first = false;
        (void)buf_put_json(out, buf_str(&shown->id));
        (void)buf_puts(out, ":{\"call_id\":");
        (void)buf_put_json(out, buf_str(&shown->call_id));
        (void)buf_puts(out, ",\"arguments\":");
        (void)buf_put_json(out, buf_str(&shown->arguments));
        (void)buf_puts(out, ",\"output\":");
        (void)buf_put_json(out, buf_str(&shown->model_text));
        (void)buf_putc(out, '}');
    }
    (void)buf_puts(out, "}}");
}

static void record_put(struct keeping *keeping, enum responses_results results)
{
    const struct responses_request *request = &keeping->r->request;
    BUF_CLEANUP struct buf ids = {.max = LIMIT_BODY_BYTES};
    (void)buf_puts(&keeping->data, "{\"v\":1,\"response\":"); /* asked for at the end */
    responses_object_write(keeping->r, results, &keeping->data);
    (void)buf_puts(&keeping->data, ",\"previous\":");
    (void)buf_append_str(&keeping->data,
                         request->previous == NULL ? STR("null") : request->previous->value.raw);
    input_put(keeping, &ids);
    (void)buf_puts(&keeping->data, ",\"input_ids\":");
    (void)buf_append_str(&keeping->data, buf_str(&ids));
    calls_put(keeping);
    keeping->data.overflow = keeping->data.overflow || ids.overflow;
}

static bool keep(struct keeping *keeping, enum responses_results results)
{
    struct responses *r = keeping->r;
    const struct surface_store *store = r->request.store;
    size_t most = r->shown_count + r->request.items_count + 2;
    keeping->ids = check_alloc(arena_alloc(keeping->arena, most * sizeof *keeping->ids));
    keeping->ids_count = 1;
    keeping->ids[0] = str_of(
        check_alloc(arena_printf(keeping->arena, RESPONSES_ID_MARK "%s", r->answer_id.data)));
    for (size_t i = 0; i < r->shown_count; i++) {
        id_add(keeping, buf_str(&r->shown[i]->id));
    }
    buf_reset(&keeping->data);
    record_put(keeping, results);
    return !keeping->data.overflow &&
           store->keep(store->context, keeping->ids, keeping->ids_count, buf_str(&keeping->data));
}

void responses_answer_keep(struct responses *r)
{
    if (!r->request.keeps) {
        return;
    }
    struct keeping keeping = {.r = r, .arena = arena_new(0), .data = {.max = LIMIT_RECORD_BYTES}};
    if (!keep(&keeping, RESPONSES_RESULTS_ALL)) {
        /* Pictures are large. Without them the conversation can go on all the same: the model never saw them. What is
         * still too large cannot be come back to. */
        (void)keep(&keeping, RESPONSES_RESULTS_NONE);
    }
    buf_clear(&keeping.data);
    arena_free(keeping.arena);
}
