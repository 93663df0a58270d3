/* What the tests of files and commands share: a sandbox of a chosen version of envd, and its URLs. */
#ifndef TESTS_E2B_ENVD_FIXTURE_H
#define TESTS_E2B_ENVD_FIXTURE_H

#include "life_fixture.h"

#define ENVD "https://49983-" ID ".e2b.app"
#define OF_VERSION(version)                                   \
    "{\"sandboxID\": \"" ID "\", \"envdVersion\": \"" version \
    "\", \"envdAccessToken\": \"" ENVD_TOKEN "\", \"trafficAccessToken\": \"" TRAFFIC_TOKEN "\"}"
#define GONE "{\"sandboxId\":\"" ID "\",\"message\":\"The sandbox was not found\",\"code\":502}"
#define CLOSED                                                                               \
    "{\"sandboxId\":\"" ID "\",\"message\":\"The sandbox is running but port is not open\"," \
    "\"port\":49983,\"code\":502}"

/* An instance with a sandbox in use, and a new call. */
static inline void begin(struct fixture *f, const char *answer)
{
    fixture_init(f);
    fixture_open(f);
    make(f, answer);
}

static inline void expect_header(struct fixture *f, size_t request, const char *name,
                                 const char *value)
{
    const char *found = request_header(f->call, request, name);
    if (value == NULL) {
        CU_ASSERT_PTR_NULL(found);
    } else {
        CU_ASSERT_PTR_NOT_NULL_FATAL(found);
        CU_ASSERT_STRING_EQUAL(found, value);
    }
}

static inline void expect_text(struct fixture *f, enum sg_out kind, const char *text)
{
    CU_ASSERT_STRING_EQUAL(call_text(f->call, kind), text);
    if (strcmp(call_text(f->call, kind), text) != 0) {
        printf("\n got: %s\nwant: %s\n", call_text(f->call, kind), text);
    }
}

/* No id, no token, no host of the sandbox: a message may reach the model. */
static inline void expect_nothing_secret(struct fixture *f)
{
    CU_ASSERT_PTR_NULL(strstr(f->call->error.message, ID));
    CU_ASSERT_PTR_NULL(strstr(f->call->error.message, ENVD_TOKEN));
    CU_ASSERT_PTR_NULL(strstr(f->call->error.message, TRAFFIC_TOKEN));
}

#endif
