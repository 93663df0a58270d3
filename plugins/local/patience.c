/* How long a call waits for its box. */
#include "patience.h"

struct patience patience_begin(uint64_t answers, int64_t now_ms, bool alone)
{
    int64_t silence_ms = alone ? PATIENCE_MOST_MS : PATIENCE_SILENCE_MS;
    return (struct patience){answers, now_ms + silence_ms, now_ms + PATIENCE_MOST_MS};
}

int64_t patience_look(struct patience *patience, uint64_t answers, int64_t now_ms,
                      bool *ret_is_silent)
{
    if (answers != patience->answers) {
        patience->answers = answers;
        patience->silent_until = now_ms + PATIENCE_SILENCE_MS;
    }
    *ret_is_silent = patience->silent_until < patience->until;
    int64_t next = *ret_is_silent ? patience->silent_until : patience->until;
    return next > now_ms ? next - now_ms : 0;
}
