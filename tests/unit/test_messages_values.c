/* What is told beside text: results of every kind, usage, containers, stop reasons, searches. */
#include "base/check.h"
#include "messages_bench.h"

#define TOOLS ",\"tools\":[" PYTHON_TOOL "," SEARCH_TOOL "," OWN_TOOL "]}"
#define STREAM_BODY HEAD "\"stream\":true," USER TOOLS
#define JSON_BODY HEAD USER TOOLS
#define SHELL_BODY HEAD USER ",\"tools\":[" SHELL_TOOL "]}"
#define PLAIN_CALL(name)                                                                       \
    "{\"content\":[{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"" name "\",\"input\":{}}]," \
    "\"stop_reason\":\"tool_use\",\"usage\":{\"input_tokens\":100,\"output_tokens\":20}}"
#define PLAIN_END                                                                                 \
    "{\"content\":[{\"type\":\"text\",\"text\":\"ok\"}],\"stop_reason\":\"end_turn\",\"usage\":{" \
    "\"input_tokens\":180,\"output_tokens\":50}}"

/* ---- results ---- */

/* The content of the block that this result gives, in both forms of an answer. */
static void expect_result(const char *body, const char *call, struct surface_result result,
                          const char *content)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    BUF_CLEANUP struct buf wanted = {0};
    bench_open(&b, body);
    bench_plain_turn(&b, call);
    bench_result_of(&b, 0, result);
    bench_plain_turn(&b, PLAIN_END);
    bench_finish(&b, "");
    buf_printf(&wanted,
               "_tool_result\",\"tool_use_id\":\"srvtoolu_sg00000000000000000000000000000000\","
               "\"content\":%s",
               content);
    expect_part(b.out.data, wanted.data);
}

#define PYTHON(result, content) \
    expect_result(JSON_BODY, PLAIN_CALL("code_interpreter"), result, content)
#define SHELL(result, content) \
    expect_result(SHELL_BODY, PLAIN_CALL("bash_code_execution"), result, content)
#define EDITOR(result, content) \
    expect_result(SHELL_BODY, PLAIN_CALL("text_editor_code_execution"), result, content)

static void runs_tell_their_output_and_return_code(void)
{
    struct surface_output outputs[] = {
        {SG_OUT_LOG_OUT, STR("a\n")},
        {SG_OUT_LOG_ERR, STR("warn\n")},
        {SG_OUT_RESULT, STR("{\"text/plain\":\"42\",\"image/png\":\"AAAA\"}")},
        {SG_OUT_FILE, STR("{\"path\":\"/mnt/data/a\"}")},
        {SG_OUT_LOG_OUT, STR("b \"q\"\n")},
        {SG_OUT_EXCEPTION, STR("{\"name\":\"NameError\",\"traceback\":\"Traceback: x\"}")},
    };
    struct surface_result result = {
        .status = SURFACE_CALL_COMPLETED, .outputs = outputs, .outputs_count = 5};
    PYTHON(result, "{\"type\":\"code_execution_result\",\"stdout\":\"a\\n42\\nb \\\"q\\\"\\n\","
                   "\"stderr\":\"warn\\n\",\"return_code\":0,\"content\":[]}");
    result.return_code = 127;
    SHELL(result, "{\"type\":\"bash_code_execution_result\",\"stdout\":\"a\\n42\\nb \\\"q\\\"\\n\","
                  "\"stderr\":\"warn\\n\",\"return_code\":127,\"content\":[]}");
    /* Code that raised is an ordinary result. */
    result = (struct surface_result){
        .status = SURFACE_CALL_FAILED, .outputs = outputs, .outputs_count = 6};
    PYTHON(result, "{\"type\":\"code_execution_result\",\"stdout\":\"a\\n42\\nb \\\"q\\\"\\n\","
                   "\"stderr\":\"warn\\nTraceback: x\\n\",\"return_code\":1,\"content\":[]}");
    /* B14: nothing is told as empty, never as null. */
    result = (struct surface_result){.status = SURFACE_CALL_COMPLETED};
    PYTHON(result, "{\"type\":\"code_execution_result\",\"stdout\":\"\",\"stderr\":\"\","
                   "\"return_code\":0,\"content\":[]}");
}

static void failures_have_their_codes(void)
{
    static const struct {
        enum surface_call_status status;
        enum surface_reason reason;
        const char *code;
    } cases[] = {{SURFACE_CALL_FAILED, SURFACE_REASON_INVALID, "invalid_tool_input"},
                 {SURFACE_CALL_FAILED, SURFACE_REASON_TIMEOUT, "execution_time_exceeded"},
                 {SURFACE_CALL_FAILED, SURFACE_REASON_LIMIT, "too_many_requests"},
                 {SURFACE_CALL_FAILED, SURFACE_REASON_UNAVAILABLE, "unavailable"},
                 {SURFACE_CALL_FAILED, SURFACE_REASON_NOT_FOUND, "file_not_found"},
                 {SURFACE_CALL_FAILED, SURFACE_REASON_NONE, "unavailable"},
                 {SURFACE_CALL_NOT_RUN, SURFACE_REASON_NONE, "too_many_requests"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct surface_result result = {
            .status = cases[i].status, .reason = cases[i].reason, .model_text = STR("no \"x\"")};
        char content[200];
        (void)snprintf(content, sizeof content,
                       "{\"type\":\"code_execution_tool_result_error\",\"error_code\":\"%s\"}",
                       cases[i].code);
        PYTHON(result, content);
        (void)snprintf(content, sizeof content,
                       "{\"type\":\"bash_code_execution_tool_result_error\",\"error_code\":\"%s\"}",
                       cases[i].code);
        SHELL(result, content);
        (void)snprintf(content, sizeof content,
                       "{\"type\":\"text_editor_code_execution_tool_result_error\",\"error_code\":"
                       "\"%s\",\"error_message\":\"no \\\"x\\\"\"}",
                       cases[i].code);
        EDITOR(result, content);
    }
    struct surface_result silent = {.status = SURFACE_CALL_NOT_RUN};
    EDITOR(silent, "{\"type\":\"text_editor_code_execution_tool_result_error\",\"error_code\":"
                   "\"too_many_requests\",\"error_message\":null}");
}

static void expect_edit(const char *bundle, const char *content)
{
    struct surface_output output = {SG_OUT_RESULT, str_of(bundle)};
    struct surface_result result = {
        .status = SURFACE_CALL_COMPLETED, .outputs = &output, .outputs_count = 1};
    EDITOR(result, content);
}

static void edits_tell_what_was_done(void)
{
#define BUNDLE(edit) "{\"text/plain\":\"x\",\"application/vnd.sandgate.edit+json\":" edit "}"
#define EDIT_RESULT "{\"type\":\"text_editor_code_execution_"
    expect_edit(BUNDLE("{\"command\":\"view\",\"file_type\":\"text\",\"content\":\"a\\nb\\n\","
                       "\"num_lines\":2,\"start_line\":1,\"total_lines\":7}"),
                EDIT_RESULT "view_result\",\"file_type\":\"text\",\"content\":\"a\\nb\\n\","
                            "\"num_lines\":2,\"start_line\":1,\"total_lines\":7}");
    expect_edit(BUNDLE("{\"command\":\"create\",\"is_file_update\":true}"),
                EDIT_RESULT "create_result\",\"is_file_update\":true}");
    expect_edit(BUNDLE("{\"command\":\"str_replace\",\"old_start\":1,\"old_lines\":2,\"new_start\":"
                       "3,\"new_lines\":4,\"lines\":[\"-a\",\"+b\"]}"),
                EDIT_RESULT "str_replace_result\",\"old_start\":1,\"old_lines\":2,\"new_start\":3,"
                            "\"new_lines\":4,\"lines\":[\"-a\",\"+b\"]}");
    /* As text, as values of a bundle may be. */
    expect_edit(BUNDLE("\"{\\\"command\\\":\\\"create\\\",\\\"is_file_update\\\":false}\""),
                EDIT_RESULT "create_result\",\"is_file_update\":false}");
    /* What an interceptor leaves out or gets wrong is there all the same. */
    expect_edit(BUNDLE("{\"command\":\"view\",\"num_lines\":\"2\",\"content\":7}"),
                EDIT_RESULT "view_result\",\"file_type\":\"text\",\"content\":\"\",\"num_lines\":"
                            "null,\"start_line\":null,\"total_lines\":null}");
    expect_edit(BUNDLE("{\"command\":\"create\"}"),
                EDIT_RESULT "create_result\",\"is_file_update\":false}");
    expect_edit(BUNDLE("{\"command\":\"str_replace\"}"),
                EDIT_RESULT "str_replace_result\",\"old_start\":null,\"old_lines\":null,"
                            "\"new_start\":null,\"new_lines\":null,\"lines\":null}");
    static const char *const nothing[] = {
        BUNDLE("{\"command\":\"undo\"}"), BUNDLE("7"), BUNDLE("\"{\""), "{}", "7", "{"};
    for (size_t i = 0; i < COUNT_OF(nothing); i++) {
        expect_edit(nothing[i], EDIT_RESULT "tool_result_error\",\"error_code\":\"unavailable\","
                                            "\"error_message\":null}");
    }
}

static void a_huge_output_is_cut_for_the_client(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    BUF_CLEANUP struct buf text = {0};
    for (int i = 0; i < 100000; i++) {
        buf_puts(&text, "0123456789");
    }
    bench_open(&b, JSON_BODY);
    bench_plain_turn(&b, PLAIN_CALL("code_interpreter"));
    bench_result(&b, 0, text.data);
    bench_plain_turn(&b, PLAIN_END);
    bench_finish(&b, "");
    CU_ASSERT_TRUE(b.out.len < 270 * 1024);
    expect_part(b.out.data, " bytes cut: the output is long ");
}

static void results_are_cut_for_a_full_context(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    BUF_CLEANUP struct buf text = {0};
    for (int i = 0; i < 1000; i++) {
        buf_puts(&text, "0123456789");
    }
    bench_open(&b, JSON_BODY);
    CU_ASSERT_FALSE(surface_messages.results_cut(b.exchange, 2048));
    bench_plain_turn(&b, PLAIN_CALL("code_interpreter"));
    bench_result(&b, 0, text.data);
    CU_ASSERT_TRUE(surface_messages.results_cut(b.exchange, 2048));
    CU_ASSERT_FALSE(surface_messages.results_cut(b.exchange, 2048));
    expect_part(bench_request(&b), " bytes cut: the context is full ");
    CU_ASSERT_TRUE(b.request.len < 4096);
}

/* ---- searches ---- */

static void c017_c032_searches_are_shown_and_counted(void)
{
    BENCH_CLEANUP struct bench b = bench_new(9);
    struct surface_output hits[] = {
        {SG_OUT_HIT, STR("{\"title\":\"A\",\"url\":\"https://a.test/x\",\"snippet\":\"s\",\"date\":"
                         "\"2 days\"}")},
        {SG_OUT_HIT, STR("{\"title\":\"B\",\"url\":\"https://b.test/y\",\"date\":null}")},
        {SG_OUT_HIT, STR("broken")}};
    bench_open(&b, STREAM_BODY);
    bench_turn(&b, START_OF("msg_1", "{\"input_tokens\":100,\"output_tokens\":1}")
                       CALL("0", "t1", "web_search", "{\\\"query\\\":\\\"q\\\"}")
                           EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"tool_use\"},"
                                                  "\"usage\":{\"output_tokens\":20}")
                               EVENT("message_stop", ""));
    bench_result_of(&b, 0,
                    (struct surface_result){.status = SURFACE_CALL_COMPLETED,
                                            .model_text = STR("two hits"),
                                            .outputs = hits,
                                            .outputs_count = 3});
    bench_turn(&b, START_OF("msg_2", "{\"input_tokens\":180,\"output_tokens\":1}") TEXT("0", "ok")
                       EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":"
                                              "{\"output_tokens\":50}") EVENT("message_stop", ""));
    bench_finish(&b, "");
    expect_part(b.out.data, "\"name\":\"web_search\",\"input\":{},\"caller\":");
    expect_part(b.out.data,
                "{\"type\":\"web_search_tool_result\",\"tool_use_id\":"
                "\"srvtoolu_sg00000000000000000000000000000000\",\"content\":[{\"type\":"
                "\"web_search_result\",\"title\":\"A\",\"url\":\"https://a.test/x\","
                "\"encrypted_content\":\"sandgate:s\",\"page_age\":\"2 days\"},{\"type\":"
                "\"web_search_result\",\"title\":\"B\",\"url\":\"https://b.test/y\","
                "\"encrypted_content\":\"\",\"page_age\":null}],\"caller\":{\"type\":\"direct\"}}");
    expect_part(b.out.data, "\"usage\":{\"output_tokens\":70,\"input_tokens\":280,"
                            "\"server_tool_use\":{\"web_search_requests\":1,"
                            "\"web_fetch_requests\":0}}}");
}

static void a_search_that_fails_is_an_error_of_its_block(void)
{
    struct surface_result result = {.status = SURFACE_CALL_FAILED,
                                    .reason = SURFACE_REASON_UNAVAILABLE};
    expect_result(JSON_BODY, PLAIN_CALL("web_search"), result,
                  "{\"type\":\"web_search_tool_result_error\",\"error_code\":\"unavailable\"}");
    result = (struct surface_result){.status = SURFACE_CALL_COMPLETED};
    expect_result(JSON_BODY, PLAIN_CALL("web_search"), result, "[]");
}

/* ---- usage ---- */

#define RICH(input, output)                                                                        \
    "{\"input_tokens\":" input ",\"cache_creation_input_tokens\":1,\"cache_read_input_tokens\":2," \
    "\"cache_creation\":{\"ephemeral_5m_input_tokens\":3,\"ephemeral_1h_input_tokens\":null},"     \
    "\"output_tokens\":" output ",\"service_tier\":\"standard\"}"

static void two_turns(struct bench *b)
{
    bench_open(b, JSON_BODY);
    bench_turn(b, START_OF("msg_1", RICH("10", "1")) CALL("0", "t1", "code_interpreter", "{}")
                      END("tool_use"));
    CU_ASSERT_EQUAL(b->turn.usage.output_tokens, 5);
    bench_result(b, 0, "x");
    bench_turn(b, START_OF("msg_2", RICH("20", "1")) TEXT("0", "a") END("end_turn"));
    bench_finish(b, "");
}

static cJSON *usage_of(const struct bench *b)
{
    cJSON *message = cJSON_Parse(b->out.data);
    cJSON *usage = cJSON_DetachItemFromObject(message, "usage");
    cJSON_Delete(message);
    return usage;
}

static void expect_usage(const struct bench *b, const char *wanted)
{
    cJSON *got = usage_of(b), *other = cJSON_Parse(wanted);
    CU_ASSERT_TRUE(cJSON_Compare(got, other, true));
    cJSON_Delete(got);
    cJSON_Delete(other);
}

static void usage_is_summed_with_all_that_is_in_it(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    two_turns(&b);
    expect_usage(&b, "{\"input_tokens\":30,\"cache_creation_input_tokens\":2,"
                     "\"cache_read_input_tokens\":4,\"cache_creation\":{"
                     "\"ephemeral_5m_input_tokens\":6,\"ephemeral_1h_input_tokens\":null},"
                     "\"output_tokens\":10,\"service_tier\":\"standard\"}");
    CU_ASSERT_EQUAL(surface_messages.usage(b.exchange).input_tokens, 30);
    CU_ASSERT_EQUAL(surface_messages.usage(b.exchange).output_tokens, 10);
}

static void or_it_is_the_last_turns(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    b.usage_last = true;
    two_turns(&b);
    expect_usage(&b, RICH("20", "5"));
    CU_ASSERT_EQUAL(surface_messages.usage(b.exchange).output_tokens, 10);
}

static void usage_that_is_missing_is_zeros(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, JSON_BODY);
    bench_plain_turn(&b, "{\"content\":[],\"usage\":{\"input_tokens\":null,\"x\":1}}");
    bench_finish(&b, "");
    expect_usage(&b, "{\"input_tokens\":0,\"x\":1,\"output_tokens\":0}");
}

/* ---- the container ---- */

#define CONTAINER                                                                            \
    "\"container\":{\"id\":\"container_42\",\"expires_at\":\"2026-11-29T18:20:00.000000Z\"," \
    "\"skills\":null}"

static void a_container_that_can_be_named_is_told_with_the_end(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0), json = bench_new(0);
    b.expires = json.expires = 1795976400;
    bench_open(&b, STREAM_BODY);
    bench_turn(&b, START RUN_42);
    bench_result(&b, 0, "42");
    bench_turn(&b, START TEXT("0", "ok") END("end_turn"));
    bench_finish(&b, "");
    expect_part(b.out.data, "\"stop_sequence\":null," CONTAINER "},\"usage\"");
    bench_open(&json, JSON_BODY);
    bench_plain_turn(&json, PLAIN_CALL("code_interpreter"));
    bench_result(&json, 0, "42");
    bench_plain_turn(&json, PLAIN_END);
    expect_part(bench_finish(&json, ""), CONTAINER);
}

static void one_that_ends_with_the_request_or_that_nobody_used_is_not(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0), unused = bench_new(0);
    bench_open(&b, JSON_BODY);
    bench_plain_turn(&b, PLAIN_CALL("code_interpreter"));
    bench_result(&b, 0, "42");
    bench_plain_turn(&b, PLAIN_END);
    expect_no_part(bench_finish(&b, ""), "\"container\"");
    unused.expires = 1795976400;
    bench_open(&unused, JSON_BODY);
    bench_plain_turn(&unused, PLAIN_END);
    expect_no_part(bench_finish(&unused, ""), "\"container\"");
}

/* ---- stop reasons ---- */

static void expect_stop(const char *reason, const char *call, const char *wanted)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    BUF_CLEANUP struct buf sse = {0};
    char part[80];
    bench_open(&b, STREAM_BODY);
    buf_printf(&sse,
               START TEXT("0", "a") "%s" EVENT("message_delta",
                                               ",\"delta\":{\"stop_reason\":\"%s\","
                                               "\"stop_sequence\":\"S\"},\"usage\":{}"),
               call, reason);
    bench_turn(&b, sse.data);
    if (b.turn.calls_count > 0) {
        bench_result(&b, 0, "x");
    }
    bench_finish(&b, "");
    (void)snprintf(part, sizeof part, "\"stop_reason\":\"%s\",\"stop_sequence\":\"S\"", wanted);
    expect_part(b.out.data, part);
}

static void stop_reasons_are_the_last_turns(void)
{
#define OWN_CALL CALL("1", "c", "get_stock", "{}")
#define OUR_CALL CALL("1", "t", "code_interpreter", "{}")
    static const char *const kept[] = {"end_turn",   "max_tokens", "stop_sequence",
                                       "pause_turn", "refusal",    "model_context_window_exceeded"};
    for (size_t i = 0; i < COUNT_OF(kept); i++) {
        expect_stop(kept[i], "", kept[i]);
    }
    expect_stop("tool_use", OWN_CALL, "tool_use");
    expect_stop("end_turn", OWN_CALL, "tool_use");
    expect_stop("max_tokens", OWN_CALL, "max_tokens");
    expect_stop("tool_use", "", "end_turn");
    expect_stop("tool_use", OUR_CALL, "end_turn");
    expect_stop("tool_use", OUR_CALL CALL("2", "c", "get_stock", "{}"), "tool_use");
}

static void an_answer_without_any_turn_is_authored(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, JSON_BODY);
    expect_text(bench_finish(&b, "Nothing."),
                "{\"id\":\"msg_sg00000000000000000000000000000000\",\"type\":\"message\",\"role\":"
                "\"assistant\",\"model\":\"m\",\"content\":[{\"type\":\"text\",\"text\":"
                "\"Nothing.\"}],\"stop_reason\":\"end_turn\",\"stop_sequence\":null,\"usage\":{"
                "\"input_tokens\":0,\"output_tokens\":0}}");
}

static const struct test tests[] = {
    TEST(runs_tell_their_output_and_return_code),
    TEST(failures_have_their_codes),
    TEST(edits_tell_what_was_done),
    TEST(a_huge_output_is_cut_for_the_client),
    TEST(results_are_cut_for_a_full_context),
    TEST(c017_c032_searches_are_shown_and_counted),
    TEST(a_search_that_fails_is_an_error_of_its_block),
    TEST(usage_is_summed_with_all_that_is_in_it),
    TEST(or_it_is_the_last_turns),
    TEST(usage_that_is_missing_is_zeros),
    TEST(a_container_that_can_be_named_is_told_with_the_end),
    TEST(one_that_ends_with_the_request_or_that_nobody_used_is_not),
    TEST(stop_reasons_are_the_last_turns),
    TEST(an_answer_without_any_turn_is_authored),
};

int main(int argc, char **argv)
{
    return run_tests("messages_values", tests, COUNT_OF(tests), argc, argv);
}
