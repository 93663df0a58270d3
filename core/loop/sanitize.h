/* What the sanitizers and Valgrind must be told about stacks; nothing in other builds. */
#ifndef SANDGATE_LOOP_SANITIZE_H
#define SANDGATE_LOOP_SANITIZE_H

#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANDGATE_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define SANDGATE_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SANDGATE_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define SANDGATE_TSAN 1
#endif

#if defined(SANDGATE_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(SANDGATE_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#define SANDGATE_VALGRIND 1
#endif
#endif

/* Before a switch: where it goes. `ret_fake` keeps what AddressSanitizer holds for the stack that is left; NULL when it
 * is left for ever. */
static inline void sanitize_switch_start(void **ret_fake, const void *base, size_t size, void *tsan)
{
#if defined(SANDGATE_ASAN)
    __sanitizer_start_switch_fiber(ret_fake, base, size);
#endif
#if defined(SANDGATE_TSAN)
    __tsan_switch_to_fiber(tsan, 0);
#endif
    (void)ret_fake, (void)base, (void)size, (void)tsan;
}

/* Behind a switch, on the stack that was reached: what sanitize_switch_start() kept for it, NULL for a new one. The
 * stack that was left is given out. */
static inline void sanitize_switch_finish(void *fake, const void **ret_base, size_t *ret_size)
{
#if defined(SANDGATE_ASAN)
    __sanitizer_finish_switch_fiber(fake, ret_base, ret_size);
#endif
    (void)fake, (void)ret_base, (void)ret_size;
}

static inline void *sanitize_fiber_new(void)
{
#if defined(SANDGATE_TSAN)
    return __tsan_create_fiber(0);
#else
    return NULL;
#endif
}

static inline void sanitize_fiber_free(void *tsan)
{
#if defined(SANDGATE_TSAN)
    __tsan_destroy_fiber(tsan);
#endif
    (void)tsan;
}

static inline void *sanitize_fiber_self(void)
{
#if defined(SANDGATE_TSAN)
    return __tsan_get_current_fiber();
#else
    return NULL;
#endif
}

/* Frames that never returned leave their red zones behind. */
static inline void sanitize_stack_clean(void *base, size_t size)
{
#if defined(SANDGATE_ASAN)
    __asan_unpoison_memory_region(base, size);
#endif
    (void)base, (void)size;
}

#endif
