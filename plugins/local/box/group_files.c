/* What is done within a box with the open files of its control group. */
#include "cgroup.h"

#include <string.h>
#include <unistd.h>

static bool fd_write(int fd, const char *text)
{
    ssize_t len = write(fd, text, strlen(text));
    return len == (ssize_t)strlen(text);
}

bool group_enter_work(const struct box_group *group)
{
    return group->work < 0 || fd_write(group->work, "0");
}

bool group_freeze(const struct box_group *group, bool frozen)
{
    return group->freeze < 0 || fd_write(group->freeze, frozen ? "1" : "0");
}
