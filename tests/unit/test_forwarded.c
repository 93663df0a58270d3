/* core/http/forwarded: who the client is behind trusted proxies. What a client makes up must never count, in whatever form it
 * stands; proxies' own addresses are passed over from the end; what is no address ends the reading. */
#include "base/check.h"
#include "cunit_main.h"
#include "http/forwarded.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/un.h>

static struct http_network networks[8];
static struct http_proxies proxies;

static void trust(enum http_forwarded_by header, const char *const *texts)
{
    proxies = (struct http_proxies){.networks = networks, .header = header};
    for (; *texts != NULL; texts++) {
        CU_ASSERT_PTR_NULL_FATAL(http_network_read(*texts, &networks[proxies.count++]));
    }
}
#define TRUST(header, ...) trust(header, (const char *const[]){__VA_ARGS__, NULL})

static struct sockaddr_storage peer_of(const char *text)
{
    struct sockaddr_storage peer = {0};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(40000)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(40000)};
    if (strcmp(text, "unix") == 0) {
        peer.ss_family = AF_UNIX;
    } else if (inet_pton(AF_INET, text, &four.sin_addr) == 1) {
        memcpy(&peer, &four, sizeof four);
    } else {
        CU_ASSERT_EQUAL_FATAL(inet_pton(AF_INET6, text, &six.sin6_addr), 1);
        memcpy(&peer, &six, sizeof six);
    }
    return peer;
}

/* "-": nothing is said, and the peer is the client. */
static void expect(const char *peer, const char *fields, const char *expected)
{
    char text[4096], found[HTTP_ADDRESS_BYTES] = "-";
    struct http_head head;
    struct sg_error err = {0};
    struct sockaddr_storage from = peer_of(peer);
    (void)snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", fields);
    CU_ASSERT_EQUAL_FATAL(http_head_parse(str_of(text), &head, &err), 0);
    bool is_said = http_forwarded_client(&proxies, &head, &from, found);
    CU_ASSERT_EQUAL(is_said, strcmp(expected, "-") != 0);
    if (strcmp(found, expected) != 0) {
        fprintf(stderr, "\n'%s' and not '%s' of %s\n", found, expected, fields);
        CU_FAIL("another client");
    }
}

#define XFF "X-Forwarded-For: "

static void only_a_trusted_peer_is_believed(void)
{
    TRUST(HTTP_X_FORWARDED_FOR, "10.0.0.0/8", "2001:db8::/32");
    expect("10.255.0.1", XFF "192.0.2.1\r\n", "192.0.2.1");
    expect("2001:db8:ffff::1", XFF "192.0.2.1\r\n", "192.0.2.1");
    expect("::ffff:10.0.0.1", XFF "192.0.2.1\r\n", "192.0.2.1");
    expect("11.0.0.1", XFF "192.0.2.1\r\n", "-");
    expect("9.255.255.255", XFF "192.0.2.1\r\n", "-");
    expect("2001:db9::1", XFF "192.0.2.1\r\n", "-");
    expect("unix", XFF "192.0.2.1\r\n", "-");
    expect("10.0.0.1", "", "-");
}

static void unix_sockets_are_trusted_by_their_word(void)
{
    TRUST(HTTP_X_FORWARDED_FOR, "unix");
    expect("unix", XFF "192.0.2.1\r\n", "192.0.2.1");
    expect("127.0.0.1", XFF "192.0.2.1\r\n", "-");
    expect("::", XFF "192.0.2.1\r\n", "-");
}

static void the_last_address_that_is_no_proxy_counts(void)
{
    TRUST(HTTP_X_FORWARDED_FOR, "10.0.0.0/8", "192.0.2.0/25");
    expect("10.0.0.1", XFF "203.0.113.9, 198.51.100.7\r\n", "198.51.100.7");
    expect("10.0.0.1", XFF "203.0.113.9, 198.51.100.7, 10.1.1.1, 192.0.2.127\r\n", "198.51.100.7");
    expect("10.0.0.1", XFF "203.0.113.9, 192.0.2.128\r\n", "192.0.2.128");
    expect("10.0.0.1", XFF "10.0.0.9, 10.0.0.8\r\n", "10.0.0.9"); /* all are: the first */
    expect("10.0.0.1", XFF "203.0.113.9\r\n" XFF "198.51.100.7\r\n", "198.51.100.7");
    expect("10.0.0.1", XFF "198.51.100.7\r\n" XFF "10.0.0.2\r\nx-forwarded-for:10.0.0.3\r\n",
           "198.51.100.7");
}

static void addresses_may_have_ports_and_brackets(void)
{
    TRUST(HTTP_X_FORWARDED_FOR, "10.0.0.0/8");
    expect("10.0.0.1", XFF "192.0.2.1:4711\r\n", "192.0.2.1");
    expect("10.0.0.1", XFF "2001:DB8::1\r\n", "[2001:db8::1]");
    expect("10.0.0.1", XFF "[2001:db8::1]\r\n", "[2001:db8::1]");
    expect("10.0.0.1", XFF "[2001:db8::1]:65535\r\n", "[2001:db8::1]");
    expect("10.0.0.1", XFF "::ffff:192.0.2.1\r\n", "192.0.2.1");
    expect("10.0.0.1", XFF "::ffff:10.9.9.9\r\n", "10.9.9.9");
}

static void what_is_no_address_ends_the_reading(void)
{
    static const char *const garbage[] = {
        "unknown",          "_hidden",      "",
        "localhost",        "192.0.2.1:",   "192.0.2.1:port",
        "192.0.2.1:123456", "192.0.2.256",  "1.2.3",
        "[2001:db8::1",     "2001:db8::1]", "[2001:db8::1]x",
        "[192.0.2.1:80",    "fe80::1%eth0", "\"192.0.2.1\"",
        "0x7f.1",           "a\"b",         "192.0.2.1 192.0.2.2"};
    char fields[256];
    TRUST(HTTP_X_FORWARDED_FOR, "10.0.0.0/8");
    for (size_t i = 0; i < COUNT_OF(garbage); i++) {
        (void)snprintf(fields, sizeof fields, XFF "203.0.113.9, %s\r\n", garbage[i]);
        expect("10.0.0.1", fields, "-");
        (void)snprintf(fields, sizeof fields, XFF "203.0.113.9, %s, 10.0.0.2\r\n", garbage[i]);
        expect("10.0.0.1", fields, "10.0.0.2");
    }
}

static void long_lists_are_read_from_their_end_and_not_for_ever(void)
{
    char fields[4096] = XFF "203.0.113.9";
    TRUST(HTTP_X_FORWARDED_FOR, "10.0.0.0/8");
    for (int i = 1; i < HTTP_FORWARDED_HOPS_MAX; i++) {
        strncat(fields, ", 10.0.0.2", sizeof fields - strlen(fields) - 1);
    }
    char more[sizeof fields + 32];
    (void)snprintf(more, sizeof more, "%s\r\n", fields);
    expect("10.0.0.1", more, "203.0.113.9");
    (void)snprintf(more, sizeof more, "%s, 10.0.0.3\r\n", fields);
    expect("10.0.0.1", more, "10.0.0.2"); /* the client's is one too far */
}

static void the_standard_form_is_read_where_it_is_chosen(void)
{
    TRUST(HTTP_FORWARDED, "10.0.0.0/8");
    expect("10.0.0.1", "Forwarded: for=192.0.2.1\r\n", "192.0.2.1");
    expect("10.0.0.1", "forwarded: proto=https; FOR=192.0.2.1 ;by=10.0.0.1\r\n", "192.0.2.1");
    expect("10.0.0.1", "Forwarded: for=\"[2001:db8::1]:4711\"\r\n", "[2001:db8::1]");
    expect("10.0.0.1", "Forwarded: for=203.0.113.9, for=192.0.2.1;host=a, for=10.0.0.2\r\n",
           "192.0.2.1");
    expect("10.0.0.1", "Forwarded: for=192.0.2.1;host=\"a,b;for=203.0.113.9\"\r\n", "-");
    expect("10.0.0.1", "Forwarded: for=203.0.113.9;x=\"\\\", for=192.0.2.1\"\r\n", "203.0.113.9");
    expect("10.0.0.1", "Forwarded: for=unknown\r\n", "-");
    /* Quotes that a client left open swallow nothing. */
    expect("10.0.0.1", "Forwarded: for=\"203.0.113.9, for=192.0.2.1\r\n", "192.0.2.1");
    expect("10.0.0.1", "Forwarded: for=\"\\, for=\"[2001:db8::1]\"\r\n", "[2001:db8::1]");
    expect("10.0.0.1", "Forwarded: for=_SEVKISEK, for=10.0.0.3\r\n", "10.0.0.3");
    expect("10.0.0.1", "Forwarded: for=192.0.2.1;for=203.0.113.9\r\n", "-");
    expect("10.0.0.1", "Forwarded: by=192.0.2.1\r\n", "-");
    expect("10.0.0.1", "Forwarded: for=\r\n", "-");
}

static void the_other_header_is_the_clients_and_not_read(void)
{
    TRUST(HTTP_X_FORWARDED_FOR, "10.0.0.0/8");
    expect("10.0.0.1", "Forwarded: for=203.0.113.9\r\n", "-");
    TRUST(HTTP_FORWARDED, "10.0.0.0/8");
    expect("10.0.0.1", XFF "203.0.113.9\r\n", "-");
}

static void networks_are_read_strictly(void)
{
    static const char *const good[] = {"10.0.0.0/8",  "10.1.2.3", "10.1.2.3/32",
                                       "128.0.0.0/1", "::1",      "2001:db8::/32",
                                       "8000::/1",    "::1/128",  "::ffff:10.0.0.0/104"};
    static const struct {
        const char *text, *problem;
    } bad[] = {{"", "is no address and no network"},
               {"localhost", "is no address and no network"},
               {"10.0.0", "is no address and no network"},
               {"[::1]", "is no address and no network"},
               {"/8", "is no address and no network"},
               {"Unix", "is no address and no network"},
               {"10.0.0.0/", "has a length that is none"},
               {"10.0.0.0/33", "has a length that is none"},
               {"0.0.0.0/0", "has a length that is none"},
               {"10.0.0.0/8x", "has a length that is none"},
               {"10.0.0.0/-8", "has a length that is none"},
               {"10.0.0.0/0008", "has a length that is none"},
               {"2001:db8::/129", "has a length that is none"},
               {"10.0.0.1/8", "has an address within the network"},
               {"2001:db8::1/32", "has an address within the network"}};
    struct http_network network;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        CU_ASSERT_PTR_NULL(http_network_read(good[i], &network));
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        const char *problem = http_network_read(bad[i].text, &network);
        CU_ASSERT_PTR_NOT_NULL_FATAL(problem);
        CU_ASSERT_EQUAL(strncmp(problem, bad[i].problem, strlen(bad[i].problem)), 0);
    }
    TRUST(HTTP_X_FORWARDED_FOR, "::ffff:10.0.0.0/104");
    expect("10.9.9.9", XFF "192.0.2.1\r\n", "192.0.2.1");
}

static const struct test tests[] = {
    TEST(only_a_trusted_peer_is_believed),
    TEST(unix_sockets_are_trusted_by_their_word),
    TEST(the_last_address_that_is_no_proxy_counts),
    TEST(addresses_may_have_ports_and_brackets),
    TEST(what_is_no_address_ends_the_reading),
    TEST(long_lists_are_read_from_their_end_and_not_for_ever),
    TEST(the_standard_form_is_read_where_it_is_chosen),
    TEST(the_other_header_is_the_clients_and_not_read),
    TEST(networks_are_read_strictly),
};

int main(int argc, char **argv)
{
    return run_tests("forwarded", tests, COUNT_OF(tests), argc, argv);
}
