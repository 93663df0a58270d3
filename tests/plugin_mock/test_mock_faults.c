/* The mock sandbox: every fault and delay, the journal, and that a run always ends. Sleeping returns at once in the host,
 * so a hang of an hour takes no time; what happens "meanwhile" is done in the host's sleep hook. */
#include "sandbox_fixture.h"

/* An instance with one rule, a container "a", and the code "x" run in it; returns run()'s code. */
static int run_with_rule(struct fixture *f, const char *name, const char *value, const char *fault)
{
    fixture_init(f);
    config_add(plugin, f->config, "rules", "when", "x", name, value, "fault", fault, NULL);
    fixture_open(f);
    CU_ASSERT_EQUAL(create(f, "a", 0), 0);
    return run(f, "x");
}

/* ---- faults of a run ---- */

static void each_fault_of_a_run_has_its_code_and_output(void)
{
    static const struct {
        const char *fault, *output, *message, *journal;
        int code;
    } cases[] = {
        {"die", "12345678", "the container died during the run",
         "create a live=1\nrun a\ndie a live=0\n", SG_E_GONE},
        {"gone_before", "", "the container was gone before the run",
         "create a live=1\nrun a\ndie a live=0\n", SG_E_GONE_BEFORE},
        {"cut", "1234", "the connection was cut", "create a live=1\nrun a\n", SG_E_UNAVAILABLE},
        {"limit", "", "too many runs", "create a live=1\nrun a\n", SG_E_LIMIT},
        {"refuse", "", "the run was refused", "create a live=1\nrun a\n", SG_E_UNAVAILABLE},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fixture f;
        CU_ASSERT_EQUAL(run_with_rule(&f, "stdout", "12345678", cases[i].fault), cases[i].code);
        expect_text(&f, SG_OUT_LOG_OUT, cases[i].output);
        CU_ASSERT_STRING_EQUAL(f.call->error.message, cases[i].message);
        expect_journal(&f, cases[i].journal);
        fixture_free(&f);
    }
}

static void a_dead_container_is_gone_for_the_next_run(void)
{
    struct fixture f;
    CU_ASSERT_EQUAL(run_with_rule(&f, "stdout", "1", "die"), SG_E_GONE);
    CU_ASSERT_EQUAL(run(&f, "print(1)"), SG_E_GONE_BEFORE);
    CU_ASSERT_STRING_EQUAL(f.call->error.message, "the container no longer exists");
    fixture_free(&f);
}

static void garbage_is_sent_as_it_is_and_the_run_succeeds(void)
{
    struct fixture f;
    CU_ASSERT_EQUAL(run_with_rule(&f, "stdout", "1", "garbage"), 0);
    CU_ASSERT_EQUAL(f.call->outputs_count, 8);
    CU_ASSERT_EQUAL(memcmp(f.call->outputs[0].data, "ok \xFF\xFE\xC3", 6), 0);
    CU_ASSERT_EQUAL(f.call->outputs[1].len, 9);
    CU_ASSERT_EQUAL(f.call->outputs[4].len, 0);
    fixture_free(&f);
}

static void a_hanging_run_ends_at_its_time(void)
{
    struct fixture f;
    CU_ASSERT_EQUAL(run_with_rule(&f, "stdout", "first", "none"), 0);
    fixture_free(&f);
    fixture_init(&f);
    config_add(plugin, f.config, "rules", "stdout", "first", "fault", "hang", NULL);
    fixture_open(&f);
    CU_ASSERT_EQUAL(create(&f, "a", 0), 0);
    begin_call(&f);
    CU_ASSERT_EQUAL(run_prepared(&f, "x", 3000), SG_E_TIMEOUT);
    expect_text(&f, SG_OUT_LOG_OUT, "first");
    CU_ASSERT_STRING_EQUAL(f.call->error.message, "the run was ended after 3000 ms");
    CU_ASSERT_EQUAL(f.call->slept_ms, 3000);
    CU_ASSERT_EQUAL(destroy(&f), 0);
    expect_journal(&f, "create a live=1\nrun a\ndestroy a live=0\n"); /* it had lived on */
    fixture_free(&f);
}

static void a_cancelled_run_hands_the_code_back(void)
{
    struct fixture f;
    fixture_init(&f);
    config_add(plugin, f.config, "rules", "fault", "hang", NULL);
    fixture_open(&f);
    CU_ASSERT_EQUAL(create(&f, "a", 0), 0);
    begin_call(&f);
    f.call->sleeps_max = 3;
    CU_ASSERT_EQUAL(run_prepared(&f, "x", 0), SG_E_CANCELLED);
    fixture_free(&f);
}

static void do_meanwhile(struct sg_call *call, void *context)
{
    struct fixture *f = context;
    if (call->sleeps == 3) {
        struct sg_call *other = call_new();
        if (call->sleep_code == 1) {
            CU_ASSERT_EQUAL(
                plugin->sandbox->interrupt(f->self, other, f->handle, call_error(other)), 0);
        } else if (call->sleep_code == 2) {
            CU_ASSERT_EQUAL(plugin->sandbox->destroy(f->self, other, f->handle, call_error(other)),
                            0);
        } else {
            struct sg_run run = {NULL, "1", 1, 0};
            CU_ASSERT_EQUAL(
                plugin->sandbox->run(f->self, other, f->handle, &run, call_error(other)),
                SG_E_INTERNAL);
            CU_ASSERT_STRING_EQUAL(other->error.message, "two runs at once in one container");
            call->sleeps_max = 4;
        }
        call_free(other);
    }
}

/* A hanging run to which something happens: 1 interrupt, 2 destroy, 3 a second run. */
static int hang_meanwhile(struct fixture *f, int what)
{
    fixture_init(f);
    config_add(plugin, f->config, "rules", "when", "x", "fault", "hang", NULL);
    fixture_open(f);
    CU_ASSERT_EQUAL(create(f, "a", 0), 0);
    begin_call(f);
    f->call->on_sleep = do_meanwhile;
    f->call->on_sleep_context = f;
    f->call->sleep_code = what;
    return run_prepared(f, "x", 0);
}

static void an_interrupted_run_raises_and_the_container_is_usable(void)
{
    struct fixture f;
    CU_ASSERT_EQUAL(hang_meanwhile(&f, 1), 0);
    CU_ASSERT_EQUAL(
        strncmp(call_text(f.call, SG_OUT_EXCEPTION), "{\"name\": \"KeyboardInterrupt\"", 28), 0);
    CU_ASSERT_EQUAL(f.call->sleeps, 3);
    CU_ASSERT_EQUAL(run(&f, "print(2)"), 0);
    expect_text(&f, SG_OUT_LOG_OUT, "2\n");
    expect_journal(&f, "create a live=1\nrun a\ninterrupt a\nrun a\n");
    fixture_free(&f);
}

static void an_interrupt_without_a_run_has_no_effect(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    CU_ASSERT_EQUAL(create(&f, "a", 0), 0);
    begin_call(&f);
    CU_ASSERT_EQUAL(plugin->sandbox->interrupt(f.self, f.call, f.handle, call_error(f.call)), 0);
    CU_ASSERT_EQUAL(run(&f, "print(2)"), 0);
    expect_text(&f, SG_OUT_LOG_OUT, "2\n");
    fixture_free(&f);
}

static void a_container_deleted_during_a_run_ends_it(void)
{
    struct fixture f;
    CU_ASSERT_EQUAL(hang_meanwhile(&f, 2), SG_E_GONE);
    CU_ASSERT_STRING_EQUAL(f.call->error.message, "the container ended during the run");
    CU_ASSERT_EQUAL(f.call->sleeps, 3);
    expect_journal(&f, "create a live=1\nrun a\ndestroy a live=0\n");
    fixture_free(&f);
}

static void a_second_run_at_once_is_refused(void)
{
    struct fixture f;
    (void)hang_meanwhile(&f, 3); /* ended by the host; the assertions are in the hook */
    CU_ASSERT_EQUAL(f.call->sleeps, 5);
    fixture_free(&f);
}

static void a_flood_goes_on_until_it_is_stopped(void)
{
    struct fixture f;
    fixture_init(&f);
    config_add(plugin, f.config, "rules", "fault", "flood", "stdout", "noise ", NULL);
    fixture_open(&f);
    CU_ASSERT_EQUAL(create(&f, "a", 0), 0);
    begin_call(&f);
    f.call->emits_max = 500;
    f.call->emit_code = SG_E_LIMIT;
    CU_ASSERT_EQUAL(run_prepared(&f, "x", 0), SG_E_LIMIT);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_LOG_OUT), 500);
    CU_ASSERT_TRUE(f.call->outputs[499].len >= 8192);
    fixture_free(&f);
}

static void delays_add_up(void)
{
    struct fixture f;
    fixture_init(&f);
    config_set(plugin, f.config, "delay", "1s");
    config_set(plugin, f.config, "create_delay", "250ms");
    config_set(plugin, f.config, "destroy_delay", "70ms");
    config_add(plugin, f.config, "rules", "when", "slow", "delay", "2s", NULL);
    fixture_open(&f);
    CU_ASSERT_EQUAL(create(&f, "a", 0), 0);
    CU_ASSERT_EQUAL(f.call->slept_ms, 250);
    CU_ASSERT_EQUAL(run(&f, "slow"), 0);
    CU_ASSERT_EQUAL(f.call->slept_ms, 3000);
    CU_ASSERT_EQUAL(run(&f, "1"), 0);
    CU_ASSERT_EQUAL(f.call->slept_ms, 1000);
    CU_ASSERT_EQUAL(destroy(&f), 0);
    CU_ASSERT_EQUAL(f.call->slept_ms, 70);
    fixture_free(&f);
}

/* ---- faults of create, destroy, touch ---- */

static void each_fault_of_create_has_its_code_and_handle(void)
{
    static const struct {
        const char *fault, *journal;
        int code;
        size_t handles;
    } cases[] = {
        {"refuse", "create_failed a live=0\n", SG_E_UNAVAILABLE, 0},
        {"limit", "create_failed a live=0\n", SG_E_LIMIT, 0},
        {"hang", "", SG_E_CANCELLED, 0},
        {"garbage", "", 0, 1},
        {"fail_after_handle", "create a live=1\ncreate_failed a live=1\n", SG_E_UNAVAILABLE, 1},
        {"hang_after_handle", "create a live=1\n", SG_E_CANCELLED, 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fixture f;
        fixture_init(&f);
        config_set(plugin, f.config, "create_fault", cases[i].fault);
        fixture_open(&f);
        CU_ASSERT_EQUAL(create(&f, "a", 0), cases[i].code);
        CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_HANDLE), cases[i].handles);
        expect_journal(&f, cases[i].journal);
        fixture_free(&f);
    }
}

static void only_the_first_creates_go_wrong_where_a_count_is_given(void)
{
    struct fixture f;
    fixture_init(&f);
    config_set(plugin, f.config, "create_fault", "refuse");
    config_set(plugin, f.config, "create_fault_count", "2");
    fixture_open(&f);
    CU_ASSERT_EQUAL(create(&f, "a", 0), SG_E_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(f.call->error.message, "create was refused");
    CU_ASSERT_EQUAL(create(&f, "b", 0), SG_E_UNAVAILABLE);
    CU_ASSERT_EQUAL(create(&f, "c", 0), 0);
    fixture_free(&f);
}

static void a_container_whose_handle_nobody_took_is_ended(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    CU_ASSERT_EQUAL(create(&f, "a", 0), 0);
    struct sg_sandbox_spec spec = {.label = "b"};
    f.call->emits_max = 1; /* the handle of "a" */
    f.call->emit_code = SG_E_CANCELLED;
    CU_ASSERT_EQUAL(plugin->sandbox->create(f.self, f.call, &spec, call_error(f.call)),
                    SG_E_CANCELLED);
    expect_journal(&f, "create a live=1\ncreate b live=2\ndestroy b live=1\n");
    fixture_free(&f);
}

static void destroy_can_be_refused_at_first_and_can_hang(void)
{
    struct fixture f;
    fixture_init(&f);
    config_set(plugin, f.config, "destroy_fault", "refuse");
    config_set(plugin, f.config, "destroy_fault_count", "1");
    fixture_open(&f);
    CU_ASSERT_EQUAL(create(&f, "a", 0), 0);
    CU_ASSERT_EQUAL(destroy(&f), SG_E_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(f.call->error.message, "destroy was refused");
    CU_ASSERT_EQUAL(destroy(&f), 0);
    expect_journal(&f, "create a live=1\ndestroy_failed a live=1\ndestroy a live=0\n");
    fixture_free(&f);
    fixture_init(&f);
    config_set(plugin, f.config, "destroy_fault", "hang");
    fixture_open(&f);
    CU_ASSERT_EQUAL(create(&f, "a", 0), 0);
    CU_ASSERT_EQUAL(destroy(&f), SG_E_CANCELLED);
    fixture_free(&f);
}

static int touch(struct fixture *f, int64_t life_ms)
{
    begin_call(f);
    return plugin->sandbox->touch(f->self, f->call, f->handle, life_ms, call_error(f->call));
}

static void touch_can_fail_in_each_way(void)
{
    static const struct {
        const char *fault;
        int code;
    } cases[] = {
        {"none", 0}, {"refuse", SG_E_UNAVAILABLE}, {"gone", SG_E_GONE}, {"hang", SG_E_CANCELLED}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fixture f;
        fixture_init(&f);
        config_set(plugin, f.config, "touch_fault", cases[i].fault);
        fixture_open(&f);
        CU_ASSERT_EQUAL(create(&f, "a", 60000), 0);
        CU_ASSERT_EQUAL(touch(&f, 60000), cases[i].code);
        CU_ASSERT_EQUAL(run(&f, "1"), cases[i].code == SG_E_GONE ? SG_E_GONE_BEFORE : 0);
        fixture_free(&f);
    }
}

static void a_life_that_is_over_ends_the_container(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    CU_ASSERT_EQUAL(create(&f, "a", INT64_MAX), 0);
    CU_ASSERT_EQUAL(run(&f, "1"), 0);
    CU_ASSERT_EQUAL(touch(&f, 1), 0);
    int code = 0;
    while (code ==
           0) { /* the plugin's clock is the system's: for a millisecond it is still there */
        code = run(&f, "1");
    }
    CU_ASSERT_EQUAL(code, SG_E_GONE_BEFORE);
    CU_ASSERT_EQUAL(create(&f, "b", 0), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(read_journal(&f), "\nexpire a live=0\ncreate b live=1\n"));
    fixture_free(&f);
}

static void foreign_handles_find_nothing(void)
{
    static const char *const handles[] = {"",         "mock:",     "mock:1", "mock:1:b",
                                          "mock:2:a", "other:1:a", "1"};
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    CU_ASSERT_EQUAL(create(&f, "a", 0), 0);
    CU_ASSERT_STRING_EQUAL(f.handle, "mock:1:a");
    for (size_t i = 0; i < COUNT_OF(handles); i++) {
        snprintf(f.handle, sizeof f.handle, "%s", handles[i]);
        CU_ASSERT_EQUAL(run(&f, "1"), SG_E_GONE_BEFORE);
        CU_ASSERT_EQUAL(touch(&f, 1), SG_E_GONE);
        CU_ASSERT_EQUAL(destroy(&f), 0);
    }
    snprintf(f.handle, sizeof f.handle, "mock:1:a");
    CU_ASSERT_EQUAL(run(&f, "1"), 0);
    fixture_free(&f);
}

static void closing_says_how_many_containers_were_left(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    CU_ASSERT_EQUAL(create(&f, "a b\n", 0), 0);
    plugin->close(f.self, f.call);
    expect_journal(&f, "create a_b_ live=1\nclose live=1\n");
    call_free(f.call);
    config_free(plugin, f.config);
    unlink(f.journal);
}

static const struct test tests[] = {
    TEST(each_fault_of_a_run_has_its_code_and_output),
    TEST(a_dead_container_is_gone_for_the_next_run),
    TEST(garbage_is_sent_as_it_is_and_the_run_succeeds),
    TEST(a_hanging_run_ends_at_its_time),
    TEST(a_cancelled_run_hands_the_code_back),
    TEST(an_interrupted_run_raises_and_the_container_is_usable),
    TEST(an_interrupt_without_a_run_has_no_effect),
    TEST(a_container_deleted_during_a_run_ends_it),
    TEST(a_second_run_at_once_is_refused),
    TEST(a_flood_goes_on_until_it_is_stopped),
    TEST(delays_add_up),
    TEST(each_fault_of_create_has_its_code_and_handle),
    TEST(only_the_first_creates_go_wrong_where_a_count_is_given),
    TEST(a_container_whose_handle_nobody_took_is_ended),
    TEST(destroy_can_be_refused_at_first_and_can_hang),
    TEST(touch_can_fail_in_each_way),
    TEST(a_life_that_is_over_ends_the_container),
    TEST(foreign_handles_find_nothing),
    TEST(closing_says_how_many_containers_were_left),
};

int main(int argc, char **argv)
{
    plugin = host_load("mock")->plugins[0];
    return run_tests("mock_faults", tests, COUNT_OF(tests), argc, argv);
}
