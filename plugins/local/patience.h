/* How long a call waits for its box where many ask at one time. The broker answers one after the other: whoever stands far
 * behind waits for as long as those before are served, and only a broker that answers nobody has failed. */
#ifndef LOCAL_PATIENCE_H
#define LOCAL_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#define PATIENCE_SILENCE_MS 10000 /* in which the broker has answered nobody */
#define PATIENCE_MOST_MS 30000 /* in all: whoever asked for code can be told that there is none */

struct patience {
    uint64_t answers; /* that the broker had given to anybody, at the last look */
    int64_t silent_until, until;
};

/* Times are monotonic milliseconds, `answers` any counter of the broker's answers. `alone`: nobody else asks, and the broker
 * may first wait for a template, so that a silence says nothing. */
struct patience patience_begin(uint64_t answers, int64_t now_ms, bool alone);
/* How long to wait until the next look; 0: no longer. Then *ret_is_silent says which of both it was. */
int64_t patience_look(struct patience *, uint64_t answers, int64_t now_ms, bool *ret_is_silent);

#endif
