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

/* Small allocations that fail end the process with the line "out of memory": nothing sensible can follow. */
void check_out_of_memory(void) __attribute__((noreturn, cold));
void *check_alloc(void *pointer) __attribute__((returns_nonnull));

/* The result of a library's function that fails for our own mistakes, and where there is no memory. */
#define CHECK_RESULT(call, good, no_memory)                    \
    ({                                                         \
        long result_ = (long)(call);                           \
        if (result_ == (long)(no_memory)) {                    \
            check_out_of_memory();                             \
        }                                                      \
        if (result_ != (long)(good)) {                         \
            check_failed(#call, __FILE__, __LINE__, __func__); \
        }                                                      \
    })

/* Hands the value of an owning local over and empties it. */
#define TAKE(pointer)                           \
    ({                                          \
        __typeof__(pointer) taken_ = (pointer); \
        (pointer) = NULL;                       \
        taken_;                                 \
    })

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
