/* What a container may hold open in this process (fds_per_container and the call under way) counts as taken from before
 * its creation until it is gone; without room it is not made. */
#include "http/admission.h"
#include "sandbox_world.h"

enum { PER_CONTAINER = 3, TAKEN = PER_CONTAINER + 1 };

static void world_with_descriptors(void (*body)(void))
{
    struct sg_sandbox_ops ops = fake_ops;
    struct sg_plugin plugin = fake_plugin;
    ops.fds_per_container = PER_CONTAINER;
    plugin.sandbox = &ops;
    world_open();
    fake_instance.plugin = &plugin;
    world_run(body);
    world_close();
    CU_ASSERT_EQUAL(admission_used(), 0);
}

static void counted(void)
{
    struct client *one = client_with(0, "a", "1"), *two = client_with(1, "b", "");
    CU_ASSERT_EQUAL(admission_used(), 2 * TAKEN);
    CU_ASSERT_EQUAL(client_run(one, "ok"), 0);
    CU_ASSERT_EQUAL(admission_used(), 2 * TAKEN);
    client_free(two); /* an ephemeral one is deleted */
    wait_for(logged("event=container_deleted") == 1);
    wait_for(admission_used() == TAKEN);
    CU_ASSERT_TRUE(registry_end(world.registry, STR("a"), str_of(one->id)));
    client_free(one);
    wait_for(logged("event=container_deleted") == 2);
    CU_ASSERT_EQUAL(admission_used(), 0);
}

static void a_containers_descriptors_are_counted_until_it_is_gone(void)
{
    world_with_descriptors(counted);
}

static void closing(void)
{
    set(&world.destroy_fails, true);
    client_free(client_with(0, "a", ""));
    wait_for(logged("event=container_delete_failed") >= 1);
    CU_ASSERT_EQUAL(admission_used(), TAKEN); /* it may still be there */
    set(&world.destroy_fails, false);
}

static void while_it_cannot_be_deleted_they_stay_counted(void)
{
    world_with_descriptors(closing);
}

static void failing(void)
{
    struct client *client = client_new(0, "a", "s");
    set(&world.create_fails, true);
    CU_ASSERT_EQUAL(client_do(client, ACQUIRE), SG_E_UNAVAILABLE);
    wait_for(admission_used() == 0);
    set(&world.create_fails, false);
    CU_ASSERT_EQUAL(client_do(client, ACQUIRE), 0);
    CU_ASSERT_EQUAL(admission_used(), TAKEN);
    client_free(client);
}

static void a_creation_that_fails_gives_them_back(void)
{
    world_with_descriptors(failing);
}

static void no_room(void)
{
    char message[128];
    struct client *client = client_new(1, "a", "s");
    size_t taken = admission_limit() - TAKEN + 1;
    CU_ASSERT_TRUE(admission_take(taken));
    CU_ASSERT_EQUAL(client_do(client, ACQUIRE), SG_E_LIMIT);
    snprintf(message, sizeof message,
             "no descriptors are left for another container: %zu of %zu are in use", taken,
             admission_limit());
    CU_ASSERT_PTR_NOT_NULL(strstr(client->err.message, message));
    CU_ASSERT_EQUAL(seen(&world.creates), 0);
    CU_ASSERT_EQUAL(admission_used(), taken);
    admission_give(1);
    CU_ASSERT_EQUAL(client_do(client, ACQUIRE), 0);
    CU_ASSERT_EQUAL(admission_used(), admission_limit());
    admission_give(taken - 1);
    client_free(client);
}

static void without_room_no_container_is_made(void)
{
    world_with_descriptors(no_room);
}

static const struct test tests[] = {
    TEST(a_containers_descriptors_are_counted_until_it_is_gone),
    TEST(while_it_cannot_be_deleted_they_stay_counted),
    TEST(a_creation_that_fails_gives_them_back),
    TEST(without_room_no_container_is_made),
};

int main(int argc, char **argv)
{
    return run_tests("container_descriptors", tests, COUNT_OF(tests), argc, argv);
}
