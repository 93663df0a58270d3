/* The few words of Python: a table of codes with what they print, what they give and what they raise. */
#include "base/check.h"
#include "cunit_main.h"
#include "python.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HONEST                                                                                    \
    "SyntaxError: mock sandbox: only assignments, integers with + - * and parentheses, one-line " \
    "strings, names and print() are understood; for other code give it a rule, or use a sandbox " \
    "with Python"

static int take_print(void *context, const char *text, size_t len)
{
    text_put(context, text, len);
    return 0;
}

/* "printed=value!Exception: message" of one run. */
static void run_into(struct python *python, const char *code, size_t len, struct text *ret)
{
    struct python_result result = {0};
    struct python_sink sink = {take_print, ret};
    python_run(python, code, len, &sink, &result);
    if (result.has_value) {
        text_printf(ret, "=%s", result.value.data);
    }
    if (result.ending == PYTHON_RAISED) {
        text_printf(ret, "!%s: %s", result.exception, result.message.data);
    }
    python_result_clear(&result);
}

static void expect(struct python *python, const char *code, const char *expected)
{
    TEXT_CLEANUP struct text got = {0};
    run_into(python, code, strlen(code), &got);
    CU_ASSERT_STRING_EQUAL(got.len == 0 ? "" : got.data, expected);
    if (strcmp(got.len == 0 ? "" : got.data, expected) != 0) {
        fprintf(stderr, "\n%s\n  gave %s\n", code, got.len == 0 ? "" : got.data);
    }
}

static void each_code_does_what_python_does(void)
{
    static const struct {
        const char *code, *expected;
    } cases[] = {
        {"", ""},
        {"\n\n# nothing\n", ""},
        {"1", "=1"},
        {"1 + 2 * 3 - 4", "=3"},
        {"(1 + 2) * -(3 - 4)", "=3"},
        {"--5", "=5"},
        {"- 2 * 3", "=-6"},
        {"10 - 2 - 3", "=5"},
        {"x = 3\nprint(x)", "3\n"},
        {"x = 3; y = x * 7919; print(y)", "23757\n"},
        {"x = 3; y = x;\nprint(y + 1)\n", "4\n"},
        {"x = 2\nx += 3; x *= 4; x -= 1\nx", "=19"},
        {"print(1, 'two', -3)", "1 two -3\n"},
        {"print()", "\n"},
        {"print(1,)", "1\n"},
        {"print('a\\n\\t\\'\\\\' + \"b\")", "a\n\t'\\b\n"},
        {"print(1)\nprint(2)\n3", "1\n2\n=3"},
        {"print(1) # done", "1\n"},
        {"(1 +\n 2)", "=3"},
        {"1 + \\\n2", "=3"},
        {"'it'", "='it'"},
        {"\"it's\"", "=\"it's\""},
        {"'a\\n\"b\\''", "='a\\n\"b\\''"},
        {"1\n2;", "=2"},
        {"x = 1\nx\ny = 2", ""},
        {"\xC3\xA4 = 5\n\xC3\xA4 + 1", "=6"},
        {"9223372036854775807", "=9223372036854775807"},
        {"-9223372036854775807 - 1", "=-9223372036854775808"},
        {"x = 00", ""},
        {"x\r\n=\r\n1", "!NameError: name 'x' is not defined"},
    };
    for (size_t i = 0; i + 1 < COUNT_OF(cases); i++) {
        struct python *python = python_new();
        expect(python, cases[i].code, cases[i].expected);
        python_free(python);
    }
}

static void what_python_would_raise_is_raised(void)
{
    static const struct {
        const char *code, *expected;
    } cases[] = {
        {"x", "!NameError: name 'x' is not defined"},
        {"print(1)\nprint(y)\nprint(3)", "1\n!NameError: name 'y' is not defined"},
        {"x += 1", "!NameError: name 'x' is not defined"},
        {"'a' + 1", "!TypeError: unsupported operand type(s) for +: 'str' and 'int'"},
        {"2 * 'a'", "!TypeError: unsupported operand type(s) for *: 'int' and 'str'"},
        {"-'a'", "!TypeError: bad operand type for unary -: 'str'"},
        {"9223372036854775807 + 1", "!OverflowError: mock sandbox: integers have 64 bits"},
        {"9223372036854775808", "!OverflowError: mock sandbox: integers have 64 bits"},
        {"x = 4611686018427387904\nprint(x)\nx * 2",
         "4611686018427387904\n!OverflowError: mock sandbox: integers have 64 bits"},
        {"-(-9223372036854775807 - 1)", "!OverflowError: mock sandbox: integers have 64 bits"},
        {"x = 1\n  y = 2", "!IndentationError: unexpected indent"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct python *python = python_new();
        expect(python, cases[i].code, cases[i].expected);
        python_free(python);
    }
}

static void what_is_not_understood_says_so_before_anything_has_run(void)
{
    static const char *const codes[] = {"print(1)\nimport math",
                                        "print(1)\nfor i in x: pass",
                                        "print(1); len(x)",
                                        "print(1)\n2 ** 3",
                                        "print(1)\n4 / 2",
                                        "print(1)\nx == 1",
                                        "print(1)\nx.y",
                                        "print(1)\n[1]",
                                        "print(1)\nx = ",
                                        "print(1)\n(1",
                                        "print(1)\n1)",
                                        "print(1)\n'open",
                                        "print(1)\n'''three'''",
                                        "print(1)\nf'{x}'",
                                        "print(1)\n'\\x41'",
                                        "print(1)\n1.5",
                                        "print(1)\n007",
                                        "print(1)\n12ab",
                                        "print(1)\nTrue",
                                        "print(1)\nNone = 1",
                                        "print(1)\nprint = 2",
                                        "print(1)\nprint(sep='')",
                                        "print(1) 2",
                                        "print(1)\n1 2",
                                        "print(1);;",
                                        "print(1, , 2)",
                                        "print(1)\n\x01",
                                        "print(1)\nx = print(2)",
                                        "print(1)\n1 +",
                                        "print(1)\nx + = 1",
                                        "print 1",
                                        "print(1)\n1 if x else 2"};
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        struct python *python = python_new();
        expect(python, codes[i], "!" HONEST);
        python_free(python);
    }
}

static void variables_stay_from_run_to_run_and_apart_from_others(void)
{
    struct python *one = python_new(), *other = python_new();
    expect(one, "x = 41; s = 'kept'", "");
    expect(one, "x += 1\nprint(s)\nx", "kept\n=42");
    expect(other, "print(x)", "!NameError: name 'x' is not defined");
    expect(one, "y = x\nnowhere", "!NameError: name 'nowhere' is not defined");
    expect(one, "y", "=42");
    python_free(one);
    python_free(other);
}

static void a_traceback_looks_like_pythons(void)
{
    struct python *python = python_new();
    struct python_result result = {0};
    TEXT_CLEANUP struct text printed = {0};
    struct python_sink sink = {take_print, &printed};
    const char code[] = "a = 1\n\n# two\nprint(b)";
    python_run(python, code, strlen(code), &sink, &result);
    CU_ASSERT_STRING_EQUAL(result.traceback.data,
                           "Traceback (most recent call last):\n  File \"<cell>\", line 4, in "
                           "<module>\nNameError: name 'b' is not defined");
    python_result_clear(&result);
    python_free(python);
}

static int stop_print(void *context, const char *text, size_t len)
{
    (void)text;
    (void)len;
    int *left = context;
    return --*left == 0 ? 7 : 0;
}

static void a_sink_that_wants_no_more_stops_the_code(void)
{
    struct python *python = python_new();
    struct python_result result = {0};
    int left = 2;
    struct python_sink sink = {stop_print, &left};
    const char code[] = "x = 1; print(1); x = 2; print(2); x = 3; print(3)";
    python_run(python, code, strlen(code), &sink, &result);
    CU_ASSERT_EQUAL(result.ending, PYTHON_STOPPED);
    CU_ASSERT_EQUAL(result.stop_code, 7);
    python_result_clear(&result);
    expect(python, "x", "=2");
    python_free(python);
}

/* `head`, `unit` so many times, `tail`. */
static char *repeated(const char *head, const char *unit, size_t count, const char *tail)
{
    struct text t = {0};
    text_puts(&t, head);
    for (size_t i = 0; i < count; i++) {
        text_puts(&t, unit);
    }
    text_puts(&t, tail);
    return t.data;
}

static void expect_repeated(const char *head, const char *unit, size_t count, const char *tail,
                            const char *expected)
{
    struct python *python = python_new();
    char *code = repeated(head, unit, count, tail);
    expect(python, code, expected);
    free(code);
    python_free(python);
}

static void everything_has_a_bound(void)
{
    expect_repeated("", "(", 60, "1", "!" HONEST);
    expect_repeated("", "(", 100000, "1", "!SyntaxError: mock sandbox: nested too deeply");
    expect_repeated("", "-", 100000, "1", "!SyntaxError: mock sandbox: nested too deeply");
    expect_repeated("x = 'abcdefgh'\n", "x = x + x\n", 13, "1", "=1");
    expect_repeated("x = 'abcdefgh'\n", "x = x + x\n", 14, "1",
                    "!MemoryError: mock sandbox: a string has at most 64 KiB");
    expect_repeated("", " ", 1 << 20, "1",
                    "!MemoryError: mock sandbox: the code is longer than 1 MiB");
    expect_repeated("1", "+1", 500000, "",
                    "!RuntimeError: mock sandbox: the code takes too many steps");
    expect_repeated("x = 'abcdefgh'\nx = x+x;x=x+x;x=x+x;x=x+x;x=x+x;x=x+x;x=x+x;x=x+x;x=x+x;x=x+x;"
                    "x=x+x;x=x+x;x=x+x\nprint(x",
                    ",x", 20, ")", "!MemoryError: mock sandbox: a print has at most 1 MiB");
}

static void variables_are_bounded_in_number_and_bytes(void)
{
    struct python *python = python_new();
    char code[32];
    for (int i = 0; i < 256; i++) {
        snprintf(code, sizeof code, "v%d = %d", i, i);
        expect(python, code, "");
    }
    expect(python, "v256 = 1",
           "!MemoryError: mock sandbox: at most 256 variables of 63 bytes a name");
    expect(python, "v255 = 'still'\nv255", "='still'");
    char *large = repeated("v0 = '", "x", 65536, "'");
    for (int i = 0; i < 15; i++) {
        large[1] = (char)('0' + i % 10);
        expect(python, large, "");
    }
    for (int i = 10; i < 15; i++) {
        snprintf(code, sizeof code, "v%d = v0", i);
        expect(python, code, "");
    }
    expect(python, "v255 = ''; v15 = v0", "");
    expect(python, "v16 = 'x'", "!MemoryError: mock sandbox: the variables hold more than 1 MiB");
    expect(python, "v15 = 'small'; v16 = 'x'; v16", "='x'");
    free(large);
    python_free(python);
}

static void a_nul_in_the_code_is_no_end(void)
{
    struct python *python = python_new();
    TEXT_CLEANUP struct text got = {0};
    run_into(python, "print(1)\0print(2)", 17, &got);
    CU_ASSERT_STRING_EQUAL(got.data, "!SyntaxError: source code cannot contain null bytes");
    python_free(python);
}

static const struct test tests[] = {
    TEST(each_code_does_what_python_does),
    TEST(what_python_would_raise_is_raised),
    TEST(what_is_not_understood_says_so_before_anything_has_run),
    TEST(variables_stay_from_run_to_run_and_apart_from_others),
    TEST(a_traceback_looks_like_pythons),
    TEST(a_sink_that_wants_no_more_stops_the_code),
    TEST(everything_has_a_bound),
    TEST(variables_are_bounded_in_number_and_bytes),
    TEST(a_nul_in_the_code_is_no_end),
};

int main(int argc, char **argv)
{
    return run_tests("mock_python", tests, COUNT_OF(tests), argc, argv);
}
