/* What envd's process service and its errors say, read from JSON. */
#include "frames.h"

#include <string.h>
#include <strings.h>

/* ---- errors ---- */

struct code_name {
    const char *text;
    int64_t status; /* of HTTP, as envd's own answers and the proxy's give it */
};

static const struct code_name code_names[CONNECT_CODES] = {
    [CONNECT_CANCELED] = {"canceled", 499},
    [CONNECT_INVALID_ARGUMENT] = {"invalid_argument", 400},
    [CONNECT_DEADLINE_EXCEEDED] = {"deadline_exceeded", 504},
    [CONNECT_NOT_FOUND] = {"not_found", 404},
    [CONNECT_ALREADY_EXISTS] = {"already_exists", 409},
    [CONNECT_PERMISSION_DENIED] = {"permission_denied", 403},
    [CONNECT_RESOURCE_EXHAUSTED] = {"resource_exhausted", 429},
    [CONNECT_FAILED_PRECONDITION] = {"failed_precondition", 412},
    [CONNECT_INTERNAL] = {"internal", 500},
    [CONNECT_UNAVAILABLE] = {"unavailable", 503},
    [CONNECT_UNAUTHENTICATED] = {"unauthenticated", 401},
};

static enum connect_code code_of(struct json_value value)
{
    int64_t status = 0;
    bool is_number = !json_is_string(value) && json_int(value, &status);
    for (int code = CONNECT_OTHER + 1; code < CONNECT_CODES; code++) {
        if (is_number ? code_names[code].status == status
                      : json_string_is(value, code_names[code].text)) {
            return (enum connect_code)code;
        }
    }
    return is_number || json_is_string(value) ? CONNECT_OTHER : CONNECT_NONE;
}

bool connect_error_read(const char *json, size_t len, struct connect_error *ret)
{
    static const char *const names[] = {"code", "message"};
    struct json_value values[2];
    if (!json_find(json, len, names, values, 2)) {
        return false;
    }
    *ret = (struct connect_error){.code = code_of(values[0])};
    if (json_is_string(values[1])) {
        struct json_value inside = json_inside(values[1]);
        ret->message[json_decode(&inside, ret->message, sizeof ret->message - 1)] = '\0';
    }
    return ret->code != CONNECT_NONE;
}

bool connect_error_says(const struct connect_error *error, const char *words)
{
    return strcasestr(error->message, words) != NULL;
}

/* ---- events ---- */

/* As Go names signals in "signal: killed (core dumped)", with the numbers that they have on Linux. */
static const char *const signal_names[] = {
    [1] = "hangup",
    [2] = "interrupt",
    [3] = "quit",
    [4] = "illegal instruction",
    [5] = "trace/breakpoint trap",
    [6] = "aborted",
    [7] = "bus error",
    [8] = "floating point exception",
    [9] = "killed",
    [10] = "user defined signal 1",
    [11] = "segmentation fault",
    [12] = "user defined signal 2",
    [13] = "broken pipe",
    [14] = "alarm clock",
    [15] = "terminated",
    [16] = "stack fault",
    [17] = "child exited",
    [18] = "continued",
    [19] = "stopped (signal)",
    [24] = "CPU time limit exceeded",
    [25] = "file size limit exceeded",
    [26] = "virtual timer expired",
    [27] = "profiling timer expired",
    [30] = "power failure",
    [31] = "bad system call",
};
#define SIGNALS (sizeof signal_names / sizeof signal_names[0])

static int signal_of(const char *name)
{
    size_t len = strlen(name);
    static const char dumped[] = " (core dumped)", numbered[] = "signal ";
    size_t tail = sizeof dumped - 1;
    len -= len > tail && strcmp(name + len - tail, dumped) == 0 ? tail : 0;
    for (size_t i = 1; i < SIGNALS; i++) {
        if (signal_names[i] != NULL && strlen(signal_names[i]) == len &&
            memcmp(name, signal_names[i], len) == 0) {
            return (int)i;
        }
    }
    int64_t number = 0;
    size_t skip = sizeof numbered - 1;
    bool has_number = len > skip && memcmp(name, numbered, skip) == 0 &&
                      json_count((struct json_value){name + skip, len - skip}, &number);
    return has_number && number >= 1 && number <= 64 ? (int)number : 0;
}

/* How it ended: by the status in words where that names a signal, else by the code, which is -1 for a signal. */
static bool read_end(struct json_value end, struct process_event *ret)
{
    static const char *const names[] = {"exitCode", "status"};
    static const char prefix[] = "signal: ";
    struct json_value values[2];
    char status[64] = "";
    int64_t code = 0; /* left out if it is 0 */
    if (!json_find(end.data, end.len, names, values, 2) ||
        (values[0].data != NULL && !json_int(values[0], &code))) {
        return false;
    }
    if (json_is_string(values[1])) {
        struct json_value inside = json_inside(values[1]);
        status[json_decode(&inside, status, sizeof status - 1)] = '\0';
    }
    bool is_signal = strncmp(status, prefix, sizeof prefix - 1) == 0;
    int signal = is_signal ? signal_of(status + sizeof prefix - 1) : 0;
    ret->kind = PROCESS_ENDED;
    ret->exit_code = signal > 0 ? 128 + signal : (int)(code & 0xFF);
    ret->is_killed = signal == 9 || (signal == 0 && code < 0);
    return true;
}

static bool read_data(struct json_value data, struct process_event *ret)
{
    static const char *const names[] = {"stdout", "stderr"};
    struct json_value values[2];
    if (!json_find(data.data, data.len, names, values, 2)) {
        return false;
    }
    int stream = values[0].data != NULL ? 0 : 1;
    if (values[stream].data != NULL) { /* else of a terminal, which was not asked for */
        ret->kind = stream == 0 ? PROCESS_STDOUT : PROCESS_STDERR;
        ret->content = values[stream];
    }
    return ret->kind == PROCESS_OTHER || json_is_string(ret->content);
}

static bool read_start(struct json_value start, struct process_event *ret)
{
    static const char *const names[] = {"pid"};
    struct json_value pid;
    if (!json_find(start.data, start.len, names, &pid, 1)) {
        return false;
    }
    ret->kind = PROCESS_STARTED;
    return pid.data == NULL || json_count(pid, &ret->pid);
}

static bool read_last(const struct frame *frame, struct process_event *ret)
{
    static const char *const names[] = {"error"};
    struct json_value error;
    if (frame->json_len == 0) {
        return true;
    }
    if (!json_find(frame->json, frame->json_len, names, &error, 1)) {
        return false;
    }
    if (error.data == NULL || json_is_null(error)) {
        return true;
    }
    ret->kind = PROCESS_FAILED;
    return connect_error_read(error.data, error.len, &ret->error);
}

bool process_event_read(const struct frame *frame, struct process_event *ret)
{
    static const char *const outer[] = {"event"}, *const names[] = {"start", "data", "end"};
    struct json_value event, values[3];
    *ret = (struct process_event){.kind = PROCESS_OTHER};
    if (frame->is_last) {
        return read_last(frame, ret);
    }
    if (!json_find(frame->json, frame->json_len, outer, &event, 1)) {
        return false;
    }
    if (event.data == NULL || json_is_null(event)) {
        return true;
    }
    if (!json_find(event.data, event.len, names, values, 3)) {
        return false;
    }
    if (values[0].data != NULL) {
        return read_start(values[0], ret);
    }
    if (values[1].data != NULL) {
        return read_data(values[1], ret);
    }
    return values[2].data == NULL || read_end(values[2], ret);
}
