/* The mock sandbox: sessions, rules, files. */
#include "sandbox_fixture.h"

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
    struct sg_run perl = {"perl", "1", 1, 0};
    CU_ASSERT_EQUAL(plugin->sandbox->run(f.self, f.call, f.handle, &perl, call_error(f.call)),
                    SG_E_INVALID);
    CU_ASSERT_STRING_EQUAL(f.call->error.message,
                           "the mock sandbox runs python and bash, not 'perl'");
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

static void a_journal_that_cannot_be_written_is_logged_and_changes_nothing(void)
{
    struct fixture f;
    fixture_init(&f);
    config_set(plugin, f.config, "journal", "/dev/full");
    fixture_open(&f);
    CU_ASSERT_EQUAL(create(&f, "a", 0), 0);
    CU_ASSERT_STRING_EQUAL(f.call->logged,
                           "journal: a line could not be written: No space left on device");
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
                           "the disk is full (at most 256 files and 16 MiB)");
    CU_ASSERT_EQUAL(put(&f, "large", large, ((size_t)16 << 20) + 1), SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(f.call->error.message, "a file has at most 16 MiB");
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
    TEST(a_journal_that_cannot_be_written_is_logged_and_changes_nothing),
    TEST(a_rule_that_is_no_expression_stops_the_start),
    TEST(files_are_kept_by_container_and_path),
    TEST(files_are_bounded_in_number_and_bytes),
};

int main(int argc, char **argv)
{
    plugin = host_load("mock")->plugins[0];
    return run_tests("mock_sandbox", tests, COUNT_OF(tests), argc, argv);
}
