/* The hosted tools that the messages surface has a native shape for: all that is particular to one of them. */
#ifndef SANDGATE_SURFACE_MESSAGES_KINDS_H
#define SANDGATE_SURFACE_MESSAGES_KINDS_H

#include "surface/body_edit.h"
#include "surface/surface.h"

enum messages_family { /* which codes of errors clients know; results of the web name their caller */
                       MESSAGES_CODE,
                       MESSAGES_SEARCH, /* its results are counted in usage */
                       MESSAGES_FETCH
};

struct messages_kind {
    const char *hosted; /* of the offer */
    const char *tool;   /* the name of the client's entry in `tools` */
    const char *name;   /* of the call's block */
    const char *result; /* type of the result's block; its errors are `result`_error */
    enum messages_family family;
    bool has_error_message;
    void (*content_put)(const struct surface_result *, struct buf *out); /* as JSON; NULL: none
                                                                            but errors */
    void (*words_put)(struct json_value content, struct arena *, struct buf *); /* for the model */
};

/* Ended by one without a name. */
extern const struct messages_kind messages_kinds[];
const struct messages_kind *messages_kind_of(struct str hosted);   /* NULL: none */
const struct messages_kind *messages_kind_named(struct str block); /* NULL: none */

/* Which offers answer a hosted entry of this type, at most two; -1: none. Fails where the type can be of no version that
 * there is or will be. */
int messages_kind_offers(const struct tool_set *, struct str type, const char *where,
                         int ret_offers[2], struct sg_error *err);

/* Is a tool shown that runs code? */
bool messages_kinds_run_code(const struct tool_set *);
/* The kinds that are offered to clients that name none; ended by NULL. */
const char *const *messages_kinds_always(const struct tool_set *);

/* The block of a result. */
void messages_kind_result_put(const struct messages_kind *, const char *id,
                              const struct surface_result *, struct buf *out);
/* Is it a search that usage counts? One that failed is not. */
bool messages_kind_counts(const struct messages_kind *, const struct surface_result *);
/* The content of such a block in words, for the model. */
void messages_kind_words_put(const struct messages_kind *, struct json_value content,
                             struct arena *, struct buf *out);
/* The text of an object's member; empty: it has none. */
struct str messages_text_of(struct json_value object, const char *name, struct arena *);

/* ---- messages_web.c ---- */
void messages_hits_put(const struct surface_result *, struct buf *out);
void messages_hits_words_put(struct json_value content, struct arena *, struct buf *);
void messages_page_words_put(struct json_value content, struct arena *, struct buf *);
/* The hits of a block of ours, as a search emits them, each added to `ret` (of struct surface_output). */
void messages_hits_read(struct json_value content, struct arena *, struct buf *ret);

#endif
