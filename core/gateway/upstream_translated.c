/* Upstreams that speak another API than the client: each turn goes up in theirs, and its answer comes back in the client's,
 * as if they had spoken that. */
#include "gateway/upstream.h"

#include "base/check.h"
#include "base/limits.h"
#include "surface/reported.h"
#include "translate/translate.h"

int translated_begin(struct upstream_call *call, struct str *body, struct sg_error *err)
{
    struct request *r = call->request;
    struct translation_options options = {.from = r->route.surface_name,
                                          .to = r->spoken->name,
                                          .id = arena_printf(r->arena, "%s%u", r->id + 4, r->turns),
                                          .drop = r->upstream->drop_params,
                                          .counts = r->route.counted != NULL};
    call->translation = translation_new(&options);
    call->translated.max = LIMIT_BODY_BYTES;
    call->answer.max = 4 * LIMIT_BODY_BYTES; /* responses say a text four times at its end */
    int rc = translation_request(call->translation, *body, &call->translated, err);
    rc = rc == 0 ? account_take(&r->account, call->translated.len, err) : rc;
    if (rc == 0) {
        call->translated_bytes = call->translated.len;
        *body = buf_str(&call->translated);
    }
    return rc;
}

/* Refusals are read as they are: all APIs' errors are understood. */
void translated_head(struct upstream_call *call)
{
    bool is_count = call->request->route.counted != NULL; /* count.c reads it */
    if (call->translation == NULL || is_count || call->status < 200 || call->status > 299) {
        return;
    }
    translation_answer_begin(call->translation, call->is_stream);
    call->answer_begun = true;
}

/* What is kept for the answer's end is on the request's account, and the largest piece of it: the last says all again. */
static int kept_hold(struct upstream_call *call, struct sg_error *err)
{
    size_t kept = translation_kept(call->translation) + call->answer.len;
    if (kept <= call->kept_bytes) {
        return 0;
    }
    int rc = account_take(&call->request->account, kept - call->kept_bytes, err);
    call->kept_bytes = rc == 0 ? kept : call->kept_bytes;
    return rc;
}

static int piece_take(struct upstream_call *call, struct str piece, struct buf *out,
                      struct sg_error *err)
{
    call->answer_ended = piece.len == 0;
    int rc = piece.len > 0 ? translation_answer_feed(call->translation, piece, out, err)
                           : translation_answer_end(call->translation, out, err);
    if (rc != 0) {
        translated_failed(call, err);
    }
    return rc;
}

/* What was said before a failure is the client's first: only what it has seen nothing of is tried again. */
static int failure_keep(struct upstream_call *call, int rc, struct sg_error *err)
{
    if (rc == 0 || call->answer.len == 0) {
        return rc;
    }
    call->failed = *err;
    *err = (struct sg_error){0};
    return 0;
}

int translated_read(struct upstream_call *call,
                    int (*read)(struct upstream_call *, struct str *, struct sg_error *),
                    struct str *ret_piece, struct sg_error *err)
{
    struct buf *out = &call->answer;
    buf_reset(out);
    *ret_piece = (struct str){0};
    if (call->failed.code != SG_OK) {
        *err = call->failed;
        return err->code;
    }
    while (!call->answer_ended && out->len == 0) {
        struct str piece;
        int rc = read(call, &piece, err);
        rc = rc == 0 ? piece_take(call, piece, out, err) : rc;
        rc = rc == 0 ? kept_hold(call, err) : rc;
        rc = failure_keep(call, rc, err);
        if (rc != 0) {
            return rc;
        }
    }
    if (out->overflow) {
        return answer_too_large(err);
    }
    *ret_piece = buf_str(out);
    return 0;
}

void translated_failed(const struct upstream_call *call, struct sg_error *err)
{
    if (call->translation != NULL) {
        translation_error(call->translation, err);
    }
}

void translated_end(struct upstream_call *call)
{
    if (call->translation != NULL) {
        account_give(&call->request->account, call->translated_bytes + call->kept_bytes);
        translation_free(TAKE(call->translation));
        buf_clear(&call->translated);
        buf_clear(&call->answer);
    }
}
