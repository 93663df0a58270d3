/* What is asked of the API of one sandbox, and how its answers are read: nothing in them is trusted. */
#include "api.h"

#include "json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define OLD_ID_BYTES_MIN 15 /* before the dash */
#define CONNECT_WHAT "cannot find the sandbox again"

/* ---- what may stand in an answer ---- */

static bool is_id_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* E2B's old ids have the same behind a dash for all; of a service whose ids have dashes themselves nothing may be cut. */
bool api_id(const char *text, size_t len, char ret[64])
{
    const char *dash = memchr(text, '-', len);
    size_t id_len = dash == NULL ? len : (size_t)(dash - text);
    if (id_len == 0 || id_len > 63 || (dash != NULL && id_len < OLD_ID_BYTES_MIN)) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (!is_id_character(text[i]) && i != id_len) {
            return false;
        }
    }
    memcpy(ret, text, id_len);
    ret[id_len] = '\0';
    return true;
}

static bool is_domain_character(char c)
{
    return is_id_character(c) || (c >= 'A' && c <= 'Z') || c == '.' || c == '-';
}

bool api_port_is_valid(const char *port)
{
    size_t digits = strspn(port, "0123456789");
    return digits > 0 && digits <= 5 && port[digits] == '\0' && port[0] != '0' &&
           strtol(port, NULL, 10) <= 65535;
}

/* Host characters, and perhaps a port. */
bool api_domain_is_valid(const char *domain)
{
    size_t len = 0;
    while (is_domain_character(domain[len])) {
        len++;
    }
    bool is_host = len > 0 && len < 200 && domain[0] != '.' && domain[0] != '-' &&
                   domain[len - 1] != '.' && domain[len - 1] != '-' && strstr(domain, "..") == NULL;
    if (!is_host || domain[len] == '\0') {
        return is_host;
    }
    return domain[len] == ':' && api_port_is_valid(domain + len + 1);
}

/* DOMAIN is `base` or below it, at its port or at that of https. */
static bool is_within(const char *domain, const char *base)
{
    size_t len = strcspn(domain, ":"), base_len = strcspn(base, ":");
    bool is_port = domain[len] == '\0' || strcmp(domain + len, base + base_len) == 0;
    size_t above = len > base_len ? len - base_len : 0;
    return is_port && len >= base_len && strncasecmp(domain + above, base, base_len) == 0 &&
           (above == 0 || domain[above - 1] == '.');
}

/* An API that is wrong, or is not E2B's, must not send us to just any host. */
static bool is_expected(const struct e2b_config *config, const char *domain)
{
    bool is_one = is_within(domain, config->domain);
    for (size_t i = 0; !is_one && config->sandbox_domains[i] != NULL; i++) {
        is_one = is_within(domain, config->sandbox_domains[i]);
    }
    return is_one;
}

void api_encode(struct text *text, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = data[i];
        bool is_plain = is_domain_character(c) || c == '_';
        if (is_plain) {
            text_put(text, &c, 1);
        } else {
            text_printf(text, "%%%02X", (unsigned char)c);
        }
    }
}

/* A string of at most size - 1 bytes of printable ASCII without spaces; "" where it is absent or null. */
static bool take_text(struct json_value value, char *ret, size_t size)
{
    ret[0] = '\0';
    if (value.data == NULL || json_is_null(value)) {
        return true;
    }
    if (!json_is_string(value) || value.len - 2 > size - 5) { /* with room to decode */
        return false;
    }
    struct json_value inside = json_inside(value);
    size_t len = json_decode(&inside, ret, size - 1);
    ret[len] = '\0';
    for (size_t i = 0; i < len; i++) {
        if (ret[i] <= 0x20 || ret[i] >= 0x7F) {
            ret[0] = '\0';
            return false;
        }
    }
    return true;
}

/* "0.5.7", perhaps with more behind it. */
static bool take_version(const char *text, unsigned ret[3])
{
    for (size_t i = 0; i < 3; i++) {
        size_t digits = strspn(text, "0123456789");
        if (digits == 0 || digits > 6 || (i < 2 && text[digits] != '.')) {
            return false;
        }
        ret[i] = 0;
        for (size_t k = 0; k < digits; k++) {
            ret[i] = ret[i] * 10 + (unsigned)(text[k] - '0');
        }
        text += digits + 1;
    }
    return true;
}

enum { ANSWER_ID, ANSWER_DOMAIN, ANSWER_ENVD_TOKEN, ANSWER_TRAFFIC_TOKEN, ANSWER_VERSION, ANSWERS };

/* Of no interest where `sandbox_url` says where all are. NULL: it is fine. */
static const char *read_domain(const struct e2b *e2b, struct json_value value,
                               struct sandbox *sandbox, char unexpected[PROBLEM_BYTES])
{
    char words[256];
    const char *domain = sandbox->domain;
    if (e2b->sandbox_url != NULL) {
        return NULL;
    }
    if (!take_text(value, sandbox->domain, sizeof sandbox->domain) ||
        (domain[0] != '\0' && !api_domain_is_valid(domain))) {
        return "its domain is none";
    }
    if (domain[0] == '\0' || is_expected(e2b->config, domain)) {
        return NULL;
    }
    fault_scrub(e2b, NULL, domain, strlen(domain), words);
    (void)snprintf(
        unexpected, PROBLEM_BYTES,
        "its domain '%s' is neither that of 'domain' nor below it; if it is right, add it "
        "to 'sandbox_domains'",
        words); /* fits */
    return unexpected;
}

static const char *read_rest(const struct json_value *values, struct sandbox *sandbox)
{
    char version[40];
    if (!take_text(values[ANSWER_ENVD_TOKEN], sandbox->envd_token, sizeof sandbox->envd_token) ||
        !take_text(values[ANSWER_TRAFFIC_TOKEN], sandbox->traffic_token,
                   sizeof sandbox->traffic_token)) {
        return "its access token is no printable text of at most 507 bytes";
    }
    if (!take_text(values[ANSWER_VERSION], version, sizeof version) ||
        !take_version(version, sandbox->envd_version)) {
        return "its 'envdVersion' is no version";
    }
    if (sandbox->envd_version[0] == 0 && sandbox->envd_version[1] == 0) {
        return "its template is older than envd 0.1.0; build it anew";
    }
    return NULL;
}

struct sandbox *api_read_sandbox(const struct e2b *e2b, const struct exchange *x, char ret_id[64],
                                 char ret_problem[PROBLEM_BYTES])
{
    static const char *const names[ANSWERS] = {"sandboxID", "domain", "envdAccessToken",
                                               "trafficAccessToken", "envdVersion"};
    struct json_value values[ANSWERS];
    char id[128], unexpected[PROBLEM_BYTES];
    const char *problem = NULL;
    struct sandbox *sandbox = NULL;
    ret_id[0] = '\0';
    if (!json_find(x->body_kept, x->body_kept_len, names, values, ANSWERS)) {
        problem = "it is no JSON object";
    } else if (!take_text(values[ANSWER_ID], id, sizeof id) || !api_id(id, strlen(id), ret_id)) {
        problem = "its 'sandboxID' is none";
    } else if ((sandbox = sandbox_new()) == NULL) {
        problem = "there is no memory for it";
    } else {
        memcpy(sandbox->id, ret_id, sizeof sandbox->id);
        problem = read_domain(e2b, values[ANSWER_DOMAIN], sandbox, unexpected);
        problem = problem != NULL ? problem : read_rest(values, sandbox);
    }
    if (problem == NULL) {
        return sandbox;
    }
    (void)snprintf(ret_problem, PROBLEM_BYTES, "%s", problem);
    sandbox_discard(sandbox);
    return NULL;
}

/* ---- asking ---- */

int64_t api_life_seconds(struct e2b *e2b, struct sg_call *call, int64_t life_ms)
{
    int64_t longest = e2b->config->lifetime;
    bool is_cut = life_ms > longest, warns = false;
    if (is_cut) {
        pthread_mutex_lock(&e2b->lock);
        warns = !e2b->has_warned_of_life;
        e2b->has_warned_of_life = true;
        pthread_mutex_unlock(&e2b->lock);
    }
    if (warns) {
        sg->log(call, SG_WARN,
                "sandboxes are to live for %lld s without use, longer than 'lifetime' (%lld s): "
                "some will end early",
                (long long)life_ms / 1000, (long long)longest / 1000);
    }
    int64_t life = life_ms <= 0 || is_cut ? longest : life_ms;
    return (life + 999) / 1000;
}

/* Of one sandbox. 0 if it succeeds; *ret_missing where E2B does not know it. */
static int ask(struct e2b *e2b, struct sg_call *call, struct exchange *x, const char *id,
               const char *action, const char *what, struct sg_error *err)
{
    char path[128];
    (void)snprintf(path, sizeof path, "/sandboxes/%s%s", id, action); /* fits */
    x->path = path;
    int code = exchange_api(e2b, call, x, err);
    x->path = NULL; /* it ends with this function */
    if (code == 0 && fault_is_missing(x)) {
        return sg->fail(err, SG_E_GONE, "%s: E2B does not know it any more (404)", what);
    }
    bool succeeds = code == 0 && x->reply.status >= 200 && x->reply.status < 300;
    return code != 0 || succeeds ? code : fault_api(e2b, call, x, what, err);
}

int api_connect(struct e2b *e2b, struct sg_call *call, const char *id, struct sandbox **ret,
                struct sg_error *err)
{
    char body[64], answered[64], problem[PROBLEM_BYTES];
    int64_t life_s = api_life_seconds(e2b, call, 0);
    int len = snprintf(body, sizeof body, "{\"timeout\": %lld}", (long long)life_s);
    struct exchange x = {.content_type = "application/json", .body = body, .body_len = (size_t)len};
    int code = ask(e2b, call, &x, id, "/connect", CONNECT_WHAT, err);
    if (code != 0) {
        return code;
    }
    struct sandbox *sandbox = api_read_sandbox(e2b, &x, answered, problem);
    if (sandbox == NULL) {
        return sg->fail(err, SG_E_UNAVAILABLE, CONNECT_WHAT ": E2B's answer cannot be used: %s",
                        problem);
    }
    if (strcmp(answered, id) != 0) {
        sandbox_unref(e2b, sandbox);
        return sg->fail(err, SG_E_UNAVAILABLE,
                        CONNECT_WHAT ": E2B's answer is about another sandbox");
    }
    sandbox_keep(e2b, sandbox, life_s);
    *ret = sandbox;
    return 0;
}

int api_timeout(struct e2b *e2b, struct sg_call *call, const char *id, int64_t life_ms,
                struct sg_error *err)
{
    char body[64];
    int len = snprintf(body, sizeof body, "{\"timeout\": %lld}",
                       (long long)api_life_seconds(e2b, call, life_ms));
    struct exchange x = {.content_type = "application/json", .body = body, .body_len = (size_t)len};
    return ask(e2b, call, &x, id, "/timeout", "cannot lengthen the sandbox's life", err);
}

static void has_room_again(struct e2b *e2b)
{
    pthread_mutex_lock(&e2b->lock);
    e2b->full_until = 0;
    pthread_mutex_unlock(&e2b->lock);
}

int api_delete(struct e2b *e2b, struct sg_call *call, const char *id, int64_t timeout_ms,
               struct sg_error *err)
{
    struct exchange x = {
        .method = "DELETE", .timeout_ms = timeout_ms, .never_waits = timeout_ms > 0};
    int code = ask(e2b, call, &x, id, "", "cannot end the sandbox", err);
    if (code == 0 || code == SG_E_GONE) {
        has_room_again(e2b);
    }
    return code == SG_E_GONE ? 0 : code;
}

bool api_knows_not(struct e2b *e2b, struct sg_call *call, const char *id, struct sg_error *scratch)
{
    struct exchange x = {0};
    return ask(e2b, call, &x, id, "", "cannot look for the sandbox", scratch) == SG_E_GONE;
}
