/* A plugin for the end-to-end tests: an interceptor whose tool does with the files of the request's container what the
 * code says ("put PATH TEXT", "get PATH", "list PATH", "bash COMMAND", "perl CODE"), and tells the model all that it saw
 * and how it ended. And a sandbox that has no files. */
#include <sandgate/plugin.h>

#include <stdio.h>
#include <string.h>

struct seen {
    char text[4096];
    size_t len;
};

static void add(struct seen *seen, const char *format, const void *data, size_t len)
{
    if (seen->len + len + 64 < sizeof seen->text) {
        seen->len += (size_t)snprintf(seen->text + seen->len, sizeof seen->text - seen->len,
                                      "%s:%.*s;", format, (int)len, (const char *)data);
    }
}

static int see(void *context, enum sg_out kind, const void *data, size_t len, struct sg_error *err)
{
    (void)err;
    add(context,
        kind == SG_OUT_DATA      ? "data"
        : kind == SG_OUT_FILE    ? "file"
        : kind == SG_OUT_STATUS  ? "status"
        : kind == SG_OUT_LOG_OUT ? "out"
                                 : "other",
        data, len);
    return 0;
}

static int run(struct sg_call *call, const char *language, const char *code,
               const struct sg_sink *sink, struct sg_error *err)
{
    struct sg_run run = {.language = language, .code = code, .code_len = strlen(code)};
    return sg->run_code(call, &run, sink, err);
}

/* The three words; the last is the rest. */
static int obey(struct sg_call *call, char *words, const struct sg_sink *sink, struct sg_error *err)
{
    char *path = strchr(words, ' ');
    if (path == NULL) {
        return sg->fail(err, SG_E_INTERNAL, "what?");
    }
    *path++ = '\0';
    if (strcmp(words, "bash") == 0 || strcmp(words, "perl") == 0) {
        return run(call, words, path, sink, err);
    }
    if (strcmp(words, "get") == 0) {
        return sg->file_get(call, path, sink, err);
    }
    if (strcmp(words, "list") == 0) {
        return sg->file_list(call, path, sink, err);
    }
    char *text = strchr(path, ' ');
    if (text == NULL) {
        return sg->fail(err, SG_E_INTERNAL, "what?");
    }
    *text++ = '\0';
    return sg->file_put(call, path, text, strlen(text), err);
}

/* The arguments are {"code":"…"} without escapes: the tests see to that. */
static int call_tool(void *self, struct sg_call *call, const char *json, size_t len,
                     struct sg_error *err)
{
    (void)self;
    struct seen *seen = sg->alloc(call, sizeof *seen);
    char *words = sg->alloc(call, len + 1);
    const char *colon = memchr(json, ':', len);
    if (seen == NULL || words == NULL || colon == NULL) {
        return sg->fail(err, SG_E_INTERNAL, "no memory, or no arguments");
    }
    const char *from = strchr(colon, '"') + 1;
    memcpy(words, from, strcspn(from, "\""));
    struct sg_sink sink = {.event = see, .ctx = seen};
    int code = obey(call, words, &sink, err);
    char end[32];
    snprintf(end, sizeof end, "code %d", code);
    const char *message = code == 0 ? "" : sg->message(err);
    add(seen, end, message, strlen(message));
    return code == SG_E_CANCELLED ? code : sg->emit(call, SG_OUT_MODEL, seen->text, seen->len, err);
}

static const struct sg_tool tools[] = {
    {.hosted = "code_interpreter",
     .name = "code_interpreter",
     .description = "Probes files.",
     .parameters_json = "{\"type\":\"object\",\"properties\":{\"code\":{\"type\":\"string\"}},"
                        "\"required\":[\"code\"]}",
     .call = call_tool},
    {0},
};
static const struct sg_interceptor_ops interceptor = {.tools = tools};
static const struct sg_plugin probe = {
    .name = "probe_files", .help = "A tool that asks for files.", .interceptor = &interceptor};

static int create(void *self, struct sg_call *call, const struct sg_sandbox_spec *spec,
                  struct sg_error *err)
{
    (void)self;
    (void)call;
    (void)spec;
    return sg->fail(err, SG_E_INVALID, "no container is wanted here");
}

static int run_nothing(void *self, struct sg_call *call, const char *handle,
                       const struct sg_run *wanted, struct sg_error *err)
{
    (void)self;
    (void)call;
    (void)handle;
    (void)wanted;
    return sg->fail(err, SG_E_INVALID, "nothing runs here");
}

static int destroy(void *self, struct sg_call *call, const char *handle, struct sg_error *err)
{
    (void)self;
    (void)call;
    (void)handle;
    (void)err;
    return 0;
}

static const struct sg_sandbox_ops sandbox = {
    .create = create, .run = run_nothing, .destroy = destroy};
static const struct sg_plugin without_files = {
    .name = "probe_files", .help = "A sandbox without files.", .sandbox = &sandbox};

SG_PLUGIN_SET("1.0", &probe, &without_files);
