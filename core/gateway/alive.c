/* Keeping a streaming client's connection alive: proxies in between cut one that is silent for a minute. While the
 * request waits for a tool or for an upstream, a comment goes out whenever nothing else did for `loop.keep_alive`. */
#include "gateway/request.h"

#include "base/clock.h"

/* A stream may be begun for a comment once a turn was good: until then the status is the upstream's to choose. */
static int64_t next_word(const struct request *r)
{
    bool speaks = r->is_streaming || r->may_begin_stream;
    return speaks ? r->spoke_ms + r->gateway->config->loop.keep_alive_ms : DEADLINE_NONE;
}

int alive_comment(struct request *r, struct sg_error *err)
{
    if (clock_ms() < next_word(r)) {
        return 0;
    }
    int rc = r->is_streaming ? 0 : answer_begin_stream(r, err);
    if (rc == 0) {
        rc = http_answer_write(r->exchange, str_of(r->route.surface->keep_alive), err);
    }
    r->spoke_ms = clock_ms();
    return rc;
}

int alive_wait(struct request *r, alive_waiting *wait, void *context, struct sg_error *err)
{
    struct fiber *self = fiber_self();
    for (;;) {
        int rc = alive_comment(r, err);
        if (rc != 0) {
            return rc;
        }
        int64_t next = next_word(r);
        fiber_set_deadline(self, deadline_min(next, r->deadline));
        rc = wait(context, err);
        fiber_set_deadline(self, r->deadline);
        int64_t now = clock_ms();
        if (rc != SG_E_TIMEOUT || now < next || now >= r->deadline) {
            return rc;
        }
        *err = (struct sg_error){0}; /* it was only time for a comment */
        r->cause[0] = '\0';
    }
}
