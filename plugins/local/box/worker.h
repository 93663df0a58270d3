/* A worker's insides: it serves one request for a file, or for what has changed, and ends. It is forked by pid 1, so it
 * has the box's rights, namespaces and filter, and the box can do nothing to it but kill or stop it: it cannot be looked
 * into (not dumpable), and holds no descriptor but its socket. What has changed is mostly told by pid 1 itself. */
#ifndef LOCAL_WORKER_H
#define LOCAL_WORKER_H

#include "../wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define WORKER_SOCKET 3
#define WORKER_HOME "/home/user"

/* One packet; false if the socket does not take it. */
bool piece_send(int socket_fd, const struct wire_piece *, const void *data, size_t len, int flags);
/* In a worker: one packet. The gateway being gone ends the process. */
void worker_send(enum wire_piece_kind, uint32_t number, uint64_t size, const void *data,
                 size_t len);
/* Why errno refuses something. */
enum wire_refusal worker_refusal(void);
enum wire_entry worker_entry_of(mode_t mode);
/* Opens what is no link of /proc into a process, and does not lie in /proc: a worker's own files there are not the box's. -1
 * with errno. */
int worker_open(int folder, const char *path, int flags);

/* worker_put.c: `size` bytes come over the socket, also after a refusal. */
enum wire_refusal worker_put(const char *path, uint64_t size);
/* In pid 1, before the first worker: memory that all workers share, for the name of the file that is being written. */
void worker_put_prepare(void);
/* Removes what a worker has left that was killed while it wrote. */
void worker_put_clean(void);
/* Whether there may be something to remove. */
bool worker_put_is_unfinished(void);

/* worker_changes.c: what was there when one last looked, in memory that all workers of a box share. */
struct known_files;
struct known_files *known_files_new(void); /* NULL: there is no memory */
/* A file that the gateway itself has put, by its resolved path: it is no change. */
void known_files_add(struct known_files *, const char *path, const struct stat *);
/* Sends an entry for each file that is new or changed. Returns how many more there are. */
uint64_t worker_changes(struct known_files *);
/* In pid 1: the whole answer, where it takes little time. False if it takes a worker: nothing has been sent then. */
bool changes_at_once(struct known_files *, int socket_fd);

/* Of the box; made by pid 1 before the first worker. */
extern struct known_files *worker_known_files;

#endif
