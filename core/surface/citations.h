/* Where a model's text names pages that its searches found. A text is read in any pieces; what is found is said as soon as
 * its last byte has come, so that a stream can carry it.
 *
 * A page is named by its URL, as found or without the slash at its end, a fragment behind it left aside, where what stands
 * around it is punctuation; or by the number under which the model was shown it, "[2]", while only one search of the
 * request found anything (numbers begin anew with each). The span is what a reader sees as the link: a Markdown link as a
 * whole, with the parentheses around it where there is nothing else in them; else the URL alone, or the brackets with the
 * number. */
#ifndef SANDGATE_SURFACE_CITATIONS_H
#define SANDGATE_SURFACE_CITATIONS_H

#include "base/arena.h"
#include "base/buf.h"
#include "surface/surface.h"

struct cited_page {
    struct str url, title, snippet, date; /* decoded; the date empty where none is known */
};

struct cited_pages { /* of a request; zeroed at first */
    struct cited_page *pages;
    size_t count, cap;
    size_t searches; /* that found any */
    size_t
        compared; /* bytes of URLs and text, by all readers: what an answer may cost is bounded */
};

enum { CITED_PAGES_MAX = 1000, CITATIONS_PER_TEXT_MAX = 500 };

/* Adds the hits of a search's result, in the order in which they are numbered; texts are copied into the arena. Beyond
 * CITED_PAGES_MAX they are left out. */
void cited_pages_add(struct cited_pages *, const struct surface_result *, struct arena *);

struct citation {
    size_t start, end; /* in the text: code points, the end exclusive */
    const struct cited_page *page;
};

/* One text: zeroed at first, with `pages` set; citation_reader_clear() at its end. */
struct citation_reader {
    struct cited_pages *pages; /* borrowed; may grow while the text is read */
    size_t at;                 /* code points that are behind us */
    struct buf held;           /* that may yet be part of a citation; bounded */
    char before;               /* the last byte that is behind us */
    size_t count;              /* citations found … */
    size_t tried;              /* … and places looked at */
};

/* Reads more of the text; `ended`: it ends with this. Appends what is found to `ret` (elements of struct citation, in the
 * order of the text, none overlapping). Invalid UTF-8 counts each bad byte as one. */
void citation_reader_feed(struct citation_reader *, struct str more, bool ended, struct buf *ret);
void citation_reader_clear(struct citation_reader *);

#endif
