/* Loops: libevent's events, posted tasks, timers and the run queue, turn by turn. */
#include "loop/internal.h"

#include "base/check.h"
#include "base/log.h"
#include "loop/sanitize.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

static _Thread_local struct loop *current;

/* ---- making and freeing ---- */

static void library_log(int severity, const char *message)
{
    int error = errno; /* the caller of libevent reads it */
    struct log_line line;
    log_begin(&line, severity >= EVENT_LOG_WARN ? SG_WARN : SG_DEBUG, "libevent");
    log_text(&line, "message", message);
    log_end(&line);
    errno = error;
}

/* Monotonic, without locks (other threads only ring the bell), and not to be changed by the environment. */
static struct event_base *base_new(void)
{
    event_set_log_callback(library_log);
    struct event_config *config = check_alloc(event_config_new());
    CHECK(event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV) == 0);
    struct event_base *base = event_base_new_with_config(config);
    event_config_free(config);
    return base;
}

static void bell_rang(int fd, short what, void *arg)
{
    uint64_t count;
    (void)what, (void)arg;
    ssize_t done = read(fd, &count, sizeof count); /* what has to be done is seen by the loop */
    CHECK(done == sizeof count || errno == EAGAIN || errno == EINTR);
}

static void alarm_rang(int fd, short what, void *arg)
{
    struct loop *loop = arg;
    (void)fd, (void)what;
    loop->alarm_at = DEADLINE_NONE; /* timers_fire() follows in this turn */
}

static int bell_init(struct loop *loop, struct sg_error *err)
{
    loop->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->bell_fd < 0) {
        return error_set(err, SG_E_LIMIT, "cannot make an event loop: eventfd: %s",
                         strerror(errno));
    }
    CHECK(event_assign(&loop->bell, loop->base, loop->bell_fd, EV_READ | EV_PERSIST, bell_rang,
                       loop) == 0);
    if (event_add(&loop->bell, NULL) != 0) {
        return error_set(err, SG_E_LIMIT, "cannot make an event loop: %s", strerror(errno));
    }
    return 0;
}

int loop_new(unsigned index, struct worker_pool *pool, struct loop **ret, struct sg_error *err)
{
    struct loop *loop = check_alloc(calloc(1, sizeof *loop));
    loop->magic = LOOP_MAGIC;
    loop->index = index;
    loop->pool = pool;
    loop->tasks_end = &loop->tasks_first;
    loop->queue_end = &loop->queue_first;
    loop->alarm_at = DEADLINE_NONE;
    loop->bell_fd = -1;
    loop->watches.epoll_fd = -1;
    lock_init(&loop->lock);
    loop->base = base_new();
    if (loop->base == NULL) {
        (void)error_set(err, SG_E_LIMIT, "cannot make an event loop: %s", strerror(errno));
    } else if (bell_init(loop, err) == 0 && watches_init(loop, err) == 0) {
        CHECK(evtimer_assign(&loop->alarm, loop->base, alarm_rang, loop) == 0);
        *ret = loop;
        return 0;
    }
    loop_free(loop);
    return err->code;
}

void loop_free(struct loop *loop)
{
    if (loop == NULL) {
        return;
    }
    CHECK_MAGIC(loop, LOOP_MAGIC);
    CHECK(!atomic_load(&loop->is_running));
    CHECK(loop->fibers_count == 0);
    CHECK(loop->tasks_first == NULL);
    watches_clear(loop);
    if (loop->base != NULL) {
        event_base_free(loop->base);
    }
    if (loop->bell_fd >= 0) {
        (void)close(loop->bell_fd); /* nothing was written that could be lost */
    }
    stack_pool_clear(&loop->stacks);
    free(loop->timers);
    lock_destroy(&loop->lock);
    loop->magic = 0;
    free(loop);
}

/* ---- posting ---- */

void loop_ring(struct loop *loop)
{
    uint64_t one = 1;
    ssize_t done = write(loop->bell_fd, &one, sizeof one);
    CHECK(done == sizeof one || errno == EAGAIN || errno == EINTR);
}

/* A loop that is awake looks at its tasks before it sleeps; only a sleeping one is worth a system call. */
static bool must_ring(struct loop *loop)
{
    bool was_asleep = loop->is_asleep;
    loop->is_asleep = false;
    return was_asleep;
}

void loop_post(struct loop *loop, struct loop_task *task)
{
    CHECK_MAGIC(loop, LOOP_MAGIC);
    task->next = NULL;
    lock_take(&loop->lock);
    *loop->tasks_end = task;
    loop->tasks_end = &task->next;
    bool ring = must_ring(loop);
    lock_release(&loop->lock);
    if (ring) {
        loop_ring(loop);
    }
}

void loop_stop(struct loop *loop)
{
    CHECK_MAGIC(loop, LOOP_MAGIC);
    lock_take(&loop->lock);
    loop->is_stopping = true;
    bool ring = must_ring(loop);
    lock_release(&loop->lock);
    if (ring) {
        loop_ring(loop);
    }
}

/* ---- running ---- */

static void tasks_run(struct loop *loop)
{
    lock_take(&loop->lock);
    struct loop_task *task = TAKE(loop->tasks_first);
    loop->tasks_end = &loop->tasks_first;
    lock_release(&loop->lock);
    while (task != NULL) {
        struct loop_task *next = task->next; /* its owner may free it in run() */
        task->run(task);
        task = next;
    }
}

/* False once it shall stop. */
static bool fall_asleep(struct loop *loop, bool *ret_asleep)
{
    lock_take(&loop->lock);
    bool goes_on = !loop->is_stopping;
    loop->is_asleep = loop->tasks_first == NULL && loop->queue_first == NULL;
    *ret_asleep = loop->is_asleep;
    lock_release(&loop->lock);
    return goes_on;
}

static void wake_up(struct loop *loop)
{
    lock_take(&loop->lock);
    loop->is_asleep = false;
    lock_release(&loop->lock);
}

/* One libevent timer stands for the whole heap. libevent's clock is a coarse one and may ring some milliseconds early;
 * timers_fire() compares with the exact clock, and the alarm is then set again. */
static void alarm_set(struct loop *loop)
{
    if (loop->timers_count == 0 || loop->timers[0].at >= loop->alarm_at) {
        return;
    }
    int64_t at = loop->timers[0].at, now = clock_ms(), left = at > now ? at - now : 0;
    struct timeval after = {.tv_sec = left / 1000, .tv_usec = left % 1000 * 1000};
    if (evtimer_add(&loop->alarm, &after) != 0) { /* nothing else can fail it */
        check_out_of_memory();
    }
    loop->alarm_at = at;
}

/* Waits for events, if there is nothing else to do, and calls their call-backs. */
static bool events_run(struct loop *loop)
{
    bool is_asleep = false;
    if (!fall_asleep(loop, &is_asleep)) {
        return false;
    }
    alarm_set(loop);
    CHECK(event_base_loop(loop->base, EVLOOP_ONCE | (is_asleep ? 0 : EVLOOP_NONBLOCK)) >= 0);
    if (is_asleep) {
        wake_up(loop);
    }
    return true;
}

void loop_run(struct loop *loop)
{
    CHECK_MAGIC(loop, LOOP_MAGIC);
    CHECK(current == NULL);
    CHECK(!atomic_exchange(&loop->is_running, true));
    current = loop;
    loop->tsan_fiber = sanitize_fiber_self();
    do {
        tasks_run(loop);
        if (loop->timers_count > 0) {
            timers_fire(loop, clock_ms());
        }
        fibers_run(loop);
    } while (events_run(loop));
    tasks_run(loop); /* what was posted before loop_stop() is done */
    lock_take(&loop->lock);
    loop->is_stopping = false;
    loop->is_asleep = false;
    lock_release(&loop->lock);
    current = NULL;
    atomic_store(&loop->is_running, false);
}

/* ---- what it holds ---- */

struct loop *loop_self(void)
{
    return current;
}

unsigned loop_index(const struct loop *loop)
{
    return loop->index;
}

struct event_base *loop_base(struct loop *loop)
{
    return loop->base;
}

struct worker_pool *loop_pool(struct loop *loop)
{
    return loop->pool;
}

size_t loop_fibers(const struct loop *loop)
{
    return loop->fibers_count;
}

void loop_slot_set(struct loop *loop, enum loop_slot slot, void *value)
{
    CHECK(slot < LOOP_SLOT_COUNT);
    loop->slots[slot] = value;
}

void *loop_slot(struct loop *loop, enum loop_slot slot)
{
    CHECK(slot < LOOP_SLOT_COUNT);
    return loop->slots[slot];
}
