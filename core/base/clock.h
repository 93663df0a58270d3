/* Time: monotonic milliseconds in int64_t everywhere; a deadline is a point in that time. */
#ifndef SANDGATE_BASE_CLOCK_H
#define SANDGATE_BASE_CLOCK_H

#include <stdint.h>

#define DEADLINE_NONE INT64_MAX

int64_t clock_ms(void);      /* monotonic */
int64_t clock_us(void);      /* monotonic */
int64_t clock_unix_s(void);  /* for "created" and the like */
int64_t clock_unix_ms(void); /* for logs */

/* now + ms, DEADLINE_NONE for ms < 0 or past the end of time. */
int64_t deadline_in(int64_t ms);

static inline int64_t deadline_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

#endif
