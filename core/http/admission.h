/* Admission: what the process may hold, so that it never meets EMFILE nor runs out of memory for requests.
 *
 * Descriptors are counted by kind, as estimates, against RLIMIT_NOFILE (raised to its hard limit at start). Near it what
 * has been idle for a while or only lingers is closed, at it also all else that is idle and what has sent no whole head;
 * where nothing is left the server answers 503 with Retry-After instead of opening more.
 *
 * Bytes are those that are held for requests: bodies, turns, queues of plugins' output. They count against a budget for
 * all and a share of it for each identity. What would go beyond is refused with 503 and Retry-After (SG_E_LIMIT). Any
 * thread, but for the functions that say otherwise. */
#ifndef SANDGATE_HTTP_ADMISSION_H
#define SANDGATE_HTTP_ADMISSION_H

#include "base/error.h"
#include "base/str.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- descriptors ---- */

/* Raises the soft limit to the hard one. `fixed`: descriptors that are always open. Returns the limit. */
size_t admission_init(size_t fixed);

/* Takes `count` descriptors' worth of room; false if there is none. */
bool admission_take(size_t count);
/* In a fiber: where there is no room, or little, what nobody serves is closed, and room awaited for a moment (40 ms). False if
 * there is none then. Waits. */
bool admission_await(size_t count);
bool admission_take_waiting(size_t count);
void admission_give(size_t count);
size_t admission_used(void);
size_t admission_limit(void);           /* what may be taken in all */
size_t admission_connections_max(void); /* (limit − fixed) / 2 */
bool admission_is_near(void);           /* seven eighths are taken: time to close what is idle */

/* Where the limit is near, has every loop close what nobody serves: all connections kept to upstreams, then, if it still
 * is, `count` of the clients': idle ones, then those that linger; and where `count` more would be beyond the limit, those
 * that have sent no whole head, that many on all loops. They do so in their next turn. */
void admission_relieve(size_t count);
/* Who does that: the server while it serves; NULL: nobody. */
struct admission_reliever {
    void (*relieve)(struct admission_reliever *, size_t count);
};
void admission_set_reliever(struct admission_reliever *);

/* ---- bytes ---- */

/* What RAM there is, or what this control group may use of it. */
uint64_t admission_machine_bytes(void);
/* The budget for all requests and an identity's share of it; before serving. Without it (tests, tools) there is none. */
void admission_set_budget(uint64_t bytes, uint64_t share_bytes);
uint64_t admission_budget(void); /* 0: none */
uint64_t admission_bytes(void);  /* held now */

/* What one request, or one call of a plugin, holds: on account of its identity, and of all. */
struct holder;
struct account {
    struct holder *holder; /* the identity's; NULL: not open */
    atomic_size_t bytes;
};

void account_open(struct account *, struct str identity);
/* Takes so many more bytes; SG_E_LIMIT with status 503 beyond one of the budgets, or 413 where an empty gateway would not
 * have them either. */
int account_take(struct account *, size_t bytes, struct sg_error *err);
/* The same for what is bounded by itself and must be held. An account that is not open is fine. */
void account_add(struct account *, size_t bytes);
void account_give(struct account *, size_t bytes);
/* Sets what it holds to so many bytes: takes or gives the difference. */
int account_set(struct account *, size_t bytes, struct sg_error *err);
void account_close(struct account *); /* gives all back; one that is not open is fine */

#endif
