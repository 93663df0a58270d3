/* Runs by the interpreter: what is asked, how a run is ended, what the next one does then, what is tried again and what is not.
 * The clock is the test's: it moves by what is slept, and by a step with each look at it, as ticks come. */
#define clock_ms test_clock_ms
#include "../../plugins/e2b/run.c"

#include "life_fixture.h"

#define BEGUN "{\"type\": \"number_of_executions\", \"execution_count\": 1}\n"
#define OUT(text) "{\"type\": \"stdout\", \"text\": \"" text "\", \"timestamp\": \"t\"}\n"
#define ENDED "{\"type\": \"end_of_execution\"}\n"
#define ALIVE "{\"type\": \"keepalive\"}\n"
#define EXECUTE "https://49999-" ID ".e2b.app/execute"
#define CONTEXTS "https://49999-" ID ".e2b.app/contexts"
#define HEALTH "https://49983-" ID ".e2b.app/health"
#define CLOSED             \
    "{\"sandboxId\":\"" ID \
    "\",\"message\":\"The sandbox is running but port is not open\",\"port\":49999,\"code\":502}"
#define GONE "{\"sandboxId\":\"" ID "\",\"message\":\"The sandbox was not found\",\"code\":502}"
#define MEBIBYTE ((size_t)1 << 20)

static long long now_ms, step_ms;

long long test_clock_ms(void)
{
    now_ms += step_ms;
    return now_ms;
}

static struct { /* what command_run() was called with, in place of command.c */
    size_t count;
    bool is_running, is_interrupted;
} commands;

int command_run(struct e2b *e2b, struct sg_call *call, struct sandbox *sandbox,
                const struct sg_run *asked, struct sg_error *err)
{
    commands.count++;
    commands.is_running = sandbox->is_running;
    CU_ASSERT_STRING_EQUAL(asked->code, "ls");
    CU_ASSERT_EQUAL(e2b_interrupt(e2b, call, ID, err), 0);
    commands.is_interrupted = run_is_interrupted(e2b, sandbox);
    return SG_E_CANCELLED;
}

static void slept(struct sg_call *call, void *context)
{
    (void)call;
    *(size_t *)context += 1;
    now_ms += 5000; /* more than any pause */
}

static size_t sleeps;

static void renew_call(struct fixture *f)
{
    next_call(f);
    f->call->on_sleep = slept;
    f->call->on_sleep_context = &sleeps;
}

static void begin(struct fixture *f)
{
    now_ms = 1000000;
    step_ms = 0;
    sleeps = 0;
    commands.count = 0;
    fixture_init(f);
    fixture_open(f);
    make(f, CREATED(ID));
    renew_call(f);
}

static int run_as(struct fixture *f, const char *language, const char *code, int64_t timeout_ms)
{
    struct sg_run asked = {language, code, strlen(code), timeout_ms};
    return e2b_run(f->e2b, f->call, ID, &asked, call_error(f->call));
}

static int run_it(struct fixture *f)
{
    return run_as(f, NULL, "1", 60000);
}

static void answer(struct fixture *f, const char *lines)
{
    reply(f, 200, lines);
}

/* An answer in which so many ticks come after the lines. */
static void answer_ticks(struct fixture *f, const char *lines, size_t ticks)
{
    const char **pieces = host_table()->alloc(f->call, (ticks + 2) * sizeof *pieces);
    pieces[0] = lines;
    for (size_t i = 0; i < ticks; i++) {
        pieces[i + 1] = "";
    }
    call_reply(f->call, (struct fake_reply){.status = 200, .pieces = pieces});
}

static void expect_text(struct fixture *f, enum sg_out kind, const char *text)
{
    CU_ASSERT_STRING_EQUAL(call_text(f->call, kind), text);
}

/* ---- what is asked ---- */

static void the_code_is_sent_once_and_what_comes_is_emitted(void)
{
    struct fixture f;
    begin(&f);
    answer(&f, BEGUN OUT("a\\n") "{\"type\": \"result\", \"text\": \"2\", \"extra\": {}}\n" ENDED);
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
    CU_ASSERT_EQUAL(f.call->outputs_count, 2);
    expect_text(&f, SG_OUT_LOG_OUT, "a\n");
    expect_text(&f, SG_OUT_RESULT, "{\"text/plain\":\"2\"}");
    CU_ASSERT_EQUAL(sleeps, 0);
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
        fixture_free(&f);
    }
}

static void a_pause_that_fails_ends_the_run(void)
{
    struct fixture f;
    begin(&f);
    reply(&f, 502, CLOSED);
    f.call->sleeps_max = 1;
    f.call->sleep_code = SG_E_CANCELLED;
    CU_ASSERT_EQUAL(run_it(&f), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(f.call->requests_count, 1);
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

static void the_end_of_the_call_is_handed_back(void)
{
    struct fixture f;
    begin(&f);
    call_reply(f.call, (struct fake_reply){.status = 200,
                                           .body = BEGUN,
                                           .code = SG_E_CANCELLED,
                                           .message = "nobody waits",
                                           .failed_at = SG_HTTP_CUT});
    f.call->time_left_ms = -1;
    step_ms = 0;
    CU_ASSERT_EQUAL(run_it(&f), SG_E_CANCELLED);
    CU_ASSERT_EQUAL(f.call->requests_count, 1);
    fixture_free(&f);
}

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
    expect_message(&f, "the code ran longer than 3s and was interrupted; variables are kept");
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
        "an earlier run keeps the interpreter busy, and the sandbox names no "
        "interpreter of 'python' to restart";
    expect_no_restart("[]", 0, SG_E_UNAVAILABLE, none);
    expect_no_restart(
        "[{\"id\":\"a\",\"language\":\"r\"},{\"id\":\"\",\"language\":\"python\"},{\"id\":5,"
        "\"language\":\"python\"},{\"language\":\"python\"},{",
        0, SG_E_UNAVAILABLE, none);
    expect_no_restart(
        "[{\"id\":\"a\",\"language\":\"python\"}]", 500, SG_E_UNAVAILABLE,
        "cannot restart the interpreter, which an earlier run keeps busy: the sandbox "
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
    expect_message(&f,
                   "cannot restart the interpreter, which an earlier run keeps busy: the sandbox "
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
    TEST(the_code_is_sent_once_and_what_comes_is_emitted),
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
    TEST(a_sandbox_that_ends_amid_a_run_is_gone),
    TEST(a_connection_that_breaks_after_the_end_is_a_success),
    TEST(a_connection_that_stays_open_after_the_end_is_left),
    TEST(lines_that_are_no_json_are_logged),
    TEST(a_failure_to_emit_is_handed_back),
    TEST(the_end_of_the_call_is_handed_back),
    TEST(code_that_runs_too_long_is_interrupted),
    TEST(code_that_prints_without_end_is_interrupted_too),
    TEST(an_exchange_that_ends_by_its_time_is_the_runs_end_too),
    TEST(the_run_after_one_that_was_ended_waits_a_second),
    TEST(an_interpreter_that_is_still_busy_is_restarted_and_the_code_run),
    TEST(it_is_restarted_after_five_seconds_or_half_the_time),
    TEST(code_that_has_begun_is_not_taken_for_waiting),
    TEST(a_restart_that_does_not_help_is_not_repeated),
    TEST(a_restart_that_fails_says_why),
    TEST(a_restart_that_is_not_answered_says_why),
    TEST(output_without_end_is_cut_and_kept),
    TEST(an_answer_that_is_too_long_counts_as_output),
    TEST(a_server_whose_keepalives_stop_is_given_up),
    TEST(a_run_ends_soon_after_an_interrupt),
    TEST(an_interrupt_is_seen_before_there_is_an_answer),
    TEST(an_interrupt_while_a_run_waits_keeps_it_from_being_sent),
    TEST(an_interrupt_without_a_run_has_no_effect),
};

int main(int argc, char **argv)
{
    return run_tests("e2b_run", tests, COUNT_OF(tests), argc, argv);
}
