/* What goes up of a messages request: hosted entries swapped, tool choice turned, the container cut, and all else byte for
 * byte. */
#include "base/check.h"
#include "base/limits.h"
#include "messages_bench.h"

#define FIRST ((struct surface_turn_options){.stream = false})
#define LAST ((struct surface_turn_options){.last = true})
#define REMOVED ((struct surface_turn_options){.last = true, .remove_tools = true})
#define ONE_RUN                                                                                \
    "{\"id\":\"m\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"code_"         \
    "interpreter\","                                                                           \
    "\"input\":{\"code\":\"1\"}}],\"stop_reason\":\"tool_use\",\"usage\":{\"input_tokens\":1," \
    "\"output_tokens\":100}}"

static void expect_tools(const char *given, const char *wanted)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    BUF_CLEANUP struct buf body = {0}, up = {0};
    buf_printf(&body, "{\"a\": 1.0, \"tools\" : [%s] ,\"messages\":[],\"z\":1e400}", given);
    buf_printf(&up, "{\"a\": 1.0, \"tools\" : [%s] ,\"messages\":[],\"z\":1e400}", wanted);
    bench_open(&b, body.data);
    expect_text(bench_request(&b), up.data);
}

static void c024_dated_types_of_hosted_tools_become_plain_tools(void)
{
    expect_tools(PYTHON_TOOL, PYTHON_DEFINITION);
    expect_tools(SHELL_TOOL, SHELL_DEFINITION "," EDITOR_DEFINITION);
    expect_tools("{\"type\":\"code_execution_20260521\",\"name\":\"code_execution\"}",
                 SHELL_DEFINITION "," EDITOR_DEFINITION);
    expect_tools("{\"type\":\"code_execution_29991231\",\"name\":\"code_execution\"}",
                 SHELL_DEFINITION "," EDITOR_DEFINITION);
    expect_tools(SEARCH_TOOL "," SHELL_TOOL,
                 SEARCH_DEFINITION "," SHELL_DEFINITION "," EDITOR_DEFINITION);
    expect_tools("{\"type\":\"web_search_preview_2025\"}", SEARCH_DEFINITION);
    expect_tools("{\"type\":\"web_search\"}", SEARCH_DEFINITION);
    expect_tools(FETCH_TOOL "," SEARCH_TOOL, FETCH_DEFINITION "," SEARCH_DEFINITION);
    expect_tools("{\"type\":\"web_fetch_29991231\"}", FETCH_DEFINITION);
    expect_tools("{\"type\":\"code_interpreter\"}", PYTHON_DEFINITION);
}

static void other_entries_stay_byte_for_byte(void)
{
    expect_tools("{ \"name\" : \"a\" , \"input_schema\":{\"x\":1.0} } , " PYTHON_TOOL
                 " , {\"type\":\"custom\",\"name\":\"b\"},{\"type\":\"bash_20250124\",\"name\":"
                 "\"bash\"}, 7",
                 "{ \"name\" : \"a\" , \"input_schema\":{\"x\":1.0} } , " PYTHON_DEFINITION
                 " , {\"type\":\"custom\",\"name\":\"b\"},{\"type\":\"bash_20250124\",\"name\":"
                 "\"bash\"}, 7");
}

static void a_tool_named_twice_is_shown_once(void)
{
    expect_tools(SHELL_TOOL "," OWN_TOOL "," SHELL_TOOL "," PYTHON_TOOL,
                 SHELL_DEFINITION "," EDITOR_DEFINITION "," OWN_TOOL "," PYTHON_DEFINITION);
}

static void cache_control_moves_to_the_replacement(void)
{
    expect_tools(
        "{\"type\":\"code_execution_20250522\",\"name\":\"code_execution\""
        ",\"cache_control\":{\"type\":\"ephemeral\",\"ttl\":\"1h\"}}",
        "{\"name\":\"code_interpreter\",\"description\":\"Runs Python.\",\"input_schema\":" SCHEMA(
            "code") ",\"cache_control\":{\"type\":\"ephemeral\",\"ttl\":\"1h\"}}");
    /* On the last of two, so that both are within what is cached. */
    expect_tools("{\"type\":\"code_execution_20250825\",\"name\":\"code_execution\""
                 ",\"cache_control\":{\"type\":\"ephemeral\",\"ttl\":\"1h\"}}",
                 SHELL_DEFINITION
                 ",{\"name\":\"text_editor_code_execution\",\"description\":\"Edits files.\","
                 "\"input_schema\":" SCHEMA(
                     "command") ",\"cache_control\":{\"type\":\"ephemeral\",\"ttl\":\"1h\"}}");
    expect_tools("{\"type\":\"code_execution_20250522\",\"cache_control\":null}",
                 PYTHON_DEFINITION);
}

static void without_a_shell_the_newer_tool_is_python(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    b.offers_count = 1;
    bench_open(&b, HEAD USER ",\"tools\":[" SHELL_TOOL "]}");
    expect_part(bench_request(&b), "\"tools\":[" PYTHON_DEFINITION "]}");
    bench_plain_turn(&b, ONE_RUN);
    bench_result(&b, 0, "1");
    bench_plain_turn(&b, "{\"content\":[],\"stop_reason\":\"end_turn\"}");
    expect_part(bench_finish(&b, ""), "\"name\":\"code_execution\",\"input\":{\"code\":\"1\"}");
}

static void without_an_editor_there_is_the_shell_alone(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    b.offers_count = 2;
    bench_open(&b, HEAD USER ",\"tools\":[" SHELL_TOOL "]}");
    expect_part(bench_request(&b), "\"tools\":[" SHELL_DEFINITION "]}");
}

static void expect_refusal(const char *body, const char *param, const char *message)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    CU_ASSERT_EQUAL(bench_try_open(&b, body), SG_E_INVALID);
    expect_text(b.err.param, param);
    expect_text(b.err.message, message);
}

static void versions_that_cannot_be_are_refused(void)
{
    static const char *const types[] = {"code_execution",          "code_execution_",
                                        "code_execution_2025",     "code_execution_latest",
                                        "code_execution_19990101", "code_execution_20250601",
                                        "code_execution_20261301", "code_execution_202508250",
                                        "code_execution_2025-825", "code_execution_20260732"};
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        char body[200], message[200];
        (void)snprintf(body, sizeof body, HEAD USER ",\"tools\":[" OWN_TOOL ",{\"type\":\"%s\"}]}",
                       types[i]);
        (void)snprintf(message, sizeof message,
                       "tools[1].type: unknown tool type '%s'; there are code_execution_20250522 "
                       "and code_execution_20250825",
                       types[i]);
        expect_refusal(body, "tools[1].type", message);
    }
}

static void types_that_nobody_answers_are_the_upstreams_to_judge(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    b.offers[0] = b.offers[3];
    b.offers_count = 1;
    const char *body = HEAD USER ",\"tools\":[{\"type\":\"code_execution_2025\"}," SHELL_TOOL "]}";
    CU_ASSERT_FALSE(bench_looks_for(&b, body));
    bench_open(&b, body);
    expect_text(bench_request(&b), body);
}

static void looks_for_finds_named_tools_and_what_we_made(void)
{
    struct {
        const char *body;
        bool found;
    } cases[] = {
        {HEAD USER ",\"tools\":[" PYTHON_TOOL "]}", true},
        {HEAD USER ",\"tools\":[" SHELL_TOOL "]}", true},
        {HEAD USER ",\"tools\":[" SEARCH_TOOL "]}", true},
        {HEAD USER ",\"tools\":[" OWN_TOOL "]}", false},
        {HEAD USER ",\"tools\":[{\"type\":\"custom\",\"name\":\"code_execution\"}]}", false},
        {HEAD USER "}", false},
        {HEAD USER ",\"tools\":null}", false},
        {HEAD "\"messages\":[{\"role\":\"assistant\",\"content\":[{\"type\":\"server_tool_use\","
              "\"id\":\"srvtoolu_sg00000000000000000000000000000000\"}]}]}",
         true},
        {HEAD "\"messages\":[{\"role\":\"assistant\",\"content\":[{\"type\":\"server_tool_use\","
              "\"id\":\"srvtoolu_01\"}]}]}",
         false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        CU_ASSERT_EQUAL(bench_looks_for(&b, cases[i].body), cases[i].found);
    }
    BENCH_CLEANUP struct bench none = bench_new(0);
    none.offers_count = 0;
    CU_ASSERT_FALSE(bench_looks_for(&none, cases[0].body));
}

static void always_offers_python_and_the_search_alone(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    for (size_t i = 0; i < b.offers_count; i++) {
        b.offers[i].always = true;
    }
    CU_ASSERT_TRUE(bench_looks_for(&b, HEAD USER "}"));
    bench_open(&b, HEAD USER "}");
    expect_text(bench_request(&b),
                HEAD USER ",\"tools\":[" PYTHON_DEFINITION "," SEARCH_DEFINITION "]}");
    CU_ASSERT_FALSE(bench_looks_for(&b, HEAD USER ",\"tool_choice\":{\"type\":\"none\"}}"));
    bench_clear(&b);
    b = bench_new(0);
    b.offers[0].always = true; /* but not to one that has a shell */
    bench_open(&b, HEAD USER ",\"tools\":[" SHELL_TOOL "]}");
    expect_part(bench_request(&b), "\"tools\":[" SHELL_DEFINITION "," EDITOR_DEFINITION "]}");
}

static void an_offer_without_a_kind_is_there_too(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    b.offers[0].hosted = STR("");
    bench_open(&b, HEAD USER ",\"tools\":[" OWN_TOOL "]}");
    expect_text(bench_request(&b), HEAD USER ",\"tools\":[" OWN_TOOL "," PYTHON_DEFINITION "]}");
    CU_ASSERT_EQUAL(bench_try_open(&b, HEAD USER ",\"tools\":7}"), SG_E_INVALID);
    expect_text(b.err.message, "tools must be an array");
}

static void a_clients_own_tool_of_our_name_keeps_it(void)
{
    expect_tools("{\"name\":\"code_interpreter\",\"input_schema\":{}}," PYTHON_TOOL,
                 "{\"name\":\"code_interpreter\",\"input_schema\":{}}," DEFINITION(
                     "code_interpreter_2", "Runs Python.", "code"));
    expect_tools("{\"type\":\"custom\",\"name\":\"bash_code_execution\"}," SHELL_TOOL,
                 "{\"type\":\"custom\",\"name\":\"bash_code_execution\"}," DEFINITION(
                     "bash_code_execution_2", "Runs a command.", "command") "," EDITOR_DEFINITION);
}

/* ---- tool choice ---- */

static void expect_choice(const char *tools, const char *given, struct surface_turn_options first,
                          const char *before, const char *after)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    BUF_CLEANUP struct buf body = {0};
    buf_printf(&body, HEAD USER ",\"tool_choice\":%s,\"tools\":[%s]}", given, tools);
    bench_open(&b, body.data);
    expect_part(bench_request_with(&b, first), before);
    if (after != NULL) {
        bench_plain_turn(&b, ONE_RUN);
        bench_result(&b, 0, "1");
        expect_part(bench_request(&b), after);
    }
}

static void c021_c019_a_forced_hosted_tool_is_translated_and_free_after_a_call(void)
{
    expect_choice(PYTHON_TOOL, "{\"type\":\"tool\",\"name\":\"code_execution\"}", FIRST,
                  "\"tool_choice\":{\"type\":\"tool\",\"name\":\"code_interpreter\"},",
                  "\"tool_choice\":{\"type\":\"auto\"},");
    expect_choice(PYTHON_TOOL, "{\"type\":\"code_interpreter\"}", FIRST,
                  "\"tool_choice\":{\"type\":\"tool\",\"name\":\"code_interpreter\"},",
                  "\"tool_choice\":{\"type\":\"auto\"},");
    expect_choice(SHELL_TOOL, "{\"name\":\"code_execution\",\"type\":\"tool\"}", FIRST,
                  "\"tool_choice\":{\"name\":\"bash_code_execution\",\"type\":\"tool\"},", NULL);
    expect_choice(SEARCH_TOOL, "{\"type\":\"tool\",\"name\":\"web_search\"}", FIRST,
                  "\"tool_choice\":{\"type\":\"tool\",\"name\":\"web_search\"},", NULL);
    expect_choice(PYTHON_TOOL,
                  "{ \"name\":\"code_execution\", \"disable_parallel_tool_use\":true, "
                  "\"type\":\"tool\" }",
                  FIRST,
                  "\"tool_choice\":{ \"name\":\"code_interpreter\", \"disable_parallel_tool_use\":"
                  "true, \"type\":\"tool\" },",
                  "\"tool_choice\":{ \"disable_parallel_tool_use\":true, \"type\":\"auto\" },");
}

static void any_is_free_after_a_call(void)
{
    expect_choice(PYTHON_TOOL, "{\"type\":\"any\",\"disable_parallel_tool_use\":false}", FIRST,
                  "\"tool_choice\":{\"type\":\"any\",\"disable_parallel_tool_use\":false},",
                  "\"tool_choice\":{\"type\":\"auto\",\"disable_parallel_tool_use\":false},");
}

static void b06_other_choices_stay_as_they_are(void)
{
    static const char *const choices[] = {"{\"type\":\"auto\"}",
                                          "null",
                                          "7",
                                          "{\"type\":\"tool\",\"name\":\"get_stock\"}",
                                          "{\"type\":\"tool\",\"name\":\"other\"}",
                                          "{\"type\":\"new\"}"};
    for (size_t i = 0; i < COUNT_OF(choices); i++) {
        char wanted[100];
        (void)snprintf(wanted, sizeof wanted, "\"tool_choice\":%s,", choices[i]);
        expect_choice(PYTHON_TOOL "," OWN_TOOL, choices[i], FIRST, wanted, wanted);
    }
    expect_choice("{\"name\":\"code_execution\"}," PYTHON_TOOL,
                  "{\"type\":\"tool\",\"name\":\"code_execution\"}", FIRST,
                  "\"tool_choice\":{\"type\":\"tool\",\"name\":\"code_execution\"},", NULL);
}

static void the_last_turn_has_tool_choice_none_or_no_tools(void)
{
    expect_choice(PYTHON_TOOL, "{\"type\":\"any\",\"disable_parallel_tool_use\":true}", LAST,
                  "\"tool_choice\":{\"type\":\"none\"},\"tools\":[" PYTHON_DEFINITION "]}", NULL);
    expect_choice(PYTHON_TOOL "," OWN_TOOL, "{\"type\":\"tool\",\"name\":\"get_stock\"}", LAST,
                  "\"tool_choice\":{\"type\":\"tool\",\"name\":\"get_stock\"},", NULL);
    expect_choice(PYTHON_TOOL "," OWN_TOOL, "{\"type\":\"any\"}", REMOVED,
                  "]" /* of messages */ ",\"tools\":[" OWN_TOOL "]}", NULL);
    expect_choice(PYTHON_TOOL, "{\"type\":\"auto\"}", REMOVED, "\"content\":\"hi\"}]}", NULL);
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, HEAD USER ",\"tools\":[" PYTHON_TOOL "]}");
    expect_part(bench_request_with(&b, LAST),
                "\"tools\":[" PYTHON_DEFINITION "],\"tool_choice\":{\"type\":\"none\"}}");
}

static void with_choice_none_tools_stay_and_nothing_is_run(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, HEAD USER ",\"tool_choice\":{\"type\":\"none\"},\"tools\":[" PYTHON_TOOL "]}");
    CU_ASSERT_TRUE(surface_messages.runs_nothing(b.exchange));
    expect_part(bench_request(&b),
                "\"tool_choice\":{\"type\":\"none\"},\"tools\":[" PYTHON_DEFINITION "]}");
    bench_plain_turn(&b, ONE_RUN);
    CU_ASSERT_EQUAL(b.turn.calls_count, 0);
    expect_part(bench_finish(&b, "Nothing."),
                "\"content\":[{\"type\":\"text\",\"text\":\"Nothing.\"}],\"stop_reason\":"
                "\"end_turn\"");
}

/* ---- the container ---- */

static void expect_container(const char *given, const char *id, const char *as_given)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    BUF_CLEANUP struct buf body = {0};
    buf_printf(&body, "{\"container\":%s," USER ",\"tools\":[" PYTHON_TOOL "]}", given);
    bench_open(&b, body.data);
    struct surface_container named = surface_messages.container(b.exchange);
    CU_ASSERT_TRUE(str_is(named.id, id));
    CU_ASSERT_TRUE(str_is(named.given, as_given));
    CU_ASSERT_EQUAL(named.is_demanded, id[0] != '\0');
    expect_text(bench_request(&b), "{" USER ",\"tools\":[" PYTHON_DEFINITION "]}");
}

static void a_named_container_is_demanded_and_does_not_go_up(void)
{
    expect_container("\"container_42\"", "cntr_42", "container_42");
    expect_container("\"cntr_42\"", "cntr_42", "cntr_42");
    expect_container("\"other\"", "other", "other");
    expect_container("{\"id\":\"container_42\",\"skills\":[]}", "cntr_42", "container_42");
    expect_container("{\"id\":null,\"skills\":null}", "", "");
    expect_container("{}", "", "");
    expect_container("null", "", "");
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, HEAD USER ",\"tools\":[" PYTHON_TOOL "]}");
    CU_ASSERT_EQUAL(surface_messages.container(b.exchange).id.len, 0);
}

static void a_container_of_a_wrong_form_is_refused(void)
{
    static const char *const wrong[] = {"7", "[]", "true", "\"\"", "{\"id\":7}", "{\"id\":\"\"}"};
    char body[200];
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        (void)snprintf(body, sizeof body,
                       HEAD USER ",\"container\":%s,\"tools\":[" PYTHON_TOOL "]}", wrong[i]);
        expect_refusal(body, "container",
                       "container must be a container's id, or an object with its id");
    }
    expect_refusal(HEAD USER ",\"container\":\"a\\u0000b\",\"tools\":[" PYTHON_TOOL "]}",
                   "container", "container holds a NUL");
    expect_refusal(HEAD USER
                   ",\"container\":{\"skills\":[{\"type\":\"anthropic\"}]},\"tools\":[" PYTHON_TOOL
                   "]}",
                   "container.skills", "container.skills: there are no skills on this gateway");
}

static void files_to_be_uploaded_are_refused_by_their_place(void)
{
#define UPLOAD "{\"type\":\"container_upload\",\"file_id\":\"file_1\"}"
    expect_refusal(HEAD "\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"user\","
                        "\"content\":[{\"type\":\"text\",\"text\":\"b\"}," UPLOAD
                        "]}],\"tools\":[" SHELL_TOOL "]}",
                   "messages[1].content[1]",
                   "messages[1].content[1]: files cannot be uploaded to containers here yet");
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, HEAD "\"messages\":[{\"role\":\"user\",\"content\":[" UPLOAD
                        "]}],\"tools\":[" SEARCH_TOOL "]}");
    expect_part(bench_request(&b), UPLOAD); /* no code of ours would look for it */
}

/* ---- the rest ---- */

static void messages_must_be_an_array(void)
{
    expect_refusal("{\"tools\":[" PYTHON_TOOL "]}", "messages", "messages must be an array");
    expect_refusal("{\"messages\":null,\"tools\":[" PYTHON_TOOL "]}", "messages",
                   "messages must be an array");
    expect_refusal("{\"messages\":\"hi\",\"tools\":[" PYTHON_TOOL "]}", "messages",
                   "messages must be an array");
}

static void duplicates_in_what_we_read_are_refused(void)
{
    expect_refusal(HEAD USER ",\"tools\":[{\"type\":\"a\",\"type\":\"b\"}]}", "tools[0]",
                   "duplicate key 'type' in tools[0]");
    expect_refusal(HEAD USER
                   ",\"tool_choice\":{\"type\":\"any\",\"type\":\"none\"},\"tools\":[" PYTHON_TOOL
                   "]}",
                   "tool_choice", "duplicate key 'type' in tool_choice");
}

static void later_turns_get_what_is_left_of_the_token_limit(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, HEAD USER ",\"tools\":[" PYTHON_TOOL "]}");
    expect_part(bench_request(&b), "\"max_tokens\":1000,");
    bench_plain_turn(&b, ONE_RUN);
    bench_result(&b, 0, "1");
    expect_part(bench_request(&b), "\"max_tokens\":900,");
}

static void a_budget_of_thinking_stays_below_the_limit(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(
        &b, "{\"max_tokens\":2000,\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":1950}," USER
            ",\"tools\":[" PYTHON_TOOL "]}");
    expect_part(bench_request(&b), "\"budget_tokens\":1950}");
    bench_plain_turn(&b, ONE_RUN);
    bench_result(&b, 0, "1");
    expect_part(bench_request(&b), "{\"max_tokens\":1900,\"thinking\":{\"type\":\"enabled\","
                                   "\"budget_tokens\":1899},");
}

static void a_limit_that_is_used_up_ends_the_answer(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, "{\"max_tokens\":100," USER ",\"tools\":[" PYTHON_TOOL "]}");
    bench_plain_turn(&b, ONE_RUN);
    CU_ASSERT_TRUE(b.turn.length);
    struct surface_turn_options options = FIRST;
    CU_ASSERT_EQUAL(surface_messages.turn_request(b.exchange, &options, &b.request, &b.err),
                    SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(b.err.reason, "token_limit");
    expect_part(bench_finish(&b, ""), "\"stop_reason\":\"max_tokens\"");
}

static void the_stream_is_asked_for_as_the_turn_needs_it(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, HEAD "\"stream\":true," USER ",\"tools\":[" PYTHON_TOOL "]}");
    expect_part(bench_request_with(&b, FIRST), "\"stream\":false,");
    expect_part(bench_request(&b), "\"stream\":true,");
    BENCH_CLEANUP struct bench plain = bench_new(0);
    bench_open(&plain, HEAD USER ",\"tools\":[" PYTHON_TOOL "]}");
    expect_part(bench_request_with(&plain, (struct surface_turn_options){.stream = true}),
                "],\"stream\":true}");
}

static void a_body_beyond_its_limit_is_told_as_413(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    BUF_CLEANUP struct buf body = {0};
    buf_puts(&body, HEAD USER ",\"tools\":[" PYTHON_TOOL "],\"x\":\"");
    while (body.len < LIMIT_BODY_BYTES - 100) {
        buf_puts(&body, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    }
    buf_puts(&body, "\"}");
    bench_open(&b, body.data);
    struct surface_turn_options options = FIRST;
    CU_ASSERT_EQUAL(surface_messages.turn_request(b.exchange, &options, &b.request, &b.err),
                    SG_E_LIMIT);
    CU_ASSERT_EQUAL(b.err.status, 413);
}

static const struct test tests[] = {
    TEST(c024_dated_types_of_hosted_tools_become_plain_tools),
    TEST(other_entries_stay_byte_for_byte),
    TEST(a_tool_named_twice_is_shown_once),
    TEST(cache_control_moves_to_the_replacement),
    TEST(without_a_shell_the_newer_tool_is_python),
    TEST(without_an_editor_there_is_the_shell_alone),
    TEST(versions_that_cannot_be_are_refused),
    TEST(types_that_nobody_answers_are_the_upstreams_to_judge),
    TEST(looks_for_finds_named_tools_and_what_we_made),
    TEST(always_offers_python_and_the_search_alone),
    TEST(an_offer_without_a_kind_is_there_too),
    TEST(a_clients_own_tool_of_our_name_keeps_it),
    TEST(c021_c019_a_forced_hosted_tool_is_translated_and_free_after_a_call),
    TEST(any_is_free_after_a_call),
    TEST(b06_other_choices_stay_as_they_are),
    TEST(the_last_turn_has_tool_choice_none_or_no_tools),
    TEST(with_choice_none_tools_stay_and_nothing_is_run),
    TEST(a_named_container_is_demanded_and_does_not_go_up),
    TEST(a_container_of_a_wrong_form_is_refused),
    TEST(files_to_be_uploaded_are_refused_by_their_place),
    TEST(messages_must_be_an_array),
    TEST(duplicates_in_what_we_read_are_refused),
    TEST(later_turns_get_what_is_left_of_the_token_limit),
    TEST(a_budget_of_thinking_stays_below_the_limit),
    TEST(a_limit_that_is_used_up_ends_the_answer),
    TEST(the_stream_is_asked_for_as_the_turn_needs_it),
    TEST(a_body_beyond_its_limit_is_told_as_413),
};

int main(int argc, char **argv)
{
    return run_tests("messages_request", tests, COUNT_OF(tests), argc, argv);
}
