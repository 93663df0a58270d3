/* The mock sandbox's few words of a shell: output, files of the container, exit statuses, rules. */
#include "sandbox_fixture.h"

static int bash_for(struct fixture *f, const char *command, size_t len, int64_t timeout_ms)
{
    struct sg_run run = {"bash", command, len, timeout_ms};
    begin_call(f);
    return plugin->sandbox->run(f->self, f->call, f->handle, &run, call_error(f->call));
}

static void open_with_container(struct fixture *f)
{
    fixture_open(f);
    CU_ASSERT_EQUAL(create(f, "a", 0), 0);
}

static void expect_run(struct fixture *f, const char *command, const char *out, const char *err,
                       int status)
{
    char expected[64];
    CU_ASSERT_EQUAL(bash_for(f, command, strlen(command), 0), 0);
    expect_text(f, SG_OUT_LOG_OUT, out);
    expect_text(f, SG_OUT_LOG_ERR, err);
    snprintf(expected, sizeof expected, "{\"state\": \"exited\", \"code\": %d}", status);
    expect_text(f, SG_OUT_STATUS, expected);
    CU_ASSERT_EQUAL(f->call->outputs[f->call->outputs_count - 1].kind, SG_OUT_STATUS);
    CU_ASSERT_EQUAL(call_count(f->call, SG_OUT_EXCEPTION), 0);
}

static void put(struct fixture *f, const char *path, const char *data, size_t len)
{
    begin_call(f);
    CU_ASSERT_EQUAL(
        plugin->sandbox->put(f->self, f->call, f->handle, path, data, len, call_error(f->call)), 0);
}

static void words_are_said_with_their_quotes_taken_off(void)
{
    struct fixture f;
    fixture_init(&f);
    open_with_container(&f);
    expect_run(&f, "echo one   two", "one two\n", "", 0);
    expect_run(&f, "echo \"a  \\\"b\\\" \\\\ \\c\" '$x `y`'\"\"z ''", "a  \"b\" \\ \\c $x `y`z \n",
               "", 0);
    expect_run(&f, "'echo' \xC3\xA4/b-1.2", "\xC3\xA4/b-1.2\n", "", 0);
    fixture_free(&f);
}

static void commands_are_joined_as_a_shell_does(void)
{
    struct fixture f;
    fixture_init(&f);
    open_with_container(&f);
    expect_run(&f, "echo a; echo b && echo c\n\n  echo d", "a\nb\nc\nd\n", "", 0);
    expect_run(&f, "false && echo a; echo b", "b\n", "", 0);
    expect_run(&f, "false && true", "", "", 1);
    expect_run(&f, "true &&\n echo a", "a\n", "", 0);
    expect_run(&f, "false", "", "", 1);
    expect_run(&f, "echo a; exit 3; echo b", "a\n", "", 3);
    expect_run(&f, "false; exit", "", "", 1);
    expect_run(&f, "exit 257", "", "", 1);
    expect_run(&f, "", "", "", 0);
    expect_run(&f, "echo a;", "a\n", "", 0);
    fixture_free(&f);
}

static void files_of_the_container_are_there(void)
{
    struct fixture f;
    fixture_init(&f);
    open_with_container(&f);
    put(&f, "b.txt", "bee\n", 4);
    put(&f, "a.txt", "\xFF", 1);
    put(&f, ".hidden", "", 0);
    put(&f, "sub/c", "", 0);
    expect_run(&f, "ls", "a.txt\nb.txt\nsub\n", "", 0);
    expect_run(&f, "ls /home/user/sub", "c\n", "", 0);
    expect_run(&f, "cat b.txt a.txt", "bee\n\xEF\xBF\xBD", "", 0);
    expect_run(&f, "cat nowhere && echo never", "", "cat: nowhere: No such file or directory\n", 1);
    expect_run(&f, "ls nowhere", "", "ls: cannot access 'nowhere': No such file or directory\n", 2);
    expect_run(&f, "cat ../../etc/passwd", "", "cat: ../../etc/passwd: No such file or directory\n",
               1);
    fixture_free(&f);
}

static void anything_else_runs_nothing_and_says_what_is_understood(void)
{
    static const char *const others[] = {
        "echo a; rm -rf /", "echo $HOME", "ls | cat",    "echo a > b", "echo `ls`",   "a=1",
        "echo 'a",          "&& echo a",  "echo a & ls", "ls -l",      "cat",         "true 1",
        "; echo a",         "echo a &&",  "exit x",      "echo (a)",   "echo \"$a\"", "echo *"};
    struct fixture f;
    fixture_init(&f);
    open_with_container(&f);
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        expect_run(&f, others[i], "",
                   "the mock sandbox's shell understands: echo WORDS, cat FILE, ls [FOLDER], exit "
                   "N, true, false, joined by && ; and line breaks, with quotes around words\n",
                   127);
    }
    fixture_free(&f);
}

static void too_much_is_not_understood_and_harms_nothing(void)
{
    struct fixture f;
    fixture_init(&f);
    open_with_container(&f);
    size_t len = ((size_t)1 << 20) + 1;
    char *many = malloc(len);
    memset(many, 'a', len);
    CU_ASSERT_EQUAL(bash_for(&f, many, len, 0), 0);
    expect_text(&f, SG_OUT_STATUS, "{\"state\": \"exited\", \"code\": 127}");
    for (size_t i = 0; i + 1 < len; i += 2) {
        memcpy(many + i, "a ", 2);
    }
    CU_ASSERT_EQUAL(bash_for(&f, many, len - 1, 0), 0);
    expect_text(&f, SG_OUT_STATUS, "{\"state\": \"exited\", \"code\": 127}");
    CU_ASSERT_EQUAL(bash_for(&f, "echo a\0b", 8, 0), 0);
    expect_text(&f, SG_OUT_STATUS, "{\"state\": \"exited\", \"code\": 127}");
    free(many);
    fixture_free(&f);
}

static void rules_fit_commands_as_they_fit_code(void)
{
    struct fixture f;
    fixture_init(&f);
    config_add(plugin, f.config, "rules", "when", "pip install", "stdout", "ok\n", "stderr", "w\n",
               "files", "made.txt=x", NULL);
    config_add(plugin, f.config, "rules", "when", "make", "stderr", "no rule\n", "exit", "2", NULL);
    config_add(plugin, f.config, "rules", "when", "fail", "error_name", "sh", "error_value", "bad",
               NULL);
    config_add(plugin, f.config, "rules", "when", "hang", "fault", "hang", NULL);
    open_with_container(&f);
    expect_run(&f, "pip install x | tail", "ok\n", "w\n", 0);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_FILE), 1);
    expect_run(&f, "cat made.txt", "x", "", 0);
    expect_run(&f, "make", "", "no rule\n", 2);
    expect_run(&f, "fail", "", "sh: bad\n", 1);
    CU_ASSERT_EQUAL(bash_for(&f, "hang", 4, 200), SG_E_TIMEOUT);
    expect_text(&f, SG_OUT_STATUS, "");
    CU_ASSERT_EQUAL(run(&f, "fail"), 0); /* as Python it is an exception, and has no exit status */
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_EXCEPTION), 1);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_STATUS), 0);
    fixture_free(&f);
}

static void interrupt_now(struct sg_call *call, void *context)
{
    struct fixture *f = context;
    (void)call;
    struct sg_call *other = call_new();
    CU_ASSERT_EQUAL(plugin->sandbox->interrupt(f->self, other, f->handle, call_error(other)), 0);
    call_free(other);
}

static void an_interrupted_command_says_so_as_a_shell_does(void)
{
    struct fixture f;
    fixture_init(&f);
    config_add(plugin, f.config, "rules", "when", "hang", "fault", "hang", NULL);
    open_with_container(&f);
    begin_call(&f);
    f.call->on_sleep = interrupt_now;
    f.call->on_sleep_context = &f;
    struct sg_run run = {"bash", "hang", 4, 0};
    CU_ASSERT_EQUAL(plugin->sandbox->run(f.self, f.call, f.handle, &run, call_error(f.call)), 0);
    expect_text(&f, SG_OUT_STATUS, "{\"state\": \"exited\", \"code\": 130}");
    fixture_free(&f);
}

static const struct test tests[] = {
    TEST(words_are_said_with_their_quotes_taken_off),
    TEST(commands_are_joined_as_a_shell_does),
    TEST(files_of_the_container_are_there),
    TEST(anything_else_runs_nothing_and_says_what_is_understood),
    TEST(too_much_is_not_understood_and_harms_nothing),
    TEST(rules_fit_commands_as_they_fit_code),
    TEST(an_interrupted_command_says_so_as_a_shell_does),
};

int main(int argc, char **argv)
{
    plugin = host_load("mock")->plugins[0];
    return run_tests("mock_shell", tests, COUNT_OF(tests), argc, argv);
}
