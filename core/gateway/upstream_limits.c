/* What an upstream says of its rate limits, told to the client in the words of the client's API. Names and times differ between
 * the two vendors; what has no counterpart, and what cannot be understood, is left out rather than told under another
 * name. Relayed answers have these fields as they came. */
#include "gateway/upstream.h"

#include "base/check.h"
#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define SECOND_US INT64_C(1000000)

enum { LIMIT_S_MAX = 366 * 24 * 3600 };

/* OpenAI's tells how long from now, Anthropic's the time. Its input and output tokens have no counterpart. */
static const struct {
    const char *of_openai, *of_anthropic;
    bool is_time;
} names[] = {
    {"x-ratelimit-limit-requests", "anthropic-ratelimit-requests-limit", false},
    {"x-ratelimit-remaining-requests", "anthropic-ratelimit-requests-remaining", false},
    {"x-ratelimit-reset-requests", "anthropic-ratelimit-requests-reset", true},
    {"x-ratelimit-limit-tokens", "anthropic-ratelimit-tokens-limit", false},
    {"x-ratelimit-remaining-tokens", "anthropic-ratelimit-tokens-remaining", false},
    {"x-ratelimit-reset-tokens", "anthropic-ratelimit-tokens-reset", true},
};

/* ---- times ---- */

/* A number of at most nine digits; false where there is none. */
static bool number_take(struct str *text, int64_t *ret)
{
    size_t len = 0;
    *ret = 0;
    while (len < text->len && text->data[len] >= '0' && text->data[len] <= '9') {
        *ret = len < 9 ? *ret * 10 + (text->data[len] - '0') : *ret;
        len++;
    }
    *text = (struct str){text->data + len, text->len - len};
    return len > 0 && len <= 9;
}

static bool mark_take(struct str *text, struct str mark)
{
    if (!str_starts(*text, mark)) {
        return false;
    }
    *text = (struct str){text->data + mark.len, text->len - mark.len};
    return true;
}

/* What is behind a point counts as something: a limit is over no sooner than it says. */
static bool has_fraction(struct str *text)
{
    int64_t ignored;
    return mark_take(text, STR(".")) && number_take(text, &ignored) && ignored > 0;
}

/* "6m0s", "1.5s", "20ms": in seconds, rounded up. */
static bool duration_read(struct str text, int64_t *ret)
{
    int64_t seconds = 0, number;
    bool rest = false;
    while (text.len > 0) {
        if (!number_take(&text, &number)) {
            return false;
        }
        rest = has_fraction(&text) || rest;
        if (mark_take(&text, STR("ms"))) {
            seconds += number / 1000;
            rest = rest || number % 1000 > 0;
        } else if (mark_take(&text, STR("h"))) {
            seconds += number * 3600;
        } else if (mark_take(&text, STR("m"))) {
            seconds += number * 60;
        } else if (mark_take(&text, STR("s"))) {
            seconds += number;
        } else {
            return false;
        }
        if (seconds > LIMIT_S_MAX) {
            return false;
        }
    }
    *ret = seconds + rest;
    return true;
}

static int64_t seconds_left(int64_t unix_s)
{
    int64_t left = unix_s - clock_unix_s();
    return left < 0 ? 0 : left;
}

/* "2026-01-27T12:00:00Z", or with an offset: in seconds from now. */
static bool time_read(struct str text, int64_t *ret)
{
    static const struct str marks[] = {STR("-"), STR("-"), STR("T"), STR(":"), STR(":"), STR("")};
    int64_t numbers[6], hours = 0, minutes = 0;
    for (size_t i = 0; i < COUNT_OF(marks); i++) {
        if (!number_take(&text, &numbers[i]) || numbers[i] > 9999 || !mark_take(&text, marks[i])) {
            return false;
        }
    }
    bool rest = has_fraction(&text), is_west = mark_take(&text, STR("-"));
    bool is_utc = !is_west && (mark_take(&text, STR("Z")) || mark_take(&text, STR("z")));
    if (!is_utc && ((!is_west && !mark_take(&text, STR("+"))) || !number_take(&text, &hours) ||
                    !mark_take(&text, STR(":")) || !number_take(&text, &minutes) || hours > 23)) {
        return false;
    }
    struct tm date = {.tm_year = (int)numbers[0] - 1900,
                      .tm_mon = (int)numbers[1] - 1,
                      .tm_mday = (int)numbers[2],
                      .tm_hour = (int)numbers[3],
                      .tm_min = (int)numbers[4],
                      .tm_sec = (int)numbers[5]};
    int64_t offset = (hours * 60 + minutes) * 60;
    *ret = seconds_left((int64_t)timegm(&date) + (is_west ? offset : -offset) + rest);
    return text.len == 0 && *ret <= LIMIT_S_MAX;
}

/* ---- fields ---- */

/* NULL: it cannot be understood. */
static const char *value_between(struct arena *arena, struct str value, bool is_time,
                                 bool to_openai)
{
    int64_t number = 0;
    value = str_trim(value);
    if (!is_time) {
        struct str rest = value;
        bool is_count = number_take(&rest, &number) && rest.len == 0;
        return is_count ? arena_printf(arena, "%lld", (long long)number) : NULL;
    }
    if (to_openai) {
        return time_read(value, &number) ? limits_duration_text(number * SECOND_US, arena) : NULL;
    }
    return duration_read(value, &number) ? limits_time_text(number * SECOND_US, arena) : NULL;
}

static void limits_translate(struct request *r, const struct upstream_call *call, bool to_openai)
{
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const char *theirs = to_openai ? names[i].of_anthropic : names[i].of_openai;
        const char *ours = to_openai ? names[i].of_openai : names[i].of_anthropic;
        struct str value = upstream_field(call, theirs);
        const char *told = value_between(r->arena, value, names[i].is_time, to_openai);
        if (value.len > 0 && told != NULL) {
            r->upstream_limits[r->upstream_limits_count++] =
                (struct http_answer_field){str_of(ours), str_of(told)};
        }
    }
}

static bool is_limit(struct str name)
{
    static const struct str starts[] = {STR("x-ratelimit-"), STR("anthropic-ratelimit-")};
    for (size_t i = 0; i < COUNT_OF(starts); i++) {
        if (name.len > starts[i].len &&
            str_eq_nocase((struct str){name.data, starts[i].len}, starts[i])) {
            return true;
        }
    }
    return false;
}

static void limits_copy(struct request *r, const struct upstream_call *call)
{
    for (size_t i = 0; i < call->fields_count && r->upstream_limits_count < ANSWER_LIMITS_MAX;
         i++) {
        struct str name = call->fields[i].name, value = call->fields[i].value;
        if (is_limit(name) && value.len > 0 && http_value_valid(value)) {
            r->upstream_limits[r->upstream_limits_count++] =
                (struct http_answer_field){{check_alloc(arena_copy(r->arena, name)), name.len},
                                           {check_alloc(arena_copy(r->arena, value)), value.len}};
        }
    }
}

static bool is_anthropic(const char *surface_name)
{
    return strcmp(surface_name, "messages") == 0;
}

/* Those of the turn before are out of date; where the key has limits of its own the client is told these alone. */
void upstream_limits_keep(const struct upstream_call *call)
{
    struct request *r = call->request;
    r->upstream_limits_count = 0;
    if (limits_replace_field(r, STR("x-ratelimit-limit-requests"))) {
        return;
    }
    r->upstream_limits = arena_get(r->arena, ANSWER_LIMITS_MAX * sizeof *r->upstream_limits);
    bool to_openai = !is_anthropic(r->route.surface_name);
    bool is_other = r->spoken != NULL && is_anthropic(r->spoken->name) == to_openai;
    if (is_other) {
        limits_translate(r, call, to_openai);
    } else {
        limits_copy(r, call);
    }
}
