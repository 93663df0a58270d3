/* Writing a file: into one of its own, which then takes the place of the old one, so that it is there whole or not at all.
 * Between the looks and the deeds the box may change what a path leads to: what comes of that is within its own rights. */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINKS_MAX 40
#define NAME_TRIES 8
#define PATH_ROOM (2 * PATH_MAX)

struct target {
    char path[PATH_ROOM]; /* without links at its end */
    bool exists;
    mode_t mode;
};

/* The file that is being written, for whoever finds its worker killed; "": none. NULL: there is no memory. */
static char *unfinished;

void worker_put_prepare(void)
{
    void *shared = mmap(NULL, PATH_ROOM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unfinished = shared != MAP_FAILED ? shared : NULL;
}

static void unfinished_note(const char *name)
{
    if (unfinished != NULL) {
        snprintf(unfinished, PATH_ROOM, "%s", name);
    }
}

bool worker_put_is_unfinished(void)
{
    return unfinished != NULL && unfinished[0] != '\0';
}

void worker_put_clean(void)
{
    if (worker_put_is_unfinished()) {
        (void)unlink(unfinished); /* it may be in its place already */
        unfinished_note("");
    }
}

/* All bytes come, whatever happens to them: an end with some unread would break the socket before our answer is read. */
struct content {
    uint64_t left;
    char data[65536];
};

/* The next bytes; 0 at the end. The gateway being gone, or saying more than it announced, ends the process. */
static size_t content_next(struct content *content)
{
    if (content->left == 0) {
        return 0;
    }
    ssize_t len;
    do {
        len = recv(WORKER_SOCKET, content->data, sizeof content->data, 0);
    } while (len < 0 && errno == EINTR);
    return len <= 0 || (uint64_t)len > content->left ? 0 : (size_t)len;
}

static void content_drop(struct content *content)
{
    size_t len;
    while ((len = content_next(content)) > 0) {
        content->left -= len;
    }
}

/* Makes the folders that are missing on the way to the path's last name. */
static bool make_folders(const char *path)
{
    char folder[PATH_ROOM];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *at = strchr(folder + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
            struct stat state; /* one that is there need not be one that could be made */
            int error = errno;
            if (stat(folder, &state) != 0) {
                errno = error;
                return false;
            }
        }
        *at = '/';
    }
    return true;
}

/* Follows one link that leads to nothing yet. False with errno; *ret_is_link is false for a path without one. Its texts would
 * be too much beside the caller's in one frame. */
static __attribute__((noinline)) bool follow_link(char path[PATH_ROOM], bool *ret_is_link)
{
    char leads_to[PATH_MAX], joined[PATH_ROOM];
    ssize_t len = readlink(path, leads_to, sizeof leads_to - 1);
    *ret_is_link = len >= 0;
    if (len < 0) {
        return errno == ENOENT || errno == EINVAL;
    }
    leads_to[len] = '\0';
    const char *last = strrchr(path, '/');
    int folder_len = leads_to[0] == '/' ? 0 : (int)(last + 1 - path);
    int joined_len = snprintf(joined, sizeof joined, "%.*s%s", folder_len, path, leads_to);
    if (joined_len < 0 || joined_len >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(path, joined, (size_t)joined_len + 1);
    return true;
}

/* Where the file is to be. */
static enum wire_refusal target_find(struct target *target, const char *path)
{
    char whole[PATH_MAX];
    snprintf(target->path, sizeof target->path, "%s", path);
    for (int links = 0; links < LINKS_MAX; links++) {
        bool is_link = false;
        if (realpath(target->path, whole) != NULL) {
            memcpy(target->path, whole, strlen(whole) + 1);
            return WIRE_DONE;
        }
        if (errno != ENOENT || !follow_link(target->path, &is_link)) {
            return worker_refusal();
        }
        if (!is_link) {
            return make_folders(target->path) ? WIRE_DONE : worker_refusal();
        }
    }
    return WIRE_OTHER;
}

/* What is there already must be a file that may be written; its mode is kept. */
static enum wire_refusal target_look(struct target *target)
{
    struct stat state;
    if (stat(target->path, &state) != 0) {
        return errno == ENOENT ? WIRE_DONE : worker_refusal();
    }
    if (!S_ISREG(state.st_mode)) {
        return S_ISDIR(state.st_mode) ? WIRE_IS_FOLDER : WIRE_NO_FILE;
    }
    target->exists = true;
    target->mode = state.st_mode & 07777;
    return access(target->path, W_OK) == 0 ? WIRE_DONE : WIRE_DENIED;
}

/* A new file beside the target, under a name that nobody can have taken before. */
static int temporary_open(const struct target *target, char name[PATH_ROOM])
{
    int folder_len = (int)(strrchr(target->path, '/') - target->path);
    for (int tries = 0; tries < NAME_TRIES; tries++) {
        uint64_t random = 0;
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
            return -1;
        }
        int len = snprintf(name, PATH_ROOM, "%.*s/.put-%016llx", folder_len, target->path,
                           (unsigned long long)random);
        if (len < 0 || len >= PATH_ROOM) {
            errno = ENAMETOOLONG;
            return -1;
        }
        unfinished_note(name);
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST) {
            return fd;
        }
    }
    return -1;
}

static bool write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t written = write(fd, data, len);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return false;
        }
        data += written;
        len -= (size_t)written;
    }
    return true;
}

static bool fill(int fd, struct content *content)
{
    size_t len;
    while ((len = content_next(content)) > 0) {
        content->left -= len;
        if (!write_all(fd, content->data, len)) {
            return false;
        }
    }
    errno = EIO; /* told to nobody: the gateway is gone */
    return content->left == 0;
}

static void note_file(const struct target *target, int fd)
{
    char whole[PATH_MAX];
    struct stat state;
    if (worker_known_files != NULL && fstat(fd, &state) == 0 &&
        realpath(target->path, whole) != NULL) {
        known_files_add(worker_known_files, whole, &state);
    }
}

static enum wire_refusal write_whole(const struct target *target, struct content *content)
{
    char name[PATH_ROOM];
    int fd = temporary_open(target, name);
    if (fd < 0) {
        unfinished_note("");
        return worker_refusal();
    }
    if (!fill(fd, content) || (target->exists && fchmod(fd, target->mode) != 0) ||
        rename(name, target->path) != 0) {
        enum wire_refusal refusal = worker_refusal();
        (void)unlink(name);
        unfinished_note("");
        return refusal;
    }
    unfinished_note("");
    note_file(target, fd);
    return WIRE_DONE;
}

enum wire_refusal worker_put(const char *path, uint64_t size)
{
    static struct target target;
    static struct content content;
    content.left = size;
    enum wire_refusal refusal =
        path[strlen(path) - 1] == '/' ? WIRE_IS_FOLDER : target_find(&target, path);
    if (refusal == WIRE_DONE) {
        refusal = target_look(&target);
    }
    if (refusal == WIRE_DONE) {
        refusal = write_whole(&target, &content);
    }
    content_drop(&content);
    return refusal;
}
