/* The two tools that run something: Python code, and a shell command. The client sees all events, and the model is told,
 * in order and within a bound, what happened. Whatever goes wrong in the sandbox is a labelled text for the model, never
 * a failed request. */
#include "report.h"
#include "tools.h"

#include <stdio.h>
#include <string.h>

#define OUTPUT_BYTES_MAX \
    ((uint64_t)10 * 1024 * 1024) /* read from one run; beyond it the run is ended */

struct run { /* one call, as its sink sees it */
    struct report report;
    struct sg_call *call;
    uint64_t read; /* bytes of output so far */
    bool too_much;
    bool has_raised;
    int exit_status; /* CODE_NONE: none was told */
    int emit_code;   /* why events could not be handed on; 0: they were */
};

/* {"state":"exited","code":N}: how a shell command ended. */
static void note_exit(struct run *run, const char *data, size_t len)
{
    static const char *const names[] = {"state", "code"};
    struct json_value found[2];
    int64_t code;
    if (json_find(data, len, names, found, 2) && json_string_is(found[0], "exited") &&
        json_int(found[1], &code) && code >= 0 && code <= 255) {
        run->exit_status = (int)code;
    }
}

/* That earlier state is lost: the client is shown it too. Where the answer ends with calls of the client's own, the model is
 * told of this run by the history that the client sends back, and by nothing else. */
static int show_note(struct run *run, struct sg_error *err)
{
    run->emit_code =
        sg->emit(run->call, SG_OUT_LOG_ERR, run->report.note, run->report.note_len, err);
    return run->emit_code;
}

static int take_event(void *context, enum sg_out kind, const void *data, size_t len,
                      struct sg_error *err)
{
    struct run *run = context;
    bool had_note = run->report.note != NULL;
    bool well_formed = report_event(&run->report, kind, data, len);
    run->read += len;
    run->has_raised = run->has_raised || kind == SG_OUT_EXCEPTION;
    if (run->read > OUTPUT_BYTES_MAX) {
        run->too_much = true;
        return sg->fail(err, SG_E_LIMIT, "the run gave more than 10 MiB of output");
    }
    if (kind == SG_OUT_STATUS) {
        note_exit(run, data, len); /* between the provider and us: the call's own status follows */
        return had_note || run->report.note == NULL ? 0 : show_note(run, err);
    }
    if (!well_formed) {
        return 0;
    }
    run->emit_code = sg->emit(run->call, kind, data, len, err);
    return run->emit_code;
}

static const char *label_of(const struct run *run, int code)
{
    if (run->too_much) {
        return "[output limit]";
    }
    switch (code) {
    case SG_E_LIMIT: /* behind output it is the run's own */
        return run->report.has_run ? "[output limit]" : "[sandbox unavailable]";
    case SG_E_TIMEOUT:
        return "[timed out]";
    case SG_E_GONE:
    case SG_E_GONE_BEFORE:
        return "[sandbox failed]";
    case SG_E_UNAVAILABLE: /* likewise */
        return run->report.has_run ? "[sandbox failed]" : "[sandbox unavailable]";
    default:
        return "[sandbox unavailable]";
    }
}

static const char *message_of(const struct run *run, int code, const struct sg_error *err)
{
    if (run->too_much) {
        return "the run gave more than 10 MiB of output and was ended; print less";
    }
    return tool_message(err, code == SG_E_TIMEOUT  ? "the run was ended at its time limit"
                             : run->report.has_run ? "the run broke off; it may have had effects"
                                                   : "the code was not run");
}

/* An INVALID of a run is the sandbox's affair (it cannot run this language), not the model's. */
static const char *reason_of(const struct run *run, int code)
{
    return run->too_much ? "limit" : code == SG_E_INVALID ? "unavailable" : tool_reason(code);
}

static int end_failed(struct run *run, int result, struct sg_error *err)
{
    const char *label = label_of(run, result);
    char message[1024];
    snprintf(message, sizeof message, "%s", message_of(run, result, err));
    int code = tool_status(run->call, "failed", reason_of(run, result), CODE_NONE, err);
    return code != 0 ? code : report_emit(&run->report, label, message, err);
}

/* Of Python a status is worth telling only where the code raised, of a command always. */
static int end_completed(struct run *run, bool is_command, struct sg_error *err)
{
    int status = run->exit_status;
    if (status == CODE_NONE && (is_command || run->has_raised)) {
        status = run->has_raised ? 1 : 0;
    }
    int code = status != CODE_NONE ? tool_status(run->call, "completed", NULL, status, err) : 0;
    if (code != 0) {
        return code;
    }
    char label[32];
    snprintf(label, sizeof label, "[exit status %d]", status);
    return report_emit(&run->report, is_command && status != 0 ? label : NULL, NULL, err);
}

static int run_code(const struct config *config, struct sg_call *call, const char *language,
                    struct json_value code, struct sg_error *err)
{
    struct run *run = sg->alloc(call, sizeof *run);
    if (run == NULL || !report_init(&run->report, call, (size_t)config->shown)) {
        return sg->fail(err, SG_E_LIMIT, "no memory for the run's output");
    }
    run->call = call;
    run->exit_status = CODE_NONE;
    struct sg_run request = {.language = language,
                             .code = code.data,
                             .code_len = code.len,
                             .timeout_ms = config->timeout};
    struct sg_sink sink = {.event = take_event, .ctx = run};
    int result = sg->run_code(call, &request, &sink, err);
    if (run->emit_code != 0) {
        return run->emit_code;
    }
    if (result == SG_E_CANCELLED) {
        return result;
    }
    bool is_command = strcmp(language, "bash") == 0;
    return result == 0 ? end_completed(run, is_command, err) : end_failed(run, result, err);
}

struct runner { /* one of the two tools */
    const char *language, *argument, *expected, *too_long;
};

static int call_runner(const struct runner *runner, const struct config *config,
                       struct sg_call *call, const char *json, size_t len, struct sg_error *err)
{
    struct argument code = {.name = runner->argument, .is_required = true};
    struct problem problem;
    if (!arguments_read(json, len, &code, 1, &problem)) {
        return tool_refuse(call, problem.text, runner->expected, err);
    }
    size_t decoded_len;
    const char *decoded = tool_decode(call, code.value, &decoded_len);
    if (decoded == NULL) {
        return tool_refuse(call, runner->too_long, runner->expected, err);
    }
    return run_code(config, call, runner->language, code_without_fence(decoded, decoded_len), err);
}

int tool_python(void *self, struct sg_call *call, const char *json, size_t len,
                struct sg_error *err)
{
    static const struct runner python = {
        .language = "python",
        .argument = "code",
        .expected = "a JSON object with the Python source as a string: {\"code\": \"print(1)\"}",
        .too_long = "the code is too long"};
    return call_runner(&python, self, call, json, len, err);
}

int tool_bash(void *self, struct sg_call *call, const char *json, size_t len, struct sg_error *err)
{
    static const struct runner bash = {
        .language = "bash",
        .argument = "command",
        .expected = "a JSON object with the shell command as a string: {\"command\": \"ls -l\"}",
        .too_long = "the command is too long"};
    return call_runner(&bash, self, call, json, len, err);
}
