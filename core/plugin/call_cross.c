/* Crossing: what a call on a worker asks of the core is done by a fiber of the home loop while the worker sleeps.
 *
 *   the worker                                      a fiber of the home loop
 *   call_cross: posts, sleeps                     → the core's part
 *   its plugin's sink                             ← events of the part, each waited for
 *   carries out a call that the part makes        ← call_lend
 *   goes on with the part's result                ← the part's end
 *
 * Where the core's part is itself a call of a plugin on a worker, the sleeping one carries it out ("lent"), so that a
 * chain of calls takes one thread. Such a call shares the lock of the one that lent its worker, and every wait of it looks
 * after the events of that one too (call_serve_lender), since their sink runs on this thread or on none.
 *
 * A plugin's sink may block its worker for ever. When the call is then abandoned, the fiber gives its event up, ends
 * without it, and leaves nothing behind that the plugin could reach: events are copies, and what the worker still reads
 * stands on its own stack. */
#include "plugin/call_internal.h"

#include "base/check.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

struct crossing { /* on the worker's stack; it sleeps until the home loop's fiber has ended */
    struct sg_call *call;
    const char *function;
    call_part *part;
    void *arguments;
    const struct sg_sink *sink;
    struct loop_task begin; /* the worker's word to the loop: start the fiber */
    struct loop_task go_on; /* … the sink has returned */

    /* The home thread's. */
    struct fiber *fiber;
    struct crossing *next; /* of the call's */
    bool is_sink_done;

    /* Under the call's lock. */
    struct call_entry *event; /* for the sink; the worker's once it has taken it */
    bool is_answered;         /* the sink has returned, and go_on is posted */
    bool is_given_up;         /* nobody waits for the sink any more */
    struct sg_call *lent;     /* a call to be carried out … */
    bool is_lent;             /* … or being carried out */
    bool is_done;
    int event_code, code;
    struct sg_error event_error, error; /* set where the codes are not 0 */
};

/* ---- events on their way to the worker's sink ---- */

static void sink_returned(struct loop_task *task)
{
    struct crossing *crossing =
        (struct crossing *)((char *)task - offsetof(struct crossing, go_on));
    crossing->is_sink_done = true;
    fiber_wake(crossing->fiber);
}

/* Shows the event to the sleeping worker, unless its call is abandoned. */
static bool event_show(struct crossing *crossing, struct call_entry *event)
{
    struct sg_call *call = crossing->call;
    crossing->is_sink_done = false;
    lock_take(call->lock);
    CHECK(crossing->event == NULL);
    bool is_wanted = !call->is_abandoned;
    crossing->event = is_wanted ? event : NULL;
    crossing->is_answered = false;
    CHECK(pthread_cond_signal(call->changed) == 0);
    lock_release(call->lock);
    if (!is_wanted) {
        free(event);
    }
    return is_wanted;
}

/* The call was abandoned while its sink has the event, or before. */
static bool event_give_up(struct crossing *crossing)
{
    struct sg_call *call = crossing->call;
    lock_take(call->lock);
    bool gives_up = call->is_abandoned && !crossing->is_answered;
    crossing->is_given_up |= gives_up;
    struct call_entry *event = gives_up ? TAKE(crossing->event) : NULL;
    lock_release(call->lock);
    free(event);
    return gives_up;
}

/* The sink of the home loop's fiber. Cancelling does not cut its wait short, though it does those of the plugin's sink. */
static int event_to_worker(void *ctx, enum sg_out kind, const void *data, size_t len,
                           struct sg_error *err)
{
    struct crossing *crossing = ctx;
    struct call_entry *event = call_entry_new(kind, data, len);
    if (event == NULL) {
        return error_set(err, SG_E_LIMIT, "%s(): no memory for an event of %zu bytes",
                         crossing->function, len);
    }
    bool is_shown = event_show(crossing, event);
    fiber_shield();
    while (is_shown && !crossing->is_sink_done && (is_shown = !event_give_up(crossing))) {
        CHECK(fiber_park(DEADLINE_NONE) == 0);
    }
    fiber_unshield();
    if (!is_shown) {
        return call_wait_failed(crossing->call, crossing->function, SG_E_CANCELLED, err);
    }
    if (crossing->event_code != 0) {
        *err = crossing->event_error;
    }
    return crossing->event_code;
}

/* On the worker, with the lock, which is released meanwhile. */
static void event_serve(struct crossing *crossing)
{
    struct sg_call *call = crossing->call;
    struct call_entry *event = TAKE(crossing->event);
    lock_release(call->lock);
    crossing->event_error = (struct sg_error){0};
    int code = crossing->sink->event(crossing->sink->ctx, event->kind, event->data, event->len,
                                     &crossing->event_error);
    free(event);
    lock_take(call->lock);
    crossing->event_code = code;
    crossing->is_answered = !crossing->is_given_up;
    if (crossing->is_answered) { /* until it was told, the fiber waits */
        lock_release(call->lock);
        loop_post(call->home, &crossing->go_on);
        lock_take(call->lock);
    }
}

/* ---- lending ---- */

bool call_lend(struct sg_call *call)
{
    struct crossing *lender = fiber_local();
    if (lender == NULL) {
        return false;
    }
    struct sg_call *carrier = lender->call;
    lock_take(carrier->lock);
    bool is_free = !lender->is_lent && !carrier->is_abandoned;
    if (is_free) {
        lender->is_lent = true;
        lender->lent = call;
        call->lender = lender;
        call->carrier = call_ref(carrier);
        call->lock = carrier->lock;
        call->changed = carrier->changed;
        CHECK(pthread_cond_signal(carrier->changed) == 0);
    }
    lock_release(carrier->lock);
    return is_free;
}

/* Its lender sleeps in the same function as long as it has not begun. */
bool call_unlend(struct sg_call *call)
{
    lock_take(call->lock);
    bool is_waiting = !atomic_load(&call->has_begun);
    if (is_waiting) {
        CHECK(call->lender->lent == call);
        call->lender->lent = NULL;
        call->lender->is_lent = false;
    }
    lock_release(call->lock);
    return is_waiting;
}

/* On the worker, with the lock, which is released meanwhile. */
static void lent_carry_out(struct crossing *crossing)
{
    struct sg_call *call = crossing->call, *lent = TAKE(crossing->lent);
    atomic_store(&lent->has_begun, true);
    lock_release(call->lock);
    call_carry_out(lent);
    lock_take(call->lock);
    crossing->is_lent = false;
}

bool call_serve_lender(struct sg_call *call)
{
    for (struct crossing *lender = call->lender; lender != NULL; lender = lender->call->lender) {
        if (lender->event != NULL) {
            event_serve(lender);
            return true;
        }
    }
    return false;
}

bool call_lender_is_done(const struct sg_call *call)
{
    return call->lender->is_done;
}

/* ---- the home loop's fiber ---- */

void call_cancel_crossings(struct sg_call *call)
{
    for (struct crossing *crossing = call->crossings; crossing != NULL; crossing = crossing->next) {
        fiber_cancel(crossing->fiber);
        fiber_wake(crossing->fiber); /* shielded, with an event that may have to be given up */
    }
}

static void crossing_enter(struct crossing *crossing)
{
    crossing->next = crossing->call->crossings;
    crossing->call->crossings = crossing;
}

static void crossing_leave(struct crossing *crossing)
{
    struct crossing **at = &crossing->call->crossings;
    while (*at != crossing) {
        at = &(*at)->next;
    }
    *at = crossing->next;
}

/* Consumes a reference. */
static void crossing_end(struct crossing *crossing, int code, const struct sg_error *error)
{
    struct sg_call *call = crossing->call;
    lock_take(call->lock);
    crossing->code = code;
    if (code != 0) {
        crossing->error = *error;
    }
    crossing->is_done = true;
    bool is_abandoned = call->is_abandoned;
    CHECK(pthread_cond_signal(call->changed) == 0);
    lock_release(call->lock); /* the worker goes on: `crossing` is gone */
    if (is_abandoned && call->crossings == NULL) {
        call_abandoned_end(call);
    }
    call_unref(call);
}

static void crossing_fiber(void *arg)
{
    struct crossing *crossing = arg;
    struct sg_call *call = crossing->call;
    const struct sg_sink sink = {event_to_worker, crossing};
    struct sg_error error = {0};
    fiber_note(call->operation, call->instance->plugin->name);
    fiber_set_local(crossing);
    int code = crossing->part(call, crossing->arguments, &sink, &error);
    crossing_leave(crossing);
    crossing_end(crossing, code, &error);
}

static void crossing_begin(struct loop_task *task)
{
    struct crossing *crossing =
        (struct crossing *)((char *)task - offsetof(struct crossing, begin));
    struct sg_call *call = crossing->call;
    struct sg_error error = {0};
    int code = 0;
    if (call->abandoned != NULL) {
        code = call_wait_failed(call, crossing->function, SG_E_CANCELLED, &error);
    } else {
        code = fiber_start(call->home, crossing->function, crossing_fiber, crossing,
                           &crossing->fiber, &error);
    }
    if (code != 0) {
        crossing_end(crossing, code, &error);
        return;
    }
    crossing_enter(crossing);
    fiber_set_deadline(crossing->fiber, call->deadline);
    if (call_is_cancelled(call)) {
        fiber_cancel(crossing->fiber);
    }
}

/* ---- the worker ---- */

/* Sleeps, gives events to the plugin's sink, carries out what is lent. */
static int crossing_serve(struct crossing *crossing, struct sg_error *err)
{
    struct sg_call *call = crossing->call;
    lock_take(call->lock);
    for (;;) {
        if (crossing->lent != NULL) {
            lent_carry_out(crossing);
        } else if (crossing->event != NULL) {
            event_serve(crossing);
        } else if (crossing->is_done) {
            break;
        } else if (!call_serve_lender(call)) {
            CHECK(lock_wait(call->lock, call->changed, DEADLINE_NONE) == 0);
        }
    }
    lock_release(call->lock);
    if (crossing->error.code != 0 && err != NULL) {
        *err = crossing->error;
    }
    return crossing->code;
}

static int drop_event(void *ctx, enum sg_out kind, const void *data, size_t len,
                      struct sg_error *err)
{
    (void)ctx, (void)kind, (void)data, (void)len, (void)err;
    return 0;
}

/* In the plugin's own fiber, where nothing has to cross. */
static int part_here(struct sg_call *call, call_part *part, void *arguments,
                     const struct sg_sink *sink, struct sg_error *err)
{
    call->parts++;
    int code = part(call, arguments, sink, err);
    call->parts--;
    return code;
}

int call_cross(struct sg_call *call, const char *function, call_part *part, void *arguments,
               const struct sg_sink *sink, struct sg_error *err)
{
    struct sg_sink to = {drop_event, NULL};
    if (sink != NULL) {
        struct_take(call, SG_STRUCT_SINK, sink, 0, &to, sizeof to);
    }
    if (call->place != CALL_ON_WORKER) {
        return part_here(call, part, arguments, &to, err);
    }
    if (call_is_cancelled(call)) {
        return call_wait_failed(call, function, SG_E_CANCELLED, err);
    }
    struct crossing crossing = {.call = call_ref(call), /* the home loop's, until the part's end */
                                .function = function,
                                .part = part,
                                .arguments = arguments,
                                .sink = &to,
                                .begin.run = crossing_begin,
                                .go_on.run = sink_returned};
    loop_post(call->home, &crossing.begin);
    return crossing_serve(&crossing, err);
}

int call_worker_sleep(struct sg_call *call, int64_t deadline)
{
    int ended = 0;
    int64_t until = deadline_min(deadline, call->deadline);
    lock_take(call->lock);
    while (!call_is_cancelled(call) && ended == 0) {
        if (!call_serve_lender(call)) {
            ended = lock_wait(call->lock, call->changed, until);
            CHECK(ended == 0 || ended == ETIMEDOUT);
        }
    }
    lock_release(call->lock);
    if (call_is_cancelled(call)) {
        return SG_E_CANCELLED;
    }
    return deadline <= call->deadline ? 0 : SG_E_TIMEOUT;
}
