/* Whom upstreams have accepted lately: see passthrough.h. */
#include "gateway/passthrough.h"

#include "base/check.h"
#include "session/index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_BYTES = 16 };

struct accepted {
    struct hash_node by_identity;
    struct list in_order;
    int64_t until_ms;
    char identity[PASSTHROUGH_IDENTITY_BYTES];
};

struct passthrough {
    uint8_t secret[PASSTHROUGH_SECRET_BYTES];
    int64_t life_ms;
    size_t most;
    struct lock lock; /* of what follows */
    struct hash by_identity;
    struct list in_order; /* the earliest accepted first */
};

struct passthrough *passthrough_new(int64_t life_ms, size_t most)
{
    struct passthrough *p = check_alloc(calloc(1, sizeof *p));
    CHECK(most > 0);
    random_bytes(p->secret, sizeof p->secret);
    p->life_ms = life_ms;
    p->most = most;
    lock_init(&p->lock);
    list_init(&p->in_order);
    return p;
}

const uint8_t *passthrough_secret(const struct passthrough *p)
{
    return p->secret;
}

void passthrough_use_secret(struct passthrough *p, const uint8_t secret[PASSTHROUGH_SECRET_BYTES])
{
    CHECK(p->by_identity.count == 0);
    memcpy(p->secret, secret, sizeof p->secret);
}

/* Under the lock. */
static void forget(struct passthrough *p, struct accepted *one)
{
    hash_remove(&p->by_identity, &one->by_identity);
    list_remove(&one->in_order);
    free(one);
}

void passthrough_free(struct passthrough *p)
{
    if (p == NULL) {
        return;
    }
    for (struct list *first; (first = list_first(&p->in_order)) != NULL;) {
        forget(p, INDEX_OWNER(first, struct accepted, in_order));
    }
    hash_clear(&p->by_identity);
    lock_destroy(&p->lock);
    explicit_bzero(p->secret, sizeof p->secret);
    free(p);
}

void passthrough_identity(const struct passthrough *p, struct str key, struct str upstream,
                          char ret[PASSTHROUGH_IDENTITY_BYTES])
{
    const struct str parts[] = {upstream, key};
    uint8_t whole[SHA256_BYTES], mac[SHA256_BYTES];
    sha256_parts(parts, COUNT_OF(parts), whole);
    hmac_sha256((struct str){(const char *)p->secret, sizeof p->secret},
                (struct str){(const char *)whole, sizeof whole}, mac);
    memcpy(ret, "pt_", 3);
    hex_encode(mac, SHOWN_BYTES, ret + 3);
    explicit_bzero(whole, sizeof whole);
}

/* Under the lock. */
static struct accepted *accepted_find(const struct passthrough *p, struct str identity)
{
    for (struct hash_node *node =
             hash_first(&p->by_identity, hash_bytes(identity.data, identity.len));
         node != NULL; node = hash_next(node)) {
        struct accepted *one = INDEX_OWNER(node, struct accepted, by_identity);
        if (str_is(identity, one->identity)) {
            return one;
        }
    }
    return NULL;
}

void passthrough_accept(struct passthrough *p, struct str identity, int64_t now_ms)
{
    CHECK(identity.len < PASSTHROUGH_IDENTITY_BYTES);
    lock_take(&p->lock);
    struct accepted *one = accepted_find(p, identity);
    if (one == NULL) {
        if (p->by_identity.count >= p->most) {
            forget(p, INDEX_OWNER(list_first(&p->in_order), struct accepted, in_order));
        }
        one = check_alloc(calloc(1, sizeof *one));
        memcpy(one->identity, identity.data, identity.len);
        list_init(&one->in_order);
        hash_put(&p->by_identity, &one->by_identity, hash_bytes(identity.data, identity.len));
    }
    one->until_ms = now_ms + p->life_ms;
    list_remove(&one->in_order);
    list_append(&p->in_order, &one->in_order);
    lock_release(&p->lock);
}

bool passthrough_believes(struct passthrough *p, struct str identity, int64_t now_ms)
{
    lock_take(&p->lock);
    const struct accepted *one = accepted_find(p, identity);
    bool is_believed = one != NULL && now_ms < one->until_ms;
    lock_release(&p->lock);
    return is_believed;
}
