/* Token counts: read, added up for the log, and summed as JSON for the client. */
#ifndef SANDGATE_SURFACE_USAGE_H
#define SANDGATE_SURFACE_USAGE_H

#include "surface/surface.h"

struct usage_names { /* of a surface's members; NULL: it has none */
    const char *input, *output, *total;
    const char *cached, *input_details; /* beside the counts, or as `cached_tokens` in an object */
    const char *output_details;         /* an object with `reasoning_tokens` */
};
extern const struct usage_names usage_names_chat, usage_names_responses, usage_names_messages;

/* Into *ret what the object says; what it does not say stays as it was. */
void usage_read(struct json_value usage, const struct usage_names *, struct surface_usage *ret);
void usage_add(struct surface_usage *sum, const struct surface_usage *turn);
/* Writes the sum of two usage objects: integers that both have are added, also in nested objects; the rest as the later
 * one has it. */
void usage_sum(struct str earlier, struct str later, struct buf *out);
/* Writes the later usage object over the earlier one of the same turn: what the later one does not say, or says as null,
 * stays. */
void usage_overlay(struct str earlier, struct str later, struct buf *out);

#endif
