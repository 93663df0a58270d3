/* What the files of the loader share among themselves. */
#ifndef SANDGATE_PLUGIN_LOAD_INTERNAL_H
#define SANDGATE_PLUGIN_LOAD_INTERNAL_H

#include "base/error.h"
#include "plugin/load.h"

enum {
    NAME_BYTES_MAX = 64,
    OPTIONS_MAX = 256, /* of one table */
    OPTIONS_DEPTH_MAX = 4,
    TOOLS_MAX = 64,
    PLUGINS_MAX = 16 /* of one set */
};
#define CONFIG_BYTES_MAX ((size_t)1024 * 1024) /* of a plugin's config struct, of a list's item */

/* One file under examination. Messages begin with its path and, once known, the plugin's name. */
struct examination {
    const char *path;
    const char *plugin; /* NULL until known */
    const struct sg_plugin_set *set;
    struct arena *arena;
    struct sg_error *err;
};

/* Describes what is wrong with the file, or with the plugin once it is known, as a sentence goes on behind its name: "is cut
 * short". Returns SG_E_CONFIG. */
int examination_fail(const struct examination *, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same of a part of it, which the text names first: "option 'x' has no help". */
int examination_fail_in(const struct examination *, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* load_file.c: before anything of the file runs: regular, of a trusted owner, a whole ELF shared object. `folder` is
 * where it was found, which a symbolic link may have led away from. */
int file_check(const struct examination *, const char *folder);

/* load_elf.c: a whole shared object for this machine, whose headers and dynamic table keep within it. */
int elf_check(const struct examination *, int fd, uint64_t size);

/* load_set.c: the guard fields and the table of sizes. */
int set_check(const struct examination *, size_t symbol_bytes);
/* The set's plugins at the core's own struct sizes, ended by NULL. */
int set_rebuild(const struct examination *, const struct sg_plugin ***ret);

/* load_check.c: kinds, functions, tools. */
int plugins_check(struct examination *, const struct sg_plugin *const *plugins);
/* load_options.c: a plugin's option table. */
int options_check(const struct examination *, const struct sg_plugin *);

/* 1 to NAME_BYTES_MAX of a-z, 0-9, '_' and '-', a letter or digit first. */
bool is_plain_word(const char *);

/* The section of the configuration that names plugins of a kind: "sandboxes". */
const char *kind_section(enum plugin_kind);

#endif
