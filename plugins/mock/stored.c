/* Containers on disk, for the option `state`: a file for each, by its label, so that another process finds them by their
 * handles. Written whole after each use: variables as the assignments that make them, files in hexadecimal. */
#include "container_internal.h"

#include "json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STORED_PATH_BYTES 4096
#define STORED_BYTES_MAX ((size_t)64 << 20)

static int64_t unix_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* False for a label that is no plain file name. */
static bool path_of(const char *folder, const char *label, const char *ending,
                    char ret[STORED_PATH_BYTES])
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    size_t len = strlen(label);
    int wanted = snprintf(ret, STORED_PATH_BYTES, "%s/%s%s", folder, label, ending);
    return len > 0 && len <= 200 && strspn(label, plain) == len && wanted < STORED_PATH_BYTES;
}

/* ---- writing ---- */

static void put_assignment(void *context, const char *assignment)
{
    struct text *out = context;
    text_puts(out, out->data[out->len - 1] == '[' ? "" : ",");
    text_json(out, assignment, strlen(assignment));
}

static void put_file(struct text *out, const struct file *file)
{
    text_puts(out, out->data[out->len - 1] == '[' ? "{\"path\":" : ",{\"path\":");
    text_json(out, file->path, strlen(file->path));
    text_puts(out, ",\"hex\":\"");
    for (size_t i = 0; i < file->len; i++) {
        text_printf(out, "%02x", (unsigned char)file->data[i]);
    }
    text_puts(out, "\"}");
}

static void put_container(struct text *out, const struct container *one)
{
    int64_t ends = one->ends_ms == INT64_MAX ? INT64_MAX : one->ends_ms - clock_ms() + unix_ms();
    text_printf(out, "{\"ends_unix_ms\":\"%" PRId64 "\",\"variables\":[", ends);
    python_each(one->python, put_assignment, out);
    text_puts(out, "],\"files\":[");
    for (const struct file *file = one->files; file != NULL; file = file->next) {
        put_file(out, file);
    }
    text_puts(out, "]}\n");
}

static bool write_all(int fd, const struct text *text)
{
    size_t done = 0;
    while (done < text->len) {
        ssize_t put = write(fd, text->data + done, text->len - done);
        if (put < 0 && errno != EINTR) {
            return false;
        }
        done += put > 0 ? (size_t)put : 0;
    }
    return true;
}

bool stored_save(const char *folder, const struct container *one)
{
    char path[STORED_PATH_BYTES], new_path[STORED_PATH_BYTES];
    TEXT_CLEANUP struct text text = {0};
    if (!path_of(folder, one->label, ".json", path) ||
        !path_of(folder, one->label, ".new", new_path)) {
        return false;
    }
    put_container(&text, one);
    int fd = text.overflow ? -1 : open(new_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool is_written = fd >= 0 && write_all(fd, &text);
    if (fd >= 0) {
        is_written = close(fd) == 0 && is_written;
    }
    return is_written && rename(new_path, path) == 0;
}

void stored_remove(const char *folder, const char *label)
{
    char path[STORED_PATH_BYTES];
    if (path_of(folder, label, ".json", path)) {
        (void)unlink(path); /* one that is gone already is what is wanted */
    }
}

/* ---- reading ---- */

/* NULL where there is none, or it is no whole file of ours. */
static cJSON *read_json(const char *path)
{
    struct stat status;
    cJSON *json = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &status) == 0 && (size_t)status.st_size < STORED_BYTES_MAX) {
        size_t len = (size_t)status.st_size;
        char *text = calloc(1, len + 1);
        if (text != NULL && read(fd, text, len) == (ssize_t)len) {
            json = cJSON_Parse(text);
        }
        free(text);
    }
    if (fd >= 0) {
        (void)close(fd); /* only read */
    }
    return json;
}

static int ignore(void *context, const char *text, size_t len)
{
    (void)context, (void)text, (void)len;
    return 0;
}

static bool take_variable(struct container *one, const cJSON *assignment)
{
    struct python_result result = {0};
    struct python_sink sink = {ignore, NULL};
    if (!cJSON_IsString(assignment)) {
        return false;
    }
    python_run(one->python, assignment->valuestring, strlen(assignment->valuestring), &sink,
               &result);
    bool is_done = result.ending == PYTHON_DONE;
    python_result_clear(&result);
    return is_done;
}

static bool take_file(struct container *one, const cJSON *entry)
{
    const cJSON *path = json_member(entry, "path"), *hex = json_member(entry, "hex");
    if (!cJSON_IsString(path) || !cJSON_IsString(hex)) {
        return false;
    }
    size_t len = strlen(hex->valuestring) / 2;
    char *bytes = malloc(len + 1);
    bool is_good = bytes != NULL;
    for (size_t i = 0; is_good && i < len; i++) {
        unsigned value;
        is_good = sscanf(hex->valuestring + 2 * i, "%2x", &value) == 1;
        bytes[i] = (char)value;
    }
    is_good = is_good && container_add_file(one, path->valuestring, bytes, len);
    free(bytes);
    return is_good;
}

static bool take_container(struct container *one, const cJSON *json)
{
    const cJSON *ends = json_member(json, "ends_unix_ms"), *item;
    bool is_good = cJSON_IsString(ends);
    if (is_good) {
        int64_t at = strtoll(ends->valuestring, NULL, 10);
        one->ends_ms = at == INT64_MAX ? at : at - unix_ms() + clock_ms();
    }
    cJSON_ArrayForEach(item, json_member(json, "variables"))
    {
        is_good = is_good && take_variable(one, item);
    }
    cJSON_ArrayForEach(item, json_member(json, "files"))
    {
        is_good = is_good && take_file(one, item);
    }
    return is_good;
}

bool stored_load(const char *folder, struct container *one)
{
    char path[STORED_PATH_BYTES];
    cJSON *json = path_of(folder, one->label, ".json", path) ? read_json(path) : NULL;
    bool is_good = json != NULL && take_container(one, json);
    cJSON_Delete(json);
    return is_good;
}
