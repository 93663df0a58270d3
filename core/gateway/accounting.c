/* Accounting lines and the audit: see accounting.h and docs/accounting.md. Lines are built where a request ends and handed to a
 * thread that writes them: a full disk stops nobody. */
#include "gateway/accounting.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/identity.h"
#include "base/log.h"
#include "base/utf8.h"
#include "gateway/metrics.h"
#include "gateway/request.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum {
    WAITING_BYTES_MAX = 8 * 1024 * 1024,
    AUDIT_WAITING_BYTES_MAX = 32 * 1024 * 1024,
    AUDIT_TEXT_BYTES_MAX = 256 * 1024, /* of one body, call or result */
    NAME_BYTES_MAX = 256,              /* of what a client chooses: a line stays a line */
    STATUS_LEFT = 499                  /* the client left before there was one */
};

/* ---- the files ---- */

static int open_one(const char *option, const struct line_file_options *options,
                    struct line_file **ret, struct sg_error *err)
{
    struct sg_error cause = {0};
    if (options->path == NULL || line_file_open(options, ret, &cause) == 0) {
        return 0;
    }
    return error_set(err, SG_E_CONFIG, "accounting: '%s' %s", option, cause.message);
}

static void say_audit(const char *path)
{
    struct log_line line;
    log_begin(&line, SG_WARN, "audit_is_on");
    log_text(&line, "file", path);
    log_text(&line, "message",
             "what clients ask, and code that runs for them, is written there in full");
    log_end(&line);
}

int accounting_open(struct accounting *accounting, const struct accounting_config *config,
                    struct sg_error *err)
{
    const struct line_file_options file = {
        .name = "accounting", .path = config->file, .waiting_max = WAITING_BYTES_MAX};
    const struct line_file_options audit = {.name = "audit",
                                            .path = config->audit,
                                            .waiting_max = AUDIT_WAITING_BYTES_MAX,
                                            .is_private = true};
    int rc = open_one("file", &file, &accounting->file, err);
    rc = rc == 0 ? open_one("audit", &audit, &accounting->audit, err) : rc;
    if (rc == 0 && config->audit != NULL) {
        say_audit(config->audit);
    }
    if (rc == 0) {
        accounting->usage = usage_table_new();
    }
    return rc;
}

void accounting_reopen(struct accounting *accounting)
{
    struct line_file *files[] = {accounting->file, accounting->audit};
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        if (files[i] != NULL) {
            line_file_reopen(files[i]);
        }
    }
}

void accounting_close(struct accounting *accounting)
{
    line_file_close(accounting->file);
    line_file_close(accounting->audit);
    usage_table_free(accounting->usage);
    *accounting = (struct accounting){0};
}

/* ---- pieces of a line; overflow shows in the buffer ---- */

static void put_time(struct buf *out)
{
    int64_t now_ms = clock_unix_ms();
    time_t seconds = (time_t)(now_ms / 1000);
    struct tm utc;
    char text[32];
    CHECK(gmtime_r(&seconds, &utc) != NULL);
    CHECK(strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc) > 0);
    (void)buf_printf(out, "{\"time\":\"%s.%03dZ\"", text, (int)(now_ms % 1000));
}

static void put_text(struct buf *out, const char *name, struct str value)
{
    (void)buf_printf(out, ",\"%s\":", name);
    (void)buf_put_json(out, value);
}

static struct str name_cut(struct str name)
{
    return (struct str){name.data, utf8_cut(name, NAME_BYTES_MAX)};
}

static void put_text_or_null(struct buf *out, const char *name, struct str value)
{
    if (value.len > 0) {
        put_text(out, name, value);
    } else {
        (void)buf_printf(out, ",\"%s\":null", name);
    }
}

static void put_count(struct buf *out, const char *name, int64_t value)
{
    (void)buf_printf(out, ",\"%s\":%" PRId64, name, value);
}

/* What upstreams do not say is null, and not 0. */
static void put_tokens(struct buf *out, const char *name, int64_t value)
{
    if (value >= 0) {
        put_count(out, name, value);
    } else {
        (void)buf_printf(out, ",\"%s\":null", name);
    }
}

static void put_seconds(struct buf *out, const char *name, int64_t us)
{
    (void)buf_printf(out, ",\"%s\":%" PRId64 ".%03d", name, us / 1000000,
                     (int)(us % 1000000 / 1000));
}

static void put_whose(const struct request *r, struct buf *out)
{
    put_time(out);
    put_text(out, "request", str_of(r->id));
    put_text(out, "identity", identity_key(r->identity));
    put_text_or_null(out, "user", identity_user(r->identity));
    put_text_or_null(out, "model", name_cut(r->model));
    put_text_or_null(out, "upstream", str_of(r->upstream != NULL ? r->upstream->name : NULL));
}

/* ---- a request ---- */

static struct surface_usage tokens_of(const struct request *r)
{
    return r->talk != NULL ? r->route.surface->usage(r->talk) : r->relayed_usage;
}

static int status_of(const struct request *r)
{
    int status = http_answer_status(r->exchange);
    return status != 0 ? status : STATUS_LEFT;
}

/* How it ended, where the status alone does not say it: a stream that failed has begun with 200. */
static const char *error_of(const struct request *r)
{
    return r->failure.code != 0 ? error_code_name(r->failure.code) : NULL;
}

static void put_request(const struct request *r, int64_t us, struct buf *out)
{
    struct surface_usage tokens = tokens_of(r);
    const struct http_head *head = http_request_head(r->exchange);
    put_whose(r, out);
    put_text(out, "method", name_cut(head->method));
    put_text(out, "path", name_cut(head->path));
    put_count(out, "status", status_of(r));
    put_text_or_null(out, "error", str_of(error_of(r)));
    put_count(out, "turns", r->talk != NULL ? (int64_t)r->turns : r->tries > 0);
    put_count(out, "calls", r->calls_run);
    put_count(out, "runs", r->code_runs);
    put_count(out, "searches", r->searches);
    put_tokens(out, "input_tokens", tokens.input_tokens);
    put_tokens(out, "output_tokens", tokens.output_tokens);
    put_tokens(out, "cached_tokens", tokens.cached_tokens);
    put_tokens(out, "reasoning_tokens", tokens.reasoning_tokens);
    put_seconds(out, "container_seconds", r->container_us);
    put_seconds(out, "duration_seconds", us);
    put_count(out, "request_bytes", (int64_t)request_body_bytes(r));
    put_count(out, "answer_bytes", (int64_t)http_answer_bytes(r->exchange));
    (void)buf_putc(out, '}');
}

/* Of a model, and answered well: so that no client fills the table with names of its own. */
static void sum_up(const struct request *r)
{
    int status = http_answer_status(r->exchange);
    if (r->upstream == NULL || r->model.len == 0 || status < 200 || status > 299) {
        return;
    }
    bool is_own = r->gateway->config->auth.mode == AUTH_PASSTHROUGH; /* as many as there are keys */
    struct usage_entry entry = {.identity = is_own ? STR("passthrough") : identity_key(r->identity),
                                .model = r->model,
                                .tokens = tokens_of(r),
                                .container_us = r->container_us,
                                .runs = r->code_runs,
                                .searches = r->searches};
    usage_table_add(r->gateway->accounting.usage, &entry);
}

/* Whose identity is not known is nobody's account; what only looks at the gateway is none either. */
static bool is_accounted(const struct request *r)
{
    static const enum route_kind not [] = {ROUTE_NONE, ROUTE_LIVE, ROUTE_READY, ROUTE_METRICS};
    bool counts = r->identity.len > 0;
    for (size_t i = 0; i < COUNT_OF(not ); i++) {
        counts = counts && r->route.kind != not [i];
    }
    return counts && !str_is(http_request_head(r->exchange)->method, "OPTIONS");
}

void accounting_request(const struct request *r, int64_t us)
{
    const struct accounting *accounting = &r->gateway->accounting;
    if (!is_accounted(r) || accounting->usage == NULL) {
        return;
    }
    sum_up(r);
    if (accounting->file != NULL) {
        BUF_CLEANUP struct buf line = {0};
        put_request(r, us, &line);
        line_file_put(accounting->file, buf_str(&line));
    }
}

/* ---- the audit ---- */

void accounting_audit(const struct request *r, enum audit_kind kind, struct str tool,
                      struct str text)
{
    static const char *const kinds[] = {"body", "call", "result"};
    struct line_file *file = r->gateway->accounting.audit;
    if (file == NULL) {
        return;
    }
    BUF_CLEANUP struct buf line = {0};
    size_t len = utf8_cut(text, AUDIT_TEXT_BYTES_MAX);
    put_whose(r, &line);
    put_text(&line, "kind", str_of(kinds[kind]));
    put_count(&line, "turn", r->talk != NULL ? (int64_t)r->turns : 1);
    put_text_or_null(&line, "tool", tool);
    put_count(&line, "bytes", (int64_t)text.len);
    put_text(&line, "text", (struct str){text.data, len});
    (void)buf_putc(&line, '}');
    line_file_put(file, buf_str(&line));
}

/* ---- metrics ---- */

static void put_lines(struct buf *out, const char *what, const char *help, const char *name,
                      uint64_t value)
{
    char family[80];
    (void)snprintf(family, sizeof family, "sandgate_%s_lines_%s_total", name, what); /* fits */
    metrics_put_head(out, family, help, "counter");
    (void)buf_printf(out, "%s %" PRIu64 "\n", family, value);
}

void accounting_put_metrics(const struct accounting *accounting, struct buf *out)
{
    const struct {
        const char *name;
        struct line_file *file;
    } files[] = {{"accounting", accounting->file}, {"audit", accounting->audit}};
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        struct line_file_stats stats;
        if (files[i].file != NULL) {
            line_file_stats(files[i].file, &stats);
            put_lines(out, "written", "Lines that were written.", files[i].name, stats.written);
            put_lines(out, "lost", "Lines that found no room.", files[i].name, stats.lost);
        }
    }
    if (accounting->usage != NULL) {
        usage_table_put(accounting->usage, out);
    }
}
