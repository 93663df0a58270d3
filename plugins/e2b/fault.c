/* What a failed answer means: the plugin's code, and a message that says what happened and what to do. The services' own words
 * are handed on where they help, after everything that may be an id, a token or a key was taken out. */
#include "api.h"

#include "json_text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define SECRET_MIN 6 /* shorter ones would take letters out of words */
#define WORD_MAX 16  /* longer words with a digit are ids or keys */
#define HEALTH_MS 5000

enum { ERROR_CODE, ERROR_MESSAGE, ERROR_FIELDS };

struct their_error {
    int64_t code; /* 0: none */
    char message[512];
};

/* ---- their words ---- */

/* The body in E2B's form: {"code": 404, "message": "…"}. */
static bool read_error(const struct exchange *x, struct their_error *ret)
{
    static const char *const names[ERROR_FIELDS] = {"code", "message"};
    struct json_value values[ERROR_FIELDS];
    *ret = (struct their_error){0};
    if (!json_find(x->body_kept, x->body_kept_len, names, values, ERROR_FIELDS) ||
        values[ERROR_CODE].data == NULL || !json_int(values[ERROR_CODE], &ret->code)) {
        return false;
    }
    if (values[ERROR_MESSAGE].data != NULL && json_is_string(values[ERROR_MESSAGE])) {
        struct json_value inside = json_inside(values[ERROR_MESSAGE]);
        size_t len = json_decode(&inside, ret->message, sizeof ret->message - 1);
        ret->message[len] = '\0';
        for (size_t i = 0; i < len; i++) { /* a NUL from \u0000 must not hide the rest */
            ret->message[i] = ret->message[i] == '\0' ? ' ' : ret->message[i];
        }
    }
    return true;
}

bool fault_is_theirs(const struct exchange *x)
{
    struct their_error theirs;
    return read_error(x, &theirs);
}

bool fault_is_missing(const struct exchange *x)
{
    struct their_error theirs;
    return x->reply.status == 404 && read_error(x, &theirs) && theirs.code == 404;
}

bool fault_is_port_closed(const struct exchange *x)
{
    struct their_error theirs;
    return x->reply.status == 502 && read_error(x, &theirs) && theirs.code == 502 &&
           strstr(theirs.message, "port is not open") != NULL;
}

/* E2B's proxy: "The sandbox was not found". */
static bool says_gone(const struct exchange *x)
{
    struct their_error theirs;
    return x->reply.status == 502 && read_error(x, &theirs) && theirs.code == 502 &&
           strstr(theirs.message, "not found") != NULL;
}

/* ---- fit for a message ---- */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) != 0;
}

static bool is_host(char c)
{
    return is_word(c) || c == '.' || c == '-';
}

/* The length of "49999-ID.domain:443" at `text`, 0 if there is none. */
static size_t host_length(const struct sandbox *sandbox, const char *text, size_t len)
{
    static const char *const ports[] = {"49983-", "49999-"};
    size_t id_len = sandbox == NULL ? 0 : strlen(sandbox->id);
    for (size_t i = 0; id_len > 0 && i < 2; i++) {
        size_t port_len = strlen(ports[i]);
        if (len < port_len + id_len || memcmp(text, ports[i], port_len) != 0 ||
            memcmp(text + port_len, sandbox->id, id_len) != 0) {
            continue;
        }
        size_t end = port_len + id_len;
        while (end < len && is_host(text[end])) {
            end++;
        }
        size_t port = end + 1;
        while (port < len && isdigit((unsigned char)text[port])) {
            port++;
        }
        return end < len && text[end] == ':' && port > end + 1 ? port : end;
    }
    return 0;
}

/* The length of a secret of ours that begins at `text`. */
static size_t secret_length(const struct e2b *e2b, const struct sandbox *sandbox, const char *text,
                            size_t len)
{
    const char *const secrets[] = {e2b->config->api_key, sandbox == NULL ? NULL : sandbox->id,
                                   sandbox == NULL ? NULL : sandbox->envd_token,
                                   sandbox == NULL ? NULL : sandbox->traffic_token};
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
        size_t secret_len = secrets[i] == NULL ? 0 : strlen(secrets[i]);
        if (secret_len >= SECRET_MIN && secret_len <= len &&
            memcmp(text, secrets[i], secret_len) == 0) {
            return secret_len;
        }
    }
    return 0;
}

/* The length of a word that looks like an id or a key; of another one 0. */
static size_t long_word_length(const char *text, size_t len)
{
    size_t end = 0;
    bool has_digit = false;
    while (end < len && is_word(text[end])) {
        has_digit = has_digit || isdigit((unsigned char)text[end]);
        end++;
    }
    return end > WORD_MAX && has_digit ? end : 0;
}

static size_t put_short(char *ret, size_t at, const char *text, size_t len)
{
    if (at + len < 256) {
        memcpy(ret + at, text, len);
        return at + len;
    }
    return at;
}

/* Takes one character, or a whole word that is not to be seen; returns how much of the text that was. */
static size_t scrub_one(const struct e2b *e2b, const struct sandbox *sandbox, const char *text,
                        size_t len, bool begins_word, char *ret, size_t *at)
{
    size_t taken = host_length(sandbox, text, len);
    if (taken > 0) {
        *at = put_short(ret, *at, "its host", 8);
        return taken;
    }
    taken = secret_length(e2b, sandbox, text, len);
    taken = taken == 0 && begins_word ? long_word_length(text, len) : taken;
    if (taken > 0) {
        *at = put_short(ret, *at, "***", 3);
        return taken;
    }
    size_t character = text_character(text, len);
    bool is_plain = character > 0 && (unsigned char)*text >= 0x20 && *text != 0x7F;
    *at = is_plain ? put_short(ret, *at, text, character) : put_short(ret, *at, " ", 1);
    return character > 0 ? character : 1;
}

void fault_scrub(const struct e2b *e2b, const struct sandbox *sandbox, const char *text, size_t len,
                 char ret[256])
{
    size_t at = 0, from = 0;
    while (from < len && at < 240) { /* what ends there is cut before a character, not in one */
        bool begins_word = from == 0 || !is_word(text[from - 1]);
        from += scrub_one(e2b, sandbox, text + from, len - from, begins_word, ret, &at);
    }
    while (at > 0 && ret[at - 1] == ' ') {
        at--;
    }
    ret[at] = '\0';
}

/* ": what they say", for the end of a message. */
static void their_words(const struct e2b *e2b, const struct sandbox *sandbox,
                        const struct exchange *x, char ret[300])
{
    char words[256];
    struct their_error theirs;
    const char *body = x->body_kept;
    size_t len = x->body_kept_len;
    while (len > 0 && isspace((unsigned char)*body)) {
        body++;
        len--;
    }
    if (len == 0) {
        (void)snprintf(ret, 300, ", without a reason"); /* fits, as all below */
    } else if (*body == '<') {
        (void)snprintf(ret, 300, ", with a page of HTML, so perhaps something in between did");
    } else if (read_error(x, &theirs) && theirs.message[0] != '\0') {
        fault_scrub(e2b, sandbox, theirs.message, strlen(theirs.message), words);
        (void)snprintf(ret, 300, ": %s", words);
    } else {
        fault_scrub(e2b, sandbox, body, len, words);
        (void)snprintf(ret, 300, ": %s", words);
    }
}

/* ---- the API ---- */

static int limit_of_api(const struct exchange *x, const char *what, const char *words,
                        struct sg_error *err)
{
    int64_t seconds = exchange_retry_after(x);
    if (seconds > 0) {
        return sg->fail(err, SG_E_LIMIT,
                        "%s: E2B limits how often it is asked (429); try again in %lld s", what,
                        (long long)seconds);
    }
    return sg->fail(err, SG_E_LIMIT,
                    "%s: a limit of the account at E2B is reached (429); end sandboxes, or try "
                    "again later%s",
                    what, words);
}

static int refusal_of_api(const struct exchange *x, const char *what, const char *words,
                          struct sg_error *err)
{
    switch (x->reply.status) {
    case 400:
    case 413:
    case 422:
        return sg->fail(err, SG_E_INVALID, "%s: E2B refuses the request (%d)%s", what,
                        x->reply.status, words);
    case 401:
        return sg->fail(err, SG_E_DENIED, "%s: E2B refuses the API key (401); check 'api_key'",
                        what);
    case 403:
        return sg->fail(err, SG_E_DENIED, "%s: E2B does not allow it (403)%s", what, words);
    case 409:
        return sg->fail(err, SG_E_UNAVAILABLE,
                        "%s: the sandbox is being paused, resumed or ended (409); try again%s",
                        what, words);
    case 429:
        return limit_of_api(x, what, words, err);
    default:
        return sg->fail(err, SG_E_UNAVAILABLE, "%s: E2B's API answers with status %d%s", what,
                        x->reply.status, words);
    }
}

int fault_api(struct e2b *e2b, struct sg_call *call, const struct exchange *x, const char *what,
              struct sg_error *err)
{
    (void)call;
    char words[300];
    int status = x->reply.status;
    their_words(e2b, NULL, x, words);
    if (fault_is_missing(x)) {
        return sg->fail(err, SG_E_NOT_FOUND, "%s: E2B does not know it (404)%s", what, words);
    }
    if (status == 404 || status < 300) { /* a success that is none for us is no better */
        return sg->fail(err, SG_E_UNAVAILABLE,
                        "%s: what answers is not E2B's API (%d); check 'domain' and 'api_url'",
                        what, status);
    }
    if (status < 400) {
        return sg->fail(err, SG_E_UNAVAILABLE,
                        "%s: E2B's API sends elsewhere (%d), which is not followed; check 'domain' "
                        "and 'api_url'",
                        what, status);
    }
    if (status >= 500) {
        return sg->fail(err, SG_E_UNAVAILABLE, "%s: E2B's API failed (%d)%s", what, status, words);
    }
    return refusal_of_api(x, what, words, err);
}

/* ---- a sandbox's server ---- */

static bool is_known_to_be_gone(struct e2b *e2b, const struct sandbox *sandbox)
{
    pthread_mutex_lock(&e2b->lock);
    bool is_gone = sandbox->is_gone;
    pthread_mutex_unlock(&e2b->lock);
    return is_gone;
}

/* Where what answers is not E2B, or nothing does, the API is asked. */
static bool has_ended(struct e2b *e2b, struct sg_call *call, const struct sandbox *sandbox,
                      struct sg_error *scratch)
{
    return is_known_to_be_gone(e2b, sandbox) || api_knows_not(e2b, call, sandbox->id, scratch);
}

static int gone(struct e2b *e2b, struct sandbox *sandbox, enum sg_code code, const char *what,
                struct sg_error *err)
{
    sandbox_forget(e2b, sandbox);
    return sg->fail(
        err, code, "%s: the sandbox is not there any more: it was ended, or its time was up", what);
}

static int refusal_of_sandbox(const struct exchange *x, const char *what, const char *words,
                              struct sg_error *err)
{
    switch (x->reply.status) {
    case 401:
        return sg->fail(err, SG_E_DENIED,
                        "%s: the sandbox refuses its access token (401); end it and begin anew",
                        what);
    case 403:
        return sg->fail(err, SG_E_DENIED, "%s: the sandbox does not let us in (403)%s", what,
                        words);
    case 404:
        return sg->fail(err, SG_E_UNAVAILABLE,
                        "%s: the sandbox's server does not know what it was asked for (404); is "
                        "'template' one with E2B's code interpreter?",
                        what);
    case 409:
        return sg->fail(err, SG_E_UNAVAILABLE,
                        "%s: the sandbox is being paused or resumed (409); try again", what);
    case 429:
        return sg->fail(err, SG_E_LIMIT,
                        "%s: the sandbox has too many connections (429); try again later", what);
    case 507:
        return sg->fail(err, SG_E_LIMIT, "%s: the sandbox's disk is full (507); delete files",
                        what);
    default:
        return sg->fail(err, SG_E_UNAVAILABLE, "%s: the sandbox answers with status %d%s", what,
                        x->reply.status, words);
    }
}

int fault_sandbox(struct e2b *e2b, struct sg_call *call, struct sandbox *sandbox,
                  const struct exchange *x, const char *what, struct sg_error *err)
{
    char words[300];
    if (fault_is_port_closed(x)) {
        return sg->fail(
            err, SG_E_UNAVAILABLE,
            "%s: the sandbox runs, but its server does not (502); is 'template' one with "
            "E2B's code interpreter?",
            what);
    }
    bool is_doubtful = x->reply.status == 502 && !fault_is_theirs(x);
    if (says_gone(x) || (is_doubtful && has_ended(e2b, call, sandbox, err))) {
        return gone(e2b, sandbox, SG_E_GONE_BEFORE, what, err);
    }
    their_words(e2b, sandbox, x, words);
    return refusal_of_sandbox(x, what, words, err);
}

/* envd says it without a token and at once; where it does not answer, the API is asked. */
int fault_lost(struct e2b *e2b, struct sg_call *call, struct sandbox *sandbox, const char *what,
               struct sg_error *err)
{
    struct exchange x = {.path = "/health", .timeout_ms = HEALTH_MS};
    if (is_known_to_be_gone(e2b, sandbox)) {
        return gone(e2b, sandbox, SG_E_GONE, what, err);
    }
    bool answers = exchange_sandbox(e2b, call, sandbox, PORT_ENVD, &x, err) == 0;
    bool is_well = answers && x.reply.status < 300;
    if ((answers && says_gone(&x)) || (!is_well && has_ended(e2b, call, sandbox, err))) {
        return gone(e2b, sandbox, SG_E_GONE, what, err);
    }
    return sg->fail(err, SG_E_UNAVAILABLE, "%s: the connection to the sandbox was lost", what);
}
