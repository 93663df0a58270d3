/* Records in memory: a hash of their ids, and for each key and for all of them a list in the order of their last use, which is
 * the order in which they expire and are evicted. They are found by their identity; users of one key share its bytes. */
#include "session/records.h"

#include "base/check.h"
#include "base/identity.h"
#include "base/limits.h"
#include "base/lock.h"
#include "session/index.h"

#include <stdlib.h>

#define RECORD_MAGIC 0x53475243u /* "SGRC" */

struct record_id {
    struct hash_node node;
    struct record *record;
    struct str text;
    bool is_its; /* it finds this record, and no later one */
};

struct owner { /* a key with a record, of its own or of its users */
    struct hash_node by_name;
    struct list records;
    size_t bytes;
    size_t name_len;
    char name[];
};

struct record {
    uint32_t magic;
    unsigned refs; /* under the lock: one of the store's, and those given out */
    struct records *store;
    struct owner *owner; /* NULL: the store has dropped it */
    struct list in_owner, in_all;
    int64_t expires_ms;
    size_t bytes;
    struct str data, container_id;
    struct str user; /* of the owner's; empty: it is the key's own */
    size_t ids_count, ids_left;
    struct record_id ids[]; /* behind them the bytes of all texts */
};

struct records {
    struct lock lock; /* of all below */
    struct records_options options;
    struct hash ids, owners;
    struct list all;
    size_t given_out;
    struct records_stats stats;
};

void records_options_default(struct records_options *options)
{
    *options = (struct records_options){
        .life_ms = LIMIT_RECORD_MS,
        .record_bytes = LIMIT_RECORD_BYTES,
        .identity_bytes = LIMIT_RECORDS_IDENTITY_BYTES,
        .total_bytes = LIMIT_RECORDS_BYTES,
    };
}

struct records *records_new(const struct records_options *options)
{
    struct records *records = check_alloc(calloc(1, sizeof *records));
    lock_init(&records->lock);
    list_init(&records->all);
    records->options = *options;
    return records;
}

/* ---- identities; under the lock ---- */

static struct owner *owner_find(const struct records *records, struct str name)
{
    for (struct hash_node *node = hash_first(&records->owners, hash_bytes(name.data, name.len));
         node != NULL; node = hash_next(node)) {
        struct owner *owner = INDEX_OWNER(node, struct owner, by_name);
        if (str_eq(name, (struct str){owner->name, owner->name_len})) {
            return owner;
        }
    }
    return NULL;
}

static struct owner *owner_get(struct records *records, struct str name)
{
    struct owner *owner = owner_find(records, name);
    if (owner != NULL) {
        return owner;
    }
    owner = check_alloc(calloc(1, sizeof *owner + name.len + 1));
    list_init(&owner->records);
    owner->name_len = name.len;
    if (name.len > 0) {
        memcpy(owner->name, name.data, name.len);
    }
    hash_put(&records->owners, &owner->by_name, hash_bytes(name.data, name.len));
    records->stats.identities++;
    return owner;
}

/* ---- records; under the lock ---- */

static void unref_locked(struct record *record)
{
    CHECK(record->refs > 0);
    if (--record->refs == 0) {
        CHECK(record->owner == NULL);
        record->magic = 0;
        free(record);
    }
}

/* The store lets go of it; who holds a reference keeps it until then. */
static void record_drop(struct record *record)
{
    struct records *records = record->store;
    struct owner *owner = record->owner;
    for (size_t i = 0; i < record->ids_count; i++) {
        if (record->ids[i].is_its) {
            hash_remove(&records->ids, &record->ids[i].node);
        }
    }
    list_remove(&record->in_owner);
    list_remove(&record->in_all);
    owner->bytes -= record->bytes;
    records->stats.bytes -= record->bytes;
    records->stats.count--;
    record->owner = NULL;
    if (list_is_empty(&owner->records)) {
        hash_remove(&records->owners, &owner->by_name);
        records->stats.identities--;
        free(owner);
    }
    unref_locked(record);
}

static void expired_drop(struct records *records, int64_t now_ms)
{
    for (struct list *first; (first = list_first(&records->all)) != NULL;) {
        struct record *record = INDEX_OWNER(first, struct record, in_all);
        if (record->expires_ms > now_ms) {
            return;
        }
        record_drop(record);
        records->stats.expired++;
    }
}

static void record_use(struct record *record, int64_t now_ms)
{
    list_remove(&record->in_owner);
    list_remove(&record->in_all);
    list_append(&record->owner->records, &record->in_owner);
    list_append(&record->store->all, &record->in_all);
    record->expires_ms = now_ms + record->store->options.life_ms;
}

static struct record_id *id_find(const struct records *records, struct str identity, struct str id)
{
    for (struct hash_node *node = hash_first(&records->ids, hash_bytes(id.data, id.len));
         node != NULL; node = hash_next(node)) {
        struct record_id *one = INDEX_OWNER(node, struct record_id, node);
        const struct owner *owner = one->record->owner;
        if (str_eq(id, one->text) && str_eq(identity_user(identity), one->record->user) &&
            str_eq(identity_key(identity), (struct str){owner->name, owner->name_len})) {
            return one;
        }
    }
    return NULL;
}

static struct record *record_find(const struct records *records, struct str identity, struct str id)
{
    struct record_id *one = id_find(records, identity, id);
    return one == NULL ? NULL : one->record;
}

/* A later record has the id now. */
static void id_release(struct record_id *id)
{
    struct record *record = id->record;
    hash_remove(&record->store->ids, &id->node);
    id->is_its = false;
    if (--record->ids_left == 0) {
        record_drop(record);
    }
}

static void evict_first(struct records *records, const struct list *head, bool of_all)
{
    struct list *first = list_first(head);
    CHECK(first != NULL);
    record_drop(of_all ? INDEX_OWNER(first, struct record, in_all)
                       : INDEX_OWNER(first, struct record, in_owner));
    records->stats.evicted++;
}

/* The owner's own go first; it may end with the last of them. */
static void room_make(struct records *records, struct str key, size_t bytes)
{
    struct owner *owner;
    while ((owner = owner_find(records, key)) != NULL &&
           owner->bytes + bytes > records->options.identity_bytes) {
        evict_first(records, &owner->records, false);
    }
    while (records->stats.bytes + bytes > records->options.total_bytes) {
        evict_first(records, &records->all, true);
    }
}

/* ---- making one ---- */

static struct str text_copy(char **at, struct str text)
{
    char *to = *at;
    if (text.len > 0) {
        memcpy(to, text.data, text.len);
    }
    *at += text.len;
    return (struct str){to, text.len};
}

static size_t bytes_of(const struct record_input *input)
{
    size_t bytes = sizeof(struct record) + input->ids_count * sizeof(struct record_id) +
                   input->data.len + input->container_id.len + identity_user(input->identity).len;
    for (size_t i = 0; i < input->ids_count; i++) {
        bytes += input->ids[i].len;
    }
    return bytes;
}

/* Not under the lock: it may be large. */
static struct record *record_new(struct records *records, const struct record_input *input,
                                 size_t bytes)
{
    struct record *record = check_alloc(calloc(1, bytes));
    char *at = (char *)&record->ids[input->ids_count];
    record->magic = RECORD_MAGIC;
    record->refs = 1;
    record->store = records;
    record->bytes = bytes;
    record->data = text_copy(&at, input->data);
    record->container_id = text_copy(&at, input->container_id);
    record->user = text_copy(&at, identity_user(input->identity));
    record->ids_count = record->ids_left = input->ids_count;
    for (size_t i = 0; i < input->ids_count; i++) {
        record->ids[i].record = record;
        record->ids[i].text = text_copy(&at, input->ids[i]);
    }
    CHECK(at == (char *)record + bytes);
    return record;
}

static void record_put(struct record *record, struct str identity, int64_t now_ms)
{
    struct records *records = record->store;
    for (size_t i = 0; i < record->ids_count; i++) {
        struct record_id *old = id_find(records, identity, record->ids[i].text);
        if (old != NULL) {
            id_release(old);
        }
    }
    room_make(records, identity_key(identity), record->bytes);
    record->owner = owner_get(records, identity_key(identity));
    record->owner->bytes += record->bytes;
    for (size_t i = 0; i < record->ids_count; i++) {
        struct str text = record->ids[i].text;
        hash_put(&records->ids, &record->ids[i].node, hash_bytes(text.data, text.len));
        record->ids[i].is_its = true;
    }
    list_init(&record->in_owner);
    list_init(&record->in_all);
    record_use(record, now_ms);
    records->stats.bytes += record->bytes;
    records->stats.count++;
    records->stats.kept++;
}

/* ---- the public functions ---- */

bool records_keep(struct records *records, const struct record_input *input, int64_t now_ms)
{
    CHECK(input->ids_count > 0);
    size_t bytes = bytes_of(input);
    bool fits = bytes <= records->options.record_bytes &&
                bytes <= records->options.identity_bytes && bytes <= records->options.total_bytes;
    struct record *record = fits ? record_new(records, input, bytes) : NULL;
    lock_take(&records->lock);
    expired_drop(records, now_ms);
    if (fits) {
        record_put(record, input->identity, now_ms);
    } else {
        records->stats.refused++;
    }
    lock_release(&records->lock);
    return fits;
}

struct record *records_find(struct records *records, struct str identity, struct str id,
                            int64_t now_ms)
{
    lock_take(&records->lock);
    expired_drop(records, now_ms);
    struct record *record = record_find(records, identity, id);
    if (record != NULL) {
        record->refs++;
        records->given_out++;
        records->stats.found++;
        record_use(record, now_ms);
    } else {
        records->stats.missed++;
    }
    lock_release(&records->lock);
    return record;
}

bool records_drop(struct records *records, struct str identity, struct str id, int64_t now_ms)
{
    lock_take(&records->lock);
    expired_drop(records, now_ms);
    struct record *record = record_find(records, identity, id);
    if (record != NULL) {
        record_drop(record);
    }
    lock_release(&records->lock);
    return record != NULL;
}

void record_unref(struct record *record)
{
    if (record == NULL) {
        return;
    }
    CHECK_MAGIC(record, RECORD_MAGIC);
    struct records *records = record->store;
    lock_take(&records->lock);
    CHECK(records->given_out > 0);
    records->given_out--;
    unref_locked(record);
    lock_release(&records->lock);
}

struct str record_data(const struct record *record)
{
    CHECK_MAGIC(record, RECORD_MAGIC);
    return record->data;
}

struct str record_container_id(const struct record *record)
{
    CHECK_MAGIC(record, RECORD_MAGIC);
    return record->container_id;
}

void records_stats(struct records *records, struct records_stats *ret)
{
    lock_take(&records->lock);
    *ret = records->stats;
    lock_release(&records->lock);
}

void records_free(struct records *records)
{
    if (records == NULL) {
        return;
    }
    CHECK(records->given_out == 0);
    for (struct list *first; (first = list_first(&records->all)) != NULL;) {
        record_drop(INDEX_OWNER(first, struct record, in_all));
    }
    hash_clear(&records->ids);
    hash_clear(&records->owners);
    lock_destroy(&records->lock);
    free(records);
}
