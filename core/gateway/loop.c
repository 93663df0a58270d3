/* The loop: the turns of one request in which interceptors take part. Each turn calls the upstream and passes its text
 * on as it comes; calls of our tools are held back, run, and their results open the next turn. The rules and their
 * limits are in docs/architecture.md ("The loop"). */
#include "gateway/upstream.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "gateway/metrics.h"

#include <stdio.h>
#include <string.h>

static const char no_answer_text[] =
    "The tools were used as often as this request allows, and the model gave no answer in words.";

struct turns { /* where the loop stands */
    const struct surface *surface;
    struct surface_turn_options options; /* of the next turn */
    bool over;                           /* a call of the turn before was over a limit */
    size_t calls_max;                    /* that the client allows */
    struct buf out;                      /* for the client, not yet written */
    uint64_t written;                    /* bytes of it that were */
};

struct failure {      /* what may be done about a try that failed */
    bool is_silent;   /* nothing of it has gone to the client: it can be made again */
    bool goes_on;     /* … and another upstream shall be tried */
    int64_t delay_ms; /* … after so long; -1: that would not help */
};

/* Hands what has gathered to the client; with the first bytes go status and head. */
static int write_out(struct request *r, struct turns *turns, struct sg_error *err)
{
    if (turns->out.overflow) {
        return error_set(err, SG_E_LIMIT, "The answer is too large for this gateway.");
    }
    if (turns->out.len == 0) {
        return 0;
    }
    int rc = r->is_streaming ? 0 : answer_begin_stream(r, err);
    if (rc == 0) {
        rc = http_answer_write(r->exchange, buf_str(&turns->out), err);
    }
    r->spoke_ms = clock_ms();
    turns->written += turns->out.len;
    buf_reset(&turns->out); /* also where it failed: what of it has gone is not known */
    return rc;
}

struct reading { /* of a turn's answer */
    struct upstream_call *call;
    struct str piece;
    size_t held; /* bytes of it on the request's account */
};

static int head_wait(void *context, struct sg_error *err)
{
    return upstream_call_head(((struct reading *)context)->call, err);
}

static int piece_wait(void *context, struct sg_error *err)
{
    struct reading *reading = context;
    return upstream_call_read(reading->call, &reading->piece, err);
}

/* Sees to it that what the surface keeps of the turn is on the account: less than came, where it is a stream. */
static int turn_hold(struct request *r, const struct turns *turns, struct reading *reading,
                     struct sg_error *err)
{
    size_t bytes = turns->surface->turn_bytes(r->talk);
    int rc = 0;
    if (bytes > reading->held) {
        rc = account_take(&r->account, bytes - reading->held, err);
    } else {
        account_give(&r->account, reading->held - bytes);
    }
    reading->held = rc == 0 ? bytes : reading->held;
    return rc;
}

/* The answer of one turn, passed on as it comes. */
static int turn_read(struct request *r, struct turns *turns, struct reading *reading,
                     struct surface_turn *ret, struct sg_error *err)
{
    for (;;) {
        int rc = alive_wait(r, piece_wait, reading, err);
        if (rc != 0) {
            return rc;
        }
        if (reading->piece.len == 0) {
            break;
        }
        rc = turns->surface->turn_feed(r->talk, reading->piece, &turns->out, err);
        if (rc == 0) {
            rc = turn_hold(r, turns, reading, err);
        }
        if (rc == 0) {
            rc = write_out(r, turns, err);
        }
        if (rc != 0) {
            return rc;
        }
        if (turns->surface->turn_is_done(r->talk)) {
            upstream_call_drain(reading->call);
            break;
        }
    }
    int rc = turns->surface->turn_end(r->talk, &turns->out, ret, err);
    return rc == 0 ? write_out(r, turns, err) : rc;
}

static int turn_call(struct request *r, struct turns *turns, struct upstream_call *call,
                     struct surface_turn *ret, struct sg_error *err)
{
    struct reading reading = {.call = call};
    int rc = alive_wait(r, head_wait, &reading, err);
    if (rc == 0) {
        upstream_limits_keep(call);
    }
    if (rc == 0 && (call->status < 200 || call->status > 299)) {
        rc = upstream_call_failed(call, err);
    }
    if (rc == 0) {
        turns->surface->turn_begin(r->talk, call->is_stream);
        rc = turn_read(r, turns, &reading, ret, err);
        rc = rc == 0 ? 0 : upstream_turn_failed(call, err);
    }
    if (rc != 0) { /* the surface forgets it */
        account_give(&r->account, reading.held);
    }
    return rc;
}

static int turn_try(struct request *r, struct turns *turns, struct surface_turn *ret,
                    struct failure *ret_failure, struct sg_error *err)
{
    BUF_CLEANUP struct buf body = {.max = LIMIT_BODY_BYTES};
    struct upstream_call call;
    uint64_t written = turns->written;
    *ret_failure = (struct failure){.delay_ms = -1};
    int rc = turns->surface->turn_request(r->talk, &turns->options, &body, err);
    if (rc == 0 && r->turns == 1) {
        rc = stored_check_turn(r, buf_str(&body), err);
    }
    rc = rc == 0 ? account_take(&r->account, body.len, err) : rc;
    if (rc != 0) {
        return rc;
    }
    rc = upstream_call_begin(r, buf_str(&body), true, &call, err);
    if (rc == 0) {
        rc = turn_call(r, turns, &call, ret, err);
    }
    if (rc != 0) {
        ret_failure->is_silent = turns->written == written && turns->out.len == 0;
        ret_failure->goes_on = ret_failure->is_silent && fallback_begin(&call, err);
        ret_failure->delay_ms = ret_failure->is_silent ? retry_delay(&call, err) : -1;
    }
    upstream_call_end(&call);
    account_give(&r->account, body.len);
    return rc;
}

static void turn_log(const struct request *r, const struct surface_turn *turn, int64_t began_ms)
{
    struct log_line line;
    log_begin(&line, SG_INFO, "turn");
    log_text(&line, "request", r->id);
    log_int(&line, "turn", r->turns);
    log_int(&line, "calls", (int64_t)turn->calls_count);
    log_count(&line, "input_tokens", turn->usage.input_tokens);
    log_count(&line, "output_tokens", turn->usage.output_tokens);
    log_int(&line, "ms", clock_ms() - began_ms);
    log_end(&line);
}

/* The upstream finds the request too long, right behind results of ours: shorter ones may save it. */
static bool results_cut(struct request *r, struct turns *turns, const struct sg_error *err)
{
    if (r->turns < 2 || !error_says_context_full(err) ||
        !turns->surface->results_cut(r->talk, LIMIT_RESULT_CUT_BYTES)) {
        return false;
    }
    struct log_line line;
    log_begin(&line, SG_WARN, "results_cut");
    log_text(&line, "request", r->id);
    log_int(&line, "turn", r->turns);
    log_text(&line, "message", err->message);
    log_end(&line);
    return true;
}

/* A turn, tried again where its failure may pass and the client has seen nothing of it. */
static int turn_serve(struct request *r, struct turns *turns, struct surface_turn *ret,
                      struct sg_error *err)
{
    int64_t began_ms = clock_ms();
    bool is_cut = false;
    r->turns++;
    for (r->tries = 1;;) {
        struct failure failure;
        int rc = turn_try(r, turns, ret, &failure, err);
        if (rc == 0) {
            turn_log(r, ret, began_ms);
            r->may_begin_stream = turns->surface->wants_stream(r->talk);
            return 0;
        }
        if (failure.goes_on) {
            return rc;
        }
        if (failure.is_silent && !is_cut && results_cut(r, turns, err)) {
            is_cut = true;
            *err = (struct sg_error){0};
            continue;
        }
        if (failure.delay_ms < 0 || ++r->tries > r->upstream->tries_max) {
            return rc;
        }
        rc = retry_wait(r, failure.delay_ms, err);
        if (rc != 0) {
            return rc;
        }
    }
}

/* May this call of the turn be run? `place` counts within the turn. It is counted, then: the caller begins it. */
static bool call_admit(struct request *r, const struct turns *turns, size_t place)
{
    return !turns->over && place < LIMIT_CALLS_PER_TURN &&
           r->calls_run < (unsigned)r->gateway->config->loop.max_calls &&
           r->calls_run < turns->calls_max && clock_ms() < r->tools_deadline && limits_take_run(r);
}

struct started { /* the turn's calls that were begun, and not yet finished */
    struct tool_call *calls[LIMIT_CALLS_PER_TURN];
    size_t next, end; /* places in the turn */
};

/* Begins the call at this place, and those behind it that may run beside it. */
static void calls_start(struct request *r, const struct turns *turns,
                        const struct surface_turn *turn, size_t place, struct started *started)
{
    *started = (struct started){.next = place, .end = place};
    do {
        r->calls_run++;
        started->calls[started->end] = tool_start(r, &turn->calls[started->end]);
        started->end++;
    } while (started->end < turn->calls_count &&
             turn->calls[started->end].offer == turn->calls[place].offer &&
             tool_may_be_beside(r, &turn->calls[place]) && call_admit(r, turns, started->end));
}

static void calls_drop(struct started *started)
{
    for (size_t i = started->next; i < started->end; i++) {
        tool_cancel(started->calls[i]);
    }
    while (started->next < started->end) {
        tool_drop(started->calls[started->next++]);
    }
}

/* One call, or the word that it is not run. */
static int call_serve(struct request *r, struct turns *turns, const struct surface_turn *turn,
                      size_t place, struct started *started, bool *ret_over, struct sg_error *err)
{
    bool is_started = place < started->end;
    if (!is_started && !call_admit(r, turns, place)) {
        *ret_over = true;
        metrics_tool_call(r->gateway->metrics, r->tools[turn->calls[place].offer].interceptor,
                          METRIC_CALL_REFUSED);
        tool_refuse(r, place, &turns->out);
        return 0;
    }
    if (!is_started) {
        calls_start(r, turns, turn, place, started);
    }
    turns->surface->call_begin(r->talk, place, (struct str){0}, &turns->out);
    int rc = write_out(r, turns, err); /* the client sees that it runs while it runs */
    return rc != 0
               ? rc
               : tool_finish(started->calls[started->next++], place, &turns->out, ret_over, err);
}

/* Runs the turn's calls and tells their results in the model's order. What may not be run gets a result that says so. */
static int calls_run(struct request *r, struct turns *turns, const struct surface_turn *turn,
                     struct sg_error *err)
{
    bool over = false;
    struct started started = {0};
    for (size_t i = 0; i < turn->calls_count; i++) {
        bool is_over = false;
        int rc = call_serve(r, turns, turn, i, &started, &is_over, err);
        over = over || is_over;
        rc = rc == 0 ? write_out(r, turns, err) : rc;
        if (rc != 0) {
            calls_drop(&started);
            return rc;
        }
    }
    bool last = turns->over; /* it was told, and called again */
    turns->over = over || turns->over;
    if (last || r->turns + 1 >= (unsigned)r->gateway->config->loop.max_turns ||
        clock_ms() >= r->tools_deadline) {
        turns->options.last = true;
        turns->options.remove_tools = r->upstream->last_removes;
    }
    return 0;
}

static int answer_finish(struct request *r, struct turns *turns, bool has_text,
                         struct sg_error *err)
{
    bool needs_words = turns->options.last && !has_text;
    int rc = turns->surface->finish(r->talk, needs_words ? str_of(no_answer_text) : (struct str){0},
                                    &turns->out, err);
    if (rc != 0) {
        return rc;
    }
    if (r->lease != NULL && lease_is_kept(r->lease)) {
        container_leave(r); /* the client may name it once it has the last byte */
    }
    if (!turns->surface->wants_stream(r->talk)) {
        return answer_json(r, 200, buf_str(&turns->out), err);
    }
    request_settle(r);
    rc = write_out(r, turns, err);
    return rc == 0 ? http_answer_end(r->exchange, err) : rc;
}

/* What an earlier answer left to be run comes first. */
static int pending_run(struct request *r, struct turns *turns, struct sg_error *err)
{
    struct surface_turn left = {0};
    if (turns->surface->pending != NULL && !turns->surface->runs_nothing(r->talk)) {
        turns->surface->pending(r->talk, &left);
    }
    if (left.calls_count > 0 && !client_is_believed(r)) {
        return client_unknown(err);
    }
    return left.calls_count > 0 ? calls_run(r, turns, &left, err) : 0;
}

static int turns_serve(struct request *r, struct turns *turns, struct sg_error *err)
{
    int pending = pending_run(r, turns, err);
    if (pending != 0) {
        return pending;
    }
    for (;;) {
        struct surface_turn turn = {0};
        bool was_last = turns->options.last;
        int rc = turn_serve(r, turns, &turn, err);
        if (rc == SG_E_LIMIT && strcmp(err->reason, "token_limit") == 0) {
            return answer_finish(r, turns, true, err); /* the client's token limit is used up */
        }
        if (rc != 0) {
            return rc;
        }
        bool more = turn.calls_count > 0 && !turn.length && !was_last &&
                    !turns->surface->runs_nothing(r->talk);
        if (more) {
            rc = calls_run(r, turns, &turn, err);
        }
        if (rc != 0) {
            return rc;
        }
        if (turn.has_client_calls) {
            container_await_client(r); /* before the client can know of it */
        }
        if (!more || turn.has_client_calls) {
            return answer_finish(r, turns, turn.has_text || turn.has_client_calls, err);
        }
    }
}

/* A failure in the client's terms: before anything has run it keeps its status; afterwards it must not be one that
 * client libraries repeat by themselves, since they would run the code again. */
static void loop_fail(struct request *r, struct turns *turns, struct sg_error *err)
{
    request_name_shutdown(r, err);
    if (err->code == SG_E_CANCELLED || (r->is_streaming && http_answer_status(r->exchange) == 0)) {
        return;
    }
    if (request_has_run(r)) {
        err->status = 424;
        snprintf(err->reason, sizeof err->reason, "failed_after_run");
    }
    if (r->is_streaming) {
        struct sg_error ignored = {0};
        fiber_set_deadline(fiber_self(), DEADLINE_NONE); /* it may be what ended the request */
        if (turns->out.overflow) {
            buf_reset(&turns->out);
        } /* else it holds what the surface has told before the failure */
        renamed_failed(r, err);
        turns->surface->fail(r->talk, err, &turns->out);
        r->failure = *err;
        request_settle(r);
        if (http_answer_write(r->exchange, buf_str(&turns->out), &ignored) == 0) {
            (void)http_answer_end(r->exchange, &ignored); /* the client may have gone */
        }
    }
}

int loop_serve(struct request *r, struct sg_error *err)
{
    struct turns turns = {.surface = r->route.surface, .out = {.max = LIMIT_BODY_BYTES}};
    struct surface_input input = {.body = &r->body,
                                  .offers = r->offers,
                                  .offers_count = r->offers_count,
                                  .memory = &r->memory,
                                  .store = &r->store,
                                  .container = &r->container_source,
                                  .asks_for_reasoning = r->upstream->encrypted_reasoning,
                                  .answer_id = r->id + 4,
                                  .is_translated = r->spoken != NULL,
                                  .usage_last = r->upstream->usage_last};
    int rc = turns.surface->open(&input, r->arena, &r->talk, err);
    if (rc != 0) {
        return rc;
    }
    rc = container_take_named(r, err);
    if (rc != 0) {
        return rc;
    }
    past_note(r);
    turns.calls_max =
        turns.surface->calls_max == NULL ? SIZE_MAX : turns.surface->calls_max(r->talk);
    r->spoke_ms = clock_ms();
    turns.options.stream = turns.surface->wants_stream(r->talk) && !r->upstream->replay;
    rc = turns_serve(r, &turns, err);
    if (rc != 0) {
        /* A client that failed may come back as it was, but to what it had only. */
        if (r->lease != NULL) {
            bool waits = r->has_resumed && !request_has_run(r) && rc != SG_E_CANCELLED;
            lease_park(r->lease, waits ? LIMIT_PARK_MS : 0);
        }
        if (r->next_candidate == NULL) {
            loop_fail(r, &turns, err);
        }
        rc = err->code;
    }
    buf_clear(&turns.out);
    return rc;
}
