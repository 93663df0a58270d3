/* Lists of models that upstreams give (GET /models, in OpenAI's form or Anthropic's), and when one that was kept will do. Pure but
 * for its locks: times are the caller's (clock_ms()). */
#ifndef SANDGATE_GATEWAY_MODEL_LIST_H
#define SANDGATE_GATEWAY_MODEL_LIST_H

#include "base/arena.h"
#include "base/digest.h"
#include "base/lock.h"
#include "base/str.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MODEL_LIST_MAX = 10000,      /* of a list; more are left out */
    MODEL_ID_BYTES_MAX = 256,    /* a longer one is left out */
    MODEL_LIST_RETRY_MS = 60000, /* one that could not be had is not asked for again before */
    MODEL_LIST_STALE_MS = 24 * 3600 * 1000 /* so old it still will do while there is no newer */
};

struct listed_model {
    struct str id;
    struct str display_name; /* empty: none was given */
    int64_t created_unix_s;  /* 0: likewise */
};

struct model_list { /* counted by references, never changed */
    uint32_t magic;
    atomic_uint refs;
    struct arena *arena;
    struct listed_model *models;
    size_t count;
};

/* The list that a body holds, with one reference; NULL: it holds none. Entries without a usable id are left out. */
struct model_list *model_list_read(struct str body);
void model_list_unref(struct model_list *); /* any thread; NULL is fine */

struct model_list_cache {
    struct lock lock;              /* of all of it */
    struct model_list *list;       /* NULL: none yet */
    uint8_t of[SHA256_BYTES];      /* where and with which key it was asked for */
    int64_t fetched_ms, failed_ms; /* failed_ms: 0: it has not */
    bool is_fetching;
};

void model_list_cache_init(struct model_list_cache *);
void model_list_cache_clear(struct model_list_cache *);

enum model_list_verdict {
    MODEL_LIST_KEPT, /* what is given will do; NULL: there is none, and it shall not be asked for now */
    MODEL_LIST_FETCH, /* the caller asks for it, and must tell how that went */
    MODEL_LIST_WAIT   /* another does; look again */
};

/* *ret_list has a reference, or is NULL. A list that is older than `life_ms` still serves those who come while one asks for a
 * newer one. */
enum model_list_verdict model_list_look(struct model_list_cache *, const uint8_t of[SHA256_BYTES],
                                        int64_t life_ms, int64_t now_ms,
                                        struct model_list **ret_list);
/* How the asking went. `list_take` NULL: it failed; `is_answered` false: nobody knows, as the client has left meanwhile. */
void model_list_tell(struct model_list_cache *, const uint8_t of[SHA256_BYTES],
                     struct model_list *list_take, bool is_answered, int64_t now_ms);

#endif
