/* Loading plugins: finding the file, opening it, checking everything that can be checked before any of its functions is
 * called. For the main thread, at start.
 *
 * What a plugin must have: exactly one operation table; for a sandbox create, run and destroy; for a search search; for an
 * upstream turn; for an interceptor tools, each with call, description and a JSON Schema of type object, or request (done
 * only with it). open and close may be NULL: `self` is then NULL, and there is nothing to give back. Functions that are
 * optional stay NULL in the copies below, also where the plugin was built before they existed. */
#ifndef SANDGATE_PLUGIN_LOAD_H
#define SANDGATE_PLUGIN_LOAD_H

#include "base/arena.h"
#include "base/error.h"
#include "sandgate/plugin.h"

enum plugin_kind {
    PLUGIN_SANDBOX,
    PLUGIN_INTERCEPTOR,
    PLUGIN_SEARCH,
    PLUGIN_UPSTREAM,
    PLUGIN_KIND_COUNT
};
extern const char *const plugin_kind_names[PLUGIN_KIND_COUNT]; /* "sandbox" … */

struct plugin_file {  /* one loaded .so; stays loaded until the process ends */
    const char *name; /* "mock" */
    const char *path;
    const char *libexec_dir; /* <folder of the .so>/libexec */
    const struct sg_plugin_set *set;
    const struct sg_plugin *
        *plugins; /* set->plugins at the core's own struct sizes, ended by NULL */
    const char *version;
    void *handle;
};

struct loader; /* knows the folders and what is loaded already */

/* `folders` are searched in order: the configured ones, then the installed one. Borrowed for the loader's life. */
struct loader *loader_new(const char *const *folders, size_t count);
/* The records of its files end with it; the shared objects stay mapped until the process ends. */
void loader_free(struct loader *);

/* Loads NAME.so (once) and checks it: owner and mode of file and folder (of what a symbolic link leads to as well), magic,
 * ABI, sizes, one kind each, required functions, tools, option tables. Fails with SG_E_CONFIG; the message names the
 * file, what was found, what was expected and what to do. */
int loader_load(struct loader *, const char *name, const struct plugin_file **ret,
                struct sg_error *err);

/* The plugin of a kind in a set (at most one is there), or NULL. */
const struct sg_plugin *plugin_of_kind(const struct plugin_file *, enum plugin_kind);
enum plugin_kind plugin_kind_of(const struct sg_plugin *);

/* Gives the plugin the core's functions: `sg` in its file. Before its first call. */
void loader_bind_host(const struct plugin_file *, const struct sg_host *);

/* The option names that the core keeps for itself in a section, ended by NULL. */
const char *const *plugin_reserved(enum plugin_kind);

/* The folder of installed plugins, found relative to the running program: <exe>/../lib/sandgate. NULL only without
 * /proc. */
const char *loader_installed_folder(struct arena *);

/* Names of all .so files in the folders (whatever is in them), for `sandgate plugins`; sorted, ended by NULL. */
const char *const *loader_list(struct loader *, struct arena *);

/* What `sandgate describe` prints for a file's plugins, as text. */
struct buf;
void plugin_describe(const struct plugin_file *, struct buf *out);
/* The lines for a table of options, in the same form. */
void options_describe(const struct sg_option *, struct buf *out);

#endif
