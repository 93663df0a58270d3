/* When the kernel gives no more watches for descriptors (unwatched_fixture.h), fetches go on, by looking, and waits say
 * that they cannot be. */
#include "fetch_fixture.h"
#include "unwatched_fixture.h"

#include <sys/socket.h>

static void fetch_body(void)
{
    struct result result = {0};
    struct fetch_request request = request_of(&result, "/");
    refuses = true;
    refused = 0;
    int code = result_fetch(&result, &request);
    refuses = false;
    CU_ASSERT_EQUAL(code, 0);
    CU_ASSERT_EQUAL(result.reply.status, 200);
    CU_ASSERT_TRUE(str_is(buf_str(&result.body), "all the same"));
    CU_ASSERT_TRUE(refused > 0);
    result_clear(&result);
    /* The same multi serves on. */
    struct result next = {0};
    request = request_of(&next, "/next");
    CU_ASSERT_EQUAL(result_fetch(&next, &request), 0);
    CU_ASSERT_EQUAL(next.reply.status, 204);
    result_clear(&next);
}

static void fetching_goes_on_without_watches(void)
{
    run((const struct step[]){ACCEPT, READ(0),
                              SEND("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nall the "),
                              SEND("same"), READ(0), SEND("HTTP/1.1 204 No Content\r\n\r\n"), END},
        fetch_body);
}

static void wait_body(void)
{
    int pair[2], ready = 0;
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    refuses = true;
    CU_ASSERT_EQUAL(fiber_wait_fd(pair[0], SG_READ, DEADLINE_NONE, &ready), SG_E_LIMIT);
    refuses = false;
    CU_ASSERT_EQUAL(fiber_wait_fd(pair[0], SG_WRITE, DEADLINE_NONE, &ready), 0);
    CU_ASSERT_EQUAL(ready, SG_WRITE);
    close(pair[0]);
    close(pair[1]);
}

static void a_wait_that_cannot_be_is_over_a_limit(void)
{
    run((const struct step[]){END}, wait_body);
}

static const struct test tests[] = {
    TEST(fetching_goes_on_without_watches),
    TEST(a_wait_that_cannot_be_is_over_a_limit),
};

int main(int argc, char **argv)
{
    struct sg_error err = {0};
    CHECK(fetch_global_init(&err) == 0);
    int code = run_tests("fetch_unwatched", tests, COUNT_OF(tests), argc, argv);
    fetch_global_clear();
    return code;
}
