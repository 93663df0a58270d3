/* Runs by the interpreter that are ended: by their time, their output, an interrupt; and what the next run does then. */
#include "run_fixture.h"

/* ---- ended by us ---- */

static void time_out(struct fixture *f)
{
    answer_ticks(f, BEGUN OUT("part"), 100);
    step_ms = 200;
    CU_ASSERT_EQUAL(run_as(f, NULL, "while True: pass", 2600), SG_E_TIMEOUT);
    step_ms = 0;
}

static void code_that_runs_too_long_is_interrupted(void)
{
    struct fixture f;
    begin(&f);
    time_out(&f);
    expect_message(
        &f, "the code ran longer than 3s and was interrupted; variables are kept unless it goes on "
            "all the same");
    expect_text(&f, SG_OUT_LOG_OUT, "part");
    CU_ASSERT_EQUAL(f.call->requests_count, 1);
    fixture_free(&f);
}

static void code_that_prints_without_end_is_interrupted_too(void)
{
    struct fixture f;
    begin(&f);
    const char *pieces[1001] = {BEGUN};
    for (size_t i = 1; i < 1000; i++) {
        pieces[i] = OUT("y");
    }
    call_reply(f.call, (struct fake_reply){.status = 200, .pieces = pieces});
    step_ms = 100;
    CU_ASSERT_EQUAL(run_as(&f, NULL, "1", 5000), SG_E_TIMEOUT);
    size_t len = strlen(call_text(f.call, SG_OUT_LOG_OUT));
    CU_ASSERT(len > 10 && len < 60);
    fixture_free(&f);
}

static void an_exchange_that_ends_by_its_time_is_the_runs_end_too(void)
{
    struct fixture f;
    begin(&f);
    call_reply(f.call, (struct fake_reply){.code = SG_E_TIMEOUT, .failed_at = SG_HTTP_UNANSWERED});
    step_ms = 2000;
    CU_ASSERT_EQUAL(run_as(&f, NULL, "1", 3000), SG_E_TIMEOUT);
    expect_message(&f, "the code did not begin within 3s: the interpreter did not react");
    fixture_free(&f);
}

static void the_run_after_one_that_was_ended_waits_a_second(void)
{
    struct fixture f;
    begin(&f);
    time_out(&f);
    renew_call(&f);
    answer(&f, BEGUN OUT("next") ENDED);
    CU_ASSERT_EQUAL(run_it(&f), 0);
    CU_ASSERT_EQUAL(f.call->slept_ms, 1000);
    CU_ASSERT_EQUAL(f.call->requests_count, 1);
    expect_text(&f, SG_OUT_LOG_OUT, "next");
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_STATUS), 0);
    renew_call(&f);
    answer(&f, BEGUN ENDED);
    CU_ASSERT_EQUAL(run_it(&f), 0);
    CU_ASSERT_EQUAL(f.call->slept_ms, 0);
    fixture_free(&f);
}

/* Keepalives, but no beginning: what was ended before goes on. */
static void answer_busy(struct fixture *f)
{
    answer_ticks(f, ALIVE, 100);
}

static void an_interpreter_that_is_still_busy_is_restarted_and_the_code_run(void)
{
    struct fixture f;
    begin(&f);
    time_out(&f);
    renew_call(&f);
    answer_busy(&f);
    reply(&f, 200,
          "[{\"id\":\"js-1\",\"language\":\"javascript\",\"cwd\":\"}{\"},{\"id\":\"no/"
          "pe\",\"language\":"
          "\"python\"},{\"id\":\"py_2\",\"language\":\"python\"}]");
    reply(&f, 200, "null");
    answer(&f, BEGUN OUT("anew") ENDED);
    step_ms = 200;
    CU_ASSERT_EQUAL(run_it(&f), 0);
    CU_ASSERT_EQUAL(f.call->requests_count, 4);
    expect_request(&f, 0, "POST", EXECUTE);
    expect_request(&f, 1, "GET", CONTEXTS);
    expect_request(&f, 2, "POST", CONTEXTS "/py_2/restart");
    expect_request(&f, 3, "POST", EXECUTE);
    CU_ASSERT_STRING_EQUAL(f.call->requests[3].body, "{\"code\":\"1\"}");
    expect_text(
        &f, SG_OUT_STATUS,
        "{\"state\":\"restarted\",\"note\":\"the code of an earlier run did not react to its "
        "interrupt, so the interpreter was begun anew: variables, functions and imports are "
        "gone; files are kept\"}");
    expect_text(&f, SG_OUT_LOG_OUT, "anew");
    fixture_free(&f);
}

static void it_is_restarted_after_five_seconds_or_half_the_time(void)
{
    static const struct {
        int64_t timeout_ms;
        long long at_least, at_most;
    } cases[] = {{60000, 5000, 5400}, {4000, 2000, 2400}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fixture f;
        begin(&f);
        time_out(&f);
        renew_call(&f);
        now_ms += 2000; /* no need to wait any more */
        answer_busy(&f);
        reply(&f, 200, "[]");
        step_ms = 100;
        long long before = now_ms;
        CU_ASSERT_EQUAL(run_as(&f, NULL, "1", cases[i].timeout_ms), SG_E_UNAVAILABLE);
        CU_ASSERT(now_ms - before >= cases[i].at_least &&
                  now_ms - before <= cases[i].at_most + 300);
        fixture_free(&f);
    }
}

static void code_that_has_begun_is_not_taken_for_waiting(void)
{
    struct fixture f;
    begin(&f);
    time_out(&f);
    renew_call(&f);
    answer_ticks(&f, BEGUN, 60); /* 12 s without a word */
    reply(&f, 204, NULL);
    step_ms = 200;
    CU_ASSERT_EQUAL(run_it(&f), SG_E_UNAVAILABLE); /* it ended without an end */
    CU_ASSERT_EQUAL(f.call->requests_count, 2);
    expect_request(&f, 1, "GET", HEALTH);
    fixture_free(&f);
}

static void an_interpreter_that_takes_no_code_is_restarted_too(void)
{
    struct fixture f;
    begin(&f);
    answer_busy(&f);
    reply(&f, 200, "[{\"id\":\"a\",\"language\":\"python\"}]");
    reply(&f, 200, "null");
    answer(&f, BEGUN OUT("anew") ENDED);
    step_ms = 200;
    long long before = now_ms;
    CU_ASSERT_EQUAL(run_it(&f), 0);
    CU_ASSERT(now_ms - before >= 10000 && now_ms - before < 13000);
    expect_text(&f, SG_OUT_LOG_OUT, "anew");
    expect_text(
        &f, SG_OUT_STATUS,
        "{\"state\":\"restarted\",\"note\":\"the interpreter did not take the code, perhaps "
        "for an exit() before it, so it was begun anew: variables, functions and imports "
        "are gone; files are kept\"}");
    fixture_free(&f);
}

static void a_server_without_keepalives_may_take_its_time_to_begin(void)
{
    struct fixture f;
    begin(&f);
    const char *pieces[110] = {"\n"};
    for (size_t i = 1; i < 100; i++) {
        pieces[i] = ""; /* 20 s */
    }
    pieces[100] = BEGUN OUT("slow") ENDED;
    call_reply(f.call, (struct fake_reply){.status = 200, .pieces = pieces});
    step_ms = 200;
    CU_ASSERT_EQUAL(run_it(&f), 0);
    expect_text(&f, SG_OUT_LOG_OUT, "slow");
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_STATUS), 0);
    fixture_free(&f);
}

static void a_restart_that_does_not_help_is_not_repeated(void)
{
    struct fixture f;
    begin(&f);
    time_out(&f);
    renew_call(&f);
    answer_busy(&f);
    reply(&f, 200, "[{\"id\":\"a\",\"language\":\"python\"}]");
    reply(&f, 200, "null");
    answer_ticks(&f, ALIVE, 1000);
    step_ms = 200;
    CU_ASSERT_EQUAL(run_as(&f, NULL, "1", 20000), SG_E_TIMEOUT);
    expect_message(&f, "the code did not begin within 20s: the interpreter did not react");
    CU_ASSERT_EQUAL(f.call->requests_count, 4);
    fixture_free(&f);
}

static void expect_no_restart(const char *contexts, int status, int code, const char *message)
{
    struct fixture f;
    begin(&f);
    time_out(&f);
    renew_call(&f);
    answer_busy(&f);
    reply(&f, 200, contexts);
    if (status > 0) {
        reply(&f, status, "Context a not found");
    }
    step_ms = 200;
    CU_ASSERT_EQUAL(run_it(&f), code);
    expect_message(&f, message);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_STATUS), 0);
    fixture_free(&f);
}

static void a_restart_that_fails_says_why(void)
{
    static const char none[] =
        "the interpreter takes no code, and the sandbox names none of 'python' to restart";
    expect_no_restart("[]", 0, SG_E_UNAVAILABLE, none);
    expect_no_restart(
        "[{\"id\":\"a\",\"language\":\"r\"},{\"id\":\"\",\"language\":\"python\"},{\"id\":5,"
        "\"language\":\"python\"},{\"language\":\"python\"},{",
        0, SG_E_UNAVAILABLE, none);
    expect_no_restart("[{\"id\":\"a\",\"language\":\"python\"}]", 500, SG_E_UNAVAILABLE,
                      "cannot restart the interpreter, which takes no code: the sandbox "
                      "answers with status 500: Context a not found");
}

static void a_restart_that_is_not_answered_says_why(void)
{
    struct fixture f;
    begin(&f);
    time_out(&f);
    renew_call(&f);
    answer_busy(&f);
    call_reply(f.call, (struct fake_reply){.code = SG_E_UNAVAILABLE,
                                           .message = "reset",
                                           .failed_at = SG_HTTP_UNANSWERED});
    step_ms = 200;
    CU_ASSERT_EQUAL(run_it(&f), SG_E_UNAVAILABLE);
    expect_message(&f, "cannot restart the interpreter, which takes no code: the sandbox "
                       "broke off before it answered: reset");
    fixture_free(&f);
}

static void output_without_end_is_cut_and_kept(void)
{
    struct fixture f;
    begin(&f);
    TEXT_CLEANUP struct text lines = {0};
    text_puts(&lines, BEGUN);
    for (int i = 0; i < 11; i++) {
        text_puts(&lines, "{\"type\": \"stdout\", \"text\": \"");
        for (size_t k = 0; k < MEBIBYTE / 16; k++) {
            text_puts(&lines, "yyyyyyyyyyyyyyyy");
        }
        text_puts(&lines, "\"}\n");
    }
    call_reply(f.call, (struct fake_reply){.status = 200, .body = lines.data, .piece_len = 70001});
    CU_ASSERT_EQUAL(run_it(&f), SG_E_LIMIT);
    expect_message(&f, "the code put out more than 10MiB and was interrupted; variables are kept: "
                       "print less, or write to a file");
    expect_text(&f, SG_OUT_STATUS, "{\"state\":\"output\"}");
    CU_ASSERT_EQUAL(strlen(call_text(f.call, SG_OUT_LOG_OUT)), 10 * MEBIBYTE);
    renew_call(&f);
    answer(&f, BEGUN OUT("next") ENDED);
    CU_ASSERT_EQUAL(run_it(&f), 0);
    CU_ASSERT_EQUAL(f.call->slept_ms, 1000);
    fixture_free(&f);
}

static void an_answer_that_is_too_long_counts_as_output(void)
{
    struct fixture f;
    begin(&f);
    call_reply(f.call,
               (struct fake_reply){
                   .status = 200, .body = BEGUN, .code = SG_E_LIMIT, .failed_at = SG_HTTP_CUT});
    CU_ASSERT_EQUAL(run_it(&f), SG_E_LIMIT);
    expect_text(&f, SG_OUT_STATUS, "{\"state\":\"output\"}");
    fixture_free(&f);
}

static void a_server_whose_keepalives_stop_is_given_up(void)
{
    struct fixture f;
    begin(&f);
    answer_ticks(&f, BEGUN ALIVE, 1000);
    reply(&f, 204, NULL);
    step_ms = 200;
    long long before = now_ms;
    CU_ASSERT_EQUAL(run_as(&f, NULL, "1", 58000), SG_E_UNAVAILABLE);
    CU_ASSERT(now_ms - before >= 30000 && now_ms - before < 33000);
    expect_message(&f, "the interpreter fell silent: the connection to the sandbox was lost");
    renew_call(&f);
    answer_ticks(&f, BEGUN, 1000); /* a server that sends none may be silent */
    CU_ASSERT_EQUAL(run_as(&f, NULL, "1", 58000), SG_E_TIMEOUT);
    fixture_free(&f);
}

/* ---- a server that has told the end, and more and more behind it ---- */

static size_t give_drip(struct fixture *f, int64_t timeout_ms)
{
    const char *pieces[1001] = {BEGUN OUT("x") ENDED};
    for (size_t i = 1; i < 1000; i++) {
        pieces[i] = "\n";
    }
    call_reply(f->call, (struct fake_reply){.status = 200, .pieces = pieces});
    step_ms = 50;
    CU_ASSERT_EQUAL(run_as(f, NULL, "1", timeout_ms), 0);
    expect_text(f, SG_OUT_LOG_OUT, "x");
    CU_ASSERT_EQUAL(f->call->requests_count, 1);
    return f->call->requests[0].sunk - strlen(pieces[0]);
}

static void what_drips_behind_the_end_is_left_after_a_second(void)
{
    struct fixture f;
    begin(&f);
    size_t pieces = give_drip(&f, 50000);
    CU_ASSERT(pieces > 5 && pieces <= 20);
    fixture_free(&f);
}

static void what_drips_behind_the_end_is_left_at_the_deadline(void)
{
    struct fixture f;
    begin(&f);
    CU_ASSERT(give_drip(&f, 500) <= 4);
    fixture_free(&f);
}

/* ---- interrupt() ---- */

static void interrupt_it(struct sg_call *call, void *context)
{
    struct fixture *f = context;
    CU_ASSERT_EQUAL(e2b_interrupt(f->e2b, call, ID, call_error(call)), 0);
}

static void a_run_ends_soon_after_an_interrupt(void)
{
    struct fixture f;
    begin(&f);
    call_reply(f.call, (struct fake_reply){.status = 200,
                                           .body = BEGUN OUT("x") OUT("y"),
                                           .piece_len = strlen(BEGUN OUT("x")),
                                           .before = interrupt_it,
                                           .context = &f});
    CU_ASSERT_EQUAL(run_it(&f), SG_E_CANCELLED);
    expect_message(&f, "the code was interrupted");
    expect_text(&f, SG_OUT_LOG_OUT, "x");
    renew_call(&f);
    answer(&f, BEGUN OUT("next") ENDED);
    CU_ASSERT_EQUAL(run_it(&f), 0);
    CU_ASSERT_EQUAL(f.call->slept_ms, 1000); /* as after any end of ours */
    expect_text(&f, SG_OUT_LOG_OUT, "next");
    fixture_free(&f);
}

static void an_interrupt_is_seen_before_there_is_an_answer(void)
{
    struct fixture f;
    begin(&f);
    call_reply(
        f.call,
        (struct fake_reply){
            .status = 200, .body = BEGUN, .ticks = 1, .before = interrupt_it, .context = &f});
    CU_ASSERT_EQUAL(run_it(&f), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(f.call->requests[0].sunk, 0);
    fixture_free(&f);
}

static void an_interrupt_while_a_run_waits_keeps_it_from_being_sent(void)
{
    struct fixture f;
    begin(&f);
    reply(&f, 502, CLOSED);
    f.call->on_sleep = interrupt_it;
    f.call->on_sleep_context = &f;
    CU_ASSERT_EQUAL(run_it(&f), SG_E_CANCELLED);
    expect_message(&f, "the code was interrupted");
    CU_ASSERT_EQUAL(f.call->requests_count, 1);
    fixture_free(&f);
}

static void an_interrupt_behind_the_end_is_seen_though_more_comes(void)
{
    struct fixture f;
    begin(&f);
    call_reply(f.call, (struct fake_reply){.status = 200,
                                           .body = BEGUN OUT("x") ENDED "\n\n\n\n",
                                           .piece_len = strlen(BEGUN OUT("x") ENDED),
                                           .before = interrupt_it,
                                           .context = &f});
    CU_ASSERT_EQUAL(run_it(&f), 0); /* it ended in order */
    expect_text(&f, SG_OUT_LOG_OUT, "x");
    CU_ASSERT_EQUAL(f.call->requests[0].sunk, 0);
    renew_call(&f);
    answer(&f, BEGUN OUT("next") ENDED);
    CU_ASSERT_EQUAL(run_it(&f), 0);
    CU_ASSERT_EQUAL(f.call->slept_ms, 0);
    fixture_free(&f);
}

static void interrupt_other(struct sg_call *call, void *context)
{
    struct fixture *f = context;
    CU_ASSERT_EQUAL(e2b_interrupt(f->e2b, call, OTHER "-6532622b", call_error(call)), 0);
}

static void end_other(struct sg_call *call, void *context)
{
    struct fixture *f = context;
    struct sg_call *second = call_new();
    (void)call;
    call_reply(second, (struct fake_reply){.status = 204});
    CU_ASSERT_EQUAL(e2b_destroy(f->e2b, second, OTHER, call_error(second)), 0);
    call_free(second);
}

static int run_other(struct fixture *f)
{
    static const struct sg_run asked = {NULL, "1", 1, 60000};
    return e2b_run(f->e2b, f->call, OTHER, &asked, call_error(f->call));
}

/* Its handle is of an earlier process, so the sandbox is asked for first. */
static int run_in_other(struct fixture *f, void (*meanwhile)(struct sg_call *, void *))
{
    call_reply(f->call,
               (struct fake_reply){
                   .status = 200, .body = CREATED(OTHER), .before = meanwhile, .context = f});
    return run_other(f);
}

static void an_interrupt_while_the_sandbox_is_looked_for_keeps_the_run_from_being_sent(void)
{
    void (*const meanwhile[])(struct sg_call *, void *) = {interrupt_other, end_other};
    for (size_t i = 0; i < COUNT_OF(meanwhile); i++) {
        struct fixture f;
        begin(&f);
        CU_ASSERT_EQUAL(run_in_other(&f, meanwhile[i]), SG_E_CANCELLED);
        expect_message(&f, "the code was interrupted");
        CU_ASSERT_EQUAL(f.call->requests_count, 1);
        CU_ASSERT_PTR_NULL(f.e2b->coming);
        fixture_free(&f);
    }
}

static void an_interrupt_of_one_sandbox_is_none_of_another_that_is_looked_for(void)
{
    struct fixture f;
    begin(&f);
    call_reply(f.call,
               (struct fake_reply){
                   .status = 200, .body = CREATED(OTHER), .before = interrupt_it, .context = &f});
    answer(&f, BEGUN OUT("x") ENDED);
    CU_ASSERT_EQUAL(run_other(&f), 0);
    expect_text(&f, SG_OUT_LOG_OUT, "x");
    fixture_free(&f);
}

static void an_interrupt_where_nothing_runs_asks_nothing_and_stays_without_effect(void)
{
    struct fixture f;
    begin(&f);
    interrupt_other(f.call, &f);
    CU_ASSERT_EQUAL(e2b_interrupt(f.e2b, f.call, "../etc", call_error(f.call)), 0);
    CU_ASSERT_EQUAL(f.call->requests_count, 0);
    reply(&f, 200, CREATED(OTHER));
    answer(&f, BEGUN ENDED);
    CU_ASSERT_EQUAL(run_other(&f), 0);
    fixture_free(&f);
}

static void an_interrupt_without_a_run_has_no_effect(void)
{
    struct fixture f;
    begin(&f);
    interrupt_it(f.call, &f);
    answer(&f, BEGUN OUT("x") ENDED);
    CU_ASSERT_EQUAL(run_it(&f), 0);
    expect_text(&f, SG_OUT_LOG_OUT, "x");
    fixture_free(&f);
}

static const struct test tests[] = {
    TEST(code_that_runs_too_long_is_interrupted),
    TEST(code_that_prints_without_end_is_interrupted_too),
    TEST(an_exchange_that_ends_by_its_time_is_the_runs_end_too),
    TEST(the_run_after_one_that_was_ended_waits_a_second),
    TEST(an_interpreter_that_is_still_busy_is_restarted_and_the_code_run),
    TEST(it_is_restarted_after_five_seconds_or_half_the_time),
    TEST(code_that_has_begun_is_not_taken_for_waiting),
    TEST(an_interpreter_that_takes_no_code_is_restarted_too),
    TEST(a_server_without_keepalives_may_take_its_time_to_begin),
    TEST(a_restart_that_does_not_help_is_not_repeated),
    TEST(a_restart_that_fails_says_why),
    TEST(a_restart_that_is_not_answered_says_why),
    TEST(output_without_end_is_cut_and_kept),
    TEST(an_answer_that_is_too_long_counts_as_output),
    TEST(a_server_whose_keepalives_stop_is_given_up),
    TEST(what_drips_behind_the_end_is_left_after_a_second),
    TEST(what_drips_behind_the_end_is_left_at_the_deadline),
    TEST(an_interrupt_behind_the_end_is_seen_though_more_comes),
    TEST(a_run_ends_soon_after_an_interrupt),
    TEST(an_interrupt_is_seen_before_there_is_an_answer),
    TEST(an_interrupt_while_a_run_waits_keeps_it_from_being_sent),
    TEST(an_interrupt_while_the_sandbox_is_looked_for_keeps_the_run_from_being_sent),
    TEST(an_interrupt_of_one_sandbox_is_none_of_another_that_is_looked_for),
    TEST(an_interrupt_where_nothing_runs_asks_nothing_and_stays_without_effect),
    TEST(an_interrupt_without_a_run_has_no_effect),
};

int main(int argc, char **argv)
{
    return run_tests("e2b_run_end", tests, COUNT_OF(tests), argc, argv);
}
