/* Appending lines by a thread of its own: see line_file.h. */
#include "base/line_file.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    AGAIN_MS = 1000,
    GATHER_MS = 20, /* a line waits for others so long, as each write costs more than it */
    END_S = 5
};

struct line_file {
    struct line_file_options options;
    pthread_t thread;
    int fd; /* the thread's */

    struct lock lock; /* of what follows */
    pthread_cond_t changed;
    struct buf waiting;
    uint64_t waiting_lines;
    bool is_ending, shall_reopen;
    struct line_file_stats stats;

    /* The thread's own: what it writes now. */
    struct buf batch;
    size_t batch_at; /* so much of it is in the file */
    uint64_t batch_lines;
    bool has_failed; /* and nothing was written since */
    uint64_t told_lost;
};

/* ---- the file ---- */

static bool is_standard_error(const struct line_file_options *options)
{
    return strcmp(options->path, "-") == 0;
}

static int check_private(int fd, const struct line_file_options *options, struct sg_error *err)
{
    struct stat status;
    if (!options->is_private || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
        (status.st_mode & (S_IRWXG | S_IRWXO)) == 0) {
        return 0;
    }
    return error_set(err, SG_E_CONFIG, "'%s' is open to others (mode %04o): chmod 600 '%s'",
                     options->path, status.st_mode & 07777u, options->path);
}

static int file_open(const struct line_file_options *options, int *ret, struct sg_error *err)
{
    if (is_standard_error(options)) {
        *ret = STDERR_FILENO;
        return 0;
    }
    /* Not to wait for the reader of a pipe. */
    int fd = open(options->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
                  0600);
    if (fd < 0) {
        return error_set(err, SG_E_CONFIG, "'%s' cannot be opened: %s", options->path,
                         strerrordesc_np(errno));
    }
    int rc = check_private(fd, options, err);
    if (rc != 0) {
        (void)close(fd); /* nothing was written */
        return rc;
    }
    CHECK(fcntl(fd, F_SETFL, O_APPEND) == 0);
    *ret = fd;
    return 0;
}

static void file_close(const struct line_file *file)
{
    if (file->fd != STDERR_FILENO) {
        (void)close(file->fd); /* each write was looked at */
    }
}

/* ---- what is said of it ---- */

static void event_begin(struct log_line *line, const struct line_file *file, enum sg_level level,
                        const char *what)
{
    char event[64];
    (void)snprintf(event, sizeof event, "%s_%s", file->options.name, what); /* fits */
    log_begin(line, level, event);
    log_text(line, "file", file->options.path);
}

static void say_failed(const struct line_file *file, const char *message)
{
    struct log_line line;
    event_begin(&line, file, SG_ERROR, "failed");
    log_text(&line, "message", message);
    log_end(&line);
}

static void say(const struct line_file *file, enum sg_level level, const char *what, uint64_t lost)
{
    struct log_line line;
    event_begin(&line, file, level, what);
    log_int(&line, "lost", (int64_t)lost);
    log_end(&line);
}

/* ---- the thread ---- */

/* Under the lock. */
static void batch_take(struct line_file *file)
{
    if (file->batch.len == 0) {
        struct buf empty = file->batch;
        empty.max = file->waiting.max;
        file->batch = file->waiting;
        file->batch_lines = file->waiting_lines;
        file->waiting = empty;
        file->waiting_lines = 0;
    }
}

static void batch_written(struct line_file *file)
{
    buf_reset(&file->batch);
    file->batch_at = 0;
    lock_take(&file->lock);
    file->stats.written += file->batch_lines;
    uint64_t lost = file->stats.lost;
    lock_release(&file->lock);
    file->batch_lines = 0;
    if (file->has_failed || lost > file->told_lost) {
        say(file, SG_WARN, "resumed", lost - file->told_lost);
    }
    file->has_failed = false;
    file->told_lost = lost;
}

static struct str batch_rest(const struct line_file *file)
{
    return (struct str){file->batch.data + file->batch_at, file->batch.len - file->batch_at};
}

/* All at once into a file. Where others write too (the log, into a pipe) a line at a time: more could be torn. */
static struct str next_piece(const struct line_file *file)
{
    struct str rest = batch_rest(file);
    const char *end = is_standard_error(&file->options) ? memchr(rest.data, '\n', rest.len) : NULL;
    return end == NULL ? rest : (struct str){rest.data, (size_t)(end + 1 - rest.data)};
}

/* What was written before it failed is no part of what may be lost. */
static void batch_settle(struct line_file *file)
{
    uint64_t lines = 0;
    size_t len = 0;
    for (size_t i = 0; i < file->batch_at; i++) {
        if (file->batch.data[i] == '\n') {
            lines++;
            len = i + 1;
        }
    }
    buf_consume(&file->batch, len);
    file->batch_at -= len;
    file->batch_lines -= lines;
    lock_take(&file->lock);
    file->stats.written += lines;
    lock_release(&file->lock);
}

static void write_failed(struct line_file *file, int error)
{
    char message[160];
    (void)snprintf(message, sizeof message, "cannot be written: %s",
                   strerrordesc_np(error)); /* fits, or is cut */
    if (!file->has_failed) {
        say_failed(file, message);
    }
    file->has_failed = true;
    batch_settle(file);
}

/* Of a line that is torn only the rest is missing, unless the file is another one by now. */
static bool batch_write(struct line_file *file)
{
    while (file->batch_at < file->batch.len) {
        struct str piece = next_piece(file);
        ssize_t count = write(file->fd, piece.data, piece.len);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            write_failed(file, errno);
            return false;
        }
        file->batch_at += (size_t)count;
    }
    return true;
}

/* The rest of a torn line would be the first of the new file. */
static void torn_drop(struct line_file *file)
{
    if (file->batch_at == 0) {
        return; /* batch_settle() leaves nothing else of it in the file */
    }
    struct str rest = batch_rest(file);
    const char *end = memchr(rest.data, '\n', rest.len);
    CHECK(end != NULL); /* lines end so */
    file->batch_at += (size_t)(end + 1 - rest.data);
    file->batch_lines--;
    lock_take(&file->lock);
    file->stats.lost++;
    lock_release(&file->lock);
}

static void reopen(struct line_file *file)
{
    struct sg_error err = {0};
    int fd;
    if (file_open(&file->options, &fd, &err) != 0) {
        say_failed(file, err.message);
        return;
    }
    file_close(file);
    file->fd = fd;
    torn_drop(file);
    struct log_line line;
    event_begin(&line, file, SG_INFO, "reopened");
    log_end(&line);
}

/* Under the lock. Nothing is waited for at the end, nor where there are enough to write. */
static bool is_urgent(const struct line_file *file)
{
    return file->is_ending || file->shall_reopen || file->waiting.len >= file->waiting.max / 2;
}

/* Waits for something to do; false at the end. */
static bool next_work(struct line_file *file, bool *ret_reopen)
{
    lock_take(&file->lock);
    long long until = file->has_failed ? clock_ms() + AGAIN_MS : DEADLINE_NONE;
    while (!file->is_ending && !file->shall_reopen &&
           (file->has_failed || (file->waiting.len == 0 && file->batch.len == 0))) {
        if (lock_wait(&file->lock, &file->changed, until) == ETIMEDOUT) {
            break;
        }
    }
    until = clock_ms() + GATHER_MS;
    while (!file->has_failed && !is_urgent(file) &&
           lock_wait(&file->lock, &file->changed, until) != ETIMEDOUT) {
    }
    *ret_reopen = file->shall_reopen;
    file->shall_reopen = false;
    batch_take(file);
    bool goes_on = !file->is_ending || file->batch.len > 0;
    lock_release(&file->lock);
    return goes_on;
}

static bool is_ending(struct line_file *file)
{
    lock_take(&file->lock);
    bool ends = file->is_ending;
    lock_release(&file->lock);
    return ends;
}

static void *run(void *arg)
{
    struct line_file *file = arg;
    bool shall_reopen;
    while (next_work(file, &shall_reopen)) {
        if (shall_reopen && !is_standard_error(&file->options)) {
            reopen(file);
        }
        if (file->batch.len == 0) {
            continue;
        }
        if (batch_write(file)) {
            batch_written(file);
        } else if (is_ending(file)) {
            break;
        }
    }
    return NULL;
}

/* ---- for others ---- */

int line_file_open(const struct line_file_options *options, struct line_file **ret,
                   struct sg_error *err)
{
    int fd;
    int rc = file_open(options, &fd, err);
    if (rc != 0) {
        return rc;
    }
    struct line_file *file = check_alloc(calloc(1, sizeof *file));
    *file =
        (struct line_file){.options = *options, .fd = fd, .waiting = {.max = options->waiting_max}};
    lock_init(&file->lock);
    lock_condition_init(&file->changed);
    CHECK(pthread_create(&file->thread, NULL, run, file) == 0);
    *ret = file;
    return 0;
}

void line_file_put(struct line_file *file, struct str text)
{
    lock_take(&file->lock);
    char *space = buf_reserve(&file->waiting, text.len + 1);
    bool was_urgent = is_urgent(file), was_empty = file->waiting.len == 0;
    if (space != NULL) {
        memcpy(space, text.data, text.len);
        space[text.len] = '\n';
        buf_commit(&file->waiting, text.len + 1);
        file->waiting_lines++;
        if (was_empty || is_urgent(file) != was_urgent) { /* else the thread knows of it */
            CHECK(pthread_cond_signal(&file->changed) == 0);
        }
    } else {
        file->stats.lost++;
        file->waiting.overflow = false; /* a later one may find room */
    }
    lock_release(&file->lock);
}

void line_file_reopen(struct line_file *file)
{
    lock_take(&file->lock);
    file->shall_reopen = true;
    CHECK(pthread_cond_signal(&file->changed) == 0);
    lock_release(&file->lock);
}

void line_file_stats(struct line_file *file, struct line_file_stats *ret)
{
    lock_take(&file->lock);
    *ret = file->stats;
    lock_release(&file->lock);
}

static bool thread_end(struct line_file *file)
{
    lock_take(&file->lock);
    file->is_ending = true;
    CHECK(pthread_cond_signal(&file->changed) == 0);
    lock_release(&file->lock);
    struct timespec until;
    CHECK(clock_gettime(CLOCK_REALTIME, &until) == 0);
    until.tv_sec += END_S;
    return pthread_timedjoin_np(file->thread, NULL, &until) == 0;
}

void line_file_close(struct line_file *file)
{
    if (file == NULL) {
        return;
    }
    if (!thread_end(file)) {
        say_failed(file, "cannot be written: the disk does not answer");
        return; /* what the thread still touches must not be freed */
    }
    uint64_t left = file->batch_lines + file->waiting_lines + file->stats.lost - file->told_lost;
    if (left > 0) {
        say(file, SG_ERROR, "lost", left);
    }
    file_close(file);
    buf_clear(&file->waiting);
    buf_clear(&file->batch);
    CHECK(pthread_cond_destroy(&file->changed) == 0);
    lock_destroy(&file->lock);
    free(file);
}
