/* The client's stream on messages: every one goes through the strict checker, whole, byte by byte and in odd pieces. */
#include "base/check.h"
#include "messages_bench.h"

#define STREAM_BODY HEAD "\"stream\":true," USER ",\"tools\":[" PYTHON_TOOL "," OWN_TOOL "]}"
#define ID "srvtoolu_sg00000000000000000000000000000000"
#define SHOWN_START(index)                                                                      \
    BLOCK(index, "{\"type\":\"server_tool_use\",\"id\":\"" ID "\",\"name\":\"code_execution\"," \
                 "\"input\":{},\"caller\":{\"type\":\"direct\"}}")
#define SHOWN(index, json) SHOWN_START(index) INPUT(index, json) STOP(index)
#define RAN(index, out)                                                                      \
    BLOCK(index,                                                                             \
          "{\"type\":\"code_execution_tool_result\",\"tool_use_id\":\"" ID "\",\"content\":" \
          "{\"type\":\"code_execution_result\",\"stdout\":\"" out "\",\"stderr\":\"\","      \
          "\"return_code\":0,\"content\":[]}}")                                              \
    STOP(index)
#define TOTAL(reason, usage)                                                                     \
    EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"" reason "\",\"stop_sequence\":null}," \
                           "\"usage\":" usage)                                                   \
    EVENT("message_stop", "")
#define ONE_TURN "{\"output_tokens\":5}"
#define TWO_TURNS "{\"output_tokens\":10,\"input_tokens\":30}"
#define START_2 START_OF("msg_2", "{\"input_tokens\":20,\"output_tokens\":1}")

/* A published stream in which nothing is ours: a vendor's own tool, members that we do not know, spaces. */
#define OTHERS_START                                                                            \
    EVENT("message_start", ",\"message\":{\"id\":\"msg_1\", \"type\":\"message\",\"role\":"     \
                           "\"assistant\",\"model\":\"m-1\",\"content\":[],\"container\":null," \
                           "\"stop_reason\":null,\"stop_sequence\":null,\"stop_details\":null," \
                           "\"usage\":{\"input_tokens\":2310,\"output_tokens\":4,\"x\":1.0}}")
#define OTHERS_CALL                                                                           \
    BLOCK("0", "{\"type\":\"server_tool_use\",\"id\":\"srvtoolu_01\",\"name\":\"web_fetch\"," \
               "\"input\":{},\"caller\":{\"type\":\"direct\"}}")
#define OTHERS_INPUT INPUT("0", "{\\\"url\\\":") INPUT("0", "\\\"u\\\"}") STOP("0")
#define OTHERS_RESULT                                                                         \
    BLOCK("1", "{\"type\":\"new_result\",\"tool_use_id\":\"srvtoolu_01\",\"content\":[1.0]}") \
    STOP("1")
#define OTHERS_END                                                                          \
    EVENT("message_delta", ", \"delta\":{\"stop_reason\":\"pause_turn\",\"stop_sequence\":" \
                           "null,\"stop_details\":null},\"usage\":{\"input_tokens\":2310,"  \
                           "\"output_tokens\":184},\"y\":[]")                               \
    EVENT("message_stop", "")
#define OTHERS                                                                                \
    OTHERS_START OTHERS_CALL OTHERS_INPUT OTHERS_RESULT TEXT("2", "\\u00e4 9007199254740993") \
        OTHERS_END

/* The scenario gives the client this, however it is cut. */
static void expect_stream(void (*scenario)(struct bench *), const char *wanted)
{
    in_any_pieces(scenario);
    BENCH_CLEANUP struct bench b = bench_new(0);
    scenario(&b);
    expect_text(b.out.data, wanted);
}

static void run_scenario(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, START TEXT("0", "Let me see.") CALL_START("1", "toolu_1", "code_interpreter")
                      INPUT("1", "") INPUT("1", "{\\\"code\\\":") INPUT("1", "\\\"40+2\\\"}")
                          STOP("1") END("tool_use"));
    CU_ASSERT_EQUAL_FATAL(b->turn.calls_count, 1);
    CU_ASSERT_TRUE(str_is(b->turn.calls[0].arguments, "{\"code\":\"40+2\"}"));
    bench_check(b, true);
    bench_result(b, 0, "42\n");
    bench_turn(b, START_2 TEXT("0", "It is 42.") END("end_turn"));
    bench_finish(b, "unused");
}

static void b17_c027_a_run_shows_live_and_its_result_whole(void)
{
    expect_stream(run_scenario,
                  START TEXT("0", "Let me see.") SHOWN_START("1") INPUT("1", "{\\\"code\\\":")
                      INPUT("1", "\\\"40+2\\\"}") STOP("1") RAN("2", "42\\n") TEXT("3", "It is 42.")
                          TOTAL("end_turn", TWO_TURNS));
}

/* What the client has after each event, not only at the end. */
static void events_go_out_as_they_come(void)
{
    static const struct {
        const char *event;
        const char *given; /* ends with this then; NULL: nothing more */
    } steps[] = {
        {START, START},
        {BLOCK("0", "{\"type\":\"text\",\"text\":\"\"}"),
         BLOCK("0", "{\"type\":\"text\",\"text\":\"\"}")},
        {TEXT_DELTA("0", "a"), TEXT_DELTA("0", "a")},
        {STOP("0"), STOP("0")},
        {CALL_START("1", "t", "code_interpreter"), "\"caller\":{\"type\":\"direct\"}}}\n\n"},
        {INPUT("1", " "), NULL},
        {INPUT("1", "{\\\"c"), INPUT("1", "{\\\"c")},
        {INPUT("1", "ode\\\":1}"), INPUT("1", "ode\\\":1}")},
        {STOP("1"), STOP("1")},
        {CALL_START("2", "u", "get_stock"), NULL},
        {INPUT("2", "{}"), NULL},
        {END("tool_use"), NULL}};
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, STREAM_BODY);
    surface_messages.turn_begin(b.exchange, true);
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        size_t before = b.out.len;
        CU_ASSERT_EQUAL(
            surface_messages.turn_feed(b.exchange, str_of(steps[i].event), &b.out, &b.err), SG_OK);
        if (steps[i].given == NULL) {
            CU_ASSERT_EQUAL(b.out.len, before);
        } else {
            expect_part(b.out.data + before, steps[i].given);
        }
    }
    CU_ASSERT_TRUE(surface_messages.turn_is_done(b.exchange));
}

static void parallel_scenario(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, START CALL("0", "t1", "code_interpreter", "{\\\"code\\\":\\\"1\\\"}")
                      CALL("1", "t2", "code_interpreter", "{}") END("tool_use"));
    CU_ASSERT_EQUAL_FATAL(b->turn.calls_count, 2);
    bench_result(b, 0, "one");
    bench_result(b, 1, "two");
    expect_part(bench_request(b),
                ",{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t1\","
                "\"name\":\"code_interpreter\",\"input\":{\"code\":\"1\"}},{\"type\":\"tool_use\","
                "\"id\":\"t2\",\"name\":\"code_interpreter\",\"input\":{}}]},{\"role\":\"user\","
                "\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"content\":\"one\"}"
                ",{\"type\":\"tool_result\",\"tool_use_id\":\"t2\",\"content\":\"two\"}]}]");
    bench_turn(b, START_2 TEXT("0", "Both.") END("end_turn"));
    bench_finish(b, "");
}

static void calls_of_a_turn_come_first_and_results_in_their_order(void)
{
    expect_stream(parallel_scenario,
                  START SHOWN("0", "{\\\"code\\\":\\\"1\\\"}") SHOWN("1", "{}") RAN("2", "one")
                      RAN("3", "two") TEXT("4", "Both.") TOTAL("end_turn", TWO_TURNS));
}

static void mixed_scenario(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, START CALL("0", "c1", "get_stock", "{\\\"part\\\":1}")
                      CALL("1", "t1", "code_interpreter", "{}")
                          CALL("2", "c2", "get_stock", "{\\\"part\\\":2}") END("tool_use"));
    CU_ASSERT_EQUAL(b->turn.calls_count, 1);
    CU_ASSERT_TRUE(b->turn.has_client_calls);
    bench_result(b, 0, "one");
    bench_finish(b, "unused");
}

static void a_clients_call_waits_for_the_results_of_ours_in_front_of_it(void)
{
    expect_stream(mixed_scenario,
                  START CALL("0", "c1", "get_stock", "{\\\"part\\\":1}") SHOWN("1", "{}")
                      RAN("2", "one") CALL("3", "c2", "get_stock", "{\\\"part\\\":2}")
                          TOTAL("tool_use", ONE_TURN));
}

#define CITED "{\"type\":\"citations_delta\",\"citation\":{\"type\":\"web\", \"n\":1.0}}"
static void everything_scenario(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(
        b, START BLOCK("0", "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}")
               DELTA("0", "{\"type\":\"thinking_delta\",\"thinking\":\"h\\u00e4\"}")
                   DELTA("0", "{\"type\":\"thinking_delta\",\"thinking\":\"m\"}")
                       DELTA("0", "{\"type\":\"signature_delta\",\"signature\":\"s1\"}") STOP("0")
                           BLOCK("1", "{\"type\":\"redacted_thinking\",\"data\":\"d\"}") STOP("1")
                               BLOCK("2", "{\"type\":\"text\",\"text\":\"\",\"citations\":[]}")
                                   DELTA("2", CITED) TEXT_DELTA("2", "cited") STOP("2")
                                       BLOCK("3", "{\"type\":\"new_kind\",\"x\":[1.0]}")
                                           DELTA("3", "{\"type\":\"new_delta\",\"y\":1}") STOP("3")
                                               CALL("4", "t1", "code_interpreter", "{}")
                                                   END("tool_use"));
    bench_result(b, 0, "one");
    expect_part(bench_request(b),
                "{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":"
                "\"h\\u00e4m\",\"signature\":\"s1\"},{\"type\":\"redacted_thinking\",\"data\":"
                "\"d\"},{\"type\":\"text\",\"text\":\"cited\",\"citations\":[{\"type\":\"web\", "
                "\"n\":1.0}]},{\"type\":\"new_kind\",\"x\":[1.0]},{\"type\":\"tool_use\",\"id\":"
                "\"t1\",\"name\":\"code_interpreter\",\"input\":{}}]}");
    bench_turn(b, START_2 END("end_turn"));
    bench_finish(b, "");
}

static void b46_c035_all_kinds_of_blocks_pass_and_go_up_again_whole(void)
{
    expect_stream(
        everything_scenario,
        START BLOCK("0", "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}")
            DELTA("0", "{\"type\":\"thinking_delta\",\"thinking\":\"h\\u00e4\"}")
                DELTA("0", "{\"type\":\"thinking_delta\",\"thinking\":\"m\"}")
                    DELTA("0", "{\"type\":\"signature_delta\",\"signature\":\"s1\"}") STOP("0")
                        BLOCK("1", "{\"type\":\"redacted_thinking\",\"data\":\"d\"}") STOP("1")
                            BLOCK("2", "{\"type\":\"text\",\"text\":\"\",\"citations\":[]}")
                                DELTA("2", CITED) TEXT_DELTA("2", "cited") STOP("2")
                                    BLOCK("3", "{\"type\":\"new_kind\",\"x\":[1.0]}")
                                        DELTA("3", "{\"type\":\"new_delta\",\"y\":1}") STOP("3")
                                            SHOWN("4", "{}") RAN("5", "one")
                                                TOTAL("end_turn", TWO_TURNS));
}

static void closing_scenario(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, START RUN_42);
    bench_result(b, 0, "42");
    bench_turn(b, START_2 CALL("0", "t2", "code_interpreter", "{\\\"code\\\":\\\"x\\\"}")
                      END("tool_use"));
    bench_finish(b, "The tools were used up.");
}

static void a_call_that_is_not_run_gets_an_error_and_the_answer_its_words(void)
{
    expect_stream(closing_scenario,
                  START SHOWN("0", "{\\\"code\\\":\\\"40+2\\\"}") RAN("1", "42")
                      SHOWN("2", "{\\\"code\\\":\\\"x\\\"}") BLOCK(
                          "3", "{\"type\":\"code_execution_tool_result\",\"tool_use_id\":\"" ID
                               "\",\"content\":{\"type\":\"code_execution_tool_result_error\","
                               "\"error_code\":\"too_many_requests\"}}") STOP("3")
                          TEXT("4", "The tools were used up.") TOTAL("end_turn", TWO_TURNS));
}

static void cut_by_length_scenario(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, START CALL_START("0", "t1", "code_interpreter")
                      INPUT("0", "{\\\"code\\\":\\\"pri") END("max_tokens"));
    CU_ASSERT_TRUE(b->turn.length);
    bench_finish(b, "");
}

static void a_call_cut_by_the_token_limit_is_not_run_and_says_so(void)
{
    expect_stream(
        cut_by_length_scenario,
        START SHOWN_START("0") INPUT("0", "{\\\"code\\\":\\\"pri") INPUT("0", "\\\"}") STOP("0")
            BLOCK("1", "{\"type\":\"code_execution_tool_result\",\"tool_use_id\":\"" ID
                       "\",\"content\":{\"type\":\"code_execution_tool_result_error\","
                       "\"error_code\":\"invalid_tool_input\"}}") STOP("1")
                TOTAL("max_tokens", ONE_TURN));
}

static void parallel_off_scenario(struct bench *b)
{
    bench_open(b, HEAD "\"stream\":true,\"tool_choice\":{\"type\":\"auto\","
                       "\"disable_parallel_tool_use\":true}," USER ",\"tools\":[" PYTHON_TOOL
                       "," OWN_TOOL "]}");
    bench_turn(b, START TEXT("0", "a") CALL("1", "t1", "code_interpreter", "{}")
                      CALL("2", "c1", "get_stock", "{}") CALL("3", "t2", "code_interpreter", "{}")
                          TEXT("4", "b") END("tool_use"));
    CU_ASSERT_EQUAL(b->turn.calls_count, 1);
    CU_ASSERT_FALSE(b->turn.has_client_calls);
    bench_result(b, 0, "one");
    expect_no_part(bench_request(b), "\"id\":\"c1\"");
    expect_no_part(bench_request(b), "\"id\":\"t2\"");
    bench_turn(b, START_2 TEXT("0", "c") END("end_turn"));
    bench_finish(b, "");
}

static void with_parallel_calls_off_the_first_call_stands(void)
{
    expect_stream(parallel_off_scenario,
                  START TEXT("0", "a") SHOWN("1", "{}") TEXT("2", "b") RAN("3", "one")
                      TEXT("4", "c") TOTAL("end_turn", TWO_TURNS));
}

#define JSON_FORMAT "\"output_config\":{\"format\":{\"type\":\"json_schema\",\"schema\":{}}},"
static void held_scenario(struct bench *b)
{
    bench_open(b, HEAD JSON_FORMAT "\"stream\":true," USER ",\"tools\":[" PYTHON_TOOL "," OWN_TOOL
                                   "]}");
    bench_turn(b, START TEXT("0", "I will run it.") CALL("1", "t1", "code_interpreter", "{}")
                      END("tool_use"));
    CU_ASSERT_FALSE(b->turn.has_text);
    bench_result(b, 0, "one");
    expect_part(bench_request(b), "I will run it.");
    bench_turn(b, START_2 BLOCK("0", "{\"type\":\"text\",\"text\":\"\"}") TEXT_DELTA("0", "{}")
                      STOP("0") CALL("1", "c1", "get_stock", "{\\\"a\\\":1}") END("tool_use"));
    CU_ASSERT_TRUE(b->turn.has_text);
    bench_finish(b, "");
}

static void with_a_json_format_text_beside_a_run_is_left_out(void)
{
    expect_stream(held_scenario,
                  START SHOWN("0", "{}") RAN("1", "one") TEXT("2", "{}")
                      CALL("3", "c1", "get_stock", "{\\\"a\\\":1}") TOTAL("tool_use", TWO_TURNS));
}

static void a_call_that_nobody_offered_is_the_clients_b09_b19(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, HEAD "\"stream\":true," USER ",\"tools\":[" SHELL_TOOL "]}");
    bench_turn(&b, START CALL("0", "t1", "code_interpreter", "{}") END("tool_use"));
    CU_ASSERT_EQUAL(b.turn.calls_count, 0);
    CU_ASSERT_TRUE(b.turn.has_client_calls);
    expect_text(bench_finish(&b, ""),
                START CALL("0", "t1", "code_interpreter", "{}") TOTAL("tool_use", ONE_TURN));
}

static void calls_of_an_offer_without_a_kind_run_unseen(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    b.offers[0].hosted = STR("");
    bench_open(&b, STREAM_BODY);
    bench_turn(&b, START TEXT("0", "a") RUN_42);
    CU_ASSERT_EQUAL(b.turn.calls_count, 1);
    bench_result(&b, 0, "42");
    expect_part(bench_request(&b), "\"tool_use_id\":\"toolu_1\",\"content\":\"42\"");
    bench_turn(&b, START_2 TEXT("0", "b") END("end_turn"));
    expect_text(bench_finish(&b, ""),
                START TEXT("0", "a") TEXT("1", "b") TOTAL("end_turn", TWO_TURNS));
}

static void whole_scenario(struct bench *b)
{
    bench_open(b, STREAM_BODY);
    bench_turn(b, OTHERS);
    bench_finish(b, "unused");
}

static void b16_without_runs_the_stream_is_the_upstreams_bytes(void)
{
    expect_stream(whole_scenario, OTHERS);
}

static void c056_b10_several_runs_show_one_after_another(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b, STREAM_BODY);
    bench_turn(&b, START CALL("0", "t1", "code_interpreter", "{}") END("tool_use"));
    bench_result(&b, 0, "1");
    bench_turn(&b, START_2 CALL("0", "t2", "code_interpreter", "{}") END("tool_use"));
    bench_result(&b, 0, "2");
    expect_part(bench_request(&b),
                "\"tool_use_id\":\"t1\",\"content\":\"1\"}]},{\"role\":\"assistant\",\"content\":[{"
                "\"type\":\"tool_use\",\"id\":\"t2\"");
    bench_turn(&b, START_2 TEXT("0", "3") END("end_turn"));
    expect_text(bench_finish(&b, ""),
                START SHOWN("0", "{}") RAN("1", "1") SHOWN("2", "{}") RAN("3", "2") TEXT("4", "3")
                    TOTAL("end_turn", "{\"output_tokens\":15,\"input_tokens\":50}"));
}

static const struct test tests[] = {
    TEST(b17_c027_a_run_shows_live_and_its_result_whole),
    TEST(events_go_out_as_they_come),
    TEST(calls_of_a_turn_come_first_and_results_in_their_order),
    TEST(a_clients_call_waits_for_the_results_of_ours_in_front_of_it),
    TEST(b46_c035_all_kinds_of_blocks_pass_and_go_up_again_whole),
    TEST(a_call_that_is_not_run_gets_an_error_and_the_answer_its_words),
    TEST(a_call_cut_by_the_token_limit_is_not_run_and_says_so),
    TEST(with_parallel_calls_off_the_first_call_stands),
    TEST(with_a_json_format_text_beside_a_run_is_left_out),
    TEST(a_call_that_nobody_offered_is_the_clients_b09_b19),
    TEST(calls_of_an_offer_without_a_kind_run_unseen),
    TEST(b16_without_runs_the_stream_is_the_upstreams_bytes),
    TEST(c056_b10_several_runs_show_one_after_another),
};

int main(int argc, char **argv)
{
    return run_tests("messages_stream", tests, COUNT_OF(tests), argc, argv);
}
