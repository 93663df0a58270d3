/* What the tests of how runs and boxes end share. */
#ifndef TESTS_PLUGIN_LOCAL_ENDS_H
#define TESTS_PLUGIN_LOCAL_ENDS_H

#include "fixture.h"

#define MIB_BYTES ((uint64_t)1 << 20)

/* How the run must have failed. */
#define expect_end(expected_code, expected_message)     \
    do {                                                \
        CU_ASSERT_EQUAL(o.code, expected_code);         \
        EXPECT_TEXT(o.error.message, expected_message); \
    } while (0)

__attribute__((unused)) static void expect_alive(void)
{
    EXPECT_RUN("print(6 * 7)", "[out]42\n");
}

__attribute__((unused)) static void expect_gone(void)
{
    exec("print(6 * 7)");
    CU_ASSERT_EQUAL(o.code, SG_E_GONE_BEFORE);
    EXPECT_TEXT(o.error.message, "local (box): the container no longer exists");
    EXPECT_TEXT(o.all.data, "");
}

/* A fresh box in place of one that is gone. */
__attribute__((unused)) static void box_again(void)
{
    CU_ASSERT_EQUAL(host_create(600000, box, &e), 0);
}

__attribute__((unused)) static const struct host_options small = {.memory = 128 * MIB_BYTES,
                                                                  .disk = 32 * MIB_BYTES};

#endif
