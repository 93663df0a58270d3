/* Reading the clocks. */
#include "base/clock.h"

#include <time.h>

static int64_t read_clock(clockid_t id, int64_t per_second)
{
    struct timespec now;
    (void)clock_gettime(id, &now); /* cannot fail for these clocks */
    return (int64_t)now.tv_sec * per_second + now.tv_nsec / (1000000000 / per_second);
}

int64_t clock_ms(void)
{
    return read_clock(CLOCK_MONOTONIC, 1000);
}

int64_t clock_us(void)
{
    return read_clock(CLOCK_MONOTONIC, 1000000);
}

int64_t clock_unix_s(void)
{
    return read_clock(CLOCK_REALTIME, 1);
}

int64_t clock_unix_ms(void)
{
    return read_clock(CLOCK_REALTIME, 1000);
}

int64_t deadline_in(int64_t ms)
{
    int64_t now = clock_ms();
    return ms < 0 || ms > DEADLINE_NONE - now ? DEADLINE_NONE : now + ms;
}
