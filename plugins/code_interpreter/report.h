/* What the model is told of a run: everything in order, within a bound that holds however much comes, with head and
 * tail kept and a line between them saying how much was cut. */
#ifndef CODE_INTERPRETER_REPORT_H
#define CODE_INTERPRETER_REPORT_H

#include "json_text.h"

#include <sandgate/plugin.h>

struct report {
    struct sg_call *call;
    char *bytes;        /* [0, half): the head; [half, shown): a ring of the latest bytes */
    size_t shown, half; /* the bound, and where the ring begins */
    size_t ring_at;     /* where the ring's next byte goes, from `half` on */
    uint64_t total;     /* bytes of text so far, kept or not */
    uint64_t noted;     /* those of them at the beginning that are a note, and no output */
    char last;          /* the last of them */
    char partial[4];    /* the start of a character whose rest has not come */
    size_t partial_len;
    enum sg_out partial_kind;
    char *note; /* "[…]\n" in front of everything; NULL: none */
    size_t note_len;
    bool has_run; /* it gave output, or said that there was some, or that it began */
};

/* `shown`: the bound in bytes. False without memory. */
bool report_init(struct report *, struct sg_call *, size_t shown);

/* Takes what came. False: not of the form that the contract gives it (for RESULT, FILE and EXCEPTION), and replaced by
 * a line that says so. */
bool report_event(struct report *, enum sg_out, const char *data, size_t len);

/* Parts of a line that an interceptor says itself: words (UTF-8), a name from outside (a JSON string, cut, and without
 * what would break the line), a number of bytes. */
void report_puts(struct report *, const char *text);
void report_name(struct report *, struct json_value string);
void report_size(struct report *, uint64_t bytes);

/* Emits the whole as SG_OUT_MODEL. `label` ("[timed out]") and `message` stand at its end, beyond the bound; NULL:
 * none. Nothing at all is "[no output]". */
int report_emit(struct report *, const char *label, const char *message, struct sg_error *err);

#endif
