/* When a key expires, as people write it. */
#include "gateway/keys.h"

#include <time.h>

struct reading {
    const char *at;
    bool is_good;
};

/* Exactly so many digits. */
static int digits_read(struct reading *r, size_t count)
{
    int value = 0;
    for (; r->is_good && count > 0; count--, r->at++) {
        r->is_good = *r->at >= '0' && *r->at <= '9';
        value = r->is_good ? value * 10 + (*r->at - '0') : 0;
    }
    return value;
}

static void sign_read(struct reading *r, char sign)
{
    r->is_good = r->is_good && *r->at == sign;
    r->at += r->is_good;
}

/* Z, +02:00, or nothing, which is UTC too: seconds to the east. */
static int zone_read(struct reading *r)
{
    if (!r->is_good || *r->at == '\0') {
        return 0;
    }
    if (*r->at == 'Z' || *r->at == 'z') {
        r->at++;
        return 0;
    }
    int sign = *r->at == '-' ? -1 : 1;
    sign_read(r, sign < 0 ? '-' : '+');
    int hours = digits_read(r, 2);
    sign_read(r, ':');
    int minutes = digits_read(r, 2);
    r->is_good = r->is_good && hours < 24 && minutes < 60;
    return sign * (hours * 3600 + minutes * 60);
}

/* The day's beginning, in seconds since 1970. */
static int64_t day_read(struct reading *r)
{
    struct tm day = {0};
    day.tm_year = digits_read(r, 4) - 1900;
    sign_read(r, '-');
    day.tm_mon = digits_read(r, 2) - 1;
    sign_read(r, '-');
    day.tm_mday = digits_read(r, 2);
    struct tm real = day;
    int64_t seconds = timegm(&real); /* what is no day becomes another one */
    r->is_good = r->is_good && real.tm_mday == day.tm_mday && real.tm_mon == day.tm_mon;
    return seconds;
}

/* The time of the day, in seconds. */
static int time_read(struct reading *r)
{
    int hours = digits_read(r, 2);
    sign_read(r, ':');
    int minutes = digits_read(r, 2);
    sign_read(r, ':');
    int seconds = digits_read(r, 2);
    r->is_good = r->is_good && hours < 24 && minutes < 60 && seconds < 60;
    return hours * 3600 + minutes * 60 + seconds;
}

bool expiry_read(const char *text, int64_t *ret_unix_ms)
{
    struct reading r = {text, true};
    int64_t seconds = day_read(&r);
    if (r.is_good && *r.at == '\0') {
        seconds += 24 * 3600;
    } else {
        sign_read(&r, r.is_good && *r.at == ' ' ? ' ' : 'T');
        seconds += time_read(&r);
        seconds -= zone_read(&r);
    }
    if (!r.is_good || *r.at != '\0') {
        return false;
    }
    *ret_unix_ms = seconds * 1000;
    return true;
}
