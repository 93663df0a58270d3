/* The keys that steer a gateway from inside and never come from a client nor go to an upstream: one fixed table, cut
 * out of every request body at the top level and in `metadata`, before routing. Pure. */
#ifndef SANDGATE_SESSION_CONTROL_KEYS_H
#define SANDGATE_SESSION_CONTROL_KEYS_H

#include "base/json.h"

/* Is this (decoded) key one of the table? `metadata.session_id` is not: it is the client's to set. */
bool control_key_is(struct str key);

/* Is this a place of the body that may hold the session id? Places that front ends put the conversation's id in, beside
 * metadata.session_id: `metadata.user_id` of messages (a coding client writes its session into it), `prompt_cache_key`. */
bool session_id_source_valid(const char *source);

/* Reads the session id from the first of `sources`, each of which is valid, that holds
 * one. Absent, null and "" mean none (empty). Anything but a string of 1 to 256 bytes without NUL is SG_E_INVALID with
 * its param. `metadata` that is not an object (nor null, nor absent) is SG_E_INVALID. To be called before the cut. */
int session_id_read(const struct json_text *body, const char *const *sources, struct arena *,
                    struct str *ret, struct sg_error *err);

/* Cuts the control keys: *ret is `body` itself where nothing was to be cut, else the new text in `storage` with its
 * members (not scanned again). With `take_session_id` metadata.session_id goes too. A `metadata` that becomes empty
 * goes as a whole; the rest of it stays byte for byte. */
int control_keys_cut(const struct json_text *body, bool take_session_id, struct arena *,
                     struct buf *storage, struct json_text *ret, struct sg_error *err);

#endif
