/* Memory that runs out: loaded into the gateway by LD_PRELOAD, this stands before malloc(), calloc() and realloc() and
 * counts the allocations of the whole process, the libraries' too. The file that FAILING_ALLOC names is the switch; the
 * test that drives it has the same page mapped: `countdown` n makes the n-th allocation from now fail, and `failing` says
 * how many from there on do. `count` is how many there were since it was last set to 0.
 *
 * Under AddressSanitizer the allocator that stands behind is the sanitizer's, so that what a failure leaves behind is
 * looked at, too. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

struct control { /* tests/e2e/failing_alloc.py knows its form */
    _Atomic int64_t countdown, failing, count, failed;
};

EXPORT void *malloc(size_t size);
EXPORT void *calloc(size_t count, size_t size);
EXPORT void *realloc(void *old, size_t size);

static struct control *control;
static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);

/* What the loader and the sanitizer allocate while the functions behind are looked up; it is never freed. */
static _Alignas(max_align_t) char early[65536];
static size_t early_used;
static __thread int looking __attribute__((tls_model("initial-exec")));

static void *early_get(size_t size)
{
    size = (size + 15) / 16 * 16;
    if (size > sizeof early - early_used) {
        abort();
    }
    early_used += size;
    return early + early_used - size;
}

static void look_up(void)
{
    looking = 1;
    *(void **)&real_malloc = dlsym(RTLD_NEXT, "malloc");
    *(void **)&real_calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&real_realloc = dlsym(RTLD_NEXT, "realloc");
    looking = 0;
}

__attribute__((constructor)) static void map_control(void)
{
    const char *path = getenv("FAILING_ALLOC");
    int fd = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
    void *page = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page != MAP_FAILED) {
        control = page;
    }
    if (fd >= 0) {
        (void)close(fd); /* the mapping stays */
    }
}

static int fails(void)
{
    if (control == NULL) {
        return 0;
    }
    atomic_fetch_add(&control->count, 1);
    /* The last step is not taken: the countdown stays at 1 while there is something left to fail. In one exchange, or a test
     * that sets it to 0 meanwhile would find it at 1 again. */
    int64_t left = atomic_load(&control->countdown);
    do {
        if (left <= 0) {
            return 0;
        }
    } while (!atomic_compare_exchange_weak(
        &control->countdown, &left,
        left == 1 && atomic_load(&control->failing) > 1 ? 1 : left - 1));
    if (left != 1) {
        return 0;
    }
    atomic_fetch_sub(&control->failing, 1);
    atomic_fetch_add(&control->failed, 1);
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size)
{
    if (real_malloc == NULL) {
        if (looking) {
            return early_get(size);
        }
        look_up();
    }
    return fails() ? NULL : real_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    if (real_calloc == NULL) {
        if (looking) {
            return early_get(count * size); /* zero since the start */
        }
        look_up();
    }
    return fails() ? NULL : real_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    if (real_realloc == NULL) {
        if (looking) {
            abort();
        }
        look_up();
    }
    return fails() ? NULL : real_realloc(old, size);
}
