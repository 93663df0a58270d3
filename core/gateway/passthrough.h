/* Mode passthrough: the client's key is its key at the upstream, and goes up. The gateway knows nobody then; who has a key
 * that the upstream takes is an identity there. Until an upstream has answered 2xx to a key, nothing is kept or run for it;
 * for a while after it did, the key is believed. */
#ifndef SANDGATE_GATEWAY_PASSTHROUGH_H
#define SANDGATE_GATEWAY_PASSTHROUGH_H

#include "base/digest.h"
#include "base/lock.h"

#include <stdbool.h>

#define PASSTHROUGH_IDENTITY_BYTES (3 + 2 * 16 + 1) /* "pt_…" with its NUL */

struct passthrough;
/* `life_ms`: how long a key is believed; of `most` keys, the least recently accepted are forgotten first. */
struct passthrough *passthrough_new(int64_t life_ms, size_t most);
void passthrough_free(struct passthrough *); /* NULL is fine */

/* The secret behind identities, for a later process that shall know them again; before anything else is asked. */
#define PASSTHROUGH_SECRET_BYTES 32
const uint8_t *passthrough_secret(const struct passthrough *);
void passthrough_use_secret(struct passthrough *, const uint8_t secret[PASSTHROUGH_SECRET_BYTES]);

/* Who a key is at an upstream: an HMAC with that secret, which tells nothing of the key and is the same for
 * nobody else. Any thread. */
void passthrough_identity(const struct passthrough *, struct str key, struct str upstream,
                          char ret[PASSTHROUGH_IDENTITY_BYTES]);

/* An upstream has accepted the key of this identity at `now_ms`. Any thread. */
void passthrough_accept(struct passthrough *, struct str identity, int64_t now_ms);
bool passthrough_believes(struct passthrough *, struct str identity, int64_t now_ms);

#endif
