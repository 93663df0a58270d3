/* code_interpreter: what the model has written as arguments, and what of it is run. */
#include "interceptor_fixture.h"

static int call_with(struct fixture *f, const char *arguments, size_t len)
{
    return call_tool(f, "code_interpreter", arguments, len);
}

static void expect_invalid(const char *arguments, size_t len, const char *expected)
{
    struct fixture f = fixture_new(NULL);
    char whole[512];
    snprintf(whole, sizeof whole,
             "[invalid call] %s; nothing was run. Expected a JSON object with the Python source "
             "as a string: {\"code\": \"print(1)\"}",
             expected);
    CU_ASSERT_EQUAL(call_with(&f, arguments, len), 0);
    CU_ASSERT_EQUAL(f.call->runs, 0);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_MODEL), whole);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_STATUS),
                           "{\"state\":\"invalid\",\"reason\":\"invalid\"}");
    CU_ASSERT_EQUAL(f.call->outputs[0].kind, SG_OUT_STATUS);
    fixture_free(&f);
}

static void wrong_arguments_run_nothing_and_say_what_is_wrong(void)
{
    static const struct {
        const char *arguments, *expected;
    } cases[] = {
        {"", "the arguments are not a JSON object (at byte 0: the text is empty)"},
        {"print(1)", "the arguments are not a JSON object (at byte 0: not an object)"},
        {"[]", "the arguments are not a JSON object (at byte 0: not an object)"},
        {"\"print(1)\"", "the arguments are not a JSON object (at byte 0: not an object)"},
        {"{\"code\": \"a\nb\"}", "the arguments are not a JSON object (at byte 11: a line break "
                                 "within a string must be written \\n)"},
        {"{\"code\": \"a\"", "the arguments are not a JSON object (at byte 12: the text ends "
                             "within an object)"},
        {"{\"code\": \"a\"} x",
         "the arguments are not a JSON object (at byte 14: more text behind the object)"},
        {"{\"code\": \"\\x\"}", "the arguments are not a JSON object (at byte 12: an escape that "
                                "JSON does not have)"},
        {"{'code': 'a'}",
         "the arguments are not a JSON object (at byte 1: expected a name in double quotes)"},
        {"{\"code\": 01}", "the arguments are not a JSON object (at byte 11: not a value)"},
        {"```json\n{\"code\":\"print(1)\"}\n```",
         "the arguments are not a JSON object (at byte 0: not an object)"},
        {"{}", "'code' is missing"},
        {"{\"Code\": \"print(1)\"}", "'code' is missing"},
        {"{\"code\": null}", "'code' is not a string"},
        {"{\"code\": [\"print(1)\"]}", "'code' is not a string"},
        {"{\"code\": \"1\", \"c\\u006fde\": \"2\"}", "'code' is given more than once"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        expect_invalid(cases[i].arguments, strlen(cases[i].arguments), cases[i].expected);
    }
}

static void deeply_nested_arguments_are_refused_without_deep_recursion(void)
{
    static char deep[200000];
    size_t len = (size_t)snprintf(deep, sizeof deep, "{\"code\":");
    memset(deep + len, '[', sizeof deep - len);
    struct fixture f = fixture_new(NULL);
    CU_ASSERT_EQUAL(call_with(&f, deep, sizeof deep), 0);
    CU_ASSERT_EQUAL(f.call->runs, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(call_text(f.call, SG_OUT_MODEL), "nested too deeply"));
    fixture_free(&f);
}

static void expect_code(const char *arguments, const char *code, size_t len)
{
    struct fixture f = fixture_new(NULL);
    CU_ASSERT_EQUAL(call_with(&f, arguments, strlen(arguments)), 0);
    CU_ASSERT_EQUAL_FATAL(f.call->runs, 1);
    CU_ASSERT_EQUAL(f.call->run_code_len, len);
    CU_ASSERT_EQUAL(memcmp(f.call->run_code, code, len), 0);
    fixture_free(&f);
}

static void code_arrives_as_it_was_written(void)
{
    static const struct {
        const char *arguments, *code;
    } cases[] = {
        {" {\"code\" : \"print(1)\\nprint(\\\"\\u00e4\\ud83d\\ude00\\\")\"} ",
         "print(1)\nprint(\"\xC3\xA4\xF0\x9F\x98\x80\")"},
        {"{\"language\": {\"a\": [1, -2.5e3, true]}, \"code\": \"x\"}", "x"},
        {"{\"code\": \"\"}", ""},
        {"{\"code\": \"\\ud83d!\"}", "\xEF\xBF\xBD!"},
        {"{\"code\": \"```python\\nprint(2)\\n```\"}", "print(2)\n"},
        {"{\"code\": \"\\n```\\r\\nprint(2)\\r\\n```  \\n\"}", "print(2)\r\n"},
        {"{\"code\": \"```python\\ns = '''\\n```\\nx\\n```\\n'''\\n```\"}",
         "s = '''\n```\nx\n```\n'''\n"},
        {"{\"code\": \"s = '''\\n```\\nx\\n```'''\"}", "s = '''\n```\nx\n```'''"},
        {"{\"code\": \"print('```')\"}", "print('```')"},
        {"{\"code\": \"```print(1)```\"}", "```print(1)```"},
        {"{\"code\": \"```python\\nprint(1)\"}", "```python\nprint(1)"},
        {"{\"code\": \"```\\n```\"}", ""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        expect_code(cases[i].arguments, cases[i].code, strlen(cases[i].code));
    }
    expect_code("{\"code\": \"a\\u0000b\"}", "a\0b", 3);
}

static const struct test tests[] = {
    TEST(wrong_arguments_run_nothing_and_say_what_is_wrong),
    TEST(deeply_nested_arguments_are_refused_without_deep_recursion),
    TEST(code_arrives_as_it_was_written),
};

int main(int argc, char **argv)
{
    plugin = host_load("code_interpreter")->plugins[0];
    return run_tests("code_arguments", tests, COUNT_OF(tests), argc, argv);
}
