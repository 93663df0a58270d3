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

#define CONF_BYTES_MAX ((size_t)1024 * 1024) /* a file; a text after ${NAME} was put in */
#define CONF_DEPTH_MAX 32                    /* maps and lists in each other */
#define CONF_ITEMS_MAX ((size_t)10000)       /* of one list or map that an option takes */
#define CONF_PROBLEMS_MAX ((size_t)100)      /* printed in one run; more are counted */

/* What ends the part of a map's key that may be shown: "{api_key:sk-1}" and "{api_key=sk-1}" make all of it a key. */
#define CONF_NAME_ENDS ":="

enum conf_type { CONF_SCALAR, CONF_LIST, CONF_MAP };

struct conf_node {
    enum conf_type type;
    int line, column; /* from 1 */
    const char *text; /* scalar: its value as written, before expansion */
    bool quoted;      /* scalar: was in quotes (then "5" is text, and null/~ is not absent) */
    bool reported;    /* an alias, refused already: counts as given, and nothing more is said */
    size_t count;     /* list: items; map: pairs, in file order */
    struct conf_node **items; /* list: the items; map: the values */
    struct conf_node **keys;  /* map: scalars */
};

struct conf_problems {
    const char *file; /* as given on the command line; NULL: messages have no position */
    struct buf text;  /* one line a problem; control characters are escaped, so it is always one */
    size_t count;
};

/* Adds one line. `at` may be NULL: the file as a whole. */
void conf_problem(struct conf_problems *, const struct conf_node *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void conf_problems_clear(struct conf_problems *);

/* Parses a file (at most CONF_BYTES_MAX of UTF-8; one document; aliases, anchors, tags and merge keys are refused;
 * duplicate keys are problems). Arenas here are without bound. NULL with problems added when there is no usable tree;
 * problems may also come with a tree, so that all can be shown at once. The root is a map; an empty file gives an empty
 * one. */
struct conf_node *conf_parse_file(const char *path, struct arena *, struct conf_problems *);
/* The same for a file that holds a list, and that nobody else may write ("who could change WHAT"); an empty one gives an
 * empty list. `problems->file` is its name from then on. */
struct conf_node *conf_parse_list_file(const char *path, const char *what, struct arena *,
                                       struct conf_problems *);
struct conf_node *conf_parse_text(const char *file_name, struct str text, struct arena *,
                                  struct conf_problems *);

/* A map's value, or NULL (also if `map` is NULL or no map). An absent value (conf_is_absent) is returned as it is. */
struct conf_node *conf_get(const struct conf_node *map, const char *key);

/* Where to point in a message about a key: its value if it is there, else the map. */
const struct conf_node *conf_at(const struct conf_node *map, const char *key);

/* NULL, or a plain null, ~ or nothing at all: the same as not written. */
bool conf_is_absent(const struct conf_node *);

/* Fills `config` (zeroed, of the table's size) from a map by an option table (ended by a NULL name; NULL: no options, so
 * that only the names are checked). Unknown keys are problems that name the nearest known one; keys in `reserved` (ended
 * by NULL, may be NULL) are left to the caller. Missing optional ones get their default.
 *
 * ${NAME} anywhere in a scalar, and a whole "os.environ/NAME", read the environment; $${ is a literal ${. An unset
 * variable is a problem. Values of variables and of SG_SECRET options are never shown.
 *
 * `where` (NULL: none) starts each message: "e2b" gives
 * "config.yaml:12:5: e2b: 'timeout' must be a duration such as 30s, not '5'"; a key within a list is 'rules[0].delay'.
 * All that config points to is in the arena. `map` may be NULL or absent: nothing was given; `at` is then where required
 * ones are reported. Returns the number of problems added.
 *
 * What is taken: BOOL true, false, yes, no, on, off; INT a whole decimal number within int64; neither in quotes, unless
 * it comes from the environment ("${PORT}" has to be quoted inside { }). STRINGS also takes a single scalar as a list of
 * one; MAP and LIST take nothing but maps and lists of maps. A required text must not be empty. min and max are for INT,
 * DURATION and SIZE. A used SG_DEPRECATED option is logged (event=option_deprecated). Defaults are put in first, so a
 * deprecated option without default may name the same member as its successor. */
size_t conf_fill(const struct sg_option *table, const struct conf_node *map,
                 const struct conf_node *at, const char *const *reserved, const char *where,
                 void *config, struct arena *, struct conf_problems *);

/* The same for one value that the caller found itself (where a key may hold one of several forms). `member` is the C
 * member of the option's type; option->offset is not used. */
size_t conf_fill_one(const struct sg_option *option, const struct conf_node *value,
                     const struct conf_node *at, const char *where, void *member, struct arena *,
                     struct conf_problems *);

/* One value by itself, for defaults and bounds (plugin/load.c) and the command line: text as it would stand in YAML
 * (STRINGS, MAP and LIST in flow form: "[a, b]", "{a: b}"), the environment left out. `ret` is the C member of the
 * option's type. Fails with SG_E_CONFIG. */
int conf_value(const struct sg_option *option, const char *text, void *ret, struct arena *,
               struct sg_error *err);

/* Writes an option as a member of a JSON object (with the comma before it): as it is given, NULL or absent: its default; durations and
 * sizes as they are written. For who operates the gateway: SG_SECRET values are "***" (of a map its names stay), of URLs user,
 * password and query are, and values of the environment are shown as the ${NAME} that is written. Overflow shows in the buffer. */
void conf_show(const struct sg_option *option, const struct conf_node *value, struct buf *out);
/* All options of a table (NULL: none) in a map; deprecated ones only where they are given. */
void conf_show_all(const struct sg_option *table, const struct conf_node *map, struct buf *out);

/* "30s" → 30000; "64KiB" → 65536. False if not one. Durations: ms s m h d; sizes: B KiB MiB GiB TiB, whole numbers. */
bool conf_duration(const char *text, int64_t *ret_ms);
bool conf_size(const char *text, uint64_t *ret_bytes);
/* The shortest exact way to write them, for messages and `describe`. */
const char *conf_duration_text(int64_t ms, struct arena *);
const char *conf_size_text(uint64_t bytes, struct arena *);

/* The candidate that a mistyped name most likely means, or NULL if none is near. */
const char *conf_nearest(const char *name, const char *const *candidates, size_t count);

/* The words for a type in messages: "a duration such as 30s". NULL if there is no such type. */
const char *conf_type_words(uint32_t option_type);

/* The size and alignment of the C member of a type, 0 if there is no such type. */
size_t conf_type_size(uint32_t option_type);
size_t conf_type_alignment(uint32_t option_type);

#endif
