/* GET /v1/models and /v1/models/{id}: the models that this key may use, in OpenAI's form or, for clients that say
 * `anthropic-version`, in Anthropic's. Names of the operator's own and exact names stand in the configuration; for patterns the
 * upstream is asked (models_fetch.c), and what of its list would be routed to it is shown. An upstream that does not answer is
 * left out, or shown as it was when it last did. One that may not see the client's key is not asked. */
#include "gateway/model_list.h"
#include "gateway/query.h"
#include "gateway/upstream.h"

#include "base/check.h"
#include "base/log.h"
#include "base/utf8.h"
#include "gateway/named_model.h"

#include <string.h>
#include <time.h>

enum { MODELS_MAX = 10000, PAGE_USUAL = 20, PAGE_MAX = 1000 };

struct shown_model {
    struct listed_model is;
    struct shown_model *next, *previous;
    struct hash_node by_id;
};

struct models {
    struct request *request;
    struct shown_model *first, *last;
    size_t count;
    struct hash by_id;
};

struct page { /* of Anthropic's list */
    struct str after, before, limit;
};

/* ---- which there are ---- */

static struct shown_model *models_find(const struct models *models, struct str id)
{
    for (struct hash_node *node = hash_first(&models->by_id, hash_bytes(id.data, id.len));
         node != NULL; node = hash_next(node)) {
        struct shown_model *one = INDEX_OWNER(node, struct shown_model, by_id);
        if (str_eq(one->is.id, id)) {
            return one;
        }
    }
    return NULL;
}

static void models_add(struct models *models, const struct listed_model *model)
{
    struct request *r = models->request;
    if (model->id.len == 0 || models->count == MODELS_MAX || !key_allows_model(r->key, model->id) ||
        models_find(models, model->id) != NULL) {
        return;
    }
    struct shown_model *one = arena_get(r->arena, sizeof *one);
    *one = (struct shown_model){.is = *model, .previous = models->last};
    *(models->last != NULL ? &models->last->next : &models->first) = one;
    models->last = one;
    models->count++;
    hash_put(&models->by_id, &one->by_id, hash_bytes(model->id.data, model->id.len));
}

static void models_add_name(struct models *models, const char *name)
{
    models_add(models, &(struct listed_model){.id = str_of(name)});
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

/* Of its list what it serves here. The list's texts are copied, as it may go. */
static void add_listed(const struct upstream *upstream, const struct model_list *list,
                       struct models *models)
{
    struct arena *arena = models->request->arena;
    for (size_t i = 0; i < list->count; i++) {
        struct listed_model one = list->models[i];
        if (upstream_serves(upstream, one.id)) {
            one.id.data = arena_copy(arena, one.id);
            one.display_name.data = arena_copy(arena, one.display_name);
            models_add(models, &one);
        }
    }
}

/* What the key names itself, and a pattern serves. */
static void add_own(const struct upstream *upstream, struct models *models)
{
    const struct auth_key *key = models->request->key;
    const char *const *own = key == NULL ? NULL : key->models;
    for (; own != NULL && *own != NULL; own++) {
        if (strchr(*own, '*') == NULL && upstream_serves(upstream, str_of(*own))) {
            models_add_name(models, *own);
        }
    }
}

static void unknown_log(const struct request *r, const struct upstream *upstream,
                        const struct sg_error *err)
{
    struct log_line line;
    log_begin(&line, SG_WARN, "models_unknown");
    log_text(&line, "request", r->id);
    log_text(&line, "upstream", upstream->name);
    log_text(&line, "message", err->message);
    log_end(&line);
}

/* Is there something that only the upstream knows? */
static bool knows_more(const struct request *r, const struct upstream *upstream)
{
    return upstream->instance == NULL && has_pattern(upstream) && upstream_is_open(r, upstream);
}

/* `list`: what it said, where it was asked. */
static void add_upstream(const struct upstream *upstream, const struct asked_list *list,
                         struct models *models)
{
    for (const char *const *model = upstream->models; *model != NULL; model++) {
        if (strchr(*model, '*') == NULL) {
            models_add_name(models, *model);
        }
    }
    if (!has_pattern(upstream)) {
        return;
    }
    add_own(upstream, models);
    if (list != NULL && list->code != 0 && list->code != SG_E_CANCELLED) {
        unknown_log(models->request, upstream, &list->err);
    }
    if (list != NULL && list->list != NULL) {
        add_listed(upstream, list->list, models);
    }
}

/* In the order of the file, whichever answers first. */
static int add_upstreams(struct models *models, struct sg_error *err)
{
    struct request *r = models->request;
    const struct settings *settings = r->settings;
    struct asked_list *lists = arena_get(r->arena, (settings->upstreams_count + 1) * sizeof *lists);
    size_t count = 0, at = 0;
    for (size_t i = 0; i < settings->upstreams_count; i++) {
        const struct upstream *upstream = &settings->upstreams[i];
        if (knows_more(r, upstream) && upstream_may_see_key(r, upstream)) {
            lists[count++].upstream = upstream;
        }
    }
    models_ask(r, lists, count);
    for (size_t i = 0; i < settings->upstreams_count; i++) {
        const struct upstream *upstream = &settings->upstreams[i];
        bool has_list = at < count && lists[at].upstream == upstream;
        if (upstream_is_open(r, upstream)) {
            add_upstream(upstream, has_list ? &lists[at] : NULL, models);
        }
        at += has_list;
    }
    for (size_t i = 0; i < count; i++) {
        model_list_unref(lists[i].list);
    }
    return fiber_is_cancelled(fiber_self())
               ? error_set(err, SG_E_CANCELLED,
                           "given up while upstreams were asked for their models")
               : 0;
}

static void add_named(const struct named_model *model, struct models *models)
{
    bool is_open = false;
    for (size_t i = 0; i < model->count; i++) {
        is_open = is_open || upstream_is_open(models->request, model->entries[i].upstream);
    }
    if (is_open) {
        models_add_name(models, model->name);
    }
}

/* ---- how they are told ---- */

bool client_is_anthropics(const struct request *r)
{
    return http_head_get(http_request_head(r->exchange), "anthropic-version").len > 0;
}

static void put_time(struct buf *out, int64_t unix_s)
{
    char text[32];
    struct tm date;
    time_t seconds = (time_t)unix_s;
    bool is_date = gmtime_r(&seconds, &date) != NULL &&
                   strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &date) > 0;
    (void)buf_printf(out, "\"%s\"", is_date ? text : "1970-01-01T00:00:00Z");
}

/* Of a model whose age nobody told it is that of the epoch, as Anthropic has it too. Overflow shows in the buffer. */
static void put_model(struct buf *out, const struct listed_model *model, bool is_anthropics)
{
    (void)buf_puts(out, is_anthropics ? "{\"type\":\"model\",\"id\":" : "{\"id\":");
    (void)buf_put_json(out, model->id);
    if (!is_anthropics) {
        (void)buf_printf(out, ",\"object\":\"model\",\"created\":%lld,\"owned_by\":\"sandgate\"}",
                         (long long)model->created_unix_s);
        return;
    }
    (void)buf_puts(out, ",\"display_name\":");
    (void)buf_put_json(out, model->display_name.len > 0 ? model->display_name : model->id);
    (void)buf_puts(out, ",\"created_at\":");
    put_time(out, model->created_unix_s);
    (void)buf_puts(out, "}");
}

static bool is_served_by_plugin(struct request *r, struct str name)
{
    const struct settings *settings = r->settings;
    for (size_t i = 0; i < settings->upstreams_count; i++) {
        const struct upstream *upstream = &settings->upstreams[i];
        if (upstream->instance != NULL && upstream_serves(upstream, name) &&
            upstream_is_open(r, upstream) && key_allows_model(r->key, name)) {
            return true;
        }
    }
    return false;
}

/* Would it be another answer if the client's key were known where the name leads? */
static bool is_hidden(struct request *r, struct str name)
{
    const struct settings *settings = r->settings;
    for (size_t i = 0; i < settings->upstreams_count; i++) {
        const struct upstream *upstream = &settings->upstreams[i];
        if (knows_more(r, upstream) && upstream_serves(upstream, name) &&
            !upstream_may_see_key(r, upstream)) {
            return true;
        }
    }
    return false;
}

static int answer_one(struct request *r, const struct models *models, struct sg_error *err)
{
    struct str name = str_of(r->route.path + strlen("/models/"));
    const struct shown_model *one = models_find(models, name);
    if (one == NULL && is_hidden(r, name)) {
        return client_unknown(err);
    }
    if (one == NULL && !is_served_by_plugin(r, name)) {
        int rc = error_set_param(err, SG_E_NOT_FOUND, "model", "There is no model '%.*s' here.",
                                 (int)utf8_cut(name, 128), name.data);
        memcpy(err->reason, "model_not_found", sizeof "model_not_found");
        return rc;
    }
    BUF_CLEANUP struct buf out = {0};
    put_model(&out, one != NULL ? &one->is : &(struct listed_model){.id = name},
              client_is_anthropics(r));
    return answer_json(r, 200, buf_str(&out), err);
}

static int answer_list(struct request *r, const struct models *models, struct sg_error *err)
{
    BUF_CLEANUP struct buf out = {0};
    (void)buf_puts(&out, "{\"object\":\"list\",\"data\":[");
    for (const struct shown_model *one = models->first; one != NULL; one = one->next) {
        put_model(&out, &one->is, false);
        (void)buf_puts(&out, one->next != NULL ? "," : "");
    }
    (void)buf_puts(&out, "]}");
    return answer_json(r, 200, buf_str(&out), err);
}

/* ---- Anthropic's pages ---- */

static void page_take(void *context, struct str name, struct str value)
{
    struct page *page = context;
    if (str_is(name, "limit")) {
        page->limit = value;
    } else if (str_is(name, "after_id")) {
        page->after = value;
    } else if (str_is(name, "before_id")) {
        page->before = value;
    } /* others are ignored */
}

/* The model that a page begins behind or ends before; NULL where the client names none. */
static int cursor_find(const struct models *models, const char *name, struct str id,
                       const struct shown_model **ret, struct sg_error *err)
{
    *ret = id.len > 0 ? models_find(models, id) : NULL;
    return id.len > 0 && *ret == NULL
               ? error_set_param(err, SG_E_INVALID, name, "'%s' is the id of no model here.", name)
               : 0;
}

static void put_page(struct buf *out, const struct shown_model *first,
                     const struct shown_model *end, bool has_more)
{
    const struct shown_model *last = NULL;
    (void)buf_puts(out, "{\"data\":[");
    for (const struct shown_model *one = first; one != end; one = one->next) {
        (void)buf_puts(out, last != NULL ? "," : "");
        put_model(out, &one->is, true);
        last = one;
    }
    (void)buf_printf(out, "],\"has_more\":%s,\"first_id\":", has_more ? "true" : "false");
    (void)(last != NULL ? buf_put_json(out, first->is.id) : buf_puts(out, "null"));
    (void)buf_puts(out, ",\"last_id\":");
    (void)(last != NULL ? buf_put_json(out, last->is.id) : buf_puts(out, "null"));
    (void)buf_puts(out, "}");
}

/* From behind `after` on, or those that end before `before`. */
static void put_page_between(struct buf *out, const struct models *models,
                             const struct shown_model *after, const struct shown_model *before,
                             int64_t limit)
{
    const struct shown_model *first = after != NULL ? after->next : models->first, *end = first;
    if (before != NULL && after == NULL) {
        first = end = before;
        for (; limit > 0 && first->previous != NULL; limit--) {
            first = first->previous;
        }
        put_page(out, first, end, first->previous != NULL);
        return;
    }
    for (; limit > 0 && end != NULL && end != before; limit--) {
        end = end->next;
    }
    put_page(out, first, end, end != NULL && end != before);
}

static int answer_page(struct request *r, const struct models *models, struct sg_error *err)
{
    struct page page = {0};
    const struct shown_model *after, *before;
    query_walk(http_request_head(r->exchange)->query, r->arena, page_take, &page);
    int64_t limit = page.limit.data != NULL ? query_number(page.limit) : PAGE_USUAL;
    if (limit < 1 || limit > PAGE_MAX) {
        return error_set_param(err, SG_E_INVALID, "limit", "'limit' must be 1 to %d.", PAGE_MAX);
    }
    int rc = cursor_find(models, "after_id", page.after, &after, err);
    rc = rc == 0 ? cursor_find(models, "before_id", page.before, &before, err) : rc;
    if (rc != 0) {
        return rc;
    }
    BUF_CLEANUP struct buf out = {0};
    put_page_between(&out, models, after, before, limit);
    return answer_json(r, 200, buf_str(&out), err);
}

int models_answer(struct request *r, struct sg_error *err)
{
    struct models models = {.request = r};
    const struct settings *settings = r->settings;
    for (size_t i = 0; i < settings->models_count; i++) {
        add_named(&settings->models[i], &models);
    }
    int rc = add_upstreams(&models, err);
    if (rc == 0) {
        rc = r->route.kind == ROUTE_MODEL ? answer_one(r, &models, err)
             : client_is_anthropics(r)    ? answer_page(r, &models, err)
                                          : answer_list(r, &models, err);
    }
    hash_clear(&models.by_id);
    return rc;
}
