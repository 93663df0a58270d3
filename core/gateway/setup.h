/* Reading the sections that are lists of entries: what setup.c, setup_upstreams.c and their like share. */
#ifndef SANDGATE_GATEWAY_SETUP_H
#define SANDGATE_GATEWAY_SETUP_H

#include "gateway/changes.h"
#include "gateway/config.h"

struct setup {
    const struct config *config;
    struct config *making; /* the same, at the start; NULL: it is in force, and stays as it is */
    struct settings *settings; /* to be filled */
    struct arena *arena;       /* of what is read */
    struct conf_problems *problems;
    struct changes *changes; /* at a reload: what needs a restart */
    const char **absent;     /* names of upstreams that need one to be there */
    size_t absent_count;
};

/* ---- setup_entries.c: entries of whatever kind ---- */

typedef void entry_reader(struct setup *, const struct conf_node *entry, size_t index);
/* Calls `read` for each entry of the section that is a map; others, and a section that is no list, are problems. */
void setup_section(struct setup *, const struct conf_node *root, const char *section,
                   entry_reader *read);
size_t setup_count(const struct conf_node *root, const char *section);
/* No two entries have the same name. */
void setup_names_unique(struct setup *, const struct conf_node *root, const char *section);
/* NULL, for a name that was told as missing already, is not usable either. */
bool setup_name_usable(struct setup *, const struct conf_node *entry, const char *name);
/* Names of a map's keys that the table does not know: left to another table. */
const char *const *setup_keys_beside(const struct sg_option *table, const struct conf_node *map,
                                     struct arena *);
/* "; did you mean 'x'?", or what there is, among names at the start of structs of a size. */
const char *setup_suggestion(struct setup *, const char *wanted, const void *first, size_t count,
                             size_t stride);

/* ---- setup.c ---- */

/* Loads the plugin that an entry names, fills its options, and makes an instance, yet to be opened. At the start alone.
 * NULL where there was a problem. */
struct instance *setup_instance(struct setup *, const struct conf_node *entry, enum plugin_kind,
                                const char *plugin_name, const char *name);

/* ---- setup_upstreams.c ---- */

/* The section `upstreams`, into the settings. */
void setup_upstreams(struct setup *, const struct conf_node *root);
/* Is it one that is there after a restart only? */
bool setup_upstream_is_absent(const struct setup *, const char *name);
/* The names (ended by NULL) in an interceptor's `upstreams`, which stand at `at`, are names of upstreams. */
void setup_check_upstream_names(struct setup *, const char *const *names,
                                const struct conf_node *at);

/* ---- setup_relay_paths.c ---- */

/* `relay_paths` of an entry, as it is written, into its upstream, whose other members are there. */
void setup_relay_paths(struct setup *, const char *const *paths, const struct conf_node *entry,
                       struct upstream *);
/* No path is two upstreams'. */
void setup_check_relay_paths(struct setup *);

/* ---- setup_models.c ---- */

/* The section `models`, into the settings, behind their upstreams. */
void setup_models(struct setup *, const struct conf_node *root);
/* Warnings, of a file that is good: a line for each model whose upstreams are several servers that
 * see the client's own key. */
void setup_models_warn(const struct settings *, struct conf_problems *warnings);

#endif
