/* The gateway's keys: who they are, what they may use, and how much of it. Read from `auth.keys` and from the list in
 * `auth.keys_file`, by one table; kept in settings (settings.h), never changed once they are in force. */
#ifndef SANDGATE_GATEWAY_KEYS_H
#define SANDGATE_GATEWAY_KEYS_H

#include "base/arena.h"
#include "base/digest.h"
#include "conf/conf.h"
#include "session/index.h"

struct key_limits { /* 0: none */
    int64_t requests_per_minute, runs_per_minute, in_flight;
};

struct auth_key {
    const char *name; /* the identity; two keys of one name are one identity */
    uint8_t sha256[SHA256_BYTES];
    bool for_metrics;              /* opens /metrics, and nothing else */
    bool for_admin;                /* opens the admin address, and nothing else */
    const char *const *models;     /* names and patterns; NULL: all */
    const char *const *tools;      /* hosted kinds, likewise */
    struct key_limits limits;      /* of the name: of all its keys and users together */
    struct key_limits user_limits; /* of each user that the key speaks for */
    size_t per_identity;           /* session containers of the identity; 0: as in `sessions` */
    size_t max_containers;         /* containers of the name; 0: likewise */
    int64_t expires_unix_ms;       /* INT64_MAX: never */
    const char *user_header;       /* `user_from: header:NAME`: names the user; NULL: no users */
    struct quota *quota;           /* what was used of the limits; once the settings are in force */
    const char *file;              /* where it stands */
    int line;
    struct hash_node by_hash, by_name; /* by_name: the first of its name */
};

struct key_set { /* all zero: empty */
    struct auth_key *keys;
    size_t count;
    struct hash by_hash, by_name;
};

struct auth_key_text { /* an entry as auth_key_options fill it */
    const char *name, *sha256, *key, *use, *expires, *user_from;
    const char *const *models, *const *tools;
    struct key_limits limits, user_limits;
    int64_t per_identity, max_containers;
};
extern const struct sg_option auth_key_options[];

/* Reads the entries of a list of keys into the set, which has room for them. All problems are told; `problems->file` is the
 * file that they stand in. */
void keys_read(struct key_set *, const struct conf_node *list, const struct auth_key_text *entries,
               size_t count, struct conf_problems *);
void keys_clear(struct key_set *); /* its indexes; the keys are the arena's */

/* NULL: there is none. What it takes depends on the hash alone, which nobody can choose. */
struct auth_key *keys_find(const struct key_set *, const uint8_t sha256[SHA256_BYTES]);
/* The first of that name; NULL: there is none. */
struct auth_key *keys_named(const struct key_set *, struct str name);
/* Is it a client's, and not for /metrics or the admin address alone? */
bool key_is_for_requests(const struct auth_key *);
/* Is there one that opens the admin address? */
bool keys_open_admin(const struct key_set *);
/* Do two entries say the same, but for the key itself and its place? */
bool keys_alike(const struct auth_key *, const struct auth_key *);

/* keys_time.c: "2026-12-31" (to the end of that day, UTC) or "2026-12-31T18:00:00Z" (or with +02:00); false if it is
 * neither. */
bool expiry_read(const char *text, int64_t *ret_unix_ms);

#endif
