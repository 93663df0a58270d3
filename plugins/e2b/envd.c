/* Asking envd: by version, by user, and again where nothing can have begun. */
#include "envd.h"

#define TRIES_MAX 4
#define PAUSE_MS 500

bool envd_is_at_least(const struct sandbox *sandbox, unsigned major, unsigned minor, unsigned patch)
{
    const unsigned wanted[3] = {major, minor, patch};
    for (int i = 0; i < 3; i++) {
        if (sandbox->envd_version[i] != wanted[i]) {
            return sandbox->envd_version[i] > wanted[i];
        }
    }
    return true;
}

bool envd_wants_user(const struct sandbox *sandbox)
{
    return !envd_is_at_least(sandbox, 0, 4, 0);
}

/* ---- headers ---- */

void envd_header(struct envd_headers *headers, const char *key, const char *value)
{
    headers->keys[headers->map.count] = key;
    headers->values[headers->map.count++] = value;
}

void envd_rpc(const struct sandbox *sandbox, struct exchange *x, struct envd_headers *headers,
              const char *content_type)
{
    headers->map = (struct sg_map){headers->keys, headers->values, 0};
    envd_header(headers, "Connect-Protocol-Version", "1");
    if (envd_wants_user(sandbox)) {
        envd_header(headers, "Authorization", "Basic dXNlcjo="); /* "user:" */
    }
    x->content_type = content_type;
    x->headers = &headers->map;
}

/* ---- asking ---- */

static bool may_try_again(const struct exchange *x, int code)
{
    return code == 0 ? fault_is_port_closed(x)
                     : code == SG_E_UNAVAILABLE && x->reply.failed_at == SG_HTTP_UNCONNECTED;
}

int envd_exchange(struct e2b *e2b, struct sg_call *call, struct sandbox *sandbox,
                  struct exchange *x, struct sg_error *err)
{
    for (int tries = 1;; tries++) {
        int code = exchange_sandbox(e2b, call, sandbox, PORT_ENVD, x, err);
        if (!may_try_again(x, code) || tries == TRIES_MAX) {
            return code;
        }
        int slept = sg->sleep(call, PAUSE_MS, err);
        if (slept != 0) {
            return slept;
        }
    }
}

int envd_fail_lost(struct e2b *e2b, struct sg_call *call, struct sandbox *sandbox,
                   const struct exchange *x, int code, const char *what, struct sg_error *err)
{
    bool was_sent = x->reply.failed_at > SG_HTTP_NO_TLS;
    return was_sent && code == SG_E_UNAVAILABLE ? fault_lost(e2b, call, sandbox, what, err) : code;
}
