/* A request of one API to a server of another, and its answer back. Pure: JSON in, JSON or events out.
 *
 * Between two APIs stands one form (conversation.h, said.h): each API has a reader and a writer of requests, and a hearer and
 * a voice of answers, and none knows another. A turn of a surface's exchange goes through here on its way up, and its
 * answer on its way back, so that hosted tools, stored answers and what clients see are the surface's work as ever. */
#ifndef SANDGATE_TRANSLATE_TRANSLATE_H
#define SANDGATE_TRANSLATE_TRANSLATE_H

#include "base/buf.h"
#include "base/error.h"

struct translation;

struct translation_options {
    const char *from, *to; /* names of surfaces: the client's, the upstream's */
    const char *id;        /* text for ids that we mint, unique to the answer */
    bool counts; /* it asks for the count of its tokens: what bears on no tokens is left out */
    const char *const *drop; /* fields of the client's that are let go, ended by NULL; NULL: none */
};

/* Can a request of the surface `from` be carried to one of `to`? */
bool translation_exists(const char *from, const char *to);

/* One turn's. Freed by translation_free(), NULL is fine. */
struct translation *translation_new(const struct translation_options *);
void translation_free(struct translation *);

/* The request in the other form. INVALID, with the field as param, where something of it cannot be carried. */
int translation_request(struct translation *, struct str body, struct buf *out,
                        struct sg_error *err);

/* An error that the upstream reports names its own fields: `param` becomes the client's field for it, or is left out. */
void translation_error(const struct translation *, struct sg_error *err);

/* The upstream's 2xx answer begins; `is_stream` by its content type. */
void translation_answer_begin(struct translation *, bool is_stream);
/* Its bytes, in any pieces; what can be said of them is appended. A stream stays one, a whole answer comes at the end. */
int translation_answer_feed(struct translation *, struct str bytes, struct buf *out,
                            struct sg_error *err);
/* Its end: UNAVAILABLE where it came before the answer was whole. */
int translation_answer_end(struct translation *, struct buf *out, struct sg_error *err);
/* Bytes that are kept of the answer for its end. */
size_t translation_kept(const struct translation *);

/* The table of all fields of a request, and what becomes of each: for `sandgate describe translation`. */
void translation_describe(struct buf *out);

#endif
