/* Assertions on our own mistakes. They stay on in release builds; input, network and plugins get errors instead. */
#ifndef SANDGATE_BASE_CHECK_H
#define SANDGATE_BASE_CHECK_H

#include <stdint.h>

/* Prints where and what, then aborts. Each asserts one condition. */
#define CHECK(condition) \
    ((condition) ? (void)0 : check_failed(#condition, __FILE__, __LINE__, __func__))

/* A struct that travels through a void pointer, a callback or a thread starts with `uint32_t magic`. */
#define CHECK_MAGIC(pointer, value) CHECK((pointer) != NULL && (pointer)->magic == (value))

void check_failed(const char *condition, const char *file, int line, const char *function)
    __attribute__((noreturn, cold));

/* A small fixed allocation that failed, likewise: nothing sensible can follow. */
void *check_alloc(void *pointer) __attribute__((returns_nonnull));

/* Hands the value of an owning local over and empties it. */
#define TAKE(pointer)                           \
    ({                                          \
        __typeof__(pointer) taken_ = (pointer); \
        (pointer) = NULL;                       \
        taken_;                                 \
    })

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
