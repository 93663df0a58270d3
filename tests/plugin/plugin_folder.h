/* A folder of plugins for one test: copies of the built ones with modes that the loader accepts, whatever the build's. */
#ifndef TESTS_PLUGIN_PLUGIN_FOLDER_H
#define TESTS_PLUGIN_PLUGIN_FOLDER_H

#include "base/buf.h"
#include "base/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct folder {
    char path[256];
};

static inline struct folder folder_new(void)
{
    struct folder folder = {BUILD_DIR "/tests/folder_XXXXXX"};
    CHECK(mkdtemp(folder.path) != NULL); /* 0700 */
    char *real = realpath(folder.path, NULL);
    (void)snprintf(folder.path, sizeof folder.path, "%s", real); /* was one of these */
    free(real);
    return folder;
}

static inline void file_write(const struct folder *folder, const char *name, struct str data)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", folder->path, name); /* both are ours and short */
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    CHECK(write(fd, data.data, data.len) == (ssize_t)data.len);
    CHECK(fchmod(fd, 0644) == 0);
    close(fd);
}

/* The bytes of a built plugin. */
static inline void plugin_read_from(const char *from, const char *name, struct buf *out)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s.so", from, name); /* as above */
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    ssize_t got = 0;
    while ((got = read(fd, buf_reserve(out, 65536), 65536)) > 0) {
        buf_commit(out, (size_t)got);
    }
    CHECK(got == 0);
    close(fd);
}

static inline void plugin_read(const char *name, struct buf *out)
{
    plugin_read_from(TEST_PLUGINS, name, out);
}

/* Puts NAME.so there. */
static inline void plugin_put_from(const struct folder *folder, const char *from, const char *name)
{
    BUF_CLEANUP struct buf data = {0};
    char file[128];
    plugin_read_from(from, name, &data);
    (void)snprintf(file, sizeof file, "%s.so", name); /* as above */
    file_write(folder, file, buf_str(&data));
}

static inline void plugin_put(const struct folder *folder, const char *name)
{
    plugin_put_from(folder, TEST_PLUGINS, name);
}

/* With all files in it. */
static inline void folder_remove(const struct folder *folder)
{
    DIR *directory = opendir(folder->path);
    const struct dirent *entry = NULL;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        if (unlinkat(dirfd(directory), entry->d_name, 0) != 0) {
            (void)unlinkat(dirfd(directory), entry->d_name, AT_REMOVEDIR); /* "." stays */
        }
    }
    closedir(directory);
    CHECK(rmdir(folder->path) == 0);
}

#endif
