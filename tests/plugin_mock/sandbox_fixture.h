/* What the tests of the mock sandbox share: an instance with a journal, one container at a time, its operations. */
#ifndef TESTS_SANDBOX_FIXTURE_H
#define TESTS_SANDBOX_FIXTURE_H

#include "base/check.h"
#include "cunit_main.h"
#include "fake_host.h"

#include <unistd.h>

static const struct sg_plugin *plugin;

struct fixture {
    void *config, *self;
    struct sg_call *call; /* of the last operation */
    char handle[1024];
    char journal[64];
};

static inline void begin_call(struct fixture *f)
{
    if (f->call != NULL) {
        call_free(f->call);
    }
    f->call = call_new();
}

static inline void fixture_init(struct fixture *f)
{
    *f = (struct fixture){.config = config_new(plugin), .journal = "/tmp/mock_journal_XXXXXX"};
    close(mkstemp(f->journal));
    config_set(plugin, f->config, "journal", f->journal);
}

static inline void fixture_open(struct fixture *f)
{
    begin_call(f);
    CU_ASSERT_EQUAL_FATAL(plugin->open(f->config, f->call, &f->self, call_error(f->call)), 0);
}

static inline void fixture_free(struct fixture *f)
{
    plugin->close(f->self, f->call);
    call_free(f->call);
    config_free(plugin, f->config);
    unlink(f->journal);
}

static inline int create(struct fixture *f, const char *label, int64_t life_ms)
{
    struct sg_sandbox_spec spec = {.label = label, .life_ms = life_ms};
    begin_call(f);
    int code = plugin->sandbox->create(f->self, f->call, &spec, call_error(f->call));
    snprintf(f->handle, sizeof f->handle, "%s", call_text(f->call, SG_OUT_HANDLE));
    return code;
}

static inline int run_prepared(struct fixture *f, const char *code, int64_t timeout_ms)
{
    struct sg_run run = {"python", code, strlen(code), timeout_ms};
    return plugin->sandbox->run(f->self, f->call, f->handle, &run, call_error(f->call));
}

static inline int run(struct fixture *f, const char *code)
{
    begin_call(f);
    return run_prepared(f, code, 0);
}

static inline int destroy(struct fixture *f)
{
    begin_call(f);
    return plugin->sandbox->destroy(f->self, f->call, f->handle, call_error(f->call));
}

static inline const char *read_journal(struct fixture *f)
{
    static char text[1 << 20];
    FILE *file = fopen(f->journal, "r");
    size_t len = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[len] = '\0';
    return text;
}

static inline void expect_journal(struct fixture *f, const char *expected)
{
    CU_ASSERT_STRING_EQUAL(read_journal(f), expected);
}

static inline void expect_text(struct fixture *f, enum sg_out kind, const char *expected)
{
    CU_ASSERT_STRING_EQUAL(call_text(f->call, kind), expected);
}

#endif
