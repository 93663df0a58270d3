/* Whether an upstream is worth asking: after so many failures on end its circuit opens, and requests that have another place to
 * go leave it alone; after a while one of them tries it again. Each trial that fails doubles the while, up to a limit; one
 * success closes the circuit. Times are the caller's (clock_ms()). Any thread; where nothing has failed, no lock is taken and
 * nothing is written. */
#ifndef SANDGATE_GATEWAY_CIRCUIT_H
#define SANDGATE_GATEWAY_CIRCUIT_H

#include "base/lock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct circuit_limits {
    int64_t failures;    /* on end that open it; 0: it never opens */
    int64_t open_ms;     /* until the first trial */
    int64_t open_ms_max; /* between two trials at most */
};

struct circuit {
    struct lock lock;        /* of all but is_troubled */
    atomic_bool is_troubled; /* something has failed since the last success */
    bool is_open;
    bool is_trying;      /* a trial has begun and not told how it went */
    int64_t failures;    /* on end */
    int64_t open_ms;     /* that it is open for this time */
    int64_t trial_at_ms; /* the next trial may begin */
};

enum circuit_change { CIRCUIT_SAME, CIRCUIT_OPENED, CIRCUIT_CLOSED };

void circuit_init(struct circuit *);
void circuit_destroy(struct circuit *);

/* May a request go there now? Of those that ask while the circuit is open, the first behind each time of trial may; should
 * it never tell how it went, the next may after as long again. */
bool circuit_allows(struct circuit *, int64_t now_ms);

/* How a call went. A failure while the circuit is open counts where it was the trial's; requests that began before, or had
 * no other place to go, change nothing. */
enum circuit_change circuit_success(struct circuit *);
enum circuit_change circuit_failure(struct circuit *, const struct circuit_limits *,
                                    int64_t now_ms);
/* It ended without telling: its client left. Whoever asks next may try. */
void circuit_unknown(struct circuit *, int64_t now_ms);

struct circuit_state {
    bool is_open;
    int64_t failures; /* on end */
    int64_t open_ms;  /* how long it is open this time */
};
struct circuit_state circuit_look(struct circuit *);

#endif
