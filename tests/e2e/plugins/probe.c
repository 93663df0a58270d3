/* A plugin for the end-to-end tests: a hook interceptor and an upstream that do what the request asks them to do by a
 * word in it ("HOOK:refuse"), the wrong things above all. */
#include <sandgate/plugin.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { HUGE_PIECES = 33, PIECE_BYTES = 1024 * 1024 };

struct config {
    const char *journal;
};

static const struct sg_option options[] = {
    {.name = "journal",
     .type = SG_STRING,
     SG_FIELD(struct config, journal),
     .help = "A file to which request(), done() and a turn that hangs append a line."},
    {0},
};

static int open_probe(const void *config, struct sg_call *call, void **ret_self,
                      struct sg_error *err)
{
    (void)call;
    (void)err;
    *ret_self = (void *)(uintptr_t)config;
    return 0;
}

static void close_probe(void *self, struct sg_call *call)
{
    (void)self;
    (void)call;
}

static void journal(const struct config *config, const char *line)
{
    if (config->journal == NULL) {
        return;
    }
    int fd = open(config->journal, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0) {
        ssize_t done = write(fd, line, strlen(line));
        (void)done; /* the test misses the line */
        close(fd);
    }
}

static bool asks(const char *json, size_t len, const char *word)
{
    return memmem(json, len, word, strlen(word)) != NULL;
}

static int emit_huge(struct sg_call *call, struct sg_error *err)
{
    char *piece = sg->alloc(call, PIECE_BYTES);
    if (piece == NULL) {
        return sg->fail(err, SG_E_LIMIT, "no memory");
    }
    memset(piece, ' ', PIECE_BYTES);
    int rc = 0;
    for (int i = 0; rc == 0 && i < HUGE_PIECES; i++) {
        rc = sg->emit(call, SG_OUT_DATA, piece, PIECE_BYTES, err);
    }
    return rc;
}

/* The same text with each "secret" painted over. */
static int emit_redacted(struct sg_call *call, const char *json, size_t len, struct sg_error *err)
{
    char *copy = sg->alloc(call, len);
    if (copy == NULL) {
        return sg->fail(err, SG_E_LIMIT, "no memory");
    }
    memcpy(copy, json, len);
    char *at = copy;
    while ((at = memmem(at, len - (size_t)(at - copy), "secret", 6)) != NULL) {
        memcpy(at, "******", 6);
    }
    return sg->emit(call, SG_OUT_DATA, copy, len, err);
}

static int hang(struct sg_call *call, struct sg_error *err)
{
    int rc = 0;
    while (rc == 0) {
        rc = sg->sleep(call, 1000, err);
    }
    return rc;
}

static int hook_request(void *self, struct sg_call *call, const char *json, size_t len,
                        void **ret_state, struct sg_error *err)
{
    journal(self, "request\n");
    *ret_state = self;
    if (asks(json, len, "HOOK:refuse")) {
        return sg->fail(err, SG_E_DENIED, "the probe refuses this");
    }
    if (asks(json, len, "HOOK:redact")) {
        return emit_redacted(call, json, len, err);
    }
    if (asks(json, len, "HOOK:garbage")) {
        return sg->emit(call, SG_OUT_DATA, "no json", 7, err);
    }
    if (asks(json, len, "HOOK:huge")) {
        return emit_huge(call, err);
    }
    if (asks(json, len, "HOOK:hang")) {
        return hang(call, err);
    }
    if (asks(json, len, "HOOK:early")) {
        struct sg_run run = {.code = "1", .code_len = 1};
        struct sg_sink sink = {0};
        return sg->run_code(call, &run, &sink, err);
    }
    return 0;
}

static void hook_done(void *self, void *state)
{
    journal(self, state == self ? "done\n" : "done with a wrong state\n");
}

static int emit_text(struct sg_call *call, enum sg_out kind, const char *text, struct sg_error *err)
{
    return sg->emit(call, kind, text, strlen(text), err);
}

static int upstream_turn(void *self, struct sg_call *call, const struct sg_turn *turn,
                         struct sg_error *err)
{
    if (asks(turn->json, turn->json_len, "UP:head")) {
        return emit_text(call, SG_OUT_HEAD, "{\"status\":\"many\"}", err);
    }
    if (asks(turn->json, turn->json_len, "UP:hang")) {
        journal(self, "hang\n");
        return hang(call, err);
    }
    if (asks(turn->json, turn->json_len, "UP:fail")) {
        return sg->fail(err, SG_E_UNAVAILABLE, "the probe's model is away");
    }
    int rc =
        emit_text(call, SG_OUT_HEAD, "{\"status\":200,\"headers\":{\"x-probe\":\"yes\"}}", err);
    return rc == 0 ? emit_text(call, SG_OUT_DATA,
                               "{\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
                               "\"content\":\"probed\"},\"finish_reason\":\"stop\"}]}",
                               err)
                   : rc;
}

static const struct sg_interceptor_ops hook_operations = {.request = hook_request,
                                                          .done = hook_done};
static const struct sg_upstream_ops upstream_operations = {.turn = upstream_turn};

static const struct sg_plugin hook = {.name = "probe",
                                      .help = "A hook that does what the request says.",
                                      .options = options,
                                      .config_size = sizeof(struct config),
                                      .open = open_probe,
                                      .close = close_probe,
                                      .interceptor = &hook_operations};
static const struct sg_plugin upstream = {.name = "probe",
                                          .help = "A model that does what the request says.",
                                          .options = options,
                                          .config_size = sizeof(struct config),
                                          .open = open_probe,
                                          .close = close_probe,
                                          .upstream = &upstream_operations};

SG_PLUGIN_SET("1.0", &hook, &upstream);
