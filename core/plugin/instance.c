/* Opening and closing instances: alone, in a fiber on the main thread's loop, so that waiting functions work there. */
#include "plugin/call_internal.h"

#include "base/check.h"

#include <stdlib.h>

/* Runs code of the plugin in the caller's fiber. Consumes the reference. */
static int run_inline(struct sg_call *call, call_invoke *invoke_plugin, void *arguments,
                      char **ret_word, struct sg_error *err)
{
    CHECK(call->place == CALL_NOT_STARTED);
    CHECK(fiber_self() != NULL);
    call->place = CALL_INLINE;
    call->runner = fiber_self();
    fiber_note(call->operation, call->instance->plugin->name);
    call_judge(call, invoke_plugin(call->instance, call, arguments, &call->error));
    fiber_note(NULL, NULL);
    int code = call->code;
    if (code == SG_OK && call->word.len > 0) {
        *ret_word = check_alloc(strndup(call->word.data, call->word.len));
    }
    if (code != SG_OK) {
        call_add_names(call, &call->error);
        *err = call->error;
    }
    call_unref(call);
    return code;
}

static int invoke_open(const struct instance *instance, struct sg_call *call, void *arguments,
                       struct sg_error *err)
{
    return instance->plugin->open(instance->config, call, arguments, err);
}

int instance_open(struct instance *instance, struct sg_error *err)
{
    CHECK(!instance->is_open);
    void *self = NULL;
    char *about = NULL;
    if (instance->plugin->open != NULL) {
        struct sg_call *call = call_new(instance, "open", NULL, NULL, fiber_deadline(fiber_self()));
        int code = run_inline(call, invoke_open, &self, &about, err);
        if (code != 0) {
            return code;
        }
    }
    instance->self = self;
    instance->about = about;
    instance->abandoned = check_alloc(calloc(1, sizeof *instance->abandoned));
    instance->is_open = true;
    return 0;
}

static int invoke_close(const struct instance *instance, struct sg_call *call, void *arguments,
                        struct sg_error *err)
{
    (void)arguments, (void)err;
    instance->plugin->close(instance->self, call);
    return 0;
}

void instance_close(struct instance *instance)
{
    if (!instance->is_open) {
        return;
    }
    instance->is_open = false;
    if (instance->plugin->close != NULL) {
        struct sg_error err = {0};
        struct sg_call *call =
            call_new(instance, "close", NULL, NULL, fiber_deadline(fiber_self()));
        CHECK(run_inline(call, invoke_close, NULL, NULL, &err) == 0); /* it cannot fail */
    }
    instance->self = NULL;
    free(TAKE(instance->about));
    free(TAKE(instance->abandoned));
}

uint64_t instance_abandoned(const struct instance *instance)
{
    return instance->abandoned == NULL ? 0 : atomic_load(instance->abandoned);
}
