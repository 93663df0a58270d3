/* Counting the tokens of a request that names hosted tools: what is counted is what would go up first, with functions in
 * their place; servers refuse types that they do not know. Nothing is run. */
#include "gateway/request.h"

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

int count_serve(struct request *r, struct sg_error *err)
{
    bool intercepted = false;
    tools_offer(r);
    container_source_attach(r);
    struct surface_input input = {.body = &r->body,
                                  .offers = r->offers,
                                  .offers_count = r->offers_count,
                                  .container = &r->container_source,
                                  .answer_id = r->id + 4};
    int rc = r->route.counted->looks_for(&input, r->arena, &intercepted, err);
    rc = rc == 0 ? body_cut_control_keys(r, intercepted, err) : rc;
    rc = rc == 0 && intercepted ? body_convert(r, &input, err) : rc;
    rc = rc == 0 ? stored_check(r, &r->body, err) : rc;
    return rc == 0 ? relay_serve(r, err) : rc;
}
