/* Calls of plugins: how work, output and results cross between fibers, loops and worker threads.
 *
 * The home loop's thread owns a call; the plugin's code runs in a fiber there or on a worker thread. They meet in the
 * queue of output, under the call's lock: whoever finds it empty (consumer) or full (producer) waits, a fiber by
 * parking, a worker by sleeping on `changed`. A worker wakes a fiber only by posting to the home loop. */
#include "plugin/call_internal.h"

#include "base/check.h"
#include "base/limits.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

enum { TAKEN_IN_A_ROW_MAX = 64 }; /* then the loop's other fibers get their turn */

/* ---- life ---- */

static void consumer_wake_task(struct loop_task *);
static void worker_run(struct worker_task *);

struct sg_call *call_new(const struct instance *instance, const char *operation, void *context,
                         const char *request_id, int64_t deadline)
{
    struct sg_call *call = check_alloc(calloc(1, sizeof *call));
    CHECK(loop_self() != NULL);
    call->magic = CALL_MAGIC;
    atomic_init(&call->refs, 1);
    call->instance = instance;
    call->operation = operation;
    call->context = context;
    call->deadline = deadline;
    call->home = loop_self();
    call->arena = arena_new(0);
    call->request_id =
        request_id == NULL ? NULL : check_alloc(arena_copy(call->arena, str_of(request_id)));
    call->end = &call->first;
    call->wake.run = consumer_wake_task;
    call->work.run = worker_run;
    lock_init(&call->lock);
    lock_condition_init(&call->changed);
    return call;
}

/* With the lock, or as the last owner. */
static void queue_drop(struct sg_call *call)
{
    while (call->first != NULL) {
        struct call_entry *next = call->first->next;
        free(call->first);
        call->first = next;
    }
    call->end = &call->first;
    call->queue_bytes = 0;
}

struct sg_call *call_ref(struct sg_call *call)
{
    CHECK_MAGIC(call, CALL_MAGIC);
    atomic_fetch_add_explicit(&call->refs, 1, memory_order_relaxed);
    return call;
}

void call_unref(struct sg_call *call)
{
    if (call == NULL) {
        return;
    }
    CHECK_MAGIC(call, CALL_MAGIC);
    if (atomic_fetch_sub_explicit(&call->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    CHECK(call->consumer == NULL);
    queue_drop(call);
    free(call->taken);
    arena_free(call->arena);
    CHECK(pthread_cond_destroy(&call->changed) == 0);
    lock_destroy(&call->lock);
    call->magic = 0;
    free(call);
}

static void check_home(const struct sg_call *call)
{
    CHECK_MAGIC(call, CALL_MAGIC);
    CHECK(loop_self() == call->home);
}

/* ---- waking the other side ---- */

static void consumer_wake_task(struct loop_task *task)
{
    struct sg_call *call = (struct sg_call *)((char *)task - offsetof(struct sg_call, wake));
    CHECK_MAGIC(call, CALL_MAGIC);
    lock_take(&call->lock);
    call->is_wake_posted = false;
    struct fiber *consumer = call->consumer;
    lock_release(&call->lock);
    if (consumer != NULL) { /* it cannot leave meanwhile: this is its thread */
        fiber_wake(consumer);
    }
    call_unref(call);
}

/* Takes the lock's release upon itself, so that what was added and who waits for it are seen together. */
static void release_and_wake_consumer(struct sg_call *call)
{
    struct fiber *consumer = call->consumer;
    bool is_home = loop_self() == call->home;
    bool must_post = consumer != NULL && !is_home && !call->is_wake_posted;
    call->is_wake_posted |= must_post;
    lock_release(&call->lock);
    if (consumer != NULL && is_home) {
        fiber_wake(consumer);
    } else if (must_post) {
        loop_post(call->home, &call_ref(call)->wake);
    }
}

/* Home thread, without the lock. */
static void producer_wake(struct sg_call *call)
{
    if (call->place == CALL_ON_WORKER) {
        CHECK(pthread_cond_signal(&call->changed) == 0);
    } else if (call->runner != NULL) {
        fiber_wake(call->runner);
    }
}

/* ---- the plugin's side: output ---- */

static bool has_room(const struct sg_call *call, size_t len)
{
    return call->queue_bytes == 0 || (call->queue_bytes <= LIMIT_CALL_QUEUE_BYTES &&
                                      len <= LIMIT_CALL_QUEUE_BYTES - call->queue_bytes);
}

/* One wait of the plugin's thread or fiber, with the lock, which is released meanwhile. */
static int producer_wait(struct sg_call *call)
{
    int code = 0;
    call->producer_waits = true;
    if (call->place == CALL_ON_WORKER) {
        int ended = lock_wait(&call->lock, &call->changed, call->deadline);
        CHECK(ended == 0 || ended == ETIMEDOUT);
        code = ended == ETIMEDOUT ? SG_E_TIMEOUT : 0;
    } else {
        lock_release(&call->lock);
        code = fiber_park(DEADLINE_NONE); /* the fiber's own deadline is the call's */
        lock_take(&call->lock);
    }
    call->producer_waits = false;
    return code;
}

/* With the lock. Output still finds room after the deadline: a handle, say, must not be lost for a millisecond. */
static int wait_for_room(struct sg_call *call, size_t len)
{
    int code = 0;
    while (!call_is_cancelled(call) && code == 0 && !has_room(call, len)) {
        code = producer_wait(call);
    }
    if (call_is_cancelled(call)) {
        return SG_E_CANCELLED;
    }
    return has_room(call, len) ? 0 : code;
}

static struct call_entry *entry_new(enum sg_out kind, const void *data, size_t len)
{
    struct call_entry *entry = len > SIZE_MAX - sizeof *entry ? NULL : malloc(sizeof *entry + len);
    if (entry != NULL) {
        entry->next = NULL;
        entry->kind = kind;
        entry->len = len;
        if (len > 0) {
            memcpy(entry->data, data, len);
        }
    }
    return entry;
}

static int refuse_output(struct sg_call *call, enum sg_out kind, struct sg_error *err)
{
    if (call->place == CALL_INLINE) {
        return error_set(err, SG_E_INTERNAL, "emit() in '%s', where nobody takes output",
                         call->operation);
    }
    return error_set(err, SG_E_INTERNAL, "emit() of the unknown kind %d", (int)kind);
}

int call_emit(struct sg_call *call, enum sg_out kind, const void *data, size_t len,
              struct sg_error *err)
{
    if (call->place == CALL_INLINE || (int)kind < SG_OUT_DATA || kind > SG_OUT_EXCEPTION) {
        return refuse_output(call, kind, err);
    }
    if (call_is_cancelled(call)) {
        return call_wait_failed(call, "emit", SG_E_CANCELLED, err);
    }
    struct call_entry *entry = entry_new(kind, data, len);
    if (entry == NULL) {
        return error_set(err, SG_E_LIMIT, "emit(): no memory for an output of %zu bytes", len);
    }
    lock_take(&call->lock);
    int code = wait_for_room(call, len);
    if (code != 0) {
        lock_release(&call->lock);
        free(entry);
        return call_wait_failed(call, "emit", code, err);
    }
    *call->end = entry;
    call->end = &entry->next;
    call->queue_bytes += len;
    release_and_wake_consumer(call);
    return 0;
}

/* ---- the plugin's side: beginning and end ---- */

static void call_end(struct sg_call *call, int code)
{
    call_judge(call, code);
    if (call->code != SG_OK) {
        call_add_names(call, &call->error);
    }
    lock_take(&call->lock);
    call->has_ended = true;
    release_and_wake_consumer(call);
    call_unref(call);
}

static int invoke(struct sg_call *call)
{
    if (call_is_cancelled(call)) {
        return SG_E_CANCELLED;
    }
    if (call->deadline <= clock_ms()) {
        return error_set(&call->error, SG_E_TIMEOUT, "'%s': time was up before it could begin",
                         call->operation);
    }
    return call->invoke(call->instance, call, call->arguments, &call->error);
}

static void fiber_run(void *arg)
{
    struct sg_call *call = arg;
    CHECK_MAGIC(call, CALL_MAGIC);
    fiber_note(call->operation, call->instance->plugin->name);
    int code = invoke(call);
    call->runner = NULL;
    call_end(call, code);
}

static void worker_run(struct worker_task *task)
{
    struct sg_call *call = (struct sg_call *)((char *)task - offsetof(struct sg_call, work));
    CHECK_MAGIC(call, CALL_MAGIC);
    call->thread = pthread_self();
    call_end(call, invoke(call));
}

static int begin(struct sg_call *call)
{
    if ((call->instance->plugin->flags & SG_ON_LOOP) != 0) {
        call->place = CALL_IN_FIBER;
        int code =
            fiber_start(call->home, call->operation, fiber_run, call, &call->runner, &call->error);
        if (code == 0) {
            fiber_set_deadline(call->runner, call->deadline);
        }
        return code;
    }
    call->place = CALL_ON_WORKER;
    CHECK(loop_pool(call->home) != NULL);
    return worker_submit(loop_pool(call->home), &call->work, &call->error);
}

void call_start(struct sg_call *call, call_invoke *invoke_plugin, void *arguments)
{
    check_home(call);
    CHECK(call->place == CALL_NOT_STARTED);
    call->invoke = invoke_plugin;
    call->arguments = arguments;
    (void)call_ref(call); /* the plugin's side's, dropped by call_end() */
    int code = begin(call);
    if (code != 0) {
        call_end(call, code);
    }
}

/* ---- the caller's side ---- */

/* The next output, or NULL; then *ret_ended says whether there will be none, and if not, the fiber is entered as the one
 * to wake. */
static struct call_entry *take(struct sg_call *call, bool *ret_ended)
{
    lock_take(&call->lock);
    struct call_entry *entry = call->first;
    if (entry != NULL) {
        call->first = entry->next;
        call->end = call->first == NULL ? &call->first : call->end;
        call->queue_bytes -= entry->len;
    }
    *ret_ended = entry == NULL && call->has_ended;
    call->consumer = entry == NULL && !call->has_ended ? fiber_self() : NULL;
    /* Half empty, not one entry: fewer changes between the two sides. */
    bool must_wake = call->producer_waits && call->queue_bytes <= LIMIT_CALL_QUEUE_BYTES / 2;
    lock_release(&call->lock);
    if (must_wake) {
        producer_wake(call);
    }
    return entry;
}

static int consumer_wait(struct sg_call *call)
{
    int code = fiber_park(DEADLINE_NONE);
    call->taken_in_a_row = 0;
    lock_take(&call->lock);
    call->consumer = NULL;
    lock_release(&call->lock);
    return code;
}

int call_next(struct sg_call *call, struct call_output *ret)
{
    check_home(call);
    CHECK(call->consumer == NULL);
    free(TAKE(call->taken));
    int code = 0;
    if (++call->taken_in_a_row > TAKEN_IN_A_ROW_MAX) { /* a plugin that is faster than we are */
        call->taken_in_a_row = 0;
        fiber_yield();
        code = fiber_check();
    }
    bool has_ended = false;
    while (code == 0 && (call->taken = take(call, &has_ended)) == NULL && !has_ended) {
        code = consumer_wait(call);
    }
    if (code != 0) {
        return -code;
    }
    if (call->taken == NULL) {
        return 0;
    }
    *ret = (struct call_output){call->taken->kind, {call->taken->data, call->taken->len}};
    return 1;
}

bool call_has_ended(const struct sg_call *call)
{
    struct sg_call *locked = (struct sg_call *)call; /* only its lock changes */
    lock_take(&locked->lock);
    bool has_ended = call->has_ended;
    lock_release(&locked->lock);
    return has_ended;
}

int call_result(struct sg_call *call, struct sg_error *err)
{
    check_home(call);
    CHECK(call_has_ended(call));
    if (call->code != SG_OK) {
        *err = call->error;
    }
    return call->code;
}

void call_cancel(struct sg_call *call)
{
    check_home(call);
    if (atomic_exchange(&call->is_cancelled, true)) {
        return;
    }
    lock_take(&call->lock);
    queue_drop(call);
    CHECK(pthread_cond_signal(&call->changed) == 0); /* a sleeping worker */
    lock_release(&call->lock);
    if (call->runner != NULL) {
        fiber_cancel(call->runner);
    }
    if (call->service != NULL) {
        fiber_cancel(call->service);
    }
}

void call_wait_end(struct sg_call *call)
{
    check_home(call);
    CHECK(call->place != CALL_NOT_STARTED);
    bool has_ended = false;
    fiber_shield();
    while (!has_ended) {
        struct call_entry *entry = take(call, &has_ended);
        if (entry != NULL) {
            free(entry);
        } else if (!has_ended) {
            CHECK(consumer_wait(call) == 0);
        }
    }
    fiber_unshield();
}

/* The caller leaves: the plugin's code ends by itself. */
static int leave(struct sg_call *call, int code, struct sg_error *err)
{
    call_cancel(call);
    (void)error_set(err, code, code == SG_E_TIMEOUT ? "'%s' took too long" : "'%s' was cancelled",
                    call->operation);
    call_add_names(call, err);
    return code;
}

int call_run(struct sg_call *call, call_invoke *invoke_plugin, void *arguments,
             const struct sg_sink *sink, struct sg_error *err)
{
    struct call_output output;
    int more = 0, code = 0;
    call_start(call, invoke_plugin, arguments);
    while (code == 0 && (more = call_next(call, &output)) > 0) {
        if (sink != NULL) {
            code = sink->event(sink->ctx, output.kind, output.data.data, output.data.len, err);
        }
    }
    if (code != 0) {
        call_cancel(call);
    } else if (more < 0) {
        code = leave(call, -more, err);
    } else {
        code = call_result(call, err);
    }
    call_unref(call);
    return code;
}

/* ---- crossing: a worker has the core's part done on the home loop ---- */

struct crossing { /* on the worker's stack; it sleeps until the home loop's fiber has ended */
    struct sg_call *call;
    const char *function;
    call_part *part;
    void *arguments;
    struct sg_error *err;
    int code;
    struct loop_task begin;  /* the worker's word to the loop: start the fiber */
    struct loop_task go_on;  /* … the sink has returned */
    struct fiber *fiber;     /* home thread */
    bool is_sink_done;       /* home thread */
    bool is_done, has_event; /* under the call's lock */
    enum sg_out event_kind;  /* the event on its way to the worker's sink … */
    struct str event_data;
    struct sg_error *event_err;
    int event_code; /* … and what the sink returned */
};

static void sink_returned(struct loop_task *task)
{
    struct crossing *crossing =
        (struct crossing *)((char *)task - offsetof(struct crossing, go_on));
    crossing->is_sink_done = true;
    fiber_wake(crossing->fiber);
}

/* The sink of the home loop's fiber: shows the event to the sleeping worker and waits until its sink has returned. The
 * data stay where they are meanwhile, so this wait cannot be cut short; the sink's own waits can. */
static int event_to_worker(void *ctx, enum sg_out kind, const void *data, size_t len,
                           struct sg_error *err)
{
    struct crossing *crossing = ctx;
    struct sg_call *call = crossing->call;
    lock_take(&call->lock);
    crossing->event_kind = kind;
    crossing->event_data = (struct str){data, len};
    crossing->event_err = err;
    crossing->has_event = true;
    crossing->is_sink_done = false;
    CHECK(pthread_cond_signal(&call->changed) == 0);
    lock_release(&call->lock);
    fiber_shield();
    while (!crossing->is_sink_done) {
        CHECK(fiber_park(DEADLINE_NONE) == 0);
    }
    fiber_unshield();
    return crossing->event_code;
}

static void crossing_end(struct crossing *crossing, int code)
{
    struct sg_call *call = crossing->call;
    lock_take(&call->lock);
    crossing->code = code;
    crossing->is_done = true;
    CHECK(pthread_cond_signal(&call->changed) == 0);
    lock_release(&call->lock); /* the worker goes on: `crossing` is gone */
}

static void crossing_fiber(void *arg)
{
    struct crossing *crossing = arg;
    struct sg_call *call = crossing->call;
    const struct sg_sink sink = {event_to_worker, crossing};
    fiber_note(call->operation, call->instance->plugin->name);
    int code = crossing->part(call, crossing->arguments, &sink, crossing->err);
    call->service = NULL;
    crossing_end(crossing, code);
}

static void crossing_begin(struct loop_task *task)
{
    struct crossing *crossing =
        (struct crossing *)((char *)task - offsetof(struct crossing, begin));
    struct sg_call *call = crossing->call;
    int code = fiber_start(call->home, crossing->function, crossing_fiber, crossing,
                           &crossing->fiber, crossing->err);
    if (code != 0) {
        crossing_end(crossing, code);
        return;
    }
    call->service = crossing->fiber;
    fiber_set_deadline(call->service, call->deadline);
    if (call_is_cancelled(call)) {
        fiber_cancel(call->service);
    }
}

/* The worker's side: sleeps, and gives events to the plugin's sink. */
static int crossing_serve(struct crossing *crossing, const struct sg_sink *sink)
{
    struct sg_call *call = crossing->call;
    lock_take(&call->lock);
    while (!crossing->is_done) {
        if (!crossing->has_event) {
            CHECK(lock_wait(&call->lock, &call->changed, DEADLINE_NONE) == 0);
            continue;
        }
        crossing->has_event = false;
        lock_release(&call->lock);
        crossing->event_code =
            sink->event(sink->ctx, crossing->event_kind, crossing->event_data.data,
                        crossing->event_data.len, crossing->event_err);
        loop_post(call->home, &crossing->go_on);
        lock_take(&call->lock);
    }
    lock_release(&call->lock);
    return crossing->code;
}

static int drop_event(void *ctx, enum sg_out kind, const void *data, size_t len,
                      struct sg_error *err)
{
    (void)ctx, (void)kind, (void)data, (void)len, (void)err;
    return 0;
}

int call_cross(struct sg_call *call, const char *function, call_part *part, void *arguments,
               const struct sg_sink *sink, struct sg_error *err)
{
    static const struct sg_sink drop = {drop_event, NULL};
    sink = sink != NULL ? sink : &drop;
    if (call->place != CALL_ON_WORKER) {
        return part(call, arguments, sink, err);
    }
    struct crossing crossing = {.call = call,
                                .function = function,
                                .part = part,
                                .arguments = arguments,
                                .err = err,
                                .begin.run = crossing_begin,
                                .go_on.run = sink_returned};
    loop_post(call->home, &crossing.begin);
    return crossing_serve(&crossing, sink);
}

int call_worker_sleep(struct sg_call *call, int64_t deadline)
{
    int ended = 0;
    int64_t until = deadline_min(deadline, call->deadline);
    lock_take(&call->lock);
    while (!call_is_cancelled(call) && ended == 0) {
        ended = lock_wait(&call->lock, &call->changed, until);
        CHECK(ended == 0 || ended == ETIMEDOUT);
    }
    lock_release(&call->lock);
    if (call_is_cancelled(call)) {
        return SG_E_CANCELLED;
    }
    return deadline <= call->deadline ? 0 : SG_E_TIMEOUT;
}
