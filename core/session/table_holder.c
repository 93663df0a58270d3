/* The memory table's identities: found by name, there as long as a record or a notice is theirs. A notice says that a
 * session of theirs was lost and nobody has been told yet. */
#include "session/table_memory.h"

#include "base/check.h"

#include <stdlib.h>

/* ---- identities ---- */

struct holder *holder_find(const struct memory *memory, struct str name)
{
    uint64_t hash = hash_bytes(name.data, name.len);
    for (struct hash_node *node = hash_first(&memory->holders, hash); node != NULL;
         node = hash_next(node)) {
        struct holder *holder = INDEX_OWNER(node, struct holder, by_name);
        if (str_eq(name, (struct str){holder->name, holder->name_len})) {
            return holder;
        }
    }
    return NULL;
}

struct holder *holder_get(struct memory *memory, struct str name)
{
    struct holder *holder = holder_find(memory, name);
    if (holder != NULL) {
        return holder;
    }
    holder = check_alloc(calloc(1, sizeof *holder + name.len + 1));
    list_init(&holder->records);
    list_init(&holder->idle_sessions);
    list_init(&holder->idle);
    list_init(&holder->notices);
    holder->name_len = name.len;
    if (name.len > 0) {
        memcpy(holder->name, name.data, name.len);
    }
    hash_put(&memory->holders, &holder->by_name, hash_bytes(name.data, name.len));
    return holder;
}

void holder_drop_unused(struct memory *memory, struct holder *holder)
{
    if (holder->owned == 0 && holder->containers == 0 && holder->notices_count == 0) {
        CHECK(list_is_empty(&holder->records));
        hash_remove(&memory->holders, &holder->by_name);
        free(holder);
    }
}

/* ---- notices ---- */

struct notice *notice_find(const struct memory *memory, const uint8_t key[TABLE_KEY_BYTES])
{
    for (struct hash_node *node = hash_first(&memory->notices_by_key, key_hash(key)); node != NULL;
         node = hash_next(node)) {
        struct notice *notice = INDEX_OWNER(node, struct notice, by_key);
        if (memcmp(notice->key, key, TABLE_KEY_BYTES) == 0) {
            return notice;
        }
    }
    return NULL;
}

void notice_drop(struct memory *memory, struct notice *notice)
{
    hash_remove(&memory->notices_by_key, &notice->by_key);
    list_remove(&notice->in_holder);
    list_remove(&notice->in_all);
    notice->holder->notices_count--;
    free(notice);
}

static void notices_drop_old(struct memory *memory, int64_t now_ms)
{
    for (struct list *first; (first = list_first(&memory->notices)) != NULL;) {
        struct notice *notice = INDEX_OWNER(first, struct notice, in_all);
        if (now_ms - notice->since_ms < TABLE_NOTICE_MS) {
            return;
        }
        struct holder *holder = notice->holder;
        notice_drop(memory, notice);
        holder_drop_unused(memory, holder);
    }
}

void notice_leave(struct memory *memory, struct holder *holder, const uint8_t key[TABLE_KEY_BYTES],
                  int64_t since_ms, int64_t now_ms)
{
    notices_drop_old(memory, now_ms); /* the holder outlives it: it has a record */
    struct notice *old = notice_find(memory, key);
    if (old == NULL && holder->notices_count >= TABLE_NOTICES_MAX) {
        old = INDEX_OWNER(list_first(&holder->notices), struct notice, in_holder);
    }
    if (old != NULL) {
        notice_drop(memory, old);
    }
    struct notice *notice = check_alloc(calloc(1, sizeof *notice));
    memcpy(notice->key, key, sizeof notice->key);
    notice->since_ms = since_ms;
    notice->holder = holder;
    hash_put(&memory->notices_by_key, &notice->by_key, key_hash(notice->key));
    list_append(&holder->notices, &notice->in_holder);
    list_append(&memory->notices, &notice->in_all);
    holder->notices_count++;
}
