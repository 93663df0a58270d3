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

static const char limit_text[] = "[limit reached: answer with what you have]";
static const char no_answer_text[] =
    "The tools were used as often as this request allows, and the model gave no answer in words.";

struct turns { /* where the loop stands */
    const struct surface *surface;
    struct surface_turn_options options; /* of the next turn */
    bool over;                           /* a call of the turn before was over a limit */
    struct buf out;                      /* for the client, not yet written */
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
    buf_reset(&turns->out);
    return rc;
}

/* The answer of one turn, passed on as it comes. */
static int turn_read(struct request *r, struct turns *turns, struct upstream_call *call,
                     struct surface_turn *ret, struct sg_error *err)
{
    for (;;) {
        struct str piece;
        int rc = upstream_call_read(call, &piece, err);
        if (rc != 0) {
            return rc;
        }
        if (piece.len == 0) {
            break;
        }
        rc = turns->surface->turn_feed(r->talk, piece, &turns->out, err);
        if (rc == 0) {
            rc = write_out(r, turns, err);
        }
        if (rc != 0) {
            return rc;
        }
    }
    int rc = turns->surface->turn_end(r->talk, &turns->out, ret, err);
    return rc == 0 ? write_out(r, turns, err) : rc;
}

static int turn_serve(struct request *r, struct turns *turns, struct surface_turn *ret,
                      struct sg_error *err)
{
    BUF_CLEANUP struct buf body = {.max = LIMIT_BODY_BYTES};
    struct upstream_call call;
    r->turns++;
    int rc = turns->surface->turn_request(r->talk, &turns->options, &body, err);
    if (rc != 0) {
        return rc;
    }
    rc = upstream_call_begin(r, buf_str(&body), true, &call, err);
    if (rc == 0) {
        rc = upstream_call_head(&call, err);
    }
    if (rc == 0 && (call.status < 200 || call.status > 299)) {
        rc = upstream_call_failed(&call, err);
    }
    if (rc == 0) {
        turns->surface->turn_begin(r->talk, call.is_stream);
        rc = turn_read(r, turns, &call, ret, err);
    }
    upstream_call_end(&call);
    return rc;
}

/* May this call of the turn be run? `place` counts within the turn. */
static bool call_allowed(const struct request *r, const struct turns *turns, size_t place)
{
    return !turns->over && place < LIMIT_CALLS_PER_TURN &&
           r->calls_run < (unsigned)r->gateway->config->loop.max_calls &&
           clock_ms() < r->tools_deadline;
}

/* Runs the turn's calls in the model's order. What may not be run gets a result that says so. */
static int calls_run(struct request *r, struct turns *turns, const struct surface_turn *turn,
                     struct sg_error *err)
{
    bool over = false;
    for (size_t i = 0; i < turn->calls_count; i++) {
        int rc = 0;
        if (call_allowed(r, turns, i)) {
            r->calls_run++;
            rc = tool_run(r, &turn->calls[i], i, &turns->out, err);
        } else {
            over = true;
            metrics_tool_call(r->gateway->metrics, r->tools[turn->calls[i].offer].interceptor,
                              METRIC_CALL_REFUSED);
            tool_refuse(r, i, limit_text, &turns->out);
        }
        if (rc == 0) {
            rc = write_out(r, turns, err);
        }
        if (rc != 0) {
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
    if (!turns->surface->wants_stream(r->talk)) {
        return answer_json(r, 200, buf_str(&turns->out), err);
    }
    rc = write_out(r, turns, err);
    return rc == 0 ? http_answer_end(r->exchange, err) : rc;
}

static int turns_serve(struct request *r, struct turns *turns, struct sg_error *err)
{
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
        if (!more || turn.has_client_calls) {
            return answer_finish(r, turns, turn.has_text || turn.has_client_calls, err);
        }
    }
}

/* A failure in the client's terms: before anything has run it keeps its status; afterwards it must not be one that
 * client libraries repeat by themselves, since they would run the code again. */
static void loop_fail(struct request *r, struct turns *turns, struct sg_error *err)
{
    if (err->code == SG_E_CANCELLED || (r->is_streaming && http_answer_status(r->exchange) == 0)) {
        return;
    }
    if (r->ran_tools) {
        err->status = 424;
        snprintf(err->reason, sizeof err->reason, "failed_after_run");
    }
    if (r->is_streaming) {
        struct sg_error ignored = {0};
        fiber_set_deadline(fiber_self(), DEADLINE_NONE); /* it may be what ended the request */
        buf_reset(&turns->out);
        turns->surface->fail(r->talk, err, &turns->out);
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
                                  .answer_id = r->id + 4};
    int rc = turns.surface->open(&input, r->arena, &r->talk, err);
    if (rc != 0) {
        return rc;
    }
    turns.options.stream = turns.surface->wants_stream(r->talk) && !r->upstream->replay;
    rc = turns_serve(r, &turns, err);
    if (rc != 0) {
        loop_fail(r, &turns, err);
    }
    buf_clear(&turns.out);
    return rc;
}
