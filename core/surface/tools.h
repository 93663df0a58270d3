/* The tools of a request, the same for every surface: which entries of the client's `tools` an interceptor's offer
 * answers, which offers are shown to the model, and the names of their functions. How an entry reads and how a
 * function's definition is written is each surface's own. */
#ifndef SANDGATE_SURFACE_TOOLS_H
#define SANDGATE_SURFACE_TOOLS_H

#include "surface/surface.h"

struct tool_offer {        /* what became of an offer in this request */
    bool shown;            /* its function is in `tools` */
    bool appended;         /* not among the client's tools, so that it is added to them */
    bool called;           /* a call of it stands */
    struct str name;       /* of its function */
    struct str definition; /* its entry of `tools`; the surface's to write */
    struct str options;    /* that the client gave with the first entry it answers; JSON as
                              sg->tool_options() says it; empty: none */
};

struct tool_entry { /* an element of the client's `tools` */
    struct json_value value;
    int offer;                /* the one that answers it; -1: the client's own, or another's */
    int also;                 /* a second one that answers it together with that; -1: none */
    bool first, also_first;   /* of its offer: the function takes its place, the others go */
    struct str function;      /* the name of a function of the client's own; else empty */
    struct str type;          /* of a hosted tool, as the client wrote it; else empty */
    struct str cache_control; /* raw; else empty */
    struct str options;       /* for the offer that answers it, as of tool_offer; else empty */
};

struct tool_set {
    const struct surface_offer *offers; /* borrowed */
    size_t offers_count;
    const struct json_member *member; /* the client's `tools`; NULL: none */
    struct tool_offer *shown;         /* one for each offer */
    struct tool_entry *entries;
    size_t entries_count;
    bool names_hosted;  /* an offer is shown */
    bool is_translated; /* the request goes to a server of another API */
};

/* Why more is asked of the request than the upstream might ask: "a request with hosted tools", or that it is translated. */
const char *tools_reason(const struct tool_set *);

/* Nothing is read or shown yet. */
void tools_init(struct tool_set *, const struct surface_input *, struct arena *);

struct tool_read { /* one entry, for the surface to say what it is */
    void *context;
    struct tool_entry *entry; /* the client's own as yet; `offer` and `also` say whose it is */
    const char *where;        /* "tools[2]" */
    const struct json_member *members;
    size_t count;
    struct arena *arena;
};

/* The elements of a list of tools. Fails on more than LIMIT_TOOLS: each is looked up among the others. */
int tools_count(struct json_value array, const char *param, size_t *ret, struct sg_error *err);

/* Lists the elements of the client's `tools`, and gives `read` each that is an object; an offer that answers some is shown
 * in the place of the first. No `tools`, or no array: there are none. Fails on more than LIMIT_TOOLS, and on duplicates
 * in an entry. */
int tools_read(struct tool_set *, int (*read)(const struct tool_read *, struct sg_error *),
               void *context, struct arena *, struct sg_error *err);

/* The offer for a hosted kind ("code_interpreter"); -1: none. */
int tools_offer_for(const struct tool_set *, struct str hosted);

/* What an offer's calls are known by from one request to the next, whatever their function is called: its hosted kind, or
 * its own name where it has none. */
struct str tools_kind_of(const struct surface_offer *);
/* The offer that is shown for such a kind now; -1: none. */
int tools_shown_of_kind(const struct tool_set *, struct str kind);

/* Shows offers that are made whether the client names them or not: those of the kinds listed (ended by NULL), unless the
 * kind is shown already, and those without a kind. */
void tools_mark_always(struct tool_set *, const char *const *kinds);

/* An offer that the client names elsewhere than in `tools` is added to them. */
void tools_append(struct tool_set *, size_t offer);

struct tool_form { /* a function as the surface writes it: open NAME …, schema SCHEMA close … } */
    const char *open, *schema, *close;
};
/* Gives each shown offer a name that neither the client nor another offer has (its own, or the first of NAME_2, NAME_3 …
 * that is free), and writes its definition. Fails where one is to be added to `tools` that are no array. */
int tools_define(struct tool_set *, const struct tool_form *, struct arena *, struct sg_error *err);

/* The raw cache_control of the first of its entries that has one; else empty. Of an entry that two offers answer it is
 * the second's, up to which all is cached then. */
struct str tools_cache_control(const struct tool_set *, size_t offer);

/* The offer whose function a model means by this name: white space around it and `functions.` in front of it are no part
 * of a name, unless the client has a function that is called just so. -1: none. */
int tools_offer_of(const struct tool_set *, struct str name);
/* Does the name of one of ours begin so, less white space and `functions.`? */
bool tools_begins_ours(const struct tool_set *, struct str start);
/* May a name that starts so mean one of ours, once it is whole? */
bool tools_may_be_ours(const struct tool_set *, struct str start);
/* Has the client a function of this name? */
bool tools_client_has(const struct tool_set *, struct str name);
/* Are there entries that are not ours? */
bool tools_has_others(const struct tool_set *);
/* Is an offer shown that the client did not name? */
bool tools_appends(const struct tool_set *);

#endif
