/* core/gateway's pure parts: model patterns, the listen address with its rule about authentication, and what a
 * configuration file is told that names plugins wrongly. */
#include "base/check.h"
#include "cunit_main.h"
#include "gateway/gateway.h"
#include "gateway/setup_options.h"

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
    const char *const only[] = {listen, NULL};
    struct config config = {.server.listen = only, .auth = {.mode = mode, .insecure = insecure}};
    struct listen ignored = {0};
    size_t entry = 0;
    *err = (struct sg_error){0};
    return listen_read(&config, &ignored, &entry, err);
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
    CU_ASSERT_EQUAL(check("unix:/run/sandgate.sock", AUTH_NONE, false, &err), 0);
    CU_ASSERT_EQUAL(check("unix:@sandgate", AUTH_NONE, false, &err), 0);
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

/* Into a file of its own, named after the template. */
static void write_text(char *path, const char *text)
{
    int fd = mkstemp(path);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_FATAL(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

/* What config_read() says about a text. */
static void problems_of(const char *text, struct buf *ret)
{
    char path[] = "/tmp/sandgate-test-XXXXXX";
    write_text(path, text);
    struct conf_problems problems = {.file = "c.yaml"};
    struct config *config = config_read(path, NULL, true, &problems);
    buf_reset(ret);
    (void)buf_append_str(ret, buf_str(&problems.text));
    conf_problems_clear(&problems);
    config_free(config);
    unlink(path);
}

static void expect_said(const struct buf *said, const char *const *wanted, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        CU_ASSERT_PTR_NOT_NULL(strstr(said->data, wanted[i]));
        if (strstr(said->data, wanted[i]) == NULL) {
            fprintf(stderr, "not said: %s\nbut:\n%s\n", wanted[i], said->data);
        }
    }
}

static size_t lines_of(const struct buf *said)
{
    size_t lines = 0;
    for (size_t i = 0; i < said->len; i++) {
        lines += said->data[i] == '\n';
    }
    return lines;
}

static void expect_only(const struct buf *said, const char *const *wanted, size_t count)
{
    expect_said(said, wanted, count);
    CU_ASSERT_EQUAL(lines_of(said), count);
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
        ("sessions: 'id_from' may hold metadata.session_id, litellm_metadata.session_id, "
         "metadata.user_id, prompt_cache_key and header:NAME, not 'metadata.sesion_id'"),
        "upstream 'e': 'base_url' must end before /chat/completions, as for a client library",
        "server: an entry of 'origins' must be as browsers send it, such as https://app.example, "
        "without a path or a slash at its end, not 'https://ok.example/'",
        "'interceptors' must be a list of entries such as '- { name: … }'",
    };
    expect_said(&said, wanted, COUNT_OF(wanted));
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

static void single_values_are_checked_at_the_start(void)
{
    BUF_CLEANUP struct buf said = {0};
    problems_of("auth: { mode: none }\n"
                "upstreams:\n"
                "  - { name: a, base_url: 'http://x:99999/v1', models: [m] }\n"
                "  - { name: b, base_url: 'http://x:y', models: [m], api_key: '' }\n"
                "  - { name: c, base_url: 'http://[::1/v1', models: [m], api_key: \"k\\n\" }\n"
                "server:\n"
                "  listen: 0.0.0.0:80\n"
                "  origins: ['https://a.example:x', 'https://']\n"
                "  hosts: [ok.lan, 'box.lan/x', '']\n"
                "  forward_headers: [x-ok, 'x y', Authorization, te, cookie]\n"
                "sessions: { id_from: ['header:', 'header:X-Api-Key', 'header:x-ok'] }\n",
                &said);
    static const char *const wanted[] = {
        ":3:26: upstream 'a': 'base_url': the URL has a port that is not between 1 and "
        "65535\n",
        ":4:26: upstream 'b': 'base_url': the URL has a port that is not a number\n",
        ":4:62: upstream 'b': 'api_key' is empty; leave it out where none is wanted\n",
        ":5:26: upstream 'c': 'base_url': the URL has a bracket that is not closed\n",
        "upstream 'c': 'api_key' has white space around it or control characters in it, which no "
        "header can carry (was it read with the end of its line?)\n",
        ":7:11: auth: mode 'none' at 0.0.0.0:80 would let everybody who reaches it run code: "
        "listen at 127.0.0.1, set keys, or say 'insecure: true'\n",
        "without a path or a slash at its end, not 'https://a.example:x'\n",
        "without a path or a slash at its end, not 'https://'\n",
        ":9:10: server: an entry of 'hosts' must be a name as clients write it in Host, such as "
        "box.lan or box.lan:4000, not 'box.lan/x'\n",
        "such as box.lan or box.lan:4000, not ''\n",
        ":10:20: server: an entry of 'forward_headers' must be the name of a header such as "
        "x-team, not 'x y'\n",
        "server: 'forward_headers' may not hold 'Authorization': credentials, cookies and what "
        "belongs to one connection are never sent on\n",
        "may not hold 'te'",
        "may not hold 'cookie'",
        ":11:22: sessions: 'header:NAME' in 'id_from' needs the name of a header such as "
        "header:x-session, not 'header:'\n",
        "sessions: 'id_from' may not hold 'header:X-Api-Key': a secret is no session id, ids are "
        "listed\n",
    };
    expect_only(&said, wanted, COUNT_OF(wanted));
}

static void one_key_is_one_identity(void)
{
    BUF_CLEANUP struct buf said = {0};
    problems_of("auth:\n"
                "  keys:\n"
                "    - { name: a, key: one-and-only }\n"
                "    - { name: b, key: one-and-only }\n"
                "    - { name: c, key: '' }\n"
                "    - { name: d, key: ' and-a-space' }\n"
                "    - { name: a, key: another-of-a }\n"
                "upstreams:\n"
                "  - { name: u, base_url: 'http://x', models: [m] }\n",
                &said);
    static const char *const wanted[] = {
        ":4:7: auth: the key of 'b' is that of 'a' too (",
        ":3): each needs its own\n",
        ":5:7: auth: key 'c' is empty\n",
        (":6:7: auth: key 'd' has white space around it or control characters in it, which no "
         "header can carry (was it read with the end of its line?)\n"),
    };
    expect_said(&said, wanted, COUNT_OF(wanted));
    CU_ASSERT_EQUAL(lines_of(&said), 3);
}

static void the_address_of_the_command_line_stands_for_the_files(void)
{
    static const char text[] = "auth: { mode: none }\n"
                               "server: { listen: '0.0.0.0:80' }\n"
                               "upstreams: [{ name: u, base_url: 'http://x', models: [m] }]\n";
    struct conf_problems problems = {0};
    char path[] = "/tmp/sandgate-test-XXXXXX";
    write_text(path, text);
    struct config *config = config_read(path, "127.0.0.1:0", true, &problems);
    unlink(path);
    CU_ASSERT_PTR_NOT_NULL_FATAL(config);
    CU_ASSERT_STRING_EQUAL(config->server.listen[0], "127.0.0.1:0");
    CU_ASSERT_PTR_NULL(config->server.listen[1]);
    config_free(config);
    conf_problems_clear(&problems);
}

static void a_plugin_leaves_the_cores_options_of_its_entry_alone(void)
{
    static const struct {
        enum plugin_kind kind;
        const struct sg_option *options;
    } sections[] = {{PLUGIN_UPSTREAM, upstream_options},
                    {PLUGIN_SANDBOX, sandbox_options},
                    {PLUGIN_SEARCH, search_options},
                    {PLUGIN_INTERCEPTOR, interceptor_options}};
    for (size_t i = 0; i < COUNT_OF(sections); i++) {
        for (const struct sg_option *one = sections[i].options; one->name != NULL; one++) {
            bool is_reserved = list_has(plugin_reserved(sections[i].kind), str_of(one->name));
            CU_ASSERT_TRUE(is_reserved);
            if (!is_reserved) {
                fprintf(stderr, "not in plugin_reserved(): %s\n", one->name);
            }
        }
    }
}

static const struct test tests[] = {
    TEST(a_plugin_leaves_the_cores_options_of_its_entry_alone),
    TEST(patterns_match_whole_names_only),
    TEST(an_open_gateway_is_refused_beyond_loopback),
    TEST(a_listen_address_needs_a_port),
    TEST(every_problem_of_a_file_is_told_with_its_place),
    TEST(keys_are_checked_and_never_shown),
    TEST(single_values_are_checked_at_the_start),
    TEST(one_key_is_one_identity),
    TEST(the_address_of_the_command_line_stands_for_the_files),
};

int main(int argc, char **argv)
{
    return run_tests("gateway", tests, COUNT_OF(tests), argc, argv);
}
