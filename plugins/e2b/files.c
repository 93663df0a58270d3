/* Files of a sandbox, by envd: its /files for content, its Filesystem service for folders.
 *
 * Paths are made absolute and plain here, so that what they mean depends neither on a template's working directory nor on
 * envd's version. What envd says of a file that it cannot serve is told in the gateway's own words. */
#include "api.h"
#include "envd.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES_MAX 4096
#define NAME_BYTES_MAX 255
#define FILE_BYTES_MAX ((size_t)10 << 20)
#define FILE_ENTRIES_MAX 10000
#define LIST_BYTES_MAX ((uint64_t)8 << 20) /* of the JSON for so many */

enum operation { READING, WRITING, LISTING };

struct transfer {
    struct e2b *e2b;
    struct sg_call *call;
    struct sandbox *sandbox;
    enum operation operation;
    const char *asked; /* the path as it was given: for messages */
    struct text path;  /* absolute, without ".", ".." and slashes too many */
    size_t bytes;      /* of content so far */
    int sink_code;     /* why the content was not taken any further */
};

/* ---- paths ---- */

static void drop_component(struct text *path)
{
    while (path->len > 0 && path->data[--path->len] != '/') {
    }
}

static void put_component(struct text *path, const char *name, size_t len)
{
    if (len == 0 || (len == 1 && name[0] == '.')) {
        return;
    }
    if (len == 2 && memcmp(name, "..", 2) == 0) {
        drop_component(path);
        return;
    }
    text_puts(path, "/");
    text_put(path, name, len);
}

static void put_path(struct text *path, const char *asked)
{
    if (asked[0] != '/') {
        text_puts(path, ENVD_HOME);
    }
    while (*asked != '\0') {
        size_t len = strcspn(asked, "/");
        put_component(path, asked, len);
        asked += len + (asked[len] == '/');
    }
    if (path->len == 0) {
        text_puts(path, "/");
    }
    text_put(path, "", 0); /* ended by a NUL behind what was dropped */
}

/* ---- how it failed ---- */

enum refusal {
    REFUSAL_NONE, /* not about the file */
    REFUSAL_NOT_FOUND,
    REFUSAL_IS_FOLDER,
    REFUSAL_NO_FOLDER,
    REFUSAL_DENIED,
    REFUSAL_DISK_FULL,
    REFUSAL_TOO_LARGE,
    REFUSAL_OTHER
};

/* Words of envd and of the system's errors that it hands on. */
static const struct {
    const char *words;
    enum refusal refusal;
} causes[] = {
    {"is a directory", REFUSAL_IS_FOLDER},       {"not a directory", REFUSAL_NO_FOLDER},
    {"path is a file", REFUSAL_NO_FOLDER},       {"permission denied", REFUSAL_DENIED},
    {"operation not permitted", REFUSAL_DENIED}, {"read-only file system", REFUSAL_DENIED},
    {"no space left", REFUSAL_DISK_FULL},        {"not enough", REFUSAL_DISK_FULL},
    {"quota exceeded", REFUSAL_DISK_FULL},       {"file name too long", REFUSAL_OTHER},
    {"too many links", REFUSAL_OTHER},           {"too many levels", REFUSAL_OTHER},
};

/* By the words, for the errors of which envd has only one code. */
static enum refusal refusal_by_words(const struct connect_error *error, enum refusal otherwise)
{
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        if (connect_error_says(error, causes[i].words)) {
            return causes[i].refusal;
        }
    }
    return otherwise;
}

/* 401, 403, 429 and 502 are about the sandbox; so is what has not the form of envd's errors. */
static enum refusal refusal_of(const struct exchange *x)
{
    struct connect_error error;
    if (x->reply.status == 507) {
        return REFUSAL_DISK_FULL;
    }
    if (x->reply.status == 413) {
        return REFUSAL_TOO_LARGE;
    }
    if (!connect_error_read(x->body_kept, x->body_kept_len, &error)) {
        return REFUSAL_NONE;
    }
    switch (x->reply.status) {
    case 404:
        return error.code == CONNECT_NOT_FOUND ? REFUSAL_NOT_FOUND : REFUSAL_NONE;
    case 400:
    case 412:
        return refusal_by_words(&error, REFUSAL_OTHER);
    case 500:
        return refusal_by_words(&error, REFUSAL_NONE);
    default:
        return REFUSAL_NONE;
    }
}

static int fail_refused(const struct transfer *t, enum refusal refusal, struct sg_error *err)
{
    const char *path = t->asked;
    int len = (int)text_cut(path, strlen(path), 200);
    const char *done = t->operation == WRITING ? "written" : "read";
    switch (refusal) {
    case REFUSAL_NOT_FOUND:
        return sg->fail(err, SG_E_NOT_FOUND, "there is no %s '%.*s'",
                        t->operation == LISTING ? "folder" : "file", len, path);
    case REFUSAL_IS_FOLDER:
        return sg->fail(err, SG_E_INVALID, "'%.*s' is a folder", len, path);
    case REFUSAL_NO_FOLDER:
        return sg->fail(err, SG_E_INVALID, "'%.*s' is not a folder, or not in one", len, path);
    case REFUSAL_DENIED:
        return sg->fail(err, SG_E_INVALID, "'%.*s' may not be %s", len, path, done);
    case REFUSAL_DISK_FULL:
        return sg->fail(err, SG_E_LIMIT, "the disk of the container is full");
    case REFUSAL_TOO_LARGE:
        return t->operation == LISTING
                   ? sg->fail(err, SG_E_LIMIT, "'%.*s' has more than %d entries", len, path,
                              FILE_ENTRIES_MAX)
                   : sg->fail(err, SG_E_LIMIT, "'%.*s' is larger than 10MiB", len, path);
    default:
        return sg->fail(err, SG_E_INVALID, "'%.*s' cannot be %s", len, path, done);
    }
}

static const char *const what[] = {[READING] = "cannot read a file",
                                   [WRITING] = "cannot write a file",
                                   [LISTING] = "cannot list a folder"};

static int fail_answered(struct transfer *t, const struct exchange *x, struct sg_error *err)
{
    enum refusal refusal = refusal_of(x);
    return refusal != REFUSAL_NONE
               ? fail_refused(t, refusal, err)
               : fault_sandbox(t->e2b, t->call, t->sandbox, x, what[t->operation], err);
}

static int fail_unanswered(struct transfer *t, const struct exchange *x, int code,
                           struct sg_error *err)
{
    if (t->sink_code != 0) {
        return code;
    }
    return code == SG_E_LIMIT
               ? fail_refused(t, REFUSAL_TOO_LARGE, err)
               : envd_fail_lost(t->e2b, t->call, t->sandbox, x, code, what[t->operation], err);
}

static int ask(struct transfer *t, struct exchange *x, struct sg_error *err)
{
    int code = envd_exchange(t->e2b, t->call, t->sandbox, x, err);
    if (code != 0) {
        return fail_unanswered(t, x, code, err);
    }
    bool succeeded = x->reply.status >= 200 && x->reply.status < 300;
    return succeeded ? 0 : fail_answered(t, x, err);
}

/* ---- content ---- */

static void put_files_path(const struct transfer *t, struct text *url)
{
    text_puts(url, "/files?path=");
    api_encode(url, t->path.data, t->path.len);
    text_puts(url, envd_wants_user(t->sandbox) ? "&username=user" : "");
}

static int take_content(void *context, enum sg_out kind, const void *data, size_t len,
                        struct sg_error *err)
{
    struct transfer *t = context;
    (void)kind; /* an answer is always DATA */
    if (len == 0) {
        return 0;
    }
    t->bytes += len;
    t->sink_code = t->bytes > FILE_BYTES_MAX ? fail_refused(t, REFUSAL_TOO_LARGE, err)
                                             : sg->emit(t->call, SG_OUT_DATA, data, len, err);
    return t->sink_code;
}

static int get(struct transfer *t, struct sg_error *err)
{
    TEXT_CLEANUP struct text url = {0};
    const struct sg_sink sink = {take_content, t};
    put_files_path(t, &url);
    if (url.overflow) {
        return sg->fail(err, SG_E_LIMIT, "no memory for a file");
    }
    struct exchange x = {.path = url.data, .sink = &sink, .bytes_max = FILE_BYTES_MAX};
    int code = ask(t, &x, err);
    return code == 0 && t->bytes == 0 ? sg->emit(t->call, SG_OUT_DATA, "", 0, err) : code;
}

/* Of 128 random bits: content that holds it cannot be made. */
static int choose_boundary(char boundary[64], struct sg_error *err)
{
    uint64_t random[2];
    if (getentropy(random, sizeof random) != 0) {
        return sg->fail(err, SG_E_UNAVAILABLE, "the system gives no random bytes");
    }
    snprintf(boundary, 64, "----sandgate%016llx%016llx", (unsigned long long)random[0],
             (unsigned long long)random[1]);
    return 0;
}

static void put_multipart(struct text *body, const char *boundary, const void *data, size_t len)
{
    text_printf(body,
                "--%s\r\nContent-Disposition: form-data; name=\"file\"; filename=\"file\"\r\n"
                "Content-Type: application/octet-stream\r\n\r\n",
                boundary);
    text_put(body, data, len);
    text_printf(body, "\r\n--%s--\r\n", boundary);
}

static int put(struct transfer *t, const void *data, size_t len, struct sg_error *err)
{
    TEXT_CLEANUP struct text url = {0};
    TEXT_CLEANUP struct text form = {0};
    char boundary[64], form_type[128];
    struct exchange x = {.method = "POST",
                         .content_type = "application/octet-stream",
                         .body = data == NULL ? "" : data,
                         .body_len = len};
    put_files_path(t, &url);
    if (!envd_is_at_least(t->sandbox, 0, 5, 7)) {
        int code = choose_boundary(boundary, err);
        if (code != 0) {
            return code;
        }
        put_multipart(&form, boundary, data, len);
        snprintf(form_type, sizeof form_type, "multipart/form-data; boundary=%s", boundary);
        x.content_type = form_type;
        x.body = form.data;
        x.body_len = form.len;
    }
    x.path = url.data;
    return url.overflow || form.overflow ? sg->fail(err, SG_E_LIMIT, "no memory for a file")
                                         : ask(t, &x, err);
}

/* ---- folders ---- */

/* A component of a path into `ret`; false if it is none. */
static bool read_name(struct json_value name, char ret[NAME_BYTES_MAX + 5], size_t *ret_len)
{
    if (!json_is_string(name)) {
        return false;
    }
    struct json_value inside = json_inside(name);
    *ret_len = json_decode(&inside, ret, NAME_BYTES_MAX + 4);
    return *ret_len > 0 && *ret_len <= NAME_BYTES_MAX && inside.len == 0 &&
           memchr(ret, '/', *ret_len) == NULL && memchr(ret, '\0', *ret_len) == NULL;
}

static const char *type_of(struct json_value type)
{
    bool is_folder = json_is_string(type) && json_string_is(type, "FILE_TYPE_DIRECTORY");
    bool is_file = json_is_string(type) && json_string_is(type, "FILE_TYPE_FILE");
    return is_folder ? "directory" : is_file ? "file" : "other";
}

/* What is no entry is left out: there is nothing to say of it. */
static int emit_entry(struct transfer *t, struct json_value entry, struct sg_error *err)
{
    static const char *const names[] = {"name", "type", "size"};
    struct json_value values[3];
    char name[NAME_BYTES_MAX + 5];
    size_t name_len = 0;
    int64_t size = 0; /* left out if it is 0 */
    if (!json_find(entry.data, entry.len, names, values, 3) ||
        !read_name(values[0], name, &name_len) ||
        (values[2].data != NULL && !json_count(values[2], &size))) {
        return 0;
    }
    TEXT_CLEANUP struct text path = {0};
    TEXT_CLEANUP struct text json = {0};
    text_put(&path, t->path.data, t->path.len);
    text_puts(&path, t->path.len > 1 ? "/" : "");
    text_put(&path, name, name_len);
    text_puts(&json, "{\"path\":");
    text_json(&json, path.data, path.len);
    text_printf(&json, ",\"size\":%lld,\"type\":\"%s\"}", (long long)size, type_of(values[1]));
    return path.overflow || json.overflow
               ? sg->fail(err, SG_E_LIMIT, "no memory for a folder's entries")
               : sg->emit(t->call, SG_OUT_FILE, json.data, json.len, err);
}

static int emit_entries(struct transfer *t, const struct exchange *x, struct sg_error *err)
{
    static const char *const names[] = {"entries"};
    struct json_value entries, entry;
    if (!json_find(x->body_kept, x->body_kept_len, names, &entries, 1) ||
        (entries.data != NULL && entries.data[0] != '[')) {
        return sg->fail(err, SG_E_UNAVAILABLE,
                        "the sandbox answered the listing of a folder with something else; is "
                        "there an E2B sandbox behind 'sandbox_url' or 'domain'?");
    }
    if (entries.data == NULL) {
        return 0; /* left out if there are none */
    }
    int code = 0;
    struct json_reader reader = json_reader_of(entries.data, entries.len);
    for (size_t count = 1; code == 0 && json_next_element(&reader, &entry); count++) {
        code = count > FILE_ENTRIES_MAX ? fail_refused(t, REFUSAL_TOO_LARGE, err)
                                        : emit_entry(t, entry, err);
    }
    return code;
}

static int list(struct transfer *t, struct sg_error *err)
{
    TEXT_CLEANUP struct text body = {0};
    struct envd_headers headers;
    text_puts(&body, "{\"path\":");
    text_json(&body, t->path.data, t->path.len);
    text_puts(&body, ",\"depth\":1}");
    if (body.overflow) {
        return sg->fail(err, SG_E_LIMIT, "no memory for a folder's entries");
    }
    struct exchange x = {.path = "/filesystem.Filesystem/ListDir",
                         .body = body.data,
                         .body_len = body.len,
                         .bytes_max = LIST_BYTES_MAX};
    envd_rpc(t->sandbox, &x, &headers, "application/json");
    int code = ask(t, &x, err);
    return code == 0 ? emit_entries(t, &x, err) : code;
}

/* ---- the operations ---- */

static int carry_out(struct transfer *t, const void *data, size_t len, struct sg_error *err)
{
    switch (t->operation) {
    case READING:
        return get(t, err);
    case WRITING:
        return put(t, data, len, err);
    default:
        return list(t, err);
    }
}

static int check(const struct transfer *t, size_t len, struct sg_error *err)
{
    size_t path_len = strlen(t->asked);
    if (path_len > PATH_BYTES_MAX || path_len == 0) {
        return sg->fail(err, SG_E_INVALID, "a path has 1 to %d bytes", PATH_BYTES_MAX);
    }
    if (t->operation != LISTING && t->asked[path_len - 1] == '/') {
        return fail_refused(t, REFUSAL_IS_FOLDER, err);
    }
    return len > FILE_BYTES_MAX ? fail_refused(t, REFUSAL_TOO_LARGE, err) : 0;
}

/* Of a file function nothing counts but what was given: without that it may be done anew in another container. */
static int fail_before(const struct transfer *t, int code, struct sg_error *err)
{
    return code == SG_E_GONE && t->bytes == 0
               ? sg->fail(err, SG_E_GONE_BEFORE, "%s", sg->message(err))
               : code;
}

static int do_transfer(struct transfer *t, const char *handle, const void *data, size_t len,
                       struct sg_error *err)
{
    int code = check(t, len, err);
    if (code == 0) {
        code = sandbox_get(t->e2b, t->call, handle, &t->sandbox, err);
    }
    if (code != 0) {
        return fail_before(t, code, err);
    }
    put_path(&t->path, t->asked);
    code = t->path.overflow ? sg->fail(err, SG_E_LIMIT, "no memory for a path")
                            : carry_out(t, data, len, err);
    text_clear(&t->path);
    sandbox_unref(t->e2b, t->sandbox);
    return fail_before(t, code, err);
}

int e2b_put(void *self, struct sg_call *call, const char *handle, const char *path,
            const void *data, size_t len, struct sg_error *err)
{
    struct transfer t = {.e2b = self, .call = call, .operation = WRITING, .asked = path};
    return do_transfer(&t, handle, data, len, err);
}

int e2b_get(void *self, struct sg_call *call, const char *handle, const char *path,
            struct sg_error *err)
{
    struct transfer t = {.e2b = self, .call = call, .operation = READING, .asked = path};
    return do_transfer(&t, handle, NULL, 0, err);
}

int e2b_list(void *self, struct sg_call *call, const char *handle, const char *path,
             struct sg_error *err)
{
    struct transfer t = {
        .e2b = self, .call = call, .operation = LISTING, .asked = path[0] == '\0' ? "." : path};
    return do_transfer(&t, handle, NULL, 0, err);
}
