/* core/session/registry: who gets which container, and how many there ever are. On two loops with a provider that waits
 * at gates and counts; see tests/support/sandbox_world.h. */
#include "sandbox_world.h"

/* ---- single flight ---- */

#define MANY 20

static void many_first_requests(void)
{
    struct client *clients[MANY];
    gate_close(world.create_gate);
    for (unsigned i = 0; i < MANY; i++) {
        clients[i] = client_new(i % 2, "a", "s");
        client_begin(clients[i], ACQUIRE);
    }
    wait_for(logged("say=create") == 1);
    gate_open(world.create_gate);
    for (unsigned i = 0; i < MANY; i++) {
        CU_ASSERT_EQUAL(client_wait(clients[i]), 0);
        CU_ASSERT_STRING_EQUAL(clients[i]->id, clients[0]->id);
    }
    CU_ASSERT_EQUAL(seen(&world.creates), 1);
    CU_ASSERT_EQUAL(stats().leases, MANY);
    CU_ASSERT_EQUAL(stats().sessions, 1);
    for (unsigned i = 0; i < MANY; i++) {
        client_free(clients[i]);
    }
    CU_ASSERT_EQUAL(stats().leases, 0);
    CU_ASSERT_EQUAL(stats().ready, 1);
    CU_ASSERT_EQUAL(seen(&world.destroys), 0); /* B50: the session keeps it */
}

static void b55_concurrent_first_requests_make_one_container(void)
{
    world_test(many_first_requests);
}

static void one_after_the_other(void)
{
    struct client *first = client_with(0, "a", "s");
    char id[64];
    snprintf(id, sizeof id, "%s", first->id);
    client_free(first);
    struct client *second = client_with(1, "a", "s");
    CU_ASSERT_STRING_EQUAL(second->id, id);
    CU_ASSERT_EQUAL(strncmp(id, "cntr_sg", 7), 0);
    CU_ASSERT_EQUAL(strlen(id), 7 + 32);
    CU_ASSERT_EQUAL(strncmp(world.boxes[0].label, "sg-", 3), 0);
    CU_ASSERT_EQUAL(strlen(world.boxes[0].label), 3 + 32);
    CU_ASSERT_PTR_NULL(strstr(world.boxes[0].label, id + 7)); /* neither tells the other */
    CU_ASSERT_EQUAL(world.boxes[0].life_ms, 15 * 60000 + 60000 + 60000);
    client_free(second);
}

static void b51_a_session_is_found_again_over_another_connection(void)
{
    world_test(one_after_the_other);
}

static void failing_creation(void)
{
    struct client *clients[4];
    set(&world.create_fails, true);
    gate_close(world.create_gate);
    for (unsigned i = 0; i < 4; i++) {
        clients[i] = client_new(0, "a", "s");
        client_begin_waiting(clients[i], ACQUIRE);
    }
    wait_for(logged("say=create") == 1);
    gate_open(world.create_gate);
    for (unsigned i = 0; i < 4; i++) {
        int code = client_wait(clients[i]);
        CU_ASSERT_EQUAL(code, SG_E_UNAVAILABLE);
        CU_ASSERT_STRING_EQUAL(clients[i]->err.message, "fake (box): no room at the provider");
    }
    wait_for(logged("event=container_create_failed") == 1);
    CU_ASSERT_EQUAL(logged("error=\"fake (box): no room at the provider\""), 1);
    CU_ASSERT_EQUAL(stats().creating + stats().ready + stats().closing, 0);
    set(&world.create_fails, false);
    CU_ASSERT_EQUAL(client_do(clients[0], ACQUIRE), 0); /* nothing is left behind */
    for (unsigned i = 0; i < 4; i++) {
        client_free(clients[i]);
    }
}

static void a_failed_creation_wakes_all_and_leaves_nothing(void)
{
    world_test(failing_creation);
}

static void late_failure(void)
{
    set(&world.create_fails_late, true);
    struct client *client = client_new(1, "a", "s");
    CU_ASSERT_EQUAL(client_do(client, ACQUIRE), SG_E_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(client->err.message, "fake (box): it did not boot");
    wait_for(logged("event=container_deleted") == 1);
    CU_ASSERT_EQUAL(seen(&world.live), 0);
    CU_ASSERT_EQUAL(logged("reason=failed"), 1);
    set(&world.create_fails_late, false);
    set(&world.create_is_silent, true);
    CU_ASSERT_EQUAL(client_do(client, ACQUIRE), SG_E_INTERNAL);
    CU_ASSERT_STRING_EQUAL(client->err.message,
                           "sandbox 'box': create() gave no handle of 1 to 4096 bytes without NUL");
    client_free(client);
}

static void a_handle_once_given_is_destroyed_whatever_create_returns(void)
{
    world_test(late_failure);
}

static void cancelled_while_creating(void)
{
    gate_close(world.create_gate);
    struct client *client = client_new(1, "a", "s");
    client_begin(client, ACQUIRE);
    wait_for(logged("say=create") == 1);
    client_cancel(client);
    CU_ASSERT_EQUAL(client->result, SG_E_CANCELLED);
    CU_ASSERT_STRING_EQUAL(client->err.message, "cancelled while waiting for a container");
    gate_open(world.create_gate);
    wait_for(logged("event=container_created") == 1);
    CU_ASSERT_EQUAL(stats().ready, 1);
    CU_ASSERT_EQUAL(stats().leases, 0);
    struct client *next = client_with(0, "a", "s");
    CU_ASSERT_EQUAL(seen(&world.creates), 1); /* the session's, all the same */
    client_free(next);
    client_free(client);
}

static void a_client_that_leaves_cancels_its_wait_not_the_creation(void)
{
    world_test(cancelled_while_creating);
}

static void ephemeral_cancelled_while_creating(void)
{
    gate_close(world.create_gate);
    struct client *client = client_new(1, "a", "");
    client_begin(client, ACQUIRE);
    wait_for(logged("say=create") == 1);
    client_cancel(client);
    gate_open(world.create_gate);
    wait_for(logged("event=container_deleted") == 1);
    CU_ASSERT_EQUAL(logged("reason=unwanted"), 1);
    CU_ASSERT_EQUAL(seen(&world.live), 0);
    client_free(client);
}

static void b30_an_ephemeral_container_that_nobody_waits_for_is_deleted_when_made(void)
{
    world_test(ephemeral_cancelled_while_creating);
}

/* ---- isolation ---- */

static void same_ids(void)
{
    struct client *a = client_with(0, "a", "s"), *b = client_with(1, "b", "s");
    struct client *colon = client_with(0, "a:s", "t"), *other = client_with(1, "a", "s:t");
    struct client *none = client_with(0, "a", ""), *again = client_with(0, "a", "");
    CU_ASSERT_EQUAL(seen(&world.creates), 6);
    CU_ASSERT_STRING_NOT_EQUAL(a->id, b->id);
    CU_ASSERT_STRING_NOT_EQUAL(colon->id, other->id);
    CU_ASSERT_STRING_NOT_EQUAL(none->id, again->id); /* B11, B12: ephemeral ones share nothing */
    struct client *thief = client_new(0, "b", "");
    thief->container = a->id;
    CU_ASSERT_EQUAL(client_do(thief, ACQUIRE), SG_E_NOT_FOUND);
    char wanted[128];
    snprintf(wanted, sizeof wanted, "container '%s' does not exist or has expired", a->id);
    CU_ASSERT_STRING_EQUAL(thief->err.message, wanted);
    struct client *owner = client_new(1, "a", "");
    owner->container = a->id;
    CU_ASSERT_EQUAL(client_do(owner, ACQUIRE), 0);
    CU_ASSERT_STRING_EQUAL(owner->id, a->id);
    struct client *all[] = {a, b, colon, other, none, again, thief, owner};
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        client_free(all[i]);
    }
}

static void b53_b58_identities_share_nothing_whatever_the_session_id(void)
{
    world_test(same_ids);
}

/* ---- caps ---- */

static void eleven_sessions(void)
{
    static const char *const names[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"};
    for (unsigned i = 0; i < 10; i++) {
        client_free(client_with(i % 2, "a", names[i]));
    }
    CU_ASSERT_EQUAL(seen(&world.live), 10);
    gate_close(world.destroy_gate);
    struct client *client = client_new(1, "a", names[10]);
    client_begin(client, ACQUIRE);
    wait_for(logged("event=container_evicted") == 1);
    CU_ASSERT_EQUAL(seen(&world.creates), 10); /* deleted first, then made */
    CU_ASSERT_EQUAL(stats().closing, 1);
    gate_open(world.destroy_gate);
    CU_ASSERT_EQUAL(client_wait(client), 0);
    CU_ASSERT_EQUAL(seen(&world.creates), 11);
    CU_ASSERT_FALSE(world.boxes[0].is_alive); /* the least recently used */
    CU_ASSERT_TRUE(world.boxes[1].is_alive);
    CU_ASSERT_EQUAL(seen(&world.live_max), 10);
    CU_ASSERT_EQUAL(stats().evicted, 1);
    client_free(client);
}

static void b54_the_least_recently_used_is_deleted_before_the_new_one_is_made(void)
{
    world_test(eleven_sessions);
}

#define STORM 60

static struct client *storm_clients[STORM]; /* NULL: done */

static struct client **storm_ready(void)
{
    for (unsigned i = 0; i < STORM; i++) {
        if (storm_clients[i] != NULL && !client_is_busy(storm_clients[i])) {
            return &storm_clients[i];
        }
    }
    return NULL;
}

static void storm(void)
{
    char names[STORM][8];
    for (unsigned i = 0; i < STORM; i++) {
        snprintf(names[i], sizeof names[i], "s%u", i % 23);
        storm_clients[i] = client_new(i % 2, "a", i % 5 == 4 ? "" : names[i]);
        client_begin(storm_clients[i], ACQUIRE);
    }
    for (unsigned i = 0; i < STORM; i++) { /* each gives back, so that others come to theirs */
        wait_for(storm_ready() != NULL);
        struct client **ready = storm_ready();
        CU_ASSERT_EQUAL((*ready)->result, 0);
        client_free(*ready);
        *ready = NULL;
    }
    CU_ASSERT_TRUE(seen(&world.live_max) <= 5);
}

static void the_caps_hold_in_a_storm_of_requests(void)
{
    for (int workers = 0; workers < 2; workers++) {
        if (workers) {
            world_open_workers();
        } else {
            world_open();
        }
        world.options.per_identity = 3;
        world.options.max_containers = 5;
        world.options.wait_ms = WAIT_MS;
        world_run(storm);
        world_close();
    }
}

/* Five containers for both users of a key, three sessions for each. */
static void storm_of_users(void)
{
    char names[STORM][8];
    for (unsigned i = 0; i < STORM; i++) {
        snprintf(names[i], sizeof names[i], "s%u", i % 23);
        storm_clients[i] = client_new(i % 2,
                                      i % 3 == 0 ? "k\x1f"
                                                   "ann"
                                                 : "k\x1f"
                                                   "bob",
                                      i % 5 == 4 ? "" : names[i]);
        client_begin(storm_clients[i], ACQUIRE);
    }
    for (unsigned i = 0; i < STORM; i++) {
        wait_for(storm_ready() != NULL);
        struct client **ready = storm_ready();
        CU_ASSERT_EQUAL((*ready)->result, 0);
        client_free(*ready);
        *ready = NULL;
    }
    CU_ASSERT_TRUE(seen(&world.live_max) <= 5);
}

static void the_caps_of_a_key_hold_in_a_storm_of_its_users(void)
{
    world_open();
    world.options.per_identity = 3;
    world.options.max_containers = 5;
    world.options.wait_ms = WAIT_MS;
    world_run(storm_of_users);
    world_close();
}

static void users_take_turns(void)
{
    struct client *ann = client_with(0,
                                     "k\x1f"
                                     "ann",
                                     "1"),
                  *bob = client_with(1,
                                     "k\x1f"
                                     "bob",
                                     "1");
    struct client *carl = client_new(0,
                                     "k\x1f"
                                     "carl",
                                     "1"),
                  *other = client_with(1, "other", "1");
    carl->max_containers = 2;
    client_begin(carl, ACQUIRE);
    struct client *key = client_new(0, "k", "1"); /* itself, or of its users: all the same */
    key->max_containers = 2;
    client_begin(key, ACQUIRE);
    CU_ASSERT_EQUAL(seen(&world.creates), 3);
    client_free(bob); /* another's: it makes room for the one that waited first */
    CU_ASSERT_EQUAL(client_wait(carl), 0);
    CU_ASSERT_TRUE(client_is_busy(key));
    client_free(ann);
    CU_ASSERT_EQUAL(client_wait(key), 0);
    CU_ASSERT_EQUAL(stats().evicted, 2);
    client_free(carl);
    client_free(key);
    client_free(other);
}

static void users_of_one_key_share_its_containers_and_make_room_for_each_other(void)
{
    world_test(users_take_turns);
}

static void own_caps(void)
{
    struct client *one = client_new(0, "a", "1"), *two = client_new(0, "a", "2");
    one->per_identity = two->per_identity = 1;
    CU_ASSERT_EQUAL(client_do(one, ACQUIRE), 0);
    CU_ASSERT_EQUAL(client_do(two, ACQUIRE), SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(two->err.message,
                           "the key's per_identity is 1: no session became free within 20 ms");
    struct client *none = client_new(0, "a", "");
    none->max_containers = 1;
    CU_ASSERT_EQUAL(client_do(none, ACQUIRE), SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(none->err.message,
                           "the key's max_containers is 1: no container became free within 20 ms");
    client_free(one);
    client_free(two);
    client_free(none);
}

static void a_keys_own_caps_stand_for_the_registrys(void)
{
    world_open();
    world.options.wait_ms = 20;
    world_run(own_caps);
    world_close();
}

static void all_leased(void)
{
    struct client *one = client_with(0, "a", "1"), *two = client_with(1, "a", "2");
    struct client *three = client_new(0, "a", "3");
    CU_ASSERT_EQUAL(client_do(three, ACQUIRE), SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(three->err.message,
                           "sessions.per_identity is 2: no session became free within 20 ms");
    struct client *other = client_with(0, "b", "1"); /* another's cap is its own */
    CU_ASSERT_EQUAL(seen(&world.destroys), 0);       /* B56 */
    struct client *ephemeral = client_with(1, "a", "");
    struct client *full = client_new(0, "a", "");
    CU_ASSERT_EQUAL(client_do(full, ACQUIRE), SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(full->err.message,
                           "sessions.max_containers is 3: no container became free within 20 ms");
    CU_ASSERT_EQUAL(client_do(full, ACQUIRE), SG_E_LIMIT);
    struct client *total = client_new(0, "c", "1");
    CU_ASSERT_EQUAL(client_do(total, ACQUIRE), SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(
        total->err.message,
        "sessions.max_containers_total is 4: no container became free within 20 ms");
    struct client *all[] = {one, two, three, other, ephemeral, full, total};
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        client_free(all[i]);
    }
}

static void b56_leased_containers_are_never_evicted_and_the_limit_is_named(void)
{
    world_open();
    world.options.per_identity = 2;
    world.options.max_containers = 3;
    world.options.max_containers_total = 4;
    world.options.wait_ms = 20;
    world_run(all_leased);
    world_close();
}

static void wait_for_a_lease(void)
{
    struct client *one = client_with(0, "a", "1");
    struct client *two = client_new(1, "a", "2"), *ephemeral = client_new(0, "b", "");
    client_begin(two, ACQUIRE);                        /* until a lease of `a` is given back */
    CU_ASSERT_EQUAL(client_do(ephemeral, ACQUIRE), 0); /* holds up nobody else */
    CU_ASSERT_TRUE(client_is_busy(two));
    client_free(one);
    CU_ASSERT_EQUAL(client_wait(two), 0);
    CU_ASSERT_EQUAL(logged("event=container_evicted"), 1);
    client_free(two);
    client_free(ephemeral);
}

static void over_the_cap_a_request_waits_for_a_lease(void)
{
    world_open();
    world.options.per_identity = 1;
    world.options.wait_ms = WAIT_MS;
    world_run(wait_for_a_lease);
    world_close();
}

static void total_full(void)
{
    client_free(client_with(0, "a", "1"));
    struct client *b = client_with(0, "b", "1");
    struct client *c = client_with(1, "c", "1"); /* evicts the idle one of another identity */
    CU_ASSERT_FALSE(world.boxes[0].is_alive);
    CU_ASSERT_EQUAL(seen(&world.live_max), 2);
    struct client *d = client_new(1, "d", "1"), *e = client_new(1, "e", "");
    client_begin(d, ACQUIRE);
    client_begin(e, ACQUIRE);
    client_free(b);
    CU_ASSERT_EQUAL(client_wait(d), 0);
    client_free(c);
    CU_ASSERT_EQUAL(client_wait(e), 0);
    CU_ASSERT_EQUAL(seen(&world.live_max), 2);
    client_free(d);
    client_free(e);
}

static void the_total_limit_evicts_the_least_recently_used_of_all(void)
{
    world_open();
    world.options.max_containers_total = 2;
    world.options.wait_ms = WAIT_MS;
    world_run(total_full);
    world_close();
}

static void leave_the_queue(void)
{
    struct client *one = client_with(0, "a", "1");
    struct client *gone = client_new(0, "a", "2"), *stays = client_new(0, "a", "3");
    client_begin_waiting(gone, ACQUIRE);
    client_begin_waiting(stays, ACQUIRE);
    client_cancel(gone);
    CU_ASSERT_EQUAL(gone->result, SG_E_CANCELLED);
    client_free(one);
    CU_ASSERT_EQUAL(client_wait(stays), 0);
    CU_ASSERT_EQUAL(seen(&world.creates), 2); /* nothing for who left */
    client_free(gone);
    client_free(stays);
}

static void who_leaves_the_queue_takes_no_room(void)
{
    world_open();
    world.options.per_identity = 1;
    world.options.wait_ms = WAIT_MS;
    world_run(leave_the_queue);
    world_close();
}

static const struct test tests[] = {
    TEST(b55_concurrent_first_requests_make_one_container),
    TEST(b51_a_session_is_found_again_over_another_connection),
    TEST(a_failed_creation_wakes_all_and_leaves_nothing),
    TEST(a_handle_once_given_is_destroyed_whatever_create_returns),
    TEST(a_client_that_leaves_cancels_its_wait_not_the_creation),
    TEST(b30_an_ephemeral_container_that_nobody_waits_for_is_deleted_when_made),
    TEST(b53_b58_identities_share_nothing_whatever_the_session_id),
    TEST(b54_the_least_recently_used_is_deleted_before_the_new_one_is_made),
    TEST(the_caps_hold_in_a_storm_of_requests),
    TEST(the_caps_of_a_key_hold_in_a_storm_of_its_users),
    TEST(users_of_one_key_share_its_containers_and_make_room_for_each_other),
    TEST(a_keys_own_caps_stand_for_the_registrys),
    TEST(b56_leased_containers_are_never_evicted_and_the_limit_is_named),
    TEST(over_the_cap_a_request_waits_for_a_lease),
    TEST(the_total_limit_evicts_the_least_recently_used_of_all),
    TEST(who_leaves_the_queue_takes_no_room),
};

int main(int argc, char **argv)
{
    return run_tests("registry", tests, COUNT_OF(tests), argc, argv);
}
