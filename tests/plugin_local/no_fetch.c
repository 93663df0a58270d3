/* The core's HTTP client is not needed here: a plugin that reached for it would end the test. */
#include "base/check.h"
#include "http/fetch.h"

int fetch_start(const struct fetch_request *request, struct arena *arena, struct fetch **ret,
                struct sg_error *err)
{
    (void)request, (void)arena, (void)ret;
    return error_set(err, SG_E_INTERNAL, "no HTTP here");
}

int fetch_head(struct fetch *fetch, struct fetch_reply *ret, struct sg_error *err)
{
    (void)fetch, (void)ret;
    return error_set(err, SG_E_INTERNAL, "no HTTP here");
}

int fetch_read(struct fetch *fetch, struct str *ret_data, struct sg_error *err)
{
    (void)fetch, (void)ret_data;
    return error_set(err, SG_E_INTERNAL, "no HTTP here");
}

void fetch_end(struct fetch *fetch)
{
    CHECK(fetch == NULL);
}
