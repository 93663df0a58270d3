/* What fetching refuses to send, how it looks names up, where its transfers go, and how it counts descriptors. */
#include "fetch_fixture.h"

/* ---- requests that are not sent ---- */

static int start_code(struct result *result, const struct fetch_request *request)
{
    int code = result_start(result, request);
    CU_ASSERT_PTR_NULL(result->fetch);
    CU_ASSERT_TRUE(fetch_failed_before_sending(result->fetch));
    return code;
}

static void expect_refused(const struct fetch_request *request, const char *message)
{
    struct result result = {0};
    CU_ASSERT_EQUAL(start_code(&result, request), SG_E_INVALID);
    if (strstr(result.err.message, message) == NULL) {
        printf("\n'%s' lacks '%s'\n", result.err.message, message);
        CU_FAIL("message");
    }
    result_clear(&result);
}

static void fields_body(void)
{
    static const struct {
        struct fetch_field field;
        const char *message;
    } bad[] = {
        {{STR("X"), STR("a\r\nY: b")}, "the header 'X' of the request has control characters"},
        {{STR("X"), STR("a\nb")}, "control characters"},
        {{STR("X"), STR("a\0b")}, "control characters"},
        {{STR("X"), STR("a\r")}, "control characters"},
        {{STR("X Y"), STR("a")}, "name with characters"},
        {{STR("X:"), STR("a")}, "name with characters"},
        {{STR("X\r\nY"), STR("a")}, "name with characters"},
        {{STR(""), STR("a")}, "name with characters"},
        {{STR("Content-Length"), STR("5")}, "is not the caller's to set"},
        {{STR("transfer-encoding"), STR("chunked")}, "is not the caller's to set"},
        {{STR("Connection"), STR("close")}, "is not the caller's to set"},
        {{STR("Expect"), STR("100-continue")}, "is not the caller's to set"},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct fetch_request request = {.url = "http://127.0.0.1:1/",
                                        .deadline = DEADLINE_NONE,
                                        .fields = &bad[i].field,
                                        .fields_count = 1};
        expect_refused(&request, bad[i].message);
    }
    static struct fetch_field many[LIMIT_HEADER_COUNT + 1];
    for (size_t i = 0; i < COUNT_OF(many); i++) {
        many[i] = (struct fetch_field){STR("X"), STR("a")};
    }
    struct fetch_request request = {.url = "http://127.0.0.1:1/",
                                    .deadline = DEADLINE_NONE,
                                    .fields = many,
                                    .fields_count = COUNT_OF(many)};
    expect_refused(&request, "the request has more than 128 headers");
}

static void headers_that_would_break_a_request_are_refused(void)
{
    run((const struct step[]){END}, fields_body);
}

static void methods_body(void)
{
    static const char *const bad[] = {"", "GET /", "GET\r\n", "G\tET", "CONNECT"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct fetch_request request = {
            .method = bad[i], .url = "http://127.0.0.1:1/", .deadline = DEADLINE_NONE};
        expect_refused(&request, "method");
    }
}

static void methods_that_are_none_are_refused(void)
{
    run((const struct step[]){END}, methods_body);
}

static void bad_urls_are_refused_without_being_repeated(void)
{
    static const struct {
        const char *url, *message;
    } bad[] = {
        {"", "does not start with"},
        {"ftp://secret/", "does not start with"},
        {"file:///secret", "does not start with"},
        {"//secret/", "does not start with"},
        {"http://secret@host/", "has user info"},
        {"http://user:secret@host/", "has user info"},
        {"http:///secret", "has no host"},
        {"http://:80/secret", "has no host"},
        {"http://ho st/secret", "has spaces"},
        {"http://host/secret\r\nX: y", "has spaces"},
        {"http://host/s\xC3\xA9"
         "cret",
         "has spaces"},
        {"http://host\\secret/", "has spaces"},
        {"http://host%2fsecret/", "characters that may not be there"},
        {"http://ho'st/secret", "characters that may not be there"},
        {"http://host:0/secret", "between 1 and 65535"},
        {"http://host:/secret", "between 1 and 65535"},
        {"http://host:65536/secret", "between 1 and 65535"},
        {"http://host:99999999999/secret", "not a number"},
        {"http://host:8x/secret", "not a number"},
        {"http://[::1/secret", "bracket that is not closed"},
        {"http://[::1]secret/", "between its host and port"},
        {"http://[host]/secret", "no IPv6 address"},
        {"http://[beef]/secret", "no IPv6 address"},
        {"http://[127.0.0.1]/secret", "no IPv6 address"},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct fetch_address address = {.port = 7};
        struct sg_error err = {0};
        CU_ASSERT_EQUAL(url_parse(bad[i].url, &address, &err), SG_E_INVALID);
        if (strstr(err.message, bad[i].message) == NULL || strstr(err.message, "secret") != NULL) {
            printf("\n%s: '%s'\n", bad[i].url, err.message);
            CU_FAIL("message");
        }
        CU_ASSERT_EQUAL(address.port, 7);
    }
}

static void urls_name_a_host_and_a_port(void)
{
    static const struct {
        const char *url, *wanted;
        bool is_literal;
    } good[] = {
        {"http://Host.Example?x", "host.example:80", false},
        {"HTTPS://a-b_c.test:8443/p@q:1?u@v", "a-b_c.test:8443", false},
        {"https://10.0.0.1", "10.0.0.1:443", true},
        {"http://[::1]:8080/x", "[::1]:8080", true},
        {"http://[FE80::1]#x", "[fe80::1]:80", true},
    };
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        BUF_CLEANUP struct buf text = {0};
        struct fetch_address address;
        struct sg_error err = {0};
        CU_ASSERT_EQUAL_FATAL(url_parse(good[i].url, &address, &err), 0);
        address_write(&address, &text);
        CU_ASSERT_STRING_EQUAL(text.data, good[i].wanted);
        CU_ASSERT_EQUAL(address.is_literal, good[i].is_literal);
    }
}

/* ---- names ---- */

static _Atomic int lookups;
static sem_t lookup_may_end;

static const char *lookup_loopback(const char *name, struct buf *ret)
{
    lookups++;
    if (strcmp(name, "slow.test") == 0) {
        (void)sem_wait(&lookup_may_end);
    }
    if (strcmp(name, "none.test") == 0) {
        return "Name or service not known";
    }
    buf_puts(ret, "127.0.0.1");
    return NULL;
}

static void names_begin(void)
{
    lookups = 0;
    (void)sem_init(&lookup_may_end, 0, 0);
    home->resolver.lookup = lookup_loopback;
}

static int fetched;

static void fetch_slow_name(void *arg)
{
    struct result result = {0};
    struct fetch_request request = request_to(&result, "slow.test", arg);
    CU_ASSERT_EQUAL(result_fetch(&result, &request), 0);
    CU_ASSERT_TRUE(str_is(buf_str(&result.body), "hello"));
    result_clear(&result);
    fetched++;
}

static void single_flight_body(void)
{
    struct sg_error err = {0};
    names_begin();
    fetched = 0;
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(fiber_start(loop, "fetch", fetch_slow_name, (void *)"/", NULL, &err), 0);
    }
    while (lookups == 0) {
        fiber_yield();
    }
    (void)sem_post(&lookup_may_end);
    while (fetched < 3) {
        fiber_yield();
    }
    fetch_slow_name((void *)"/again"); /* it is remembered */
    CU_ASSERT_EQUAL(lookups, 1);
}

static void concurrent_fetches_share_one_look_up(void)
{
    static const char answer[] =
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
    run((const struct step[]){ACCEPT, READ(0), SEND(answer), ACCEPT, READ(0), SEND(answer), ACCEPT,
                              READ(0), SEND(answer), ACCEPT, READ(0), SEND(answer), END},
        single_flight_body);
}

static void unknown_body(void)
{
    names_begin();
    for (int i = 0; i < 2; i++) { /* the second within the second that a failure is remembered */
        struct result result = {0};
        struct fetch_request request = request_to(&result, "none.test", "/");
        CU_ASSERT_EQUAL(start_code(&result, &request), SG_E_UNAVAILABLE);
        CU_ASSERT_STRING_EQUAL(result.err.message,
                               "cannot resolve 'none.test': Name or service not known");
        result_clear(&result);
    }
    CU_ASSERT_EQUAL(lookups, 1);
}

static void an_unknown_name_is_unavailable(void)
{
    run((const struct step[]){END}, unknown_body);
}

static struct fiber *waiting;
static int64_t waiting_ms; /* for a connection */
static int waiting_code;
static char waiting_message[ERROR_MESSAGE_BYTES];

static void fetch_slowly(void *arg)
{
    struct result result = {0};
    struct fetch_request request = request_to(&result, "slow.test", "/");
    (void)arg;
    request.connect_ms = waiting_ms;
    waiting_code = start_code(&result, &request);
    (void)snprintf(waiting_message, sizeof waiting_message, "%s", result.err.message);
    waiting = NULL;
    result_clear(&result);
}

static void leaving_body(void)
{
    struct sg_error err = {0};
    names_begin();
    waiting_ms = 60000; /* so that only leaving ends it */
    CU_ASSERT_EQUAL(fiber_start(loop, "fetch", fetch_slowly, NULL, &waiting, &err), 0);
    while (lookups == 0) {
        fiber_yield();
    }
    fiber_cancel(waiting);
    while (waiting != NULL) {
        fiber_yield();
    }
    CU_ASSERT_EQUAL(waiting_code, SG_E_CANCELLED);
    waiting_ms = 30;
    fetch_slowly(NULL); /* waits for the same look-up, and not for ever */
    CU_ASSERT_EQUAL(waiting_code, SG_E_TIMEOUT);
    char wanted[128];
    (void)snprintf(wanted, sizeof wanted,
                   "no address for slow.test:%u within 30 ms (connect limit)", upstream.port);
    CU_ASSERT_STRING_EQUAL(waiting_message, wanted);
    (void)sem_post(&lookup_may_end);
    CU_ASSERT_EQUAL(lookups, 1);
}

static void whoever_waits_for_a_name_can_leave(void)
{
    run((const struct step[]){END}, leaving_body);
}

static void many_names_body(void)
{
    names_begin();
    for (int i = 0; i < 1100; i++) {
        BUF_CLEANUP struct buf addresses = {0};
        struct sg_error err = {0};
        char name[32];
        (void)snprintf(name, sizeof name, "host%d.test", i);
        CU_ASSERT_EQUAL(resolver_find(&home->resolver, name, DEADLINE_NONE, &addresses, &err), 0);
        CU_ASSERT_STRING_EQUAL(addresses.data, "127.0.0.1");
    }
    CU_ASSERT_EQUAL(home->resolver.count, 1024);
}

static void names_that_are_remembered_are_bounded(void)
{
    run((const struct step[]){END}, many_names_body);
}

static void system_body(void)
{
    BUF_CLEANUP struct buf addresses = {0};
    struct sg_error err = {0};
    static const char *const here[] = {"localhost", "api.e2b.localhost"};
    for (size_t i = 0; i < COUNT_OF(here); i++) {
        CU_ASSERT_EQUAL(resolver_find(&home->resolver, here[i], DEADLINE_NONE, &addresses, &err),
                        0);
        CU_ASSERT_STRING_EQUAL(addresses.data, "127.0.0.1,[::1]");
        buf_reset(&addresses);
    }
    CU_ASSERT_EQUAL(resolver_find(&home->resolver, "notlocalhost", DEADLINE_NONE, &addresses, &err),
                    SG_E_UNAVAILABLE); /* a name of its own */
    CU_ASSERT_EQUAL(
        resolver_find(&home->resolver, "no.such.name.invalid", DEADLINE_NONE, &addresses, &err),
        SG_E_UNAVAILABLE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "cannot resolve 'no.such.name.invalid': "));
}

static void the_system_resolves_names(void)
{
    run((const struct step[]){END}, system_body);
}

/* ---- where transfers go ---- */

static void choosing_body(void)
{
    struct fetch_address one = {.host = "one.test", .port = 80};
    struct fetch_multi *first = multi_choose(home, &one, 0);
    CU_ASSERT_PTR_EQUAL(multi_choose(home, &one, 0), first);
    first->running = 31;
    CU_ASSERT_PTR_EQUAL(multi_choose(home, &one, 0), first);
    first->running = 32;
    CU_ASSERT_EQUAL(admission_used(), 0);
    struct fetch_multi *second = multi_choose(home, &one, 0);
    CU_ASSERT_PTR_NOT_EQUAL(second, first);
    for (size_t i = 0; i < FETCH_MULTIS; i++) {
        home->multis[i].running = 100;
    }
    home->multis[5].running = 99;
    CU_ASSERT_PTR_EQUAL(multi_choose(home, &one, 0), &home->multis[5]);
    home->multis[7].sockets = 101; /* one to spare */
    CU_ASSERT_PTR_EQUAL(multi_choose(home, &one, 0), &home->multis[7]);
    home->multis[7].sockets = 0;
    for (size_t i = 0; i < FETCH_MULTIS; i++) {
        home->multis[i].running = 0;
    }
    CU_ASSERT_EQUAL(admission_used(), 2 * (FETCH_MULTIS - FETCH_MULTIS_FIRST));
    multis_close_idle(home); /* those that were made for many go */
    CU_ASSERT_EQUAL(admission_used(), 0);
}

static void few_transfers_share_a_multi_and_many_spread(void)
{
    run((const struct step[]){END}, choosing_body);
}

/* ---- descriptors ---- */

static void no_room_body(void)
{
    struct result result = {0};
    size_t room = admission_limit() - admission_used();
    CU_ASSERT_TRUE(admission_take(room));
    struct fetch_request request = request_of(&result, "/");
    CU_ASSERT_EQUAL(result_fetch(&result, &request), SG_E_LIMIT);
    CU_ASSERT_EQUAL(result.err.status, 503);
    expect_message(&result, "cannot connect to @: no descriptor is left");
    CU_ASSERT_TRUE(fetch_failed_before_sending(result.fetch));
    result_clear(&result);
    admission_give(room);
}

static void without_a_descriptor_nothing_is_opened(void)
{
    run((const struct step[]){END}, no_room_body);
}

static void near_body(void)
{
    struct result result = {0};
    struct fetch_request request = request_of(&result, "/");
    CU_ASSERT_EQUAL(result_fetch(&result, &request), 0);
    result_clear(&result);
    CU_ASSERT_EQUAL(admission_used(), 1); /* kept */
    size_t most = admission_limit() - admission_used() - 2;
    CU_ASSERT_TRUE(admission_take(most));
    request = request_of(&result, "/");
    CU_ASSERT_EQUAL(result_fetch(&result, &request), 0);
    result_clear(&result);
    CU_ASSERT_EQUAL(admission_used(), most); /* nothing is kept */
    admission_give(most);
}

static void near_the_limit_no_connection_is_kept(void)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    run((const struct step[]){ACCEPT, READ(0), SEND(answer), UNTIL_CLOSED, ACCEPT, READ(0),
                              SEND(answer), UNTIL_CLOSED, END},
        near_body);
}

static void counting_body(void)
{
    struct result result = {0};
    struct fetch_request request = request_of(&result, "/");
    CU_ASSERT_EQUAL(result_start(&result, &request), 0);
    CU_ASSERT_EQUAL(admission_used(), 1);
    result_clear(&result); /* in the middle of it, perhaps while it still connects */
    CU_ASSERT_EQUAL(admission_used(), 0);
    request = request_of(&result, "/");
    CU_ASSERT_EQUAL(result_fetch(&result, &request), SG_E_UNAVAILABLE);
    result_clear(&result);
    CU_ASSERT_EQUAL(admission_used(), 0);
}

static void each_socket_is_counted_until_it_is_closed(void)
{
    run((const struct step[]){ACCEPT, UNTIL_CLOSED, ACCEPT, READ(0),
                              SEND("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx"), CLOSE, END},
        counting_body);
}

static const struct test tests[] = {
    TEST(headers_that_would_break_a_request_are_refused),
    TEST(methods_that_are_none_are_refused),
    TEST(bad_urls_are_refused_without_being_repeated),
    TEST(urls_name_a_host_and_a_port),
    TEST(concurrent_fetches_share_one_look_up),
    TEST(an_unknown_name_is_unavailable),
    TEST(whoever_waits_for_a_name_can_leave),
    TEST(names_that_are_remembered_are_bounded),
    TEST(the_system_resolves_names),
    TEST(few_transfers_share_a_multi_and_many_spread),
    TEST(without_a_descriptor_nothing_is_opened),
    TEST(near_the_limit_no_connection_is_kept),
    TEST(each_socket_is_counted_until_it_is_closed),
};

int main(int argc, char **argv)
{
    struct sg_error err = {0};
    (void)admission_init(64);
    CHECK(fetch_global_init(&err) == 0);
    int code = run_tests("fetch_names", tests, COUNT_OF(tests), argc, argv);
    fetch_global_clear();
    return code;
}
