/* The host: recording, single-threaded. */
#include "fake_http.h"

#include <dlfcn.h>
#include <stdarg.h>

static void die(const char *what, const char *name)
{
    fprintf(stderr, "%s: %s\n", what, name);
    exit(2);
}

SG_PRINTF(3, 4)
static void host_log(struct sg_call *call, enum sg_level level, const char *format, ...)
{
    (void)level;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(call->logged, sizeof call->logged, format, arguments);
    va_end(arguments);
}

SG_PRINTF(3, 4)
static int host_fail(struct sg_error *err, enum sg_code code, const char *format, ...)
{
    if (err == NULL) { /* as in close() */
        return (int)code;
    }
    char message[sizeof err->message]; /* what message() gave may be among the arguments */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    memcpy(err->message, message, sizeof message);
    err->code = (int)code;
    return (int)code;
}

static void *host_alloc(struct sg_call *call, size_t size)
{
    if (size > ((size_t)16 << 20) - call->bytes) {
        return NULL;
    }
    call->bytes += size;
    call->blocks = realloc(call->blocks, (call->blocks_count + 1) * sizeof *call->blocks);
    return call->blocks[call->blocks_count++] = calloc(1, size == 0 ? 1 : size);
}

static int64_t host_time_left(struct sg_call *call)
{
    return call->time_left_ms == 0 ? 60000 : call->time_left_ms < 0 ? 0 : call->time_left_ms;
}

static int host_sleep(struct sg_call *call, int64_t ms, struct sg_error *err)
{
    call->sleeps++;
    if (call->on_sleep != NULL) {
        call->on_sleep(call, call->on_sleep_context);
    }
    if (call->sleeps > (call->sleeps_max == 0 ? 100000 : call->sleeps_max)) {
        int code = call->sleep_code == 0 ? SG_E_CANCELLED : call->sleep_code;
        return host_fail(err, (enum sg_code)code, "the call was ended");
    }
    call->slept_ms += ms;
    return 0;
}

static int host_emit(struct sg_call *call, enum sg_out kind, const void *data, size_t len,
                     struct sg_error *err)
{
    if (call->emits_max > 0 && call->outputs_count >= call->emits_max) {
        return host_fail(err, (enum sg_code)call->emit_code, "nobody listens any more");
    }
    call->outputs = realloc(call->outputs, (call->outputs_count + 1) * sizeof *call->outputs);
    struct output *output = &call->outputs[call->outputs_count++];
    *output = (struct output){kind, malloc(len + 1), len};
    if (len > 0) {
        memcpy(output->data, data, len);
    }
    output->data[len] = '\0';
    return 0;
}

static int send_events(struct sg_call *call, const struct sg_sink *sink, struct sg_error *err)
{
    size_t repeat = call->events_repeat == 0 ? 1 : call->events_repeat;
    for (size_t i = 0; i < repeat * call->events_count; i++) {
        const struct event *event = &call->events[i % call->events_count];
        size_t len = event->len == 0 ? strlen(event->data) : event->len;
        int code = sink->event(sink->ctx, event->kind, event->data, len, err);
        if (code != 0) {
            return code;
        }
        call->events_sent++;
    }
    return call->run_result == 0
               ? 0
               : host_fail(err, (enum sg_code)call->run_result, "%s", call->run_message);
}

static int host_run_code(struct sg_call *call, const struct sg_run *run, const struct sg_sink *sink,
                         struct sg_error *err)
{
    call->runs++;
    free(call->run_code);
    call->run_code = calloc(1, run->code_len + 1);
    memcpy(call->run_code, run->code, run->code_len);
    call->run_code_len = run->code_len;
    snprintf(call->run_language, sizeof call->run_language, "%s", run->language);
    call->run_timeout_ms = run->timeout_ms;
    return send_events(call, sink, err);
}

static void note(struct sg_call *call, const char *name, const char *value)
{
    size_t used = strlen(call->searched);
    if (value != NULL) {
        snprintf(call->searched + used, sizeof call->searched - used, "%s=%s;", name, value);
    }
}

/* text=x;count=5;allowed=a.org;country=NL; */
static int host_search(struct sg_call *call, const struct sg_query *query,
                       const struct sg_sink *sink, struct sg_error *err)
{
    char count[32];
    call->searches++;
    call->searched[0] = '\0';
    snprintf(count, sizeof count, "%lld", (long long)query->count_max);
    note(call, "text", query->text);
    note(call, "count", count);
    for (size_t i = 0; query->allowed != NULL && query->allowed[i] != NULL; i++) {
        note(call, "allowed", query->allowed[i]);
    }
    for (size_t i = 0; query->blocked != NULL && query->blocked[i] != NULL; i++) {
        note(call, "blocked", query->blocked[i]);
    }
    note(call, "country", query->country);
    note(call, "language", query->language);
    note(call, "freshness", query->freshness);
    return send_events(call, sink, err);
}

static const char *host_tool_options(struct sg_call *call)
{
    return call->tool_options;
}

static int file_note(struct sg_call *call, const struct sg_sink *sink, struct sg_error *err)
{
    return call->file_note == NULL ? 0
                                   : sink->event(sink->ctx, SG_OUT_STATUS, call->file_note,
                                                 strlen(call->file_note), err);
}

/* In pieces of 64 KiB, an empty one for an empty file. */
static int host_file_get(struct sg_call *call, const char *path, const struct sg_sink *sink,
                         struct sg_error *err)
{
    call->gets++;
    if (call->get_result != 0) {
        return host_fail(err, (enum sg_code)call->get_result, "%s", call->file_message);
    }
    int code = file_note(call, sink, err);
    for (size_t i = 0; code == 0 && i < call->files_count; i++) {
        const struct fake_file *file = &call->files[i];
        if (strcmp(file->path, path) != 0) {
            continue;
        }
        size_t len = file->len == 0 ? strlen(file->data) : file->len, at = 0;
        do {
            size_t part = len - at < 65536 ? len - at : 65536;
            code = sink->event(sink->ctx, SG_OUT_DATA, file->data + at, part, err);
            at += part;
        } while (code == 0 && at < len);
        return code;
    }
    return code != 0 ? code : host_fail(err, SG_E_NOT_FOUND, "there is no file '%s'", path);
}

static int host_file_put(struct sg_call *call, const char *path, const void *data, size_t len,
                         struct sg_error *err)
{
    call->puts++;
    if (call->put_result != 0) {
        return host_fail(err, (enum sg_code)call->put_result, "%s", call->file_message);
    }
    snprintf(call->put_path, sizeof call->put_path, "%s", path);
    free(call->put_data);
    call->put_data = calloc(1, len + 1);
    memcpy(call->put_data, data, len);
    call->put_len = len;
    return 0;
}

static int host_file_list(struct sg_call *call, const char *path, const struct sg_sink *sink,
                          struct sg_error *err)
{
    call->lists++;
    for (size_t i = 0; i < call->folders_count; i++) {
        if (strcmp(call->folders[i].path, path) != 0) {
            continue;
        }
        int code = file_note(call, sink, err);
        for (size_t k = 0; code == 0 && call->folders[i].entries[k] != NULL; k++) {
            const char *entry = call->folders[i].entries[k];
            code = sink->event(sink->ctx, SG_OUT_FILE, entry, strlen(entry), err);
        }
        return code != 0 || call->list_result == 0
                   ? code
                   : host_fail(err, (enum sg_code)call->list_result, "%s", call->file_message);
    }
    return host_fail(err, SG_E_NOT_FOUND, "there is no folder '%s'", path);
}

static const char *host_message(const struct sg_error *err)
{
    return err == NULL ? "" : err->message;
}

static const struct sg_host host = {
    .size = sizeof(struct sg_host),
    .abi_minor = SG_ABI_MINOR,
    .log = host_log,
    .fail = host_fail,
    .alloc = host_alloc,
    .time_left_ms = host_time_left,
    .sleep = host_sleep,
    .emit = host_emit,
    .run_code = host_run_code,
    .file_put = host_file_put,
    .file_get = host_file_get,
    .file_list = host_file_list,
    .message = host_message,
    .http = fake_http,
    .search = host_search,
    .tool_options = host_tool_options,
};

const struct sg_host *host_table(void)
{
    return &host;
}

const struct sg_plugin_set *host_load(const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.so", PLUGIN_DIR, name);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        die("cannot load", dlerror());
    }
    const struct sg_plugin_set *set = dlsym(handle, "sg_plugin_set");
    if (set == NULL || set->magic != SG_PLUGIN_MAGIC || set->abi_major != SG_ABI_MAJOR) {
        die("no plugin of this ABI", path);
    }
    *set->host = &host;
    return set;
}

struct sg_call *call_new(void)
{
    return calloc(1, sizeof(struct sg_call));
}

void call_free(struct sg_call *call)
{
    for (size_t i = 0; i < call->outputs_count; i++) {
        free(call->outputs[i].data);
    }
    for (size_t i = 0; i < call->blocks_count; i++) {
        free(call->blocks[i]);
    }
    free(call->outputs);
    free(call->blocks);
    free(call->run_code);
    free(call->put_data);
    fake_http_clear(call);
    free(call);
}

const char *call_text(struct sg_call *call, enum sg_out kind)
{
    size_t len = 0;
    for (size_t i = 0; i < call->outputs_count; i++) {
        len += call->outputs[i].kind == kind ? call->outputs[i].len : 0;
    }
    char *text = host_alloc(call, len + 1);
    if (text == NULL) {
        return "(too large)";
    }
    size_t at = 0;
    for (size_t i = 0; i < call->outputs_count; i++) {
        if (call->outputs[i].kind == kind) {
            memcpy(text + at, call->outputs[i].data, call->outputs[i].len);
            at += call->outputs[i].len;
        }
    }
    return text;
}

size_t call_count(const struct sg_call *call, enum sg_out kind)
{
    size_t count = 0;
    for (size_t i = 0; i < call->outputs_count; i++) {
        count += call->outputs[i].kind == kind;
    }
    return count;
}
