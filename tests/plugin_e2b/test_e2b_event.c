/* What one line of the interpreter's answer says to the plugin e2b: JSON that is none, results of each kind, errors and
 * their tracebacks. */
#include "answer.h"

static const char restarted[] =
    "{\"state\":\"restarted\",\"note\":\"the interpreter was begun anew: variables, functions and "
    "imports are gone; files are kept\"}";

/* ---- JSON that is none ---- */

static void numbers_that_json_does_not_have_become_null(void)
{
    expect(
        "{\"type\":\"result\",\"json\":[NaN, Infinity,-Infinity,-1, \"NaN\",-NaN],\"data\":NaN}\n",
        "result {\"application/json\":[null, null,null,-1, \"NaN\",null]}\n");
}

static void lone_surrogates_become_the_replacement_character(void)
{
    expect("{\"type\":\"stdout\",\"text\":\"a\\ud800b\\udc00\\ud83d\\ude00\\ud83d\"}\n",
           "out a\\xef\\xbf\\xbdb\\xef\\xbf\\xbd\\xf0\\x9f\\x98\\x80\\xef\\xbf\\xbd\n");
    expect(
        "{\"type\":\"result\",\"text\":\"\\ud83d\\ud83d\\ude00\",\"html\":\"\\uDC00\\u00e9\"}\n",
        "result "
        "{\"text/plain\":\"\\\\ufffd\\\\ud83d\\\\ude00\",\"text/html\":\"\\\\ufffd\\\\u00e9\"}\n");
}

static void raw_text_is_taken_and_what_is_no_utf8_is_replaced(void)
{
    expect("{\"type\":\"stderr\",\"text\":\"\xC3\xA9\xF0\x9F\x98\x80 \xFF \xC3\"}\n",
           "err \\xc3\\xa9\\xf0\\x9f\\x98\\x80 \\xef\\xbf\\xbd \\xef\\xbf\\xbd\n");
    expect("{\"type\":\"result\",\"text\":\"\xED\xA0\x80\"}\n",
           "result {\"text/plain\":\"\\\\ufffd\\\\ufffd\\\\ufffd\"}\n");
}

static void raw_control_characters_and_odd_escapes_are_taken(void)
{
    expect("{\"type\":\"stdout\",\"text\":\"a\tb\x01\\x41\\'\\u12G4\"}\n",
           "out a\\x09b\\x01\\\\x41\\\\'\\\\u12G4\n");
}

static void nul_characters_cut_nothing_short(void)
{
    expect("{\"type\":\"stdout\",\"text\":\"a\\u0000b\"}\n", "out a\\x00b\n");
}

static void lines_may_be_blank_or_end_with_cr_or_not_at_all(void)
{
    struct answer a;
    CU_ASSERT_EQUAL(take_all(&a, "\n\r\n \t\r\n{\"type\":\"stdout\",\"text\":\"x\"}\r\n\n"
                                 "{\"type\":\"end_of_execution\"}"),
                    0);
    expect_events(&a, "out x\n");
    CU_ASSERT_TRUE(a.stream.has_ended);
    CU_ASSERT_EQUAL(a.stream.unreadable_count, 0);
    answer_free(&a);
}

static void unknown_types_and_fields_are_ignored(void)
{
    struct answer a;
    CU_ASSERT_EQUAL(take_all(&a, "{\"type\":\"progress\",\"text\":\"no\"}\n{\"type\":5}\n{}\n"
                                 "{\"type\":\"keepalive\"}\n"),
                    0);
    expect_events(&a, "");
    CU_ASSERT_FALSE(a.stream.has_begun);
    CU_ASSERT_TRUE(a.stream.is_kept_alive);
    CU_ASSERT_EQUAL(a.stream.unreadable_count, 0);
    answer_free(&a);
    expect("{\"new\":[{}],\"text\":\"x\",\"type\":\"stdout\"}\n", "out x\n");
}

static void lines_that_are_no_objects_are_left_out_and_counted(void)
{
    struct answer a;
    CU_ASSERT_EQUAL(take_all(&a, "<html>\n[]\n{\"type\":\n{\"type\":\"stdout\",\"text\":\"x\"}}\n"
                                 "{\"type\":\"stdout\",\"text\":\"y\"}\n"),
                    0);
    expect_events(&a, "out y\n");
    CU_ASSERT_EQUAL(a.stream.unreadable_count, 4);
    answer_free(&a);
}

static void members_of_a_wrong_type_are_left_out(void)
{
    expect("{\"type\":\"stdout\",\"text\":5}\n{\"type\":\"stdout\"}\n", "");
    expect("{\"type\":\"result\",\"text\":null,\"png\":7,\"html\":\"h\",\"extra\":[]}\n",
           "result {\"text/html\":\"h\"}\n");
    expect("{\"type\":\"error\",\"name\":1,\"value\":null}\n",
           "exception {\"name\":\"\",\"value\":\"\",\"traceback\":\"\"}\n");
}

static void values_nested_too_deeply_become_null(void)
{
    char line[1024] = "{\"type\":\"result\",\"text\":\"t\",\"json\":", deep[256], shown[512];
    size_t len = strlen(line);
    for (size_t i = 0; i < 200; i++) {
        line[len++] = '[';
    }
    memcpy(line + len, "\"]]\\\"]\"", 7);
    memset(line + len + 7, ']', 200);
    memcpy(line + len + 207, "}\n", 3);
    memset(deep, '[', 59);
    memcpy(deep + 59, "null", 4);
    memset(deep + 63, ']', 59);
    deep[122] = '\0';
    snprintf(shown, sizeof shown, "result {\"text/plain\":\"t\",\"application/json\":%s}\n", deep);
    expect(line, shown);
}

/* ---- results ---- */

static void every_kind_of_result_has_its_name(void)
{
    struct answer a;
    CU_ASSERT_EQUAL(
        take_all(
            &a,
            "{\"chart\":{\"type\":\"pie\"},\"data\":{\"a\":[1]},\"json\":{},\"pdf\":\"P\",\"jpeg\":"
            "\"J\",\"png\":\"N\",\"javascript\":\"j\",\"latex\":\"l\",\"svg\":\"s\",\"markdown\":"
            "\"m\",\"html\":\"h\",\"text\":\"t\",\"extra\":{\"a/b\":\"x\",\"c/d\":{\"k\":1}},"
            "\"is_main_result\":true,\"type\":\"result\"}\n"),
        0);
    CU_ASSERT_STRING_EQUAL(
        call_text(a.call, SG_OUT_RESULT),
        "{\"text/plain\":\"t\",\"text/html\":\"h\",\"text/markdown\":\"m\",\"image/svg+xml\":\"s\","
        "\"text/latex\":\"l\",\"application/javascript\":\"j\",\"image/png\":\"N\",\"image/jpeg\":"
        "\"J\",\"application/pdf\":\"P\",\"application/json\":{},\"application/vnd.e2b.data+json\":"
        "{\"a\":[1]},\"application/vnd.e2b.chart+json\":{\"type\":\"pie\"},\"a/b\":\"x\",\"c/d\":"
        "{\"k\":1}}");
    answer_free(&a);
}

static void a_result_without_anything_to_show_is_not_emitted(void)
{
    struct answer a;
    CU_ASSERT_EQUAL(
        take_all(&a, "{\"type\":\"result\",\"extra\":{},\"chart\":{},\"is_main_result\":true}\n"),
        0);
    expect_events(&a, "");
    CU_ASSERT_TRUE(a.stream.has_begun);
    answer_free(&a);
}

static void no_name_stands_twice_in_a_result(void)
{
    expect("{\"type\":\"result\",\"text\":\"t\",\"text\":\"u\",\"extra\":{\"text/"
           "plain\":\"no\",\"a\\/b\":1,"
           "\"a/b\":2,\"image/png\":\"no\",\"\":3,\"with space\":4,\"q\\\"\":5,\"n/n\":null}}\n",
           "result {\"text/plain\":\"u\",\"a/b\":1}\n");
}

static void a_line_of_many_members_is_none_of_the_interpreters(void)
{
    for (int members = 64; members <= 65; members++) {
        TEXT_CLEANUP struct text line = {0};
        struct answer a;
        text_puts(&line, "{\"type\":\"stdout\"");
        for (int i = 1; i < members; i++) {
            text_puts(&line, ",\"text\":\"x\"");
        }
        text_puts(&line, "}\n");
        CU_ASSERT_EQUAL(take_all(&a, line.data), 0);
        expect_events(&a, members == 64 ? "out x\n" : "");
        CU_ASSERT_EQUAL(a.stream.unreadable_count, members == 64 ? 0 : 1);
        answer_free(&a);
    }
}

static void pictures_lose_their_line_breaks(void)
{
    expect("{\"type\":\"result\",\"png\":\"AAAA\\nBB\\/B\\r\\n\",\"text\":\"a\\nb\"}\n",
           "result {\"text/plain\":\"a\\\\nb\",\"image/png\":\"AAAABB\\\\/B\"}\n");
}

/* ---- errors ---- */

static void the_end_of_the_interpreter_is_explained_once(void)
{
    struct answer a;
    CU_ASSERT_EQUAL(
        take_all(
            &a,
            "{\"type\":\"error\",\"name\":\"WebSocketError\",\"value\":\"v\",\"traceback\":\"\"}\n"
            "{\"type\":\"error\",\"name\":\"UnexpectedEndOfExecution\",\"value\":\"v\"}\n"),
        0);
    CU_ASSERT_EQUAL(a.call->outputs_count, 2);
    CU_ASSERT_STRING_EQUAL(call_text(a.call, SG_OUT_STATUS), restarted);
    CU_ASSERT_STRING_EQUAL(call_text(a.call, SG_OUT_EXCEPTION),
                           "{\"name\":\"WebSocketError\",\"value\":\"the interpreter was restarted "
                           "while the code ran\",\"traceback\":\"\"}");
    CU_ASSERT_TRUE(a.stream.was_restarted);
    answer_free(&a);
    CU_ASSERT_EQUAL(
        take_all(&a, "{\"type\":\"error\",\"name\":\"ContextRestarting\",\"value\":\"v\"}\n"), 0);
    CU_ASSERT_STRING_EQUAL(call_text(a.call, SG_OUT_EXCEPTION),
                           "{\"name\":\"ContextRestarting\",\"value\":\"the interpreter's process "
                           "ended while the code ran, as by os._exit(), a crash or too much "
                           "memory\",\"traceback\":\"\"}");
    answer_free(&a);
    CU_ASSERT_EQUAL(
        take_all(&a,
                 "{\"type\":\"error\",\"name\":\"UnexpectedEndOfExecution\",\"value\":\"v\"}\n"),
        0);
    CU_ASSERT_STRING_EQUAL(call_text(a.call, SG_OUT_EXCEPTION),
                           "{\"name\":\"UnexpectedEndOfExecution\",\"value\":\"the interpreter was "
                           "ended while the code ran\",\"traceback\":\"\"}");
    answer_free(&a);
}

static void an_exception_of_such_a_name_with_a_traceback_is_the_codes_own(void)
{
    struct answer a;
    CU_ASSERT_EQUAL(
        take_all(&a, "{\"type\":\"error\",\"name\":\"ContextRestarting\",\"value\":\"mine\","
                     "\"traceback\":\"here\"}\n"),
        0);
    expect_events(
        &a,
        "exception {\"name\":\"ContextRestarting\",\"value\":\"mine\",\"traceback\":\"here\"}\n");
    CU_ASSERT_FALSE(a.stream.was_restarted);
    answer_free(&a);
}

static void long_values_of_exceptions_are_cut_between_characters(void)
{
    struct answer a;
    char *line = malloc(60000);
    size_t len = (size_t)snprintf(line, 60000, "{\"type\":\"error\",\"name\":\"E\",\"value\":\"x");
    for (size_t i = 0; i < 10000; i++) {
        memcpy(line + len, "\xC3\xA9", 2);
        len += 2;
    }
    memcpy(line + len, "\"}\n", 4);
    CU_ASSERT_EQUAL(take_all(&a, line), 0);
    const char *got = call_text(a.call, SG_OUT_EXCEPTION);
    /* 16384 bytes would end within the é that begins at 16383. */
    size_t kept = sizeof "{\"name\":\"E\",\"value\":\"" - 1 + 16383;
    CU_ASSERT_EQUAL(strlen(got), kept + strlen(" ...\",\"traceback\":\"\"}"));
    CU_ASSERT_STRING_EQUAL(got + kept - 2, "\xC3\xA9 ...\",\"traceback\":\"\"}");
    answer_free(&a);
    free(line);
}

/* A line of megabytes may name one type a hundred thousand times. */
static void only_some_of_the_other_types_are_looked_at(void)
{
    struct answer a;
    TEXT_CLEANUP struct text line = {0};
    text_puts(&line, "{\"type\":\"result\",\"extra\":{");
    for (int i = 0; i < 63; i++) {
        text_puts(&line, "\"a/b\":1,");
    }
    text_puts(&line, "\"c/d\":2,\"e/f\":3}}\n");
    CU_ASSERT_EQUAL(take_all(&a, line.data), 0);
    CU_ASSERT_STRING_EQUAL(call_text(a.call, SG_OUT_RESULT), "{\"a/b\":1,\"c/d\":2}");
    answer_free(&a);
}

static void expect_traceback(const char *json, const char *expected)
{
    struct answer a;
    TEXT_CLEANUP struct text line = {0}, shown = {0};
    text_printf(&line, "{\"type\":\"error\",\"name\":\"E\",\"traceback\":\"%s\"}\n", json);
    text_printf(&shown, "{\"name\":\"E\",\"value\":\"\",\"traceback\":\"%s\"}", expected);
    CU_ASSERT_EQUAL(take_all(&a, line.data), 0);
    CU_ASSERT_STRING_EQUAL(call_text(a.call, SG_OUT_EXCEPTION), shown.data);
    answer_free(&a);
}

static void of_a_traceback_of_megabytes_the_end_is_kept(void)
{
    static const char *const fillers[] = {"x", "\\\\", "\\n"}; /* a cut may fall into an escape */
    for (size_t i = 0; i < sizeof fillers / sizeof *fillers; i++) {
        struct answer a;
        TEXT_CLEANUP struct text line = {0};
        text_puts(&line, "{\"type\":\"error\",\"name\":\"E\",\"traceback\":\"");
        for (int k = 0; k < 1500000; k++) {
            text_puts(&line, fillers[i]);
        }
        text_puts(&line, "\\nE: the end\"}\n");
        CU_ASSERT_EQUAL(take_all(&a, line.data), 0);
        CU_ASSERT_PTR_NOT_NULL(strstr(call_text(a.call, SG_OUT_EXCEPTION), "E: the end"));
        answer_free(&a);
    }
}

static void tracebacks_are_shortened_to_what_ran(void)
{
    expect_traceback(
        "------------------------E            Traceback (most recent call last)Cell In[1], line "
        "2\\n      1 a\\n----> 2 f()\\n     12\\nFile /x.py:9, in f()\\n   8 b\\n-> 9 c\\n    [... "
        "skipping]\\n   7 no code\\nE: 1\\n  2 lines",
        "Traceback (most recent call last):\\nCell In[1], line 2\\n----> 2 f()\\nFile /x.py:9, in "
        "f()\\n-> 9 c\\n    [... skipping]\\n   7 no code\\nE: 1\\n  2 lines");
    expect_traceback(
        "Traceback (most recent call last):\\n  File \\\"x\\\"\\nE", /* as Python itself writes it */
        "Traceback (most recent call last):\\n  File \\\"x\\\"\\nE");
    expect_traceback("E: not a Traceback (most recent call last) at all",
                     "E: not a Traceback (most recent call last) at all");
}

static void tracebacks_lose_their_colours_and_get_their_breaks_back(void)
{
    expect_traceback("\\u001b[0;31mE\\u001b[0m: x\\u001b", "E: x\\u001b");
    expect_traceback("\\u001b[", "");
    expect_traceback("a:1throw^Error: b    at x:1:7    at y",
                     "a:1throw^Error: b\\n    at x:1:7\\n    at y");
    expect_traceback("a\\n    at x    at y", "a\\n    at x    at y");
}

static void of_long_tracebacks_the_end_is_kept(void)
{
    TEXT_CLEANUP struct text long_one = {0}, got = {0};
    for (int i = 0; i < 1000; i++) {
        text_printf(&long_one, "line %d\n", i);
    }
    traceback_put(&got, long_one.data, long_one.len, false);
    CU_ASSERT(got.len > TRACEBACK_BYTES_MAX - 20 && got.len <= TRACEBACK_BYTES_MAX);
    CU_ASSERT_EQUAL(strncmp(got.data, "[earlier lines of the traceback cut]\nline ", 42), 0);
    CU_ASSERT_STRING_EQUAL(got.data + got.len - 17, "line 998\nline 999");
    text_clear(&long_one);
    text_clear(&got);
    text_puts(&long_one, "x");
    for (int i = 0; i < 3000; i++) {
        text_puts(&long_one, "\xC3\xA9");
    }
    traceback_put(&got, long_one.data, long_one.len, false);
    CU_ASSERT(got.len > TRACEBACK_BYTES_MAX - 20 && got.len <= TRACEBACK_BYTES_MAX);
    CU_ASSERT_EQUAL(memcmp(got.data, "[earlier lines of the traceback cut]\n\xC3\xA9", 39), 0);
}

static void of_huge_tracebacks_only_the_end_is_read(void)
{
    TEXT_CLEANUP struct text long_one = {0};
    text_puts(&long_one, "File begin\\n      1 x");
    for (int i = 0; i < 20000; i++) {
        text_puts(&long_one, "\\u00e9\\\\");
    }
    text_puts(&long_one, "\\nFile end\\n");
    for (int i = 0; i < 3000; i++) {
        text_printf(&long_one, "%6d caf\\u00e9\\n", i);
    }
    text_puts(&long_one, "E: 1");
    expect_traceback(long_one.data, "[earlier lines of the traceback cut]\\nFile end\\nE: 1");
}

static const struct test tests[] = {
    TEST(numbers_that_json_does_not_have_become_null),
    TEST(lone_surrogates_become_the_replacement_character),
    TEST(raw_text_is_taken_and_what_is_no_utf8_is_replaced),
    TEST(raw_control_characters_and_odd_escapes_are_taken),
    TEST(nul_characters_cut_nothing_short),
    TEST(lines_may_be_blank_or_end_with_cr_or_not_at_all),
    TEST(unknown_types_and_fields_are_ignored),
    TEST(lines_that_are_no_objects_are_left_out_and_counted),
    TEST(members_of_a_wrong_type_are_left_out),
    TEST(values_nested_too_deeply_become_null),
    TEST(every_kind_of_result_has_its_name),
    TEST(a_result_without_anything_to_show_is_not_emitted),
    TEST(no_name_stands_twice_in_a_result),
    TEST(only_some_of_the_other_types_are_looked_at),
    TEST(a_line_of_many_members_is_none_of_the_interpreters),
    TEST(pictures_lose_their_line_breaks),
    TEST(the_end_of_the_interpreter_is_explained_once),
    TEST(an_exception_of_such_a_name_with_a_traceback_is_the_codes_own),
    TEST(long_values_of_exceptions_are_cut_between_characters),
    TEST(of_a_traceback_of_megabytes_the_end_is_kept),
    TEST(tracebacks_are_shortened_to_what_ran),
    TEST(tracebacks_lose_their_colours_and_get_their_breaks_back),
    TEST(of_long_tracebacks_the_end_is_kept),
    TEST(of_huge_tracebacks_only_the_end_is_read),
};

int main(int argc, char **argv)
{
    return run_tests("e2b_event", tests, COUNT_OF(tests), argc, argv);
}
