/* Runs by the interpreter: what is asked, what comes back, what is tried again and what is not. */
#include "run_fixture.h"

/* ---- what is asked ---- */

static void the_code_is_sent_once_and_what_comes_is_emitted(void)
{
    struct fixture f;
    begin(&f);
    static const char lines[] =
        BEGUN OUT("a\\n") "{\"type\": \"result\", \"text\": \"2\", \"extra\": {}}\n" ENDED;
    answer(&f, lines);
    CU_ASSERT_EQUAL(run_as(&f, "python", "print(\"a\")\n1+1\x01", 60000), 0);
    CU_ASSERT_EQUAL(f.call->requests_count, 1);
    expect_request(&f, 0, "POST", EXECUTE);
    CU_ASSERT_STRING_EQUAL(f.call->requests[0].body,
                           "{\"code\":\"print(\\\"a\\\")\\n1+1\\u0001\"}");
    CU_ASSERT_STRING_EQUAL(request_header(f.call, 0, "content-type"), "application/json");
    CU_ASSERT_STRING_EQUAL(request_header(f.call, 0, "x-access-token"), ENVD_TOKEN);
    CU_ASSERT_STRING_EQUAL(request_header(f.call, 0, "e2b-traffic-access-token"), TRAFFIC_TOKEN);
    CU_ASSERT_PTR_NULL(request_header(f.call, 0, "x-api-key"));
    CU_ASSERT_EQUAL(f.call->requests[0].tick_ms, 200);
    CU_ASSERT_EQUAL(f.call->requests[0].sunk,
                    strlen(lines)); /* to its end, so that it can be used again */
    CU_ASSERT_EQUAL(f.call->outputs_count, 2);
    expect_text(&f, SG_OUT_LOG_OUT, "a\n");
    expect_text(&f, SG_OUT_RESULT, "{\"text/plain\":\"2\"}");
    CU_ASSERT_EQUAL(sleeps, 0);
    fixture_free(&f);
}

static void an_interpreter_that_has_ended_between_runs_is_told_of_once(void)
{
    static const char *const counts[] = {"3", "4", "1", "1", "2"};
    for (int other = 0; other < 2; other++) {
        struct fixture f;
        begin(&f);
        for (size_t i = 0; i < COUNT_OF(counts); i++) {
            char line[256];
            (void)snprintf(line, sizeof line,
                           "{\"type\":\"number_of_executions\",\"execution_count\":%s}\n" ENDED,
                           counts[i]);
            answer(&f, line);
            CU_ASSERT_EQUAL(run_as(&f, other ? "r" : "python", "1", 60000), 0);
            expect_text(
                &f, SG_OUT_STATUS,
                i == 2 && !other
                    ? "{\"state\":\"restarted\",\"note\":\"the interpreter had ended after an "
                      "earlier run, as by exit(), and was begun anew: variables, functions "
                      "and imports are gone; files are kept\"}"
                    : "");
            renew_call(&f);
        }
        fixture_free(&f);
    }
}

static void an_end_that_was_told_of_is_not_told_of_again(void)
{
    struct fixture f;
    begin(&f);
    answer(&f, "{\"type\":\"number_of_executions\",\"execution_count\":7}\n"
               "{\"type\":\"error\",\"name\":\"ContextRestarting\",\"value\":\"\",\"traceback\":"
               "\"\"}\n" ENDED);
    CU_ASSERT_EQUAL(run_it(&f), 0);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_STATUS), 1);
    renew_call(&f);
    answer(&f, BEGUN ENDED);
    CU_ASSERT_EQUAL(run_it(&f), 0);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_STATUS), 0);
    fixture_free(&f);
}

static void another_language_is_named(void)
{
    struct fixture f;
    begin(&f);
    answer(&f, BEGUN ENDED);
    CU_ASSERT_EQUAL(run_as(&f, "javascript", "1", 60000), 0);
    CU_ASSERT_STRING_EQUAL(f.call->requests[0].body,
                           "{\"code\":\"1\",\"language\":\"javascript\"}");
    fixture_free(&f);
}

static void a_language_that_the_sandbox_has_not_is_invalid(void)
{
    struct fixture f;
    begin(&f);
    reply(&f, 500,
          "Failed to create context: {\"message\": \"The 'cobol' kernel is not available.\"}");
    CU_ASSERT_EQUAL(run_as(&f, "cobol", "1", 60000), SG_E_INVALID);
    expect_message(&f, "the sandbox has no interpreter for 'cobol': use python or bash");
    renew_call(&f);
    CU_ASSERT_EQUAL(run_as(&f, "a b", "1", 60000), SG_E_INVALID);
    expect_message(&f, "the language of the code is no name of one: use python or bash");
    CU_ASSERT_EQUAL(f.call->requests_count, 0);
    fixture_free(&f);
}

static void bash_is_not_the_interpreters(void)
{
    struct fixture f;
    begin(&f);
    CU_ASSERT_EQUAL(run_as(&f, "bash", "ls", 60000), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(commands.count, 1);
    CU_ASSERT_TRUE(commands.is_running);
    CU_ASSERT_TRUE(commands.is_interrupted);
    CU_ASSERT_EQUAL(f.call->requests_count, 0);
    struct sandbox *sandbox = sandbox_find(f.e2b, ID);
    CU_ASSERT_FALSE(sandbox->is_running);
    CU_ASSERT_FALSE(sandbox->interrupt_wanted);
    sandbox_unref(f.e2b, sandbox);
    fixture_free(&f);
}

static void the_time_is_the_runs_but_ends_before_the_calls(void)
{
    struct fixture f;
    begin(&f);
    answer(&f, ENDED);
    CU_ASSERT_EQUAL(run_as(&f, NULL, "1", 7000), 0);
    CU_ASSERT_EQUAL(f.call->requests[0].timeout_ms, 7000 + OVERTIME_MS);
    renew_call(&f);
    f.call->time_left_ms = 3000;
    answer(&f, ENDED);
    CU_ASSERT_EQUAL(run_as(&f, NULL, "1", 7000), 0);
    CU_ASSERT_EQUAL(f.call->requests[0].timeout_ms, 3000 - CALL_RESERVE_MS + OVERTIME_MS);
    fixture_free(&f);
}

static void code_that_is_too_long_to_send_is_refused(void)
{
    struct fixture f;
    begin(&f);
    size_t len = 12 * MEBIBYTE;
    char *code = malloc(len + 1);
    memset(code, 1, len); /* written with six bytes each */
    code[len] = '\0';
    CU_ASSERT_EQUAL(run_as(&f, NULL, code, 60000), SG_E_LIMIT);
    expect_message(&f, "the code is too long to be sent: it may have a few MiB");
    CU_ASSERT_EQUAL(f.call->requests_count, 0);
    free(code);
    fixture_free(&f);
}

/* ---- before anything ran ---- */

static void a_sandbox_that_e2b_does_not_know_is_gone_before(void)
{
    struct fixture f;
    begin(&f);
    reply(&f, 404, "{\"code\": 404, \"message\": \"Sandbox \\\"" OTHER "\\\" doesn't exist\"}");
    struct sg_run asked = {NULL, "1", 1, 60000};
    CU_ASSERT_EQUAL(e2b_run(f.e2b, f.call, OTHER, &asked, call_error(f.call)), SG_E_GONE_BEFORE);
    CU_ASSERT_NOT_EQUAL(strlen(f.call->error.message), 0);
    renew_call(&f);
    reply(&f, 502, GONE);
    CU_ASSERT_EQUAL(run_it(&f), SG_E_GONE_BEFORE);
    expect_message(&f, "cannot run code: the sandbox is not there any more: it was ended, or its "
                       "time was up");
    fixture_free(&f);
}

static void a_closed_port_is_tried_again_three_times(void)
{
    struct fixture f;
    begin(&f);
    reply(&f, 502, CLOSED);
    answer(&f, BEGUN OUT("x") ENDED);
    CU_ASSERT_EQUAL(run_it(&f), 0);
    CU_ASSERT_EQUAL(f.call->requests_count, 2);
    CU_ASSERT_EQUAL(f.call->slept_ms, 500);
    expect_text(&f, SG_OUT_LOG_OUT, "x");
    renew_call(&f);
    for (int i = 0; i < 4; i++) {
        reply(&f, 502, CLOSED);
    }
    CU_ASSERT_EQUAL(run_it(&f), SG_E_UNAVAILABLE);
    CU_ASSERT_EQUAL(f.call->requests_count, 4);
    CU_ASSERT_EQUAL(f.call->slept_ms, 3500);
    expect_message(&f, "cannot run code: the sandbox runs, but its server does not (502); is "
                       "'template' one with E2B's code interpreter?");
    fixture_free(&f);
}

static void only_what_was_not_sent_is_sent_again(void)
{
    static const struct {
        uint32_t stage;
        size_t executes;
    } cases[] = {{SG_HTTP_UNRESOLVED, 4},
                 {SG_HTTP_UNCONNECTED, 4},
                 {SG_HTTP_NO_TLS, 4},
                 {SG_HTTP_UNANSWERED, 1},
                 {SG_HTTP_CUT, 1}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fixture f;
        begin(&f);
        for (size_t k = 0; k < cases[i].executes; k++) {
            call_reply(f.call, (struct fake_reply){.status = 200,
                                                   .code = SG_E_UNAVAILABLE,
                                                   .message = "broken",
                                                   .failed_at = cases[i].stage});
        }
        reply(&f, 204, NULL); /* /health, where it is asked */
        CU_ASSERT_EQUAL(run_it(&f), SG_E_UNAVAILABLE);
        CU_ASSERT_EQUAL(f.call->requests_count, cases[i].executes + (cases[i].executes == 1));
        CU_ASSERT_PTR_NOT_NULL(strstr(
            f.call->error.message, cases[i].executes == 1 ? "the code did not end: the connection "
                                                            "to the sandbox was lost"
                                                          : "broken"));
        expect_text(&f, SG_OUT_STATUS, cases[i].executes == 1 ? "{\"state\":\"begun\"}" : "");
        fixture_free(&f);
    }
}

static void a_pause_that_fails_ends_the_run(void)
{
    struct fixture f;
    begin(&f);
    reply(&f, 502, CLOSED);
    reply(&f, 502, CLOSED);
    f.call->sleeps_max = 1; /* after this one */
    f.call->sleep_code = SG_E_CANCELLED;
    CU_ASSERT_EQUAL(run_it(&f), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(f.call->requests_count, 2);
    fixture_free(&f);
}

/* ---- amid a run ---- */

static void an_answer_that_does_not_end_in_order_is_no_success(void)
{
    struct fixture f;
    begin(&f);
    answer(&f, BEGUN OUT("part"));
    reply(&f, 204, NULL);
    CU_ASSERT_EQUAL(run_it(&f), SG_E_UNAVAILABLE);
    expect_request(&f, 1, "GET", HEALTH);
    expect_message(&f, "the code did not end: the connection to the sandbox was lost");
    expect_text(&f, SG_OUT_LOG_OUT, "part");
    expect_text(&f, SG_OUT_STATUS, "{\"state\":\"begun\"}");
    fixture_free(&f);
}

static void what_may_have_begun_and_is_not_told_of_counts_as_failed_to_emit(void)
{
    struct fixture f;
    begin(&f);
    answer(&f, BEGUN);
    reply(&f, 204, NULL);
    f.call->emits_max = 1;
    f.call->emit_code = SG_E_CANCELLED;
    CU_ASSERT_EQUAL(sg->emit(f.call, SG_OUT_LOG_OUT, "x", 1, call_error(f.call)), 0);
    CU_ASSERT_EQUAL(run_it(&f), SG_E_CANCELLED);
    fixture_free(&f);
}

static void a_sandbox_that_ends_amid_a_run_is_gone(void)
{
    struct fixture f;
    begin(&f);
    call_reply(f.call, (struct fake_reply){.status = 200,
                                           .body = BEGUN OUT("part"),
                                           .code = SG_E_UNAVAILABLE,
                                           .failed_at = SG_HTTP_CUT});
    reply(&f, 502, GONE);
    CU_ASSERT_EQUAL(run_it(&f), SG_E_GONE);
    expect_message(&f, "the code did not end: the sandbox is not there any more: it was ended, or "
                       "its time was up");
    expect_text(&f, SG_OUT_LOG_OUT, "part");
    fixture_free(&f);
}

static void a_connection_that_breaks_after_the_end_is_a_success(void)
{
    struct fixture f;
    begin(&f);
    call_reply(f.call, (struct fake_reply){.status = 200,
                                           .body = BEGUN ENDED,
                                           .code = SG_E_UNAVAILABLE,
                                           .failed_at = SG_HTTP_CUT});
    CU_ASSERT_EQUAL(run_it(&f), 0);
    renew_call(&f);
    answer(&f, BEGUN ENDED);
    CU_ASSERT_EQUAL(run_it(&f), 0);
    CU_ASSERT_EQUAL(sleeps, 0); /* it had ended: nothing to wait for */
    fixture_free(&f);
}

static void a_connection_that_stays_open_after_the_end_is_left(void)
{
    struct fixture f;
    begin(&f);
    answer_ticks(&f, BEGUN OUT("x") ENDED, 50);
    step_ms = 2000; /* were it not left, the time would come */
    CU_ASSERT_EQUAL(run_it(&f), 0);
    expect_text(&f, SG_OUT_LOG_OUT, "x");
    fixture_free(&f);
}

static void lines_that_are_no_json_are_logged(void)
{
    struct fixture f;
    begin(&f);
    answer(&f, "what\n" BEGUN "is this\n" ENDED);
    CU_ASSERT_EQUAL(run_it(&f), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(
        f.call->logged, "2 lines of the interpreter's answer are no JSON and were left out"));
    fixture_free(&f);
}

static void a_failure_to_emit_is_handed_back(void)
{
    struct fixture f;
    begin(&f);
    f.call->emits_max = 1;
    f.call->emit_code = SG_E_CANCELLED;
    answer(&f, BEGUN OUT("1") OUT("2") ENDED);
    CU_ASSERT_EQUAL(run_it(&f), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(f.call->requests_count, 1);
    expect_text(&f, SG_OUT_LOG_OUT, "1");
    fixture_free(&f);
}

static void end_call(struct sg_call *call, void *context)
{
    (void)context;
    call->time_left_ms = -1;
}

static void the_end_of_the_call_is_handed_back(void)
{
    static const int codes[] = {SG_E_CANCELLED, SG_E_TIMEOUT};
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        struct fixture f;
        begin(&f);
        call_reply(f.call, (struct fake_reply){.status = 200,
                                               .body = BEGUN,
                                               .code = codes[i],
                                               .message = "over",
                                               .failed_at = SG_HTTP_CUT,
                                               .before = end_call});
        CU_ASSERT_EQUAL(run_it(&f), codes[i]);
        CU_ASSERT_PTR_NOT_NULL(strstr(f.call->error.message, i == 0 ? "over" : "in time"));
        CU_ASSERT_EQUAL(f.call->requests_count, 1);
        fixture_free(&f);
    }
}

static const struct test tests[] = {
    TEST(the_code_is_sent_once_and_what_comes_is_emitted),
    TEST(an_interpreter_that_has_ended_between_runs_is_told_of_once),
    TEST(an_end_that_was_told_of_is_not_told_of_again),
    TEST(another_language_is_named),
    TEST(a_language_that_the_sandbox_has_not_is_invalid),
    TEST(bash_is_not_the_interpreters),
    TEST(the_time_is_the_runs_but_ends_before_the_calls),
    TEST(code_that_is_too_long_to_send_is_refused),
    TEST(a_sandbox_that_e2b_does_not_know_is_gone_before),
    TEST(a_closed_port_is_tried_again_three_times),
    TEST(only_what_was_not_sent_is_sent_again),
    TEST(a_pause_that_fails_ends_the_run),
    TEST(an_answer_that_does_not_end_in_order_is_no_success),
    TEST(what_may_have_begun_and_is_not_told_of_counts_as_failed_to_emit),
    TEST(a_sandbox_that_ends_amid_a_run_is_gone),
    TEST(a_connection_that_breaks_after_the_end_is_a_success),
    TEST(a_connection_that_stays_open_after_the_end_is_left),
    TEST(lines_that_are_no_json_are_logged),
    TEST(a_failure_to_emit_is_handed_back),
    TEST(the_end_of_the_call_is_handed_back),
};

int main(int argc, char **argv)
{
    return run_tests("e2b_run", tests, COUNT_OF(tests), argc, argv);
}
