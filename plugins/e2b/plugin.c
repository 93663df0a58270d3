/* The sandbox provider `e2b`: its options, opening, closing. */
#include "api.h"

#include <stdlib.h>
#include <string.h>

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
    {.name = "sandbox_domains",
     .type = SG_STRINGS,
     FIELD(sandbox_domains),
     .help = "domains that the API may say a sandbox is at, beside that of 'domain'; those below "
             "them too. Any other is refused"},
    {.name = "ca_file",
     .type = SG_STRING,
     FIELD(ca_file),
     .help = "the absolute path of certificates (PEM) to trust instead of the system's"},
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
    {.name = "env",
     .type = SG_MAP,
     .flags = SG_SECRET,
     FIELD(env),
     .help = "environment variables of all code"},
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
     .help = "the hard stop: more sandboxes at one time are refused at once; 0: none. For a plan's "
             "number use sessions.max_containers_total, where requests wait"},
    {0},
};

/* ---- open, close ---- */

static void instance_free(struct e2b *e2b)
{
    sandboxes_clear(e2b);
    orphans_clear(e2b);
    pthread_mutex_destroy(&e2b->lock);
    free(e2b->api_url);
    free(e2b->sandbox_url);
    if (e2b->account != NULL) {
        explicit_bzero(e2b->account, strlen(e2b->account));
    }
    free(e2b->account);
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

static bool take_account(struct e2b *e2b)
{
    struct text account = {0};
    text_printf(&account, "%s\n%s", e2b->api_url, e2b->config->api_key);
    e2b->account = account.overflow ? NULL : account.data;
    return e2b->account != NULL;
}

static const char *account(void *self)
{
    const struct e2b *e2b = self;
    return e2b->account;
}

static void warn_of_open_urls(const struct e2b *e2b, struct sg_call *call)
{
    if (options_url_is_open(e2b->api_url)) {
        sg->log(call, SG_WARN, "'api_url' is plain http: who is on the way can read the API key");
    }
    if (e2b->sandbox_url != NULL && options_url_is_open(e2b->sandbox_url)) {
        sg->log(call, SG_WARN,
                "'sandbox_url' is plain http: who is on the way can read code, files and the "
                "sandboxes' tokens");
    }
}

static int open_instance(const void *config, struct sg_call *call, void **ret_self,
                         struct sg_error *err)
{
    int code = options_check(config, err);
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
    if (!take_urls(e2b) || !take_account(e2b)) {
        instance_free(e2b);
        return sg->fail(err, SG_E_CONFIG, "no memory");
    }
    warn_of_open_urls(e2b, call);
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
    .account = account,
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
