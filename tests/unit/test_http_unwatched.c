/* When the kernel gives no more watches for descriptors (unwatched_fixture.h), a connection that would have to be waited for is
 * closed, and the log says why; once there are some again the next one is served. */
#include "http_fixture.h"
#include "unwatched_fixture.h"

#include <sched.h>

#define ASK "GET /empty HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

static void expect_served(void)
{
    BUF_CLEANUP struct buf got = {0};
    client_once(ASK, &got);
    CU_ASSERT_TRUE(has(&got, "HTTP/1.1 204 No Content\r\n"));
}

static void a_connection_that_cannot_be_watched_is_closed_and_told(void)
{
    BUF_CLEANUP struct buf got = {0};
    log_catch();
    fixture_begin(1, NULL);
    expect_served(); /* so that it listens */
    refuses = true;
    int fd = client_connect();
    CU_ASSERT_TRUE(client_read(fd, NULL, &got));
    CU_ASSERT_EQUAL(got.len, 0);
    (void)close(fd);
    refuses = false;
    CU_ASSERT_TRUE(refused > 0);
    CU_ASSERT_TRUE(log_has("level=error event=connection_not_watched client=127.0.0.1"));
    CU_ASSERT_TRUE(log_has("reason=\"the user's watches of epoll are used up: raise "
                           "fs.epoll.max_user_watches, or run the gateway under a user of its "
                           "own\""));
    expect_served();
    fixture_end();
}

static void a_listener_that_cannot_be_watched_is_tried_again(void)
{
    log_catch();
    refused = 0;
    refuses_listeners = true;
    fixture_begin(1, NULL);
    while (refused < 2) {
        (void)sched_yield();
    }
    refuses_listeners = false;
    expect_served();
    CU_ASSERT_TRUE(log_has("level=warn event=accept_failed reason=\"No space left on device\""));
    fixture_end();
}

static const struct test tests[] = {
    TEST(a_connection_that_cannot_be_watched_is_closed_and_told),
    TEST(a_listener_that_cannot_be_watched_is_tried_again),
};

int main(int argc, char **argv)
{
    return run_tests("http_unwatched", tests, COUNT_OF(tests), argc, argv);
}
