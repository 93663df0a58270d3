/* /v1/responses/{id}: answers that the gateway keeps, for the identity that got them. Another's, one that has expired and one
 * that never was are the same 404. */
#include "gateway/query.h"
#include "gateway/request.h"

#include "base/check.h"
#include "base/clock.h"
#include "session/records.h"
#include "surface/responses_stored.h"

#include <string.h>

enum { VALUES_MAX = 16 };

struct query { /* of the request's target */
    struct str include[VALUES_MAX];
    size_t include_count;
    struct responses_list_query list;
    bool stream;
    int64_t starting_after;
};

static void parameter_take(void *context, struct str name, struct str value)
{
    struct query *query = context;
    if (str_is(name, "include[]") || str_is(name, "include")) {
        if (query->include_count < VALUES_MAX) {
            query->include[query->include_count++] = value;
        }
    } else if (str_is(name, "limit")) {
        query->list.limit = value;
    } else if (str_is(name, "order")) {
        query->list.order = value;
    } else if (str_is(name, "after")) {
        query->list.after = value;
    } else if (str_is(name, "stream")) {
        query->stream = str_is(value, "true");
    } else if (str_is(name, "starting_after")) {
        query->starting_after = query_number(value);
    } /* others are ignored */
}

static struct query query_read(struct request *r)
{
    struct query query = {.starting_after = -1};
    query_walk(http_request_head(r->exchange)->query, r->arena, parameter_take, &query);
    return query;
}

static int answer_replay(struct request *r, const struct responses_record *record,
                         const struct query *query, struct sg_error *err)
{
    BUF_CLEANUP struct buf out = {0};
    const struct responses_include include = {query->include, query->include_count};
    responses_stored_replay(record, &include, query->starting_after, &out);
    int rc = answer_begin_stream(r, err);
    if (rc == 0) {
        rc = http_answer_write(r->exchange, buf_str(&out), err);
    }
    return rc == 0 ? http_answer_end(r->exchange, err) : rc;
}

static int answer_get(struct request *r, const struct responses_record *record,
                      struct sg_error *err)
{
    struct query query = query_read(r);
    if (query.stream) {
        return answer_replay(r, record, &query, err);
    }
    BUF_CLEANUP struct buf out = {0};
    const struct responses_include include = {query.include, query.include_count};
    responses_stored_put(record, &include, &out);
    return answer_json(r, 200, buf_str(&out), err);
}

static int answer_inputs(struct request *r, const struct responses_record *record,
                         struct sg_error *err)
{
    struct query query = query_read(r);
    BUF_CLEANUP struct buf out = {0};
    int rc = responses_stored_inputs(record, &query.list, &out, err);
    return rc == 0 ? answer_json(r, 200, buf_str(&out), err) : rc;
}

static int answer_delete(struct request *r, struct str id, struct sg_error *err)
{
    BUF_CLEANUP struct buf out = {0};
    (void)records_drop(r->gateway->responses, r->identity, id, clock_ms()); /* it was there */
    responses_stored_deleted(id, &out);
    return answer_json(r, 200, buf_str(&out), err);
}

static int answer_about(struct request *r, struct str id, struct str data, struct sg_error *err)
{
    struct responses_record record;
    bool is_there = responses_record_read(data, r->arena, &record) && str_eq(record.id, id);
    if (!is_there) { /* an item's id finds a record as well */
        return responses_stored_missing(id, err);
    }
    switch (r->route.kind) {
    case ROUTE_RESPONSE_INPUTS:
        return answer_inputs(r, &record, err);
    case ROUTE_RESPONSE_CANCEL:
        return responses_stored_cancel(err);
    default:
        return str_is(http_request_head(r->exchange)->method, "DELETE")
                   ? answer_delete(r, id, err)
                   : answer_get(r, &record, err);
    }
}

int responses_answer(struct request *r, struct sg_error *err)
{
    struct str id = str_of(r->route.object_id);
    const struct str *identities;
    size_t count = client_identities(r, &identities);
    struct record *record = NULL;
    for (size_t i = 0; i < count && record == NULL; i++) {
        r->identity = identities[i];
        record = records_find(r->gateway->responses, r->identity, id, clock_ms());
    }
    if (record == NULL) {
        return responses_stored_missing(id, err);
    }
    int rc = answer_about(r, id, record_data(record), err);
    record_unref(record);
    return rc;
}
