/* What one call of a tool has shown: for the client the outputs, for the model the text, and how it ended. A tool may
 * emit anything: what is kept is bounded, and a status that is none says nothing. */
#ifndef SANDGATE_GATEWAY_COLLECTED_H
#define SANDGATE_GATEWAY_COLLECTED_H

#include "http/admission.h"
#include "plugin/call.h"
#include "surface/surface.h"

struct collected { /* all zero but for these three: */
    struct arena *arena;
    struct account *account;
    struct buf model; /* what the model is told, within its own bound; the owner's to clear */

    struct surface_output *outputs;
    size_t count, cap, bytes;
    size_t last_room; /* of the last one's text, where it is a log that may go on */
    size_t emitted;   /* bytes of all kinds, kept or not */
    bool failed, has_raised, has_code;
    enum surface_reason reason;
    int return_code;
};

void collected_take(struct collected *, const struct call_output *);
/* It has failed, whatever it said itself. */
void collected_fail(struct collected *, enum surface_reason);
/* Fills how it ended, and the outputs. */
void collected_result(const struct collected *, struct surface_result *ret);

#endif
