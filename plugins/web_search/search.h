/* What the files of the web search share. */
#ifndef WEB_SEARCH_SEARCH_H
#define WEB_SEARCH_SEARCH_H

#include "tool.h"

#include <sandgate/plugin.h>

#include <stdint.h>

struct config {
    int64_t hits;     /* at the context size "medium" … */
    uint64_t snippet; /* … and the bytes shown of each snippet */
};

/* ---- query.c ---- */

#define QUERY_BYTES_MAX 1024
#define QUERY_COUNT_MAX 20

struct wish { /* what the model and the client want */
    struct sg_query query;
    size_t snippet_bytes;
    bool has_domains; /* the client restricts them */
};

/* From the model's arguments and the client's options. WISH_WRONG, or of a query WISH_TOO_LONG: the arguments are, and
 * `ret_problem` says how; a code of sg->fail() where the options cannot be read (then nothing may be searched). Texts are in
 * the call's memory. */
int wish_read(const struct config *, struct sg_call *, const char *json, size_t len,
              struct wish *ret, struct problem *ret_problem, struct sg_error *err);
#define WISH_WRONG (-1)
#define WISH_TOO_LONG (-2)

/* ---- fetch.c ---- */

extern const char fetch_description[], fetch_parameters[];
/* Says that pages cannot be fetched. */
int fetch_call(void *self, struct sg_call *, const char *json, size_t len, struct sg_error *err);

/* ---- shown.c ---- */

struct hit { /* as the core hands it over: JSON */
    const char *json;
    size_t len;
};

/* What the model is told of hits, of which there is at least one: numbered, one line for each thing, between two marks with
 * a number that stands nowhere between them, so that no page can end the part that is its own. The same hits give the same
 * text. NULL if there is no memory. */
const char *shown_text(struct sg_call *, const struct hit *hits, size_t count,
                       size_t snippet_bytes);

#endif
