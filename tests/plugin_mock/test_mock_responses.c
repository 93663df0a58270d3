/* The mock upstream on Responses: what it decides, whole and in events, how it fails, and what it refuses where it is
 * strict. */
#include "forms_fixture.h"

static const struct form responses = {.surface = "responses",
                                      .parts = "output",
                                      .end = "status",
                                      .call = "function_call",
                                      .arguments = "arguments",
                                      .message = "message",
                                      .text = "content.0.text",
                                      .reasoning = "summary.0.text",
                                      .delta_index = "output_index",
                                      .delta_type = "type"};

#define FUNCTION(name, parameter)                                                       \
    "{\"type\":\"function\",\"name\":\"" name "\",\"parameters\":{\"type\":\"object\"," \
    "\"properties\":{\"" parameter "\":{\"type\":\"string\"}},\"required\":[\"" parameter "\"]}}"
#define CODE FUNCTION("code_interpreter", "code")
#define ITEMS(items, more) "{\"model\":\"m-1\",\"input\":[" items "]" more "}"
#define CALL(id) \
    "{\"type\":\"function_call\",\"call_id\":\"" id "\",\"name\":\"f\",\"arguments\":\"{}\"}"
#define OUTPUT(id, text) \
    "{\"type\":\"function_call_output\",\"call_id\":\"" id "\",\"output\":" text "}"

#define CALLED_42 "code_interpreter({\"code\": \"print(6*7)\"})|completed"
#define UNKNOWN "message: I cannot run code here, so I do not know the result.|completed"

static void it_calls_the_code_tool_and_tells_what_came_back(void)
{
    expect_new("{\"model\":\"m\",\"input\":\"Run this Python code: print(6*7)\",\"tools\":[" CODE
               "]}",
               CALLED_42);
    expect_new(ITEMS("{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"Run this "
                     "Python code: print(6*7)\"}]}",
                     ",\"tools\":[" CODE "]"),
               CALLED_42);
    expect_new(ITEMS(ASK "," CALL("a") "," CALL("b") "," OUTPUT("a", "\"one\"") "," OUTPUT(
                         "b", "[{\"type\":\"input_text\",\"text\":\"two\"}]"),
                     ",\"tools\":[" CODE "]"),
               "message: The result is: one\ntwo|completed");
    expect_new(ITEMS(ASK, ",\"tools\":[{\"type\":\"code_interpreter\"}]"), UNKNOWN);
}

static void the_tool_choice_is_kept_to(void)
{
    static const char both[] = ",\"tools\":[" CODE "," FUNCTION("say", "text") "],\"tool_choice\":";
    static const struct {
        const char *choice, *expected;
    } cases[] = {
        {"\"none\"", UNKNOWN},
        {"\"required\"", CALLED_42},
        {"{\"type\":\"function\",\"name\":\"say\"}",
         "say({\"text\": \"Run this Python code and tell me the result: print(6*7)\"})|completed"},
        {"{\"type\":\"allowed_tools\",\"mode\":\"auto\",\"tools\":[{\"type\":\"function\",\"name\":"
         "\"say\"}]}",
         UNKNOWN},
        {"{\"type\":\"allowed_tools\",\"mode\":\"auto\",\"tools\":[{\"type\":\"function\",\"name\":"
         "\"code_interpreter\"}]}",
         CALLED_42},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char request[2048];
        snprintf(request, sizeof request, "{\"model\":\"m\",\"input\":[" ASK "]%s%s}", both,
                 cases[i].choice);
        expect_new(request, cases[i].expected);
    }
}

static void the_response_has_all_members_and_echoes_the_request(void)
{
    static const char request[] =
        ITEMS(ASK, ",\"tools\":[" CODE "],\"temperature\":0.5,\"metadata\":{\"k\":\"v\"}");
    static const char *const names[] = {"object",
                                        "created_at",
                                        "background",
                                        "completed_at",
                                        "error",
                                        "instructions",
                                        "incomplete_details",
                                        "max_tool_calls",
                                        "output",
                                        "prompt_cache_key",
                                        "reasoning",
                                        "safety_identifier",
                                        "service_tier",
                                        "text",
                                        "tool_choice",
                                        "top_p",
                                        "previous_response_id",
                                        "truncation",
                                        "user",
                                        "max_output_tokens",
                                        "top_logprobs",
                                        "parallel_tool_calls",
                                        "store"};
    struct fixture f = fixture_new();
    cJSON *response = json_of(&f, request);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        CU_ASSERT_STRING_NOT_EQUAL(at(response, names[i]), "(absent)");
    }
    CU_ASSERT_STRING_EQUAL(at(response, "id"), "resp_mock1");
    CU_ASSERT_STRING_EQUAL(at(response, "model"), "m-1");
    CU_ASSERT_STRING_EQUAL(at(response, "temperature"), "0.5");
    CU_ASSERT_STRING_EQUAL(at(response, "metadata"), "{\"k\":\"v\"}");
    CU_ASSERT_STRING_EQUAL(at(response, "tools.0.name"), "code_interpreter");
    CU_ASSERT_STRING_EQUAL(at(response, "output.0.id"), "fc_mock1_0");
    CU_ASSERT_STRING_EQUAL(at(response, "output.0.call_id"), "call_mock1_0");
    CU_ASSERT_STRING_EQUAL(at(response, "output.0.status"), "completed");
    CU_ASSERT_EQUAL(atoi(at(response, "usage.input_tokens")), (int)strlen(request) / 4);
    CU_ASSERT_EQUAL(atoi(at(response, "usage.output_tokens")), 6);
    CU_ASSERT_EQUAL(atoi(at(response, "usage.total_tokens")), (int)strlen(request) / 4 + 6);
    cJSON_Delete(response);
    fixture_free(&f);
}

static void the_token_limit_makes_it_incomplete(void)
{
    struct fixture f = fixture_new();
    cJSON *response = json_of(&f, ITEMS(ASK, ",\"max_output_tokens\":2"));
    CU_ASSERT_STRING_EQUAL(outline_of(response), "message: I cannot|incomplete");
    CU_ASSERT_STRING_EQUAL(at(response, "incomplete_details.reason"), "max_output_tokens");
    CU_ASSERT_STRING_EQUAL(at(response, "output.0.status"), "incomplete");
    CU_ASSERT_STRING_EQUAL(at(response, "completed_at"), "null");
    cJSON_Delete(response);
    stream_of(&f, ITEMS(ASK, ",\"stream\":true,\"max_output_tokens\":2"));
    CU_ASSERT_PTR_NOT_NULL(strstr(event_types(&f), "response.incomplete"));
    CU_ASSERT_PTR_NULL(strstr(event_types(&f), "response.completed"));
    fixture_free(&f);
}

/* ---- streams ---- */

static void the_events_come_in_order_and_add_up(void)
{
    struct fixture f = scripted();
    stream_of(&f, ITEMS(ASK, ",\"stream\":true"));
    CU_ASSERT_STRING_EQUAL(
        event_types(&f),
        "response.created response.in_progress "
        "response.output_item.added response.reasoning_summary_part.added "
        "response.reasoning_summary_text.delta response.reasoning_summary_text.done "
        "response.reasoning_summary_part.done response.output_item.done "
        "response.output_item.added response.content_part.added response.output_text.delta "
        "response.output_text.done response.content_part.done response.output_item.done "
        "response.output_item.added response.function_call_arguments.delta "
        "response.function_call_arguments.done response.output_item.done "
        "response.output_item.added response.function_call_arguments.delta "
        "response.function_call_arguments.done response.output_item.done response.completed");
    CU_ASSERT_STRING_EQUAL(deltas_of(&f, 0, "response.reasoning_summary_text.delta", "delta"),
                           "hm, well");
    CU_ASSERT_STRING_EQUAL(deltas_of(&f, 1, "response.output_text.delta", "delta"), "\xC3\xA4 so");
    CU_ASSERT_STRING_EQUAL(deltas_of(&f, 2, "response.function_call_arguments.delta", "delta"),
                           "{not json");
    CU_ASSERT_STRING_EQUAL(deltas_of(&f, 3, "response.function_call_arguments.delta", "delta"),
                           "{\"x\": 1}");
    cJSON *event;
    for (size_t i = 0; (event = event_at(&f, i)) != NULL; i++) {
        CU_ASSERT_EQUAL(atoi(at(event, "sequence_number")), (int)i);
        cJSON_Delete(event);
    }
    fixture_free(&f);
}

static void the_final_response_is_that_of_a_plain_answer(void)
{
    struct fixture whole = scripted(), parts = scripted();
    cJSON *response = json_of(&whole, ITEMS(ASK, ",\"stream\":null"));
    CU_ASSERT_STRING_EQUAL(
        outline_of(response),
        "reasoning: hm, well|message: \xC3\xA4 so|a({not json)|b({\"x\": 1})|completed");
    stream_of(&parts, ITEMS(ASK, ",\"stream\":true"));
    cJSON *last = event_at(&parts, call_count(parts.call, SG_OUT_DATA) - 1);
    cJSON *final = cJSON_GetObjectItem(last, "response");
    cJSON *done = event_at(&parts, call_count(parts.call, SG_OUT_DATA) - 2);
    CU_ASSERT_TRUE(cJSON_Compare(cJSON_GetObjectItem(done, "item"),
                                 cJSON_GetArrayItem(cJSON_GetObjectItem(final, "output"), 3), 1));
    static const char *const times[] = {"created_at", "completed_at"};
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        cJSON_DeleteItemFromObject(response, times[i]);
        cJSON_DeleteItemFromObject(final, times[i]);
    }
    CU_ASSERT_TRUE(cJSON_Compare(response, final, 1));
    cJSON_Delete(response);
    cJSON_Delete(last);
    cJSON_Delete(done);
    fixture_free(&whole);
    fixture_free(&parts);
}

static void encrypted_reasoning_is_for_those_who_ask(void)
{
    struct fixture f = scripted();
    cJSON *response = json_of(&f, ITEMS(ASK, ""));
    CU_ASSERT_STRING_EQUAL(at(response, "output.0.encrypted_content"), "(absent)");
    cJSON_Delete(response);
    response = json_of(&f, ITEMS(ASK, ",\"include\":[\"reasoning.encrypted_content\"]"));
    CU_ASSERT_STRING_EQUAL(at(response, "output.0.encrypted_content"), "mock2");
    cJSON_Delete(response);
    fixture_free(&f);
}

/* ---- failures ---- */

static void a_failure_in_a_stream_is_an_error_event_and_a_failed_response(void)
{
    struct fixture f = fixture_new();
    config_add(plugin, f.config, "script", "text", "0123456789", "call", "f", "fault",
               "error_event", NULL);
    stream_of(&f, ITEMS(ASK, ",\"stream\":true"));
    size_t count = call_count(f.call, SG_OUT_DATA);
    cJSON *error = event_at(&f, count - 2), *failed = event_at(&f, count - 1);
    CU_ASSERT_STRING_EQUAL(at(error, "type"), "error");
    CU_ASSERT_EQUAL(atoi(at(error, "sequence_number")), (int)count - 2);
    CU_ASSERT_STRING_EQUAL(at(error, "message"), "mock upstream: the model failed");
    CU_ASSERT_STRING_EQUAL(at(error, "error.code"), "server_error");
    CU_ASSERT_STRING_EQUAL(at(failed, "type"), "response.failed");
    CU_ASSERT_EQUAL(atoi(at(failed, "sequence_number")), (int)count - 1);
    CU_ASSERT_STRING_EQUAL(at(failed, "response.status"), "failed");
    CU_ASSERT_STRING_EQUAL(at(failed, "response.error.code"), "server_error");
    CU_ASSERT_STRING_EQUAL(at(failed, "response.id"), "resp_mock1");
    CU_ASSERT_STRING_EQUAL(at(failed, "response.output.0.id"), "msg_mock1");
    CU_ASSERT_STRING_EQUAL(at(failed, "response.output.0.status"), "incomplete");
    CU_ASSERT_STRING_EQUAL(at(failed, "response.output.1"), "(absent)");
    cJSON_Delete(error);
    cJSON_Delete(failed);
    fixture_free(&f);
}

static void a_flood_is_text_events_that_count_on(void)
{
    struct fixture f = flood_of(ITEMS(ASK, ",\"stream\":true"));
    CU_ASSERT_STRING_EQUAL(event_types(&f), "response.created response.in_progress "
                                            "response.output_item.added "
                                            "response.content_part.added "
                                            "response.output_text.delta");
    cJSON *last = event_at(&f, call_count(f.call, SG_OUT_DATA) - 1);
    CU_ASSERT_EQUAL(atoi(at(last, "sequence_number")), (int)call_count(f.call, SG_OUT_DATA) - 1);
    CU_ASSERT_STRING_EQUAL(at(last, "item_id"), "msg_mock1");
    cJSON_Delete(last);
    fixture_free(&f);
}

static void a_status_of_the_script_has_the_openai_error_body(void)
{
    struct fixture f = fixture_new();
    config_add(plugin, f.config, "script", "status", "429", "text", "slow down", NULL);
    CU_ASSERT_EQUAL(turn_with(&f, form->surface, ITEMS(ASK, ""), false), 0);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_DATA),
                           "{\"error\":{\"message\":\"slow down\",\"type\":\"rate_limit_error\","
                           "\"param\":null,\"code\":\"rate_limit_exceeded\"}}");
    fixture_free(&f);
}

static void turns_are_counted_by_groups_of_outputs(void)
{
    struct fixture f = fixture_new();
    config_add(plugin, f.config, "script", "turn", "3", "text", "third", NULL);
    config_add(plugin, f.config, "script", "turn", "2", "text", "second", "finish",
               "content_filter", NULL);
    expect(
        &f,
        ITEMS(ASK "," CALL("a") "," CALL("b") "," OUTPUT("a", "\"\"") "," OUTPUT("b", "\"\""), ""),
        "message: second|incomplete");
    expect(
        &f,
        ITEMS(ASK "," CALL("a") "," OUTPUT("a", "\"\"") "," CALL("b") "," OUTPUT("b", "\"\""), ""),
        "message: third|completed");
    fixture_free(&f);
}

/* ---- refusals ---- */

static void what_is_no_request_is_refused(void)
{
    struct fixture f = fixture_new();
    expect_refusal(&f, "{\"input\":\"x\"}", "model", "you must provide a model parameter");
    expect_refusal(&f, "{\"model\":\"m\"}", "input", "Missing required parameter: 'input'.");
    expect_refusal(&f, "{\"model\":\"m\",\"input\":\"x\",\"previous_response_id\":\"resp_1\"}",
                   "previous_response_id", "Previous response with id 'resp_1' not found.");
    fixture_free(&f);
}

static void a_strict_server_names_what_it_refuses(void)
{
    static const struct {
        const char *request, *param, *message;
    } cases[] = {
        {ITEMS(ASK, ",\"_sandgate\":1"), "_sandgate", "Unknown parameter: '_sandgate'."},
        {ITEMS(ASK, ",\"messages\":[]"), "messages", "Unknown parameter: 'messages'."},
        {ITEMS(ASK, ",\"model\":\"m\""), "model", "Duplicate parameter: 'model'."},
        {ITEMS(ASK, ",\"metadata\":{\"user_api_key_hash\":\"1\"}"), "metadata.user_api_key_hash",
         "Unknown parameter: 'metadata.user_api_key_hash'."},
        {ITEMS(ASK, ",\"stream_options\":{}"), "stream_options",
         "The 'stream_options' parameter is only allowed when 'stream' is enabled."},
        {ITEMS(ASK, ",\"background\":true"), "background", "'background' is not supported here."},
        {ITEMS(ASK, ",\"max_output_tokens\":15"), "max_output_tokens",
         "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but "
         "got 15 instead."},
        {ITEMS(ASK, ",\"include\":[\"code_interpreter_call.outputs\",\"secrets\"]"), "include[1]",
         "Invalid value: 'secrets'."},
        {ITEMS(ASK, ",\"tools\":\"x\""), "tools", "Invalid type for 'tools': expected an array."},
        {ITEMS(ASK, ",\"tools\":[{\"type\":\"code_interpreter\",\"container\":{}}]"),
         "tools[0].type",
         "Invalid value: 'code_interpreter'. Supported values are: 'function' and 'custom'."},
        {ITEMS(ASK, ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]"),
         "tools[0].function", "Unknown parameter: 'tools[0].function'."},
        {ITEMS(ASK, ",\"tools\":[{\"type\":\"function\"}]"), "tools[0].name",
         "Missing required parameter: 'tools[0].name'."},
        {ITEMS(ASK, ",\"tools\":[" CODE "," CODE "]"), "tools",
         "Tool names must be unique: 'code_interpreter'."},
        {ITEMS(ASK, ",\"tools\":[" CODE "],\"tool_choice\":{\"type\":\"function\",\"name\":\"x\"}"),
         "tool_choice", "Tool choice 'x' not found in 'tools' parameter."},
        {ITEMS(ASK, ",\"tools\":[" CODE "],\"tool_choice\":{\"type\":\"code_interpreter\"}"),
         "tool_choice",
         "Invalid value for 'tool_choice': only functions and custom tools have one."},
        {ITEMS(ASK, ",\"tools\":[" CODE "],\"tool_choice\":\"any\""), "tool_choice",
         "Invalid value: 'any'. Supported values are: 'none', 'auto' and 'required'."},
        {ITEMS(ASK, ",\"tool_choice\":\"required\""), "tool_choice",
         "Tool choice 'required' must be specified with 'tools' parameter."},
        {ITEMS(ASK, ",\"tools\":[" CODE "],\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":"
                    "\"auto\",\"tools\":[{\"type\":\"function\",\"name\":\"y\"}]}"),
         "tool_choice", "Tool choice 'y' not found in 'tools' parameter."},
        {ITEMS("", ""), "input", "Invalid 'input': empty array."},
        {ITEMS("{\"role\":\"tool\",\"content\":\"\"}", ""), "input[0]",
         "'input[0]' has no role that is known."},
        {ITEMS("{\"role\":\"user\"}", ""), "input[0].content",
         "Missing required parameter: 'input[0].content'."},
        {ITEMS("{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"\"}]}", ""),
         "input[0].content", "'input[0].content' has a part of an unknown type."},
        {ITEMS(ASK ",{\"type\":\"code_interpreter_call\",\"id\":\"ci_1\"}", ""), "input[1].type",
         "Invalid value: 'code_interpreter_call'."},
        {ITEMS(ASK ",{\"type\":\"item_reference\",\"id\":\"msg_1\"}", ""), "input[1].type",
         "Invalid value: 'item_reference'."},
        {ITEMS("7", ""), "input[0].type", "Invalid value: '(none)'."},
        {ITEMS(ASK "," CALL("c1"), ""), "input", "No tool output found for function call c1."},
        {ITEMS(OUTPUT("c1", "\"\"") "," CALL("c1"), ""), "input",
         "No tool call found for function call output with call_id c1."},
        {ITEMS(CALL("c1") "," CALL("c1") "," OUTPUT("c1", "\"\""), ""), "input[1]",
         "Duplicate call id in 'input[1]'."},
        {ITEMS(CALL("c1") "," OUTPUT("c1", "\"\"") "," OUTPUT("c1", "\"\""), ""), "input[2]",
         "'input[2]' is a second output of its call."},
        {ITEMS(CALL("c1") "," OUTPUT("c1", "7"), ""), "input[1].output",
         "Missing required parameter: 'input[1].output'."},
        {ITEMS("{\"type\":\"function_call\",\"call_id\":\"c1\",\"name\":\"f\",\"arguments\":\"[]\"}"
               "," OUTPUT("c1", "\"\""),
               ""),
         "input[0].arguments", "'input[0].arguments' is not a JSON object."},
        {ITEMS("{\"type\":\"function_call\",\"call_id\":\"c1\",\"arguments\":\"{}\"}", ""),
         "input[0].name", "Missing required parameter: 'input[0].name'."},
        {ITEMS("{\"type\":\"reasoning\",\"id\":\"rs_1\"}", ""), "input[0].summary",
         "Missing required parameter: 'input[0].summary'."},
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
    expect(&f,
           ITEMS(ASK ",{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[]}," CALL(
                     "c1") "," CALL("c2") "," OUTPUT("c2", "\"x\"") "," OUTPUT("c1", "[]"),
                 ",\"tools\":[" CODE "],\"tool_choice\":\"auto\",\"store\":false,\"include\":["
                 "\"reasoning.encrypted_content\"],\"max_output_tokens\":16,\"metadata\":null"),
           "message: The result is: x\n|completed");
    expect(&f, "{\"model\":\"m\",\"input\":\"Run this Python code: 1\"}", UNKNOWN);
    fixture_free(&f);
}

static const struct test tests[] = {
    TEST(it_calls_the_code_tool_and_tells_what_came_back),
    TEST(the_tool_choice_is_kept_to),
    TEST(the_response_has_all_members_and_echoes_the_request),
    TEST(the_token_limit_makes_it_incomplete),
    TEST(the_events_come_in_order_and_add_up),
    TEST(the_final_response_is_that_of_a_plain_answer),
    TEST(encrypted_reasoning_is_for_those_who_ask),
    TEST(a_failure_in_a_stream_is_an_error_event_and_a_failed_response),
    TEST(a_flood_is_text_events_that_count_on),
    TEST(a_status_of_the_script_has_the_openai_error_body),
    TEST(turns_are_counted_by_groups_of_outputs),
    TEST(what_is_no_request_is_refused),
    TEST(a_strict_server_names_what_it_refuses),
    TEST(a_strict_server_takes_what_is_right),
};

int main(int argc, char **argv)
{
    plugin = host_load("mock")->plugins[2];
    form = &responses;
    return run_tests("mock_responses", tests, COUNT_OF(tests), argc, argv);
}
