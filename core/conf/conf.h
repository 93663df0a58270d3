/* Configuration: the YAML tree with the position of every node, and options filled from it by tables.
 *
 * Everything is checked in one pass and every problem is reported (struct conf_problems), each as
 * "config.yaml:12:5: what is wrong, and what would be right". Secrets are never part of a message. Knows only the
 * public header: what the sections mean is the gateway's (gateway/setup.c). */
#ifndef SANDGATE_CONF_CONF_H
#define SANDGATE_CONF_CONF_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "sandgate/plugin.h"

enum conf_type { CONF_SCALAR, CONF_LIST, CONF_MAP };

struct conf_node {
    enum conf_type type;
    int line, column; /* from 1 */
    const char *text; /* scalar: its value as written, before expansion */
    bool quoted;      /* scalar: was in quotes (then "5" is text, and null/~ is not absent) */
    size_t count;     /* list: items; map: pairs, in file order */
    struct conf_node **items; /* list: the items; map: the values */
    struct conf_node **keys;  /* map: scalars */
};

struct conf_problems {
    const char *file; /* as given on the command line */
    struct buf text;  /* one line a problem */
    size_t count;
};

void conf_problem(struct conf_problems *, const struct conf_node *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void conf_problems_clear(struct conf_problems *);

/* Parses a file (at most 1 MiB; one document; aliases, anchors and tags are refused; duplicate keys are problems).
 * NULL with problems added when there is no usable tree. An empty file gives an empty map. */
struct conf_node *conf_parse_file(const char *path, struct arena *, struct conf_problems *);
struct conf_node *conf_parse_text(const char *file_name, struct str text, struct arena *,
                                  struct conf_problems *);

/* A map's value, or NULL. */
struct conf_node *conf_get(const struct conf_node *map, const char *key);

/* Fills `config` (zeroed, of the table's size) from a map by an option table. Unknown keys are problems that name the
 * nearest known one; keys in `reserved` (ended by NULL, may be NULL) are left to the caller. Missing optional ones get
 * their default. ${NAME} (anywhere in a scalar; $${ is a literal ${) and a whole "os.environ/NAME" read the
 * environment: an unset one is a problem. `where` starts each message: "e2b" gives
 * "config.yaml:12:5: e2b: 'timeout' must be a duration such as 30s, not '5'". All that config points to is in the arena. Returns the number of
 * problems added. `map` may be NULL: all absent, `at` is then where required ones are reported. */
size_t conf_fill(const struct sg_option *table, const struct conf_node *map,
                 const struct conf_node *at, const char *const *reserved, const char *where,
                 void *config, struct arena *, struct conf_problems *);

/* One value by itself, as written in YAML: for defaults and bounds (plugin/load.c) and the command line. `ret` is the C
 * member of the option's type. */
int conf_value(const struct sg_option *option, const char *text, void *ret, struct arena *,
               struct sg_error *err);

/* "30s" → 30000; "64KiB" → 65536. False if not one. Durations: ms s m h d; sizes: B KiB MiB GiB, whole numbers. */
bool conf_duration(const char *text, int64_t *ret_ms);
bool conf_size(const char *text, uint64_t *ret_bytes);
/* The shortest exact way to write them, for messages and `describe`. */
const char *conf_duration_text(int64_t ms, struct arena *);
const char *conf_size_text(uint64_t bytes, struct arena *);

/* The candidate that a mistyped name most likely means, or NULL if none is near. */
const char *conf_nearest(const char *name, const char *const *candidates, size_t count);

/* The words for a type in messages: "a duration such as 30s". */
const char *conf_type_words(uint32_t option_type);

#endif
