/* Quotas and their buckets: see quota.h. */
#include "gateway/quota.h"

#include "base/check.h"
#include "base/digest.h"

#include <stdlib.h>

#define MINUTE_US INT64_C(60000000)
enum { SECRET_BYTES = 32 };

struct quotas {
    struct lock lock; /* of all but the buckets and in_flight */
    struct hash by_name;
    struct list idle; /* least recently used first */
    size_t idle_count, idle_max;
    char secret[SECRET_BYTES]; /* names come from clients: nobody shall know which fall together */
};

/* ---- which there are ---- */

struct quotas *quotas_new(size_t idle_max)
{
    struct quotas *quotas = check_alloc(calloc(1, sizeof *quotas));
    lock_init(&quotas->lock);
    list_init(&quotas->idle);
    quotas->idle_max = idle_max;
    random_bytes(quotas->secret, sizeof quotas->secret);
    return quotas;
}

/* Under the lock; it is idle. */
static void quota_drop(struct quotas *quotas, struct quota *quota)
{
    CHECK(quota->refs == 0);
    list_remove(&quota->idle);
    quotas->idle_count--;
    hash_remove(&quotas->by_name, &quota->by_name);
    free(quota);
}

void quotas_free(struct quotas *quotas)
{
    if (quotas == NULL) {
        return;
    }
    for (struct list *first; (first = list_first(&quotas->idle)) != NULL;) {
        quota_drop(quotas, INDEX_OWNER(first, struct quota, idle));
    }
    CHECK(quotas->by_name.count == 0);
    hash_clear(&quotas->by_name);
    lock_destroy(&quotas->lock);
    free(quotas);
}

/* Under the lock. */
static struct quota *quota_find(const struct quotas *quotas, struct str name, uint64_t hash)
{
    for (struct hash_node *node = hash_first(&quotas->by_name, hash); node != NULL;
         node = hash_next(node)) {
        struct quota *quota = INDEX_OWNER(node, struct quota, by_name);
        if (str_eq(name, (struct str){quota->name, quota->name_len})) {
            return quota;
        }
    }
    return NULL;
}

/* Under the lock. */
static struct quota *quota_new(struct quotas *quotas, struct str name, uint64_t hash)
{
    struct quota *quota = check_alloc(calloc(1, sizeof *quota + name.len + 1));
    list_init(&quota->idle);
    quota->name_len = name.len;
    if (name.len > 0) {
        memcpy(quota->name, name.data, name.len);
    }
    hash_put(&quotas->by_name, &quota->by_name, hash);
    return quota;
}

static uint64_t name_hash(const struct quotas *quotas, struct str name)
{
    const struct str parts[] = {{quotas->secret, sizeof quotas->secret}, name};
    uint8_t digest[SHA256_BYTES];
    uint64_t hash;
    sha256_parts(parts, COUNT_OF(parts), digest);
    memcpy(&hash, digest, sizeof hash);
    return hash;
}

struct quota *quota_of(struct quotas *quotas, struct str name)
{
    uint64_t hash = name_hash(quotas, name);
    lock_take(&quotas->lock);
    struct quota *quota = quota_find(quotas, name, hash);
    if (quota == NULL) {
        quota = quota_new(quotas, name, hash);
    } else if (quota->refs == 0) {
        list_remove(&quota->idle);
        quotas->idle_count--;
    }
    quota->refs++;
    lock_release(&quotas->lock);
    return quota;
}

void quota_give(struct quotas *quotas, struct quota *quota)
{
    if (quota == NULL) {
        return;
    }
    lock_take(&quotas->lock);
    CHECK(quota->refs > 0);
    if (--quota->refs == 0) {
        list_append(&quotas->idle, &quota->idle);
        quotas->idle_count++;
        if (quotas->idle_count > quotas->idle_max) {
            quota_drop(quotas, INDEX_OWNER(list_first(&quotas->idle), struct quota, idle));
        }
    }
    lock_release(&quotas->lock);
}

size_t quotas_count(struct quotas *quotas)
{
    lock_take(&quotas->lock);
    size_t count = quotas->by_name.count;
    lock_release(&quotas->lock);
    return count;
}

/* ---- buckets ---- */

/* Where the bucket stands, full at `full_at_us` and at the earliest now. */
static struct bucket_state state_at(int64_t full_at_us, int64_t per_minute, int64_t now_us)
{
    int64_t token_us = MINUTE_US / per_minute, most_us = token_us * per_minute;
    int64_t full_us = full_at_us > now_us ? full_at_us - now_us : 0;
    int64_t free_us = most_us - full_us;
    return (struct bucket_state){.remaining = free_us > 0 ? free_us / token_us : 0,
                                 .full_us = full_us,
                                 .wait_us = free_us >= token_us ? 0 : token_us - free_us};
}

bool bucket_take(struct bucket *bucket, int64_t per_minute, int64_t now_us,
                 struct bucket_state *ret)
{
    CHECK(per_minute > 0 && per_minute <= MINUTE_US);
    long long before = atomic_load(&bucket->full_at_us), after;
    do {
        *ret = state_at(before, per_minute, now_us);
        if (ret->wait_us > 0) {
            return false;
        }
        after = (before > now_us ? before : now_us) + MINUTE_US / per_minute;
    } while (!atomic_compare_exchange_weak(&bucket->full_at_us, &before, after));
    *ret = state_at(after, per_minute, now_us);
    return true;
}

void bucket_look(const struct bucket *bucket, int64_t per_minute, int64_t now_us,
                 struct bucket_state *ret)
{
    CHECK(per_minute > 0 && per_minute <= MINUTE_US);
    *ret = state_at(atomic_load(&bucket->full_at_us), per_minute, now_us);
}

void bucket_give(struct bucket *bucket, int64_t per_minute)
{
    CHECK(per_minute > 0 && per_minute <= MINUTE_US);
    (void)atomic_fetch_sub(&bucket->full_at_us, MINUTE_US / per_minute);
}

/* ---- at a time ---- */

bool flight_begin(struct quota *quota, int64_t most)
{
    CHECK(most > 0);
    if (atomic_fetch_add(&quota->in_flight, 1) < most) {
        return true;
    }
    (void)atomic_fetch_sub(&quota->in_flight, 1);
    return false;
}

void flight_end(struct quota *quota)
{
    CHECK(atomic_fetch_sub(&quota->in_flight, 1) > 0);
}
