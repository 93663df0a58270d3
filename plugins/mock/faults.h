/* Counting rules and faults that hold only for the first N times. */
#ifndef MOCK_FAULTS_H
#define MOCK_FAULTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* True the first `times` times it is asked; always if `times` is 0. */
static inline bool count_allows(atomic_llong *used, int64_t times)
{
    return times <= 0 || atomic_fetch_add(used, 1) < times;
}

static inline bool fault_is(const char *fault, const char *name)
{
    return fault != NULL && strcmp(fault, name) == 0;
}

#endif
