/* The code_interpreter's shell commands: what is run, what the model is told of its end, and what the core is told. The
 * host plays the sandbox. */
#include "interceptor_fixture.h"

static int run(struct fixture *f, const struct event *events, size_t count)
{
    static const char arguments[] = "{\"command\":\"ls\"}";
    f->call->events = events;
    f->call->events_count = count;
    return call_tool(f, "bash_code_execution", arguments, sizeof arguments - 1);
}

static void expect_told(const struct event *events, size_t count, const char *model,
                        const char *status)
{
    struct fixture f = fixture_new(NULL);
    CU_ASSERT_EQUAL(run(&f, events, count), 0);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_MODEL), model);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_STATUS), status);
    fixture_free(&f);
}

#define EXPECT_TOLD(model, status, ...)                         \
    do {                                                        \
        static const struct event events_[] = {__VA_ARGS__};    \
        expect_told(events_, COUNT_OF(events_), model, status); \
    } while (0)

static void the_tool_is_declared_as_models_know_it(void)
{
    const struct sg_tool *tool = &plugin->interceptor->tools[1];
    CU_ASSERT_STRING_EQUAL(tool->hosted, "bash_code_execution");
    CU_ASSERT_STRING_EQUAL(tool->name, "bash_code_execution");
    CU_ASSERT_PTR_NOT_NULL(strstr(tool->parameters_json, "\"required\":[\"command\"]"));
    CU_ASSERT_PTR_NOT_NULL(strstr(tool->description, "the same container"));
    CU_ASSERT_PTR_NOT_NULL(strstr(tool->description, "Expect no network access"));
}

static void the_command_is_run_as_bash(void)
{
    struct fixture f = fixture_new(NULL);
    static const char arguments[] = "{\"command\":\"echo \\\"a\\\"\\nls | wc -l\"}";
    config_set(plugin, f.config, "timeout", "5s");
    CU_ASSERT_EQUAL(call_tool(&f, "bash_code_execution", arguments, sizeof arguments - 1), 0);
    CU_ASSERT_STRING_EQUAL(f.call->run_language, "bash");
    CU_ASSERT_STRING_EQUAL(f.call->run_code, "echo \"a\"\nls | wc -l");
    CU_ASSERT_EQUAL(f.call->run_timeout_ms, 5000);
    fixture_free(&f);
}

static void the_exit_status_is_told_where_it_is_not_zero(void)
{
    EXPECT_TOLD("one\ntwo\n", "{\"state\":\"completed\",\"code\":0}", {SG_OUT_LOG_OUT, "one\n", 0},
                {SG_OUT_LOG_ERR, "two\n", 0},
                {SG_OUT_STATUS, "{\"state\":\"exited\",\"code\":0}", 0});
    EXPECT_TOLD("no such file\n[exit status 2]", "{\"state\":\"completed\",\"code\":2}",
                {SG_OUT_LOG_ERR, "no such file", 0},
                {SG_OUT_STATUS, "{\"state\":\"exited\",\"code\":2}", 0});
    EXPECT_TOLD("[exit status 255]", "{\"state\":\"completed\",\"code\":255}",
                {SG_OUT_STATUS, "{ \"code\": 255, \"state\": \"exited\" }", 0});
    EXPECT_TOLD("[no output]", "{\"state\":\"completed\",\"code\":0}",
                {SG_OUT_STATUS, "{\"state\":\"exited\",\"code\":0}", 0});
}

static void an_exit_status_that_is_none_is_not_believed(void)
{
    EXPECT_TOLD("[no output]", "{\"state\":\"completed\",\"code\":0}",
                {SG_OUT_STATUS, "{\"state\":\"exited\",\"code\":256}", 0},
                {SG_OUT_STATUS, "{\"state\":\"exited\",\"code\":-1}", 0},
                {SG_OUT_STATUS, "{\"state\":\"exited\",\"code\":1.5}", 0},
                {SG_OUT_STATUS, "{\"state\":\"exited\",\"code\":\"3\"}", 0},
                {SG_OUT_STATUS, "{\"state\":\"exited\"", 0}, {SG_OUT_STATUS, "", 0},
                {SG_OUT_STATUS, "{\"state\":\"other\",\"code\":4}", 0});
}

static void what_was_lost_is_told_first_and_what_was_killed_where_it_came(void)
{
    EXPECT_TOLD("[gone]\na\n[killed]\n[exit status 137]", "{\"state\":\"completed\",\"code\":137}",
                {SG_OUT_LOG_OUT, "a", 0},
                {SG_OUT_STATUS, "{\"state\":\"memory\",\"note\":\"killed\"}", 0},
                {SG_OUT_STATUS, "{\"state\":\"lost\",\"note\":\"gone\"}", 0},
                {SG_OUT_STATUS, "{\"state\":\"exited\",\"code\":137}", 0});
}

static void the_client_sees_the_streams_and_then_the_status(void)
{
    static const struct event events[] = {{SG_OUT_LOG_OUT, "o", 0},
                                          {SG_OUT_LOG_ERR, "e", 0},
                                          {SG_OUT_STATUS, "{\"state\":\"exited\",\"code\":3}", 0}};
    static const enum sg_out order[] = {SG_OUT_LOG_OUT, SG_OUT_LOG_ERR, SG_OUT_STATUS,
                                        SG_OUT_MODEL};
    struct fixture f = fixture_new(NULL);
    CU_ASSERT_EQUAL(run(&f, events, COUNT_OF(events)), 0);
    CU_ASSERT_EQUAL_FATAL(f.call->outputs_count, COUNT_OF(order));
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        CU_ASSERT_EQUAL(f.call->outputs[i].kind, order[i]);
    }
    fixture_free(&f);
}

static void a_command_that_runs_too_long_fails_with_its_reason(void)
{
    static const struct event event = {SG_OUT_LOG_OUT, "so far", 0};
    struct fixture f = fixture_new(NULL);
    f.call->run_result = SG_E_TIMEOUT;
    f.call->run_message = "the command ran longer than 60s and was killed";
    CU_ASSERT_EQUAL(run(&f, &event, 1), 0);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_MODEL),
                           "so far\n[timed out] the command ran longer than 60s and was killed");
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_STATUS),
                           "{\"state\":\"failed\",\"reason\":\"timeout\"}");
    fixture_free(&f);
}

static void wrong_arguments_run_nothing(void)
{
    static const char *const wrong[][2] = {
        {"{\"code\":\"ls\"}", "'command' is missing"},
        {"{\"command\":[\"ls\"]}", "'command' is not a string"},
        {"{\"command\":\"ls\",\"command\":\"pwd\"}", "'command' is given more than once"},
        {"ls", "the arguments are not a JSON object (at byte 0: not an object)"},
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        char expected[512];
        struct fixture f = fixture_new(NULL);
        CU_ASSERT_EQUAL(call_tool(&f, "bash_code_execution", wrong[i][0], strlen(wrong[i][0])), 0);
        snprintf(
            expected, sizeof expected,
            "[invalid call] %s; nothing was run. Expected a JSON object with the shell command "
            "as a string: {\"command\": \"ls -l\"}",
            wrong[i][1]);
        CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_MODEL), expected);
        CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_STATUS),
                               "{\"state\":\"invalid\",\"reason\":\"invalid\"}");
        CU_ASSERT_EQUAL(f.call->runs, 0);
        fixture_free(&f);
    }
}

static const struct test tests[] = {
    TEST(the_tool_is_declared_as_models_know_it),
    TEST(the_command_is_run_as_bash),
    TEST(the_exit_status_is_told_where_it_is_not_zero),
    TEST(an_exit_status_that_is_none_is_not_believed),
    TEST(what_was_lost_is_told_first_and_what_was_killed_where_it_came),
    TEST(the_client_sees_the_streams_and_then_the_status),
    TEST(a_command_that_runs_too_long_fails_with_its_reason),
    TEST(wrong_arguments_run_nothing),
};

int main(int argc, char **argv)
{
    plugin = host_load("code_interpreter")->plugins[0];
    return run_tests("bash_tool", tests, COUNT_OF(tests), argc, argv);
}
