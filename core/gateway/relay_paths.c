/* Paths that an upstream lists under `relay_paths`: what its server keeps for who asks, files for one. They are passed on as they are,
 * with every method and a body of any kind, and with the client's own key, which alone says whose they are.
 *
 * A path is one upstream's (setup_relay_paths.c): a request names no model there, and the next best upstream would get a key that is
 * another's. What is good here says nothing about the key (client_note()) and nothing about models (upstream_health.c). */
#include "gateway/path_pattern.h"
#include "gateway/request.h"

#include "base/check.h"
#include "base/limits.h"

#include <ctype.h>
#include <stdio.h>

const char relay_path_methods[] = "GET, HEAD, POST, PUT, PATCH, DELETE";

/* TRACE would have the server repeat what else is sent to it. */
bool relay_path_takes(struct str method)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"};
    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        if (str_is(method, methods[i])) {
            return true;
        }
    }
    return false;
}

/* The upstream that lists the path; NULL: none does. */
static const struct upstream *upstream_of_path(const struct settings *settings, struct str path)
{
    for (size_t i = 0; i < settings->upstreams_count; i++) {
        const struct upstream *upstream = &settings->upstreams[i];
        for (const char *const *pattern = upstream->relay_paths; *pattern != NULL; pattern++) {
            if (path_pattern_matches(*pattern, path)) {
                return upstream;
            }
        }
    }
    return NULL;
}

/* A server that decodes it once more would see another path than the one that was compared. */
static bool is_still_encoded(struct str path)
{
    for (size_t i = 0; i + 2 < path.len; i++) {
        if (path.data[i] == '%' && isxdigit((unsigned char)path.data[i + 1]) &&
            isxdigit((unsigned char)path.data[i + 2])) {
            return true;
        }
    }
    return false;
}

/* The path that was compared, encoded anew: all that could be anything else than a name is. ';' begins what some servers take for no
 * part of a segment ("..;"). */
static const char *path_encode(struct str path, struct arena *arena)
{
    static const char digits[] = "0123456789ABCDEF";
    char *text = arena_get(arena, path.len * 3 + 1);
    size_t len = 0;
    for (size_t i = 0; i < path.len; i++) {
        unsigned char c = (unsigned char)path.data[i];
        bool is_plain = c < 0x80 && (isalnum(c) || strchr("-._~:@/", c) != NULL);
        if (is_plain) {
            text[len++] = (char)c;
        } else {
            text[len++] = '%';
            text[len++] = digits[c >> 4];
            text[len++] = digits[c & 15];
        }
    }
    text[len] = '\0';
    return text;
}

int relay_path_find(struct request *r, struct str path, bool *ret_found, struct sg_error *err)
{
    if (r->gateway->config->auth.mode != AUTH_PASSTHROUGH) {
        return 0;
    }
    r->settings = settings_take(&r->gateway->settings);
    const struct upstream *upstream = upstream_of_path(r->settings, path);
    if (upstream == NULL) {
        return 0;
    }
    if (is_still_encoded(path)) {
        return error_set(err, SG_E_INVALID,
                         "The path is percent-encoded twice: encode its names once.");
    }
    r->route.kind = ROUTE_RELAY_PATH;
    r->route.relayed_to = upstream;
    r->route.path = path_encode(path, r->arena);
    *ret_found = true;
    return 0;
}

/* A server that expects no body behind GET could read it as a request. */
static int check_body(const struct request *r, struct sg_error *err)
{
    const struct http_head *head = http_request_head(r->exchange);
    bool takes_none = str_is(head->method, "GET") || str_is(head->method, "HEAD");
    if (takes_none && (head->chunked || head->content_length > 0)) {
        return error_set(err, SG_E_INVALID, "A request with %.*s has no body.",
                         (int)head->method.len, head->method.data);
    }
    return body_check_type(r, err);
}

int relay_path_serve(struct request *r, struct sg_error *err)
{
    account_open(&r->account, client_account(r));
    int rc = limits_enter(r, err);
    if (rc == 0) {
        rc = check_body(r, err);
    }
    if (rc == 0) {
        rc = account_take(&r->account, LIMIT_STREAM_BYTES, err);
    }
    if (rc != 0) {
        return rc;
    }
    r->transit_bytes = LIMIT_STREAM_BYTES;
    candidates_one(r, r->route.relayed_to, NULL);
    candidate_first(r);
    return relay_serve(r, err);
}
