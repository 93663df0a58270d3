/* Files of a container, in memory. */
#include "container_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char working_directory[] = "/home/user";

/* Appends one component; false for ".." and without room. */
static bool put_component(char *out, size_t *len, const char *part, size_t part_len)
{
    if (part_len == 0 || (part_len == 1 && part[0] == '.')) {
        return true;
    }
    bool up = part_len == 2 && memcmp(part, "..", 2) == 0;
    if (up || *len + part_len + 2 > PATH_BYTES) {
        return false;
    }
    out[(*len)++] = '/';
    memcpy(out + *len, part, part_len);
    *len += part_len;
    return true;
}

bool path_normalize(const char *path, char ret[PATH_BYTES])
{
    size_t len = 0;
    if (path[0] != '/') {
        len = sizeof working_directory - 1;
        memcpy(ret, working_directory, len);
    }
    bool good = path[0] != '\0';
    while (good && *path != '\0') {
        size_t part = strcspn(path, "/");
        good = put_component(ret, &len, path, part);
        path += part + (path[part] == '/');
    }
    if (len == 0) {
        ret[len++] = '/';
    }
    ret[len] = '\0';
    return good;
}

static void file_free(struct file *file)
{
    if (file != NULL) {
        free(file->path);
        free(file->data);
        free(file);
    }
}

void container_drop_files(struct container *one)
{
    while (one->files != NULL) {
        struct file *file = one->files;
        one->files = file->next;
        file_free(file);
    }
}

/* With the lock; NULL if there is none. */
static struct file **find_file(struct container *one, const char *path)
{
    for (struct file **at = &one->files; *at != NULL; at = &(*at)->next) {
        if (strcmp((*at)->path, path) == 0) {
            return at;
        }
    }
    return NULL;
}

static struct file *file_new(const char *path, const void *data, size_t len)
{
    struct file *file = calloc(1, sizeof *file);
    if (file == NULL) {
        return NULL;
    }
    file->path = strdup(path);
    file->data = malloc(len + 1);
    file->len = len;
    if (file->path == NULL || file->data == NULL) {
        file_free(file);
        return NULL;
    }
    if (len > 0) {
        memcpy(file->data, data, len);
    }
    return file;
}

/* With the lock. False over the bounds. */
static bool put_file(struct container *one, struct file *file)
{
    struct file **old = find_file(one, file->path);
    size_t old_len = old == NULL ? 0 : (*old)->len;
    if ((old == NULL && one->files_count == FILES_MAX) ||
        one->files_bytes - old_len + file->len > FILES_BYTES_MAX) {
        return false;
    }
    if (old != NULL) {
        struct file *gone = *old;
        *old = gone->next;
        file_free(gone);
        one->files_count--;
    }
    file->next = one->files;
    one->files = file;
    one->files_count++;
    one->files_bytes += file->len - old_len;
    return true;
}

bool container_add_file(struct container *one, const char *path, const void *data, size_t len)
{
    struct file *file = len > FILES_BYTES_MAX ? NULL : file_new(path, data, len);
    bool is_taken = file != NULL && put_file(one, file);
    if (!is_taken) {
        file_free(file);
    }
    return is_taken;
}

int container_put(struct containers *c, struct container *one, const char *path, const void *data,
                  size_t len, struct sg_error *err)
{
    struct file *file = len > FILES_BYTES_MAX ? NULL : file_new(path, data, len);
    if (file == NULL) {
        return sg->fail(err, SG_E_LIMIT, "a file has at most 16 MiB");
    }
    containers_lock(c);
    bool taken = put_file(one, file);
    containers_unlock(c);
    if (!taken) {
        file_free(file);
        return sg->fail(err, SG_E_LIMIT, "the disk is full (at most 256 files and 16 MiB)");
    }
    return 0;
}

int container_get(struct containers *c, struct container *one, struct sg_call *call,
                  const char *path, const void **ret_data, size_t *ret_len, struct sg_error *err)
{
    containers_lock(c);
    struct file **at = find_file(one, path);
    size_t len = at == NULL ? 0 : (*at)->len;
    char *copy = at == NULL ? NULL : malloc(len + 1);
    if (copy != NULL) {
        memcpy(copy, (*at)->data, len);
    }
    containers_unlock(c);
    if (at == NULL) {
        return sg->fail(err, SG_E_NOT_FOUND, "no file '%s' in the container", path);
    }
    void *memory = copy == NULL ? NULL : sg->alloc(call, len + 1);
    if (memory != NULL) {
        memcpy(memory, copy, len);
    }
    free(copy);
    if (memory == NULL) {
        return sg->fail(err, SG_E_LIMIT, "'%s' is too large to be read", path);
    }
    *ret_data = memory;
    *ret_len = len;
    return 0;
}

/* True if an earlier file lies in the same folder below `path_len` bytes, so that the folder was listed with it. */
static bool folder_was_listed(const struct container *one, const struct file *file, size_t folder)
{
    for (const struct file *other = one->files; other != file; other = other->next) {
        if (strncmp(other->path, file->path, folder) == 0 && other->path[folder] == '/') {
            return true;
        }
    }
    return false;
}

int container_each(struct containers *c, struct container *one, const char *path,
                   container_entry *entry, void *context, struct sg_error *err)
{
    size_t len = strcmp(path, "/") == 0 ? 0 : strlen(path);
    bool found = len == 0 || strcmp(path, working_directory) == 0;
    containers_lock(c);
    for (const struct file *file = one->files; file != NULL; file = file->next) {
        if (strncmp(file->path, path, len) != 0 || file->path[len] != '/') {
            continue;
        }
        found = true;
        size_t name = strcspn(file->path + len + 1, "/");
        size_t end = len + 1 + name;
        if (file->path[end] == '\0') {
            entry(context, file->path, end, false, file->len);
        } else if (!folder_was_listed(one, file, end)) {
            entry(context, file->path, end, true, 0);
        }
    }
    containers_unlock(c);
    return found ? 0 : sg->fail(err, SG_E_NOT_FOUND, "no folder '%s' in the container", path);
}

static void put_entry(void *context, const char *path, size_t path_len, bool is_folder, size_t size)
{
    struct text *out = context;
    text_puts(out, "{\"path\": ");
    text_json(out, path, path_len);
    text_printf(out, ", \"size\": %zu, \"type\": \"%s\"}", size, is_folder ? "directory" : "file");
    text_put(out, "", 1);
}

int container_list(struct containers *c, struct container *one, const char *path, struct text *out,
                   struct sg_error *err)
{
    return container_each(c, one, path, put_entry, out, err);
}
