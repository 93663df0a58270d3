/* Loading plugins, in order: find the file, look at it, open it, examine what it exports. A file is examined before its
 * first byte runs as far as that can be; what passed stays loaded until the process ends. */
#include "plugin/load.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/utf8.h"
#include "conf/conf.h"
#include "plugin/load_internal.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct loader {
    const char *const *folders;
    size_t folders_count;
    struct arena *arena;
    struct plugin_file **files;
    size_t files_count, files_cap;
};

struct loader *loader_new(const char *const *folders, size_t count)
{
    struct loader *loader = check_alloc(calloc(1, sizeof *loader));
    loader->folders = folders;
    loader->folders_count = count;
    loader->arena = arena_new(0);
    return loader;
}

void loader_free(struct loader *loader)
{
    if (loader == NULL) {
        return;
    }
    free(loader->files);
    arena_free(loader->arena);
    free(loader);
}

int examination_fail(const struct examination *e, const char *format, ...)
{
    va_list arguments;
    struct sg_error what = {0};
    va_start(arguments, format);
    (void)error_vset(&what, SG_E_CONFIG, format, arguments); /* the code is known */
    va_end(arguments);
    return e->plugin == NULL ? error_set(e->err, SG_E_CONFIG, "%s %s", e->path, what.message)
                             : error_set(e->err, SG_E_CONFIG, "%s: plugin '%s' %s", e->path,
                                         e->plugin, what.message);
}

int examination_fail_in(const struct examination *e, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)error_vset(e->err, SG_E_CONFIG, format, arguments); /* the code is known */
    va_end(arguments);
    return e->plugin == NULL ? error_context(e->err, "%s", e->path)
                             : error_context(e->err, "%s: plugin '%s'", e->path, e->plugin);
}

bool is_plain_word(const char *text)
{
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-");
    return len >= 1 && len <= NAME_BYTES_MAX && text[len] == '\0' && text[0] != '-' &&
           text[0] != '_';
}

/* ---- finding ---- */

/* "a.so" gives its name's length, anything else 0. */
static size_t plugin_name_length(const char *file_name)
{
    size_t len = strlen(file_name);
    return len > 3 && strcmp(file_name + len - 3, ".so") == 0 ? len - 3 : 0;
}

struct names {
    const char **list;
    size_t count, cap;
};

static void folder_names(const char *folder, struct arena *arena, struct names *names)
{
    DIR *directory = opendir(folder);
    const struct dirent *entry = NULL;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        struct str name = {entry->d_name, plugin_name_length(entry->d_name)};
        const char *word = arena_copy(arena, name);
        if (!is_plain_word(word)) {
            continue;
        }
        if (names->count == names->cap) {
            names->cap = names->cap == 0 ? 32 : 2 * names->cap;
            names->list = check_alloc(realloc(names->list, names->cap * sizeof(const char *)));
        }
        names->list[names->count++] = word;
    }
    if (directory != NULL) {
        (void)closedir(directory); /* read only */
    }
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *const *names_sorted(struct names *names, struct arena *arena, size_t *ret_count)
{
    const char **list = arena_get(arena, (names->count + 1) * sizeof *list);
    size_t count = 0;
    if (names->count > 0) {
        qsort(names->list, names->count, sizeof(const char *), compare_names);
    }
    for (size_t i = 0; i < names->count; i++) {
        if (count == 0 || strcmp(list[count - 1], names->list[i]) != 0) {
            list[count++] = names->list[i];
        }
    }
    free(names->list);
    *ret_count = count;
    return list;
}

static const char *const *list_names(const struct loader *loader, struct arena *arena,
                                     size_t *ret_count)
{
    struct names names = {0};
    for (size_t i = 0; i < loader->folders_count; i++) {
        folder_names(loader->folders[i], arena, &names);
    }
    return names_sorted(&names, arena, ret_count);
}

const char *const *loader_list(struct loader *loader, struct arena *arena)
{
    size_t count = 0;
    return list_names(loader, arena, &count);
}

static int report_not_found(const struct loader *loader, const char *name, struct sg_error *err)
{
    BUF_CLEANUP struct buf folders = {0};
    for (size_t i = 0; i < loader->folders_count; i++) {
        (void)buf_printf(&folders, "%s%s%s", i == 0 ? "" : ", ", loader->folders[i],
                         access(loader->folders[i], F_OK) == 0 ? "" : " (no such folder)");
    }
    size_t count = 0;
    const char *const *names = list_names(loader, loader->arena, &count);
    const char *nearest = conf_nearest(name, names, count);
    return error_set(err, SG_E_CONFIG, "plugin '%s': there is no %s.so in %s%s%s%s", name, name,
                     folders.len > 0 ? folders.data : "any folder (none is configured)",
                     nearest == NULL ? "" : "; did you mean '", nearest == NULL ? "" : nearest,
                     nearest == NULL ? "" : "'?");
}

/* The real path of NAME.so in the first folder that has it. */
static int file_find(const struct loader *loader, const char *name, const char **ret_path,
                     const char **ret_folder, struct sg_error *err)
{
    for (size_t i = 0; i < loader->folders_count; i++) {
        const char *path = arena_printf(loader->arena, "%s/%s.so", loader->folders[i], name);
        char *real = realpath(path, NULL);
        if (real != NULL) {
            *ret_path = arena_copy(loader->arena, str_of(real));
            *ret_folder = loader->folders[i];
            free(real);
            return 0;
        }
        if (errno != ENOENT && errno != ENOTDIR) {
            return error_set(err, SG_E_CONFIG, "plugin '%s': %s cannot be reached: %s", name, path,
                             strerrordesc_np(errno));
        }
    }
    return report_not_found(loader, name, err);
}

/* ---- opening ---- */

/* The exported set and the bytes that the file says it has. */
static int set_find(struct examination *e, void *handle, size_t *ret_bytes)
{
    void *symbol = dlsym(handle, "sg_plugin_set");
    Dl_info info;
    ElfW(Sym) *entry = NULL;
    if (symbol == NULL) {
        return examination_fail(e, "exports no 'sg_plugin_set', so it is no plugin of sandgate; a "
                                   "plugin ends with SG_PLUGIN_SET(\"1.0\", &plugin)");
    }
    CHECK(dladdr1(symbol, &info, (void **)&entry, RTLD_DL_SYMENT) != 0);
    e->set = symbol;
    *ret_bytes = entry == NULL ? SIZE_MAX : (size_t)entry->st_size;
    return 0;
}

static int examine(struct examination *e, struct plugin_file *file)
{
    size_t bytes = 0;
    int code = set_find(e, file->handle, &bytes);
    if (code == 0) {
        code = set_check(e, bytes);
    }
    if (code == 0) {
        code = set_rebuild(e, &file->plugins);
    }
    if (code == 0) {
        code = plugins_check(e, file->plugins);
    }
    if (code == 0) {
        file->set = e->set;
        file->version = e->set->version;
    }
    return code;
}

static int file_load(struct examination *e, const char *folder, struct plugin_file *file)
{
    int code = file_check(e, folder);
    if (code != 0) {
        return code;
    }
    file->handle = dlopen(e->path, RTLD_NOW | RTLD_LOCAL);
    if (file->handle == NULL) {
        return error_set(e->err, SG_E_CONFIG, "%s cannot be loaded: %s", e->path, dlerror());
    }
    code = examine(e, file);
    if (code != 0) {
        (void)dlclose(file->handle); /* none of its functions was called */
    }
    return code;
}

static const struct plugin_file *file_loaded(const struct loader *loader, const char *name)
{
    for (size_t i = 0; i < loader->files_count; i++) {
        if (strcmp(loader->files[i]->name, name) == 0) {
            return loader->files[i];
        }
    }
    return NULL;
}

static void file_keep(struct loader *loader, struct plugin_file *file)
{
    if (loader->files_count == loader->files_cap) {
        loader->files_cap = loader->files_cap == 0 ? 8 : 2 * loader->files_cap;
        loader->files =
            check_alloc(realloc(loader->files, loader->files_cap * sizeof(struct plugin_file *)));
    }
    loader->files[loader->files_count++] = file;
}

int loader_load(struct loader *loader, const char *name, const struct plugin_file **ret,
                struct sg_error *err)
{
    const char *path = NULL, *folder = NULL;
    if (!is_plain_word(name)) {
        return error_set(err, SG_E_CONFIG,
                         "plugin '%.*s': a plugin is named by a plain word (a-z, 0-9, '_', '-'), "
                         "not by a path; NAME stands for NAME.so in one of the plugin folders",
                         (int)utf8_cut(str_of(name), NAME_BYTES_MAX), name);
    }
    const struct plugin_file *loaded = file_loaded(loader, name);
    if (loaded != NULL) {
        *ret = loaded;
        return 0;
    }
    int code = file_find(loader, name, &path, &folder, err);
    if (code != 0) {
        return code;
    }
    struct plugin_file *file = arena_get(loader->arena, sizeof *file);
    struct examination e = {.path = path, .arena = loader->arena, .err = err};
    code = file_load(&e, folder, file);
    if (code != 0) {
        return code;
    }
    file->name = arena_copy(loader->arena, str_of(name));
    file->path = path;
    file->libexec_dir =
        arena_printf(loader->arena, "%.*s/libexec", (int)(strrchr(path, '/') - path), path);
    file_keep(loader, file);
    *ret = file;
    return 0;
}

void loader_bind_host(const struct plugin_file *file, const struct sg_host *host)
{
    *file->set->host = host;
}

const char *loader_installed_folder(struct arena *arena)
{
    char path[4096];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path);
    for (int levels = 0; levels < 2 && len > 0; levels++) { /* the program, then its folder */
        const char *slash = memrchr(path, '/', (size_t)len);
        len = slash == NULL ? 0 : slash - path;
    }
    if (len < 0 || (size_t)len == sizeof path) {
        return NULL;
    }
    return arena_printf(arena, "%.*s/lib/sandgate", (int)len, path);
}

/* ---- kinds ---- */

const char *const plugin_kind_names[PLUGIN_KIND_COUNT] = {
    [PLUGIN_SANDBOX] = "sandbox",
    [PLUGIN_INTERCEPTOR] = "interceptor",
    [PLUGIN_SEARCH] = "search",
    [PLUGIN_UPSTREAM] = "upstream",
};

const char *kind_section(enum plugin_kind kind)
{
    static const char *const sections[PLUGIN_KIND_COUNT] = {
        [PLUGIN_SANDBOX] = "sandboxes",
        [PLUGIN_INTERCEPTOR] = "interceptors",
        [PLUGIN_SEARCH] = "searches",
        [PLUGIN_UPSTREAM] = "upstreams",
    };
    CHECK(kind < PLUGIN_KIND_COUNT);
    return sections[kind];
}

enum plugin_kind plugin_kind_of(const struct sg_plugin *plugin)
{
    if (plugin->sandbox != NULL) {
        return PLUGIN_SANDBOX;
    }
    if (plugin->interceptor != NULL) {
        return PLUGIN_INTERCEPTOR;
    }
    if (plugin->search != NULL) {
        return PLUGIN_SEARCH;
    }
    CHECK(plugin->upstream != NULL);
    return PLUGIN_UPSTREAM;
}

const struct sg_plugin *plugin_of_kind(const struct plugin_file *file, enum plugin_kind kind)
{
    for (const struct sg_plugin *const *at = file->plugins; *at != NULL; at++) {
        if (plugin_kind_of(*at) == kind) {
            return *at;
        }
    }
    return NULL;
}

const char *const *plugin_reserved(enum plugin_kind kind)
{
    static const char *const sandbox[] = {"name", "plugin", "keep", "run_timeout", NULL};
    static const char *const interceptor[] = {"plugin",    "name",      "enabled", "sandbox",
                                              "search",    "upstreams", "offer",   "tool_name",
                                              "show_runs", NULL};
    static const char *const search[] = {
        "name", "plugin", "search_timeout", "cache", "max_per_request", "per_minute", NULL};
    static const char *const upstream[] = {"name",
                                           "plugin",
                                           "base_url",
                                           "api_key",
                                           "models",
                                           "surfaces",
                                           "passthrough",
                                           "relay_paths",
                                           "stream",
                                           "last_turn",
                                           "usage",
                                           "model_prefix",
                                           "connect_timeout",
                                           "first_byte_timeout",
                                           "silence_timeout",
                                           "ca_file",
                                           "client_certificate",
                                           "client_key",
                                           "proxy",
                                           "headers",
                                           "retries",
                                           "drop_params",
                                           "other_tools",
                                           "encrypted_reasoning",
                                           "circuit_failures",
                                           "circuit_time",
                                           "circuit_time_max",
                                           "models_cache",
                                           NULL};
    static const char *const *const all[PLUGIN_KIND_COUNT] = {
        [PLUGIN_SANDBOX] = sandbox,
        [PLUGIN_INTERCEPTOR] = interceptor,
        [PLUGIN_SEARCH] = search,
        [PLUGIN_UPSTREAM] = upstream,
    };
    CHECK(kind < PLUGIN_KIND_COUNT);
    return all[kind];
}
