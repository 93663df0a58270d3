/* What plugins may ask of the gateway (sg->run_code, files; sg->search is in search.c): the core's part runs in a fiber of the request's
 * loop and reaches the request through the call's context. */
#include "gateway/service.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "gateway/metrics.h"

#include <stdio.h>
#include <string.h>

int service_request(struct sg_call *call, struct request **ret, struct sg_error *err)
{
    struct request *r = call_context(call);
    if (call_is_cancelled(call)) {
        return error_set(err, SG_E_CANCELLED, "the request has ended");
    }
    if (r == NULL || r->active_tool == NULL) {
        return error_set(err, SG_E_INTERNAL, "this is possible in a tool's call() only");
    }
    CHECK_MAGIC(r, REQUEST_MAGIC);
    *ret = r;
    return 0;
}

/* The provider's own words, without the names of plugin and instance that the call mechanism put in front. */
static const char *without_names(const struct instance *instance, const char *message)
{
    char names[200];
    const char *plugin = instance->plugin->name;
    int len = strcmp(plugin, instance->name) == 0
                  ? snprintf(names, sizeof names, "%s: ", plugin)
                  : snprintf(names, sizeof names, "%s (%s): ", plugin, instance->name);
    bool stands = len > 0 && strncmp(message, names, (size_t)len) == 0;
    return stands ? message + len : message;
}

static const struct failure_texts create_texts = {
    .limit = "All sandboxes are in use, and none became free in time.",
    .timeout = "No sandbox could be had in time: too much else is going on. Try again in a moment.",
    .other = "The sandbox could not be made.",
};
static const struct failure_texts run_texts = {
    .tells_ends = true,
    .limit = "The sandbox is at its limit.",
    .other = "The sandbox failed.",
};
/* Behind output, or a word of it, it is the run that was at a limit, or that broke off. */
static const struct failure_texts begun_run_texts = {
    .tells_ends = true,
    .tells_limits = true,
    .other = "The sandbox failed while this ran: it may have had effects.",
};
static const struct failure_texts language_texts = {
    .other = "The sandbox cannot run this language.",
};
static const struct failure_texts file_texts = {
    .tells_ends = true,
    .tells_limits = true,
    .tells_files = true,
    .other = "The sandbox failed.",
};
/* There is none, or it is a folder: the model's mistake, and nobody's failure. */
static bool is_of_file(const struct failure_texts *texts, int code)
{
    return texts->tells_files && (code == SG_E_NOT_FOUND || code == SG_E_INVALID);
}

static enum sg_level level_of(const struct failure_texts *texts, int code)
{
    return is_of_file(texts, code) ? SG_DEBUG : code == SG_E_TIMEOUT ? SG_INFO : SG_WARN;
}

static bool is_told(const struct failure_texts *texts, int code)
{
    bool is_end = code == SG_E_TIMEOUT || code == SG_E_GONE || code == SG_E_GONE_BEFORE;
    return (texts->tells_ends && is_end) || (texts->tells_limits && code == SG_E_LIMIT) ||
           is_of_file(texts, code);
}

static const char *general_text(const struct failure_texts *texts, int code)
{
    return code == SG_E_LIMIT ? texts->limit : code == SG_E_TIMEOUT ? texts->timeout : texts->other;
}

int service_report(struct request *r, const struct instance *instance, const char *operation,
                   const struct failure_texts *texts, struct sg_error *err)
{
    if (err->code == SG_E_CANCELLED) {
        return err->code;
    }
    struct log_line line;
    log_begin(&line, level_of(texts, err->code), "service_failed");
    log_text(&line, "request", r->id);
    log_text(&line, "operation", operation);
    log_text(&line, "error", error_code_name(err->code));
    log_text(&line, "message", err->message);
    log_end(&line);
    char said[ERROR_MESSAGE_BYTES];
    (void)snprintf(said, sizeof said, "%s",
                   is_told(texts, err->code) ? without_names(instance, err->message)
                                             : general_text(texts, err->code));
    return error_set(err, err->code, "%s", said);
}

static void count_sandbox_error(const struct request *r, int code)
{
    if (code != 0 && code != SG_E_CANCELLED) {
        metrics_sandbox_error(r->gateway->metrics, r->active_tool->interceptor->sandbox, code);
    }
}

static const struct instance *sandbox_instance(const struct request *r)
{
    return r->active_tool->interceptor->sandbox->instance;
}

/* The request's container: made at the first use, not before. */
static int take_lease(struct request *r, struct sg_error *err)
{
    const struct sandbox *sandbox = r->active_tool->interceptor->sandbox;
    if (sandbox == NULL) {
        return error_set(err, SG_E_INTERNAL, "this interceptor has no sandbox");
    }
    if (r->lease != NULL) {
        return 0;
    }
    int rc = container_take(r, sandbox, err);
    if (rc == 0) {
        return 0;
    }
    count_sandbox_error(r, rc);
    rc = service_report(r, sandbox->instance, "create", &create_texts, err);
    if (rc != SG_E_CANCELLED && rc != SG_E_LIMIT) {
        err->code = SG_E_UNAVAILABLE; /* else it would read as the end of what has not begun */
    }
    return err->code;
}

/* What a service of a sandbox begins with: whose request it is, and its container. */
static int sandbox_begin(struct sg_call *call, struct request **ret, struct sg_error *err)
{
    int rc = service_request(call, ret, err);
    return rc == 0 ? take_lease(*ret, err) : rc;
}

/* Passes a run's events on, after the word that earlier state was lost, if it was. */
struct loss_sink {
    struct request *request;
    const struct sg_sink *to;
    bool has_raised;
    bool has_refused; /* what failed is the interceptor's own wish */
    bool has_output;  /* so what the run ended by is its own limit, not the sandbox's */
};

static int announce_loss(struct loss_sink *sink, struct sg_error *err)
{
    static const char replaced[] = "{\"state\":\"lost\",\"note\":\"The sandbox of this session was "
                                   "lost and has been replaced: "
                                   "earlier variables and files are gone.\"}";
    static const char ended[] =
        "{\"state\":\"lost\",\"note\":\"This is a new sandbox, since that of "
        "the calls before has ended: "
        "earlier variables and files are gone.\"}";
    static const char perhaps[] =
        "{\"state\":\"lost\",\"note\":\"This is a new sandbox: variables and files of earlier runs "
        "in this conversation, if there were any, are gone.\"}";
    struct request *r = sink->request;
    struct str note = {0};
    if (lease_take_loss(r->lease)) {
        note = STR(replaced);
    } else if (r->has_lost_container) {
        note = STR(ended);
    } else if (r->may_have_lost) {
        note = STR(perhaps);
    }
    r->has_lost_container = r->may_have_lost = false;
    r->has_told_loss = r->has_told_loss || note.len > 0;
    return note.len == 0 ? 0
                         : sink->to->event(sink->to->ctx, SG_OUT_STATUS, note.data, note.len, err);
}

static int pass_event(void *ctx, enum sg_out kind, const void *data, size_t len,
                      struct sg_error *err)
{
    struct loss_sink *sink = ctx;
    sink->has_raised = sink->has_raised || kind == SG_OUT_EXCEPTION;
    sink->has_output = true;
    int rc = announce_loss(sink, err);
    rc = rc == 0 ? sink->to->event(sink->to->ctx, kind, data, len, err) : rc;
    sink->has_refused = sink->has_refused || rc != 0;
    return rc;
}

static void count_run(const struct request *r, int code, bool has_raised, int64_t us)
{
    enum metric_run outcome = METRIC_RUN_FAILED;
    if (code == 0) {
        outcome = has_raised ? METRIC_RUN_RAISED : METRIC_RUN_COMPLETED;
    } else if (code == SG_E_TIMEOUT) {
        outcome = METRIC_RUN_TIMEOUT;
    } else if (code == SG_E_GONE || code == SG_E_GONE_BEFORE) {
        outcome = METRIC_RUN_GONE;
    } else if (code == SG_E_CANCELLED) {
        outcome = METRIC_RUN_CANCELLED;
    }
    metrics_run(r->gateway->metrics, r->active_tool->interceptor->sandbox, outcome, us);
    count_sandbox_error(r, code);
}

/* Nobody wants it any more: of a run that had not begun there is nothing to tell then. */
static bool gave_up(int code)
{
    return code == SG_E_CANCELLED || code == SG_E_TIMEOUT;
}

static const struct failure_texts *texts_of_run(const struct sg_run *run,
                                                const struct loss_sink *sink, int code)
{
    if (code == SG_E_INVALID && run->language != NULL && strcmp(run->language, "python") != 0) {
        return &language_texts;
    }
    return sink->has_output ? &begun_run_texts : &run_texts;
}

static int run_code(struct sg_call *call, const struct sg_run *wanted, const struct sg_sink *to,
                    struct sg_error *err)
{
    struct request *r;
    int rc = sandbox_begin(call, &r, err);
    if (rc != 0) {
        return rc;
    }
    struct sg_run run = *wanted;
    if (run.timeout_ms <= 0) {
        run.timeout_ms = r->active_tool->interceptor->sandbox->run_timeout_ms;
    }
    unsigned runs_before = r->runs;
    struct loss_sink sink = {.request = r, .to = to};
    struct sg_sink passing = {pass_event, &sink};
    int64_t began_us = clock_us();
    rc = lease_run(r->lease, &run, &passing, &r->runs, err);
    r->code_runs += r->runs - runs_before;
    if (r->runs != runs_before || !gave_up(rc)) {
        count_run(r, rc, sink.has_raised, clock_us() - began_us);
    }
    struct sg_error ignored = {0};
    if (rc != SG_E_CANCELLED && announce_loss(&sink, &ignored) != 0) {
        return rc != 0 ? rc : ignored.code; /* nothing was shown, yet what was lost must be said */
    }
    return rc == 0
               ? 0
               : service_report(r, sandbox_instance(r), "run", texts_of_run(&run, &sink, rc), err);
}

/* ---- files ---- */

/* Whose request it is, and its container. A sandbox that has no such function is asked for none: `is_offered`. */
static int files_begin(struct sg_call *call, bool (*is_offered)(const struct sg_sandbox_ops *),
                       struct request **ret, struct sg_error *err)
{
    int rc = service_request(call, ret, err);
    const struct sandbox *sandbox = rc == 0 ? (*ret)->active_tool->interceptor->sandbox : NULL;
    if (sandbox != NULL && !is_offered(sandbox->instance->plugin->sandbox)) {
        return sandbox_without_files(sandbox, err);
    }
    return rc == 0 ? take_lease(*ret, err) : rc;
}

static int files_end(struct request *r, const char *operation, int rc, struct sg_error *err)
{
    if (!is_of_file(&file_texts, rc)) {
        count_sandbox_error(r, rc);
    }
    return rc == 0 ? 0 : service_report(r, sandbox_instance(r), operation, &file_texts, err);
}

static bool offers_put(const struct sg_sandbox_ops *ops)
{
    return ops->put != NULL;
}

static int file_put(struct sg_call *call, const char *path, const void *data, size_t len,
                    struct sg_error *err)
{
    struct request *r;
    int rc = files_begin(call, offers_put, &r, err);
    return rc != 0 ? rc
                   : files_end(r, "put",
                               lease_file_put(r->lease, path, data, len, &r->files_put, err), err);
}

/* Reading: what is passed on begins with the word that earlier files were lost, if they were. */
static int files_read(struct request *r, const char *operation,
                      int (*read)(struct lease *, const char *, const struct sg_sink *,
                                  struct sg_error *),
                      const char *path, const struct sg_sink *to, struct sg_error *err)
{
    struct loss_sink sink = {.request = r, .to = to};
    struct sg_sink passing = {pass_event, &sink};
    int rc = read(r->lease, path, to == NULL ? NULL : &passing, err);
    struct sg_error ignored = {0};
    if (to != NULL && rc != SG_E_CANCELLED && announce_loss(&sink, &ignored) != 0) {
        return rc != 0 ? rc : ignored.code;
    }
    return sink.has_refused ? rc : files_end(r, operation, rc, err);
}

static bool offers_get(const struct sg_sandbox_ops *ops)
{
    return ops->get != NULL;
}

static int file_get(struct sg_call *call, const char *path, const struct sg_sink *sink,
                    struct sg_error *err)
{
    struct request *r;
    int rc = files_begin(call, offers_get, &r, err);
    return rc == 0 ? files_read(r, "get", lease_file_get, path, sink, err) : rc;
}

static bool offers_list(const struct sg_sandbox_ops *ops)
{
    return ops->list != NULL;
}

static int file_list(struct sg_call *call, const char *path, const struct sg_sink *sink,
                     struct sg_error *err)
{
    struct request *r;
    int rc = files_begin(call, offers_list, &r, err);
    return rc == 0 ? files_read(r, "list", lease_file_list, path, sink, err) : rc;
}

/* ---- the table ---- */

const struct core_services *gateway_services(void)
{
    static const struct core_services services = {.run_code = run_code,
                                                  .file_put = file_put,
                                                  .file_get = file_get,
                                                  .file_list = file_list,
                                                  .search = service_search};
    return &services;
}
