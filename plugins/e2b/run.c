/* A run of code by the interpreter in the sandbox: one POST whose answer is the stream of what happens.
 *
 * E2B is told nothing of a deadline: to end a run its connection is closed, upon which the server interrupts the code. A
 * run that comes within a second of that may be lost (the server then sends keepalives for ever), so it is put off; and
 * code may ignore the interrupt, so a run that does not begin in time after one that was cut off ends both by a restart of
 * the interpreter. So does a run that is lost while exit() ends the interpreter. What was sent is never sent again, except then: nothing of it had begun. */
#include "event.h"

#include "json_text.h"
#include "lenient.h"

#include <string.h>

#define TICK_MS 200          /* an interrupt is seen within */
#define QUIET_MS 1000        /* after a run was cut off */
#define BUSY_MS 5000         /* for a run to begin, after one that was cut off */
#define STUCK_MS 10000       /* for any other: it begins at once where all is well */
#define SILENCE_MS 30000     /* of a server that sends a keepalive each 5 s */
#define CALL_RESERVE_MS 1000 /* of the call's time, to say how it ended */
#define OVERTIME_MS 2000     /* after which the exchange ends without a tick, too */
#define RESTART_MS 10000     /* for each of the two exchanges of a restart */
/* More than the output, since each line has its frame; all of it is read on the loop. */
#define ANSWER_BYTES_MAX ((uint64_t)64 << 20)
#define END_MS 1000 /* from the word of the end to the end of the connection */

#define CONTEXT_ID_BYTES 65
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static const int64_t pauses_ms[] = {500, 1000, 2000}; /* before each further try */
#define PAUSES (sizeof pauses_ms / sizeof *pauses_ms)

enum stop {
    STOP_NONE,
    STOP_ENDED,     /* all was said, but the connection stays open */
    STOP_TIME,      /* it ran too long */
    STOP_INTERRUPT, /* interrupt() came */
    STOP_STUCK,     /* it did not begin: what was cut off before still runs, or exit() ends it */
    STOP_SILENCE    /* no keepalive comes any more */
};

struct run {
    struct e2b *e2b;
    struct sg_call *call;
    struct sandbox *sandbox;
    const struct sg_run *asked;
    const char *language; /* NULL: that of the default context, Python */
    struct text request;
    int64_t deadline;   /* these are of clock_ms() */
    int64_t begin_by;   /* INT64_MAX: no matter when */
    bool was_restarted; /* by us */
    int64_t heard_at;
    int64_t end_by; /* 0: the end was not said yet */
    enum stop stop;
    struct stream stream;
};

/* ---- interrupting ---- */

/* A run in its sandbox notices by its next tick. */
int e2b_interrupt(void *self, struct sg_call *call, const char *handle, struct sg_error *err)
{
    (void)call;
    (void)err; /* one that is not there has no run */
    sandbox_interrupt(self, handle);
    return 0;
}

static int fail_interrupted(struct sg_error *err)
{
    return sg->fail(err, SG_E_CANCELLED, "the code was interrupted");
}

/* ---- one exchange ---- */

/* A server that sends keepalives waits for the interpreter alone; one that sends none may be slow, unless there is a cause. */
static bool takes_no_code(const struct run *run)
{
    return !run->stream.has_begun && (run->sandbox->may_be_busy || run->stream.is_kept_alive);
}

/* Whatever comes behind the end is waited for no longer than this, nor than the run may take. */
static enum stop reason_to_leave(struct run *run, int64_t now, bool is_tick)
{
    if (run->end_by == 0) {
        run->end_by = now + END_MS < run->deadline ? now + END_MS : run->deadline;
    }
    bool is_over = is_tick || now >= run->end_by || sandbox_is_interrupted(run->e2b, run->sandbox);
    return is_over ? STOP_ENDED : STOP_NONE;
}

static enum stop reason_to_stop(struct run *run, bool is_tick)
{
    int64_t now = clock_ms();
    if (run->stream.has_ended) {
        return reason_to_leave(run, now, is_tick);
    }
    if (sandbox_is_interrupted(run->e2b, run->sandbox)) {
        return STOP_INTERRUPT;
    }
    if (now >= run->deadline) {
        return STOP_TIME;
    }
    if (now >= run->begin_by && takes_no_code(run)) {
        return STOP_STUCK;
    }
    bool is_silent = run->stream.is_kept_alive && now - run->heard_at >= SILENCE_MS;
    return is_silent ? STOP_SILENCE : STOP_NONE;
}

static int take(void *context, enum sg_out kind, const void *data, size_t len, struct sg_error *err)
{
    struct run *run = context;
    (void)kind; /* always DATA */
    if (len > 0) {
        run->heard_at = clock_ms();
        int result = stream_take(&run->stream, data, len, err);
        if (result != 0) {
            return result;
        }
    }
    run->stop = reason_to_stop(run, len == 0);
    return run->stop == STOP_NONE ? 0 : sg->fail(err, SG_E_CANCELLED, "the exchange was ended");
}

/* The code has its whole time from when it is sent, as far as the call's goes. */
static void begin_clocks(struct run *run)
{
    int64_t now = clock_ms(), left = sg->time_left_ms(run->call) - CALL_RESERVE_MS;
    left = left < run->asked->timeout_ms ? left : run->asked->timeout_ms;
    left = left > 0 ? left : 0;
    run->deadline = now + left;
    int64_t patience_ms = run->sandbox->may_be_busy ? BUSY_MS : STUCK_MS;
    patience_ms = left / 2 < patience_ms ? left / 2 : patience_ms;
    run->begin_by = run->was_restarted ? INT64_MAX : now + patience_ms;
    run->heard_at = now;
}

static int ask(struct run *run, struct exchange *exchange, struct sg_error *err)
{
    struct sg_sink sink = {take, run};
    begin_clocks(run);
    run->stop = STOP_NONE;
    run->end_by = 0;
    stream_clear(&run->stream);
    run->stream = (struct stream){.call = run->call};
    if (run->language == NULL) {
        run->stream.executions = run->sandbox->executions;
    }
    *exchange = (struct exchange){.method = "POST",
                                  .path = "/execute",
                                  .content_type = "application/json",
                                  .body = run->request.data,
                                  .body_len = run->request.len,
                                  .timeout_ms = run->deadline - run->heard_at + OVERTIME_MS,
                                  .bytes_max = ANSWER_BYTES_MAX,
                                  .tick_ms = TICK_MS,
                                  .sink = &sink};
    int result =
        exchange_sandbox(run->e2b, run->call, run->sandbox, PORT_INTERPRETER, exchange, err);
    exchange->sink = NULL; /* ends with this frame */
    return result;
}

/* ---- restarting an interpreter that is busy ---- */

static bool read_context_id(struct json_value string, char id[CONTEXT_ID_BYTES])
{
    if (!json_is_string(string) || string.len - 2 >= CONTEXT_ID_BYTES) {
        return false;
    }
    size_t len = string.len - 2;
    memcpy(id, string.data + 1, len);
    id[len] = '\0';
    return len > 0 && strspn(id, LETTERS "0123456789-_") == len;
}

/* The path that restarts the context of this language; all are default ones, for we make no others. */
static bool find_context(const char *json, size_t len, const char *language, struct text *ret_path)
{
    static const char *const names[] = {"id", "language"};
    const char *end = json + len, *at = json;
    while ((at = memchr(at, '{', (size_t)(end - at))) != NULL) {
        struct json_value found[2];
        char id[CONTEXT_ID_BYTES];
        size_t object_len = lenient_nested_length(at, end);
        if (json_find(at, object_len, names, found, 2) && json_string_is(found[1], language) &&
            read_context_id(found[0], id)) {
            text_printf(ret_path, "/contexts/%s/restart", id);
            return true;
        }
        at += object_len;
    }
    return false;
}

static int ask_restart(struct run *run, struct exchange *exchange, struct sg_error *err)
{
    static const char what[] = "cannot restart the interpreter, which takes no code";
    exchange->timeout_ms = RESTART_MS;
    int result =
        exchange_sandbox(run->e2b, run->call, run->sandbox, PORT_INTERPRETER, exchange, err);
    if (result != 0 && sg->time_left_ms(run->call) > 0) {
        return sg->fail(err, (enum sg_code)result, "%s: %s", what, sg->message(err));
    }
    if (result == 0 && exchange->reply.status / 100 != 2) {
        return fault_sandbox(run->e2b, run->call, run->sandbox, exchange, what, err);
    }
    return result;
}

static int tell_restarted(struct run *run, struct sg_error *err)
{
    static const char busy[] =
        "{\"state\":\"restarted\",\"note\":\"the code of an earlier run did not react to its "
        "interrupt, so the interpreter was begun anew: variables, functions and imports are gone; "
        "files are kept\"}";
    static const char stuck[] =
        "{\"state\":\"restarted\",\"note\":\"the interpreter did not take the code, perhaps for an "
        "exit() before it, so it was begun anew: variables, functions and imports are gone; files "
        "are kept\"}";
    const char *json = run->sandbox->may_be_busy ? busy : stuck;
    run->was_restarted = true;
    run->sandbox->may_be_busy = false;
    run->sandbox->quiet_until = 0;
    run->sandbox->executions = 0;
    return sg->emit(run->call, SG_OUT_STATUS, json, strlen(json), err);
}

static int restart(struct run *run, struct sg_error *err)
{
    TEXT_CLEANUP struct text path = {0};
    struct exchange list = {.path = "/contexts"};
    const char *language = run->language != NULL ? run->language : "python";
    int result = ask_restart(run, &list, err);
    if (result != 0) {
        return result;
    }
    if (!find_context(list.body_kept, list.body_kept_len, language, &path)) {
        return sg->fail(
            err, SG_E_UNAVAILABLE,
            "the interpreter takes no code, and the sandbox names none of '%s' to restart",
            language);
    }
    struct exchange order = {.method = "POST", .path = path.data};
    result = ask_restart(run, &order, err);
    if (result != 0) {
        return result;
    }
    return tell_restarted(run, err);
}

/* ---- how it ended ---- */

static bool was_sent(const struct exchange *exchange, int result)
{
    return result == 0 || exchange->reply.failed_at == 0 ||
           exchange->reply.failed_at > SG_HTTP_NO_TLS;
}

/* Nothing of it can have run, and whoever should have taken it may be there soon. */
static bool may_ask_again(const struct run *run, const struct exchange *exchange, int result)
{
    bool is_refused = result == 0 && fault_is_port_closed(exchange);
    return run->stop == STOP_NONE && (is_refused || !was_sent(exchange, result));
}

static int fail_refused(struct run *run, const struct exchange *exchange, struct sg_error *err)
{
    if (run->language != NULL && exchange->body_kept != NULL &&
        strstr(exchange->body_kept, "Failed to create context") != NULL) {
        return sg->fail(err, SG_E_INVALID,
                        "the sandbox has no interpreter for '%s': use python or bash",
                        run->language);
    }
    return fault_sandbox(run->e2b, run->call, run->sandbox, exchange, "cannot run code", err);
}

static int fail_time(const struct run *run, struct sg_error *err)
{
    long long seconds = (run->asked->timeout_ms + 500) / 1000;
    if (!run->stream.has_begun) {
        return sg->fail(err, SG_E_TIMEOUT,
                        "the code did not begin within %llds: the interpreter did not react",
                        seconds);
    }
    return sg->fail(err, SG_E_TIMEOUT,
                    "the code ran longer than %llds and was interrupted; variables are kept "
                    "unless it goes on all the same",
                    seconds);
}

int run_tell_begun(struct sg_call *call, int code, struct sg_error *err)
{
    static const char json[] = "{\"state\":\"begun\"}";
    int result =
        code == SG_E_UNAVAILABLE ? sg->emit(call, SG_OUT_STATUS, json, sizeof json - 1, err) : 0;
    return result != 0 ? result : code;
}

static int fail_lost(struct run *run, struct sg_error *err)
{
    const char *what =
        run->stop == STOP_SILENCE ? "the interpreter fell silent" : "the code did not end";
    int code = fault_lost(run->e2b, run->call, run->sandbox, what, err);
    return run_tell_begun(run->call, code, err);
}

/* It has begun or may have, and did not end in order. `result` is how the exchange ended. */
static int fail_cut(struct run *run, int result, struct sg_error *err)
{
    if (run->stream.code != 0) {
        return run->stream.code;
    }
    if (run->stop == STOP_INTERRUPT) {
        return fail_interrupted(err);
    }
    if (run->stop == STOP_NONE && result != 0 && sg->time_left_ms(run->call) <= 0) {
        return result; /* the call's time is over, or nobody waits */
    }
    if (run->stop == STOP_TIME || (result == SG_E_TIMEOUT && clock_ms() >= run->deadline)) {
        return fail_time(run, err);
    }
    if (run->stop == STOP_NONE && result == SG_E_CANCELLED) {
        return result;
    }
    return run->stop == STOP_NONE && result == SG_E_LIMIT ? event_end_output(&run->stream, err)
                                                          : fail_lost(run, err);
}

/* What the next run has to know of this one. */
static void leave_sandbox(struct run *run)
{
    struct sandbox *sandbox = run->sandbox;
    bool is_over = run->stream.has_ended;
    sandbox->may_be_busy = !is_over;
    sandbox->quiet_until = is_over ? 0 : clock_ms() + QUIET_MS;
    if (run->language == NULL) { /* an end that was told of is not told of again */
        sandbox->executions = run->stream.was_restarted ? 0 : run->stream.executions;
    }
}

static int conclude(struct run *run, const struct exchange *exchange, int result,
                    struct sg_error *err)
{
    if (!was_sent(exchange, result)) {
        return run->stop == STOP_INTERRUPT ? fail_interrupted(err)
               : run->stop == STOP_TIME    ? fail_time(run, err)
                                           : result;
    }
    if (result == 0 && exchange->reply.status / 100 != 2) {
        return fail_refused(run, exchange, err);
    }
    int code = stream_end(&run->stream, err);
    leave_sandbox(run);
    if (run->stream.unreadable_count > 0) {
        sg->log(run->call, SG_WARN,
                "%zu lines of the interpreter's answer are no JSON and were left out",
                run->stream.unreadable_count);
    }
    return run->stream.has_ended ? code : fail_cut(run, result, err);
}

/* ---- the whole ---- */

/* Until the server has dealt with the end of the run before. */
static int keep_quiet(const struct run *run, struct sg_error *err)
{
    int64_t ms = run->sandbox->quiet_until - clock_ms();
    ms = ms < QUIET_MS ? ms : QUIET_MS;
    int result = ms > 0 ? sg->sleep(run->call, ms, err) : 0;
    if (result == 0 && sandbox_is_interrupted(run->e2b, run->sandbox)) {
        return fail_interrupted(err);
    }
    return result;
}

static int run_code(struct run *run, struct sg_error *err)
{
    struct exchange exchange;
    size_t pauses = 0;
    int result;
    while ((result = keep_quiet(run, err)) == 0) {
        result = ask(run, &exchange, err);
        if (run->stop == STOP_STUCK) {
            result = restart(run, err);
        } else if (pauses < PAUSES && may_ask_again(run, &exchange, result)) {
            result = sg->sleep(run->call, pauses_ms[pauses++], err);
        } else {
            return conclude(run, &exchange, result, err);
        }
        if (result != 0) {
            break;
        }
    }
    return result;
}

static void put_request(struct text *out, const struct sg_run *asked, const char *language)
{
    text_puts(out, "{\"code\":");
    text_json(out, asked->code, asked->code_len);
    if (language != NULL) {
        text_puts(out, ",\"language\":");
        text_json(out, language, strlen(language));
    }
    text_puts(out, "}");
}

static int run_by_interpreter(struct e2b *e2b, struct sg_call *call, struct sandbox *sandbox,
                              const struct sg_run *asked, struct sg_error *err)
{
    struct run run = {.e2b = e2b, .call = call, .sandbox = sandbox, .asked = asked};
    run.language =
        asked->language != NULL && strcmp(asked->language, "python") != 0 ? asked->language : NULL;
    put_request(&run.request, asked, run.language);
    int result = run.request.overflow ? sg->fail(err, SG_E_LIMIT,
                                                 "the code is too long to be sent: it may have a "
                                                 "few MiB")
                                      : run_code(&run, err);
    stream_clear(&run.stream);
    text_clear(&run.request);
    return result;
}

static bool is_language(const char *language)
{
    size_t len = strspn(language, LETTERS "0123456789+#-_");
    return len > 0 && len <= 32 && language[len] == '\0';
}

int e2b_run(void *self, struct sg_call *call, const char *handle, const struct sg_run *asked,
            struct sg_error *err)
{
    struct e2b *e2b = self;
    struct sandbox *sandbox;
    if (asked->language != NULL && !is_language(asked->language)) {
        return sg->fail(err, SG_E_INVALID,
                        "the language of the code is no name of one: use python "
                        "or bash");
    }
    int result = sandbox_begin_run(e2b, call, handle, &sandbox, err);
    if (result == SG_E_GONE) {
        return sg->fail(err, SG_E_GONE_BEFORE, "%s", sg->message(err));
    }
    if (result != 0) {
        return result;
    }
    bool is_bash = asked->language != NULL && strcmp(asked->language, "bash") == 0;
    result = is_bash ? command_run(e2b, call, sandbox, asked, err)
                     : run_by_interpreter(e2b, call, sandbox, asked, err);
    sandbox_end_run(e2b, sandbox);
    sandbox_unref(e2b, sandbox);
    return result;
}
