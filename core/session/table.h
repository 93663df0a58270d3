/* The table of containers: who holds which under which key, how many there are, which is used least. An interface, so
 * that one shared by several gateways can follow; the memory of this process is its first implementation.
 *
 * A record is CREATING, READY or CLOSING and is named by its key and a fence: a number that no other record ever had.
 * Each function that is given a fence changes nothing, and says so by false, where the record of that fence is gone or
 * not in a state that allows it: whoever acts late acts on nothing. A CLOSING record has left its key, so that the
 * key's next use makes a new one, but is counted until it is removed.
 *
 * Idle means READY without a lease: only idle records are victims and only they expire; both are decided inside one
 * call, so that no lease can come between.
 *
 * A notice is left behind by a session's record that was lost: the next record of that key carries `loss` until it is
 * taken. Notices are bounded for each identity and in time.
 *
 * The memory implementation does not lock: the registry calls it under its lock, where each call is atomic. Times are
 * the caller's. Costs do not grow with the number of records (the heap of expiries: logarithmically). */
#ifndef SANDGATE_SESSION_TABLE_H
#define SANDGATE_SESSION_TABLE_H

#include "base/digest.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_KEY_BYTES SHA256_BYTES
#define TABLE_ID_BYTES 48 /* a container id of ours with its NUL */

struct table_ref {
    uint8_t key[TABLE_KEY_BYTES];
    uint64_t fence; /* never 0 */
};

enum table_state { TABLE_CREATING, TABLE_READY, TABLE_CLOSING };

enum table_limit { /* what stands against a new record */
                   TABLE_LIMIT_NONE,
                   TABLE_LIMIT_SESSIONS,   /* session containers of the identity */
                   TABLE_LIMIT_CONTAINERS, /* all of the identity */
                   TABLE_LIMIT_TOTAL,      /* all */
                   TABLE_LIMIT_COUNT
};

struct table_ask {
    uint8_t key[TABLE_KEY_BYTES];
    struct str identity;
    bool is_session;                    /* counts against `sessions` */
    bool may_create;                    /* false: others wait for room before this one */
    size_t sessions, containers, total; /* the caps */
};

enum table_answer {
    TABLE_LEASED,  /* ready; one lease was taken */
    TABLE_PENDING, /* somebody creates it */
    TABLE_CREATE,  /* a new record, CREATING: the caller creates, then publishes or removes it */
    TABLE_FULL     /* no room; nothing was changed */
};

struct table_reply {
    struct table_ref ref;   /* not with FULL */
    void *local;            /* LEASED, PENDING: as attached */
    bool loss;              /* CREATE: the record carries a loss, to be taken when it is READY */
    enum table_limit limit; /* FULL: the first that stands against it; NONE: only those before it */
    size_t closing;         /* FULL: records on their way out that count against that limit */
    struct table_ref victim; /* FULL: the least recently used idle one that counts; fence 0: none */
    void *victim_local;
};

struct table_view { /* a record as list() shows it; for the time of the call */
    struct table_ref ref;
    enum table_state state;
    bool is_session;
    bool loss; /* not taken yet */
    size_t leases;
    int64_t expires_ms; /* DEADLINE_NONE while it has a lease */
    const char *container_id;
    void *local;
};

struct table_notice { /* of a loss that nobody was told of; for the time of the call */
    struct str identity;
    uint8_t key[TABLE_KEY_BYTES];
    int64_t since_ms;
};

struct table_counts {
    size_t creating, ready, closing, leases, sessions; /* sessions: creating and ready ones */
};

struct table;

struct table_ops {
    /* What this key can have now. */
    enum table_answer (*acquire)(struct table *, const struct table_ask *, struct table_reply *);
    /* A lease on the READY record with this container id, if it is the identity's; else false. */
    bool (*acquire_id)(struct table *, struct str container_id, struct str identity,
                       struct table_reply *);
    /* What this process keeps for the record; borrowed until it is removed. */
    bool (*attach)(struct table *, const struct table_ref *, void *local);
    /* CREATING → READY under its container id (copied), with so many leases at once; without any it expires then. */
    bool (*publish)(struct table *, const struct table_ref *, const char *container_id,
                    size_t leases, int64_t expires_ms);
    /* One more lease on a READY record. */
    bool (*lease)(struct table *, const struct table_ref *);
    /* One lease back. With the last of them it is idle: the most recently used, and expires then. */
    bool (*release)(struct table *, const struct table_ref *, int64_t expires_ms);
    /* Pushes on the expiry of an idle record, and makes it the most recently used; nothing to do for a leased one. */
    bool (*renew)(struct table *, const struct table_ref *, int64_t expires_ms);
    /* CREATING or READY → CLOSING. With `loss` (or a loss not yet taken) a notice stays for the key of a session. */
    bool (*evict)(struct table *, const struct table_ref *, bool loss, int64_t now_ms);
    /* The record ends, in any state; a loss not yet taken goes back to a notice. */
    bool (*remove)(struct table *, const struct table_ref *, int64_t now_ms);
    /* True once for a READY record that carries a loss. */
    bool (*take_loss)(struct table *, const struct table_ref *);
    /* An idle record whose time is over at `now`, made CLOSING; false when there is none (more). */
    bool (*expired)(struct table *, int64_t now_ms, struct table_ref *ret, void **ret_local);
    int64_t (*next_expiry)(const struct table *); /* DEADLINE_NONE: none is idle */
    /* The records of one identity that are not CLOSING. */
    void (*list)(const struct table *, struct str identity,
                 void (*each)(void *context, const struct table_view *), void *context);
    void (*counts)(const struct table *, struct table_counts *ret);
    /* The record of that fence, whatever its state. */
    bool (*look)(const struct table *, const struct table_ref *, struct table_view *ret);
    /* All notices that are not too old, oldest first. */
    void (*notices)(const struct table *, int64_t now_ms,
                    void (*each)(void *context, const struct table_notice *), void *context);
    /* Leaves one, as an earlier table had it; older ones first. Not where the key has a record. */
    void (*leave_notice)(struct table *, const struct table_notice *, int64_t now_ms);
    void (*free)(struct table *); /* with all records; NULL is fine */
};

struct table { /* an implementation's struct starts with it */
    const struct table_ops *ops;
};

struct table *table_memory_new(void);

#define TABLE_NOTICES_MAX 64    /* an identity; the oldest goes */
#define TABLE_NOTICE_MS 3600000 /* an older one is dropped */

#endif
