/* Calls of sandbox providers: what stands in a call's arena, and the functions that hand it to the plugin. */
#include "session/internal.h"

#include "base/check.h"
#include "base/identity.h"

static const struct sg_sandbox_ops *ops_of(const struct instance *instance)
{
    return instance->plugin->sandbox;
}

int provider_create(const struct instance *instance, struct sg_call *call, void *arguments,
                    struct sg_error *err)
{
    struct provider_arguments *a = arguments;
    return ops_of(instance)->create(instance->self, call, &a->spec, err);
}

int provider_run(const struct instance *instance, struct sg_call *call, void *arguments,
                 struct sg_error *err)
{
    struct provider_arguments *a = arguments;
    return ops_of(instance)->run(instance->self, call, a->handle, &a->run, err);
}

int provider_destroy(const struct instance *instance, struct sg_call *call, void *arguments,
                     struct sg_error *err)
{
    struct provider_arguments *a = arguments;
    return ops_of(instance)->destroy(instance->self, call, a->handle, err);
}

int provider_touch(const struct instance *instance, struct sg_call *call, void *arguments,
                   struct sg_error *err)
{
    struct provider_arguments *a = arguments;
    return ops_of(instance)->touch(instance->self, call, a->handle, a->life_ms, err);
}

int provider_interrupt(const struct instance *instance, struct sg_call *call, void *arguments,
                       struct sg_error *err)
{
    struct provider_arguments *a = arguments;
    return ops_of(instance)->interrupt(instance->self, call, a->handle, err);
}

int provider_put(const struct instance *instance, struct sg_call *call, void *arguments,
                 struct sg_error *err)
{
    struct provider_arguments *a = arguments;
    return ops_of(instance)->put(instance->self, call, a->handle, a->path, a->data, a->len, err);
}

int provider_get(const struct instance *instance, struct sg_call *call, void *arguments,
                 struct sg_error *err)
{
    struct provider_arguments *a = arguments;
    return ops_of(instance)->get(instance->self, call, a->handle, a->path, err);
}

int provider_list(const struct instance *instance, struct sg_call *call, void *arguments,
                  struct sg_error *err)
{
    struct provider_arguments *a = arguments;
    return ops_of(instance)->list(instance->self, call, a->handle, a->path, err);
}

struct sg_call *provider_call(const struct container *container, const char *operation,
                              const char *request_id, int64_t deadline,
                              struct provider_arguments **ret_arguments)
{
    struct sg_call *call =
        call_new(container->sandbox->instance, operation, NULL, request_id, deadline);
    struct arena *arena = call_arena(call);
    /* The first things in it, far within its bound. */
    struct provider_arguments *arguments =
        check_alloc(arena_alloc(arena, sizeof(struct provider_arguments)));
    if (container->handle != NULL) {
        arguments->handle = check_alloc(arena_copy(arena, str_of(container->handle)));
    }
    *ret_arguments = arguments;
    return call;
}

void container_log(struct log_line *line, enum sg_level level, const char *event,
                   const struct container *container)
{
    log_begin(line, level, event);
    log_text(line, "sandbox", container->sandbox->name);
    identity_log(line, str_of(container->identity));
    log_text(line, "container", container->id);
    log_text(line, "label", container->label);
}
