/* The code_interpreter interceptor: one tool that runs Python in the request's sandbox.
 *
 * The core finds the model's calls, keeps the container and writes the client's items; here is what lies between: the
 * arguments are checked before anything runs, the client sees all events, and the model is told, in order and within a
 * bound, what happened. Whatever goes wrong in the sandbox is a labelled text for the model, never a failed request. */
#include "arguments.h"
#include "report.h"

#include <sandgate/plugin.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define OUTPUT_BYTES_MAX \
    ((uint64_t)10 * 1024 * 1024) /* read from one run; beyond it the run is ended */

struct config {
    uint64_t shown;
    int64_t timeout;
};

static const struct sg_option options[] = {
    {.name = "shown",
     .type = SG_SIZE,
     SG_FIELD(struct config, shown),
     .def = "16KiB",
     .min = "1KiB",
     .max = "1MiB",
     .help = "How much of a run's output the model is shown; head and tail are kept."},
    {.name = "timeout",
     .type = SG_DURATION,
     SG_FIELD(struct config, timeout),
     .def = "0s",
     .min = "0s",
     .max = "1h",
     .help = "Longest time of one run; 0s: the sandbox's run_timeout."},
    {0},
};

static const char description[] =
    "Runs Python code in a sandbox and returns what it prints and the value of the last "
    "expression. Print what you need to see. Variables, imports and files of earlier calls in this "
    "session are normally still there; make again what is missing. The user sees only what you "
    "write: no output, no plot and no file reaches them, so repeat results, tables and the text of "
    "files in your answer, and give no links to files. Of a plot you too see only that it was "
    "made; print the numbers behind it to describe it. Expect no network access: when a download "
    "or an installation fails, do without it. Use it for exact calculation, data analysis and text "
    "processing.";

static const char parameters[] =
    "{\"type\":\"object\",\"properties\":{\"code\":{\"type\":\"string\",\"description\":"
    "\"Python source code to run, without Markdown fences.\"}},"
    "\"required\":[\"code\"],\"additionalProperties\":false}";

struct run { /* one call, as its sink sees it */
    struct report report;
    struct sg_call *call;
    uint64_t read; /* bytes of output so far */
    bool too_much;
    int emit_code; /* why events could not be handed on; 0: they were */
};

static int take_event(void *context, enum sg_out kind, const void *data, size_t len,
                      struct sg_error *err)
{
    struct run *run = context;
    bool well_formed = report_event(&run->report, kind, data, len);
    run->read += len;
    if (run->read > OUTPUT_BYTES_MAX) {
        run->too_much = true;
        return sg->fail(err, SG_E_LIMIT, "the run gave more than 10 MiB of output");
    }
    if (!well_formed || kind == SG_OUT_STATUS) {
        return 0; /* a status is between the core and us */
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
    default:
        return "[sandbox unavailable]";
    }
}

static const char *message_of(const struct run *run, int code, const struct sg_error *err)
{
    if (run->too_much) {
        return "the run gave more than 10 MiB of output and was ended; print less";
    }
    const char *said = sg->message == NULL ? NULL : sg->message(err);
    if (said != NULL && said[0] != '\0') {
        return said;
    }
    return code == SG_E_TIMEOUT ? "the run was ended at its time limit" : "the code was not run";
}

static int emit_status(struct sg_call *call, const char *state, struct sg_error *err)
{
    char json[64];
    int len = snprintf(json, sizeof json, "{\"state\":\"%s\"}", state);
    return sg->emit(call, SG_OUT_STATUS, json, (size_t)len, err);
}

/* Nothing has run; the model is told what it should have written. */
static int refuse(struct sg_call *call, const struct arguments *arguments, struct sg_error *err)
{
    char text[512], where[128] = "";
    if (arguments->problem_why != NULL) {
        snprintf(where, sizeof where, " (at byte %zu: %s)", arguments->problem_at,
                 arguments->problem_why);
    }
    int len = snprintf(text, sizeof text,
                       "[invalid call] %s%s; nothing was run. Expected a JSON object with the "
                       "Python source as a string: {\"code\": \"print(1)\"}",
                       arguments->problem, where);
    int code = emit_status(call, "invalid", err);
    return code != 0 ? code : sg->emit(call, SG_OUT_MODEL, text, (size_t)len, err);
}

static int run_code(const struct config *config, struct sg_call *call, struct json_value code,
                    struct sg_error *err)
{
    struct run *run = sg->alloc(call, sizeof *run);
    if (run == NULL || !report_init(&run->report, call, (size_t)config->shown)) {
        return sg->fail(err, SG_E_LIMIT, "no memory for the run's output");
    }
    run->call = call;
    struct sg_run request = {.language = "python",
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
    if (result == 0) {
        return report_emit(&run->report, NULL, NULL, err);
    }
    const char *label = label_of(run, result);
    char message[1024];
    snprintf(message, sizeof message, "%s", message_of(run, result, err));
    int code_of_emit = emit_status(call, "failed", err);
    return code_of_emit != 0 ? code_of_emit : report_emit(&run->report, label, message, err);
}

static int call_tool(void *self, struct sg_call *call, const char *json, size_t len,
                     struct sg_error *err)
{
    struct arguments arguments = arguments_read(json, len);
    if (arguments.problem != NULL) {
        return refuse(call, &arguments, err);
    }
    struct json_value rest = json_inside(arguments.code);
    size_t room = rest.len + 4;
    char *decoded = sg->alloc(call, room);
    if (decoded == NULL) {
        return refuse(call, &(struct arguments){.problem = "the code is too long"}, err);
    }
    size_t decoded_len = json_decode(&rest, decoded, room);
    return run_code(self, call, code_without_fence(decoded, decoded_len), err);
}

static int open_instance(const void *config, struct sg_call *call, void **ret_self,
                         struct sg_error *err)
{
    (void)call;
    (void)err;
    *ret_self = (void *)(uintptr_t)config; /* an instance is its options */
    return 0;
}

static void close_instance(void *self, struct sg_call *call)
{
    (void)self;
    (void)call;
}

static const struct sg_tool tools[] = {
    {.hosted = "code_interpreter",
     .name = "code_interpreter",
     .description = description,
     .parameters_json = parameters,
     .call = call_tool},
    {0},
};

static const struct sg_interceptor_ops operations = {.tools = tools};

static const struct sg_plugin plugin = {
    .name = "code_interpreter",
    .help = "Answers the hosted code interpreter: Python with state, over the calls of a session.",
    .options = options,
    .config_size = sizeof(struct config),
    .open = open_instance,
    .close = close_instance,
    .interceptor = &operations,
    .flags = SG_ON_LOOP,
};

SG_PLUGIN_SET("0.1.0", &plugin);
