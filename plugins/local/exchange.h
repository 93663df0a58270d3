/* One exchange with the interpreter of a box: a cell, a shell command, a file function. What an earlier one has left is
 * cleared away first; each has a nonce of its own. */
#ifndef LOCAL_EXCHANGE_H
#define LOCAL_EXCHANGE_H

#include "local.h"

#define GRACE_MS 1000                 /* for the interpreter to react to SIGINT */
#define STALE_BYTES ((size_t)4 << 20) /* of an earlier one's output read before a new one starts */

struct exchange {
    struct local *local;
    struct sg_call *call;
    struct box *box;
    char *packet;     /* FRAME_BYTES_MAX bytes of scratch */
    int64_t deadline; /* for what is sent; not for exchange_settle() */
};

/* One reading call at a time; the core sees to it, and a mistake there must not mix two: false. */
bool exchange_claim(struct local *, struct box *);
void exchange_release(struct local *, struct box *);

/* Waits for the end of what an earlier call left running and interrupted; drops what has come since. SG_E_GONE_BEFORE
 * where the box has ended or does not react. */
int exchange_settle(const struct exchange *, struct sg_error *err);
/* Drops what is in the pipes: it belongs to no run. */
void exchange_drop_pipes(const struct exchange *);
/* A fresh nonce; from here until "finished" has come something is unfinished. */
int exchange_begin(const struct exchange *, struct sg_error *err);
/* One value in as many packets as it takes, at least one; waits while the socket is full. `more`: another value follows.
 * SG_E_GONE_BEFORE if the interpreter takes nothing any more. */
int exchange_send(const struct exchange *, enum frame_kind, const char *data, size_t len, bool more,
                  struct sg_error *err);
/* The interpreter's side waits for this before it sends more. A box that does not read its answers does not get them. */
void exchange_answer_sync(const struct box *);
/* What is unfinished is to end; it may not have begun. Which it is the signal alone would not say. */
void exchange_interrupt(const struct box *);
/* Interrupts what is unfinished (unless it was killed): it must not go on for nobody. */
void exchange_end(struct box *, bool was_killed);

#endif
