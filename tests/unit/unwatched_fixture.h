/* The kernel gives no more watches for descriptors, as others of the same user can bring about: event_add() is wrapped by
 * the linker (CMakeLists.txt) and refuses. Timers need none. */
#ifndef TESTS_UNIT_UNWATCHED_FIXTURE_H
#define TESTS_UNIT_UNWATCHED_FIXTURE_H

#include <errno.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>

static bool refuses; /* on the loop's thread only */
static size_t refused;

int __real_event_add(struct event *event, const struct timeval *after);
int __wrap_event_add(struct event *event, const struct timeval *after);

int __wrap_event_add(struct event *event, const struct timeval *after)
{
    if (refuses && event_get_fd(event) >= 0) {
        refused++;
        errno = ENOSPC;
        return -1;
    }
    return __real_event_add(event, after);
}

#endif
