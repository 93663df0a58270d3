/* core/gateway's pure parts: model patterns, the listen address with its rule about authentication, and what a
 * configuration file is told that names plugins wrongly. */
#include "base/check.h"
#include "cunit_main.h"
#include "gateway/gateway.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void patterns_match_whole_names_only(void)
{
    CU_ASSERT_TRUE(model_matches("gpt-*", STR("gpt-4o")));
    CU_ASSERT_TRUE(model_matches("gpt-*", STR("gpt-")));
    CU_ASSERT_FALSE(model_matches("gpt-*", STR("my-gpt-4o")));
    CU_ASSERT_TRUE(model_matches("*", STR("anything")));
    CU_ASSERT_TRUE(model_matches("*", STR("")));
    CU_ASSERT_TRUE(model_matches("a*b*c", STR("a-b-b-c")));
    CU_ASSERT_FALSE(model_matches("a*b*c", STR("a-b-b-d")));
    CU_ASSERT_FALSE(model_matches("mock", STR("mock2")));
    CU_ASSERT_FALSE(model_matches("mock2", STR("mock")));
    CU_ASSERT_FALSE(model_matches("a", STR("a\0b")));
}

static int check(const char *listen, enum auth_mode mode, bool insecure, struct sg_error *err)
{
    struct config config = {.server.listen = listen, .auth = {.mode = mode, .insecure = insecure}};
    struct http_server_options options = {0};
    *err = (struct sg_error){0};
    return gateway_check_listen(&config, &options, err);
}

static void an_open_gateway_is_refused_beyond_loopback(void)
{
    struct sg_error err;
    CU_ASSERT_EQUAL(check("127.0.0.1:4000", AUTH_NONE, false, &err), 0);
    CU_ASSERT_EQUAL(check("[::1]:4000", AUTH_NONE, false, &err), 0);
    CU_ASSERT_EQUAL(check("0.0.0.0:4000", AUTH_NONE, true, &err), 0);
    CU_ASSERT_EQUAL(check("0.0.0.0:4000", AUTH_KEYS, false, &err), 0);
    CU_ASSERT_EQUAL(check("0.0.0.0:4000", AUTH_NONE, false, &err), SG_E_CONFIG);
    CU_ASSERT_STRING_EQUAL(err.message,
                           "auth: mode 'none' at 0.0.0.0:4000 would let everybody who reaches it "
                           "run code: listen at 127.0.0.1, set keys, or say 'insecure: true'");
    CU_ASSERT_EQUAL(check("[::]:4000", AUTH_NONE, false, &err), SG_E_CONFIG);
}

static void a_listen_address_needs_a_port(void)
{
    struct sg_error err;
    static const char *const wrong[] = {"127.0.0.1", "127.0.0.1:", "127.0.0.1:http", "4000",
                                        "127.0.0.1:65536"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        CU_ASSERT_EQUAL(check(wrong[i], AUTH_KEYS, false, &err), SG_E_CONFIG);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "must be an address and port such as "
                                                   "127.0.0.1:4000, not"));
    }
    CU_ASSERT_EQUAL(check("999.1.1.1:4000", AUTH_KEYS, false, &err), SG_E_CONFIG);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "'listen' address '999.1.1.1:4000' is not known"));
}

/* What config_read() says about a text, in a file of its own. */
static void problems_of(const char *text, struct buf *ret)
{
    char path[] = "/tmp/sandgate-test-XXXXXX";
    int fd = mkstemp(path);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_FATAL(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    struct conf_problems problems = {.file = "c.yaml"};
    struct config *config = config_read(path, &problems);
    buf_reset(ret);
    (void)buf_append_str(ret, buf_str(&problems.text));
    conf_problems_clear(&problems);
    config_free(config);
    unlink(path);
}

static void every_problem_of_a_file_is_told_with_its_place(void)
{
    BUF_CLEANUP struct buf said = {0};
    problems_of("sever:\n"
                "  listen: x\n"
                "auth: { mode: none }\n"
                "upstreams:\n"
                "  - { name: a, models: [m] }\n"
                "  - { name: b, base_url: 'ftp://x', models: [m] }\n"
                "  - { name: c, base_url: 'http://x', surfaces: [chats], models: [m] }\n"
                "  - { name: c, base_url: 'http://x', models: [m] }\n"
                "  - { name: 'd/e', base_url: 'http://x', models: [m] }\n"
                "  - just words\n"
                "  - { name: e, base_url: 'http://x/v1/chat/completions', models: [m] }\n"
                "server: { origins: [ok.example, 'https://ok.example/'] }\n"
                "sessions: { id_from: [metadata.sesion_id] }\n"
                "interceptors: { plugin: x }\n",
                &said);
    static const char *const wanted[] = {
        ":1:1: unknown section 'sever'; did you mean 'server'?",
        ":5:5: upstream 'a' needs exactly one of 'base_url' and 'plugin'",
        ":6:26: upstream 'b': 'base_url' must be a URL such as https://api.openai.com/v1, "
        "without user, query or fragment",
        "upstream 'c': 'surfaces' may hold chat, responses and messages, not 'chats'",
        ":8:13: upstreams: 'c' is used twice (first in line 7)",
        "a name is 1 to 64 letters, digits, '_', '-' and '.', not 'd/e'",
        ":10:5: an entry of 'upstreams' must be a map such as { name: … }",
        ("sessions: 'id_from' may hold metadata.session_id, litellm_metadata.session_id and "
         "header:NAME, not 'metadata.sesion_id'"),
        "upstream 'e': 'base_url' must end before /chat/completions, as for a client library",
        "server: an entry of 'origins' must be as browsers send it, such as https://app.example, "
        "without a path or a slash at its end, not 'https://ok.example/'",
        "'interceptors' must be a list of entries such as '- { name: … }'",
    };
    for (size_t i = 0; i < COUNT_OF(wanted); i++) {
        CU_ASSERT_PTR_NOT_NULL(strstr(said.data, wanted[i]));
        if (strstr(said.data, wanted[i]) == NULL) {
            fprintf(stderr, "not said: %s\nbut:\n%s\n", wanted[i], said.data);
        }
    }
}

static void keys_are_checked_and_never_shown(void)
{
    BUF_CLEANUP struct buf said = {0};
    problems_of("auth:\n"
                "  keys:\n"
                "    - { name: a }\n"
                "    - { name: b, sha256: 12 }\n"
                "    - { name: c, key: s3cret }\n"
                "upstreams:\n"
                "  - { name: u, base_url: 'http://x', models: [m] }\n",
                &said);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, ":3:7: auth: key 'a' needs exactly one of "
                                             "'sha256' and 'key'"));
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, ":4:7: auth: 'sha256' of key 'b' must be 64 "
                                             "hexadecimal digits"));
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, ":5:7: auth: key 'c' is shorter than 8 "
                                             "characters"));
    CU_ASSERT_PTR_NULL(strstr(said.data, "s3cret"));
    problems_of("upstreams:\n  - { name: u, base_url: 'http://x', models: [m] }\n", &said);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "auth: mode 'keys' needs at least one entry in "
                                             "'keys'"));
    problems_of("auth: { mode: none }\n", &said);
    CU_ASSERT_PTR_NOT_NULL(strstr(said.data, "there is no upstream: add one under 'upstreams:'"));
}

static const struct test tests[] = {
    TEST(patterns_match_whole_names_only),  TEST(an_open_gateway_is_refused_beyond_loopback),
    TEST(a_listen_address_needs_a_port),    TEST(every_problem_of_a_file_is_told_with_its_place),
    TEST(keys_are_checked_and_never_shown),
};

int main(int argc, char **argv)
{
    return run_tests("gateway", tests, COUNT_OF(tests), argc, argv);
}
