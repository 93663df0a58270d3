/* core/session/table: the interface, on the memory implementation: what a key can have, that the caps hold, who is the
 * victim, what expires, and that whoever holds a stale fence changes nothing. Times are made up. */
#include "base/check.h"
#include "base/clock.h"
#include "cunit_main.h"
#include "session/index.h"
#include "session/table.h"

#include <stdio.h>

static struct table_ask ask_of(const char *identity, const char *name)
{
    struct table_ask ask = {.identity = str_of(identity),
                            .is_session = true,
                            .may_create = true,
                            .sessions = 3,
                            .containers = 5,
                            .total = 8};
    sha256_parts((struct str[]){str_of(identity), str_of(name)}, 2, ask.key);
    return ask;
}

static struct table_ref created(struct table *table, const char *identity, const char *name,
                                bool is_session)
{
    struct table_ask ask = ask_of(identity, name);
    struct table_reply reply;
    ask.is_session = is_session;
    CU_ASSERT_EQUAL_FATAL(table->ops->acquire(table, &ask, &reply), TABLE_CREATE);
    CU_ASSERT_NOT_EQUAL(reply.ref.fence, 0);
    return reply.ref;
}

static struct table_ref ready(struct table *table, const char *identity, const char *name,
                              size_t leases, int64_t expires_ms)
{
    struct table_ref ref = created(table, identity, name, true);
    CU_ASSERT_TRUE(table->ops->publish(table, &ref, name, leases, expires_ms));
    return ref;
}

static enum table_answer asked(struct table *table, const char *identity, const char *name,
                               struct table_reply *reply)
{
    struct table_ask ask = ask_of(identity, name);
    return table->ops->acquire(table, &ask, reply);
}

static struct table_counts counted(struct table *table)
{
    struct table_counts counts;
    table->ops->counts(table, &counts);
    return counts;
}

static void a_key_is_created_once_then_leased(void)
{
    struct table *table = table_memory_new();
    struct table_reply reply;
    int here;
    struct table_ref ref = created(table, "a", "s", true);
    CU_ASSERT_TRUE(table->ops->attach(table, &ref, &here));
    CU_ASSERT_EQUAL(asked(table, "a", "s", &reply), TABLE_PENDING);
    CU_ASSERT_EQUAL(reply.ref.fence, ref.fence);
    CU_ASSERT_PTR_EQUAL(reply.local, &here);
    CU_ASSERT_TRUE(table->ops->publish(table, &ref, "cntr_1", 1, 0));
    CU_ASSERT_EQUAL(asked(table, "a", "s", &reply), TABLE_LEASED);
    CU_ASSERT_PTR_EQUAL(reply.local, &here);
    struct table_counts counts = counted(table);
    CU_ASSERT_EQUAL(counts.ready, 1);
    CU_ASSERT_EQUAL(counts.creating, 0);
    CU_ASSERT_EQUAL(counts.leases, 2);
    CU_ASSERT_EQUAL(counts.sessions, 1);
    table->ops->free(table);
}

static void a_stale_fence_changes_nothing(void)
{
    struct table *table = table_memory_new();
    struct table_ref old = ready(table, "a", "s", 0, 100);
    CU_ASSERT_TRUE(table->ops->remove(table, &old, 0));
    struct table_ref new = ready(table, "a", "s", 1, 100);
    CU_ASSERT_NOT_EQUAL(old.fence, new.fence);
    struct table_counts before = counted(table);
    CU_ASSERT_FALSE(table->ops->publish(table, &old, "cntr_2", 1, 5));
    CU_ASSERT_FALSE(table->ops->attach(table, &old, &old));
    CU_ASSERT_FALSE(table->ops->lease(table, &old));
    CU_ASSERT_FALSE(table->ops->release(table, &old, 5));
    CU_ASSERT_FALSE(table->ops->renew(table, &old, 5));
    CU_ASSERT_FALSE(table->ops->evict(table, &old, true, 5));
    CU_ASSERT_FALSE(table->ops->take_loss(table, &old));
    CU_ASSERT_FALSE(table->ops->remove(table, &old, 5));
    struct table_counts after = counted(table);
    CU_ASSERT_EQUAL(memcmp(&before, &after, sizeof before), 0);
    struct table_reply reply;
    CU_ASSERT_EQUAL(asked(table, "a", "s", &reply), TABLE_LEASED);
    CU_ASSERT_EQUAL(reply.ref.fence, new.fence);
    CU_ASSERT_PTR_NULL(reply.local);
    table->ops->free(table);
}

static void a_right_fence_in_a_wrong_state_changes_nothing(void)
{
    struct table *table = table_memory_new();
    struct table_ref ref = created(table, "a", "s", true);
    CU_ASSERT_FALSE(table->ops->lease(table, &ref)); /* not ready yet */
    CU_ASSERT_FALSE(table->ops->release(table, &ref, 5));
    CU_ASSERT_FALSE(table->ops->renew(table, &ref, 5));
    CU_ASSERT_TRUE(table->ops->publish(table, &ref, "c", 0, 5));
    CU_ASSERT_FALSE(table->ops->publish(table, &ref, "c", 0, 5)); /* twice */
    CU_ASSERT_FALSE(table->ops->release(table, &ref, 5));         /* no lease to give back */
    CU_ASSERT_TRUE(table->ops->evict(table, &ref, false, 5));
    CU_ASSERT_FALSE(table->ops->evict(table, &ref, false, 5)); /* twice */
    CU_ASSERT_FALSE(table->ops->lease(table, &ref));
    CU_ASSERT_TRUE(table->ops->remove(table, &ref, 5));
    CU_ASSERT_FALSE(table->ops->remove(table, &ref, 5));
    CU_ASSERT_EQUAL(counted(table).closing, 0);
    table->ops->free(table);
}

static void b54_creating_ready_and_closing_count_against_the_cap(void)
{
    struct table *table = table_memory_new();
    struct table_reply reply;
    struct table_ref one = created(table, "a", "1", true);
    ready(table, "a", "2", 1, 0);
    struct table_ref three = ready(table, "a", "3", 0, 100);
    CU_ASSERT_EQUAL(asked(table, "a", "4", &reply), TABLE_FULL);
    CU_ASSERT_EQUAL(reply.limit, TABLE_LIMIT_SESSIONS);
    CU_ASSERT_EQUAL(reply.victim.fence, three.fence);
    CU_ASSERT_EQUAL(reply.closing, 0);
    CU_ASSERT_TRUE(table->ops->evict(table, &three, false, 0));
    CU_ASSERT_EQUAL(asked(table, "a", "4", &reply), TABLE_FULL); /* still there at the provider */
    CU_ASSERT_EQUAL(reply.victim.fence, 0);
    CU_ASSERT_EQUAL(reply.closing, 1);
    CU_ASSERT_TRUE(table->ops->remove(table, &three, 0));
    CU_ASSERT_EQUAL(asked(table, "a", "4", &reply), TABLE_CREATE);
    CU_ASSERT_TRUE(table->ops->remove(table, &one, 0)); /* a creation that failed makes room */
    CU_ASSERT_EQUAL(asked(table, "a", "5", &reply), TABLE_CREATE);
    CU_ASSERT_EQUAL(asked(table, "a", "6", &reply), TABLE_FULL);
    table->ops->free(table);
}

static void each_limit_is_named_and_has_its_own_victim(void)
{
    struct table *table = table_memory_new();
    struct table_reply reply;
    struct table_ref other = ready(table, "b", "x", 0, 100); /* the least recently used of all */
    struct table_ref mine = ready(table, "a", "1", 0, 100);
    for (int i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "e%d", i);
        struct table_ref ref = created(table, "a", name, false);
        CU_ASSERT_TRUE(table->ops->publish(table, &ref, name, 1, 0));
    }
    CU_ASSERT_EQUAL(asked(table, "a", "2", &reply), TABLE_FULL);
    CU_ASSERT_EQUAL(reply.limit, TABLE_LIMIT_CONTAINERS);
    CU_ASSERT_EQUAL(reply.victim.fence, mine.fence);
    ready(table, "c", "1", 1, 0);
    ready(table, "c", "2", 1, 0);
    CU_ASSERT_EQUAL(asked(table, "c", "3", &reply), TABLE_FULL);
    CU_ASSERT_EQUAL(reply.limit, TABLE_LIMIT_TOTAL);
    CU_ASSERT_EQUAL(reply.victim.fence, other.fence);
    table->ops->free(table);
}

static void the_victim_is_the_least_recently_used_without_a_lease(void)
{
    struct table *table = table_memory_new();
    struct table_reply reply;
    struct table_ref one = ready(table, "a", "1", 0, 100);
    struct table_ref two = ready(table, "a", "2", 0, 100);
    struct table_ref three = ready(table, "a", "3", 0, 100);
    CU_ASSERT_EQUAL(asked(table, "a", "1", &reply), TABLE_LEASED);
    CU_ASSERT_TRUE(table->ops->release(table, &one, 100)); /* now used last */
    CU_ASSERT_EQUAL(asked(table, "a", "4", &reply), TABLE_FULL);
    CU_ASSERT_EQUAL(reply.victim.fence, two.fence);
    CU_ASSERT_TRUE(table->ops->lease(table, &two)); /* busy: never a victim */
    CU_ASSERT_EQUAL(asked(table, "a", "4", &reply), TABLE_FULL);
    CU_ASSERT_EQUAL(reply.victim.fence, three.fence);
    CU_ASSERT_TRUE(table->ops->renew(table, &three, 200));
    CU_ASSERT_EQUAL(asked(table, "a", "4", &reply), TABLE_FULL);
    CU_ASSERT_EQUAL(reply.victim.fence, one.fence);
    table->ops->free(table);
}

static void who_may_not_create_is_told_that_others_wait(void)
{
    struct table *table = table_memory_new();
    struct table_ask ask = ask_of("a", "1");
    struct table_reply reply;
    ask.may_create = false;
    CU_ASSERT_EQUAL(table->ops->acquire(table, &ask, &reply), TABLE_FULL);
    CU_ASSERT_EQUAL(reply.limit, TABLE_LIMIT_NONE);
    CU_ASSERT_EQUAL(counted(table).creating, 0);
    struct table_ref ref = ready(table, "a", "1", 0, 100);
    CU_ASSERT_EQUAL(table->ops->acquire(table, &ask, &reply), TABLE_LEASED); /* but may use */
    CU_ASSERT_EQUAL(reply.ref.fence, ref.fence);
    table->ops->free(table);
}

static void c072_a_key_on_its_way_out_gets_a_fresh_record(void)
{
    struct table *table = table_memory_new();
    struct table_ref old = ready(table, "a", "s", 0, 100);
    CU_ASSERT_TRUE(table->ops->evict(table, &old, false, 0));
    struct table_ref new = ready(table, "a", "s", 0, 100);
    CU_ASSERT_NOT_EQUAL(old.fence, new.fence);
    CU_ASSERT_TRUE(table->ops->remove(table, &old, 0)); /* the late end of the old one */
    struct table_reply reply;
    CU_ASSERT_EQUAL(asked(table, "a", "s", &reply), TABLE_LEASED);
    CU_ASSERT_EQUAL(reply.ref.fence, new.fence);
    table->ops->free(table);
}

static void c065_only_idle_records_expire_and_a_lease_stops_it(void)
{
    struct table *table = table_memory_new();
    struct table_ref early = ready(table, "a", "early", 0, 50);
    struct table_ref late = ready(table, "a", "late", 0, 70);
    struct table_ref busy = ready(table, "a", "busy", 1, 10), ref;
    struct table_reply reply;
    void *local;
    CU_ASSERT_EQUAL(table->ops->next_expiry(table), 50);
    CU_ASSERT_FALSE(table->ops->expired(table, 49, &ref, &local));
    CU_ASSERT_EQUAL(asked(table, "a", "early", &reply), TABLE_LEASED); /* just in time */
    CU_ASSERT_FALSE(table->ops->expired(table, 60, &ref, &local));
    CU_ASSERT_TRUE(table->ops->release(table, &early, 100));
    CU_ASSERT_TRUE(table->ops->expired(table, 70, &ref, &local));
    CU_ASSERT_EQUAL(ref.fence, late.fence);
    CU_ASSERT_FALSE(table->ops->expired(table, 70, &ref, &local));
    CU_ASSERT_EQUAL(counted(table).closing, 1);
    CU_ASSERT_EQUAL(table->ops->next_expiry(table), 100);
    CU_ASSERT_TRUE(table->ops->release(table, &busy, 90));
    CU_ASSERT_EQUAL(table->ops->next_expiry(table), 90);
    table->ops->free(table);
}

static void nothing_idle_never_expires(void)
{
    struct table *table = table_memory_new();
    CU_ASSERT_EQUAL(table->ops->next_expiry(table), DEADLINE_NONE);
    ready(table, "a", "s", 1, 5);
    CU_ASSERT_EQUAL(table->ops->next_expiry(table), DEADLINE_NONE);
    table->ops->free(table);
}

static void b53_identities_share_neither_counts_nor_ids(void)
{
    struct table *table = table_memory_new();
    struct table_reply reply;
    struct table_ref mine = ready(table, "a", "cntr_mine", 0, 100);
    CU_ASSERT_FALSE(table->ops->acquire_id(table, STR("cntr_mine"), STR("b"), &reply));
    CU_ASSERT_FALSE(table->ops->acquire_id(table, STR("cntr_min"), STR("a"), &reply));
    CU_ASSERT_TRUE(table->ops->acquire_id(table, STR("cntr_mine"), STR("a"), &reply));
    CU_ASSERT_EQUAL(reply.ref.fence, mine.fence);
    CU_ASSERT_EQUAL(table->ops->next_expiry(table), DEADLINE_NONE);
    ready(table, "a", "2", 1, 0);
    ready(table, "a", "3", 1, 0);
    CU_ASSERT_EQUAL(asked(table, "a", "4", &reply), TABLE_FULL);
    CU_ASSERT_EQUAL(asked(table, "b", "4", &reply), TABLE_CREATE);
    CU_ASSERT_TRUE(table->ops->evict(table, &mine, false, 0));
    CU_ASSERT_FALSE(table->ops->acquire_id(table, STR("cntr_mine"), STR("a"), &reply));
    table->ops->free(table);
}

static void a_loss_waits_for_the_next_record_and_is_taken_once(void)
{
    struct table *table = table_memory_new();
    struct table_ref ref = ready(table, "a", "s", 1, 0);
    CU_ASSERT_FALSE(table->ops->take_loss(table, &ref));
    CU_ASSERT_TRUE(table->ops->evict(table, &ref, true, 0));
    CU_ASSERT_FALSE(table->ops->take_loss(table, &ref)); /* not the dead one's */
    CU_ASSERT_TRUE(table->ops->remove(table, &ref, 0));
    struct table_reply reply;
    CU_ASSERT_EQUAL(asked(table, "a", "fresh", &reply), TABLE_CREATE);
    CU_ASSERT_FALSE(reply.loss);
    CU_ASSERT_TRUE(table->ops->remove(table, &reply.ref, 0));
    CU_ASSERT_EQUAL(asked(table, "a", "s", &reply), TABLE_CREATE);
    CU_ASSERT_TRUE(reply.loss);
    CU_ASSERT_TRUE(table->ops->remove(table, &reply.ref, 0));
    ref = created(table, "a", "s", true); /* a replacement whose creation fails keeps it */
    CU_ASSERT_TRUE(table->ops->remove(table, &ref, 0));
    ref = ready(table, "a", "s", 0, 50);
    struct table_ref other = ready(table, "a", "t", 0, 60);
    CU_ASSERT_FALSE(table->ops->take_loss(table, &other));
    CU_ASSERT_TRUE(table->ops->take_loss(table, &ref));
    CU_ASSERT_FALSE(table->ops->take_loss(table, &ref));
    CU_ASSERT_TRUE(table->ops->evict(table, &ref, false, 0));
    ref = ready(table, "a", "s", 0, 50);
    CU_ASSERT_FALSE(table->ops->take_loss(table, &ref));
    table->ops->free(table);
}

static void what_expires_loses_something_where_something_was_run(void)
{
    struct table *table = table_memory_new();
    struct table_ref used = ready(table, "a", "used", 1, 0),
                     unused = ready(table, "a", "unused", 0, 50);
    void *local;
    CU_ASSERT_TRUE(table->ops->renew(table, &used, 60)); /* behind a run */
    CU_ASSERT_TRUE(table->ops->release(table, &used, 60));
    struct table_ref *each[] = {&unused, &used};
    for (size_t i = 0; i < COUNT_OF(each); i++) {
        struct table_ref ref;
        CU_ASSERT_TRUE(table->ops->expired(table, 100, &ref, &local));
        CU_ASSERT_EQUAL(ref.fence, each[i]->fence);
        CU_ASSERT_TRUE(table->ops->remove(table, &ref, 100));
    }
    struct table_reply reply;
    CU_ASSERT_EQUAL(asked(table, "a", "unused", &reply), TABLE_CREATE);
    CU_ASSERT_FALSE(reply.loss);
    CU_ASSERT_EQUAL(asked(table, "a", "used", &reply), TABLE_CREATE);
    CU_ASSERT_TRUE(reply.loss);
    table->ops->free(table);
}

static void notices_are_bounded_for_each_identity_and_in_time(void)
{
    struct table *table = table_memory_new();
    struct table_ref ref;
    char name[16];
    for (int i = 0; i <= TABLE_NOTICES_MAX; i++) {
        snprintf(name, sizeof name, "s%d", i);
        ref = ready(table, "a", name, 0, 50);
        CU_ASSERT_TRUE(table->ops->evict(table, &ref, true, 10));
        CU_ASSERT_TRUE(table->ops->remove(table, &ref, 10));
    }
    ref = ready(table, "a", "s0", 0, 50);
    CU_ASSERT_FALSE(table->ops->take_loss(table, &ref)); /* one too many: the oldest went */
    ref = ready(table, "a", "s1", 0, 50);
    CU_ASSERT_TRUE(table->ops->take_loss(table, &ref));
    ref = ready(table, "b", "s", 0, 50);
    CU_ASSERT_TRUE(table->ops->evict(table, &ref, true, 10 + TABLE_NOTICE_MS));
    ref = ready(table, "a", "s2", 0, 50);
    CU_ASSERT_FALSE(table->ops->take_loss(table, &ref)); /* an hour later */
    table->ops->free(table);
}

static void count_one(void *context, const struct table_view *view)
{
    CU_ASSERT_NOT_EQUAL(view->state, TABLE_CLOSING);
    CU_ASSERT_TRUE(view->leases == 0 || view->expires_ms == DEADLINE_NONE);
    (*(size_t *)context)++;
}

struct noticed {
    size_t count;
    struct table_notice last;
    char identity[16];
};

static void notice_seen(void *context, const struct table_notice *notice)
{
    struct noticed *noticed = context;
    noticed->count++;
    noticed->last = *notice;
    (void)snprintf(noticed->identity, sizeof noticed->identity, "%.*s", (int)notice->identity.len,
                   notice->identity.data);
}

static struct noticed notices_of(struct table *table, int64_t now_ms)
{
    struct noticed noticed = {0};
    table->ops->notices(table, now_ms, notice_seen, &noticed);
    return noticed;
}

static void a_notice_can_be_seen_and_left_again_in_another_table(void)
{
    struct table *table = table_memory_new(), *next = table_memory_new();
    struct table_ref ref = ready(table, "a", "s", 0, 100);
    CU_ASSERT_TRUE(table->ops->evict(table, &ref, true, 1000));
    struct noticed noticed = notices_of(table, 1000);
    CU_ASSERT_EQUAL(noticed.count, 1);
    CU_ASSERT_STRING_EQUAL(noticed.identity, "a");
    CU_ASSERT_EQUAL(noticed.last.since_ms, 1000);
    CU_ASSERT_EQUAL(notices_of(table, 1000 + TABLE_NOTICE_MS).count, 0);
    struct table_notice again = {.identity = STR("a"), .since_ms = noticed.last.since_ms};
    memcpy(again.key, noticed.last.key, sizeof again.key);
    next->ops->leave_notice(next, &again, 1000 + TABLE_NOTICE_MS); /* too old */
    CU_ASSERT_EQUAL(notices_of(next, 1000).count, 0);
    next->ops->leave_notice(next, &again, 2000);
    CU_ASSERT_EQUAL(notices_of(next, 2000).count, 1);
    struct table_ask ask = ask_of("a", "s");
    struct table_reply reply;
    CU_ASSERT_EQUAL(next->ops->acquire(next, &ask, &reply), TABLE_CREATE);
    CU_ASSERT_TRUE(reply.loss);
    next->ops->leave_notice(next, &again, 2000); /* it is there: nothing to be told later */
    CU_ASSERT_EQUAL(notices_of(next, 2000).count, 0);
    table->ops->free(table);
    next->ops->free(next);
}

static void a_record_can_be_looked_at_by_its_fence(void)
{
    struct table *table = table_memory_new();
    struct table_view view;
    struct table_ref ref = ready(table, "a", "s", 1, 0);
    CU_ASSERT_TRUE(table->ops->look(table, &ref, &view));
    CU_ASSERT_EQUAL(view.state, TABLE_READY);
    CU_ASSERT_EQUAL(view.expires_ms, DEADLINE_NONE);
    CU_ASSERT_EQUAL(view.leases, 1);
    CU_ASSERT_TRUE(table->ops->release(table, &ref, 500));
    CU_ASSERT_TRUE(table->ops->look(table, &ref, &view));
    CU_ASSERT_EQUAL(view.expires_ms, 500);
    struct table_ref stale = ref;
    stale.fence++;
    CU_ASSERT_FALSE(table->ops->look(table, &stale, &view));
    table->ops->free(table);
}

static void listing_shows_an_identity_its_own_records_alone(void)
{
    struct table *table = table_memory_new();
    ready(table, "a", "1", 1, 0);
    struct table_ref closing = ready(table, "a", "2", 0, 100);
    created(table, "a", "3", true);
    ready(table, "b", "1", 0, 100);
    CU_ASSERT_TRUE(table->ops->evict(table, &closing, false, 0));
    size_t seen = 0;
    table->ops->list(table, STR("a"), count_one, &seen);
    CU_ASSERT_EQUAL(seen, 2);
    seen = 0;
    table->ops->list(table, STR("nobody"), count_one, &seen);
    CU_ASSERT_EQUAL(seen, 0);
    table->ops->free(table);
}

/* Random steps against counts kept by hand. */
static void counts_hold_over_many_random_steps(void)
{
    struct table *table = table_memory_new();
    struct table_ref refs[3] = {{{0}, 0}};
    enum { NONE, CREATING, READY, CLOSING } states[3] = {NONE};
    uint32_t state = 7;
    for (int step = 0; step < 20000; step++) {
        state = state * 1664525u + 1013904223u;
        size_t i = (state >> 20) % 3;
        const char *name = i == 0 ? "x" : i == 1 ? "y" : "z";
        if (states[i] == NONE) {
            refs[i] = created(table, "a", name, true);
            states[i] = CREATING;
        } else if (states[i] == CREATING && (state >> 30) > 0) {
            CU_ASSERT_TRUE(table->ops->publish(table, &refs[i], name, 0, step));
            states[i] = READY;
        } else if (states[i] == READY && (state >> 30) > 0) {
            CU_ASSERT_TRUE(table->ops->evict(table, &refs[i], (state >> 29 & 1) != 0, step));
            states[i] = CLOSING;
        } else {
            CU_ASSERT_TRUE(table->ops->remove(table, &refs[i], step));
            states[i] = NONE;
        }
        struct table_counts counts = counted(table);
        size_t wanted[4] = {0};
        for (size_t k = 0; k < 3; k++) {
            wanted[states[k]]++;
        }
        CU_ASSERT_EQUAL(counts.creating, wanted[CREATING]);
        CU_ASSERT_EQUAL(counts.ready, wanted[READY]);
        CU_ASSERT_EQUAL(counts.closing, wanted[CLOSING]);
        CU_ASSERT_EQUAL(counts.sessions, wanted[CREATING] + wanted[READY]);
    }
    table->ops->free(table);
}

static void a_heap_gives_its_nodes_in_order_whatever_is_taken_out(void)
{
    struct heap heap = {0};
    static struct heap_node nodes[500];
    uint32_t state = 3;
    for (size_t i = 0; i < COUNT_OF(nodes); i++) {
        state = state * 1664525u + 1013904223u;
        heap_put(&heap, &nodes[i], state >> 20);
    }
    for (size_t i = 0; i < COUNT_OF(nodes); i += 3) {
        heap_remove(&heap, &nodes[i]);
        heap_put(&heap, &nodes[(i + 1) % COUNT_OF(nodes)], (int64_t)i);
    }
    int64_t last = -1;
    size_t taken = 0;
    for (struct heap_node *top; (top = heap_top(&heap)) != NULL; taken++) {
        CU_ASSERT_TRUE(top->at >= last);
        last = top->at;
        heap_remove(&heap, top);
    }
    CU_ASSERT_EQUAL(taken, 500 - 167);
    heap_clear(&heap);
}

static const struct test tests[] = {
    TEST(a_key_is_created_once_then_leased),
    TEST(a_stale_fence_changes_nothing),
    TEST(a_right_fence_in_a_wrong_state_changes_nothing),
    TEST(b54_creating_ready_and_closing_count_against_the_cap),
    TEST(each_limit_is_named_and_has_its_own_victim),
    TEST(the_victim_is_the_least_recently_used_without_a_lease),
    TEST(who_may_not_create_is_told_that_others_wait),
    TEST(c072_a_key_on_its_way_out_gets_a_fresh_record),
    TEST(c065_only_idle_records_expire_and_a_lease_stops_it),
    TEST(nothing_idle_never_expires),
    TEST(b53_identities_share_neither_counts_nor_ids),
    TEST(a_loss_waits_for_the_next_record_and_is_taken_once),
    TEST(what_expires_loses_something_where_something_was_run),
    TEST(notices_are_bounded_for_each_identity_and_in_time),
    TEST(a_notice_can_be_seen_and_left_again_in_another_table),
    TEST(a_record_can_be_looked_at_by_its_fence),
    TEST(listing_shows_an_identity_its_own_records_alone),
    TEST(counts_hold_over_many_random_steps),
    TEST(a_heap_gives_its_nodes_in_order_whatever_is_taken_out),
};

int main(int argc, char **argv)
{
    return run_tests("session_table", tests, COUNT_OF(tests), argc, argv);
}
