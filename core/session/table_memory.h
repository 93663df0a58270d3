/* The insides of the memory table, for its two files: table_memory.c (records and the interface) and table_holder.c
 * (identities, and the notices of losses that they keep). */
#ifndef SANDGATE_SESSION_TABLE_MEMORY_H
#define SANDGATE_SESSION_TABLE_MEMORY_H

#include "session/index.h"
#include "session/table.h"

#define MEMORY_MAGIC 0x53475442u /* "SGTB" */

/* An identity that has records or notices, or a key for whose users records are. Sessions are an identity's; containers count
 * for its key, which is the identity itself where the key speaks for nobody else. */
struct holder {
    struct hash_node by_name;
    struct list records;       /* the identity's, all but closing ones */
    struct list idle_sessions; /* the identity's, least recently used first */
    struct list notices;       /* oldest first */
    size_t owned, sessions, closing_sessions, notices_count; /* creating, ready and closing */
    struct list idle;           /* the key's, with a session or not, least recently used first */
    size_t containers, closing; /* the key's */
    size_t name_len;
    char name[];
};

struct record {
    struct table_ref ref;
    enum table_state state;
    bool is_session, is_idle, loss;
    bool is_used; /* something was run, so that its end loses something */
    size_t leases;
    struct holder *holder, *payer; /* the identity; its key, for which it counts */
    void *local;
    char container_id[TABLE_ID_BYTES]; /* from publish() on */
    struct hash_node by_key, by_id;
    struct list in_holder, in_idle_of_holder, in_idle_of_payer, in_idle;
    struct heap_node expiry;
};

struct notice {
    uint8_t key[TABLE_KEY_BYTES];
    int64_t since_ms;
    struct holder *holder;
    struct hash_node by_key;
    struct list in_holder, in_all;
};

struct memory {
    struct table table;
    uint32_t magic;
    uint64_t fence_last;
    struct hash by_key, by_id, holders, notices_by_key;
    struct list idle;    /* all idle records, least recently used first */
    struct list notices; /* all, oldest first */
    struct heap expiries;
    struct table_counts counts;
};

static inline uint64_t key_hash(const uint8_t key[TABLE_KEY_BYTES])
{
    uint64_t value;
    memcpy(&value, key, sizeof value); /* a SHA-256 needs no further mixing */
    return value;
}

struct holder *holder_find(const struct memory *, struct str name);
struct holder *holder_get(struct memory *, struct str name); /* makes it where it is not there */

/* Frees it when neither a record nor a notice is its own any more. */
void holder_drop_unused(struct memory *, struct holder *);

struct notice *notice_find(const struct memory *, const uint8_t key[TABLE_KEY_BYTES]);

/* The holder stays, even unused: the caller drops it when it is done with it. */
void notice_drop(struct memory *, struct notice *);

/* Leaves one for a key of the holder, who has a record; drops what is too old or too many. */
void notice_leave(struct memory *, struct holder *, const uint8_t key[TABLE_KEY_BYTES],
                  int64_t since_ms, int64_t now_ms);

#endif
