/* The id maps of a new user namespace, written from outside: by the broker, as root for any host uid and as an ordinary
 * user for its own, and by a template in the same way within the namespace that it has itself. */
#include "box.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool proc_write(pid_t pid, const char *name, const char *text)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t len = write(fd, text, strlen(text));
    int error = errno;
    close(fd);
    errno = error;
    return len == (ssize_t)strlen(text);
}

const char *maps_write(pid_t pid, const struct id_map *users, const struct id_map *groups)
{
    char line[64];
    if (!proc_write(pid, "setgroups", "deny")) {
        return "write setgroups of the user namespace";
    }
    snprintf(line, sizeof line, "%u %u %u\n", users->inside, users->outside, users->count);
    if (!proc_write(pid, "uid_map", line)) {
        return "write uid_map of the user namespace";
    }
    snprintf(line, sizeof line, "%u %u %u\n", groups->inside, groups->outside, groups->count);
    return proc_write(pid, "gid_map", line) ? NULL : "write gid_map of the user namespace";
}
