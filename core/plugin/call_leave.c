/* How callers leave a call: cancelling it, and giving up one whose code does not return.
 *
 * Whoever waits for a call gives it up in time (call_patience). A call that was cancelled and left may have nobody who
 * waits: then a fiber of its own does, if the code runs on a worker, so that the pool learns of a thread that is lost. */
#include "plugin/call_internal.h"

#include "base/check.h"
#include "base/log.h"

#include <stdlib.h>

/* ---- taking back what has not begun ---- */

static bool withdraw(struct sg_call *call)
{
    if (call->place != CALL_ON_WORKER || atomic_load(&call->has_begun)) {
        return false;
    }
    return call->lender != NULL ? call_unlend(call)
                                : worker_withdraw(loop_pool(call->home), &call->work);
}

/* ---- abandoning ---- */

static void abandoned_log(const struct sg_call *call)
{
    struct log_line line;
    log_begin(&line, SG_WARN, "call_abandoned");
    log_text(&line, "plugin", call->instance->plugin->name);
    log_text(&line, "instance", call->instance->name);
    log_text(&line, "operation", call->operation);
    log_text(&line, "request", call->request_id);
    log_text(&line, "message", call->abandoned->message);
    log_end(&line);
}

/* What its caller is told. `inner` took its thread, or is NULL. */
static struct sg_error *abandoned_result(const struct sg_call *call, const struct sg_call *inner)
{
    struct sg_error *error = check_alloc(calloc(1, sizeof *error));
    bool is_cancelled = call_is_cancelled(call);
    if (inner != NULL) {
        (void)error_set(error, is_cancelled ? SG_E_CANCELLED : SG_E_TIMEOUT,
                        "'%s' was abandoned with '%s' of '%s', which holds its thread",
                        call->operation, inner->operation, inner->instance->name);
    } else if (is_cancelled) {
        (void)error_set(error, SG_E_CANCELLED,
                        "'%s' was abandoned: it did not return within %d ms of being cancelled",
                        call->operation, ABANDON_AFTER_MS);
    } else {
        (void)error_set(error, SG_E_TIMEOUT,
                        "'%s' was abandoned: it did not return within %d ms of its deadline",
                        call->operation, ABANDON_AFTER_MS);
    }
    call_add_names(call, error);
    return error;
}

/* From now on the plugin's side gets nothing from the core but SG_E_CANCELLED. */
static bool abandoned_mark(struct sg_call *call)
{
    lock_take(call->lock);
    bool is_open = !call->has_ended && !call->is_abandoned;
    if (is_open) {
        call->is_abandoned = true;
        atomic_store(&call->is_cancelled, true);
        call_drop_queue(call);
        CHECK(pthread_cond_signal(call->changed) == 0);
    }
    lock_release(call->lock);
    return is_open;
}

void call_abandoned_end(struct sg_call *call)
{
    call->context = NULL;
    lock_take(call->lock);
    call->has_ended = true;
    call_release_and_wake(call);
}

static void abandon(struct sg_call *call, const struct sg_call *inner)
{
    struct sg_error *result = abandoned_result(call, inner);
    if (call->abandoned != NULL || !abandoned_mark(call)) {
        free(result);
        return;
    }
    call->abandoned = result;
    if (call->instance->abandoned != NULL) {
        atomic_fetch_add(call->instance->abandoned, 1);
    }
    abandoned_log(call);
    if (call->runner != NULL) {
        fiber_cancel(call->runner);
    }
    call_cancel_crossings(call);
    if (call->carrier != NULL) {
        abandon(call->carrier, call); /* its thread is this one's */
    } else {
        worker_give_up(loop_pool(call->home),
                       call->visit != NULL ? &call->visit->task : &call->work);
    }
    if (call->crossings == NULL) { /* else the last of them ends it */
        call_abandoned_end(call);
    }
}

/* ---- when ---- */

static int64_t time_over(const struct sg_call *call)
{
    return call_is_cancelled(call) ? deadline_min(call->deadline, call->cancelled_at)
                                   : call->deadline;
}

int64_t call_patience(const struct sg_call *call)
{
    int64_t over = time_over(call);
    bool is_far = over == DEADLINE_NONE || call->abandoned != NULL;
    if (is_far || call->place == CALL_NOT_STARTED || call->place == CALL_INLINE) {
        return DEADLINE_NONE;
    }
    if (call->place == CALL_ON_WORKER && !atomic_load(&call->has_begun)) {
        return over;
    }
    return (over > call->tried_at ? over : call->tried_at) + ABANDON_AFTER_MS;
}

/* A fiber ends its waits by itself, but for a visit to a worker; yet not inside a core's part, whose frames below may
 * use the caller's things. */
static bool can_be_abandoned(const struct sg_call *call)
{
    return call->place == CALL_ON_WORKER || (call->visit != NULL && call->parts == 0);
}

bool call_give_up(struct sg_call *call)
{
    if (call->abandoned != NULL || call_has_ended(call)) {
        return true;
    }
    if (withdraw(call)) { /* one that is cancelled was taken back then */
        call_end(call, error_set(&call->error, SG_E_TIMEOUT,
                                 "'%s': time was up before it could begin", call->operation));
        return true;
    }
    bool is_begun = call->place != CALL_ON_WORKER || atomic_load(&call->has_begun);
    if (!is_begun || clock_ms() < call_patience(call)) {
        return false; /* it begins in this moment, or just has */
    }
    if (!can_be_abandoned(call)) {
        call->tried_at = clock_ms();
        return false;
    }
    abandon(call, NULL);
    return true;
}

/* ---- cancelling ---- */

/* What a fiber wanted a worker for, if no worker has it yet. */
static void visit_withdraw(struct sg_call *call)
{
    struct worker_visit *visit = call->visit;
    if (visit != NULL && worker_withdraw(loop_pool(call->home), &visit->task)) {
        visit->result = SG_E_CANCELLED;
        visit->is_done = true;
        fiber_wake(visit->fiber);
    }
}

static void watch_run(void *arg)
{
    struct sg_call *call = arg;
    CHECK_MAGIC(call, CALL_MAGIC);
    while (!call_has_ended(call)) {
        int64_t until = call_patience(call);
        (void)fiber_park(until); /* whatever ended it */
        if (until <= clock_ms()) {
            (void)call_give_up(call); /* or it is asked again */
        }
    }
    call->watcher = NULL;
    call_unref(call);
}

static void watch(struct sg_call *call)
{
    struct sg_error err = {0};
    bool is_on_worker = call->place == CALL_ON_WORKER || call->visit != NULL;
    if (!is_on_worker || call->watcher != NULL || call_has_ended(call)) {
        return;
    }
    if (fiber_start(call->home, "watch", watch_run, call, &call->watcher, &err) == 0) {
        (void)call_ref(call);
    } /* without a stack the pool does not learn of a lost thread: it has one less */
}

void call_cancel(struct sg_call *call)
{
    CHECK_MAGIC(call, CALL_MAGIC);
    CHECK(loop_self() == call->home);
    if (call_is_cancelled(call)) {
        return;
    }
    call->cancelled_at = clock_ms();
    atomic_store(&call->is_cancelled, true);
    lock_take(call->lock);
    call_drop_queue(call);
    CHECK(pthread_cond_signal(call->changed) == 0); /* a sleeping worker */
    lock_release(call->lock);
    if (call->runner != NULL) {
        fiber_cancel(call->runner);
    }
    visit_withdraw(call);
    call_cancel_crossings(call);
    if (withdraw(call)) {
        call_end(call, SG_E_CANCELLED);
    } else if (call->place != CALL_NOT_STARTED) {
        watch(call);
    }
}
