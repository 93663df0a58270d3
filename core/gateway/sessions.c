/* /v1/sessions: what an identity may know of its own sessions, and ending one. Others' sessions and those that never
 * were are the same 404. */
#include "gateway/request.h"

#include "base/check.h"
#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void put_int(struct buf *out, const char *key, int64_t value)
{
    (void)buf_printf(out, ",\"%s\":%" PRId64, key, value); /* overflow shows in the buffer */
}

static void put_text(struct buf *out, const char *key, const char *value)
{
    (void)buf_printf(out, ",\"%s\":", key);
    (void)buf_put_json(out, str_of(value));
}

static void put_session(struct buf *out, const struct container_info *info, int64_t idle_timeout_ms)
{
    bool is_used = info->leases > 0;
    int64_t left_ms = info->idle_left_ms > 0 ? info->idle_left_ms : 0;
    int64_t used_ms = clock_unix_ms() - (is_used ? 0 : idle_timeout_ms - left_ms);
    (void)buf_puts(out, "{\"object\":\"session\"");
    put_text(out, "id", info->session_id);
    put_text(out, "container_id", info->container_id);
    put_text(out, "sandbox", info->sandbox);
    put_text(out, "state", is_used ? "in_use" : "idle");
    put_int(out, "created_at", info->created_unix_s);
    put_int(out, "last_used_at", used_ms / 1000);
    if (is_used) {
        (void)buf_puts(out, ",\"idle_seconds_left\":null}");
    } else {
        put_int(out, "idle_seconds_left", (left_ms + 999) / 1000);
        (void)buf_puts(out, "}");
    }
}

/* Those of an identity; `before` stands before the next. */
static const char *put_sessions(struct request *r, struct str identity, const char *before,
                                struct buf *out)
{
    struct container_info *infos = NULL;
    size_t count = registry_list(r->gateway->registry, identity, &infos);
    for (size_t i = 0; i < count; i++) {
        if (infos[i].is_session) { /* the others go with their requests */
            (void)buf_puts(out, before);
            put_session(out, &infos[i], r->gateway->config->sessions.idle_timeout_ms);
            before = ",";
        }
    }
    free(infos);
    return before;
}

static int answer_list(struct request *r, struct sg_error *err)
{
    BUF_CLEANUP struct buf out = {0};
    const struct str *identities;
    size_t count = client_identities(r, &identities);
    if (count == 0) {
        return client_unknown(err);
    }
    const char *before = "";
    (void)buf_puts(&out, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < count; i++) {
        before = put_sessions(r, identities[i], before, &out);
    }
    (void)buf_puts(&out, "]}");
    return answer_json(r, 200, buf_str(&out), err);
}

/* A session may have a container in several sandboxes: all of them end. */
static bool end_session(struct request *r, struct str identity, struct str id)
{
    const struct config *config = r->gateway->config;
    bool found = false;
    for (size_t i = 0; i < config->sandboxes_count; i++) {
        found |= registry_end_session(r->gateway->registry, identity, id, &config->sandboxes[i]);
    }
    return found;
}

static bool end_any(struct request *r, struct str id)
{
    const struct str *identities;
    size_t count = client_identities(r, &identities);
    for (size_t i = 0; i < count; i++) {
        if (registry_end(r->gateway->registry, identities[i], id) ||
            end_session(r, identities[i], id)) {
            return true;
        }
    }
    return false;
}

static int answer_delete(struct request *r, struct sg_error *err)
{
    struct str id = str_of(r->route.path + strlen("/sessions/"));
    if (!end_any(r, id)) {
        int rc = error_set(err, SG_E_NOT_FOUND, "There is no such session.");
        (void)snprintf(err->reason, sizeof err->reason, "session_not_found"); /* fits */
        return rc;
    }
    BUF_CLEANUP struct buf out = {0};
    (void)buf_puts(&out, "{\"object\":\"session.deleted\"");
    put_text(&out, "id", id.data);
    (void)buf_puts(&out, ",\"deleted\":true}");
    return answer_json(r, 200, buf_str(&out), err);
}

int sessions_answer(struct request *r, struct sg_error *err)
{
    return r->route.kind == ROUTE_SESSION ? answer_delete(r, err) : answer_list(r, err);
}
