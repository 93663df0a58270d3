/* A file to which lines are appended by a thread of its own, so that whoever has a line to write never waits for a disk. What waits
 * to be written is bounded; lines that find no room are lost and counted. Where writing fails (a full disk) it is tried again, once
 * a second, and said once, as is its end. Lines are never torn by another process that appends to the same file. */
#ifndef SANDGATE_BASE_LINE_FILE_H
#define SANDGATE_BASE_LINE_FILE_H

#include "base/buf.h"
#include "base/error.h"

struct line_file;

struct line_file_options {
    const char *name;   /* for the log: "accounting" gives event=accounting_failed */
    const char *path;   /* borrowed; "-": standard error, which is never opened anew */
    size_t waiting_max; /* bytes */
    bool is_private;    /* refused where others may read a file that is there already */
};

struct line_file_stats {
    uint64_t written, lost; /* lines */
};

/* Opens the file for appending, made with mode 0600 where it is not there, and starts the thread. SG_E_CONFIG with
 * "'PATH' cannot be opened: …". Blocks. */
int line_file_open(const struct line_file_options *, struct line_file **ret, struct sg_error *err);
/* A line without its end. It is written with those that come within some milliseconds. Any thread, does not wait. */
void line_file_put(struct line_file *, struct str line);
/* Has the file opened anew by the thread, for what comes from then on (it was renamed). Where that fails the one before
 * stays. Any thread. */
void line_file_reopen(struct line_file *);
void line_file_stats(struct line_file *, struct line_file_stats *ret); /* any thread */
/* Writes what waits, as far as it can be, and ends the thread; a disk that does not come back is left after some seconds. NULL is
 * fine. Blocks. */
void line_file_close(struct line_file *);

#endif
