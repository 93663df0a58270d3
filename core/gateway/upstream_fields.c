/* What a request to an upstream's server says beside its body: which headers go up, and to which URL. */
#include "gateway/upstream.h"

#include "base/check.h"
#include "base/digest.h"

#include <string.h>

enum { FIELDS_UP_OWN = 3 }; /* that are added to the client's and the operator's */

/* Credentials, cookies, and what belongs to the client's own connection. */
bool field_never_goes_up(struct str name)
{
    static const char *const never[] = {"authorization",  "x-api-key",       "cookie", "host",
                                        "content-length", "accept-encoding", "expect", NULL};
    for (const char *const *one = never; *one != NULL; one++) {
        if (str_eq_nocase(name, str_of(*one))) {
            return true;
        }
    }
    return http_is_hop_by_hop(name, (struct str){0});
}

/* What speaks of an API says nothing to a server of another. */
static bool is_of_an_api(struct str name)
{
    static const char *const vendors[] = {"anthropic-", "openai-", "x-stainless-"};
    for (size_t i = 0; i < COUNT_OF(vendors); i++) {
        struct str vendor = str_of(vendors[i]);
        if (name.len > vendor.len && str_eq_nocase((struct str){name.data, vendor.len}, vendor)) {
            return true;
        }
    }
    return false;
}

/* What asks for a part of something, and how a body that nobody here reads is coded. */
static bool is_of_stored(struct str name)
{
    static const char *const fields[] = {"range", "if-range", "content-encoding"};
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        if (str_eq_nocase(name, str_of(fields[i]))) {
            return true;
        }
    }
    return false;
}

static bool field_goes_up(struct request *r, struct str name)
{
    if (r->spoken != NULL && is_of_an_api(name)) {
        return false;
    }
    static const char *const allowed[] = {"content-type",   "accept",      "anthropic-version",
                                          "anthropic-beta", "openai-beta", NULL};
    for (const char *const *one = allowed; *one != NULL; one++) {
        if (str_eq_nocase(name, str_of(*one))) {
            return true;
        }
    }
    if (r->route.kind == ROUTE_RELAY_PATH && is_of_stored(name)) {
        return true;
    }
    if (str_eq_nocase(name, STR("idempotency-key"))) {
        return r->turns <= 1; /* a later turn is another request */
    }
    if (name.len > 12 && str_eq_nocase((struct str){name.data, 12}, STR("x-stainless-"))) {
        return true;
    }
    for (const char *const *one = r->gateway->config->server.forward_headers; *one != NULL; one++) {
        if (str_eq_nocase(name, str_of(*one))) {
            return true;
        }
    }
    return false;
}

/* What the client names in Connection is meant for the gateway alone (RFC 9110 7.6.1). */
static bool is_for_this_connection(const struct http_head *head, struct str name)
{
    for (size_t i = 0; i < head->count; i++) {
        if (str_eq_nocase(head->fields[i].name, STR("connection")) &&
            http_is_hop_by_hop(name, head->fields[i].value)) {
            return true;
        }
    }
    return false;
}

/* An upstream that heeds idempotency keys sees one account: two tenants with one key would get each other's answer. Each has
 * keys of its own, and the same again for a request that is repeated. */
static struct str value_up(struct request *r, struct str name, struct str value)
{
    if (r->gateway->config->auth.mode != AUTH_KEYS || /* else nobody shares an account */
        !str_eq_nocase(name, STR("idempotency-key"))) {
        return value;
    }
    const struct str parts[] = {r->identity, value};
    uint8_t hash[SHA256_BYTES];
    char *text = arena_get(r->arena, 2 * SHA256_BYTES + 1);
    sha256_parts(parts, COUNT_OF(parts), hash);
    hex_encode(hash, SHA256_BYTES, text);
    return str_of(text);
}

const struct fetch_field *upstream_fields(struct request *r, bool intercepted, size_t *ret_count)
{
    const struct http_head *head = http_request_head(r->exchange);
    size_t fields_max = head->count + r->upstream->headers_count + FIELDS_UP_OWN;
    struct fetch_field *fields = arena_get(r->arena, fields_max * sizeof *fields);
    size_t count = 0;
    for (size_t i = 0; i < head->count; i++) {
        struct str name = head->fields[i].name;
        if (field_goes_up(r, name) && !is_for_this_connection(head, name) &&
            !upstream_sets_field(r->upstream, name)) {
            fields[count++] = (struct fetch_field){name, value_up(r, name, head->fields[i].value)};
        }
    }
    const char *key = upstream_key(r, r->upstream);
    if (key != NULL && upstream_key_is_bare(r)) {
        fields[count++] = (struct fetch_field){STR("x-api-key"), str_of(key)};
    } else if (key != NULL) {
        fields[count++] = (struct fetch_field){STR("Authorization"),
                                               str_of(arena_printf(r->arena, "Bearer %s", key))};
    }
    for (size_t i = 0; i < r->upstream->headers_count; i++) {
        fields[count++] = r->upstream->headers[i];
    }
    if (r->spoken != NULL && strcmp(r->spoken->name, "messages") == 0 &&
        !upstream_sets_field(r->upstream, STR("anthropic-version"))) {
        fields[count++] = (struct fetch_field){STR("anthropic-version"), STR("2023-06-01")};
    }
    if (intercepted || r->asked_model != NULL) { /* it is read: by tools, or for its name */
        fields[count++] = (struct fetch_field){STR("Accept-Encoding"), STR("identity")};
    }
    CHECK(count <= fields_max);
    *ret_count = count;
    return fields;
}

/* base_url, with /v1 where it names no path, then the client's path and query; or the path of the API that is spoken. */
const char *upstream_url(struct request *r)
{
    const char *base = r->upstream->base_url;
    const char *host = strstr(base, "://") + 3;
    const char *version = strchr(host, '/') == NULL ? "/v1" : "";
    if (r->spoken != NULL) {
        return arena_printf(r->arena, "%s%s%s%s", base, version, r->spoken->path,
                            r->route.counted != NULL ? "/count_tokens" : "");
    }
    const struct http_head *head = http_request_head(r->exchange);
    return arena_printf(r->arena, "%s%s%s%s%.*s", base, version, r->route.path,
                        head->query.len > 0 ? "?" : "", (int)head->query.len,
                        head->query.len > 0 ? head->query.data : "");
}
