/* core/session/park: a container without a session waits for the request that continues the one that used it, is taken
 * over once and by its own identity, and ends by itself where nobody comes. See tests/support/sandbox_world.h. */
#include "sandbox_world.h"

static struct client *taker(unsigned loop, const char *identity, const char *container)
{
    struct client *client = client_new(loop, identity, "");
    client->container = container;
    client->is_parked = true;
    return client;
}

/* Uses an ephemeral container, parks it and leaves; its id. */
static void park_one(unsigned loop, const char *identity, int64_t park_ms, char id[64])
{
    struct client *client = client_with(loop, identity, "");
    CU_ASSERT_EQUAL(client_run(client, "x"), 0);
    client->keep_ms = park_ms;
    CU_ASSERT_EQUAL(client_do(client, PARK), 0);
    memcpy(id, client->id, 64);
    client_free(client);
}

static void taken_over(void)
{
    char id[64];
    park_one(0, "a", 60000, id);
    CU_ASSERT_EQUAL(seen(&world.live), 1);
    CU_ASSERT_EQUAL(stats().ready, 1);
    CU_ASSERT_EQUAL(stats().leases, 0);
    struct client *next = taker(1, "a", id);
    CU_ASSERT_EQUAL(client_do(next, ACQUIRE), 0);
    CU_ASSERT_STRING_EQUAL(next->id, id);
    CU_ASSERT_EQUAL(client_run(next, "y"), 0);
    CU_ASSERT_STRING_EQUAL(next->output, "y in h1");
    client_free(next);
    wait_for(logged("event=container_deleted") == 1); /* it is the last request's now */
    CU_ASSERT_EQUAL(seen(&world.creates), 1);
    CU_ASSERT_EQUAL(logged("reason=released"), 1);
}

static void a_parked_container_goes_on_in_the_next_request_and_ends_with_it(void)
{
    world_test(taken_over);
}

static void taken_once(void)
{
    char id[64];
    park_one(0, "a", 60000, id);
    struct client *clients[8];
    int taken = 0, refused = 0;
    for (unsigned i = 0; i < 8; i++) {
        clients[i] = taker(i % 2, "a", id);
        client_begin(clients[i], ACQUIRE);
    }
    for (unsigned i = 0; i < 8; i++) {
        int code = client_wait(clients[i]);
        taken += code == 0;
        refused += code == SG_E_NOT_FOUND;
    }
    CU_ASSERT_EQUAL(taken, 1);
    CU_ASSERT_EQUAL(refused, 7);
    for (unsigned i = 0; i < 8; i++) {
        client_free(clients[i]);
    }
}

static void only_one_of_many_takes_it_over(void)
{
    world_test(taken_once);
}

static void anothers(void)
{
    char id[64];
    park_one(0, "a", 60000, id);
    struct client *other = taker(0, "b", id);
    CU_ASSERT_EQUAL(client_do(other, ACQUIRE), SG_E_NOT_FOUND);
    CU_ASSERT_PTR_NOT_NULL(strstr(other->err.message, "does not exist or has expired"));
    struct client *own = taker(0, "a", id);
    CU_ASSERT_EQUAL(client_do(own, ACQUIRE), 0); /* the attempt has not taken it away */
    client_free(other);
    client_free(own);
}

static void another_identity_does_not_get_it(void)
{
    world_test(anothers);
}

static void not_parked(void)
{
    struct client *client = client_with(0, "a", ""), *session = client_with(0, "a", "s");
    struct client *next = taker(0, "a", client->id), *third = taker(0, "a", session->id);
    CU_ASSERT_EQUAL(client_do(next, ACQUIRE), SG_E_NOT_FOUND);
    session->keep_ms = 60000;
    CU_ASSERT_EQUAL(client_do(session, PARK), 0); /* changes nothing */
    CU_ASSERT_EQUAL(client_do(third, ACQUIRE), SG_E_NOT_FOUND);
    client->keep_ms = 60000;
    CU_ASSERT_EQUAL(client_do(client, PARK), 0);
    client->keep_ms = 0;
    CU_ASSERT_EQUAL(client_do(client, PARK), 0); /* the answer never reached its client */
    CU_ASSERT_EQUAL(client_do(next, ACQUIRE), SG_E_NOT_FOUND);
    client_free(client);
    wait_for(logged("reason=released") == 1);
    client_free(session);
    client_free(next);
    client_free(third);
}

static void what_is_not_parked_is_not_taken_over(void)
{
    world_test(not_parked);
}

static void taken_early(void)
{
    struct client *first = client_with(0, "a", "");
    first->keep_ms = 60000;
    CU_ASSERT_EQUAL(client_do(first, PARK), 0);
    struct client *next = taker(1, "a", first->id);
    CU_ASSERT_EQUAL(client_do(next, ACQUIRE), 0); /* before the first has let go of it */
    CU_ASSERT_EQUAL(client_do(next, RELEASE), 0);
    CU_ASSERT_EQUAL(seen(&world.destroys), 0); /* it is the first's still */
    client_free(first);
    wait_for(logged("reason=released") == 1); /* and nobody waits for it any more */
    client_free(next);
}

static void a_fast_client_may_come_before_the_first_request_has_ended(void)
{
    world_test(taken_early);
}

static void nobody_comes(void)
{
    char id[64];
    park_one(0, "a", 50, id);
    wait_for(logged("event=container_expired") == 1);
    wait_for(logged("event=container_deleted") == 1);
    struct client *late = taker(0, "a", id);
    CU_ASSERT_EQUAL(client_do(late, ACQUIRE), SG_E_NOT_FOUND);
    client_free(late);
}

static void it_ends_by_itself_where_nobody_comes(void)
{
    world_test(nobody_comes);
}

static void counted(void)
{
    char id[64];
    park_one(0, "a", 60000, id);
    struct client *second = client_with(0, "a", ""); /* of two that may be, one is parked */
    struct client *third = client_with(0, "a", "");  /* the parked one makes room */
    wait_for(logged("reason=evicted") == 1);
    struct client *late = taker(0, "a", id);
    CU_ASSERT_EQUAL(client_do(late, ACQUIRE), SG_E_NOT_FOUND);
    CU_ASSERT_TRUE(world.live_max <= 2);
    client_free(second);
    client_free(third);
    client_free(late);
}

static void it_counts_against_max_containers_and_makes_room(void)
{
    world_open();
    world.options.max_containers = 2;
    world_run(counted);
    world_close();
}

static void pushed_on(void)
{
    char id[64];
    park_one(0, "a", 100 * 60000, id);
    wait_for(seen(&world.touches) == 1);
    CU_ASSERT_TRUE(world.touched_ms >= 100 * 60000 + 60000); /* the provider keeps it as long */
}

static void the_provider_is_told_how_long_it_shall_live(void)
{
    world_test(pushed_on);
}

static const struct test tests[] = {
    TEST(a_parked_container_goes_on_in_the_next_request_and_ends_with_it),
    TEST(only_one_of_many_takes_it_over),
    TEST(another_identity_does_not_get_it),
    TEST(what_is_not_parked_is_not_taken_over),
    TEST(a_fast_client_may_come_before_the_first_request_has_ended),
    TEST(it_ends_by_itself_where_nobody_comes),
    TEST(it_counts_against_max_containers_and_makes_room),
    TEST(the_provider_is_told_how_long_it_shall_live),
};

int main(int argc, char **argv)
{
    return run_tests("park", tests, COUNT_OF(tests), argc, argv);
}
