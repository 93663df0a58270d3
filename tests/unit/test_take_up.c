/* core/session/keep and take_up: what one registry leaves at its end goes on in the next one, as text in between. The provider
 * is that of tests/support/fake_sandbox.h, whose boxes outlive both; it counts what is made and ended. */
#include "sandbox_world.h"

#include "session/kept.h"

static struct {
    struct buf text; /* what the ending registry handed over */
    int calls;
    bool fails;
} hand; /* of the test that runs */

static int keep(void *ctx, const struct kept *kept, struct sg_error *err)
{
    (void)ctx;
    hand.calls++;
    if (hand.fails) {
        return error_set(err, SG_E_UNAVAILABLE, "the disk is full");
    }
    CHECK(kept_write(kept, NULL, &hand.text));
    return 0;
}

/* The end of the one registry, and the next with the options as they are now, which deletes at its end what is left. */
static void registry_next(void)
{
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(registry_shutdown(world.registry, deadline_in(WAIT_MS)), 0);
    registry_free(world.registry);
    world.registry = NULL;
    world.options.keep = NULL;
    CU_ASSERT_EQUAL_FATAL(registry_new(&world.options, &world.registry, &err), 0);
}

static void kept_open(struct kept *ret)
{
    uint8_t secret[KEPT_SECRET_BYTES];
    bool has_secret;
    struct sg_error err = {0};
    *ret = (struct kept){.arena = arena_new(0)};
    CU_ASSERT_EQUAL_FATAL(kept_read(buf_str(&hand.text), ret, secret, &has_secret, &err), 0);
}

static struct take_up_report take_up(const struct kept *kept)
{
    struct take_up options = {.sandboxes = &world.sandbox, .sandboxes_count = 1};
    struct take_up_report report;
    registry_take_up(world.registry, &options, kept, &report);
    return report;
}

/* All of it, as it was written. */
static struct take_up_report restart(void)
{
    struct kept kept;
    registry_next();
    kept_open(&kept);
    struct take_up_report report = take_up(&kept);
    arena_free(kept.arena);
    return report;
}

/* A session in which something was run; its container's id. */
static void session_make(const char *identity, const char *session, char id[64])
{
    struct client *client = client_with(0, identity, session);
    CU_ASSERT_EQUAL(client_run(client, "x"), 0);
    memcpy(id, client->id, 64);
    client_free(client);
}

static void box_expire(int index)
{
    lock_take(&world.lock);
    CHECK(world.boxes[index].is_alive);
    world.boxes[index].is_alive = false;
    world.live--;
    world.destroys++; /* by the provider itself */
    lock_release(&world.lock);
}

static bool loss_is_told(const char *identity, const char *session)
{
    struct client *client = client_with(0, identity, session);
    CU_ASSERT_EQUAL(client_run(client, "y"), 0);
    CU_ASSERT_EQUAL(client_do(client, TAKE_LOSS), 0);
    bool loss = client->loss;
    client_free(client);
    return loss;
}

static void test_with(void (*change)(void), void (*body)(void))
{
    memset(&hand, 0, sizeof hand);
    world_open();
    world.sandbox.is_durable = true;
    memcpy(world.sandbox.account, "an account", sizeof "an account");
    world.options.keep = keep;
    if (change != NULL) {
        change();
    }
    world_run(body);
    world_close();
    buf_clear(&hand.text);
}

/* ---- what goes on ---- */

static void goes_on(void)
{
    char before[64];
    session_make("a", "s", before);
    CU_ASSERT_EQUAL(restart().taken, 1);
    CU_ASSERT_EQUAL(seen(&world.live), 1);
    CU_ASSERT_EQUAL(logged("event=container_kept"), 1);
    CU_ASSERT_EQUAL(logged("event=container_left"), 0);
    struct client *client = client_with(1, "a", "s");
    CU_ASSERT_STRING_EQUAL(client->id, before);
    CU_ASSERT_EQUAL(client_run(client, "y"), 0);
    CU_ASSERT_STRING_EQUAL(client->output, "y in h1");
    CU_ASSERT_EQUAL(client_do(client, TAKE_LOSS), 0);
    CU_ASSERT_FALSE(client->loss);
    client_free(client);
    CU_ASSERT_EQUAL(seen(&world.creates), 1);
}

static void a_kept_session_goes_on_in_its_container(void)
{
    test_with(NULL, goes_on);
}

static void parked(void)
{
    struct client *client = client_with(0, "a", "");
    char id[64];
    CU_ASSERT_EQUAL(client_run(client, "x"), 0);
    client->keep_ms = 60000;
    CU_ASSERT_EQUAL(client_do(client, PARK), 0);
    memcpy(id, client->id, sizeof id);
    client_free(client);
    CU_ASSERT_EQUAL(restart().taken, 1);
    struct client *other = client_new(0, "b", ""), *next = client_new(0, "a", "");
    other->container = next->container = id;
    other->is_parked = next->is_parked = true;
    CU_ASSERT_EQUAL(client_do(other, ACQUIRE), SG_E_NOT_FOUND);
    CU_ASSERT_EQUAL(client_do(next, ACQUIRE), 0);
    CU_ASSERT_EQUAL(client_run(next, "y"), 0);
    CU_ASSERT_STRING_EQUAL(next->output, "y in h1");
    client_free(other);
    client_free(next);
}

static void a_parked_container_waits_for_its_own_identity(void)
{
    test_with(NULL, parked);
}

static void loss_untold(void)
{
    char id[64];
    session_make("a", "s", id);
    kill_all();
    struct client *client = client_with(0, "a", "s");
    CU_ASSERT_EQUAL(client_run(client, "y"), 0); /* in another one, and nobody takes the loss */
    client_free(client);
    CU_ASSERT_EQUAL(restart().taken, 1);
    CU_ASSERT_TRUE(loss_is_told("a", "s"));
    CU_ASSERT_FALSE(loss_is_told("a", "s"));
}

static void a_loss_that_nobody_was_told_of_goes_on_with_its_session(void)
{
    test_with(NULL, loss_untold);
}

/* ---- what does not ---- */

static void not_durable(void)
{
    char id[64];
    session_make("a", "s", id);
    world.sandbox.is_durable = false;
    struct take_up_report report = restart();
    CU_ASSERT_EQUAL(seen(&world.live), 0);
    CU_ASSERT_EQUAL(report.taken, 0);
    CU_ASSERT_EQUAL(report.notices, 1);
    CU_ASSERT_TRUE(loss_is_told("a", "s"));
    CU_ASSERT_FALSE(loss_is_told("b", "s"));
}

static void what_ends_with_the_process_is_deleted_and_its_session_told(void)
{
    test_with(NULL, not_durable);
}

static void write_fails(void)
{
    char id[64];
    session_make("a", "s", id);
    hand.fails = true;
    registry_next();
    CU_ASSERT_EQUAL(hand.calls, 1);
    CU_ASSERT_EQUAL(seen(&world.live), 0);
    CU_ASSERT_EQUAL(logged("event=sessions_not_kept error=\"the disk is full\""), 1);
}

static void what_could_not_be_written_is_deleted(void)
{
    test_with(NULL, write_fails);
}

static void life_over(void)
{
    char id[64];
    session_make("a", "s", id);
    registry_next();
    struct kept kept;
    kept_open(&kept);
    kept.containers[0].life_latest_unix_ms = clock_unix_ms();
    struct take_up_report report = take_up(&kept);
    arena_free(kept.arena);
    CU_ASSERT_EQUAL(report.taken, 0);
    CU_ASSERT_EQUAL(report.ended, 1);
    CU_ASSERT_EQUAL(logged("event=container_not_taken_up"), 1);
    CU_ASSERT_EQUAL(logged("reason=\"its provider has ended it meanwhile\""), 1);
    CU_ASSERT_TRUE(loss_is_told("a", "s"));
    box_expire(0);
}

static void one_that_its_provider_must_have_ended_is_not_taken_up(void)
{
    test_with(NULL, life_over);
}

static void doubled(void)
{
    char id[64];
    session_make("a", "s", id);
    session_make("b", "s", id);
    registry_next();
    struct kept kept;
    kept_open(&kept);
    CU_ASSERT_EQUAL_FATAL(kept.containers_count, 2);
    struct kept_container *one = &kept.containers[0], *other = &kept.containers[1];
    struct kept_container both[3] = {*one, *one, *other};
    both[1].session_id = STR("another"); /* with the handle of the first */
    both[2].identity = one->identity;    /* another handle, for the first one's session */
    both[1].used_unix_ms = one->used_unix_ms + 1;
    both[2].used_unix_ms = one->used_unix_ms + 2;
    struct kept changed = {.containers = both, .containers_count = 3};
    struct take_up_report report = take_up(&changed);
    arena_free(kept.arena);
    CU_ASSERT_EQUAL(report.taken, 1);
    CU_ASSERT_EQUAL(report.doubled, 2);
    CU_ASSERT_EQUAL(logged("reason=\"the state has its handle twice\""), 1);
    CU_ASSERT_EQUAL(logged("reason=\"the state has its session twice\""), 1);
    box_expire(1);
}

static void a_handle_or_a_session_is_taken_up_once(void)
{
    test_with(NULL, doubled);
}

/* ---- time and room ---- */

static void clock_set_back(void)
{
    char id[64];
    session_make("a", "s", id);
    registry_next();
    struct kept kept;
    kept_open(&kept);
    kept.containers[0].used_unix_ms += 3600000;
    CU_ASSERT_EQUAL(take_up(&kept).taken, 1);
    arena_free(kept.arena);
    struct container_info *infos;
    CU_ASSERT_EQUAL_FATAL(registry_list(world.registry, STR("a"), &infos), 1);
    CU_ASSERT_TRUE(infos[0].idle_left_ms > 0);
    CU_ASSERT_TRUE(infos[0].idle_left_ms <= world.options.idle_timeout_ms);
    free(infos);
}

static void a_clock_that_was_set_back_prolongs_nothing(void)
{
    test_with(NULL, clock_set_back);
}

static void idle_over(void)
{
    char id[64];
    session_make("a", "s", id);
    registry_next();
    struct kept kept;
    kept_open(&kept);
    kept.containers[0].used_unix_ms -= world.options.idle_timeout_ms;
    CU_ASSERT_EQUAL(take_up(&kept).taken, 1);
    arena_free(kept.arena);
    wait_for(logged("event=container_deleted") == 1);
    CU_ASSERT_EQUAL(logged("event=container_expired"), 1);
    CU_ASSERT_TRUE(loss_is_told("a", "s"));
}

static void one_whose_idle_time_is_over_is_deleted(void)
{
    test_with(NULL, idle_over);
}

static void lower_caps(void)
{
    static const char *const names[] = {"1", "2", "3", "4"};
    char id[64];
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        session_make("a\x1f"
                     "ann",
                     names[i], id);
    }
    session_make("b", "s", id);
    world.options.max_containers = 2; /* of the key, whoever its users are */
    struct take_up_report report = restart();
    CU_ASSERT_EQUAL(report.taken, 5);
    CU_ASSERT_EQUAL(report.evicted, 2);
    wait_for(logged("event=container_deleted") == 2);
    CU_ASSERT_EQUAL(logged("event=container_evicted"), 2);
    struct container_info *infos;
    CU_ASSERT_EQUAL(registry_list(world.registry,
                                  STR("a\x1f"
                                      "ann"),
                                  &infos),
                    2);
    CU_ASSERT_STRING_EQUAL(infos[0].session_id, "3");
    CU_ASSERT_STRING_EQUAL(infos[1].session_id, "4");
    free(infos);
    CU_ASSERT_EQUAL(registry_list(world.registry, STR("b"), &infos), 1);
    free(infos);
}

static void the_least_recently_used_over_a_lower_cap_are_deleted(void)
{
    test_with(NULL, lower_caps);
}

static void lower_total(void)
{
    char id[64];
    session_make("a", "1", id);
    session_make("b", "2", id);
    session_make("c", "3", id);
    world.options.max_containers_total = 1;
    CU_ASSERT_EQUAL(restart().evicted, 2);
    wait_for(logged("event=container_deleted") == 2);
    CU_ASSERT_EQUAL(stats().ready, 1);
    CU_ASSERT_FALSE(loss_is_told("c", "3"));
    CU_ASSERT_EQUAL(seen(&world.creates), 3);
}

static void a_lower_total_holds_too(void)
{
    test_with(NULL, lower_total);
}

/* ---- while it serves ---- */

static void looked_at(void)
{
    struct kept kept = {.arena = arena_new(0)};
    char id[64];
    uint64_t before = registry_changes(world.registry);
    session_make("a", "s", id);
    struct client *busy = client_with(0, "a", "t"), *alone = client_with(0, "a", "");
    CU_ASSERT_TRUE(registry_changes(world.registry) > before);
    registry_look(world.registry, &kept);
    CU_ASSERT_EQUAL(kept.containers_count, 2); /* nobody could come back to the third */
    CU_ASSERT_EQUAL(seen(&world.live), 3);
    arena_free(kept.arena);
    before = registry_changes(world.registry);
    client_free(busy);
    client_free(alone);
    CU_ASSERT_TRUE(registry_changes(world.registry) > before);
    registry_next();
    struct kept nothing = {.arena = arena_new(0)};
    registry_look(world.registry, &nothing);
    CU_ASSERT_EQUAL(nothing.containers_count, 0);
    arena_free(nothing.arena);
    struct kept left;
    kept_open(&left);
    CU_ASSERT_EQUAL(take_up(&left).taken, 2);
    arena_free(left.arena);
}

static void what_could_be_kept_can_be_looked_at_at_any_time(void)
{
    test_with(NULL, looked_at);
}

static const struct test tests[] = {
    TEST(a_kept_session_goes_on_in_its_container),
    TEST(a_parked_container_waits_for_its_own_identity),
    TEST(a_loss_that_nobody_was_told_of_goes_on_with_its_session),
    TEST(what_ends_with_the_process_is_deleted_and_its_session_told),
    TEST(what_could_not_be_written_is_deleted),
    TEST(one_that_its_provider_must_have_ended_is_not_taken_up),
    TEST(a_handle_or_a_session_is_taken_up_once),
    TEST(a_clock_that_was_set_back_prolongs_nothing),
    TEST(one_whose_idle_time_is_over_is_deleted),
    TEST(the_least_recently_used_over_a_lower_cap_are_deleted),
    TEST(a_lower_total_holds_too),
    TEST(what_could_be_kept_can_be_looked_at_at_any_time),
};

int main(int argc, char **argv)
{
    return run_tests("take_up", tests, COUNT_OF(tests), argc, argv);
}
