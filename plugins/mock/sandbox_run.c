/* A run in the mock sandbox: by a rule where one fits, else as a few words of Python or of a shell. It ends when
 * its time is over, when it is interrupted, when its container is deleted, and when nobody waits any more. */
#include "activity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_INTERRUPTED 130 /* 128 and SIGINT, as a shell says it */
#define SLICE_MS 20          /* how often a waiting run looks whether it shall end */

static const char pixel[] = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwAD"
                            "hgGAWjR9awAAAABJRU5ErkJggg==";

/* 0, or why the run shall end now. */
static int check_stop(struct activity *a, struct sg_error *err)
{
    switch (container_stop(a->sandbox->containers, a->container)) {
    case STOP_REMOVED:
        return sg->fail(err, SG_E_GONE, "the container ended during the run");
    case STOP_INTERRUPTED:
        return INTERRUPTED;
    case STOP_NONE:
        break;
    }
    int64_t elapsed_ms = clock_ms() - a->begun_ms;
    elapsed_ms = elapsed_ms < a->slept_ms ? a->slept_ms : elapsed_ms;
    if (a->timeout_ms > 0 && elapsed_ms >= a->timeout_ms) {
        return sg->fail(err, SG_E_TIMEOUT, "the run was ended after %lld ms",
                        (long long)a->timeout_ms);
    }
    return 0;
}

/* ms < 0: until it is stopped. */
static int wait_for(struct activity *a, int64_t ms, struct sg_error *err)
{
    int64_t begun_ms = clock_ms(), slept_ms = 0, left = ms < 0 ? INT64_MAX : ms;
    int code = check_stop(a, err);
    while (code == 0 && left > 0) {
        int64_t slice = left < SLICE_MS ? left : SLICE_MS;
        code = sg->sleep(a->call, slice, err);
        if (code == 0) {
            a->slept_ms += slice;
            slept_ms += slice;
            int64_t passed_ms = clock_ms() - begun_ms; /* a busy machine sleeps longer */
            left = ms < 0 ? INT64_MAX : ms - (passed_ms > slept_ms ? passed_ms : slept_ms);
            code = check_stop(a, err);
        }
    }
    return code;
}

int activity_emit(struct activity *a, enum sg_out kind, const char *data, size_t len,
                  struct sg_error *err)
{
    int code = sg->emit(a->call, kind, data, len, err);
    return code != 0 ? code : check_stop(a, err);
}

int activity_exit(struct activity *a, int64_t status, struct sg_error *err)
{
    TEXT_CLEANUP struct text json = {0};
    text_printf(&json, "{\"state\": \"exited\", \"code\": %lld}", (long long)status);
    return sg->emit(a->call, SG_OUT_STATUS, json.data, json.len, err);
}

static int emit_text(struct activity *a, enum sg_out kind, const struct text *text,
                     struct sg_error *err)
{
    return text->overflow ? sg->fail(err, SG_E_LIMIT, "the output is too large")
                          : activity_emit(a, kind, text->data, text->len, err);
}

/* None where memory was short. */
static const char *words_of(const struct text *text)
{
    return text->data == NULL || text->overflow ? "" : text->data;
}

static int emit_exception(struct activity *a, const char *name, const char *value,
                          const char *traceback, struct sg_error *err)
{
    TEXT_CLEANUP struct text json = {0};
    text_puts(&json, "{\"name\": ");
    text_json(&json, name, strlen(name));
    text_puts(&json, ", \"value\": ");
    text_json(&json, value, strlen(value));
    text_puts(&json, ", \"traceback\": ");
    text_json(&json, traceback, strlen(traceback));
    text_puts(&json, "}");
    return json.overflow ? sg->fail(err, SG_E_LIMIT, "the output is too large")
                         : sg->emit(a->call, SG_OUT_EXCEPTION, json.data, json.len, err);
}

/* ---- the few words of Python ---- */

struct printer {
    struct activity *activity;
    struct sg_error *err;
};

static int take_print(void *context, const char *text, size_t len)
{
    struct printer *printer = context;
    return activity_emit(printer->activity, SG_OUT_LOG_OUT, text, len, printer->err);
}

static int emit_value(struct activity *a, const char *value, size_t len, struct sg_error *err)
{
    TEXT_CLEANUP struct text json = {0};
    text_puts(&json, "{\"text/plain\": ");
    text_json(&json, value, len);
    text_puts(&json, "}");
    return emit_text(a, SG_OUT_RESULT, &json, err);
}

static int run_python(struct activity *a, const struct sg_run *run, struct sg_error *err)
{
    struct python_result result = {0};
    struct printer printer = {a, err};
    struct python_sink sink = {take_print, &printer};
    python_run(container_python(a->container), run->code, run->code_len, &sink, &result);
    int code = 0;
    if (result.ending == PYTHON_STOPPED) {
        code = result.stop_code;
    } else if (result.ending == PYTHON_RAISED) {
        code = emit_exception(a, result.exception, words_of(&result.message),
                              words_of(&result.traceback), err);
    } else if (result.has_value) {
        code = emit_value(a, result.value.data, result.value.len, err);
    }
    python_result_clear(&result);
    return code;
}

/* ---- rules ---- */

/* "name=content": makes the file and says so. */
static int emit_file(struct activity *a, const char *entry, struct sg_error *err)
{
    size_t name_len = strcspn(entry, "=");
    const char *content = entry[name_len] == '=' ? entry + name_len + 1 : "";
    char name[PATH_BYTES], path[PATH_BYTES];
    snprintf(name, sizeof name, "%.*s", (int)(name_len < sizeof name ? name_len : 0), entry);
    if (!path_normalize(name, path)) {
        return sg->fail(err, SG_E_INTERNAL, "'%s' names no file", entry);
    }
    int code =
        container_put(a->sandbox->containers, a->container, path, content, strlen(content), err);
    if (code != 0) {
        return code;
    }
    TEXT_CLEANUP struct text json = {0};
    text_puts(&json, "{\"path\": ");
    text_json(&json, path, strlen(path));
    text_printf(&json, ", \"size\": %zu, \"type\": \"file\"}", strlen(content));
    return emit_text(a, SG_OUT_FILE, &json, err);
}

static int emit_image(struct activity *a, struct sg_error *err)
{
    TEXT_CLEANUP struct text json = {0};
    text_printf(&json, "{\"text/plain\": \"<Figure size 1x1>\", \"image/png\": \"%s\"}", pixel);
    return emit_text(a, SG_OUT_RESULT, &json, err);
}

static int emit_rule_exception(struct activity *a, const struct sandbox_rule *rule,
                               struct sg_error *err)
{
    const char *value = rule->error_value == NULL ? "" : rule->error_value;
    TEXT_CLEANUP struct text traceback = {0};
    text_printf(
        &traceback,
        "Traceback (most recent call last):\n  File \"<cell>\", line 1, in <module>\n%s%s%s",
        rule->error_name, value[0] == '\0' ? "" : ": ", value);
    return emit_exception(a, rule->error_name, value, words_of(&traceback), err);
}

/* A shell has no exceptions: the same as a line on standard error. */
static int emit_complaint(struct activity *a, const struct sandbox_rule *rule, struct sg_error *err)
{
    const char *value = rule->error_value == NULL ? "" : rule->error_value;
    TEXT_CLEANUP struct text line = {0};
    text_printf(&line, "%s%s%s\n", rule->error_name, value[0] == '\0' ? "" : ": ", value);
    return emit_text(a, SG_OUT_LOG_ERR, &line, err);
}

static bool is_given(const char *text)
{
    return text != NULL && text[0] != '\0';
}

/* What the rule prints, of which only the first `part_of` hundredth parts come. */
static int emit_streams(struct activity *a, const struct sandbox_rule *rule, unsigned percent,
                        struct sg_error *err)
{
    int code = 0;
    if (is_given(rule->output)) {
        size_t len = strlen(rule->output);
        size_t part = text_cut(rule->output, len, len * percent / 100);
        code = activity_emit(a, SG_OUT_LOG_OUT, rule->output, part, err);
    }
    if (code == 0 && percent == 100 && is_given(rule->errors)) {
        code = activity_emit(a, SG_OUT_LOG_ERR, rule->errors, strlen(rule->errors), err);
    }
    return code;
}

static int64_t exit_of(const struct sandbox_rule *rule)
{
    return rule->exit == 0 && is_given(rule->error_name) ? 1 : rule->exit;
}

static int emit_outcome(struct activity *a, const struct sandbox_rule *rule, struct sg_error *err)
{
    int code = emit_streams(a, rule, 100, err);
    for (size_t i = 0; code == 0 && rule->files != NULL && rule->files[i] != NULL; i++) {
        code = emit_file(a, rule->files[i], err);
    }
    if (code == 0 && rule->image) {
        code = emit_image(a, err);
    }
    if (code == 0 && is_given(rule->result)) {
        code = emit_value(a, rule->result, strlen(rule->result), err);
    }
    if (code == 0 && is_given(rule->error_name)) {
        code = a->is_shell ? emit_complaint(a, rule, err) : emit_rule_exception(a, rule, err);
    }
    return code != 0 || !a->is_shell ? code : activity_exit(a, exit_of(rule), err);
}

/* ---- faults ---- */

/* The same text over and over, in pieces of 8 KiB and more, until it is stopped. */
static int flood(struct activity *a, const struct sandbox_rule *rule, struct sg_error *err)
{
    const char *text = is_given(rule->output) ? rule->output : "flood\n";
    TEXT_CLEANUP struct text piece = {0};
    while (piece.len < 8192 && !piece.overflow) {
        text_puts(&piece, text);
    }
    int code = 0;
    while (code == 0) {
        code = emit_text(a, SG_OUT_LOG_OUT, &piece, err);
    }
    return code;
}

/* What a broken provider might send: halves of characters, odd bytes, JSON that is none. */
static int emit_garbage(struct activity *a, struct sg_error *err)
{
    static const struct {
        enum sg_out kind;
        const char *data;
        size_t len;
    } pieces[] = {
        {SG_OUT_LOG_OUT, "ok \xFF\xFE\xC3", 6},
        {SG_OUT_LOG_ERR, "\xED\xA0\x80\0\x1B[31m", 9},
        {SG_OUT_RESULT, "{\"text/plain\": ", 15},
        {SG_OUT_RESULT, "[1]", 3},
        {SG_OUT_RESULT, "", 0},
        {SG_OUT_FILE, "{\"size\": -1}", 12},
        {SG_OUT_EXCEPTION, "null", 4},
        {SG_OUT_LOG_OUT, "\x80\n", 2},
    };
    int code = 0;
    for (size_t i = 0; code == 0 && i < sizeof pieces / sizeof *pieces; i++) {
        code = activity_emit(a, pieces[i].kind, pieces[i].data, pieces[i].len, err);
    }
    return code;
}

static int die(struct activity *a, int code, const char *message, struct sg_error *err)
{
    container_remove(a->sandbox->containers, a->call, a->handle, "die");
    return sg->fail(err, (enum sg_code)code, "%s", message);
}

static int run_rule(struct activity *a, const struct sandbox_rule *rule, struct sg_error *err)
{
    const char *fault = rule->fault;
    if (fault_is(fault, "gone_before")) {
        return die(a, SG_E_GONE_BEFORE, "the container was gone before the run", err);
    }
    if (fault_is(fault, "limit")) {
        return sg->fail(err, SG_E_LIMIT, "too many runs");
    }
    if (fault_is(fault, "refuse")) {
        return sg->fail(err, SG_E_UNAVAILABLE, "the run was refused");
    }
    int code = wait_for(a, rule->delay, err);
    if (code != 0) {
        return code;
    }
    if (fault_is(fault, "flood")) {
        return flood(a, rule, err);
    }
    if (fault_is(fault, "garbage")) {
        return emit_garbage(a, err);
    }
    if (fault_is(fault, "none") || fault == NULL) {
        return emit_outcome(a, rule, err);
    }
    code = emit_streams(a, rule, fault_is(fault, "cut") ? 50 : 100, err);
    if (code != 0) {
        return code;
    }
    if (fault_is(fault, "die")) {
        return die(a, SG_E_GONE, "the container died during the run", err);
    }
    if (fault_is(fault, "cut")) {
        return sg->fail(err, SG_E_UNAVAILABLE, "the connection was cut");
    }
    return wait_for(a, -1, err); /* hang */
}

static const struct sandbox_rule *find_rule(struct sandbox *s, const struct sg_run *run)
{
    const struct sandbox_rule *rules = s->config->rules.items;
    for (size_t i = 0; i < s->config->rules.count; i++) {
        if (pattern_matches(&s->patterns[i], run->code, run->code_len) &&
            count_allows(&s->rules_used[i], rules[i].times)) {
            return &rules[i];
        }
    }
    return NULL;
}

static int perform(struct activity *a, const struct sg_run *run, struct sg_error *err)
{
    int code = wait_for(a, a->sandbox->config->delay, err);
    if (code == 0) {
        const struct sandbox_rule *rule = find_rule(a->sandbox, run);
        code = rule != NULL  ? run_rule(a, rule, err)
               : a->is_shell ? shell_run(a, run, err)
                             : run_python(a, run, err);
    }
    if (code != INTERRUPTED) {
        return code;
    }
    if (a->is_shell) {
        return activity_exit(a, EXIT_INTERRUPTED, err);
    }
    return emit_exception(a, "KeyboardInterrupt", "",
                          "Traceback (most recent call last):\n"
                          "  File \"<cell>\", line 1, in <module>\nKeyboardInterrupt",
                          err);
}

int sandbox_run(void *self, struct sg_call *call, const char *handle, const struct sg_run *run,
                struct sg_error *err)
{
    struct sandbox *s = self;
    journal_printf(&s->journal, call, "run %s", container_label(handle));
    bool is_shell = run->language != NULL && strcmp(run->language, "bash") == 0;
    if (run->language != NULL && !is_shell && strcmp(run->language, "python") != 0) {
        return sg->fail(err, SG_E_INVALID, "the mock sandbox runs python and bash, not '%s'",
                        run->language);
    }
    struct container *one = container_use(s->containers, call, handle);
    if (one == NULL) {
        return sg->fail(err, SG_E_GONE_BEFORE, "the container no longer exists");
    }
    if (!container_begin_run(s->containers, one)) {
        container_release(s->containers, call, one);
        return sg->fail(err, SG_E_INTERNAL, "two runs at once in one container");
    }
    struct activity activity = {.sandbox = s,
                                .call = call,
                                .container = one,
                                .handle = handle,
                                .is_shell = is_shell,
                                .timeout_ms = run->timeout_ms,
                                .begun_ms = clock_ms()};
    int code = perform(&activity, run, err);
    container_end_run(s->containers, one);
    container_release(s->containers, call, one);
    return code;
}
