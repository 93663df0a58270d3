/* What comes back on responses: calls of ours in a history, earlier responses and items that are referred to, all resolved
 * from what was kept, as the upstream knows them. */
#include "responses_bench.h"

#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define TOOLS "\"tools\":[" CODE_TOOL "," OWN_TOOL "]"

/* An answer that ran code and said something, kept under resp_sg ID_A. Returns the id of its call's item. */
static char *answer_first(struct bench *b, const struct bench_store *store)
{
    b->store = &store->store;
    b->answer_id = ID_A;
    bench_open(b, "{\"model\":\"m\",\"input\":\"hi\"," TOOLS "}");
    bench_turn(b, UP_CREATED CALL("0", "fc_1", "call_1", "code_interpreter", CODE_42) UP_END);
    bench_result(b, 0, "42\n");
    bench_turn(b, UP_CREATED SAY("0", "msg_upstream", "It is 42.") UP_END);
    bench_finish(b, "");
    char *at = strstr(b->out.data, "ci_sg");
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    return arena_printf(b->arena, "%.37s", at);
}

/* ---- the client's own history ---- */

static void a_call_in_the_history_becomes_a_call_and_its_result(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(
        &b, "{\"model\":\"m\",\"input\":[{\"role\":\"user\",\"content\":\"x\"},{\"id\":\"ci_sg1\","
            "\"type\":\"code_interpreter_call\",\"status\":\"completed\",\"code\":\"p(1)\\n\","
            "\"container_id\":\"cntr_7\",\"outputs\":[{\"type\":\"logs\",\"logs\":\"1\\n\"},"
            "{\"type\":\"image\",\"url\":\"data:image/png;base64,AA==\"}]},{\"id\":\"ci_68\","
            "\"type\":\"code_interpreter_call\",\"code\":\"v\",\"outputs\":null}]," TOOLS "}");
    expect_part(
        bench_request(&b),
        "\"input\":[{\"role\":\"user\",\"content\":\"x\"},{\"type\":\"function_call\",\"call_id\":"
        "\"call_ci_sg1\",\"name\":\"code_interpreter\",\"arguments\":\"{\\\"code\\\":\\\"p(1)"
        "\\\\n\\\"}\"},{\"type\":\"function_call_output\",\"call_id\":\"call_ci_sg1\","
        "\"output\":\"1\\n[image]\\n\"},{\"id\":\"ci_68\",\"type\":\"code_interpreter_call\","
        "\"code\":\"v\",\"outputs\":null}]");
    struct surface_container found = surface_responses.container(b.exchange);
    CU_ASSERT_TRUE(str_is(found.id, "cntr_7")); /* C052, C056: taken up if it is there */
    CU_ASSERT_FALSE(found.is_demanded);
}

static void c053_a_named_container_wins_over_the_historys(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    bench_open(&b,
               "{\"model\":\"m\",\"input\":[{\"id\":\"ci_sg1\",\"type\":\"code_interpreter_call\","
               "\"code\":\"\",\"container_id\":\"cntr_7\",\"outputs\":null}],\"tools\":[{\"type\":"
               "\"code_interpreter\",\"container\":\"cntr_8\"}]}");
    struct surface_container found = surface_responses.container(b.exchange);
    CU_ASSERT_TRUE(str_is(found.id, "cntr_8"));
    CU_ASSERT_TRUE(found.is_demanded);
}

static void where_the_tool_is_not_offered_a_call_becomes_text(void)
{
    BENCH_CLEANUP struct bench b = bench_new(0);
    const char *body =
        "{\"model\":\"m\",\"input\":[{\"id\":\"ci_sg1\",\"type\":\"code_interpreter_call\","
        "\"code\":"
        "\"p(1)\",\"container_id\":\"cntr_7\",\"outputs\":[{\"type\":\"logs\",\"logs\":\"1\"}]}]}";
    CU_ASSERT_TRUE(bench_looks_for(&b, body));
    bench_open(&b, body);
    expect_part(
        bench_request(&b),
        "\"input\":[{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":"
        "\"output_text\",\"text\":\"[code_interpreter was called with {\\\"code\\\":\\\"p(1)"
        "\\\"} and returned:]\\n1\"}]}],\"store\":false}");
}

static void reasoning_without_content_is_left_out_wherever_it_stands(void)
{
#define EMPTY "{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[]}"
#define FULL "{\"type\":\"reasoning\",\"id\":\"rs_2\",\"summary\":[],\"encrypted_content\":\"x\"}"
#define USER_X "{\"role\":\"user\",\"content\":\"x\"}"
    static const struct {
        const char *input, *up;
    } cases[] = {{EMPTY, "\"input\":[]"},
                 {EMPTY " , " USER_X, "\"input\":[" USER_X "]"},
                 {USER_X ", " EMPTY, "\"input\":[" USER_X "]"},
                 {EMPTY "," EMPTY "," USER_X "," EMPTY " ," FULL "," EMPTY "," EMPTY,
                  "\"input\":[" USER_X "," FULL "]"},
                 {EMPTY "," EMPTY, "\"input\":[]"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        bench_open(&b, arena_printf(b.arena, "{\"model\":\"m\",\"input\":[%s]," TOOLS "}",
                                    cases[i].input));
        expect_part(bench_request(&b), cases[i].up);
        bench_turn(&b, RUN_42);
        bench_result(&b, 0, "42");
        bench_request(&b); /* checked to be JSON */
    }
}

/* ---- what was kept ---- */

static void a_previous_response_is_put_in_front(void)
{
    STORE_CLEANUP struct bench_store store;
    bench_store_init(&store);
    BENCH_CLEANUP struct bench first = bench_new(0), second = bench_new(0), third = bench_new(0);
    answer_first(&first, &store);
    CU_ASSERT_EQUAL_FATAL(store.count, 1);
    second.store = third.store = &store.store;
    second.answer_id = ID_B;
    const char *body = "{\"model\":\"m\",\"previous_response_id\":\"resp_sg" ID_A
                       "\",\"input\":[{\"role\":\"user\",\"content\":\"more\"}]," TOOLS "}";
    CU_ASSERT_TRUE(bench_looks_for(&second, body));
    bench_open(&second, body);
    bench_request(&second);
    bench_plain_ids(second.request.data);
    expect_part(
        second.request.data,
        "{\"model\":\"m\",\"input\":[{\"role\":\"user\",\"content\":\"hi\"},{\"type\":\"function_"
        "call\",\"call_id\":\"call_ci_sg00000000000000000000000000000000\",\"name\":\"code_"
        "interpreter\",\"arguments\":\"" CODE_42
        "\"},{\"type\":\"function_call_output\",\"call_id\":\"call_ci_sg"
        "00000000000000000000000000000000\",\"output\":\"42\\n\"}," MESSAGE(
            "msg_upstream", "It is 42.") ",{\"role\":\"user\",\"content\":\"more\"}],");
    CU_ASSERT_TRUE(str_is(surface_responses.container(second.exchange).id, "cntr_1"));
    bench_turn(&second, UP_CREATED SAY("0", "msg_other", "Yes.") UP_END);
    bench_finish(&second, "");
    expect_part(second.out.data, "\"previous_response_id\":\"resp_sg" ID_A "\"");
    /* A chain: the third request has the input and output of both, in order; its own input is a text. */
    bench_open(&third,
               "{\"model\":\"m\",\"previous_response_id\":\"resp_sg" ID_B "\",\"input\":\"last\"}");
    bench_request(&third);
    const char *const order[] = {
        "\"hi\"", "[code_interpreter was called", "It is 42.", "\"more\"", "Yes.", "\"last\""};
    const char *at = third.request.data;
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        at = strstr(at, order[i]);
        CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    }
    CU_ASSERT_PTR_NULL(strstr(third.request.data, "previous_response_id"));
}

static void a_previous_response_goes_in_front_of_nothing_too(void)
{
    STORE_CLEANUP struct bench_store store;
    bench_store_init(&store);
    BENCH_CLEANUP struct bench first = bench_new(0);
    answer_first(&first, &store);
    static const char *const inputs[] = {"", "\"input\":[],", "\"input\":null,",
                                         "\"input\":[" EMPTY "],"};
    for (size_t i = 0; i < COUNT_OF(inputs); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        b.store = &store.store;
        bench_open(&b, arena_printf(b.arena,
                                    "{\"model\":\"m\",%s\"previous_response_id\":\"resp_sg" ID_A
                                    "\"," TOOLS "}",
                                    inputs[i]));
        expect_part(bench_request(&b), "\"input\":[{\"role\":\"user\",\"content\":\"hi\"},");
        bench_turn(&b, RUN_42);
        bench_result(&b, 0, "1");
        expect_part(bench_request(&b), MESSAGE("msg_upstream", "It is 42.") ",{\"id\":\"fc_1\"");
    }
}

static void an_unknown_previous_response_is_named(void)
{
    STORE_CLEANUP struct bench_store store;
    bench_store_init(&store);
    BENCH_CLEANUP struct bench b = bench_new(0);
    b.store = &store.store;
    CU_ASSERT_EQUAL(bench_try_open(&b, "{\"model\":\"m\",\"input\":\"x\",\"previous_response_id\":"
                                       "\"resp_sgx\"," TOOLS "}"),
                    SG_E_INVALID);
    CU_ASSERT_STRING_EQUAL(b.err.message, "Previous response with id 'resp_sgx' not found.");
    CU_ASSERT_STRING_EQUAL(b.err.param, "previous_response_id");
    CU_ASSERT_STRING_EQUAL(b.err.reason, "previous_response_not_found");
    CU_ASSERT_EQUAL(error_status(&b.err), 400);
}

static void references_to_items_are_resolved(void)
{
    STORE_CLEANUP struct bench_store store;
    bench_store_init(&store);
    BENCH_CLEANUP struct bench first = bench_new(0), second = bench_new(0);
    char *call = answer_first(&first, &store);
    second.store = &store.store;
    const char *body = arena_printf(
        second.arena,
        "{\"model\":\"m\",\"input\":[{\"role\":\"user\",\"content\":\"hi\"},{\"type\":\"item_"
        "reference\","
        "\"id\":\"%s\"},{\"id\":\"msg_upstream\"},{\"role\":\"user\",\"content\":\"y\"}]}",
        call);
    CU_ASSERT_TRUE(bench_looks_for(&second, body));
    body = arena_printf(second.arena, "%.*s," TOOLS "}", (int)strlen(body) - 1, body);
    bench_open(&second, body);
    bench_request(&second);
    bench_plain_ids(second.request.data);
    expect_part(second.request.data,
                "\"output\":\"42\\n\"}," MESSAGE(
                    "msg_upstream", "It is 42.") ",{\"role\":\"user\",\"content\":\"y\"}]");
    expect_part(second.request.data, "\"content\":\"hi\"},{\"type\":\"function_call\",");
}

static void an_unknown_reference_is_named(void)
{
    STORE_CLEANUP struct bench_store store;
    bench_store_init(&store);
    static const char *const references[] = {"{\"type\":\"item_reference\",\"id\":\"rs_x\"}",
                                             "{\"id\":\"rs_x\"}",
                                             "{\"id\":\"rs_x\",\"type\":null}"};
    for (size_t i = 0; i < COUNT_OF(references); i++) {
        BENCH_CLEANUP struct bench b = bench_new(0);
        b.store = &store.store;
        char *body =
            arena_printf(b.arena, "{\"model\":\"m\",\"input\":[%s]," TOOLS "}", references[i]);
        CU_ASSERT_EQUAL(bench_try_open(&b, body), SG_E_NOT_FOUND);
        CU_ASSERT_STRING_EQUAL(b.err.message, "Item with id 'rs_x' not found.");
        CU_ASSERT_STRING_EQUAL(b.err.param, "input");
    }
    BENCH_CLEANUP struct bench b = bench_new(0);
    CU_ASSERT_EQUAL(bench_try_open(&b,
                                   "{\"input\":[{\"type\":\"item_reference\",\"id\":\"a\",\"id\":"
                                   "\"b\"}]," TOOLS "}"),
                    SG_E_INVALID);
}

static void outputs_that_were_withheld_are_found_again(void)
{
    STORE_CLEANUP struct bench_store store;
    bench_store_init(&store);
    BENCH_CLEANUP struct bench first = bench_new(0), second = bench_new(0);
    char *call = answer_first(&first, &store);
    expect_part(first.out.data, "\"outputs\":null");
    second.store = &store.store;
    bench_open(&second,
               arena_printf(second.arena,
                            "{\"model\":\"m\",\"input\":[{\"id\":\"%s\",\"type\":\"code_"
                            "interpreter_call\",\"status\":\"completed\",\"code\":\"print("
                            "40+2)\",\"container_id\":\"cntr_1\",\"outputs\":null}]," TOOLS "}",
                            call));
    expect_part(bench_request(&second), "\"output\":\"42\\n\"}]");
    BENCH_CLEANUP struct bench alone = bench_new(0); /* no store: an empty result */
    bench_open(&alone,
               "{\"model\":\"m\",\"input\":[{\"id\":\"ci_sg1\",\"type\":\"code_interpreter_call\","
               "\"code\":null,\"container_id\":\"cntr_1\",\"outputs\":null}]," TOOLS "}");
    expect_part(bench_request(&alone),
                "\"arguments\":\"{\\\"code\\\":\\\"\\\"}\"},{\"type\":\"function_"
                "call_output\",\"call_id\":\"call_ci_sg1\",\"output\":\"\"}]");
}

static void with_store_false_nothing_is_kept(void)
{
    STORE_CLEANUP struct bench_store store;
    bench_store_init(&store);
    BENCH_CLEANUP struct bench b = bench_new(0);
    b.store = &store.store;
    bench_open(&b, "{\"model\":\"m\",\"input\":\"hi\",\"store\":false," TOOLS "}");
    bench_plain_turn(&b, PLAIN(MESSAGE("m1", "Hi.")));
    bench_finish(&b, "");
    CU_ASSERT_EQUAL(store.count, 0);
}

static void an_id_of_an_earlier_answer_is_not_used_again(void)
{
    STORE_CLEANUP struct bench_store store;
    bench_store_init(&store);
    BENCH_CLEANUP struct bench first = bench_new(0), second = bench_new(0);
    answer_first(&first, &store);
    second.store = &store.store;
    second.answer_id = ID_B;
    bench_open(&second, PLAIN_BODY);
    bench_turn(&second, UP_CREATED SAY("0", "msg_upstream", "Again.") UP_END);
    bench_finish(&second, "");
    CU_ASSERT_PTR_NULL(strstr(second.out.data, "msg_upstream"));
    struct str data;
    CU_ASSERT_TRUE(store.store.find(&store, STR("msg_upstream"), &data));
    CU_ASSERT_PTR_NOT_NULL(memmem(data.data, data.len, "It is 42.", 9));
}

static const struct test tests[] = {
    TEST(a_call_in_the_history_becomes_a_call_and_its_result),
    TEST(c053_a_named_container_wins_over_the_historys),
    TEST(where_the_tool_is_not_offered_a_call_becomes_text),
    TEST(reasoning_without_content_is_left_out_wherever_it_stands),
    TEST(a_previous_response_is_put_in_front),
    TEST(a_previous_response_goes_in_front_of_nothing_too),
    TEST(an_unknown_previous_response_is_named),
    TEST(references_to_items_are_resolved),
    TEST(an_unknown_reference_is_named),
    TEST(outputs_that_were_withheld_are_found_again),
    TEST(with_store_false_nothing_is_kept),
    TEST(an_id_of_an_earlier_answer_is_not_used_again),
};

int main(int argc, char **argv)
{
    return run_tests("responses_history", tests, COUNT_OF(tests), argc, argv);
}
