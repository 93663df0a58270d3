/* What the tests of the code_interpreter's tools share: an instance, and one call of one of its tools. */
#ifndef TESTS_INTERCEPTOR_FIXTURE_H
#define TESTS_INTERCEPTOR_FIXTURE_H

#include "base/check.h"
#include "cunit_main.h"
#include "fake_host.h"

static const struct sg_plugin *plugin;

struct fixture {
    void *config, *self;
    struct sg_call *call;
};

static inline struct fixture fixture_new(const char *shown)
{
    struct fixture f = {.config = config_new(plugin), .call = call_new()};
    if (shown != NULL) {
        config_set(plugin, f.config, "shown", shown);
    }
    CU_ASSERT_EQUAL(plugin->open(f.config, f.call, &f.self, call_error(f.call)), 0);
    return f;
}

static inline void fixture_free(struct fixture *f)
{
    plugin->close(f->self, f->call);
    call_free(f->call);
    config_free(plugin, f->config);
}

static inline int call_tool(struct fixture *f, const char *name, const char *arguments, size_t len)
{
    const struct sg_tool *tool = plugin->interceptor->tools;
    while (strcmp(tool->name, name) != 0) {
        tool++;
    }
    return tool->call(f->self, f->call, arguments, len, call_error(f->call));
}

#endif
