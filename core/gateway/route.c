/* Where a request goes: by path to what answers it, by the body's model to an upstream. Every path that is not listed
 * here is 404: one that names or lists stored state at an upstream would show one tenant's data to another. */
#include "gateway/request.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "gateway/named_model.h"
#include "gateway/path_pattern.h"
#include "translate/translate.h"

#include <stdio.h>
#include <string.h>

/* Relayed paths, without the optional /v1. Each stands here by itself: vendors put objects that they keep beside those
 * that they answer (audio/voice_consents/ID beside audio/speech). */
static const struct {
    const char *path, *surface_name;
} relayed[] = {
    {"/embeddings", NULL},
    {"/completions", NULL},
    {"/moderations", NULL},
    {"/rerank", NULL},
    {"/audio/speech", NULL},
    {"/audio/transcriptions", NULL},
    {"/audio/translations", NULL},
    {"/images/generations", NULL},
    {"/images/edits", NULL},
    {"/images/variations", NULL},
    {"/messages/count_tokens", "messages"},
    {"/responses/input_tokens", "responses"},
    {"/chat/completions", "chat"},
    {"/responses", "responses"},
    {"/messages", "messages"},
};

/* With or without /v1, as base URLs of client libraries end either way. */
static struct str without_version(struct str path)
{
    if (str_starts(path, STR("/v1/"))) {
        return (struct str){path.data + 3, path.len - 3};
    }
    return path;
}

static bool find_relayed(struct request *r, struct str path)
{
    for (size_t i = 0; i < COUNT_OF(relayed); i++) {
        if (str_is(path, relayed[i].path)) {
            r->route.kind = ROUTE_RELAY;
            r->route.allow = "POST";
            r->route.surface_name = relayed[i].surface_name;
            r->route.counts_here = str_is(path, "/messages/count_tokens");
            r->route.counted = r->route.counts_here || str_is(path, "/responses/input_tokens")
                                   ? surface_named(relayed[i].surface_name)
                                   : NULL;
            return true;
        }
    }
    return false;
}

/* {id}, {id}/input_items or {id}/cancel behind /responses/. Names that the API has for other things are no ids. */
static bool find_response(struct request *r, struct str rest)
{
    static const struct {
        const char *name, *allow, *allow_too;
        enum route_kind kind;
    } about[] = {{"", "GET", "DELETE", ROUTE_RESPONSE},
                 {"/input_items", "GET", NULL, ROUTE_RESPONSE_INPUTS},
                 {"/cancel", "POST", NULL, ROUTE_RESPONSE_CANCEL}};
    const char *slash = memchr(rest.data, '/', rest.len);
    struct str id = {rest.data, slash == NULL ? rest.len : (size_t)(slash - rest.data)};
    struct str name = {id.data + id.len, rest.len - id.len};
    if (id.len == 0 || str_is(id, "input_tokens") || str_is(id, "compact")) {
        return false;
    }
    for (size_t i = 0; i < COUNT_OF(about); i++) {
        if (str_is(name, about[i].name)) {
            r->route.kind = about[i].kind;
            r->route.allow = about[i].allow;
            r->route.allow_too = about[i].allow_too;
            r->route.surface_name = "responses";
            r->route.object_id = arena_copy(r->arena, id);
        }
    }
    return r->route.kind != ROUTE_NONE;
}

static bool find_own(struct request *r, struct str path, struct str whole)
{
    r->route.allow = "GET";
    if (str_is(whole, "/health/live")) {
        r->route.kind = ROUTE_LIVE;
    } else if (str_is(whole, "/health/ready")) {
        r->route.kind = ROUTE_READY;
    } else if (str_is(whole, "/metrics") && r->gateway->config->server.admin == NULL) {
        r->route.kind = ROUTE_METRICS;
    } else if (str_is(path, "/sessions")) {
        r->route.kind = ROUTE_SESSIONS;
    } else if (str_starts(path, STR("/sessions/")) && path.len > 10) {
        r->route.kind = ROUTE_SESSION;
        r->route.allow = "DELETE";
    } else if (str_is(path, "/models")) {
        r->route.kind = ROUTE_MODELS;
    } else if (str_starts(path, STR("/models/")) && path.len > 8) {
        r->route.kind = ROUTE_MODEL;
    } else if (str_starts(path, STR("/responses/"))) {
        return find_response(r, (struct str){path.data + 11, path.len - 11});
    }
    return r->route.kind != ROUTE_NONE;
}

/* What is at the admin address, and nothing else is; none of /admin is anywhere else. */
static bool find_admin(struct request *r, struct str whole)
{
    static const struct {
        const char *path;
        enum route_kind kind;
    } own[] = {{"/health/live", ROUTE_LIVE},
               {"/health/ready", ROUTE_READY},
               {"/metrics", ROUTE_METRICS},
               {"/admin/sessions", ROUTE_ADMIN_SESSIONS},
               {"/admin/profile", ROUTE_ADMIN_PROFILE},
               {"/admin/config", ROUTE_ADMIN_CONFIG}};
    static const struct str session = STR("/admin/sessions/");
    r->route.allow = "GET";
    for (size_t i = 0; i < COUNT_OF(own); i++) {
        r->route.kind = str_is(whole, own[i].path) ? own[i].kind : r->route.kind;
    }
    if (r->route.kind == ROUTE_ADMIN_SESSIONS) {
        r->route.allow_too = "DELETE";
    }
    if (str_starts(whole, session) && whole.len > session.len) {
        r->route.kind = ROUTE_ADMIN_SESSION;
        r->route.allow = "DELETE";
        r->route.object_id = whole.data + session.len; /* ends with a NUL */
    }
    return r->route.kind != ROUTE_NONE;
}

/* Patterns of what find_own() and surface_of_path() know, with what may be at the admin address alone: nothing else shall be at it. */
static const char *const own_paths[] = {
    "/chat/completions", "/responses", "/responses/*", "/messages", "/models",
    "/models/*",         "/sessions",  "/sessions/*",  "/health",   "/health/*",
    "/metrics",          "/metrics/*", "/admin",       "/admin/*"};

const char *route_own_path(const char *pattern)
{
    for (size_t i = 0; i < COUNT_OF(own_paths); i++) {
        if (path_patterns_meet(pattern, own_paths[i])) {
            return own_paths[i];
        }
    }
    for (size_t i = 0; i < COUNT_OF(relayed); i++) {
        if (path_patterns_meet(pattern, relayed[i].path)) {
            return relayed[i].path;
        }
    }
    return NULL;
}

static int find_any(struct request *r, struct str path, struct str whole, bool *ret_found,
                    struct sg_error *err)
{
    if (http_request_listener(r->exchange) == HTTP_USE_ADMIN) {
        *ret_found = find_admin(r, whole);
        return 0;
    }
    r->route.surface = surface_of_path(whole);
    *ret_found = find_own(r, path, whole) || find_relayed(r, path);
    return *ret_found ? 0 : relay_path_find(r, path, ret_found, err);
}

/* May the path be asked so? */
static bool takes_method(const struct request *r, struct str method)
{
    const struct route *route = &r->route;
    if (route->kind == ROUTE_RELAY_PATH) {
        return relay_path_takes(method);
    }
    return str_is(method, route->allow) ||
           (route->allow_too != NULL && str_is(method, route->allow_too)) ||
           (str_is(method, "HEAD") && strcmp(route->allow, "GET") == 0) ||
           (str_is(method, "OPTIONS") && r->gateway->config->auth.mode == AUTH_NONE);
}

int route_find(struct request *r, struct sg_error *err)
{
    const struct http_head *head = http_request_head(r->exchange);
    char *decoded = arena_get(r->arena, head->path.len + 1);
    size_t len;
    int rc = http_path_decode(head->path, decoded, &len, err);
    if (rc != 0) {
        return rc;
    }
    struct str whole = {decoded, len}, path = without_version(whole);
    r->route.path = path.data;
    bool is_found = false;
    rc = find_any(r, path, whole, &is_found, err);
    if (rc == 0 && !is_found) {
        rc = error_set(err, SG_E_NOT_FOUND, "There is nothing at this path on this gateway.");
        snprintf(err->reason, sizeof err->reason, "unknown_path");
    }
    if (rc != 0) {
        return rc;
    }
    if (r->route.surface != NULL) {
        r->route.kind = ROUTE_SURFACE;
    }
    if (!takes_method(r, head->method)) {
        error_set(err, SG_E_INVALID, "This path takes %s, not '%.*s'.", route_methods(r),
                  (int)(head->method.len < 20 ? head->method.len : 20), head->method.data);
        err->status = 405;
        return err->code;
    }
    return 0;
}

const char *route_methods(struct request *r)
{
    const struct route *route = &r->route;
    return route->kind == ROUTE_RELAY_PATH ? relay_path_methods
           : route->allow_too == NULL
               ? route->allow
               : arena_printf(r->arena, "%s, %s", route->allow, route->allow_too);
}

bool upstream_speaks(const struct upstream *upstream, const char *surface_name)
{
    return surface_name == NULL || upstream->surfaces[0] == NULL ||
           list_has(upstream->surfaces, str_of(surface_name));
}

bool upstream_serves(const struct upstream *upstream, struct str model)
{
    for (const char *const *pattern = upstream->models; *pattern != NULL; pattern++) {
        if (model_matches(*pattern, model)) {
            return true;
        }
    }
    return false;
}

/* Of the APIs that requests are translated to Messages alone counts tokens, at servers; plugins answer turns. */
static bool can_be_asked(const struct request *r, const struct upstream *upstream,
                         const struct surface *surface)
{
    return r->route.surface != NULL || (r->route.counted != NULL && upstream->instance == NULL &&
                                        strcmp(surface->name, "messages") == 0);
}

/* The API in which the upstream can be asked what the client asks in its own; NULL: none. */
static const struct surface *surface_between(const struct request *r,
                                             const struct upstream *upstream)
{
    for (size_t i = 0; surfaces[i] != NULL; i++) {
        if (can_be_asked(r, upstream, surfaces[i]) &&
            upstream_speaks(upstream, surfaces[i]->name) &&
            translation_exists(r->route.surface_name, surfaces[i]->name)) {
            return surfaces[i];
        }
    }
    return NULL;
}

bool upstream_can_be_asked(struct request *r, const struct upstream *upstream,
                           const struct surface **ret_spoken)
{
    bool speaks = upstream_speaks(upstream, r->route.surface_name);
    *ret_spoken = speaks ? NULL : surface_between(r, upstream);
    return upstream_is_open(r, upstream) && (speaks || *ret_spoken != NULL);
}

static bool takes_exactly(const struct upstream *upstream, struct str model)
{
    return list_has(upstream->models, model);
}

/* The first in the file that takes the model and speaks the client's API, else one that can be asked in another. */
static bool find_among(struct request *r, bool (*takes)(const struct upstream *, struct str model))
{
    const struct settings *settings = r->settings;
    for (size_t i = 0; i < settings->upstreams_count; i++) {
        const struct upstream *upstream = &settings->upstreams[i];
        if (upstream_is_open(r, upstream) && takes(upstream, r->model) &&
            upstream_speaks(upstream, r->route.surface_name)) {
            candidates_one(r, upstream, NULL);
            return true;
        }
    }
    for (size_t i = 0; i < settings->upstreams_count; i++) {
        const struct upstream *upstream = &settings->upstreams[i];
        const struct surface *spoken;
        if (takes(upstream, r->model) && upstream_can_be_asked(r, upstream, &spoken)) {
            candidates_one(r, upstream, spoken);
            return true;
        }
    }
    return false;
}

static bool is_served(const struct request *r)
{
    const struct settings *settings = r->settings;
    if (named_model_find(settings, r->model) != NULL) {
        return true;
    }
    for (size_t i = 0; i < settings->upstreams_count; i++) {
        if (upstream_serves(&settings->upstreams[i], r->model)) {
            return true;
        }
    }
    return false;
}

static int cannot_count(const struct request *r, struct sg_error *err)
{
    (void)error_set_param(err, SG_E_NOT_FOUND, "model",
                          "The tokens of a request to '%.*s' cannot be counted: the API of this "
                          "model's server has nothing for it.",
                          (int)utf8_cut(r->model, 128), r->model.data);
    snprintf(err->reason, sizeof err->reason, "tokens_not_counted");
    return err->code;
}

static void put_name(struct buf *names, const char *name)
{
    (void)buf_printf(names, "%s%s", names->len > 0 ? ", " : "", name); /* a long list is cut */
}

/* Names and patterns of an upstream, as far as the key may use them: of its patterns what the key's own say is in. */
static void put_models(const struct request *r, const struct upstream *upstream, struct buf *names)
{
    for (const char *const *model = upstream->models; *model != NULL; model++) {
        if (key_allows_model(r->key, str_of(*model))) {
            put_name(names, *model);
        }
    }
    const char *const *own = r->key == NULL ? NULL : r->key->models;
    for (; own != NULL && *own != NULL; own++) {
        if (upstream_serves(upstream, str_of(*own)) && !list_has(upstream->models, str_of(*own))) {
            put_name(names, *own);
        }
    }
}

/* Those of which an entry can be asked at this path. */
static void put_named_models(struct request *r, struct buf *names)
{
    for (size_t i = 0; i < r->settings->models_count; i++) {
        const struct named_model *model = &r->settings->models[i];
        const struct surface *spoken;
        bool is_there = false;
        for (size_t k = 0; k < model->count && !is_there; k++) {
            is_there = upstream_can_be_asked(r, model->entries[k].upstream, &spoken);
        }
        if (is_there && key_allows_model(r->key, str_of(model->name))) {
            put_name(names, model->name);
        }
    }
}

/* One that the key may not use is as one that is not there. */
static int unknown_model(struct request *r, struct sg_error *err)
{
    const struct settings *settings = r->settings;
    if (r->route.counted != NULL && key_allows_model(r->key, r->model) && is_served(r)) {
        return cannot_count(r, err);
    }
    struct buf names = {.max = 700};
    put_named_models(r, &names);
    for (size_t i = 0; i < settings->upstreams_count; i++) {
        const struct upstream *upstream = &settings->upstreams[i];
        const struct surface *spoken;
        if (upstream_can_be_asked(r, upstream, &spoken)) {
            put_models(r, upstream, &names);
        }
    }
    int rc = error_set_param(
        err, SG_E_NOT_FOUND, "model", "The model '%.*s' is not served here. %s%s%s",
        (int)utf8_cut(r->model, 128), r->model.data,
        names.len > 0                              ? "Models that this key may use: "
        : r->key != NULL && r->key->models != NULL ? "This key may use no model at this path."
                                                   : "No model is served at this path.",
        names.len > 0 ? names.data : "", names.overflow ? ", …" : "");
    snprintf(err->reason, sizeof err->reason, "model_not_found");
    buf_clear(&names);
    return rc;
}

int route_upstream(struct request *r, struct sg_error *err)
{
    if (r->model.len == 0) {
        return error_set_param(err, SG_E_INVALID, "model",
                               "The request needs 'model', the name of a model.");
    }
    if (!key_allows_model(r->key, r->model)) {
        return unknown_model(r, err);
    }
    const struct named_model *model = named_model_find(r->settings, r->model);
    if (model != NULL) {
        candidates_of_model(r, model);
    } else if (!find_among(r, takes_exactly)) { /* exact names before patterns */
        (void)find_among(r, upstream_serves);
    }
    if (r->candidates_count == 0) {
        return unknown_model(r, err);
    }
    candidate_first(r);
    return 0;
}
