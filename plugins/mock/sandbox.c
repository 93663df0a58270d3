/* The mock sandbox: containers with a few words of Python and of a shell, rules, files, and every fault that a real provider has. */
#include "sandbox.h"

#include "mock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIELD(member) SG_FIELD(struct sandbox_rule, member)
#define RUN_FAULTS "none|die|gone_before|hang|flood|cut|garbage|limit|refuse"

static const struct sg_option rule_options[] = {
    {.name = "when",
     .type = SG_STRING,
     FIELD(when),
     .help = "The code contains this text, or matches this /regular expression/; absent: any."},
    {.name = "stdout", .type = SG_STRING, FIELD(output), .help = "Text on standard output."},
    {.name = "stderr", .type = SG_STRING, FIELD(errors), .help = "Text on standard error."},
    {.name = "result",
     .type = SG_STRING,
     FIELD(result),
     .help = "The last expression's value, as text/plain."},
    {.name = "image", .type = SG_BOOL, FIELD(image), .help = "Displays a picture of one pixel."},
    {.name = "files",
     .type = SG_STRINGS,
     FIELD(files),
     .help = "Files that the code makes: 'name' or 'name=content'."},
    {.name = "error_name",
     .type = SG_STRING,
     FIELD(error_name),
     .help = "The exception that the code raises at its end."},
    {.name = "error_value", .type = SG_STRING, FIELD(error_value), .help = "Its message."},
    {.name = "exit",
     .type = SG_INT,
     FIELD(exit),
     .def = "0",
     .min = "0",
     .max = "255",
     .help = "The exit status of a shell command; 0 with error_name: 1."},
    {.name = "delay", .type = SG_DURATION, FIELD(delay), .help = "Time that the run takes."},
    {.name = "fault",
     .type = SG_CHOICE,
     FIELD(fault),
     .def = "none",
     .choices = RUN_FAULTS,
     .help = "What goes wrong in the run."},
    {.name = "times",
     .type = SG_INT,
     FIELD(times),
     .def = "0",
     .min = "0",
     .help = "The rule holds for the first so many runs that it fits; 0: for all."},
    {0},
};

#undef FIELD
#define FIELD(member) SG_FIELD(struct sandbox_config, member)

static const struct sg_option options[] = {
    {.name = "rules",
     .type = SG_LIST,
     FIELD(rules),
     .fields = rule_options,
     .fields_size = sizeof(struct sandbox_rule),
     .help = "What code does, first match; without a rule it runs as a few words of Python or a "
             "shell."},
    {.name = "delay", .type = SG_DURATION, FIELD(delay), .help = "Time that every run takes."},
    {.name = "create_delay", .type = SG_DURATION, FIELD(create_delay), .help = "Time of a create."},
    {.name = "destroy_delay",
     .type = SG_DURATION,
     FIELD(destroy_delay),
     .help = "Time of a destroy."},
    {.name = "create_fault",
     .type = SG_CHOICE,
     FIELD(create_fault),
     .def = "none",
     .choices = "none|refuse|hang|limit|garbage|fail_after_handle|hang_after_handle",
     .help = "What goes wrong when a container is made."},
    {.name = "create_fault_count",
     .type = SG_INT,
     FIELD(create_fault_count),
     .def = "0",
     .min = "0",
     .help = "Only the first so many creates go wrong; 0: all."},
    {.name = "destroy_fault",
     .type = SG_CHOICE,
     FIELD(destroy_fault),
     .def = "none",
     .choices = "none|refuse|hang",
     .help = "What goes wrong when a container is deleted."},
    {.name = "destroy_fault_count",
     .type = SG_INT,
     FIELD(destroy_fault_count),
     .def = "0",
     .min = "0",
     .help = "Only the first so many destroys go wrong; 0: all."},
    {.name = "touch_fault",
     .type = SG_CHOICE,
     FIELD(touch_fault),
     .def = "none",
     .choices = "none|refuse|gone|hang",
     .help = "What goes wrong when a container's life is pushed on."},
    {.name = "journal",
     .type = SG_STRING,
     FIELD(journal),
     .help = "A file to which every operation appends a line."},
    {.name = "state",
     .type = SG_STRING,
     FIELD(state),
     .help = "A folder in which containers outlive the process, a file for each."},
    {0},
};

static void sandbox_free(struct sandbox *s, struct sg_call *call)
{
    containers_free(s->containers, call);
    patterns_free(s->patterns, s->config->rules.count);
    free(s->rules_used);
    journal_close(&s->journal);
    free(s);
}

static int check_state(const struct sandbox_config *config, struct sg_error *err)
{
    const char *folder = config->state;
    if (folder == NULL || access(folder, R_OK | W_OK | X_OK) == 0) {
        return 0;
    }
    return sg->fail(err, SG_E_CONFIG, "'state': the folder '%s' cannot be used: %s", folder,
                    strerror(errno));
}

/* Containers are what their folder has. */
static const char *account(void *self)
{
    const struct sandbox *s = self;
    return s->config->state;
}

static int open_instance(const void *config, struct sg_call *call, void **ret_self,
                         struct sg_error *err)
{
    struct sandbox *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return sg->fail(err, SG_E_INTERNAL, "no memory");
    }
    s->config = config;
    int code = journal_open(&s->journal, s->config->journal, err);
    if (code == 0) {
        code = check_state(s->config, err);
    }
    if (code == 0) {
        code = patterns_new(&s->config->rules, sizeof(struct sandbox_rule), &s->patterns, err);
    }
    if (code == 0) {
        s->rules_used = calloc(s->config->rules.count + 1, sizeof *s->rules_used);
        s->containers = containers_new(&s->journal, s->config->state);
        if (s->rules_used == NULL || s->containers == NULL) {
            code = sg->fail(err, SG_E_INTERNAL, "no memory");
        }
    }
    if (code != 0) {
        sandbox_free(s, call);
        return code;
    }
    *ret_self = s;
    return 0;
}

static void close_instance(void *self, struct sg_call *call)
{
    sandbox_free(self, call);
}

int sandbox_hang(struct sg_call *call, struct sg_error *err)
{
    int code = 0;
    while (code == 0) {
        code = sg->sleep(call, 3600000, err);
    }
    return code;
}

static int fail_create(struct sandbox *s, struct sg_call *call, const char *label, int code,
                       struct sg_error *err)
{
    journal_printf(&s->journal, call, "create_failed %s live=%zu", label,
                   containers_live(s->containers));
    return code == SG_E_LIMIT ? sg->fail(err, code, "the quota of containers is used up")
                              : sg->fail(err, code, "create was refused");
}

/* More bytes than a handle may have, and none that it should. */
static int emit_garbage_handle(struct sg_call *call, struct sg_error *err)
{
    char garbage[5000];
    memset(garbage, 0xFF, sizeof garbage);
    garbage[1] = '\0';
    return sg->emit(call, SG_OUT_HANDLE, garbage, sizeof garbage, err);
}

/* What goes wrong before there is a container. SG_OK: nothing. `ret_done`: create() ends with the code. */
static int fault_before(struct sandbox *s, struct sg_call *call, const char *label,
                        const char *fault, bool *ret_done, struct sg_error *err)
{
    *ret_done = true;
    if (fault_is(fault, "refuse")) {
        return fail_create(s, call, label, SG_E_UNAVAILABLE, err);
    }
    if (fault_is(fault, "limit")) {
        return fail_create(s, call, label, SG_E_LIMIT, err);
    }
    if (fault_is(fault, "hang")) {
        return sandbox_hang(call, err);
    }
    if (fault_is(fault, "garbage")) {
        return emit_garbage_handle(call, err);
    }
    *ret_done = false;
    return 0;
}

static int create(void *self, struct sg_call *call, const struct sg_sandbox_spec *spec,
                  struct sg_error *err)
{
    struct sandbox *s = self;
    const char *label = spec->label == NULL ? "unnamed" : spec->label;
    const char *fault = "none";
    if (!fault_is(s->config->create_fault, "none") &&
        count_allows(&s->creates_failed, s->config->create_fault_count)) {
        fault = s->config->create_fault;
    }
    int code = s->config->create_delay > 0 ? sg->sleep(call, s->config->create_delay, err) : 0;
    if (code != 0) {
        return code;
    }
    bool done;
    code = fault_before(s, call, label, fault, &done, err);
    if (done) {
        return code;
    }
    char handle[HANDLE_BYTES];
    code = container_add(s->containers, call, label, spec->life_ms, handle, err);
    if (code != 0) {
        return code;
    }
    code = sg->emit(call, SG_OUT_HANDLE, handle, strlen(handle), err);
    if (code != 0) { /* nobody knows of it */
        container_remove(s->containers, call, handle, "destroy");
        return code;
    }
    if (fault_is(fault, "fail_after_handle")) {
        return fail_create(s, call, label, SG_E_UNAVAILABLE, err);
    }
    return fault_is(fault, "hang_after_handle") ? sandbox_hang(call, err) : 0;
}

static int destroy(void *self, struct sg_call *call, const char *handle, struct sg_error *err)
{
    struct sandbox *s = self;
    const char *fault = s->config->destroy_fault;
    bool goes_wrong = !fault_is(fault, "none") &&
                      count_allows(&s->destroys_failed, s->config->destroy_fault_count);
    int code = s->config->destroy_delay > 0 ? sg->sleep(call, s->config->destroy_delay, err) : 0;
    if (code != 0) {
        return code;
    }
    if (goes_wrong && fault_is(fault, "hang")) {
        return sandbox_hang(call, err);
    }
    if (goes_wrong) {
        journal_printf(&s->journal, call, "destroy_failed %s live=%zu", container_label(handle),
                       containers_live(s->containers));
        return sg->fail(err, SG_E_UNAVAILABLE, "destroy was refused");
    }
    container_remove(s->containers, call, handle, "destroy");
    return 0; /* one that is gone already is a success */
}

/* For the operations on a container that must be there. */
static int use(struct sandbox *s, struct sg_call *call, const char *handle, struct container **ret,
               struct sg_error *err)
{
    *ret = container_use(s->containers, call, handle);
    return *ret != NULL ? 0 : sg->fail(err, SG_E_GONE, "the container no longer exists");
}

static int touch(void *self, struct sg_call *call, const char *handle, int64_t life_ms,
                 struct sg_error *err)
{
    struct sandbox *s = self;
    const char *fault = s->config->touch_fault;
    journal_printf(&s->journal, call, "touch %s", container_label(handle));
    if (fault_is(fault, "refuse")) {
        return sg->fail(err, SG_E_UNAVAILABLE, "touch was refused");
    }
    if (fault_is(fault, "hang")) {
        return sandbox_hang(call, err);
    }
    if (fault_is(fault, "gone")) {
        container_remove(s->containers, call, handle, "die");
    }
    struct container *one;
    int code = use(s, call, handle, &one, err);
    if (code == 0) {
        container_touch(s->containers, one, life_ms);
        container_release(s->containers, call, one);
    }
    return code;
}

static int interrupt(void *self, struct sg_call *call, const char *handle, struct sg_error *err)
{
    struct sandbox *s = self;
    struct container *one;
    journal_printf(&s->journal, call, "interrupt %s", container_label(handle));
    int code = use(s, call, handle, &one, err);
    if (code == 0) {
        container_interrupt(s->containers, one);
        container_release(s->containers, call, one);
    }
    return code;
}

static int normalize(const char *path, char ret[PATH_BYTES], struct sg_error *err)
{
    return path_normalize(path, ret)
               ? 0
               : sg->fail(err, SG_E_INVALID, "'%s' is not a path within the container", path);
}

static int put(void *self, struct sg_call *call, const char *handle, const char *path,
               const void *data, size_t len, struct sg_error *err)
{
    struct sandbox *s = self;
    struct container *one;
    char full[PATH_BYTES];
    int code = normalize(path, full, err);
    if (code == 0) {
        code = use(s, call, handle, &one, err);
    }
    if (code == 0) {
        code = container_put(s->containers, one, full, data, len, err);
        container_release(s->containers, call, one);
    }
    return code;
}

static int get(void *self, struct sg_call *call, const char *handle, const char *path,
               struct sg_error *err)
{
    struct sandbox *s = self;
    struct container *one;
    char full[PATH_BYTES];
    const void *data = NULL;
    size_t len = 0;
    int code = normalize(path, full, err);
    if (code == 0) {
        code = use(s, call, handle, &one, err);
    }
    if (code == 0) {
        code = container_get(s->containers, one, call, full, &data, &len, err);
        container_release(s->containers, call, one);
    }
    return code != 0 ? code : sg->emit(call, SG_OUT_DATA, data, len, err);
}

static int list(void *self, struct sg_call *call, const char *handle, const char *path,
                struct sg_error *err)
{
    struct sandbox *s = self;
    struct container *one;
    char full[PATH_BYTES];
    TEXT_CLEANUP struct text entries = {0};
    int code = normalize(path == NULL || path[0] == '\0' ? "." : path, full, err);
    if (code == 0) {
        code = use(s, call, handle, &one, err);
    }
    if (code == 0) {
        code = container_list(s->containers, one, full, &entries, err);
        container_release(s->containers, call, one);
    }
    for (size_t at = 0; code == 0 && at < entries.len;) {
        size_t len = strlen(entries.data + at);
        code = sg->emit(call, SG_OUT_FILE, entries.data + at, len, err);
        at += len + 1;
    }
    return code;
}

static const struct sg_sandbox_ops operations = {
    .create = create,
    .run = sandbox_run,
    .destroy = destroy,
    .touch = touch,
    .interrupt = interrupt,
    .put = put,
    .get = get,
    .list = list,
    .account = account,
};

const struct sg_plugin mock_sandbox = {
    .name = "mock",
    .help = "A sandbox without Python: a few words of it and of a shell, rules, and every fault on "
            "demand.",
    .options = options,
    .config_size = sizeof(struct sandbox_config),
    .open = open_instance,
    .close = close_instance,
    .sandbox = &operations,
    .flags = SG_ON_LOOP | SG_DURABLE,
};
