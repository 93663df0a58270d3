/* Runs a table of tests under CUnit and prints what failed. */
#include "cunit_main.h"

#include <CUnit/Basic.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#undef CU_assertImplementation

static struct {
    uintptr_t low, high;
} tests_stack;

static void find_stack(void)
{
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        (void)pthread_attr_getstack(&attributes, &low, &size); /* of attributes that are there */
        (void)pthread_attr_destroy(&attributes);
    }
    tests_stack.low = (uintptr_t)low;
    tests_stack.high = (uintptr_t)low + size;
}

static bool on_tests_stack(void)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    return tests_stack.low <= here && here < tests_stack.high;
}

CU_BOOL test_assert(CU_BOOL value, unsigned line, const char *condition, const char *file,
                    const char *function, CU_BOOL is_fatal)
{
    if (!value && is_fatal && !on_tests_stack()) {
        fflush(stdout);
        fprintf(stderr, "%s:%u: %s failed in a fiber or thread of the test '%s'\n", file, line,
                condition, CU_get_current_test() ? CU_get_current_test()->pName : "?");
        _exit(1);
    }
    return CU_assertImplementation(value, line, condition, file, function, is_fatal);
}

#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif
#endif

bool valgrind_forbids(const char *why)
{
#if defined(RUNNING_ON_VALGRIND)
    if (RUNNING_ON_VALGRIND) {
        printf("left out: %s\n", why);
        return true;
    }
#endif
    (void)why;
    return false;
}

int run_tests(const char *suite_name, const struct test *tests, size_t count, int argc, char **argv)
{
    find_stack();
    if (CU_initialize_registry() != CUE_SUCCESS) {
        return 2;
    }
    CU_pSuite suite = CU_add_suite(suite_name, NULL, NULL);
    size_t wanted = 0;
    for (size_t i = 0; suite != NULL && i < count; i++) {
        if (argc < 2 || strcmp(argv[1], tests[i].name) == 0) {
            wanted += CU_add_test(suite, tests[i].name, tests[i].run) != NULL;
        }
    }
    if (wanted == 0) {
        fprintf(stderr, "no such test\n");
        return 2;
    }
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_ErrorCode error = CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return error != CUE_SUCCESS || failed > 0;
}
