/* Fetching from an upstream that takes too long: each limit of time, and what is said of it. */
#include "fetch_fixture.h"

#define OK "HTTP/1.1 200 OK\r\n"

static void first_byte_body(void)
{
    struct result result = {0};
    struct fetch_request request = request_of(&result, "/");
    request.first_byte_ms = 30;
    CU_ASSERT_EQUAL(result_fetch(&result, &request), SG_E_TIMEOUT);
    expect_message(&result, "no answer from @ within 30 ms (first byte limit)");
    result_clear(&result);
    CU_ASSERT_EQUAL(sem_wait(&upstream.closed), 0); /* the transfer has ended with it */
}

static void an_upstream_that_does_not_answer_is_given_up(void)
{
    run((const struct step[]){ACCEPT, READ(0), SEND("HTTP/1.1 200"), UNTIL_CLOSED, END},
        first_byte_body);
}

static void silence_body(void)
{
    struct result result = {0};
    struct fetch_request request = request_of(&result, "/");
    request.silence_ms = 30;
    CU_ASSERT_EQUAL(result_fetch(&result, &request), SG_E_TIMEOUT);
    CU_ASSERT_TRUE(str_is(buf_str(&result.body), "hel"));
    expect_message(&result, "nothing more from @ within 30 ms (silence limit)");
    result_clear(&result);
}

static void an_upstream_that_falls_silent_is_given_up(void)
{
    run((const struct step[]){ACCEPT, READ(0), SEND(OK "Content-Length: 5\r\n\r\nhel"),
                              UNTIL_CLOSED, END},
        silence_body);
}

static void deadline_body(void)
{
    struct result result = {0};
    struct fetch_request request = request_of(&result, "/");
    request.deadline = deadline_in(30);
    CU_ASSERT_EQUAL(result_fetch(&result, &request), SG_E_TIMEOUT);
    expect_message(&result, "the exchange with @ was not over by its deadline");
    result_clear(&result);
    fiber_set_deadline(fiber_self(), deadline_in(30)); /* the caller's own counts too */
    request = request_of(&result, "/");
    CU_ASSERT_EQUAL(result_fetch(&result, &request), SG_E_TIMEOUT);
    expect_message(&result, "the exchange with @ was not over by its deadline");
    fiber_set_deadline(fiber_self(), DEADLINE_NONE);
    result_clear(&result);
}

static void an_exchange_ends_by_its_deadline(void)
{
    run((const struct step[]){ACCEPT, READ(0), UNTIL_CLOSED, ACCEPT, READ(0), UNTIL_CLOSED, END},
        deadline_body);
}

static void connect_body(void)
{
    struct result result = {0};
    uint16_t port, before = upstream.port;
    int fd = listen_here(0, &port), fillers[2];
    for (size_t i = 0; i < COUNT_OF(fillers); i++) { /* its queue is full then */
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons(port),
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(fillers[i], (void *)&address, sizeof address);
    }
    upstream.port = port;
    struct fetch_request request = request_of(&result, "/");
    request.connect_ms = 50;
    CU_ASSERT_EQUAL(result_fetch(&result, &request), SG_E_TIMEOUT);
    expect_message(&result, "no connection to @ within 50 ms (connect limit)");
    CU_ASSERT_TRUE(fetch_failed_before_sending(result.fetch));
    result_clear(&result);
    upstream.port = before;
    (void)close(fd), (void)close(fillers[0]), (void)close(fillers[1]);
}

static void a_host_that_does_not_take_the_connection_is_given_up(void)
{
    run((const struct step[]){END}, connect_body);
}

static const struct test tests[] = {
    TEST(an_upstream_that_does_not_answer_is_given_up),
    TEST(an_upstream_that_falls_silent_is_given_up),
    TEST(an_exchange_ends_by_its_deadline),
    TEST(a_host_that_does_not_take_the_connection_is_given_up),
};

int main(int argc, char **argv)
{
    struct sg_error err = {0};
    (void)admission_init(64);
    CHECK(fetch_global_init(&err) == 0);
    int code = run_tests("fetch_times", tests, COUNT_OF(tests), argc, argv);
    fetch_global_clear();
    return code;
}
