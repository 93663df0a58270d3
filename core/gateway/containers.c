/* The request's container as surfaces and clients see it: its id, told before it is made; one that the client names; how
 * long it can be named. */
#include "gateway/request.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/limits.h"

#include <stdio.h>

static struct request *request_of(void *context)
{
    struct request *r = context;
    CHECK_MAGIC(r, REQUEST_MAGIC);
    return r;
}

/* The sandbox whose container the request would get: of the first tool that has one. */
static const struct sandbox *sandbox_of(const struct request *r)
{
    for (size_t i = 0; i < r->offers_count; i++) {
        if (r->tools[i].interceptor->sandbox != NULL) {
            return r->tools[i].interceptor->sandbox;
        }
    }
    return NULL;
}

static const char *source_id(void *context)
{
    struct request *r = request_of(context);
    if (r->lease != NULL) {
        return lease_container_id(r->lease);
    }
    const struct sandbox *sandbox = sandbox_of(r);
    if (r->container_id[0] == '\0' && sandbox != NULL) {
        registry_reserve_id(r->gateway->registry, r->identity, r->session_id, sandbox,
                            r->container_id, &r->container_is_new);
    }
    return r->container_id;
}

static int64_t source_expires(void *context)
{
    const struct request *r = request_of(context);
    if (r->lease == NULL) {
        return 0;
    }
    int64_t stays_ms = lease_stays_ms(r->lease);
    return stays_ms == 0 ? 0 : (clock_unix_ms() + stays_ms) / 1000;
}

void container_source_attach(struct request *r)
{
    r->container_source = (struct surface_container_source){source_id, source_expires, r};
}

/* It can be named by the next request for as long as its sandbox says. */
static void lease_begun(struct request *r)
{
    r->leased_us = clock_us();
    if (r->route.surface->container != NULL) {
        lease_keep(r->lease, lease_sandbox(r->lease)->keep_ms);
    }
}

bool container_was_used(const struct request *r)
{
    return r->lease != NULL ? !lease_is_unused(r->lease) : r->has_used_container;
}

void container_leave(struct request *r)
{
    if (r->lease != NULL) {
        r->container_us = clock_us() - r->leased_us;
        r->has_used_container = container_was_used(r);
        lease_release(TAKE(r->lease));
    }
}

int container_take(struct request *r, const struct sandbox *sandbox, struct sg_error *err)
{
    if (r->turns == 0 && !client_is_believed(r)) { /* later it was, when that turn began */
        return client_unknown(err);
    }
    struct acquire want = {.identity = r->identity,
                           .per_identity = r->key != NULL ? r->key->per_identity : 0,
                           .max_containers = r->key != NULL ? r->key->max_containers : 0,
                           .session_id = r->session_id,
                           .sandbox = sandbox,
                           .new_id = r->container_is_new ? r->container_id : NULL,
                           .request_id = r->id,
                           .deadline = r->deadline};
    int rc = registry_acquire(r->gateway->registry, &want, &r->lease, err);
    if (rc == 0) {
        lease_begun(r);
        r->may_have_lost =
            past_told_in_vain(r) || (past_may_have_run(r) && lease_is_unused(r->lease));
    }
    return rc;
}

/* The identity's container of that id; `is_parked`: only if nobody has it. */
static int take_by_id(struct request *r, struct str id, bool is_parked, struct sg_error *err)
{
    struct acquire want = {.identity = r->identity,
                           .container_id = id,
                           .is_parked = is_parked,
                           .sandbox =
                               &r->gateway->config->sandboxes[0], /* the container's counts */
                           .request_id = r->id,
                           .deadline = r->deadline};
    int rc = client_is_believed(r) ? registry_acquire(r->gateway->registry, &want, &r->lease, err)
                                   : client_unknown(err);
    if (rc == 0) {
        r->has_resumed = true;
        lease_begun(r);
    }
    return rc;
}

bool container_resume(struct request *r, struct str id)
{
    struct sg_error err = {0};
    if (id.len == 0 || r->lease != NULL || r->session_id.len > 0) { /* it has one of its own */
        return false;
    }
    r->has_lost_container = take_by_id(r, id, true, &err) != 0;
    return !r->has_lost_container;
}

int container_take_named(struct request *r, struct sg_error *err)
{
    const struct surface *surface = r->route.surface;
    struct surface_container named =
        surface->container == NULL ? (struct surface_container){0} : surface->container(r->talk);
    bool wanted = named.id.len > 0 && sandbox_of(r) != NULL && r->lease == NULL &&
                  (named.is_demanded || r->session_id.len == 0);
    struct sg_error failure = {0};
    if (!wanted) {
        return 0;
    }
    if (take_by_id(r, named.id, false, &failure) == 0) {
        r->session_id = (struct str){0}; /* the named one wins */
        return 0;
    }
    if (!named.is_demanded) {
        r->has_lost_container = true; /* the model's history shows what is gone */
        return 0;
    }
    int rc = error_set_param(err, SG_E_NOT_FOUND, "container",
                             "Container with id '%.*s' not found. It may have expired.",
                             (int)(named.given.len < 64 ? named.given.len : 64), named.given.data);
    (void)snprintf(err->reason, sizeof err->reason, "container_not_found"); /* fits */
    return rc;
}

void container_await_client(struct request *r)
{
    if (r->lease != NULL && r->route.surface->container != NULL) {
        lease_park(r->lease, LIMIT_PARK_MS);
    }
}
