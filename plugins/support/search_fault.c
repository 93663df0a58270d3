/* What is said of a search that gave no hits because something failed: each fault has its own message, for the operator. */
#include "http_fault.h"
#include "search_http.h"

#include <string.h>
#include <strings.h>

#define WORDS_MAX 200
#define READ_MAX 4096 /* looked through for what must not be said, before they are cut */
#define RETRY_AFTER_MAX 86400
#define DEPTH_MAX 3

int64_t search_retry_after(const struct sg_http_reply *reply)
{
    const char *value = NULL;
    for (size_t i = 0; i < reply->headers.count; i++) {
        value =
            strcmp(reply->headers.keys[i], "retry-after") == 0 ? reply->headers.values[i] : value;
    }
    if (value == NULL) {
        return 0;
    }
    size_t digits = strspn(value, "0123456789");
    if (digits == 0 || digits > 9 || value[digits] != '\0') {
        return -1;
    }
    int64_t seconds = 0;
    for (size_t i = 0; i < digits; i++) {
        seconds = seconds * 10 + (value[i] - '0');
    }
    return seconds < RETRY_AFTER_MAX ? seconds : RETRY_AFTER_MAX;
}

/* ---- their words ---- */

/* {"error": "…"}, {"detail": {"error": "…"}}, {"error": {"message": "…"}} … */
static struct json_value find_words(struct json_value object, int depth)
{
    static const char *const names[] = {"message", "detail", "error", "msg"};
    struct json_value values[4] = {{NULL, 0}};
    if (depth == DEPTH_MAX || !json_find(object.data, object.len, names, values, 4)) {
        return (struct json_value){NULL, 0};
    }
    for (size_t i = 0; i < 4; i++) {
        if (json_is_string(values[i]) && values[i].len > 2) {
            return values[i];
        }
    }
    for (size_t i = 0; i < 4; i++) {
        struct json_value inner = json_is_object(values[i]) ? find_words(values[i], depth + 1)
                                                            : (struct json_value){NULL, 0};
        if (inner.data != NULL) {
            return inner;
        }
    }
    return (struct json_value){NULL, 0};
}

/* As put_failures() writes it. */
static bool is_said(char c)
{
    return c >= 0x20 && c < 0x7F && strchr("[]\"\\", c) == NULL;
}

static bool repeats(const struct text *words, const char *said)
{
    TEXT_CLEANUP struct text bare = {0};
    if (said == NULL || said[0] == '\0') {
        return false;
    }
    for (const char *c = said; *c != '\0'; c++) {
        text_put(&bare, c, is_said(*c));
    }
    return strstr(words->data, said) != NULL ||
           (bare.len > 0 && strstr(words->data, bare.data) != NULL);
}

/* They are said unless they repeat the key or what was searched for. */
static bool may_be_said(const struct search_options *options, const struct sg_query *query,
                        struct text *words)
{
    return words->len > 0 && !words->overflow && !repeats(words, options->api_key) &&
           !repeats(words, query->text);
}

/* ": what they say" */
static void put_words(const struct search_options *options, const struct sg_query *query,
                      const struct sg_http_reply *reply, struct text *out)
{
    TEXT_CLEANUP struct text words = {0};
    struct json_value root = {reply->body == NULL ? "" : reply->body, reply->body_len};
    struct json_value found = find_words(root, 0);
    if (found.data != NULL) {
        search_clean(&words, found, false, READ_MAX);
    }
    if (may_be_said(options, query, &words)) {
        text_printf(out, ": %.*s", (int)text_cut(words.data, words.len, WORDS_MAX), words.data);
    }
}

/* ---- pages ---- */

static const char *first_byte(const struct sg_http_reply *reply)
{
    const char *body = reply->body == NULL ? "" : reply->body;
    return body + strspn(body, " \t\r\n");
}

static bool is_page(const struct sg_http_reply *reply)
{
    return *first_byte(reply) == '<';
}

/* A page that wants to see a human, whatever its status. */
static bool is_captcha(const struct sg_http_reply *reply)
{
    static const char *const signs[] = {
        "captcha",         "cf-challenge",  "challenge-platform", "just a moment",
        "are you a robot", "are you human", "unusual traffic",    "verify you are human"};
    for (size_t i = 0; is_page(reply) && i < sizeof signs / sizeof *signs; i++) {
        if (strcasestr(reply->body, signs[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static int captcha(const struct search_form *form, const struct sg_http_reply *reply,
                   struct sg_error *err)
{
    return sg->fail(err, SG_E_UNAVAILABLE,
                    "%s answers with a page that asks for a human (a CAPTCHA, status %d): it takes "
                    "the gateway for a robot; search less often, or from another address",
                    form->service, reply->status);
}

/* ---- by status ---- */

static int limited(const struct search_form *form, const struct sg_http_reply *reply,
                   const char *words, struct sg_error *err)
{
    int64_t seconds = search_retry_after(reply);
    if (seconds > 0) {
        return sg->fail(err, SG_E_LIMIT,
                        "%s limits how often it is asked (429); it wants rest for %lld s",
                        form->service, (long long)seconds);
    }
    return sg->fail(err, SG_E_LIMIT,
                    "%s limits how often it is asked (429); try again later, or ask for a higher "
                    "limit%s",
                    form->service, words);
}

static int refused(const struct search_form *form, const struct sg_http_reply *reply,
                   const char *words, struct sg_error *err)
{
    switch (reply->status) {
    case 401:
    case 403:
        return sg->fail(err, SG_E_DENIED, "%s does not let us in (%d); %s%s", form->service,
                        reply->status,
                        form->denied_hint == NULL ? "check 'api_key'" : form->denied_hint, words);
    case 402:
    case 432: /* Tavily: the plan's searches, and those paid as they go */
    case 433:
        return sg->fail(err, SG_E_LIMIT,
                        "the searches of the account at %s are used up (%d); look at its plan%s",
                        form->service, reply->status, words);
    case 404:
    case 405:
        return sg->fail(err, SG_E_UNAVAILABLE, "what answers is not %s (%d); check 'base_url'",
                        form->service, reply->status);
    case 429:
        return limited(form, reply, words, err);
    default:
        return sg->fail(err, SG_E_UNAVAILABLE, "%s refuses the query (%d)%s", form->service,
                        reply->status, words);
    }
}

int search_fault(const struct search_form *form, const struct search_options *options,
                 const struct sg_query *query, const struct sg_http_reply *reply,
                 struct sg_error *err)
{
    TEXT_CLEANUP struct text words = {0};
    text_puts(&words, "");
    put_words(options, query, reply, &words);
    const char *said = words.data == NULL ? "" : words.data;
    if (is_captcha(reply)) {
        return captcha(form, reply, err);
    }
    if (reply->status < 400) {
        return sg->fail(err, SG_E_UNAVAILABLE,
                        "%s sends elsewhere (%d), which is not followed; check 'base_url'",
                        form->service, reply->status);
    }
    if (reply->status >= 500) {
        return sg->fail(err, SG_E_UNAVAILABLE, "%s failed (%d)%s", form->service, reply->status,
                        said);
    }
    return refused(form, reply, said, err);
}

/* ---- without an answer, or with one that is none ---- */

int search_fault_exchange(const struct search_form *form, int code, uint32_t failed_at,
                          struct sg_error *err)
{
    if (code == SG_E_CANCELLED) {
        return code;
    }
    /* Too large an answer is no limit on how often one may ask, which is what a model would be told. */
    bool is_large = code == SG_E_LIMIT && failed_at == SG_HTTP_CUT;
    char words[HTTP_FAULT_BYTES];
    return sg->fail(err, is_large ? SG_E_UNAVAILABLE : (enum sg_code)code, "%s %s: %s",
                    form->service, http_fault_words(failed_at, code, "'base_url'", words),
                    sg->message(err));
}

/* The strings of [["google", "CAPTCHA"], …], without what makes it JSON. */
static void put_failures(struct json_value failures, struct text *out)
{
    for (size_t i = 0; i < failures.len && out->len < READ_MAX; i++) {
        text_put(out, &failures.data[i], is_said(failures.data[i]));
    }
}

static int without_hits(const struct search_form *form, const struct search_options *options,
                        const struct sg_query *query, const struct search_result *result,
                        struct sg_error *err)
{
    if (result->failures.data != NULL) {
        TEXT_CLEANUP struct text failures = {0};
        put_failures(result->failures, &failures);
        bool may = may_be_said(options, query, &failures);
        return sg->fail(err, SG_E_UNAVAILABLE,
                        "%s found nothing because what it asks failed%s%.*s; look at its engines",
                        form->service, may ? ": " : "",
                        may ? (int)text_cut(failures.data, failures.len, WORDS_MAX) : 0,
                        may ? failures.data : "");
    }
    return sg->fail(err, SG_E_UNAVAILABLE,
                    "%s's answer holds %zu hits, none with an address that can be used; is "
                    "'base_url' right?",
                    form->service, result->elements);
}

int search_fault_answer(const struct search_form *form, const struct search_options *options,
                        const struct sg_query *query, const struct sg_http_reply *reply,
                        const struct search_result *result, struct sg_error *err)
{
    if (result->problem == NULL) {
        return without_hits(form, options, query, result, err);
    }
    if (is_captcha(reply)) {
        return captcha(form, reply, err);
    }
    if (is_page(reply)) {
        return sg->fail(err, SG_E_UNAVAILABLE,
                        "%s answers with a page of HTML instead of JSON; check 'base_url'",
                        form->service);
    }
    if (*first_byte(reply) == '\0') {
        return sg->fail(err, SG_E_UNAVAILABLE, "%s answers with nothing (%d)", form->service,
                        reply->status);
    }
    if (result->is_cut) {
        return sg->fail(err, SG_E_UNAVAILABLE, "%s's answer ends too early: %s", form->service,
                        result->problem);
    }
    TEXT_CLEANUP struct text words = {0};
    text_puts(&words, "");
    put_words(options, query, reply, &words);
    return sg->fail(err, SG_E_UNAVAILABLE, "%s's answer cannot be used: %s%s", form->service,
                    result->problem, words.data == NULL ? "" : words.data);
}
