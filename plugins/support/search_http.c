/* Writing queries, and the one exchange that a search is. */
#include "search_http.h"
#include "ca_file.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define ANSWER_BYTES_MAX ((uint64_t)4 << 20)
#define COUNT_MAX 20
#define RETRY_WAIT_MS 500 /* where the service does not say how long */
#define RETRY_WAIT_MS_MAX 2000
#define HEADERS_MAX 4
#define KEY_MAX 4096

/* ---- options ---- */

static bool is_printable(const char *text)
{
    size_t len = 0;
    while (text[len] > 0x20 && text[len] < 0x7F) {
        len++;
    }
    return text[len] == '\0' && len <= KEY_MAX;
}

static int check(const struct search_options *options, struct sg_error *err)
{
    const char *url = options->base_url;
    struct search_host host;
    bool is_usable = is_printable(url) && search_url_host(url, strlen(url), &host) &&
                     strpbrk(url, "?#\\") == NULL;
    if (!is_usable) { /* it may hold a key, so it is not shown */
        return sg->fail(err, SG_E_CONFIG,
                        "'base_url' must be http:// or https://, a host and perhaps a path, "
                        "without a user, '?' and '#'");
    }
    if (options->api_key != NULL && !is_printable(options->api_key)) {
        return sg->fail(err, SG_E_CONFIG,
                        "'api_key' must be printable ASCII without spaces; look for a line break "
                        "or a quote that was copied with it");
    }
    return options->ca_file == NULL ? 0 : ca_file_check(options->ca_file, err);
}

int search_open(const void *config, struct sg_call *call, void **ret_self, struct sg_error *err)
{
    (void)call;
    *ret_self = (void *)(uintptr_t)config;
    return check(config, err);
}

int64_t search_count(const struct search_options *options, const struct sg_query *query)
{
    int64_t count = query->count_max > 0 ? query->count_max : options->count;
    return count < 1 ? 1 : count > COUNT_MAX ? COUNT_MAX : count;
}

/* ---- writing a query ---- */

static void put_percent(struct text *out, const char *value)
{
    for (; *value != '\0'; value++) {
        unsigned char c = (unsigned char)*value;
        bool is_plain = c < 0x80 && (isalnum(c) || strchr("-._~", c) != NULL);
        text_printf(out, is_plain ? "%c" : "%%%02X", c);
    }
}

void search_parameter(struct text *parameters, const char *name, const char *value)
{
    if (value != NULL && value[0] != '\0') {
        text_printf(parameters, "%c%s=", parameters->len == 0 ? '?' : '&', name);
        put_percent(parameters, value);
    }
}

void search_parameter_int(struct text *parameters, const char *name, int64_t value)
{
    text_printf(parameters, "%c%s=%lld", parameters->len == 0 ? '?' : '&', name, (long long)value);
}

static void begin_member(struct text *object, const char *name)
{
    text_printf(object, "%s\"%s\":", object->len == 0 ? "{" : ",", name);
}

void search_member(struct text *object, const char *name, const char *value)
{
    if (value != NULL && value[0] != '\0') {
        begin_member(object, name);
        text_json(object, value, strlen(value));
    }
}

void search_member_int(struct text *object, const char *name, int64_t value)
{
    begin_member(object, name);
    text_printf(object, "%lld", (long long)value);
}

void search_member_json(struct text *object, const char *name, const char *json)
{
    begin_member(object, name);
    text_puts(object, json);
}

/* How many hosts there are to name; 0 if one is unusable. Where domains are blocked, one with a path is passed over: its
 * other pages are wanted. */
static size_t count_hosts(const char *const *domains, bool are_blocked)
{
    size_t count = 0;
    struct search_host host;
    for (size_t i = 0; domains != NULL && domains[i] != NULL; i++) {
        if (!search_domain_host(domains[i], &host)) {
            return 0;
        }
        count += !are_blocked || !search_has_path(host);
    }
    return count;
}

/* Moves on to the next of them. */
static struct search_host next_host(const char *const **domains, bool are_blocked)
{
    struct search_host host = {"", 0};
    while (**domains != NULL &&
           (!search_domain_host(*(*domains)++, &host) || (are_blocked && search_has_path(host)))) {
    }
    return host;
}

static void put_hosts(struct text *object, const char *name, const char *const *domains,
                      bool are_blocked, const char *prefix, size_t max)
{
    size_t count = count_hosts(domains, are_blocked);
    if (count == 0 || count > max) {
        return;
    }
    begin_member(object, name);
    for (size_t i = 0; i < count; i++) {
        TEXT_CLEANUP struct text value = {0};
        struct search_host host = next_host(&domains, are_blocked);
        text_puts(&value, prefix);
        text_put(&value, host.data, host.len);
        text_puts(object, i == 0 ? "[" : ",");
        text_json(object, value.data, value.len);
        object->overflow = object->overflow || value.overflow;
    }
    text_puts(object, "]");
}

void search_member_allowed(struct text *object, const char *name, const struct sg_query *query,
                           size_t max)
{
    put_hosts(object, name, query->allowed, false, "", max);
}

void search_member_blocked(struct text *object, const char *name, const struct sg_query *query,
                           const char *prefix, size_t max)
{
    put_hosts(object, name, query->blocked, true, prefix, max);
}

void search_object_end(struct text *object)
{
    text_puts(object, object->len == 0 ? "{}" : "}");
}

static void put_sites(struct text *out, const char *const *domains, bool are_blocked,
                      const char *first, const char *next)
{
    size_t count = count_hosts(domains, are_blocked);
    for (size_t i = 0; i < count; i++) {
        struct search_host host = next_host(&domains, are_blocked);
        text_puts(out, i == 0 ? first : next);
        text_puts(out, "site:");
        text_put(out, host.data, host.len);
    }
}

void search_operators(struct text *out, const struct sg_query *query, const char *and,
                      const char * not, size_t len_max)
{
    TEXT_CLEANUP struct text with = {0};
    bool has_allowed = count_hosts(query->allowed, false) > 0;
    text_printf(&with, has_allowed ? "(%s)%s(" : "%s", query->text, and);
    put_sites(&with, query->allowed, false, "", " OR ");
    text_puts(&with, has_allowed ? ")" : "");
    put_sites(&with, query->blocked, true, not, not );
    bool fits = !with.overflow && with.data != NULL && with.len <= len_max;
    text_puts(out, fits ? with.data : query->text);
}

const char *search_freshness(const struct sg_query *query, const char *const names[4])
{
    static const char *const neutral[] = {"day", "week", "month", "year"};
    for (size_t i = 0; query->freshness != NULL && i < 4; i++) {
        if (strcmp(query->freshness, neutral[i]) == 0) {
            return names == NULL ? neutral[i] : names[i];
        }
    }
    return NULL;
}

/* ---- asking ---- */

struct headers {
    const char *keys[HEADERS_MAX], *values[HEADERS_MAX];
    size_t count;
};

static void headers_put(struct headers *headers, const char *key, const char *value)
{
    if (headers->count < HEADERS_MAX) {
        headers->keys[headers->count] = key;
        headers->values[headers->count++] = value;
    }
}

/* base_url with the path behind it, unless it ends with that already. */
static void put_url(const struct search_form *form, const struct search_options *options,
                    const struct text *parameters, struct text *url)
{
    const char *base = options->base_url;
    size_t len = strlen(base), path_len = strlen(form->path);
    while (len > 0 && base[len - 1] == '/') {
        len--;
    }
    bool has_path = len > path_len && memcmp(base + len - path_len, form->path, path_len) == 0;
    text_put(url, base, len);
    text_puts(url, has_path ? "" : form->path);
    if (parameters != NULL) {
        text_put(url, parameters->data, parameters->len);
    }
}

/* How long to wait before asking again; negative: not again. */
static int64_t wait_before_retry(struct sg_call *call, const struct sg_http_reply *reply)
{
    if (reply->status != 429 && reply->status < 500) {
        return -1;
    }
    int64_t seconds = search_retry_after(reply);
    int64_t wait_ms = seconds == 0 ? RETRY_WAIT_MS : seconds * 1000;
    bool is_worth = wait_ms > 0 && wait_ms <= RETRY_WAIT_MS_MAX;
    return is_worth && wait_ms < sg->time_left_ms(call) ? wait_ms : -1;
}

static int exchange(const struct search_form *form, struct sg_call *call,
                    const struct sg_http_request *request, struct sg_http_reply *reply,
                    struct sg_error *err)
{
    for (bool has_waited = false;; has_waited = true) {
        *reply = (struct sg_http_reply){0};
        int code = sg->http(call, request, reply, NULL, err);
        if (code != 0) {
            return search_fault_exchange(form, code, reply->failed_at, err);
        }
        int64_t wait_ms = has_waited ? -1 : wait_before_retry(call, reply);
        if (wait_ms < 0) {
            return 0;
        }
        code = sg->sleep(call, wait_ms, err);
        if (code != 0) {
            return code;
        }
    }
}

static bool is_lost(const struct text *text)
{
    return text != NULL && text->overflow;
}

static int ask_service(const struct search_form *form, const struct search_options *options,
                       struct sg_call *call, const struct search_request *request,
                       struct sg_http_reply *reply, struct sg_error *err)
{
    TEXT_CLEANUP struct text url = {0}, key = {0};
    struct headers headers = {0};
    put_url(form, options, request->parameters, &url);
    text_printf(&key, "%s%s", form->key_prefix, options->api_key == NULL ? "" : options->api_key);
    headers_put(&headers, "Accept", "application/json");
    if (request->body != NULL) {
        headers_put(&headers, "Content-Type", "application/json");
    }
    if (options->api_key != NULL && options->api_key[0] != '\0') {
        headers_put(&headers, form->key_header, key.data);
    }
    if (url.overflow || key.overflow || is_lost(request->parameters) || is_lost(request->body)) {
        return sg->fail(err, SG_E_INTERNAL, "no memory for a query");
    }
    const struct sg_http_request asked = {
        .method = request->body == NULL ? "GET" : "POST",
        .url = url.data,
        .headers = {headers.keys, headers.values, headers.count},
        .body = request->body == NULL ? NULL : request->body->data,
        .body_len = request->body == NULL ? 0 : request->body->len,
        .timeout_ms = options->timeout,
        .first_byte_ms = options->timeout,
        .silence_ms = options->timeout,
        .body_bytes_max = ANSWER_BYTES_MAX,
        .ca_file = options->ca_file,
    };
    return exchange(form, call, &asked, reply, err);
}

static int pass_hit(void *ctx, enum sg_out kind, const void *data, size_t len, struct sg_error *err)
{
    return sg->emit(ctx, kind, data, len, err);
}

/* True if it is an answer to the query: hits, or that there are none. */
static bool tells(const struct search_result *result)
{
    bool is_sound = result->elements == 0 || result->unusable < result->elements;
    return result->problem == NULL &&
           (result->hits > 0 || (is_sound && result->failures.data == NULL));
}

int search_ask(const struct search_form *form, const struct search_options *options,
               struct sg_call *call, const struct sg_query *query,
               const struct search_request *request, struct sg_error *err)
{
    struct sg_http_reply reply;
    struct search_result result;
    const struct sg_sink sink = {pass_hit, call};
    int code = ask_service(form, options, call, request, &reply, err);
    if (code != 0) {
        return code;
    }
    if (reply.status < 200 || reply.status >= 300) {
        return search_fault(form, options, query, &reply, err);
    }
    const char *body = reply.body == NULL ? "" : reply.body;
    code = search_read(form, body, reply.body_len, query, search_count(options, query),
                       (int64_t)time(NULL), &sink, &result, err);
    return code != 0 || tells(&result)
               ? code
               : search_fault_answer(form, options, query, &reply, &result, err);
}

int search_post(const struct search_form *form, const struct search_options *options,
                struct sg_call *call, const struct sg_query *query, struct text *object,
                struct sg_error *err)
{
    search_object_end(object);
    return search_ask(form, options, call, query, &(struct search_request){.body = object}, err);
}
