/* Counting the tokens of a request that names hosted tools: what is counted is what would go up first, with functions in
 * their place; servers refuse types that they do not know. Nothing is run. So it is where the request goes to a server of
 * another API, which counts it in its own. */
#include "gateway/upstream.h"

#include "base/limits.h"
#include "surface/reported.h"

#include <stdio.h>

enum { COUNT_BYTES_MAX = 64 * 1024 };

/* The first turn's body takes the place of the client's. */
static int body_convert(struct request *r, const struct surface_input *input, struct sg_error *err)
{
    const struct surface *surface = r->route.counted;
    const struct surface_turn_options options = {0};
    struct surface_exchange *talk = NULL;
    BUF_CLEANUP struct buf body = {0};
    int rc = surface->open(input, r->arena, &talk, err);
    rc = rc == 0 ? surface->turn_request(talk, &options, &body, err) : rc;
    surface->free(talk);
    return rc == 0 ? body_replace(r, &body, err) : rc;
}

/* ---- over another API ---- */

static int count_read(struct request *r, struct upstream_call *call, int64_t *ret,
                      struct sg_error *err)
{
    BUF_CLEANUP struct buf answer = {.max = COUNT_BYTES_MAX};
    struct json_text text = {0};
    struct str piece;
    int rc;
    while ((rc = upstream_call_read(call, &piece, err)) == 0 && piece.len > 0 &&
           buf_append_str(&answer, piece)) {
    }
    if (rc != 0) {
        return rc;
    }
    rc = json_scan(buf_str(&answer), r->arena, &text, err);
    const struct json_member *count =
        rc == 0 ? json_find_type(text.members, text.count, "input_tokens", JSON_NUMBER) : NULL;
    if (count == NULL || !json_int_of(count->value, ret) || *ret < 0) {
        (void)error_set(err, SG_E_INVALID, "it has no count of tokens");
        return not_understood(err);
    }
    return 0;
}

static int count_ask(struct request *r, struct upstream_call *call, int64_t *ret,
                     struct sg_error *err)
{
    int rc = upstream_call_begin(r, r->body.raw, true, call, err);
    rc = rc == 0 ? upstream_call_head(call, err) : rc;
    if (rc == 0 && (call->status < 200 || call->status > 299)) {
        rc = upstream_call_failed(call, err);
    }
    return rc == 0 ? count_read(r, call, ret, err) : rc;
}

/* The one API that counts and is no target is Responses. */
static int count_translated(struct request *r, struct sg_error *err)
{
    struct upstream_call call;
    int64_t count = 0;
    int rc = count_ask(r, &call, &count, err);
    if (rc != 0) {
        (void)fallback_begin(&call, err); /* request.c goes on with it */
    }
    upstream_call_end(&call);
    return rc != 0 ? rc
                   : answer_json(r, 200,
                                 str_of(arena_printf(r->arena,
                                                     "{\"object\":\"response.input_tokens\","
                                                     "\"input_tokens\":%lld}",
                                                     (long long)count)),
                                 err);
}

int count_serve(struct request *r, struct sg_error *err)
{
    bool intercepted = false, is_translated = r->spoken != NULL;
    tools_offer(r);
    memory_attach(r);
    container_source_attach(r);
    struct surface_input input = {.body = &r->body,
                                  .offers = r->offers,
                                  .offers_count = r->offers_count,
                                  .memory = is_translated ? &r->memory : NULL,
                                  .store = is_translated ? &r->store : NULL,
                                  .container = &r->container_source,
                                  .answer_id = r->id + 4,
                                  .is_translated = is_translated};
    int rc = r->route.counted->looks_for(&input, r->arena, &intercepted, err);
    intercepted = intercepted || is_translated;
    rc = rc == 0 ? body_cut_control_keys(r, intercepted, err) : rc;
    rc = rc == 0 && intercepted ? body_convert(r, &input, err) : rc;
    if (rc == 0 && is_translated) {
        return count_translated(r, err);
    }
    rc = rc == 0 ? stored_check(r, &r->body, err) : rc;
    return rc == 0 ? relay_serve(r, err) : rc;
}
