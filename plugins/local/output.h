/* What one run has produced, on its way to the core: decoded, put together, kept within limits, and handed on. */
#ifndef LOCAL_OUTPUT_H
#define LOCAL_OUTPUT_H

#include "frames.h"
#include "text.h"

#include <sandgate/plugin.h>

/* Where bytes come from; each has its own decoder, and the first and third are standard output. */
enum output_source {
    SOURCE_CONTROL_OUT,
    SOURCE_CONTROL_ERR,
    SOURCE_PIPE_OUT,
    SOURCE_PIPE_ERR,
    SOURCE_COUNT
};

#define OUTPUT_FORMS_MAX 16 /* of one shown value */

struct output {
    const struct sg_sink *sink;
    uint64_t shown_max;   /* bytes of text handed on */
    uint64_t results_max; /* bytes of shown values handed on */

    struct decoder decoders[SOURCE_COUNT];
    struct text pending; /* text not yet handed on, all of one stream */
    enum sg_out pending_kind;
    int64_t pending_since_ms;
    uint64_t total, shown; /* bytes of text in all, and handed on */

    struct text value;       /* the JSON of a value being put together: {"text/plain":"… */
    size_t form_start;       /* in `value`: where the form being read began */
    bool in_form, skip_form; /* reading one; it is of no use and passes by */
    struct decoder form_decoder;
    char forms[OUTPUT_FORMS_MAX][FRAME_MIME_MAX + 1];
    size_t forms_count;
    uint64_t results_bytes;
    unsigned left_out; /* values and forms that were too large or not what they said */

    struct text exception[EXCEPTION_FIELDS];
    bool exception_given;
    struct text scratch;
};

void output_init(struct output *, const struct sg_sink *, uint64_t shown_max, uint64_t results_max);
void output_clear(struct output *);

/* All return 0 or what the sink returned. */
int output_bytes(struct output *, enum output_source, const char *data, size_t len, int64_t now_ms,
                 struct sg_error *err);
int output_frame(struct output *, const struct frame *, int64_t now_ms, struct sg_error *err);
int output_flush(struct output *, struct sg_error *err);

/* At the end of a run: what is left, and a line for what was cut. */
int output_end(struct output *, struct sg_error *err);

#endif
