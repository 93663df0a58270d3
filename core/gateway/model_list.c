/* Lists of models: see model_list.h. */
#include "gateway/model_list.h"

#include "base/check.h"
#include "base/json.h"
#include "base/utf8.h"
#include "gateway/keys.h"

#include <stdlib.h>
#include <string.h>

#define MODEL_LIST_MAGIC 0x4d4c5354u /* "MLST" */

/* ---- reading ---- */

static struct str text_keep(struct str text, size_t bytes_max, struct arena *arena)
{
    bool is_good =
        text.len > 0 && text.len <= bytes_max && memchr(text.data, '\0', text.len) == NULL;
    return is_good ? (struct str){check_alloc(arena_copy(arena, text)), text.len} : (struct str){0};
}

/* `created` in seconds, or `created_at` as a time. */
static int64_t created_of(const struct json_member *members, size_t count, struct arena *scratch)
{
    const struct json_member *created = json_find_type(members, count, "created", JSON_NUMBER);
    struct str at = json_find_text(members, count, "created_at", scratch);
    char text[40] = {0};
    int64_t value = 0;
    if (created != NULL) {
        return json_int_of(created->value, &value) && value > 0 ? value : 0;
    }
    if (at.len == 0 || at.len >= sizeof text) {
        return 0;
    }
    memcpy(text, at.data, at.len);
    return expiry_read(text, &value) && value > 0 ? value / 1000 : 0;
}

static void entry_take(struct model_list *list, struct json_value entry, struct arena *scratch)
{
    struct json_member *members;
    size_t count;
    struct sg_error ignored = {0};
    if (entry.type != JSON_OBJECT || list->count == MODEL_LIST_MAX ||
        json_members(entry, "data", scratch, &members, &count, &ignored) != 0) {
        return;
    }
    struct listed_model model = {
        .id = text_keep(json_find_text(members, count, "id", scratch), MODEL_ID_BYTES_MAX,
                        list->arena),
        .display_name = text_keep(json_find_text(members, count, "display_name", scratch),
                                  MODEL_ID_BYTES_MAX, list->arena),
        .created_unix_s = created_of(members, count, scratch)};
    if (model.id.len > 0) {
        list->models[list->count++] = model;
    }
}

static size_t entries_count(struct json_walk walk)
{
    struct json_value entry;
    size_t count = 0;
    while (count < MODEL_LIST_MAX && json_walk_element(&walk, &entry)) {
        count++;
    }
    return count;
}

struct model_list *model_list_read(struct str body)
{
    struct arena *scratch = arena_new(0);
    struct json_text text;
    struct sg_error ignored = {0};
    const struct json_member *data =
        json_scan(body, scratch, &text, &ignored) == 0
            ? json_find_type(text.members, text.count, "data", JSON_ARRAY)
            : NULL;
    struct model_list *list = NULL;
    if (data != NULL) {
        list = check_alloc(calloc(1, sizeof *list));
        list->magic = MODEL_LIST_MAGIC;
        atomic_init(&list->refs, 1);
        list->arena = arena_new(0);
        struct json_walk walk = json_walk_of(data->value);
        struct json_value entry;
        list->models = arena_get(list->arena, (entries_count(walk) + 1) * sizeof *list->models);
        while (json_walk_element(&walk, &entry)) {
            entry_take(list, entry, scratch);
        }
    }
    arena_free(scratch);
    return list;
}

void model_list_unref(struct model_list *list)
{
    if (list == NULL) {
        return;
    }
    CHECK_MAGIC(list, MODEL_LIST_MAGIC);
    if (atomic_fetch_sub(&list->refs, 1) == 1) {
        list->magic = 0;
        arena_free(list->arena);
        free(list);
    }
}

/* ---- keeping ---- */

void model_list_cache_init(struct model_list_cache *cache)
{
    *cache = (struct model_list_cache){.list = NULL};
    lock_init(&cache->lock);
}

void model_list_cache_clear(struct model_list_cache *cache)
{
    CHECK(!cache->is_fetching);
    model_list_unref(TAKE(cache->list));
    lock_destroy(&cache->lock);
}

/* Under the lock. One of another place, or of another key, is forgotten. */
static void forget_others(struct model_list_cache *cache, const uint8_t of[SHA256_BYTES])
{
    if (memcmp(cache->of, of, SHA256_BYTES) != 0) {
        memcpy(cache->of, of, SHA256_BYTES);
        model_list_unref(TAKE(cache->list));
        cache->failed_ms = 0;
    }
}

/* Under the lock. */
static enum model_list_verdict verdict_of(struct model_list_cache *cache, int64_t life_ms,
                                          int64_t now_ms)
{
    bool is_new = cache->list != NULL && now_ms - cache->fetched_ms < life_ms;
    bool has_failed = cache->failed_ms > 0 && now_ms - cache->failed_ms < MODEL_LIST_RETRY_MS;
    bool will_do = cache->list != NULL && now_ms - cache->fetched_ms < MODEL_LIST_STALE_MS;
    if (is_new || has_failed) {
        return MODEL_LIST_KEPT;
    }
    if (cache->is_fetching) {
        return will_do ? MODEL_LIST_KEPT : MODEL_LIST_WAIT;
    }
    return MODEL_LIST_FETCH;
}

enum model_list_verdict model_list_look(struct model_list_cache *cache,
                                        const uint8_t of[SHA256_BYTES], int64_t life_ms,
                                        int64_t now_ms, struct model_list **ret_list)
{
    *ret_list = NULL;
    lock_take(&cache->lock);
    forget_others(cache, of);
    enum model_list_verdict verdict = verdict_of(cache, life_ms, now_ms);
    cache->is_fetching = cache->is_fetching || verdict == MODEL_LIST_FETCH;
    if (cache->list != NULL && now_ms - cache->fetched_ms < MODEL_LIST_STALE_MS) {
        (void)atomic_fetch_add(&cache->list->refs, 1);
        *ret_list = cache->list;
    }
    lock_release(&cache->lock);
    return verdict;
}

void model_list_tell(struct model_list_cache *cache, const uint8_t of[SHA256_BYTES],
                     struct model_list *list, bool is_answered, int64_t now_ms)
{
    lock_take(&cache->lock);
    bool is_same = memcmp(cache->of, of, SHA256_BYTES) == 0;
    cache->is_fetching = false;
    if (is_same && list != NULL) {
        model_list_unref(cache->list);
        cache->list = TAKE(list);
        cache->fetched_ms = now_ms;
        cache->failed_ms = 0;
    } else if (is_same && is_answered) {
        cache->failed_ms = now_ms;
    }
    lock_release(&cache->lock);
    model_list_unref(list);
}
