/* A sandbox for the end-to-end tests that breaks its word: it says that it never blocks (SG_ON_LOOP), and its run() holds
 * the loop for ever. */
#include <sandgate/plugin.h>

#include <string.h>

static int open_spinner(const void *config, struct sg_call *call, void **ret_self,
                        struct sg_error *err)
{
    (void)config, (void)call, (void)ret_self, (void)err;
    return 0;
}

static int create(void *self, struct sg_call *call, const struct sg_sandbox_spec *spec,
                  struct sg_error *err)
{
    (void)self;
    return sg->emit(call, SG_OUT_HANDLE, spec->label, strlen(spec->label), err);
}

static int run(void *self, struct sg_call *call, const char *handle, const struct sg_run *wanted,
               struct sg_error *err)
{
    (void)self, (void)call, (void)handle, (void)wanted, (void)err;
    for (volatile bool spins = true; spins;) {
    }
    return 0;
}

static int destroy(void *self, struct sg_call *call, const char *handle, struct sg_error *err)
{
    (void)self, (void)call, (void)handle, (void)err;
    return 0;
}

static const struct sg_sandbox_ops operations = {.create = create, .run = run, .destroy = destroy};
static const struct sg_plugin spinner = {.name = "spinner",
                                         .help = "Holds its loop for ever.",
                                         .open = open_spinner,
                                         .sandbox = &operations,
                                         .flags = SG_ON_LOOP};

SG_PLUGIN_SET("1.0", &spinner);
