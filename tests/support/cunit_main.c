/* Runs a table of tests under CUnit and prints what failed. */
#include "cunit_main.h"

#include <CUnit/Basic.h>
#include <stdio.h>
#include <string.h>

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
