/* What the mock upstream refuses: bodies that are no request, and, where it is strict, what a strict server refuses. Each
 * refusal names the field. */
#include "upstream_fixture.h"

/* ---- refusals ---- */

static void expect_refusal(struct fixture *f, const char *request, const char *param,
                           const char *message)
{
    CU_ASSERT_EQUAL(turn(f, request), 0);
    CU_ASSERT_EQUAL(strncmp(call_text(f->call, SG_OUT_HEAD), "{\"status\": 400,", 15), 0);
    cJSON *answer = cJSON_Parse(call_text(f->call, SG_OUT_DATA));
    cJSON *error = cJSON_GetObjectItem(answer, "error");
    const char *got = cJSON_GetStringValue(cJSON_GetObjectItem(error, "param"));
    CU_ASSERT_STRING_EQUAL(got == NULL ? "" : got, param);
    CU_ASSERT_STRING_EQUAL(cJSON_GetStringValue(cJSON_GetObjectItem(error, "message")), message);
    cJSON_Delete(answer);
}

static void a_body_that_is_no_request_is_refused(void)
{
    struct fixture f = fixture_new();
    static const char no_object[] =
        "We could not parse the JSON body of your request as an object.";
    expect_refusal(&f, "{", "", no_object);
    expect_refusal(&f, "[]", "", no_object);
    expect_refusal(&f, "{\"messages\":[]}", "model", "you must provide a model parameter");
    expect_refusal(&f, "{\"model\":\"m\"}", "messages", "Missing required parameter: 'messages'.");
    char deep[4096] = "{\"model\":\"m\",\"messages\":";
    size_t len = strlen(deep);
    memset(deep + len, '[', 2000);
    memset(deep + len + 2000, ']', 2000);
    deep[len + 4000] = '}';
    expect_refusal(&f, deep, "", no_object);
    expect_json(&f, REQUEST("{\"role\":\"user\",\"content\":\"\\\\\\\"[[[\"}", ""), WORDS);
    fixture_free(&f);
}

#define CALL_MESSAGE(id, type, arguments)                                     \
    "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":" id ",\"type\":\"" type \
    "\",\"function\":{\"name\":\"f\",\"arguments\":" arguments "}}]}"

static void a_strict_server_names_what_it_refuses(void)
{
    static const struct {
        const char *request, *param, *message;
    } cases[] = {
        {REQUEST(ASK, ",\"_sandgate\":1"), "_sandgate", "Unknown parameter: '_sandgate'."},
        {REQUEST(ASK, ",\"model\":\"m\""), "model", "Duplicate parameter: 'model'."},
        {REQUEST(ASK, ",\"stream_options\":{}"), "stream_options",
         "The 'stream_options' parameter is only allowed when 'stream' is enabled."},
        {REQUEST(ASK, ",\"tools\":[{\"type\":\"code_interpreter\"}]"), "tools[0].type",
         "Invalid value: 'code_interpreter'. Supported values are: 'function' and 'custom'."},
        {REQUEST(ASK, ",\"tools\":[" CODE_TOOL ",7]"), "tools[1].type",
         "Invalid value: '(none)'. Supported values are: 'function' and 'custom'."},
        {REQUEST(ASK, ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\","
                      "\"cache\":1}}]"),
         "tools[0].function.cache", "Unknown parameter: 'tools[0].function.cache'."},
        {REQUEST(ASK, ",\"tools\":[{\"type\":\"function\"}]"), "tools[0].function",
         "'tools[0].function' must be an object."},
        {REQUEST(ASK, ",\"tools\":[{\"type\":\"function\",\"function\":{}}]"),
         "tools[0].function.name", "Missing required parameter: 'tools[0].function.name'."},
        {REQUEST(ASK, ",\"tools\":[" CODE_TOOL "," CODE_TOOL "]"), "tools",
         "Tool names must be unique: 'code_interpreter'."},
        {REQUEST(ASK, ",\"tools\":[]"), "tools", "Invalid 'tools': empty array."},
        {REQUEST(ASK, ",\"parallel_tool_calls\":true"), "parallel_tool_calls",
         "'parallel_tool_calls' is only allowed when 'tools' are specified."},
        {REQUEST(ASK, ",\"tool_choice\":\"auto\""), "tool_choice",
         "'tool_choice' is only allowed when 'tools' are specified."},
        {REQUEST(ASK, ",\"tools\":[" CODE_TOOL "],\"tool_choice\":{\"type\":\"function\","
                      "\"function\":{\"name\":\"x\"}}"),
         "tool_choice", "Tool choice 'x' not found in 'tools' parameter."},
        {REQUEST(ASK, ",\"tools\":[" CODE_TOOL "],\"tool_choice\":{\"type\":\"code_interpreter\"}"),
         "tool_choice",
         "Invalid value for 'tool_choice': only functions and custom tools have one."},
        {REQUEST(ASK, ",\"tools\":[" CODE_TOOL "],\"tool_choice\":\"any\""), "tool_choice",
         "Invalid value: 'any'. Supported values are: 'none', 'auto' and 'required'."},
        {REQUEST(ASK, ",\"tools\":[" CODE_TOOL "],\"tool_choice\":{\"type\":\"allowed_tools\","
                      "\"allowed_tools\":{\"mode\":\"auto\",\"tools\":[{\"type\":\"function\","
                      "\"function\":{\"name\":\"y\"}}]}}"),
         "tool_choice", "Tool choice 'y' not found in 'tools' parameter."},
        {REQUEST("", ""), "messages", "Invalid 'messages': empty array."},
        {REQUEST("{\"role\":\"bot\"}", ""), "messages[0]",
         "'messages[0]' has no role that is known."},
        {REQUEST("[1]", ""), "messages[0]", "'messages[0]' has no role that is known."},
        {REQUEST("{\"role\":\"assistant\",\"content\":\"a\",\"executed_tools\":[]}", ""),
         "messages[0].executed_tools", "Unknown parameter: 'messages[0].executed_tools'."},
        {REQUEST("{\"role\":\"assistant\",\"content\":null}", ""), "messages[0].content",
         "Invalid value for 'content': expected a string, got null."},
        {REQUEST(ASK "," CALLED "," ASK, ""), "messages[1]",
         "An assistant message with 'tool_calls' must be followed by tool messages responding to "
         "each 'tool_call_id'. No message responds to 'c1'."},
        {REQUEST(ASK "," RESULT, ""), "messages[1]",
         "'messages[1]': messages with role 'tool' must respond to a preceding message with "
         "'tool_calls'."},
        {REQUEST(CALLED "," RESULT ",{\"role\":\"tool\",\"tool_call_id\":\"c2\",\"content\":\"\"}",
                 ""),
         "messages[2]",
         "'messages[2]': messages with role 'tool' must respond to a preceding message with "
         "'tool_calls'."},
        {REQUEST(CALLED ",{\"role\":\"tool\",\"tool_call_id\":\"c1\"}", ""), "messages[1]",
         "'messages[1]': 'content' must be a string or parts."},
        {REQUEST(CALL_MESSAGE("\"c1\"", "function", "\"{broken\"") "," RESULT, ""),
         "messages[0].tool_calls[0].function.arguments",
         "'messages[0].tool_calls[0].function.arguments' is not a JSON object."},
        {REQUEST(CALL_MESSAGE("\"c1\"", "function", "{}") "," RESULT, ""),
         "messages[0].tool_calls[0].function",
         "'messages[0].tool_calls[0].function' must have a type, a function name and arguments as "
         "a string."},
        {REQUEST(CALL_MESSAGE("null", "function", "\"{}\"") "," RESULT, ""),
         "messages[0].tool_calls[0].id",
         "Missing required parameter: 'messages[0].tool_calls[0].id'."},
        {REQUEST("{\"role\":\"assistant\",\"tool_calls\":[]}", ""), "messages[0].tool_calls",
         "Invalid 'messages[0].tool_calls': empty array."},
        {REQUEST(ASK, ",\"metadata\":{\"a\":1}"), "metadata.a",
         "Invalid type for 'metadata.a': expected a string."},
        {REQUEST(ASK, ",\"metadata\":{\"_sandgate_turn\":\"1\"}"), "metadata._sandgate_turn",
         "Unknown parameter: 'metadata._sandgate_turn'."},
        {REQUEST(ASK, ",\"metadata\":{\"litellm_call_id\":\"1\"}"), "metadata.litellm_call_id",
         "Unknown parameter: 'metadata.litellm_call_id'."},
        {REQUEST(ASK, ",\"metadata\":[]"), "metadata", "'metadata' must be an object."},
    };
    struct fixture f = fixture_strict();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        expect_refusal(&f, cases[i].request, cases[i].param, cases[i].message);
    }
    fixture_free(&f);
}

static void a_strict_server_takes_what_is_right(void)
{
    struct fixture f = fixture_strict();
    expect_json(&f,
                REQUEST(ASK "," CALLED "," RESULT,
                        ",\"tools\":[" CODE_TOOL
                        "],\"tool_choice\":\"auto\",\"parallel_tool_calls\":"
                        "false,\"metadata\":{\"k\":\"v\",\"n\":null},\"temperature\":1e-3"),
                "The result is: 42\n||stop");
    fixture_free(&f);
}

static void a_server_that_is_not_strict_takes_anything(void)
{
    expect_default(REQUEST(ASK, ",\"_sandgate\":1,\"tools\":[{\"type\":\"x\"}]"), NO_CODE);
}

static const struct test tests[] = {
    TEST(a_body_that_is_no_request_is_refused),
    TEST(a_strict_server_names_what_it_refuses),
    TEST(a_strict_server_takes_what_is_right),
    TEST(a_server_that_is_not_strict_takes_anything),
};

int main(int argc, char **argv)
{
    plugin = host_load("mock")->plugins[2];
    return run_tests("mock_strict", tests, COUNT_OF(tests), argc, argv);
}
