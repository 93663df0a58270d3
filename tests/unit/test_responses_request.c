/* What goes up on responses: which requests are ours, how their tools, choices and options change, and what is refused. */
#include "responses_bench.h"

/* The next turn's body, for a request with this much more. */
static const char *sent(struct bench *b, const char *more)
{
    char *body = arena_printf(b->arena, "{\"model\":\"m\",\"input\":\"hi\"%s}", more);
    bench_open(b, body);
    return bench_request(b);
}

static void expect_sent(const char *more, const char *part)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    expect_part(sent(&b, more), part);
}

static void expect_not_sent(const char *more, const char *part)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    CU_ASSERT_PTR_NULL(strstr(sent(&b, more), part));
}

static void expect_refused(const char *body, int code, const char *param, const char *message)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    CU_ASSERT_EQUAL(bench_try_open(&b, body), code);
    CU_ASSERT_STRING_EQUAL(b.err.param, param);
    CU_ASSERT_STRING_EQUAL(b.err.message, message);
}

/* ---- which requests are ours? ---- */

static void requests_that_name_a_hosted_tool_of_ours_are_found(void)
{
    static const struct {
        const char *body;
        bool is_ours;
    } cases[] = {
        {"{\"input\":\"x\",\"tools\":[{\"type\":\"code_interpreter\"}]}", true},
        {"{\"input\":\"x\",\"tools\":[{\"type\":\"code_interpreter\",\"container\":\"cntr_1\"}]}",
         true},
        {"{\"input\":\"x\",\"tools\":[{\"type\":\"web_search_preview_2025_03_11\"}]}", true},
        {"{\"input\":\"x\",\"tools\":[{\"type\":\"function\",\"name\":\"code_interpreter\"}]}",
         false},
        {"{\"input\":\"x\",\"tools\":[{\"type\":\"image_generation\"}]}", false},
        {"{\"input\":\"x\",\"tools\":null}", false},
        {"{\"input\":\"x\"}", false},
        {"{\"input\":[{\"type\":\"code_interpreter_call\",\"id\":\"ci_sg1\",\"code\":\"\"}]}",
         true},
        {"{\"input\":[{\"type\":\"code_interpreter_call\",\"id\":\"ci_68a\",\"code\":\"\"}]}",
         false},
        {"{\"input\":[7,{\"id\":\"ci_sg1\",\"type\":\"message\",\"role\":\"user\"}]}", false},
        {"{\"input\":\"x\",\"previous_response_id\":\"resp_sg1\"}", true},
        {"{\"input\":\"x\",\"previous_response_id\":\"resp_68a\"}", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        CU_ASSERT_EQUAL(bench_looks_for(&b, cases[i].body), cases[i].is_ours);
        if (bench_looks_for(&b, cases[i].body) != cases[i].is_ours) {
            fprintf(stderr, "%s\n", cases[i].body);
        }
    }
    CU_ASSERT_PTR_EQUAL(surface_of_path(STR("/v1/responses")), &surface_responses);
}

static void where_nothing_is_offered_only_what_we_keep_is_ours(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    b.offers_count = 0;
    CU_ASSERT_FALSE(bench_looks_for(
        &b, "{\"input\":\"x\",\"tools\":[{\"type\":\"code_interpreter\",\"type\":\"x\"}]}"));
    CU_ASSERT_TRUE(bench_looks_for(&b, "{\"input\":\"x\",\"previous_response_id\":\"resp_sg1\"}"));
}

static void a_tool_that_is_always_offered_is_added(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    b.offers[0].always = true;
    CU_ASSERT_TRUE(bench_looks_for(&b, "{\"model\":\"m\",\"input\":\"hi\"}"));
    CU_ASSERT_FALSE(
        bench_looks_for(&b, "{\"model\":\"m\",\"input\":\"hi\",\"tool_choice\":\"none\"}"));
    CU_ASSERT_STRING_EQUAL(sent(&b, ""),
                           "{\"model\":\"m\",\"input\":\"hi\",\"tools\":[" CODE_DEFINITION
                           "],\"store\":false}");
}

/* ---- tools ---- */

static void b03_the_entry_is_swapped_and_the_rest_stays_byte_for_byte(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(
        &b, "{ \"model\" : \"m\", \"temperature\":1.0,\"input\":[ {\"role\":\"user\",\"content\":"
            "\"\\u0041\"} ] ,\"tools\":[" OWN_TOOL ", " CODE_TOOL
            ",{\"type\":\"code_interpreter\"},{\"type\":\"image_generation\"}],\"x\":1e400,"
            "\"store\":false}");
    CU_ASSERT_STRING_EQUAL(
        bench_request(&b),
        "{ \"model\" : \"m\", \"temperature\":1.0,\"input\":[ {\"role\":\"user\",\"content\":"
        "\"\\u0041\"} ] ,\"tools\":[" OWN_TOOL ", " CODE_DEFINITION
        ",{\"type\":\"image_generation\"}],\"x\":1e400,\"store\":false}");
}

static void c025_tools_of_other_kinds_go_up_untouched(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    const char *body = sent(&b, ",\"tools\":[{\"type\":\"web_search\",\"filters\":{}},{\"type\":"
                                "\"function\",\"name\":\"shell\",\"parameters\":{\"type\":"
                                "\"object\"}},{\"type\":\"namespace\",\"name\":\"n\",\"tools\":[]},"
                                "{\"type\":\"mcp\",\"server_label\":\"s\"}]");
    expect_part(body, "\"tools\":[{\"type\":\"function\",\"name\":\"web_search\",");
    expect_part(body, "{\"type\":\"function\",\"name\":\"shell\",\"parameters\":{\"type\":"
                      "\"object\"}},{\"type\":\"namespace\",\"name\":\"n\",\"tools\":[]},"
                      "{\"type\":\"mcp\",\"server_label\":\"s\"}]");
}

static void our_function_takes_another_name_where_the_client_has_it(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    expect_part(sent(&b, ",\"tools\":[" CODE_TOOL
                         ",{\"type\":\"function\",\"name\":\"code_interpreter\"}],"
                         "\"tool_choice\":{\"type\":\"code_interpreter\"}"),
                "\"tool_choice\":{\"type\":\"function\",\"name\":\"code_interpreter_2\"}");
    bench_plain_turn(&b, PLAIN(CALL_ITEM("f1", "c1", "code_interpreter", "{}", "completed")));
    CU_ASSERT_EQUAL(b.turn.calls_count, 0); /* B09, B19: the client's own */
    CU_ASSERT_TRUE(b.turn.has_client_calls);
}

static void cache_control_moves_to_the_function(void)
{
    expect_sent(",\"tools\":[{\"type\":\"code_interpreter\",\"cache_control\":{\"type\":"
                "\"ephemeral\"}}]",
                "\"strict\":false,\"cache_control\":{\"type\":\"ephemeral\"}}]");
}

static void a_container_is_read_from_the_tool(void)
{
    static const struct {
        const char *container, *id;
        bool demanded;
    } cases[] = {{"\"cntr_12\"", "cntr_12", true},
                 {"\"other\"", "other", true},
                 {"{\"type\":\"auto\",\"file_ids\":[]}", "", false},
                 {"null", "", false}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        char *more = arena_printf(b.arena,
                                  ",\"tools\":[{\"type\":\"code_interpreter\","
                                  "\"container\":%s}]",
                                  cases[i].container);
        (void)sent(&b, more);
        struct surface_container named = surface_responses.container(b.exchange);
        CU_ASSERT_TRUE(str_is(named.id, cases[i].id));
        CU_ASSERT_TRUE(str_is(named.given, cases[i].id));
        CU_ASSERT_EQUAL(named.is_demanded, cases[i].demanded);
    }
}

static void a_container_that_is_none_is_refused(void)
{
    static const struct {
        const char *container, *message;
    } cases[] = {
        {"5", "tools[0].container must be a container's id or {\"type\": \"auto\"}"},
        {"\"\"", "tools[0].container must be a container's id or {\"type\": \"auto\"}"},
        {"true", "tools[0].container must be a container's id or {\"type\": \"auto\"}"},
        {"[\"cntr_1\"]", "tools[0].container must be a container's id or {\"type\": \"auto\"}"},
        {"{\"type\":\"new\"}",
         "tools[0].container must be a container's id or {\"type\": \"auto\"}"},
        {"{\"type\":5}", "tools[0].container must be a container's id or {\"type\": \"auto\"}"},
        {"{\"type\":\"auto\",\"id\":\"cntr_1\"}",
         "tools[0].container must be a container's id or {\"type\": \"auto\"}"},
        {"{\"type\":\"auto\",\"file_ids\":[\"file-1\"]}",
         "tools[0].container.file_ids: there are no uploaded files on this gateway"},
        {"{\"type\":\"auto\",\"type\":\"auto\"}", "duplicate key 'type' in tools[0].container"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena *arena = arena_new(0);
        expect_refused(arena_printf(arena,
                                    "{\"input\":\"x\",\"tools\":[{\"type\":\"code_interpreter\","
                                    "\"container\":%s}]}",
                                    cases[i].container),
                       SG_E_INVALID, "tools[0].container", cases[i].message);
        arena_free(arena);
    }
}

/* ---- tool choice ---- */

static void b05_c021_a_forced_choice_is_the_functions(void)
{
    static const char *const choices[] = {
        "{\"type\":\"code_interpreter\"}",
        "{\"type\":\"hosted_tool\",\"name\":\"code_interpreter\"}",
        "{\"type\":\"function\",\"name\":\"code_interpreter\"}"};
    for (size_t i = 0; i < COUNT_OF(choices); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        char *more =
            arena_printf(b.arena, ",\"tools\":[" CODE_TOOL "],\"tool_choice\":%s", choices[i]);
        expect_part(sent(&b, more),
                    "\"tool_choice\":{\"type\":\"function\",\"name\":\"code_interpreter\"}");
        bench_turn(&b, RUN_42);
        bench_result(&b, 0, "42");
        expect_part(bench_request(&b), "\"tool_choice\":\"auto\"");
    }
}

static void b06_other_choices_stay(void)
{
    static const char *const choices[] = {
        "\"auto\"", "\"required\"", "{\"type\":\"function\",\"name\":\"get_stock\"}",
        "{\"type\":\"mcp\",\"server_label\":\"s\",\"name\":null}", "\"none\""};
    for (size_t i = 0; i < COUNT_OF(choices); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        char *more = arena_printf(
            b.arena, ",\"tools\":[" CODE_TOOL "," OWN_TOOL "],\"tool_choice\":%s", choices[i]);
        expect_part(sent(&b, more), arena_printf(b.arena, "\"tool_choice\":%s", choices[i]));
    }
}

static void allowed_tools_are_renamed_and_lose_their_force(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    expect_part(sent(&b, ",\"tools\":[" CODE_TOOL "," OWN_TOOL "],\"tool_choice\":{\"type\":"
                         "\"allowed_tools\",\"mode\":\"required\",\"tools\":[{\"type\":"
                         "\"code_interpreter\"},{\"type\":\"function\",\"name\":\"get_stock\"}]}"),
                "\"mode\":\"required\",\"tools\":[{\"type\":\"function\",\"name\":\"code_"
                "interpreter\"},{\"type\":\"function\",\"name\":\"get_stock\"}]");
    bench_turn(&b, RUN_42);
    bench_result(&b, 0, "42");
    expect_part(bench_request(&b), "\"mode\":\"auto\"");
}

static void in_the_last_turn_tools_are_refused_or_gone(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(
        &b, "{\"model\":\"m\",\"input\":\"hi\",\"parallel_tool_calls\":true,\"tools\":[" CODE_TOOL
            "],\"tool_choice\":\"required\"}");
    CU_ASSERT_STRING_EQUAL(
        bench_request_with(&b, (struct surface_turn_options){.last = true}),
        "{\"model\":\"m\",\"input\":\"hi\",\"parallel_tool_calls\":true,\"tools\":[" CODE_DEFINITION
        "],\"tool_choice\":\"none\",\"store\":false}");
    CU_ASSERT_STRING_EQUAL(
        bench_request_with(&b, (struct surface_turn_options){.last = true, .remove_tools = true}),
        "{\"model\":\"m\",\"input\":\"hi\",\"store\":false}");
}

/* ---- options ---- */

static void what_only_we_answer_does_not_go_up(void)
{
    static const char with[] = ",\"tools\":[" CODE_TOOL "],\"include\":[\"code_interpreter_call."
                               "outputs\",\"message.output_text.logprobs\",\"web_search_call."
                               "action.sources\"],\"max_tool_calls\":3,\"background\":false,"
                               "\"store\":true,\"previous_response_id\":null";
    expect_sent(with, "\"include\":[\"message.output_text.logprobs\"]");
    expect_sent(with, "\"store\":false");
    expect_not_sent(with, "max_tool_calls");
    expect_not_sent(with, "background");
    expect_not_sent(with, "previous_response_id");
    expect_not_sent(",\"tools\":[" CODE_TOOL "]," WITH_OUTPUTS, "include");
}

static void the_upstreams_own_search_keeps_its_include(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    b.offers_count = 1;
    expect_part(sent(&b, ",\"tools\":[" CODE_TOOL ",{\"type\":\"web_search\"}],\"include\":["
                         "\"web_search_call.action.sources\",\"code_interpreter_call.outputs\"]"),
                "\"include\":[\"web_search_call.action.sources\"]");
}

static void encrypted_reasoning_is_asked_for_where_the_upstream_gives_it(void)
{
    static const struct {
        const char *more, *part;
    } cases[] = {{",\"tools\":[" CODE_TOOL "]", "\"include\":[\"reasoning.encrypted_content\"]"},
                 {",\"tools\":[" CODE_TOOL "]," WITH_OUTPUTS,
                  "\"include\":[\"reasoning.encrypted_content\"]"},
                 {",\"tools\":[" CODE_TOOL "],\"include\":null",
                  "\"include\":[\"reasoning.encrypted_content\"]"},
                 {",\"tools\":[" CODE_TOOL "],\"include\":[\"reasoning.encrypted_content\"]",
                  "\"include\":[\"reasoning.encrypted_content\"]"},
                 {",\"tools\":[" CODE_TOOL "],\"include\":[\"x\"]",
                  "\"include\":[\"reasoning.encrypted_content\",\"x\"]"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        b.asks_for_reasoning = true;
        expect_part(sent(&b, cases[i].more), cases[i].part);
    }
}

static void the_streaming_form_is_the_turns(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, "{\"model\":\"m\",\"stream\":true,\"stream_options\":{\"include_obfuscation\":"
                   "false},\"input\":\"hi\",\"tools\":[" CODE_TOOL "]}");
    expect_part(bench_request_with(&b, (struct surface_turn_options){.stream = true}),
                "\"stream\":true,\"stream_options\":{\"include_obfuscation\":false}");
    expect_part(bench_request(&b), "{\"model\":\"m\",\"stream\":false,\"input\""); /* B18 */
}

/* ---- input ---- */

static void b42_input_may_be_text_a_list_or_absent(void)
{
    static const struct {
        const char *input, *first, *later;
    } cases[] = {{",\"input\":\"h\\u0069\"", ",\"input\":\"h\\u0069\"",
                  ",\"input\":[{\"role\":\"user\",\"content\":\"h\\u0069\"},{\"id\":\"fc_1\""},
                 {",\"input\":[]", ",\"input\":[]", ",\"input\":[{\"id\":\"fc_1\""},
                 {",\"input\":[{\"role\":\"user\",\"content\":\"x\"} ]",
                  ",\"input\":[{\"role\":\"user\",\"content\":\"x\"} ]",
                  ",\"input\":[{\"role\":\"user\",\"content\":\"x\"} ,{\"id\":\"fc_1\""},
                 {",\"input\":null", ",\"input\":null", ",\"input\":[{\"id\":\"fc_1\""},
                 {"", "{\"model\":\"m\",\"tools\"", ",\"input\":[{\"id\":\"fc_1\""}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        bench_open(&b, arena_printf(b.arena, "{\"model\":\"m\"%s,\"tools\":[" CODE_TOOL "]}",
                                    cases[i].input));
        expect_part(bench_request(&b), cases[i].first);
        bench_turn(&b, RUN_42);
        bench_result(&b, 0, "42");
        expect_part(bench_request(&b), cases[i].later);
    }
}

static void what_cannot_be_done_is_refused(void)
{
#define WITH(more) "{\"model\":\"m\",\"input\":\"hi\",\"tools\":[" CODE_TOOL "]," more "}"
    expect_refused("{\"model\":\"m\",\"input\":5,\"tools\":[" CODE_TOOL "]}", SG_E_INVALID, "input",
                   "input must be a string or an array");
    expect_refused(
        WITH("\"background\":true"), SG_E_INVALID, "background",
        "background cannot be true in a request with hosted tools: nothing runs behind the "
        "answer.");
    expect_refused(WITH("\"conversation\":\"conv_1\""), SG_E_INVALID, "conversation",
                   "conversation has no meaning in a request with hosted tools: say "
                   "previous_response_id, or send the whole input.");
    expect_refused(WITH("\"max_tool_calls\":-1"), SG_E_INVALID, "max_tool_calls",
                   "max_tool_calls must be a whole number, 0 or more");
    expect_refused(WITH("\"max_tool_calls\":\"3\""), SG_E_INVALID, "max_tool_calls",
                   "max_tool_calls must be a whole number, 0 or more");
    expect_refused(WITH("\"max_tool_calls\":1.5"), SG_E_INVALID, "max_tool_calls",
                   "max_tool_calls must be a whole number, 0 or more");
    expect_refused(WITH("\"previous_response_id\":7"), SG_E_INVALID, "previous_response_id",
                   "previous_response_id must be a string");
    expect_refused(WITH("\"tool_choice\":{\"type\":\"auto\",\"type\":\"x\"}"), SG_E_INVALID,
                   "tool_choice", "duplicate key 'type' in tool_choice");
    expect_refused("{\"input\":\"x\",\"tools\":[{\"type\":\"code_interpreter\",\"type\":\"x\"}]}",
                   SG_E_INVALID, "tools[0]", "duplicate key 'type' in tools[0]");
}

static void no_calls_at_all_may_be_allowed(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    (void)sent(&b, ",\"tools\":[" CODE_TOOL "],\"max_tool_calls\":0");
    CU_ASSERT_EQUAL(surface_responses.calls_max(b.exchange), 0);
    BENCH_CLEANUP struct bench any = bench_new(0);
    (void)sent(&any, ",\"tools\":[" CODE_TOOL "],\"max_tool_calls\":null");
    CU_ASSERT_EQUAL(surface_responses.calls_max(any.exchange), SIZE_MAX);
}

static void results_can_be_cut(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    char *big = arena_alloc(b.arena, 5001);
    memset(big, 'x', 5000);
    bench_open(&b, PLAIN_BODY);
    bench_turn(&b, RUN_42);
    bench_result(&b, 0, big);
    CU_ASSERT_TRUE(surface_responses.results_cut(b.exchange, 2048));
    expect_part(bench_request(&b), "bytes cut: the context is full");
    CU_ASSERT_TRUE(b.request.len < 3500);
    CU_ASSERT_FALSE(surface_responses.results_cut(b.exchange, 2048));
}

static void every_option_is_echoed_and_the_rest_has_its_defaults(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(
        &b,
        "{\"model\":\"m\",\"input\":\"hi\",\"temperature\":0.10,\"metadata\":{\"a\":\"b\"},"
        "\"reasoning\":{\"effort\":\"high\"},\"instructions\":\"Be.\",\"tool_choice\":"
        "{\"type\":\"code_interpreter\"},\"store\":false,\"max_tool_calls\":4,\"tools\":[" CODE_TOOL
        "]}");
    bench_plain_turn(&b, PLAIN(MESSAGE("m1", "Hi.")));
    bench_finish(&b, "");
    ANSWER_CLEANUP cJSON *answer = bench_answer(&b);
    expect_part(b.out.data, "\"temperature\":0.10,");
    expect_printed(cJSON_GetObjectItem(answer, "metadata"), "{\"a\":\"b\"}");
    expect_printed(cJSON_GetObjectItem(answer, "reasoning"), "{\"effort\":\"high\"}");
    expect_printed(cJSON_GetObjectItem(answer, "instructions"), "\"Be.\"");
    expect_printed(cJSON_GetObjectItem(answer, "tool_choice"), "{\"type\":\"code_interpreter\"}");
    expect_printed(cJSON_GetObjectItem(answer, "tools"), "[" CODE_TOOL "]");
    expect_printed(cJSON_GetObjectItem(answer, "store"), "false");
    expect_printed(cJSON_GetObjectItem(answer, "max_tool_calls"), "4");
    expect_printed(cJSON_GetObjectItem(answer, "top_p"), "1");
    expect_printed(cJSON_GetObjectItem(answer, "truncation"), "\"disabled\"");
    expect_printed(cJSON_GetObjectItem(answer, "text"),
                   "{\"format\":{\"type\":\"text\"},\"verbosity\":\"medium\"}");
    expect_printed(cJSON_GetObjectItem(answer, "error"), "null");
}

static const struct test tests[] = {
    TEST(requests_that_name_a_hosted_tool_of_ours_are_found),
    TEST(where_nothing_is_offered_only_what_we_keep_is_ours),
    TEST(a_tool_that_is_always_offered_is_added),
    TEST(b03_the_entry_is_swapped_and_the_rest_stays_byte_for_byte),
    TEST(c025_tools_of_other_kinds_go_up_untouched),
    TEST(our_function_takes_another_name_where_the_client_has_it),
    TEST(cache_control_moves_to_the_function),
    TEST(a_container_is_read_from_the_tool),
    TEST(a_container_that_is_none_is_refused),
    TEST(b05_c021_a_forced_choice_is_the_functions),
    TEST(b06_other_choices_stay),
    TEST(allowed_tools_are_renamed_and_lose_their_force),
    TEST(in_the_last_turn_tools_are_refused_or_gone),
    TEST(what_only_we_answer_does_not_go_up),
    TEST(the_upstreams_own_search_keeps_its_include),
    TEST(encrypted_reasoning_is_asked_for_where_the_upstream_gives_it),
    TEST(the_streaming_form_is_the_turns),
    TEST(b42_input_may_be_text_a_list_or_absent),
    TEST(what_cannot_be_done_is_refused),
    TEST(no_calls_at_all_may_be_allowed),
    TEST(results_can_be_cut),
    TEST(every_option_is_echoed_and_the_rest_has_its_defaults),
};

int main(int argc, char **argv)
{
    return run_tests("responses_request", tests, COUNT_OF(tests), argc, argv);
}
