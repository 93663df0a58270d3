/* The table of functions that every plugin gets, and the small services in it. */
#include "plugin/call_internal.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/log.h"

#include <stdio.h>

/* ---- what the gateway offers ---- */

static struct core_services services; /* filled once, before any call that could use it */

void core_services_set(const struct core_services *table)
{
    services = *table;
}

static int not_available(const char *function, struct sg_error *err)
{
    return error_set(err, SG_E_INTERNAL, "%s() is not available here", function);
}

/* ---- messages ---- */

__attribute__((format(printf, 3, 4))) static void
host_log(struct sg_call *call, enum sg_level level, const char *format, ...)
{
    if (level < SG_DEBUG || level > SG_ERROR) {
        level = SG_INFO;
    }
    if (!log_wants(level)) {
        return;
    }
    char message[LOG_LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments); /* a cut message is still one */
    va_end(arguments);
    struct log_line line;
    log_begin(&line, level, "plugin");
    if (call != NULL) {
        log_text(&line, "plugin", call->instance->plugin->name);
        log_text(&line, "instance", call->instance->name);
        log_text(&line, "operation", call->operation);
        log_text(&line, "request", call->request_id);
    }
    log_text(&line, "message", message);
    log_end(&line);
}

__attribute__((format(printf, 3, 4))) static int host_fail(struct sg_error *err, enum sg_code code,
                                                           const char *format, ...)
{
    int known = (int)code > SG_OK && code <= SG_E_GONE_BEFORE ? (int)code : SG_E_INTERNAL;
    if (err != NULL) {
        va_list arguments;
        va_start(arguments, format);
        (void)error_vset(err, known, format, arguments); /* returns what was given */
        va_end(arguments);
    }
    return known;
}

static const char *host_message(const struct sg_error *err)
{
    return err == NULL ? "" : err->message;
}

/* ---- memory and time ---- */

static void *host_alloc(struct sg_call *call, size_t size)
{
    if (!call_is_ours(call, "alloc", NULL) || size > LIMIT_CALL_ARENA_BYTES - call->alloc_bytes) {
        return NULL;
    }
    void *memory = arena_alloc(call->arena, size);
    call->alloc_bytes += memory != NULL ? size : 0;
    return memory;
}

static int64_t host_time_left_ms(struct sg_call *call)
{
    if (call == NULL || call_is_cancelled(call)) {
        return 0;
    }
    int64_t now = clock_ms();
    if (call->deadline == DEADLINE_NONE) {
        return INT64_MAX;
    }
    return call->deadline > now ? call->deadline - now : 0;
}

static int host_sleep(struct sg_call *call, int64_t ms, struct sg_error *err)
{
    if (!call_is_ours(call, "sleep", err)) {
        return SG_E_INTERNAL;
    }
    int code = 0;
    if (call->place == CALL_ON_WORKER) {
        code = call_worker_sleep(call, deadline_in(ms < 0 ? 0 : ms));
    } else {
        code = fiber_sleep(ms);
    }
    return code == 0 ? 0 : call_wait_failed(call, "sleep", code, err);
}

/* ---- output, descriptors, threads ---- */

static int host_emit(struct sg_call *call, enum sg_out kind, const void *data, size_t len,
                     struct sg_error *err)
{
    return call_is_ours(call, "emit", err) ? call_emit(call, kind, data, len, err) : SG_E_INTERNAL;
}

struct wait_fd_arguments {
    int fd, events;
    int64_t deadline;
    int *ret_events;
};

static int part_wait_fd(struct sg_call *call, void *arguments, const struct sg_sink *sink,
                        struct sg_error *err)
{
    struct wait_fd_arguments *a = arguments;
    (void)sink;
    int code = fiber_wait_fd(a->fd, a->events, a->deadline, a->ret_events);
    if (code == SG_E_INVALID) {
        return error_set(err, code, "wait_fd(): %d is no open descriptor", a->fd);
    }
    if (code == SG_E_LIMIT) {
        return error_set(err, code,
                         "wait_fd(): the kernel has no watch left for a descriptor "
                         "(fs.epoll.max_user_watches)");
    }
    return code == 0 ? 0 : call_wait_failed(call, "wait_fd", code, err);
}

static int host_wait_fd(struct sg_call *call, int fd, int events, int64_t ms, int *ret_events,
                        struct sg_error *err)
{
    struct wait_fd_arguments arguments = {fd, events, deadline_in(ms), ret_events};
    if (!call_is_ours(call, "wait_fd", err)) {
        return SG_E_INTERNAL;
    }
    if (events == 0 || (events & ~(SG_READ | SG_WRITE)) != 0) {
        return error_set(err, SG_E_INVALID, "wait_fd(): events must be SG_READ, SG_WRITE or both");
    }
    return call_cross(call, "wait_fd", part_wait_fd, &arguments, NULL, err);
}

static int visit_worker(struct sg_call *call, int (*fn)(void *), void *arg, struct sg_error *err)
{
    struct worker_visit visit = {.task = {.lane = WORKER_CALL, .identity = call->identity}};
    call->visit = &visit;
    int code = fiber_visit_worker(&visit, fn, arg, err);
    call->visit = NULL;
    return code;
}

/* open() runs alone, before there are other threads: what blocks there disturbs nobody. */
static int host_blocking(struct sg_call *call, int (*fn)(void *), void *arg, struct sg_error *err)
{
    if (!call_is_ours(call, "blocking", err)) {
        return SG_E_INTERNAL;
    }
    if (call_is_cancelled(call)) {
        return call_wait_failed(call, "blocking", SG_E_CANCELLED, err);
    }
    bool is_here = call->place == CALL_ON_WORKER || loop_pool(call->home) == NULL;
    return is_here ? fn(arg) : visit_worker(call, fn, arg, err);
}

static const char *host_libexec_dir(struct sg_call *call)
{
    return call == NULL ? NULL : call->instance->libexec_dir;
}

static const char *host_identity(struct sg_call *call)
{
    bool is_told =
        call_is_ours(call, "identity", NULL) && call->instance->plugin->interceptor != NULL;
    return is_told ? call->identity.data : NULL; /* ended by a NUL; NULL in open() and close() */
}

static const char *host_tool_options(struct sg_call *call)
{
    return call_is_ours(call, "tool_options", NULL) ? call->tool_options : NULL;
}

/* ---- what the gateway does for interceptors ---- */

static int part_run_code(struct sg_call *call, void *arguments, const struct sg_sink *sink,
                         struct sg_error *err)
{
    return services.run_code(call, arguments, sink, err);
}

static int host_run_code(struct sg_call *call, const struct sg_run *run, const struct sg_sink *sink,
                         struct sg_error *err)
{
    struct sg_run copy;
    if (!call_is_ours(call, "run_code", err)) {
        return SG_E_INTERNAL;
    }
    struct_take(call, SG_STRUCT_RUN, run, 0, &copy, sizeof copy);
    return services.run_code == NULL
               ? not_available("run_code", err)
               : call_cross(call, "run_code", part_run_code, &copy, sink, err);
}

struct file_arguments {
    const char *path;
    const void *data;
    size_t len;
};

static int part_file_put(struct sg_call *call, void *arguments, const struct sg_sink *sink,
                         struct sg_error *err)
{
    struct file_arguments *a = arguments;
    (void)sink;
    return services.file_put(call, a->path, a->data, a->len, err);
}

static int host_file_put(struct sg_call *call, const char *path, const void *data, size_t len,
                         struct sg_error *err)
{
    struct file_arguments arguments = {path, data, len};
    if (!call_is_ours(call, "file_put", err)) {
        return SG_E_INTERNAL;
    }
    return services.file_put == NULL
               ? not_available("file_put", err)
               : call_cross(call, "file_put", part_file_put, &arguments, NULL, err);
}

static int part_file_get(struct sg_call *call, void *arguments, const struct sg_sink *sink,
                         struct sg_error *err)
{
    struct file_arguments *a = arguments;
    return services.file_get(call, a->path, sink, err);
}

static int host_file_get(struct sg_call *call, const char *path, const struct sg_sink *sink,
                         struct sg_error *err)
{
    struct file_arguments arguments = {.path = path};
    if (!call_is_ours(call, "file_get", err)) {
        return SG_E_INTERNAL;
    }
    return services.file_get == NULL
               ? not_available("file_get", err)
               : call_cross(call, "file_get", part_file_get, &arguments, sink, err);
}

static int part_file_list(struct sg_call *call, void *arguments, const struct sg_sink *sink,
                          struct sg_error *err)
{
    struct file_arguments *a = arguments;
    return services.file_list(call, a->path, sink, err);
}

static int host_file_list(struct sg_call *call, const char *path, const struct sg_sink *sink,
                          struct sg_error *err)
{
    struct file_arguments arguments = {.path = path};
    if (!call_is_ours(call, "file_list", err)) {
        return SG_E_INTERNAL;
    }
    return services.file_list == NULL
               ? not_available("file_list", err)
               : call_cross(call, "file_list", part_file_list, &arguments, sink, err);
}

static int part_search(struct sg_call *call, void *arguments, const struct sg_sink *sink,
                       struct sg_error *err)
{
    return services.search(call, arguments, sink, err);
}

static int host_search(struct sg_call *call, const struct sg_query *query,
                       const struct sg_sink *sink, struct sg_error *err)
{
    struct sg_query copy;
    if (!call_is_ours(call, "search", err)) {
        return SG_E_INTERNAL;
    }
    struct_take(call, SG_STRUCT_QUERY, query, 0, &copy, sizeof copy);
    return services.search == NULL ? not_available("search", err)
                                   : call_cross(call, "search", part_search, &copy, sink, err);
}

/* ---- the table ---- */

const struct sg_host *host_table(void)
{
    static const struct sg_host table = {
        .size = sizeof(struct sg_host),
        .abi_minor = SG_ABI_MINOR,
        .log = host_log,
        .fail = host_fail,
        .alloc = host_alloc,
        .time_left_ms = host_time_left_ms,
        .sleep = host_sleep,
        .http = host_http,
        .emit = host_emit,
        .wait_fd = host_wait_fd,
        .run_code = host_run_code,
        .file_put = host_file_put,
        .file_get = host_file_get,
        .file_list = host_file_list,
        .search = host_search,
        .blocking = host_blocking,
        .spawn = host_spawn,
        .wait_child = host_wait_child,
        .libexec_dir = host_libexec_dir,
        .message = host_message,
        .identity = host_identity,
        .tool_options = host_tool_options,
    };
    return &table;
}
