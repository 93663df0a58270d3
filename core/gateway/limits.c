/* The limits of the request's key, and of the user that it speaks for: how often, how many at a time, how many runs of tools.
 * A request takes what it needs when it begins, before its body is read; the loop takes a run before each. What the user
 * may is looked at first, so that a user who is over the limit costs the key nothing; what the key may bounds them all. */
#include "gateway/metrics.h"
#include "gateway/quota.h"
#include "gateway/request.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/identity.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#define SECOND_US INT64_C(1000000)

static const char *whose(const struct limit_level *level)
{
    return level->is_user ? "user" : "key";
}

/* What a level of the request's would not let it do. */
struct refusal {
    const struct limit_level *level;
    enum metric_limit limit;
    int64_t wait_us; /* until it would */
};

static int refuse(struct request *r, struct refusal refusal, struct sg_error *err,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));
static int refuse(struct request *r, struct refusal refusal, struct sg_error *err,
                  const char *format, ...)
{
    long long seconds = (refusal.wait_us + SECOND_US - 1) / SECOND_US;
    va_list arguments;
    va_start(arguments, format);
    int rc = error_vset(err, SG_E_LIMIT, format, arguments);
    va_end(arguments);
    metrics_limited(r->gateway->metrics, refusal.limit, refusal.level->is_user);
    err->status = 429;
    (void)snprintf(err->reason, sizeof err->reason, "rate_limit_exceeded"); /* fits */
    r->retry_after = str_of(arena_printf(r->arena, "%lld", seconds > 0 ? seconds : 1));
    return rc;
}

/* ---- beginning and end ---- */

static void levels_open(struct request *r)
{
    static const struct key_limits none = {0};
    bool bounds_users = memcmp(&r->key->user_limits, &none, sizeof none) != 0;
    if (bounds_users && identity_user(r->identity).len > 0) {
        r->levels[r->levels_count++] =
            (struct limit_level){.quota = quota_of(r->gateway->quotas, r->identity),
                                 .limits = &r->key->user_limits,
                                 .is_user = true};
    }
    r->levels[r->levels_count++] =
        (struct limit_level){.quota = r->key->quota, .limits = &r->key->limits};
}

static int flights_begin(struct request *r, struct sg_error *err)
{
    for (size_t i = 0; i < r->levels_count; i++) {
        struct limit_level *level = &r->levels[i];
        int64_t most = level->limits->in_flight;
        if (most > 0 && !flight_begin(level->quota, most)) {
            return refuse(r, (struct refusal){level, METRIC_LIMIT_IN_FLIGHT, SECOND_US}, err,
                          "Too many requests at a time: this %s may have %lld in progress. Try "
                          "again when one of them has ended.",
                          whose(level), (long long)most);
        }
        level->is_in_flight = most > 0;
    }
    return 0;
}

/* What the client is told: of the limit that is nearest. */
static void rate_note(struct request *r, int64_t limit, const struct bucket_state *state)
{
    if (r->rate.limit == 0 || state->remaining < r->rate.remaining) {
        r->rate = (struct request_rate){limit, state->remaining, state->full_us};
    }
}

/* A token of one kind from each level, or none. `*ret_full`: the level that had none. */
static bool tokens_take(struct request *r, struct bucket *(*bucket_of)(struct limit_level *),
                        int64_t (*limit_of)(const struct limit_level *), size_t *ret_full,
                        struct bucket_state states[LIMIT_LEVELS_MAX])
{
    int64_t now_us = clock_us();
    for (size_t i = 0; i < r->levels_count; i++) {
        int64_t limit = limit_of(&r->levels[i]);
        if (limit == 0 || bucket_take(bucket_of(&r->levels[i]), limit, now_us, &states[i])) {
            continue;
        }
        *ret_full = i;
        while (i-- > 0) {
            limit = limit_of(&r->levels[i]);
            if (limit > 0) {
                bucket_give(bucket_of(&r->levels[i]), limit);
            }
        }
        return false;
    }
    return true;
}

static struct bucket *requests_of(struct limit_level *level)
{
    return &level->quota->requests;
}

static int64_t requests_limit(const struct limit_level *level)
{
    return level->limits->requests_per_minute;
}

static int requests_take(struct request *r, struct sg_error *err)
{
    struct bucket_state states[LIMIT_LEVELS_MAX];
    size_t full = 0;
    if (!tokens_take(r, requests_of, requests_limit, &full, states)) {
        int64_t limit = requests_limit(&r->levels[full]);
        rate_note(r, limit, &states[full]);
        struct refusal refusal = {&r->levels[full], METRIC_LIMIT_REQUESTS, states[full].wait_us};
        return refuse(r, refusal, err,
                      "Rate limit reached: this %s may make %lld request%s a minute. Try again "
                      "later.",
                      whose(&r->levels[full]), (long long)limit, limit == 1 ? "" : "s");
    }
    for (size_t i = 0; i < r->levels_count; i++) {
        if (requests_limit(&r->levels[i]) > 0) {
            rate_note(r, requests_limit(&r->levels[i]), &states[i]);
        }
    }
    return 0;
}

int limits_enter(struct request *r, struct sg_error *err)
{
    if (r->key == NULL) {
        return 0;
    }
    levels_open(r);
    int rc = flights_begin(r, err);
    return rc == 0 ? requests_take(r, err) : rc;
}

void limits_leave(struct request *r)
{
    for (size_t i = 0; i < r->levels_count; i++) {
        if (r->levels[i].is_in_flight) {
            flight_end(r->levels[i].quota);
        }
        if (r->levels[i].is_user) {
            quota_give(r->gateway->quotas, r->levels[i].quota);
        }
    }
    r->levels_count = 0;
}

/* ---- runs ---- */

static struct bucket *runs_of(struct limit_level *level)
{
    return &level->quota->runs;
}

static int64_t runs_limit(const struct limit_level *level)
{
    return level->limits->runs_per_minute;
}

bool limits_take_run(struct request *r)
{
    struct bucket_state states[LIMIT_LEVELS_MAX];
    size_t full = 0;
    bool is_taken = tokens_take(r, runs_of, runs_limit, &full, states);
    if (!is_taken) {
        metrics_limited(r->gateway->metrics, METRIC_LIMIT_RUNS, r->levels[full].is_user);
    }
    return is_taken;
}

int limits_check_runs(struct request *r, struct sg_error *err)
{
    for (size_t i = 0; i < r->levels_count; i++) {
        struct bucket_state state = {0};
        int64_t limit = runs_limit(&r->levels[i]);
        if (limit > 0) {
            bucket_look(runs_of(&r->levels[i]), limit, clock_us(), &state);
        }
        if (state.wait_us > 0) {
            struct refusal refusal = {&r->levels[i], METRIC_LIMIT_RUNS, state.wait_us};
            return refuse(r, refusal, err,
                          "Rate limit reached: this %s may run %lld tool call%s a minute. Try "
                          "again later, or ask without tools.",
                          whose(&r->levels[i]), (long long)limit, limit == 1 ? "" : "s");
        }
    }
    return 0;
}

/* ---- what the client is told ---- */

/* As OpenAI writes it: 120ms, 7s, 6m0s. */
const char *limits_duration_text(int64_t us, struct arena *arena)
{
    long long seconds = (us + SECOND_US - 1) / SECOND_US;
    if (us < SECOND_US) {
        return arena_printf(arena, "%lldms", (long long)(us + 999) / 1000);
    }
    return seconds < 60 ? arena_printf(arena, "%llds", seconds)
                        : arena_printf(arena, "%lldm%llds", seconds / 60, seconds % 60);
}

/* As Anthropic writes it: the time, RFC 3339. */
const char *limits_time_text(int64_t in_us, struct arena *arena)
{
    time_t at = (time_t)((clock_unix_ms() * 1000 + in_us + SECOND_US - 1) / SECOND_US);
    struct tm parts;
    char text[32] = "";
    (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &parts)); /* fits */
    return arena_copy(arena, str_of(text));
}

size_t limits_fields(struct request *r, struct http_answer_field *fields)
{
    if (r->rate.limit == 0) {
        return 0;
    }
    bool is_anthropic =
        r->route.surface_name != NULL && strcmp(r->route.surface_name, "messages") == 0;
    const char *limit = arena_printf(r->arena, "%lld", (long long)r->rate.limit);
    const char *left = arena_printf(r->arena, "%lld", (long long)r->rate.remaining);
    const char *reset = is_anthropic ? limits_time_text(r->rate.full_us, r->arena)
                                     : limits_duration_text(r->rate.full_us, r->arena);
    struct str names[3] = {STR("x-ratelimit-limit-requests"), STR("x-ratelimit-remaining-requests"),
                           STR("x-ratelimit-reset-requests")};
    if (is_anthropic) {
        names[0] = STR("anthropic-ratelimit-requests-limit");
        names[1] = STR("anthropic-ratelimit-requests-remaining");
        names[2] = STR("anthropic-ratelimit-requests-reset");
    }
    fields[0] = (struct http_answer_field){names[0], str_of(limit)};
    fields[1] = (struct http_answer_field){names[1], str_of(left)};
    fields[2] = (struct http_answer_field){names[2], str_of(reset)};
    return 3;
}

bool limits_replace_field(const struct request *r, struct str name)
{
    static const char *const families[] = {"x-ratelimit-", "anthropic-ratelimit-"};
    for (size_t i = 0; r->rate.limit > 0 && i < COUNT_OF(families); i++) {
        struct str family = str_of(families[i]);
        if (name.len > family.len && str_eq_nocase((struct str){name.data, family.len}, family)) {
            return true;
        }
    }
    return false;
}
