/* Runs that were shown to the client and come back in its history. */
#include "chat_memory_fixture.h"

#define MARK "0123456789abcdef0123456789abcdef"
#define RUN(id, type, arguments, output)                                                      \
    "{\"index\":0,\"type\":\"" type "\",\"id\":\"" id "\",\"container_id\":\"cntr_sg1\",\"ar" \
    "guments\":\"" arguments "\",\"output\":\"" output "\"}"

static void expect_history(const char *tools, const char *message, const char *wanted)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    BUF_CLEANUP struct buf body = {0};
    body_put(&body, tools, "%s", message);
    bench_open(&b, body.data);
    expect_messages(&b, wanted);
}

static void shown_runs_become_pairs_of_call_and_result(void)
{
    expect_history(
        TOOLS ",",
        "{\"role\":\"assistant\",\"content\":\"It is 42.\",\"executed_tools\":[" RUN(
            "ci_sg" MARK, "code_interpreter", "{\\\"code\\\":\\\"6*7\\\"}", "42\\n") "]}",
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[" ENTRY(
            "ci_sg" MARK, "code_interpreter",
            "{\\\"code\\\":\\\"6*7\\\"}") "]}," RESULT("ci_sg" MARK,
                                                       "42\\n") ",{\"role\":\"assistant\","
                                                                "\"content\":\"It is 42.\"}");
    expect_history(
        TOOLS ",", /* arguments that no server takes in a history */
        "{\"executed_tools\":[" RUN("ci_sg" MARK, "code_interpreter", "6*7",
                                    "") "],\"role\":\"assistant\",\"content\":\"x\"}",
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[" ENTRY(
            "ci_sg" MARK, "code_interpreter",
            "{}") "]}," RESULT("ci_sg" MARK, "") ",{"
                                                 "\"role\":\"assistant\",\"content\":\"x\"}");
}

static void shown_runs_of_a_tool_that_is_not_offered_become_text(void)
{
#define SEARCHED "[web_search was called with {} and returned:]\\nA hit."
#define SHOWN RUN("ws_sg" MARK, "web_search", "{}", "A hit.")
    static const char *const forms[][2] = {
        {"{\"role\":\"assistant\",\"content\":\"x\",\"executed_tools\":[" SHOWN "]}",
         "{\"role\":\"assistant\",\"content\":\"" SEARCHED "\\n\\nx\"}"},
        {"{\"role\":\"assistant\",\"content\":null,\"executed_tools\":[" SHOWN "]}",
         "{\"role\":\"assistant\",\"content\":\"" SEARCHED "\"}"},
        {"{\"role\":\"assistant\",\"content\":\"\",\"executed_tools\":[" SHOWN "]}",
         "{\"role\":\"assistant\",\"content\":\"" SEARCHED "\"}"},
        {"{\"executed_tools\":[" SHOWN "],\"role\":\"assistant\"}",
         "{\"content\":\"" SEARCHED "\",\"role\":\"assistant\"}"},
        {"{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}],"
         "\"executed_tools\":[" SHOWN "]}",
         "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"" SEARCHED
         "\"},{\"type\":\"text\",\"text\":\"x\"}]}"},
        {"{\"role\":\"assistant\",\"content\":[],\"executed_tools\":[" SHOWN "]}",
         "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"" SEARCHED "\"}]}"},
    };
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        expect_history(TOOLS ",", forms[i][0], forms[i][1]);
    }
}

static void runs_that_are_not_ours_are_cut_and_not_told(void)
{
    static const char *const ids[] = {"ci_vendor",
                                      "ci_sg",
                                      "ci_sg0123",
                                      ("call_sg" MARK),
                                      "ci_sg0123456789abcdef0123456789abcdeX",
                                      ""};
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        BUF_CLEANUP struct buf message = {0};
        buf_printf(&message,
                   "{\"role\":\"assistant\",\"content\":\"x\",\"executed_tools\":[7,null,{}," RUN(
                       "%s", "code_interpreter", "{}", "y") "]}",
                   ids[i]);
        expect_history(TOOLS ",", message.data, "{\"role\":\"assistant\",\"content\":\"x\"}");
    }
    expect_history(TOOLS ",", /* only the assistant runs anything */
                   "{\"role\":\"user\",\"content\":\"x\",\"executed_tools\":[" RUN(
                       "ci_sg" MARK, "code_interpreter", "{}", "y") "]}",
                   "{\"role\":\"user\",\"content\":\"x\"}");
}

static void several_choices_are_worth_more_than_what_we_made(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    static const char message[] = "\"messages\":[{\"role\":\"assistant\",\"executed_tools\":[" RUN(
        "ci_sg" MARK, "code_interpreter", "{}", "y") "]}]}";
    BUF_CLEANUP struct buf one = {0}, two = {0};
    buf_printf(&one, "{\"n\":1,%s", message);
    buf_printf(&two, "{\"n\":2,%s", message);
    CU_ASSERT_TRUE(bench_looks_for(&b, one.data));
    CU_ASSERT_FALSE(bench_looks_for(&b, two.data));
    b.offers_count = 0;
    CU_ASSERT_FALSE(bench_looks_for(&b, one.data));
}

static const struct test tests[] = {
    TEST(shown_runs_become_pairs_of_call_and_result),
    TEST(shown_runs_of_a_tool_that_is_not_offered_become_text),
    TEST(runs_that_are_not_ours_are_cut_and_not_told),
    TEST(several_choices_are_worth_more_than_what_we_made),
};

int main(int argc, char **argv)
{
    return run_tests("chat_shown", tests, COUNT_OF(tests), argc, argv);
}
