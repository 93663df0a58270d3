/* What was used, summed by identity and model, for the metrics. Names of models are clients', so they are bounded: in number for each
 * identity and in all, in length, and to those that an upstream has answered well. What has no place of its own counts as
 * "other". */
#ifndef SANDGATE_GATEWAY_USAGE_TABLE_H
#define SANDGATE_GATEWAY_USAGE_TABLE_H

#include "base/buf.h"
#include "surface/surface.h"

#define USAGE_MODELS_MAX 50 /* of an identity */
#define USAGE_ROWS_MAX 1000 /* in all, and as many again for "other" of each identity, at most */
#define USAGE_NAME_BYTES_MAX 100 /* of a model */

struct usage_table;
struct usage_table *usage_table_new(void);
void usage_table_free(struct usage_table *); /* NULL is fine */

struct usage_entry {
    struct str identity; /* a key's name */
    struct str model;
    struct surface_usage tokens;
    int64_t container_us;
    unsigned runs, searches;
};
/* One request more. Any thread. */
void usage_table_add(struct usage_table *, const struct usage_entry *);
/* In the text form of Prometheus. Any thread. */
void usage_table_put(struct usage_table *, struct buf *out);

#endif
