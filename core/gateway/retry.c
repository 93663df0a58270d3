/* Which failures of an upstream may pass by themselves, and how long to wait before the next try. */
#include "gateway/upstream.h"

#include "base/clock.h"
#include "base/digest.h"
#include "base/limits.h"
#include "base/log.h"

#include <stdlib.h>
#include <time.h>

enum {
    BACK_OFF_MS = 200, /* before the second try, and twice as long before each later one */
    BACK_OFF_SPREAD_MS = 400,
    RETRY_TEXT_BYTES_MAX = 40
};

static bool status_may_pass(int status)
{
    return status == 408 || status == 429 || status >= 500;
}

/* Broken connections, and statuses that say "later": of the answer, or of an error event at its start. */
bool failure_may_pass(const struct upstream_call *call, const struct sg_error *err)
{
    if (call->is_broken) {
        return true;
    }
    if (call->status == 0) { /* a plugin that has answered nothing */
        return call->plugin != NULL && err->code == SG_E_LIMIT;
    }
    bool is_refused = call->status < 200 || call->status > 299;
    return status_may_pass(is_refused ? call->status : err->status);
}

/* Of decimal digits, with a fraction that does not count; -1: it is none. */
static int64_t seconds_of(const char *text)
{
    char *end;
    if (text[0] < '0' || text[0] > '9') {
        return -1;
    }
    long seconds = strtol(text, &end, 10); /* at most LONG_MAX: compared, not multiplied */
    if (*end == '.') {
        end += 1 + strspn(end + 1, "0123456789");
        seconds += seconds < INT32_MAX;
    }
    return *end != '\0' ? -1 : seconds > INT32_MAX ? INT32_MAX : seconds;
}

static int64_t ms_until_date(const char *text)
{
    struct tm date = {0};
    const char *end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &date);
    if (end == NULL || *end != '\0') {
        return -1;
    }
    int64_t seconds = (int64_t)timegm(&date) - clock_unix_s();
    return seconds < 0 ? 0 : seconds > INT32_MAX ? (int64_t)INT32_MAX * 1000 : seconds * 1000;
}

int64_t retry_after_ms(struct str ms_field, struct str field)
{
    char text[RETRY_TEXT_BYTES_MAX + 1] = {0};
    struct str chosen = ms_field.len > 0 ? ms_field : field;
    if (chosen.len == 0 || chosen.len > RETRY_TEXT_BYTES_MAX) {
        return -1;
    }
    memcpy(text, chosen.data, chosen.len);
    int64_t number = seconds_of(text);
    if (number >= 0) {
        return ms_field.len > 0 ? number : number * 1000;
    }
    return ms_field.len > 0 ? -1 : ms_until_date(text);
}

/* So that those who were refused together do not come back together. */
static int64_t jitter_ms(void)
{
    uint16_t random;
    random_bytes(&random, sizeof random);
    return random % BACK_OFF_SPREAD_MS;
}

int64_t retry_delay(const struct upstream_call *call, const struct sg_error *err)
{
    int64_t now = clock_ms();
    if (err->code == SG_E_CANCELLED || !failure_may_pass(call, err)) {
        return -1;
    }
    int64_t wanted_ms =
        retry_after_ms(upstream_field(call, "retry-after-ms"), upstream_field(call, "retry-after"));
    int64_t back_off_ms = (int64_t)BACK_OFF_MS << (call->request->tries - 1);
    int64_t delay_ms = (wanted_ms >= 0 ? wanted_ms : back_off_ms) + jitter_ms();
    bool is_too_long = wanted_ms > LIMIT_RETRY_AFTER_MS;
    return is_too_long || delay_ms >= call->request->deadline - now ? -1 : delay_ms;
}

static void retry_log(const struct request *r, int64_t delay_ms, const struct sg_error *err)
{
    struct log_line line;
    log_begin(&line, SG_WARN, "upstream_retry");
    log_text(&line, "request", r->id);
    log_text(&line, "upstream", r->upstream->name);
    log_int(&line, "turn", r->turns);
    log_int(&line, "wait_ms", delay_ms);
    log_text(&line, "error", error_code_name(err->code));
    log_text(&line, "message", err->message);
    log_text(&line, "cause", r->cause[0] != '\0' ? r->cause : NULL);
    log_end(&line);
}

static int sleep_on(void *until, struct sg_error *err)
{
    int64_t left_ms = *(int64_t *)until - clock_ms();
    int rc = left_ms > 0 ? fiber_sleep(left_ms) : 0;
    return rc == 0 ? 0 : error_set(err, rc, "The request was given up.");
}

int retry_wait(struct request *r, int64_t delay_ms, struct sg_error *err)
{
    int64_t until = clock_ms() + delay_ms;
    retry_log(r, delay_ms, err);
    *err = (struct sg_error){0};
    r->cause[0] = '\0';
    r->retry_after = (struct str){0};
    return alive_wait(r, sleep_on, &until, err);
}
