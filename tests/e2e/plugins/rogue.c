/* A plugin for the end-to-end tests that misbehaves: a hook and tool, a sandbox and a search, all on worker threads, that
 * do what a word in the request, the arguments, the code or the query says: "block" (until the file `gate` exists, deaf to
 * all deadlines), "odd" (returns no code), "mute" (fails without a message), "claim" (says it was cancelled), "flood"
 * (emits for ever), "deep" (asks another plugin, which may ask for the same). */
#include <sandgate/plugin.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ODD = 4711, HANDLE_MAX = 4096, MANY = 20000 };

struct config {
    const char *gate, *journal, *open, *handle;
};

static const struct sg_option options[] = {
    {.name = "gate",
     .type = SG_STRING,
     SG_FIELD(struct config, gate),
     .help = "A file; what blocks goes on once it exists."},
    {.name = "journal",
     .type = SG_STRING,
     SG_FIELD(struct config, journal),
     .help = "A file to which what begins, blocks and ends appends a line."},
    {.name = "open",
     .type = SG_CHOICE,
     SG_FIELD(struct config, open),
     .def = "good",
     .choices = "good|refuse|odd|mute|claim",
     .help = "What open() does."},
    {.name = "handle",
     .type = SG_CHOICE,
     SG_FIELD(struct config, handle),
     .def = "good",
     .choices = "good|none|long|longest|nul|odd|twice|many",
     .help = "What create() emits."},
    {0},
};

/* ---- what it does ---- */

static void journal(const struct config *config, const char *what, const char *word)
{
    char line[64];
    int len = snprintf(line, sizeof line, "%s %s\n", what, word);
    int fd = config->journal == NULL
                 ? -1
                 : open(config->journal, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0) {
        ssize_t done = write(fd, line, (size_t)len);
        (void)done; /* the test misses the line */
        close(fd);
    }
}

static void block(const struct config *config)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    while (access(config->gate, F_OK) != 0) {
        nanosleep(&pause, NULL); /* the gate is another process's to open */
    }
}

static int flood(struct sg_call *call, enum sg_out kind, struct sg_error *err)
{
    char piece[4096];
    int rc = 0;
    memset(piece, 'x', sizeof piece);
    while (rc == 0) {
        rc = sg->emit(call, kind, piece, sizeof piece, err);
    }
    return rc;
}

static bool has(const char *text, size_t len, const char *word)
{
    return memmem(text, len, word, strlen(word)) != NULL;
}

/* True if the text has one of the words that all operations know; *ret is what to return. */
static bool misbehave(const struct config *config, struct sg_call *call, const char *what,
                      const char *text, size_t len, enum sg_out kind, int *ret,
                      struct sg_error *err)
{
    static const char *const words[] = {"ROGUE:block", "ROGUE:odd", "ROGUE:mute", "ROGUE:claim",
                                        "ROGUE:flood"};
    size_t word = 0;
    while (word < 5 && !has(text, len, words[word])) {
        word++;
    }
    if (word == 5) {
        return false;
    }
    journal(config, what, words[word] + 6);
    if (word == 0) {
        block(config);
        journal(config, what, "unblocked");
    }
    *ret = word == 0   ? 0
           : word == 1 ? ODD
           : word == 2 ? SG_E_DENIED
           : word == 3 ? SG_E_CANCELLED
                       : flood(call, kind, err);
    return true;
}

static int open_rogue(const void *opened, struct sg_call *call, void **ret_self,
                      struct sg_error *err)
{
    (void)call;
    const struct config *config = opened;
    *ret_self = (void *)(uintptr_t)opened;
    switch (config->open[0]) {
    case 'r':
        return sg->fail(err, SG_E_CONFIG, "the rogue does not like this configuration");
    case 'o':
        return ODD;
    case 'm':
        return SG_E_UNAVAILABLE;
    case 'c':
        return SG_E_CANCELLED;
    }
    return 0;
}

static void close_rogue(void *self, struct sg_call *call)
{
    (void)call;
    journal(self, "close", "");
}

/* ---- hook and tool ---- */

static int hook_request(void *self, struct sg_call *call, const char *json, size_t len,
                        void **ret_state, struct sg_error *err)
{
    int rc = 0;
    *ret_state = self;
    (void)misbehave(self, call, "request", json, len, SG_OUT_DATA, &rc, err);
    return rc;
}

static void hook_done(void *self, void *state)
{
    journal(self, "done", self == state ? "" : "with a wrong state");
}

static int drop(void *context, enum sg_out kind, const void *data, size_t len, struct sg_error *err)
{
    (void)context, (void)kind, (void)data, (void)len, (void)err;
    return 0;
}

/* One worker call inside another: the search, then the sandbox. */
static int ask_others(struct sg_call *call, struct sg_error *err)
{
    struct sg_sink sink = {.event = drop};
    struct sg_query query = {.text = "deep"};
    struct sg_run run = {.code = "deep", .code_len = 4};
    int rc = sg->search(call, &query, &sink, err);
    rc = rc == 0 ? sg->run_code(call, &run, &sink, err) : rc;
    return rc == 0 ? sg->emit(call, SG_OUT_MODEL, "asked", 5, err) : rc;
}

static int tool_call(void *self, struct sg_call *call, const char *json, size_t len,
                     struct sg_error *err)
{
    int rc = 0;
    if (has(json, len, "deep")) {
        return ask_others(call, err);
    }
    if (!misbehave(self, call, "call", json, len, SG_OUT_LOG_OUT, &rc, err)) {
        rc = sg->emit(call, SG_OUT_MODEL, "behaved", 7, err);
    }
    return rc;
}

/* ---- sandbox and search ---- */

static int sandbox_create(void *self, struct sg_call *call, const struct sg_sandbox_spec *spec,
                          struct sg_error *err)
{
    const char *kind = ((const struct config *)self)->handle;
    char handle[HANDLE_MAX + 1];
    memset(handle, 'h', sizeof handle);
    journal(self, "create", "");
    if (strcmp(kind, "none") == 0) {
        return 0;
    }
    if (strcmp(kind, "twice") == 0) {
        return sg->emit(call, SG_OUT_HANDLE, "same", 4, err);
    }
    if (strcmp(kind, "long") == 0) {
        return sg->emit(call, SG_OUT_HANDLE, handle, HANDLE_MAX + 1, err);
    }
    if (strcmp(kind, "longest") == 0) {
        return sg->emit(call, SG_OUT_HANDLE, handle, HANDLE_MAX, err);
    }
    if (strcmp(kind, "nul") == 0) {
        return sg->emit(call, SG_OUT_HANDLE, "a\0b", 3, err);
    }
    if (strcmp(kind, "odd") == 0) {
        static const char odd[] = "\xff\r\n%s\x1b[2J\"'\\";
        return sg->emit(call, SG_OUT_HANDLE, odd, sizeof odd - 1, err);
    }
    int rc = sg->emit(call, SG_OUT_HANDLE, spec->label, strlen(spec->label), err);
    for (int i = 0; rc == 0 && i < MANY && strcmp(kind, "many") == 0; i++) {
        int len = snprintf(handle, sizeof handle, "%s-%d", spec->label, i);
        rc = sg->emit(call, SG_OUT_HANDLE, handle, (size_t)len, err);
    }
    return rc;
}

static int sandbox_run(void *self, struct sg_call *call, const char *handle,
                       const struct sg_run *run, struct sg_error *err)
{
    (void)handle;
    int rc = 0;
    if (!misbehave(self, call, "run", run->code, run->code_len, SG_OUT_LOG_OUT, &rc, err)) {
        rc = sg->emit(call, SG_OUT_LOG_OUT, "ran", 3, err);
    }
    return rc;
}

static int sandbox_destroy(void *self, struct sg_call *call, const char *handle,
                           struct sg_error *err)
{
    (void)call, (void)handle, (void)err;
    journal(self, "destroy", "");
    return 0;
}

static int search_run(void *self, struct sg_call *call, const struct sg_query *query,
                      struct sg_error *err)
{
    static const char hit[] = "{\"title\":\"T\",\"url\":\"https://a.example/\",\"snippet\":\"S\"}";
    int rc = 0;
    if (!misbehave(self, call, "search", query->text, strlen(query->text), SG_OUT_HIT, &rc, err)) {
        rc = sg->emit(call, SG_OUT_HIT, hit, sizeof hit - 1, err);
    }
    return rc;
}

/* ---- the set ---- */

static const struct sg_tool tools[] = {
    {.name = "rogue",
     .description = "Does what it is told.",
     .parameters_json = "{\"type\":\"object\",\"properties\":{\"what\":{\"type\":\"string\"}}}",
     .call = tool_call},
    {0},
};
static const struct sg_interceptor_ops interceptor_operations = {
    .tools = tools, .request = hook_request, .done = hook_done};
static const struct sg_sandbox_ops sandbox_operations = {
    .create = sandbox_create, .run = sandbox_run, .destroy = sandbox_destroy};
static const struct sg_search_ops search_operations = {.search = search_run};

#define ROGUE                                                                 \
    .name = "rogue", .help = "Misbehaves as it is told.", .options = options, \
    .config_size = sizeof(struct config), .open = open_rogue, .close = close_rogue

static const struct sg_plugin interceptor = {ROGUE, .interceptor = &interceptor_operations};
static const struct sg_plugin sandbox = {ROGUE, .sandbox = &sandbox_operations};
static const struct sg_plugin search = {ROGUE, .search = &search_operations};

SG_PLUGIN_SET("1.0", &interceptor, &sandbox, &search);
