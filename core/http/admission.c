/* Counting descriptors. The numbers are the process's, as the limit is. */
#include "http/admission.h"

#include "base/check.h"
#include "loop/loop.h"

#include <limits.h>
#include <sys/resource.h>

#define FIXED_DEFAULT 64 /* before admission_init(), as in tests and tools */

enum { RELIEF_TRIES = 20, RELIEF_MS = 2 }; /* what was told to close does so within that */

static _Atomic size_t used;
static _Atomic size_t limit; /* of what may be taken; 0: not yet known */
static _Atomic(struct admission_reliever *) reliever;

static size_t limit_read(bool raise)
{
    struct rlimit files;
    CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
    if (raise && files.rlim_cur < files.rlim_max) {
        struct rlimit raised = {files.rlim_max, files.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0) {
            files = raised;
        }
    }
    return files.rlim_cur > INT_MAX ? INT_MAX : (size_t)files.rlim_cur;
}

size_t admission_init(size_t fixed)
{
    size_t files = limit_read(true);
    atomic_store(&limit, files > fixed ? files - fixed : 1);
    return files;
}

size_t admission_limit(void)
{
    size_t known = atomic_load(&limit);
    if (known == 0) {
        size_t files = limit_read(false);
        known = files > FIXED_DEFAULT ? files - FIXED_DEFAULT : 1;
        atomic_store(&limit, known);
    }
    return known;
}

size_t admission_connections_max(void)
{
    return admission_limit() / 2;
}

bool admission_take(size_t count)
{
    size_t most = admission_limit();
    size_t now = atomic_load(&used);
    do {
        if (count > most || now > most - count) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&used, &now, now + count));
    return true;
}

void admission_give(size_t count)
{
    size_t before = atomic_fetch_sub(&used, count);
    CHECK(before >= count);
}

size_t admission_used(void)
{
    return atomic_load(&used);
}

bool admission_is_near(void)
{
    size_t most = admission_limit();
    return atomic_load(&used) >= most - most / 8;
}

void admission_set_reliever(struct admission_reliever *own)
{
    atomic_store(&reliever, own);
}

static bool relieve(size_t count)
{
    struct admission_reliever *own = atomic_load(&reliever);
    if (own != NULL && admission_is_near()) {
        own->relieve(own, count);
    }
    return own != NULL;
}

void admission_relieve(size_t count)
{
    (void)relieve(count); /* where nobody can, nothing is idle */
}

bool admission_await(size_t count)
{
    size_t most = admission_limit();
    bool may_help = relieve(count);
    for (int tries = 0; count <= most && tries < RELIEF_TRIES; tries++) {
        if (admission_used() <= most - count) {
            return true;
        }
        if (!may_help || fiber_sleep(RELIEF_MS) != 0) {
            return false;
        }
        may_help = relieve(count);
    }
    return false;
}

bool admission_take_waiting(size_t count)
{
    return admission_await(count) && admission_take(count);
}
