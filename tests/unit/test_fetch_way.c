/* Ways to reach a server: which are the same, what a proxy's URL comes to, and that no connection is used by another way than it
 * was made by, whatever libcurl thinks of it. */
#include "fetch_fixture.h"

#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define EXCHANGE READ(0), SEND(ANSWER)

/* ---- what makes a way ---- */

static const struct fetch_way *way_of(struct arena *arena, const struct fetch_way_options *options)
{
    const struct fetch_way *way = NULL;
    struct sg_error err = {0};
    CU_ASSERT_EQUAL_FATAL(fetch_way_new(options, arena, &way, &err), 0);
    return way;
}

static void ways_are_the_same_where_all_of_their_contents_are(void)
{
    struct arena *arena = arena_new(0);
    const struct fetch_way_options all[] = {
        {.ca = STR("a")},
        {.ca = STR("b")},
        {.certificate = STR("a"), .key = STR("b")},
        {.certificate = STR("a"), .key = STR("c")},
        {.ca = STR("a"), .certificate = STR("a"), .key = STR("b")},
        {.proxy = "http://p:1"},
        {.proxy = "http://p:2"},
        {.proxy = "http://a:b@p:1"},
        {.proxy = "http://a:c@p:1"},
        {.proxy = "http://a:b@p:1", .ca = STR("a")},
    };
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        CU_ASSERT_NOT_EQUAL(way_of(arena, &all[i])->id, 0);
        for (size_t k = 0; k < COUNT_OF(all); k++) {
            CU_ASSERT_EQUAL(way_of(arena, &all[i])->id == way_of(arena, &all[k])->id, i == k);
        }
    }
    arena_free(arena);
}

static void a_proxy_is_told_to_libcurl_without_who_asks(void)
{
    static const struct {
        const char *url, *proxy, *user, *password, *host;
        uint16_t port;
        bool is_literal;
    } rows[] = {
        {"http://Proxy.Test:3128/", "http://proxy.test:3128", NULL, NULL, "proxy.test", 3128,
         false},
        {"https://u:@10.0.0.1:443", "https://10.0.0.1:443", "u", "", "10.0.0.1", 443, true},
        {"socks5h://a%40b:c@d:%3a%C3%a9@[::1]:1080", "socks5h://[::1]:1080", "a@b", "c@d::\xC3\xA9",
         "::1", 1080, true},
    };
    struct arena *arena = arena_new(0);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct fetch_way_options options = {.proxy = rows[i].url};
        const struct fetch_way *way = way_of(arena, &options);
        CU_ASSERT_STRING_EQUAL(way->proxy, rows[i].proxy);
        CU_ASSERT_STRING_EQUAL(way->proxy_address.host, rows[i].host);
        CU_ASSERT_EQUAL(way->proxy_address.port, rows[i].port);
        CU_ASSERT_EQUAL(way->proxy_address.is_literal, rows[i].is_literal);
        CU_ASSERT_EQUAL(way->proxy_user == NULL, rows[i].user == NULL);
        if (rows[i].user != NULL) {
            CU_ASSERT_STRING_EQUAL(way->proxy_user, rows[i].user);
            CU_ASSERT_STRING_EQUAL(way->proxy_password, rows[i].password);
        }
    }
    arena_free(arena);
}

/* ---- connections ---- */

/* So that all of them are carried by one multi. */
static const struct fetch_way first_way = {.id = FETCH_MULTIS_FIRST},
                              other_way = {.id = 2 * FETCH_MULTIS_FIRST},
                              first_again = {.id = FETCH_MULTIS_FIRST};

static void fetch_by(const struct fetch_way *way, size_t accepted)
{
    struct result result = {0};
    struct fetch_request request = request_of(&result, "/");
    request.way = way;
    CU_ASSERT_EQUAL(result_fetch(&result, &request), 0);
    CU_ASSERT_EQUAL(upstream.accepted, accepted);
    result_clear(&result);
}

static void separate_body(void)
{
    fetch_by(&first_way, 1);
    fetch_by(&first_again, 1);
    fetch_by(&other_way, 2);
    fetch_by(&other_way, 2);
    fetch_by(NULL, 3);
    fetch_by(NULL, 3);
    fetch_by(&first_way, 4);
}

static void a_connection_is_used_only_by_the_way_that_made_it(void)
{
    run((const struct step[]){ACCEPT, EXCHANGE, EXCHANGE, ACCEPT, EXCHANGE, EXCHANGE, ACCEPT,
                              EXCHANGE, EXCHANGE, ACCEPT, EXCHANGE, END},
        separate_body);
}

/* ---- what a failure of the tunnel says ---- */

static void refused_body(void)
{
    struct result result = {0};
    struct arena *arena = arena_new(0);
    char url[64];
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u", upstream.port);
    const struct fetch_way_options options = {.proxy = url};
    struct fetch_request request = {
        .url = "http://h.invalid:7/", .deadline = DEADLINE_NONE, .way = way_of(arena, &options)};
    CU_ASSERT_EQUAL(result_fetch(&result, &request), SG_E_UNAVAILABLE);
    CU_ASSERT_TRUE(str_starts(str_of(result.err.message),
                              STR("no tunnel to h.invalid:7 (through the proxy 127.0.0.1:")));
    CU_ASSERT_TRUE(fetch_failed_before_sending(result.fetch));
    CU_ASSERT_EQUAL(fetch_stage(result.fetch), FETCH_CONNECTING);
    CU_ASSERT_TRUE(str_starts(buf_str(&upstream.record), STR("CONNECT h.invalid:7 HTTP/1.1\r\n")));
    CU_ASSERT_PTR_NULL(strstr(upstream.record.data, "GET"));
    result_clear(&result);
    arena_free(arena);
}

static void where_there_is_no_tunnel_nothing_was_sent(void)
{
    run((const struct step[]){ACCEPT, READ(0),
                              SEND("HTTP/1.1 503 No\r\nContent-Length: 4\r\n\r\nbusy"), END},
        refused_body);
}

static const struct test tests[] = {
    TEST(ways_are_the_same_where_all_of_their_contents_are),
    TEST(a_proxy_is_told_to_libcurl_without_who_asks),
    TEST(a_connection_is_used_only_by_the_way_that_made_it),
    TEST(where_there_is_no_tunnel_nothing_was_sent),
};

int main(int argc, char **argv)
{
    struct sg_error err = {0};
    (void)admission_init(64);
    CHECK(fetch_global_init(&err) == 0);
    int code = run_tests("fetch_way", tests, COUNT_OF(tests), argc, argv);
    fetch_global_clear();
    return code;
}
