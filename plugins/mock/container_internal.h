/* What containers.c and files.c know of a container. */
#ifndef MOCK_CONTAINER_INTERNAL_H
#define MOCK_CONTAINER_INTERNAL_H

#include "containers.h"

struct file {
    struct file *next;
    char *path;
    char *data;
    size_t len;
};

struct container {
    struct container *next;
    uint64_t serial;
    char *label;
    struct python *python;
    struct file *files;
    size_t files_count, files_bytes;
    int64_t ends_ms; /* clock_ms() */
    unsigned users;
    bool removed, running, interrupted;
};

void containers_lock(struct containers *);
void containers_unlock(struct containers *);
void container_drop_files(struct container *);
/* A copy of the bytes. False over the container's bounds. With the lock, or before the container is shared. */
bool container_add_file(struct container *, const char *path, const void *data, size_t len);

/* ---- stored.c: containers in a folder, by their labels. With the lock ---- */

bool stored_save(const char *folder, const struct container *);
void stored_remove(const char *folder, const char *label);
/* Fills one that has a label and no more. False where the folder has none of it, or none that is whole. */
bool stored_load(const char *folder, struct container *);

#endif
