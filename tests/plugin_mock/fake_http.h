/* The http() of the host under tests; what it answers is queued with call_reply() (fake_host.h). */
#ifndef TESTS_FAKE_HTTP_H
#define TESTS_FAKE_HTTP_H

#include "fake_host.h"

int fake_http(struct sg_call *, const struct sg_http_request *, struct sg_http_reply *,
              const struct sg_sink *, struct sg_error *);
void fake_http_clear(struct sg_call *);

#endif
