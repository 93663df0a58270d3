/* A shell command, by envd's Process service: /bin/bash -l -c COMMAND as a process of its own, told in a stream of frames.
 *
 * Dropping the connection leaves a process running. So whatever ends a run before its process has ended (its time, an
 * interrupt, too much output, a connection that broke) is followed by SIGKILL. envd sends that to one process only, so one
 * more command is started that ends those below it; where the call allows no more exchange the next command in the sandbox
 * sends the signal first. Behind that stands the time limit that envd was given with the start. */
#include "api.h"
#include "envd.h"

#include <stdio.h>
#include <string.h>

#define OUTPUT_BYTES_MAX ((uint64_t)10 << 20)
#define ANSWER_BYTES_MAX ((uint64_t)256 << 20) /* of frames, whatever they hold */
#define COMMAND_BYTES_MAX ((128 << 10) - 1)    /* what Linux lets one argument have */
#define TICK_MS 200
#define END_MS 1000  /* from the word of the end to the end of the connection */
#define GRACE_MS 300 /* behind the deadline, for an exchange that no tick has ended */
#define KILL_TREE_MS 1200
#define KILL_MS 1200
#define RESERVE_MS 3000 /* of the call's time, behind the deadline: for all of these */
#define WHAT "cannot run the command"

enum stop {
    STOP_NONE,
    STOP_ENDED, /* all was said, but the connection stays open */
    STOP_TIMEOUT,
    STOP_OUTPUT,
    STOP_INTERRUPT,
    STOP_EMIT,  /* the core takes no more */
    STOP_FRAMES /* what comes is no stream of a process */
};

struct command {
    struct e2b *e2b;
    struct sg_call *call;
    struct sandbox *sandbox;
    const struct sg_run *run;
    int64_t limit_ms, deadline; /* clock_ms() */
    struct frames frames;
    struct joiner joiners[2]; /* standard output, standard error */
    struct text bytes, text;  /* of one piece of output */
    uint64_t emitted;
    int64_t pid; /* 0: not told yet */
    bool has_ended;
    int64_t end_by; /* 0: the end was not said yet */
    struct process_event end, failure;
    bool has_failed;
    enum stop stop;
    int stop_code; /* STOP_EMIT: emit()'s */
};

/* ---- what comes ---- */

/* The code only ends the exchange. */
static int stop(struct command *c, enum stop why, struct sg_error *err)
{
    c->stop = why;
    return sg->fail(err, SG_E_CANCELLED, "the run is being ended");
}

static int emit(struct command *c, enum sg_out kind, const char *data, size_t len,
                struct sg_error *err)
{
    c->stop_code = len == 0 ? 0 : sg->emit(c->call, kind, data, len, err);
    if (c->stop_code != 0) {
        c->stop = STOP_EMIT;
    }
    return c->stop_code;
}

/* As much of it as the output may still have. */
static int emit_text(struct command *c, int stream, struct sg_error *err)
{
    uint64_t room = OUTPUT_BYTES_MAX - c->emitted;
    size_t len = c->text.len == 0 ? 0 : text_cut(c->text.data, c->text.len, (size_t)room);
    c->emitted += len;
    int code = emit(c, stream == 0 ? SG_OUT_LOG_OUT : SG_OUT_LOG_ERR, c->text.data, len, err);
    if (code == 0 && len < c->text.len) {
        code = stop(c, STOP_OUTPUT, err);
    }
    c->text.len = 0;
    return code;
}

static int take_output(struct command *c, int stream, struct json_value content,
                       struct sg_error *err)
{
    c->bytes.len = 0;
    if (!base64_put(&c->bytes, content)) {
        c->frames.problem = "a piece of output is no base64";
        return stop(c, STOP_FRAMES, err);
    }
    joiner_put(&c->joiners[stream], c->bytes.data, c->bytes.len, &c->text);
    if (c->text.overflow) {
        c->frames.problem = "there is no memory for a piece of output";
        return stop(c, STOP_FRAMES, err);
    }
    return emit_text(c, stream, err);
}

static int take_event(struct command *c, const struct process_event *event, struct sg_error *err)
{
    switch (event->kind) {
    case PROCESS_STARTED:
        c->pid = event->pid;
        return 0;
    case PROCESS_STDOUT:
        return take_output(c, 0, event->content, err);
    case PROCESS_STDERR:
        return take_output(c, 1, event->content, err);
    case PROCESS_ENDED:
        c->has_ended = true;
        c->end = *event;
        return 0;
    case PROCESS_FAILED:
        c->has_failed = true;
        c->failure = *event;
        return 0;
    default:
        return 0;
    }
}

static int take_frames(struct command *c, const char *data, size_t len, struct sg_error *err)
{
    struct frame frame;
    while (frames_next(&c->frames, &data, &len, &frame)) {
        struct process_event event;
        if (!process_event_read(&frame, &event)) {
            c->frames.problem = "a frame is no event of a process";
            break;
        }
        int code = take_event(c, &event, err);
        if (code != 0) {
            return code;
        }
    }
    return c->frames.problem != NULL ? stop(c, STOP_FRAMES, err) : 0;
}

/* Whatever comes behind the end is waited for no longer than this, nor than the run may take. */
static int take_end(struct command *c, bool is_tick, struct sg_error *err)
{
    int64_t now = clock_ms();
    if (c->end_by == 0) {
        c->end_by = now + END_MS < c->deadline ? now + END_MS : c->deadline;
    }
    bool is_over = is_tick || now >= c->end_by || sandbox_is_interrupted(c->e2b, c->sandbox);
    return is_over ? stop(c, STOP_ENDED, err) : 0;
}

/* With bytes of the answer, or with none because time has passed. */
static int take(void *context, enum sg_out kind, const void *data, size_t len, struct sg_error *err)
{
    struct command *c = context;
    (void)kind; /* an answer is always DATA */
    int code = take_frames(c, data, len, err);
    if (code != 0) {
        return code;
    }
    if (c->has_ended || c->frames.has_ended) {
        return take_end(c, len == 0, err);
    }
    if (sandbox_is_interrupted(c->e2b, c->sandbox)) {
        return stop(c, STOP_INTERRUPT, err);
    }
    return clock_ms() >= c->deadline ? stop(c, STOP_TIMEOUT, err) : 0;
}

/* ---- what is sent ---- */

/* The request to start a bash, as a frame of its own. */
static void put_request(struct text *out, const char *options, const char *code, size_t code_len)
{
    text_put(out, "\0\0\0\0\0", FRAME_HEAD_BYTES);
    text_printf(out, "{\"process\":{\"cmd\":\"/bin/bash\",\"args\":[%s,\"-c\",", options);
    text_json(out, code, code_len);
    text_puts(out, "],\"envs\":{},\"cwd\":\"" ENVD_HOME "\"},\"stdin\":false}");
    if (!out->overflow) {
        size_t len = out->len - FRAME_HEAD_BYTES;
        for (int i = 4; i > 0; i--, len >>= 8) {
            out->data[i] = (char)(len & 0xFF);
        }
    }
}

/* The exchange that starts one; the content type is what `headers` have of it. */
static struct exchange start_exchange(const struct command *c, const struct text *request,
                                      struct envd_headers *headers, const char *limit)
{
    struct exchange x = {.method = "POST",
                         .path = "/process.Process/Start",
                         .body = request->data,
                         .body_len = request->len};
    envd_rpc(c->sandbox, &x, headers, "application/connect+json");
    envd_header(headers, "Connect-Timeout-Ms", limit);
    return x;
}

/* ---- ending a process ---- */

/* True if it is not there any more. */
static bool send_kill(struct e2b *e2b, struct sg_call *call, struct sandbox *sandbox, int64_t pid,
                      struct sg_error *err)
{
    char body[128];
    struct envd_headers headers;
    struct connect_error error;
    int len =
        snprintf(body, sizeof body, "{\"process\":{\"pid\":%lld},\"signal\":\"SIGNAL_SIGKILL\"}",
                 (long long)pid);
    struct exchange x = {.path = "/process.Process/SendSignal",
                         .body = body,
                         .body_len = (size_t)len,
                         .timeout_ms = KILL_MS};
    envd_rpc(sandbox, &x, &headers, "application/json");
    if (exchange_sandbox(e2b, call, sandbox, PORT_ENVD, &x, err) != 0) {
        return false;
    }
    bool is_unknown =
        connect_error_read(x.body_kept, x.body_kept_len, &error) && error.code == CONNECT_NOT_FOUND;
    return x.reply.status < 300 || is_unknown;
}

/* Stops a process and all below it, so that none begins another meanwhile, and kills them. Needs nothing but bash. */
static const char kill_tree_script[] =
    "tree=' %lld '; again=1; kill -STOP $tree\n"
    "while [ \"$again\" ]; do again=\n"
    "for s in /proc/[0-9]*/status; do p=${s#/proc/}; p=${p%%/status}\n"
    "while read -r k v; do if [ \"$k\" = PPid: ]; then\n"
    "case \"$tree\" in *\" $p \"*) ;; *\" $v \"*) kill -STOP $p; tree=\"$tree$p \"; again=1;; "
    "esac\n"
    "break; fi; done <$s; done; done 2>/dev/null\n"
    "kill -KILL $tree\n";

/* As well as it goes: the signal by envd follows. */
static void kill_tree(struct command *c, struct sg_error *err)
{
    char script[512], limit[24];
    struct envd_headers headers;
    TEXT_CLEANUP struct text request = {0};
    int len = snprintf(script, sizeof script, kill_tree_script, (long long)c->pid);
    put_request(&request, "\"--norc\"", script, (size_t)len);
    if (request.overflow) {
        return;
    }
    snprintf(limit, sizeof limit, "%d", KILL_TREE_MS);
    struct exchange x = start_exchange(c, &request, &headers, limit);
    x.timeout_ms = KILL_TREE_MS;
    (void)exchange_sandbox(c->e2b, c->call, c->sandbox, PORT_ENVD, &x, err);
}

/* What was left running by a command before. */
static void kill_stray(struct command *c, struct sg_error *err)
{
    int64_t pid = c->sandbox->stray_pid;
    if (pid != 0 && send_kill(c->e2b, c->call, c->sandbox, pid, err)) {
        c->sandbox->stray_pid = 0;
    }
}

/* True if nothing of it is left that we know of. */
static bool end_process(struct command *c, struct sg_error *err)
{
    if (c->has_ended || c->pid == 0) {
        return c->has_ended;
    }
    c->sandbox->stray_pid = c->pid;
    kill_tree(c, err);
    kill_stray(c, err);
    return c->sandbox->stray_pid == 0;
}

/* ---- how it went ---- */

static int fail_stopped(enum sg_code code, const char *how, bool is_killed, struct sg_error *err)
{
    return sg->fail(err, code, "the command %s and was %s; files are kept", how,
                    is_killed ? "killed" : "cut off");
}

static int fail_timeout(struct command *c, bool is_killed, struct sg_error *err)
{
    char how[64];
    snprintf(how, sizeof how, "ran longer than %llds", (long long)(c->limit_ms + 500) / 1000);
    return fail_stopped(SG_E_TIMEOUT, how, is_killed, err);
}

static int fail_output(struct command *c, bool is_killed, struct sg_error *err)
{
    static const char json[] = "{\"state\":\"output\"}";
    int code = sg->emit(c->call, SG_OUT_STATUS, json, sizeof json - 1, err);
    return code != 0 ? code : fail_stopped(SG_E_LIMIT, "printed more than 10MiB", is_killed, err);
}

/* envd has ended the stream with an error. */
static int fail_failed(struct command *c, bool is_killed, struct sg_error *err)
{
    char words[256];
    const struct connect_error *error = &c->failure.error;
    if (error->code == CONNECT_DEADLINE_EXCEEDED) {
        return fail_timeout(c, is_killed, err);
    }
    if (error->code == CONNECT_INVALID_ARGUMENT && connect_error_says(error, "cwd")) {
        return sg->fail(err, SG_E_UNAVAILABLE,
                        "cannot run the command: the sandbox has no folder " ENVD_HOME
                        "; is 'template' one of E2B's?");
    }
    fault_scrub(c->e2b, c->sandbox, error->message, strlen(error->message), words);
    return sg->fail(err, SG_E_UNAVAILABLE, "%s: %s",
                    c->pid != 0 ? "the sandbox gave the command up"
                                : "the sandbox did not start the command",
                    words[0] != '\0' ? words : "without a reason");
}

/* The stream came to an end without the command's. */
static int fail_interrupted(struct command *c, struct sg_error *err)
{
    return fault_lost(c->e2b, c->call, c->sandbox,
                      "the sandbox's answer ended before the command did", err);
}

static int give_end(struct command *c, struct sg_error *err)
{
    char json[64];
    int code = 0;
    for (int stream = 0; code == 0 && stream < 2; stream++) {
        joiner_end(&c->joiners[stream], &c->text);
        code = emit_text(c, stream, err);
    }
    if (code != 0) {
        return c->stop == STOP_OUTPUT ? fail_output(c, true, err) : code;
    }
    if (c->end.is_killed && clock_ms() >= c->deadline) { /* by envd, since its time was over */
        return fail_timeout(c, true, err);
    }
    int len = snprintf(json, sizeof json, "{\"state\":\"exited\",\"code\":%d}", c->end.exit_code);
    return sg->emit(c->call, SG_OUT_STATUS, json, (size_t)len, err);
}

static int conclude_stopped(struct command *c, bool is_killed, struct sg_error *err)
{
    switch (c->stop) {
    case STOP_TIMEOUT:
        return fail_timeout(c, is_killed, err);
    case STOP_OUTPUT:
        return fail_output(c, is_killed, err);
    case STOP_INTERRUPT:
        return fail_stopped(SG_E_CANCELLED, "was interrupted", is_killed, err);
    default:
        return sg->fail(err, SG_E_UNAVAILABLE,
                        "the sandbox's answer to a command is not what E2B's envd sends: %s",
                        c->frames.problem);
    }
}

/* Of the command there is more than the request. */
static bool has_begun(const struct command *c)
{
    return c->pid != 0 || c->emitted > 0;
}

/* The exchange failed by itself. */
static int conclude_unanswered(struct command *c, const struct exchange *x, int code,
                               bool is_killed, struct sg_error *err)
{
    if (code == SG_E_LIMIT) {
        return fail_output(c, is_killed, err);
    }
    if (code == SG_E_TIMEOUT && clock_ms() >= c->deadline) {
        return fail_timeout(c, is_killed, err);
    }
    const char *what = has_begun(c) ? "the command did not end" : WHAT;
    return envd_fail_lost(c->e2b, c->call, c->sandbox, x, code, what, err);
}

/* Ends what must be ended; the error says afterwards what it said before. */
static bool end_process_quietly(struct command *c, int code, struct sg_error *err)
{
    char why[512] = "";
    if (code != 0) {
        snprintf(why, sizeof why, "%s", sg->message(err));
    }
    bool is_killed = end_process(c, err);
    if (code != 0) {
        (void)sg->fail(err, (enum sg_code)code, "%s", why); /* the code is the caller's */
    }
    return is_killed;
}

/* It did not end in order, if it began at all. */
static int conclude_cut(struct command *c, const struct exchange *x, int code, bool is_killed,
                        struct sg_error *err)
{
    if (c->stop > STOP_ENDED) {
        return conclude_stopped(c, is_killed, err);
    }
    if (c->has_failed) {
        return fail_failed(c, is_killed, err);
    }
    return code != 0 && c->stop == STOP_NONE ? conclude_unanswered(c, x, code, is_killed, err)
                                             : fail_interrupted(c, err);
}

/* It ran, or nothing says that it did not. */
static bool may_have_begun(const struct command *c, const struct exchange *x, int code)
{
    bool was_sent = code == 0 || c->stop != STOP_NONE || x->reply.failed_at > SG_HTTP_NO_TLS;
    return has_begun(c) || (was_sent && !c->has_failed);
}

static int conclude(struct command *c, const struct exchange *x, int code, struct sg_error *err)
{
    if (c->has_ended && c->stop <= STOP_ENDED) {
        return give_end(c, err); /* whatever became of the connection since */
    }
    if (code == 0 && (x->reply.status < 200 || x->reply.status > 299)) {
        return fault_sandbox(c->e2b, c->call, c->sandbox, x, WHAT, err);
    }
    bool is_killed = end_process_quietly(c, code, err);
    if (c->stop == STOP_EMIT) {
        return c->stop_code;
    }
    int failed = conclude_cut(c, x, code, is_killed, err);
    return may_have_begun(c, x, code) ? run_tell_begun(c->call, failed, err) : failed;
}

/* ---- the whole ---- */

/* The command has its whole time from when it is sent, as far as the call's goes. */
static void begin_clock(struct command *c)
{
    int64_t left = sg->time_left_ms(c->call) - RESERVE_MS;
    int64_t limit = c->run->timeout_ms > 0 && c->run->timeout_ms < left ? c->run->timeout_ms : left;
    c->limit_ms = limit > 0 ? limit : 1;
    c->deadline = clock_ms() + c->limit_ms;
}

static int ask(struct command *c, const struct text *request, struct sg_error *err)
{
    char limit[24];
    struct envd_headers headers;
    const struct sg_sink sink = {take, c};
    kill_stray(c, err);
    if (sandbox_is_interrupted(c->e2b, c->sandbox)) {
        return sg->fail(err, SG_E_CANCELLED, "the command was interrupted before it began");
    }
    begin_clock(c);
    snprintf(limit, sizeof limit, "%lld", (long long)c->limit_ms);
    struct exchange x = start_exchange(c, request, &headers, limit);
    x.timeout_ms = c->limit_ms + GRACE_MS;
    x.bytes_max = ANSWER_BYTES_MAX;
    x.tick_ms = TICK_MS;
    x.sink = &sink;
    envd_header(&headers, "Keepalive-Ping-Interval", "50"); /* seconds */
    int code = envd_exchange(c->e2b, c->call, c->sandbox, &x, err);
    return conclude(c, &x, code, err);
}

/* An argument of a process holds no NUL, and is of limited length. */
static int check(const struct sg_run *run, struct sg_error *err)
{
    if (run->code_len > 0 && memchr(run->code, '\0', run->code_len) != NULL) {
        return sg->fail(err, SG_E_INVALID, "a shell command cannot hold a NUL byte");
    }
    return run->code_len <= COMMAND_BYTES_MAX
               ? 0
               : sg->fail(
                     err, SG_E_LIMIT,
                     "a shell command has at most 128KiB here: write it to a file, and run that");
}

int command_run(struct e2b *e2b, struct sg_call *call, struct sandbox *sandbox,
                const struct sg_run *run, struct sg_error *err)
{
    struct command *c = sg->alloc(call, sizeof *c);
    TEXT_CLEANUP struct text request = {0};
    int code = check(run, err);
    if (code != 0) {
        return code;
    }
    put_request(&request, "\"-l\"", run->code, run->code_len);
    if (c == NULL || request.overflow) {
        return sg->fail(err, SG_E_LIMIT, "no memory for a command");
    }
    *c = (struct command){.e2b = e2b, .call = call, .sandbox = sandbox, .run = run};
    code = ask(c, &request, err);
    frames_clear(&c->frames);
    text_clear(&c->bytes);
    text_clear(&c->text);
    return code;
}
