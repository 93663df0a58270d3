/* How often processes of a control group were killed for its memory. Used by pid 1 of a box and by local.so, both of which
 * have the file open. */
#include "cgroup.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t group_kills(int events_fd)
{
    char text[512];
    ssize_t len = events_fd < 0 ? 0 : pread(events_fd, text, sizeof text - 2, 0);
    if (len <= 0) {
        return 0;
    }
    text[len] = '\0';
    /* "oom_kill N" in v2's memory.events and in v1's memory.oom_control. */
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "oom_kill ", 9) == 0) {
            return strtoull(line + 9, NULL, 10);
        }
    }
    return 0;
}
