/* The frame of every CUnit program here: a table of tests named as sentences, run with a summary; exit 1 if one failed.
 *
 *   static void a_cut_member_leaves_one_comma(void) { … CU_ASSERT_… }
 *   static const struct test tests[] = {TEST(a_cut_member_leaves_one_comma), …};
 *   int main(int argc, char **argv) { return run_tests("json", tests, COUNT_OF(tests), argc, argv); }
 *
 * `test_json NAME` runs one test.
 *
 * A fatal assertion that fails on another stack than main()'s, which is a fiber's or a thread's, ends the program: CUnit
 * would jump back to the test from there, and the loop would wait for a fiber that never ends. */
#ifndef TESTS_SUPPORT_CUNIT_MAIN_H
#define TESTS_SUPPORT_CUNIT_MAIN_H

#include <CUnit/CUnit.h>
#include <stdbool.h>
#include <stddef.h>

/* Stands before CUnit's own, in all of its macros. */
CU_BOOL test_assert(CU_BOOL value, unsigned line, const char *condition, const char *file,
                    const char *function, CU_BOOL is_fatal);
#define CU_assertImplementation test_assert

struct test {
    const char *name;
    void (*run)(void);
};
#define TEST(function)      \
    {                       \
#function, function \
    }

/* Whether Valgrind runs this program; if so it prints why the test that asks is left out there, which scripts/valgrind.sh
 * passes on. */
bool valgrind_forbids(const char *why);

int run_tests(const char *suite, const struct test *tests, size_t count, int argc, char **argv);

#endif
