/* What the tests of the registry share: two loops on two threads, a sandbox provider that does as it is told and counts,
 * and clients, which are fibers that acquire, run and release on command, as requests do.
 *
 * Nothing sleeps: the provider's functions wait at gates that the test opens, and the test waits in wait_for() for what
 * it wants to see. Everything that happens is a line in one pipe (the log, and what clients and provider say), so that
 * each thing that happens wakes the test, and the log can be matched. */
#ifndef TESTS_SUPPORT_SANDBOX_WORLD_H
#define TESTS_SUPPORT_SANDBOX_WORLD_H

#include "base/buf.h"
#include "base/check.h"
#include "base/lock.h"
#include "base/log.h"
#include "cunit_main.h"
#include "http/fetch.h"
#include "session/registry.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define WAIT_MS 60000 /* a hung test ends; never reached otherwise */
#define BOXES_MAX 256
#define SECRET "secret-" /* each handle starts with it */

/* The registry needs no HTTP; plugin/ links to it. */
__attribute__((weak)) int fetch_start(const struct fetch_request *request, struct arena *arena,
                                      struct fetch **ret, struct sg_error *err)
{
    (void)request, (void)arena, (void)ret;
    return error_set(err, SG_E_INTERNAL, "no HTTP here");
}
__attribute__((weak)) int fetch_head(struct fetch *fetch, struct fetch_reply *ret,
                                     struct sg_error *err)
{
    (void)fetch, (void)ret;
    return error_set(err, SG_E_INTERNAL, "no HTTP here");
}
__attribute__((weak)) int fetch_read(struct fetch *fetch, struct str *ret, struct sg_error *err)
{
    (void)fetch, (void)ret;
    return error_set(err, SG_E_INTERNAL, "no HTTP here");
}
__attribute__((weak)) void fetch_end(struct fetch *fetch)
{
    (void)fetch;
}

/* ---- the world ---- */

struct box { /* a container of the provider */
    char handle[24], label[48];
    bool is_alive, is_killed, is_interrupted;
    int running, wake_fd;
    int64_t life_ms;
};

static struct world {
    struct loop *loops[2];
    pthread_t thread;
    struct registry *registry;
    struct registry_options options;
    struct sandbox sandbox;
    int pipe[2];
    struct buf log; /* all lines so far; the driver's */
    void (*body)(void);
    size_t left; /* at shutdown */
    int64_t shutdown_ms;

    struct lock lock; /* all below: the provider */
    struct box boxes[BOXES_MAX];
    int boxes_count, live, live_max, creates, destroys, destroy_calls, runs, running_max;
    int interrupts, touches, puts;
    int64_t touched_ms;
    int create_gate, destroy_gate, run_gate; /* event descriptors; open when readable */
    bool create_fails, create_fails_late, create_is_silent, destroy_fails, interrupt_hangs;
} world;

static inline void say(const char *text)
{
    char line[64];
    int len = snprintf(line, sizeof line, "say=%s\n", text);
    ssize_t done = write(world.pipe[1], line, (size_t)len);
    (void)done; /* a full pipe has been read soon */
}

static inline int gate_new(bool is_open)
{
    int fd = eventfd(is_open ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    return fd;
}

static inline void gate_open(int fd)
{
    uint64_t one = 1;
    CU_ASSERT_EQUAL(write(fd, &one, sizeof one), sizeof one);
}

static inline void gate_close(int fd)
{
    uint64_t value;
    ssize_t got = read(fd, &value, sizeof value);
    (void)got; /* closed already */
}

/* Each waits on a descriptor of its own. */
static inline int gate_pass(struct sg_call *call, int gate, struct sg_error *err)
{
    int fd = dup(gate), events;
    int code = host_table()->wait_fd(call, fd, SG_READ, -1, &events, err);
    close(fd);
    return code;
}

/* ---- the provider ---- */

static inline struct box *box_find(const char *handle)
{
    for (int i = 0; i < world.boxes_count; i++) {
        if (strcmp(world.boxes[i].handle, handle) == 0) {
            return &world.boxes[i];
        }
    }
    CU_FAIL_FATAL("a handle that was never given");
    return NULL;
}

static inline struct box *box_new(const struct sg_sandbox_spec *spec)
{
    CHECK(world.boxes_count < BOXES_MAX);
    struct box *box = &world.boxes[world.boxes_count++];
    snprintf(box->handle, sizeof box->handle, SECRET "h%d", world.boxes_count);
    snprintf(box->label, sizeof box->label, "%s", spec->label);
    box->life_ms = spec->life_ms;
    box->is_alive = true;
    box->wake_fd = gate_new(false);
    world.creates++;
    if (++world.live > world.live_max) {
        world.live_max = world.live;
    }
    return box;
}

static int fake_create(void *self, struct sg_call *call, const struct sg_sandbox_spec *spec,
                       struct sg_error *err)
{
    (void)self;
    say("create");
    int code = gate_pass(call, world.create_gate, err);
    if (code != 0) {
        return code;
    }
    lock_take(&world.lock);
    bool fails = world.create_fails, fails_late = world.create_fails_late;
    struct box *box = fails || world.create_is_silent ? NULL : box_new(spec);
    lock_release(&world.lock);
    if (fails) {
        return host_table()->fail(err, SG_E_UNAVAILABLE, "no room at the provider");
    }
    if (box != NULL) {
        code = host_table()->emit(call, SG_OUT_HANDLE, box->handle, strlen(box->handle), err);
    }
    return fails_late ? host_table()->fail(err, SG_E_UNAVAILABLE, "it did not boot") : code;
}

static inline void box_run_begin(struct box *box)
{
    world.runs++;
    box->is_interrupted = false;
    if (++box->running > world.running_max) {
        world.running_max = box->running;
    }
}

/* What the code says. */
static inline int box_run(struct sg_call *call, struct box *box, const char *code,
                          struct sg_error *err)
{
    int result = 0;
    char text[64];
    if (strcmp(code, "gate") == 0) {
        result = gate_pass(call, world.run_gate, err);
    } else if (strcmp(code, "hang") == 0) {
        result = gate_pass(call, box->wake_fd, err); /* until it is interrupted or destroyed */
    } else if (strcmp(code, "deaf") == 0) {
        int never = gate_new(false);
        result = gate_pass(call, never, err); /* until the call ends */
        close(never);
    } else if (strcmp(code, "die") == 0) {
        return host_table()->fail(err, SG_E_GONE, "it died");
    } else if (strcmp(code, "raise") == 0) {
        return host_table()->fail(err, SG_E_UNAVAILABLE, "the line is bad");
    } else if (strcmp(code, "timeout") == 0) {
        return host_table()->fail(err, SG_E_TIMEOUT, "the run took too long");
    }
    if (result == 0) {
        snprintf(text, sizeof text, "%s in %s", code, box->handle + strlen(SECRET));
        result = host_table()->emit(call, SG_OUT_LOG_OUT, text, strlen(text), err);
    }
    return result;
}

static int fake_run(void *self, struct sg_call *call, const char *handle, const struct sg_run *run,
                    struct sg_error *err)
{
    (void)self;
    char code[32];
    snprintf(code, sizeof code, "%.*s", (int)run->code_len, run->code);
    lock_take(&world.lock);
    struct box *box = box_find(handle);
    bool is_there = box->is_alive && !box->is_killed;
    if (is_there) {
        box_run_begin(box);
    }
    lock_release(&world.lock);
    if (!is_there) {
        return host_table()->fail(err, SG_E_GONE_BEFORE, "no such container");
    }
    say("run");
    int result = box_run(call, box, code, err);
    lock_take(&world.lock);
    box->running--;
    lock_release(&world.lock);
    say("ran");
    return result;
}

static int fake_destroy(void *self, struct sg_call *call, const char *handle, struct sg_error *err)
{
    (void)self;
    int code = gate_pass(call, world.destroy_gate, err);
    lock_take(&world.lock);
    world.destroy_calls++;
    struct box *box = box_find(handle);
    bool fails = world.destroy_fails || code != 0;
    if (!fails && box->is_alive) {
        box->is_alive = false;
        world.live--;
        world.destroys++;
        gate_open(box->wake_fd);
    }
    lock_release(&world.lock);
    say("destroy");
    return fails ? host_table()->fail(err, SG_E_UNAVAILABLE, "cannot delete now") : 0;
}

static int fake_touch(void *self, struct sg_call *call, const char *handle, int64_t life_ms,
                      struct sg_error *err)
{
    (void)self, (void)call, (void)err;
    lock_take(&world.lock);
    box_find(handle)->life_ms = life_ms;
    world.touches++;
    world.touched_ms = life_ms;
    lock_release(&world.lock);
    say("touch");
    return 0;
}

static int fake_interrupt(void *self, struct sg_call *call, const char *handle,
                          struct sg_error *err)
{
    (void)self;
    lock_take(&world.lock);
    struct box *box = box_find(handle);
    box->is_interrupted = true;
    world.interrupts++;
    bool hangs = world.interrupt_hangs;
    lock_release(&world.lock);
    gate_open(box->wake_fd);
    say("interrupt");
    if (hangs) {
        int never = gate_new(false);
        int code = gate_pass(call, never, err);
        close(never);
        return code;
    }
    return 0;
}

static int fake_put(void *self, struct sg_call *call, const char *handle, const char *path,
                    const void *data, size_t len, struct sg_error *err)
{
    (void)self, (void)call;
    lock_take(&world.lock);
    bool is_there = box_find(handle)->is_alive && !box_find(handle)->is_killed;
    world.puts++;
    lock_release(&world.lock);
    CU_ASSERT_STRING_EQUAL(path, "a.txt");
    CU_ASSERT_TRUE(len == 3 && memcmp(data, "x\0y", 3) == 0);
    return is_there ? 0 : host_table()->fail(err, SG_E_GONE_BEFORE, "no such container");
}

static int fake_get(void *self, struct sg_call *call, const char *handle, const char *path,
                    struct sg_error *err)
{
    (void)self, (void)handle;
    return host_table()->emit(call, SG_OUT_DATA, path, strlen(path), err);
}

static const struct sg_sandbox_ops fake_ops = {
    .create = fake_create,
    .run = fake_run,
    .destroy = fake_destroy,
    .touch = fake_touch,
    .interrupt = fake_interrupt,
    .put = fake_put,
    .get = fake_get,
};
static const struct sg_plugin fake_plugin = {
    .name = "fake", .flags = SG_ON_LOOP, .sandbox = &fake_ops};
static struct instance fake_instance = {.name = "box", .plugin = &fake_plugin, .is_open = true};

/* One of the provider's figures. */
static inline int seen(const int *figure)
{
    lock_take(&world.lock);
    int value = *figure;
    lock_release(&world.lock);
    return value;
}

static inline void set(bool *knob, bool value)
{
    lock_take(&world.lock);
    *knob = value;
    lock_release(&world.lock);
}

/* Ends all containers behind the gateway's back. */
static inline void kill_all(void)
{
    lock_take(&world.lock);
    for (int i = 0; i < world.boxes_count; i++) {
        world.boxes[i].is_killed = true;
    }
    lock_release(&world.lock);
}

static inline struct registry_stats stats(void)
{
    struct registry_stats s;
    registry_stats(world.registry, &s);
    return s;
}

/* ---- waiting for what happens ---- */

static inline void log_drain(void)
{
    char chunk[4096];
    ssize_t got;
    while ((got = read(world.pipe[0], chunk, sizeof chunk)) > 0) {
        buf_append(&world.log, chunk, (size_t)got);
    }
}

static inline int logged(const char *text)
{
    int count = 0;
    log_drain();
    for (const char *at = world.log.data; at != NULL && (at = strstr(at, text)) != NULL; at++) {
        count++;
    }
    return count;
}

static inline void something_happens(const char *what)
{
    int events;
    if (fiber_wait_fd(world.pipe[0], SG_READ, deadline_in(WAIT_MS), &events) != 0) {
        fprintf(stderr, "\nwaited in vain for: %s\n%s\n", what, world.log.data);
        abort();
    }
    log_drain();
}

/* In the driver's fiber. */
#define wait_for(condition)                \
    do {                                   \
        while (!(condition)) {             \
            something_happens(#condition); \
        }                                  \
    } while (0)

/* ---- clients ---- */

enum command { ACQUIRE, RUN, RELEASE, KEEP, PARK, TAKE_LOSS, PUT, GET, QUIT };

struct client {
    unsigned loop; /* on which it lives */
    const char *identity, *session, *container;
    const char *code;
    int64_t timeout_ms, keep_ms;
    bool is_parked; /* acquires a container that is */
    bool refuses;   /* its sink takes nothing */
    struct loop_task start, cancel;
    struct fiber *fiber; /* its loop's */
    enum command command;
    int wake_fd;
    /* Results: to be looked at while it is not busy. */
    struct lock lock; /* the two */
    bool busy, has_begun, is_over;
    int result;
    bool loss;
    struct sg_error err;
    char id[64], output[128];
    struct lease *lease;
};

static inline int client_event(void *ctx, enum sg_out kind, const void *data, size_t len,
                               struct sg_error *err)
{
    struct client *client = ctx;
    (void)kind;
    snprintf(client->output, sizeof client->output, "%.*s", (int)len, (const char *)data);
    return client->refuses ? error_set(err, SG_E_LIMIT, "too much output") : 0;
}

static inline int client_acquire(struct client *client)
{
    struct acquire acquire = {
        .identity = str_of(client->identity),
        .session_id = str_of(client->session),
        .container_id = str_of(client->container),
        .is_parked = client->is_parked,
        .sandbox = &world.sandbox,
        .request_id = "req_1",
        .deadline = DEADLINE_NONE,
    };
    return registry_acquire(world.registry, &acquire, &client->lease, &client->err);
}

static inline int client_obey(struct client *client)
{
    const struct sg_sink sink = {client_event, client};
    struct sg_run run = {.code = client->code, .timeout_ms = client->timeout_ms};
    switch (client->command) {
    case ACQUIRE:
        return client_acquire(client);
    case RUN:
        run.code_len = strlen(client->code);
        return lease_run(client->lease, &run, &sink, &client->err);
    case KEEP:
        lease_keep(client->lease, client->keep_ms);
        return 0;
    case PARK:
        lease_park(client->lease, client->keep_ms);
        return 0;
    case TAKE_LOSS:
        client->loss = lease_take_loss(client->lease);
        return 0;
    case PUT:
        return lease_file_put(client->lease, "a.txt", "x\0y", 3, &client->err);
    case GET:
        return lease_file_get(client->lease, "b.txt", &sink, &client->err);
    case RELEASE:
    case QUIT:
        lease_release(client->lease);
        client->lease = NULL;
        return 0;
    }
    return 0;
}

static inline void client_report(struct client *client, bool is_over)
{
    if (client->lease != NULL) {
        snprintf(client->id, sizeof client->id, "%s", lease_container_id(client->lease));
    }
    lock_take(&client->lock);
    client->busy = false;
    client->is_over = is_over;
    lock_release(&client->lock);
    say("client");
}

static inline void client_mark_begun(struct client *client)
{
    lock_take(&client->lock);
    client->has_begun = true;
    lock_release(&client->lock);
    say("begin");
}

static void client_main(void *arg)
{
    struct client *client = arg;
    int events;
    while (fiber_wait_fd(client->wake_fd, SG_READ, DEADLINE_NONE, &events) == 0) {
        gate_close(client->wake_fd);
        client->err = (struct sg_error){0};
        client->output[0] = '\0';
        client_mark_begun(client);
        client->result = client_obey(client);
        if (client->command == QUIT) {
            break;
        }
        if (!fiber_is_cancelled(fiber_self())) {
            client_report(client, false);
        }
    }
    lease_release(client->lease); /* as a request does, whatever happened above */
    client->lease = NULL;
    client->fiber = NULL;
    client_report(client, true);
}

static void client_on_loop(struct loop_task *task)
{
    struct client *client = (struct client *)((char *)task - offsetof(struct client, start));
    struct sg_error err = {0};
    CHECK(fiber_start(loop_self(), "client", client_main, client, &client->fiber, &err) == 0);
}

static void client_cancel_on_loop(struct loop_task *task)
{
    struct client *client = (struct client *)((char *)task - offsetof(struct client, cancel));
    if (client->fiber != NULL) {
        fiber_cancel(client->fiber);
    }
}

static inline struct client *client_new(unsigned loop, const char *identity, const char *session)
{
    struct client *client = check_alloc(calloc(1, sizeof *client));
    client->loop = loop;
    client->identity = identity;
    client->session = session;
    client->timeout_ms = 60000;
    client->wake_fd = gate_new(false);
    client->start.run = client_on_loop;
    client->cancel.run = client_cancel_on_loop;
    lock_init(&client->lock);
    loop_post(world.loops[loop], &client->start);
    return client;
}

static inline bool client_is_busy(struct client *client)
{
    lock_take(&client->lock);
    bool busy = client->busy;
    lock_release(&client->lock);
    return busy;
}

static inline void client_begin(struct client *client, enum command command)
{
    CHECK(!client_is_busy(client));
    lock_take(&client->lock);
    client->busy = true;
    client->has_begun = false;
    lock_release(&client->lock);
    client->command = command;
    gate_open(client->wake_fd);
}

static inline bool client_has_begun(struct client *client)
{
    lock_take(&client->lock);
    bool has_begun = client->has_begun;
    lock_release(&client->lock);
    return has_begun;
}

/* Begins, and returns when it waits inside. Of clients on this loop: they do not stop on the way. */
static inline void client_begin_waiting(struct client *client, enum command command)
{
    CHECK(client->loop == 0);
    client_begin(client, command);
    wait_for(client_has_begun(client));
}

static inline int client_wait(struct client *client)
{
    wait_for(!client_is_busy(client));
    return client->result;
}

static inline int client_do(struct client *client, enum command command)
{
    client_begin(client, command);
    return client_wait(client);
}

static inline int client_run(struct client *client, const char *code)
{
    client->code = code;
    return client_do(client, RUN);
}

static inline void client_begin_run(struct client *client, const char *code)
{
    client->code = code;
    client_begin(client, RUN);
}

static inline bool client_is_over(struct client *client)
{
    lock_take(&client->lock);
    bool is_over = client->is_over;
    lock_release(&client->lock);
    return is_over;
}

/* As when its connection closes. */
static inline void client_cancel(struct client *client)
{
    loop_post(world.loops[client->loop], &client->cancel);
    wait_for(client_is_over(client));
}

static inline void client_free(struct client *client)
{
    if (!client_is_over(client)) {
        client_begin(client, QUIT);
        wait_for(client_is_over(client));
    }
    close(client->wake_fd);
    lock_destroy(&client->lock);
    free(client);
}

/* One that has acquired; fails the test otherwise. */
static inline struct client *client_with(unsigned loop, const char *identity, const char *session)
{
    struct client *client = client_new(loop, identity, session);
    CU_ASSERT_EQUAL_FATAL(client_do(client, ACQUIRE), 0);
    return client;
}

/* ---- running a test ---- */

static void other_loop_end(void *arg)
{
    struct loop *loop = arg;
    while (loop_fibers(loop) > 1) {
        fiber_yield();
    }
    loop_stop(loop);
}

static void other_loop_ending(struct loop_task *task)
{
    struct sg_error err = {0};
    (void)task;
    CHECK(fiber_start(loop_self(), "end", other_loop_end, loop_self(), NULL, &err) == 0);
}

static void *other_loop_main(void *arg)
{
    loop_run(arg);
    return NULL;
}

static void driver_main(void *arg)
{
    static struct loop_task ending;
    (void)arg;
    world.body();
    if (world.registry != NULL) {
        world.left = registry_shutdown(world.registry, deadline_in(world.shutdown_ms));
    }
    log_drain();
    ending = (struct loop_task){.run = other_loop_ending};
    loop_post(world.loops[1], &ending);
    while (loop_fibers(world.loops[0]) > 1) {
        fiber_yield();
    }
    loop_stop(world.loops[0]);
}

static inline void world_open(void)
{
    struct sg_error err = {0};
    memset(&world, 0, sizeof world);
    CU_ASSERT_EQUAL_FATAL(pipe2(world.pipe, O_CLOEXEC | O_NONBLOCK), 0);
    (void)fcntl(world.pipe[1], F_SETPIPE_SZ, 1 << 20); /* more than one test writes */
    log_set_fd(world.pipe[1]);
    lock_init(&world.lock);
    world.create_gate = gate_new(true);
    world.destroy_gate = gate_new(true);
    world.run_gate = gate_new(false);
    for (unsigned i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL_FATAL(loop_new(i, NULL, &world.loops[i], &err), 0);
    }
    registry_options_default(&world.options);
    world.options.loops = world.loops;
    world.options.loops_count = 2;
    world.sandbox =
        (struct sandbox){.name = "box", .instance = &fake_instance, .run_timeout_ms = 60000};
    world.shutdown_ms = WAIT_MS;
    buf_puts(&world.log, "");
}

static inline void world_close(void)
{
    registry_free(world.registry);
    loop_free(world.loops[0]);
    loop_free(world.loops[1]);
    for (int i = 0; i < world.boxes_count; i++) {
        close(world.boxes[i].wake_fd);
    }
    close(world.create_gate);
    close(world.destroy_gate);
    close(world.run_gate);
    log_set_fd(2);
    close(world.pipe[0]);
    close(world.pipe[1]);
    buf_clear(&world.log);
    lock_destroy(&world.lock);
}

/* Runs the body in a fiber on loop 0, between world_open() with the options changed and the shutdown, after which no
 * container may be left anywhere. */
static inline void world_run(void (*body)(void))
{
    struct sg_error err = {0};
    world.body = body;
    CU_ASSERT_EQUAL_FATAL(registry_new(&world.options, &world.registry, &err), 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&world.thread, NULL, other_loop_main, world.loops[1]), 0);
    CU_ASSERT_EQUAL_FATAL(fiber_start(world.loops[0], "driver", driver_main, NULL, NULL, &err), 0);
    loop_run(world.loops[0]);
    pthread_join(world.thread, NULL);
    CU_ASSERT_EQUAL(world.left, 0);
    CU_ASSERT_EQUAL(world.live, 0);
    CU_ASSERT_EQUAL(world.creates, world.destroys);
    CU_ASSERT_TRUE(world.running_max <= 1);
    CU_ASSERT_PTR_NULL(strstr(world.log.data, SECRET)); /* no handle in any line */
}

static inline void world_test(void (*body)(void))
{
    world_open();
    world_run(body);
    world_close();
}

#endif
