/* Calls of plugins: how work, output and results cross between fibers, loops and worker threads.
 *
 * The home loop's thread owns a call; the plugin's code runs in a fiber there or on a worker thread. They meet in the
 * queue of output, under the call's lock: whoever finds it empty (consumer) or full (producer) waits, a fiber by
 * parking, a worker by sleeping on `changed`. A worker wakes a fiber only by posting to the home loop.
 *
 * call_cross.c has what a worker asks of the core, call_leave.c how callers leave, call_result.c what a call is told
 * apart by. */
#include "plugin/call_internal.h"

#include "base/check.h"
#include "base/identity.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/trace.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

enum { TAKEN_IN_A_ROW_MAX = 64 }; /* then the loop's other fibers get their turn */

/* ---- life ---- */

static void wake_task(struct loop_task *);
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
    call->wake.run = wake_task;
    call->work.run = worker_run;
    call->work.lane = context != NULL ? WORKER_WAITING_CALL : WORKER_CALL;
    lock_init(&call->own_lock);
    lock_condition_init(&call->own_changed);
    call->lock = &call->own_lock;
    call->changed = &call->own_changed;
    return call;
}

void call_set_identity(struct sg_call *call, struct str identity)
{
    CHECK(call->place == CALL_NOT_STARTED);
    identity = identity_key(identity);
    call->identity = (struct str){check_alloc(arena_copy(call->arena, identity)), identity.len};
    call->work.identity = call->identity;
    account_open(&call->account, identity);
}

void call_set_tool_options(struct sg_call *call, struct str json)
{
    CHECK(call->place == CALL_NOT_STARTED);
    call->tool_options = json.len == 0 ? NULL : check_alloc(arena_copy(call->arena, json));
}

const char *call_tool_options(const struct sg_call *call)
{
    return call->tool_options;
}

void call_note_uses_spent(struct sg_call *call)
{
    call->uses_are_spent = true;
}

bool call_uses_are_spent(const struct sg_call *call)
{
    return call->uses_are_spent;
}

int call_hold(struct sg_call *call, size_t bytes, struct sg_error *err)
{
    CHECK(call->place == CALL_NOT_STARTED);
    return account_take(&call->account, bytes, err);
}

void call_set_late(struct sg_call *call, call_late *late)
{
    CHECK(call->place == CALL_NOT_STARTED);
    call->late = late;
}

void call_drop_queue(struct sg_call *call)
{
    while (call->first != NULL) {
        struct call_entry *next = call->first->next;
        free(call->first);
        call->first = next;
    }
    call->end = &call->first;
    account_give(&call->account, call->queue_bytes);
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
    call_drop_queue(call);
    free(call->taken);
    free(call->abandoned);
    account_close(&call->account);
    arena_free(call->arena);
    CHECK(pthread_cond_destroy(&call->own_changed) == 0);
    lock_destroy(&call->own_lock);
    struct sg_call *carrier = call->carrier;
    call->magic = 0;
    free(call);
    call_unref(carrier); /* its lock was this one's */
}

static void check_home(const struct sg_call *call)
{
    CHECK_MAGIC(call, CALL_MAGIC);
    CHECK(loop_self() == call->home);
}

/* ---- waking the other side ---- */

/* Home thread. The consumer looks for output and the end, the watcher for the end. */
static void wake(struct fiber *consumer, struct fiber *watcher)
{
    if (consumer != NULL) {
        fiber_wake(consumer);
    }
    if (watcher != NULL) {
        fiber_wake(watcher);
    }
}

static void wake_task(struct loop_task *task)
{
    struct sg_call *call = (struct sg_call *)((char *)task - offsetof(struct sg_call, wake));
    CHECK_MAGIC(call, CALL_MAGIC);
    lock_take(call->lock);
    call->is_wake_posted = false;
    struct fiber *consumer = call->consumer;
    lock_release(call->lock);
    wake(consumer, call->watcher); /* they cannot leave meanwhile: this is their thread */
    call_unref(call);
}

/* It takes the lock's release upon itself, so that what was added and who waits for it are seen together. */
void call_release_and_wake(struct sg_call *call)
{
    struct fiber *consumer = call->consumer;
    bool is_home = loop_self() == call->home;
    bool must_post = (consumer != NULL || call->has_ended) && !is_home && !call->is_wake_posted;
    call->is_wake_posted |= must_post;
    lock_release(call->lock);
    if (is_home) {
        wake(consumer, call->watcher);
    } else if (must_post) {
        loop_post(call->home, &call_ref(call)->wake);
    }
}

/* Home thread, without the lock. */
static void producer_wake(struct sg_call *call)
{
    if (call->place == CALL_ON_WORKER) {
        CHECK(pthread_cond_signal(call->changed) == 0);
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
    if (call_serve_lender(call)) {
        return 0;
    }
    call->producer_waits = true;
    if (call->place == CALL_ON_WORKER) {
        int ended = lock_wait(call->lock, call->changed, call->deadline);
        CHECK(ended == 0 || ended == ETIMEDOUT);
        code = ended == ETIMEDOUT ? SG_E_TIMEOUT : 0;
    } else {
        lock_release(call->lock);
        code = fiber_park(DEADLINE_NONE); /* the fiber's own deadline is the call's */
        lock_take(call->lock);
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

/* With the lock. A worker that is lent waits until its output has been dealt with: it is the only thread on which the
 * sink at the other end, its caller's, may run. */
static void wait_until_taken(struct sg_call *call)
{
    int code = 0;
    while (code == 0 && !call_is_cancelled(call) && !call_lender_is_done(call) &&
           (call->first != NULL || call->consumer == NULL)) {
        code = producer_wait(call);
    }
}

struct call_entry *call_entry_new(enum sg_out kind, const void *data, size_t len)
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

/* The status of an instance that is being opened. */
static int keep_word(struct sg_call *call, struct str word, struct sg_error *err)
{
    struct json_text json;
    struct sg_error why = {0};
    if (word.len > CALL_WORD_BYTES_MAX) {
        return error_set(err, SG_E_INTERNAL, "emit(): a status of 'open' with %zu bytes, over %d",
                         word.len, CALL_WORD_BYTES_MAX);
    }
    const char *copy = arena_copy(call->arena, word);
    struct str text = {copy, word.len};
    if (json_scan(text, call->arena, &json, &why) != 0 || json.root.type != JSON_OBJECT) {
        return error_set(err, SG_E_INTERNAL, "emit(): the status of 'open' is no JSON object");
    }
    call->word = text;
    return 0;
}

static void append(struct sg_call *call, struct call_entry *entry)
{
    *call->end = entry;
    call->end = &entry->next;
    call->queue_bytes += entry->len;
    account_add(&call->account, entry->len); /* bounded, so it is never refused */
    call_release_and_wake(call);
    if (call->lender != NULL) {
        lock_take(call->lock);
        wait_until_taken(call);
        lock_release(call->lock);
    }
}

int call_emit(struct sg_call *call, enum sg_out kind, const void *data, size_t len,
              struct sg_error *err)
{
    if (call->place == CALL_INLINE && kind == SG_OUT_STATUS &&
        strcmp(call->operation, "open") == 0) {
        return keep_word(call, (struct str){data, len}, err);
    }
    if (call->place == CALL_INLINE || (int)kind < SG_OUT_DATA || kind > SG_OUT_EXCEPTION) {
        return refuse_output(call, kind, err);
    }
    if (call_is_cancelled(call)) {
        return call_wait_failed(call, "emit", SG_E_CANCELLED, err);
    }
    struct call_entry *entry = call_entry_new(kind, data, len);
    if (entry == NULL) {
        return error_set(err, SG_E_LIMIT, "emit(): no memory for an output of %zu bytes", len);
    }
    lock_take(call->lock);
    int code = wait_for_room(call, len);
    if (code != 0) {
        lock_release(call->lock);
        free(entry);
        return call_wait_failed(call, "emit", code, err);
    }
    append(call, entry);
    return 0;
}

/* ---- the plugin's side: beginning and end ---- */

void call_end(struct sg_call *call, int code)
{
    call_judge(call, code);
    trace_say(TRACE_PLUGIN, "call_end", call, str_of(call->operation), call->code);
    if (call->code != SG_OK) {
        call_add_names(call, &call->error);
    }
    lock_take(call->lock);
    bool is_abandoned = call->is_abandoned;
    call->has_ended |= !is_abandoned;
    if (is_abandoned) {
        lock_release(call->lock);
    } else {
        call_release_and_wake(call);
    }
    if (is_abandoned && call->late != NULL) {
        call->late(call->instance, call->arguments, code);
    }
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

void call_carry_out(struct sg_call *call)
{
    CHECK_MAGIC(call, CALL_MAGIC);
    call->thread = pthread_self();
    atomic_store(&call->has_begun, true);
    call_end(call, invoke(call));
}

static void worker_run(struct worker_task *task)
{
    call_carry_out((struct sg_call *)((char *)task - offsetof(struct sg_call, work)));
}

static int begin_in_fiber(struct sg_call *call)
{
    int code =
        fiber_start(call->home, call->operation, fiber_run, call, &call->runner, &call->error);
    if (code == 0) {
        fiber_set_deadline(call->runner, call->deadline);
    }
    return code;
}

static int begin(struct sg_call *call)
{
    bool is_on_loop = (call->instance->plugin->flags & SG_ON_LOOP) != 0;
    call->place = is_on_loop ? CALL_IN_FIBER : CALL_ON_WORKER;
    if (call_is_cancelled(call)) {
        return SG_E_CANCELLED;
    }
    if (is_on_loop) {
        return begin_in_fiber(call);
    }
    CHECK(loop_pool(call->home) != NULL);
    return call_lend(call) ? 0 : worker_submit(loop_pool(call->home), &call->work, &call->error);
}

void call_start(struct sg_call *call, call_invoke *invoke_plugin, void *arguments)
{
    check_home(call);
    CHECK(call->place == CALL_NOT_STARTED);
    call->invoke = invoke_plugin;
    call->arguments = arguments;
    (void)call_ref(call); /* the plugin's side's, dropped by call_end() */
    trace_say(TRACE_PLUGIN, "call_begin", call, str_of(call->operation), 0);
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
    lock_take(call->lock);
    struct call_entry *entry = call->first;
    if (entry != NULL) {
        call->first = entry->next;
        call->end = call->first == NULL ? &call->first : call->end;
        call->queue_bytes -= entry->len;
        account_give(&call->account, entry->len);
    }
    *ret_ended = entry == NULL && call->has_ended;
    call->consumer = entry == NULL && !call->has_ended ? fiber_self() : NULL;
    /* Half empty, not one entry: fewer changes between the two sides. A lent worker waits for the consumer to wait. */
    bool must_wake = call->producer_waits &&
                     (call->lender != NULL ? call->consumer != NULL
                                           : call->queue_bytes <= LIMIT_CALL_QUEUE_BYTES / 2);
    lock_release(call->lock);
    if (must_wake) {
        producer_wake(call);
    }
    return entry;
}

/* Until something may have changed; 0, or why the caller's fiber waits no longer. */
static int consumer_wait(struct sg_call *call)
{
    int64_t until = call_patience(call);
    int code = fiber_park(until);
    call->taken_in_a_row = 0;
    lock_take(call->lock);
    call->consumer = NULL;
    lock_release(call->lock);
    if (until <= clock_ms() && call_give_up(call)) {
        return 0;
    }
    return code == SG_E_TIMEOUT ? fiber_check() : code;
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
    lock_take(call->lock);
    bool has_ended = call->has_ended;
    lock_release(call->lock);
    return has_ended;
}

int call_result(struct sg_call *call, struct sg_error *err)
{
    check_home(call);
    CHECK(call_has_ended(call));
    if (call->abandoned != NULL) {
        *err = *call->abandoned;
        return err->code;
    }
    if (call->code != SG_OK) {
        *err = call->error;
    }
    return call->code;
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
