/* core/session/registry_list: an identity ends its sessions by their own ids, and is shown them as it named them. */
#include "sandbox_world.h"

static bool end_session(const char *identity, const char *session)
{
    return registry_end_session(world.registry, str_of(identity), str_of(session), &world.sandbox);
}

static void ended_by_id(void)
{
    struct client *mine = client_with(0, "a", "s"), *theirs = client_with(1, "b", "s");
    client_free(mine);
    client_free(theirs);
    CU_ASSERT_FALSE(end_session("c", "s"));
    CU_ASSERT_FALSE(end_session("a", "t"));
    CU_ASSERT_EQUAL(stats().ready, 2);
    CU_ASSERT_TRUE(end_session("a", "s"));
    CU_ASSERT_FALSE(end_session("a", "s"));
    wait_for(logged("event=container_deleted") == 1);
    CU_ASSERT_EQUAL(logged("reason=ended"), 1);
    CU_ASSERT_EQUAL(stats().ready, 1); /* the other identity's */
    CU_ASSERT_EQUAL(stats().leases, 0);
}

static void a_session_is_ended_by_its_id_and_its_identity_alone(void)
{
    world_test(ended_by_id);
}

static const char *reserved(const char *identity, const char *session, bool *ret_is_new)
{
    static char id[CONTAINER_ID_BYTES];
    registry_reserve_id(world.registry, str_of(identity), str_of(session), &world.sandbox, id,
                        ret_is_new);
    return id;
}

static void reserved_first(void)
{
    bool is_new = false;
    char id[CONTAINER_ID_BYTES];
    memcpy(id, reserved("a", "s", &is_new), sizeof id);
    CU_ASSERT_TRUE(is_new);
    CU_ASSERT_EQUAL(stats().creating + stats().ready, 0); /* nothing was made for it */
    CU_ASSERT_STRING_NOT_EQUAL(reserved("a", "s", &is_new), id);

    struct client *client = client_new(0, "a", "s");
    client->new_id = id;
    CU_ASSERT_EQUAL_FATAL(client_do(client, ACQUIRE), 0);
    CU_ASSERT_STRING_EQUAL(client->id, id);
    CU_ASSERT_STRING_EQUAL(reserved("a", "s", &is_new), id);
    CU_ASSERT_FALSE(is_new);
    CU_ASSERT_STRING_NOT_EQUAL(reserved("b", "s", &is_new), id); /* another's of that name */
    CU_ASSERT_TRUE(is_new);
    CU_ASSERT_EQUAL(stats().leases, 1); /* asking took none */
    client_free(client);
    CU_ASSERT_EQUAL(stats().leases, 0);
    CU_ASSERT_EQUAL(stats().ready, 1);
}

static void an_id_told_before_a_container_is_made_becomes_its_id(void)
{
    world_test(reserved_first);
}

static void ended_while_made(void)
{
    struct client *client = client_new(0, "a", "s");
    gate_close(world.create_gate);
    client_begin(client, ACQUIRE);
    wait_for(logged("say=create") == 1);
    CU_ASSERT_TRUE(end_session("a", "s"));
    gate_open(world.create_gate);
    CU_ASSERT_EQUAL(client_wait(client), SG_E_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(client->err.message, "the container was ended before it was used");
    client_free(client);
    wait_for(logged("event=container_deleted") == 1);
    CU_ASSERT_EQUAL(seen(&world.destroys), 1);
}

static void one_that_is_being_made_is_deleted_when_it_is_there(void)
{
    world_test(ended_while_made);
}

static void shown_as_named(void)
{
    char longest[LIMIT_SESSION_ID_BYTES + 1] = {0};
    memset(longest, 'x', LIMIT_SESSION_ID_BYTES);
    struct client *client = client_with(0, "a", longest), *without = client_with(0, "a", "");
    struct container_info *infos = NULL;
    CU_ASSERT_EQUAL_FATAL(registry_list(world.registry, STR("a"), &infos), 2);
    size_t session = infos[0].is_session ? 0 : 1;
    CU_ASSERT_STRING_EQUAL(infos[session].session_id, longest);
    CU_ASSERT_STRING_EQUAL(infos[session].container_id, client->id);
    CU_ASSERT_EQUAL(infos[session].leases, 1);
    CU_ASSERT_EQUAL(infos[session].idle_left_ms, -1);
    CU_ASSERT_STRING_EQUAL(infos[1 - session].session_id, "");
    free(infos);
    client_free(client);
    client_free(without);
}

static void sessions_are_shown_by_the_ids_that_clients_gave(void)
{
    world_test(shown_as_named);
}

static const struct test tests[] = {
    TEST(a_session_is_ended_by_its_id_and_its_identity_alone),
    TEST(one_that_is_being_made_is_deleted_when_it_is_there),
    TEST(sessions_are_shown_by_the_ids_that_clients_gave),
    TEST(an_id_told_before_a_container_is_made_becomes_its_id),
};

int main(int argc, char **argv)
{
    return run_tests("registry_list", tests, COUNT_OF(tests), argc, argv);
}
