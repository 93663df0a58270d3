/* The mock sandbox: sessions, rules, every fault, and that a run always ends. Sleeping returns at once in the host, so a
 * hang of an hour takes no time; what happens "meanwhile" is done in the host's sleep hook. */
#include "base/check.h"
#include "cunit_main.h"
#include "fake_host.h"

#include <unistd.h>

static const struct sg_plugin *plugin;

struct fixture {
    void *config, *self;
    struct sg_call *call; /* of the last operation */
    char handle[1024];
    char journal[64];
};

static void begin_call(struct fixture *f)
{
    if (f->call != NULL) {
        call_free(f->call);
    }
    f->call = call_new();
}

static void fixture_init(struct fixture *f)
{
    *f = (struct fixture){.config = config_new(plugin), .journal = "/tmp/mock_journal_XXXXXX"};
    close(mkstemp(f->journal));
    config_set(plugin, f->config, "journal", f->journal);
}

static void fixture_open(struct fixture *f)
{
    begin_call(f);
    CU_ASSERT_EQUAL_FATAL(plugin->open(f->config, f->call, &f->self, call_error(f->call)), 0);
}

static void fixture_free(struct fixture *f)
{
    plugin->close(f->self, f->call);
    call_free(f->call);
    config_free(plugin, f->config);
    unlink(f->journal);
}

static int create(struct fixture *f, const char *label, int64_t life_ms)
{
    struct sg_sandbox_spec spec = {.label = label, .life_ms = life_ms};
    begin_call(f);
    int code = plugin->sandbox->create(f->self, f->call, &spec, call_error(f->call));
    snprintf(f->handle, sizeof f->handle, "%s", call_text(f->call, SG_OUT_HANDLE));
    return code;
}

static int run_prepared(struct fixture *f, const char *code, int64_t timeout_ms)
{
    struct sg_run run = {"python", code, strlen(code), timeout_ms};
    return plugin->sandbox->run(f->self, f->call, f->handle, &run, call_error(f->call));
}

static int run(struct fixture *f, const char *code)
{
    begin_call(f);
    return run_prepared(f, code, 0);
}

static int destroy(struct fixture *f)
{
    begin_call(f);
    return plugin->sandbox->destroy(f->self, f->call, f->handle, call_error(f->call));
}

static const char *read_journal(struct fixture *f)
{
    static char text[1 << 20];
    FILE *file = fopen(f->journal, "r");
    size_t len = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[len] = '\0';
    return text;
}

static void expect_journal(struct fixture *f, const char *expected)
{
    CU_ASSERT_STRING_EQUAL(read_journal(f), expected);
}

static void expect_text(struct fixture *f, enum sg_out kind, const char *expected)
{
    CU_ASSERT_STRING_EQUAL(call_text(f->call, kind), expected);
}

/* An instance with one rule, a container "a", and the code "x" run in it; returns run()'s code. */
static int run_with_rule(struct fixture *f, const char *name, const char *value, const char *fault)
{
    fixture_init(f);
    config_add(plugin, f->config, "rules", "when", "x", name, value, "fault", fault, NULL);
    fixture_open(f);
    CU_ASSERT_EQUAL(create(f, "a", 0), 0);
    return run(f, "x");
}

static void a_session_keeps_its_variables_and_another_does_not_see_them(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    CU_ASSERT_EQUAL(create(&f, "a", 0), 0);
    char first[1024];
    memcpy(first, f.handle, sizeof first);
    CU_ASSERT_EQUAL(run(&f, "x = 3 * 7919; print(x)"), 0);
    expect_text(&f, SG_OUT_LOG_OUT, "23757\n");
    CU_ASSERT_EQUAL(create(&f, "b", 0), 0);
    CU_ASSERT_STRING_NOT_EQUAL(first, f.handle);
    CU_ASSERT_EQUAL(run(&f, "print(x)"), 0);
    expect_text(&f, SG_OUT_EXCEPTION,
                "{\"name\": \"NameError\", \"value\": \"name 'x' is not defined\", \"traceback\": "
                "\"Traceback (most recent call last):\\n  File \\\"<cell>\\\", line 1, in "
                "<module>\\nNameError: name 'x' is not defined\"}");
    memcpy(f.handle, first, sizeof first);
    CU_ASSERT_EQUAL(run(&f, "x + 1"), 0);
    expect_text(&f, SG_OUT_RESULT, "{\"text/plain\": \"23758\"}");
    CU_ASSERT_EQUAL(destroy(&f), 0);
    CU_ASSERT_EQUAL(destroy(&f), 0); /* gone already is a success */
    CU_ASSERT_EQUAL(run(&f, "x"), SG_E_GONE_BEFORE);
    expect_journal(&f, "create a live=1\nrun a\ncreate b live=2\nrun b\nrun a\ndestroy a live=1\n"
                       "run a\n");
    fixture_free(&f);
}

static void another_language_is_refused(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    CU_ASSERT_EQUAL(create(&f, "a", 0), 0);
    begin_call(&f);
    struct sg_run bash = {"bash", "ls", 2, 0};
    CU_ASSERT_EQUAL(plugin->sandbox->run(f.self, f.call, f.handle, &bash, call_error(f.call)),
                    SG_E_INVALID);
    CU_ASSERT_STRING_EQUAL(f.call->error.message, "mock sandbox: it runs python, not 'bash'");
    fixture_free(&f);
}

static void a_rule_says_what_a_run_shows_in_order(void)
{
    struct fixture f;
    fixture_init(&f);
    config_add(plugin, f.config, "rules", "when", "/^plot\\(.*\\)$/", "stdout", "out\n", "stderr",
               "warn\n", "files", "a.csv=1,2\nsub/b.txt", "image", "true", "result", "7",
               "error_name", "ValueError", "error_value", "bad", NULL);
    fixture_open(&f);
    CU_ASSERT_EQUAL(create(&f, "a", 0), 0);
    CU_ASSERT_EQUAL(run(&f, "plot(1)"), 0);
    static const enum sg_out order[] = {SG_OUT_LOG_OUT,  SG_OUT_LOG_ERR, SG_OUT_FILE,
                                        SG_OUT_FILE,     SG_OUT_RESULT,  SG_OUT_RESULT,
                                        SG_OUT_EXCEPTION};
    CU_ASSERT_EQUAL_FATAL(f.call->outputs_count, COUNT_OF(order));
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        CU_ASSERT_EQUAL(f.call->outputs[i].kind, order[i]);
    }
    expect_text(&f, SG_OUT_FILE,
                "{\"path\": \"/home/user/a.csv\", \"size\": 3, \"type\": \"file\"}"
                "{\"path\": \"/home/user/sub/b.txt\", \"size\": 0, \"type\": \"file\"}");
    CU_ASSERT_PTR_NOT_NULL(strstr(f.call->outputs[4].data, "\"image/png\": \"iVBORw0KGgo"));
    CU_ASSERT_STRING_EQUAL(f.call->outputs[5].data, "{\"text/plain\": \"7\"}");
    CU_ASSERT_PTR_NOT_NULL(strstr(f.call->outputs[6].data, "ValueError: bad\"}"));
    CU_ASSERT_EQUAL(run(&f, "replot(1); plot"), 0); /* no match: Python that is not understood */
    CU_ASSERT_PTR_NOT_NULL(strstr(call_text(f.call, SG_OUT_EXCEPTION), "\"SyntaxError\""));
    fixture_free(&f);
}

static void the_first_rule_that_fits_holds_and_only_so_many_times(void)
{
    struct fixture f;
    fixture_init(&f);
    config_add(plugin, f.config, "rules", "when", "/X/i", "stdout", "one", "times", "2", NULL);
    config_add(plugin, f.config, "rules", "when", "x", "stdout", "two", NULL);
    fixture_open(&f);
    CU_ASSERT_EQUAL(create(&f, "a", 0), 0);
    static const char *const expected[] = {"one", "one", "two", "two"};
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        CU_ASSERT_EQUAL(run(&f, "x"), 0);
        expect_text(&f, SG_OUT_LOG_OUT, expected[i]);
    }
    fixture_free(&f);
}

static void a_rule_that_is_no_expression_stops_the_start(void)
{
    struct fixture f;
    fixture_init(&f);
    config_add(plugin, f.config, "rules", "when", "/(/", NULL);
    begin_call(&f);
    CU_ASSERT_EQUAL(plugin->open(f.config, f.call, &f.self, call_error(f.call)), SG_E_CONFIG);
    CU_ASSERT_EQUAL(strncmp(f.call->error.message,
                            "'when' /(/ is not a POSIX extended regular expression: ", 55),
                    0);
    config_set(plugin, f.config, "journal", "/nonexistent/journal");
    CU_ASSERT_EQUAL(plugin->open(f.config, f.call, &f.self, call_error(f.call)), SG_E_CONFIG);
    CU_ASSERT_STRING_EQUAL(f.call->error.message, "cannot open the journal '/nonexistent/journal': "
                                                  "No such file or directory");
    call_free(f.call);
    config_free(plugin, f.config);
    unlink(f.journal);
}

/* ---- faults of a run ---- */

static void each_fault_of_a_run_has_its_code_and_output(void)
{
    static const struct {
        const char *fault, *output, *message, *journal;
        int code;
    } cases[] = {
        {"die", "12345678", "mock sandbox: the container died during the run",
         "create a live=1\nrun a\ndie a live=0\n", SG_E_GONE},
        {"gone_before", "", "mock sandbox: the container was gone before the run",
         "create a live=1\nrun a\ndie a live=0\n", SG_E_GONE_BEFORE},
        {"cut", "1234", "mock sandbox: the connection was cut", "create a live=1\nrun a\n",
         SG_E_UNAVAILABLE},
        {"limit", "", "mock sandbox: too many runs", "create a live=1\nrun a\n", SG_E_LIMIT},
        {"refuse", "", "mock sandbox: the run was refused", "create a live=1\nrun a\n",
         SG_E_UNAVAILABLE},
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
    CU_ASSERT_STRING_EQUAL(f.call->error.message, "mock sandbox: the container no longer exists");
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
    CU_ASSERT_STRING_EQUAL(f.call->error.message, "mock sandbox: the run was ended after 3000 ms");
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
            CU_ASSERT_STRING_EQUAL(other->error.message,
                                   "mock sandbox: two runs at once in one container");
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
    CU_ASSERT_STRING_EQUAL(f.call->error.message,
                           "mock sandbox: the container ended during the run");
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
    CU_ASSERT_STRING_EQUAL(f.call->error.message, "mock sandbox: create was refused");
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
    CU_ASSERT_STRING_EQUAL(f.call->error.message, "mock sandbox: destroy was refused");
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
    while (code == 0) { /* the plugin's clock is the system's: for a millisecond it is still there */
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

/* ---- files ---- */

static int put(struct fixture *f, const char *path, const char *data, size_t len)
{
    begin_call(f);
    return plugin->sandbox->put(f->self, f->call, f->handle, path, data, len, call_error(f->call));
}

static int get(struct fixture *f, const char *path)
{
    begin_call(f);
    return plugin->sandbox->get(f->self, f->call, f->handle, path, call_error(f->call));
}

static int list(struct fixture *f, const char *path)
{
    begin_call(f);
    return plugin->sandbox->list(f->self, f->call, f->handle, path, call_error(f->call));
}

static void files_are_kept_by_container_and_path(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    CU_ASSERT_EQUAL(create(&f, "a", 0), 0);
    CU_ASSERT_EQUAL(put(&f, "a.bin", "1\0002", 3), 0);
    CU_ASSERT_EQUAL(get(&f, "/home/user/./a.bin"), 0);
    CU_ASSERT_EQUAL(f.call->outputs[0].len, 3);
    CU_ASSERT_EQUAL(memcmp(f.call->outputs[0].data, "1\0002", 3), 0);
    CU_ASSERT_EQUAL(put(&f, "a.bin", "new", 3), 0);
    CU_ASSERT_EQUAL(put(&f, "sub/b", "", 0), 0);
    CU_ASSERT_EQUAL(put(&f, "sub/c", "", 0), 0);
    CU_ASSERT_EQUAL(list(&f, "/home/user"), 0);
    expect_text(&f, SG_OUT_FILE,
                "{\"path\": \"/home/user/sub\", \"size\": 0, \"type\": \"directory\"}"
                "{\"path\": \"/home/user/a.bin\", \"size\": 3, \"type\": \"file\"}");
    CU_ASSERT_EQUAL(list(&f, "sub"), 0);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_FILE), 2);
    CU_ASSERT_EQUAL(list(&f, "nowhere"), SG_E_NOT_FOUND);
    CU_ASSERT_EQUAL(get(&f, "nowhere"), SG_E_NOT_FOUND);
    CU_ASSERT_STRING_EQUAL(f.call->error.message, "no file '/home/user/nowhere' in the container");
    CU_ASSERT_EQUAL(get(&f, "../../etc/passwd"), SG_E_INVALID);
    CU_ASSERT_STRING_EQUAL(f.call->error.message,
                           "'../../etc/passwd' is not a path within the container");
    CU_ASSERT_EQUAL(put(&f, "", "", 0), SG_E_INVALID);
    CU_ASSERT_EQUAL(create(&f, "b", 0), 0);
    CU_ASSERT_EQUAL(get(&f, "a.bin"), SG_E_NOT_FOUND);
    CU_ASSERT_EQUAL(list(&f, "."), 0);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_FILE), 0);
    fixture_free(&f);
}

static void files_are_bounded_in_number_and_bytes(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    CU_ASSERT_EQUAL(create(&f, "a", 0), 0);
    char *large = calloc(1, ((size_t)16 << 20) + 1);
    CU_ASSERT_EQUAL(put(&f, "large", large, (size_t)16 << 20), 0);
    CU_ASSERT_EQUAL(put(&f, "more", "1", 1), SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(f.call->error.message,
                           "mock sandbox: the disk is full (at most 256 files and 16 MiB)");
    CU_ASSERT_EQUAL(put(&f, "large", large, ((size_t)16 << 20) + 1), SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(f.call->error.message, "mock sandbox: a file has at most 16 MiB");
    CU_ASSERT_EQUAL(put(&f, "large", "", 0), 0);
    for (int i = 0; i < 255; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        CU_ASSERT_EQUAL(put(&f, name, "1", 1), 0);
    }
    CU_ASSERT_EQUAL(put(&f, "one_more", "1", 1), SG_E_LIMIT);
    CU_ASSERT_EQUAL(put(&f, "f3", "2", 1), 0);
    free(large);
    fixture_free(&f);
}

static const struct test tests[] = {
    TEST(a_session_keeps_its_variables_and_another_does_not_see_them),
    TEST(another_language_is_refused),
    TEST(a_rule_says_what_a_run_shows_in_order),
    TEST(the_first_rule_that_fits_holds_and_only_so_many_times),
    TEST(a_rule_that_is_no_expression_stops_the_start),
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
    TEST(files_are_kept_by_container_and_path),
    TEST(files_are_bounded_in_number_and_bytes),
};

int main(int argc, char **argv)
{
    plugin = host_load("mock")->plugins[0];
    return run_tests("mock_sandbox", tests, COUNT_OF(tests), argc, argv);
}
