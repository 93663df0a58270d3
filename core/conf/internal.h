/* What the files of core/conf share among themselves. */
#ifndef SANDGATE_CONF_INTERNAL_H
#define SANDGATE_CONF_INTERNAL_H

#include "conf/conf.h"

/* True once no more problem is printed: then costly words need not be looked for. */
bool problems_are_full(const struct conf_problems *);

/* 'text' in quotes, cut where it is long. */
const char *text_shown(const char *text, struct arena *);

/* What may be shown of a key: nothing behind CONF_NAME_ENDS. */
const char *key_part(const char *key, struct arena *);
/* 'prefix.key' likewise, with the advice for that slip. */
const char *key_shown(const char *prefix, const char *key, struct arena *);

/* What reading the environment into a scalar came to. */
struct expansion {
    const char *text; /* NULL: refused, and `problem` says why */
    bool is_expanded; /* something came from the environment */
    const char *problem;
};
struct expansion text_expand(const char *written, struct arena *);

/* A node from a text in YAML's form whose root may be anything; for conf_value(). NULL with a problem added. */
struct conf_node *node_parse(struct str text, struct arena *, struct conf_problems *);

/* What one run of conf_fill() carries along. */
struct filler {
    const char *where;          /* NULL: none */
    const char *path;           /* "rules[0]." in front of keys, or "" */
    bool literal;               /* the environment is left out */
    const struct conf_node *at; /* where things are reported that stand nowhere */
    struct arena *arena;
    struct conf_problems *problems;
};

/* "where: ", or nothing. */
const char *filler_where(const struct filler *);
/* "where: 'path.name' what". */
void filler_report(const struct filler *, const struct conf_node *at, const struct sg_option *,
                   const char *what);
/* "a list", "a map", "text". */
const char *node_words(const struct conf_node *);
/* "a, b, c". */
const char *names_joined(const char *const *names, size_t count, struct arena *);

struct scalar {
    const struct conf_node *node;
    const char *text; /* after expansion */
    bool is_expanded;
};

/* A scalar's text with the environment put in. False if it is none (reported); `suffix` names an item ("[2]", ".key"). */
bool scalar_get(const struct filler *, const struct sg_option *, const struct conf_node *,
                const char *suffix, struct scalar *ret);

/* Fills the C member of an option of a scalar type. */
void scalar_fill(const struct filler *, const struct sg_option *, const struct conf_node *,
                 void *member);

/* The parsers of single values; false if the text is not one. */
bool value_is_bool(const char *text, bool *ret);
bool value_is_int(const char *text, int64_t *ret);
/* "; write 512MiB" for a duration or size whose unit is none of ours, or "". */
const char *amount_advice(uint32_t option_type, const char *text, struct arena *);

#endif
