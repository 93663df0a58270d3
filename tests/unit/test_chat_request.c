/* Chat requests: what is taken for hosted, what goes up for each turn, and what is refused with which words. Bodies are
 * compared as bytes, since nothing may change that is not ours to change. */
#include "base/check.h"
#include "chat_bench.h"

static void expect_body(const char *body, const char *wanted)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, body);
    const char *got = bench_request(&b);
    CU_ASSERT_STRING_EQUAL(got, wanted);
    if (strcmp(got, wanted) != 0) {
        fprintf(stderr, "got    %s\nwanted %s\n", got, wanted);
    }
}

static void expect_refused(const char *body, const char *param, const char *message)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    CU_ASSERT_EQUAL(bench_try_open(&b, body), SG_E_INVALID);
    CU_ASSERT_STRING_EQUAL(b.err.param, param);
    CU_ASSERT_STRING_EQUAL(b.err.message, message);
    CU_ASSERT_PTR_NULL(b.exchange);
}

/* ---- paths and interest ---- */

static void chat_is_found_with_and_without_v1(void)
{
    CU_ASSERT_PTR_EQUAL(surface_of_path(STR("/v1/chat/completions")), &surface_chat);
    CU_ASSERT_PTR_EQUAL(surface_of_path(STR("/chat/completions")), &surface_chat);
    CU_ASSERT_PTR_NULL(surface_of_path(STR("/v1/chat/completions/")));
    CU_ASSERT_PTR_NULL(surface_of_path(STR("/v1/v1/chat/completions")));
    CU_ASSERT_PTR_NULL(surface_of_path(STR("/v1/completions")));
    CU_ASSERT_PTR_NULL(surface_of_path(STR("/v1/embeddings")));
    CU_ASSERT_PTR_NULL(surface_of_path(STR("")));
}

static void b08_only_hosted_tools_that_an_offer_answers_are_looked_for(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    CU_ASSERT_TRUE(bench_looks_for(&b, "{\"tools\":[" CODE_TOOL "]}"));
    CU_ASSERT_TRUE(bench_looks_for(
        &b,
        "{\"tools\":[{\"container\":{\"type\":\"auto\"},\"type\":\"code\\u005finterpreter\"}]}"));
    CU_ASSERT_TRUE(bench_looks_for(&b, "{\"tools\":[{\"type\":\"web_search\"}]}"));
    CU_ASSERT_TRUE(bench_looks_for(&b, "{\"tools\":[{\"type\":\"web_search_preview\"}]}"));
    CU_ASSERT_TRUE(bench_looks_for(&b, "{\"tools\":[{\"type\":\"web_search_2025_08_26\"}]}"));
    CU_ASSERT_TRUE(bench_looks_for(&b, "{\"tools\":[{\"type\":\"browser_search\"}]}"));
    CU_ASSERT_FALSE(bench_looks_for(&b, "{\"tools\":[{\"type\":\"file_search\"}]}"));
    CU_ASSERT_FALSE(bench_looks_for(&b, "{\"tools\":[{\"type\":\"Code_Interpreter\"}]}"));
    CU_ASSERT_FALSE(bench_looks_for(&b, "{\"tools\":[{\"type\":\"code_interpreter_x\"}]}"));
    CU_ASSERT_FALSE(bench_looks_for(&b, "{\"tools\":[" OWN_TOOL ",3,null,\"code_interpreter\"]}"));
    CU_ASSERT_FALSE(bench_looks_for(&b, "{\"tools\":[{\"type\":\"function\",\"function\":{\"name\":"
                                        "\"code_interpreter\"}}]}"));
    CU_ASSERT_FALSE(bench_looks_for(&b, "{\"tools\":{\"type\":\"code_interpreter\"}}"));
    CU_ASSERT_FALSE(bench_looks_for(&b, "{\"tools\":null}"));
    CU_ASSERT_FALSE(bench_looks_for(&b, "{}"));
    b.offers_count = 1;
    CU_ASSERT_FALSE(bench_looks_for(&b, "{\"tools\":[{\"type\":\"web_search\"}]}"));
    b.offers_count = 0;
    CU_ASSERT_FALSE(bench_looks_for(&b, "{\"tools\":[" CODE_TOOL "]}"));
}

static void an_offer_of_always_counts_as_named_but_for_choice_none(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    b.offers[0].always = true;
    CU_ASSERT_TRUE(bench_looks_for(&b, "{}"));
    CU_ASSERT_TRUE(bench_looks_for(&b, "{\"tool_choice\":\"auto\"}"));
    CU_ASSERT_FALSE(bench_looks_for(&b, "{\"tool_choice\":\"none\"}"));
}

static void history_with_runs_of_ours_is_looked_for(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    CU_ASSERT_TRUE(bench_looks_for(&b, "{\"messages\":[{\"role\":\"user\"},{\"executed_tools\":"
                                       "[{\"id\":\"ci_sg00\"}]}]}"));
    CU_ASSERT_FALSE(
        bench_looks_for(&b, "{\"messages\":[{\"executed_tools\":[{\"id\":\"other\"}]}]}"));
    CU_ASSERT_FALSE(
        bench_looks_for(&b, "{\"messages\":[{\"content\":\"\\\"executed_tools\\\" ci_sg\"}]}"));
}

/* ---- tools ---- */

static void b03_b04_a_hosted_tool_goes_up_as_a_nested_function(void)
{
    expect_body("{\"model\":\"m\"," USER ",\"tools\":[" CODE_TOOL "]}",
                "{\"model\":\"m\"," USER ",\"tools\":[" CODE_DEFINITION "]}");
    expect_body("{" USER ",\"tools\":[{\"type\":\"code_interpreter\",\"container\":{\"type\":"
                "\"auto\",\"file_ids\":[]}}],\"temperature\":0}",
                "{" USER ",\"tools\":[" CODE_DEFINITION "],\"temperature\":0}");
}

static void what_is_not_ours_arrives_byte_for_byte(void)
{
    expect_body("{ \"seed\" : 9007199254740993,\n\"x\":[1.0 , 1e400,\"\\u00e4\\/\"]," USER
                ",\"tools\":[ " OWN_TOOL " , " CODE_TOOL " ],\"z\":-0 }",
                "{ \"seed\" : 9007199254740993,\n\"x\":[1.0 , 1e400,\"\\u00e4\\/\"]," USER
                ",\"tools\":[ " OWN_TOOL " , " CODE_DEFINITION " ],\"z\":-0 }");
}

static void several_entries_of_one_kind_become_one_function(void)
{
    expect_body("{" USER ",\"tools\":[" CODE_TOOL "," OWN_TOOL "," CODE_TOOL "," CODE_TOOL "]}",
                "{" USER ",\"tools\":[" CODE_DEFINITION "," OWN_TOOL "]}");
    expect_body("{" USER ",\"tools\":[" CODE_TOOL "," CODE_TOOL ",{\"type\":\"file_search\"}]}",
                "{" USER ",\"tools\":[" CODE_DEFINITION ",{\"type\":\"file_search\"}]}");
}

static void cache_control_moves_to_the_function(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, "{" USER ",\"tools\":[{\"type\":\"code_interpreter\",\"cache_control\":"
                   "{\"type\":\"ephemeral\"}}]}");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(bench_request(&b), "[\"code\"]}},\"cache_control\":{\"type\":\"ephemeral\"}}]}"));
}

static void a_clients_function_of_our_name_keeps_it(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b,
               "{" USER ",\"tools\":[" CODE_TOOL ",{\"type\":\"function\",\"function\":{\"name\":"
               "\"code_interpreter\"}},{\"type\":\"function\",\"function\":{\"name\":"
               "\"code_interpreter_2\"}}]}");
    const char *body = bench_request(&b);
    CU_ASSERT_PTR_NOT_NULL(strstr(body, "{\"name\":\"code_interpreter_3\",\"description\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(body, "{\"name\":\"code_interpreter\"}"));
}

static void an_offer_of_always_is_appended(void)
{
    static const struct {
        const char *tools, *wanted;
    } cases[] = {
        {",\"tools\":[" OWN_TOOL "]", ",\"tools\":[" OWN_TOOL "," CODE_DEFINITION "]"},
        {",\"tools\":[]", ",\"tools\":[" CODE_DEFINITION "]"},
        {",\"tools\":null", ",\"tools\":[" CODE_DEFINITION "]"},
        {"", ",\"tools\":[" CODE_DEFINITION "]"},
        {",\"tools\":[" CODE_TOOL "," CODE_TOOL "]", ",\"tools\":[" CODE_DEFINITION "]"},
        {",\"tools\":[" OWN_TOOL "],\"tool_choice\":\"none\"",
         ",\"tools\":[" OWN_TOOL "],\"tool_choice\":\"none\""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        b.offers[0].always = true;
        BUF_CLEANUP struct buf body = {0}, wanted = {0};
        buf_printf(&body, "{" USER "%s}", cases[i].tools);
        buf_printf(&wanted, "{" USER "%s}", cases[i].wanted);
        bench_open(&b, body.data);
        CU_ASSERT_STRING_EQUAL(bench_request(&b), wanted.data);
    }
}

static void definitions_are_the_same_bytes_on_every_turn(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, "{\"tools\":[" CODE_TOOL "]," USER "}");
    BUF_CLEANUP struct buf first = {0};
    buf_puts(&first, bench_request(&b));
    bench_turn(&b, ROLE RUN_42);
    bench_result(&b, 0, "42");
    const char *second = bench_request(&b);
    first.data[first.len - 2] = '\0'; /* up to the end of the messages */
    CU_ASSERT_EQUAL(strncmp(second, first.data, first.len - 2), 0);
}

/* ---- tool choice ---- */

#define CHOICE_NAMED "{\"type\":\"function\",\"function\":{\"name\":\"code_interpreter\"}}"

static void expect_choice(const char *tools, const char *choice, const char *wanted)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    BUF_CLEANUP struct buf body = {0}, tail = {0};
    buf_printf(&body, "{" USER ",\"tools\":[%s],\"tool_choice\":%s}", tools, choice);
    buf_printf(&tail, ",\"tool_choice\":%s}", wanted);
    bench_open(&b, body.data);
    const char *got = strstr(bench_request(&b), ",\"tool_choice\"");
    CU_ASSERT_PTR_NOT_NULL_FATAL(got);
    CU_ASSERT_STRING_EQUAL(got, tail.data);
}

static void b04_b05_c021_a_forced_hosted_tool_is_renamed(void)
{
    expect_choice(CODE_TOOL, "{\"type\":\"code_interpreter\"}", CHOICE_NAMED);
    expect_choice(CODE_TOOL, "{\"type\":\"hosted_tool\",\"name\":\"code_interpreter\"}",
                  CHOICE_NAMED);
    expect_choice(CODE_TOOL,
                  "{ \"function\":{\"name\":\"code_interpreter\"},\"type\":\"function\"}",
                  CHOICE_NAMED);
    expect_choice(CODE_TOOL, "{\"type\":\"function\",\"name\":\"code_interpreter\"}", CHOICE_NAMED);
    expect_choice("{\"type\":\"web_search\"}", "{\"type\":\"web_search_preview\"}",
                  "{\"type\":\"function\",\"function\":{\"name\":\"web_search\"}}");
}

static void b06_other_choices_stay_as_they_are(void)
{
    static const char *const left[] = {
        "\"auto\"",
        "\"none\"",
        "\"required\"",
        "null",
        "{\"type\":\"function\",\"function\":{\"name\":\"get_stock\"}}",
        "{\"type\":\"function\",\"function\":{\"name\":\"unknown\"}}",
        "{\"type\":\"web_search\"}",
        "{\"type\":\"custom\",\"custom\":{\"name\":\"code_interpreter\"}}",
        "{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":\"auto\",\"tools\":[]}}",
    };
    for (size_t i = 0; i < COUNT_OF(left); i++) {
        expect_choice(CODE_TOOL "," OWN_TOOL, left[i], left[i]);
    }
    const char *own = "{\"type\":\"function\",\"function\":{\"name\":\"code_interpreter\"}}";
    expect_choice(CODE_TOOL ",{\"type\":\"function\",\"function\":{\"name\":\"code_interpreter\"}}",
                  own, own);
}

#define ALLOWED(mode, list) \
    "{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":\"" mode "\",\"tools\":[" list "]}}"
#define STOCK "{\"type\":\"function\",\"function\":{\"name\":\"get_stock\"}}"

static void hosted_entries_of_allowed_tools_are_renamed(void)
{
    expect_choice(CODE_TOOL "," OWN_TOOL,
                  ALLOWED("required", STOCK ",{\"type\":\"code_interpreter\"}"),
                  ALLOWED("required", STOCK "," CHOICE_NAMED));
    expect_choice(CODE_TOOL,
                  ALLOWED("auto", "{\"type\":\"code_interpreter\"}, {\"type\":"
                                  "\"code_interpreter\"}"),
                  ALLOWED("auto", CHOICE_NAMED));
}

/* The choice of the second turn, after one with a call. */
static void expect_second_choice(const char *choice, const char *wanted)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    BUF_CLEANUP struct buf body = {0}, part = {0};
    buf_printf(&body, "{\"tools\":[" CODE_TOOL "," OWN_TOOL "],\"tool_choice\":%s," USER "}",
               choice);
    buf_printf(&part, ",\"tool_choice\":%s,\"messages\"", wanted);
    bench_open(&b, body.data);
    bench_turn(&b, ROLE RUN_42);
    bench_result(&b, 0, "42");
    CU_ASSERT_PTR_NOT_NULL(strstr(bench_request(&b), part.data));
}

static void the_force_ends_with_the_first_turn_that_calls(void)
{
    expect_second_choice("\"required\"", "\"auto\"");
    expect_second_choice("{\"type\":\"code_interpreter\"}", "\"auto\"");
    expect_second_choice(ALLOWED("required", STOCK ",{\"type\":\"code_interpreter\"}"),
                         ALLOWED("auto", STOCK "," CHOICE_NAMED));
    expect_second_choice("\"auto\"", "\"auto\"");
    expect_second_choice(STOCK, STOCK);
}

static void with_choice_none_our_tools_stay_and_run_nothing(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, "{" USER ",\"tools\":[" CODE_TOOL "],\"tool_choice\":\"none\"}");
    CU_ASSERT_TRUE(surface_chat.runs_nothing(b.exchange));
    CU_ASSERT_STRING_EQUAL(bench_request(&b),
                           "{" USER ",\"tools\":[" CODE_DEFINITION "],\"tool_choice\":\"none\"}");
    bench_turn(&b, ROLE TEXT("no") RUN_42);
    CU_ASSERT_EQUAL(b.turn.calls_count, 0);
    CU_ASSERT_FALSE(b.turn.has_client_calls);
}

static void expect_last(const char *body, bool remove_tools, const char *wanted)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, body);
    const char *got = bench_request_with(
        &b, (struct surface_turn_options){.last = true, .remove_tools = remove_tools});
    CU_ASSERT_STRING_EQUAL(got, wanted);
}

static void the_last_turn_has_choice_none_or_no_tools_of_ours(void)
{
    expect_last("{" USER ",\"tools\":[" CODE_TOOL "]}", false,
                "{" USER ",\"tools\":[" CODE_DEFINITION "],\"tool_choice\":\"none\"}");
    expect_last("{" USER ",\"tools\":[" CODE_TOOL "],\"tool_choice\":\"required\"}", false,
                "{" USER ",\"tools\":[" CODE_DEFINITION "],\"tool_choice\":\"none\"}");
    expect_last("{\"tools\":[" CODE_TOOL "," CODE_TOOL
                "],\"tool_choice\":\"required\",\"parallel_tool_"
                "calls\":true," USER "}",
                true, "{" USER "}");
    expect_last("{" USER ",\"tools\":[" OWN_TOOL "," CODE_TOOL "],\"tool_choice\":"
                "{\"type\":\"code_interpreter\"}}",
                true, "{" USER ",\"tools\":[" OWN_TOOL "]}");
    expect_last("{" USER ",\"tools\":[" CODE_TOOL "," OWN_TOOL "],\"tool_choice\":" STOCK "}", true,
                "{" USER ",\"tools\":[" OWN_TOOL "],\"tool_choice\":" STOCK "}");
    expect_last("{" USER ",\"tools\":[" CODE_TOOL "," OWN_TOOL
                "],\"tool_choice\":" ALLOWED("auto", "{\"type\":\"code_interpreter\"}," STOCK) "}",
                true,
                "{" USER ",\"tools\":[" OWN_TOOL "],\"tool_choice\":" ALLOWED("auto", STOCK) "}");
}

/* ---- streaming, limits, control ---- */

static void expect_stream(const char *body, bool stream, const char *wanted)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, body);
    const char *got = bench_request_with(&b, (struct surface_turn_options){.stream = stream});
    CU_ASSERT_STRING_EQUAL(got, wanted);
}

static void b17_b18_the_streaming_form_is_the_upstreams(void)
{
    expect_stream("{" USER "}", true,
                  "{" USER ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}");
    expect_stream("{\"stream\":false," USER ",\"stream_options\":null}", true,
                  "{\"stream\":true," USER ",\"stream_options\":{\"include_usage\":true}}");
    expect_stream("{\"stream\":true,\"stream_options\":{\"include_obfuscation\":false}," USER "}",
                  true,
                  "{\"stream\":true,\"stream_options\":{\"include_usage\":true,\"include_"
                  "obfuscation\":false}," USER "}");
    expect_stream("{\"stream\":true,\"stream_options\":{ \"include_usage\" : false }," USER "}",
                  true,
                  "{\"stream\":true,\"stream_options\":{ \"include_usage\" : true }," USER "}");
    expect_stream("{\"stream\":true," USER ",\"stream_options\":{}}", false,
                  "{\"stream\":false," USER "}");
    expect_stream("{" USER ",\"stream\":null}", false, "{" USER ",\"stream\":null}");
}

static void executed_tools_are_cut_from_incoming_messages(void)
{
    expect_body(
        "{\"messages\":[{\"executed_tools\":[1],\"role\":\"user\"},{\"role\":\"assistant\", "
        "\"executed\\u005ftools\":[{\"id\":\"ci_sg\"}]},{\"executed_tools\":null}],\"tools\":"
        "[" CODE_TOOL "]}",
        "{\"messages\":[{\"role\":\"user\"},{\"role\":\"assistant\"},{}],\"tools\":"
        "[" CODE_DEFINITION "]}");
}

static void later_turns_get_the_rest_of_the_token_limit(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, "{\"max_tokens\":100,\"max_completion_tokens\":50,\"tools\":[" CODE_TOOL
                   "]," USER "}");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(bench_request(&b), "{\"max_tokens\":100,\"max_completion_tokens\":50,"));
    bench_turn(&b, ROLE RUN_42);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(bench_request(&b), "{\"max_tokens\":100,\"max_completion_tokens\":50,"));
    bench_result(&b, 0, "42");
    bench_turn(
        &b,
        ROLE CALL(
            "0", "up_2", "code_interpreter",
            "{}") "data: {\"choices\":[],\"usage\":{\"completion_tokens\":30}}\n\n" FINISH("tool_"
                                                                                           "calls")
            DONE);
    CU_ASSERT_FALSE(b.turn.length);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(bench_request(&b), "{\"max_tokens\":70,\"max_completion_tokens\":20,"));
    bench_result(&b, 0, "42");
    bench_turn(
        &b,
        ROLE CALL("0", "up_3", "code_interpreter", "{}") FINISH(
            "tool_calls") "data: {\"choices\":[],\"usage\":{\"completion_tokens\":20}}\n\n" DONE);
    CU_ASSERT_TRUE(b.turn.length); /* nothing is left for a turn that could use a result */
    struct surface_turn_options options = {0};
    CU_ASSERT_EQUAL(surface_chat.turn_request(b.exchange, &options, &b.request, &b.err),
                    SG_E_LIMIT);
    CU_ASSERT_STRING_EQUAL(b.err.reason, "token_limit");
    CU_ASSERT_STRING_EQUAL(b.err.message, "the client's token limit is used up");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(bench_finish(&b, "Out of tokens."), "\"finish_reason\":\"length\""));
}

static void what_cannot_be_is_refused_with_its_field(void)
{
    expect_refused("{\"tools\":[" CODE_TOOL "]}", "messages",
                   "messages must be an array, and is missing");
    expect_refused("{\"messages\":null,\"tools\":[" CODE_TOOL "]}", "messages",
                   "messages must be an array");
    expect_refused("{\"messages\":{},\"tools\":[" CODE_TOOL "]}", "messages",
                   "messages must be an array");
    expect_refused("{" USER ",\"n\":2,\"tools\":[" CODE_TOOL "]}", "n",
                   "n must be 1 in a request with hosted tools, not 2");
    expect_refused("{" USER ",\"n\":1e9,\"tools\":[" CODE_TOOL "]}", "n",
                   "n must be 1 in a request with hosted tools, not 1e9");
    expect_refused("{" USER
                   ",\"tools\":[{\"type\":\"code_interpreter\",\"ty\\u0070e\":\"function\"}]}",
                   "tools[0]", "duplicate key 'type' in tools[0]");
    expect_refused("{" USER ",\"tools\":[" CODE_TOOL
                   ",{\"type\":\"function\",\"function\":{\"name\":\"a\","
                   "\"name\":\"b\"}}]}",
                   "tools[1].function", "duplicate key 'name' in tools[1].function");
    expect_refused("{" USER ",\"tools\":[" CODE_TOOL
                   "],\"tool_choice\":{\"type\":\"function\",\"type\":"
                   "\"code_interpreter\"}}",
                   "tool_choice", "duplicate key 'type' in tool_choice");
    expect_refused("{" USER ",\"tools\":[" CODE_TOOL "],\"stream_options\":{\"a\":1,\"a\":2}}",
                   "stream_options", "duplicate key 'a' in stream_options");
    const char *no_container = "A container cannot be named in a chat request; "
                               "metadata.session_id says whose variables and files it finds.";
    expect_refused("{" USER ",\"tools\":[" CODE_TOOL
                   ",{\"type\":\"code_interpreter\",\"container\":\"cntr_sg0a\"}]}",
                   "tools[1].container", no_container);
    expect_refused("{" USER ",\"tools\":[{\"container\":\"cntr\\u005f\","
                   "\"type\":\"code_interpreter\"}]}",
                   "tools[0].container", no_container);
    BUF_CLEANUP struct buf many = {0};
    buf_puts(&many, "{" USER ",\"tools\":[" CODE_TOOL);
    for (int i = 1; i < 1025; i++) {
        buf_puts(&many, ",{}");
    }
    buf_puts(&many, "]}");
    expect_refused(many.data, "tools", "More than 1024 tools");
    BUF_CLEANUP struct buf allowed = {0};
    buf_puts(&allowed,
             "{" USER ",\"tools\":[" CODE_TOOL "],\"tool_choice\":{\"type\":\"allowed_tools\","
             "\"allowed_tools\":{\"tools\":[" CODE_TOOL);
    for (int i = 1; i < 1025; i++) {
        buf_puts(&allowed, "," CODE_TOOL);
    }
    buf_puts(&allowed, "]}}}");
    expect_refused(allowed.data, "tool_choice", "More than 1024 tools");
}

static void n_of_one_and_n_without_hosted_tools_are_fine(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    CU_ASSERT_TRUE(bench_looks_for(&b, "{\"n\":1,\"tools\":[" CODE_TOOL "]}"));
    CU_ASSERT_FALSE(bench_looks_for(&b, "{\"n\":3,\"tools\":[" OWN_TOOL "]}"));
    bool ret;
    bench_scan(&b, "{\"n\":3,\"tools\":[" CODE_TOOL "]}");
    struct surface_input input = bench_input(&b);
    CU_ASSERT_EQUAL(surface_chat.looks_for(&input, b.arena, &ret, &b.err), SG_E_INVALID);
}

static void tools_that_are_no_array_are_refused_where_ours_must_be_added(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    b.offers[0].always = true;
    CU_ASSERT_EQUAL(bench_try_open(&b, "{" USER ",\"tools\":{}}"), SG_E_INVALID);
    CU_ASSERT_STRING_EQUAL(b.err.message, "tools must be an array");
    CU_ASSERT_STRING_EQUAL(b.err.param, "tools");
}

/* ---- history ---- */

static void b23_the_next_turn_carries_calls_and_results(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, "{\"temperature\":0,\"tools\":[" CODE_TOOL "]," USER "}");
    bench_turn(&b, ROLE TEXT("Let me ") TEXT("see.\\n") RUN_42);
    CU_ASSERT_EQUAL_FATAL(b.turn.calls_count, 1);
    CU_ASSERT_TRUE(str_is(b.turn.calls[0].id, "up_1"));
    CU_ASSERT_TRUE(str_is(b.turn.calls[0].arguments, "{\"code\":\"40+2\"}"));
    bench_result(&b, 0, "4\"2\n");
    CU_ASSERT_STRING_EQUAL(
        bench_request(&b),
        "{\"temperature\":0,\"tools\":[" CODE_DEFINITION
        "],\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"assistant\","
        "\"content\":\"Let "
        "me "
        "see.\\n\",\"tool_calls\":[{\"id\":\"up_1\",\"type\":\"function\",\"function\":{\"name\":"
        "\"code_interpreter\",\"arguments\":\"{\\\"code\\\":\\\"40+2\\\"}\"}}]},{\"role\":\"tool\","
        "\"tool_"
        "call_id\":\"up_1\",\"content\":\"4\\\"2\\n\"}]}");
}

static void an_empty_list_of_messages_gets_no_leading_comma(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, "{\"messages\":[ ],\"tools\":[" CODE_TOOL "]}");
    bench_turn(&b, ROLE RUN_42);
    bench_result(&b, 0, "42");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(bench_request(&b), "{\"messages\":[ {\"role\":\"assistant\",\"content\":null,"));
}

static void results_may_be_replaced_before_the_next_turn(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, "{\"tools\":[" CODE_TOOL "]," USER "}");
    bench_turn(&b, ROLE RUN_42);
    bench_result(&b, 0, "a very long result");
    (void)bench_request(&b);
    bench_result(&b, 0, "short");
    const char *body = bench_request(&b);
    CU_ASSERT_PTR_NULL(strstr(body, "a very long result"));
    CU_ASSERT_PTR_NOT_NULL(strstr(body, "\"content\":\"short\"}]}"));
}

static void turns_pile_up_in_order(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, "{\"tools\":[" CODE_TOOL "]," USER "}");
    bench_turn(&b, ROLE RUN_42);
    bench_result(&b, 0, "one");
    bench_turn(&b, ROLE CALL("0", "up_2", "code_interpreter", "{}") FINISH("tool_calls") DONE);
    bench_result(&b, 0, "two");
    const char *body = bench_request(&b);
    const char *first = strstr(body, "\"tool_call_id\":\"up_1\",\"content\":\"one\"}");
    const char *second = strstr(body, "\"tool_call_id\":\"up_2\",\"content\":\"two\"}]}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(first);
    CU_ASSERT_PTR_NOT_NULL_FATAL(second);
    CU_ASSERT_TRUE(first < second);
}

static const struct test tests[] = {
    TEST(chat_is_found_with_and_without_v1),
    TEST(b08_only_hosted_tools_that_an_offer_answers_are_looked_for),
    TEST(an_offer_of_always_counts_as_named_but_for_choice_none),
    TEST(history_with_runs_of_ours_is_looked_for),
    TEST(b03_b04_a_hosted_tool_goes_up_as_a_nested_function),
    TEST(what_is_not_ours_arrives_byte_for_byte),
    TEST(several_entries_of_one_kind_become_one_function),
    TEST(cache_control_moves_to_the_function),
    TEST(a_clients_function_of_our_name_keeps_it),
    TEST(an_offer_of_always_is_appended),
    TEST(definitions_are_the_same_bytes_on_every_turn),
    TEST(b04_b05_c021_a_forced_hosted_tool_is_renamed),
    TEST(b06_other_choices_stay_as_they_are),
    TEST(hosted_entries_of_allowed_tools_are_renamed),
    TEST(the_force_ends_with_the_first_turn_that_calls),
    TEST(with_choice_none_our_tools_stay_and_run_nothing),
    TEST(the_last_turn_has_choice_none_or_no_tools_of_ours),
    TEST(b17_b18_the_streaming_form_is_the_upstreams),
    TEST(executed_tools_are_cut_from_incoming_messages),
    TEST(later_turns_get_the_rest_of_the_token_limit),
    TEST(what_cannot_be_is_refused_with_its_field),
    TEST(n_of_one_and_n_without_hosted_tools_are_fine),
    TEST(tools_that_are_no_array_are_refused_where_ours_must_be_added),
    TEST(b23_the_next_turn_carries_calls_and_results),
    TEST(an_empty_list_of_messages_gets_no_leading_comma),
    TEST(results_may_be_replaced_before_the_next_turn),
    TEST(turns_pile_up_in_order),
};

int main(int argc, char **argv)
{
    return run_tests("chat_request", tests, COUNT_OF(tests), argc, argv);
}
