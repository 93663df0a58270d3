/* One HTTP exchange with the API or with a server of a sandbox: its URL, its headers, its answer, and what is said when there
 * was none. A message never holds a sandbox's host, which has the id in it. */
#include "api.h"

#include "http_fault.h"

#include <stdio.h>
#include <string.h>

#define BYTES_DEFAULT ((uint64_t)1 << 20)
#define ERROR_BYTES_MAX ((size_t)64 << 10) /* of a failed answer */
#define HEADERS_MAX 24
#define CONNECT_PAUSE_MS 500
#define WAITS_MAX 3 /* for an API that says when to come again */
#define WAIT_MS_MAX 60000
#define RETRY_AFTER_MAX 120 /* s: it may be wrong, so after that one call finds out */
#define PROBE_MS 3000       /* for its answer, until another tries */
#define CLOSING_MS 5000

struct headers {
    const char *keys[HEADERS_MAX], *values[HEADERS_MAX];
    size_t count;
};

static void headers_put(struct headers *headers, const char *key, const char *value)
{
    if (headers->count < HEADERS_MAX && value != NULL && value[0] != '\0') {
        headers->keys[headers->count] = key;
        headers->values[headers->count++] = value;
    }
}

static void headers_begin(struct headers *headers, const struct exchange *x)
{
    headers_put(headers, "Content-Type", x->content_type);
    for (size_t i = 0; x->headers != NULL && i < x->headers->count; i++) {
        headers_put(headers, x->headers->keys[i], x->headers->values[i]);
    }
}

const char *exchange_header(const struct exchange *x, const char *name)
{
    for (size_t i = 0; i < x->reply.headers.count; i++) {
        if (strcmp(x->reply.headers.keys[i], name) == 0) {
            return x->reply.headers.values[i];
        }
    }
    return NULL;
}

int64_t exchange_retry_after(const struct exchange *x)
{
    const char *value = exchange_header(x, "retry-after");
    int64_t seconds = 0;
    if (value == NULL || value[0] == '\0') {
        return 0;
    }
    for (; *value != '\0'; value++) {
        if (*value < '0' || *value > '9') {
            return 0; /* a date: nothing that E2B sends */
        }
        seconds = seconds > RETRY_AFTER_MAX ? seconds : seconds * 10 + (*value - '0');
    }
    return seconds < 1 ? 1 : seconds < RETRY_AFTER_MAX ? seconds : RETRY_AFTER_MAX;
}

/* ---- the answer ---- */

struct answer { /* between http() and the caller's sink */
    struct exchange *exchange;
    struct text text; /* what is kept */
    size_t max;       /* of it, where the answer is a success */
    int sink_code;    /* the caller's sink has ended it */
    bool is_full;
};

static bool is_success(int status)
{
    return status >= 200 && status < 300;
}

static int answer_take(void *context, enum sg_out kind, const void *data, size_t len,
                       struct sg_error *err)
{
    struct answer *answer = context;
    const struct exchange *x = answer->exchange;
    bool succeeds = is_success(x->reply.status);
    if (x->sink != NULL && (len == 0 || succeeds)) {
        answer->sink_code = x->sink->event(x->sink->ctx, kind, data, len, err);
        return answer->sink_code;
    }
    size_t max = succeeds ? answer->max : ERROR_BYTES_MAX;
    size_t room = max - answer->text.len;
    text_put(&answer->text, data, len < room ? len : room);
    if (len <= room) {
        return 0;
    }
    answer->is_full = true;
    return sg->fail(err, SG_E_LIMIT, "the answer is larger than %zu bytes", max);
}

/* A failed answer that was cut short is an answer all the same. */
static int answer_keep(struct answer *answer, struct sg_call *call, int code, struct sg_error *err)
{
    struct exchange *x = answer->exchange;
    if (code != 0 && (!answer->is_full || is_success(x->reply.status))) {
        return code;
    }
    x->reply.failed_at = 0;
    x->body_kept = x->reply.body = "";
    x->body_kept_len = x->reply.body_len = answer->text.len;
    if (answer->text.len == 0) {
        return 0;
    }
    char *copy = answer->text.overflow ? NULL : sg->alloc(call, answer->text.len + 1);
    if (copy == NULL) {
        x->reply.failed_at = SG_HTTP_CUT; /* it had been sent */
        return sg->fail(err, SG_E_LIMIT, "no memory for an answer of %zu bytes", answer->text.len);
    }
    memcpy(copy, answer->text.data, answer->text.len);
    x->body_kept = x->reply.body = copy;
    return 0;
}

/* Sends it once. *ret_is_sinks: the code is the caller's sink's own. */
static int send_once(struct e2b *e2b, struct sg_call *call, struct exchange *x, const char *url,
                     const struct headers *headers, bool *ret_is_sinks, struct sg_error *err)
{
    uint64_t bytes_max = x->bytes_max > 0 ? x->bytes_max : BYTES_DEFAULT;
    int64_t timeout_ms = x->timeout_ms > 0 ? x->timeout_ms : e2b->config->request_timeout;
    timeout_ms = e2b->is_closing && timeout_ms > CLOSING_MS ? CLOSING_MS : timeout_ms;
    const struct sg_http_request request = {
        .method = x->method,
        .url = url,
        .headers = {headers->keys, headers->values, headers->count},
        .body = x->body,
        .body_len = x->body_len,
        .timeout_ms = timeout_ms,
        .first_byte_ms = timeout_ms,
        .silence_ms = x->silence_ms > 0 ? x->silence_ms : timeout_ms,
        /* One that fails is cut by us, and one that is kept too, so that its status is known. */
        .body_bytes_max =
            bytes_max < 2 * ERROR_BYTES_MAX ? 2 * ERROR_BYTES_MAX : bytes_max + ERROR_BYTES_MAX,
        .ca_file = e2b->config->ca_file,
        .tick_ms = x->sink != NULL ? x->tick_ms : 0,
    };
    struct answer answer = {.exchange = x, .max = (size_t)bytes_max};
    const struct sg_sink sink = {answer_take, &answer};
    x->reply = (struct sg_http_reply){0};
    int code = sg->http(call, &request, &x->reply, &sink, err);
    *ret_is_sinks = code != 0 && answer.sink_code == code;
    code = answer_keep(&answer, call, code, err);
    text_clear(&answer.text);
    return code;
}

/* ---- what is said of one that failed ---- */

static int fail_with(const struct e2b *e2b, const struct sandbox *sandbox, const struct exchange *x,
                     const char *who, int code, struct sg_error *err)
{
    char cause[256], words[HTTP_FAULT_BYTES];
    const char *message = sg->message(err);
    fault_scrub(e2b, sandbox, message, strlen(message), cause);
    if (code == SG_E_INVALID) {
        code = SG_E_INTERNAL; /* what we asked was wrong, not what the model did */
    }
    const char *how =
        http_fault_words(x->reply.failed_at, code, "'domain', 'api_url' and 'sandbox_url',", words);
    /* These two may be told to the model, which the operator's addresses are none of the business of. */
    return code == SG_E_TIMEOUT || code == SG_E_LIMIT
               ? sg->fail(err, (enum sg_code)code, "%s %s", who, how)
               : sg->fail(err, (enum sg_code)code, "%s %s: %s", who, how, cause);
}

/* ---- the API ---- */

/* Where its rest was cut short, the first call after that is let through alone: *ret_is_probe. */
static int64_t closed_for_ms(struct e2b *e2b, bool *ret_is_probe)
{
    int64_t now = clock_ms();
    pthread_mutex_lock(&e2b->lock);
    int64_t left = e2b->api_closed_until - now;
    *ret_is_probe = left <= 0 && e2b->wants_probe;
    if (*ret_is_probe) {
        e2b->api_closed_until = now + PROBE_MS;
    }
    pthread_mutex_unlock(&e2b->lock);
    return left > 0 ? left : 0;
}

static void close_for(struct e2b *e2b, int64_t seconds)
{
    int64_t until = clock_ms() + seconds * 1000;
    pthread_mutex_lock(&e2b->lock);
    e2b->wants_probe = e2b->wants_probe || seconds == RETRY_AFTER_MAX;
    if (e2b->api_closed_until < until) {
        e2b->api_closed_until = until;
    }
    pthread_mutex_unlock(&e2b->lock);
}

/* The probe was answered with something else: everybody may ask again. */
static void open_again(struct e2b *e2b)
{
    pthread_mutex_lock(&e2b->lock);
    e2b->wants_probe = false;
    e2b->api_closed_until = 0;
    pthread_mutex_unlock(&e2b->lock);
}

static int64_t longest_wait_ms(const struct e2b *e2b, struct sg_call *call,
                               const struct exchange *x)
{
    int64_t left = sg->time_left_ms(call);
    return e2b->is_closing || x->never_waits ? 0 : left < WAIT_MS_MAX ? left : WAIT_MS_MAX;
}

static bool wants_probe(struct e2b *e2b)
{
    pthread_mutex_lock(&e2b->lock);
    bool wants_probe = e2b->wants_probe;
    pthread_mutex_unlock(&e2b->lock);
    return wants_probe;
}

/* As long as the API has said, to this call or to another. Of those that wait for a probe one becomes it, and the others wait
 * on, each time with less time left. */
static int await_opening(struct e2b *e2b, struct sg_call *call, const struct exchange *x,
                         bool *ret_is_probe, struct sg_error *err)
{
    int64_t left = closed_for_ms(e2b, ret_is_probe);
    bool is_end = x->method != NULL && strcmp(x->method, "DELETE") == 0;
    if (left == 0) {
        return 0;
    }
    if (left >= longest_wait_ms(e2b, call, x) && is_end) {
        return 0; /* asked all the same, once: what is not ended goes on to cost */
    }
    if (left >= longest_wait_ms(e2b, call, x)) {
        return sg->fail(err, SG_E_LIMIT,
                        "E2B's API is not asked: E2B limits how often it is (429); it wants rest "
                        "for %lld s, more than there is time; try again later",
                        (long long)(left + 999) / 1000);
    }
    int code = sg->sleep(call, left, err);
    return code == 0 && wants_probe(e2b) ? await_opening(e2b, call, x, ret_is_probe, err) : code;
}

static bool may_wait(struct e2b *e2b, struct sg_call *call, const struct exchange *x, int waits,
                     bool is_probe)
{
    if (is_probe && x->reply.status != 429) {
        open_again(e2b);
    }
    int64_t seconds = x->reply.status == 429 ? exchange_retry_after(x) : 0;
    if (seconds > 0) {
        close_for(e2b, seconds);
    }
    return seconds > 0 && waits < WAITS_MAX && seconds * 1000 < longest_wait_ms(e2b, call, x);
}

/* Tries again what did not reach it, and waits when it says so. */
static int send_to_api(struct e2b *e2b, struct sg_call *call, struct exchange *x, const char *url,
                       const struct headers *headers, struct sg_error *err)
{
    bool is_sinks = false, has_paused = false, is_probe = false;
    for (int waits = 0;;) {
        int code = await_opening(e2b, call, x, &is_probe, err);
        if (code != 0) {
            x->reply = (struct sg_http_reply){.failed_at = SG_HTTP_UNCONNECTED};
            return code;
        }
        code = send_once(e2b, call, x, url, headers, &is_sinks, err);
        bool may_try = code == SG_E_UNAVAILABLE && x->reply.failed_at == SG_HTTP_UNCONNECTED &&
                       !x->never_waits;
        if (code == 0 && may_wait(e2b, call, x, waits, is_probe)) {
            waits++;
        } else if (may_try && !has_paused && sg->sleep(call, CONNECT_PAUSE_MS, err) == 0) {
            has_paused = true;
        } else {
            if (code == 0 || is_sinks) {
                return code;
            }
            /* Too large an answer is no limit of the account, which a model would be told. */
            bool is_large = code == SG_E_LIMIT && x->reply.failed_at == SG_HTTP_CUT;
            code = fail_with(e2b, NULL, x, "E2B's API", code, err);
            return is_large ? sg->fail(err, SG_E_UNAVAILABLE, "%s", sg->message(err)) : code;
        }
    }
}

int exchange_api(struct e2b *e2b, struct sg_call *call, struct exchange *x, struct sg_error *err)
{
    struct text url = {0};
    struct headers headers = {0};
    text_printf(&url, "%s%s", e2b->api_url, x->path);
    headers_put(&headers, "X-API-Key", e2b->config->api_key);
    headers_begin(&headers, x);
    int code = url.overflow ? sg->fail(err, SG_E_LIMIT, "no memory for a request")
                            : send_to_api(e2b, call, x, url.data, &headers, err);
    text_clear(&url);
    return code;
}

/* ---- a sandbox ---- */

static void sandbox_url(const struct e2b *e2b, const struct sandbox *sandbox, enum e2b_port port,
                        const char *path, struct text *url)
{
    if (e2b->sandbox_url != NULL) {
        text_printf(url, "%s%s", e2b->sandbox_url, path);
        return;
    }
    const char *domain = sandbox->domain[0] != '\0' ? sandbox->domain : e2b->config->domain;
    text_printf(url, "https://%d-%s.%s%s", (int)port, sandbox->id, domain, path);
}

int exchange_sandbox(struct e2b *e2b, struct sg_call *call, struct sandbox *sandbox,
                     enum e2b_port port, struct exchange *x, struct sg_error *err)
{
    char port_text[8];
    struct text url = {0};
    struct headers headers = {0};
    bool is_sinks = false;
    (void)snprintf(port_text, sizeof port_text, "%d", (int)port); /* fits */
    sandbox_url(e2b, sandbox, port, x->path, &url);
    headers_put(&headers, "E2b-Sandbox-Id", sandbox->id);
    headers_put(&headers, "E2b-Sandbox-Port", port_text);
    headers_put(&headers, "X-Access-Token", sandbox->envd_token);
    headers_put(&headers, "E2B-Traffic-Access-Token",
                port == PORT_ENVD ? NULL : sandbox->traffic_token);
    headers_begin(&headers, x);
    int code = url.overflow ? sg->fail(err, SG_E_LIMIT, "no memory for a request")
                            : send_once(e2b, call, x, url.data, &headers, &is_sinks, err);
    text_clear(&url);
    return code == 0 || is_sinks ? code : fail_with(e2b, sandbox, x, "the sandbox", code, err);
}
