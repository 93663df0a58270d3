/* Answers that were kept, and what the paths /v1/responses/{id}… say of them. Pure; for the gateway, which finds the record
 * by the response's id.
 *
 * A record is the JSON text that the surface gives to surface_store.keep():
 *
 *   {"v":1,
 *    "response":  the response object, with all results of calls,
 *    "input":     [its own input items, as the client sent them; references as what they stand for],
 *    "input_ids": [the id of each: its own, or one that we made],
 *    "previous":  "resp_sg…" or null,
 *    "calls":     {"ci_sg…": {"call_id","arguments","output"} …}   what the model said and was told, by item}
 *
 * It is kept under the response's id, the ids of its output items and those that we made for its input items. */
#ifndef SANDGATE_SURFACE_RESPONSES_STORED_H
#define SANDGATE_SURFACE_RESPONSES_STORED_H

#include "base/json.h"

#define RESPONSES_ID_MARK "resp_sg" /* of the responses that we keep */

struct responses_record {
    struct json_value response, output; /* output: of the response */
    struct json_value input, input_ids, previous, calls;
    struct str id; /* the response's, decoded */
};

/* False where the text is no record of ours. What is returned lies in `data` and the arena. */
bool responses_record_read(struct str data, struct arena *, struct responses_record *ret);

/* The values of `include[]` (or `include`) of a query, decoded. */
struct responses_include {
    const struct str *values;
    size_t count;
};

/* GET /v1/responses/{id}: the response object; results of calls only as `include` asks, as when it was made. */
void responses_stored_put(const struct responses_record *, const struct responses_include *,
                          struct buf *out);

/* GET /v1/responses/{id}?stream=true: its events again, those numbered above `starting_after` (-1: all). */
void responses_stored_replay(const struct responses_record *, const struct responses_include *,
                             int64_t starting_after, struct buf *out);

/* GET /v1/responses/{id}/input_items. All as the query has them, decoded; empty: not given. `limit` is 1 to 100 (20),
 * `order` "asc" or "desc" (the default), `after` an item's id. INVALID names the parameter that is wrong. */
struct responses_list_query {
    struct str limit, order, after;
};
int responses_stored_inputs(const struct responses_record *, const struct responses_list_query *,
                            struct buf *out, struct sg_error *err);

/* DELETE /v1/responses/{id}: the body of its 200. */
void responses_stored_deleted(struct str id, struct buf *out);
/* POST /v1/responses/{id}/cancel: no response of ours runs in the background. Returns SG_E_INVALID. */
int responses_stored_cancel(struct sg_error *err);
/* No record: 404. Returns SG_E_NOT_FOUND. */
int responses_stored_missing(struct str id, struct sg_error *err);

#endif
