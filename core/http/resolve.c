/* Names, resolved ahead of libcurl: one look-up at a time for each name and loop, on a worker thread, remembered for a
 * minute. libcurl would start a thread for each transfer that comes while a name is unknown.
 *
 * The look-up has a fiber of its own, so that whoever waits for it can leave at once. */
#include "http/fetch_internal.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>

#define ENTRY_MAGIC 0x4E414D45u /* "NAME" */

enum {
    FOUND_MS = 60000,
    FAILED_MS = 1000, /* so that a burst of requests asks once */
    NAMES_MAX = 1024,
    ADDRESSES_MAX = 8
};

struct waiter { /* on the stack of its fiber */
    struct fiber *fiber;
    TAILQ_ENTRY(waiter) link;
};

struct resolver_entry {
    uint32_t magic;
    struct resolver *resolver;
    char name[FETCH_HOST_BYTES];
    bool is_resolving;
    struct sg_error *failure; /* NULL: it worked */
    struct buf addresses;
    int64_t expires;
    size_t users; /* fibers between asking and reading the result */
    TAILQ_HEAD(, waiter) waiters;
    TAILQ_ENTRY(resolver_entry) link, bucket_link;
};

/* ---- looking up ---- */

static void append_address(const struct addrinfo *info, struct buf *ret)
{
    char text[INET6_ADDRSTRLEN];
    const void *address =
        info->ai_family == AF_INET6
            ? (const void *)&((const struct sockaddr_in6 *)(const void *)info->ai_addr)->sin6_addr
            : &((const struct sockaddr_in *)(const void *)info->ai_addr)->sin_addr;
    if (inet_ntop(info->ai_family, address, text, sizeof text) != NULL) {
        (void)buf_printf(ret, info->ai_family == AF_INET6 ? "%s[%s]" : "%s%s",
                         ret->len > 0 ? "," : "", text); /* short: cannot overflow */
    }
}

/* "localhost" and all below it are this machine, whatever a name server says (RFC 6761, 6.3). */
static bool is_loopback(const char *name)
{
    struct str rest = str_of(name), suffix = STR("localhost");
    size_t from = rest.len - suffix.len;
    return rest.len >= suffix.len && str_is((struct str){name + from, suffix.len}, "localhost") &&
           (from == 0 || name[from - 1] == '.');
}

static const char *lookup_by_system(const char *name, struct buf *ret)
{
    if (is_loopback(name)) {
        (void)buf_puts(ret, "127.0.0.1,[::1]"); /* short */
        return NULL;
    }
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    struct addrinfo *list = NULL;
    int error = getaddrinfo(name, NULL, &hints, &list);
    if (error != 0) {
        return gai_strerror(error);
    }
    int count = 0;
    for (const struct addrinfo *at = list; at != NULL && count < ADDRESSES_MAX; at = at->ai_next) {
        if (at->ai_family == AF_INET || at->ai_family == AF_INET6) {
            append_address(at, ret);
            count++;
        }
    }
    freeaddrinfo(list);
    return count > 0 ? NULL : "no address";
}

struct lookup { /* what the worker thread sees */
    const char *(*run)(const char *name, struct buf *ret);
    char name[FETCH_HOST_BYTES];
    struct buf addresses;
    const char *problem;
};

static int lookup_run(void *arg)
{
    struct lookup *lookup = arg;
    lookup->problem = lookup->run(lookup->name, &lookup->addresses);
    return 0;
}

static void entry_finish(struct resolver_entry *entry, struct lookup *lookup, int code,
                         const struct sg_error *pool_error)
{
    if (code == 0 && lookup->problem == NULL) {
        entry->addresses = lookup->addresses;
        entry->expires = deadline_in(FOUND_MS);
    } else {
        buf_clear(&lookup->addresses);
        entry->failure = check_alloc(calloc(1, sizeof *entry->failure));
        (void)error_set(entry->failure, code == 0 ? SG_E_UNAVAILABLE : code,
                        "cannot resolve '%s': %s", entry->name,
                        code == 0 ? lookup->problem : pool_error->message);
        entry->expires = deadline_in(FAILED_MS);
    }
    entry->is_resolving = false;
    while (!TAILQ_EMPTY(&entry->waiters)) {
        struct waiter *waiter = TAILQ_FIRST(&entry->waiters);
        TAILQ_REMOVE(&entry->waiters, waiter, link);
        fiber_wake(waiter->fiber);
    }
}

static void resolve_run(void *arg)
{
    struct resolver_entry *entry = arg;
    CHECK_MAGIC(entry, ENTRY_MAGIC);
    struct lookup lookup = {.run = entry->resolver->lookup};
    memcpy(lookup.name, entry->name, sizeof lookup.name);
    struct sg_error err = {0};
    int code = fiber_blocking(lookup_run, &lookup, &err);
    entry_finish(entry, &lookup, code, &err);
}

/* ---- remembering ---- */

static struct resolver_bucket *bucket_of(struct resolver *resolver, const char *name)
{
    return &resolver->buckets[str_hash(str_of(name)) % COUNT_OF(resolver->buckets)];
}

static void entry_forget(struct resolver_entry *entry)
{
    free(entry->failure);
    entry->failure = NULL;
    buf_clear(&entry->addresses);
}

static void entry_free(struct resolver_entry *entry)
{
    struct resolver *resolver = entry->resolver;
    CHECK(!entry->is_resolving && entry->users == 0);
    TAILQ_REMOVE(&resolver->entries, entry, link);
    TAILQ_REMOVE(bucket_of(resolver, entry->name), entry, bucket_link);
    resolver->count--;
    entry_forget(entry);
    entry->magic = 0;
    free(entry);
}

/* Makes room for one more name, unless all of them are in use. */
static void drop_oldest(struct resolver *resolver)
{
    struct resolver_entry *entry;
    TAILQ_FOREACH(entry, &resolver->entries, link)
    {
        if (!entry->is_resolving && entry->users == 0) {
            entry_free(entry);
            return;
        }
    }
}

static struct resolver_entry *entry_new(struct resolver *resolver, const char *name)
{
    if (resolver->count >= NAMES_MAX) {
        drop_oldest(resolver);
    }
    struct resolver_entry *entry = check_alloc(calloc(1, sizeof *entry));
    entry->magic = ENTRY_MAGIC;
    entry->resolver = resolver;
    CHECK(strlen(name) < sizeof entry->name);
    memcpy(entry->name, name, strlen(name) + 1);
    TAILQ_INIT(&entry->waiters);
    TAILQ_INSERT_TAIL(bucket_of(resolver, name), entry, bucket_link);
    TAILQ_INSERT_TAIL(&resolver->entries, entry, link);
    resolver->count++;
    return entry;
}

static struct resolver_entry *entry_of(struct resolver *resolver, const char *name)
{
    struct resolver_entry *entry;
    TAILQ_FOREACH(entry, bucket_of(resolver, name), bucket_link)
    {
        if (strcmp(entry->name, name) == 0) {
            TAILQ_REMOVE(&resolver->entries, entry, link);
            TAILQ_INSERT_TAIL(&resolver->entries, entry, link);
            return entry;
        }
    }
    return entry_new(resolver, name);
}

/* ---- asking ---- */

static int entry_refresh(struct resolver_entry *entry, struct sg_error *err)
{
    /* With users and no look-up there is a result that somebody is about to read. */
    if (entry->is_resolving || entry->users > 0 || entry->expires > clock_ms()) {
        return 0;
    }
    if (loop_pool(entry->resolver->loop) == NULL) {
        return error_set(err, SG_E_INTERNAL, "cannot resolve '%s': there are no worker threads",
                         entry->name);
    }
    entry_forget(entry);
    entry->is_resolving = true;
    int code = fiber_start(entry->resolver->loop, "resolve", resolve_run, entry, NULL, err);
    if (code != 0) {
        entry->is_resolving = false;
    }
    return code;
}

static int entry_wait(struct resolver_entry *entry, int64_t deadline)
{
    struct waiter waiter = {.fiber = fiber_self()};
    int code = 0;
    TAILQ_INSERT_TAIL(&entry->waiters, &waiter, link);
    while (code == 0 && entry->is_resolving) {
        code = fiber_park(deadline);
    }
    if (entry->is_resolving) {
        TAILQ_REMOVE(&entry->waiters, &waiter, link);
        return code;
    }
    return 0;
}

static int entry_read(const struct resolver_entry *entry, struct buf *ret, struct sg_error *err)
{
    if (entry->failure != NULL) {
        *err = *entry->failure;
        return err->code;
    }
    (void)buf_append(ret, entry->addresses.data, entry->addresses.len); /* short */
    return 0;
}

int resolver_find(struct resolver *resolver, const char *name, int64_t deadline, struct buf *ret,
                  struct sg_error *err)
{
    struct resolver_entry *entry = entry_of(resolver, name);
    int code = entry_refresh(entry, err);
    entry->users++;
    if (code == 0 && entry->is_resolving) {
        code = entry_wait(entry, deadline);
    }
    if (code == 0) {
        code = entry_read(entry, ret, err);
    }
    entry->users--;
    return code;
}

void resolver_init(struct resolver *resolver, struct loop *loop)
{
    resolver->loop = loop;
    resolver->lookup = lookup_by_system;
    TAILQ_INIT(&resolver->entries);
    for (size_t i = 0; i < COUNT_OF(resolver->buckets); i++) {
        TAILQ_INIT(&resolver->buckets[i]);
    }
}

void resolver_clear(struct resolver *resolver)
{
    while (!TAILQ_EMPTY(&resolver->entries)) {
        entry_free(TAILQ_FIRST(&resolver->entries));
    }
}
