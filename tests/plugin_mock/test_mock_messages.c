/* The mock upstream on Messages: what it decides, whole and in events, how it fails, and what it refuses where it is
 * strict. */
#include "forms_fixture.h"

static const struct form messages = {.surface = "messages",
                                     .parts = "content",
                                     .end = "stop_reason",
                                     .call = "tool_use",
                                     .arguments = "input",
                                     .message = "text",
                                     .text = "text",
                                     .reasoning = "thinking",
                                     .delta_index = "index",
                                     .delta_type = "delta.type"};

#define PLAIN_TOOL(name, parameter)                                                             \
    "{\"name\":\"" name "\",\"input_schema\":{\"type\":\"object\",\"properties\":{\"" parameter \
    "\":{\"type\":\"string\"}},\"required\":[\"" parameter "\"]}}"
#define CODE PLAIN_TOOL("code_execution", "code")
#define BASH PLAIN_TOOL("bash_code_execution", "command")
#define MESSAGES(messages, more) \
    "{\"model\":\"m-1\",\"max_tokens\":1000,\"messages\":[" messages "]" more "}"
#define USER(blocks) "{\"role\":\"user\",\"content\":[" blocks "]}"
#define ASSISTANT(blocks) "{\"role\":\"assistant\",\"content\":[" blocks "]}"
#define USE(id, input) \
    "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"f\",\"input\":" input "}"
#define TOOL_RESULT(id, content) \
    "{\"type\":\"tool_result\",\"tool_use_id\":\"" id "\",\"content\":" content "}"
#define WORD(word) "{\"type\":\"text\",\"text\":\"" word "\"}"

#define CALLED_42 "code_execution({\"code\":\"print(6*7)\"})|tool_use"
#define UNKNOWN "text: I cannot run code here, so I do not know the result.|end_turn"

static void it_calls_the_code_tool_and_tells_what_came_back(void)
{
    expect_new(MESSAGES(ASK, ",\"tools\":[" BASH "," CODE "]"), CALLED_42);
    expect_new(MESSAGES(USER(WORD("Run this Python code: print(6*7)")), ",\"tools\":[" CODE "]"),
               CALLED_42);
    expect_new(MESSAGES(ASK, ",\"tools\":[" BASH "]"),
               "bash_code_execution({\"command\":\"python3 - <<'EOF'\\nprint(6*7)\\nEOF\"})|"
               "tool_use");
    expect_new(
        MESSAGES(USER(WORD("Run this shell command: ls -l")), ",\"tools\":[" CODE "," BASH "]"),
        "bash_code_execution({\"command\":\"ls -l\"})|tool_use");
    expect_new(MESSAGES(USER(WORD("Run this shell command: ls -l")), ",\"tools\":[" CODE "]"),
               UNKNOWN);
    expect_new(MESSAGES(ASK "," ASSISTANT(USE("a", "{}") "," USE("b", "{}")) "," USER(
                            TOOL_RESULT("a", "\"one\"") "," TOOL_RESULT(
                                "b", "[{\"type\":\"text\",\"text\":\"two\"}]")),
                        ",\"tools\":[" CODE "]"),
               "text: The result is: one\ntwo|end_turn");
    expect_new(MESSAGES(ASK "," ASSISTANT(USE("a", "{}")) "," USER(
                            TOOL_RESULT("a", "\"one\"") "," WORD("Run Python code: print(6*7)")),
                        ",\"tools\":[" CODE "]"),
               CALLED_42);
    expect_new(MESSAGES(ASK, ",\"tools\":[{\"type\":\"code_execution_20250825\",\"name\":"
                             "\"code_execution\"}]"),
               UNKNOWN);
}

static void the_tool_choice_is_kept_to(void)
{
    static const struct {
        const char *choice, *expected;
    } cases[] = {
        {"{\"type\":\"none\"}", UNKNOWN},
        {"{\"type\":\"any\"}", CALLED_42},
        {"{\"type\":\"auto\"}", CALLED_42},
        {"{\"type\":\"tool\",\"name\":\"say\"}",
         "say({\"text\":\"Run this Python code and tell me the result: print(6*7)\"})|tool_use"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char request[2048];
        snprintf(request, sizeof request,
                 MESSAGES(ASK, ",\"tools\":[" CODE "," PLAIN_TOOL("say", "text") "],"
                                                                                 "\"tool_choice\":"
                                                                                 "%s"),
                 cases[i].choice);
        expect_new(request, cases[i].expected);
    }
}

static void the_message_has_all_members(void)
{
    static const char request[] = MESSAGES(ASK, ",\"tools\":[" CODE "]");
    struct fixture f = fixture_new();
    cJSON *message = json_of(&f, request);
    CU_ASSERT_STRING_EQUAL(at(message, "id"), "msg_mock1");
    CU_ASSERT_STRING_EQUAL(at(message, "type"), "message");
    CU_ASSERT_STRING_EQUAL(at(message, "role"), "assistant");
    CU_ASSERT_STRING_EQUAL(at(message, "model"), "m-1");
    CU_ASSERT_STRING_EQUAL(at(message, "stop_sequence"), "null");
    CU_ASSERT_STRING_EQUAL(at(message, "content.0.id"), "toolu_mock1_0");
    CU_ASSERT_EQUAL(atoi(at(message, "usage.input_tokens")), (int)strlen(request) / 4);
    CU_ASSERT_EQUAL(atoi(at(message, "usage.output_tokens")), 6);
    cJSON_Delete(message);
    fixture_free(&f);
}

static void the_token_limit_ends_it(void)
{
    expect_new("{\"model\":\"m\",\"max_tokens\":2,\"messages\":[" ASK "]}",
               "text: I cannot|max_tokens");
    expect_new("{\"model\":\"m\",\"max_tokens\":3,\"messages\":[" ASK "],\"tools\":[" CODE "]}",
               "code_execution({})|max_tokens");
}

/* ---- streams ---- */

static void the_events_come_in_order_and_add_up(void)
{
#define BLOCK_EVENTS "content_block_start content_block_delta content_block_stop "
    struct fixture f = scripted();
    stream_of(&f, MESSAGES(ASK, ",\"stream\":true"));
    CU_ASSERT_STRING_EQUAL(event_types(&f),
                           "message_start " BLOCK_EVENTS BLOCK_EVENTS BLOCK_EVENTS BLOCK_EVENTS
                           "message_delta message_stop");
    CU_ASSERT_STRING_EQUAL(deltas_of(&f, 0, "thinking_delta", "delta.thinking"), "hm, well");
    CU_ASSERT_STRING_EQUAL(deltas_of(&f, 0, "signature_delta", "delta.signature"),
                           "signature-mock1");
    CU_ASSERT_STRING_EQUAL(deltas_of(&f, 1, "text_delta", "delta.text"), "\xC3\xA4 so");
    CU_ASSERT_STRING_EQUAL(deltas_of(&f, 2, "input_json_delta", "delta.partial_json"), "{not json");
    CU_ASSERT_STRING_EQUAL(deltas_of(&f, 3, "input_json_delta", "delta.partial_json"),
                           "{\"x\": 1}");
    fixture_free(&f);
}

static void what_begins_and_ends_the_stream_is_that_of_a_plain_answer(void)
{
    struct fixture whole = scripted(), parts = scripted();
    cJSON *message = json_of(&whole, MESSAGES(ASK, ",\"stream\":null"));
    CU_ASSERT_STRING_EQUAL(
        outline_of(message),
        "thinking: hm, well|text: \xC3\xA4 so|a({not json)|b({\"x\":1})|tool_use");
    stream_of(&parts, MESSAGES(ASK, ",\"stream\":true"));
    cJSON *start = event_at(&parts, 0);
    cJSON *delta = event_at(&parts, call_count(parts.call, SG_OUT_DATA) - 2);
    CU_ASSERT_STRING_EQUAL(at(start, "message.id"), "msg_mock1");
    CU_ASSERT_STRING_EQUAL(at(start, "message.content"), "[]");
    CU_ASSERT_STRING_EQUAL(at(start, "message.stop_reason"), "null");
    CU_ASSERT_STRING_EQUAL(at(delta, "delta.stop_reason"), "tool_use");
    CU_ASSERT_TRUE(cJSON_Compare(cJSON_GetObjectItem(message, "usage"),
                                 cJSON_GetObjectItem(delta, "usage"), 1));
    cJSON_Delete(message);
    cJSON_Delete(start);
    cJSON_Delete(delta);
    fixture_free(&whole);
    fixture_free(&parts);
}

/* ---- failures ---- */

static void a_failure_in_a_stream_is_an_error_event(void)
{
    struct fixture f = fixture_new();
    config_add(plugin, f.config, "script", "text", "0123456789", "fault", "error_event", NULL);
    stream_of(&f, MESSAGES(ASK, ",\"stream\":true"));
    cJSON *error = event_at(&f, call_count(f.call, SG_OUT_DATA) - 1);
    CU_ASSERT_STRING_EQUAL(at(error, ""),
                           "{\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":"
                           "\"mock upstream: the model failed\"}}");
    cJSON_Delete(error);
    fixture_free(&f);
}

static void a_flood_is_text_without_end(void)
{
    struct fixture f = flood_of(MESSAGES(ASK, ",\"stream\":true"));
    CU_ASSERT_STRING_EQUAL(event_types(&f),
                           "message_start content_block_start content_block_delta");
    CU_ASSERT_EQUAL(strncmp(deltas_of(&f, 0, "text_delta", "delta.text"), "flood flood ", 12), 0);
    fixture_free(&f);
}

static void a_status_of_the_script_has_this_apis_error_body(void)
{
    static const struct {
        const char *status, *type;
    } cases[] = {{"401", "authentication_error"},
                 {"429", "rate_limit_error"},
                 {"500", "api_error"},
                 {"504", "timeout_error"},
                 {"529", "overloaded_error"},
                 {"418", "invalid_request_error"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fixture f = fixture_new();
        config_add(plugin, f.config, "script", "status", cases[i].status, "text", "no", NULL);
        CU_ASSERT_EQUAL(turn_with(&f, form->surface, MESSAGES(ASK, ""), false), 0);
        cJSON *body = cJSON_Parse(call_text(f.call, SG_OUT_DATA));
        CU_ASSERT_STRING_EQUAL(at(body, "type"), "error");
        CU_ASSERT_STRING_EQUAL(at(body, "error.type"), cases[i].type);
        CU_ASSERT_STRING_EQUAL(at(body, "error.message"), "no");
        CU_ASSERT_STRING_EQUAL(at(body, "request_id"), "req_mock");
        cJSON_Delete(body);
        fixture_free(&f);
    }
}

static void scripts_may_use_the_words_of_chat(void)
{
    static const char *const words[][2] = {{"stop", "text: x|end_turn"},
                                           {"length", "text: x|max_tokens"},
                                           {"content_filter", "text: x|refusal"},
                                           {"pause_turn", "text: x|pause_turn"}};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        struct fixture f = fixture_new();
        config_add(plugin, f.config, "script", "text", "x", "finish", words[i][0], NULL);
        expect(&f, MESSAGES(ASK, ""), words[i][1]);
        fixture_free(&f);
    }
}

/* ---- refusals ---- */

static void what_is_no_request_is_refused(void)
{
    struct fixture f = fixture_new();
    expect_refusal(&f, "{\"max_tokens\":1,\"messages\":[]}", "(absent)", "model: Field required");
    expect_refusal(&f, "{\"model\":\"m\",\"max_tokens\":1}", "(absent)",
                   "messages: Field required");
    expect_refusal(&f, "{\"model\":\"m\",\"messages\":[]}", "(absent)",
                   "max_tokens: Field required");
    fixture_free(&f);
}

#define BEHIND                                                                             \
    ": `tool_use` ids were found without `tool_result` blocks immediately after: a. Each " \
    "`tool_use` block must have a corresponding `tool_result` block in the next message."
#define UNEXPECTED                                                                                \
    ": unexpected `tool_use_id` found in `tool_result` blocks: a. Each `tool_result` block must " \
    "have a corresponding `tool_use` block in the previous message."

static void a_strict_server_names_what_it_refuses(void)
{
    static const char *const cases[][2] = {
        {MESSAGES(ASK, ",\"_sandgate\":1"), "_sandgate: Extra inputs are not permitted"},
        {MESSAGES(ASK, ",\"container\":\"container_1\""),
         "container: Extra inputs are not permitted"},
        {MESSAGES(ASK, ",\"metadata\":{\"session_id\":\"s\"}"),
         "metadata.session_id: Extra inputs are not permitted"},
        {MESSAGES(ASK, ",\"model\":\"m\""), "model: Inputs may not be repeated"},
        {"{\"model\":\"m\",\"max_tokens\":0,\"messages\":[" ASK "]}",
         "max_tokens: Input should be greater than or equal to 1"},
        {MESSAGES(ASK, ",\"system\":[{\"type\":\"text\",\"text\":\"\"}]"),
         "system.0: text content blocks must be non-empty"},
        {MESSAGES(ASK, ",\"tools\":[{\"type\":\"code_execution_20250825\",\"name\":\"c\"}]"),
         "tools.0: Input tag 'code_execution_20250825' found using 'type' does not match any of "
         "the expected tags: 'custom'"},
        {MESSAGES(ASK, ",\"tools\":[{\"name\":\"c\",\"parameters\":{}}]"),
         "tools.0.parameters: Extra inputs are not permitted"},
        {MESSAGES(ASK, ",\"tools\":{}"), "tools: Input should be a valid list"},
        {MESSAGES(ASK, ",\"tools\":[{\"input_schema\":{\"type\":\"object\"}}]"),
         "tools.0.name: Field required"},
        {MESSAGES(ASK, ",\"tools\":[{\"name\":\"c\"}]"),
         "tools.0.input_schema: Input should be a schema of type 'object'"},
        {MESSAGES(ASK, ",\"tools\":[" CODE "," CODE "]"), "tools: Tool names must be unique."},
        {MESSAGES(ASK, ",\"tool_choice\":{\"type\":\"auto\"}"),
         "tool_choice: may only be specified while providing tools"},
        {MESSAGES(ASK, ",\"tools\":[" CODE "],\"tool_choice\":\"auto\""),
         "tool_choice: Input should be an object"},
        {MESSAGES(ASK, ",\"tools\":[" CODE "],\"tool_choice\":{\"type\":\"required\"}"),
         "tool_choice.type: Input should be 'auto', 'any', 'none' or 'tool'"},
        {MESSAGES(ASK, ",\"tools\":[" CODE "],\"tool_choice\":{\"type\":\"tool\",\"name\":\"x\"}"),
         "tool_choice: Tool 'x' not found in provided tools"},
        {MESSAGES(ASK,
                  ",\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":1024},\"tools\":[" CODE
                  "],\"tool_choice\":{\"type\":\"any\"}"),
         "thinking: Thinking may not be enabled when tool_choice forces tool use."},
        {MESSAGES("", ""), "messages: at least one message is required"},
        {MESSAGES(ASSISTANT(WORD("x")), ""), "messages: first message must use the \"user\" role"},
        {MESSAGES("{\"role\":\"system\",\"content\":\"x\"}", ""),
         "messages.0: role should be 'user' or 'assistant'"},
        {MESSAGES("{\"role\":\"user\",\"content\":\"x\",\"name\":\"n\"}", ""),
         "messages.0.name: Extra inputs are not permitted"},
        {MESSAGES(ASK "," ASK, ""),
         "messages: roles must alternate between \"user\" and \"assistant\", but found multiple "
         "\"user\" roles in a row"},
        {MESSAGES(USER(""), ""),
         "messages.0: all messages must have non-empty content except for the optional final "
         "assistant message"},
        {MESSAGES(USER(WORD("")), ""),
         "messages.0.content.0: text content blocks must be non-empty"},
        {MESSAGES(ASK "," ASSISTANT("{\"type\":\"server_tool_use\",\"id\":\"srvtoolu_1\"}"), ""),
         "messages.1.content.0: Input tag 'server_tool_use' found using 'type' does not match any "
         "of the expected tags of the role 'assistant'"},
        {MESSAGES(USER(USE("a", "{}")), ""),
         "messages.0.content.0: Input tag 'tool_use' found using 'type' does not match any of the "
         "expected tags of the role 'user'"},
        {MESSAGES(ASK "," ASSISTANT("{\"type\":\"thinking\",\"thinking\":\"x\"}"), ""),
         "messages.1.content.0.signature: Field required"},
        {MESSAGES(ASK "," ASSISTANT(USE("a", "[]")) "," USER(TOOL_RESULT("a", "\"\"")), ""),
         "messages.1.content.0.input: Input should be a valid dictionary"},
        {MESSAGES(ASK "," ASSISTANT(USE("a", "{}")), ""), "messages.1" BEHIND},
        {MESSAGES(ASK "," ASSISTANT(USE("a", "{}")) "," ASK, ""), "messages.1" BEHIND},
        {MESSAGES(USER(TOOL_RESULT("a", "\"\"")), ""), "messages.0.content.0" UNEXPECTED},
        {MESSAGES(ASK "," ASSISTANT(WORD("x")) "," USER(TOOL_RESULT("a", "\"\"")), ""),
         "messages.2.content.0" UNEXPECTED},
        {MESSAGES(ASK
                  "," ASSISTANT(USE("a", "{}")) "," USER(WORD("x") "," TOOL_RESULT("a", "\"\"")),
                  ""),
         "messages.2.content.1: `tool_result` blocks must come first in their message"},
        {MESSAGES(ASK "," ASSISTANT(USE("a", "{}")) "," USER(
                      TOOL_RESULT("a", "\"\"") "," TOOL_RESULT("a", "\"\"")),
                  ""),
         "messages.2.content.1: each `tool_use` must have a single result"},
        {MESSAGES(ASK "," ASSISTANT(USE("a", "{}") "," USE("a", "{}")) "," USER(
                      TOOL_RESULT("a", "\"\"")),
                  ""),
         "messages: `tool_use` ids must be unique"},
    };
    struct fixture f = fixture_strict();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        expect_refusal(&f, cases[i][0], "(absent)", cases[i][1]);
    }
    fixture_free(&f);
}

static void a_strict_server_takes_what_is_right(void)
{
    struct fixture f = fixture_strict();
    expect(
        &f,
        MESSAGES(
            ASK "," ASSISTANT(
                "{\"type\":\"thinking\",\"thinking\":\"x\",\"signature\":\"s\"}," WORD("w") "," USE(
                    "a", "{}") "," USE("b",
                                       "{}")) "," USER(TOOL_RESULT("b",
                                                                   "\"x\"") "," TOOL_RESULT("a",
                                                                                            "[]")),
            ",\"system\":\"s\",\"tools\":[" CODE "],\"tool_choice\":{\"type\":\"auto\","
            "\"disable_parallel_tool_use\":true},\"metadata\":{\"user_id\":\"u\"}"),
        "text: The result is: x\n|end_turn");
    fixture_free(&f);
}

static const struct test tests[] = {
    TEST(it_calls_the_code_tool_and_tells_what_came_back),
    TEST(the_tool_choice_is_kept_to),
    TEST(the_message_has_all_members),
    TEST(the_token_limit_ends_it),
    TEST(the_events_come_in_order_and_add_up),
    TEST(what_begins_and_ends_the_stream_is_that_of_a_plain_answer),
    TEST(a_failure_in_a_stream_is_an_error_event),
    TEST(a_flood_is_text_without_end),
    TEST(a_status_of_the_script_has_this_apis_error_body),
    TEST(scripts_may_use_the_words_of_chat),
    TEST(what_is_no_request_is_refused),
    TEST(a_strict_server_names_what_it_refuses),
    TEST(a_strict_server_takes_what_is_right),
};

int main(int argc, char **argv)
{
    plugin = host_load("mock")->plugins[2];
    form = &messages;
    return run_tests("mock_messages", tests, COUNT_OF(tests), argc, argv);
}
