/* Containers and the sessions that own them: who may use which, how many there are, and that each one is deleted.
 *
 * A session's container is found by SHA-256 over (identity, session id, sandbox), each with its length. States: creating →
 * ready → closing → gone (or lost), with a count of leases. One lock for the table, never held while waiting. Creation
 * and deletion run in fibers of the reaper, never in a request's, with calls and deadlines of their own.
 *
 * All functions that take a lease are for the fiber's loop that acquired it; a request may use one from several fibers
 * of that loop. docs/sessions.md has the rules and their reasons. */
#ifndef SANDGATE_SESSION_REGISTRY_H
#define SANDGATE_SESSION_REGISTRY_H

#include "base/arena.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/limits.h"
#include "loop/loop.h"
#include "plugin/call.h"

struct registry;
struct lease;
struct kept;

struct sandbox { /* one entry of `sandboxes:`; read-only once serving */
    const char *name;
    struct instance *instance;
    int64_t run_timeout_ms;
    int64_t keep_ms; /* how long a container that was named to a client outlives its request */
    bool is_durable; /* its handles outlive the process, where they belong to the same … */
    uint8_t account[SHA256_BYTES]; /* … of plugin, account() and authentication */
};

struct registry_options {
    struct loop *const *loops; /* borrowed; loop 0 runs timers and the deletion queue */
    size_t loops_count;
    int64_t idle_timeout_ms;     /* 15 min */
    size_t per_identity;         /* session containers an identity: 10 */
    size_t max_containers;       /* all containers of a key, its users' together: 100 */
    size_t max_containers_total; /* 1000 */
    size_t runs_per_identity;    /* runs of code at a time an identity; 0: as many as it likes */
    int64_t wait_ms;             /* longest wait for room: 10 s */
    int64_t create_ms;           /* deadline of a creation: 60 s */
    int64_t destroy_ms;          /* deadline of one deletion: 15 s */
    int64_t lost_after_ms;       /* a deletion that fails for so long makes it lost: 60 s */
    size_t lost_max;             /* allowance of lost ones: 10 */
    int64_t
        interrupt_ms; /* a cancelled run that has not returned then: its container is destroyed: 5 s */
    int64_t run_slack_ms;  /* a run's call lasts so much longer than the run may: 5 s */
    int64_t life_slack_ms; /* a provider's life of a container beyond idle time and run: 60 s */
    /* At the end, what outlives the process is not deleted but handed to this function, once, in the fiber of
     * registry_shutdown(); it may wait. Non-zero: it could not, and all is deleted. NULL: all is deleted. */
    int (*keep)(void *ctx, const struct kept *, struct sg_error *);
    void *keep_ctx;
};
void registry_options_default(struct registry_options *); /* all but the loops */

int registry_new(const struct registry_options *, struct registry **ret, struct sg_error *err);

/* On loop 0, in a fiber: no new containers from now on; keeps what it shall (registry_options.keep), deletes all else and
 * waits up to `deadline` for the deletions. What is left is logged and ends by its own life. Returns how many were left. */
size_t registry_shutdown(struct registry *, int64_t deadline);
void registry_free(struct registry *); /* once the loops have stopped */

struct acquire {
    struct str identity;
    size_t per_identity, max_containers; /* instead of the registry's; 0: those */
    struct str session_id;               /* empty: an ephemeral container, ended with its lease */
    struct str container_id; /* not empty: that container of the identity, and no other */
    bool is_parked; /* only if it waits: parked (no longer then, so that one gets it) or idle */
    const struct sandbox *sandbox;
    const char *
        new_id; /* of registry_reserve_id(): a container that is made for it gets this one; NULL: one of its
                           own */
    const char *request_id; /* for logs */
    int64_t deadline;
};

#define CONTAINER_ID_BYTES 48 /* with its NUL */

/* The id that the session's container has, being made or ready. Without one, or without a session, a new id, to be told
 * to a client before the container is made (acquire.new_id): *ret_is_new. Its idle time begins again. Any thread. */
void registry_reserve_id(struct registry *, struct str identity, struct str session_id,
                         const struct sandbox *sandbox, char ret[CONTAINER_ID_BYTES],
                         bool *ret_is_new);

/* With a container id it never waits: SG_E_NOT_FOUND where the identity has none of that id.
 * Waits for a container: the session's, a new one, or room for one. The caller that leaves (SG_E_CANCELLED) cancels its
 * wait, not the creation. SG_E_LIMIT: no room within wait_ms (the message says which limit); else the provider's
 * failure. */
int registry_acquire(struct registry *, const struct acquire *, struct lease **ret,
                     struct sg_error *err);

/* An ephemeral container is not deleted with the last lease then, but after so long without one (0: it is, again). Until
 * then its identity can acquire it by its id. */
void lease_keep(struct lease *, int64_t keep_ms);
bool lease_is_kept(const struct lease *);

/* An ephemeral container waits for the request that continues this one: for so long after its last lease was given
 * back, counted and evicted as any idle one. It is taken over, once, by acquiring its id. 0: it
 * does not wait any more. Of a session's nothing changes. */
void lease_park(struct lease *, int64_t park_ms);

/* "cntr_…", ours; never the provider's handle. May change when a dead container was replaced. */
const char *lease_container_id(const struct lease *);

/* The sandbox that it is in; how long it stays once the lease is given back. */
const struct sandbox *lease_sandbox(const struct lease *);
int64_t lease_stays_ms(const struct lease *);

/* True once after a container of this session was found dead, expired or made room for another, and was replaced: the
 * next result must say so. */
bool lease_take_loss(struct lease *);

/* Nothing has been run in its container so far. */
bool lease_is_unused(const struct lease *);

/* Runs code, for run_timeout_ms of the sandbox at most; one at a time in a container, first come first served. Waits for its turn and for the end. Events go to
 * the sink. A dead container (GONE) is taken out of the table; with GONE_BEFORE it is replaced, once, and the code run
 * again. When the caller is cancelled or the sink refuses, the run is handed to the reaper, which interrupts it and
 * frees the container for the next only when it has returned. *begun counts on when the provider is asked to run it, after
 * all waiting: from then on the code may have had an effect; it is taken back with GONE_BEFORE. NULL: nobody asks. */
int lease_run(struct lease *, const struct sg_run *, const struct sg_sink *, unsigned *begun,
              struct sg_error *err);

/* A provider without such a function: SG_E_UNAVAILABLE, as sandbox_without_files() says it. */
int lease_file_put(struct lease *, const char *path, const void *, size_t, unsigned *begun,
                   struct sg_error *err);
int lease_file_get(struct lease *, const char *path, const struct sg_sink *, struct sg_error *err);
int lease_file_list(struct lease *, const char *path, const struct sg_sink *, struct sg_error *err);
int sandbox_without_files(const struct sandbox *, struct sg_error *err);

/* Gives it back. An ephemeral container is deleted (at once, even while a cancelled run has not returned). Never waits.
 * NULL is fine. */
void lease_release(struct lease *);

struct container_info {
    char container_id[CONTAINER_ID_BYTES];
    char session_id[LIMIT_SESSION_ID_BYTES + 1]; /* as the client gave it; "" without a session */
    const char *sandbox;
    bool is_session;
    size_t leases;
    int64_t created_unix_s;
    int64_t idle_left_ms; /* until it expires; -1 while it has a lease */
};

/* The containers of an identity that are ready, in an array for the caller to free(). Any thread. */
size_t registry_list(struct registry *, struct str identity, struct container_info **ret);

/* Ends a container at its identity's wish, in use or not; false where it has none of that id. Any thread. */
bool registry_end(struct registry *, struct str identity, struct str container_id);

/* The same by session id: a session has a container in each sandbox that it was used in. One that is being made is
 * deleted as soon as it is there. */
bool registry_end_session(struct registry *, struct str identity, struct str session_id,
                          const struct sandbox *sandbox);

/* ---- for the operator, who sees and ends everybody's: registry_all.c. Any thread ---- */

struct container_seen { /* texts are in the caller's arena */
    uint64_t number;    /* grows from each container to the next */
    struct str identity, session_id, container_id, sandbox, label; /* without a session: "" */
    const char *state; /* "creating", "ready", "closing", "lost" */
    bool is_parked;    /* waits for the request that continues an answer */
    size_t leases;
    uint64_t uses; /* runs and file operations that have ended, in this process */
    int64_t created_unix_s;
    int64_t unused_ms;    /* since its last use; -1 while it is in use, or was never */
    int64_t idle_left_ms; /* until it expires; -1 while it is in use, or on its way */
};

struct container_choice {
    struct str identity; /* a key's name, with all its users, or with one; empty: everybody */
    uint64_t after;      /* those with a higher number */
    size_t most;
};

/* In the order of their numbers. */
size_t registry_see(struct registry *, const struct container_choice *, struct arena *,
                    struct container_seen **ret);
/* Ends one, in use or not, and its session is told that it was lost; false where there is none of that id. */
bool registry_end_any(struct registry *, struct str container_id);
/* All of an identity, as in the choice; how many. */
size_t registry_end_all(struct registry *, struct str identity);

struct registry_stats { /* any thread */
    size_t creating, ready, closing, lost, leases, sessions;
    uint64_t created, destroyed, replaced, evicted, expired, destroy_failures;
};
void registry_stats(struct registry *, struct registry_stats *ret);

#endif
