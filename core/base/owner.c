/* Owner and mode of files that decide what the gateway does. */
#include "base/owner.h"

#include <unistd.h>

int owner_check(const char *path, const struct stat *status, const char *what, struct sg_error *err)
{
    if (status->st_uid != 0 && status->st_uid != geteuid()) {
        return error_set(err, SG_E_CONFIG,
                         "%s belongs to user %u, who could change %s; it must belong to root or to "
                         "the running user: chown %u '%s'",
                         path, status->st_uid, what, geteuid(), path);
    }
    if ((status->st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return error_set(err, SG_E_CONFIG,
                         "%s may be written by others (mode %04o), who could change %s: chmod go-w "
                         "'%s'",
                         path, status->st_mode & 07777u, what, path);
    }
    return 0;
}
