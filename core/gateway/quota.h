/* What was used of limits: a quota for each name of a key, and for each user that has limits of their own. It outlives the
 * settings that the limits stand in, so that reading them again fills no bucket.
 *
 * A bucket is one number: the time at which it is full again. A token moves it on by 60 s / limit; it may lie 60 s ahead at
 * most, so that after a quiet minute as many may come at once as the limit says. That number is changed by compare and
 * swap, without a lock, and stays right when the limit changes.
 *
 * Quotas that nobody holds are kept, the least recently used go first: who can invent users can grow nothing, and what
 * they forget so is a user's quota only, as a key's is held by the settings. */
#ifndef SANDGATE_GATEWAY_QUOTA_H
#define SANDGATE_GATEWAY_QUOTA_H

#include "base/lock.h"
#include "base/str.h"
#include "session/index.h"

#include <stdatomic.h>

#define QUOTAS_IDLE_MAX 16384 /* kept, that nobody holds */

struct bucket {
    atomic_llong full_at_us; /* monotonic */
};

struct quota {
    struct hash_node by_name;
    struct list idle; /* in quotas' list, while nobody holds it */
    unsigned refs;    /* under the lock */
    struct bucket requests, runs;
    atomic_llong in_flight;
    size_t name_len;
    char name[];
};

struct quotas;
struct quotas *quotas_new(size_t idle_max);
void quotas_free(struct quotas *); /* NULL is fine; nobody holds any then */

/* The quota of that name, made if there is none, to be given back. Any thread. */
struct quota *quota_of(struct quotas *, struct str name);
void quota_give(struct quotas *, struct quota *); /* NULL is fine */
size_t quotas_count(struct quotas *);

struct bucket_state {  /* behind what was asked of it */
    int64_t remaining; /* so many may come at once */
    int64_t full_us;   /* until it is full */
    int64_t wait_us;   /* until one may come; 0: now */
};

/* Takes a token of a bucket that gets `per_minute` of them; false: there is none. Any thread. */
bool bucket_take(struct bucket *, int64_t per_minute, int64_t now_us, struct bucket_state *ret);
/* Only looks. */
void bucket_look(const struct bucket *, int64_t per_minute, int64_t now_us,
                 struct bucket_state *ret);
/* Gives one back that was taken. */
void bucket_give(struct bucket *, int64_t per_minute);

/* One more at a time; false: there are `most` already. Any thread. */
bool flight_begin(struct quota *, int64_t most);
void flight_end(struct quota *);

#endif
