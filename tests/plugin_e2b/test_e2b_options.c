/* The options of e2b: what open() refuses, with its message, and what it takes. */
#include "life_fixture.h"

struct option_case {
    const char *name, *value, *name2, *value2;
    const char *message; /* NULL: it opens */
};

#define URL_RULE \
    "must be https://HOST[:PORT] or http://…, with a path or without, but nothing else, not '"
#define USER_RULE "must not hold a user or password ('@')"
#define ADDRESS_RULE \
    "is no address and no network: 192.0.2.1, 192.0.2.0/24, 2001:db8::1 and 2001:db8::/32 are"
#define KEY_RULE \
    "'api_key' must be printable ASCII without spaces, 1 to 4096 bytes; is its variable set?"

static const struct option_case cases[] = {
    {"api_key", "any-shape.of_key", NULL, NULL, NULL},
    {"api_key", "", NULL, NULL, KEY_RULE},
    {"api_key", "two words", NULL, NULL, KEY_RULE},
    {"api_key", "a\r\nX-Other: b", NULL, NULL, KEY_RULE},
    {"api_key", "k\xC3\xA9y", NULL, NULL, KEY_RULE},
    {"domain", "e2b.test:8443", NULL, NULL, NULL},
    {"domain", "", NULL, NULL, "'domain' must be a host name, perhaps with ':PORT', not ''"},
    {"domain", "https://e2b.app", NULL, NULL,
     "'domain' must be a host name, perhaps with ':PORT', not 'https://e2b.app'"},
    {"domain", "e2b.app/", NULL, NULL,
     "'domain' must be a host name, perhaps with ':PORT', not 'e2b.app/'"},
    {"domain", "e2b..app", NULL, NULL,
     "'domain' must be a host name, perhaps with ':PORT', not 'e2b..app'"},
    {"domain", "e2b.app:0443", NULL, NULL,
     "'domain' must be a host name, perhaps with ':PORT', not 'e2b.app:0443'"},
    {"api_url", "http://127.0.0.1:3000", NULL, NULL, NULL},
    {"api_url", "https://[::1]:3000/a/b/", NULL, NULL, NULL},
    {"api_url", "127.0.0.1:3000", NULL, NULL, "'api_url' " URL_RULE "127.0.0.1:3000'"},
    {"api_url", "ftp://a", NULL, NULL, "'api_url' " URL_RULE "ftp://a'"},
    {"api_url", "https://", NULL, NULL, "'api_url' " URL_RULE "https://'"},
    {"domain", "e2b.app:65535", NULL, NULL, NULL},
    {"domain", "e2b.app:65536", NULL, NULL,
     "'domain' must be a host name, perhaps with ':PORT', not 'e2b.app:65536'"},
    {"domain", "e2b.app:0", NULL, NULL,
     "'domain' must be a host name, perhaps with ':PORT', not 'e2b.app:0'"},
    {"domain", "user:pass@host", NULL, NULL, "'domain' " USER_RULE},
    {"api_url", "https://user@host", NULL, NULL, "'api_url' " USER_RULE},
    {"sandbox_url", "https://user:secret@host/", NULL, NULL, "'sandbox_url' " USER_RULE},
    {"api_url", "https://host:0", NULL, NULL, "'api_url' " URL_RULE "https://host:0'"},
    {"api_url", "https://host:65536/a", NULL, NULL, "'api_url' " URL_RULE "https://host:65536/a'"},
    {"api_url", "https://host:1:2", NULL, NULL, "'api_url' " URL_RULE "https://host:1:2'"},
    {"sandbox_url", "http://[::1]:70000", NULL, NULL,
     "'sandbox_url' " URL_RULE "http://[::1]:70000'"},
    {"sandbox_url", "http://[::1", NULL, NULL, "'sandbox_url' " URL_RULE "http://[::1'"},
    {"sandbox_url", "http://[::1]", NULL, NULL, NULL},
    {"api_url", "https://host/?a=b", NULL, NULL, "'api_url' " URL_RULE "https://host/?a=b'"},
    {"sandbox_url", "https://sandbox.e2b.test", NULL, NULL, NULL},
    {"sandbox_url", "http://a b", NULL, NULL, "'sandbox_url' " URL_RULE "http://a b'"},
    {"sandbox_domains", "e2b.dev\nours.example:8443", NULL, NULL, NULL},
    {"sandbox_domains", "e2b.dev\nhttps://a", NULL, NULL,
     "'sandbox_domains': 'https://a' is no host name, perhaps with ':PORT'"},
    {"sandbox_domains", "e2b.dev", "sandbox_url", "https://a.example",
     "'sandbox_domains' is of no use where 'sandbox_url' says where all sandboxes are: leave out "
     "one of them"},
    {"ca_file", "ca.pem", NULL, NULL, "'ca_file' must be an absolute path, not 'ca.pem'"},
    {"ca_file", "/dev/null", NULL, NULL, "'ca_file' is no regular file: '/dev/null'"},
    {"ca_file", "/tmp", NULL, NULL, "'ca_file' is no regular file: '/tmp'"},
    {"ca_file", E2B_DATA "/derive.py", NULL, NULL,
     "'ca_file' holds no certificate (PEM, '-----BEGIN CERTIFICATE') in its first MiB: '" E2B_DATA
     "/derive.py'"},
    {"ca_file", "/no/such.pem", NULL, NULL, "'ca_file' cannot be read: '/no/such.pem'"},
    {"template", "", NULL, NULL, "'template' must not be empty"},
    {"template", "team/mine:v1", NULL, NULL, NULL},
    {"template", "two words", NULL, NULL, "'template' must be printable ASCII without spaces"},
    {"template", "caf\xC3\xA9", NULL, NULL, "'template' must be printable ASCII without spaces"},
    {"allow_out", "pypi.org\n*.example.org\n10.0.0.0/8\n2001:db8::/32", NULL, NULL, NULL},
    {"allow_out", "https://pypi.org", NULL, NULL,
     "'allow_out': 'https://pypi.org' is no host, no *.host, no address and no network"},
    {"allow_out", "a.example:443", NULL, NULL,
     "'allow_out': 'a.example:443' is no host, no *.host, no address and no network"},
    {"allow_out", "pypi.org", "internet", "true",
     "'allow_out': the host 'pypi.org' needs 'internet: false'; with the internet open only "
     "addresses are let through 'deny_out'"},
    {"allow_out", "10.0.0.1", "internet", "true",
     "'allow_out' allows nothing more where 'internet' is true and 'deny_out' is empty; leave it "
     "out, or set 'internet: false'"},
    {"deny_out", "10.0.0.0/8\n::/0", "internet", "true", NULL},
    {"deny_out", "10.0.0.0/8", NULL, NULL,
     "'deny_out' denies nothing more where 'internet' is false; leave it out, or set 'internet: "
     "true'"},
    {"allow_out", "10.0.0.0/33", NULL, NULL, "'allow_out': '10.0.0.0/33' " ADDRESS_RULE},
    {"allow_out", "10.0.0", NULL, NULL, "'allow_out': '10.0.0' " ADDRESS_RULE},
    {"allow_out", "10.0.0.256", NULL, NULL, "'allow_out': '10.0.0.256' " ADDRESS_RULE},
    {"allow_out", "10.0.0.0/08", NULL, NULL, "'allow_out': '10.0.0.0/08' " ADDRESS_RULE},
    {"allow_out", "10.0.0.0/", NULL, NULL, "'allow_out': '10.0.0.0/' " ADDRESS_RULE},
    {"deny_out", "2001:db8::/129", "internet", "true",
     "'deny_out': '2001:db8::/129' " ADDRESS_RULE},
    {"deny_out", "1::2::3", "internet", "true", "'deny_out': '1::2::3' " ADDRESS_RULE},
    {"deny_out", "10.0.0.0/8/8", "internet", "true", "'deny_out': '10.0.0.0/8/8' " ADDRESS_RULE},
    {"deny_out", "0.0.0.0/0\n2001:db8::1/128", "internet", "true", NULL},
    {"deny_out", "evil.example", "internet", "true",
     "'deny_out': 'evil.example' is no address and no network; E2B cannot deny hosts by name"},
};

static void what_cannot_work_is_refused_with_its_remedy(void)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fixture f;
        void *self = NULL;
        fixture_init(&f);
        config_set(plugin, f.config, cases[i].name, cases[i].value);
        if (cases[i].name2 != NULL) {
            config_set(plugin, f.config, cases[i].name2, cases[i].value2);
        }
        int code = plugin->open(f.config, f.call, &self, call_error(f.call));
        CU_ASSERT_EQUAL(code, cases[i].message == NULL ? 0 : SG_E_CONFIG);
        expect_message(&f, cases[i].message == NULL ? "" : cases[i].message);
        f.e2b = code == 0 ? self : NULL;
        fixture_free(&f);
    }
}

static void a_file_of_certificates_is_taken_by_what_it_holds(void)
{
    static const struct {
        const char *text;
        bool opens;
    } files[] = {
        {"# mine\n-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n", true},
        {"-----BEGIN TRUSTED CERTIFICATE-----\n", true},
        {"-----BEGIN PRIVATE KEY-----\n", false},
        {"", false},
    };
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        char path[64];
        struct fixture f;
        void *self = NULL;
        ca_file_new(files[i].text, path);
        fixture_init(&f);
        config_set(plugin, f.config, "ca_file", path);
        int code = plugin->open(f.config, f.call, &self, call_error(f.call));
        CU_ASSERT_EQUAL(code, files[i].opens ? 0 : SG_E_CONFIG);
        f.e2b = code == 0 ? self : NULL;
        unlink(path);
        fixture_free(&f);
    }
}

static void certificates_are_of_no_use_without_tls(void)
{
    for (int both = 0; both < 2; both++) {
        char path[64];
        struct fixture f;
        void *self = NULL;
        ca_file_new("-----BEGIN CERTIFICATE-----\n", path);
        fixture_init(&f);
        config_set(plugin, f.config, "ca_file", path);
        config_set(plugin, f.config, "sandbox_url", "http://127.0.0.1:3001");
        config_set(plugin, f.config, "api_url",
                   both ? "http://127.0.0.1:3000" : "https://127.0.0.1");
        int code = plugin->open(f.config, f.call, &self, call_error(f.call));
        CU_ASSERT_EQUAL(code, both ? SG_E_CONFIG : 0);
        if (both) {
            expect_message(&f, "'ca_file' is of no use where 'api_url' and 'sandbox_url' are plain "
                               "http: leave it out, or set https URLs");
        }
        f.e2b = self;
        unlink(path);
        fixture_free(&f);
    }
}

#define OPEN_API "'api_url' is plain http: who is on the way can read the API key"
#define OPEN_SANDBOXES                                                             \
    "'sandbox_url' is plain http: who is on the way can read code, files and the " \
    "sandboxes' tokens"

static void plain_http_is_warned_of_unless_it_stays_on_this_machine(void)
{
    static const struct {
        const char *option, *url, *warning;
    } urls[] = {
        {"api_url", "http://api.example/v", OPEN_API},
        {"api_url", "http://localhost.example", OPEN_API},
        {"api_url", "http://127.example:80", OPEN_API},
        {"api_url", "http://[::2]/a", OPEN_API},
        {"api_url", "https://api.example", ""},
        {"api_url", "http://localhost/a", ""},
        {"api_url", "http://127.9.0.1:3000", ""},
        {"api_url", "http://[::1]:3000", ""},
        {"sandbox_url", "http://10.0.0.1", OPEN_SANDBOXES},
        {"sandbox_url", "http://localhost:3001", ""},
    };
    for (size_t i = 0; i < COUNT_OF(urls); i++) {
        struct fixture f;
        fixture_init(&f);
        config_set(plugin, f.config, urls[i].option, urls[i].url);
        fixture_open(&f);
        CU_ASSERT_STRING_EQUAL(f.call->logged, urls[i].warning);
        fixture_free(&f);
    }
}

static void variables_have_names_that_a_shell_knows(void)
{
    static const struct {
        const char *name, *message;
    } names[] = {
        {"PATH_2", NULL},
        {"", "'env': '' is no name of a variable: letters, digits and '_'"},
        {"2ND", "'env': '2ND' is no name of a variable: letters, digits and '_'"},
        {"A=B", "'env': 'A=B' is no name of a variable: letters, digits and '_'"},
    };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        static const char *const values[] = {"v"};
        struct fixture f;
        void *self = NULL;
        fixture_init(&f);
        f.config->env = (struct sg_map){&names[i].name, values, 1};
        int code = plugin->open(f.config, f.call, &self, call_error(f.call));
        CU_ASSERT_EQUAL(code, names[i].message == NULL ? 0 : SG_E_CONFIG);
        expect_message(&f, names[i].message == NULL ? "" : names[i].message);
        f.e2b = code == 0 ? self : NULL;
        fixture_free(&f);
    }
}

static void without_options_but_a_key_nothing_is_open(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    CU_ASSERT_STRING_EQUAL(f.e2b->api_url, "https://api.e2b.app");
    CU_ASSERT_PTR_NULL(f.e2b->sandbox_url);
    CU_ASSERT_FALSE(f.config->internet);
    CU_ASSERT_FALSE(f.config->public_traffic);
    CU_ASSERT_EQUAL(f.config->lifetime, 3600000);
    CU_ASSERT_EQUAL(plugin->flags, SG_ON_LOOP | SG_DURABLE);
    bool is_secret = false;
    for (const struct sg_option *option = plugin->options; option->name != NULL; option++) {
        is_secret = is_secret || (strcmp(option->name, "api_key") == 0 &&
                                  option->flags == (SG_REQUIRED | SG_SECRET));
    }
    CU_ASSERT_TRUE(is_secret);
    fixture_free(&f);
}

static void sandboxes_belong_to_a_key_at_an_api(void)
{
    struct fixture f;
    fixture_init(&f);
    fixture_open(&f);
    CU_ASSERT_STRING_EQUAL(plugin->sandbox->account(f.e2b), "https://api.e2b.app\n" KEY);
    fixture_free(&f);
}

static const struct test tests[] = {
    TEST(what_cannot_work_is_refused_with_its_remedy),
    TEST(a_file_of_certificates_is_taken_by_what_it_holds),
    TEST(sandboxes_belong_to_a_key_at_an_api),
    TEST(certificates_are_of_no_use_without_tls),
    TEST(plain_http_is_warned_of_unless_it_stays_on_this_machine),
    TEST(variables_have_names_that_a_shell_knows),
    TEST(without_options_but_a_key_nothing_is_open),
};

int main(int argc, char **argv)
{
    return run_tests("e2b_options", tests, COUNT_OF(tests), argc, argv);
}
