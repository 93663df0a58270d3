/* Which files below the home are new or changed: a walk, compared with what the walk before has seen. Time of change, size
 * and inode tell; links, hidden files and what Python compiles are passed over. All is bounded: a box with more than that
 * has changes that are not told.
 *
 * Pid 1 walks itself where there is little to see, since to make a process, and to reap it, takes many times as long as
 * that. It has the same rights as a worker. What it does is bounded by the number of entries, and it never waits for the
 * gateway; for anything more there is a worker, which begins anew. */
#include "worker.h"

#include "box.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define KNOWN_MAX 4096  /* files that are remembered */
#define VISITS_MAX 8192 /* entries of one walk */
#define DEPTH_MAX 8
#define WALK_MS 200
/* Of a walk of pid 1: what takes it less than a millisecond, on a busy machine longer. */
#define AT_ONCE_VISITS 512
#define AT_ONCE_MS 20
#define AT_ONCE_CHANGES 16 /* these fit into an empty socket */
#define BELOW_HOME_BYTES (DEPTH_MAX * 256)

struct known {
    uint64_t
        path; /* a number made of it: two paths with the same one are a change that is not told */
    uint64_t inode, size;
    int64_t changed_ns;
};

struct known_files { /* shared by all workers, of which there is one at a time; sorted by `path` */
    size_t count;
    struct known files[KNOWN_MAX];
};

struct change {
    char path[BELOW_HOME_BYTES];
    uint64_t size;
};

struct walk {
    const struct known_files *before;
    struct known_files now;
    struct change changes[WIRE_CHANGES_MAX];
    size_t changes_count;
    uint64_t changes_left; /* more than that */
    size_t visits, visits_max;
    int64_t until;
    char path[BELOW_HOME_BYTES]; /* below the home */
};

struct known_files *known_files_new(void)
{
    void *memory = mmap(NULL, sizeof(struct known_files), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static struct known known_of(const char *path, const struct stat *state)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const unsigned char *at = (const unsigned char *)path; *at != '\0'; at++) {
        hash = (hash ^ *at) * 0x100000001b3u;
    }
    return (struct known){hash, state->st_ino, (uint64_t)state->st_size,
                          (int64_t)state->st_mtim.tv_sec * 1000000000 + state->st_mtim.tv_nsec};
}

static int by_path(const void *a, const void *b)
{
    uint64_t left = ((const struct known *)a)->path, right = ((const struct known *)b)->path;
    return left < right ? -1 : left > right;
}

static struct known *known_find(const struct known_files *files, const struct known *file)
{
    return bsearch(file, files->files, files->count, sizeof *file, by_path);
}

void known_files_add(struct known_files *files, const char *path, const struct stat *state)
{
    size_t home_len = strlen(WORKER_HOME "/");
    if (strncmp(path, WORKER_HOME "/", home_len) != 0) {
        return;
    }
    struct known file = known_of(path + home_len, state);
    struct known *old = known_find(files, &file);
    if (old != NULL) {
        *old = file;
    } else if (files->count < KNOWN_MAX) {
        files->files[files->count++] = file;
        qsort(files->files, files->count, sizeof file, by_path);
    }
}

/* ---- the walk ---- */

static void take_file(struct walk *walk, const struct stat *state)
{
    if (walk->now.count == KNOWN_MAX) {
        return;
    }
    struct known file = known_of(walk->path, state);
    walk->now.files[walk->now.count++] = file;
    const struct known *old = known_find(walk->before, &file);
    if (old != NULL && old->inode == file.inode && old->size == file.size &&
        old->changed_ns == file.changed_ns) {
        return;
    }
    if (walk->changes_count == WIRE_CHANGES_MAX) {
        walk->changes_left++;
        return;
    }
    struct change *change = &walk->changes[walk->changes_count++];
    memcpy(change->path, walk->path, strlen(walk->path) + 1);
    change->size = file.size;
}

static bool is_passed_over(const char *name)
{
    return name[0] == '.' || strcmp(name, "__pycache__") == 0;
}

static void walk_folder(struct walk *walk, int fd, size_t path_len, int depth);

static void take_entry(struct walk *walk, int folder, const char *name, size_t path_len, int depth)
{
    struct stat state;
    int len = snprintf(walk->path + path_len, sizeof walk->path - path_len, "%s%s",
                       path_len > 0 ? "/" : "", name);
    if (len < 0 || (size_t)len >= sizeof walk->path - path_len ||
        fstatat(folder, name, &state, AT_SYMLINK_NOFOLLOW) != 0) {
        return;
    }
    if (S_ISREG(state.st_mode)) {
        take_file(walk, &state);
    } else if (S_ISDIR(state.st_mode) && depth < DEPTH_MAX) {
        int fd = worker_open(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        if (fd >= 0) {
            walk_folder(walk, fd, path_len + (size_t)len, depth + 1);
        }
    }
}

/* Takes the descriptor. */
static void walk_folder(struct walk *walk, int fd, size_t path_len, int depth)
{
    DIR *folder = fdopendir(fd);
    if (folder == NULL) {
        close(fd);
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL && walk->visits < walk->visits_max &&
           now_ms() < walk->until) {
        walk->visits++;
        if (!is_passed_over(entry->d_name)) {
            take_entry(walk, fd, entry->d_name, path_len, depth);
        }
    }
    closedir(folder);
}

/* What a walk that was cut has not come to is as it was. */
static void keep_unseen(struct walk *walk)
{
    size_t seen = walk->now.count;
    for (size_t i = 0; i < walk->before->count && walk->now.count < KNOWN_MAX; i++) {
        const struct known *old = &walk->before->files[i];
        if (bsearch(old, walk->now.files, seen, sizeof *old, by_path) == NULL) {
            walk->now.files[walk->now.count++] = *old;
        }
    }
    qsort(walk->now.files, walk->now.count, sizeof walk->now.files[0], by_path);
}

static int change_by_path(const void *a, const void *b)
{
    return strcmp(((const struct change *)a)->path, ((const struct change *)b)->path);
}

/* False if the home cannot be read. */
static bool walk_home(struct walk *walk, const struct known_files *known, size_t visits_max,
                      int64_t ms)
{
    int fd = known == NULL ? -1 : worker_open(AT_FDCWD, WORKER_HOME, O_RDONLY | O_DIRECTORY);
    if (fd < 0) {
        return false;
    }
    walk->before = known;
    walk->now.count = walk->changes_count = walk->visits = 0;
    walk->changes_left = 0;
    walk->visits_max = visits_max;
    walk->until = now_ms() + ms;
    walk_folder(walk, fd, 0, 1);
    qsort(walk->now.files, walk->now.count, sizeof walk->now.files[0], by_path);
    qsort(walk->changes, walk->changes_count, sizeof walk->changes[0], change_by_path);
    return true;
}

static bool is_cut(const struct walk *walk)
{
    return walk->visits == walk->visits_max || now_ms() >= walk->until;
}

static void remember(struct known_files *known, const struct walk *walk)
{
    memcpy(known->files, walk->now.files, walk->now.count * sizeof walk->now.files[0]);
    known->count = walk->now.count;
}

static bool change_send(int socket_fd, const struct change *change, int flags)
{
    const struct wire_piece piece = {WIRE_ENTRY, WIRE_ENTRY_FILE, change->size};
    return piece_send(socket_fd, &piece, change->path, strlen(change->path), flags);
}

static struct walk walk; /* too much for a stack */

uint64_t worker_changes(struct known_files *known)
{
    if (!walk_home(&walk, known, VISITS_MAX, WALK_MS)) {
        return 0;
    }
    if (is_cut(&walk)) {
        keep_unseen(&walk);
    }
    remember(known, &walk);
    for (size_t i = 0; i < walk.changes_count; i++) {
        if (!change_send(WORKER_SOCKET, &walk.changes[i], 0)) {
            _exit(1);
        }
    }
    return walk.changes_left;
}

bool changes_at_once(struct known_files *known, int socket_fd)
{
    if (!walk_home(&walk, known, AT_ONCE_VISITS, AT_ONCE_MS) || is_cut(&walk) ||
        walk.changes_count > AT_ONCE_CHANGES) {
        return false;
    }
    bool sent = true;
    remember(known, &walk);
    for (size_t i = 0; i < walk.changes_count && sent; i++) {
        sent = change_send(socket_fd, &walk.changes[i], MSG_DONTWAIT);
    }
    const struct wire_piece end = {WIRE_END, WIRE_DONE, 0};
    /* A gateway that has left, or lacks memory, is told nothing. */
    (void)(sent && piece_send(socket_fd, &end, NULL, 0, MSG_DONTWAIT));
    return true;
}
