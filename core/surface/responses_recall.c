/* What a responses input refers to, found in the store. A small request can name much, and the same thing often: each
 * record is read once and its ids are sorted once, what the model was told of a call goes up once, and what all of it
 * becomes is counted before it is copied. */
#include "surface/responses_recall.h"

#include "surface/body_edit.h"

#include "base/check.h"
#include "base/limits.h"

#include <stdlib.h>

enum { /* what is looked up for one request */
       REFERENCES_MAX = 256,
       CALLS_FOUND_MAX = 4096
};

int recall_count(struct recalling *recalling, size_t bytes, struct sg_error *err)
{
    if (bytes > LIMIT_BODY_BYTES - recalling->bytes) {
        return body_too_large(true, err);
    }
    recalling->bytes += bytes;
    return SG_OK;
}

/* ---- records ---- */

bool recall_store_find(const struct responses_request *request, struct str id, struct str *ret)
{
    const struct surface_store *store = request->store;
    return store != NULL && id.len > 0 && store->find(store->context, id, ret);
}

struct known_record *recall_record(struct recalling *recalling, struct str id)
{
    struct str data;
    if (!recall_store_find(recalling->request, id, &data)) {
        return NULL;
    }
    struct known_record *known = recalling->known;
    while (known != NULL && known->data.data != data.data) {
        known = known->next;
    }
    if (known == NULL) {
        struct responses_record record;
        if (!responses_record_read(data, recalling->scratch, &record)) {
            return NULL;
        }
        known = arena_get(recalling->scratch, sizeof *known);
        *known = (struct known_record){.next = recalling->known, .data = data, .record = record};
        recalling->known = known;
    }
    return known;
}

/* ---- indexes ---- */

static int compare_ids(struct str a, struct str b)
{
    if (a.len != b.len) {
        return a.len < b.len ? -1 : 1;
    }
    return a.len == 0 ? 0 : memcmp(a.data, b.data, a.len);
}

/* Of two with one id, the one that stands first comes first. */
static int compare_recalled(const void *a, const void *b)
{
    const struct recalled *one = a, *other = b;
    int order = compare_ids(one->id, other->id);
    return order != 0 ? order : one->at < other->at ? -1 : one->at > other->at;
}

void recall_index_sort(struct recall_index *index)
{
    qsort(index->list, index->count, sizeof *index->list, compare_recalled);
    index->is_made = true;
}

static void index_add(struct recalling *recalling, struct known_record *known,
                      struct recall_index *index, struct json_value id, struct json_value value)
{
    if (id.type == JSON_STRING && id.raw.len > 2) {
        index->list[index->count++] = (struct recalled){
            .id = json_text_of(id, recalling->scratch),
            .at = (uint32_t)(value.raw.data - known->data.data)}; /* records are small */
    }
}

static size_t elements_count(struct json_value list)
{
    size_t count = 0;
    struct json_value element;
    struct json_walk walk = json_walk_of(list);
    while (json_walk_element(&walk, &element)) {
        count++;
    }
    return count;
}

/* The id that an item has; null: none. */
static struct json_value item_id(struct json_value item)
{
    struct json_value value = {0}, id = {0};
    struct str key;
    if (item.type == JSON_OBJECT) {
        struct json_walk walk = json_walk_of(item);
        while (json_walk_member(&walk, &key, &value)) {
            id = value.type == JSON_STRING && json_key_is(key, "id") ? value : id;
        }
    }
    return id;
}

/* The items of the output by their own ids, those of the input by what `input_ids` says. */
static void items_index(struct recalling *recalling, struct known_record *known)
{
    const struct responses_record *record = &known->record;
    struct recall_index *index = &known->items;
    size_t most = elements_count(record->output) + elements_count(record->input_ids);
    struct json_walk output = json_walk_of(record->output), ids = json_walk_of(record->input_ids),
                     input = json_walk_of(record->input);
    struct json_value id, item;
    index->list = check_alloc(arena_alloc(recalling->scratch, (most + 1) * sizeof *index->list));
    while (json_walk_element(&output, &item)) {
        index_add(recalling, known, index, item_id(item), item);
    }
    while (json_walk_element(&ids, &id) && json_walk_element(&input, &item)) {
        index_add(recalling, known, index, id, item);
    }
    recall_index_sort(index);
}

static void calls_index(struct recalling *recalling, struct known_record *known)
{
    struct recall_index *index = &known->calls;
    struct json_walk count = json_walk_of(known->record.calls), walk = count;
    struct json_value call;
    struct str key;
    size_t most = 0;
    while (json_walk_member(&count, &key, &call)) {
        most++;
    }
    index->list = check_alloc(arena_alloc(recalling->scratch, (most + 1) * sizeof *index->list));
    while (json_walk_member(&walk, &key, &call)) {
        if (call.type == JSON_OBJECT) {
            index_add(recalling, known, index, (struct json_value){JSON_STRING, key}, call);
        }
    }
    recall_index_sort(index);
}

/* The first that has the id; NULL: none. */
struct recalled *recall_index_find(const struct recall_index *index, struct str id)
{
    size_t low = 0, high = index->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_ids(index->list[middle].id, id) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < index->count && str_eq(index->list[low].id, id) ? &index->list[low] : NULL;
}

static struct json_value recalled_value(const struct known_record *known,
                                        const struct recalled *recalled)
{
    struct json_walk walk = {known->data.data + recalled->at, known->data.data + known->data.len};
    struct json_value value = {0};
    CHECK(json_walk_element(&walk, &value));
    return value;
}

/* ---- references ---- */

int recall_reference(struct recalling *recalling, struct str id, struct json_value *ret,
                     struct sg_error *err)
{
    if (recalling->references++ == REFERENCES_MAX) {
        return error_set_param(err, SG_E_INVALID, "input", "More than %d references to items",
                               REFERENCES_MAX);
    }
    struct known_record *known = recall_record(recalling, id);
    if (known != NULL && !known->items.is_made) {
        items_index(recalling, known);
    }
    struct recalled *found = known == NULL ? NULL : recall_index_find(&known->items, id);
    if (found == NULL) {
        return error_set_param(err, SG_E_NOT_FOUND, "input", "Item with id '%.*s' not found.",
                               id.len < 128 ? (int)id.len : 128, id.data);
    }
    *ret = recalled_value(known, found);
    recalling->record = known;
    /* One that is read again counts whatever becomes of it, or a large one could be read for nothing. */
    size_t again = found->is_taken ? ret->raw.len : 0;
    found->is_taken = true;
    return recall_count(recalling, again, err);
}

/* ---- calls of ours ---- */

static struct recalled *call_find(struct recalling *recalling, struct known_record *known,
                                  struct str id)
{
    if (known != NULL && !known->calls.is_made) {
        calls_index(recalling, known);
    }
    return known == NULL ? NULL : recall_index_find(&known->calls, id);
}

/* What a record says of a call: {"call_id","arguments","output"}. Looked at before it is decoded: it may be large. */
static int told_read(struct recalling *recalling, struct json_value call, struct told *ret,
                     struct sg_error *err)
{
    struct json_walk walk = json_walk_of(call);
    struct str key;
    struct json_value value;
    if (call.raw.len > LIMIT_BODY_BYTES - recalling->bytes) {
        return body_too_large(true, err);
    }
    ret->is_there = true;
    while (json_walk_member(&walk, &key, &value)) {
        struct str *to = json_key_is(key, "arguments") ? &ret->arguments
                         : json_key_is(key, "output")  ? &ret->output
                                                       : NULL;
        if (to != NULL && value.type == JSON_STRING) {
            *to = json_text_of(value, recalling->scratch);
        }
    }
    return SG_OK;
}

int recall_told(struct recalling *recalling, struct str id, bool has_result, struct told *ret,
                struct sg_error *err)
{
    *ret = (struct told){0};
    if (recalling->calls_found++ >= CALLS_FOUND_MAX) {
        return SG_OK;
    }
    struct known_record *known = recalling->record;
    struct recalled *found = call_find(recalling, known, id);
    if (found == NULL && !has_result) {
        known = recall_record(recalling, id);
        found = call_find(recalling, known, id);
    }
    if (found == NULL || found->is_taken) {
        return SG_OK;
    }
    found->is_taken = true;
    return told_read(recalling, recalled_value(known, found), ret, err);
}
