/* The sandbox provider `e2b`: options, opening, closing. */
#include "api.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIELD(member) SG_FIELD(struct e2b_config, member)

static const struct sg_option options[] = {
    {.name = "api_key",
     .type = SG_STRING,
     .flags = SG_REQUIRED | SG_SECRET,
     FIELD(api_key),
     .help = "the key of the account; sent to the API only"},
    {.name = "domain",
     .type = SG_STRING,
     FIELD(domain),
     .def = "e2b.app",
     .help = "the service's domain, with a port if it is not 443: the API is api.DOMAIN, sandboxes "
             "are below it"},
    {.name = "api_url",
     .type = SG_STRING,
     FIELD(api_url),
     .help = "the API's URL where it is not https://api.DOMAIN; http:// sends the key in the open"},
    {.name = "sandbox_url",
     .type = SG_STRING,
     FIELD(sandbox_url),
     .help = "one URL for the servers of all sandboxes, told apart by headers; absent: each has a "
             "host of its own, https://PORT-ID.DOMAIN"},
    {.name = "ca_file",
     .type = SG_STRING,
     FIELD(ca_file),
     .help = "certificates (PEM) to trust instead of the system's"},
    {.name = "template",
     .type = SG_STRING,
     FIELD(template_name),
     .def = "code-interpreter-v1",
     .help = "what sandboxes are made of; it needs E2B's code interpreter"},
    {.name = "lifetime",
     .type = SG_DURATION,
     FIELD(lifetime),
     .def = "1h",
     .min = "30s",
     .max = "24h",
     .help = "the longest that a sandbox may live without use; E2B's plans allow 1h or 24h"},
    {.name = "internet",
     .type = SG_BOOL,
     FIELD(internet),
     .def = "false",
     .help = "lets sandboxes reach the internet"},
    {.name = "public_traffic",
     .type = SG_BOOL,
     FIELD(public_traffic),
     .def = "false",
     .help = "lets anyone who knows a sandbox's address reach servers in it"},
    {.name = "allow_out",
     .type = SG_STRINGS,
     FIELD(allow_out),
     .help = "hosts, *.hosts, addresses and networks that sandboxes may reach all the same"},
    {.name = "deny_out",
     .type = SG_STRINGS,
     FIELD(deny_out),
     .help = "addresses and networks that sandboxes may not reach; needs 'internet'"},
    {.name = "env", .type = SG_MAP, FIELD(env), .help = "environment variables of all code"},
    {.name = "request_timeout",
     .type = SG_DURATION,
     FIELD(request_timeout),
     .def = "30s",
     .min = "1s",
     .max = "5m",
     .help = "the longest that one request to E2B may take, other than a run of code"},
    {.name = "concurrency",
     .type = SG_INT,
     FIELD(concurrency),
     .def = "0",
     .min = "0",
     .max = "100000",
     .help = "sandboxes at one time; 0: as many as the account allows"},
    {0},
};

/* ---- rules of single options ---- */

/* Its shape is E2B's affair, and others' keys look otherwise; but it goes into a header. */
static int check_key(const struct e2b_config *config, struct sg_error *err)
{
    size_t len = 0;
    while (config->api_key[len] > 0x20 && config->api_key[len] < 0x7F) {
        len++;
    }
    return len > 0 && len <= 4096 && config->api_key[len] == '\0'
               ? 0
               : sg->fail(err, SG_E_CONFIG,
                          "'api_key' must be printable ASCII without spaces, 1 to 4096 bytes; is "
                          "its variable set?");
}

static bool port_is_valid(const char *host, size_t len)
{
    const char *colon = memrchr(host, ':', len);
    if (colon == NULL || memchr(colon, ']', (size_t)(host + len - colon)) != NULL) {
        return true; /* none, or within an address */
    }
    char *end = NULL;
    long port = strtol(colon + 1, &end, 10);
    return end == host + len && port > 0 && port <= 65535;
}

/* http://HOST[:PORT][/PATH] or https://…; TLS only where it is asked for. */
static bool url_is_valid(const char *url)
{
    size_t scheme = strncmp(url, "https://", 8) == 0 ? 8 : strncmp(url, "http://", 7) == 0 ? 7 : 0;
    if (scheme == 0 || strlen(url) > 1000) {
        return false;
    }
    const char *host = url + scheme;
    size_t host_len = strcspn(host, "/");
    for (const char *c = host; *c != '\0'; c++) {
        bool is_host = (size_t)(c - host) < host_len;
        bool is_plain = isalnum((unsigned char)*c) || strchr("-._:[]", *c) != NULL;
        if (!is_plain && (is_host || strchr("/~", *c) == NULL)) {
            return false;
        }
    }
    return host_len > 0 && isalnum((unsigned char)host[0]) + (host[0] == '[') > 0 &&
           port_is_valid(host, host_len);
}

static int check_url(const char *name, const char *url, struct sg_error *err)
{
    if (url != NULL && strchr(url, '@') != NULL) { /* not repeated: it may hold a password */
        return sg->fail(err, SG_E_CONFIG, "'%s' must not hold a user or password", name);
    }
    return url == NULL || url_is_valid(url)
               ? 0
               : sg->fail(err, SG_E_CONFIG,
                          "'%s' must be https://HOST[:PORT] or http://…, with a path or without, "
                          "but nothing else, not '%.100s'",
                          name, url);
}

static int check_places(const struct e2b_config *config, struct sg_error *err)
{
    if (!api_domain_is_valid(config->domain)) {
        return sg->fail(err, SG_E_CONFIG,
                        "'domain' must be a host name, perhaps with ':PORT', not '%.100s'",
                        config->domain);
    }
    int code = check_url("api_url", config->api_url, err);
    code = code != 0 ? code : check_url("sandbox_url", config->sandbox_url, err);
    if (code == 0 && config->ca_file != NULL && config->ca_file[0] != '/') {
        return sg->fail(err, SG_E_CONFIG, "'ca_file' must be an absolute path, not '%.200s'",
                        config->ca_file);
    }
    if (code == 0 && config->ca_file != NULL && access(config->ca_file, R_OK) != 0) {
        return sg->fail(err, SG_E_CONFIG, "'ca_file' cannot be read: '%.200s'", config->ca_file);
    }
    return code == 0 && config->template_name[0] == '\0'
               ? sg->fail(err, SG_E_CONFIG, "'template' must not be empty")
               : code;
}

static int check_env(const struct e2b_config *config, struct sg_error *err)
{
    for (size_t i = 0; i < config->env.count; i++) {
        const char *name = config->env.keys[i];
        size_t len = 0;
        while (isalnum((unsigned char)name[len]) || name[len] == '_') {
            len++;
        }
        if (len == 0 || name[len] != '\0' || isdigit((unsigned char)name[0])) {
            return sg->fail(err, SG_E_CONFIG,
                            "'env': '%.100s' is no name of a variable: letters, digits and '_'",
                            name);
        }
    }
    return 0;
}

/* ---- rules of the network ---- */

/* An address or a network: no name has only these characters. */
static bool is_address(const char *text)
{
    size_t len = strlen(text);
    bool is_four = strspn(text, "0123456789./") == len;
    bool is_six = strspn(text, "0123456789abcdefABCDEF:./") == len && strchr(text, ':') != NULL;
    return len > 0 && (is_four || is_six);
}

static bool is_host_rule(const char *text)
{
    return api_domain_is_valid(strncmp(text, "*.", 2) == 0 ? text + 2 : text) &&
           strchr(text, ':') == NULL;
}

static int check_rules(const struct e2b_config *config, struct sg_error *err)
{
    for (size_t i = 0; config->allow_out[i] != NULL; i++) {
        const char *rule = config->allow_out[i];
        if (!is_address(rule) && !is_host_rule(rule)) {
            return sg->fail(
                err, SG_E_CONFIG,
                "'allow_out': '%.100s' is no host, no *.host, no address and no network", rule);
        }
        if (config->internet && !is_address(rule)) {
            return sg->fail(err, SG_E_CONFIG,
                            "'allow_out': the host '%.100s' needs 'internet: false'; with the "
                            "internet open only addresses are let through 'deny_out'",
                            rule);
        }
    }
    for (size_t i = 0; config->deny_out[i] != NULL; i++) {
        if (!is_address(config->deny_out[i])) {
            return sg->fail(err, SG_E_CONFIG,
                            "'deny_out': '%.100s' is no address and no network; E2B cannot deny "
                            "hosts by name",
                            config->deny_out[i]);
        }
    }
    return 0;
}

static int check_network(const struct e2b_config *config, struct sg_error *err)
{
    int code = check_rules(config, err);
    if (code == 0 && !config->internet && config->deny_out[0] != NULL) {
        return sg->fail(
            err, SG_E_CONFIG,
            "'deny_out' denies nothing more where 'internet' is false; leave it out, or "
            "set 'internet: true'");
    }
    if (code == 0 && config->internet && config->allow_out[0] != NULL &&
        config->deny_out[0] == NULL) {
        return sg->fail(
            err, SG_E_CONFIG,
            "'allow_out' allows nothing more where 'internet' is true and 'deny_out' is "
            "empty; leave it out, or set 'internet: false'");
    }
    return code;
}

/* ---- open, close ---- */

static void instance_free(struct e2b *e2b)
{
    sandboxes_clear(e2b);
    orphans_clear(e2b);
    pthread_mutex_destroy(&e2b->lock);
    free(e2b->api_url);
    free(e2b->sandbox_url);
    e2b->magic = 0;
    free(e2b);
}

/* The URL without slashes at its end. */
static char *base_of(const char *url)
{
    struct text base = {0};
    size_t len = strlen(url);
    while (len > 0 && url[len - 1] == '/') {
        len--;
    }
    text_put(&base, url, len);
    return base.overflow ? NULL : base.data;
}

static bool take_urls(struct e2b *e2b)
{
    const struct e2b_config *config = e2b->config;
    if (config->api_url != NULL) {
        e2b->api_url = base_of(config->api_url);
    } else {
        struct text url = {0};
        text_printf(&url, "https://api.%s", config->domain);
        e2b->api_url = url.overflow ? NULL : url.data;
    }
    e2b->sandbox_url = config->sandbox_url == NULL ? NULL : base_of(config->sandbox_url);
    return e2b->api_url != NULL && (config->sandbox_url == NULL || e2b->sandbox_url != NULL);
}

/* On this machine nobody is on the way. */
static bool sends_in_the_open(const char *url)
{
    static const char *const here[] = {"127.", "localhost", "[::1]"};
    bool is_open = strncmp(url, "http://", 7) == 0;
    for (size_t i = 0; i < sizeof here / sizeof here[0]; i++) {
        is_open = is_open && strncmp(url + 7, here[i], strlen(here[i])) != 0;
    }
    return is_open;
}

static int open_instance(const void *config, struct sg_call *call, void **ret_self,
                         struct sg_error *err)
{
    int code = check_key(config, err);
    code = code != 0 ? code : check_places(config, err);
    code = code != 0 ? code : check_env(config, err);
    code = code != 0 ? code : check_network(config, err);
    if (code != 0) {
        return code;
    }
    struct e2b *e2b = calloc(1, sizeof *e2b);
    if (e2b == NULL) {
        return sg->fail(err, SG_E_CONFIG, "no memory");
    }
    e2b->magic = E2B_MAGIC;
    e2b->config = config;
    pthread_mutex_init(&e2b->lock, NULL);
    if (!take_urls(e2b)) {
        instance_free(e2b);
        return sg->fail(err, SG_E_CONFIG, "no memory");
    }
    if (sends_in_the_open(e2b->api_url)) {
        sg->log(call, SG_WARN, "'api_url' is plain http: who is on the way can read the API key");
    }
    *ret_self = e2b;
    return 0;
}

static void close_instance(void *self, struct sg_call *call)
{
    struct e2b *e2b = self;
    e2b->is_closing = true;
    orphans_clean(e2b, call, NULL, true); /* there is nobody to be told of a failure */
    instance_free(e2b);
}

static const struct sg_sandbox_ops operations = {
    .create = e2b_create,
    .run = e2b_run,
    .destroy = e2b_destroy,
    .touch = e2b_touch,
    .interrupt = e2b_interrupt,
    .put = e2b_put,
    .get = e2b_get,
    .list = e2b_list,
};

static const struct sg_plugin e2b_plugin = {
    .name = "e2b",
    .help = "runs code in sandboxes of E2B, or of a service that speaks its protocol",
    .options = options,
    .config_size = sizeof(struct e2b_config),
    .open = open_instance,
    .close = close_instance,
    .sandbox = &operations,
    .flags = SG_ON_LOOP | SG_DURABLE,
};

SG_PLUGIN_SET("0.1.0", &e2b_plugin);
