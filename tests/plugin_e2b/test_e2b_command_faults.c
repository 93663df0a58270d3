/* Shell commands whose answer is cut, refused, or none: what is told, what is killed, and what is never sent again. The
 * clock is the test's, and moves by a step with each look at it; command.c is taken in whole for that. */
#define clock_ms test_clock_ms
#include "../../plugins/e2b/command.c"

#include "command_fixture.h"

static long long now_ms = 1000000, step_ms;

long long test_clock_ms(void)
{
    now_ms += step_ms;
    return now_ms;
}

#define MAY_HAVE_BEGUN "{\"state\":\"begun\"}"

static void an_answer_that_ends_too_early_is_an_interrupted_run(void)
{
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    FRAMES("{}", START, STDOUT("YQ=="));
    reply_answer(&f, 0);
    reply_kills(&f);
    reply(&f, 204, NULL);
    CU_ASSERT_EQUAL(run(&f, "x"), SG_E_UNAVAILABLE);
    expect_message(&f, "the sandbox's answer ended before the command did: the connection to the "
                       "sandbox was lost");
    expect_text(&f, SG_OUT_LOG_OUT, "a");
    expect_text(&f, SG_OUT_STATUS, MAY_HAVE_BEGUN);
    expect_kill(&f, 1);
    expect_request(&f, 3, "GET", ENVD "/health");
    end(&f);
}

static void a_sandbox_that_ends_amid_a_command_is_gone(void)
{
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    put_messages((const char *const[]){START, NULL});
    reply_broken(&f);
    reply(&f, 502, GONE); /* of both kills */
    reply(&f, 502, GONE);
    reply(&f, 502, GONE); /* of /health */
    CU_ASSERT_EQUAL(run(&f, "x"), SG_E_GONE);
    expect_message(&f, "the command did not end: the sandbox is not there any more: it was ended, "
                       "or its time was up");
    expect_nothing_secret(&f);
    end(&f);
}

static void a_connection_that_breaks_amid_a_command_is_told_as_such(void)
{
    static const char *const firsts[] = {START, STDOUT("YQ==")};
    for (size_t i = 0; i < 2; i++) {
        struct fixture f;
        begin(&f, OF_VERSION("0.5.7"));
        put_messages((const char *const[]){firsts[i], NULL});
        reply_broken(&f);
        if (i == 0) {
            reply_kills(&f);
        }
        reply(&f, 204, NULL);
        CU_ASSERT_EQUAL(run(&f, "x"), SG_E_UNAVAILABLE);
        expect_message(&f, "the command did not end: the connection to the sandbox was lost");
        expect_text(&f, SG_OUT_STATUS, MAY_HAVE_BEGUN);
        end(&f);
    }
}

static void a_sandbox_that_has_ended_is_gone_before_the_command(void)
{
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    reply(&f, 502, GONE);
    CU_ASSERT_EQUAL(run(&f, "x"), SG_E_GONE_BEFORE);
    CU_ASSERT_EQUAL(f.call->requests_count, 1);
    expect_nothing_secret(&f);
    end(&f);
}

static void only_what_cannot_have_begun_is_sent_again(void)
{
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    reply(&f, 502, CLOSED);
    call_reply(f.call, (struct fake_reply){.code = SG_E_UNAVAILABLE,
                                           .message = "refused",
                                           .failed_at = SG_HTTP_UNCONNECTED});
    FRAMES("{}", START, EXITED("0"));
    reply_answer(&f, 0);
    CU_ASSERT_EQUAL(run(&f, "x"), 0);
    CU_ASSERT_EQUAL(f.call->requests_count, 3);
    next_call(&f);
    call_reply(f.call, (struct fake_reply){.code = SG_E_UNAVAILABLE,
                                           .message = "reset",
                                           .failed_at = SG_HTTP_UNANSWERED});
    reply(&f, 204, NULL);
    CU_ASSERT_EQUAL(run(&f, "x"), SG_E_UNAVAILABLE);
    expect_message(&f, "cannot run the command: the connection to the sandbox was lost");
    expect_text(&f, SG_OUT_STATUS, MAY_HAVE_BEGUN);
    CU_ASSERT_EQUAL(f.call->requests_count, 2);
    expect_request(&f, 1, "GET", ENVD "/health");
    next_call(&f);
    for (int i = 0; i < 4; i++) {
        call_reply(f.call, (struct fake_reply){.code = SG_E_UNAVAILABLE,
                                               .message = "refused",
                                               .failed_at = SG_HTTP_UNCONNECTED});
    }
    CU_ASSERT_EQUAL(run(&f, "x"), SG_E_UNAVAILABLE);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_STATUS), 0);
    end(&f);
}

static void an_error_in_the_last_frame_is_told(void)
{
    static const struct {
        const char *last;
        const char *message;
    } cases[] = {
        {FAILED("invalid_argument", "cwd '/home/user' does not exist"),
         "cannot run the command: the sandbox has no folder /home/user; is 'template' one of "
         "E2B's?"},
        {FAILED("unavailable", "no room on " ID), "the sandbox did not start the command: no room "
                                                  "on ***"},
        {FAILED("internal", ""), "the sandbox did not start the command: without a reason"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fixture f;
        begin(&f, OF_VERSION("0.5.7"));
        answer.len = 0;
        put_frame(2, cases[i].last);
        reply_answer(&f, 0);
        CU_ASSERT_EQUAL(run(&f, "x"), SG_E_UNAVAILABLE);
        expect_message(&f, cases[i].message);
        CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_STATUS), 0);
        CU_ASSERT_EQUAL(f.call->requests_count, 1);
        end(&f);
    }
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    FRAMES(FAILED("unknown", "broken pipe"), START);
    reply_answer(&f, 0);
    reply_kills(&f);
    CU_ASSERT_EQUAL(run(&f, "x"), SG_E_UNAVAILABLE);
    expect_message(&f, "the sandbox gave the command up: broken pipe");
    expect_text(&f, SG_OUT_STATUS, MAY_HAVE_BEGUN);
    expect_kill(&f, 1);
    end(&f);
}

#define NO_ENVD "the sandbox's answer to a command is not what E2B's envd sends: "

static void what_is_no_stream_of_a_process_is_told_as_such(void)
{
    static const struct {
        const char *data;
        size_t len;
        const char *message;
    } cases[] = {
        {"<html>", 6, NO_ENVD "a frame has flags that were not asked for"},
        {"\x01\0\0\0\2{}", 7, NO_ENVD "a frame has flags that were not asked for"},
        {"\0\0\x40\0\1", 5, NO_ENVD "a frame is larger than 4MiB"},
        {"\2\0\0\0\2{}\0", 8, NO_ENVD "more came behind the last frame"},
        {"\0\0\0\0\2[]", 7, NO_ENVD "a frame is no event of a process"},
        {"\0\0\0\0\0", 5, NO_ENVD "a frame is no event of a process"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fixture f;
        begin(&f, OF_VERSION("0.5.7"));
        call_reply(f.call, (struct fake_reply){
                               .status = 200, .body = cases[i].data, .body_len = cases[i].len});
        CU_ASSERT_EQUAL(run(&f, "x"), SG_E_UNAVAILABLE);
        expect_message(&f, cases[i].message);
        end(&f);
    }
}

static void base64_is_read_strictly(void)
{
    static const char *const wrong[] = {
        "YQ", "YQ=", "YR==", "YWJ=", "Y===", "====", "YQ==YQ==", "Y Q=", "YQ-_", "=YQ=", "YQ=a"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct fixture f;
        char json[128];
        begin(&f, OF_VERSION("0.5.7"));
        snprintf(json, sizeof json, STDOUT("%s"), wrong[i]);
        FRAMES("{}", START, json, EXITED("0"));
        reply_answer(&f, 0);
        reply_kills(&f);
        CU_ASSERT_EQUAL(run(&f, "x"), SG_E_UNAVAILABLE);
        expect_message(&f, NO_ENVD "a piece of output is no base64");
        expect_text(&f, SG_OUT_STATUS, MAY_HAVE_BEGUN);
        expect_kill(&f, 1);
        end(&f);
    }
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    FRAMES("{}", START, STDOUT(""), STDOUT("Pj4\\u002bPz8\\/"), EXITED("0"));
    reply_answer(&f, 0);
    CU_ASSERT_EQUAL(run(&f, "x"), 0);
    expect_text(&f, SG_OUT_LOG_OUT, ">>>???");
    end(&f);
}

/* ---- what comes behind the end ---- */

/* The end comes with the first piece, and with each that follows the clock moves. Returns how many of those were taken. */
static size_t run_dripping(int64_t timeout_ms, void (*before)(struct sg_call *, void *))
{
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    put_messages((const char *const[]){START, STDOUT("YQ=="), EXITED("3"), NULL});
    size_t piece_len = answer.len;
    for (size_t i = 0; i < 1000; i++) {
        put_frame(0, "{\"event\":{\"keepalive\":{}}}");
    }
    call_reply(f.call, (struct fake_reply){.status = 200,
                                           .body = answer.data,
                                           .body_len = answer.len,
                                           .piece_len = piece_len,
                                           .before = before,
                                           .context = &f});
    step_ms = 50;
    CU_ASSERT_EQUAL(run_for(&f, "x", 1, timeout_ms), 0);
    step_ms = 0;
    expect_text(&f, SG_OUT_LOG_OUT, "a");
    expect_text(&f, SG_OUT_STATUS, "{\"state\":\"exited\",\"code\":3}");
    CU_ASSERT_EQUAL(f.call->requests_count, 1); /* nothing is killed */
    size_t pieces = f.call->requests[0].sunk / piece_len;
    end(&f);
    return pieces;
}

static void what_drips_behind_the_end_is_left(void)
{
    size_t pieces = run_dripping(30000, NULL);
    CU_ASSERT(pieces > 10 && pieces <= 21);
    CU_ASSERT(run_dripping(500, NULL) <= 10);
    CU_ASSERT_EQUAL(run_dripping(30000, interrupt_now), 0);
}

static const struct test tests[] = {
    TEST(an_answer_that_ends_too_early_is_an_interrupted_run),
    TEST(a_sandbox_that_ends_amid_a_command_is_gone),
    TEST(a_connection_that_breaks_amid_a_command_is_told_as_such),
    TEST(a_sandbox_that_has_ended_is_gone_before_the_command),
    TEST(only_what_cannot_have_begun_is_sent_again),
    TEST(an_error_in_the_last_frame_is_told),
    TEST(what_is_no_stream_of_a_process_is_told_as_such),
    TEST(base64_is_read_strictly),
    TEST(what_drips_behind_the_end_is_left),
};

int main(int argc, char **argv)
{
    return run_tests("e2b_command_faults", tests, COUNT_OF(tests), argc, argv);
}
