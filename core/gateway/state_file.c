/* Reading, replacing and locking the state file: see state_file.h. All names are within the folder that was opened at the
 * start, and no link is followed. */
#include "gateway/state_file.h"

#include "base/check.h"
#include "base/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum {
    NAME_BYTES_MAX = 240, /* with the longest ending it is within NAME_MAX */
    LOCK_TRIES = 10
};

struct state_file {
    char *path; /* for messages */
    char name[NAME_BYTES_MAX + 1], lock_name[NAME_BYTES_MAX + 8], new_name[NAME_BYTES_MAX + 8],
        bad_name[NAME_BYTES_MAX + 8];
    int folder_fd, lock_fd;
};

static int fail(const struct state_file *file, int code, const char *what, struct sg_error *err)
{
    return error_set(err, code, "sessions.state_file: '%s' %s: %s", file->path, what,
                     strerror(errno));
}

/* ---- the place ---- */

static int names_choose(struct state_file *file, struct sg_error *err)
{
    const char *slash = strrchr(file->path, '/');
    const char *name = slash == NULL ? file->path : slash + 1;
    if (name[0] == '\0' || strlen(name) > NAME_BYTES_MAX) {
        return error_set(err, SG_E_CONFIG,
                         "sessions.state_file: '%s' must name a file, in at most %d bytes",
                         file->path, NAME_BYTES_MAX);
    }
    (void)snprintf(file->name, sizeof file->name, "%s", name); /* all fit */
    (void)snprintf(file->lock_name, sizeof file->lock_name, "%s.lock", name);
    (void)snprintf(file->new_name, sizeof file->new_name, "%s.new", name);
    (void)snprintf(file->bad_name, sizeof file->bad_name, "%s.bad", name);
    return 0;
}

/* Root may judge it for the user whose it is. */
static int folder_check(const char *folder, struct stat *status, bool is_for_owner,
                        struct sg_error *err)
{
    if (is_for_owner && geteuid() == 0) {
        status->st_uid = 0;
    }
    return owner_check(folder, status, "the gateway's sessions", err);
}

/* What has the name now, or 0. */
static mode_t type_of(const struct state_file *file, const char *name)
{
    struct stat status;
    bool is_there = fstatat(file->folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
    return is_there ? status.st_mode & S_IFMT : 0;
}

/* One that is taken for the file would be set aside as a file that is not ours. A link is, which harms nobody. */
static int check_file(const struct state_file *file, struct sg_error *err)
{
    mode_t type = type_of(file, file->name);
    if (type == S_IFDIR) {
        return error_set(err, SG_E_CONFIG,
                         "sessions.state_file: '%s' is a folder: name a file in it", file->path);
    }
    if (type != 0 && type != S_IFREG && type != S_IFLNK) {
        return error_set(err, SG_E_CONFIG,
                         "sessions.state_file: '%s' is a socket, a pipe or a device and not a "
                         "file: choose another name",
                         file->path);
    }
    return 0;
}

/* The lock is opened as it is; the others are replaced, which a folder cannot be. */
static int check_beside(const struct state_file *file, struct sg_error *err)
{
    static const char *const ends[] = {".lock", ".new", ".bad"};
    const char *const names[] = {file->lock_name, file->new_name, file->bad_name};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (type_of(file, names[i]) == S_IFDIR) {
            return error_set(err, SG_E_CONFIG,
                             "sessions.state_file: '%s%s' is a folder, where the gateway has a "
                             "file of its own beside '%s': remove it, or choose another name",
                             file->path, ends[i], file->path);
        }
    }
    mode_t lock = type_of(file, file->lock_name);
    return lock == 0 || lock == S_IFREG
               ? 0
               : error_set(err, SG_E_CONFIG,
                           "sessions.state_file: '%s.lock' is no plain file and cannot be the "
                           "lock of '%s': remove it, or choose another name",
                           file->path, file->path);
}

static int folder_open(struct state_file *file, bool is_for_owner, struct sg_error *err)
{
    struct stat status;
    const char *slash = strrchr(file->path, '/');
    char *folder = slash == NULL         ? strdup(".")
                   : slash == file->path ? strdup("/")
                                         : strndup(file->path, (size_t)(slash - file->path));
    check_alloc(folder);
    int code = 0;
    file->folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file->folder_fd < 0 || fstat(file->folder_fd, &status) != 0) {
        code =
            error_set(err, SG_E_CONFIG,
                      "sessions.state_file: the folder '%s' cannot be opened: %s; make it, for the "
                      "user that runs the gateway",
                      folder, strerror(errno));
    } else if (folder_check(folder, &status, is_for_owner, err) != 0) {
        code = error_context(err, "sessions.state_file");
    } else if (faccessat(file->folder_fd, ".", W_OK | X_OK, AT_EACCESS) != 0) {
        code = error_set(err, SG_E_CONFIG,
                         "sessions.state_file: the folder '%s' may not be written by the running "
                         "user %u: chown %u '%s', or choose another",
                         folder, geteuid(), geteuid(), folder);
    }
    free(folder);
    return code;
}

/* ---- the lock ---- */

static void lock_drop(struct state_file *file)
{
    if (file->lock_fd >= 0) {
        (void)close(file->lock_fd); /* nothing was written; the lock goes with it */
    }
    file->lock_fd = -1;
}

/* Whoever has locked a file that no longer has the name has locked nothing. */
static bool lock_has_name(const struct state_file *file)
{
    struct stat ours, named;
    return fstat(file->lock_fd, &ours) == 0 &&
           fstatat(file->folder_fd, file->lock_name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

static int lock_file_once(struct state_file *file, struct sg_error *err)
{
    file->lock_fd = openat(file->folder_fd, file->lock_name,
                           O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    if (file->lock_fd < 0) {
        return fail(file, SG_E_CONFIG, "cannot be locked (its folder must be writable for us)",
                    err);
    }
    if (flock(file->lock_fd, LOCK_EX | LOCK_NB) == 0) {
        return 0;
    }
    if (errno != EWOULDBLOCK) {
        return fail(file, SG_E_CONFIG, "cannot be locked", err);
    }
    return error_set(
        err, SG_E_CONFIG,
        "sessions.state_file: another gateway uses '%s': give each a file of its own, or "
        "end that one first",
        file->path);
}

/* Again where the file was removed between its opening and its locking. */
static int lock_take_file(struct state_file *file, struct sg_error *err)
{
    int code = 0;
    for (int i = 0; i < LOCK_TRIES && code == 0; i++) {
        lock_drop(file);
        code = lock_file_once(file, err);
        if (code == 0 && lock_has_name(file)) {
            return 0;
        }
    }
    lock_drop(file);
    return code != 0 ? code
                     : error_set(err, SG_E_CONFIG,
                                 "sessions.state_file: '%s' cannot be locked: somebody removes its "
                                 "lock again and again",
                                 file->path);
}

int state_file_hold(struct state_file *file, bool *ret_was_gone, struct sg_error *err)
{
    *ret_was_gone = false;
    if (file->lock_fd >= 0 && lock_has_name(file)) {
        return 0;
    }
    if (lock_take_file(file, err) == 0) {
        *ret_was_gone = true;
        return 0;
    }
    return error_set(err, SG_E_UNAVAILABLE,
                     "sessions.state_file: the lock of '%s' was removed while this gateway had it, "
                     "and another gateway has it now: nothing is written; end one of the two",
                     file->path);
}

/* ---- opening and closing ---- */

/* All but the lock. What it gives is to be closed, whatever came of it. */
static int place_open(const char *path, bool is_for_owner, struct state_file **ret,
                      struct sg_error *err)
{
    struct state_file *file = check_alloc(calloc(1, sizeof *file));
    file->path = check_alloc(strdup(path));
    file->folder_fd = file->lock_fd = -1;
    *ret = file;
    int code = names_choose(file, err);
    code = code == 0 ? folder_open(file, is_for_owner, err) : code;
    code = code == 0 ? check_file(file, err) : code;
    return code == 0 ? check_beside(file, err) : code;
}

int state_file_open(const char *path, struct state_file **ret, struct sg_error *err)
{
    struct state_file *file;
    int code = place_open(path, false, &file, err);
    code = code == 0 ? lock_take_file(file, err) : code;
    if (code != 0) {
        state_file_close(file);
        return code;
    }
    *ret = file;
    return 0;
}

int state_file_check(const char *path, struct sg_error *err)
{
    struct state_file *file;
    int code = place_open(path, true, &file, err);
    state_file_close(file);
    return code;
}

void state_file_close(struct state_file *file)
{
    if (file == NULL) {
        return;
    }
    lock_drop(file);
    if (file->folder_fd >= 0) {
        (void)close(file->folder_fd); /* likewise */
    }
    free(file->path);
    free(file);
}

/* ---- reading ---- */

static int mode_check(const struct state_file *file, const struct stat *status,
                      struct sg_error *err)
{
    if (!S_ISREG(status->st_mode) || status->st_nlink > 1) {
        return error_set(
            err, SG_E_DENIED,
            "sessions.state_file: '%s' is no plain file of one name: sessions in it are "
            "not taken up",
            file->path);
    }
    if (status->st_uid != geteuid()) {
        return error_set(
            err, SG_E_DENIED,
            "sessions.state_file: '%s' belongs to user %u and not to the running user %u: "
            "sessions in it are not taken up; run the gateway as one user",
            file->path, status->st_uid, geteuid());
    }
    if ((status->st_mode & 077) != 0) {
        return error_set(err, SG_E_DENIED,
                         "sessions.state_file: '%s' has mode %04o, so that others may have read or "
                         "changed it: sessions in it are not taken up; it must be 0600",
                         file->path, status->st_mode & 07777u);
    }
    return 0;
}

static int read_all(const struct state_file *file, int fd, size_t bytes, struct buf *ret,
                    struct sg_error *err)
{
    char *room = buf_reserve(ret, bytes + 1);
    size_t len = 0;
    ssize_t got = 1;
    while (room != NULL && got > 0 && len < bytes) {
        got = read(fd, room + len, bytes - len);
        len += got > 0 ? (size_t)got : 0;
    }
    if (room == NULL || got < 0) {
        return fail(file, SG_E_UNAVAILABLE, "cannot be read", err);
    }
    buf_commit(ret, len);
    return 0;
}

int state_file_read(struct state_file *file, size_t bytes_max, struct buf *ret,
                    struct sg_error *err)
{
    struct stat status;
    int fd = openat(file->folder_fd, file->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        return error_set(err, SG_E_NOT_FOUND, "there is no state");
    }
    if (fd < 0 && errno == ELOOP) {
        return error_set(
            err, SG_E_DENIED,
            "sessions.state_file: '%s' is a link, which is not followed: sessions in it "
            "are not taken up",
            file->path);
    }
    if (fd < 0 || fstat(fd, &status) != 0) {
        int code = fail(file, SG_E_UNAVAILABLE, "cannot be opened", err);
        if (fd >= 0) {
            (void)close(fd); /* only read */
        }
        return code;
    }
    int code = mode_check(file, &status, err);
    if (code == 0 && (uint64_t)status.st_size > bytes_max) {
        code =
            error_set(err, SG_E_LIMIT,
                      "sessions.state_file: '%s' has %lld bytes, more than %zu: it is none of ours",
                      file->path, (long long)status.st_size, bytes_max);
    }
    code = code == 0 ? read_all(file, fd, (size_t)status.st_size, ret, err) : code;
    (void)close(fd); /* only read */
    return code;
}

/* ---- changing ---- */

bool state_file_set_aside(struct state_file *file)
{
    return renameat(file->folder_fd, file->name, file->folder_fd, file->bad_name) == 0;
}

int state_file_remove(struct state_file *file, struct sg_error *err)
{
    if (unlinkat(file->folder_fd, file->name, 0) == 0 || errno == ENOENT) {
        return 0;
    }
    return fail(file, SG_E_UNAVAILABLE, "cannot be removed", err);
}

static bool write_all(int fd, struct str text)
{
    size_t done = 0;
    while (done < text.len) {
        ssize_t put = write(fd, text.data + done, text.len - done);
        if (put < 0 && errno != EINTR) {
            return false;
        }
        done += put > 0 ? (size_t)put : 0;
    }
    return fsync(fd) == 0;
}

/* A process that was killed may have left one. */
static int new_open(const struct state_file *file)
{
    (void)unlinkat(file->folder_fd, file->new_name,
                   0); /* if it is there; openat() says what is not */
    return openat(file->folder_fd, file->new_name,
                  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

int state_file_write(struct state_file *file, struct str text, struct sg_error *err)
{
    int fd = new_open(file);
    if (fd < 0) {
        return fail(file, SG_E_UNAVAILABLE, "cannot be written (FILE.new beside it)", err);
    }
    bool is_written = fchmod(fd, 0600) == 0 && write_all(fd, text); /* whatever the umask */
    int cause = errno;
    is_written = close(fd) == 0 && is_written;
    if (is_written && renameat(file->folder_fd, file->new_name, file->folder_fd, file->name) == 0) {
        (void)fsync(file->folder_fd); /* else a power cut may bring the old one back */
        return 0;
    }
    errno = is_written ? errno : cause;
    int code = fail(file, SG_E_UNAVAILABLE, "cannot be written", err);
    (void)unlinkat(file->folder_fd, file->new_name, 0); /* or the next write does it */
    return code;
}
