/* Asking upstreams for their lists of models, by one request at a time, and keeping them (model_list.h). In mode passthrough a list
 * is what the client's own key may see, and is not kept. */
#include "gateway/upstream.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/limits.h"
#include "gateway/upstream_state.h"

#include <string.h>

enum { LIST_MS = 5000, LIST_BYTES_MAX = 4 * MIB, LOOK_AGAIN_MS = 10 };

static bool speaks_messages_alone(const struct upstream *upstream)
{
    return upstream->surfaces[0] != NULL && strcmp(upstream->surfaces[0], "messages") == 0 &&
           upstream->surfaces[1] == NULL;
}

static const struct fetch_field *fields_of(struct request *r, const struct upstream *upstream,
                                           size_t *ret_count)
{
    struct fetch_field *fields =
        arena_get(r->arena, (upstream->headers_count + 2) * sizeof *fields);
    size_t count = 0;
    const char *key = upstream_key(r, upstream);
    bool is_anthropics = speaks_messages_alone(upstream);
    if (key != NULL && is_anthropics) {
        fields[count++] = (struct fetch_field){STR("x-api-key"), str_of(key)};
    } else if (key != NULL) {
        fields[count++] = (struct fetch_field){STR("Authorization"),
                                               str_of(arena_printf(r->arena, "Bearer %s", key))};
    }
    if (is_anthropics && !upstream_sets_field(upstream, STR("anthropic-version"))) {
        fields[count++] = (struct fetch_field){STR("anthropic-version"), STR("2023-06-01")};
    }
    for (size_t i = 0; i < upstream->headers_count; i++) {
        fields[count++] = upstream->headers[i];
    }
    *ret_count = count;
    return fields;
}

/* Anthropic's has pages: the longest has a thousand. */
static const char *url_of(struct request *r, const struct upstream *upstream)
{
    bool no_path = strchr(strstr(upstream->base_url, "://") + 3, '/') == NULL;
    return arena_printf(r->arena, "%s%s/models%s", upstream->base_url, no_path ? "/v1" : "",
                        speaks_messages_alone(upstream) ? "?limit=1000" : "");
}

static int body_fetch(struct request *r, const struct upstream *upstream, struct buf *body,
                      struct sg_error *err)
{
    struct fetch_request request = {.url = url_of(r, upstream),
                                    .way = upstream->way,
                                    .connect_ms = LIST_MS,
                                    .first_byte_ms = LIST_MS,
                                    .silence_ms = LIST_MS,
                                    .deadline = deadline_in(LIST_MS)};
    request.fields = fields_of(r, upstream, &request.fields_count);
    struct fetch *fetch = NULL;
    struct fetch_reply reply;
    int rc = fetch_start(&request, r->arena, &fetch, err);
    rc = rc == 0 ? fetch_head(fetch, &reply, err) : rc;
    if (rc == 0 && reply.status != 200) {
        rc = error_set(err, SG_E_UNAVAILABLE, "status %d", reply.status);
    }
    struct str piece = {0};
    do {
        rc = rc == 0 ? fetch_read(fetch, &piece, err) : rc;
        if (rc == 0 && !buf_append_str(body, piece)) {
            rc = error_set(err, SG_E_LIMIT, "its list of models is too long");
        }
    } while (rc == 0 && piece.len > 0);
    fetch_end(fetch);
    return rc;
}

static int list_fetch(struct request *r, const struct upstream *upstream, struct model_list **ret,
                      struct sg_error *err)
{
    BUF_CLEANUP struct buf body = {.max = LIST_BYTES_MAX};
    int rc = body_fetch(r, upstream, &body, err);
    if (rc == 0) {
        *ret = model_list_read(buf_str(&body));
        rc = *ret != NULL ? 0 : error_set(err, SG_E_UNAVAILABLE, "it gave no list of models");
    }
    return rc;
}

/* Where it is asked for, and as whom. */
static void origin_of(struct request *r, const struct upstream *upstream, uint8_t ret[SHA256_BYTES])
{
    BUF_CLEANUP struct buf text = {0};
    size_t count;
    const struct fetch_field *fields = fields_of(r, upstream, &count);
    (void)buf_printf(&text, "%s%c%llu", url_of(r, upstream), '\0',
                     (unsigned long long)fetch_way_id(upstream->way)); /* small, all of it */
    for (size_t i = 0; i < count; i++) {
        (void)buf_append(&text, "", 1);
        (void)buf_append_str(&text, fields[i].name);
        (void)buf_append(&text, "", 1);
        (void)buf_append_str(&text, fields[i].value);
    }
    sha256(buf_str(&text), ret);
}

/* Until there is one, or it is this request's to ask. How long that is, its asking bounds. */
static int list_look(struct request *r, const struct upstream *upstream,
                     const uint8_t origin[SHA256_BYTES], enum model_list_verdict *ret_verdict,
                     struct model_list **ret, struct sg_error *err)
{
    int64_t until = deadline_min(deadline_in(2 * LIST_MS), r->deadline);
    while ((*ret_verdict = model_list_look(&upstream->state->models, origin,
                                           upstream->models_cache_ms, clock_ms(), ret)) ==
           MODEL_LIST_WAIT) {
        int rc = clock_ms() < until ? fiber_sleep(LOOK_AGAIN_MS) : SG_E_TIMEOUT;
        if (rc != 0) {
            return error_set(err, rc, "its list of models did not come in time");
        }
    }
    return 0;
}

int model_list_of(struct request *r, const struct upstream *upstream, struct model_list **ret,
                  struct sg_error *err)
{
    uint8_t origin[SHA256_BYTES];
    enum model_list_verdict verdict;
    struct model_list *kept = NULL, *fresh = NULL;
    *ret = NULL;
    if (upstream->passthrough || upstream->models_cache_ms == 0) {
        return list_fetch(r, upstream, ret, err);
    }
    origin_of(r, upstream, origin);
    int rc = list_look(r, upstream, origin, &verdict, &kept, err);
    if (rc == 0 && verdict == MODEL_LIST_FETCH) {
        rc = list_fetch(r, upstream, &fresh, err);
        if (fresh != NULL) {
            atomic_fetch_add(&fresh->refs, 1); /* this request's */
        }
        model_list_tell(&upstream->state->models, origin, fresh, rc != SG_E_CANCELLED, clock_ms());
    }
    if (fresh != NULL) {
        model_list_unref(TAKE(kept));
    }
    *ret = fresh != NULL ? fresh : kept; /* an old one is better than none */
    return rc;
}
