/* The file in which sessions wait for the next process. It holds secrets: only the running user may read or write it, nobody
 * else may write its folder, and it is replaced whole. One process at a time has it: beside it lies a lock, FILE.lock, which
 * stays. All functions block; each is for one thread at a time. */
#ifndef SANDGATE_GATEWAY_STATE_FILE_H
#define SANDGATE_GATEWAY_STATE_FILE_H

#include "base/buf.h"
#include "base/error.h"

struct state_file;

/* Takes the lock, until state_file_close() or the end of the process. SG_E_CONFIG where the folder is none of ours, cannot be
 * written, or another gateway has the file. Nothing is read yet. */
int state_file_open(const char *path, struct state_file **ret, struct sg_error *err);
void state_file_close(struct state_file *); /* NULL is fine */
/* Would it be opened, but for another gateway that may have it? Root asks for the user whose the folder is. Nothing is made or
 * locked. SG_E_CONFIG likewise. */
int state_file_check(const char *path, struct sg_error *err);

/* Is the lock still this process's? It is a file, which somebody may remove: then it is taken anew and *ret_was_gone is true.
 * SG_E_UNAVAILABLE: another gateway has taken it meanwhile, and the state file with it. Before each change of the file; a
 * gateway that comes between the removal and that is not kept out. */
int state_file_hold(struct state_file *, bool *ret_was_gone, struct sg_error *err);

/* What the file says, at most `bytes_max`. SG_E_NOT_FOUND: there is none. SG_E_DENIED: others may have read or written it, or
 * it is no plain file. SG_E_LIMIT: it is larger. SG_E_UNAVAILABLE: it cannot be read. */
int state_file_read(struct state_file *, size_t bytes_max, struct buf *ret, struct sg_error *err);

/* Renames it to FILE.bad, over an earlier one of that name; false where it cannot. */
bool state_file_set_aside(struct state_file *);
/* There is none afterwards. */
int state_file_remove(struct state_file *, struct sg_error *err);
/* Replaces it: after a failure (SG_E_UNAVAILABLE) or a power cut it is the old one or the new one, whole. */
int state_file_write(struct state_file *, struct str text, struct sg_error *err);

#endif
