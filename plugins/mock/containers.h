/* The mock sandbox's containers: one table an instance, one lock, never held while waiting. A container that is in use
 * stays in memory when it is removed; who uses it learns that by container_stop(). */
#ifndef MOCK_CONTAINERS_H
#define MOCK_CONTAINERS_H

#include "journal.h"
#include "python.h"

struct containers; /* opaque */
struct container;  /* opaque */

/* Both are borrowed. With a folder the containers are in it too, and those of an earlier process are found there. NULL without
 * memory. */
struct containers *containers_new(struct journal *, const char *folder);
/* Ends all that are left (in a folder they stay) and writes "close live=N" with their number. */
void containers_free(struct containers *, struct sg_call *);

#define HANDLE_BYTES 512

/* Makes one, writes "create LABEL live=N" and its handle. SG_E_INTERNAL without memory. */
int container_add(struct containers *, struct sg_call *, const char *label, int64_t life_ms,
                  char ret_handle[HANDLE_BYTES], struct sg_error *err);

/* Takes it out and writes "VERB LABEL live=N" ("destroy", "die"). False if there is none. */
bool container_remove(struct containers *, struct sg_call *, const char *handle, const char *verb);

/* The label that a handle carries, also one that is gone: for the journal. */
const char *container_label(const char *handle);
size_t containers_live(struct containers *);

/* The right to look at it until container_release(). NULL if there is none, or its life is over. */
struct container *container_use(struct containers *, struct sg_call *, const char *handle);
void container_release(struct containers *, struct sg_call *, struct container *);

/* A run begins (false: another is going on) and ends. */
bool container_begin_run(struct containers *, struct container *);
void container_end_run(struct containers *, struct container *);

enum container_stop { STOP_NONE, STOP_INTERRUPTED, STOP_REMOVED };
enum container_stop container_stop(struct containers *, struct container *);

/* Has an effect only on a run that is going on. */
void container_interrupt(struct containers *, struct container *);
void container_touch(struct containers *, struct container *, int64_t life_ms);

/* Its variables: for the one run that is going on. */
struct python *container_python(struct container *);

/* ---- files; paths are absolute and normal (see path_normalize) ---- */

#define FILES_MAX 256
#define FILES_BYTES_MAX ((size_t)16 << 20) /* of one container */
#define PATH_BYTES 1024

/* "a/./b" → "/home/user/a/b". False for one that is empty, too long or leads out by "..". */
bool path_normalize(const char *path, char ret[PATH_BYTES]);

/* Makes or replaces a file. SG_E_LIMIT over the container's bounds. */
int container_put(struct containers *, struct container *, const char *path, const void *data,
                  size_t len, struct sg_error *err);
/* A copy in the call's memory. SG_E_NOT_FOUND. */
int container_get(struct containers *, struct container *, struct sg_call *, const char *path,
                  const void **ret_data, size_t *ret_len, struct sg_error *err);
/* Each entry right below a folder, with the lock held. SG_E_NOT_FOUND where nothing is, but for the working directory. */
typedef void container_entry(void *context, const char *path, size_t path_len, bool is_folder,
                             size_t size);
int container_each(struct containers *, struct container *, const char *path, container_entry *,
                   void *context, struct sg_error *err);
/* The entries right below a folder, each as the JSON of SG_OUT_FILE, each ended by a NUL, into `out`; as
 * container_each(). */
int container_list(struct containers *, struct container *, const char *path, struct text *out,
                   struct sg_error *err);

#endif
