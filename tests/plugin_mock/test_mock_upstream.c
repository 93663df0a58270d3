/* The mock upstream: what it decides, in both forms; scripts; faults; the journal. */
#include "upstream_fixture.h"

#include <unistd.h>

#define CALL_42 "-|code_interpreter({\"code\": \"print(6*7)\"})|tool_calls"

static void code_is_run_with_the_tool_that_is_offered(void)
{
    expect_default(REQUEST(ASK, ",\"tools\":[" CODE_TOOL "]"), CALL_42);
    expect_default(
        REQUEST(ASK, ",\"tools\":[" TOOL("run", "code") "," TOOL("code_interpreter_2", "code") "]"),
        "-|code_interpreter_2({\"code\": \"print(6*7)\"})|tool_calls");
    expect_default(REQUEST(ASK, ",\"tools\":[" TOOL("other", "text") "," TOOL("py", "code") "]"),
                   "-|py({\"code\": \"print(6*7)\"})|tool_calls");
    expect_default(
        REQUEST("{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Please run this "
                "python code:\\n```python\\nx = \\\"a: b\\\"\\nprint(x)\\n```\\nThanks\"}]}",
                ",\"tools\":[" CODE_TOOL "]"),
        "-|code_interpreter({\"code\": \"x = \\\"a: b\\\"\\nprint(x)\"})|tool_calls");
    expect_default(REQUEST("{\"role\":\"user\",\"content\":\"Search the web for: sql joins\"}",
                           ",\"tools\":[" CODE_TOOL "," TOOL("web_search", "query") "]"),
                   "-|web_search({\"query\": \"sql joins\"})|tool_calls");
}

static void a_shell_is_given_a_command_that_runs_the_code(void)
{
    static const char editor[] =
        "{\"type\":\"function\",\"function\":{\"name\":\"edit\",\"parameters\":{\"type\":"
        "\"object\",\"properties\":{\"command\":{\"type\":\"string\"},\"path\":{\"type\":"
        "\"string\"}},\"required\":[\"command\",\"path\"]}}}";
    char request[4096];
    snprintf(request, sizeof request, REQUEST(ASK, ",\"tools\":[%s," TOOL("sh", "command") "]"),
             editor);
    expect_default(request, "-|sh({\"command\": \"python3 - <<'EOF'\\nprint(6*7)\\nEOF\"})|"
                            "tool_calls");
    snprintf(request, sizeof request,
             REQUEST(ASK, ",\"tools\":[" TOOL("sh", "command") "," TOOL("py", "code") "%s]"), "");
    expect_default(request, "-|py({\"code\": \"print(6*7)\"})|tool_calls");
    snprintf(request, sizeof request, REQUEST(ASK, ",\"tools\":[%s]"), editor);
    expect_default(request, NO_CODE);
}

static void without_a_tool_the_answer_is_in_words_and_knows_no_result(void)
{
    expect_default(REQUEST(ASK, ""), NO_CODE);
    expect_default(REQUEST(ASK, ",\"tools\":[{\"type\":\"code_interpreter\"}]"), NO_CODE);
    expect_default(REQUEST(ASK, ",\"tools\":[" TOOL("other", "text") "]"), NO_CODE);
    expect_default(REQUEST(ASK, ",\"tools\":[" CODE_TOOL "],\"tool_choice\":\"none\""), NO_CODE);
    expect_default(
        REQUEST("{\"role\":\"user\",\"content\":\"Hello\"}", ",\"tools\":[" CODE_TOOL "]"), WORDS);
    expect_default(REQUEST("{\"role\":\"user\",\"content\":\"Search the web for: x\"}", ""),
                   "I cannot search the web here, so I do not know.||stop");
}

static void results_are_told_in_words(void)
{
    expect_default(REQUEST(ASK "," CALLED "," RESULT, ",\"tools\":[" CODE_TOOL "]"),
                   "The result is: 42\n||stop");
    expect_default(REQUEST(ASK "," CALLED
                               ",{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"one\"},"
                               "{\"role\":\"tool\",\"tool_call_id\":\"b\",\"content\":[{\"type\":"
                               "\"text\",\"text\":\"two\"}]}",
                           ""),
                   "The result is: one\ntwo||stop");
    expect_default(REQUEST(ASK "," CALLED "," RESULT "," ASK, ",\"tools\":[" CODE_TOOL "]"),
                   CALL_42);
}

static void a_choice_that_forces_a_call_gets_one_even_after_results(void)
{
    expect_default(REQUEST(ASK "," CALLED "," RESULT,
                           ",\"tools\":[" CODE_TOOL "],\"tool_choice\":\"required\""),
                   CALL_42);
    expect_default(
        REQUEST(
            "{\"role\":\"user\",\"content\":\"Hi\"}",
            ",\"tools\":[" CODE_TOOL "," TOOL(
                "say",
                "text") "],\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"say\"}"
                        "}"),
        "-|say({\"text\": \"Hi\"})|tool_calls");
    expect_default(
        REQUEST(
            ASK,
            ",\"tools\":[" CODE_TOOL "," TOOL(
                "say",
                "text") "],\"tool_choice\":{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":"
                        "\"auto\",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"say\"}"
                        "}]}"
                        "}"),
        NO_CODE);
}

static void the_token_limit_cuts_the_answer(void)
{
    expect_default(REQUEST(ASK, ",\"max_completion_tokens\":2"), "I cannot||length");
    expect_default(REQUEST(ASK, ",\"max_tokens\":3,\"tools\":[" CODE_TOOL "]"),
                   "-|code_interpreter({\"code\": \"pr)|length");
    expect_default(REQUEST(ASK, ",\"max_tokens\":1000"), NO_CODE);
    struct fixture f = fixture_new();
    config_add(plugin, f.config, "script", "text", "12345678", "call", "a", "arguments",
               "{\"long\": 1}", "calls", "b {}", NULL);
    expect_json(&f, REQUEST(ASK, ",\"max_tokens\":1"), "1234||length");
    expect_json(&f, REQUEST(ASK, ",\"max_tokens\":3"), "12345678|a({\"lo)|length");
    fixture_free(&f);
}

static void the_json_answer_has_all_its_members(void)
{
    struct fixture f = fixture_new();
    CU_ASSERT_EQUAL(turn(&f, REQUEST(ASK, ",\"tools\":[" CODE_TOOL "]")), 0);
    cJSON *answer = cJSON_Parse(call_text(f.call, SG_OUT_DATA));
    CU_ASSERT_STRING_EQUAL(cJSON_GetObjectItem(answer, "id")->valuestring, "chatcmpl-mock1");
    CU_ASSERT_STRING_EQUAL(cJSON_GetObjectItem(answer, "object")->valuestring, "chat.completion");
    CU_ASSERT_STRING_EQUAL(cJSON_GetObjectItem(answer, "model")->valuestring, "m-1");
    cJSON *usage = cJSON_GetObjectItem(answer, "usage");
    double prompt = cJSON_GetObjectItem(usage, "prompt_tokens")->valuedouble;
    CU_ASSERT_EQUAL(prompt, strlen(REQUEST(ASK, ",\"tools\":[" CODE_TOOL "]")) / 4);
    CU_ASSERT_EQUAL(cJSON_GetObjectItem(usage, "completion_tokens")->valuedouble, 6);
    CU_ASSERT_EQUAL(cJSON_GetObjectItem(usage, "total_tokens")->valuedouble, prompt + 6);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(call_text(f.call, SG_OUT_DATA), "\"tool_calls\":[{\"id\":\"call_mock1_0\""));
    cJSON_Delete(answer);
    CU_ASSERT_EQUAL(turn(&f, REQUEST(ASK, "")), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(call_text(f.call, SG_OUT_DATA), "\"id\":\"chatcmpl-mock2\""));
    fixture_free(&f);
}

/* ---- streams ---- */

static void append(char *text, size_t size, const cJSON *string)
{
    size_t len = strlen(text);
    if (cJSON_IsString(string)) {
        snprintf(text + len, size - len, "%s", string->valuestring);
    }
}

struct told { /* what a stream's events came to */
    char text[4096], reasoning[512], calls[4][512], ids[4][64], names[4][64], finish[32];
    size_t events, argument_pieces, text_pieces, usage_events, null_usages;
    bool done;
};

static void take_calls(struct told *told, const cJSON *delta)
{
    const cJSON *call;
    cJSON_ArrayForEach(call, cJSON_GetObjectItem(delta, "tool_calls"))
    {
        int index = cJSON_GetObjectItem(call, "index")->valueint;
        const cJSON *function = cJSON_GetObjectItem(call, "function");
        append(told->ids[index], 64, cJSON_GetObjectItem(call, "id"));
        append(told->names[index], 64, cJSON_GetObjectItem(function, "name"));
        append(told->calls[index], 512, cJSON_GetObjectItem(function, "arguments"));
        told->argument_pieces++;
    }
}

static void take_event(struct told *told, const char *data)
{
    if (strcmp(data, "data: [DONE]\n\n") == 0) {
        told->done = true;
        return;
    }
    CU_ASSERT_EQUAL_FATAL(strncmp(data, "data: {", 7), 0);
    CU_ASSERT_STRING_EQUAL(data + strlen(data) - 2, "\n\n");
    cJSON *event = cJSON_Parse(data + 6);
    CU_ASSERT_PTR_NOT_NULL_FATAL(event);
    const cJSON *usage = cJSON_GetObjectItem(event, "usage");
    told->usage_events += cJSON_IsObject(usage);
    told->null_usages += cJSON_IsNull(usage);
    const cJSON *choice = cJSON_GetArrayItem(cJSON_GetObjectItem(event, "choices"), 0);
    const cJSON *delta = cJSON_GetObjectItem(choice, "delta");
    const cJSON *content = cJSON_GetObjectItem(delta, "content");
    append(told->text, sizeof told->text, content);
    append(told->reasoning, sizeof told->reasoning,
           cJSON_GetObjectItem(delta, "reasoning_content"));
    append(told->finish, sizeof told->finish, cJSON_GetObjectItem(choice, "finish_reason"));
    told->text_pieces += cJSON_IsString(content);
    take_calls(told, delta);
    told->events++;
    cJSON_Delete(event);
}

static struct told stream(struct fixture *f, const char *request)
{
    struct told told = {0};
    CU_ASSERT_EQUAL(turn_with(f, "chat", request, true), 0);
    CU_ASSERT_STRING_EQUAL(call_text(f->call, SG_OUT_HEAD),
                           "{\"status\": 200, \"headers\": {\"content-type\": "
                           "\"text/event-stream\"}}");
    for (size_t i = 0; i < f->call->outputs_count; i++) {
        if (f->call->outputs[i].kind == SG_OUT_DATA) {
            take_event(&told, f->call->outputs[i].data);
        }
    }
    return told;
}

static void a_stream_tells_the_same_in_pieces(void)
{
    struct fixture f = fixture_new();
    struct told told = stream(&f, REQUEST(ASK, ",\"stream\":true,\"tools\":[" CODE_TOOL "]"));
    CU_ASSERT_STRING_EQUAL(told.text, "");
    CU_ASSERT_STRING_EQUAL(told.names[0], "code_interpreter");
    CU_ASSERT_STRING_EQUAL(told.calls[0], "{\"code\": \"print(6*7)\"}");
    CU_ASSERT_STRING_EQUAL(told.ids[0], "call_mock1_0");
    CU_ASSERT_EQUAL(told.argument_pieces, 4); /* the name, then 22 bytes by 8 */
    CU_ASSERT_STRING_EQUAL(told.finish, "tool_calls");
    CU_ASSERT_TRUE(told.done);
    CU_ASSERT_EQUAL(told.usage_events + told.null_usages, 0);
    told = stream(&f, REQUEST(ASK, ",\"stream\":true,\"stream_options\":{\"include_usage\":true}"));
    CU_ASSERT_STRING_EQUAL(told.text, "I cannot run code here, so I do not know the result.");
    CU_ASSERT_EQUAL(told.text_pieces, 8); /* the first, empty one, then 52 bytes by 8 */
    CU_ASSERT_STRING_EQUAL(told.finish, "stop");
    CU_ASSERT_EQUAL(told.usage_events, 1);
    CU_ASSERT_EQUAL(told.null_usages, told.events - 1);
    fixture_free(&f);
}

static void a_script_gives_reasoning_text_and_several_calls(void)
{
    struct fixture f = fixture_new();
    config_set(plugin, f.config, "chunk", "1");
    config_add(plugin, f.config, "script", "when", "/^run/i", "reasoning", "hm \xE2\x82\xAC",
               "text", "\xC3\xA4\xF0\x9F\x98\x80 so", "call", "a", "arguments", "{not json",
               "calls", "b {\"x\": 1}\nc", "finish", "stop", NULL);
    struct told told = stream(&f, REQUEST(ASK, ",\"stream\":true"));
    CU_ASSERT_STRING_EQUAL(told.text, "\xC3\xA4\xF0\x9F\x98\x80 so");
    CU_ASSERT_EQUAL(told.text_pieces, 6);
    CU_ASSERT_STRING_EQUAL(told.reasoning, "hm \xE2\x82\xAC");
    CU_ASSERT_STRING_EQUAL(told.names[0], "a");
    CU_ASSERT_STRING_EQUAL(told.calls[0], "{not json");
    CU_ASSERT_STRING_EQUAL(told.names[1], "b");
    CU_ASSERT_STRING_EQUAL(told.calls[1], "{\"x\": 1}");
    CU_ASSERT_STRING_EQUAL(told.names[2], "c");
    CU_ASSERT_STRING_EQUAL(told.calls[2], "");
    CU_ASSERT_STRING_NOT_EQUAL(told.ids[0], told.ids[1]);
    CU_ASSERT_STRING_EQUAL(told.finish, "stop");
    CU_ASSERT_EQUAL(turn(&f, REQUEST(ASK, "")), 0);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(call_text(f.call, SG_OUT_DATA), "\"reasoning_content\":\"hm \xE2\x82\xAC\""));
    fixture_free(&f);
}

static void entries_are_for_turns_and_for_so_many_times(void)
{
    struct fixture f = fixture_new();
    config_add(plugin, f.config, "script", "turn", "1", "text", "first", "times", "1", NULL);
    config_add(plugin, f.config, "script", "turn", "2", "text", "second", NULL);
    config_add(plugin, f.config, "script", "turn", "3", "text", "third", NULL);
    static const char two_results[] =
        REQUEST(ASK "," CALLED "," RESULT "," RESULT "," CALLED "," RESULT, "");
    expect_json(&f, two_results, "third||stop");
    expect_json(&f, REQUEST(ASK "," CALLED "," RESULT "," RESULT, ""), "second||stop");
    expect_json(&f, REQUEST(ASK, ""), "first||stop");
    expect_json(&f, REQUEST(ASK, ""), NO_CODE);
    expect_json(&f, REQUEST(ASK "," CALLED "," RESULT "," ASK "," CALLED "," RESULT, ""),
                "second||stop");
    fixture_free(&f);
}

static void an_error_status_comes_with_headers_and_an_error_body(void)
{
    struct fixture f = fixture_new();
    config_add(plugin, f.config, "script", "status", "429", "retry_after", "7", "text", "slow down",
               "times", "1", NULL);
    config_add(plugin, f.config, "script", "status", "503", NULL);
    CU_ASSERT_EQUAL(turn(&f, REQUEST(ASK, ",\"stream\":true")), 0);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_HEAD),
                           "{\"status\": 429, \"headers\": {\"content-type\": "
                           "\"application/json\", \"retry-after\": \"7\"}}");
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_DATA),
                           "{\"error\":{\"message\":\"slow down\",\"type\":\"rate_limit_error\","
                           "\"param\":null,\"code\":\"rate_limit_exceeded\"}}");
    CU_ASSERT_EQUAL(turn(&f, REQUEST(ASK, "")), 0);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_DATA),
                           "{\"error\":{\"message\":\"mock upstream: refused by its script\","
                           "\"type\":\"server_error\",\"param\":null,\"code\":null}}");
    fixture_free(&f);
}

static void a_raw_body_goes_out_as_it_stands(void)
{
    struct fixture f = fixture_new();
    static const char raw[] = ": hi\n\ndata: {\"odd\":\n\nevent: x\ndata: 1";
    config_add(plugin, f.config, "script", "times", "1", "raw", raw, NULL);
    config_add(plugin, f.config, "script", "raw", "{\"a\": 1.0}", NULL);
    CU_ASSERT_EQUAL(turn(&f, REQUEST(ASK, "")), 0);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_DATA), raw);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_DATA), 3);
    CU_ASSERT_PTR_NOT_NULL(strstr(call_text(f.call, SG_OUT_HEAD), "text/event-stream"));
    CU_ASSERT_EQUAL(turn(&f, REQUEST(ASK, ",\"stream\":true")), 0);
    CU_ASSERT_STRING_EQUAL(call_text(f.call, SG_OUT_DATA), "{\"a\": 1.0}");
    CU_ASSERT_PTR_NOT_NULL(strstr(call_text(f.call, SG_OUT_HEAD), "application/json"));
    fixture_free(&f);
}

static void delays_are_before_the_answer_and_between_pieces(void)
{
    struct fixture f = fixture_new();
    config_set(plugin, f.config, "delay", "100ms");
    config_set(plugin, f.config, "chunk_delay", "5ms");
    config_add(plugin, f.config, "script", "when", "slow", "text", "x", "delay", "1s",
               "chunk_delay", "10ms", NULL);
    CU_ASSERT_EQUAL(
        turn(&f, REQUEST("{\"role\":\"user\",\"content\":\"slow\"}", ",\"stream\":true")), 0);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_DATA), 4);
    CU_ASSERT_EQUAL(f.call->slept_ms, 1100 + 3 * 10);
    CU_ASSERT_EQUAL(turn(&f, REQUEST(ASK, "")), 0);
    CU_ASSERT_EQUAL(f.call->slept_ms, 100);
    fixture_free(&f);
}

/* ---- faults ---- */

#define SAY "{\"role\":\"user\",\"content\":\"x\"}"

static int turn_with_fault(struct fixture *f, const char *fault, bool as_stream)
{
    *f = fixture_new();
    config_add(plugin, f->config, "script", "text", "0123456789abcdef", "fault", fault, NULL);
    f->call->emits_max = 300;
    f->call->emit_code = SG_E_CANCELLED;
    return turn(f, as_stream ? REQUEST(SAY, ",\"stream\":true") : REQUEST(SAY, ""));
}

static void each_fault_ends_as_it_should(void)
{
    static const struct {
        const char *fault, *message;
        int code;
        size_t stream_events, json_pieces;
    } cases[] = {
        {"refuse", "the connection was refused", SG_E_UNAVAILABLE, 0, 0},
        {"hang", "the call was ended", SG_E_CANCELLED, 0, 0},
        {"cut", "", 0, 2, 1}, /* of role, 2 texts, finish, [DONE] */
        {"reset", "the connection was reset", SG_E_UNAVAILABLE, 2, 1},
        {"stall", "the call was ended", SG_E_CANCELLED, 2, 1},
        {"garbage", "", 0, 1, 1},
        {"flood", "nobody listens any more", SG_E_CANCELLED, 299, 299},
        {"error_event", "", 0, 4, 1},
    };
    for (size_t i = 0; i < 2 * COUNT_OF(cases); i++) {
        bool as_stream = i % 2 == 0;
        struct fixture f;
        CU_ASSERT_EQUAL(turn_with_fault(&f, cases[i / 2].fault, as_stream), cases[i / 2].code);
        CU_ASSERT_STRING_EQUAL(f.call->error.message, cases[i / 2].message);
        CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_DATA),
                        as_stream ? cases[i / 2].stream_events : cases[i / 2].json_pieces);
        fixture_free(&f);
    }
}

static void a_cut_body_is_half_of_it(void)
{
    struct fixture f;
    CU_ASSERT_EQUAL(turn_with_fault(&f, "none", false), 0);
    size_t len = strlen(call_text(f.call, SG_OUT_DATA));
    fixture_free(&f);
    CU_ASSERT_EQUAL(turn_with_fault(&f, "cut", false), 0);
    CU_ASSERT_EQUAL(strlen(call_text(f.call, SG_OUT_DATA)), len / 2);
    fixture_free(&f);
}

static void an_error_event_ends_the_stream_and_is_500_without_one(void)
{
    struct fixture f;
    CU_ASSERT_EQUAL(turn_with_fault(&f, "error_event", true), 0);
    const char *text = call_text(f.call, SG_OUT_DATA);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "data: {\"error\":{\"message\":\"mock upstream: the model "
                                        "failed\",\"type\":\"server_error\",\"param\":null,"
                                        "\"code\":\"server_error\"}}\n\ndata: [DONE]\n\n"));
    fixture_free(&f);
    CU_ASSERT_EQUAL(turn_with_fault(&f, "error_event", false), 0);
    CU_ASSERT_EQUAL(strncmp(call_text(f.call, SG_OUT_HEAD), "{\"status\": 500,", 15), 0);
    fixture_free(&f);
}

static void a_client_that_leaves_ends_the_answer(void)
{
    struct fixture f = fixture_new();
    f.call->emits_max = 3;
    f.call->emit_code = SG_E_CANCELLED;
    CU_ASSERT_EQUAL(turn(&f, REQUEST(ASK, ",\"stream\":true")), SG_E_CANCELLED);
    fixture_free(&f);
}

static void an_unknown_surface_is_refused(void)
{
    struct fixture f = fixture_new();
    CU_ASSERT_EQUAL(turn_with(&f, "telegraph", "{}", false), SG_E_INVALID);
    CU_ASSERT_STRING_EQUAL(
        f.call->error.message,
        "the mock upstream speaks chat, responses and messages, not 'telegraph'");
    fixture_free(&f);
}

static void the_journal_holds_every_body_byte_for_byte(void)
{
    char path[] = "/tmp/mock_upstream_XXXXXX", line[4096];
    static const char odd[] =
        "{ \"model\":\"m\",\n\"n\": 1.0, \"messages\":[ ],\"\\u00e4\":\"\xC3\xA4\t\"}";
    close(mkstemp(path));
    struct fixture f = fixture_new();
    config_set(plugin, f.config, "journal", path);
    CU_ASSERT_EQUAL(turn(&f, odd), 0);
    CU_ASSERT_EQUAL(turn_with(&f, "messages", "{}", false), 0);
    FILE *file = fopen(path, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(fgets(line, sizeof line, file));
    cJSON *entry = cJSON_Parse(line);
    CU_ASSERT_STRING_EQUAL(cJSON_GetStringValue(cJSON_GetObjectItem(entry, "surface")), "chat");
    CU_ASSERT_STRING_EQUAL(cJSON_GetStringValue(cJSON_GetObjectItem(entry, "body")), odd);
    cJSON_Delete(entry);
    CU_ASSERT_PTR_NOT_NULL_FATAL(fgets(line, sizeof line, file));
    CU_ASSERT_STRING_EQUAL(line, "{\"surface\": \"messages\", \"body\": \"{}\"}\n");
    CU_ASSERT_PTR_NULL(fgets(line, sizeof line, file));
    fclose(file);
    fixture_free(&f);
    unlink(path);
}

static void scripts_that_cannot_be_right_stop_the_start(void)
{
    struct fixture f = fixture_new();
    config_add(plugin, f.config, "script", "text", "x", "arguments", "{}", NULL);
    CU_ASSERT_EQUAL(plugin->open(f.config, f.call, &f.self, call_error(f.call)), SG_E_CONFIG);
    CU_ASSERT_STRING_EQUAL(f.call->error.message, "script entry 1 has 'arguments' without 'call'");
    fixture_free(&f);
    f = fixture_new();
    config_add(
        plugin, f.config, "script", "calls",
        "a\na\na\na\na\na\na\na\na\na\na\na\na\na\na\na\na\na\na\na\na\na\na\na\na\na\na\na\na"
        "\na\na\na",
        NULL);
    CU_ASSERT_EQUAL(plugin->open(f.config, f.call, &f.self, call_error(f.call)), SG_E_CONFIG);
    CU_ASSERT_STRING_EQUAL(f.call->error.message, "script entry 1 has more than 31 calls");
    fixture_free(&f);
}

static const struct test tests[] = {
    TEST(code_is_run_with_the_tool_that_is_offered),
    TEST(a_shell_is_given_a_command_that_runs_the_code),
    TEST(without_a_tool_the_answer_is_in_words_and_knows_no_result),
    TEST(results_are_told_in_words),
    TEST(a_choice_that_forces_a_call_gets_one_even_after_results),
    TEST(the_token_limit_cuts_the_answer),
    TEST(the_json_answer_has_all_its_members),
    TEST(a_stream_tells_the_same_in_pieces),
    TEST(a_script_gives_reasoning_text_and_several_calls),
    TEST(entries_are_for_turns_and_for_so_many_times),
    TEST(an_error_status_comes_with_headers_and_an_error_body),
    TEST(a_raw_body_goes_out_as_it_stands),
    TEST(delays_are_before_the_answer_and_between_pieces),
    TEST(each_fault_ends_as_it_should),
    TEST(a_cut_body_is_half_of_it),
    TEST(an_error_event_ends_the_stream_and_is_500_without_one),
    TEST(a_client_that_leaves_ends_the_answer),
    TEST(an_unknown_surface_is_refused),
    TEST(the_journal_holds_every_body_byte_for_byte),
    TEST(scripts_that_cannot_be_right_stop_the_start),
};

int main(int argc, char **argv)
{
    plugin = host_load("mock")->plugins[2];
    return run_tests("mock_upstream", tests, COUNT_OF(tests), argc, argv);
}
