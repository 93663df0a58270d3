/* What comes back: earlier responses and items that are referred to, resolved from the store (responses_recall.c); and calls
 * of ours in a history, which go up as calls of the function and their results or, where the tool is not offered, as
 * text. */
#include "surface/responses_recall.h"
#include "surface/results.h"

#include "base/check.h"
#include "base/limits.h"

#include <stdio.h>

/* ---- looking at an item ---- */

struct peek recall_peek(struct json_walk *item, struct arena *arena)
{
    struct peek peek = {0};
    struct str key;
    struct json_value value;
    while (json_walk_member(item, &key, &value)) {
        peek.has_role = peek.has_role || json_key_is(key, "role");
        if (value.type != JSON_STRING) {
            continue;
        }
        if (json_key_is(key, "type")) {
            peek.type = json_text_of(value, arena);
            peek.is_named_reference =
                peek.is_named_reference || str_is(peek.type, "item_reference");
        } else if (json_key_is(key, "id")) {
            peek.id = json_text_of(value, arena);
        } else if (json_key_is(key, "role")) {
            peek.role = json_text_of(value, arena);
        } else if (json_key_is(key, "call_id")) {
            peek.call = value;
            peek.call_id = json_text_of(value, arena);
        }
    }
    return peek;
}

static struct peek value_peek(struct json_value item, struct arena *arena)
{
    if (item.type != JSON_OBJECT) {
        return (struct peek){0};
    }
    struct json_walk walk = json_walk_of(item);
    return recall_peek(&walk, arena);
}

/* {"type":"item_reference","id":…}, of which the type may be left out; messages without one have a role. */
static bool is_reference(const struct peek *peek)
{
    return peek->is_named_reference || (peek->id.len > 0 && peek->type.len == 0 && !peek->has_role);
}

static bool item_is_ours(const struct responses_request *request, const struct peek *peek)
{
    struct str ignored;
    if (is_reference(peek)) {
        return recall_store_find(request, peek->id, &ignored);
    }
    return responses_kind_of_item(peek->type, peek->id) != NULL ||
           (peek->call_id.len > 0 && responses_memory_find(request, peek->call_id, &ignored));
}

bool responses_input_is_ours(const struct responses_request *request, struct arena *arena)
{
    const struct json_member *input = request->input, *previous = request->previous;
    struct str ignored;
    if (previous != NULL && previous->value.type == JSON_STRING) {
        struct str id = json_text_of(previous->value, arena);
        if (str_starts(id, STR(RESPONSES_ID_MARK)) || recall_store_find(request, id, &ignored)) {
            return true;
        }
    }
    if (input == NULL || input->value.type != JSON_ARRAY) {
        return false;
    }
    struct json_walk walk = json_walk_of(input->value), inner;
    struct json_value other;
    for (;;) {
        if (json_walk_enter(&walk, &inner)) {
            struct peek peek = recall_peek(&inner, arena);
            json_walk_leave(&walk, &inner);
            if (item_is_ours(request, &peek)) {
                return true;
            }
        } else if (!json_walk_element(&walk, &other)) {
            return false;
        }
    }
}

/* ---- calls of ours ---- */

void recall_call_id_put(struct str item_id, struct buf *out)
{
    (void)buf_puts(out, "call_"); /* small: fits */
    (void)buf_append_str(out, item_id);
}

void recall_call_put(struct str name, struct str call_id, struct str arguments, struct buf *out)
{
    responses_text_put(out, "{\"type\":\"function_call\",\"call_id\":", call_id);
    responses_text_put(out, ",\"name\":", name);
    responses_text_put(out, ",\"arguments\":", arguments);
    (void)buf_putc(out, '}'); /* the owner asks for overflow */
}

void recall_output_put(struct str call_id, struct str output, struct buf *out)
{
    responses_text_put(out, "{\"type\":\"function_call_output\",\"call_id\":", call_id);
    responses_text_put(out, ",\"output\":", output);
    (void)buf_putc(out, '}'); /* as above */
}

void recall_text_put(struct str kind, struct str arguments, struct str output, struct buf *out)
{
    BUF_CLEANUP struct buf text = {0};
    result_text_put(kind, arguments, output, &text); /* bounded by the body, or by a record */
    responses_text_put(out,
                       "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":"
                       "\"output_text\",\"text\":",
                       buf_str(&text));
    (void)buf_puts(out, "}]}"); /* as above */
}

/* A call of ours, as what the upstream knows of it. */
static int call_recall(struct recalling *recalling, const struct responses_kind *kind,
                       const struct json_member *members, size_t count, struct buf *out,
                       struct sg_error *err)
{
    struct responses_request *request = recalling->request;
    struct arena *scratch = recalling->scratch;
    struct str id = json_find_text(members, count, "id", scratch);
    BUF_CLEANUP struct buf arguments = {0}, result = {0}, call_id = {0};
    bool has_result = false;
    struct told told = {0};
    kind->recall(members, count, scratch, &arguments, &result, &has_result);
    struct str container = kind->container == NULL
                               ? (struct str){0}
                               : kind->container(members, count, recalling->arena);
    request->history_container = container.len > 0 ? container : request->history_container;
    int code = recall_told(recalling, id, has_result, &told, err);
    if (code != SG_OK) {
        return code;
    }
    struct str said = told.arguments.len > 0 ? told.arguments : buf_str(&arguments);
    struct str output = told.is_there ? told.output : buf_str(&result);
    int offer = tools_shown_of_kind(&request->set, str_of(kind->hosted));
    if (offer >= 0) {
        recall_call_id_put(id, &call_id);
        recall_call_put(request->set.shown[offer].name, buf_str(&call_id), said, out);
        (void)buf_putc(out, ',');
        recall_output_put(buf_str(&call_id), output, out);
        return SG_OK;
    }
    recall_text_put(str_of(kind->hosted), said, output, out);
    return SG_OK;
}

/* Reasoning that carries nothing: an id of the upstream's own state, of which it keeps none. */
static bool says_nothing(const struct json_member *members, size_t count)
{
    static const char *const names[] = {"content", "summary", "encrypted_content"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const struct json_member *member = json_find(members, count, names[i]);
        if (member == NULL || member->value.type == JSON_NULL) {
            continue;
        }
        struct json_value ignored;
        if (member->value.type == JSON_STRING && member->value.raw.len == 2) {
            continue;
        }
        if (member->value.type != JSON_ARRAY) {
            return false;
        }
        struct json_walk walk = json_walk_of(member->value);
        if (json_walk_element(&walk, &ignored)) {
            return false;
        }
    }
    return true;
}

enum fate { FATE_STAYS, FATE_CHANGED, FATE_GONE };

/* What the item becomes on its way up; CHANGED: it was written to `out`. */
static int item_change(struct recalling *recalling, struct json_value item, const struct peek *peek,
                       struct buf *out, enum fate *ret, struct sg_error *err)
{
    const struct responses_kind *kind = responses_kind_of_item(peek->type, peek->id);
    *ret = FATE_STAYS;
    if (kind == NULL && !str_is(peek->type, "reasoning")) {
        return SG_OK;
    }
    struct json_member *members = NULL;
    size_t count = 0;
    int code = json_members(item, "input", recalling->scratch, &members, &count, err);
    if (code != SG_OK) {
        return code;
    }
    if (kind == NULL) {
        *ret = says_nothing(members, count) ? FATE_GONE : FATE_STAYS;
        return SG_OK;
    }
    *ret = FATE_CHANGED;
    return call_recall(recalling, kind, members, count, out, err);
}

/* The same, counted. */
static int item_recall(struct recalling *recalling, struct json_value item, const struct peek *peek,
                       struct buf *out, enum fate *ret, struct sg_error *err)
{
    size_t before = out->len;
    int code = item_change(recalling, item, peek, out, ret, err);
    if (code == SG_OK && out->overflow) {
        code = body_too_large(true, err);
    } else if (code == SG_OK) {
        size_t bytes = *ret == FATE_STAYS ? item.raw.len : out->len - before;
        code = recall_count(recalling, bytes, err);
    }
    return code;
}

/* An item that stays, with its call's id as the upstream knows it. */
static void as_known_put(struct json_value item, const struct peek *peek, struct buf *out)
{
    struct str raw = item.raw, call = peek->call.raw;
    if (str_eq(peek->call_id, responses_call_up_id(peek->call_id))) {
        (void)buf_append_str(out, raw); /* the owner asks for overflow */
        return;
    }
    const char *behind = call.data + call.len;
    (void)buf_append(out, raw.data, (size_t)(call.data - raw.data)); /* as above */
    (void)buf_put_json(out, responses_call_up_id(peek->call_id));
    (void)buf_append(out, behind, (size_t)(raw.data + raw.len - behind));
}

/* ---- earlier responses ---- */

static int previous_missing(struct str id, struct sg_error *err)
{
    error_set_param(err, SG_E_INVALID, "previous_response_id",
                    "Previous response with id '%.*s' not found.", id.len < 128 ? (int)id.len : 128,
                    id.data);
    (void)snprintf(err->reason, sizeof err->reason, "previous_response_not_found"); /* fits */
    return SG_E_INVALID;
}

static int chain_too_large(struct sg_error *err)
{
    error_set_param(err, SG_E_LIMIT, "previous_response_id",
                    "The responses before this one hold more than %zu MiB.",
                    LIMIT_CHAIN_BYTES / MIB);
    err->status = 413;
    (void)snprintf(err->reason, sizeof err->reason, "request_too_large"); /* fits */
    return SG_E_LIMIT;
}

/* The responses before this one, the newest first. */
static int chain_read(struct recalling *recalling, struct known_record **records, size_t *ret,
                      struct sg_error *err)
{
    const struct responses_request *request = recalling->request;
    struct json_value previous = request->previous->value;
    size_t count = 0, bytes = 0;
    while (previous.type == JSON_STRING) {
        struct str id = json_text_of(previous, recalling->scratch);
        if (count == RESPONSES_CHAIN_MAX) {
            return error_set_param(err, SG_E_INVALID, "previous_response_id",
                                   "More than %d responses before this one", RESPONSES_CHAIN_MAX);
        }
        struct known_record *known = recall_record(recalling, id);
        if (known == NULL || !str_eq(known->record.id, id)) { /* an item's id is no response's */
            return previous_missing(id, err);
        }
        bytes += known->data.len;
        if (bytes > LIMIT_CHAIN_BYTES) {
            return chain_too_large(err);
        }
        records[count++] = known;
        previous = known->record.previous;
    }
    *ret = count;
    return SG_OK;
}

/* The items of a list of a record, each with a comma behind it. */
static int list_recall(struct recalling *recalling, struct json_value list, struct buf *out,
                       struct sg_error *err)
{
    struct json_walk walk = json_walk_of(list);
    struct json_value item;
    int code = SG_OK;
    while (code == SG_OK && json_walk_element(&walk, &item)) {
        enum fate fate;
        struct peek peek = value_peek(item, recalling->scratch);
        code = item_recall(recalling, item, &peek, out, &fate, err);
        if (code == SG_OK && fate == FATE_STAYS) {
            as_known_put(item, &peek, out); /* asked for below */
        }
        (void)buf_puts(out, fate == FATE_GONE ? "" : ",");
    }
    return code == SG_OK && out->overflow ? body_too_large(true, err) : code;
}

static int previous_read(struct recalling *recalling, struct sg_error *err)
{
    struct responses_request *request = recalling->request;
    size_t count = 0;
    BUF_CLEANUP struct buf out = {.max = LIMIT_BODY_BYTES};
    struct known_record **records =
        arena_get(recalling->scratch, RESPONSES_CHAIN_MAX * sizeof(struct known_record *));
    int code = chain_read(recalling, records, &count, err);
    while (code == SG_OK && count-- > 0) {
        recalling->record = records[count];
        code = list_recall(recalling, records[count]->record.input, &out, err);
        if (code == SG_OK) {
            code = list_recall(recalling, records[count]->record.output, &out, err);
        }
    }
    recalling->record = NULL;
    if (code == SG_OK && out.len > 0) {
        request->before = buf_to_arena(&out, recalling->arena);
    }
    return code;
}

/* ---- the client's own input ---- */

struct elements {        /* of the client's list, as they are edited from first to last */
    const char *start;   /* of the body */
    const char *kept;    /* the end of the last one that stays */
    const char *pending; /* where a run of those that go begins; NULL: none */
};

/* What of ours stands at the item that was noted last, in front of it or behind. */
static void inserts_put(struct recalling *recalling, size_t at, bool is_behind)
{
    struct responses_request *request = recalling->request;
    struct recall_inserts *inserts = &recalling->inserts;
    for (; inserts->done < inserts->count; inserts->done++) {
        const struct recall_insert *insert = &inserts->list[inserts->done];
        if (insert->at + 1 != request->items_count || insert->is_behind != is_behind) {
            return;
        }
        splice_add(&request->edits, at, 0, insert->put);
        request->history_container =
            insert->container.len > 0 ? insert->container : request->history_container;
    }
}

/* Of an item that stays the call's id becomes the upstream's own. */
static void call_id_edit(struct recalling *recalling, const struct elements *elements,
                         const struct peek *peek)
{
    struct str up = responses_call_up_id(peek->call_id);
    BUF_CLEANUP struct buf quoted = {0};
    if (!str_eq(up, peek->call_id)) {
        (void)buf_put_json(&quoted, up); /* small: fits */
        struct str put = {check_alloc(arena_copy(recalling->arena, buf_str(&quoted))), quoted.len};
        splice_add(&recalling->request->edits, (size_t)(peek->call.raw.data - elements->start),
                   peek->call.raw.len, put);
    }
}

/* Those that go take the comma behind them along; behind the last one that stays, the one in front. */
static void element_edit(struct recalling *recalling, struct elements *elements,
                         struct json_value element, const struct peek *peek, enum fate fate,
                         struct str put)
{
    struct responses_request *request = recalling->request;
    const char *at = element.raw.data;
    if (fate == FATE_GONE) {
        elements->pending = elements->pending == NULL ? at : elements->pending;
        return;
    }
    if (elements->pending != NULL) {
        splice_add(&request->edits, (size_t)(elements->pending - elements->start),
                   (size_t)(at - elements->pending), (struct str){0});
        elements->pending = NULL;
    }
    inserts_put(recalling, (size_t)(at - elements->start), false);
    if (fate == FATE_CHANGED) {
        splice_add(&request->edits, (size_t)(at - elements->start), element.raw.len, put);
    } else {
        call_id_edit(recalling, elements, peek);
    }
    elements->kept = at + element.raw.len;
    inserts_put(recalling, (size_t)(elements->kept - elements->start), true);
    request->items_left = true;
}

static void elements_end(struct responses_request *request, const struct elements *elements,
                         struct json_value list)
{
    if (elements->pending != NULL) {
        const char *from = elements->kept != NULL ? elements->kept : elements->pending;
        const char *end = list.raw.data + list.raw.len - 1;
        splice_add(&request->edits, (size_t)(from - elements->start), (size_t)(end - from),
                   (struct str){0});
    }
}

/* A reference is what it stands for, from here on. */
static int reference_follow(struct recalling *recalling, struct responses_input_item *noted,
                            struct peek *peek, struct sg_error *err)
{
    struct json_member *members = NULL;
    size_t count = 0;
    int code = json_members(noted->value, "input", recalling->scratch, &members, &count, err);
    if (code == SG_OK) { /* of two ids, which one? */
        code = recall_reference(recalling, peek->id, &noted->value, err);
    }
    if (code == SG_OK) {
        noted->is_reference = true;
        *peek = value_peek(noted->value, recalling->scratch);
    }
    return code;
}

/* Is the item that was noted last one that others took the place of? */
static bool is_replaced(struct recalling *recalling)
{
    struct recall_inserts *inserts = &recalling->inserts;
    bool is_instead = inserts->done < inserts->count &&
                      inserts->list[inserts->done].at + 1 == recalling->request->items_count &&
                      inserts->list[inserts->done].is_instead;
    inserts->done += is_instead;
    return is_instead;
}

static int element_read(struct recalling *recalling, struct elements *elements,
                        struct json_value element, struct peek *peek, struct sg_error *err)
{
    struct responses_request *request = recalling->request;
    struct responses_input_item *noted = &request->items[request->items_count++];
    struct buf out = {.max = LIMIT_BODY_BYTES};
    enum fate fate = FATE_STAYS;
    int code = SG_OK;
    noted->value = element;
    if (is_replaced(recalling)) {
        element_edit(recalling, elements, element, peek, FATE_GONE, (struct str){0});
        return SG_OK;
    }
    if (is_reference(peek)) {
        code = reference_follow(recalling, noted, peek, err);
    }
    if (code == SG_OK) {
        code = item_recall(recalling, noted->value, peek, &out, &fate, err);
    }
    recalling->record = NULL;
    if (code == SG_OK && fate == FATE_STAYS && noted->is_reference) {
        as_known_put(noted->value, peek, &out); /* bounded by the record */
        fate = FATE_CHANGED;
    }
    if (code == SG_OK) {
        struct str put = out.len > 0 ? buf_to_arena(&out, recalling->arena) : (struct str){0};
        element_edit(recalling, elements, element, peek, fate, put);
    }
    buf_clear(&out);
    return code;
}

/* Room for one more. */
static int items_grow(struct recalling *recalling, size_t *cap, struct sg_error *err)
{
    struct responses_request *request = recalling->request;
    if (request->items_count == RESPONSES_INPUT_ITEMS_MAX) {
        return error_set_param(err, SG_E_INVALID, "input", "More than %d input items",
                               RESPONSES_INPUT_ITEMS_MAX);
    }
    if (request->items_count < *cap) {
        return SG_OK;
    }
    *cap = *cap == 0 ? 32 : 2 * *cap;
    struct responses_input_item *items =
        check_alloc(arena_alloc(recalling->arena, *cap * sizeof *items));
    if (request->items_count > 0) {
        memcpy(items, request->items, request->items_count * sizeof *items);
    }
    request->items = items;
    return SG_OK;
}

/* In one pass over the list, however long it is. */
static int list_read(struct recalling *recalling, struct sg_error *err)
{
    struct json_value list = recalling->request->input->value, element;
    struct json_walk walk = json_walk_of(list), inner;
    struct elements elements = {.start = recalling->request->body->raw.data};
    size_t cap = 0;
    int code = SG_OK;
    while (code == SG_OK) {
        struct peek peek = {0};
        if (json_walk_enter(&walk, &inner)) {
            const char *start = inner.at - 1;
            peek = recall_peek(&inner, recalling->scratch);
            element = (struct json_value){JSON_OBJECT, {start, (size_t)(inner.at - start) + 1}};
            json_walk_leave(&walk, &inner);
        } else if (!json_walk_element(&walk, &element)) {
            break;
        }
        code = items_grow(recalling, &cap, err);
        if (code == SG_OK) {
            code = element_read(recalling, &elements, element, &peek, err);
        }
    }
    elements_end(recalling->request, &elements, list);
    CHECK(code != SG_OK || recalling->inserts.done == recalling->inserts.count);
    return code;
}

/* Searched, which is fast: usually there is none. A previous response has all of it. */
static bool may_hold_kept(const struct responses_request *request)
{
    static const char mark[] = "\"" SHOWN_CALL_MARK;
    struct str list = request->input->value.raw;
    return request->memory != NULL && request->previous == NULL &&
           memmem(list.data, list.len, mark, sizeof mark - 1) != NULL;
}

int responses_input_read(struct responses_request *request, struct arena *arena,
                         struct sg_error *err)
{
    struct recalling recalling = {.request = request, .arena = arena, .scratch = arena_new(0)};
    request->edits.arena = arena;
    int code = request->previous == NULL ? SG_OK : previous_read(&recalling, err);
    bool is_list = request->input != NULL && request->input->value.type == JSON_ARRAY;
    if (code == SG_OK && is_list && may_hold_kept(request)) {
        code = responses_kept_look(&recalling, request->input->value, err);
    }
    if (code == SG_OK && is_list) {
        code = list_read(&recalling, err);
    }
    arena_free(recalling.scratch);
    return code;
}
