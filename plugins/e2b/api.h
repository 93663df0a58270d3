/* What the files share that deal with the API: the table's inside, answers that describe a sandbox, what is asked. */
#ifndef E2B_API_H
#define E2B_API_H

#include "e2b.h"

#include "text.h"

/* ---- options.c ---- */

/* SG_E_CONFIG where they cannot work. */
int options_check(const struct e2b_config *, struct sg_error *);
/* Plain http, and not to this machine, where nobody is on the way. */
bool options_url_is_open(const char *url);

/* ---- sandboxes.c ---- */

struct sandbox *sandbox_new(void);      /* with one reference; NULL: no memory */
void sandbox_discard(struct sandbox *); /* that was never in the table; NULL is fine */
/* The one of this id with a reference, or NULL. */
struct sandbox *sandbox_find(struct e2b *, const char *id);
/* Puts it into the table, or finds that one of its id is there already. Takes the reference and gives one to what is in
 * the table now. `is_made`: it is a new one, which has its place in `count`
 * already; NULL then where another has its id. */
struct sandbox *sandbox_add_take(struct e2b *, struct sandbox *, bool is_made);
/* E2B has said that it lives for so long from now on. */
void sandbox_keep(struct e2b *, struct sandbox *, int64_t life_s);
/* Forgets those whose time was up a minute ago: E2B has ended them, though a DELETE of ours may have failed. */
void sandboxes_forget_ended(struct e2b *);
/* For close(): all that are left; nobody uses them any more. */
void sandboxes_clear(struct e2b *);

/* ---- api.c ---- */

/* An id as E2B writes it, of an answer or a handle: [a-z0-9]{1,63}; what follows a dash is dropped. */
bool api_id(const char *text, size_t len, char ret[64]);
bool api_domain_is_valid(const char *domain);
/* 1 to 65535, without a zero in front and nothing behind. */
bool api_port_is_valid(const char *port);
/* Percent-encodes all but letters, digits and "-_.". */
void api_encode(struct text *, const char *data, size_t len);
/* The time to live in seconds, rounded up, that is asked for: never more than `lifetime`. */
int64_t api_life_seconds(struct e2b *, struct sg_call *, int64_t life_ms);
/* Reads the answer to a create or a connect. NULL: what is wrong with it is in `ret_problem`, and ret_id says of which
 * sandbox ("": none) that is. */
#define PROBLEM_BYTES 400
struct sandbox *api_read_sandbox(const struct e2b *, const struct exchange *, char ret_id[64],
                                 char ret_problem[PROBLEM_BYTES]);
/* SG_E_GONE: E2B does not know the sandbox. Wait. */
int api_connect(struct e2b *, struct sg_call *, const char *id, struct sandbox **ret,
                struct sg_error *);
int api_timeout(struct e2b *, struct sg_call *, const char *id, int64_t life_ms, struct sg_error *);
/* One that is gone already is a success. timeout_ms: 0: request_timeout, and the API's rest is waited for; else it is not.
 * Waits. */
int api_delete(struct e2b *, struct sg_call *, const char *id, int64_t timeout_ms,
               struct sg_error *);
/* True if the API says that it does not know it; `scratch` is written to. Waits. */
bool api_knows_not(struct e2b *, struct sg_call *, const char *id, struct sg_error *scratch);

/* ---- exchange.c ---- */

/* The answer's header of this name (lower case), or NULL. */
const char *exchange_header(const struct exchange *, const char *name);
/* Seconds of Retry-After, 120 at most; 0: it is absent, or no whole number. */
int64_t exchange_retry_after(const struct exchange *);

/* ---- fault.c ---- */

/* "Not found" in E2B's own words: status 404 and the code 404 in the body. */
bool fault_is_missing(const struct exchange *);
/* The body has E2B's own form of an error. */
bool fault_is_theirs(const struct exchange *);
/* A text of others, made fit for a message: one line, shortened, without ids, tokens, keys and the sandbox's host. */
void fault_scrub(const struct e2b *, const struct sandbox *, const char *text, size_t len,
                 char ret[256]);

/* ---- create.c ---- */

/* Looks for sandboxes of lost creates and deletes them: those whose time has come, or at the end `all`. Waits. `scratch`
 * may be NULL. */
void orphans_clean(struct e2b *, struct sg_call *, struct sg_error *scratch, bool all);
void orphans_clear(struct e2b *);

#endif
