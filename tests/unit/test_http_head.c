/* core/http/head.h: what a request's head may be, and each way in which it may not. */
#include "base/buf.h"
#include "base/check.h"
#include "cunit_main.h"
#include "http/head.h"

#include <stdlib.h>

#define HOST "Host: a.test\r\n"

struct refusal {
    const char *head;
    int status;
    const char *message; /* part of it */
};

static const struct refusal refusals[] = {
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400,
     "both Content-Length and Transfer-Encoding"},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400,
     "two Content-Length"},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 1, 1\r\n\r\n", 400, "not a number"},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: +1\r\n\r\n", 400, "not a number"},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n", 400, "not a number"},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 1 1\r\n\r\n", 400, "not a number"},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 0x1\r\n\r\n", 400, "not a number"},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 9223372036854775808\r\n\r\n", 400, "not a number"},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n", 400, "Content-Length is empty"},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", 501,
     "only be 'chunked'"},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n", 501, "only be 'chunked'"},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked;q=1\r\n\r\n", 501, "only be 'chunked'"},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: \x0b"
     "chunked\r\n\r\n",
     400, "control"},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding:\r\n\r\n", 400, "Transfer-Encoding is empty"},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n",
     400, "two Transfer-Encoding"},
    {"POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", 400, "not part of HTTP/1.0"},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding : chunked\r\n\r\n", 400, "before its colon"},
    {"GET / HTTP/1.1\r\n" HOST "A: b\r\n c\r\n\r\n", 400, "folded"},
    {"GET / HTTP/1.1\r\n" HOST "A: b\r\n\tc\r\n\r\n", 400, "folded"},
    {"GET / HTTP/1.1\r\n " HOST "\r\n", 400, "folded"},
    {"GET / HTTP/1.1\n" HOST "\r\n", 400, "bare LF"},
    {"GET / HTTP/1.1\r\nHost: a.test\n\r\n", 400, "bare LF"},
    {"GET / HTTP/1.1\r\nHost: a.test\r\n\n", 400, "bare LF"},
    {"\nGET / HTTP/1.1\r\n" HOST "\r\n", 400, "bare LF"},
    {"GET / HTTP/1.1\r\n" HOST "A: b\rC: d\r\n\r\n", 400, "control"},
    {"GET / HTTP/1.1\r\n" HOST "A: b\r\r\n\r\n", 400, "control"},
    {"GET / HTTP/1.1\r\n" HOST "A: b\x7f\r\n\r\n", 400, "control"},
    {"GET / HTTP/1.1\r\n" HOST "A\x01: b\r\n\r\n", 400, "name has characters"},
    {"GET / HTTP/1.1\r\n" HOST "A b: c\r\n\r\n", 400, "name has characters"},
    {"GET / HTTP/1.1\r\n" HOST "\xC3\xA4: c\r\n\r\n", 400, "name has characters"},
    {"GET / HTTP/1.1\r\n" HOST ": c\r\n\r\n", 400, "name has characters"},
    {"GET / HTTP/1.1\r\n" HOST "nothing\r\n\r\n", 400, "no colon"},
    {"GET / HTTP/1.1\r\nA: b\r\n\r\n", 400, "no Host"},
    {"GET / HTTP/1.1\r\n" HOST HOST "\r\n", 400, "two Host"},
    {"GET / HTTP/1.0\r\n" HOST HOST "\r\n", 400, "two Host"},
    {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400, "not a host and port"},
    {"GET / HTTP/1.1\r\nHost: u@a.test\r\n\r\n", 400, "not a host and port"},
    {"GET / HTTP/1.1\r\nHost: a.test/x\r\n\r\n", 400, "not a host and port"},
    {"GET / HTTP/1.1\r\nHost: a.test, b.test\r\n\r\n", 400, "not a host and port"},
    {"GET / HTTP/1.1\r\nHost:\r\n\r\n", 400, "Host is empty"},
    {"GET / HTTP/1.0\r\nHost: \t\r\n\r\n", 400, "Host is empty"},
    {"get / HTTP/1.1\r\n" HOST "\r\n", 400, "method is not one"},
    {"G\tET / HTTP/1.1\r\n" HOST "\r\n", 400, "method is not one"},
    {" GET / HTTP/1.1\r\n" HOST "\r\n", 400, "method is not one"},
    {"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG / HTTP/1.1\r\n" HOST "\r\n", 400, "method is not one"},
    {"GET  / HTTP/1.1\r\n" HOST "\r\n", 400, "target has characters"},
    {"GET / HTTP/1.1 \r\n" HOST "\r\n", 400, "does not end in an HTTP version"},
    {"GET /a b HTTP/1.1\r\n" HOST "\r\n", 400, "target has characters"},
    {"GET /\xC3\xA4 HTTP/1.1\r\n" HOST "\r\n", 400, "target has characters"},
    {"GET /#a HTTP/1.1\r\n" HOST "\r\n", 400, "target has characters"},
    {"GET a HTTP/1.1\r\n" HOST "\r\n", 400, "target is not a path"},
    {"CONNECT a.test:443 HTTP/1.1\r\n" HOST "\r\n", 400, "target is not a path"},
    {"GET ftp://a.test/ HTTP/1.1\r\n" HOST "\r\n", 400, "target is not a path"},
    {"GET http://b.test/ HTTP/1.1\r\n" HOST "\r\n", 400, "names another host"},
    {"GET http://u@a.test/ HTTP/1.1\r\n" HOST "\r\n", 400, "names another host"},
    {"GET http:///x HTTP/1.1\r\n" HOST "\r\n", 400, "names another host"},
    {"GET http://a.test?x HTTP/1.1\r\n" HOST "\r\n", 400, "target is not a path"},
    {"GET * HTTP/1.1\r\n" HOST "\r\n", 400, "OPTIONS only"},
    {"GET /\r\n\r\n", 400, "not method, target and version"},
    {"GET\r\n\r\n", 400, "not method, target and version"},
    {"\r\n\r\n", 400, "not method, target and version"},
    {"GET / HTTP/1.1x\r\n" HOST "\r\n", 400, "does not end in an HTTP version"},
    {"GET / http/1.1\r\n" HOST "\r\n", 400, "does not end in an HTTP version"},
    {"GET / HTTP/1.2\r\n" HOST "\r\n", 505, "only HTTP/1.1"},
    {"PRI * HTTP/2.0\r\n\r\n", 505, "only HTTP/1.1"},
    {"POST / HTTP/1.1\r\n" HOST "Expect: 200-ok\r\n\r\n", 417, "'100-continue'"},
};

static void each_bad_head_is_refused_with_its_status_and_reason(void)
{
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        struct sg_error err = {0};
        struct http_head head;
        struct str data = str_of(refusals[i].head);
        size_t length = http_head_length(data);
        CU_ASSERT(length > 0 && length <= data.len);
        int code = http_head_parse((struct str){data.data, length}, &head, &err);
        if (code != SG_E_INVALID || err.status != refusals[i].status ||
            strstr(err.message, refusals[i].message) == NULL) {
            printf("\n%s→ %d %d '%s', not '%s'\n", refusals[i].head, code, err.status, err.message,
                   refusals[i].message);
            CU_FAIL("a bad head");
        }
    }
}

static void a_nul_is_refused_everywhere(void)
{
    static const char whole[] = "GET /a HTTP/1.1\r\n" HOST "Name: value\r\n\r\n";
    for (size_t i = 0; i < sizeof whole - 1; i++) {
        char copy[sizeof whole];
        memcpy(copy, whole, sizeof whole);
        copy[i] = '\0';
        struct sg_error err = {0};
        struct http_head head;
        CU_ASSERT_NOT_EQUAL(http_head_parse((struct str){copy, sizeof whole - 1}, &head, &err), 0);
    }
}

static void a_good_head_gives_all_its_parts(void)
{
    struct str data = STR("\r\nPOST /v1/x?a=b?c HTTP/1.1\r\nhOST:\ta.test:80 \r\nX-Empty:\r\n"
                          "Content-Length: 007\r\nExpect: 100-Continue\r\nX: \xC3\xA4\r\n\r\n");
    struct sg_error err = {0};
    struct http_head head;
    CU_ASSERT_EQUAL(http_head_length(data), data.len);
    CU_ASSERT_EQUAL_FATAL(http_head_parse(data, &head, &err), 0);
    CU_ASSERT_TRUE(str_is(head.method, "POST"));
    CU_ASSERT_TRUE(str_is(head.target, "/v1/x?a=b?c"));
    CU_ASSERT_TRUE(str_is(head.path, "/v1/x"));
    CU_ASSERT_TRUE(str_is(head.query, "a=b?c"));
    CU_ASSERT_TRUE(str_is(head.host, "a.test:80"));
    CU_ASSERT_EQUAL(head.minor, 1);
    CU_ASSERT_EQUAL(head.count, 5);
    CU_ASSERT_EQUAL(head.content_length, 7);
    CU_ASSERT_TRUE(head.expect_continue);
    CU_ASSERT_TRUE(head.keep_alive);
    CU_ASSERT_FALSE(head.chunked);
    CU_ASSERT_TRUE(str_is(http_head_get(&head, "x"), "\xC3\xA4"));
    CU_ASSERT_EQUAL(http_head_get(&head, "x-empty").len, 0);
    CU_ASSERT_PTR_NOT_NULL(http_head_get(&head, "x-empty").data);
    CU_ASSERT_PTR_NULL(http_head_get(&head, "x-none").data);
}

static bool keeps_alive(const char *text)
{
    struct sg_error err = {0};
    struct http_head head;
    CU_ASSERT_EQUAL_FATAL(http_head_parse(str_of(text), &head, &err), 0);
    return head.keep_alive;
}

static void keeping_the_connection_follows_version_and_connection(void)
{
    CU_ASSERT_TRUE(keeps_alive("GET / HTTP/1.1\r\n" HOST "\r\n"));
    CU_ASSERT_FALSE(keeps_alive("GET / HTTP/1.1\r\n" HOST "Connection: x , Close\r\n\r\n"));
    CU_ASSERT_FALSE(keeps_alive("GET / HTTP/1.0\r\n\r\n"));
    CU_ASSERT_TRUE(keeps_alive("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
    CU_ASSERT_FALSE(keeps_alive("GET / HTTP/1.1\r\n" HOST
                                "Connection: keep-alive\r\nConnection: close\r\n\r\n"));
}

static void other_forms_of_a_target_are_reduced_to_a_path(void)
{
    struct sg_error err = {0};
    struct http_head head;
    struct str absolute = STR("GET HTTP://A.test/p?q HTTP/1.1\r\n" HOST "\r\n");
    CU_ASSERT_EQUAL_FATAL(http_head_parse(absolute, &head, &err), 0);
    CU_ASSERT_TRUE(str_is(head.target, "/p?q"));
    CU_ASSERT_TRUE(str_is(head.path, "/p"));
    struct str bare = STR("GET https://a.test HTTP/1.1\r\n" HOST "\r\n");
    CU_ASSERT_EQUAL_FATAL(http_head_parse(bare, &head, &err), 0);
    CU_ASSERT_TRUE(str_is(head.path, "/"));
    struct str star = STR("OPTIONS * HTTP/1.1\r\n" HOST "\r\n");
    CU_ASSERT_EQUAL_FATAL(http_head_parse(star, &head, &err), 0);
    CU_ASSERT_TRUE(str_is(head.path, "*"));
}

static void a_head_ends_at_its_empty_line_however_it_comes(void)
{
    struct str whole = STR("GET / HTTP/1.1\r\n" HOST "\r\nGET /next");
    size_t length = whole.len - strlen("GET /next");
    for (size_t i = 0; i <= whole.len; i++) {
        CU_ASSERT_EQUAL(http_head_length((struct str){whole.data, i}), i < length ? 0 : length);
    }
}

/* A head of exactly `bytes` bytes with one long field. */
static char *head_of_size(size_t bytes)
{
    static const char start[] = "GET / HTTP/1.1\r\n" HOST "A: ";
    char *head = check_alloc(malloc(bytes));
    memset(head, 'x', bytes);
    memcpy(head, start, sizeof start - 1);
    memcpy(head + bytes - 4, "\r\n\r\n", 4);
    return head;
}

static void a_head_may_be_as_long_as_the_limit_and_no_longer(void)
{
    struct sg_error err = {0};
    struct http_head head;
    char *data = head_of_size(LIMIT_HEADER_BYTES);
    CU_ASSERT_EQUAL(http_head_parse((struct str){data, LIMIT_HEADER_BYTES}, &head, &err), 0);
    free(data);
    data = head_of_size(LIMIT_HEADER_BYTES + 1);
    CU_ASSERT_EQUAL(http_head_parse((struct str){data, LIMIT_HEADER_BYTES + 1}, &head, &err),
                    SG_E_LIMIT);
    CU_ASSERT_EQUAL(err.status, 431);
    CU_ASSERT_STRING_EQUAL(err.message, "the request's head is longer than 32768 bytes");
    free(data);
}

static int parse_with_fields(size_t count, struct sg_error *err)
{
    BUF_CLEANUP struct buf text = {0};
    struct http_head head;
    buf_puts(&text, "GET / HTTP/1.1\r\n" HOST);
    for (size_t i = 1; i < count; i++) {
        buf_puts(&text, "A: b\r\n");
    }
    buf_puts(&text, "\r\n");
    return http_head_parse(buf_str(&text), &head, err);
}

static void a_head_may_have_as_many_fields_as_the_limit_and_no_more(void)
{
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(parse_with_fields(LIMIT_HEADER_COUNT, &err), 0);
    CU_ASSERT_EQUAL(parse_with_fields(LIMIT_HEADER_COUNT + 1, &err), SG_E_LIMIT);
    CU_ASSERT_EQUAL(err.status, 431);
    CU_ASSERT_STRING_EQUAL(err.message, "the request has more than 128 headers");
}

static void paths_are_decoded_once(void)
{
    char out[64];
    size_t len = 0;
    struct sg_error err = {0};
    CU_ASSERT_EQUAL(http_path_decode(STR("/v1/a%20b%2541/..."), out, &len, &err), 0);
    CU_ASSERT_STRING_EQUAL(out, "/v1/a b%41/...");
    CU_ASSERT_EQUAL(len, strlen("/v1/a b%41/..."));
    CU_ASSERT_EQUAL(http_path_decode(STR("/"), out, &len, &err), 0);
    CU_ASSERT_STRING_EQUAL(out, "/");
    CU_ASSERT_EQUAL(http_path_decode(STR("/a/"), out, &len, &err), 0);
    CU_ASSERT_STRING_EQUAL(out, "/a/");
}

static void paths_that_mean_two_things_are_refused(void)
{
    static const struct {
        const char *path, *message;
    } bad[] = {
        {"/a/../b", "a dot segment"},
        {"/a/%2e%2E", "a dot segment"},
        {"/.", "a dot segment"},
        {"/./a", "a dot segment"},
        {"//a", "an empty segment"},
        {"/a//", "an empty segment"},
        {"/a%2fb", "an encoded slash"},
        {"/a%2Fb", "an encoded slash"},
        {"/a%5cb", "a backslash"},
        {"/a\\b", "a backslash"},
        {"/a%00", "a control"},
        {"/a%0a", "a control"},
        {"/a%7F", "a control"},
        {"/a%", "a broken escape"},
        {"/a%4", "a broken escape"},
        {"/a%4g", "a broken escape"},
        {"a", "no slash"},
        {"*", "no slash"},
        {"", "no slash"},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        char out[64];
        size_t len = 77;
        struct sg_error err = {0};
        CU_ASSERT_EQUAL(http_path_decode(str_of(bad[i].path), out, &len, &err), SG_E_INVALID);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.message, bad[i].message));
        CU_ASSERT_EQUAL(len, 77);
    }
}

static void a_host_is_one_name_and_one_port(void)
{
    static const char *const good[] = {
        "a",   "a.test", "A-b_c.9", "127.0.0.1:4000", "a:65535",
        "a:0", "a:",     "[::1]",   "[::1]:4000",     "[::ffff:1.2.3.4]:"};
    static const char *const bad[] = {"",        ":80",      "a:b",    "a:65536", "a:000080",
                                      "a:80:80", "a,b",      "a%41",   "a b",     "a/",
                                      "u@a",     "\xC3\xA4", "[]",     "[::1",    "::1",
                                      "[::1]80", "[::1]]",   "[:%31]", "a:8 0",   "a:+80"};
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        CU_ASSERT_TRUE(http_host_valid(str_of(good[i])));
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        CU_ASSERT_FALSE(http_host_valid(str_of(bad[i])));
    }
    CU_ASSERT_FALSE(http_host_valid(STR("a\0b")));
    CU_ASSERT_FALSE(http_host_valid((struct str){NULL, 0}));
}

static void hop_by_hop_names_are_the_fixed_and_the_named_ones(void)
{
    CU_ASSERT_TRUE(http_is_hop_by_hop(STR("Transfer-Encoding"), STR("")));
    CU_ASSERT_TRUE(http_is_hop_by_hop(STR("X-Mine"), STR("close, x-mine")));
    CU_ASSERT_FALSE(http_is_hop_by_hop(STR("X-Min"), STR("close, x-mine")));
    CU_ASSERT_FALSE(http_is_hop_by_hop(STR("Content-Type"), (struct str){NULL, 0}));
}

static void reasons_are_known_or_say_so(void)
{
    CU_ASSERT_STRING_EQUAL(http_reason(404), "Not Found");
    CU_ASSERT_STRING_EQUAL(http_reason(299), "Unknown");
}

/* ---- chunked bodies ---- */

/* Reads `text` in pieces cut at `cut`, then one byte at a time; the decoded body goes to `out`. */
static int read_chunks(struct str text, size_t cut, size_t step, struct buf *out, size_t *ret_used)
{
    struct http_chunks chunks = {0};
    size_t at = 0;
    int result = 0;
    while (at < text.len && result == 0) {
        size_t end = at < cut ? cut : at + step;
        end = end > text.len ? text.len : end;
        while (at < end && result == 0) {
            struct str span;
            size_t used = 0;
            result =
                http_chunks_feed(&chunks, (struct str){text.data + at, end - at}, &used, &span);
            buf_append_str(out, span);
            at += used;
        }
    }
    *ret_used = at;
    return result;
}

static void chunked_bodies_are_the_same_at_every_split(void)
{
    struct str text = STR("5\r\nhello\r\n0001;a=\"b;\\\"\";c\r\n \r\nA\r\n0123456789\r\n0;x\r\n"
                          "Trailer: one\r\nOther:\r\n\r\nGET");
    for (size_t cut = 0; cut <= text.len; cut++) {
        for (size_t step = 1; step <= text.len; step += text.len - 1) {
            BUF_CLEANUP struct buf out = {0};
            size_t used = 0;
            CU_ASSERT_EQUAL(read_chunks(text, cut, step, &out, &used), 1);
            CU_ASSERT_TRUE(str_is(buf_str(&out), "hello 0123456789"));
            CU_ASSERT_EQUAL(used, text.len - 3);
        }
    }
}

static void broken_chunks_are_refused_at_every_split(void)
{
    static const char *const bad[] = {
        "\r\n",         "g\r\n",           " 5\r\n",           "5 \r\n",
        "-5\r\n",       "0x5\r\n",         "5\nhello",         "5\r\rhello",
        "5\r\nhellox",  "5\r\nhello\n",    "5\r\nhello\rx",    "5;a\nb\r\nhello",
        "5;\x01\r\n",   "0\r\n x: y\r\n",  "0\r\nx y: z\r\n",  "0\r\nxy\r\n",
        "0\r\n: z\r\n", "0\r\nx: y\n\r\n", "0\r\n\rx",         "1000000000000000\r\n",
        ";a\r\n",       "0\r\n\n",         "5;a=\"b\r\nhello", "5;a=\"b\\\"\r\nhello",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct str text = str_of(bad[i]);
        for (size_t cut = 0; cut <= text.len; cut++) {
            BUF_CLEANUP struct buf out = {0};
            size_t used = 0;
            CU_ASSERT_EQUAL(read_chunks(text, cut, 1, &out, &used), -1);
        }
    }
}

static void extensions_and_trailers_are_bounded_over_the_whole_body(void)
{
    BUF_CLEANUP struct buf text = {0}, out = {0};
    size_t used = 0;
    for (size_t i = 0; i < HTTP_CHUNKS_EXTRA_BYTES / 16; i++) {
        buf_puts(&text, "1;aaaaaaaaaaaaaaaa\r\nx\r\n"); /* 16 bytes that count */
    }
    CU_ASSERT_EQUAL(read_chunks(buf_str(&text), 0, 4096, &out, &used), 0);
    CU_ASSERT_EQUAL(out.len, HTTP_CHUNKS_EXTRA_BYTES / 16);
    buf_puts(&text, "1;a\r\n");
    buf_reset(&out);
    CU_ASSERT_EQUAL(read_chunks(buf_str(&text), 0, 4096, &out, &used), -1);
}

static void a_body_ends_once(void)
{
    struct http_chunks chunks = {0};
    struct str span;
    size_t used = 0;
    CU_ASSERT_EQUAL(http_chunks_feed(&chunks, STR("0\r\n\r\nx"), &used, &span), 1);
    CU_ASSERT_EQUAL(used, 5);
    CU_ASSERT_EQUAL(http_chunks_feed(&chunks, STR("x"), &used, &span), 1);
    CU_ASSERT_EQUAL(used, 0);
}

static const struct test tests[] = {
    TEST(each_bad_head_is_refused_with_its_status_and_reason),
    TEST(a_nul_is_refused_everywhere),
    TEST(a_good_head_gives_all_its_parts),
    TEST(keeping_the_connection_follows_version_and_connection),
    TEST(other_forms_of_a_target_are_reduced_to_a_path),
    TEST(a_head_ends_at_its_empty_line_however_it_comes),
    TEST(a_head_may_be_as_long_as_the_limit_and_no_longer),
    TEST(a_head_may_have_as_many_fields_as_the_limit_and_no_more),
    TEST(paths_are_decoded_once),
    TEST(paths_that_mean_two_things_are_refused),
    TEST(a_host_is_one_name_and_one_port),
    TEST(hop_by_hop_names_are_the_fixed_and_the_named_ones),
    TEST(reasons_are_known_or_say_so),
    TEST(chunked_bodies_are_the_same_at_every_split),
    TEST(broken_chunks_are_refused_at_every_split),
    TEST(extensions_and_trailers_are_bounded_over_the_whole_body),
    TEST(a_body_ends_once),
};

int main(int argc, char **argv)
{
    return run_tests("http_head", tests, COUNT_OF(tests), argc, argv);
}
