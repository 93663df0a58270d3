/* GET /v1/models: the models that this key may use. Exact names stand in the configuration; for patterns the upstream
 * is asked, and what of its list would be routed to it is shown. An upstream that does not answer is left out. */
#include "gateway/upstream.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"

#include <string.h>

enum { MODELS_MAX = 10000, LIST_MS = 5000 };

struct models {
    const struct auth_key *key; /* that may use them */
    struct buf names;           /* each ended by NUL, for the test whether one is there already */
    size_t count;
};

static bool models_have(const struct models *models, struct str name)
{
    for (const char *at = models->names.data;
         at != NULL && at < models->names.data + models->names.len; at += strlen(at) + 1) {
        if (str_is(name, at)) {
            return true;
        }
    }
    return false;
}

static void models_add(struct models *models, struct str name)
{
    if (name.len == 0 || models->count == MODELS_MAX || !key_allows_model(models->key, name) ||
        memchr(name.data, '\0', name.len) != NULL || models_have(models, name)) {
        return;
    }
    (void)buf_append_str(&models->names, name); /* small */
    (void)buf_append(&models->names, "", 1);
    models->count++;
}

static bool has_pattern(const struct upstream *upstream)
{
    for (const char *const *model = upstream->models; *model != NULL; model++) {
        if (strchr(*model, '*') != NULL) {
            return true;
        }
    }
    return false;
}

/* Adds those of {"data": [{"id": …}]} that this upstream serves. */
static void add_listed(struct request *r, const struct upstream *upstream, struct str body,
                       struct models *models)
{
    struct json_text text;
    struct sg_error ignored = {0};
    if (json_scan(body, r->arena, &text, &ignored) != 0) {
        return;
    }
    const struct json_member *data = json_find(text.members, text.count, "data");
    size_t count = 0;
    struct json_value *entries = data != NULL && data->value.type == JSON_ARRAY
                                     ? json_elements(data->value, r->arena, &count)
                                     : NULL;
    for (size_t i = 0; i < count; i++) {
        struct json_member *members;
        size_t members_count;
        if (entries[i].type != JSON_OBJECT ||
            json_members(entries[i], "data", r->arena, &members, &members_count, &ignored) != 0) {
            continue;
        }
        const struct json_member *id = json_find(members, members_count, "id");
        if (id != NULL && id->value.type == JSON_STRING) {
            struct str name = json_text_of(id->value, r->arena);
            if (upstream_serves(upstream, name)) {
                models_add(models, name);
            }
        }
    }
}

static int fetch_list(struct request *r, const struct upstream *upstream, struct buf *body,
                      struct sg_error *err)
{
    struct fetch_field *fields =
        arena_get(r->arena, (upstream->headers_count + 1) * sizeof *fields);
    size_t count = 0;
    const char *key = upstream_key(r, upstream);
    if (key != NULL) {
        fields[count++] = (struct fetch_field){STR("Authorization"),
                                               str_of(arena_printf(r->arena, "Bearer %s", key))};
    }
    for (size_t i = 0; i < upstream->headers_count; i++) {
        fields[count++] = upstream->headers[i];
    }
    bool no_path = strchr(strstr(upstream->base_url, "://") + 3, '/') == NULL;
    struct fetch_request request = {
        .url = arena_printf(r->arena, "%s%s/models", upstream->base_url, no_path ? "/v1" : ""),
        .fields = fields,
        .fields_count = count,
        .way = upstream->way,
        .connect_ms = LIST_MS,
        .first_byte_ms = LIST_MS,
        .silence_ms = LIST_MS,
        .deadline = deadline_in(LIST_MS)};
    struct fetch *fetch = NULL;
    struct fetch_reply reply;
    int rc = fetch_start(&request, r->arena, &fetch, err);
    rc = rc == 0 ? fetch_head(fetch, &reply, err) : rc;
    if (rc == 0 && reply.status != 200) {
        rc = error_set(err, SG_E_UNAVAILABLE, "status %d", reply.status);
    }
    struct str piece = {0};
    do {
        rc = rc == 0 ? fetch_read(fetch, &piece, err) : rc;
        if (rc == 0 && !buf_append_str(body, piece)) {
            rc = error_set(err, SG_E_LIMIT, "its list of models is too long");
        }
    } while (rc == 0 && piece.len > 0);
    fetch_end(fetch);
    return rc;
}

/* What the key names itself, and a pattern serves. */
static void add_own(const struct upstream *upstream, struct models *models)
{
    const char *const *own = models->key == NULL ? NULL : models->key->models;
    for (; own != NULL && *own != NULL; own++) {
        if (strchr(*own, '*') == NULL && upstream_serves(upstream, str_of(*own))) {
            models_add(models, str_of(*own));
        }
    }
}

static void add_upstream(struct request *r, const struct upstream *upstream, struct models *models)
{
    for (const char *const *model = upstream->models; *model != NULL; model++) {
        if (strchr(*model, '*') == NULL) {
            models_add(models, str_of(*model));
        }
    }
    if (!has_pattern(upstream)) {
        return;
    }
    add_own(upstream, models);
    if (upstream->instance != NULL) {
        return;
    }
    BUF_CLEANUP struct buf body = {.max = 4 * MIB};
    struct sg_error err = {0};
    if (fetch_list(r, upstream, &body, &err) == 0) {
        add_listed(r, upstream, buf_str(&body), models);
        return;
    }
    struct log_line line;
    log_begin(&line, SG_WARN, "models_unknown");
    log_text(&line, "request", r->id);
    log_text(&line, "upstream", upstream->name);
    log_text(&line, "message", err.message);
    log_end(&line);
}

static void put_model(struct buf *out, struct str name)
{
    (void)buf_puts(out, "{\"id\":");
    (void)buf_put_json(out, name);
    (void)buf_puts(out, ",\"object\":\"model\",\"created\":0,\"owned_by\":\"sandgate\"}");
}

static int answer_one(struct request *r, const struct models *models, struct sg_error *err)
{
    struct str name = str_of(r->route.path + strlen("/models/"));
    bool known = models_have(models, name);
    const struct settings *settings = r->settings;
    for (size_t i = 0; i < settings->upstreams_count && !known; i++) {
        known = settings->upstreams[i].instance != NULL &&
                upstream_serves(&settings->upstreams[i], name) &&
                upstream_is_open(r, &settings->upstreams[i]) && key_allows_model(r->key, name);
    }
    if (!known) {
        int rc = error_set_param(err, SG_E_NOT_FOUND, "model", "There is no model '%.128s' here.",
                                 name.data);
        memcpy(err->reason, "model_not_found", sizeof "model_not_found");
        return rc;
    }
    BUF_CLEANUP struct buf out = {0};
    put_model(&out, name);
    return answer_json(r, 200, buf_str(&out), err);
}

static int answer_list(struct request *r, const struct models *models, struct sg_error *err)
{
    BUF_CLEANUP struct buf out = {0};
    (void)buf_puts(&out, "{\"object\":\"list\",\"data\":[");
    const char *at = models->names.data;
    for (size_t i = 0; i < models->count; i++, at += strlen(at) + 1) {
        (void)buf_puts(&out, i > 0 ? "," : "");
        put_model(&out, str_of(at));
    }
    (void)buf_puts(&out, "]}");
    return answer_json(r, 200, buf_str(&out), err);
}

int models_answer(struct request *r, struct sg_error *err)
{
    struct models models = {.key = r->key, .names = {.max = 4 * MIB}};
    const struct settings *settings = r->settings;
    for (size_t i = 0; i < settings->upstreams_count; i++) {
        if (upstream_is_open(r, &settings->upstreams[i])) {
            add_upstream(r, &settings->upstreams[i], &models);
        }
    }
    int rc =
        r->route.kind == ROUTE_MODEL ? answer_one(r, &models, err) : answer_list(r, &models, err);
    buf_clear(&models.names);
    return rc;
}
