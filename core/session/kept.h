/* What of the registry goes from one process to the next: containers whose handles outlive it, and notices of losses that
 * nobody has been told of yet.
 *
 * Handles are secrets: a struct kept is for the state file (gateway/state_file.h), and for nothing else. Times are Unix
 * milliseconds, since the clock of the one process means nothing to the next. */
#ifndef SANDGATE_SESSION_KEPT_H
#define SANDGATE_SESSION_KEPT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/digest.h"
#include "base/limits.h"
#include "session/registry.h"

struct kept_container {
    struct str identity;
    struct str session_id; /* empty: it has none, and waits for a client that was told its id */
    struct str sandbox;    /* its name */
    struct str handle;
    struct str id;                 /* the clients' */
    struct str label;              /* the provider's */
    uint8_t account[SHA256_BYTES]; /* of the sandbox that made it */
    int64_t created_unix_ms, used_unix_ms;
    int64_t expires_unix_ms; /* of one without a session */
    int64_t life_unix_ms,
        life_latest_unix_ms; /* the provider keeps it at least, and at most, until */
    int64_t park_ms;         /* as lease_park() */
    bool is_used, loss;      /* something was run in it; it carries a loss that was not told yet */
};

struct kept_notice {
    struct str identity;
    uint8_t key[SHA256_BYTES]; /* of the session in its sandbox */
    int64_t since_unix_ms;
};

struct kept { /* the arrays and all texts are in `arena` */
    struct arena *arena;
    struct kept_container *containers;
    size_t containers_count;
    struct kept_notice *notices;
    size_t notices_count;
};

/* ---- keep.c ---- */

/* What could be kept now, in the arena of `ret`; containers in use as if they were used last at this moment. Any thread. */
void registry_look(struct registry *, struct kept *ret);

/* A number that changes with what registry_look() would give. Any thread. */
uint64_t registry_changes(struct registry *);

/* ---- take_up.c ---- */

struct take_up_caps {
    size_t per_identity, max_containers; /* 0: the registry's */
};

struct take_up {
    const struct sandbox *sandboxes; /* of the configuration now */
    size_t sandboxes_count;
    /* The numbers of an identity's own key; NULL: nobody has any. */
    struct take_up_caps (*caps)(void *ctx, struct str identity);
    void *ctx;
};

struct take_up_report {
    size_t taken, evicted, notices;
    /* Not taken: no sandbox of that name; another account; the provider has ended it; no descriptor; the same twice. */
    size_t without_sandbox, of_other_account, ended, without_room, doubled;
};

/* Before anything else is asked of the registry. Containers are READY, with their handles unchecked: the first use says
 * whether they are there. Those whose idle time is over are deleted, and so are the least recently used over a cap. A
 * session whose container is not taken gets a notice. Each that is not taken is logged. On loop 0. */
void registry_take_up(struct registry *, const struct take_up *, const struct kept *,
                      struct take_up_report *ret);

/* ---- kept_json.c: the form in which it is written; pure ---- */

#define KEPT_BYTES_MAX (64 * MIB)
#define KEPT_SECRET_BYTES 32

/* `secret` (KEPT_SECRET_BYTES; NULL: none) is of whoever makes identities. False where it does not fit. */
bool kept_write(const struct kept *, const uint8_t *secret, struct buf *out);

/* Reads what kept_write() wrote, into the arena of `ret`; texts may also lie in `text`. SG_E_INVALID with what is wrong: nothing of it is to be used then.
 * `ret_has_secret` says whether `ret_secret` was filled. */
int kept_read(struct str text, struct kept *ret, uint8_t ret_secret[KEPT_SECRET_BYTES],
              bool *ret_has_secret, struct sg_error *err);

#endif
