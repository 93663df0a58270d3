/* A file of certificates that an operator names: looked at when a plugin starts, as it would be noticed late otherwise. */
#include "ca_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CA_BYTES_SEEN ((size_t)1 << 20)

static bool has_certificate(FILE *file)
{
    static const char *const starts[] = {"-----BEGIN CERTIFICATE",
                                         "-----BEGIN TRUSTED CERTIFICATE"};
    char *bytes = malloc(CA_BYTES_SEEN);
    size_t len = bytes == NULL ? 0 : fread(bytes, 1, CA_BYTES_SEEN, file);
    bool has_one = false;
    for (size_t i = 0; len > 0 && i < sizeof starts / sizeof starts[0]; i++) {
        has_one = has_one || memmem(bytes, len, starts[i], strlen(starts[i])) != NULL;
    }
    free(bytes);
    return has_one;
}

static int check_opened_ca(FILE *file, const char *path, struct sg_error *err)
{
    struct stat status;
    if (fstat(fileno(file), &status) != 0 || !S_ISREG(status.st_mode)) {
        return sg->fail(err, SG_E_CONFIG, "'ca_file' is no regular file: '%.200s'", path);
    }
    return has_certificate(file)
               ? 0
               : sg->fail(err, SG_E_CONFIG,
                          "'ca_file' holds no certificate (PEM, '-----BEGIN CERTIFICATE') in its "
                          "first MiB: '%.200s'",
                          path);
}

/* Relative to what? A plugin does not know the configuration's folder. */
int ca_file_check(const char *path, struct sg_error *err)
{
    if (path[0] != '/') {
        return sg->fail(err, SG_E_CONFIG, "'ca_file' must be an absolute path, not '%.200s'", path);
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* of a pipe too at once */
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (file == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return sg->fail(err, SG_E_CONFIG, "'ca_file' cannot be read: '%.200s'", path);
    }
    int code = check_opened_ca(file, path, err);
    fclose(file);
    return code;
}
