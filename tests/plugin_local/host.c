/* local.so under the core's real loops, fibers and calls. */
#include "host.h"

#include "base/check.h"
#include "loop/loop.h"
#include "loop/worker.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct loop *loop;
static struct instance instance;
static const struct sg_plugin_set *set;

/* ---- the plugin ---- */

static const struct sg_plugin_set *load(void)
{
    void *file = dlopen(PLUGIN_DIR "/local.so", RTLD_NOW | RTLD_LOCAL);
    if (file == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    const struct sg_plugin_set *loaded = dlsym(file, "sg_plugin_set");
    CHECK(loaded != NULL);
    *loaded->host = host_table();
    return loaded;
}

static uint64_t number_of(const char *text)
{
    char *end = NULL;
    uint64_t number = strtoull(text, &end, 10);
    return strcmp(end, "KiB") == 0   ? number << 10
           : strcmp(end, "MiB") == 0 ? number << 20
           : strcmp(end, "GiB") == 0 ? number << 30
                                     : number;
}

static const char *text_of(const struct host_options *options, const char *name)
{
    return strcmp(name, "python") == 0      ? options->python
           : strcmp(name, "cpu") == 0       ? options->cpu
           : strcmp(name, "isolation") == 0 ? options->isolation
                                            : NULL;
}

/* Fills the plugin's configuration from its own option table. */
static void *config_make(const struct sg_plugin *plugin, const struct host_options *options)
{
    char *config = check_alloc(calloc(1, plugin->config_size));
    const struct {
        const char *name;
        uint64_t value;
    } given[] = {
        {"memory", options->memory},           {"disk", options->disk},
        {"output", options->output},           {"results", options->results},
        {"inodes", (uint64_t)options->inodes}, {"processes", (uint64_t)options->processes},
        {"files", (uint64_t)options->files},   {"uid_base", (uint64_t)options->uid_base},
        {"boxes", (uint64_t)options->boxes},   {"pool", (uint64_t)options->pool},
    };
    static const char *const nothing[] = {NULL};
    for (const struct sg_option *option = plugin->options; option->name != NULL; option++) {
        if (option->type == SG_STRING || option->type == SG_CHOICE) {
            const char *given_text = text_of(options, option->name);
            const char *text = given_text != NULL ? given_text : option->def;
            memcpy(config + option->offset, &text, sizeof text);
            continue;
        }
        if (option->type == SG_STRINGS) {
            const char *const *texts = options->preload != NULL ? options->preload : nothing;
            memcpy(config + option->offset, &texts, sizeof texts);
            continue;
        }
        uint64_t value = strcmp(option->name, "pool") == 0 ? 0 : number_of(option->def);
        for (size_t i = 0; i < COUNT_OF(given); i++) {
            if (strcmp(given[i].name, option->name) == 0 && given[i].value != 0) {
                value = given[i].value;
            }
        }
        memcpy(config + option->offset, &value, sizeof value);
    }
    return config;
}

int host_open(const struct host_options *options, struct sg_error *err)
{
    static const struct host_options none;
    set = set != NULL ? set : load();
    const struct sg_plugin *plugin = set->plugins[0];
    void *config = config_make(plugin, options != NULL ? options : &none);
    const char *libexec = options != NULL ? options->libexec : NULL;
    instance = (struct instance){.name = "box",
                                 .plugin = plugin,
                                 .config = config,
                                 .libexec_dir = libexec != NULL ? libexec : PLUGIN_DIR "/libexec"};
    int code = instance_open(&instance, err);
    if (code != 0) {
        free(config);
    }
    return code;
}

void host_close(void)
{
    instance_close(&instance);
    free((void *)(uintptr_t)instance.config);
    instance.config = NULL;
}

/* How many children a process has; the first `max` of them. */
static size_t children_of(pid_t parent, pid_t *ret_pids, size_t max)
{
    char path[64], line[4096] = "";
    size_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    FILE *file = fopen(path, "re");
    if (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *at = line, *end = NULL;
        for (long pid; (pid = strtol(at, &end, 10)) > 0 && end != at; at = end, count++) {
            if (count < max) {
                ret_pids[count] = (pid_t)pid;
            }
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return count;
}

int64_t host_broker_pid(void)
{
    pid_t broker = -1; /* the only child of this process */
    return children_of(getpid(), &broker, 1) == 0 ? -1 : broker;
}

/* What a child of the broker is. One that has ended is neither. */
enum child { CHILD_BOX, CHILD_TEMPLATE, CHILD_GONE };

/* A box is the first process of a pid namespace below this one. */
static enum child child_kind(pid_t pid)
{
    char path[64], line[256];
    enum child kind = CHILD_GONE;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && kind == CHILD_GONE && fgets(line, sizeof line, file) != NULL) {
        size_t len = strlen(line);
        if (strncmp(line, "State:\tZ", 8) == 0) {
            break; /* it is not yet reaped */
        }
        if (strncmp(line, "NSpid:", 6) == 0) {
            kind = len > 3 && strcmp(line + len - 3, "\t1\n") == 0 ? CHILD_BOX : CHILD_TEMPLATE;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kind;
}

static size_t broker_children(enum child kind, pid_t *ret_pids, size_t max)
{
    pid_t all[512];
    size_t count = 0, all_count = children_of((pid_t)host_broker_pid(), all, COUNT_OF(all));
    for (size_t i = 0; i < all_count && i < COUNT_OF(all); i++) {
        if (child_kind(all[i]) == kind) {
            if (count < max) {
                ret_pids[count] = all[i];
            }
            count++;
        }
    }
    return count;
}

size_t host_boxes(pid_t *ret_pids, size_t max)
{
    return broker_children(CHILD_BOX, ret_pids, max);
}

bool host_await_boxes(size_t count, pid_t *ret_pids)
{
    while (host_boxes(ret_pids, count) != count) {
        if (fiber_sleep(1) != 0) {
            return false;
        }
    }
    return true;
}

size_t host_templates(pid_t *ret_pids, size_t max)
{
    return broker_children(CHILD_TEMPLATE, ret_pids, max);
}

pid_t host_await_template_but(pid_t other)
{
    pid_t pid = other;
    while (host_templates(&pid, 1) != 1 || pid == other) {
        if (fiber_sleep(1) != 0) {
            return -1;
        }
    }
    return pid;
}

/* ---- calls ---- */

struct arguments {
    const char *handle;
    struct sg_sandbox_spec spec;
    struct sg_run run;
    int64_t life_ms;
    const char *path;
    const void *data;
    size_t len;
};

static int invoke_create(const struct instance *i, struct sg_call *call, void *arguments,
                         struct sg_error *err)
{
    return i->plugin->sandbox->create(i->self, call, &((struct arguments *)arguments)->spec, err);
}

static int invoke_destroy(const struct instance *i, struct sg_call *call, void *arguments,
                          struct sg_error *err)
{
    return i->plugin->sandbox->destroy(i->self, call, ((struct arguments *)arguments)->handle, err);
}

static int invoke_touch(const struct instance *i, struct sg_call *call, void *arguments,
                        struct sg_error *err)
{
    struct arguments *a = arguments;
    return i->plugin->sandbox->touch(i->self, call, a->handle, a->life_ms, err);
}

static int invoke_interrupt(const struct instance *i, struct sg_call *call, void *arguments,
                            struct sg_error *err)
{
    return i->plugin->sandbox->interrupt(i->self, call, ((struct arguments *)arguments)->handle,
                                         err);
}

static int invoke_run(const struct instance *i, struct sg_call *call, void *arguments,
                      struct sg_error *err)
{
    struct arguments *a = arguments;
    return i->plugin->sandbox->run(i->self, call, a->handle, &a->run, err);
}

static int invoke_get(const struct instance *i, struct sg_call *call, void *arguments,
                      struct sg_error *err)
{
    struct arguments *a = arguments;
    return i->plugin->sandbox->get(i->self, call, a->handle, a->path, err);
}

static int invoke_list(const struct instance *i, struct sg_call *call, void *arguments,
                       struct sg_error *err)
{
    struct arguments *a = arguments;
    return i->plugin->sandbox->list(i->self, call, a->handle, a->path, err);
}

static int invoke_put(const struct instance *i, struct sg_call *call, void *arguments,
                      struct sg_error *err)
{
    struct arguments *a = arguments;
    return i->plugin->sandbox->put(i->self, call, a->handle, a->path, a->data, a->len, err);
}

static struct sg_call *call_make(const char *operation, const char *handle, int64_t deadline_ms,
                                 struct arguments **ret)
{
    struct sg_call *call = call_new(&instance, operation, NULL, NULL, deadline_in(deadline_ms));
    *ret = arena_get(call_arena(call), sizeof **ret);
    (*ret)->handle = handle == NULL ? NULL : arena_copy(call_arena(call), str_of(handle));
    return call;
}

static int take_handle(void *ctx, enum sg_out kind, const void *data, size_t len,
                       struct sg_error *err)
{
    (void)err;
    if (kind == SG_OUT_HANDLE) {
        snprintf(ctx, 128, "%.*s", (int)len, (const char *)data);
    }
    return 0;
}

int host_create(int64_t life_ms, char handle[128], struct sg_error *err)
{
    struct arguments *arguments;
    struct sg_call *call = call_make("create", NULL, 60000, &arguments);
    const struct sg_sink sink = {take_handle, handle};
    handle[0] = '\0';
    arguments->spec = (struct sg_sandbox_spec){.label = "l", .idle_ms = 900000, .life_ms = life_ms};
    return call_run(call, invoke_create, arguments, &sink, err);
}

void host_create_abandon(int64_t after_ms)
{
    struct arguments *arguments;
    struct sg_call *call = call_make("create", NULL, 60000, &arguments);
    arguments->spec = (struct sg_sandbox_spec){.label = "l", .idle_ms = 900000, .life_ms = 600000};
    call_start(call, invoke_create, arguments);
    CHECK(fiber_sleep(after_ms) == 0);
    call_cancel(call);
    call_wait_end(call);
    call_unref(call);
}

int host_destroy(const char *handle, struct sg_error *err)
{
    struct arguments *arguments;
    struct sg_call *call = call_make("destroy", handle, 20000, &arguments);
    return call_run(call, invoke_destroy, arguments, NULL, err);
}

int host_touch(const char *handle, int64_t life_ms, struct sg_error *err)
{
    struct arguments *arguments;
    struct sg_call *call = call_make("touch", handle, 20000, &arguments);
    arguments->life_ms = life_ms;
    return call_run(call, invoke_touch, arguments, NULL, err);
}

int host_interrupt(const char *handle, struct sg_error *err)
{
    struct arguments *arguments;
    struct sg_call *call = call_make("interrupt", handle, 20000, &arguments);
    return call_run(call, invoke_interrupt, arguments, NULL, err);
}

/* ---- runs ---- */

void outcome_clear(struct outcome *outcome)
{
    buf_clear(&outcome->all);
    buf_clear(&outcome->out);
    buf_clear(&outcome->err);
    buf_clear(&outcome->exception);
    buf_clear(&outcome->results);
    buf_clear(&outcome->files);
    *outcome = (struct outcome){0};
}

static const char *kind_name(enum sg_out kind)
{
    return kind == SG_OUT_LOG_OUT     ? "[out]"
           : kind == SG_OUT_LOG_ERR   ? "[err]"
           : kind == SG_OUT_RESULT    ? "[result]"
           : kind == SG_OUT_EXCEPTION ? "[exception]"
           : kind == SG_OUT_STATUS    ? "[status]"
           : kind == SG_OUT_DATA      ? "[data]"
           : kind == SG_OUT_FILE      ? "[file]"
                                      : "[?]";
}

static int take_output(void *ctx, enum sg_out kind, const void *data, size_t len,
                       struct sg_error *err)
{
    (void)err;
    struct outcome *outcome = ctx;
    if (kind == SG_OUT_FILE && outcome->is_run) {
        buf_append(&outcome->files, data, len);
        buf_putc(&outcome->files, '\n');
        return 0;
    }
    if (outcome->first_us == 0) {
        outcome->first_us = clock_us();
    }
    /* Text comes in as many pieces as time makes of it; what counts is the whole. */
    bool goes_on = kind == outcome->last && (kind == SG_OUT_LOG_OUT || kind == SG_OUT_LOG_ERR);
    buf_puts(&outcome->all, goes_on ? "" : kind_name(kind));
    buf_append(&outcome->all, data, len);
    outcome->last = kind;
    outcome->pieces++;
    if (kind == SG_OUT_LOG_OUT || kind == SG_OUT_DATA) {
        buf_append(&outcome->out, data, len);
    } else if (kind == SG_OUT_LOG_ERR) {
        buf_append(&outcome->err, data, len);
    } else if (kind == SG_OUT_EXCEPTION) {
        buf_append(&outcome->exception, data, len);
    } else if (kind == SG_OUT_RESULT || kind == SG_OUT_FILE) {
        buf_append(&outcome->results, data, len);
        buf_putc(&outcome->results, '\n');
    }
    return 0;
}

static struct sg_call *run_make(const char *handle, const char *language, const char *code,
                                size_t code_len, int64_t timeout_ms, struct arguments **ret)
{
    struct sg_call *call = call_make("run", handle, timeout_ms + 5000, ret);
    struct str text = {code, code_len};
    (*ret)->run = (struct sg_run){.language = language,
                                  .code = arena_copy(call_arena(call), text),
                                  .code_len = code_len,
                                  .timeout_ms = timeout_ms};
    return call;
}

/* Empty, but with texts that can be looked at. */
static void outcome_begin(struct outcome *outcome)
{
    outcome_clear(outcome);
    struct buf *texts[] = {&outcome->all,       &outcome->out,     &outcome->err,
                           &outcome->exception, &outcome->results, &outcome->files};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        buf_puts(texts[i], "");
    }
}

static void use_file(const char *operation, call_invoke *invoke, const char *handle,
                     const char *path, struct str data, struct outcome *ret)
{
    struct arguments *arguments;
    struct sg_call *call = call_make(operation, handle, 60000, &arguments);
    const struct sg_sink sink = {take_output, ret};
    outcome_begin(ret);
    arguments->path = arena_copy(call_arena(call), str_of(path));
    arguments->data = arena_copy(call_arena(call), data);
    arguments->len = data.len;
    int64_t start_us = clock_us();
    ret->code = call_run(call, invoke, arguments, &sink, &ret->error);
    ret->took_us = clock_us() - start_us;
}

void host_get(const char *handle, const char *path, struct outcome *ret)
{
    use_file("get", invoke_get, handle, path, STR(""), ret);
}

void host_list(const char *handle, const char *path, struct outcome *ret)
{
    use_file("list", invoke_list, handle, path, STR(""), ret);
}

void host_put(const char *handle, const char *path, const void *data, size_t len,
              struct outcome *ret)
{
    use_file("put", invoke_put, handle, path, (struct str){data, len}, ret);
}

void host_put_abandon(const char *handle, const char *path, size_t len, int64_t after_ms,
                      struct sg_error *err)
{
    struct arguments *arguments;
    struct sg_call *call = call_make("put", handle, 60000, &arguments);
    arguments->path = arena_copy(call_arena(call), str_of(path));
    arguments->data = arena_get(call_arena(call), len);
    arguments->len = len;
    call_start(call, invoke_put, arguments);
    CHECK(fiber_sleep(after_ms) == 0);
    call_cancel(call);
    call_wait_end(call);
    (void)call_result(call, err);
    call_unref(call);
}

void host_exec(const char *handle, const char *language, const char *code, size_t code_len,
               int64_t timeout_ms, struct outcome *ret)
{
    struct arguments *arguments;
    outcome_begin(ret);
    ret->is_run = true;
    struct sg_call *call = run_make(handle, language, code, code_len, timeout_ms, &arguments);
    const struct sg_sink sink = {take_output, ret};
    int64_t start_us = clock_us();
    ret->code = call_run(call, invoke_run, arguments, &sink, &ret->error);
    ret->took_us = clock_us() - start_us;
    ret->first_us = ret->first_us == 0 ? -1 : ret->first_us - start_us;
}

struct background {
    const char *handle, *language, *code;
    int64_t timeout_ms;
    struct outcome *ret;
    bool ended;
};

static void run_in_background(void *arg)
{
    struct background *background = arg;
    host_exec(background->handle, background->language, background->code, strlen(background->code),
              background->timeout_ms, background->ret);
    background->ended = true;
}

struct background *host_exec_background(const char *handle, const char *code, int64_t timeout_ms,
                                        struct outcome *ret)
{
    return host_exec_background_in(handle, "python", code, timeout_ms, ret);
}

struct background *host_exec_background_in(const char *handle, const char *language,
                                           const char *code, int64_t timeout_ms,
                                           struct outcome *ret)
{
    struct background *background = check_alloc(calloc(1, sizeof *background));
    struct sg_error err = {0};
    struct fiber *fiber = NULL;
    *background = (struct background){handle, language, code, timeout_ms, ret, false};
    CHECK(fiber_start(loop, "background", run_in_background, background, &fiber, &err) == 0);
    return background;
}

bool host_has_ended(const struct background *background)
{
    return background->ended;
}

void host_finish(struct background *background)
{
    while (!background->ended) {
        CHECK(fiber_sleep(1) == 0);
    }
    free(background);
}

void host_exec_abandon(const char *handle, const char *code, const char *until_output)
{
    struct arguments *arguments;
    struct call_output output;
    struct sg_call *call = run_make(handle, "python", code, strlen(code), 60000, &arguments);
    call_start(call, invoke_run, arguments);
    while (call_next(call, &output) == 1) {
        if (output.data.len >= strlen(until_output) &&
            memmem(output.data.data, output.data.len, until_output, strlen(until_output)) != NULL) {
            break;
        }
    }
    call_cancel(call);
    call_wait_end(call);
    call_unref(call);
}

/* ---- the loop ---- */

void host_start(void (*fiber)(void *), void *arg)
{
    struct sg_error err = {0};
    struct fiber *started = NULL;
    CHECK(fiber_start(loop, "beside", fiber, arg, &started, &err) == 0);
}

struct main_fiber {
    void (*run)(void *);
    void *arg;
};

static void stop_when_alone(void *arg)
{
    (void)arg;
    while (loop_fibers(loop) > 1) {
        CHECK(fiber_sleep(1) == 0);
    }
    loop_stop(loop);
}

void host_run(void (*fiber)(void *), void *arg)
{
    struct sg_error err = {0};
    struct fiber *started = NULL;
    CHECK(loop_new(0, NULL, &loop, &err) == 0);
    CHECK(fiber_start(loop, "test", fiber, arg, &started, &err) == 0);
    CHECK(fiber_start(loop, "stop", stop_when_alone, NULL, &started, &err) == 0);
    loop_run(loop);
    loop_free(loop);
    loop = NULL;
}
