/* Making a sandbox. Each has a label of its own among its metadata: where the answer to a create is lost, a sandbox may have
 * been made that nobody knows of. It is looked for by that label and deleted, at once, at the next create and at the end. */
#include "api.h"

#include "json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FULL_MS 2000 /* after the account was full no create is tried */
#define WHAT "cannot make a sandbox"
#define LABEL_KEY "sandgate" /* of the metadata */
#define PAGES_MAX 10
#define CURSOR_BYTES_MAX 1024
#define ORPHANS_MAX 1000
#define FOUND_MAX 4    /* of one label: there is one, or none */
#define AGAIN_MS 10000 /* between two looks for one */
/* E2B's API cuts a request off after 70 s: what it has not begun to make by then it never will. */
#define SETTLED_MS 90000
#define CLEAN_MS 10000 /* for all of them at the end */
#define ASIDE_MS 3000  /* for one exchange of it, in a create that waits for one of them */
#define LOOK_MS 8000   /* is kept free of a create's time, to look for it; it takes no longer */

/* ---- what is asked for ---- */

static void put_string(struct text *body, const char *string)
{
    text_json(body, string, strlen(string));
}

static void put_list(struct text *body, const char *name, const char *const *items, bool all)
{
    text_printf(body, ", \"%s\": [", name);
    for (size_t i = 0; items[i] != NULL; i++) {
        text_puts(body, i > 0 ? ", " : "");
        put_string(body, items[i]);
    }
    text_puts(body, all ? "\"0.0.0.0/0\"]" : "]");
}

/* Where hosts are allowed, E2B wants to be told that all else is not. */
static void put_network(struct text *body, const struct e2b_config *config)
{
    text_printf(body, ", \"allow_internet_access\": %s, \"network\": {\"allowPublicTraffic\": %s",
                config->internet ? "true" : "false", config->public_traffic ? "true" : "false");
    if (config->allow_out[0] != NULL) {
        put_list(body, "allowOut", config->allow_out, false);
    }
    bool denies_all = !config->internet && config->allow_out[0] != NULL;
    if (config->deny_out[0] != NULL || denies_all) {
        put_list(body, "denyOut", config->deny_out, denies_all);
    }
    text_puts(body, "}");
}

static void put_request(struct e2b *e2b, struct sg_call *call, const struct sg_sandbox_spec *spec,
                        struct text *body)
{
    const struct e2b_config *config = e2b->config;
    text_puts(body, "{\"templateID\": ");
    put_string(body, spec->template_name != NULL ? spec->template_name : config->template_name);
    text_printf(body, ", \"timeout\": %lld, \"secure\": true, \"metadata\": {\"" LABEL_KEY "\": ",
                (long long)api_life_seconds(e2b, call, spec->life_ms));
    put_string(body, spec->label == NULL ? "" : spec->label);
    text_puts(body, "}, \"envVars\": {");
    for (size_t i = 0; i < config->env.count; i++) {
        text_puts(body, i > 0 ? ", " : "");
        put_string(body, config->env.keys[i]);
        text_puts(body, ": ");
        put_string(body, config->env.values[i]);
    }
    text_puts(body, "}");
    put_network(body, config);
    text_puts(body, "}");
}

/* ---- finding one by its label ---- */

struct found { /* those of a label */
    char ids[FOUND_MAX][64];
    size_t count;
};

struct look {           /* how long looking may take */
    int64_t until;      /* clock_ms(): nothing is asked any more */
    int64_t timeout_ms; /* of one exchange */
};

/* One that is in use is none that was lost, whatever the service says. */
static bool is_known(struct e2b *e2b, const char *id)
{
    struct sandbox *known = sandbox_find(e2b, id);
    sandbox_unref(e2b, known);
    return known != NULL;
}

/* A service that ignores what is asked for must not make us delete sandboxes of others. */
static void found_add(struct e2b *e2b, struct found *found, struct json_value item,
                      const char *label)
{
    static const char *const names[] = {"sandboxID", "metadata"};
    static const char *const keys[] = {LABEL_KEY};
    struct json_value values[2], value;
    bool is_ours = json_find(item.data, item.len, names, values, 2) && values[0].data != NULL &&
                   json_is_string(values[0]) && values[1].data != NULL &&
                   json_find(values[1].data, values[1].len, keys, &value, 1) &&
                   value.data != NULL && json_string_is(value, label);
    if (is_ours && found->count < FOUND_MAX &&
        api_id(values[0].data + 1, values[0].len - 2, found->ids[found->count]) &&
        !is_known(e2b, found->ids[found->count])) {
        found->count++;
    }
}

/* False if the page is no JSON array. */
static bool read_page(struct e2b *e2b, const struct exchange *x, const char *label,
                      struct found *ret)
{
    struct json_reader reader = json_reader_of(x->body_kept, x->body_kept_len);
    struct json_value item;
    while (json_next_element(&reader, &item)) {
        found_add(e2b, ret, item, label);
    }
    return reader.problem == NULL;
}

static void put_encoded_twice(struct text *path, const char *string)
{
    struct text once = {0};
    api_encode(&once, string, strlen(string));
    if (once.len > 0) {
        api_encode(path, once.data, once.len);
    }
    text_clear(&once);
}

/* The service decodes the filter three times: the value, the pair, the query. */
static void put_list_path(struct text *path, const char *label, const char *cursor)
{
    struct text pair = {0};
    text_puts(&pair, LABEL_KEY "=");
    put_encoded_twice(&pair, label);
    text_puts(path, "/v2/sandboxes?metadata=");
    api_encode(path, pair.data, pair.len);
    text_puts(path, "&state=running%2Cpaused&limit=100");
    if (cursor[0] != '\0') {
        text_puts(path, "&nextToken=");
        api_encode(path, cursor, strlen(cursor));
    }
    text_clear(&pair);
}

static int64_t look_timeout_ms(const struct look *look)
{
    int64_t left = look->until - clock_ms();
    return left < look->timeout_ms ? left : look->timeout_ms;
}

/* One page; `cursor` becomes that of the next, "" after the last. */
static int list_page(struct e2b *e2b, struct sg_call *call, const char *label,
                     const struct look *look, char cursor[CURSOR_BYTES_MAX], struct found *ret,
                     struct sg_error *err)
{
    static const char what[] = "cannot look for a sandbox whose making was not confirmed";
    TEXT_CLEANUP struct text path = {0};
    put_list_path(&path, label, cursor);
    int64_t timeout_ms = look_timeout_ms(look);
    if (timeout_ms <= 0) {
        return sg->fail(err, SG_E_TIMEOUT, "%s: it took too long", what);
    }
    struct exchange x = {.path = path.data, .timeout_ms = timeout_ms, .never_waits = true};
    int code = exchange_api(e2b, call, &x, err);
    if (code == 0 && x.reply.status != 200) {
        code = fault_api(e2b, call, &x, what, err);
    }
    if (code == 0 && !read_page(e2b, &x, label, ret)) {
        code = sg->fail(err, SG_E_UNAVAILABLE, "%s: E2B's list is no JSON array", what);
    }
    const char *next = code == 0 ? exchange_header(&x, "x-next-token") : NULL;
    bool has_next = next != NULL && strlen(next) < CURSOR_BYTES_MAX;
    (void)snprintf(cursor, CURSOR_BYTES_MAX, "%s", has_next ? next : ""); /* fits */
    return code;
}

/* Looks through the pages until some are found. */
static int find_by_label(struct e2b *e2b, struct sg_call *call, const char *label,
                         const struct look *look, struct found *ret, struct sg_error *err)
{
    char cursor[CURSOR_BYTES_MAX] = "";
    int code = 0;
    for (size_t page = 0; code == 0 && ret->count == 0 && page < PAGES_MAX; page++) {
        code = list_page(e2b, call, label, look, cursor, ret, err);
        if (cursor[0] == '\0') {
            break;
        }
    }
    return code;
}

/* Deletes those of this label. *ret_count: how many there were. */
static int delete_by_label(struct e2b *e2b, struct sg_call *call, const char *label,
                           const struct look *look, size_t *ret_count, struct sg_error *err)
{
    struct found found = {.count = 0};
    int code = find_by_label(e2b, call, label, look, &found, err);
    for (size_t i = 0; code == 0 && i < found.count; i++) {
        int64_t timeout_ms = look_timeout_ms(look);
        code = timeout_ms > 0 ? api_delete(e2b, call, found.ids[i], timeout_ms, err)
                              : sg->fail(err, SG_E_TIMEOUT, "ending a sandbox took too long");
    }
    *ret_count = found.count;
    return code;
}

/* ---- those whose answer was lost ---- */

static void orphan_add(struct e2b *e2b, const char *label)
{
    struct orphan *orphan = calloc(1, sizeof *orphan);
    if (orphan == NULL || label == NULL) {
        free(orphan); /* it ends by itself, when its time is up */
        return;
    }
    int64_t now = clock_ms();
    orphan->again_at = now;
    orphan->settled_at = now + SETTLED_MS;
    orphan->until = now + SETTLED_MS + e2b->config->lifetime;
    (void)snprintf(orphan->label, sizeof orphan->label, "%s", label); /* the core's are short */
    pthread_mutex_lock(&e2b->lock);
    size_t count = 0;
    for (const struct orphan *at = e2b->orphans; at != NULL; at = at->next) {
        count++;
    }
    if (count < ORPHANS_MAX) { /* in front: it is looked for first */
        orphan->next = e2b->orphans;
        e2b->orphans = orphan;
        orphan = NULL;
    }
    pthread_mutex_unlock(&e2b->lock);
    free(orphan);
}

/* Takes out those to be looked for now, so that no two calls look for one. */
static struct orphan *orphans_take(struct e2b *e2b, bool all)
{
    struct orphan *taken = NULL, **end = &taken;
    int64_t now = clock_ms();
    size_t room = all ? ORPHANS_MAX : 1; /* a create waits for it */
    pthread_mutex_lock(&e2b->lock);
    for (struct orphan **at = &e2b->orphans; *at != NULL;) {
        struct orphan *orphan = *at;
        if (room > 0 && (all || orphan->again_at <= now)) {
            room--;
            *at = orphan->next;
            orphan->next = NULL;
            *end = orphan;
            end = &orphan->next;
        } else {
            at = &orphan->next;
        }
    }
    pthread_mutex_unlock(&e2b->lock);
    return taken;
}

static void orphans_return(struct e2b *e2b, struct orphan *orphan)
{
    pthread_mutex_lock(&e2b->lock);
    orphan->next = e2b->orphans;
    e2b->orphans = orphan;
    pthread_mutex_unlock(&e2b->lock);
}

/* True if it need not be looked for again. Not listed early on, it may still be made. */
static bool orphan_settle(struct e2b *e2b, struct sg_call *call, struct orphan *orphan,
                          const struct look *look, bool *ret_failed, struct sg_error *err)
{
    size_t count = 0;
    int64_t since = clock_ms();
    int code = delete_by_label(e2b, call, orphan->label, look, &count, err);
    *ret_failed = code != 0;
    if (code == 0 && count > 0) {
        sg->log(call, SG_INFO, "a sandbox whose making was not confirmed was found and ended");
    }
    orphan->again_at = clock_ms() + AGAIN_MS;
    return code == 0 ? count > 0 || since >= orphan->settled_at : since >= orphan->until;
}

/* Failing once, the API is not asked for the rest. */
void orphans_clean(struct e2b *e2b, struct sg_call *call, struct sg_error *scratch, bool all)
{
    bool has_failed = false;
    size_t left = 0;
    int64_t now = clock_ms();
    const struct look look = {.until = now + (all ? CLEAN_MS : LOOK_MS),
                              .timeout_ms = all ? CLEAN_MS : ASIDE_MS};
    for (struct orphan *orphan = orphans_take(e2b, all), *next; orphan != NULL; orphan = next) {
        next = orphan->next;
        has_failed = has_failed || clock_ms() >= look.until;
        if (!has_failed && orphan_settle(e2b, call, orphan, &look, &has_failed, scratch)) {
            free(orphan);
            continue;
        }
        left++;
        orphans_return(e2b, orphan);
    }
    if (has_failed) {
        sg->log(call, SG_WARN,
                "sandboxes whose making was not confirmed may be left at E2B until their time is "
                "up: %zu",
                left);
    }
}

void orphans_clear(struct e2b *e2b)
{
    while (e2b->orphans != NULL) {
        struct orphan *orphan = e2b->orphans;
        e2b->orphans = orphan->next;
        free(orphan);
    }
}

/* ---- create ---- */

static int place_take(struct e2b *e2b, struct sg_error *err)
{
    int64_t most = e2b->config->concurrency;
    sandboxes_forget_ended(e2b);
    pthread_mutex_lock(&e2b->lock);
    bool has_room = most == 0 || e2b->count < (size_t)most;
    e2b->count += has_room ? 1 : 0;
    pthread_mutex_unlock(&e2b->lock);
    return has_room ? 0
                    : sg->fail(err, SG_E_LIMIT,
                               WHAT ": all %lld that 'concurrency' allows are in use; end one, or "
                                    "try again later",
                               (long long)most);
}

static void place_return(struct e2b *e2b)
{
    pthread_mutex_lock(&e2b->lock);
    e2b->count--;
    pthread_mutex_unlock(&e2b->lock);
}

/* There may be one that we do not know. The failure that is told stays the one that there was. */
static int lost(struct e2b *e2b, struct sg_call *call, const char *label, int code,
                struct sg_error *err)
{
    char message[512];
    (void)snprintf(message, sizeof message, "%s", sg->message(err)); /* may be shortened */
    orphan_add(e2b, label);
    orphans_clean(e2b, call, err, false);
    return sg->fail(err, (enum sg_code)code, "%s", message);
}

/* Something in front may have given up waiting for an API that goes on. */
static bool may_have_been_made(const struct exchange *x)
{
    return x->reply.status < 300 || x->reply.status == 408 ||
           (x->reply.status >= 500 && !fault_is_theirs(x));
}

/* What was made cannot be used, or nobody wants it. */
static int discard(struct e2b *e2b, struct sg_call *call, const char *label, const char *id,
                   int code, struct sg_error *err)
{
    char message[512];
    (void)snprintf(message, sizeof message, "%s", sg->message(err)); /* may be shortened */
    if (id[0] == '\0' || api_delete(e2b, call, id, ASIDE_MS, err) != 0) {
        orphan_add(e2b, label);
        orphans_clean(e2b, call, err, false);
    }
    return sg->fail(err, (enum sg_code)code, "%s", message);
}

static int read_answer(struct e2b *e2b, struct sg_call *call, const struct exchange *x,
                       const char *label, struct sandbox **ret, struct sg_error *err)
{
    char id[64], problem[PROBLEM_BYTES];
    *ret = api_read_sandbox(e2b, x, id, problem);
    if (*ret != NULL) {
        return 0;
    }
    (void)sg->fail(err, SG_E_UNAVAILABLE, WHAT ": E2B's answer cannot be used: %s", problem);
    const char *made = is_known(e2b, id) ? "" : id;
    return discard(e2b, call, label, made, SG_E_UNAVAILABLE, err); /* the message is used there */
}

/* Many that come at one time must not all ask for what there is not. */
static void full_set(struct e2b *e2b, const char *message)
{
    pthread_mutex_lock(&e2b->lock);
    e2b->full_until = clock_ms() + FULL_MS;
    (void)snprintf(e2b->full_message, sizeof e2b->full_message, "%s", message); /* shortened */
    pthread_mutex_unlock(&e2b->lock);
}

static int check_full(struct e2b *e2b, struct sg_error *err)
{
    char message[sizeof e2b->full_message];
    pthread_mutex_lock(&e2b->lock);
    bool is_full = clock_ms() < e2b->full_until;
    memcpy(message, e2b->full_message, sizeof message);
    pthread_mutex_unlock(&e2b->lock);
    return is_full ? sg->fail(err, SG_E_LIMIT, "%s", message) : 0;
}

/* Asks for it; what comes back is in no table yet. */
static int request(struct e2b *e2b, struct sg_call *call, const struct sg_sandbox_spec *spec,
                   struct sandbox **ret, struct sg_error *err)
{
    TEXT_CLEANUP struct text body = {0};
    put_request(e2b, call, spec, &body);
    if (body.overflow) {
        return sg->fail(err, SG_E_LIMIT, WHAT ": no memory for the request");
    }
    int64_t left = sg->time_left_ms(call) - LOOK_MS, longest = e2b->config->request_timeout;
    struct exchange x = {.path = "/sandboxes",
                         .content_type = "application/json",
                         .body = body.data,
                         .body_len = body.len,
                         .timeout_ms = left > 0 && left < longest ? left : longest};
    int code = exchange_api(e2b, call, &x, err);
    if (code != 0) {
        (void)sg->fail(err, (enum sg_code)code, WHAT ": %s", sg->message(err)); /* code stays */
        return x.reply.failed_at <= SG_HTTP_NO_TLS ? code : lost(e2b, call, spec->label, code, err);
    }
    if (x.reply.status == 201 || x.reply.status == 200) {
        return read_answer(e2b, call, &x, spec->label, ret, err);
    }
    code = fault_api(e2b, call, &x, WHAT, err);
    if (x.reply.status == 429 && exchange_retry_after(&x) == 0) {
        full_set(e2b, sg->message(err));
    }
    return may_have_been_made(&x) ? lost(e2b, call, spec->label, code, err) : code;
}

static void warn_of_open_door(const struct e2b *e2b, struct sg_call *call,
                              const struct sandbox *sandbox)
{
    if (sandbox->envd_token[0] == '\0') {
        sg->log(call, SG_WARN,
                "E2B gave no access token: who knows a sandbox's id can use its files");
    }
    if (sandbox->traffic_token[0] == '\0' && !e2b->config->public_traffic) {
        sg->log(call, SG_WARN,
                "E2B gave no traffic access token though 'public_traffic' is off: who knows a "
                "sandbox's id can reach its servers");
    }
}

int e2b_create(void *self, struct sg_call *call, const struct sg_sandbox_spec *spec,
               struct sg_error *err)
{
    struct e2b *e2b = self;
    struct sandbox *sandbox = NULL;
    orphans_clean(e2b, call, err, false);
    int code = check_full(e2b, err);
    code = code != 0 ? code : place_take(e2b, err);
    if (code != 0) {
        return code;
    }
    code = request(e2b, call, spec, &sandbox, err);
    if (code != 0) {
        place_return(e2b);
        return code;
    }
    sandbox_keep(e2b, sandbox, api_life_seconds(e2b, call, spec->life_ms));
    warn_of_open_door(e2b, call, sandbox);
    sandbox = sandbox_add_take(e2b, sandbox, true);
    if (sandbox == NULL) { /* whichever there is besides is found by its label */
        place_return(e2b);
        (void)sg->fail(err, SG_E_UNAVAILABLE, WHAT ": E2B gave the id of another sandbox");
        return lost(e2b, call, spec->label, SG_E_UNAVAILABLE, err);
    }
    code = sg->emit(call, SG_OUT_HANDLE, sandbox->id, strlen(sandbox->id), err);
    if (code != 0) { /* nobody will end it */
        code = discard(e2b, call, spec->label, sandbox->id, code, err);
        sandbox_forget(e2b, sandbox);
    }
    sandbox_unref(e2b, sandbox);
    return code;
}
