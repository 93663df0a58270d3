/* What an answer leaves behind for the request that continues it: bytes of the surface's making, found by ids that the
 * client was given, and the container that waits for it. Bounded in time, in bytes a record, a key, its users together, and in all; the
 * least recently used go first. A record is found by its own identity only. In memory: a restart forgets it all.
 *
 * All functions may be called from any thread. Times are the caller's (clock_ms()). What is out of date is dropped by
 * the next call, of whatever identity. */
#ifndef SANDGATE_SESSION_RECORDS_H
#define SANDGATE_SESSION_RECORDS_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct records;
struct record;

struct records_options {
    int64_t life_ms;       /* from its last use: 1 h */
    size_t record_bytes;   /* of one, all told: 1 MiB */
    size_t identity_bytes; /* of all of a key: 16 MiB */
    size_t total_bytes;    /* of all: 256 MiB */
};
void records_options_default(struct records_options *);

struct records *records_new(const struct records_options *);
void records_free(struct records *); /* NULL is fine; no record is held any more (asserted) */

struct record_input {
    struct str identity;
    const struct str *ids; /* each finds it; at least one */
    size_t ids_count;
    struct str data;
    struct str container_id; /* empty: none waits */
};

/* Copies it. False where it alone is over a limit. An id that another record has is this one's then; a record of which
 * none is left goes. */
bool records_keep(struct records *, const struct record_input *, int64_t now_ms);

/* Forgets the record that has the id; false: there is none. */
bool records_drop(struct records *, struct str identity, struct str id, int64_t now_ms);

/* The record with a reference, used now and so kept for its full life again; NULL: there is none. */
struct record *records_find(struct records *, struct str identity, struct str id, int64_t now_ms);
void record_unref(struct record *); /* NULL is fine */

/* Unchanged as long as the reference is held. */
struct str record_data(const struct record *);
struct str record_container_id(const struct record *);

struct records_stats {
    size_t count, bytes, identities;
    uint64_t kept, refused, found, missed, expired, evicted;
};
void records_stats(struct records *, struct records_stats *ret);

#endif
