/* A plugin's file before it is opened: whose it is, who may write it, and whether it is a whole shared object. dlopen()
 * alone would run the code of anybody who can write there, and dies with SIGBUS on a file that was cut short. */
#include "plugin/load_internal.h"

#include "base/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* What others may write, others may make the gateway run. */
static int trust_check(const struct examination *e, const char *path, const struct stat *status)
{
    return owner_check(path, status, "what the gateway runs", e->err);
}

static int folder_check(const struct examination *e, const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        return error_set(e->err, SG_E_CONFIG, "%s cannot be looked at: %s", path,
                         strerrordesc_np(errno));
    }
    return trust_check(e, path, &status);
}

static int descriptor_check(const struct examination *e, int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return examination_fail(e, "cannot be looked at: %s", strerrordesc_np(errno));
    }
    if (!S_ISREG(status.st_mode)) {
        return examination_fail(e, "is no regular file");
    }
    int code = trust_check(e, e->path, &status);
    return code != 0 ? code : elf_check(e, fd, (uint64_t)status.st_size);
}

int file_check(const struct examination *e, const char *folder)
{
    const char *real_folder =
        arena_printf(e->arena, "%.*s", (int)(strrchr(e->path, '/') - e->path), e->path);
    int code = folder_check(e, folder);
    if (code == 0) {
        code = folder_check(e, real_folder[0] == '\0' ? "/" : real_folder);
    }
    if (code != 0) {
        return code;
    }
    int fd = open(e->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not stop the start */
    if (fd < 0) {
        return examination_fail(e, "cannot be opened: %s", strerrordesc_np(errno));
    }
    code = descriptor_check(e, fd);
    (void)close(fd); /* read only */
    return code;
}
