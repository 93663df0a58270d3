/* The client's key on its way to an upstream, in mode passthrough (passthrough.h), and what depends on whether an upstream has
 * accepted it. In the other modes the operator's key goes up, and the client is known. */
#include "gateway/passthrough.h"
#include "gateway/request.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/identity.h"

#include <stdio.h>

static bool is_passthrough(const struct request *r)
{
    return r->gateway->config->auth.mode == AUTH_PASSTHROUGH;
}

bool upstream_is_open(const struct request *r, const struct upstream *upstream)
{
    return !is_passthrough(r) || upstream->passthrough;
}

const char *upstream_key(struct request *r, const struct upstream *upstream)
{
    return upstream->passthrough ? arena_copy(r->arena, r->client_key) : upstream->api_key;
}

static struct str identity_at(struct request *r, struct str upstream)
{
    char text[PASSTHROUGH_IDENTITY_BYTES];
    passthrough_identity(r->gateway->passthrough, r->client_key, upstream, text);
    return str_of(arena_printf(r->arena, "%s", text));
}

static bool is_one_of_several(const struct settings *settings)
{
    size_t count = 0;
    for (size_t i = 0; i < settings->upstreams_count && count < 2; i++) {
        count += settings->upstreams[i].passthrough;
    }
    return count > 1;
}

bool upstream_may_see_key(struct request *r, const struct upstream *upstream)
{
    if (!is_passthrough(r) || !upstream->passthrough || !is_one_of_several(r->settings)) {
        return true;
    }
    struct str identity = identity_at(r, str_of(upstream->name));
    return passthrough_believes(r->gateway->passthrough, identity, clock_ms());
}

/* Anthropic's servers want keys in a field of their own, and tokens of other kinds as all others do: the client knows. */
bool upstream_key_is_bare(const struct request *r)
{
    if (r->upstream->passthrough && r->spoken == NULL) {
        return r->client_key_is_bare;
    }
    const char *spoken = r->spoken != NULL ? r->spoken->name : r->route.surface_name;
    return spoken != NULL && strcmp(spoken, "messages") == 0;
}

/* The account of a key that no upstream has accepted lately is that of all such keys. */
struct str client_account(struct request *r)
{
    if (!is_passthrough(r)) {
        return identity_key(r->identity);
    }
    struct str anywhere = identity_at(r, (struct str){0});
    return passthrough_believes(r->gateway->passthrough, anywhere, clock_ms()) ? anywhere
                                                                               : STR("unknown");
}

void client_is_at(struct request *r, const struct upstream *upstream)
{
    if (is_passthrough(r)) {
        r->identity = identity_at(r, str_of(upstream->name));
    }
}

/* What a path of `relay_paths` answers may be for everybody. */
void client_note(struct request *r, int status)
{
    bool is_proof = r->route.kind != ROUTE_RELAY_PATH;
    if (is_passthrough(r) && is_proof && status >= 200 && status <= 299) {
        int64_t now_ms = clock_ms();
        passthrough_accept(r->gateway->passthrough, r->identity, now_ms);
        passthrough_accept(r->gateway->passthrough, identity_at(r, (struct str){0}), now_ms);
    }
}

bool client_is_believed(const struct request *r)
{
    return !is_passthrough(r) ||
           passthrough_believes(r->gateway->passthrough, r->identity, clock_ms());
}

size_t client_identities(struct request *r, const struct str **ret)
{
    const struct settings *settings = r->settings;
    struct str *found = arena_get(r->arena, (settings->upstreams_count + 1) * sizeof *found);
    size_t count = 0;
    *ret = found;
    if (!is_passthrough(r)) {
        found[0] = r->identity;
        return 1;
    }
    for (size_t i = 0; i < settings->upstreams_count; i++) {
        if (settings->upstreams[i].passthrough) {
            client_is_at(r, &settings->upstreams[i]);
            found[count] = r->identity;
            count += client_is_believed(r);
        }
    }
    return count;
}

int client_unknown(struct sg_error *err)
{
    int rc = error_set(err, SG_E_NOT_FOUND,
                       "The model server has not accepted this key lately: make a request to a "
                       "model with it first.");
    (void)snprintf(err->reason, sizeof err->reason, "key_not_accepted_yet"); /* fits */
    return rc;
}
