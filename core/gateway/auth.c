/* Who calls. The identity is the name of the key entry that the client's key matches, decided here alone; nothing in a
 * body or header can change it. Where authentication is off there is one identity, and what browsers add (Origin, Host)
 * is checked instead: any web page that the operator visits could otherwise run code here. */
#include "gateway/request.h"

#include "base/clock.h"
#include "base/digest.h"
#include "base/identity.h"
#include "base/limits.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static int refuse(struct sg_error *err, int status, const char *reason, const char *message)
{
    int rc = error_set(err, SG_E_DENIED, "%s", message);
    err->status = status;
    snprintf(err->reason, sizeof err->reason, "%s", reason);
    return rc;
}

/* The key that the client presents: OpenAI's way or Anthropic's. */
static struct str presented_key(const struct http_head *head)
{
    struct str authorization = http_head_get(head, "authorization");
    if (authorization.len > 7 &&
        str_eq_nocase((struct str){authorization.data, 7}, STR("bearer "))) {
        return str_trim((struct str){authorization.data + 7, authorization.len - 7});
    }
    return http_head_get(head, "x-api-key");
}

/* Clients of either vendor send one key in one field. Two that differ may have been read in two ways by what stands in
 * front, so nobody guesses. */
static bool keys_differ(const struct http_head *head, struct str key)
{
    for (size_t i = 0; i < head->count; i++) {
        struct str name = head->fields[i].name, value = head->fields[i].value;
        bool is_bearer = str_eq_nocase(name, STR("authorization"));
        if (is_bearer && value.len > 7) {
            value = str_trim((struct str){value.data + 7, value.len - 7});
        }
        if ((is_bearer || str_eq_nocase(name, STR("x-api-key"))) && !str_eq(value, key)) {
            return true;
        }
    }
    return false;
}

/* Whom the key speaks for, in this request: the identity is both. What tells the models needs no user. */
static int read_user(struct request *r, struct sg_error *err)
{
    const char *name = r->key->user_header;
    if (name == NULL || r->route.kind == ROUTE_MODELS || r->route.kind == ROUTE_MODEL) {
        return 0;
    }
    const struct http_head *head = http_request_head(r->exchange);
    size_t count = http_head_count(head, name);
    struct str user = http_head_get(head, name);
    bool is_good = count == 1 && user.len > 0 && user.len <= LIMIT_USER_BYTES;
    for (size_t i = 0; i < user.len && is_good; i++) {
        is_good = (unsigned char)user.data[i] >= 0x20 && user.data[i] != 0x7f;
    }
    if (!is_good) {
        (void)error_set_param(err, SG_E_INVALID, name,
                              "This key speaks for users: the header '%s' must name the request's "
                              "user, once, in 1 to %d bytes without control characters.",
                              name, LIMIT_USER_BYTES);
        (void)snprintf(err->reason, sizeof err->reason, "user_missing"); /* fits */
        return err->code;
    }
    r->identity = str_of(
        arena_printf(r->arena, "%s%c%.*s", r->key->name, IDENTITY_MARK, (int)user.len, user.data));
    return 0;
}

static int present_key(struct request *r, struct str *ret, struct sg_error *err)
{
    struct str key = presented_key(http_request_head(r->exchange));
    if (key.len == 0) {
        return refuse(
            err, 401, "invalid_api_key",
            "No API key was given: send it as 'Authorization: Bearer KEY' or 'x-api-key'.");
    }
    if (keys_differ(http_request_head(r->exchange), key)) {
        return refuse(err, 400, "ambiguous_api_key",
                      "Two different API keys were given: send one, in one header.");
    }
    *ret = key;
    return 0;
}

/* The entry of the key that was presented. */
static int find_key(struct request *r, const struct auth_key **ret, struct sg_error *err)
{
    struct str key;
    int rc = present_key(r, &key, err);
    if (rc != 0) {
        return rc;
    }
    uint8_t hash[SHA256_BYTES];
    sha256(key, hash);
    *ret = keys_find(&r->settings->keys, hash);
    if (*ret == NULL) {
        return refuse(err, 401, "invalid_api_key", "The API key is not one of this gateway's.");
    }
    if (clock_unix_ms() >= (*ret)->expires_unix_ms) {
        return refuse(err, 401, "expired_api_key",
                      "The API key has expired: ask the gateway's operator for another.");
    }
    return 0;
}

static int check_key(struct request *r, struct sg_error *err)
{
    const struct auth_key *found;
    int rc = find_key(r, &found, err);
    if (rc != 0) {
        return rc;
    }
    if (found->for_admin) {
        return refuse(err, 403, "key_for_admin_only",
                      "This key opens the gateway's admin address and nothing else.");
    }
    bool wants_metrics = r->route.kind == ROUTE_METRICS;
    if (wants_metrics && !found->for_metrics) {
        return refuse(err, 403, "key_not_for_metrics",
                      "This key does not open /metrics: its operator can make one that does, with "
                      "'use: metrics'.");
    }
    if (!wants_metrics && found->for_metrics) {
        return refuse(err, 403, "key_for_metrics_only",
                      "This key opens /metrics and nothing else.");
    }
    r->key = found;
    r->identity = str_of(found->name);
    return read_user(r, err);
}

/* "host:port" without the port; brackets of an IPv6 address stay. */
static struct str host_name(struct str host)
{
    for (size_t i = host.len; i > 0; i--) {
        if (host.data[i - 1] == ':') {
            return (struct str){host.data, i - 1};
        }
        if (!isdigit((unsigned char)host.data[i - 1])) {
            break;
        }
    }
    return host;
}

static bool host_is_known(struct request *r, struct str host)
{
    struct str name = host_name(host);
    const char *const *hosts = r->gateway->config->server.hosts;
    static const char *const local[] = {"localhost", "127.0.0.1", "[::1]", NULL};
    for (const char *const *known = local; *known != NULL; known++) {
        if (str_eq_nocase(name, str_of(*known))) {
            return true;
        }
    }
    for (; *hosts != NULL; hosts++) {
        if (str_eq_nocase(name, str_of(*hosts)) || str_eq_nocase(host, str_of(*hosts))) {
            return true;
        }
    }
    const struct listen *listen = &r->gateway->listen;
    for (size_t i = 0; i < listen->count; i++) {
        if (str_eq_nocase(name, str_of(listen->hosts[i]))) {
            return true;
        }
    }
    return false;
}

/* A page of another place fetches, as an image for one, or links to here. Browsers say so where they send no Origin. What
 * is no browser sends none of it; 'none' is the address bar. */
static bool comes_from_elsewhere(const struct http_head *head)
{
    struct str site = http_head_get(head, "sec-fetch-site");
    return site.data != NULL && !str_is(site, "same-origin") && !str_is(site, "none");
}

static int check_browser(struct request *r, struct sg_error *err)
{
    const struct http_head *head = http_request_head(r->exchange);
    struct str origin = http_head_get(head, "origin");
    if (origin.data == NULL && comes_from_elsewhere(head)) {
        return refuse(
            err, 403, "origin_not_allowed",
            "Web pages of other sites may neither fetch from the gateway nor link to it.");
    }
    if (origin.data != NULL) {
        if (!list_has(r->gateway->config->server.origins, origin)) {
            return refuse(err, 403, "origin_not_allowed",
                          "Web pages of this origin may not call the gateway: its operator can "
                          "list the origin under server.origins.");
        }
        r->origin = origin;
    }
    if (head->host.len > 0 && /* none at all is HTTP/1.0, which no browser speaks */
        !host_is_known(r, head->host)) {
        return refuse(err, 403, "host_not_allowed",
                      "The gateway does not know itself by this Host: its operator can list the "
                      "name under server.hosts.");
    }
    r->identity = STR("anonymous");
    return 0;
}

/* Whose key it is, the upstream says later. */
static int take_client_key(struct request *r, struct sg_error *err)
{
    int rc = present_key(r, &r->client_key, err);
    if (rc != 0) {
        return rc;
    }
    uint8_t hash[SHA256_BYTES];
    sha256(r->client_key, hash);
    bool is_of_metrics = keys_find(&r->settings->keys, hash) != NULL;
    if (is_of_metrics || r->route.kind == ROUTE_METRICS) {
        return check_key(r, err); /* which never goes up */
    }
    r->client_key_is_bare = http_head_get(http_request_head(r->exchange), "authorization").len == 0;
    return 0;
}

/* Whoever may connect on this machine, unless there was a key and it was taken away; but no web page, also none that may call the gateway. */
static int check_local_admin(struct request *r, struct sg_error *err)
{
    if (!r->gateway->listen.admin_is_local || atomic_load(&r->gateway->admin_by_key)) {
        return refuse(err, 403, "no_admin_key",
                      "No key opens this address any more: its operator can make one with 'use: "
                      "admin'.");
    }
    if (http_head_get(http_request_head(r->exchange), "origin").data != NULL) {
        return refuse(err, 403, "origin_not_allowed", "Web pages may not call the admin address.");
    }
    return check_browser(r, err);
}

/* By key where there is one for it. */
static int check_admin(struct request *r, struct sg_error *err)
{
    const struct auth_key *found;
    if (!keys_open_admin(&r->settings->keys)) {
        return check_local_admin(r, err);
    }
    int rc = find_key(r, &found, err);
    if (rc == 0 && !found->for_admin && !(found->for_metrics && r->route.kind == ROUTE_METRICS)) {
        return refuse(err, 403, "key_not_for_admin",
                      "This key does not open the admin address: its operator can make one that "
                      "does, with 'use: admin'.");
    }
    return rc;
}

static int authenticate_admin(struct request *r, struct sg_error *err)
{
    r->settings = settings_take(&r->gateway->settings);
    int rc = check_admin(r, err);
    r->identity = (struct str){0}; /* nothing is done there in a tenant's name */
    return rc;
}

int authenticate(struct request *r, struct sg_error *err)
{
    if (http_request_listener(r->exchange) == HTTP_USE_ADMIN) {
        return authenticate_admin(r, err);
    }
    if (r->route.kind == ROUTE_METRICS && r->gateway->config->server.metrics_open) {
        return 0; /* whoever reaches the address */
    }
    if (r->settings == NULL) { /* else the route is of these */
        r->settings = settings_take(&r->gateway->settings);
    }
    switch (r->gateway->config->auth.mode) {
    case AUTH_KEYS:
        return check_key(r, err);
    case AUTH_PASSTHROUGH:
        return take_client_key(r, err);
    default:
        return check_browser(r, err);
    }
}
