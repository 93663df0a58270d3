/* Errors that upstreams report in their answers, and error bodies in the OpenAI form. */
#ifndef SANDGATE_SURFACE_REPORTED_H
#define SANDGATE_SURFACE_REPORTED_H

#include "surface/surface.h"

/* Does the answer, or event, report an error? {"error":{…}}, {"error":"text"}, {"object":"error","message":…}, or any
 * with a message where the event is called `error`. SG_OK: it does not. */
int reported_error(const struct json_text *, bool is_error_event, struct arena *,
                   struct sg_error *err);
/* The members of an error object: message, code, status, param, type. Returns its code, never SG_OK. */
int reported_members(const struct json_member *, size_t count, struct arena *,
                     struct sg_error *err);

/* The error is of this HTTP status, and of the code that goes with it, which is returned. */
int reported_as(int status, struct sg_error *err);

/* Whatever is wrong with an upstream's answer is not the client's fault: as UNAVAILABLE, with the cause. */
int not_understood(struct sg_error *err);
int answer_too_large(struct sg_error *err);

/* {"error":{"message","type","param","code"}} */
void openai_error_body(const struct sg_error *, const char *request_id, struct buf *out);

#endif
