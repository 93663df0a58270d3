/* One run of code, or of a shell command, in a box: sent, watched, ended.
 *
 * The box is never believed about how the run went, except that it says "finished". The time is ours: at the end of it
 * SIGINT, a second later SIGKILL to pid 1. That the interpreter has ended, and how, comes from pid 1 over the status
 * socket. What is printed beyond the limits is read and dropped, so that the gateway never grows, and far beyond them
 * the run is interrupted as if its time were over. */
#include "exchange.h"
#include "local.h"
#include "output.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define END_MS 5000                    /* for a killed box to be gone */
#define COALESCE_MS 15                 /* text waits so long for more */
#define FLOOD_BYTES ((size_t)64 << 20) /* read from one run before it is interrupted */
#define TURN_BYTES ((size_t)256 << 10) /* read before other work of the loop gets its turn */
#define NOTE_TRIES 4                   /* of looking at both pipes at one moment */

enum stop_reason { STOP_NONE, STOP_TIMEOUT, STOP_FLOOD, STOP_INTERRUPT, STOP_CLOSED };

struct run {
    struct local *local;
    struct sg_call *call;
    struct box *box;
    const struct run_request *request;
    struct output output;
    int64_t deadline;   /* of the code */
    int64_t kill_at;    /* once it has been told to stop; INT64_MAX */
    int64_t give_up_at; /* once it has been killed */
    enum stop_reason why;
    bool end_awaited; /* it has ended, and pid 1 has yet to say how */
    bool killed;
    bool finished;   /* "finished" has come */
    bool failed;     /* the box sends no more that counts: it has ended */
    int exit_status; /* of a command; -1: not told */
    bool is_refused; /* there is nothing to run it */
    bool is_lost;    /* node was killed with it */
    bool restart_told;
    uint64_t bytes;
    size_t out_noted, err_noted; /* in the pipes, to be read before later packets */
    char packet[FRAME_BYTES_MAX];
};

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- stopping ---- */

static void tell_to_stop(struct run *run, enum stop_reason why)
{
    if (run->why != STOP_NONE) {
        return;
    }
    run->why = why;
    run->kill_at = local_now_ms() + GRACE_MS;
    exchange_interrupt(run->box); /* what does not react is killed */
}

static void stop_by_force(struct run *run)
{
    run->killed = true;
    run->kill_at = INT64_MAX;
    run->give_up_at = local_now_ms() + END_MS;
    box_kill(run->box);
}

/* The kernel's word, so that a box which only closes its connection gains nothing. */
static bool driver_has_ended(const struct box *box)
{
    struct pollfd end = {.fd = box->driver, .events = POLLIN};
    return box->driver >= 0 && poll(&end, 1, 0) == 1;
}

/* An interpreter that has ended runs nothing any more: pid 1 is given longer to say how it ended, which on a busy
 * machine can take more than the time in which running code has to react. */
static void await_word_of_end(struct run *run)
{
    if (run->why == STOP_CLOSED && !run->end_awaited && driver_has_ended(run->box)) {
        run->end_awaited = true;
        run->kill_at = local_now_ms() + END_MS;
    }
}

static void look_at_clock(struct run *run)
{
    await_word_of_end(run);
    int64_t now = local_now_ms();
    if (run->bytes > FLOOD_BYTES) {
        tell_to_stop(run, STOP_FLOOD);
    }
    if (now >= run->deadline) {
        tell_to_stop(run, STOP_TIMEOUT);
    }
    if (now >= run->kill_at) {
        stop_by_force(run);
    }
    if (now >= run->give_up_at) {
        run->failed = true;
    }
}

static void look_at_requests(struct run *run)
{
    pthread_mutex_lock(&run->local->lock);
    bool interrupt = run->box->interrupt_wanted;
    run->box->interrupt_wanted = false;
    pthread_mutex_unlock(&run->local->lock);
    if (interrupt) {
        tell_to_stop(run, STOP_INTERRUPT);
    }
}

/* ---- reading ---- */

static size_t pipe_bytes(int fd)
{
    int bytes = 0;
    return fd >= 0 && ioctl(fd, FIONREAD, &bytes) == 0 && bytes > 0 ? (size_t)bytes : 0;
}

/* Notes what is in the pipes at one moment: nobody else reads them, so if standard output has not grown while standard
 * error was looked at, both are of that moment. Else what went to both in turn could be taken in the wrong order. */
static void note_pipes(struct run *run)
{
    size_t out = pipe_bytes(run->box->out);
    for (int tries = 0; tries < NOTE_TRIES; tries++) {
        run->out_noted = out;
        run->err_noted = pipe_bytes(run->box->err);
        out = pipe_bytes(run->box->out);
        if (out == run->out_noted) {
            return;
        }
    }
}

/* Up to *noted bytes of a pipe, which become 0. */
static int read_pipe(struct run *run, int *fd, size_t *noted, enum output_source source,
                     struct sg_error *err)
{
    int result = 0;
    while (*noted > 0 && result == 0) {
        size_t size = *noted < sizeof run->packet ? *noted : sizeof run->packet;
        ssize_t len = box_read_pipe(run->box, fd, run->packet, size);
        if (len <= 0) {
            *noted = 0;
            return 0;
        }
        *noted -= (size_t)len;
        run->bytes += (size_t)len;
        result = output_bytes(&run->output, source, run->packet, (size_t)len, local_now_ms(), err);
    }
    return result;
}

static int read_noted(struct run *run, struct sg_error *err)
{
    int result = read_pipe(run, &run->box->out, &run->out_noted, SOURCE_PIPE_OUT, err);
    return result != 0 ? result
                       : read_pipe(run, &run->box->err, &run->err_noted, SOURCE_PIPE_ERR, err);
}

/* A shell's state is gone with it; the model has to know before it reads what the new one says. */
static int tell_restart(struct run *run, const struct frame *frame, struct sg_error *err)
{
    char json[200];
    run->restart_told = true;
    bool is_command = run->request->language == RUN_COMMAND;
    int len = snprintf(json, sizeof json,
                       "{\"state\":\"restarted\",\"note\":\"%s %s; this is a new one: "
                       "%svariables and functions are not those of before\"}",
                       is_command ? "the shell" : "node",
                       frame->number == 0 ? "had ended" : "was killed with a run before",
                       is_command ? "directory, " : "");
    int result = output_flush(&run->output, err);
    return result != 0 ? result
                       : run->request->sink->event(run->request->sink->ctx, SG_OUT_STATUS, json,
                                                   (size_t)len, err);
}

/* What is told of a command, or of JavaScript, beside its output. */
static int note_command(struct run *run, const struct frame *frame, struct sg_error *err)
{
    if (frame->kind == FRAME_EXITED) {
        run->exit_status = (int)frame->number;
    }
    run->is_refused = run->is_refused || frame->kind == FRAME_REFUSED;
    run->is_lost = run->is_lost || frame->kind == FRAME_LOST;
    return frame->kind == FRAME_RESTARTED && !run->restart_told ? tell_restart(run, frame, err) : 0;
}

static int take_frame(struct run *run, const struct frame *frame, struct sg_error *err)
{
    int result = run->request->language == RUN_PYTHON ? 0 : note_command(run, frame, err);
    if (result != 0) {
        return result;
    }
    if (frame->kind != FRAME_SYNC) {
        run->finished = frame->kind == FRAME_FINISHED;
        return output_frame(&run->output, frame, local_now_ms(), err);
    }
    note_pipes(run);
    result = read_noted(run, err);
    if (result == 0) {
        exchange_answer_sync(run->box);
    }
    return result;
}

/* Packets until there are none, it is the turn of others, or the cell has finished. */
static int read_control(struct run *run, struct sg_error *err)
{
    size_t turn = 0, bytes = 0;
    ssize_t len;
    while (turn < TURN_BYTES && !run->finished && run->box->end != END_INTRUDED &&
           ((len = box_read_packet(run->box, run->packet, sizeof run->packet, &bytes)) > 0 ||
            bytes > 0)) {
        struct frame frame;
        turn += bytes;
        run->bytes += bytes;
        if (len <= 0 || !frame_read(run->packet, (size_t)len, &frame) ||
            frame.nonce != run->box->nonce) {
            continue;
        }
        int result = take_frame(run, &frame, err);
        if (result != 0) {
            return result;
        }
    }
    if (turn >= TURN_BYTES) {
        run->out_noted = run->err_noted = 0; /* packets from before may be left: the pipes wait */
    }
    if (run->box->control < 0 && !run->finished) {
        tell_to_stop(run, STOP_CLOSED); /* its end comes over the status socket, or it is killed */
    }
    return 0;
}

/* What is in the pipes now was written after the packets that are there now, and before any later one: the interpreter's
 * side sends nothing while the pipes hold something, but asks first that it be read (FRAME_SYNC). So: note the bytes,
 * read the packets, then read the bytes. */
static int read_all(struct run *run, unsigned ready, struct sg_error *err)
{
    note_pipes(run);
    /* One byte more than none, so that the end is seen. */
    run->out_noted += run->out_noted == 0 && (ready & READY_STDOUT) != 0;
    run->err_noted += run->err_noted == 0 && (ready & READY_STDERR) != 0;
    int result = read_control(run, err);
    if (result == 0) {
        result = read_noted(run, err);
    }
    if ((ready & READY_STATUS) != 0) {
        box_read_status(run->box);
    }
    return result;
}

/* After the end of a box: all that is left in its buffers, whose size the kernel bounds. */
static int read_remains(struct run *run, struct sg_error *err)
{
    int result = 0;
    uint64_t before, most = run->bytes + STALE_BYTES;
    do {
        before = run->bytes;
        result = read_all(run, 0, err);
    } while (result == 0 && run->bytes != before && run->bytes < most);
    return result;
}

/* One wait and what it brings. */
static int take_turn(struct run *run, struct sg_error *err)
{
    unsigned ready = 0;
    int64_t now = local_now_ms();
    int64_t until = earlier(earlier(run->deadline, run->kill_at), run->give_up_at);
    if (run->why != STOP_NONE) {
        until = earlier(run->kill_at, run->give_up_at); /* the deadline has had its say */
    }
    if (run->output.pending.len > 0) {
        until = earlier(until, run->output.pending_since_ms + COALESCE_MS);
    }
    int result = box_wait(run->call, run->box, until > now ? until - now : 0, &ready, err);
    if (result == 0) {
        look_at_requests(run);
        result = read_all(run, ready, err);
    }
    if (result == 0 && run->output.pending.len > 0 &&
        local_now_ms() >= run->output.pending_since_ms + COALESCE_MS) {
        result = output_flush(&run->output, err);
    }
    look_at_clock(run);
    run->failed = run->failed || run->box->end != END_NONE;
    return result;
}

/* ---- the end ---- */

static const char *subject_of(const struct run *run)
{
    return run->request->language == RUN_COMMAND ? "the command" : "the code";
}

static int fail_stopped(const struct run *run, struct sg_error *err)
{
    char end[256];
    long long seconds = (run->request->timeout_ms + 500) / 1000;
    switch (run->why) {
    case STOP_TIMEOUT:
        return sg->fail(err, SG_E_GONE,
                        "%s ran longer than %llds, did not react to the interrupt and was "
                        "killed; variables and files are gone",
                        subject_of(run), seconds);
    case STOP_FLOOD:
        return sg->fail(err, SG_E_GONE,
                        "%s printed more than 64MiB, did not react to the interrupt and was "
                        "killed; variables and files are gone",
                        subject_of(run));
    case STOP_INTERRUPT:
        return sg->fail(err, SG_E_GONE,
                        "%s did not react to the interrupt and was killed; variables and files are "
                        "gone",
                        subject_of(run));
    default:
        return sg->fail(err, SG_E_GONE, "%s; variables and files are gone",
                        run->box->end == END_NONE || run->box->end == END_UNKNOWN
                            ? "the interpreter closed its connection and was killed"
                            : box_end_text(run->local, run->box, end, sizeof end));
    }
}

static bool is_closing(const struct run *run)
{
    pthread_mutex_lock(&run->local->lock);
    bool closing = run->box->closing;
    pthread_mutex_unlock(&run->local->lock);
    return closing;
}

static int fail_gone(struct run *run, struct sg_error *err)
{
    char end[256];
    if (is_closing(run)) {
        return sg->fail(err, SG_E_GONE, "the container was deleted while code ran in it");
    }
    if (run->killed) {
        return fail_stopped(run, err);
    }
    /* Not by us, even if its connection was seen to close before the rest. */
    return sg->fail(err, SG_E_GONE, "%s; variables and files are gone",
                    box_end_text(run->local, run->box, end, sizeof end));
}

static const char *stopped_text(const struct run *run)
{
    if (run->request->language == RUN_COMMAND) {
        return "killed; files are kept";
    }
    return run->is_lost ? "killed, and node with it: its variables are gone, files are kept"
                        : "interrupted; variables are kept";
}

static int conclude(struct run *run, struct sg_error *err)
{
    long long seconds = (run->request->timeout_ms + 500) / 1000;
    if (!run->finished) {
        return fail_gone(run, err);
    }
    run->box->unfinished = false;
    switch (run->why) {
    case STOP_TIMEOUT:
        return sg->fail(err, SG_E_TIMEOUT, "%s ran longer than %llds and was %s", subject_of(run),
                        seconds, stopped_text(run));
    case STOP_FLOOD:
        return sg->fail(err, SG_E_LIMIT, "%s printed more than 64MiB and was %s", subject_of(run),
                        stopped_text(run));
    default:
        if (run->is_refused) {
            return sg->fail(err, SG_E_INVALID, "%s",
                            run->request->language == RUN_COMMAND
                                ? "the container has no shell: there is neither bash nor sh in "
                                  "its /usr/bin"
                                : "the container has no JavaScript: there is no node in its "
                                  "/usr/bin, which is the machine's; install it there");
        }
        return 0; /* also if the box has ended since: the next run will find that */
    }
}

/* A flood need not have a text: then this alone tells whose limit it was. */
static int tell_flood(const struct run *run, struct sg_error *err)
{
    static const char json[] = "{\"state\":\"output\"}";
    return run->request->sink->event(run->request->sink->ctx, SG_OUT_STATUS, json, sizeof json - 1,
                                     err);
}

/* What is to be known beside the output of a run that finished. */
static int give_notes(struct run *run, struct sg_error *err)
{
    char json[160];
    int result = run->why == STOP_FLOOD && run->finished ? tell_flood(run, err) : 0;
    if (result != 0) {
        return result;
    }
    run->box->memory_killed =
        run->box->memory_killed || group_kills(run->box->events) > run->box->group_kills;
    if (!run->box->memory_killed || run->box->end != END_NONE) {
        return 0;
    }
    int len = snprintf(json, sizeof json,
                       "{\"state\":\"memory\",\"note\":\"processes started by the code were killed "
                       "for the memory they took (limit %lluMiB)\"}",
                       (unsigned long long)(run->local->config->memory >> 20));
    return run->request->sink->event(run->request->sink->ctx, SG_OUT_STATUS, json, (size_t)len,
                                     err);
}

/* How a command ended, where it did so by itself or by an interrupt. */
static int give_exit(const struct run *run, struct sg_error *err)
{
    char json[64];
    bool is_stopped = run->why == STOP_TIMEOUT || run->why == STOP_FLOOD;
    if (!run->finished || run->exit_status < 0 || is_stopped) {
        return 0;
    }
    int len = snprintf(json, sizeof json, "{\"state\":\"exited\",\"code\":%d}", run->exit_status);
    return run->request->sink->event(run->request->sink->ctx, SG_OUT_STATUS, json, (size_t)len,
                                     err);
}

static int watch(struct run *run, struct sg_error *err)
{
    int result = 0;
    while (result == 0 && !run->finished && !run->failed) {
        result = take_turn(run, err);
    }
    if (result == 0) {
        /* What subprocesses wrote before the cell finished is in the pipes by now. */
        result = run->finished ? read_all(run, 0, err) : read_remains(run, err);
    }
    if (result == 0) {
        result = output_end(&run->output, err);
    }
    if (result == 0 && run->finished) {
        result = local_tell_changes(run->local, run->call, run->box, run->request->sink, err);
    }
    if (result == 0) {
        result = give_notes(run, err);
    }
    if (result == 0) {
        result = give_exit(run, err);
    }
    return result != 0 ? result : conclude(run, err);
}

static int run_begin(struct run *run, struct sg_error *err)
{
    const struct run_request *request = run->request;
    static const enum frame_kind kinds[] = {FRAME_RUN, FRAME_COMMAND, FRAME_SCRIPT};
    const struct exchange exchange = {run->local, run->call, run->box, run->packet, run->deadline};
    int result = exchange_begin(&exchange, err);
    return result != 0 ? result
                       : exchange_send(&exchange, kinds[request->language], request->code,
                                       request->code_len, false, err);
}

static int run_claimed(struct run *run, struct sg_error *err)
{
    const struct exchange exchange = {run->local, run->call, run->box, run->packet, 0};
    int result = exchange_settle(&exchange, err);
    run->deadline = local_now_ms() + run->request->timeout_ms;
    if (result == 0) {
        result = run_begin(run, err);
    }
    if (result == 0) {
        result = watch(run, err);
    }
    if (result == SG_E_TIMEOUT &&
        !run->finished) { /* the core's patience, far beyond the code's time */
        result = sg->fail(err, SG_E_TIMEOUT,
                          "the run took longer than it may; its container was deleted");
    }
    exchange_end(run->box, run->killed);
    return result;
}

int local_run(struct local *local, struct sg_call *call, struct box *box,
              const struct run_request *request, struct sg_error *err)
{
    if (!exchange_claim(local, box)) {
        return sg->fail(err, SG_E_INTERNAL, "code runs in this container already");
    }
    struct run *run = calloc(1, sizeof *run);
    int result = SG_E_UNAVAILABLE;
    if (run == NULL) {
        sg->fail(err, SG_E_UNAVAILABLE, "no memory for a run");
    } else {
        *run = (struct run){.local = local,
                            .call = call,
                            .box = box,
                            .request = request,
                            .exit_status = -1,
                            .kill_at = INT64_MAX,
                            .give_up_at = INT64_MAX};
        output_init(&run->output, request->sink, local->config->output, local->config->results);
        result = run_claimed(run, err);
        output_clear(&run->output);
    }
    free(run);
    exchange_release(local, box);
    return result;
}
