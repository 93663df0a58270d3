/* The kernel gives no more watches for descriptors, as others of the same user can bring about: event_add() is wrapped by
 * the linker (CMakeLists.txt) and refuses. Timers need none. */
#ifndef TESTS_UNIT_UNWATCHED_FIXTURE_H
#define TESTS_UNIT_UNWATCHED_FIXTURE_H

#include <errno.h>
#include <event2/event.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

static atomic_bool refuses; /* all threads */
static atomic_bool refuses_listeners;
static atomic_size_t refused;

static inline bool is_refused(int fd)
{
    int is_listener = 0;
    socklen_t len = sizeof is_listener;
    return fd >= 0 &&
           (refuses || (refuses_listeners &&
                        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listener, &len) == 0 &&
                        is_listener != 0));
}

int __real_event_add(struct event *event, const struct timeval *after);
int __wrap_event_add(struct event *event, const struct timeval *after);

int __wrap_event_add(struct event *event, const struct timeval *after)
{
    if (is_refused(event_get_fd(event))) {
        refused++;
        errno = ENOSPC;
        return -1;
    }
    return __real_event_add(event, after);
}

#endif
