/* Counting the bytes that are held for requests: against a budget for all, and a share of it for each identity. The
 * numbers are the process's, as its memory is. */
#include "http/admission.h"

#include "base/check.h"
#include "base/lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

enum { BUCKETS = 256, PATH_BYTES = 1024 /* of a control group's path; a longer one is cut */ };

struct holder { /* an identity with an open account */
    LIST_ENTRY(holder) link;
    size_t accounts; /* under the lock */
    atomic_size_t bytes;
    size_t name_len;
    char name[];
};

static struct {
    _Atomic uint64_t budget, share; /* 0: none */
    atomic_size_t bytes;
    struct lock lock; /* the holders */
    LIST_HEAD(, holder) holders[BUCKETS];
} memory = {.lock = LOCK_INIT};

/* ---- the budget ---- */

/* What one control group (version 2) may use; UINT64_MAX: no limit of its own. */
static uint64_t group_limit(const char *path)
{
    char name[PATH_BYTES + 64];
    unsigned long long bytes = 0;
    (void)snprintf(name, sizeof name, "/sys/fs/cgroup%s/memory.max", path); /* it fits */
    FILE *file = fopen(name, "re");
    if (file == NULL) {
        return UINT64_MAX;
    }
    bool is_number = fscanf(file, "%llu", &bytes) == 1; /* else it is "max" */
    (void)fclose(file);                                 /* only read */
    return is_number && bytes > 0 ? bytes : UINT64_MAX;
}

/* The path of this process's group below the root that it sees; "" if there is none. */
static void group_path(char path[PATH_BYTES])
{
    char line[PATH_BYTES + 3];
    FILE *file = fopen("/proc/self/cgroup", "re");
    path[0] = '\0';
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "0::/", 4) == 0) {
            (void)snprintf(path, PATH_BYTES, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
        }
    }
    if (file != NULL) {
        (void)fclose(file); /* only read */
    }
}

/* The least of its group's limit and those of all groups around it: a service's stands in the group that the service
 * manager made for it. */
static uint64_t group_bytes(void)
{
    char path[PATH_BYTES];
    group_path(path);
    uint64_t least = group_limit(path);
    for (char *slash; (slash = strrchr(path, '/')) != NULL;) {
        *slash = '\0';
        uint64_t outer = group_limit(path);
        least = outer < least ? outer : least;
    }
    return least;
}

uint64_t admission_machine_bytes(void)
{
    uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t group = group_bytes();
    return group < all ? group : all;
}

void admission_set_budget(uint64_t bytes, uint64_t share_bytes)
{
    CHECK(share_bytes <= bytes);
    atomic_store(&memory.budget, bytes);
    atomic_store(&memory.share, share_bytes);
}

uint64_t admission_budget(void)
{
    return atomic_load(&memory.budget);
}

uint64_t admission_bytes(void)
{
    return atomic_load(&memory.bytes);
}

/* ---- accounts ---- */

/* Under the lock. */
static struct holder *holder_get(struct str name)
{
    struct holder *holder;
    size_t bucket = str_hash(name) % BUCKETS;
    LIST_FOREACH(holder, &memory.holders[bucket], link)
    {
        if (str_eq(name, (struct str){holder->name, holder->name_len})) {
            return holder;
        }
    }
    holder = check_alloc(calloc(1, sizeof *holder + name.len + 1));
    holder->name_len = name.len;
    if (name.len > 0) {
        memcpy(holder->name, name.data, name.len);
    }
    LIST_INSERT_HEAD(&memory.holders[bucket], holder, link);
    return holder;
}

void account_open(struct account *account, struct str identity)
{
    CHECK(account->holder == NULL);
    if (admission_budget() == 0) {
        return; /* nothing is counted */
    }
    lock_take(&memory.lock);
    account->holder = holder_get(identity);
    account->holder->accounts++;
    lock_release(&memory.lock);
}

/* Adds unless the sum would go beyond `most`. */
static bool add_within(atomic_size_t *sum, size_t bytes, uint64_t most)
{
    size_t now = atomic_load_explicit(sum, memory_order_relaxed);
    do {
        if (bytes > most || now > most - bytes) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(sum, &now, now + bytes));
    return true;
}

static void subtract(atomic_size_t *sum, size_t bytes)
{
    size_t before = atomic_fetch_sub(sum, bytes);
    CHECK(before >= bytes);
}

enum refusal { REFUSED_FOR_GOOD, REFUSED_SHARE, REFUSED_BUDGET };

static int refuse(enum refusal refusal, struct sg_error *err)
{
    unsigned long long budget = admission_budget(), share = atomic_load(&memory.share);
    int code;
    switch (refusal) {
    case REFUSED_FOR_GOOD:
        code = error_set(err, SG_E_LIMIT,
                         "This request needs more than %llu bytes, the most that one key may hold "
                         "of server.memory_budget.",
                         share);
        err->status = 413;
        return code;
    case REFUSED_SHARE:
        code = error_set(err, SG_E_LIMIT,
                         "The requests of this key hold %llu bytes, their share of "
                         "server.memory_budget: try again later.",
                         share);
        break;
    default:
        code = error_set(err, SG_E_LIMIT,
                         "All requests together hold %llu bytes, server.memory_budget: try again "
                         "later.",
                         budget);
        break;
    }
    err->status = 503;
    return code;
}

int account_take(struct account *account, size_t bytes, struct sg_error *err)
{
    struct holder *holder = account->holder;
    uint64_t budget = admission_budget(), share = atomic_load(&memory.share);
    if (holder == NULL || bytes == 0) {
        return 0;
    }
    if (bytes > share || atomic_load(&account->bytes) > share - bytes) {
        return refuse(REFUSED_FOR_GOOD, err);
    }
    if (!add_within(&holder->bytes, bytes, share)) {
        return refuse(REFUSED_SHARE, err);
    }
    if (!add_within(&memory.bytes, bytes, budget)) {
        subtract(&holder->bytes, bytes);
        return refuse(REFUSED_BUDGET, err);
    }
    atomic_fetch_add(&account->bytes, bytes);
    return 0;
}

void account_add(struct account *account, size_t bytes)
{
    if (account->holder != NULL) {
        atomic_fetch_add(&account->holder->bytes, bytes);
        atomic_fetch_add(&memory.bytes, bytes);
        atomic_fetch_add(&account->bytes, bytes);
    }
}

void account_give(struct account *account, size_t bytes)
{
    if (account->holder != NULL) {
        subtract(&account->bytes, bytes);
        subtract(&account->holder->bytes, bytes);
        subtract(&memory.bytes, bytes);
    }
}

int account_set(struct account *account, size_t bytes, struct sg_error *err)
{
    size_t held = atomic_load(&account->bytes);
    if (bytes > held) {
        return account_take(account, bytes - held, err);
    }
    account_give(account, held - bytes);
    return 0;
}

void account_close(struct account *account)
{
    struct holder *holder = account->holder;
    if (holder == NULL) {
        return;
    }
    account_give(account, atomic_load(&account->bytes));
    account->holder = NULL;
    lock_take(&memory.lock);
    bool is_last = --holder->accounts == 0;
    if (is_last) {
        LIST_REMOVE(holder, link);
    }
    lock_release(&memory.lock);
    if (is_last) {
        CHECK(atomic_load(&holder->bytes) == 0);
        free(holder);
    }
}
