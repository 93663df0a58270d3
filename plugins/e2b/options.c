/* What options may be beyond their type, alone and together. Said at the start, as each would otherwise be noticed by the
 * first sandbox, or never. */
#include "api.h"
#include "ca_file.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* HOST[:PORT] or [ADDRESS][:PORT]. */
static bool authority_is_valid(const char *text)
{
    char inside[64];
    struct in6_addr address;
    if (text[0] != '[') {
        return api_domain_is_valid(text);
    }
    size_t len = strcspn(text + 1, "]");
    if (len >= sizeof inside || text[1 + len] != ']') {
        return false;
    }
    memcpy(inside, text + 1, len);
    inside[len] = '\0';
    const char *behind = text + len + 2;
    return inet_pton(AF_INET6, inside, &address) == 1 &&
           (behind[0] == '\0' || (behind[0] == ':' && api_port_is_valid(behind + 1)));
}

/* http://HOST[:PORT][/PATH] or https://…; TLS only where it is asked for. */
static bool url_is_valid(const char *url)
{
    char authority[256];
    size_t scheme = strncmp(url, "https://", 8) == 0 ? 8 : strncmp(url, "http://", 7) == 0 ? 7 : 0;
    if (scheme == 0 || strlen(url) > 1000) {
        return false;
    }
    size_t len = strcspn(url + scheme, "/");
    if (len >= sizeof authority) {
        return false;
    }
    memcpy(authority, url + scheme, len);
    authority[len] = '\0';
    for (const char *c = url + scheme + len; *c != '\0'; c++) {
        if (!isalnum((unsigned char)*c) && strchr("-._:[]/~", *c) == NULL) {
            return false;
        }
    }
    return authority_is_valid(authority);
}

static bool is_this_machine(const char *host)
{
    struct in_addr address;
    return strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
           (inet_pton(AF_INET, host, &address) == 1 && ntohl(address.s_addr) >> 24 == 127);
}

bool options_url_is_open(const char *url)
{
    char host[256];
    if (strncmp(url, "http://", 7) != 0) {
        return false;
    }
    url += 7;
    size_t len = url[0] == '[' ? strcspn(url, "]") + 1 : strcspn(url, ":/");
    (void)snprintf(host, sizeof host, "%.*s", (int)len, url); /* fits: it was checked */
    return !is_this_machine(host);
}

/* Perhaps a password: it is not repeated. */
static int check_user(const char *name, const char *text, struct sg_error *err)
{
    return text == NULL || strchr(text, '@') == NULL
               ? 0
               : sg->fail(err, SG_E_CONFIG, "'%s' must not hold a user or password ('@')", name);
}

static int check_url(const char *name, const char *url, struct sg_error *err)
{
    int code = check_user(name, url, err);
    return code != 0 || url == NULL || url_is_valid(url)
               ? code
               : sg->fail(err, SG_E_CONFIG,
                          "'%s' must be https://HOST[:PORT] or http://…, with a path or without, "
                          "but nothing else, not '%.100s'",
                          name, url);
}

static int check_domain(const struct e2b_config *config, struct sg_error *err)
{
    int code = check_user("domain", config->domain, err);
    return code != 0 || api_domain_is_valid(config->domain)
               ? code
               : sg->fail(err, SG_E_CONFIG,
                          "'domain' must be a host name, perhaps with ':PORT', not '%.100s'",
                          config->domain);
}

static int check_sandbox_domains(const struct e2b_config *config, struct sg_error *err)
{
    const char *const *domain = config->sandbox_domains;
    if (domain[0] != NULL && config->sandbox_url != NULL) {
        return sg->fail(
            err, SG_E_CONFIG,
            "'sandbox_domains' is of no use where 'sandbox_url' says where all sandboxes "
            "are: leave out one of them");
    }
    while (*domain != NULL && api_domain_is_valid(*domain)) {
        domain++;
    }
    return *domain == NULL ? 0
                           : sg->fail(err, SG_E_CONFIG,
                                      "'sandbox_domains': '%.100s' is no host name, perhaps with "
                                      "':PORT'",
                                      *domain);
}

/* ---- certificates ---- */

static bool is_http(const char *url)
{
    return url != NULL && strncmp(url, "http://", 7) == 0;
}

static int check_ca(const struct e2b_config *config, struct sg_error *err)
{
    const char *path = config->ca_file;
    if (path == NULL) {
        return 0;
    }
    if (is_http(config->api_url) && is_http(config->sandbox_url)) {
        return sg->fail(err, SG_E_CONFIG,
                        "'ca_file' is of no use where 'api_url' and 'sandbox_url' are plain http: "
                        "leave it out, or set https URLs");
    }
    return ca_file_check(path, err);
}

static int check_template(const struct e2b_config *config, struct sg_error *err)
{
    const char *name = config->template_name;
    size_t len = 0;
    while (name[len] > 0x20 && name[len] < 0x7F) {
        len++;
    }
    if (len == 0 && name[0] == '\0') {
        return sg->fail(err, SG_E_CONFIG, "'template' must not be empty");
    }
    return name[len] == '\0'
               ? 0
               : sg->fail(err, SG_E_CONFIG, "'template' must be printable ASCII without spaces");
}

static int check_places(const struct e2b_config *config, struct sg_error *err)
{
    int code = check_domain(config, err);
    code = code != 0 ? code : check_url("api_url", config->api_url, err);
    code = code != 0 ? code : check_url("sandbox_url", config->sandbox_url, err);
    code = code != 0 ? code : check_sandbox_domains(config, err);
    code = code != 0 ? code : check_ca(config, err);
    return code != 0 ? code : check_template(config, err);
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

/* Meant as an address or a network: no name has only these characters. */
static bool is_address(const char *text)
{
    size_t len = strlen(text);
    bool is_four = strspn(text, "0123456789./") == len;
    bool is_six = strspn(text, "0123456789abcdefABCDEF:./") == len && strchr(text, ':') != NULL;
    return len > 0 && (is_four || is_six);
}

/* A.B.C.D or of IPv6, perhaps with /LENGTH. */
static bool address_is_valid(const char *text)
{
    char address[64];
    struct in6_addr parsed; /* has room for both */
    size_t len = strcspn(text, "/");
    if (len >= sizeof address) {
        return false;
    }
    memcpy(address, text, len);
    address[len] = '\0';
    bool is_six = strchr(address, ':') != NULL;
    if (inet_pton(is_six ? AF_INET6 : AF_INET, address, &parsed) != 1) {
        return false;
    }
    const char *prefix = text + len + 1;
    size_t digits = text[len] == '\0' ? 0 : strspn(prefix, "0123456789");
    bool is_number = digits > 0 && digits <= 3 && (prefix[0] != '0' || digits == 1);
    return text[len] == '\0' ||
           (is_number && prefix[digits] == '\0' && strtol(prefix, NULL, 10) <= (is_six ? 128 : 32));
}

static int check_address(const char *name, const char *rule, struct sg_error *err)
{
    return !is_address(rule) || address_is_valid(rule)
               ? 0
               : sg->fail(err, SG_E_CONFIG,
                          "'%s': '%.100s' is no address and no network: 192.0.2.1, 192.0.2.0/24, "
                          "2001:db8::1 and 2001:db8::/32 are",
                          name, rule);
}

static bool is_host_rule(const char *text)
{
    return api_domain_is_valid(strncmp(text, "*.", 2) == 0 ? text + 2 : text) &&
           strchr(text, ':') == NULL;
}

static int check_addresses(const struct e2b_config *config, struct sg_error *err)
{
    int code = 0;
    for (size_t i = 0; code == 0 && config->allow_out[i] != NULL; i++) {
        code = check_address("allow_out", config->allow_out[i], err);
    }
    for (size_t i = 0; code == 0 && config->deny_out[i] != NULL; i++) {
        code = check_address("deny_out", config->deny_out[i], err);
    }
    return code;
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
    int code = check_addresses(config, err);
    code = code != 0 ? code : check_rules(config, err);
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

/* ---- all ---- */

int options_check(const struct e2b_config *config, struct sg_error *err)
{
    int code = check_key(config, err);
    code = code != 0 ? code : check_places(config, err);
    code = code != 0 ? code : check_env(config, err);
    return code != 0 ? code : check_network(config, err);
}
