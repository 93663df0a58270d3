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

#endif
