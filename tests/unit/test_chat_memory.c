/* What chat remembers between two requests: turns that mix calls of ours with the client's. The memory here is a list; the
 * gateway's is in core/session/records.c. Runs that were shown: test_chat_shown.c. */
#include "chat_memory_fixture.h"

#include "base/limits.h"

static void a_mixed_turn_is_put_together_again_when_the_results_come(void)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    BENCH_CLEANUP struct bench first = bench_with(&m), next = bench_with(&m);
    first_request(&m, &first);
    CU_ASSERT_PTR_NULL(strstr(first.out.data, "code_interpreter"));
    CU_ASSERT_EQUAL(m.count, 2); /* one record, under each of the client's ids */
    CU_ASSERT_TRUE(m.goes_on);
    cJSON *calls;
    char *message = client_message(&first, &calls);
    CU_ASSERT_EQUAL(cJSON_GetArraySize(calls), 2);
    CU_ASSERT_EQUAL(strncmp(id_of(calls, 0), "call_sg", 7), 0);
    CU_ASSERT_EQUAL(strlen(id_of(calls, 0)), 7 + 32);
    CU_ASSERT_STRING_NOT_EQUAL(id_of(calls, 0), id_of(calls, 1));
    BUF_CLEANUP struct buf body = {0};
    body_put(&body, TOOLS ",", "%s," RESULT("%s", "stock 1") "," RESULT("%s", "stock 2"), message,
             id_of(calls, 0), id_of(calls, 1));
    CU_ASSERT_TRUE(bench_looks_for(&next, body.data));
    bench_open(&next, body.data);
    CU_ASSERT_TRUE(str_is(m.resumed, id_of(calls, 0)));
    expect_messages(
        &next,
        MESSAGE("\"Let me see.\"", ENTRY("call_0", "code_interpreter", "{\\\"code\\\":\\\"x=1\\\"}")) "," RESULT(
            "call_0",
            "ran") "," MESSAGE("\"Both.\"", CODE_A
                               "," STOCK_B "," CODE_C
                               "," STOCK_D) "," RESULT("call_0",
                                                       "5!") "," RESULT("call_1",
                                                                        "stock 1") "," RESULT("call"
                                                                                              "_2",
                                                                                              "6!") "," RESULT("call_3",
                                                                                                               "stock 2"));
    free(message);
    cJSON_Delete(calls);
}

static void our_results_stand_in_the_order_of_the_calls_wherever_the_clients_do(void)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    BENCH_CLEANUP struct bench first = bench_with(&m), next = bench_with(&m);
    bench_open(&first, BODY);
    bench_plain_turn(&first, ANSWER(MESSAGE("null", STOCK_B "," CODE_A "," CODE_C)));
    bench_result(&first, 0, "5!");
    bench_result(&first, 1, "6!");
    bench_finish(&first, "");
    cJSON *calls;
    char *message = client_message(&first, &calls);
    BUF_CLEANUP struct buf body = {0};
    body_put(&body, TOOLS ",", "%s, " RESULT("%s", "s") " ,{\"role\":\"user\",\"content\":\"go\"}",
             message, id_of(calls, 0));
    bench_open(&next, body.data);
    expect_messages(
        &next,
        MESSAGE("null", STOCK_B "," CODE_A "," CODE_C) ", " RESULT("call_1", "s") "," RESULT(
            "call_0", "5!") "," RESULT("call_2", "6!") " ,{\"role\":\"user\",\"content\":\"go\"}");
    CU_ASSERT_TRUE(str_is(m.resumed, id_of(calls, 0)));
    free(message);
    cJSON_Delete(calls);
}

/* What a client library may change without meaning to. */
static void white_space_and_null_content_do_not_count_as_a_change(void)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    BENCH_CLEANUP struct bench first = bench_with(&m);
    bench_open(&first, BODY);
    bench_plain_turn(&first, ANSWER(MESSAGE("\"T\"", CODE_A "," STOCK_B)));
    bench_result(&first, 0, "5!");
    bench_finish(&first, "");
    cJSON *calls;
    free(client_message(&first, &calls));
    static const char *const forms[] = {"\"T\"", "[{\"type\":\"text\",\"text\":\"T\"}]",
                                        "\"\\u0054\""};
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        BENCH_CLEANUP struct bench next = bench_with(&m);
        BUF_CLEANUP struct buf body = {0};
        body_put(&body, TOOLS ",",
                 "{\"content\" : %s,\"tool_calls\":[{\"function\":{\"arguments\":\"{\\\"part\\\":"
                 "\\\"A-7\\\"}\",\"name\":\"get_stock\"},\"type\":\"function\",\"id\":\"%s\"}],"
                 "\"refusal\":null,\"role\":\"assistant\"}," RESULT("%s", "s"),
                 forms[i], id_of(calls, 0), id_of(calls, 0));
        bench_open(&next, body.data);
        expect_messages(&next, MESSAGE("\"T\"", CODE_A "," STOCK_B) "," RESULT(
                                   "call_0", "5!") "," RESULT("call_1", "s"));
    }
    cJSON_Delete(calls);
}

/* The text with two ids for @1 and @2. */
static void fill(struct buf *out, const char *text, const char *one, const char *two)
{
    for (; *text != '\0'; text++) {
        if (text[0] == '@' && (text[1] == '1' || text[1] == '2')) {
            buf_puts(out, *++text == '1' ? one : two);
        } else {
            buf_putc(out, *text);
        }
    }
}

static void what_was_changed_goes_up_as_the_client_has_it(void)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    BENCH_CLEANUP struct bench first = bench_with(&m);
    first_request(&m, &first);
    cJSON *calls;
    free(client_message(&first, &calls));
#define TWO_CALLS(text, part)                                                                  \
    "{\"role\":\"assistant\",\"content\":" text                                                \
    ",\"tool_calls\":[" ENTRY("@1", "get_stock", "{\\\"part\\\":\\\"" part "\\\"}") "," ENTRY( \
        "@2", "get_stock", "{\\\"part\\\":\\\"B\\\"}") "]}"
    static const char *const changed[] = {
        TWO_CALLS("\"Another text.\"", "A-7") "," RESULT("@1", "1") "," RESULT("@2", "2"),
        TWO_CALLS("\"Let me see.\\n\\nBoth.\"", "A-8") "," RESULT("@1", "1") "," RESULT("@2", "2"),
        TWO_CALLS("\"Let me see.\\n\\nBoth.\"", "A-7") "," RESULT("@2", "2"), /* one is missing */
        "{\"role\":\"assistant\",\"content\":\"Let me see.\\n\\nBoth.\",\"tool_calls\":[" ENTRY(
            "@2", "get_stock", "{\\\"part\\\":\\\"B\\\"}") "]}," RESULT("@2", "2"),
    };
    for (size_t i = 0; i < COUNT_OF(changed); i++) {
        BENCH_CLEANUP struct bench next = bench_with(&m);
        BUF_CLEANUP struct buf body = {0}, filled = {0}, wanted = {0};
        m.resumed = (struct str){0};
        fill(&filled, changed[i], id_of(calls, 0), id_of(calls, 1));
        fill(&wanted, changed[i], "call_1", "call_3"); /* but for the ids, which are known */
        body_put(&body, TOOLS ",", "%s", filled.data);
        bench_open(&next, body.data);
        expect_messages(&next, wanted.data);
        CU_ASSERT_EQUAL(m.resumed.len, 0);
    }
    cJSON_Delete(calls);
}

static void without_a_record_nothing_is_changed(void)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    static const char text[] = "{\"role\":\"assistant\",\"content\":\"x\",\"tool_calls\":[" ENTRY(
        "call_sg00000000000000000000000000000000", "get_stock",
        "{}") "]}," RESULT("call_sg00000000000000000000000000000000", "1");
    BENCH_CLEANUP struct bench b = bench_with(&m);
    BUF_CLEANUP struct buf body = {0}, bare = {0};
    body_put(&body, TOOLS ",", "%s", text);
    body_put(&bare, "", "%s", text);
    CU_ASSERT_FALSE(bench_looks_for(&b, bare.data));
    bench_open(&b, body.data);
    expect_messages(&b, text);
    CU_ASSERT_EQUAL(m.resumed.len, 0);
}

static void an_answer_that_was_continued_already_is_not_resumed(void)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    BENCH_CLEANUP struct bench first = bench_with(&m), next = bench_with(&m);
    first_request(&m, &first);
    cJSON *calls;
    char *message = client_message(&first, &calls);
    BUF_CLEANUP struct buf body = {0};
    body_put(&body, TOOLS ",",
             "%s," RESULT("%s", "1") "," RESULT(
                 "%s", "2") ",{\"role\":\"assistant\",\"content\":\"Done.\"},{\"role\":\"user\","
                            "\"content\":\"more\"}",
             message, id_of(calls, 0), id_of(calls, 1));
    bench_open(&next, body.data);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench_request(&next), "\"content\":\"6!\"")); /* yet put back */
    CU_ASSERT_EQUAL(m.resumed.len, 0);
    free(message);
    cJSON_Delete(calls);
}

static void where_the_tool_is_not_offered_its_runs_become_text(void)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    BENCH_CLEANUP struct bench first = bench_with(&m), next = bench_with(&m);
    first_request(&m, &first);
    cJSON *calls;
    char *message = client_message(&first, &calls);
    BUF_CLEANUP struct buf body = {0};
    body_put(&body, "\"tools\":[" OWN_TOOL "],", "%s," RESULT("%s", "1") "," RESULT("%s", "2"),
             message, id_of(calls, 0), id_of(calls, 1));
    CU_ASSERT_TRUE(bench_looks_for(&next, body.data)); /* although nothing hosted is named */
    bench_open(&next, body.data);
    expect_messages(
        &next,
        "{\"role\":\"assistant\",\"content\":\"[code_interpreter was called with "
        "{\\\"code\\\":\\\"x=1\\\"} and returned:]\\nran\\n\\n[code_interpreter was called with "
        "{\\\"code\\\":\\\"5\\\"} and returned:]\\n5!\\n\\n[code_interpreter was called with "
        "{\\\"code\\\":\\\"6\\\"} and returned:]\\n6!\\n\\nLet me see.\\n\\nBoth.\",\"tool_"
        "calls\":[" STOCK_B "," STOCK_D "]}," RESULT("call_1", "1") "," RESULT("call_3", "2"));
    free(message);
    cJSON_Delete(calls);
}

static void a_function_that_is_called_otherwise_now_is_renamed_in_the_history(void)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    BENCH_CLEANUP struct bench first = bench_with(&m), next = bench_with(&m);
    first_request(&m, &first);
    cJSON *calls;
    char *message = client_message(&first, &calls);
    BUF_CLEANUP struct buf body = {0};
    next.offers[0].name = STR("python");
    body_put(&body, TOOLS ",", "%s," RESULT("%s", "1") "," RESULT("%s", "2"), message,
             id_of(calls, 0), id_of(calls, 1));
    bench_open(&next, body.data);
    const char *up = bench_request(&next);
    CU_ASSERT_PTR_NULL(strstr(up, "code_interpreter"));
    CU_ASSERT_PTR_NOT_NULL(strstr(up, ENTRY("call_0", "python", "{\\\"code\\\":\\\"x=1\\\"}")));
    CU_ASSERT_PTR_NOT_NULL(strstr(up, ENTRY("call_2", "python", "{\\\"code\\\":\\\"6\\\"}")));
    CU_ASSERT_PTR_NOT_NULL(strstr(up, STOCK_B));
    free(message);
    cJSON_Delete(calls);
}

static void two_tools_of_one_name_are_told_apart(void)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    BENCH_CLEANUP struct bench first = bench_with(&m), next = bench_with(&m);
    for (size_t i = 0; i < 2; i++) { /* of two interceptors, and of no hosted kind */
        first.offers[i] = next.offers[i] = (struct surface_offer){.name = STR("probe")};
    }
    bench_open(&first, "{" USER ",\"tools\":[" OWN_TOOL "]}");
    bench_plain_turn(&first, ANSWER(MESSAGE("null", ENTRY("a", "probe", "{}") "," ENTRY(
                                                        "b", "probe_2", "{}") "," STOCK_B)));
    CU_ASSERT_EQUAL_FATAL(first.turn.calls_count, 2);
    bench_result(&first, 0, "one");
    bench_result(&first, 1, "two");
    bench_finish(&first, "");
    cJSON *calls;
    char *message = client_message(&first, &calls);
    BUF_CLEANUP struct buf body = {0};
    body_put(&body, "\"tools\":[" OWN_TOOL "],", "%s," RESULT("%s", "1"), message, id_of(calls, 0));
    bench_open(&next, body.data);
    expect_messages(
        &next,
        MESSAGE("null",
                ENTRY("a", "probe", "{}") "," ENTRY(
                    "b", "probe_2",
                    "{}") "," STOCK_B) "," RESULT("a", "one") "," RESULT("b",
                                                                         "two") "," RESULT("call_1",
                                                                                           "1"));
    free(message);
    cJSON_Delete(calls);
}

/* ---- streams ---- */

static void a_streamed_mixed_turn_is_put_together_again(void)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    BENCH_CLEANUP struct bench first = bench_with(&m), next = bench_with(&m);
    bench_open(&first, STREAM_BODY);
    bench_turn(&first, ROLE TEXT("Let me see.")
                           CALL("0", "call_0", "code_interpreter", "{\\\"code\\\":\\\"1\\\"}")
                               FINISH("tool_calls") DONE);
    bench_result(&first, 0, "one");
    bench_turn(&first, ROLE TEXT("Bo") TEXT("th.") CALL("0", "call_0", "get_stock",
                                                        "{\\\"part\\\":") PIECE("0", "\\\"A\\\"}")
                           CALL("1", "call_1", "code_interpreter", "{\\\"code\\\":\\\"2\\\"}")
                               FINISH("tool_calls") DONE);
    bench_result(&first, 0, "two");
    bench_finish(&first, "");
    SEEN_CLEANUP struct seen s = seen_read(&first.out);
    CU_ASSERT_STRING_EQUAL(s.text.data, "Let me see.\n\nBoth.");
    CU_ASSERT_EQUAL(strncmp(s.calls.data, "0:call_sg", 9),
                    0); /* though a call of ours came later */
    char id[40] = {0};
    memcpy(id, s.calls.data + 2, 39);
    BUF_CLEANUP struct buf body = {0};
    body_put(
        &body, TOOLS ",",
        "{\"role\":\"assistant\",\"content\":\"Let me see.\\n\\nBoth.\",\"tool_calls\":[" ENTRY(
            "%s", "get_stock", "{\\\"part\\\":\\\"A\\\"}") "]}," RESULT("%s", "s"),
        id, id);
    bench_open(&next, body.data);
    expect_messages(
        &next,
        "{\"role\":\"assistant\",\"content\":\"Let me "
        "see.\",\"tool_calls\":[" ENTRY("call_0", "code_interpreter", "{\\\"code\\\":\\\"1\\\"}") "]}," RESULT(
            "call_0",
            "one") ","
                   "{\"role\":\"assistant\",\"content\":\"Both.\",\"tool_"
                   "calls\":[" ENTRY("call_0", "get_stock", "{\\\"part\\\":\\\"A\\\"}") "," ENTRY(
                       "call_1", "code_interpreter",
                       "{\\\"code\\\":\\\"2\\\"}") "]}," RESULT("call_0", "s") "," RESULT("call_1",
                                                                                          "two"));
}

static void a_stream_with_calls_of_the_client_only_keeps_what_its_ids_mean(void)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    BENCH_CLEANUP struct bench first = bench_with(&m), next = bench_with(&m);
    bench_open(&first, STREAM_BODY);
    bench_turn(&first, ROLE CALL("0", "call_0", "get_stock", "{}") FINISH("tool_calls") DONE);
    bench_finish(&first, "");
    CU_ASSERT_EQUAL(m.count, 1);
    CU_ASSERT_FALSE(m.goes_on);
    BUF_CLEANUP struct buf body = {0};
    body_put(&body, "",
             "{\"role\":\"assistant\",\"tool_calls\":[" ENTRY("%s", "get_stock",
                                                              "{}") "]}," RESULT("%s", "s"),
             m.kept[0].id.data, m.kept[0].id.data);
    CU_ASSERT_TRUE(bench_looks_for(&next, body.data));
    bench_open(&next, body.data);
    expect_messages(&next, "{\"role\":\"assistant\",\"tool_calls\":[" ENTRY(
                               "call_0", "get_stock", "{}") "]}," RESULT("call_0", "s"));
    CU_ASSERT_TRUE(str_eq(m.resumed, m.kept[0].id)); /* it may have gone on in something */
}

static void what_goes_on_is_found_again_over_answers_without_runs(void)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    m.waits = true;
    BENCH_CLEANUP struct bench first = bench_with(&m), next = bench_with(&m);
    first_request(&m, &first);
    cJSON *calls;
    char *message = client_message(&first, &calls);
    BUF_CLEANUP struct buf body = {0};
    body_put(&body, TOOLS ",", "%s," RESULT("%s", "1") "," RESULT("%s", "2"), message,
             id_of(calls, 0), id_of(calls, 1));
    bench_open(&next, body.data);
    m.goes_on = false;
    bench_plain_turn(&next, ANSWER(MESSAGE("null", STOCK_B))); /* nothing of ours runs in it */
    bench_finish(&next, "");
    CU_ASSERT_PTR_NOT_NULL(strstr(next.out.data, "\"call_sg"));
    CU_ASSERT_EQUAL(m.count, 3);
    CU_ASSERT_TRUE(m.goes_on);
    free(message);
    cJSON_Delete(calls);
}

static void expect_ids_stay(const char *body, bool is_stream, const char *turn)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    BENCH_CLEANUP struct bench b = bench_with(&m);
    bench_open(&b, body);
    CU_ASSERT_EQUAL(bench_try_turn(&b, is_stream, turn), SG_OK);
    bench_finish(&b, "");
    CU_ASSERT_PTR_NOT_NULL(strstr(b.out.data, "\"call_1\""));
    CU_ASSERT_PTR_NULL(strstr(b.out.data, "call_sg"));
    CU_ASSERT_EQUAL(m.count, 0);
}

static void ids_stay_where_nothing_is_to_be_found_again(void)
{
    expect_ids_stay(BODY, false, ANSWER(MESSAGE("null", STOCK_B))); /* known before it is shown */
    expect_ids_stay(STREAM_BODY, false, ANSWER(MESSAGE("null", STOCK_B)));
    expect_ids_stay("{\"stream\":true,\"tool_choice\":\"none\"," USER "," TOOLS "}", true,
                    ROLE CALL("0", "call_1", "get_stock", "{}") FINISH("tool_calls") DONE);
    expect_ids_stay("{\"stream\":true,\"parallel_tool_calls\":false," USER "," TOOLS "}", true,
                    ROLE CALL("0", "call_1", "get_stock", "{}")
                        CALL("1", "call_2", "code_interpreter", "{}") FINISH("tool_calls") DONE);
}

static void a_record_that_is_too_large_still_says_what_the_ids_mean(void)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    m.bytes_max = 300;
    BENCH_CLEANUP struct bench first = bench_with(&m), next = bench_with(&m);
    first_request(&m, &first);
    CU_ASSERT_EQUAL(m.too_large, 1);
    CU_ASSERT_EQUAL(m.count, 2);
    CU_ASSERT_FALSE(m.goes_on);
    cJSON *calls;
    char *message = client_message(&first, &calls);
    BUF_CLEANUP struct buf body = {0};
    body_put(&body, TOOLS ",", "%s," RESULT("%s", "1") "," RESULT("%s", "2"), message,
             id_of(calls, 0), id_of(calls, 1));
    bench_open(&next, body.data);
    expect_messages(&next, "{\"role\":\"assistant\",\"content\":\"Let me see.\\n\\nBoth.\",\"tool_"
                           "calls\":[" STOCK_B "," STOCK_D
                           "]}," RESULT("call_1", "1") "," RESULT("call_3", "2"));
    free(message);
    cJSON_Delete(calls);
}

static void calls_that_were_not_run_are_not_put_back(void)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    BENCH_CLEANUP struct bench first = bench_with(&m), next = bench_with(&m);
    bench_open(&first, BODY);
    bench_plain_turn(&first, ANSWER(MESSAGE("null", CODE_A)));
    bench_result(&first, 0, "one");
    bench_plain_turn(&first, ANSWER(MESSAGE("null", CODE_C "," STOCK_B))); /* the last turn's */
    bench_finish(&first, "");
    cJSON *calls;
    char *message = client_message(&first, &calls);
    BUF_CLEANUP struct buf body = {0};
    body_put(&body, TOOLS ",", "%s," RESULT("%s", "1"), message, id_of(calls, 0));
    bench_open(&next, body.data);
    expect_messages(&next, MESSAGE("null", CODE_A) "," RESULT("call_0", "one") "," MESSAGE(
                               "null", STOCK_B) "," RESULT("call_1", "1"));
    free(message);
    cJSON_Delete(calls);
}

static void an_answer_that_stands_twice_is_put_back_once(void)
{
    static const char *const tools[] = {TOOLS ",", "\"tools\":[" OWN_TOOL "],"};
    for (size_t i = 0; i < COUNT_OF(tools); i++) {
        MEMORY_CLEANUP struct memory m;
        memory_open(&m);
        BENCH_CLEANUP struct bench first = bench_with(&m), next = bench_with(&m);
        first_request(&m, &first);
        cJSON *calls;
        char *message = client_message(&first, &calls);
        BUF_CLEANUP struct buf body = {0}, again = {0};
        buf_printf(&again, "%s," RESULT("%s", "1") "," RESULT("%s", "2"), message, id_of(calls, 0),
                   id_of(calls, 1));
        body_put(&body, tools[i], "%s,%s", again.data, again.data);
        bench_open(&next, body.data);
        const char *up = bench_request(&next);
        const char *once = strstr(up, "x=1"); /* of a run of ours */
        CU_ASSERT_PTR_NOT_NULL_FATAL(once);
        CU_ASSERT_PTR_NULL(strstr(once + 1, "x=1"));
        CU_ASSERT_PTR_NOT_NULL(
            strstr(once, RESULT("call_3", "2") ",{\"role\":\"assistant\",\"content\":\"Let me see."
                                               "\\n\\nBoth.\",\"tool_calls\":[" STOCK_B));
        CU_ASSERT_TRUE(str_is(m.resumed, id_of(calls, 0)));
        free(message);
        cJSON_Delete(calls);
    }
}

static void what_ids_become_is_bounded_before_it_is_copied(void)
{
    MEMORY_CLEANUP struct memory m;
    memory_open(&m);
    BENCH_CLEANUP struct bench next = bench_with(&m);
    BUF_CLEANUP struct buf record = {0}, body = {0};
    char *long_id = arena_alloc(m.arena, MIB);
    memset(long_id, 'x', MIB - 1);
    buf_printf(&record, "{\"hash\":\"\",\"calls\":[{\"id\":\"call_sg1\",\"up\":\"%s\"}]}", long_id);
    struct str id = STR("call_sg1");
    memory_keep(&m, &id, 1, buf_str(&record), false);
    buf_puts(&body, "{\"messages\":[");
    for (int i = 0; i < 50; i++) {
        buf_puts(&body, i == 0 ? "" : ",");
        buf_puts(&body,
                 "{\"role\":\"assistant\",\"tool_calls\":[" ENTRY("call_sg1", "f", "{}") "]}");
    }
    buf_puts(&body, "]," TOOLS "}");
    CU_ASSERT_EQUAL(bench_try_open(&next, body.data), SG_E_LIMIT);
    CU_ASSERT_EQUAL(error_status(&next.err), 413);
    CU_ASSERT_TRUE(arena_bytes(next.arena) < 33 * MIB);
}

static const struct test tests[] = {
    TEST(a_mixed_turn_is_put_together_again_when_the_results_come),
    TEST(our_results_stand_in_the_order_of_the_calls_wherever_the_clients_do),
    TEST(white_space_and_null_content_do_not_count_as_a_change),
    TEST(what_was_changed_goes_up_as_the_client_has_it),
    TEST(without_a_record_nothing_is_changed),
    TEST(an_answer_that_was_continued_already_is_not_resumed),
    TEST(where_the_tool_is_not_offered_its_runs_become_text),
    TEST(a_function_that_is_called_otherwise_now_is_renamed_in_the_history),
    TEST(two_tools_of_one_name_are_told_apart),
    TEST(a_streamed_mixed_turn_is_put_together_again),
    TEST(a_stream_with_calls_of_the_client_only_keeps_what_its_ids_mean),
    TEST(what_goes_on_is_found_again_over_answers_without_runs),
    TEST(ids_stay_where_nothing_is_to_be_found_again),
    TEST(a_record_that_is_too_large_still_says_what_the_ids_mean),
    TEST(calls_that_were_not_run_are_not_put_back),
    TEST(an_answer_that_stands_twice_is_put_back_once),
    TEST(what_ids_become_is_bounded_before_it_is_copied),
};

int main(int argc, char **argv)
{
    return run_tests("chat_memory", tests, COUNT_OF(tests), argc, argv);
}
