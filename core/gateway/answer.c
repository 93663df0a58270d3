/* Answers of our own: errors in the form of the surface that the client speaks, JSON, the head of a stream. */
#include "gateway/upstream.h"

#include "base/log.h"

#include <stdio.h>
#include <string.h>

/* Fields that every answer of ours carries. */
size_t answer_fields(struct request *r, struct http_answer_field *fields)
{
    size_t count = 0;
    fields[count++] = (struct http_answer_field){STR("x-request-id"), str_of(r->id)};
    fields[count++] = (struct http_answer_field){STR("request-id"), str_of(r->id)};
    if (r->origin.len > 0) {
        fields[count++] = (struct http_answer_field){STR("access-control-allow-origin"), r->origin};
        fields[count++] = (struct http_answer_field){STR("vary"), STR("origin")};
    }
    for (size_t i = 0; i < r->upstream_limits_count; i++) {
        fields[count++] = r->upstream_limits[i];
    }
    return count + limits_fields(r, fields + count);
}

int answer_json(struct request *r, int status, struct str body, struct sg_error *err)
{
    struct http_answer_field fields[ANSWER_FIELDS_MAX];
    size_t count = answer_fields(r, fields);
    fields[count++] = (struct http_answer_field){STR("content-type"), STR("application/json")};
    request_settle(r);
    return http_answer(r->exchange, status, fields, count, body, err);
}

/* A browser asks before it calls: only pages of a listed origin get this far with an Origin (auth.c). */
int answer_preflight(struct request *r, struct sg_error *err)
{
    struct http_answer_field fields[ANSWER_FIELDS_MAX];
    size_t count = answer_fields(r, fields);
    if (r->origin.len == 0) {
        error_set(err, SG_E_INVALID, "This path takes %s, not 'OPTIONS'.", route_methods(r));
        err->status = 405;
        return err->code;
    }
    fields[count++] = (struct http_answer_field){STR("access-control-allow-methods"),
                                                 STR("GET, POST, DELETE, OPTIONS")};
    fields[count++] = (struct http_answer_field){STR("access-control-max-age"), STR("600")};
    struct str wanted =
        http_head_get(http_request_head(r->exchange), "access-control-request-headers");
    if (wanted.len > 0) {
        fields[count++] = (struct http_answer_field){STR("access-control-allow-headers"), wanted};
    }
    return http_answer(r->exchange, 204, fields, count, (struct str){0}, err);
}

int answer_begin_stream(struct request *r, struct sg_error *err)
{
    struct http_answer_field fields[ANSWER_FIELDS_MAX];
    size_t count = answer_fields(r, fields);
    fields[count++] =
        (struct http_answer_field){STR("content-type"), STR("text/event-stream; charset=utf-8")};
    fields[count++] = (struct http_answer_field){STR("cache-control"), STR("no-cache")};
    fields[count++] = (struct http_answer_field){STR("x-accel-buffering"), STR("no")};
    r->is_streaming = true;
    return http_answer_begin(r->exchange, 200, fields, count, -1, err);
}

void answer_failure(struct request *r, const struct sg_error *failure)
{
    BUF_CLEANUP struct buf body = {0};
    struct sg_error err = {0}, shown = *failure;
    int status = error_status(failure);
    renamed_failed(r, &shown); /* words of an event of an answer */
    if (failure->code == SG_E_INTERNAL || failure->code == SG_E_CONFIG) {
        /* The cause stands in the log under the request's id; inner names are not for clients. */
        (void)snprintf(shown.message, sizeof shown.message,
                       "The gateway failed at this request; its operator finds the cause under %s.",
                       r->id);
    }
    const struct surface *surface = surface_named(r->route.surface_name);
    surface = surface == NULL && client_is_anthropics(r) ? &surface_messages : surface;
    (surface != NULL ? surface : &surface_chat)->error_body(&shown, r->id, &body);
    struct http_answer_field fields[ANSWER_FIELDS_MAX];
    size_t count = answer_fields(r, fields);
    fields[count++] = (struct http_answer_field){STR("content-type"), STR("application/json")};
    if (strcmp(failure->reason, "failed_after_run") == 0) {
        fields[count++] = (struct http_answer_field){STR("x-should-retry"), STR("false")};
    }
    if (status == 405) {
        fields[count++] = (struct http_answer_field){STR("allow"), str_of(route_methods(r))};
    }
    if (status == 503 && r->retry_after.len == 0) {
        r->retry_after = STR("1"); /* of our own: what is in progress now may be over then */
    }
    if (r->retry_after.len > 0) {
        fields[count++] = (struct http_answer_field){STR("retry-after"), r->retry_after};
    }
    fiber_set_deadline(fiber_self(), DEADLINE_NONE); /* it may be what ended the request */
    request_settle(r);
    (void)http_answer(r->exchange, status, fields, count, buf_str(&body),
                      &err); /* the client may have gone */
}
