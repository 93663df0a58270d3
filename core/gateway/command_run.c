/* sandgate run: code in a configured sandbox, from the shell. The same registry and leases as behind the gateway, with
 * one loop, one plugin and one container that ends with the run, whatever happens. */
#include "gateway/command.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "gateway/life.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    EXIT_RAISED = 1,
    EXIT_USAGE = 2,
    EXIT_SANDBOX = 3,
    CODE_BYTES_MAX = 4 * 1024 * 1024,
    WRITE_BYTES = 4096 /* a pipe that can be written to takes so much at once */
};

struct job { /* one run */
    const struct sandbox *sandbox;
    const char *language; /* NULL: python */
    struct str code;
    bool has_raised; /* or it is a command that failed */
};

/* ---- the code ---- */

static int read_all(int fd, const char *name, struct buf *ret)
{
    for (;;) {
        char *room = buf_reserve(ret, 64 * 1024);
        ssize_t got = room == NULL ? 0 : read(fd, room, 64 * 1024);
        if (got > 0) {
            buf_commit(ret, (size_t)got);
        }
        if (ret->overflow) {
            fprintf(stderr, "sandgate run: %s is larger than %d MiB\n", name,
                    CODE_BYTES_MAX / (1024 * 1024));
            return EXIT_USAGE;
        }
        if (got < 0 && errno != EINTR) {
            fprintf(stderr, "sandgate run: cannot read %s: %s\n", name, strerrordesc_np(errno));
            return EXIT_USAGE;
        }
        if (got == 0) {
            return 0;
        }
    }
}

static int read_file(const char *path, struct buf *ret)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        fprintf(stderr, "sandgate run: cannot read %s: %s\n", path, strerrordesc_np(errno));
        return EXIT_USAGE;
    }
    int code = read_all(fd, path, ret);
    (void)close(fd); /* only read */
    return code;
}

/* A name of one word that ends in ".py" was meant as a file, not as Python. */
static bool looks_like_file(const char *argument)
{
    size_t len = strlen(argument);
    return len > 3 && strcmp(argument + len - 3, ".py") == 0 && strpbrk(argument, " \t\n(") == NULL;
}

/* Standard input for "-" and for no argument; a file if there is one of that name; else the argument itself. */
static int read_code(const char *argument, struct buf *ret)
{
    struct stat found;
    if (argument == NULL || strcmp(argument, "-") == 0) {
        return read_all(STDIN_FILENO, "standard input", ret);
    }
    if (stat(argument, &found) == 0 && !S_ISDIR(found.st_mode)) {
        return read_file(argument, ret);
    }
    if (looks_like_file(argument)) {
        fprintf(stderr, "sandgate run: there is no file '%s'\n", argument);
        return EXIT_USAGE;
    }
    (void)buf_puts(ret, argument); /* the kernel's bound of an argument is far below ours */
    return 0;
}

/* ---- what it says ---- */

/* A file always takes more, and cannot be waited for. */
static bool takes_more(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    return poll(&one, 1, 0) == 1;
}

/* Waits until the descriptor takes more, so that a reader that is slow does not keep signals from being seen. */
static int put(int fd, struct str data, struct sg_error *err)
{
    while (data.len > 0) {
        int ready;
        int rc = takes_more(fd) ? 0 : fiber_wait_fd(fd, SG_WRITE, DEADLINE_NONE, &ready);
        if (rc != 0) {
            return error_set(err, rc, "the run was given up");
        }
        ssize_t put = write(fd, data.data, data.len < WRITE_BYTES ? data.len : WRITE_BYTES);
        if (put < 0 && errno != EINTR && errno != EAGAIN) {
            return error_set(err, SG_E_UNAVAILABLE, "cannot write the output: %s",
                             strerrordesc_np(errno));
        }
        size_t done = put > 0 ? (size_t)put : 0;
        data = (struct str){data.data + done, data.len - done};
    }
    return 0;
}

/* The text of a member of a JSON object; empty where it is missing. */
static struct str member_text(const struct json_text *object, const char *name, struct arena *arena)
{
    const struct json_member *member = json_find(object->members, object->count, name);
    return member != NULL && member->value.type == JSON_STRING ? json_text_of(member->value, arena)
                                                               : (struct str){0};
}

static void end_line(struct buf *out)
{
    if (out->len > 0 && out->data[out->len - 1] != '\n') {
        (void)buf_putc(out, '\n'); /* overflow shows in the buffer */
    }
}

void run_put_result(struct str bundle_json, struct buf *out)
{
    struct arena *arena = arena_new(0);
    struct json_text bundle;
    struct sg_error ignored = {0};
    if (json_scan(bundle_json, arena, &bundle, &ignored) == 0) {
        struct str text = member_text(&bundle, "text/plain", arena);
        (void)buf_append_str(out, text);
        for (size_t i = 0; text.len == 0 && i < bundle.count; i++) {
            (void)buf_printf(out, "%s%.*s%s", i == 0 ? "[" : ", ", (int)bundle.members[i].key.len,
                             bundle.members[i].key.data, i + 1 == bundle.count ? "]" : "");
        }
        end_line(out);
    }
    arena_free(arena);
}

void run_put_exception(struct str exception_json, struct buf *out)
{
    struct arena *arena = arena_new(0);
    struct json_text exception;
    struct sg_error ignored = {0};
    if (json_scan(exception_json, arena, &exception, &ignored) == 0) {
        struct str traceback = member_text(&exception, "traceback", arena);
        struct str name = member_text(&exception, "name", arena);
        struct str value = member_text(&exception, "value", arena);
        (void)buf_append_str(out, traceback);
        if (traceback.len == 0) {
            (void)buf_append_str(out, name);
            (void)buf_puts(out, value.len > 0 ? ": " : "");
            (void)buf_append_str(out, value);
        }
        end_line(out);
    }
    arena_free(arena);
}

bool run_put_exit(struct str status_json, struct buf *out)
{
    struct arena *arena = arena_new(0);
    struct json_text status;
    struct sg_error ignored = {0};
    int64_t code = 0;
    if (json_scan(status_json, arena, &status, &ignored) == 0 &&
        str_is(member_text(&status, "state", arena), "exited")) {
        const struct json_member *member =
            json_find_type(status.members, status.count, "code", JSON_NUMBER);
        if (member != NULL) {
            (void)json_int_of(member->value, &code); /* what is none leaves it at 0 */
        }
    }
    if (code != 0) {
        (void)buf_printf(out, "[exit status %lld]\n", (long long)code);
    }
    arena_free(arena);
    return code != 0;
}

static int on_event(void *ctx, enum sg_out kind, const void *data, size_t len, struct sg_error *err)
{
    struct job *job = ctx;
    struct str given = {data, len};
    BUF_CLEANUP struct buf text = {0};
    switch (kind) {
    case SG_OUT_LOG_OUT:
        return put(STDOUT_FILENO, given, err);
    case SG_OUT_LOG_ERR:
        return put(STDERR_FILENO, given, err);
    case SG_OUT_RESULT:
        run_put_result(given, &text);
        return put(STDOUT_FILENO, buf_str(&text), err);
    case SG_OUT_EXCEPTION:
        job->has_raised = true;
        run_put_exception(given, &text);
        return put(STDERR_FILENO, buf_str(&text), err);
    case SG_OUT_STATUS:
        job->has_raised = run_put_exit(given, &text) || job->has_raised;
        return put(STDERR_FILENO, buf_str(&text), err);
    default:
        return 0; /* files go with the container */
    }
}

/* ---- the run ---- */

static int run_in_container(struct life *life, struct job *job, struct sg_error *err)
{
    struct acquire want = {.identity = STR("shell"),
                           .sandbox = job->sandbox,
                           .request_id = "run",
                           .deadline = DEADLINE_NONE};
    struct sg_run run = {.language = job->language,
                         .code = job->code.data,
                         .code_len = job->code.len,
                         .timeout_ms = job->sandbox->run_timeout_ms};
    struct sg_sink sink = {on_event, job};
    struct lease *lease = NULL;
    int rc = registry_acquire(life->gateway.registry, &want, &lease, err);
    rc = rc == 0 ? lease_run(lease, &run, &sink, NULL, err) : rc;
    lease_release(lease);
    return rc;
}

static int work(struct life *life)
{
    struct job *job = life->ctx;
    struct sg_error err = {0};
    int rc = gateway_make_registry(&life->gateway, &err);
    if (rc == 0) {
        rc = run_in_container(life, job, &err);
        if (registry_shutdown(life->gateway.registry, deadline_in(DELETIONS_MS)) > 0 && rc == 0) {
            rc = error_set(&err, SG_E_UNAVAILABLE,
                           "the container could not be deleted; it ends by its own life");
        }
    }
    if (life->stop_signal != 0) {
        return 128 + life->stop_signal;
    }
    if (rc != 0) {
        life_fail(life, NULL, &err);
        return EXIT_SANDBOX;
    }
    return job->has_raised ? EXIT_RAISED : 0;
}

static const struct sandbox *choose_sandbox(const struct config *config, const char *name)
{
    const char **names = arena_get(config->arena, (config->sandboxes_count + 1) * sizeof *names);
    for (size_t i = 0; i < config->sandboxes_count; i++) {
        names[i] = config->sandboxes[i].name;
        if (strcmp(names[i], name) == 0) {
            return &config->sandboxes[i];
        }
    }
    const char *near = conf_nearest(name, names, config->sandboxes_count);
    fprintf(stderr, "sandgate run: there is no sandbox '%s' in %s", name, config->file);
    if (near != NULL) {
        fprintf(stderr, "; did you mean '%s'?", near);
    }
    for (size_t i = 0; near == NULL && i < config->sandboxes_count; i++) {
        fprintf(stderr, "%s%s", i == 0 ? "; there is " : ", ", names[i]);
    }
    fprintf(stderr, "\n");
    return NULL;
}

static int run_with(struct config *config, const struct sandbox *sandbox, const char *language,
                    struct str code)
{
    struct job job = {.sandbox = sandbox, .language = language, .code = code};
    struct life life = {.gateway = {.config = config},
                        .signal_fd = -1,
                        .instances = &sandbox->instance,
                        .instances_count = 1,
                        .work = work,
                        .ctx = &job,
                        .stop_cancels = true,
                        .failure_code = EXIT_SANDBOX};
    log_set_level(SG_WARN); /* standard error is the code's */
    return life_live(&life, 1);
}

int command_run(const struct command_line *line)
{
    if (line->sandbox == NULL) {
        fprintf(stderr, "sandgate run: say which sandbox, with --sandbox NAME\n");
        return EXIT_USAGE;
    }
    struct config *config = command_read_config(line, false);
    if (config == NULL) {
        return EXIT_SANDBOX;
    }
    BUF_CLEANUP struct buf code = {.max = CODE_BYTES_MAX};
    const struct sandbox *sandbox = choose_sandbox(config, line->sandbox);
    int result = sandbox == NULL ? EXIT_USAGE : read_code(line->argument, &code);
    if (result == 0) {
        result =
            run_with(config, sandbox, line->language, code.data != NULL ? buf_str(&code) : STR(""));
    }
    config_free(config);
    return result;
}
