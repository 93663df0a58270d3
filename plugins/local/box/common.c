/* What the broker, templates and pid 1 of a box have in common: the clock, and how a failure is told. */
#include "box.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void box_fail(int status_fd, const char *format, ...)
{
    struct wire_status status = {.magic = WIRE_MAGIC, .kind = WIRE_FAILED, .value = errno};
    va_list args;
    va_start(args, format);
    vsnprintf(status.step, sizeof status.step, format, args);
    va_end(args);
    /* Nobody else could be told. */
    (void)send(status_fd, &status, sizeof status, MSG_NOSIGNAL | MSG_DONTWAIT);
    _exit(1);
}
