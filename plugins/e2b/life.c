/* Lengthening a sandbox's life, and ending it. */
#include "api.h"

#include <string.h>

static int id_of(const char *handle, char ret[64], struct sg_error *err)
{
    return api_id(handle, strlen(handle), ret)
               ? 0
               : sg->fail(err, SG_E_GONE,
                          "the handle is none of E2B's, so there is no sandbox of it");
}

static void forget(struct e2b *e2b, const char *id)
{
    struct sandbox *sandbox = sandbox_find(e2b, id);
    if (sandbox != NULL) {
        sandbox_forget(e2b, sandbox);
        sandbox_unref(e2b, sandbox);
    }
}

static void keep(struct e2b *e2b, const char *id, int64_t life_s)
{
    struct sandbox *sandbox = sandbox_find(e2b, id);
    if (sandbox != NULL) {
        sandbox_keep(e2b, sandbox, life_s);
        sandbox_unref(e2b, sandbox);
    }
}

int e2b_touch(void *self, struct sg_call *call, const char *handle, int64_t life_ms,
              struct sg_error *err)
{
    struct e2b *e2b = self;
    char id[64];
    int code = id_of(handle, id, err);
    if (code == 0) {
        code = api_timeout(e2b, call, id, life_ms, err);
        if (code == SG_E_GONE) {
            forget(e2b, id);
        } else if (code == 0) {
            keep(e2b, id, api_life_seconds(e2b, call, life_ms));
        }
    }
    return code;
}

int e2b_destroy(void *self, struct sg_call *call, const char *handle, struct sg_error *err)
{
    struct e2b *e2b = self;
    char id[64];
    int code = id_of(handle, id, err);
    if (code == 0) {
        sandbox_interrupt(e2b, id); /* its server goes away */
        code = api_delete(e2b, call, id, 0, err);
        if (code == 0) {
            forget(e2b, id);
        }
    }
    return code;
}
