/* A sandbox provider for tests that does as it is told, counts, and waits at gates that the test opens; and the world in
 * which it stands, one for each test (tests/support/sandbox_world.h). Its functions use the host's table alone, so that
 * they run on loops and on workers; what is wrong in them ends the program, since CUnit is for one thread. */
#ifndef TESTS_SUPPORT_FAKE_SANDBOX_H
#define TESTS_SUPPORT_FAKE_SANDBOX_H

#include "base/buf.h"
#include "base/check.h"
#include "base/lock.h"
#include "http/fetch.h"
#include "loop/worker.h"
#include "session/registry.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

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

struct box { /* a container of the provider */
    char handle[24], label[48];
    bool is_alive, is_killed, is_interrupted;
    int running, wake_fd;
    int64_t life_ms;
};

static struct world {
    struct loop *loops[2];
    struct worker_pool *pool;
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
    int64_t touched_ms, run_timeout_ms;
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
    CHECK(fd >= 0);
    return fd;
}

static inline void gate_open(int fd)
{
    uint64_t one = 1;
    CHECK(write(fd, &one, sizeof one) == sizeof one);
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
    CHECK(!"a handle that was never given");
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
        world.run_timeout_ms = run->timeout_ms;
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
    CHECK(strcmp(path, "a.txt") == 0 && len == 3 && memcmp(data, "x\0y", 3) == 0);
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
static const struct sg_plugin worker_plugin = {.name = "fake", .sandbox = &fake_ops};
static struct instance fake_instance; /* of the one or the other */

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

#endif
