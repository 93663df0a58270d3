/* The cache is a store of records whose data begins with the time at which they were made: using a record pushes on its
 * end, not that of what it says. */
#include "gateway/search_state.h"

#include "base/check.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/lock.h"
#include "session/index.h"
#include "session/records.h"

#include <stdio.h>
#include <stdlib.h>

#define MINUTE_MS 60000

struct searcher { /* an identity, by one search */
    struct hash_node node;
    struct list in_order;
    size_t search;
    int64_t *times; /* of its last searches, a ring of `per_minute` … */
    size_t per_minute;
    size_t at;    /* … whose oldest stands here once it is full */
    size_t count; /* of them */
    int64_t asked_ms;
    size_t name_len;
    char name[];
};

struct search_state {
    struct lock lock; /* of the searchers */
    struct hash searchers;
    struct list in_order; /* the one that asked longest ago first */
    struct records *cache;
};

/* ---- in a request ---- */

int64_t search_client_max(const char *options, struct arena *arena)
{
    struct json_text text;
    struct sg_error ignored = {0};
    if (options == NULL || json_scan(str_of(options), arena, &text, &ignored) != 0) {
        return -1;
    }
    const struct json_member *max =
        json_find_type(text.members, text.count, "max_uses", JSON_NUMBER);
    int64_t number;
    return max != NULL && json_int_of(max->value, &number) && number >= 0 ? number : -1;
}

int search_is_allowed(int64_t begun, int64_t theirs, int64_t ours, struct sg_error *err)
{
    if (theirs >= 0 && begun >= theirs) {
        (void)error_set(err, SG_E_LIMIT,
                        "The client allows %lld searches in this request, and they are used up: "
                        "answer with what you have.",
                        (long long)theirs);
        (void)snprintf(err->reason, sizeof err->reason, "max_uses"); /* fits */
        return SG_E_LIMIT;
    }
    if (ours > 0 && begun >= ours) {
        return error_set(err, SG_E_LIMIT,
                         "A request may search %lld times, and that is used up: answer with what "
                         "you have.",
                         (long long)ours);
    }
    return 0;
}

/* ---- what is shared ---- */

static void searcher_drop(struct search_state *state, struct searcher *one)
{
    hash_remove(&state->searchers, &one->node);
    list_remove(&one->in_order);
    free(one->times);
    free(one);
}

struct search_state *search_state_new(void)
{
    struct search_state *state = check_alloc(calloc(1, sizeof *state));
    struct records_options options = {.life_ms = LIMIT_SEARCH_CACHE_MS,
                                      .record_bytes = LIMIT_SEARCH_CACHED_BYTES,
                                      .identity_bytes = LIMIT_SEARCH_CACHE_IDENTITY_BYTES,
                                      .total_bytes = LIMIT_SEARCH_CACHE_BYTES};
    lock_init(&state->lock);
    list_init(&state->in_order);
    state->cache = records_new(&options);
    return state;
}

void search_state_free(struct search_state *state)
{
    if (state == NULL) {
        return;
    }
    for (struct list *first; (first = list_first(&state->in_order)) != NULL;) {
        searcher_drop(state, INDEX_OWNER(first, struct searcher, in_order));
    }
    hash_clear(&state->searchers);
    records_free(state->cache);
    lock_destroy(&state->lock);
    free(state);
}

/* ---- how often; under the lock ---- */

static uint64_t searcher_hash(size_t search, struct str identity)
{
    return hash_bytes(identity.data, identity.len) + search;
}

/* Two for each that comes, so that no more stay than have asked within a minute, whoever makes them up. */
static void drop_quiet(struct search_state *state, int64_t now_ms)
{
    for (int i = 0; i < 2; i++) {
        struct list *first = list_first(&state->in_order);
        struct searcher *one = first == NULL ? NULL : INDEX_OWNER(first, struct searcher, in_order);
        if (one == NULL || now_ms - one->asked_ms < MINUTE_MS) {
            return;
        }
        searcher_drop(state, one);
    }
}

static struct searcher *searcher_new(struct search_state *state, size_t search, struct str identity,
                                     size_t per_minute)
{
    struct searcher *one = check_alloc(calloc(1, sizeof *one + identity.len + 1));
    one->times = check_alloc(calloc(per_minute, sizeof *one->times));
    one->per_minute = per_minute;
    one->search = search;
    one->name_len = identity.len;
    if (identity.len > 0) {
        memcpy(one->name, identity.data, identity.len);
    }
    list_append(&state->in_order, &one->in_order);
    hash_put(&state->searchers, &one->node, searcher_hash(search, identity));
    return one;
}

static struct searcher *searcher_get(struct search_state *state, size_t search, struct str identity,
                                     size_t per_minute, int64_t now_ms)
{
    struct hash_node *node = hash_first(&state->searchers, searcher_hash(search, identity));
    for (; node != NULL; node = hash_next(node)) {
        struct searcher *one = INDEX_OWNER(node, struct searcher, node);
        if (one->search == search && str_eq(identity, (struct str){one->name, one->name_len})) {
            CHECK(one->per_minute == per_minute);
            return one;
        }
    }
    drop_quiet(state, now_ms);
    return searcher_new(state, search, identity, per_minute);
}

static int64_t searcher_take(struct searcher *one, int64_t now_ms)
{
    bool is_full = one->count == one->per_minute;
    int64_t free_at = is_full ? one->times[one->at] + MINUTE_MS : now_ms;
    if (free_at > now_ms) {
        return free_at - now_ms;
    }
    one->times[one->at] = now_ms;
    one->at = (one->at + 1) % one->per_minute;
    one->count += !is_full;
    return 0;
}

int64_t search_rate_take(struct search_state *state, size_t search, struct str identity,
                         size_t per_minute, int64_t now_ms)
{
    CHECK(per_minute > 0);
    CHECK(per_minute <= SEARCH_PER_MINUTE_MAX);
    lock_take(&state->lock);
    struct searcher *one = searcher_get(state, search, identity, per_minute, now_ms);
    one->asked_ms = now_ms;
    list_remove(&one->in_order);
    list_append(&state->in_order, &one->in_order);
    int64_t wait_ms = searcher_take(one, now_ms);
    lock_release(&state->lock);
    return wait_ms;
}

size_t search_rate_known(struct search_state *state)
{
    lock_take(&state->lock);
    size_t count = state->searchers.count;
    lock_release(&state->lock);
    return count;
}

/* ---- answers ---- */

static bool is_new(struct str data, int64_t life_ms, int64_t now_ms)
{
    int64_t made_ms;
    CHECK(data.len >= sizeof made_ms);
    memcpy(&made_ms, data.data, sizeof made_ms);
    return now_ms - made_ms < life_ms;
}

bool search_cache_find(struct search_state *state, struct str identity, struct str key,
                       int64_t life_ms, int64_t now_ms, struct buf *ret)
{
    struct record *record = records_find(state->cache, identity, key, now_ms);
    if (record == NULL) {
        return false;
    }
    struct str data = record_data(record);
    bool is_good = is_new(data, life_ms, now_ms);
    if (is_good) {
        is_good = buf_append(ret, data.data + sizeof(int64_t), data.len - sizeof(int64_t));
    } else {
        (void)records_drop(state->cache, identity, key, now_ms); /* another may have done so */
    }
    record_unref(record);
    return is_good;
}

void search_cache_keep(struct search_state *state, struct str identity, struct str key,
                       struct str data, int64_t now_ms)
{
    BUF_CLEANUP struct buf dated = {0};
    bool fits = buf_append(&dated, &now_ms, sizeof now_ms) && buf_append_str(&dated, data);
    struct record_input input = {
        .identity = identity, .ids = &key, .ids_count = 1, .data = buf_str(&dated)};
    if (fits) {
        (void)records_keep(state->cache, &input, now_ms); /* false: too large to be kept */
    }
}
