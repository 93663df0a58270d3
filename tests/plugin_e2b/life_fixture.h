/* What the tests of a sandbox's life share: an instance with a key, its operations, what it asked. */
#ifndef TESTS_E2B_LIFE_FIXTURE_H
#define TESTS_E2B_LIFE_FIXTURE_H

#include "base/check.h"
#include "cunit_main.h"
#include "fake_host.h"

#include "api.h"

#include <stdlib.h>
#include <unistd.h>

#define KEY "e2b_0123456789abcdef0123456789abcdef01234567"
#define ID "i0a1b2c3d4e5f6g7h8i9j"
#define OTHER "izyxwvutsrqponmlkjihg"
#define ENVD_TOKEN "ea_token-of-envd.77"
#define TRAFFIC_TOKEN "ta_token-of-traffic.88"
#define CREATED(id)                                                                              \
    "{\"sandboxID\": \"" id "\", \"templateID\": \"t\", \"clientID\": \"c\", \"domain\": null, " \
    "\"envdVersion\": \"0.5.7\", \"envdAccessToken\": \"" ENVD_TOKEN                             \
    "\", \"trafficAccessToken\": \"" TRAFFIC_TOKEN "\"}"
#define MISSING "{\"code\": 404, \"message\": \"Sandbox \\\"" ID "\\\" doesn't exist\"}"

extern const struct sg_plugin_set sg_plugin_set;

static const struct sg_plugin *plugin;

struct fixture {
    struct e2b_config *config;
    struct e2b *e2b;
    struct sg_call *call; /* of the last operation, or the next one */
};

static inline void fixture_init(struct fixture *f)
{
    *sg_plugin_set.host = host_table();
    plugin = sg_plugin_set.plugins[0];
    *f = (struct fixture){.config = config_new(plugin), .call = call_new()};
    config_set(plugin, f->config, "api_key", KEY);
}

static inline void fixture_open(struct fixture *f)
{
    void *self = NULL;
    CU_ASSERT_EQUAL_FATAL(plugin->open(f->config, f->call, &self, call_error(f->call)), 0);
    f->e2b = self;
}

static inline void next_call(struct fixture *f)
{
    call_free(f->call);
    f->call = call_new();
}

static inline void fixture_free(struct fixture *f)
{
    if (f->e2b != NULL) {
        plugin->close(f->e2b, f->call);
    }
    call_free(f->call);
    config_free(plugin, f->config);
}

static inline void reply(struct fixture *f, int status, const char *body)
{
    call_reply(f->call, (struct fake_reply){.status = status, .body = body});
}

static inline int create(struct fixture *f, const char *label)
{
    struct sg_sandbox_spec spec = {.label = label, .life_ms = 1020000};
    return e2b_create(f->e2b, f->call, &spec, call_error(f->call));
}

/* A sandbox that is in use, and a new call. */
static inline void make(struct fixture *f, const char *answer)
{
    reply(f, 201, answer);
    CU_ASSERT_EQUAL_FATAL(create(f, "sg-first"), 0);
    next_call(f);
}

static inline void expect_request(struct fixture *f, size_t index, const char *method,
                                  const char *url)
{
    CU_ASSERT_FATAL(index < f->call->requests_count);
    CU_ASSERT_STRING_EQUAL(f->call->requests[index].method, method);
    CU_ASSERT_STRING_EQUAL(f->call->requests[index].url, url);
}

/* A new file with this text; the caller unlinks it. */
static inline void ca_file_new(const char *text, char ret_path[64])
{
    snprintf(ret_path, 64, "/tmp/sandgate-e2b-XXXXXX");
    int fd = mkstemp(ret_path);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL_FATAL(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static inline void expect_message(struct fixture *f, const char *message)
{
    CU_ASSERT_STRING_EQUAL(f->call->error.message, message);
    if (strcmp(f->call->error.message, message) != 0) {
        printf("\n got: %s\nwant: %s\n", f->call->error.message, message);
    }
}

#endif
