/* Shell commands by envd's processes: what is sent, what the frames become, and that nothing is left running, however a run
 * ends. Time passes only where a test spins until the clock has moved. */
#include "command_fixture.h"

#include "frames.h"

#include <sys/wait.h>

/* ---- a run ---- */

static void a_command_is_a_login_shell_in_the_home(void)
{
    static const char body[] =
        "{\"process\":{\"cmd\":\"/bin/bash\",\"args\":[\"-l\",\"-c\",\"echo \\\"\xC3\xA4\\\"\\n\"],"
        "\"envs\":{},\"cwd\":\"/home/user\"},\"stdin\":false}";
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    FRAMES("{}", START, STDOUT("w6QK"), STDERR("ZXJy"), "{\"event\":{\"keepalive\":{}}}",
           EXITED("3"));
    reply_answer(&f, 0);
    CU_ASSERT_EQUAL(run(&f, "echo \"\xC3\xA4\"\n"), 0);
    expect_request(&f, 0, "POST", ENVD "/process.Process/Start");
    const struct fake_request *request = &f.call->requests[0];
    CU_ASSERT_EQUAL_FATAL(request->body_len, 5 + sizeof body - 1);
    CU_ASSERT_EQUAL(memcmp(request->body, "\0\0\0\0", 4), 0);
    CU_ASSERT_EQUAL((unsigned char)request->body[4], sizeof body - 1);
    CU_ASSERT_EQUAL(memcmp(request->body + 5, body, sizeof body - 1), 0);
    expect_header(&f, 0, "Content-Type", "application/connect+json");
    expect_header(&f, 0, "Connect-Protocol-Version", "1");
    expect_header(&f, 0, "Connect-Timeout-Ms", "30000");
    expect_header(&f, 0, "Keepalive-Ping-Interval", "50");
    expect_header(&f, 0, "X-Access-Token", ENVD_TOKEN);
    expect_header(&f, 0, "Authorization", NULL);
    CU_ASSERT_EQUAL(request->tick_ms, 200);
    expect_text(&f, SG_OUT_LOG_OUT, "\xC3\xA4\n");
    expect_text(&f, SG_OUT_LOG_ERR, "err");
    expect_text(&f, SG_OUT_STATUS, "{\"state\":\"exited\",\"code\":3}");
    CU_ASSERT_EQUAL(f.call->requests_count, 1);
    end(&f);
}

static void an_old_envd_is_told_the_user(void)
{
    struct fixture f;
    begin(&f, OF_VERSION("0.3.0"));
    FRAMES("{}", START, EXITED("0"));
    reply_answer(&f, 0);
    CU_ASSERT_EQUAL(run(&f, "true"), 0);
    expect_header(&f, 0, "Authorization", "Basic dXNlcjo=");
    end(&f);
}

static void frames_may_be_cut_anywhere_and_so_may_characters(void)
{
    for (size_t piece_len = 1; piece_len < 40; piece_len++) {
        struct fixture f;
        begin(&f, OF_VERSION("0.5.7"));
        /* EURO SIGN in three pieces on both streams, mixed; then one that never gets whole. */
        FRAMES("{}", START, STDOUT("YeI="), STDERR("4oI="), STDOUT("gg=="), STDERR("rA=="),
               STDOUT("rGI="), STDOUT("8J+Y"), EXITED("0"));
        reply_answer(&f, piece_len);
        CU_ASSERT_EQUAL(run(&f, "x"), 0);
        expect_text(&f, SG_OUT_LOG_OUT,
                    "a\xE2\x82\xAC"
                    "b\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
        expect_text(&f, SG_OUT_LOG_ERR, "\xE2\x82\xAC");
        end(&f);
    }
}

static void how_a_command_ended_is_told(void)
{
    static const struct {
        const char *end;
        int code;
    } cases[] = {
        {END("\"exited\":true,\"status\":\"exit status 0\""), 0},
        {END(""), 0},
        {EXITED("255"), 255},
        {END("\"exitCode\":-1,\"status\":\"signal: killed\",\"error\":\"signal: killed\""), 137},
        {END("\"exitCode\":-1,\"status\":\"signal: terminated\""), 143},
        {END("\"exitCode\":-1,\"status\":\"signal: segmentation fault (core dumped)\""), 139},
        {END("\"exitCode\":-1,\"status\":\"signal: user defined signal 2\""), 140},
        {END("\"exitCode\":-1,\"status\":\"signal: signal 34\""), 162},
        {END("\"exitCode\":-1,\"status\":\"signal: signal 99\""), 255},
        {END("\"exitCode\":-1,\"status\":\"signal: (core dumped)\""), 255},
        {END("\"exitCode\":-1"), 255},
        {END("\"exitCode\":256,\"status\":7"), 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fixture f;
        char expected[64];
        begin(&f, OF_VERSION("0.5.7"));
        FRAMES("{}", START, cases[i].end);
        reply_answer(&f, 0);
        CU_ASSERT_EQUAL(run(&f, "x"), 0);
        snprintf(expected, sizeof expected, "{\"state\":\"exited\",\"code\":%d}", cases[i].code);
        expect_text(&f, SG_OUT_STATUS, expected);
        CU_ASSERT_EQUAL(f.call->requests_count, 1);
        end(&f);
    }
}

static void a_command_that_ended_has_ended_whatever_becomes_of_the_connection(void)
{
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    put_messages((const char *const[]){START, STDOUT("YQ=="), EXITED("1"), NULL});
    reply_answer(&f, 0);
    CU_ASSERT_EQUAL(run(&f, "x"), 0);
    expect_text(&f, SG_OUT_STATUS, "{\"state\":\"exited\",\"code\":1}");
    next_call(&f);
    call_reply(f.call, (struct fake_reply){.status = 200,
                                           .body = answer.data,
                                           .body_len = answer.len,
                                           .code = SG_E_UNAVAILABLE,
                                           .failed_at = SG_HTTP_CUT});
    CU_ASSERT_EQUAL(run(&f, "x"), 0);
    expect_text(&f, SG_OUT_STATUS, "{\"state\":\"exited\",\"code\":1}");
    CU_ASSERT_EQUAL(f.call->requests_count, 1);
    end(&f);
}

static void a_command_that_cannot_be_an_argument_is_not_sent(void)
{
    struct fixture f;
    size_t most = (128 << 10) - 1;
    char *command = malloc(most + 1);
    memset(command, '#', most + 1);
    begin(&f, OF_VERSION("0.5.7"));
    CU_ASSERT_EQUAL(run_for(&f, "a\0b", 3, 1000), SG_E_INVALID);
    expect_message(&f, "a shell command cannot hold a NUL byte");
    CU_ASSERT_EQUAL(run_for(&f, command, most + 1, 1000), SG_E_LIMIT);
    expect_message(&f, "a shell command has at most 128KiB here: write it to a file, and run that");
    CU_ASSERT_EQUAL(f.call->requests_count, 0);
    FRAMES("{}", START, EXITED("0"));
    reply_answer(&f, 0);
    CU_ASSERT_EQUAL(run_for(&f, command, most, 1000), 0);
    free(command);
    end(&f);
}

/* ---- the end of a run before that of its process ---- */

static void let_the_clock_move(struct sg_call *call, void *context)
{
    (void)call;
    (void)context;
    for (long long until = clock_ms() + 3; clock_ms() < until;) {
    }
}

static void a_command_that_runs_too_long_is_killed(void)
{
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    put_messages((const char *const[]){START, STDOUT("YQ=="), NULL});
    reply_after(&f, let_the_clock_move);
    reply_kills(&f);
    CU_ASSERT_EQUAL(run_for(&f, "sleep 9", 7, 2), SG_E_TIMEOUT);
    expect_message(&f, "the command ran longer than 0s and was killed; files are kept");
    expect_text(&f, SG_OUT_LOG_OUT, "a");
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_STATUS), 0);
    expect_header(&f, 0, "Connect-Timeout-Ms", "2");
    expect_kill(&f, 1);
    end(&f);
}

/* The script that was sent in the second request, as bash would be given it. */
static char *read_script(struct fixture *f)
{
    static const char *const outer[] = {"process"}, *const inner[] = {"args"};
    struct json_value process, args, script = {0}, element;
    const struct fake_request *request = &f->call->requests[1];
    CU_ASSERT_TRUE_FATAL(json_find(request->body + 5, request->body_len - 5, outer, &process, 1));
    CU_ASSERT_TRUE_FATAL(json_find(process.data, process.len, inner, &args, 1));
    struct json_reader reader = json_reader_of(args.data, args.len);
    while (json_next_element(&reader, &element)) {
        script = element;
    }
    char *text = calloc(1, script.len);
    struct json_value inside = json_inside(script);
    (void)json_decode(&inside, text, script.len);
    CU_ASSERT_EQUAL(inside.len, 0);
    return text;
}

/* Real processes hold the other end of a pipe: its end is theirs. */
static void with_a_command_all_that_it_began_is_killed(void)
{
    FILE *tree = popen("exec /bin/bash -c 'sleep 999 & (sleep 999; true) & echo $$; wait'", "r");
    struct fixture f;
    char pid[32] = "", start[96];
    CU_ASSERT_PTR_NOT_NULL_FATAL(tree);
    CU_ASSERT_PTR_NOT_NULL_FATAL(fgets(pid, sizeof pid, tree));
    snprintf(start, sizeof start, "{\"event\":{\"start\":{\"pid\":%d}}}",
             (int)strtol(pid, NULL, 10));
    begin(&f, OF_VERSION("0.5.7"));
    FRAMES(FAILED("internal", "x"), start);
    reply_answer(&f, 0);
    reply_kills(&f);
    CU_ASSERT_EQUAL(run(&f, "x"), SG_E_UNAVAILABLE);
    char *script = read_script(&f);
    CU_ASSERT_EQUAL(setenv("SCRIPT", script, 1), 0);
    CU_ASSERT_EQUAL(system("exec /bin/bash -c \"$SCRIPT\""), 0);
    CU_ASSERT_EQUAL(fgetc(tree), EOF);
    int status = pclose(tree);
    CU_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    free(script);
    end(&f);
}

static void envd_may_be_the_first_to_end_it(void)
{
    static const char *const ends[] = {
        END("\"exitCode\":-1,\"status\":\"signal: killed\""),
        END("\"exitCode\":-1"),
    };
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        struct fixture f;
        begin(&f, OF_VERSION("0.5.7"));
        FRAMES("{}", START, ends[i]);
        reply_after(&f, let_the_clock_move);
        CU_ASSERT_EQUAL(run_for(&f, "x", 1, 1), SG_E_TIMEOUT);
        expect_message(&f, "the command ran longer than 0s and was killed; files are kept");
        CU_ASSERT_EQUAL(f.call->requests_count, 1);
        end(&f);
    }
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    FRAMES(FAILED("deadline_exceeded", "context deadline exceeded"), START);
    reply_answer(&f, 0);
    reply(&f, 200, "");
    reply(&f, 404, "{\"code\":\"not_found\",\"message\":\"process with pid 1234 not found\"}");
    CU_ASSERT_EQUAL(run(&f, "x"), SG_E_TIMEOUT);
    expect_message(&f, "the command ran longer than 30s and was killed; files are kept");
    expect_kill(&f, 1);
    end(&f);
}

static void a_run_takes_no_more_time_than_its_call_has(void)
{
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    f.call->time_left_ms = 13000;
    FRAMES("{}", START, EXITED("0"));
    reply_answer(&f, 0);
    CU_ASSERT_EQUAL(run(&f, "x"), 0);
    expect_header(&f, 0, "Connect-Timeout-Ms", "10000");
    CU_ASSERT_EQUAL(f.call->requests[0].timeout_ms, 10300);
    end(&f);
}

static void an_interrupted_command_is_killed(void)
{
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    put_messages((const char *const[]){START, NULL});
    reply_after(&f, interrupt_now);
    reply_kills(&f);
    CU_ASSERT_EQUAL(run(&f, "x"), SG_E_CANCELLED);
    expect_message(&f, "the command was interrupted and was killed; files are kept");
    expect_kill(&f, 1);
    end(&f);
}

/* Nothing comes but ticks, before the process has told its number. */
static void a_command_is_interrupted_before_it_has_said_anything(void)
{
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    call_reply(f.call, (struct fake_reply){
                           .status = 200, .ticks = 1, .before = interrupt_now, .context = &f});
    CU_ASSERT_EQUAL(run(&f, "x"), SG_E_CANCELLED);
    expect_message(&f, "the command was interrupted and was cut off; files are kept");
    CU_ASSERT_EQUAL(f.call->requests_count, 1);
    end(&f);
}

static void a_command_is_interrupted_while_its_sandbox_is_looked_for(void)
{
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    sandboxes_clear(f.e2b); /* as in a process that begins */
    call_reply(f.call, (struct fake_reply){.status = 200,
                                           .body = OF_VERSION("0.5.7"),
                                           .before = interrupt_now,
                                           .context = &f});
    CU_ASSERT_EQUAL(run(&f, "x"), SG_E_CANCELLED);
    expect_message(&f, "the command was interrupted before it began");
    CU_ASSERT_EQUAL(f.call->requests_count, 1);
    end(&f);
}

static void what_could_not_be_killed_is_killed_before_the_next_command(void)
{
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    put_messages((const char *const[]){START, NULL});
    reply_after(&f, let_the_clock_move);
    call_reply(f.call, (struct fake_reply){.code = SG_E_CANCELLED, .message = "over"});
    call_reply(f.call, (struct fake_reply){.code = SG_E_CANCELLED, .message = "over"});
    CU_ASSERT_EQUAL(run_for(&f, "x", 1, 2), SG_E_TIMEOUT);
    expect_message(&f, "the command ran longer than 0s and was cut off; files are kept");
    next_call(&f);
    reply(&f, 200, "{}");
    FRAMES("{}", START, EXITED("0"));
    reply_answer(&f, 0);
    reply_answer(&f, 0);
    CU_ASSERT_EQUAL(run(&f, "x"), 0);
    expect_request(&f, 0, "POST", KILL);
    CU_ASSERT_STRING_EQUAL(f.call->requests[0].body, KILL_BODY);
    CU_ASSERT_EQUAL(run(&f, "x"), 0);
    expect_request(&f, 2, "POST", ENVD "/process.Process/Start");
    end(&f);
}

static void a_core_that_takes_no_more_ends_the_process(void)
{
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    f.call->emits_max = 1;
    f.call->emit_code = SG_E_TIMEOUT;
    FRAMES("{}", START, STDOUT("YQ=="), STDOUT("Yg=="), EXITED("0"));
    reply_answer(&f, 0);
    reply(&f, 502, GONE);
    reply(&f, 500, "");
    CU_ASSERT_EQUAL(run(&f, "x"), SG_E_TIMEOUT);
    expect_message(&f, "nobody listens any more");
    expect_kill(&f, 1);
    end(&f);
}

/* ---- much output ---- */

#define PIECE_BYTES ((size_t)30 << 10)
#define MOST ((size_t)10 << 20)

/* `len` bytes of "xxx" in frames as envd has them. */
static void put_output(size_t len)
{
    answer.len = 0;
    put_frame(0, START);
    while (len > 0) {
        struct text json = {0};
        size_t part = len < PIECE_BYTES ? len : PIECE_BYTES;
        text_puts(&json, "{\"event\":{\"data\":{\"stdout\":\"");
        for (size_t i = 0; i < part / 3; i++) {
            text_puts(&json, "eHh4");
        }
        text_puts(&json, part % 3 == 1 ? "eA==" : part % 3 == 2 ? "eHg=" : "");
        text_puts(&json, "\"}}}");
        put_frame(0, json.data);
        text_clear(&json);
        len -= part;
    }
}

static size_t output_len(const struct fixture *f)
{
    size_t len = 0;
    for (size_t i = 0; i < f->call->outputs_count; i++) {
        len += f->call->outputs[i].kind == SG_OUT_LOG_OUT ? f->call->outputs[i].len : 0;
    }
    return len;
}

static void ten_megabytes_of_output_are_kept_and_no_more(void)
{
    struct fixture f;
    begin(&f, OF_VERSION("0.5.7"));
    put_output(MOST);
    put_frame(0, EXITED("0"));
    put_frame(2, "{}");
    reply_answer(&f, 65536);
    CU_ASSERT_EQUAL(run(&f, "x"), 0);
    CU_ASSERT_EQUAL(output_len(&f), MOST);
    expect_text(&f, SG_OUT_STATUS, "{\"state\":\"exited\",\"code\":0}");
    next_call(&f);
    put_output(MOST - 1);
    put_frame(0, STDERR("w6Q=")); /* two bytes, one character: there is room for one byte */
    put_frame(0, STDOUT("eA=="));
    reply_answer(&f, 65536);
    reply_kills(&f);
    CU_ASSERT_EQUAL(run(&f, "x"), SG_E_LIMIT);
    expect_message(&f, "the command printed more than 10MiB and was killed; files are kept");
    CU_ASSERT_EQUAL(output_len(&f), MOST - 1);
    CU_ASSERT_EQUAL(call_count(f.call, SG_OUT_LOG_ERR), 0);
    expect_text(&f, SG_OUT_STATUS, "{\"state\":\"output\"}");
    expect_kill(&f, 1);
    end(&f);
}

static const struct test tests[] = {
    TEST(a_command_is_a_login_shell_in_the_home),
    TEST(an_old_envd_is_told_the_user),
    TEST(frames_may_be_cut_anywhere_and_so_may_characters),
    TEST(how_a_command_ended_is_told),
    TEST(a_command_that_ended_has_ended_whatever_becomes_of_the_connection),
    TEST(a_command_that_cannot_be_an_argument_is_not_sent),
    TEST(a_command_that_runs_too_long_is_killed),
    TEST(with_a_command_all_that_it_began_is_killed),
    TEST(envd_may_be_the_first_to_end_it),
    TEST(a_run_takes_no_more_time_than_its_call_has),
    TEST(an_interrupted_command_is_killed),
    TEST(a_command_is_interrupted_before_it_has_said_anything),
    TEST(a_command_is_interrupted_while_its_sandbox_is_looked_for),
    TEST(what_could_not_be_killed_is_killed_before_the_next_command),
    TEST(a_core_that_takes_no_more_ends_the_process),
    TEST(ten_megabytes_of_output_are_kept_and_no_more),
};

int main(int argc, char **argv)
{
    return run_tests("e2b_command", tests, COUNT_OF(tests), argc, argv);
}
