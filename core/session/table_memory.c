/* The table in this process's memory: records by key and by container id, idle ones also in order of use (all, and each
 * identity's) and by expiry. */
#include "session/table_memory.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/identity.h"

#include <stdlib.h>

static struct memory *memory_of(const struct table *table)
{
    struct memory *memory = INDEX_OWNER(table, struct memory, table);
    CHECK(memory->magic == MEMORY_MAGIC);
    return memory;
}

/* ---- records ---- */

static struct record *record_find(const struct memory *memory, const struct table_ref *ref)
{
    for (struct hash_node *node = hash_first(&memory->by_key, key_hash(ref->key)); node != NULL;
         node = hash_next(node)) {
        struct record *record = INDEX_OWNER(node, struct record, by_key);
        if (record->ref.fence == ref->fence &&
            memcmp(record->ref.key, ref->key, TABLE_KEY_BYTES) == 0) {
            return record;
        }
    }
    return NULL;
}

/* The one that a new use of the key would find. */
static struct record *record_current(const struct memory *memory, const uint8_t *key)
{
    for (struct hash_node *node = hash_first(&memory->by_key, key_hash(key)); node != NULL;
         node = hash_next(node)) {
        struct record *record = INDEX_OWNER(node, struct record, by_key);
        if (record->state != TABLE_CLOSING && memcmp(record->ref.key, key, TABLE_KEY_BYTES) == 0) {
            return record;
        }
    }
    return NULL;
}

static size_t *state_count(struct memory *memory, enum table_state state)
{
    return state == TABLE_CREATING ? &memory->counts.creating
           : state == TABLE_READY  ? &memory->counts.ready
                                   : &memory->counts.closing;
}

static void record_become(struct memory *memory, struct record *record, enum table_state state)
{
    (*state_count(memory, record->state))--;
    (*state_count(memory, state))++;
    record->state = state;
}

static void record_busy(struct memory *memory, struct record *record)
{
    list_remove(&record->in_idle_of_holder);
    list_remove(&record->in_idle_of_payer);
    list_remove(&record->in_idle);
    heap_remove(&memory->expiries, &record->expiry);
    record->is_idle = false;
}

static void record_idle(struct memory *memory, struct record *record, int64_t expires_ms)
{
    CHECK(record->state == TABLE_READY);
    CHECK(record->leases == 0);
    record_busy(memory, record);
    record->is_idle = true;
    if (record->is_session) {
        list_append(&record->holder->idle_sessions, &record->in_idle_of_holder);
    }
    list_append(&record->payer->idle, &record->in_idle_of_payer);
    list_append(&memory->idle, &record->in_idle);
    heap_put(&memory->expiries, &record->expiry, expires_ms);
}

static void record_lease(struct memory *memory, struct record *record, size_t leases)
{
    CHECK(record->state == TABLE_READY);
    record_busy(memory, record);
    record->leases += leases;
    memory->counts.leases += leases;
}

static struct record *record_new(struct memory *memory, const struct table_ask *ask)
{
    struct record *record = check_alloc(calloc(1, sizeof *record));
    memcpy(record->ref.key, ask->key, sizeof record->ref.key);
    record->ref.fence = ++memory->fence_last;
    record->state = TABLE_CREATING;
    record->is_session = ask->is_session;
    record->holder = holder_get(memory, ask->identity);
    record->payer = holder_get(memory, identity_key(ask->identity));
    list_init(&record->in_idle_of_holder);
    list_init(&record->in_idle_of_payer);
    list_init(&record->in_idle);
    list_append(&record->holder->records, &record->in_holder);
    hash_put(&memory->by_key, &record->by_key, key_hash(ask->key));
    memory->counts.creating++;
    memory->counts.sessions += ask->is_session;
    record->payer->containers++;
    record->holder->owned++;
    record->holder->sessions += ask->is_session;
    struct notice *notice = notice_find(memory, ask->key);
    if (notice != NULL) {
        record->loss = true;
        notice_drop(memory, notice);
    }
    return record;
}

/* Takes it from all where only creating and ready ones stand. */
static void record_leave(struct memory *memory, struct record *record)
{
    CHECK(record->state != TABLE_CLOSING);
    record_busy(memory, record);
    list_remove(&record->in_holder);
    if (record->container_id[0] != '\0') {
        hash_remove(&memory->by_id, &record->by_id);
    }
    memory->counts.leases -= record->leases;
    memory->counts.sessions -= record->is_session;
    record->leases = 0;
}

static void record_close(struct memory *memory, struct record *record, bool loss, int64_t now_ms)
{
    if (record->is_session && (loss || record->loss)) {
        notice_leave(memory, record->holder, record->ref.key, now_ms, now_ms);
    }
    record_leave(memory, record);
    record_become(memory, record, TABLE_CLOSING);
    record->payer->closing++;
    record->holder->closing_sessions += record->is_session;
}

/* ---- the interface ---- */

static size_t total(const struct memory *memory)
{
    return memory->counts.creating + memory->counts.ready + memory->counts.closing;
}

static enum table_limit limit_of(const struct memory *memory, const struct holder *holder,
                                 const struct holder *payer, const struct table_ask *ask)
{
    if (holder != NULL && ask->is_session && holder->sessions >= ask->sessions) {
        return TABLE_LIMIT_SESSIONS;
    }
    if (payer != NULL && payer->containers >= ask->containers) {
        return TABLE_LIMIT_CONTAINERS;
    }
    return total(memory) >= ask->total ? TABLE_LIMIT_TOTAL : TABLE_LIMIT_NONE;
}

static void fill_full(const struct memory *memory, const struct holder *holder,
                      const struct holder *payer, enum table_limit limit, struct table_reply *reply)
{
    struct list *first = NULL;
    struct record *victim = NULL;
    reply->limit = limit;
    if (limit == TABLE_LIMIT_SESSIONS) {
        reply->closing = holder->closing_sessions;
        first = list_first(&holder->idle_sessions);
        victim = first == NULL ? NULL : INDEX_OWNER(first, struct record, in_idle_of_holder);
    } else if (limit == TABLE_LIMIT_CONTAINERS) {
        reply->closing = payer->closing;
        first = list_first(&payer->idle);
        victim = first == NULL ? NULL : INDEX_OWNER(first, struct record, in_idle_of_payer);
    } else if (limit == TABLE_LIMIT_TOTAL) {
        first = list_first(&memory->idle);
        reply->closing = memory->counts.closing;
        victim = first == NULL ? NULL : INDEX_OWNER(first, struct record, in_idle);
    }
    if (victim != NULL) {
        reply->victim = victim->ref;
        reply->victim_local = victim->local;
    }
}

static enum table_answer memory_acquire(struct table *table, const struct table_ask *ask,
                                        struct table_reply *reply)
{
    struct memory *memory = memory_of(table);
    struct record *record = record_current(memory, ask->key);
    *reply = (struct table_reply){0};
    if (record != NULL) {
        reply->ref = record->ref;
        reply->local = record->local;
        if (record->state == TABLE_CREATING) {
            return TABLE_PENDING;
        }
        record_lease(memory, record, 1);
        return TABLE_LEASED;
    }
    struct holder *holder = holder_find(memory, ask->identity);
    struct holder *payer = holder_find(memory, identity_key(ask->identity));
    enum table_limit limit = limit_of(memory, holder, payer, ask);
    if (limit != TABLE_LIMIT_NONE || !ask->may_create) {
        fill_full(memory, holder, payer, limit, reply);
        return TABLE_FULL;
    }
    record = record_new(memory, ask);
    reply->ref = record->ref;
    reply->loss = record->loss;
    return TABLE_CREATE;
}

static bool memory_acquire_id(struct table *table, struct str container_id, struct str identity,
                              struct table_reply *reply)
{
    struct memory *memory = memory_of(table);
    uint64_t hash = hash_bytes(container_id.data, container_id.len);
    for (struct hash_node *node = hash_first(&memory->by_id, hash); node != NULL;
         node = hash_next(node)) {
        struct record *record = INDEX_OWNER(node, struct record, by_id);
        struct str holder = {record->holder->name, record->holder->name_len};
        if (str_is(container_id, record->container_id) && str_eq(holder, identity)) {
            record_lease(memory, record, 1);
            *reply = (struct table_reply){.ref = record->ref, .local = record->local};
            return true;
        }
    }
    return false;
}

static bool memory_attach(struct table *table, const struct table_ref *ref, void *local)
{
    struct record *record = record_find(memory_of(table), ref);
    if (record == NULL) {
        return false;
    }
    record->local = local;
    return true;
}

static bool memory_publish(struct table *table, const struct table_ref *ref,
                           const char *container_id, size_t leases, int64_t expires_ms)
{
    struct memory *memory = memory_of(table);
    struct record *record = record_find(memory, ref);
    size_t len = strlen(container_id);
    CHECK(len > 0 && len < TABLE_ID_BYTES);
    if (record == NULL || record->state != TABLE_CREATING) {
        return false;
    }
    memcpy(record->container_id, container_id, len + 1);
    hash_put(&memory->by_id, &record->by_id, hash_bytes(container_id, len));
    record_become(memory, record, TABLE_READY);
    if (leases > 0) {
        record_lease(memory, record, leases);
    } else {
        record_idle(memory, record, expires_ms);
    }
    return true;
}

static struct record *record_find_ready(struct memory *memory, const struct table_ref *ref)
{
    struct record *record = record_find(memory, ref);
    return record != NULL && record->state == TABLE_READY ? record : NULL;
}

static bool memory_lease(struct table *table, const struct table_ref *ref)
{
    struct memory *memory = memory_of(table);
    struct record *record = record_find_ready(memory, ref);
    if (record == NULL) {
        return false;
    }
    record_lease(memory, record, 1);
    return true;
}

static bool memory_release(struct table *table, const struct table_ref *ref, int64_t expires_ms)
{
    struct memory *memory = memory_of(table);
    struct record *record = record_find_ready(memory, ref);
    if (record == NULL || record->leases == 0) {
        return false;
    }
    record->leases--;
    memory->counts.leases--;
    if (record->leases == 0) {
        record_idle(memory, record, expires_ms);
    }
    return true;
}

static bool memory_renew(struct table *table, const struct table_ref *ref, int64_t expires_ms)
{
    struct memory *memory = memory_of(table);
    struct record *record = record_find_ready(memory, ref);
    if (record == NULL) {
        return false;
    }
    record->is_used = true;
    if (record->leases == 0) {
        record_idle(memory, record, expires_ms);
    }
    return true;
}

static bool memory_evict(struct table *table, const struct table_ref *ref, bool loss,
                         int64_t now_ms)
{
    struct memory *memory = memory_of(table);
    struct record *record = record_find(memory, ref);
    if (record == NULL || record->state == TABLE_CLOSING) {
        return false;
    }
    record_close(memory, record, loss, now_ms);
    return true;
}

static bool memory_remove(struct table *table, const struct table_ref *ref, int64_t now_ms)
{
    struct memory *memory = memory_of(table);
    struct record *record = record_find(memory, ref);
    if (record == NULL) {
        return false;
    }
    if (record->state != TABLE_CLOSING) {
        record_close(memory, record, false, now_ms);
    }
    struct holder *holder = record->holder, *payer = record->payer;
    memory->counts.closing--;
    payer->closing--;
    holder->closing_sessions -= record->is_session;
    payer->containers--;
    holder->owned--;
    holder->sessions -= record->is_session;
    hash_remove(&memory->by_key, &record->by_key);
    free(record);
    holder_drop_unused(memory, holder);
    if (payer != holder) {
        holder_drop_unused(memory, payer);
    }
    return true;
}

static bool memory_take_loss(struct table *table, const struct table_ref *ref)
{
    struct record *record = record_find_ready(memory_of(table), ref);
    bool loss = record != NULL && record->loss;
    if (loss) {
        record->loss = false;
    }
    return loss;
}

static bool memory_expired(struct table *table, int64_t now_ms, struct table_ref *ret,
                           void **ret_local)
{
    struct memory *memory = memory_of(table);
    struct heap_node *top = heap_top(&memory->expiries);
    if (top == NULL || top->at > now_ms) {
        return false;
    }
    struct record *record = INDEX_OWNER(top, struct record, expiry);
    CHECK(record->is_idle && record->leases == 0);
    record_close(memory, record, record->is_used, now_ms);
    *ret = record->ref;
    *ret_local = record->local;
    return true;
}

static int64_t memory_next_expiry(const struct table *table)
{
    struct heap_node *top = heap_top(&memory_of(table)->expiries);
    return top == NULL ? DEADLINE_NONE : top->at;
}

static struct table_view view_of(const struct record *record)
{
    return (struct table_view){
        .ref = record->ref,
        .state = record->state,
        .is_session = record->is_session,
        .loss = record->loss,
        .leases = record->leases,
        .expires_ms = record->is_idle ? record->expiry.at : DEADLINE_NONE,
        .container_id = record->container_id,
        .local = record->local,
    };
}

static void memory_list(const struct table *table, struct str identity,
                        void (*each)(void *, const struct table_view *), void *context)
{
    struct holder *holder = holder_find(memory_of(table), identity);
    if (holder == NULL) {
        return;
    }
    for (struct list *node = holder->records.next; node != &holder->records; node = node->next) {
        struct record *record = INDEX_OWNER(node, struct record, in_holder);
        struct table_view view = view_of(record);
        each(context, &view);
    }
}

static bool memory_look(const struct table *table, const struct table_ref *ref,
                        struct table_view *ret)
{
    const struct record *record = record_find(memory_of(table), ref);
    if (record != NULL) {
        *ret = view_of(record);
    }
    return record != NULL;
}

static void memory_notices(const struct table *table, int64_t now_ms,
                           void (*each)(void *, const struct table_notice *), void *context)
{
    const struct memory *memory = memory_of(table);
    for (struct list *node = memory->notices.next; node != &memory->notices; node = node->next) {
        const struct notice *notice = INDEX_OWNER(node, struct notice, in_all);
        struct table_notice shown = {.identity = {notice->holder->name, notice->holder->name_len},
                                     .since_ms = notice->since_ms};
        memcpy(shown.key, notice->key, sizeof shown.key);
        if (now_ms - notice->since_ms < TABLE_NOTICE_MS) {
            each(context, &shown);
        }
    }
}

static void memory_leave_notice(struct table *table, const struct table_notice *notice,
                                int64_t now_ms)
{
    struct memory *memory = memory_of(table);
    struct holder *holder = holder_get(memory, notice->identity);
    bool is_current = now_ms - notice->since_ms < TABLE_NOTICE_MS;
    holder->owned++; /* as if it had a record, so that it outlives what is dropped */
    if (is_current && record_current(memory, notice->key) == NULL) {
        notice_leave(memory, holder, notice->key, notice->since_ms, now_ms);
    }
    holder->owned--;
    holder_drop_unused(memory, holder);
}

static void memory_counts(const struct table *table, struct table_counts *ret)
{
    *ret = memory_of(table)->counts;
}

static void memory_clear_bucket(struct memory *memory, struct hash_node *node)
{
    while (node != NULL) {
        struct record *record = INDEX_OWNER(node, struct record, by_key);
        node = node->next;
        if (record->state != TABLE_CLOSING) {
            record_leave(memory, record);
        }
        free(record);
    }
}

static void memory_free(struct table *table)
{
    if (table == NULL) {
        return;
    }
    struct memory *memory = memory_of(table);
    for (size_t i = 0; i < memory->by_key.buckets_count; i++) {
        memory_clear_bucket(memory, memory->by_key.buckets[i]);
    }
    for (struct list *first; (first = list_first(&memory->notices)) != NULL;) {
        notice_drop(memory, INDEX_OWNER(first, struct notice, in_all));
    }
    for (size_t i = 0; i < memory->holders.buckets_count; i++) {
        for (struct hash_node *node = memory->holders.buckets[i]; node != NULL;) {
            struct holder *holder = INDEX_OWNER(node, struct holder, by_name);
            node = node->next;
            free(holder);
        }
    }
    hash_clear(&memory->by_key);
    hash_clear(&memory->by_id);
    hash_clear(&memory->holders);
    hash_clear(&memory->notices_by_key);
    heap_clear(&memory->expiries);
    memory->magic = 0;
    free(memory);
}

static const struct table_ops memory_ops = {
    .acquire = memory_acquire,
    .acquire_id = memory_acquire_id,
    .attach = memory_attach,
    .publish = memory_publish,
    .lease = memory_lease,
    .release = memory_release,
    .renew = memory_renew,
    .evict = memory_evict,
    .remove = memory_remove,
    .take_loss = memory_take_loss,
    .expired = memory_expired,
    .next_expiry = memory_next_expiry,
    .list = memory_list,
    .counts = memory_counts,
    .look = memory_look,
    .notices = memory_notices,
    .leave_notice = memory_leave_notice,
    .free = memory_free,
};

struct table *table_memory_new(void)
{
    struct memory *memory = check_alloc(calloc(1, sizeof *memory));
    memory->table.ops = &memory_ops;
    memory->magic = MEMORY_MAGIC;
    list_init(&memory->idle);
    list_init(&memory->notices);
    return &memory->table;
}
