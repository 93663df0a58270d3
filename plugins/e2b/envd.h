/* envd, the server for files and processes in each sandbox: what asking it takes (envd.c). */
#ifndef E2B_ENVD_H
#define E2B_ENVD_H

#include "e2b.h"
#include "frames.h"

#define ENVD_HOME "/home/user" /* where code begins, and what a relative path is relative to */

/* Older ones want to be told whose files and processes it is about. */
bool envd_wants_user(const struct sandbox *);
bool envd_is_at_least(const struct sandbox *, unsigned major, unsigned minor, unsigned patch);

/* exchange_sandbox() with envd. What cannot have been begun, since the connection was not made or the port was closed for a
 * moment, is tried again shortly. */
int envd_exchange(struct e2b *, struct sg_call *, struct sandbox *, struct exchange *,
                  struct sg_error *);

/* A call of the Connect protocol: headers of the exchange (and its content type) are set here; `more` are two at most. */
struct envd_headers {
    const char *keys[6], *values[6];
    struct sg_map map;
};
void envd_rpc(const struct sandbox *, struct exchange *, struct envd_headers *,
              const char *content_type);
void envd_header(struct envd_headers *, const char *key, const char *value);

/* The failure of an exchange that failed with `code`; `what` as in "cannot read a file". */
int envd_fail_lost(struct e2b *, struct sg_call *, struct sandbox *, const struct exchange *,
                   int code, const char *what, struct sg_error *);

#endif
